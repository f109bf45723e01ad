/* A look at a store: the rows of its runs under way, what they wait for, and what ended in the last minute. */
#include "coreengine/app/top/top_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXTS ((size_t)64 << 20) /* bytes of one look: RV_APP_TOP_MAX_ROWS texts of each status are far less */

/* The statuses that are listed, each by its index: the newest of each. */
static const enum rv_run_status listed[] = {RV_RUN_RUNNING, RV_RUN_READY, RV_RUN_INTERRUPTED};

/* A run that was begun in the last minute and is over. */
struct recent {
    struct rv_run_row row; /* id, bundle: in the arena; other texts are not kept */
};
struct rv_app_top {
    rv_store *store;
    struct rv_store_scope scope;
    rv_arena *arena; /* of the last look */
    struct top_bundles bundles;
    struct top_minute minute;
    struct top_run **runs; /* owned; those of the last look */
    size_t n_runs, cap_runs;
    uint64_t ended[2 * RV_APP_TOP_MAX_RECENT]; /* marks of runs whose end was counted, a ring */
    size_t next_ended;
    unsigned looks;
    int64_t began_us;
    struct rv_app_top_row *rows; /* in the arena */
    struct rv_run_row *stored;   /* beside them: what the store says */
    size_t n, cap;
    size_t n_of_status; /* rows of the status that is being listed */
    struct recent *recent;
    size_t n_recent, cap_recent, n_begun;
    int64_t oldest_us; /* when the oldest of the recent runs that were looked at was made */
    int64_t looked_us; /* when the look before was */
    int64_t known_us;  /* since then all that ended is known; 0: all of the last minute */
    int64_t budget;    /* records that this look may still read */
    struct rv_app_top_snapshot look;
};

int rv_app_top_new(rv_store *store, const struct rv_store_scope *scope, rv_app_top **out, rv_err **err)
{
    rv_app_top *top = calloc(1, sizeof *top);

    if (!top)
        return RV_FAIL(err, RV_E_NOMEM, "look at runs");
    top->store = store;
    top->scope = *scope;
    *out = top;
    return 0;
}

static void free_run(struct top_run *r)
{
    top_run_rest(r);
    free(r);
}

void rv_app_top_free(rv_app_top *top)
{
    if (!top)
        return;
    for (size_t i = 0; i < top->n_runs; i++)
        free_run(top->runs[i]);
    free(top->runs);
    top_bundles_fini(&top->bundles);
    rv_arena_free(top->arena);
    free(top);
}

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "look at runs");
}

static const char *keep(rv_app_top *top, rv_str text, bool *ok)
{
    const char *kept = rv_arena_dup(top->arena, text);

    *ok = *ok && kept;
    return kept ? kept : "";
}

/* --- runs whose end was counted --- */

/* Two runs of a minute with the same mark would count once. */
static uint64_t mark_of(const char *id)
{
    return rv_fnv_add(RV_FNV_START, rv_str_of(id));
}

static void count_end(rv_app_top *top, const char *id, int64_t ended_us)
{
    uint64_t mark = mark_of(id);

    for (size_t i = 0; i < RV_COUNT(top->ended); i++)
        if (top->ended[i] == mark)
            return;
    top->ended[top->next_ended] = mark;
    top->next_ended = (top->next_ended + 1) % RV_COUNT(top->ended);
    top_minute_ended(&top->minute, ended_us);
}

/* --- lists of the store --- */

static int take_row(void *self, const struct rv_run_row *row, rv_err **err)
{
    rv_app_top *top = self;
    size_t cap = top->cap;
    bool ok = true;

    if (top->n_of_status++ == RV_APP_TOP_MAX_ROWS) {
        top->look.more = true;
        return 0;
    }
    struct rv_app_top_row *rows = rv_arena_grow(top->arena, top->rows, top->n, &cap, sizeof *rows);
    struct rv_run_row *stored = rv_arena_grow(top->arena, top->stored, top->n, &top->cap, sizeof *stored);
    if (!rows || !stored)
        return no_memory(err);
    top->rows = rows;
    top->stored = stored;
    struct rv_app_top_row *r = &rows[top->n];
    *r = (struct rv_app_top_row){.status = row->status,
                                 .cancel_requested = row->cancel_requested,
                                 .created_us = row->created_us,
                                 .updated_us = row->updated_us,
                                 .name = "",
                                 .text = ""};
    r->id = keep(top, rv_str_of(row->id), &ok);
    r->pipeline = keep(top, rv_str_of(row->pipeline), &ok);
    r->stage = keep(top, rv_str_of(row->stage), &ok);
    r->user = keep(top, rv_str_of(row->user), &ok);
    r->session = keep(top, rv_str_of(row->session), &ok);
    stored[top->n] = *row;
    stored[top->n].own = NULL;
    stored[top->n].id = r->id;
    stored[top->n].bundle = keep(top, rv_str_of(row->bundle), &ok);
    stored[top->n].owner = row->owner ? keep(top, rv_str_of(row->owner), &ok) : NULL;
    top->n++;
    return ok ? 0 : no_memory(err);
}

