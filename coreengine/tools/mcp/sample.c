/* Completions that servers want: each is the service `models.call`, asked on a worker while the call of the tool goes
 * on. So it is a run of its own, with a journal, and a call that is made again after a crash finds what it had asked
 * before. What the models took is counted for the run of the call. They are made one after another, so that each gets
 * what those before it have left of the bounds and the budget; one whose cost is not known counts as all that it got.
 */
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/mcp.h"
#include "coreengine/tools/mcp/mcptools_internal.h"

#define SERVICE   "models.call"
#define MAX_CALLS 2 /* of the model for one completion: the tool waits, and its server can ask again */

enum { RUN, STAGE, USER, SESSION, KEY, N_TEXTS }; /* in mcp_samples.texts */

struct mcp_sample {
    struct rv_tool_work work;
    struct mcp_sample *next; /* of its call */
    struct mcp_samples *of;  /* NULL: it was given up; of the loop */
    int64_t sample;          /* its number at the client */
    bool has_begun;          /* else it waits for those before it */
    json_object *params;     /* until it begins; owned, of the loop */
    struct rv_usage most;    /* that it may take, once it has begun */
    char *args, *tool;       /* owned, as the rest */
    char *texts[N_TEXTS];
    rv_buf answer;
    rv_err *why; /* NULL: there is an answer */
};

static int copy_texts(const char *const from[N_TEXTS], char *to[N_TEXTS], rv_err **err)
{
    for (size_t i = 0; i < N_TEXTS; i++) {
        to[i] = rv_str_dup(rv_str_of(from[i] ? from[i] : ""));
        if (!to[i])
            return RV_FAIL(err, RV_E_NOMEM, "call an MCP tool");
    }
    return 0;
}

int mcptools_samples_init(struct mcp_samples *s, const struct rv_mcp_tool *tool, rv_err **err)
{
    const struct rv_tool_call *c = s->of;
    const char *const from[] = {
        [RUN] = c->run_id, [STAGE] = c->stage, [USER] = c->user_id, [SESSION] = c->session_id, [KEY] = c->key};
    RV_EACH_HAS_ROW(from, N_TEXTS);

    if (!rv_mcp_samples(tool->server) || !s->workers->begin)
        return 0;
    s->model = tool->server->sampling;
    s->tool = tool->qualified;
    return copy_texts(from, s->texts, err);
}

/* --- on the worker --- */

static bool run(struct rv_tool_work *w)
{
    struct mcp_sample *m = (struct mcp_sample *)w;
    const struct rv_service_ask ask = {.service = SERVICE,
                                       .args = rv_str_of(m->args),
                                       .capability = "mcp",
                                       .entry = m->tool,
                                       .kind = "tool",
                                       .is_declared = true, /* the pipeline says so: the key `sampling` */
                                       .run_id = m->texts[RUN],
                                       .stage = m->texts[STAGE],
                                       .user_id = m->texts[USER],
                                       .session_id = m->texts[SESSION],
                                       .key = m->texts[KEY],
                                       .call_id = w->call_id,
                                       .until_us = RV_NEVER};

    if (w->ask && w->ask(w, &ask, &m->answer, &m->why) == 0)
        return true;
    if (!m->why)
        RV_IGNORE(RV_FAIL(&m->why, RV_E_STATE, "no model can be asked here"), "the error says it");
    return true;
}

/* --- on the loop --- */

static void free_work(struct rv_tool_work *w)
{
    struct mcp_sample *m = (struct mcp_sample *)w;

    for (size_t i = 0; i < RV_COUNT(m->texts); i++)
        free(m->texts[i]);
    json_object_put(m->params);
    free(m->args);
    free(m->tool);
    rv_buf_fini(&m->answer);
    rv_err_free(m->why);
    free(m);
}

static void unlink_sample(struct mcp_sample *m)
{
    struct mcp_sample **at = &m->of->first;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    m->of = NULL;
}

