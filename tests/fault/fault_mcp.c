/* Each allocation fails once while messages of MCP are read and written: no crash, no leak, and the code says no
 * memory. */
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static int read_message(rv_str text, int want)
{
    struct rv_mcp_message m;
    int rc = rv_mcp_read(text, &m, NULL, NULL);

    rv_mcp_message_fini(&m);
    return rc == want ? 0 : rc;
}

static int on_line(void *self, rv_str line, bool is_whole, rv_err **err)
{
    (void)self;
    (void)err;
    return is_whole ? read_message(line, 0) : 0;
}

static int messages_on_lines(void)
{
    static const char bytes[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a\",\"params\":{\"n\":[1.10]}}\r\n"
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"m\"}}\nlonger than the limit "
        "longer than the limit longer than the limit longer than the limit\n";
    struct rv_mcp_lines lines;
    int rc = 0;

    rv_mcp_lines_init(&lines, 70, on_line, NULL);
    for (size_t at = 0; rc == 0 && at + 1 < sizeof bytes; at++)
        rc = rv_mcp_lines_read(&lines, (rv_str){bytes + at, 1}, NULL);
    rv_mcp_lines_fini(&lines);
    return rc;
}

static int refused(void)
{
    int rc = read_message(RV_STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}"), RV_E_INVALID);

    return rc < 0 ? rc : read_message(RV_STR_LIT("{\"jsonrpc\":"), RV_E_INVALID);
}

static int written(void)
{
    rv_buf b = RV_BUF_INIT(1000);
    int rc = rv_mcp_write_request(1, "ping", NULL, &b, NULL);

    if (rc == 0)
        rc = rv_mcp_write_error(NULL, RV_MCP_PARSE_ERROR, "why", NULL, &b, NULL);
    rv_buf_fini(&b);
    return rc;
}

/* --- a client: handshake, a list in two pages, a call with progress, one that is given up, the end --- */

static int say(rv_mcp_client *c, const char *text)
{
    while (rv_mcp_client_next(c))
        ;
    return rv_mcp_client_on_message(c, rv_str_of(text), NULL);
}

static int ask(rv_mcp_client *c, const char *method, const char *list, int64_t *out)
{
    json_object *params = json_object_new_object();
    int rc = params ? rv_json_set_text(params, "name", "t", NULL) : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_mcp_client_ask(
            c,
            &(struct rv_mcp_ask){
                .method = method, .params = params, .list = list, .timeout_us = 5, .wants_progress = !list},
            1, out, NULL);
    json_object_put(params);
    return rc;
}

static int talk(rv_mcp_client *c)
{
    static const char *const messages[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[1],\"nextCursor\":\"a\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":4,\"progress\":1}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{\"tools\":[2]}}",
        "not a message",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":1,\"message\":\"m\"}}",
    };
    const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_SERVER_EXITED, .text = "status 1"};
    int64_t list = 0, one = 0, two = 0;
    int rc = ask(c, "tools/list", "tools", &list);

    rc = rc == 0 ? ask(c, "tools/call", NULL, &one) : rc;
    rc = rc == 0 ? ask(c, "tools/call", NULL, &two) : rc;
    for (size_t i = 0; i < RV_COUNT(messages) && rc == 0; i++)
        rc = say(c, messages[i]);
    rc = rc == 0 ? ask(c, "tools/call", NULL, &one) : rc;
    rc = rc == 0 ? ask(c, "tools/call", NULL, &two) : rc;
    rc = rc == 0 ? rv_mcp_client_give_up(c, one, NULL) : rc;
    rc = rc == 0 ? rv_mcp_client_tick(c, 100, NULL) : rc;
    return rc == 0 ? rv_mcp_client_on_failure(c, 0, &f, 100, NULL) : rc;
}

static int legacy_client(void)
{
    rv_mcp_client *c = NULL;
    int rc = rv_mcp_client_new(&(struct rv_mcp_client_opts){.server = "s"}, 1, &c, NULL);

    rc = rc == 0 ? talk(c) : rc;
    rv_mcp_client_free(c);
    return rc;
}

