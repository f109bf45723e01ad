/* Turns of a chat: rows, history, status, whose session it is. */
#include "tests/unit/chat/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(two_turns_become_rows_and_history)
{
    struct world w;
    world_init(&w,
               "models:\n"
               "  sample-agent:\n"
               "    - {text: hello there, usage: {input_tokens: 12, output_tokens: 3}}\n"
               "    - {text: you said hi, usage: {input_tokens: 20, output_tokens: 4}}\n",
               NULL);
    world_chat(&w, "sample-agent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "hi");
    ck_assert_int_eq(t.status, RV_RUN_COMPLETED);
    ck_assert_str_eq(t.text.ptr, "hello there");
    ck_assert(t.was_kept);
    t = world_say(&w, "what did I say?");
    ck_assert_str_eq(t.text.ptr, "you said hi");
    ck_assert_int_eq(t.usage.input_tokens, 20);
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user hi\n"
                           "assistant[sample-agent] hello there\n"
                           "user what did I say?\n"
                           "assistant[sample-agent] you said hi\n");
    free(rows);
    world_fini(&w);
}
END_TEST

/* Proves p8.W13: An action is an event
 * Proves p8.16, p8.7.2 */
START_TEST(tool_calls_stand_between_question_and_answer) /* p8 16 */
{
    struct world w;
    world_init(&w,
               "models:\n"
               "  sample-agent:\n"
               "    - text: Let me note that.\n"
               "      tool_calls:\n"
               "        - {id: c1, name: action, arguments: {type: observation, payload: {confidence: 0.5}}}\n"
               "    - {text: done}\n",
               NULL);
    world_chat(&w, "sample-agent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "note it");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user note it\n"
                           "assistant[sample-agent] Let me note that.\n"
                           "tool_call[sample-agent] "
                           "{\"name\":\"action\",\"id\":\"c1\",\"arguments\":{\"type\":\"observation\",\"payload\":{"
                           "\"confidence\":0.5}}}\n"
                           "tool_response[sample-agent] "
                           "{\"_action_event\":true,\"action_type\":\"observation\",\"status\":\"success\",\"payload\":"
                           "{\"confidence\":0.5},"
                           "\"_metadata_event\":true,\"confidence\":0.5} {\"name\":\"action\",\"id\":\"c1\"}\n"
                           "assistant[sample-agent] done\n");
    ck_assert(rv_str_is(t.text, "Let me note that.\n\ndone"));
    free(rows);
    char *events = world_events(&w, "action");
    ck_assert_ptr_nonnull(strstr(events, "\"action_type\":\"observation\",\"payload\":{\"confidence\":0.5}"));
    free(events);
    const char *all = rv_buf_cstr(&w.events), *action = strstr(all, "\"type\":\"action\""); /* remlight 7, 13 [C] */
    ck_assert_msg(action && strstr(action, "\"type\":\"tool_result\""), "%s", all);
    ck_assert_msg(strstr(all, "\"type\":\"tool_result\"") > action, "%s", all);
    world_fini(&w);
}
END_TEST

/* Proves p8.W23: A turn that failed is kept and marked, with each call that nobody made; one that can not be
 * written says so
 * Proves remlight.19/18 */
