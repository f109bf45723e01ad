/* From a name to a document: the sources in their order, answers that are cached, and a document put into the store. */
#include "coreengine/app/agents/agents_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHORT 200               /* characters of a description that stand for the whole text: two lines of a list */
#define MAX_JSON  ((size_t)4 << 20) /* of a document: what is short in YAML may be longer as JSON */

/* --- cached answers. The asking user is part of the key: a user's own agent is not visible to others --- */

void agents_entry_fini(struct rv_agents_entry *agent)
{
    rv_agentdoc_free(agent->doc);
    free(agent->text);
    free(agent->place);
    *agent = (struct rv_agents_entry){.text = NULL};
}

static void kept_free(struct rv_agents_kept *kept)
{
    if (!kept)
        return;
    agents_entry_fini(&kept->agent);
    free(kept->name);
    free(kept->tenant);
    free(kept->user);
    free(kept);
}

static void cache_clear(struct rv_agents_cache *c)
{
    for (size_t i = 0; i < c->n; i++)
        kept_free(c->items[i]);
    c->n = 0;
}

static void drop(struct rv_agents_cache *c, size_t at)
{
    kept_free(c->items[at]);
    c->n--;
    memmove(&c->items[at], &c->items[at + 1], (c->n - at) * sizeof *c->items);
}

static const char *tenant_of(const struct rv_store_scope *scope)
{
    return scope->tenant ? scope->tenant : RV_STORE_TENANT;
}

static bool is_for(const struct rv_agents_kept *kept, const struct rv_store_scope *scope, const char *name)
{
    if (strcmp(kept->name, name) != 0 || strcmp(kept->tenant, tenant_of(scope)) != 0)
        return false;
    return kept->user && scope->user ? strcmp(kept->user, scope->user) == 0 : !kept->user && !scope->user;
}

static const struct rv_agents_entry *cache_recall(struct rv_agents_cache *c, const struct rv_store_scope *scope,
                                                  const char *name, int64_t now_us)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!is_for(c->items[i], scope, name))
            continue;
        if (now_us < c->items[i]->until_us)
            return &c->items[i]->agent;
        drop(c, i);
        return NULL;
    }
    return NULL;
}

static const struct rv_agents_entry *cache_keep(struct rv_agents_cache *c, const struct rv_store_scope *scope,
                                                const char *name, int64_t until_us, struct rv_agents_entry *agent)
{
    struct rv_agents_kept *kept = calloc(1, sizeof *kept);

    if (kept) {
        kept->name = rv_str_dup(rv_str_of(name));
        kept->tenant = rv_str_dup(rv_str_of(tenant_of(scope)));
        kept->user = scope->user ? rv_str_dup(rv_str_of(scope->user)) : NULL;
    }
    if (!kept || !kept->name || !kept->tenant || (scope->user && !kept->user)) {
        kept_free(kept);
        agents_entry_fini(agent);
        return NULL;
    }
    kept->agent = *agent;
    *agent = (struct rv_agents_entry){.text = NULL};
    kept->until_us = until_us;
    if (c->n == RV_AGENTS_MAX_CACHE)
        drop(c, 0);
    c->items[c->n++] = kept;
    return &kept->agent;
}

/* --- from a document to a row of the store --- */

/* A document that becomes a row. Borrowed. */
struct new_row {
    const char *tenant, *user; /* its owner; tenant NULL: the first one */
    const struct rv_agentdoc *doc;
    rv_str text;                /* as it was given */
    const char *source, *place; /* where it came from */
};

static int put_row(rv_agents *a, const struct new_row *from, enum rv_schema_put mode, bool *changed, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf json = RV_BUF_INIT(MAX_JSON), description = RV_BUF_INIT((size_t)4 * MAX_SHORT);
    const struct rv_agentdoc *doc = from->doc;
    rv_jw w = rv_jw_on(&json);
    struct rv_schema_row row = {.tenant = from->tenant ? from->tenant : RV_STORE_TENANT,
                                .user = from->user,
                                .name = doc->name,
                                .kind = RV_AGENTS_KIND, /* whatever else it calls itself (p8 1.5) */
                                .version = doc->version,
                                .content = rv_str_of(doc->description),
                                .document = from->text,
                                .source = from->source,
                                .place = from->place};
    int rc;

    rv_agentdoc_write_json(doc, &w);
    if (!doc->short_description)
        rv_buf_add_str(&description, rv_utf8_first(rv_str_of(doc->description), MAX_SHORT));
    if ((rc = rv_buf_check(&json, "document of an agent", err)) < 0 ||
        (rc = rv_buf_check(&description, "description of an agent", err)) < 0)
        return rc;
    row.json_schema = rv_buf_str(&json);
    row.description = doc->short_description ? doc->short_description : rv_buf_cstr(&description);
    return rv_store_put_schema(a->store, &row, mode, a->clock.now_us(a->clock.self), changed, err);
}

