/* `mcp_servers`: peers that bring tools by the Model Context Protocol, or as operations of a REST server. What a server
 * says of its tools is not believed unless the file says so: these keys are what counts. */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "config/config_internal.h"

#define AT(member)   offsetof(struct rv_mcp_server_config, member)
#define TOOL(member) offsetof(struct rv_mcp_tool_config, member)

static const struct rv_term confirms[] = {
    [RV_MCP_CONFIRM_NEVER] = {"never", "no call is confirmed"},
    [RV_MCP_CONFIRM_DECLARED] = {"declared", "calls of tools that declare themselves destructive"},
    [RV_MCP_CONFIRM_DESTRUCTIVE] = {"destructive", "calls of tools that may destroy: of all that the file does not "
                                                   "call safe, unless the server is trusted"},
    [RV_MCP_CONFIRM_WRITES] = {"writes", "calls of tools that do more than read"},
    [RV_MCP_CONFIRM_ALWAYS] = {"always", "each call"},
};
RV_EACH_HAS_ROW(confirms, RV_N_MCP_CONFIRMS);
static const struct rv_term_list confirm_list = {"mcp_confirm", "confirmation", confirms, RV_COUNT(confirms)};

static const struct rv_term validations[] = {
    [RV_MCP_OUTPUT_STRICT] = {"strict", "an output that does not fit is a failure of the call"},
    [RV_MCP_OUTPUT_WARN] = {"warn", "it is a warning in the log"},
    [RV_MCP_OUTPUT_OFF] = {"off", "outputs are not checked"},
};
RV_EACH_HAS_ROW(validations, RV_N_MCP_OUTPUT_VALIDATIONS);
static const struct rv_term_list validation_list = {"mcp_output_validation", "check of outputs", validations,
                                                    RV_COUNT(validations)};

static const struct rv_term pins[] = {
    [RV_MCP_PINS_FIRST] = {"first", "a tool is approved when it is seen first, and a change needs `reeve mcp approve`"},
    [RV_MCP_PINS_STRICT] = {"strict", "each tool needs `reeve mcp approve` before it is offered"},
};
RV_EACH_HAS_ROW(pins, RV_N_MCP_PINS);
static const struct rv_term_list pin_list = {"mcp_pin", "approval of tools", pins, RV_COUNT(pins)};

static const struct rv_key tool_keys[] = {
    {"read_only", RV_KEY_BOOL, TOOL(read_only), .is_set_offset = TOOL(has_read_only),
     .doc = "The tool changes nothing: it may be repeated, and called beside others."},
    {"destructive", RV_KEY_BOOL, TOOL(destructive), .is_set_offset = TOOL(has_destructive),
     .doc = "The tool may delete or overwrite; false: it only adds."},
    {"idempotent", RV_KEY_BOOL, TOOL(idempotent), .is_set_offset = TOOL(has_idempotent),
     .doc = "Repeating a call with the same arguments changes nothing more."},
    {"confirm", RV_KEY_TERM, TOOL(confirm), .terms = &confirm_list,
     .doc = "Which of its calls a person has to confirm; unset: as for the server."},
    {"timeout_ms", RV_KEY_INT, TOOL(timeout_ms), .min = 1, .max = 86400000,
     .doc = "Limit of one call; unset: the server's."},
};
const struct rv_key_table config_mcp_tool_table = {"mcp_tool", "What holds for one tool of an MCP server", tool_keys,
                                                   RV_COUNT(tool_keys), NULL};

static const char *arena_text(struct rv_loader *l, rv_str text)
{
    char *copy = config_loader_array(l, text.len + 1, 1);

    if (copy && text.len)
        memcpy(copy, text.ptr, text.len);
    return copy ? copy : "";
}

static void read_tools(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_mcp_server_config *s = (struct rv_mcp_server_config *)((char *)target - AT(tools));
    struct rv_loader *l = config_loader_of(r);
    const char *outer = r->path;

    s->tools = config_loader_items(
        r, node, "tools", RV_MAP_OF("a map from tool to its keys", RV_MAX_MCP_TOOLS, sizeof *s->tools), &s->n_tools);
    for (size_t i = 0; i < s->n_tools && l->rc == 0; i++) {
        struct rv_mcp_tool_config *t = &s->tools[i];
        t->name = arena_text(l, node->keys[i]->text);
        t->src = node->keys[i]->src;
        r->path = "tools.";
        rv_keys_read(r, node->items[i], tool_keys, RV_COUNT(tool_keys), t);
        r->path = outer;
    }
}

