/* Work that must grow no faster than what it works on. `growth` counts the instructions of each call of counted() and
 * reads what each was: how much there is to do, its name (two calls of one name are compared), and what it may cost
 * where that does not depend on how much there is; with tabs between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "config/config.h"
#include "coreengine/agent/agent.h"

#define MAX_TEXT ((size_t)1 << 20)

struct job {
    rv_str text;
    struct rv_pipeline *pipeline; /* that was loaded, or that the work is about */
};

static void must(int rc, rv_err *err, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench_growth: %s: %s\n", what, rv_err_text(err));
    exit(1);
}

/* Callgrind collects what happens in here and writes it down at the return: it stays a function, without a tail call.
 */
__attribute__((noinline)) static void counted(size_t n, const char *name, void (*work)(struct job *), struct job *job)
{
    printf("%zu\t%s\n", n, name);
    work(job);
    __asm__ volatile("" ::: "memory");
}

/* --- loading: with the file, sound or full of mistakes --- */

static void load(struct job *job)
{
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    must(rv_pipeline_parse(job->text, "growth.yaml", ".", findings, &job->pipeline, &err), err, "load");
    rv_findings_free(findings);
}

static void sound(rv_buf *b, size_t n)
{
    rv_buf_puts(b, "name: x\nagents:\n");
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "  - {name: stage_%zu, requires: [stage_%zu], prompt_key: p%zu, default_next: stage_%zu}\n", i,
                      i ? i - 1 : n, i % 50, (i + 1) % n);
    rv_buf_printf(b, "  - {name: stage_%zu}\nprompts:\n", n);
    for (int i = 0; i < 50; i++)
        rv_buf_printf(b, "  p%d: \"{{stage_%d}} {{raw_input}}\"\n", i, i);
}

static void faulty(rv_buf *b, size_t n)
{
    rv_buf_puts(b, "name: x\nagents:\n");
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "  - {name: stage_%zu, requires: [stgae_%zu, stage_0], nmae: x, default_next: nowhere_%zu}\n",
                      i, i, i);
}

static void loads(const char *name, void (*write)(rv_buf *b, size_t n), size_t n)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct job job = {.pipeline = NULL};

    write(&text, n);
    job.text = rv_buf_str(&text);
    counted(n, name, load, &job);
    rv_pipeline_free(job.pipeline);
    rv_buf_fini(&text);
}

/* --- extraction: with the text of a model, whatever it says --- */

static const char *const hostile[] = {
    "{",       "{\"",       "{\"a\":",     "{\"a\":{",    "{ ",     "}{",           "{\"a\" ",     "{\"a\":1}",
    "{\"\\\"", "{\"a\\",    "{\"a\":1,{",  "{\"a\":\"x}", "[{",     "{\"a\":[",     "\\\"{",       "{\"a\":}",
    "{{\"",    "{\"a\":x",  "{'",          "{\n\n\n\n",   "\"{\":", "{\"a\":1}{\"", "{\"\xc3\xa9", "{\"a\":tru{",
    "\"{\"{",  "{\"a\":1 ", "{\"a\":1,\"",
};

static void extract(struct job *job)
{
    static const char *const required[] = {"never"};
    json_object *found = NULL;

    RV_IGNORE(rv_extract_object(job->text, required, 1, RV_RULES_NEWEST, &found, NULL), "only its work counts");
    json_object_put(found);
}

static void extracts(size_t shape, size_t n)
{
    size_t piece = strlen(hostile[shape]);
    char *text = malloc(n), name[32];

    if (!text)
        exit(1);
    for (size_t i = 0; i < n; i++)
        text[i] = hostile[shape][i % piece];
    snprintf(name, sizeof name, "extract, hostile text %zu", shape);
    counted(n, name, extract, &(struct job){.text = {text, n}});
    free(text);
}

/* --- agents that others ask: made while a run is under way, however many stages its pipeline has --- */

static void make_delegate(struct job *job)
{
    static const char document[] =
        "type: object\nname: child\ndescription: x\nsystem_prompt: |\n  Look first.\n  Then say it in two lines.\n"
        "properties:\n  topic: {type: string, description: What it is about}\n  sure: {type: number}\n"
        "required: [topic]\ntools:\n  - {name: a, description: looks}\n  - {name: b, description: finds}\n"
        "model: openai:gpt-4.1-nano\ntemperature: 0.2\nlimits: {request_limit: 8}\ntags: [one, two]\n";
    const struct rv_delegate d = {.name = "child", .document = rv_str_of(document), .structured = RV_UNSET};
    struct rv_pipeline *made = NULL;
    rv_err *err = NULL;

    must(rv_pipeline_delegate(job->pipeline, &d, &made, &err), err, "delegate");
    rv_pipeline_free(made);
}

