/* What the kernels must know of each element type; a new format is one row in each table. */
#ifndef GG_TRAITS_H
#define GG_TRAITS_H

#include <stddef.h>
#include <stdint.h>

#include "gg.h"

/* The type in which products of a type are computed. */
enum { GG_AS_F32, GG_AS_F64, GG_AS_U32, GG_AS_U64, GG_COMPUTE_COUNT };

enum { GG_MAX_BLOCK = 256 };

/* Encodes n values, a multiple of the block size. */
typedef void (*gg_encode)(const float *source, uint8_t *blocks, int64_t n);

typedef struct {
    int block_size;  /* elements; 0 marks an unknown type */
    int block_bytes;
    int compute;
    int planes;      /* 2 for complex: real and imaginary parts are computed apart */
    gg_encode from_float;
} gg_traits;

extern const gg_traits gg_traits_table[GG_TYPE_COUNT];

/* NULL for a type that is not known. */
static inline const gg_traits *gg_type(int64_t type)
{
    return type >= 0 && type < GG_TYPE_COUNT && gg_traits_table[type].block_size
               ? &gg_traits_table[type]
               : NULL;
}

#endif
