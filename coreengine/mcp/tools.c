/* One tool of a server: its definition, checked, as reeve's; what its calls send, and what their results become. */
#include "coreengine/mcp/mcp.h"
#include "coreengine/mcp/tools_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

#define MAX_WHY     ((size_t)300) /* bytes of a reason: three or four lines of a terminal ... */
#define MAX_REFUSED ((size_t)900) /* ... and of one that names the place in a document: three times as many */
#define NOMEM(err)  RV_FAIL((err), RV_E_NOMEM, "no memory for the tools of an MCP server")

/* --- definitions --- */

static const struct rv_mcp_tool_config *own_words(const struct rv_mcp_server_config *s, const char *name)
{
    for (size_t i = 0; i < s->n_tools; i++)
        if (strcmp(s->tools[i].name, name) == 0)
            return &s->tools[i];
    return NULL;
}

static int describe(struct rv_mcp_tool *t, rv_err **err)
{
    const char *text = "";

    if (!rv_json_get_text(t->definition, "description", &text) || strlen(text) <= RV_MCP_MAX_DESCRIPTION) {
        t->info.description = text;
        return 0;
    }
    t->description = rv_str_dup(rv_utf8_cut(rv_str_of(text), RV_MCP_MAX_DESCRIPTION));
    t->info.description = t->description;
    return t->description ? 0 : NOMEM(err);
}

/* Hints of operations follow from their HTTP methods (coreengine/openapi), not from what a server says. */
static bool is_believed(const struct rv_mcp_server_config *s)
{
    return s->trusted || s->has_openapi;
}

/* Risk and effect follow from the hints that hold, never from the risk alone. */
static int judge(struct rv_mcp_tool *t, rv_err **err)
{
    const struct rv_mcp_tool_config *own = own_words(t->server, t->name);
    enum rv_mcp_confirm policy =
        own && own->confirm != RV_UNSET ? (enum rv_mcp_confirm)own->confirm : t->server->confirm;

    t->hints = t->kind == RV_MCP_CALL_TOOL
                   ? rv_mcp_hints_of(rv_json_get_obj(t->definition, "annotations"), is_believed(t->server), own)
                   : (struct rv_mcp_hints){.read_only = true, .open_world = true}; /* by the protocol they only read */
    t->info.category = RV_UNSET;
    bool confirms = rv_mcp_must_confirm(policy, &t->hints);
    /* the engine asks before it calls what is destructive, and the policy has decided whether it asks */
    t->info.risk = t->hints.read_only                 ? RV_RISK_READ_ONLY
                   : t->hints.destructive && confirms ? RV_RISK_DESTRUCTIVE
                                                      : RV_RISK_WRITE;
    t->info.effect = t->hints.read_only    ? RV_EFFECT_SAFE
                     : t->hints.idempotent ? RV_EFFECT_IDEMPOTENT
                                           : RV_EFFECT_NON_IDEMPOTENT;
    t->info.may_ask = t->server->elicitation || rv_mcp_samples(t->server);
    t->info.timeout_ms = own && own->timeout_ms > 0 ? own->timeout_ms : t->server->timeout_ms;
    if (!confirms)
        return 0;
    t->confirm = json_object_new_boolean(true);
    t->info.confirm = t->confirm;
    return t->confirm ? 0 : NOMEM(err);
}

/* 0 with *why set: the definition is not usable. */
static int compile(json_object *schema, const char *what, rv_schema **out, rv_buf *why, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_schema_compile(schema, what, out, &cause);

    if (rc == RV_E_NOMEM || rv_err_is(cause, RV_E_NOMEM)) {
        rv_err_free(cause);
        return NOMEM(err);
    }
    if (rc < 0)
        rv_buf_add_str(why, rv_utf8_cut(rv_str_of(rv_err_text(cause)), MAX_WHY));
    rv_err_free(cause);
    return 0;
}

/* The core checks data, which are objects, and knows no warnings: any other output is checked here only. */
static bool is_promise_of_core(const struct rv_mcp_tool *t, json_object *schema)
{
    const char *type = NULL;

    return t->output && t->server->output_validation == RV_MCP_OUTPUT_STRICT &&
           rv_json_get_text(schema, "type", &type) && strcmp(type, "object") == 0;
}

static int read_schemas(struct rv_mcp_tool *t, rv_buf *why, rv_err **err)
{
    json_object *input = NULL, *output = NULL;
    const char *type = NULL;

    json_object_object_get_ex(t->definition, "inputSchema", &input);
    json_object_object_get_ex(t->definition, "outputSchema", &output);
    if (!rv_json_get_text(input, "type", &type) || strcmp(type, "object") != 0) {
        rv_buf_puts(why, "its inputSchema is not that of an object");
        return 0;
    }
    int rc = compile(input, t->qualified, &t->input, why, err);
    if (rc == 0 && why->len == 0 && output && t->server->output_validation != RV_MCP_OUTPUT_OFF)
        rc = compile(output, t->qualified, &t->output, why, err);
    t->info.input = t->input;
    t->info.input_json = input;
    if (is_promise_of_core(t, output)) {
        t->info.output = t->output;
        t->info.output_json = output;
    }
    return rc;
}