static int take_recent(void *self, const struct rv_run_row *row, rv_err **err)
{
    rv_app_top *top = self;
    bool ok = true;

    if (row->created_us < top->began_us)
        return RV_STORE_ENOUGH;
    top->oldest_us = row->created_us;
    top->n_begun++;
    if (!rv_run_status_is_final(row->status))
        return 0;
    struct recent *recent = rv_arena_grow(top->arena, top->recent, top->n_recent, &top->cap_recent, sizeof *recent);
    if (!recent)
        return no_memory(err);
    top->recent = recent;
    struct rv_run_row *kept = &recent[top->n_recent++].row;
    *kept = *row;
    kept->own = NULL;
    kept->id = keep(top, rv_str_of(row->id), &ok);
    kept->bundle = keep(top, rv_str_of(row->bundle), &ok);
    return ok ? 0 : no_memory(err);
}

/* One status at a time: so each list is the newest part of an index. */
static int list_all(rv_app_top *top, rv_err **err)
{
    const struct rv_run_filter recent = {.limit = RV_APP_TOP_MAX_RECENT};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(listed); i++) {
        const struct rv_run_filter filter = {.statuses = 1u << listed[i], .limit = RV_APP_TOP_MAX_ROWS + 1};
        top->n_of_status = 0;
        rc = rv_store_list_runs(top->store, &top->scope, &filter, take_row, top, err);
    }
    if (rc == 0)
        rc = rv_store_list_runs(top->store, &top->scope, &recent, take_recent, top, err);
    return rc == RV_STORE_ENOUGH ? 0 : rc;
}

/* --- journals --- */

static struct top_run *find_run(const rv_app_top *top, const char *id)
{
    for (size_t i = 0; i < top->n_runs; i++)
        if (strcmp(top->runs[i]->id, id) == 0)
            return top->runs[i];
    return NULL;
}

static struct top_run *add_run(rv_app_top *top, const char *id)
{
    struct top_run *r = find_run(top, id);

    if (r)
        return r;
    if (!rv_has_room(&top->runs, &top->cap_runs, top->n_runs + 1, sizeof *top->runs) || !(r = calloc(1, sizeof *r)))
        return NULL;
    memcpy(r->id, id, strlen(id) + 1);
    r->minute = &top->minute;
    top->runs[top->n_runs++] = r;
    return r;
}

static bool may_read(rv_app_top *top, const struct top_run *r, const struct rv_run_row *row)
{
    int64_t left = row->n_records - (r->follower ? r->n_read : 0);

    if (row->n_records <= r->n_read || r->is_damaged)
        return true;
    if (left > top->budget && top->budget < RV_APP_TOP_MAX_RECORDS / 2) /* else a long one would never be read */
        return false;
    top->budget -= left;
    return true;
}

static int read_row(rv_app_top *top, size_t i, rv_err **err)
{
    struct rv_app_top_row *row = &top->rows[i];
    struct top_run *r = add_run(top, row->id);
    int rc = 0;

    if (!r)
        return no_memory(err);
    r->seen = top->looks;
    if (may_read(top, r, &top->stored[i]))
        rc = top_run_read(r, top->store, &top->scope, &top->stored[i], &top->bundles, err);
    if (rc < 0)
        return rc;
    if (row->status != RV_RUN_RUNNING)
        top_run_rest(r);
    row->is_damaged = r->is_damaged;
    row->is_read = r->n_read > 0 && !r->is_damaged;
    row->llm_calls = r->llm_calls;
    row->used = r->used;
    row->n = r->n_calls + r->n_more;
    if (r->n_calls == 0)
        return 0;
    row->waits = r->calls[0].kind;
    row->name = r->calls[0].name; /* the run lives until the next look */
    row->since_us = r->calls[0].since_us;
    return 0;
}

/* What a run that is over took since it was read last. */
static int read_ended(rv_app_top *top, struct top_run *r, const struct rv_run_row *row, rv_err **err)
{
    count_end(top, row->id, row->updated_us);
    if (may_read(top, r, row))
        return top_run_read(r, top->store, &top->scope, row, &top->bundles, err);
    top->look.rates.is_partial = true;
    return 0;
}

/* Runs of earlier looks that no list has any more: over, deleted, or older than what a list shows. */
static int read_gone(rv_app_top *top, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < top->n_runs;) {
        struct top_run *r = top->runs[i];
        struct rv_run_row row = {0};
        rv_err *cause = NULL;
        if (r->seen == top->looks) {
            i++;
            continue;
        }
        rc = rv_store_get_run(top->store, &top->scope, r->id, &row, &cause);
        if (rc == 0 && rv_run_status_is_final(row.status))
            rc = read_ended(top, r, &row, &cause);
        rv_run_row_fini(&row);
        if (rc == RV_E_NOT_FOUND) {
            rv_err_free(cause);
            rc = 0;
        } else if (rc < 0) {
            rv_err_pass(err, cause);
        }
        free_run(r);
        top->runs[i] = top->runs[--top->n_runs];
    }
    return rc;
}

