/* reeve schedules show, next: one schedule, its last firings and next times; and when an expression fires. */
#include "coreengine/app/app.h"
#include "coreengine/calendar/calendar.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#define SHOWN_TIMES  5         /* next times, unless --number says otherwise */
#define SHOWN_FIRED  10        /* last firings */
#define MAX_TIMES    1000      /* --number at most: a person reads them; more is an error */
#define MINUTE_S     60        /* an offset is shown in minutes, and a delay from one minute on */
#define TIME_IS_PAST INT64_MIN /* no time is before it */

/* --- times --- */

static void write_local(const struct rv_app_times *t, int64_t us, rv_buf *b)
{
    char local[RV_TIME_MAX];

    rv_zone_format(t->zone, us, local);
    rv_buf_puts(b, local);
}

/* A line for each: on the clocks of the zone, in UTC, and where the clocks were changed since the line before. */
static int write_times(const struct rv_app_times *t, int64_t after_us, int64_t n, const char *indent, rv_buf *b,
                       rv_err **err)
{
    int before_s = rv_zone_offset_s(t->zone, after_us), rc = 0;
    char utc[RV_TIME_MAX];

    for (int64_t i = 0; i < n && rc == 0; i++) {
        rc = rv_app_times_next(t, after_us, &after_us, err);
        if (rc < 0 || after_us == 0)
            break;
        int offset_s = rv_zone_offset_s(t->zone, after_us), by = (offset_s - before_s) / MINUTE_S;
        rv_zone_format(rv_zone_utc(), after_us, utc);
        rv_buf_puts(b, indent);
        write_local(t, after_us, b);
        if (t->zone != rv_zone_utc())
            rv_buf_printf(b, "  %s", utc);
        if (by != 0)
            rv_buf_printf(b, "  clocks %s by %d minutes", by > 0 ? "set forward" : "set back", by > 0 ? by : -by);
        rv_buf_putc(b, '\n');
        before_s = offset_s;
    }
    return rc;
}

/* --- show --- */

static void write_schedule(const struct rv_schedule_row *row, rv_buf *b)
{
    cli_put_line(b, "schedule", row->name);
    cli_put_line(b, "id", row->id);
    cli_put_line(b, "status", row->next_us > 0 ? "active" : "ended");
    cli_put_line(b, row->is_once ? "at" : "cron", row->expr);
    cli_put_line(b, "zone", row->zone);
    cli_put_line(b, row->bundle ? "pipeline" : "type", row->bundle ? row->pipeline : row->type);
    cli_put_line(b, "tenant", row->tenant);
    cli_put_line(b, "user", row->user);
    if (row->priority != 0)
        rv_buf_printf(b, "%-*s%lld\n", RV_CLI_LABEL, "priority", (long long)row->priority);
    cli_put_moment(b, "created", row->created_us);
    rv_buf_printf(b, "%-*s%lld, skipped %lld\n", RV_CLI_LABEL, "fired", (long long)row->n_fired,
                  (long long)row->n_skipped);
    cli_put_line(b, "error", row->error);
    rv_buf_printf(b, "%-*s", RV_CLI_LABEL, "payload");
    cli_write_lines(row->payload, b);
    rv_buf_putc(b, '\n');
}

struct firings {
    const struct rv_app_times *times;
    rv_buf *text;
    size_t n;
};

static int write_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    struct firings *l = self;

    (void)err;
    if (l->n++ == 0)
        rv_buf_puts(l->text, "\nlast firings\n");
    rv_buf_puts(l->text, "  ");
    write_local(l->times, f->planned_us, l->text);
    rv_buf_puts(l->text, f->made ? "  " : "  skipped: ");
    cli_write_safe(rv_str_of(f->made ? f->made : f->skipped), l->text);
    if (f->since_us < f->planned_us) {
        rv_buf_puts(l->text, ", also for those missed since ");
        write_local(l->times, f->since_us, l->text);
    } else if (f->made && f->at_us - f->planned_us >= MINUTE_S * INT64_C(1000000)) {
        rv_buf_puts(l->text, ", late by ");
        cli_write_age(l->text, f->at_us - f->planned_us);
    }
    rv_buf_putc(l->text, '\n');
    return 0;
}

static int show_text(struct rv_cli *cli, const struct rv_schedule_row *row, const struct rv_app_times *times,
                     rv_buf *text, rv_err **err)
{
    struct firings l = {.times = times, .text = text};

    write_schedule(row, text);
    int rc = rv_store_list_firings(cli->store, &cli->app.scope,
                                   &(const struct rv_firing_filter){.word = cli->words[0], .limit = SHOWN_FIRED},
                                   write_firing, &l, err);
    if (rc < 0 || row->next_us == 0)
        return rc;
    rv_buf_puts(text, "\nnext times\n");
    return write_times(times, row->next_us - 1, SHOWN_TIMES, "  ", text, err);
}

static int show_json(struct rv_cli *cli, const struct rv_schedule_row *row, const struct rv_app_times *times,
                     rv_buf *text, rv_err **err)
{
    rv_jw w = rv_jw_on(text);
    struct rv_app_schedule_view v = {
        .row = row, .times = row->next_us > 0 ? times : NULL, .n_times = SHOWN_TIMES, .after_us = row->next_us - 1};

    int rc = rv_app_build_firings(cli->store, &cli->app.scope, row, 0, &v.firings, err);
    if (rc == 0)
        rc = rv_app_schedule_write(&v, &w, err);
    rv_buf_putc(text, '\n');
    json_object_put(v.firings);
    return rc;
}

