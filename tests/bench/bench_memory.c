/* What the memory of a session costs as it grows: the write of a turn, and the prompt of the next one.
 *
 *   bench_memory TURNS STORE SYNC   STORE a new file; SYNC full, normal or off
 *
 * Each turn has some 205 tokens, so every 30th makes a chunk. Prints one JSON object a line, at each tenth of the
 * turns: medians of the last tenth, and what the prompt and this process take then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal.h"
#include "tests/bench/bench_kit.h"

#define PARTS     10
#define THRESHOLD 6000
#define ANSWER    800 /* bytes */

static const struct rv_store_scope owner = {NULL, "u"};

static int64_t add_turn(rv_store *s, int64_t turn)
{
    char answer[ANSWER + 1], ids[2][32];
    rv_err *err = NULL;

    memset(answer, 'a', ANSWER);
    answer[ANSWER] = '\0';
    snprintf(ids[0], sizeof ids[0], "q%lld", (long long)turn);
    snprintf(ids[1], sizeof ids[1], "a%lld", (long long)turn);
    struct rv_message rows[] = {
        {.id = ids[0], .type = "user", .content = RV_STR_LIT("And what came after that?"), .created_us = turn},
        {.id = ids[1], .type = "assistant", .content = {answer, ANSWER}, .created_us = turn}};
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        rows[i].has_content = true;
        rows[i].token_count = RV_UNSET;
    }
    const struct rv_turn told = {.session = "s", .rows = rows, .n_rows = 2, .moment_token_threshold = THRESHOLD};
    int64_t began = bench_now_ns();
    if (rv_store_add_messages(s, &owner, &told, turn, &err) < 0)
        bench_die("add a turn", err);
    return bench_now_ns() - began;
}

static int64_t read_prompt(rv_store *s, int64_t turn, size_t *bytes, size_t *n_moments)
{
    char hash[RV_HASH_MAX];
    rv_buf text = RV_BUF_INIT(16 << 20);
    rv_err *err = NULL;
    json_object *messages = NULL;
    struct rv_conversation c = {.context = {.user_id = "u", .tenant_id = RV_STORE_TENANT, .session_id = "s"},
                                .upto_seq = 2 * turn,
                                .history_opts = RV_HISTORY_OPTS_INIT,
                                .moment_opts = RV_MOMENT_OPTS_INIT};

    rv_history_compact(&c.history_opts, RV_COMPACTION_MOMENTS);
    int64_t began = bench_now_ns();
    if (rv_journal_read_history(s, &owner, &c, &messages, hash, &err) < 0)
        bench_die("read a history", err);
    int64_t took = bench_now_ns() - began;
    rv_json_write(messages, &text);
    *bytes = text.len;
    *n_moments = rv_moments_n(c.moments);
    rv_buf_fini(&text);
    json_object_put(messages);
    json_object_put(c.moments);
    return took;
}

int main(int argc, char **argv)
{
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_memory TURNS STORE SYNC\n");
        return 2;
    }
    size_t n = bench_number(argv[1], PARTS), part = n / PARTS;
    const struct rv_store_opts opts = {.sync = bench_sync(argv[3])};
    const struct rv_session_row fresh = {.id = "s", .tenant = RV_STORE_TENANT, .user = "u", .created_us = 1};
    int64_t *writes = calloc(part, sizeof *writes), *reads = calloc(part, sizeof *reads);
    if (!writes || !reads || rv_store_open(argv[2], &opts, &s, &err) < 0 ||
        rv_store_ensure_session(s, &fresh, NULL, &err) < 0)
        bench_die("open", err);
    for (size_t turn = 1; turn <= part * PARTS; turn++) {
        size_t bytes = 0, n_moments = 0, at = (turn - 1) % part;
        writes[at] = add_turn(s, (int64_t)turn);
        reads[at] = read_prompt(s, (int64_t)turn, &bytes, &n_moments);
        if (at + 1 < part)
            continue;
        printf("{\"turns\":%zu,\"write_median_us\":%.1f,\"write_p99_us\":%.1f,\"prompt_median_us\":%.1f,"
               "\"prompt_bytes\":%zu,\"moments\":%zu,\"heap_kb\":%lld}\n",
               turn, (double)bench_quantile(writes, part, 0.5) / 1e3, (double)bench_quantile(writes, part, 0.99) / 1e3,
               (double)bench_quantile(reads, part, 0.5) / 1e3, bytes, n_moments, (long long)bench_heap_bytes() / 1024);
    }
    free(writes);
    free(reads);
    rv_store_close(s);
    return 0;
}
