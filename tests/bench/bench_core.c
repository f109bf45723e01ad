/* What the engine itself costs: a pipeline of N stages driven through the pure core, with answers at once, no threads,
 * no I/O.
 *
 *   bench_core stages KIND SHAPE N REPEAT [events]   KIND service|tool|llm|set, SHAPE
 *     chain|parallel|layers|fan|line|skipped|group|elements; group: one stage opens N branches that a join closes,
 *     elements: one stage works on a list of N
 *   bench_core runs N KIND SHAPE [KIND SHAPE ...]    one run of 10 stages and one of N for each kind and shape
 *   bench_core load N REPEAT                         parse, validate, lint and prove a file of N stages
 *
 * Prints one JSON object. `growth` counts instructions of a run instead of its time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/analysis/analysis.h"
#include "coreengine/run/run.h"

#define LAYER 10 /* stages that run side by side in shape "layers" */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one thread, no I/O: what else the machine does counts less */
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what, rv_err *err)
{
    fprintf(stderr, "bench_core: %s: %s\n", what, rv_err_text(err));
    exit(1);
}

static void write_requires(rv_buf *b, const char *shape, size_t i)
{
    size_t layer = i / LAYER;

    if (i > 0 && strcmp(shape, "fan") == 0)
        rv_buf_puts(b, "    requires: [s0]\n");
    else if (i > 0 && (strcmp(shape, "line") == 0 || strcmp(shape, "skipped") == 0))
        rv_buf_printf(b, "    requires: [s%zu]\n", i - 1);
    else if (strcmp(shape, "skipped") == 0) /* the first fails, and no other one runs */
        rv_buf_puts(b, "    required_output_fields: [missing]\n    error_next: end\n");
    if (layer == 0 || strcmp(shape, "layers") != 0)
        return;
    rv_buf_puts(b, "    requires: [");
    for (size_t k = 0; k < LAYER; k++)
        rv_buf_printf(b, "%ss%zu", k ? ", " : "", (layer - 1) * LAYER + k);
    rv_buf_puts(b, "]\n");
}

static void write_kind(rv_buf *b, const char *kind)
{
    if (strcmp(kind, "llm") == 0)
        rv_buf_puts(b, "    has_llm: true\n    model_role: default\n    prompt_key: p\n");
    if (strcmp(kind, "tool") == 0)
        rv_buf_puts(b, "    has_tools: true\n    tool_access: read\n    allowed_tools: [echo]\n");
    if (strcmp(kind, "set") == 0)
        rv_buf_puts(b, "    set: {n: 1}\n");
}

static void write_list(rv_buf *b, const char *name, size_t from, size_t n)
{
    rv_buf_puts(b, "    default_next: [");
    for (size_t i = from; i < from + n; i++)
        rv_buf_printf(b, "%s%s%zu", i > from ? ", " : "", name, i);
    rv_buf_puts(b, "]\n");
}

static void write_branches(rv_buf *b, const char *kind, size_t from, size_t n, const char *join)
{
    for (size_t i = from; i < from + n; i++) {
        rv_buf_printf(b, "  - name: s%zu\n    default_next: %s\n", i, join);
        write_kind(b, kind);
    }
}

#define LIST 250 /* a list has 256 names at most: more branches are groups within a group */

/* A stage that opens a group, and its join, beside the branches; the same again for each group within. */
static void write_group(rv_buf *b, const char *kind, size_t n)
{
    char join[32];

    rv_buf_puts(b, "  - name: open\n");
    write_list(b, n > LIST ? "open" : "s", 0, n > LIST ? n / LIST : n);
    if (n <= LIST)
        write_branches(b, kind, 0, n, "meet");
    for (size_t g = 0; n > LIST && g < n / LIST; g++) {
        snprintf(join, sizeof join, "meet%zu", g);
        rv_buf_printf(b, "  - name: open%zu\n", g);
        write_list(b, "s", g * LIST, LIST);
        write_branches(b, kind, g * LIST, LIST, join);
        rv_buf_printf(b, "  - name: %s\n    join: all\n    default_next: meet\n", join);
    }
    rv_buf_puts(b, "  - name: meet\n    join: all\n");
}

/* The list is made by the stage before. */
static void write_elements(rv_buf *b, const char *kind, size_t n)
{
    rv_buf_puts(b, "  - name: list\n    default_next: each\n    set: {items: [");
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(b, i ? ", 1" : "1");
    rv_buf_printf(b, "]}\n  - name: each\n    for_each: outputs.list.items\n    max_items: %zu\n", n);
    write_kind(b, kind);
}

