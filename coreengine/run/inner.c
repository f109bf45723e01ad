/* A pipeline that runs as the work of a stage: a run of its own within the visit. Its calls, events and records are
 * those of the run around it, and its visits, model calls and money count there, too. It begins with nothing but its
 * inputs. When it has to wait for a person, the stage waits: the run around asks, and keeps the state of this one. */
#include "coreengine/run/work_kinds_internal.h"
#include "envelope/envelope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES  ((size_t)64 << 10) /* "stage[7]" of nested stages: names are short, levels few */
#define STATE_MAX_BYTES ((size_t)64 << 20) /* of an inner run: as RV_STATE_MAX_BYTES */

struct inner {
    rv_run *run;                    /* owned; has its envelope */
    char *path;                     /* owned: of all its visits */
    char *prefix;                   /* owned: the stages that lead to it */
    bool *scripted;                 /* owned: stages that a script answers for; NULL: none */
    rv_buf text;                    /* of the failure */
    bool is_refused;                /* what it had kept, or the answer of a person, does not fit: `text` says why */
    bool is_late;                   /* it was cancelled since the stage is out of time */
    struct rv_envelope_used before; /* counted in the run around it already, before this run waited for a person */
};

static const struct rv_agent *agent_of(const rv_work *w)
{
    return &w->shared->pipeline->agents[rv_visit_stage(w->visit)];
}

static void inner_free(rv_work *w)
{
    struct inner *in = w->inner;

    w->inner = NULL;
    if (!in)
        return;
    rv_run_free(in->run);
    free(in->path);
    free(in->prefix);
    free(in->scripted);
    rv_buf_fini(&in->text);
    free(in);
}

/* A slash keeps the stage apart from the name of the branch that it follows. */
int run_inner_path(const char *before, const char *stage, char **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(PATH_MAX_BYTES);
    size_t len = before ? strlen(before) : 0;
    bool follows_name = len > 0 && before[len - 1] != '/' && before[len - 1] != ']';

    rv_buf_printf(&text, "%s%s%s/", len > 0 ? before : "", follows_name ? "/" : "", stage);
    int rc = rv_buf_check(&text, "the path of an inner run", err);
    if (rc == 0)
        *out = rv_buf_steal(&text, NULL);
    rv_buf_fini(&text);
    return rc;
}

/* --- beginning --- */

/* What the id of the envelope follows from, and with it keys of calls and ids of questions. Work that is done once more
 * has others: a tool would take its calls for repetitions of the first ones. */
static void write_name(const rv_work *w, rv_buf *out)
{
    rv_buf_printf(out, "%s/%" PRId64 "%s", w->inner->path, rv_visit_number(w->visit),
                  rv_visit_repeats(w->visit) ? "/again" : "");
}

static int new_envelope(rv_work *w, int64_t now_us, rv_envelope **out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(w->env);
    json_object *given = NULL, *inputs = rv_visit_outside_value(w->visit);
    rv_buf input = RV_BUF_INIT(4 * RV_JSON_MAX_BYTES), name = RV_BUF_INIT(PATH_MAX_BYTES);

    if (!json_object_object_get_ex(inputs, "raw_input", &given) || !given)
        rv_buf_add(&input, f->raw_input, f->raw_input_len);
    else if (json_object_is_type(given, json_type_string))
        rv_buf_add_str(&input, rv_json_str(given));
    else
        rv_json_write(given, &input);
    write_name(w, &name);
    int rc = rv_buf_check(&input, "the input of an inner pipeline", err);
    if (rc == 0)
        rc = rv_buf_check(&name, "the path of an inner run", err);
    if (rc == 0)
        rc = rv_envelope_derive(w->env, rv_buf_str(&input), rv_buf_str(&name), now_us, out, err);
    rv_buf_fini(&input);
    rv_buf_fini(&name);
    return rc;
}

/* Takes cause. */
static int refuse(struct inner *in, rv_err *cause, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM)) {
        rv_err_pass(err, cause);
        return RV_E_NOMEM;
    }
    in->is_refused = true;
    rv_err_write_chain(cause, &in->text);
    rv_err_free(cause);
    return 0;
}

