/* Compiled with AVX2, FMA and F16C. */
#define GG_NAME avx2
#define GG_VECTOR_BYTES 32
#define GG_MR 6
#include "kernels_template.h"
