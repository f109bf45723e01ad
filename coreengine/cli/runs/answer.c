/* Which question of a run an answer means, and whether it fits: said in words of the command line before anything
 * starts.
 */
#include "coreengine/cli/runs/runs.h"

#include <stdio.h>
#include <string.h>

#define MAX_QUESTIONS 256
#define ASK_BYTES     300 /* of a question, in a message */
#define STORE_BYTES   16384

bool rv_cli_answer_fits(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r, rv_buf *out)
{
    static const char *const fitting[] = {[RV_INTERRUPT_CLARIFICATION] = "--text",
                                          [RV_INTERRUPT_CONFIRMATION] = "--approve or --deny",
                                          [RV_INTERRUPT_AGENT_REVIEW] = "--decision approve, reject or modify"};
    const char *const given[] = {r->text.ptr ? "--text" : NULL,
                                 r->has_approved ? r->approved ? "--approve" : "--deny" : NULL,
                                 r->decision.ptr ? "--decision" : NULL, r->data ? "--data" : NULL};
    const char *sep = ", not ";

    if ((kind != RV_INTERRUPT_CLARIFICATION || r->text.ptr) && (kind != RV_INTERRUPT_CONFIRMATION || r->has_approved) &&
        (kind != RV_INTERRUPT_AGENT_REVIEW || r->decision.ptr))
        return true;
    rv_buf_printf(out, "a %s takes %s", rv_interrupt_kind_text(kind),
                  rv_interrupt_asks_outcome(kind, data) ? "--decision happened, not_happened or fail" : fitting[kind]);
    for (size_t i = 0; i < RV_COUNT(given); i++)
        if (given[i]) {
            rv_buf_printf(out, "%s%s", sep, given[i]);
            sep = " and ";
        }
    return false;
}

struct questions {
    const struct rv_cli_args *args;
    const struct rv_response *response;
    rv_str wanted; /* id; ptr NULL: the only one */
    size_t n;
    bool found;
    char id[RV_STORE_MAX_ID + 1];
    enum rv_interrupt_kind kind;
    json_object *data; /* of the one found; owned; NULL: none */
    int64_t expires_us;
    rv_buf ask, how; /* of the one found; the commands that answer them all */
};

static int on_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};
    struct questions *q = self;

    (void)err;
    if (q->n++ >= MAX_QUESTIONS)
        return 0;
    rv_cli_write_resume(q->args, p, false, &q->how);
    if (q->wanted.ptr ? !rv_str_is(q->wanted, p->id) : q->n > 1)
        return 0;
    q->found = true;
    snprintf(q->id, sizeof q->id, "%s", p->id);
    q->kind = RV_INTERRUPT_SYSTEM_ERROR;
    RV_IGNORE(rv_interrupt_kind_of(rv_str_of(p->kind), &q->kind, NULL), "an unknown kind asks for nothing");
    q->expires_us = p->expires_us;
    json_object *body = NULL;
    if (rv_json_parse(p->body, &opts, &body, NULL) == 0) {
        json_object_put(q->data);
        q->data = json_object_get(rv_json_get_obj(body, "data"));
    }
    json_object_put(body);
    rv_buf_clear(&q->ask);
    rv_cli_write_preview(p->text, ASK_BYTES, &q->ask);
    return 0;
}

/* Was that question answered before? The journal has every answer with the id it was given for. */
static int on_record(void *self, const struct rv_record *r, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = RV_STATE_MAX_DEPTH};
    struct questions *q = self;
    json_object *answer = NULL;
    const char *id = NULL;

    (void)err;
    if (r->kind != RV_RECORD_EVENT || !r->value.ptr || !memmem(r->body.ptr, r->body.len, "\"answer\"", 8))
        return 0;
    if (rv_json_parse(r->value, &opts, &answer, NULL) == 0 && rv_json_get_text(answer, "interrupt_id", &id) &&
        rv_str_is(q->wanted, id))
        q->found = true;
    json_object_put(answer);
    return 0;
}

