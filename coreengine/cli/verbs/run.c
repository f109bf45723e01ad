/* reeve run, reeve resume */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/cli/verbs/watch_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct rv_cli_option run_options[] = {
    {"input", 'i', "TEXT", "the input; - reads it from standard input", NULL, false},
    {"input-file", 0, "FILE", "read the input from a file; - is standard input", "FILE", false},
    {"envelope", 0, "FILE", "start at the first stage with the outputs and counters of a (partial) state", "FILE",
     false},
    {"set", 0, "PATH=VALUE", "set a part of the initial state, e.g. metadata.lang=en", NULL, true},
    {"user", 'u', "ID", "user who runs it (default REEVE_USER)", NULL, false},
    {"session", 0, "ID", "session that the run belongs to", NULL, false},
    {"mode", 0, "MODE", "run one stage at a time, or all ready stages at once", "sequential parallel", false},
    {"model", 0, "NAME", "provider:model to ask instead of each model of the pipeline", NULL, false},
    {"dry-run", 0, NULL, "print what would be sent to models and what it can cost; nothing is run", NULL, false},
    {"watch", 0, NULL, "run it again whenever the pipeline, its script, a prompt or an agent changes", NULL, false},
    {"batch", 0, "FILE", "run each line of a JSONL file, one result line each; - is standard input", "FILE", false},
    {"concurrency", 0, "N", "with --batch: runs at once (default 32)", NULL, false},
    {"unordered", 0, NULL, "with --batch: print results as runs end, not in the order of the lines", NULL, false},
    {"failures", 0, "FILE", "with --batch: write the results of failed lines here, as a batch that repeats them",
     "FILE", false},
    {"batch-name", 0, "NAME", "with --batch: run lines again that were run under another name", NULL, false},
};

static const struct rv_cli_option resume_options[] = {
    {"interrupt", 0, "ID", "the question to answer, if there are several", NULL, false},
    {"text", 0, "TEXT", "the answer to a question, or the text of a review", NULL, false},
    {"choice", 'c', "WORD", "the choice at a question with choices; --text adds words to it", NULL, false},
    {"approve", 'y', NULL, "approve a confirmation; of a question with choices: yes", NULL, false},
    {"deny", 'n', NULL, "deny a confirmation; of a question with choices: no", NULL, false},
    {"arguments", 0, "JSON", "with --approve: make the tool call with these arguments instead", NULL, false},
    {"decision", 0, "WORD",
     "decision on a review; for a call with an unknown outcome: happened, not_happened, fail; for the form of a "
     "tool: accept (with --data), decline, cancel",
     "approve reject modify happened not_happened fail accept decline cancel", false},
    {"data", 0, "JSON", "JSON object to pass with the answer", NULL, false},
    {"user", 'u', "ID", "user who answers; only this user's runs are visible (default REEVE_USER, else all runs)", NULL,
     false},
    {"queue", 0, NULL, "queue the answer for a worker instead of continuing here", NULL, false},
    {"bundle", 0, "new|FILE", "continue as a new run with the current pipeline (new) or with FILE, if the run fits it",
     "FILE", false},
};

/* In the store, unless nothing is to be kept or a file keeps it. */
static bool is_kept(const struct rv_cli *cli)
{
    return !cli_flag(cli, "no-store") && !cli_value(cli, "save");
}

static void note_left_behind(const struct rv_cli *cli, rv_store *store)
{
    size_t n = cli->err_tty ? rv_app_count_left(store, &cli->app.scope) : 0;

    if (n > 0)
        cli_say("note: %zu unfinished run%s of a process that is gone; go on with `reeve runs recover`\n", n,
                n == 1 ? "" : "s");
}

void cli_hint_store(rv_err **err)
{
    for (const rv_err *link = *err; link; link = rv_err_cause(link))
        if (rv_err_hint_text(link))
            return;
    rv_err_set_hint(err, "--no-store runs without a store");
}

