/* Calls into CBLAS libraries that are found at run time. */
#ifndef SHIM_H
#define SHIM_H

#include <stdint.h>

/* SHIM_COPY_A and SHIM_COPY_B may come together: nothing was computed, because BLAS cannot read
 * these operands as they lie in memory. SHIM_EMPTY: nothing was computed, because a length is 0. */
enum { SHIM_SUCCESS = 0, SHIM_FAILED = 1, SHIM_COPY_A = 4, SHIM_COPY_B = 8, SHIM_EMPTY = 16 };

/* float, double and their complex pairs; the order of the tables below. */
enum { SHIM_S, SHIM_D, SHIM_C, SHIM_Z, SHIM_TYPES };

typedef struct {
    int ilp64;               /* its integers have 64 bits, else 32 */
    void *gemm[4];           /* cblas_?gemm */
    void *gemv[4];           /* cblas_?gemv */
    void *set_threads;       /* void (int) */
    void *get_threads;       /* int (void) */
    int threads;             /* what was last asked for, 0 at first */
} shim_vendor;

/* The version of ggarray that this was compiled from. */
const char *shim_version(void);

/* Opens a library by its absolute path; NULL on failure, and shim_error tells why. */
void *shim_open(const char *path);
const char *shim_error(void);

/* A symbol of a library, or NULL. */
void *shim_symbol(void *library, const char *name);

/* Tells from the Fortran routine isamax how wide the library's integers are: 1 for 64 bits. */
int shim_is_ilp64(void *isamax);

/* Touches the working memory that OpenBLAS gives out first, by its own routines for that: its
 * kernels prefetch beyond what they have packed, and where nobody has written yet every such
 * prefetch walks the page tables. Products of a few hundred rows ran 3.6 times slower so. */
void shim_touch_memory(void *blas_memory_alloc, void *blas_memory_free);

/* What a product is multiplied by, and whether it is added to what out holds; else the content of
 * out does not matter. The imaginary part is that of complex types. */
typedef struct {
    double alpha[2];
    int add;
} shim_epilogue;

/* out[..., m, n] = a[..., m, k] @ b[..., k, n]; out's last axis has unit stride. The strides are in
 * bytes. batch: dims sizes, then dims strides of each of a, b and out. epilogue may be NULL: alpha
 * is 1, and nothing is added. Where m or n is 1, alpha has to be 1: some libraries multiply the
 * vector by it first, which may overflow or underflow where the product does not. The library uses
 * n_threads at most; its setting is touched only if n_threads is not what was asked for last time,
 * or is exceeded, and the first time only to lower it. */
int shim_matmul(shim_vendor *vendor, int n_threads, int type, const void *a, const void *b,
                void *out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col,
                int64_t b_row, int64_t b_col, int64_t out_row, int dims, const int64_t *batch,
                const shim_epilogue *epilogue);

#endif
