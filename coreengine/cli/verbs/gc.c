/* reeve gc: upkeep of a store: runs that no rule keeps, space that no run needs, a check, a copy. */
#include "coreengine/app/retention.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LIST_BYTES   ((size_t)256 << 20)
#define AT_ONCE          ((size_t)200) /* runs that one transaction deletes: others wait no longer than that */
#define DEFAULT_GRACE_US INT64_C(3600000000)

struct doomed {
    const char *id;   /* in the arena */
    const char *dead; /* its owner, a process that is gone, in the arena; NULL: none */
    int line;         /* of the rule; 0: of the command line, or none */
};
struct collection {
    struct rv_store_scope scope;
    rv_retention *rules;
    int64_t now_us;
    rv_arena *arena;
    struct doomed *items;
    size_t n, cap;
    size_t n_owned; /* that a rule would delete, but somebody runs */
    size_t n_deleted;
    int64_t freed;
    rv_buf listed; /* --dry-run: what would go, for people */
};

/* rule NULL: its session was deleted. */
static int doom(struct collection *c, const struct rv_run_row *row, const struct rv_retention_rule *rule, rv_err **err)
{
    if (!rv_run_status_is_final(row->status) && rv_app_owner_of(row, c->now_us) == RV_APP_OWNER_LIVES) {
        c->n_owned++;
        return 0;
    }
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 64;
        struct doomed *items = realloc(c->items, cap * sizeof *items);
        if (!items)
            return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
        c->items = items;
        c->cap = cap;
    }
    struct doomed *d = &c->items[c->n];
    bool is_orphan = !rv_run_status_is_final(row->status) && rv_app_owner_of(row, c->now_us) == RV_APP_OWNER_DEAD;
    *d = (struct doomed){.id = rv_arena_dup(c->arena, rv_str_of(row->id)),
                         .dead = is_orphan ? rv_arena_dup(c->arena, rv_str_of(row->owner)) : NULL,
                         .line = rule ? rule->line : 0};
    if (!d->id || (is_orphan && !d->dead))
        return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    c->n++;
    rv_buf_printf(&c->listed, "%s  %s  %s, ", row->id, row->pipeline, rv_run_status_text(row->status));
    rv_cli_write_age(&c->listed, c->now_us - row->updated_us);
    rv_buf_puts(&c->listed, " old");
    if (!rule)
        rv_buf_puts(&c->listed, ", of a session that was deleted");
    else if (rule->line)
        rv_buf_printf(&c->listed, ", by the rule of line %d", rule->line);
    rv_buf_putc(&c->listed, '\n');
    return 0;
}

static int judge(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct collection *c = self;
    const struct rv_retention_rule *rule = rv_retention_drops(c->rules, row, c->now_us);

    return rule ? doom(c, row, rule, err) : 0;
}

static int judge_deleted(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct collection *c = self;

    if (c->rules && rv_retention_drops(c->rules, row, c->now_us)) /* is in the list */
        return 0;
    return doom(c, row, NULL, err);
}

/* The lease of a process that is gone would hold it yet for a while. */
static int delete_one(rv_store *store, const struct collection *c, const struct doomed *d, rv_err **err)
{
    const struct rv_store_claim claim = {
        .owner = "gc", .dead = d->dead, .now_us = c->now_us, .until_us = c->now_us + 1};
    int64_t fence = 0;
    int rc = d->dead ? rv_store_claim(store, &c->scope, d->id, &claim, &fence, err) : 0;

    if (rc == 0 && d->dead)
        rc = rv_store_release(store, d->id, fence, err);
    return rc < 0 ? rc : rv_store_delete_run(store, &c->scope, d->id, c->now_us, err);
}

/* Some of them, within one transaction. Who is run again meanwhile stays, and who is gone is gone. */
static int delete_some(rv_store *store, struct collection *c, size_t from, size_t upto, rv_err **err)
{
    size_t n = 0, n_owned = 0;

    int rc = rv_store_begin(store, err);
    if (rc < 0)
        return rc;
    for (size_t i = from; i < upto && rc == 0; i++) {
        rv_err *cause = NULL;
        rc = delete_one(store, c, &c->items[i], &cause);
        n += rc == 0;
        n_owned += rc == RV_E_STATE;
        if (rc == RV_E_STATE || rc == RV_E_NOT_FOUND) {
            rv_err_free(cause);
            rc = 0;
        } else if (rc < 0) {
            *err = cause;
        }
    }
    if (rc < 0)
        rv_store_rollback(store);
    else
        rc = rv_store_commit(store, err);
    if (rc == 0) {
        c->n_deleted += n;
        c->n_owned += n_owned;
    }
    return rc;
}

static int delete_all(rv_store *store, struct collection *c, rv_err **err)
{
    int rc = 0;

    for (size_t at = 0; at < c->n && rc == 0; at += AT_ONCE)
        rc = delete_some(store, c, at, c->n - at < AT_ONCE ? c->n : at + AT_ONCE, err);
    return rc;
}

/* --- rules --- */

