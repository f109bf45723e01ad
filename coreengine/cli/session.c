/* One run as the command line sees it: observers in, result out. */
#include "coreengine/app/runfile.h"
#include "coreengine/cli/runs/runs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_OUTPUT_BYTES ((size_t)256 << 20)

struct watch {
    struct rv_cli_session *session;
    rv_progress *progress;
    rv_recorder *recorder;
    bool events;       /* --events: event lines on stdout */
    bool deltas;       /* --deltas: pieces of what models say among them */
    FILE *payloads;    /* --debug-payload: what is sent to providers; owned, or stderr. NULL: not asked for */
    int payload_errno; /* of the first that could not be written; 0: none */
    bool is_unread;    /* the reader of stdout left, or the disk is full: the run goes on, its events are dropped */
    rv_err *save_err;  /* first failure of --save; owned */
};

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct watch *w = self;
    if (w->events && !w->is_unread) {
        rv_cli_out(line);
        w->is_unread = !rv_cli_out_now(RV_STR_LIT("\n"));
    }
    rv_progress_event(w->progress, e, line);
    if (w->recorder)
        rv_recorder_event(w->recorder, e, line);
}

static void print_delta(struct watch *w, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    rv_buf line = RV_BUF_INIT(2 * RV_LLM_MAX_REPLY);

    rv_cli_write_delta(w->session->loaded->pipeline, from, d, &line);
    w->is_unread = !rv_cli_out_now(rv_buf_str(&line));
    rv_buf_fini(&line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct watch *w = self;

    if (w->deltas && !w->is_unread)
        print_delta(w, from, d);
    rv_progress_delta(w->progress, from->stage, d->kind == RV_LLM_DELTA_TEXT ? d->text : (rv_str){NULL, 0});
    return true;
}

static void on_piece(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct watch *w = self;

    rv_recorder_delta(w->recorder, from->stage, from->call_id, d, rv_clock_system().now_us(rv_clock_system().self));
}

/* One line for each request: the body has no line end in it. */
static void on_payload(void *self, int64_t call_id, const char *provider, rv_str body)
{
    struct watch *w = self;

    (void)call_id;
    (void)provider;
    errno = 0;
    fwrite(body.ptr, 1, body.len, w->payloads);
    putc('\n', w->payloads);
    if ((fflush(w->payloads) != 0 || ferror(w->payloads)) && !w->payload_errno)
        w->payload_errno = errno ? errno : EIO;
}

static void on_state(void *self, rv_str state)
{
    struct watch *w = self;
    const char *paths[] = {rv_cli_value(w->session->args, "save"), w->session->run_file};
    struct rv_runfile run = {
        .rules = w->session->rules, .pipeline = w->session->pipeline_path, .script = w->session->script_path};

    for (size_t i = 0; i < RV_COUNT(paths); i++)
        if (paths[i] && !w->save_err)
            RV_IGNORE(rv_runfile_write(paths[i], &run, state, &w->save_err), "reported when the run is over");
}

/* Where the state is kept while the run goes on; NULL: nowhere. */
static const char *kept_in(const struct rv_cli_session *s)
{
    const char *save = rv_cli_value(s->args, "save");
    return save ? save : s->run_file;
}

static void on_input(void *self, const struct rv_event *ev)
{
    struct watch *w = self;
    if (w->recorder)
        rv_recorder_input(w->recorder, ev);
}

static int print_buf(rv_buf *b, const char *what, rv_err **err)
{
    int rc = rv_buf_check(b, what, err);
    if (rc == 0)
        rv_cli_out(rv_buf_str(b));
    rv_buf_fini(b);
    return rc;
}

/* The answer for people and pipes: the final response, else the outputs. */
static int print_answer(const struct rv_cli_session *s, const rv_envelope *env, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_OUTPUT_BYTES);
    json_object *outputs = NULL;
    rv_str answer;

    if (rv_envelope_final_response(env, &s->loaded->pipeline->response, &answer)) {
        if (s->cli->out_tty)
            rv_cli_write_safe(answer, &text);
        else
            rv_buf_add_str(&text, answer);
        if (!answer.len || answer.ptr[answer.len - 1] != '\n')
            rv_buf_putc(&text, '\n');
    } else if (rv_envelope_n_outputs(env) > 0) {
        int rc = rv_envelope_outputs(env, &outputs, err);
        if (rc < 0)
            return rc;
        rv_json_write_pretty(outputs, &text);
        rv_buf_putc(&text, '\n');
        json_object_put(outputs);
    }
    return print_buf(&text, "answer", err);
}

