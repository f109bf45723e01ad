/* How much processor time a plan of 16 calls takes against a catalog of 200 tools: validation, and what a planner is
 * given.
 *
 * bench_plan [TIMES [validate]]: with validate, nothing else is done, for counting instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "coreengine/plan/plan.h"

#define N_TOOLS 200
#define N_CALLS 16

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void need(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench_plan: a plan could not be made or is not sound\n");
    exit(1);
}

static const char input[] =
    "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"maxLength\":1000},\"limit\":{\"type\":"
    "\"integer\",\"minimum\":1},\"ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"filter\":{\"type\":"
    "\"object\",\"properties\":{\"kind\":{\"enum\":[\"page\",\"file\"]},\"since\":{\"type\":\"string\",\"format\":"
    "\"date-time\"}},\"additionalProperties\":false}},\"required\":[\"query\"],\"additionalProperties\":false}";
static const char output[] =
    "{\"type\":\"object\",\"properties\":{\"artifact_id\":{\"type\":\"string\"},\"count\":{\"type\":\"integer\"},"
    "\"items\":"
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},\"title\":{"
    "\"type\":"
    "\"string\"},\"score\":{\"type\":\"number\"}},\"required\":[\"id\"]}}},\"required\":[\"artifact_id\",\"items\"]}";

static rv_plan_catalog *make_catalog(void)
{
    static char names[N_TOOLS][16];
    struct rv_plan_tool tools[N_TOOLS] = {{0}};
    rv_plan_catalog *catalog = NULL;
    json_object *in = NULL, *out = NULL;

    need(rv_json_parse(rv_str_of(input), NULL, &in, NULL));
    need(rv_json_parse(rv_str_of(output), NULL, &out, NULL));
    for (int i = 0; i < N_TOOLS; i++) {
        snprintf(names[i], sizeof names[i], "tool_%d", i);
        tools[i] = (struct rv_plan_tool){.name = names[i],
                                         .server = i % 2 ? "web" : "docs",
                                         .input = in,
                                         .output = out,
                                         .description = "Finds pages and files by their words."};
    }
    need(rv_plan_catalog_new(tools, N_TOOLS, &catalog, NULL));
    json_object_put(in);
    json_object_put(out);
    return catalog;
}

static void make_plan(struct rv_plan *plan)
{
    rv_buf text = RV_BUF_INIT(RV_PLAN_MAX_BYTES);

    rv_buf_puts(&text,
                "{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"tool_0\",\"arguments\":{\"query\":\"x\"}}");
    for (int i = 1; i < N_CALLS; i++)
        rv_buf_printf(&text,
                      ",{\"tool_name\":\"tool_%d\",\"arguments\":{\"query\":\"about ${%d.output.items[0].title} and "
                      "${0.output.artifact_id}\",\"limit\":\"$%d.output.count\",\"ids\":[\"$%d.output.items[1].id\","
                      "\"fixed\"],\"filter\":{\"kind\":\"page\",\"since\":\"2026-01-02T03:04:05Z\"}}}",
                      i * 12, i - 1, i - 1, i - 1);
    rv_buf_puts(&text, "]}");
    struct rv_plan_reply reply = {.text = rv_buf_str(&text)};
    need(rv_plan_parse(&reply, 0, plan, NULL));
    need(plan->n_calls == N_CALLS ? 0 : -1);
    rv_buf_fini(&text);
}

static void say(const char *what, double seconds, int n)
{
    printf("%-44s %10.1f us each, %d times\n", what, seconds / n * 1e6, n);
}

static void bench_catalog(int n)
{
    double start = now_s();

    for (int i = 0; i < n; i++)
        rv_plan_catalog_free(make_catalog());
    say("a catalog of 200 tools", now_s() - start, n);
}

static void bench_planner(const rv_plan_catalog *catalog, int n)
{
    struct rv_planner_opts opts = {.any_of = true};
    double start = now_s();

    for (int i = 0; i < n; i++) {
        rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
        json_object *schema = NULL;
        need(rv_plan_build_schema(catalog, &opts, &schema, NULL));
        rv_plan_write_brief(catalog, &opts, &text);
        need(text.rc);
        json_object_put(schema);
        rv_buf_fini(&text);
    }
    say("what a planner is given, of 200 tools", now_s() - start, n);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000;
    rv_plan_catalog *catalog = make_catalog();
    struct rv_plan plan;
    double start;

    make_plan(&plan);
    start = now_s();
    for (int i = 0; i < n; i++) {
        struct rv_plan_check check;
        need(rv_plan_validate(&plan, catalog, NULL, &check, NULL));
        need(check.n_errors == 0 ? 0 : -1);
        rv_plan_check_fini(&check);
    }
    say("validation of 16 calls against 200 tools", now_s() - start, n);
    if (argc < 3) {
        bench_catalog(n / 100 + 1);
        bench_planner(catalog, n / 100 + 1);
    }
    rv_plan_fini(&plan);
    rv_plan_catalog_free(catalog);
    return 0;
}
