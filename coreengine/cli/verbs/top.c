/* reeve top: the runs under way and waiting, live on a terminal, once for pipes and programs. */
#include "coreengine/cli/show/width_internal.h"
#include "coreengine/cli/top/top_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>

#define INTERVAL_S   2   /* between two looks */
#define LEAST        10  /* columns and rows, whatever a terminal says */
#define PIPE_COLUMNS 160 /* as tables of other verbs have them in a pipe */
#define MAX_LOOKS    100 /* until all journals are read, for one printed look: each reads RV_APP_TOP_MAX_RECORDS */

static const struct rv_cli_option options[] = {
    {"once", 0, NULL, "print one table and exit; so it does without a terminal that can be redrawn", NULL, false},
    {"json", 'j', NULL, "print one look as a JSON object and exit", NULL, false},
    {"interval", 'i', "SECONDS", "time between two looks, 1 to 3600 (default 2)", NULL, false},
    {"sort", 0, "WORD", "order of the rows (default state: waiting, running, ready)",
     "state age cost tokens calls pipeline", false},
};

/* --- once --- */

static bool is_complete(const struct rv_app_top_snapshot *look)
{
    for (size_t i = 0; i < look->n; i++)
        if (!look->rows[i].is_read && !look->rows[i].is_damaged)
            return false;
    return true;
}

