/* Handlers of rows under a path of their own: /scenarios, /collections, /users and so on. What they do is the same for
 * every kind; the table of routes says which paths and which parameters there are. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"

#define MAX_WHERE 8 /* conditions of one query: parameters of one address; more is an error */

int srv_kind_of(const struct srv_call *c, const struct rv_kind **out, rv_err **err)
{
    const char *at = c->route->path + 1;

    *out = rv_kind_find((rv_str){at, strcspn(at, "/")});
    if (*out)
        return 0;
    RV_FAIL(err, RV_E_NOT_FOUND, "unknown kind \"%.60s\"", at);
    rv_err_set_hint(err, "GET /entities lists the kinds");
    return RV_E_NOT_FOUND;
}

/* --- a list: each parameter of the route that is a column is a condition --- */

struct wanted {
    struct rv_entity_filter filter;
    struct rv_entity_where where[MAX_WHERE];
    char *columns[MAX_WHERE]; /* owned, as the next ones */
    char *name, *tag;         /* owned */
    const char *tags[1];
};

static int add_where(const struct srv_call *c, const struct rv_kind *kind, rv_str column, struct wanted *out,
                     rv_err **err)
{
    struct rv_entity_where *w = &out->where[out->filter.n_where];

    if (!rv_kind_find_field(kind, column) || out->filter.n_where >= MAX_WHERE)
        return 0;
    char *word = rv_str_dup(column), *text = NULL;
    int rc = word ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the parameters");
    if (rc == 0)
        rc = srv_call_dup_text(c, word, &text, err);
    if (rc == 0 && text) {
        rc = rv_app_entity_parse_value(kind->name, word, text, &w->value, err);
        if (rc == 0) {
            w->column = out->columns[out->filter.n_where++] = word;
            word = NULL;
        }
    }
    free(word);
    free(text);
    return rc;
}

static int read_wanted(const struct srv_call *c, const struct rv_kind *kind, struct wanted *out, rv_err **err)
{
    *out = (struct wanted){.filter.limit = SRV_LIMIT};
    int rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &out->filter.limit, err);
    if (rc == 0)
        rc = srv_call_int(c, "offset", 0, INT64_MAX / 2, &out->filter.offset, err);
    for (const char *p = c->route->query; p && *p && rc == 0;) {
        size_t n = strcspn(p, " ");
        if (!rv_str_is((rv_str){p, n}, "name"))
            rc = add_where(c, kind, (rv_str){p, n}, out, err);
        p += n + (p[n] == ' ');
    }
    if (rc == 0)
        rc = srv_call_dup_text(c, "name", &out->name, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "tag", &out->tag, err);
    out->tags[0] = out->tag;
    out->filter.name = out->name;
    out->filter.tags = out->tags;
    out->filter.n_tags = out->tag != NULL;
    out->filter.where = out->where;
    return rc;
}

static void wanted_fini(struct wanted *w)
{
    for (size_t i = 0; i < w->filter.n_where; i++) {
        free(w->columns[i]);
        json_object_put(w->where[i].value);
    }
    free(w->name);
    free(w->tag);
}

static int write_row(void *self, json_object *row, rv_err **err)
{
    (void)err;
    rv_jw_value(self, row);
    return 0;
}

int srv_rows_list(struct srv_call *c, rv_err **err)
{
    const struct rv_kind *kind;
    struct wanted wanted = {.name = NULL};
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = srv_kind_of(c, &kind, err);
    if (rc == 0)
        rc = read_wanted(c, kind, &wanted, err);
    if (rc == 0)
        rc = rv_store_find_entities(c->store, &c->app.scope, &(const struct rv_entities_of){kind->name, &wanted.filter},
                                    write_row, &w, err);
    rv_jw_arr_end(&w);
    wanted_fini(&wanted);
    return rc;
}

/* --- one row --- */

int srv_row_show(struct srv_call *c, rv_err **err)
{
    const struct rv_kind *kind;
    int rc = srv_kind_of(c, &kind, err);

    return rc < 0 ? rc : srv_row_write(c, kind->name, c->args[0], err);
}

int srv_row_delete(struct srv_call *c, rv_err **err)
{
    const struct rv_kind *kind;
    int rc = srv_kind_of(c, &kind, err);

    return rc < 0 ? rc : srv_row_drop(c, kind->name, c->args[0], err);
}

