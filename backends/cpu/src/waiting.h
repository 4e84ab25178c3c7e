/* How threads sleep until a word changes. */
#ifndef GG_WAITING_H
#define GG_WAITING_H

#include <stdatomic.h>
#include <stdint.h>

/* Returns once the word may have another value; a change is followed by gg_wake. */
void gg_wait_while(_Atomic uint32_t *word, uint32_t value);

/* Wakes at least `count` of the threads that wait for this word. */
void gg_wake(_Atomic uint32_t *word, int count);

/* In the child of a fork: nobody waits. */
void gg_reset_waiting(void);

/* For a loop that expects its end soon. */
static inline void gg_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