/* A header's name is a token of HTTP. */
static bool is_token(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!rv_is_letter(s.ptr[i]) && !rv_is_digit(s.ptr[i]) && !(s.ptr[i] && strchr("!#$%&'*+-.^_`|~", s.ptr[i])))
            return false;
    return s.len >= 1 && s.len <= 64;
}

/* Names of headers differ by more than their case. */
static bool is_named(const struct rv_mcp_tool *t, rv_str name)
{
    for (size_t i = 0; i < t->n_headers; i++)
        if (rv_mcp_is_same_word(rv_str_of(t->headers[i].name), name))
            return true;
    return false;
}

/* Arguments at the top that are headers, too; anywhere else the annotation is not legal. */
static void read_headers(struct rv_mcp_tool *t, rv_buf *why)
{
    json_object *properties = rv_json_get_obj(t->info.input_json, "properties");

    if (!properties)
        return;
    json_object_object_foreach (properties, key, schema) {
        json_object *value = NULL;
        const char *type = "";
        if (!json_object_is_type(schema, json_type_object) ||
            !json_object_object_get_ex(schema, "x-mcp-header", &value))
            continue;
        bool is_plain = rv_json_get_text(schema, "type", &type) &&
                        (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 || strcmp(type, "boolean") == 0);
        if (!is_plain || !is_token(rv_json_str(value)) || is_named(t, rv_json_str(value)) ||
            t->n_headers == RV_MCP_MAX_HEADERS) {
            rv_buf_puts(why, "the x-mcp-header of an argument is not legal");
            return;
        }
        t->headers[t->n_headers++] = (struct rv_mcp_header){key, json_object_get_string(value)};
    }
}

int mcp_tool_init(struct rv_mcp_tool *t, const struct rv_mcp_server_config *server, json_object *definition,
                  enum rv_mcp_tool_kind kind, rv_buf *why, rv_err **err)
{
    json_object *name = NULL;

    *t = (struct rv_mcp_tool){.server = server, .kind = kind, .definition = json_object_get(definition)};
    json_object_object_get_ex(definition, "name", &name);
    t->name = json_object_get_string(name); /* the caller has checked it */
    rv_buf qualified = RV_BUF_INIT(RV_MCP_MAX_TOOL_NAME + RV_MAX_MCP_SERVER_NAME + 2);
    rv_buf_printf(&qualified, "%s.%s", server->name, t->name);
    t->qualified = qualified.rc == 0 ? rv_buf_steal(&qualified, NULL) : NULL;
    rv_buf_fini(&qualified);
    if (!t->qualified)
        return NOMEM(err);
    t->info.name = t->qualified;
    const char *refused = NULL;
    if (server->has_openapi && rv_json_get_text(definition, RV_MCP_REFUSED, &refused)) {
        rv_buf_add_str(why, rv_utf8_cut(rv_str_of(refused), MAX_REFUSED));
        return 0;
    }
    int rc = describe(t, err);
    if (rc == 0)
        rc = read_schemas(t, why, err);
    if (rc == 0 && why->len == 0)
        read_headers(t, why);
    return rc == 0 ? judge(t, err) : rc;
}

void mcp_tool_fini(struct rv_mcp_tool *t)
{
    rv_schema_free(t->input);
    rv_schema_free(t->output);
    json_object_put(t->confirm);
    json_object_put(t->definition);
    free(t->description);
    free(t->qualified);
    *t = (struct rv_mcp_tool){0};
}

/* --- calls --- */

static int add_key(json_object *params, const char *key, rv_err **err)
{
    struct rv_json_build b = {.err = err};

    if (!key || !key[0])
        return 0;
    json_object *meta = rv_json_build(&b, params, "_meta", json_object_new_object());
    rv_json_build_text(&b, meta, RV_MCP_KEY_META, key);
    return b.rc;
}

/* Of a tool of a REST server: the request is made of what was listed, and approved. */
static int add_operation(const struct rv_mcp_tool *t, json_object *params, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *operation = NULL;

    if (!t->server->has_openapi || !json_object_object_get_ex(t->definition, RV_MCP_OPERATION, &operation))
        return 0;
    json_object *to = rv_json_get_obj(params, "_meta");
    if (!to)
        to = rv_json_build(&b, params, "_meta", json_object_new_object());
    return b.rc < 0 ? b.rc : rv_json_set_ref(to, RV_MCP_OPERATION, operation, err);
}

