/* Writing a journal: made or taken over, then one append a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

struct rv_journal {
    rv_store *store;    /* borrowed */
    char *run, *tenant; /* owned */
    int64_t fence, seq, lease_until_us;
    int64_t snapshot_seq; /* of the newest snapshot; -1: not looked yet */
    bool is_owned;        /* there is a lease to give up */
    char *before;         /* the owner before; NULL: none */
    bool owner_may_live;  /* the process that owned the run before may still live */
    bool holds;           /* and a pause does not end the lease */
    bool is_paused;       /* interrupted or over, and the lease was given up with it */
    bool has_failed;      /* the outcome of a step is unknown: no further write may follow */
    struct draft *draft;  /* the run is made with its first step; NULL: it is in the store; owned */
    /* the step under way, from prepare to written */
    struct rv_record *records; /* owned */
    size_t cap;
    rv_buf bodies, value;
    struct rv_pendings pendings;
    struct turns {
        struct rv_turn *items; /* their texts are the effects'; owned */
        size_t n;
    } turns;       /* what the step adds to sessions */
    char *stage;   /* one whose label is too long for the store, cut; else NULL; owned */
    char *settled; /* the question that the step answered; owned */
    rv_buf reason; /* why it was cancelled */
    struct rv_store_append append;
    struct rv_store_last last, next; /* the row of the run as the step before left it, and as this one leaves it */
    const rv_run *paused;            /* its state may be worth a snapshot; NULL: it goes on */
};

static int new_journal(rv_store *store, const char *tenant, const char *run, rv_journal **out, rv_err **err)
{
    rv_journal *j = calloc(1, sizeof *j);

    if (j) {
        j->store = store;
        j->run = rv_str_dup(rv_str_of(run));
        j->tenant = tenant ? rv_str_dup(rv_str_of(tenant)) : NULL;
        j->bodies = j->value = RV_BUF_INIT(RV_STORE_MAX_VALUE);
        j->reason = RV_BUF_INIT(RV_CANCEL_MAX_REASON);
        j->cap = 8;
        j->records = calloc(j->cap, sizeof *j->records);
    }
    if (!j || !j->run || (tenant && !j->tenant) || !j->records) {
        rv_journal_free(j);
        return RV_FAIL(err, RV_E_NOMEM, "open the journal of run \"%s\"", run);
    }
    *out = j;
    return 0;
}

static void turns_fini(struct turns *t)
{
    free(t->items);
    *t = (struct turns){0};
}

static void forget_step(rv_journal *j)
{
    rv_pendings_fini(&j->pendings);
    turns_fini(&j->turns);
    free(j->stage);
    free(j->settled);
    j->stage = j->settled = NULL;
    j->paused = NULL;
}

int rv_journal_release(rv_journal *j, rv_err **err)
{
    int rc = j->is_owned && !j->is_paused ? rv_store_release(j->store, j->run, j->fence, err) : 0;

    j->is_owned = false;
    return rc;
}

void rv_journal_free(rv_journal *j)
{
    if (!j)
        return;
    RV_IGNORE(rv_journal_release(j, NULL), "the lease ends by itself, only later");
    free(j->run);
    free(j->tenant);
    free(j->before);
    free(j->records);
    journal_draft_free(j->draft);
    forget_step(j);
    rv_buf_fini(&j->bodies);
    rv_buf_fini(&j->value);
    rv_buf_fini(&j->reason);
    free(j);
}

void rv_journal_move(rv_journal *j, rv_store *store)
{
    j->store = store;
}

const char *rv_journal_owner_before(const rv_journal *j)
{
    return j->before ? j->before : "";
}

const char *rv_journal_run(const rv_journal *j)
{
    return j->run;
}

int64_t rv_journal_fence(const rv_journal *j)
{
    return j->fence;
}

int64_t rv_journal_seq(const rv_journal *j)
{
    return j->seq;
}

int64_t rv_journal_lease_until_us(const rv_journal *j)
{
    return j->lease_until_us;
}

void rv_journal_on_renewed(rv_journal *j, int64_t until_us)
{
    j->lease_until_us = until_us;
}