static void delegates(size_t n_stages)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct job job = {.pipeline = NULL};

    sound(&text, n_stages);
    job.text = rv_buf_str(&text);
    load(&job);
    make_delegate(&job); /* what is set up at first use is not counted */
    counted(1, "delegate", make_delegate, &job);
    rv_pipeline_free(job.pipeline);
    rv_buf_fini(&text);
}

/* --- proofs: their search is bounded, however many stages and visits there are --- */

static void prove(struct job *job)
{
    struct rv_proof proof = {0};
    rv_err *err = NULL;

    must(rv_pipeline_prove(job->pipeline, RV_MODE_SEQUENTIAL, &proof, &err), err, "prove");
    rv_proof_fini(&proof);
}

/* Each stage can fail into another part of the pipeline, and six edges are counted. */
static void loops(rv_buf *b, size_t n, int bound, const char *route)
{
    rv_buf_printf(b,
                  "name: x\nmodels: {r: scripted}\nmax_agent_hops: %d\nmax_iterations: %d\nmax_llm_calls: %d\n"
                  "edge_limits:\n",
                  bound, bound, bound);
    for (int i = 0; i < 6; i++)
        rv_buf_printf(b, "  - {from: s%d, to: s%d, max_count: 2}\n", i * 7, i * 7 / 2);
    rv_buf_puts(b, "agents:\n");
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(b, "  - {name: s%zu, error_next: s%zu, default_next: s%zu", i, (i * 37 + 11) % n, (i + 1) % n);
        if (i % 3 == 0)
            rv_buf_puts(b, ", has_llm: true, model_role: r, max_retries: 2");
        if (i % 7 == 0)
            rv_buf_printf(b, ", routing_rules: [{condition: again, value: true, target: s%zu}]", i / 2);
        rv_buf_printf(b, "%s}\n", route);
    }
}

/* The marks are twice what it costs. */
static void proofs(int bound, const char *route, size_t most)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct job job = {.pipeline = NULL};
    char name[64];

    snprintf(name, sizeof name, "prove, bounds of %d%s\t%zu", bound, *route ? ", functions" : "", most);
    loops(&text, 1000, bound, route);
    job.text = rv_buf_str(&text);
    load(&job);
    counted(1, name, prove, &job);
    rv_pipeline_free(job.pipeline);
    rv_buf_fini(&text);
}

/* --- the same with groups: files that are as hard as a file can be --- */

#define MODEL "has_llm: true, model_role: r, default_next: "

static void begin_groups(rv_buf *b, int loops, int hops, int calls)
{
    rv_buf_printf(b, "name: x\nmodels: {r: scripted}\nmax_iterations: %d\nmax_agent_hops: %d\nmax_llm_calls: %d\n",
                  loops, hops, calls);
}

static void loop_to(rv_buf *b, size_t to)
{
    rv_buf_printf(b, ", routing_rules: [{condition: z, value: 1, target: s%zu}]", to);
}

/* As many stages as there may be, of which every third loops back. */
static void long_groups(rv_buf *b)
{
    begin_groups(b, 50, 100000, 100);
    rv_buf_puts(b, "agents:\n  - {name: s0, default_next: [s1, s2]}\n");
    for (size_t i = 1; i < RV_MAX_STAGES; i++) {
        rv_buf_printf(b, "  - {name: s%zu, " MODEL, i);
        rv_buf_printf(b, i + 1 < RV_MAX_STAGES ? "s%zu" : "end", i + 1);
        if (i % 3 == 0)
            loop_to(b, i > 5 ? i - 5 : 1);
        rv_buf_puts(b, "}\n");
    }
}

static void list_of_all(rv_buf *b)
{
    for (size_t i = 1; i <= 256; i++)
        rv_buf_printf(b, "%ss%zu", i > 1 ? ", " : "[", i);
    rv_buf_putc(b, ']');
}

/* As many branches as there may be, and a join that counts them. */
static void wide_groups(rv_buf *b)
{
    begin_groups(b, 20, 5000, 1000);
    rv_buf_puts(b, "agents:\n  - {name: s0, default_next: ");
    list_of_all(b);
    rv_buf_puts(b, "}\n");
    for (size_t i = 1; i <= 256; i++) {
        rv_buf_printf(b, "  - {name: s%zu, " MODEL "s257", i);
        loop_to(b, i);
        rv_buf_puts(b, "}\n");
    }
    rv_buf_puts(b, "  - {name: s257, join: 128");
    loop_to(b, 0);
    rv_buf_puts(b, "}\n");
}