int cli_find_schedule(struct rv_cli *cli, const char *word, struct rv_schedule_row *out, rv_err **err)
{
    int rc = rv_store_get_schedule(cli->store, &cli->app.scope, word, out, err);

    if (rc == RV_E_NOT_FOUND)
        rv_err_set_hint(err, "`reeve schedules list` shows the names; with --tenant or --user only theirs");
    return rc;
}

static int show(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct rv_schedule_row row = {0};
    struct rv_app_times times = {0};

    int rc = cli_find_schedule(cli, cli->words[0], &row, err);
    if (rc == 0)
        rc = rv_app_times_build(&row, NULL, &times, err);
    if (rc == 0)
        rc =
            cli_flag(cli, "json") ? show_json(cli, &row, &times, &text, err) : show_text(cli, &row, &times, &text, err);
    rv_app_times_fini(&times);
    rv_schedule_row_fini(&row);
    return cli_print(rc, &text, err);
}

/* --- next --- */

static int read_after(const struct rv_cli *cli, const struct rv_app_times *t, int64_t *out, rv_err **err)
{
    const struct rv_src in_after = {"--after", 1, 1};
    const char *text = cli_value(cli, "after");
    struct rv_when when = {0};

    if (!text) {
        *out = rv_app_now_us();
        return 0;
    }
    int rc = rv_when_parse(rv_str_of(text), t->zone, TIME_IS_PAST, &in_after, &when, err);
    if (rc == 0)
        *out = when.us;
    return rc;
}

static int write_next(struct rv_cli *cli, const struct rv_app_times *t, rv_buf *text, rv_err **err)
{
    int64_t n = SHOWN_TIMES, after_us = 0;
    rv_jw w = rv_jw_on(text);
    char at[RV_TIME_MAX];

    int rc = cli_int(cli, "number", 1, MAX_TIMES, &n, err);
    if (rc == 0)
        rc = read_after(cli, t, &after_us, err);
    if (rc < 0)
        return rc;
    if (!cli_flag(cli, "json"))
        return write_times(t, after_us, n, "", text, err);
    rv_jw_arr(&w);
    for (int64_t i = 0; i < n && rc == 0; i++) {
        rc = rv_app_times_next(t, after_us, &after_us, err);
        if (rc < 0 || after_us == 0)
            break;
        rv_jw_obj(&w);
        rv_zone_format(t->zone, after_us, at);
        rv_jw_kv_text(&w, "at", at);
        rv_time_format(after_us, at);
        rv_jw_kv_text(&w, "utc", at);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    rv_buf_putc(text, '\n');
    return rc;
}

static int open_times(struct rv_cli *cli, struct rv_app_times *out, rv_err **err)
{
    const struct rv_app_when when = {.cron = cli_value(cli, "cron"), .zone = cli_value(cli, "zone")};
    struct rv_schedule_row row = {0};

    if (when.cron)
        return rv_app_times_open(&when, 0, out, err);
    int rc = rv_app_store_open(&cli->app, RV_APP_STORE_READ, &cli->store, err);
    if (rc == 0)
        rc = cli_find_schedule(cli, cli->words[0], &row, err);
    if (rc == 0)
        rc = rv_app_times_build(&row, NULL, out, err);
    rv_schedule_row_fini(&row);
    return rc;
}

static int next(struct rv_cli *cli, rv_err **err)
{
    bool has_cron = cli_value(cli, "cron") != NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct rv_app_times times = {0};

    if (has_cron == (cli->n_words > 0))
        return cli_usage(cli, err, "give the name of a schedule, or an expression: --cron \"0 9 * * *\"");
    int rc = open_times(cli, &times, err);
    if (rc == 0)
        rc = write_next(cli, &times, &text, err);
    rv_app_times_fini(&times);
    if (rc == 0 && text.len == 0)
        cli_say("it does not fire again\n");
    return cli_print(rc, &text, err);
}

/* --- the table --- */

static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print a JSON object", NULL, false},
};
static const struct rv_cli_option next_options[] = {
    {"cron", 0, "EXPR", "an expression instead of a schedule", NULL, false},
    {"zone", 0, "NAME", "with --cron: time zone, e.g. Europe/Berlin (default UTC)", NULL, false},
    {"after", 0, "TIME", "the times after this one, e.g. 2027-03-27 (default now)", NULL, false},
    {"number", 'n', "N", "number of times (default 5)", NULL, false},
    {"json", 'j', NULL, "print a JSON array of objects", NULL, false},
};

const struct rv_cli_verb verb_schedules_show = {
    .name = "schedules show",
    .args = "SCHEDULE",
    .summary = "show a schedule, its last firings and next times",
    .text =
        "Prints the last ten firings with the ids of their runs or tasks, and the next five times on the clocks of\n"
        "its time zone and in UTC. SCHEDULE is a name or an id. --json lists the last 100 firings.",
    .examples = "reeve schedules show greet\n"
                "reeve schedules show greet --json | jq -r '.firings[] | .run // .task // .skipped'",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_schedules,
    .store = RV_CLI_READS,
    .run = show,
};
const struct rv_cli_verb verb_schedules_next = {
    .name = "schedules next",
    .args = "[SCHEDULE]",
    .summary = "show when a schedule or a cron expression fires",
    .text =
        "Prints the next times on the clocks of the time zone and in UTC, and says where the clocks are changed in\n"
        "between. Nothing is stored.",
    .examples = "reeve schedules next --cron '30 2 * * *' --zone Europe/Berlin --after 2027-03-26\n"
                "reeve schedules next greet --number 20",
    RV_CLI_OPTIONS(next_options),
    .groups = {&cli_of_stores},
    .needs = "zone cron",
    .max_words = 1,
    .takes = &cli_takes_schedules,
    .run = next,
};
