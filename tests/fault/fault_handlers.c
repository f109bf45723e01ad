/* Each allocation of the server's handlers fails once: no crash, no leak; the code says no memory, or the answer is the
 * one that it is with memory. A parameter or a header that is lost would give another answer. */
#include <assert.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/mcp_internal.h"
#include "coreengine/server/page_internal.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define T0        INT64_C(1771891200000000) /* 2026-02-24T00:00:00Z */
#define SESSION   "5a0f7c1e-0000-4000-8000-000000000001"
#define AGENT     "type: object\nname: bosun\ndescription: You answer.\nclient_tools: true\n"
#define RUN       "runs/{run}" /* the run of the store: its id is drawn */
#define MAX_PARTS 8            /* segments, parameters and headers of a request */
#define N_WORLDS  16           /* stores that the requests are spread over */
#define MAX_ASKED 1000         /* bytes of a path, a query or a body */

/* A request, and what has to hold of its answer. */
struct asked {
    enum rv_method method;
    const char *path; /* without the first slash; {run}: the id of the run; {id}: what `first` answers; {n}: a number */
    const char *query;  /* "a=b c=d"; NULL: none */
    const char *header; /* the same */
    const char *body;   /* with {id} and {n} too */
    bool changes;       /* each answer has ids or times of its own, so that they are not compared */
    const char
        *first; /* "PATH BODY" of a POST, whose row the request is about: before each of them if they change it */
    int rc;     /* with which it is refused when memory is not short */
};

#define ORIGIN      "host=localhost:8600 origin=http://localhost:8600"
#define ASKED       "{\"model\":\"bosun\",\"messages\":[{\"role\":\"user\",\"content\":\"And then?\"}]}"
#define PILOT       "{\"name\":\"pilot\",\"kind\":\"agent\",\"content\":\"You steer.\"}"
#define MOMENT      "entities/moments {\"name\":\"dusk\",\"summary\":\"Dark.\"}"
#define A_FILE      "entities/files {\"name\":\"rain.md\",\"uri\":\"file:///rain.md\"}"
#define RATING      "{\"session_id\":\"" SESSION "\",\"score\":1,\"comment\":\"fine\"}"
#define TASK        "tasks {\"type\":\"news\"}"
#define SCHEDULE    "schedules {\"name\":\"s{n}\",\"cron\":\"@daily\",\"type\":\"news\"}"
#define GROUP       "entities/collections {\"name\":\"all\",\"session_ids\":[\"" SESSION "\"]}"
#define NEW_GROUP   "entities/collections {\"name\":\"all {n}\"}"
#define CLONE       "sessions/" SESSION "/clone {\"new_name\":\"Again\"}"
#define A_ROW(kind) "entities/" kind " {\"name\":\"row\"}"

/* What ROWS() of the table of routes has. */
#define ROWS(kind, columns)                                                                                            \
    {RV_METHOD_GET, kind, "limit=5 offset=0 name=row tag=hot " columns, NULL, "", .changes = false},                   \
        {RV_METHOD_POST, kind, NULL, NULL, "{\"name\":\"row {n}\",\"tags\":[\"hot\"]}", .changes = true},              \
        {RV_METHOD_GET, kind "/{id}", NULL, NULL, "", .changes = false, .first = A_ROW(kind)},                         \
        {RV_METHOD_PUT, kind "/{id}", NULL, NULL, "{\"tags\":[\"hot\"]}", .changes = true, .first = A_ROW(kind)},      \
        {RV_METHOD_PATCH, kind "/{id}", NULL, NULL, "{\"tags\":[\"hot\"]}", .changes = true, .first = A_ROW(kind)},    \
    {                                                                                                                  \
        RV_METHOD_DELETE, kind "/{id}", NULL, NULL, "", .changes = true, .first = A_ROW(kind)                          \
    }

