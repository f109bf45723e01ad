/* Each allocation of a conversation's life fails once, SQLite's own included; as fault_store.c, with sessions, messages
 * and schemas. */
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define T0 INT64_C(1700000000000000)

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;

#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static const struct rv_store_scope scope = {NULL, NULL}, own = {NULL, "u"};
static char large[5000];
static char url[300], path[300], empty[300];
static json_object *page, *edges;
static json_object *metadata; /* what turns bring along; made before the allocator is armed */

static int make_run(rv_store *s, rv_err **err)
{
    char bundle[RV_HASH_MAX];
    const struct rv_record first = {.seq = 1, .body = RV_STR_LIT("one")};
    const struct rv_store_new_run run = {.id = "r1",
                                         .user = "u",
                                         .session = "s1",
                                         .pipeline = "p",
                                         .bundle = bundle,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .now_us = T0,
                                         .records = &first,
                                         .n_records = 1};
    int rc = rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, err);

    return rc < 0 ? rc : rv_store_create_run(s, &run, err);
}

static int look_message(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    must(m->seq == ++*(int64_t *)self && m->id && m->type);
    return 0;
}

static int look_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)err;
    must(row->id && row->name && row->metadata.ptr);
    ++*(int64_t *)self;
    return 0;
}

static int look_schema(void *self, const struct rv_schema_row *row, rv_err **err)
{
    (void)err;
    must(row->id && row->name && row->document.ptr);
    ++*(int64_t *)self;
    return 0;
}

/* A step with two turns, alone and in a group in which another is refused. */
static int write_turns(rv_store *s, rv_err **err)
{
    struct rv_message rows[] = {
        {.id = "m1", .type = "user", .has_content = true, .content = {large, sizeof large}, .token_count = RV_UNSET},
        {.id = "m2", .type = "tool_call", .tool_calls = RV_STR_LIT("{\"name\":\"f\"}"), .agent_name = "aide"}};
    struct rv_turn turns[] = {{.session = "s1", .name = "cats", .metadata = metadata, .rows = rows, .n_rows = 2},
                              {.session = "s2", .rows = rows, .n_rows = 1}};
    struct rv_record r = {.seq = 2, .body = RV_STR_LIT("two")};
    struct rv_store_append a = {.run = "r1",
                                .fence = 1,
                                .records = &r,
                                .n_records = 1,
                                .now_us = T0,
                                .status = RV_RUN_RUNNING,
                                .stage = "c",
                                .turns = turns,
                                .n_turns = 2};
    int rc = rv_store_append(s, &a, err), refused;

    if (rc == 0)
        rc = rv_store_begin(s, err);
    if (rc < 0)
        return rc;
    r.seq = 4; /* there is a gap */
    rows[0].id = "m3";
    refused = rv_store_append(s, &a, err);
    must(refused == RV_E_STATE || refused == RV_E_NOMEM);
    if (refused == RV_E_STATE) {
        rv_err_free(*err);
        *err = NULL;
        r.seq = 3;
        a.n_turns = 1;
        rc = rv_store_append(s, &a, err);
    } else {
        rc = refused;
    }
    if (rc == 0)
        return rv_store_commit(s, err);
    rv_store_rollback(s);
    return rc;
}

