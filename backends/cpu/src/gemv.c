/* A matrix times a few vectors: the matrix is read once, as it lies. */
#include <string.h>

#include "pool.h"
#include "product.h"

typedef struct {
    const gg_plan *plan;
    const gg_side *matrix;
    const char *x;
    char *out;
    int64_t k, rows, x_step, row_step, lane_step;
} gemv_job;

static void store_vector(const gemv_job *job, const char *sums, char *out, int64_t n)
{
    char rounded[GG_LANES * 2];
    if (job->plan->store && job->lane_step == job->plan->out_bytes) {
        job->plan->store(sums, NULL, out, n);
        return;
    }
    if (job->plan->store) {
        job->plan->store(sums, NULL, rounded, n);
        sums = rounded;
    }
    gg_scatter(sums, job->plan->out_bytes, n, out, job->lane_step);
}

static void gemv_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const gemv_job *job = arg;
    const gg_compute *compute = job->plan->compute;
    _Alignas(64) char sums[GG_GEMV_ROWS * GG_LANES * 8];
    (void)slot;
    for (int64_t row = 0; row < job->rows; row += GG_GEMV_ROWS) {
        int rows = (int)gg_smaller(GG_GEMV_ROWS, job->rows - row);
        int64_t n = end - begin;
        compute->gemv(job->matrix, begin, n, job->k, job->x + row * job->x_step, job->x_step, rows,
                      sums, GG_LANES);
        for (int r = 0; r < rows; r++)
            store_vector(job, sums + r * GG_LANES * compute->size,
                         job->out + (row + r) * job->row_step + begin * job->lane_step, n);
    }
}

/* Copies lanes x k elements side by side in the compute type. */
static void copy_dense(const gg_plan *plan, const gg_side *side, int64_t lanes, int64_t k, char *out)
{
    char buffer[GG_FETCH_BYTES];
    int64_t size = plan->compute->size;
    for (int64_t lane = 0; lane < lanes; lane++) {
        gg_run run = {side->data + lane * side->lane_stride, side->k_stride, side->type};
        for (int64_t p = 0; p < k; p += GG_FETCH) {
            int64_t n = gg_smaller(k - p, GG_FETCH);
            memcpy(out + (lane * k + p) * size, plan->isa->fetch(&run, p, n, buffer),
                   (size_t)(n * size));
        }
    }
}

int gg_gemv(const gg_plan *plan, const gg_product *p, char *memory, int n_threads)
{
    int few_columns = p->n < p->m;
    const gg_side *matrix = few_columns ? &p->a : &p->b, *vectors = few_columns ? &p->b : &p->a;
    int64_t lanes = few_columns ? p->m : p->n;
    gemv_job job = {.plan = plan, .matrix = matrix, .out = p->out, .k = p->k};
    job.rows = few_columns ? p->n : p->m;
    job.row_step = few_columns ? plan->out_bytes : p->out_row;
    job.lane_step = few_columns ? p->out_row : plan->out_bytes;
    job.x = vectors->data;
    job.x_step = vectors->lane_stride;
    if (plan->isa->decode[vectors->type] || vectors->k_stride != plan->compute->size) {
        copy_dense(plan, vectors, job.rows, p->k, memory);
        job.x = memory;
        job.x_step = p->k * plan->compute->size;
    }
    int along_k = matrix->k_stride == gg_type(matrix->type)->block_bytes;
    int64_t share = gg_larger(4, gg_smaller(GG_LANES, (1 << 16) / p->k / 4 * 4));
    return gg_parallel_for(n_threads, lanes, along_k ? share : GG_LANES, gemv_task, &job);
}

int64_t gg_gemv_memory(const gg_plan *plan, const gg_product *p)
{
    int64_t bytes = gg_smaller(p->m, p->n) * p->k * plan->compute->size;
    return gg_divide_up(bytes, 64) * 64;
}
