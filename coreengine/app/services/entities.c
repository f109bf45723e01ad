/* The services that read and write entities, in the scope of the call that asks: the tenant of the run, and its user;
 * without a user only rows without an owner. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/services/services_internal.h"
#include "coreengine/base/base.h"
#include "coreengine/calendar/calendar.h"
#include "coreengine/store/store.h"
#include "envelope/envelope.h"

#define MAX_WHY   ((size_t)64 << 10) /* bytes of the reasons why rows were refused: some 60 for each of MAX_FOUND */
#define MAX_LIST  RV_ENTITY_MAX_TAGS /* tags, conditions, columns, members to remove, links of one ask */
#define MAX_FOUND 1000 /* rows of one answer: they are in memory, with RV_SERVICE_MAX_ANSWER bytes together */
#define MAX_BYTES ((size_t)6 << 20) /* of the rows of one answer: what is beyond is left out, and said to be */

/* --- arguments --- */

static int texts_of(const struct app_ask *a, const char *key, const char *out[MAX_LIST], size_t *n, rv_err **err)
{
    json_object *list = rv_json_get_arr(a->args, key);

    *n = 0;
    if (!list)
        return json_object_object_get_ex(a->args, key, NULL) ? RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a list", key)
                                                             : 0;
    if (json_object_array_length(list) > MAX_LIST)
        return RV_FAIL(err, RV_E_LIMIT, "\"%s\" has more than %d items", key, MAX_LIST);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "\"%s\": item %zu is not a string but %s", key, i + 1,
                           rv_json_type_text(item));
        if (rv_json_has_nul(item))
            return RV_FAIL(err, RV_E_INVALID, "\"%s\": item %zu has a NUL (U+0000), which it must not have", key,
                           i + 1);
        out[(*n)++] = json_object_get_string(item);
    }
    return 0;
}

static int int_of(const struct app_ask *a, const char *key, int64_t least, int64_t most, int64_t *out, rv_err **err)
{
    if (!json_object_object_get_ex(a->args, key, NULL))
        return 0;
    if (!rv_json_get_int(a->args, key, out) || *out < least || *out > most)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not an integer from %lld to %lld", key, (long long)least,
                       (long long)most);
    return 0;
}

/* A day as the end of a span is all of that day. */
static int time_of(const struct app_ask *a, const char *key, bool is_end, int64_t *out, rv_err **err)
{
    const char *text = NULL;
    struct rv_when when;
    int64_t day_us;
    int rc = app_ask_text(a, key, false, &text, err);

    if (rc < 0 || !text)
        return rc;
    rc = rv_when_parse(rv_str_of(text), rv_zone_utc(), INT64_MIN, NULL, &when, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "\"%s\"", key);
    *out = when.us + (is_end && rv_day_parse(rv_str_of(text), &day_us) ? RV_US_PER_DAY - 1 : 0);
    return 0;
}

/* --- writing --- */

/* One link that is refused leaves the others as they are: its answer says why. */
static bool is_of_link(int rc)
{
    return rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_DENIED || rc == RV_E_NOT_FOUND;
}

static int link_one(const struct app_ask *a, json_object *link, rv_jw *w, rv_err **err)
{
    const char *kind = "", *id = "";
    json_object *edges = rv_json_get_arr(link, "edges");
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_WHY);
    rv_err *why = NULL;
    int64_t n = 0;

    if (!rv_json_get_text(link, "kind", &kind) || !rv_json_get_text(link, "id", &id) || !edges)
        return RV_FAIL(err, RV_E_INVALID, "\"links\": each is {kind, id, edges: [...]}");
    int rc = rv_store_merge_edges(a->store, &a->app.scope, &(struct rv_entity_target){kind, id, rv_app_now_us()}, edges,
                                  &n, &why);
    if (rc < 0 && !is_of_link(rc)) {
        rv_err_pass(err, why);
        return rc;
    }
    rv_jw_obj(w);
    if (rc == 0) {
        rv_jw_kv_int(w, "n_edges", n);
    } else {
        rv_err_write_chain(why, &text);
        rv_jw_kv_buf(w, "error", &text);
    }
    rv_jw_obj_end(w);
    rv_err_free(why);
    return 0;
}

