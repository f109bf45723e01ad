/* An agent that was asked by another one: a visit within the visit. It has an envelope, a pipeline of one stage and a
 * context of its own; calls, events, money and the journal are the run's, so it is replayed, recovered and bounded like
 * everything else. What it does is labelled with its origin. */
#include "coreengine/agent/tools_internal.h"
#include "coreengine/telemetry/telemetry.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PROMPT RV_JSON_MAX_BYTES

/* What lives as long as the run, since effects and observers refer to it. */
struct kept_origin {
    struct kept_origin *next;
    struct rv_origin origin;
    char *agent, *call_id;
};
struct kept_pipeline {
    struct kept_pipeline *next;
    struct rv_pipeline *pipeline; /* owned */
    char *name, *document, *role; /* owned */
    int structured, child_text;
};
struct rv_delegated {
    struct kept_origin *origins;
    struct kept_pipeline *pipelines;
};

static void origin_free(struct kept_origin *o)
{
    free(o->agent);
    free(o->call_id);
    free(o);
}

static void pipeline_free(struct kept_pipeline *k)
{
    rv_pipeline_free(k->pipeline);
    free(k->name);
    free(k->document);
    free(k->role);
    free(k);
}

void rv_visit_shared_fini(struct rv_visit_shared *s)
{
    struct rv_delegated *d = s->delegated;

    rv_err_free(s->failure);
    s->failure = NULL;
    free(s->spare);
    s->spare = NULL;
    if (!d)
        return;
    for (struct kept_origin *o = d->origins, *next; o; o = next) {
        next = o->next;
        origin_free(o);
    }
    for (struct kept_pipeline *k = d->pipelines, *next; k; k = next) {
        next = k->next;
        pipeline_free(k);
    }
    free(d);
    s->delegated = NULL;
}

void agent_child_free(struct child *c)
{
    if (!c)
        return;
    rv_visit_free(c->visit);
    rv_envelope_free(c->env);
    free(c);
}

/* --- what is kept --- */

static struct rv_delegated *delegated(const rv_visit *v)
{
    struct rv_visit_shared *root = rv_visit_root(v->shared);

    if (!root->delegated)
        root->delegated = calloc(1, sizeof *root->delegated);
    return root->delegated;
}

static struct rv_origin *keep_origin(struct rv_delegated *d, const char *agent, rv_str call_id)
{
    struct kept_origin *o = calloc(1, sizeof *o);

    if (!o)
        return NULL;
    o->agent = rv_str_dup(rv_str_of(agent));
    o->call_id = rv_str_dup(call_id);
    if (!o->agent || !o->call_id) {
        origin_free(o);
        return NULL;
    }
    o->origin.agent = o->agent;
    o->origin.parent_tool_call_id = o->call_id;
    o->next = d->origins;
    d->origins = o;
    return &o->origin;
}

static bool is_same(const struct kept_pipeline *k, const struct rv_delegate *want)
{
    return strcmp(k->name, want->name) == 0 && strcmp(k->role, want->model_role) == 0 &&
           k->structured == want->structured && k->child_text == want->child_text &&
           rv_str_is(want->document, k->document);
}

/* The same agent asked again has the same pipeline. RV_E_NOMEM in cause, or what is wrong with the document. */
static int pipeline_of(struct rv_delegated *d, const struct rv_pipeline *of, const struct rv_delegate *want,
                       const struct rv_pipeline **out, rv_err **cause)
{
    struct kept_pipeline *k = d->pipelines;

    while (k && !is_same(k, want))
        k = k->next;
    if (k) {
        *out = k->pipeline;
        return 0;
    }
    k = calloc(1, sizeof *k);
    if (k) {
        k->name = rv_str_dup(rv_str_of(want->name));
        k->document = rv_str_dup(want->document);
        k->role = rv_str_dup(rv_str_of(want->model_role));
        k->structured = want->structured;
        k->child_text = want->child_text;
    }
    if (!k || !k->name || !k->document || !k->role) {
        if (k)
            pipeline_free(k);
        return RV_FAIL(cause, RV_E_NOMEM, "ask an agent");
    }
    int rc = rv_pipeline_delegate(of, want, &k->pipeline, cause);
    if (rc < 0) {
        pipeline_free(k);
        return rc;
    }
    k->next = d->pipelines;
    d->pipelines = k;
    *out = k->pipeline;
    return 0;
}