/* Runs that began and ended since the last look: no list has had them. */
static int read_recent(rv_app_top *top, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < top->n_recent; i++) {
        const struct rv_run_row *row = &top->recent[i].row;
        struct top_run r = {.minute = &top->minute};
        bool counted = false;
        for (size_t k = 0; !counted && k < RV_COUNT(top->ended); k++)
            counted = top->ended[k] == mark_of(row->id);
        if (counted || row->updated_us < top->began_us)
            continue;
        rc = read_ended(top, &r, row, err);
        top_run_rest(&r);
    }
    return rc;
}

/* --- what they wait for --- */

struct asked {
    rv_app_top *top;
    struct rv_app_top_row *row;
    bool ok;
};

static int take_question(void *self, const struct rv_pending *p, rv_err **err)
{
    struct asked *a = self;

    (void)err;
    if (a->row->n++ > 0)
        return 0;
    a->row->name = keep(a->top, rv_str_of(p->kind), &a->ok);
    a->row->text = keep(a->top, rv_utf8_cut(p->text, RV_APP_TOP_MAX_TEXT), &a->ok);
    a->row->since_us = p->created_us;
    a->row->expires_us = p->expires_us;
    return 0;
}

static int ask(rv_app_top *top, struct rv_app_top_row *row, rv_err **err)
{
    struct asked a = {.top = top, .row = row, .ok = true};
    rv_err *cause = NULL;
    int rc;

    row->waits = RV_APP_TOP_ANSWER;
    row->n = 0;
    rc = rv_store_list_pending(top->store, &top->scope, row->id, take_question, &a, &cause);
    if (rc == RV_E_NOT_FOUND) { /* deleted meanwhile */
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    return rc < 0 ? rc : a.ok ? 0 : no_memory(err);
}

static int find_wait(rv_app_top *top, size_t i, rv_err **err)
{
    struct rv_app_top_row *row = &top->rows[i];
    enum rv_app_owner owner = rv_app_owner_of(&top->stored[i], top->look.now_us);

    if (row->status == RV_RUN_INTERRUPTED)
        return ask(top, row, err);
    if (row->status == RV_RUN_READY && owner == RV_APP_OWNER_NONE) {
        row->waits = RV_APP_TOP_WORKER;
        row->since_us = row->created_us;
    } else if (owner != RV_APP_OWNER_LIVES) {
        row->waits = RV_APP_TOP_OWNER;
        row->name = rv_app_owner_text(owner);
        row->since_us = top->stored[i].lease_until_us;
    }
    return 0;
}

/* --- the look --- */

static void add_up(rv_app_top *top)
{
    struct rv_app_top_snapshot *l = &top->look;

    l->rows = top->rows;
    l->n = top->n;
    for (size_t i = 0; i < top->n; i++) {
        const struct rv_app_top_row *r = &top->rows[i];
        l->n_running += r->status == RV_RUN_RUNNING;
        l->n_ready += r->status == RV_RUN_READY;
        l->n_waiting += r->status == RV_RUN_INTERRUPTED;
        l->llm_calls += r->llm_calls;
        rv_usage_add(&l->used, &r->used);
    }
    if (top->n_begun == RV_APP_TOP_MAX_RECENT && top->oldest_us > top->looked_us)
        top->known_us = top->oldest_us; /* what began and ended before was not looked at */
    top_minute_sum(&top->minute, top->known_us > top->began_us ? top->known_us : top->began_us, l->now_us, &l->rates);
    top->looked_us = l->now_us;
}

int rv_app_top_read(rv_app_top *top, int64_t now_us, enum rv_app_top_sort sort, const struct rv_app_top_snapshot **out,
                    rv_err **err)
{
    rv_arena_free(top->arena);
    top->arena = rv_arena_new(MAX_TEXTS);
    top->rows = NULL;
    top->stored = NULL;
    top->recent = NULL;
    top->n = top->cap = top->n_recent = top->cap_recent = top->n_begun = 0;
    top->look = (struct rv_app_top_snapshot){.now_us = now_us};
    top->budget = RV_APP_TOP_MAX_RECORDS;
    top->began_us = now_us - RV_APP_TOP_SPAN_US;
    top->looks++;
    if (!top->arena)
        return no_memory(err);
    int rc = list_all(top, err);
    for (size_t i = 0; rc == 0 && i < top->n; i++)
        rc = read_row(top, i, err);
    for (size_t i = 0; rc == 0 && i < top->n; i++)
        rc = find_wait(top, i, err);
    if (rc == 0)
        rc = read_gone(top, err);
    if (rc == 0)
        rc = read_recent(top, err);
    if (rc < 0)
        return rc;
    add_up(top);
    top_sort(top->rows, top->n, sort);
    *out = &top->look;
    return 0;
}
