/* read_file: lines of a text, with their numbers; for a file that is not there the name that may have been meant. */
#include "capabilities/files/files_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_NAME   128  /* bytes of a name that is compared: the time grows with its square */
#define MAX_LOOKED 1000 /* names of one folder: they are compared only for a hint */

/* --- the nearest name --- */

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* How many bytes have to be added, removed or replaced; both names are shorter than MAX_NAME. */
static size_t changes(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1], n = strlen(b);

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j], least = corner + (folded(a[i - 1]) != folded(b[j - 1]));
            if (above + 1 < least)
                least = above + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            corner = above;
            row[j] = least;
        }
    }
    return row[n];
}

/* "notes" for "notes.md" is as near as one wrong letter. */
static size_t distance(const char *wanted, const char *name)
{
    size_t n = strlen(wanted);

    return strncasecmp(wanted, name, n) == 0 && name[n] == '.' ? 1 : changes(wanted, name);
}

/* The name in the folder of a place that is most like its last part; false: none is like it. Hidden names are left
 * out. */
static bool nearest_name(const struct files *f, const struct place *place, char *out, size_t size)
{
    char wanted[MAX_PATH_BYTES];
    int fd = place->root->file ? -1 : open_parent(f, place, wanted, sizeof wanted);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t least = strlen(fd < 0 ? "" : wanted) / 3 + 1;
    const struct dirent *entry;

    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return false;
    out[0] = '\0';
    for (int i = 0; i < MAX_LOOKED && strlen(wanted) < MAX_NAME && (entry = readdir(dir)); i++) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= MAX_NAME ||
            !is_text(entry->d_name, strlen(entry->d_name)))
            continue;
        size_t far = distance(wanted, entry->d_name);
        if (far < least || (far == least && (!out[0] || strcmp(entry->d_name, out) < 0))) {
            least = far;
            snprintf(out, size, "%s", entry->d_name);
        }
    }
    closedir(dir);
    return out[0] != '\0';
}

/* --- lines --- */

struct range {
    int64_t first, last; /* wanted; both included */
};

static int64_t count_lines(const char *text, size_t len)
{
    int64_t n = len > 0 && text[len - 1] != '\n';

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

/* Lines of the range into `lines`, and all of them as one text with numbers for people and models. */
static int64_t take_lines(const char *text, size_t len, struct range want, json_object *lines, struct text *shown,
                          bool *failed)
{
    size_t at = 0;
    int64_t line = 1, taken = 0;

    for (; at < len && line <= want.last; line++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        json_object *item;

        if (line >= want.first) {
            item = json_object_new_object();
            put(failed, item, "line", json_object_new_int64(line));
            put(failed, item, "text", new_text(text + at, n > 0 && text[at + n - 1] == '\r' ? n - 1 : n));
            push(failed, lines, item);
            text_printf(shown, "%lld\t", (long long)line);
            text_add(shown, text + at, n);
            text_puts(shown, "\n");
            taken++;
        }
        at += n + 1;
    }
    return taken;
}

static json_object *evidence_of(const char *path, struct range got, const struct text *shown, bool *failed)
{
    json_object *list = json_object_new_array(), *item = json_object_new_object();
    char location[MAX_PATH_BYTES + 64];

    snprintf(location, sizeof location, "%s:%lld-%lld", path, (long long)got.first, (long long)got.last);
    put(failed, item, "location", json_object_new_string(location));
    put(failed, item, "content", new_text(shown->ptr ? shown->ptr : "", shown->len));
    put(failed, item, "relevance", json_object_new_string("read"));
    put(failed, item, "confidence", new_decimal(1.0));
    push(failed, list, item);
    return list;
}

static int reply_lines(struct rv_cap_call *call, const char *path, const char *text, size_t len, struct range want)
{
    json_object *reply = json_object_new_object(), *lines = json_object_new_array();
    struct text shown = {0};
    int64_t total = count_lines(text, len), taken;
    bool failed = false, truncated;

    if (want.last > total)
        want.last = total;
    truncated = want.last - want.first + 1 > MAX_READ_LINES;
    if (truncated)
        want.last = want.first + MAX_READ_LINES - 1;
    taken = take_lines(text, len, want, lines, &shown, &failed);
    want.last = want.first + taken - 1;
    put(&failed, reply, "path", json_object_new_string(path));
    put(&failed, reply, "start_line", json_object_new_int64(want.first));
    put(&failed, reply, "end_line", json_object_new_int64(want.last));
    put(&failed, reply, "total_lines", json_object_new_int64(total));
    put(&failed, reply, "truncated", json_object_new_boolean(truncated));
    put(&failed, reply, "lines", lines);
    put(&failed, reply, "evidence", evidence_of(path, want, &shown, &failed));
    failed |= shown.failed;
    free(shown.ptr);
    return reply_take(call, reply, failed);
}

static int fail_unread(const struct files *f, struct rv_cap_call *call, const char *path, const struct place *place,
                       const char *type, const char *why)
{
    char name[MAX_PATH_BYTES];

    if (strcmp(type, "NotFoundError") != 0)
        return rv_cap_failf(call, type, "file \"%s\": %s", path, why);
    if (nearest_name(f, place, name, sizeof name))
        return rv_cap_failf(call, type, "file \"%s\": %s; its folder has \"%s\"", path, why, name);
    return rv_cap_failf(call, type, "file \"%s\": %s; list_files shows those that are there", path, why);
}

int read_file(void *self, struct rv_cap_call *call)
{
    const struct files *f = self;
    json_object *args = args_parse(call);
    const char *path = arg_path(args), *type = NULL, *why = NULL;
    struct range want = {arg_int(args, "start_line", 1), arg_int(args, "end_line", INT64_MAX)};
    struct place place;
    char *text = NULL;
    size_t len = 0;
    int rc = 1;

    if (!args)
        return 1;
    if (!place_of(f, call, path, &place))
        goto done;
    text = read_text(f, &place, &len, &type, &why);
    if (!text)
        rc = fail_unread(f, call, path, &place, type, why);
    else if (want.first < 1)
        rc = rv_cap_failf(call, "ValidationError", "start_line must be 1 or more, not %lld: the first line is 1",
                          (long long)want.first);
    else if (want.last < want.first)
        rc = rv_cap_failf(call, "ValidationError", "end_line %lld is before start_line %lld", (long long)want.last,
                          (long long)want.first);
    else if (want.first > 1 && want.first > count_lines(text, len))
        rc = rv_cap_failf(call, "ValidationError", "file \"%s\" has %lld lines, start_line is %lld", path,
                          (long long)count_lines(text, len), (long long)want.first);
    else
        rc = reply_lines(call, path, text, len, want);
done:
    free(text);
    json_object_put(args);
    return rc;
}
