/* The table of routes for programs and people: OpenAPI 3.1, and the page of the reference. The schemas of answers are
 * in answers.c; those of requests, texts and errors are here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/server/body_internal.h"

#define MAX_MEMBERS 32 /* of a body of ours: those in the table have fewer */

#define TEXT      "{\"type\":\"string\"}"
#define INT       "{\"type\":\"integer\"}"
#define BOOL      "{\"type\":\"boolean\"}"
#define OBJECT    "{\"type\":\"object\"}"
#define TEXTS     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define MESSAGES  "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define OF(props) "{\"type\":\"object\",\"properties\":{" props "}}"
/* A body of ours: a member that is not here is refused. OF() has more members, which the handler knows, or which
 * clients of other servers send and those servers pass over: its rows of routes.c have a "+". */
#define STRICT(rest, props) "{\"type\":\"object\"," rest "\"properties\":{" props "},\"additionalProperties\":false}"
#define FILE_PROPS          "\"path\":" TEXT ",\"content\":" TEXT
#define FILES_PROPS(items)                                                                                             \
    FILE_PROPS ",\"files\":{\"type\":\"array\",\"items\":" items "},\"session\":" TEXT ",\"chunk_chars\":" INT         \
               ",\"overlap\":" INT

static const struct {
    const char *name, *schema;
} schemas[] = {
    {"RunAgentInput", "{\"type\":\"object\",\"description\":\"AG-UI RunAgentInput\",\"properties\":{\"threadId\":" TEXT
                      ",\"runId\":" TEXT ",\"protocolVersion\":" TEXT ",\"messages\":" MESSAGES ",\"tools\":" MESSAGES
                      ",\"context\":" MESSAGES ",\"state\":{},\"forwardedProps\":{},\"resume\":" MESSAGES "}}"},
    {"ChatCompletion", "{\"type\":\"object\",\"required\":[\"messages\"],\"properties\":{\"model\":" TEXT
                       ",\"messages\":" MESSAGES ",\"stream\":" BOOL "}}"},
    {"Response", "{\"type\":\"object\",\"required\":[\"input\"],\"properties\":{\"model\":" TEXT
                 ",\"input\":{},\"stream\":" BOOL ",\"previous_response_id\":" TEXT "}}"},
    {"Metrics", "{\"type\":\"string\",\"description\":\"lines of text\"}"},
    {"Text", TEXT},
    {"NewLogin", STRICT("\"required\":[\"key\"],", "\"key\":" TEXT)},
    {"Page", "{\"type\":\"string\",\"description\":\"HTML, CSS or a module\"}"},
    {"Stream", "{\"type\":\"string\",\"description\":\"server-sent events\"}"},
    {"McpMessage",
     "{\"type\":\"object\",\"description\":\"a message of JSON-RPC 2.0\",\"required\":[\"jsonrpc\"],"
     "\"properties\":{\"jsonrpc\":{\"const\":\"2.0\"},\"id\":{},\"method\":" TEXT ",\"params\":" OBJECT "}}"},
    {"NewRun", STRICT("\"required\":[\"pipeline\"],",
                      "\"pipeline\":" TEXT ",\"input\":" TEXT ",\"state\":" OBJECT ",\"session\":" TEXT
                      ",\"mode\":{\"enum\":[\"sequential\",\"parallel\"]},\"priority\":" INT ",\"wait\":" BOOL
                      ",\"stream\":" BOOL ",\"deltas\":" BOOL ",\"webhook\":" STRICT(
                          "\"required\":[\"url\"],",
                          "\"url\":" TEXT ",\"secret\":" TEXT ",\"events\":{\"type\":\"array\",\"items\":"
                          "{\"enum\":[\"run.ended\",\"run.interrupted\"]}}"))},
    {"Answer", STRICT("", "\"interrupt_id\":" TEXT ",\"text\":" TEXT ",\"approved\":" BOOL ",\"decision\":" TEXT
                          ",\"choice\":" TEXT ",\"data\":{},\"arguments\":" OBJECT ",\"cancelled\":" BOOL)},
    {"Fork", STRICT("", "\"step\":" INT)},
    {"SessionChange", STRICT("", "\"name\":" TEXT ",\"status\":" TEXT ",\"metadata\":" OBJECT)},
    {"SessionClone", OF("\"new_name\":" TEXT ",\"add_to_collection\":" TEXT ",\"max_messages\":" INT)},
    {"Query", OF("\"mode\":{\"enum\":[\"LOOKUP\",\"SEARCH\",\"FUZZY\",\"TRAVERSE\",\"SQL\"]},\"key\":" TEXT
                 ",\"query\":" TEXT ",\"table\":" TEXT ",\"max_depth\":" INT ",\"rel_type\":" TEXT ",\"limit\":" INT
                 ",\"threshold\":{\"type\":\"number\"}")},
    {"RawQuery", "{\"type\":\"object\",\"required\":[\"query\"],\"properties\":{\"query\":" TEXT "}}"},
    {"Feedback",
     STRICT("", "\"session_id\":" TEXT ",\"message_id\":" TEXT ",\"trace_id\":" TEXT ",\"span_id\":" TEXT
                ",\"rating\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":5}"
                ",\"score\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1}"
                ",\"name\":" TEXT ",\"label\":" TEXT ",\"comment\":" TEXT ",\"source\":" TEXT ",\"metadata\":" OBJECT)},
    {"AgentDocument", "{\"type\":\"object\",\"description\":\"a document of an agent, as JSON or YAML\"}"},
    {"Row", "{\"type\":\"object\",\"description\":\"columns of docs/reference/entities.md\"}"},
    {"RowSearch",
     "{\"type\":\"object\",\"description\":\"members that are columns are conditions\",\"properties\":{"
     "\"query\":" TEXT ",\"tags\":" TEXTS ",\"tag_match\":{\"enum\":[\"all\",\"any\"]},\"name_contains\":" TEXT
     ",\"created_after\":" TEXT ",\"created_before\":" TEXT ",\"limit\":" INT ",\"offset\":" INT "}}"},
    {"SessionSearch", STRICT("", "\"query\":" TEXT ",\"name\":" TEXT ",\"agent\":" TEXT ",\"tags\":" TEXTS
                                 ",\"since\":" TEXT ",\"page\":" INT ",\"page_size\":" INT)},
    {"NewFiles", STRICT("", FILES_PROPS(STRICT("", FILE_PROPS)))},
    {"ImportedFiles", OF(FILES_PROPS(OBJECT))},
    {"Schema", "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":" TEXT ",\"kind\":" TEXT
               ",\"version\":" TEXT ",\"description\":" TEXT ",\"content\":" TEXT ",\"json_schema\":" OBJECT "}}"},
    {"AgentSearch", "{\"type\":\"object\",\"required\":[\"query\"],\"properties\":{\"query\":" TEXT
                    ",\"search_type\":{\"enum\":[\"semantic\",\"name\",\"tags\",\"all\"]},\"limit\":" INT "}}"},
    {"NewTask", STRICT("\"required\":[\"type\"],",
                       "\"type\":" TEXT ",\"payload\":" OBJECT ",\"key\":" TEXT ",\"scheduled_at\":" TEXT
                       ",\"priority\":" INT ",\"max_retries\":" INT ",\"labels\":" TEXTS ",\"user_id\":" TEXT)},
    {"NewSchedule",
     STRICT("", "\"name\":" TEXT ",\"cron\":" TEXT ",\"at\":" TEXT ",\"zone\":" TEXT ",\"pipeline\":" TEXT
                ",\"input\":" TEXT ",\"state\":" OBJECT ",\"session\":" TEXT
                ",\"mode\":{\"enum\":[\"sequential\",\"parallel\"]},\"type\":" TEXT ",\"payload\":" OBJECT
                ",\"max_retries\":" INT ",\"priority\":" INT ",\"labels\":" TEXTS ",\"user_id\":" TEXT)},
    {"ScheduleChange", STRICT("", "\"cron\":" TEXT ",\"at\":" TEXT ",\"zone\":" TEXT ",\"priority\":" INT)},
    {"Embedding", "{\"type\":\"object\",\"required\":[\"input\"],\"properties\":{\"model\":" TEXT
                  ",\"input\":{},\"dimensions\":" INT ",\"encoding_format\":{\"enum\":[\"float\",\"base64\"]}}}"},
    {"SessionIds", STRICT("", "\"session_id\":" TEXT ",\"session_ids\":" TEXTS)},
    {"SessionQuery", STRICT("", "\"agent_name\":" TEXT ",\"name_contains\":" TEXT ",\"search\":" TEXT
                                ",\"updated_after\":" TEXT ",\"limit\":" INT)},
    {"Problem", "{\"type\":\"object\",\"required\":[\"title\",\"status\",\"detail\",\"code\",\"error\"],\"properties\":"
                "{\"type\":" TEXT ",\"title\":" TEXT ",\"status\":" INT ",\"detail\":{},\"code\":" TEXT
                ",\"request_id\":" TEXT ",\"error\":" OBJECT "}}"},
};

