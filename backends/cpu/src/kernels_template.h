/* All that one instruction set needs. The including file sets GG_NAME, GG_VECTOR_BYTES and GG_MR
 * (rows of the register tile; its columns are two vectors). */
#include <stddef.h>
#include <string.h>

#include "half.h"
#include "kernels.h"

#define GG_PASTE2(a, b) a##_##b
#define GG_PASTE(a, b) GG_PASTE2(a, b)
#define GG_TEXT2(a) #a
#define GG_TEXT(a) GG_TEXT2(a)
#define GG_INLINE static inline __attribute__((always_inline))
#define GG_UNROLL _Pragma("GCC unroll 16")

enum { MR = GG_MR };

#include "convert_template.h"

static const void *fetch_blocks(const gg_run *run, const gg_traits *traits, int64_t start,
                                int64_t n, float *buffer)
{
    int64_t size = traits->block_size;
    int64_t first = start / size, blocks = (start + n + size - 1) / size - first;
    const uint8_t *source = (const uint8_t *)run->data + first * run->stride;
    if (run->stride == traits->block_bytes)
        decoders[run->type](source, buffer, blocks * size);
    else
        for (int64_t i = 0; i < blocks; i++)
            decoders[run->type](source + i * run->stride, buffer + i * size, size);
    return buffer + start % size;
}

static const void *fetch_strided(const gg_run *run, const gg_traits *traits, int64_t start,
                                 int64_t n, void *buffer)
{
    uint8_t raw[GG_FETCH * 2]; /* types that need decoding have at most 2 bytes */
    gg_decode decode = decoders[run->type];
    char *gathered = decode ? (char *)raw : buffer;
    gg_gather(run->data + start * run->stride, run->stride, traits->block_bytes, n, gathered);
    if (decode)
        decode(raw, buffer, n);
    return buffer;
}

static inline const void *fetch(const gg_run *run, int64_t start, int64_t n, void *buffer)
{
    const gg_traits *traits = &gg_traits_table[run->type];
    gg_decode decode = decoders[run->type];
    const char *source = run->data + start * run->stride;
    if (traits->block_size > 1)
        return fetch_blocks(run, traits, start, n, buffer);
    if (run->stride != traits->block_bytes)
        return fetch_strided(run, traits, start, n, buffer);
    if (!decode)
        return source;
    decode((const uint8_t *)source, buffer, n);
    return buffer;
}

/* The axis along which elements are read: that of the blocks, else a contiguous one. */
static int runs_along_k(const gg_side *side)
{
    const gg_traits *traits = &gg_traits_table[side->type];
    if (side->blocked != GG_PLAIN)
        return side->blocked == GG_BLOCKED_K;
    return side->k_stride == traits->block_bytes || side->lane_stride != traits->block_bytes;
}

/* True when fetch hands out the elements in place. */
static int in_place(const gg_side *side, int64_t stride)
{
    return !decoders[side->type] && stride == gg_traits_table[side->type].block_bytes;
}

static gg_run k_run(const gg_side *side, int64_t lane)
{
    return (gg_run){side->data + lane * side->lane_stride, side->k_stride, side->type};
}

static gg_run lane_run(const gg_side *side, int64_t k)
{
    return (gg_run){side->data + k * side->k_stride, side->lane_stride, side->type};
}

/* One lane of blocks along k, without decoding to memory; 0 where the format has no kernel. */
GG_INLINE int dot_in_blocks(const gg_side *side, int64_t lane, int64_t k, const char *x,
                            int64_t x_step, int rows, void *y, int64_t y_step)
{
    dot_function dot = dots[side->type];
    if (!dot || side->k_stride != gg_traits_table[side->type].block_bytes)
        return 0;
    dot((const uint8_t *)side->data + lane * side->lane_stride, k, x, x_step, rows, y, y_step);
    return 1;
}

#define T float
#define GG_SUFFIX f32
#include "compute_template.h"
#undef T
#undef GG_SUFFIX

#define T double
#define GG_SUFFIX f64
#include "compute_template.h"
#undef T
#undef GG_SUFFIX

#define T uint32_t
#define GG_SUFFIX u32
#include "compute_template.h"
#undef T
#undef GG_SUFFIX

#define T uint64_t
#define GG_SUFFIX u64
#include "compute_template.h"
#undef T
#undef GG_SUFFIX

const gg_isa GG_PASTE(gg_isa, GG_NAME) = {
    .name = GG_TEXT(GG_NAME),
    .compute =
        {
            [GG_AS_F32] = {4, MR, NR_f32, pack_f32, multiply_f32, gemv_f32},
            [GG_AS_F64] = {8, MR, NR_f64, pack_f64, multiply_f64, gemv_f64},
            [GG_AS_U32] = {4, MR, NR_u32, pack_u32, multiply_u32, gemv_u32},
            [GG_AS_U64] = {8, MR, NR_u64, pack_u64, multiply_u64, gemv_u64},
        },
    .decode = decoders,
    .store = stores,
    .fetch = fetch,
};