/* A server that asks a person, and gets the answer that was given before. */
static int eliciting_client(enum rv_mcp_era era)
{
#define FORM "{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\"}}"
    static const char answers[] =
        "{\"round\":1,\"state\":\"s\",\"answers\":[{\"round\":1,\"key\":\"a\",\"message\":\"m\","
        "\"schema\":{\"type\":\"object\"},\"action\":\"accept\",\"content\":{\"a\":1}}]}";
    static const char *const legacy[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"elicitation/create\",\"params\":" FORM "}"};
    static const char *const modern[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\","
        "\"inputRequests\":{"
        "\"a\":{\"method\":\"elicitation/create\",\"params\":" FORM "}}}}"};
    const char *const *messages = era == RV_MCP_ERA_LEGACY ? legacy : modern;
    json_object *input = NULL;
    rv_mcp_client *c = NULL;
    int64_t id;
    int rc = rv_json_parse(rv_str_of(answers), NULL, &input, NULL);

    rc = rc == 0
             ? rv_mcp_client_new(&(struct rv_mcp_client_opts){.server = "s", .era = era, .elicits = true}, 1, &c, NULL)
             : rc;
    rc = rc == 0 ? say(c, messages[0]) : rc;
    for (int i = 0; i < 3 && rc == 0; i++) { /* is asked; gives the answer; may not be made again */
        rc = rv_mcp_client_ask(
            c, &(struct rv_mcp_ask){.method = "tools/call", .input = i == 1 ? input : NULL, .is_repeatable = i < 2}, 1,
            &id, NULL);
        rc = rc == 0 ? say(c, messages[1]) : rc;
        rc = rc == 0 ? rv_mcp_client_give_up(c, id, NULL) : rc;
    }
    rv_mcp_client_free(c);
    json_object_put(input);
    return rc;
}

static int eliciting_legacy_client(void)
{
    return eliciting_client(RV_MCP_ERA_LEGACY);
}

static int eliciting_modern_client(void)
{
    return eliciting_client(RV_MCP_ERA_MODERN);
}

/* A server that asks a model: one completion is made, and in the earlier era one is refused. */
static int sampling_client(enum rv_mcp_era era)
{
#define MESSAGES                                                                                                       \
    "{\"systemPrompt\":\"b\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]}"
    static const char *const legacy[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"sampling/createMessage\",\"params\":" MESSAGES "}"};
    static const char *const modern[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{"
        "\"a\":{\"method\":\"sampling/createMessage\",\"params\":" MESSAGES "}}}}"};
    const char *const *messages = era == RV_MCP_ERA_LEGACY ? legacy : modern;
    json_object *params = NULL, *result = NULL;
    rv_buf prompt = RV_BUF_INIT(RV_MCP_MAX_PROMPT);
    rv_mcp_client *c = NULL;
    int64_t id;
    int rc = rv_json_parse(rv_str_of(MESSAGES), NULL, &params, NULL);

    rc = rc == 0 ? rv_mcp_sampling_write_prompt(params, &prompt, NULL) : rc;
    rc = rc == 0 ? rv_mcp_sampling_build_result("x", "m", &result, NULL) : rc;
    rc = rc == 0
             ? rv_mcp_client_new(&(struct rv_mcp_client_opts){.server = "s", .era = era, .max_samples = 2}, 1, &c, NULL)
             : rc;
    rc = rc == 0 ? say(c, messages[0]) : rc;
    rc = rc == 0 ? rv_mcp_client_ask(c, &(struct rv_mcp_ask){.method = "tools/call"}, 1, &id, NULL) : rc;
    for (int i = 0; i < 3 && rc == 0 && (i == 0 || era == RV_MCP_ERA_LEGACY); i++) /* the third is one too many */
        rc = say(c, messages[1]);
    rc = rc == 0 ? rv_mcp_client_answer_sample(c, id, 1, result, NULL, NULL) : rc;
    rc = rc == 0 ? rv_mcp_client_answer_sample(c, id, 2, NULL, "why", NULL) : rc;
    rv_mcp_client_free(c);
    rv_buf_fini(&prompt);
    json_object_put(params);
    json_object_put(result);
    return rc;
}

static int sampling_legacy_client(void)
{
    return sampling_client(RV_MCP_ERA_LEGACY);
}

static int sampling_modern_client(void)
{
    return sampling_client(RV_MCP_ERA_MODERN);
}

/* Roots: of an earlier server; of a later one alone, and beside a form, whose answer they go with. */
static int client_with_roots(enum rv_mcp_era era)
{
    static const char kept[] = "{\"round\":1,\"state\":{\"state\":\"s\",\"roots\":[\"b\"]},\"answers\":[]}";
    static const char *const legacy[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"roots/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"f\",\"method\":\"roots/list\"}"};
#define ASKS(id, more)                                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\","         \
    "\"inputRequests\":{\"b\":{\"method\":\"roots/list\"}" more "}}}"
    static const char *const modern[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}", ASKS("2", ""),
        ASKS("3", ",\"a\":{\"method\":\"elicitation/create\",\"params\":" FORM "}")};
    const char *const *messages = era == RV_MCP_ERA_LEGACY ? legacy : modern;
    json_object *roots = NULL, *input = NULL;
    rv_mcp_client *c = NULL;
    int64_t id;
    int rc = rv_json_parse(RV_STR_LIT("[{\"uri\":\"file:///a\"}]"), NULL, &roots, NULL);

    rc = rc == 0 ? rv_json_parse(rv_str_of(kept), NULL, &input, NULL) : rc;
    rc = rc == 0 ? rv_mcp_client_new(
                       &(struct rv_mcp_client_opts){.server = "s", .era = era, .elicits = true, .roots = roots}, 1, &c,
                       NULL)
                 : rc;
    rc = rc == 0 ? say(c, messages[0]) : rc;
    rc = rc == 0 ? rv_mcp_client_ask(c, &(struct rv_mcp_ask){.method = "tools/call"}, 1, &id, NULL) : rc;
    rc = rc == 0 ? say(c, messages[1]) : rc;
    rc = rc == 0 ? say(c, messages[2]) : rc;
    rc =
        rc == 0 ? rv_mcp_client_ask(c, &(struct rv_mcp_ask){.method = "tools/call", .input = input}, 1, &id, NULL) : rc;
    rv_mcp_client_free(c);
    json_object_put(input);
    json_object_put(roots);
    return rc;
}