/* --- members that a body may not have --- */

static int unknown_member(json_object *known, const char *inside, const char *key, rv_err **err)
{
    const char *names[MAX_MEMBERS];
    rv_buf list = RV_BUF_INIT(4096);
    size_t n = 0;

    json_object_object_foreach (known, name, unused) {
        (void)unused;
        rv_buf_printf(&list, "%s%s", n > 0 ? ", " : "", name);
        if (n < MAX_MEMBERS)
            names[n++] = name;
    }
    const char *nearest = rv_nearest(rv_str_of(key), names, n);
    int rc = RV_FAIL(err, RV_E_INVALID, "the body has an unknown member \"%.*s\"%s%s%s",
                     RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 64)), inside ? " in \"" : "", inside ? inside : "",
                     inside ? "\"" : "");
    if (nearest)
        rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
    else
        rv_err_set_hint(err, "these are known: %s", rv_buf_cstr(&list));
    rv_buf_fini(&list);
    return rc;
}

/* Only where the schema says that there are no others. */
static int check_members(json_object *schema, json_object *value, const char *inside, rv_err **err)
{
    json_object *known = rv_json_get_obj(schema, "properties"), *items = rv_json_get_obj(schema, "items");
    int rc = 0;

    if (items && json_object_is_type(value, json_type_array))
        for (size_t i = 0; i < json_object_array_length(value) && rc == 0; i++)
            rc = check_members(items, json_object_array_get_idx(value, i), inside, err);
    if (!json_object_object_get_ex(schema, "additionalProperties", NULL) ||
        !json_object_is_type(value, json_type_object))
        return rc;
    json_object_object_foreach (value, key, member) {
        json_object *of = NULL;
        if (rc == 0)
            rc = json_object_object_get_ex(known, key, &of) ? check_members(of, member, key, err)
                                                            : unknown_member(known, inside, key, err);
    }
    return rc;
}

