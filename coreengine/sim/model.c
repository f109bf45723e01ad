/* What a model answers: mostly an object that fits, in more or less prose; at times something else, or nothing. It asks
 * for tools, mostly those that it was offered, with arguments that fit; its output may be such a call, too. */
#include "coreengine/sim/sim_internal.h"
#include "envelope/envelope.h"

#include <stdio.h>
#include <string.h>

#define MAX_AT_ONCE   4 /* calls of one made-up reply: enough that calls overtake each other, and runs stay short */
#define IN_TEN_ASKS   4 /* of ten replies that could ask for tools */
#define IN_TEN_AGENT  9 /* tools on a list that are passed over for ask_agent */
#define IN_TEN_OUTPUT 2 /* of ten that are to fit a schema */

struct asking {
    struct sim_seed *s;
    const struct rv_effect *e;
    json_object *tools, *output; /* of the request; may be NULL */
    struct sim_rng *r;
    rv_jw w;
    size_t n; /* calls so far */
};

static const char *name_of(const struct asking *a)
{
    const struct rv_agent *stage = &a->e->pipeline->agents[a->e->agent];

    return a->e->origin ? a->e->origin->agent : stage->declared.doc ? stage->declared.doc->name : stage->name;
}

static int write_arguments(struct asking *a, const char *name, json_object *schema, rv_buf *text, rv_err **err)
{
    static const char *const wrong[] = {"{\"n\":", "[1]", "", "{\"unasked\":true}"};
    json_object *v = NULL;
    uint32_t how = sim_below(a->r, 12);
    bool fits = false;

    if (how > 0 && how <= RV_COUNT(wrong)) {
        rv_buf_puts(text, wrong[how - 1]);
        return rv_buf_check(text, "arguments", err);
    }
    if (strcmp(name, SIM_ASK_AGENT) == 0)
        return sim_ask_arguments(a->s, name_of(a), a->r, text, err);
    int rc = schema ? sim_value(schema, NULL, a->r, &v, &fits, err) : 0;
    if (rc == 0 && json_object_is_type(v, json_type_object))
        rv_json_write(v, text);
    else if (rc == 0)
        rv_buf_puts(text, "{}");
    json_object_put(v);
    return rc < 0 ? rc : rv_buf_check(text, "arguments", err);
}

/* Most providers count, some make ids that are one of a kind, some repeat them, some have none. */
static void put_id(struct asking *a, char *id, size_t size)
{
    uint32_t how = sim_below(a->r, 12);

    if (how == 11)
        id[0] = '\0';
    else if (how >= 9)
        snprintf(id, size, "ask:0");
    else if (how >= 6)
        snprintf(id, size, "toolu_%08x", sim_below(a->r, UINT32_MAX));
    else
        snprintf(id, size, "call_%zu", a->n + 1);
}

static int write_call(struct asking *a, const char *name, json_object *schema, rv_err **err)
{
    rv_buf arguments = RV_BUF_INIT(SIM_MAX_TEXT);
    char id[24];

    put_id(a, id, sizeof id);
    int rc = write_arguments(a, name, schema, &arguments, err);
    rv_jw_obj(&a->w);
    rv_jw_kv_text(&a->w, "id", id);
    rv_jw_kv_text(&a->w, "name", name);
    rv_jw_kv_str(&a->w, "arguments", (rv_str){rv_buf_cstr(&arguments), arguments.len});
    rv_jw_obj_end(&a->w);
    rv_buf_fini(&arguments);
    a->n++;
    return rc;
}

/* One of them; a stage that may ask agents mostly does. */
static json_object *choose(struct asking *a)
{
    size_t n = json_object_array_length(a->tools);
    const char *name = NULL;

    for (size_t i = 0; i < n && !a->e->origin && !a->r->is_plain && sim_below(a->r, 10) < IN_TEN_AGENT; i++) {
        json_object *tool = json_object_array_get_idx(a->tools, i);
        if (rv_json_get_text(tool, "name", &name) && strcmp(name, SIM_ASK_AGENT) == 0)
            return tool;
    }
    return json_object_array_get_idx(a->tools, sim_below(a->r, (uint32_t)n));
}

static int call_tool(struct asking *a, rv_err **err)
{
    json_object *tool = choose(a);
    const char *name = rv_json_text_or(tool, "name", "");

    if (sim_below(a->r, 12) == 11)
        name = "no_such_tool";
    return write_call(a, name, rv_json_get_obj(tool, "parameters"), err);
}

static int sim_tool_calls(struct sim_seed *s, const struct rv_effect *e, json_object *request, struct sim_rng *r,
                          struct sim_outcome *o, rv_err **err)
{
    struct asking a = {
        s, e, rv_json_get_arr(request, "tools"), rv_json_get_obj(request, "output"), r, rv_jw_on(&o->calls), 0};
    bool hands_over = a.output && !r->is_plain && sim_below(r, 10) < IN_TEN_OUTPUT;
    bool asks = a.tools && json_object_array_length(a.tools) > 0 && sim_below(r, 10) < IN_TEN_ASKS;
    int rc = 0;

