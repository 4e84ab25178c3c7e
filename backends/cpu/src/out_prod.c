/* Outer products of vectors: every element is one rounded multiplication, so this file is
 * compiled without contraction of a * b + c. */
#include <string.h>

#include "kernels.h"
#include "pool.h"
#include "workspace.h"

enum { PIECE = 256 };

static const double bytes_per_microsecond = 4e3;

/* out[j] = a * b[j]; elements may lie at any address. */
typedef void (*row_function)(const char *a, const char *b, char *out, int64_t n);

#define DEFINE_ROW(NAME, T)                                              \
    static void NAME(const char *a, const char *b, char *out, int64_t n) \
    {                                                                    \
        typedef T element __attribute__((aligned(1), may_alias));        \
        T factor = *(const element *)a;                                  \
        const element *x = (const element *)b;                           \
        element *y = (element *)out;                                     \
        for (int64_t j = 0; j < n; j++)                                  \
            y[j] = factor * x[j];                                        \
    }

#define DEFINE_COMPLEX_ROW(NAME, T)                                      \
    static void NAME(const char *a, const char *b, char *out, int64_t n) \
    {                                                                    \
        typedef T element __attribute__((aligned(1), may_alias));        \
        T re = ((const element *)a)[0], im = ((const element *)a)[1];    \
        const element *x = (const element *)b;                           \
        element *y = (element *)out;                                     \
        for (int64_t j = 0; j < 2 * n; j += 2) {                         \
            y[j] = re * x[j] - im * x[j + 1];                            \
            y[j + 1] = re * x[j + 1] + im * x[j];                        \
        }                                                                \
    }

DEFINE_ROW(row_f32, float)
DEFINE_ROW(row_f64, double)
DEFINE_ROW(row_u32, uint32_t)
DEFINE_ROW(row_u64, uint64_t)
DEFINE_COMPLEX_ROW(row_c64, float)
DEFINE_COMPLEX_ROW(row_c128, double)

static const row_function rows[2][GG_COMPUTE_COUNT] = {
    {[GG_AS_F32] = row_f32, [GG_AS_F64] = row_f64, [GG_AS_U32] = row_u32, [GG_AS_U64] = row_u64},
    {[GG_AS_F32] = row_c64, [GG_AS_F64] = row_c128},
};

typedef struct {
    const gg_isa *isa;
    row_function row;
    gg_store store; /* NULL where the products have the output's type */
    gg_run a;
    const char *b;
    char *out;
    int64_t n, out_row, size, out_size;
} job;

static void write_row(const job *job, const char *a, char *out)
{
    float products[PIECE]; /* of a type that is narrower in memory */
    if (!job->store) {
        job->row(a, job->b, out, job->n);
        return;
    }
    for (int64_t j = 0; j < job->n; j += PIECE) {
        int64_t n = job->n - j < PIECE ? job->n - j : PIECE;
        job->row(a, job->b + j * job->size, (char *)products, n);
        job->store(products, NULL, out + j * job->out_size, n);
    }
}

static void row_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const job *job = arg;
    char buffer[GG_FETCH_BYTES];
    (void)slot;
    for (int64_t i = begin; i < end; i++)
        write_row(job, job->store ? job->isa->fetch(&job->a, i, 1, buffer)
                                  : job->a.data + i * job->a.stride,
                  job->out + i * job->out_row);
}

/* b side by side in the compute type. */
static void copy_vector(const job *job, const gg_run *b, char *out)
{
    char buffer[GG_FETCH_BYTES];
    if (!job->store) {
        gg_gather(b->data, b->stride, (int)job->size, job->n, out);
        return;
    }
    for (int64_t j = 0; j < job->n; j += GG_FETCH) {
        int64_t n = job->n - j < GG_FETCH ? job->n - j : GG_FETCH;
        memcpy(out + j * job->size, job->isa->fetch(b, j, n, buffer), (size_t)(n * job->size));
    }
}

int gg_out_prod(int type, const void *a, const void *b, void *out, int64_t m, int64_t n,
                int64_t a_stride, int64_t b_stride, int64_t out_row, int n_threads)
{
    const gg_isa *isa = gg_current_isa();
    const gg_traits *traits = gg_type(type);
    if (!isa)
        return GG_NO_ISA;
    if (!traits || traits->block_size != 1)
        return GG_FAILED;
    if (!m || !n)
        return GG_SUCCESS;
    int complex = traits->planes == 2;
    job job = {.isa = isa,
               .row = rows[complex][traits->compute],
               .store = complex ? NULL : isa->store[type],
               .a = {a, a_stride, type},
               .b = b,
               .out = out,
               .n = n,
               .out_row = out_row,
               .size = isa->compute[traits->compute].size * traits->planes,
               .out_size = traits->block_bytes};
    gg_run vector = {b, b_stride, type};
    char *copy = NULL;
    if (job.store || b_stride != job.size) {
        copy = gg_workspace_take((size_t)(n * job.size));
        if (!copy)
            return GG_ALLOC_FAILED;
        copy_vector(&job, &vector, copy);
        job.b = copy;
    }
    double work = (double)m * (double)n * traits->block_bytes / bytes_per_microsecond;
    int64_t chunk = 1 + (64 << 10) / (n * traits->block_bytes);
    int status = gg_parallel_for(gg_useful_threads(n_threads, work), m, chunk, row_task, &job);
    if (copy)
        gg_workspace_give(copy);
    return status;
}
