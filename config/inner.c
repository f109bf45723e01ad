/* Stages that run another pipeline, and what belongs to the other kinds of work: lists, and outputs that are built.
 *
 * A file is loaded once, however many stages of however many pipelines run it; the outermost pipeline owns it, and its
 * text and files count as files of the outermost one, so that a bundle has them. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "coreengine/base/base.h"

#define MAX_INNER 64 /* files below one pipeline: more is a mistake, and each level of nesting is a file */

/* The pipelines that are being loaded, from the innermost outwards. */
struct rv_within {
    const char *file;
    const struct rv_within *up;
    struct rv_loader *outermost;
};

static void finding(struct rv_loader *l, const struct rv_agent *a, const char *code, const struct rv_src *src,
                    const char *hint, const char *text)
{
    rv_findings_add_as(l->findings, RV_SEVERITY_ERROR, code, src->line > 0 ? src : &a->places.name, hint,
                       "stage \"%s\": %s", a->name, text);
}

/* --- loading --- */

static const char *plain(const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

static bool same_file(const char *a, const char *b)
{
    return strcmp(plain(a), plain(b)) == 0;
}

/* "a.yaml runs b.yaml, which runs a.yaml" */
static void tell_circle(struct rv_loader *l, const struct rv_agent *a, const struct rv_within *within, const char *path)
{
    const char *chain[MAX_INNER + 1];
    rv_buf text = RV_BUF_INIT(4096);
    size_t n = 0;

    for (const struct rv_within *w = within; w && n < MAX_INNER; w = w->up) {
        chain[n++] = w->file;
        if (same_file(w->file, path))
            break;
    }
    for (size_t i = n; i-- > 0;)
        rv_buf_printf(&text, "%s%s", chain[i], i > 0 ? ", which runs " : "");
    rv_findings_add_as(l->findings, RV_SEVERITY_ERROR, "recursive_pipeline", &a->inner.src,
                       "a pipeline cannot run itself: loop back inside of one pipeline instead",
                       "stage \"%s\": pipeline \"%s\" leads back to itself: %s, which runs %s", a->name, a->inner.file,
                       text.rc < 0 ? "" : rv_buf_cstr(&text), path);
    rv_buf_fini(&text);
}

static bool file_of_outermost(void *self, const char *path, rv_str *out)
{
    struct rv_loader *l = self;
    const char *kept = rv_arena_dup(l->arena, rv_str_of(path));

    if (!kept) {
        l->rc = RV_E_NOMEM;
        return false;
    }
    return config_loader_text_file(l, "file of an inner pipeline", kept, NULL, out);
}

/* What the environment chose for that file when the run began. */
static void set_models(struct rv_pipeline_opts *opts, const char *path)
{
    opts->models = NULL;
    opts->n_models = 0;
    for (size_t i = 0; i < opts->n_inner; i++)
        if (same_file(opts->inner[i].file, path)) {
            opts->models = opts->inner[i].models;
            opts->n_models = opts->inner[i].n_models;
        }
}

static struct rv_pipeline *parse(struct rv_loader *outermost, struct rv_loader *l, const struct rv_agent *a,
                                 const char *path, const struct rv_within *within)
{
    struct rv_pipeline_opts opts = *outermost->opts;
    const struct rv_within here = {path, within, outermost};
    const char *slash = strrchr(path, '/');
    const char *dir =
        slash ? rv_arena_dup(outermost->arena, (rv_str){path, slash == path ? 1 : (size_t)(slash - path)}) : ".";
    struct rv_pipeline *p = NULL;
    rv_str text = {NULL, 0};
    char what[RV_MAX_STAGE_NAME + 32];
    rv_err *err = NULL;

    if (!dir) {
        l->rc = RV_E_NOMEM;
        return NULL;
    }
    snprintf(what, sizeof what, "stage \"%.*s\": pipeline", RV_MAX_STAGE_NAME, a->name);
    rv_findings_set_code(outermost->findings, "unknown_pipeline");
    bool is_read = config_loader_text_file(outermost, what, path, &a->inner.src, &text);
    rv_findings_set_code(outermost->findings, NULL);
    if (!is_read) {
        l->rc = outermost->rc;
        return NULL;
    }
    opts.file = file_of_outermost;
    opts.self = outermost;
    opts.within = &here;
    set_models(&opts, path);
    int rc = rv_pipeline_parse_with(&(const struct rv_pipeline_source){text, path, dir}, &opts, l->findings, &p, &err);
    if (rc == RV_E_NOMEM || outermost->rc < 0)
        l->rc = RV_E_NOMEM;
    else if (rc < 0)
        rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &a->inner.src, err);
    rv_err_free(err);
    return p;
}

static void load(struct rv_loader *l, struct rv_agent *a, const struct rv_within *within)
{
    struct rv_loader *outermost = within->outermost;
    struct rv_pipeline_internal *internal = outermost->p->internal;
    const char *path = config_loader_path(l, rv_str_of(a->inner.file));

    if (path)
        path = rv_arena_dup(outermost->arena, rv_str_of(plain(path)));
    if (!path) {
        l->rc = RV_E_NOMEM;
        return;
    }
    for (const struct rv_within *w = within; w; w = w->up)
        if (same_file(w->file, path)) {
            tell_circle(l, a, within, path);
            return;
        }
    for (size_t i = 0; i < internal->n_inner; i++)
        if (same_file(internal->inner[i]->file, path)) {
            a->inner.pipeline = internal->inner[i];
            return;
        }
    if (!internal->inner)
        internal->inner = config_loader_array(outermost, MAX_INNER, sizeof *internal->inner);
    if (!internal->inner) {
        l->rc = RV_E_NOMEM;
        return;
    }
    if (internal->n_inner == MAX_INNER) {
        finding(l, a, "unknown_pipeline", &a->inner.src, NULL,
                "more than " RV_LIMIT_TEXT(MAX_INNER) " files are run as stages");
        return;
    }
    struct rv_pipeline *p = parse(outermost, l, a, path, within);
    if (p && internal->n_inner < MAX_INNER) {
        internal->inner[internal->n_inner++] = p; /* inner ones of p come before it */
        a->inner.pipeline = p;
    } else if (p) {
        rv_pipeline_free(p);
        finding(l, a, "unknown_pipeline", &a->inner.src, NULL,
                "more than " RV_LIMIT_TEXT(MAX_INNER) " files are run as stages");
    }
}

