/* The service `models.call`: a model answers one prompt. It is a run of one stage, kept like any other: its journal,
 * quotas, keys and egress are those of every run. Its id follows from who asks and for what, so that a call which is
 * made again finds the run that is completed, or goes on with the one that was left. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/services/services_internal.h"
#include "coreengine/base/base.h"
#include "coreengine/store/store.h"
#include "envelope/envelope.h"

#include <stdio.h>
#include <string.h>

#define STAGE        "models_call"
#define MAX_ATTEMPTS 5    /* runs of one ask, of which all but the last have failed: each has cost */
#define MAX_NAME     200  /* bytes of a model's name: a capability says it; a longer one is an error of the call */
#define MAX_TOKENS   4096 /* of the answer: four pages; a capability reads it, not a person */
#define MAX_CALLS    4    /* of the model, when it fails: each may cost */
/* bytes of the pipeline that is written for one call: it is a template of ours with a few names */
#define MAX_PIPELINE ((size_t)4 << 10)
#define SECONDS      100 /* for the stage; the ask waits a little longer */

struct calling {
    const struct app_ask *a;
    struct rv_app app; /* as a->app, with NULL for "" */
    const char *prompt, *model, *provider;
    int64_t max_calls, budget_micro_usd; /* of the run; budget -1: none */
    bool tells_failure;                  /* a run that fails is an answer, with what it took */
    char id[RV_STORE_MAX_ID + 1];
    struct rv_app_loaded loaded;
    struct rv_app_run run;
    rv_envelope *env; /* of a new run; owned */
};

/* --- what is asked for --- */

/* Such a name stands in a pipeline as it is. */
static int check_name(const char *key, const char *name, rv_err **err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-";

    if (!name || (*name && strspn(name, allowed) == strlen(name) && strlen(name) <= MAX_NAME))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a name: letters, digits and . _ : / @ -, at most %d", key,
                   MAX_NAME);
}

/* *out stays as it is when the argument is left out. */
static int read_limit(const struct app_ask *a, const char *key, int64_t min, int64_t max, int64_t *out, rv_err **err)
{
    int64_t n = 0;

    if (!json_object_object_get_ex(a->args, key, NULL))
        return 0;
    if (!rv_json_get_int(a->args, key, &n) || n < min || n > max)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a whole number from %lld to %lld", key, (long long)min,
                       (long long)max);
    *out = n;
    return 0;
}

