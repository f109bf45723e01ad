/* An exchange: who owns it when, what its handler is told, and how it ends. Its answers are in answer.c. */
#include "coreengine/http/http_internal.h"

#include <stdlib.h>

/* --- life --- */

static bool is_id(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!rv_is_letter(s.ptr[i]) && !rv_is_digit(s.ptr[i]) && (s.ptr[i] == '\0' || !strchr("._-", s.ptr[i])))
            return false;
    return s.len > 0 && s.len <= RV_REQUEST_ID_MAX;
}

static void name(rv_httpd_exchange *x)
{
    struct rv_httpd_request *req = &x->head.req;
    rv_str sent = {NULL, 0};
    char made[RV_ID_MAX];

    rv_httpd_find_field(req, "x-request-id", &sent, NULL);
    if (is_id(sent)) {
        memcpy(req->id, sent.ptr, sent.len);
        req->id[sent.len] = '\0';
    } else {
        rv_id_make(x->s->o.rand, "req_", made);
        memcpy(req->id, made, sizeof made);
    }
}

rv_httpd_exchange *httpd_exchange_new(struct rv_conn *c, const struct rv_head *head)
{
    rv_httpd *s = c->s;
    rv_httpd_exchange *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->s = s;
    x->c = c;
    if (head)
        x->head = *head;
    x->has_head = head != NULL;
    x->head.req.is_tls = c->tls != NULL;
    x->head.req.body = RV_STR_LIT("");
    rv_address_write(&c->peer, x->head.req.peer);
    name(x);
    x->plan.max_body = s->o.limits.max_body;
    x->is_mute = head && head->req.method == RV_METHOD_HEAD;
    x->start_us = httpd_now(s);
    x->next = s->exchanges;
    if (x->next)
        x->next->prev = x;
    s->exchanges = x;
    s->counts.exchanges++;
    s->counts.requests++;
    return x;
}

/* When an answer begins: a stream may be open for hours, and bodies may be large. */
void httpd_exchange_let_body_go(rv_httpd_exchange *x)
{
    if (x->s)
        x->s->n_body_bytes -= x->body.cap;
    rv_buf_fini(&x->body);
    x->head.req.body = RV_STR_LIT("");
}

/* Frees it once neither its handler nor its connection has it. */
static void release(rv_httpd_exchange *x)
{
    if (x->is_held || x->c || x->is_listed || x->is_planning)
        return;
    httpd_exchange_let_body_go(x);
    if (x->s) {
        if (x->next)
            x->next->prev = x->prev;
        *(x->prev ? &x->prev->next : &x->s->exchanges) = x->next;
        x->s->counts.exchanges--;
    }
    if (x->plan.free_data)
        x->plan.free_data(x->plan.data);
    free(x->head.block);
    free(x->run_id);
    free(x);
}

void httpd_exchange_orphan(rv_httpd_exchange *x)
{
    x->s = NULL;
    x->prev = x->next = NULL;
    x->is_listed = false;
    x->notes = 0;
    release(x);
}

static void log_access(rv_httpd_exchange *x, bool was_cut)
{
    const struct rv_httpd_handler *h = &x->s->o.handler;
    struct rv_httpd_access line = {.method = x->has_head ? rv_method_text(x->head.req.method) : "",
                                   .route = x->plan.route ? x->plan.route : "",
                                   .peer = x->head.req.peer,
                                   .request_id = x->head.req.id,
                                   .run_id = x->run_id ? x->run_id : "",
                                   .status = x->status,
                                   .was_cut = was_cut,
                                   .bytes_in = x->n_body,
                                   .bytes_out = x->n_out,
                                   .start_us = x->start_us,
                                   .took_us = httpd_now(x->s) - x->start_us};

    if (x->is_streaming)
        x->s->counts.streams--;
    x->is_streaming = false;
    if (h->on_access)
        h->on_access(h->self, &line);
}

void httpd_exchange_sent(rv_httpd_exchange *x)
{
    log_access(x, false);
    x->c->x = NULL;
    x->c = NULL;
    release(x);
}

