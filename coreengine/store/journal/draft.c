/* A run that is not in the store yet: its row and its BEGIN record, with their own memory, so that another thread can
 * write them later. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

void rv_draft_free(struct draft *d)
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
    rv_record_put_begin(&s->begin, s->pipeline, s->now_us, &d->body);
    rv_envelope_write_lean_state(s->env, &d->state);
    int rc = rv_buf_check(&d->body, "the begin of a journal", err);
    if (rc == 0)
        rc = rv_buf_check(&d->state, "the state that a run begins from", err);
    d->begin = (struct rv_record){
        .seq = 1, .kind = RV_RECORD_BEGIN, .body = rv_buf_str(&d->body), .value = rv_buf_str(&d->state)};
    return rc < 0 ? rc : own_texts(d, err);
}

int rv_draft_new(const struct rv_journal_start *s, const char *owner, int64_t lease_until_us, struct draft **out,
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
        .status = RV_RUN_READY,
        .stage = rv_journal_stage_of(s->env, stage),
        .owner = owner,
        .now_us = s->now_us,
        .lease_until_us = owner ? lease_until_us : 0,
        .records = &d->begin,
        .n_records = 1,
    };
    int rc = fill(d, s, err);
    if (rc < 0)
        rv_draft_free(d);
    else
        *out = d;
    return rc;
}
