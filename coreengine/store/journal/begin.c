/* What a run begins with: its row and its BEGIN record, with their own memory, so that another thread can write them
 * later; and the history that it is given, by reference: which messages of which session, read by which rules. Messages
 * do not change once they are kept, so a replay reads the same ones; the hash tells if it does not. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"
#include "coreengine/store/store.h"

#define MAX_TEXT ((size_t)64 << 20) /* bytes of the input that a run's first record has: RV_STATE_MAX_BYTES */

void journal_draft_free(struct draft *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < RV_COUNT(d->texts); i++)
        free(d->texts[i]);
    rv_buf_fini(&d->body);
    rv_buf_fini(&d->state);
    free(d);
}

static int own_texts(struct draft *d, rv_err **err)
{
    struct rv_store_new_run *r = &d->run;
    const char **slots[] = {&r->id,     &r->tenant, &r->user,  &r->session, &r->pipeline,
                            &r->bundle, &r->parent, &r->stage, &r->owner};

    _Static_assert(RV_COUNT(slots) == RV_COUNT(d->texts), "a copy of each");
    for (size_t i = 0; i < RV_COUNT(slots); i++) {
        if (!*slots[i])
            continue;
        d->texts[i] = rv_str_dup(rv_str_of(*slots[i]));
        if (!d->texts[i])
            return RV_FAIL(err, RV_E_NOMEM, "begin a journal");
        *slots[i] = d->texts[i];
    }
    return 0;
}

static int fill(struct draft *d, const struct rv_journal_start *s, rv_err **err)
{
    journal_record_put_begin(&s->begin, s->pipeline, s->now_us, &d->body);
    rv_envelope_write_lean_state(s->env, &d->state);
    int rc = rv_buf_check(&d->body, "the beginning of a journal", err);
    if (rc == 0)
        rc = rv_buf_check(&d->state, "the state that a run begins from", err);
    d->begin = (struct rv_record){
        .seq = 1, .kind = RV_RECORD_BEGIN, .body = rv_buf_str(&d->body), .value = rv_buf_str(&d->state)};
    return rc < 0 ? rc : own_texts(d, err);
}

int journal_draft_new(const struct rv_journal_start *s, const char *owner, int64_t lease_until_us, struct draft **out,
                      rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(s->env);
    const struct rv_conversation *c = s->begin.conversation;
    const char *user = !c                   ? f->user_id
                       : c->context.user_id ? c->context.user_id
                                            : ""; /* a conversation without a user stays so */
    char stage[RV_STAGE_LABEL_MAX + 1];
    struct draft *d = calloc(1, sizeof *d);

    if (!d)
        return RV_FAIL(err, RV_E_NOMEM, "begin a journal");
    d->body = RV_BUF_INIT(RV_STORE_MAX_VALUE);
    d->state = RV_BUF_INIT(RV_STATE_MAX_BYTES); /* a larger one could not be loaded again */
    d->run = (struct rv_store_new_run){
        .id = f->envelope_id,
        .tenant = s->tenant,
        .user = user,
        .session = f->session_id,
        .pipeline = s->pipeline->name,
        .bundle = s->bundle,
        .parent = s->parent,
        .parent_seq = s->parent_seq,
        .status = owner ? RV_RUN_RUNNING : RV_RUN_READY, /* its first step then changes no index of statuses */
        .stage = journal_stage_of(s->env, stage),
        .owner = owner,
        .now_us = s->now_us,
        .lease_until_us = owner ? lease_until_us : 0,
        .records = &d->begin,
        .n_records = 1,
    };
    int rc = fill(d, s, err);
    if (rc < 0)
        journal_draft_free(d);
    else
        *out = d;
    return rc;
}

/* --- The history --- */

static int add_row(void *self, const struct rv_message *m, rv_err **err)
{
    bool full = false;
    int rc = rv_history_add(self, m, &full, err);

    return rc == 0 && full ? RV_STORE_ENOUGH : rc;
}

