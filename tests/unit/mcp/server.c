/* The server's side of a session: messages of a client in, orders out. */
#include "coreengine/mcp/mcp.h"

#include "tests/unit/mcp/suites.h"

static const struct rv_mcp_server_opts opts = {.name = "reeve", .version = "1"};

struct talk {
    rv_mcp_server *s;
    struct rv_mcp_orders out;
    rv_buf text; /* what was ordered, a line each */
};

static struct talk begin(const struct rv_mcp_server_opts *how)
{
    struct talk t = {.text = RV_BUF_INIT(1 << 20)};

    ck_assert_int_eq(rv_mcp_server_new(how, &t.s, NULL), 0);
    return t;
}

static void end(struct talk *t)
{
    rv_mcp_orders_fini(&t->out);
    rv_mcp_server_free(t->s);
    rv_buf_fini(&t->text);
}

/* What is ordered since: "> BYTES", "do N WANT", "stop N", "answered N ACTION CONTENT". */
static const char *ordered(struct talk *t)
{
    rv_buf_clear(&t->text);
    for (size_t i = 0; i < t->out.n; i++) {
        const struct rv_mcp_order *o = &t->out.items[i];
        if (o->kind == RV_MCP_SEND) {
            rv_buf_puts(&t->text, "> ");
            rv_buf_add_str(&t->text, rv_buf_str(&o->bytes));
        } else if (o->kind == RV_MCP_DO) {
            rv_buf_printf(&t->text, "do %d %d from %d", (int)o->call, (int)o->want, (int)o->first);
        } else if (o->kind == RV_MCP_STOP) {
            rv_buf_printf(&t->text, "stop %d", (int)o->call);
        } else {
            rv_buf_printf(&t->text, "answered %d %d ", (int)o->call, (int)o->action);
            rv_json_write(o->content, &t->text);
        }
        rv_buf_putc(&t->text, '\n');
    }
    rv_mcp_orders_fini(&t->out);
    return rv_buf_cstr(&t->text);
}

static const char *say(struct talk *t, const char *message)
{
    ck_assert_int_eq(rv_mcp_server_read(t->s, rv_str_of(message), &t->out, NULL), 0);
    return ordered(t);
}

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

static const char *give(struct talk *t, int64_t call, const char *result)
{
    json_object *value = json(result);

    ck_assert_int_eq(rv_mcp_server_give(t->s, call, value, &t->out, NULL), 0);
    json_object_put(value);
    return ordered(t);
}

#define REQUEST(id, method, params)                                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define INITIALIZE(version, capabilities)                                                                              \
    REQUEST("1", "initialize",                                                                                         \
            "{\"protocolVersion\":\"" version "\",\"capabilities\":" capabilities                                      \
            ",\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}")
#define META(more)                                                                                                     \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                           \
    "\"io.modelcontextprotocol/clientCapabilities\":{" more "}}"

static void expect(const char *text, const char *part)
{
    if (!strstr(text, part))
        ck_abort_msg("no %s in %s", part, text);
}

static const struct {
    const char *offered, *agreed;
    bool is_http;
} versions[] = {
    {"2025-11-25", "2025-11-25", false}, {"2025-06-18", "2025-06-18", true}, {"2025-03-26", "2025-03-26", true},
    {"2024-11-05", "2024-11-05", false}, {"2024-11-05", "2025-11-25", true}, {"2026-07-28", "2025-11-25", false},
    {"1.0", "2025-11-25", false},        {"", "2025-11-25", false},
};

START_TEST(agrees_on_a_revision)
{
    struct rv_mcp_server_opts how = opts;
    rv_buf text = RV_BUF_INIT(1000), want = RV_BUF_INIT(100);

    how.is_http = versions[_i].is_http;
    struct talk t = begin(&how);
    rv_buf_printf(&text, REQUEST("1", "initialize", "{\"protocolVersion\":\"%s\",\"capabilities\":{}}"),
                  versions[_i].offered);
    rv_buf_printf(&want, "\"protocolVersion\":\"%s\"", versions[_i].agreed);
    expect(say(&t, rv_buf_cstr(&text)), rv_buf_cstr(&want));
    expect(say(&t, rv_buf_cstr(&text)), "initialized already");
    rv_buf_fini(&text);
    rv_buf_fini(&want);
    end(&t);
}
END_TEST

/* Proves mcp.M8: Notifications are never answered, and before `initialize` a client gets answers to its own requests
 * alone */
