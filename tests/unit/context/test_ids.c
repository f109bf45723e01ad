/* Ids that follow from names: the worked values of p8-data 1.2 and remlight 1. */
#include "tests/kit/kit.h"
#include "tests/unit/context/suites.h"

static const struct {
    const char *table, *key, *user, *id;
} entities[] = {
    {"schemas", "general", NULL, "a3d68952-38c5-53c8-8932-d6465da18899"},
    {"schemas", "general", "", "a3d68952-38c5-53c8-8932-d6465da18899"},
    {"users", "user@example.com", NULL, "e76db623-9067-5688-9d24-e05bff36b694"},
    {"moments", "ML Patterns", "dddddddd-0000-0000-0000-000000000001", "ecdeb45e-1e9f-522b-8ceb-fec960f3dccc"},
    {"sessions", "daily-2026-02-24", "7d31eddf-7ff7-542a-982f-7522e7a3ec67", "42337eeb-87a3-5edb-8c18-6c97096853df"},
};

/* Proves p8-data.1.2: Ids of rows follow from table, name and user */
START_TEST(a_row_has_the_id_of_its_name)
{
    char id[RV_UUID_MAX];

    rv_entity_make_id(entities[_i].table, rv_str_of(entities[_i].key), entities[_i].user, id);
    ck_assert_str_eq(id, entities[_i].id);
}
END_TEST

static const char *const addresses[] = {"alice@example.com", "Alice@Example.COM", " \talice@example.com\r\n"};

/* Proves remlight.1/user: A user's id follows from the address, trimmed and in lower case */
START_TEST(a_user_has_the_id_of_the_address)
{
    char id[RV_UUID_MAX];

    rv_user_id_make(rv_str_of(addresses[_i]), id);
    ck_assert_str_eq(id, "edabafbb-61ad-51d6-9fd8-e976c892a731");
}
END_TEST

START_TEST(the_namespace_of_rows_is_a_domain_name)
{
    char id[RV_UUID_MAX];

    rv_user_id_make(RV_STR_LIT("p8.dev"), id); /* as an address, too, is named in the namespace of domains */
    ck_assert_str_eq(id, "d122db5d-aceb-5673-b6e0-ce9e4328e725");
}
END_TEST

TCase *ids_case(void)
{
    TCase *tc = tcase_create("ids");

    tcase_add_loop_test(tc, a_row_has_the_id_of_its_name, 0, RV_COUNT(entities));
    tcase_add_loop_test(tc, a_user_has_the_id_of_the_address, 0, RV_COUNT(addresses));
    tcase_add_test(tc, the_namespace_of_rows_is_a_domain_name);
    return tc;
}
