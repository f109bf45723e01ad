/* A call becomes a run of the queue, a query at once, or the answer to a question. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/models.h"
#include "coreengine/base/base.h"
#include "coreengine/knowledge/knowledge.h"

#define MAX_SHOWN 100 /* bytes of a client's words in a message: they stay on one line */

/* --- the arguments --- */

/* Does the header of an argument say the same? value NULL: there must be none. *rc: RV_E_NOMEM, when it cannot be told.
 */
static bool header_fits(const struct rv_app_mcp_at *at, rv_str header, json_object *value, int *rc)
{
    rv_buf name = RV_BUF_INIT(256), said = RV_BUF_INIT(64 << 10), want = RV_BUF_INIT(64 << 10);

    rv_buf_puts(&name, "mcp-param-");
    for (size_t i = 0; i < header.len; i++)
        rv_buf_putc(&name, header.ptr[i] >= 'A' && header.ptr[i] <= 'Z' ? (char)(header.ptr[i] + 32) : header.ptr[i]);
    if (json_object_is_type(value, json_type_string))
        rv_buf_add_str(&want, rv_json_str(value));
    else
        rv_json_write(value, &want);
    bool has = name.rc == 0 && at->header(at->self, rv_buf_cstr(&name), &said);
    bool fits = value ? has && want.rc == 0 && rv_str_eq(rv_buf_str(&said), rv_buf_str(&want)) : !has;
    if (name.rc == RV_E_NOMEM || said.rc == RV_E_NOMEM || want.rc == RV_E_NOMEM)
        *rc = RV_E_NOMEM;
    rv_buf_fini(&name);
    rv_buf_fini(&said);
    rv_buf_fini(&want);
    return fits;
}

/* Arguments that the schema of a tool names headers for. *rc as header_fits() has it. */
static bool headers_fit(const struct rv_app_mcp_at *at, json_object *schema, json_object *arguments, int *rc)
{
    json_object *properties = at->header ? rv_json_get_obj(schema, "properties") : NULL;

    if (!properties)
        return true;
    json_object_object_foreach (properties, key, property) {
        json_object *header = NULL, *value = NULL;
        if (!json_object_is_type(property, json_type_object) ||
            !json_object_object_get_ex(property, "x-mcp-header", &header))
            continue;
        json_object_object_get_ex(arguments, key, &value);
        if (!header_fits(at, rv_json_str(header), value, rc))
            return false;
    }
    return true;
}

/* Violations are told as a result, so that the model behind the client can read them. */
static int check_arguments(const struct rv_app_mcp_at *at, const struct offer *o, const struct rv_app_loaded *l,
                           json_object *arguments, struct mcp_started *out, rv_err **err)
{
    json_object *schema = NULL;
    rv_schema *compiled = NULL;
    rv_err *why = NULL;
    int rc = app_mcp_input_schema(o, l, &schema, err);

    if (rc == 0) {
        bool fits = headers_fit(at, schema, arguments, &rc);
        out->is_mismatch = rc == 0 && !fits;
        if (rc < 0)
            rc = RV_FAIL(err, rc, "compare the headers of arguments");
    }
    if (rc == 0)
        rc = rv_schema_compile(schema, "arguments", &compiled, err);
    if (rc == 0 && !out->is_mismatch && rv_schema_check(compiled, arguments, &why) < 0)
        rc = rv_err_is(why, RV_E_NOMEM) ? RV_FAIL(err, RV_E_NOMEM, "check the arguments of a tool")
                                        : app_mcp_failure_of(why, &out->result, err);
    rv_err_free(why);
    rv_schema_free(compiled);
    json_object_put(schema);
    return rc;
}

/* --- query --- */

/* Also a query that fails has a result. */
static int answer_query(const struct rv_app_mcp_at *at, json_object *arguments, json_object **out, rv_err **err)
{
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(at->app);
    const struct rv_knowledge_opts opts = {.embedder = &embedder, .max_bytes = MCP_MAX_RESULT / 2};
    const struct mcp_about about = {.tool = "query", .scope = &at->app->scope, .now_us = rv_app_now_us()};
    json_object *query = NULL, *answer = NULL;
    rv_err *why = NULL;

    json_object_object_get_ex(arguments, "query", &query);
    int rc = rv_knowledge_query(at->sources->store, &at->app->scope,
                                &(const struct rv_knowledge_query){rv_json_str(query), &opts}, &answer, NULL, &why);
    if (rc == RV_E_NOMEM)
        rc = RV_FAIL(err, rc, "answer a query");
    else if (rc < 0)
        rc = app_mcp_failure_of(why, out, err);
    else
        rc = app_mcp_success(&about, NULL, answer, out, err);
    rv_err_free(why);
    json_object_put(answer);
    return rc;
}

