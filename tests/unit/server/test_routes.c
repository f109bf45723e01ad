/* The table of routes: the names of its queries that no text of a handler has. tests/scripts/parameters has the others.
 */
#include <string.h>

#include "coreengine/server/body_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/store/entities.h"
#include "tests/kit/kit.h"
#include "tests/unit/server/suites.h"

/* Rows of a kind are selected by the columns that the table names: each is one of the kind, or it would have no effect.
 */
START_TEST(lists_of_rows_are_selected_by_columns_of_their_kind)
{
    static const char *const common[] = {"limit", "offset", "name", "tag"};
    size_t n_columns = 0;

    for (size_t i = 0; i < srv_n_routes; i++) {
        const struct srv_route *r = &srv_routes[i];
        const struct rv_kind *kind = rv_kind_find(rv_str_of(r->path + 1));
        bool is_list = kind && r->work == srv_rows_list;
        for (const char *p = is_list ? r->query : ""; *p;) {
            const rv_str name = {p, strcspn(p, " ")};
            bool is_common = false;
            for (size_t k = 0; k < RV_COUNT(common); k++)
                is_common = is_common || rv_str_is(name, common[k]);
            ck_assert_msg(is_common || rv_kind_field(kind, name), "%s has no column %.*s", kind->name,
                          RV_STR_ARG(name));
            n_columns += !is_common;
            p += name.len + (p[name.len] == ' ');
        }
    }
    ck_assert_uint_ge(n_columns, 10);
}
END_TEST

/* A body without a schema would not be checked, and one that may have more has a mark. */
START_TEST(bodies_have_a_schema_that_is_as_strict_as_their_route)
{
    for (size_t i = 0; i < srv_n_routes; i++)
        ck_assert_msg(!srv_routes[i].takes || srv_body_is_known(srv_routes[i].takes), "%s", srv_routes[i].path);
    ck_assert(!srv_body_is_known("Nothing"));
    ck_assert(!srv_body_is_known("Query"));
    ck_assert(!srv_body_is_known("+Fork"));
}
END_TEST

TCase *routes_case(void)
{
    TCase *tc = tcase_create("routes");

    tcase_add_test(tc, bodies_have_a_schema_that_is_as_strict_as_their_route);
    tcase_add_test(tc, lists_of_rows_are_selected_by_columns_of_their_kind);
    return tc;
}
