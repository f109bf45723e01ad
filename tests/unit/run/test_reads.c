/* Random pipelines whose prompts read outputs: where lint says that no stage makes an output before the first visit of
 * a stage, no run has a first visit that succeeds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define SEEDS      4
#define MAX_STAGES 7

struct luck {
    struct rv_rand_state state;
    struct rv_rand rand;
    int n_told, n_failed, n_read; /* findings; of these, stages that were visited; stages that read what was there */
};

static int pick(struct luck *l, int n)
{
    return (int)rv_rand_below(l->rand, (uint64_t)n);
}

static bool chance(struct luck *l, int percent)
{
    return pick(l, 100) < percent;
}

/* Stage 0 may open a group of 1 and 2, which 3 joins. */
static void write_stage(struct luck *l, rv_buf *b, int s, int n, bool has_group)
{
    bool is_branch = has_group && (s == 1 || s == 2);
    int after = is_branch ? 3 : s + 1 + pick(l, 2);

    rv_buf_printf(b, "  - name: s%d\n    has_llm: true\n    model_role: r\n    prompt_key: p%d\n    max_visits: 2\n", s,
                  s);
    if (has_group && s == 3)
        rv_buf_puts(b, "    join: all\n");
    if (has_group && s == 0)
        rv_buf_printf(b, "    default_next: [s1, %s]\n", chance(l, 30) ? "{target: s2, when: output.v > 1}" : "s2");
    else if (chance(l, s == 1 && has_group ? 100 : is_branch ? 80 : 70))
        rv_buf_printf(b, after < n ? "    default_next: s%d\n" : "    default_next: end\n", after);
    if (!is_branch && !has_group && chance(l, 40))
        rv_buf_printf(b, "    routing_rules: [{condition: v, value: 1, target: s%d}]\n", pick(l, n));
    if (!is_branch && chance(l, 50))
        rv_buf_printf(b, "    error_next: s%d\n", has_group ? 4 + pick(l, n - 4) : pick(l, n));
}

static void write_pipeline(struct luck *l, rv_buf *b)
{
    bool has_group = chance(l, 40);
    int n = has_group ? MAX_STAGES : 2 + pick(l, MAX_STAGES - 1);

    rv_buf_clear(b);
    rv_buf_puts(b, "name: t\nmodels: {r: scripted}\nmax_llm_calls: 60\nmax_agent_hops: 30\nagents:\n");
    for (int s = 0; s < n; s++)
        write_stage(l, b, s, n, has_group);
    rv_buf_puts(b, "prompts:\n");
    for (int s = 0; s < n; s++)
        rv_buf_printf(b,
                      chance(l, 60)   ? "  p%d: hello\n"
                      : chance(l, 70) ? "  p%d: 'of {{outputs.s%d.v}}'\n"
                                      : "  p%d: '{{s%d.v | default \"-\"}}{{#s0}}{{s1.v}}{{/s0}}'\n",
                      s, pick(l, n));
}

static const char *answer(struct drive *d, const struct drive_call *c, bool *handled)
{
    struct luck *l = d->answer_self;
    static const char *const replies[] = {"{'v':1}", "{'v':2}", "!:no"};

    (void)c;
    *handled = true;
    return replies[pick(l, RV_COUNT(replies))];
}

/* The first end of a visit to that stage in the story; NULL: it has none. */
static const char *first_end(const char *story, int stage)
{
    char text[40];

    snprintf(text, sizeof text, "stage_completed:s%d=", stage);
    const char *at = strstr(story, text);
    return at ? at + strlen(text) : NULL;
}

static void check_one(struct luck *l, const char *yaml)
{
    struct drive *d = drive_new(yaml, NULL, 0);
    rv_findings *f = rv_findings_new();

    d->opts.saves = RV_SAVES_NONE;
    d->answer = answer;
    d->answer_self = l;
    drive_envelope(d, NULL);
    rv_pipeline_lint(d->p, f);
    drive_run(d);
    for (size_t i = 0; i < rv_findings_n(f); i++) {
        struct rv_finding told = rv_findings_at(f, i);
        int stage;
        if (!told.code || strcmp(told.code, "read_before_made") != 0)
            continue;
        stage = (int)strtol(told.text + strcspn(told.text, "0123456789"), NULL, 10); /* stage "s2": ... */
        const char *end = first_end(drive_story(d), stage);
        ck_assert_msg(!end || strncmp(end, "error", 5) == 0, "%s\n%s\n%s", told.text, yaml, drive_story(d));
        l->n_told++;
        l->n_failed += end != NULL;
    }
    l->n_read += strstr(rv_buf_cstr(&d->effects), "of 1") != NULL || strstr(rv_buf_cstr(&d->effects), "of 2") != NULL;
    rv_findings_free(f);
    drive_free(d);
}

START_TEST(what_lint_calls_a_read_before_it_is_made_fails)
{
    struct luck l = {0};
    rv_buf yaml = RV_BUF_INIT(1 << 16);
    int n = rv_kit_sample(250, 20000);

    l.rand = rv_rand_seeded(&l.state, 5200u + (uint64_t)_i);
    for (int i = 0; i < n; i++) {
        write_pipeline(&l, &yaml);
        ck_assert_int_eq(rv_buf_check(&yaml, "yaml", NULL), 0);
        check_one(&l, rv_buf_cstr(&yaml));
    }
    ck_assert_msg(l.n_failed > n / 20 && l.n_read > n / 50, "%d told, %d of them visited, %d read", l.n_told,
                  l.n_failed, l.n_read);
    rv_buf_fini(&yaml);
}
END_TEST

TCase *reads_case(void)
{
    TCase *tc = tcase_create("reads");

    tcase_add_loop_test(tc, what_lint_calls_a_read_before_it_is_made_fails, 0, SEEDS);
    return tc;
}