/* A map of texts, with its indirections put in. */
static void read_texts(struct rv_key_reader *r, const struct rv_node *node, const char *key, json_object **out)
{
    struct rv_indirection how = {0};

    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, key, "a map");
        return;
    }
    for (size_t i = 0; i < node->n; i++)
        if (node->items[i]->kind != RV_NODE_STR) {
            rv_keys_add_wrong_type(r, node->items[i], key, "a map of texts");
            return;
        }
    json_object_put(*out);
    *out = config_resolve_indirections(config_loader_of(r), node, &how);
}

static void read_env(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_texts(r, node, "env", target);
}

static void read_headers(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_texts(r, node, "headers", target);
}

/* One table for the names, so that a misspelled one is an error. */
#define AUTH_NAMES                                                                                                     \
    "client_id, client_secret, private_key, key_id, client_metadata, scope, grant, assertion, id_token, "              \
    "idp_token_endpoint, idp_client_id, idp_client_secret"
static const char *const auth_names[] = {
    "client_id", "client_secret", "private_key",        "key_id",        "client_metadata",  "scope", "grant",
    "assertion", "id_token",      "idp_token_endpoint", "idp_client_id", "idp_client_secret"};

/* What each grant needs, and no other one takes. */
static const struct {
    const char *grant, *needs[3];
} grants[] = {
    {"authorization_code", {NULL}},
    {"client_credentials", {NULL}},
    {"jwt_bearer", {"assertion"}},
    {"token_exchange", {"id_token", "idp_token_endpoint", "idp_client_id"}},
};
#define NEEDS                                                                                                          \
    "jwt_bearer needs assertion; token_exchange needs id_token, idp_token_endpoint and idp_client_id; the other "      \
    "grants "                                                                                                          \
    "take none of them"
#define GRANTS "grants: authorization_code, client_credentials, jwt_bearer, token_exchange"

static void check_grant(struct rv_key_reader *r, const struct rv_node *auth)
{
    const struct rv_node *grant = rv_node_get(auth, "grant");
    bool is_known = !grant;

    for (size_t i = 0; i < RV_COUNT(grants); i++) {
        bool is_this = grant ? rv_str_is(grant->text, grants[i].grant) : i == 0;
        is_known = is_known || is_this;
        for (size_t k = 0; k < RV_COUNT(grants[i].needs) && grants[i].needs[k]; k++) {
            const struct rv_node *value = rv_node_get(auth, grants[i].needs[k]);
            if (is_this && !value)
                rv_keys_add_finding(r, RV_SEVERITY_ERROR, &grant->src, NEEDS, "grant %s needs \"%s\"", grants[i].grant,
                                    grants[i].needs[k]);
            else if (value && !is_this)
                rv_keys_add_finding(r, RV_SEVERITY_ERROR, &value->src, NEEDS, "\"%s\" belongs to grant %s",
                                    grants[i].needs[k], grants[i].grant);
        }
    }
    if (!is_known)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &grant->src, GRANTS, "unknown grant");
}

/* A client shows who it is in one way. */
static void check_client(struct rv_key_reader *r, const struct rv_node *auth)
{
    const struct rv_node *key = rv_node_get(auth, "private_key"), *id = rv_node_get(auth, "key_id");

    if (id && !key)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &id->src, "write private_key: ${file:client.pem}",
                            "\"key_id\" names a private_key, which is not there");
    if (key && rv_node_get(auth, "client_secret"))
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &key->src,
                            "keep the one that is registered with the authorization server",
                            "\"private_key\" and \"client_secret\" exclude each other");
    else if (key && !rv_node_get(auth, "client_id") && !rv_node_get(auth, "client_metadata"))
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &key->src,
                            "write client_id, as the authorization server knows the public key",
                            "\"private_key\" needs the client_id, or client_metadata, that it belongs to");
}

static void read_auth(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_texts(r, node, "auth", target);
    if (node->kind != RV_NODE_MAP)
        return;
    for (size_t i = 0; i < node->n; i++) {
        size_t k = 0;
        while (k < RV_COUNT(auth_names) && !rv_str_is(node->keys[i]->text, auth_names[k]))
            k++;
        if (k == RV_COUNT(auth_names))
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->keys[i]->src, "keys: " AUTH_NAMES,
                                "unknown key \"%.*s\" of auth", RV_STR_ARG(node->keys[i]->text));
    }
    check_grant(r, node);
    check_client(r, node);
}

