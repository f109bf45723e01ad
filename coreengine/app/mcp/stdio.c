/* One client at standard input and output. This thread reads, answers and looks at runs; another one is the worker that
 * does them; others do what calls wait for before they begin. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/base/base.h"
#include "coreengine/mcp/mcp.h"

#define READ_BYTES ((size_t)64 << 10) /* of one read(): the room of a pipe */

struct stdio {
    const struct rv_app_mcp_serve *opts;
    struct rv_app app;
    struct rv_app_sources sources;
    struct rv_app_mcp_at at;
    rv_app_mcp *client;
    rv_app_mcp_aside *aside;
    rv_app_mcp_job *job; /* of the message that is read */
    int in;              /* opts->in, or the same terminal opened once more */
    int signals;         /* signalfd */
    int fallen;          /* eventfd: the worker has failed, and does not come back */
    bool has_ended;      /* the input */
    bool is_closed;      /* the client writes no more; what it wrote may not all have been read */
    bool is_gone;        /* no one reads the output */
    bool is_stopping;    /* SIGTERM or SIGINT came */
    bool has_fallen;     /* the worker: calls would never end */
    rv_err *input_err;   /* owned: why the input ended, if it broke off */
    int64_t ends_us;     /* when calls under way are cancelled; 0: not yet known */
    /* the worker */
    struct rv_worker_opts worker_opts;
    struct rv_worker_stop *stop; /* owned */
    struct rv_worker_done done;
    rv_err *worker_err; /* owned; its thread has it until that ends */
    bool worker_waits;  /* and that was told; of its thread */
    pthread_t thread;
    bool has_worker;
};

/* --- signals --- */

static void on_signal(struct stdio *s)
{
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (s->is_stopping)
        _exit(RV_EXIT_AT_ONCE); /* asked twice: what goes on is left as after a crash */
    s->is_stopping = true;
}

/* --- output --- */

static int64_t grace_ends_us(const struct stdio *s)
{
    return rv_app_now_us() + rv_worker_grace_us(s->opts->grace_us);
}

/* A time as poll() takes it: at most a second, so that any grace fits. */
static int until_ms(int64_t at_us)
{
    int64_t rest_us = at_us - rv_app_now_us();

    return rest_us <= 0 ? 0 : rest_us < 1000000 ? (int)(rest_us / RV_US_PER_MS) + 1 : 1000;
}

/* Is there room for PIPE_BUF bytes? It is waited for as long as the client can write, and then for the grace: what it
 * wrote before may still be answered. After a signal it is not waited for. */
static bool has_room(struct stdio *s)
{
    int64_t ends_us = 0;

    for (;;) {
        bool is_closed = s->has_ended || s->is_closed;
        if (is_closed && ends_us == 0)
            ends_us = grace_ends_us(s);
        int wait_ms = s->is_stopping ? 0 : is_closed ? until_ms(ends_us) : -1;
        struct pollfd fds[] = {{.fd = s->opts->out, .events = POLLOUT},
                               {.fd = s->signals, .events = POLLIN},
                               {.fd = is_closed ? -1 : s->in, .events = POLLRDHUP}};
        if (poll(fds, RV_COUNT(fds), wait_ms) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents)
            on_signal(s);
        if (fds[0].revents)
            return true; /* of an error, the write tells */
        s->is_closed = s->is_closed || fds[2].revents;
        if (wait_ms == 0)
            return false;
    }
}

/* Whole lines, one after the other: this is the only thread that writes. A write of more than PIPE_BUF bytes could
 * wait where no signal is seen: they are blocked, and the output need not be O_NONBLOCK. */
static void write_all(struct stdio *s, const char *p, size_t n)
{
    while (n > 0 && !s->is_gone) {
        bool is_read = has_room(s);
        ssize_t k = is_read ? write(s->opts->out, p, n < PIPE_BUF ? n : PIPE_BUF) : -1;
        if (k < 0 && is_read && !s->is_stopping && (errno == EINTR || errno == EAGAIN))
            continue;
        if (k < 0) {
            if (!is_read && !s->is_stopping)
                RV_LOG(s->app.log, WARN, "mcp.unread");
            s->is_gone = true;
            return;
        }
        p += k;
        n -= (size_t)k;
    }
}

static int send_all(struct stdio *s, struct rv_mcp_orders *out, int rc, rv_err **err)
{
    for (size_t i = 0; i < out->n && rc == 0; i++) {
        rv_buf *bytes = &out->items[i].bytes;
        rv_buf_putc(bytes, '\n');
        rc = rv_buf_check(bytes, "a message to the client", err);
        if (rc == 0)
            write_all(s, bytes->ptr, bytes->len);
    }
    rv_mcp_orders_fini(out);
    return rc;
}

