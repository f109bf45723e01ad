/* Entities by random scripts: all stores give the same bytes, and what one user does changes nothing that another sees.
 */
#include "tests/contract/store/entities.h"

#define STEPS     50
#define N_WHO     4
#define EVERYBODY 0xfu
#define OPERATOR  3

static const struct rv_store_scope *const scopes[N_WHO] = {&ada, &bob, &unowned, &operator_scope};
static const char *const owners[N_WHO] = {"ada", "bob", "", NULL};
static const char *const kinds[] = {"moments", "ontologies", "users", "resources", "feedback"};
static const char *const names[] = {"A b", "a-b", "c", "\xc3\x9cn\xc3\xaf \xe6\x97\xa5", "!?", ""};
static const char *const words[] = {"a_b",
                                    "C",
                                    "\xc3\xbcn\xc3\xaf-\xe6\x97\xa5",
                                    "chat s1",
                                    "session-s1-msg-1",
                                    "agent",
                                    "9eb51f0b-3026-58aa-8afa-835fd3f3febc",
                                    "s1"};
static const char *const tags[] = {"x", "y", "z\"\\"};

struct script {
    struct world world;
    struct rv_rand_state states[N_WHO + 1];
    struct rv_rand rands[N_WHO + 1]; /* of each user, so that one's steps do not depend on another's; and the order */
    rv_buf logs[N_WHO];
    int who;
    int64_t now_us;
    rv_err *err;
};

static size_t below(struct script *s, size_t n)
{
    return (size_t)rv_rand_below(s->rands[s->who], n);
}
#define ONE_OF(list) (list)[below(s, RV_COUNT(list))]

static void note(struct script *s, const char *what, int rc)
{
    rv_buf_printf(&s->logs[s->who], "%s %s\n", what, rc == 0 ? "ok" : rv_code_text(rc));
    rv_err_free(s->err);
    s->err = NULL;
}

static int note_row(void *self, json_object *row, rv_err **err)
{
    struct script *s = self;
    json_object *user = NULL;

    (void)err;
    json_object_object_get_ex(row, "user_id", &user);
    /* p8-data 23.7: no row of anyone but the caller or unowned */
    if (s->who != OPERATOR && user)
        ck_assert_str_eq(json_object_get_string(user), owners[s->who]);
    rv_buf_puts(&s->logs[s->who], "  ");
    rv_json_write(row, &s->logs[s->who]);
    rv_buf_putc(&s->logs[s->who], '\n');
    return 0;
}

static int note_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    struct script *s = self;

    (void)err;
    if (s->who != OPERATOR)
        ck_assert(!*hit->user || strcmp(hit->user, owners[s->who]) == 0);
    rv_buf_printf(&s->logs[s->who], "  %s %s %s %s %.*s\n", hit->kind->name, hit->key, hit->user, hit->id,
                  RV_STR_ARG(hit->summary));
    return 0;
}

/* --- Steps --- */

static void random_tags(struct script *s, json_object *row, const char *column)
{
    json_object *list = json_object_new_array();

    for (size_t n = below(s, 3); n > 0; n--)
        ck_assert_int_eq(json_object_array_add(list, json_object_new_string(ONE_OF(tags))), 0);
    json_object_object_add(row, column, list);
}

static json_object *random_edges(struct script *s)
{
    json_object *list = json_object_new_array();

    for (size_t n = below(s, 4); n > 0; n--) {
        json_object *edge = json_object_new_object();
        json_object_object_add(edge, "target", json_object_new_string(below(s, 2) ? "A b" : "c d"));
        if (below(s, 2))
            json_object_object_add(edge, "relation", json_object_new_string(below(s, 2) ? "links_to" : "related"));
        if (below(s, 2))
            json_object_object_add(edge, "weight", rv_json_new_double((double)below(s, 5) / 4));
        ck_assert_int_eq(json_object_array_add(list, edge), 0);
    }
    return list;
}