/* Content is read with its length; any other text names something, and would be cut at a NUL. */
static int check_nul(json_object *value, const char *key, rv_err **err)
{
    static const char *const contents[] = {"input", "text", "content"};

    for (size_t i = 0; i < RV_COUNT(contents); i++)
        if (strcmp(key, contents[i]) == 0)
            return 0;
    return rv_json_has_nul(value) ? RV_FAIL(err, RV_E_INVALID, "\"%s\" has a NUL (U+0000), which it must not have", key)
                                  : 0;
}

/* Of the members that the schema names. */
static int check_texts(json_object *schema, json_object *value, const char *key, rv_err **err)
{
    json_object *known = rv_json_get_obj(schema, "properties"), *items = rv_json_get_obj(schema, "items");
    int rc = check_nul(value, key, err);

    if (items && json_object_is_type(value, json_type_array))
        for (size_t i = 0; i < json_object_array_length(value) && rc == 0; i++)
            rc = check_texts(items, json_object_array_get_idx(value, i), key, err);
    if (!known || !json_object_is_type(value, json_type_object))
        return rc;
    json_object_object_foreach (known, name, of)
        if (rc == 0)
            rc = check_texts(of, rv_json_member(value, name), name, err);
    return rc;
}

/* NULL: there is none of that name. */
static const char *schema_of(const char *type)
{
    for (size_t i = 0; i < RV_COUNT(schemas); i++)
        if (strcmp(schemas[i].name, type) == 0)
            return schemas[i].schema;
    return NULL;
}

