#include "tests/contract/links/world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/mcp/http/http.h"
#include "coreengine/tools/mcp/mcptools_internal.h"
#include "coreengine/tools/rest/rest.h"
#include "tests/kit/kit.h"

#define MORE_BYTES ((size_t)1 << 20) /* that the server writes at once of the answer without an end */

/* --- what comes --- */

static void enter(struct world *w)
{
    ck_assert_msg(!w->is_inside, "%s: a callback from inside a function of the link", w->kind->name);
    ck_assert_msg(!w->is_closing, "%s: a callback after close", w->kind->name);
    ck_assert_msg(!w->failed[0], "%s: a callback of a link that is dead", w->kind->name);
}

static void leave(struct world *w)
{
    if (w->then)
        w->then(w);
}

static void on_message(void *self, rv_str json)
{
    struct rv_mcp_message m;
    struct world *w = self;

    enter(w);
    ck_assert_int_eq(rv_mcp_read(json, &m, NULL, NULL), 0);
    int id = m.method ? 0 : json_object_get_int(m.id);
    ck_assert_int_lt(id, MAX_ID);
    rv_buf_printf(&w->order, "%s ", m.method ? m.method : json_object_get_string(m.id));
    ck_assert_msg(!id || (!w->messages[id] && !w->failed[id]), "%s: request %d ends twice", w->kind->name, id);
    w->messages[id]++;
    w->n_messages++;
    rv_mcp_message_fini(&m);
    leave(w);
}

static void on_failed(void *self, int64_t id, const struct rv_mcp_failure *f)
{
    struct world *w = self;

    enter(w);
    ck_assert_int_lt(id, MAX_ID);
    ck_assert_msg(!w->messages[id] || id == 0, "%s: request %d ends twice", w->kind->name, (int)id);
    ck_assert_msg(!w->failed[id], "%s: request %d fails twice", w->kind->name, (int)id);
    ck_assert_msg(!w->is_cancelled[id], "%s: request %d fails after cancel", w->kind->name, (int)id);
    ck_assert_ptr_nonnull(f->text);
    ck_assert_str_ne(f->text, "");
    w->failed[id]++;
    w->n_failed++;
    w->fault = f->fault;
    leave(w);
}

static void on_closed(void *arg)
{
    struct world *w = arg;

    ck_assert_msg(!w->is_inside, "%s: closed is told from inside close", w->kind->name);
    w->n_closed++;
}

/* --- the server of the links over HTTP --- */

static bool is_asked(const struct server *s, const char *name)
{
    char call[40], path[40];

    snprintf(call, sizeof call, "\"name\":\"%s\"", name);
    snprintf(path, sizeof path, "GET /%s ", name);
    return strstr(rv_buf_cstr(&s->last), call) || strstr(rv_buf_cstr(&s->last), path);
}

static rv_str choose(struct server *s)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: ";
    const char *body = strstr(rv_buf_cstr(&s->last), "\r\n\r\n");
    const char *id = body ? strstr(body, "\"id\":") : NULL;
    struct world *w = s->self;
    char text[200];

    s->after = is_asked(s, "end") ? CLOSE : is_asked(s, "large") ? ENDLESS : KEEP;
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}",
             id ? (int)strtoll(id + 5, NULL, 10) : 0);
    w->answer[0] = '\0';
    if (is_asked(s, "large"))
        snprintf(w->answer, sizeof w->answer, "%sapplication/json\r\n\r\n\"", head);
    else if (is_asked(s, "three"))
        snprintf(w->answer, sizeof w->answer,
                 "%stext/event-stream\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\n"
                 "data: {\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n\ndata: %s\n\n",
                 head, text);
    else if (is_asked(s, "answer"))
        snprintf(w->answer, sizeof w->answer, "%sapplication/json\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(text),
                 text);
    return rv_str_of(w->answer);
}

static void serve(struct world *w)
{
    static char more[MORE_BYTES];

    memset(more, 'x', sizeof more);
    server_start(&w->server, &w->loop);
    w->server.self = w;
    w->server.choose = choose;
    w->server.more = (rv_str){more, sizeof more};
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d", w->server.port);
}

/* --- the kinds --- */

