/* Tasks of type `summary`, which a turn queues with the chunk that it completes: an agent writes the summary. The run
 * is made and driven as that of any task; its words take their place in the transaction that completes the task, so a
 * worker that dies before has changed nothing, and the next one finds the run, and does not ask the model again. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"
#include "coreengine/app/worker/worker_internal.h"
#include "coreengine/base/hash.h"

#define STAGE        "summary"
#define MAX_TEXT     ((size_t)4 << 20)
#define MAX_PIPELINE ((size_t)4 << 10)
#define MAX_SAID     ((size_t)256 << 10)

/* --- before the run --- */

static int skip(struct work_job *j, const char *why)
{
    rv_jw w = rv_jw_on(&j->result);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_kv_text(&w, "skipped", why);
    rv_jw_obj_end(&w);
    j->end = WORK_DONE;
    return 0;
}

static int read_names(struct work_job *j, rv_err **err)
{
    struct work_summary *s = &j->summary;
    int rc = rv_work_text_of(j, "moment", &s->moment, err);

    if (rc == 0)
        rc = rv_work_text_of(j, "agent", &s->agent, err);
    if (rc == 0 && (!s->moment || !s->moment[0]))
        rc = rv_work_refuse(j, err, "the payload needs \"moment\", the id of a chunk");
    if (rc == 0 && (!s->agent || !rv_agentdoc_is_name(rv_str_of(s->agent))))
        rc = rv_work_refuse(j, err, "the payload needs \"agent\", the name of an agent");
    return rc;
}

int rv_work_summarise(struct work_taker *t, struct work_job *j, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, j->task.user};
    struct work_summary *s = &j->summary;
    rv_err *cause = NULL;
    int rc = read_names(j, err);

    if (rc < 0)
        return rc;
    rv_buf_fini(&s->text);
    s->text = RV_BUF_INIT(MAX_TEXT);
    s->hash[0] = '\0';
    rc = rv_app_chunk_text(t->store, &scope, s->moment, &s->text, s->hash, &cause);
    if (rc == RV_E_NOT_FOUND) { /* deleted since */
        rv_err_free(cause);
        return skip(j, "the chunk is gone");
    }
    if (rc < 0)
        *err = cause;
    return rc == 0 && s->text.len == 0 ? skip(j, "the chunk has no words") : rc;
}

/* --- its run --- */

static int load(struct rv_app_run *run, const char *script, const char *agent, struct rv_app_loaded *loaded,
                rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_PIPELINE);
    struct rv_app_load_opts opts = {.script = script, .keeps = true, .store = run->store};

    rv_buf_printf(&text,
                  "name: summary\n"
                  "description: Writes the summary of a part of a conversation.\n"
                  "models:\n"
                  "  default: {model: \"${env:REEVE_MODEL}\", optional: true}\n"
                  "max_llm_calls: 4\n"
                  "agents:\n"
                  "  - {name: " STAGE ", agent: %s, default_next: end}\n",
                  agent);
    opts.text = rv_buf_str(&text);
    int rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_app_load(run->app, "summary", &opts, loaded, err);
    if (rc == 0)
        rc = rv_app_check_all(loaded, false, err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "summarise with agent \"%s\"", agent) : 0;
}

static int envelope_of(const struct work_job *j, const char *id, rv_envelope **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *state = json_object_new_object();

    if (!state)
        return RV_FAIL(err, RV_E_NOMEM, "begin to summarise");
    rv_json_build_text(&b, state, "envelope_id", id);
    if (j->task.user[0])
        rv_json_build_text(&b, state, "user_id", j->task.user);
    rv_json_build_text(&b, state, "raw_input", rv_buf_cstr(&j->summary.text));
    json_object *metadata = rv_json_build(&b, state, "metadata", json_object_new_object());
    rv_json_build_text(&b, metadata, "moment", j->summary.moment);
    rv_json_build_text(&b, metadata, "text_hash", j->summary.hash);
    int rc = b.rc == 0 ? rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err) : b.rc;
    json_object_put(state);
    return rc;
}

int rv_work_summary_make(struct work_taker *t, struct work_job *j, const char *id, rv_err **err)
{
    const struct rv_app_begin begin = {.limits = &j->limits, .counts = RV_QUOTA_TASKS};
    struct rv_app_loaded loaded = {0};
    struct rv_app app = j->app;
    struct rv_app_run run = {.app = &app, .loaded = &loaded, .mode = RV_UNSET, .store = t->store};
    rv_envelope *env = NULL;
    app.scope.user = j->task.user;
    int rc = rv_app_run_prepare(&run, err);

    if (rc == 0)
        rc = load(&run, rv_work_script(t, j), j->summary.agent, &loaded, err);
    if (rc == 0)
        rc = envelope_of(j, id, &env, err);
    if (rc == 0)
        rc = rv_app_keep(&run, env, &begin, err);
    rv_journal_free(run.journal);
    run.journal = NULL;
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

/* --- after it --- */

/* A structured answer has its summary in the member of that name; every other one is the summary. */
static const char *said_of(const rv_envelope *env)
{
    json_object *output = rv_envelope_output(env, RV_STR_LIT(STAGE), NULL);
    const char *text = NULL;

    if (json_object_is_type(output, json_type_string))
        return json_object_get_string(output);
    return output && (rv_json_get_text(output, "summary", &text) || rv_json_get_text(output, "response", &text)) ? text
                                                                                                                 : "";
}

void rv_work_summary_result(struct work_job *j, enum rv_run_status status, const rv_envelope *env)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    json_object *hash = rv_envelope_metadata(env, RV_STR_LIT("text_hash"), NULL);
    struct work_summary *s = &j->summary;
    const char *said = said_of(env);
    rv_jw w = rv_jw_on(&j->result);

    rv_buf_fini(&s->said);
    s->said = RV_BUF_INIT(MAX_SAID);
    if (status != RV_RUN_COMPLETED) {
        rv_work_not_done(j, f->termination_reason ? f->termination_reason : rv_run_status_text(status));
        return;
    }
    if (rv_str_trim(rv_str_of(said)).len == 0) {
        rv_work_not_done(j, "the agent wrote no summary");
        return;
    }
    snprintf(s->hash, sizeof s->hash, "%s", hash ? json_object_get_string(hash) : "");
    rv_buf_puts(&s->said, said);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_kv_text(&w, "run", j->run);
    rv_jw_kv_text(&w, "moment", s->moment);
    rv_jw_kv_int(&w, "io_tokens", f->usage.input_tokens + f->usage.output_tokens);
    rv_jw_obj_end(&w);
    j->end = WORK_DONE;
    if (s->said.rc < 0)
        rv_work_not_done(j, "the summary is too long");
}

int rv_work_summary_keep(rv_store *store, const struct work_job *j, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, j->task.user};
    struct rv_app_summary what = {
        .moment = j->summary.moment, .agent = j->summary.agent, .run = j->run, .now_us = rv_app_now_us()};

    if (!j->run[0]) /* it was skipped */
        return 0;
    if (j->summary.said.len == 0)
        return RV_FAIL(err, RV_E_STATE, "the run of the summary goes on elsewhere");
    memcpy(what.hash, j->summary.hash, sizeof what.hash);
    return rv_app_put_summary(store, &scope, &what, rv_buf_str(&j->summary.said), err);
}
