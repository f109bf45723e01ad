/* libcurl's sockets and timer on the loop: what it wants to watch becomes a uv_poll_t, what happens there goes back to
 * it, and after each such visit messages are read and the list of things to do is worked off.
 *
 * Limits of time: all calls stand in one heap by when something of theirs is due, and one timer of the loop waits for
 * the first. A part of an answer only notes the time: its call keeps its old, too early place in the heap until that
 * comes up, so that a chunk costs no sorting. The time to connect is libcurl's business. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/http/http_internal.h"

#define FIRST_CAPACITY 16 /* calls that a client has room for at first */
#define DEFAULT_IDLE   64 /* connections that are kept for the next call */

/* --- limits of time --- */

static int64_t later(int64_t from_us, int64_t limit_us)
{
    return from_us > RV_NEVER - limit_us ? RV_NEVER : from_us + limit_us;
}

/* When the next limit of c is reached, and which. */
static int64_t next_due(const rv_http_call *c, enum rv_http_fault *out_fault)
{
    int64_t due = RV_NEVER, other = RV_NEVER;

    *out_fault = RV_HTTP_TOTAL_TIME;
    if (c->fault != RV_HTTP_OK || c->is_cancelled)
        return due; /* it is ending already */
    if (c->total_us > 0)
        due = later(c->start_us, c->total_us);
    if (c->is_held)
        return due;
    if (c->answer_us && c->idle_us > 0)
        other = later(c->last_us, c->idle_us);
    else if (!c->answer_us && c->sent_us && c->first_byte_us > 0)
        other = later(c->sent_us, c->first_byte_us);
    if (other >= due)
        return due;
    *out_fault = c->answer_us ? RV_HTTP_IDLE_TIME : RV_HTTP_FIRST_BYTE_TIME;
    return other;
}

static void put(rv_http *h, size_t slot, rv_http_call *c)
{
    h->due[slot] = c;
    c->slot = slot;
}

static void sift(rv_http_call *c)
{
    rv_http *h = c->h;
    size_t slot = c->slot;

    for (; slot > 0 && h->due[(slot - 1) / 2]->due_us > c->due_us; slot = (slot - 1) / 2)
        put(h, slot, h->due[(slot - 1) / 2]);
    for (;;) {
        size_t child = 2 * slot + 1;
        if (child + 1 < h->n_calls && h->due[child + 1]->due_us < h->due[child]->due_us)
            child++;
        if (child >= h->n_calls || h->due[child]->due_us >= c->due_us)
            break;
        put(h, slot, h->due[child]);
        slot = child;
    }
    put(h, slot, c);
}

int http_due_add(rv_http_call *c, rv_err **err)
{
    rv_http *h = c->h;

    if (h->n_calls == h->due_cap) {
        size_t cap = h->due_cap ? 2 * h->due_cap : FIRST_CAPACITY;
        rv_http_call **due = reallocarray(h->due, cap, sizeof *due);
        if (!due)
            return RV_FAIL(err, RV_E_NOMEM, "start a request");
        h->due = due;
        h->due_cap = cap;
    }
    put(h, h->n_calls++, c);
    http_due_update(c);
    return 0;
}

void http_due_remove(rv_http_call *c)
{
    rv_http *h = c->h;
    rv_http_call *last = h->due[--h->n_calls];

    if (last != c) {
        put(h, c->slot, last);
        sift(last);
    }
}

void http_due_update(rv_http_call *c)
{
    enum rv_http_fault fault;

    c->due_us = next_due(c, &fault);
    sift(c);
}

/* Bytes may have come that have not made up a part yet: compressed ones. */
static bool has_moved(rv_http_call *c)
{
    curl_off_t n = 0;

    if (c->h->curl->easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &n) != CURLE_OK || n <= c->n_received)
        return false;
    c->n_received = n;
    return true;
}

/* Gives each call whose time limit is over its fault, and has its end told. */
static void http_due_expire(rv_http *h, int64_t now_us)
{
    while (h->n_calls > 0 && h->due[0]->due_us <= now_us) {
        rv_http_call *c = h->due[0];
        enum rv_http_fault fault;

        if (next_due(c, &fault) <= now_us) {
            if (fault == RV_HTTP_IDLE_TIME && has_moved(c))
                c->last_us = now_us;
            else {
                c->fault = fault;
                http_todo(c);
            }
        }
        http_due_update(c);
    }
}

