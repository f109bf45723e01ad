/* One file after another: whether it is new or has changed, which name it gets, and its rows in one transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/ingest/ingest_internal.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"
#include "coreengine/match/match.h"

#define MAX_NAME ((size_t)RV_ENTITY_MAX_NAME)

static const char *const words[] = {
    [RV_INGEST_ADDED] = "added",   [RV_INGEST_CHANGED] = "changed", [RV_INGEST_UNCHANGED] = "unchanged",
    [RV_INGEST_FAILED] = "failed", [RV_INGEST_MISSING] = "missing", [RV_INGEST_PRUNED] = "pruned",
};
RV_EACH_HAS_ROW(words, RV_INGEST_N);

const char *rv_ingest_outcome_text(enum rv_ingest_outcome outcome)
{
    return words[outcome];
}

struct ingest {
    const struct rv_app_ingest *opts;
    const char *user;          /* of the rows; "": none */
    struct rv_store_scope own; /* rows of that user only: what others have is theirs */
    size_t chunk_chars, overlap;
    rv_arena *ids; /* of files that were taken; owned, as the next one */
    rv_index seen; /* the same: a file that several paths lead to is taken once */
};

/* --- what is there --- */

/* NULL: the file has no row. */
static int find_old(const struct ingest *in, const struct page *page, json_object **old, rv_err **err)
{
    rv_err *why = NULL;
    const char *uri = NULL;
    const bool reveals = rv_store_reveal(in->opts->store, true); /* the hash of its text is in its metadata */
    int rc = rv_store_get_entity(in->opts->store, &in->own, "files", page->id, old, &why);

    rv_store_reveal(in->opts->store, reveals);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        *old = NULL;
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, why);
        return rc;
    }
    if (!rv_json_get_text(*old, "uri", &uri) || strcmp(uri, rv_buf_cstr(&page->uri)) != 0) {
        json_object_put(*old);
        *old = NULL;
    }
    return 0;
}

static bool is_same(const struct page *page, json_object *old)
{
    json_object *metadata = rv_json_get_obj(old, "metadata");
    const char *hash = NULL;
    int64_t chars = 0, overlap = -1;

    return metadata && rv_json_get_text(metadata, "sha256", &hash) && strcmp(hash, page->hash) == 0 &&
           rv_json_get_int(metadata, "chunk_chars", &chars) && chars == (int64_t)page->chunk_chars &&
           rv_json_get_int(metadata, "chunk_overlap", &overlap) && overlap == (int64_t)page->overlap;
}

struct taken {
    const char *uri, *user;
    bool is_taken;
};

static int see_name(void *self, json_object *row, rv_err **err)
{
    struct taken *t = self;
    const char *uri = NULL, *user = NULL;

    (void)err;
    if (strcmp(rv_json_get_text(row, "user_id", &user) ? user : "", t->user) != 0)
        return 0; /* everybody's file may have a name that a user's own has: theirs goes before it */
    t->is_taken |= !rv_json_get_text(row, "uri", &uri) || strcmp(uri, t->uri) != 0;
    return t->is_taken ? RV_STORE_ENOUGH : 0;
}

static int is_taken(const struct ingest *in, const struct page *page, const char *name, bool *out, rv_err **err)
{
    const struct rv_entity_filter filter = {.name = name, .limit = RV_ENTITY_ALL};
    struct taken t = {rv_buf_cstr(&page->uri), in->user, false};
    int rc = rv_store_find_entities(in->opts->store, &in->own, &(const struct rv_entities_of){"files", &filter},
                                    see_name, &t, err);

    if (rc == 0)
        *out = t.is_taken;
    return rc;
}

/* Two files of one name in different folders: the second one gets its folder's name in front, and the beginning of a
 * hash of its address if that is taken, too. A file that was read before keeps the name it has. */
static int choose_name(const struct ingest *in, struct page *page, json_object *old, rv_err **err)
{
    rv_buf name = RV_BUF_INIT(MAX_NAME);
    char hash[RV_HASH_MAX];
    const char *kept = NULL;
    bool taken = true;
    int rc = 0;

    rv_hash_format(rv_buf_str(&page->uri), hash);
    for (int i = old && rv_json_get_text(old, "name", &kept) ? 0 : 1; i < 4 && taken && rc == 0; i++) {
        rv_buf_clear(&name);
        if (i == 0)
            rv_buf_puts(&name, kept);
        if (i == 2 && page->folder.len > 0)
            rv_buf_printf(&name, "%s-", rv_buf_cstr(&page->folder));
        if (i > 0)
            rv_buf_puts(&name, page->name);
        if (i == 3)
            rv_buf_printf(&name, "-%.6s", hash);
        rc = rv_buf_check(&name, "name of the file", err);
        if (rc == 0)
            rc = is_taken(in, page, rv_buf_cstr(&name), &taken, err);
    }
    if (rc == 0) {
        free(page->name);
        if (!(page->name = rv_buf_steal(&name, NULL)))
            rc = RV_FAIL(err, RV_E_NOMEM, "name the file");
    }
    rv_buf_fini(&name);
    return rc;
}

