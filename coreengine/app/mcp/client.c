/* One client of the MCP server: its session of the protocol, and the runs that its calls wait for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/base/base.h"

#define MAX_SAID  ((size_t)4 << 10)     /* bytes of the reason of a failure: as an error's text has */
#define MAX_STUCK 40                    /* looks: two seconds, in which a run takes its answer; then the call fails */
#define TASK_US   (1500 * RV_US_PER_MS) /* then a call becomes a task: a person wants to do something else */

static const char instructions[] = "Tools run pipelines and agents of reeve; each call is a run that is kept. When a "
                                   "result says that a run waits for an "
                                   "answer, ask the person and call answer_run.";

/* A call that waits for a run. */
struct watched {
    struct watched *next;
    int64_t call;
    enum rv_mcp_want want; /* CALL_TOOL, TASK_RESULT, or a document that the run makes */
    enum offer_kind kind;
    char *tool, *uri; /* owned; uri: of READ_RESOURCE, else NULL */
    char run[RV_STORE_MAX_ID + 1];
    char answered[RV_STORE_MAX_ID + 1]; /* the question whose answer is queued; "": none */
    bool is_asking;                     /* the client was asked, and has not answered yet */
    bool is_dropped;                    /* the client does not wait any more */
    bool may_be_task;                   /* its client takes one instead of the result */
    bool is_task;                       /* the client asked for the result of one, which goes on without the client */
    int64_t since_us;                   /* when the call began */
    struct rv_app_past past;
    bool has_past;
    rv_follower *follower; /* NULL: its events are not read */
    int64_t seen;          /* records that were read */
    int64_t n_events;
    int n_stuck; /* looks at a run that waits with an answered question and has no task */
};
int rv_app_mcp_new(const struct rv_app_mcp_opts *opts, bool is_modern, rv_app_mcp **out, rv_err **err)
{
    const struct rv_mcp_server_opts how = {.name = "reeve",
                                           .title = "reeve",
                                           .version = REEVE_VERSION,
                                           .instructions = instructions,
                                           .is_http = opts->is_http,
                                           .is_modern = is_modern};
    rv_app_mcp *m = calloc(1, sizeof *m);

    if (!m)
        return RV_FAIL(err, RV_E_NOMEM, "serve a client");
    m->opts = opts;
    int rc = rv_mcp_server_new(&how, &m->session, err);
    if (rc < 0)
        free(m);
    else
        *out = m;
    return rc;
}

static void free_watched(struct watched *w)
{
    rv_follower_free(w->follower);
    if (w->has_past)
        rv_app_past_fini(&w->past);
    free(w->tool);
    free(w->uri);
    free(w);
}

void rv_app_mcp_free(rv_app_mcp *m)
{
    if (!m)
        return;
    for (struct watched *w = m->first, *next; w; w = next) {
        next = w->next;
        free_watched(w);
    }
    rv_mcp_server_free(m->session);
    free(m);
}

bool rv_app_mcp_is_busy(const rv_app_mcp *m)
{
    return m->first != NULL;
}

bool rv_app_mcp_has_call(const rv_app_mcp *m, int64_t call)
{
    return rv_mcp_server_has_call(m->session, call);
}

int64_t rv_app_mcp_last_call(const rv_app_mcp *m)
{
    return rv_mcp_server_last_call(m->session);
}

static struct watched *find(const rv_app_mcp *m, int64_t call)
{
    struct watched *w = m->first;

    while (w && (w->call != call || w->is_dropped))
        w = w->next;
    return w;
}