static int read_args(struct calling *c, rv_err **err)
{
    static const char *const known[] = {"prompt",           "model",        "provider", "max_calls",
                                        "budget_micro_usd", "tells_failure"};
    int rc = app_ask_check(c->a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(c->a, "prompt", true, &c->prompt, err);
    if (rc == 0)
        rc = app_ask_text(c->a, "model", false, &c->model, err);
    if (rc == 0)
        rc = app_ask_text(c->a, "provider", false, &c->provider, err);
    if (rc == 0)
        rc = check_name("model", c->model, err);
    if (rc == 0)
        rc = check_name("provider", c->provider, err);
    if (rc == 0)
        rc = read_limit(c->a, "max_calls", 1, MAX_CALLS, &c->max_calls, err);
    if (rc == 0)
        rc = read_limit(c->a, "budget_micro_usd", 1, INT64_C(1000000000000), &c->budget_micro_usd, err);
    if (rc == 0 && json_object_object_get_ex(c->a->args, "tells_failure", NULL) &&
        !rv_json_get_bool(c->a->args, "tells_failure", &c->tells_failure))
        rc = RV_FAIL(err, RV_E_INVALID, "\"tells_failure\" is neither true nor false");
    if (rc == 0 && c->provider && !c->model)
        rc = RV_FAIL(err, RV_E_INVALID, "\"provider\" needs \"model\": which of its models?");
    if (rc == 0 && !*c->prompt)
        rc = RV_FAIL(err, RV_E_INVALID, "\"prompt\" is empty");
    if (rc == 0 && !*c->a->key)
        rc = RV_FAIL(err, RV_E_INVALID, "a call without a key asks no model: made again, it would ask twice");
    return rc;
}

static void name_run(struct calling *c, int n)
{
    const struct rv_store_scope *s = &c->app.scope;
    const char *parts[] = {s->tenant ? s->tenant : RV_STORE_TENANT, s->user ? s->user : "",   c->a->key,
                           c->provider ? c->provider : "",          c->model ? c->model : "", c->prompt};
    char hash[RV_HASH_MAX], attempt[16] = "";
    struct rv_hash h;

    rv_hash_init(&h);
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        rv_hash_add(&h, (rv_str){parts[i], strlen(parts[i]) + 1});
    rv_hash_finish_hex(&h, hash);
    if (n > 1)
        snprintf(attempt, sizeof attempt, ".%d", n);
    snprintf(c->id, sizeof c->id, "ask_%.24s%s", hash, attempt);
}

/* --- its pipeline --- */

static void write_pipeline(const struct calling *c, rv_buf *out)
{
    rv_buf_puts(out, "name: models_call\n"
                     "description: A model answers what a capability asks.\n"
                     "models:\n");
    if (c->provider)
        rv_buf_printf(out, "  default: {provider: \"%s\", model: \"%s\"}\n", c->provider, c->model);
    else if (c->model)
        rv_buf_printf(out, "  default: {model: \"%s\"}\n", c->model);
    else if (c->a->script)
        rv_buf_puts(out, "  default: scripted\n");
    else
        rv_buf_puts(out, "  default: {model: \"${env:REEVE_MODEL}\", optional: true}\n");
    if (c->budget_micro_usd >= 0)
        rv_buf_printf(out, "budget: {usd: %lld.%06lld}\n", (long long)(c->budget_micro_usd / 1000000),
                      (long long)(c->budget_micro_usd % 1000000));
    rv_buf_printf(out,
                  "max_llm_calls: %lld\n"
                  "agents:\n"
                  "  - name: " STAGE "\n"
                  "    has_llm: true\n"
                  "    model_role: default\n"
                  "    prompt_key: asked\n"
                  "    output_mode: text\n"
                  "    max_tokens: %d\n"
                  "    timeout_seconds: %d\n"
                  "    default_next: end\n"
                  "prompts:\n"
                  "  asked: \"{{raw_input}}\"\n",
                  (long long)c->max_calls, MAX_TOKENS, SECONDS);
}

/* The script of the run that asks plays this one, from its first entries. */
static int read_script(struct calling *c, rv_err **err)
{
    const struct app_ask *a = c->a;

    return a->script ? rv_script_parse(rv_str_of(a->script), a->script_name, c->loaded.findings, &c->loaded.script, err)
                     : 0;
}

static int load(struct calling *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_PIPELINE);
    struct rv_app_load_opts opts = {.keeps = true, .store = c->run.store};

    write_pipeline(c, &text);
    opts.text = rv_buf_str(&text);
    int rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_app_load(&c->app, STAGE, &opts, &c->loaded, err);
    if (rc == 0)
        rc = read_script(c, err);
    if (rc == 0)
        rc = app_check_all(&c->loaded, false, err);
    rv_buf_fini(&text);
    return rc;
}

/* --- its life --- */

static int envelope_of(struct calling *c, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *state = json_object_new_object();

    if (!state)
        return RV_FAIL(err, RV_E_NOMEM, "ask a model");
    rv_json_build_text(&b, state, "envelope_id", c->id);
    if (c->app.scope.user)
        rv_json_build_text(&b, state, "user_id", c->app.scope.user);
    rv_json_build_text(&b, state, "raw_input", c->prompt);
    json_object *metadata = rv_json_build(&b, state, "metadata", json_object_new_object());
    rv_json_build_text(&b, metadata, "capability", c->a->capability);
    rv_json_build_text(&b, metadata, "entry", c->a->entry);
    rv_json_build_text(&b, metadata, "asked_by", c->a->run_id);
    int rc = b.rc == 0 ? rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), &c->env, err) : b.rc;
    json_object_put(state);
    return rc;
}

static int begin(struct calling *c, rv_err **err)
{
    int rc = app_run_prepare(&c->run, err);

    rv_owner_make_name(c->run.owner);
    if (rc == 0)
        rc = load(c, err);
    if (rc == 0)
        rc = envelope_of(c, err);
    return rc < 0 ? rc : rv_app_run_keep(&c->run, c->env, err);
}

static int go_on(struct calling *c, rv_err **err)
{
    int rc = rv_app_continue(&c->run, c->run.store, c->id, RV_APP_RECOVER, &c->loaded, err);

    if (rc == 0)
        rc = app_findings_error(c->loaded.findings, err);
    return rc == 0 ? rv_app_take_over(&c->run, err) : rc;
}

/* --- its answer --- */