static int print_once(const struct rv_cli *cli, rv_app_top *top, enum rv_app_top_sort sort, rv_err **err)
{
    const struct rv_app_top_snapshot *look = NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    int rc = 0;

    for (int i = 0; rc == 0 && i < MAX_LOOKS && !(look && is_complete(look)); i++)
        rc = rv_app_top_read(top, rv_app_now_us(), sort, &look, err);
    if (rc == 0 && cli_flag(cli, "json")) {
        rv_app_top_write(look, &w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        struct rv_cli_top_view view = {.columns = PIPE_COLUMNS, .color = cli->out_color, .sort = sort};
        if (cli->out_tty)
            cli_terminal_size(&view.columns, NULL);
        cli_top_draw(look, &view, &text);
    }
    return cli_print(rc, &text, err);
}

/* --- live --- */

struct live {
    rv_cli_screen *screen;
    struct rv_cli_top_view view;
    char selected[RV_STORE_MAX_ID + 1];     /* its id: rows change their places; "": the first */
    const struct rv_app_top_snapshot *look; /* NULL: the store could not be read */
    rv_buf fault;
};

static size_t place_of(const struct live *l)
{
    for (size_t i = 0; i < l->look->n; i++)
        if (strcmp(l->look->rows[i].id, l->selected) == 0)
            return i;
    return l->view.selected < l->look->n ? l->view.selected : l->look->n ? l->look->n - 1 : 0;
}

static bool draw(struct live *l)
{
    rv_buf text = RV_BUF_INIT(RV_CLI_TOP_MAX_TEXT);
    struct rv_cli_top_view *v = &l->view;

    cli_terminal_size(&v->columns, &v->rows);
    v->columns = v->columns < LEAST ? LEAST : v->columns;
    v->rows = v->rows < LEAST ? LEAST : v->rows;
    if (l->look) {
        v->selected = place_of(l);
        cli_top_draw(l->look, v, &text);
    } else {
        rv_buf_puts(&text, "reeve top: the store cannot be read; q quits\n");
        cli_write_preview(rv_buf_str(&l->fault), v->columns, &text);
        rv_buf_putc(&text, '\n');
    }
    bool shown = cli_screen_show(l->screen, rv_buf_str(&text));
    rv_buf_fini(&text);
    return shown;
}

static void select_row(struct live *l, size_t place)
{
    l->view.selected = place;
    if (l->look && place < l->look->n)
        memcpy(l->selected, l->look->rows[place].id, strlen(l->look->rows[place].id) + 1);
}

static void move(struct live *l, enum rv_cli_top_key key)
{
    size_t at = l->view.selected, room = l->view.room, last = l->look && l->look->n ? l->look->n - 1 : 0;
    size_t step = key == RV_CLI_TOP_PAGE_UP || key == RV_CLI_TOP_PAGE_DOWN ? room : 1;

    if (key == RV_CLI_TOP_UP || key == RV_CLI_TOP_PAGE_UP)
        at = at > step ? at - step : 0;
    else if (key == RV_CLI_TOP_DOWN || key == RV_CLI_TOP_PAGE_DOWN)
        at = at + step < last ? at + step : last;
    else
        at = key == RV_CLI_TOP_HOME ? 0 : last;
    select_row(l, at);
}

/* A store that cannot be read now may be there again at the next look. */
static int look(struct live *l, rv_app_top *top, rv_err **err)
{
    rv_err *cause = NULL;
    int rc;

    l->look = NULL;
    rc = rv_app_top_read(top, rv_app_now_us(), l->view.sort, &l->look, &cause);
    if (rc == RV_E_NOMEM) {
        rv_err_pass(err, cause);
        return rc;
    }
    rv_buf_clear(&l->fault);
    if (rc < 0)
        rv_err_write_chain(cause, &l->fault);
    rv_err_free(cause);
    return 0;
}

/* Gives the exit status. */
static int watch(struct live *l, rv_app_top *top, int64_t interval_ms, rv_err **err)
{
    int rc = look(l, top, err);
    int64_t next_us = rv_app_now_us() + interval_ms * RV_US_PER_MS;

    while (rc == 0 && draw(l)) {
        int64_t left_ms = (next_us - rv_app_now_us()) / 1000;
        enum rv_cli_top_key key = cli_screen_wait(l->screen, left_ms > 0 ? left_ms : 0);
        if (key == RV_CLI_TOP_QUIT || key == RV_CLI_TOP_TERMINATED)
            return key == RV_CLI_TOP_QUIT ? RV_EXIT_COMPLETED : RV_EXIT_CANCELLED;
        if (key == RV_CLI_TOP_SORT)
            l->view.sort = (enum rv_app_top_sort)((l->view.sort + 1) % RV_N_APP_TOP_SORTS);
        if (key == RV_CLI_TOP_TIME || key == RV_CLI_TOP_REFRESH || key == RV_CLI_TOP_SORT) {
            rc = look(l, top, err);
            next_us = rv_app_now_us() + interval_ms * RV_US_PER_MS;
        } else if (key != RV_CLI_TOP_SIZE) {
            move(l, key);
        }
    }
    return rc < 0 ? rc : RV_EXIT_FAILED;
}

static int show_live(struct rv_cli *cli, rv_app_top *top, enum rv_app_top_sort sort, int64_t interval_s, rv_err **err)
{
    struct live l = {.view = {.color = cli->out_color, .sort = sort}, .fault = RV_BUF_INIT(1 << 16)};
    int rc = cli_screen_open(&l.screen, err);

    if (rc == 0)
        rc = watch(&l, top, interval_s * 1000, err);
    cli_screen_close(l.screen);
    rv_buf_fini(&l.fault);
    return rc;
}

/* Is standard output a terminal that can move its cursor? */
static bool is_screen(const struct rv_cli *cli)
{
    const char *term = getenv("TERM");

    return cli->out_tty && term && term[0] && strcmp(term, "dumb") != 0;
}

static int top(struct rv_cli *cli, rv_err **err)
{
    const char *word = cli_value(cli, "sort");
    enum rv_app_top_sort sort = RV_APP_TOP_BY_STATE;
    int64_t interval_s = INTERVAL_S;
    rv_app_top *state = NULL;

    int rc = cli_int(cli, "interval", 1, 3600, &interval_s, err);
    for (size_t i = 0; word && i < RV_N_APP_TOP_SORTS; i++) /* it is one of them: the option lists them */
        if (strcmp(rv_app_top_sort_text((enum rv_app_top_sort)i), word) == 0)
            sort = (enum rv_app_top_sort)i;
    if (rc == 0)
        rc = rv_app_top_new(cli->store, &cli->app.scope, &state, err);
    if (rc == 0 && !cli_flag(cli, "once") && !cli_flag(cli, "json") && is_screen(cli))
        rc = show_live(cli, state, sort, interval_s, err);
    else if (rc == 0)
        rc = print_once(cli, state, sort, err);
    rv_app_top_free(state);
    return rc;
}

const struct rv_cli_verb verb_top = {
    .name = "top",
    .args = "",
    .summary = "watch running and waiting runs",
    .text =
        "On a terminal it shows running, queued and waiting runs of the store and looks again every two seconds: "
        "state,\n"
        "pipeline, stage, what the run waits for and since when, age, model calls, tokens and cost, with their sums\n"
        "and the rates of the last minute. q quits, s changes the order, the arrow keys select a run, whose id and\n"
        "question are shown at the bottom. In a pipe, on a dumb terminal or with --once it prints one table.\n"
        "\n"
        "A look reads at most the 200 newest runs of each state, and of their journals only what is new: a store with\n"
        "millions of runs can be watched. Tokens and cost are \"-\" until the journal of the run is read.",
    .examples = "reeve top\n"
                "reeve top --sort cost --interval 5   # the dearest first\n"
                "reeve top --once                     # one table\n"
                "reeve top --json | jq '.runs[] | select(.waits_for.kind == \"answer\") | .id'",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS,
    .run = top,
};
