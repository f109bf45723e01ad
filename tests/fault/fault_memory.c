/* Each allocation of what workers write by themselves fails once: a reminder that comes due, chunks and excerpts for a
 * dreamer, tasks for dreamers, a summary. No crash, no leak; the store has everything or nothing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/conversation/conversation.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define T0 INT64_C(1771891200000000) /* 2026-02-24T00:00:00Z */

static const struct rv_store_scope ada = {NULL, "ada"};
static const struct rv_store_opts fast = {.sync = RV_STORE_SYNC_OFF};

/* --- the store that each attempt begins with --- */

static void must(int rc)
{
    ck_assert_int_eq(rc, 0);
}

static void add_session(rv_store *s, const char *id, int64_t tokens)
{
    const struct rv_session_row fresh = {
        .id = id, .tenant = RV_STORE_TENANT, .user = "ada", .name = "The Tale", .created_us = T0};
    struct rv_message rows[] = {
        {.id = "q", .type = "user", .has_content = true, .content = RV_STR_LIT("And then?"), .token_count = 2},
        {.id = "a", .type = "assistant", .has_content = true, .content = RV_STR_LIT("It held."), .token_count = tokens},
    };
    const struct rv_turn turn = {.session = id, .rows = rows, .n_rows = RV_COUNT(rows)};

    rows[0].created_us = rows[1].created_us = T0;
    must(rv_store_ensure_session(s, &fresh, NULL, NULL));
    must(rv_store_add_messages(s, &ada, &turn, T0, NULL));
}

static char moment[RV_STORE_MAX_ID + 1]; /* the chunk that gets a summary */

static void make_template(const char *path)
{
    json_object *row = rv_kit_json("{'name':'tea','moment_type':'reminder','summary':'Kettle.'}"), *chunk = NULL;
    const struct rv_entities_put put = {.kind = "moments", .rows = &row, .n_rows = 1, .now_us = T0};
    const char *id = NULL;
    rv_store *s = NULL;

    must(rv_store_open(path, &fast, &s, NULL));
    must(rv_store_put_entities(s, &ada, &put, NULL, NULL));
    add_session(s, "old", 10);
    must(rv_store_build_moment(s, &ada, &(const struct rv_moment_build){.session = "old", .threshold = 0, .now_us = T0},
                               &chunk, NULL));
    ck_assert(rv_json_get_text(chunk, "id", &id));
    snprintf(moment, sizeof moment, "%s", id);
    add_session(s, "long", RV_DREAM_THRESHOLD);
    json_object_put(chunk);
    json_object_put(row);
    rv_store_close(s);
}

static void copy_file(const char *from, const char *to)
{
    static const char *const with[] = {"-wal", "-shm"};
    char bytes[65536], path[4096];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");

    ck_assert(in && out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        ck_assert_uint_eq(fwrite(bytes, 1, n, out), n);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
    for (size_t i = 0; i < RV_COUNT(with); i++) {
        snprintf(path, sizeof path, "%s%s", to, with[i]);
        remove(path);
    }
}

/* --- what it has --- */

static int see_moment(void *self, json_object *row, rv_err **err)
{
    static const char *const columns[] = {"name", "summary", "starts_timestamp", "id"};

    (void)err;
    for (size_t i = 0; i < RV_COUNT(columns); i++) {
        const char *text = "", *type;
        RV_IGNORE(!rv_json_get_text(row, columns[i], &text), "null");
        if (strcmp(columns[i], "id") == 0 && rv_json_get_text(row, "moment_type", &type) &&
            strcmp(type, RV_CHUNK_TYPE) != 0) /* drawn anew by each attempt */
            text = "";
        rv_buf_printf(self, "%s|", text);
    }
    return 0;
}

static int see_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, "%s %lld|", row->name, (long long)row->n_messages);
    return 0;
}

static int see_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, "%s %s|", row->type, row->user);
    return 0;
}

static char *picture(const char *path)
{
    const struct rv_entity_filter moments = {.limit = 100};
    const struct rv_session_filter sessions = {.limit = 100};
    const struct rv_task_filter tasks = {.limit = 100};
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_store *s = NULL;

    must(rv_store_open(path, &fast, &s, NULL));
    must(rv_store_check(s, NULL));
    must(rv_store_find_entities(s, &ada, &(const struct rv_entities_of){"moments", &moments}, see_moment, &text, NULL));
    must(rv_store_list_sessions(s, &ada, &sessions, see_session, &text, NULL));
    must(rv_store_list_tasks(s, &ada, &tasks, see_task, &text, NULL));
    rv_store_close(s);
    return rv_buf_steal(&text, NULL);
}

/* --- what is done --- */

static int notify(rv_store *s, rv_err **err, const char *title)
{
    const struct rv_app_notice notice = {
        .key = "task_1", .title = title, .body = "It is five.", .now_us = T0 + 5, .rand = rv_rand_system()};
    char of[RV_STORE_MAX_ID + 1], session[RV_STORE_MAX_ID + 1];

    return rv_app_notify(s, &ada, &notice, of, session, err);
}

static int remind(rv_store *s, rv_err **err)
{
    return notify(s, err, "tea");
}

static int tell(rv_store *s, rv_err **err)
{
    return notify(s, err, "post");
}

static int chunks(rv_store *s, rv_err **err)
{
    struct rv_dream_chunks done;

    return rv_app_dream_make_chunks(s, &ada, T0 + 5, &done, err);
}