static bool is_shape(const char *shape, const char *name)
{
    return strcmp(shape, name) == 0;
}

/* Visits that the shape has beside one for each of N. */
static size_t more_visits(const char *shape, size_t n)
{
    if (is_shape(shape, "group"))
        return n > LIST ? 2 + 2 * (n / LIST) : 2;
    return is_shape(shape, "elements") ? 2 : 0;
}

static void write_pipeline(rv_buf *b, const char *kind, const char *shape, size_t n)
{
    bool parallel = strcmp(shape, "chain") != 0 && more_visits(shape, n) == 0;

    rv_buf_printf(b, "name: bench\nmax_agent_hops: %zu\nmax_llm_calls: %zu\n", n + 1 + more_visits(shape, n), n + 1);
    if (parallel)
        rv_buf_puts(b, "default_run_mode: parallel\n");
    rv_buf_puts(b, "prompts:\n  p: \"Answer {{raw_input}} with an object.\"\nagents:\n");
    if (is_shape(shape, "group"))
        write_group(b, kind, n);
    if (is_shape(shape, "elements"))
        write_elements(b, kind, n);
    if (more_visits(shape, n) > 0)
        return;
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(b, "  - name: s%zu\n    stage_order: %zu\n", i, i);
        write_kind(b, kind);
        if (!parallel && i + 1 < n)
            rv_buf_printf(b, "    default_next: s%zu\n", i + 1);
        write_requires(b, shape, i);
    }
}

static struct rv_pipeline *parse(rv_str text)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_err *err = NULL;

    if (rv_pipeline_parse(text, "bench.yaml", ".", findings, &p, &err) < 0)
        die("parse", err);
    if (!p || rv_findings_n_errors(findings)) {
        rv_buf b = RV_BUF_INIT(1 << 20);
        rv_findings_write_text(findings, false, &b);
        fprintf(stderr, "%s", rv_buf_cstr(&b));
        exit(1);
    }
    rv_findings_free(findings);
    return p;
}

static const struct rv_tool_info echo = {
    .name = "echo", .description = "", .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET, .category = RV_UNSET};

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    (void)self;
    return rv_str_is(name, "echo") ? &echo : NULL;
}

static rv_envelope *make_envelope(struct rv_rand rand, bool with_plan)
{
    struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("how are errors made?")};
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    if (rv_envelope_new(&seed, rand, 1, &env, &err) < 0)
        die("envelope", err);
    if (with_plan) {
        json_object *plan = NULL;
        if (rv_json_parse(RV_STR_LIT("{\"steps\":[{\"tool\":\"echo\",\"parameters\":{\"query\":\"errors\"}}]}"), NULL,
                          &plan, &err) < 0 ||
            rv_envelope_set_output(env, RV_STR_LIT("plan"), plan, &err) < 0)
            die("plan", err);
        json_object_put(plan);
    }
    return env;
}

/* Answer every call at once until the run is over; the number of stage visits. */
static int64_t drive(rv_run *run)
{
    struct rv_effects out = {0};
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = 1};
    int64_t *calls = NULL;
    enum rv_event_kind *kinds = NULL;
    size_t n = 0, at = 0, cap = 0;
    rv_err *err = NULL;

    for (;;) {
        if (rv_run_step(run, &ev, &out, &err) < 0)
            die("step", err);
        for (size_t i = 0; i < out.n; i++) {
            const struct rv_effect *e = &out.items[i];
            if (e->kind != RV_EFFECT_CALL_LLM && e->kind != RV_EFFECT_CALL_TOOL)
                continue;
            if (n == cap) {
                cap = cap ? cap * 2 : 64;
                calls = realloc(calls, cap * sizeof *calls);
                kinds = realloc(kinds, cap * sizeof *kinds);
                if (!calls || !kinds)
                    exit(1);
            }
            calls[n] = e->call_id;
            kinds[n++] = e->kind == RV_EFFECT_CALL_LLM ? RV_EVENT_LLM_DONE : RV_EVENT_TOOL_DONE;
        }
        rv_effects_clear(&out);
        if (rv_run_is_finished(run) || at == n)
            break;
        ev = (struct rv_event){.kind = kinds[at],
                               .now_us = 2,
                               .call_id = calls[at],
                               .reply = RV_STR_LIT("{\"text\":\"an answer of ordinary length\",\"ok\":true}")};
        at++;
    }
    rv_effects_fini(&out);
    free(calls);
    free(kinds);
    if (rv_run_status(run) != RV_RUN_COMPLETED) {
        fprintf(stderr, "bench_core: run ended as %s\n", rv_run_status_text(rv_run_status(run)));
        exit(1);
    }
    return rv_envelope_fields(rv_run_envelope(run))->agent_hop_count;
}

