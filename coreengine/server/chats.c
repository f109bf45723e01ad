/* Handlers of chats: what a request of each protocol asks for, as one turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/server/chats_internal.h"
#include "coreengine/server/view_internal.h"

void srv_turn_ask_free(struct srv_turn_ask *ask)
{
    if (!ask)
        return;
    rv_request_fini(&ask->req);
    rv_buf_fini(&ask->open);
    json_object_put(ask->made);
    if (ask->model_run)
        srv_told_free(ask->model_run->told);
    free(ask->model_run);
    free(ask->agent);
    free(ask->model);
    free(ask->session);
    free(ask->session_name);
    free(ask->session_type);
    free(ask->section);
    free(ask->client);
    free(ask->user_name);
    free(ask->tenant);
    free(ask->user);
    free(ask->user_email);
    free(ask->by_name);
    free(ask->trace_state);
    free(ask);
}

static void free_ask(void *made)
{
    srv_turn_ask_free(made);
}

/* X-Is-Eval, as REMLight's clients write it. */
static int take_eval(const struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    char *text;
    int rc = srv_call_dup_header(c, "x-is-eval", &text, err);

    if (rc < 0)
        return rc;
    a->is_eval = text && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcasecmp(text, "yes") == 0);
    free(text);
    return 0;
}

static int new_ask(struct srv_call *c, enum rv_protocol_kind kind, struct srv_turn_ask **out, rv_err **err)
{
    struct srv_turn_ask *a = calloc(1, sizeof *a);

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "read a request");
    c->made = a;
    c->free_made = free_ask;
    int rc = rv_request_read(kind, c->req->body, &a->req, c->param, err);
    if (rc < 0) {
        c->code = a->req.is_unsupported ? "unsupported_parameter" : NULL;
        return rc;
    }
    a->opts.kind = a->req.kind;
    char *gone;
    rc = srv_call_dup_header(c, "x-on-disconnect", &gone, err);
    if (rc < 0)
        return rc;
    a->stays_us = !gone                           ? c->server->opts->stays_us
                  : strcmp(gone, "continue") == 0 ? RV_SERVER_STAYS
                  : strcmp(gone, "cancel") == 0   ? 0
                                                  : -1;
    free(gone);
    if (a->stays_us < 0)
        return RV_FAIL(err, RV_E_INVALID, "X-On-Disconnect is \"cancel\" or \"continue\"");
    rv_id_make(rv_rand_system(), "env_", a->run);
    rv_buf_init(&a->open, RV_PROTOCOL_MAX_TEXT);
    rc = srv_call_dup_header(c, "x-client-id", &a->client, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-user-name", &a->user_name, err);
    if (rc == 0)
        rc = take_eval(c, a, err);
    if (rc == 0)
        *out = a;
    return rc;
}

/* X-Session-Id: with a longer one nothing could be kept. */
static int take_session(const struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    int rc = srv_call_dup_header(c, "x-session-id", &a->session, err);

    if (rc == 0 && a->session && strlen(a->session) > RV_STORE_MAX_ID) {
        rc = RV_FAIL(err, RV_E_INVALID, "X-Session-Id has %zu bytes, at most %d are allowed", strlen(a->session),
                     RV_STORE_MAX_ID);
        rv_err_set_hint(err, "send the id of a session, or leave the header out for a new one");
    }
    return rc;
}

/* The first header of these that is there. */
static int first_header(const struct srv_call *c, const char *a, const char *b, char **out, rv_err **err)
{
    int rc = srv_call_dup_header(c, a, out, err);

    return rc == 0 && !*out ? srv_call_dup_header(c, b, out, err) : rc;
}

/* The agent is there, and does what the request asks. */
static int check_agent(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    struct rv_agents_found found;
    int rc = a->agent ? rv_agents_find(c->handles->sources.agents, &c->app.scope, a->agent, &found, err) : 0;

    return rc < 0 ? rc : srv_chat_request(c, a, a->agent ? found.doc : NULL, err);
}

/* There is something new to say. */
static int check_new(const struct srv_turn_ask *a, rv_err **err)
{
    if (!a->req.has_message && a->req.n_answers == 0 && a->req.n_results == 0)
        return RV_FAIL(err, RV_E_INVALID, "the request has no message of the user");
    return 0;
}