bool srv_body_is_known(const char *takes)
{
    const char *schema = schema_of(takes + (takes[0] == '-' || takes[0] == '+'));
    bool is_strict = schema && strstr(schema, "\"additionalProperties\":false");

    return schema && (takes[0] == '-' || is_strict == (takes[0] != '+'));
}

int srv_body_check(const char *takes, json_object *body, rv_err **err)
{
    bool is_open = takes[0] == '+';
    const char *text = schema_of(takes + is_open);
    json_object *schema = NULL;

    if (!text)
        return RV_FAIL(err, RV_E_INTERNAL, "the body \"%s\" has no schema", takes);
    int rc = rv_json_parse(rv_str_of(text), NULL, &schema, err);
    if (rc == 0 && !is_open)
        rc = check_members(schema, body, NULL, err);
    if (rc == 0)
        rc = check_texts(schema, body, "", err);
    json_object_put(schema);
    return rc;
}

/* --- OpenAPI --- */

static void write_schema(rv_jw *w, const char *type)
{
    rv_jw_obj(w);
    rv_jw_key(w, "schema");
    srv_write_answer_type(w, rv_str_of(type));
    rv_jw_obj_end(w);
}

static void write_parameter(rv_jw *w, rv_str name, const char *in)
{
    rv_jw_obj(w);
    rv_jw_kv_str(w, "name", name);
    rv_jw_kv_text(w, "in", in);
    rv_jw_kv_bool(w, "required", strcmp(in, "path") == 0);
    rv_jw_key(w, "schema");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "string");
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

