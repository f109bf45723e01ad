/* Handlers that show pipelines and runs as pages need them: drawings, times, journals, what a replay says, where two
 * runs part. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"

#define MAX_RECORDS 1000              /* of one answer: as SRV_MAX_LIMIT rows of a list, and each may be long */
#define MAX_JOURNAL ((size_t)8 << 20) /* bytes of one answer, but for a longer record: as any JSON text */

/* --- pipelines --- */

static int write_name(void *self, const char *name, rv_err **err)
{
    (void)err;
    rv_jw_text(self, name);
    return 0;
}

int srv_pipelines_list(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = rv_app_list_pipelines(c->server->opts->pipelines, write_name, &w, err);
    rv_jw_arr_end(&w);
    return rc;
}

static void write_stage(const struct rv_agent *a, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", a->name);
    rv_jw_kv_text(w, "output_key", a->output.key);
    rv_jw_kv_bool(w, "has_llm", a->has_llm);
    rv_jw_kv_bool(w, "has_tools", a->has_tools);
    rv_jw_kv_bool(w, "asks", a->ask.question != NULL);
    rv_jw_kv_text(w, "role", a->has_llm ? a->model.role : NULL);
    rv_jw_kv_text(w, "agent", a->declared.doc ? a->declared.doc->name : NULL);
    rv_jw_kv_text(w, "pipeline", a->inner.file && a->inner.file[0] ? a->inner.file : NULL);
    rv_jw_kv_int(w, "max_visits", a->limits.max_visits);
    rv_jw_kv_list(w, "tools", &a->tools.allowed);
    rv_jw_obj_end(w);
}

static void write_limits(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "limits");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "max_iterations", p->max_iterations);
    rv_jw_kv_int(w, "max_llm_calls", p->max_llm_calls);
    rv_jw_kv_int(w, "max_agent_hops", p->max_agent_hops);
    rv_jw_kv_int(w, "default_timeout_seconds", p->default_timeout_seconds);
    if (p->has_budget)
        rv_jw_kv_int(w, "budget_micro_usd", p->budget_micro_usd);
    rv_jw_obj_end(w);
}

static int write_pipeline(struct srv_call *c, const struct rv_pipeline *p, rv_jw *w, rv_err **err)
{
    rv_buf graph = RV_BUF_INIT(SRV_MAX_ANSWER);
    struct rv_app_proved proved;

    int rc = rv_app_prove(p, INT64_MAX, &proved, err);
    if (rc < 0)
        return rc;
    rv_jw_kv_text(w, "name", p->name);
    rv_jw_kv_text(w, "description", p->description);
    bool is_parallel = p->default_run_mode == RV_MODE_PARALLEL;
    rv_jw_kv_text(w, "mode", rv_run_mode_text(is_parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL));
    write_limits(p, w);
    rv_app_proved_write(p, &proved, w);
    rv_proof_fini(&proved.part);
    rv_jw_key(w, "stages");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_agents; i++)
        write_stage(&p->agents[i], w);
    rv_jw_arr_end(w);
    rv_pipeline_write_graph(p, RV_GRAPH_JSON, &graph);
    rc = rv_buf_check(&graph, "the drawing of a pipeline", err);
    rv_jw_key(w, "graph");
    rv_jw_raw(w, rc == 0 ? rv_buf_str(&graph) : RV_STR_LIT("null"));
    rv_buf_fini(&graph);
    (void)c;
    return rc;
}

int srv_pipeline_show(struct srv_call *c, rv_err **err)
{
    const struct rv_app_load_opts opts = {.store = c->store};
    rv_buf path = RV_BUF_INIT(8192);
    struct rv_app_loaded l;

    int rc = rv_app_find_pipeline_path(c->server->opts->pipelines, c->args[0], &path, err);
    if (rc == 0)
        rc = rv_app_load_plain(&c->app, rv_buf_cstr(&path), &opts, &l, err);
    rv_buf_fini(&path);
    if (rc < 0)
        return rc;
    bool is_sound = l.pipeline && l.pipeline->is_sound && rv_findings_n_errors(l.findings) == 0;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "pipeline", c->args[0]); /* what POST /runs takes */
    rv_jw_kv_bool(&w, "valid", is_sound);
    if (is_sound)
        rc = write_pipeline(c, l.pipeline, &w, err);
    rv_jw_obj_end(&w);
    rv_app_loaded_fini(&l);
    return rc;
}

/* --- runs --- */

/* The run of the path, of the caller: only whole ids are taken, and what is another's is as if there was none. */
static int find_run(struct srv_call *c, const char *id, rv_err **err)
{
    struct rv_run_row row;
    int rc = rv_store_get_run(c->store, &c->app.scope, id, &row, err);

    if (rc == 0)
        rv_run_row_fini(&row);
    return rc;
}

static int open_past(struct srv_call *c, struct rv_app_past *out, rv_err **err)
{
    int rc = find_run(c, c->args[0], err);

    return rc == 0 ? rv_app_past_open(c->store, &c->app.scope, c->args[0], out, err) : rc;
}

