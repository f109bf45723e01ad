/* A host that has functions of its own with names that functions inside of libreeve have, and an HTTP parser of its
 * own. It links, and each side calls its own: those of the host, which the engine would need for a chat and a server,
 * end it. */
#include <reeve.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/http/http.h"

/* --- the host's --- */
#define OF_HOST(name)                                                                                                  \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        fputs(#name ": the engine called the host's\n", stderr);                                                       \
        _exit(3);                                                                                                      \
    }
OF_HOST(chat_run)
OF_HOST(chat_end_turn)
OF_HOST(app_entities_delete)
OF_HOST(batch_begin)
OF_HOST(app_mcp_fail)
OF_HOST(proto_agui)
OF_HOST(req_int)
OF_HOST(sim_any)
OF_HOST(srv_agent_put)
OF_HOST(llhttp_init)
OF_HOST(llhttp_settings_init)
OF_HOST(llhttp_execute)
OF_HOST(llhttp__internal_execute)

static int talk(rv_err **err)
{
    const struct rv_app app = {.no_store = true, .client = "kitchen"};
    struct rv_app_chat chat = {.app = &app, .script = "pipelines/scripts/chat-general.yaml"};
    struct rv_chat_turn turn;

    int rc = rv_app_chat_open(&chat, err);
    if (rc == 0)
        rc = rv_app_chat_enter(&chat, NULL, "general", err);
    if (rc == 0)
        rc = rv_chat_send(chat.chat, RV_STR_LIT("What can I cook with leeks?"), NULL, &turn, err);
    if (rc == 0)
        printf("%s: %.*s\n", turn.agent, RV_STR_ARG(turn.text));
    rv_app_chat_close(&chat);
    return rc;
}

/* --- a server and its client on one loop --- */
static void on_request(void *self, rv_httpd_exchange *x)
{
    const struct rv_httpd_answer answer = {.status = 200, .type = "text/plain", .body = RV_STR_LIT("leeks")};

    (void)self;
    rv_httpd_reply(x, &answer);
}

static char text[4096];
static size_t n_text;

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
    (void)handle;
    (void)suggested;
    *room = uv_buf_init(text + n_text, (unsigned)(sizeof(text) - 1 - n_text));
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    (void)bytes;
    if (n > 0)
        n_text += (size_t)n;
    if (n < 0 || strstr(text, "leeks"))
        uv_close((uv_handle_t *)stream, NULL);
}

static void on_connected(uv_connect_t *request, int status)
{
    static char head[] = "GET /soup HTTP/1.1\r\nHost: localhost\r\n\r\n";
    uv_buf_t bytes = uv_buf_init(head, sizeof(head) - 1);

    if (status < 0 || uv_try_write(request->handle, &bytes, 1) != (int)sizeof(head) - 1 ||
        uv_read_start(request->handle, give_room, on_bytes) < 0)
        uv_close((uv_handle_t *)request->handle, NULL);
}

static int serve(rv_err **err)
{
    struct rv_httpd_opts opts = RV_HTTPD_OPTS_INIT;
    const struct rv_httpd_listen at = {.address = "127.0.0.1"};
    struct sockaddr_in address;
    rv_httpd *server = NULL;
    uv_connect_t connect;
    uv_tcp_t client;
    uv_loop_t loop;
    int port = 0;

    if (uv_loop_init(&loop) < 0 || uv_tcp_init(&loop, &client) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "make a loop");
    opts.loop = &loop;
    opts.handler.on_request = on_request;
    int rc = rv_httpd_new(&opts, &server, err);
    if (rc == 0)
        rc = rv_httpd_listen(server, &at, &port, err);
    if (rc == 0 && uv_ip4_addr("127.0.0.1", port, &address) == 0 &&
        uv_tcp_connect(&connect, &client, (const struct sockaddr *)&address, on_connected) == 0)
        while (!uv_is_closing((uv_handle_t *)&client))
            uv_run(&loop, UV_RUN_ONCE);
    else
        uv_close((uv_handle_t *)&client, NULL);
    rv_httpd_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    printf("%.15s\n", text);
    return rc;
}

int main(void)
{
    rv_err *err = NULL;

    int rc = talk(&err);
    if (rc == 0)
        rc = serve(&err);
    if (rc < 0)
        fprintf(stderr, "%s\n", rv_err_text(err));
    rv_err_free(err);
    return rc < 0;
}