static void write_parameters(rv_jw *w, const struct srv_route *r)
{
    rv_jw_key(w, "parameters");
    rv_jw_arr(w);
    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{'))
        write_parameter(w, (rv_str){p + 1, strcspn(p + 1, "}")}, "path");
    for (const char *p = r->query; p && *p;) {
        size_t n = strcspn(p, " ");
        write_parameter(w, (rv_str){p, n}, "query");
        p += n + (p[n] == ' ');
    }
    if (srv_route_has_user(r))
        write_parameter(w, RV_STR_LIT("user"), "query");
    rv_jw_arr_end(w);
}

static void write_content(rv_jw *w, const char *type, const char *schema)
{
    rv_jw_key(w, "content");
    rv_jw_obj(w);
    rv_jw_key(w, type);
    write_schema(w, schema + (schema[0] == '-' || schema[0] == '+'));
    rv_jw_obj_end(w);
}

/* Answers beside the usual one, which is 200 with what the table says, as JSON unless its schema is a text. */
static const struct {
    enum rv_method method;
    const char *path;
    int status;
    const char *type, *schema; /* NULL: no body */
} others[] = {
    {RV_METHOD_GET, "/readyz", 503, "application/json", "Ready"},
    {RV_METHOD_GET, "/openapi.json", 304, NULL, NULL},
    {RV_METHOD_GET, "/", 304, NULL, NULL},
    {RV_METHOD_GET, "/page/{file}", 200, "text/css", "Page"},
    {RV_METHOD_GET, "/page/{file}", 200, "text/javascript", "Page"},
    {RV_METHOD_GET, "/page/{file}", 200, "image/svg+xml", "Page"},
    {RV_METHOD_GET, "/page/{file}", 304, NULL, NULL},
    {RV_METHOD_GET, "/page/views/{file}", 200, "text/javascript", "Page"},
    {RV_METHOD_GET, "/page/views/{file}", 304, NULL, NULL},
    {RV_METHOD_GET, "/metrics", 200, "application/openmetrics-text", "Metrics"},
    {RV_METHOD_POST, "/v1/chat/completions", 200, "text/event-stream", "Stream"},
    {RV_METHOD_POST, "/api/v1/chat/completions", 200, "application/json", "Completion"},
    {RV_METHOD_POST, "/api/v1/chat/completions/{session_id}", 200, "application/json", "Completion"},
    {RV_METHOD_POST, "/v1/responses", 200, "text/event-stream", "Stream"},
    {RV_METHOD_POST, "/mcp", 200, "text/event-stream", "Stream"},
    {RV_METHOD_POST, "/mcp", 202, NULL, NULL},
    {RV_METHOD_POST, "/mcp", 400, "application/json", "McpAnswer"},
    {RV_METHOD_POST, "/mcp", 400, "application/problem+json", "Problem"},
    {RV_METHOD_POST, "/mcp", 404, "application/json", "McpAnswer"},
    {RV_METHOD_DELETE, "/mcp", 400, "application/json", "McpAnswer"},
    {RV_METHOD_DELETE, "/mcp", 400, "application/problem+json", "Problem"},
    {RV_METHOD_DELETE, "/mcp", 404, "application/json", "McpAnswer"},
    {RV_METHOD_POST, "/runs", 202, "application/json", "RunBegun"},
    {RV_METHOD_POST, "/runs", 200, "text/event-stream", "Stream"},
    {RV_METHOD_GET, "/runs/{id}/events", 200, "application/x-ndjson", "Stream"},
    {RV_METHOD_GET, "/runs/{id}/stream", 200, "application/json", "Answered"},
    {RV_METHOD_GET, "/runs/{id}/events", 204, NULL, NULL},
    {RV_METHOD_GET, "/runs/{id}/stream", 204, NULL, NULL},
    {RV_METHOD_GET, "/chat/{chat_id}", 204, NULL, NULL},
    {RV_METHOD_GET, "/chat/{chat_id}", 200, "application/json", "Answered"},
    {RV_METHOD_GET, "/chat/{chat_id}", 502, "application/json", "FailedTurn"},
    {RV_METHOD_GET, "/runs/{id}/stream", 502, "application/json", "FailedTurn"},
    {RV_METHOD_POST, "/v1/responses", 502, "application/json", "FailedTurn"},
    {RV_METHOD_POST, "/v1/chat/completions", 502, "application/json", "FailedTurn"},
    {RV_METHOD_POST, "/api/v1/chat/completions", 502, "application/json", "FailedTurn"},
    {RV_METHOD_POST, "/api/v1/chat/completions/{session_id}", 502, "application/json", "FailedTurn"},
};

static const char *usual_type(const char *gives)
{
    return strcmp(gives, "Stream") == 0    ? "text/event-stream"
           : strcmp(gives, "Metrics") == 0 ? "text/plain"
           : strcmp(gives, "Page") == 0    ? "text/html"
           : strcmp(gives, "Text") == 0    ? "application/yaml"
                                           : "application/json";
}

/* What "201 [FileKept]" means: the status and the type. */
static int usual_status(const struct srv_route *r)
{
    return rv_is_digit(r->gives[0]) ? (int)strtol(r->gives, NULL, 10) : 200;
}

static const char *usual_schema(const struct srv_route *r)
{
    return rv_is_digit(r->gives[0]) ? strchr(r->gives, ' ') + 1 : r->gives;
}

static void write_key_int(rv_jw *w, int n)
{
    char text[16];

    snprintf(text, sizeof text, "%d", n);
    rv_jw_key(w, text);
}

static void write_type(rv_jw *w, const char *type, const char *schema)
{
    rv_jw_key(w, type);
    write_schema(w, schema);
}

/* All that the route answers with that status. False: nothing. */
static bool write_answer(rv_jw *w, const struct srv_route *r, int status)
{
    bool is_usual = status == usual_status(r), has_body = is_usual, any = is_usual;

    for (size_t i = 0; i < RV_COUNT(others); i++)
        if (others[i].status == status && others[i].method == r->method && strcmp(others[i].path, r->path) == 0) {
            any = true;
            has_body = has_body || others[i].type;
        }
    if (!any)
        return false;
    write_key_int(w, status);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "description", r->summary);
    if (has_body) {
        rv_jw_key(w, "content");
        rv_jw_obj(w);
        if (is_usual)
            write_type(w, usual_type(r->gives), usual_schema(r));
        for (size_t i = 0; i < RV_COUNT(others); i++)
            if (others[i].status == status && others[i].type && others[i].method == r->method &&
                strcmp(others[i].path, r->path) == 0)
                write_type(w, others[i].type, others[i].schema);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
    return true;
}

static bool needs_key(const struct srv_route *r)
{
    return r->scope >= 0 || r->scope == SRV_KNOWN;
}

static bool fails_with(const struct srv_route *r, int status)
{
    bool finds = strchr(r->path, '{') || r->takes, writes = r->method != RV_METHOD_GET;

    switch (status) {
    case 401:
    case 403:
    case 429:
        return r->scope != SRV_OPEN;
    case 404:
        return finds || r->query;
    case 409:
        return writes || finds;
    case 502:
    case 504: /* of a model or a tool behind it */
        return writes || strcmp(r->gives, "Stream") == 0;
    default:
        return true;
    }
}

static void write_answers(rv_jw *w, const struct srv_route *r)
{
    static const int good[] = {200, 201, 202, 204, 304};
    static const int bad[] = {400, 401, 403, 404, 408, 409, 413, 414, 429, 431, 500, 502, 503, 504};

    rv_jw_key(w, "responses");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_COUNT(good); i++)
        RV_IGNORE((write_answer(w, r, good[i]), 0), "most have one of them");
    for (size_t i = 0; i < RV_COUNT(bad); i++) {
        if (!fails_with(r, bad[i]) || write_answer(w, r, bad[i]))
            continue;
        write_key_int(w, bad[i]);
        rv_jw_obj(w);
        rv_jw_kv_text(w, "$ref",
                      r->family == RV_FAMILY_PROBLEM ? "#/components/responses/Problem"
                                                     : "#/components/responses/Fault");
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

/* Why not. What is refused before a route is looked at is a problem for all clients. */
static void write_faults(rv_jw *w)
{
    rv_jw_key(w, "responses");
    rv_jw_obj(w);
    for (int is_fault = 0; is_fault < 2; is_fault++) {
        rv_jw_key(w, is_fault ? "Fault" : "Problem");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "description", "why not");
        rv_jw_key(w, "content");
        rv_jw_obj(w);
        if (is_fault)
            write_type(w, "application/json", "Problem");
        write_type(w, "application/problem+json", "Problem");
        rv_jw_obj_end(w);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_operation(rv_jw *w, const struct srv_route *r)
{
    char method[16] = "";
    size_t n = 0;

    for (const char *m = rv_method_text(r->method); *m && n + 1 < sizeof method; m++)
        method[n++] = (char)(*m | 0x20);
    rv_jw_key(w, method);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "summary", r->summary);
    write_parameters(w, r);
    if (r->takes) {
        rv_jw_key(w, "requestBody");
        rv_jw_obj(w);
        write_content(w, "application/json", r->takes);
        rv_jw_obj_end(w);
    }
    write_answers(w, r);
    rv_jw_key(w, "security");
    rv_jw_arr(w);
    if (needs_key(r)) {
        rv_jw_obj(w);
        rv_jw_key(w, "bearer");
        rv_jw_arr(w);
        if (r->scope >= 0)
            rv_jw_text(w, rv_scope_text((enum rv_api_scope)r->scope));
        rv_jw_arr_end(w);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

/* All methods of a path stand together; the first row of a path writes them. */
static bool is_first(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(srv_routes[k].path, srv_routes[i].path) == 0)
            return false;
    return true;
}

static void write_paths(rv_jw *w)
{
    rv_jw_key(w, "paths");
    rv_jw_obj(w);
    for (size_t i = 0; i < srv_n_routes; i++) {
        if (!is_first(i))
            continue;
        rv_jw_key(w, srv_routes[i].path);
        rv_jw_obj(w);
        for (size_t k = i; k < srv_n_routes; k++)
            if (strcmp(srv_routes[k].path, srv_routes[i].path) == 0)
                write_operation(w, &srv_routes[k]);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

void rv_server_write_openapi(rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "openapi", "3.1.0");
    rv_jw_key(&w, "info");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "title", "reeve");
    rv_jw_kv_text(&w, "version", REEVE_VERSION);
    rv_jw_obj_end(&w);
    write_paths(&w);
    rv_jw_key(&w, "components");
    rv_jw_obj(&w);
    rv_jw_key(&w, "schemas");
    rv_jw_obj(&w);
    for (size_t i = 0; i < RV_COUNT(schemas); i++) {
        rv_jw_key(&w, schemas[i].name);
        rv_jw_raw(&w, rv_str_of(schemas[i].schema));
    }
    srv_write_answers(&w);
    rv_jw_obj_end(&w);
    write_faults(&w);
    rv_jw_key(&w, "securitySchemes");
    rv_jw_raw(&w, RV_STR_LIT("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
    rv_buf_putc(out, '\n');
}

void rv_server_write_reference(rv_buf *out)
{
    rv_buf_puts(out,
                "# HTTP\n\n"
                "What `reeve serve` answers, made by `reeve docs reference http` from the table of routes. The same "
                "table is\n`GET /openapi.json`. [Serve](../how-to/serve.md) says how to start it.\n\n"
                "| method and path | what | scope | parameters |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < srv_n_routes; i++) {
        const struct srv_route *r = &srv_routes[i];
        rv_buf_printf(out, "| `%s %s` | %s | %s | ", rv_method_text(r->method), r->path, r->summary,
                      r->scope == SRV_KNOWN ? "any"
                      : needs_key(r)        ? rv_scope_text((enum rv_api_scope)r->scope)
                                            : "");
        for (const char *p = r->query; p && *p;) {
            size_t n = strcspn(p, " ");
            rv_buf_printf(out, "%s`%.*s`", p == r->query ? "" : ", ", (int)n, p);
            p += n + (p[n] == ' ');
        }
        if (srv_route_has_user(r))
            rv_buf_printf(out, "%s`user`", r->query ? ", " : "");
        rv_buf_puts(out, " |\n");
    }
    rv_buf_puts(
        out,
        "\n`HEAD` is answered where `GET` is. A path that does not have a method is 405 with `Allow`.\n"
        "The same paths are there behind `/api/v1`, as clients of REMLight write them, and with `/` at the end.\n"
        "`user`: whose rows are meant; empty: those without an owner. An operator who leaves it out means the rows of "
        "all users, and\nhas to say it where several users have rows of that id. A user may name only themselves "
        "(403 otherwise).\n"
        "A body whose schema has `additionalProperties: false` is refused with 400 if it has another member; "
        "bodies that\n"
        "clients of other servers write (AG-UI, OpenAI, p8, REMLight) may have any.\n\n"
        "## Errors\n\n"
        "The body of an error has `type`, `title`, `status`, `detail`, `code`, `request_id` and `error` "
        "(`message`, `type`,\n`param`, `code`), so that clients of RFC 9457, of p8 and of OpenAI each find "
        "what they read. What belongs to\nanother user is answered as what does not exist.\n");
}