static int talk(rv_store *s, rv_err **err)
{
    const struct rv_session_row theirs = {.id = "s1", .tenant = "default", .user = "v", .created_us = T0};
    const char *const remove[] = {"b"};
    const struct rv_session_change change = {
        .name = "dogs", .metadata = metadata, .remove = remove, .n_remove = 1, .now_us = T0};
    const struct rv_session_filter filter = {.name_contains = "O"};
    const struct rv_message_filter with_all = {.with_children = true};
    struct rv_message more = {.id = "m9", .type = "observation", .has_content = true, .content = RV_STR_LIT("x")};
    const struct rv_turn turn = {.session = "s1", .metadata = metadata, .rows = &more, .n_rows = 1};
    struct rv_session_row row = {0};
    int64_t n = 0;
    int rc = rv_store_ensure_session(s, &theirs, &row, err);

    must((rc == 0) == (row.id != NULL));
    rv_session_row_fini(&row);
    if (rc == 0)
        rc = write_turns(s, err);
    if (rc == 0)
        rc = rv_store_change_session(s, &own, "s1", &change, err);
    if (rc == 0)
        rc = rv_store_add_messages(s, &own, &turn, T0, err);
    if (rc == 0)
        rc = rv_store_read_messages(s, &own, &(const struct rv_messages_of){"s1", &with_all}, look_message, &n, err);
    must(rc < 0 || n == 4);
    n = 0;
    if (rc == 0)
        rc = rv_store_list_sessions(s, &own, &filter, look_session, &n, err);
    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_delete_session(s, &own, "s2", T0, err);
    if (rc == 0)
        rc = rv_store_get_session(s, &own, "s1", &row, err);
    must(rc < 0 || (row.n_messages == 4 && strcmp(row.name, "dogs") == 0));
    rv_session_row_fini(&row);
    return rc;
}

static int keep_schemas(rv_store *s, rv_err **err)
{
    struct rv_schema_row given = {.name = "n", .kind = "agent", .source = "built-in", .document = RV_STR_LIT("one")};
    struct rv_schema_row row = {0};
    int64_t n = 0, version = 0;
    int rc = rv_store_put_schema(s, &given, RV_SCHEMA_REGISTER, T0, NULL, err);

    given.document = RV_STR_LIT("two");
    if (rc == 0)
        rc = rv_store_put_schema(s, &given, RV_SCHEMA_REGISTER, T0, NULL, err);
    given.user = "u";
    given.id = "mine";
    if (rc == 0)
        rc = rv_store_put_schema(s, &given, RV_SCHEMA_PUT, T0, NULL, err);
    if (rc == 0)
        rc = rv_store_list_schemas(s, &scope, "agent", look_schema, &n, err);
    must(rc < 0 || n == 2);
    if (rc == 0)
        rc = rv_store_delete_schema(s, &scope, "agent", "n", T0, err);
    if (rc == 0)
        rc = rv_store_find_schema(s, &(struct rv_store_scope){NULL, "u"}, "agent", "n", &row, err);
    must(rc < 0 || strcmp(row.id, "mine") == 0);
    rv_schema_row_fini(&row);
    if (rc == 0)
        rc = rv_store_read_schemas_version(s, &version, err);
    must(rc < 0 || version == 4);
    return rc;
}

static int look_row(void *self, json_object *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int64_t *)self;
    return 0;
}

static int look_key(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)hit;
    (void)err;
    ++*(int64_t *)self;
    return 0;
}

/* All but the rebuild, which reads the rows as find does. */
static int change_page(rv_store *s, const char *id, rv_err **err)
{
    json_object *out = NULL;
    int64_t n = 0;
    int rc = rv_store_merge_metadata(s, &own, &(struct rv_entity_target){"ontologies", id, T0 + 1},
                                     &(struct rv_metadata_change){.members = metadata}, &out, err);

    must((rc == 0) == (out != NULL));
    json_object_put(out);
    if (rc == 0)
        rc = rv_store_merge_edges(s, &own, &(struct rv_entity_target){"ontologies", id, T0 + 1}, edges, &n, err);
    must(rc < 0 || n == 2);
    out = NULL;
    if (rc == 0)
        rc = rv_store_get_entity(s, &own, "ontologies", id, &out, err);
    must((rc == 0) == (out != NULL));
    json_object_put(out);
    return rc;
}

