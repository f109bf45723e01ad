/* Timelines, copies and searches of sessions, moments with a session, the feed: each within its scope. */
#include "coreengine/app/app.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

#define T0  INT64_C(1771891200000000) /* 2026-02-24T00:00:00Z */
#define DAY INT64_C(86400000000)

static const struct rv_store_scope ada = {NULL, "ada"}, bob = {NULL, "bob"}, operator_scope = {NULL, NULL};

static void ok(int rc, rv_err *err)
{
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
}

static rv_store *store_with(const char *session, const char *user, int n_messages, int64_t at_us)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    const struct rv_session_row fresh = {
        .id = session, .tenant = RV_STORE_TENANT, .user = user, .name = "The Tale", .created_us = at_us};

    ok(rv_store_open("memory:", NULL, &s, &err), err);
    ok(rv_store_ensure_session(s, &fresh, NULL, &err), err);
    const struct rv_store_scope owner = {NULL, user};
    for (int i = 0; i < n_messages; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%d", i);
        struct rv_message m = {.id = id,
                               .type = i % 2 ? "assistant" : "user",
                               .has_content = true,
                               .content = RV_STR_LIT("words"),
                               .token_count = 10,
                               .created_us = at_us + i};
        ok(rv_store_add_messages(s, &owner, &(struct rv_turn){.session = session, .rows = &m, .n_rows = 1}, at_us + i,
                                 &err),
           err);
    }
    return s;
}

static json_object *add_moment(rv_store *s, const struct rv_store_scope *scope, const char *json, const char *session,
                               char *id, int64_t at_us)
{
    json_object *given = rv_kit_json(json), *row = NULL;
    rv_err *err = NULL;
    struct rv_app_moment_session what = {
        .moment = given, .session = session, .now_us = at_us, .rand = rv_rand_system()};

    ok(rv_app_put_moment(s, scope, &what, id, &row, &err), err);
    json_object_put(given);
    return row;
}

static char *texts_of(json_object *list, const char *member)
{
    rv_buf b = RV_BUF_INIT(100000);

    for (size_t i = 0; i < json_object_array_length(list); i++)
        rv_buf_printf(&b, "%s%s", i ? " " : "",
                      json_object_get_string(json_object_object_get(json_object_array_get_idx(list, i), member)));
    return rv_buf_steal(&b, NULL);
}

START_TEST(a_timeline_keeps_the_newest_events)
{
    rv_store *s = store_with("tale", "ada", 6, T0);
    json_object *events = NULL;
    char id[RV_STORE_MAX_ID + 1];
    rv_err *err = NULL;

    json_object_put(add_moment(s, &ada,
                               "{'name':'early','moment_type':'note','starts_timestamp':'2026-02-24T00:00:00.000004Z'}",
                               "tale", id, T0 + 100));
    ok(rv_app_build_timeline(s, &ada, "tale", 3, &events, &err), err);
    char *types = texts_of(events, "name_or_type");
    ck_assert_str_eq(types, "user note assistant"); /* seq 5, the moment at its start, seq 6 */
    free(types);
    json_object_put(events);
    ck_assert_int_eq(rv_app_build_timeline(s, &bob, "tale", 3, &events, &err), RV_E_NOT_FOUND);
    rv_err_free(err);
    err = NULL;
    ck_assert_int_eq(rv_app_build_timeline(s, &ada, "tale", 0, &events, &err), RV_E_INVALID);
    rv_err_free(err);
    rv_store_close(s);
}
END_TEST

START_TEST(a_copy_has_the_first_messages_and_no_memory)
{
    rv_store *s = store_with("tale", "ada", 5, T0);
    struct rv_app_clone how = {
        .session = "tale", .id = "copy", .max_messages = 3, .now_us = T0 + 50, .rand = rv_rand_system()};
    struct rv_session_row row = {0};
    json_object *moment = NULL;
    char id[RV_STORE_MAX_ID + 1];
    int64_t n = 0;
    rv_err *err = NULL;

    ok(rv_store_build_moment(s, &ada,
                             &(const struct rv_moment_build){.session = "tale", .threshold = 0, .now_us = T0 + 20},
                             &moment, &err),
       err);
    json_object_put(moment);
    ok(rv_app_clone_session(s, &ada, &how, id, &n, &err), err);
    ck_assert_str_eq(id, "copy");
    ck_assert_int_eq(n, 3);
    ok(rv_store_get_session(s, &ada, "copy", &row, &err), err);
    ck_assert_str_eq(row.name, "The Tale (clone)");
    ck_assert_int_eq(row.total_tokens, 30);
    ck_assert_str_eq(row.metadata.ptr, "{\"cloned_from\":\"tale\"}");
    rv_session_row_fini(&row);
    ck_assert_int_eq(rv_app_clone_session(s, &ada, &how, id, &n, &err), RV_E_EXISTS);
    rv_err_free(err);
    err = NULL;
    how.id = "theirs";
    how.user = "bob";
    ck_assert_int_eq(rv_app_clone_session(s, &ada, &how, id, &n, &err), RV_E_DENIED);
    rv_err_free(err);
    err = NULL;
    ok(rv_app_clone_session(s, &operator_scope, &how, id, &n, &err), err);
    ok(rv_store_get_session(s, &bob, "theirs", &row, &err), err);
    rv_session_row_fini(&row);
    how.id = NULL;
    how.user = NULL;
    ck_assert_int_eq(rv_app_clone_session(s, &bob, &how, id, &n, &err), RV_E_NOT_FOUND);
    rv_err_free(err);
    rv_store_close(s);
}
END_TEST

