/* Files that belong to a message: a path becomes an attachment (a picture, a PDF) or a part of the message's text (any
 * text), and kept attachments are told in words. The bytes decide the type, not the name. Nothing of a file that
 * is refused is sent. */
#include "coreengine/base/base.h"
#include "coreengine/cli/chat/chat_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_ATTACHED ((size_t)8 << 20) /* bytes of all files of a message: a row has room for them as base64 */
#define MAX_TEXT     ((size_t)1 << 20) /* bytes of the text files: about 250,000 tokens, which few models take in */
#define MAX_NAME     255               /* bytes: as the name of an attachment in a request */

/* --- the type, by the first bytes --- */

static const char *binary_type(rv_str bytes)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *type;
    } types[] = {{"\x89PNG\r\n\x1a\n", 8, "image/png"},
                 {"\xff\xd8\xff", 3, "image/jpeg"},
                 {"GIF87a", 6, "image/gif"},
                 {"GIF89a", 6, "image/gif"},
                 {"%PDF-", 5, "application/pdf"}};

    for (size_t i = 0; i < RV_COUNT(types); i++)
        if (bytes.len > types[i].len && memcmp(bytes.ptr, types[i].magic, types[i].len) == 0)
            return types[i].type;
    if (bytes.len > 12 && memcmp(bytes.ptr, "RIFF", 4) == 0 && memcmp(bytes.ptr + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

static bool reads_as_text(rv_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        if (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f')
            return false;
    }
    return rv_utf8_valid(bytes, NULL);
}

/* --- the path, as it is typed or dropped onto the terminal --- */

static void unquote(rv_str typed, rv_buf *out)
{
    rv_str s = rv_str_trim(typed);
    const char *home = getenv("HOME");
    bool quoted = s.len >= 2 && (s.ptr[0] == '\'' || s.ptr[0] == '"') && s.ptr[s.len - 1] == s.ptr[0];

    if (quoted) {
        rv_buf_add_str(out, (rv_str){s.ptr + 1, s.len - 2});
        return;
    }
    if (home && s.len >= 2 && s.ptr[0] == '~' && s.ptr[1] == '/') {
        rv_buf_puts(out, home);
        s = (rv_str){s.ptr + 1, s.len - 1};
    }
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\\' && i + 1 < s.len)
            i++;
        rv_buf_putc(out, s.ptr[i]);
    }
}

/* The path of a file that is there: as it is typed, else as a shell would read it. */
static int find_file(const char *typed, rv_buf *out, rv_err **err)
{
    struct stat st;

    rv_buf_puts(out, typed);
    if (out->rc == 0 && stat(typed, &st) < 0) {
        rv_buf_clear(out);
        unquote(rv_str_of(typed), out);
    }
    return rv_buf_check(out, "a path", err);
}

static int read_file(const char *path, size_t max, rv_buf *out, rv_err **err)
{
    struct stat st;

    *out = RV_BUF_INIT(max);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a pipe would wait for a writer, a device may never end */
        RV_IGNORE(RV_FAIL(err, RV_E_INVALID, "cannot attach \"%s\": it is %s", path,
                          S_ISDIR(st.st_mode) ? "a folder" : "not a regular file"),
                  "the hint comes behind it");
        rv_err_set_hint(err, "attach files one by one");
        return RV_E_INVALID;
    }
    int rc = rv_file_read(path, out, err);
    if (rc == RV_E_LIMIT) {
        rv_err_free(rv_err_steal(err));
        RV_IGNORE(RV_FAIL(err, RV_E_LIMIT, "cannot attach \"%s\": the files of a message have at most %zu MiB", path,
                          MAX_ATTACHED >> 20),
                  "the hint comes behind it");
        rv_err_set_hint(err,
                        "send a smaller picture or a part of the file; `reeve ingest` reads large ones for search");
    }
    return rc;
}

/* --- into a message --- */

static size_t bytes_of(json_object *attachment)
{
    json_object *data = NULL;

    json_object_object_get_ex(attachment, "data", &data);
    rv_str text = rv_json_str(data);
    size_t pads = 0;
    while (pads < 2 && pads < text.len && text.ptr[text.len - 1 - pads] == '=')
        pads++;
    return text.len / 4 * 3 - pads;
}

static size_t bytes_of_all(json_object *attachments)
{
    size_t n = 0;

    for (size_t i = 0; attachments && i < json_object_array_length(attachments); i++)
        n += bytes_of(json_object_array_get_idx(attachments, i));
    return n;
}

