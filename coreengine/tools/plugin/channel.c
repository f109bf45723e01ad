/* Frames over a stream socket. Neither side blocks in a read or a write: both wait in poll(), with a deadline, and
 * check the flag of a cancelled call. A length is used only after it was compared with a ceiling, and memory grows with
 * the bytes that arrive, not with those that are announced. */
#include "coreengine/tools/plugin/isolated_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHUNK     ((size_t)16 << 10)  /* bytes of one read() from the child */
#define KEEP      ((size_t)256 << 10) /* of a buffer between messages */
#define MAX_LINKS 8                   /* of an error: its causes; a person reads no longer chain */

struct lengths {
    uint32_t head, body;
};

int64_t channel_now_us(void)
{
    struct rv_clock clock = rv_clock_system();

    return clock.now_us(clock.self);
}

void channel_init(struct rv_channel *c, int fd, size_t max_body)
{
    *c = (struct rv_channel){.fd = fd, .max_body = max_body};
    rv_buf_init(&c->in, sizeof(struct lengths) + RV_CHANNEL_MAX_HEAD + RV_CHANNEL_MAX_ARGS + CHUNK);
}

void channel_fini(struct rv_channel *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    rv_buf_fini(&c->in);
}

bool channel_is_ready(const struct rv_channel *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    return c->in.len > c->used || poll(&p, 1, 0) != 0;
}

static int time_left(const struct rv_wait *wait, int64_t *left_us, rv_err **err)
{
    *left_us = RV_NEVER;
    if (wait && wait->cancelled && atomic_load_explicit(wait->cancelled, memory_order_relaxed))
        return RV_FAIL(err, RV_E_CANCELLED, "it was cancelled");
    if (wait && wait->until_us != RV_NEVER)
        *left_us = wait->until_us - channel_now_us();
    return *left_us > 0 ? 0 : RV_FAIL(err, RV_E_TIMEOUT, "there was no answer in time");
}

int channel_may_wait(const struct rv_wait *wait, rv_err **err)
{
    int64_t left_us;

    return time_left(wait, &left_us, err);
}

static int wait_for(int fd, short events, const struct rv_wait *wait, rv_err **err)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left_us;
        int rc = time_left(wait, &left_us, err), ms = -1, n;

        if (rc < 0)
            return rc;
        if (left_us != RV_NEVER)
            ms = left_us > 3600000000 ? 3600000 : (int)((left_us + 999) / 1000);
        if (wait && wait->cancelled && (ms < 0 || ms > RV_CHANNEL_SLICE_MS))
            ms = RV_CHANNEL_SLICE_MS;
        n = poll(&p, 1, ms);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return RV_FAIL_SYSTEM(err, errno, "wait for a capability\'s process");
    }
}

static void advance(struct iovec *parts, size_t n, size_t sent)
{
    for (size_t i = 0; i < n && sent > 0; i++) {
        size_t here = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        parts[i].iov_base = (char *)parts[i].iov_base + here;
        parts[i].iov_len -= here;
        sent -= here;
    }
}