const char *journal_stage_of(const rv_envelope *env, char room[RV_STAGE_LABEL_MAX + 1])
{
    const char *stage = rv_envelope_fields(env)->current_stage;

    if (strnlen(stage, RV_STAGE_LABEL_MAX + 1) <= RV_STAGE_LABEL_MAX)
        return stage;
    rv_str cut = rv_utf8_cut(rv_str_of(stage), RV_STAGE_LABEL_MAX);
    memcpy(room, cut.ptr, cut.len);
    room[cut.len] = '\0';
    return room;
}

/* --- making one --- */

int rv_journal_new(rv_store *store, const struct rv_journal_start *start, rv_journal **out, rv_err **err)
{
    const char *id = rv_envelope_fields(start->env)->envelope_id;
    rv_journal *j = NULL;

    int rc = new_journal(store, start->tenant, id, &j, err);
    if (rc < 0)
        return rc;
    j->lease_until_us = start->now_us + (start->lease_us > 0 ? start->lease_us : RV_LEASE_DEFAULT_US);
    rc = journal_draft_new(start, start->owner, j->lease_until_us, &j->draft, err);
    if (rc < 0) {
        rv_journal_free(j);
        return RV_WRAP(err, rc, "begin the journal of run \"%s\"", id);
    }
    j->fence = 1;
    j->seq = 1;
    *out = j;
    return 0;
}

/* The run is in the store. */
static void is_made(rv_journal *j)
{
    if (!j->draft)
        return;
    j->is_owned = j->draft->run.owner != NULL;
    journal_draft_free(j->draft);
    j->draft = NULL;
}

int rv_journal_create(rv_store *store, const struct rv_journal_start *start, rv_journal **out, rv_err **err)
{
    struct rv_journal_start s = *start;
    rv_journal *j = NULL;

    if (!out) /* no journal is returned that could give up the run */
        s.owner = NULL;
    int rc = rv_journal_new(store, &s, &j, err);
    if (rc < 0)
        return rc;
    j->draft->run.next = &j->last;
    rc = rv_store_create_run(store, &j->draft->run, err);
    if (rc < 0)
        rc = RV_WRAP(err, rc, "begin the journal of run \"%s\"", j->run);
    else
        is_made(j);
    if (rc == 0 && out)
        *out = j;
    else
        rv_journal_free(j);
    return rc;
}

/* --- taking one over --- */

static int fail_over(const char *run, enum rv_run_status status, rv_err **err)
{
    return RV_FAIL(err, RV_E_STATE, "run \"%s\" is over (%s)", run, rv_run_status_text(status));
}

static int claim(rv_journal *j, const struct rv_store_scope *scope, const char *owner, int64_t now_us,
                 struct rv_store_claimed *out, rv_err **err)
{
    struct rv_store_claim c = {.owner = owner, .now_us = now_us, .until_us = j->lease_until_us};
    int64_t patience_us = RV_OWNER_ENDS_US;
    struct rv_run_row row = {0};

    int rc = rv_store_get_run(j->store, scope, j->run, &row, err);
    if (rc < 0)
        return rc;
    if (rv_run_status_is_final(row.status)) {
        rc = fail_over(j->run, row.status, err);
    } else {
        c.dead = row.owner && rv_owner_wait_dead(row.owner, &patience_us) ? row.owner : NULL;
        j->owner_may_live = row.owner && !c.dead;
        j->before = row.owner ? rv_str_dup(rv_str_of(row.owner)) : NULL;
        rc = row.owner && !j->before ? RV_FAIL(err, RV_E_NOMEM, "open the journal of run \"%s\"", j->run)
                                     : rv_store_claim_run(j->store, scope, j->run, &c, out, err);
    }
    rv_run_row_fini(&row);
    j->is_owned = rc == 0;
    if (rc == 0) {
        j->fence = out->fence;
        j->seq = out->n_records;
    }
    return rc;
}

/* Of a run that was under way. */
static int note_owner(rv_journal *j, const struct rv_store_scope *scope, const char *owner, int64_t now_us,
                      rv_err **err)
{
    struct rv_run_row row = {0};

    int rc = rv_store_get_run(j->store, scope, j->run, &row, err);
    if (rc < 0)
        return rc;
    journal_record_put_owner(owner, j->fence, now_us, &j->bodies);
    rc = rv_buf_check(&j->bodies, "the change of owner", err);
    const struct rv_record r = {.seq = j->seq + 1, .kind = RV_RECORD_OWNER, .body = rv_buf_str(&j->bodies)};
    const struct rv_store_append a = {.run = j->run,
                                      .fence = j->fence,
                                      .records = &r,
                                      .n_records = 1,
                                      .now_us = now_us,
                                      .status = row.status,
                                      .stage = row.stage};
    if (rc == 0)
        rc = rv_store_append(j->store, &a, err);
    if (rc == 0)
        j->seq++;
    rv_run_row_fini(&row);
    return rc;
}

