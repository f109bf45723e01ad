/* Checks of a loaded pipeline that need schemas: output_schema of an agent has to be one, and an output has to fit the
 * tool that is to get it. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/tools/schema_internal.h"
#include "coreengine/tools/tools_internal.h"

#define MAX_POINTER ((size_t)64 << 10) /* bytes: names of members, some dozens deep; a longer one tells no place */

/* The agent or test whose schema it is, and where that stands. Borrowed. */
struct schema_place {
    const char *kind, *name, *what;
    const struct rv_node *written; /* NULL: no file has it */
    const struct rv_src *src;
};

/* Does the segment of a JSON pointer name the key? */
static bool is_named(rv_str segment, rv_str key)
{
    size_t n = 0;

    for (size_t i = 0; i < segment.len; i++, n++) {
        char c = segment.ptr[i];
        if (c == '~' && i + 1 < segment.len)
            c = segment.ptr[++i] == '1' ? '/' : '~';
        if (n == key.len || key.ptr[n] != c)
            return false;
    }
    return n == key.len;
}

/* What the segment leads to: the value, and in a map its key. */
static const struct rv_node *child_of(const struct rv_node *node, rv_str segment, const struct rv_node **key)
{
    char number[24];

    *key = NULL;
    for (size_t i = 0; (node->kind == RV_NODE_MAP || node->kind == RV_NODE_LIST) && i < node->n; i++) {
        snprintf(number, sizeof number, "%zu", i);
        if (node->kind == RV_NODE_MAP)
            *key = node->keys[i];
        if (is_named(segment, node->kind == RV_NODE_MAP ? node->keys[i]->text : rv_str_of(number)))
            return node->items[i];
    }
    return NULL;
}

/* The place in the file, as far as it has what the pointer names. */
static struct rv_src src_of(const struct schema_place *at, const struct tools_schema_mistake *fault)
{
    rv_str rest = rv_buf_str(&fault->pointer);
    const struct rv_node *node = at->written, *key = NULL;

    while (node && rest.len > 0) {
        const char *end = memchr(rest.ptr + 1, '/', rest.len - 1);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        const struct rv_node *next = child_of(node, (rv_str){rest.ptr + 1, len - 1}, &key);

        rest = (rv_str){rest.ptr + len, rest.len - len};
        if (next && rest.len == 0 && fault->is_key && key)
            return key->src;
        if (!next)
            break;
        node = next;
    }
    return node && fault->pointer.len > 0 ? node->src : *at->src;
}

static int check(json_object *json, const struct schema_place *at, rv_findings *findings, rv_err **err)
{
    struct tools_schema_mistake place = {.pointer = RV_BUF_INIT(MAX_POINTER)};
    rv_schema *schema = NULL;
    rv_err *fault = NULL;
    int rc = tools_schema_compile_at(json, at->what, &place, &schema, &fault);

    rv_schema_free(schema);
    if (rc < 0 && rc != RV_E_NOMEM) {
        struct rv_src src = src_of(at, &place);
        rc = RV_WRAP(&fault, rc, "%s \"%s\"", at->kind, at->name);
        rv_findings_add_err(findings, RV_SEVERITY_ERROR, &src, fault);
        rc = 0;
    }
    rv_err_free(fault);
    rv_buf_fini(&place.pointer);
    return rc < 0 ? RV_FAIL(err, rc, "check the schemas of %s \"%s\"", at->kind, at->name) : 0;
}

static int check_agent(const struct rv_agent *a, rv_findings *findings, rv_err **err)
{
    int rc = 0;

    if (a->output.schema)
        rc = check(a->output.schema,
                   &(const struct schema_place){.kind = "agent",
                                                .name = a->name,
                                                .what = "the output",
                                                .written = a->output.written,
                                                .src = &a->places.output_schema},
                   findings, err);
    for (size_t i = 0; i < a->tools.n_client && rc == 0; i++)
        if (a->tools.client[i].parameters)
            rc = check(a->tools.client[i].parameters,
                       &(const struct schema_place){.kind = "agent",
                                                    .name = a->name,
                                                    .what = a->tools.client[i].name,
                                                    .written = a->tools.client[i].written,
                                                    .src = &a->tools.client[i].src},
                       findings, err);
    return rc;
}

