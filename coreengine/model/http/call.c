/* One request from start to end: libcurl's callbacks, turned into the user's, and what users ask for in between.
 *
 * The head of an answer comes line by line. Heads of 1xx answers come first and are skipped, trailers come last and are
 * ignored; both count towards the limits, so that neither can be endless. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coreengine/model/http/http_internal.h"

/* bytes, unpacked: streams repeat their envelope with each piece; a longer answer is an error */
#define DEFAULT_MAX_BODY ((size_t)64 << 20)

/* --- the lines of a head --- */

/* "HTTP/1.1 200 OK": the number, or -1. */
static int status_of(rv_str line)
{
    const char *space = memchr(line.ptr, ' ', line.len);

    if (!space || line.ptr + line.len - space < 4)
        return -1;
    int status = 0;
    for (int i = 1; i <= 3; i++) {
        if (space[i] < '0' || space[i] > '9')
            return -1;
        status = status * 10 + (space[i] - '0');
    }
    return status;
}

static bool refuse_line(struct rv_head_reader *r, const char *problem)
{
    r->problem = problem;
    return false;
}

static bool add_field(struct rv_head_reader *r, rv_str line)
{
    if (line.ptr[0] == ' ' || line.ptr[0] == '\t') { /* a value that goes on in the next line, as it used to be done */
        if (r->n_fields == 0)
            return refuse_line(r, "its head begins with half a header");
        rv_buf_truncate(&r->text, r->text.len - 1);
        rv_buf_putc(&r->text, ' ');
    } else if (++r->n_fields > RV_HTTP_MAX_HEADERS)
        return refuse_line(r, "it has too many headers");
    rv_buf_add_str(&r->text, rv_str_trim(line));
    rv_buf_putc(&r->text, '\n');
    return r->text.rc == 0 ? false : refuse_line(r, "no memory for its head");
}

/* True if the line completed the final head. False with r->problem set: it is refused. */
static bool head_line(struct rv_head_reader *r, rv_str line)
{
    r->n_bytes += line.len;
    if (r->n_bytes > RV_HTTP_MAX_HEAD)
        return refuse_line(r, "its head is too large");
    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;

    switch (r->phase) {
    case RV_HEAD_STATUS:
        if (line.len == 0)
            return false; /* the end of trailers to a 1xx answer, at worst */
        r->status = status_of(line);
        r->phase = RV_HEAD_FIELDS;
        return r->status < 100 ? refuse_line(r, "its first line has no status") : false;
    case RV_HEAD_FIELDS:
        if (line.len > 0)
            return add_field(r, line);
        r->phase = r->status < 200 ? RV_HEAD_STATUS : RV_HEAD_COMPLETE;
        if (r->phase == RV_HEAD_COMPLETE)
            return true;
        rv_buf_clear(&r->text);
        r->n_fields = 0;
        return false;
    case RV_HEAD_COMPLETE:
        return false;
    }
    return false;
}

/* The complete head; its views point into r->text, names are turned to lower case in place. */
static void head_read(struct rv_head_reader *r, struct rv_http_head *out)
{
    *out = (struct rv_http_head){.status = r->status};
    if (r->text.len == 0)
        return;
    char *at = r->text.ptr, *end = at + r->text.len;
    while (at < end && out->n_headers < RV_HTTP_MAX_HEADERS) {
        char *eol = memchr(at, '\n', (size_t)(end - at));
        char *colon = memchr(at, ':', (size_t)(eol - at));
        if (colon) {
            for (char *p = at; p < colon; p++)
                *p = rv_ascii_lower(*p);
            out->headers[out->n_headers].name = rv_str_trim((rv_str){at, (size_t)(colon - at)});
            out->headers[out->n_headers++].value = rv_str_trim((rv_str){colon + 1, (size_t)(eol - colon - 1)});
        }
        at = eol + 1;
    }
    out->content_type = rv_http_header(out, "content-type");
}