static int write_links(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    json_object *links = rv_json_get_arr(a->args, "links");
    size_t n = links ? json_object_array_length(links) : 0;
    int rc = 0;

    rv_jw_key(w, "links");
    rv_jw_arr(w);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = link_one(a, json_object_array_get_idx(links, i), w, err);
    rv_jw_arr_end(w);
    return rc;
}

static int merge_one(const struct app_ask *a, json_object *merge, bool *is_stale, rv_err **err)
{
    const char *kind = NULL, *id = NULL, *version = NULL;
    json_object *patch = rv_json_get_obj(merge, "patch");

    if (!rv_json_get_text(merge, "kind", &kind) || !rv_json_get_text(merge, "id", &id) || !patch ||
        (json_object_object_get_ex(merge, "version", NULL) && !rv_json_get_text(merge, "version", &version)))
        return RV_FAIL(err, RV_E_INVALID,
                       "\"merges\": each is {kind, id, patch: {...}}, with a \"version\" or without");
    return rv_store_merge_metadata(
        a->store, &a->app.scope, &(struct rv_entity_target){kind, id, rv_app_now_us()},
        &(struct rv_metadata_change){.members = patch, .version = version, .is_stale = is_stale}, NULL, err);
}

static int write_merges(const struct app_ask *a, bool *is_stale, rv_err **err)
{
    json_object *merges = rv_json_get_arr(a->args, "merges");
    size_t n = merges ? json_object_array_length(merges) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = merge_one(a, json_object_array_get_idx(merges, i), is_stale, err);
    return rc;
}

static void write_ids(json_object *rows, rv_jw *w)
{
    rv_jw_key(w, "ids");
    rv_jw_arr(w);
    for (size_t i = 0; i < json_object_array_length(rows); i++)
        rv_jw_value(w, json_object_object_get(json_object_array_get_idx(rows, i), "id"));
    rv_jw_arr_end(w);
}

static int write_rows(const struct app_ask *a, const struct rv_entities_put *put, rv_buf *answer, rv_err **err)
{
    json_object *rows = NULL;
    rv_jw w = rv_jw_on(answer);
    int rc = rv_store_put_entities(a->store, &a->app.scope, put, &rows, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    write_ids(rows, &w);
    json_object_put(rows);
    rc = write_merges(a, put->is_stale, err);
    if (rc == 0)
        rc = write_links(a, &w, err);
    rv_jw_obj_end(&w);
    return rc == 0 ? rv_buf_check(answer, "answer of a service", err) : rc;
}

/* A row has another version than the ask says: a type of its own, so that a capability can read it again. */
static int tell_conflict(int rc, bool is_stale, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_WHY);

    if (rc != RV_E_STATE || !is_stale)
        return rc;
    rv_err_write_chain(*err, &text);
    rv_err_free(rv_err_steal(err));
    RV_FAIL(err, RV_E_TOOL, "%s", rv_buf_cstr(&text));
    rv_err_set_hint(err, "%s", rv_error_conflict);
    rv_buf_fini(&text);
    return RV_E_TOOL;
}

/* Everything, or nothing. */
static int put_in_group(const struct app_ask *a, const struct rv_entities_put *put, rv_buf *answer, rv_err **err)
{
    int rc;

    do {
        rv_buf_clear(answer);
        rc = rv_store_begin(a->store, err);
        if (rc == 0) {
            rc = write_rows(a, put, answer, err);
            rc = rv_store_end(a->store, rc, err);
        }
    } while (rc < 0 && rv_store_wait_again(a->store, err));
    return rc;
}

/* The members of an object that was written apart. */
static void write_members(rv_jw *w, json_object *from)
{
    json_object_object_foreach (from, key, value) {
        rv_jw_key(w, key);
        rv_jw_value(w, value);
    }
}

/* A list among the arguments; left out: *n is 0. */
static int list_of(const struct app_ask *a, const char *key, size_t *n, rv_err **err)
{
    json_object *list = rv_json_get_arr(a->args, key);

    *n = list ? json_object_array_length(list) : 0;
    if (!list && json_object_object_get_ex(a->args, key, NULL))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a list", key);
    return *n > MAX_FOUND ? RV_FAIL(err, RV_E_LIMIT, "\"%s\" has more than %d items", key, MAX_FOUND) : 0;
}