/* --- answers --- */

int app_mcp_enqueue_answer(const struct rv_app_mcp_at *at, const struct mcp_reply *answer, struct mcp_started *out,
                           rv_err **err)
{
    rv_store *store = at->sources->store;
    struct rv_app_question q = {.n = 0};
    struct rv_response r;
    struct rv_run_row row;
    bool is_new = false;
    int rc = rv_store_get_run(store, &at->app->scope, answer->run, &row, err);

    if (rc < 0)
        return rc;
    rc = app_mcp_question_of(at, &row, answer->interrupt, &q, err);
    if (rc == 0)
        rc = app_mcp_response_of(&q, answer->action, answer->content, &r, err);
    if (rc == 0)
        rc = rv_app_enqueue(store, &at->app->scope, row.id, &r, &is_new, err);
    if (rc == 0 && !is_new)
        rc = RV_FAIL(err, RV_E_STATE, "an answer to this question waits already");
    if (rc == 0) {
        rv_worker_tell(at->worker);
        memcpy(out->run, row.id, strlen(row.id) + 1);
        memcpy(out->answered, q.id, sizeof out->answered);
    }
    rv_app_question_fini(&q);
    rv_run_row_fini(&row);
    return rc;
}

/* --- runs --- */

static int set_plan(const struct offer *o, json_object *arguments, json_object *state, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *outputs = rv_json_build(&b, state, "outputs", json_object_new_object());
    json_object *plan = rv_json_build(&b, outputs, "plan", b.rc < 0 ? NULL : json_object_new_object());
    json_object *steps = rv_json_build(&b, plan, "steps", b.rc < 0 ? NULL : json_object_new_array());
    json_object *step = rv_json_build(&b, steps, NULL, b.rc < 0 ? NULL : json_object_new_object());

    rv_json_build_text(&b, step, "tool", o->name);
    return b.rc < 0 ? b.rc : rv_json_set_ref(step, "parameters", arguments, err);
}

static int make_state(const struct rv_app_mcp_at *at, const struct offer *o, json_object *arguments, bool is_task,
                      json_object **out, rv_err **err)
{
    json_object *input = NULL;
    const char *session = o->kind == OFFER_TOOL ? NULL : rv_json_text_or(arguments, "session", NULL);
    int rc = (*out = json_object_new_object()) ? 0 : RV_FAIL(err, RV_E_NOMEM, "start a run");

    if (rc == 0 && is_task) {
        char id[RV_ID_MAX];
        rv_id_make(rv_rand_system(), MCP_TASK_RUNS, id);
        rc = rv_json_set_text(*out, "envelope_id", id, err);
    }
    if (rc == 0 && o->kind == OFFER_TOOL)
        rc = set_plan(o, arguments, *out, err);
    if (rc == 0 && json_object_object_get_ex(arguments, "input", &input) && o->kind != OFFER_TOOL)
        rc = rv_json_set_ref(*out, "raw_input", input, err);
    if (rc == 0 && o->kind == OFFER_PIPELINE) /* also for expressions: metadata.NAME */
        rc = rv_json_set_ref(*out, "metadata", arguments, err);
    if (rc == 0 && session)
        rc = rv_json_set_text(*out, "session_id", session, err);
    if (rc == 0 && at->app->scope.user && at->app->scope.user[0])
        rc = rv_json_set_text(*out, "user_id", at->app->scope.user, err);
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}

static int submit(const struct rv_app_mcp_at *at, const struct offer *o, struct rv_app_loaded *l,
                  const struct mcp_call *call, struct mcp_started *out, rv_err **err)
{
    char task[MCP_MAX_NAME + 2];
    const struct rv_app_submit how = {.trace = at->trace, .trusts_trace = at->trusts_trace};
    struct rv_app_run run = {.app = at->app, .loaded = l, .mode = RV_UNSET, .store = at->sources->store};
    struct rv_app_submitted done = {.is_new = false};
    rv_envelope *env = NULL;
    json_object *state = NULL;
    int rc = make_state(at, o, call->arguments, call->is_task, &state, err);

    app_mcp_task_kind(o->kind, o->name, task);
    run.task = call->is_task ? task : NULL;
    if (o->kind != OFFER_TOOL)
        run.session = rv_json_text_or(call->arguments, "session", NULL);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), &env, err);
    if (rc == 0)
        rc = rv_app_check_user(&at->app->scope, rv_envelope_fields(env)->user_id, err);
    if (rc == 0 && run.session)
        rc = rv_app_check_session_owner(at->sources->store, &at->app->scope, run.session, err);
    if (rc == 0)
        rc = rv_app_run_open(&run, err);
    if (rc == 0)
        rc = rv_app_submit(&run, env, &how, &done, err);
    if (rc == 0) {
        rv_worker_tell(at->worker);
        memcpy(out->run, done.run, sizeof out->run);
    }
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    json_object_put(state);
    return rc;
}

