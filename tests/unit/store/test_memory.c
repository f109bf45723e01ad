/* The memory of a session over a long time and over kills: no chunk twice, none lost, and a prompt that stays as large
 * as it was. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/store/store.h"
#include "tests/unit/store/world.h"

#define THRESHOLD  600
#define MAX_TOLD   1500 /* tokens of moments */
#define N_KILLS    8
#define N_TURNS    60
#define MANY_TURNS 500 /* with REEVE_SOAK */

static const struct rv_store_scope owner = {NULL, "u"};

/* A step with a turn of some 105 tokens. */
static int keep_turn(rv_store *s, int64_t turn, rv_err **err)
{
    static char answer[401];
    char ids[2][32], body[32];

    memset(answer, 'a', 400);
    snprintf(answer, sizeof answer, "Answer %lld: ", (long long)turn);
    answer[strlen(answer)] = 'b';
    snprintf(ids[0], sizeof ids[0], "q%lld", (long long)turn);
    snprintf(ids[1], sizeof ids[1], "a%lld", (long long)turn);
    snprintf(body, sizeof body, "step %lld", (long long)turn);
    struct rv_message rows[] = {{.id = ids[0],
                                 .type = "user",
                                 .has_content = true,
                                 .content = RV_STR_LIT("And what then?"),
                                 .token_count = RV_UNSET,
                                 .created_us = T0 + turn},
                                {.id = ids[1],
                                 .type = "assistant",
                                 .has_content = true,
                                 .content = rv_str_of(answer),
                                 .token_count = RV_UNSET,
                                 .created_us = T0 + turn}};
    const struct rv_turn told = {.session = "long", .rows = rows, .n_rows = 2, .moment_token_threshold = THRESHOLD};
    struct rv_record record = {.seq = turn, .kind = 2, .body = rv_str_of(body)};
    const struct rv_store_append a = {.run = "r1",
                                      .fence = 1,
                                      .records = &record,
                                      .n_records = 1,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a",
                                      .now_us = T0 + turn,
                                      .turns = &told,
                                      .n_turns = 1};
    return rv_store_append(s, &a, err);
}

/* --- what there is --- */

static int collect(void *self, json_object *row, rv_err **err)
{
    return rv_json_push_ref(self, row, err);
}

static int64_t number(json_object *o, const char *key)
{
    int64_t n = -1;

    ck_assert_msg(rv_json_get_int(o, key, &n), "no %s", key);
    return n;
}

/* Chunks follow each other without a gap and without a message that two cover, up to the watermark. */
static void check_chain(struct world *w, int64_t *n_messages, int64_t *n_chunks)
{
    const struct rv_entity_filter about = {.about = "long", .limit = 1000};
    json_object *rows = json_object_new_array(), *metadata = NULL;
    struct rv_session_row session;
    struct rv_memory memory;
    int64_t covered = 0;

    OK(rv_store_find_entities(w->s, &owner, &(const struct rv_entities_of){"moments", &about}, collect, rows, &w->err));
    size_t n = json_object_array_length(rows);
    for (size_t i = 0; i < n; i++) {
        json_object *found = NULL;
        for (size_t k = 0; k < n && !found; k++) {
            json_object *m = rv_json_get_obj(json_object_array_get_idx(rows, k), "metadata");
            found = number(m, "chunk_index") == (int64_t)i ? m : NULL;
        }
        ck_assert_msg(found, "no chunk %zu of %zu", i, n);
        ck_assert_int_eq(number(found, "from_seq"), covered + 1);
        ck_assert_int_gt(number(found, "through_seq"), covered);
        ck_assert_int_ge(number(found, "token_count"), THRESHOLD);
        covered = number(found, "through_seq");
    }
    OK(rv_store_get_session(w->s, &owner, "long", &session, &w->err));
    OK(rv_json_parse(session.metadata, NULL, &metadata, &w->err));
    rv_memory_read(metadata, &memory);
    ck_assert_int_eq(memory.chunks, (int64_t)n);
    ck_assert_int_eq(memory.through_seq, covered);
    ck_assert_int_lt(session.total_tokens - memory.tokens, THRESHOLD); /* none is missing */
    *n_messages = session.n_messages;
    *n_chunks = (int64_t)n;
    rv_session_row_fini(&session);
    json_object_put(metadata);
    json_object_put(rows);
}

/* --- kills --- */

static void write_turns(const char *path, int64_t from, int to)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (rv_store_open(path, &opts, &s, &err) < 0)
        _exit(1);
    for (;; from++)
        if (keep_turn(s, from, &err) < 0 || write(to, "t", 1) != 1)
            _exit(1);
}

