/* keep_record: one line of JSON at the end of a file. Structured output needs somewhere to go that asks for nothing
 * else; and a call that is made again after a crash must not leave a second line. */
#include "capabilities/p8/p8_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open the file below the folder, part by part, so that no link leads elsewhere. -1 and errno. */
static int open_records(const struct p8 *p)
{
    const char *rest = p->records;
    int at = dup(p->base);

    while (at >= 0) {
        size_t len = strcspn(rest, "/");
        char part[MAX_PATH_BYTES + 1];
        int next, code;

        memcpy(part, rest, len);
        part[len] = '\0';
        rest += len + strspn(rest + len, "/");
        next = *rest ? openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                     : openat(at, part, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        code = errno;
        close(at);
        errno = code;
        if (next < 0 || !*rest)
            return next;
        at = next;
    }
    return -1;
}

static const char *reason_of(int code)
{
    const char *words = strerrordesc_np(code);

    switch (code) {
    case ENOSPC:
        return "the disk is full: make room there";
    case EDQUOT:
        return "the quota of the disk is used up: make room there";
    case EFBIG:
        return "it is too large, or would be larger than a file of this process may be (`ulimit -f`)";
    case EINVAL:
        return "it is not a regular file";
    case ENAMETOOLONG:
        return "its name is too long: take a shorter one";
    default:
        return words ? words : "the system refuses it";
    }
}

static int fail_file(const struct p8 *p, struct rv_cap_call *call, int code)
{
    if (code == ENOENT || code == ENOTDIR)
        return rv_cap_failf(call, "NotFoundError", "the file of records \"%s\": its folder does not exist", p->records);
    if (code == ELOOP)
        return rv_cap_failf(call, "AccessDenied", "the file of records \"%s\" is reached by a link", p->records);
    if (code == EACCES || code == EPERM)
        return rv_cap_failf(call, "AccessDenied",
                            "the file of records \"%s\": the system does not let this process change it", p->records);
    return rv_cap_failf(call, "ExecutionError", "the file of records \"%s\": %s", p->records, reason_of(code));
}

/* All of the file; free() it. 0 or an errno. */
static int read_all(int fd, char **out, size_t *len)
{
    struct stat st;
    char *text;
    size_t n = 0;

    if (fstat(fd, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EINVAL;
    if ((size_t)st.st_size > MAX_FILE_BYTES)
        return EFBIG;
    text = malloc((size_t)st.st_size + 1);
    if (!text)
        return ENOMEM;
    while (n < (size_t)st.st_size) {
        ssize_t got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int code = errno;
            free(text);
            return code;
        }
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *out = text;
    *len = n;
    return 0;
}

/* What is in the file already. */
struct seen {
    size_t lines; /* whole ones */
    size_t at;    /* number of the line with this call's key; 0: none */
    bool torn;    /* the last line has no end */
};

/* Is it the line of a call that was acknowledged: with its key, and whole? */
static bool is_line_of(const char *head, const char *line, size_t len)
{
    size_t head_len = strlen(head);
    json_object *record;
    char *copy;

    if (!head_len || len <= head_len || memcmp(line, head, head_len) != 0)
        return false;
    copy = strndup(line, len);
    record = copy ? json_of(copy) : NULL;
    free(copy);
    json_object_put(record);
    return record != NULL;
}

static struct seen look(const char *text, size_t len, const char *head)
{
    struct seen seen = {0, 0, false};

    for (const char *line = text, *end; line < text + len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + len - line));
        if (!end) {
            seen.torn = true;
            break;
        }
        seen.lines++;
        if (!seen.at && is_line_of(head, line, (size_t)(end - line)))
            seen.at = seen.lines;
    }
    return seen;
}

/* All or nothing: 0 or an errno. */
static int append(int fd, const char *line, size_t len)
{
    off_t before = lseek(fd, 0, SEEK_END);
    size_t n = 0;

    while (n < len) {
        ssize_t put_now = write(fd, line + n, len - n);
        if (put_now < 0 && errno == EINTR)
            continue;
        if (put_now <= 0) {
            int code = errno ? errno : EIO;
            if (before < 0 || ftruncate(fd, before) != 0)
                return code; /* a line without an end: it counts as none */
            return code;
        }
        n += (size_t)put_now;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

/* {"key":"...", which begins the line of every call that has a key; "" without one. NULL: no memory. */
static char *head_of(const char *key)
{
    json_object *obj = json_object_new_object();
    bool failed = false;
    char *head;

    if (!*key) {
        json_object_put(obj);
        return strdup("");
    }
    put(&failed, obj, "key", json_object_new_string(key));
    head = text_take(obj, failed);
    if (head)
        head[strlen(head) - 1] = ','; /* for the brace */
    return head;
}

/* A line for the file, with a line break at both ends: the one before it is for a file whose last line has none. */
static char *line_of(json_object *args, const char *key)
{
    json_object *record = json_object_new_object();
    bool failed = false;
    char *text, *line;
    size_t size;

    if (*key)
        put(&failed, record, "key", json_object_new_string(key));
    put(&failed, record, "name", json_object_get(json_object_object_get(args, "name")));
    put(&failed, record, "fields", json_object_get(json_object_object_get(args, "fields")));
    text = text_take(record, failed);
    size = text ? strlen(text) + 3 : 0;
    line = text ? malloc(size) : NULL;
    if (line)
        snprintf(line, size, "\n%s\n", text);
    free(text);
    return line;
}

static int reply_line(struct rv_cap_call *call, json_object *args, size_t at)
{
    json_object *reply = json_object_new_object();
    bool failed = false;

    put(&failed, reply, "status", json_object_new_string("success"));
    put(&failed, reply, "name", json_object_get(json_object_object_get(args, "name")));
    put(&failed, reply, "line", json_object_new_int64((int64_t)at)); /* the same when it is asked for again */
    return reply_take(call, reply, failed);
}

static int keep(const struct p8 *p, struct rv_cap_call *call, json_object *args, const char *head, const char *line)
{
    struct seen seen;
    char *text = NULL;
    size_t size = 0;
    int fd = open_records(p), code, rc;

    if (fd < 0)
        return fail_file(p, call, errno);
    code = flock(fd, LOCK_EX) == 0 ? read_all(fd, &text, &size) : errno; /* other processes append to it too */
    if (code == 0) {
        seen = look(text, size, head);
        if (!seen.at) {
            line += !seen.torn;
            code = append(fd, line, strlen(line));
            seen.at = seen.lines + seen.torn + 1;
        }
    }
    rc = code ? fail_file(p, call, code) : reply_line(call, args, seen.at);
    free(text);
    close(fd);
    return rc;
}

int keep_record(void *self, struct rv_cap_call *call)
{
    const struct p8 *p = self;
    json_object *args = args_of(call);
    char *line = NULL, *head = NULL;
    int rc;

    if (!args)
        return 1;
    if (!p->records) {
        rc = call->fail(call, "NotConfigured",
                        "there is no file for records: set `records:` in the configuration of "
                        "capability \"p8\"");
    } else if (!json_object_is_type(json_object_object_get(args, "name"), json_type_string) ||
               !json_object_is_type(json_object_object_get(args, "fields"), json_type_object)) {
        rc = call->fail(call, "ValidationError", "name has to be a string and fields an object");
    } else if (!(line = line_of(args, call->idempotency_key)) || !(head = head_of(call->idempotency_key))) {
        rc = call->fail(call, "ExecutionError", "out of memory");
    } else if (strlen(line) > MAX_RECORD_BYTES) {
        rc = rv_cap_failf(call, "ValidationError", "the record has %zu bytes, at most %zu are kept", strlen(line),
                          MAX_RECORD_BYTES);
    } else {
        rc = keep(p, call, args, head, line);
    }
    free(head);
    free(line);
    json_object_put(args);
    return rc;
}
