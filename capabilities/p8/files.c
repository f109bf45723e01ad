/* get_file and read_resource: what an uploaded file says, as rows or as text; and things by their address. */
#include "capabilities/p8/p8_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_SHOWN ((size_t)2 << 20) /* bytes of one file that are shown: what is beyond is left out, and said to be */
/* of a sheet that are shown: a model fills its context with more; further ones are left out */
#define MAX_COLUMNS 1000

static bool is_uuid(const char *s)
{
    for (size_t i = 0; i < 36; i++)
        if ((i == 8 || i == 13 || i == 18 || i == 23) ? s[i] != '-' : !isxdigit((unsigned char)s[i]))
            return false;
    return s[36] == '\0';
}

static json_object *row_or_none(struct tool *t, const char *kind, const char *id)
{
    json_object *row = row_of(t, kind, id);

    if (!row)
        tool_forgive(t, NOT_FOUND);
    return row;
}

/* The file of that id, or the one that a moment of that id tells of. The caller's. */
static json_object *find_file(struct tool *t, const char *id)
{
    json_object *file, *moment;
    const char *other;

    if (!is_uuid(id))
        return tool_fail(t, BAD_ARGUMENTS, "Invalid file_id: %s", id);
    file = row_or_none(t, "files", id);
    if (file || t->code)
        return file;
    moment = row_or_none(t, "moments", id);
    other = text_in(member(moment, "metadata"), "file_id");
    if (other && is_uuid(other))
        file = row_or_none(t, "files", other);
    json_object_put(moment);
    return file ? file : tool_fail(t, NOT_FOUND, "File not found: %s", id);
}

/* --- rows --- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = s ? strlen(s) : 0, m = strlen(end);

    return n >= m && strcasecmp(s + n - m, end) == 0;
}

/* ',' or a tab; '\0': the file is text. */
static char separator_of(json_object *file)
{
    const char *mime = text_in(file, "mime_type"), *name = text_in(file, "name"), *uri = text_in(file, "uri");

    if (ends_with(name, ".tsv") || ends_with(uri, ".tsv") || (mime && strcasestr(mime, "tab-separated")))
        return '\t';
    return ends_with(name, ".csv") || ends_with(uri, ".csv") || (mime && strcasestr(mime, "csv")) ? ',' : '\0';
}

/* The next cell of a table, which ends before *end; cell has room for all of the text. */
static void read_cell(const char **at, char separator, char *cell)
{
    const char *s = *at;
    bool quoted = *s == '"';

    s += quoted;
    while (*s && (quoted || (*s != separator && *s != '\n' && !(*s == '\r' && s[1] == '\n')))) {
        if (quoted && *s == '"') {
            if (s[1] != '"') { /* the end; what follows it is a part of the cell */
                quoted = false;
                s++;
                continue;
            }
            s++;
        }
        *cell++ = *s++;
    }
    *cell = '\0';
    *at = s;
}

static json_object *read_row(struct tool *t, const char **at, char separator, char *cell)
{
    json_object *row = json_object_new_array();

    for (;;) {
        read_cell(at, separator, cell);
        if (length(row) < MAX_COLUMNS)
            push(t, row, text(cell));
        if (**at != separator || !separator)
            break;
        (*at)++;
    }
    *at += **at == '\r';
    *at += **at == '\n';
    return row;
}

static json_object *object_of(struct tool *t, json_object *columns, json_object *cells)
{
    json_object *row = json_object_new_object();

    for (size_t i = 0; i < length(columns); i++)
        add(t, row, json_object_get_string(item(columns, i)), json_object_get(item(cells, i) ? item(cells, i) : NULL));
    return row;
}

static json_object *table_of(struct tool *t, json_object *result, const char *s, char separator, int64_t head)
{
    char *cell = malloc(strlen(s) + 1);
    json_object *columns, *rows = json_object_new_array();
    bool is_cut = false;
    const char *at = s;

    t->no_memory = t->no_memory || !cell;
    columns = cell && *at ? read_row(t, &at, separator, cell) : json_object_new_array();
    while (cell && *at && !is_cut && (head <= 0 || (int64_t)length(rows) < head)) {
        json_object *cells = read_row(t, &at, separator, cell);
        if (length(cells) > 1 || json_object_get_string_len(item(cells, 0)) > 0) /* no empty line */
            push(t, rows, object_of(t, columns, cells));
        json_object_put(cells);
        is_cut = (size_t)(at - s) > MAX_SHOWN || length(rows) * length(columns) > 200000;
    }
    if (length(rows) == 0) {
        json_object_put(columns);
        columns = json_object_new_array();
    }
    add(t, result, "columns", columns);
    add(t, result, "row_count", json_object_new_int64((int64_t)length(rows)));
    add(t, result, "rows", rows);
    if (is_cut && *at)
        add(t, result, "truncated", json_object_new_boolean(1));
    free(cell);
    return result;
}

/* --- text --- */

static json_object *text_of(struct tool *t, json_object *result, const char *s, int64_t head)
{
    size_t len = strlen(s), end = 0;
    int64_t lines = 0;

    while (end < len && (head <= 0 || lines < head)) {
        const char *lf = memchr(s + end, '\n', len - end);
        end = lf ? (size_t)(lf - s) + 1 : len;
        lines++;
    }
    if (head > 0 && end > 0 && s[end - 1] == '\n')
        end--;
    add(t, result, "line_count", json_object_new_int64(lines));
    len = end > MAX_SHOWN ? MAX_SHOWN : end;
    while (len < end && len > 0 && !is_utf8(s, len))
        len--;
    add(t, result, "content", json_object_new_string_len(s, (int)len));
    if (len < end)
        add(t, result, "truncated", json_object_new_boolean(1));
    return result;
}

static json_object *show_file(struct tool *t, json_object *file, int64_t head)
{
    const char *content = text_in(file, "parsed_content");
    char separator = separator_of(file);
    json_object *result;

    if (!content)
        return tool_fail(t, NOT_FOUND, "File has no content or storage URI");
    result = success(t, "ok");
    add(t, result, "format", text(separator ? "csv" : "text"));
    add(t, result, "file_id", json_object_get(member(file, "id")));
    add(t, result, "name", json_object_get(member(file, "name")));
    return separator ? table_of(t, result, content, separator, head) : text_of(t, result, content, head);
}

static json_object *file_of(struct tool *t, const char *id, int64_t head)
{
    json_object *file = find_file(t, id), *result = file ? show_file(t, file, head) : NULL;

    json_object_put(file);
    return result;
}

static json_object *get(struct tool *t, const void *self)
{
    const char *id = arg_text(t, "file_id", true);
    int64_t head = arg_int(t, "head", 0);

    (void)self;
    return t->code ? NULL : file_of(t, id, head);
}

int get_file(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, get);
}

/* --- by address --- */

static json_object *read(struct tool *t, const void *self)
{
    const char *uri = arg_text(t, "uri", true);

    if (t->code)
        return NULL;
    if (strcmp(uri, "user://profile") == 0)
        return user_profile(t, self);
    if (strncmp(uri, "files://", 8) == 0)
        return file_of(t, uri + 8, 0);
    return tool_fail(t, NOT_FOUND, "there is no resource %s: there are user://profile and files://{file_id}", uri);
}

int read_resource(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, "uri", read);
}