int app_mcp_watch(rv_app_mcp *m, const struct rv_mcp_order *o, const struct mcp_task *t, const char *answered,
                  rv_err **err)
{
    struct watched *w = calloc(1, sizeof *w);
    json_object *uri = NULL;

    if (o->want == RV_MCP_WANT_READ_RESOURCE)
        json_object_object_get_ex(o->params, "uri", &uri);
    if (!w || !(w->tool = rv_str_dup(rv_str_of(t->tool))) || (uri && !(w->uri = rv_str_dup(rv_json_str(uri))))) {
        if (w)
            free_watched(w);
        return RV_FAIL(err, RV_E_NOMEM, "wait for a run");
    }
    w->call = o->call;
    w->want = o->want;
    w->kind = t->kind;
    w->may_be_task = o->want == RV_MCP_WANT_CALL_TOOL && o->tasks == RV_MCP_TASK_MAY;
    w->is_task = o->want == RV_MCP_WANT_TASK_RESULT;
    w->since_us = rv_app_now_us();
    memcpy(w->run, t->run, sizeof w->run);
    memcpy(w->answered, answered, strlen(answered) + 1);
    w->next = m->first;
    m->first = w;
    return 0;
}

/* --- results --- */

int app_mcp_fail(rv_app_mcp *m, const struct rv_app_mcp_at *at, int64_t call, const rv_err *why, rv_err **err)
{
    int code = rv_err_code(why);
    rv_buf text = RV_BUF_INIT(MAX_SAID);

    if (rv_err_is(why, RV_E_NOMEM))
        return RV_FAIL(err, RV_E_NOMEM, "answer a client");
    bool is_theirs = code == RV_E_INVALID || code == RV_E_NOT_FOUND || code == RV_E_PARSE || code == RV_E_STATE ||
                     code == RV_E_LIMIT || code == RV_E_DENIED;
    if (is_theirs) {
        rv_err_write_chain(why, &text);
    } else {
        RV_LOG(at->app->log, ERROR, "mcp.failed", RV_F_ERR("error", why));
        rv_buf_puts(&text, "the server could not do this; its log has the reason");
    }
    int rc = text.rc == RV_E_NOMEM
                 ? RV_FAIL(err, RV_E_NOMEM, "answer a client")
                 : rv_mcp_server_fail(m->session, call,
                                      &(const struct rv_mcp_server_error){.code = is_theirs ? RV_MCP_INVALID_PARAMS
                                                                                            : RV_MCP_INTERNAL_ERROR,
                                                                          .text = rv_buf_cstr(&text)},
                                      m->out, err);
    rv_buf_fini(&text);
    return rc;
}

int app_mcp_give_and_put(rv_app_mcp *m, int64_t call, json_object *result, rv_err **err)
{
    int rc = rv_mcp_server_give(m->session, call, result, m->out, err);

    json_object_put(result);
    return rc;
}

/* --- lists and documents --- */

static int list(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, rv_err **err)
{
    json_object *entries = json_object_new_array();
    bool has_more = false;
    int64_t next = 0;
    rv_err *why = NULL;
    int rc = entries ? 0 : RV_FAIL(&why, RV_E_NOMEM, "list for a client");

    if (rc == 0 && o->want == RV_MCP_WANT_LIST_TOOLS)
        rc = app_mcp_tools_list(m->opts, at, o->first, entries, &has_more, &why);
    else if (rc == 0 && o->want == RV_MCP_WANT_LIST_RESOURCES)
        rc = app_mcp_resources_list(m->opts, at, o->first, entries, &has_more, &why);
    else if (rc == 0 && o->want == RV_MCP_WANT_LIST_TEMPLATES)
        rc = app_mcp_templates_list(m->opts, at, entries, &why);
    else if (rc == 0 && o->want == RV_MCP_WANT_LIST_TASKS)
        rc = app_mcp_tasks_list(at, o->first, entries, &next, &why);
    else if (rc == 0)
        rc = app_mcp_prompts_list(m->opts, at, o->first, entries, &has_more, &why);
    if (rc == 0 && has_more)
        next = o->first + (int64_t)json_object_array_length(entries);
    rc = rc == 0 ? rv_mcp_server_give_list(m->session, o->call, entries, next, m->out, err)
                 : app_mcp_fail(m, at, o->call, why, err);
    rv_err_free(why);
    json_object_put(entries);
    return rc;
}