static const struct rv_key server_keys[] = {
    {"command", RV_KEY_STR_LIST, AT(command),
     .doc = "Program and arguments of a server that speaks on its standard input and output; instead of url."},
    {"url", RV_KEY_STR, AT(url), .is_set_offset = AT(has_url),
     .doc = "Address of a server over HTTP; beside openapi the address at which the operations begin."},
    {"openapi", RV_KEY_STR, AT(openapi), .is_set_offset = AT(has_openapi),
     .doc = "OpenAPI document (3.0 or 3.1; JSON or YAML) of a REST server, whose operations become tools: a path "
            "relative to the pipeline's folder, or an address; instead of command. url says where the server is; it "
            "may be left out when the document has an address and names a server at it."},
    {"env", RV_KEY_CUSTOM, AT(env), .read = read_env, .schema = "{\"type\":\"object\"}",
     .doc = "Variables of its environment, which otherwise has only PATH, HOME, LANG and the like; ${env:NAME} and "
            "${file:path} are put in."},
    {"cwd", RV_KEY_STR, AT(cwd),
     .doc = "Folder in which it is started, relative to the pipeline's; unset: the "
            "pipeline's."},
    {"headers", RV_KEY_CUSTOM, AT(headers), .read = read_headers, .schema = "{\"type\":\"object\"}",
     .doc = "HTTP headers of each request; ${env:NAME} and ${file:path} are put in."},
    {"auth", RV_KEY_CUSTOM, AT(auth), .read = read_auth,
     .schema =
         "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"client_id\":{\"type\":\"string\"},"
         "\"client_secret\":{},\"private_key\":{},\"key_id\":{\"type\":\"string\"},"
         "\"client_metadata\":{\"type\":\"string\"},\"scope\":{\"type\":\"string\"},\"assertion\":{},\"id_token\":{},"
         "\"idp_token_endpoint\":{\"type\":\"string\"},\"idp_client_id\":{\"type\":\"string\"},\"idp_client_secret\":{}"
         ","
         "\"grant\":{\"enum\":[\"authorization_code\",\"client_credentials\",\"jwt_bearer\",\"token_exchange\"]}}}",
     .doc =
         "Tokens for a server over HTTP: client_id and client_secret that are registered with its authorization "
         "server, or instead of the secret a private_key (PEM, on P-256 or of RSA) with its key_id; client_metadata "
         "(address of a client metadata document); scope; grant: authorization_code, which `reeve mcp login` begins, "
         "client_credentials, jwt_bearer with an assertion (a JWT that another one signed), or token_exchange with "
         "the id_token of a person, for which idp_token_endpoint, as idp_client_id and with idp_client_secret, makes "
         "an assertion. Unset: a login registers reeve by itself."},
    {"trusted", RV_KEY_BOOL, AT(trusted), .default_text = "false",
     .doc = "What the server says of its tools is believed: that they only read, or may be repeated."},
    {"own", RV_KEY_BOOL, AT(own), .default_text = "false",
     .doc = "The server is the author's: its requests have headers that name the run, its trace, the session, the "
            "user and the agent. No other server gets them."},
    {"pin", RV_KEY_TERM, AT(pin), .terms = &pin_list, .default_text = "\"first\"",
     .doc = "Which of its tools a person has to approve before they are offered."},
    {"required", RV_KEY_BOOL, AT(required), .default_text = "false",
     .doc = "A run does not begin when the server cannot be reached; else it begins with a warning."},
    {"timeout_ms", RV_KEY_INT, AT(timeout_ms), .min = 1, .max = 86400000, .default_text = "30000",
     .doc = "Limit of one call, and of the handshake."},
    {"allow", RV_KEY_STR_LIST, AT(allow), .doc = "Tools that are taken, all others are left out; unset: all."},
    {"deny", RV_KEY_STR_LIST, AT(deny), .doc = "Tools that are left out."},
    {"resources", RV_KEY_BOOL, AT(resources), .default_text = "false",
     .doc = "Resources of the server become tools: list_resources, list_resource_templates, read_resource."},
    {"prompts", RV_KEY_BOOL, AT(prompts), .default_text = "false",
     .doc = "Prompts of the server become tools: list_prompts, get_prompt."},
    {"elicitation", RV_KEY_BOOL, AT(elicitation), .default_text = "false",
     .doc =
         "Its tools may ask a person for the values of a form in the middle of a call: the run waits for the answer, "
         "and makes the call again with it. A server of a revision before 2026-07-28 may do so in calls that may be "
         "repeated."},
    {"sampling", RV_KEY_STR, AT(sampling),
     .doc =
         "Model that answers when one of its tools asks for a completion (provider:model): the completion counts for "
         "max_llm_calls and the budget of the run; unset: tools may not ask."},
    {"max_samplings", RV_KEY_INT, AT(max_samplings), .min = 1, .max = 64, .default_text = "4",
     .doc = "Completions that one call of a tool may ask for."},
    {"roots", RV_KEY_STR_LIST, AT(roots),
     .doc = "Folders that the server is told of when it asks for roots, relative to the pipeline's; unset: it may not "
            "ask. Nothing keeps it inside them."},
    {"confirm", RV_KEY_TERM, AT(confirm), .terms = &confirm_list, .default_text = "\"declared\"",
     .doc = "Which calls a person has to confirm."},
    {"output_validation", RV_KEY_TERM, AT(output_validation), .terms = &validation_list, .default_text = "\"strict\"",
     .doc = "What follows when an output does not fit the tool's output schema."},
    {"catalog", RV_KEY_STR, AT(catalog),
     .doc = "File with the list of its tools, relative to the pipeline's folder, which `reeve mcp tools --write` "
            "writes: `lint` and `test` know the tools by it."},
    {"tools", RV_KEY_CUSTOM, AT(tools), .read = read_tools,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/$defs/mcp_tool\"}}",
     .doc = "What holds for single tools, by their names at the server."},
};
const struct rv_key_table config_mcp_server_table = {
    "mcp_server", "An MCP server", server_keys, RV_COUNT(server_keys),
    "\"oneOf\":[{\"required\":[\"command\"]},{\"required\":[\"openapi\"]},{\"required\":[\"url\"],"
    "\"not\":{\"required\":[\"openapi\"]}}]"};

