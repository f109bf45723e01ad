/* What an operation takes: its parameters and its body, as arguments of the tool; and what it answers. */
#include "coreengine/openapi/openapi_internal.h"

#include <json-c/linkhash.h>

/* While the arguments of one operation are gathered. */
struct gathering {
    const struct openapi_source *s;
    struct openapi_operation *o;
    struct openapi_schemas schemas;
    json_object *properties, *required; /* owned */
    rv_buf *why;
};

static json_object *json_of(json_object *content)
{
    if (!json_object_is_type(content, json_type_object))
        return NULL;
    json_object_object_foreach (content, type, media) {
        rv_str name = {type, strcspn(type, ";")};
        name = rv_str_trim(name);
        bool is_suffix = name.len > 5 && rv_mcp_is_same_word((rv_str){name.ptr + name.len - 5, 5}, RV_STR_LIT("+json"));
        if (json_object_is_type(media, json_type_object) &&
            (is_suffix || rv_mcp_is_same_word(name, RV_STR_LIT("application/json"))))
            return media;
    }
    return NULL;
}

static bool is_taken(const struct gathering *g, const char *argument)
{
    return json_object_object_get_ex(g->properties, argument, NULL);
}

/* Of a tool; borrowed. */
struct argument {
    const char *name, *alternative; /* alternative: its name where another argument has that */
    json_object *schema;            /* NULL: any value */
    const char *text;               /* its description */
    bool is_required;
};

/* *key_in_tool: its name there; borrowed from the properties. */
static int add(struct gathering *g, const struct argument *a, const char **key_in_tool, rv_err **err)
{
    const char *key = is_taken(g, a->name) ? a->alternative : a->name;
    json_object *copied = NULL;
    int rc = 0;

    if (is_taken(g, key)) {
        rv_buf_puts(g->why, "two of its arguments would have one name");
        return 0;
    }
    if (a->schema)
        rc = openapi_schema(&g->schemas, a->schema, &copied, err);
    else
        copied = json_object_new_object();
    if (rc < 0 || g->why->len > 0)
        return rc;
    if (!copied)
        return OPENAPI_NOMEM(err);
    if (a->text[0] && json_object_is_type(copied, json_type_object) &&
        !json_object_object_get_ex(copied, "description", NULL)) {
        rc = rv_json_set_text(copied, "description", a->text, err);
        if (rc < 0) {
            json_object_put(copied);
            return rc;
        }
    }
    rc = rv_json_set_take(g->properties, key, copied, err);
    json_object *word = rc == 0 ? json_object_new_string(key) : NULL;
    if (rc == 0 && !word)
        rc = OPENAPI_NOMEM(err);
    if (rc == 0 && a->is_required)
        rc = rv_json_push_ref(g->required, word, err);
    json_object_put(word);
    json_object_object_foreach (g->properties, kept, value) {
        (void)value;
        if (strcmp(kept, key) == 0)
            *key_in_tool = kept;
    }
    return rc;
}

/* --- parameters --- */

/* False: values of that style cannot be written. */
static bool read_style(json_object *parameter, struct openapi_parameter *p)
{
    const char *style = rv_json_text_or(parameter, "style", p->in == OPENAPI_QUERY ? "form" : "simple");

    p->explode = strcmp(style, "form") == 0;
    p->explode = rv_json_bool_or(parameter, "explode", p->explode);
    p->style = OPENAPI_PLAIN;
    if (p->in != OPENAPI_QUERY)
        return strcmp(style, "simple") == 0;
    if (strcmp(style, "deepObject") == 0)
        p->style = OPENAPI_DEEP;
    else if (strcmp(style, "spaceDelimited") == 0)
        p->style = OPENAPI_SPACES;
    else if (strcmp(style, "pipeDelimited") == 0)
        p->style = OPENAPI_PIPES;
    else
        return strcmp(style, "form") == 0;
    return true;
}

static bool has_hole(const char *path, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = strchr(path, '{'); p; p = strchr(p + 1, '{'))
        if (strncmp(p + 1, name, n) == 0 && p[1 + n] == '}')
            return true;
    return false;
}

/* 1: it is not an argument, and the request does without it. */
static int place_of(struct gathering *g, json_object *parameter, struct openapi_parameter *p, bool is_required)
{
    const char *in = "";

    if (!rv_json_get_text(parameter, "name", &p->name) || !rv_json_get_text(parameter, "in", &in) || !p->name[0]) {
        rv_buf_puts(g->why, "a parameter has no name, or no place");
        return 0;
    }
    rv_str shown = rv_utf8_cut(rv_str_of(p->name), 60);
    if (strcmp(in, "path") == 0) {
        p->in = OPENAPI_PATH;
        if (has_hole(g->o->path, p->name))
            return 0;
        rv_buf_printf(g->why, "the path has no {%.*s}", RV_STR_ARG(shown));
    } else if (strcmp(in, "query") == 0) {
        p->in = OPENAPI_QUERY;
    } else if (strcmp(in, "header") == 0) {
        p->in = OPENAPI_HEADER;
        return openapi_is_header(p->name, g->s->how) ? 0 : 1;
    } else if (strcmp(in, "cookie") == 0 && !is_required) {
        return 1;
    } else {
        rv_buf_printf(g->why, "the parameter \"%.*s\" is in a place that is not supported", RV_STR_ARG(shown));
    }
    return 0;
}

