/* reeve gc: upkeep of a store: runs that no rule keeps, space that no run needs, a check, a copy. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- rules --- */

/* *out NULL with 0: there are none. Findings are printed. RV_EXIT_USAGE: the rules cannot be used. */
static int read_rules(const struct rv_cli *cli, rv_retention **out, rv_err **err)
{
    const char *age = cli_value(cli, "older-than"), *file = cli_value(cli, "rules");
    rv_buf path = RV_BUF_INIT(4096);
    int64_t max_age_us = 0;

    if (age) {
        int rc = cli_parse_duration(age, &max_age_us, err);
        if (rc == 0 && !(*out = rv_retention_new_of_age(max_age_us)))
            rc = RV_FAIL(err, RV_E_NOMEM, "read rules");
        return rc;
    }
    rv_err *cause = NULL;
    int rc = file ? 0 : rv_retention_find_path(&path, &cause);
    if (rc == RV_E_NOT_FOUND) { /* no rules */
        rv_err_free(cause);
        cause = NULL;
        rc = 0;
    }
    if (rc < 0)
        rc = rv_err_pass(err, cause);
    if (rc == 0 && (file || (path.len > 0 && access(rv_buf_cstr(&path), F_OK) == 0))) {
        rv_findings *findings = rv_findings_new();
        rc = findings ? rv_retention_read(file ? file : rv_buf_cstr(&path), findings, out, err)
                      : RV_FAIL(err, RV_E_NOMEM, "read rules");
        if (rc == 0) {
            cli_say_findings(cli, findings);
            rc = rv_findings_n_errors(findings) > 0 ? RV_EXIT_USAGE : 0;
        }
        rv_findings_free(findings);
    }
    rv_buf_fini(&path);
    return rc;
}

/* --- what is said --- */

static int print_json(const struct rv_app_gc *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_jw_kv_bool(&w, "dry_run", c->opts->dry_run);
    rv_jw_key(&w, "runs");
    rv_jw_arr(&w);
    for (size_t i = 0; i < c->n; i++)
        rv_jw_text(&w, c->items[i].id);
    rv_jw_arr_end(&w);
    rv_jw_kv_int(&w, "deleted", (int64_t)c->n_deleted);
    rv_jw_kv_int(&w, "owned", (int64_t)c->n_owned);
    rv_jw_kv_int(&w, "freed_bytes", c->freed_bytes);
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    return cli_print(0, &text, err);
}

static void list_doomed(const struct rv_app_gc *c, rv_buf *b)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct rv_app_gc_run *d = &c->items[i];
        rv_buf_printf(b, "%s  %s  %s, ", d->id, d->pipeline, rv_run_status_text(d->status));
        cli_write_age(b, c->now_us - d->updated_us);
        rv_buf_puts(b, " old");
        if (d->of_deleted_session)
            rv_buf_puts(b, ", of a session that was deleted");
        else if (d->line)
            rv_buf_printf(b, ", by the rule of line %d", d->line);
        rv_buf_putc(b, '\n');
    }
}

static int print_text(const struct rv_app_gc *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    bool dry = c->opts->dry_run;

    if (dry)
        list_doomed(c, &text);
    if (!c->opts->rules && c->n == 0)
        rv_buf_puts(&text, "there are no retention rules: all runs are kept\n");
    else if (dry && c->n == 0)
        rv_buf_puts(&text, "no run would be deleted\n");
    else if (dry)
        rv_buf_printf(&text, "%zu run%s would be deleted\n", c->n, cli_plural((int64_t)c->n));
    else
        rv_buf_printf(&text, "%zu run%s deleted\n", c->n_deleted, cli_plural((int64_t)c->n_deleted));
    if (c->n_owned)
        rv_buf_printf(&text, "%zu kept: a process runs %s\n", c->n_owned, c->n_owned == 1 ? "it" : "them");
    if (!dry) {
        rv_buf_puts(&text, "freed ");
        cli_write_bytes(&text, c->freed_bytes);
        rv_buf_putc(&text, '\n');
    }
    return cli_print(0, &text, err);
}

/* --- the verb --- */

static int collect(struct rv_cli *cli, rv_retention *rules, rv_err **err)
{
    struct rv_app_gc_opts opts = {.store = cli->store,
                                  .scope = cli->app.scope,
                                  .rules = rules,
                                  .grace_us = RV_APP_GC_GRACE_US,
                                  .dry_run = cli_flag(cli, "dry-run")};
    const char *grace = cli_value(cli, "grace");
    struct rv_app_gc done;

    int rc = grace ? cli_parse_duration(grace, &opts.grace_us, err) : 0;
    if (rc == 0)
        rc = rv_app_gc(&opts, &done, err);
    if (rc < 0)
        return rc;
    rc = cli_flag(cli, "json") ? print_json(&done, err) : print_text(&done, err);
    rv_app_gc_fini(&done);
    return rc;
}

static int gc(struct rv_cli *cli, rv_err **err)
{
    bool checks = cli_flag(cli, "check"), dry = cli_flag(cli, "dry-run");
    const char *copy = cli_value(cli, "backup");
    bool deletes = dry || cli_value(cli, "older-than") || cli_value(cli, "rules"), reads = checks || copy || dry;
    rv_retention *rules = NULL;

    if (checks + (copy != NULL) + deletes > 1)
        return cli_usage(cli, err, "--check, --backup and the options that delete exclude each other");
    if ((checks || copy) && cli->app.scope.user)
        return cli_usage(cli, err, "--check and --backup concern the whole store and exclude --user");
    int rc = checks || copy ? 0 : read_rules(cli, &rules, err);
    if (rc == 0)
        rc = rv_app_store_open(&cli->app, reads ? RV_APP_STORE_READ : RV_APP_STORE_CHANGE, &cli->store, err);
    if (rc == 0)
        rc = checks ? cli_check_store(cli, err) : copy ? cli_back_up(cli, copy, err) : collect(cli, rules, err);
    rv_retention_free(rules);
    return rc;
}

static const struct rv_cli_option gc_options[] = {
    {"rules", 0, "FILE", "retention rules (default ~/.config/reeve/retention.yaml, if it exists)", "FILE", false},
    {"older-than", 0, "AGE", "in place of rules: delete finished runs that did not change for this long, e.g. 30d",
     NULL, false},
    {"dry-run", 'n', NULL, "only print what would be deleted", NULL, false},
    {"grace", 0, "AGE", "keep unused values younger than this, since a run may be about to use them (default 1h)", NULL,
     false},
    {"check", 0, NULL, "only check the integrity of the store", NULL, false},
    {"backup", 0, "FILE", "only write a copy of the store; other processes may use it meanwhile", "FILE", false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
};

const struct rv_cli_verb verb_gc = {
    .name = "gc",
    .args = "",
    .summary = "delete old runs by rules and free their space",
    .text =
        "Deletes the runs that the rules do not keep and the runs of deleted sessions, then the messages of these\n"
        "sessions and the values that no run refers to. Without rules no other run is deleted. An unfinished run is\n"
        "deleted only by a rule that names its status, or with its session, and never while a process runs it.\n"
        "docs/reference/retention.md describes the rules. With --user only the runs of that user are deleted.",
    .examples = "reeve gc --dry-run\n"
                "reeve gc --older-than 30d\n"
                "reeve gc --check && reeve gc --backup runs.db",
    RV_CLI_OPTIONS(gc_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .excludes = "older-than rules",
    .run = gc,
};