static int check_owner(const struct rv_store_scope *scope, bool user_own, rv_err **err)
{
    if (!user_own || (scope->user && *scope->user))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "an agent of one's own needs a user");
}

/* The first fault as an error. */
static int check_use(const struct rv_agentdoc *doc, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    int rc = findings ? rv_agents_check(doc, findings, err) : RV_FAIL(err, RV_E_NOMEM, "check an agent");

    if (rc == 0 && rv_findings_n_errors(findings) > 0) {
        struct rv_finding f = rv_findings_at(findings, 0);
        rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "%s", f.text);
    }
    rv_findings_free(findings);
    return rc;
}

int rv_agents_put(rv_agents *a, const struct rv_store_scope *scope, const struct rv_agent_text *given, bool *changed,
                  rv_err **err)
{
    struct rv_agentdoc *doc = NULL;
    bool written = false;
    int rc;

    if (!a->store)
        return RV_FAIL(err, RV_E_STATE, "there is no store to put an agent into");
    rc = check_owner(scope, given->user_own, err);
    if (rc == 0)
        rc = rv_agentdoc_read(given->text, given->file ? given->file : "<document>", &doc, err);
    if (rc == 0)
        rc = check_use(doc, err);
    if (rc < 0) {
        rv_agentdoc_free(doc);
        return rc;
    }
    const struct new_row from = {scope->tenant, given->user_own ? scope->user : "", doc, given->text, "person",
                                 given->file};
    rc = put_row(a, &from, RV_SCHEMA_PUT, &written, err);
    if (rc == 0 && changed)
        *changed = written;
    rv_agentdoc_free(doc);
    return rc < 0 ? RV_WRAP(err, rc, "put agent \"%s\" into the store", given->file ? given->file : "<document>") : 0;
}

/* --- what the engine needs of a document beyond what makes it one --- */

int rv_agents_check(const struct rv_agentdoc *doc, rv_findings *findings, rv_err **err)
{
    json_object *json = NULL;
    rv_schema *schema = NULL;
    rv_err *fault = NULL;

    int rc = rv_agentdoc_build_output_schema(doc, RV_UNSET, &json, err);
    if (rc < 0 || !json)
        return rc;
    rc = rv_schema_compile(json, "the output", &schema, &fault);
    rv_schema_free(schema);
    json_object_put(json);
    if (rc < 0 && !rv_err_is(fault, RV_E_NOMEM)) {
        rc = RV_WRAP(&fault, rc, "agent \"%s\"", doc->name);
        rv_findings_add_err(findings, RV_SEVERITY_ERROR, &doc->properties_src, fault);
        rc = 0;
    } else if (rc < 0) {
        rc = RV_FAIL(err, RV_E_NOMEM, "check agent \"%s\"", doc->name);
    }
    rv_err_free(fault);
    return rc;
}

/* --- the order of the sources --- */

/* The agent as a capability or a file has it. */
struct given {
    rv_str text;
    const char *source, *place;
};

static bool find_given(rv_agents *a, const char *name, struct given *out)
{
    const struct rv_agents_file *file;
    const char *found, *capability;

    for (size_t i = 0; a->plugins && rv_plugins_agent_at(a->plugins, i, &found, &out->text, &capability); i++) {
        if (strcmp(found, name) != 0)
            continue;
        out->source = "built-in";
        out->place = capability;
        return true;
    }
    file = agents_find_file(a, name);
    if (!file)
        return false;
    *out = (struct given){{file->text, file->len}, "file", file->path};
    return true;
}

const char *rv_agents_hidden(const rv_agents *a, const char *name, const struct rv_agents_found *found)
{
    bool is_file = strcmp(found->source, "file") == 0;

    if (!is_file && strcmp(found->source, "built-in") != 0)
        return NULL;
    for (size_t i = 0; i < a->files.n; i++) {
        const struct rv_agents_file *f = &a->files.items[i];
        size_t len = strlen(f->path);
        bool is_found = is_file && strncmp(f->path, found->place, len) == 0 &&
                        (!found->place[len] || found->place[len] == ' '); /* a blank: with AGENT_* variables */
        if (f->name && strcmp(f->name, name) == 0 && !is_found)
            return f->path;
    }
    return NULL;
}

