/* Versions of schemas: what each one was, kept by the calls that write schemas, in their transaction. */
#include "coreengine/store/entities/entities_internal.h"

static int last_checksum(struct sql_store *st, int64_t schema, char out[RV_HASH_MAX], rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_LAST_VERSION);

    sql_int(stmt, 1, schema);
    int rc = sql_step(stmt, "look for a version", err);
    out[0] = 0;
    if (rc == 1 && sql_str_at(stmt, 0).len == RV_HASH_MAX - 1)
        memcpy(out, sql_str_at(stmt, 0).ptr, RV_HASH_MAX - 1);
    out[RV_HASH_MAX - 1] = 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int store_versions_keep(struct sql_store *st, int64_t schema, const struct rv_version_text *version, int64_t now_us,
                        rv_err **err)
{
    char checksum[RV_HASH_MAX], last[RV_HASH_MAX];
    struct rv_hash hash;
    int rc = 0;

    rv_hash_init(&hash);
    rv_hash_add(&hash, version->content);
    rv_hash_add(&hash, version->json_schema);
    rv_hash_finish_hex(&hash, checksum);
    if (strcmp(version->operation, "update") == 0) {
        rc = last_checksum(st, schema, last, err);
        if (rc < 0 || strcmp(last, checksum) == 0)
            return rc;
    }
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_VERSION);
    sql_int(stmt, 1, schema);
    store_sql_text(stmt, 2, version->operation);
    store_sql_text(stmt, 3, checksum);
    sql_int(stmt, 4, now_us);
    return sql_run(stmt, "keep a version", err);
}

static int version_of(rv_sql_stmt *stmt, struct rv_schema_version *v, rv_err **err)
{
    bool lacked = false;

    *v = (struct rv_schema_version){.schema_id = sql_text_at(stmt, 0, &lacked),
                                    .kind = sql_text_at(stmt, 1, &lacked),
                                    .user = sql_text_at(stmt, 2, &lacked),
                                    .operation = sql_text_at(stmt, 3, &lacked),
                                    .name = sql_text_at(stmt, 4, &lacked),
                                    .version = sql_text_at(stmt, 5, &lacked),
                                    .content = sql_str_at(stmt, 6),
                                    .json_schema = sql_str_at(stmt, 7),
                                    .checksum = sql_text_at(stmt, 8, &lacked),
                                    .recorded_us = sql_int_at(stmt, 9)};
    return lacked ? RV_FAIL(err, RV_E_NOMEM, "read a version") : 0;
}

static int list(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_schema_key *key,
                int (*each)(void *self, const struct rv_schema_version *v, rv_err **err), void *self, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_VERSIONS);
    int rc;

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, key->kind);
    store_sql_text(stmt, 3, key->name);
    store_sql_text(stmt, 4, scope->user);
    while ((rc = sql_step(stmt, "list versions", err)) == 1) {
        struct rv_schema_version v;
        rc = version_of(stmt, &v, err);
        if (rc == 0)
            rc = each(self, &v, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int rv_store_list_schema_versions(rv_store *s, const struct rv_store_scope *scope, const struct rv_schema_key *key,
                                  int (*each)(void *self, const struct rv_schema_version *v, rv_err **err), void *self,
                                  rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "schema's name", key->name, &sc, err);

    if (rc == 0)
        rc = store_check_id("kind", key->kind, err);
    rc = store_enter_read(s, rc, "list schema versions", err);
    return rc != 0 ? rc : store_leave_read(s, list(s->sql, &sc, key, each, self, err), err);
}
