/* Replay: a journal fed to a new run. Nothing is performed; what the core asks for is compared with what was asked. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define COMPACT_AT 32 /* calls that are over; fewer are not worth moving the others for */

/* --- Calls and timers whose answer is outstanding, in order of asking: their ids rise. --- */

struct open_calls {
    struct rv_effects all; /* those that are over stay as CANCEL_CALL until there are many */
    size_t n_over;
};

static void forget(struct rv_effect *e)
{
    int64_t call_id = e->call_id;

    rv_effect_fini(e);
    *e = (struct rv_effect){.kind = RV_EFFECT_CANCEL_CALL, .call_id = call_id, .stage = -1};
}

static void compact(struct open_calls *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->all.n; i++)
        if (o->all.items[i].kind != RV_EFFECT_CANCEL_CALL)
            o->all.items[n++] = o->all.items[i];
    o->all.n = n;
    o->n_over = 0;
}

/* The effect leaves `from`: its texts are the table's then. */
static int add_open(struct open_calls *o, struct rv_effect *from, int64_t now_us, rv_err **err)
{
    struct rv_effect *e = rv_effects_add(&o->all, from->kind);

    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "keep an open call");
    *e = *from;
    from->owned_name = from->request = from->key = from->path = from->label = from->about = NULL;
    from->ids = NULL;
    if (e->kind != RV_EFFECT_ARM_TIMER)
        e->at_us = now_us;
    return 0;
}

/* Fine when it is not there. */
static void end_open(struct open_calls *o, int64_t call_id)
{
    size_t low = 0, high = o->all.n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (o->all.items[mid].call_id < call_id)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == o->all.n || o->all.items[low].call_id != call_id || o->all.items[low].kind == RV_EFFECT_CANCEL_CALL)
        return;
    forget(&o->all.items[low]);
    o->n_over++;
    if (o->n_over >= COMPACT_AT && o->n_over > o->all.n / 2)
        compact(o);
}

static void clear_open(struct open_calls *o)
{
    rv_effects_clear(&o->all);
    o->n_over = 0;
}

/* Only the open ones. */
static struct rv_effects steal_open(struct open_calls *o)
{
    compact(o);
    struct rv_effects all = o->all;
    *o = (struct open_calls){0};
    return all;
}

/* --- Records --- */

struct replay {
    const struct rv_replay_opts *opts;
    struct rv_replayed out; /* `open` is filled at the end */
    struct open_calls open;
    struct rv_effects step;         /* of the event read last; its calls are compared with the records that follow */
    size_t next_call;               /* in step: where the call of the next STARTED record is looked for */
    int64_t next, step_us;          /* seq that has to follow; time of the event read last */
    struct snapshot snapshot;       /* env NULL: from the beginning */
    struct rv_conversation *wanted; /* its history has to be read before the run can be made; owned */
    rv_buf scratch;
};

static int fail_record(const struct rv_record *r, rv_err **err, int rc)
{
    return rc == RV_E_NOMEM ? rc
                            : RV_WRAP(err, rc, "record %lld (%s)", (long long)r->seq, rv_record_kind_text(r->kind));
}

/* The next call of the step that no STARTED record was seen for, or NULL. */
static struct rv_effect *awaited(struct replay *r)
{
    while (r->next_call < r->step.n && !journal_effect_is_call(&r->step.items[r->next_call]))
        r->next_call++;
    return r->next_call < r->step.n ? &r->step.items[r->next_call] : NULL;
}

