/* An MCP server as a child process: one message a line on its standard input and output, its error output for the log.
 *
 * The child leads a process group of its own, gets an environment of a few variables and what the pipeline says, and
 * is always reaped. A server that ends, closes its output or writes a line above the limit is dead, and all of its
 * requests with it. It ends in steps: its input is closed; after two seconds its group gets SIGTERM; after two more
 * SIGKILL. What is left of its group then goes, too. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/mcp.h"
#include "coreengine/tools/mcp/mcptools_internal.h"

#define GRACE_MS       2000                     /* to end by itself, and again to end after SIGTERM */
#define DRAIN_MS       200                      /* for what a child that ended has written before */
#define MAX_QUEUED     (2 * RV_MCP_MAX_MESSAGE) /* bytes that wait until the server reads */
#define MAX_ENV        512                      /* variables that a pipeline may set */
#define MAX_NOISE      200                      /* lines of a connection that are logged */
#define MAX_NOISE_LEN  400                      /* bytes of such a line */
#define READ_BYTES     ((size_t)64 << 10)       /* of one read(): the room of a pipe */
#define MAX_BEFORE_MIB 1 /* that come before the first message: what programs print when they start */

enum phase { RUNNING, ASKED_TO_END, SENT_TERM, SENT_KILL };

struct stdio_link {
    uv_process_t process;
    uv_pipe_t in, out, error;
    uv_timer_t timer;
    char *server;                 /* owned */
    struct rv_mcp_link_user user; /* zeroed: it is closed */
    struct rv_mcp_lines lines;
    char *chunk; /* of READ_BYTES, for both outputs; owned */
    char last[MAX_NOISE_LEN + 1],
        part[MAX_NOISE_LEN + 1]; /* line of its error output: the last whole one, and a part */
    size_t part_len;
    int n_noise;
    size_t n_queued; /* bytes */
    size_t n_before; /* bytes before the first message, or up to its end */
    bool has_message;
    enum phase phase;
    bool has_exited, is_dead, is_closing;
    int64_t status;
    int term_signal;
    int n_handles; /* that are not closed */
    void (*closed)(void *arg);
    void *closed_arg;
};
struct write {
    uv_write_t request;
    struct stdio_link *link;
    size_t len;
    char bytes[];
};

/* --- its error output, and lines that are not messages --- */

static void tell_noise(struct stdio_link *l, bool is_error_output, rv_str line)
{
    if (l->n_noise >= MAX_NOISE || !l->user.noise)
        return;
    l->n_noise++;
    l->user.noise(l->user.self, is_error_output,
                  l->n_noise == MAX_NOISE ? RV_STR_LIT("(further lines are left out)") : line);
}

static void end_error_line(struct stdio_link *l)
{
    rv_str line = rv_str_trim((rv_str){l->part, l->part_len});

    line = rv_utf8_cut(line, MAX_NOISE_LEN);
    if (line.len > 0 && rv_utf8_valid(line, NULL)) {
        memcpy(l->last, line.ptr, line.len);
        l->last[line.len] = '\0';
        for (char *c = l->last; *c; c++)
            if ((unsigned char)*c < 32)
                *c = ' ';
    }
    if (line.len > 0)
        tell_noise(l, true, line);
    l->part_len = 0;
}

static void read_errors(struct stdio_link *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n')
            end_error_line(l);
        else if (l->part_len < MAX_NOISE_LEN)
            l->part[l->part_len++] = bytes[i];
    }
}

/* --- the end --- */

static void on_handle_closed(uv_handle_t *h)
{
    struct stdio_link *l = h->data;

    if (--l->n_handles > 0)
        return;
    if (l->closed)
        l->closed(l->closed_arg);
    rv_mcp_lines_fini(&l->lines);
    free(l->chunk);
    free(l->server);
    free(l);
}

static void close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_handle_closed);
}

static void close_all(struct stdio_link *l)
{
    close_handle(&l->process);
    close_handle(&l->in);
    close_handle(&l->out);
    close_handle(&l->error);
    close_handle(&l->timer);
}

static void signal_group(const struct stdio_link *l, int number)
{
    if (l->process.pid > 1)
        RV_IGNORE(kill(-l->process.pid, number) < 0, "the group may have ended meanwhile");
}