/* --- what libcurl calls --------------------------------------------------------------------------------------------*/

/* A fault of ours ends the transfer: the callback refuses, and this is why. */
static size_t refuse(rv_http_call *c, enum rv_http_fault fault, const char *reason)
{
    if (c->fault == RV_HTTP_OK) {
        c->fault = fault;
        c->reason = reason;
    }
    return 0;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *self)
{
    rv_http_call *c = self;
    size_t len = size * n;

    if (c->is_cancelled || c->fault != RV_HTTP_OK)
        return 0;
    c->last_us = http_now();
    bool is_complete = head_line(&c->head, (rv_str){bytes, len});
    if (c->head.problem)
        return refuse(c, c->head.text.rc == RV_E_NOMEM ? RV_HTTP_LOCAL : RV_HTTP_BAD_ANSWER, c->head.problem);
    if (!c->answer_us && c->head.phase != RV_HEAD_STATUS && c->head.status >= 200) {
        c->answer_us = c->last_us;
        http_due_update(c);
    }
    if (is_complete) {
        struct rv_http_head head;
        head_read(&c->head, &head);
        c->events.on_head(c->events.self, &head);
        rv_buf_fini(&c->head.text); /* streams live long, heads do not */
        if (c->is_cancelled)
            return 0;
    }
    return len;
}

static size_t on_write(char *bytes, size_t size, size_t n, void *self)
{
    rv_http_call *c = self;
    size_t len = size * n;

    if (c->is_cancelled || c->fault != RV_HTTP_OK)
        return 0;
    if (c->is_held) /* the rest of what was read when it was put on hold */
        return CURL_WRITEFUNC_PAUSE;
    if (c->head.phase != RV_HEAD_COMPLETE)
        return refuse(c, RV_HTTP_BAD_ANSWER, "it has a body before its head");
    if (len == 0)
        return 0;
    if (len > c->max_body - c->n_body)
        return refuse(c, RV_HTTP_TOO_LARGE, NULL);
    c->n_body += len;
    c->last_us = http_now();
    bool goes_on = c->events.on_body(c->events.self, (rv_str){bytes, len});
    if (c->is_cancelled)
        return 0;
    if (!goes_on) {
        c->is_held = true;
        http_due_update(c);
        RV_IGNORE(c->h->curl->easy_pause(c->easy, CURLPAUSE_RECV), "in its own callback a transfer can be paused");
    }
    return len;
}

/* The connection is there, the next thing is the request. Comes again when libcurl repeats it on a new connection
 * because an old one turned out to be closed. */
static int on_connected(void *self, char *ip, char *local_ip, int port, int local_port)
{
    rv_http_call *c = self;

    (void)ip, (void)local_ip, (void)port, (void)local_port;
    if (c->is_cancelled || c->fault != RV_HTTP_OK)
        return CURL_PREREQFUNC_ABORT;
    c->sent_us = http_now();
    if (!c->connected_us)
        c->connected_us = c->sent_us;
    http_due_update(c);
    return CURL_PREREQFUNC_OK;
}

/* Sockets are made here so that child processes do not get them, and to know why there is none: libcurl then tries the
 * next address, and where none is left waits for the limit of time. */
static curl_socket_t on_socket(void *self, curlsocktype purpose, struct curl_sockaddr *address)
{
    rv_http_call *c = self;
    const char *why = NULL;

    (void)purpose;
    if (c->egress && !rv_egress_allows(c->egress, rv_str_of(c->host), c->port, &address->addr, &why)) {
        c->is_denied = true;
        refuse(c, RV_HTTP_LOCAL, why);
        http_todo(c);
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd >= 0)
        return fd;
    c->os_error = errno;
    if (http_is_scarce(c->os_error) && !c->is_cancelled) {
        refuse(c, RV_HTTP_LOCAL, NULL);
        http_todo(c);
    }
    return CURL_SOCKET_BAD;
}

