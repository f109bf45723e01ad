/* The rules of retention, read by a table that also makes their schema and their page; and the rules applied to a
 * store: which runs are deleted, by rules or with their sessions, and the space that no run refers to. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/upkeep.h"
#include "coreengine/base/base.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_ARENA      ((size_t)4 << 20) /* bytes of the rules once read: MAX_RULES fit */
#define MAX_RULES      200   /* of one file: a person writes each, and each is a pass over a table; more is an error */
#define MAX_DAYS       36500 /* a hundred years: to keep rows without an end, a rule names no days */
#define MAX_PRUNED     1000  /* rows in one transaction: it stays short for other writers */
#define MAX_COUNT      1000000000           /* of runs to keep; more than a store can have in practice */
#define KEYS_KEPT_US   (90 * RV_US_PER_DAY) /* of API keys that are revoked or expired: 90 days */
#define MAX_LIST_BYTES ((size_t)256 << 20)  /* of ids in memory: some millions; more is an error */
#define AT_ONCE        ((size_t)200)        /* runs that one transaction deletes at most */
#define SLICE_US       (10 * RV_US_PER_MS) /* for so long, where others wait meanwhile: short enough that they ask often */
#define PAUSE_NS       3000000 /* after it, so that one of them has its turn (see coreengine/store/sqlite/stmt.c) */

struct rv_retention {
    struct rv_retention_rule *rules; /* owned */
    size_t n;
    rv_arena *arena; /* of their texts */
};

struct raw_rule {
    const char *pipeline;
    struct rv_str_list status;
    int64_t days, count;
};
#define AT(field) offsetof(struct raw_rule, field)
static const struct rv_key rule_keys[] = {
    {.name = "status",
     .type = RV_KEY_STR_LIST,
     .offset = AT(status),
     .doc = "Runs of these statuses. Left out: `completed`, `terminated`, `failed` and `cancelled`. Runs that are not "
            "over (`ready`, `running`, `interrupted`) are only deleted by a rule that names their status, and never "
            "while a process runs them."},
    {.name = "pipeline",
     .type = RV_KEY_STR,
     .offset = AT(pipeline),
     .doc = "Runs of the pipeline of that name. Left out: of any."},
    {.name = "days",
     .type = RV_KEY_INT,
     .offset = AT(days),
     .default_text = "-1",
     .min = -1,
     .max = MAX_DAYS,
     .doc = "Keep them so many days after they were last touched; -1: without end."},
    {.name = "count",
     .type = RV_KEY_INT,
     .offset = AT(count),
     .default_text = "-1",
     .min = -1,
     .max = MAX_COUNT,
     .doc = "Keep the newest so many of those that the rule fits; -1: all."},
};

struct reading {
    rv_retention *r;
};

static void read_statuses(struct rv_key_reader *r, const struct rv_str_list *list, unsigned *out)
{
    for (size_t i = 0; i < list->n; i++) {
        enum rv_run_status status;
        rv_err *err = NULL;
        if (rv_run_status_of(rv_str_of(list->items[i]), &status, &err) < 0)
            rv_findings_add_err(r->findings, RV_SEVERITY_ERROR, &list->srcs[i], err);
        else
            *out |= 1u << status;
        rv_err_free(err);
    }
}

static void read_rules(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    rv_retention *out = ((struct reading *)target)->r;

    if (node->kind != RV_NODE_LIST) {
        rv_keys_add_wrong_type(r, node, "keep", "a list of rules");
        return;
    }
    if (node->n > MAX_RULES) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "keep has %zu rules; %d are allowed", node->n,
                            MAX_RULES);
        return;
    }
    out->rules = calloc(node->n + 1, sizeof *out->rules);
    if (!out->rules) {
        r->rc = RV_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < node->n && r->rc == 0; i++) {
        struct raw_rule raw = {0};
        struct rv_key_reader inner = {.arena = r->arena, .findings = r->findings, .owner_kind = "rule"};
        struct rv_retention_rule *rule = &out->rules[out->n++];
        rv_keys_read(&inner, node->items[i], rule_keys, RV_COUNT(rule_keys), &raw);
        r->rc = inner.rc;
        *rule = (struct rv_retention_rule){.pipeline = raw.pipeline,
                                           .max_age_us = raw.days < 0 ? -1 : raw.days * RV_US_PER_DAY,
                                           .max_count = raw.count,
                                           .line = node->items[i]->src.line};
        read_statuses(&inner, &raw.status, &rule->statuses);
        if (!raw.status.is_set)
            rule->statuses = RV_STATUSES_ENDED;
    }
}

