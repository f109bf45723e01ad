/* A look at a store as lines: what all runs do, a row for each, and their sum. Columns are as wide as what they have;
 * where that is too wide, the widest ones are cut first, and then columns are left out, the least important first.
 * Texts of others are made safe, and are cut by the columns that they take on a screen. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/width_internal.h"
#include "coreengine/cli/top/top_internal.h"

#include <string.h>

#define GAP      2             /* blanks between columns */
#define MAX_CELL ((size_t)600) /* bytes of a name: a terminal has fewer columns; the rest is cut */
#define N_ABOVE  4             /* lines above the rows: two of sums, an empty one, the heads */
#define N_BELOW  3             /* below: the sum, the run that is selected, the keys */

enum { STATE, RUN, PIPELINE, STAGE, WAITS, AGE, CALLS, TOKENS, COST, N_COLUMNS };
/* rank: the greatest is left out first. */
static const struct {
    const char *head;
    size_t least, most;
    bool right;
    int rank;
} columns[] = {
    [STATE] = {"STATE", 7, 11, false, 0},       [RUN] = {"RUN", 12, 40, false, 8},
    [PIPELINE] = {"PIPELINE", 8, 24, false, 1}, [STAGE] = {"STAGE", 6, 20, false, 4},
    [WAITS] = {"WAITS FOR", 20, 200, false, 2}, [AGE] = {"AGE", 6, 9, true, 3},
    [CALLS] = {"CALLS", 5, 9, true, 7},         [TOKENS] = {"TOKENS", 6, 16, true, 6},
    [COST] = {"COST", 5, 14, true, 5},
};
RV_EACH_HAS_ROW(columns, N_COLUMNS);

/* The cells of the whole table, one behind the other, and how wide each column is; 0: left out. */
struct grid {
    rv_buf text;
    struct {
        size_t at, len, width;
    } cells[RV_APP_TOP_MAX_ROWS * 3 + 1][N_COLUMNS];
    size_t widths[N_COLUMNS];
};

static const char *state_of(enum rv_run_status status)
{
    return status == RV_RUN_INTERRUPTED ? "waiting" : rv_run_status_text(status);
}

static const char *color_of(enum rv_run_status status)
{
    return status == RV_RUN_INTERRUPTED ? "\033[33m" : status == RV_RUN_RUNNING ? "\033[36m" : "\033[2m";
}

/* --- what a run waits for --- */

static void write_call(const char *what, const struct rv_app_top_row *r, int64_t now_us, rv_buf *b)
{
    rv_buf_printf(b, "%s ", what);
    cli_write_preview(rv_str_of(r->name), MAX_CELL, b);
    if (r->n > 1)
        rv_buf_printf(b, " and %zu more", r->n - 1);
    rv_buf_puts(b, " (");
    cli_write_age(b, now_us - r->since_us);
    rv_buf_putc(b, ')');
}

static void write_question(const struct rv_app_top_row *r, int64_t now_us, rv_buf *b)
{
    rv_buf_printf(b, "%s%s: ", r->name, r->expires_us > 0 && r->expires_us <= now_us ? " (expired)" : "");
    cli_write_preview(rv_str_of(r->text), MAX_CELL, b);
    if (r->n > 1)
        rv_buf_printf(b, " (and %zu more)", r->n - 1);
}

static void write_wait(const struct rv_app_top_row *r, int64_t now_us, rv_buf *b)
{
    if (r->is_damaged) {
        rv_buf_puts(b, "its journal cannot be read");
        return;
    }
    if (r->cancel_requested) {
        rv_buf_puts(b, "to be cancelled");
        return;
    }
    switch (r->waits) {
    case RV_APP_TOP_NOTHING:
        rv_buf_putc(b, '-');
        break;
    case RV_APP_TOP_WORKER:
        rv_buf_puts(b, "a worker");
        break;
    case RV_APP_TOP_MODEL:
        write_call("model", r, now_us, b);
        break;
    case RV_APP_TOP_TOOL:
        write_call("tool", r, now_us, b);
        break;
    case RV_APP_TOP_HOOK:
        write_call("hook", r, now_us, b);
        break;
    case RV_APP_TOP_ANSWER:
        write_question(r, now_us, b);
        break;
    case RV_APP_TOP_OWNER:
        rv_buf_printf(b, "a process (owner: %s)", r->name);
        break;
    case RV_N_APP_TOP_WAITS:
        break;
    }
}

