#define _POSIX_C_SOURCE 200809L
#include "pool.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "waiting.h"

enum { SPINS = 2000, MAX_WORKERS = GG_MAX_THREADS - 1 };

/* The top bit of `state` says that a job takes workers; the rest counts those at work. */
#define OPEN 0x80000000u

struct gg_pool {
    _Atomic uint32_t generation; /* bumped for every job; sleeping workers wait on it */
    _Atomic uint32_t state;
    _Atomic uint32_t finished; /* set when the last worker leaves a closed job */
    _Atomic int sleepers;
    _Atomic int busy; /* held by who runs a job; guards what is not atomic here */
    _Atomic int joined;
    _Atomic int paused; /* workers sleep at once when they have nothing to do */
    _Atomic int ending;
    _Atomic int64_t next;
    int limit; /* threads of a job */
    int n_workers;
    int n_threads;
    int64_t n, chunk;
    gg_task task;
    void *arg;
    gg_pool *following; /* in the list of all */
    pthread_t workers[MAX_WORKERS];
};

static gg_pool shared = {.limit = GG_MAX_THREADS};
static gg_pool *all = &shared;
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;

/* The pool of this thread's jobs. A worker's is its own, which is busy: what it asks for, it does
 * alone. */
static _Thread_local gg_pool *used;

static _Atomic int abort_flag;

static void before_fork(void)
{
    pthread_mutex_lock(&all_mutex);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&all_mutex);
}

