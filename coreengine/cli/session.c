/* One run as the command line sees it: observers in, result out. */
#include "coreengine/cli/cli.h"
#include "coreengine/cli/outlet_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct watch {
    const struct rv_pipeline *pipeline;
    rv_progress *progress;
    rv_recorder *recorder; /* owned */
    bool events;           /* --events: event lines on stdout */
    bool deltas;           /* --deltas: pieces of what models say among them */
    bool has_payloads;     /* --debug-payload: what is sent to providers */
    FILE *payloads;        /* where to; owned. NULL: stderr */
    int payload_errno;     /* of the first that could not be written; 0: none */
    bool has_end;          /* the last event was printed */
    bool is_unread;        /* the reader of stdout left, or the disk is full: the run goes on, its events are dropped */
};

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct watch *w = self;
    if (w->events && !w->is_unread) {
        cli_out(line);
        w->is_unread = !cli_out_now(RV_STR_LIT("\n"));
    }
    w->has_end = w->has_end || e->emit == RV_EMIT_DONE;
    cli_progress_event(w->progress, e, line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct watch *w = self;

    if (w->deltas && !w->is_unread)
        w->is_unread = !cli_out_delta(w->pipeline, from, d);
    cli_progress_delta(w->progress, d->kind == RV_LLM_DELTA_TEXT ? d->text : (rv_str){NULL, 0});
    return true;
}

/* One line for each request: the body has no line end in it. */
static void on_payload(void *self, int64_t call_id, const char *provider, rv_str body)
{
    struct watch *w = self;

    (void)call_id;
    (void)provider;
    if (!w->payloads) {
        cli_err(body);
        cli_err(RV_STR_LIT("\n"));
        return;
    }
    errno = 0;
    fwrite(body.ptr, 1, body.len, w->payloads);
    putc('\n', w->payloads);
    if ((fflush(w->payloads) != 0 || ferror(w->payloads)) && !w->payload_errno)
        w->payload_errno = errno ? errno : EIO;
}

/* The answer for people and pipes: the final response, else the outputs. */
static int print_answer(const struct rv_cli *cli, const struct rv_pipeline *p, const rv_envelope *env, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    json_object *outputs = NULL;
    rv_str answer;

    if (rv_envelope_find_final_response(env, &p->response, &answer)) {
        if (cli->out_tty)
            cli_write_safe(answer, &text);
        else
            rv_buf_add_str(&text, answer);
        if (!answer.len || answer.ptr[answer.len - 1] != '\n')
            rv_buf_putc(&text, '\n');
    } else if (rv_envelope_n_outputs(env) > 0) {
        int rc = rv_envelope_build_outputs(env, &outputs, err);
        if (rc < 0)
            return rc;
        rv_json_write_pretty(outputs, &text);
        rv_buf_putc(&text, '\n');
        json_object_put(outputs);
    }
    return cli_print(0, &text, err);
}

int cli_print_result(const struct rv_cli *cli, const struct rv_pipeline *p, enum rv_run_status status,
                     const rv_envelope *env, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (cli_flag(cli, "events"))
        return 0;
    if (cli_flag(cli, "json"))
        rv_envelope_write_result(env, &p->response, &text);
    else if (cli_flag(cli, "state"))
        rv_envelope_write_state(env, &text);
    else
        return rv_app_has_answer(status, env) ? print_answer(cli, p, env, err) : 0;
    rv_buf_putc(&text, '\n');
    return cli_print(0, &text, err);
}

/* Put an interrupted run where `resume` finds it. What is asked is said first: it must not be lost with the state. */
static int keep_interrupted(const struct rv_cli *cli, struct rv_app_run *run, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(4096);
    const rv_envelope *env = rv_exec_envelope(run->exec);
    const char *run_id = rv_envelope_fields(env)->envelope_id;

    if (run->journal) {
        cli_say_pending(cli, env, run->store, run_id);
        return 0;
    }
    int rc = rv_app_run_keep_file(run, &path, err);
    if (rc == 0)
        cli_say("run %s is kept in %s\n", run_id, rv_buf_cstr(&path));
    else
        rv_err_set_hint(err, "name a file for the run with --save FILE");
    cli_say_pending(cli, env, NULL, rc == 0 && (run->save || run->run_file) ? rv_buf_cstr(&path) : run_id);
    rv_buf_fini(&path);
    return rc;
}

static void write_causes(const rv_err *failure, rv_buf *out)
{
    rv_buf said = RV_BUF_INIT(1 << 20);

    if (failure)
        rv_buf_puts(&said, "  by: ");
    rv_err_write_text(failure, true, &said);
    cli_write_safe(rv_buf_str(&said), out);
    rv_buf_fini(&said);
}

