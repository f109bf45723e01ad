/* Files whose groups are broken, and some that are not: tests/golden/groups has each of them with all that loading and
 * lint say about them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/config_analysis/suites.h"
#include "tests/unit/config_analysis/world.h"

#define FOLDER "tests/golden/groups" /* tests run at the root of the tree */

/* What is found in a file: its findings, and whether it may run. */
static void find(const char *name, rv_buf *out)
{
    char *path = rv_kit_path(FOLDER, name), *text = rv_kit_read(path);
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_ptr_nonnull(findings);
    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), name, FOLDER, findings, &p, NULL), 0);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(p->is_sound, rv_findings_n_errors(findings) == 0);
    rv_pipeline_lint(p, findings);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, out);
    rv_buf_puts(out, p->is_sound ? "may run\n" : "may not run\n");
    ck_assert_int_eq(out->rc, 0);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    free(text);
    free(path);
}

static int is_pipeline(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        n++;
    return n;
}

/* graph 13: each file has the findings that its golden file has, and each code is found. */
START_TEST(broken_groups_are_told)
{
    static const char *const codes[] = {
        "empty_list",         "duplicate_branch",   "bad_branch",       "fork_backwards", "join_backwards",
        "join_without_group", "two_joins",          "unclosed_group",   "mixed_context",  "join_impossible",
        "write_conflict",     "bad_join",           "mixed_modes",      "racing_join",    "branch_never_joins",
        "unreachable",        "recursive_pipeline", "unknown_pipeline", "missing_input",  "unknown_input",
        "retry_of_pipeline",  "two_kinds",          "no_max_items",     "bad_for_each",
    };
    struct dirent **entries = NULL;
    size_t seen[RV_COUNT(codes)] = {0};
    int n = scandir(FOLDER, &entries, is_pipeline, alphasort);

    ck_assert_int_ge(n, 60);
    for (int i = 0; i < n; i++) {
        rv_buf text = RV_BUF_INIT(1 << 20);
        char golden[300];

        find(entries[i]->d_name, &text);
        snprintf(golden, sizeof golden, "groups/%.*s.txt", (int)strlen(entries[i]->d_name) - 5, entries[i]->d_name);
        ck_assert_msg(rv_kit_golden(golden, rv_buf_cstr(&text)), "%s", golden);
        for (size_t c = 0; c < RV_COUNT(codes); c++) {
            char word[64];

            snprintf(word, sizeof word, "  [%s]\n", codes[c]);
            seen[c] += count(rv_buf_cstr(&text), word);
        }
        rv_buf_fini(&text);
        free(entries[i]);
    }
    free(entries);
    for (size_t c = 0; c < RV_COUNT(codes); c++)
        ck_assert_msg(seen[c] >= 1, "[%s] was found %zu times", codes[c], seen[c]);
}
END_TEST

/* --- The levels that a scheduler goes by --- */

static struct rv_pipeline *load(const char *name)
{
    char *path = rv_kit_path(FOLDER, name), *text = rv_kit_read(path);
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), name, FOLDER, findings, &p, NULL), 0);
    ck_assert(p->is_sound);
    rv_findings_free(findings);
    free(text);
    free(path);
    return p;
}

static const struct rv_agent *agent_of(const struct rv_pipeline *p, const char *name)
{
    return &p->agents[rv_pipeline_find_stage(p, rv_str_of(name))];
}

/* graph 13: the context of each stage, and the join of each stage with a list. */
START_TEST(levels_nest)
{
    static const struct {
        const char *stage, *fork, *join; /* NULL: none */
        int depth;
    } rows[] = {
        {"a", NULL, "outer", 0}, {"b", "a", "inner", 1},  {"c", "a", NULL, 1},      {"d", "b", NULL, 2},
        {"e", "b", NULL, 2},     {"inner", "a", NULL, 1}, {"outer", NULL, NULL, 0}, {"last", NULL, NULL, 0},
    };
    struct rv_pipeline *p = load("sound-nested.yaml");

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        const struct rv_agent *a = agent_of(p, rows[i].stage);

        ck_assert_int_eq(a->level.fork, rows[i].fork ? agent_of(p, rows[i].fork)->index : -1);
        ck_assert_int_eq(a->routing.join_of, rows[i].join ? agent_of(p, rows[i].join)->index : RV_TARGET_NONE);
        ck_assert_int_eq(a->level.depth, rows[i].depth);
        ck_assert(a->level.is_reached);
        ck_assert_int_eq(a->level.can_join, rows[i].depth > 0);
    }
    rv_pipeline_free(p);
}
END_TEST

