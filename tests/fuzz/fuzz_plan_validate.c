/* A list of tools, a line feed, a reply of a planner: whatever servers and models say, validation ends with errors that
 * can be written, and the calls of a sound plan can be resolved or say why not. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/plan/plan.h"
#include "tests/kit/fuzz.h"

#define MAX_TOOLS 20

static int make_catalog(json_object *list, rv_plan_catalog **out)
{
    struct rv_plan_tool tools[MAX_TOOLS] = {{0}};
    size_t n = 0;

    for (size_t i = 0; i < json_object_array_length(list) && n < MAX_TOOLS; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_object) || !rv_json_get_text(item, "name", &tools[n].name))
            continue;
        rv_json_get_text(item, "server", &tools[n].server);
        rv_json_get_text(item, "description", &tools[n].description);
        tools[n].input = rv_json_member(item, "inputSchema");
        tools[n].output = rv_json_member(item, "outputSchema");
        tools[n++].is_http = true;
    }
    return rv_plan_catalog_new(tools, n, out, NULL);
}

static void write_errors(const struct rv_plan_check *check)
{
    rv_buf text = RV_BUF_INIT((size_t)64 << 20);
    rv_jw out = rv_jw_on(&text);
    json_object *value = NULL;

    rv_jw_arr(&out);
    for (size_t i = 0; i < check->n_errors; i++)
        rv_plan_error_write_json(&check->errors[i], &out);
    rv_jw_arr_end(&out);
    struct rv_json_opts opts = {.max_bytes = (size_t)64 << 20};
    if (text.rc < 0 || rv_json_parse(rv_buf_str(&text), &opts, &value, NULL) < 0)
        abort();
    json_object_put(value);
    rv_buf_clear(&text);
    rv_plan_check_write_text(check, &text);
    size_t n_lines = 0;
    for (size_t i = 0; i < text.len; i++)
        n_lines += text.ptr[i] == '\n';
    if (text.rc < 0 || n_lines != check->n_errors + (check->n_more > 0) || !rv_utf8_valid(rv_buf_str(&text), NULL))
        abort();
    rv_buf_fini(&text);
}

static void resolve(const struct rv_plan *plan)
{
    struct rv_plan_step_output outputs[RV_PLAN_MAX_CALLS] = {{0}};

    for (size_t i = 0; i < plan->n_calls; i++) {
        struct rv_plan_resolution r;
        if (rv_plan_resolve(plan->calls[i].arguments, outputs, i, &r, NULL) < 0)
            abort();
        if (!r.arguments && strcmp(r.code, "unresolved_reference") != 0 && strcmp(r.code, "too_large") != 0)
            abort(); /* validation would have said so */
        if (r.reason && !rv_utf8_valid(rv_str_of(r.reason), NULL))
            abort();
        rv_plan_resolution_fini(&r);
        outputs[i] = (struct rv_plan_step_output){true, plan->calls[i].arguments, NULL};
    }
}

static void validate(const rv_plan_catalog *catalog, rv_str reply_text)
{
    struct rv_plan_reply reply = {.text = reply_text};
    struct rv_plan_rules rules = {.defer_unschematized = true};
    struct rv_plan_check check;
    struct rv_plan plan;

    if (rv_plan_parse(&reply, 0, &plan, NULL) < 0 || rv_plan_validate(&plan, catalog, &rules, &check, NULL) < 0)
        abort();
    write_errors(&check);
    if (check.n_errors == 0 && !plan.direct)
        resolve(&plan);
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
}

static void give_planner(const rv_plan_catalog *catalog)
{
    struct rv_planner_opts opts = {.any_of = true};
    rv_buf text = RV_BUF_INIT((size_t)64 << 20);
    json_object *schema = NULL;

    if (rv_plan_build_schema(catalog, &opts, &schema, NULL) < 0)
        abort();
    rv_plan_write_brief(catalog, &opts, &text);
    if (text.rc < 0 || !rv_utf8_valid(rv_buf_str(&text), NULL))
        abort();
    json_object_put(schema);
    rv_buf_fini(&text);
}

RV_FUZZ_TARGET(plan_validate)
{
    const char *text = (const char *)data, *line_feed = memchr(data, '\n', size);
    size_t n = line_feed ? (size_t)(line_feed - text) : size;
    rv_plan_catalog *catalog = NULL;
    json_object *list = NULL;

    if (rv_json_parse((rv_str){text, n}, NULL, &list, NULL) == 0 && json_object_is_type(list, json_type_array)) {
        if (make_catalog(list, &catalog) < 0)
            abort();
        give_planner(catalog);
        if (line_feed)
            validate(catalog, (rv_str){line_feed + 1, size - n - 1});
    }
    rv_plan_catalog_free(catalog);
    json_object_put(list);
    return 0;
}