static int keep_entities(rv_store *s, rv_err **err)
{
    static const char *const wanted[] = {"t"};
    const struct rv_entity_filter filter = {.tags = wanted, .n_tags = 1};
    const struct rv_entities_put put = {.kind = "ontologies", .rows = &page, .n_rows = 1, .now_us = T0};
    const char *id = NULL;
    json_object *rows = NULL;
    int64_t n = 0;
    int rc = rv_store_put_entities(s, &own, &put, &rows, err);

    must((rc == 0) == (rows != NULL));
    if (rc == 0 && rv_json_get_text(json_object_array_get_idx(rows, 0), "id", &id))
        rc = change_page(s, id, err);
    json_object_put(rows);
    if (rc == 0)
        rc = rv_store_find_entities(s, &own, &(const struct rv_entities_of){"ontologies", &filter}, look_row, &n, err);
    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_lookup(s, &own, RV_STR_LIT("my page"), look_key, &n, err);
    must(rc < 0 || n == 2);
    if (rc == 0)
        rc = rv_store_rebuild_keys(s, &n, err);
    if (rc == 0)
        rc = rv_store_delete_entities_named(s, &own, &(struct rv_entity_target){"ontologies", "My page", T0 + 2}, &n,
                                            err);
    must(rc < 0 || n == 1);
    return rc;
}

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};

static int live(void)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(url, &opts, &s, &err);

    if (rc == 0)
        rc = make_run(s, &err);
    if (rc == 0)
        rc = talk(s, &err);
    if (rc == 0)
        rc = keep_schemas(s, &err);
    if (rc == 0)
        rc = keep_entities(s, &err);
    if (rc == 0)
        rc = rv_store_check(s, &err);
    must((rc < 0) == (err != NULL));
    must(rc == 0 || rv_err_is(err, RV_E_NOMEM));
    if (rc < 0 && s) /* the allocation that failed is behind us */
        must(rv_store_check(s, NULL) == 0);
    rv_store_close(s);
    rv_err_free(err);
    return rc;
}

static void remove_files(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[320];

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* A store without content; fault_store.c has the allocations of making one. */
static void make_empty(void)
{
    rv_store *s = NULL;

    ck_assert_int_eq(rv_store_open(empty, &opts, &s, NULL), 0);
    rv_store_close(s);
}

/* What is left on the disk is a store. */
static void check_file(size_t n)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(url, &opts, &s, &err);

    if (rc == 0)
        rc = rv_store_check(s, &err);
    ck_assert_msg(rc == 0, "allocation %zu: %s", n, rv_err_text(err));
    rv_store_close(s);
}

START_TEST(every_allocation_of_a_conversation_may_fail_once)
{
    char *dir = rv_kit_tmpdir();
    size_t n, n_survived = 0;

    snprintf(path, sizeof path, "%s/store.db", dir);
    snprintf(empty, sizeof empty, "%s/empty.db", dir);
    make_empty();
    snprintf(url, sizeof url, "%s", path);
    memset(large, 'x', sizeof large);
    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"a\":{\"x\":[1,2.5]},\"b\":null}"), NULL, &metadata, NULL), 0);
    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"name\":\"My page\",\"tags\":[\"t\"],\"content\":\"c\","
                                              "\"graph_edges\":[{\"target\":\"a\"}],\"extracted_data\":{}}"),
                                   NULL, &page, NULL),
                     0);
    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("[{\"target\":\"b\",\"weight\":2}]"), NULL, &edges, NULL), 0);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(live(), 0); /* libraries set themselves up at first use */
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        int rc;
        remove_files();
        rv_kit_copy(empty, path);
        rv_fault_arm(n);
        rc = live();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(broken_line == 0, "allocation %zu: broken at line %d", n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks leaked", n, rv_fault_balance());
        n_survived += rc == 0; /* SQLite does without some; so does the text of a refusal */
        check_file(n);
    }
    ck_assert_msg(!rv_fault_works() || (n > 30 && n_survived < n / 10), "%zu allocations, %zu done without", n,
                  n_survived);
    json_object_put(metadata);
    json_object_put(page);
    json_object_put(edges);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_sessions");
    TCase *tc = tcase_create("allocations");

    tcase_add_test(tc, every_allocation_of_a_conversation_may_fail_once);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
