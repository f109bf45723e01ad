/* Tokens of a link: where they come from without a person, and where they are kept. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/kit/kit.h"
#include "tests/unit/mcp_web/scene.h"

#define RESPONSE "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"
#define JSON     HEAD("200 OK", "application/json") "\r\n"
#define REFUSED  HEAD("401 No", "text/plain") "WWW-Authenticate: Bearer scope=\"files\"\r\n\r\n"
static const struct rv_mcp_send call = {
    .id = 7, .method = "tools/call", .version = "2026-07-28", .is_modern = true, .body = {"{call}", 6}};

static char *folder, path[300];

static void make_folder(void)
{
    folder = rv_kit_tmpdir();
}

static void remove_folder(void)
{
    rv_kit_tmpdir_remove(folder);
}

/* in: a folder that is not there yet, or "." for the one that is */
static struct rv_mcp_web_auth auth_in(const char *in)
{
    snprintf(path, sizeof path, "%s/%s/tokens.json", folder, in);
    return (struct rv_mcp_web_auth){
        .file = path,
        .config = {.server = "wiki", .client_id = "me", .client_secret = "hush", .grant = RV_OAUTH_CLIENT}};
}

/* The server has no metadata: it is its own authorization server, with the usual paths. */
static const struct turn own[] = {
    {{"POST /mcp", "!uthorization"}, REFUSED},
    {{"GET /.well-known/oauth-protected-resource/mcp "}, HEAD("404 No", "text/plain") "\r\n"},
    {{"GET /.well-known/oauth-protected-resource "}, HEAD("404 No", "text/plain") "\r\n"},
    {{"GET /.well-known/oauth-authorization-server "}, HEAD("404 No", "text/plain") "\r\n"},
    {{"GET /.well-known/openid-configuration "}, HEAD("404 No", "text/plain") "\r\n"},
    {{"POST /token ", "Authorization: Basic bWU6aHVzaA==", "grant_type=client_credentials&scope=files&resource=http"},
     JSON "{\"access_token\":\"t1\",\"token_type\":\"Bearer\",\"expires_in\":3600}"},
    {{"POST /mcp", "Authorization: Bearer t1", "{call}"}, JSON RESPONSE},
};

START_TEST(a_client_gets_a_token_while_its_request_waits)
{
    const struct rv_mcp_web_auth auth = auth_in("reeve/mcp");
    rv_buf text = RV_BUF_INIT(10000);
    struct scene s;
    struct stat st;

    scene_open(&s, own, RV_COUNT(own), &auth);
    scene_send(&s, &call);
    scene_run(&s, 1, 0);
    ck_assert_str_eq(rv_buf_cstr(&s.log), "message 7\n");
    scene_close(&s);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(rv_file_read(path, &text, NULL), 0);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\"access_token\": \"t1\""));
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_kept_token_is_sent_at_once)
{
    static const struct turn turns[] = {{{"POST /mcp", "Authorization: Bearer t1"}, JSON RESPONSE}};
    const struct rv_mcp_web_auth auth = auth_in(".");
    struct scene s;

    rv_kit_write(path, "{\"access_token\":\"t1\"}");
    scene_open(&s, turns, RV_COUNT(turns), &auth);
    scene_send(&s, &call);
    scene_run(&s, 1, 0);
    scene_close(&s);
}
END_TEST

START_TEST(a_token_of_another_process_is_taken)
{
    static const struct turn turns[] = {{{"POST /mcp", "Authorization: Bearer t1"}, NULL},
                                        {{"POST /mcp", "Authorization: Bearer t2"}, JSON RESPONSE}};
    const struct rv_mcp_web_auth auth = auth_in(".");
    struct scene s;

    rv_kit_write(path, "{\"access_token\":\"t1\"}");
    scene_open(&s, turns, RV_COUNT(turns), &auth);
    scene_send(&s, &call);
    while (s.at < 1)
        uv_run(&s.loop, UV_RUN_ONCE);
    rv_kit_write(path, "{\"access_token\":\"t2\"}");
    s.server.after = CLOSE;
    server_write(&s.server, REFUSED);
    scene_run(&s, 1, 0);
    scene_close(&s);
}
END_TEST

