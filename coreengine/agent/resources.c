/* Tools of a document that have a `uri`: the model calls them by their names, with the words in braces of the URI as
 * arguments, and the call that is made is one of read_resource. {user_id} and {session_id} are those of the
 * conversation; a model neither sees nor sets them. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/agent/tools_internal.h"

#define MAX_URI ((size_t)64 << 10) /* with all that takes the place of words: eight times RV_LLM_MAX_URL */

struct resource {
    const struct rv_agentdoc_tool *tool; /* borrowed from the document */
    struct rv_tool_info info;            /* that of read_resource, with its own name, description and input */
    char *description;                   /* owned; NULL: the document has one */
};

/* The next word in braces, and what stands before it; at the end the word is empty. */
struct piece {
    rv_str before, word;
};

static bool is_word(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(s.ptr[i] == '_' || (s.ptr[i] >= 'a' && s.ptr[i] <= 'z') || (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') ||
              (i > 0 && s.ptr[i] >= '0' && s.ptr[i] <= '9')))
            return false;
    return s.len > 0;
}

static struct piece next_piece(const char **at)
{
    const char *begin = *at, *open = begin;

    while ((open = strchr(open, '{'))) {
        const char *end = strchr(open, '}');
        rv_str word = {open + 1, end ? (size_t)(end - open - 1) : 0};
        if (is_word(word)) {
            *at = end + 1;
            return (struct piece){{begin, (size_t)(open - begin)}, word};
        }
        open++;
    }
    *at = begin + strlen(begin);
    return (struct piece){rv_str_of(begin), {NULL, 0}};
}

static bool is_of_context(rv_str word)
{
    return rv_str_is(word, "user_id") || rv_str_is(word, "session_id");
}

/* NULL: it is not known. */
static const char *from_context(const rv_visit *v, rv_str word)
{
    const struct rv_conversation *c = v->shared->conversation;
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);
    const char *text;

    if (rv_str_is(word, "user_id"))
        text = c ? c->context.user_id : f->user_id;
    else
        text = c ? c->context.session_id : f->session_id;
    return text && *text ? text : NULL;
}

/* --- opening and closing --- */

static int add_word(json_object *properties, json_object *required, rv_str word, rv_err **err)
{
    char name[RV_AGENTDOC_MAX_WORD + 1];

    if (word.len >= sizeof name) /* a resource that a session brought */
        return RV_FAIL(err, RV_E_LIMIT, "a word in braces of a uri has more than %zu bytes", sizeof name - 1);
    memcpy(name, word.ptr, word.len);
    name[word.len] = '\0';
    if (json_object_object_get_ex(properties, name, NULL))
        return 0;
    json_object *type = json_object_new_object();
    int rc = rv_json_set_take(properties, name, type, err);
    if (rc == 0)
        rc = rv_json_set_text(type, "type", "string", err);
    return rc == 0 ? rv_json_push_take(required, json_object_new_string(name), err) : rc;
}

static int fill_input(const char *uri, json_object *schema, rv_err **err)
{
    json_object *properties = json_object_new_object(), *required = json_object_new_array();
    int rc = rv_json_set_text(schema, "type", "object", err);

    if (rc < 0) {
        json_object_put(properties);
        json_object_put(required);
        return rc;
    }
    rc = rv_json_set_take(schema, "properties", properties, err);
    if (rc < 0)
        json_object_put(required);
    else
        rc = rv_json_set_take(schema, "required", required, err);
    if (rc == 0)
        rc = rv_json_set_take(schema, "additionalProperties", json_object_new_boolean(0), err);
    for (const char *at = uri; rc == 0 && *at;) {
        struct piece p = next_piece(&at);
        if (p.word.len > 0 && !is_of_context(p.word))
            rc = add_word(properties, required, p.word, err);
    }
    return rc;
}

static int describe(struct resource *r, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_URI);

    if (r->tool->description && *r->tool->description) {
        r->info.description = r->tool->description;
        return 0;
    }
    rv_buf_printf(&text, "Read resource: %s", r->tool->uri);
    int rc = rv_buf_check(&text, "description of a tool", err);
    if (rc == 0) {
        r->info.description = r->description = rv_buf_steal(&text, NULL);
        if (!r->description)
            rc = RV_FAIL(err, RV_E_NOMEM, "describe a tool");
    }
    rv_buf_fini(&text);
    return rc;
}