/* A name as a request may have it; empty: the file has none that fits. */
static rv_str name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    rv_str name = rv_str_of(slash ? slash + 1 : path);

    if (name.len > MAX_NAME || !rv_utf8_valid(name, NULL))
        return (rv_str){"", 0};
    for (size_t i = 0; i < name.len; i++)
        if (rv_utf8_control(name.ptr + i, name.len - i) > 0)
            return (rv_str){"", 0};
    return name;
}

static void write_size(int64_t bytes, rv_buf *b)
{
    rv_buf_puts(b, ", ");
    cli_write_bytes(b, bytes);
}

static int add_binary(struct rv_cli_chat *c, rv_str name, const char *type, rv_str bytes, rv_err **err)
{
    json_object *list = c->attached, *made = NULL, *item = json_object_new_object();
    rv_buf data = RV_BUF_INIT(2 * MAX_ATTACHED);
    int rc = item ? 0 : RV_FAIL(err, RV_E_NOMEM, "attach a file");

    if (!list)
        list = made = json_object_new_array();
    if (rc == 0 && !list)
        rc = RV_FAIL(err, RV_E_NOMEM, "attach a file");
    rv_base64_write(bytes, &data);
    if (rc == 0)
        rc = rv_buf_check(&data, "an attachment", err);
    if (rc == 0)
        rc = rv_json_set_str(item, "data", rv_buf_str(&data), err);
    if (rc == 0)
        rc = rv_json_set_text(item, "media_type", type, err);
    if (rc == 0 && name.len > 0)
        rc = rv_json_set_str(item, "name", name, err);
    if (rc == 0)
        rc = rv_attachments_add(list, item, err);
    if (rc == 0)
        c->attached = list;
    else
        json_object_put(made);
    json_object_put(item);
    rv_buf_fini(&data);
    return rc;
}