static const struct asked requests[] = {
    {RV_METHOD_GET, "sessions", "limit=5 agent=bosun name=The search=Tale", NULL, "", .changes = false},
    {RV_METHOD_GET, "sessions/" SESSION, NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "sessions/" SESSION "/messages", "from=1 children=true", NULL, "", .changes = false},
    {RV_METHOD_GET, "sessions/" SESSION "/export", NULL, NULL, "", .changes = true},
    {RV_METHOD_GET, "sessions/" SESSION "/timeline", "limit=3", NULL, "", .changes = false},
    {RV_METHOD_PATCH, "sessions/" SESSION, NULL, NULL, "{\"name\":\"The Tale\",\"metadata\":{\"a\":1}}",
     .changes = true},
    {RV_METHOD_POST, "sessions/search", NULL, NULL, "{\"name\":\"The Tale\",\"tags\":[]}", .changes = false},
    {RV_METHOD_POST, "sessions/" SESSION "/clone", NULL, NULL, "{\"new_name\":\"Again\"}", .changes = true},
    {RV_METHOD_GET, "agents", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "agents/bosun", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "agents/bosun/content", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "agents/bosun/versions", NULL, NULL, "", .changes = false},
    {RV_METHOD_PUT, "agents", NULL, NULL, AGENT, .changes = true},
    {RV_METHOD_POST, "agents/validate", NULL, NULL, AGENT, .changes = false},
    {RV_METHOD_GET, "entities", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "entities/moments", "limit=5 name=tea tag=hot", NULL, "", .changes = false},
    {RV_METHOD_POST, "entities/moments", NULL, NULL, "{\"name\":\"tea\",\"summary\":\"Kettle.\",\"tags\":[\"hot\"]}",
     .changes = true},
    {RV_METHOD_GET, "moments", "limit=5 name=tea category=drink", NULL, "", .changes = false},
    {RV_METHOD_POST, "moments/search", NULL, NULL, "{\"name_contains\":\"te\"}", .changes = false},
    {RV_METHOD_GET, "feed", "days=3 before=2026-03-01", NULL, "", .changes = false},
    {RV_METHOD_POST, "query", NULL, NULL, "{\"mode\":\"lookup\",\"key\":\"tea\"}", .changes = false},
    {RV_METHOD_POST, "query/raw", NULL, NULL, "{\"query\":\"FUZZY tee LIMIT 2\"}", .changes = false},
    {RV_METHOD_GET, "runs", "limit=5 status=ready pipeline=hello session=" SESSION, NULL, "", .changes = false},
    {RV_METHOD_GET, RUN, NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, RUN "/timeline", "limit=3", NULL, "", .changes = true},
    {RV_METHOD_GET, RUN "/journal", "limit=3", NULL, "", .changes = false},
    {RV_METHOD_GET, RUN "/graph", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "interrupts", "session=" SESSION, NULL, "", .changes = false},
    {RV_METHOD_POST, "runs", NULL, NULL, "{\"pipeline\":\"hello\",\"input\":\"hi\",\"session\":\"s\"}",
     .changes = true},
    {RV_METHOD_GET, "tasks", "limit=5 type=news", NULL, "", .changes = false},
    {RV_METHOD_POST, "tasks", NULL, NULL, "{\"type\":\"news\",\"user_id\":\"ada\",\"payload\":{\"a\":1}}",
     .changes = true},
    {RV_METHOD_POST, "chat/" SESSION, NULL, "x-agent-schema-name=bosun x-session-name=Tale",
     "{\"messages\":[{\"id\":\"m\",\"role\":\"user\",\"content\":\"And then?\"}]}", .changes = true},
    {RV_METHOD_POST, "v1/chat/completions", NULL, "x-session-id=" SESSION " idempotency-key=k",
     "{\"model\":\"bosun\",\"messages\":[{\"role\":\"user\",\"content\":\"And then?\"}]}", .changes = true},
    {RV_METHOD_POST, "v1/chat/completions", NULL, "x-session-id=" SESSION " idempotency-key=k",
     "{\"model\":\"bosun\",\"messages\":[{\"role\":\"user\",\"content\":\"And "
     "then?\"}],\"tools\":[{\"type\":\"function\","
     "\"function\":{\"name\":\"ring\",\"parameters\":{\"type\":\"object\"}}}],"
     "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"ring\"}}}",
     .changes = true},
    {RV_METHOD_POST, "v1/responses", NULL, NULL, "{\"model\":\"bosun\",\"input\":\"And then?\"}", .changes = true},
    {RV_METHOD_GET, "v1/models", NULL, NULL, "", .changes = false},
    {RV_METHOD_POST, "mcp", NULL,
     "content-type=application/json accept=*/* mcp-protocol-version=2026-07-28 mcp-method=tools/list",
     "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
     "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
     .changes = false},
    {RV_METHOD_POST, "mcp", NULL, "content-type=application/json",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
     "\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
     .changes = false},
    /* pages, probes and logins */
    {RV_METHOD_GET, "", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "page/app.js", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "page/views/runs.js", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "healthz", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "health", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "query/health", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "readyz", NULL, NULL, "", .changes = true}, /* not ready, while the store has no memory */
    {RV_METHOD_GET, "openapi.json", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "metrics", NULL, NULL, "", .changes = true},
    {RV_METHOD_POST, "login", NULL, ORIGIN, "{\"key\":\"{key}\"}", .changes = true},
    {RV_METHOD_GET, "login", NULL, NULL, "", .changes = false},
    {RV_METHOD_POST, "logout", NULL, ORIGIN, "", .changes = true},
    {RV_METHOD_GET, "me", NULL, NULL, "", .changes = false},
    /* chats and models */
    {RV_METHOD_GET, "chat/" SESSION, NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "v1/models/bosun", NULL, NULL, "", .changes = false},
    {RV_METHOD_POST, "api/v1/chat/completions", NULL, "x-agent-schema-name=bosun", ASKED, .changes = true},
    {RV_METHOD_POST, "api/v1/chat/completions/" SESSION, NULL, "x-agent-schema-name=bosun", ASKED, .changes = true},
    {RV_METHOD_POST, "v1/embeddings", NULL, NULL, "{\"model\":\"default\",\"input\":[\"tea\"]}", .changes = false},
    {RV_METHOD_GET, "models", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "models/hash:256", NULL, NULL, "", .changes = false, .rc = RV_E_NOT_FOUND},
    {RV_METHOD_GET, "servers", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "mcp-tools", NULL, NULL, "", .changes = false},
    {RV_METHOD_DELETE, "mcp", NULL, "mcp-session-id=none", "", .changes = false},
    /* runs */
    {RV_METHOD_GET, "pipelines", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "pipelines/hello", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, RUN "/events", "from=1", NULL, "", .changes = false},
    {RV_METHOD_GET, RUN "/stream", NULL, NULL, "", .changes = false, .rc = RV_E_NOT_FOUND},
    {RV_METHOD_POST, RUN "/cancel", NULL, NULL, "{}", .changes = true},
    {RV_METHOD_POST, RUN "/answer", NULL, NULL, "{\"text\":\"yes\"}", .changes = true, .rc = RV_E_STATE},
    {RV_METHOD_POST, RUN "/fork", NULL, NULL, "{}", .changes = true},
    {RV_METHOD_POST, RUN "/replay", NULL, NULL, "{}", .changes = true},
    {RV_METHOD_GET, RUN "/diff", "with={run}", NULL, "", .changes = false},
    /* sessions and agents */
    {RV_METHOD_DELETE, "sessions/{id}", NULL, NULL, "", .changes = true, .first = CLONE},
    {RV_METHOD_GET, "sessions/" SESSION "/moments", "limit=3 offset=0", NULL, "", .changes = false},
    {RV_METHOD_GET, "tools", NULL, NULL, "", .changes = false},
    {RV_METHOD_POST, "agents/search", NULL, NULL, "{\"query\":\"answer\"}", .changes = false},
    {RV_METHOD_GET, "agents/bosun/history", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "agents/bosun/history/1/content", NULL, NULL, "", .changes = false},
    {RV_METHOD_DELETE, "agents/pilot", NULL, NULL, "", .changes = true, .first = "schemas " PILOT},
    {RV_METHOD_GET, "schemas", "limit=5 kind=agent", NULL, "", .changes = false},
    {RV_METHOD_POST, "schemas", NULL, NULL,
     "{\"name\":\"Bill\",\"kind\":\"model\",\"json_schema\":{\"type\":\"object\"}}", .changes = true},
    {RV_METHOD_GET, "schemas/{id}", NULL, NULL, "", .changes = false, .first = "schemas " PILOT},
    {RV_METHOD_DELETE, "schemas/{id}", NULL, NULL, "", .changes = true, .first = "schemas " PILOT},
    /* rows of a kind */
    {RV_METHOD_GET, "entities/moments/{id}", NULL, NULL, "", .changes = false, .first = MOMENT},
    {RV_METHOD_DELETE, "entities/moments/{id}", NULL, NULL, "", .changes = true, .first = MOMENT},
    ROWS("scenarios", "status=draft agent_name=bosun"),
    {RV_METHOD_POST, "scenarios/search", NULL, NULL, "{\"query\":\"row\",\"status\":\"draft\"}", .changes = false},
    ROWS("collections", "status=draft"),
    {RV_METHOD_POST, "collections/search", NULL, NULL, "{\"tags\":[\"hot\"],\"tag_match\":\"any\"}", .changes = false},
    {RV_METHOD_GET, "collections/{id}/sessions", "limit=5 offset=0", NULL, "", .changes = false, .first = GROUP},
    {RV_METHOD_POST, "collections/{id}/sessions", NULL, NULL, "{\"session_id\":\"" SESSION "\"}", .changes = true,
     .first = NEW_GROUP},
    {RV_METHOD_POST, "collections/{id}/sessions/batch", NULL, NULL, "{\"session_ids\":[\"" SESSION "\"]}",
     .changes = true, .first = NEW_GROUP},
    {RV_METHOD_POST, "collections/{id}/sessions/from-query", NULL, NULL,
     "{\"name_contains\":\"Tale\",\"search\":\"then\"}", .changes = true, .first = NEW_GROUP},
    {RV_METHOD_DELETE, "collections/{id}/sessions/" SESSION, NULL, NULL, "", .changes = true, .first = GROUP},
    {RV_METHOD_GET, "collections/{id}/export", NULL, NULL, "", .changes = true, .first = GROUP},
    ROWS("users", "email=a@example.com"),
    {RV_METHOD_POST, "feedback", NULL, NULL, RATING, .changes = true},
    {RV_METHOD_POST, "scenarios/feedback", NULL, NULL, RATING, .changes = true},
    {RV_METHOD_GET, "feedback", "limit=5 session_id=" SESSION " rating=1", NULL, "", .changes = false},
    {RV_METHOD_GET, "feedback/{id}", NULL, NULL, "", .changes = false, .first = "feedback " RATING},
    {RV_METHOD_DELETE, "feedback/{id}", NULL, NULL, "", .changes = true, .first = "feedback " RATING},
    {RV_METHOD_GET, "moments/{id}", NULL, NULL, "", .changes = false, .first = MOMENT},
    {RV_METHOD_POST, "moments", NULL, NULL,
     "{\"name\":\"Noon {n}\",\"moment_type\":\"note\",\"source_session_id\":\"" SESSION "\"}", .changes = true},
    {RV_METHOD_PATCH, "moments/{id}", NULL, NULL, "{\"summary\":\"Cold.\"}", .changes = true, .first = MOMENT},
    {RV_METHOD_DELETE, "moments/{id}", NULL, NULL, "", .changes = true, .first = MOMENT},
    /* files */
    {RV_METHOD_GET, "files", "limit=5 mime_type=text/plain", NULL, "", .changes = false},
    {RV_METHOD_GET, "files/{id}", NULL, NULL, "", .changes = false, .first = A_FILE},
    {RV_METHOD_POST, "files", NULL, NULL,
     "{\"files\":[{\"path\":\"notes/tea.md\",\"content\":\"# Tea\\n\\nHot {n}.\"}]}", .changes = true},
    {RV_METHOD_POST, "ontology/import", NULL, NULL, "{\"path\":\"notes/tea.md\",\"content\":\"# Tea\\n\\nCold {n}.\"}",
     .changes = true},
    {RV_METHOD_DELETE, "files/{id}", NULL, NULL, "", .changes = true, .first = A_FILE},
    {RV_METHOD_GET, "ontology/tree", "limit=5 offset=0", NULL, "", .changes = false, .first = A_FILE},
    {RV_METHOD_GET, "ontology/content/rain.md", NULL, NULL, "", .changes = false, .first = A_FILE},
    /* the queue */
    {RV_METHOD_GET, "tasks/{id}", NULL, NULL, "", .changes = false, .first = TASK},
    {RV_METHOD_POST, "tasks/{id}/cancel", NULL, NULL, "{}", .changes = true, .first = TASK},
    {RV_METHOD_POST, "tasks/{id}/retry", NULL, NULL, "{}", .changes = true, .first = TASK, .rc = RV_E_STATE},
    {RV_METHOD_GET, "schedules", NULL, NULL, "", .changes = false, .first = SCHEDULE},
    {RV_METHOD_POST, "schedules", NULL, NULL,
     "{\"name\":\"n{n}\",\"cron\":\"@daily\",\"pipeline\":\"hello\",\"input\":\"hi\"}", .changes = true},
    {RV_METHOD_GET, "schedules/{id}", NULL, NULL, "", .changes = true, .first = SCHEDULE},
    {RV_METHOD_PUT, "schedules/{id}", NULL, NULL,
     "{\"at\":\"2100-01-01T00:00\",\"type\":\"news\",\"payload\":{\"a\":1}}", .changes = true, .first = SCHEDULE},
    {RV_METHOD_PATCH, "schedules/{id}", NULL, NULL, "{\"cron\":\"30 8 * * *\",\"priority\":2}", .changes = true,
     .first = SCHEDULE},
    {RV_METHOD_DELETE, "schedules/{id}", NULL, NULL, "", .changes = true, .first = SCHEDULE},
    {RV_METHOD_GET, "usage", NULL, NULL, "", .changes = false},
    {RV_METHOD_GET, "usage/answers", "by=user since=2026-02-24T00:00:00Z", NULL, "", .changes = false},
};