static int open_one(struct resource *r, const struct rv_agentdoc_tool *tool, const struct rv_tool_info *reader,
                    rv_err **err)
{
    rv_schema *input = NULL;

    r->tool = tool;
    r->info = *reader;
    r->info.name = tool->name;
    r->info.description = NULL;
    r->info.input = NULL;
    r->info.input_json = json_object_new_object();
    if (!r->info.input_json)
        return RV_FAIL(err, RV_E_NOMEM, "describe a tool");
    int rc = fill_input(tool->uri, r->info.input_json, err);
    if (rc == 0)
        rc = rv_schema_compile(r->info.input_json, tool->name, &input, err);
    r->info.input = input;
    return rc == 0 ? describe(r, err) : rc;
}

void agent_resources_fini(rv_visit *v)
{
    for (size_t i = 0; i < v->n_resources; i++) {
        rv_schema_free((rv_schema *)v->resources[i].info.input);
        json_object_put(v->resources[i].info.input_json);
        free(v->resources[i].description);
    }
    free(v->resources);
    v->resources = NULL;
    v->n_resources = 0;
}

int agent_resources_open(rv_visit *v, rv_err **err)
{
    const struct rv_agentdoc *doc = v->agent->declared.doc;
    const struct rv_catalog *c = &v->shared->catalog;
    const struct rv_tool_info *reader = NULL;
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; doc && i < doc->n_tools; i++)
        n += rv_agentdoc_find_resource(doc, doc->tools[i].name) == &doc->tools[i];
    if (n == 0 || !(reader = c->tool(c->self, rv_str_of(RV_TOOL_READ_RESOURCE))))
        return 0;
    v->resources = calloc(n, sizeof *v->resources);
    if (!v->resources)
        return RV_FAIL(err, RV_E_NOMEM, "describe the tools of agent \"%s\"", v->agent->name);
    for (size_t i = 0; i < doc->n_tools && rc == 0; i++)
        if (rv_agentdoc_find_resource(doc, doc->tools[i].name) == &doc->tools[i])
            rc = open_one(&v->resources[v->n_resources++], &doc->tools[i], reader, err);
    return rc;
}

/* --- calls --- */

static const struct resource *find(const rv_visit *v, rv_str name)
{
    for (size_t i = 0; i < v->n_resources; i++)
        if (rv_str_is(name, v->resources[i].tool->name))
            return &v->resources[i];
    return NULL;
}

const struct rv_tool_info *agent_resource_tool(const rv_visit *v, rv_str name)
{
    const struct resource *r = find(v, name);

    return r ? &r->info : NULL;
}

bool agent_resource_lacks(const rv_visit *v, rv_str name, rv_str *word)
{
    const struct resource *r = find(v, name);

    for (const char *at = r ? r->tool->uri : ""; *at;) {
        *word = next_piece(&at).word;
        if (word->len > 0 && is_of_context(*word) && !from_context(v, *word))
            return true;
    }
    return false;
}

static void put_argument(json_object *arguments, rv_str word, rv_buf *out)
{
    if (!arguments)
        return;
    json_object_object_foreach (arguments, key, value)
        if (rv_str_is(word, key))
            rv_buf_add_str(out, rv_json_str(value));
}

bool agent_resource_request(const rv_visit *v, rv_str name, json_object *arguments, rv_buf *out)
{
    const struct resource *r = find(v, name);
    rv_buf uri = RV_BUF_INIT(MAX_URI);
    rv_jw w = rv_jw_on(out);

    if (!r)
        return false;
    for (const char *at = r->tool->uri; *at;) {
        struct piece p = next_piece(&at);
        rv_buf_add_str(&uri, p.before);
        if (p.word.len > 0 && is_of_context(p.word))
            rv_buf_puts(&uri, from_context(v, p.word));
        else if (p.word.len > 0)
            put_argument(arguments, p.word, &uri);
    }
    rv_jw_obj(&w);
    rv_jw_kv_str(&w, "uri", rv_buf_str(&uri));
    rv_jw_obj_end(&w);
    if (uri.rc < 0)
        out->rc = uri.rc;
    rv_buf_fini(&uri);
    return true;
}
