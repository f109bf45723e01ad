/* A file line by line. Memory holds one line and a piece at most. A pipe that has nothing yet does not block
 * the thread. */
#include "coreengine/app/batch/batch_internal.h"
#include "coreengine/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE         ((size_t)64 << 10) /* bytes that are read at once */
#define PIECES_A_TURN 16                 /* read in search of one line's end, before the loop sees to signals */

static int fail(const struct batch_reader *r, const char *what, rv_err **err)
{
    int number = errno;
    char text[128];

    if (number == EISDIR)
        return RV_FAIL(err, RV_E_INVALID, "cannot %s batch \"%s\": %s", what, r->path,
                       strerror_r(number, text, sizeof text));
    return RV_FAIL_SYSTEM(err, number, "cannot %s batch \"%s\"", what, r->path);
}

int batch_reader_open(const char *path, struct batch_reader *out, rv_err **err)
{
    struct stat st;

    *out = (struct batch_reader){.path = path, .fd = -1, .text = RV_BUF_INIT(BATCH_MAX_LINE + 2 * PIECE)};
    if (strcmp(path, "-") == 0) {
        out->path = "standard input";
        out->fd = rv_terminal_open_reader(STDIN_FILENO);
        if (out->fd == STDIN_FILENO)
            out->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    } else {
        out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (out->fd < 0)
        return fail(out, "open", err);
    if (fstat(out->fd, &st) < 0 || S_ISDIR(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : errno;
        int rc = fail(out, "read", err);
        batch_reader_close(out);
        return rc;
    }
    out->is_plain = S_ISREG(st.st_mode);
    out->size = out->is_plain ? (int64_t)st.st_size : 0;
    return 0;
}

void batch_reader_close(struct batch_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    rv_buf_fini(&r->text);
}

/* What was handed out makes room. */
static void drop_taken(struct batch_reader *r)
{
    if (r->at == 0)
        return;
    memmove(r->text.ptr, r->text.ptr + r->at, r->text.len - r->at);
    rv_buf_truncate(&r->text, r->text.len - r->at);
    r->seen -= r->at;
    r->at = 0;
}

/* *is_later: a pipe has nothing yet. */
static int fill(struct batch_reader *r, bool *is_later, rv_err **err)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    char piece[PIECE];

    *is_later = !r->is_plain && poll(&p, 1, 0) == 0;
    if (*is_later)
        return 0;
    drop_taken(r);
    ssize_t n = read(r->fd, piece, sizeof piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        *is_later = errno == EAGAIN;
        return 0;
    }
    if (n < 0)
        return fail(r, "read", err);
    r->is_over = n == 0;
    r->read_bytes += n;
    rv_buf_add_str(&r->text, (rv_str){piece, (size_t)n});
    return rv_buf_check(&r->text, "a line of a batch", err);
}

static bool is_blank(rv_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] != ' ' && line.ptr[i] != '\t' && line.ptr[i] != '\r')
            return false;
    return true;
}

/* A whole line that is in memory. False: there is none. */
static bool take(struct batch_reader *r, rv_str *line)
{
    const char *from = r->text.len > r->seen ? r->text.ptr + r->seen : NULL;
    const char *end = from ? memchr(from, '\n', r->text.len - r->seen) : NULL;

    if (!end && !(r->is_over && r->text.len > r->at)) {
        r->seen = r->text.len;
        return false;
    }
    size_t stop = end ? (size_t)(end - r->text.ptr) : r->text.len;
    *line = (rv_str){r->text.ptr + r->at, stop - r->at};
    r->at = r->seen = end ? stop + 1 : stop;
    r->number++;
    return true;
}

int batch_reader_next(struct batch_reader *r, enum batch_read *what, rv_str *line, rv_err **err)
{
    for (int n = 0;; n++) {
        bool is_later = false;
        if (take(r, line)) {
            bool was_long = r->skips || line->len > BATCH_MAX_LINE;
            r->skips = false;
            if (!was_long && is_blank(*line))
                continue;
            *what = was_long ? BATCH_LONG : BATCH_LINE;
            return 0;
        }
        if (r->is_over) {
            *what = r->skips ? BATCH_LONG : BATCH_END; /* its last byte was dropped */
            r->number += r->skips;
            r->skips = false;
            return 0;
        }
        if (r->text.len - r->at > BATCH_MAX_LINE) { /* its beginning is not needed to tell that it is too long */
            r->skips = true;
            r->at = r->seen = r->text.len;
        }
        int rc = n < PIECES_A_TURN ? fill(r, &is_later, err) : 0;
        if (rc < 0)
            return rc;
        if (is_later || n == PIECES_A_TURN) {
            *what = is_later ? BATCH_LATER : BATCH_PAUSE;
            return 0;
        }
    }
}
