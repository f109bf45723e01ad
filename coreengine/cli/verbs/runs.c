/* reeve runs, and its list. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOWN_BY_DEFAULT 50
#define MAX_LIST_BYTES   ((size_t)256 << 20)
#define MIN_PREVIEW      ((size_t)8) /* less of a question says nothing */

struct entry {
    const char *id, *pipeline, *session, *user, *bundle, *parent, *stage, *owner; /* NULL as in the row */
    struct rv_run_row row;           /* its numbers; the texts are those above */
    size_t first_waiting, n_pending; /* those of `waiting` that are its own */
    int64_t crashes;                 /* processes that took it over and ended without a step of it */
};
struct waiting {
    size_t entry, nth;   /* nth: as the store gave them, the oldest first */
    struct rv_pending p; /* texts in the arena */
};
struct list {
    rv_arena *arena; /* dies with the list */
    rv_index by_id;
    struct entry *items;
    size_t n, max;
    struct waiting *waiting;
    size_t n_waiting, max_waiting;
    bool more; /* than the limit */
};

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_LIMIT, "there are more runs than can be listed at once; --limit shows the newest");
}

/* Doubles an array that lives in the arena. */
static void *grow(rv_arena *arena, const void *items, size_t n, size_t *max, size_t size)
{
    if (n < *max)
        return (void *)(uintptr_t)items;
    size_t wanted = *max ? *max * 2 : 64;
    void *more = rv_arena_alloc(arena, wanted * size);
    if (!more)
        return NULL;
    if (n)
        memcpy(more, items, n * size);
    *max = wanted;
    return more;
}

static const char *keep(struct list *l, const char *text, bool *ok)
{
    const char *kept = text ? rv_arena_dup(l->arena, rv_str_of(text)) : NULL;

    *ok = *ok && (kept || !text);
    return kept;
}

static int take_row(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct list *l = self;
    struct entry *items = grow(l->arena, l->items, l->n, &l->max, sizeof *items);
    bool ok = items != NULL;

    if (!ok)
        return no_memory(err);
    l->items = items;
    struct entry *e = &items[l->n];
    *e = (struct entry){.row = *row};
    e->id = keep(l, row->id, &ok);
    e->pipeline = keep(l, row->pipeline, &ok);
    e->session = keep(l, row->session, &ok);
    e->user = keep(l, row->user, &ok);
    e->bundle = keep(l, row->bundle, &ok);
    e->parent = keep(l, row->parent, &ok);
    e->stage = keep(l, row->stage, &ok);
    e->owner = keep(l, row->owner, &ok);
    e->row.owner = e->owner;
    e->row.own = NULL;
    if (!ok || rv_index_add(&l->by_id, rv_str_of(e->id), (int)l->n) < 0)
        return no_memory(err);
    l->n++;
    return 0;
}

static int take_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    struct list *l = self;
    int at = rv_index_get(&l->by_id, rv_str_of(p->run));
    bool ok = true;

    if (at < 0)
        return 0;
    struct waiting *waiting = grow(l->arena, l->waiting, l->n_waiting, &l->max_waiting, sizeof *waiting);
    if (!waiting)
        return no_memory(err);
    l->waiting = waiting;
    struct waiting *w = &waiting[l->n_waiting];
    *w = (struct waiting){.entry = (size_t)at, .nth = l->n_waiting, .p = *p};
    w->p.run = l->items[at].id;
    w->p.id = keep(l, p->id, &ok);
    w->p.kind = keep(l, p->kind, &ok);
    w->p.stage = keep(l, p->stage, &ok);
    w->p.user = keep(l, p->user, &ok);
    w->p.text.ptr = rv_arena_dup(l->arena, p->text);
    w->p.body.ptr = rv_arena_dup(l->arena, p->body);
    if (!ok || !w->p.text.ptr || !w->p.body.ptr)
        return no_memory(err);
    l->items[at].n_pending++;
    l->n_waiting++;
    return 0;
}

