#include "shim.h"

#include <dlfcn.h>
#include <stddef.h>

#define MAX_DIMS 64 /* NumPy's limit */

/* From the CBLAS standard. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

const char *shim_version(void) { return SHIM_VERSION; }

void *shim_open(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

const char *shim_error(void)
{
    const char *error = dlerror();
    return error ? error : "unknown error";
}

void *shim_symbol(void *library, const char *name) { return dlsym(library, name); }

int shim_is_ilp64(void *isamax)
{
    const float x[3] = {1, 2, 3};
    const int64_t one = 1, little_endian_three = (int64_t)0xFFFFFFFF00000003u;
    const int little_endian = *(const char *)&one;
    /* As 32 bits the first half counts: 3 elements, or 0 on a big-endian machine. As 64 bits
     * there is a negative number of elements, or 1. The result may be 32 bits wide. */
    const int64_t n = little_endian ? little_endian_three : 1;
    const int64_t index = ((int64_t(*)(const int64_t *, const float *, const int64_t *))isamax)(
        &n, x, &one);
    return ((uint32_t)index == 0) == little_endian;
}

void shim_touch_memory(void *blas_memory_alloc, void *blas_memory_free)
{
    const size_t size = 1 << 21, page = 4096; /* every build's working memory is larger */
    volatile char *memory = ((void *(*)(int))blas_memory_alloc)(0);
    if (!memory)
        return;
    for (size_t i = 0; i < size; i += page)
        memory[i] = 0;
    ((void (*)(void *))blas_memory_free)((void *)memory);
}

/* One matrix as BLAS sees it: rows (or columns, if transposed) of unit stride, ld elements
 * apart. */
typedef struct {
    int transposed;
    int64_t ld;
} layout;

/* A number in the precision of a product, its imaginary part last. */
typedef union {
    float s[2];
    double d[2];
} number;

typedef struct {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, out_row; /* in elements from here on */
    layout a, b;
    number alpha, beta;
} product;

/* The calls, for a width of the integers and a type. Complex scalars go by address. */
#define CALLS(NAME, INT, SCALAR, PART)                                                           \
    static void gemm_##NAME(void *routine, const product *p, const void *a, const void *b,       \
                            void *out)                                                           \
    {                                                                                            \
        ((void (*)(int, int, int, INT, INT, INT, SCALAR, const void *, INT, const void *, INT,   \
                   SCALAR, void *, INT))routine)(                                                \
            ROW_MAJOR, p->a.transposed ? TRANS : NO_TRANS, p->b.transposed ? TRANS : NO_TRANS,   \
            (INT)p->m, (INT)p->n, (INT)p->k, p->alpha.PART, a, (INT)p->a.ld, b, (INT)p->b.ld,    \
            p->beta.PART, out, (INT)p->out_row);                                                 \
    }                                                                                            \
    /* y[rows] = alpha * matrix[rows, columns] @ x[columns] + beta * y[rows], or the transpose   \
     * of matrix. */                                                                             \
    static void gemv_##NAME(void *routine, const product *p, int64_t rows, int64_t columns,      \
                            layout matrix, const void *values, const void *x, int64_t x_step,    \
                            void *y, int64_t y_step)                                             \
    {                                                                                            \
        ((void (*)(int, int, INT, INT, SCALAR, const void *, INT, const void *, INT, SCALAR,     \
                   void *, INT))routine)(                                                        \
            ROW_MAJOR, matrix.transposed ? TRANS : NO_TRANS,                                     \
            (INT)(matrix.transposed ? columns : rows),                                           \
            (INT)(matrix.transposed ? rows : columns), p->alpha.PART, values, (INT)matrix.ld, x, \
            (INT)x_step, p->beta.PART, y, (INT)y_step);                                          \
    }

CALLS(s_32, int32_t, float, s[0])
CALLS(d_32, int32_t, double, d[0])
CALLS(c_32, int32_t, const void *, s)
CALLS(z_32, int32_t, const void *, d)
CALLS(s_64, int64_t, float, s[0])
CALLS(d_64, int64_t, double, d[0])
CALLS(c_64, int64_t, const void *, s)
CALLS(z_64, int64_t, const void *, d)

static void (*const gemm[2][SHIM_TYPES])(void *, const product *, const void *, const void *,
                                         void *) = {
    {gemm_s_32, gemm_d_32, gemm_c_32, gemm_z_32},
    {gemm_s_64, gemm_d_64, gemm_c_64, gemm_z_64},
};

static void (*const gemv[2][SHIM_TYPES])(void *, const product *, int64_t, int64_t, layout,
                                         const void *, const void *, int64_t, void *, int64_t) = {
    {gemv_s_32, gemv_d_32, gemv_c_32, gemv_z_32},
    {gemv_s_64, gemv_d_64, gemv_c_64, gemv_z_64},
};

static const int64_t item_size[SHIM_TYPES] = {4, 8, 8, 16};
static const uintptr_t alignment[SHIM_TYPES] = {4, 8, 4, 8};

/* Finds the layout of a matrix from its strides in elements; 0 if BLAS has no name for it. The
 * stride along an axis of one element does not matter. */
static int find_layout(int64_t rows, int64_t columns, int64_t row, int64_t column, layout *found)
{
    if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
        *found = (layout){0, rows == 1 ? columns : row};
        return 1;
    }
    if ((row == 1 || rows == 1) && column >= rows) {
        *found = (layout){1, column};
        return 1;
    }
    return 0;
}

/* Whether the address and all strides (in bytes) are whole elements, as BLAS wants them. */
static int is_aligned(const void *start, int type, int64_t row, int64_t column, int dims,
                      const int64_t *strides)
{
    if ((uintptr_t)start % alignment[type])
        return 0;
    if (row % item_size[type] || column % item_size[type])
        return 0;
    for (int i = 0; i < dims; i++)
        if (strides[i] % (int64_t)alignment[type])
            return 0;
    return 1;
}

