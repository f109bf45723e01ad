#include "tests/bench/bench_tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/bench/bench_kit.h"

#define STAMP 20 /* bytes: nineteen digits and what follows */
#define PIECE ((size_t)2 * STAMP)

struct stream {
    int64_t asked_ns;
    size_t n_pieces;
};
struct tally {
    size_t n_streams, n_pieces, n_taken;
    struct stream *streams;
    int64_t *late_ns, *first_ns; /* of each piece; of each stream */
    size_t n_first;
    int64_t begun_ns, begun_cpu_ns, begun_bytes, bytes_each;
};

struct tally *tally_new(size_t n_streams, size_t n_pieces)
{
    struct tally *t = calloc(1, sizeof *t);
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        RV_IGNORE(setrlimit(RLIMIT_NOFILE, &files), "too few files show soon enough");
    }
    if (!t || !(t->streams = calloc(n_streams, sizeof *t->streams)) ||
        !(t->first_ns = calloc(n_streams, sizeof *t->first_ns)) ||
        !(t->late_ns = calloc(n_streams * n_pieces, sizeof *t->late_ns)))
        bench_die("no memory", NULL);
    memset(t->late_ns, 1, n_streams * n_pieces * sizeof *t->late_ns); /* in memory before the streams are */
    t->n_streams = n_streams;
    t->n_pieces = n_pieces;
    return t;
}

void tally_free(struct tally *t)
{
    free(t->streams);
    free(t->first_ns);
    free(t->late_ns);
    free(t);
}

void tally_begin(struct tally *t)
{
    memset(t->streams, 0, t->n_streams * sizeof *t->streams);
    t->n_taken = t->n_first = 0;
    t->begun_bytes = bench_resident_bytes();
    t->begun_cpu_ns = bench_cpu_ns();
    t->begun_ns = bench_now_ns();
}

void tally_ask(struct tally *t, size_t stream)
{
    t->streams[stream].asked_ns = bench_now_ns();
}

int64_t tally_wait_us(const struct tally *t, size_t stream, bool is_paced)
{
    int64_t at_ns = t->begun_ns + (int64_t)(stream / TALLY_BATCH) * TALLY_BATCH_MS * 1000000;
    return is_paced ? (at_ns - bench_now_ns()) / 1000 : 0;
}

static int64_t stamp(const char *digits)
{
    char text[STAMP];

    memcpy(text, digits, STAMP - 1);
    text[STAMP - 1] = '\0';
    return strtoll(text, NULL, 10);
}

void tally_take(struct tally *t, size_t stream, const char *text, size_t n)
{
    struct stream *s = &t->streams[stream];
    int64_t now_ns = bench_now_ns();

    if (n % PIECE != 0 || s->n_pieces + n / PIECE > t->n_pieces)
        bench_die("a stream has something else in it than was sent", NULL);
    for (const char *p = text; p < text + n; p += PIECE) {
        int64_t asked_ns = stamp(p), sent_ns = stamp(p + STAMP);
        if (s->n_pieces++ == 0) /* all that the model itself did not take */
            t->first_ns[t->n_first++] = now_ns - s->asked_ns - (sent_ns - asked_ns);
        t->late_ns[t->n_taken++] = now_ns - sent_ns;
    }
}

static long long us(int64_t *ns, size_t n, double q)
{
    return (long long)(bench_quantile(ns, n, q) / 1000);
}

bool tally_print(struct tally *t, const char *who, const char *mode)
{
    struct rusage used;
    int64_t took_ns = bench_now_ns() - t->begun_ns;

    int64_t cpu_ns_each = (bench_cpu_ns() - t->begun_cpu_ns) / (int64_t)(t->n_taken ? t->n_taken : 1);
    getrusage(RUSAGE_SELF, &used);
    t->bytes_each = ((int64_t)used.ru_maxrss * 1024 - t->begun_bytes) / (int64_t)t->n_streams;
    if (t->n_taken != t->n_streams * t->n_pieces) {
        fprintf(stderr, "%s: %zu pieces of %zu came\n", who, t->n_taken, t->n_streams * t->n_pieces);
        return false;
    }
    printf("{\"who\":\"%s\",\"mode\":\"%s\",\"streams\":%zu,\"pieces\":%zu,\"cpu_ns\":%lld,\"bytes\":%lld,"
           "\"first_p50_us\":%lld,\"first_p99_us\":%lld,\"late_p50_us\":%lld,\"late_p99_us\":%lld,\"per_s\":%lld}\n",
           who, mode, t->n_streams, t->n_pieces, (long long)cpu_ns_each, (long long)t->bytes_each,
           us(t->first_ns, t->n_first, 0.5), us(t->first_ns, t->n_first, 0.99), us(t->late_ns, t->n_taken, 0.5),
           us(t->late_ns, t->n_taken, 0.99), (long long)((double)t->n_taken * 1e9 / (double)took_ns));
    return true;
}

int64_t tally_bytes_each(const struct tally *t)
{
    return t->bytes_each;
}