/* A call that becomes a task, is asked for, and is given up. */
static int client_with_task(void)
{
    static const char *const said[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"task\",\"taskId\":\"t\",\"pollIntervalMs\":100}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"status\":\"working\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"status\":\"failed\",\"error\":{\"code\":1,\"message\":\"m\"}}}"};
    rv_mcp_client *c = NULL;
    int64_t id, now_us = 1;
    int rc = rv_mcp_client_new(&(struct rv_mcp_client_opts){.server = "s"}, now_us, &c, NULL);

    rc = rc == 0 ? say(c, said[0]) : rc;
    for (int i = 0; i < 2 && rc == 0; i++) { /* the second one is given up: ids have grown */
        rc = rv_mcp_client_ask(c, &(struct rv_mcp_ask){.method = "tools/call"}, now_us, &id, NULL);
        for (size_t n = 1; n < RV_COUNT(said) && rc == 0 && i == 0; n++) {
            rc = say(c, said[n]);
            rc = rc == 0 ? rv_mcp_client_tick(c, now_us, NULL) : rc;
            rc = rc == 0 ? rv_mcp_client_tick(c, now_us += 1000000, NULL) : rc;
        }
    }
    rc = rc == 0 ? say(c, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"resultType\":\"task\",\"taskId\":\"t\"}}") : rc;
    rc = rc == 0 ? rv_mcp_client_give_up(c, id, NULL) : rc;
    rv_mcp_client_free(c);
    return rc;
}

/* Tasks of both eras that end with a result, and that ask. */
#define FORM_OF_TASK                                                                                                   \
    "\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"
#define DISCOVERED_TASKS                                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}}"
#define INITIALIZED_TASKS                                                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tasks\":{"       \
    "\"cancel\":{},"                                                                                                   \
    "\"requests\":{\"tools\":{\"call\":{}}}}}}}"
#define RESULT_OF(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{" result "}}"

