/* A thread pool that survives fork, never waits for a worker that has not started, and lets
 * idle workers sleep. One job runs at a time; a nested or concurrent one runs on its caller. */
#ifndef GG_POOL_H
#define GG_POOL_H

#include <stdint.h>

/* Works on the items begin <= i < end; slot < n_threads tells the participants apart. */
typedef void (*gg_task)(void *arg, int slot, int64_t begin, int64_t end);

/* Calls task over 0..n in pieces of `chunk` items, on at most n_threads threads, the caller
 * among them. Returns GG_SUCCESS, or GG_ABORTED when the abort flag ended it early. */
int gg_parallel_for(int n_threads, int64_t n, int64_t chunk, gg_task task, void *arg);

/* While on, jobs stop before their next piece. */
void gg_set_abort(int on);

/* How many of n_threads are worth waking for about `microseconds` of work. */
int gg_useful_threads(int n_threads, double microseconds);

#endif