static int context(rv_store *s, rv_err **err)
{
    struct rv_dream_context c;
    int rc = rv_app_dream_build_context(
        s, &ada, &(const struct rv_dream_window){.days = 1, .max_tokens = RV_DREAM_TOKENS, .now_us = T0 + 5}, &c, err);

    if (rc == 0)
        rv_buf_fini(&c.text);
    return rc;
}

static int enqueue(rv_store *s, rv_err **err)
{
    const struct rv_app_dream what = {.day_us = T0};
    struct rv_dream_queued done;

    return rv_app_dream_enqueue(s, &ada, &what, T0 + 5, &done, err);
}

static int build(rv_store *s, rv_err **err)
{
    json_object *chunk = NULL;
    int rc = rv_store_build_moment(
        s, &ada, &(const struct rv_moment_build){.session = "long", .threshold = 0, .now_us = T0 + 5}, &chunk, err);

    json_object_put(chunk);
    return rc < 0 ? rc : 0;
}

static int put_summary(rv_store *s, struct rv_app_summary *what, rv_err **err)
{
    int rc = rv_store_begin(s, err);

    if (rc < 0)
        return rc;
    rc = rv_app_put_summary(s, &ada, what, RV_STR_LIT(" It held, as ever. "), err);
    return rv_store_end(s, rc, err);
}

static int summarise(rv_store *s, rv_err **err)
{
    struct rv_app_summary what = {.moment = moment, .agent = "scribe", .run = "job_1", .now_us = T0 + 5};
    rv_buf text = RV_BUF_INIT(1 << 20);
    int rc = rv_app_read_chunk(s, &ada, moment, &text, what.hash, err);

    if (rc == 0 && strcmp(rv_buf_cstr(&text), "user: And then?\nassistant: It held.\n") != 0)
        rc = RV_FAIL(err, RV_E_INTERNAL, "the agent is told \"%s\"", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return rc == 0 ? put_summary(s, &what, err) : rc;
}

static int about(rv_store *s, rv_err **err)
{
    const struct rv_app_session_search search = {.query = "and then? it held.", .page = 1, .size = 10};
    json_object *page = NULL;
    int rc = rv_app_search_sessions(s, &ada, &search, &page, err);

    if (rc == 0 && json_object_array_length(rv_json_get_arr(page, "results")) != 1)
        rc = RV_FAIL(err, RV_E_INTERNAL, "the session with that moment is not found");
    json_object_put(page);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(rv_store *s, rv_err **err);
    bool reads, has_parts; /* it changes nothing; one transaction for each session */
} jobs[] = {
    {.name = "remind", .run = remind},
    {.name = "tell", .run = tell},
    {.name = "chunks", .run = chunks, .has_parts = true},
    {.name = "build", .run = build},
    {.name = "context", .run = context, .reads = true},
    {.name = "enqueue", .run = enqueue},
    {.name = "summarise", .run = summarise},
    {.name = "about", .run = about, .reads = true},
};

static int scenario(const char *path, size_t i)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(path, &fast, &s, &err);

    if (rc == 0)
        rc = jobs[i].run(s, &err);
    rv_store_close(s);
    if (rc < 0 && rv_err_is(err, RV_E_NOMEM))
        rc = RV_E_NOMEM;
    else if (rc < 0)
        fprintf(stderr, "%s: %s\n", jobs[i].name, rv_err_text(err));
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_may_fail_and_nothing_is_half)
{
    char *dir = rv_kit_tmpdir(), *template = rv_kit_path(dir, "template.db"), *path = rv_kit_path(dir, "store.db");
    size_t n;

    make_template(template);
    char *before = picture(template);
    copy_file(template, path);
    rv_fault_arm(SIZE_MAX);
    must(scenario(path, (size_t)_i));
    rv_fault_disarm();
    char *after = picture(path);
    ck_assert_msg((strcmp(before, after) == 0) == jobs[_i].reads, "%s: %s", before, after);
    const size_t step = rv_kit_step(rv_fault_count() / 60 + 1);
    for (n = rv_kit_first(step);; n += step) {
        copy_file(template, path);
        rv_fault_arm(n);
        int rc = scenario(path, (size_t)_i);
        bool fired = rv_fault_disarm();
        long balance = rv_fault_balance();
        ck_assert_msg(rc == 0 || (fired && rc == RV_E_NOMEM), "%s, allocation %zu: %s", jobs[_i].name, n,
                      rv_code_text(rc));
        if (!fired)
            break;
        ck_assert_msg(balance == 0, "%s, allocation %zu: %ld blocks", jobs[_i].name, n, balance);
        char *now = picture(path);
        bool is_whole = strcmp(now, rc == 0 ? after : before) == 0 ||
                        (jobs[_i].has_parts && strcmp(now, after) == 0); /* the last part was done */
        ck_assert_msg(is_whole, "%s, allocation %zu: %s", jobs[_i].name, n, now);
        free(now);
    }
    ck_assert(n > 10 || !rv_fault_works());
    free(before);
    free(after);
    rv_kit_tmpdir_remove(dir);
    free(template);
    free(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_memory");
    TCase *tc = tcase_create("memory");

    tcase_add_loop_test(tc, any_allocation_may_fail_and_nothing_is_half, 0, RV_COUNT(jobs));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
