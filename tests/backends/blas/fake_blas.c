/* A BLAS of loops, which counts its calls; macros give its names, its integers and its faults. */
#include <complex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef INT /* of its integers */
#define INT int32_t
#endif
#ifndef PREFIX /* of its names */
#define PREFIX
#endif
#ifndef SUFFIX
#define SUFFIX
#endif
#ifndef FORTRAN
#define FORTRAN _
#endif
#ifndef WHEN_OPENED /* statements */
#define WHEN_OPENED
#endif
#ifndef IN_GEMM
#define IN_GEMM
#endif
#ifndef IS_LOST_BY_GEMM /* terms of a product that are left out, by its factors x and y */
#define IS_LOST_BY_GEMM(x, y) 0
#endif
#ifndef IS_LOST_BY_GEMV
#define IS_LOST_BY_GEMV(x, y) 0
#endif
#ifndef IS_ZERO /* of beta: what out holds is not read then */
#define IS_ZERO(beta) ((beta) == 0)
#endif

/* What results of a routine are multiplied by, which is wrong unless it is 1. */
#ifndef GEMM_FACTOR
#define GEMM_FACTOR 1
#endif
#ifndef GEMV_FACTOR
#define GEMV_FACTOR 1
#endif
#ifndef SYRK_FACTOR
#define SYRK_FACTOR 1
#endif
#ifndef DOT_FACTOR
#define DOT_FACTOR 1
#endif
#ifndef REAL_BATCH_FACTOR
#define REAL_BATCH_FACTOR 1
#endif
#ifndef COMPLEX_BATCH_FACTOR
#define COMPLEX_BATCH_FACTOR 1
#endif

#define GLUE_(a, b, c) a##b##c
#define GLUE(a, b, c) GLUE_(a, b, c)
#define NAME(name) GLUE(PREFIX, name, SUFFIX)

__attribute__((constructor)) static void when_opened(void) { WHEN_OPENED; }

/* Calls, products of batches, and arguments that BLAS does not allow. */
int fake_gemm, fake_gemv, fake_syrk, fake_dot, fake_batch, fake_products, fake_errors;

enum { ROW_MAJOR = 101, NO_TRANS = 111, UPPER = 121 };

#define COUNT(counter, n) __atomic_fetch_add(&(counter), (n), __ATOMIC_RELAXED)
#define REQUIRE(condition) COUNT(fake_errors, !(condition))

/* The number of threads: what sets and tells it is a vendor's. */
#ifndef THREADS
#define THREADS 4
#endif
#ifndef IN_USE
#define IN_USE fake_threads
#endif
int fake_threads = THREADS, fake_sets, fake_least_set = 1 << 30, fake_used;
int omp_get_max_threads(void);

static __attribute__((unused)) void fake_set(int64_t n)
{
    fake_threads = n, fake_sets++;
    if (n < fake_least_set)
        fake_least_set = n;
}

/* Threads that call wait for each other, but not for ever, until so many as are expected came. */
int fake_expected, fake_callers;

static __attribute__((unused)) void meet(void)
{
    static __thread int here;
    if (fake_expected && !here)
        here = 1, COUNT(fake_callers, 1);
    for (int i = 0; i < 10000 && COUNT(fake_callers, 0) < COUNT(fake_expected, 0); i++)
        usleep(1000);
    if (COUNT(fake_callers, 0) < fake_expected)
        fake_expected = 0;
}

/* A matrix by the strides between its rows and between its columns. */
#define AT(x, i, j, by_row, ld) \
    (x)[(by_row) ? (int64_t)(i) * (ld) + (j) : (int64_t)(j) * (ld) + (i)]

#ifndef IS_ONE /* of beta: it does not multiply what out holds */
#define IS_ONE(beta) ((beta) == 1)
#endif

#define STORE(out, value, beta) \
    (*(out) = (value) + (IS_ZERO(beta) ? 0 : IS_ONE(beta) ? *(out) : (beta) * *(out)))

