/* reeve run, reeve resume */
#include "coreengine/app/runfile.h"
#include "coreengine/cli/sources.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>
#include <unistd.h>

#define OBSERVE_OPTIONS                                                                                                \
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},                                           \
        {"state", 0, NULL, "print the whole state as one JSON object", NULL, false},                                   \
        {"events", 'e', NULL, "print each event as a line of JSON instead of the answer", NULL, false},                \
        {"deltas", 0, NULL, "with --events: also the text of models as it is streamed", NULL, false},                  \
        {"timeline", 't', NULL, "draw the timeline even when the output is not a terminal", NULL, false},              \
        {"quiet", 'q', NULL, "do not show progress", NULL, false},                                                     \
        {"save", 0, "FILE", "write the state here during the run and at its end, for `reeve resume`", "FILE", false},  \
        {"record", 0, "FILE", "write a script that replays the answers of this run", "FILE", false},                   \
        {"debug-payload", 0,    "FILE", "write each request to a provider as one line; - is standard error",           \
         "FILE",          false},                                                                                      \
        {"script", 's', "FILE", "answers for models, stages, tools and people", "FILE", false},                        \
        {"no-store", 0, NULL, "do not use the store (--save still writes its file)", NULL, false},                     \
        RV_CLI_STORE_OPTION, RV_CLI_TENANT_OPTION, RV_CLI_SCHEMA_DIR_OPTION, RV_CLI_SYNC_OPTION, RV_CLI_LEASE_OPTION,  \
        {"mock", 'm', NULL, "use mock handlers in all stages that have one", NULL, false},                             \
    {                                                                                                                  \
        "workers", 'w', "N", "maximum number of threads for capability code (default 64)", NULL, false                 \
    }

static const struct rv_cli_option run_options[] = {
    {"input", 'i', "TEXT", "the input; - reads it from standard input", NULL, false},
    {"input-file", 0, "FILE", "read the input from a file; - is standard input", "FILE", false},
    {"envelope", 0, "FILE", "start at the first stage with the outputs and counters of a (partial) state", "FILE",
     false},
    {"set", 0, "PATH=VALUE", "set a part of the initial state, e.g. metadata.lang=en", NULL, true},
    {"user", 'u', "ID", "user who runs it (default REEVE_USER)", NULL, false},
    {"session", 0, "ID", "session that the run belongs to", NULL, false},
    {"mode", 0, "MODE", "run one stage at a time, or all ready stages at once", "sequential parallel", false},
    OBSERVE_OPTIONS,
};

static const struct rv_cli_option resume_options[] = {
    {"interrupt", 0, "ID", "the question to answer, if there are several", NULL, false},
    {"text", 0, "TEXT", "the answer to a question, or the text of a review", NULL, false},
    {"approve", 'y', NULL, "approve a confirmation", NULL, false},
    {"deny", 'n', NULL, "deny a confirmation", NULL, false},
    {"decision", 0, "WORD", "decision on a review; for a call with an unknown outcome: happened, not_happened, fail",
     "approve reject modify happened not_happened fail", false},
    {"data", 0, "JSON", "JSON object to pass with the answer", NULL, false},
    {"user", 'u', "ID", "user who answers; only this user's runs are visible (default REEVE_USER, else all runs)", NULL,
     false},
    {"bundle", 0, "new|FILE", "continue as a new run with the current pipeline (new) or with FILE, if the run fits it",
     "FILE", false},
    OBSERVE_OPTIONS,
};

static int exclusive(struct rv_cli *cli, const struct rv_cli_args *args)
{
    int n = rv_cli_flag(args, "json") + rv_cli_flag(args, "state") + rv_cli_flag(args, "events");
    if (rv_cli_flag(args, "deltas") && !rv_cli_flag(args, "events"))
        return rv_cli_usage(cli, args, "--deltas needs --events");
    return n > 1 ? rv_cli_usage(cli, args, "--json, --state and --events exclude each other") : 0;
}

/* In the store, unless nothing is to be kept or a file keeps it. */
static bool is_kept(const struct rv_cli_args *args)
{
    return !rv_cli_flag(args, "no-store") && !rv_cli_value(args, "save");
}

