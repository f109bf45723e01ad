/* The mode client of encryption: what the engine makes of rows has their words, what a client reads has none. */
#include "coreengine/app/app.h"

#include <check.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

#define T0  INT64_C(1771891200000000) /* 2026-02-24T00:00:00Z */
#define KEY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static const struct rv_store_scope ada = {NULL, "ada"};

static void ok(int rc, rv_err *err)
{
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
}

static rv_store *store_of_clients(void)
{
    rv_keyring *ring = NULL;
    rv_store *s = NULL;
    rv_err *err = NULL;
    char id[RV_ENCRYPTION_ID];

    ok(rv_keyring_read(RV_STR_LIT(KEY), "keys", &ring, &err), err);
    ok(rv_store_open("memory:", &(const struct rv_store_opts){.ring = ring}, &s, &err), err);
    rv_keyring_unref(ring);
    ok(rv_store_set_encryption(s, RV_STORE_TENANT, &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_CLIENT},
                               T0, id, &err),
       err);
    return s;
}

static void add_session(rv_store *s, const char *id, const char *description)
{
    const struct rv_session_row fresh = {
        .id = id, .tenant = RV_STORE_TENANT, .user = "ada", .description = description, .created_us = T0};
    struct rv_message m = {
        .id = "m1", .type = "user", .has_content = true, .content = RV_STR_LIT("of leeks"), .token_count = 10};
    rv_err *err = NULL;

    ok(rv_store_ensure_session(s, &fresh, NULL, &err), err);
    ok(rv_store_add_messages(s, &ada, &(struct rv_turn){.session = id, .rows = &m, .n_rows = 1}, T0, &err), err);
}

static json_object *put_moment(rv_store *s, const char *json, const char *session, char *id)
{
    json_object *given = rv_kit_json(json), *row = NULL;
    const struct rv_app_moment_session what = {
        .moment = given, .session = session, .now_us = T0, .rand = rv_rand_system()};
    rv_err *err = NULL;

    ok(rv_app_put_moment(s, &ada, &what, id, &row, &err), err);
    json_object_put(given);
    return row;
}

static bool is_hidden(const char *text)
{
    return text && strncmp(text, "reeve-enc1:", strlen("reeve-enc1:")) == 0;
}

/* The description of a session: a client gets ciphertext, an agent this. */
static void check_described(rv_store *s, const char *session, const char *wanted)
{
    struct rv_session_row row = {0};
    rv_err *err = NULL;

    ok(rv_store_get_session(s, &ada, session, &row, &err), err);
    ck_assert_msg(is_hidden(row.description), "a client is shown %s", row.description);
    rv_session_row_fini(&row);
    rv_store_reveal(s, true);
    ok(rv_store_get_session(s, &ada, session, &row, &err), err);
    rv_store_reveal(s, false);
    ck_assert_str_eq(row.description, wanted);
    rv_session_row_fini(&row);
}

START_TEST(a_copied_session_is_encrypted_once)
{
    struct rv_app_clone how = {.session = "tale", .id = "copy", .now_us = T0, .rand = rv_rand_system()};
    rv_store *s = store_of_clients();
    char id[RV_STORE_MAX_ID + 1];
    int64_t n = 0;
    rv_err *err = NULL;

    add_session(s, "tale", "of the garden");
    ok(rv_app_clone_session(s, &ada, &how, id, &n, &err), err);
    check_described(s, "copy", "of the garden");
    rv_store_close(s);
}
END_TEST

START_TEST(a_moment_tells_its_session_in_plain)
{
    rv_store *s = store_of_clients();
    struct rv_session_row row = {0};
    json_object *moment, *metadata = NULL;
    char id[RV_STORE_MAX_ID + 1];
    rv_err *err = NULL;

    moment = put_moment(
        s, "{'name':'one','moment_type':'note','summary':'S','metadata':{'resource_keys':['a'],'k':'v'}}", NULL, id);
    ck_assert(is_hidden(rv_json_text_or(moment, "summary", ""))); /* who wrote it is a client */
    json_object_put(moment);
    check_described(s, id, "S");
    json_object_put(put_moment(s, "{'name':'two','moment_type':'note','summary':'T','metadata':{'k':'w'}}", id, id));
    ok(rv_store_get_session(s, &ada, id, &row, &err), err);
    ok(rv_json_parse(row.metadata, NULL, &metadata, &err), err);
    ck_assert_str_eq(rv_json_text_or(metadata, "latest_summary", ""), "T");
    ck_assert_str_eq(rv_json_text_or(metadata, "k", ""), "v");
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(metadata, "resource_keys")), 1);
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(metadata, "uploads")), 2);
    ck_assert_ptr_null(strstr(row.metadata.ptr, "reeve-enc"));
    json_object_put(metadata);
    rv_session_row_fini(&row);
    rv_store_close(s);
}
END_TEST