/* --- what is given to it --- */

static bool gives(const struct rv_agent *a, const char *name)
{
    for (size_t i = 0; a->inner.inputs && i < a->inner.inputs->n; i++)
        if (strcmp(a->inner.inputs->keys[i], name) == 0)
            return true;
    return false;
}

static bool wants(const struct rv_pipeline *p, const char *name)
{
    for (size_t i = 0; i < p->inputs.n; i++)
        if (strcmp(p->inputs.items[i], name) == 0)
            return true;
    return strcmp(name, "raw_input") == 0;
}

static void check_inputs(struct rv_loader *l, const struct rv_agent *a)
{
    const struct rv_pipeline *p = a->inner.pipeline;
    char hint[RV_HINT_MAX];

    for (size_t i = 0; i < p->inputs.n; i++)
        if (!gives(a, p->inputs.items[i]))
            rv_findings_add_as(
                l->findings, RV_SEVERITY_ERROR, "missing_input",
                a->inner.inputs_src.line > 0 ? &a->inner.inputs_src : &a->inner.src, "add it to `inputs` of the stage",
                "stage \"%s\": pipeline \"%s\" wants the input \"%s\"", a->name, a->inner.file, p->inputs.items[i]);
    for (size_t i = 0; a->inner.inputs && i < a->inner.inputs->n; i++) {
        const char *name = a->inner.inputs->keys[i];
        if (wants(p, name))
            continue;
        config_name_hint(l->findings, rv_str_of(name), "inputs", p->inputs.items, p->inputs.n, hint);
        rv_findings_add_as(l->findings, RV_SEVERITY_ERROR, "unknown_input", &a->inner.inputs->items[i].node->src, hint,
                           "stage \"%s\": pipeline \"%s\" does not know the input \"%s\"", a->name, a->inner.file,
                           name);
    }
}

/* --- kinds of work --- */

static void check_kinds(struct rv_loader *l, const struct rv_agent *a)
{
    const char *mine = a->inner.file[0] ? "pipeline" : a->set_src.line > 0 ? "set" : NULL;
    const char *other = a->inner.file[0] && a->set_src.line > 0 ? "set"
                        : a->declared.name[0]                   ? "agent"
                        : a->has_llm                            ? "has_llm"
                        : a->has_tools                          ? "has_tools"
                                                                : NULL;
    char text[160];

    if (!mine || !other)
        return;
    snprintf(text, sizeof text, "%s and %s are two kinds of work, and a stage has one", mine, other);
    finding(l, a, "two_kinds", a->inner.file[0] ? &a->inner.src : &a->set_src, "write two stages", text);
}

static void check_each(struct rv_loader *l, const struct rv_agent *a)
{
    const struct rv_agent_each *each = &a->each;
    const struct {
        const char *key;
        const struct rv_src *src;
    } keys[] = {{"max_items", &each->max_items_src},
                {"max_parallel", &each->max_parallel_src},
                {"on_item_error", &each->on_error_src}};
    char text[80];

    if (each->src.line > 0) {
        if (each->max_items == 0 && each->max_items_src.line == 0)
            finding(l, a, "no_max_items", &each->src, "for example max_items: 100: a longer list fails the stage",
                    "for_each needs max_items");
        if (a->ask.src.line > 0)
            finding(l, a, "bad_for_each", &a->ask.src, "ask in the stage that follows",
                    "a stage with for_each cannot ask a person");
        return;
    }
    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (keys[i].src->line > 0) {
            snprintf(text, sizeof text, "%s is for a stage with for_each", keys[i].key);
            finding(l, a, "bad_for_each", keys[i].src, "add for_each, or leave it out", text);
        }
}

static void check_inner_keys(struct rv_loader *l, const struct rv_agent *a)
{
    if (a->inner.file[0]) {
        if (a->limits.max_retries > 0)
            finding(l, a, "retry_of_pipeline", &a->inner.src,
                    "give max_retries to the stages of the inner pipeline, or loop back to this stage",
                    "max_retries does not repeat a pipeline");
        return;
    }
    if (a->inner.inputs_src.line > 0)
        finding(l, a, NULL, &a->inner.inputs_src, "add pipeline, or leave it out",
                "inputs is for a stage with pipeline");
    if (a->inner.outputs_src.line > 0)
        finding(l, a, NULL, &a->inner.outputs_src, "add pipeline, or leave it out",
                "outputs is for a stage with pipeline");
}

void config_check_work(struct rv_loader *l)
{
    const struct rv_within here = {l->p->file, l->opts->within ? l->opts->within->up : NULL,
                                   l->opts->within ? l->opts->within->outermost : l};

    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++) {
        struct rv_agent *a = &l->p->agents[i];
        check_kinds(l, a);
        check_each(l, a);
        check_inner_keys(l, a);
        if (a->inner.file[0])
            load(l, a, &here);
        if (a->inner.pipeline)
            check_inputs(l, a);
    }
}

struct rv_pipeline *const *rv_pipeline_inner(const struct rv_pipeline *p, size_t *n)
{
    *n = p->internal->n_inner;
    return p->internal->inner;
}
