/* A matrix times a matrix, in blocks that are packed to fit the caches. */
#include "pool.h"
#include "product.h"

enum {
    MIN_TILE_COLUMNS = 128, /* so that packing a for every tile does not show */
    PANELS_PER_TASK = 4
};

/* One block of columns and of k; packed_a has a piece for every thread. */
typedef struct {
    const gg_plan *plan;
    const gg_product *product;
    char *packed_a, *packed_b, *wide;
    int64_t row, rows, column, columns, k0, k;
    int64_t tile_columns, tiles_across;
} gemm_step;

static int64_t packed_a_bytes(const gg_plan *plan)
{
    return plan->row_block * plan->k_block * plan->compute->size;
}

static int64_t packed_b_bytes(const gg_plan *plan)
{
    return plan->column_block * plan->k_block * plan->compute->size;
}

static int64_t wide_bytes(const gg_plan *plan)
{
    return plan->store ? plan->row_slab * plan->column_block * plan->compute->size : 0;
}

/* The real (0) or imaginary (1) parts of a side; all of a real side. */
static gg_side plane_of(const gg_plan *plan, const gg_side *side, int plane)
{
    gg_side part = *side;
    if (plan->planes == 2) {
        part.type = side->type == GG_C64 ? GG_F32 : GG_F64;
        part.data += plane * plan->compute->size;
    }
    return part;
}

static void pack_b_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const gemm_step *s = arg;
    const gg_compute *compute = s->plan->compute;
    int64_t first = begin * compute->nr, n = gg_smaller(end * compute->nr, s->columns) - first;
    (void)slot;
    for (int plane = 0; plane < s->plan->planes; plane++) {
        gg_side b = plane_of(s->plan, &s->product->b, plane);
        char *out = s->packed_b + plane * packed_b_bytes(s->plan) + first * s->k * compute->size;
        compute->pack(&b, s->column + first, n, s->k0, s->k, compute->nr, out);
    }
}

static void store_rows(const gemm_step *s, int64_t row, int64_t m, int64_t column, int64_t n)
{
    const gg_plan *plan = s->plan;
    int64_t wide_row = plan->column_block * plan->compute->size;
    char *wide = s->wide + row * wide_row + column * plan->compute->size;
    char *out = s->product->out + (s->row + row) * s->product->out_row +
                (s->column + column) * plan->out_bytes;
    for (int64_t i = 0; i < m; i++)
        plan->store(wide + i * wide_row, wide + i * wide_row + wide_bytes(plan),
                    out + i * s->product->out_row, n);
}

/* Rows [row, row + m) and columns [column, column + n) of this step's results. */
static void multiply_tile(const gemm_step *s, char *packed_a, int64_t row, int64_t m,
                          int64_t column, int64_t n)
{
    const gg_plan *plan = s->plan;
    const gg_compute *compute = plan->compute;
    int64_t a_bytes = packed_a_bytes(plan), b_bytes = packed_b_bytes(plan);
    int how = s->k0 ? GG_ADD : GG_SET;
    char *b = s->packed_b + column * s->k * compute->size;
    for (int plane = 0; plane < plan->planes; plane++) {
        gg_side a = plane_of(plan, &s->product->a, plane);
        compute->pack(&a, s->row + row, m, s->k0, s->k, compute->mr, packed_a + plane * a_bytes);
    }
    if (!plan->store) {
        char *out = s->product->out + (s->row + row) * s->product->out_row +
                    (s->column + column) * compute->size;
        compute->multiply(m, n, s->k, packed_a, b, out, s->product->out_row, how);
        return;
    }
    int64_t wide_row = plan->column_block * compute->size;
    char *re = s->wide + row * wide_row + column * compute->size, *im = re + wide_bytes(plan);
    compute->multiply(m, n, s->k, packed_a, b, re, wide_row, how);
    if (plan->planes == 2) {
        compute->multiply(m, n, s->k, packed_a + a_bytes, b + b_bytes, re, wide_row, GG_SUBTRACT);
        compute->multiply(m, n, s->k, packed_a, b + b_bytes, im, wide_row, how);
        compute->multiply(m, n, s->k, packed_a + a_bytes, b, im, wide_row, GG_ADD);
    }
    if (s->k0 + s->k == s->product->k)
        store_rows(s, row, m, column, n);
}

static void tile_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const gemm_step *s = arg;
    char *packed_a = s->packed_a + slot * s->plan->planes * packed_a_bytes(s->plan);
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t row = tile / s->tiles_across * s->plan->row_block;
        int64_t column = tile % s->tiles_across * s->tile_columns;
        multiply_tile(s, packed_a, row, gg_smaller(s->plan->row_block, s->rows - row), column,
                      gg_smaller(s->tile_columns, s->columns - column));
    }
}

/* Enough tiles for the threads to share evenly, none so narrow that packing a would show. */
static void divide_columns(gemm_step *s, int n_threads)
{
    int64_t down = gg_divide_up(s->rows, s->plan->row_block);
    int64_t across = n_threads == 1 ? 1 : gg_divide_up(8 * n_threads, down);
    across = gg_larger(1, gg_smaller(across, s->columns / MIN_TILE_COLUMNS));
    s->tile_columns = gg_even_block(s->columns, gg_divide_up(s->columns, across), s->plan->compute->nr);
    s->tiles_across = gg_divide_up(s->columns, s->tile_columns);
}

static int run_step(gemm_step *s, int n_threads)
{
    int64_t panels = gg_divide_up(s->columns, s->plan->compute->nr);
    int64_t down = gg_divide_up(s->rows, s->plan->row_block);
    int status = gg_parallel_for(n_threads, panels, PANELS_PER_TASK, pack_b_task, s);
    if (status)
        return status;
    divide_columns(s, n_threads);
    return gg_parallel_for(n_threads, down * s->tiles_across, 1, tile_task, s);
}

int gg_gemm(const gg_plan *plan, const gg_product *p, char *memory, int n_threads)
{
    gemm_step s = {.plan = plan, .product = p};
    s.packed_b = memory;
    s.wide = s.packed_b + plan->planes * packed_b_bytes(plan);
    s.packed_a = s.wide + plan->planes * wide_bytes(plan);
    for (s.column = 0; s.column < p->n; s.column += plan->column_block)
        for (s.row = 0; s.row < p->m; s.row += plan->row_slab)
            for (s.k0 = 0; s.k0 < p->k; s.k0 += GG_KC) {
                s.columns = gg_smaller(plan->column_block, p->n - s.column);
                s.rows = gg_smaller(plan->row_slab, p->m - s.row);
                s.k = gg_smaller(GG_KC, p->k - s.k0);
                int status = run_step(&s, n_threads);
                if (status)
                    return status;
            }
    return GG_SUCCESS;
}

int64_t gg_gemm_memory(const gg_plan *plan, int n_threads)
{
    int64_t bytes = packed_b_bytes(plan) + wide_bytes(plan) + n_threads * packed_a_bytes(plan);
    return gg_divide_up(plan->planes * bytes, 64) * 64;
}
