/* Agents that are asked, held against what may be: who asked whom is known from the calls alone, so each event can be
 * told whether it may come now. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PATH       SIM_MAX_TEXT
#define MAX_TIMEOUT_US (INT64_C(86400) * RV_US_PER_S) /* a day, as agent/offer.c takes at most */

void sim_asked_fini(struct sim_watch *w)
{
    for (size_t i = 0; i < w->n_asked; i++)
        free(w->asked[i].path);
    free(w->asked);
}

bool sim_asked_at_work(const struct sim_watch *w)
{
    for (size_t i = 0; i < w->n_asked; i++)
        if (w->asked[i].state == SIM_AT_WORK)
            return true;
    return false;
}

/* --- paths: stage, its visit, and the call at each step down --- */

static void put_origin(const struct rv_origin *o, rv_buf *b)
{
    if (!o)
        return;
    put_origin(o->parent, b);
    rv_buf_printf(b, "/%zu:%s", strlen(o->parent_tool_call_id), o->parent_tool_call_id);
}

static void put_path(const struct sim_seed *s, const struct rv_effect *e, rv_buf *b)
{
    rv_buf_printf(b, "%d/%lld", e->stage, (long long)(e->stage >= 0 ? s->watch.visits[e->stage] : 0));
    put_origin(e->origin, b);
}

static struct sim_asked *find(struct sim_watch *w, const rv_buf *path)
{
    for (size_t i = w->n_asked; i-- > 0;)
        if (strcmp(w->asked[i].path, rv_buf_cstr(path)) == 0)
            return &w->asked[i];
    return NULL;
}

/* The agent whose the effect is; NULL with *err as it was: there is none such. */
static int owner(struct sim_seed *s, const struct rv_effect *e, struct sim_asked **out, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(MAX_PATH);

    put_path(s, e, &path);
    int rc = rv_buf_check(&path, "the way to an agent", err);
    if (rc == 0)
        *out = find(&s->watch, &path);
    rv_buf_fini(&path);
    return rc;
}

/* The call of ask_agent that the agent of the effect has under that id; added if make is true. */
static int asked_by(struct sim_seed *s, const struct rv_effect *e, const char *id, bool make, struct sim_asked **out,
                    rv_err **err)
{
    struct sim_watch *w = &s->watch;
    rv_buf path = RV_BUF_INIT(MAX_PATH);

    put_path(s, e, &path);
    rv_buf_printf(&path, "/%zu:%s", strlen(id), id);
    int rc = rv_buf_check(&path, "the way to an agent", err);
    *out = rc == 0 ? find(w, &path) : NULL;
    if (rc == 0 && !*out && make) {
        bool has_room = rv_has_room(&w->asked, &w->cap_asked, w->n_asked + 1, sizeof *w->asked);
        char *text = has_room ? rv_buf_steal(&path, NULL) : NULL;
        if (!text) {
            rc = RV_FAIL(err, RV_E_NOMEM, "watch an agent");
        } else {
            w->asked[w->n_asked] = (struct sim_asked){.path = text, .id = ++w->last_asked, .stage = e->stage};
            *out = &w->asked[w->n_asked++];
        }
    }
    rv_buf_fini(&path);
    return rc;
}

/* Those that it asked have ended before, and each has its result where it ended well. They are known no longer. */
static void close_below(struct sim_seed *s, const char *path, bool well)
{
    struct sim_watch *w = &s->watch;
    size_t len = strlen(path), n = 0;

    for (size_t i = 0; i < w->n_asked; i++) {
        struct sim_asked *a = &w->asked[i];
        if (strncmp(a->path, path, len) != 0 || a->path[len] != '/') {
            w->asked[n++] = *a;
            continue;
        }
        if (a->state == SIM_AT_WORK)
            sim_break(s, RV_SIM_KEEPS_AGENTS, "%s ends, and the agent that it asked (%s) has not", path, a->path);
        if (well && !a->has_result)
            sim_break(s, RV_SIM_KEEPS_AGENTS, "%s ends well, and its call of ask_agent (%s) has no result", path,
                      a->path);
        free(a->path);
    }
    w->n_asked = n;
}

/* --- events --- */

/* What the call of ask_agent allows its agent; the arguments stand in the effect before its event. */
static int64_t allowed_us(struct sim_seed *s, const struct rv_effect *e)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "question to an agent"};
    json_object *args = NULL;
    int64_t seconds = 0;

    if (rv_json_parse((rv_str){e->request, e->request_len}, &opts, &args,
                      RV_CODE_ONLY("unreadable arguments allow the usual time; the tape keeps want of memory")) ==
        RV_E_NOMEM)
        s->tape.rc = RV_E_NOMEM;
    if (!json_object_is_type(args, json_type_object) || !rv_json_get_int(args, "timeout_seconds", &seconds))
        seconds = 0;
    json_object_put(args);
    int64_t us = seconds < MAX_TIMEOUT_US / RV_US_PER_S ? seconds * RV_US_PER_S : MAX_TIMEOUT_US;
    return us > 0 ? us : s->subject->pipeline->delegation_timeout_ms * RV_US_PER_MS;
}