static int open_stdio(struct world *w, const struct rv_mcp_link_user *user, rv_err **err)
{
    static const char *command[] = {"/proc/self/exe", PEER_ARGUMENT};
    const struct rv_mcp_server_config server = {
        .name = "peer", .url = "", .cwd = "", .command = {.items = command, .n = RV_COUNT(command), .is_set = true}};
    const struct rv_mcp_stdio how = {.loop = &w->loop, .server = &server, .user = *user};

    return mcptools_mcp_stdio_open(&how, &w->link, err);
}

static int open_http(struct world *w, const struct rv_mcp_link_user *user, rv_err **err)
{
    serve(w);
    const struct rv_mcp_web_opts opts = {.loop = &w->loop, .url = w->url, .user = *user};
    return rv_mcp_web_open(&opts, &w->link, err);
}

static int open_rest(struct world *w, const struct rv_mcp_link_user *user, rv_err **err)
{
    serve(w);
    const struct rv_rest_opts opts = {.loop = &w->loop, .document = w->url, .url = w->url, .user = *user};
    return rv_rest_open(&opts, &w->link, err);
}

const struct kind kinds[N_KINDS] = {
    {.name = "stdio", .open = open_stdio, .is_one_server = true},
    {.name = "http", .open = open_http},
    {.name = "rest", .open = open_rest, .has_one_answer = true},
};

/* --- what a test does --- */

void world_open(struct world *w, int kind)
{
    const struct rv_mcp_link_user user = {.message = on_message, .failed = on_failed, .self = w};
    rv_err *err = NULL;

    signal(SIGPIPE, SIG_IGN);
    *w = (struct world){.kind = &kinds[kind], .order = RV_BUF_INIT(10000)};
    ck_assert_int_eq(uv_loop_init(&w->loop), 0);
    ck_assert_msg(w->kind->open(w, &user, &err) == 0, "%s", rv_err_text(err));
    ck_assert_str_eq(w->link.ops->name, w->kind->name);
}

int world_send_raw(struct world *w, const struct rv_mcp_send *m)
{
    rv_err *err = NULL;

    w->is_inside = true;
    int rc = rv_mcp_link_send(&w->link, m, &err);
    w->is_inside = false;
    ck_assert_msg((rc < 0) == (err != NULL), "%s: an error without a text", w->kind->name);
    rv_err_free(err);
    return rc;
}

int world_send(struct world *w, int id, const char *name)
{
    rv_buf body = RV_BUF_INIT(2000);

    rv_buf_printf(&body,
                  "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
                  "\"arguments\":{},\"_meta\":{\"dev.reeve/operation\":{\"method\":\"GET\",\"path\":\"/%s\","
                  "\"parameters\":[]}}}}",
                  id, name, name);
    int rc = world_send_raw(w, &(struct rv_mcp_send){.id = id,
                                                     .method = "tools/call",
                                                     .name = name,
                                                     .body = rv_buf_str(&body),
                                                     .version = "2026-07-28",
                                                     .is_modern = true});
    rv_buf_fini(&body);
    return rc;
}

void world_cancel(struct world *w, int id)
{
    w->is_inside = true;
    rv_mcp_link_cancel(&w->link, id);
    w->is_inside = false;
    w->is_cancelled[id] = true;
}

void world_wait(struct world *w, size_t n_messages, size_t n_failed)
{
    while (w->n_messages < n_messages || w->n_failed < n_failed)
        uv_run(&w->loop, UV_RUN_ONCE);
}

void world_close(struct world *w)
{
    w->is_inside = true;
    rv_mcp_link_close(&w->link, w->is_not_told ? NULL : on_closed, w);
    w->is_inside = false;
    w->is_closing = true;
}

void world_end(struct world *w)
{
    if (!w->is_closing)
        world_close(w);
    while (!w->n_closed && !w->is_not_told) /* whatever the peer does */
        uv_run(&w->loop, UV_RUN_ONCE);
    if (w->server.port)
        server_stop(&w->server);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(w->n_closed, !w->is_not_told);
    ck_assert_int_eq(uv_loop_close(&w->loop), 0);
    rv_buf_fini(&w->order);
}