static int default_rules(rv_buf *path, rv_err **err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && config[0] == '/')
        rv_buf_printf(path, "%s/reeve/retention.yaml", config);
    else if (home && home[0] == '/')
        rv_buf_printf(path, "%s/.config/reeve/retention.yaml", home);
    return rv_buf_check(path, "path", err);
}

/* *out NULL with 0: there are none. Findings are printed; *sound says whether the rules may be used. */
static int read_rules(const struct rv_cli *cli, const struct rv_cli_args *args, rv_retention **out, bool *sound,
                      rv_err **err)
{
    const char *age = rv_cli_value(args, "older-than"), *file = rv_cli_value(args, "rules");
    rv_buf path = RV_BUF_INIT(4096), text = RV_BUF_INIT(4 << 20);
    int64_t max_age_us = 0;
    int rc = 0;

    *sound = true;
    if (age) {
        rc = rv_cli_parse_duration(age, &max_age_us, err);
        if (rc == 0 && !(*out = rv_retention_of_age(max_age_us)))
            rc = RV_FAIL(err, RV_E_NOMEM, "read rules");
        return rc;
    }
    rc = file ? 0 : default_rules(&path, err);
    if (rc < 0 || (!file && (path.len == 0 || access(rv_buf_cstr(&path), F_OK) != 0))) {
        rv_buf_fini(&path);
        return rc;
    }
    rv_findings *findings = rv_findings_new();
    rc = findings ? rv_retention_read(file ? file : rv_buf_cstr(&path), findings, out, err)
                  : RV_FAIL(err, RV_E_NOMEM, "read rules");
    *sound = rc == 0 && rv_findings_n_errors(findings) == 0;
    if (rc == 0 && rv_findings_n(findings)) {
        rv_findings_write_text(findings, cli->err_color, &text);
        rv_cli_err(rv_buf_str(&text));
    }
    rv_findings_free(findings);
    rv_buf_fini(&path);
    rv_buf_fini(&text);
    return rc;
}

/* --- what is said --- */

static void write_bytes(rv_buf *b, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    int64_t whole = bytes > 0 ? bytes : 0, tenth = 0;

    while (whole >= 1000 && unit + 1 < RV_COUNT(units)) {
        tenth = whole % 1000 / 100;
        whole /= 1000;
        unit++;
    }
    if (unit)
        rv_buf_printf(b, "%lld.%lld %s", (long long)whole, (long long)tenth, units[unit]);
    else
        rv_buf_printf(b, "%lld bytes", (long long)whole);
}

static int print_json(const struct rv_cli *cli, const struct collection *c, bool dry)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_jw_kv_bool(&w, "dry_run", dry);
    rv_jw_key(&w, "runs");
    rv_jw_arr(&w);
    for (size_t i = 0; i < c->n; i++)
        rv_jw_text(&w, c->items[i].id);
    rv_jw_arr_end(&w);
    rv_jw_kv_int(&w, "deleted", (int64_t)c->n_deleted);
    rv_jw_kv_int(&w, "owned", (int64_t)c->n_owned);
    rv_jw_kv_int(&w, "freed_bytes", c->freed);
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    return rv_cli_print(cli, &text);
}

static int print_text(const struct rv_cli *cli, struct collection *c, bool dry)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (dry)
        rv_buf_add_str(&text, rv_buf_str(&c->listed));
    if (!c->rules && c->n == 0)
        rv_buf_puts(&text, "there are no rules: every run stays\n");
    else if (dry && c->n == 0)
        rv_buf_puts(&text, "no run would be deleted\n");
    else if (dry)
        rv_buf_printf(&text, "%zu runs would be deleted\n", c->n);
    else
        rv_buf_printf(&text, "%zu runs deleted\n", c->n_deleted);
    if (c->n_owned)
        rv_buf_printf(&text, "%zu left alone: somebody runs them\n", c->n_owned);
    if (!dry) {
        rv_buf_puts(&text, "freed ");
        write_bytes(&text, c->freed);
        rv_buf_putc(&text, '\n');
    }
    return rv_cli_print(cli, &text);
}

/* --- the verb --- */

