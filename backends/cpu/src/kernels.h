/* The kernels that are compiled once for each instruction set, as the drivers see them. */
#ifndef GG_KERNELS_H
#define GG_KERNELS_H

#include <stdint.h>

#include "traits.h"

/* Which axis of a side holds blocks, if one does. */
enum { GG_PLAIN, GG_BLOCKED_K, GG_BLOCKED_LANES };

/* One operand of a product: `lanes` (rows of a, columns of b) by k. */
typedef struct {
    const char *data;
    int64_t lane_stride, k_stride;
    int type, blocked;
} gg_side;

/* Elements along one axis of a side. */
typedef struct {
    const char *data;
    int64_t stride;
    int type;
} gg_run;

/* How a block of products meets what the output holds. */
enum { GG_SET, GG_ADD, GG_SUBTRACT };

enum {
    GG_KC = 256,      /* k elements of a packed panel; a multiple of every block size */
    GG_FETCH = 512,   /* elements that one fetch may convert */
    GG_LANES = 2048,  /* lanes of one matrix-vector task */
    GG_GEMV_ROWS = 4, /* vectors that share the reading of a matrix */
    GG_FETCH_BYTES = (GG_FETCH + 2 * GG_MAX_BLOCK) * 8
};

typedef struct {
    int size;   /* bytes of the compute type */
    int mr, nr; /* rows and columns of the register tile */
    /* Packs lanes x k elements into panels of `width` lanes (mr or nr), k-major, zero-padded. */
    void (*pack)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k0, int64_t k, int width,
                 void *out);
    /* c[m, n] (=, +=, -=) packed a @ packed b. */
    void (*multiply)(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c,
                     int64_t c_row, int how);
    /* y[r, i] = sum over k of x[r, k] * side[lane + i, k] for 1 to GG_GEMV_ROWS rows r. The
     * elements of an x lie side by side; x_step is in bytes, y_step in elements. */
    void (*gemv)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k, const void *x,
                 int64_t x_step, int rows, void *y, int64_t y_step);
} gg_compute;

/* Decodes n elements (whole blocks) to the compute type. */
typedef void (*gg_decode)(const uint8_t *source, void *out, int64_t n);

/* Rounds n results to their type; `im` counts for complex types only. */
typedef void (*gg_store)(const void *re, const void *im, void *out, int64_t n);

typedef struct {
    const char *name;
    gg_compute compute[GG_COMPUTE_COUNT];
    const gg_decode *decode; /* by type; NULL where a type is its own compute type */
    const gg_store *store;   /* likewise */
    /* The elements start <= i < start + n of the run in the compute type: in place when they are
     * there already, else converted into `buffer` (GG_FETCH_BYTES). */
    const void *(*fetch)(const gg_run *run, int64_t start, int64_t n, void *buffer);
} gg_isa;

extern const gg_isa gg_isa_generic, gg_isa_avx2, gg_isa_avx512;

/* The one in use; NULL before gg_select_isa. */
const gg_isa *gg_current_isa(void);

/* Strided elements of `size` bytes to consecutive ones, and back. */
void gg_gather(const char *source, int64_t stride, int size, int64_t n, char *out);
void gg_scatter(const char *source, int size, int64_t n, char *out, int64_t stride);

#endif