/* It has begun, and what it took is not known. */
static void count_most(struct mcp_samples *s, const struct mcp_sample *m)
{
    rv_usage_add(&s->of->used, &m->most);
}

/* Did the service refuse before a model could be asked? */
static bool is_refusal(const rv_err *why)
{
    return rv_err_is(why, RV_E_INVALID) || rv_err_is(why, RV_E_STATE) || rv_err_is(why, RV_E_NOT_FOUND) ||
           rv_err_is(why, RV_E_QUOTA);
}

/* {run, text, usage} of the service, or {run, error, usage}. */
static int read_answer(struct mcp_samples *s, const struct mcp_sample *m, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.what = "answer of a model"};
    struct rv_usage used = {0};
    json_object *answer = NULL;
    const char *text = NULL;
    int rc = rv_json_parse(rv_buf_str(&m->answer), &opts, &answer, err);

    if (rc < 0) {
        count_most(s, m);
        return rc;
    }
    RV_IGNORE(!rv_usage_read_json(rv_json_get_obj(answer, "usage"), &used), "absent: 0");
    bool failed = rv_json_get_text(answer, "error", &text);
    if (used.calls == 0 && !failed)
        used.calls = 1; /* of a script, or of a provider that does not say what it took */
    rv_usage_add(&s->of->used, &used);
    if (failed)
        rc = RV_FAIL(err, RV_E_TOOL, "the model does not answer: %s", text);
    else if (rv_json_get_text(answer, "text", &text))
        rc = rv_mcp_sampling_build_result(text, strchr(s->model, ':') + 1, out, err);
    else
        rc = RV_FAIL(err, RV_E_INVALID, "the answer of the model has no text");
    json_object_put(answer);
    return rc;
}

/* False: the call is over with that, and s is gone. */
static bool tell(struct mcp_samples *s, int64_t sample, json_object *result, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(4096);
    bool gone = false, *outer = s->gone;

    if (!result && why)
        rv_err_write_chain(why, &text);
    s->gone = &gone;
    rv_mcp_pool_answer_sample(s->call, sample, result, text.len ? rv_buf_cstr(&text) : "no memory");
    rv_buf_fini(&text);
    if (!gone)
        s->gone = outer;
    else if (outer)
        *outer = true;
    return !gone;
}

static void begin_next(struct mcp_samples *s);

static void done(struct rv_tool_work *w)
{
    struct mcp_sample *m = (struct mcp_sample *)w;
    struct mcp_samples *s = m->of;
    json_object *result = NULL;
    rv_err *err = NULL;

    if (!s)
        return;
    unlink_sample(m);
    if (!m->why)
        RV_IGNORE(read_answer(s, m, &result, &err), "the error says it");
    else if (!is_refusal(m->why))
        count_most(s, m);
    if (tell(s, m->sample, result, m->why ? m->why : err))
        begin_next(s);
    json_object_put(result);
    rv_err_free(err);
}

/* --- the beginning --- */

/* What the run has left for one, while it waits. */
static int check_bounds(const struct mcp_samples *s, struct mcp_sample *m, rv_err **err)
{
    const struct rv_tool_call *c = s->of;
    int64_t calls = c->models_left - c->used.calls, money = c->money_left - c->used.cost_micro_usd;

    if (c->is_beside)
        return RV_FAIL(err, RV_E_LIMIT,
                       "other stages or agents may call models at the same time, and all of them could not be kept "
                       "within max_llm_calls and the budget: call the tool where nothing runs beside it");
    if (calls <= 0)
        return RV_FAIL(err, RV_E_LIMIT, "all model calls that max_llm_calls allows the run were made");
    if (c->money_left >= 0 && money <= 0)
        return RV_FAIL(err, RV_E_LIMIT, "the budget of the run is spent");
    m->most = (struct rv_usage){.calls = calls < MAX_CALLS ? calls : MAX_CALLS,
                                .cost_micro_usd = c->money_left >= 0 ? money : 0,
                                .estimated = true};
    return 0;
}

