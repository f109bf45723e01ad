/* One dreaming as a run: its id, its pipeline, its beginning and its result. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/dreaming/dreaming_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/base/base.h"
#include "coreengine/store/store.h"

#include <stdio.h>
#include <string.h>

/* bytes of the pipeline that is written for one dream: it is a template of ours with a few names */
#define MAX_PIPELINE ((size_t)64 << 10)
#define MAX_RESULT   ((size_t)1 << 20) /* bytes of what a dream tells in the end: as RV_TASK_MAX_JSON, which keeps it */

/* --- its id --- */

static const char *agent_of(const struct rv_app_dream *dream)
{
    return dream->agent ? dream->agent : RV_DREAM_AGENT;
}

int app_dream_id(const struct rv_store_scope *scope, const struct rv_app_dream *dream, int n,
                 char out[RV_STORE_MAX_ID + 1], rv_err **err)
{
    const char *parts[] = {scope->tenant ? scope->tenant : RV_STORE_TENANT, scope->user, agent_of(dream),
                           dream->salt ? dream->salt : ""};
    char hash[RV_HASH_MAX], day[RV_TIME_MAX], attempt[16] = "";
    struct rv_hash h;
    int rc = dream_check_user(scope, err);

    if (rc < 0)
        return rc;
    if (n > DREAM_MAX_ATTEMPTS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d runs of one dreaming", DREAM_MAX_ATTEMPTS);
    rv_hash_init(&h);
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        rv_hash_add(&h, (rv_str){parts[i], strlen(parts[i]) + 1});
    rv_hash_finish_hex(&h, hash);
    rv_time_format(dream->day_us, day);
    if (n > 1)
        snprintf(attempt, sizeof attempt, ".%d", n);
    snprintf(out, RV_STORE_MAX_ID + 1, "dream_%.10s_%.12s%s", day, hash, attempt);
    return 0;
}

/* --- its pipeline --- */

int rv_app_dream_write_pipeline(const char *agent, rv_buf *out, rv_err **err)
{
    if (!rv_agentdoc_is_name(rv_str_of(agent)))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not the name of an agent", agent);
    rv_buf_printf(out,
                  "name: dreaming\n"
                  "description: Looks back over recent activity and keeps what belongs together as moments.\n\n"
                  "capabilities: [p8]\n\n"
                  "models:\n"
                  "  default: {model: \"${env:REEVE_MODEL}\", optional: true}\n\n"
                  "max_llm_calls: 20\n\n"
                  "agents:\n"
                  "  - name: plan\n"
                  "    set: {steps: [{tool: \"'gather_activity'\", parameters: {days: \"has(metadata.days) ? "
                  "metadata.days : 1\"}}]}\n"
                  "    default_next: gather\n\n"
                  "  - name: gather # chunks of long conversations, then what is new\n"
                  "    has_tools: true\n"
                  "    tool_access: write\n"
                  "    allowed_tools: [gather_activity]\n"
                  "    default_next: recent\n\n"
                  "  - name: recent\n"
                  "    set:\n"
                  "      phase1: outputs.gather.results[0].data.phase1\n"
                  "      is_empty: outputs.gather.results[0].data.is_empty\n"
                  "      text: outputs.gather.results[0].data.text\n"
                  "    routing_rules:\n"
                  "      - {condition: is_empty, value: true, target: end}\n"
                  "    default_next: dream\n\n"
                  "  - name: dream\n"
                  "    agent: \"%s\"\n" /* a name such as 123 or null is a text, too */
                  "    prompt_key: recent\n"
                  "    default_next: end\n\n"
                  "prompts:\n"
                  "  recent: |\n"
                  "    {{recent.text}}\n",
                  agent);
    return rv_buf_check(out, "pipeline", err);
}

/* --- its beginning --- */

static int load(struct rv_app_run *run, const struct rv_app_dream *dream, struct rv_app_loaded *loaded, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_PIPELINE);
    struct rv_app_load_opts opts = {.script = dream->script, .keeps = true, .store = run->store};
    int rc = rv_app_dream_write_pipeline(agent_of(dream), &text, err);

    opts.text = rv_buf_str(&text);
    if (rc == 0)
        rc = rv_app_load(run->app, "dreaming", &opts, loaded, err);
    if (rc == 0)
        rc = app_check_all(loaded, false, err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "dream with agent \"%s\"", agent_of(dream)) : 0;
}

static int envelope_of(const char *user, const struct rv_app_dream *dream, const char *id, rv_envelope **out,
                       rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *state = json_object_new_object();

    if (!state)
        return RV_FAIL(err, RV_E_NOMEM, "begin to dream");
    rv_json_build_text(&b, state, "envelope_id", id);
    rv_json_build_text(&b, state, "user_id", user);
    rv_json_build_text(&b, state, "session_id", id);
    json_object *metadata = rv_json_build(&b, state, "metadata", json_object_new_object());
    rv_json_build_int(&b, metadata, "days", dream->days ? dream->days : RV_DREAM_DAYS);
    int rc = b.rc == 0 ? rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err) : b.rc;
    json_object_put(state);
    return rc;
}