void httpd_exchange_lost(rv_httpd_exchange *x, enum rv_gone why)
{
    log_access(x, true);
    x->c->x = NULL;
    x->c = NULL;
    x->is_gone = true;
    x->why = why;
    if (x->is_held)
        httpd_exchange_note(x, RV_NOTE_GONE);
    release(x);
}

void httpd_exchange_done(rv_httpd_exchange *x)
{
    x->phase = RV_EXCHANGE_ENDED;
    x->is_held = false;
    if (x->c)
        httpd_conn_answered(x->c); /* which may free it */
    else
        release(x);
}

/* --- from the connection to the handler --- */

void httpd_exchange_plan(rv_httpd_exchange *x)
{
    const struct rv_httpd_handler *h = &x->s->o.handler;

    if (!h->on_head)
        return;
    x->is_planning = true; /* it may be answered, or lost, meanwhile */
    h->on_head(h->self, x, &x->plan);
    x->is_planning = false;
    release(x);
}

void httpd_exchange_deliver(rv_httpd_exchange *x)
{
    const struct rv_httpd_handler *h = &x->s->o.handler;

    x->n_body = x->body.len;
    x->head.req.body = (rv_str){rv_buf_cstr(&x->body), x->body.len};
    x->head.req.data = x->plan.data;
    x->phase = RV_EXCHANGE_OPEN;
    x->is_held = true;
    if (x->s->is_draining)
        httpd_exchange_note(x, RV_NOTE_STOP);
    h->on_request(h->self, x);
}

const struct rv_httpd_request *rv_httpd_exchange_request(const rv_httpd_exchange *x)
{
    return &x->head.req;
}

bool rv_httpd_is_gone(const rv_httpd_exchange *x)
{
    return x->is_gone;
}

/* --- what the handler is told, from the loop --- */

void httpd_exchange_note(rv_httpd_exchange *x, unsigned note)
{
    x->notes |= note & ~x->told;
    if (x->is_listed || x->notes == 0 || !x->s)
        return;
    x->is_listed = true;
    x->todo_next = NULL;
    *x->s->todo_end = x;
    x->s->todo_end = &x->todo_next;
    httpd_look(x->s);
}

void rv_httpd_watch(rv_httpd_exchange *x, const struct rv_httpd_watch *watch)
{
    unsigned notes = (x->is_gone ? RV_NOTE_GONE : 0) | (x->s && x->s->is_draining ? RV_NOTE_STOP : 0);

    x->watch = *watch;
    if (notes)
        httpd_exchange_note(x, notes);
}

void httpd_exchange_drained(rv_httpd_exchange *x)
{
    if (x->wants_drain)
        httpd_exchange_note(x, RV_NOTE_DRAIN);
    x->wants_drain = false;
}

static bool take_note(rv_httpd_exchange *x, unsigned note)
{
    bool is_due = x->is_held && (x->notes & note) != 0;

    x->notes &= ~note;
    return is_due;
}

/* Each of its functions may end the exchange. A note that no function takes stays untold, for a watch that comes later.
 */
static void tell(rv_httpd_exchange *x)
{
    if (take_note(x, RV_NOTE_STOP) && x->watch.on_stop) {
        x->told |= RV_NOTE_STOP;
        x->watch.on_stop(x->watch.self, x);
    }
    if (take_note(x, RV_NOTE_DRAIN) && !x->is_gone && x->watch.on_drain)
        x->watch.on_drain(x->watch.self, x);
    if (take_note(x, RV_NOTE_GONE) && x->watch.on_gone) {
        x->told |= RV_NOTE_GONE;
        x->watch.on_gone(x->watch.self, x, x->why);
    }
}

void httpd_exchange_tell_all(rv_httpd *s)
{
    rv_httpd_exchange *x = s->todo;

    s->todo = NULL; /* what is noted meanwhile is told next time */
    s->todo_end = &s->todo;
    while (x) {
        rv_httpd_exchange *next = x->todo_next;
        tell(x);
        x->is_listed = false;
        if (x->notes)
            httpd_exchange_note(x, x->notes);
        release(x);
        x = next;
    }
}