static int run_task(enum rv_mcp_era era, const char *input, const char *const *said, size_t n)
{
    rv_mcp_client *c = NULL;
    json_object *given = NULL, *roots = NULL;
    int64_t id, now_us = 1;
    int rc = rv_json_parse(RV_STR_LIT("[{\"uri\":\"file:///a\",\"name\":\"a\"}]"), NULL, &roots, NULL);

    rc = rc == 0 && input ? rv_json_parse(rv_str_of(input), NULL, &given, NULL) : rc;
    const struct rv_mcp_client_opts opts = {.server = "s", .era = era, .elicits = true, .roots = roots};
    const struct rv_mcp_ask ask = {.method = "tools/call", .input = given, .needs_task = true, .is_repeatable = true};
    rc = rc == 0 ? rv_mcp_client_new(&opts, now_us, &c, NULL) : rc;
    rc = rc == 0 ? rv_mcp_client_ask(c, &ask, now_us, &id, NULL) : rc;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = say(c, said[i]);
        rc = rc == 0 ? rv_mcp_client_tick(c, now_us, NULL) : rc;
        rc = rc == 0 ? rv_mcp_client_tick(c, now_us += 1000000, NULL) : rc;
    }
    rv_mcp_client_free(c);
    json_object_put(given);
    json_object_put(roots);
    return rc;
}

static int legacy_task(void)
{
    static const char *const said[] = {INITIALIZED_TASKS, RESULT_OF("2", "\"task\":{\"taskId\":\"t\"}"),
                                       RESULT_OF("3", "\"status\":\"working\""),
                                       RESULT_OF("4", "\"status\":\"completed\""), RESULT_OF("5", "\"content\":[]")};
    return run_task(RV_MCP_ERA_LEGACY, NULL, said, RV_COUNT(said));
}

static int legacy_task_that_asks(void)
{
    static const char *const said[] = {
        INITIALIZED_TASKS, RESULT_OF("2", "\"task\":{\"taskId\":\"t\"}"),
        RESULT_OF("3", "\"status\":\"input_required\""),
        "{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"elicitation/create\",\"params\":{" FORM_OF_TASK
        ",\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"t\"}}}}"};
    return run_task(RV_MCP_ERA_LEGACY, NULL, said, RV_COUNT(said));
}

static int modern_task_that_asks(void)
{
    static const char *const said[] = {
        DISCOVERED_TASKS, RESULT_OF("2", "\"resultType\":\"task\",\"taskId\":\"t\""),
        RESULT_OF("3", "\"status\":\"input_required\",\"inputRequests\":{\"r\":{\"method\":\"roots/list\"}}"),
        RESULT_OF("4", "\"resultType\":\"complete\""),
        RESULT_OF("5", "\"status\":\"input_required\",\"inputRequests\":{\"r\":{\"method\":\"roots/list\"},\"a\":"
                       "{\"method\":\"elicitation/create\",\"params\":{" FORM_OF_TASK "}}}")};
    return run_task(RV_MCP_ERA_MODERN, NULL, said, RV_COUNT(said));
}

static int modern_task_that_is_answered(void)
{
    static const char input[] = "{\"round\":1,\"state\":{\"roots\":[\"r\"],\"task\":\"t\"},\"answers\":[{\"round\":1,"
                                "\"key\":\"a\",\"action\":\"accept\",\"content\":{\"a\":\"x\"}}]}";
    static const char *const said[] = {DISCOVERED_TASKS, RESULT_OF("2", "\"resultType\":\"complete\""),
                                       RESULT_OF("3", "\"status\":\"input_required\",\"inputRequests\":{\"a\":{}}"),
                                       RESULT_OF("4", "\"status\":\"completed\",\"result\":{\"content\":[]}")};
    return run_task(RV_MCP_ERA_MODERN, input, said, RV_COUNT(said));
}

static int legacy_client_with_roots(void)
{
    return client_with_roots(RV_MCP_ERA_LEGACY);
}

static int modern_client_with_roots(void)
{
    return client_with_roots(RV_MCP_ERA_MODERN);
}