static const struct rv_key file_keys[] = {
    {.name = "keep",
     .type = RV_KEY_CUSTOM,
     .read = read_rules,
     .required = true,
     .schema = "{\"type\":\"array\",\"maxItems\":" RV_LIMIT_TEXT(MAX_RULES) ",\"items\":{\"$ref\":\"#/$defs/rule\"}}",
     .doc = "Rules, in order. The first one that fits a run decides about it; a run that none fits stays."},
};

int rv_retention_read(const char *path, rv_findings *findings, rv_retention **out, rv_err **err)
{
    rv_yaml *doc = NULL;

    int rc = rv_yaml_read(path, findings, &doc, err);
    if (rc < 0 || !doc)
        return rc;
    rv_retention *r = calloc(1, sizeof *r);
    if (!r || !(r->arena = rv_arena_new(MAX_ARENA))) {
        rc = RV_FAIL(err, RV_E_NOMEM, "read rules \"%s\"", path);
    } else if (rv_yaml_root(doc)) { /* an empty file has no rules */
        struct reading reading = {r};
        struct rv_key_reader reader = {.arena = r->arena, .findings = findings, .owner_kind = "retention"};
        rv_keys_read(&reader, rv_yaml_root(doc), file_keys, RV_COUNT(file_keys), &reading);
        if (reader.rc < 0)
            rc = RV_FAIL(err, reader.rc, "read rules \"%s\"", path);
    }
    for (size_t i = 0; rc == 0 && i < r->n; i++) /* the document goes, its texts with it */
        if (!(r->rules[i].pipeline = rv_arena_dup(r->arena, rv_str_of(r->rules[i].pipeline))))
            rc = RV_FAIL(err, RV_E_NOMEM, "read rules \"%s\"", path);
    rv_yaml_free(doc);
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    if (rc < 0)
        rv_retention_free(r);
    else
        *out = r;
    return rc;
}

rv_retention *rv_retention_new_of_age(int64_t max_age_us)
{
    rv_retention *r = calloc(1, sizeof *r);

    if (!r || !(r->rules = calloc(1, sizeof *r->rules))) {
        free(r);
        return NULL;
    }
    r->n = 1;
    r->rules[0] = (struct rv_retention_rule){
        .pipeline = "", .statuses = RV_STATUSES_ENDED, .max_age_us = max_age_us, .max_count = -1};
    return r;
}

void rv_retention_free(rv_retention *r)
{
    if (!r)
        return;
    free(r->rules);
    rv_arena_free(r->arena);
    free(r);
}

static const struct rv_retention_rule *drops(rv_retention *r, const struct rv_run_row *row, int64_t now_us)
{
    for (size_t i = 0; i < r->n; i++) {
        struct rv_retention_rule *rule = &r->rules[i];
        if (!(rule->statuses & 1u << row->status) ||
            (rule->pipeline[0] && (!row->pipeline || strcmp(rule->pipeline, row->pipeline) != 0)))
            continue;
        rule->n_fit++;
        bool old = rule->max_age_us >= 0 && now_us - row->updated_us > rule->max_age_us;
        bool beyond = rule->max_count >= 0 && rule->n_fit > rule->max_count;
        return old || beyond ? rule : NULL;
    }
    return NULL;
}

void rv_retention_write_schema(rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "Rules of reeve gc");
    rv_jw_key(w, "allOf");
    rv_jw_arr(w);
    rv_keys_write_schema(file_keys, RV_COUNT(file_keys), w);
    rv_jw_arr_end(w);
    rv_jw_key(w, "$defs");
    rv_jw_obj(w);
    rv_jw_key(w, "rule");
    rv_keys_write_schema(rule_keys, RV_COUNT(rule_keys), w);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