static int read_document(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, rv_err **err)
{
    struct mcp_document d = {.result = NULL};
    json_object *uri = NULL;
    rv_err *why = NULL;
    int rc;

    if (o->want == RV_MCP_WANT_READ_RESOURCE) {
        json_object_object_get_ex(o->params, "uri", &uri);
        rc = app_mcp_resource_read(m->opts, at, rv_json_str(uri), &d, &why);
    } else if (o->want == RV_MCP_WANT_GET_PROMPT) {
        rc = app_mcp_prompt_get(m->opts, at, o->params, &d, &why);
    } else {
        rc = app_mcp_complete(at, o->params, &d.result, &why);
    }
    if (rc == 0 && d.offer.name)
        rc = app_mcp_run_document(m, at, o, &d, err);
    else if (rc == 0)
        rc = rv_mcp_server_give(m->session, o->call, d.result, m->out, err);
    else if (rc == RV_E_NOT_FOUND && uri)
        rc = rv_mcp_server_refuse_resource(m->session, o->call, json_object_get_string(uri), m->out, err);
    else
        rc = app_mcp_fail(m, at, o->call, why, err);
    app_mcp_document_fini(&d);
    rv_err_free(why);
    return rc;
}

void rv_app_mcp_cancel(rv_app_mcp *m, const struct rv_app_mcp_at *at, int64_t call)
{
    app_mcp_stop_jobs(m, call);
    for (struct watched *w = m->first; w; w = w->next)
        if ((call == 0 || w->call == call) && !w->is_dropped) {
            w->is_dropped = true;
            if (!w->is_task)
                app_mcp_cancel_run(at, w->run);
        }
}

static int take_answer(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, rv_err **err)
{
    struct watched *w = find(m, o->call);
    struct mcp_started done = {.result = NULL};
    json_object *result = NULL;
    rv_err *why = NULL;

    if (!w || !w->is_asking)
        return 0;
    int rc = app_mcp_enqueue_answer(
        at,
        &(const struct mcp_reply){.run = w->run, .interrupt = w->answered, .action = o->action, .content = o->content},
        &done, &why);
    if (rc == 0) {
        w->is_asking = false;
    } else { /* the run waits on; the model behind the client is told why */
        w->is_dropped = true;
        rc = rv_err_is(why, RV_E_NOMEM) ? RV_FAIL(err, RV_E_NOMEM, "take an answer")
                                        : app_mcp_failure_of(why, &result, err);
        if (rc == 0)
            rc = app_mcp_give_and_put(m, o->call, result, err);
    }
    rv_err_free(why);
    return rc;
}

static int perform(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, rv_err **err)
{
    switch (o->kind) {
    case RV_MCP_SEND:
        return 0;
    case RV_MCP_STOP:
        rv_app_mcp_cancel(m, at, o->call);
        return 0;
    case RV_MCP_ANSWERED:
        return take_answer(m, at, o, err);
    case RV_MCP_DO:
        break;
    }
    switch (o->want) {
    case RV_MCP_WANT_CALL_TOOL:
        return app_mcp_call_tool(m, at, o, err);
    case RV_MCP_WANT_LIST_TOOLS:
    case RV_MCP_WANT_LIST_RESOURCES:
    case RV_MCP_WANT_LIST_TEMPLATES:
    case RV_MCP_WANT_LIST_PROMPTS:
    case RV_MCP_WANT_LIST_TASKS:
        return list(m, at, o, err);
    case RV_MCP_WANT_READ_RESOURCE:
    case RV_MCP_WANT_GET_PROMPT:
    case RV_MCP_WANT_COMPLETE:
        return read_document(m, at, o, err);
    case RV_MCP_WANT_GET_TASK:
    case RV_MCP_WANT_UPDATE_TASK:
    case RV_MCP_WANT_CANCEL_TASK:
    case RV_MCP_WANT_TASK_RESULT:
        return app_mcp_on_task(m, at, o, err);
    case RV_N_MCP_WANTS:
        break;
    }
    return RV_FAIL(err, RV_E_INTERNAL, "an order of an unknown kind");
}