/* A copy of the state with another id; the caller's. */
static int rename_state(const rv_work *w, json_object *state, int64_t now_us, json_object **out, rv_err **err)
{
    rv_buf name = RV_BUF_INIT(PATH_MAX_BYTES);
    rv_envelope *fresh = NULL;

    write_name(w, &name);
    rv_buf_printf(&name, "/%s", rv_json_text_or(state, "envelope_id", ""));
    int rc = rv_buf_check(&name, "the path of an inner run", err);
    if (rc == 0)
        rc = rv_envelope_derive(w->env, RV_STR_LIT(""), rv_buf_str(&name), now_us, &fresh, err);
    if (rc == 0)
        rc = rv_json_dup(state, out, err);
    if (rc == 0)
        rc = rv_json_set_text(*out, "envelope_id", rv_envelope_fields(fresh)->envelope_id, err);
    rv_envelope_free(fresh);
    rv_buf_fini(&name);
    return rc;
}

/* The envelope of an inner run that waited for a person. */
static int old_envelope(rv_work *w, json_object *state, int64_t now_us, rv_envelope **out, rv_err **err)
{
    json_object *renamed = NULL;
    rv_err *cause = NULL;
    int rc = 0;

    if (w->shared->repeats || rv_visit_repeats(w->visit))
        rc = rename_state(w, state, now_us, &renamed, &cause);
    if (rc == 0)
        rc = rv_envelope_restore(renamed ? renamed : state, now_us, out, &cause);
    json_object_put(renamed);
    return rc < 0 ? refuse(w->inner, cause, err) : 0;
}

void run_inner_nest(rv_run *run, struct rv_visit_shared *up, int stage, const struct run_inner_place *at)
{
    struct rv_visit_shared *root = rv_visit_root(up);

    run->is_inner = true;
    run->place = RV_VISIT_PLACE_NONE;
    run->place.path = at->path;
    run->place.inputs = at->inputs;
    run->shared.root = root;
    run->shared.up = up;
    run->shared.emits = root->emits;
    run->shared.use_mocks = up->use_mocks || run->pipeline->mock;
    run->shared.prefix = at->prefix;
    run->shared.asking_stage = up->root ? up->asking_stage : stage;
    run->shared.run_id = up->run_id ? up->run_id : rv_envelope_fields(at->env)->envelope_id;
}

static int start(rv_work *w, json_object *state, struct rv_effects *out, rv_err **err)
{
    struct rv_interrupt asked = rv_envelope_interrupt(w->env);
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = out->now_us, .llm = RV_LLM_ANSWER_NONE};

    rv_err *cause = NULL;
    int rc = 0;
    if (state && asked.response) {
        ev.kind = RV_EVENT_ANSWER;
        rc = rv_response_read_json(asked.response, &ev.response, &cause);
        ev.response.interrupt_id = rv_str_of(asked.id);
        if (ev.response.cancelled && w->shared->rules >= RV_RULES_9) /* a response names a choice even so */
            ev.response.choice = (rv_str){NULL, 0};
        if (rc == 0)
            rc = run_load_tree(w->inner->run, &cause);
    }
    if (rc == 0 && state)
        w->inner->before = rv_run_used(w->inner->run);
    if (rc == 0)
        rc = rv_run_step(w->inner->run, &ev, out, &cause);
    return rc < 0 ? refuse(w->inner, cause, err) : 0;
}

/* Each name begins with the stages that lead to it, as "outer/inner". */
static int set_scripted(struct inner *in, json_object *names, const struct rv_pipeline *p, rv_err **err)
{
    size_t len = strlen(in->prefix);

    for (size_t i = 0; names && i < json_object_array_length(names); i++) {
        rv_str name = rv_json_str(json_object_array_get_idx(names, i));
        int stage = name.len > len && strncmp(name.ptr, in->prefix, len) == 0
                        ? rv_pipeline_find_stage(p, (rv_str){name.ptr + len, name.len - len})
                        : -1;
        if (stage < 0)
            continue;
        if (!in->scripted && !(in->scripted = calloc(p->n_agents, sizeof *in->scripted)))
            return RV_FAIL(err, RV_E_NOMEM, "begin an inner pipeline");
        in->scripted[stage] = true;
    }
    return 0;
}

