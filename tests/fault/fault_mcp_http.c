/* Each allocation fails once while answers over HTTP are read, headers written, tokens asked for and pins compared. */
#include "coreengine/mcp/mcp.h"
#include "tests/kit/ec_keys.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

/* --- answers --- */

static void ignore(void *self, rv_str json)
{
    (void)self;
    (void)json;
}

static int read_answer(const struct rv_mcp_head *head, const char *body, enum rv_mcp_verdict want)
{
    struct rv_mcp_answer a;
    struct rv_mcp_failure f;
    rv_buf text = RV_BUF_INIT(1024);

    rv_mcp_answer_init(&a, 7, false, ignore, NULL);
    int rc = rv_mcp_answer_on_head(&a, head, NULL);
    for (const char *p = body; *p && rc == 0; p++)
        rc = rv_mcp_answer_read(&a, (rv_str){p, 1}, NULL);
    if (rc == 0 && rv_mcp_answer_end(&a, false, &text, &f) != want)
        rc = RV_E_NOMEM;
    if (rc == 0)
        rc = text.rc;
    rv_mcp_answer_fini(&a);
    rv_buf_fini(&text);
    return rc;
}

static int events(void)
{
    const struct rv_mcp_head head = {.status = 200, .content_type = RV_STR_LIT("Text/Event-Stream; charset=utf-8")};

    return read_answer(&head,
                       ": hello\n\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"
                       "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\"result\":{}}\n\n",
                       RV_MCP_OVER);
}

static int json(void)
{
    const struct rv_mcp_head head = {.status = 200, .content_type = RV_STR_LIT("application/json")};

    return read_answer(&head, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[]}}", RV_MCP_OVER);
}

static int refusal(void)
{
    const struct rv_mcp_head head = {.status = 403,
                                     .content_type = RV_STR_LIT("text/plain"),
                                     .challenge = RV_STR_LIT("Basic x, Bearer error=\"insufficient_scope\", scope=a")};

    return read_answer(&head, "no", RV_MCP_FAILED);
}

static int another_type(void)
{
    const struct rv_mcp_head head = {.status = 200, .content_type = RV_STR_LIT("text/html")};

    return read_answer(&head, "<html>", RV_MCP_FAILED);
}

/* --- headers --- */

static int headers(void)
{
    json_object *more = json_object_new_object();
    struct rv_mcp_headers h = {.n = 0};
    struct rv_mcp_send m = {.id = 1,
                            .method = "tools/call",
                            .name = "t\xc3\xa4st",
                            .headers = more,
                            .version = "2026-07-28",
                            .is_modern = true};
    int rc = more ? rv_json_set_text(more, "Mcp-Param-City", " K\xc3\xb6ln ", NULL) : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_mcp_headers_build(&m, "", &h, NULL);
    rv_mcp_headers_fini(&h);
    if (rc == 0)
        rc = rv_mcp_headers_build_stream("2025-11-25", "session", "event", &h, NULL);
    rv_mcp_headers_fini(&h);
    json_object_put(more);
    return rc;
}

/* --- tokens --- */

#define SERVER "https://s.example/mcp"
#define ISSUER "https://a.example/t"

struct answer {
    int status;
    const char *text;
};
static const char resource[] = "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" ISSUER
                               "\"],\"scopes_supported\":[\"read\",\"write\"]}";
static const char metadata[] =
    "{\"issuer\":\"" ISSUER "\",\"authorization_endpoint\":\"" ISSUER "/authorize?x=1\",\"token_endpoint\":\"" ISSUER
    "/token\",\"registration_endpoint\":\"" ISSUER "/register\",\"scopes_supported\":[\"offline_access\"],"
    "\"grant_types_supported\":[\"authorization_code\",\"refresh_token\",\"client_credentials\"],"
    "\"code_challenge_methods_supported\":[\"S256\"],\"token_endpoint_auth_methods_supported\":"
    "[\"client_secret_basic\",\"none\"]}";
static const char token[] =
    "{\"access_token\":\"t\",\"token_type\":\"bearer\",\"expires_in\":60,\"refresh_token\":\"r\","
    "\"scope\":\"read\"}";

/* What a browser brings: the state is in the address that was opened. */
static int approve(rv_oauth *o)
{
    RV_AUTO(rv_buf_fini) rv_buf query = RV_BUF_INIT(4096);
    const char *state = strstr(rv_oauth_step(o)->url, "state=");

    if (!state)
        return RV_E_INTERNAL;
    rv_buf_printf(&query, "code=c&iss=https%%3A%%2F%%2Fa.example%%2Ft&%.*s", (int)strcspn(state, "&"), state);
    int rc = rv_buf_check(&query, "a query", NULL);
    return rc < 0 ? rc : rv_oauth_on_redirect(o, rv_buf_str(&query), 1, NULL);
}

static int flow(const struct rv_oauth_config *config, const char *kept_text, const struct answer *answers)
{
    static const unsigned char random[RV_OAUTH_RANDOM] = {1};
    json_object *kept = NULL;
    rv_oauth *o = NULL;
    rv_buf out = RV_BUF_INIT(RV_OAUTH_MAX_TOKEN);
    int rc = rv_json_parse(rv_str_of(kept_text), NULL, &kept, NULL);

    if (rc == 0)
        rc = rv_oauth_new(
            config,
            &(const struct rv_oauth_start){
                .kept = kept, .status = 401, .challenge = RV_STR_LIT("Bearer scope=\"read\""), .random = random},
            &o, NULL);
    while (rc == 0 && rv_oauth_step(o)->kind != RV_OAUTH_DONE)
        if (rv_oauth_step(o)->kind == RV_OAUTH_ASK)
            rc = approve(o);
        else {
            rc = rv_oauth_on_answer(o, answers->status, rv_str_of(answers->text), 1, NULL);
            answers++;
        }
    if (rc == 0)
        rc = rv_oauth_read_token(kept, 1, &out) ? out.rc : RV_E_INTERNAL;
    rv_oauth_free(o);
    json_object_put(kept);
    rv_buf_fini(&out);
    return rc;
}