/* The step is over: what it asked for is open, what it took back or ended is not. */
static int settle(struct replay *r, bool may_be_cut, rv_err **err)
{
    const struct rv_effect *missing = awaited(r);
    rv_buf text = RV_BUF_INIT(4096);
    int rc = 0;

    if (missing && !may_be_cut) {
        journal_call_describe(missing, rv_run_envelope(r->out.run), &text);
        rc = RV_FAIL(err, RV_E_STATE, "after record %lld the core asks for %s now, and did not then",
                     (long long)r->out.seq, rv_buf_cstr(&text));
        journal_diverged(err, rc);
        rv_buf_fini(&text);
        return rc;
    }
    for (size_t i = 0; i < r->step.n && rc == 0; i++) {
        struct rv_effect *e = &r->step.items[i];
        if (journal_effect_is_call(e) || e->kind == RV_EFFECT_ARM_TIMER)
            rc = add_open(&r->open, e, r->step_us, err);
        else if (e->kind == RV_EFFECT_CANCEL_CALL)
            end_open(&r->open, e->call_id);
        else if (e->kind == RV_EFFECT_FINISH)
            clear_open(&r->open);
    }
    rv_effects_clear(&r->step);
    r->next_call = 0;
    return rc;
}

static int tell(struct replay *r, const struct rv_record *rec, const struct rv_event *ev, rv_err **err)
{
    return r->opts->on_step ? r->opts->on_step(r->opts->self, rec, ev, &r->step, r->out.run, err) : 0;
}

static int on_event(struct replay *r, const struct rv_record *rec, rv_err **err)
{
    json_object *own = NULL;
    struct rv_event ev;

    int rc = journal_record_get_event(rec, &own, &r->scratch, &ev, err);
    if (rc < 0) {
        rc = fail_record(rec, err, rc);
        goto done;
    }
    if (ev.call_id)
        end_open(&r->open, ev.call_id);
    rc = rv_run_step(r->out.run, &ev, &r->step, err);
    if (rc < 0 && rc != RV_E_NOMEM) {
        rc = RV_WRAP(err, RV_E_STATE, "the core took it then, and refuses it now");
        rc = fail_record(rec, err, journal_diverged(err, rc));
    }
    if (rc < 0)
        goto done;
    r->step_us = ev.now_us;
    if (ev.now_us > r->out.last_us)
        r->out.last_us = ev.now_us;
    r->out.n_events++;
    r->out.seq = rec->seq;
    rc = tell(r, rec, &ev, err);
done:
    json_object_put(own);
    return rc;
}

static int on_started(struct replay *r, const struct rv_record *rec, rv_err **err)
{
    struct rv_effect *e = awaited(r);
    int rc;

    if (e) {
        rc = journal_record_check_started(rec, e, rv_run_envelope(r->out.run), &r->scratch, err);
        r->next_call++;
    } else {
        rc = RV_FAIL(err, RV_E_STATE, "the core asked for a call then, %.*s, and asks for none now",
                     RV_STR_ARG(rv_utf8_cut(rec->body, 300)));
        journal_diverged(err, rc);
    }
    return rc < 0 ? fail_record(rec, err, rc) : 0;
}

static int on_owner(struct replay *r, const struct rv_record *rec, rv_err **err)
{
    json_object *body = NULL;
    int64_t us = 0;

    int rc = journal_record_get_body(rec, &body, err);
    if (rc == 0 && rv_json_get_int(body, "now_us", &us) && us > r->out.last_us && us <= RV_JOURNAL_MAX_US)
        r->out.last_us = us;
    json_object_put(body);
    return rc < 0 ? fail_record(rec, err, rc) : 0;
}

static int on_record(void *self, const struct rv_record *rec, rv_err **err)
{
    struct replay *r = self;
    int rc = 0;

    if (rec->seq != r->next)
        return RV_FAIL(err, RV_E_INVALID, "record %lld follows record %lld", (long long)rec->seq,
                       (long long)r->next - 1);
    r->next++;
    if (rec->kind == RV_RECORD_EVENT || rec->kind == RV_RECORD_OWNER)
        rc = settle(r, false, err);
    if (rc != 0)
        return rc;
    if (rec->kind == RV_RECORD_EVENT)
        rc = on_event(r, rec, err);
    else if (rec->kind == RV_RECORD_STARTED)
        rc = on_started(r, rec, err);
    else if (rec->kind == RV_RECORD_OWNER)
        rc = on_owner(r, rec, err);
    else if (rec->kind == RV_RECORD_BEGIN)
        rc = RV_FAIL(err, RV_E_INVALID, "record %lld begins a run that has begun", (long long)rec->seq);
    else if (rec->kind != RV_RECORD_ARTIFACT) /* it can be derived from the events, and no decision depends on it */
        rc = RV_FAIL(err, RV_E_INVALID, "record %lld is of kind %d, which this engine does not know",
                     (long long)rec->seq, rec->kind);
    if (rc == 0)
        r->out.seq = rec->seq;
    return rc;
}