static int hash_of(json_object *messages, char hash[RV_HASH_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    rv_json_write(messages, &text);
    int rc = rv_buf_check(&text, "the history of a session", err);
    if (rc == 0)
        rv_hash_format(rv_buf_str(&text), hash);
    rv_buf_fini(&text);
    return rc;
}

struct history_source {
    rv_store *store; /* borrowed, as the scope is */
    const struct rv_store_scope *scope;
    int64_t told_us; /* for a run that was told it at that moment, also what its owner has deleted since; 0: now */
};

static int read_history(struct history_source of, const struct rv_conversation *c, json_object **out,
                        char hash[RV_HASH_MAX], rv_err **err)
{
    const struct rv_message_filter filter = {.upto_seq = c->upto_seq,
                                             .newest_first = true,
                                             .with_deleted = of.told_us > 0,
                                             .told_us = of.told_us,
                                             .for_agents = true};
    const char *session = c->context.session_id;
    rv_history *h = NULL;

    *out = NULL;
    hash[0] = '\0';
    if (c->upto_seq <= 0 || !session)
        return 0;
    int rc = rv_history_new(session, &c->history_opts, &h, err);
    if (rc == 0)
        rc = rv_store_read_messages(of.store, of.scope, &(const struct rv_messages_of){session, &filter}, add_row, h,
                                    err);
    if (rc == 0) {
        rv_history_set_moments(h, c->moments);
        rc = rv_history_finish(h, out, err);
    }
    if (rc == 0)
        rc = hash_of(*out, hash, err);
    rv_history_free(h);
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
        rc = RV_WRAP(err, rc, "read the history of session \"%s\"", session);
    }
    return rc;
}

/* Moments may change later: the run keeps what it is told of them. */
static int note_moments(rv_store *store, const struct rv_store_scope *scope, struct rv_conversation *c, rv_err **err)
{
    const struct rv_history_opts *o = &c->history_opts;

    if (c->moments || c->upto_seq <= 0 || !c->context.session_id || c->moment_opts.max_inject == 0 ||
        o->max_tokens == 0)
        return 0;
    return rv_store_note_moments(
        store, scope, c->context.session_id,
        &(const struct rv_moment_notes){.opts = &c->moment_opts, .covers_tokens = o->compacts ? o->max_tokens : 0},
        &c->moments, err);
}

int rv_journal_read_history(rv_store *store, const struct rv_store_scope *scope, struct rv_conversation *c,
                            json_object **out, char hash[RV_HASH_MAX], rv_err **err)
{
    int rc = note_moments(store, scope, c, err);

    *out = NULL;
    return rc < 0 ? RV_WRAP(err, rc, "read the moments of session \"%s\"", c->context.session_id)
                  : read_history((struct history_source){store, scope, 0}, c, out, hash, err);
}

int rv_journal_tell_again(rv_store *store, const struct rv_store_scope *scope, struct rv_conversation *c, rv_err **err)
{
    const char *user = c->context.user_id;
    const struct rv_store_scope owner = {.tenant = scope->tenant, .user = user ? user : ""};
    char hash[RV_HASH_MAX];
    json_object *now = NULL;

    int rc = read_history((struct history_source){store, &owner, 0}, c, &now, hash, err);
    if (rc < 0)
        return rc;
    json_object_put(c->history);
    c->history = now;
    memcpy(c->history_hash, hash, sizeof hash);
    return 0;
}

int journal_same_history(rv_store *store, const struct rv_store_scope *scope, const struct rv_conversation *c,
                         int64_t told_us, json_object **out, rv_err **err)
{
    const char *user = c->context.user_id;
    const struct rv_store_scope owner = {.tenant = scope->tenant, .user = user ? user : ""};
    char hash[RV_HASH_MAX];

    const struct history_source then = {store, &owner, told_us > 0 ? told_us : 1};
    int rc = read_history(then, c, out, hash, err);
    if (rc < 0 || strcmp(hash, c->history_hash) == 0)
        return rc;
    json_object_put(*out);
    *out = NULL;
    rc = RV_FAIL(err, RV_E_STATE, "the messages of session \"%s\" are not those that the run was given",
                 c->context.session_id);
    rv_err_set_hint(err, "the run can be looked at in the store it was made in, while its session is there");
    return rc;
}