/* What a failed or cancelled run leaves behind is in --json and --state; a pipe must not take it for an answer. A bound
 * may well end a run that has one; what a person denied is none. */
static bool has_answer(enum rv_run_status status, const rv_envelope *env)
{
    bool ended = status == RV_RUN_COMPLETED || status == RV_RUN_TERMINATED;
    return ended && !rv_envelope_fields(env)->interrupt_pending && !rv_envelope_was_denied(env);
}

static int print_result(const struct rv_cli_session *s, enum rv_run_status status, const rv_envelope *env, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_OUTPUT_BYTES);

    if (rv_cli_flag(s->args, "events"))
        return 0;
    if (rv_cli_flag(s->args, "json"))
        rv_envelope_write_result(env, &s->loaded->pipeline->response, &text);
    else if (rv_cli_flag(s->args, "state"))
        rv_envelope_write_state(env, &text);
    else
        return has_answer(status, env) ? print_answer(s, env, err) : 0;
    rv_buf_putc(&text, '\n');
    return print_buf(&text, "result", err);
}

/* Put an interrupted run where `resume` finds it; it may be there already. */
static int keep(const struct rv_cli_session *s, const rv_envelope *env, rv_buf *path, rv_err **err)
{
    struct rv_runfile run = {.rules = s->rules, .pipeline = s->pipeline_path, .script = s->script_path};
    rv_buf state = RV_BUF_INIT(MAX_OUTPUT_BYTES);

    if (kept_in(s)) {
        rv_buf_puts(path, kept_in(s));
        return rv_buf_check(path, "path", err);
    }
    rv_envelope_write_state(env, &state);
    int rc = rv_buf_check(&state, "state", err);
    if (rc == 0)
        rc = rv_runfile_default_path(rv_envelope_fields(env)->envelope_id, path, err);
    if (rc == 0)
        rc = rv_runfile_write(rv_buf_cstr(path), &run, rv_buf_str(&state), err);
    rv_buf_fini(&state);
    return rc;
}

/* What is asked is said first: it must not be lost with the state. */
static int keep_interrupted(const struct rv_cli_session *s, const rv_envelope *env, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(4096), text = RV_BUF_INIT(1 << 20);
    const char *run_id = rv_envelope_fields(env)->envelope_id;

    if (s->journal) {
        rv_cli_say_pending(s, env, run_id);
        return 0;
    }
    int rc = keep(s, env, &path, err);
    if (rc == 0)
        rv_buf_printf(&text, "run %s is kept in %s\n", run_id, rv_buf_cstr(&path));
    else
        rv_err_hint(err, "give --save FILE to say where the run is kept");
    rv_cli_err(rv_buf_str(&text));
    rv_cli_say_pending(s, env, rc == 0 && kept_in(s) ? rv_buf_cstr(&path) : run_id);
    rv_buf_fini(&path);
    rv_buf_fini(&text);
    return rc;
}

/* Why a run did not complete, for people; --json and --events carry it themselves. */
static void explain_end(const struct rv_cli_session *s, enum rv_run_status status, const rv_envelope *env)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    rv_buf text = RV_BUF_INIT(1 << 20);

    if (status == RV_RUN_COMPLETED || status == RV_RUN_INTERRUPTED)
        return;
    rv_buf_printf(&text, "%sreeve:%s run %s", s->cli->err_color ? "\033[1;31m" : "", s->cli->err_color ? "\033[0m" : "",
                  rv_run_status_text(status));
    if (f->termination_reason) {
        rv_buf_puts(&text, ": ");
        rv_cli_write_lines(rv_str_of(f->termination_reason), &text);
    }
    if (f->terminal_reason != RV_REASON_NONE)
        rv_buf_printf(&text, "  [%s]", rv_reason_text(f->terminal_reason));
    rv_buf_putc(&text, '\n');
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}