typedef int view_fn(const struct rv_app_view *view, rv_jw *w, rv_err **err);

static int show(struct srv_call *c, const struct rv_app_window *window, view_fn *write, rv_err **err)
{
    struct rv_app_past past = {0};
    struct rv_app_steps steps = {0};
    struct rv_replayed replayed = {0};

    int rc = open_past(c, &past, err);
    if (rc == 0)
        rc = rv_app_steps_read(c->store, &past, window, &steps, &replayed, err);
    if (rc == 0) {
        const struct rv_app_view view = {.past = &past, .steps = &steps, .replayed = &replayed, .now_us = srv_now_us()};
        rv_jw w = srv_call_json(c, 200);
        rc = write(&view, &w, err);
    }
    rv_app_steps_fini(&steps);
    rv_replayed_fini(&replayed);
    rv_app_past_fini(&past);
    return rc;
}

int srv_run_graph(struct srv_call *c, rv_err **err)
{
    const struct rv_app_window window = {.all = true};

    return show(c, &window, rv_app_progress_write, err);
}

static int write_timeline(const struct rv_app_view *view, rv_jw *w, rv_err **err)
{
    (void)err;
    rv_app_timeline_write(view, w);
    return 0;
}

int srv_run_timeline(struct srv_call *c, rv_err **err)
{
    struct rv_app_window window = {.from = 1, .to = SRV_MAX_LIMIT};
    int64_t limit = SRV_MAX_LIMIT;

    int rc = srv_call_int(c, "from", 1, INT64_MAX / 2, &window.from, err);
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &limit, err);
    window.to = window.from + limit - 1;
    return rc == 0 ? show(c, &window, write_timeline, err) : rc;
}

/* --- journals --- */

struct page {
    rv_jw *w;
    rv_buf *out;
    int64_t next;
};

/* A page that is long enough ends the reading; the records that were asked for and did not fit are the next page. */
static int write_record(void *self, const struct rv_record *r, rv_err **err)
{
    struct page *p = self;

    (void)err;
    if (p->out->len > MAX_JOURNAL)
        return 0;
    rv_record_write_json(r, p->w);
    p->next = r->seq + 1;
    return 0;
}

int srv_run_journal(struct srv_call *c, rv_err **err)
{
    struct rv_run_row row;
    int64_t from = 1, limit = SRV_LIMIT;

    int rc = srv_call_int(c, "from", 1, INT64_MAX / 2, &from, err);
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, MAX_RECORDS, &limit, err);
    if (rc == 0)
        rc = rv_store_get_run(c->store, &c->app.scope, c->args[0], &row, err);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    struct page page = {.w = &w, .out = &c->out, .next = from};
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "run", row.id);
    rv_jw_kv_int(&w, "of", row.n_records);
    rv_jw_key(&w, "records");
    rv_jw_arr(&w);
    rc = rv_store_read(c->store, &c->app.scope, &(struct rv_record_range){row.id, from, from + limit - 1}, write_record,
                       &page, err);
    rv_jw_arr_end(&w);
    rv_jw_key(&w, "next");
    if (page.next <= row.n_records)
        rv_jw_int(&w, page.next);
    else
        rv_jw_null(&w);
    rv_jw_obj_end(&w);
    rv_run_row_fini(&row);
    return rc;
}

/* --- what a replay says, and where two runs part --- */

int srv_run_replay(struct srv_call *c, rv_err **err)
{
    struct rv_replayed replayed = {0};
    struct rv_app_past past = {0};
    struct rv_app_verified v;
    rv_err *fault = NULL;

    int rc = open_past(c, &past, err);
    if (rc < 0)
        return rc;
    rc = rv_app_verify(c->store, &past, NULL, &v, &replayed, &fault);
    if (rc < 0 && !rv_app_is_difference(fault)) {
        rv_err_pass(err, fault);
    } else {
        rv_jw w = srv_call_json(c, 200);
        rv_app_verified_write(&past, &v, fault, &w);
        rv_err_free(fault);
        rc = 0;
    }
    rv_replayed_fini(&replayed);
    rv_app_past_fini(&past);
    return rc;
}

int srv_run_diff(struct srv_call *c, rv_err **err)
{
    struct rv_app_comparison cmp;
    char *with;
    int rc = srv_call_dup_text(c, "with", &with, err);

    if (rc == 0 && !with)
        rc = RV_FAIL(err, RV_E_INVALID, "the parameter \"with\" must be the id of the other run");
    if (rc == 0)
        rc = find_run(c, c->args[0], err);
    if (rc == 0)
        rc = find_run(c, with, err);
    if (rc == 0) {
        rc = rv_app_diff(c->store, &c->app.scope, (const char *const[]){c->args[0], with}, false, &cmp, err);
        if (rc == 0) {
            rv_jw w = srv_call_json(c, 200);
            rv_app_comparison_write(&cmp, &w);
        }
        rv_app_comparison_fini(&cmp);
    }
    free(with);
    return rc;
}
