/* What a long conversation takes in the file: every turn as much as its words, and little besides; what is the same is
 * kept once; and what is deleted is given back. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/bench/bench_kit.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define TURN      400  /* bytes of what a person says, and of what the model says */
#define LARGE     5120 /* above RV_STORE_INLINE_MAX */
#define MAX_TEXT  ((size_t)16 << 20)
#define N_TURNS   500
#define QUESTION  260 /* what is kept of one that was answered, and the indexes of runs by user and by status */
#define N_INDEXES 8
#define PAGE      4096
#define AN_HOUR   INT64_C(3600000000)
#define TURN_SIZE (2 * TURN)

static const struct rv_store_scope all = {NULL, NULL};
static char *dir, *path;

static void setup(void)
{
    dir = rv_kit_tmpdir();
    path = rv_kit_path(dir, "runs.db");
}

static void teardown(void)
{
    free(path);
    rv_kit_tmpdir_remove(dir);
}

/* Words of that length which no other number has. */
static void put_words(rv_buf *b, const char *who, size_t number, size_t len)
{
    size_t end = b->len + len;

    rv_buf_printf(b, "%s in turn %zu", who, number);
    while (b->len < end)
        rv_buf_printf(b, " %zu", (b->len * 31 + number) % 1000);
    rv_buf_truncate(b, end);
}

#define HEAD                                                                                                           \
    "name: chat\nmodels: {default: \"scripted:none\"}\nprompts: {p: \"Answer.\"}\nmax_llm_calls: 100000\n"             \
    "max_agent_hops: 100000\nmax_iterations: 100000\nclarification_resume_stage: talk\nagents:\n"
#define TALK                                                                                                           \
    "  - {name: talk, has_llm: true, model_role: default, prompt_key: p, output_mode: text,\n     routing_rules: "

/* Two ways to write a conversation. What a turn may take besides its words grows with the steps that it is made of. */
static const struct conversation {
    const char *what, *pipeline;
    int64_t records, besides; /* a turn */
} conversations[] = {
    {"a model that asks", HEAD TALK "[{when: \"true\", target: clarification}]}\n", 3, 500},
    {"a model, and a stage that asks",
     HEAD TALK "[{when: \"true\", target: ask}]}\n  - {name: ask, routing_rules: [{when: \"true\", target: talk}]}\n",
     5, 700},
};

/* A person and a model, each with something to say n times. large: the model always says the same 5 KB. */
static void put_script(rv_buf *b, const struct conversation *c, size_t n, bool large)
{
    if (strstr(c->pipeline, "name: ask"))
        rv_buf_puts(b, "stages: {ask: [{raise: {kind: clarification, question: and?}}]}\n");
    rv_buf_puts(b, "models:\n  talk:\n");
    for (size_t i = 0; i < (large ? 1 : n + 1); i++) {
        rv_buf_puts(b, "    - text: \"");
        put_words(b, "reply", i, large ? LARGE : TURN);
        rv_buf_puts(b, "\"\n");
    }
    rv_buf_puts(b, n > 0 ? "answers:\n" : "");
    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(b, "  - text: \"");
        put_words(b, "question", i, TURN);
        rv_buf_puts(b, "\"\n");
    }
    ck_assert_int_eq(b->rc, 0);
}

static int64_t file_size(void)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_size;
}

/* What is left of a snapshot is a row without text. */
static void empty_snapshot(rv_store *store, const char *id)
{
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(store, &all, id, &row, NULL), 0);
    ck_assert_int_eq(rv_store_put_snapshot(store, id, row.fence, row.n_records, RV_STR_LIT(""), NULL), 0);
    rv_run_row_fini(&row);
}

/* Bytes of a file with nothing but the conversation. The script, which stands for the people and is part of what the
 * run was started with, does not count. */
