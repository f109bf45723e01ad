/* What whoever watches a chat is told of an answer while it comes, and of an answer that is not whole. */
#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>

#define EXTRACT                                                                                                        \
    "type: object\nname: extract\ndescription: Extract.\nstructured_output: true\n"                                    \
    "properties: {name: {type: string}, n: {type: integer}}\nrequired: [name]\ntools: [{name: action}]\n"
#define BOSS "type: object\nname: boss\ndescription: Lead.\ntools: [{name: ask_agent}]\n"

static const struct {
    const char *agent, *script, *deltas, *calls, *text; /* calls: names of those that deltas tell */
} shown[] = {
    /* words beside the output, by call and as an answer; the pieces of both are data */
    {"extract",
     "models:\n  extract:\n"
     "    - {text: 'pre ', tool_calls: [{id: f, name: final_result, arguments: {name: ada, n: null}}]}\n",
     "{\"name\":\"ada\",\"n\":null}|", "", "{\"name\":\"ada\",\"n\":null}"},
    {"extract", "models:\n  extract: [{chunks: ['{\"name\"', ': \"ada\"}']}]\n", "{\"name\":\"ada\"}|", "",
     "{\"name\":\"ada\"}"},
    /* of the reply with two calls only one is its own business */
    {"extract",
     "models:\n  extract:\n"
     "    - {text: 'I look.', tool_calls: [{id: s, name: action, arguments: {type: a}}]}\n"
     "    - {tool_calls: [{id: t, name: action, arguments: {type: b}}, {id: f, name: final_result, arguments: {name: "
     "ada}}]}\n",
     "{\"name\":\"ada\"}|", "action action ", "{\"name\":\"ada\"}"},
    /* the first try is nobody's */
    {"extract",
     "models:\n  extract:\n"
     "    - {text: 'She is fine.'}\n"
     "    - {tool_calls: [{id: f, name: final_result, arguments: {name: ada}}]}\n",
     "{\"name\":\"ada\"}|", "", "{\"name\":\"ada\"}"},
    {"extract", "models:\n  extract: [{text: 'She is fine.'}, {text: 'She is fine.'}]\n", "", "", ""},
    /* one that is asked has no piece at all: its object is the result of the call */
    {"boss",
     "models:\n  boss:\n"
     "    - {text: 'Wait.', tool_calls: [{id: a, name: ask_agent, arguments: {agent_name: extract, input_text: x}}]}\n"
     "    - {text: 'It is ada.'}\n"
     "  extract:\n"
     "    - {text: 'pre ', tool_calls: [{id: f, name: final_result, arguments: {name: ada}}]}\n",
     "Wait.|It is ada.|", "ask_agent ", "Wait.\n\nIt is ada."},
};

/* Proves remlight.5/top: A structured agent at the top gives its object as one piece of text and as the result of a
 * call of its name; `final_result` is no event and no delta
 * Proves p8.W7 */
START_TEST(an_object_is_one_piece) /* remlight 5, p8 W7 */
{
    const char *files[] = {"extract.yaml", EXTRACT, "boss.yaml", BOSS, NULL};
    struct world w;
    world_init(&w, shown[_i].script, files);
    world_chat(&w, shown[_i].agent, "s", "alice");
    struct rv_chat_turn t = world_say(&w, "who?");
    ck_assert_msg(strcmp(rv_buf_cstr(&w.deltas), shown[_i].deltas) == 0, "%s", rv_buf_cstr(&w.deltas));
    ck_assert_msg(strcmp(rv_buf_cstr(&w.calls), shown[_i].calls) == 0, "%s", rv_buf_cstr(&w.calls));
    ck_assert_msg(rv_str_is(t.text, shown[_i].text), "%.*s", RV_STR_ARG(t.text));
    char *rows = world_rows(&w, false), *results = world_events(&w, "tool_result");
    char *answer = strstr(rows, "\nassistant");
    const char *last = strstr(shown[_i].text, "\n\n"); /* what was said before a call has a row of its own */
    ck_assert_msg(answer && strstr(answer, last ? last + 2 : shown[_i].text), "%s", rows);
    ck_assert_msg(!strstr(results, "final_result"), "%s", results);
    ck_assert_int_eq(strstr(results, "\"tool\":\"extract\"") != NULL, t.status == RV_RUN_COMPLETED);
    free(rows);
    free(results);
    world_fini(&w);
}
END_TEST

/* A recording has to play the model again, whatever people were shown of it. */
START_TEST(a_recording_hears_the_model_itself)
{
    const char *files[] = {"extract.yaml", EXTRACT, NULL};
    struct world w;
    world_init(&w, shown[0].script, files);
    world_chat(&w, "extract", "s", "alice");
    world_say(&w, "who?");
    ck_assert_str_eq(rv_buf_cstr(&w.pieces), "pre |final_result {\"name\":\"ada\",\"n\":null}|");
    world_fini(&w);
}
END_TEST

START_TEST(a_cut_off_answer_is_told_as_one)
{
    const char *files[] = {"boss.yaml", BOSS, NULL};
    struct world w;
    world_init(&w, "models:\n  boss: [{text: 'once upon a', finish_reason: length}, {text: whole}]\n", files);
    world_chat(&w, "boss", "s", "alice");
    ck_assert(world_say(&w, "a tale").is_cut_off);
    ck_assert(!world_say(&w, "go on").is_cut_off);
    world_fini(&w);
}
END_TEST

/* Marks of the pieces: + is shown, - is muted. */
static bool note_marks(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    if (d->kind == RV_LLM_DELTA_TEXT)
        rv_buf_printf(self, "%c%.*s ", from->is_muted ? '-' : '+', RV_STR_ARG(d->text));
    return true;
}

static void note_events(void *self, const struct rv_effect *e, rv_str line)
{
    (void)e;
    if (memmem(line.ptr, line.len, "\"type\":\"llm_", 12)) {
        rv_buf_puts(self, memmem(line.ptr, line.len, "\"muted\":true", 12) ? "muted " : "shown ");
        if (memmem(line.ptr, line.len, "\"muted_text\":\"The end.\"", 23))
            rv_buf_puts(self, "with its text ");
    }
}

START_TEST(words_that_people_are_not_shown_are_marked)
{
    const char *files[] = {"child.yaml", "type: object\nname: child\ndescription: Answer.\n", "boss.yaml",
                           BOSS "child_text: child\n", NULL};
    struct world w;
    rv_buf heard = RV_BUF_INIT(4096);

    world_init(&w,
               "models:\n  boss:\n"
               "    - {tool_calls: [{id: a, name: ask_agent, arguments: {agent_name: child, input_text: x}}]}\n"
               "    - {text: The end.}\n  child: [{text: Yes.}]\n",
               files);
    world_chat(&w, "boss", "s", "alice");
    world_watch(&w, &(struct rv_chat_opts){.on_event = note_events, .on_delta = note_marks, .self = &heard});
    (void)world_say(&w, "who?");
    ck_assert_str_eq(rv_buf_cstr(&heard), "shown shown shown +Yes. shown muted -The end. muted with its text ");
    rv_buf_fini(&heard);
    world_fini(&w);
}
END_TEST

Suite *shown_suite(void)
{
    Suite *s = suite_create("shown");
    TCase *tc = tcase_create("shown");

    tcase_add_test(tc, words_that_people_are_not_shown_are_marked);
    tcase_add_loop_test(tc, an_object_is_one_piece, 0, RV_COUNT(shown));
    tcase_add_test(tc, a_recording_hears_the_model_itself);
    tcase_add_test(tc, a_cut_off_answer_is_told_as_one);
    suite_add_tcase(s, tc);
    return s;
}