/* Where the stage stands at which the run ended, unless the reason names a place itself, as that of an expression, or a
 * person ended it. */
static void write_place(const struct rv_pipeline *p, const rv_envelope *env, const char *stage, rv_buf *out)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const char *reason = f->termination_reason;
    int i = stage ? rv_pipeline_find_stage(p, rv_str_of(stage)) : -1;
    const struct rv_src *src = i >= 0 ? &p->agents[i].places.stage : NULL;

    if (!src || !src->file || src->line == 0 || f->terminal_reason == RV_REASON_USER_CANCELLED ||
        (reason && strstr(reason, src->file)))
        return;
    rv_buf_puts(out, "  at: ");
    cli_write_safe(rv_str_of(src->file), out);
    rv_buf_printf(out, ":%d:%d, stage \"%s\"\n", src->line, src->col, p->agents[i].name);
}

/* "cancelled by the caller" says what has become of the run, too. */
static bool says_status(const char *reason, const char *status)
{
    return reason && strncmp(reason, status, strlen(status)) == 0;
}

/* Why a run did not complete, for people; --json and --events carry it themselves. */
void cli_explain_end(const struct rv_cli *cli, const struct rv_pipeline *p, enum rv_run_status status,
                     const rv_envelope *env, const rv_err *failure)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const char *stage = NULL;
    enum rv_failure code = rv_envelope_failure(env, &stage);
    rv_buf text = RV_BUF_INIT(1 << 20);

    if (status == RV_RUN_COMPLETED || status == RV_RUN_INTERRUPTED)
        return;
    rv_buf_printf(&text, "%sreeve:%s run ", cli->err_color ? "\033[1;31m" : "", cli->err_color ? "\033[0m" : "");
    if (!says_status(f->termination_reason, rv_run_status_text(status)))
        rv_buf_printf(&text, "%s%s", rv_run_status_text(status), f->termination_reason ? ": " : "");
    if (f->termination_reason) {
        cli_write_lines(rv_str_of(f->termination_reason), &text);
    }
    cli_write_code(code != RV_FAILURE_NONE ? rv_failure_text(code) : rv_reason_text(f->terminal_reason), &text);
    write_place(p, env, stage, &text);
    if (cli->debug && code != RV_FAILURE_NONE)
        write_causes(failure, &text);
    cli_say_text(&text);
}

static int open_payloads(struct watch *w, const char *path, rv_err **err)
{
    if (!path)
        return 0;
    w->has_payloads = true;
    if (strcmp(path, "-") == 0)
        return 0;
    int fd = -1, rc = rv_file_create(path, &fd, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "write payloads");
    w->payloads = fdopen(fd, "w");
    if (w->payloads)
        return 0;
    close(fd);
    return RV_FAIL(err, RV_E_NOMEM, "write payloads to \"%s\"", path);
}

static int close_payloads(struct watch *w, const char *path, rv_err **err)
{
    if (w->payloads && fclose(w->payloads) != 0 && !w->payload_errno)
        w->payload_errno = errno;
    return w->payload_errno ? RV_FAIL_SYSTEM(err, w->payload_errno, "write payloads to \"%s\"", path) : 0;
}

static int open_watch(const struct rv_cli *cli, struct rv_app_run *run, struct watch *w, rv_err **err)
{
    bool data = cli_flag(cli, "json") || cli_flag(cli, "state") || cli_flag(cli, "events");
    bool live = cli->err_tty && !cli_flag(cli, "quiet");
    bool timeline = cli_flag(cli, "timeline") || (live && !data);

    *w = (struct watch){.pipeline = run->loaded->pipeline, .events = cli_flag(cli, "events")};
    w->deltas = w->events && cli_flag(cli, "deltas");
    if (live || timeline)
        w->progress =
            cli_progress_new(cli, w->pipeline, (live ? RV_PROGRESS_LIVE : 0) | (timeline ? RV_PROGRESS_TIMELINE : 0));
    if (cli_value(cli, "record") && !(w->recorder = rv_recorder_new()))
        return RV_FAIL(err, RV_E_NOMEM, "record the run");
    int rc = open_payloads(w, cli_value(cli, "debug-payload"), err);
    run->recorder = w->recorder;
    run->observer = (struct rv_app_observer){.self = w,
                                             .on_event = w->events || w->progress ? on_event : NULL,
                                             .on_delta = w->progress || w->deltas ? on_delta : NULL,
                                             .on_payload = w->has_payloads ? on_payload : NULL};
    return rc;
}

/* Write the files that the options name besides the answer. ran: the run took place; otherwise there is nothing of a
 * run to write. */