/* --- input --- */

static int on_line(void *self, rv_str line, bool is_whole, rv_err **err)
{
    struct stdio *s = self;
    struct rv_mcp_orders out = {NULL, 0, 0};

    if (s->is_gone || s->is_stopping) /* what came with the lines before is not begun */
        return 0;
    int rc = is_whole ? rv_app_mcp_read(s->client, &s->at, line, &out, err)
                      : rv_mcp_server_refuse(
                            NULL,
                            &(const struct rv_mcp_server_error){
                                .code = RV_MCP_INVALID_REQUEST,
                                .text = "a message is longer than " RV_LIMIT_TEXT(RV_MCP_MAX_MESSAGE_MIB) " MiB"},
                            &out, err);

    if (s->job)
        rv_app_mcp_aside_add(s->aside, s->job, &s->app, NULL);
    s->job = NULL;
    return send_all(s, &out, rc, err);
}

static int read_some(struct stdio *s, struct rv_mcp_lines *lines, rv_err **err)
{
    char bytes[READ_BYTES];
    ssize_t n = read(s->in, bytes, sizeof bytes);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n > 0)
        return rv_mcp_lines_read(lines, (rv_str){bytes, (size_t)n}, err);
    if (n < 0 && errno != ECONNRESET) /* that is a client which went away */
        RV_IGNORE(RV_FAIL_SYSTEM(&s->input_err, errno, "read what the client says") < 0, "told when calls have ended");
    s->has_ended = true;
    s->ends_us = grace_ends_us(s);
    return rv_mcp_lines_end(lines, err);
}

/* --- the end --- */

static bool is_busy(struct stdio *s)
{
    return rv_app_mcp_is_busy(s->client) || rv_app_mcp_aside_is_busy(s->aside);
}

static bool is_over(struct stdio *s)
{
    bool gives_up = s->is_stopping || s->is_gone || s->has_fallen || (s->has_ended && rv_app_now_us() >= s->ends_us);

    if (gives_up)
        rv_app_mcp_cancel(s->client, &s->at, 0);
    return gives_up || (s->has_ended && !is_busy(s));
}

/* What was done on other threads, and how runs are doing. */
static int look(struct stdio *s, rv_err **err)
{
    struct rv_mcp_orders out = {NULL, 0, 0};
    rv_app_mcp_job *job;
    void *owner;
    int rc = 0;

    while (rc == 0 && (job = rv_app_mcp_aside_steal(s->aside, &owner)) != NULL)
        rc = rv_app_mcp_finish(s->client, &s->at, job, &out, err);
    if (rc == 0)
        rc = rv_app_mcp_look(s->client, &s->at, &out, err);
    return send_all(s, &out, rc, err);
}

static int serve(struct stdio *s, struct rv_mcp_lines *lines, rv_err **err)
{
    int rc = 0;

    while (rc == 0 && !is_over(s)) {
        struct pollfd fds[] = {{.fd = s->signals, .events = POLLIN},
                               {.fd = s->has_ended ? -1 : s->in, .events = POLLIN},
                               {.fd = s->opts->out, .events = 0}, /* tells when its reader is gone */
                               {.fd = rv_app_mcp_aside_fd(s->aside), .events = POLLIN},
                               {.fd = s->fallen, .events = POLLIN}};
        bool has_runs = rv_app_mcp_is_busy(s->client);
        if (poll(fds, RV_COUNT(fds), has_runs || s->has_ended ? RV_APP_MCP_LOOK_MS : -1) < 0 && errno != EINTR)
            return RV_FAIL_SYSTEM(err, errno, "wait for the client");
        if (fds[0].revents)
            on_signal(s);
        if (fds[1].revents)
            rc = read_some(s, lines, err);
        if (fds[2].revents & (POLLERR | POLLNVAL))
            s->is_gone = true;
        s->has_fallen = fds[4].revents != 0;
        if (rc == 0 && (has_runs || fds[3].revents))
            rc = look(s, err);
    }
    return rc;
}

/* --- the worker --- */

static void on_works(void *self)
{
    struct stdio *s = self;

    s->worker_waits = false;
}

static void on_waits(void *self, const rv_err *why)
{
    struct stdio *s = self;

    if (!s->worker_waits)
        RV_LOG(s->app.log, ERROR, "worker.waits", RV_F_ERR("error", why));
    s->worker_waits = true;
}