/* Ids of clients are as the path of p8 wants them; a session that is there may have another, of the command line. */
static int check_chat_id(struct srv_call *c, rv_err **err)
{
    struct rv_session_row row;
    rv_err *cause = NULL;

    if (rv_uuid_read(rv_str_of(c->args[0]), NULL))
        return 0;
    int rc = rv_store_get_session(c->store, &c->app.scope, c->args[0], &row, &cause);
    if (rc == 0)
        rv_session_row_fini(&row);
    else if (rc != RV_E_NOT_FOUND && rc != RV_E_INVALID)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    return rc == 0 ? 0 : RV_FAIL(err, RV_E_INVALID, "Invalid chat_id: must be a valid UUID, got '%.80s'", c->args[0]);
}

int srv_chat_agui(struct srv_call *c, rv_err **err)
{
    struct srv_turn_ask *a;
    int rc = check_chat_id(c, err);

    if (rc == 0)
        rc = new_ask(c, RV_PROTOCOL_AGUI, &a, err);
    if (rc < 0)
        return rc;
    rc = srv_call_dup_arg(c, 0, &a->session, err);
    if (rc == 0)
        rc = first_header(c, "x-agent-schema-name", "x-agent-schema", &a->agent, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-session-name", &a->session_name, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-session-type", &a->session_type, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-added-instruction", &a->section, err);
    if (rc < 0)
        return rc;
    rc = check_agent(c, a, err);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(rv_err_steal(err));
        return RV_FAIL(err, rc, "Agent '%.100s' not found", a->agent);
    }
    if (rc == 0)
        rc = check_new(a, err);
    return rc < 0 ? rc : srv_chat_keep(c, a, err);
}

/* --- OpenAI: the model is an agent --- */

/* What only an agent can be asked. */
static const char *only_of_agents(const struct rv_request *r)
{
    return r->tools                  ? "tools"
           : r->response_schema      ? r->kind == RV_PROTOCOL_RESPONSES ? "text.format" : "response_format"
           : r->has_temperature      ? "temperature"
           : r->max_tokens > 0       ? "max_tokens"
           : r->has_seed             ? "seed"
           : r->attachments          ? "messages"
           : r->previous_response_id ? "previous_response_id"
           : !r->has_message         ? "messages"
                                     : NULL;
}

/* The model is a pipeline: its input is the message, and nothing of the conversation. */
static int ask_pipeline(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    const char *param = only_of_agents(&a->req);

    if (param) {
        snprintf(c->param, sizeof c->param, "%s", param);
        c->code = "unsupported_parameter";
        return RV_FAIL(err, RV_E_INVALID, "%s: a pipeline takes the text of the last message of the user, nothing else",
                       param);
    }
    a->opts.is_whole = !a->req.stream;
    a->opts.tells_usage = a->req.tells_usage;
    return srv_run_of_model(c, a->req.model, rv_buf_str(&a->req.text), &a->opts, &a->model_run, err);
}

/* The run that an answer is of: its id, in front of which of its answers it is. False: it cannot be one. */
static bool run_of(const char *answer, char out[RV_STORE_MAX_ID + 1], int64_t *ordinal)
{
    const char *mark = strrchr(answer, RV_PROTOCOL_ORDINAL);
    size_t n = mark && rv_is_digit(mark[1]) ? (size_t)(mark - answer) : strlen(answer);
    char again[SRV_STREAM_ID];

    if (n > RV_STORE_MAX_ID || strlen(answer) >= sizeof again)
        return false;
    snprintf(out, RV_STORE_MAX_ID + 1, "%.*s", (int)n, answer);
    *ordinal = answer[n] ? srv_stream_ordinal(answer) : 1;
    srv_stream_id(out, *ordinal, again);
    return strcmp(again, answer) == 0; /* not RUN~1, RUN~02 */
}