static void tell_dead(struct stdio_link *l, enum rv_mcp_fault fault, const char *text)
{
    const struct rv_mcp_failure f = {.fault = fault, .text = text, .retryable = true};

    if (l->is_dead)
        return;
    l->is_dead = true;
    uv_read_stop((uv_stream_t *)&l->out);
    if (l->user.failed)
        l->user.failed(l->user.self, 0, &f);
}

/* Last words of its error output often say why. */
static void tell_exited(struct stdio_link *l)
{
    char text[MAX_NOISE_LEN + 200];

    end_error_line(l); /* no more of a line that is begun is waited for */
    if (l->term_signal)
        snprintf(text, sizeof text, "its process was ended by signal %d", l->term_signal);
    else if (l->has_exited)
        snprintf(text, sizeof text, "its process ended with status %d", (int)l->status);
    else
        snprintf(text, sizeof text, "it closed its output");
    size_t len = strlen(text);
    if (l->last[0])
        snprintf(text + len, sizeof text - len, "; its last words: %s", l->last);
    tell_dead(l, RV_MCP_FAULT_SERVER_EXITED, text);
}

static void on_timer(uv_timer_t *t)
{
    struct stdio_link *l = t->data;

    if (!l->is_closing) { /* the outputs of a child that ended are held open by others */
        tell_exited(l);
        return;
    }
    if (l->phase == ASKED_TO_END) {
        l->phase = SENT_TERM;
        signal_group(l, SIGTERM);
        uv_timer_start(t, on_timer, GRACE_MS, 0);
    } else if (l->phase == SENT_TERM) {
        l->phase = SENT_KILL;
        signal_group(l, SIGKILL);
    }
}

static void on_exit_of(uv_process_t *p, int64_t status, int term_signal)
{
    struct stdio_link *l = p->data;

    l->has_exited = true;
    l->status = status;
    l->term_signal = term_signal;
    signal_group(l, SIGKILL); /* children that it left */
    if (l->is_closing)
        close_all(l);
    else if (!uv_is_active((uv_handle_t *)&l->out))
        tell_exited(l);
    else
        uv_timer_start(&l->timer, on_timer, DRAIN_MS, 0);
}

/* --- what it sends --- */

static int on_line(void *self, rv_str line, bool is_whole, rv_err **err)
{
    struct stdio_link *l = self;

    (void)err;
    if (l->is_dead || !l->user.message)
        return 0;
    rv_str text = rv_str_trim(line);
    if (!is_whole)
        return 0; /* on_read() sees that the reader skips */
    l->has_message = l->has_message || (text.ptr[0] == '{' && memmem(text.ptr, text.len, "\"jsonrpc\"", 9));
    if (text.ptr[0] == '{' || text.ptr[0] == '[')
        l->user.message(l->user.self, text);
    else
        tell_noise(l, false, rv_utf8_cut(text, MAX_NOISE_LEN));
    return 0;
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct stdio_link *l = h->data;

    (void)suggested;
    *buf = uv_buf_init(l->chunk, (unsigned)READ_BYTES);
}

/* A program that prints without end is not waited for as long as one that starts slowly. */
static bool is_noise_only(struct stdio_link *l, size_t n)
{
    if (l->has_message)
        return false;
    l->n_before += n;
    return l->n_before > (size_t)MAX_BEFORE_MIB << 20;
}

/* A line of 16 MiB without an end cannot become a message. */
static bool is_over_limit(const struct stdio_link *l)
{
    return !l->lines.is_whole;
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct stdio_link *l = s->data;
    rv_err *err = NULL;

    if (n == 0)
        return;
    if (n < 0) {
        uv_read_stop(s);
        if (!l->is_closing && l->has_exited)
            tell_exited(l);
        else if (!l->is_closing) /* its status is worth a moment */
            uv_timer_start(&l->timer, on_timer, DRAIN_MS, 0);
        return;
    }
    int rc = rv_mcp_lines_read(&l->lines, (rv_str){buf->base, (size_t)n}, &err);
    rv_err_free(err);
    if (rc < 0)
        tell_dead(l, RV_MCP_FAULT_LOCAL, "no memory for a message of an MCP server");
    else if (is_over_limit(l))
        tell_dead(l, RV_MCP_FAULT_TOO_LARGE,
                  "the server sent a message of more than " RV_LIMIT_TEXT(RV_MCP_MAX_MESSAGE_MIB) " MiB");
    else if (is_noise_only(l, (size_t)n))
        tell_dead(l, RV_MCP_FAULT_BAD_MESSAGE,
                  "the server printed more than " RV_LIMIT_TEXT(MAX_BEFORE_MIB) " MiB before its first message");
}