/* --- the server, as far as handlers see it --- */

static struct world {
    char *dir, *store, *pipelines;
    struct rv_server_opts opts;
    struct srv_server server;
    struct srv_handles handles;
    char run[RV_STORE_MAX_ID + 1], id[RV_STORE_MAX_ID + 1], key[RV_API_KEY_MAX];
    int n;                                                   /* requests so far */
    char path[MAX_ASKED], query[MAX_ASKED], body[MAX_ASKED]; /* of the request that is asked, with its words in place */
} world;

/* Puts in place what stands in braces. Nothing is allocated. */
static const char *expand(const char *text, char out[MAX_ASKED])
{
    char n[16];
    const struct {
        const char *word, *value;
    } words[] = {{"{run}", world.run}, {"{id}", world.id}, {"{key}", world.key}, {"{n}", n}};
    size_t len = 0;

    if (!text)
        return NULL;
    snprintf(n, sizeof n, "%d", world.n);
    for (const char *p = text; *p;) {
        const char *value = NULL;
        for (size_t i = 0; i < RV_COUNT(words) && !value; i++)
            if (strncmp(p, words[i].word, strlen(words[i].word)) == 0) {
                value = words[i].value;
                p += strlen(words[i].word);
            }
        size_t n_value = value ? strlen(value) : 1;
        assert(len + n_value < MAX_ASKED); /* libcheck would allocate */
        memcpy(out + len, value ? value : p++, n_value);
        len += n_value;
    }
    out[len] = '\0';
    return out;
}