START_TEST(where_a_person_is_needed_the_failure_says_what_to_do)
{
    struct rv_mcp_web_auth auth = auth_in("reeve");
    rv_buf text = RV_BUF_INIT(10000);
    struct scene s;

    auth.config.grant = RV_OAUTH_PERSON;
    scene_open(&s, own, RV_COUNT(own) - 2, &auth);
    scene_send(&s, &call);
    scene_run(&s, 0, 1);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.log), "failed 7 unauthorized 401 unsent"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.log), "reeve mcp login PIPELINE wiki"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&s.log), "hush"));
    scene_close(&s);
    ck_assert_int_eq(rv_file_read(path, &text, NULL), 0); /* the login will ask for what was refused */
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\"scope\": \"files\""));
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_token_that_was_refused_does_not_come_back_from_its_file)
{
    static const struct turn turns[] = {
        {{"POST /mcp", "Authorization: Bearer t1"}, REFUSED},
        {{"GET /.well-known/oauth-protected-resource/mcp "}, HEAD("404 No", "text/plain") "\r\n"},
        {{"GET /.well-known/oauth-protected-resource "}, HEAD("404 No", "text/plain") "\r\n"},
        {{"GET /.well-known/oauth-authorization-server "}, HEAD("404 No", "text/plain") "\r\n"},
        {{"GET /.well-known/openid-configuration "}, HEAD("404 No", "text/plain") "\r\n"},
        {{"POST /token ", "grant_type=refresh_token"},
         HEAD("400 No", "application/json") "\r\n{\"error\":\"invalid_grant\"}"},
    };
    struct rv_mcp_web_auth auth = auth_in(".");
    struct scene s;

    auth.config.grant = RV_OAUTH_PERSON;
    rv_kit_write(path, "{\"access_token\":\"t1\",\"refresh_token\":\"r1\"}");
    scene_open(&s, turns, RV_COUNT(turns), &auth);
    scene_send(&s, &call);
    scene_run(&s, 0, 1);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.log), "reeve mcp login PIPELINE wiki"));
    scene_close(&s);
}
END_TEST

#define NO_METADATA                                                                                                    \
    {{"GET /.well-known/oauth-protected-resource/mcp "}, HEAD("404 No", "text/plain") "\r\n"},                         \
        {{"GET /.well-known/oauth-protected-resource "}, HEAD("404 No", "text/plain") "\r\n"},                         \
        {{"GET /.well-known/oauth-authorization-server "}, HEAD("404 No", "text/plain") "\r\n"},                       \
    {                                                                                                                  \
        {"GET /.well-known/openid-configuration "}, HEAD("404 No", "text/plain") "\r\n"                                \
    }
static const char renewed[] = "{\"access_token\":\"t2\",\"refresh_token\":\"r2\",\"expires_at\":1}";

START_TEST(a_refresh_token_of_another_process_is_used_though_its_token_has_ended)
{
    static const struct turn turns[] = {
        {{"POST /mcp", "Authorization: Bearer t1"}, NULL},
        NO_METADATA,
        {{"POST /token ", "grant_type=refresh_token", "refresh_token=r2"},
         JSON "{\"access_token\":\"t3\",\"token_type\":\"Bearer\",\"refresh_token\":\"r3\"}"},
        {{"POST /mcp", "Authorization: Bearer t3"}, JSON RESPONSE},
    };
    struct rv_mcp_web_auth auth = auth_in(".");
    struct scene s;

    auth.config.grant = RV_OAUTH_PERSON;
    rv_kit_write(path, "{\"access_token\":\"t1\",\"refresh_token\":\"r1\"}");
    scene_open(&s, turns, RV_COUNT(turns), &auth);
    scene_send(&s, &call);
    while (s.at < 1)
        uv_run(&s.loop, UV_RUN_ONCE);
    rv_kit_write(path, renewed);
    s.server.after = CLOSE;
    server_write(&s.server, REFUSED);
    scene_run(&s, 1, 0);
    scene_close(&s);
}
END_TEST

