/* What product.c and the checks of it share. */
#ifndef PRODUCT_H
#define PRODUCT_H

#include "shim.h"

enum {
    GRAM_ROWS = 128,  /* from so many rows on, x @ x.T is computed by syrk */
    BATCH_COUNT = 4   /* so many products of one axis are worth a call for all of them */
};

/* Seconds since some time. */
double now(void);

static const int64_t item_size[SHIM_TYPES] = {4, 8, 8, 16};

#endif
