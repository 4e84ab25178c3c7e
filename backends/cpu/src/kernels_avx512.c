/* Compiled with AVX-512 F, BW, DQ and VL. */
#define GG_NAME avx512
#define GG_VECTOR_BYTES 64
#define GG_MR 14
#include "kernels_template.h"
