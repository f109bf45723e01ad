/* What a run did as lines of text, for a comparison with another run: what it was asked, its route, each request to a
 * model with its answer, each call of a tool, each output. Ids and moments are left out: they differ always. */
#include "coreengine/app/past.h"

#include <stdlib.h>
#include <string.h>

#define INDENT "  "

struct story {
    const struct rv_pipeline *pipeline;
    rv_buf steps, route;
    int64_t *visits; /* of each stage; owned */
};

/* --- lines --- */

/* A text below a line of its own. */
static void put_text(rv_buf *b, rv_str text)
{
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t stop = end ? (size_t)(end - text.ptr) : text.len;
        rv_buf_puts(b, INDENT INDENT);
        rv_buf_add(b, text.ptr + at, stop - at);
        rv_buf_putc(b, '\n');
        at = stop + 1;
    }
}

static void put_value(rv_buf *b, json_object *value)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (json_object_is_type(value, json_type_string))
        rv_buf_add_str(&text, rv_json_str(value));
    else
        rv_json_write_pretty(value, &text);
    put_text(b, rv_buf_str(&text));
    rv_buf_fini(&text);
}

/* A JSON text, or whatever it is. */
static void put_json(rv_buf *b, rv_str json)
{
    json_object *value = NULL;

    int rc = rv_app_read_event(
        json, &value, RV_CODE_ONLY("text that is not JSON is shown as it is; want of memory fails the buffer"));
    if (rc == 0)
        put_value(b, value);
    else if (rc != RV_E_NOMEM)
        put_text(b, json);
    else if (b->rc == 0)
        b->rc = rc;
    json_object_put(value);
}

static void put_usage(rv_buf *b, const struct rv_usage *u)
{
    rv_buf_printf(b, "%lld in, %lld out", (long long)u->input_tokens, (long long)u->output_tokens);
    if (u->cost_micro_usd)
        rv_buf_printf(b, ", $%.6f", (double)u->cost_micro_usd / 1e6);
}

static void put_stage(struct story *s, const struct rv_effect *e, rv_buf *b)
{
    rv_buf_puts(b, e->label ? e->label : e->stage >= 0 ? s->pipeline->agents[e->stage].name : "the run");
    if (e->index >= 0)
        rv_buf_printf(b, "[%lld]", (long long)e->index);
    if (e->origin)
        rv_buf_printf(b, " (%s)", e->origin->agent);
}

/* --- steps --- */

static void put_request(struct story *s, const struct rv_effect *e)
{
    static const char *const parts[] = {"system", "examples", "history", "prompt", "attachments", "messages"};
    const char *provider = NULL;
    json_object *request = NULL, *part = NULL, *tools;
    rv_buf *b = &s->steps;

    put_stage(s, e, b);
    rv_buf_puts(b, " asks ");
    int rc = e->request
                 ? rv_app_read_event(
                       (rv_str){e->request, e->request_len}, &request,
                       RV_CODE_ONLY("an unreadable request is shown by its name; want of memory fails the buffer"))
                 : RV_E_INVALID;
    if (rc < 0) {
        rv_buf_printf(b, "%s\n", e->name);
        if (rc == RV_E_NOMEM && b->rc == 0)
            b->rc = rc;
        return;
    }
    const char *model = rv_json_text_or(request, "model", "");
    if (rv_json_get_text(request, "provider", &provider))
        rv_buf_printf(b, "%s%s%s\n", provider, model[0] ? ":" : "", model);
    else
        rv_buf_printf(b, "%s\n", e->name);
    for (size_t i = 0; i < RV_COUNT(parts); i++) {
        if (!json_object_object_get_ex(request, parts[i], &part) || !part ||
            (json_object_is_type(part, json_type_array) && json_object_array_length(part) == 0))
            continue;
        rv_buf_printf(b, INDENT "%s\n", parts[i]);
        put_value(b, part);
    }
    tools = rv_json_get_arr(request, "tools");
    for (size_t i = 0; tools && i < json_object_array_length(tools); i++)
        if (rv_json_get_text(json_object_array_get_idx(tools, i), "name", &model))
            rv_buf_printf(b, INDENT "may call %s\n", model);
    json_object_put(request);
}

static void put_answer(struct story *s, const struct rv_effect *e, const struct rv_event *ev, json_object *told)
{
    struct rv_app_spent spent;
    rv_buf *b = &s->steps;

    put_stage(s, e, b);
    rv_buf_puts(b, ev->failed ? " fails: " : " is answered: ");
    rv_app_spent_read(told, &spent);
    put_usage(b, &spent.usage);
    rv_buf_putc(b, '\n');
    if (ev->kind == RV_EVENT_LLM_DONE)
        put_text(b, ev->failed ? ev->error : ev->reply);
}

static void put_tool_result(struct story *s, json_object *told)
{
    static const char *const parts[] = {"result", "error"};
    json_object *part = NULL;
    rv_buf *b = &s->steps;

    const char *name = rv_json_text_or(told, "tool", rv_json_text_or(told, "name", "?"));
    const char *status = rv_json_text_or(told, "status", "?");
    rv_buf_printf(b, "%s: %s\n", name, status);
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        if (json_object_object_get_ex(told, parts[i], &part) && part)
            put_value(b, part);
}