/* --- cells --- */

static void end_cell(struct grid *g, size_t row, size_t column, size_t at)
{
    g->cells[row][column].at = at;
    g->cells[row][column].len = g->text.len - at;
    g->cells[row][column].width = cli_width((rv_str){rv_buf_cstr(&g->text) + at, g->text.len - at});
}

static void put_text(struct grid *g, size_t row, size_t column, const char *text)
{
    size_t at = g->text.len;

    cli_write_preview(rv_str_of(text), MAX_CELL, &g->text);
    end_cell(g, row, column, at);
}

static void put_numbers(struct grid *g, size_t row, int64_t calls, const struct rv_usage *used)
{
    char money[RV_APP_MAX_MONEY];
    size_t at = g->text.len;

    rv_app_write_count(&g->text, calls);
    end_cell(g, row, CALLS, at);
    at = g->text.len;
    rv_app_write_count(&g->text, used->input_tokens + used->output_tokens);
    end_cell(g, row, TOKENS, at);
    put_text(g, row, COST, rv_app_format_money(used->cost_micro_usd, money));
}

static void put_row(struct grid *g, size_t row, const struct rv_app_top_row *r, int64_t now_us)
{
    put_text(g, row, STATE, state_of(r->status));
    put_text(g, row, RUN, r->id);
    put_text(g, row, PIPELINE, r->pipeline);
    put_text(g, row, STAGE, r->stage[0] ? r->stage : "-");
    size_t at = g->text.len;
    write_wait(r, now_us, &g->text);
    end_cell(g, row, WAITS, at);
    at = g->text.len;
    cli_write_age(&g->text, now_us - r->created_us);
    end_cell(g, row, AGE, at);
    if (r->is_read)
        put_numbers(g, row, r->llm_calls, &r->used);
    for (size_t c = CALLS; !r->is_read && c <= COST; c++)
        put_text(g, row, c, "-");
}

static void put_sum(struct grid *g, const struct rv_app_top_snapshot *look)
{
    size_t row = look->n, at = g->text.len;

    rv_buf_printf(&g->text, "%zu%s run%s", look->n, look->more ? "+" : "", look->n == 1 ? "" : "s");
    end_cell(g, row, STATE, at);
    put_numbers(g, row, look->llm_calls, &look->used);
}

/* --- widths --- */

static void measure(struct grid *g, size_t n_rows)
{
    for (size_t c = 0; c < N_COLUMNS; c++) {
        size_t width = strlen(columns[c].head);
        for (size_t i = 0; i < n_rows; i++)
            width = g->cells[i][c].width > width ? g->cells[i][c].width : width;
        g->widths[c] = width > columns[c].most ? columns[c].most : width;
        if (g->widths[c] < columns[c].least && !columns[c].right)
            g->widths[c] = columns[c].least;
    }
}

static size_t sum_of(const struct grid *g)
{
    size_t sum = 0;

    for (size_t c = 0; c < N_COLUMNS; c++)
        sum += g->widths[c] ? g->widths[c] + (sum ? GAP : 0) : 0;
    return sum;
}

/* Numbers are whole or not there. False: all columns are at their least. */
static bool shrink_one(struct grid *g)
{
    size_t found = N_COLUMNS, spare = 0;

    for (size_t c = 0; c < N_COLUMNS; c++)
        if (!columns[c].right && g->widths[c] > columns[c].least && g->widths[c] - columns[c].least > spare) {
            found = c;
            spare = g->widths[c] - columns[c].least;
        }
    if (found < N_COLUMNS)
        g->widths[found]--;
    return found < N_COLUMNS;
}

static bool leave_one_out(struct grid *g)
{
    size_t found = N_COLUMNS, n = 0;

    for (size_t c = 0; c < N_COLUMNS; c++) {
        n += g->widths[c] > 0;
        if (g->widths[c] > 0 && (found == N_COLUMNS || columns[c].rank > columns[found].rank))
            found = c;
    }
    if (n > 1)
        g->widths[found] = 0;
    return n > 1;
}