static int add_headers(const struct rv_mcp_tool *t, json_object *args, json_object **out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < t->n_headers && rc == 0; i++) {
        json_object *value = NULL;
        if (!json_object_object_get_ex(args, t->headers[i].property, &value) || !value)
            continue;
        if (!*out && !(*out = json_object_new_object()))
            return NOMEM(err);
        rv_buf name = RV_BUF_INIT(100);
        rv_buf_printf(&name, "Mcp-Param-%s", t->headers[i].name);
        rc = rv_buf_check(&name, "header of a call", err);
        rv_str text = rv_json_str(value);
        rv_buf other = RV_BUF_INIT(64);
        if (!json_object_is_type(value, json_type_string)) {
            rv_json_write(value, &other);
            text = rv_buf_str(&other);
            rc = rc == 0 ? rv_buf_check(&other, "header of a call", err) : rc;
        }
        if (rc == 0)
            rc = rv_json_set_str(*out, rv_buf_cstr(&name), text, err);
        rv_buf_fini(&name);
        rv_buf_fini(&other);
    }
    return rc;
}

static int call_params(const struct rv_mcp_tool *t, json_object *args, const char *key, json_object *params,
                       rv_err **err)
{
    json_object *arguments = NULL;
    int rc = 0;

    switch (t->kind) {
    case RV_MCP_CALL_TOOL:
        rc = rv_json_set_text(params, "name", t->name, err);
        if (rc == 0)
            rc = rv_json_set_ref(params, "arguments", args, err);
        if (rc == 0)
            rc = add_key(params, key, err);
        return rc == 0 ? add_operation(t, params, err) : rc;
    case RV_MCP_LIST_RESOURCES:
    case RV_MCP_LIST_TEMPLATES:
    case RV_MCP_LIST_PROMPTS:
        return 0;
    case RV_MCP_READ_RESOURCE:
        json_object_object_get_ex(args, "uri", &arguments);
        return rv_json_set_ref(params, "uri", arguments, err);
    case RV_MCP_GET_PROMPT:
        json_object_object_get_ex(args, "name", &arguments);
        rc = rv_json_set_ref(params, "name", arguments, err);
        if (rc == 0 && json_object_object_get_ex(args, "arguments", &arguments))
            rc = rv_json_set_ref(params, "arguments", arguments, err);
        return rc;
    case RV_N_MCP_TOOL_KINDS:
        break;
    }
    return rc;
}

int rv_mcp_tool_build_request(const struct rv_mcp_tool *t, json_object *args, const char *key,
                              struct rv_mcp_request *out, rv_err **err)
{
    static const char *const methods[] = {[RV_MCP_CALL_TOOL] = "tools/call",
                                          [RV_MCP_LIST_RESOURCES] = "resources/list",
                                          [RV_MCP_LIST_TEMPLATES] = "resources/templates/list",
                                          [RV_MCP_READ_RESOURCE] = "resources/read",
                                          [RV_MCP_LIST_PROMPTS] = "prompts/list",
                                          [RV_MCP_GET_PROMPT] = "prompts/get"};
    RV_EACH_HAS_ROW(methods, RV_N_MCP_TOOL_KINDS);
    static const char *const lists[] = {[RV_MCP_CALL_TOOL] = NULL,
                                        [RV_MCP_READ_RESOURCE] = NULL,
                                        [RV_MCP_LIST_RESOURCES] = "resources",
                                        [RV_MCP_LIST_TEMPLATES] = "resourceTemplates",
                                        [RV_MCP_LIST_PROMPTS] = "prompts",
                                        [RV_MCP_GET_PROMPT] = NULL};
    RV_EACH_HAS_ROW(lists, RV_N_MCP_TOOL_KINDS);
    struct rv_mcp_request r = {.method = methods[t->kind], .list = lists[t->kind]};

    if (!json_object_is_type(args, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "arguments of tool \"%s\" are not an object", t->qualified);
    r.params = json_object_new_object();
    const char *tasks = "";
    r.needs_task = t->kind == RV_MCP_CALL_TOOL &&
                   rv_json_get_text(rv_json_get_obj(t->definition, "execution"), "taskSupport", &tasks) &&
                   strcmp(tasks, "required") == 0;
    int rc = r.params ? call_params(t, args, key, r.params, err) : NOMEM(err);
    if (rc == 0)
        rc = add_headers(t, args, &r.headers, err);
    if (rc < 0)
        rv_mcp_request_fini(&r);
    else
        *out = r;
    return rc;
}

void rv_mcp_request_fini(struct rv_mcp_request *r)
{
    json_object_put(r->params);
    json_object_put(r->headers);
    *r = (struct rv_mcp_request){0};
}