void app_mcp_cancel_run(const struct rv_app_mcp_at *at, const char *run)
{
    rv_store *store = at->sources->store;
    struct rv_run_row row;
    rv_err *why = NULL;
    int rc = rv_store_get_run(store, &at->app->scope, run, &row, &why);

    if (rc == 0) {
        if (!rv_run_status_is_final(row.status))
            rc = rv_app_enqueue_cancel(store, &at->app->scope, run, &why);
        rv_worker_tell(at->worker);
        rv_run_row_fini(&row);
    }
    if (rc < 0)
        RV_LOG(at->app->log, WARN, "mcp.not_cancelled", RV_F_TEXT("run_id", run), RV_F_ERR("error", why));
    rv_err_free(why);
}

/* The first fault of what the operator offers; the log has it, too. */
static int check_sound(const struct rv_app_mcp_at *at, const struct offer *o, struct rv_app_loaded *l, rv_err **err)
{
    int rc = l->pipeline ? rv_app_check(l, false, err) : 0;

    if (rc < 0 || (rv_findings_n_errors(l->findings) == 0 && l->pipeline))
        return rc;
    const char *text = "it cannot be read";
    for (size_t i = 0; i < rv_findings_n(l->findings); i++)
        if (rv_findings_at(l->findings, i).severity == RV_SEVERITY_ERROR) {
            text = rv_findings_at(l->findings, i).text;
            break;
        }
    RV_LOG(at->app->log, ERROR, "pipeline.faulty", RV_F_TEXT("tool", o->name), RV_F_TEXT("finding", text));
    return RV_FAIL(err, RV_E_INVALID, "the tool \"%s\" has errors: %s", o->name, text);
}

static int begin(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, const struct offer *o,
                 const struct mcp_call *call, struct mcp_started *out, rv_err **err)
{
    struct rv_app_loaded l;
    int rc = app_mcp_offer_load(opts, at, o, call->may_wait, &l, err);

    if (rc < 0)
        return rc;
    const struct rv_pipeline *offered = o->kind == OFFER_PIPELINE ? app_mcp_offered(l.pipeline) : NULL;
    out->is_unknown = offered && offered->mcp.kind != (int)o->as;
    out->needs_task = offered && offered->mcp.tasks == RV_MCP_TASKS_REQUIRED && !call->takes_tasks;
    if (out->is_unknown || out->needs_task) {
        rv_app_loaded_fini(&l);
        return 0;
    }
    out->waits = !call->may_wait && l.pipeline && l.pipeline->n_mcp_servers > 0;
    rc = out->waits ? 0 : check_sound(at, o, &l, err);
    if (rc == 0 && !out->waits)
        rc = check_arguments(at, o, &l, call->arguments, out, err);
    if (rc == 0 && !out->waits && !out->result && !out->is_mismatch)
        rc = submit(at, o, &l, call, out, err);
    rv_app_loaded_fini(&l);
    return rc;
}

/* A modern client comes back with the answer to what its call asked. */
static int go_on(const struct rv_app_mcp_at *at, const struct offer *o, json_object *params, struct mcp_started *out,
                 rv_err **err)
{
    json_object *state = NULL, *responses = rv_json_get_obj(params, "inputResponses");
    json_object *answer = NULL, *action = NULL;
    RV_AUTO(rv_buf_fini) rv_buf key = RV_BUF_INIT(4096);
    char run[RV_STORE_MAX_ID + 1], interrupt[RV_STORE_MAX_ID + 1];

    json_object_object_get_ex(params, "requestState", &state);
    int rc = app_mcp_state_read(rv_json_str(state), o->name, run, interrupt, err);
    if (rc == 0 && responses)
        rc = app_mcp_question_key(at, run, interrupt, &key, err);
    if (rc < 0)
        return rc;
    answer = responses ? rv_json_get_obj(responses, rv_buf_cstr(&key)) : NULL;
    if (!answer) { /* without an answer it is asked again */
        memcpy(out->run, run, sizeof run);
        return 0;
    }
    json_object_object_get_ex(answer, "action", &action);
    rv_str word = rv_json_str(action);
    return app_mcp_enqueue_answer(at,
                                  &(const struct mcp_reply){.run = run,
                                                            .interrupt = interrupt,
                                                            .action = rv_str_is(word, "accept")    ? RV_MCP_ACCEPT
                                                                      : rv_str_is(word, "decline") ? RV_MCP_DECLINE
                                                                                                   : RV_MCP_CANCEL,
                                                            .content = rv_json_get_obj(answer, "content")},
                                  out, err);
}