static int inner_begin(rv_work *w, struct rv_effects *out, rv_err **err)
{
    struct inner *in = w->inner = calloc(1, sizeof *in);
    json_object *state = rv_visit_outside_state(w->visit);
    const char *stage = agent_of(w)->name;
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = NULL;

    if (!in)
        return RV_FAIL(err, RV_E_NOMEM, "begin an inner pipeline");
    in->text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    opts.rules = w->shared->rules;
    opts.conversation = w->shared->conversation;
    int rc = run_inner_path(w->place.path, stage, &in->path, err);
    if (rc == 0)
        rc = run_inner_path(w->shared->prefix, stage, &in->prefix, err);
    if (rc == 0)
        rc = set_scripted(in, rv_visit_root(w->shared)->scripted_inner, agent_of(w)->inner.pipeline, err);
    opts.scripted_stages = in->scripted;
    if (rc == 0)
        rc = state ? old_envelope(w, state, out->now_us, &env, err) : new_envelope(w, out->now_us, &env, err);
    if (rc == 0 && env)
        rc = rv_run_new(agent_of(w)->inner.pipeline, &w->shared->catalog, &opts, env, &in->run, err);
    if (rc < 0 || !in->run)
        return rc;
    const struct run_inner_place at = {in->path, in->prefix, rv_visit_outside_value(w->visit), w->env};
    run_inner_nest(in->run, w->shared, rv_visit_stage(w->visit), &at);
    in->run->shared.deadline_us = rv_visit_deadline(w->visit);
    in->run->shared.repeats = w->shared->repeats || rv_visit_repeats(w->visit);
    return start(w, state, out, err);
}

/* --- under way --- */

static bool inner_waits_for(const rv_work *w, int64_t call_id)
{
    return w->inner->run && run_waits_for(w->inner->run, call_id);
}

static int inner_find_short(const rv_work *w, struct rv_short *out, rv_err **err)
{
    return w->inner->run ? run_find_short(w->inner->run, out, err) : 0;
}

static int inner_on(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct inner *in = w->inner;
    int rc = rv_run_step(in->run, ev, out, err);

    if (rc < 0 || rv_run_is_finished(in->run) || ev->now_us < rv_visit_deadline(w->visit))
        return rc;
    in->is_late = true; /* nothing inside may go on, not even stages that need no call */
    return run_cancel(in->run, "the stage that runs the pipeline is out of time", NULL, out, err);
}

static int inner_cancel(rv_work *w, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    int rc =
        !w->inner->run || rv_run_is_finished(w->inner->run) ? 0 : run_cancel(w->inner->run, why, partials, out, err);

    if (rc < 0 || !w->inner->run)
        return rc;
    struct rv_envelope_used now = rv_run_used(w->inner->run);
    rv_envelope_add_inner(w->env, &now, &w->inner->before);
    rv_visit_add_calls(w->visit, now.llm_calls - w->inner->before.llm_calls);
    return 0;
}

static int inner_recover(rv_work *w, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    struct rv_visit_shared *s = &w->inner->run->shared;

    s->deadline_us += gap_us < INT64_MAX - s->deadline_us ? gap_us : 0;
    return run_recover(w->inner->run, gap_us, out, err);
}

static int inner_advance(rv_work *w, struct rv_effects *out, bool *ended, rv_err **err)
{
    (void)out;
    (void)err;
    *ended = w->inner->is_refused || rv_run_is_finished(w->inner->run);
    return 0;
}

/* --- what it came to --- */

static int make_output(rv_work *w, struct rv_outside_end *end, rv_err **err)
{
    const struct rv_agent *a = agent_of(w);
    const rv_envelope *env = rv_run_envelope(w->inner->run);
    struct rv_stage_scope values;
    rv_err *cause = NULL;

    if (!a->inner.outputs)
        return rv_envelope_build_outputs(env, &end->output, err);
    struct rv_scope scope = rv_stage_scope_init(&values, a->inner.pipeline, env, NULL, false);
    rv_stage_scope_set_place(&values, &w->inner->run->place);
    int rc = rv_built_eval(a->inner.outputs, &scope, NULL, &end->output, &cause);
    rv_stage_scope_fini(&values);
    if (rc == RV_E_NOMEM) {
        rv_err_pass(err, cause);
        return rc;
    }
    if (rc < 0) {
        end->error_type = rc == RV_E_LIMIT ? rv_error_limit : rv_error_expression;
        rv_buf_puts(&w->inner->text, "outputs: ");
        rv_err_write_chain(cause, &w->inner->text);
        rv_err_free(cause);
    }
    return 0;
}