START_TEST(says_nothing_unasked)
{
    struct talk t = begin(&opts);

    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\",\"params\":{}}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"initialize\"}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":1,\"message\":\"\"}}"), "");
    ck_assert_str_eq(say(&t, REQUEST("\"p\"", "ping", "{}")), "> {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}\n");
    expect(say(&t, REQUEST("2", "tools/list", "{}")), "\"id\":2,\"error\":{\"code\":-32600");
    expect(say(&t, "{"), "\"id\":null,\"error\":{\"code\":-32700");
    expect(say(&t, "[]"), "\"id\":null,\"error\":{\"code\":-32600");
    expect(say(&t, INITIALIZE("2025-11-25", "{}")), "\"serverInfo\":{\"name\":\"reeve\",\"version\":\"1\"}");
    end(&t);
}
END_TEST

static const struct {
    const char *message, *says;
} refused[] = {
    {REQUEST("2", "no/such", "{}"), "-32601"},
    {REQUEST("2", "server/discover", "{}"), "-32601"},
    {REQUEST("2", "resources/subscribe", "{\"uri\":\"a\"}"), "-32601"},
    {REQUEST("2", "tools/call", "{}"), "\\\"name\\\" is not text"},
    {REQUEST("2", "tools/call", "{\"name\":\"a\",\"arguments\":[]}"), "\\\"arguments\\\" is not an object"},
    {REQUEST("2", "tools/call", "{\"name\":\"a\",\"arguments\":null}"), "\\\"arguments\\\" is not an object"},
    {REQUEST("2", "tools/list", "{\"cursor\":\"x\"}"), "cursor"},
    {REQUEST("2", "tools/list", "{\"cursor\":\"\"}"), "cursor"},
    {REQUEST("2", "tools/list", "{\"cursor\":\"0\"}"), "cursor"},
    {REQUEST("2", "tools/list", "{\"cursor\":5}"), "cursor"},
    {REQUEST("2", "tools/list", "{\"cursor\":\"99999999999999999999\"}"), "cursor"},
    {REQUEST("2", "resources/read", "{}"), "uri"},
    {REQUEST("2", "prompts/get", "{\"name\":\"a\",\"arguments\":{\"b\":1}}"), "not text"},
    {REQUEST("2", "logging/setLevel", "{\"level\":\"loud\"}"), "level"},
    {REQUEST("2", "completion/complete", "{\"ref\":{\"type\":\"x\"}}"), "ref"},
    {REQUEST("2", "completion/complete", "{\"ref\":{\"type\":\"ref/prompt\"},\"argument\":{}}"), "argument"},
};

START_TEST(refuses_wrong_parameters)
{
    struct talk t = begin(&opts);

    say(&t, INITIALIZE("2025-11-25", "{}"));
    const char *said = say(&t, refused[_i].message);
    expect(said, "\"id\":2,\"error\":{");
    expect(said, refused[_i].says);
    ck_assert_int_eq(rv_mcp_server_last_call(t.s), 0);
    end(&t);
}
END_TEST

START_TEST(lists_in_pages)
{
    struct talk t = begin(&opts);
    json_object *entries = json("[1,2]");

    say(&t, INITIALIZE("2025-11-25", "{}"));
    ck_assert_str_eq(say(&t, REQUEST("2", "prompts/list", "{\"cursor\":\"100\"}")), "do 1 5 from 100\n");
    ck_assert_int_eq(rv_mcp_server_give_list(t.s, 1, entries, 102, &t.out, NULL), 0);
    ck_assert_str_eq(ordered(&t),
                     "> {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"prompts\":[1,2],\"nextCursor\":\"102\"}}\n");
    say(&t, REQUEST("3", "resources/templates/list", "{}"));
    ck_assert_int_eq(rv_mcp_server_give_list(t.s, 2, entries, 0, &t.out, NULL), 0);
    ck_assert_str_eq(ordered(&t), "> {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"resourceTemplates\":[1,2]}}\n");
    json_object_put(entries);
    end(&t);
}
END_TEST