static int64_t bytes_of(const struct conversation *c, size_t n_turns, bool large, bool with_snapshot)
{
    rv_buf script = RV_BUF_INIT(MAX_TEXT), bundle = RV_BUF_INIT(MAX_TEXT);
    struct bench b;
    rv_err *err = NULL;
    char id[RV_ID_MAX];

    put_script(&script, c, n_turns, large);
    const struct bench_opts opts = {.pipeline = rv_str_of(c->pipeline),
                                    .script = rv_buf_str(&script),
                                    .store = path,
                                    .sync = RV_STORE_SYNC_OFF,
                                    .answers = true};
    bench_open(&b, &opts);
    ck_assert_int_eq(bench_run(&b, id), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(rv_store_get_blob(b.store, b.bundle, &bundle, &err), 0);
    if (!with_snapshot)
        empty_snapshot(b.store, id);
    ck_assert_int_eq(rv_store_sweep(b.store, 0, 0, NULL, &err), 0);
    bench_close(&b);
    int64_t bytes = file_size() - (int64_t)bundle.len;
    ck_assert_int_eq(remove(path), 0);
    rv_buf_fini(&script);
    rv_buf_fini(&bundle);
    return bytes;
}

START_TEST(five_hundred_turns_take_their_words_and_little_besides)
{
    const struct conversation *c = &conversations[_i];
    int64_t none = bytes_of(c, 0, false, false), first = bytes_of(c, N_TURNS / 2, false, false) - none;
    int64_t whole = bytes_of(c, N_TURNS, false, false), last = whole - none - first;
    int64_t kept = bytes_of(c, N_TURNS, false, true);

    fprintf(stderr,
            "%s: bytes a turn: the first half %lld, the second %lld, all %lld, with the snapshot %lld, words %d\n",
            c->what, (long long)first / (N_TURNS / 2), (long long)last / (N_TURNS / 2),
            (long long)(whole - none) / N_TURNS, (long long)(kept - none) / N_TURNS, TURN_SIZE);
    /* Pages of an index are as full as they were at half its size, about: ids are drawn. */
    ck_assert_int_le(llabs(last - first), first / 20 + N_INDEXES * PAGE);
    ck_assert_int_le(whole - none, N_TURNS * (TURN_SIZE + QUESTION + c->besides));
}
END_TEST

START_TEST(a_large_text_that_is_always_the_same_is_kept_once)
{
    const struct conversation *c = &conversations[_i];
    int64_t none = bytes_of(c, 0, true, false), whole = bytes_of(c, N_TURNS, true, false) - none;

    fprintf(stderr, "%s: bytes a turn with the same %d bytes in each %lld\n", c->what, LARGE,
            (long long)whole / N_TURNS);
    ck_assert_int_le(whole, N_TURNS * (TURN + QUESTION + c->besides));
}
END_TEST

START_TEST(a_run_that_is_deleted_gives_its_space_back)
{
    const struct conversation *c = &conversations[_i];
    rv_buf script = RV_BUF_INIT(MAX_TEXT);
    struct bench b;
    rv_err *err = NULL;
    int64_t freed = 0;
    char gone[RV_ID_MAX], stays[RV_ID_MAX];

    put_script(&script, c, N_TURNS, false);
    const struct bench_opts opts = {.pipeline = rv_str_of(c->pipeline),
                                    .script = rv_buf_str(&script),
                                    .store = path,
                                    .sync = RV_STORE_SYNC_OFF,
                                    .answers = true};
    bench_open(&b, &opts);
    ck_assert_int_eq(bench_run(&b, gone), RV_RUN_INTERRUPTED);
    bench_close(&b);
    int64_t one = file_size();
    bench_open(&b, &opts);
    ck_assert_int_eq(bench_run(&b, stays), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(rv_store_delete_run(b.store, &all, gone, NULL, rv_engine_now_us(b.engine) + AN_HOUR, &err), 0);
    ck_assert_int_eq(rv_store_sweep(b.store, rv_engine_now_us(b.engine) + AN_HOUR, 0, &freed, &err), 0);
    ck_assert_int_eq(rv_store_check(b.store, &err), 0);
    ck_assert_int_eq(bench_records(&b), 1 + c->records * (N_TURNS + 1));
    bench_close(&b);
    ck_assert_int_ge(freed, (int64_t)N_TURNS * TURN_SIZE);
    ck_assert_int_le(file_size(), one + one / 20);
    rv_buf_fini(&script);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("storage");
    TCase *tc = tcase_create("storage");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, five_hundred_turns_take_their_words_and_little_besides, 0, RV_COUNT(conversations));
    tcase_add_loop_test(tc, a_large_text_that_is_always_the_same_is_kept_once, 0, RV_COUNT(conversations));
    tcase_add_loop_test(tc, a_run_that_is_deleted_gives_its_space_back, 0, RV_COUNT(conversations));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