static int wait_for_person(rv_work *w, struct rv_outside_end *end, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH, .what = "the state of an inner run"};
    rv_buf state = RV_BUF_INIT(STATE_MAX_BYTES);

    rv_envelope_write_lean_state(rv_run_envelope(w->inner->run), &state);
    int rc = rv_buf_check(&state, "the state of an inner run", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&state), &opts, &end->state, err);
    rv_buf_fini(&state);
    end->asks = rv_run_envelope(w->inner->run);
    return rc;
}

static void failed(rv_work *w, struct rv_outside_end *end)
{
    struct inner *in = w->inner;
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(in->run));
    const char *why = f->termination_reason ? f->termination_reason : "it ended without a reason";

    if (in->is_late) {
        end->error_type = rv_error_timeout;
        rv_buf_printf(&in->text, "stage \"%s\" ran out of time (%lld s): all inside of its pipeline was cancelled",
                      agent_of(w)->name, (long long)agent_of(w)->limits.timeout_seconds);
        return;
    }
    end->reason = f->terminal_reason;
    if (in->run->stopped_by) { /* the bound of a run around this one */
        end->error_type = rv_error_limit;
        end->bound_of = in->run->stopped_by;
        rv_buf_puts(&in->text, why);
        return;
    }
    if (in->run->status == RV_RUN_FAILED && in->run->failed_type) {
        end->error_type = in->run->failed_type;
        end->code = in->run->failed_code;
        rv_buf_printf(&in->text, "%s%s: %s", in->prefix, in->run->failed_stage ? in->run->failed_stage : "", why);
        end->stage = in->run->failed_stage;
        return;
    }
    end->error_type = f->terminal_reason == RV_REASON_USER_CANCELLED ? rv_error_cancelled
                      : in->run->status == RV_RUN_TERMINATED         ? rv_error_limit
                                                                     : rv_error_processing;
    rv_buf_printf(&in->text, "pipeline \"%s\": %s", agent_of(w)->inner.file, why);
}

static int inner_end(rv_work *w, struct rv_outside_end *end, rv_err **err)
{
    struct inner *in = w->inner;

    if (in->is_refused) {
        *end = (struct rv_outside_end){.error_type = rv_error_processing,
                                       .error = rv_buf_cstr(&in->text),
                                       .code = RV_FAILURE_NONE,
                                       .reason = RV_REASON_NONE};
        return rv_buf_check(&in->text, "reason", err);
    }
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(in->run));
    bool stated = f->terminal_reason == RV_REASON_COMPLETED || f->terminal_reason == RV_REASON_BREAK;
    struct rv_envelope_used now = rv_run_used(in->run);
    int rc = 0;

    *end = (struct rv_outside_end){
        .code = RV_FAILURE_NONE, .reason = RV_REASON_NONE, .llm_calls = now.llm_calls - in->before.llm_calls};
    rv_envelope_add_inner(w->env, &now, &in->before);
    if (in->run->status == RV_RUN_INTERRUPTED)
        return wait_for_person(w, end, err);
    if (!in->is_late && (in->run->status == RV_RUN_COMPLETED || (stated && in->run->status == RV_RUN_TERMINATED)))
        rc = make_output(w, end, err);
    else
        failed(w, end);
    if (rc == 0)
        rc = rv_buf_check(&in->text, "reason", err);
    end->error = rv_buf_cstr(&in->text);
    return rc;
}

const struct rv_work_kind run_inner_kind = {
    .begin = inner_begin,
    .advance = inner_advance,
    .waits_for = inner_waits_for,
    .find_short = inner_find_short,
    .on = inner_on,
    .cancel = inner_cancel,
    .recover = inner_recover,
    .end = inner_end,
    .free = inner_free,
    .give_up = run_inside_give_up,
    .tells_denial = run_inside_tells_denial,
    .check_arguments = run_inside_check_arguments,
};
