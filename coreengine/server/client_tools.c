/* Tools that clients call themselves: the results that a request brings become the answer to the question of the run
 * that waits for them. The question is read from the store, so any process takes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"

#define MAX_LOOKED 200 /* questions that are looked at, the newest ones: a client answers what it was just asked */

struct open_one {
    char run[RV_STORE_MAX_ID + 1], id[RV_STORE_MAX_ID + 1];
};
struct search {
    struct srv_call *c;
    struct srv_turn_ask *a;
    struct rv_store_scope scope;
    struct open_one *open; /* of MAX_LOOKED, in a ring; owned */
    size_t n;              /* that were found; the newest is behind the others */
    const struct open_one *found;
    json_object *asked; /* the data of its question; owned */
};

static int take_open(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    struct search *s = self;
    struct open_one *o = &s->open[s->n++ % MAX_LOOKED];

    (void)err;
    snprintf(o->run, sizeof o->run, "%s", row->run);
    snprintf(o->id, sizeof o->id, "%s", row->id);
    return 0;
}

static bool is_asked(json_object *data, const char *id)
{
    json_object *calls = rv_json_get_arr(data, RV_CLIENT_CALLS);
    const char *other = NULL;

    for (size_t i = 0; calls && id && i < json_object_array_length(calls); i++)
        if (rv_json_get_text(json_object_array_get_idx(calls, i), "id", &other) && strcmp(other, id) == 0)
            return true;
    return false;
}

static bool is_answered(json_object *data, const struct rv_request *req)
{
    for (size_t i = 0; i < req->n_results; i++)
        if (is_asked(data, req->results[i].call_id))
            return true;
    return false;
}

/* The last message of the user before the results; NULL: there is none. */
static const char *last_message(const struct rv_request *req)
{
    const char *role = NULL, *content = NULL;

    for (size_t i = req->history ? json_object_array_length(req->history) : 0; i-- > 0;) {
        json_object *row = json_object_array_get_idx(req->history, i);
        if (rv_json_get_text(row, "role", &role) && strcmp(role, "user") == 0)
            return rv_json_get_text(row, "content", &content) ? content : NULL;
    }
    return NULL;
}

/* A client that names no session is known by its calls and by what it had said: ids of calls alone are not unique. */
static int is_same_talk(const struct search *s, const char *run, bool *out, rv_err **err)
{
    const char *said = last_message(&s->a->req);
    struct rv_app_past past = {0};
    struct rv_replayed r = {0};

    *out = false;
    if (!said)
        return 0;
    int rc = rv_app_past_open(s->c->store, &s->scope, run, &past, err);
    if (rc < 0)
        return rc;
    rc = rv_app_past_replay(s->c->store, &past, NULL, &r, err);
    if (rc == 0) {
        *out = strcmp(rv_envelope_fields(rv_run_envelope(r.run))->raw_input, said) == 0;
        rv_replayed_fini(&r);
    }
    rv_app_past_fini(&past);
    return rc;
}

/* Does this question wait for the results? Its run may have gone on meanwhile: then it does not. */
static int look_at(struct search *s, const struct open_one *o, bool has_session, rv_err **err)
{
    struct rv_app_question q = {.n = 0};
    struct rv_run_row row;
    rv_err *cause = NULL;
    bool fits = false;

    int rc = rv_store_get_run(s->c->store, &s->scope, o->run, &row, &cause);
    if (rc == 0) {
        rc = rv_app_find_question(s->c->store, &s->scope, &row, rv_str_of(o->id), &q, &cause);
        if (rc == 0)
            fits = rv_interrupt_asks_client(q.kind, q.data) && is_answered(q.data, &s->a->req);
        if (fits && !has_session)
            rc = is_same_talk(s, o->run, &fits, &cause);
        if (rc == 0 && fits && !has_session && row.session) {
            free(s->a->session);
            s->a->session = rv_str_dup(rv_str_of(row.session));
            rc = s->a->session ? 0 : RV_FAIL(&cause, RV_E_NOMEM, "take the results of a client");
        }
        if (rc == 0 && fits) {
            s->found = o;
            s->asked = json_object_get(q.data);
        }
        if (rc < 0 && q.is_damaged) { /* it does not hold up the others */
            RV_LOG(s->c->server->app.log, ERROR, "store.damaged", RV_F_TEXT("kind", "question"), RV_F_TEXT("id", o->id),
                   RV_F_ERR("error", cause));
            rc = RV_E_NOT_FOUND;
        }
        rv_app_question_fini(&q);
        rv_run_row_fini(&row);
    }
    if (rc == RV_E_NOT_FOUND || rc == RV_E_STATE || rc == RV_E_TIMEOUT) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    return rc;
}