/* Killed while it writes the turn behind the n-th: wherever it is then, all of a turn is there or nothing. */
START_TEST(a_kill_leaves_no_half_of_a_chunk_and_none_twice)
{
    struct world world, *w = &world;
    int64_t n_messages = 0, n_chunks = 0, next = 1;

    world_open(w, 0);
    rv_store_close(w->s);
    w->s = NULL;
    for (int i = 0; i < N_KILLS; i++) {
        int ends[2], status;
        char c;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            write_turns(w->path, next, ends[1]);
        close(ends[1]);
        for (int k = 0; k < 5 + i; k++)
            ck_assert_int_eq(read(ends[0], &c, 1), 1);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        close(ends[0]);
        OK(world_store(w, w->path, &quick, &w->s));
        check_chain(w, &n_messages, &n_chunks);
        ck_assert_int_eq(n_messages % 2, 0);
        ck_assert_int_ge(n_messages, 2 * (next + 4 + i));
        next = n_messages / 2 + 1;
        OK(rv_store_check(w->s, &w->err));
        rv_store_close(w->s);
        w->s = NULL;
    }
    ck_assert_int_gt(n_chunks, 5);
    world_close(w);
}
END_TEST

/* --- a long session --- */

static int add_row(void *self, const struct rv_message *m, rv_err **err)
{
    bool full = false;
    int rc = rv_history_add(self, m, &full, err);

    return rc == 0 && full ? RV_STORE_ENOUGH : rc;
}

static int see_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)err;
    *(int *)self += strcmp(hit->kind->name, "moments") == 0;
    return 0;
}

/* Every hint resolves, and the moments are within their cap. Returns the bytes of the prompt. */
static size_t check_prompt(struct world *w, int64_t *n_hints)
{
    const struct rv_moment_opts opts = {.max_inject = 3, .max_tokens = MAX_TOLD};
    const struct rv_message_filter newest = {.newest_first = true};
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    json_object *notes = NULL, *messages = NULL;
    rv_history *h = NULL;
    rv_buf text = RV_BUF_INIT(1 << 20);
    int64_t told = 0;

    rv_history_compact(&o, RV_COMPACTION_MOMENTS);
    OK(rv_store_note_moments(w->s, &owner, "long",
                             &(const struct rv_moment_notes){.opts = &opts, .covers_tokens = o.max_tokens}, &notes,
                             &w->err));
    OK(rv_history_new("long", &o, &h, &w->err));
    OK(rv_store_read_messages(w->s, &owner, &(const struct rv_messages_of){"long", &newest}, add_row, h, &w->err));
    rv_history_set_moments(h, notes);
    OK(rv_history_finish(h, &messages, &w->err));
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *m = json_object_array_get_idx(messages, i);
        const char *content = json_object_get_string(json_object_object_get(m, "content"));
        const char *name = strstr(content, "REM LOOKUP "), *role = "";
        int found = 0;
        ck_assert(rv_json_get_text(m, "role", &role));
        if (strcmp(role, "system") == 0)
            told += rv_tokens_estimate(rv_str_of(content));
        if (!name)
            continue;
        name += strlen("REM LOOKUP ");
        OK(rv_store_lookup(w->s, &owner, (rv_str){name, strlen(name) - 1}, see_hit, &found, &w->err));
        ck_assert_msg(found == 1, "\"%s\" finds %d moments", name, found);
        ++*n_hints;
    }
    ck_assert_int_le(told, MAX_TOLD);
    rv_json_write(messages, &text);
    size_t len = text.len;
    rv_buf_fini(&text);
    rv_history_free(h);
    json_object_put(messages);
    json_object_put(notes);
    return len;
}

START_TEST(a_long_session_has_a_prompt_that_does_not_grow)
{
    struct world world, *w = &world;
    int64_t n_messages = 0, n_chunks = 0, n_hints = 0, n = rv_kit_sample(N_TURNS, MANY_TURNS);
    size_t most = 0;

    world_open(w, 0);
    for (int64_t turn = 1; turn <= n; turn++) {
        OK(keep_turn(w->s, turn, &w->err));
        size_t len = check_prompt(w, &n_hints);
        most = len > most ? len : most;
    }
    check_chain(w, &n_messages, &n_chunks);
    ck_assert_int_eq(n_messages, 2 * n);
    ck_assert_int_ge(n_chunks, n * 104 / (THRESHOLD + 104) - 1);
    ck_assert_int_gt(n_hints, n);
    ck_assert_uint_lt(most, 4 * (8000 + MAX_TOLD) + (20 << 10)); /* the budget, and what JSON is around it */
    world_close(w);
}
END_TEST

Suite *memory_suite(void)
{
    Suite *s = suite_create("memory");
    TCase *tc = tcase_create("memory");

    tcase_add_test(tc, a_kill_leaves_no_half_of_a_chunk_and_none_twice);
    tcase_add_test(tc, a_long_session_has_a_prompt_that_does_not_grow);
    suite_add_tcase(s, tc);
    return s;
}