START_TEST(a_failed_turn_is_kept_and_marked) /* p8 W23 */
{
    struct world w;
    world_init(&w,
               "models:\n"
               "  sample-agent:\n"
               "    - {error: {kind: auth}, text: half of}\n"
               "    - {text: fine}\n",
               NULL);
    world_chat(&w, "sample-agent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "hi");
    ck_assert_int_eq(t.status, RV_RUN_FAILED);
    ck_assert_ptr_nonnull(t.error);
    char *rows = world_rows(&w, true);
    ck_assert_msg(strstr(rows, "user(failed) hi\nassistant[sample-agent](failed) ") == rows, "%s", rows);
    free(rows);
    t = world_say(&w, "again");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    world_fini(&w);
}
END_TEST

/* Proves p8.W27: A session is its user's, by every verb and id; that an id is another's can not be found out, nor
 * by making one */
START_TEST(a_session_is_its_owners) /* p8 W27 */
{
    struct world w;
    rv_err *err = NULL;
    rv_chat *other = NULL;
    struct rv_chat_turn t;

    world_init(&w, "models: {sample-agent: [{text: hello}, {text: nothing}]}", NULL);
    world_chat(&w, "sample-agent", "5a0f7c1e-0000-4000-8000-000000000001", "alice");
    world_say(&w, "secret");
    struct rv_chat_opts opts = w.opts;
    opts.context.user_id = "bob";
    ck_assert_int_eq(rv_chat_new(&opts, &other, &err), 0);
    ck_assert(rv_chat_is_new(other));
    int rc = rv_chat_send(other, RV_STR_LIT("what did alice say?"), NULL, &t, &err);
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(t.status, RV_RUN_COMPLETED); /* with one of his own of that id: nothing tells that hers is there */
    ck_assert(rv_str_is(t.text, "nothing"));
    rv_chat_free(other);
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user secret\nassistant[sample-agent] hello\n");
    free(rows);
    world_fini(&w);
}
END_TEST

#define DESK                                                                                                           \
    "name: desk\ndescription: You route.\nproperties: {agent: {type: string}}\nrequired: [agent]\n"                    \
    "structured_output: true\nrouting: {agents: [cook, porter], fallback: mate}\n"
#define PORTER                                                                                                         \
    "name: porter\ndescription: You route.\nproperties: {agent: {type: string}}\nstructured_output: true\n"            \
    "routing: {agents: [cook], fallback: mate}\n"
static const char *const nobody_fits[] = {"desk", "", "../../x", "general", "porter", "nobody"};

START_TEST(a_router_that_names_nobody_who_answers_leads_to_the_fallback)
{
    static const char *const files[] = {"desk.yaml",   DESK,
                                        "porter.yaml", PORTER,
                                        "cook.yaml",   "name: cook\ndescription: You cook.\n",
                                        "mate.yaml",   "name: mate\ndescription: You help.\n",
                                        NULL};
    struct world w;
    rv_buf script = RV_BUF_INIT(4096);

    rv_buf_printf(&script,
                  "models:\n  desk: [{json: {agent: \"%s\"}}]\n  porter: [{json: {agent: cook}}]\n"
                  "  mate: [{text: The mate.}]\n  cook: [{text: The cook.}]\n",
                  nobody_fits[_i]);
    world_init(&w, rv_buf_cstr(&script), files);
    world_chat(&w, "desk", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "hello?");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.agent, "mate");
    ck_assert_str_eq(t.text.ptr, "The mate.");
    world_fini(&w);
    rv_buf_fini(&script);
}
END_TEST

START_TEST(a_fallback_that_is_a_router_is_no_answer)
{
    static const char *const files[] = {"desk.yaml",
                                        "name: desk\ndescription: You route.\nproperties: {agent: {type: string}}\n"
                                        "structured_output: true\nrouting: {agents: [cook], fallback: porter}\n",
                                        "porter.yaml",
                                        PORTER,
                                        "cook.yaml",
                                        "name: cook\ndescription: You cook.\n",
                                        "mate.yaml",
                                        "name: mate\ndescription: You help.\n",
                                        NULL};
    struct rv_chat_turn t;
    struct world w;
    rv_err *err = NULL;

    world_init(&w, "models: {desk: [{json: {agent: nobody}}], porter: [{json: {agent: cook}}]}", files);
    world_chat(&w, "desk", NULL, "alice");
    ck_assert_int_eq(rv_chat_send(w.chat, RV_STR_LIT("hello?"), NULL, &t, &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_text(rv_err_cause(err)), "agent \"porter\" is a router"));
    rv_err_free(err);
    world_fini(&w);
}
END_TEST

/* Proves p8.W4: Routing is used, kept with the turn, and has ways out
 * Proves p8.12 */
START_TEST(a_router_is_asked_once_and_its_choice_is_kept) /* p8 12, W4 */
{
    struct world w;
    world_init(&w,
               "models:\n"
               "  router:\n"
               "    - {json: {agent: sample-agent, reason: asked for, confidence: 0.9}}\n"
               "  sample-agent:\n"
               "    - {text: one}\n"
               "    - {text: two}\n"
               "    - tool_calls: [{id: d, name: action, arguments: {type: complete}}]\n"
               "    - {text: bye}\n"
               "  general: [{text: general}]\n",
               NULL);
    world_chat(&w, "router", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "show the sample");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.agent, "sample-agent");
    t = world_say(&w, "more");
    ck_assert_str_eq(t.text.ptr, "two");
    t = world_say(&w, "enough");
    ck_assert_str_eq(t.agent, "sample-agent");
    char *rows = world_rows(&w, true);
    ck_assert_ptr_null(strstr(rows, "router"));
    free(rows);
    world_fini(&w);
}
END_TEST

