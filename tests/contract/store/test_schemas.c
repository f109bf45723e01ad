/* Schemas: a person's word against what registers itself, own before everybody's, and the number that tells of
 * changes. */
#include "tests/contract/store/world.h"

static struct rv_schema_row schema(const char *name, const char *user, const char *source, const char *document)
{
    return (struct rv_schema_row){.user = user,
                                  .name = name,
                                  .kind = "agent",
                                  .source = source,
                                  .content = RV_STR_LIT("You help."),
                                  .document = rv_str_of(document)};
}

static int put(struct world *w, const char *name, const char *user, const char *source, const char *document,
               bool *changed)
{
    const struct rv_schema_row row = schema(name, user, source, document);

    return rv_store_put_schema(w->s, &row, strcmp(source, "person") == 0 ? RV_SCHEMA_PUT : RV_SCHEMA_REGISTER, T0 + 1,
                               changed, &w->err);
}

/* What the scope finds: "document source"; "" for none. */
static void finds(struct world *w, const char *user, const char *name, const char *want, int line)
{
    const struct rv_store_scope scope = {NULL, user};
    struct rv_schema_row row;
    char got[200] = "";
    int rc = rv_store_find_schema(w->s, &scope, "agent", name, &row, NULL);

    ck_assert_msg(rc == 0 || rc == RV_E_NOT_FOUND, "line %d: %s", line, rv_code_text(rc));
    if (rc == 0) {
        snprintf(got, sizeof got, "%.*s %s", RV_STR_ARG(row.document), row.source);
        rv_schema_row_fini(&row);
    }
    ck_assert_msg(strcmp(got, want) == 0, "line %d: found \"%s\", not \"%s\"", line, got, want);
}
#define FINDS(user, name, want) finds(w, (user), (name), (want), __LINE__)

START_TEST(everything_of_a_schema_is_kept)
{
    const struct rv_schema_row given = {.tenant = "default",
                                        .user = "u",
                                        .name = "n",
                                        .kind = "agent",
                                        .version = "1.2",
                                        .description = "what it does",
                                        .content = RV_STR_LIT("You\nhelp."),
                                        .json_schema = RV_STR_LIT("{\"type\":\"object\"}"),
                                        .document = RV_STR_LIT("type: object # and more\n"),
                                        .source = "file",
                                        .place = "agents/n.yaml"};
    struct world world, *w = &world;
    struct rv_schema_row row;
    char hash[RV_HASH_MAX];

    world_open(w, _i);
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0 + 1, NULL, &w->err));
    OK(rv_store_find_schema(w->s, &(struct rv_store_scope){NULL, "u"}, "agent", "n", &row, &w->err));
    rv_hash_format(given.document, hash);
    ck_assert_str_eq(row.checksum, hash);
    ck_assert_str_eq(row.tenant, "default");
    ck_assert_str_eq(row.user, "u");
    ck_assert_str_eq(row.name, "n");
    ck_assert_str_eq(row.kind, "agent");
    ck_assert_str_eq(row.version, "1.2");
    ck_assert_str_eq(row.description, "what it does");
    ck_assert_str_eq(row.source, "file");
    ck_assert_str_eq(row.place, "agents/n.yaml");
    ck_assert(rv_str_eq(row.content, given.content));
    ck_assert(rv_str_eq(row.json_schema, given.json_schema));
    ck_assert(rv_str_eq(row.document, given.document));
    ck_assert_int_eq(row.created_us, T0 + 1);
    ck_assert_int_eq(row.updated_us, T0 + 1);
    rv_schema_row_fini(&row);
    world_close(w);
}
END_TEST

/* p8-data 1.2 */
/* Proves p8-data.1.2 */
START_TEST(an_id_follows_from_name_and_user)
{
    struct world world, *w = &world;
    struct rv_schema_row given = schema("general", "", "person", "d"), row;

    world_open(w, _i);
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(rv_store_find_schema(w->s, &operator_scope, "agent", "general", &row, &w->err));
    ck_assert_str_eq(row.id, "a3d68952-38c5-53c8-8932-d6465da18899");
    rv_schema_row_fini(&row);
    given.tenant = "else";
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    given.tenant = NULL;
    given.kind = "tool";
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(rv_store_find_schema(w->s, &operator_scope, "tool", "general", &row, &w->err));
    ck_assert_str_eq(row.id, "a3d68952-38c5-53c8-8932-d6465da18899");
    rv_schema_row_fini(&row);
    world_close(w);
}
END_TEST