/* One for each row, null where any will do. */
static int versions_of(const struct app_ask *a, struct rv_entities_put *put, const char *out[MAX_FOUND], rv_err **err)
{
    json_object *list = rv_json_get_arr(a->args, "versions");
    size_t n = 0;
    int rc = list_of(a, "versions", &n, err);

    if (rc < 0 || !list)
        return rc;
    if (n != put->n_rows)
        return RV_FAIL(err, RV_E_INVALID, "\"versions\" has %zu items, and \"rows\" %zu", n, put->n_rows);
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (item && !json_object_is_type(item, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "\"versions\": item %zu is not a string but %s", i + 1,
                           rv_json_type_text(item));
        out[i] = item ? json_object_get_string(item) : NULL;
    }
    put->versions = out;
    return 0;
}

int app_entities_put(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind", "rows", "versions", "merges", "links"};
    RV_AUTO(rv_buf_fini) rv_buf answer = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    json_object *rows = rv_json_get_arr(a->args, "rows"), *list[MAX_FOUND], *said = NULL;
    const char *versions[MAX_FOUND];
    bool is_stale = false;
    struct rv_entities_put put = {.rows = list, .is_stale = &is_stale, .now_us = rv_app_now_us()};
    size_t n = 0;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "kind", true, &put.kind, err);
    if (rc == 0 && (!rows || json_object_array_length(rows) > MAX_FOUND))
        rc = RV_FAIL(err, RV_E_INVALID, "\"rows\" is not a list of at most %d objects", MAX_FOUND);
    if (rc == 0)
        rc = list_of(a, "links", &n, err);
    if (rc == 0)
        rc = list_of(a, "merges", &n, err);
    if (rc < 0)
        return rc;
    put.n_rows = json_object_array_length(rows);
    for (size_t i = 0; i < put.n_rows; i++)
        list[i] = json_object_array_get_idx(rows, i);
    rc = versions_of(a, &put, versions, err);
    if (rc == 0)
        rc = put_in_group(a, &put, &answer, err);
    rc = tell_conflict(rc, is_stale, err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&answer), NULL, &said, err);
    if (rc == 0)
        write_members(w, said);
    json_object_put(said);
    return rc;
}

static int kind_and_id(const struct app_ask *a, const char **kind, const char **id, rv_err **err)
{
    int rc = app_ask_text(a, "kind", true, kind, err);

    return rc == 0 ? app_ask_text(a, "id", true, id, err) : rc;
}

int app_entities_delete(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind", "id"};
    const char *kind = NULL, *id = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    (void)w; /* a command */
    if (rc == 0)
        rc = kind_and_id(a, &kind, &id, err);
    return rc == 0 ? rv_store_delete_entity(a->store, &a->app.scope,
                                            &(struct rv_entity_target){kind, id, rv_app_now_us()}, err)
                   : rc;
}

int app_entities_merge_metadata(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind", "id", "patch", "remove", "version"};
    const char *kind = NULL, *id = NULL, *version = NULL, *remove[MAX_LIST];
    json_object *patch = rv_json_get_obj(a->args, "patch"), *metadata = NULL;
    bool is_stale = false;
    size_t n = 0;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = kind_and_id(a, &kind, &id, err);
    if (rc == 0 && !patch && json_object_object_get_ex(a->args, "patch", NULL))
        rc = RV_FAIL(err, RV_E_INVALID, "\"patch\" is not an object");
    if (rc == 0)
        rc = texts_of(a, "remove", remove, &n, err);
    if (rc == 0)
        rc = app_ask_text(a, "version", false, &version, err);
    const struct rv_metadata_change change = {patch, remove, n, version, &is_stale};
    if (rc == 0)
        rc = rv_store_merge_metadata(a->store, &a->app.scope, &(struct rv_entity_target){kind, id, rv_app_now_us()},
                                     &change, &metadata, err);
    rc = tell_conflict(rc, is_stale, err);
    if (rc == 0)
        rv_jw_kv_value(w, "metadata", metadata);
    json_object_put(metadata);
    return rc;
}