static json_object *metadata_of(rv_store *s, const char *id, struct rv_session_row *row)
{
    json_object *metadata = NULL;
    rv_err *err = NULL;

    ok(rv_store_get_session(s, &ada, id, row, &err), err);
    ok(rv_json_parse(row->metadata, NULL, &metadata, &err), err);
    return metadata;
}

/* Proves p8-data.7: A moment has a session: a new one, or one that notes it */
START_TEST(a_moment_brings_its_session)
{
    rv_store *s = store_with("tale", "ada", 1, T0);
    struct rv_session_row row = {0};
    char id[RV_STORE_MAX_ID + 1];
    json_object *metadata;

    json_object_put(add_moment(s, &ada,
                               "{'name':'upload-report','moment_type':'content_upload','summary':'S',"
                               "'metadata':{'resource_keys':['a','b'],'moment_id':'x'}}",
                               NULL, id, T0));
    metadata = metadata_of(s, id, &row);
    ck_assert_str_eq(row.name, "upload-report");
    ck_assert_str_eq(row.mode, "content_upload");
    ck_assert_str_eq(row.description, "S");
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(metadata, "uploads")), 1);
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(metadata, "resource_keys")), 2);
    ck_assert_str_ne(json_object_get_string(json_object_object_get(metadata, "moment_id")), "x");
    rv_session_row_fini(&row);
    json_object_put(metadata);
    for (int i = 0; i < 2; i++)
        json_object_put(add_moment(s, &ada,
                                   i ? "{'name':'two','moment_type':'note','summary':'T','metadata':{'resource_keys':"
                                       "['b','c']}}"
                                     : "{'name':'one','moment_type':'note','summary':'S','metadata':{'resource_keys':"
                                       "['a','b']}}",
                                   "tale", id, T0 + i));
    metadata = metadata_of(s, "tale", &row);
    ck_assert_str_eq(row.name, "The Tale");
    ck_assert_str_eq(row.description, "S"); /* it had none before the first */
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(metadata, "uploads")), 2);
    ck_assert_str_eq(json_object_to_json_string_ext(rv_json_get_arr(metadata, "resource_keys"), 0),
                     "[\"a\",\"b\",\"c\"]");
    ck_assert_str_eq(json_object_get_string(json_object_object_get(metadata, "latest_summary")), "T");
    rv_session_row_fini(&row);
    json_object_put(metadata);
    rv_store_close(s);
}
END_TEST

static char *feed_of(rv_store *s, const struct rv_store_scope *scope, const char *before, bool future)
{
    const struct rv_app_feed what = {
        .before_date = before, .days = 5, .include_future = future, .now_us = T0 + DAY + 1000};
    json_object *list = NULL;
    rv_err *err = NULL;

    ok(rv_app_feed(s, scope, &what, &list, &err), err);
    char *text = texts_of(list, "summary");
    json_object_put(list);
    return text;
}

START_TEST(a_feed_has_days_and_only_their_owners_rows)
{
    rv_store *s = store_with("tale", "ada", 4, T0);
    char id[RV_STORE_MAX_ID + 1];
    json_object *row = NULL;
    rv_err *err = NULL;

    ok(rv_store_build_moment(
           s, &ada, &(const struct rv_moment_build){.session = "tale", .threshold = 0, .now_us = T0 + 50}, &row, &err),
       err);
    json_object_put(row);
    json_object_put(add_moment(s, &ada, "{'name':'n','moment_type':'note','summary':'N'}", "tale", id, T0 + DAY));
    json_object_put(
        add_moment(s, &ada, "{'name':'f','moment_type':'note','summary':'F','starts_timestamp':'2027-01-01T00:00:00Z'}",
                   "tale", id, T0 + DAY));
    json_object_put(add_moment(s, &ada,
                               "{'name':'r','moment_type':'reminder','summary':'R','starts_timestamp':"
                               "'2027-01-01T00:00:00Z'}",
                               "tale", id, T0 + DAY + 1));
    json_object_put(add_moment(s, &bob, "{'name':'b','moment_type':'note','summary':'B'}", "bobs", id, T0 + DAY));
    char *text = feed_of(s, &ada, NULL, false);
    ck_assert_str_eq(text, "Today: 0 messages across 0 session(s), 0 tokens. 2 moment(s). R N "
                           "Yesterday: 4 messages across 1 session(s), 40 tokens. 0 moment(s).");
    free(text);
    text = feed_of(s, &ada, "2026-02-24", false);
    ck_assert_str_eq(text, "Yesterday: 4 messages across 1 session(s), 40 tokens. 0 moment(s).");
    free(text);
    text = feed_of(s, &ada, NULL, true);
    ck_assert_ptr_nonnull(strstr(text, "3 moment(s)"));
    free(text);
    text = feed_of(s, &bob, NULL, false);
    ck_assert_str_eq(text, "Today: 0 messages across 0 session(s), 0 tokens. 1 moment(s). B");
    free(text);
    rv_store_close(s);
}
END_TEST

