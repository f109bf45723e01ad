/* A dry run: the core is asked for the first request of each stage that asks a model, and nothing is performed. Hooks
 * that come before it are answered with nothing. */
#include "coreengine/app/check.h"

#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"

#define MAX_HOOKS 64 /* before one request: files have a handful; further ones are not shown */
/* bytes of a request as JSON: as much as a provider is sent (RV_PROVIDER_MAX_BODY) */
#define MAX_REQUEST ((size_t)64 << 20)
#define MAX_MARK    ((size_t)64 << 10) /* bytes of the text around one value: names and quotes of one line */
#define MARK        "{{outputs."

struct dry {
    const struct rv_pipeline *pipeline;
    struct rv_catalog catalog;
    const char *hooks[MAX_HOOKS];
    size_t n_hooks;
    json_object *request; /* owned */
    rv_buf why;
};

/* --- marks in the place of outputs that are not there yet --- */

/* A text; where the schema wants a list, a list with it. */
static int add_mark(json_object *output, const char *key, const char *field, json_object *schema, rv_err **err)
{
    const char *type = "";
    rv_buf text = RV_BUF_INIT(MAX_MARK);

    rv_buf_printf(&text, MARK "%s.%s}}", key, field);
    int rc = rv_buf_check(&text, "the name of an output", err);
    if (rc == 0 && (!rv_json_get_text(schema, "type", &type) || strcmp(type, "array") != 0)) {
        rc = rv_json_set_text(output, field, rv_buf_cstr(&text), err);
    } else if (rc == 0) {
        json_object *list = json_object_new_array();
        rc = rv_json_set_take(output, field, list, err);
        if (rc == 0)
            rc = rv_json_push_take(list, json_object_new_string(rv_buf_cstr(&text)), err);
    }
    rv_buf_fini(&text);
    return rc;
}

static int mark_output(json_object *outputs, const struct rv_agent *a, rv_err **err)
{
    const char *key = a->output.key ? a->output.key : a->name;
    json_object *properties = rv_json_get_obj(a->output.schema, "properties"), *output;
    int rc = 0;

    if (json_object_object_get_ex(outputs, key, NULL))
        return 0;
    if (!(output = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "prepare a dry run");
    for (size_t i = 0; rc == 0 && i < a->output.required_fields.n; i++)
        rc = add_mark(output, key, a->output.required_fields.items[i], NULL, err);
    if (properties) {
        json_object_object_foreach (properties, field, schema) {
            if (rc == 0)
                rc = add_mark(output, key, field, schema, err);
        }
    }
    if (rc == 0)
        return rv_json_set_take(outputs, key, output, err);
    json_object_put(output);
    return rc;
}

static int mark_outputs(json_object *state, const struct rv_pipeline *p, int stage, rv_err **err)
{
    json_object *outputs = rv_json_get_obj(state, "outputs");
    int rc = 0;

    if (!outputs) {
        rc = rv_json_set_take(state, "outputs", json_object_new_object(), err);
        outputs = rv_json_get_obj(state, "outputs");
    }
    for (size_t i = 0; rc == 0 && i < p->n_agents; i++)
        if ((int)i != stage)
            rc = mark_output(outputs, &p->agents[i], err);
    return rc;
}

/* --- one stage --- */

/* The request of the stage, and hooks that come before it. *call_id: the hook to answer; 0: none. */
static int look(struct dry *d, int stage, struct rv_effects *effects, int64_t *call_id, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_REQUEST, .what = "request"};

    *call_id = 0;
    for (size_t i = 0; i < effects->n; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind == RV_EFFECT_CALL_LLM && e->stage == stage)
            return rv_json_parse((rv_str){e->request, e->request_len}, &opts, &d->request, err);
        if (e->kind == RV_EFFECT_CALL_HOOK && d->n_hooks < MAX_HOOKS) {
            d->hooks[d->n_hooks++] = e->name;
            *call_id = e->call_id;
            return 0;
        }
    }
    return 0;
}