static int find_row(rv_agents *a, const struct rv_store_scope *scope, const char *name, struct rv_schema_row *row,
                    bool *has_row, rv_err **err)
{
    rv_err *why = NULL;
    int rc;

    *has_row = false;
    if (!a->store)
        return 0;
    rc = rv_store_find_schema(a->store, scope, RV_AGENTS_KIND, name, row, &why);
    *has_row = rc == 0;
    if (rc < 0 && rc != RV_E_NOT_FOUND)
        rv_err_pass(err, why);
    else
        rv_err_free(why);
    return rc == RV_E_NOT_FOUND ? 0 : rc;
}

static bool is_registered(const struct rv_schema_row *row)
{
    return row->source && (strcmp(row->source, "built-in") == 0 || strcmp(row->source, "file") == 0);
}

/* Read the document; what is wrong with it is wrapped in where it is from. */
static int take(struct rv_agents_entry *out, const char *name, rv_str text, const char *source, const char *place,
                rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf file = RV_BUF_INIT(RV_AGENTS_MAX_PATH);
    int rc;

    if (strcmp(source, "file") == 0)
        rv_buf_puts(&file, place);
    else
        rv_buf_printf(&file, "<%s>", name);
    out->text = rv_str_dup(text);
    out->len = text.len;
    out->source = source;
    out->place = rv_str_dup(rv_str_of(place));
    if (!out->text || !out->place || file.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read agent \"%s\"", name);
    rc = rv_agentdoc_read((rv_str){out->text, out->len}, rv_buf_cstr(&file), &out->doc, err);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = RV_WRAP(err, RV_E_INVALID, "agent \"%s\" of the %s \"%s\" is not an agent", name,
                     strcmp(source, "built-in") == 0 ? "capability" : source, place);
    return rc;
}

/* All users share the built-in agents. An agent of a folder belongs to the user who named the folder: other users
 * must not see it, and naming another folder must not change what they get. */
static const char *owner_of(const struct rv_store_scope *scope, const struct rv_agents_entry *agent)
{
    return strcmp(agent->source, "file") == 0 && scope->user ? scope->user : "";
}

/* The agent is usable even if the store cannot be written now. */
static int register_it(rv_agents *a, const struct rv_store_scope *scope, const struct rv_agents_entry *agent,
                       rv_err **err)
{
    bool changed = false;
    rv_err *why = NULL;
    const struct new_row from = {scope->tenant, owner_of(scope, agent),
                                 agent->doc,    (rv_str){agent->text, agent->len},
                                 agent->source, agent->place};
    int rc = put_row(a, &from, RV_SCHEMA_REGISTER, &changed, &why);

    if (rc == RV_E_NOMEM) {
        rv_err_free(why);
        return RV_FAIL(err, RV_E_NOMEM, "register agent \"%s\"", agent->doc->name);
    }
    if (rc < 0)
        RV_LOG(a->log, WARN, "agent.register_failed", RV_F_TEXT("agent", agent->doc->name), RV_F_ERR("error", why));
    else if (changed)
        RV_LOG(a->log, INFO, "agent.register", RV_F_TEXT("agent", agent->doc->name), RV_F_TEXT("source", agent->source),
               RV_F_TEXT("place", agent->place));
    rv_err_free(why);
    return 0;
}

int agents_look_up(rv_agents *a, const struct rv_store_scope *scope, const char *name, bool registers,
                   struct rv_agents_entry *out, rv_err **err)
{
    struct rv_schema_row row = {.id = NULL};
    struct given given;
    bool has_row, is_given = find_given(a, name, &given);
    int rc = find_row(a, scope, name, &row, &has_row, err);

    if (rc < 0)
        return rc;
    if (has_row && (!is_given || !is_registered(&row))) {
        rc = take(out, name, row.document, "store", row.id ? row.id : "", err);
    } else if (is_given) {
        rc = take(out, name, given.text, given.source, given.place, err);
        if (rc == 0 && registers && !(has_row && rv_str_eq(row.document, given.text)))
            rc = register_it(a, scope, out, err);
    } else {
        rc = agents_fail_unknown(a, scope, name, err);
    }
    rv_schema_row_fini(&row);
    return rc;
}

/* --- all of them, before they are used --- */

/* Does the store have a row of this agent with the text of its source? A row that a person has put stays in any case.
 */
