/* Who calls: a tool is told the agent that asks it, inside an asked agent and after it, however that one ended. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/chat/world.h"

#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"
#define TOOLS   "tools: [ask_agent, whoami, whoami_write, whoami_fails]\n"

static const char *const files[] = {"parent.yaml",
                                    "type: object\nname: parent\ndescription: d\n" TOOLS,
                                    "child.yaml",
                                    "type: object\nname: child\ndescription: d\n" TOOLS,
                                    "chained.yaml",
                                    "type: object\nname: chained\ndescription: d\nstructured_output: true\n"
                                    "chained_tool: whoami_write\nproperties: {name: {type: string}}\n",
                                    NULL};

#define ASK(agent)                                                                                                     \
    "    - tool_calls: [{id: a, name: ask_agent, arguments: {agent_name: " agent                                       \
    ", input_text: x, timeout_seconds: 1}}, {id: b, name: whoami, arguments: {}}]\n"                                   \
    "    - tool_calls: [{id: c, name: whoami_write, arguments: {}}, {id: d, name: whoami_fails, arguments: {}}]\n"     \
    "    - {text: done}\n"

static const struct {
    const char *script, *agent;
    int n_inside; /* calls within the asked agent */
} cases[] = {
    {"models:\n  parent:\n" ASK("child") "  child:\n"
                                         "    - tool_calls: [{id: e, name: whoami, arguments: {}}, {id: f, name: "
                                         "whoami_write, arguments: {}}]\n"
                                         "    - {text: well}\n",
     "child", 2},
    {"models:\n  parent:\n" ASK("child") "  child:\n"
                                         "    - tool_calls: [{id: e, name: whoami, arguments: {}}]\n"
                                         "    - {error: {kind: auth}}\n",
     "child", 1},
    {"models:\n  parent:\n" ASK("child") "  child:\n"
                                         "    - tool_calls: [{id: e, name: whoami_write, arguments: {}}]\n"
                                         "    - {text: late, delay_ms: 1500}\n",
     "child", 1},
    {"models:\n  parent:\n" ASK("nobody"), "nobody", 0},
    {"models:\n  parent:\n" ASK("chained") "  chained: [{json: {name: ada}}]\n", "chained", 1},
};

/* The rows of tools name the agent whose rows they are. */
struct seen {
    int n_parent, n_child;
    const char *agent;
};

static int look(void *self, const struct rv_message *m, rv_err **err)
{
    struct seen *s = self;
    rv_buf wanted = RV_BUF_INIT(1000);
    char *text = rv_str_dup(m->content);

    (void)err;
    rv_buf_printf(&wanted, "agent_schema_uri%s:%s%s%s", strstr(text, "\\\"") ? "\\\"" : "\"",
                  strstr(text, "\\\"") ? "\\\"" : "\"", m->agent_name, strstr(text, "\\\"") ? "\\\"" : "\"");
    if (strcmp(m->type, "tool_response") == 0 && !strstr(text, "agent_schema\"") && strstr(text, "agent_schema_uri")) {
        ck_assert_msg(strstr(text, rv_buf_cstr(&wanted)), "%s\nwanted %s", text, rv_buf_cstr(&wanted));
        ck_assert_msg(strstr(text, "alice") && strstr(text, SESSION), "%s", text);
        *(m->parent_call_id ? &s->n_child : &s->n_parent) += 1;
        if (m->parent_call_id)
            ck_assert_str_eq(m->agent_name, s->agent);
    }
    rv_buf_fini(&wanted);
    free(text);
    return 0;
}

/* Proves p8.7.4: Tools are told who asks, in which conversation, also by an asked agent */
START_TEST(a_tool_is_told_who_asks_it) /* remlight 2, 8 */
{
    const struct rv_store_scope all = {0};
    const struct rv_message_filter filter = {.with_children = true};
    struct seen s = {.agent = cases[_i].agent};
    struct world w;
    rv_err *err = NULL;

    world_init(&w, cases[_i].script, files);
    world_chat(&w, "parent", SESSION, "alice");
    struct rv_chat_turn t = world_say(&w, "who?");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_int_eq(
        rv_store_read_messages(w.store, &all, &(const struct rv_messages_of){SESSION, &filter}, look, &s, &err), 0);
    char *rows = world_rows(&w, true);
    ck_assert_msg(s.n_parent == 3 && s.n_child == cases[_i].n_inside, "%d, %d in\n%s", s.n_parent, s.n_child, rows);
    free(rows);
    world_fini(&w);
}
END_TEST

Suite *who_suite(void)
{
    Suite *s = suite_create("who");
    TCase *tc = tcase_create("who");

    tcase_add_loop_test(tc, a_tool_is_told_who_asks_it, 0, RV_COUNT(cases));
    suite_add_tcase(s, tc);
    return s;
}