static int registered_login(void)
{
    static const struct answer answers[] = {{404, ""},
                                            {200, resource},
                                            {200, metadata},
                                            {201, "{\"client_id\":\"i\",\"client_secret\":\"s\"}"},
                                            {200, token}};
    const struct rv_oauth_config config = {
        .server = "s", .resource = SERVER, .redirect_uri = "http://127.0.0.1:1/callback"};

    return flow(&config, "{}", answers);
}

static int own_credentials(void)
{
    static const struct answer answers[] = {{200, resource}, {200, metadata}, {200, token}};
    const struct rv_oauth_config config = {.server = "s",
                                           .resource = SERVER,
                                           .client_id = "i",
                                           .client_secret = "s",
                                           .scope = "more",
                                           .grant = RV_OAUTH_CLIENT};

    return flow(&config, "{}", answers);
}

static int signed_by_the_client(void)
{
    static const struct answer answers[] = {{200, resource}, {200, metadata}, {200, token}};
    const struct rv_oauth_config config = {.server = "s",
                                           .resource = SERVER,
                                           .client_id = "i",
                                           .private_key = EC_PRIVATE,
                                           .key_id = "k",
                                           .grant = RV_OAUTH_CLIENT};

    return flow(&config, "{}", answers);
}

/* {"aud":"https://a.example/t"} */
#define ASSERTION "e30.eyJhdWQiOiJodHRwczovL2EuZXhhbXBsZS90In0.x"
static int exchanged(void)
{
    static const struct answer answers[] = {
        {200, resource},
        {200, metadata},
        {200, "{\"access_token\":\"" ASSERTION "\",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:id-jag\"}"},
        {200, token}};
    const struct rv_oauth_config config = {.server = "s",
                                           .resource = SERVER,
                                           .id_token = "it",
                                           .idp_token_endpoint = "https://i.example/token",
                                           .idp_client_id = "i",
                                           .idp_client_secret = "s",
                                           .grant = RV_OAUTH_ID_TOKEN};

    return flow(&config, "{}", answers);
}

static int refreshed(void)
{
    static const struct answer answers[] = {{200, resource}, {200, metadata}, {200, token}};
    const struct rv_oauth_config config = {.server = "s", .resource = SERVER, .client_id = "i"};

    return flow(&config, "{\"issuer\":\"" ISSUER "\",\"access_token\":\"old\",\"refresh_token\":\"r\",\"scope\":\"a\"}",
                answers);
}

static int noted(void)
{
    json_object *kept = json_object_new_object();
    int rc = kept ? rv_oauth_note(kept, RV_STR_LIT("Bearer scope=\"a b\", resource_metadata=\"https://x\""), NULL)
                  : RV_E_NOMEM;

    json_object_put(kept);
    return rc;
}

/* --- pins --- */

static int pins(void)
{
    json_object *kept = json_object_new_object(), *before = NULL, *after = NULL;
    rv_buf out = RV_BUF_INIT(2000);
    int rc = kept ? 0 : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("{\"name\":\"a\",\"description\":\"x\",\"inputSchema\":{\"b\":1,\"a\":[2]}}"),
                           NULL, &before, NULL);
    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("{\"name\":\"a\",\"description\":\"y\",\"inputSchema\":{}}"), NULL, &after, NULL);
    if (rc == 0)
        rc = rv_mcp_pin_set(kept, before, NULL);
    if (rc == 0 && rv_mcp_pin_look(kept, before) != RV_MCP_PIN_SAME)
        rc = RV_E_NOMEM; /* what cannot be compared is not the same */
    if (rc == 0) {
        rv_mcp_pin_diff(kept, after, &out);
        rc = rv_buf_check(&out, "a diff", NULL);
    }
    if (rc == 0)
        rc = rv_mcp_pin_set(kept, after, NULL);
    json_object_put(kept);
    json_object_put(before);
    json_object_put(after);
    rv_buf_fini(&out);
    return rc;
}

static int addresses(void)
{
    rv_buf out = RV_BUF_INIT(100);

    rv_mcp_url_encode(RV_STR_LIT("a b/c"), &out);
    int rc = out.rc;
    if (rc == 0 && !rv_mcp_query_get(RV_STR_LIT("x=1&y=%20z"), "y", &out))
        rc = RV_E_NOMEM;
    if (rc == 0)
        rc = out.rc;
    rv_buf_fini(&out);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"events", events},
                                                     {"json", json},
                                                     {"refusal", refusal},
                                                     {"another_type", another_type},
                                                     {"headers", headers},
                                                     {"registered_login", registered_login},
                                                     {"own_credentials", own_credentials},
                                                     {"signed_by_the_client", signed_by_the_client},
                                                     {"exchanged", exchanged},
                                                     {"refreshed", refreshed},
                                                     {"noted", noted},
                                                     {"pins", pins},
                                                     {"addresses", addresses}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 0);
}
END_TEST

static TCase *http_case(void)
{
    TCase *tc = tcase_create("mcp_http");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {http_case};

    return rv_kit_run_cases("fault_mcp_http", cases, RV_COUNT(cases));
}