static int modern_client(void)
{
    rv_mcp_client *c = NULL;
    int64_t one;
    int rc = rv_mcp_client_new(&(struct rv_mcp_client_opts){.server = "s"}, 1, &c, NULL);

    rc = rc == 0 ? say(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}") : rc;
    rc = rc == 0 ? ask(c, "tools/call", NULL, &one) : rc;
    rc = rc == 0
             ? say(c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\",\"requestState\":"
                      "\"s\"}}")
             : rc;
    rc = rc == 0 ? say(c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}") : rc;
    rv_mcp_client_free(c);
    return rc;
}

/* One that is larger than a message may be ends at once; it is named only where that could be told. */
static int too_large_ask(void)
{
    char *big = calloc(1, RV_MCP_MAX_MESSAGE + 1);
    json_object *params = json_object_new_object();
    rv_mcp_client *c = NULL;
    int64_t id = 0;
    int rc = big && params ? 0 : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_json_set_text(params, "name", memset(big, 'a', RV_MCP_MAX_MESSAGE), NULL);
    rc = rc == 0 ? rv_mcp_client_new(&(struct rv_mcp_client_opts){.server = "s"}, 1, &c, NULL) : rc;
    rc = rc == 0 ? say(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}") : rc;
    if (rc == 0) {
        rc = rv_mcp_client_ask(c, &(struct rv_mcp_ask){.method = "tools/call", .params = params}, 1, &id, NULL);
        if ((rc == 0) != (id > 0))
            rc = RV_E_INTERNAL;
    }
    rv_mcp_client_free(c);
    json_object_put(params);
    free(big);
    return rc;
}

/* --- a catalog: lists in, a call out, a result in --- */

static const struct rv_mcp_server_config server = {
    .name = "a", .resources = true, .prompts = true, .confirm = RV_MCP_CONFIRM_WRITES, .timeout_ms = 5, .catalog = ""};

static int use(rv_mcp_catalog *c, rv_findings *f)
{
    static const char blocks[] =
        "{\"structuredContent\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"image\",\"data\":"
        "\"AAAA\",\"mimeType\":\"image/png\"},{\"type\":\"resource_link\",\"uri\":\"a:b\"},{\"type\":\"resource\","
        "\"resource\":{\"uri\":\"a:b\",\"blob\":\"AAAA\"}},{\"type\":\"hologram\"}]}";
    static const char text[] =
        "[{\"name\":\"x\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"r\":{\"type\":\"integer\","
        "\"x-mcp-header\":\"R\"}}},\"outputSchema\":{\"type\":\"object\"}},{\"name\":\"x\"},{\"name\":\"y\","
        "\"inputSchema\":{\"type\":\"array\"}}]";
    rv_buf out = RV_BUF_INIT(1000), note = RV_BUF_INIT(1000);
    json_object *tools = NULL, *lists = NULL, *args = NULL, *result = NULL;
    const struct rv_tool_info *info = NULL;
    struct rv_mcp_request r = {0};
    struct rv_mcp_told told = {.text = &out, .note = &note};

    int rc = rv_json_parse(rv_str_of(text), NULL, &tools, NULL);
    rc = rc == 0 ? rv_mcp_catalog_add(c, &server, &(struct rv_mcp_offer){tools, true, true}, f, NULL) : rc;
    rc = rc == 0 ? rv_mcp_catalog_finish(c, NULL) : rc;
    rc = rc == 0 ? rv_mcp_catalog_write(c, NULL, &lists, NULL) : rc;
    rc = rc == 0 ? rv_json_parse(RV_STR_LIT("{\"r\":1}"), NULL, &args, NULL) : rc;
    rc = rc == 0 ? rv_json_parse(RV_STR_LIT(blocks), NULL, &result, NULL) : rc;
    const struct rv_mcp_tool *t = rc == 0 ? rv_mcp_catalog_find(c, RV_STR_LIT("x"), &info) : NULL;
    rc = rc == 0 ? rv_mcp_tool_build_request(t, args, "key", &r, NULL) : rc;
    rc = rc == 0 ? rv_mcp_tool_read_result(t, result, &told, NULL) : rc;
    rv_buf_clear(&out);
    told.as_called = true;
    rc = rc == 0 ? rv_mcp_tool_read_result(t, result, &told, NULL) : rc;
    rc = rc == 0 ? rv_findings_check(f, NULL) : rc;
    rv_mcp_request_fini(&r);
    json_object_put(tools);
    json_object_put(lists);
    json_object_put(args);
    json_object_put(result);
    rv_buf_fini(&out);
    rv_buf_fini(&note);
    return rc;
}

