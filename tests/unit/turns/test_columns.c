/* The columns of rows beside their text: what a turn took, whose it is, where its trace is found. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

struct seen {
    char *id, *trace, *agent, *span, *model, *type, *metadata, *run;
    int64_t seq, in, out, cost, ms, at_us;
    bool is_child;
};
struct table {
    struct seen rows[40];
    size_t n;
};

static char *copy(const char *text)
{
    return rv_str_dup(rv_str_of(text));
}

static int note(void *self, const struct rv_message *m, rv_err **err)
{
    struct table *t = self;

    (void)err;
    ck_assert_uint_lt(t->n, RV_COUNT(t->rows));
    t->rows[t->n++] = (struct seen){.id = copy(m->id),
                                    .trace = copy(m->trace_id),
                                    .agent = copy(m->agent_name),
                                    .span = copy(m->span_id),
                                    .model = copy(m->model),
                                    .type = copy(m->type),
                                    .run = copy(m->run_id),
                                    .metadata = rv_str_dup(m->metadata),
                                    .seq = m->seq,
                                    .in = m->input_tokens,
                                    .out = m->output_tokens,
                                    .cost = m->cost_micro_usd,
                                    .ms = m->latency_ms,
                                    .at_us = m->created_us,
                                    .is_child = m->parent_call_id != NULL};
    return 0;
}

static void read_table(struct room *r, struct table *t)
{
    const struct rv_message_filter filter = {.with_children = true};
    const struct rv_store_scope all = {0};
    rv_err *err = NULL;

    *t = (struct table){.n = 0};
    ck_assert_int_eq(rv_store_read_messages(r->store, &all,
                                            &(const struct rv_messages_of){r->conversation.context.session_id, &filter},
                                            note, t, &err),
                     0);
}

static void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct seen *s = &t->rows[i];
        free(s->id), free(s->trace), free(s->agent), free(s->span), free(s->model), free(s->type), free(s->metadata);
        free(s->run);
    }
}

static bool is_hex(const char *text, size_t len)
{
    return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

/* Proves p8.W31: Ids of a trace, model, tokens and times on every path
 * Proves p8.16 */
START_TEST(every_row_says_whose_it_is) /* p8 W31, W33 */
{
    struct room *r = room_new(room_scene_at(_i), NULL);
    struct table t;

    room_start(r);
    room_go(r);
    read_table(r, &t);
    for (size_t i = 0; i < t.n; i++) {
        const struct seen *s = &t.rows[i];
        ck_assert_int_eq(s->seq, (int64_t)i + 1);
        ck_assert(is_hex(s->trace, 32));
        ck_assert(is_hex(s->span, 16));
        ck_assert_str_eq(s->trace, t.rows[0].trace);
        ck_assert_str_eq(s->run, r->run_id);
        ck_assert_str_eq(s->span, strcmp(s->agent, "parent") == 0 && !s->is_child ? t.rows[0].span : s->span);
        ck_assert_int_ge(s->at_us, ROOM_T0);
        ck_assert((s->agent[0] == '\0') == (strcmp(s->type, "user") == 0));
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(s->id, t.rows[k].id);
        if (strcmp(s->type, "assistant") == 0)
            continue;
        ck_assert_str_eq(s->model, "");
        ck_assert_int_eq(s->in + s->out + s->cost + s->ms, 0);
    }
    table_fini(&t);
    room_free(r);
}
END_TEST

/* Proves p8.W14: Tokens and money of asked agents are the turn's; their rows name the call; bounds are shared */
START_TEST(what_asked_agents_take_is_rolled_up) /* p8 W14 */
{
    struct scene s = *room_scene("a child with tools");
    struct table t;

    s.keys = "models: {default: {model: 'openai:gpt-x', price: {input: 1, output: 2}}}\n";
    struct room *r = room_new(&s, NULL);
    room_start(r);
    room_go(r);
    read_table(r, &t);
    ck_assert_uint_eq(t.n, 11); /* two of them words before calls */
    const struct seen *child = &t.rows[8], *own = &t.rows[10];
    ck_assert_str_eq(child->type, "assistant");
    ck_assert_str_eq(child->agent, "child");
    ck_assert_str_eq(child->model, "openai:gpt-x");
    ck_assert_int_eq(child->in, 300);
    ck_assert_int_eq(child->out, 50);
    ck_assert_int_eq(child->cost, 400);
    ck_assert_str_eq(own->model, "openai:gpt-x");
    ck_assert_int_eq(own->in, 350);
    ck_assert_int_eq(own->out, 57);
    ck_assert_int_eq(own->cost, 464);
    ck_assert_int_eq(own->ms, 7);
    ck_assert_int_eq(child->ms, 4);
    ck_assert_str_ne(child->span, own->span);
    json_object *meta = rv_kit_json(own->metadata), *part = rv_json_get_obj(meta, "own_usage");
    int64_t n = 0;
    ck_assert(rv_json_get_int(part, "input_tokens", &n) && n == 50);
    part = rv_json_get_obj(meta, "delegated_usage");
    ck_assert(rv_json_get_int(part, "output_tokens", &n) && n == 50);
    json_object_put(meta);
    ck_assert_str_eq(room_output(r, "llm_call_count"), "4");
    table_fini(&t);
    room_free(r);
}
END_TEST

/* Proves p8.W1: The system prompt is sent with every turn, on every path
 * Proves remlight.19/9, p8.4.1 */
START_TEST(a_second_turn_is_told_of_the_first)
{
    const struct rv_store_opts so = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;
    char *first_trace = NULL;

    ck_assert_int_eq(rv_store_open("memory:", &so, &store, &err), 0);
    for (int turn = 0; turn < 2; turn++) {
        struct room *r = room_new(room_scene("the sequence of the reference"), store);
        struct table t;
        room_start(r);
        ck_assert(strstr(r->calls[0].request, "\"history\":") ? turn == 1 : turn == 0);
        if (turn == 1) { /* without the child's rows, and without what was said just now */
            ck_assert_uint_eq(room_count(r->calls[0].request, "\"role\":\"user\",\"content\":\"ask\""), 1);
            ck_assert_uint_eq(room_count(r->calls[0].request, "\"tool_call_id\":\"c2\""), 1);
        }
        room_go(r);
        room_check_replay(r);
        read_table(r, &t);
        ck_assert_uint_eq(t.n, turn == 0 ? 7 : 14);
        if (turn == 0)
            first_trace = copy(t.rows[0].trace);
        else
            ck_assert_str_ne(t.rows[7].trace, first_trace);
        table_fini(&t);
        room_free(r);
    }
    free(first_trace);
    rv_store_close(store);
}
END_TEST

Suite *columns_suite(void)
{
    Suite *s = suite_create("columns");
    TCase *tc = tcase_create("columns");

    tcase_add_loop_test(tc, every_row_says_whose_it_is, 0, room_count_scenes());
    tcase_add_test(tc, what_asked_agents_take_is_rolled_up);
    tcase_add_test(tc, a_second_turn_is_told_of_the_first);
    suite_add_tcase(s, tc);
    return s;
}
