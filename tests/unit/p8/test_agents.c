/* The built-in agents: their fields, tools and settings (p8 18). What they are told is their own. */
#include "config/agentdoc/agentdoc.h"
#include "tests/unit/p8/room.h"

#include <json-c/linkhash.h>
#include <string.h>

static const struct {
    const char *name;
    bool structured;
    const char *properties, *required, *tools; /* in their order, with blanks between */
    const char *model;
    double temperature; /* -1: not given */
    int64_t request_limit, total_tokens_limit;
    bool routing_enabled;
    enum rv_observation_mode observation_mode;
} agents[] = {
    {"agent-builder", false, "intent changes ", "intent changes ", "action ", NULL, -1, 12, 0, false,
     RV_OBSERVATION_SYNC},
    {"dreaming-agent", true, "dream_moments search_questions cross_session_themes ", "", "search ",
     "openai:gpt-4.1-mini", 0.7, 15, 115000, false, RV_OBSERVATION_DISABLED},
    {"general", false, "user_intent topic requires_search search_strategy ",
     "user_intent topic requires_search search_strategy ",
     "search action ask_agent remind_me get_user_profile update_user_metadata ", NULL, -1, 0, 0, true,
     RV_OBSERVATION_SYNC},
    {"researcher", false, "research_goal diagram_type requires_web_search ",
     "research_goal diagram_type requires_web_search ", "search web_search save_plot ", NULL, 0.4, 20, 80000, true,
     RV_OBSERVATION_SYNC},
    {"router", true, "agent reason confidence ", "agent confidence ", "", NULL, 0, 3, 0, false,
     RV_OBSERVATION_DISABLED},
    {"sample-agent", false, "topic requires_search ", "topic requires_search ", "search action ask_agent ", NULL, -1,
     10, 50000, true, RV_OBSERVATION_SYNC},
};

static void list_keys(json_object *obj, rv_buf *out)
{
    if (!obj)
        return;
    json_object_object_foreach (obj, key, value) {
        (void)value;
        rv_buf_printf(out, "%s ", key);
    }
}

static void list_items(json_object *list, rv_buf *out)
{
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        rv_buf_printf(out, "%s ", json_object_get_string(json_object_array_get_idx(list, i)));
}

static struct rv_agentdoc *agent_at(struct room *r, size_t i)
{
    const char *name = NULL, *capability = NULL;
    struct rv_agentdoc *doc = NULL;
    rv_str text = {NULL, 0};
    rv_err *err = NULL;

    ck_assert_msg(r->loaded == 0, "%s", r->loaded ? rv_err_text(rv_err_cause(r->err)) : "");
    ck_assert(rv_plugins_agent_at(r->plugins, i, &name, &text, &capability));
    ck_assert_str_eq(name, agents[i].name);
    ck_assert_str_eq(capability, "p8");
    ck_assert_msg(rv_agentdoc_read(text, name, &doc, &err) == 0, "%s", rv_err_text(err));
    return doc;
}

/* Proves p8.18: Built-in agents have the fields and limits of the contract, all its tools, and
 * words of their own */
