/* The verbs that look at a pipeline without running it: lint, graph, explain, schema. */
#include "config/analysis/analysis.h"
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/files_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

#define MAX_TEXT_BYTES ((size_t)64 << 20) /* of a report as JSON: an entry for each finding and stage */

static void write_path(const struct rv_pipeline *p, const int *path, size_t n, rv_buf *b)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "%s%s", i ? " -> " : "", p->agents[path[i]].name);
    if (n == RV_PROOF_MAX_PATH)
        rv_buf_puts(b, " -> ...");
}

/* "1 model call", "2 model calls (upper bound)" */
static void write_bound(int64_t n, const char *what, bool is_exact, rv_buf *b)
{
    rv_buf_printf(b, "%lld %s%s%s", (long long)n, what, n == 1 ? "" : "s", is_exact ? "" : " (upper bound)");
}

void cli_write_proof(const struct rv_pipeline *p, const struct rv_app_proved *proved, rv_buf *b)
{
    const struct rv_proof *proof = &proved->part;

    rv_buf_printf(b, "%s: at most ", p->file);
    write_bound(proof->max_visits, "stage visit", proof->visits_exact, b);
    rv_buf_puts(b, " and ");
    write_bound(proof->max_llm_calls, "model call", proof->llm_exact, b);
    rv_buf_printf(b, " in a run%s\n",
                  !proved->answers       ? ""
                  : proof->spans_answers ? ", without visits that are repeated for an answer"
                                         : ", up to its next pause");
    if (proof->n_visits_path) {
        rv_buf_puts(b, "  visits: ");
        write_path(p, proof->visits_path, proof->n_visits_path, b);
        rv_buf_putc(b, '\n');
    }
    if (proof->max_llm_calls && proof->n_llm_path) {
        rv_buf_puts(b, "  model calls: ");
        write_path(p, proof->llm_path, proof->n_llm_path, b);
        rv_buf_putc(b, '\n');
    }
    if (proof->max_questions)
        rv_buf_printf(b, "  asks at most %lld time%s\n", (long long)proof->max_questions,
                      proof->max_questions == 1 ? "" : "s");
    if (proved->answers) {
        rv_buf_puts(b, "  if its stages ask, with ");
        write_bound(proved->answers, "answer", true, b);
        rv_buf_puts(b, ": at most ");
        write_bound(proved->whole.max_visits, "stage visit", true, b);
        rv_buf_puts(b, " and ");
        write_bound(proved->whole.max_llm_calls, "model call", true, b);
        rv_buf_putc(b, '\n');
    }
    rv_app_write_cost(&proved->cost, b);
}

/* A text as US dollars; false: no number from 0. */
static bool read_dollars(const char *text, double *out)
{
    json_object *value = NULL;
    bool is_good = rv_json_parse(rv_str_of(text), NULL, &value,
                                 RV_CODE_ONLY("the caller says that the text is not an amount of dollars")) == 0 &&
                   rv_json_is_number(value) && json_object_get_double(value) >= 0;

    if (is_good)
        *out = json_object_get_double(value);
    json_object_put(value);
    return is_good;
}

/* The proof, and what is found by lint alone. *dear: a run can cost more than --max-cost says. */
static int prove(const struct rv_cli *cli, const struct rv_app_loaded *l, struct rv_app_proved *out, bool *dear,
                 rv_err **err)
{
    const char *max_cost = cli_value(cli, "max-cost");
    int64_t answers = INT64_MAX;
    double max_usd = 0;

    rv_pipeline_lint(l->pipeline, l->findings);
    if (!l->script)
        rv_pipeline_lint_unscripted(l->pipeline, l->findings);
    int rc = cli_int(cli, "answers", 0, INT32_MAX, &answers, err);
    if (rc == 0)
        rc = rv_app_prove(l->pipeline, answers, out, err);
    if (rc == 0 && max_cost && read_dollars(max_cost, &max_usd))
        *dear = rv_app_cost_check(l->pipeline, &out->cost, max_usd, "--max-cost", l->findings);
    return rc;
}

