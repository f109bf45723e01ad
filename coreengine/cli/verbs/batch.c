/* reeve run --batch: a run for each line of a file. Results on stdout, failures there or in a file of their own;
 * progress on a terminal, and at the end one line that counts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "coreengine/cli/outlet_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

struct watch {
    const struct rv_cli *cli;
    FILE *failures; /* NULL: they are results like others */
    int failures_errno;
    int64_t begun_us;
    bool is_drawn, is_quiet;
};

static void erase(struct watch *w)
{
    if (w->is_drawn)
        cli_say("\r\033[K");
    w->is_drawn = false;
}

static bool on_result(void *self, rv_str line, bool is_failure)
{
    struct watch *w = self;

    if (!is_failure || !w->failures) {
        if (w->cli->out_tty)
            erase(w);
        return cli_out_now(line);
    }
    errno = 0;
    if (fwrite(line.ptr, 1, line.len, w->failures) == line.len && fflush(w->failures) == 0)
        return true;
    w->failures_errno = errno ? errno : EIO;
    return false;
}

static int64_t n_done(const struct rv_app_batch_sum *sum)
{
    return sum->completed + sum->failed + sum->waiting + sum->elsewhere;
}

/* "1,204 completed, 3 failed, 1 waiting" */
static void write_counts(const struct rv_app_batch_sum *sum, rv_buf *b)
{
    const struct {
        int64_t n;
        const char *what;
    } parts[] = {
        {sum->failed, "failed"}, {sum->waiting, "waiting for a person"}, {sum->elsewhere, "running elsewhere"}};

    rv_buf_printf(b, "%lld completed", (long long)sum->completed);
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        if (parts[i].n > 0)
            rv_buf_printf(b, ", %lld %s", (long long)parts[i].n, parts[i].what);
    if (sum->earlier > 0)
        rv_buf_printf(b, "; %lld of them earlier", (long long)sum->earlier);
}

static void on_tick(void *self, const struct rv_app_batch_sum *sum)
{
    struct watch *w = self;

    if (cli_outlet_is_behind())
        return;
    rv_buf text = RV_BUF_INIT(4096);
    int64_t took_us = rv_app_now_us() - w->begun_us, n_new = n_done(sum) - sum->earlier;

    rv_buf_puts(&text, "\r\033[K");
    if (sum->size > 0)
        rv_buf_printf(&text, "%lld %% read, ", (long long)(sum->read_bytes * 100 / sum->size));
    write_counts(sum, &text);
    rv_buf_printf(&text, ", %lld running", (long long)sum->running);
    if (took_us > 0)
        rv_buf_printf(&text, ", %lld a second", (long long)(n_new * 1000000 / took_us));
    cli_say_text(&text);
    w->is_drawn = true;
}

static int exit_of(const struct rv_app_batch_sum *sum)
{
    return sum->failed > 0 || sum->elsewhere > 0 || sum->is_cut ? RV_EXIT_FAILED
           : sum->waiting > 0                                   ? RV_EXIT_INTERRUPTED
                                                                : RV_EXIT_COMPLETED;
}

static void say_end(struct watch *w, const struct rv_app_batch_sum *sum)
{
    rv_buf text = RV_BUF_INIT(4096);

    erase(w);
    bool is_silent = !w->cli->err_tty && n_done(sum) > 0 && exit_of(sum) == RV_EXIT_COMPLETED; /* in a pipe */
    if (w->is_quiet || is_silent) {
        rv_buf_fini(&text);
        return;
    }
    rv_buf_printf(&text, "%lld line%s: ", (long long)n_done(sum), n_done(sum) == 1 ? "" : "s");
    write_counts(sum, &text);
    rv_buf_puts(&text, sum->is_cut ? "; stopped: the same command goes on\n" : "\n");
    cli_say_text(&text);
}

static int open_failures(struct watch *w, const char *path, rv_err **err)
{
    int fd = -1, rc = path ? rv_file_create(path, &fd, err) : 0;

    if (rc < 0)
        return RV_WRAP(err, rc, "write failures");
    if (path && !(w->failures = fdopen(fd, "w"))) {
        close(fd);
        return RV_FAIL(err, RV_E_NOMEM, "write failures to \"%s\"", path);
    }
    return 0;
}

static int close_failures(struct watch *w, const char *path, rv_err **err)
{
    if (w->failures && fclose(w->failures) != 0 && !w->failures_errno)
        w->failures_errno = errno;
    return w->failures_errno ? RV_FAIL_SYSTEM(err, w->failures_errno, "write failures to \"%s\"", path) : 0;
}

/* Reported here: the counts follow it, and once something did run the exit status is never 2. */
static int conclude(struct watch *w, const struct rv_app_batch_sum *sum, int rc, const char *failures, rv_err **err)
{
    rv_err *late = NULL;
    int status = exit_of(sum);

    if (close_failures(w, failures, &late) < 0)
        status = cli_report(w->cli, late), status = RV_EXIT_FAILED;
    if (rc < 0 && n_done(sum) == 0 && rc != RV_E_CANCELLED)
        return rc;
    say_end(w, sum);
    if (rc < 0) {
        int of_error = cli_report(w->cli, rv_err_steal(err));
        status = of_error == RV_EXIT_USAGE ? RV_EXIT_FAILED : of_error;
    }
    return status;
}

int cli_batch(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err)
{
    const char *failures = cli_value(cli, "failures");
    struct watch w = {.cli = cli, .is_quiet = cli_flag(cli, "quiet"), .begun_us = rv_app_now_us()};
    struct rv_app_batch_sum sum = {.is_cut = true};
    struct rv_app_run how;
    json_object *state = NULL;
    int64_t concurrency = RV_BATCH_CONCURRENCY;
    int rc = cli_int(cli, "concurrency", 1, RV_BATCH_MAX_CONCURRENCY, &concurrency, err);

    if (rc == 0)
        rc = cli_run_opts(cli, loaded, &how, err);
    if (rc == 0)
        rc = cli_state(cli, &state, err);
    if (rc == 0)
        rc = open_failures(&w, failures, err);
    if (rc < 0) {
        json_object_put(state);
        return rc;
    }
    const struct rv_app_batch batch = {.app = &cli->app,
                                       .loaded = loaded,
                                       .file = cli_value(cli, "batch"),
                                       .name = cli_value(cli, "batch-name"),
                                       .state = state,
                                       .mode = how.mode,
                                       .use_mocks = how.use_mocks,
                                       .workers = how.workers,
                                       .concurrency = (size_t)concurrency,
                                       .in_any_order = cli_flag(cli, "unordered"),
                                       .whole_results = cli_flag(cli, "json"),
                                       .handle_signals = true,
                                       .on_result = on_result,
                                       .on_tick = cli->err_tty && !w.is_quiet ? on_tick : NULL,
                                       .self = &w};
    cli_outlet_open(cli->app.log);
    rc = rv_app_batch_run(&batch, &sum, err);
    json_object_put(state);
    return conclude(&w, &sum, rc, failures, err);
}
