/* reeve replay: a run again from its journal alone, compared with what was noted then. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

struct verdict {
    bool print_events;
    struct rv_hash events;
    int64_t n_events;
    char events_hash[RV_HASH_MAX], state_hash[RV_HASH_MAX];
};

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct verdict *v = self;

    (void)record;
    (void)run;
    (void)err;
    for (size_t i = 0; ev && i < effects->n; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind != RV_EFFECT_EMIT)
            continue;
        rv_str line = rv_effect_text(effects, e);
        rv_hash_add(&v->events, line);
        rv_hash_add(&v->events, RV_STR_LIT("\n"));
        v->n_events++;
        if (v->print_events) {
            rv_cli_out(line);
            rv_cli_out(RV_STR_LIT("\n"));
        }
    }
    return 0;
}

/* The row of a run was written with its last record; more may have come since it was read. */
static int check_row(const struct rv_app_past *p, const struct rv_replayed *r, rv_err **err)
{
    enum rv_run_status status = rv_run_status(r->run);
    const char *stage = rv_envelope_fields(rv_run_envelope(r->run))->current_stage;

    if (r->seq != p->row.n_records)
        return 0;
    if (status != p->row.status)
        return RV_FAIL(err, RV_E_STATE, "after record %lld the run was %s; replayed it is %s", (long long)r->seq,
                       rv_run_status_text(p->row.status), rv_run_status_text(status));
    if (p->row.stage && strcmp(stage, p->row.stage) != 0)
        return RV_FAIL(err, RV_E_STATE,
                       "behind record %lld the run stood at stage \"%s\"; replayed it stands at \"%s\"",
                       (long long)r->seq, p->row.stage, stage);
    return 0;
}

static int print_state(const rv_run *run, const struct rv_cli_args *args, struct verdict *v, rv_err **err)
{
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(run), &state);
    int rc = rv_buf_check(&state, "state", err);
    if (rc == 0) {
        rv_hash_of(rv_buf_str(&state), v->state_hash);
        rv_hash_hex(&v->events, v->events_hash);
    }
    if (rc == 0 && rv_cli_flag(args, "state")) {
        rv_cli_out(rv_buf_str(&state));
        rv_cli_out(RV_STR_LIT("\n"));
    }
    rv_buf_fini(&state);
    return rc;
}

static int print_verdict(const struct rv_cli *cli, const struct rv_cli_args *args, const struct rv_app_past *p,
                         const struct rv_replayed *r, const struct verdict *v)
{
    rv_buf text = RV_BUF_INIT(64 << 10);

    if (rv_cli_flag(args, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "run", p->row.id);
        rv_jw_kv_bool(&w, "identical", true);
        rv_jw_kv_int(&w, "records", r->seq);
        rv_jw_kv_int(&w, "of", p->row.n_records);
        rv_jw_kv_text(&w, "status", rv_run_status_text(rv_run_status(r->run)));
        rv_jw_kv_int(&w, "events", v->n_events);
        rv_jw_kv_int(&w, "open_calls", (int64_t)r->open.n);
        rv_jw_kv_text(&w, "state_sha256", v->state_hash);
        rv_jw_kv_text(&w, "events_sha256", v->events_hash);
        rv_jw_obj_end(&w);
    } else if (!rv_cli_flag(args, "state") && !rv_cli_flag(args, "events")) {
        rv_buf_printf(&text, "identical: %lld records", (long long)r->seq);
        if (r->seq < p->row.n_records)
            rv_buf_printf(&text, " of %lld", (long long)p->row.n_records);
        rv_buf_printf(&text, ", %lld events, %s\n  state sha256 %s\n  events sha256 %s", (long long)v->n_events,
                      rv_run_status_text(rv_run_status(r->run)), v->state_hash, v->events_hash);
    }
    if (text.len)
        rv_buf_putc(&text, '\n');
    return rv_cli_print(cli, &text);
}

/* Another result than then is a failed command, not a wrong command line. */
static int report_difference(const struct rv_cli *cli, const struct rv_cli_args *args, const struct rv_app_past *p,
                             rv_err *err)
{
    if (rv_cli_flag(args, "json")) {
        rv_buf text = RV_BUF_INIT(1 << 20);
        rv_jw w = rv_jw_on(&text);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "run", p->row.id);
        rv_jw_kv_bool(&w, "identical", false);
        rv_jw_key(&w, "error");
        rv_err_write_json(err, &w);
        rv_jw_obj_end(&w);
        rv_buf_putc(&text, '\n');
        RV_IGNORE(rv_cli_print(cli, &text), "it fails in any case");
    }
    RV_IGNORE(rv_cli_report(cli, err), "it fails in any case");
    return RV_EXIT_FAILED;
}

static int replay_past(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const struct rv_app_past *p,
                       int64_t upto)
{
    struct verdict v = {.print_events = rv_cli_flag(args, "events")};
    struct rv_replayed replayed = {0};
    rv_err *err = NULL;
    int status;

    rv_hash_init(&v.events);
    int rc = rv_app_past_replay(store, p, upto, on_step, &v, &replayed, &err);
    if (rc == 0)
        rc = check_row(p, &replayed, &err);
    if (rc < 0) {
        RV_IGNORE(RV_WRAP(&err, rc, "replay run \"%s\"", p->row.id), "it is reported at once");
        status = report_difference(cli, args, p, err);
    } else if (print_state(replayed.run, args, &v, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else {
        status = print_verdict(cli, args, p, &replayed, &v);
    }
    rv_replayed_fini(&replayed);
    return status;
}

static int replay(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_app_past p;
    rv_store *store = NULL;
    rv_err *err = NULL;
    int64_t upto = 0;
    int status;

    if (rv_cli_flag(args, "state") + rv_cli_flag(args, "events") + rv_cli_flag(args, "json") > 1)
        return rv_cli_usage(cli, args, "--json, --state and --events exclude each other");
    if (rv_cli_int(args, "at", 1, INT64_MAX, &upto, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, RV_APP_STORE_READ, &store, &status))
        return status;
    if (rv_app_past_open(store, &scope, args->words[0], &p, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else {
        status = replay_past(cli, args, store, &p, upto);
        rv_app_past_fini(&p);
    }
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option replay_options[] = {
    {"at", 0, "SEQ", "stop after this record of the journal", NULL, false},
    {"state", 0, NULL, "print the final state", NULL, false},
    {"events", 'e', NULL, "print the events", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_replay = {
    .name = "replay",
    .args = "RUN",
    .summary = "replay a run from its journal",
    .text =
        "Feeds the recorded inputs of the run to a new one: no model is asked, no capability is loaded, no call is\n"
        "made. The replay must ask for the same calls and reach the same state and events. If it does not, the first\n"
        "record that differs is printed with both values, and the exit status is 1. The hashes make runs comparable\n"
        "across builds and machines.",
    .examples = "reeve replay last\n"
                "reeve replay last --at 12 --state | jq .outputs   # the state behind record 12",
    .options = replay_options,
    .n_options = RV_COUNT(replay_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_runs,
    .run = replay,
};