static int is_empty(int64_t m, int64_t n, int64_t k, int dims, const int64_t *sizes)
{
    for (int i = 0; i < dims; i++)
        if (sizes[i] == 0)
            return 1;
    return m == 0 || n == 0 || k == 0;
}

static int fits_32_bits(const product *p)
{
    const int64_t values[] = {p->m,    p->n,     p->k,     p->a.ld,
                              p->b.ld, p->a_col, p->b_row, p->out_row};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i] > INT32_MAX || values[i] < INT32_MIN)
            return 0;
    return 1;
}

/* Batches that share b and follow each other are the rows of one larger product: takes such axes
 * off the batch and returns how many are left. Strides are in bytes. */
static int merge_batches(product *p, int dims, const int64_t *sizes, const int64_t *a_batch,
                         const int64_t *b_batch, const int64_t *out_batch)
{
    for (; dims > 0; dims--) {
        const int64_t size = sizes[dims - 1], a = a_batch[dims - 1], out = out_batch[dims - 1];
        if (size == 1)
            continue;
        if (b_batch[dims - 1] != 0 || p->m > INT32_MAX / size)
            break;
        if (p->m == 1) {
            p->a_row = a;
            p->out_row = out;
        } else if (a != p->m * p->a_row || out != p->m * p->out_row) {
            break;
        }
        p->m *= size;
    }
    return dims;
}

/* Turns strides to elements and finds the layouts; returns a status. */
static int plan(product *p, int64_t size)
{
    p->a_row /= size;
    p->b_row = p->k == 1 ? 1 : p->b_row / size;
    p->a_col = p->k == 1 ? 1 : p->a_col / size;
    p->b_col /= size;
    p->out_row = p->m == 1 ? p->n : p->out_row / size;
    return (find_layout(p->m, p->k, p->a_row, p->a_col, &p->a) ? 0 : SHIM_COPY_A) |
           (find_layout(p->k, p->n, p->b_row, p->b_col, &p->b) ? 0 : SHIM_COPY_B);
}

static void multiply(const shim_vendor *vendor, int type, const product *p, const char *a,
                     const char *b, char *out)
{
    const int wide = vendor->ilp64 != 0;
    if (p->n == 1) {
        gemv[wide][type](vendor->gemv[type], p, p->m, p->k, p->a, a, b, p->b_row, out,
                         p->out_row);
    } else if (p->m == 1) {
        const layout b_transposed = {!p->b.transposed, p->b.ld};
        gemv[wide][type](vendor->gemv[type], p, p->n, p->k, b_transposed, b, a, p->a_col, out, 1);
    } else {
        gemm[wide][type](vendor->gemm[type], p, a, b, out);
    }
}

static number to_number(int type, double real, double imaginary)
{
    number x;
    if (type == SHIM_S || type == SHIM_C) {
        x.s[0] = (float)real;
        x.s[1] = (float)imaginary;
    } else {
        x.d[0] = real;
        x.d[1] = imaginary;
    }
    return x;
}

/* Sets the library's threads where n is not what was asked for last time, or is exceeded.
 * The first request only lowers: what the environment has set stays in force. */
static void limit_threads(shim_vendor *vendor, int n)
{
    const int now = ((int (*)(void))vendor->get_threads)();
    const int changed = vendor->threads && vendor->threads != n;
    vendor->threads = n;
    if (now > n || (now < n && changed))
        ((void (*)(int))vendor->set_threads)(n);
}

int shim_matmul(shim_vendor *vendor, int n_threads, int type, const void *a, const void *b,
                void *out, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col,
                int64_t b_row, int64_t b_col, int64_t out_row, int dims, const int64_t *batch,
                const shim_epilogue *epilogue)
{
    if (dims > MAX_DIMS)
        return SHIM_FAILED;
    if (is_empty(m, n, k, dims, batch))
        return SHIM_EMPTY;
    const int64_t *a_batch = batch + dims, *b_batch = a_batch + dims, *out_batch = b_batch + dims;
    product p = {m, n, k, a_row, a_col, b_row, b_col, out_row, {0}, {0}, {{0}}, {{0}}};
    p.alpha = epilogue ? to_number(type, epilogue->alpha[0], epilogue->alpha[1])
                       : to_number(type, 1, 0);
    p.beta = to_number(type, epilogue && epilogue->add ? 1 : 0, 0);
    int status = (is_aligned(a, type, a_row, a_col, dims, a_batch) ? 0 : SHIM_COPY_A) |
                 (is_aligned(b, type, b_row, b_col, dims, b_batch) ? 0 : SHIM_COPY_B);
    dims = merge_batches(&p, dims, batch, a_batch, b_batch, out_batch);
    status |= plan(&p, item_size[type]);
    if (status)
        return status;
    if (!vendor->ilp64 && !fits_32_bits(&p))
        return SHIM_FAILED;
    limit_threads(vendor, n_threads);

    const char *a_at = a, *b_at = b;
    char *out_at = out;
    int64_t index[MAX_DIMS] = {0};
    for (int axis = 0; axis >= 0;) {
        multiply(vendor, type, &p, a_at, b_at, out_at);
        for (axis = dims - 1; axis >= 0; axis--) { /* counts up, the last axis fastest */
            const int wraps = ++index[axis] == batch[axis];
            const int64_t steps = wraps ? 1 - batch[axis] : 1;
            a_at += steps * a_batch[axis];
            b_at += steps * b_batch[axis];
            out_at += steps * out_batch[axis];
            if (!wraps)
                break;
            index[axis] = 0;
        }
    }
    return SHIM_SUCCESS;
}