/* A socket being watched. */
struct watch {
    uv_poll_t poll;
    rv_http *h;
    curl_socket_t fd;
};

int64_t http_now(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

/* --- things to do --------------------------------------------------------------------------------------------------*/

void http_todo(rv_http_call *c)
{
    rv_http *h = c->h;

    if (c->is_todo)
        return;
    c->is_todo = true;
    c->todo_next = NULL;
    *h->todo_end = c;
    h->todo_end = &c->todo_next;
}

void http_todo_drop(rv_http_call *c)
{
    rv_http *h = c->h;

    if (!c->is_todo)
        return;
    rv_http_call **at = &h->todo;
    while (*at != c)
        at = &(*at)->todo_next;
    *at = c->todo_next;
    if (h->todo_end == &c->todo_next)
        h->todo_end = at;
    c->is_todo = false;
}

static void read_messages(rv_http *h)
{
    CURLMsg *msg;
    int n_left;

    while ((msg = h->curl->multi_info_read(h->multi, &n_left))) {
        void *call = NULL;
        CURLcode rc = msg->data.result; /* gone with the handle */
        if (msg->msg == CURLMSG_DONE && h->curl->easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &call) == CURLE_OK)
            http_call_over(call, rc);
    }
}

/* Around each call of libcurl that may run a transfer; only from the loop. */
static void enter(rv_http *h)
{
    h->in_curl++;
}

static void leave(rv_http *h)
{
    h->in_curl--;
    assert(h->in_curl == 0);
    read_messages(h);
    while (h->todo) {
        rv_http_call *c = h->todo;
        http_todo_drop(c);
        http_call_act(c);
        read_messages(h);
    }
    http_arm(h);
}

/* --- time ----------------------------------------------------------------------------------------------------------*/

static void on_clock(uv_timer_t *timer)
{
    rv_http *h = timer->data;

    h->armed_us = RV_NEVER;
    enter(h); /* so that all callbacks come from one place, below */
    http_due_expire(h, http_now());
    leave(h);
}

void http_arm(rv_http *h)
{
    int64_t due_us = h->todo ? 0 : h->n_calls > 0 ? h->due[0]->due_us : RV_NEVER;

    if (h->in_curl > 0 || due_us == h->armed_us) /* in libcurl: it is done on the way out */
        return;
    h->armed_us = due_us;
    if (due_us == RV_NEVER) {
        uv_timer_stop(&h->clock);
        return;
    }
    int64_t wait_us = due_us - http_now();
    uv_timer_start(&h->clock, on_clock, wait_us > 0 ? (uint64_t)(wait_us + 999) / 1000 : 0, 0);
}

static void visit(rv_http *h, curl_socket_t fd, int what)
{
    int n_running;

    enter(h);
    RV_IGNORE(h->curl->multi_socket_action(h->multi, fd, what, &n_running), "each call learns of its own failure");
    leave(h);
}

