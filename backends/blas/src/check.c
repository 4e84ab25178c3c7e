/* Tries what a library computes, against loops that compute the same. */
#include <math.h>
#include <stdlib.h>

#include "product.h"

/* A complex number; the imaginary part is 0 in the real types. */
typedef struct {
    double re, im;
} value;

static value get(int type, const void *at, int64_t i)
{
    switch (type) {
    case SHIM_S:
        return (value){((const float *)at)[i], 0};
    case SHIM_D:
        return (value){((const double *)at)[i], 0};
    case SHIM_C:
        return (value){((const float *)at)[2 * i], ((const float *)at)[2 * i + 1]};
    default:
        return (value){((const double *)at)[2 * i], ((const double *)at)[2 * i + 1]};
    }
}

static void set(int type, void *at, int64_t i, value x)
{
    switch (type) {
    case SHIM_S:
        ((float *)at)[i] = (float)x.re;
        break;
    case SHIM_D:
        ((double *)at)[i] = x.re;
        break;
    case SHIM_C:
        ((float *)at)[2 * i] = (float)x.re;
        ((float *)at)[2 * i + 1] = (float)x.im;
        break;
    default:
        ((double *)at)[2 * i] = x.re;
        ((double *)at)[2 * i + 1] = x.im;
    }
}

/* What operands hold; out holds NaN before. */
typedef enum { NUMBERS, ZERO, NANS } content;

static void fill(int type, void *at, int64_t n, content what)
{
    const int complex = type == SHIM_C || type == SHIM_Z;
    for (int64_t i = 0; i < n; i++) {
        value x = {0, 0};
        if (what == NUMBERS)
            x = (value){(double)(i % 7 - 3), complex ? (double)(i % 5 - 2) : 0};
        else if (what == NANS)
            x.re = NAN;
        set(type, at, i, x);
    }
}

typedef struct {
    int64_t m, n, k, count;
    int gram; /* b is a transposed */
} shape;

/* By routine. Gram matrices are products of their own where they are large. */
static const shape shapes[SHIM_ROUTINES][2] = {
    [SHIM_GEMM] = {{8, 9, 10, 1, 0}, {3, 2, 5, 1, 0}},
    [SHIM_GEMV] = {{8, 1, 10, 1, 0}, {1, 9, 10, 1, 0}},
    [SHIM_DOT] = {{1, 1, 40, 1, 0}, {1, 1, 3, 1, 0}},
    [SHIM_SYRK] = {{GRAM_ROWS, GRAM_ROWS, 2, 1, 1}, {GRAM_ROWS, GRAM_ROWS, 1, 1, 1}},
    [SHIM_BATCH] = {{6, 7, 8, BATCH_COUNT, 0}, {4, 4, 4, 2 * BATCH_COUNT, 0}},
};

/* Whether out[m, n] is a @ b, both given by strides in elements. */
static int is_product(int type, const shape *s, const void *a, int64_t a_row, int64_t a_col,
                      const void *b, int64_t b_row, int64_t b_col, int64_t place, const void *out)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            value sum = {0, 0};
            for (int64_t l = 0; l < s->k; l++) {
                const value x = get(type, a, place * s->m * s->k + i * a_row + l * a_col);
                const value y = get(type, b, place * s->k * s->n + l * b_row + j * b_col);
                sum.re += x.re * y.re - x.im * y.im;
                sum.im += x.re * y.im + x.im * y.re;
            }
            const value got = get(type, out, (place * s->m + i) * s->n + j);
            const int both_nan = isnan(sum.re) && isnan(got.re);
            if (!both_nan && !(sum.re == got.re && sum.im == got.im))
                return 0;
        }
    return 1;
}

