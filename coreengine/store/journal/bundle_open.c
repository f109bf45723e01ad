/* Opening a bundle: its pipeline and script are read by the same loaders as files are, with the bundle in place of the
 * disk. A store may have been edited by hand: every value is looked at. */
#include "coreengine/store/journal/bundle_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

static const char *const bundle_keys[] = {"reeve_bundle", "pipeline", "files", "agents", "script", "catalog", "mcp"};
static const char *const pipeline_keys[] = {"file", "dir", "base", "text", "models", "inner"};
static const char *const model_keys[] = {"provider", "model", "price", "max_input_tokens", "replaces"};
static const char *const price_keys[] = {"input", "output", "cached", "cache_write"};
static const char *const agent_keys[] = {"place", "text"};
static const char *const script_keys[] = {"file", "text"};

/* The files by the paths they were read from; base stands for dir when the pipeline is opened from elsewhere. */
struct kept_files {
    json_object *by_path;
    const char *dir, *base; /* base NULL: paths are as they were */
};

static json_object *file_below_base(const struct kept_files *k, const char *path)
{
    size_t n = strlen(k->base);
    rv_buf key = RV_BUF_INIT(RV_BUNDLE_MAX_BYTES);
    json_object *text = NULL;

    if (strncmp(path, k->base, n) != 0 || path[n] != '/')
        return NULL;
    if (strcmp(k->dir, ".") != 0)
        rv_buf_printf(&key, "%s/", k->dir);
    rv_buf_puts(&key, path + n + 1);
    if (key.rc == 0)
        json_object_object_get_ex(k->by_path, rv_buf_cstr(&key), &text);
    rv_buf_fini(&key);
    return text;
}

static bool find_file(void *self, const char *path, rv_str *out)
{
    const struct kept_files *k = self;
    json_object *text = NULL;

    if (!json_object_object_get_ex(k->by_path, path, &text) && k->base)
        text = file_below_base(k, path);
    if (!json_object_is_type(text, json_type_string))
        return false;
    *out = rv_json_str(text);
    return true;
}

static int check_version(json_object *root, rv_err **err)
{
    int64_t version = 0;

    if (!json_object_is_type(root, json_type_object) || !rv_json_get_int(root, "reeve_bundle", &version) || version < 1)
        return RV_FAIL(err, RV_E_INVALID, "it is not a bundle: \"reeve_bundle\" must be a version from 1");
    if (version > RV_BUNDLE_VERSION) {
        RV_IGNORE(RV_FAIL(err, RV_E_VERSION, "it has version %lld, this engine reads up to %d", (long long)version,
                          RV_BUNDLE_VERSION),
                  "returned below, with a hint");
        rv_err_set_hint(err, "use the newer reeve that wrote it");
        return RV_E_VERSION;
    }
    return journal_bundle_check_keys(root, "the bundle", bundle_keys, RV_COUNT(bundle_keys), err);
}

struct pipeline_parts {
    const char *file, *dir, *base, *text;
    struct rv_chosen_model *models; /* owned */
    size_t n_models;
    struct rv_inner_models *inner; /* owned, with their files and models */
    size_t n_inner;
};

static void parts_fini(struct pipeline_parts *parts)
{
    for (size_t i = 0; i < parts->n_inner; i++) {
        free((char *)(uintptr_t)parts->inner[i].file);
        free(parts->inner[i].models);
    }
    free(parts->inner);
    free(parts->models);
}

/* A number from 0; *out stays as it is when key is absent and that is allowed. */
static int read_amount(json_object *obj, const char *key, bool required, int64_t *out, rv_err **err)
{
    if (!required && !json_object_object_get_ex(obj, key, NULL))
        return 0;
    if (!rv_json_get_int(obj, key, out) || *out < 0)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be an integer from 0", key);
    return 0;
}

static int read_price(json_object *value, struct rv_chosen_model *m, rv_err **err)
{
    json_object *price = NULL;
    int rc = journal_bundle_object(value, "price", false, &price, err);

    m->price = (struct rv_price){.cached = RV_UNSET, .cache_write = RV_UNSET};
    if (rc < 0 || (rc = read_amount(value, "max_input_tokens", false, &m->max_input_tokens, err)) < 0 || !price)
        return rc;
    if ((rc = journal_bundle_check_keys(price, "a price", price_keys, RV_COUNT(price_keys), err)) < 0 ||
        (rc = read_amount(price, "input", true, &m->price.input, err)) < 0 ||
        (rc = read_amount(price, "output", true, &m->price.output, err)) < 0 ||
        (rc = read_amount(price, "cached", false, &m->price.cached, err)) < 0 ||
        (rc = read_amount(price, "cache_write", false, &m->price.cache_write, err)) < 0)
        return rc;
    m->has_price = true;
    return 0;
}

