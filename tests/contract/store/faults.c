/* Operations of schemas, entities, blobs, snapshots and what processes share, each with the arguments that succeed when
 * nothing fails. */
#include "tests/contract/store/faults.h"

static int see_version(void *self, const struct rv_schema_version *v, rv_err **err)
{
    (void)self;
    (void)v;
    (void)err;
    return 0;
}
int do_list_schema_versions(struct world *w)
{
    return rv_store_list_schema_versions(w->s, &operator_scope,
                                         &(const struct rv_schema_key){.kind = "agent", .name = "there"}, see_version,
                                         NULL, &w->err);
}

int put_page(struct world *w, const char *json)
{
    return try_put(w, NULL, "ontologies", json, T0);
}
int do_put_entities(struct world *w)
{
    return put_page(w, "{\"name\":\"fresh\"}");
}
int do_get_entity(struct world *w)
{
    json_object *row = NULL;
    int rc = rv_store_get_entity(w->s, &operator_scope, "ontologies", PAGE, &row, &w->err);
    ck_assert_int_eq(row != NULL, rc == 0);
    json_object_put(row);
    return rc;
}
int do_load_entity(struct world *w)
{
    json_object *row = NULL;
    int rc = rv_store_load_entity(w->s, &operator_scope, "ontologies", 1, &row, &w->err);
    ck_assert_int_eq(row != NULL, rc == 0);
    json_object_put(row);
    return rc;
}
static int see_entity(void *self, json_object *row, rv_err **err)
{
    (void)self;
    (void)row;
    (void)err;
    return 0;
}
int do_find_entities(struct world *w)
{
    return rv_store_find_entities(w->s, &operator_scope, &(const struct rv_entities_of){"ontologies", NULL}, see_entity,
                                  NULL, &w->err);
}
static int see_day(void *self, const struct rv_message_day *day, rv_err **err)
{
    (void)self;
    (void)day;
    (void)err;
    return 0;
}
int do_list_message_days(struct world *w)
{
    return rv_store_list_message_days(w->s, &operator_scope, T0, see_day, NULL, &w->err);
}
int do_delete_entity(struct world *w)
{
    return rv_store_delete_entity(w->s, &operator_scope, &(struct rv_entity_target){"ontologies", PAGE, T0}, &w->err);
}
int do_delete_entities_named(struct world *w)
{
    return rv_store_delete_entities_named(w->s, &operator_scope, &(struct rv_entity_target){"ontologies", "page", T0},
                                          NULL, &w->err);
}
int do_merge_metadata(struct world *w)
{
    json_object *patch = tree("{\"a\":1}"), *out = NULL;
    int rc = rv_store_merge_metadata(w->s, &operator_scope, &(struct rv_entity_target){"ontologies", PAGE, T0 + 1},
                                     &(struct rv_metadata_change){.members = patch}, &out, &w->err);
    ck_assert_int_eq(out != NULL, rc == 0);
    json_object_put(patch);
    json_object_put(out);
    return rc;
}
int do_merge_edges(struct world *w)
{
    json_object *edges = tree("[{\"target\":\"x\"}]");
    int rc = rv_store_merge_edges(w->s, &operator_scope, &(struct rv_entity_target){"ontologies", PAGE, T0 + 1}, edges,
                                  NULL, &w->err);
    json_object_put(edges);
    return rc;
}
static int see_key(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)self;
    (void)hit;
    (void)err;
    return 0;
}
int do_lookup(struct world *w)
{
    return rv_store_lookup(w->s, &operator_scope, RV_STR_LIT("page"), see_key, NULL, &w->err);
}
int do_rebuild_keys(struct world *w)
{
    return rv_store_rebuild_keys(w->s, NULL, &w->err);
}
int picture_entity(void *self, json_object *row, rv_err **err)
{
    (void)err;
    rv_json_write(row, self);
    return 0;
}

int do_find_schema(struct world *w)
{
    struct rv_schema_row row = {0};
    int rc = rv_store_find_schema(w->s, &operator_scope, "agent", "there", &row, &w->err);
    ck_assert_int_eq(row.name != NULL, rc == 0);
    rv_schema_row_fini(&row);
    return rc;
}
int do_list_schemas(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_schemas(w->s, &operator_scope, NULL, see_schema, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
int do_delete_schema(struct world *w)
{
    return rv_store_delete_schema(w->s, &operator_scope, "agent", "there", T0, &w->err);
}

int do_stats(struct world *w)
{
    struct rv_store_stats stats;
    return rv_store_read_stats(w->s, &stats, &w->err);
}

int do_put_blob(struct world *w)
{
    char hash[RV_HASH_MAX];
    return rv_store_put_blob(w->s, RV_STR_LIT("new blob"), hash, &w->err);
}
int do_get_blob(struct world *w)
{
    rv_buf out = RV_BUF_INIT(100);
    int rc = rv_store_get_blob(w->s, w->bundle, &out, &w->err);
    ck_assert_int_eq(out.len > 0, rc == 0);
    rv_buf_fini(&out);
    return rc;
}
int do_put_snapshot(struct world *w)
{
    return rv_store_put_snapshot(w->s, "r1", 1, 1, RV_STR_LIT("snap"), &w->err);
}
int do_get_snapshot(struct world *w)
{
    rv_buf out = RV_BUF_INIT(100);
    int64_t seq = -1;
    int rc = rv_store_get_snapshot(w->s, &operator_scope, "r1", &seq, &out, &w->err);
    ck_assert_int_eq(seq == -1, rc != 0);
    rv_buf_fini(&out);
    return rc;
}
int do_check(struct world *w)
{
    return rv_store_check(w->s, &w->err);
}
int do_list_left(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_left(w->s, &(const struct rv_left_filter){.now_us = T0 + 1000, .limit = 9}, see_run, &seen,
                                &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
int do_list_expired(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_expired(w->s, &(const struct rv_left_filter){.now_us = T0 + 1000, .limit = 9}, see_run,
                                   &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
int do_take_turn(struct world *w)
{
    const struct rv_turn_place place = {"s1", "B", T0, T0 + 1, "A"};
    char by[RV_STORE_MAX_ID + 1];
    bool is_mine = false;
    int rc = rv_store_take_turn(w->s, &operator_scope, &place, &is_mine, by, &w->err);
    ck_assert_int_eq(is_mine, rc == 0);
    return rc;
}
int do_leave_turn(struct world *w)
{
    return rv_store_leave_turn(w->s, &operator_scope, &(const struct rv_turn_place){"s1", "B", 0, 0, NULL}, &w->err);
}