void rv_retention_write_reference(rv_buf *b)
{
    rv_buf_puts(
        b, "# Retention\n\nGenerated by `reeve docs reference retention`; do not edit.\n\n"
           "`reeve gc` deletes runs that no rule keeps, with their journals, and gives back the space of what no run\n"
           "refers to any more. The rules are in `$XDG_CONFIG_HOME/reeve/retention.yaml` (`~/.config/reeve/...`), or "
           "where\n"
           "`--rules` says. Without rules nothing is deleted.\n\n"
           "```yaml retention.yaml\n"
           "keep:\n"
           "  - {pipeline: audit}                        # no limit: these stay\n"
           "  - {status: [failed, terminated], days: 90}\n"
           "  - {status: [interrupted], days: 180}       # their questions are obsolete\n"
           "  - {days: 30, count: 1000}                  # the rest of what is over\n"
           "```\n\n"
           "```sh\n"
           "reeve run pipelines/hooks.yaml --input Ada\n"
           "reeve gc --rules retention.yaml --dry-run\n"
           "```\n"
           "```text\n"
           "...\n"
           "no run would be deleted\n"
           "```\n\n"
           "## The file\n\n");
    rv_keys_write_markdown(file_keys, RV_COUNT(file_keys), b);
    rv_buf_puts(b, "\n## A rule\n\n");
    rv_keys_write_markdown(rule_keys, RV_COUNT(rule_keys), b);
    rv_buf_puts(
        b, "\n`reeve gc` also forgets logins that are over and [API keys](identity.md) that were revoked or expired\n"
           "more than 90 days ago, unless `--user` names one user.\n");
    rv_buf_puts(b, "\n`reeve schema retention` prints the JSON Schema of the file, for editors.\n");
}

int rv_retention_find_path(rv_buf *path, rv_err **err)
{
    return app_config_file("retention.yaml", path, err);
}

/* --- the rules applied --- */

struct run_filter {
    struct rv_app_gc *gc;
    const char **ids; /* of the runs that a rule drops, in the arena; sorted once the rules have seen all */
    size_t n, cap;
};

/* rule NULL: its session was deleted. */
static int mark_expired(struct rv_app_gc *c, const struct rv_run_row *row, const struct rv_retention_rule *rule,
                        rv_err **err)
{
    if (!rv_run_status_is_final(row->status) && rv_app_owner_of(row, c->now_us) == RV_APP_OWNER_LIVES) {
        c->n_owned++;
        return 0;
    }
    if (!rv_has_room(&c->items, &c->cap, c->n + 1, sizeof *c->items))
        return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    struct rv_app_gc_run *d = &c->items[c->n];
    bool is_orphan = !rv_run_status_is_final(row->status) && rv_app_owner_of(row, c->now_us) == RV_APP_OWNER_DEAD;
    *d = (struct rv_app_gc_run){.id = rv_arena_dup(c->arena, rv_str_of(row->id)),
                                .pipeline = rv_arena_dup(c->arena, rv_str_of(row->pipeline ? row->pipeline : "")),
                                .status = row->status,
                                .updated_us = row->updated_us,
                                .of_deleted_session = !rule,
                                .dead = is_orphan ? rv_arena_dup(c->arena, rv_str_of(row->owner)) : NULL,
                                .line = rule ? rule->line : 0};
    if (!d->id || !d->pipeline || (is_orphan && !d->dead))
        return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    c->n++;
    return 0;
}

