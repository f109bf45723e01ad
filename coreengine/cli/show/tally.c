/* What model calls took: tokens, money, time. Read from llm_result events, shown per call and as a table per stage. */
#include "coreengine/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES   100000 /* times of calls: they are in memory; the medians of more hardly differ */
#define MAX_NAME      28     /* columns for names: eight columns of numbers stand beside; longer ones move their line */
#define MAX_CELL      48     /* bytes of a number with its unit: 20 digits, their commas, and a word */
#define CELL_DISTANCE 2      /* blanks between columns */

struct row {
    int64_t calls, told; /* told: those whose tokens were */
    struct rv_usage usage;
};
struct sample {
    int stage;
    int64_t latency_ms, first_ms;
};
struct rv_cli_tally {
    const struct rv_pipeline *pipeline; /* borrowed */
    struct row *rows;                   /* one for each stage; owned */
    struct sample *samples;             /* owned */
    size_t n_samples, cap_samples;
    int rc; /* sticky RV_E_NOMEM: samples are missing */
};

static void write_money(const struct rv_usage *u, rv_buf *b)
{
    char text[RV_APP_MAX_MONEY];

    rv_buf_printf(b, "%s%s", u->estimated ? "~" : "", rv_app_format_money(u->cost_micro_usd, text));
}

void cli_spent_write(const struct rv_app_spent *s, rv_buf *b)
{
    const struct rv_usage *u = &s->usage;

    if (s->is_told) {
        rv_buf_puts(b, ", ");
        rv_app_write_count(b, u->input_tokens);
        rv_buf_puts(b, " in");
        if (u->cached_tokens) {
            rv_buf_puts(b, " (");
            rv_app_write_count(b, u->cached_tokens);
            rv_buf_puts(b, " cached)");
        }
        rv_buf_puts(b, ", ");
        rv_app_write_count(b, u->output_tokens);
        rv_buf_puts(b, " out");
        if (u->reasoning_tokens) {
            rv_buf_puts(b, " (");
            rv_app_write_count(b, u->reasoning_tokens);
            rv_buf_puts(b, " reasoning)");
        }
    }
    if (u->cost_micro_usd) {
        rv_buf_puts(b, ", ");
        write_money(u, b);
    }
    if (s->first_ms) {
        rv_buf_puts(b, ", first token after ");
        cli_write_duration(b, s->first_ms * RV_US_PER_MS);
    }
}

rv_cli_tally *cli_tally_new(const struct rv_pipeline *p)
{
    rv_cli_tally *t = calloc(1, sizeof *t);

    if (t) {
        t->pipeline = p;
        t->rows = calloc(p->n_agents ? p->n_agents : 1, sizeof *t->rows);
    }
    if (t && !t->rows) {
        free(t);
        t = NULL;
    }
    return t;
}

void cli_tally_free(rv_cli_tally *t)
{
    if (!t)
        return;
    free(t->rows);
    free(t->samples);
    free(t);
}

static void add_sample(rv_cli_tally *t, int stage, const struct rv_app_spent *s)
{
    if (t->cap_samples < MAX_SAMPLES &&
        !rv_has_room(&t->samples, &t->cap_samples, t->n_samples + 1, sizeof *t->samples))
        t->rc = RV_E_NOMEM;
    if (t->n_samples < t->cap_samples)
        t->samples[t->n_samples++] = (struct sample){stage, s->latency_ms, s->first_ms};
}

void cli_tally_add(rv_cli_tally *t, int stage, const struct rv_app_spent *s)
{
    if (!t || stage < 0 || (size_t)stage >= t->pipeline->n_agents)
        return;
    struct row *r = &t->rows[stage];
    r->calls++;
    r->told += s->is_told;
    rv_usage_add(&r->usage, &s->usage);
    if (s->latency_ms || s->first_ms)
        add_sample(t, stage, s);
}

/* --- the table --- */

enum column { CALLS, INPUT, CACHED, OUTPUT, REASONING, COST, FIRST, LATENCY, N_COLUMNS };
static const char *const titles[] = {
    [CALLS] = "calls",         [INPUT] = "input", [CACHED] = "cached",     [OUTPUT] = "output",
    [REASONING] = "reasoning", [COST] = "cost",   [FIRST] = "first token", [LATENCY] = "latency"};
RV_EACH_HAS_ROW(titles, N_COLUMNS);

struct line {
    const char *name;
    char cells[N_COLUMNS][MAX_CELL]; /* empty: nothing to say */
    int rc;                          /* sticky, of a cell */
};

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Of a stage, or with -1 of all; 0: nothing was measured. */
static int64_t median_ms(const rv_cli_tally *t, int stage, bool first, int64_t *scratch)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_samples; i++) {
        int64_t ms = first ? t->samples[i].first_ms : t->samples[i].latency_ms;
        if (ms && (stage < 0 || t->samples[i].stage == stage))
            scratch[n++] = ms;
    }
    if (n == 0)
        return 0;
    qsort(scratch, n, sizeof *scratch, by_size);
    return n % 2 ? scratch[n / 2] : (scratch[n / 2 - 1] + scratch[n / 2]) / 2;
}