static int is_current(rv_agents *a, const struct rv_store_scope *scope, const char *name, bool *out, rv_err **err)
{
    struct rv_schema_row row = {.id = NULL};
    struct given given;
    bool has_row = false;
    int rc = find_row(a, scope, name, &row, &has_row, err);

    if (rc == 0)
        *out =
            !find_given(a, name, &given) || (has_row && (!is_registered(&row) || rv_str_eq(row.document, given.text)));
    rv_schema_row_fini(&row);
    return rc;
}

static int register_one(rv_agents *a, const struct rv_store_scope *scope, const char *name, size_t *n, rv_err **err)
{
    struct rv_agents_entry agent = {.text = NULL};
    bool current = false;
    rv_err *fault = NULL;
    int rc = is_current(a, scope, name, &current, err);

    if (rc < 0 || current)
        return rc;
    rc = a->registers ? agents_look_up(a, scope, name, true, &agent, &fault) : 0;
    agents_entry_fini(&agent);
    if (rc == RV_E_NOMEM || rv_err_is(fault, RV_E_NOMEM)) {
        rv_err_free(fault);
        return RV_FAIL(err, RV_E_NOMEM, "register agent \"%s\"", name);
    }
    rv_err_free(fault); /* a document with faults is told to the user who asks for it */
    *n += rc == 0;
    return 0;
}

int rv_agents_register(rv_agents *a, const struct rv_store_scope *scope, size_t *n, rv_err **err)
{
    const char *name, *capability;
    rv_str text;
    int rc = a->store ? agents_catch_up(a, err) : 0;

    *n = 0;
    if (rc < 0 || !a->store)
        return rc;
    for (size_t i = 0; rc == 0 && a->plugins && rv_plugins_agent_at(a->plugins, i, &name, &text, &capability); i++)
        rc = register_one(a, scope, name, n, err);
    for (size_t i = 0; rc == 0 && i < a->files.n; i++)
        if (a->files.items[i].name && !a->files.items[i].fault)
            rc = register_one(a, scope, a->files.items[i].name, n, err);
    return rc;
}

/* --- deleted --- */

/* A row that registering wrote was not stored by a person: deleted, it would be registered again. */
int rv_agents_delete(rv_agents *a, const struct rv_store_scope *scope, const char *name, rv_err **err)
{
    struct rv_schema_row row = {.id = NULL};
    struct given given;
    bool has_row = false;
    int rc = agents_catch_up(a, err);

    if (rc == 0)
        rc = find_row(a, scope, name, &row, &has_row, err);
    if (rc == 0 && find_given(a, name, &given) && (!has_row || is_registered(&row))) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "agent \"%s\" is %s %s and cannot be deleted", name,
                     strcmp(given.source, "file") == 0 ? "in the file" : "built in by", given.place);
        rv_err_set_hint(err, "to change it store an agent of the same name, which takes precedence");
    } else if (rc == 0 && (!has_row || strcmp(row.user, scope->user ? scope->user : "") != 0)) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the store has no agent \"%s\" of this owner", name);
    } else if (rc == 0) {
        rc = rv_store_delete_schema(a->store, scope, RV_AGENTS_KIND, name, a->clock.now_us(a->clock.self), err);
    }
    rv_schema_row_fini(&row);
    return rc;
}

/* --- made, asked, freed --- */

static int copy_dirs(rv_agents *a, const struct rv_agents_opts *opts, rv_err **err)
{
    a->dirs = calloc(opts->n_dirs + 1, sizeof *a->dirs);
    if (!a->dirs)
        return RV_FAIL(err, RV_E_NOMEM, "remember the folders of agents");
    for (size_t i = 0; i < opts->n_dirs; i++) {
        if (!opts->dirs[i] || !*opts->dirs[i]) /* off, and not the present folder (p8 W10) */
            continue;
        a->dirs[a->n_dirs] = rv_str_dup(rv_str_of(opts->dirs[i]));
        if (!a->dirs[a->n_dirs])
            return RV_FAIL(err, RV_E_NOMEM, "remember the folders of agents");
        a->n_dirs++;
    }
    return 0;
}

int rv_agents_new(const struct rv_agents_opts *opts, rv_agents **out, rv_err **err)
{
    rv_agents *a = calloc(1, sizeof *a);
    int rc;

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "look for agents");
    a->store = opts->store;
    a->plugins = opts->plugins;
    a->registers = opts->registers && opts->store;
    a->is_unkept = opts->is_unkept;
    a->obeys_env = opts->obeys_env;
    a->clock = opts->clock.now_us ? opts->clock : rv_clock_system();
    a->log = opts->log;
    rc = copy_dirs(a, opts, err);
    if (rc < 0) {
        rv_agents_free(a);
        return rc;
    }
    *out = a;
    return 0;
}

