#include "traits.h"

#include <math.h>

#include "half.h"

/* The quantizers follow ggml's reference ones operation by operation, so that the bytes are the
 * same; they are compiled without contraction of a * b + c. */

static float limited(float x, float low, float high)
{
    return x > low ? (x < high ? x : high) : low; /* NaN gives low */
}

static uint8_t nibble(float x)
{
    return (uint8_t)limited(x, 0.0f, 15.0f);
}

static float inverse(float d)
{
    return d != 0.0f ? 1.0f / d : 0.0f;
}

static void encode_q4_0(const float *x, uint8_t *block, int64_t n)
{
    for (; n > 0; n -= 32, x += 32, block += 18) {
        float largest = 0.0f; /* with its sign */
        for (int j = 0; j < 32; j++)
            if (fabsf(x[j]) > fabsf(largest))
                largest = x[j];
        float d = largest / -8.0f, scale = inverse(d);
        gg_store_u16(block, gg_f32_to_f16(d));
        for (int j = 0; j < 16; j++) {
            int low = nibble(x[j] * scale + 8.5f), high = nibble(x[j + 16] * scale + 8.5f);
            block[2 + j] = (uint8_t)(low | high << 4);
        }
    }
}

static void encode_q4_1(const float *x, uint8_t *block, int64_t n)
{
    for (; n > 0; n -= 32, x += 32, block += 20) {
        float least = x[0], most = x[0];
        for (int j = 1; j < 32; j++) {
            least = x[j] < least ? x[j] : least;
            most = x[j] > most ? x[j] : most;
        }
        float d = (most - least) / 15.0f, scale = inverse(d);
        gg_store_u16(block, gg_f32_to_f16(d));
        gg_store_u16(block + 2, gg_f32_to_f16(least));
        for (int j = 0; j < 16; j++) {
            int low = nibble((x[j] - least) * scale + 0.5f);
            int high = nibble((x[j + 16] - least) * scale + 0.5f);
            block[4 + j] = (uint8_t)(low | high << 4);
        }
    }
}

static void encode_q8_0(const float *x, uint8_t *block, int64_t n)
{
    for (; n > 0; n -= 32, x += 32, block += 34) {
        float largest = 0.0f;
        for (int j = 0; j < 32; j++)
            largest = fabsf(x[j]) > largest ? fabsf(x[j]) : largest;
        float d = largest / 127.0f, scale = inverse(d);
        gg_store_u16(block, gg_f32_to_f16(d));
        for (int j = 0; j < 32; j++)
            block[2 + j] = (uint8_t)(int8_t)limited(roundf(x[j] * scale), -127.0f, 127.0f);
    }
}

const gg_traits gg_traits_table[GG_TYPE_COUNT] = {
    [GG_F32] = {1, 4, GG_AS_F32, 1, NULL},
    [GG_F16] = {1, 2, GG_AS_F32, 1, NULL},
    [GG_BF16] = {1, 2, GG_AS_F32, 1, NULL},
    [GG_F64] = {1, 8, GG_AS_F64, 1, NULL},
    [GG_C64] = {1, 8, GG_AS_F32, 2, NULL},
    [GG_C128] = {1, 16, GG_AS_F64, 2, NULL},
    [GG_I8] = {1, 1, GG_AS_U32, 1, NULL},
    [GG_U8] = {1, 1, GG_AS_U32, 1, NULL},
    [GG_I16] = {1, 2, GG_AS_U32, 1, NULL},
    [GG_U16] = {1, 2, GG_AS_U32, 1, NULL},
    [GG_I32] = {1, 4, GG_AS_U32, 1, NULL},
    [GG_U32] = {1, 4, GG_AS_U32, 1, NULL},
    [GG_I64] = {1, 8, GG_AS_U64, 1, NULL},
    [GG_U64] = {1, 8, GG_AS_U64, 1, NULL},
    [GG_Q4_0] = {32, 18, GG_AS_F32, 1, encode_q4_0},
    [GG_Q4_1] = {32, 20, GG_AS_F32, 1, encode_q4_1},
    [GG_Q8_0] = {32, 34, GG_AS_F32, 1, encode_q8_0},
};

int64_t gg_block_size(int type)
{
    const gg_traits *traits = gg_type(type);
    return traits ? traits->block_size : 0;
}