static int open_payloads(struct watch *w, const char *path, rv_err **err)
{
    if (!path)
        return 0;
    if (strcmp(path, "-") == 0) {
        w->payloads = stderr;
        return 0;
    }
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
    if (w->payloads && w->payloads != stderr && fclose(w->payloads) != 0 && !w->payload_errno)
        w->payload_errno = errno;
    return w->payload_errno ? RV_FAIL(err, RV_E_IO, "write payloads to \"%s\": %s", path, strerror(w->payload_errno))
                            : 0;
}

static int open_watch(struct rv_cli_session *s, struct watch *w, rv_err **err)
{
    bool data = rv_cli_flag(s->args, "json") || rv_cli_flag(s->args, "state") || rv_cli_flag(s->args, "events");
    bool live = s->cli->err_tty && !rv_cli_flag(s->args, "quiet");
    bool timeline = rv_cli_flag(s->args, "timeline") || (live && !data);

    *w = (struct watch){.session = s, .events = rv_cli_flag(s->args, "events")};
    w->deltas = w->events && rv_cli_flag(s->args, "deltas");
    if (live || timeline)
        w->progress = rv_progress_new(s->cli, s->loaded->pipeline, live, timeline);
    if (rv_cli_value(s->args, "record") && !(w->recorder = rv_recorder_new()))
        return RV_FAIL(err, RV_E_NOMEM, "record the run");
    if (w->recorder)
        rv_recorder_hide(w->recorder, s->loaded->pipeline);
    return open_payloads(w, rv_cli_value(s->args, "debug-payload"), err);
}

/* What was to be written besides the answer. ran: the run was; else nothing of it is. */
static int close_watch(struct rv_cli_session *s, struct watch *w, bool ran, rv_err **err)
{
    rv_buf timeline = RV_BUF_INIT(1 << 20);
    int rc = 0;

    rv_progress_stop(w->progress);
    rv_progress_write_timeline(w->progress, &timeline);
    rv_cli_err(rv_buf_str(&timeline));
    rv_buf_fini(&timeline);
    rv_progress_free(w->progress);
    if (w->recorder && ran)
        rc = rv_recorder_write(w->recorder, rv_cli_value(s->args, "record"), err);
    rv_recorder_free(w->recorder);
    if (rc == 0)
        rc = close_payloads(w, rv_cli_value(s->args, "debug-payload"), err);
    if (w->save_err && ran && rc == 0) {
        rc = rv_err_code(w->save_err);
        *err = w->save_err;
    } else {
        rv_err_free(w->save_err);
    }
    return rc;
}

static int mode_of(const struct rv_cli_args *args)
{
    const char *mode = rv_cli_value(args, "mode");
    return !mode ? RV_UNSET : strcmp(mode, "parallel") == 0 ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
}

static int new_engine(struct rv_cli_session *s, rv_engine **engine, rv_err **err)
{
    struct rv_engine_opts opts = {.handle_signals = true, .log = s->cli->app.log, .store = s->store, .owner = s->owner};
    int64_t workers = 0;

    int rc = rv_cli_int(s->args, "workers", 1, 1024, &workers, err);
    opts.workers = (size_t)workers;
    if (rc == 0)
        rc = rv_cli_lease_us(s->args, &opts.lease_us, err);
    return rc < 0 ? rc : rv_engine_new(&opts, engine, err);
}

/* Takes env on every path. */
static int begin(struct rv_cli_session *s, rv_engine *engine, const struct rv_exec_opts *x, rv_envelope *env,
                 const struct rv_response *response, rv_exec **exec, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(s->args);

    if (s->continues && s->cancels)
        return rv_engine_continue_cancel(engine, x, &scope, exec, err);
    if (s->continues)
        return rv_engine_continue(engine, x, &scope, response, exec, err);
    return rv_engine_start(engine, x, env, response, exec, err);
}

