/* Prompts: those of the pipelines that are offered. A pipeline with one prompt gives it its own name; of one with
 * several they are called PIPELINE.KEY. What a template names are the arguments. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"

#define MAX_ARGUMENTS 100 /* of one prompt */

/* --- arguments --- */

/* The names of a template, each once: "raw_input", "outputs.plan". */
struct names {
    struct rv_placeholder items[MAX_ARGUMENTS];
    size_t n;
};

static void read_names(const rv_template *t, struct names *out)
{
    out->n = 0;
    for (size_t i = 0; i < rv_template_n_placeholders(t) && out->n < MAX_ARGUMENTS; i++) {
        struct rv_placeholder p = rv_template_placeholder(t, i);
        size_t k = 0;
        while (k < out->n && !rv_str_eq(out->items[k].path, p.path))
            k++;
        if (k == out->n)
            out->items[out->n++] = p;
        else
            out->items[k].is_test = out->items[k].is_test && p.is_test;
    }
}

/* Only what a run has made can fill in these. */
static bool needs_run(const rv_template *t)
{
    static const char *const roots[] = {"outputs", "interrupt_response", "error", "item", "index"};

    for (size_t i = 0; i < rv_template_n_placeholders(t); i++)
        for (size_t k = 0; k < RV_COUNT(roots); k++)
            if (rv_str_is(rv_template_placeholder(t, i).root, roots[k]) && !rv_template_placeholder(t, i).is_test)
                return true;
    return false;
}

/* What the argument for a path is called: metadata and inputs are what callers give anyway. */
static rv_str name_of(rv_str path)
{
    static const char *const roots[] = {"metadata.", "inputs."};

    for (size_t i = 0; i < RV_COUNT(roots); i++) {
        size_t n = strlen(roots[i]);
        if (path.len > n && memcmp(path.ptr, roots[i], n) == 0)
            return (rv_str){path.ptr + n, path.len - n};
    }
    return path;
}

/* "a.b" becomes {"a": {"b": value}}. */
static int put_at(json_object *root, rv_str path, json_object *value, rv_err **err)
{
    char *text = rv_str_dup(path), *at = text;
    int rc = text ? 0 : RV_FAIL(err, RV_E_NOMEM, "render a prompt");

    for (char *dot; rc == 0 && (dot = strchr(at, '.')); at = dot + 1) {
        *dot = '\0';
        json_object *inner = rv_json_get_obj(root, at);
        if (!inner && (rc = rv_json_set_take(root, at, json_object_new_object(), err)) == 0)
            inner = rv_json_get_obj(root, at);
        root = inner;
    }
    if (rc == 0)
        rc = rv_json_set_ref(root, at, value, err);
    free(text);
    return rc;
}

/* --- finding --- */

struct search {
    const struct rv_app_mcp_opts *opts;
    const struct rv_app_mcp_at *at;
    /** A prompt; stops when it returns not 0. */
    int (*each)(struct search *s, const char *name, const struct rv_pipeline *p, const struct rv_prompt_config *prompt,
                rv_err **err);
    /* lists */
    json_object *list;
    int64_t first, n;
    /* one */
    rv_str wanted;
    json_object *arguments, *result;
};
#define FOUND 1 /* one more prompt is there: the walk ends */

static int look_into(void *self, const char *file, rv_err **err)
{
    struct search *s = self;
    const struct rv_app_load_opts plain = {.keeps = false};
    struct rv_app_loaded l;
    rv_buf path = RV_BUF_INIT(8192), name = RV_BUF_INIT(8192);
    rv_err *why = NULL;
    int rc = rv_app_pipeline_path(s->opts->pipelines, file, &path, &why);

    if (rc == 0)
        rc = rv_app_load_plain(s->at->app, rv_buf_cstr(&path), &plain, &l, &why);
    if (rc < 0) { /* the list of tools says so in the log */
        bool no_memory = rc == RV_E_NOMEM;
        rv_err_free(why);
        rv_buf_fini(&path);
        return no_memory ? RV_FAIL(err, RV_E_NOMEM, "list prompts") : 0;
    }
    for (size_t i = 0; rc == 0 && l.pipeline && i < l.pipeline->n_prompts; i++) {
        const struct rv_prompt_config *p = &l.pipeline->prompts[i];
        rv_buf_clear(&name);
        rv_buf_puts(&name, file);
        if (l.pipeline->n_prompts > 1)
            rv_buf_printf(&name, ".%s", p->key);
        rc = rv_buf_check(&name, "the name of a prompt", err);
        if (rc == 0 && p->compiled && !needs_run(p->compiled))
            rc = s->each(s, rv_buf_cstr(&name), l.pipeline, p, err);
    }
    rv_app_loaded_fini(&l);
    rv_buf_fini(&path);
    rv_buf_fini(&name);
    return rc;
}

