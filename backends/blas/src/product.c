/* Matrix products by the routines of a library. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "product.h"

#include <math.h>
#include <stddef.h>
#include <time.h>

#define MAX_DIMS 64 /* NumPy's limit */

/* From the CBLAS standard. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, UPPER = 121 };

/* Multiply-adds that are worth another thread: some libraries wake or even start one for products
 * that take a hundredth of the time that this costs. */
static const double WORK_OF_A_THREAD = 1 << 19;

/* Products of more multiply-adds gain nothing by one call for many of them. */
static const double WORK_OF_A_CALL = 1 << 16;

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
    int add;  /* beta is 1, else 0 */
    int gram; /* b is a transposed if they begin at one place */
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
    /* `count` products, `a_step` (and so on) elements apart. */                                 \
    static void batch_##NAME(void *routine, const product *p, const void *a, int64_t a_step,     \
                             const void *b, int64_t b_step, void *out, int64_t out_step,         \
                             int64_t count)                                                      \
    {                                                                                            \
        ((void (*)(int, int, int, INT, INT, INT, SCALAR, const void *, INT, INT, const void *,   \
                   INT, INT, SCALAR, void *, INT, INT, INT))routine)(                            \
            ROW_MAJOR, p->a.transposed ? TRANS : NO_TRANS, p->b.transposed ? TRANS : NO_TRANS,   \
            (INT)p->m, (INT)p->n, (INT)p->k, p->alpha.PART, a, (INT)p->a.ld, (INT)a_step, b,     \
            (INT)p->b.ld, (INT)b_step, p->beta.PART, out, (INT)p->out_row, (INT)out_step,        \
            (INT)count);                                                                         \
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
    }                                                                                            \
    /* The upper triangle of out = alpha * a @ a.T. */                                           \
    static void syrk_##NAME(void *routine, const product *p, const void *a, void *out)           \
    {                                                                                            \
        ((void (*)(int, int, int, INT, INT, SCALAR, const void *, INT, SCALAR, void *,           \
                   INT))routine)(ROW_MAJOR, UPPER, p->a.transposed ? TRANS : NO_TRANS,           \
                                 (INT)p->n, (INT)p->k, p->alpha.PART, a, (INT)p->a.ld,           \
                                 p->beta.PART, out, (INT)p->out_row);                            \
    }

#define REAL_DOT(NAME, INT, TYPE)                                                                \
    static void dot_##NAME(void *routine, const product *p, const void *a, const void *b,        \
                           void *out)                                                            \
    {                                                                                            \
        const TYPE found = ((TYPE(*)(INT, const void *, INT, const void *, INT))routine)(        \
            (INT)p->k, a, (INT)p->a_col, b, (INT)p->b_row);                                      \
        *(TYPE *)out = found + (p->add ? *(TYPE *)out : 0);                                      \
    }

#define COMPLEX_DOT(NAME, INT, TYPE)                                                             \
    static void dot_##NAME(void *routine, const product *p, const void *a, const void *b,        \
                           void *out)                                                            \
    {                                                                                            \
        TYPE found[2], *sum = out;                                                               \
        ((void (*)(INT, const void *, INT, const void *, INT, void *))routine)(                  \
            (INT)p->k, a, (INT)p->a_col, b, (INT)p->b_row, found);                               \
        sum[0] = found[0] + (p->add ? sum[0] : 0);                                               \
        sum[1] = found[1] + (p->add ? sum[1] : 0);                                               \
    }

CALLS(s_32, int32_t, float, s[0])
CALLS(d_32, int32_t, double, d[0])
CALLS(c_32, int32_t, const void *, s)
CALLS(z_32, int32_t, const void *, d)
CALLS(s_64, int64_t, float, s[0])
CALLS(d_64, int64_t, double, d[0])
CALLS(c_64, int64_t, const void *, s)
CALLS(z_64, int64_t, const void *, d)

REAL_DOT(s_32, int32_t, float)
REAL_DOT(d_32, int32_t, double)
COMPLEX_DOT(c_32, int32_t, float)
COMPLEX_DOT(z_32, int32_t, double)
REAL_DOT(s_64, int64_t, float)
REAL_DOT(d_64, int64_t, double)
COMPLEX_DOT(c_64, int64_t, float)
COMPLEX_DOT(z_64, int64_t, double)

