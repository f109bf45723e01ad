#include "tests/contract/store/entities.h"

const struct rv_store_scope ada = {NULL, "ada"}, bob = {NULL, "bob"}, unowned = {NULL, ""},
                            elsewhere = {"other", "ada"};

json_object *tree(const char *json)
{
    json_object *v = NULL;
    rv_err *err = NULL;

    ck_assert_msg(rv_json_parse(rv_str_of(json), NULL, &v, &err) == 0, "%s: %s", json, rv_err_text(err));
    return v;
}

int try_put(struct world *w, const struct rv_store_scope *scope, const char *kind, const char *row, int64_t now_us)
{
    json_object *given = tree(row);
    const struct rv_entities_put put = {.kind = kind, .rows = &given, .n_rows = 1, .now_us = now_us};
    int rc = rv_store_put_entities(w->s, scope ? scope : &operator_scope, &put, NULL, &w->err);

    json_object_put(given);
    return rc;
}

json_object *put_one(struct world *w, const struct rv_store_scope *scope, const char *kind, const char *row,
                     int64_t now_us)
{
    json_object *given = tree(row), *rows = NULL;
    const struct rv_entities_put put = {.kind = kind, .rows = &given, .n_rows = 1, .now_us = now_us};

    OK(rv_store_put_entities(w->s, scope ? scope : &operator_scope, &put, &rows, &w->err));
    ck_assert_uint_eq(json_object_array_length(rows), 1);
    json_object *one = json_object_get(json_object_array_get_idx(rows, 0));
    json_object_put(rows);
    json_object_put(given);
    return one;
}

const char *member(json_object *row, const char *name)
{
    static char text[10000];
    rv_buf b = RV_BUF_INIT(sizeof text - 1);
    json_object *v = NULL;

    ck_assert_msg(json_object_object_get_ex(row, name, &v), "no column %s", name);
    rv_json_write(v, &b);
    snprintf(text, sizeof text, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
    return text;
}

static int see_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s:%s/%s", seen->n++ ? " " : "", hit->kind->name, hit->key, hit->user);
    return 0;
}

void looks_up(struct world *w, const struct rv_store_scope *scope, const char *key, const char *want, int line)
{
    struct seen seen = SEEN_INIT;

    must_ok(w, rv_store_lookup(w->s, scope ? scope : &operator_scope, rv_str_of(key), see_hit, &seen, &w->err), key,
            line);
    must_see(&seen, want, line);
}

static int see_name(void *self, json_object *row, rv_err **err)
{
    struct seen *seen = self;
    const char *name = "-";

    (void)err;
    RV_IGNORE(rv_json_get_text(row, "name", &name), "it may be null");
    rv_buf_printf(&seen->text, "%s%s", seen->n++ ? " " : "", name);
    return 0;
}

void finds_names(struct world *w, const struct rv_store_scope *scope, const char *kind,
                 const struct rv_entity_filter *filter, const char *want, int line)
{
    struct seen seen = SEEN_INIT;

    must_ok(w,
            rv_store_find_entities(w->s, scope ? scope : &operator_scope, &(const struct rv_entities_of){kind, filter},
                                   see_name, &seen, &w->err),
            kind, line);
    must_see(&seen, want, line);
}