START_TEST(an_answer_that_does_not_fit_leaves_the_turn_waiting)
{
    const char *files[] = {"cleaner.yaml", "type: object\nname: cleaner\ndescription: d\ntools: [wipe]\n", NULL};
    struct rv_response none = {.text = RV_STR_LIT("hm")}, yes = {.has_approved = true, .approved = true};
    struct rv_chat_turn t;
    struct world w;
    rv_err *err = NULL;

    world_init(&w,
               "models:\n"
               "  cleaner:\n"
               "    - {text: I clean., tool_calls: [{id: c1, name: wipe, arguments: {}}]}\n"
               "    - {text: clean}\n"
               "tools: {wipe: {risk: destructive, description: d, calls: [{result: {n: 1}}]}}\n",
               files);
    world_chat(&w, "cleaner", NULL, "alice");
    ck_assert_int_eq(rv_chat_answer(w.chat, &yes, &t, &err), RV_E_STATE);
    rv_err_free(err);
    err = NULL;
    t = world_say(&w, "clean up");
    ck_assert_int_eq(t.status, RV_RUN_INTERRUPTED);
    ck_assert_ptr_nonnull(strstr(t.interrupt.message, "wipe"));
    ck_assert_int_eq(rv_chat_answer(w.chat, &none, &t, &err), RV_E_INVALID);
    rv_err_free(err);
    err = NULL;
    ck_assert_msg(rv_chat_answer(w.chat, &yes, &t, &err) == 0, "%s", rv_kit_err_take(err));
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.text.ptr, "I clean.\n\nclean");
    ck_assert_int_eq(rv_chat_answer(w.chat, &yes, &t, &err), RV_E_STATE);
    rv_err_free(err);
    world_fini(&w);
}
END_TEST

/* What was said is in the session once, and in order, whoever says the next thing. */
START_TEST(a_message_gives_up_the_turn_that_waits)
{
    const char *session = "5a0f7c1e-0000-4000-8000-000000000001";
    const char *files[] = {"cleaner.yaml", "type: object\nname: cleaner\ndescription: d\ntools: [wipe]\n", NULL};
    struct rv_response yes = {.has_approved = true, .approved = true};
    char waiting[RV_STORE_MAX_ID + 1] = "?", asked[RV_STORE_MAX_ID + 1];
    struct rv_run_row row = {0};
    struct rv_chat_turn t;
    struct world w;
    rv_err *err = NULL;

    world_init(&w,
               "models:\n"
               "  cleaner:\n"
               "    - {text: I clean., tool_calls: [{id: c1, name: wipe, arguments: {}}]}\n"
               "    - {text: Never mind.}\n"
               "    - {text: Again., tool_calls: [{id: c2, name: wipe, arguments: {}}]}\n"
               "    - {text: Bye.}\n"
               "tools: {wipe: {risk: destructive, description: d, calls: [{result: {n: 1}}]}}\n",
               files);
    world_chat(&w, "cleaner", session, "alice");
    ck_assert_int_eq(rv_chat_find_waiting(w.chat, waiting, &err), 0);
    ck_assert_str_eq(waiting, "");
    t = world_say(&w, "clean up");
    ck_assert_int_eq(t.status, RV_RUN_INTERRUPTED);
    snprintf(asked, sizeof asked, "%s", t.run_id);
    ck_assert_int_eq(rv_chat_find_waiting(w.chat, waiting, &err), 0);
    ck_assert_str_eq(waiting, asked);
    t = world_say(&w, "what is that?");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_int_eq(rv_chat_find_waiting(w.chat, waiting, &err), 0);
    ck_assert_str_eq(waiting, "");
    ck_assert_int_eq(rv_chat_answer(w.chat, &yes, &t, &err), RV_E_STATE);
    rv_err_free(err);
    err = NULL;
    const struct rv_store_scope all = {0};
    ck_assert_int_eq(rv_store_get_run(w.store, &all, asked, &row, &err), 0);
    ck_assert_int_eq(row.status, RV_RUN_CANCELLED);
    rv_run_row_fini(&row);
    t = world_say(&w, "once more"); /* and by a chat that did not ask: another process, another day */
    ck_assert_int_eq(t.status, RV_RUN_INTERRUPTED);
    world_chat(&w, "cleaner", session, "alice");
    t = world_say(&w, "and now?");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user(cancelled) clean up\n"
                           "assistant[cleaner](cancelled) I clean.\n"
                           "tool_call[cleaner](cancelled) {\"name\":\"wipe\",\"id\":\"c1\",\"arguments\":{}}\n"
                           "assistant[cleaner](cancelled) \n"
                           "user what is that?\n"
                           "assistant[cleaner] Never mind.\n"
                           "user(cancelled) once more\n"
                           "assistant[cleaner](cancelled) Again.\n"
                           "tool_call[cleaner](cancelled) {\"name\":\"wipe\",\"id\":\"c2\",\"arguments\":{}}\n"
                           "assistant[cleaner](cancelled) \n"
                           "user and now?\n"
                           "assistant[cleaner] Bye.\n");
    free(rows);
    world_fini(&w);
}
END_TEST

