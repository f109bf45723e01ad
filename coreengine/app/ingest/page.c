/* One file: reads its text and makes its rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/ingest/ingest_internal.h"
#include "coreengine/conversation/conversation.h"
#include "coreengine/match/match.h"

#define MAX_NAME   ((size_t)RV_ENTITY_MAX_NAME)
#define MAX_KEYS   1000 /* of chunks, in the metadata of the moment: all lists of moments read them */
#define CHUNK_NAME "%s-chunk-%04zu"

/* --- reading --- */

void app_ingest_write_uri(const char *scheme, const char *real, rv_buf *out)
{
    rv_buf_puts(out, scheme);
    for (const char *p = real; *p; p++)
        if (rv_is_letter(*p) || rv_is_digit(*p) || strchr("/-._~", *p) || (unsigned char)*p >= 0x80)
            rv_buf_putc(out, *p);
        else
            rv_buf_printf(out, "%%%02X", (unsigned char)*p);
}

/* Where the text stops being text, or -1. */
static int64_t first_bad(rv_str text)
{
    size_t bad = 0;
    const char *nul = text.len ? memchr(text.ptr, 0, text.len) : NULL;

    if (!rv_utf8_valid(text, &bad))
        return nul && (size_t)(nul - text.ptr) < bad ? nul - text.ptr : (int64_t)bad;
    return nul ? nul - text.ptr : -1;
}

static int check_text(struct page *page, rv_err **err)
{
    rv_str text = rv_utf8_unmark(rv_buf_str(&page->text));

    if (text.len < page->text.len) {
        memmove(page->text.ptr, text.ptr, text.len);
        rv_buf_truncate(&page->text, text.len);
        text = rv_buf_str(&page->text);
    }
    int64_t bad = first_bad(text);
    if (bad < 0)
        return 0;
    RV_FAIL(err, RV_E_INVALID, "\"%s\" is not text: byte %lld is %s", page->path, (long long)bad + 1,
            text.ptr[bad] ? "not UTF-8" : "NUL, which a text does not have");
    rv_err_set_hint(err, "convert it to UTF-8 text, or leave it out");
    return RV_E_INVALID;
}

static int read_text(struct page *page, rv_err **err)
{
    rv_err *why = NULL;
    int rc = rv_file_read(page->path, &page->text, &why);

    if (rc == RV_E_LIMIT) {
        rv_err_free(why);
        RV_FAIL(err, RV_E_LIMIT, "\"%s\" has more than %zu MB", page->path, RV_INGEST_MAX_FILE >> 20);
        rv_err_set_hint(err, "split it into files of chapters or months");
    } else if (rc < 0) {
        rv_err_pass(err, why);
    } else {
        rv_err_free(why);
    }
    return rc;
}

static struct page page_of(const char *path)
{
    const char *mime = app_ingest_mime(path);

    return (struct page){.path = path,
                         .uri = RV_BUF_INIT(RV_INGEST_MAX_URI),
                         .folder = RV_BUF_INIT(MAX_NAME),
                         .text = RV_BUF_INIT(RV_INGEST_MAX_FILE),
                         .mime = mime ? mime : "text/plain"};
}

static void write_folder(const char *place, rv_buf *out)
{
    const char *end = strrchr(place, '/'), *begin = end;

    while (begin && begin > place && begin[-1] != '/')
        begin--;
    if (begin)
        rv_buf_add(out, begin, (size_t)(end - begin));
}

/* What follows from its place and its text. */
static int name_page(const char *scheme, const char *place, const char *user, struct page *out, rv_err **err)
{
    rv_buf name = RV_BUF_INIT(MAX_NAME);
    int rc = check_text(out, err);

    if (rc == 0) {
        app_ingest_write_uri(scheme, place, &out->uri);
        rv_page_write_name(rv_str_of(place), &name);
        write_folder(place, &out->folder);
        rc = rv_buf_check(&out->uri, "address of the file", err);
    }
    if (rc == 0)
        rc = rv_buf_check(&name, "name of the file", err);
    if (rc == 0)
        rc = rv_buf_check(&out->folder, "name of the folder", err);
    if (rc == 0 && !(out->name = rv_buf_steal(&name, NULL)))
        rc = RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", out->path);
    if (rc == 0) {
        rv_hash_format(rv_buf_str(&out->text), out->hash);
        rv_entity_make_id("files", rv_buf_str(&out->uri), user, out->id);
    }
    rv_buf_fini(&name);
    return rc;
}