/* Threads do not survive fork: the child starts with empty pools. */
static void in_child(void)
{
    for (gg_pool *pool = all; pool; pool = pool->following) {
        atomic_store(&pool->state, 0);
        atomic_store(&pool->sleepers, 0);
        pool->n_workers = 0;
        atomic_store(&pool->busy, 0);
    }
    gg_reset_waiting();
    pthread_mutex_unlock(&all_mutex);
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void survive_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void take_pieces(gg_pool *pool, int slot)
{
    while (!gg_is_aborted()) {
        int64_t begin = atomic_fetch_add(&pool->next, pool->chunk);
        if (begin >= pool->n)
            return;
        pool->task(pool->arg, slot, begin, smaller(begin + pool->chunk, pool->n));
    }
}

static uint32_t wait_for_job(gg_pool *pool, uint32_t seen)
{
    int spins = 0;
    uint32_t now;
    while ((now = atomic_load(&pool->generation)) == seen) {
        if (spins++ < SPINS && !atomic_load(&pool->paused)) {
            gg_relax();
            continue;
        }
        atomic_fetch_add(&pool->sleepers, 1);
        gg_wait_while(&pool->generation, seen);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
    return now;
}

/* True when the job still takes workers; then its caller will wait for this one. */
static int enter_job(gg_pool *pool)
{
    uint32_t state = atomic_load(&pool->state);
    while (state & OPEN)
        if (atomic_compare_exchange_weak(&pool->state, &state, state + 1))
            return 1;
    return 0;
}

static void leave_job(gg_pool *pool)
{
    if (atomic_fetch_sub(&pool->state, 1) == 1) {
        atomic_store(&pool->finished, 1);
        gg_wake(&pool->finished, 1);
    }
}

/* The generation is read before the pool is looked at, so that no change goes unseen. */
static void *worker(void *arg)
{
    gg_pool *pool = used = arg;
    uint32_t seen = atomic_load(&pool->generation);
    while (!atomic_load(&pool->ending)) {
        if (enter_job(pool)) {
            int slot = atomic_fetch_add(&pool->joined, 1);
            if (slot < pool->n_threads)
                take_pieces(pool, slot);
            leave_job(pool);
        }
        seen = wait_for_job(pool, seen);
    }
    return NULL;
}

/* Signals belong to the program's own threads, so workers are born with all of them blocked. */
static void start_workers(gg_pool *pool, int wanted)
{
    sigset_t every, old;
    if (pool->n_workers >= wanted)
        return;
    survive_forks();
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
    while (pool->n_workers < wanted) {
        if (pthread_create(&pool->workers[pool->n_workers], NULL, worker, pool))
            break; /* fewer threads are still right, only slower */
        pool->n_workers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void end_workers(gg_pool *pool)
{
    atomic_store(&pool->ending, 1);
    atomic_fetch_add(&pool->generation, 1);
    gg_wake(&pool->generation, INT_MAX);
    for (int i = 0; i < pool->n_workers; i++)
        pthread_join(pool->workers[i], NULL);
}

static int run_alone(int64_t n, int64_t chunk, gg_task task, void *arg)
{
    for (int64_t begin = 0; begin < n; begin += chunk) {
        if (gg_is_aborted())
            return GG_ABORTED;
        task(arg, 0, begin, smaller(begin + chunk, n));
    }
    return GG_SUCCESS;
}

/* After this no worker can enter; those inside are finishing their last piece. */
static void close_job(gg_pool *pool)
{
    int spins = 0;
    atomic_fetch_and(&pool->state, ~OPEN);
    while (atomic_load(&pool->state)) {
        if (spins++ < SPINS)
            gg_relax();
        else
            gg_wait_while(&pool->finished, 0);
    }
}

static int run_together(gg_pool *pool, int n_threads, int64_t n, int64_t chunk, gg_task task,
                        void *arg)
{
    gg_pool_resume(pool);
    start_workers(pool, n_threads - 1);
    pool->task = task;
    pool->arg = arg;
    pool->n = n;
    pool->chunk = chunk;
    pool->n_threads = n_threads;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->joined, 1);
    atomic_store(&pool->finished, 0);
    atomic_store(&pool->state, OPEN);
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers))
        gg_wake(&pool->generation, n_threads - 1);
    take_pieces(pool, 0);
    close_job(pool);
    return atomic_load(&pool->next) >= n ? GG_SUCCESS : GG_ABORTED;
}

int gg_parallel_for(int n_threads, int64_t n, int64_t chunk, gg_task task, void *arg)
{
    if (n_threads <= 1 || n <= chunk)
        return run_alone(n, chunk, task, arg);
    gg_pool *pool = used ? used : &shared;
    n_threads = (int)smaller(n_threads, pool->limit);
    if (n_threads == 1 || atomic_exchange(&pool->busy, 1))
        return run_alone(n, chunk, task, arg);
    int status = run_together(pool, n_threads, n, chunk, task, arg);
    atomic_store(&pool->busy, 0);
    return status;
}

gg_pool *gg_pool_new(int n_threads)
{
    gg_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    survive_forks();
    pool->limit = n_threads < 1 ? 1 : (int)smaller(n_threads, GG_MAX_THREADS);
    pthread_mutex_lock(&all_mutex);
    pool->following = all;
    all = pool;
    pthread_mutex_unlock(&all_mutex);
    return pool;
}

void gg_pool_free(gg_pool *pool)
{
    end_workers(pool);
    pthread_mutex_lock(&all_mutex);
    gg_pool **link = &all;
    while (*link != pool)
        link = &(*link)->following;
    *link = pool->following;
    pthread_mutex_unlock(&all_mutex);
    free(pool);
}

void gg_pool_pause(gg_pool *pool)
{
    atomic_store(&pool->paused, 1);
}

void gg_pool_resume(gg_pool *pool)
{
    if (atomic_load(&pool->paused))
        atomic_store(&pool->paused, 0);
}

int gg_pool_is_paused(gg_pool *pool)
{
    return atomic_load(&pool->paused);
}

gg_pool *gg_pool_use(gg_pool *pool)
{
    gg_pool *before = used;
    used = pool;
    return before;
}

void gg_set_abort(int on)
{
    atomic_store(&abort_flag, on);
}

int gg_is_aborted(void)
{
    return atomic_load_explicit(&abort_flag, memory_order_relaxed);
}

int gg_useful_threads(int n_threads, double microseconds)
{
    const double per_thread = 50.0;
    double useful = microseconds / per_thread;
    return useful >= n_threads ? n_threads : useful < 1.0 ? 1 : (int)useful;
}
