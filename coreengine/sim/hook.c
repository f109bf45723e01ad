/* What hooks, policies, mocks and routing functions answer: what their protocol allows, and now and then what it does
 * not. None of them changes the world. */
#include "coreengine/sim/sim_internal.h"

#include <string.h>

#define SCRIPT_ENTRY "script" /* the mock of a stage that a script plays */

/* {metadata: {key: value}}: what a hook may change without harm. */
static int put_metadata(struct sim_seed *s, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    json_object *v = NULL;
    int rc = sim_any(r, 1, &v, err);

    if (rc < 0)
        return rc;
    rv_jw_key(w, "envelope");
    rv_jw_obj(w);
    rv_jw_key(w, "metadata");
    rv_jw_obj(w);
    size_t n = s->hints->n_metadata;
    rv_jw_kv_value(w, n ? s->hints->metadata[sim_below(r, (uint32_t)n)] : "seen", v);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
    json_object_put(v);
    return 0;
}

static int put_output(struct sim_seed *s, int stage, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    json_object *v = NULL;
    int rc = sim_output(s, stage, r, &v, err);

    if (rc == 0)
        rv_jw_value(w, v);
    json_object_put(v);
    return rc;
}

static bool is_post(const struct rv_effect *e)
{
    return strstr(e->request, "\"hook\":\"post_process\"") != NULL;
}

/* What a hook around a call says: what fits its place, or nothing. */
static const char *around_call(const struct rv_effect *e, struct sim_rng *r)
{
    static const struct {
        const char *mark, *replies[5];
    } places[] = {
        {"\"hook\":\"before_model\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"replace\",\"request\":{\"prompt\":\"another prompt\"}}",
          "{\"action\":\"replace\",\"request\":{\"options\":{\"temperature\":0.5,\"num_predict\":20}}}",
          "{\"action\":\"answer\",\"reply\":{\"output\":{\"total\":0}}}",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
        {"\"hook\":\"after_model\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"replace\",\"reply\":{\"text\":\"other words\"}}",
          "{\"action\":\"replace\",\"reply\":{\"output\":{\"total\":7}}}", "{}",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
        {"\"hook\":\"before_tool\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"answer\",\"result\":{\"data\":{\"made\":\"up\"}}}", "{}", "",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
        {"\"hook\":\"after_tool\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"replace\",\"result\":{\"data\":{\"made\":\"up\"}}}", "{}",
          "{\"action\":\"replace\",\"result\":{\"status\":\"error\",\"error\":\"made up\"}}",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
    };

    for (size_t i = 0; i < RV_COUNT(places); i++)
        if (strstr(e->request, places[i].mark))
            return sim_below(r, 2) ? "" : places[i].replies[sim_below(r, RV_COUNT(places[i].replies))];
    return NULL;
}

static int hook(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    int rc = 0;

    rv_jw_obj(w);
    if (is_post(e) && sim_below(r, 4) < 3) {
        rv_jw_key(w, "output");
        rc = put_output(s, e->stage, r, w, err);
    }
    if (rc == 0 && sim_below(r, 3) == 2)
        rc = put_metadata(s, r, w, err);
    rv_jw_obj_end(w);
    return rc;
}

static void policy(struct sim_rng *r, rv_jw *w)
{
    static const char *const words[] = {"allow", "allow", "allow", "deny", "confirm"};
    const char *word = words[sim_below(r, RV_COUNT(words))];

    rv_jw_obj(w);
    rv_jw_kv_text(w, "decision", word);
    if (sim_below(r, 2))
        rv_jw_kv_text(w, "reason", "a made-up reason");
    rv_jw_obj_end(w);
}

static void route(struct sim_seed *s, struct sim_rng *r, rv_jw *w)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    uint32_t to = sim_below(r, (uint32_t)p->n_agents + 6);

    rv_jw_obj(w);
    if (to >= 4 && to < p->n_agents + 4)
        rv_jw_kv_text(w, "next", p->agents[to - 4].name);
    else if (to == 1)
        rv_jw_kv_text(w, "terminate", "enough");
    else if (to == 2)
        rv_jw_kv_text(w, "next", "clarification");
    else if (to == 3)
        rv_jw_kv_text(w, "next", "confirmation");
    else if (to > 0)
        rv_jw_kv_text(w, "next", "end");
    rv_jw_obj_end(w);
}

static int scripted_mock(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    rv_jw_obj(w);
    rv_jw_key(w, "output");
    int rc = put_output(s, e->stage, r, w, err);
    if (rc == 0 && sim_below(r, 8) == 7) {
        rv_jw_key(w, "raise");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "kind", rv_interrupt_kind_text((enum rv_interrupt_kind)sim_below(r, RV_N_INTERRUPT)));
        rv_jw_kv_text(w, "message", "a made-up question");
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
    return rc;
}

static void illegal(struct sim_rng *r, rv_buf *b)
{
    static const char *const odd[] = {"[]",
                                      "null",
                                      "7",
                                      "no json",
                                      "{\"unknown\": 1}",
                                      "{\"output\": 5}",
                                      "{\"envelope\": {\"envelope_id\": \"other\"}}",
                                      "{\"envelope\": {\"agent_hop_count\": 0}}",
                                      "{\"envelope\": {\"max_llm_calls\": 1000000}}",
                                      "{\"decision\": \"perhaps\"}",
                                      "{\"next\": \"no_such_stage\"}"};
    rv_buf_clear(b);
    rv_buf_puts(b, odd[sim_below(r, RV_COUNT(odd))]);
}

static int legal(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_buf *b, rv_err **err)
{
    const char *around = NULL;
    rv_jw w = rv_jw_on(b);
    int rc = 0;

    if (e->entry == RV_NAME_POLICY)
        policy(r, &w);
    else if (e->entry == RV_NAME_ROUTE)
        route(s, r, &w);
    else if (e->entry == RV_NAME_MOCK && strcmp(e->name, SCRIPT_ENTRY) == 0)
        rc = scripted_mock(s, e, r, &w, err);
    else if (e->entry == RV_NAME_HOOK && (around = around_call(e, r)))
        rv_buf_puts(b, around);
    else if (e->entry == RV_NAME_MOCK)
        rc = put_output(s, e->stage, r, &w, err);
    else
        rc = hook(s, e, r, &w, err);
    return rc < 0 ? rc : rv_buf_check(b, "answer", err);
}

int sim_hook_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err)
{
    static const enum rv_sim_fault kinds[] = {RV_SIM_HOOK_ERROR, RV_SIM_HOOK_REPLY};
    size_t fault = sim_inject(s, kinds, RV_COUNT(kinds));
    struct sim_rng r = sim_rng_of(sim_bits(&s->tape));
    bool found = false;
    int rc = 0;

    if (fault == 1) {
        bool late = sim_below(&r, 2) == 1;
        sim_outcome_fail(o, late ? "TimeoutError" : "ExecutionError", false, late ? "no answer in time" : "it failed");
        return 0;
    }
    if (e->entry == RV_NAME_MOCK && strcmp(e->name, SCRIPT_ENTRY) == 0)
        rc = sim_script_answer(s, e, RV_SCRIPT_STAGE, (rv_str){e->request, e->request_len}, o, &found, err);
    if (rc == 0 && !found)
        rc = legal(s, e, &r, &o->text, err);
    if (rc == 0 && fault == 2 && !o->failed)
        illegal(&r, &o->text);
    return rc;
}