#define LEFT_IN "5a0f7c1e-0000-4000-8000-000000000001"

/* A run of alice's in that session that no chat has made. */
static void leave_run(struct world *w, const char *id, enum rv_run_status status, rv_str body)
{
    const struct rv_record first = {.seq = 1, .body = body};
    char bundle[RV_HASH_MAX];
    const struct rv_store_new_run run = {.id = id,
                                         .user = "alice",
                                         .session = LEFT_IN,
                                         .pipeline = "p",
                                         .bundle = bundle,
                                         .status = status,
                                         .stage = "a",
                                         .now_us = 1,
                                         .records = &first,
                                         .n_records = 1};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_put_blob(w->store, RV_STR_LIT("no bundle"), bundle, &err), 0);
    ck_assert_int_eq(rv_store_create_run(w->store, &run, &err), 0);
}

/* A question of a run that is no turn is for whoever runs it. */
START_TEST(a_message_leaves_questions_of_other_runs_alone)
{
    char waiting[RV_STORE_MAX_ID + 1];
    const struct rv_store_scope all = {0};
    struct rv_run_row row = {0};
    struct world w;
    rv_err *err = NULL;

    world_init(&w, "models: {sample-agent: [{text: hello}]}", NULL);
    world_chat(&w, "sample-agent", LEFT_IN, "alice");
    leave_run(&w, "env_asks", RV_RUN_INTERRUPTED, RV_STR_LIT("{}"));
    ck_assert_int_eq(rv_chat_find_waiting(w.chat, waiting, &err), 0);
    ck_assert_str_eq(waiting, "");
    world_say(&w, "hi");
    ck_assert_int_eq(rv_store_get_run(w.store, &all, "env_asks", &row, &err), 0);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED);
    rv_run_row_fini(&row);
    world_fini(&w);
}
END_TEST

/* Of another engine, or damaged: nobody can end it, and nobody has to. */
START_TEST(a_turn_that_can_not_be_ended_does_not_stop_the_session)
{
    struct world w;

    world_init(&w, "models: {sample-agent: [{text: hello}]}", NULL);
    world_chat(&w, "sample-agent", LEFT_IN, "alice");
    leave_run(&w, "env_left", RV_RUN_RUNNING, RV_STR_LIT("nonsense"));
    struct rv_chat_turn t = world_say(&w, "hi");
    ck_assert_str_eq(t.text.ptr, "hello");
    world_fini(&w);
}
END_TEST

START_TEST(what_a_mock_says_is_kept_as_an_answer)
{
    struct world w;

    world_init(&w, "stages: {sample-agent: [{output: {response: said by a mock}}]}", NULL);
    world_chat(&w, "sample-agent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "hi");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.text.ptr, "said by a mock");
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user hi\nassistant[sample-agent] said by a mock\n");
    free(rows);
    world_fini(&w);
}
END_TEST

START_TEST(a_turn_whose_tool_was_denied_is_kept_and_the_session_goes_on)
{
    const char *files[] = {"cleaner.yaml", "type: object\nname: cleaner\ndescription: d\ntools: [wipe]\n", NULL};
    const struct rv_response no = {.has_approved = true, .approved = false};
    struct rv_chat_turn t;
    rv_err *err = NULL;
    struct world w;

    world_init(&w,
               "models:\n"
               "  cleaner:\n"
               "    - {text: I clean., tool_calls: [{id: c1, name: wipe, arguments: {}}]}\n"
               "    - {text: as you wish}\n"
               "tools: {wipe: {risk: destructive, description: d, calls: [{result: {n: 1}}]}}\n",
               files);
    world_chat(&w, "cleaner", NULL, "alice");
    t = world_say(&w, "clean up");
    ck_assert_int_eq(t.status, RV_RUN_INTERRUPTED);
    ck_assert_msg(rv_chat_answer(w.chat, &no, &t, &err) == 0, "%s", rv_kit_err_take(err));
    ck_assert_int_eq(t.status, RV_RUN_TERMINATED);
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user(cancelled) clean up\n"
                           "assistant[cleaner](cancelled) I clean.\n"
                           "tool_call[cleaner](cancelled) {\"name\":\"wipe\",\"id\":\"c1\",\"arguments\":{}}\n"
                           "assistant[cleaner](cancelled) \n");
    free(rows);
    t = world_say(&w, "never mind");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    world_fini(&w);
}
END_TEST