/* Proves mcp.M7: Structured content goes to clients from 2025-06-18 on, older ones get the data in the text */
START_TEST(shapes_results_by_revision)
{
    static const char result[] = "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"image\"}],"
                                 "\"structuredContent\":{\"a\":1}}";
    struct talk t = begin(&opts);

    say(&t, INITIALIZE("2025-03-26", "{}"));
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"}"));
    ck_assert_str_eq(give(&t, 1, result),
                     "> {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
                     "\"hi\\n\\n```json\\n{\\n  \\\"a\\\": 1\\n}\\n```\"},{\"type\":\"image\"}]}}\n");
    json_object *tools = json("[{\"name\":\"a\",\"title\":\"A\",\"outputSchema\":{}}]");
    say(&t, REQUEST("3", "tools/list", "{}"));
    ck_assert_int_eq(rv_mcp_server_give_list(t.s, 2, tools, 0, &t.out, NULL), 0);
    expect(ordered(&t), "\"tools\":[{\"name\":\"a\"}]");
    json_object_put(tools);
    end(&t);

    t = begin(&opts);
    say(&t, INITIALIZE("2024-11-05", "{}"));
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"}"));
    ck_assert_ptr_null(strstr(give(&t, 1, result), "structuredContent"));
    end(&t);

    t = begin(&opts);
    say(&t, INITIALIZE("2025-06-18", "{}"));
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"}"));
    expect(give(&t, 1, result), "\"structuredContent\":{\"a\":1}");
    end(&t);

    t = begin(&opts);
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"," META("") "}"));
    const char *said = give(&t, 1, result);
    expect(said, "\"structuredContent\":{\"a\":1}");
    expect(said, "\"resultType\":\"complete\"");
    expect(said, "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"reeve\"");
    end(&t);
}
END_TEST

START_TEST(tells_progress_and_logs_only_to_those_who_asked)
{
    struct talk t = begin(&opts);
    json_object *data = json("\"x\"");

    say(&t, INITIALIZE("2025-11-25", "{}"));
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\",\"_meta\":{\"progressToken\":7}}"));
    say(&t, REQUEST("3", "tools/call", "{\"name\":\"a\",\"_meta\":{\"progressToken\":[]}}"));
    ck_assert(rv_mcp_server_listens(t.s, 1) && !rv_mcp_server_listens(t.s, 2));
    ck_assert_int_eq(rv_mcp_server_tell_progress(
                         t.s, 1, &(const struct rv_mcp_progress){.n = 0, .total = 10, .text = "go"}, &t.out, NULL),
                     0);
    ck_assert_int_eq(rv_mcp_server_tell_progress(
                         t.s, 1, &(const struct rv_mcp_progress){.n = 0, .total = 10, .text = "again"}, &t.out, NULL),
                     0);
    ck_assert_int_eq(rv_mcp_server_tell_progress(
                         t.s, 2, &(const struct rv_mcp_progress){.n = 1, .total = 0, .text = "other"}, &t.out, NULL),
                     0);
    ck_assert_int_eq(rv_mcp_server_log(t.s, 1, data, &t.out, NULL), 0);
    ck_assert_str_eq(ordered(&t), "> {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                                  "\"progressToken\":7,\"progress\":0,\"total\":10,\"message\":\"go\"}}\n");
    say(&t, REQUEST("4", "logging/setLevel", "{\"level\":\"warning\"}"));
    ck_assert_int_eq(rv_mcp_server_log(t.s, 1, data, &t.out, NULL), 0);
    ck_assert_str_eq(ordered(&t), "");
    say(&t, REQUEST("5", "logging/setLevel", "{\"level\":\"info\"}"));
    ck_assert_int_eq(rv_mcp_server_log(t.s, 1, data, &t.out, NULL), 0);
    ck_assert_str_eq(ordered(&t), "> {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
                                  "\"level\":\"info\",\"logger\":\"reeve\",\"data\":\"x\"}}\n");
    json_object_put(data);
    end(&t);
}
END_TEST

START_TEST(a_cancelled_call_has_no_answer)
{
    struct talk t = begin(&opts);

    say(&t, INITIALIZE("2025-11-25", "{}"));
    say(&t, REQUEST("\"2\"", "tools/call", "{\"name\":\"a\",\"_meta\":{\"progressToken\":7}}"));
    ck_assert_str_eq(
        say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}"), "");
    ck_assert_str_eq(
        say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"2\"}}"),
        "stop 1\n");
    ck_assert(!rv_mcp_server_has_call(t.s, 1));
    ck_assert_int_eq(rv_mcp_server_tell_progress(
                         t.s, 1, &(const struct rv_mcp_progress){.n = 1, .total = 0, .text = "late"}, &t.out, NULL),
                     0);
    ck_assert_int_eq(
        rv_mcp_server_fail(t.s, 1, &(const struct rv_mcp_server_error){.code = RV_MCP_INTERNAL_ERROR, .text = "late"},
                           &t.out, NULL),
        0);
    ck_assert_str_eq(give(&t, 1, "{}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}"), "");
    end(&t);
}
END_TEST