int app_page_read(const char *path, const char *user, struct page *out, rv_err **err)
{
    char *real = realpath(path, NULL);

    *out = page_of(path);
    int rc = real ? 0 : RV_FAIL_SYSTEM(err, errno, "\"%s\"", path);
    if (rc == 0 && !rv_utf8_valid(rv_str_of(real), NULL))
        rc = RV_FAIL(err, RV_E_INVALID, "the name of \"%s\" is not UTF-8", path);
    if (rc == 0)
        rc = read_text(out, err);
    if (rc == 0)
        rc = name_page("file://", real, user, out, err);
    if (rc < 0)
        app_page_fini(out);
    free(real);
    return rc;
}

/* Segments with something in them, none of which leads elsewhere. */
static bool is_plain_path(const char *path)
{
    if (!*path || strlen(path) > MAX_NAME)
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '/' && !*++p)
            return false;
    }
    return true;
}

int app_page_sent(const char *path, rv_str text, const char *user, struct page *out, rv_err **err)
{
    *out = page_of(path);
    int rc = is_plain_path(path) ? 0
                                 : RV_FAIL(err, RV_E_INVALID,
                                           "\"%.200s\" is not the path of a file: write "
                                           "names with / between them",
                                           path);
    rv_buf_add_str(&out->text, text);
    if (rc == 0)
        rc = rv_buf_check(&out->text, "the text", err);
    if (rc == 0)
        rc = name_page("upload:///", path, user, out, err);
    if (rc < 0)
        app_page_fini(out);
    return rc;
}

void app_page_fini(struct page *page)
{
    rv_buf_fini(&page->uri);
    rv_buf_fini(&page->text);
    rv_buf_fini(&page->folder);
    free(page->name);
    *page = (struct page){0};
}

/* --- rows --- */

static void set_text(struct rv_json_build *b, json_object *to, const char *key, rv_str text)
{
    rv_json_build(b, to, key, json_object_new_string_len(text.ptr ? text.ptr : "", (int)text.len));
}

static json_object *add_object(struct rv_json_build *b, json_object *to, const char *key)
{
    return rv_json_build(b, to, key, json_object_new_object());
}

static void build_file(struct rv_json_build *b, const struct page *page, size_t n_chunks, json_object *file)
{
    rv_json_build_buf(b, file, "uri", &page->uri);
    rv_json_build_text(b, file, "name", page->name);
    rv_json_build_text(b, file, "mime_type", page->mime);
    rv_json_build_int(b, file, "size_bytes", (int64_t)page->text.len);
    rv_json_build_buf(b, file, "parsed_content", &page->text);
    rv_json_build_text(b, file, "processing_status", "completed");
    json_object *metadata = add_object(b, file, "metadata");
    rv_json_build_text(b, metadata, "sha256", page->hash);
    rv_json_build_int(b, metadata, "chunk_count", (int64_t)n_chunks);
    rv_json_build_int(b, metadata, "chunk_chars", (int64_t)page->chunk_chars);
    rv_json_build_int(b, metadata, "chunk_overlap", (int64_t)page->overlap);
}

static void build_chunk(struct rv_json_build *b, const struct page *page, size_t i, rv_str text, json_object *chunk)
{
    rv_buf words = RV_BUF_INIT(RV_INGEST_MAX_URI + MAX_NAME);
    const char *slash = strrchr(page->path, '/');

    rv_buf_printf(&words, CHUNK_NAME, page->name, i);
    rv_json_build_buf(b, chunk, "name", &words);
    rv_buf_clear(&words);
    rv_buf_printf(&words, "%s#chunk-%04zu", rv_buf_cstr(&page->uri), i);
    rv_json_build_buf(b, chunk, "uri", &words);
    rv_json_build_int(b, chunk, "ordinal", (int64_t)i);
    set_text(b, chunk, "content", text);
    json_object *metadata = add_object(b, chunk, "metadata");
    rv_json_build_text(b, metadata, "file_id", page->id);
    rv_json_build_text(b, metadata, "source_filename", slash ? slash + 1 : page->path);
    rv_json_build_buf(b, metadata, "source_uri", &page->uri);
    json_object *edge = add_object(b, rv_json_build(b, chunk, "graph_edges", json_object_new_array()), NULL);
    rv_json_build_text(b, edge, "target", page->name);
    rv_json_build_text(b, edge, "relation", "chunk_of");
    rv_buf_fini(&words);
}

