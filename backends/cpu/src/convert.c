/* Whole arrays to float32, and float32 to blocks. */
#include "kernels.h"
#include "pool.h"

enum { SEGMENT = 8192 /* elements of a task; a multiple of every block size */ };

static const double elements_per_microsecond = 1e3;

typedef struct {
    const gg_isa *isa;
    const char *source;
    char *out;
    const int64_t *sizes, *source_strides, *out_strides;
    int64_t dims, segments, row, source_step, out_step;
    int type;
} decode_job;

static void decode_segment(const decode_job *job, const char *source, char *out, int64_t begin,
                           int64_t end)
{
    char buffer[GG_FETCH_BYTES];
    const gg_traits *traits = gg_type(job->type);
    gg_run run = {source, job->source_step, job->type};
    if (job->source_step == traits->block_bytes && job->out_step == (int64_t)sizeof(float)) {
        const char *first = source + begin / traits->block_size * job->source_step;
        job->isa->decode[job->type]((const uint8_t *)first, out + begin * job->out_step,
                                    end - begin);
        return;
    }
    for (int64_t i = begin; i < end; i += GG_FETCH) {
        int64_t n = end - i < GG_FETCH ? end - i : GG_FETCH;
        gg_scatter(job->isa->fetch(&run, i, n, buffer), sizeof(float), n, out + i * job->out_step,
                   job->out_step);
    }
}

static void decode_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const decode_job *job = arg;
    (void)slot;
    for (int64_t task = begin; task < end; task++) {
        int64_t index = task / job->segments, start = task % job->segments * SEGMENT;
        const char *source = job->source;
        char *out = job->out;
        for (int64_t d = job->dims - 1; d >= 0; d--) {
            int64_t i = index % job->sizes[d];
            index /= job->sizes[d];
            source += i * job->source_strides[d];
            out += i * job->out_strides[d];
        }
        int64_t stop = start + SEGMENT < job->row ? start + SEGMENT : job->row;
        decode_segment(job, source, out, start, stop);
    }
}

int gg_to_float(const void *source, void *out, const int64_t *parameters, int n_threads)
{
    const gg_isa *isa = gg_current_isa();
    const gg_traits *traits = gg_type(parameters[0]);
    int64_t dims = parameters[1], rows = 1;
    const int64_t *sizes = parameters + 5;
    if (!isa)
        return GG_NO_ISA;
    if (!traits || !isa->decode[parameters[0]] || traits->compute != GG_AS_F32)
        return GG_FAILED;
    int64_t row = parameters[2] * traits->block_size;
    for (int64_t d = 0; d < dims; d++)
        rows *= sizes[d];
    decode_job job = {isa, source, out, sizes, sizes + dims, sizes + 2 * dims, dims,
                      (row + SEGMENT - 1) / SEGMENT, row, parameters[3], parameters[4],
                      (int)parameters[0]};
    double work = (double)rows * (double)row / elements_per_microsecond;
    int64_t chunk = row && row < SEGMENT ? SEGMENT / row : 1;
    return gg_parallel_for(gg_useful_threads(n_threads, work), rows * job.segments, chunk,
                           decode_task, &job);
}

typedef struct {
    const gg_traits *traits;
    const float *source;
    uint8_t *out;
} encode_job;

static void encode_task(void *arg, int slot, int64_t begin, int64_t end)
{
    const encode_job *job = arg;
    (void)slot;
    job->traits->from_float(job->source + begin * job->traits->block_size,
                            job->out + begin * job->traits->block_bytes,
                            (end - begin) * job->traits->block_size);
}

int gg_from_float(int type, const float *source, void *out, int64_t n, int n_threads)
{
    const gg_traits *traits = gg_type(type);
    if (!traits || !traits->from_float || n % traits->block_size)
        return GG_FAILED;
    encode_job job = {traits, source, out};
    int threads = gg_useful_threads(n_threads, (double)n / elements_per_microsecond);
    return gg_parallel_for(threads, n / traits->block_size, SEGMENT / traits->block_size,
                           encode_task, &job);
}