static json_object *random_row(struct script *s, const char *kind)
{
    json_object *row = json_object_new_object();

    if (strcmp(kind, "feedback") == 0) {
        json_object_object_add(row, "comment", json_object_new_string(ONE_OF(names)));
        return row;
    }
    if (below(s, 8))
        json_object_object_add(row, "name", json_object_new_string(ONE_OF(names)));
    if (strcmp(kind, "users") == 0)
        json_object_object_add(row, "email", json_object_new_string(below(s, 2) ? "a@b" : "c@d"));
    if (strcmp(kind, "moments") == 0 && below(s, 2))
        random_tags(s, row, "topic_tags");
    if (strcmp(kind, "moments") == 0 && below(s, 2))
        json_object_object_add(row, "moment_type", below(s, 3) ? json_object_new_string("note") : NULL);
    if (below(s, 2))
        random_tags(s, row, "tags");
    if (below(s, 3) == 0)
        json_object_object_add(row, "graph_edges", random_edges(s));
    if (below(s, 3) == 0)
        json_object_object_add(row, "metadata", tree(below(s, 2) ? "{\"a\":1.50,\"b\":{\"c\":[]}}" : "{}"));
    if (below(s, 8) == 0)
        json_object_object_add(row, "id", json_object_new_string("9eb51f0b-3026-58aa-8afa-835fd3f3febc"));
    if (below(s, 8) == 0)
        json_object_object_add(row, "user_id", json_object_new_string(below(s, 2) ? "ada" : "bob"));
    return row;
}

static void step_put(struct script *s)
{
    const char *kind = ONE_OF(kinds);
    json_object *rows[3], *out = NULL;
    struct rv_entities_put put = {.kind = kind, .rows = rows, .now_us = s->now_us, .rand = s->rands[s->who]};

    put.n_rows = 1 + below(s, RV_COUNT(rows));
    for (size_t i = 0; i < put.n_rows; i++)
        rows[i] = random_row(s, kind);
    note(s, "put", rv_store_put_entities(s->world.s, scopes[s->who], &put, &out, &s->err));
    for (size_t i = 0; out && i < json_object_array_length(out); i++)
        ck_assert_int_eq(note_row(s, json_object_array_get_idx(out, i), NULL), 0);
    json_object_put(out);
    for (size_t i = 0; i < put.n_rows; i++)
        json_object_put(rows[i]);
}

static void step_find(struct script *s)
{
    const char *kind = ONE_OF(kinds), *wanted[] = {ONE_OF(tags)};
    struct rv_entity_where where = {below(s, 2) && strcmp(kind, "moments") == 0 ? "moment_type" : "user_id", NULL};
    struct rv_entity_filter f = {.tags = wanted, .n_tags = below(s, 2), .where = &where, .n_where = below(s, 2)};

    if (below(s, 2))
        where.value = json_object_new_string(strcmp(where.column, "user_id") == 0 ? "ada" : "note");
    if (below(s, 4) == 0 && strcmp(kind, "feedback") != 0)
        f.name = ONE_OF(names);
    f.offset = (int64_t)below(s, 3);
    f.limit = (int64_t)below(s, 5);
    note(s, "find",
         rv_store_find_entities(s->world.s, scopes[s->who], &(const struct rv_entities_of){kind, &f}, note_row, s,
                                &s->err));
    json_object_put(where.value);
}

static void random_id(struct script *s, const char *kind, char id[RV_UUID_MAX])
{
    const char *user = below(s, 3) ? owners[s->who] : "";

    rv_entity_make_id(kind, rv_str_of(ONE_OF(names)), user ? user : "ada", id);
}

static void step_get(struct script *s)
{
    const char *kind = ONE_OF(kinds);
    char id[RV_UUID_MAX];
    json_object *row = NULL;

    random_id(s, kind, id);
    note(s, "get", rv_store_get_entity(s->world.s, scopes[s->who], kind, id, &row, &s->err));
    if (row)
        ck_assert_int_eq(note_row(s, row, NULL), 0);
    json_object_put(row);
}