static int not_there(rv_store *store, const struct rv_run_row *row, struct questions *q, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(q->args);
    int rc;

    if (q->wanted.ptr && rv_store_read(store, &scope, row->id, 1, 0, on_record, q, NULL) == 0 && q->found) {
        rc = RV_FAIL(err, RV_E_STATE, "question \"%.*s\" of run \"%s\" is already answered", RV_STR_ARG(q->wanted),
                     row->id);
    } else if (q->n > 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has no question \"%.*s\"", row->id,
                     RV_STR_ARG(rv_utf8_cut(q->wanted, 64)));
    } else {
        rc = RV_FAIL(err, RV_E_STATE, "run \"%s\" does not wait for an answer: its status is %s", row->id,
                     rv_run_status_text(row->status));
        if (row->status == RV_RUN_RUNNING)
            rv_err_hint(err, "another answer may be in progress: try again when it is done");
    }
    if (q->how.len > 0)
        rv_err_hint(err, "it waits for:\n%.*s", RV_STR_ARG(rv_str_trim(rv_buf_str(&q->how))));
    return rc;
}

static int check(const struct questions *q, const struct rv_run_row *row, rv_err **err)
{
    const struct rv_response *r = q->response;
    int rc;

    if (q->expires_us && q->expires_us <= rv_app_now_us()) {
        rv_buf store = RV_BUF_INIT(STORE_BYTES);
        rv_cli_write_store(q->args, &store);
        rc = RV_FAIL(err, RV_E_TIMEOUT, "the answer comes too late: the %s of run \"%s\" has expired",
                     rv_interrupt_kind_text(q->kind), row->id);
        rv_err_hint(
            err,
            "`reeve runs fork %s --at STEP --go%s` starts again from an earlier step, `reeve runs cancel %s%s` ends "
            "it",
            row->id, rv_buf_cstr(&store), row->id, rv_buf_cstr(&store));
        rv_buf_fini(&store);
        return rc;
    }
    rv_buf misfit = RV_BUF_INIT(1024);
    rc = 0;
    if (!rv_cli_answer_fits(q->kind, q->data, r, &misfit)) {
        rc = RV_FAIL(err, RV_E_INVALID, "%s; the run waits for %s: %s", rv_buf_cstr(&misfit),
                     rv_interrupt_kind_text(q->kind), rv_buf_cstr(&q->ask));
        rv_err_hint(err, "answer with: %.*s", RV_STR_ARG(rv_str_trim(rv_buf_str(&q->how))));
    }
    rv_buf_fini(&misfit);
    return rc;
}

int rv_cli_check_answer(rv_store *store, const struct rv_run_row *row, const struct rv_cli_args *args,
                        struct rv_response *response, char id[RV_STORE_MAX_ID + 1], rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct questions q = {.args = args,
                          .response = response,
                          .wanted = response->interrupt_id,
                          .ask = RV_BUF_INIT(4 * ASK_BYTES),
                          .how = RV_BUF_INIT(1 << 20)};
    int rc = rv_store_list_pending(store, &scope, row->id, on_pending, &q, err);
    if (rc == 0 && !q.found)
        rc = not_there(store, row, &q, err);
    if (rc == 0 && !q.wanted.ptr && q.n > 1) {
        rc = RV_FAIL(err, RV_E_INVALID, "run \"%s\" waits for %zu answers", row->id, q.n);
        rv_err_hint(err, "name one with --interrupt:\n%.*s", RV_STR_ARG(rv_str_trim(rv_buf_str(&q.how))));
    }
    if (rc == 0)
        rc = check(&q, row, err);
    if (rc == 0) {
        memcpy(id, q.id, sizeof q.id);
        response->interrupt_id = rv_str_of(id);
    }
    json_object_put(q.data);
    rv_buf_fini(&q.ask);
    rv_buf_fini(&q.how);
    return rc;
}