static int write_args(const struct mcp_samples *s, struct mcp_sample *m, rv_err **err)
{
    rv_buf prompt = RV_BUF_INIT(RV_MCP_MAX_PROMPT), args = RV_BUF_INIT(RV_SERVICE_MAX_ARGS);
    rv_jw w = rv_jw_on(&args);
    int rc = rv_mcp_sampling_write_prompt(m->params, &prompt, err);

    if (rc == 0) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "prompt", rv_buf_cstr(&prompt));
        rv_jw_kv_text(&w, "model", s->model);
        rv_jw_kv_int(&w, "max_calls", m->most.calls);
        if (s->of->money_left >= 0)
            rv_jw_kv_int(&w, "budget_micro_usd", m->most.cost_micro_usd);
        rv_jw_kv_bool(&w, "tells_failure", true);
        rv_jw_obj_end(&w);
        rc = rv_buf_check(&args, "what an MCP server asks a model", err);
    }
    if (rc == 0)
        m->args = rv_buf_steal(&args, NULL);
    rv_buf_fini(&prompt);
    rv_buf_fini(&args);
    return rc == 0 && !m->args ? RV_FAIL(err, RV_E_NOMEM, "ask a model for an MCP server") : rc;
}

static int begin(struct mcp_samples *s, struct mcp_sample *m, rv_err **err)
{
    int rc = copy_texts((const char *const *)s->texts, m->texts, err);

    if (rc == 0)
        rc = check_bounds(s, m, err);
    if (rc == 0)
        rc = write_args(s, m, err);
    if (rc == 0 && !(m->tool = rv_str_dup(rv_str_of(s->tool))))
        rc = RV_FAIL(err, RV_E_NOMEM, "ask a model for an MCP server");
    if (rc < 0)
        return rc;
    m->work.run = run;
    m->work.done = done;
    m->work.free = free_work;
    m->work.kind = "tool";
    m->work.name = m->tool;
    m->work.run_id = m->texts[RUN];
    m->work.call_id = s->of->call_id;
    json_object_put(m->params); /* the rest is of the worker */
    m->params = NULL;
    rc = s->workers->begin(s->workers->self, &m->work, err);
    m->has_begun = rc == 0;
    return rc;
}

/* Unless one is under way, which is the first: those behind it wait. */
static void begin_next(struct mcp_samples *s)
{
    bool goes_on = true;

    while (goes_on && s->first && !s->first->has_begun) {
        struct mcp_sample *m = s->first;
        int64_t sample = m->sample;
        rv_err *err = NULL;
        if (begin(s, m, &err) == 0)
            return;
        unlink_sample(m);
        free_work(&m->work);
        goes_on = tell(s, sample, NULL, err);
        rv_err_free(err);
    }
}

void mcptools_samples_add(struct mcp_samples *s, int64_t sample, json_object *params)
{
    struct mcp_sample *m = calloc(1, sizeof *m), **at = &s->first;

    if (!m) {
        RV_IGNORE(!tell(s, sample, NULL, NULL), "nothing is left to do");
        return;
    }
    m->answer = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    m->sample = sample;
    m->params = json_object_get(params);
    m->of = s;
    while (*at)
        at = &(*at)->next;
    *at = m;
    begin_next(s);
}

void mcptools_samples_end(struct mcp_samples *s)
{
    while (s->first) {
        struct mcp_sample *m = s->first;
        bool waits = !m->has_begun;
        if (!waits)
            count_most(s, m);
        unlink_sample(m);
        if (waits)
            free_work(&m->work);
        else
            s->workers->give_up(s->workers->self, &m->work);
    }
    for (size_t i = 0; i < RV_COUNT(s->texts); i++)
        free(s->texts[i]);
    if (s->gone)
        *s->gone = true;
    *s = (struct mcp_samples){.first = NULL};
}
