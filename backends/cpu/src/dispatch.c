#include <stddef.h>
#include <string.h>

#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static int always(void)
{
    return 1;
}

/* The better ones come first. */
static const struct {
    const gg_isa *isa;
    int (*usable)(void);
} choices[] = {
#if defined(__x86_64__)
    {&gg_isa_avx512, has_avx512},
    {&gg_isa_avx2, has_avx2},
#endif
    {&gg_isa_generic, always},
};

enum { N_CHOICES = sizeof choices / sizeof choices[0] };

static const gg_isa *_Atomic current;

const gg_isa *gg_current_isa(void)
{
    return current;
}

int gg_select_isa(const char *name)
{
    for (int i = 0; i < N_CHOICES; i++)
        if ((!name || !strcmp(name, choices[i].isa->name)) && choices[i].usable()) {
            current = choices[i].isa;
            return 0;
        }
    return 1;
}

const char *gg_isa_name(void)
{
    const gg_isa *isa = current;
    return isa ? isa->name : NULL;
}

const char *gg_usable_isa(int index)
{
    for (int i = 0; i < N_CHOICES; i++)
        if (choices[i].usable() && index-- == 0)
            return choices[i].isa->name;
    return NULL;
}

const char *gg_version(void)
{
    return GG_VERSION;
}