/* What the run can call, for whoever plays it from the recording. */
static void record_tools(const struct rv_cli_session *s, struct watch *w, const struct rv_exec_opts *x)
{
    struct rv_catalog catalog = x->plugins ? rv_plugins_catalog(x->plugins) : rv_catalog_empty;

    if (x->script)
        catalog = rv_script_catalog(x->script, &catalog);
    rv_recorder_tools(w->recorder, s->loaded->pipeline, x->catalog ? x->catalog : &catalog);
}

static int drive(struct rv_cli_session *s, struct watch *w, rv_envelope *env, const struct rv_response *response,
                 rv_engine **engine, rv_exec **exec, rv_err **err)
{
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct rv_catalog catalog;

    int rc = new_engine(s, engine, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    if (s->loaded->bundle) {
        catalog = rv_bundle_catalog(s->loaded->bundle);
        x.catalog = &catalog;
    }
    x.pipeline = s->loaded->pipeline;
    x.plugins = s->loaded->plugins;
    x.script = s->loaded->script;
    x.journal = s->journal;
    x.conversation = s->conversation;
    if (s->loaded->agents) {
        x.find_agent = rv_app_find_agent;
        x.find_self = s->loaded;
    }
    x.rules = s->rules;
    x.mode = mode_of(s->args);
    x.use_mocks = rv_cli_flag(s->args, "mock");
    x.answer_from_script = x.script != NULL;
    x.self = w;
    if (w->events || w->progress || w->recorder)
        x.on_event = on_event;
    if (w->progress || w->deltas)
        x.on_delta = on_delta;
    if (w->payloads)
        x.on_payload = on_payload;
    if (w->recorder) {
        x.on_input = on_input;
        x.on_piece = on_piece;
        record_tools(s, w, &x);
    }
    if (kept_in(s)) {
        x.saves = RV_SAVES_SOME;
        x.on_state = on_state;
    }
    rc = begin(s, *engine, &x, env, response, exec, err);
    if (rc == 0 && s->continues) {
        rc = rv_store_commit(s->store, err);
        if (rc < 0)
            rv_exec_tell_end(*exec, *err);
    }
    if (rc < 0)
        return rc;
    return rv_engine_wait(*engine, *exec, err);
}

/* The answer comes first: a file that could not be written is no reason to keep it from whoever waited for it. */
static int conclude(struct rv_cli_session *s, rv_exec *exec, rv_err *watch_err)
{
    enum rv_run_status end = rv_exec_status(exec);
    const rv_envelope *result = rv_exec_envelope(exec);
    rv_err *err = NULL;
    int status = rv_cli_exit_of(end);

    int rc = print_result(s, end, result, &err);
    if (rc == 0 && end == RV_RUN_INTERRUPTED)
        rc = keep_interrupted(s, result, &err);
    explain_end(s, end, result);
    if (rc < 0)
        (void)rv_cli_report(s->cli, err);
    if (watch_err)
        (void)rv_cli_report(s->cli, watch_err);
    return rc < 0 || watch_err ? RV_EXIT_FAILED : status; /* never 2: something did run */
}

int rv_cli_session_run(struct rv_cli_session *s, rv_envelope *env, const struct rv_response *response)
{
    struct watch w = {0};
    rv_engine *engine = NULL;
    rv_exec *exec = NULL;
    rv_err *err = NULL, *watch_err = NULL;

    int rc = open_watch(s, &w, &err);
    if (rc == 0)
        rc = drive(s, &w, env, response, &engine, &exec, &err);
    else
        rv_envelope_free(env);
    RV_IGNORE(close_watch(s, &w, rc == 0, &watch_err), "watch_err says it, after the answer");
    bool began = exec != NULL; /* then it is no fault of the command line, whatever the error is */
    int status = rc < 0 ? rv_cli_report(s->cli, err) : conclude(s, exec, watch_err);
    if (rc == RV_E_STATE && began && status == RV_EXIT_USAGE)
        status = RV_EXIT_FAILED;
    rv_exec_free(exec);
    rv_app_engine_free(s->loaded, engine);
    return status;
}