static int check_test(const struct rv_test_config *t, rv_findings *findings, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < t->n_schemas && rc == 0; i++)
        rc = check(t->schemas[i].schema,
                   &(const struct schema_place){.kind = "test",
                                                .name = t->name,
                                                .what = "expect.schema",
                                                .written = t->schemas[i].written,
                                                .src = &t->schemas[i].src},
                   findings, err);
    return rc;
}

int rv_schema_check_pipeline(struct rv_pipeline *p, rv_findings *findings, rv_err **err)
{
    size_t n_errors = rv_findings_n_errors(findings);
    int rc = 0;

    for (size_t i = 0; i < p->n_agents && rc == 0; i++)
        rc = check_agent(&p->agents[i], findings, err);
    for (size_t i = 0; i < p->n_tests && rc == 0; i++)
        rc = check_test(&p->tests[i], findings, err);
    p->is_sound = p->is_sound && rv_findings_n_errors(findings) == n_errors;
    return rc;
}

/* Does the output of a structured agent fit the tool that is to get it? What can be told from both schemas is told when
 * the pipeline is loaded, not after the model was paid. */

static const char *renamed(const struct rv_agent *a, const char *member)
{
    const char *to = member;

    return a->tools.chained_map && rv_json_get_text(a->tools.chained_map, member, &to) ? to : member;
}

/* Does some member of the output reach the tool under that name? */
static bool reaches(const struct rv_agent *a, json_object *properties, const char *parameter)
{
    json_object_object_foreach (properties, key, schema) {
        (void)schema;
        if (strcmp(renamed(a, key), parameter) == 0)
            return true;
    }
    return false;
}

static void report(const struct rv_agent *a, rv_findings *findings, const char *what, const char *name)
{
    const struct rv_src *src =
        a->declared.doc && a->declared.doc->chained_src.file ? &a->declared.doc->chained_src : &a->places.agent;

    rv_findings_add(findings, RV_SEVERITY_ERROR, src, "chained_map gives members of the output other names",
                    "agent \"%s\": the output does not fit chained tool \"%s\": %s \"%s\"", a->name, a->tools.chained,
                    what, name);
}

static bool check_required(const struct rv_agent *a, json_object *input, json_object *properties, rv_findings *findings)
{
    json_object *required = rv_json_get_arr(input, "required");
    bool fits = true;

    for (size_t i = 0; required && i < json_object_array_length(required); i++) {
        json_object *name = json_object_array_get_idx(required, i);
        if (!json_object_is_type(name, json_type_string) || reaches(a, properties, json_object_get_string(name)))
            continue;
        report(a, findings, "it needs", json_object_get_string(name));
        fits = false;
    }
    return fits;
}

static bool check_members(const struct rv_agent *a, json_object *input, json_object *properties, rv_findings *findings)
{
    json_object *takes = rv_json_get_obj(input, "properties");
    bool more = true, fits = true;

    if (!rv_json_get_bool(input, "additionalProperties", &more) || more)
        return true;
    json_object_object_foreach (properties, key, schema) {
        (void)schema;
        if (takes && json_object_object_get_ex(takes, renamed(a, key), NULL))
            continue;
        if (a->tools.chained_map && !json_object_object_get_ex(a->tools.chained_map, key, NULL))
            continue; /* with a map, what it does not name and the tool does not take stays out of the call */
        report(a, findings, "it takes no", renamed(a, key));
        fits = false;
    }
    return fits;
}

void rv_tools_check_chains(struct rv_pipeline *p, const struct rv_catalog *catalog, rv_findings *findings)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        if (!a->tools.chained || !a->tools.chained[0] || !a->output.schema)
            continue;
        const struct rv_tool_info *info = catalog->tool(catalog->self, rv_str_of(a->tools.chained));
        json_object *properties = rv_json_get_obj(a->output.schema, "properties");
        if (!info || !json_object_is_type(info->input_json, json_type_object) || !properties)
            continue;
        bool fits = check_required(a, info->input_json, properties, findings);
        if (!check_members(a, info->input_json, properties, findings) || !fits)
            p->is_sound = false;
    }
}