/* One file: findings, then the proof when it is sound. Gives the exit status. */
static int lint_one(struct rv_cli *cli, const char *path, rv_jw *json, rv_buf *text)
{
    const struct rv_app_load_opts opts = {.script = cli_value(cli, "script")};
    struct rv_app_loaded l;
    struct rv_app_proved proved = {0};
    bool dear = false;
    rv_err *err = NULL;

    int rc = rv_app_load(&cli->app, path, &opts, &l, &err);
    if (rc < 0)
        return cli_report(cli, err);
    if (l.pipeline)
        rc = rv_app_load_test_scripts(&l, &err);
    bool sound = rc == 0 && l.pipeline && rv_findings_n_errors(l.findings) == 0;
    if (sound)
        rc = prove(cli, &l, &proved, &dear, &err);
    rv_findings_sort(l.findings);
    bool strict = cli_flag(cli, "strict") && rv_findings_n(l.findings), is_proved = sound && rc == 0;
    int status = rc < 0 ? cli_report(cli, err) : !sound || strict || dear ? RV_EXIT_USAGE : RV_EXIT_COMPLETED;
    if (json) {
        rv_jw_obj(json);
        rv_jw_kv_path(json, "file", path);
        rv_jw_kv_bool(json, "valid", sound);
        rv_jw_key(json, "findings");
        rv_findings_write_json(l.findings, json);
        if (is_proved)
            rv_app_proved_write(l.pipeline, &proved, json);
        rv_jw_obj_end(json);
    } else {
        cli_say_findings(cli, l.findings);
        if (is_proved)
            cli_write_proof(l.pipeline, &proved, text);
    }
    rv_proof_fini(&proved.part);
    rv_app_loaded_fini(&l);
    return status;
}

static int lint(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    const char *max_cost = cli_value(cli, "max-cost");
    bool json = cli_flag(cli, "json");
    int status = RV_EXIT_COMPLETED;
    struct rv_cli_files files;
    double usd;

    if (max_cost && !read_dollars(max_cost, &usd))
        return cli_usage(cli, err, "--max-cost takes US dollars, for example 0.50, not \"%s\"", max_cost);
    int rc = cli_files(cli, &files, err);
    if (json)
        rv_jw_arr(&w);
    for (size_t i = 0; rc == 0 && i < files.n; i++) {
        int one = lint_one(cli, files.paths[i], json ? &w : NULL, &text);
        status = one > status ? one : status;
    }
    cli_files_fini(&files);
    if (json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    }
    rc = cli_print(rc, &text, err);
    return rc < 0 ? rc : status;
}

/* Load for showing. Anything but 0 is what the verb gives. */
static int load_plain(struct rv_cli *cli, struct rv_app_loaded *out, rv_err **err)
{
    const struct rv_app_load_opts opts = {0};

    int rc = rv_app_load_plain(&cli->app, cli->words[0], &opts, out, err);
    if (rc < 0)
        return rc;
    if (cli_sound(cli, out, false) && out->pipeline->is_sound)
        return 0;
    rv_app_loaded_fini(out);
    return RV_EXIT_USAGE;
}

static int graph(struct rv_cli *cli, rv_err **err)
{
    static const char *const names[] = {[RV_GRAPH_ASCII] = "ascii",
                                        [RV_GRAPH_MERMAID] = "mermaid",
                                        [RV_GRAPH_DOT] = "dot",
                                        [RV_GRAPH_SVG] = "svg",
                                        [RV_GRAPH_JSON] = "json"};
    RV_EACH_HAS_ROW(names, RV_N_GRAPH_FORMATS);
    const char *format = cli_value(cli, "format");
    enum rv_graph_format which = RV_GRAPH_ASCII;
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_app_loaded l;

    int rc = load_plain(cli, &l, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; format && i < RV_COUNT(names); i++)
        if (strcmp(names[i], format) == 0)
            which = (enum rv_graph_format)i;
    rv_pipeline_write_graph(l.pipeline, which, &text);
    if (which == RV_GRAPH_JSON)
        rv_buf_putc(&text, '\n');
    rv_app_loaded_fini(&l);
    return cli_print(0, &text, err);
}

static int explain(struct rv_cli *cli, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT_BYTES};
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES), json = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&json);
    json_object *tree = NULL;
    struct rv_app_loaded l;

    int rc = load_plain(cli, &l, err);
    if (rc != 0)
        return rc;
    rv_pipeline_write_json(l.pipeline, &w);
    rv_app_loaded_fini(&l);
    rc = rv_buf_check(&json, "explanation", err);
    if (rc == 0 && cli_flag(cli, "compact"))
        rv_buf_add_str(&text, rv_buf_str(&json));
    else if (rc == 0 && (rc = rv_json_parse(rv_buf_str(&json), &opts, &tree, err)) == 0)
        rv_json_write_pretty(tree, &text);
    json_object_put(tree);
    rv_buf_putc(&text, '\n');
    rv_buf_fini(&json);
    return cli_print(rc, &text, err);
}

/* The formats that have a schema; all but scripts have a page of their keys, too. */
static const struct format {
    const char *name;
    void (*schema)(rv_jw *w);
    void (*page)(rv_buf *out);
} formats[] = {
    {"pipeline", rv_pipeline_write_schema, rv_pipeline_write_reference},    {"script", rv_script_write_schema, NULL},
    {"retention", rv_retention_write_schema, rv_retention_write_reference}, {"quotas", rv_quotas_write_schema, NULL},
    {"agent", rv_agentdoc_write_schema, rv_agentdoc_write_reference},
};