/* What was asked for is done; orders to send stay in out. */
static int perform_all(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct rv_mcp_orders *asked,
                       struct rv_mcp_orders *out, rv_err **err)
{
    int rc = 0;

    m->out = out;
    for (size_t i = 0; i < asked->n && rc == 0; i++)
        if (asked->items[i].kind == RV_MCP_SEND) {
            if (!rv_has_room(&out->items, &out->cap, out->n + 1, sizeof *out->items))
                rc = RV_FAIL(err, RV_E_NOMEM, "answer a client");
            else {
                out->items[out->n++] = asked->items[i];
                asked->items[i].bytes = (rv_buf){.ptr = NULL}; /* moved */
            }
        } else {
            rc = perform(m, at, &asked->items[i], err);
        }
    m->out = NULL;
    rv_mcp_orders_fini(asked);
    return rc;
}

int rv_app_mcp_receive(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_message *message,
                       struct rv_mcp_orders *out, rv_err **err)
{
    struct rv_mcp_orders asked = {NULL, 0, 0};
    int rc = rv_mcp_server_receive(m->session, message, &asked, err);

    if (rc == 0)
        return perform_all(m, at, &asked, out, err);
    rv_mcp_orders_fini(&asked);
    return rc;
}

int rv_app_mcp_read(rv_app_mcp *m, const struct rv_app_mcp_at *at, rv_str bytes, struct rv_mcp_orders *out,
                    rv_err **err)
{
    struct rv_mcp_orders asked = {NULL, 0, 0};
    int rc = rv_mcp_server_read(m->session, bytes, &asked, err);

    if (rc == 0)
        return perform_all(m, at, &asked, out, err);
    rv_mcp_orders_fini(&asked);
    return rc;
}

/* --- runs under way --- */

static int tell_event(rv_app_mcp *m, struct watched *w, rv_str line, rv_err **err)
{
    json_object *event = NULL;
    rv_buf text = RV_BUF_INIT(512);
    int rc = rv_app_read_event(line, &event, err);

    if (rc < 0)
        return rc;
    const char *type = rv_json_text_or(event, "type", NULL);
    const char *stage = rv_json_text_or(event, "stage", NULL);
    rv_buf_printf(&text, "%.60s%s%.200s", type ? type : "", stage ? ": " : "", stage ? stage : "");
    w->n_events++;
    rc = rv_mcp_server_tell_progress(
        m->session, w->call,
        &(const struct rv_mcp_progress){.n = w->n_events, .total = 0, .text = text.rc == 0 ? rv_buf_cstr(&text) : NULL},
        m->out, err);
    if (rc == 0)
        rc = rv_mcp_server_log(m->session, w->call, event, m->out, err);
    rv_buf_fini(&text);
    json_object_put(event);
    return rc;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    rv_app_mcp *m = self;
    int rc = 0;

    (void)record;
    (void)run;
    for (size_t i = 0; ev && i < effects->n && rc == 0; i++)
        if (effects->items[i].kind == RV_EFFECT_EMIT)
            rc = tell_event(m, m->now, rv_effect_text(effects, &effects->items[i]), err);
    return rc;
}

static int read_events(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct watched *w, rv_err **err)
{
    const struct rv_replay_opts opts = {
        .pipeline = rv_app_past_pipeline(&w->past), .catalog = &w->past.catalog, .on_step = on_step, .self = m};

    m->now = w;
    int rc = w->follower ? rv_follower_feed(w->follower, err)
                         : rv_journal_follow(at->sources->store, &at->app->scope, w->run, &opts, &w->follower, err);
    m->now = NULL;
    return rc;
}