static int start_offer(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, const struct offer *o,
                       const struct mcp_call *call, struct mcp_started *out, rv_err **err)
{
    json_object *arguments = call->arguments;

    if (json_object_object_get_ex(call->params, "requestState", NULL) && o->kind != OFFER_QUERY)
        return go_on(at, o, call->params, out, err);
    if (o->kind != OFFER_QUERY && o->kind != OFFER_ANSWER)
        return begin(opts, at, o, call, out, err);
    int rc = check_arguments(at, o, NULL, arguments, out, err);
    if (rc < 0 || out->result)
        return rc;
    out->waits = o->kind == OFFER_QUERY && !call->may_wait;
    if (out->waits)
        return 0;
    return o->kind == OFFER_QUERY
               ? answer_query(at, arguments, &out->result, err)
               : app_mcp_enqueue_answer(
                     at,
                     &(const struct mcp_reply){.run = rv_json_text_or(arguments, "run", NULL),
                                               .interrupt = rv_json_text_or(arguments, "question", NULL),
                                               .action = RV_MCP_ACCEPT,
                                               .content = arguments},
                     out, err);
}

/* A model reads it: what the client may use instead. How many there are only tools/list can tell, which loads them. */
static int refuse_name(rv_str name, const struct offers *offers, rv_err **err)
{
    const char **names = malloc((offers->n + 1) * sizeof *names);
    const rv_str shown = rv_utf8_cut(name, MAX_SHOWN);

    if (!names)
        return RV_FAIL(err, RV_E_NOMEM, "find a tool");
    for (size_t i = 0; i < offers->n; i++)
        names[i] = offers->items[i].name;
    const char *near = rv_nearest(shown, names, offers->n);
    free(names);
    if (near)
        return RV_FAIL(err, RV_E_NOT_FOUND, "unknown tool \"%.*s\": did you mean \"%s\"? (see tools/list)",
                       RV_STR_ARG(shown), near);
    return RV_FAIL(err, RV_E_NOT_FOUND, "unknown tool \"%.*s\": no similar name is offered (see tools/list)",
                   RV_STR_ARG(shown));
}

int app_mcp_find_offer(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, json_object *params,
                       struct offer *out, rv_err **err)
{
    json_object *name = NULL;
    struct offers offers;

    json_object_object_get_ex(params, "name", &name);
    int rc = app_mcp_offers_list(opts, at, &offers, err);
    if (rc < 0)
        return rc;
    struct offer *o = app_mcp_offers_find(&offers, rv_json_str(name));
    if (o) {
        *out = *o;
        *o = (struct offer){.kind = o->kind}; /* moved */
    } else {
        rc = refuse_name(rv_json_str(name), &offers, err);
    }
    app_mcp_offers_fini(&offers);
    return rc;
}

int app_mcp_start(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, const struct offer *o,
                  struct mcp_call call, struct mcp_started *out, rv_err **err)
{
    json_object *arguments = rv_json_get_obj(call.params, "arguments");
    rv_err *why = NULL;

    *out = (struct mcp_started){.result = NULL};
    call.arguments = arguments ? json_object_get(arguments) : json_object_new_object();
    int rc = call.arguments ? start_offer(opts, at, o, &call, out, &why) : RV_FAIL(&why, RV_E_NOMEM, "start a call");
    rc = rc < 0 && rv_err_is(why, RV_E_NOMEM) ? RV_E_NOMEM : rc;
    bool is_state = rc == RV_E_INVALID && json_object_object_get_ex(call.params, "requestState", NULL);
    if (rc == RV_E_NOMEM || is_state) {
        rc = is_state ? RV_FAIL(err, rc, "%s", rv_err_text(why)) : RV_FAIL(err, rc, "start a call");
    } else if (rc < 0) {
        rc = app_mcp_failure_of(why, &out->result, err);
    }
    rv_err_free(why);
    json_object_put(call.arguments);
    return rc;
}