/* Takes env. */
static int run_kept(struct rv_cli *cli, const struct rv_cli_args *args, struct rv_app_run *run, rv_envelope *env)
{
    rv_err *err = NULL;

    if (!is_kept(args))
        return rv_cli_session_run(cli, args, run, env, NULL);
    int rc = rv_app_run_open(run, &err);
    if (rc == 0) {
        rv_cli_note_left_behind(cli, &cli->app.scope, run->store);
        rc = rv_app_run_keep(run, env, &err);
    }
    if (rc == 0)
        return rv_cli_session_run(cli, args, run, env, NULL);
    if (rv_cli_flag(args, "events"))
        rv_cli_tell_end(env, err);
    rv_envelope_free(env);
    if (!rv_err_is(err, RV_E_EXISTS))
        rv_err_hint(&err, "--no-store runs without a store");
    return rv_cli_report(cli, err);
}

static int run_loaded(struct rv_cli *cli, const struct rv_cli_args *args, struct rv_app_loaded *loaded)
{
    struct rv_app_run run = {0};
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_sound(cli, loaded, false))
        return RV_EXIT_USAGE;
    int rc = rv_app_check(loaded, rv_cli_flag(args, "mock"), &err); /* nothing is kept of a run that cannot work */
    if (rc == 0 && !rv_cli_sound(cli, loaded, false))
        return RV_EXIT_USAGE;
    if (rc == 0)
        rc = rv_cli_envelope(args, &env, &err);
    if (rc == 0)
        rc = rv_cli_run_opts(cli, args, loaded, &run, &err);
    run.pipeline_path = args->words[0];
    run.script_path = rv_cli_value(args, "script");
    if (rc < 0) {
        rv_envelope_free(env);
        status = rv_cli_report(cli, err);
    } else {
        rv_cli_warn_missing(cli, loaded);
        status = run_kept(cli, args, &run, env);
    }
    rv_app_run_fini(&run);
    return status;
}

static int run(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_app_load_opts opts = {.script = rv_cli_value(args, "script"), .keeps = is_kept(args)};
    struct rv_app_loaded loaded;
    rv_err *err = NULL;
    int status = exclusive(cli, args);

    if (status)
        return status;
    if (rv_app_load(&cli->app, args->words[0], &opts, &loaded, &err) < 0)
        return rv_cli_report(cli, err);
    status = run_loaded(cli, args, &loaded);
    rv_app_loaded_fini(&loaded);
    return status;
}

