/* Journals that are damaged, made by hand, or written by an engine that did something else: the replay says which
 * record, and what was and is. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

#define MAX_RECORDS 64

/* Records as their own texts. */
struct book {
    struct rv_record items[MAX_RECORDS];
    size_t n;
};

static rv_str copy(rv_str s)
{
    return s.ptr ? (rv_str){rv_str_dup(s), s.len} : s;
}

static int keep(void *self, const struct rv_record *r, rv_err **err)
{
    struct book *b = self;

    (void)err;
    ck_assert_uint_lt(b->n, MAX_RECORDS);
    b->items[b->n++] = (struct rv_record){r->seq, r->kind, copy(r->body), copy(r->value)};
    return 0;
}

static void drop(struct book *b, size_t i)
{
    free((char *)(uintptr_t)b->items[i].body.ptr);
    free((char *)(uintptr_t)b->items[i].value.ptr);
    memmove(&b->items[i], &b->items[i + 1], (--b->n - i) * sizeof b->items[0]);
    for (; i < b->n; i++)
        b->items[i].seq--;
}

static void burn(struct book *b)
{
    while (b->n > 0)
        drop(b, b->n - 1);
}

static void set(rv_str *s, const char *text)
{
    free((char *)(uintptr_t)s->ptr);
    *s = text ? copy(rv_str_of(text)) : (rv_str){NULL, 0};
}

/* In the first record of that kind (counted from `skip`), old becomes new. */
static void swap_text(rv_str *s, const char *old, const char *new)
{
    char *at = strstr(s->ptr, old);
    rv_buf b = RV_BUF_INIT(1 << 20);

    ck_assert_msg(at != NULL, "no %s in %s", old, s->ptr);
    rv_buf_add(&b, s->ptr, (size_t)(at - s->ptr));
    rv_buf_puts(&b, new);
    rv_buf_puts(&b, at + strlen(old));
    set(s, rv_buf_cstr(&b));
    rv_buf_fini(&b);
}

static const struct {
    const char *what;
    size_t at;       /* index of the record, see the list below */
    const char *how; /* body, value, kind, drop, repeat */
    const char *old, *new;
    int rc;
    const char *text, *also; /* in the message */
} cases[] = {
    /* 0 begin, 1 start, 2 started llm, 3 llm_done, 4 started put, 5 tool_done, 6 started send, 7 tool_done */
    {"kind of the call", 2, "body", "\"llm\"", "\"hook\"", RV_E_STATE, "record 3 (started)", "hook \"r\" as call 1"},
    {"name of the call", 4, "body", "\"put\"", "\"get\"", RV_E_STATE, "asked for tool \"get\" as call 2",
     "asks for tool \"put\" as call 2 of stage \"b\""},
    {"stage", 4, "body", "\"b\"", "\"z\"", RV_E_STATE, "stage \"z\"", "stage \"b\""},
    {"visit", 4, "body", "\"visit\":1", "\"visit\":2", RV_E_STATE, "visit 2", "visit 1"},
    {"attempt", 4, "body", "\"attempt\":1", "\"attempt\":3", RV_E_STATE, "attempt 3", "attempt 1"},
    {"class", 4, "body", "idempotent", "safe", RV_E_STATE, "safe", "idempotent"},
    {"key", 4, "body", "\"key\":\"env_live", "\"key\":\"env_dead", RV_E_STATE, "key \"env_dead", "key \"env_live"},
    {"no stage", 4, "body", "\"stage\":\"b\",", "", RV_E_STATE, "record 5 (started)", "stage \"b\""},
    {"call id", 4, "body", "\"call_id\":2", "\"call_id\":9", RV_E_STATE, "as call 9", "as call 2"},
    {"arguments", 6, "value", "ada", "eve", RV_E_STATE, "other arguments, from byte 7 on: {\"to\":\"eve\"} then",
     "{\"to\":\"ada\"} now"},
    {"no arguments", 6, "no value", NULL, NULL, RV_E_STATE, "from byte 0 on", NULL},
    {"a call too few", 2, "drop", NULL, NULL, RV_E_STATE, "after record 2 the core asks for llm \"r\" as call 1", NULL},
    {"a call too many", 2, "repeat", NULL, NULL, RV_E_STATE, "record 4 (started)", "asks for none now"},
    {"a call at the end", 7, "kind", NULL, "3", RV_E_STATE, "asks for none now", NULL},
    {"body that is cut", 3, "body", "}", "", RV_E_INVALID, "record 4 (event)", "body cannot be read"},
    {"body that is not an object", 3, "body", NULL, "[]", RV_E_INVALID, "record 4 (event)", "body is not an object"},
    {"unknown event", 3, "body", "llm_done", "llm_gone", RV_E_INVALID, "record 4 (event)", "llm_gone"},
    {"event without a time", 3, "body", "now_us", "then_us", RV_E_INVALID, "record 4 (event)", "has no time"},
    {"event without a call", 3, "body", "call_id", "caller", RV_E_INVALID, "record 4 (event)", "call id"},
    {"negative time", 3, "body", "\"now_us\":1", "\"now_us\":-1", RV_E_INVALID, "record 4 (event)", "negative"},
    {"half a byte", 3, "body", "{", "{\"hex\":true,", RV_E_INVALID, "record 4 (event)", "hex"},
    {"answer without content", 1, "body", "start", "answer", RV_E_INVALID, "record 2 (event)", "without its content"},
    {"second start", 3, "body", "llm_done", "start", RV_E_STATE, "record 4 (event)", "refuses it now"},
    {"other reply", 3, "value", "put", "get", RV_E_STATE, "record 5 (started)", NULL},
    {"kind from the future", 3, "kind", NULL, "9", RV_E_INVALID, "record 4 is of kind 9", NULL},
    {"second begin", 3, "kind", NULL, "1", RV_E_INVALID, "record 4 begins a run that has begun", NULL},
    {"no begin", 0, "drop", NULL, NULL, RV_E_INVALID, "begins with record 1 (event)", NULL},
    {"begin of another format", 0, "body", "\"v\":1", "\"v\":7", RV_E_VERSION, "in format 7", "record 1 (begin)"},
    {"begin with rules of another engine", 0, "body", "\"rules\":10", "\"rules\":11", RV_E_VERSION,
     "version 11 of the rules", "record 1 (begin)"},
    {"begin with rules before the first", 0, "body", "\"rules\":10", "\"rules\":0", RV_E_INVALID, "not a number from 1",
     "record 1 (begin)"},
    {"begin without a format", 0, "body", "\"v\"", "\"w\"", RV_E_INVALID, "has no version", NULL},
    {"unknown mode", 0, "body", "{", "{\"mode\":\"wild\",", RV_E_INVALID, "wild", NULL},
    {"less than no stages at once", 0, "body", "{", "{\"max_parallel\":-1,", RV_E_INVALID, "negative", NULL},
    {"scripted stage that is gone", 0, "body", "{", "{\"scripted\":[\"x\"],", RV_E_STATE, "stage \"x\"", NULL},
    {"begin without a time", 0, "body", "now_us", "then_us", RV_E_INVALID, "it has no time", NULL},
    {"no state", 0, "no value", NULL, NULL, RV_E_INVALID, "it has no state", NULL},
    {"broken state", 0, "value", "{", "[", RV_E_INVALID, "state cannot be read", NULL},
    {"state of another type", 0, "value", NULL, "7", RV_E_INVALID, "state cannot be read", NULL},
    {"state of a newer engine", 0, "value", "\"state_version\":1", "\"state_version\":99", RV_E_INVALID, "record 1",
     NULL},
};