/* "a=b c=d" */
static size_t split(const char *text, struct rv_httpd_field *out)
{
    size_t n = 0;

    for (const char *p = text; p && *p && n < MAX_PARTS;) {
        size_t len = strcspn(p, " "), at = strcspn(p, "=");
        out[n++] = (struct rv_httpd_field){{p, at}, {p + at + 1, len - at - 1}};
        p += len + (p[len] == ' ');
    }
    return n;
}

static char said[200]; /* why the last one failed */

/* As handle.c does on a thread of the pool. out: what is answered; NULL: it is not looked at. */
static int ask(const struct asked *a, rv_buf *out)
{
    const struct rv_json_opts json = {.what = "the body"};
    struct rv_httpd_field query[MAX_PARTS], fields[MAX_PARTS];
    rv_str segments[MAX_PARTS], args[SRV_MAX_ARGS];
    size_t n = 0, n_args;
    unsigned allowed;

    world.n++;
    for (const char *p = expand(a->path, world.path); *p;) {
        size_t len = strcspn(p, "/");
        segments[n++] = (rv_str){p, len};
        p += len + (p[len] == '/');
    }
    const struct rv_httpd_request req = {.method = a->method,
                                         .id = "r",
                                         .segments = segments,
                                         .n_segments = n,
                                         .query = query,
                                         .n_query = split(expand(a->query, world.query), query),
                                         .fields = fields,
                                         .n_fields = split(a->header, fields),
                                         .peer = "127.0.0.1",
                                         .body = rv_str_of(expand(a->body, world.body))};
    struct srv_call *c = calloc(1, sizeof *c);
    if (!c || !(c->refusal = calloc(1, sizeof *c->refusal))) {
        free(c);
        return RV_E_NOMEM;
    }
    rv_buf_init(&c->out, SRV_MAX_ANSWER);
    c->server = &world.server;
    c->req = &req;
    c->route = srv_route_find(a->method, segments, n, args, &n_args, &allowed);
    c->handles = &world.handles;
    c->store = world.handles.sources.store;
    c->app = world.server.app;
    c->who =
        (struct rv_identity){.level = RV_LEVEL_USER, .scopes = UINT32_MAX, .tenant = RV_STORE_TENANT, .user = "ada"};
    c->app.scope = rv_identity_scope(&c->who);
    int rc = c->route ? 0 : RV_E_NOT_FOUND;
    for (; rc == 0 && c->n_args < n_args; c->n_args++)
        if (!(c->args[c->n_args] = rv_str_dup(args[c->n_args])))
            rc = RV_E_NOMEM;
    if (rc == 0 && c->route->takes && c->route->takes[0] != '-' && req.body.len > 0)
        rc = rv_json_parse(req.body, &json, &c->body, &c->err);
    if (rc == 0)
        rc = c->route->work(c, &c->err);
    if (rc == 0 && c->is_refused)
        rc = RV_E_DENIED;
    if (rc == 0)
        rc = rv_buf_check(&c->out, "the answer", &c->err);
    if (rc == 0 && out) {
        rv_buf_add_str(out, rv_buf_str(&c->out));
        rv_buf_printf(out, " with %zu headers", c->n_fields);
    }
    snprintf(said, sizeof said, "%s", c->err ? rv_err_text(rv_err_cause(c->err) ? rv_err_cause(c->err) : c->err) : "");
    srv_call_free(c);
    return rc;
}