static bool is_there(const struct openapi_operation *o, const struct openapi_parameter *p)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->parameters[i].in == p->in && strcmp(o->parameters[i].name, p->name) == 0)
            return true;
    return false;
}

static int add_parameter(struct gathering *g, json_object *parameter, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf other = RV_BUF_INIT(1024);
    struct openapi_parameter p = {0};
    json_object *schema = NULL, *content = NULL;

    parameter = openapi_follow(g->s->document, parameter, g->why);
    if (!parameter)
        return 0;
    bool is_required = rv_json_bool_or(parameter, "required", false);
    const char *text = rv_json_text_or(parameter, "description", "");
    if (place_of(g, parameter, &p, is_required) == 1 || g->why->len > 0 || is_there(g->o, &p))
        return 0;
    rv_str shown = rv_utf8_cut(rv_str_of(p.name), 60);
    if (g->o->n == RV_OPENAPI_MAX_PARAMETERS) {
        rv_buf_printf(g->why, "it has more than %d parameters", RV_OPENAPI_MAX_PARAMETERS);
        return 0;
    }
    if (json_object_object_get_ex(parameter, "content", &content)) {
        json_object *media = json_of(content);
        p.style = OPENAPI_JSON;
        if (!media)
            rv_buf_printf(g->why, "the parameter \"%.*s\" has a content that is not JSON", RV_STR_ARG(shown));
        else
            json_object_object_get_ex(media, "schema", &schema);
    } else if (!read_style(parameter, &p)) {
        rv_buf_printf(g->why, "the parameter \"%.*s\" has a style that is not supported", RV_STR_ARG(shown));
    } else {
        json_object_object_get_ex(parameter, "schema", &schema);
    }
    if (g->why->len > 0)
        return 0;
    rv_buf_printf(&other, "%.*s_in_%s", RV_STR_ARG(rv_utf8_cut(rv_str_of(p.name), 900)), openapi_ins[p.in]);
    int rc = rv_buf_check(&other, "the name of an argument", err);
    if (rc == 0)
        rc = add(g, &(struct argument){p.name, rv_buf_cstr(&other), schema, text, is_required || p.in == OPENAPI_PATH},
                 &p.argument, err);
    if (rc == 0 && g->why->len == 0)
        g->o->parameters[g->o->n++] = p;
    return rc;
}

/* Those of the operation count before those of its path. */
static int add_parameters(struct gathering *g, json_object *owner, rv_err **err)
{
    json_object *list = NULL;
    int rc = 0;

    if (!json_object_object_get_ex(owner, "parameters", &list))
        return 0;
    if (!json_object_is_type(list, json_type_array))
        rv_buf_puts(g->why, "its parameters are not a list");
    for (size_t i = 0; rc == 0 && g->why->len == 0 && i < json_object_array_length(list); i++) {
        rc = add_parameter(g, json_object_array_get_idx(list, i), err);
        if (rc == 0 && g->why->len > 0)
            rv_buf_printf(g->why, " (parameter %zu)", i + 1);
    }
    return rc;
}

static void check_holes(struct gathering *g)
{
    for (const char *p = strchr(g->o->path, '{'); p && g->why->len == 0; p = strchr(p + 1, '{')) {
        rv_str name = {p + 1, strcspn(p + 1, "}")};
        bool is_found = false;
        for (size_t i = 0; i < g->o->n; i++)
            is_found =
                is_found || (g->o->parameters[i].in == OPENAPI_PATH && rv_str_is(name, g->o->parameters[i].name));
        if (!is_found)
            rv_buf_printf(g->why, "the path has {%.*s}, which is not a parameter", RV_STR_ARG(rv_utf8_cut(name, 60)));
    }
}

/* --- body --- */

static int add_body(struct gathering *g, rv_err **err)
{
    struct openapi_parameter p = {.in = OPENAPI_BODY, .style = OPENAPI_JSON};
    json_object *body = NULL, *content = NULL, *schema = NULL;

    if (!json_object_object_get_ex(g->s->operation, "requestBody", &body))
        return 0;
    body = openapi_follow(g->s->document, body, g->why);
    if (!body)
        return 0;
    bool is_required = rv_json_bool_or(body, "required", false);
    const char *text = rv_json_text_or(body, "description", "");
    json_object_object_get_ex(body, "content", &content);
    json_object *media = json_of(content);
    if (!media) {
        if (is_required)
            rv_buf_puts(g->why, "its body is not JSON");
        return 0;
    }
    p.name = "application/json";
    json_object_object_foreach (content, type, value)
        if (value == media)
            p.name = type;
    json_object_object_get_ex(media, "schema", &schema);
    int rc = add(g, &(struct argument){"body", "request_body", schema, text, is_required}, &p.argument, err);
    if (rc == 0 && g->why->len == 0)
        g->o->parameters[g->o->n++] = p;
    return rc;
}