/* Takes env. */
static int run_kept(struct rv_cli *cli, struct rv_app_run *run, rv_envelope *env, rv_err **err)
{
    int rc = is_kept(cli) ? rv_app_run_open(run, err) : 0;

    if (rc == 0 && is_kept(cli)) {
        note_left_behind(cli, run->store);
        rc = rv_app_run_keep(run, env, err);
    }
    if (rc == 0)
        return cli_session_run(cli, run, env, NULL, err);
    if (cli_flag(cli, "events"))
        cli_tell_end(env, *err);
    rv_envelope_free(env);
    if (!rv_err_is(*err, RV_E_EXISTS) && !rv_err_is(*err, RV_E_QUOTA) && !rv_err_src(*err).file)
        cli_hint_store(err);
    return rc;
}

static int run_loaded(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err)
{
    struct rv_app_run run = {0};
    rv_envelope *env = NULL;

    if (!cli_sound(cli, loaded, false))
        return RV_EXIT_USAGE;
    int rc = rv_app_check(loaded, cli_flag(cli, "mock"), err); /* nothing is kept of a run that cannot work */
    if (rc == 0 && !cli_sound(cli, loaded, false))
        return RV_EXIT_USAGE;
    if (rc == 0 && cli_flag(cli, "dry-run"))
        return cli_dry_run(cli, loaded, err);
    if (rc == 0 && cli_value(cli, "batch")) {
        cli_say_findings(cli, loaded->missing);
        return cli_batch(cli, loaded, err);
    }
    if (rc == 0)
        rc = cli_envelope(cli, &env, err);
    if (rc == 0)
        rc = cli_run_opts(cli, loaded, &run, err);
    run.pipeline_path = cli->words[0];
    run.script_path = cli_value(cli, "script");
    if (rc < 0) {
        rv_envelope_free(env);
    } else {
        cli_say_findings(cli, loaded->missing);
        rc = run_kept(cli, &run, env, err);
    }
    rv_app_run_fini(&run);
    return rc;
}

static int load(struct rv_cli *cli, struct rv_app_loaded *out, rv_err **err)
{
    const struct rv_app_load_opts opts = {.script = cli_value(cli, "script"),
                                          .connects = !cli_flag(cli, "dry-run"),
                                          .keeps = is_kept(cli) && !cli_flag(cli, "dry-run"),
                                          .model = cli_value(cli, "model")};

    return rv_app_load(&cli->app, cli->words[0], &opts, out, err);
}

static int run_once(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_loaded loaded;

    int rc = load(cli, &loaded, err);
    if (rc < 0)
        return rc;
    rc = run_loaded(cli, &loaded, err);
    rv_app_loaded_fini(&loaded);
    return rc;
}

/* --- again after each change --- */

/* The hash of what the last run was started with; empty: it was not started. */
struct started {
    char hash[RV_HASH_MAX];
    bool is_new; /* the file has changed since the run before */
};

static int run_changed(struct rv_cli *cli, struct started *s, struct rv_cli_watch *w, rv_err **err)
{
    rv_buf bundle = RV_BUF_INIT(RV_APP_MAX_BUNDLE);
    struct rv_app_loaded loaded;
    char hash[RV_HASH_MAX] = "";

    s->is_new = true;
    cli_watch_reads(w, true);
    int rc = load(cli, &loaded, err);
    cli_watch_reads(w, false);
    if (rc < 0) {
        s->hash[0] = '\0';
        return rc;
    }
    if (rv_findings_n_errors(loaded.findings) == 0 && (rc = rv_app_bundle_write(&loaded, &bundle, err)) == 0)
        rv_hash_format(rv_buf_str(&bundle), hash);
    rv_buf_fini(&bundle);
    s->is_new = hash[0] == '\0' || strcmp(hash, s->hash) != 0;
    memcpy(s->hash, hash, sizeof hash);
    if (rc == 0 && s->is_new)
        rc = run_loaded(cli, &loaded, err);
    rv_app_loaded_fini(&loaded);
    return rc;
}

static int check_input(struct rv_cli *cli, rv_err **err)
{
    const char *const inputs[] = {cli_value(cli, "input"), cli_value(cli, "input-file")};

    for (size_t i = 0; i < RV_COUNT(inputs); i++)
        if (inputs[i] && strcmp(inputs[i], "-") == 0)
            return cli_usage(cli, err, "--watch needs an input that can be read again, not standard input");
    return 0;
}

