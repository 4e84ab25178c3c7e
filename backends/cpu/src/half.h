/* float16 and bfloat16 as bit patterns, one value at a time, on any machine. */
#ifndef GG_HALF_H
#define GG_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t gg_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float gg_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float gg_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) /* Inf and NaN */
        return gg_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude < 0x400) /* zero and subnormal: a multiple of 2^-24 */
        return gg_float(sign | gg_bits((float)magnitude * 0x1p-24f));
    return gg_float(sign | (magnitude + ((127 - 15) << 10)) << 13);
}

/* To nearest, ties to even. */
static inline uint16_t gg_f32_to_f16(float x)
{
    uint32_t bits = gg_bits(x);
    uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x477ff000) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) /* below 2^-14: adding 0.5 leaves the multiple of 2^-24 */
        return (uint16_t)(sign | (gg_bits(gg_float(bits) + 0.5f) - 0x3f000000));
    bits += 0xfff + (bits >> 13 & 1) - 0x38000000;
    return (uint16_t)(sign | bits >> 13);
}

static inline float gg_bf16_to_f32(uint16_t half)
{
    return gg_float((uint32_t)half << 16);
}

/* To nearest, ties to even; a NaN stays a NaN. */
static inline uint16_t gg_f32_to_bf16(float x)
{
    uint32_t bits = gg_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Fields of blocks are little-endian on every machine. */
static inline uint16_t gg_load_u16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline void gg_store_u16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static inline float gg_load_f16(const uint8_t *bytes)
{
    return gg_f16_to_f32(gg_load_u16(bytes));
}

#endif
