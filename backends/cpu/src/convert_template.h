/* Conversions of rows between storage types and compute types. */
#if defined(__F16C__)
#include <immintrin.h>
#endif

static void decode_f16(const uint8_t *source, void *out, int64_t n)
{
    float *y = out;
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(source + 2 * i))));
#endif
    for (; i < n; i++) {
        uint16_t half;
        memcpy(&half, source + 2 * i, 2);
        y[i] = gg_f16_to_f32(half);
    }
}

static void decode_bf16(const uint8_t *source, void *out, int64_t n)
{
    float *y = out;
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, source + 2 * i, 2);
        y[i] = gg_bf16_to_f32(half);
    }
}

#if defined(__AVX2__)

/* Sixteen codes of 8 bits as floats. */
GG_INLINE void spread_codes(__m128i codes, __m256 w[2])
{
    w[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
    w[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(codes, codes)));
}

GG_INLINE __m256 spread_f16(const uint8_t *bytes)
{
    return _mm256_set1_ps(_cvtsh_ss(gg_load_u16(bytes)));
}

/* The 32 codes of a block of nibbles less `offset`. */
GG_INLINE void spread_nibbles(const uint8_t *bytes, int offset, __m256 w[4])
{
    const __m128i nibble = _mm_set1_epi8(15), shift = _mm_set1_epi8((char)offset);
    __m128i codes = _mm_loadu_si128((const __m128i *)bytes);
    spread_codes(_mm_sub_epi8(_mm_and_si128(codes, nibble), shift), w);
    codes = _mm_and_si128(_mm_srli_epi16(codes, 4), nibble);
    spread_codes(_mm_sub_epi8(codes, shift), w + 2);
}

GG_INLINE void expand_q4_0(const uint8_t *block, __m256 w[4])
{
    __m256 d = spread_f16(block);
    spread_nibbles(block + 2, 8, w);
    GG_UNROLL for (int i = 0; i < 4; i++)
        w[i] *= d;
}

GG_INLINE void expand_q4_1(const uint8_t *block, __m256 w[4])
{
    __m256 d = spread_f16(block), least = spread_f16(block + 2);
    spread_nibbles(block + 4, 0, w);
    GG_UNROLL for (int i = 0; i < 4; i++)
        w[i] = w[i] * d + least;
}

GG_INLINE void expand_q8_0(const uint8_t *block, __m256 w[4])
{
    __m256 d = spread_f16(block);
    spread_codes(_mm_loadu_si128((const __m128i *)(block + 2)), w);
    spread_codes(_mm_loadu_si128((const __m128i *)(block + 18)), w + 2);
    GG_UNROLL for (int i = 0; i < 4; i++)
        w[i] *= d;
}

typedef void (*expand_block)(const uint8_t *block, __m256 w[4]);

GG_INLINE void decode_blocks(expand_block expand, int bytes, const uint8_t *block, float *y,
                             int64_t n)
{
    for (; n > 0; n -= 32, block += bytes, y += 32) {
        __m256 w[4];
        expand(block, w);
        GG_UNROLL for (int i = 0; i < 4; i++)
            _mm256_storeu_ps(y + 8 * i, w[i]);
    }
}

GG_INLINE float total_of(__m256 x)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

GG_INLINE void dot_rows(expand_block expand, int bytes, const uint8_t *block, int64_t k,
                        const char *x, int64_t x_step, const int rows, float *y, int64_t y_step)
{
    const int chains = rows == 1 ? 4 : 2; /* enough sums in flight to hide their latency */
    __m256 sums[GG_GEMV_ROWS][4];
    GG_UNROLL for (int r = 0; r < rows; r++)
        GG_UNROLL for (int i = 0; i < 4; i++)
            sums[r][i] = _mm256_setzero_ps();
    for (; k > 0; k -= 32, block += bytes, x += 32 * sizeof(float)) {
        __m256 w[4];
        expand(block, w);
        GG_UNROLL for (int r = 0; r < rows; r++)
            GG_UNROLL for (int i = 0; i < 4; i++)
                sums[r][i % chains] += w[i] * _mm256_loadu_ps((const float *)(x + r * x_step) + 8 * i);
    }
    GG_UNROLL for (int r = 0; r < rows; r++)
        y[r * y_step] = total_of((sums[r][0] + sums[r][1]) + (sums[r][2] + sums[r][3]));
}

GG_INLINE void dot_blocks(expand_block expand, int bytes, const uint8_t *block, int64_t k,
                          const char *x, int64_t x_step, int rows, float *y, int64_t y_step)
{
    switch (rows) {
    case 1: dot_rows(expand, bytes, block, k, x, x_step, 1, y, y_step); break;
    case 2: dot_rows(expand, bytes, block, k, x, x_step, 2, y, y_step); break;
    case 3: dot_rows(expand, bytes, block, k, x, x_step, 3, y, y_step); break;
    default: dot_rows(expand, bytes, block, k, x, x_step, 4, y, y_step);
    }
}

