/* Turns that will not continue: those that a process left behind when it died, and those that wait for an answer when
 * the user sends another message. They are ended as cancelled, so that their text is kept as marked rows before the
 * session goes on. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/turns/chat_internal.h"

#define MAX_LEFT   64
#define MAX_BUNDLE ((size_t)64 << 20)

struct left_turn {
    char *id, *bundle;
    int64_t created_us;
    bool waits;
};
struct left {
    struct left_turn items[MAX_LEFT]; /* oldest first */
    size_t n;
    int64_t now_us, patience_us;
    const char *owner; /* us */
    bool waiting;      /* those that wait are looked for */
};

static bool is_left(struct left *l, const struct rv_run_row *row)
{
    if (!row->owner || !row->owner[0])
        return true;
    return row->lease_until_us < l->now_us || rv_owner_dies(row->owner, &l->patience_us);
}

static void insert(struct left *l, struct left_turn turn)
{
    size_t i = l->n++;

    for (; i > 0 && l->items[i - 1].created_us > turn.created_us; i--)
        l->items[i] = l->items[i - 1];
    l->items[i] = turn;
}

static int note(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct left *l = self;
    bool is_ours = l->waiting && row->owner && strcmp(row->owner, l->owner) == 0;

    if (l->n == MAX_LEFT || (!is_left(l, row) && !is_ours))
        return 0;
    if (l->waiting && row->parent) /* a fork: its input is not part of this conversation */
        return 0;
    struct left_turn turn = {rv_str_dup(rv_str_of(row->id)), rv_str_dup(rv_str_of(row->bundle)), row->created_us,
                             l->waiting};
    insert(l, turn);
    return turn.id && turn.bundle ? 0 : RV_FAIL(err, RV_E_NOMEM, "look for unfinished turns");
}

static int look_for(rv_chat *chat, bool waiting, struct left *left, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_run_filter filter = {.statuses = waiting ? 1u << RV_RUN_INTERRUPTED
                                                             : 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING,
                                         .session = chat->session,
                                         .oldest_first = true};

    left->now_us = rv_engine_now_us(chat->opts.engine);
    left->patience_us = RV_OWNER_ENDS_US;
    left->owner = chat->opts.owner ? chat->opts.owner : "";
    left->waiting = waiting;
    return rv_store_list_runs(chat->opts.store, &scope, &filter, note, left, err);
}

static void forget(struct left *left)
{
    for (size_t i = 0; i < left->n; i++) {
        free(left->items[i].id);
        free(left->items[i].bundle);
    }
    left->n = 0;
}

static int open_bundle(rv_chat *chat, const char *hash, rv_bundle **out, rv_err **err)
{
    const struct rv_bundle_opts offline = {.offline = true};
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);

    int rc = rv_store_get_blob(chat->opts.store, hash, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &offline, out, err);
    rv_buf_fini(&text);
    return rc;
}

/* Tells whether the pipeline is one agent that takes part in the session, and nothing else: the kind that a chat
 * starts. The question of any other pipeline belongs to the user who runs it. */
static bool is_turn(const rv_bundle *bundle)
{
    const struct rv_pipeline *p = rv_bundle_pipeline(bundle);

    return p->n_agents == 1 && p->agents[0].declared.doc && p->agents[0].session.joins;
}

/* Ended by its own bundle and journal: what it was, it stays. *ended false: it is none of ours. */
static int end_turn(rv_chat *chat, const struct left_turn *turn, bool *ended, rv_err **err)
{
    const struct rv_store_scope scope = {.tenant = chat->context.tenant_id};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct rv_catalog catalog;
    rv_bundle *bundle = NULL;
    rv_journal *journal = NULL;
    rv_exec *exec = NULL;

    *ended = false;
    int rc = open_bundle(chat, turn->bundle, &bundle, err);
    if (rc == 0 && turn->waits && !is_turn(bundle)) {
        rv_bundle_free(bundle);
        return 0;
    }
    if (rc == 0)
        rc = rv_store_begin(chat->opts.store, err);
    if (rc == 0) {
        rc = rv_journal_open(chat->opts.store, &scope, turn->id, chat->opts.owner, rv_engine_now_us(chat->opts.engine),
                             chat->opts.lease_us, &journal, err);
        rc = rv_store_end(chat->opts.store, rc, err);
    }
    if (rc == 0) {
        catalog = rv_bundle_catalog(bundle);
        x.pipeline = rv_bundle_pipeline(bundle);
        x.catalog = &catalog;
        x.script = rv_bundle_script(bundle);
        x.journal = journal;
        rc = rv_engine_continue_cancel(chat->opts.engine, &x, &scope, &exec, err);
    }
    if (rc == 0)
        rc = rv_engine_wait(chat->opts.engine, exec, err);
    *ended = rc == 0;
    rv_exec_free(exec);
    rv_journal_free(journal);
    rv_bundle_free(bundle);
    return rc < 0 ? RV_WRAP(err, rc, "end the turn that was left unfinished (run \"%s\")", turn->id) : 0;
}

/* Another process was faster, or the run cannot be replayed, since it is damaged or of another engine: the session goes
 * on.
 */
static bool is_its_own_fault(int rc)
{
    return rc == RV_E_STATE || rc == RV_E_INVALID || rc == RV_E_PARSE || rc == RV_E_VERSION || rc == RV_E_NOT_FOUND ||
           rc == RV_E_LIMIT;
}

static int settle(rv_chat *chat, bool with_waiting, int64_t *n, rv_err **err)
{
    struct left left = {.n = 0};

    *n = 0;
    int rc = look_for(chat, false, &left, err);
    if (rc == 0 && with_waiting)
        rc = look_for(chat, true, &left, err);
    for (size_t i = 0; i < left.n && rc == 0; i++) {
        rv_err *cause = NULL;
        bool ended = false;
        int this_one = end_turn(chat, &left.items[i], &ended, &cause);
        *n += ended;
        if (is_its_own_fault(this_one) && !rv_err_is(cause, RV_E_NOMEM)) {
            rv_err_free(cause);
        } else if (this_one < 0) {
            *err = cause;
            rc = this_one;
        }
    }
    forget(&left);
    return rc;
}

int rv_chat_settle(rv_chat *chat, int64_t *n, rv_err **err)
{
    int64_t n_ended = 0;

    int rc = settle(chat, false, &n_ended, err);
    if (rc == 0 && n)
        *n = n_ended;
    return rc;
}

int chat_give_up(rv_chat *chat, rv_err **err)
{
    int64_t n_ended = 0;

    return settle(chat, true, &n_ended, err);
}

int rv_chat_waiting(rv_chat *chat, char run_id[RV_STORE_MAX_ID + 1], rv_err **err)
{
    struct left left = {.n = 0};

    run_id[0] = '\0';
    int rc = look_for(chat, true, &left, err);
    for (size_t i = left.n; i-- > 0 && rc == 0 && !run_id[0];) {
        rv_bundle *bundle = NULL;
        rv_err *cause = NULL;
        int opened = open_bundle(chat, left.items[i].bundle, &bundle, &cause);
        if (opened == 0 && is_turn(bundle))
            memcpy(run_id, left.items[i].id, strlen(left.items[i].id) + 1);
        rv_bundle_free(bundle);
        if (rv_err_is(cause, RV_E_NOMEM)) {
            *err = cause;
            rc = RV_E_NOMEM;
        } else {
            rv_err_free(cause); /* that turn cannot be continued */
        }
    }
    forget(&left);
    return rc;
}