/* --- writing --- */

/* Edges of the old row that no link of the text stands for, such as those that a dream made, stay. */
static int keep_edges(json_object *old, json_object *file, rv_err **err)
{
    json_object *edges = rv_json_get_arr(old, "graph_edges"), *links = rv_json_get_arr(file, "graph_edges");
    json_object *kept = json_object_new_array(), *merged = NULL;
    int rc = kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep edges");

    for (size_t i = 0; edges && i < json_object_array_length(edges) && rc == 0; i++) {
        json_object *edge = json_object_array_get_idx(edges, i);
        if (!rv_str_is(rv_edge_relation(edge), "links_to"))
            rc = rv_json_push_ref(kept, edge, err);
    }
    if (rc == 0)
        rc = rv_edges_merge(links, kept, &merged, NULL, err);
    if (rc == 0)
        rc = rv_json_set_take(file, "graph_edges", merged, err);
    json_object_put(kept);
    return rc;
}

struct tail {
    char (*ids)[37];
    size_t n, cap, n_chunks;
};

static int see_chunk(void *self, json_object *row, rv_err **err)
{
    struct tail *t = self;
    const char *id = NULL;
    int64_t ordinal = -1;

    if (!rv_json_get_text(row, "id", &id) || strlen(id) != 36 || !rv_json_get_int(row, "ordinal", &ordinal) ||
        ordinal < (int64_t)t->n_chunks)
        return 0;
    if (!rv_has_room(&t->ids, &t->cap, t->n + 1, sizeof *t->ids))
        return RV_FAIL(err, RV_E_NOMEM, "list old chunks");
    memcpy(t->ids[t->n++], id, 37);
    return 0;
}

/* A text that became shorter has chunks that are not in it any more. */
static int delete_tail(const struct ingest *in, const struct page *page, size_t n_chunks, int64_t now_us, rv_err **err)
{
    const struct rv_entity_filter filter = {.about = page->id, .limit = RV_ENTITY_ALL};
    struct tail tail = {.n_chunks = n_chunks};
    int rc = rv_store_find_entities(in->opts->store, &in->own, &(const struct rv_entities_of){"resources", &filter},
                                    see_chunk, &tail, err);

    for (size_t i = 0; i < tail.n && rc == 0; i++)
        rc = rv_store_delete_entity(in->opts->store, &in->own,
                                    &(struct rv_entity_target){"resources", tail.ids[i], now_us}, err);
    free(tail.ids);
    return rc;
}

static int put(const struct ingest *in, const char *kind, json_object *const *rows, size_t n, int64_t now_us,
               rv_err **err)
{
    const struct rv_entities_put put = {.kind = kind, .rows = rows, .n_rows = n, .now_us = now_us};

    return n > 0 ? rv_store_put_entities(in->opts->store, &in->own, &put, NULL, err) : 0;
}

/* With the session in which the file can be talked about. */
static int put_moment(const struct ingest *in, json_object *moment, int64_t now_us, rv_err **err)
{
    const struct rv_app_moment_session what = {
        .moment = moment, .session = in->opts->session, .now_us = now_us, .rand = rv_rand_system()};
    char session[RV_STORE_MAX_ID + 1];
    json_object *row = NULL;
    int rc = rv_app_put_moment(in->opts->store, &in->own, &what, session, &row, err);

    json_object_put(row);
    return rc;
}

/* When the content of a file is sealed, its moment does not repeat the first words. */
static int put_file(const struct ingest *in, const struct page_rows *rows, int64_t now_us, rv_err **err)
{
    const struct rv_entities_put put = {.kind = "files", .rows = &rows->file, .n_rows = 1, .now_us = now_us};
    json_object *written = NULL;
    const char *level = NULL, *name = NULL;
    rv_buf summary = RV_BUF_INIT(RV_STORE_MAX_META);
    int rc = rv_store_put_entities(in->opts->store, &in->own, &put, &written, err);

    if (rc == 0 && rv_json_get_text(json_object_array_get_idx(written, 0), "encryption_level", &level) &&
        strcmp(level, "sealed") == 0 &&
        rv_json_get_text(rv_json_get_obj(rows->moment, "metadata"), "file_name", &name)) {
        rv_buf_printf(&summary, "Uploaded %s", name);
        rc = rv_buf_check(&summary, "a summary", err);
        if (rc == 0)
            rc = rv_json_set_str(rows->moment, "summary", rv_buf_str(&summary), err);
    }
    rv_buf_fini(&summary);
    json_object_put(written);
    return rc;
}

