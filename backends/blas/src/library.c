/* Opening libraries, and learning what they are. */
#define _GNU_SOURCE /* RTLD_DEEPBIND, dladdr */
#include <dlfcn.h>
#include <stddef.h>

#include "shim.h"

#ifndef RTLD_DEEPBIND /* the GNU C library's alone */
#define RTLD_DEEPBIND 0
#endif

const char *shim_version(void) { return SHIM_VERSION; }

void *shim_open(const char *path, int deep)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
}

const char *shim_error(void)
{
    const char *error = dlerror();
    return error ? error : "unknown error";
}

void *shim_symbol(void *library, const char *name) { return dlsym(library, name); }

const char *shim_file_of(const void *symbol)
{
    Dl_info info;
    return dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : "";
}

int shim_is_ilp64(void *isamax)
{
    const float x[3] = {1, 2, 3};
    const int64_t one = 1, little_endian_three = (int64_t)0xFFFFFFFF00000003u;
    const int little_endian = *(const char *)&one;
    /* As 32 bits the first half counts: 3 elements, or 0 on a big-endian machine. As 64 bits
     * there is a negative number of elements, or 1. The result may be 32 bits wide. */
    const int64_t n = little_endian ? little_endian_three : 1;
    const int64_t index = ((int64_t(*)(const int64_t *, const float *, const int64_t *))isamax)(
        &n, x, &one);
    return ((uint32_t)index == 0) == little_endian;
}

void shim_touch_memory(void *blas_memory_alloc, void *blas_memory_free)
{
    const size_t size = 1 << 21, page = 4096; /* every build's working memory is larger */
    volatile char *memory = ((void *(*)(int))blas_memory_alloc)(0);
    if (!memory)
        return;
    for (size_t i = 0; i < size; i += page)
        memory[i] = 0;
    ((void (*)(void *))blas_memory_free)((void *)memory);
}