typedef struct {
    void (*gemm)(void *, const product *, const void *, const void *, void *);
    void (*batch)(void *, const product *, const void *, int64_t, const void *, int64_t, void *,
                  int64_t, int64_t);
    void (*gemv)(void *, const product *, int64_t, int64_t, layout, const void *, const void *,
                 int64_t, void *, int64_t);
    void (*syrk)(void *, const product *, const void *, void *);
    void (*dot)(void *, const product *, const void *, const void *, void *);
} calls;

#define TABLE(NAME) {gemm_##NAME, batch_##NAME, gemv_##NAME, syrk_##NAME, dot_##NAME}

static const calls tables[2][SHIM_TYPES] = {
    {TABLE(s_32), TABLE(d_32), TABLE(c_32), TABLE(z_32)},
    {TABLE(s_64), TABLE(d_64), TABLE(c_64), TABLE(z_64)},
};

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

/* Elements from the first to the last of a matrix whose rows (or columns) are ld apart. */
static double span(int64_t rows, int64_t columns, layout x)
{
    const int64_t lines = x.transposed ? columns : rows;
    return (double)lines * (double)x.ld;
}

/* Whether 32 bits can state all lengths, strides, and places in a matrix. */
static int fits_32_bits(const product *p)
{
    const int64_t values[] = {p->m,    p->n,     p->k,     p->a.ld,
                              p->b.ld, p->a_col, p->b_row, p->out_row};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i] > INT32_MAX || values[i] < INT32_MIN)
            return 0;
    return span(p->m, p->k, p->a) <= INT32_MAX && span(p->k, p->n, p->b) <= INT32_MAX &&
           (double)p->m * (double)p->out_row <= INT32_MAX;
}

/* Batches that share b and follow each other are the rows of one larger product: takes such axes
 * off the batch and returns how many are left, as long as `most` bytes hold a matrix. Strides are
 * in bytes. */