/* continues: the envelope stands at the stage; else it is the first one. env is taken. *out: where the run stands. */
static int ask(struct dry *d, rv_envelope *env, int stage, bool continues, rv_envelope **out, rv_err **err)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    struct rv_effects effects = {0};
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = rv_app_now_us(), .llm = RV_LLM_ANSWER_NONE};
    rv_run *run = NULL;

    opts.emits = false;
    opts.continues = continues;
    opts.mode = RV_MODE_SEQUENTIAL;
    int rc = rv_run_new(d->pipeline, &d->catalog, &opts, env, &run, err);
    while (rc == 0) {
        int64_t call_id = 0;
        rv_effects_clear(&effects);
        rc = rv_run_step(run, &ev, &effects, err);
        if (rc == 0)
            rc = look(d, stage, &effects, &call_id, err);
        if (rc < 0 || d->request || call_id == 0)
            break;
        ev.kind = RV_EVENT_HOOK_DONE;
        ev.call_id = call_id;
        ev.reply = (rv_str){"", 0};
    }
    if (rc == 0 && !d->request && rv_run_failure(run))
        rv_err_write_chain(rv_run_failure(run), &d->why);
    if (rc == 0 && out) {
        *out = rv_run_steal_envelope(run);
        rc = *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "prepare a dry run");
    }
    rv_effects_fini(&effects);
    rv_run_free(run);
    return rc;
}

/* The state of a run that has begun, standing at that stage. */
static int stand_at(const rv_envelope *begun, const struct rv_pipeline *p, int stage, rv_envelope **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_REQUEST, .max_depth = RV_STATE_MAX_DEPTH + 1, .what = "state"};
    rv_buf text = RV_BUF_INIT(MAX_REQUEST);
    json_object *state = NULL;

    rv_envelope_write_state(begun, &text);
    int rc = rv_buf_check(&text, "state", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &state, err);
    if (rc == 0)
        rc = rv_json_set_text(state, "current_stage", p->agents[stage].name, err);
    if (rc == 0)
        rc = mark_outputs(state, p, stage, err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err);
    rv_buf_fini(&text);
    json_object_put(state);
    return rc;
}

static void forget(struct dry *d)
{
    json_object_put(d->request);
    d->request = NULL;
    d->n_hooks = 0;
    rv_buf_clear(&d->why);
}

static bool has_mark(json_object *request)
{
    rv_buf text = RV_BUF_INIT(MAX_REQUEST);

    rv_json_write(request, &text);
    bool has = text.rc < 0 || /* then what it asks is not told as if it were all known */
               memmem(text.ptr ? text.ptr : "", text.len, MARK, strlen(MARK)) != NULL;
    rv_buf_fini(&text);
    return has;
}

/* --- all of them --- */

static int begin(struct dry *d, json_object *state, rv_envelope **begun, rv_err **err)
{
    rv_envelope *env = NULL;
    int rc = rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), &env, err);

    return rc < 0 ? rc : ask(d, env, 0, false, begun, err);
}

static int of_pipeline(struct dry *d, json_object *state,
                       int (*each)(void *, const struct rv_app_dry_stage *, rv_err **), void *self, rv_err **err)
{
    rv_envelope *begun = NULL;
    int rc = begin(d, state, &begun, err);

    forget(d);
    for (size_t i = 0; rc == 0 && i < d->pipeline->n_agents; i++) {
        const struct rv_agent *a = &d->pipeline->agents[i];
        rv_envelope *env = NULL;
        if (!a->has_llm)
            continue;
        rc = stand_at(begun, d->pipeline, (int)i, &env, err);
        if (rc == 0)
            rc = ask(d, env, (int)i, true, NULL, err);
        if (rc < 0)
            break;
        const struct rv_app_dry_stage found = {.pipeline = d->pipeline,
                                               .agent = a,
                                               .request = d->request,
                                               .why = d->request   ? NULL
                                                      : d->why.len ? rv_buf_cstr(&d->why)
                                                                   : "it depends on what other stages do",
                                               .has_unknown = d->request && has_mark(d->request),
                                               .hooks = d->hooks,
                                               .n_hooks = d->n_hooks};
        rc = each(self, &found, err);
        forget(d);
    }
    rv_envelope_free(begun);
    return rc;
}

int rv_app_dry_run(struct rv_app_loaded *l, json_object *state,
                   int (*each)(void *self, const struct rv_app_dry_stage *stage, rv_err **err), void *self,
                   rv_err **err)
{
    struct dry d = {.why = RV_BUF_INIT(MAX_REQUEST)};
    struct rv_app_tools tools;
    size_t n = 0;
    struct rv_pipeline *const *inner = rv_pipeline_inner(l->pipeline, &n);
    int rc = app_tools_init(&tools, l, err);

    if (rc < 0)
        return rc;
    const struct rv_catalog under = app_tools_catalog(&tools);
    d.catalog = l->script ? rv_script_catalog(l->script, &under) : under;
    for (size_t i = 0; rc == 0 && i <= n; i++) {
        d.pipeline = i == 0 ? l->pipeline : inner[n - i];
        rc = of_pipeline(&d, state, each, self, err);
    }
    forget(&d);
    rv_buf_fini(&d.why);
    app_tools_fini(&tools);
    return rc;
}
