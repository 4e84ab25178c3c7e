/* Products in one compute type: T its C type, GG_SUFFIX its name. */
#define FN(name) GG_PASTE(name, GG_SUFFIX)
#define V FN(vector)
#define VU FN(vector_unaligned)
#define E FN(element)
#define VL FN(VL)
#define NR FN(NR)

/* Operands may lie at any address and be of a type with another name. */
typedef T V __attribute__((vector_size(GG_VECTOR_BYTES)));
typedef T VU __attribute__((vector_size(GG_VECTOR_BYTES), aligned(1), may_alias));
typedef T E __attribute__((aligned(1), may_alias));

enum { VL = GG_VECTOR_BYTES / (int)sizeof(T), NR = 2 * VL };

GG_INLINE void FN(interleave)(const E *const *rows, int64_t k, const int width, T *out)
{
    for (int64_t p = 0; p < k; p++, out += width)
        GG_UNROLL for (int i = 0; i < width; i++)
            out[i] = rows[i][p];
}

GG_INLINE void FN(pack_along_k)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k0,
                                int64_t k, const int width, T *out)
{
    static const T zeros[GG_KC];
    T buffers[2 * VL > MR ? 2 * VL : MR][GG_KC];
    const E *rows[2 * VL > MR ? 2 * VL : MR];
    for (int64_t done = 0; done < lanes; done += width, out += width * k) {
        for (int i = 0; i < width; i++) {
            if (done + i >= lanes) {
                rows[i] = zeros;
                continue;
            }
            gg_run run = k_run(side, lane + done + i);
            rows[i] = fetch(&run, k0, k, buffers[i]);
        }
        FN(interleave)(rows, k, width, out);
    }
}

GG_INLINE void FN(pack_along_lanes)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k0,
                                    int64_t k, const int width, T *out)
{
    char buffer[GG_FETCH_BYTES];
    const int64_t step = 4 * width;
    for (int64_t done = 0; done < lanes; done += step) {
        int64_t n = lanes - done < step ? lanes - done : step;
        for (int64_t p = 0; p < k; p++) {
            gg_run run = lane_run(side, k0 + p);
            const E *row = fetch(&run, lane + done, n, buffer);
            T *panel = out + done * k + p * width;
            int64_t i = 0;
            for (; i + width <= n; i += width, panel += width * k)
                memcpy(panel, row + i, (size_t)width * sizeof(T));
            if (i < n)
                memset(panel, 0, (size_t)width * sizeof(T));
            for (int64_t j = i; j < n; j++)
                panel[j - i] = row[j];
        }
    }
}

GG_INLINE void FN(pack_width)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k0,
                              int64_t k, const int width, T *out)
{
    if (runs_along_k(side))
        FN(pack_along_k)(side, lane, lanes, k0, k, width, out);
    else
        FN(pack_along_lanes)(side, lane, lanes, k0, k, width, out);
}

static void FN(pack)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k0, int64_t k,
                     int width, void *out)
{
    if (width == NR)
        FN(pack_width)(side, lane, lanes, k0, k, NR, out);
    else
        FN(pack_width)(side, lane, lanes, k0, k, MR, out);
}

/* The register tile: MR rows by two vectors, k rank-1 updates. */
GG_INLINE void FN(micro)(int64_t k, const T *restrict a, const T *restrict b, V sums[MR][2])
{
    GG_UNROLL for (int r = 0; r < MR; r++)
        sums[r][0] = sums[r][1] = (V){0};
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        V b0 = *(const V *)b, b1 = *(const V *)(b + VL);
        GG_UNROLL for (int r = 0; r < MR; r++) {
            sums[r][0] += a[r] * b0;
            sums[r][1] += a[r] * b1;
        }
    }
}

GG_INLINE void FN(update_tile)(V sums[MR][2], char *c, int64_t c_row, int how)
{
    GG_UNROLL for (int r = 0; r < MR; r++) {
        VU *row = (VU *)(c + r * c_row);
        GG_UNROLL for (int v = 0; v < 2; v++) {
            V sum = how == GG_SUBTRACT ? -sums[r][v] : sums[r][v];
            if (how != GG_SET)
                sum += row[v];
            row[v] = sum;
        }
    }
}

static void FN(update_edge)(const T *tile, int64_t m, int64_t n, char *c, int64_t c_row, int how)
{
    for (int64_t i = 0; i < m; i++) {
        E *row = (E *)(c + i * c_row);
        for (int64_t j = 0; j < n; j++) {
            T sum = how == GG_SUBTRACT ? -tile[i * NR + j] : tile[i * NR + j];
            row[j] = how == GG_SET ? sum : row[j] + sum;
        }
    }
}

static void FN(multiply)(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c,
                         int64_t c_row, int how)
{
    for (int64_t j = 0; j < n; j += NR)
        for (int64_t i = 0; i < m; i += MR) {
            V sums[MR][2];
            char *corner = (char *)c + i * c_row + j * (int64_t)sizeof(T);
            FN(micro)(k, (const T *)a + i * k, (const T *)b + j * k, sums);
            if (m - i >= MR && n - j >= NR) {
                FN(update_tile)(sums, corner, c_row, how);
                continue;
            }
            FN(update_edge)((const T *)sums, m - i < MR ? m - i : MR, n - j < NR ? n - j : NR,
                            corner, c_row, how);
        }
}

GG_INLINE T FN(total)(V x)
{
    T sum = x[0];
    for (int i = 1; i < VL; i++)
        sum += x[i];
    return sum;
}