static bool is_server_name(rv_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!rv_is_letter(name.ptr[i]) && !rv_is_digit(name.ptr[i]) && name.ptr[i] != '_' && name.ptr[i] != '-')
            return false;
    return name.len >= 1 && name.len <= RV_MAX_MCP_SERVER_NAME;
}

static void resolve_paths(struct rv_loader *l, struct rv_mcp_server_config *s)
{
    s->cwd = s->cwd && s->cwd[0] ? config_loader_path(l, rv_str_of(s->cwd)) : l->p->dir;
    if (s->catalog && s->catalog[0])
        s->catalog = config_loader_path(l, rv_str_of(s->catalog));
    if (s->has_openapi && s->openapi[0] && strncmp(s->openapi, "http://", 7) != 0 &&
        strncmp(s->openapi, "https://", 8) != 0)
        s->openapi = config_loader_path(l, rv_str_of(s->openapi));
    if (!s->cwd || !s->catalog || !s->openapi)
        s->cwd = s->catalog = s->openapi = ""; /* out of memory, recorded */
    for (size_t i = 0; i < s->roots.n; i++) {
        const char *path = config_loader_path(l, rv_str_of(s->roots.items[i]));
        if (path)
            s->roots.items[i] = path;
    }
}

static void check_roots(struct rv_key_reader *r, const struct rv_mcp_server_config *s)
{
    if (s->roots.n > RV_MAX_MCP_ROOTS)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &s->src, NULL, "more than %d roots", RV_MAX_MCP_ROOTS);
    for (size_t i = 0; i < s->roots.n; i++)
        if (!s->roots.items[i][0])
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &s->roots.srcs[i], "\".\" is the pipeline's folder",
                                "a root must be a folder");
}

/* The model is asked by a run of its own, which does not have the roles of this pipeline. */
static void check_sampling(struct rv_key_reader *r, const struct rv_node *node, const struct rv_mcp_server_config *s)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-";
    const struct rv_node *value = rv_node_get(node, "sampling");
    const char *colon = strchr(s->sampling, ':');

    if (value && (!colon || colon == s->sampling || !colon[1] || s->sampling[strspn(s->sampling, allowed)]))
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &value->src, "write provider:model, such as openai:gpt-4.1-mini",
                            "\"sampling\" must name a provider and a model, not a role");
}

