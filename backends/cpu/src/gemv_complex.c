/* A complex matrix times one vector, as two real vectors times the real matrix that lies in the
 * same memory: the parts of a complex element are neighbours along the contiguous axis. */
#include <string.h>

#include "pool.h"
#include "product.h"

typedef struct {
    const gg_plan *plan;
    gg_side real; /* twice as long along the contiguous axis */
    const char *x;
    char *out;
    int64_t k, x_step, lane_step;
    int along_k;
} complex_job;

/* Along k: (re, -im) and (im, re) pairs, whose dot products are the parts of the result. Else: the
 * parts of x, in two rows. */
#define DEFINE_FOR(T)                                                                         \
    static void split_##T(const char *x, int64_t stride, int64_t k, int along_k, T *rows)     \
    {                                                                                         \
        for (int64_t p = 0; p < k; p++) {                                                     \
            T parts[2];                                                                       \
            memcpy(parts, x + p * stride, sizeof parts);                                      \
            if (!along_k) {                                                                   \
                rows[p] = parts[0];                                                           \
                rows[k + p] = parts[1];                                                       \
                continue;                                                                     \
            }                                                                                 \
            rows[2 * p] = rows[2 * k + 2 * p + 1] = parts[0];                                 \
            rows[2 * p + 1] = -parts[1];                                                      \
            rows[2 * k + 2 * p] = parts[1];                                                   \
        }                                                                                     \
    }                                                                                         \
    /* by_re, by_im: interleaved parts of the matrix times the parts of x. */                 \
    static void combine_##T(const T *by_re, const T *by_im, int64_t n, T *re, T *im)          \
    {                                                                                         \
        for (int64_t j = 0; j < n; j++) {                                                     \
            re[j] = by_re[2 * j] - by_im[2 * j + 1];                                          \
            im[j] = by_re[2 * j + 1] + by_im[2 * j];                                          \
        }                                                                                     \
    }

DEFINE_FOR(float)
DEFINE_FOR(double)

static void complex_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const complex_job *job = arg;
    const gg_compute *compute = job->plan->compute;
    _Alignas(64) char sums[2 * GG_LANES * 8], parts[GG_LANES * 8], results[GG_LANES / 2 * 16];
    int64_t n = end - begin, row = GG_LANES * compute->size, half = row / 2;
    const char *re = sums, *im = sums + row;
    (void)slot;
    if (job->along_k) {
        compute->gemv(&job->real, begin, n, 2 * job->k, job->x, job->x_step, 2, sums, GG_LANES);
    } else {
        compute->gemv(&job->real, 2 * begin, 2 * n, job->k, job->x, job->x_step, 2, sums,
                      GG_LANES);
        if (compute->size == sizeof(float))
            combine_float((const float *)re, (const float *)im, n, (float *)parts,
                          (float *)(parts + half));
        else
            combine_double((const double *)re, (const double *)im, n, (double *)parts,
                           (double *)(parts + half));
        re = parts;
        im = parts + half;
    }
    job->plan->store(re, im, results, n);
    gg_scatter(results, job->plan->out_bytes, n, job->out + begin * job->lane_step,
               job->lane_step);
}

static const gg_side *matrix_of(const gg_product *p)
{
    return p->n < p->m ? &p->a : &p->b;
}

int gg_complex_gemv_fits(const gg_product *p)
{
    const gg_side *matrix = matrix_of(p);
    int64_t bytes = gg_type(p->out_type)->block_bytes;
    return gg_smaller(p->m, p->n) == 1 &&
           (matrix->k_stride == bytes || matrix->lane_stride == bytes);
}

int64_t gg_complex_gemv_memory(const gg_plan *plan, const gg_product *p)
{
    return gg_divide_up(4 * p->k * plan->compute->size, 64) * 64;
}

int gg_complex_gemv(const gg_plan *plan, const gg_product *p, char *memory, int n_threads)
{
    int one_column = p->n < p->m, along_k = matrix_of(p)->k_stride == plan->out_bytes;
    const gg_side *vector = one_column ? &p->b : &p->a;
    int64_t lanes = one_column ? p->m : p->n, size = plan->compute->size;
    complex_job job = {plan, *matrix_of(p), memory, p->out, p->k, 0, 0, along_k};
    job.real.type = p->out_type == GG_C64 ? GG_F32 : GG_F64;
    *(along_k ? &job.real.k_stride : &job.real.lane_stride) = size;
    job.x_step = (along_k ? 2 : 1) * p->k * size;
    job.lane_step = one_column ? p->out_row : plan->out_bytes;
    if (size == sizeof(float))
        split_float(vector->data, vector->k_stride, p->k, along_k, (float *)memory);
    else
        split_double(vector->data, vector->k_stride, p->k, along_k, (double *)memory);
    int64_t share = gg_larger(4, gg_smaller(GG_LANES / 2, (1 << 15) / p->k / 4 * 4));
    return gg_parallel_for(n_threads, lanes, along_k ? share : GG_LANES / 2, complex_task, &job);
}