static void on_error_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct stdio_link *l = s->data;

    if (n < 0) {
        uv_read_stop(s);
        end_error_line(l);
    } else {
        read_errors(l, buf->base, (size_t)n);
    }
}

/* --- what it is sent --- */

static void on_written(uv_write_t *request, int status)
{
    struct write *w = (struct write *)((char *)request - offsetof(struct write, request));
    struct stdio_link *l = w->link;

    l->n_queued -= w->len;
    free(w);
    if (status < 0 && status != UV_ECANCELED && !l->is_closing && !l->has_exited)
        uv_timer_start(&l->timer, on_timer, DRAIN_MS, 0); /* it closed its input: its end is near, or already there */
}

static int link_send(void *self, const struct rv_mcp_send *m, rv_err **err)
{
    struct stdio_link *l = self;
    size_t len = m->body.len + 1;

    if (l->is_dead || l->is_closing)
        return RV_FAIL(err, RV_E_STATE, "MCP server \"%s\" has ended", l->server);
    if (len > MAX_QUEUED - l->n_queued)
        return RV_FAIL(err, RV_E_LIMIT, "MCP server \"%s\" does not read what it is sent", l->server);
    struct write *w = malloc(sizeof *w + len);
    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a message to MCP server \"%s\"", l->server);
    w->link = l;
    w->len = len;
    memcpy(w->bytes, m->body.ptr, m->body.len);
    w->bytes[m->body.len] = '\n';
    uv_buf_t buf = uv_buf_init(w->bytes, (unsigned)len);
    int uv_rc = uv_write(&w->request, (uv_stream_t *)&l->in, &buf, 1, on_written);
    if (uv_rc < 0) {
        free(w);
        return RV_FAIL(err, RV_E_STATE, "send to MCP server \"%s\": %s", l->server, uv_strerror(uv_rc));
    }
    l->n_queued += len;
    return 0;
}

static void link_cancel(void *self, int64_t id)
{
    (void)self; /* the session has told the server; an answer that still comes is of a request that is over */
    (void)id;
}

static void on_flushed(uv_shutdown_t *request, int status)
{
    struct stdio_link *l = request->data;

    (void)status;
    free(request);
    close_handle(&l->in);
}

static void link_close(void *self, void (*closed)(void *arg), void *arg)
{
    struct stdio_link *l = self;

    l->user = (struct rv_mcp_link_user){0};
    l->closed = closed;
    l->closed_arg = arg;
    l->is_closing = true;
    if (l->has_exited) {
        close_all(l);
        return;
    }
    uv_shutdown_t *request = malloc(sizeof *request);
    if (request) {
        request->data = l;
        if (uv_shutdown(request, (uv_stream_t *)&l->in, on_flushed) < 0) {
            free(request);
            request = NULL;
        }
    }
    if (!request)
        close_handle(&l->in);
    bool is_hostile = l->is_dead; /* it may write without end: it gets no grace */
    l->phase = is_hostile ? SENT_TERM : ASKED_TO_END;
    if (is_hostile)
        signal_group(l, SIGTERM);
    uv_timer_start(&l->timer, on_timer, GRACE_MS, 0);
}

static const struct rv_mcp_link_ops ops = {"stdio", link_send, link_cancel, link_close};

/* --- starting it --- */

static int add_env(char **env, size_t *n, const char *name, const char *value, rv_err **err)
{
    size_t len = strlen(name) + strlen(value) + 2;

    env[*n] = malloc(len);
    if (!env[*n])
        return RV_FAIL(err, RV_E_NOMEM, "no memory to start an MCP server");
    snprintf(env[(*n)++], len, "%s=%s", name, value);
    return 0;
}