static void must(const struct asked *a, rv_buf *out)
{
    int rc = ask(a, out);

    ck_assert_msg(rc == a->rc, "%s %s: %s (%s)", rv_method_text(a->method), a->path, rv_code_text(rc), said);
}

/* Makes the row that the request is about, and keeps its id. */
static void make_first(const struct asked *a)
{
    char path[MAX_ASKED];
    json_object *json = NULL;
    const char *id = NULL;
    rv_buf text = RV_BUF_INIT(65536);
    size_t len = a->first ? strcspn(a->first, " ") : 0;

    if (!a->first)
        return;
    snprintf(path, sizeof path, "%.*s", (int)len, a->first);
    must(&(struct asked){.method = RV_METHOD_POST, .path = path, .body = a->first + len + 1}, &text);
    rv_str answer = {text.ptr, (size_t)(strstr(text.ptr, " with ") - text.ptr)};
    ck_assert_int_eq(rv_json_parse(answer, &(struct rv_json_opts){.what = "row"}, &json, NULL), 0);
    ck_assert_msg(rv_json_get_text(json, "id", &id) || rv_json_get_text(json, "new_session_id", &id), "%s", text.ptr);
    snprintf(world.id, sizeof world.id, "%s", id);
    json_object_put(json);
    rv_buf_fini(&text);
}