/* --- the first record --- */

static int check_first(const struct rv_record *rec, rv_err **err)
{
    if (rec->seq != 1 || rec->kind != RV_RECORD_BEGIN)
        return RV_FAIL(err, RV_E_INVALID, "the journal begins with record %lld (%s), not with how the run began",
                       (long long)rec->seq, rv_record_kind_text(rec->kind));
    return 0;
}

#define WANTS_HISTORY 1 /* ends the walk: nothing can be read from the store in the middle of one */

/* The conversation's history, once it was read. */
static int take_history(struct replay *r)
{
    struct rv_conversation *c = r->out.begin.own_conversation;

    if (!c || !c->history_hash[0])
        return 0;
    if (!r->wanted) {
        r->wanted = c;
        r->out.begin.own_conversation = NULL;
        rv_journal_begin_fini(&r->out.begin);
        return WANTS_HISTORY;
    }
    c->history = r->wanted->history;
    r->wanted->history = NULL;
    return 0;
}

static int get_state(const struct rv_record *r, int64_t now_us, rv_envelope **out, rv_err **err)
{
    if (!r->value.ptr)
        return RV_FAIL(err, RV_E_INVALID, "it has no state");
    return journal_load_state(r->value, now_us, out, err);
}

static int make_run(struct replay *r, const struct rv_record *rec, rv_err **err)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = r->snapshot.env;
    int64_t now_us = 0;

    opts.is_snapshot = env != NULL;

    int rc = journal_record_get_begin(rec, r->opts->pipeline, &r->out.begin, &now_us, err);
    if (rc < 0)
        return fail_record(rec, err, rc);
    if (r->opts->on_begin && !r->wanted && (rc = r->opts->on_begin(r->opts->self, &r->out.begin, err)) != 0)
        return rc;
    rc = take_history(r);
    if (rc == WANTS_HISTORY)
        return rc;
    if (rc == 0 && !env)
        rc = get_state(rec, now_us, &env, err);
    if (rc < 0)
        return fail_record(rec, err, rc);
    r->snapshot.env = NULL;
    opts.first = r->snapshot.counters;
    rv_journal_begin_set_opts(&r->out.begin, &opts);
    opts.emits = r->opts->on_step && !r->opts->without_events; /* they are numbered all the same */
    opts.saves = RV_SAVES_NONE;
    rc = rv_run_new(r->opts->pipeline, r->opts->catalog, &opts, env, &r->out.run, err);
    if (rc < 0)
        return rc;
    r->out.last_us = now_us > r->snapshot.last_us ? now_us : r->snapshot.last_us;
    r->out.n_events = r->snapshot.n_events;
    r->out.seq = r->snapshot.seq > 0 ? r->snapshot.seq : 1;
    return tell(r, rec, NULL, err);
}

static int on_first(void *self, const struct rv_record *rec, rv_err **err)
{
    struct replay *r = self;

    int rc = check_first(rec, err);
    r->next = 2;
    return rc < 0 ? rc : make_run(r, rec, err);
}

/* --- the whole --- */

