#include "tests/unit/mcp_web/scene.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "coreengine/mcp/mcp.h"

static void check_request(const struct scene *s, const struct turn *t)
{
    const char *got = rv_buf_cstr(&s->server.last);

    for (size_t i = 0; i < RV_COUNT(t->want) && t->want[i]; i++) {
        bool must = t->want[i][0] != '!';
        bool is = strstr(got, t->want[i] + !must) != NULL;
        ck_assert_msg(is == must, "request %zu: %s in\n%s", s->at + 1, t->want[i], got);
    }
}

static rv_str choose(struct server *server)
{
    struct scene *s = server->self;

    ck_assert_msg(s->at < s->n_turns, "one request more:\n%s", rv_buf_cstr(&server->last));
    const struct turn *t = &s->turns[s->at];
    check_request(s, t);
    server->after = t->answer ? CLOSE : KEEP;
    char *answer = s->answers[s->at++ % RV_COUNT(s->answers)];
    const char *port = t->answer ? strstr(t->answer, "PORT") : NULL;
    if (port)
        snprintf(answer, sizeof s->answers[0], "%.*s%d%s", (int)(port - t->answer), t->answer, server->port, port + 4);
    else
        snprintf(answer, sizeof s->answers[0], "%s", t->answer ? t->answer : "");
    uv_stop(&s->loop);
    return rv_str_of(answer);
}

static void on_message(void *self, rv_str json)
{
    struct scene *s = self;
    struct rv_mcp_message m;

    s->n_messages++;
    int rc = rv_mcp_read(json, &m, NULL, NULL);
    rv_buf_printf(&s->log, "message %s\n", rc < 0 ? "?" : m.method ? m.method : json_object_get_string(m.id));
    rv_mcp_message_fini(&m);
    uv_stop(&s->loop);
    if (s->cancels_in_message)
        rv_mcp_link_cancel(&s->link, 7);
}

static void on_failed(void *self, int64_t id, const struct rv_mcp_failure *f)
{
    struct scene *s = self;

    s->n_failed++;
    rv_buf_printf(&s->log, "failed %d %s %d%s%s %s\n", (int)id, rv_mcp_fault_code(f->fault), f->status,
                  f->is_unsent ? " unsent" : "", f->retryable ? " retryable" : "", f->text);
    uv_stop(&s->loop);
}

static void open_scene(struct scene *s, const struct turn *turns, size_t n, const struct rv_mcp_web_auth *auth,
                       bool awaits_stream)
{
    static const char *const headers[] = {"X-Key: k1"};
    rv_err *err = NULL;

    signal(SIGPIPE, SIG_IGN);
    *s = (struct scene){.turns = turns, .n_turns = n};
    rv_buf_init(&s->log, 100000);
    ck_assert_int_eq(uv_loop_init(&s->loop), 0);
    server_start(&s->server, &s->loop);
    s->server.self = s;
    s->server.choose = choose;
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/mcp", s->server.port);
    const struct rv_mcp_web_opts opts = {.loop = &s->loop,
                                         .url = s->url,
                                         .headers = headers,
                                         .n_headers = 1,
                                         .auth = auth,
                                         .awaits_stream = awaits_stream,
                                         .user = {.message = on_message, .failed = on_failed, .self = s}};
    ck_assert_int_eq(rv_mcp_web_open(&opts, &s->link, &err), 0);
}

void scene_open(struct scene *s, const struct turn *turns, size_t n, const struct rv_mcp_web_auth *auth)
{
    open_scene(s, turns, n, auth, false);
}

static int skipped_s;

/* In place of the C library's, for libuv, too, which finds what is visible: limits are tried without waiting for them.
 */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0)
        t->tv_sec += skipped_s;
    return rc;
}

void time_passes(int seconds)
{
    skipped_s += seconds;
}

void scene_open_asking(struct scene *s, const struct turn *turns, size_t n)
{
    open_scene(s, turns, n, NULL, true);
}

void scene_send(struct scene *s, const struct rv_mcp_send *m)
{
    rv_err *err = NULL;

    ck_assert_msg(rv_mcp_link_send(&s->link, m, &err) == 0, "%s", rv_err_text(err));
}

void scene_run(struct scene *s, size_t messages, size_t failures)
{
    while (s->n_messages < messages || s->n_failed < failures)
        uv_run(&s->loop, UV_RUN_ONCE);
}

void scene_turns(struct scene *s)
{
    while (s->at < s->n_turns)
        uv_run(&s->loop, UV_RUN_ONCE);
}

static void on_closed(void *arg)
{
    struct scene *s = arg;

    s->is_closed = true;
}

void scene_leave(struct scene *s)
{
    rv_mcp_link_close(&s->link, on_closed, s);
}

void scene_left(struct scene *s)
{
    while (!s->is_closed)
        uv_run(&s->loop, UV_RUN_ONCE);
    ck_assert_uint_eq(s->at, s->n_turns);
    server_stop(&s->server);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&s->loop), 0);
    rv_buf_fini(&s->log);
}

void scene_close(struct scene *s)
{
    scene_leave(s);
    scene_left(s);
}