static void on_curl_timer(uv_timer_t *timer)
{
    visit(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int want_time(CURLM *multi, long timeout_ms, void *self)
{
    rv_http *h = self;

    (void)multi;
    if (timeout_ms < 0)
        uv_timer_stop(&h->curl_timer);
    else /* too early when the loop has not run for long: libcurl then asks again */
        uv_timer_start(&h->curl_timer, on_curl_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

/* --- sockets -------------------------------------------------------------------------------------------------------*/

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    int what = status < 0 ? CURL_CSELECT_ERR : 0;

    if (events & UV_READABLE)
        what |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        what |= CURL_CSELECT_OUT;
    visit(w->h, w->fd, what);
}

static void count_closed(rv_http *h)
{
    if (--h->n_handles == 0)
        free(h);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *w = handle->data;
    rv_http *h = w->h;

    free(w);
    count_closed(h);
}

static struct watch *new_watch(rv_http *h, curl_socket_t fd)
{
    struct watch *w = calloc(1, sizeof *w);

    if (!w || uv_poll_init(h->loop, &w->poll, fd) < 0) {
        free(w);
        return NULL;
    }
    w->h = h;
    w->fd = fd;
    w->poll.data = w;
    h->n_handles++;
    return w;
}

/* If libcurl were told of the failure, it would give up all transfers: instead, only the one that cannot be watched
 * ends. */
static int fail_watch(rv_http *h, CURL *easy)
{
    void *call = NULL;

    if (h->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &call) != CURLE_OK || !call)
        return 0;
    rv_http_call *c = call;
    if (c->fault == RV_HTTP_OK && !c->is_ended) {
        c->fault = RV_HTTP_LOCAL;
        c->reason = "its socket cannot be watched";
        http_todo(c);
        http_arm(h);
    }
    return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *socket_self)
{
    rv_http *h = self;
    struct watch *w = socket_self;

    if (what == CURL_POLL_REMOVE) {
        if (w) {
            h->curl->multi_assign(h->multi, fd, NULL);
            uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        }
        return 0;
    }
    if (!w) {
        w = new_watch(h, fd);
        if (!w)
            return fail_watch(h, easy);
        h->curl->multi_assign(h->multi, fd, w);
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&w->poll, events, on_poll) < 0 ? fail_watch(h, easy) : 0;
}

/* --- the client ----------------------------------------------------------------------------------------------------*/

static void on_timer_closed(uv_handle_t *handle)
{
    count_closed(handle->data);
}

static int set_up_multi(rv_http *h, rv_err **err)
{
    h->multi = h->curl->multi_init();
    if (!h->multi)
        return RV_FAIL(err, RV_E_NOMEM, "make an HTTP client");
    CURLMcode rc = h->curl->multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    if (rc == CURLM_OK)
        rc = h->curl->multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    if (rc == CURLM_OK)
        rc = h->curl->multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_time);
    if (rc == CURLM_OK)
        rc = h->curl->multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    if (rc != CURLM_OK)
        return RV_FAIL(err, RV_E_INTERNAL, "make an HTTP client: %s", h->curl->multi_strerror(rc));
    return 0;
}

static void parts_fini(rv_http *h)
{
    if (h->multi)
        h->curl->multi_cleanup(h->multi);
    free(h->user_agent);
    free(h->due);
}

int rv_http_new(const struct rv_http_opts *opts, rv_http **out, rv_err **err)
{
    const struct rv_curl *curl;
    int rc = http_curl_open(&curl, err);
    if (rc < 0)
        return rc;
    rv_http *h = calloc(1, sizeof *h);
    if (!h)
        return RV_FAIL(err, RV_E_NOMEM, "make an HTTP client");
    h->curl = curl;
    h->loop = opts->loop;
    h->runs_on = opts->runs_on;
    h->log = opts->log;
    h->max_idle = opts->max_connections ? opts->max_connections : DEFAULT_IDLE;
    h->todo_end = &h->todo;
    h->armed_us = RV_NEVER;
    h->user_agent = rv_str_dup(rv_str_of(opts->user_agent ? opts->user_agent : "reeve/" REEVE_VERSION));
    rc = h->user_agent ? set_up_multi(h, err) : RV_FAIL(err, RV_E_NOMEM, "make an HTTP client");
    if (rc < 0) {
        parts_fini(h);
        free(h);
        return rc;
    }
    uv_timer_init(h->loop, &h->curl_timer); /* cannot fail */
    uv_timer_init(h->loop, &h->clock);
    h->curl_timer.data = h->clock.data = h;
    h->n_handles = 2;
    *out = h;
    return 0;
}

void rv_http_free(rv_http *h)
{
    if (!h)
        return;
    assert(h->in_curl == 0); /* not from a callback */
    uv_loop_t *loop = h->runs_on ? NULL : h->loop;
    while (h->calls)
        http_call_drop(h->calls);
    parts_fini(h);
    uv_close((uv_handle_t *)&h->curl_timer, on_timer_closed);
    uv_close((uv_handle_t *)&h->clock, on_timer_closed);
    if (loop)
        uv_run(loop, UV_RUN_NOWAIT); /* the last handle that closes frees the client */
}
