/* A row that is written only if it still says what the writer has read. */
#include <pthread.h>

#include "tests/contract/store/entities.h"

#define N_EACH 25 /* changes of each of two writers */

static const char *version_of(struct world *w, rv_store *s, const char *kind, const char *id)
{
    static char version[RV_ENTITY_VERSION_MAX];
    json_object *row = NULL;

    OK(rv_store_get_entity(s, &ada, kind, id, &row, &w->err));
    OK(rv_entity_make_version(row, version, &w->err));
    json_object_put(row);
    return version;
}

static int put(struct world *w, rv_store *s, const char *row, const char *version, int64_t now_us)
{
    json_object *rows[] = {tree(row)};
    const char *versions[] = {version};
    bool is_stale = false;
    const struct rv_entities_put put = {
        .kind = "moments", .rows = rows, .n_rows = 1, .versions = versions, .is_stale = &is_stale, .now_us = now_us};
    int rc = rv_store_put_entities(s, &ada, &put, NULL, &w->err);

    ck_assert_int_eq(is_stale, rc == RV_E_STATE);
    json_object_put(rows[0]);
    return rc;
}

static int merge(struct world *w, rv_store *s, const char *id, const char *patch, const char *version)
{
    json_object *members = tree(patch);
    bool is_stale = false;
    const struct rv_metadata_change change = {.members = members, .version = version, .is_stale = &is_stale};
    int rc =
        rv_store_merge_metadata(s, &ada, &(struct rv_entity_target){"moments", id, T0 + 5}, &change, NULL, &w->err);

    ck_assert_int_eq(is_stale, rc == RV_E_STATE);
    json_object_put(members);
    return rc;
}

/* Two writers have read the same: the second one is refused, whatever it writes, until it has read again. */
START_TEST(a_row_is_written_only_as_it_was_read)
{
    struct world world, *w = &world;
    char id[RV_UUID_MAX], first[RV_ENTITY_VERSION_MAX], now[RV_ENTITY_VERSION_MAX];

    world_open(w, _i);
    rv_store *s = w->impl->is_shared ? world_other(w) : w->s;
    rv_entity_make_id("moments", RV_STR_LIT("m"), "ada", id);
    OK(put(w, w->s, "{\"name\":\"m\",\"summary\":\"one\"}", "", T0));
    SAYS(RV_E_STATE, "added a row of moments", put(w, s, "{\"name\":\"m\",\"summary\":\"x\"}", "", T0));
    snprintf(first, sizeof first, "%s", version_of(w, s, "moments", id));
    OK(put(w, w->s, "{\"name\":\"m\",\"summary\":\"one\"}", NULL, T0 + 1)); /* says the same */
    ck_assert_str_eq(version_of(w, s, "moments", id), first);
    OK(put(w, s, "{\"name\":\"m\",\"summary\":\"two\"}", first, T0 + 2));
    SAYS(RV_E_STATE, "changed a row of moments", put(w, w->s, "{\"name\":\"m\",\"summary\":\"x\"}", first, T0 + 2));
    FAILS(RV_E_STATE, merge(w, w->s, id, "{\"a\":1}", first));
    snprintf(now, sizeof now, "%s", version_of(w, w->s, "moments", id));
    OK(merge(w, w->s, id, "{\"a\":1}", now));
    FAILS(RV_E_STATE, merge(w, s, id, "{\"a\":2}", now));
    FAILS(RV_E_STATE, put(w, s, "{\"name\":\"m\",\"topic_tags\":[\"x\"]}", now, T0 + 3));
    OK(rv_store_delete_entity(w->s, &ada, &(struct rv_entity_target){"moments", id, T0 + 4}, &w->err));
    SAYS(RV_E_STATE, "deleted a row of moments", put(w, s, "{\"name\":\"m\"}", first, T0 + 5));
    FAILS(RV_E_NOT_FOUND, merge(w, s, id, "{\"a\":1}", first));
    OK(put(w, s, "{\"name\":\"m\",\"summary\":\"three\"}", "", T0 + 6));
    json_object *row = NULL;
    OK(rv_store_get_entity(w->s, &ada, "moments", id, &row, &w->err));
    ck_assert_str_eq(member(row, "summary"), "\"three\"");
    json_object_put(row);
    if (s != w->s)
        rv_store_close(s);
    world_close(w);
}
END_TEST

/* Nothing of a refused group is kept, and another user cannot find out whether a row has a version. */
START_TEST(a_refusal_leaves_everything_as_it_was)
{
    struct world world, *w = &world;
    json_object *rows[] = {tree("{\"name\":\"a\"}"), tree("{\"name\":\"b\"}")};
    const char *versions[] = {NULL, "x"};
    char id[RV_UUID_MAX];

    world_open(w, _i);
    FAILS(RV_E_STATE,
          rv_store_put_entities(w->s, &ada,
                                &(struct rv_entities_put){
                                    .kind = "moments", .rows = rows, .n_rows = 2, .versions = versions, .now_us = T0},
                                NULL, &w->err));
    FINDS_NAMES(&ada, "moments", NULL, "");
    json_object_put(put_one(w, &bob, "moments", "{\"name\":\"m\"}", T0));
    rv_entity_make_id("moments", RV_STR_LIT("m"), "bob", id);
    FAILS(RV_E_NOT_FOUND, merge(w, w->s, id, "{\"a\":1}", "x"));
    json_object_put(rows[0]);
    json_object_put(rows[1]);
    world_close(w);
}
END_TEST