static void put(struct line *l, enum column c, rv_buf *text)
{
    snprintf(l->cells[c], MAX_CELL, "%s", rv_buf_cstr(text));
    l->rc = l->rc < 0 ? l->rc : text->rc;
    rv_buf_clear(text);
}

static void put_count(struct line *l, enum column c, int64_t n, bool also_zero)
{
    rv_buf text = RV_BUF_INIT(MAX_CELL);

    if (n || also_zero)
        rv_app_write_count(&text, n);
    put(l, c, &text);
    rv_buf_fini(&text);
}

static void put_time(struct line *l, enum column c, int64_t ms)
{
    rv_buf text = RV_BUF_INIT(MAX_CELL);

    if (ms)
        cli_write_duration(&text, ms * 1000);
    put(l, c, &text);
    rv_buf_fini(&text);
}

static void fill(const rv_cli_tally *t, int stage, const struct row *r, int64_t *scratch, struct line *l)
{
    rv_buf money = RV_BUF_INIT(MAX_CELL);

    put_count(l, CALLS, r->calls, true);
    put_count(l, INPUT, r->usage.input_tokens, r->told > 0);
    put_count(l, CACHED, r->usage.cached_tokens, false);
    put_count(l, OUTPUT, r->usage.output_tokens, r->told > 0);
    put_count(l, REASONING, r->usage.reasoning_tokens, false);
    if (r->usage.cost_micro_usd)
        write_money(&r->usage, &money);
    put(l, COST, &money);
    rv_buf_fini(&money);
    put_time(l, FIRST, median_ms(t, stage, true, scratch));
    put_time(l, LATENCY, median_ms(t, stage, false, scratch));
}

static size_t widest(size_t width, const char *text)
{
    size_t n = strlen(text);

    return n > width ? n : width;
}

static void print(const struct line *lines, size_t n, bool color, rv_buf *b)
{
    size_t name = strlen("all"), width[N_COLUMNS] = {0};

    for (size_t i = 0; i < n; i++) {
        b->rc = b->rc < 0 ? b->rc : lines[i].rc;
        name = widest(name, lines[i].name);
        for (size_t c = 0; c < N_COLUMNS; c++)
            width[c] = widest(width[c], lines[i].cells[c]);
    }
    name = name > MAX_NAME ? MAX_NAME : name;
    rv_buf_printf(b, "%s%-*s", color ? "\033[1m" : "", (int)name + 2, "usage");
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (width[c]) {
            width[c] = widest(width[c], titles[c]);
            rv_buf_printf(b, "%*s", (int)(width[c] + CELL_DISTANCE), titles[c]);
        }
    rv_buf_printf(b, "%s\n", color ? "\033[0m" : "");
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(b, "  %-*.*s", (int)name, (int)name, lines[i].name);
        for (size_t c = 0; c < N_COLUMNS; c++)
            if (width[c])
                rv_buf_printf(b, "%*s", (int)(width[c] + CELL_DISTANCE),
                              lines[i].cells[c][0] ? lines[i].cells[c] : "-");
        rv_buf_putc(b, '\n');
    }
}

static bool is_known(const struct row *r)
{
    return r->told > 0 || r->usage.cost_micro_usd > 0;
}

void cli_tally_write(const rv_cli_tally *t, const struct rv_usage *total, bool color, rv_buf *b)
{
    struct row all = {0};
    size_t n = 0;

    if (!t)
        return;
    struct line *lines = calloc(t->pipeline->n_agents + 1, sizeof *lines);
    int64_t *scratch = calloc(t->n_samples + 1, sizeof *scratch);
    for (size_t i = 0; lines && scratch && i < t->pipeline->n_agents; i++) {
        const struct row *r = &t->rows[i];
        if (!r->calls)
            continue;
        lines[n].name = t->pipeline->agents[i].name;
        fill(t, (int)i, r, scratch, &lines[n++]);
        all.calls += r->calls;
        all.told += r->told;
        rv_usage_add(&all.usage, &r->usage);
    }
    bool is_more = total && total->cost_micro_usd != all.usage.cost_micro_usd;
    if (is_more) {
        all.usage = *total;
        all.calls = total->calls > all.calls ? total->calls : all.calls;
    }
    if (n > 1 || (n == 1 && is_more)) {
        lines[n].name = "all";
        fill(t, -1, &all, scratch, &lines[n++]);
    }
    if ((!lines || !scratch || t->rc < 0) && b->rc == 0)
        b->rc = RV_E_NOMEM;
    if (n && is_known(&all))
        print(lines, n, color, b);
    free(lines);
    free(scratch);
}
