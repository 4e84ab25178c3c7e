/* Thread pools that survive fork, never wait for a worker that has not started, and let idle
 * workers sleep. A pool runs one job at a time; a nested or concurrent one runs on its caller.
 * Jobs run on the pool that their thread uses (gg_pool_use in gg.h), else on one that all share.
 * Workers are started when a job first wants them. */
#ifndef GG_POOL_H
#define GG_POOL_H

#include <stdint.h>

#include "gg.h"

/* Whether gg_set_abort is on. */
int gg_is_aborted(void);

/* How many of n_threads are worth waking for about `microseconds` of work. */
int gg_useful_threads(int n_threads, double microseconds);

#endif
