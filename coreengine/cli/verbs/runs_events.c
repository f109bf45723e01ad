/* The events of a run, from its journal, also while it goes on in another process: reeve runs events, and for other
 * verbs that follow a run. */
#include "coreengine/cli/verbs/verbs_internal.h"

#include <time.h>

#define POLL_MS 50 /* between two looks for new events of another process's run */

struct stream {
    int64_t next;          /* number of the event or record to be printed next */
    bool broken;           /* the reader is gone */
    bool is_silent;        /* nothing is printed */
    bool gap;              /* events before it are missing: the replay began behind them */
    rv_follower *follower; /* owned; NULL: nothing was replayed yet */
};

static int print_events(void *self, const struct rv_record *record, const struct rv_event *ev,
                        const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct stream *s = self;
    int64_t seq = rv_run_counters(run).next_seq;

    (void)record;
    (void)err;
    for (size_t i = 0; ev && i < effects->n; i++) /* the last of them has the number before next_seq */
        seq -= effects->items[i].kind == RV_EFFECT_EMIT;
    for (size_t i = 0; ev && i < effects->n && !s->broken; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind != RV_EFFECT_EMIT)
            continue;
        s->gap |= seq > s->next;
        if (!s->gap && seq >= s->next) {
            s->next = seq + 1;
            cli_out(rv_effect_text(effects, e));
            cli_out(RV_STR_LIT("\n"));
        }
        seq++;
    }
    return 0;
}

static int print_record(void *self, const struct rv_record *r, rv_err **err)
{
    struct stream *s = self;
    rv_buf line = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&line);

    rv_record_write_json(r, &w);
    rv_buf_putc(&line, '\n');
    int rc = rv_buf_check(&line, "record", err);
    if (rc == 0)
        cli_out(rv_buf_str(&line));
    rv_buf_fini(&line);
    s->next = r->seq + 1;
    return rc;
}

static int begin_events(rv_store *store, const struct rv_app_past *p, bool from_snapshot, struct stream *s,
                        rv_err **err)
{
    const struct rv_replay_opts opts = {.pipeline = rv_app_past_pipeline(p),
                                        .catalog = &p->catalog,
                                        .from_snapshot = from_snapshot,
                                        .on_step = print_events,
                                        .self = s};

    int rc = rv_journal_follow(store, &p->scope, p->row.id, &opts, &s->follower, err);
    if (rc == 0 && from_snapshot)
        s->gap |= rv_run_counters(rv_follower_run(s->follower)).next_seq > s->next; /* it is younger than that */
    return rc;
}

/* A snapshot that is old enough saves reading what is not to be printed. */
static int print_first(rv_store *store, const struct rv_app_past *p, struct stream *s, rv_err **err)
{
    int rc = s->next > 1 ? begin_events(store, p, true, s, err) : 0;

    if (rc == 0 && (s->gap || !s->follower)) {
        s->gap = false;
        rv_follower_free(s->follower);
        s->follower = NULL;
        rc = begin_events(store, p, false, s, err);
    }
    return rc;
}

/* What the store has beyond what was printed. */
static int print_more(rv_store *store, const struct rv_app_past *p, bool records, struct stream *s, rv_err **err)
{
    if (records)
        return rv_store_read(store, &p->scope, &(struct rv_record_range){.run = p->row.id, .from = s->next},
                             print_record, s, err);
    return s->follower ? rv_follower_feed(s->follower, err) : print_first(store, p, s, err);
}

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL); /* a signal ends the process or the pause: both are fine */
}

/* Looks at the run by its key until it is over, or waits and that is the end. */
static int follow(rv_store *store, struct rv_app_past *p, enum rv_cli_until until, bool records, struct stream *s,
                  rv_err **err)
{
    int rc = 0;

    while (rc == 0 && !s->broken && !rv_run_status_is_final(p->row.status) &&
           !(until == RV_CLI_UNTIL_WAITS && p->row.status == RV_RUN_INTERRUPTED)) {
        struct rv_run_row row;
        pause_ms(POLL_MS);
        rc = rv_store_get_run(store, &p->scope, p->row.id, &row, err);
        if (rc < 0)
            break;
        bool grew = row.n_records != p->row.n_records;
        rv_run_row_fini(&p->row);
        p->row = row;
        if (!grew || s->is_silent)
            continue;
        rc = print_more(store, p, records, s, err);
        s->broken = !cli_out_now(RV_STR_LIT(""));
    }
    return rc;
}

int cli_follow(rv_store *store, struct rv_app_past *p, enum rv_cli_until until, bool prints, rv_err **err)
{
    struct stream s = {.next = 1, .is_silent = !prints};
    int rc = 0;

    if (prints) {
        rc = print_more(store, p, false, &s, err);
        s.broken = !cli_out_now(RV_STR_LIT(""));
    }
    if (rc == 0)
        rc = follow(store, p, until, false, &s, err);
    rv_follower_free(s.follower);
    return rc;
}

static int events(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_past p = {0};
    struct stream s = {.next = 1};
    bool records = cli_flag(cli, "records");

    int rc = cli_int(cli, "from", 1, INT64_MAX, &s.next, err);
    if (rc == 0)
        rc = rv_app_past_open(cli->store, &cli->app.scope, cli->words[0], &p, err);
    if (rc == 0)
        rc = print_more(cli->store, &p, records, &s, err);
    s.broken = !cli_out_now(RV_STR_LIT(""));
    if (rc == 0 && cli_flag(cli, "follow"))
        rc = follow(cli->store, &p, RV_CLI_UNTIL_OVER, records, &s, err);
    rv_follower_free(s.follower);
    rv_app_past_fini(&p);
    return rc;
}

static const struct rv_cli_option events_options[] = {
    {"from", 0, "SEQ", "start with the event (with --records: the record) of this number", NULL, false},
    {"follow", 'f', NULL, "continue until the run ends, even while it waits for an answer", NULL, false},
    {"records", 0, NULL, "print the records of the journal instead of the events", NULL, false},
};

const struct rv_cli_verb verb_runs_events = {
    .name = "runs events",
    .args = "RUN",
    .summary = "print the events of a run, one JSON object a line",
    .text =
        "Prints the same lines, byte for byte, that `reeve run --events` prints during the run: both come from the\n"
        "journal. A reader that stored the last `seq` continues with --from.",
    .examples = "reeve runs events last | jq -c '{seq, type, stage}'\n"
                "reeve runs events last --from 10 --follow\n"
                "reeve runs events last --records   # what the journal has",
    RV_CLI_OPTIONS(events_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_runs,
    .run = events,
};