/* The session of the run that a response is of. RV_E_NOT_FOUND: the caller has no such response. */
static int session_of(struct srv_call *c, const char *response, char out[RV_STORE_MAX_ID + 1], rv_err **err)
{
    const size_t n = strlen(RV_PROTOCOL_RESPONSE);
    char id[RV_STORE_MAX_ID + 1];
    struct rv_stream_row stream;
    struct rv_run_row run;
    rv_err *cause = NULL;
    int64_t ordinal;

    out[0] = '\0';
    if (strncmp(response, RV_PROTOCOL_RESPONSE, n) != 0 || !run_of(response + n, id, &ordinal))
        return RV_E_NOT_FOUND;
    int rc = rv_store_get_run(c->store, &c->app.scope, id, &run, &cause);
    if (rc == 0) {
        snprintf(out, RV_STORE_MAX_ID + 1, "%s", run.session ? run.session : "");
        rv_run_row_fini(&run);
    }
    if (rc == 0 || rc == RV_E_NOT_FOUND) { /* its turn may be about to begin */
        rv_err_free(rv_err_steal(&cause));
        int found = rv_store_find_last_stream(c->store, &c->app.scope, id, &stream, &cause);
        if (found == 0) {
            if (rc < 0)
                snprintf(out, RV_STORE_MAX_ID + 1, "%s", stream.session ? stream.session : "");
            rc = ordinal <= srv_stream_ordinal(stream.id) ? 0 : RV_E_NOT_FOUND;
            rv_stream_row_fini(&stream);
        } else if (found != RV_E_NOT_FOUND) {
            rc = found;
        } /* else streams are forgotten before their runs, and which answers there were is not known */
    }
    if (rc < 0 && rc != RV_E_NOT_FOUND && rc != RV_E_INVALID) /* of an id that cannot be one there is no run either */
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    return rc == 0 && out[0] ? 0 : RV_E_NOT_FOUND;
}

/* `previous_response_id` of Responses: the session of that response goes on. */
static int go_on_from(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    const char *id = a->req.previous_response_id;
    char session[RV_STORE_MAX_ID + 1];
    int rc = session_of(c, id, session, err);

    if (rc == RV_E_NOT_FOUND) {
        snprintf(c->param, sizeof c->param, "previous_response_id");
        c->code = "previous_response_not_found";
        rc = RV_FAIL(err, RV_E_INVALID, "previous_response_id: the response \"%.100s\" does not exist", id);
        rv_err_set_hint(err, "send the id of a response of this server, or the id of its session as X-Session-Id");
    } else if (rc == 0 && a->session && strcmp(a->session, session) != 0) {
        snprintf(c->param, sizeof c->param, "previous_response_id");
        rc = RV_FAIL(err, RV_E_INVALID, "previous_response_id: \"%.100s\" is of another session than X-Session-Id", id);
    } else if (rc == 0 && !a->session && !(a->session = rv_str_dup(rv_str_of(session)))) {
        rc = RV_FAIL(err, RV_E_NOMEM, "read a request");
    }
    return rc;
}