static int call_started(struct sim_seed *s, size_t at, const char *id, rv_err **err)
{
    const struct rv_effect *e = &s->fx.items[at];
    struct sim_asked *a = NULL;
    int rc = asked_by(s, e, id, true, &a, err);

    if (rc < 0)
        return rc;
    if (a->has_result || a->state != SIM_ASKED)
        sim_break(s, RV_SIM_KEEPS_AGENTS, "ask_agent is called again as %s, which %s", a->path,
                  a->has_result ? "has its result" : "has its agent");
    s->tally->n_asked++;
    a->until_us = at > 0 && s->fx.items[at - 1].kind == RV_EFFECT_CALL_TOOL ? allowed_us(s, &s->fx.items[at - 1]) : 0;
    return 0;
}

static int has_result(struct sim_seed *s, const struct rv_effect *e, const char *id, rv_err **err)
{
    struct sim_asked *a = NULL;
    int rc = asked_by(s, e, id, true, &a, err); /* one that is refused was never called */

    if (rc < 0)
        return rc;
    if (a->has_result)
        sim_break(s, RV_SIM_KEEPS_AGENTS, "the call of ask_agent %s has a second result", a->path);
    if (a->state == SIM_AT_WORK)
        sim_break(s, RV_SIM_KEEPS_AGENTS, "the call of ask_agent %s has a result while its agent works", a->path);
    a->has_result = true;
    return 0;
}

static void check_depth(struct sim_seed *s, const struct rv_effect *e)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    const struct rv_agent *stage = &p->agents[e->stage];
    int64_t depth = 0, n = strcmp(stage->declared.doc ? stage->declared.doc->name : stage->name, e->origin->agent) == 0;

    for (const struct rv_origin *o = e->origin; o; o = o->parent) {
        depth++;
        n += strcmp(o->agent, e->origin->agent) == 0;
    }
    if (depth != e->origin->depth || depth > p->max_delegation_depth)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "agent \"%s\" works %lld deep, says %d, and max_delegation_depth is %lld",
                  e->origin->agent, (long long)depth, e->origin->depth, (long long)p->max_delegation_depth);
    if (n > p->max_delegation_repeats)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "agent \"%s\" is at work %lld times, max_delegation_repeats is %lld",
                  e->origin->agent, (long long)n, (long long)p->max_delegation_repeats);
    s->tally->max_depth = depth > s->tally->max_depth ? depth : s->tally->max_depth;
}

static int begins(struct sim_seed *s, const struct rv_effect *e, struct sim_asked *a, rv_err **err)
{
    struct rv_effect above = *e;
    struct sim_asked *parent = NULL;

    if (!e->origin || !a || a->state != SIM_ASKED || a->has_result) {
        sim_break(s, RV_SIM_KEEPS_AGENTS, "agent \"%s\" begins, and %s", e->origin ? e->origin->agent : "",
                  !a              ? "no stage asked it"
                  : a->has_result ? "its call has a result"
                                  : "has begun before");
        return 0;
    }
    check_depth(s, e);
    above.origin = e->origin->parent;
    int rc = above.origin ? owner(s, &above, &parent, err) : 0;
    if (rc < 0)
        return rc;
    if (above.origin ? !parent || parent->state != SIM_AT_WORK : !s->watch.is_open[e->stage])
        sim_break(s, RV_SIM_KEEPS_AGENTS, "agent \"%s\" begins, and who asked it is not at work", e->origin->agent);
    a->state = SIM_AT_WORK;
    a->until_us += s->last_event_us;
    if (parent && parent->until_us < a->until_us)
        a->until_us = parent->until_us;
    s->tally->n_agents++;
    return 0;
}

static void ends(struct sim_seed *s, const struct rv_effect *e, struct sim_asked *a, json_object *line)
{
    bool well = strcmp(sim_text(line, "status"), "error") != 0;
    json_object *usage = rv_json_get_obj(line, "usage");

    if (sim_number(usage, "input_tokens") != a->told.input_tokens ||
        sim_number(usage, "output_tokens") != a->told.output_tokens ||
        sim_number(usage, "cost_micro_usd") != a->told.cost_micro_usd)
        sim_break(
            s, RV_SIM_KEEPS_AGENTS,
            "agent \"%s\" says that its calls took %lld + %lld tokens and %lld micro-USD, and they took %lld + %lld "
            "and %lld",
            e->origin->agent, (long long)sim_number(usage, "input_tokens"),
            (long long)sim_number(usage, "output_tokens"), (long long)sim_number(usage, "cost_micro_usd"),
            (long long)a->told.input_tokens, (long long)a->told.output_tokens, (long long)a->told.cost_micro_usd);
    if (s->last_event_us > a->until_us)
        sim_break(s, RV_SIM_KEEPS_AGENTS, "agent \"%s\" ends %lld us after its time", e->origin->agent,
                  (long long)(s->last_event_us - a->until_us));
    a->state = SIM_ENDED;
    s->tally->n_agents_ok += well;
    sim_session_agent_ended(s, e->stage);
    char *path = a->path;
    close_below(s, path, well); /* moves a, not its path */
}