/* The records of a run that are read behind a snapshot. */
struct rest {
    const char *run; /* borrowed */
    int64_t upto;
    bool is_cut; /* the run has more */
};
static int read_rest(struct replay *r, rv_store *store, const struct rv_store_scope *scope, const struct rest *rest,
                     rv_err **err)
{
    int64_t from = r->out.seq + 1;
    int rc = 0;

    r->next = from;
    if (from <= rest->upto)
        rc = rv_store_read(store, scope, &(struct rv_record_range){rest->run, from, rest->upto}, on_record, r, err);
    if (rc == 0 && r->next != rest->upto + 1)
        rc = RV_FAIL(err, RV_E_INVALID, "the journal ends with record %lld of %lld", (long long)r->next - 1,
                     (long long)rest->upto);
    return rc == 0 ? settle(r, rest->is_cut, err) : rc;
}

/* How many records there are now, and when the first was written; NULL: not asked for. */
static int look_at_row(rv_store *store, const struct rv_store_scope *scope, const char *run, int64_t *n_records,
                       int64_t *created_us, rv_err **err)
{
    struct rv_run_row row = {0};

    int rc = rv_store_get_run(store, scope, run, &row, err);
    if (n_records)
        *n_records = row.n_records;
    if (created_us)
        *created_us = row.created_us;
    rv_run_row_fini(&row);
    return rc;
}

/* From the first record on, in one walk. */
static int on_any(void *self, const struct rv_record *rec, rv_err **err)
{
    struct replay *r = self;

    return r->out.run ? on_record(r, rec, err) : on_first(r, rec, err);
}

static int read_history(struct replay *r, rv_store *store, const struct rv_store_scope *scope, const char *run,
                        rv_err **err)
{
    int64_t created_us = 0;

    int rc = look_at_row(store, scope, run, NULL, &created_us, err);
    return rc < 0 ? rc : journal_same_history(store, scope, r->wanted, created_us, &r->wanted->history, err);
}

/* Records behind a snapshot are read apart. */
static int read_all(struct replay *r, rv_store *store, const struct rv_store_scope *scope, const char *run,
                    int64_t upto, rv_err **err)
{
    int64_t last = r->snapshot.env ? 1 : upto;

    int rc = upto > 0 ? rv_store_read(store, scope, &(struct rv_record_range){run, 1, last}, on_any, r, err) : 0;
    if (r->wanted && !r->out.run) {
        rc = read_history(r, store, scope, run, err);
        if (rc == 0)
            rc = rv_store_read(store, scope, &(struct rv_record_range){run, 1, last}, on_any, r, err);
    }
    return rc == 0 && !r->out.run ? RV_FAIL(err, RV_E_INVALID, "the journal is empty") : rc;
}

static int replay(struct replay *r, rv_store *store, const struct rv_store_scope *scope, const char *run, rv_err **err)
{
    int64_t end = r->opts->n_records;

    int rc = end > 0 ? 0 : look_at_row(store, scope, run, &end, NULL, err);
    if (rc < 0)
        return rc;
    int64_t upto = r->opts->upto > 0 && r->opts->upto < end ? r->opts->upto : end;
    if (r->opts->from_snapshot && upto > RV_SNAPSHOT_EVERY) /* a shorter journal gets none */
        rc = journal_snapshot_get(store, scope, run, upto, &r->snapshot, err);
    if (rc == 0)
        rc = read_all(r, store, scope, run, upto, err);
    return rc == 0
               ? read_rest(r, store, scope, &(const struct rest){.run = run, .upto = upto, .is_cut = upto < end}, err)
               : rc;
}

/* All but what came out. */
static void fini(struct replay *r)
{
    clear_open(&r->open);
    rv_effects_fini(&r->open.all);
    rv_effects_fini(&r->step);
    journal_snapshot_fini(&r->snapshot);
    rv_conversation_free(r->wanted);
    r->wanted = NULL;
    rv_buf_fini(&r->scratch);
}

static int fail_run(const char *run, rv_err **err, int rc)
{
    return rc < 0 && rc != RV_E_NOMEM ? RV_WRAP(err, rc, "replay run \"%s\"", run) : rc;
}

