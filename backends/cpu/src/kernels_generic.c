/* For every machine: the compiler maps the vectors to SSE2, NEON, the z vector facility, or
 * plain registers. */
#define GG_NAME generic
#define GG_VECTOR_BYTES 16
#if defined(__aarch64__) || defined(__s390x__)
#define GG_MR 10 /* 32 registers */
#else
#define GG_MR 6
#endif
#include "kernels_template.h"