/* Each dreaming is a session of its own: what the dreamer was told and said can be read there. */
static int keep_with_session(struct rv_app_run *run, const rv_envelope *env, rv_err **err)
{
    const struct rv_store_scope *scope = &run->app->scope;
    char name[RV_STORE_MAX_ID + 16];
    const struct rv_session_row fresh = {.id = run->session,
                                         .tenant = scope->tenant ? scope->tenant : RV_STORE_TENANT,
                                         .user = scope->user,
                                         .name = name,
                                         .mode = RV_DREAM_MODE,
                                         .created_us = rv_app_now_us()};

    snprintf(name, sizeof name, "dreaming-%s", scope->user);
    int rc;
    do {
        rv_journal_free(run->journal);
        run->journal = NULL;
        rc = rv_store_begin(run->store, err);
        if (rc < 0)
            continue;
        rc = rv_store_ensure_session(run->store, &fresh, NULL, err);
        if (rc == 0)
            rc = app_run_keep_counted(run, env, RV_QUOTA_DREAMS, err);
        rc = rv_store_end(run->store, rc, err);
    } while (rc < 0 && rv_store_wait_again(run->store, err));
    return rc;
}

int app_dream_keep(struct rv_app_run *run, const struct rv_app_dream *dream, const char *id,
                   struct rv_app_loaded *loaded, rv_envelope **env, rv_err **err)
{
    int rc = load(run, dream, loaded, err);

    run->loaded = loaded;
    run->session = id;
    if (rc == 0)
        rc = envelope_of(run->app->scope.user, dream, id, env, err);
    if (rc == 0)
        rc = keep_with_session(run, *env, err);
    return rc;
}

/* --- its result --- */

static void write_member(json_object *from, const char *key, rv_jw *w)
{
    json_object *v = NULL;

    if (!from || !json_object_object_get_ex(from, key, &v))
        return;
    rv_jw_key(w, key);
    rv_jw_value(w, v);
}

static void write_phase2(const rv_envelope *env, json_object *recent, rv_jw *w)
{
    json_object *said = rv_envelope_output(env, RV_STR_LIT("dream"), NULL);
    json_object *kept = rv_envelope_output(env, RV_STR_LIT("dream_chained"), NULL);
    bool is_empty = false;

    rv_jw_obj(w);
    if (recent && rv_json_get_bool(recent, "is_empty", &is_empty) && is_empty)
        rv_jw_kv_text(w, "status", "skipped_no_data");
    else
        rv_jw_kv_text(w, "status", said ? "ok" : "failed");
    write_member(kept, "moments_count", w);
    write_member(kept, "saved_moment_ids", w);
    write_member(kept, "merge_results", w);
    write_member(kept, "error", w);
    write_member(said, "search_questions", w);
    write_member(said, "cross_session_themes", w);
    rv_jw_obj_end(w);
}

/* Why there is nothing to dream about; NULL: there is, or it is not known. */
static const char *gather_error(const rv_envelope *env)
{
    json_object *gather = rv_envelope_output(env, RV_STR_LIT("gather"), NULL);
    json_object *list = gather ? rv_json_get_arr(gather, "results") : NULL;
    json_object *first = list ? json_object_array_get_idx(list, 0) : NULL;
    json_object *error = first ? rv_json_get_obj(first, "error") : NULL;
    const char *message = NULL;

    return error && rv_json_get_text(error, "message", &message) ? message : NULL;
}

void app_dream_result(const char *id, const struct rv_app_dream *dream, enum rv_run_status status,
                      const rv_envelope *env, rv_buf *out)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    json_object *recent = rv_envelope_output(env, RV_STR_LIT("recent"), NULL);
    json_object *kept = rv_envelope_output(env, RV_STR_LIT("dream_chained"), NULL);
    const char *why = f->termination_reason ? f->termination_reason : rv_run_status_text(status), *chained = NULL;
    why = gather_error(env) ? gather_error(env) : why;
    bool is_kept = !kept || !rv_json_get_text(kept, "status", &chained) || strcmp(chained, "error") != 0;
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", status != RV_RUN_COMPLETED ? why : is_kept ? "ok" : "the moments were not kept");
    rv_jw_kv_text(&w, "run", id);
    rv_jw_kv_text(&w, "agent", agent_of(dream));
    rv_jw_kv_int(&w, "io_tokens", f->usage.input_tokens + f->usage.output_tokens);
    write_member(recent, "phase1", &w);
    rv_jw_key(&w, "phase2");
    write_phase2(env, recent, &w);
    rv_jw_obj_end(&w);
}