static int catalog(void)
{
    rv_findings *f = rv_findings_new();
    rv_mcp_catalog *c = NULL;
    int rc = f ? rv_mcp_catalog_new(&server, 1, &c, NULL) : RV_E_NOMEM;

    rc = rc == 0 ? use(c, f) : rc;
    rv_mcp_catalog_free(c);
    rv_findings_free(f);
    return rc;
}

/* The server's side: a task begins, is asked for, and its result; in both eras. */
static int say_to_server(rv_mcp_server *s, const char *text, const char *result)
{
    struct rv_mcp_orders orders = {NULL, 0, 0};
    json_object *value = NULL;
    int rc = rv_json_parse(rv_str_of(result), NULL, &value, NULL);

    rc = rc == 0 ? rv_mcp_server_read(s, rv_str_of(text), &orders, NULL) : rc;
    if (rc == 0 && orders.n > 0 && orders.items[0].kind == RV_MCP_DO)
        rc = rv_mcp_server_give(s, orders.items[0].call, value, &orders, NULL);
    json_object_put(value);
    rv_mcp_orders_fini(&orders);
    return rc;
}

static int tasks_of_server(void)
{
#define SAY(method, params) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define MODERN(more)                                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                           \
    "\"io.modelcontextprotocol/clientCapabilities\":{" more "}}"
#define EXTENDED MODERN("\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}")
    static const struct {
        const char *text, *result;
    } said[] = {
        {SAY("server/discover", MODERN("")), "{}"},
        {SAY("tools/call", "\"name\":\"a\"," EXTENDED), "{\"resultType\":\"task\",\"taskId\":\"t\"}"},
        {SAY("tasks/get", "\"taskId\":\"t\"," EXTENDED), "{\"taskId\":\"t\",\"ttlMs\":null}"},
        {SAY("tasks/get", "\"taskId\":\"t\"," MODERN("")), "{}"},
        {SAY("initialize", "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}"), "{}"},
        {SAY("tools/call", "\"name\":\"a\",\"task\":{}"), "{\"resultType\":\"task\",\"taskId\":\"t\"}"},
        {SAY("tasks/get", "\"taskId\":\"t\""), "{\"taskId\":\"t\",\"ttlMs\":null}"},
        {SAY("tasks/result", "\"taskId\":\"t\""), "{\"content\":[]}"},
    };
#undef EXTENDED
#undef MODERN
#undef SAY
    rv_mcp_server *s = NULL;
    int rc = rv_mcp_server_new(&(struct rv_mcp_server_opts){.name = "s", .version = "1"}, &s, NULL);

    for (size_t i = 0; i < RV_COUNT(said) && rc == 0; i++)
        rc = say_to_server(s, said[i].text, said[i].result);
    rv_mcp_server_free(s);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"legacy_client", legacy_client},
                                                     {"modern_client", modern_client},
                                                     {"eliciting_legacy_client", eliciting_legacy_client},
                                                     {"eliciting_modern_client", eliciting_modern_client},
                                                     {"sampling_legacy_client", sampling_legacy_client},
                                                     {"sampling_modern_client", sampling_modern_client},
                                                     {"too_large_ask", too_large_ask},
                                                     {"legacy_client_with_roots", legacy_client_with_roots},
                                                     {"modern_client_with_roots", modern_client_with_roots},
                                                     {"client_with_task", client_with_task},
                                                     {"legacy_task", legacy_task},
                                                     {"legacy_task_that_asks", legacy_task_that_asks},
                                                     {"modern_task_that_asks", modern_task_that_asks},
                                                     {"modern_task_that_is_answered", modern_task_that_is_answered},
                                                     {"catalog", catalog},
                                                     {"tasks_of_server", tasks_of_server},
                                                     {"messages_on_lines", messages_on_lines},
                                                     {"refused", refused},
                                                     {"written", written}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 1);
}
END_TEST

static TCase *mcp_case(void)
{
    TCase *tc = tcase_create("mcp");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {mcp_case};

    return rv_kit_run_cases("fault_mcp", cases, RV_COUNT(cases));
}