/* Until a signal. What a run writes there itself does not change what the next one is started with. */
static int watch(struct rv_cli *cli, rv_err **err)
{
    char *paths[] = {(char *)cli->words[0], (char *)cli_value(cli, "script")};
    const struct rv_cli_files files = {.paths = paths, .n = paths[1] ? 2 : 1};
    struct started started = {"", true};
    struct rv_cli_watch w = RV_CLI_WATCH_INIT;
    int status = 0;

    int rc = check_input(cli, err);
    while (rc == 0 && (rc = cli_watch_begin(&w, &files, err)) == 0) {
        rv_err *fault = NULL;
        int now = run_changed(cli, &started, &w, &fault);
        if (now < 0)
            now = cli_report(cli, fault); /* the next change may mend it */
        status = started.is_new ? now : status;
        if (status == RV_EXIT_CANCELLED || !cli_out_now(RV_STR_LIT("")))
            break;
        if (started.is_new)
            cli_say("reeve: waiting for a change; ^C ends\n");
        rc = cli_watch_wait(&w, err);
    }
    cli_watch_end(&w);
    return rc < 0 ? rc : status;
}

static int run(struct rv_cli *cli, rv_err **err)
{
    return cli_flag(cli, "watch") ? watch(cli, err) : run_once(cli, err);
}

/* --- resume --- */

/* The value of an option that takes an object; *out is the caller's, NULL: it is not given. */
static int read_object(const struct rv_cli *cli, const char *option, json_object **out, rv_err **err)
{
    const char *json = cli_value(cli, option);

    *out = NULL;
    if (!json)
        return 0;
    int rc = rv_json_parse(rv_str_of(json), NULL, out, err);
    if (rc == 0 && !json_object_is_type(*out, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "it is not an object");
    return rc < 0 ? RV_WRAP(err, rc, "read --%s", option) : 0;
}

/* The caller frees data and arguments of the response, also on failure. */
static int read_response(const struct rv_cli *cli, struct rv_response *out, rv_err **err)
{
    bool approve = cli_flag(cli, "approve");
    const char *text = cli_value(cli, "text"), *decision = cli_value(cli, "decision"),
               *choice = cli_value(cli, "choice");

    *out = (struct rv_response){.has_approved = approve || cli_flag(cli, "deny"), .approved = approve};
    if (text)
        out->text = rv_str_of(text);
    if (decision)
        out->decision = rv_str_of(decision);
    if (choice)
        out->choice = rv_str_of(choice);
    if (cli_value(cli, "interrupt"))
        out->interrupt_id = rv_str_of(cli_value(cli, "interrupt"));
    int rc = read_object(cli, "data", &out->data, err);
    return rc < 0 ? rc : read_object(cli, "arguments", &out->arguments, err);
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
        rv_err_set_hint(err, "start again with `reeve run`");
        return rc;
    }
    if (!cli_answer_fits(in.kind, in.data, r, &misfit)) {
        const char *ask = in.question ? in.question : in.message ? in.message : "";
        rv_buf how = RV_BUF_INIT(RV_JSON_MAX_BYTES);
        rc = RV_FAIL(err, RV_E_INVALID, "%s; the run waits for %s: %s", rv_buf_cstr(&misfit),
                     rv_interrupt_kind_text(in.kind), ask);
        cli_write_how_to_answer(in.kind, in.data, &how);
        rv_err_set_hint(err, "answer with %s", rv_buf_cstr(&how));
        rv_buf_fini(&how);
    }
    rv_buf_fini(&misfit);
    return rc;
}

static bool is_empty(const struct rv_response *r)
{
    return !r->text.ptr && !r->has_approved && !r->decision.ptr && !r->choice.ptr && !r->data && !r->arguments;
}

