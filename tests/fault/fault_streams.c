/* Each allocation of a thread that writes lines of a stream fails once: the store has all lines and the end of the
 * stream, or its first lines and no end, and any process may go on with it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define MAX_TEXT ((size_t)1 << 20)
#define N_NOTES  40

static void must(int rc, rv_err **err)
{
    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(*err));
}

static void delta(rv_app_stream *st, enum rv_llm_delta_kind kind, const char *text)
{
    const struct rv_delta_from from = {.call_id = 1};
    const struct rv_llm_delta d = {.kind = kind, .text = rv_str_of(text)};

    rv_app_stream_on_delta(st, "s", &from, &d);
}

static int scenario(rv_app_streams *w, const char *id, const char *note)
{
    const struct rv_app_stream_opts opts = {.id = id, .owner = "me"};
    rv_app_stream *st = NULL;
    rv_err *err = NULL;
    int rc = rv_app_stream_new(w, &opts, &st, &err);

    rv_err_free(err);
    if (rc < 0)
        return rc;
    rv_app_stream_on_event(st, RV_STR_LIT("{\"seq\":1,\"type\":\"x\"}"));
    delta(st, RV_LLM_DELTA_TEXT, note);
    delta(st, RV_LLM_DELTA_THINKING, note);
    for (int i = 0; i < N_NOTES; i++)
        rv_app_stream_note(st, "", rv_str_of(note));
    rv_app_stream_note(st, "end", RV_STR_LIT("{}"));
    rv_app_stream_close(st, RV_APP_STREAM_ENDS);
    return 0;
}

static int add_part(void *self, const struct rv_stream_part *part, rv_err **err)
{
    (void)err;
    rv_buf_add_str(self, part->lines);
    return 0;
}

static int64_t count_lines(rv_str s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n';
    return n;
}

/* True: it has ended. */
static bool look(rv_store *s, const char *id, size_t at, rv_buf *text)
{
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_stream_row row;
    rv_err *err = NULL;

    must(rv_store_get_stream(s, &all, id, &row, &err), &err);
    must(rv_store_read_stream(s, id, 0, add_part, text, &err), &err);
    bool has_ended = row.ended_us > 0;
    ck_assert_msg(has_ended || strcmp(row.owner, RV_APP_STREAM_NOBODY) == 0, "allocation %zu: of \"%s\"", at,
                  row.owner);
    ck_assert_msg(row.n_lines == count_lines(rv_buf_str(text)), "allocation %zu: %lld lines are said to be %lld", at,
                  (long long)count_lines(rv_buf_str(text)), (long long)row.n_lines);
    rv_stream_row_fini(&row);
    return has_ended;
}

START_TEST(no_stream_has_a_gap)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "streams.db"), note[3000], id[32];
    const struct rv_app app = {.store = path, .sync = "off", .capability = "", .quotas = ""};
    const struct rv_app_streams_opts opts = {.app = &app};
    rv_buf whole = RV_BUF_INIT(MAX_TEXT);
    size_t n_ended = 0, n_open = 0;
    rv_store *s = NULL;
    rv_err *err = NULL;
    bool fired = true;

    memset(note, 'x', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    must(rv_app_store_open(&app, RV_APP_STORE_MAKE, &s, &err), &err);
    for (size_t n = 0; fired; n++) { /* the first round is without a failure */
        rv_buf text = RV_BUF_INIT(MAX_TEXT);
        rv_app_streams *w = NULL;
        snprintf(id, sizeof id, "stream%zu", n);
        const struct rv_stream_row row = {
            .id = id, .run = id, .hash = "h", .owner = "me", .created_us = rv_app_now_us()};
        must(rv_store_add_stream(s, &row, &err), &err);
        must(rv_app_streams_new(&opts, &w, &err), &err);
        rv_fault_arm(n == 0 ? SIZE_MAX : n - 1);
        int rc = scenario(w, id, note);
        fired = rv_fault_disarm() || n == 0;
        rv_app_streams_free(w);
        ck_assert(rc == 0 || fired);
        if (rc == 0) {
            bool has_ended = look(s, id, n, n == 0 ? &whole : &text);
            ck_assert_msg(has_ended ? n == 0 || rv_str_eq(rv_buf_str(&text), rv_buf_str(&whole))
                                    : text.len < whole.len && memcmp(rv_buf_cstr(&text), whole.ptr, text.len) == 0,
                          "allocation %zu: other lines", n);
            n_ended += has_ended;
            n_open += !has_ended;
        }
        rv_buf_fini(&text);
    }
    ck_assert_int_eq(count_lines(rv_buf_str(&whole)), N_NOTES + 4);
    ck_assert_uint_ge(n_ended, 2);
    ck_assert(n_open > 2 || !rv_fault_works());
    rv_store_close(s);
    rv_buf_fini(&whole);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_streams");
    TCase *tc = tcase_create("streams");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, no_stream_has_a_gap);
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
