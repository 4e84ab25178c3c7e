#include "workspace.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Fresh memory costs a page fault for every page, about as much as a medium product, so one
 * piece is kept. A call that finds it taken allocates its own. */
enum { ALIGNMENT = 64, LARGEST_KEPT = 16 << 20 };

static struct {
    atomic_flag taken;
    void *_Atomic memory;
    size_t size;
} kept = {ATOMIC_FLAG_INIT, NULL, 0};

static void *allocate(size_t size)
{
    return aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void *take_kept(size_t size)
{
    if (kept.size < size) {
        free(kept.memory);
        kept.memory = allocate(size);
        kept.size = kept.memory ? size : 0;
    }
    return kept.memory;
}

void *gg_workspace_take(size_t size)
{
    if (size > LARGEST_KEPT || atomic_flag_test_and_set(&kept.taken))
        return allocate(size);
    void *memory = take_kept(size);
    if (!memory)
        atomic_flag_clear(&kept.taken);
    return memory;
}

/* `kept.memory` only changes while the piece is taken, so it can equal `memory` only for the
 * caller that holds it. */
void gg_workspace_give(void *memory)
{
    if (memory == kept.memory)
        atomic_flag_clear(&kept.taken);
    else
        free(memory);
}
