/* Products: how they are divided into packed blocks, tasks and batches. The way a result is
 * summed depends on its shape only, never on the number of threads: k is not split over them. */
#include <string.h>

#include "pool.h"
#include "product.h"
#include "workspace.h"

enum {
    ROW_BLOCK = 192,      /* rows of a packed at a time: 192 KiB of float32, for the L2 cache */
    COLUMN_BLOCK = 2048,  /* columns of b packed at a time: 2 MiB, for the L3 cache */
    ROW_SLAB = 1024,      /* rows of results kept in a wider type than the output's */
    FEW_VECTORS = 16,     /* for which packing the matrix costs more than it saves */
    SMALL_WORK = 1 << 16, /* multiply-adds below which that does not matter */
    STACK_BYTES = 48 << 10
};

/* Rough multiply-adds in a microsecond, to judge how many threads are worth waking. */
static const double gemm_speed[GG_COMPUTE_COUNT] = {
    [GG_AS_F32] = 2e4, [GG_AS_F64] = 1e4, [GG_AS_U32] = 5e3, [GG_AS_U64] = 1.5e3};
static const double gemv_speed = 3e3;

static gg_plan make_plan(const gg_isa *isa, const gg_product *p)
{
    const gg_traits *traits = gg_type(p->out_type);
    const gg_compute *compute = &isa->compute[traits->compute];
    gg_store store = isa->store[p->out_type];
    double work = (double)p->m * (double)p->n * (double)p->k;
    int64_t few = gg_smaller(p->m, p->n);
    int is_gemv = traits->planes == 2 ? gg_complex_gemv_fits(p)
                                      : few == 1 || (few <= FEW_VECTORS && work > SMALL_WORK);
    double speed = is_gemv ? gemv_speed : gemm_speed[traits->compute];
    return (gg_plan){
        .isa = isa,
        .compute = compute,
        .store = store,
        .planes = traits->planes,
        .out_bytes = traits->block_bytes,
        .is_gemv = is_gemv,
        .row_block = gg_even_block(p->m, ROW_BLOCK / compute->mr * compute->mr, compute->mr),
        .column_block = gg_even_block(p->n, COLUMN_BLOCK, compute->nr),
        .row_slab = store ? gg_smaller(p->m, ROW_SLAB) : p->m,
        .k_block = gg_smaller(p->k, GG_KC),
        .microseconds = work * traits->planes * traits->planes / speed,
    };
}

static int64_t memory_for(const gg_plan *plan, const gg_product *p, int n_threads)
{
    if (!plan->is_gemv)
        return gg_gemm_memory(plan, n_threads);
    return plan->planes == 2 ? gg_complex_gemv_memory(plan, p) : gg_gemv_memory(plan, p);
}

static int run_product(const gg_plan *plan, const gg_product *p, char *memory, int n_threads)
{
    if (!plan->is_gemv)
        return gg_gemm(plan, p, memory, n_threads);
    return plan->planes == 2 ? gg_complex_gemv(plan, p, memory, n_threads)
                             : gg_gemv(plan, p, memory, n_threads);
}

typedef struct {
    gg_product first;
    int dims;
    int64_t count;
    const int64_t *sizes, *a, *b, *out; /* of each batch dimension; strides in bytes */
} batch;

typedef struct {
    const gg_plan *plan;
    const batch *batch;
    char *memory;
    int64_t memory_each;
} batch_job;

static gg_product product_at(const batch *batch, int64_t index)
{
    gg_product p = batch->first;
    for (int d = batch->dims - 1; d >= 0; d--) {
        int64_t i = index % batch->sizes[d];
        index /= batch->sizes[d];
        p.a.data += i * batch->a[d];
        p.b.data += i * batch->b[d];
        p.out += i * batch->out[d];
    }
    return p;
}

static void batch_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const batch_job *job = arg;
    for (int64_t i = begin; i < end; i++) {
        gg_product p = product_at(job->batch, i);
        run_product(job->plan, &p, job->memory + slot * job->memory_each, 1);
    }
}

/* Many products: each on one thread. Few: one after the other on all threads. */
static int run_batch(const gg_plan *plan, const batch *batch, char *memory, int n_threads,
                     int share_products)
{
    batch_job job = {plan, batch, memory, memory_for(plan, &batch->first, 1)};
    if (share_products)
        return gg_parallel_for(n_threads, batch->count,
                               gg_larger(1, batch->count / (8 * n_threads)), batch_task, &job);
    for (int64_t i = 0; i < batch->count; i++) {
        gg_product p = product_at(batch, i);
        int status = run_product(plan, &p, memory, n_threads);
        if (status)
            return status;
    }
    return GG_SUCCESS;
}