START_TEST(a_given_id_is_one_rows)
{
    struct world world, *w = &world;
    struct rv_schema_row given = schema("n", "u", "person", "d"), row;

    world_open(w, _i);
    given.id = "my-id";
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    given.document = RV_STR_LIT("e");
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    given.user = "v";
    SAYS(RV_E_DENIED, "belongs to another user", rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    given.user = "u";
    given.name = "other";
    FAILS(RV_E_EXISTS, rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    given.name = "n";
    given.id = NULL; /* it keeps the one it has */
    given.document = RV_STR_LIT("f");
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(rv_store_find_schema(w->s, &(struct rv_store_scope){NULL, "u"}, "agent", "n", &row, &w->err));
    ck_assert_str_eq(row.id, "my-id");
    rv_schema_row_fini(&row);
    given.tenant = "else";
    given.id = "my-id";
    given.user = "v";
    OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
    world_close(w);
}
END_TEST

START_TEST(ones_own_goes_before_everybodys)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    OK(put(w, "n", "", "built-in", "shared", NULL));
    OK(put(w, "n", "u", "person", "own", NULL));
    OK(put(w, "m", "v", "person", "private", NULL));
    FINDS("u", "n", "own person");
    FINDS("v", "n", "shared built-in");
    FINDS("", "n", "shared built-in");
    FINDS(NULL, "n", "shared built-in");
    FINDS("u", "m", "");
    FINDS("", "m", "");
    FINDS("v", "m", "private person");
    FAILS(RV_E_NOT_FOUND,
          rv_store_find_schema(w->s, &operator_scope, "tool", "n", &(struct rv_schema_row){0}, &w->err));
    OK(rv_store_list_schemas(w->s, &(struct rv_store_scope){NULL, "u"}, "agent", see_schema, &seen, &w->err));
    SEEN(&seen, "n/u n/");
    OK(rv_store_list_schemas(w->s, &(struct rv_store_scope){NULL, "v"}, NULL, see_schema, &seen, &w->err));
    SEEN(&seen, "m/v n/");
    OK(rv_store_list_schemas(w->s, &(struct rv_store_scope){NULL, ""}, "agent", see_schema, &seen, &w->err));
    SEEN(&seen, "n/");
    OK(rv_store_list_schemas(w->s, &operator_scope, "agent", see_schema, &seen, &w->err));
    SEEN(&seen, "m/v n/u n/");
    OK(rv_store_list_schemas(w->s, &operator_scope, "tool", see_schema, &seen, &w->err));
    SEEN(&seen, "");
    OK(rv_store_list_schemas(w->s, &(struct rv_store_scope){"else", NULL}, NULL, see_schema, &seen, &w->err));
    SEEN(&seen, "");
    OK(rv_store_delete_schema(w->s, &(struct rv_store_scope){NULL, "u"}, "agent", "n", T0 + 5, &w->err));
    FINDS("u", "n", "shared built-in"); /* deleting one's own uncovers everybody's */
    FAILS(RV_E_NOT_FOUND,
          rv_store_delete_schema(w->s, &(struct rv_store_scope){NULL, "u"}, "agent", "n", T0 + 5, &w->err));
    FINDS("u", "n", "shared built-in");
    OK(rv_store_delete_schema(w->s, &operator_scope, "agent", "n", T0 + 5, &w->err));
    FINDS("u", "n", "");
    world_close(w);
}
END_TEST

/* Each step: what is done, whether something was written, and what is found after it. */
START_TEST(a_persons_word_stands_against_what_registers)
{
    static const struct {
        const char *source; /* NULL: deleted */
        const char *document;
        bool changed;
        const char *found;
    } steps[] = {
        {"built-in", "one", true, "one built-in"}, {"built-in", "one", false, "one built-in"},
        {"built-in", "two", true, "two built-in"}, {"file", "two", false, "two built-in"},
        {"file", "three", true, "three file"},     {"person", "mine", true, "mine person"},
        {"person", "mine", false, "mine person"},  {"built-in", "four", false, "mine person"},
        {"file", "mine", false, "mine person"},    {NULL, NULL, true, ""},
        {"built-in", "five", false, ""}, /* a person's row that was deleted stays so */
        {"person", "mine", true, "mine person"},   {"person", "mine2", true, "mine2 person"},
    };
    struct world world, *w = &world;
    int64_t version = -1;

    world_open(w, _i);
    OK(rv_store_read_schemas_version(w->s, &version, &w->err));
    for (size_t i = 0; i < RV_COUNT(steps); i++) {
        int64_t now = version;
        bool changed = true;
        if (steps[i].source)
            OK(put(w, "n", "", steps[i].source, steps[i].document, &changed));
        else
            OK(rv_store_delete_schema(w->s, &operator_scope, "agent", "n", T0 + 2, &w->err));
        ck_assert_msg(changed == steps[i].changed, "step %zu", i);
        FINDS("u", "n", steps[i].found);
        OK(rv_store_read_schemas_version(w->s, &now, &w->err));
        ck_assert_msg((now != version) == steps[i].changed, "step %zu: version %lld, then %lld", i, (long long)version,
                      (long long)now);
        ck_assert_int_ge(now, version);
        version = now;
    }
    world_close(w);
}
END_TEST

START_TEST(what_registered_and_was_deleted_registers_again)
{
    struct world world, *w = &world;
    bool changed = false;

    world_open(w, _i);
    OK(put(w, "n", "", "built-in", "one", NULL));
    OK(rv_store_delete_schema(w->s, &operator_scope, "agent", "n", T0 + 2, &w->err));
    FINDS("", "n", "");
    OK(put(w, "n", "", "built-in", "one", &changed));
    ck_assert(changed);
    FINDS("", "n", "one built-in");
    world_close(w);
}
END_TEST

/* Any difference is a change, not only that of the document. */
START_TEST(a_person_may_change_any_part)
{
    struct world world, *w = &world;
    struct rv_schema_row row = schema("n", "", "person", "d");
    bool changed;

    world_open(w, _i);
#define CHANGES(want)                                                                                                  \
    do {                                                                                                               \
        OK(rv_store_put_schema(w->s, &row, RV_SCHEMA_PUT, T0, &changed, &w->err));                                     \
        ck_assert_int_eq(changed, (want));                                                                             \
    } while (0)
    CHANGES(true);
    CHANGES(false);
    row.version = "2";
    CHANGES(true);
    row.description = "d";
    CHANGES(true);
    row.content = RV_STR_LIT("other");
    CHANGES(true);
    row.json_schema = RV_STR_LIT("{\"a\":1}");
    CHANGES(true);
    row.place = "p";
    CHANGES(true);
    row.source = "file";
    CHANGES(true);
    row.version = NULL;
    CHANGES(true);
    CHANGES(false);
#undef CHANGES
    world_close(w);
}
END_TEST

START_TEST(a_change_is_seen_by_other_handles)
{
    struct world world, *w = &world;
    rv_store *other;
    int64_t before = -1, after = -1;

    world_open(w, _i);
    other = w->impl->is_shared ? world_other(w) : w->s;
    OK(rv_store_read_schemas_version(other, &before, &w->err));
    OK(put(w, "n", "", "person", "d", NULL));
    OK(rv_store_read_schemas_version(other, &after, &w->err));
    ck_assert_int_ne(before, after);
    OK(rv_store_read_schemas_version(w->s, &before, &w->err));
    ck_assert_int_eq(before, after);
    OK(rv_store_delete_schema(other, &operator_scope, "agent", "n", T0, &w->err));
    OK(rv_store_read_schemas_version(w->s, &after, &w->err));
    ck_assert_int_ne(before, after);
    if (other != w->s)
        rv_store_close(other);
    world_close(w);
}
END_TEST

START_TEST(a_schema_takes_only_what_can_be_one)
{
    static char too_long[RV_STORE_MAX_ID + 2];
    const struct {
        struct rv_schema_row row;
        enum rv_schema_put how;
        int code;
        const char *part;
    } rows[] = {
#define ROW(code, part, how, name_, kind_, source_, ...)                                                               \
    {{.name = (name_), .kind = (kind_), .source = (source_), __VA_ARGS__}, (how), (code), (part)}
        ROW(RV_E_INVALID, "no schema's name given", RV_SCHEMA_PUT, NULL, "agent", "person", .own = NULL),
        ROW(RV_E_INVALID, "name is empty", RV_SCHEMA_PUT, "", "agent", "person", .own = NULL),
        ROW(RV_E_LIMIT, "longer", RV_SCHEMA_PUT, too_long, "agent", "person", .own = NULL),
        ROW(RV_E_INVALID, "no kind given", RV_SCHEMA_PUT, "n", NULL, "person", .own = NULL),
        ROW(RV_E_INVALID, "neither person", RV_SCHEMA_PUT, "n", "agent", NULL, .own = NULL),
        ROW(RV_E_INVALID, "neither person", RV_SCHEMA_PUT, "n", "agent", "cat", .own = NULL),
        ROW(RV_E_INVALID, "does not belong to a person", RV_SCHEMA_REGISTER, "n", "agent", "person", .own = NULL),
        ROW(RV_E_INVALID, "id is empty", RV_SCHEMA_PUT, "n", "agent", "person", .id = ""),
        ROW(RV_E_INVALID, "tenant is empty", RV_SCHEMA_PUT, "n", "agent", "person", .tenant = ""),
        ROW(RV_E_LIMIT, "user", RV_SCHEMA_PUT, "n", "agent", "person", .user = too_long),
        ROW(RV_E_INVALID, "description", RV_SCHEMA_PUT, "n", "agent", "person", .description = "\xff"),
        ROW(RV_E_INVALID, "content", RV_SCHEMA_PUT, "n", "agent", "person", .content = RV_STR_LIT("\xff")),
        ROW(RV_E_INVALID, "json_schema is not a JSON object", RV_SCHEMA_PUT, "n", "agent", "person",
            .json_schema = RV_STR_LIT("type: x")),
        ROW(RV_E_LIMIT, "document", RV_SCHEMA_PUT, "n", "agent", "person", .document = {"x", RV_STORE_MAX_VALUE + 1}),
#undef ROW
    };
    struct world world, *w = &world;
    struct rv_store_stats stats;

    memset(too_long, 'x', sizeof too_long - 1);
    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        SAYS(rows[i].code, rows[i].part, rv_store_put_schema(w->s, &rows[i].row, rows[i].how, T0, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_put_schema(w->s, NULL, RV_SCHEMA_PUT, T0, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_find_schema(w->s, &operator_scope, "", "n", &(struct rv_schema_row){0}, &w->err));
    FAILS(RV_E_INVALID, rv_store_find_schema(w->s, NULL, "agent", "n", &(struct rv_schema_row){0}, &w->err));
    FAILS(RV_E_INVALID, rv_store_delete_schema(w->s, &operator_scope, "agent", "", T0, &w->err));
    FAILS(RV_E_INVALID, rv_store_list_schemas(w->s, &operator_scope, "", see_schema, NULL, &w->err));
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.schemas, 0);
    world_close(w);
}
END_TEST

Suite *schemas_suite(void)
{
    Suite *suite = suite_create("schemas");
    TCase *tc = tcase_create("schemas");

    ADD(tc, everything_of_a_schema_is_kept);
    ADD(tc, an_id_follows_from_name_and_user);
    ADD(tc, a_given_id_is_one_rows);
    ADD(tc, ones_own_goes_before_everybodys);
    ADD(tc, a_persons_word_stands_against_what_registers);
    ADD(tc, what_registered_and_was_deleted_registers_again);
    ADD(tc, a_person_may_change_any_part);
    ADD(tc, a_change_is_seen_by_other_handles);
    ADD(tc, a_schema_takes_only_what_can_be_one);
    suite_add_tcase(suite, tc);
    return suite;
}