/* The previous owner may have written until the claim. */
static int take_over(rv_journal *j, const struct rv_store_scope *scope, const char *owner, int64_t now_us, rv_err **err)
{
    struct rv_store_claimed claimed = {0};

    int rc = claim(j, scope, owner, now_us, &claimed, err);
    if (rc == 0 && rv_run_status_is_final(claimed.status))
        rc = fail_over(j->run, claimed.status, err);
    else if (rc == 0 && claimed.status != RV_RUN_INTERRUPTED)
        rc = note_owner(j, scope, owner, now_us, err);
    return rc;
}

int rv_journal_open(rv_store *store, const struct rv_store_scope *scope, const char *run,
                    const struct rv_journal_claim *claim, rv_journal **out, rv_err **err)
{
    rv_journal *j = NULL;

    int rc = new_journal(store, scope->tenant, run, &j, err);
    if (rc < 0)
        return rc;
    j->lease_until_us = claim->now_us + (claim->lease_us > 0 ? claim->lease_us : RV_LEASE_DEFAULT_US);
    j->snapshot_seq = -1;
    rc = take_over(j, scope, claim->owner, claim->now_us, err);
    if (rc < 0) {
        j->is_owned =
            j->is_owned && !rv_store_is_in_group(store); /* the claim goes with its group, which may be repeated */
        rv_journal_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

/* --- steps --- */

static int make_room(rv_journal *j, size_t n, rv_err **err)
{
    return rv_has_room(&j->records, &j->cap, n, sizeof *j->records) ? 0
                                                                    : RV_FAIL(err, RV_E_NOMEM, "write %zu records", n);
}

static struct rv_record *add_record(rv_journal *j, size_t n, int kind)
{
    struct rv_record *r = &j->records[n];

    *r = (struct rv_record){.seq = j->seq + 1 + (int64_t)n, .kind = kind};
    r->body.len = j->bodies.len; /* where it begins, until all are written */
    return r;
}

/* The records of a step: what the core was told, then each call it asks for, and what calls made for people. */
static int write_records(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects,
                         const rv_envelope *env, size_t *n_out, rv_err **err)
{
    size_t n = 1, n_more = 0;

    for (size_t i = 0; i < effects->n; i++)
        n_more += journal_effect_is_call(&effects->items[i]) || effects->items[i].kind == RV_EFFECT_ARTIFACT;
    int rc = make_room(j, 1 + n_more, err);
    if (rc < 0)
        return rc;
    rv_buf_clear(&j->bodies);
    rv_buf_clear(&j->value);
    struct rv_record *r = add_record(j, 0, RV_RECORD_EVENT);
    r->value = journal_record_put_event(ev, &j->bodies, &j->value);
    if (rv_run_status_is_final(j->append.status))
        journal_put_end(env, &j->bodies);
    for (size_t i = 0; i < effects->n; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (!journal_effect_is_call(e))
            continue;
        r = add_record(j, n++, RV_RECORD_STARTED);
        journal_record_put_started(e, env, &j->bodies);
        if (e->kind == RV_EFFECT_CALL_TOOL)
            r->value = (rv_str){e->request, e->request_len};
    }
    for (size_t i = 0; i < effects->n; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind != RV_EFFECT_ARTIFACT)
            continue;
        r = add_record(j, n++, RV_RECORD_ARTIFACT);
        rv_buf_add(&j->bodies, e->about, e->about_len);
        r->value = (rv_str){e->request, e->request_len};
    }
    rc = rv_buf_check(&j->bodies, "the records of a step", err);
    if (rc == 0)
        rc = rv_buf_check(&j->value, "an answer", err);
    size_t end = j->bodies.len;
    for (size_t i = n; i-- > 0;) {
        size_t at = j->records[i].body.len;
        j->records[i].body = (rv_str){rv_buf_cstr(&j->bodies) + at, end - at};
        end = at;
    }
    *n_out = n;
    return rc;
}

/* A run that waits may wait for long, and others of its kind may follow: enter a long journal near its end. */
static void keep_snapshot(rv_journal *j, rv_store *store, int64_t seq, int64_t now_us, const rv_run *run)
{
    const struct rv_store_scope scope = {.tenant = j->tenant};

    if (seq - (j->snapshot_seq > 0 ? j->snapshot_seq : 0) <= RV_SNAPSHOT_EVERY)
        return;
    if (j->snapshot_seq < 0)
        j->snapshot_seq = journal_snapshot_seq(store, &scope, j->run);
    if (seq - j->snapshot_seq <= RV_SNAPSHOT_EVERY)
        return;
    j->snapshot_seq = seq; /* whether or not it succeeds: not tried again at once */
    RV_IGNORE(journal_snapshot_put(store, &scope, &(struct snapshot_new){j->run, j->fence, seq, now_us, run}, NULL),
              "the journal is complete without it");
}

static int list_turns(const struct rv_effects *effects, struct turns *out, rv_err **err)
{
    size_t n = 0;

    for (size_t i = 0; i < effects->n; i++)
        n += effects->items[i].kind == RV_EFFECT_KEEP;
    if (n == 0)
        return 0;
    out->items = calloc(n, sizeof *out->items);
    if (!out->items)
        return RV_FAIL(err, RV_E_NOMEM, "keep the rows of a session");
    for (size_t i = 0; i < effects->n; i++)
        if (effects->items[i].kind == RV_EFFECT_KEEP)
            out->items[out->n++] = *effects->items[i].turn;
    return 0;
}

/* The answer is the caller's: a step that is written later needs its own. */
static int own_value(rv_journal *j, rv_err **err)
{
    rv_str *value = &j->records[0].value;

    if (!value->ptr || value->ptr == rv_buf_cstr(&j->value))
        return 0;
    rv_buf_clear(&j->value);
    rv_buf_add_str(&j->value, *value);
    *value = rv_buf_str(&j->value);
    return rv_buf_check(&j->value, "an answer", err);
}

/* How the answer settles its question. An id that no question of the store can have settles none. */
static int settle(rv_journal *j, const struct rv_response *r, rv_err **err)
{
    struct rv_store_append *a = &j->append;
    rv_str id = r->interrupt_id;

    if (id.len > RV_STORE_MAX_ID || (id.ptr && memchr(id.ptr, 0, id.len)))
        return 0;
    a->settled.is_set = true;
    a->settled.status = r->cancelled ? RV_INTERRUPT_STATUS_CANCELLED
                        : r->expired ? RV_INTERRUPT_STATUS_EXPIRED
                                     : RV_INTERRUPT_STATUS_RESOLVED;
    if (id.len > 0) {
        j->settled = rv_str_dup(id);
        if (!j->settled)
            return RV_FAIL(err, RV_E_NOMEM, "journal an answer");
        a->settled.id = j->settled;
    }
    if (!r->cancelled || !r->text.ptr)
        return 0;
    rv_buf_clear(&j->reason);
    rv_buf_add_str(&j->reason, r->text);
    a->settled.reason = rv_buf_str(&j->reason);
    return rv_buf_check(&j->reason, "the reason of a cancellation", err);
}

static int take_stage(rv_journal *j, const rv_envelope *env, rv_err **err)
{
    const char *stage = rv_envelope_fields(env)->current_stage;

    if (strnlen(stage, RV_STAGE_LABEL_MAX + 1) > RV_STAGE_LABEL_MAX && !(j->stage = malloc(RV_STAGE_LABEL_MAX + 1)))
        return RV_FAIL(err, RV_E_NOMEM, "journal a step");
    j->append.stage = journal_stage_of(env, j->stage);
    return 0;
}

static int prepare(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects, const rv_run *run,
                   bool is_later, rv_err **err)
{
    const struct rv_effect *last = effects->n > 0 ? &effects->items[effects->n - 1] : NULL;
    bool is_end = last && last->kind == RV_EFFECT_FINISH;
    const rv_envelope *env = rv_run_envelope(run);
    struct rv_store_append *a = &j->append;
    size_t n = 0;

    *a = (struct rv_store_append){.run = j->run,
                                  .fence = j->fence,
                                  .now_us = ev->now_us,
                                  .status = rv_run_status(run),
                                  .set_pending = is_end || ev->kind == RV_EVENT_ANSWER,
                                  .last = &j->last,
                                  .next = &j->next};
    bool is_pause = is_end && a->status == RV_RUN_INTERRUPTED;
    a->release = is_end && !(j->holds && is_pause);
    j->paused = is_pause ? run : NULL;
    int rc = take_stage(j, env, err);
    if (rc == 0)
        rc = write_records(j, ev, effects, env, &n, err);
    if (rc == 0 && ev->kind == RV_EVENT_ANSWER)
        rc = settle(j, &ev->response, err);
    if (rc == 0 && is_later)
        rc = own_value(j, err);
    if (rc == 0 && is_pause)
        rc = rv_pendings_build(env, rv_run_question_stage(run) ? rv_run_question_stage(run) : a->stage, &j->pendings,
                               err);
    if (rc == 0)
        rc = list_turns(effects, &j->turns, err);
    a->turns = j->turns.items;
    a->n_turns = j->turns.n;
    a->records = j->records;
    a->n_records = n;
    a->pending = j->pendings.items;
    a->n_pending = j->pendings.n;
    return rc;
}

bool rv_journal_owner_may_live(const rv_journal *j)
{
    return j->owner_may_live;
}

void rv_journal_hold(rv_journal *j, bool holds)
{
    j->holds = holds;
}

static int step_failed(rv_journal *j, int rc, rv_err **err)
{
    j->has_failed = true;
    forget_step(j);
    return RV_WRAP(err, rc, "journal record %lld of run \"%s\"", (long long)j->seq + 1, j->run);
}

static int begin_step(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects, const rv_run *run,
                      bool is_later, rv_err **err)
{
    if (j->has_failed)
        return RV_FAIL(err, RV_E_STATE,
                       "run \"%s\": an earlier step could not be journaled; recover the run before it goes on", j->run);
    if (j->is_paused)
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" was given up when it paused; open its journal again", j->run);
    int rc = prepare(j, ev, effects, run, is_later, err);
    return rc < 0 ? step_failed(j, rc, err) : 0;
}

