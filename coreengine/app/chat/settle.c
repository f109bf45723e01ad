/* Turns that will not continue: those that a process left behind when it died, and those that wait for an answer when
 * the user sends another message. They are ended as cancelled, so that their text is kept as marked rows before the
 * session goes on. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/app/chat/chat_internal.h"
#include "coreengine/app/recover.h"

static bool is_left(struct chat_left *l, const struct rv_run_row *row)
{
    if (!row->owner || !row->owner[0])
        return true;
    return row->lease_until_us < l->now_us || rv_owner_wait_dead(row->owner, &l->patience_us);
}

/* It is in the queue, or a fork that is not continued yet: no process has left it. */
static bool has_begun(const struct rv_run_row *row)
{
    return row->status != RV_RUN_READY || (row->owner && row->owner[0]) || row->n_records > 1;
}

#define LOOK_US (20 * RV_US_PER_MS) /* between two looks for the end of another's turn: a person does not notice it */

/* --- one turn at a time --- */

static int fail_busy(rv_chat *chat, const char *run, rv_err **err)
{
    if (run)
        RV_FAIL(err, RV_E_STATE, "session \"%s\" has a turn under way: run \"%s\"", chat->session_id, run);
    else
        RV_FAIL(err, RV_E_STATE, "session \"%s\" has a turn under way", chat->session_id);
    rv_err_set_hint(err, "wait for its end, or cancel its run");
    chat->is_busy = true;
    return RV_E_STATE;
}

static int64_t lease_us(const rv_chat *chat)
{
    return chat->opts.lease_us > 0 ? chat->opts.lease_us : RV_LEASE_DEFAULT_US;
}

/* The run of the turn, which others find, is written to the disk soon after. */
static int take_place(rv_chat *chat, const char *dead, bool *is_mine, char by[RV_STORE_MAX_ID + 1], rv_err **err)
{
    const struct rv_store_scope scope = chat_scope(chat);
    const int64_t now_us = rv_engine_now_us(chat->opts.engine);
    const struct rv_turn_place place = {.session = chat->session_id,
                                        .owner = chat->opts.owner,
                                        .now_us = now_us,
                                        .until_us = now_us + lease_us(chat),
                                        .dead = dead};

    rv_store_defer_sync(chat->opts.store, true);
    int rc = rv_store_take_turn(chat->opts.store, &scope, &place, is_mine, by, err);
    rv_store_defer_sync(chat->opts.store, false);
    if (rc == 0 && *is_mine)
        chat->place_until_us = place.until_us;
    return rc;
}

int chat_take_place(rv_chat *chat, rv_err **err)
{
    int64_t patience_us = RV_OWNER_ENDS_US;
    char by[RV_STORE_MAX_ID + 1], then[RV_STORE_MAX_ID + 1];
    bool is_mine = false;

    if (!chat->opts.owner) /* as its runs: others cannot know that it drives them */
        return 0;
    if (chat->place_until_us - rv_engine_now_us(chat->opts.engine) > lease_us(chat) / 2)
        return 0;
    int rc = take_place(chat, NULL, &is_mine, by, err);
    if (rc == 0 && !is_mine && (!by[0] || rv_owner_wait_dead(by, &patience_us)))
        rc = take_place(chat, by[0] ? by : NULL, &is_mine, then, err);
    return rc < 0 || is_mine ? rc : fail_busy(chat, NULL, err);
}

static void leave_place(rv_chat *chat)
{
    const struct rv_store_scope scope = chat_scope(chat);
    const struct rv_turn_place place = {.session = chat->session_id, .owner = chat->opts.owner};
    rv_err *err = NULL;

    if (chat->place_until_us == 0)
        return;
    chat->place_until_us = 0;
    rv_store_defer_sync(chat->opts.store, true);
    if (rv_store_leave_turn(chat->opts.store, &scope, &place, &err) < 0) /* it is free when its time is over */
        rv_err_free(err);
    rv_store_defer_sync(chat->opts.store, false);
}

/* --- turns that were left --- */