static int read_response(const struct rv_cli_args *args, struct rv_response *out, json_object **data, rv_err **err)
{
    bool approve = rv_cli_flag(args, "approve"), deny = rv_cli_flag(args, "deny");
    const char *text = rv_cli_value(args, "text"), *decision = rv_cli_value(args, "decision"),
               *json = rv_cli_value(args, "data");

    *out = (struct rv_response){.has_approved = approve || deny, .approved = approve};
    if (approve && deny)
        return RV_FAIL(err, RV_E_INVALID, "--approve and --deny exclude each other");
    if (text)
        out->text = rv_str_of(text);
    if (decision)
        out->decision = rv_str_of(decision);
    if (rv_cli_value(args, "interrupt"))
        out->interrupt_id = rv_str_of(rv_cli_value(args, "interrupt"));
    if (!json)
        return 0;
    int rc = rv_json_parse(rv_str_of(json), NULL, data, err);
    if (rc == 0 && !json_object_is_type(*data, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "it is not an object");
    out->data = *data;
    return rc < 0 ? RV_WRAP(err, rc, "read --data") : 0;
}

/* Said here in words of the command line, before anything starts. */
static int check_answer(const rv_envelope *env, const struct rv_response *r, int64_t now_us, rv_err **err)
{
    struct rv_interrupt in = rv_envelope_interrupt(env);
    rv_buf misfit = RV_BUF_INIT(1024);
    int rc = 0;

    if (!rv_envelope_fields(env)->interrupt_pending)
        return RV_FAIL(err, RV_E_STATE, "the run does not wait for an answer");
    if (in.expires_at_us && in.expires_at_us <= now_us) {
        rc = RV_FAIL(err, RV_E_STATE, "the answer comes too late: the %s has expired", rv_interrupt_kind_text(in.kind));
        rv_err_hint(err, "start again with `reeve run`");
        return rc;
    }
    if (!rv_cli_answer_fits(in.kind, in.data, r, &misfit)) {
        const char *ask = in.question ? in.question : in.message ? in.message : "";
        rc = RV_FAIL(err, RV_E_INVALID, "%s; the run waits for %s: %s", rv_buf_cstr(&misfit),
                     rv_interrupt_kind_text(in.kind), ask);
        rv_err_hint(err, "answer with %s", rv_cli_how_to_answer(in.kind, in.data));
    }
    rv_buf_fini(&misfit);
    return rc;
}

static int resume_loaded(struct rv_cli *cli, const struct rv_cli_args *args, struct rv_app_run *run,
                         const struct rv_runfile *file, const struct rv_response *response)
{
    struct rv_clock clock = rv_clock_system();
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    if (!rv_cli_sound(cli, run->loaded, false))
        return RV_EXIT_USAGE;
    if (rv_envelope_load(file->state, rv_rand_system(), clock.now_us(clock.self), &env, &err) < 0 ||
        check_answer(env, response, clock.now_us(clock.self), &err) < 0) {
        rv_envelope_free(env);
        return rv_cli_report(cli, err);
    }
    rv_cli_warn_missing(cli, run->loaded);
    return rv_cli_session_run(cli, args, run, env, response);
}

static int resume_file(struct rv_cli *cli, const struct rv_cli_args *args, const char *path,
                       const struct rv_runfile *file, const struct rv_response *response)
{
    const char *script = rv_cli_value(args, "script") ? rv_cli_value(args, "script") : file->script;
    const struct rv_app_load_opts opts = {.script = script};
    struct rv_app_loaded loaded = {0};
    struct rv_app_run run;
    rv_err *err = NULL;

    int rc = rv_cli_run_opts(cli, args, &loaded, &run, &err);
    run.pipeline_path = file->pipeline;
    run.script_path = script;
    run.rules = file->rules;
    run.run_file = path;
    if (rc == 0)
        rc = rv_app_load(&cli->app, file->pipeline, &opts, &loaded, &err);
    int status = rc < 0 ? rv_cli_report(cli, err) : resume_loaded(cli, args, &run, file, response);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return status;
}

/* May the user of the command line continue this run? */
static int check_file_user(const struct rv_store_scope *scope, const struct rv_runfile *file, rv_err **err)
{
    const char *user_id = "";

    RV_IGNORE(rv_json_get_text(file->state, "user_id", &user_id), "a state without one has no owner");
    return rv_app_check_user(scope, user_id, err);
}

static int resume_from_file(struct rv_cli *cli, const struct rv_cli_args *args, const struct rv_response *response)
{
    struct rv_runfile file = {0};
    rv_buf path = RV_BUF_INIT(4096);
    rv_err *err = NULL;
    int claim = -1;

    int rc = rv_runfile_path(args->words[0], &path, &err);
    if (rc == 0)
        rc = rv_runfile_claim(rv_buf_cstr(&path), &claim, &err);
    if (rc == 0)
        rc = rv_runfile_read(rv_buf_cstr(&path), &file, &err);
    if (rc == 0)
        rc = check_file_user(&cli->app.scope, &file, &err);
    const char *keep = claim >= 0 ? rv_buf_cstr(&path) : NULL;
    int status = rc < 0 ? rv_cli_report(cli, err) : resume_file(cli, args, keep, &file, response);
    if (claim >= 0)
        close(claim);
    rv_runfile_fini(&file);
    rv_buf_fini(&path);
    return status;
}

/* The run that goes on: itself, or the one that takes its place. */
static int continue_with(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store,
                         const struct rv_run_row *row, const struct rv_response *response)
{
    const char *bundle = rv_cli_value(args, "bundle");
    struct rv_app_loaded next = {0};
    struct rv_app_run how;
    char id[RV_ID_MAX];
    rv_err *err = NULL;

    if (!bundle)
        return rv_cli_continue(cli, args, store, row->id, RV_APP_ANSWER, response);
    int rc = rv_cli_run_opts(cli, args, &next, &how, &err);
    if (rc == 0)
        rc = rv_app_migrate(&how, store, row->id, bundle, rv_cli_value(args, "script"), &next, id, &err);
    if (next.findings)
        RV_IGNORE(!rv_cli_sound(cli, &next, false), "the error says so, too");
    rv_app_loaded_fini(&next);
    if (rc < 0)
        return rv_cli_report(cli, err);
    rv_buf text = RV_BUF_INIT(4096);
    rv_buf_printf(&text, "run %s goes on as %s\n", row->id, id);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    return rv_cli_continue(cli, args, store, id, RV_APP_ANSWER, response);
}

static int resume_from_store(struct rv_cli *cli, const struct rv_cli_args *args, struct rv_response *response)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    char id[RV_STORE_MAX_ID + 1];
    struct rv_run_row row = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;

    int rc = rv_app_store_open(&cli->app, RV_APP_STORE_CHANGE, &store, &err);
    if (rc == 0)
        rc = rv_app_find_run(store, &scope, args->words[0], &row, &err);
    if (rc == 0)
        rc = rv_cli_check_answer(store, &row, args, response, id, &err);
    int status = rc < 0 ? rv_cli_report(cli, err) : continue_with(cli, args, store, &row, response);
    rv_run_row_fini(&row);
    rv_store_close(store);
    return status;
}