/* A fence that no line of the text can end. */
static size_t fence_of(rv_str text)
{
    size_t longest = 2, run = 0;

    for (size_t i = 0; i < text.len; i++) {
        run = text.ptr[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest + 1;
}

/* Text stands in the message, so that every model can read it and later turns still have it. */
static int add_text(struct rv_cli_chat *c, rv_str name, rv_str text, rv_err **err)
{
    size_t before = c->attached_text.len, fence = fence_of(text);

    if (before + text.len > MAX_TEXT) {
        RV_IGNORE(RV_FAIL(err, RV_E_LIMIT, "cannot attach \"%.*s\": the text files of a message have at most %zu MiB",
                          RV_STR_ARG(name), MAX_TEXT >> 20),
                  "the hint comes behind it");
        rv_err_set_hint(err, "attach the part that the question is about; `reeve ingest` reads large files for search");
        return RV_E_LIMIT;
    }
    rv_buf_printf(&c->attached_text, "\n\nFile %.*s:\n\n", RV_STR_ARG(name));
    for (size_t i = 0; i < fence; i++)
        rv_buf_putc(&c->attached_text, '`');
    rv_buf_putc(&c->attached_text, '\n');
    rv_buf_add_str(&c->attached_text, text);
    if (text.len > 0 && text.ptr[text.len - 1] != '\n')
        rv_buf_putc(&c->attached_text, '\n');
    for (size_t i = 0; i < fence; i++)
        rv_buf_putc(&c->attached_text, '`');
    return rv_buf_check(&c->attached_text, "an attached text", err);
}

static int add_file(struct rv_cli_chat *c, const char *path, rv_buf *told, rv_err **err)
{
    rv_buf bytes = {0};
    rv_str name = name_of(path);
    int rc = read_file(path, MAX_ATTACHED - bytes_of_all(c->attached), &bytes, err);
    rv_str all = rv_buf_str(&bytes);
    const char *type = rc == 0 ? binary_type(all) : NULL;

    if (rc == 0 && all.len == 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "cannot attach \"%s\": the file is empty", path);
        rv_err_set_hint(err, "check the path, or wait until the program that writes it is done");
    } else if (rc == 0 && !type && !reads_as_text(all)) {
        rc = RV_FAIL(err, RV_E_INVALID, "cannot attach \"%s\": models take PNG, JPEG, GIF, WebP, PDF and UTF-8 text",
                     path);
        rv_err_set_hint(err, "convert it to one of these");
    }
    if (rc == 0)
        rc = type ? add_binary(c, name, type, all, err) : add_text(c, name, all, err);
    if (rc == 0) {
        size_t before = told->len;
        rv_buf_puts(told, "attached ");
        cli_write_safe(rv_str_of(path), told);
        rv_buf_printf(told, ": %s", type ? type : "text");
        write_size((int64_t)all.len, told);
        rv_buf_putc(told, '\n');
        if (!type && told->rc == 0)
            rv_buf_puts(&c->attached_names, rv_buf_cstr(told) + before);
    }
    rv_buf_fini(&bytes);
    return rc;
}

/* --- of messages that are kept --- */

int cli_chat_attached_of(const struct rv_message *m, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {.what = "metadata", .max_bytes = SIZE_MAX / 2};
    json_object *metadata = NULL;
    int rc = m->metadata.len > 0 ? rv_json_parse(m->metadata, &opts, &metadata, err) : 0;

    *out = rc == 0 && metadata ? json_object_get(rv_json_get_arr(metadata, "attachments")) : NULL;
    json_object_put(metadata);
    return rc;
}

void cli_chat_write_attached(json_object *attachments, const char *head, rv_buf *b)
{
    for (size_t i = 0; attachments && i < json_object_array_length(attachments); i++) {
        json_object *a = json_object_array_get_idx(attachments, i);
        const char *name = rv_json_text_or(a, "name", ""), *url = rv_json_text_or(a, "url", "");
        rv_buf_puts(b, head);
        cli_write_preview(rv_str_of(name[0] ? name : url[0] ? url : rv_json_text_or(a, "type", "file")), MAX_NAME, b);
        if (rv_json_text_or(a, "media_type", "")[0]) {
            rv_buf_puts(b, ": ");
            cli_write_preview(rv_str_of(rv_json_text_or(a, "media_type", "")), MAX_NAME, b);
        }
        if (!url[0])
            write_size((int64_t)bytes_of(a), b);
        rv_buf_putc(b, '\n');
    }
}

static int find_attached(void *self, const struct rv_message *m, rv_err **err)
{
    json_object **found = self;
    int rc = rv_message_type_of(rv_str_of(m->type)) == RV_MESSAGE_USER ? cli_chat_attached_of(m, found, err) : 0;

    return rc < 0 ? rc : *found ? RV_STORE_ENOUGH : 0;
}

static int attach_again(struct rv_cli_chat *c, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_message_filter newest = {.newest_first = true, .for_agents = true}; /* a model is sent it */
    json_object *found = NULL;
    rv_err *cause = NULL;
    int rc = rv_store_read_messages(c->in.store, &scope,
                                    &(const struct rv_messages_of){rv_chat_session(c->in.chat), &newest}, find_attached,
                                    &found, &cause);

    if (rc < 0 && rc != RV_E_NOT_FOUND) { /* a session is made with its first turn */
        rv_err_pass(err, cause);
        return rc;
    }
    rv_err_free(cause);
    if (!found) {
        rc = RV_FAIL(err, RV_E_STATE, "no message of the session has a picture or a PDF");
        rv_err_set_hint(err, "name a file; text files stand in their message, and the model still has them");
        return rc;
    }
    json_object_put(c->attached);
    c->attached = found;
    return 0;
}

/* --- what a person says of them --- */

static int attach_file(struct rv_cli_chat *c, const char *typed, rv_buf *told, rv_err **err)
{
    rv_buf found = RV_BUF_INIT(PATH_MAX);
    int rc = find_file(typed, &found, err);

    if (rc == 0)
        rc = add_file(c, rv_buf_cstr(&found), told, err);
    rv_buf_fini(&found);
    return rc;
}

static void tell(const struct rv_cli_chat *c, rv_buf *told)
{
    size_t before = told->len;

    cli_chat_write_attached(c->attached, "attached ", told);
    rv_buf_add_str(told, rv_buf_str(&c->attached_names));
    if (told->len == before)
        rv_buf_puts(told, "nothing is attached to the next message\n");
}

int cli_chat_attach(struct rv_cli_chat *c, const char *what, rv_buf *told, rv_err **err)
{
    int rc = 0;

    if (strcmp(what, "again") == 0) {
        rc = attach_again(c, err);
    } else if (strcmp(what, "-") == 0) {
        json_object_put(c->attached);
        c->attached = NULL;
        rv_buf_clear(&c->attached_text);
        rv_buf_clear(&c->attached_names);
    } else if (what[0]) {
        return attach_file(c, what, told, err);
    }
    if (rc == 0)
        tell(c, told);
    return rc;
}