static bool is_document(const struct watched *w)
{
    return w->want == RV_MCP_WANT_READ_RESOURCE || w->want == RV_MCP_WANT_GET_PROMPT;
}

static int ask(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct watched *w, const struct rv_app_question *q,
               const struct mcp_about *about, rv_err **err)
{
    json_object *form = NULL, *result = NULL;
    rv_buf state = RV_BUF_INIT(4096), key = RV_BUF_INIT(4096);
    int rc = app_mcp_form_of(q, &form, err);

    if (rc == 0 && is_document(w) && (!form || !rv_mcp_server_can_ask(m->session, w->call))) {
        app_mcp_cancel_run(at, w->run); /* a document has no answer_run */
        rc = rv_mcp_server_fail(m->session, w->call,
                                &(const struct rv_mcp_server_error){
                                    .code = RV_MCP_INVALID_PARAMS,
                                    .text = "a person has to be asked first, which needs a client with elicitation"},
                                m->out, err);
    } else if (rc == 0 && (!form || !rv_mcp_server_can_ask(m->session, w->call))) {
        rc = app_mcp_waiting(about, q, &result, err);
        if (rc == 0)
            rc = app_mcp_give_and_put(m, w->call, result, err);
    } else if (rc == 0) {
        app_mcp_state_write(w->tool, w->run, q->id, &state);
        rc = app_mcp_question_key(at, w->run, q->id, &key, err);
        if (rc == 0)
            rc = rv_buf_check(&state, "state of a call", err);
        const struct rv_mcp_question question = {
            .key = rv_buf_cstr(&key), .message = rv_buf_cstr(&q->text), .schema = form, .state = rv_buf_cstr(&state)};
        if (rc == 0)
            rc = rv_mcp_server_ask(m->session, w->call, &question, m->out, err);
        memcpy(w->answered, q->id, sizeof w->answered);
        w->is_asking = true;
    }
    rv_buf_fini(&state);
    rv_buf_fini(&key);
    json_object_put(form);
    return rc;
}