static void *work(void *self)
{
    struct stdio *s = self;

    if (rv_worker_keep(&s->worker_opts, &s->done, &s->worker_err) < 0)
        RV_IGNORE(eventfd_write(s->fallen, 1), "it has room: this is the only write");
    return NULL;
}

static int start_worker(struct stdio *s, rv_err **err)
{
    if (s->opts->no_worker)
        return 0;
    s->fallen = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->fallen < 0)
        return RV_FAIL_SYSTEM(err, errno, "start a worker");
    s->worker_opts = (struct rv_worker_opts){.stop = s->stop,
                                             .app = &s->app,
                                             .concurrency = s->opts->concurrency,
                                             .grace_us = s->opts->grace_us,
                                             .on_works = on_works,
                                             .on_waits = on_waits,
                                             .self_event = s};
    int rc = rv_thread_start(work, s, &s->thread, err);
    s->has_worker = rc == 0;
    return rc;
}

/* --- the whole --- */

/* Signals come as bytes; a client that went away is an error of the write, and not a signal. */
static int take_signals(struct stdio *s, sigset_t *old, rv_err **err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (s->signals < 0)
        return RV_FAIL_SYSTEM(err, errno, "wait for signals");
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, old);
    return 0;
}

static int open_all(struct stdio *s, rv_err **err)
{
    int rc = rv_app_check_folder(s->opts->offer.pipelines, err);

    if (rc == 0)
        rc = rv_app_check_folder(s->opts->offer.scripts, err);
    if (rc == 0)
        rc = rv_app_sources_open(&s->app, RV_APP_STORE_MAKE, &s->sources, err);
    s->at = (struct rv_app_mcp_at){
        .app = &s->app, .sources = &s->sources, .worker = s->opts->no_worker ? NULL : s->stop, .job = &s->job};
    if (rc == 0)
        rc = rv_app_mcp_check(&s->opts->offer, &s->at, err);
    if (rc == 0)
        rc = rv_app_mcp_aside_new(s->at.worker, &s->aside, err);
    if (rc == 0)
        rc = rv_app_mcp_new(&s->opts->offer, false, &s->client, err);
    return rc == 0 ? start_worker(s, err) : rc;
}

/* Jobs end; a run that one of them began is not waited for. */
static void end_jobs(struct stdio *s)
{
    struct rv_mcp_orders out = {NULL, 0, 0};
    rv_app_mcp_job *job;
    void *owner;

    rv_app_mcp_aside_stop(s->aside);
    while ((job = rv_app_mcp_aside_steal(s->aside, &owner)) != NULL)
        RV_IGNORE(rv_app_mcp_finish(s->client, &s->at, job, &out, NULL) < 0, "no client is left");
    rv_mcp_orders_fini(&out);
    rv_app_mcp_aside_free(s->aside);
}

int rv_app_mcp_serve(const struct rv_app_mcp_serve *opts, int64_t *n_left, rv_err **err)
{
    struct stdio *s = calloc(1, sizeof *s);
    struct rv_worker_stop *stop = rv_worker_stop_new();
    struct rv_mcp_lines lines;
    sigset_t old;

    *n_left = 0;
    if (!s || !stop) {
        free(s);
        rv_worker_stop_free(stop);
        return RV_FAIL(err, RV_E_NOMEM, "serve a client");
    }
    s->opts = opts;
    s->stop = stop;
    s->in = rv_terminal_open_reader(opts->in);
    s->fallen = -1;
    s->app = *opts->app;
    s->app.keeps_log_level = true;
    rv_mcp_lines_init(&lines, RV_MCP_MAX_LINE, on_line, s);
    int rc = take_signals(s, &old, err);
    if (rc == 0) {
        rc = open_all(s, err);
        if (rc == 0)
            rc = serve(s, &lines, err);
        if (s->aside)
            end_jobs(s);
        rv_worker_stop(s->stop);
        if (s->has_worker)
            pthread_join(s->thread, NULL);
        rv_err **ends = s->worker_err ? &s->worker_err : &s->input_err;
        if (rc == 0) {
            rc = rv_err_pass(err, *ends);
            *ends = NULL;
        }
        *n_left = s->done.n_left;
        close(s->signals);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    rv_mcp_lines_fini(&lines);
    rv_app_mcp_free(s->client);
    rv_app_sources_fini(&s->sources);
    rv_err_free(s->worker_err);
    rv_err_free(s->input_err);
    rv_worker_stop_free(s->stop);
    if (s->in != opts->in)
        close(s->in);
    if (s->fallen >= 0)
        close(s->fallen);
    free(s);
    return rc;
}