#define MANY (RV_ENTITY_MAX_FIND + 1) /* more than one find gives */

static void add_messages(rv_store *s, const char *session, const char *user, int n, int64_t at_us)
{
    const struct rv_store_scope owner = {NULL, user};
    const struct rv_session_row fresh = {
        .id = session, .tenant = RV_STORE_TENANT, .user = user, .name = "Much", .created_us = at_us};
    struct rv_message *rows = calloc((size_t)n, sizeof *rows);
    char(*ids)[16] = calloc((size_t)n, sizeof *ids);
    rv_err *err = NULL;

    ck_assert(rows && ids);
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "n%d", i);
        rows[i] = (struct rv_message){.id = ids[i], .type = "user", .token_count = 1, .created_us = at_us};
    }
    ok(rv_store_ensure_session(s, &fresh, NULL, &err), err);
    ok(rv_store_add_messages(s, &owner, &(struct rv_turn){.session = session, .rows = rows, .n_rows = (size_t)n}, at_us,
                             &err),
       err);
    free(rows);
    free(ids);
}

/* What is not in a feed: n moments of ada that have not begun. */
static void add_future(rv_store *s, int n, int64_t at_us)
{
    json_object *row = rv_kit_json("{'moment_type':'note','starts_timestamp':'2027-01-01T00:00:00Z'}");
    json_object **rows = calloc((size_t)n, sizeof(json_object *));
    rv_err *err = NULL;

    for (int i = 0; i < n; i++)
        rows[i] = row;
    ok(rv_store_put_entities(
           s, &ada, &(struct rv_entities_put){.kind = "moments", .rows = rows, .n_rows = (size_t)n, .now_us = at_us},
           NULL, &err),
       err);
    free(rows);
    json_object_put(row);
}

START_TEST(a_feed_is_not_hidden_behind_many_rows)
{
    rv_store *s = store_with("tale", "ada", 4, T0);
    char id[RV_STORE_MAX_ID + 1];

    json_object_put(add_moment(s, &ada, "{'name':'n','moment_type':'note','summary':'N'}", "tale", id, T0 + 5));
    add_messages(s, "common", "", MANY, T0 + 10);
    add_messages(s, "much", "ada", MANY, T0 - DAY);
    add_future(s, MANY, T0 + 20);
    char *text = feed_of(s, &ada, NULL, false);
    ck_assert_str_eq(text, "Yesterday: 4 messages across 1 session(s), 40 tokens. 1 moment(s). N "
                           "Feb 23: 10001 messages across 1 session(s), 10001 tokens. 0 moment(s).");
    free(text);
    text = feed_of(s, &operator_scope, "2026-02-24", false);
    ck_assert_ptr_nonnull(strstr(text, "Yesterday: 10005 messages across 2 session(s), 10041 tokens."));
    free(text);
    rv_store_close(s);
}
END_TEST

START_TEST(sessions_are_found_by_name_a_page_at_a_time)
{
    rv_store *s = store_with("tale", "ada", 2, T0);
    struct rv_app_session_search search = {.name = "tALE", .page = 1, .size = 1};
    json_object *page = NULL, *first;
    rv_err *err = NULL;

    ok(rv_app_search_sessions(s, &ada, &search, &page, &err), err);
    first = json_object_array_get_idx(rv_json_get_arr(page, "results"), 0);
    ck_assert_int_eq(json_object_get_int(json_object_object_get(first, "message_count")), 2);
    ck_assert_int_eq(json_object_get_int(json_object_object_get(page, "total")), 1);
    json_object_put(page);
    ok(rv_app_search_sessions(s, &bob, &search, &page, &err), err);
    ck_assert_int_eq(json_object_get_int(json_object_object_get(page, "total")), 0);
    json_object_put(page);
    search.page = 2;
    ok(rv_app_search_sessions(s, &ada, &search, &page, &err), err);
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(page, "results")), 0);
    json_object_put(page);
    rv_store_close(s);
}
END_TEST

TCase *memory_case(void)
{
    TCase *tc = tcase_create("memory");

    tcase_add_test(tc, a_timeline_keeps_the_newest_events);
    tcase_add_test(tc, a_copy_has_the_first_messages_and_no_memory);
    tcase_add_test(tc, a_moment_brings_its_session);
    tcase_add_test(tc, a_feed_has_days_and_only_their_owners_rows);
    tcase_add_test(tc, a_feed_is_not_hidden_behind_many_rows);
    tcase_add_test(tc, sessions_are_found_by_name_a_page_at_a_time);
    return tc;
}