static void fill(void)
{
    const struct rv_store_scope ada = {RV_STORE_TENANT, "ada"};
    const struct rv_session_row fresh = {.id = SESSION,
                                         .tenant = RV_STORE_TENANT,
                                         .user = "ada",
                                         .name = "The Tale",
                                         .agent_name = "bosun",
                                         .created_us = T0};
    struct rv_message row = {
        .id = "q", .type = "user", .has_content = true, .content = RV_STR_LIT("And then?"), .created_us = T0};
    const struct rv_turn turn = {.session = SESSION, .rows = &row, .n_rows = 1};
    rv_buf text = RV_BUF_INIT(65536);
    struct rv_new_key key;
    json_object *json = NULL;
    const char *id = NULL;

    rv_api_key_make(rv_rand_system(), &key);
    memcpy(world.key, key.text, sizeof key.text);
    const struct rv_api_key_row known = {.id = key.id,
                                         .hash = key.hash,
                                         .level = "user",
                                         .tenant = RV_STORE_TENANT,
                                         .user = "ada",
                                         .scopes = "",
                                         .note = "",
                                         .created_us = T0};
    ck_assert_int_eq(rv_store_add_api_key(world.handles.sources.store, &known, NULL), 0);
    ck_assert_int_eq(rv_store_ensure_session(world.handles.sources.store, &fresh, NULL, NULL), 0);
    ck_assert_int_eq(rv_store_add_messages(world.handles.sources.store, &ada, &turn, T0, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(requests); i++) {
        if (strcmp(requests[i].path, "agents") != 0 && strcmp(requests[i].path, "entities/moments") != 0 &&
            strcmp(requests[i].path, "runs") != 0)
            continue;
        rv_buf_clear(&text);
        if (requests[i].changes)
            must(&requests[i], &text);
    }
    rv_str answer = {text.ptr, (size_t)(strstr(text.ptr, " with ") - text.ptr)};
    ck_assert_int_eq(rv_json_parse(answer, &(struct rv_json_opts){.what = "run"}, &json, NULL), 0);
    ck_assert(rv_json_get_text(json, "id", &id));
    snprintf(world.run, sizeof world.run, "%s", id);
    json_object_put(json);
    rv_buf_fini(&text);
}

static void begin(void)
{
    world.dir = rv_kit_tmpdir();
    world.store = rv_kit_path(world.dir, "store.db");
    world.pipelines = rv_kit_path(world.dir, "p");
    ck_assert_int_eq(mkdir(world.pipelines, 0700), 0);
    char *hello = rv_kit_path(world.pipelines, "hello.yaml");
    rv_kit_write(hello, "name: hello\nagents: [{name: a}]\n");
    free(hello);
    world.opts = (struct rv_server_opts){.app = &world.server.app, .pipelines = world.pipelines};
    world.server.opts = &world.opts;
    world.server.app = (struct rv_app){
        .store = world.store, .sync = "off", .schema_dir = "", .capability = "", .quotas = "", .files = ""};
    rv_owner_make_name(world.server.owner);
    ck_assert_int_eq(rv_app_sources_open(&world.server.app, RV_APP_STORE_MAKE, &world.handles.sources, NULL), 0);
    ck_assert_int_eq(srv_turns_new(&world.server, &world.server.turns, NULL), 0);
    ck_assert_int_eq(srv_mcps_new(&world.server, &world.server.mcps, NULL), 0);
    ck_assert_int_eq(srv_watch_new(&world.opts, &world.server.watch, NULL), 0);
    ck_assert_int_eq(srv_openapi_make(&world.server.openapi, NULL), 0);
    ck_assert_int_eq(rv_auth_new(&RV_IDENTITY_OPTS_INIT, T0, &world.server.auth, NULL), 0);
    fill();
}

static void end(void)
{
    srv_mcps_stop(world.server.mcps);
    srv_mcps_free(world.server.mcps);
    srv_turns_drain(world.server.turns);
    srv_turns_free(world.server.turns);
    srv_watch_free(world.server.watch);
    srv_document_free(world.server.openapi);
    rv_auth_free(world.server.auth);
    rv_app_sources_fini(&world.handles.sources);
    free(world.store);
    free(world.pipelines);
    rv_kit_tmpdir_remove(world.dir);
}

static void each_may_fail(const struct asked *a)
{
    rv_buf want = RV_BUF_INIT(1 << 20), got = RV_BUF_INIT(1 << 20);
    long drift = 0;

    make_first(a);
    must(a, NULL); /* libraries set themselves up, and statements are prepared */
    if (a->changes)
        make_first(a);
    must(a, &want);
    rv_buf_add_str(&got, rv_buf_str(&want)); /* it has its room from here on */
    if (a->changes)
        make_first(a);
    rv_fault_arm(SIZE_MAX);
    must(a, NULL);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    for (size_t n = rv_kit_first(step);; n += step) {
        rv_buf_clear(&got);
        if (a->changes)
            make_first(a);
        rv_fault_arm(n);
        int rc = ask(a, &got);
        bool fired = rv_fault_disarm();
        ck_assert_msg(rc == a->rc || rc == RV_E_NOMEM, "%s, allocation %zu: %s (%s)", a->path, n, rv_code_text(rc),
                      said);
        if (rc == 0 && !a->changes)
            ck_assert_msg(rv_str_eq(rv_buf_str(&got), rv_buf_str(&want)), "%s, allocation %zu: %.500s\nnot %.500s",
                          a->path, n, rv_buf_cstr(&got), rv_buf_cstr(&want));
        drift += rv_fault_balance();
        if (!fired) {
            ck_assert_int_eq(rc, a->rc);
            ck_assert_msg(n > 1 || !rv_fault_works(), "%s: %zu allocations only", a->path, n);
            break;
        }
    }
    /* The store prepares statements again; a block that is lost at each failure would be many. Sessions of MCP are
     * freed by another thread. */
    ck_assert_msg(drift < 100 || strcmp(a->path, "mcp") == 0, "%s: %ld blocks", a->path, drift);
    rv_buf_fini(&want);
    rv_buf_fini(&got);
}

/* Some of the requests, in one world: to make one takes longer than to ask. */
START_TEST(every_allocation_may_fail)
{
    begin();
    for (size_t i = (size_t)_i; i < RV_COUNT(requests); i += N_WORLDS)
        each_may_fail(&requests[i]);
    end();
}
END_TEST

/* Each route has a request above. */
START_TEST(every_route_is_asked)
{
    bool *is_asked = calloc(srv_n_routes, sizeof *is_asked);

    ck_assert_ptr_nonnull(is_asked);
    for (size_t i = 0; i < RV_COUNT(requests); i++) {
        rv_str segments[MAX_PARTS], args[SRV_MAX_ARGS];
        size_t n = 0, n_args;
        unsigned allowed;
        for (const char *p = requests[i].path; *p; n++) {
            segments[n] = (rv_str){p, strcspn(p, "/")};
            p += segments[n].len + (p[segments[n].len] == '/');
        }
        const struct srv_route *r = srv_route_find(requests[i].method, segments, n, args, &n_args, &allowed);
        ck_assert_msg(r, "%s is not a route", requests[i].path);
        is_asked[r - srv_routes] = true;
    }
    for (size_t i = 0; i < srv_n_routes; i++)
        ck_assert_msg(is_asked[i], "no request of this test asks %s %s", rv_method_text(srv_routes[i].method),
                      srv_routes[i].path);
    free(is_asked);
}
END_TEST

/* A run that is played by a script never asks the real model because there was no memory for the script. */
START_TEST(a_run_is_never_loaded_without_its_script)
{
    size_t n = 0;
    bool fired = true;

    begin();
    char *script = rv_kit_path(world.pipelines, "hello.script.yaml"), *in_place = rv_kit_path(world.dir, "hello.yaml");
    rv_kit_write(script, "models: {}\n");
    ck_assert_int_eq(rename(script, in_place), 0);
    world.opts.scripts = world.dir;
    struct srv_call *c = calloc(1, sizeof *c);
    ck_assert_ptr_nonnull(c);
    c->server = &world.server;
    c->handles = &world.handles;
    c->store = world.handles.sources.store;
    c->app = world.server.app;
    c->body = rv_kit_json("{'pipeline':'hello','input':'hi'}");
    for (; fired; n += 1) {
        struct rv_app_loaded l = {0};
        json_object *state = NULL;
        rv_fault_arm(n);
        int rc = srv_run_load(c, "hello", &l, &state, NULL);
        fired = rv_fault_disarm();
        ck_assert_msg(rc == 0 || (fired && rc == RV_E_NOMEM), "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rc < 0 || l.script, "allocation %zu: it has no script", n);
        if (rc == 0)
            rv_app_loaded_fini(&l);
        json_object_put(state);
    }
    ck_assert(n > 10 || !rv_fault_works());
    rv_buf_init(&c->out, SRV_MAX_ANSWER);
    srv_call_free(c);
    free(script);
    free(in_place);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_handlers");
    TCase *c = tcase_create("requests");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, every_allocation_may_fail, 0, N_WORLDS);
    tcase_add_test(c, every_route_is_asked);
    tcase_add_test(c, a_run_is_never_loaded_without_its_script);
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