/* Computes one product into memory full of NaN; whether it is right. */
static int computes(shim_vendor *vendor, int type, const shape *s, content left, content right,
                    int a_transposed, int b_transposed, void *a, void *b, void *out)
{
    const int64_t size = item_size[type];
    const int64_t a_row = a_transposed ? 1 : s->k, a_col = a_transposed ? s->m : 1;
    const int64_t b_row = s->gram ? a_col : b_transposed ? 1 : s->n;
    const int64_t b_col = s->gram ? a_row : b_transposed ? s->k : 1;
    const int64_t batch[] = {s->count, s->m * s->k * size, s->k * s->n * size,
                             s->m * s->n * size};
    fill(type, a, s->count * s->m * s->k, left);
    fill(type, b, s->count * s->k * s->n, right);
    fill(type, out, s->count * s->m * s->n, NANS);
    const void *other = s->gram ? a : b;
    const int status = shim_matmul(vendor, 1, type, a, other, out, s->m, s->n, s->k, a_row * size,
                                   a_col * size, b_row * size, b_col * size, s->n * size,
                                   s->count > 1, batch, NULL);
    int right_everywhere = status == SHIM_SUCCESS;
    for (int64_t place = 0; place < s->count; place++)
        right_everywhere &=
            is_product(type, s, a, a_row, a_col, other, b_row, b_col, place, out);
    return right_everywhere;
}

static int check_shape(shim_vendor *vendor, int type, const shape *s, void *a, void *b, void *out)
{
    int found = SHIM_RIGHT;
    for (int layouts = 0; layouts < (s->gram ? 2 : 4); layouts++) {
        const int at = layouts & 1, bt = layouts >> 1;
        if (!computes(vendor, type, s, NUMBERS, NUMBERS, at, bt, a, b, out))
            found |= SHIM_WRONG;
        if (!computes(vendor, type, s, ZERO, s->gram ? ZERO : NANS, at, bt, a, b, out) ||
            !computes(vendor, type, s, NANS, ZERO, at, bt, a, b, out))
            found |= SHIM_LOSES_NAN;
    }
    return found;
}

int shim_check(shim_vendor *vendor, int routine, int type)
{
    int found = SHIM_RIGHT;
    for (int i = 0; i < 2; i++) {
        const shape *s = &shapes[routine][i];
        const size_t item = (size_t)item_size[type];
        void *a = malloc((size_t)(s->count * s->m * s->k) * item);
        void *b = malloc((size_t)(s->count * s->k * s->n) * item);
        void *out = malloc((size_t)(s->count * s->m * s->n) * item);
        found |= a && b && out ? check_shape(vendor, type, s, a, b, out) : SHIM_WRONG;
        free(a);
        free(b);
        free(out);
    }
    return found;
}

int shim_keeps_parts(shim_vendor *vendor, int type)
{
    enum { N = 8 };
    double a[2 * N * N], b[2 * N * N], out[2 * N * N];
    const int64_t size = item_size[type], row = N * size;
    const shim_epilogue add = {{1, 0}, 1};
    int kept = 1;
    for (int columns = 1; columns <= N; columns += N - 1)
        for (int layouts = 0; layouts < 4; layouts++) {
            fill(type, a, N * N, ZERO);
            fill(type, b, N * N, ZERO);
            for (int64_t i = 0; i < N * N; i++)
                set(type, out, i, (value){INFINITY, 2});
            shim_matmul(vendor, 1, type, a, b, out, N, columns, N, layouts & 1 ? size : row,
                        layouts & 1 ? row : size, layouts & 2 ? size : row,
                        layouts & 2 ? row : size, row, 0, NULL, &add);
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < columns; j++)
                    kept &= get(type, out, i * N + j).im == 2;
        }
    return kept;
}

double shim_seconds(shim_vendor *vendor, int n_threads, int64_t n)
{
    enum { TIMES = 5 }; /* the first one warms up */
    const int64_t row = n * item_size[SHIM_S];
    float *memory = malloc(3 * (size_t)(n * row));
    if (!memory)
        return -1;
    fill(SHIM_S, memory, 2 * n * n, NUMBERS);
    double best = INFINITY;
    for (int i = 0; i < TIMES; i++) {
        const double start = now();
        shim_matmul(vendor, n_threads, SHIM_S, memory, memory + n * n, memory + 2 * n * n, n, n, n,
                    row, item_size[SHIM_S], row, item_size[SHIM_S], row, 0, NULL, NULL);
        const double seconds = now() - start;
        if (i && seconds < best)
            best = seconds;
    }
    free(memory);
    return best;
}