static int run_in_memory(const gg_plan *plan, const batch *batch, int n_threads)
{
    _Alignas(64) char stack[STACK_BYTES];
    int threads = gg_useful_threads(n_threads, plan->microseconds * (double)batch->count);
    int share_products = batch->count >= 2 * threads && batch->count > 1;
    int64_t each = memory_for(plan, &batch->first, share_products ? 1 : threads);
    int64_t size = share_products ? each * threads : each;
    if (size <= STACK_BYTES)
        return run_batch(plan, batch, stack, threads, share_products);
    char *memory = gg_workspace_take((size_t)size);
    if (!memory)
        return GG_ALLOC_FAILED;
    int status = run_batch(plan, batch, memory, threads, share_products);
    gg_workspace_give(memory);
    return status;
}

static void clear_product(const gg_product *p)
{
    size_t bytes = (size_t)(p->n * gg_type(p->out_type)->block_bytes);
    for (int64_t i = 0; i < p->m; i++)
        memset(p->out + i * p->out_row, 0, bytes);
}

static int compute_batch(const batch *batch, int n_threads)
{
    const gg_isa *isa = gg_current_isa();
    const gg_product *p = &batch->first;
    if (!isa)
        return GG_NO_ISA;
    if (!batch->count || !p->m || !p->n)
        return GG_SUCCESS;
    if (p->k) {
        gg_plan plan = make_plan(isa, p);
        return run_in_memory(&plan, batch, n_threads < 1 ? 1 : n_threads);
    }
    for (int64_t i = 0; i < batch->count; i++) {
        gg_product empty = product_at(batch, i);
        clear_product(&empty);
    }
    return GG_SUCCESS;
}

/* Rows of a whose product with the same b is asked for are one taller a. */
static void fold_into_rows(batch *batch)
{
    gg_product *p = &batch->first;
    while (batch->dims > 0) {
        int d = batch->dims - 1;
        int even = p->m == 1 || (batch->a[d] == p->m * p->a.lane_stride &&
                                 batch->out[d] == p->m * p->out_row);
        if (batch->sizes[d] != 1) {
            if (batch->b[d] || p->a.blocked == GG_BLOCKED_LANES || !even)
                return;
            if (p->m == 1) {
                p->a.lane_stride = batch->a[d];
                p->out_row = batch->out[d];
            }
            p->m *= batch->sizes[d];
            batch->count /= batch->sizes[d];
        }
        batch->dims--;
    }
}

/* Axes are counted from the end: -1 columns, -2 rows; 0 for none. */
static int blocked_axis(int64_t axis, int64_t k_axis)
{
    return !axis ? GG_PLAIN : axis == k_axis ? GG_BLOCKED_K : GG_BLOCKED_LANES;
}

static int computes_as(int64_t operand, int64_t out)
{
    const gg_traits *x = gg_type(operand), *y = gg_type(out);
    return x && y && x->compute == y->compute && x->planes == y->planes && y->block_size == 1;
}

int gg_matmul_2d(const void *a, int a_type, int a_axis, const void *b, int b_type, int b_axis,
                 void *out, int type, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col,
                 int64_t b_row, int64_t b_col, int64_t out_row, int n_threads)
{
    if (!computes_as(a_type, type) || !computes_as(b_type, type))
        return GG_FAILED;
    batch single = {.first = {{a, a_row, a_col, a_type, blocked_axis(a_axis, -1)},
                              {b, b_col, b_row, b_type, blocked_axis(b_axis, -2)},
                              out, out_row, m, n, k, type},
                    .count = 1};
    return compute_batch(&single, n_threads);
}

int gg_matmul(const void *a, const void *b, void *out, const int64_t *parameters, int n_threads)
{
    const int64_t *head = parameters, *left = head + 6, *right = left + 4, *rest = right + 4;
    int64_t dims = head[5];
    if (!computes_as(left[0], head[3]) || !computes_as(right[0], head[3]))
        return GG_FAILED;
    batch batch = {
        .first = {{a, left[2], left[3], (int)left[0], blocked_axis(left[1], -1)},
                  {b, right[3], right[2], (int)right[0], blocked_axis(right[1], -2)},
                  out, head[4], head[0], head[1], head[2], (int)head[3]},
        .dims = (int)dims,
        .count = 1,
        .sizes = rest,
        .a = rest + dims,
        .b = rest + 2 * dims,
        .out = rest + 3 * dims,
    };
    for (int d = 0; d < batch.dims; d++)
        batch.count *= batch.sizes[d];
    if (batch.count)
        fold_into_rows(&batch);
    return compute_batch(&batch, n_threads);
}
