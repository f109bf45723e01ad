/* Thousands of pieces of a delegated agent, made on a worker as fast as it can: none is lost, none comes late, and
 * their order is kept. */
#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>

#define N_WORDS 10000

/* The parent's words come from a script-like provider, too: echo repeats the last line of what it is asked, and calls a
 * tool when that line says so. */
#define PARENT                                                                                                         \
    "type: object\nname: parent\ndescription: You ask.\nmodel: echo.model:m\nmax_tokens: 20000\n"                      \
    "tools: [{name: ask_agent}]\nlimits: {total_tokens_limit: 1000000}\nchild_text: child\n"
#define CHILD                                                                                                          \
    "type: object\nname: child\ndescription: You answer.\nmodel: echo.model:m\nmax_tokens: 20000\n"                    \
    "limits: {total_tokens_limit: 1000000}\n"

struct seen {
    int64_t next;     /* word of the child that has to come */
    bool over;        /* the child has ended, or the parent went on */
    bool wrong, late; /* order, end */
    rv_buf line;
};

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct seen *s = self;

    if (d->kind != RV_LLM_DELTA_TEXT)
        return true;
    if (!from->origin) {
        s->over = s->over || s->next > 0;
        return true;
    }
    s->late = s->late || s->over;
    rv_buf_add_str(&s->line, d->text);
    s->next++;
    return true;
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct seen *s = self;

    (void)line;
    if (e->emit == RV_EMIT_AGENT_COMPLETED)
        s->over = true;
}

/* Proves p8.W41: Everything of an asked agent comes before its result, in order, and nothing is lost
 * Proves remlight.19/1: One order for parent and child */
START_TEST(no_piece_of_a_fast_child_is_lost_or_late) /* p8 W41, remlight 19 row 1 */
{
    const char *files[] = {"parent.yaml", PARENT, "child.yaml", CHILD, NULL};
    struct seen s = {.line = RV_BUF_INIT((size_t)1 << 20)};
    rv_buf words = RV_BUF_INIT((size_t)1 << 20), ask = RV_BUF_INIT((size_t)1 << 20);
    struct rv_chat_turn t;
    struct world w;
    rv_err *err = NULL;

    for (int i = 0; i < N_WORDS; i++)
        rv_buf_printf(&words, "%sw%d", i ? " " : "", i);
    rv_buf_printf(&ask, "call: ask_agent {\"agent_name\": \"child\", \"input_text\": \"%s\"}", rv_buf_cstr(&words));
    world_init(&w, NULL, files);
    world_chat(&w, "parent", NULL, "alice");
    world_watch(&w, &(struct rv_chat_opts){.on_delta = on_delta, .on_event = on_event, .self = &s});
    ck_assert_int_eq(rv_chat_send(w.chat, rv_buf_str(&ask), NULL, &t, &err), 0);
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert(!s.late);
    ck_assert_int_ge(s.next, N_WORDS);
    ck_assert_str_eq(rv_buf_cstr(&s.line), rv_buf_cstr(&words));
    ck_assert_uint_eq(t.text.len, words.len);
    world_fini(&w);
    rv_buf_fini(&s.line);
    rv_buf_fini(&words);
    rv_buf_fini(&ask);
}
END_TEST

Suite *flood_suite(void)
{
    Suite *s = suite_create("flood");
    TCase *tc = tcase_create("flood");

    tcase_add_test(tc, no_piece_of_a_fast_child_is_lost_or_late);
    suite_add_tcase(s, tc);
    return s;
}