START_TEST(bounds_calls_and_keeps_ids_apart)
{
    struct talk t = begin(&opts);
    rv_buf text = RV_BUF_INIT(1000);

    say(&t, INITIALIZE("2025-11-25", "{}"));
    for (int i = 0; i < RV_MCP_MAX_CALLS; i++) {
        rv_buf_clear(&text);
        rv_buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/list\"}", i);
        expect(say(&t, rv_buf_cstr(&text)), "do ");
    }
    expect(say(&t, REQUEST("0", "tools/list", "{}")), "not answered yet");
    expect(say(&t, REQUEST("0", "ping", "{}")), "not answered yet");
    expect(say(&t, REQUEST("\"0\"", "tools/list", "{}")), "too many requests");
    expect(say(&t, REQUEST("\"0\"", "ping", "{}")), "\"result\":{}");
    give(&t, 1, "{}");
    expect(say(&t, REQUEST("0", "tools/list", "{}")), "do 65 0");
    rv_buf_fini(&text);
    end(&t);
}
END_TEST

static void ask(struct talk *t, int64_t call)
{
    json_object *schema = json("{\"type\":\"object\",\"properties\":{}}");
    const struct rv_mcp_question q = {.key = "k", .message = "m?", .schema = schema, .state = "s"};

    ck_assert_int_eq(rv_mcp_server_ask(t->s, call, &q, &t->out, NULL), 0);
    json_object_put(schema);
}

START_TEST(asks_a_legacy_client_while_the_call_goes_on)
{
    struct talk t = begin(&opts);

    say(&t, INITIALIZE("2025-11-25", "{\"elicitation\":{}}"));
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"}"));
    ck_assert(rv_mcp_server_can_ask(t.s, 1));
    ask(&t, 1);
    ck_assert_str_eq(ordered(&t),
                     "> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{\"mode\":"
                     "\"form\",\"message\":\"m?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":"
                     "{}}}}\n");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"action\":\"accept\"}}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"action\":\"accept\"}}"), "");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"action\":\"accept\",\"content\":{\"a\":1}}}"),
                     "answered 1 0 {\"a\":1}\n");
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"action\":\"decline\"}}"), ""); /* once */
    ask(&t, 1);
    ordered(&t);
    ck_assert_str_eq(say(&t, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"\"}}"),
                     "answered 1 2 null\n");
    expect(give(&t, 1, "{}"), "\"id\":2,\"result\":{}");
    end(&t);
}
END_TEST

START_TEST(asks_a_modern_client_by_the_answer)
{
    struct talk t = begin(&opts);

    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"," META("\"elicitation\":{}") "}"));
    ck_assert(rv_mcp_server_can_ask(t.s, 1));
    ask(&t, 1);
    const char *said = ordered(&t);
    expect(said, "\"id\":2,\"result\":{\"inputRequests\":{\"k\":{\"method\":\"elicitation/create\",\"params\":{");
    expect(said, "\"requestState\":\"s\",\"resultType\":\"input_required\"");
    ck_assert(!rv_mcp_server_has_call(t.s, 1));
    end(&t);
}
END_TEST

static const struct {
    const char *message;
    bool can_ask;
} askable[] = {
    {INITIALIZE("2025-11-25", "{\"elicitation\":{\"form\":{}}}"), true},
    {INITIALIZE("2025-11-25", "{\"elicitation\":{\"url\":{}}}"), false},
    {INITIALIZE("2025-11-25", "{\"elicitation\":true}"), false},
    {INITIALIZE("2025-03-26", "{\"elicitation\":{}}"), false}, /* it did not know that */
    {INITIALIZE("2025-06-18", "{\"elicitation\":{}}"), true},
};

START_TEST(asks_only_clients_that_declared_it)
{
    struct talk t = begin(&opts);

    say(&t, askable[_i].message);
    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\"}"));
    ck_assert(rv_mcp_server_can_ask(t.s, 1) == askable[_i].can_ask);
    end(&t);
}
END_TEST

