/* Prompts: those of the pipelines that are offered. A pipeline with one prompt gives it its own name; of one with
 * several they are called PIPELINE.KEY. What a template names are the arguments. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"

#define MAX_ARGUMENTS 100 /* of one prompt: a person fills them in a form */

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
        struct rv_placeholder p = rv_template_placeholder_at(t, i);
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
            if (rv_str_is(rv_template_placeholder_at(t, i).root, roots[k]) && !rv_template_placeholder_at(t, i).is_test)
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
    /** A prompt; stops when it returns not 0. prompt NULL: the pipeline itself is one. */
    int (*each)(struct search *s, const char *name, const char *path, const struct rv_pipeline *p,
                const struct rv_prompt_config *prompt, rv_err **err);
    /* lists */
    json_object *list;
    int64_t first, n;
    /* one */
    rv_str wanted;
    json_object *arguments;
    struct mcp_document *out;
};
static int look_into(void *self, const char *file, const char *path, const struct rv_pipeline *p, rv_err **err)
{
    struct search *s = self;
    rv_buf name = RV_BUF_INIT(8192);
    int rc = 0;

    if (p->mcp.kind == RV_MCP_OFFER_PROMPT && p->is_sound)
        return s->each(s, file, path, p, NULL, err);
    for (size_t i = 0; rc == 0 && p->mcp.kind == RV_MCP_OFFER_TOOL && i < p->n_prompts; i++) {
        const struct rv_prompt_config *prompt = &p->prompts[i];
        rv_buf_clear(&name);
        rv_buf_puts(&name, file);
        if (p->n_prompts > 1)
            rv_buf_printf(&name, ".%s", prompt->key);
        rc = rv_buf_check(&name, "the name of a prompt", err);
        if (rc == 0 && prompt->compiled && !needs_run(prompt->compiled))
            rc = s->each(s, rv_buf_cstr(&name), path, p, prompt, err);
    }
    rv_buf_fini(&name);
    return rc;
}

/* MCP_FOUND ends it. */
static int search(struct search *s, rv_err **err)
{
    return app_mcp_pipelines_each(s->opts, s->at, look_into, s, err);
}

/* --- the list --- */

static void add_argument(struct rv_json_build *b, json_object *list, rv_str name, bool is_required)
{
    json_object *argument = rv_json_build(b, list, NULL, b->rc < 0 ? NULL : json_object_new_object());

    rv_json_build(b, argument, "name", b->rc < 0 ? NULL : json_object_new_string_len(name.ptr, (int)name.len));
    rv_json_build(b, argument, "required", b->rc < 0 ? NULL : json_object_new_boolean(is_required));
}

static int list_one(struct search *s, const char *name, const char *path, const struct rv_pipeline *p,
                    const struct rv_prompt_config *prompt, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    struct names names = {.n = 0};

    (void)path;
    if (s->n++ < s->first)
        return 0;
    if (s->n > s->first + RV_MCP_PAGE)
        return MCP_FOUND;
    json_object *one = rv_json_build(&b, s->list, NULL, json_object_new_object());
    rv_json_build_text(&b, one, "name", name);
    if (p->description && p->description[0])
        rv_json_build_text(&b, one, "description", p->description);
    json_object *list = rv_json_build(&b, one, "arguments", b.rc < 0 ? NULL : json_object_new_array());
    if (prompt)
        read_names(prompt->compiled, &names);
    for (size_t i = 0; i < names.n; i++)
        add_argument(&b, list, name_of(names.items[i].path), !names.items[i].is_test);
    for (size_t i = 0; !prompt && i < p->inputs.n; i++)
        add_argument(&b, list, rv_str_of(p->inputs.items[i]), true);
    if (!prompt && !p->inputs.is_set)
        add_argument(&b, list, RV_STR_LIT("input"), true);
    return b.rc;
}

int app_mcp_prompts_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, int64_t first,
                         json_object *list, bool *has_more, rv_err **err)
{
    struct search s = {.opts = opts, .at = at, .each = list_one, .list = list, .first = first};
    int rc = search(&s, err);

    *has_more = rc == MCP_FOUND;
    return rc == MCP_FOUND ? 0 : rc;
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

static int take_one(struct search *s, const char *name, const char *path, const struct rv_pipeline *p,
                    const struct rv_prompt_config *prompt, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MCP_MAX_RESULT / 2);

    if (!rv_str_is(s->wanted, name))
        return 0;
    int rc =
        prompt ? render(s, prompt, &text, err) : app_mcp_offer_of(name, path, RV_MCP_OFFER_PROMPT, &s->out->offer, err);
    if (rc == 0 && prompt) {
        s->out->result = json_object_new_object();
        struct rv_json_build b = {err, s->out->result ? 0 : RV_FAIL(err, RV_E_NOMEM, "render a prompt")};
        if (p->description && p->description[0])
            rv_json_build_text(&b, s->out->result, "description", p->description);
        json_object *list = rv_json_build(&b, s->out->result, "messages", b.rc < 0 ? NULL : json_object_new_array());
        json_object *one = rv_json_build(&b, list, NULL, b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build_text(&b, one, "role", "user");
        json_object *content = rv_json_build(&b, one, "content", b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build_text(&b, content, "type", "text");
        rv_json_build(&b, content, "text",
                      b.rc < 0 ? NULL : json_object_new_string_len(rv_buf_cstr(&text), (int)text.len));
        rc = b.rc;
    }
    rv_buf_fini(&text);
    return rc < 0 ? rc : MCP_FOUND;
}

int app_mcp_prompt_get(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, json_object *params,
                       struct mcp_document *out, rv_err **err)
{
    json_object *given = rv_json_get_obj(params, "arguments"), *name = NULL;
    struct search s = {.opts = opts, .at = at, .each = take_one, .arguments = given, .out = out};

    json_object_object_get_ex(params, "name", &name);
    s.wanted = rv_json_str(name);
    int rc = search(&s, err);
    if (rc == 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "there is no prompt \"%.*s\"", RV_STR_ARG(rv_utf8_cut(s.wanted, 100)));
    if (rc == MCP_FOUND && out->offer.name &&
        !(out->arguments = given ? json_object_get(given) : json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "get a prompt");
    return rc == MCP_FOUND ? 0 : rc;
}