int rv_journal_replay(rv_store *store, const struct rv_store_scope *scope, const char *run,
                      const struct rv_replay_opts *opts, struct rv_replayed *out, rv_err **err)
{
    struct replay r = {.opts = opts, .out = {.begin = {.mode = RV_UNSET}}, .scratch = RV_BUF_INIT(RV_STORE_MAX_VALUE)};

    int rc = replay(&r, store, scope, run, err);
    if (rc == 0) {
        r.out.open = steal_open(&r.open);
        *out = r.out;
    } else {
        rv_replayed_fini(&r.out);
        rc = fail_run(run, err, rc);
    }
    fini(&r);
    return rc;
}

void rv_replayed_fini(struct rv_replayed *r)
{
    rv_run_free(r->run);
    rv_effects_fini(&r->open);
    rv_journal_begin_fini(&r->begin);
    *r = (struct rv_replayed){0};
}

/* --- a journal that grows --- */

struct rv_follower {
    rv_store *store;             /* borrowed, as the texts of scope */
    struct rv_store_scope scope; /* of the caller's choice */
    char *run;                   /* owned */
    struct rv_replay_opts opts;
    struct replay replay;
};

int rv_journal_follow(rv_store *store, const struct rv_store_scope *scope, const char *run,
                      const struct rv_replay_opts *opts, rv_follower **out, rv_err **err)
{
    rv_follower *f = calloc(1, sizeof *f);

    if (f)
        f->run = rv_str_dup(rv_str_of(run));
    if (!f || !f->run) {
        free(f);
        return RV_FAIL(err, RV_E_NOMEM, "follow run \"%s\"", run);
    }
    f->store = store;
    f->scope = *scope;
    f->opts = *opts;
    f->opts.upto = 0;
    f->replay = (struct replay){
        .opts = &f->opts, .out = {.begin = {.mode = RV_UNSET}}, .scratch = RV_BUF_INIT(RV_STORE_MAX_VALUE)};
    int rc = replay(&f->replay, store, scope, run, err);
    if (rc != 0) {
        rv_follower_free(f);
        return fail_run(run, err, rc);
    }
    *out = f;
    return 0;
}

int rv_follower_feed(rv_follower *f, rv_err **err)
{
    int64_t end = 0;

    int rc = look_at_row(f->store, &f->scope, f->run, &end, NULL, err);
    if (rc == 0 && end > f->replay.out.seq)
        rc = read_rest(&f->replay, f->store, &f->scope,
                       &(const struct rest){.run = f->run, .upto = end, .is_cut = false}, err);
    return fail_run(f->run, err, rc);
}

const rv_run *rv_follower_run(const rv_follower *f)
{
    return f->replay.out.run;
}

void rv_follower_free(rv_follower *f)
{
    if (!f)
        return;
    fini(&f->replay);
    rv_replayed_fini(&f->replay.out);
    free(f->run);
    free(f);
}

/* --- the begin alone --- */

struct begin_reader {
    const struct rv_pipeline *pipeline;
    struct rv_journal_begin begin;
    bool found;
};

static int read_begin(void *self, const struct rv_record *rec, rv_err **err)
{
    struct begin_reader *b = self;
    int64_t now_us;

    int rc = check_first(rec, err);
    if (rc < 0)
        return rc;
    rc = journal_record_get_begin(rec, b->pipeline, &b->begin, &now_us, err);
    b->found = rc == 0;
    return rc < 0 ? fail_record(rec, err, rc) : 0;
}

int rv_journal_read_begin(rv_store *store, const struct rv_store_scope *scope, const char *run,
                          const struct rv_pipeline *pipeline, struct rv_journal_begin *out, rv_err **err)
{
    struct begin_reader b = {.pipeline = pipeline, .begin = {.mode = RV_UNSET}};

    int rc = rv_store_read(store, scope, &(struct rv_record_range){run, 1, 1}, read_begin, &b, err);
    if (rc == 0 && !b.found)
        rc = RV_FAIL(err, RV_E_INVALID, "the journal of run \"%s\" is empty", run);
    if (rc == 0)
        *out = b.begin;
    else
        rv_journal_begin_fini(&b.begin); /* it may have been read all the same */
    return rc;
}