    if (!asks && !hands_over)
        return 0;
    rv_jw_arr(&a.w);
    for (size_t i = 0, n = asks ? 1 + sim_below(r, MAX_AT_ONCE) : 0; rc == 0 && i < n; i++)
        rc = call_tool(&a, err);
    if (rc == 0 && hands_over)
        rc = write_call(&a, RV_OUTPUT_TOOL, rv_json_get_obj(a.output, "schema"), err);
    rv_jw_arr_end(&a.w);
    if (rc == 0)
        rc = rv_buf_check(&o->calls, "tool calls", err);
    o->llm.tool_calls = rv_buf_str(&o->calls);
    o->llm.finish = RV_FINISH_TOOL_CALLS;
    return rc;
}

/* --- the reply --- */

#define HUGE_REPLY ((size_t)20000) /* bytes; the limit itself is tested elsewhere, this is to be fast */

void sim_outcome_fail(struct sim_outcome *o, const char *type, bool retryable, const char *text)
{
    o->failed = true;
    o->error_type = type;
    o->retryable = retryable;
    rv_buf_clear(&o->text);
    rv_buf_puts(&o->text, text);
}

int sim_script_answer(struct sim_seed *s, const struct rv_effect *e, enum rv_script_kind kind, struct sim_outcome *o,
                      bool *found, rv_err **err)
{
    struct rv_script_call from = {.kind = kind,
                                  .stage = e->origin  ? e->origin->agent
                                           : e->label ? e->label
                                                      : sim_stage_name(s, e->stage),
                                  .index = e->index,
                                  .tool = kind == RV_SCRIPT_TOOL || kind == RV_SCRIPT_HOOK ? e->name : NULL,
                                  .visit = e->visit,
                                  .text = {e->request, e->request_len}};
    struct rv_script_reply reply;

    *found = false;
    if (!s->subject->script || (kind == RV_SCRIPT_TOOL && !rv_script_has_tool(s->subject->script, rv_str_of(e->name))))
        return 0;
    if (kind == RV_SCRIPT_HOOK && !rv_script_has_hook(s->subject->script, rv_str_of(e->name), from.stage))
        return 0;
    int rc = rv_script_next(s->subject->script, &from, &reply,
                            RV_CODE_ONLY("without an entry an answer is made up; want of memory is told below"));
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "ask the script");
    if (rc < 0)
        return 0; /* it has no entry for this call: one is made up */
    *found = true;
    if (reply.failed)
        sim_outcome_fail(o, reply.error_type, reply.retryable, reply.error ? reply.error : "");
    else
        rv_buf_add_str(&o->text, rv_buf_str(&reply.body));
    o->llm = reply.answer;
    rv_script_reply_fini(&reply);
    return rv_buf_check(&o->text, "scripted reply", err);
}

static void overloaded(struct sim_seed *s, struct sim_outcome *o)
{
    static const struct {
        const char *text;
        enum rv_llm_error kind;
        bool may_be_billed;
    } faults[] = {
        {"429: too many requests", RV_LLM_ERROR_RATE_LIMITED, false},
        {"529: overloaded", RV_LLM_ERROR_OVERLOADED, false},
        {"500: internal error", RV_LLM_ERROR_OVERLOADED, false},
        {"connection reset", RV_LLM_ERROR_CONNECTION, true},
        {"401: no such key", RV_LLM_ERROR_AUTH, false},
        {"400: prompt too long", RV_LLM_ERROR_CONTEXT_TOO_LONG, false},
    };
    size_t i = sim_draw(&s->tape, RV_COUNT(faults));

    sim_outcome_fail(o, rv_error_llm, rv_llm_error_is_retryable(faults[i].kind), faults[i].text);
    o->llm.error_kind = (int)faults[i].kind;
    o->llm.may_be_billed = faults[i].may_be_billed;
}

/* Text that holds no whole object, or not the one that was asked for. */
static void spoil(struct sim_rng *r, rv_buf *b)
{
    static const char *const others[] = {"",           "I cannot do that.",   "[1, 2]",    "null",
                                         "42",         "{\"unasked\": true}", "{\"a\": 1", "\"text\"",
                                         "{not json}", "\xff\xfe{}"};
    uint32_t how = sim_below(r, RV_COUNT(others) + 3);

    if (how < RV_COUNT(others)) {
        rv_buf_clear(b);
        rv_buf_puts(b, others[how]);
    } else if (how == RV_COUNT(others)) { /* very long, and cut off by its length */
        rv_buf_clear(b);
        rv_buf_puts(b, "{\"text\": \"");
        while (b->len < HUGE_REPLY)
            rv_buf_puts(b, "and so on, ");
    } else {
        rv_str cut = rv_utf8_cut(rv_buf_str(b), b->len / 2);
        rv_buf_truncate(b, cut.len);
    }
}