/* --- beginning --- */

/* Keys of its calls and ids of its rows follow from the envelope's id. So it has one of its own among all agents that
 * are asked in a run: calls of two stages may have the same id, and so may two steps of a plan. */
static int new_envelope(const rv_visit *v, size_t index, const struct ask *ask, rv_envelope **out, rv_err **err)
{
    char scratch[48];
    rv_buf prompt = RV_BUF_INIT(MAX_PROMPT), name = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_buf_add_str(&prompt, ask->text);
    if (ask->data) {
        rv_buf_puts(&prompt, "\n\nInput data: ");
        rv_json_write_spaced(ask->data, &prompt);
    }
    if (v->place.path && v->place.path[0])
        rv_buf_printf(&name, "%s/", v->place.path);
    rv_buf_printf(&name, "%s/%lld/%zu/%.*s", v->agent->name, (long long)v->visit_no, v->model.steps_before + index,
                  RV_STR_ARG(agent_step_id(v, index, scratch, sizeof scratch)));
    int rc = rv_buf_check(&prompt, "the question to an agent", err);
    if (rc == 0)
        rc = rv_buf_check(&name, "the id of a tool call", err);
    if (rc == 0)
        rc = rv_envelope_derive(v->env, rv_buf_str(&prompt), rv_buf_str(&name), v->now_us, out, err);
    rv_buf_fini(&prompt);
    rv_buf_fini(&name);
    json_object *trace = rv_envelope_metadata(v->env, RV_STR_LIT(RV_TRACE_PARENT), NULL);
    if (rc == 0 && trace && (rc = rv_envelope_set_metadata(*out, RV_STR_LIT(RV_TRACE_PARENT), trace, err)) < 0) {
        rv_envelope_free(*out);
        *out = NULL;
    }
    return rc;
}

static void set_up(rv_visit *v, struct child *c, const struct ask *ask, const struct rv_pipeline *p,
                   const struct rv_origin *origin)
{
    struct rv_visit_shared *root = rv_visit_root(v->shared);
    const struct rv_conversation *mine = v->shared->conversation;

    c->timeout_us = ask->timeout_us > 0 ? ask->timeout_us : root->pipeline->delegation_timeout_ms * RV_US_PER_MS;
    c->shared = (struct rv_visit_shared){.root = root,
                                         .up = v->shared,
                                         .is_beside = visit_is_beside(v),
                                         .run_id = v->shared->run_id ? v->shared->run_id
                                                                     : rv_envelope_fields(v->env)->envelope_id,
                                         .pipeline = p,
                                         .catalog = root->catalog,
                                         .rules = root->rules,
                                         .is_hidden = agent_visible_hides_child(v),
                                         .origin = origin,
                                         .asking_stage = visit_stage(v),
                                         .deadline_us = v->now_us + c->timeout_us};
    if (v->deadline_us < c->shared.deadline_us) { /* who asks has no more time than that */
        c->shared.deadline_us = v->deadline_us;
        c->timeout_us = v->deadline_us - v->now_us;
    }
    if (!mine)
        return;
    c->conversation = *mine;
    c->conversation.context = rv_context_child(&mine->context, ask->agent, NULL);
    c->conversation.has_routing = false;
    c->conversation.n_sections = 0; /* they were for whom the request was sent to */
    c->shared.conversation = &c->conversation;
}