int rv_journal_prepare(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects, const rv_run *run,
                       rv_err **err)
{
    return begin_step(j, ev, effects, run, true, err);
}

int rv_journal_write(const rv_journal *j, rv_store *store, rv_err **err)
{
    struct rv_store_append a = j->append;
    struct rv_store_last made;

    if (j->draft) {
        struct rv_store_new_run run = j->draft->run;
        run.next = &made;
        int rc = rv_store_create_run(store, &run, err);
        if (rc < 0)
            return rc;
        a.last = &made;
    }
    return rv_store_append(store, &a, err);
}

void rv_journal_write_rest(rv_journal *j, rv_store *store)
{
    int64_t seq = j->seq + (int64_t)j->append.n_records;

    if (j->paused)
        keep_snapshot(j, store, seq, j->append.now_us, j->paused);
}

int rv_journal_on_written(rv_journal *j, int rc, rv_err **err)
{
    if (rc < 0)
        return step_failed(j, rc, err);
    is_made(j);
    j->last = j->next;
    j->seq += (int64_t)j->append.n_records;
    j->is_paused = j->append.release;
    forget_step(j);
    return 0;
}

bool rv_journal_is_kept(const rv_journal *j)
{
    return !j->draft;
}

void rv_journal_forgive(rv_journal *j)
{
    j->has_failed = false;
}

/* A run and its first step are one transaction. */
static int write_now(rv_journal *j, rv_err **err)
{
    bool is_group = j->draft && !rv_store_is_in_group(j->store);

    int rc;

    do {
        rc = is_group ? rv_store_begin(j->store, err) : 0;
        if (rc < 0)
            continue;
        rc = rv_journal_write(j, j->store, err);
        if (is_group)
            rc = rv_store_end(j->store, rc, err);
    } while (rc < 0 && is_group && rv_store_wait_again(j->store, err));
    return rc;
}

int rv_journal_step(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects, const rv_run *run,
                    rv_err **err)
{
    int rc = begin_step(j, ev, effects, run, false, err);

    if (rc < 0)
        return rc;
    rc = write_now(j, err);
    if (rc == 0)
        rv_journal_write_rest(j, j->store);
    return rv_journal_on_written(j, rc, err);
}
