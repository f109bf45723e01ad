/* Any bytes as the file of a batch: every line that is not blank is handed out once, in order; what it says is a state
 * and the id of a run, or an error whose result is one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coreengine/app/batch/batch_internal.h"
#include "tests/kit/fuzz.h"

/* A line as the plainest reader sees it. False: there is none. */
static bool plain_next(const char **at, const char *end, int64_t *number, rv_str *line)
{
    while (*at < end) {
        const char *stop = memchr(*at, '\n', (size_t)(end - *at));
        *line = (rv_str){*at, (size_t)((stop ? stop : end) - *at)};
        *at = stop ? stop + 1 : end;
        ++*number;
        for (size_t i = 0; i < line->len; i++)
            if (!strchr(" \t\r", line->ptr[i]) || line->ptr[i] == '\0')
                return true;
    }
    return false;
}

static void read_line(struct batch_line *line, rv_str text)
{
    const struct batch_seed seed = {.bundle = "b", .tenant = "t", .name = ""};
    rv_buf out = RV_BUF_INIT((size_t)64 << 20);
    json_object *result = NULL;
    rv_err *err = NULL;
    int rc = batch_line_read(line, text, NULL, &seed, &err);

    require((rc == 0) == (err == NULL));
    require(rc == 0 || rc == RV_E_PARSE || rc == RV_E_INVALID || rc == RV_E_LIMIT);
    if (rc == 0)
        require(strlen(line->run) == 38 && json_object_is_type(line->state, json_type_object));
    else
        require(batch_line_write_error(line, "failed", err, &out, NULL) == 0);
    if (rc < 0) {
        require(memchr(out.ptr, '\n', out.len) == out.ptr + out.len - 1);
        require(rv_json_parse(rv_buf_str(&out), NULL, &result, NULL) == 0);
    }
    json_object_put(result);
    rv_buf_fini(&out);
    rv_err_free(err);
}

RV_FUZZ_TARGET(batch)
{
    const char *at = (const char *)data, *end = at + size;
    struct batch_reader r;
    enum batch_read what;
    rv_str line, wanted;
    int64_t number = 0;
    char path[64];
    int fd = memfd_create("batch", MFD_CLOEXEC);

    require(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(batch_reader_open(path, &r, NULL) == 0);
    while (plain_next(&at, end, &number, &wanted)) {
        struct batch_line read = {.file = "f", .number = number};
        require(batch_reader_next(&r, &what, &line, NULL) == 0 && what == BATCH_LINE);
        require(r.number == number && line.len == wanted.len && memcmp(line.ptr, wanted.ptr, line.len) == 0);
        read_line(&read, line);
        batch_line_fini(&read);
    }
    require(batch_reader_next(&r, &what, &line, NULL) == 0 && what == BATCH_END);
    batch_reader_close(&r);
    close(fd);
    return 0;
}