/* The question of a run file has expired: the run goes on by that, and an answer is refused after it. Takes env. */
static int resume_expired(struct rv_cli *cli, struct rv_app_run *run, rv_envelope *env, rv_str id, bool has_answer,
                          rv_err **err)
{
    char *question = rv_str_dup(id);
    const struct rv_response expired = {.expired = true, .interrupt_id = rv_str_of(question)};

    if (!question) {
        rv_envelope_free(env);
        return RV_FAIL(err, RV_E_NOMEM, "go on with a run");
    }
    int rc = cli_session_run(cli, run, env, &expired, err);
    free(question);
    if (rc < 0 || !has_answer)
        return rc;
    rc = RV_FAIL(err, RV_E_TIMEOUT, "the answer comes too late: the question has expired");
    rv_err_set_hint(err, "the run went on by the time-out");
    return rc;
}

static int resume_loaded(struct rv_cli *cli, struct rv_app_run *run, const struct rv_runfile *file,
                         const struct rv_response *response, rv_err **err)
{
    int64_t now_us = rv_app_now_us(), expired_us;
    rv_envelope *env = NULL;
    rv_str due;

    if (!cli_sound(cli, run->loaded, false))
        return RV_EXIT_USAGE;
    int rc = rv_envelope_load(file->state, rv_rand_system(), now_us, &env, err);
    if (rc == 0 && rv_envelope_find_due_ask(env, now_us, &due, &expired_us))
        return resume_expired(cli, run, env, due, !is_empty(response), err);
    if (rc == 0)
        rc = check_answer(env, response, now_us, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    cli_say_findings(cli, run->loaded->missing);
    return cli_session_run(cli, run, env, response, err);
}

static int resume_file(struct rv_cli *cli, const char *path, const struct rv_runfile *file,
                       const struct rv_response *response, rv_err **err)
{
    const char *script = cli_value(cli, "script") ? cli_value(cli, "script") : file->script;
    const struct rv_app_load_opts opts = {.script = script, .connects = true};
    struct rv_app_loaded loaded = {0};
    struct rv_app_run run;

    int rc = cli_run_opts(cli, &loaded, &run, err);
    run.pipeline_path = file->pipeline;
    run.script_path = script;
    run.rules = file->rules;
    run.run_file = path;
    if (rc == 0)
        rc = cli_check_reads(cli, "the pipeline of the run", file->pipeline, err);
    if (rc == 0 && script)
        rc = cli_check_reads(cli, "its script", script, err);
    if (rc == 0) /* it is written again */
        rc = rv_app_check_target(path, false, err);
    if (rc == 0)
        rc = rv_app_load(&cli->app, file->pipeline, &opts, &loaded, err);
    if (rc == 0)
        rc = resume_loaded(cli, &run, file, response, err);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

/* May the user of the command line continue this run? */
static int check_file_user(const struct rv_store_scope *scope, const struct rv_runfile *file, rv_err **err)
{
    const char *user_id = rv_json_text_or(file->state, "user_id", "");

    return rv_app_check_user(scope, user_id, err);
}

static int resume_from_file(struct rv_cli *cli, const struct rv_response *response, rv_err **err)
{
    struct rv_runfile file = {0};
    rv_buf path = RV_BUF_INIT(4096);
    int claim = -1;

    int rc = rv_runfile_find_path(cli->words[0], &path, err);
    if (rc == 0)
        rc = rv_runfile_claim(rv_buf_cstr(&path), &claim, err);
    if (rc == 0)
        rc = rv_runfile_read(rv_buf_cstr(&path), &file, err);
    if (rc == 0)
        rc = check_file_user(&cli->app.scope, &file, err);
    if (rc == 0)
        rc = resume_file(cli, claim >= 0 ? rv_buf_cstr(&path) : NULL, &file, response, err);
    if (claim >= 0)
        close(claim);
    rv_runfile_fini(&file);
    rv_buf_fini(&path);
    return rc;
}

/* The run that goes on: itself, or the one that takes its place. */
static int continue_with(struct rv_cli *cli, const char *run, const struct rv_response *response, rv_err **err)
{
    const char *bundle = cli_value(cli, "bundle");
    struct rv_app_loaded next = {0};
    struct rv_app_run how;
    char id[RV_ID_MAX];

    if (!bundle)
        return cli_continue(cli, run, RV_APP_ANSWER, response, err);
    int rc = cli_run_opts(cli, &next, &how, err);
    if (rc == 0)
        rc = rv_app_migrate(&how, cli->store, &(struct rv_app_migration){run, bundle, cli_value(cli, "script")}, &next,
                            id, err);
    if (next.findings)
        RV_IGNORE(!cli_sound(cli, &next, false), "the error says so, too");
    rv_app_loaded_fini(&next);
    if (rc < 0)
        return rc;
    cli_say("run %s goes on as %s\n", run, id);
    return cli_continue(cli, id, RV_APP_ANSWER, response, err);
}

/* The question has expired: the run goes on by that, and an answer is refused after it. Takes the refusal in *err. */
static int go_on_expired(struct rv_cli *cli, const char *run, const struct rv_response *response, rv_err **err)
{
    rv_err *late = rv_err_steal(err);
    int rc = cli_continue(cli, run, RV_APP_ANSWER, NULL, err);
    if (rc >= 0 && !is_empty(response)) {
        rv_err_pass(err, late);
        return RV_E_TIMEOUT;
    }
    rv_err_free(late);
    return rc;
}

/* A worker goes on with it. */
static int queue_answer(struct rv_cli *cli, const char *run, const struct rv_response *response, rv_err **err)
{
    bool is_new = false;

    int rc = rv_app_enqueue(cli->store, &cli->app.scope, run, response, &is_new, err);
    if (rc == 0)
        cli_say(is_new ? "run %s: queued\n" : "run %s: an answer to this question is queued already\n", run);
    return rc;
}

/* A run of the store goes on as it began: nothing else may answer for its stages. */
static int check_how(const struct rv_cli *cli, rv_err **err)
{
    bool has_script = cli_value(cli, "script") != NULL;

    if (cli_value(cli, "bundle") || (!has_script && !cli_flag(cli, "mock")))
        return 0;
    const char *option = has_script ? "script" : "mock";
    int rc = cli_usage(cli, err, "a run of the store goes on as it began: --%s changes nothing", option);
    rv_err_set_hint(err, "leave --%s out, or continue as a new run with --bundle new", option);
    return rc;
}

static int resume_from_store(struct rv_cli *cli, struct rv_response *response, rv_err **err)
{
    char id[RV_STORE_MAX_ID + 1];
    bool is_due = false;
    struct rv_run_row row = {0};

    int rc = check_how(cli, err);
    if (rc == 0)
        rc = rv_app_store_open(&cli->app, RV_APP_STORE_CHANGE, &cli->store, err);
    if (rc == 0)
        rc = rv_app_find_run(cli->store, &cli->app.scope, cli->words[0], &row, err);
    if (rc == 0)
        rc = cli_check_answer(cli, &row, response, id, &is_due, err);
    if (cli_flag(cli, "queue") && (rc == 0 || (is_due && is_empty(response)))) {
        rv_err_free(rv_err_steal(err));
        rc = queue_answer(cli, row.id, is_due ? NULL : response, err);
    } else if (is_due)
        rc = go_on_expired(cli, row.id, response, err);
    else if (rc == 0)
        rc = continue_with(cli, row.id, response, err);
    rv_run_row_fini(&row);
    return rc;
}

/* A run file is named by its path; anything else is a run of the store, or of the folder of run files. In that folder
 * a run of another user does not exist for it. */
static int find_run_file(const struct rv_cli *cli, const struct rv_store_scope *scope, bool *is, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(4096);
    struct rv_runfile file = {0};
    rv_err *why = NULL;

    int rc = rv_runfile_find_path(cli->words[0], &path, &why);
    if (rc == 0 && strcmp(rv_buf_cstr(&path), cli->words[0]) != 0 && scope->user) {
        rc = rv_runfile_read(rv_buf_cstr(&path), &file, &why);
        if (rc == 0)
            rc = check_file_user(scope, &file, &why);
    }
    rv_runfile_fini(&file);
    rv_buf_fini(&path);
    *is = rc == 0;
    if (rc == RV_E_NOMEM || rv_code_is_scarce(rc))
        return rv_err_pass(err, why);
    rv_err_free(why);
    return 0;
}

static int resume(struct rv_cli *cli, rv_err **err)
{
    struct rv_response response;

    int rc = read_response(cli, &response, err);
    bool is_file = false;
    if (rc == 0)
        rc = find_run_file(cli, &cli->app.scope, &is_file, err);
    if (rc == 0 && is_file)
        rc = resume_from_file(cli, &response, err);
    else if (rc == 0)
        rc = resume_from_store(cli, &response, err);
    json_object_put(response.data);
    json_object_put(response.arguments);
    return rc;
}

const struct rv_cli_verb verb_run = {
    .name = "run",
    .args = "PIPELINE",
    .summary = "run a pipeline",
    .text =
        "Loads the pipeline, opens its capabilities and runs its stages. In a pipe it prints the answer only; on a\n"
        "terminal it also shows each stage and a timeline. A run that waits for a person exits with 3 and prints the\n"
        "command that answers it. If the reader of its output goes away, the run still continues to its end.\n\n"
        "With --batch each line of a file is a run in JSON: a text in quotes, or a state such as\n"
        "{\"raw_input\": \"...\", \"metadata\": {}}. One result line each comes in the order of the lines. The same\n"
        "command goes on with a batch that was stopped: lines that the store has an answer for are not run again.\n\n"
        "With --watch it runs again when a file that it read, wherever that is, has changed what a run is started "
        "with.",
    .examples = "reeve run pipelines/ask-docs.yaml --input \"how are errors made?\"   # ask\n"
                "echo hi | reeve run pipelines/hooks.yaml --input - --json | jq .response   # in a pipe\n"
                "reeve run pipelines/loop.yaml --script pipelines/scripts/loop.yaml --events   # without any model\n"
                "reeve run pipelines/loop.yaml --model openai:gpt-4.1-mini --input rope --dry-run   # what it sends, "
                "what it costs\n"
                "reeve run pipelines/loop.yaml --script pipelines/scripts/loop.yaml --batch lines.jsonl --failures "
                "again.jsonl   # each line\n"
                "reeve run pipelines/loop.yaml --script pipelines/scripts/loop.yaml --input rope --watch   # while you "
                "write it",
    RV_CLI_OPTIONS(run_options),
    .groups = {&cli_of_runs, &cli_of_work, &cli_of_places, &cli_of_commits},
    .excludes = "json state events; dry-run batch state events; watch batch; batch input; batch input-file; batch "
                "session; batch "
                "state; batch events; batch "
                "timeline; batch save; batch record; batch debug-payload; batch no-store",
    .needs = "deltas events; concurrency batch; unordered batch; failures batch; batch-name batch",
    RV_CLI_ONE_WORD,
    .outlives_reader = true,
    .run = run,
};

const struct rv_cli_verb verb_resume = {
    .name = "resume",
    .args = "RUN",
    .summary = "answer a waiting run and continue it",
    .text =
        "RUN is a run id, a unique prefix of one, `last`, or the file that --save wrote. The answer must fit the\n"
        "question: --text for a clarification, --approve or --deny for a confirmation, --decision for a review, and\n"
        "--choice, with or without --text, for a question with choices. A run with branches can ask several "
        "questions:\n"
        "--interrupt names one; they can be answered in any order, each of them once.\n"
        "The run continues with the pipeline that it started with, in this process or, with --queue, at a worker.",
    .examples =
        "reeve run pipelines/triage.yaml --script pipelines/scripts/triage.yaml   # exits with 3\n"
        "reeve resume last --choice no --text \"too expensive\"\n"
        "reeve run pipelines/clarify.yaml --script pipelines/scripts/clarify.yaml --save run.json   # exits with 3\n"
        "reeve resume run.json --text \"PostgreSQL\"\n"
        "reeve run pipelines/confirm.yaml --script pipelines/scripts/confirm.yaml   # exits with 3\n"
        "reeve resume last --approve",
    RV_CLI_OPTIONS(resume_options),
    .groups = {&cli_of_runs, &cli_of_work, &cli_of_places, &cli_of_commits},
    .excludes = "json state events; approve deny; queue bundle; queue json; queue state; queue events",
    .needs = "deltas events",
    RV_CLI_ONE_WORD,
    .outlives_reader = true,
    .run = resume,
};