/* Fail: an agent without a tool that its document names would work badly, without a visible reason. */
static int check_tools(const rv_visit *v, const struct rv_pipeline *p, rv_err **cause)
{
    const struct rv_str_list *tools = &p->agents[0].tools.allowed;

    for (size_t i = 0; i < tools->n; i++)
        if (!visit_tool(v, rv_str_of(rv_agent_callee(&p->agents[0], tools->items[i]))))
            return RV_FAIL(cause, RV_E_NOT_FOUND, "it names tool \"%s\", which nothing has", tools->items[i]);
    return 0;
}

static int begin(rv_visit *v, size_t index, const struct ask *ask, struct child **out, struct rv_effects *fx,
                 rv_err **cause)
{
    char scratch[48];
    rv_str call_id = agent_step_id(v, index, scratch, sizeof scratch);
    const struct rv_delegate want = {.name = ask->agent,
                                     .document = ask->document,
                                     .structured = ask->structured,
                                     .model_role = visit_role(v),
                                     .child_text = v->agent->session.child_text};
    struct rv_delegated *d = delegated(v);
    const struct rv_pipeline *p = NULL;
    struct rv_origin *origin = d ? keep_origin(d, ask->agent, call_id) : NULL;
    struct child *c = origin ? calloc(1, sizeof *c) : NULL;

    if (!c)
        return RV_FAIL(cause, RV_E_NOMEM, "ask agent \"%s\"", ask->agent);
    origin->parent = v->shared->origin;
    origin->rules = v->shared->rules;
    origin->depth = origin->parent ? origin->parent->depth + 1 : 1;
    int rc = pipeline_of(d, v->shared->pipeline, &want, &p, cause);
    if (rc == 0)
        rc = check_tools(v, p, cause);
    if (rc == 0)
        rc = new_envelope(v, index, ask, &c->env, cause);
    if (rc == 0) {
        set_up(v, c, ask, p, origin);
        rc = rv_visit_begin(&c->shared, &(struct rv_visit_start){.env = c->env}, v->now_us, fx, &c->visit, cause);
    }
    if (rc < 0) {
        agent_child_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

/* What was found wrong, without what it was found in: the text names that already. */
static const rv_err *root_of(const rv_err *err)
{
    while (rv_err_cause(err))
        err = rv_err_cause(err);
    return err;
}

int agent_child_begin(rv_visit *v, size_t index, rv_str answer, struct child_begun *begun, struct rv_effects *out,
                      rv_err **err)
{
    const struct rv_json_opts opts = {.what = "the document of an agent"};
    json_object *json = NULL, *text = NULL;
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_err *cause = NULL;
    struct ask ask;

    int rc = rv_json_parse(answer, &opts, &json, &cause);
    if (rc == 0 && json_object_is_type(json, json_type_object))
        json_object_object_get_ex(json, "agent_document", &text);
    if (rc == 0 && json_object_is_type(text, json_type_string) &&
        agent_ask_allowed(v, agent_step_parameters(v, index), &ask, &why)) {
        ask.document = rv_json_str(text);
        rc = begin(v, index, &ask, &begun->child, out, &cause);
        if (rc < 0 && !rv_err_is(cause, RV_E_NOMEM)) {
            rv_buf_printf(&why, "agent \"%s\" %s be asked: %s", ask.agent, visit_cannot(v),
                          rv_err_text(root_of(cause)));
            rc = rv_buf_check(&why, "why an agent is not asked", err);
            if (rc == 0)
                rc = agent_child_refuse(v, index, rv_buf_cstr(&why), &begun->entry, err);
            rv_err_free(cause);
            cause = NULL;
        }
    }
    if (cause && rv_err_is(cause, RV_E_NOMEM)) {
        rc = RV_FAIL(err, RV_E_NOMEM, "ask an agent");
    } else if (cause) {
        rc = 0; /* no document: judged as any tool's answer */
    }
    rv_err_free(cause);
    rv_buf_fini(&why);
    json_object_put(json);
    return rc;
}

/* --- working --- */

int agent_child_recover(struct child *c, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    c->shared.deadline_us += gap_us < INT64_MAX - c->shared.deadline_us ? gap_us : 0;
    return rv_visit_is_done(c->visit) ? 0 : rv_visit_recover(c->visit, gap_us, out, err);
}

/* How a delegation ended. Borrowed. */
struct ending {
    const char *agent;        /* that was asked */
    const rv_visit *child;    /* its visit; NULL: it never began */
    const char *type, *fault; /* error type and text; fault NULL: it answered */
    int64_t ms;
};

/* The result of a delegation as models and rows have it; the caller's. */
static int result_map(const rv_visit *v, size_t index, const struct ending *e, json_object **out, rv_err **err)
{
    const char *asked = NULL, *error = e->fault;
    const rv_visit *child = e->child;
    bool structured = child && !error && child->agent->output.schema;
    json_object *text = NULL, *map = json_object_new_object();
    rv_buf text_response = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);

    if (!error && structured)
        rv_json_write(child->output, &text_response);
    else if (!error && child->model.visible.len > 0)
        rv_buf_add_str(&text_response, rv_buf_str(&child->model.visible));
    int rc = map ? rv_buf_check(&text_response, "the answer of an agent", err)
                 : RV_FAIL(err, RV_E_NOMEM, "end a delegation");
    if (!error && !structured)
        json_object_object_get_ex(child->output, "response", &text);
    bool has_asked = !error && v->shared->rules >= RV_RULES_2 &&
                     rv_json_get_text(agent_step_parameters(v, index), "input_text", &asked); /* remlight 8 */
    if (rc == 0)
        rc = RV_SET(map, err, RV_M_TEXT("status", error ? "error" : "success"),
                    structured ? RV_M_OF(VALUE, "output", child->output) : RV_M_STR("output", rv_json_str(text)),
                    RV_M_STR("text_response", rv_buf_str(&text_response)), RV_M_TEXT("agent_schema", e->agent),
                    RV_M_IF(has_asked, RV_M_TEXT("input_text", asked)), RV_M_IF(error, RV_M_TEXT("error", error)),
                    RV_M_IF(!error, RV_M_BOOL("is_structured_output", structured)),
                    RV_M_IF(!error, RV_M_OF(VALUE, "chained_tool_result", child->chained)));
    rv_buf_fini(&text_response);
    if (rc < 0) {
        json_object_put(map);
        return rc;
    }
    *out = map;
    return 0;
}

/* Takes map: an entry of `results`. */
static int entry_of(rv_visit *v, size_t index, const struct ending *e, json_object *map, json_object **entry,
                    rv_err **err)
{
    char scratch[48];
    struct rv_step_result r = {.step_id = agent_step_id(v, index, scratch, sizeof scratch),
                               .tool = agent_step_tool(v, index),
                               .parameters = agent_step_parameters(v, index),
                               .execution_ms = e->ms};
    json_object *standard = json_object_new_object(), *fault = NULL;
    int rc = standard ? 0 : RV_FAIL(err, RV_E_NOMEM, "end a delegation");

    if (rc == 0)
        rc = rv_json_set_text(standard, "status", e->fault ? "error" : "success", err);
    if (rc == 0 && e->fault) {
        fault = json_object_new_object();
        rc = rv_json_set_take(standard, "error", fault, err);
        if (rc == 0)
            rc = RV_SET(fault, err, RV_M_TEXT("error_type", e->type), RV_M_TEXT("message", e->fault));
    }
    if (rc == 0)
        rc = rv_json_set_take(standard, "data", map, err);
    else
        json_object_put(map);
    r.standard = standard;
    if (rc == 0)
        rc = rv_tool_build_step_result(&r, entry, err);
    if (rc == 0 && (rc = planned_code(v, *entry, NULL, err)) < 0) {
        json_object_put(*entry);
        *entry = NULL;
    }
    json_object_put(standard);
    return rc;
}

/* The outcome of the call of an agent, as an entry of `results`. */
static int result_entry(rv_visit *v, size_t index, const struct ending *e, json_object **entry, rv_err **err)
{
    json_object *map = NULL;
    int rc = result_map(v, index, e, &map, err);

    return rc < 0 ? rc : entry_of(v, index, e, map, entry, err);
}

int agent_child_refuse(rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err)
{
    json_object *parameters = agent_step_parameters(v, index);
    const char *agent = "";

    if (parameters && !rv_json_get_text(parameters, "agent_name", &agent))
        agent = "";
    const struct ending e = {.agent = agent, .type = rv_error_agent, .fault = why};
    return result_entry(v, index, &e, entry, err);
}

/* Why it failed, or NULL; *type is then the error's. The text is in `why`. */
static const char *fault_of(const struct child *c, rv_buf *why, const char **type)
{
    const rv_visit *child = c->visit;
    const char *agent = child->shared->origin->agent;

    *type = rv_error_agent;
    if (child->result.end == RV_VISIT_OK)
        return NULL;
    if (child->result.end == RV_VISIT_STAYED) {
        struct rv_interrupt in = rv_envelope_interrupt(c->env);
        const char *ask = in.question ? in.question : in.message;
        rv_buf_printf(why, "agent \"%s\" needs a person, and an agent that was asked %s wait for one: %s", agent,
                      visit_cannot(child), ask ? ask : "it asks for an answer");
    } else if (rv_error_is(child->error_type, rv_error_timeout) && child->now_us >= c->shared.deadline_us) {
        *type = rv_error_timeout;
        rv_buf_printf(why, "Agent '%s' timed out after %llds", agent,
                      (long long)((c->timeout_us + RV_US_PER_S - 1) / RV_US_PER_S));
    } else {
        rv_buf_puts(why, child->error_text ? child->error_text : "it failed");
    }
    return why->rc < 0 ? "it failed" : rv_buf_cstr(why);
}

/* --- its end --- */

/* Rows, usage and calls are the asking visit's from now on. */
static int roll_up(rv_visit *v, size_t index, struct child *c, rv_err **err)
{
    rv_visit *child = c->visit;
    struct rv_usage used = child->model.usage;
    struct rv_turn *rows = child->rows;
    char scratch[48];

    rv_usage_add(&used, &child->model.child_usage);
    rv_usage_add(&v->model.child_usage, &used);
    rv_envelope_add_usage(v->env, &used);
    v->llm_calls += rv_envelope_fields(c->env)->llm_call_count;
    child->rows = NULL;
    return rows ? agent_rows_keep_child(&v->model, agent_step_id(v, index, scratch, sizeof scratch), rows, err) : 0;
}

int agent_child_end(rv_visit *v, size_t index, struct child *c, int64_t ms, json_object **entry, rv_err **err)
{
    struct ending e = {.agent = c->visit->shared->origin->agent, .child = c->visit, .ms = ms};
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    e.fault = fault_of(c, &why, &e.type);

    int rc = why.rc == RV_E_NOMEM ? rv_buf_check(&why, "why an agent failed", err) : roll_up(v, index, c, err);
    if (rc == 0)
        rc = result_entry(v, index, &e, entry, err);
    if (rc == 0)
        agent_visible_child(v, c->visit, e.fault != NULL);
    rv_buf_fini(&why);
    return rc;
}

int agent_child_give_up(rv_visit *v, size_t index, struct child *c, json_object *partials, struct rv_effects *out,
                        rv_err **err)
{
    int rc = rv_visit_is_done(c->visit)
                 ? 0
                 : rv_visit_cancel(c->visit, "the agent that asked was ended", partials, v->now_us, out, err);

    if (rc == 0)
        rc = roll_up(v, index, c, err);
    if (rc == 0)
        agent_visible_child(v, c->visit, true);
    return rc;
}