static CURLcode set_callbacks(rv_http_call *c)
{
    const struct rv_curl *curl = c->h->curl;
    CURLcode rc = curl->easy_setopt(c->easy, CURLOPT_PRIVATE, c);

#define SET(option, value)                                                                                             \
    if (rc == CURLE_OK)                                                                                                \
    rc = curl->easy_setopt(c->easy, CURLOPT_##option, value)
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, c);
    SET(WRITEFUNCTION, on_write);
    SET(WRITEDATA, c);
    SET(PREREQFUNCTION, on_connected);
    SET(PREREQDATA, c);
    SET(OPENSOCKETFUNCTION, on_socket);
    SET(OPENSOCKETDATA, c);
#undef SET
    return rc;
}

/* --- its life ------------------------------------------------------------------------------------------------------*/

static void free_call(rv_http_call *c)
{
    const struct rv_curl *curl = c->h->curl;

    if (c->easy)
        curl->easy_cleanup(c->easy);
    curl->slist_free_all(c->headers);
    rv_buf_fini(&c->head.text);
    free(c->host);
    free(c->origin);
    free(c);
}

static void link_call(rv_http_call *c)
{
    rv_http *h = c->h;

    c->next = h->calls;
    if (h->calls)
        h->calls->prev = c;
    h->calls = c;
}

/* Remove the call from the client: no callback of the call comes any more. */
static void unlink_call(rv_http_call *c)
{
    rv_http *h = c->h;

    http_todo_drop(c);
    http_due_remove(c);
    if (!c->is_fresh)
        RV_IGNORE(h->curl->multi_remove_handle(h->multi, c->easy), "it was added");
    if (c->prev)
        c->prev->next = c->next;
    else
        h->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

/* As many connections may be in use as there are calls; this many more are kept. */
static void set_kept(rv_http *h)
{
    long n = h->max_idle + h->n_calls < 1000000 ? (long)(h->max_idle + h->n_calls) : 1000000;

    RV_IGNORE(h->curl->multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, n), "a known option");
}

static CURLMcode add_to_curl(rv_http_call *c)
{
    set_kept(c->h);
    CURLMcode rc = c->h->curl->multi_add_handle(c->h->multi, c->easy);
    if (rc == CURLM_OK)
        c->is_fresh = false;
    return rc;
}

static rv_http_call *new_call(rv_http *h, const struct rv_http_request *req, const struct rv_http_events *events)
{
    rv_http_call *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->h = h;
    c->events = *events;
    c->is_fresh = true;
    c->first_byte_us = req->first_byte_us;
    c->connect_us = req->connect_us;
    c->idle_us = req->idle_us;
    c->total_us = req->total_us;
    c->max_body = req->max_body ? req->max_body : DEFAULT_MAX_BODY;
    rv_buf_init(&c->head.text, RV_HTTP_MAX_HEAD + RV_HTTP_MAX_HEADERS);
    c->egress = req->egress;
    c->log = req->log ? req->log : c->h->log;
    c->start_us = http_now();
    c->easy = h->curl->easy_init();
    if (!c->easy) {
        free_call(c);
        return NULL;
    }
    return c;
}

int rv_http_start(rv_http *h, const struct rv_http_request *req, const struct rv_http_events *events,
                  rv_http_call **out, rv_err **err)
{
    rv_http_call *c = new_call(h, req, events);
    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "start a request");
    int rc = http_configure(c, req, err);
    if (rc == 0 && set_callbacks(c) != CURLE_OK)
        rc = RV_FAIL(err, RV_E_INTERNAL, "start a request to %s: libcurl does not know an option", c->origin);
    if (rc == 0)
        rc = http_due_add(c, err);
    if (rc < 0) {
        free_call(c);
        return rc;
    }
    link_call(c);
    if (h->in_curl > 0)
        http_todo(c);
    else {
        CURLMcode code = add_to_curl(c);
        if (code != CURLM_OK) {
            rc = RV_FAIL(err, code == CURLM_OUT_OF_MEMORY ? RV_E_NOMEM : RV_E_INTERNAL, "start a request to %s: %s",
                         c->origin, h->curl->multi_strerror(code));
            http_call_drop(c);
            return rc;
        }
        http_arm(h);
    }
    *out = c;
    return 0;
}

