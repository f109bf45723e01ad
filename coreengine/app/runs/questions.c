/* Which question of a run an answer means, and whether it fits it. */
#include "coreengine/agent/agent.h"
#include "coreengine/app/past.h"
#include "coreengine/app/work.h"

#include <stdio.h>
#include <string.h>

#define MAX_ASK ((size_t)1 << 20) /* bytes of one question: RV_STORE_MAX_QUESTION */

bool rv_app_answers(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r)
{
    if (rv_interrupt_is_ask(data) || rv_interrupt_asks_client(kind, data))
        return rv_answer_check(kind, data, r,
                               RV_CODE_ONLY("the answer is yes or no; rv_app_check_answer() says why not")) == 0;
    return (kind != RV_INTERRUPT_CLARIFICATION || r->text.ptr) &&
           (kind != RV_INTERRUPT_CONFIRMATION || r->has_approved) &&
           (kind != RV_INTERRUPT_AGENT_REVIEW || r->decision.ptr);
}

int rv_app_check_answer(const struct rv_app_question *q, const struct rv_response *r, rv_err **err)
{
    if (q->is_given_up)
        return rv_app_fail_cancelled(err);
    int rc = r->cancelled ? rv_answer_check_cancel(r, err) : rv_answer_check(q->kind, q->data, r, err);

    return rc < 0 || r->cancelled || !rv_interrupt_asks_input(q->kind, q->data) ? rc : rv_input_check(q->data, r, err);
}

int rv_app_check_arguments(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                           const struct rv_app_question *q, const struct rv_response *r, rv_err **err)
{
    struct rv_app_past past;
    const char *tool = NULL;

    if (!r->arguments || !q->data || !rv_json_get_text(q->data, "tool", &tool))
        return 0; /* a question about no call: the run says so */
    int rc = rv_app_past_open(store, scope, row->id, &past, err);
    if (rc < 0)
        return rc;
    const struct rv_tool_info *info = past.catalog.tool(past.catalog.self, rv_str_of(tool));
    rc = info && info->input ? rv_schema_check(info->input, r->arguments, err) : 0;
    rv_app_past_fini(&past);
    return rc < 0 ? RV_WRAP(err, rc, "the changed arguments do not fit tool \"%.200s\"", tool) : 0;
}

int rv_app_is_due(const struct rv_pending *p, int64_t now_us, bool *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *body = NULL;

    *out = false;
    if (!p->expires_us || p->expires_us > now_us)
        return 0;
    int rc = rv_json_try_parse(p->body, &opts, &body, err);
    *out = rc == 0 && rv_interrupt_is_ask(rv_json_get_obj(body, "data")); /* a damaged one has no time-out */
    json_object_put(body);
    return rc;
}

struct search {
    rv_str wanted; /* id; ptr NULL: the only one */
    struct rv_app_question *out;
    bool found, is_open;
};

static int take_question(void *self, const struct rv_pending *p, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};
    struct search *s = self;
    struct rv_app_question *q = s->out;
    json_object *body = NULL;

    q->n++;
    if (s->wanted.ptr ? !rv_str_is(s->wanted, p->id) : q->n > 1)
        return 0;
    s->found = true;
    snprintf(q->id, sizeof q->id, "%s", p->id);
    q->kind = RV_INTERRUPT_SYSTEM_ERROR;
    RV_IGNORE(rv_interrupt_kind_of(rv_str_of(p->kind), &q->kind, NULL), "an unknown kind asks for nothing");
    q->expires_us = p->expires_us;
    int rc = rv_json_try_parse(p->body, &opts, &body, err);
    q->is_damaged = !json_object_is_type(body, json_type_object); /* without its data it is another one */
    json_object_put(q->data);
    q->data = json_object_get(rv_json_get_obj(body, "data"));
    json_object_put(body);
    rv_buf_clear(&q->text);
    rv_buf_add_str(&q->text, p->text);
    return rc == 0 && q->text.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "read a question of a run") : rc;
}

/* Was that question answered before? The journal has every answer with the id it was given for. */
static int look_for_answer(void *self, const struct rv_record *r, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = RV_STATE_MAX_DEPTH};
    struct search *s = self;
    json_object *answer = NULL;
    const char *id = NULL;

    if (r->kind != RV_RECORD_EVENT || !r->value.ptr || !memmem(r->body.ptr, r->body.len, "\"answer\"", 8))
        return 0;
    int rc = rv_json_try_parse(r->value, &opts, &answer, err);
    if (answer && rv_json_get_text(answer, "interrupt_id", &id) && rv_str_is(s->wanted, id))
        s->found = true;
    json_object_put(answer); /* a damaged one is none */
    return rc;
}

/* A journal that another engine wrote, or that is damaged or gone, says nothing. */
static bool says_nothing(const rv_err *why)
{
    return rv_app_is_difference(why) || rv_err_code(why) == RV_E_VERSION || rv_err_code(why) == RV_E_NOT_FOUND;
}