static int build(struct gathering *g, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *to = json_object_new_object();

    if (!to)
        return OPENAPI_NOMEM(err);
    rv_json_build_text(&b, to, "type", "object");
    rv_json_build(&b, to, "properties", json_object_get(g->properties));
    if (json_object_array_length(g->required) > 0)
        rv_json_build(&b, to, "required", json_object_get(g->required));
    rv_json_build(&b, to, "additionalProperties", json_object_new_boolean(false));
    if (g->schemas.defs)
        rv_json_build(&b, to, "$defs", json_object_get(g->schemas.defs));
    if (b.rc < 0)
        json_object_put(to);
    else
        *out = to;
    return b.rc;
}

static int read_input(const struct openapi_source *s, struct openapi_operation *o, json_object **out, rv_buf *why,
                      rv_err **err)
{
    struct gathering g = {.s = s,
                          .o = o,
                          .schemas = {.document = s->document, .is_30 = s->is_30, .why = why},
                          .properties = json_object_new_object(),
                          .required = json_object_new_array(),
                          .why = why};
    int rc = g.properties && g.required ? 0 : OPENAPI_NOMEM(err);

    if (rc == 0)
        rc = add_parameters(&g, s->operation, err);
    if (rc == 0 && why->len == 0)
        rc = add_parameters(&g, s->path_item, err);
    if (rc == 0 && why->len == 0)
        check_holes(&g);
    if (rc == 0 && why->len == 0)
        rc = add_body(&g, err);
    if (rc == 0 && why->len == 0)
        rc = openapi_schemas_finish(&g.schemas, err);
    if (rc == 0 && why->len == 0)
        rc = build(&g, out, err);
    *s->n_bytes += g.schemas.n_bytes;
    openapi_schemas_fini(&g.schemas);
    json_object_put(g.properties);
    json_object_put(g.required);
    return rc;
}

/* --- answers --- */

/* The only answer of success that the document has; NULL: it has none, or several. */
static json_object *success_of(json_object *operation)
{
    json_object *responses = rv_json_get_obj(operation, "responses"), *found = NULL;

    if (!responses)
        return NULL;
    json_object_object_foreach (responses, status, response) {
        if (status[0] != '2')
            continue;
        if (found)
            return NULL;
        found = response;
    }
    return found;
}

static int read_output(const struct openapi_source *s, json_object **out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf why = RV_BUF_INIT(OPENAPI_MAX_WHY);
    struct openapi_schemas schemas = {.document = s->document, .is_answer = true, .is_30 = s->is_30, .why = &why};
    json_object *response = success_of(s->operation), *content = NULL, *schema = NULL, *copied = NULL;

    *out = NULL;
    response = response ? openapi_follow(s->document, response, &why) : NULL;
    if (!json_object_is_type(response, json_type_object) || !json_object_object_get_ex(response, "content", &content) ||
        !json_object_is_type(content, json_type_object) || json_object_object_length(content) != 1)
        return 0;
    json_object *media = json_of(content);
    if (!media || !json_object_object_get_ex(media, "schema", &schema))
        return 0;
    int rc = openapi_schema(&schemas, schema, &copied, err);
    if (rc == 0 && why.rc == RV_E_NOMEM)
        rc = rv_buf_check(&why, "why an answer is not described", err);
    if (rc == 0 && why.len == 0)
        rc = openapi_schemas_finish(&schemas, err);
    if (rc == 0 && why.len == 0 && schemas.defs && json_object_is_type(copied, json_type_object))
        rc = rv_json_set_ref(copied, "$defs", schemas.defs, err);
    if (rc < 0 || why.len > 0) /* a promise that cannot be read is none */
        json_object_put(copied);
    else
        *out = copied;
    *s->n_bytes += schemas.n_bytes;
    openapi_schemas_fini(&schemas);
    return rc;
}

int openapi_parameters(const struct openapi_source *s, struct openapi_operation *o, json_object **input,
                       json_object **output, rv_buf *why, rv_err **err)
{
    json_object *in = NULL, *out = NULL;
    int rc = read_input(s, o, &in, why, err);

    if (rc == 0 && why->len == 0)
        rc = read_output(s, &out, err);
    if (rc < 0 || why->len > 0) {
        json_object_put(in);
        return rc;
    }
    *input = in;
    *output = out;
    return 0;
}
