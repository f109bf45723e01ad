/* What a person sees of a run: a line for each stage as it ends, what is waited for and how long, and at the end a
 * timeline and what models took.
 *
 * The live line is redrawn by a small thread, because the loop thread sleeps while it waits; the mutex guards
 * everything that both touch. */
#include "coreengine/base/base.h"
#include "coreengine/cli/cli.h"
#include "coreengine/cli/outlet_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MAX_SPANS 10000 /* visits that are drawn: they are in memory, and people read no longer picture */
#define MAX_ERROR 1000  /* bytes of why a stage failed: one line of the progress; the end of the run has all */
#define REDRAW_MS 100   /* between two drawings: as often as an eye follows */

struct span {
    int stage;
    int64_t visit, begun_us, ended_us; /* ended 0: under way */
    char status;                       /* 's'uccess 'e'rror s'k'ipped 'a'sked */
};

struct rv_progress {
    const struct rv_cli *cli;
    const struct rv_pipeline *pipeline;
    bool live, timeline, utf8;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards the spans, the tally and the flags; leaf */
    pthread_cond_t wake;
    bool stopped, drawn;
    struct span *spans; /* owned */
    size_t n, cap;
    int64_t begun_us, offset_us; /* offset: engine time minus our own clock */
    size_t received;             /* bytes of model text so far */
    rv_cli_tally *usage;         /* owned; NULL: no memory for it, or no timeline */
};

static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* What a line of the terminal has beside `taken` columns. */
static size_t width_beside(size_t taken)
{
    size_t width = terminal_width();
    return width > taken ? width - taken : 0;
}

static bool is_utf8(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < RV_COUNT(names); i++) {
        const char *v = getenv(names[i]);
        if (v && v[0])
            return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "utf-8");
    }
    return false;
}

static void erase(rv_progress *p, rv_buf *b)
{
    if (p->drawn)
        rv_buf_puts(b, "\r\033[K");
    p->drawn = false;
}

/* "waiting for search, read (1.2 s)", cut to the terminal. */
static void draw(rv_progress *p, rv_buf *b)
{
    static const char *const dots[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    rv_buf line = RV_BUF_INIT(8192);
    int64_t now = rv_app_now_us() + p->offset_us, oldest = now;
    size_t waiting = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct span *s = &p->spans[i];
        if (s->ended_us)
            continue;
        rv_buf_printf(&line, "%s%s", waiting++ ? ", " : "", p->pipeline->agents[s->stage].name);
        oldest = s->begun_us < oldest ? s->begun_us : oldest;
    }
    erase(p, b);
    if (waiting) {
        rv_buf time = RV_BUF_INIT(64);
        cli_write_duration(&time, now - oldest);
        rv_str names = rv_utf8_cut(rv_buf_str(&line), width_beside(44));
        rv_buf_puts(b, p->utf8 ? dots[now / 100000 % 10] : "*");
        if (names.len == 0) { /* the line would not fit */
            rv_buf_printf(b, " %s", rv_buf_cstr(&time));
        } else {
            if (p->received)
                rv_buf_printf(&time, ", %zu bytes of text", p->received);
            rv_buf_printf(b, " waiting for %.*s%s (%s)", RV_STR_ARG(names), names.len < line.len ? "..." : "",
                          rv_buf_cstr(&time));
        }
        p->drawn = true;
        rv_buf_fini(&time);
    }
    rv_buf_fini(&line);
}

static void flush(rv_buf *b)
{
    cli_err(rv_buf_str(b));
    rv_buf_clear(b);
}

static void *redraw(void *arg)
{
    rv_progress *p = arg;
    rv_buf b = RV_BUF_INIT(64 << 10);

    pthread_mutex_lock(&p->lock);
    while (!p->stopped) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += REDRAW_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&p->wake, &p->lock, &until);
        if (p->stopped)
            break;
        if (cli_outlet_is_behind())
            continue; /* of what stands still the last drawing is enough */
        draw(p, &b);
        flush(&b);
    }
    pthread_mutex_unlock(&p->lock);
    rv_buf_fini(&b);
    return NULL;
}

