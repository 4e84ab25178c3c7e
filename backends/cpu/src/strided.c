#include <string.h>

#include "kernels.h"

#define COPY_ELEMENTS(SIZE)                                       \
    case SIZE:                                                    \
        for (int64_t i = 0; i < n; i++)                           \
            memcpy(out + i * out_step, source + i * step, SIZE);  \
        break;

static void copy_elements(const char *source, int64_t step, int size, int64_t n, char *out,
                          int64_t out_step)
{
    switch (size) {
        COPY_ELEMENTS(1)
        COPY_ELEMENTS(2)
        COPY_ELEMENTS(4)
        COPY_ELEMENTS(8)
        COPY_ELEMENTS(16)
    }
}

void gg_gather(const char *source, int64_t stride, int size, int64_t n, char *out)
{
    copy_elements(source, stride, size, n, out, size);
}

void gg_scatter(const char *source, int size, int64_t n, char *out, int64_t stride)
{
    copy_elements(source, size, size, n, out, stride);
}
