/* Memory that a call needs only while it runs. */
#ifndef GG_WORKSPACE_H
#define GG_WORKSPACE_H

#include <stddef.h>

/* At least `size` bytes at a multiple of 64, or NULL. */
void *gg_workspace_take(size_t size);

void gg_workspace_give(void *memory);

#endif