/* --- writing --- */

struct names {
    const char *user, *id; /* of the row that is written; id NULL: it is new */
    bool is_taken;
};

static int see_name(void *self, json_object *row, rv_err **err)
{
    struct names *n = self;
    const char *user = NULL, *id = NULL;

    (void)err;
    if (strcmp(rv_json_get_text(row, "user_id", &user) ? user : "", n->user) != 0)
        return 0;
    n->is_taken |= !n->id || !rv_json_get_text(row, "id", &id) || strcmp(id, n->id) != 0;
    return 0;
}

/* A kind whose rows are known by their names has each name once for each owner. */
static int check_name(struct srv_call *c, const struct rv_kind *kind, const char *id, rv_err **err)
{
    const char *user = c->app.scope.user, *given = NULL, *name = NULL;
    struct names n = {.user = rv_json_get_text(c->body, "user_id", &given) ? given : user ? user : "", .id = id};

    if (!kind->keys[0] || strcmp(kind->keys[0], "name") != 0 || !rv_json_get_text(c->body, "name", &name))
        return 0;
    const struct rv_entity_filter filter = {.name = name, .limit = RV_ENTITY_ALL};
    int rc = rv_store_find_entities(c->store, &c->app.scope, &(const struct rv_entities_of){kind->name, &filter},
                                    see_name, &n, err);
    if (rc == 0 && n.is_taken)
        rc = RV_FAIL(err, RV_E_EXISTS, "there is already one of the name \"%.100s\" in %s", name, kind->name);
    return rc;
}

/* Scenarios and collections are known by their names. */
static int check_has_name(const struct rv_kind *kind, json_object *row, rv_err **err)
{
    if (strcmp(kind->name, "users") == 0 || rv_json_text_or(row, "name", "")[0])
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "the body needs \"name\", a text that is not empty");
}

/* In a group. */
static int put(struct srv_call *c, const struct rv_kind *kind, const char *id, json_object **out, rv_err **err)
{
    const struct rv_entities_put put = {.kind = kind->name, .rows = &c->body, .n_rows = 1, .now_us = srv_now_us()};
    json_object *old = NULL, *rows = NULL;
    int rc = id ? rv_store_get_entity(c->store, &c->app.scope, kind->name, id, &old, err) : 0;

    json_object_put(old);
    if (rc == 0)
        rc = check_name(c, kind, id, err);
    if (rc == 0 && id)
        rc = rv_json_set_text(c->body, "id", id, err);
    if (rc == 0)
        rc = rv_store_put_entities(c->store, &c->app.scope, &put, &rows, err);
    if (rc == 0 && (!id || json_object_object_get_ex(c->body, "name", NULL)))
        rc = check_has_name(kind, json_object_array_get_idx(rows, 0), err);
    if (rc == 0)
        *out = json_object_get(json_object_array_get_idx(rows, 0));
    json_object_put(rows);
    return rc;
}

static int write_whole(struct srv_call *c, const char *id, rv_err **err)
{
    const struct rv_kind *kind;
    json_object *row = NULL;
    const char *made = NULL;
    int rc = srv_kind_of(c, &kind, err);

    if (rc < 0)
        return rc;
    do {
        rc = rv_store_begin(c->store, err);
        if (rc == 0)
            rc = rv_store_end(c->store, put(c, kind, id, &row, err), err);
    } while (rc < 0 && rv_store_wait_again(c->store, err));
    if (rc < 0) {
        json_object_put(row);
        return rc;
    }
    if (!id && rv_json_get_text(row, "id", &made)) {
        rv_buf place = RV_BUF_INIT(1024);
        rv_buf_printf(&place, "/%s/%s", kind->name, made);
        srv_call_field_buf(c, "Location", &place);
        rv_buf_fini(&place);
    }
    rv_jw w = srv_call_json(c, id ? 200 : 201);
    rv_jw_value(&w, row);
    json_object_put(row);
    return 0;
}

int srv_rows_create(struct srv_call *c, rv_err **err)
{
    return write_whole(c, NULL, err);
}

/* Columns that are given are set, the others stay: the same for PUT, as REMLight has it, and for PATCH. */
int srv_row_change(struct srv_call *c, rv_err **err)
{
    return write_whole(c, c->args[0], err);
}