/* A run file is named by its path; anything else is a run of the store, or of the folder of run files. In that folder
 * a run of another user does not exist for it. */
static bool is_run_file(const struct rv_cli_args *args, const struct rv_store_scope *scope)
{
    rv_buf path = RV_BUF_INIT(4096);
    struct rv_runfile file = {0};
    bool is = rv_runfile_path(args->words[0], &path, NULL) == 0;

    if (is && strcmp(rv_buf_cstr(&path), args->words[0]) != 0 && scope->user)
        is = rv_runfile_read(rv_buf_cstr(&path), &file, NULL) == 0 && check_file_user(scope, &file, NULL) == 0;
    rv_runfile_fini(&file);
    rv_buf_fini(&path);
    return is;
}

static int resume(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct rv_response response;
    json_object *data = NULL;
    rv_err *err = NULL;
    int status = exclusive(cli, args);

    if (status)
        return status;
    int rc = read_response(args, &response, &data, &err);
    if (rc < 0)
        status = rv_cli_report(cli, err);
    else if (is_run_file(args, &cli->app.scope))
        status = resume_from_file(cli, args, &response);
    else
        status = resume_from_store(cli, args, &response);
    json_object_put(data);
    return status;
}

const struct rv_cli_verb rv_verb_run = {
    .name = "run",
    .args = "PIPELINE",
    .summary = "run a pipeline",
    .text =
        "Loads the pipeline, opens its capabilities and runs its stages. In a pipe it prints the answer only; on a\n"
        "terminal it also shows each stage and a timeline. A run that waits for a person exits with 3 and prints the\n"
        "command that answers it. If the reader of its output goes away, the run still continues to its end.",
    .examples = "reeve run pipelines/ask-docs.yaml --input \"how are errors made?\"   # ask\n"
                "echo hi | reeve run pipelines/hooks.yaml --input - --json | jq .response   # in a pipe\n"
                "reeve run pipelines/loop.yaml --script pipelines/scripts/loop.yaml --events   # without any model",
    .options = run_options,
    .n_options = RV_COUNT(run_options),
    .min_words = 1,
    .max_words = 1,
    .outlives_reader = true,
    .run = run,
};

const struct rv_cli_verb rv_verb_resume = {
    .name = "resume",
    .args = "RUN",
    .summary = "answer a waiting run and continue it",
    .text =
        "RUN is a run id, a unique prefix of one, `last`, or the file that --save wrote. The answer must fit the\n"
        "question: --text for a clarification, --approve or --deny for a confirmation, --decision for a review. When\n"
        "a run has several questions, --interrupt names one; they can be answered in any order, each of them once.\n"
        "The run continues with the pipeline that it started with.",
    .examples =
        "reeve run pipelines/clarify.yaml --script pipelines/scripts/clarify.yaml --save run.json   # exits with 3\n"
        "reeve resume run.json --text \"PostgreSQL\"",
    .options = resume_options,
    .n_options = RV_COUNT(resume_options),
    .min_words = 1,
    .max_words = 1,
    .outlives_reader = true,
    .run = resume,
};