int app_dream_is_empty(rv_store *store, const struct rv_store_scope *scope, const char *id, bool *out, rv_err **err)
{
    struct rv_app_past past;
    struct rv_replayed r = {0};
    int rc = rv_app_past_open(store, scope, id, &past, err);

    *out = false;
    if (rc < 0)
        return rc;
    rc = rv_app_past_replay(store, &past, NULL, &r, err);
    if (rc == 0) {
        json_object *recent = rv_envelope_output(rv_run_envelope(r.run), RV_STR_LIT("recent"), NULL);
        *out = recent && rv_json_get_bool(recent, "is_empty", out) && *out;
        rv_replayed_fini(&r);
    }
    rv_app_past_fini(&past);
    return rc;
}

/* --- in one call --- */

struct dreaming {
    const struct rv_app *app;
    const struct rv_app_dream *what;
    struct rv_app_dreamt *out;
    rv_store *store;
    struct rv_app_loaded loaded;
    struct rv_app_run run;
    rv_envelope *env; /* of a new run; owned */
};

/* The attempt that counts: one that is completed, or goes on, or the first that is not there yet. */
static int find(struct dreaming *d, enum rv_app_go *go, bool *is_new, rv_err **err)
{
    *is_new = false;
    *go = RV_APP_RECOVER;
    for (int n = 1;; n++) {
        struct rv_run_row row = {0};
        rv_err *why = NULL;
        int rc = app_dream_id(&d->app->scope, d->what, n, d->out->run, err);
        if (rc < 0)
            return rc;
        rc = rv_store_get_run(d->store, &d->app->scope, d->out->run, &row, &why);
        if (rc == RV_E_NOT_FOUND) {
            rv_err_free(why);
            *is_new = true;
            return 0;
        }
        if (rc < 0) {
            rv_err_pass(err, why);
            return rc;
        }
        d->out->status = row.status;
        bool is_over = rv_run_status_is_final(row.status);
        rv_run_row_fini(&row);
        bool is_empty = false;
        d->out->is_old = is_over && d->out->status == RV_RUN_COMPLETED && !d->what->again;
        if (d->out->is_old)
            rc = app_dream_is_empty(d->store, &d->app->scope, d->out->run, &is_empty, err);
        if (rc < 0 || !is_over || (d->out->is_old && !is_empty))
            return rc;
        d->out->is_old = false;
    }
}

static int read_old(struct dreaming *d, rv_err **err)
{
    struct rv_app_past past;
    struct rv_replayed r = {0};
    int rc = rv_app_past_open(d->store, &d->app->scope, d->out->run, &past, err);

    if (rc < 0)
        return rc;
    rc = rv_app_past_replay(d->store, &past, NULL, &r, err);
    if (rc == 0) {
        app_dream_result(d->out->run, d->what, d->out->status, rv_run_envelope(r.run), &d->out->result);
        rv_replayed_fini(&r);
    }
    rv_app_past_fini(&past);
    return rc;
}

static int begin(struct dreaming *d, rv_err **err)
{
    int rc = app_run_prepare(&d->run, err);

    rv_owner_make_name(d->run.owner);
    d->run.store = d->store;
    if (rc == 0)
        rc = app_dream_keep(&d->run, d->what, d->out->run, &d->loaded, &d->env, err);
    return rc;
}

static int go_on(struct dreaming *d, enum rv_app_go go, rv_err **err)
{
    int rc = rv_app_continue(&d->run, d->store, d->out->run, go, &d->loaded, err);

    if (rc == 0)
        rc = app_findings_error(d->loaded.findings, err);
    return rc == 0 ? rv_app_take_over(&d->run, err) : rc;
}

static int drive(struct dreaming *d, bool is_new, enum rv_app_go go, rv_err **err)
{
    d->run = (struct rv_app_run){.app = d->app, .loaded = &d->loaded, .mode = RV_UNSET, .handle_signals = true};
    int rc = is_new ? begin(d, err) : go_on(d, go, err);

    if (rc == 0) {
        rc = rv_app_run_drive(&d->run, d->env, NULL, err);
        d->env = NULL;
    }
    if (rc < 0)
        return rc;
    d->out->status = rv_exec_status(d->run.exec);
    app_dream_result(d->out->run, d->what, d->out->status, rv_exec_envelope(d->run.exec), &d->out->result);
    return rv_buf_check(&d->out->result, "the result of a dreaming", err);
}

int rv_app_dream(const struct rv_app *app, const struct rv_app_dream *dream, struct rv_app_dreamt *out, rv_err **err)
{
    struct dreaming d = {.app = app, .what = dream, .out = out};
    enum rv_app_go go;
    bool is_new;

    *out = (struct rv_app_dreamt){.result = RV_BUF_INIT(MAX_RESULT)};
    int rc = rv_app_store_open(app, RV_APP_STORE_MAKE, &d.store, err);
    if (rc == 0)
        rc = find(&d, &go, &is_new, err);
    if (rc == 0)
        rc = out->is_old ? read_old(&d, err) : drive(&d, is_new, go, err);
    if (d.run.app)
        rv_app_run_fini(&d.run);
    rv_envelope_free(d.env);
    rv_app_loaded_fini(&d.loaded);
    rv_store_close(d.store);
    if (rc < 0)
        rv_buf_fini(&out->result);
    return rc;
}