static void damage(struct book *b, int i)
{
    struct rv_record *r = &b->items[cases[i].at];
    const char *how = cases[i].how;

    if (strcmp(how, "drop") == 0) {
        drop(b, cases[i].at);
    } else if (strcmp(how, "repeat") == 0) {
        struct rv_record again = {r->seq + 1, r->kind, copy(r->body), copy(r->value)};
        for (size_t k = cases[i].at + 1; k < b->n; k++)
            b->items[k].seq++;
        memmove(r + 2, r + 1, (b->n++ - cases[i].at - 1) * sizeof *r);
        r[1] = again;
    } else if (strcmp(how, "kind") == 0) {
        r->kind = cases[i].new[0] - '0';
    } else if (strcmp(how, "no value") == 0) {
        set(&r->value, NULL);
    } else {
        rv_str *s = strcmp(how, "body") == 0 ? &r->body : &r->value;
        if (cases[i].old)
            swap_text(s, cases[i].old, cases[i].new);
        else
            set(s, cases[i].new);
    }
}

/* A run of eight records: a plan of two calls. */
static struct live *eight_records(rv_store *store)
{
    static const char *const replies[] = {
        "{\"steps\":[{\"tool\":\"put\"},{\"tool\":\"send\",\"parameters\":{\"to\":\"ada\"}}]}", "{\"status\":\"ok\"}",
        "{\"status\":\"ok\"}"};
    static const enum rv_event_kind kinds[] = {RV_EVENT_LLM_DONE, RV_EVENT_TOOL_DONE, RV_EVENT_TOOL_DONE};
    struct live *l = live_new(store,
                              "name: t\nmodels: {r: scripted}\nagents:\n"
                              "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, "
                              "default_next: b}\n"
                              "  - {name: b, stage_order: 2, has_tools: true, tool_access: all}\n",
                              1, RV_UNSET);
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = LIVE_T0};

    ck_assert_int_eq(live_step(l, &ev, NULL), 0);
    for (int i = 0; i < 3; i++) {
        ev = (struct rv_event){
            .kind = kinds[i], .now_us = ++l->now_us, .call_id = l->calls[0].id, .reply = rv_str_of(replies[i])};
        ck_assert_int_eq(live_step(l, &ev, NULL), 0);
    }
    ck_assert_int_eq(rv_journal_seq(l->j), 8);
    return l;
}