static int judge(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct run_filter *s = self;
    struct rv_app_gc *c = s->gc;
    const struct rv_retention_rule *rule = drops(c->opts->rules, row, c->now_us);

    if (!rule)
        return 0;
    const char *id = rv_arena_dup(c->arena, rv_str_of(row->id));
    if (!id || !rv_has_room(&s->ids, &s->cap, s->n + 1, sizeof *s->ids))
        return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    s->ids[s->n++] = id;
    return mark_expired(c, row, rule, err);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int judge_deleted(void *self, const struct rv_run_row *row, rv_err **err)
{
    const struct run_filter *s = self;
    const char *id = row->id;

    if (s->n > 0 && bsearch(&id, s->ids, s->n, sizeof *s->ids, compare_ids)) /* a rule has judged it */
        return 0;
    return mark_expired(s->gc, row, NULL, err);
}

/* The rules count what fits them, so they see each run once. */
static int list_expired(struct rv_app_gc *c, rv_err **err)
{
    const struct rv_run_filter all = {0}, deleted = {.of_deleted_sessions = true};
    const struct rv_app_gc_opts *opts = c->opts;
    struct run_filter s = {.gc = c};
    int rc = opts->rules ? rv_store_list_runs(opts->store, &opts->scope, &all, judge, &s, err) : 0;

    if (s.n > 0)
        qsort(s.ids, s.n, sizeof *s.ids, compare_ids);
    if (rc == 0)
        rc = rv_store_list_runs(opts->store, &opts->scope, &deleted, judge_deleted, &s, err);
    free(s.ids);
    return rc;
}

/* The lease of a process that is gone would hold it yet for a while. One that changed since it was listed stays: what
 * the rules said was about another status or time. */
static int delete_one(const struct rv_app_gc *c, const struct rv_app_gc_run *d, rv_err **err)
{
    const struct rv_run_seen seen = {d->status, d->updated_us};
    const struct rv_store_claim claim = {
        .owner = "gc", .dead = d->dead, .now_us = c->now_us, .until_us = c->now_us + 1};
    int64_t fence = 0;
    int rc = d->dead ? rv_store_claim(c->opts->store, &c->opts->scope, d->id, &claim, &fence, err) : 0;

    if (rc == 0 && d->dead)
        rc = rv_store_release(c->opts->store, d->id, fence, err);
    return rc < 0 ? rc : rv_store_delete_run(c->opts->store, &c->opts->scope, d->id, &seen, c->now_us, err);
}

/* Some of them from *at on, within one transaction. Who is run again or changed meanwhile stays, and who is gone is
 * gone. */
static int delete_some(struct rv_app_gc *c, size_t *at, int64_t slice_us, rv_err **err)
{
    size_t n = 0, n_owned = 0, i = *at, upto = c->n - i < AT_ONCE ? c->n : i + AT_ONCE;

    int rc = rv_store_begin(c->opts->store, err);
    if (rc < 0)
        return rc;
    for (int64_t begun_us = rv_app_now_us(); i < upto && rc == 0; i++) {
        rv_err *cause = NULL;
        if (i > *at && slice_us > 0 && rv_app_now_us() - begun_us >= slice_us)
            break;
        rc = delete_one(c, &c->items[i], &cause);
        n += rc == 0;
        n_owned += rc == RV_E_STATE;
        if (rc == RV_E_STATE || rc == RV_E_NOT_FOUND) {
            rv_err_free(cause);
            rc = 0;
        } else if (rc < 0) {
            rv_err_pass(err, cause);
        }
    }
    if (rc < 0)
        rv_store_rollback(c->opts->store);
    else
        rc = rv_store_commit(c->opts->store, err);
    if (rc == 0) {
        c->n_deleted += n;
        c->n_owned += n_owned;
        *at = i;
    }
    return rc;
}

static int delete_all(struct rv_app_gc *c, rv_err **err)
{
    bool others_wait = rv_store_has_one_writer(c->opts->store);
    size_t at = 0;
    int rc = 0;

    while (at < c->n && rc == 0) {
        do
            rc = delete_some(c, &at, others_wait ? SLICE_US : 0, err);
        while (rc < 0 && rv_store_wait_again(c->opts->store, err));
        if (rc == 0 && at < c->n && others_wait)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return rc;
}

/* Counters of quotas that are over, a few at a time. */
static int prune_usage(const struct rv_app_gc *c, rv_err **err)
{
    int64_t before_us = c->now_us - RV_USAGE_KEPT_US, n = MAX_PRUNED;
    int rc = 0;

    while (rc == 0 && n >= MAX_PRUNED)
        rc = rv_store_prune_usage(c->opts->store, before_us, c->now_us, MAX_PRUNED, &n, err);
    return rc;
}

int rv_app_gc(const struct rv_app_gc_opts *opts, struct rv_app_gc *out, rv_err **err)
{
    *out = (struct rv_app_gc){.opts = opts, .now_us = rv_app_now_us(), .arena = rv_arena_new(MAX_LIST_BYTES)};
    int rc = out->arena ? 0 : RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    if (rc == 0)
        rc = list_expired(out, err);
    if (rc == 0 && !opts->dry_run)
        rc = delete_all(out, err);
    if (rc == 0 && !opts->dry_run)
        rc = prune_usage(out, err);
    if (rc == 0 && !opts->dry_run && !opts->scope.user)
        rc = rv_store_prune_api_keys(opts->store, out->now_us - KEYS_KEPT_US, out->now_us, NULL, err);
    if (rc == 0 && !opts->dry_run)
        rc = rv_store_sweep(opts->store, out->now_us, opts->grace_us, &out->freed_bytes, err);
    if (rc < 0)
        rv_app_gc_fini(out);
    return rc;
}

void rv_app_gc_fini(struct rv_app_gc *c)
{
    free(c->items);
    rv_arena_free(c->arena);
    memset(c, 0, sizeof *c);
}