static void fit(struct grid *g, size_t width)
{
    size_t wanted[N_COLUMNS];

    memcpy(wanted, g->widths, sizeof wanted);
    while (sum_of(g) > width) {
        if (shrink_one(g))
            continue;
        if (!leave_one_out(g))
            return;
        for (size_t c = 0; c < N_COLUMNS; c++) /* what it took is for the others */
            g->widths[c] = g->widths[c] ? wanted[c] : 0;
    }
}

/* --- lines --- */

static void write_blanks(size_t n, rv_buf *b)
{
    rv_buf_printf(b, "%*s", (int)n, "");
}

static void write_cut(rv_str text, size_t text_width, size_t width, rv_buf *b)
{
    bool cut = text_width > width;
    rv_str shown = cut ? cli_fitting(text, width > 6 ? width - 3 : width) : text;

    rv_buf_add_str(b, shown);
    rv_buf_puts(b, cut && width > 6 ? "..." : "");
}

static void write_cell(rv_str text, size_t text_width, size_t c, size_t width, rv_buf *b)
{
    size_t begun = b->len;

    if (columns[c].right && text_width < width)
        write_blanks(width - text_width, b);
    write_cut(text, text_width, width, b);
    size_t used = cli_width((rv_str){rv_buf_cstr(b) + begun, b->len - begun});
    if (!columns[c].right && used < width)
        write_blanks(width - used, b);
}

static void drop_blanks(rv_buf *b)
{
    while (b->len && b->ptr[b->len - 1] == ' ')
        rv_buf_truncate(b, b->len - 1);
}

static void write_heads(const struct grid *g, bool color, rv_buf *b)
{
    bool any = false;

    rv_buf_puts(b, color ? "\033[1m" : "");
    for (size_t c = 0; c < N_COLUMNS; c++) {
        if (!g->widths[c])
            continue;
        rv_buf_puts(b, any ? "  " : "");
        write_cell(rv_str_of(columns[c].head), strlen(columns[c].head), c, g->widths[c], b);
        any = true;
    }
    drop_blanks(b);
    rv_buf_puts(b, color ? "\033[0m\n" : "\n");
}

/* status: colours the first cell; NULL: no colour. */
static void write_row(const struct grid *g, size_t row, const enum rv_run_status *status, rv_buf *b)
{
    bool any = false;

    for (size_t c = 0; c < N_COLUMNS; c++) {
        const rv_str text = {rv_buf_cstr(&g->text) + g->cells[row][c].at, g->cells[row][c].len};
        bool tinted = c == STATE && status;
        if (!g->widths[c])
            continue;
        rv_buf_puts(b, any ? "  " : "");
        rv_buf_puts(b, tinted ? color_of(*status) : "");
        write_cell(text, g->cells[row][c].width, c, g->widths[c], b);
        rv_buf_puts(b, tinted ? "\033[0m" : "");
        any = true;
    }
    drop_blanks(b);
}

/* A line of its own text, cut to the width. */
static void write_line(rv_buf *line, size_t width, rv_buf *b)
{
    rv_str text = rv_buf_str(line);

    write_cut(text, cli_width(text), width, b);
    rv_buf_putc(b, '\n');
    rv_buf_clear(line);
}

/* --- sums above the table --- */

/* n for each second, with as many digits as say something. */
static void write_rate(int64_t n, int64_t span_us, rv_buf *b)
{
    double rate = (double)n * (double)RV_US_PER_S / (double)span_us;

    if (rate >= 100)
        rv_app_write_count(b, (int64_t)(rate + 0.5));
    else
        rv_buf_printf(b, rate >= 10 ? "%.1f" : "%.2f", rate);
}

static void write_rates(const struct rv_app_top_rates *r, rv_buf *line)
{
    if (r->span_us <= 0) {
        rv_buf_puts(line, "rates are not known yet");
        return;
    }
    rv_buf_puts(line, "last ");
    cli_write_age(line, r->span_us);
    rv_buf_puts(line, ": ");
    write_rate(r->n_ended, r->span_us, line);
    rv_buf_puts(line, " runs/s, ");
    const char *least = r->is_partial ? "at least " : "";
    rv_buf_puts(line, least);
    write_rate(r->tokens, r->span_us, line);
    double cost = (double)r->cost_micro_usd * ((double)RV_US_PER_HOUR / (double)RV_US_PER_S) / (double)r->span_us;
    rv_buf_printf(line, " tokens/s, %s$%.2f/h", least, cost);
}