/* A list for each of as many rules as there may be. */
static void many_lists(rv_buf *b)
{
    begin_groups(b, 10, 2000, 200);
    rv_buf_puts(b, "agents:\n  - name: s0\n    routing_rules:\n");
    for (size_t i = 0; i < RV_MAX_RULES_PER_AGENT; i++) {
        rv_buf_printf(b, "      - {condition: z, value: %zu, target: ", i);
        list_of_all(b);
        rv_buf_puts(b, "}\n");
    }
    for (size_t i = 1; i <= 256; i++)
        rv_buf_printf(b, "  - {name: s%zu, " MODEL "s257}\n", i);
    rv_buf_puts(b, "  - {name: s257, join: 3");
    loop_to(b, 0);
    rv_buf_puts(b, "}\n");
}

/* Limits of edges and visits everywhere. */
static void many_limits(rv_buf *b)
{
    const size_t n = 60;

    begin_groups(b, 3, 500, 500);
    rv_buf_puts(b, "edge_limits:\n");
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "  - {from: s%zu, to: s%zu, max_count: %zu}\n  - {from: s%zu, to: s%zu, max_count: 2}\n", i,
                      i + 1, 2 + i % 3, i + 1, i);
    rv_buf_puts(b, "agents:\n");
    for (size_t i = 0; i <= n; i++) {
        rv_buf_printf(b, "  - {name: s%zu, max_visits: %zu, " MODEL, i, 2 + i % 2);
        rv_buf_printf(b, i == 10 ? "[s11, s12]" : i < n ? "s%zu" : "end", i + 1);
        if (i > 0 && i != 11)
            loop_to(b, i - 1);
        rv_buf_puts(b, "}\n");
    }
}

/* Groups in groups: s0 opens one, its first branch the next one; t and j are the second branches and the joins. */
static void deep_groups(rv_buf *b)
{
    const size_t n = RV_MAX_GROUP_DEPTH;

    begin_groups(b, 30, 3000, 300);
    rv_buf_puts(b, "agents:\n");
    for (size_t i = 0; i + 1 < n; i++)
        rv_buf_printf(b, "  - {name: s%zu, " MODEL "[s%zu, t%zu]}\n", i, i + 1, i);
    rv_buf_printf(b, "  - {name: s%zu, " MODEL "j%zu}\n", n - 1, n - 2);
    for (size_t i = 0; i + 1 < n; i++)
        rv_buf_printf(b, "  - {name: t%zu, " MODEL "j%zu, routing_rules: [{condition: z, value: 1, target: t%zu}]}\n",
                      i, i, i);
    for (size_t i = n - 1; i-- > 0;) {
        rv_buf_printf(b, "  - {name: j%zu, join: all, " MODEL, i);
        rv_buf_printf(b, i > 0 ? "j%zu}\n" : "end}\n", i - 1);
    }
}

/* Whatever a file says, it is proved in a second. */
static void group_proofs(const char *name, void (*make)(rv_buf *b))
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct job job = {.pipeline = NULL};
    char line[96];

    snprintf(line, sizeof line, "prove, %s\t%d", name, 1000000000);
    make(&text);
    job.text = rv_buf_str(&text);
    load(&job);
    counted(1, line, prove, &job);
    rv_pipeline_free(job.pipeline);
    rv_buf_fini(&text);
}

int main(void)
{
    group_proofs("groups with many stages", long_groups);
    group_proofs("groups with many branches", wide_groups);
    group_proofs("groups with many lists", many_lists);
    group_proofs("groups with many limits", many_limits);
    group_proofs("groups in groups", deep_groups);
    const size_t many = getenv("REEVE_SOAK") ? 3200 : 1600;
    loads("load", sound, 200), loads("load", sound, many);
    loads("load, full of mistakes", faulty, 200), loads("load, full of mistakes", faulty, many);
    for (size_t i = 0; i < RV_COUNT(hostile); i++)
        extracts(i, 4096), extracts(i, 32768);
    delegates(10), delegates(1000);
    proofs(25, "", 150000000), proofs(400, "", 700000000), proofs(25600, "", 3000000);
    for (int bound = 100; bound <= 102400 && getenv("REEVE_SOAK"); bound *= 4)
        proofs(bound, "", 2700000000);
    proofs(100, ", routing_function: a.b", 900000000);
    return 0;
}