static void step_delete(struct script *s)
{
    const char *kind = ONE_OF(kinds);
    char id[RV_UUID_MAX];
    int64_t n = 0;

    random_id(s, kind, id);
    if (below(s, 2)) {
        note(s, "delete",
             rv_store_delete_entity(s->world.s, scopes[s->who], &(struct rv_entity_target){kind, id, s->now_us},
                                    &s->err));
        return;
    }
    note(s, "delete named",
         rv_store_delete_entities_named(s->world.s, scopes[s->who],
                                        &(struct rv_entity_target){kind, ONE_OF(names), s->now_us}, &n, &s->err));
    rv_buf_printf(&s->logs[s->who], "  %lld\n", (long long)n);
}

static void step_merge(struct script *s)
{
    static const char *const gone[] = {"b"};
    const char *kind = ONE_OF(kinds);
    char id[RV_UUID_MAX];
    json_object *given = below(s, 2) ? random_edges(s) : tree("{\"m\":[1e2,true]}"), *got = NULL;
    bool is_edges = json_object_is_type(given, json_type_array);
    int64_t n = 0;

    random_id(s, kind, id);
    if (is_edges)
        note(s, "edges",
             rv_store_merge_edges(s->world.s, scopes[s->who], &(struct rv_entity_target){kind, id, s->now_us}, given,
                                  &n, &s->err));
    else
        note(s, "metadata",
             rv_store_merge_metadata(
                 s->world.s, scopes[s->who], &(struct rv_entity_target){kind, id, s->now_us},
                 &(struct rv_metadata_change){.members = given, .remove = gone, .n_remove = below(s, 2)}, &got,
                 &s->err));
    rv_buf_printf(&s->logs[s->who], "  %lld ", (long long)n);
    rv_json_write(got, &s->logs[s->who]);
    rv_buf_putc(&s->logs[s->who], '\n');
    json_object_put(given);
    json_object_put(got);
}

static void step_lookup(struct script *s)
{
    const char *word = ONE_OF(words);

    note(s, word, rv_store_lookup(s->world.s, scopes[s->who], rv_str_of(word), note_hit, s, &s->err));
}

static void step_session(struct script *s)
{
    const char *user = owners[s->who] ? owners[s->who] : "ada";
    const struct rv_session_row fresh = {.id = "s1", .tenant = RV_STORE_TENANT, .user = user, .created_us = s->now_us};
    const struct rv_session_change change = {.name = ONE_OF(names), .now_us = s->now_us};
    struct rv_message m = world_message("m", "user", "hi");
    const struct rv_turn turn = {.session = "s1", .name = below(s, 2) ? "c" : NULL, .rows = &m, .n_rows = 1};

    note(s, "session", rv_store_ensure_session(s->world.s, &fresh, NULL, &s->err));
    if (below(s, 2))
        note(s, "turn", rv_store_add_messages(s->world.s, scopes[s->who], &turn, s->now_us, &s->err));
    if (*change.name && below(s, 2))
        note(s, "rename", rv_store_change_session(s->world.s, scopes[s->who], "s1", &change, &s->err));
    if (below(s, 8) == 0)
        note(s, "end", rv_store_delete_session(s->world.s, scopes[s->who], "s1", s->now_us, &s->err));
}

static void step_schema(struct script *s)
{
    const struct rv_schema_row row = {.user = owners[s->who],
                                      .name = "Agent",
                                      .kind = "agent",
                                      .source = "person",
                                      .content = rv_str_of(ONE_OF(names)),
                                      .document = RV_STR_LIT("d")};

    if (below(s, 4) == 0)
        note(s, "delete agent",
             rv_store_delete_schema(s->world.s, scopes[s->who], "agent", "Agent", s->now_us, &s->err));
    else
        note(s, "agent", rv_store_put_schema(s->world.s, &row, RV_SCHEMA_PUT, s->now_us, NULL, &s->err));
}

