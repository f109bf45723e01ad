/* Agents that are asked: whom a model names and what it says, and the document that comes back, or that none does. */
#include "coreengine/sim/sim_internal.h"

#include <stdio.h>
#include <string.h>

/* --- the question --- */

/* Mostly an agent that exists; sometimes the asking agent, an unknown name, or no name. */
static const char *whom(const struct sim_seed *s, const char *self, struct sim_rng *r)
{
    static const char *const others[] = {"nobody", "no name!", ""};
    uint32_t how = sim_below(r, 16);

    if (how == 15)
        return others[sim_below(r, RV_COUNT(others))];
    if (how >= 13)
        return self;
    return s->subject->n_agents ? s->subject->agents[sim_below(r, (uint32_t)s->subject->n_agents)].name : "nobody";
}

static void put_time(struct sim_rng *r, rv_buf *b)
{
    static const char *const times[] = {"60", "1",  "2",   "30",       "86400", "1e3", "9007199254740993",
                                        "0",  "-1", "1.5", "\"soon\"", "null"};
    uint32_t i = sim_below(r, 2) ? sim_below(r, RV_COUNT(times)) : sim_below(r, 4);

    rv_buf_printf(b, ",\"timeout_seconds\":%s", times[i]);
}

static int put_data(struct sim_rng *r, rv_buf *b, rv_err **err)
{
    json_object *v = NULL, *data = NULL;
    int rc = sim_any(r, 0, &v, err);

    if (rc == 0 && !json_object_is_type(v, json_type_object) && sim_below(r, 8) < 7) {
        data = json_object_new_object();
        rc = data ? rv_json_set_ref(data, "value", v, err) : RV_FAIL(err, RV_E_NOMEM, "make a question");
    }
    if (rc == 0) {
        rv_buf_puts(b, ",\"input_data\":");
        rv_json_write(data ? data : v, b);
    }
    json_object_put(data);
    json_object_put(v);
    return rc;
}

/* What may stand beside the name and the text. */
static int put_rest(struct sim_rng *r, rv_buf *b, rv_err **err)
{
    static const char *const users[] = {"\"\"", "\"someone\"", "\"somebody-else\"", "7"};
    int rc = 0;

    if (sim_below(r, 4) == 3)
        rc = put_data(r, b, err);
    if (rc == 0 && sim_below(r, 3) == 2)
        put_time(r, b);
    if (rc == 0 && sim_below(r, 5) == 4)
        rv_buf_printf(b, ",\"structured_output_override\":%s", sim_below(r, 2) ? "false" : "true");
    if (rc == 0 && sim_below(r, 20) == 19)
        rv_buf_printf(b, ",\"user_id\":%s", users[sim_below(r, RV_COUNT(users))]);
    if (rc == 0 && sim_below(r, 40) == 39)
        rv_buf_puts(b, ",\"unasked\":true");
    return rc;
}

int sim_ask_arguments(struct sim_seed *s, const char *self, struct sim_rng *r, rv_buf *text, rv_err **err)
{
    json_object *name = json_object_new_string(whom(s, self, r)), *words = sim_words(r, 6);
    int rc = name && words ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a question");

    if (rc == 0) {
        rv_buf_puts(text, "{\"agent_name\":");
        rv_json_write(name, text);
        if (sim_below(r, 24) < 23) {
            rv_buf_puts(text, ",\"input_text\":");
            rv_json_write(words, text);
        }
        rc = put_rest(r, text, err);
        rv_buf_putc(text, '}');
    }
    json_object_put(name);
    json_object_put(words);
    return rc < 0 ? rc : rv_buf_check(text, "arguments", err);
}

/* --- the document --- */

static const struct rv_sim_agent *find(const struct sim_seed *s, const char *name)
{
    for (size_t i = 0; i < s->subject->n_agents; i++)
        if (strcmp(s->subject->agents[i].name, name) == 0)
            return &s->subject->agents[i];
    return NULL;
}

/* An answer that the look-up of agents never gives, but a damaged store might. */
static void put_odd(struct sim_rng *r, rv_buf *b)
{
    static const char *const odd[] = {
        "{}",
        "[]",
        "null",
        "no json",
        "{\"agent_document\":7}",
        "{\"agent_document\":\"\"}",
        "{\"agent_document\":\"type: object\"}",
        "{\"agent_document\":\"type: object\\nname: another\\ndescription: Somebody else.\"}",
        "{\"agent_document\":\"name: [\"}",
        "{\"agent_document\":\"type: object\\ntools: [{name: no_such_tool}]\"}"};
    rv_buf_puts(b, odd[sim_below(r, RV_COUNT(odd))]);
}

int sim_ask_answer(struct sim_seed *s, const struct rv_effect *e, bool spoils, struct sim_rng *r, struct sim_outcome *o,
                   rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "question to an agent"};
    json_object *args = NULL;
    const char *name = "";
    char why[RV_CONTEXT_MAX_TEXT];
    rv_jw w = rv_jw_on(&o->text);

    int rc = rv_json_parse((rv_str){e->request, e->request_len}, &opts, &args, err);
    if (rc < 0)
        return rc;
    RV_IGNORE(!rv_json_get_text(args, "agent_name", &name), "the core has looked at it");
    const struct rv_sim_agent *a = find(s, name);
    if (spoils) {
        put_odd(r, &o->text);
    } else if (!a || !a->document.ptr) { /* as rv_call_find_agent() says it */
        snprintf(why, sizeof why,
                 a ? "Agent '%.128s' can not be used: its document has faults" : "Agent '%.128s' not found", name);
        sim_outcome_fail(o, a ? "AgentError" : "NotFoundError", false, why);
    } else {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "agent", name);
        rv_jw_kv_str(&w, "agent_document", a->document);
        rv_jw_obj_end(&w);
    }
    json_object_put(args);
    return rv_buf_check(&o->text, "the document of an agent", err);
}
