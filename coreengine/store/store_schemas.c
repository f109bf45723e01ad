/* The front of the store for schemas; see store.c. */
#include "coreengine/store/front_internal.h"

int rv_store_put_schema(rv_store *s, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
                        bool *changed, rv_err **err)
{
    struct rv_schema_row given;
    bool did = false;
    int rc;

    if ((rc = rv_store_check_schema(row, how, err)) < 0 || (rc = rv_store_check_time("the time", now_us, err)) < 0)
        return RV_WRAP(err, rc, "put schema");
    given = *row;
    given.tenant = given.tenant ? given.tenant : RV_STORE_TENANT;
    given.user = given.user ? given.user : "";
    given.content.ptr = given.content.ptr ? given.content.ptr : "";
    given.document.ptr = given.document.ptr ? given.document.ptr : "";
    given.json_schema = given.json_schema.len > 0 ? given.json_schema : RV_STR_LIT("{}");
    rv_hash_of(given.document, given.checksum);
    RV_STORE_ENTER(rv_store_enter_write, s, "put_schema", err);
    rc = rv_store_leave(s, s->ops->put_schema(s->self, &given, how, now_us, &did, err), "put_schema.done", err);
    if (rc == 0 && changed)
        *changed = did;
    return rc;
}

int rv_store_find_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind, const char *name,
                         struct rv_schema_row *out, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_schema_row row = {0};
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("kind", kind, err)) < 0 ||
        (rc = rv_store_check_id("schema's name", name, err)) < 0)
        return RV_WRAP(err, rc, "find schema");
    RV_STORE_ENTER(rv_store_enter, s, "find_schema", err);
    rc = rv_store_leave(s, s->ops->find_schema(s->self, &sc, kind, name, &row, err), "find_schema.done", err);
    if (rc == 0)
        *out = row;
    else
        rv_schema_row_fini(&row);
    return rc;
}

int rv_store_list_schemas(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                          int (*each)(void *self, const struct rv_schema_row *row, rv_err **err), void *self,
                          rv_err **err)
{
    struct rv_store_scope sc;
    int rc = rv_store_check_scope(scope, &sc, err);

    if (rc == 0 && kind)
        rc = rv_store_check_id("kind", kind, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "list schemas");
    RV_STORE_ENTER(rv_store_enter, s, "list_schemas", err);
    s->is_walking = true;
    rc = s->ops->list_schemas(s->self, &sc, kind, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc, "list_schemas.done", err);
}

int rv_store_delete_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind, const char *name,
                           int64_t now_us, rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("kind", kind, err)) < 0 ||
        (rc = rv_store_check_id("schema's name", name, err)) < 0 ||
        (rc = rv_store_check_time("the time", now_us, err)) < 0)
        return RV_WRAP(err, rc, "delete schema");
    RV_STORE_ENTER(rv_store_enter_write, s, "delete_schema", err);
    return rv_store_leave(s, s->ops->delete_schema(s->self, &sc, kind, name, now_us, err), "delete_schema.done", err);
}

int rv_store_schemas_version(rv_store *s, int64_t *out, rv_err **err)
{
    int64_t got = 0;
    int rc;

    RV_STORE_ENTER(rv_store_enter, s, "schemas_version", err);
    rc = rv_store_leave(s, s->ops->schemas_version(s->self, &got, err), "schemas_version.done", err);
    if (rc == 0)
        *out = got;
    return rc;
}