/* Exactly one way leads to a server. */
static void check_way(struct rv_key_reader *r, const struct rv_node *node, const struct rv_mcp_server_config *s)
{
    if (s->has_openapi && s->command.is_set)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "\"command\" and \"openapi\" exclude each other");
    else if (s->has_openapi && !s->openapi[0])
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "\"openapi\" must be a path or an address");
    else if (!s->has_openapi && s->has_url == s->command.is_set)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL,
                            s->has_url ? "\"command\" and \"url\" exclude each other"
                                       : "\"command\", \"url\" or \"openapi\" is required");
    else if (s->command.is_set && (s->command.n == 0 || !s->command.items[0][0]))
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "\"command\" must begin with a program");
}

/* Keys that mean something to MCP servers only. */
static void check_rest(struct rv_key_reader *r, const struct rv_node *node, const struct rv_mcp_server_config *s)
{
    static const char *const others[] = {"env",     "cwd",         "auth",     "trusted",       "resources",
                                         "prompts", "elicitation", "sampling", "max_samplings", "roots"};

    for (size_t i = 0; s->has_openapi && i < RV_COUNT(others); i++) {
        const struct rv_node *value = rv_node_get(node, others[i]);
        if (value)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &value->src, NULL,
                                "\"%s\" has no meaning for a REST server, which openapi makes of this one", others[i]);
    }
    const struct rv_node *headers = s->has_openapi ? rv_node_get(node, "headers") : NULL;
    for (size_t i = 0; headers && headers->kind == RV_NODE_MAP && i < headers->n; i++)
        if (strcasecmp(headers->keys[i]->text.ptr, "Idempotency-Key") == 0)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &headers->keys[i]->src, "remove it",
                                "reeve sends a key of its own as Idempotency-Key with each call");
}

static const struct rv_key_word *words_of(const struct rv_key *keys)
{
    return keys == server_keys ? config_server_words : NULL;
}

static void read_server(struct rv_loader *l, const struct rv_node *key, const struct rv_node *node,
                        struct rv_mcp_server_config *s)
{
    struct rv_key_reader r = {.arena = l->arena,
                              .findings = l->findings,
                              .owner_kind = "MCP server",
                              .owner_name = key->text.ptr,
                              .user = l,
                              .words = words_of,
                              .page = "pipelines",
                              .hide_values = true};

    s->name = arena_text(l, key->text);
    s->src = key->src;
    s->catalog = s->cwd = s->url = s->openapi = s->sampling = "";
    if (!is_server_name(key->text))
        rv_keys_add_finding(&r, RV_SEVERITY_ERROR, &key->src, "use letters, digits, - and _, at most 64",
                            "the name of an MCP server stands before the names of its tools");
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_finding(&r, RV_SEVERITY_ERROR, &node->src, NULL, "an MCP server must be a map, not %s",
                            rv_node_kind_text(node->kind));
        return;
    }
    rv_keys_read(&r, node, server_keys, RV_COUNT(server_keys), s);
    check_way(&r, node, s);
    check_rest(&r, node, s);
    check_roots(&r, s);
    check_sampling(&r, node, s);
    resolve_paths(l, s);
    if (r.rc < 0)
        l->rc = r.rc;
}

void config_read_mcp_servers(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    size_t n;

    (void)target;
    l->p->mcp_servers =
        config_loader_items(r, node, "mcp_servers",
                            RV_MAP_OF("a map from name to server", RV_MAX_MCP_SERVERS, sizeof *l->p->mcp_servers), &n);
    l->p->internal->mcp_servers = config_loader_array(l, n, sizeof *l->p->internal->mcp_servers);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        l->p->internal->mcp_servers[i] = node->items[i];
        l->p->n_mcp_servers = i + 1;
        read_server(l, node->keys[i], node->items[i], &l->p->mcp_servers[i]);
    }
}

int rv_pipeline_write_mcp_servers(const struct rv_pipeline *p, rv_jw *w, rv_err **err)
{
    int rc = 0;

    rv_jw_obj(w);
    for (size_t i = 0; i < p->n_mcp_servers && rc == 0; i++) {
        json_object *keys = NULL;
        rc = rv_node_build_json(p->internal->mcp_servers[i], &keys, err);
        if (rc == 0)
            rv_jw_kv_value(w, p->mcp_servers[i].name, keys);
        json_object_put(keys);
    }
    rv_jw_obj_end(w);
    return rc;
}

const struct rv_mcp_server_config *rv_pipeline_find_mcp_server(const struct rv_pipeline *p, const char *name)
{
    for (size_t i = 0; i < p->n_mcp_servers; i++)
        if (strcmp(p->mcp_servers[i].name, name) == 0)
            return &p->mcp_servers[i];
    return NULL;
}