/* Takes the turn. */
static int insert(struct chat_left *l, struct chat_left_turn turn, rv_err **err)
{
    if (!turn.id || !turn.bundle || !rv_has_room(&l->items, &l->cap, l->n + 1, sizeof *l->items)) {
        free(turn.id);
        free(turn.bundle);
        return RV_FAIL(err, RV_E_NOMEM, "look for unfinished turns");
    }
    size_t i = l->n++;

    for (; i > 0 && l->items[i - 1].created_us > turn.created_us; i--)
        l->items[i] = l->items[i - 1];
    l->items[i] = turn;
    return 0;
}

static int note(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct chat_left *l = self;
    bool is_ours = row->owner && strcmp(row->owner, l->owner) == 0, is_gone = is_left(l, row);
    bool lives = !l->waiting && !is_gone && !is_ours;

    if (!has_begun(row))
        return 0;
    if (l->n == CHAT_MAX_LEFT || (!is_gone && !lives && !(l->waiting && is_ours)))
        return 0;
    if ((l->waiting || lives) && row->parent) /* a fork: its input is not part of this conversation */
        return 0;
    struct chat_left_turn turn = {.id = rv_str_dup(rv_str_of(row->id)),
                                  .bundle = rv_str_dup(rv_str_of(row->bundle)),
                                  .created_us = row->created_us,
                                  .waits = l->waiting,
                                  .lives = lives};
    return insert(l, turn, err);
}

static int look_for(rv_chat *chat, bool waiting, struct chat_left *left, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_run_filter filter = {.statuses = waiting ? 1u << RV_RUN_INTERRUPTED
                                                             : 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING,
                                         .session = chat->session_id,
                                         .oldest_first = true};

    left->now_us = rv_engine_now_us(chat->opts.engine);
    left->patience_us = RV_OWNER_ENDS_US;
    left->owner = chat->opts.owner ? chat->opts.owner : "";
    left->waiting = waiting;
    return rv_store_list_runs(chat->opts.store, &scope, &filter, note, left, err);
}

static void forget(struct chat_left *left)
{
    for (size_t i = 0; i < left->n; i++) {
        free(left->items[i].id);
        free(left->items[i].bundle);
    }
    free(left->items);
    left->items = NULL;
    left->n = left->at = left->cap = 0;
}

void chat_left_fini(rv_chat *chat)
{
    forget(&chat->left);
    leave_place(chat);
}

static int open_bundle(rv_chat *chat, const char *hash, rv_bundle **out, rv_err **err)
{
    const struct rv_bundle_opts offline = {.offline = true};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_BUNDLE);

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

/* A run of another pipeline in the session is not a turn: another process may drive it meanwhile. */
static int check_alone(rv_chat *chat, rv_err **err)
{
    struct chat_left *l = &chat->left;
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct chat_left_turn turn = l->items[i];
        rv_bundle *bundle = NULL;
        rv_err *cause = NULL;
        if (!turn.lives) {
            l->items[n++] = turn;
            continue;
        }
        if (rc == 0 && open_bundle(chat, turn.bundle, &bundle, &cause) == 0 && is_turn(bundle))
            rc = fail_busy(chat, turn.id, err);
        rv_bundle_free(bundle);
        if (rc == 0 && rv_err_is(cause, RV_E_NOMEM))
            rc = RV_FAIL(err, RV_E_NOMEM, "look for unfinished turns");
        rv_err_free(cause);
        free(turn.id);
        free(turn.bundle);
    }
    l->n = n;
    return rc;
}

static int look_for_all(rv_chat *chat, rv_err **err)
{
    int rc = chat_take_place(chat, err);

    forget(&chat->left);
    if (rc == 0)
        rc = look_for(chat, false, &chat->left, err);
    if (rc == 0)
        rc = check_alone(chat, err);
    return rc == 0 ? look_for(chat, true, &chat->left, err) : rc;
}

int chat_find_left(rv_chat *chat, rv_err **err)
{
    int64_t left_us = chat->tells ? 0 : chat->opts.waits_us;

    for (;;) {
        rv_err *why = NULL;
        chat->is_busy = false;
        int rc = look_for_all(chat, &why);
        if (!chat->is_busy || left_us <= 0 || rv_engine_is_cancelled(chat->opts.engine))
            return rc < 0 ? rv_err_pass(err, why) : 0;
        rv_err_free(why);
        leave_place(chat); /* for those who wait, too */
        nanosleep(&(struct timespec){.tv_nsec = LOOK_US * 1000}, NULL);
        left_us -= LOOK_US;
    }
}