static int schema(struct rv_cli *cli, rv_err **err)
{
    const char *name = cli->n_words ? cli->words[0] : cli_flag(cli, "agent") ? "agent" : "pipeline";
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    const struct format *f = NULL;

    if (cli->n_words && cli_flag(cli, "agent"))
        return cli_usage(cli, err, "--agent and the name of a schema exclude each other");
    for (size_t i = 0; i < RV_COUNT(formats); i++)
        if (strcmp(name, formats[i].name) == 0)
            f = &formats[i];
    if (!f)
        return cli_usage(cli, err, "unknown schema \"%s\" (schemas: pipeline, script, retention, quotas, agent)", name);
    if (!cli_flag(cli, "markdown")) {
        f->schema(&w);
        rv_buf_putc(&text, '\n');
    } else if (f->page) {
        f->page(&text);
    } else {
        return cli_usage(cli, err, "the schema \"%s\" has no reference page", f->name);
    }
    return cli_print(0, &text, err);
}

static const struct rv_cli_option lint_options[] = {
    {"script", 's', "FILE", "also check this script", "FILE", false},
    {"json", 'j', NULL, "print findings and bounds as JSON", NULL, false},
    {"strict", 0, NULL, "treat warnings as errors", NULL, false},
    {"max-cost", 0, "USD", "report an error unless a run, including its answers, provably costs no more", NULL, false},
    {"answers", 0, "N", "number of answers of people in a run (default: as many as the pipeline allows)", NULL, false},
};
static const struct rv_cli_option graph_options[] = {
    {"format", 'f', "FORMAT", "output format (default ascii)", "ascii mermaid dot svg json", false},
};
static const struct rv_cli_option schema_options[] = {
    {"agent", 0, NULL, "print the schema of agent documents, as `reeve schema agent`", NULL, false},
    {"markdown", 0, NULL, "print the keys as a page of the reference instead", NULL, false},
};
static const struct rv_cli_option explain_options[] = {
    {"compact", 0, NULL, "print one line", NULL, false},
};

const struct rv_cli_verb verb_lint = {
    .name = "lint",
    .args = "PIPELINE|FOLDER...",
    .summary = "check pipelines and prove their bounds",
    .text =
        "Loads each pipeline exactly as `run` does and reports all errors and probable mistakes with their places.\n"
        "For a valid pipeline it proves the maximum number of stage visits and model calls of a run, first up to its\n"
        "next pause, with the path, then including all answers of people, and their maximum cost where prices are\n"
        "known. Of a folder the files that end with .yaml or .yml are checked. Exit status 2 if there is an error.",
    .examples = "reeve lint pipelines\nreeve lint pipelines/loop.yaml --json --strict\n"
                "reeve lint pipelines/loop.yaml --max-cost 0.50",
    RV_CLI_OPTIONS(lint_options),
    .groups = {&cli_of_pipelines},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .run = lint,
};
const struct rv_cli_verb verb_graph = {
    .name = "graph",
    .args = "PIPELINE",
    .summary = "draw a pipeline",
    .text = "Draws stages and routes: in the terminal, or as mermaid, dot or SVG text on standard output; json has "
            "the\nplaces of a drawing, for programs.",
    .examples = "reeve graph pipelines/loop.yaml\nreeve graph pipelines/loop.yaml --format svg > loop.svg",
    RV_CLI_OPTIONS(graph_options),
    .groups = {&cli_of_pipelines},
    RV_CLI_ONE_WORD,
    .run = graph,
};
const struct rv_cli_verb verb_explain = {
    .name = "explain",
    .args = "PIPELINE",
    .summary = "print a pipeline with its defaults filled in",
    .text =
        "Prints the normalised configuration as JSON: every key with its effective value, and the stages in order.\n"
        "Secrets are hidden.",
    .examples = "reeve explain pipelines/loop.yaml | jq .agents[0]",
    RV_CLI_OPTIONS(explain_options),
    .groups = {&cli_of_pipelines},
    RV_CLI_ONE_WORD,
    .run = explain,
};
const struct rv_cli_verb verb_schema = {
    .name = "schema",
    .args = "[pipeline|script|retention|quotas|agent]",
    .summary = "print the JSON Schema of a file format",
    .text =
        "An editor uses the schema to complete keys and mark mistakes. The schema is generated from the table that\n"
        "the loader uses.",
    .examples = "reeve schema > reeve-pipeline.schema.json\n"
                "reeve schema --agent > reeve-agent.schema.json\n"
                "reeve schema agent --markdown   # docs/reference/agent-schemas.md",
    RV_CLI_OPTIONS(schema_options),
    .max_words = 1,
    .run = schema,
};