static int by_entry(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* Those of one run side by side. */
static void sort_waiting(struct list *l)
{
    if (l->n_waiting)
        qsort(l->waiting, l->n_waiting, sizeof *l->waiting, by_entry);
    for (size_t k = l->n_waiting; k-- > 0;)
        l->items[l->waiting[k].entry].first_waiting = k;
}

static int read_filter(const struct rv_cli_args *args, struct rv_run_filter *f, rv_err **err)
{
    const char *word;
    bool data = rv_cli_flag(args, "json") || rv_cli_flag(args, "ids");

    *f = (struct rv_run_filter){.pipeline = rv_cli_value(args, "pipeline"),
                                .session = rv_cli_value(args, "session"),
                                .limit = data ? 0 : SHOWN_BY_DEFAULT};
    for (size_t i = 0; (word = rv_cli_nth(args, "status", i)); i++) {
        enum rv_run_status status;
        int rc = rv_run_status_of(rv_str_of(word), &status, err);
        if (rc < 0)
            return rc;
        f->statuses |= 1u << status;
    }
    if (rv_cli_flag(args, "waiting"))
        f->statuses |= 1u << RV_RUN_INTERRUPTED;
    return rv_cli_int(args, "limit", 0, 1000000, &f->limit, err);
}

/* A journal that cannot be read has none: what is wrong with it is said where it is read as a whole. */
static int count_crashes(rv_store *store, const struct rv_store_scope *scope, struct list *l, rv_err **err)
{
    int64_t now_us = rv_app_now_us();

    for (size_t i = 0; i < l->n; i++) {
        struct entry *e = &l->items[i];
        struct rv_run_row row = e->row;
        rv_err *cause = NULL;
        row.id = e->id;
        int rc = rv_cli_crashes(store, scope, &row, now_us, &e->crashes, &cause);
        if (rc == RV_E_NOMEM) {
            *err = cause;
            return rc;
        }
        rv_err_free(cause);
    }
    return 0;
}

static int read_list(rv_store *store, const struct rv_store_scope *scope, struct rv_run_filter filter, struct list *l,
                     rv_err **err)
{
    int64_t limit = filter.limit;

    l->arena = rv_arena_new(MAX_LIST_BYTES);
    if (!l->arena)
        return RV_FAIL(err, RV_E_NOMEM, "list runs");
    filter.limit = limit ? limit + 1 : 0; /* one more tells whether there are more */
    int rc = rv_store_list_runs(store, scope, &filter, take_row, l, err);
    if (rc == 0)
        rc = rv_store_list_pending(store, scope, NULL, take_pending, l, err);
    if (rc == 0)
        sort_waiting(l);
    if (rc == 0 && limit && (int64_t)l->n > limit) {
        l->more = true;
        l->n = (size_t)limit;
    }
    return rc < 0 ? rc : count_crashes(store, scope, l, err);
}

/* --- for programs --- */

static void write_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    if (!us)
        return;
    rv_time_format(us, text);
    rv_jw_kv_text(w, key, text);
}