/* The run waits for an answer. */
static int on_question(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct watched *w, const struct rv_run_row *row,
                       const struct mcp_about *about, rv_err **err)
{
    struct rv_app_question q = {.n = 0};
    bool waits = false;
    int rc = app_mcp_question_of(at, row, NULL, &q, err);

    if (rc == RV_E_STATE || rc == RV_E_TIMEOUT) { /* it goes on right now */
        rv_app_question_fini(&q);
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (rc == 0 && strcmp(q.id, w->answered) == 0) {
        rc = w->is_asking ? 0 : app_mcp_question_is_answered(at, row, q.id, &waits, err);
        w->n_stuck = waits || w->is_asking ? 0 : w->n_stuck + 1; /* between the two reads it may have gone on */
        if (rc == 0 && w->n_stuck > MAX_STUCK)
            rc = RV_FAIL(err, RV_E_STATE, "the run \"%s\" did not take the answer", w->run);
    } else if (rc == 0) {
        rc = ask(m, at, w, &q, about, err);
    }
    rv_app_question_fini(&q);
    return rc;
}

/* What the run made is the document; a run that failed made none. result is taken. */
static int give_document(rv_app_mcp *m, struct watched *w, const struct rv_pipeline *p, json_object *result,
                         rv_err **err)
{
    const char *type = p && p->mcp.mime_type[0] ? p->mcp.mime_type : "text/plain";
    const struct mcp_shown shown = {
        .want = w->want, .uri = w->uri, .mime_type = type, .description = p && p->description ? p->description : ""};
    json_object *out = NULL;

    if (json_object_object_get_ex(result, "isError", NULL))
        return app_mcp_refuse(m, w->call, RV_MCP_INTERNAL_ERROR, result, err);
    int rc = app_mcp_show(&shown, result, &out, err);
    json_object_put(result);
    return rc < 0 ? rc : app_mcp_give_and_put(m, w->call, out, err);
}

static int on_end(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct watched *w, const struct mcp_about *about,
                  rv_err **err)
{
    struct rv_replayed r = {0};
    json_object *result = NULL;
    int rc = rv_app_past_replay(at->sources->store, &w->past, NULL, &r, err);

    if (rc < 0)
        return rc;
    enum offer_kind kind = w->kind == OFFER_ANSWER ? OFFER_PIPELINE : w->kind;
    const struct mcp_ended run = {kind, w->past.row.status, rv_app_past_pipeline(&w->past), rv_run_envelope(r.run)};
    rc = app_mcp_result_of_run(about, &run, &result, err);
    rv_replayed_fini(&r);
    if (rc == 0 && is_document(w))
        return give_document(m, w, app_mcp_offered(rv_app_past_pipeline(&w->past)), result, err);
    return rc == 0 ? app_mcp_give_and_put(m, w->call, result, err) : rc;
}

/* The call has taken long enough: its client may ask for it later. */
static int become_task(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct watched *w, rv_err **err)
{
    const struct rv_mcp_order o = {.want = RV_MCP_WANT_CALL_TOOL, .call = w->call, .tasks = RV_MCP_TASK_MAY};
    struct mcp_task task = {.kind = w->kind};

    snprintf(task.tool, sizeof task.tool, "%s", w->tool);
    memcpy(task.run, w->run, sizeof task.run);
    return app_mcp_give_task(m, at, &o, &task, err);
}

static int look_at(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct watched *w, rv_err **err)
{
    struct rv_run_row row;
    int rc = 0;

    if (!w->has_past) {
        rc = rv_app_past_open(at->sources->store, &at->app->scope, w->run, &w->past, err);
        w->has_past = rc == 0;
    }
    if (rc == 0)
        rc = rv_store_get_run(at->sources->store, &at->app->scope, w->run, &row, err);
    if (rc < 0)
        return rc;
    rv_run_row_fini(&w->past.row);
    w->past.row = row;
    const struct mcp_about about = {
        .tool = w->tool, .run = w->run, .scope = &at->app->scope, .now_us = rv_app_now_us()};
    if (row.n_records != w->seen && rv_mcp_server_listens(m->session, w->call))
        rc = read_events(m, at, w, err);
    w->seen = row.n_records;
    if (rc == 0 && rv_run_status_is_final(row.status))
        return on_end(m, at, w, &about, err);
    if (rc == 0 && row.status == RV_RUN_INTERRUPTED)
        rc = on_question(m, at, w, &row, &about, err);
    if (rc == 0 && w->may_be_task && rv_mcp_server_has_call(m->session, w->call) &&
        rv_app_now_us() - w->since_us >= TASK_US)
        rc = become_task(m, at, w, err);
    return rc;
}

int rv_app_mcp_look(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct rv_mcp_orders *out, rv_err **err)
{
    int rc = 0;

    m->out = out;
    for (struct watched **p = &m->first; *p && rc == 0;) {
        struct watched *w = *p;
        rv_err *why = NULL;
        if (!w->is_dropped && look_at(m, at, w, &why) < 0)
            rc = app_mcp_fail(m, at, w->call, why, err);
        rv_err_free(why);
        if (rc == 0 && (w->is_dropped || !rv_mcp_server_has_call(m->session, w->call))) {
            *p = w->next;
            free_watched(w);
        } else {
            p = &w->next;
        }
    }
    m->out = NULL;
    return rc;
}

bool rv_app_mcp_is_left(const rv_app_mcp *m, int64_t call, const char *owner)
{
    const struct watched *w = m->first;

    while (w && w->call != call)
        w = w->next;
    return w && w->has_past && (!w->past.row.owner || strcmp(w->past.row.owner, owner) != 0);
}
