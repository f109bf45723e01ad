/* The table of routes: the names of its queries that no text of a handler has. tests/scripts/parameters has the others.
 */
#include <string.h>

#include "coreengine/server/body_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/store/store.h"
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
            ck_assert_msg(is_common || rv_kind_find_field(kind, name), "%s has no column %.*s", kind->name,
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

/* What is written wrongly would be passed over in silence. Clients of other servers may send what those have. */
START_TEST(parameters_that_a_route_does_not_have_are_refused)
{
    static const struct {
        const char *path; /* with blanks in place of slashes */
        const char *names[3];
        int rc;
        const char *says; /* part of the message or of the hint */
    } cases[] = {
        {"runs", {"limit", "status"}, 0, NULL},
        {"runs", {"limt"}, RV_E_INVALID, "did you mean \"limit\"?"},
        {"runs", {"limit", "limit"}, RV_E_INVALID, "given twice"},
        {"runs", {"colour"}, RV_E_INVALID, "this route takes: limit status session pipeline"},
        {"pipelines", {"x"}, RV_E_INVALID, "no parameters"},
        {"sessions", {"user", "limit"}, 0, NULL},
        {"runs", {"user"}, RV_E_INVALID, "unknown parameter"},
        {"agents", {"database_first"}, 0, NULL},
        {"agents", {"database_last"}, RV_E_INVALID, "no parameters"},
        {"api v1 runs", {"any"}, 0, NULL},
        {"v1 models", {"after"}, 0, NULL},
        {"healthz", {"probe"}, 0, NULL},
    };
    rv_str segments[4], args[SRV_MAX_ARGS];
    struct rv_httpd_field query[3];
    unsigned allowed;
    size_t n_args;

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        struct rv_httpd_request req = {.segments = segments, .query = query};
        rv_err *err = NULL;
        for (const char *p = cases[i].path; *p; req.n_segments++) {
            segments[req.n_segments] = (rv_str){p, strcspn(p, " ")};
            p += segments[req.n_segments].len + (p[segments[req.n_segments].len] == ' ');
        }
        for (; req.n_query < RV_COUNT(query) && cases[i].names[req.n_query]; req.n_query++)
            query[req.n_query] = (struct rv_httpd_field){rv_str_of(cases[i].names[req.n_query]), RV_STR_LIT("1")};
        const struct srv_route *r = srv_route_find(RV_METHOD_GET, segments, req.n_segments, args, &n_args, &allowed);
        ck_assert_ptr_nonnull(r);
        int rc = srv_route_check_query(r, &req, &err);
        ck_assert_msg(rc == cases[i].rc, "%s %s: %s", cases[i].path, cases[i].names[0], rv_code_text(rc));
        ck_assert_msg(!cases[i].says || strstr(rv_err_text(err), cases[i].says) ||
                          (rv_err_hint_text(err) && strstr(rv_err_hint_text(err), cases[i].says)),
                      "%s %s: %s", cases[i].path, cases[i].names[0], rv_err_text(err));
        rv_err_free(err);
    }
}
END_TEST

TCase *routes_case(void)
{
    TCase *tc = tcase_create("routes");

    tcase_add_test(tc, bodies_have_a_schema_that_is_as_strict_as_their_route);
    tcase_add_test(tc, parameters_that_a_route_does_not_have_are_refused);
    tcase_add_test(tc, lists_of_rows_are_selected_by_columns_of_their_kind);
    return tc;
}