/* FOUND ends it. */
static int search(struct search *s, rv_err **err)
{
    if (!mcp_may(s->at, RV_APP_MCP_RUNS))
        return 0;
    return rv_app_pipelines_each(s->opts->pipelines, look_into, s, err);
}

/* --- the list --- */

static int list_one(struct search *s, const char *name, const struct rv_pipeline *p,
                    const struct rv_prompt_config *prompt, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    struct names names;

    if (s->n++ < s->first)
        return 0;
    if (s->n > s->first + RV_MCP_PAGE)
        return FOUND;
    json_object *one = rv_json_build(&b, s->list, NULL, json_object_new_object());
    rv_json_build_text(&b, one, "name", name);
    if (p->description && p->description[0])
        rv_json_build_text(&b, one, "description", p->description);
    json_object *list = rv_json_build(&b, one, "arguments", b.rc < 0 ? NULL : json_object_new_array());
    read_names(prompt->compiled, &names);
    for (size_t i = 0; i < names.n; i++) {
        json_object *argument = rv_json_build(&b, list, NULL, b.rc < 0 ? NULL : json_object_new_object());
        rv_str said = name_of(names.items[i].path);
        rv_json_build(&b, argument, "name", b.rc < 0 ? NULL : json_object_new_string_len(said.ptr, (int)said.len));
        rv_json_build(&b, argument, "required", b.rc < 0 ? NULL : json_object_new_boolean(!names.items[i].is_test));
    }
    return b.rc;
}

int mcp_prompts_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, int64_t first,
                     json_object *list, bool *has_more, rv_err **err)
{
    struct search s = {.opts = opts, .at = at, .each = list_one, .list = list, .first = first};
    int rc = search(&s, err);

    *has_more = rc == FOUND;
    return rc == FOUND ? 0 : rc;
}

/* --- one of them --- */

static int render(struct search *s, const struct rv_prompt_config *prompt, rv_buf *out, rv_err **err)
{
    json_object *root = json_object_new_object(), *value;
    int rc = root ? 0 : RV_FAIL(err, RV_E_NOMEM, "render a prompt");
    struct names names;

    read_names(prompt->compiled, &names);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *name = rv_str_dup(name_of(names.items[i].path));
        if (!name)
            rc = RV_FAIL(err, RV_E_NOMEM, "render a prompt");
        else if (json_object_object_get_ex(s->arguments, name, &value))
            rc = put_at(root, names.items[i].path, value, err);
        else if (!names.items[i].is_test)
            rc = RV_FAIL(err, RV_E_INVALID, "the prompt needs the argument \"%s\"", name);
        free(name);
    }
    const struct rv_scope scope = rv_scope_of_object(root);
    if (rc == 0)
        rc = rv_template_render(prompt->compiled, &scope, out, err);
    json_object_put(root);
    return rc == RV_E_NOT_FOUND ? RV_E_INVALID : rc;
}

static int take_one(struct search *s, const char *name, const struct rv_pipeline *p,
                    const struct rv_prompt_config *prompt, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MCP_MAX_RESULT / 2);

    if (!rv_str_is(s->wanted, name))
        return 0;
    int rc = render(s, prompt, &text, err);
    if (rc == 0) {
        s->result = json_object_new_object();
        struct rv_json_build b = {err, s->result ? 0 : RV_FAIL(err, RV_E_NOMEM, "render a prompt")};
        if (p->description && p->description[0])
            rv_json_build_text(&b, s->result, "description", p->description);
        json_object *list = rv_json_build(&b, s->result, "messages", b.rc < 0 ? NULL : json_object_new_array());
        json_object *one = rv_json_build(&b, list, NULL, b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build_text(&b, one, "role", "user");
        json_object *content = rv_json_build(&b, one, "content", b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build_text(&b, content, "type", "text");
        rv_json_build(&b, content, "text",
                      b.rc < 0 ? NULL : json_object_new_string_len(rv_buf_cstr(&text), (int)text.len));
        rc = b.rc;
    }
    rv_buf_fini(&text);
    return rc < 0 ? rc : FOUND;
}

int mcp_prompt_get(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, json_object *params,
                   json_object **out, rv_err **err)
{
    struct search s = {.opts = opts, .at = at, .each = take_one, .arguments = rv_json_get_obj(params, "arguments")};
    json_object *name = NULL;

    json_object_object_get_ex(params, "name", &name);
    s.wanted = rv_json_str(name);
    int rc = search(&s, err);
    if (rc == FOUND) {
        *out = s.result;
        return 0;
    }
    json_object_put(s.result);
    return rc < 0 ? rc
                  : RV_FAIL(err, RV_E_NOT_FOUND, "there is no prompt \"%.*s\"", RV_STR_ARG(rv_utf8_cut(s.wanted, 100)));
}