static int merge_batches(product *p, int type, double most, int dims, const int64_t *sizes,
                         const int64_t *a_batch, const int64_t *b_batch, const int64_t *out_batch)
{
    for (; dims > 0; dims--) {
        const int64_t size = sizes[dims - 1], a = a_batch[dims - 1], out = out_batch[dims - 1];
        if (size == 1)
            continue;
        if (b_batch[dims - 1] != 0 || a % item_size[type] || out % item_size[type] ||
            fabs((double)a) * (double)size > most || fabs((double)out) * (double)size > most)
            break;
        if (p->m == 1) {
            if (a < p->k * item_size[type]) /* no rows of a matrix */
                break;
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
    p->gram = !p->add && p->m == p->n && p->m >= GRAM_ROWS && p->a_row == p->b_col &&
              p->a_col == p->b_row;
    return (find_layout(p->m, p->k, p->a_row, p->a_col, &p->a) ? 0 : SHIM_COPY_A) |
           (find_layout(p->k, p->n, p->b_row, p->b_col, &p->b) ? 0 : SHIM_COPY_B);
}

/* Copies the upper triangle of a square matrix to the lower one, in tiles that caches hold. */
#define MIRROR(NAME, TYPE)                                                                       \
    static void mirror_##NAME(void *matrix, int64_t n, int64_t row)                              \
    {                                                                                            \
        enum { TILE = 32 };                                                                      \
        TYPE *x = matrix;                                                                        \
        for (int64_t i0 = 0; i0 < n; i0 += TILE)                                                 \
            for (int64_t j0 = 0; j0 <= i0; j0 += TILE)                                           \
                for (int64_t i = i0; i < n && i < i0 + TILE; i++)                                \
                    for (int64_t j = j0; j < i && j < j0 + TILE; j++)                            \
                        x[i * row + j] = x[j * row + i];                                         \
    }

typedef struct {
    float part[2];
} pair_of_floats;

typedef struct {
    double part[2];
} pair_of_doubles;

MIRROR(s, float)
MIRROR(d, double)
MIRROR(c, pair_of_floats)
MIRROR(z, pair_of_doubles)

static void (*const mirror[SHIM_TYPES])(void *, int64_t, int64_t) = {mirror_s, mirror_d, mirror_c,
                                                                     mirror_z};

static void multiply(const shim_vendor *vendor, int type, const product *p, const char *a,
                     const char *b, char *out)
{
    const calls *call = &tables[vendor->ilp64 != 0][type];
    if (p->m == 1 && p->n == 1 && vendor->dot[type]) {
        call->dot(vendor->dot[type], p, a, b, out);
    } else if (p->n == 1) {
        call->gemv(vendor->gemv[type], p, p->m, p->k, p->a, a, b, p->b_row, out, p->out_row);
    } else if (p->m == 1) {
        const layout b_transposed = {!p->b.transposed, p->b.ld};
        call->gemv(vendor->gemv[type], p, p->n, p->k, b_transposed, b, a, p->a_col, out, 1);
    } else if (p->gram && a == b && vendor->syrk[type]) {
        call->syrk(vendor->syrk[type], p, a, out);
        mirror[type](out, p->n, p->out_row);
    } else {
        call->gemm(vendor->gemm[type], p, a, b, out);
    }
}

/* Products of one shape; the strides of the batch are in bytes. */
typedef struct {
    const shim_vendor *vendor;
    int type;
    const product *p;
    const char *a, *b;
    char *out;
    int dims;
    const int64_t *sizes, *a_batch, *b_batch, *out_batch;
    int by_batch; /* runs along the last axis are one call each */
} products;

/* Computes the products begin <= i < end, counted along the last axis first. */
static void multiply_some(void *arg, int slot, int64_t begin, int64_t end)
{
    const products *all = arg;
    const int last = all->dims - 1, type = all->type;
    const int64_t size = item_size[type];
    (void)slot;
    for (int64_t i = begin, run; i < end; i += run) {
        const char *a = all->a, *b = all->b;
        char *out = all->out;
        int64_t rest = i, a_step = 0, b_step = 0, out_step = 0;
        run = 1;
        for (int axis = last; axis >= 0; axis--) {
            const int64_t at = rest % all->sizes[axis];
            rest /= all->sizes[axis];
            a += at * all->a_batch[axis];
            b += at * all->b_batch[axis];
            out += at * all->out_batch[axis];
            if (axis == last) {
                run = all->sizes[axis] - at < end - i ? all->sizes[axis] - at : end - i;
                a_step = all->a_batch[axis];
                b_step = all->b_batch[axis];
                out_step = all->out_batch[axis];
            }
        }
        if (all->by_batch && run >= BATCH_COUNT)
            tables[all->vendor->ilp64 != 0][type].batch(all->vendor->gemm_batch_strided[type],
                                                        all->p, a, a_step / size, b, b_step / size,
                                                        out, out_step / size, run);
        else
            for (int64_t j = 0; j < run; j++)
                multiply(all->vendor, type, all->p, a + j * a_step, b + j * b_step,
                         out + j * out_step);
    }
}

/* Whether the library computes runs along the last axis in one call: small matrices that do not
 * overlap, whole elements apart. */
static int is_for_batch(const products *all)
{
    const product *p = all->p;
    const int last = all->dims - 1;
    const int64_t size = item_size[all->type];
    if (last < 0 || !all->vendor->gemm_batch_strided[all->type] || p->m == 1 || p->n == 1 ||
        (double)p->m * (double)p->n * (double)p->k > WORK_OF_A_CALL)
        return 0;
    const int64_t steps[] = {all->a_batch[last], all->b_batch[last], all->out_batch[last]};
    const double least[] = {span(p->m, p->k, p->a), span(p->k, p->n, p->b),
                            (double)p->m * (double)p->out_row};
    for (int i = 0; i < 3; i++)
        if (steps[i] % size || (double)(steps[i] / size) < least[i] ||
            (!all->vendor->ilp64 && steps[i] / size > INT32_MAX))
            return 0;
    return all->vendor->ilp64 || all->sizes[last] <= INT32_MAX;
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

static int useful_threads(int n_threads, double work)
{
    const double useful = 1 + work / WORK_OF_A_THREAD;
    return useful >= n_threads ? n_threads : (int)useful;
}

static int get_threads(const shim_vendor *vendor)
{
    return vendor->wide_threads ? (int)((int64_t(*)(void))vendor->get_threads)()
                                : ((int (*)(void))vendor->get_threads)();
}

static void set_threads(const shim_vendor *vendor, int n)
{
    if (vendor->wide_threads)
        ((void (*)(int64_t))vendor->set_threads)(n);
    else
        ((void (*)(int))vendor->set_threads)(n);
}

double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Where other processes keep the processors busy, the threads of a library wait for each other:
 * a product of a third of a millisecond was seen to take 16. So one that takes much longer than it
 * should on one thread is tried on one, and where that is faster it stays so for a while. Trials
 * take a small part of the time. */
static int is_faster_alone(const shim_pace *pace, double expected, double time)
{
    const int alone = pace->alone > 0 && pace->alone < pace->together;
    if (!alone && pace->together <= 2 * expected)
        return 0;
    return time < pace->next_trial ? alone : !alone;
}

static void note_pace(shim_pace *pace, int alone, double start)
{
    const double share_of_trials = 1. / 32, time = now(), seconds = time - start;
    const int was_alone = pace->alone > 0 && pace->alone < pace->together;
    if (alone != was_alone)
        pace->next_trial = time + seconds / share_of_trials;
    *(alone ? &pace->alone : &pace->together) = seconds;
}

/* Computes all products: several threads compute one each, which needs them to meet just once, or
 * they compute one together. */
static int multiply_all(shim_vendor *vendor, int n_threads, products *all)
{
    const product *p = all->p;
    int64_t count = 1;
    for (int i = 0; i < all->dims; i++)
        count *= all->sizes[i];
    const double work = (double)p->m * (double)p->n * (double)p->k;
    const double all_work = work * (double)count;
    const int most = n_threads < vendor->most_threads ? n_threads : vendor->most_threads;
    int own = useful_threads(most, work), ours = 1;
    if (vendor->parallel_for && count > 1 && (own == 1 || count >= 4 * (int64_t)n_threads)) {
        ours = useful_threads(n_threads, all_work);
        own = 1;
    }

    const int before = vendor->get_threads ? get_threads(vendor) : 0;
    const int together = own > 1 && before > 1;
    shim_pace *pace = &vendor->pace[all->type][all_work < 0x1p63 ? ilogb(all_work) : 63];
    const double start = together ? now() : 0;
    const double expected = all_work * vendor->seconds * (double)(1 << all->type);
    const int alone = together && is_faster_alone(pace, expected, start);
    if (alone)
        own = 1;
    int status = SHIM_SUCCESS;
    if (before > own)
        set_threads(vendor, own);
    if (ours > 1)
        status = ((int (*)(int, int64_t, int64_t, void (*)(void *, int, int64_t, int64_t),
                           void *))vendor->parallel_for)(
            ours, count, 1 + count / (4 * (int64_t)ours), multiply_some, all);
    else
        multiply_some(all, 0, 0, count);
    if (before > own)
        set_threads(vendor, before);
    if (together)
        note_pace(pace, alone, start);
    return status;
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
    product p = {.m = m, .n = n, .k = k, .a_row = a_row, .a_col = a_col, .b_row = b_row,
                 .b_col = b_col, .out_row = out_row};
    p.add = epilogue && epilogue->add;
    p.alpha = epilogue ? to_number(type, epilogue->alpha[0], epilogue->alpha[1])
                       : to_number(type, 1, 0);
    p.beta = to_number(type, p.add, 0);
    int status = (is_aligned(a, type, a_row, a_col, dims, a_batch) ? 0 : SHIM_COPY_A) |
                 (is_aligned(b, type, b_row, b_col, dims, b_batch) ? 0 : SHIM_COPY_B);
    const double most = vendor->ilp64 ? INFINITY : (double)INT32_MAX * (double)item_size[type];
    const int left = merge_batches(&p, type, most, dims, batch, a_batch, b_batch, out_batch);
    status |= plan(&p, item_size[type]);
    if (status)
        return status;
    if (!vendor->ilp64 && !fits_32_bits(&p))
        return SHIM_FAILED;

    products all = {vendor, type, &p,      a,       b,         out,
                    left,   batch, a_batch, b_batch, out_batch, 0};
    all.by_batch = is_for_batch(&all);
    return multiply_all(vendor, n_threads, &all);
}
