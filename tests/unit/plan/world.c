/* Catalogs and plans from short texts. */
#include <stdlib.h>

#include "tests/unit/plan/plan_suites.h"
#include "tests/unit/plan/world.h"

#define MAX_TOOLS 300

static bool flag(json_object *from, const char *key)
{
    bool value = false;

    return rv_json_get_bool(from, key, &value) && value;
}

rv_plan_catalog *make_catalog(const char *text)
{
    json_object *list = rv_kit_json(text);
    size_t n = json_object_array_length(list);
    struct rv_plan_tool *tools = calloc(n + 1, sizeof *tools);
    rv_plan_catalog *catalog = NULL;

    ck_assert_uint_le(n, MAX_TOOLS);
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        struct rv_plan_tool *t = &tools[i];
        ck_assert(rv_json_get_text(item, "name", &t->name));
        rv_json_get_text(item, "server", &t->server);
        rv_json_get_text(item, "description", &t->description);
        t->input = rv_json_member(item, "in");
        t->output = rv_json_member(item, "out");
        t->read_only = flag(item, "ro");
        t->denied = flag(item, "denied");
        t->is_http = flag(item, "http");
    }
    ck_assert_int_eq(rv_plan_catalog_new(tools, n, &catalog, NULL), 0);
    free(tools);
    json_object_put(list); /* the catalog has references and copies */
    return catalog;
}

struct rv_plan make_plan(const char *calls)
{
    json_object *root = json_object_new_object(), *list = rv_kit_json(calls);
    rv_buf text = RV_BUF_INIT(RV_PLAN_MAX_BYTES);
    struct rv_plan plan;

    ck_assert_int_eq(rv_json_set_text(root, "type", "tool_calls", NULL), 0);
    ck_assert_int_eq(rv_json_set_take(root, "calls", list, NULL), 0);
    rv_json_write(root, &text);
    struct rv_plan_reply reply = {.text = rv_buf_str(&text)};
    ck_assert_int_eq(rv_plan_parse(&reply, 0, &plan, NULL), 0);
    rv_buf_fini(&text); /* a plan in JSON keeps its own tree */
    json_object_put(root);
    return plan;
}

static void write_error(const struct rv_plan_error *e, rv_buf *out)
{
    rv_buf json = RV_BUF_INIT(1000000);
    rv_jw w = rv_jw_on(&json);

    rv_plan_error_write_json(e, &w);
    json_object *whole = rv_kit_json(rv_buf_cstr(&json));
    char *inner = rv_kit_text(rv_json_get_obj(whole, "error"));
    rv_buf_printf(out, "%s%zu %s %.*s ", out->len > 0 ? "\n" : "", e->tool_index, e->argument, RV_STR_ARG(e->written));
    for (const char *p = inner; *p; p++)
        rv_buf_putc(out, *p == '"' ? '\'' : *p);
    free(inner);
    json_object_put(whole);
    rv_buf_fini(&json);
}

char *errors_of(const rv_plan_catalog *catalog, const char *calls, const struct rv_plan_rules *rules)
{
    struct rv_plan plan = make_plan(calls);
    rv_buf text = RV_BUF_INIT(10000000);
    struct rv_plan_check check;

    ck_assert_int_eq(rv_plan_validate(&plan, catalog, rules, &check, NULL), 0);
    for (size_t i = 0; i < check.n_errors; i++)
        write_error(&check.errors[i], &text);
    if (check.n_errors == 0)
        rv_buf_puts(&text, "ok");
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    return rv_buf_steal(&text, NULL);
}

void expect_errors(const char *tools, const char *calls, const struct rv_plan_rules *rules, const char *want)
{
    rv_plan_catalog *catalog = make_catalog(tools);
    char *got = errors_of(catalog, calls, rules);

    ck_assert_str_eq(got, want);
    free(got);
    rv_plan_catalog_free(catalog);
}