static const char *why_of(enum rv_run_status status, const rv_envelope *env)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);

    return f->termination_reason ? f->termination_reason : rv_run_status_text(status);
}

static int fail_as_run(enum rv_run_status status, const rv_envelope *env, rv_err **err)
{
    const char *why = why_of(status, env);

    if (rv_envelope_fields(env)->terminal_reason == RV_REASON_QUOTA)
        return RV_FAIL(err, RV_E_QUOTA, "%s", why);
    int rc = RV_FAIL(err, RV_E_TOOL, "the model does not answer: %s", why);
    rv_err_set_hint(err, "%s", rv_error_provider);
    return rc;
}

static int write_answer(const struct calling *c, enum rv_run_status status, const rv_envelope *env, rv_jw *w,
                        rv_err **err)
{
    json_object *out = rv_envelope_output(env, RV_STR_LIT(STAGE), NULL);
    const char *said = NULL;
    bool failed = status != RV_RUN_COMPLETED || !out || !rv_json_get_text(out, "response", &said);
    if (failed && !c->tells_failure)
        return fail_as_run(status, env, err);
    rv_jw_kv_text(w, "run", c->id);
    rv_jw_kv_text(w, failed ? "error" : "text", failed ? why_of(status, env) : said);
    rv_jw_key(w, "usage");
    rv_usage_write_json(&rv_envelope_fields(env)->usage, w);
    return 0;
}

static int read_old(struct calling *c, rv_jw *w, rv_err **err)
{
    struct rv_app_past past;
    struct rv_replayed r = {0};
    int rc = rv_app_past_open(c->run.store, &c->app.scope, c->id, &past, err);

    if (rc < 0)
        return rc;
    rc = rv_app_past_replay(c->run.store, &past, NULL, &r, err);
    if (rc == 0) {
        rc = write_answer(c, RV_RUN_COMPLETED, rv_run_envelope(r.run), w, err);
        rv_replayed_fini(&r);
    }
    rv_app_past_fini(&past);
    return rc;
}

static int drive(struct calling *c, bool is_new, rv_jw *w, rv_err **err)
{
    int rc = is_new ? begin(c, err) : go_on(c, err);

    if (rc == 0) {
        rc = app_run_drive_with(&c->run, c->env, NULL, NULL, err); /* no capability: none asks */
        c->env = NULL;
    }
    if (rc < 0)
        return rc;
    return write_answer(c, rv_exec_status(c->run.exec), rv_exec_envelope(c->run.exec), w, err);
}

/* The attempt that counts: one that is completed, or goes on, or the first that is not there yet. */
static int find(struct calling *c, bool *is_new, bool *is_old, rv_err **err)
{
    *is_new = *is_old = false;
    for (int n = 1; n <= MAX_ATTEMPTS; n++) {
        struct rv_run_row row = {0};
        rv_err *why = NULL;
        name_run(c, n);
        int rc = rv_store_get_run(c->run.store, &c->app.scope, c->id, &row, &why);
        if (rc == RV_E_NOT_FOUND) {
            rv_err_free(why);
            *is_new = true;
            return 0;
        }
        if (rc < 0) {
            rv_err_pass(err, why);
            return rc;
        }
        enum rv_run_status status = row.status;
        rv_run_row_fini(&row);
        *is_old = status == RV_RUN_COMPLETED;
        if (*is_old || !rv_run_status_is_final(status))
            return 0;
    }
    return RV_FAIL(err, RV_E_LIMIT, "the model was asked %d times for this, and did not answer", MAX_ATTEMPTS);
}

int app_models_call(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    struct calling c = {.a = a, .app = a->app, .max_calls = MAX_CALLS, .budget_micro_usd = -1};
    bool is_new, is_old;

    if (c.app.scope.user && !*c.app.scope.user)
        c.app.scope.user = NULL;
    c.run = (struct rv_app_run){.app = &c.app, .loaded = &c.loaded, .mode = RV_UNSET, .store = a->store};
    int rc = read_args(&c, err);
    if (rc == 0 && a->is_test && !a->script)
        rc = RV_FAIL(err, RV_E_STATE, "in a test no model is asked: its script has to answer");
    if (rc == 0)
        rc = find(&c, &is_new, &is_old, err);
    if (rc == 0)
        rc = is_old ? read_old(&c, w, err) : drive(&c, is_new, w, err);
    rv_app_run_fini(&c.run);
    rv_envelope_free(c.env);
    rv_app_loaded_fini(&c.loaded);
    return rc;
}