static void note_request(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    (void)all;
    if (e->kind == RV_EFFECT_CALL_LLM)
        rv_buf_add(self, e->request, e->request_len);
}

START_TEST(all_instructions_are_sent_and_one_too_many_is_refused)
{
    const char *sections[RV_CONVERSATION_MAX_SECTIONS + 1];
    struct world w;
    struct rv_chat_turn t;
    rv_buf request = RV_BUF_INIT(1 << 20);
    rv_chat *chat = NULL;
    rv_err *err = NULL;

    for (size_t i = 0; i < RV_COUNT(sections); i++)
        sections[i] = i + 2 < RV_COUNT(sections) ? "one of them" : "the last of them";
    world_init(&w, "models: {sample-agent: [{text: hello}]}", NULL);
    world_chat(&w, "sample-agent", NULL, "alice");
    struct rv_chat_opts opts = w.opts;
    opts.sections = sections;
    opts.n_sections = RV_CONVERSATION_MAX_SECTIONS;
    opts.on_event = NULL;
    opts.on_delta = NULL;
    opts.on_piece = NULL;
    opts.on_effect = note_request;
    opts.self = &request;
    ck_assert_int_eq(rv_chat_new(&opts, &chat, &err), 0);
    ck_assert_int_eq(rv_chat_send(chat, RV_STR_LIT("hi"), NULL, &t, &err), 0);
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_msg(strstr(rv_buf_cstr(&request), "the last of them") != NULL, "%s", rv_buf_cstr(&request));
    rv_chat_free(chat);
    opts.n_sections++;
    ck_assert_int_eq(rv_chat_new(&opts, &chat, &err), 0);
    ck_assert_int_eq(rv_chat_send(chat, RV_STR_LIT("hi"), NULL, &t, &err), RV_E_INVALID);
    rv_buf_clear(&request);
    rv_err_write_text(err, false, &request);
    ck_assert_msg(strstr(rv_buf_cstr(&request), "17 of them, more than 16"), "%s", rv_buf_cstr(&request));
    rv_err_free(err);
    rv_chat_free(chat);
    rv_buf_fini(&request);
    world_fini(&w);
}
END_TEST

Suite *turns_suite(void)
{
    Suite *s = suite_create("turns");
    TCase *tc = tcase_create("turns");

    tcase_add_test(tc, two_turns_become_rows_and_history);
    tcase_add_test(tc, tool_calls_stand_between_question_and_answer);
    tcase_add_test(tc, a_failed_turn_is_kept_and_marked);
    tcase_add_test(tc, all_instructions_are_sent_and_one_too_many_is_refused);
    tcase_add_test(tc, a_session_is_its_owners);
    tcase_add_test(tc, a_router_is_asked_once_and_its_choice_is_kept);
    tcase_add_loop_test(tc, a_router_that_names_nobody_who_answers_leads_to_the_fallback, 0, RV_COUNT(nobody_fits));
    tcase_add_test(tc, a_fallback_that_is_a_router_is_no_answer);
    tcase_add_test(tc, a_message_gives_up_the_turn_that_waits);
    tcase_add_test(tc, a_message_leaves_questions_of_other_runs_alone);
    tcase_add_test(tc, an_answer_that_does_not_fit_leaves_the_turn_waiting);
    tcase_add_test(tc, a_turn_that_can_not_be_ended_does_not_stop_the_session);
    tcase_add_test(tc, what_a_mock_says_is_kept_as_an_answer);
    tcase_add_test(tc, a_turn_whose_tool_was_denied_is_kept_and_the_session_goes_on);
    suite_add_tcase(s, tc);
    return s;
}