/* Dot products of `lanes` lanes with `rows` vectors at a time, which share what they read. */
GG_INLINE void FN(dot_lanes)(const gg_side *side, int64_t lane, const int lanes, int64_t k,
                             const char *x, int64_t x_step, const int rows, T *y, int64_t y_step)
{
    const int unroll = rows == 1 ? 2 : 1;
    char buffers[4][GG_FETCH_BYTES];
    V sums[4][4][2] = {{{{0}}}};
    T rest[4][4] = {{0}};
    const E *w[4];
    gg_run runs[4];
    int64_t step = in_place(side, side->k_stride) ? k : GG_FETCH;
    for (int i = 0; i < lanes; i++)
        runs[i] = k_run(side, lane + i);
    for (int64_t p = 0; p < k; p += step) {
        int64_t n = k - p < step ? k - p : step, j = 0;
        for (int i = 0; i < lanes; i++)
            w[i] = fetch(&runs[i], p, n, buffers[i]);
        for (; j + unroll * VL <= n; j += unroll * VL)
            GG_UNROLL for (int u = 0; u < unroll; u++) {
                V parts[4];
                GG_UNROLL for (int i = 0; i < lanes; i++)
                    parts[i] = *(const VU *)(w[i] + j + u * VL);
                GG_UNROLL for (int r = 0; r < rows; r++) {
                    V xs = *(const VU *)((const E *)(x + r * x_step) + p + j + u * VL);
                    GG_UNROLL for (int i = 0; i < lanes; i++)
                        sums[r][i][u] += xs * parts[i];
                }
            }
        for (; j < n; j++)
            for (int r = 0; r < rows; r++)
                for (int i = 0; i < lanes; i++)
                    rest[r][i] += ((const E *)(x + r * x_step))[p + j] * w[i][j];
    }
    GG_UNROLL for (int r = 0; r < rows; r++)
        GG_UNROLL for (int i = 0; i < lanes; i++)
            y[r * y_step + i] = FN(total)(sums[r][i][0] + sums[r][i][1]) + rest[r][i];
}

GG_INLINE void FN(gemv_along_k)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k,
                                const char *x, int64_t x_step, const int rows, T *y,
                                int64_t y_step)
{
    int64_t i = 0;
    while (i < lanes && dot_in_blocks(side, lane + i, k, x, x_step, rows, y + i, y_step))
        i++;
    for (; i + 4 <= lanes; i += 4)
        FN(dot_lanes)(side, lane + i, 4, k, x, x_step, rows, y + i, y_step);
    for (; i < lanes; i++)
        FN(dot_lanes)(side, lane + i, 1, k, x, x_step, rows, y + i, y_step);
}

/* y += x[p] * row p + ... for `count` k at a time, which share the access to y. */
GG_INLINE void FN(add_rows)(const gg_side *side, int64_t lane, int64_t n, int64_t p,
                            const int count, const char *x, int64_t x_step, const int rows, T *y,
                            int64_t y_step)
{
    char buffers[4][GG_FETCH_BYTES];
    const E *w[4];
    T factors[4][4];
    for (int i = 0; i < count; i++) {
        gg_run run = lane_run(side, p + i);
        w[i] = fetch(&run, lane, n, buffers[i]);
        for (int r = 0; r < rows; r++)
            factors[r][i] = ((const E *)(x + r * x_step))[p + i];
    }
    int64_t j = 0;
    for (; j + VL <= n; j += VL)
        GG_UNROLL for (int r = 0; r < rows; r++) {
            V sum = *(const VU *)(y + r * y_step + j);
            GG_UNROLL for (int i = 0; i < count; i++)
                sum += factors[r][i] * *(const VU *)(w[i] + j);
            *(VU *)(y + r * y_step + j) = sum;
        }
    for (; j < n; j++)
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < count; i++)
                y[r * y_step + j] += factors[r][i] * w[i][j];
}

GG_INLINE void FN(gemv_along_lanes)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k,
                                    const char *x, int64_t x_step, const int rows, T *y,
                                    int64_t y_step)
{
    int64_t step = in_place(side, side->lane_stride) ? lanes : GG_FETCH;
    for (int r = 0; r < rows; r++)
        memset(y + r * y_step, 0, (size_t)lanes * sizeof(T));
    for (int64_t done = 0; done < lanes; done += step) {
        int64_t n = lanes - done < step ? lanes - done : step, p = 0;
        for (; p + 4 <= k; p += 4)
            FN(add_rows)(side, lane + done, n, p, 4, x, x_step, rows, y + done, y_step);
        for (; p < k; p++)
            FN(add_rows)(side, lane + done, n, p, 1, x, x_step, rows, y + done, y_step);
    }
}

GG_INLINE void FN(gemv_rows)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k,
                             const char *x, int64_t x_step, const int rows, T *y, int64_t y_step)
{
    if (runs_along_k(side))
        FN(gemv_along_k)(side, lane, lanes, k, x, x_step, rows, y, y_step);
    else
        FN(gemv_along_lanes)(side, lane, lanes, k, x, x_step, rows, y, y_step);
}

static void FN(gemv)(const gg_side *side, int64_t lane, int64_t lanes, int64_t k, const void *x,
                     int64_t x_step, int rows, void *y, int64_t y_step)
{
    switch (rows) {
    case 1: FN(gemv_rows)(side, lane, lanes, k, x, x_step, 1, y, y_step); break;
    case 2: FN(gemv_rows)(side, lane, lanes, k, x, x_step, 2, y, y_step); break;
    case 3: FN(gemv_rows)(side, lane, lanes, k, x, x_step, 3, y, y_step); break;
    default: FN(gemv_rows)(side, lane, lanes, k, x, x_step, 4, y, y_step);
    }
}

#undef FN
#undef V
#undef VU
#undef E
#undef VL
#undef NR