void rv_http_resume(rv_http_call *c)
{
    if (!c->is_held || c->wants_resume || c->is_cancelled || c->is_ended)
        return;
    c->wants_resume = true;
    http_todo(c);
    http_arm(c->h);
}

void rv_http_cancel(rv_http_call *c)
{
    if (c->is_ended || c->is_cancelled)
        return;
    if (c->h->in_curl == 0) {
        http_call_drop(c);
        return;
    }
    c->is_cancelled = true;
    http_todo(c);
    /* Before libcurl comes to this call again its body may be gone: nothing more is to be sent. Of a call without a
     * connection this is refused; on_connected() stops that one. */
    if (!c->is_fresh)
        RV_IGNORE(c->h->curl->easy_pause(c->easy, CURLPAUSE_ALL), "it is ending anyway");
}

void http_call_drop(rv_http_call *c)
{
    rv_http *h = c->h;

    c->is_ended = true;
    unlink_call(c);
    free_call(c);
    http_arm(h);
}

static int64_t since_start(const rv_http_call *c, int64_t us)
{
    return us == 0 ? 0 : us > c->start_us ? us - c->start_us : 1;
}

static void end_call(rv_http_call *c)
{
    char text[RV_HTTP_TEXT_MAX];
    struct rv_http_end end = {.fault = http_fault_of(c),
                              .was_sent = c->sent_us != 0,
                              .is_denied = c->is_denied,
                              .refused_code = http_is_scarce(c->os_error) ? rv_code_of_system(c->os_error) : 0,
                              .text = text,
                              .connect_us = since_start(c, c->connected_us),
                              .first_byte_us = since_start(c, c->answer_us),
                              .total_us = since_start(c, http_now())};

    http_fault_text(c, end.fault, text);
    c->is_ended = true;
    unlink_call(c);
    RV_LOG(c->log, DEBUG, "http.end", RV_F_TEXT("host", c->origin), RV_F_I64("status", c->head.status),
           RV_F_I64("body_bytes", c->n_body), RV_F_I64("took_us", end.total_us),
           RV_F_TEXT("fault", text[0] ? text : NULL));
    c->events.on_end(c->events.self, &end);
    free_call(c);
}

void http_call_over(rv_http_call *c, CURLcode rc)
{
    c->code = rc;
    c->is_over = true;
    if (c->is_cancelled)
        http_call_drop(c);
    else if (!c->is_held || rc != CURLE_OK || c->fault != RV_HTTP_OK)
        end_call(c);
    /* else in go_on(): nothing follows on hold. (libcurl 7.88 does not finish a paused transfer, but nowhere says so.)
     */
}

static void go_on(rv_http_call *c)
{
    rv_http *h = c->h;

    c->wants_resume = c->is_held = false;
    c->last_us = http_now();
    http_due_update(c);
    if (c->is_over) {
        end_call(c);
        return;
    }
    h->in_curl++; /* what was held is handed on from in there */
    CURLcode rc = h->curl->easy_pause(c->easy, CURLPAUSE_CONT);
    h->in_curl--;
    if (rc != CURLE_OK)
        http_call_over(c, rc);
}

void http_call_act(rv_http_call *c)
{
    if (c->is_cancelled)
        http_call_drop(c);
    else if (c->fault != RV_HTTP_OK)
        end_call(c);
    else if (c->is_fresh) {
        CURLMcode rc = add_to_curl(c);
        if (rc != CURLM_OK) {
            c->fault = RV_HTTP_LOCAL;
            c->reason = c->h->curl->multi_strerror(rc);
            end_call(c);
        }
    } else if (c->wants_resume)
        go_on(c);
}