/* graph 13: a join may serve several stages of one level; a stage behind a rule ends its branch. */
START_TEST(a_join_serves_two_groups)
{
    struct rv_pipeline *p = load("sound-one-join-two-forks.yaml");

    ck_assert_int_eq(agent_of(p, "f")->routing.join_of, agent_of(p, "j")->index);
    ck_assert_int_eq(agent_of(p, "g")->routing.join_of, agent_of(p, "j")->index);
    ck_assert_int_eq(agent_of(p, "a")->routing.join_of, RV_TARGET_NONE);
    ck_assert(!agent_of(p, "t")->level.can_join);
    ck_assert(agent_of(p, "r")->level.can_join);
    rv_pipeline_free(p);
}
END_TEST

/* graph 13: a stage that only ways back lead to, one after the other, is reached as any other; graph 14: it counts. */
START_TEST(stages_behind_several_loops_are_reached)
{
    static const char text[] = "name: t\nmax_iterations: 3\nagents:\n"
                               "  - {name: s0, set: {v: 1}, default_next: s4}\n"
                               "  - {name: s1, set: {v: 1}, default_next: s3}\n"
                               "  - {name: s2, set: {v: 1}, default_next: s4}\n"
                               "  - {name: s3, set: {v: 1}, default_next: s2}\n"
                               "  - {name: s4, set: {v: 1}, default_next: s1}\n"
                               "  - {name: alone, set: {v: 1}, default_next: [s6]}\n"
                               "  - {name: s6, set: {v: 1}}\n";
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct rv_proof proof = {0};

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "loops.yaml", ".", findings, &p, NULL), 0);
    ck_assert(p->is_sound);
    for (size_t i = 0; i < p->n_agents; i++)
        ck_assert_int_eq(p->agents[i].level.is_reached, i < 5);
    ck_assert_int_eq(rv_pipeline_prove(p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    ck_assert_int_eq(proof.max_visits, 8); /* s0 s4, s1 s3, s2 s4, s1 s3 */
    rv_proof_fini(&proof);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

/* graph 2, 13: branches with their conditions, joins, choices of people and errors are drawn. */
START_TEST(groups_are_drawn)
{
    static const struct {
        enum rv_graph_format format;
        const char *golden;
    } formats[] = {{RV_GRAPH_ASCII, "graph/groups.txt"},
                   {RV_GRAPH_MERMAID, "graph/groups.mmd"},
                   {RV_GRAPH_DOT, "graph/groups.dot"},
                   {RV_GRAPH_SVG, "graph/groups.svg"}};
    struct rv_pipeline *p = load("sound-all-ways.yaml");

    for (size_t i = 0; i < RV_COUNT(formats); i++) {
        rv_buf text = RV_BUF_INIT(1 << 20);

        rv_pipeline_write_graph(p, formats[i].format, &text);
        ck_assert_int_eq(text.rc, 0);
        ck_assert(rv_kit_golden(formats[i].golden, rv_buf_cstr(&text)));
        rv_buf_fini(&text);
    }
    rv_pipeline_free(p);
}
END_TEST

/* graph 8.2: a stage that runs a pipeline is drawn with its file, and explained with the stages and bounds of that. */
START_TEST(inner_pipelines_are_shown)
{
    struct rv_pipeline *p = load("sound-inner.yaml");
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);

    rv_pipeline_write_graph(p, RV_GRAPH_ASCII, &text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "[pipeline inner-topic.yaml, each of 2]"));
    rv_buf_clear(&text);
    rv_pipeline_write_json(p, &w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\"pipeline\":\"inner-topic.yaml\",\"runs\":{\"name\":"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\"inputs\":[\"topic\",\"style\"],\"stages\":["));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "],\"max_iterations\":"));
    rv_buf_fini(&text);
    rv_pipeline_free(p);
}
END_TEST

void add_groups_tests(Suite *suite)
{
    TCase *tcase = tcase_create("groups");

    tcase_add_test(tcase, broken_groups_are_told);
    tcase_add_test(tcase, levels_nest);
    tcase_add_test(tcase, stages_behind_several_loops_are_reached);
    tcase_add_test(tcase, groups_are_drawn);
    tcase_add_test(tcase, inner_pipelines_are_shown);
    tcase_add_test(tcase, a_join_serves_two_groups);
    suite_add_tcase(suite, tcase);
}