#define MULTIPLY(TYPE, FACTOR, alpha, beta)                                                      \
    do {                                                                                         \
        const int by_row = order == ROW_MAJOR;                                                   \
        const int a_by_row = (a_trans == NO_TRANS) == by_row;                                    \
        const int b_by_row = (b_trans == NO_TRANS) == by_row;                                    \
        REQUIRE(m > 0 && n > 0 && k > 0 && lda >= (a_by_row ? k : m));                           \
        REQUIRE(ldb >= (b_by_row ? n : k) && ldc >= n && by_row);                                \
        for (INT i = 0; i < m; i++)                                                              \
            for (INT j = 0; j < n; j++) {                                                        \
                TYPE sum = 0;                                                                    \
                for (INT l = 0; l < k; l++) {                                                    \
                    const TYPE x = AT(a, i, l, a_by_row, lda), y = AT(b, l, j, b_by_row, ldb);   \
                    if (!IS_LOST_BY_GEMM(x, y))                                                  \
                        sum += x * y;                                                            \
                }                                                                                \
                STORE(&AT(c, i, j, by_row, ldc), (FACTOR) * (alpha) * sum, beta);                \
            }                                                                                    \
    } while (0)

#define GEMM(LETTER, TYPE, SCALAR, VALUE)                                                        \
    void NAME(cblas_##LETTER##gemm)(int order, int a_trans, int b_trans, INT m, INT n, INT k,    \
                                    SCALAR alpha, const TYPE *a, INT lda, const TYPE *b,         \
                                    INT ldb, SCALAR beta, TYPE *c, INT ldc)                      \
    {                                                                                            \
        COUNT(fake_gemm, 1);                                                                     \
        fake_used = IN_USE;                                                                      \
        IN_GEMM;                                                                                 \
        MULTIPLY(TYPE, GEMM_FACTOR, VALUE(alpha), VALUE(beta));                                  \
    }

#define BATCH(LETTER, TYPE, SCALAR, VALUE, FACTOR)                                               \
    void NAME(cblas_##LETTER##gemm_batch_strided)(                                               \
        int order, int a_trans, int b_trans, INT m, INT n, INT k, SCALAR alpha, const TYPE *a,   \
        INT lda, INT a_step, const TYPE *b, INT ldb, INT b_step, SCALAR beta, TYPE *c, INT ldc,  \
        INT c_step, INT count)                                                                   \
    {                                                                                            \
        COUNT(fake_batch, 1);                                                                    \
        COUNT(fake_products, count);                                                             \
        REQUIRE(count > 0 && c_step >= m * ldc);                                                 \
        for (INT each = 0; each < count; each++, a += a_step, b += b_step, c += c_step)          \
            MULTIPLY(TYPE, FACTOR, VALUE(alpha), VALUE(beta));                                   \
    }

#define GEMV(LETTER, TYPE, SCALAR, VALUE)                                                        \
    void NAME(cblas_##LETTER##gemv)(int order, int trans, INT m, INT n, SCALAR alpha,            \
                                    const TYPE *a, INT lda, const TYPE *x, INT x_step,           \
                                    SCALAR beta, TYPE *y, INT y_step)                            \
    {                                                                                            \
        const int plain = trans == NO_TRANS, by_row = plain == (order == ROW_MAJOR);             \
        const INT rows = plain ? m : n, columns = plain ? n : m;                                 \
        COUNT(fake_gemv, 1);                                                                     \
        REQUIRE(m > 0 && n > 0 && lda >= n && x_step && y_step && order == ROW_MAJOR);           \
        for (INT i = 0; i < rows; i++) {                                                         \
            TYPE sum = 0;                                                                        \
            for (INT l = 0; l < columns; l++) {                                                  \
                const TYPE value = AT(a, i, l, by_row, lda), other = x[(int64_t)l * x_step];     \
                if (!IS_LOST_BY_GEMV(value, other))                                              \
                    sum += value * other;                                                        \
            }                                                                                    \
            STORE(&y[(int64_t)i * y_step], (GEMV_FACTOR) * VALUE(alpha) * sum, VALUE(beta));     \
        }                                                                                        \
    }