/* Nothing comes from an agent before it begins or after it has ended. */
static int of_agent(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
{
    struct sim_asked *a = NULL;
    int rc = owner(s, e, &a, err);

    if (rc < 0)
        return rc;
    if (e->emit == RV_EMIT_AGENT_STARTED)
        return begins(s, e, a, err);
    if (!a || a->state != SIM_AT_WORK) {
        sim_break(s, RV_SIM_KEEPS_AGENTS, "event %s comes from agent \"%s\", which is not at work",
                  rv_emit_text(e->emit), e->origin->agent);
        return 0;
    }
    json_object *line = e->emit == RV_EMIT_AGENT_COMPLETED ? sim_watch_parse(s, e) : NULL;
    if (line)
        ends(s, e, a, line);
    json_object_put(line);
    return 0;
}

static int stage_ends(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(MAX_PATH);
    json_object *line = sim_watch_parse(s, e);

    put_path(s, e, &path);
    int rc = rv_buf_check(&path, "the way to an agent", err);
    if (rc == 0 && line)
        close_below(s, rv_buf_cstr(&path), strcmp(sim_text(line, "status"), "error") != 0);
    json_object_put(line);
    rv_buf_fini(&path);
    return rc;
}

static int of_call(struct sim_seed *s, size_t at, rv_err **err)
{
    static const char mark[] = "\"tool\":\"" SIM_ASK_AGENT "\"";
    const struct rv_effect *e = &s->fx.items[at];
    rv_str text = rv_effect_text(&s->fx, e);

    if (!memmem(text.ptr, text.len, mark, sizeof mark - 1))
        return 0;
    json_object *line = sim_watch_parse(s, e);
    if (!line)
        return 0;
    const char *id = sim_text(line, "step_id");
    bool is_own = strcmp(sim_text(line, "tool"), SIM_ASK_AGENT) == 0;
    int rc = !is_own ? 0 : e->emit == RV_EMIT_TOOL_RESULT ? has_result(s, e, id, err) : call_started(s, at, id, err);
    json_object_put(line);
    return rc;
}

int sim_asked_event(struct sim_seed *s, size_t at, rv_err **err)
{
    const struct rv_effect *e = &s->fx.items[at];
    int rc = e->origin ? of_agent(s, e, err) : 0;

    if (rc < 0 || s->is_broken)
        return rc;
    if (e->emit == RV_EMIT_TOOL_CALL_START || e->emit == RV_EMIT_TOOL_RESULT)
        return of_call(s, at, err);
    return e->emit == RV_EMIT_STAGE_COMPLETED && s->watch.n_asked > 0 ? stage_ends(s, e, err) : 0;
}

void sim_asked_told(struct sim_seed *s, const struct rv_effect *e, const struct rv_usage *used)
{
    struct sim_asked *a = NULL;

    if (!e->origin)
        return;
    int rc = owner(s, e, &a, RV_CODE_ONLY("the tape keeps the code"));
    if (rc < 0)
        s->tape.rc = rc;
    else if (a)
        rv_usage_add(&a->told, used);
}

/* --- calls --- */

int sim_asked_call(struct sim_seed *s, const struct rv_effect *e, int64_t *id, rv_err **err)
{
    struct sim_asked *a = NULL;
    int rc = e->origin ? owner(s, e, &a, err) : 0;

    if (rc < 0 || !e->origin)
        return rc;
    if (!a || a->state != SIM_AT_WORK) {
        sim_break(s, RV_SIM_KEEPS_AGENTS, "call %lld is made for agent \"%s\", which is not at work",
                  (long long)e->call_id, e->origin->agent);
        return 0;
    }
    if (e->deadline_us > a->until_us || e->at_us > a->until_us)
        sim_break(s, RV_SIM_KEEPS_AGENTS, "call %lld of agent \"%s\" may end later than the agent has to",
                  (long long)e->call_id, e->origin->agent);
    *id = a->id;
    return 0;
}

void sim_asked_recovered(struct sim_watch *w, int64_t gap_us)
{
    for (size_t i = 0; i < w->n_asked; i++)
        if (w->asked[i].state == SIM_AT_WORK)
            w->asked[i].until_us += gap_us;
}

void sim_asked_step_ended(struct sim_seed *s)
{
    const struct sim_watch *w = &s->watch;

    for (size_t i = 0; i < w->n_open; i++) {
        bool works = w->open[i].asked == 0;
        for (size_t k = 0; k < w->n_asked && !works; k++)
            works = w->asked[k].id == w->open[i].asked && w->asked[k].state == SIM_AT_WORK;
        if (!works)
            sim_break(s, RV_SIM_KEEPS_AGENTS, "call %lld is under way, and the agent whose it is has ended",
                      (long long)w->open[i].call_id);
    }
}