/* Ended by its own bundle and journal: what it was, it stays. 1: a run is under way; 0: it is none of ours. */
static int begin_to_end(rv_chat *chat, const struct chat_left_turn *turn, rv_err **err)
{
    const struct rv_store_scope scope = {.tenant = chat->context.tenant_id};
    struct rv_catalog catalog;

    int rc = open_bundle(chat, turn->bundle, &chat->bundle, err);
    if (rc == 0 && turn->waits && !is_turn(chat->bundle))
        return 0;
    if (rc == 0)
        rc = chat_open_journal(chat, &scope, turn->id, err);
    if (rc < 0)
        return rc;
    struct rv_exec_opts x = chat_exec_opts(chat);
    catalog = rv_bundle_catalog(chat->bundle);
    x.pipeline = rv_bundle_pipeline(chat->bundle);
    x.catalog = &catalog;
    x.script = rv_bundle_script(chat->bundle);
    rc = rv_engine_continue_cancel(chat->opts.engine, &x, &scope, &chat->exec, err);
    return rc < 0 ? rc : 1;
}

/* Another process was faster, or the run cannot be replayed, since it is damaged or of another engine: the session goes
 * on.
 */
static bool is_its_own_fault(int rc)
{
    return rc == RV_E_STATE || rc == RV_E_INVALID || rc == RV_E_PARSE || rc == RV_E_VERSION || rc == RV_E_NOT_FOUND ||
           rc == RV_E_LIMIT;
}

int chat_left_ended(rv_chat *chat, int rc, rv_err *cause, rv_err **err)
{
    const struct chat_left_turn *turn = &chat->left.items[chat->left.at - 1];

    chat_end_run(chat);
    if (rc == 0)
        return 0;
    if (is_its_own_fault(rc) && !rv_err_is(cause, RV_E_NOMEM)) {
        rv_err_free(cause);
        return 0;
    }
    rv_err_pass(err, cause);
    return RV_WRAP(err, rc, "end the turn that was left unfinished (run \"%s\")", turn->id);
}

int chat_end_left(rv_chat *chat, rv_err **err)
{
    while (chat->left.at < chat->left.n) {
        rv_err *cause = NULL;
        int rc = begin_to_end(chat, &chat->left.items[chat->left.at++], &cause);
        if (rc <= 0)
            rc = chat_left_ended(chat, rc, cause, err);
        if (rc != 0)
            return rc;
    }
    forget(&chat->left);
    return 0;
}

int rv_chat_find_waiting(rv_chat *chat, char run_id[RV_STORE_MAX_ID + 1], rv_err **err)
{
    struct chat_left left = {.n = 0};

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
            rv_err_pass(err, cause);
            rc = RV_E_NOMEM;
        } else {
            rv_err_free(cause); /* that turn cannot be continued */
        }
    }
    forget(&left);
    return rc;
}

/* --- a turn that waits --- */

bool chat_ends_as_asked(rv_chat *chat, int *rc, rv_err **err)
{
    const struct rv_store_scope scope = {.tenant = chat->context.tenant_id};
    rv_journal *waited = chat->journal;
    bool is_wanted = false;
    rv_err *cause = NULL;

    if (rv_exec_status(chat->exec) != RV_RUN_INTERRUPTED || !waited)
        return false;
    int done = rv_journal_release(waited, &cause);
    if (done == 0)
        done = rv_app_is_to_be_cancelled(chat->opts.store, &scope, chat->run_id, &is_wanted, &cause);
    chat->journal = NULL;
    if (done == 0 && is_wanted)
        done = chat_open_journal(chat, &scope, chat->run_id, &cause);
    if (done < 0)
        rv_app_log_uncancelled(rv_engine_log(chat->opts.engine), chat->run_id, cause);
    if (done < 0 || !is_wanted) {
        chat->journal = waited;
        return false;
    }
    rv_exec_free(chat->exec);
    chat->exec = NULL;
    rv_journal_free(waited);
    if (chat->opts.script)
        rv_script_rewind(chat->opts.script);
    const struct rv_exec_opts x = chat_exec_opts(chat);
    *rc = rv_engine_continue_cancel(chat->opts.engine, &x, &scope, &chat->exec, err);
    return true;
}
