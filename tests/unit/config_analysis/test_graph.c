/* Graphs of a few pipelines, as golden files. */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/config_analysis/suites.h"
#include "tests/unit/config_analysis/world.h"

static const char *const review_names[] = {"planner", "executor", "critic", "writer"};
static const char *const fan_names[] = {"split", "search", "read", "remember", "join"};

static void name_stages(struct world *w, const char *const *names)
{
    for (size_t i = 0; i < w->p.n_agents; i++) {
        w->names[i] = w->agents[i].name = names[i];
    }
}

/* Loops, an error route, a question, a limit. */
static void review(struct world *w)
{
    w->p.name = "review-docs";
    name_stages(w, review_names);
    world_llm(w, 0, 0);
    w->agents[1].has_tools = true;
    world_llm(w, 2, 0);
    world_error(w, 0, 3);
    world_error(w, 1, 3);
    world_rule(w, 0, "empty", "true", RV_TARGET_END);
    world_rule(w, 2, "verdict", "\"loop_back\"", 0);
    world_when(w, 2, "output.confidence < 0.5", 0);
    world_rule(w, 2, "verdict", "\"ask\"", RV_TARGET_CLARIFICATION);
    world_rule(w, 3, "again", "true", 3);
    world_limit(w, 2, 0, 2);
    w->agents[3].limits.max_visits = 3;
    w->p.clarification_resume_stage = "critic";
}

static void line(struct world *w)
{
    w->p.name = "three in a row";
    world_llm(w, 1, 0);
}

static void fan(struct world *w)
{
    w->p.name = "fan";
    w->p.default_run_mode = RV_MODE_PARALLEL;
    name_stages(w, fan_names);
    for (int i = 1; i < 4; i++) {
        world_require(w, i, 0);
        world_require(w, 4, i);
    }
    world_after(w, 3, 1);
    world_error(w, 2, 3);
    world_llm(w, 4, 0);
    w->agents[4].order.join = RV_JOIN_ANY;
}

/* Everything that means something to one of the formats. */
static void hostile(struct world *w)
{
    static const char *const names[] = {"<b>&\"'`#;]", "\x1b[31mred\nline", "\xc3\xa4\xe2\x82\xac\xc2\x9b x",
                                        "a name that goes on and on and on until nobody reads it any more"};

    w->p.name = "\"</title><script>alert(1)</script>\\";
    name_stages(w, names);
    world_when(w, 0, "output.text == \"<&>\\\"|\" || true", 2);
    world_rule(w, 1, "key --> x", "\"</text>\"", 0);
    world_function(w, 3);
    w->agents[3].hooks.mock = true;
    w->agents[3].hooks.mock_handler = "demo.mock";
}

static void empty(struct world *w)
{
    w->p.name = "nothing";
}

/* More rails than fit: the edges are written out. */
static void crowded(struct world *w)
{
    w->p.name = "crowded";
    for (int i = 0; i < 40; i++)
        world_error(w, i, (i * 17 + 5) % 40);
}

static const struct {
    const char *name;
    int n;
    void (*build)(struct world *w);
} pipelines[] = {{"review", 4, review},   {"line", 3, line},   {"fan", 5, fan},
                 {"hostile", 4, hostile}, {"empty", 0, empty}, {"crowded", 40, crowded}};
static const struct {
    enum rv_graph_format format;
    const char *ending;
} formats[] = {{RV_GRAPH_ASCII, "txt"},
               {RV_GRAPH_MERMAID, "mmd"},
               {RV_GRAPH_DOT, "dot"},
               {RV_GRAPH_SVG, "svg"},
               {RV_GRAPH_JSON, "json"}};

/* Proves 8.4/lint: Graphs in four formats, escaped, the same bytes on every build; warnings carry the place
 * Proves 8.4/check */
START_TEST(graph_is_as_the_golden_file)
{
    struct world *w = world_new(pipelines[_i].n);

    pipelines[_i].build(w);
    ck_assert_int_eq(config_pipeline_link(&w->p, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(formats); i++) {
        rv_buf text = RV_BUF_INIT(1 << 20);
        char name[64];

        rv_pipeline_write_graph(&w->p, formats[i].format, &text);
        ck_assert_int_eq(text.rc, 0);
        ck_assert(rv_utf8_valid(rv_buf_str(&text), NULL));
        for (size_t c = 0; c < text.len; c++)
            ck_assert(text.ptr[c] == '\n' || (unsigned char)text.ptr[c] >= 0x20);
        snprintf(name, sizeof(name), "graph/%s.%s", pipelines[_i].name, formats[i].ending);
        ck_assert(rv_kit_golden(name, rv_buf_cstr(&text)));
        rv_buf_fini(&text);
    }
    world_free(w);
}
END_TEST

START_TEST(large_graphs_are_drawn_too)
{
    struct world *w = world_new(WORLD_STAGES);
    rv_buf text = RV_BUF_INIT((size_t)64 << 20);

    for (int i = 0; i < WORLD_STAGES; i++) {
        world_error(w, i, (i * 37 + 11) % WORLD_STAGES);
        world_rule(w, i, "again", "true", i / 2);
    }
    rv_pipeline_write_graph(&w->p, formats[_i].format, &text);
    ck_assert_int_eq(text.rc, 0);
    ck_assert_uint_gt(text.len, WORLD_STAGES * 20);
    rv_buf_fini(&text);
    world_free(w);
}
END_TEST

START_TEST(graph_says_when_the_buffer_is_too_small)
{
    struct world *w = world_new(4);
    rv_buf text = RV_BUF_INIT(40);

    review(w);
    rv_pipeline_write_graph(&w->p, formats[_i].format, &text);
    ck_assert_int_eq(text.rc, RV_E_LIMIT);
    rv_buf_fini(&text);
    world_free(w);
}
END_TEST

void add_graph_tests(Suite *suite)
{
    TCase *tc = tcase_create("graph");

    tcase_add_loop_test(tc, graph_is_as_the_golden_file, 0, RV_COUNT(pipelines));
    tcase_add_loop_test(tc, large_graphs_are_drawn_too, 0, RV_COUNT(formats));
    tcase_add_loop_test(tc, graph_says_when_the_buffer_is_too_small, 0, RV_COUNT(formats));
    suite_add_tcase(suite, tc);
}
