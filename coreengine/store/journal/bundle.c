/* Writing a bundle: what decides how a run goes, in one fixed order, so that the same things give the same bytes.
 * Key order inside schemas is kept: prompts show parameters in that order. */
#include "coreengine/store/journal/bundle_internal.h"

#include <stdlib.h>
#include <string.h>

bool journal_bundle_has_kind(enum rv_name_kind kind)
{
    switch (kind) {
    case RV_NAME_HOOK:
    case RV_NAME_POLICY:
    case RV_NAME_MOCK:
    case RV_NAME_ROUTE:
    case RV_NAME_PROBE:
        return true;
    case RV_NAME_TOOL:
    case RV_NAME_PROMPT:
    case RV_NAME_PROVIDER:
    case RV_NAME_SUBSCRIBER: /* no run depends on what it is told */
    case RV_N_NAME_KINDS:
        break;
    }
    return false;
}

static int by_path(const void *a, const void *b)
{
    const struct rv_text_file *const *left = a, *const *right = b;
    return strcmp((*left)->path, (*right)->path);
}

static int write_files(const struct rv_pipeline *p, rv_jw *w, rv_err **err)
{
    size_t n;
    const struct rv_text_file *files = rv_pipeline_files(p, &n);
    const struct rv_text_file **sorted = calloc(n + 1, sizeof *sorted);

    if (!sorted)
        return RV_FAIL(err, RV_E_NOMEM, "list the files of a pipeline");
    for (size_t i = 0; i < n; i++)
        sorted[i] = &files[i];
    qsort(sorted, n, sizeof(*sorted), by_path);
    rv_jw_key(w, "files");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++)
        rv_jw_kv_str(w, sorted[i]->path, sorted[i]->text);
    rv_jw_obj_end(w);
    free(sorted);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct rv_bound_agent *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static size_t count_bound(const struct rv_pipeline *p)
{
    size_t n, n_inner, all;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n_inner);

    RV_IGNORE(!rv_pipeline_bound_agents(p, &all), "only how many there are");
    for (size_t i = 0; i < n_inner; i++) {
        RV_IGNORE(!rv_pipeline_bound_agents(inner[i], &n), "only how many there are");
        all += n;
    }
    return all;
}

/* Add the documents that are not there yet: one name means one document in all pipelines of a run. */
static void add_bound(const struct rv_pipeline *p, const struct rv_bound_agent **list, size_t *n)
{
    size_t n_more;
    const struct rv_bound_agent *more = rv_pipeline_bound_agents(p, &n_more);

    for (size_t i = 0; i < n_more; i++) {
        size_t k = 0;
        while (k < *n && strcmp(list[k]->name, more[i].name) != 0)
            k++;
        if (k == *n)
            list[(*n)++] = &more[i];
    }
}

/* The documents that stages were made from. A pipeline without any keeps the bytes that it always had. */
static int write_agents(const struct rv_pipeline *p, rv_jw *w, rv_err **err)
{
    size_t n = 0, n_inner;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n_inner);
    const struct rv_bound_agent **sorted = calloc(count_bound(p) + 1, sizeof *sorted);

    if (!sorted)
        return RV_FAIL(err, RV_E_NOMEM, "list the agents of a pipeline");
    add_bound(p, sorted, &n);
    for (size_t i = 0; i < n_inner; i++)
        add_bound(inner[i], sorted, &n);
    if (n == 0) {
        free(sorted);
        return 0;
    }
    qsort(sorted, n, sizeof(*sorted), by_name);
    rv_jw_key(w, "agents");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        rv_jw_key(w, sorted[i]->name);
        rv_jw_obj(w);
        rv_jw_kv_text(w, "place", sorted[i]->place);
        rv_jw_kv_str(w, "text", sorted[i]->text);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
    free(sorted);
    return 0;
}

static void write_price(const struct rv_price *price, rv_jw *w)
{
    rv_jw_key(w, "price");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "input", price->input);
    rv_jw_kv_int(w, "output", price->output);
    if (price->cached != RV_UNSET)
        rv_jw_kv_int(w, "cached", price->cached);
    if (price->cache_write != RV_UNSET)
        rv_jw_kv_int(w, "cache_write", price->cache_write);
    rv_jw_obj_end(w);
}