START_TEST(a_refresh_that_is_refused_keeps_the_one_of_another_process)
{
    static const struct turn turns[] = {
        {{"POST /mcp", "Authorization: Bearer t1"}, REFUSED},
        NO_METADATA,
        {{"POST /token ", "refresh_token=r1"}, NULL},
    };
    struct rv_mcp_web_auth auth = auth_in(".");
    rv_buf text = RV_BUF_INIT(10000);
    struct scene s;

    auth.config.grant = RV_OAUTH_PERSON;
    rv_kit_write(path, "{\"access_token\":\"t1\",\"refresh_token\":\"r1\"}");
    scene_open(&s, turns, RV_COUNT(turns), &auth);
    scene_send(&s, &call);
    scene_turns(&s);
    rv_kit_write(path, renewed);
    s.server.after = CLOSE;
    server_write(&s.server, HEAD("400 No", "application/json") "\r\n{\"error\":\"invalid_grant\"}");
    scene_run(&s, 0, 1);
    scene_close(&s);
    ck_assert_int_eq(rv_file_read(path, &text, NULL), 0);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\"refresh_token\": \"r2\""));
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_server_that_refuses_each_token_is_not_asked_for_ever)
{
    static struct turn turns[1 + 2 * 6];
    const struct rv_mcp_web_auth auth = auth_in(".");
    struct scene s;
    size_t n = 0;

    turns[n++] = own[0];
    for (int i = 0; i < 2; i++) {
        for (size_t k = 1; k < RV_COUNT(own) - 1; k++)
            turns[n++] = own[k];
        turns[n++] = (struct turn){{"POST /mcp", "Authorization: Bearer t1"}, REFUSED};
    }
    scene_open(&s, turns, n, &auth);
    scene_send(&s, &call);
    scene_run(&s, 0, 1);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.log), "failed 7 unauthorized 401"));
    scene_close(&s);
}
END_TEST

START_TEST(a_request_is_cancelled_while_it_waits_for_a_token)
{
    static const struct turn turns[] = {{{"POST /mcp"}, REFUSED},
                                        {{"GET /.well-known/oauth-protected-resource/mcp "}, NULL}};
    const struct rv_mcp_web_auth auth = auth_in(".");
    struct scene s;

    scene_open(&s, turns, RV_COUNT(turns), &auth);
    scene_send(&s, &call);
    scene_turns(&s);
    rv_mcp_link_cancel(&s.link, 7);
    scene_close(&s);
}
END_TEST

START_TEST(a_file_that_is_not_ours_is_not_shown)
{
    const struct rv_mcp_web_auth auth = auth_in(".");
    struct rv_mcp_link link;
    uv_loop_t loop;
    rv_buf text = RV_BUF_INIT(1000);
    rv_err *err = NULL;
    const struct rv_mcp_web_opts opts = {.loop = &loop, .url = "http://127.0.0.1:1/", .auth = &auth};

    ck_assert_int_eq(uv_loop_init(&loop), 0);
    rv_kit_write(path, "{\"access_token\":\"hush\" oops");
    ck_assert_int_eq(rv_mcp_web_open(&opts, &link, &err), RV_E_INVALID);
    rv_err_write_text(err, false, &text);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&text), "hush"));
    rv_err_free(err);
    rv_buf_fini(&text);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

TCase *tokens_case(void)
{
    TCase *c = tcase_create("tokens");

    tcase_add_checked_fixture(c, make_folder, remove_folder);
    tcase_add_test(c, a_client_gets_a_token_while_its_request_waits);
    tcase_add_test(c, a_kept_token_is_sent_at_once);
    tcase_add_test(c, a_token_of_another_process_is_taken);
    tcase_add_test(c, where_a_person_is_needed_the_failure_says_what_to_do);
    tcase_add_test(c, a_token_that_was_refused_does_not_come_back_from_its_file);
    tcase_add_test(c, a_refresh_token_of_another_process_is_used_though_its_token_has_ended);
    tcase_add_test(c, a_refresh_that_is_refused_keeps_the_one_of_another_process);
    tcase_add_test(c, a_server_that_refuses_each_token_is_not_asked_for_ever);
    tcase_add_test(c, a_request_is_cancelled_while_it_waits_for_a_token);
    tcase_add_test(c, a_file_that_is_not_ours_is_not_shown);
    return c;
}