/* *out is the caller's, also after a failure. */
static int read_models(json_object *map, struct rv_chosen_model **out, size_t *n, rv_err **err)
{
    int rc;

    *out = calloc((size_t)json_object_object_length(map) + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "read \"models\"");
    json_object_object_foreach (map, role, value) {
        struct rv_chosen_model *m = &(*out)[(*n)++];
        m->role = role;
        if (!value)
            continue;
        if (!json_object_is_type(value, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "model \"%s\" must be an object or null, not %s", role,
                           rv_json_type_text(value));
        m->replaces = rv_json_bool_or(value, "replaces", m->replaces);
        if ((rc = journal_bundle_check_keys(value, "a model", model_keys, RV_COUNT(model_keys), err)) < 0 ||
            (rc = journal_bundle_text(value, "provider", true, &m->provider, err)) < 0 ||
            (rc = journal_bundle_text(value, "model", true, &m->model, err)) < 0 ||
            (rc = read_price(value, m, err)) < 0)
            return RV_WRAP(err, rc, "model \"%s\"", role);
    }
    return 0;
}

/* The path that a file below dir has when the pipeline is opened below base. */
static char *path_below(const struct pipeline_parts *parts, const char *base, const char *path)
{
    size_t n = strcmp(parts->dir, ".") == 0 ? 0 : strlen(parts->dir);
    rv_buf out = RV_BUF_INIT(RV_BUNDLE_MAX_BYTES);

    if (!base || path[0] == '/' || (n > 0 && (strncmp(path, parts->dir, n) != 0 || path[n] != '/')))
        return rv_str_dup(rv_str_of(path));
    rv_buf_printf(&out, "%s/%s", base, path + (n > 0 ? n + 1 : 0));
    return rv_buf_steal(&out, NULL);
}

/* Bundles of before do not have it: then the environment says again. */
static int read_inner(json_object *obj, struct pipeline_parts *parts, const char *base, rv_err **err)
{
    json_object *map = NULL;
    int rc = journal_bundle_object(obj, "inner", false, &map, err);

    if (rc < 0 || !map)
        return rc;
    parts->inner = calloc((size_t)json_object_object_length(map) + 1, sizeof *parts->inner);
    if (!parts->inner)
        return RV_FAIL(err, RV_E_NOMEM, "read \"inner\"");
    json_object_object_foreach (map, file, models) {
        struct rv_inner_models *in = &parts->inner[parts->n_inner];
        if (!json_object_is_type(models, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "the models of \"%s\" must be an object, not %s", file,
                           rv_json_type_text(models));
        in->file = path_below(parts, base, file);
        if (!in->file)
            return RV_FAIL(err, RV_E_NOMEM, "read \"inner\"");
        parts->n_inner++;
        if ((rc = read_models(models, &in->models, &in->n_models, err)) < 0)
            return RV_WRAP(err, rc, "file \"%s\"", file);
    }
    return 0;
}

/* The source of documents of an opened bundle: only the documents that the run was started with. */
static int find_agent(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    json_object *agents = self, *entry = NULL;
    const char *said = NULL;
    int rc;

    if (!agents || !json_object_object_get_ex(agents, name, &entry))
        return RV_FAIL(err, RV_E_NOT_FOUND, "the bundle has no agent \"%s\"", name);
    if (!json_object_is_type(entry, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "it must be an object, not %s", rv_json_type_text(entry));
    if ((rc = journal_bundle_check_keys(entry, "an agent", agent_keys, RV_COUNT(agent_keys), err)) < 0 ||
        (rc = journal_bundle_text(entry, "place", true, place, err)) < 0 ||
        (rc = journal_bundle_text(entry, "text", true, &said, err)) < 0)
        return rc;
    *text = rv_str_of(said);
    return 0;
}

/* What a bundle's pipeline is loaded with. Borrowed. */
struct load_from {
    const char *base;
    json_object *files, *agents;
    bool offline;
};
static int load_pipeline(rv_bundle *b, const struct pipeline_parts *parts, const struct load_from *from, rv_err **err)
{
    const struct rv_agent_source source = {find_agent, from->agents};
    struct kept_files kept = {from->files, parts->dir, from->base};
    const struct rv_pipeline_opts opts = {.file = find_file,
                                          .self = &kept,
                                          .models = parts->models,
                                          .n_models = parts->n_models,
                                          .inner = parts->inner,
                                          .n_inner = parts->n_inner,
                                          .offline = from->offline};
    rv_findings *findings = rv_findings_new();
    int rc;

    if (!findings)
        return RV_FAIL(err, RV_E_NOMEM, "open a bundle");
    rc = rv_pipeline_parse_with(
        &(const struct rv_pipeline_source){rv_str_of(parts->text), parts->file, from->base ? from->base : parts->dir},
        &opts, findings, &b->pipeline, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0 && b->pipeline)
        rc = rv_pipeline_bind_agents(b->pipeline, &source, findings, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0 && (!b->pipeline || !b->pipeline->is_sound))
        rc = RV_FAIL(err, RV_E_INVALID, "it cannot be run");
    rv_findings_free(findings);
    return rc < 0 ? RV_WRAP(err, rc, "pipeline \"%s\"", parts->file) : 0;
}

static int open_pipeline(rv_bundle *b, json_object *root, bool offline, rv_err **err)
{
    struct pipeline_parts parts = {.file = NULL};
    json_object *obj = NULL, *files = NULL, *agents = NULL, *models = NULL;
    int rc;

    if ((rc = journal_bundle_object(root, "pipeline", true, &obj, err)) < 0 ||
        (rc = journal_bundle_object(root, "agents", false, &agents, err)) < 0 ||
        (rc = journal_bundle_object(root, "files", true, &files, err)) < 0 ||
        (rc = journal_bundle_check_keys(obj, "\"pipeline\"", pipeline_keys, RV_COUNT(pipeline_keys), err)) < 0 ||
        (rc = journal_bundle_text(obj, "file", true, &parts.file, err)) < 0 ||
        (rc = journal_bundle_text(obj, "dir", true, &parts.dir, err)) < 0 ||
        (rc = journal_bundle_text(obj, "base", false, &parts.base, err)) < 0 ||
        (rc = journal_bundle_text(obj, "text", true, &parts.text, err)) < 0 ||
        (rc = journal_bundle_object(obj, "models", true, &models, err)) < 0)
        return rc;
    const char *base = offline ? NULL : parts.base; /* no file is read then, and messages stay short */
    rc = read_models(models, &parts.models, &parts.n_models, err);
    if (rc == 0)
        rc = read_inner(obj, &parts, base, err);
    if (rc == 0)
        rc = load_pipeline(
            b, &parts, &(const struct load_from){.base = base, .files = files, .agents = agents, .offline = offline},
            err);
    if (rc == 0 && parts.base && !(b->base = rv_str_dup(rv_str_of(parts.base))))
        rc = RV_FAIL(err, RV_E_NOMEM, "open a bundle");
    parts_fini(&parts);
    return rc;
}

static int open_script(rv_bundle *b, json_object *root, rv_err **err)
{
    json_object *obj = NULL;
    const char *file = NULL, *text = NULL;
    rv_findings *findings;
    int rc = journal_bundle_object(root, "script", false, &obj, err);

    if (rc < 0 || !obj)
        return rc;
    if ((rc = journal_bundle_check_keys(obj, "\"script\"", script_keys, RV_COUNT(script_keys), err)) < 0 ||
        (rc = journal_bundle_text(obj, "file", true, &file, err)) < 0 ||
        (rc = journal_bundle_text(obj, "text", true, &text, err)) < 0)
        return rc;
    findings = rv_findings_new();
    if (!findings)
        return RV_FAIL(err, RV_E_NOMEM, "open a bundle");
    rc = rv_script_parse(rv_str_of(text), file, findings, &b->script, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0 && !b->script)
        rc = RV_FAIL(err, RV_E_INVALID, "it cannot be used");
    rv_findings_free(findings);
    return rc < 0 ? RV_WRAP(err, rc, "script \"%s\"", file) : 0;
}

static int open_parts(rv_bundle *b, json_object *root, bool offline, rv_err **err)
{
    json_object *catalog = NULL;
    int rc = check_version(root, err);

    if (rc < 0 || (rc = journal_bundle_object(root, "catalog", true, &catalog, err)) < 0 ||
        (rc = open_pipeline(b, root, offline, err)) < 0 || (rc = open_script(b, root, err)) < 0)
        return rc;
    rc = journal_bundle_catalog_read(catalog, &b->catalog, err);
    if (rc == 0)
        rc = journal_bundle_object(root, "mcp", false, &b->mcp, err);
    b->mcp = json_object_get(b->mcp); /* its content is checked when servers are called */
    if (rc == 0)
        journal_bundle_compose(b);
    return rc;
}

int rv_bundle_open(rv_str json, const struct rv_bundle_opts *opts, rv_bundle **out, rv_err **err)
{
    const struct rv_json_opts limits = {
        .max_bytes = RV_BUNDLE_MAX_BYTES, .max_depth = RV_BUNDLE_MAX_DEPTH, .what = "bundle"};
    json_object *root = NULL;
    rv_bundle *b;
    int rc = rv_json_parse(json, &limits, &root, err);

    if (rc < 0) /* a text that is not JSON is not a bundle */
        return rc == RV_E_PARSE ? RV_WRAP(err, RV_E_INVALID, "open a bundle") : RV_WRAP(err, rc, "open a bundle");
    b = calloc(1, sizeof *b);
    rc = b ? open_parts(b, root, opts && opts->offline, err) : RV_FAIL(err, RV_E_NOMEM, "open a bundle");
    json_object_put(root);
    if (rc < 0) {
        rv_bundle_free(b);
        return RV_WRAP(err, rc, "open a bundle");
    }
    *out = b;
    return 0;
}

void rv_bundle_free(rv_bundle *b)
{
    if (!b)
        return;
    rv_pipeline_free(b->pipeline);
    free(b->base);
    rv_script_free(b->script);
    journal_bundle_catalog_fini(&b->catalog);
    json_object_put(b->mcp);
    free(b);
}

const char *rv_bundle_base(const rv_bundle *b)
{
    return b->base;
}

const struct rv_pipeline *rv_bundle_pipeline(const rv_bundle *b)
{
    return b->pipeline;
}

json_object *rv_bundle_mcp(const rv_bundle *b)
{
    return b->mcp;
}

rv_script *rv_bundle_script(rv_bundle *b)
{
    return b->script;
}
