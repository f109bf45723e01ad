/* What encryption costs a message: written in turns of two, and read.
 *
 *   bench_encryption STORE [MESSAGES [BYTES]]    STORE a new file or a PostgreSQL URL; 20,000 messages of 500 bytes
 *
 * Prints one JSON object: microseconds of the processor and of the clock on the wall for each message, plain and
 * encrypted. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/store.h"
#include "tests/bench/bench_kit.h"

#define T0 INT64_C(1700000000000000)

static int see(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    *(size_t *)self += m->content.len;
    return 0;
}

struct cost {
    double cpu_us, wall_us;
};

static struct cost since(int64_t cpu_ns, int64_t wall_ns, size_t n)
{
    return (struct cost){(double)(bench_cpu_ns() - cpu_ns) / 1e3 / (double)n,
                         (double)(bench_now_ns() - wall_ns) / 1e3 / (double)n};
}

static struct cost write_all(rv_store *s, const char *session, size_t n, rv_str content)
{
    const struct rv_store_scope scope = {RV_STORE_TENANT, ""};
    const struct rv_session_row row = {.id = session, .tenant = RV_STORE_TENANT, .user = "", .created_us = T0};
    int64_t cpu = bench_cpu_ns(), wall = bench_now_ns();
    rv_err *err = NULL;

    if (rv_store_ensure_session(s, &row, NULL, &err) < 0)
        bench_die("session", err);
    for (size_t i = 0; i < n; i += 2) {
        char ids[2][32];
        struct rv_message rows[2];
        for (size_t k = 0; k < 2; k++) {
            snprintf(ids[k], sizeof ids[k], "m%zu", i + k);
            rows[k] = (struct rv_message){.id = ids[k],
                                          .type = k ? "assistant" : "user",
                                          .has_content = true,
                                          .content = content,
                                          .token_count = 5};
        }
        const struct rv_turn turn = {.session = session, .rows = rows, .n_rows = 2};
        if (rv_store_add_messages(s, &scope, &turn, T0, &err) < 0)
            bench_die("turn", err);
    }
    return since(cpu, wall, n);
}

static struct cost read_all(rv_store *s, const char *session, size_t n)
{
    const struct rv_store_scope scope = {RV_STORE_TENANT, ""};
    int64_t cpu = bench_cpu_ns(), wall = bench_now_ns();
    size_t bytes = 0;
    rv_err *err = NULL;

    if (rv_store_read_messages(s, &scope, &(const struct rv_messages_of){session, NULL}, see, &bytes, &err) < 0)
        bench_die("read", err);
    return since(cpu, wall, n);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        bench_die("usage: bench_encryption STORE [MESSAGES [BYTES]]", NULL);
    size_t n = argc > 2 ? bench_number(argv[2], 2) : 20000, len = argc > 3 ? bench_number(argv[3], 1) : 500;
    struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    char *content = malloc(len), id[RV_ENCRYPTION_ID];
    struct cost w[2], r[2];
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (!content)
        bench_die("memory", NULL);
    memset(content, 'x', len);
    if (rv_keyring_read(RV_STR_LIT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "key", &opts.ring, &err) < 0 ||
        rv_store_open(argv[1], &opts, &s, &err) < 0)
        bench_die("open", err);
    for (int k = 0; k < 2; k++) {
        const char *session = k ? "encrypted" : "plain";
        if (k && rv_store_set_encryption(s, RV_STORE_TENANT,
                                         &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_PLATFORM}, T0, id,
                                         &err) < 0)
            bench_die("mode", err);
        w[k] = write_all(s, session, n, (rv_str){content, len});
        r[k] = read_all(s, session, n);
    }
    printf(
        "{\"messages\":%zu,\"bytes\":%zu,\"write_cpu_us\":[%.2f,%.2f],\"write_us\":[%.2f,%.2f],\"read_cpu_us\":[%.2f,"
        "%.2f],\"read_us\":[%.2f,%.2f]}\n",
        n, len, w[0].cpu_us, w[1].cpu_us, w[0].wall_us, w[1].wall_us, r[0].cpu_us, r[1].cpu_us, r[0].wall_us,
        r[1].wall_us);
    rv_store_close(s);
    rv_keyring_unref(opts.ring);
    free(content);
    return 0;
}