int app_entities_merge_edges(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind", "id", "edges"};
    const char *kind = NULL, *id = NULL;
    json_object *edges = rv_json_get_arr(a->args, "edges");
    int64_t n = 0;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = kind_and_id(a, &kind, &id, err);
    if (rc == 0 && !edges)
        rc = RV_FAIL(err, RV_E_INVALID, "it needs \"edges\", a list");
    if (rc == 0)
        rc = rv_store_merge_edges(a->store, &a->app.scope, &(struct rv_entity_target){kind, id, rv_app_now_us()}, edges,
                                  &n, err);
    if (rc == 0)
        rv_jw_kv_int(w, "n_edges", n);
    return rc;
}

/* --- reading --- */

int app_entities_get(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind", "id"};
    const char *kind = NULL, *id = NULL;
    char version[RV_ENTITY_VERSION_MAX];
    json_object *row = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = kind_and_id(a, &kind, &id, err);
    if (rc == 0)
        rc = rv_store_get_entity(a->store, &a->app.scope, kind, id, &row, err);
    if (rc == 0)
        rc = rv_entity_make_version(row, version, err);
    if (rc == 0) {
        rv_jw_kv_value(w, "row", row);
        rv_jw_kv_text(w, "version", version);
    }
    json_object_put(row);
    return rc;
}

/* What an ask looks for. Texts are borrowed from its arguments. */
struct find {
    const char *kind, *tags[MAX_LIST], *columns[MAX_LIST];
    size_t n_columns;
    struct rv_entity_where where[MAX_LIST], lists[MAX_LIST];
    struct rv_entity_filter f;
    rv_buf rows; /* the items of a list, without its brackets */
    bool is_truncated;
};

static int wheres_of(const struct app_ask *a, struct find *f, rv_err **err)
{
    json_object *where = rv_json_get_obj(a->args, "where");

    if (!where)
        return json_object_object_get_ex(a->args, "where", NULL)
                   ? RV_FAIL(err, RV_E_INVALID, "\"where\" is not an object of columns and values")
                   : 0;
    if (json_object_object_length(where) > MAX_LIST)
        return RV_FAIL(err, RV_E_LIMIT, "\"where\" has more than %d columns", MAX_LIST);
    json_object_object_foreach (where, column, value)
        f->where[f->f.n_where++] = (struct rv_entity_where){column, value};
    return 0;
}

static int lists_of(const struct app_ask *a, struct find *f, rv_err **err)
{
    json_object *lists = rv_json_get_obj(a->args, "contains");

    if (!lists)
        return json_object_object_get_ex(a->args, "contains", NULL)
                   ? RV_FAIL(err, RV_E_INVALID, "\"contains\" is not an object of columns and lists of values")
                   : 0;
    json_object_object_foreach (lists, column, values) {
        size_t n = json_object_is_type(values, json_type_array) ? json_object_array_length(values) : 0;
        if (!json_object_is_type(values, json_type_array))
            return RV_FAIL(err, RV_E_INVALID, "\"contains\": \"%.100s\" is not a list", column);
        if (f->f.n_lists + n > MAX_LIST)
            return RV_FAIL(err, RV_E_LIMIT, "\"contains\" has more than %d values", MAX_LIST);
        for (size_t i = 0; i < n; i++)
            f->lists[f->f.n_lists++] = (struct rv_entity_where){column, json_object_array_get_idx(values, i)};
    }
    return 0;
}

static int read_find(const struct app_ask *a, struct find *f, rv_err **err)
{
    static const char *const known[] = {"kind",  "name",  "about", "tags",   "where",  "contains",
                                        "since", "until", "limit", "offset", "columns"};
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    f->f = (struct rv_entity_filter){.tags = f->tags, .where = f->where, .lists = f->lists, .limit = 50};
    if (rc == 0)
        rc = app_ask_text(a, "kind", true, &f->kind, err);
    if (rc == 0)
        rc = app_ask_text(a, "name", false, &f->f.name, err);
    if (rc == 0)
        rc = app_ask_text(a, "about", false, &f->f.about, err);
    if (rc == 0)
        rc = texts_of(a, "tags", f->tags, &f->f.n_tags, err);
    if (rc == 0)
        rc = texts_of(a, "columns", f->columns, &f->n_columns, err);
    if (rc == 0)
        rc = wheres_of(a, f, err);
    if (rc == 0)
        rc = lists_of(a, f, err);
    if (rc == 0)
        rc = time_of(a, "since", false, &f->f.since_us, err);
    if (rc == 0)
        rc = time_of(a, "until", true, &f->f.until_us, err);
    if (rc == 0)
        rc = int_of(a, "limit", 1, MAX_FOUND, &f->f.limit, err);
    return rc == 0 ? int_of(a, "offset", 0, INT32_MAX, &f->f.offset, err) : rc;
}