rv_progress *cli_progress_new(const struct rv_cli *cli, const struct rv_pipeline *p, unsigned parts)
{
    bool live = parts & RV_PROGRESS_LIVE, timeline = parts & RV_PROGRESS_TIMELINE;
    rv_progress *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (rv_progress){.cli = cli, .pipeline = p, .live = live, .timeline = timeline, .utf8 = is_utf8()};
    g->usage = timeline ? cli_tally_new(p) : NULL;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->wake, &steady);
    pthread_condattr_destroy(&steady);
    if (live)
        g->has_thread =
            rv_thread_start(redraw, g, &g->thread,
                            RV_CODE_ONLY("without the thread the line stands still; what ended is printed")) == 0;
    return g;
}

static struct span *open_span(rv_progress *p, int stage)
{
    for (size_t i = p->n; i-- > 0;)
        if (p->spans[i].stage == stage && !p->spans[i].ended_us)
            return &p->spans[i];
    return NULL;
}

static void begin_span(rv_progress *p, const struct rv_effect *e, int64_t at, rv_buf *b)
{
    if (p->n < MAX_SPANS && rv_has_room(&p->spans, &p->cap, p->n + 1, sizeof *p->spans))
        p->spans[p->n++] = (struct span){.stage = e->stage, .visit = e->visit, .begun_us = at};
    if (!p->live)
        return;
    erase(p, b);
    rv_buf_printf(b, "%s%s %s%s\n", p->cli->err_color ? "\033[2m" : "", p->utf8 ? "▸" : ">",
                  p->pipeline->agents[e->stage].name, p->cli->err_color ? "\033[0m" : "");
}

/* The permanent line of a stage that ended. */
static void print_end(rv_progress *p, const struct span *s, json_object *json, rv_buf *b)
{
    const char *next = NULL, *error = NULL;
    bool color = p->cli->err_color, bad = s->status == 'e';
    const char *mark = p->utf8 ? "✓" : "+";

    if (s->status != 's')
        mark = bad ? (p->utf8 ? "✗" : "x") : s->status == 'a' ? "?" : p->utf8 ? "–" : "-";

    erase(p, b);
    rv_buf_printf(b, "%s%s%s %-20s ", color ? (bad ? "\033[31m" : "\033[32m") : "", mark, color ? "\033[0m" : "",
                  p->pipeline->agents[s->stage].name);
    cli_write_duration(b, s->ended_us - s->begun_us);
    if (rv_json_get_text(json, "error", &error)) {
        rv_buf_puts(b, "  ");
        cli_write_preview(rv_str_of(error), MAX_ERROR, b);
    }
    if (s->status == 'a')
        rv_buf_puts(b, "  asks a person");
    else if (rv_json_get_text(json, "next_stage", &next))
        rv_buf_printf(b, "  %s %s", p->utf8 ? "→" : "->", next);
    rv_buf_putc(b, '\n');
}

static void end_span(rv_progress *p, const struct rv_effect *e, json_object *json, int64_t at, rv_buf *b)
{
    struct span *s = open_span(p, e->stage);
    const char *status = rv_app_visit_status(json);

    if (!s)
        return;
    s->ended_us = at > s->begun_us ? at : s->begun_us + 1;
    s->status = strcmp(status, "skipped") == 0 ? 'k' : status[0];
    p->received = 0;
    if (p->live)
        print_end(p, s, json, b);
}