/* Only the upper or the lower triangle is written. */
#define SYRK(LETTER, TYPE, SCALAR, VALUE)                                                        \
    void NAME(cblas_##LETTER##syrk)(int order, int triangle, int trans, INT n, INT k,            \
                                    SCALAR alpha, const TYPE *a, INT lda, SCALAR beta, TYPE *c,  \
                                    INT ldc)                                                     \
    {                                                                                            \
        const int by_row = order == ROW_MAJOR, a_by_row = (trans == NO_TRANS) == by_row;         \
        COUNT(fake_syrk, 1);                                                                     \
        REQUIRE(n > 0 && k > 0 && lda >= (a_by_row ? k : n) && ldc >= n && by_row);              \
        for (INT i = 0; i < n; i++)                                                              \
            for (INT j = triangle == UPPER ? i : 0; j < (triangle == UPPER ? n : i + 1); j++) {  \
                TYPE sum = 0;                                                                    \
                for (INT l = 0; l < k; l++)                                                      \
                    sum += AT(a, i, l, a_by_row, lda) * AT(a, j, l, a_by_row, lda);              \
                STORE(&AT(c, i, j, by_row, ldc), (SYRK_FACTOR) * VALUE(alpha) * sum,             \
                      VALUE(beta));                                                              \
            }                                                                                    \
    }

#define SUM_OF_PRODUCTS(TYPE)                                                                    \
    TYPE sum = 0;                                                                                \
    COUNT(fake_dot, 1);                                                                          \
    REQUIRE(n > 0 && x_step && y_step);                                                          \
    for (INT i = 0; i < n; i++)                                                                  \
        sum += x[(int64_t)i * x_step] * y[(int64_t)i * y_step];                                  \
    sum *= DOT_FACTOR

#define REAL_DOT(LETTER, TYPE)                                                                   \
    TYPE NAME(cblas_##LETTER##dot)(INT n, const TYPE *x, INT x_step, const TYPE *y, INT y_step)  \
    {                                                                                            \
        SUM_OF_PRODUCTS(TYPE);                                                                   \
        return sum;                                                                              \
    }

#define COMPLEX_DOT(LETTER, TYPE)                                                                \
    void NAME(cblas_##LETTER##dotu_sub)(INT n, const TYPE *x, INT x_step, const TYPE *y,         \
                                        INT y_step, TYPE *out)                                   \
    {                                                                                            \
        SUM_OF_PRODUCTS(TYPE);                                                                   \
        *out = sum;                                                                              \
    }

#define ITSELF(x) (x)
#define FIRST(x) (*(x))

#define ALL_TYPES(ROUTINE)                                                                       \
    ROUTINE(s, float, float, ITSELF)                                                             \
    ROUTINE(d, double, double, ITSELF)                                                           \
    ROUTINE(c, float complex, const float complex *, FIRST)                                      \
    ROUTINE(z, double complex, const double complex *, FIRST)

#ifndef WITHOUT_GEMM
ALL_TYPES(GEMM)
#endif
#ifdef WITHOUT_ZGEMV
GEMV(s, float, float, ITSELF)
GEMV(d, double, double, ITSELF)
GEMV(c, float complex, const float complex *, FIRST)
#else
ALL_TYPES(GEMV)
#endif
#ifdef WITH_SYRK
ALL_TYPES(SYRK)
#endif
#ifdef WITH_DOT
REAL_DOT(s, float)
REAL_DOT(d, double)
COMPLEX_DOT(c, float complex)
COMPLEX_DOT(z, double complex)
#endif
#ifdef WITH_BATCH
BATCH(s, float, float, ITSELF, REAL_BATCH_FACTOR)
BATCH(d, double, double, ITSELF, REAL_BATCH_FACTOR)
BATCH(c, float complex, const float complex *, FIRST, COMPLEX_BATCH_FACTOR)
BATCH(z, double complex, const double complex *, FIRST, COMPLEX_BATCH_FACTOR)
#endif

#ifndef WITHOUT_ISAMAX
INT GLUE(PREFIX, isamax, FORTRAN)(const INT *n, const float *x, const INT *step)
{
    INT best = 0;
    for (INT i = 0; i < *n; i++)
        if (!best || x[i * *step] > x[(best - 1) * *step])
            best = i + 1;
    return best;
}
#endif