/* Settings from outside of the text: with other names, roles or prices the run would take another course. */
static void write_chosen(const struct rv_pipeline *p, rv_jw *w)
{
    size_t n;
    const struct rv_chosen_model *chosen = rv_pipeline_chosen_models(p, &n);

    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        rv_jw_key(w, chosen[i].role);
        if (!chosen[i].provider) {
            rv_jw_null(w);
            continue;
        }
        rv_jw_obj(w);
        rv_jw_kv_text(w, "provider", chosen[i].provider);
        rv_jw_kv_text(w, "model", chosen[i].model);
        if (chosen[i].has_price)
            write_price(&chosen[i].price, w);
        if (chosen[i].max_input_tokens > 0)
            rv_jw_kv_int(w, "max_input_tokens", chosen[i].max_input_tokens);
        if (chosen[i].replaces)
            rv_jw_kv_bool(w, "replaces", true);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

/* The same of each file that stages run. A pipeline without any keeps the bytes that it always had. */
static void write_inner_chosen(const struct rv_pipeline *p, rv_jw *w)
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);

    if (n == 0)
        return;
    rv_jw_key(w, "inner");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        rv_jw_key(w, inner[i]->file);
        write_chosen(inner[i], w);
    }
    rv_jw_obj_end(w);
}

static void write_pipeline(const struct rv_bundle_source *from, rv_jw *w)
{
    const struct rv_pipeline *p = from->pipeline;

    rv_jw_key(w, "pipeline");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "file", p->file);
    rv_jw_kv_text(w, "dir", p->dir);
    if (from->base)
        rv_jw_kv_text(w, "base", from->base);
    rv_jw_kv_str(w, "text", rv_pipeline_text(p));
    rv_jw_key(w, "models");
    write_chosen(p, w);
    write_inner_chosen(p, w);
    rv_jw_obj_end(w);
}

static int write_script(const rv_script *s, rv_jw *w, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_BUNDLE_MAX_BYTES);
    const char *name = NULL;
    int rc = rv_script_write_source(s, &name, &text, err);

    if (rc == 0) {
        rv_jw_key(w, "script");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "file", name);
        rv_jw_kv_str(w, "text", rv_buf_str(&text));
        rv_jw_obj_end(w);
    }
    rv_buf_fini(&text);
    return rc;
}

/* --- The catalog: every name that capabilities have, each list sorted. --- */

static const char *const *names_of(const struct rv_bundle_source *from, enum rv_name_kind kind, size_t *n)
{
    *n = 0;
    return from->names ? from->names->list(from->names->self, kind, n) : NULL;
}

/* Lists are sorted, so equal names are neighbours. */
static bool is_repeated(const char *const *names, size_t i)
{
    return i > 0 && strcmp(names[i - 1], names[i]) == 0;
}

static void write_tool(const struct rv_tool_info *t, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "description", t->description);
    if (t->category != RV_UNSET)
        rv_jw_kv_text(w, "category", rv_tool_category_text((enum rv_tool_category)t->category));
    if (t->risk != RV_UNSET)
        rv_jw_kv_text(w, "risk", rv_risk_text((enum rv_risk)t->risk));
    if (t->effect != RV_UNSET)
        rv_jw_kv_text(w, "effect", rv_effect_class_text((enum rv_effect_class)t->effect));
    if (t->timeout_ms)
        rv_jw_kv_int(w, "timeout_ms", t->timeout_ms);
    if (t->has_probe)
        rv_jw_kv_bool(w, "has_probe", true);
    if (t->confirm)
        rv_jw_kv_value(w, "requires_confirmation", t->confirm);
    if (t->input)
        rv_jw_kv_value(w, "input_schema", t->input_json);
    if (t->output)
        rv_jw_kv_value(w, "output_schema", t->output_json);
    rv_jw_obj_end(w);
}

static void write_tools(const struct rv_bundle_source *from, rv_jw *w)
{
    size_t n;
    const char *const *names = names_of(from, RV_NAME_TOOL, &n);

    rv_jw_key(w, "tools");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        rv_str name = rv_str_of(names[i]);
        const struct rv_tool_info *tool = from->catalog->tool(from->catalog->self, name);
        bool is_scripted = from->script && tool == rv_script_find_tool(from->script, name); /* its text brings it */

        if (!tool || is_scripted || is_repeated(names, i))
            continue;
        rv_jw_key(w, names[i]);
        write_tool(tool, w);
    }
    rv_jw_obj_end(w);
}