static int close_watch(const struct rv_cli *cli, struct rv_app_run *run, struct watch *w, bool ran, rv_err **err)
{
    int rc = 0;

    cli_progress_end(w->progress);
    if (w->recorder && ran)
        rc = rv_recorder_write(w->recorder, RV_CLI_RECORDED, cli_value(cli, "record"), err);
    rv_recorder_free(w->recorder);
    if (rc == 0)
        rc = close_payloads(w, cli_value(cli, "debug-payload"), err);
    if (run->save_err && ran && rc == 0) {
        rc = rv_err_code(run->save_err);
        rv_err_pass(err, run->save_err);
        run->save_err = NULL;
    }
    return rc;
}

static int mode_of(const struct rv_cli *cli)
{
    const char *word = cli_value(cli, "mode");
    enum rv_run_mode mode = RV_MODE_UNSET;

    return word && rv_run_mode_of(rv_str_of(word), &mode, NULL) == 0 ? (int)mode : RV_UNSET; /* it has no other words */
}

/* What a run writes at its end; a mistake shows before it is paid for. */
static int check_targets(const struct rv_cli *cli, rv_err **err)
{
    static const char *const options[] = {"save", "record"};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(options) && rc == 0; i++) {
        const char *path = cli_value(cli, options[i]);
        rc = path ? rv_app_check_target(path, false, err) : 0;
        if (rc < 0)
            RV_WRAP(err, rc, "--%s", options[i]);
    }
    return rc;
}

int cli_run_opts(struct rv_cli *cli, struct rv_app_loaded *loaded, struct rv_app_run *out, rv_err **err)
{
    int64_t workers = 0;
    int rc = cli_int(cli, "workers", 1, 1024, &workers, err);

    if (rc == 0)
        rc = check_targets(cli, err);
    *out = (struct rv_app_run){.app = &cli->app,
                               .loaded = loaded,
                               .mode = mode_of(cli),
                               .use_mocks = cli_flag(cli, "mock"),
                               .session = cli_value(cli, "session"),
                               .workers = (size_t)workers,
                               .handle_signals = true,
                               .save = cli_value(cli, "save")};
    return rc;
}

/* The answer comes first: the reader who waits gets it even if a file could not be written. */
static int conclude(const struct rv_cli *cli, struct rv_app_run *run, rv_err *watch_err)
{
    enum rv_run_status end = rv_exec_status(run->exec);
    rv_err *err = NULL;
    int status = cli_exit_of(end);

    const rv_envelope *env = rv_exec_envelope(run->exec);
    int rc = cli_print_result(cli, run->loaded->pipeline, end, env, &err);
    if (rc == 0 && end == RV_RUN_INTERRUPTED)
        rc = keep_interrupted(cli, run, &err);
    cli_explain_end(cli, run->loaded->pipeline, end, env, rv_exec_failure(run->exec));
    if (rc < 0)
        cli_report(cli, err);
    if (watch_err)
        cli_report(cli, watch_err);
    return rc < 0 || watch_err ? RV_EXIT_FAILED : status; /* never 2: something did run */
}

int cli_session_run(struct rv_cli *cli, struct rv_app_run *run, rv_envelope *env, const struct rv_response *response,
                    rv_err **err)
{
    struct watch w = {0};
    rv_err *watch_err = NULL;

    cli_outlet_open(cli->app.log);
    int rc = open_watch(cli, run, &w, err);
    if (rc == 0)
        rc = rv_app_run_drive(run, env, response, err);
    else
        rv_envelope_free(env);
    RV_IGNORE(close_watch(cli, run, &w, rc == 0, &watch_err), "watch_err says it, after the answer");
    if (rc == 0)
        return conclude(cli, run, watch_err);
    if (w.events && !w.has_end)
        cli_tell_end(NULL, *err);
    if (!run->exec)
        return rc;
    int status = cli_report(cli, rv_err_steal(err));
    return status == RV_EXIT_USAGE ? RV_EXIT_FAILED : status; /* it began, so the command line is not at fault */
}

int cli_continue(struct rv_cli *cli, const char *id, enum rv_app_go go, const struct rv_response *response,
                 rv_err **err)
{
    struct rv_app_loaded loaded = {0};
    struct rv_app_run run;

    int rc = cli_run_opts(cli, &loaded, &run, err);
    if (rc == 0)
        rc = rv_app_continue(&run, cli->store, id, go, &loaded, err);
    bool sound = rc < 0 || cli_sound(cli, &loaded, false);
    if (sound) {
        cli_say_findings(cli, loaded.missing);
        if (rc == 0)
            rc = rv_app_take_over(&run, err);
        if (rc < 0 && cli_flag(cli, "events"))
            cli_tell_end(NULL, *err);
    }
    if (rc == 0)
        rc = sound ? cli_session_run(cli, &run, NULL, response, err) : RV_EXIT_USAGE;
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}