START_TEST(a_chunk_of_a_session_gets_a_summary)
{
    rv_store *s = store_of_clients();
    struct rv_app_summary summary = {.agent = "scribe", .run = "r1", .now_us = T0};
    json_object *moment = NULL, *seen = NULL;
    rv_buf told = RV_BUF_INIT(10000);
    rv_err *err = NULL;

    add_session(s, "tale", NULL);
    ok(rv_store_build_moment(s, &ada, &(const struct rv_moment_build){.session = "tale", .now_us = T0}, &moment, &err),
       err);
    summary.moment = rv_json_text_or(moment, "id", "");
    ok(rv_app_read_chunk(s, &ada, summary.moment, &told, summary.hash, &err), err);
    ck_assert_str_eq(rv_buf_cstr(&told), "user: of leeks\n");
    ok(rv_app_put_summary(s, &ada, &summary, RV_STR_LIT("Of a soup."), &err), err);
    rv_store_reveal(s, true);
    ok(rv_store_get_entity(s, &ada, "moments", summary.moment, &seen, &err), err);
    ck_assert_str_eq(rv_json_text_or(seen, "summary", ""), "Of a soup.");
    ck_assert_str_eq(rv_json_text_or(rv_json_get_obj(seen, "metadata"), "summariser", ""), "scribe");
    json_object_put(seen);
    json_object_put(moment);
    rv_buf_fini(&told);
    rv_store_close(s);
}
END_TEST

static int note_outcome(void *self, const struct rv_ingested *file, rv_err **err)
{
    (void)err;
    *(enum rv_ingest_outcome *)self = file->outcome;
    return 0;
}

START_TEST(a_file_that_did_not_change_is_not_written_again)
{
    rv_store *s = store_of_clients();
    enum rv_ingest_outcome outcome = RV_INGEST_FAILED;
    const struct rv_app_ingest how = {.store = s, .scope = ada, .on_file = note_outcome, .self = &outcome};
    rv_err *err = NULL;

    ok(rv_app_ingest_text(&how, "rope.md", RV_STR_LIT("A rope holds."), &err), err);
    ck_assert_int_eq(outcome, RV_INGEST_ADDED);
    ok(rv_app_ingest_text(&how, "rope.md", RV_STR_LIT("A rope holds."), &err), err);
    ck_assert_int_eq(outcome, RV_INGEST_UNCHANGED);
    rv_store_close(s);
}
END_TEST

START_TEST(the_dreamers_of_a_tenant_are_found)
{
    const struct rv_store_scope operator_scope = {NULL, NULL};
    json_object *given = rv_kit_json("{'name':'default','metadata':{'dreamer_agents':['owl']}}"), *agents = NULL;
    const struct rv_entities_put put = {.kind = "tenants", .rows = &given, .n_rows = 1, .now_us = T0};
    rv_store *s = store_of_clients();
    rv_err *err = NULL;

    ok(rv_store_put_entities(s, &operator_scope, &put, NULL, &err), err);
    ok(rv_app_dream_find_agents(s, &ada, &agents, &err), err);
    ck_assert_str_eq(json_object_to_json_string_ext(agents, 0), "[\"owl\"]");
    json_object_put(agents);
    json_object_put(given);
    rv_store_close(s);
}
END_TEST

static int count_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int *)self;
    return 0;
}

static int found_by(rv_store *s, const char *text)
{
    const struct rv_session_filter any = {.limit = 0};
    rv_err *err = NULL;
    int n = 0;

    ok(rv_app_grep_sessions(s, &ada, &(const struct rv_session_grep){.filter = &any, .text = text}, count_session, &n,
                            &err),
       err);
    return n;
}

/* Neither does a short text match what base64 happens to have. */
START_TEST(words_that_a_client_is_not_shown_find_no_session)
{
    rv_store *s = store_of_clients();
    json_object *events = NULL;
    rv_err *err = NULL;

    add_session(s, "tale", NULL);
    ck_assert_int_eq(found_by(s, "leeks"), 0);
    ck_assert_int_eq(found_by(s, "enc1:"), 0);
    ck_assert_int_eq(found_by(s, "tale"), 1); /* by its name */
    ok(rv_app_build_timeline(s, &ada, "tale", 9, &events, &err), err);
    ck_assert_str_eq(rv_json_text_or(json_object_array_get_idx(events, 0), "encryption_level", ""), "client");
    json_object_put(events);
    rv_store_close(s);
}
END_TEST

START_TEST(a_call_that_is_hidden_has_a_name)
{
    const struct rv_message hidden = {.tool_calls = RV_STR_LIT("{\"encrypted\":\"reeve-enc1:\"}")},
                            plain = {.tool_calls = RV_STR_LIT("{\"name\":\"look\",\"id\":\"c1\"}")};
    struct rv_app_tool_call call;
    json_object *json = NULL;

    rv_app_tool_call_read(&hidden, &json, &call);
    ck_assert_str_eq(call.name, "(encrypted)");
    json_object_put(json);
    rv_app_tool_call_read(&plain, &json, &call);
    ck_assert_str_eq(call.name, "look");
    json_object_put(json);
}
END_TEST

TCase *client_case(void)
{
    TCase *tc = tcase_create("client");

    tcase_add_test(tc, a_copied_session_is_encrypted_once);
    tcase_add_test(tc, a_moment_tells_its_session_in_plain);
    tcase_add_test(tc, a_chunk_of_a_session_gets_a_summary);
    tcase_add_test(tc, a_file_that_did_not_change_is_not_written_again);
    tcase_add_test(tc, the_dreamers_of_a_tenant_are_found);
    tcase_add_test(tc, words_that_a_client_is_not_shown_find_no_session);
    tcase_add_test(tc, a_call_that_is_hidden_has_a_name);
    return tc;
}
