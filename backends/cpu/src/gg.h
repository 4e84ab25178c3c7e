/* What the kernels offer to Python, and the words they share. */
#ifndef GG_H
#define GG_H

#include <stdint.h>

enum {
    GG_SUCCESS = 0,
    GG_FAILED = 1,
    GG_ALLOC_FAILED = 2,
    GG_ABORTED = 3,
    GG_NO_ISA = -1 /* gg_select_isa has not been called */
};

/* Element types: ggml's numbers, then those that ggml does not have. */
enum {
    GG_F32 = 0,
    GG_F16 = 1,
    GG_Q4_0 = 2,
    GG_Q4_1 = 3,
    GG_Q8_0 = 8,
    GG_I8 = 24,
    GG_I16 = 25,
    GG_I32 = 26,
    GG_I64 = 27,
    GG_F64 = 28,
    GG_BF16 = 30,
    GG_U8 = 64,
    GG_U16,
    GG_U32,
    GG_U64,
    GG_C64,
    GG_C128,
    GG_TYPE_COUNT
};

/* Strides are in bytes everywhere; along a blocked axis they step from block to block. */

const char *gg_version(void);

/* Chooses the instruction set by name, or the best one for NULL. 0 when done, else the name is
 * unknown or this machine lacks it. */
int gg_select_isa(const char *name);
const char *gg_isa_name(void);

/* The i-th instruction set that this build and machine have, NULL after the last. */
const char *gg_usable_isa(int i);

/* out[m, n] = a[m, k] @ b[k, n]. The axis of an operand is the blocked one: -1 columns, -2 rows,
 * 0 none. */
int gg_matmul_2d(const void *a, int a_type, int a_axis, const void *b, int b_type, int b_axis,
                 void *out, int type, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col,
                 int64_t b_row, int64_t b_col, int64_t out_row, int n_threads);

/* The same over batches. parameters: m, n, k, out type, out_row, number of batch dimensions d;
 * for a then b: type, blocked axis, row stride, column stride; then d batch sizes, and d batch
 * strides of each of a, b and out. */
int gg_matmul(const void *a, const void *b, void *out, const int64_t *parameters, int n_threads);

/* out[i, j] = a[i] * b[j]. */
int gg_out_prod(int type, const void *a, const void *b, void *out, int64_t m, int64_t n,
                int64_t a_stride, int64_t b_stride, int64_t out_row, int n_threads);

/* Decodes rows to float32. parameters: type, number of outer dimensions d, blocks in a row,
 * source stride between blocks, out stride between elements; then d sizes, d source strides
 * and d out strides. */
int gg_to_float(const void *source, void *out, const int64_t *parameters, int n_threads);

/* Encodes n contiguous float32 values, whole blocks of them. */
int gg_from_float(int type, const float *source, void *out, int64_t n, int n_threads);

int64_t gg_block_size(int type);

/* What a job does; a job of another number fails. */
enum {
    GG_MATMUL = 1, /* parameters as of gg_matmul */
    GG_OUT_PROD,   /* parameters: type, m, n, a_stride, b_stride, out_row */
    GG_TO_FLOAT,   /* of a; parameters as of gg_to_float */
    GG_FROM_FLOAT  /* of a; parameters: type, n */
};

/* One step of a graph. Operands and result are given by their places among the addresses. */
typedef struct {
    int op;
    int a, b, out;
    const int64_t *parameters;
} gg_job;

/* Computes jobs[*done] and those that follow, and counts in *done. Returns when all n are done,
 * one has failed (it is not counted), or `limit` microseconds have gone by. Jobs whose result has
 * no address are passed over. */
int gg_graph_compute(const gg_job *jobs, int64_t n, void **addresses, int64_t limit, int n_threads,
                     int64_t *done);

/* While on, jobs stop before their next piece. */
void gg_set_abort(int on);

enum { GG_MAX_THREADS = 1024 };

/* A thread pool. One that is paused keeps its workers asleep until its next job, or until it is
 * resumed; other workers wait actively for a moment after each job. */
typedef struct gg_pool gg_pool;

/* For n_threads threads, the caller of a job among them; NULL where memory is short. */
gg_pool *gg_pool_new(int n_threads);

/* Ends the workers, and returns when they have. No thread uses the pool. */
void gg_pool_free(gg_pool *pool);

void gg_pool_pause(gg_pool *pool);
void gg_pool_resume(gg_pool *pool);
int gg_pool_is_paused(gg_pool *pool);

/* Has the calling thread use a pool, or the shared one for NULL; returns what it used before. */
gg_pool *gg_pool_use(gg_pool *pool);

/* Works on the items begin <= i < end; slot < n_threads tells the participants apart. */
typedef void (*gg_task)(void *arg, int slot, int64_t begin, int64_t end);

/* Calls task over 0..n in pieces of `chunk` items, on at most n_threads threads, the caller
 * among them. Returns GG_SUCCESS, or GG_ABORTED when the abort flag ended it early. */
int gg_parallel_for(int n_threads, int64_t n, int64_t chunk, gg_task task, void *arg);

#endif