static void step(struct script *s)
{
    static void (*const steps[])(struct script * s) = {step_put,    step_put,     step_put,   step_find,
                                                       step_get,    step_delete,  step_merge, step_lookup,
                                                       step_lookup, step_session, step_schema};

    ONE_OF(steps)(s);
}

/* Only the steps of those are done. */
static void play(struct script *s, int impl, uint64_t seed, unsigned whose)
{
    world_open(&s->world, impl);
    for (int i = 0; i <= N_WHO; i++)
        s->rands[i] = rv_rand_seeded(&s->states[i], seed * 10 + (uint64_t)i);
    for (int i = 0; i < N_WHO; i++)
        s->logs[i] = RV_BUF_INIT((size_t)8 << 20);
    s->err = NULL;
    for (int i = 0; i < STEPS; i++) {
        s->now_us = T0 + i / 2; /* some at the same time */
        s->who = (int)rv_rand_below(s->rands[N_WHO], N_WHO);
        if (whose & 1u << s->who)
            step(s);
    }
    for (int i = 0; i < N_WHO; i++)
        ck_assert_int_eq(s->logs[i].rc, 0);
}

static void end(struct script *s, bool rebuilds)
{
    int64_t n = 0;

    if (rebuilds)
        ck_assert_int_eq(rv_store_rebuild_keys(s->world.s, &n, &s->world.err), 0);
    world_close(&s->world); /* which checks rows against keys */
    for (int i = 0; i < N_WHO; i++)
        rv_buf_fini(&s->logs[i]);
}

static void same(const struct script *a, const struct script *b, int who, uint64_t seed)
{
    const char *one = rv_buf_cstr(&a->logs[who]), *other = rv_buf_cstr(&b->logs[who]);
    size_t i = 0;

    while (one[i] && one[i] == other[i])
        i++;
    while (i > 0 && one[i - 1] != '\n')
        i--;
    ck_assert_msg(strcmp(one, other) == 0, "script %llu, %s and %s differ for %s:\n%.300s\n--\n%.300s",
                  (unsigned long long)seed, a->world.impl->name, b->world.impl->name, owners[who] ? owners[who] : "-",
                  one + i, other + i);
}

/* Proves p8-data.23/stores: All stores give equal JSON for the same script */
START_TEST(all_stores_give_the_same_bytes)
{
    static struct script a, b;
    int n = rv_kit_sample(20, 500);

    for (int seed = 1; seed <= n; seed++) {
        play(&a, 0, (uint64_t)seed, EVERYBODY);
        for (int i = 1; i < n_store_impls; i++) {
            play(&b, i, (uint64_t)seed, EVERYBODY);
            for (int who = 0; who < N_WHO; who++)
                same(&a, &b, who, (uint64_t)seed);
            end(&b, seed % 2 == 0);
        }
        end(&a, false);
    }
}
END_TEST

/* Proves p8-data.23/owners: Nothing that a caller gets is another user's, or depends on what another user has */
START_TEST(what_another_user_does_changes_nothing)
{
    static struct script with, without;
    int n = rv_kit_sample(40, 500);

    for (int seed = 1; seed <= n; seed++) {
        play(&with, 0, (uint64_t)seed, 1u << 0 | 1u << 1 | 1u << 2);
        play(&without, 0, (uint64_t)seed, 1u << 0 | 1u << 2);
        same(&with, &without, 0, (uint64_t)seed);
        same(&with, &without, 2, (uint64_t)seed);
        end(&with, false);
        end(&without, false);
    }
}
END_TEST

Suite *entities_random_suite(void)
{
    Suite *suite = suite_create("entities random");
    TCase *tc = tcase_create("scripts");

    tcase_add_test(tc, all_stores_give_the_same_bytes);
    if (first_store_impl == 0) /* it plays in memory */
        tcase_add_test(tc, what_another_user_does_changes_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