/* What a program needs to run at all, and no secrets of ours. */
static int make_env(const struct rv_mcp_server_config *s, char **env, rv_err **err)
{
    static const char *const names[] = {"PATH",  "HOME", "LANG",   "LC_ALL", "LC_CTYPE", "LOGNAME",
                                        "SHELL", "TERM", "TMPDIR", "TZ",     "USER",     "NODE_PATH"};
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(names) && rc == 0; i++) {
        const char *value = getenv(names[i]);
        if (value && !(s->env && json_object_object_get_ex(s->env, names[i], NULL)))
            rc = add_env(env, &n, names[i], value, err);
    }
    if (rc < 0 || !s->env)
        return rc;
    if (json_object_object_length(s->env) > MAX_ENV)
        return RV_FAIL(err, RV_E_LIMIT, "MCP server \"%s\": more than %d variables", s->name, MAX_ENV);
    for (struct json_object_iterator at = json_object_iter_begin(s->env), end = json_object_iter_end(s->env);
         rc == 0 && !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
        rc = add_env(env, &n, json_object_iter_peek_name(&at), json_object_get_string(json_object_iter_peek_value(&at)),
                     err);
    return rc;
}

/* argv: zeroed, with room for the command and its end. */
static int spawn(struct stdio_link *l, const struct rv_mcp_stdio *how, char **argv, char **env, rv_err **err)
{
    const struct rv_mcp_server_config *s = how->server;
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&l->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&l->out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&l->error},
    };

    for (size_t i = 0; i < s->command.n; i++)
        argv[i] = (char *)(uintptr_t)s->command.items[i];
    const uv_process_options_t options = {.exit_cb = on_exit_of,
                                          .file = argv[0],
                                          .args = argv,
                                          .env = env,
                                          .cwd = s->cwd && s->cwd[0] ? s->cwd : NULL,
                                          .flags = UV_PROCESS_DETACHED, /* a session, so a group, of its own */
                                          .stdio_count = 3,
                                          .stdio = stdio};
    int uv_rc = uv_spawn(how->loop, &l->process, &options);
    if (uv_rc == 0)
        return 0;
    return RV_FAIL_START(err, uv_rc, "%s cannot be started", s->command.items[0]);
}

static int open_handles(struct stdio_link *l, uv_loop_t *loop)
{
    int rc = uv_timer_init(loop, &l->timer);

    l->n_handles = 5;
    l->process.data = l->in.data = l->out.data = l->error.data = l->timer.data = l;
    rc = rc ? rc : uv_pipe_init(loop, &l->in, 0);
    rc = rc ? rc : uv_pipe_init(loop, &l->out, 0);
    return rc ? rc : uv_pipe_init(loop, &l->error, 0);
}

int mcptools_mcp_stdio_open(const struct rv_mcp_stdio *how, struct rv_mcp_link *out, rv_err **err)
{
    struct stdio_link *l = calloc(1, sizeof *l);
    char **env = calloc(MAX_ENV + 32, sizeof *env), **argv = calloc(how->server->command.n + 1, sizeof *argv);

    if (l) {
        l->chunk = malloc(READ_BYTES);
        l->server = rv_str_dup(rv_str_of(how->server->name));
        rv_mcp_lines_init(&l->lines, RV_MCP_MAX_LINE, on_line, l);
    }
    int rc =
        l && env && argv && l->chunk && l->server ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory to start an MCP server");
    if (rc == 0)
        rc = make_env(how->server, env, err);
    if (rc == 0 && open_handles(l, how->loop) < 0) /* they only fail where an argument is wrong */
        rc = RV_FAIL(err, RV_E_INTERNAL, "start MCP server \"%s\"", how->server->name);
    bool is_started = rc == 0; /* from here all handles are initialised, that of the process, too, by uv_spawn() */
    if (is_started)
        rc = spawn(l, how, argv, env, err);
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
    free(argv);
    if (rc == 0) {
        l->user = how->user;
        RV_IGNORE(uv_read_start((uv_stream_t *)&l->out, on_alloc, on_read), "the pipe is open");
        RV_IGNORE(uv_read_start((uv_stream_t *)&l->error, on_alloc, on_error_read), "the pipe is open");
        *out = (struct rv_mcp_link){&ops, l};
        return 0;
    }
    if (is_started) { /* its handles go when the loop runs */
        close_all(l);
    } else if (l) {
        free(l->chunk);
        free(l->server);
        rv_mcp_lines_fini(&l->lines);
        free(l);
    }
    return rc;
}
