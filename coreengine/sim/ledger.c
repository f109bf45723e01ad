/* What was journaled, as the process that wrote it saw it: a hash of each step's event, effects and state. Every replay
 * is held against it. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash64(uint64_t h, rv_str bytes)
{
    size_t i = 0;
    uint64_t word;

    for (; i + sizeof word <= bytes.len; i += sizeof word) {
        memcpy(&word, bytes.ptr + i, sizeof word);
        h = (h ^ word) * RV_GOLDEN;
        h ^= h >> 29;
    }
    h = rv_fnv_add(h, (rv_str){bytes.ptr + i, bytes.len - i});
    return h ^ (h >> 32);
}

/* The event and effects of a step as text. */
static int write_acts(rv_buf *b, const struct rv_event *ev, const struct rv_effects *fx, rv_err **err)
{
    struct rv_event shown = *ev;
    char hash[RV_HASH_MAX];

    if (!rv_utf8_valid(ev->reply, NULL)) { /* JSON cannot express the reply: its hash stands for it */
        rv_hash_format(ev->reply, hash);
        shown.reply = rv_str_of(hash);
    }
    rv_buf_clear(b);
    rv_jw w = rv_jw_on(b);
    rv_event_write_json(&shown, &w);
    for (size_t i = 0; i < fx->n; i++) {
        rv_buf_putc(b, '\n');
        w = rv_jw_on(b);
        rv_effect_write_json(fx, &fx->items[i], &w);
    }
    rv_buf_putc(b, '\n');
    return rv_buf_check(b, "a step", err);
}

static int hash_state(rv_buf *b, const rv_run *run, uint64_t *out, rv_err **err)
{
    rv_buf_clear(b);
    rv_envelope_write_state(rv_run_envelope(run), b);
    *out = hash64(1, rv_buf_str(b));
    return rv_buf_check(b, "a state", err);
}

int sim_ledger_add(struct sim_seed *s, const struct rv_event *ev, int64_t seq, rv_err **err)
{
    struct sim_ledger *l = &s->ledger;

    if (!rv_has_room(&l->entries, &l->cap, l->n + 1, sizeof *l->entries))
        return RV_FAIL(err, RV_E_NOMEM, "note a step");
    struct sim_entry *e = &l->entries[l->n];
    int rc = write_acts(&l->text, ev, &s->fx, err);
    if (rc < 0)
        return rc;
    e->seq = seq;
    e->acts = hash64(1, rv_buf_str(&l->text));
    rv_hash_add(&l->hash, rv_buf_str(&l->text));
    rc = hash_state(&l->text, s->run, &e->state, err);
    if (rc == 0)
        l->n++;
    return rc;
}

int sim_ledger_compare(void *self, const struct rv_record *record, const struct rv_event *ev,
                       const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct sim_seed *s = self;
    struct sim_ledger *l = &s->ledger;
    uint64_t state = 0;

    if (!ev || s->is_broken)
        return 0;
    long long step = (long long)l->at + 1, seq = (long long)record->seq;
    if (l->at == l->n) {
        sim_break(s, RV_SIM_KEEPS_REPLAY, "record %lld gives a step %lld that no process has made", seq, step);
        return 0;
    }
    const struct sim_entry *e = &l->entries[l->at++];
    int rc = write_acts(&l->text, ev, effects, err);
    if (rc < 0)
        return rc;
    if (hash64(1, rv_buf_str(&l->text)) != e->acts) {
        sim_say(s, "replayed: %.*s", RV_STR_ARG(rv_buf_str(&l->text)));
        sim_break(s, RV_SIM_KEEPS_REPLAY, "record %lld, step %lld: the event or its effects are not what they were",
                  seq, step);
        return 0;
    }
    rc = hash_state(&l->text, run, &state, err);
    if (rc == 0 && state != e->state)
        sim_break(s, RV_SIM_KEEPS_REPLAY, "record %lld, step %lld: the state is not what it was", seq, step);
    return rc;
}

/* Steps whose event is among the first `upto` records. */
static size_t steps_until(const struct sim_ledger *l, int64_t upto)
{
    size_t n = 0;

    while (n < l->n && l->entries[n].seq <= upto)
        n++;
    return n;
}

static int replay(struct sim_seed *s, int64_t upto, rv_err **err)
{
    const struct rv_store_scope scope = {0};
    struct rv_replay_opts opts = {.pipeline = s->subject->pipeline,
                                  .catalog = s->subject->catalog,
                                  .upto = upto,
                                  .on_step = sim_ledger_compare,
                                  .self = s};
    struct rv_replayed r = {0};

    s->ledger.at = 0;
    int rc = rv_journal_replay(s->store, &scope, s->run_id, &opts, &r, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_REPLAY, rc, "the journal cannot be replayed", err);
    size_t want = upto ? steps_until(&s->ledger, upto) : s->ledger.n;
    if (s->ledger.at != want)
        sim_break(s, RV_SIM_KEEPS_REPLAY, "of %zu journaled steps the replay%s has %zu", want, upto ? " in part" : "",
                  s->ledger.at);
    rv_replayed_fini(&r);
    return 0;
}

int sim_ledger_verify(struct sim_seed *s, rv_err **err)
{
    struct rv_store_scope scope = {0};
    struct rv_run_row row = {0};
    int rc = replay(s, 0, err);

    if (rc < 0 || s->is_broken)
        return rc;
    rc = rv_store_get_run(s->store, &scope, s->run_id, &row, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_REPLAY, rc, "the run is not in the store", err);
    int64_t n = row.n_records;
    enum rv_run_status want = s->run ? rv_run_status(s->run) : row.status;
    if (row.status != want)
        sim_break(s, RV_SIM_KEEPS_REPLAY, "the store says the run is %s, and it is %s", rv_run_status_text(row.status),
                  rv_run_status_text(want));
    rv_run_row_fini(&row);
    if (n < 2 || s->is_broken)
        return 0;
    return replay(s, 1 + (int64_t)(s->seed * RV_GOLDEN % (uint64_t)n), err);
}
