/* A BLAS of loops, and what may be wrong with one; the test compiles it, once for each fault. */
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef WHEN_OPENED
#define WHEN_OPENED
#endif
#ifndef IN_PRODUCTS
#define IN_PRODUCTS
#endif
#ifndef SCALE
#define SCALE 1
#endif

__attribute__((constructor)) static void when_opened(void) { WHEN_OPENED; }

enum { ROW_MAJOR = 101, NO_TRANS = 111 };

/* A matrix by the strides between its rows and between its columns. */
#define AT(x, i, j, by_row, ld) \
    (x)[(by_row) ? (long)(i) * (ld) + (j) : (long)(j) * (ld) + (i)]

#define GEMM(LETTER, TYPE, SCALAR, VALUE)                                                        \
    void cblas_##LETTER##gemm(int order, int a_trans, int b_trans, int m, int n, int k,          \
                              SCALAR alpha, const TYPE *a, int lda, const TYPE *b, int ldb,      \
                              SCALAR beta, TYPE *c, int ldc)                                     \
    {                                                                                            \
        const int by_row = order == ROW_MAJOR;                                                   \
        const int a_by_row = (a_trans == NO_TRANS) == by_row;                                    \
        const int b_by_row = (b_trans == NO_TRANS) == by_row;                                    \
        IN_PRODUCTS;                                                                             \
        for (int i = 0; i < m; i++)                                                              \
            for (int j = 0; j < n; j++) {                                                        \
                TYPE sum = 0, *out = &AT(c, i, j, by_row, ldc);                                  \
                for (int l = 0; l < k; l++)                                                      \
                    sum += AT(a, i, l, a_by_row, lda) * AT(b, l, j, b_by_row, ldb);              \
                *out = SCALE * VALUE(alpha) * sum + (VALUE(beta) == 0 ? 0 : VALUE(beta) * *out); \
            }                                                                                    \
    }

#define GEMV(LETTER, TYPE, SCALAR, VALUE)                                                        \
    void cblas_##LETTER##gemv(int order, int trans, int m, int n, SCALAR alpha, const TYPE *a,   \
                              int lda, const TYPE *x, int x_step, SCALAR beta, TYPE *y,          \
                              int y_step)                                                        \
    {                                                                                            \
        const int plain = trans == NO_TRANS, rows = plain ? m : n, columns = plain ? n : m;      \
        for (int i = 0; i < rows; i++) {                                                         \
            TYPE sum = 0;                                                                        \
            for (int l = 0; l < columns; l++)                                                    \
                sum += AT(a, i, l, plain == (order == ROW_MAJOR), lda) *                         \
                       x[(long)(x_step < 0 ? l - columns + 1 : l) * x_step];                     \
            TYPE *out = &y[(long)(y_step < 0 ? i - rows + 1 : i) * y_step];                      \
            *out = VALUE(alpha) * sum + (VALUE(beta) == 0 ? 0 : VALUE(beta) * *out);             \
        }                                                                                        \
    }

#define ITSELF(x) (x)
#define FIRST(x) (*(x))

#ifndef WITHOUT_GEMM
GEMM(s, float, float, ITSELF)
GEMM(d, double, double, ITSELF)
GEMM(c, float complex, const float complex *, FIRST)
GEMM(z, double complex, const double complex *, FIRST)
#endif
#ifndef WITHOUT_GEMV
GEMV(s, float, float, ITSELF)
GEMV(d, double, double, ITSELF)
GEMV(c, float complex, const float complex *, FIRST)
GEMV(z, double complex, const double complex *, FIRST)
#endif