void rv_agents_forget(rv_agents *a)
{
    cache_clear(&a->cache);
    agents_files_fini(&a->files);
}

void rv_agents_free(rv_agents *a)
{
    if (!a)
        return;
    rv_agents_forget(a);
    for (size_t i = 0; i < a->n_dirs; i++)
        free(a->dirs[i]);
    free(a->dirs);
    free(a);
}

int agents_catch_up(rv_agents *a, rv_err **err)
{
    int64_t version = 0;
    bool changed = false;

    if (a->is_held && a->is_fresh)
        return 0;
    int rc = agents_refresh_files(a, a->clock.now_us(a->clock.self), &changed, err);

    if (rc == 0 && a->store)
        rc = rv_store_read_schemas_version(a->store, &version, err);
    if (rc < 0)
        return rc;
    if (changed || version != a->schemas_version)
        cache_clear(&a->cache);
    a->schemas_version = version;
    a->is_fresh = true;
    return 0;
}

void rv_agents_hold(rv_agents *a, bool holds)
{
    a->is_held = holds;
    a->is_fresh = false;
}

/* Before it is part of a message, a query or anything else. */
static int check_name(const char *name, rv_err **err)
{
    rv_str given = {name, strnlen(name, RV_AGENTDOC_MAX_NAME + 1)};
    int rc;

    if (rv_agentdoc_is_name(given))
        return 0;
    if (!rv_utf8_valid(given, NULL))
        given = RV_STR_LIT("");
    rc = RV_FAIL(err, RV_E_INVALID, "\"%.*s\" is not a name of an agent", RV_STR_ARG(rv_utf8_cut(given, 80)));
    if (memchr(given.ptr, '/', given.len))
        rv_err_set_hint(err, "give the name that the document has, and its folder as schema_dir");
    else
        rv_err_set_hint(err, "a name is a word of letters, digits, \"-\", \"_\" and \".\", of at most %d bytes",
                        RV_AGENTDOC_MAX_NAME);
    return rc;
}

static const char *environment(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

/* The document as the environment changes it, in place of the one that was found. */
static int obey_env(struct rv_agents_entry *agent, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    struct rv_agents_entry changed = {.source = agent->source};
    int rc = rv_agentdoc_dup_with_env(agent->doc, environment, NULL, &changed.doc, err);

    if (rc < 0 || !changed.doc)
        return rc;
    rv_agentdoc_write_yaml(changed.doc, &text);
    rc = rv_buf_check(&text, "the agent document", err);
    if (rc == 0) {
        changed.text = rv_str_dup(rv_buf_str(&text));
        changed.len = text.len;
        changed.place = rv_str_dup(rv_str_of(changed.doc->src.file));
        if (!changed.text || !changed.place)
            rc = RV_FAIL(err, RV_E_NOMEM, "change agent \"%s\"", changed.doc->name);
    }
    rv_buf_fini(&text);
    if (rc == 0) {
        struct rv_agents_entry found = *agent;
        *agent = changed;
        changed = found;
    }
    agents_entry_fini(&changed);
    return rc;
}

static int ask(rv_agents *a, const struct rv_store_scope *scope, const char *name, const struct rv_agents_entry **out,
               rv_err **err)
{
    struct rv_agents_entry agent = {.text = NULL};
    int64_t now_us = a->clock.now_us(a->clock.self);
    int rc = check_name(name, err);

    if (rc == 0)
        rc = agents_catch_up(a, err);
    if (rc < 0 || (*out = cache_recall(&a->cache, scope, name, now_us)))
        return rc;
    rc = agents_look_up(a, scope, name, a->registers, &agent, err);
    if (rc == 0 && a->obeys_env)
        rc = obey_env(&agent, err);
    if (rc == 0)
        return (*out = cache_keep(&a->cache, scope, name, now_us + RV_AGENTS_TTL_US, &agent))
                   ? 0
                   : RV_FAIL(err, RV_E_NOMEM, "keep agent \"%s\"", name);
    agents_entry_fini(&agent);
    return rc;
}

int rv_agents_find(rv_agents *a, const struct rv_store_scope *scope, const char *name, struct rv_agents_found *out,
                   rv_err **err)
{
    const struct rv_agents_entry *agent = NULL;
    int rc = ask(a, scope, name, &agent, err);

    if (rc < 0)
        return rc;
    *out = (struct rv_agents_found){agent->doc, {agent->text, agent->len}, agent->source, agent->place};
    return 0;
}
