/* Lines of standard input, read so that a signal ends the waiting: a library's reader would go on with it. */
#include "coreengine/cli/chat/chat.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536

void rv_chat_lines_init(struct rv_chat_lines *l)
{
    *l = (struct rv_chat_lines){.buf = RV_BUF_INIT(RV_CLI_MAX_MESSAGE + 2 * CHUNK)};
}

void rv_chat_lines_fini(struct rv_chat_lines *l)
{
    rv_buf_fini(&l->buf);
}

/* 0: there is something to read, or the end. */
static int wait_for_input(rv_err **err)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = rv_chat_signals_fd(), .events = POLLIN}};

    for (;;) {
        if (rv_chat_signals_seen())
            return RV_FAIL(err, RV_E_CANCELLED, "stopped by a signal");
        int n = poll(fds, RV_COUNT(fds), -1);
        if (n < 0 && errno != EINTR)
            return RV_FAIL(err, RV_E_IO, "wait for standard input: %s", strerror(errno));
        if (n > 0 && fds[0].revents)
            return 0;
    }
}

static int read_more(struct rv_chat_lines *l, rv_err **err)
{
    static char chunk[CHUNK];

    int rc = wait_for_input(err);
    if (rc < 0)
        return rc;
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0)
        return RV_FAIL(err, RV_E_IO, "read standard input: %s", strerror(errno));
    if (n == 0)
        l->is_over = true;
    rv_buf_add(&l->buf, chunk, (size_t)n);
    return rv_buf_check(&l->buf, "standard input", err);
}

/* What was handed out goes, so that the room is for what comes. */
static void drop(struct rv_chat_lines *l)
{
    if (!l->at)
        return;
    memmove(l->buf.ptr, l->buf.ptr + l->at, l->buf.len - l->at);
    rv_buf_truncate(&l->buf, l->buf.len - l->at);
    l->at = 0;
}

int rv_chat_lines_next(struct rv_chat_lines *l, rv_str *out, rv_err **err)
{
    size_t looked = 0;
    bool too_long = false;
    int rc = 0;

    drop(l);
    for (;;) {
        const char *end = l->buf.len > looked ? memchr(l->buf.ptr + looked, '\n', l->buf.len - looked) : NULL;
        size_t len = end ? (size_t)(end - l->buf.ptr) : l->buf.len;
        if (end || (l->is_over && (len > 0 || too_long))) {
            l->at = end ? len + 1 : len;
            len -= len > 0 && l->buf.ptr[len - 1] == '\r';
            *out = (rv_str){l->buf.ptr, len};
            too_long = too_long || len > RV_CLI_MAX_MESSAGE;
            return too_long ? RV_FAIL(err, RV_E_LIMIT, "a message has at most %zu bytes", RV_CLI_MAX_MESSAGE) : 1;
        }
        if (l->is_over)
            return 0;
        looked = l->buf.len;
        if (looked > RV_CLI_MAX_MESSAGE) {
            too_long = true;
            rv_buf_truncate(&l->buf, 0);
            looked = 0;
        }
        rc = read_more(l, err);
        if (rc < 0)
            return rc;
    }
}