START_TEST(a_built_in_agent_is_as_the_contract_has_it)
{
    RV_AUTO(rv_buf_fini) rv_buf properties = RV_BUF_INIT(4096), required = RV_BUF_INIT(4096), tools = RV_BUF_INIT(4096);
    struct rv_agentdoc *doc;
    struct room r;

    if (_i % 2)
        room_begin_isolated(&r, NULL);
    else
        room_begin(&r, NULL);
    size_t row = (size_t)_i / 2;
    doc = agent_at(&r, row);
    ck_assert_int_eq(doc->form, RV_AGENTDOC_FLAT);
    ck_assert_str_eq(doc->name, agents[row].name);
    ck_assert_int_eq(rv_agentdoc_is_structured(doc, RV_UNSET), agents[row].structured);
    list_keys(doc->properties, &properties);
    ck_assert_str_eq(rv_buf_cstr(&properties), agents[row].properties);
    list_items(doc->required, &required);
    ck_assert_str_eq(rv_buf_cstr(&required), agents[row].required);
    for (size_t i = 0; i < doc->n_tools; i++) {
        rv_buf_printf(&tools, "%s ", doc->tools[i].name);
        ck_assert_ptr_nonnull(doc->tools[i].description); /* all of them appear in Tool Notes */
    }
    ck_assert_str_eq(rv_buf_cstr(&tools), agents[row].tools);
    ck_assert_pstr_eq(doc->model, agents[row].model);
    ck_assert_int_eq(doc->has_temperature, agents[row].temperature >= 0);
    if (doc->has_temperature)
        ck_assert_double_eq_tol(doc->temperature, agents[row].temperature, 1e-12);
    ck_assert_int_eq(doc->limits.request_limit, agents[row].request_limit);
    ck_assert_int_eq(doc->limits.total_tokens_limit, agents[row].total_tokens_limit);
    ck_assert_int_eq(doc->routing_enabled, agents[row].routing_enabled);
    ck_assert_int_eq(doc->observation_mode, agents[row].observation_mode);
    rv_agentdoc_free(doc);
    room_end(&r);
}
END_TEST

START_TEST(there_are_no_others)
{
    const char *name, *capability;
    struct room r;
    rv_str text;

    room_begin(&r, NULL);
    ck_assert(!rv_plugins_agent_at(r.plugins, RV_COUNT(agents), &name, &text, &capability));
    room_end(&r);
}
END_TEST

START_TEST(moments_of_the_dreaming_agent_keep_their_shape)
{
    struct rv_agentdoc *doc;
    json_object *items, *fragments;
    rv_buf keys = RV_BUF_INIT(4096);
    struct room r;

    room_begin(&r, NULL);
    doc = agent_at(&r, 1);
    items = rv_json_get_obj(rv_json_get_obj(doc->properties, "dream_moments"), "items");
    list_keys(rv_json_get_obj(items, "properties"), &keys);
    ck_assert_str_eq(rv_buf_cstr(&keys), "name summary topic_tags emotion_tags affinity_fragments ");
    rv_buf_clear(&keys);
    fragments = rv_json_get_obj(rv_json_get_obj(rv_json_get_obj(items, "properties"), "affinity_fragments"), "items");
    list_keys(rv_json_get_obj(fragments, "properties"), &keys);
    ck_assert_str_eq(rv_buf_cstr(&keys), "target relation weight reason ");
    ck_assert_str_eq(doc->chained_tool, "save_moments");
    rv_buf_fini(&keys);
    rv_agentdoc_free(doc);
    room_end(&r);
}
END_TEST

/* Proves p8.18 */
START_TEST(the_router_leads_to_agents_that_are_there)
{
    struct rv_agentdoc *doc;
    json_object *choices;
    rv_buf words = RV_BUF_INIT(4096);
    struct room r;

    room_begin(&r, NULL);
    doc = agent_at(&r, 4);
    ck_assert_uint_eq(doc->routes.n, 2);
    ck_assert_str_eq(doc->routes.items[0], "general");
    ck_assert_str_eq(doc->routes.items[1], "sample-agent");
    ck_assert_pstr_eq(doc->routing_fallback, "general");
    choices = rv_json_get_arr(rv_json_get_obj(doc->properties, "agent"), "enum");
    list_items(choices, &words);
    ck_assert_str_eq(rv_buf_cstr(&words), "general sample-agent ");
    rv_buf_fini(&words);
    rv_agentdoc_free(doc);
    room_end(&r);
}
END_TEST

TCase *agents_case(void)
{
    TCase *tc = tcase_create("agents");

    tcase_add_loop_test(tc, a_built_in_agent_is_as_the_contract_has_it, 0, 2 * RV_COUNT(agents));
    tcase_add_test(tc, there_are_no_others);
    tcase_add_test(tc, moments_of_the_dreaming_agent_keep_their_shape);
    tcase_add_test(tc, the_router_leads_to_agents_that_are_there);
    return tc;
}