static int ask_model(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    const char *name = a->req.model && a->req.model[0] ? a->req.model : RV_CHAT_DEFAULT_AGENT;

    if (strncmp(name, SRV_PIPELINE, strlen(SRV_PIPELINE)) == 0)
        return ask_pipeline(c, a, err);

    char *events = NULL;
    int rc = srv_call_dup_header(c, "x-agent-schema-name", &a->agent, err);
    if (rc == 0 && !a->agent && !(a->agent = rv_str_dup(rv_str_of(name))))
        rc = RV_FAIL(err, RV_E_NOMEM, "read a request");
    if (rc == 0)
        rc = take_session(c, a, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-reeve-events", &events, err);
    if (rc < 0)
        return rc;
    a->opts.is_whole = !a->req.stream;
    a->opts.tells_events = events != NULL;
    free(events);
    rc = check_agent(c, a, err);
    if (rc == RV_E_NOT_FOUND) {
        rv_err *cause = rv_err_steal(err);
        const char *hint = rv_err_hint_text(cause);
        rc = RV_FAIL(err, rc, "the model \"%.100s\" does not exist", a->agent);
        bool is_near = hint && strncmp(hint, "did you mean", 12) == 0; /* the others tell of the command line */
        rv_err_set_hint(err, "%s%sGET /v1/models lists those that do", is_near ? hint : "", is_near ? "; " : "");
        rv_err_free(cause);
    }
    if (rc == 0)
        rc = check_new(a, err);
    if (rc == 0 && a->req.previous_response_id)
        rc = go_on_from(c, a, err);
    if (rc < 0 || (a->session && !a->req.previous_response_id))
        return rc;
    if (a->req.system.len > 0 && !(a->section = rv_str_dup(rv_buf_str(&a->req.system))))
        return RV_FAIL(err, RV_E_NOMEM, "read a request");
    a->keeps_history =
        !a->session && a->req.has_message && a->req.history && json_object_array_length(a->req.history) > 0;
    return 0;
}

int srv_chat_openai(struct srv_call *c, rv_err **err)
{
    struct srv_turn_ask *a;
    int rc = new_ask(c, RV_PROTOCOL_OPENAI, &a, err);

    if (rc == 0)
        rc = ask_model(c, a, err);
    return rc < 0 || c->is_refused || a->model_run ? rc : srv_chat_keep(c, a, err);
}

int srv_chat_responses(struct srv_call *c, rv_err **err)
{
    struct srv_turn_ask *a;
    int rc = new_ask(c, RV_PROTOCOL_RESPONSES, &a, err);

    if (rc == 0)
        rc = ask_model(c, a, err);
    return rc < 0 || c->is_refused || a->model_run ? rc : srv_chat_keep(c, a, err);
}

/* --- REMLight --- */

int srv_chat_remlight(struct srv_call *c, rv_err **err)
{
    struct srv_turn_ask *a;
    int rc = new_ask(c, RV_PROTOCOL_REMLIGHT, &a, err);

    if (rc < 0)
        return rc;
    rc = c->n_args > 0 ? srv_call_dup_arg(c, 0, &a->session, err) : take_session(c, a, err);
    if (rc == 0)
        rc = first_header(c, "x-agent-schema", "x-agent-schema-name", &a->agent, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-model-name", &a->model, err);
    if (rc == 0 && !a->model && a->req.model && strchr(a->req.model, ':') &&
        !(a->model = rv_str_dup(rv_str_of(a->req.model))))
        rc = RV_FAIL(err, RV_E_NOMEM, "read a request");
    if (rc < 0)
        return rc;
    a->opts.is_whole = !a->req.stream;
    a->opts.tells_metadata = true;
    rc = check_agent(c, a, err);
    if (rc == 0)
        rc = check_new(a, err);
    return rc < 0 ? rc : srv_chat_keep(c, a, err);
}

void srv_chat_begin(struct srv_call *c)
{
    struct srv_turn_ask *a = c->made;

    if (c->free_made != free_ask) { /* it came before */
        srv_rejoins_ask(c->server->rejoins, c, c->made);
        return;
    }
    if (a->model_run) {
        const struct srv_follow_ask ask = *a->model_run;
        a->model_run->told = NULL; /* it is taken; the call, and a with it, may be gone then */
        srv_follows_ask(c->server->follows, c, &ask);
        return;
    }
    c->made = NULL;
    srv_turns_ask(c->server->turns, c, a);
}

/* --- the agents as models --- */

struct models {
    struct srv_call *c;
    rv_jw *w;
    const char *wanted; /* NULL: all */
    size_t n;
};

static void write_model(struct models *m, const char *name)
{
    m->n++;
    rv_jw_obj(m->w);
    rv_jw_kv_text(m->w, "id", name);
    rv_jw_kv_text(m->w, "object", "model");
    rv_jw_kv_int(m->w, "created", 0);
    rv_jw_kv_text(m->w, "owned_by", "reeve");
    rv_jw_obj_end(m->w);
}

static int take_model(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                      rv_err **err)
{
    struct models *m = self;

    (void)found;
    (void)err;
    if (!fault && (!m->wanted || strcmp(m->wanted, name) == 0))
        write_model(m, name);
    return 0;
}

static int take_pipeline(void *self, const char *name, rv_err **err)
{
    struct models *m = self;
    char id[256];

    (void)err;
    if ((size_t)snprintf(id, sizeof id, SRV_PIPELINE "%s", name) < sizeof id &&
        (!m->wanted || strcmp(m->wanted, id) == 0))
        write_model(m, id);
    return 0;
}

/* Agents, and for those who may start runs the pipelines. */
static int each_model(struct models *m, rv_err **err)
{
    struct srv_call *c = m->c;
    struct rv_refusal refusal;
    int rc = rv_agents_list(c->handles->sources.agents, &c->app.scope, take_model, m, err);

    if (rc == 0 && rv_identity_needs(&c->who, RV_SCOPE_RUNS_WRITE, &refusal) == 0)
        rc = rv_app_list_pipelines(c->server->opts->pipelines, take_pipeline, m, err);
    return rc;
}

int srv_models(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);
    struct models m = {.c = c, .w = &w};

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "object", "list");
    rv_jw_key(&w, "data");
    rv_jw_arr(&w);
    int rc = each_model(&m, err);
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    return rc;
}

int srv_model(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);
    struct models m = {.c = c, .w = &w, .wanted = c->args[0]};
    int rc = each_model(&m, err);

    if (rc == 0 && m.n == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the model \"%.100s\" does not exist", c->args[0]);
    return rc;
}
