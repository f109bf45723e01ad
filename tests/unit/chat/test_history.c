/* What of a session the agents of a pipeline see together: what their documents agree about, else what the settings
 * say. */
#include "config/config.h"
#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/chat/world.h"

#define DOC(keys) "name: a\ndescription: d\ntools: [search]\n" keys

static const struct {
    const char *first, *second; /* documents; NULL: no such stage */
    bool second_joins;
    int64_t max_tokens, always_last;
    int policy;
    bool compress, names_keys;
} cases[] = {
    {DOC(""), NULL, false, 100, 5, RV_REPLAY_SYNTHESISE, true, true},
    {DOC("context_token_budget: 7\nalways_include_last_messages: 0\nreplay: skip\ncompaction: none"), NULL, false, 7, 0,
     RV_REPLAY_SKIP, false, true},
    {DOC("context_token_budget: 7\nreplay: skip"), DOC("context_token_budget: 7\nalways_include_last_messages: 9"),
     true, 7, 5, RV_REPLAY_SYNTHESISE, true, true},
    {DOC("context_token_budget: 7\ncompaction: none"), DOC("context_token_budget: 8"), true, 100, 5,
     RV_REPLAY_SYNTHESISE, true, true},
    {DOC("context_token_budget: 7"), DOC("context_token_budget: 8"), false, 7, 5, RV_REPLAY_SYNTHESISE, true, true},
    {DOC("context_token_budget: 7"), DOC("history: none"), true, 7, 5, RV_REPLAY_SYNTHESISE, true, true},
    {DOC(""), "name: b\ndescription: d\n", true, 100, 5, RV_REPLAY_SYNTHESISE, true, false},
};

START_TEST(agents_of_a_pipeline_see_what_their_documents_agree_about)
{
    struct rv_chat_settings settings = {.history = RV_HISTORY_OPTS_INIT};
    const char *texts[] = {cases[_i].first, cases[_i].second};
    struct rv_agentdoc *docs[] = {NULL, NULL};
    struct rv_agent agents[3] = {{.session.joins = true}, {.session.joins = cases[_i].second_joins}};
    const struct rv_pipeline pipeline = {.agents = agents, .n_agents = RV_COUNT(agents)};

    settings.history.max_tokens = 100;
    for (size_t i = 0; i < RV_COUNT(docs) && texts[i]; i++) {
        ck_assert_int_eq(rv_agentdoc_read(rv_str_of(texts[i]), "a.yaml", &docs[i], NULL), 0);
        agents[i].declared.doc = docs[i];
    }
    struct rv_history_opts o = rv_chat_shared_history_opts(&settings, &pipeline);
    ck_assert_int_eq(o.max_tokens, cases[_i].max_tokens);
    ck_assert_int_eq(o.always_last, cases[_i].always_last);
    ck_assert_int_eq(o.policy, cases[_i].policy);
    ck_assert_int_eq(o.compress, cases[_i].compress);
    ck_assert_int_eq(o.names_keys, cases[_i].names_keys);
    for (size_t i = 0; i < RV_COUNT(docs); i++)
        rv_agentdoc_free(docs[i]);
}
END_TEST

Suite *history_suite(void)
{
    Suite *s = suite_create("history");
    TCase *c = tcase_create("shared");

    tcase_add_loop_test(c, agents_of_a_pipeline_see_what_their_documents_agree_about, 0, RV_COUNT(cases));
    suite_add_tcase(s, c);
    return s;
}