/* The first characters of the text, white space at its begin left out, and an ellipsis if there is more. */
static void write_summary(const struct page *page, rv_buf *out)
{
    rv_str text = rv_buf_str(&page->text);
    const char *slash = strrchr(page->path, '/');

    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]))
        text = (rv_str){text.ptr + 1, text.len - 1};
    rv_str first = rv_utf8_first(text, RV_INGEST_SUMMARY);
    rv_buf_add_str(out, first);
    if (first.len < text.len)
        rv_buf_puts(out, "…");
    if (first.len == 0)
        rv_buf_printf(out, "Uploaded %s", slash ? slash + 1 : page->path);
}

static void build_moment(struct rv_json_build *b, const struct page *page, size_t n_chunks, int64_t now_us,
                         json_object *moment)
{
    rv_buf words = RV_BUF_INIT(MAX_NAME + RV_INGEST_SUMMARY * 4 + 100);
    const char *slash = strrchr(page->path, '/');
    char time[RV_TIME_MAX];

    rv_buf_printf(&words, "upload-%s", page->name);
    rv_json_build_buf(b, moment, "name", &words);
    rv_json_build_text(b, moment, "moment_type", "content_upload");
    rv_buf_clear(&words);
    write_summary(page, &words);
    rv_json_build_buf(b, moment, "summary", &words);
    rv_time_format(now_us, time);
    rv_json_build_text(b, moment, "starts_timestamp", time);
    json_object *metadata = add_object(b, moment, "metadata");
    rv_json_build_text(b, metadata, "file_id", page->id);
    rv_json_build_text(b, metadata, "file_name", slash ? slash + 1 : page->path);
    rv_json_build_text(b, metadata, "source", "upload");
    rv_json_build_int(b, metadata, "chunk_count", (int64_t)n_chunks);
    rv_json_build_int(b, metadata, "char_count", (int64_t)rv_utf8_count(rv_buf_str(&page->text)));
    json_object *keys = rv_json_build(b, metadata, "resource_keys", json_object_new_array());
    for (size_t i = 0; i < n_chunks && i < MAX_KEYS && b->rc == 0; i++) {
        rv_buf_clear(&words);
        rv_buf_printf(&words, CHUNK_NAME, page->name, i);
        rv_json_build_buf(b, keys, NULL, &words);
    }
    rv_buf_fini(&words);
}

static int build_links(const struct page *page, json_object *file, rv_err **err)
{
    json_object *edges = NULL;
    int rc = strcmp(page->mime, "text/markdown") == 0
                 ? rv_page_build_links(rv_buf_str(&page->text), rv_str_of(page->path), &edges, err)
             : (edges = json_object_new_array()) ? 0
                                                 : RV_FAIL(err, RV_E_NOMEM, "list links");

    return rc == 0 ? rv_json_set_take(file, "graph_edges", edges, err) : rc;
}

int app_page_rows(const struct page *page, int64_t now_us, struct page_rows *out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    struct rv_chunks chunks = {0};
    int rc = rv_chunks_build(rv_buf_str(&page->text), page->chunk_chars, page->overlap, &chunks, err);

    *out = (struct page_rows){.file = json_object_new_object(), .moment = json_object_new_object()};
    if (rc == 0 && (!out->file || !out->moment || !(out->chunks = calloc(chunks.n + 1, sizeof *out->chunks))))
        rc = RV_FAIL(err, RV_E_NOMEM, "make rows");
    if (rc == 0) {
        build_file(&b, page, chunks.n, out->file);
        build_moment(&b, page, chunks.n, now_us, out->moment);
        rc = b.rc;
    }
    if (rc == 0)
        rc = build_links(page, out->file, err);
    for (; rc == 0 && out->n_chunks < chunks.n; out->n_chunks++) {
        json_object *chunk = json_object_new_object();
        if (!chunk) {
            rc = RV_FAIL(err, RV_E_NOMEM, "make rows");
            break;
        }
        out->chunks[out->n_chunks] = chunk;
        build_chunk(&b, page, out->n_chunks, chunks.at[out->n_chunks], chunk);
        rc = b.rc;
    }
    rv_chunks_fini(&chunks);
    if (rc < 0)
        app_page_rows_fini(out);
    return rc;
}

void app_page_rows_fini(struct page_rows *rows)
{
    for (size_t i = 0; rows->chunks && rows->chunks[i]; i++)
        json_object_put(rows->chunks[i]);
    free(rows->chunks);
    json_object_put(rows->file);
    json_object_put(rows->moment);
    *rows = (struct page_rows){0};
}