static void put_end(struct story *s, const struct rv_effect *e, json_object *told)
{
    const char *next = NULL, *error = NULL;
    json_object *output = NULL;
    rv_buf *b = &s->steps;

    const char *status = rv_json_text_or(told, "status", "?");
    put_stage(s, e, b);
    rv_buf_printf(b, ", visit %lld: %s", (long long)e->visit, status);
    if (rv_json_get_text(told, "next_stage", &next))
        rv_buf_printf(b, " -> %s", next);
    rv_buf_putc(b, '\n');
    if (rv_json_get_text(told, "error", &error))
        put_text(b, rv_str_of(error));
    if (json_object_object_get_ex(told, "output", &output) && output)
        put_value(b, output);
    rv_buf_puts(&s->route, s->route.len ? " -> " : "");
    put_stage(s, e, &s->route);
    if (!e->label && e->stage >= 0)
        s->visits[e->stage]++;
}

static int take_emit(struct story *s, const struct rv_effect *e, rv_str line, const struct rv_event *ev, rv_err **err)
{
    json_object *told = NULL;

    if (e->emit != RV_EMIT_LLM_RESULT && e->emit != RV_EMIT_TOOL_RESULT && e->emit != RV_EMIT_STAGE_COMPLETED)
        return 0;
    int rc = rv_app_read_event(line, &told, err);
    if (rc == 0 && e->emit == RV_EMIT_LLM_RESULT)
        put_answer(s, e, ev, told);
    else if (rc == 0 && e->emit == RV_EMIT_TOOL_RESULT)
        put_tool_result(s, told);
    else if (rc == 0)
        put_end(s, e, told);
    json_object_put(told);
    return rc;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct story *s = self;
    int rc = 0;

    (void)record;
    (void)run;
    for (size_t i = 0; ev && i < effects->n && rc == 0; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind == RV_EFFECT_EMIT) {
            rc = take_emit(s, e, rv_effect_text(effects, e), ev, err);
        } else if (e->kind == RV_EFFECT_CALL_LLM) {
            put_request(s, e);
        } else if (e->kind == RV_EFFECT_CALL_TOOL) {
            put_stage(s, e, &s->steps);
            rv_buf_printf(&s->steps, " calls %s\n", e->name);
            put_json(&s->steps, (rv_str){e->request, e->request_len});
        }
    }
    return rc == 0 ? rv_buf_check(&s->steps, "what a run did", err) : rc;
}

/* --- the whole --- */

static void put_head(struct story *s, const struct rv_app_past *p, rv_run *run, rv_buf *b)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(run));
    const struct rv_envelope_used used = rv_run_used(run);

    rv_buf_printf(b, "pipeline %s\nstatus %s", p->row.pipeline, rv_run_status_text(p->row.status));
    if (f->termination_reason)
        rv_buf_printf(b, ": %s", f->termination_reason);
    rv_buf_puts(b, "\ninput\n");
    put_text(b, (rv_str){f->raw_input, f->raw_input_len});
    rv_buf_printf(b, "route %s\n", s->route.len ? rv_buf_cstr(&s->route) : "none");
    for (size_t i = 0; i < s->pipeline->n_agents; i++)
        if (s->visits[i])
            rv_buf_printf(b, "visits of %s: %lld\n", s->pipeline->agents[i].name, (long long)s->visits[i]);
    rv_buf_printf(b, "model calls: %lld, ", (long long)used.usage.calls);
    put_usage(b, &used.usage);
    rv_buf_putc(b, '\n');
}

static int put_outputs(const rv_envelope *env, rv_buf *b, rv_err **err)
{
    json_object *outputs = NULL;

    int rc = rv_envelope_build_outputs(env, &outputs, err);
    if (rc < 0)
        return rc;
    json_object_object_foreach (outputs, key, value) {
        rv_buf_printf(b, "output %s\n", key);
        put_value(b, value);
    }
    json_object_put(outputs);
    return 0;
}

int rv_app_transcript_write(rv_store *store, const struct rv_app_past *p, rv_buf *b, rv_err **err)
{
    struct story s = {.pipeline = rv_app_past_pipeline(p),
                      .steps = RV_BUF_INIT(RV_APP_MAX_TEXT),
                      .route = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    struct rv_replayed replayed = {0};
    int rc = 0;

    s.visits = calloc(s.pipeline->n_agents + 1, sizeof *s.visits);
    if (!s.visits)
        return RV_FAIL(err, RV_E_NOMEM, "read run \"%s\"", p->row.id);
    rc = rv_app_past_replay(store, p, &(struct rv_app_replay_opts){.on_step = on_step, .self = &s}, &replayed, err);
    bool is_named = rc < 0; /* the replay names the run */
    if (rc == 0)
        rc = rv_buf_check(&s.route, "the route of a run", err);
    if (rc == 0) {
        const rv_envelope *env = rv_run_envelope(replayed.run);
        put_head(&s, p, replayed.run, b);
        rv_buf_add_str(b, rv_buf_str(&s.steps));
        rc = put_outputs(env, b, err);
        rv_replayed_fini(&replayed);
    }
    free(s.visits);
    rv_buf_fini(&s.steps);
    rv_buf_fini(&s.route);
    if (rc == 0)
        return rv_buf_check(b, "what a run did", err);
    return is_named ? rc : RV_WRAP(err, rc, "read run \"%s\"", p->row.id);
}
