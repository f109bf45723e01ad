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
        {"deltas", 0, NULL, "with --events: also what models say, piece by piece", NULL, false},                       \
        {"timeline", 't', NULL, "draw the timeline, also when not on a terminal", NULL, false},                        \
        {"quiet", 'q', NULL, "no progress", NULL, false},                                                              \
        {"save", 0,    "FILE", "keep the state here while the run goes on and at the end, for `reeve resume`",         \
         "FILE", false},                                                                                               \
        {"record", 0, "FILE", "write a script that plays this run again", "FILE", false},                              \
        {"debug-payload", 0,    "FILE", "write each request to a provider as it is sent, a line each; - is stderr",    \
         "FILE",          false},                                                                                      \
        {"script", 's', "FILE", "answers for models, stages, tools and people", "FILE", false},                        \
        {"no-store", 0, NULL, "keep nothing (--save keeps the run in its file only)", NULL, false},                    \
        RV_CLI_STORE_OPTION, RV_CLI_TENANT_OPTION, RV_CLI_SCHEMA_DIR_OPTION, RV_CLI_SYNC_OPTION, RV_CLI_LEASE_OPTION,  \
        {"mock", 'm', NULL, "use the mock handlers of all stages that have one", NULL, false},                         \
    {                                                                                                                  \
        "workers", 'w', "N", "threads for capability code at most (default: 64)", NULL, false                          \
    }

static const struct rv_cli_option run_options[] = {
    {"input", 'i', "TEXT", "the input; - reads it from standard input", NULL, false},
    {"input-file", 0, "FILE", "the input from a file; - is standard input", "FILE", false},
    {"envelope", 0, "FILE", "begin at the first stage with the outputs and counters of a state dict (may be partial)",
     "FILE", false},
    {"set", 0, "PATH=VALUE", "set a part of the starting state, e.g. metadata.lang=en", NULL, true},
    {"user", 'u', "ID", "who asks (default REEVE_USER)", NULL, false},
    {"session", 0, "ID", "the session it belongs to", NULL, false},
    {"mode", 0, "MODE", "one stage after the other, or all ready ones at once", "sequential parallel", false},
    OBSERVE_OPTIONS,
};

static const struct rv_cli_option resume_options[] = {
    {"interrupt", 0, "ID", "which of several questions it answers", NULL, false},
    {"text", 0, "TEXT", "the answer to a question, or the text of a review", NULL, false},
    {"approve", 'y', NULL, "yes to a confirmation", NULL, false},
    {"deny", 'n', NULL, "no to a confirmation", NULL, false},
    {"decision", 0, "WORD", "of a review; of a call nobody knows the outcome of: happened, not_happened, fail",
     "approve reject modify happened not_happened fail", false},
    {"data", 0, "JSON", "an object that goes with the answer", NULL, false},
    {"user", 'u', "ID", "who answers: only their own runs are there (default REEVE_USER, else all are)", NULL, false},
    {"bundle", 0, "new|FILE",
     "go on with the pipeline as it is now (new), or with another, if the run still fits; as a new run", "FILE", false},
    OBSERVE_OPTIONS,
};

static int exclusive(struct rv_cli *cli, const struct rv_cli_args *args)
{
    int n = rv_cli_flag(args, "json") + rv_cli_flag(args, "state") + rv_cli_flag(args, "events");
    if (rv_cli_flag(args, "deltas") && !rv_cli_flag(args, "events"))
        return rv_cli_usage(cli, args, "--deltas are pieces among the lines of --events: give both");
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
    rv_envelope_free(env);
    if (!rv_err_is(err, RV_E_EXISTS))
        rv_err_hint(&err, "--no-store runs without keeping anything");
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
        rc = RV_FAIL(err, RV_E_INVALID, "it is no object");
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
        return RV_FAIL(err, RV_E_STATE, "the run waits for nothing: there is no pending interrupt");
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

/* May whoever the command line is for go on with it? */
static int check_file_user(const struct rv_store_scope *scope, const struct rv_runfile *file, rv_err **err)
{
    const char *user_id = "";

    RV_IGNORE(rv_json_get_text(file->state, "user_id", &user_id), "a state without one is nobody's");
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
 * one of somebody else's is not there. */
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
        "Loads the pipeline, opens its capabilities and takes an envelope through its stages. In a pipe it prints the\n"
        "answer only; on a terminal it also shows each stage and a timeline. A run that has to wait for a person\n"
        "exits with 3 and says how to answer. When the reader of its output leaves, the run goes on to its end.",
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
    .summary = "answer a run that waits, and let it go on",
    .text =
        "RUN is the id or the file that `reeve run` printed when it exited with 3, the beginning of an id, or `last`.\n"
        "The answer must fit what is asked: --text for a question, --approve or --deny for a confirmation, --decision\n"
        "for a review. Several questions of one run are answered by their ids, in any order; an answer counts once.\n"
        "The run goes on with the pipeline it was started with.",
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
