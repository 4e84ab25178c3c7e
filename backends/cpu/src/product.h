/* One product, and how it is to be computed. */
#ifndef GG_PRODUCT_H
#define GG_PRODUCT_H

#include "kernels.h"

typedef struct {
    gg_side a, b;
    char *out;
    int64_t out_row, m, n, k;
    int out_type;
} gg_product;

/* What is the same for all products of a batch. */
typedef struct {
    const gg_isa *isa;
    const gg_compute *compute;
    gg_store store; /* NULL: results are summed in the output itself */
    int planes, out_bytes, is_gemv;
    int64_t row_block, column_block, row_slab, k_block; /* of gemm */
    double microseconds;
} gg_plan;

/* Bytes of memory that gg_gemv and gg_gemm want, at a multiple of 64. */
int64_t gg_gemv_memory(const gg_plan *plan, const gg_product *p);
int64_t gg_gemm_memory(const gg_plan *plan, int n_threads);

/* For a few rows or a few columns. */
int gg_gemv(const gg_plan *plan, const gg_product *p, char *memory, int n_threads);
int gg_gemm(const gg_plan *plan, const gg_product *p, char *memory, int n_threads);

/* For one row or column of complex numbers, where the matrix is contiguous along an axis. */
int gg_complex_gemv_fits(const gg_product *p);
int64_t gg_complex_gemv_memory(const gg_plan *plan, const gg_product *p);
int gg_complex_gemv(const gg_plan *plan, const gg_product *p, char *memory, int n_threads);

static inline int64_t gg_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gg_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t gg_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The even share of `total` in blocks of at most `limit`, rounded up to whole `unit`s. */
static inline int64_t gg_even_block(int64_t total, int64_t limit, int64_t unit)
{
    int64_t even = total <= limit ? total : gg_divide_up(total, gg_divide_up(total, limit));
    return gg_divide_up(even, unit) * unit;
}

#endif