static void write_book(rv_store *store, const struct book *b)
{
    const struct rv_store_new_run run = {.id = LIVE_RUN,
                                         .user = "ada",
                                         .session = "s",
                                         .pipeline = "t",
                                         .bundle = live_bundle(store),
                                         .stage = "a",
                                         .now_us = LIVE_T0,
                                         .records = b->items,
                                         .n_records = b->n};
    rv_err *err = NULL;

    if (rv_store_create_run(store, &run, &err) < 0)
        ck_abort_msg("%s", rv_kit_err_take(err));
}

START_TEST(what_differs_is_named)
{
    const struct rv_store_scope scope = live_scope();
    rv_store *store = NULL, *other = NULL;
    struct book b = {0};
    struct played got;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    ck_assert_int_eq(rv_store_open("memory:", NULL, &other, NULL), 0);
    struct live *l = eight_records(store);
    ck_assert_int_eq(
        rv_store_read(store, &scope, &(struct rv_record_range){.run = LIVE_RUN, .from = 1}, keep, &b, NULL), 0);
    damage(&b, _i);
    write_book(other, &b);
    l->store = other;
    int rc = play(l, 0, false, &got, &err);
    char *said = rv_kit_err_take(err);
    ck_assert_msg(rc == cases[_i].rc, "%s: %d %s", cases[_i].what, rc, said);
    ck_assert_msg(strstr(said, "replay run \"env_live\"") && strstr(said, cases[_i].text), "%s: %s", cases[_i].what,
                  said);
    ck_assert_msg(!cases[_i].also || strstr(said, cases[_i].also), "%s: %s", cases[_i].what, said);
    ck_assert_msg(rc != RV_E_STATE || strstr(said, "another version of the engine"), "%s: %s", cases[_i].what, said);
    free(said);
    played_fini(&got);
    burn(&b);
    live_free(l);
    rv_store_close(other);
    rv_store_close(store);
}
END_TEST

/* Proves 11.5/engine */
START_TEST(a_record_that_is_missing_is_noticed)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "runs.db");
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    const char *const sql[] = {"DELETE FROM records WHERE seq = 3", "DELETE FROM records WHERE seq = 8",
                               "DELETE FROM records"};
    const char *const want[] = {"record 3", "8", "1"};
    const int code = RV_E_IO;

    for (size_t i = 0; i < RV_COUNT(sql); i++) {
        rv_store *store = NULL;
        struct played got;
        rv_err *err = NULL;
        sqlite3 *db = NULL;
        ck_assert_int_eq(rv_store_open(path, &opts, &store, NULL), 0);
        struct live *l = eight_records(store);
        ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, sql[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        int rc = play(l, 0, false, &got, &err);
        char *said = rv_kit_err_take(err);
        ck_assert_msg(rc == code && strstr(said, want[i]), "%s: %d %s", sql[i], rc, said);
        free(said);
        played_fini(&got);
        const struct rv_store_scope scope = live_scope();
        rv_journal_free(l->j);
        l->j = NULL;
        ck_assert_int_eq(rv_store_delete_run(store, &scope, LIVE_RUN, NULL, l->now_us, NULL), 0);
        live_free(l);
        rv_store_close(store);
    }
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(only_a_run_that_is_there_can_be_replayed)
{
    const struct rv_store_scope eve = {.user = "eve"};
    rv_store *store = NULL;
    struct rv_replayed out;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    struct live *l = eight_records(store);
    const struct rv_replay_opts opts = {.pipeline = l->p, .catalog = &l->catalog};
    ck_assert_int_eq(rv_journal_replay(store, &eve, LIVE_RUN, &opts, &out, NULL), RV_E_NOT_FOUND);
    live_free(l);
    rv_store_close(store);
}
END_TEST

static int stop(void *self, const struct rv_record *record, const struct rv_event *ev, const struct rv_effects *effects,
                const rv_run *run, rv_err **err)
{
    (void)ev;
    (void)effects;
    (void)run;
    (void)err;
    *(int64_t *)self = record->seq;
    return record->seq < 4 ? 0 : RV_E_CANCELLED;
}

START_TEST(who_looks_on_can_end_a_replay)
{
    const struct rv_store_scope scope = live_scope();
    rv_store *store = NULL;
    struct rv_replayed out;
    int64_t seen = 0;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    struct live *l = eight_records(store);
    const struct rv_replay_opts opts = {.pipeline = l->p, .catalog = &l->catalog, .on_step = stop, .self = &seen};
    ck_assert_int_eq(rv_journal_replay(store, &scope, LIVE_RUN, &opts, &out, NULL), RV_E_CANCELLED);
    ck_assert_int_eq(seen, 4);
    live_free(l);
    rv_store_close(store);
}
END_TEST

TCase *damage_case(void)
{
    TCase *tc = tcase_create("damage");

    tcase_add_loop_test(tc, what_differs_is_named, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, a_record_that_is_missing_is_noticed);
    tcase_add_test(tc, only_a_run_that_is_there_can_be_replayed);
    tcase_add_test(tc, who_looks_on_can_end_a_replay);
    return tc;
}