START_TEST(modern_requests_say_what_they_are)
{
    struct rv_mcp_server_opts how = opts;
    struct talk t = begin(&opts);

    expect(say(&t, REQUEST("1", "server/discover", "{}")), "-32602");
    expect(say(&t, REQUEST("2", "server/discover", "{" META("") "}")), "\"supportedVersions\":[\"2026-07-28\"]");
    expect(
        say(&t, REQUEST("3", "tools/list", "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2027-01-01\"}}")),
        "{\"code\":-32022,\"message\":\"this revision is not supported\",\"data\":{\"supported\":[\"2026-07-28\"],"
        "\"requested\":\"2027-01-01\"}}");
    expect(
        say(&t, REQUEST("4", "tools/list", "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}")),
        "clientCapabilities");
    expect(say(&t, REQUEST("5", "ping", "{" META("") "}")), "-32601");
    expect(say(&t, REQUEST("6", "resources/read", "{\"uri\":\"a\"," META("") "}")), "do 1 4");
    ck_assert_int_eq(rv_mcp_server_refuse_resource(t.s, 1, "a", &t.out, NULL), 0);
    expect(ordered(&t), "\"id\":6,\"error\":{\"code\":-32602");
    end(&t);

    how.is_modern = true;
    t = begin(&how);
    expect(say(&t, INITIALIZE("2025-11-25", "{}")), "-32602");
    expect(say(&t, REQUEST("1", "initialize", "{" META("") "}")), "-32601");
    end(&t);

    t = begin(&opts);
    say(&t, INITIALIZE("2025-11-25", "{}"));
    expect(say(&t, REQUEST("6", "resources/read", "{\"uri\":\"a\"," META("") "}")), "do 1 4"); /* legacy, as agreed */
    ck_assert_int_eq(rv_mcp_server_refuse_resource(t.s, 1, "a", &t.out, NULL), 0);
    expect(ordered(&t), "\"id\":6,\"error\":{\"code\":-32002,\"message\":\"unknown resource; resources/templates/list "
                        "has the forms of addresses\",\"data\":{\"uri\":\"a\"}}");
    end(&t);
}
END_TEST

static const char task[] = "{\"taskId\":\"t\",\"status\":\"working\",\"createdAt\":\"a\",\"lastUpdatedAt\":\"b\","
                           "\"ttlMs\":null,\"pollIntervalMs\":5,\"result\":{},\"inputRequests\":{}}";
static const char begun[] = "{\"resultType\":\"task\",\"taskId\":\"t\",\"status\":\"working\",\"ttlMs\":null}";

#define TASKS "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"