#define DEFINE_BLOCK_KERNELS(NAME, BYTES)                                                \
    static void decode_##NAME(const uint8_t *source, void *out, int64_t n)               \
    {                                                                                    \
        decode_blocks(expand_##NAME, BYTES, source, out, n);                             \
    }                                                                                    \
    static void dot_##NAME(const uint8_t *blocks, int64_t k, const char *x,              \
                           int64_t x_step, int rows, float *y, int64_t y_step)           \
    {                                                                                    \
        dot_blocks(expand_##NAME, BYTES, blocks, k, x, x_step, rows, y, y_step);         \
    }

DEFINE_BLOCK_KERNELS(q4_0, 18)
DEFINE_BLOCK_KERNELS(q4_1, 20)
DEFINE_BLOCK_KERNELS(q8_0, 34)

#else

static void decode_q4_0(const uint8_t *block, void *out, int64_t n)
{
    float *restrict y = out;
    for (; n > 0; n -= 32, block += 18, y += 32) {
        const uint8_t *codes = block + 2;
        float d = gg_load_f16(block);
        for (int j = 0; j < 16; j++)
            y[j] = (float)((codes[j] & 15) - 8) * d;
        for (int j = 0; j < 16; j++)
            y[j + 16] = (float)((codes[j] >> 4) - 8) * d;
    }
}

static void decode_q4_1(const uint8_t *block, void *out, int64_t n)
{
    float *restrict y = out;
    for (; n > 0; n -= 32, block += 20, y += 32) {
        const uint8_t *codes = block + 4;
        float d = gg_load_f16(block), least = gg_load_f16(block + 2);
        for (int j = 0; j < 16; j++)
            y[j] = (float)(codes[j] & 15) * d + least;
        for (int j = 0; j < 16; j++)
            y[j + 16] = (float)(codes[j] >> 4) * d + least;
    }
}

static void decode_q8_0(const uint8_t *block, void *out, int64_t n)
{
    float *restrict y = out;
    for (; n > 0; n -= 32, block += 34, y += 32) {
        const int8_t *codes = (const int8_t *)(block + 2);
        float d = gg_load_f16(block);
        for (int j = 0; j < 32; j++)
            y[j] = (float)codes[j] * d;
    }
}

#endif

/* Modulo 2^8 and 2^16 the sign of a factor does not matter. */
static void decode_8(const uint8_t *source, void *out, int64_t n)
{
    uint32_t *y = out;
    for (int64_t i = 0; i < n; i++)
        y[i] = source[i];
}

static void decode_16(const uint8_t *source, void *out, int64_t n)
{
    uint32_t *y = out;
    for (int64_t i = 0; i < n; i++) {
        uint16_t value;
        memcpy(&value, source + 2 * i, 2);
        y[i] = value;
    }
}

static void store_f16(const void *re, const void *im, void *out, int64_t n)
{
    const float *x = re;
    char *y = out;
    int64_t i = 0;
    (void)im;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + 2 * i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) {
        uint16_t half = gg_f32_to_f16(x[i]);
        memcpy(y + 2 * i, &half, 2);
    }
}

static void store_bf16(const void *re, const void *im, void *out, int64_t n)
{
    const float *x = re;
    char *y = out;
    (void)im;
    for (int64_t i = 0; i < n; i++) {
        uint16_t half = gg_f32_to_bf16(x[i]);
        memcpy(y + 2 * i, &half, 2);
    }
}

static void store_8(const void *re, const void *im, void *out, int64_t n)
{
    const uint32_t *x = re;
    uint8_t *y = out;
    (void)im;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint8_t)x[i];
}

static void store_16(const void *re, const void *im, void *out, int64_t n)
{
    const uint32_t *x = re;
    char *y = out;
    (void)im;
    for (int64_t i = 0; i < n; i++) {
        uint16_t value = (uint16_t)x[i];
        memcpy(y + 2 * i, &value, 2);
    }
}

static void store_c64(const void *re, const void *im, void *out, int64_t n)
{
    const float *x = re, *y = im;
    char *z = out;
    for (int64_t i = 0; i < n; i++) {
        memcpy(z + 8 * i, x + i, 4);
        memcpy(z + 8 * i + 4, y + i, 4);
    }
}

static void store_c128(const void *re, const void *im, void *out, int64_t n)
{
    const double *x = re, *y = im;
    char *z = out;
    for (int64_t i = 0; i < n; i++) {
        memcpy(z + 16 * i, x + i, 8);
        memcpy(z + 16 * i + 8, y + i, 8);
    }
}

static const gg_decode decoders[GG_TYPE_COUNT] = {
    [GG_F16] = decode_f16,   [GG_BF16] = decode_bf16, [GG_Q4_0] = decode_q4_0,
    [GG_Q4_1] = decode_q4_1, [GG_Q8_0] = decode_q8_0, [GG_I8] = decode_8,
    [GG_U8] = decode_8,      [GG_I16] = decode_16,    [GG_U16] = decode_16,
};

static const gg_store stores[GG_TYPE_COUNT] = {
    [GG_F16] = store_f16, [GG_BF16] = store_bf16, [GG_I8] = store_8,   [GG_U8] = store_8,
    [GG_I16] = store_16,  [GG_U16] = store_16,    [GG_C64] = store_c64, [GG_C128] = store_c128,
};

/* Adds up x * w without writing w to memory: y[r] = sum over k of x[r, k] * blocks[k], as gemv.
 * A format without one is decoded first. */
typedef void (*dot_function)(const uint8_t *blocks, int64_t k, const char *x, int64_t x_step,
                             int rows, float *y, int64_t y_step);

static const dot_function dots[GG_TYPE_COUNT] = {
#if defined(__AVX2__)
    [GG_Q4_0] = dot_q4_0,
    [GG_Q4_1] = dot_q4_1,
    [GG_Q8_0] = dot_q8_0,
#else
    NULL,
#endif
};