static void wrap(struct sim_rng *r, rv_buf *b)
{
    static const struct {
        const char *before, *after;
    } prose[] = {
        {"", ""},
        {"", ""},
        {"Sure! Here it is:\n```json\n", "\n```\nAnything else?"},
        {"I think {this} is best: ", ""},
        {"", "\n\nI hope that helps {}."},
    };
    size_t i = sim_below(r, RV_COUNT(prose));
    rv_buf whole = RV_BUF_INIT(SIM_MAX_TEXT);

    rv_buf_puts(&whole, prose[i].before);
    rv_buf_add_str(&whole, rv_buf_str(b));
    rv_buf_puts(&whole, prose[i].after);
    rv_buf_fini(b);
    *b = whole;
}

/* Of a stage of an inner run: what that pipeline looks at is not known here. */
static int inner_output(struct sim_rng *r, json_object **out, rv_err **err)
{
    json_object *any = NULL, *v = json_object_new_object();
    int rc = v ? sim_any(r, 0, &any, err) : RV_FAIL(err, RV_E_NOMEM, "make a reply");

    if (rc == 0)
        rc = rv_json_set_ref(v, "v", any, err);
    json_object_put(any);
    if (rc < 0)
        json_object_put(v);
    else
        *out = v;
    return rc;
}

static int good_text(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_buf *b, rv_err **err)
{
    const struct rv_agent *a = &e->pipeline->agents[e->agent];
    bool is_text = a->output.mode == RV_OUTPUT_TEXT, fits = false;
    json_object *v = NULL;
    int rc = 0;

    if (is_text)
        v = sim_words(r, 12);
    else if (a->output.schema)
        rc = sim_value(a->output.schema, NULL, r, &v, &fits, err);
    else if (e->origin)
        rc = sim_any(r, 0, &v, err);
    else if (e->label)
        rc = inner_output(r, &v, err);
    else
        rc = sim_output(s, e->stage, r, &v, err);
    if (rc < 0 || (!v && !a->output.schema)) /* a schema may be for null */
        return rc < 0 ? rc : RV_FAIL(err, RV_E_NOMEM, "make a reply");
    if (is_text)
        rv_buf_add_str(b, rv_json_str(v));
    else
        rv_json_write(v, b);
    json_object_put(v);
    if (!is_text)
        wrap(r, b);
    return rv_buf_check(b, "reply", err);
}

/* As many tokens as the texts may have, and not more than were asked for. */
static void take_tokens(const struct rv_effect *e, json_object *request, struct sim_outcome *o)
{
    json_object *options = rv_json_get_obj(request, "options");
    int64_t output = (int64_t)(o->text.len + o->calls.len) / 4;

    int64_t most = rv_json_int_or(options, "num_predict", 0);
    o->llm.has_usage = true;
    o->llm.usage.input_tokens = (int64_t)e->request_len / 4;
    o->llm.usage.output_tokens = output < most ? output : most;
}

static int reply(struct sim_seed *s, const struct rv_effect *e, bool spoils, struct sim_outcome *o, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "model request"};
    struct sim_rng r = sim_rng_of(sim_bits(&s->tape));
    json_object *request = NULL;
    bool found = false;

    int rc = rv_json_parse((rv_str){e->request, e->request_len}, &opts, &request, err);
    if (rc == 0)
        rc = sim_script_answer(s, e, RV_SCRIPT_MODEL, o, &found, err);
    if (rc == 0 && !found)
        rc = good_text(s, e, &r, &o->text, err);
    if (rc == 0 && !found)
        rc = sim_tool_calls(s, e, request, &r, o, err);
    if (rc == 0 && spoils && !o->failed)
        spoil(&r, &o->text);
    if (rc == 0 && !o->failed)
        take_tokens(e, request, o);
    json_object_put(request);
    return rc < 0 ? rc : rv_buf_check(&o->text, "reply", err);
}

int sim_model_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err)
{
    static const enum rv_sim_fault kinds[] = {RV_SIM_MODEL_ERROR, RV_SIM_MODEL_TIMEOUT, RV_SIM_MODEL_REPLY};
    size_t fault = sim_inject(s, kinds, RV_COUNT(kinds));

    if (e->origin && fault)
        s->tally->n_agent_faults++;
    if (fault == 1) {
        overloaded(s, o);
    } else if (fault == 2) {
        sim_outcome_fail(o, rv_error_timeout, true, "no answer in time");
        o->llm.error_kind = RV_LLM_ERROR_TIMEOUT;
        o->llm.may_be_billed = true;
    } else {
        return reply(s, e, fault == 3, o, err);
    }
    if (o->llm.may_be_billed && sim_draw(&s->tape, 2)) /* a part of the answer had arrived */
        rv_buf_puts(&o->partial, "It is said that a rope");
    return rv_buf_check(&o->text, "reply", err);
}
