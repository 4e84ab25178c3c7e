#if defined(__linux__)
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "gg.h"
#include "pool.h"

enum { SPINS = 2000, MAX_WORKERS = 1023 };

/* The top bit of `state` says that a job takes workers; the rest counts those at work. */
#define OPEN 0x80000000u

static struct {
    _Atomic uint32_t generation; /* bumped for every job; sleeping workers wait on it */
    _Atomic uint32_t state;
    _Atomic uint32_t finished; /* set when the last worker leaves a closed job */
    _Atomic int sleepers;
    _Atomic int busy;
    _Atomic int joined;
    _Atomic int64_t next;
    int n_workers;
    int n_threads;
    int64_t n, chunk;
    gg_task task;
    void *arg;
} pool;

static _Atomic int abort_flag;

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#if defined(__linux__)
static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void reset_waiting(void) {}
#else
static pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_cond = PTHREAD_COND_INITIALIZER;

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
    pthread_mutex_lock(&wait_mutex);
    while (atomic_load(word) == value)
        pthread_cond_wait(&wait_cond, &wait_mutex);
    pthread_mutex_unlock(&wait_mutex);
}

static void wake(_Atomic uint32_t *word, int count)
{
    (void)word;
    (void)count;
    pthread_mutex_lock(&wait_mutex);
    pthread_cond_broadcast(&wait_cond);
    pthread_mutex_unlock(&wait_mutex);
}

static void reset_waiting(void)
{
    pthread_mutex_init(&wait_mutex, NULL);
    pthread_cond_init(&wait_cond, NULL);
}
#endif

/* Threads do not survive fork: the child starts with an empty pool. */
static void reset_in_child(void)
{
    atomic_store(&pool.state, 0);
    atomic_store(&pool.sleepers, 0);
    pool.n_workers = 0;
    reset_waiting();
    atomic_store(&pool.busy, 0);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void take_pieces(int slot)
{
    while (!atomic_load_explicit(&abort_flag, memory_order_relaxed)) {
        int64_t begin = atomic_fetch_add(&pool.next, pool.chunk);
        if (begin >= pool.n)
            return;
        pool.task(pool.arg, slot, begin, smaller(begin + pool.chunk, pool.n));
    }
}

static uint32_t wait_for_job(uint32_t seen)
{
    int spins = 0;
    uint32_t now;
    while ((now = atomic_load(&pool.generation)) == seen) {
        if (spins++ < SPINS) {
            cpu_relax();
            continue;
        }
        atomic_fetch_add(&pool.sleepers, 1);
        wait_while(&pool.generation, seen);
        atomic_fetch_sub(&pool.sleepers, 1);
    }
    return now;
}

/* True when the job still takes workers; then its caller will wait for this one. */
static int enter_job(void)
{
    uint32_t state = atomic_load(&pool.state);
    while (state & OPEN)
        if (atomic_compare_exchange_weak(&pool.state, &state, state + 1))
            return 1;
    return 0;
}

static void leave_job(void)
{
    if (atomic_fetch_sub(&pool.state, 1) == 1) {
        atomic_store(&pool.finished, 1);
        wake(&pool.finished, 1);
    }
}

static void *worker(void *seen)
{
    uint32_t generation = (uint32_t)(uintptr_t)seen;
    for (;;) {
        generation = wait_for_job(generation);
        if (!enter_job())
            continue;
        int slot = atomic_fetch_add(&pool.joined, 1);
        if (slot < pool.n_threads)
            take_pieces(slot);
        leave_job();
    }
    return NULL;
}

static void register_fork_handler(void)
{
    pthread_atfork(NULL, NULL, reset_in_child);
}

/* Signals belong to the program's own threads, so workers are born with all of them blocked. */
static void start_workers(int wanted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handler);
    sigset_t all, old;
    pthread_attr_t attributes;
    if (pool.n_workers >= wanted || pthread_attr_init(&attributes))
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.n_workers < wanted) {
        pthread_t thread;
        void *seen = (void *)(uintptr_t)atomic_load(&pool.generation);
        if (pthread_create(&thread, &attributes, worker, seen))
            break; /* fewer threads are still right, only slower */
        pool.n_workers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
}

static int run_alone(int64_t n, int64_t chunk, gg_task task, void *arg)
{
    for (int64_t begin = 0; begin < n; begin += chunk) {
        if (atomic_load_explicit(&abort_flag, memory_order_relaxed))
            return GG_ABORTED;
        task(arg, 0, begin, smaller(begin + chunk, n));
    }
    return GG_SUCCESS;
}

/* After this no worker can enter; those inside are finishing their last piece. */
static void close_job(void)
{
    int spins = 0;
    atomic_fetch_and(&pool.state, ~OPEN);
    while (atomic_load(&pool.state)) {
        if (spins++ < SPINS)
            cpu_relax();
        else
            wait_while(&pool.finished, 0);
    }
}

int gg_parallel_for(int n_threads, int64_t n, int64_t chunk, gg_task task, void *arg)
{
    if (n_threads <= 1 || n <= chunk || atomic_exchange(&pool.busy, 1))
        return run_alone(n, chunk, task, arg);
    if (n_threads > MAX_WORKERS)
        n_threads = MAX_WORKERS;
    start_workers(n_threads - 1);
    pool.task = task;
    pool.arg = arg;
    pool.n = n;
    pool.chunk = chunk;
    pool.n_threads = n_threads;
    atomic_store(&pool.next, 0);
    atomic_store(&pool.joined, 1);
    atomic_store(&pool.finished, 0);
    atomic_store(&pool.state, OPEN);
    atomic_fetch_add(&pool.generation, 1);
    if (atomic_load(&pool.sleepers))
        wake(&pool.generation, n_threads - 1);
    take_pieces(0);
    close_job();
    int complete = atomic_load(&pool.next) >= n;
    atomic_store(&pool.busy, 0);
    return complete ? GG_SUCCESS : GG_ABORTED;
}

void gg_set_abort(int on)
{
    atomic_store(&abort_flag, on);
}

int gg_useful_threads(int n_threads, double microseconds)
{
    const double per_thread = 50.0;
    double useful = microseconds / per_thread;
    return useful >= n_threads ? n_threads : useful < 1.0 ? 1 : (int)useful;
}