static void write_sums(const struct rv_app_top_snapshot *look, const struct rv_cli_top_view *view, rv_buf *b)
{
    rv_buf line = RV_BUF_INIT(1024);
    char time[RV_TIME_MAX];

    rv_time_format(look->now_us, time);
    rv_buf_printf(&line, "reeve top  %.8s UTC  %zu running, %zu ready, %zu waiting", time + 11, look->n_running,
                  look->n_ready, look->n_waiting);
    rv_buf_puts(&line, look->more ? " (and more)" : "");
    rv_buf_printf(&line, "  by %s", rv_app_top_sort_text(view->sort));
    write_line(&line, view->columns, b);
    write_rates(&look->rates, &line);
    write_line(&line, view->columns, b);
    rv_buf_putc(b, '\n');
    rv_buf_fini(&line);
}

/* The whole of the selected run, since a narrow table has only a part. */
static void write_selected(const struct rv_app_top_snapshot *look, const struct rv_cli_top_view *view, rv_buf *b)
{
    rv_buf line = RV_BUF_INIT(4096);

    if (view->selected < look->n) {
        const struct rv_app_top_row *r = &look->rows[view->selected];
        cli_write_preview(rv_str_of(r->id), MAX_CELL, &line);
        rv_buf_printf(&line, "  %s in ", state_of(r->status));
        cli_write_preview(rv_str_of(r->stage[0] ? r->stage : "-"), MAX_CELL, &line);
        rv_buf_puts(&line, "  ");
        write_wait(r, look->now_us, &line);
    }
    write_line(&line, view->columns, b);
    rv_buf_puts(&line, "q quit  s sort  up/down select  r refresh");
    write_line(&line, view->columns, b);
    rv_buf_fini(&line);
}

/* Rows fit between the lines above and below them. */
static void scroll(struct rv_cli_top_view *view, size_t n)
{
    view->room = view->rows > N_ABOVE + N_BELOW ? view->rows - N_ABOVE - N_BELOW : 1;
    if (view->rows == 0) {
        view->room = n;
        view->first = 0;
    } else if (view->selected < view->first) {
        view->first = view->selected;
    } else if (view->selected >= view->first + view->room) {
        view->first = view->selected + 1 - view->room;
    }
}

static void write_rows(const struct grid *g, const struct rv_app_top_snapshot *look, const struct rv_cli_top_view *view,
                       rv_buf *b)
{
    bool live = view->rows > 0;

    for (size_t i = view->first; i < look->n && i < view->first + view->room; i++) {
        bool selected = live && i == view->selected;
        if (live)
            rv_buf_puts(b, !selected ? "  " : view->color ? "\033[7m> " : "> ");
        write_row(g, i, view->color && !selected ? &look->rows[i].status : NULL, b);
        rv_buf_puts(b, selected && view->color ? "\033[0m\n" : "\n");
    }
}

void cli_top_draw(const struct rv_app_top_snapshot *look, struct rv_cli_top_view *view, rv_buf *b)
{
    static struct grid g; /* too large for a stack; one process has one screen */
    bool live = view->rows > 0;
    size_t mark = live ? 2 : 0;

    scroll(view, look->n);
    rv_buf_init(&g.text, RV_CLI_TOP_MAX_TEXT);
    memset(g.cells[look->n], 0, sizeof g.cells[look->n]);
    for (size_t i = 0; i < look->n; i++)
        put_row(&g, i, &look->rows[i], look->now_us);
    put_sum(&g, look);
    measure(&g, look->n + 1);
    fit(&g, view->columns > mark ? view->columns - mark : 1);
    write_sums(look, view, b);
    write_blanks(mark, b);
    write_heads(&g, view->color, b);
    write_rows(&g, look, view, b);
    write_blanks(mark, b);
    rv_buf_puts(b, view->color ? "\033[1m" : "");
    write_row(&g, look->n, NULL, b);
    rv_buf_puts(b, view->color ? "\033[0m\n" : "\n");
    if (live)
        write_selected(look, view, b);
    if (g.text.rc < 0)
        b->rc = b->rc ? b->rc : g.text.rc;
    rv_buf_fini(&g.text);
}