/* One run from its beginning to its end; `growth` counts the instructions of this function, hence it stays one. */
__attribute__((noinline)) static void one_run(struct rv_pipeline *p, const struct rv_catalog *catalog,
                                              const struct rv_run_opts *opts, rv_envelope *env, size_t n_visits)
{
    rv_run *run = NULL;
    rv_err *err = NULL;

    if (rv_run_new(p, catalog, opts, env, &run, &err) < 0)
        die("run", err);
    if (drive(run) != (int64_t)n_visits)
        die("visits differ from stages", NULL);
    rv_run_free(run);
}

static void bench_stages(const char *kind, const char *shape, size_t n, size_t repeat, bool events)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    struct rv_rand_state seed;
    struct rv_rand rand = rv_rand_seeded(&seed, 1);
    struct rv_catalog catalog = rv_catalog_empty;
    int64_t best = INT64_MAX;

    catalog.tool = find_tool;
    write_pipeline(&text, kind, shape, n);
    struct rv_pipeline *p = parse(rv_buf_str(&text));
    for (size_t r = 0; r < repeat; r++) {
        struct rv_run_opts opts = RV_RUN_OPTS_INIT;
        opts.emits = events;
        rv_envelope *env = make_envelope(rand, strcmp(kind, "tool") == 0);
        int64_t begun = now_ns();
        one_run(p, &catalog, &opts, env, strcmp(shape, "skipped") == 0 ? 1 : n + more_visits(shape, n));
        int64_t took = now_ns() - begun;
        best = took < best ? took : best;
    }
    printf("{\"kind\":\"%s\",\"shape\":\"%s\",\"stages\":%zu,\"events\":%s,\"ns_per_stage\":%lld}\n", kind, shape, n,
           events ? "true" : "false", (long long)(best / (int64_t)n));
    rv_pipeline_free(p);
    rv_buf_fini(&text);
}

static void bench_load(size_t n, size_t repeat)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    int64_t best_load = INT64_MAX, best_lint = INT64_MAX;
    rv_err *err = NULL;

    write_pipeline(&text, "llm", "chain", n);
    for (size_t r = 0; r < repeat; r++) {
        struct rv_proof proof = {0};
        rv_findings *findings = rv_findings_new();
        int64_t begun = now_ns();
        struct rv_pipeline *p = parse(rv_buf_str(&text));
        int64_t loaded = now_ns();
        rv_pipeline_lint(p, findings);
        if (rv_pipeline_prove(p, RV_MODE_SEQUENTIAL, &proof, &err) < 0)
            die("prove", err);
        int64_t linted = now_ns();
        best_load = loaded - begun < best_load ? loaded - begun : best_load;
        best_lint = linted - loaded < best_lint ? linted - loaded : best_lint;
        rv_proof_fini(&proof);
        rv_findings_free(findings);
        rv_pipeline_free(p);
    }
    printf("{\"stages\":%zu,\"bytes\":%zu,\"load_us\":%lld,\"lint_us\":%lld}\n", n, text.len,
           (long long)(best_load / 1000), (long long)(best_lint / 1000));
    rv_buf_fini(&text);
}

int main(int argc, char **argv)
{
    if (argc >= 6 && strcmp(argv[1], "stages") == 0)
        bench_stages(argv[2], argv[3], (size_t)strtoul(argv[4], NULL, 10), (size_t)strtoul(argv[5], NULL, 10),
                     argc > 6);
    else if (argc >= 5 && strcmp(argv[1], "runs") == 0)
        for (int i = 3; i + 1 < argc; i += 2) {
            bench_stages(argv[i], argv[i + 1], 10, 1, false);
            bench_stages(argv[i], argv[i + 1], (size_t)strtoul(argv[2], NULL, 10), 1, false);
        }
    else if (argc >= 4 && strcmp(argv[1], "load") == 0)
        bench_load((size_t)strtoul(argv[2], NULL, 10), (size_t)strtoul(argv[3], NULL, 10));
    else {
        fprintf(stderr,
                "usage: bench_core stages KIND SHAPE N REPEAT [events] | runs N KIND SHAPE... | load N REPEAT\n");
        return 2;
    }
    return 0;
}