static int collect(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, rv_retention *rules)
{
    const struct rv_run_filter all = {0}, deleted = {.of_deleted_sessions = true};
    struct collection c = {
        .scope = rv_cli_scope(args), .rules = rules, .now_us = rv_app_now_us(), .listed = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    bool dry = rv_cli_flag(args, "dry-run");
    int64_t grace_us = DEFAULT_GRACE_US;
    rv_err *err = NULL;
    int rc = 0, status;

    if (rv_cli_value(args, "grace"))
        rc = rv_cli_parse_duration(rv_cli_value(args, "grace"), &grace_us, &err);
    if (rc == 0 && !(c.arena = rv_arena_new(MAX_LIST_BYTES)))
        rc = RV_FAIL(&err, RV_E_NOMEM, "list what is to be deleted");
    if (rc == 0 && rules)
        rc = rv_store_list_runs(store, &c.scope, &all, judge, &c, &err);
    if (rc == 0)
        rc = rv_store_list_runs(store, &c.scope, &deleted, judge_deleted, &c, &err);
    if (rc == 0 && !dry)
        rc = delete_all(store, &c, &err);
    if (rc == 0 && !dry)
        rc = rv_store_sweep(store, c.now_us, grace_us, &c.freed, &err);
    if (rc < 0)
        status = rv_cli_report(cli, err);
    else
        status = rv_cli_flag(args, "json") ? print_json(cli, &c, dry) : print_text(cli, &c, dry);
    free(c.items);
    rv_arena_free(c.arena);
    rv_buf_fini(&c.listed);
    return status;
}

static int check(struct rv_cli *cli, rv_store *store)
{
    struct rv_store_stats s = {0};
    rv_buf text = RV_BUF_INIT(4096);
    rv_err *err = NULL;

    int rc = rv_store_check(store, &err);
    if (rc == 0)
        rc = rv_store_stats(store, &s, &err);
    if (rc < 0) {
        RV_IGNORE(rv_cli_report(cli, err), "a damaged store is a failure, whatever its code");
        return RV_EXIT_FAILED;
    }
    rv_buf_printf(&text, "%s is whole: %lld runs, %lld records, %lld values, ", rv_store_url(store), (long long)s.runs,
                  (long long)s.records, (long long)s.blobs);
    write_bytes(&text, s.bytes);
    rv_buf_printf(&text, ", schema %lld\n", (long long)s.schema);
    return rv_cli_print(cli, &text);
}

static int backup(struct rv_cli *cli, rv_store *store, const char *path)
{
    rv_buf text = RV_BUF_INIT(8192);
    rv_err *err = NULL;

    if (rv_store_backup(store, path, &err) < 0)
        return rv_cli_report(cli, err);
    rv_buf_printf(&text, "%s is copied to %s\n", rv_store_url(store), path);
    return rv_cli_print(cli, &text);
}

static int gc(struct rv_cli *cli, const struct rv_cli_args *args)
{
    bool checks = rv_cli_flag(args, "check"), sound = true;
    const char *copy = rv_cli_value(args, "backup");
    bool reads = checks || copy || rv_cli_flag(args, "dry-run");
    rv_retention *rules = NULL;
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (checks + (copy != NULL) +
            (rv_cli_flag(args, "dry-run") || rv_cli_value(args, "older-than") != NULL ||
             rv_cli_value(args, "rules") != NULL) >
        1)
        return rv_cli_usage(cli, args, "--check and --backup do nothing else: give them alone");
    if ((checks || copy) && rv_cli_scope(args).user)
        return rv_cli_usage(cli, args, "--check and --backup are of all users' rows: no user may be named");
    if (rv_cli_value(args, "older-than") && rv_cli_value(args, "rules"))
        return rv_cli_usage(cli, args, "--older-than and --rules exclude each other");
    if (!reads || rv_cli_flag(args, "dry-run")) {
        if (read_rules(cli, args, &rules, &sound, &err) < 0)
            return rv_cli_report(cli, err);
    }
    if (!sound) {
        status = RV_EXIT_USAGE;
    } else if (rv_cli_runs_open(cli, reads ? RV_APP_STORE_READ : RV_APP_STORE_CHANGE, &store, &status)) {
        status = checks ? check(cli, store) : copy ? backup(cli, store, copy) : collect(cli, args, store, rules);
        rv_store_close(store);
    }
    rv_retention_free(rules);
    return status;
}

static const struct rv_cli_option gc_options[] = {
    {"rules", 0, "FILE", "what is kept (default ~/.config/reeve/retention.yaml, if it is there)", "FILE", false},
    {"older-than", 0, "AGE", "instead of rules: delete what is over and was not touched since, e.g. 30d", NULL, false},
    {"dry-run", 'n', NULL, "only say what would be deleted", NULL, false},
    {"grace", 0, "AGE", "keep unused values that are younger; a run may be about to need them (default 1h)", NULL,
     false},
    {"check", 0, NULL, "only check that all of the store is whole", NULL, false},
    {"backup", 0, "FILE", "only write a copy of the store, while others use it", "FILE", false},
    {"json", 'j', NULL, "what was done as one JSON object", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};

const struct rv_cli_verb rv_verb_gc = {
    .name = "gc",
    .args = "",
    .summary = "delete old runs by rules, and give their space back",
    .text =
        "Deletes the runs that the rules do not keep and those of sessions that were deleted, then what was said in\n"
        "such sessions and the values that no run refers to. Without rules no other run is deleted. A run that is not\n"
        "over is only deleted by a rule that names its status, or with its session, and never while somebody runs it.\n"
        "docs/reference/retention.md describes the rules. With --user nobody else's runs are touched.",
    .examples = "reeve gc --dry-run\n"
                "reeve gc --older-than 30d\n"
                "reeve gc --check && reeve gc --backup runs.db",
    .options = gc_options,
    .n_options = RV_COUNT(gc_options),
    .run = gc,
};