int channel_send(struct rv_channel *c, const rv_buf *head, rv_str body, const struct rv_wait *wait, rv_err **err)
{
    struct lengths lengths = {(uint32_t)head->len, (uint32_t)body.len};
    struct iovec parts[] = {
        {&lengths, sizeof lengths}, {head->ptr, head->len}, {(void *)(uintptr_t)body.ptr, body.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = RV_COUNT(parts)};
    int rc = rv_buf_check(head, "message to a capability's process", err);

    if (rc < 0)
        return rc;
    if (head->len > RV_CHANNEL_MAX_HEAD || body.len > RV_CHANNEL_MAX_ARGS)
        return RV_FAIL(err, RV_E_LIMIT, "a message to a capability's process is larger than %zu bytes",
                       RV_CHANNEL_MAX_ARGS);
    while (parts[0].iov_len + parts[1].iov_len + parts[2].iov_len > 0) {
        ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            advance(parts, RV_COUNT(parts), (size_t)n);
        else if (errno == EAGAIN)
            rc = wait_for(c->fd, POLLOUT, wait, err);
        else if (errno != EINTR)
            rc = RV_FAIL(err, RV_E_IO, "the process of a capability is gone");
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* 1: *lengths is known; 0: more bytes are needed. */
static int look(const struct rv_channel *c, struct lengths *lengths, rv_err **err)
{
    if (c->in.len - c->used < sizeof *lengths)
        return 0;
    memcpy(lengths, c->in.ptr + c->used, sizeof *lengths);
    if (lengths->head > RV_CHANNEL_MAX_HEAD || lengths->body > c->max_body)
        return RV_FAIL(err, RV_E_PLUGIN, "its process sent a message that is too large");
    return c->in.len - c->used - sizeof *lengths >= (size_t)lengths->head + lengths->body;
}

static int fill(struct rv_channel *c, const struct rv_wait *wait, rv_err **err)
{
    char chunk[CHUNK];
    ssize_t n = recv(c->fd, chunk, sizeof chunk, MSG_DONTWAIT);

    if (n > 0) {
        rv_buf_add(&c->in, chunk, (size_t)n);
        return rv_buf_check(&c->in, "message of a capability's process", err);
    }
    if (n < 0 && errno == EAGAIN)
        return wait_for(c->fd, POLLIN, wait, err);
    if (n < 0 && errno == EINTR)
        return 0;
    return RV_FAIL(err, RV_E_IO, "the process of a capability is gone");
}

/* What was handed out is not needed any more; the rest, usually nothing, moves to the front. */
static void compact(struct rv_channel *c)
{
    if (c->used == 0)
        return;
    memmove(c->in.ptr, c->in.ptr + c->used, c->in.len - c->used);
    rv_buf_truncate(&c->in, c->in.len - c->used);
    c->used = 0;
    if (c->in.len == 0 && c->in.cap > KEEP) { /* one large reply must not cost its size for good */
        size_t max = c->in.max;
        rv_buf_fini(&c->in);
        rv_buf_init(&c->in, max);
    }
}

int channel_receive(struct rv_channel *c, struct rv_frame *out, const struct rv_wait *wait, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_CHANNEL_MAX_HEAD, .max_depth = 8, .what = "message of a capability's process"};
    struct lengths lengths = {0, 0};
    json_object *head = NULL;
    int rc;

    compact(c);
    while ((rc = look(c, &lengths, err)) == 0)
        if ((rc = fill(c, wait, err)) < 0)
            return rc;
    if (rc < 0)
        return rc;
    rc = rv_json_parse((rv_str){c->in.ptr + sizeof lengths, lengths.head}, &opts, &head, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "its process sent what is not a message");
    if (!json_object_is_type(head, json_type_object)) {
        json_object_put(head);
        return RV_FAIL(err, RV_E_PLUGIN, "its process sent what is not a message");
    }
    out->head = head;
    out->body = (rv_str){c->in.ptr + sizeof lengths + lengths.head, lengths.body};
    c->used = sizeof lengths + lengths.head + lengths.body;
    return 0;
}

void channel_write_err(rv_jw *w, const rv_err *fault)
{
    char text[RV_PLUGIN_MAX_TEXT + 1];

    rv_jw_key(w, "error");
    rv_jw_arr(w);
    for (int n = 0; fault && n < MAX_LINKS; fault = rv_err_cause(fault), n++) {
        rv_jw_obj(w);
        rv_jw_kv_int(w, "code", rv_err_code(fault));
        plugin_clean(text, sizeof text, rv_err_text(fault));
        rv_jw_kv_text(w, "text", text);
        if (rv_err_hint_text(fault)) {
            plugin_clean(text, sizeof text, rv_err_hint_text(fault));
            rv_jw_kv_text(w, "hint", text);
        }
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

/* A code that the child may use: its memory is not ours. */
static int code_of(json_object *link)
{
    int64_t code = 0;

    if (!rv_json_get_int(link, "code", &code) || code >= 0 || code < -RV_N_CODES)
        return RV_E_PLUGIN;
    return code == RV_E_NOMEM ? RV_E_LIMIT : (int)code;
}

int channel_read_err(json_object *list, rv_err **err)
{
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    char clean[RV_PLUGIN_MAX_TEXT + 1];
    int rc = RV_E_PLUGIN;

    if (n == 0 || n > MAX_LINKS)
        return RV_FAIL(err, RV_E_PLUGIN, "its process failed and does not say why");
    for (size_t i = n; i-- > 0;) { /* the last one is the cause of the others */
        json_object *link = json_object_array_get_idx(list, i);

        if (!json_object_is_type(link, json_type_object))
            continue;
        const char *text = rv_json_text_or(link, "text", "");
        const char *hint = rv_json_text_or(link, "hint", NULL);
        plugin_clean(clean, sizeof clean, text);
        rc = RV_WRAP(err, code_of(link), "%s", clean);
        if (hint) {
            plugin_clean(clean, sizeof clean, hint);
            rv_err_set_hint(err, "%s", clean);
        }
    }
    return rc;
}