static int write_rows(const struct ingest *in, const struct page *page, const struct page_rows *rows, bool is_old,
                      int64_t now_us, rv_err **err)
{
    rv_store *s = in->opts->store;
    int rc;

    do {
        rc = rv_store_begin(s, err);
        if (rc < 0)
            continue;
        rc = put_file(in, rows, now_us, err);
        if (rc == 0)
            rc = put(in, "resources", rows->chunks, rows->n_chunks, now_us, err);
        if (rc == 0 && is_old)
            rc = delete_tail(in, page, rows->n_chunks, now_us, err);
        if (rc == 0)
            rc = put_moment(in, rows->moment, now_us, err);
        rc = rv_store_end(s, rc, err);
    } while (rc < 0 && rv_store_wait_again(s, err));
    return rc;
}

/* --- one file --- */

static int take_page(const struct ingest *in, struct page *page, struct rv_ingested *told, rv_err **err)
{
    json_object *old = NULL;
    struct page_rows rows = {0};
    int64_t now_us = rv_app_now_us();

    page->chunk_chars = in->chunk_chars;
    page->overlap = in->overlap;
    int rc = find_old(in, page, &old, err);
    if (rc == 0)
        rc = choose_name(in, page, old, err);
    told->outcome = !old ? RV_INGEST_ADDED : is_same(page, old) ? RV_INGEST_UNCHANGED : RV_INGEST_CHANGED;
    if (rc == 0 && (told->outcome != RV_INGEST_UNCHANGED || in->opts->again)) {
        rc = app_page_rows(page, now_us, &rows, err);
        if (rc == 0 && old)
            rc = keep_edges(old, rows.file, err);
        if (rc == 0)
            rc = write_rows(in, page, &rows, old != NULL, now_us, err);
        told->n_chunks = rows.n_chunks;
        if (old)
            told->outcome = RV_INGEST_CHANGED;
    }
    app_page_rows_fini(&rows);
    json_object_put(old);
    return rc;
}

/* A failure that the next file would meet as well. */
static bool is_of_the_store(int rc)
{
    return rc == RV_E_IO || rc == RV_E_TIMEOUT || rc == RV_E_DENIED || rc == RV_E_NOMEM || rc == RV_E_VERSION ||
           rc == RV_E_STATE || rc == RV_E_UNAVAILABLE || rv_code_is_scarce(rc);
}

/* Was it taken before, by another path? */
static int see(struct ingest *in, const struct page *page, bool *is_new, rv_err **err)
{
    const char *id = rv_arena_dup(in->ids, rv_str_of(page->id));
    int rc = id ? rv_index_add(&in->seen, rv_str_of(id), 0) : RV_E_NOMEM;

    *is_new = rc == 0;
    return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "list files") : 0;
}

static int take_file(struct ingest *in, struct ingest_file *file, struct rv_ingest_counts *counts, rv_err **err)
{
    struct rv_ingested told = {.path = file->path, .why = file->why, .outcome = RV_INGEST_FAILED};
    struct page page = {0};
    rv_err *why = NULL;
    int rc = file->why ? rv_err_code(file->why) : app_page_read(file->path, in->user, &page, &why);
    size_t n_bytes = page.text.len;

    bool is_read = rc == 0, is_new = true;
    if (is_read && (rc = see(in, &page, &is_new, &why)) == 0 && !is_new) {
        app_page_fini(&page);
        return 0;
    }
    if (rc == 0 && (rc = take_page(in, &page, &told, &why)) < 0) /* what cannot be read is named already */
        RV_WRAP(&why, rc, "keep \"%s\"", file->path);
    if (rc == RV_E_NOMEM || (is_read && rc < 0 && is_of_the_store(rc))) {
        app_page_fini(&page);
        return why ? rv_err_pass(err, why) : RV_FAIL(err, rc, "keep \"%s\"", file->path);
    }
    told.name = page.name;
    told.id = page.name ? page.id : NULL;
    if (rc < 0) {
        told.outcome = RV_INGEST_FAILED;
        told.n_chunks = 0;
        told.why = file->why ? file->why : why;
    }
    counts->files[told.outcome]++;
    counts->n_chunks += (int64_t)told.n_chunks;
    counts->n_bytes += told.outcome == RV_INGEST_ADDED || told.outcome == RV_INGEST_CHANGED ? (int64_t)n_bytes : 0;
    rc = in->opts->on_file ? in->opts->on_file(in->opts->self, &told, err) : 0;
    app_page_fini(&page);
    rv_err_free(why);
    return rc;
}

