/* A pipeline as a model: a run that is told in a protocol of chats, from its events. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"
#include "coreengine/server/turns_internal.h"

struct srv_told {
    struct rv_protocol_opts opts;
    char *model; /* owned */
    char run[RV_STORE_MAX_ID + 1];
    rv_protocol *encoder; /* owned */
    bool is_quota;        /* one ran out; known with the end */
};

void srv_told_free(struct srv_told *t)
{
    if (!t)
        return;
    rv_protocol_free(t->encoder);
    free(t->model);
    free(t);
}

int srv_told_new(const struct rv_protocol_opts *opts, const char *run, const char *model, struct srv_told **out,
                 rv_err **err)
{
    struct srv_told *t = calloc(1, sizeof *t);

    if (!t || !(t->model = rv_str_dup(rv_str_of(model)))) {
        free(t);
        return RV_FAIL(err, RV_E_NOMEM, "tell a run");
    }
    memcpy(t->run, run, strlen(run) + 1);
    t->opts = *opts;
    t->opts.run_id = t->opts.session_id = t->run;
    t->opts.model = t->model;
    t->opts.created_us = srv_now_us();
    t->opts.child_text = RV_UNSET;
    *out = t;
    return 0;
}

int srv_told_event(struct srv_told *t, rv_str line, rv_buf *out, rv_err **err)
{
    const struct rv_protocol_at at = {.now_us = srv_now_us()};
    int rc = 0;

    if (!t->encoder) {
        rc = rv_protocol_new(&t->opts, &t->encoder, err);
        if (rc == 0)
            rc = rv_protocol_begin(t->encoder, &at, out, err);
    }
    return rc == 0 ? rv_protocol_on_event(t->encoder, &at, line, out, err) : rc;
}

int srv_told_end(struct srv_told *t, enum rv_run_status status, const struct rv_pipeline *p, const rv_envelope *env,
                 rv_buf *out, rv_err **err)
{
    const struct rv_response_place place = {p->response.output_key, p->response.field};
    const struct rv_protocol_at at = {.now_us = srv_now_us()};
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    struct rv_protocol_end end = {.status = status, .finish = RV_UNSET, .usage = rv_envelope_used(env).usage};
    char reason[SRV_MAX_REASON];

    if (status == RV_RUN_FAILED || status == RV_RUN_TERMINATED) {
        enum rv_failure failure =
            f->terminal_reason == RV_REASON_QUOTA ? RV_FAILURE_QUOTA_EXCEEDED : rv_envelope_failure(env, NULL);
        t->is_quota = failure == RV_FAILURE_QUOTA_EXCEEDED;
        end.code = rv_failure_text(failure);
        end.error = srv_reason_of_run(f->termination_reason, end.code, t->run, reason);
    }
    if (status == RV_RUN_COMPLETED)
        RV_IGNORE(!rv_envelope_find_final_response(env, &place, &end.text), "a run may have no response");
    int rc = t->encoder ? 0 : srv_told_event(t, RV_STR_LIT("{\"type\":\"none\"}"), out, err);
    return rc == 0 ? rv_protocol_end(t->encoder, &at, &end, out, err) : rc;
}

bool srv_told_break(struct srv_told *t, int code, rv_buf *out)
{
    return t->encoder && !t->opts.is_whole && srv_tell_break(t->encoder, t->run, code, out);
}

int srv_told_http(const struct srv_told *t, enum rv_run_status status)
{
    return status == RV_RUN_COMPLETED || status == RV_RUN_INTERRUPTED ? 200 : t->is_quota ? 429 : 502;
}

bool srv_told_is_whole(const struct srv_told *t)
{
    return t->opts.is_whole;
}