static void write_row(const struct find *f, json_object *row, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    if (f->n_columns == 0) {
        rv_jw_value(&w, row);
        return;
    }
    rv_jw_obj(&w);
    for (size_t i = 0; i < f->n_columns; i++)
        rv_jw_kv_value(&w, f->columns[i], json_object_object_get(row, f->columns[i]));
    rv_jw_obj_end(&w);
}

static int take(void *self, json_object *row, rv_err **err)
{
    struct find *f = self;
    size_t before = f->rows.len;

    if (before)
        rv_buf_putc(&f->rows, ',');
    write_row(f, row, &f->rows);
    f->is_truncated = f->rows.len > MAX_BYTES || f->rows.rc == RV_E_LIMIT;
    if (!f->is_truncated)
        return rv_buf_check(&f->rows, "rows", err);
    rv_buf_truncate(&f->rows, before);
    f->rows.rc = 0;
    return RV_STORE_ENOUGH;
}

static bool is_common(const char *column)
{
    static const char *const common[] = {"id",          "user_id",          "metadata",   "tags",
                                         "graph_edges", "encryption_level", "created_at", "updated_at"};

    for (size_t i = 0; i < RV_COUNT(common); i++)
        if (strcmp(common[i], column) == 0)
            return true;
    return false;
}

static int check_columns(const struct find *f, rv_err **err)
{
    const struct rv_kind *kind = NULL;
    int rc = rv_kind_of(rv_str_of(f->kind), &kind, err);

    for (size_t i = 0; i < f->n_columns && rc == 0; i++)
        if (!rv_kind_find_field(kind, rv_str_of(f->columns[i])) && !is_common(f->columns[i]))
            rc = RV_FAIL(err, RV_E_INVALID, "%s have no column \"%.100s\"", kind->name, f->columns[i]);
    return rc;
}

int app_entities_find(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    struct find f = {.rows = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER)};
    int rc = read_find(a, &f, err);

    if (rc == 0)
        rc = check_columns(&f, err);
    if (rc == 0)
        rc = rv_store_find_entities(a->store, &a->app.scope, &(const struct rv_entities_of){f.kind, &f.f}, take, &f,
                                    err);
    if (rc == 0) {
        rv_jw_key(w, "rows");
        rv_jw_arr(w);
        rv_jw_raw(w, rv_buf_str(&f.rows));
        rv_jw_arr_end(w);
        rv_jw_kv_bool(w, "truncated", f.is_truncated);
    }
    rv_buf_fini(&f.rows);
    return rc;
}

struct hits {
    rv_jw *w;
    int n;
};

static int take_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    struct hits *h = self;

    (void)err;
    if (h->n++ == MAX_LIST)
        return RV_STORE_ENOUGH;
    rv_jw_obj(h->w);
    rv_jw_kv_text(h->w, "kind", hit->kind->name);
    rv_jw_kv_text(h->w, "id", hit->id);
    rv_jw_kv_text(h->w, "key", hit->key);
    rv_jw_kv_text(h->w, "user_id", *hit->user ? hit->user : NULL);
    rv_jw_kv_str(h->w, "summary", hit->summary);
    rv_jw_obj_end(h->w);
    return 0;
}

int app_entities_lookup(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"name"};
    struct hits h = {.w = w};
    const char *name = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "name", true, &name, err);
    if (rc < 0)
        return rc;
    rv_jw_key(w, "hits");
    rv_jw_arr(w);
    rc = rv_store_lookup(a->store, &a->app.scope, rv_str_of(name), take_hit, &h, err);
    rv_jw_arr_end(w);
    return rc;
}