void cli_progress_event(rv_progress *p, const struct rv_effect *e, rv_str line)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    json_object *json = NULL;
    const char *time = NULL, *text = NULL;
    struct rv_app_spent spent;
    int64_t at = 0;

    if (!p || rv_app_read_event(line, &json,
                                RV_CODE_ONLY("without memory to read the event it is not shown; the store has it")) < 0)
        return;
    if (!rv_json_get_text(json, "time", &time) || !rv_time_read(rv_str_of(time), &at))
        at = rv_app_now_us();
    pthread_mutex_lock(&p->lock);
    if (!p->begun_us) {
        p->begun_us = at;
        p->offset_us = at - rv_app_now_us();
    }
    if (e->emit == RV_EMIT_STAGE_STARTED)
        begin_span(p, e, at, &b);
    else if (e->emit == RV_EMIT_STAGE_COMPLETED)
        end_span(p, e, json, at, &b);
    else if (e->emit == RV_EMIT_LLM_RESULT) {
        rv_app_spent_read(json, &spent);
        cli_tally_add(p->usage, e->stage, &spent);
    } else if (p->live && e->emit == RV_EMIT_RETRY && rv_json_get_text(json, "error", &text)) {
        erase(p, &b);
        rv_buf_printf(&b, "! %s: %s; trying again\n", p->pipeline->agents[e->stage].name, text);
    } else if (p->live && e->emit == RV_EMIT_WARNING && rv_json_get_text(json, "message", &text)) {
        erase(p, &b);
        rv_buf_printf(&b, "! %s\n", text);
    }
    flush(&b);
    pthread_mutex_unlock(&p->lock);
    rv_buf_fini(&b);
    json_object_put(json);
}

void cli_progress_delta(rv_progress *p, rv_str text)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->received += text.len;
    pthread_mutex_unlock(&p->lock);
}

static void stop(rv_progress *p)
{
    rv_buf b = RV_BUF_INIT(64);

    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    erase(p, &b);
    flush(&b);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    if (p->has_thread)
        pthread_join(p->thread, NULL);
    rv_buf_fini(&b);
}

static void bar(const rv_progress *p, const struct span *s, int64_t total, size_t width, rv_buf *b)
{
    const char *full = p->utf8 ? "█" : "#";
    size_t from = (size_t)((s->begun_us - p->begun_us) * (int64_t)width / total);
    size_t to = (size_t)((s->ended_us - p->begun_us) * (int64_t)width / total);

    if (from >= width)
        from = width - 1;
    if (to <= from)
        to = from + 1;
    for (size_t i = 0; i < width; i++)
        rv_buf_puts(b, i >= from && i < to ? full : p->utf8 ? "·" : ".");
}

static void write_timeline(const rv_progress *p, rv_buf *b)
{
    size_t name_width = 5, width;
    int64_t end = 0;

    if (!p->timeline || p->n == 0)
        return;
    for (size_t i = 0; i < p->n; i++) {
        size_t len = strlen(p->pipeline->agents[p->spans[i].stage].name);
        name_width = len > name_width ? len : name_width;
        end = p->spans[i].ended_us > end ? p->spans[i].ended_us : end;
    }
    name_width = name_width > 28 ? 28 : name_width;
    width = width_beside(name_width + 20);
    width = width > 60 ? 60 : width;
    int64_t total = end > p->begun_us ? end - p->begun_us : 1;
    rv_buf_puts(b, "timeline, ");
    cli_write_duration(b, total);
    rv_buf_puts(b, " in all\n");
    for (size_t i = 0; i < p->n; i++) {
        const struct span *s = &p->spans[i];
        if (!s->ended_us)
            continue;
        rv_buf_printf(b, "  %-*.*s ", (int)name_width, (int)name_width, p->pipeline->agents[s->stage].name);
        if (width > 0) {
            bar(p, s, total, width, b);
            rv_buf_putc(b, ' ');
        }
        cli_write_duration(b, s->ended_us - s->begun_us);
        rv_buf_puts(b, s->status == 'e'   ? "  failed\n"
                       : s->status == 'k' ? "  skipped\n"
                       : s->status == 'a' ? "  asks a person\n"
                                          : "\n");
    }
    cli_tally_write(p->usage, NULL, p->cli->err_color, b);
}

void cli_progress_end(rv_progress *p)
{
    rv_buf timeline = RV_BUF_INIT(1 << 20);

    if (!p)
        return;
    stop(p);
    write_timeline(p, &timeline);
    cli_say_text(&timeline);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    cli_tally_free(p->usage);
    free(p->spans);
    free(p);
}