static void write_entry(const struct list *l, size_t i, rv_jw *w)
{
    const struct entry *e = &l->items[i];

    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", e->id);
    rv_jw_kv_text(w, "pipeline", e->pipeline);
    rv_jw_kv_text(w, "status", rv_run_status_text(e->row.status));
    rv_jw_kv_text(w, "stage", e->stage);
    rv_jw_kv_text(w, "user", e->user);
    rv_jw_kv_text(w, "session", e->session);
    write_time(w, "created_at", e->row.created_us);
    write_time(w, "updated_at", e->row.updated_us);
    rv_jw_kv_int(w, "records", e->row.n_records);
    rv_jw_kv_text(w, "bundle", e->bundle);
    if (e->parent) {
        rv_jw_kv_text(w, "parent", e->parent);
        rv_jw_kv_int(w, "parent_seq", e->row.parent_seq);
    }
    if (e->owner) {
        rv_jw_kv_text(w, "owner", e->owner);
        write_time(w, "lease_until", e->row.lease_until_us);
    }
    if (e->row.cancel_requested)
        rv_jw_kv_bool(w, "cancel_requested", true);
    if (e->crashes)
        rv_jw_kv_int(w, "crashes", e->crashes);
    rv_jw_key(w, "pending");
    rv_jw_arr(w);
    for (size_t k = 0; k < e->n_pending; k++)
        rv_jw_raw(w, l->waiting[e->first_waiting + k].p.body);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void write_json(const struct list *l, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_arr(&w);
    for (size_t i = 0; i < l->n; i++)
        write_entry(l, i, &w);
    rv_jw_arr_end(&w);
    rv_buf_putc(b, '\n');
}

/* --- for people --- */

const char *rv_cli_status_color(enum rv_run_status status)
{
    switch (status) {
    case RV_RUN_COMPLETED:
        return "\033[32m";
    case RV_RUN_INTERRUPTED:
        return "\033[33m";
    case RV_RUN_FAILED:
        return "\033[31m";
    case RV_RUN_TERMINATED:
    case RV_RUN_CANCELLED:
        return "\033[35m";
    case RV_RUN_READY:
    case RV_RUN_RUNNING:
        return "\033[36m";
    case RV_N_RUN:
        break;
    }
    return "";
}

static size_t line_width(const struct rv_cli *cli)
{
    struct winsize size;

    if (!cli->out_tty)
        return 160;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : 80;
}

/* What it waits for, or who has it. */
static void write_remark(const struct list *l, size_t i, int64_t now_us, size_t max, rv_buf *b)
{
    const struct entry *e = &l->items[i];
    enum rv_app_owner owner = rv_app_owner_of(&e->row, now_us);
    bool unfinished = e->row.status == RV_RUN_READY || e->row.status == RV_RUN_RUNNING;

    if (e->n_pending) {
        const struct rv_pending *p = &l->waiting[e->first_waiting].p;
        size_t used = strlen(p->kind) + (e->n_pending > 1 ? 20 : 5);
        rv_buf_puts(b, p->kind);
        if (max >= used + MIN_PREVIEW) {
            rv_buf_puts(b, ": ");
            rv_cli_write_preview(p->text, max - used, b);
        }
        if (e->n_pending > 1)
            rv_buf_printf(b, " (and %zu more)", e->n_pending - 1);
        return;
    }
    if (e->row.cancel_requested)
        rv_buf_puts(b, "to be cancelled");
    else if (e->crashes >= RV_CLI_CRASHES)
        rv_buf_printf(b, "crashed %lld times", (long long)e->crashes);
    else if (unfinished && owner == RV_APP_OWNER_NONE)
        rv_buf_puts(b, "nobody runs it");
    else if (unfinished && owner != RV_APP_OWNER_LIVES)
        rv_buf_puts(b, owner == RV_APP_OWNER_LATE ? "its owner let its lease end" : "its owner is gone");
}

static size_t widest(size_t width, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    return n > width ? n : width;
}

static void write_table(const struct rv_cli *cli, const struct list *l, rv_buf *b)
{
    size_t id = 3, pipeline = 8, stage = 5;
    int64_t now = rv_app_now_us();

    for (size_t i = 0; i < l->n; i++) {
        id = widest(id, l->items[i].id);
        pipeline = widest(pipeline, l->items[i].pipeline);
        stage = widest(stage, l->items[i].stage);
    }
    pipeline = pipeline > 24 ? 24 : pipeline;
    stage = stage > 20 ? 20 : stage;
    rv_buf_printf(b, "%s%-*s  %-*s  %-11s  %-*s  %-7s  WAITS FOR%s\n", cli->out_color ? "\033[1m" : "", (int)id, "RUN",
                  (int)pipeline, "PIPELINE", "STATUS", (int)stage, "STAGE", "AGE", cli->out_color ? "\033[0m" : "");
    size_t used = id + pipeline + stage + 28, width = line_width(cli);
    for (size_t i = 0; i < l->n; i++) {
        const struct entry *e = &l->items[i];
        rv_buf age = RV_BUF_INIT(64);
        rv_cli_write_age(&age, now - e->row.created_us);
        rv_buf_printf(b, "%-*s  %-*.*s  %s%-11s%s  %-*.*s  %-7s  ", (int)id, e->id, (int)pipeline, (int)pipeline,
                      e->pipeline ? e->pipeline : "", cli->out_color ? rv_cli_status_color(e->row.status) : "",
                      rv_run_status_text(e->row.status), cli->out_color ? "\033[0m" : "", (int)stage, (int)stage,
                      e->stage ? e->stage : "", rv_buf_cstr(&age));
        rv_buf_fini(&age);
        write_remark(l, i, now, width > used ? width - used : 0, b);
        while (b->len && b->ptr[b->len - 1] == ' ')
            rv_buf_truncate(b, b->len - 1);
        rv_buf_putc(b, '\n');
    }
}

static void write_waiting(const struct rv_cli *cli, const struct rv_cli_args *args, const struct list *l, rv_buf *b)
{
    for (size_t k = 0; k < l->n_waiting; k++) {
        const struct waiting *w = &l->waiting[k];
        if (w->entry >= l->n)
            continue;
        rv_buf_printf(b, "%s%s%s  %s  %s in stage %s", cli->out_color ? "\033[1m" : "", w->p.run,
                      cli->out_color ? "\033[0m" : "", l->items[w->entry].pipeline, w->p.kind,
                      w->p.stage ? w->p.stage : "-");
        if (w->p.expires_us) {
            rv_buf_puts(b, ", until ");
            rv_cli_write_moment(b, w->p.expires_us);
        }
        rv_buf_puts(b, "\n  ");
        rv_cli_write_preview(w->p.text, 2000, b);
        rv_buf_puts(b, "\n  ");
        rv_cli_write_resume(args, &w->p, l->items[w->entry].n_pending == 1, b);
    }
}

static int print_list(struct rv_cli *cli, const struct rv_cli_args *args, const struct list *l)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (rv_cli_flag(args, "json"))
        write_json(l, &text);
    else if (rv_cli_flag(args, "ids"))
        for (size_t i = 0; i < l->n; i++)
            rv_buf_printf(&text, "%s\n", l->items[i].id);
    else if (rv_cli_flag(args, "waiting"))
        write_waiting(cli, args, l, &text);
    else if (l->n)
        write_table(cli, l, &text);
    int status = rv_cli_print(cli, &text);
    if (l->n == 0 && !rv_cli_flag(args, "json") && !rv_cli_flag(args, "ids"))
        rv_cli_err(RV_STR_LIT("no such runs\n"));
    if (l->more && !rv_cli_value(args, "limit"))
        rv_cli_err(RV_STR_LIT("there are more; --limit 0 shows all\n"));
    return status;
}