/* Was its branch cancelled, or has its run ended since? That follows from the journal. */
static int find_withdrawn(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row, rv_str id,
                          bool *was, rv_err **err)
{
    struct rv_app_past past;
    struct rv_replayed r;
    rv_err *why = NULL;

    *was = false;
    if (!id.ptr)
        return 0;
    int rc = rv_app_past_open(store, scope, row->id, &past, &why);
    bool is_open = rc == 0;
    if (is_open)
        rc = rv_app_past_replay(store, &past, NULL, &r, &why);
    if (rc == 0) {
        *was = rv_envelope_was_withdrawn(rv_run_envelope(r.run), id);
        rv_replayed_fini(&r);
    }
    if (is_open)
        rv_app_past_fini(&past);
    if (rc == 0 || !says_nothing(why))
        return rv_err_pass(err, why);
    rv_err_free(why);
    return 0;
}

static int is_open(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    struct search *s = self;

    (void)err;
    s->is_open = s->is_open || rv_str_is(s->wanted, row->id);
    return 0;
}

/* What it waited with, each time that it did. */
static int look_at_pause(void *self, const struct rv_record *record, const struct rv_event *ev,
                         const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct rv_pendings pendings = {0};

    (void)record;
    (void)ev;
    if (effects->n == 0 || effects->items[effects->n - 1].kind != RV_EFFECT_FINISH ||
        rv_run_status(run) != RV_RUN_INTERRUPTED)
        return 0;
    int rc = rv_pendings_build(rv_run_envelope(run), rv_run_question_stage(run), &pendings, err);
    for (size_t i = 0; rc == 0 && i < pendings.n; i++)
        rc = take_question(self, &pendings.items[i], err);
    rv_pendings_fini(&pendings);
    return rc;
}

/* While a run takes one of several answers it waits with none of them, and still has the other questions: its journal
 * says what they are. */
static int look_into_journal(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                             struct search *s, rv_err **err)
{
    const struct rv_interrupt_filter filter = {.run = row->id, .open_only = true};
    const struct rv_app_replay_opts opts = {.on_step = look_at_pause, .self = s};
    struct rv_app_past past;
    struct rv_replayed r;

    int rc = rv_store_list_interrupts(store, scope, &filter, is_open, s, err);
    if (rc < 0 || !s->is_open)
        return rc;
    rc = rv_app_past_open(store, scope, row->id, &past, err);
    if (rc < 0)
        return rc;
    rc = rv_app_past_replay(store, &past, &opts, &r, err);
    if (rc == 0)
        rv_replayed_fini(&r);
    rv_app_past_fini(&past);
    return rc;
}

static int fail_unknown(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                        struct search *s, rv_err **err)
{
    const struct rv_record_range range = {.run = row->id, .from = 1};
    bool was_withdrawn = false;

    int rc = s->wanted.ptr ? rv_store_read(store, scope, &range, look_for_answer, s, err) : 0;
    if (rc < 0)
        return rc;
    if (s->found)
        return RV_FAIL(err, RV_E_STATE, "question \"%.*s\" of run \"%s\" is already answered", RV_STR_ARG(s->wanted),
                       row->id);
    rc = find_withdrawn(store, scope, row, s->wanted, &was_withdrawn, err);
    if (rc < 0)
        return rc;
    if (was_withdrawn)
        return RV_FAIL(err, RV_E_STATE,
                       "question \"%.*s\" of run \"%s\" was withdrawn: its branch was cancelled, or the run ended",
                       RV_STR_ARG(s->wanted), row->id);
    if (s->out->n > 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has no question \"%.*s\"", row->id,
                       RV_STR_ARG(rv_utf8_cut(s->wanted, 64)));
    rc = RV_FAIL(err, RV_E_STATE, "run \"%s\" does not wait for an answer: its status is %s", row->id,
                 rv_run_status_text(row->status));
    if (row->status == RV_RUN_RUNNING)
        rv_err_set_hint(err, "another answer may be in progress: try again when it is done");
    return rc;
}

static int fail_damaged(const struct rv_run_row *row, const struct rv_app_question *q, rv_err **err)
{
    RV_FAIL(err, RV_E_IO, "question \"%s\" of run \"%s\" is damaged in the store: what it asks for cannot be read",
            q->id, row->id);
    rv_err_set_hint(err, "`reeve store check` lists what else is; the run can be cancelled");
    return RV_E_IO;
}

int rv_app_find_question(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                         rv_str wanted, struct rv_app_question *out, rv_err **err)
{
    struct search s = {.wanted = wanted, .out = out};

    *out = (struct rv_app_question){.text = RV_BUF_INIT(MAX_ASK), .is_given_up = row->cancel_requested};
    int rc = rv_store_list_pending(store, scope, row->id, take_question, &s, err);
    if (rc == 0 && !s.found && wanted.ptr && row->status == RV_RUN_RUNNING)
        rc = look_into_journal(store, scope, row, &s, err);
    if (rc == 0 && !s.found)
        rc = fail_unknown(store, scope, row, &s, err);
    else if (rc == 0 && !wanted.ptr && out->n > 1)
        rc = RV_FAIL(err, RV_E_INVALID, "run \"%s\" waits for %zu answers", row->id, out->n);
    else if (rc == 0 && out->is_damaged)
        rc = fail_damaged(row, out, err);
    else if (rc == 0 && out->expires_us && out->expires_us <= rv_app_now_us())
        rc = RV_FAIL(err, RV_E_TIMEOUT, "the answer comes too late: the %s of run \"%s\" has expired",
                     rv_interrupt_kind_text(out->kind), row->id);
    return rc;
}

void rv_app_question_fini(struct rv_app_question *q)
{
    json_object_put(q->data);
    rv_buf_fini(&q->text);
}
