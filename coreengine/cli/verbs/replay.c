/* reeve replay: a run again from its journal alone, compared with what was noted then. */
#include "coreengine/cli/verbs/verbs_internal.h"

static void print_event(void *self, rv_str line)
{
    (void)self;
    cli_out(line);
    cli_out(RV_STR_LIT("\n"));
}

static int print_state(const rv_run *run, rv_err **err)
{
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(run), &state);
    rv_buf_putc(&state, '\n');
    return cli_print(0, &state, err);
}

static int print_verdict(const struct rv_cli *cli, const struct rv_app_past *p, const struct rv_app_verified *v,
                         rv_err **err)
{
    rv_buf text = RV_BUF_INIT(64 << 10);
    rv_jw w = rv_jw_on(&text);

    if (cli_flag(cli, "json")) {
        rv_app_verified_write(p, v, NULL, &w);
    } else if (!cli_flag(cli, "state") && !cli_flag(cli, "events")) {
        rv_buf_printf(&text, "identical: %lld record%s", (long long)v->records, cli_plural(v->records));
        if (v->records < p->row.n_records)
            rv_buf_printf(&text, " of %lld", (long long)p->row.n_records);
        rv_buf_printf(&text, ", %lld event%s, %s\n  state sha256 %s\n  events sha256 %s", (long long)v->n_events,
                      cli_plural(v->n_events), rv_run_status_text(v->status), v->state_hash, v->events_hash);
        if (v->other_engine[0])
            rv_buf_printf(&text, "\n  reeve %s ended it with another state: the wording of messages may have changed",
                          v->other_engine);
    }
    if (text.len)
        rv_buf_putc(&text, '\n');
    return cli_print(0, &text, err);
}

/* Another result than then is a failed command, not a wrong command line. */
static int report_difference(const struct rv_cli *cli, const struct rv_app_past *p, rv_err *fault, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);

    if (cli_flag(cli, "json")) {
        rv_app_verified_write(p, NULL, fault, &w);
        rv_buf_putc(&text, '\n');
    }
    int rc = cli_print(0, &text, err);
    RV_IGNORE(cli_report(cli, fault), "it fails in any case");
    return rc < 0 ? rc : RV_EXIT_FAILED;
}

static int replay(struct rv_cli *cli, rv_err **err)
{
    bool has_events = cli_flag(cli, "events");
    struct rv_replayed replayed = {0};
    struct rv_app_verified v;
    struct rv_app_past p;
    rv_err *fault = NULL;
    int64_t upto = 0;

    int rc = cli_int(cli, "at", 1, INT64_MAX, &upto, err);
    if (rc == 0)
        rc = rv_app_past_open(cli->store, &cli->app.scope, cli->words[0], &p, err);
    if (rc < 0)
        return rc;
    if (upto > p.row.n_records) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has no record %lld", p.row.id, (long long)upto);
        rv_err_set_hint(err, "its last record is %lld", (long long)p.row.n_records);
        rv_app_past_fini(&p);
        return rc;
    }
    rc = rv_app_verify(cli->store, &p, &(struct rv_app_verify_opts){upto, has_events ? print_event : NULL, NULL}, &v,
                       &replayed, &fault);
    if (rc < 0 && !rv_app_is_difference(fault)) {
        rv_err_pass(err, fault);
    } else if (rc < 0) {
        rc = report_difference(cli, &p, fault, err);
    } else {
        rc = cli_flag(cli, "state") ? print_state(replayed.run, err) : 0;
        if (rc == 0)
            rc = print_verdict(cli, &p, &v, err);
        rv_replayed_fini(&replayed);
    }
    rv_app_past_fini(&p);
    return rc;
}

static const struct rv_cli_option replay_options[] = {
    {"at", 0, "SEQ", "stop after this record of the journal", NULL, false},
    {"state", 0, NULL, "print the final state", NULL, false},
    {"events", 'e', NULL, "print the events", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
};

const struct rv_cli_verb verb_replay = {
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
    .groups = {&cli_of_stores},
    .excludes = "json state events",
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_runs,
    .run = replay,
};
