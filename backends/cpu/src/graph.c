/* Graphs of prepared jobs. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "pool.h"

static int64_t microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int compute(const gg_job *job, void **addresses, int n_threads)
{
    const int64_t *p = job->parameters;
    const void *a = addresses[job->a], *b = addresses[job->b];
    void *out = addresses[job->out];
    switch (job->op) {
    case GG_MATMUL:
        return gg_matmul(a, b, out, p, n_threads);
    case GG_OUT_PROD:
        return gg_out_prod((int)p[0], a, b, out, p[1], p[2], p[3], p[4], p[5], n_threads);
    case GG_TO_FLOAT:
        return gg_to_float(a, out, p, n_threads);
    case GG_FROM_FLOAT:
        return gg_from_float((int)p[0], a, out, p[1], n_threads);
    default:
        return GG_FAILED;
    }
}

int gg_graph_compute(const gg_job *jobs, int64_t n, void **addresses, int64_t limit, int n_threads,
                     int64_t *done)
{
    int64_t begin = microseconds();
    while (*done < n) {
        const gg_job *job = &jobs[*done];
        int status = GG_SUCCESS;
        if (gg_is_aborted())
            return GG_ABORTED;
        if (addresses[job->out])
            status = compute(job, addresses, n_threads);
        if (status)
            return status;
        ++*done;
        if (microseconds() - begin >= limit)
            break;
    }
    return GG_SUCCESS;
}