START_TEST(a_modern_client_gets_a_task_only_if_it_takes_them)
{
    struct talk t = begin(&opts);

    say(&t, REQUEST("2", "tools/call", "{\"name\":\"a\",\"task\":{}," META("") "}"));
    ck_assert_int_eq(rv_mcp_server_read(t.s, rv_str_of(REQUEST("3", "tools/call", "{\"name\":\"a\"," META(TASKS) "}")),
                                        &t.out, NULL),
                     0);
    ck_assert_int_eq(t.out.items[0].tasks, RV_MCP_TASK_MAY);
    ordered(&t);
    const char *said = give(&t, 2, begun);
    expect(said, "\"id\":3,\"result\":{\"resultType\":\"task\",\"taskId\":\"t\"");
    expect(said, "serverInfo");
    const char *refused_words = say(&t, REQUEST("4", "tasks/get", "{\"taskId\":\"t\"," META("") "}"));
    expect(refused_words, "{\"code\":-32021,");
    expect(refused_words,
           "\"data\":{\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}");
    expect(say(&t, REQUEST("5", "tasks/get", "{" META(TASKS) "}")), "\\\"taskId\\\" is not text");
    expect(say(&t, REQUEST("6", "tasks/update", "{\"taskId\":\"t\"," META(TASKS) "}")), "inputResponses");
    expect(say(&t, REQUEST("7", "tasks/result", "{\"taskId\":\"t\"," META(TASKS) "}")), "-32601");
    expect(say(&t, REQUEST("8", "tasks/list", "{" META(TASKS) "}")), "-32601");
    expect(say(&t, REQUEST("9", "tasks/get", "{\"taskId\":\"t\"," META(TASKS) "}")), "do 3 8");
    said = give(&t, 3, task);
    expect(said, "\"ttlMs\":null,\"pollIntervalMs\":5,\"result\":{},\"inputRequests\":{},\"resultType\":\"complete\"");
    expect(say(&t, REQUEST("10", "server/discover", "{" META("") "}")),
           "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    end(&t);
}
END_TEST

START_TEST(a_legacy_client_asks_for_a_task_and_for_its_result)
{
    struct talk t = begin(&opts);

    expect(say(&t, INITIALIZE("2025-11-25", "{\"elicitation\":{}}")),
           "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}");
    ck_assert_int_eq(rv_mcp_server_read(t.s,
                                        rv_str_of(REQUEST("2", "tools/call", "{\"name\":\"a\",\"task\":{\"ttl\":1}}")),
                                        &t.out, NULL),
                     0);
    ck_assert_int_eq(t.out.items[0].tasks, RV_MCP_TASK_MUST);
    ordered(&t);
    ck_assert_str_eq(give(&t, 1, begun), "> "
                                         "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"task\":{\"taskId\":\"t\","
                                         "\"status\":\"working\",\"ttl\":null}}}\n");
    say(&t, REQUEST("3", "tasks/get", "{\"taskId\":\"t\"}"));
    ck_assert_str_eq(
        give(&t, 2, task),
        "> {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"taskId\":\"t\",\"status\":\"working\",\"createdAt\":\"a\","
        "\"lastUpdatedAt\":\"b\",\"ttl\":null,\"pollInterval\":5}}\n");
    say(&t, REQUEST("4", "tasks/result", "{\"taskId\":\"t\"}"));
    ask(&t, 3);
    expect(ordered(&t), "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"t\"}}");
    expect(give(&t, 3, "{\"content\":[]}"),
           "{\"content\":[],\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"t\"}}}");
    expect(say(&t, REQUEST("5", "tasks/update", "{\"taskId\":\"t\",\"inputResponses\":{}}")), "-32601");
    end(&t);

    t = begin(&opts);
    say(&t, INITIALIZE("2025-11-25", "{}"));
    expect(say(&t, REQUEST("2", "tasks/list", "{\"cursor\":\"7\"}")), "from 7");
    json_object *tasks = json("[{\"taskId\":\"t\",\"status\":\"failed\",\"ttlMs\":null,\"error\":{}}]");
    ck_assert_int_eq(rv_mcp_server_give_list(t.s, 1, tasks, 9, &t.out, NULL), 0);
    ck_assert_str_eq(ordered(&t), "> {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tasks\":[{\"taskId\":\"t\","
                                  "\"status\":\"failed\",\"ttl\":null}],\"nextCursor\":\"9\"}}\n");
    json_object_put(tasks);
    end(&t);

    t = begin(&opts);
    say(&t, INITIALIZE("2025-06-18", "{}"));
    expect(say(&t, REQUEST("3", "tasks/get", "{\"taskId\":\"t\"}")), "-32601"); /* that revision did not know them */
    expect(say(&t, REQUEST("4", "tasks/list", "{}")), "-32601");
    ck_assert_int_eq(
        rv_mcp_server_read(t.s, rv_str_of(REQUEST("2", "tools/call", "{\"name\":\"a\",\"task\":{}}")), &t.out, NULL),
        0);
    ck_assert_int_eq(t.out.items[0].tasks, RV_MCP_TASK_NEVER);
    end(&t);
}
END_TEST

TCase *server_case(void)
{
    TCase *tc = tcase_create("server");

    tcase_add_loop_test(tc, agrees_on_a_revision, 0, (int)RV_COUNT(versions));
    tcase_add_test(tc, says_nothing_unasked);
    tcase_add_loop_test(tc, refuses_wrong_parameters, 0, (int)RV_COUNT(refused));
    tcase_add_test(tc, lists_in_pages);
    tcase_add_test(tc, shapes_results_by_revision);
    tcase_add_test(tc, tells_progress_and_logs_only_to_those_who_asked);
    tcase_add_test(tc, a_cancelled_call_has_no_answer);
    tcase_add_test(tc, bounds_calls_and_keeps_ids_apart);
    tcase_add_test(tc, asks_a_legacy_client_while_the_call_goes_on);
    tcase_add_test(tc, asks_a_modern_client_by_the_answer);
    tcase_add_loop_test(tc, asks_only_clients_that_declared_it, 0, (int)RV_COUNT(askable));
    tcase_add_test(tc, modern_requests_say_what_they_are);
    tcase_add_test(tc, a_modern_client_gets_a_task_only_if_it_takes_them);
    tcase_add_test(tc, a_legacy_client_asks_for_a_task_and_for_its_result);
    return tc;
}
