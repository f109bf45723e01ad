/* reeve replay: a run again from its journal alone, compared with what was noted then. */
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

static int print_state(const rv_run *run, const struct rv_cli *cli, struct verdict *v, rv_err **err)
{
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(run), &state);
    int rc = rv_buf_check(&state, "state", err);
    if (rc == 0) {
        rv_hash_of(rv_buf_str(&state), v->state_hash);
        rv_hash_hex(&v->events, v->events_hash);
    }
    if (rc == 0 && rv_cli_flag(cli, "state")) {
        rv_cli_out(rv_buf_str(&state));
        rv_cli_out(RV_STR_LIT("\n"));
    }
    rv_buf_fini(&state);
    return rc;
}

static int print_verdict(const struct rv_cli *cli, const struct rv_app_past *p, const struct rv_replayed *r,
                         const struct verdict *v, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(64 << 10);

    if (rv_cli_flag(cli, "json")) {
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
    } else if (!rv_cli_flag(cli, "state") && !rv_cli_flag(cli, "events")) {
        rv_buf_printf(&text, "identical: %lld records", (long long)r->seq);
        if (r->seq < p->row.n_records)
            rv_buf_printf(&text, " of %lld", (long long)p->row.n_records);
        rv_buf_printf(&text, ", %lld events, %s\n  state sha256 %s\n  events sha256 %s", (long long)v->n_events,
                      rv_run_status_text(rv_run_status(r->run)), v->state_hash, v->events_hash);
    }
    if (text.len)
        rv_buf_putc(&text, '\n');
    return rv_cli_print(0, &text, err);
}

/* Another result than then is a failed command, not a wrong command line. */
static int report_difference(const struct rv_cli *cli, const struct rv_app_past *p, rv_err *fault, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);

    if (rv_cli_flag(cli, "json")) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "run", p->row.id);
        rv_jw_kv_bool(&w, "identical", false);
        rv_jw_key(&w, "error");
        rv_err_write_json(fault, &w);
        rv_jw_obj_end(&w);
        rv_buf_putc(&text, '\n');
    }
    int rc = rv_cli_print(0, &text, err);
    RV_IGNORE(rv_cli_report(cli, fault), "it fails in any case");
    return rc < 0 ? rc : RV_EXIT_FAILED;
}

static int replay(struct rv_cli *cli, rv_err **err)
{
    struct verdict v = {.print_events = rv_cli_flag(cli, "events")};
    struct rv_replayed replayed = {0};
    struct rv_app_past p;
    rv_err *fault = NULL;
    int64_t upto = 0;

    int rc = rv_cli_int(cli, "at", 1, INT64_MAX, &upto, err);
    if (rc == 0)
        rc = rv_app_past_open(cli->store, &cli->app.scope, cli->words[0], &p, err);
    if (rc < 0)
        return rc;
    rv_hash_init(&v.events);
    rc = rv_app_past_replay(cli->store, &p, upto, on_step, &v, &replayed, &fault);
    if (rc == 0)
        rc = check_row(&p, &replayed, &fault);
    if (rc < 0) {
        RV_IGNORE(RV_WRAP(&fault, rc, "replay run \"%s\"", p.row.id), "it is reported at once");
        rc = report_difference(cli, &p, fault, err);
    } else {
        rc = print_state(replayed.run, cli, &v, err);
        if (rc == 0)
            rc = print_verdict(cli, &p, &replayed, &v, err);
    }
    rv_replayed_fini(&replayed);
    rv_app_past_fini(&p);
    return rc;
}

static const struct rv_cli_option replay_options[] = {
    {"at", 0, "SEQ", "stop after this record of the journal", NULL, false},
    {"state", 0, NULL, "print the final state", NULL, false},
    {"events", 'e', NULL, "print the events", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
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
    RV_CLI_OPTIONS(replay_options),
    .groups = {&rv_cli_of_stores},
    .excludes = "json state events",
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &rv_cli_takes_runs,
    .run = replay,
};