struct writer {
    rv_store *s;
    const char *id;
    bool in_groups; /* it reads and writes in one transaction, and needs no versions */
    int n_done;
    rv_err *err; /* the one that ended it */
};

static int add_one(struct writer *wr, json_object *row)
{
    json_object *list = NULL, *patch = tree("{}"), *all = json_object_new_array();
    char version[RV_ENTITY_VERSION_MAX];
    int rc = rv_entity_make_version(row, version, &wr->err);

    json_object_object_get_ex(json_object_object_get(row, "metadata"), "list", &list);
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        json_object_array_add(all, json_object_get(json_object_array_get_idx(list, i)));
    json_object_array_add(all, json_object_new_int(wr->n_done));
    json_object_object_add(patch, "list", all);
    const struct rv_metadata_change change = {.members = patch, .version = wr->in_groups ? NULL : version};
    if (rc == 0)
        rc = rv_store_merge_metadata(wr->s, &ada, &(struct rv_entity_target){"moments", wr->id, T0}, &change, NULL,
                                     &wr->err);
    json_object_put(patch);
    return rc;
}

static int add_in_group(struct writer *wr)
{
    int rc;

    do {
        json_object *row = NULL;
        rc = rv_store_begin(wr->s, &wr->err);
        if (rc == 0) {
            rc = rv_store_get_entity(wr->s, &ada, "moments", wr->id, &row, &wr->err);
            if (rc == 0)
                rc = add_one(wr, row);
            rc = rv_store_end(wr->s, rc, &wr->err);
        }
        json_object_put(row);
    } while (rc < 0 && rv_store_wait_again(wr->s, &wr->err));
    return rc;
}

static int add_alone(struct writer *wr)
{
    json_object *row = NULL;
    int rc = rv_store_get_entity(wr->s, &ada, "moments", wr->id, &row, &wr->err);

    if (rc == 0)
        rc = add_one(wr, row);
    json_object_put(row);
    return rc;
}

static void *add_many(void *arg)
{
    struct writer *wr = arg;

    while (wr->n_done < N_EACH) {
        int rc = wr->in_groups ? add_in_group(wr) : add_alone(wr);
        wr->n_done += rc == 0;
        if (rc < 0 && (rc != RV_E_STATE || wr->in_groups))
            break;
        rv_err_free(wr->err);
        wr->err = NULL;
    }
    return NULL;
}

static void lose_nothing(struct world *w, bool in_groups)
{
    char id[RV_UUID_MAX];
    pthread_t thread;
    json_object *row = NULL, *list;

    OK(put(w, w->s, "{\"name\":\"m\"}", "", T0));
    rv_entity_make_id("moments", RV_STR_LIT("m"), "ada", id);
    struct writer one = {.s = w->s, .id = id, .in_groups = in_groups}, other = one;
    other.s = NULL;
    if (w->impl->is_shared) {
        other.s = world_other(w);
        ck_assert_int_eq(pthread_create(&thread, NULL, add_many, &other), 0);
    }
    add_many(&one);
    ck_assert_msg(one.n_done == N_EACH, "%s", rv_err_text(one.err));
    if (other.s) {
        pthread_join(thread, NULL);
        ck_assert_msg(other.n_done == N_EACH, "%s", rv_err_text(other.err));
        rv_store_close(other.s);
    }
    OK(rv_store_get_entity(w->s, &ada, "moments", id, &row, &w->err));
    list = json_object_object_get(json_object_object_get(row, "metadata"), "list");
    ck_assert_uint_eq(json_object_array_length(list), (size_t)(one.n_done + other.n_done));
    json_object_put(row);
}

START_TEST(two_writers_with_versions_lose_nothing)
{
    struct world world;

    world_open(&world, _i);
    lose_nothing(&world, false);
    world_close(&world);
}
END_TEST

/* What a group has read stays as it is until the group ends. */
START_TEST(two_writers_in_groups_lose_nothing)
{
    struct world world;

    world_open(&world, _i);
    lose_nothing(&world, true);
    world_close(&world);
}
END_TEST

Suite *versions_suite(void)
{
    Suite *suite = suite_create("versions");
    TCase *tc = tcase_create("versions");

    ADD(tc, a_row_is_written_only_as_it_was_read);
    ADD(tc, a_refusal_leaves_everything_as_it_was);
    ADD(tc, two_writers_with_versions_lose_nothing);
    ADD(tc, two_writers_in_groups_lose_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
