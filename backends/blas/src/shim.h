/* Calls into CBLAS libraries that are found at run time. */
#ifndef SHIM_H
#define SHIM_H

#include <stdint.h>

/* SHIM_COPY_A and SHIM_COPY_B may come together: nothing was computed, because BLAS cannot read
 * these operands as they lie in memory. SHIM_EMPTY: nothing was computed, because a length is 0. */
enum {
    SHIM_SUCCESS = 0,
    SHIM_FAILED = 1,
    SHIM_ABORTED = 3,
    SHIM_COPY_A = 4,
    SHIM_COPY_B = 8,
    SHIM_EMPTY = 16
};

/* float, double and their complex pairs; the order of the tables below. */
enum { SHIM_S, SHIM_D, SHIM_C, SHIM_Z, SHIM_TYPES };

/* How long products took lately: on several threads, on one, and when to try the other again. */
typedef struct {
    double together, alone, next_trial;
} shim_pace;

/* A library: its routines by type, NULL where it has none (gemm and gemv are always there). */
typedef struct {
    int ilp64;                   /* its integers have 64 bits, else 32 */
    void *gemm[4];               /* cblas_?gemm */
    void *gemv[4];               /* cblas_?gemv */
    void *dot[4];                /* cblas_?dot, cblas_?dotu_sub */
    void *syrk[4];               /* cblas_?syrk */
    void *gemm_batch_strided[4]; /* cblas_?gemm_batch_strided */
    void *set_threads;           /* void (int), or NULL if the number cannot be set */
    void *get_threads;           /* int (void) */
    int wide_threads;            /* set_threads takes 64 bits */
    int most_threads;            /* it is to use, whatever it would */
    void *parallel_for;          /* gg_parallel_for, where several threads may call the library */
    double seconds;              /* of a multiply-add of floats on one thread, at best */
    shim_pace pace[4][64];       /* by type, and by the binary logarithm of multiply-adds */
} shim_vendor;

/* The version of ggarray that this was compiled from. */
const char *shim_version(void);

/* Opens a library by its absolute path; NULL on failure, and shim_error tells why. With `deep`
 * its own symbols come before those of libraries that were loaded earlier: MKL makes its sgemm_
 * known to all, and others would run it instead of their own. */
void *shim_open(const char *path, int deep);
const char *shim_error(void);

/* A symbol of a library or of those that it depends on, or NULL; the file it comes from. */
void *shim_symbol(void *library, const char *name);
const char *shim_file_of(const void *symbol);

/* Tells from the Fortran routine isamax how wide the library's integers are: 1 for 64 bits. */
int shim_is_ilp64(void *isamax);

/* Touches the working memory that OpenBLAS gives out first, by its own routines for that: its
 * kernels prefetch beyond what they have packed, and where nobody has written yet every such
 * prefetch walks the page tables. Products of a few hundred rows ran 3.6 times slower so. */
void shim_touch_memory(void *blas_memory_alloc, void *blas_memory_free);

/* What shim_check tries: the routines that shim_matmul would choose. */
enum { SHIM_GEMM, SHIM_GEMV, SHIM_DOT, SHIM_SYRK, SHIM_BATCH, SHIM_ROUTINES };

/* What it finds, together: products of small whole numbers are wrong; zero times NaN is not NaN,
 * or what the result held before matters. */
enum { SHIM_RIGHT = 0, SHIM_WRONG = 1, SHIM_LOSES_NAN = 2 };
int shim_check(shim_vendor *vendor, int routine, int type);

/* Whether adding to complex numbers, of which one part is infinite, leaves the other part. */
int shim_keeps_parts(shim_vendor *vendor, int type);

/* Seconds that a product of n x n matrices of type SHIM_S takes, at best; below 0 without memory. */
double shim_seconds(shim_vendor *vendor, int n_threads, int64_t n);

/* What a product is multiplied by, and whether it is added to what out holds; else the content of
 * out does not matter. The imaginary part is that of complex types. */
typedef struct {
    double alpha[2];
    int add;
} shim_epilogue;

/* out[..., m, n] = a[..., m, k] @ b[..., k, n]; out's last axis has unit stride. The strides are in
 * bytes. batch: dims sizes, then dims strides of each of a, b and out. epilogue may be NULL: alpha
 * is 1, and nothing is added. Where m or n is 1, alpha has to be 1: libraries multiply the
 * vector by it first, which may overflow or underflow where the product does not; and so do some
 * with matrices. The library uses
 * n_threads at most, and fewer if it is set so, the product is small, or the machine is so busy
 * that one is faster; its setting is lowered for the call at most. One call at a time. */
int shim_matmul(shim_vendor *vendor, int n_threads, int type, const void *a, const void *b,
                void *out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col,
                int64_t b_row, int64_t b_col, int64_t out_row, int dims, const int64_t *batch,
                const shim_epilogue *epilogue);

#endif