static void write_entry(const struct rv_entry_info *e, rv_jw *w)
{
    rv_jw_obj(w);
    if (e->sees.is_set)
        rv_jw_kv_list(w, "sees", &e->sees);
    if (e->timeout_ms)
        rv_jw_kv_int(w, "timeout_ms", e->timeout_ms);
    rv_jw_obj_end(w);
}

static void write_entries(const struct rv_bundle_source *from, rv_jw *w)
{
    rv_jw_key(w, "entries");
    rv_jw_obj(w);
    for (int k = 0; k < RV_N_NAME_KINDS; k++) {
        enum rv_name_kind kind = (enum rv_name_kind)k;
        size_t n = 0;
        const char *const *names = journal_bundle_has_kind(kind) ? names_of(from, kind, &n) : NULL;

        if (n == 0)
            continue;
        rv_jw_key(w, rv_name_kind_text(kind));
        rv_jw_obj(w);
        for (size_t i = 0; i < n; i++) {
            const struct rv_entry_info *e = from->catalog->entry(from->catalog->self, kind, rv_str_of(names[i]));
            if (!e || is_repeated(names, i))
                continue;
            rv_jw_key(w, names[i]);
            write_entry(e, w);
        }
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_prompts(const struct rv_bundle_source *from, rv_jw *w)
{
    size_t n;
    const char *const *keys = names_of(from, RV_NAME_PROMPT, &n);

    rv_jw_key(w, "prompts");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        const rv_template *t = from->catalog->prompt(from->catalog->self, rv_str_of(keys[i]));
        if (t && !is_repeated(keys, i))
            rv_jw_kv_str(w, keys[i], rv_template_text(t));
    }
    rv_jw_obj_end(w);
}

static int write_bundle(const struct rv_bundle_source *from, rv_buf *out, rv_err **err)
{
    rv_jw w = rv_jw_on(out);
    int rc;

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "reeve_bundle", RV_BUNDLE_VERSION);
    write_pipeline(from, &w);
    rc = write_files(from->pipeline, &w, err);
    if (rc == 0)
        rc = write_agents(from->pipeline, &w, err);
    if (rc == 0 && from->script)
        rc = write_script(from->script, &w, err);
    if (rc < 0)
        return rc;
    rv_jw_key(&w, "catalog");
    rv_jw_obj(&w);
    write_tools(from, &w);
    write_entries(from, &w);
    write_prompts(from, &w);
    rv_jw_obj_end(&w);
    if (from->mcp)
        rv_jw_kv_value(&w, "mcp", from->mcp);
    rv_jw_obj_end(&w);
    return rv_buf_check(out, "bundle", err);
}

/* Without its documents a pipeline is not whole. */
static int check_bound(const struct rv_pipeline *p, rv_err **err)
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);

    for (size_t i = 0; i < n; i++) {
        int rc = check_bound(inner[i], err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].declared.name[0] && !p->agents[i].declared.doc)
            return RV_FAIL_AT(err, &p->agents[i].places.agent, RV_E_STATE, "agent \"%s\" was not looked up",
                              p->agents[i].declared.name);
    return 0;
}

int rv_bundle_write(const struct rv_bundle_source *from, rv_buf *out, char hash[RV_HASH_MAX], rv_err **err)
{
    size_t start = out->len, max = out->max;
    int rc;

    if (!from->pipeline->is_sound)
        return RV_FAIL(err, RV_E_STATE, "pipeline \"%s\" has errors and cannot be kept", from->pipeline->name);
    if (max > start && max - start > RV_BUNDLE_MAX_BYTES)
        out->max = start + RV_BUNDLE_MAX_BYTES;
    rc = check_bound(from->pipeline, err);
    if (rc == 0)
        rc = write_bundle(from, out, err);
    out->max = max;
    if (rc < 0) {
        rv_buf_truncate(out, start);
        return RV_WRAP(err, rc, "keep pipeline \"%s\"", from->pipeline->file);
    }
    if (hash)
        rv_hash_format((rv_str){out->ptr + start, out->len - start}, hash);
    return 0;
}