static int list(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_run_filter filter;
    struct list l = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (rv_cli_flag(args, "json") && rv_cli_flag(args, "ids"))
        return rv_cli_usage(cli, args, "--json and --ids exclude each other");
    if (read_filter(args, &filter, &err) < 0)
        return rv_cli_report(cli, err);
    int rc = rv_app_store_open_if_any(&cli->app, &store, &err);
    if (rc == 0 && store)
        rc = read_list(store, &scope, filter, &l, &err);
    status = rc < 0 ? rv_cli_report(cli, err) : print_list(cli, args, &l);
    rv_index_fini(&l.by_id);
    rv_arena_free(l.arena);
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option list_options[] = {
    {"status", 0, "WORD", "only runs of that status", "ready running completed interrupted terminated failed cancelled",
     true},
    {"waiting", 'w', NULL, "what runs wait for, and how to answer", NULL, false},
    {"pipeline", 'p', "NAME", "only runs of that pipeline", NULL, false},
    {"session", 0, "ID", "only runs of that session", NULL, false},
    {"limit", 'l', "N", "the newest N; 0: all (default 50, with --json and --ids all)", NULL, false},
    {"json", 'j', NULL, "an array of objects", NULL, false},
    {"ids", 0, NULL, "ids only, one a line", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_runs_list = {
    .name = "runs list",
    .args = "",
    .summary = "the runs of the store, newest first",
    .text = "A table for people: id, pipeline, status, the stage it stands at, its age and what it waits for.\n"
            "--waiting says what is asked instead, and the command that answers it.",
    .examples = "reeve runs\n"
                "reeve runs list --status failed --status terminated --pipeline ask-docs\n"
                "reeve runs list --waiting   # who waits for a person\n"
                "reeve runs list --json | jq -r '.[] | select(.records > 1000) | .id'",
    .options = list_options,
    .n_options = RV_COUNT(list_options),
    .run = list,
};

static const struct rv_cli_verb *const subs[] = {
    &rv_verb_runs_list,
    &rv_verb_runs_show,
    &rv_verb_runs_events,
    &rv_verb_runs_cancel,
    &rv_verb_runs_recover,
    &rv_verb_runs_fork,
    NULL,
};

const struct rv_cli_verb rv_verb_runs = {
    .name = "runs",
    .args = "VERB",
    .summary = "look at the runs of the store and manage them",
    .text = "Every run is kept in a store with its journal. RUN is the id of one, the beginning of an id that fits no\n"
            "other, or \"last\" for the newest one.",
    .examples = "reeve runs                      # all of them\n"
                "reeve runs show last            # what the newest one did\n"
                "reeve runs recover              # go on with what a crash left behind\n"
                "reeve runs fork last --at 2     # another run, from the state behind its second step",
    .subs = subs,
};