static int begin(const struct rv_app_ingest *opts, struct ingest *in, rv_err **err)
{
    *in = (struct ingest){.opts = opts,
                          .user = opts->scope.user ? opts->scope.user : "",
                          .own = {opts->scope.tenant, opts->scope.user ? opts->scope.user : ""},
                          .chunk_chars = opts->chunk_chars ? opts->chunk_chars : RV_CHUNK_CHARS,
                          .overlap = opts->chunk_chars || opts->overlap ? opts->overlap : RV_CHUNK_OVERLAP};
    if (in->overlap > rv_chunk_max_overlap(in->chunk_chars))
        return RV_FAIL(err, RV_E_INVALID, "chunks of %zu characters cannot share %zu: %zu is the most, less than half",
                       in->chunk_chars, in->overlap, rv_chunk_max_overlap(in->chunk_chars));
    return 0;
}

int rv_app_ingest_text(const struct rv_app_ingest *opts, const char *path, rv_str text, rv_err **err)
{
    struct rv_ingested told = {.path = path};
    struct ingest in;
    struct page page;
    int rc = begin(opts, &in, err);

    if (rc == 0)
        rc = app_page_sent(path, text, in.user, &page, err);
    if (rc < 0)
        return rc;
    rc = take_page(&in, &page, &told, err);
    told.name = page.name;
    told.id = page.id;
    if (rc == 0 && opts->on_file)
        rc = opts->on_file(opts->self, &told, err);
    app_page_fini(&page);
    return rc;
}

/* In a group. */
static int forget(const struct ingest *in, const char *id, int64_t now_us, rv_err **err)
{
    struct page named = {.name = NULL};

    snprintf(named.id, sizeof named.id, "%s", id);
    int rc =
        rv_store_delete_entity(in->opts->store, &in->opts->scope, &(struct rv_entity_target){"files", id, now_us}, err);
    return rc == 0 ? delete_tail(in, &named, 0, now_us, err) : rc;
}

int rv_app_delete_file(rv_store *store, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                       rv_err **err)
{
    const struct rv_app_ingest opts = {.store = store, .scope = *scope};
    const struct ingest in = {.opts = &opts, .own = *scope};
    int rc;

    do {
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, forget(&in, id, now_us, err), err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

/* Another process may have deleted the rows meanwhile. */
static int take_missing(const struct ingest *in, const struct missing_file *file, struct rv_ingest_counts *counts,
                        rv_err **err)
{
    const struct rv_app_ingest *opts = in->opts;
    const struct rv_ingested told = {.path = file->path,
                                     .name = file->name,
                                     .id = file->id,
                                     .outcome = opts->prune ? RV_INGEST_PRUNED : RV_INGEST_MISSING};
    rv_err *why = NULL;
    int rc = opts->prune ? rv_app_delete_file(opts->store, &in->own, file->id, rv_app_now_us(), &why) : 0;

    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, why);
    rv_err_free(why);
    counts->files[told.outcome]++;
    return opts->on_file ? opts->on_file(opts->self, &told, err) : 0;
}

int rv_app_ingest(const struct rv_app_ingest *opts, struct rv_ingest_counts *out, rv_err **err)
{
    struct ingest_files files;
    struct ingest_missing missing = {0};
    struct ingest in;

    *out = (struct rv_ingest_counts){0};
    int rc = begin(opts, &in, err);
    if (rc < 0)
        return rc;
    rc = app_ingest_find(opts->paths, opts->n_paths, &files, err);
    if (rc < 0)
        return rc;
    out->n_passed_over = files.n_passed_over;
    in.ids = rv_arena_new((size_t)RV_INGEST_MAX_FILES * 2 * sizeof((struct page *)0)->id);
    if (!in.ids)
        rc = RV_FAIL(err, RV_E_NOMEM, "list files");
    for (size_t i = 0; i < files.n && rc == 0; i++)
        rc = take_file(&in, &files.at[i], out, err);
    rv_index_fini(&in.seen);
    rv_arena_free(in.ids);
    app_ingest_files_fini(&files);
    if (rc == 0)
        rc = app_ingest_missing(opts, &missing, err);
    for (size_t i = 0; i < missing.n && rc == 0; i++)
        rc = take_missing(&in, &missing.at[i], out, err);
    app_ingest_missing_fini(&missing);
    return rc;
}