static int add_result(json_object *results, const struct rv_request_result *r, rv_err **err)
{
    json_object *result = json_object_new_object();
    int rc = rv_json_set_take(results, r->call_id, result, err);

    if (rc < 0)
        return rc;
    return r->error ? rv_json_set_text(result, "error", r->error, err)
                    : rv_json_set_str(result, "content", r->content, err);
}

/* The request has an answer from now on, as one that came in words of interrupts. What it borrows from is kept beside
 * what was made of the request before. */
static int make_answer(struct search *s, rv_err **err)
{
    struct srv_turn_ask *a = s->a;
    json_object *kept = json_object_new_array(), *data = json_object_new_object();
    json_object *results = json_object_new_object(), *id = json_object_new_string(s->found->id);
    int rc = kept && data && results && id ? 0 : RV_FAIL(err, RV_E_NOMEM, "take the results of a client");

    if (rc == 0)
        rc = rv_json_set_ref(data, RV_CLIENT_RESULTS, results, err);
    for (size_t i = 0; i < a->req.n_results && rc == 0; i++)
        if (is_asked(s->asked, a->req.results[i].call_id))
            rc = add_result(results, &a->req.results[i], err);
    if (rc == 0)
        rc = rv_json_push_ref(kept, data, err);
    if (rc == 0)
        rc = rv_json_push_ref(kept, id, err);
    if (rc == 0 && a->made)
        rc = rv_json_push_ref(kept, a->made, err);
    struct rv_request_answer *answers = rc == 0 ? calloc(1, sizeof *answers) : NULL;
    if (rc == 0 && !answers)
        rc = RV_FAIL(err, RV_E_NOMEM, "take the results of a client");
    if (rc == 0) {
        answers[0] = (struct rv_request_answer){.interrupt_id = json_object_get_string(id), .response = {.data = data}};
        if (a->req.has_message)
            answers[0].response.text = rv_buf_str(&a->req.text);
        free(a->req.answers);
        a->req.answers = answers;
        a->req.n_answers = 1;
        json_object_put(a->made);
        a->made = json_object_get(kept);
    }
    json_object_put(kept);
    json_object_put(data);
    json_object_put(results);
    json_object_put(id);
    return rc;
}

static int nobody_waits(enum rv_protocol_kind kind, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_STATE, "no tool of the client waits for these results");

    if (kind == RV_PROTOCOL_AGUI || kind == RV_PROTOCOL_AGUI_OLD) /* its sessions are in the path */
        rv_err_set_hint(err, "POST /chat/ID with the id of the session, and name the calls as they were told");
    else
        rv_err_set_hint(err, "name the session with X-Session-Id, and the calls as they were told");
    return rc;
}

int srv_client_results(struct srv_call *c, struct srv_turn_ask *a, bool has_session, rv_err **err)
{
    const struct rv_interrupt_filter filter = {.session = has_session ? a->session : NULL,
                                               .kind = rv_interrupt_kind_text(RV_INTERRUPT_AGENT_REVIEW),
                                               .open_only = true};
    struct search s = {.c = c, .a = a, .scope = c->app.scope, .open = calloc(MAX_LOOKED, sizeof *s.open)};

    if (!s.open)
        return RV_FAIL(err, RV_E_NOMEM, "take the results of a client");
    if (!has_session && c->who.user[0])
        s.scope.user = c->who.user;
    int rc = rv_store_list_interrupts(c->store, &s.scope, &filter, take_open, &s, err);
    for (size_t i = 0; i < s.n && i < MAX_LOOKED && rc == 0 && !s.found; i++)
        rc = look_at(&s, &s.open[(s.n - 1 - i) % MAX_LOOKED], has_session, err);
    if (rc == 0 && s.found)
        rc = make_answer(&s, err);
    else if (rc == 0 && !a->req.has_message)
        rc = nobody_waits(a->opts.kind, err);
    json_object_put(s.asked);
    free(s.open);
    return rc;
}
