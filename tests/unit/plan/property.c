/* Random plans against random catalogs, run with random results that fit the schemas. */
#include <stdlib.h>

#include "coreengine/plan/plan.h"
#include "tests/unit/plan/plan_suites.h"
#include "tests/unit/plan/world.h"

#define TIMES      1500
#define MANY_TIMES 100000
#define N_TOOLS    5
#define MAX_CALLS  5

static uint64_t state;

static uint64_t next(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

/* --- schemas, and values that fit them --- */

static const char *const names[] = {"a", "b", "key with.dots", "3"};

static void write_schema(rv_buf *out, int depth);

static void write_object_schema(rv_buf *out, int depth)
{
    size_t n = 1 + next(3);

    rv_buf_puts(out, "{'type':'object','properties':{");
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(out, "%s'%s':", i > 0 ? "," : "", names[i]);
        write_schema(out, depth + 1);
    }
    rv_buf_puts(out, "},'required':[");
    size_t n_required = next(n + 1);
    for (size_t i = 0; i < n_required; i++)
        rv_buf_printf(out, "%s'%s'", i > 0 ? "," : "", names[i]);
    rv_buf_printf(out, "]%s}", next(2) ? ",'additionalProperties':false" : "");
}

static void write_schema(rv_buf *out, int depth)
{
    static const char *const leaves[] = {"{'type':'string'}",
                                         "{'type':'integer'}",
                                         "{'type':'number'}",
                                         "{'type':'boolean'}",
                                         "{'type':['string','null']}",
                                         "{}",
                                         "{'anyOf':[{'type':'integer'},{'type':'string'}]}"};
    uint64_t kind = next(depth > 2 ? 4 : 7);

    if (kind < 4) {
        rv_buf_puts(out, leaves[next(RV_COUNT(leaves))]);
    } else if (kind == 4) {
        rv_buf_puts(out, "{'type':'array','items':");
        write_schema(out, depth + 1);
        rv_buf_putc(out, '}');
    } else {
        write_object_schema(out, depth);
    }
}

/* A value that fits, as text. */
static void write_value(json_object *schema, rv_buf *out)
{
    json_object *type = NULL, *properties = rv_json_get_obj(schema, "properties");
    json_object *items = rv_json_get_obj(schema, "items"), *required = rv_json_get_arr(schema, "required");

    json_object_object_get_ex(schema, "type", &type);
    if (properties) {
        size_t n = 0;
        rv_buf_putc(out, '{');
        json_object_object_foreach (properties, name, child) {
            bool is_required = false;
            for (size_t i = 0; i < json_object_array_length(required); i++)
                is_required = is_required || rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), name);
            if (!is_required && next(2))
                continue;
            rv_buf_printf(out, "%s'%s':", n++ > 0 ? "," : "", name);
            write_value(child, out);
        }
        rv_buf_putc(out, '}');
    } else if (items) {
        size_t n = next(3);
        rv_buf_putc(out, '[');
        for (size_t i = 0; i < n; i++) {
            rv_buf_puts(out, i > 0 ? "," : "");
            write_value(items, out);
        }
        rv_buf_putc(out, ']');
    } else if (json_object_is_type(type, json_type_array)) {
        rv_buf_puts(out, next(2) ? "null" : "'$9.output.q'");
    } else if (rv_str_is(rv_json_str(type), "string")) {
        rv_buf_puts(out, next(2) ? "'text'" : "'${9.output.q} $9.output.r'"); /* never read as a template */
    } else if (rv_str_is(rv_json_str(type), "boolean")) {
        rv_buf_puts(out, "true");
    } else if (rv_str_is(rv_json_str(type), "number")) {
        rv_buf_puts(out, next(2) ? "1.50" : "9007199254740993");
    } else {
        rv_buf_puts(out, "7");
    }
}

/* --- plans --- */

static void write_path(rv_buf *out)
{
    static const char *const steps[] = {".a", ".a", ".a", ".a", ".b", "[0]", ".3"};

    for (uint64_t n = 1 + next(4) / 3; n > 0; n--)
        rv_buf_puts(out, steps[next(RV_COUNT(steps))]);
}

static void write_argument(rv_buf *out, size_t call, int depth)
{
    size_t on = call > 0 && next(12) ? next(call) : next(MAX_CALLS);

    switch (next(depth > 1 ? 6 : 8)) {
    case 0:
        rv_buf_puts(out, "5");
        return;
    case 1:
        rv_buf_puts(out, "'$$0.output.a costs $5'");
        return;
    case 2:
        rv_buf_printf(out, "'see ${%zu.output", on);
        write_path(out);
        rv_buf_puts(out, "}.'");
        return;
    case 6:
        rv_buf_puts(out, "[");
        write_argument(out, call, depth + 1);
        rv_buf_puts(out, "]");
        return;
    case 7:
        rv_buf_puts(out, "{'a':");
        write_argument(out, call, depth + 1);
        rv_buf_puts(out, "}");
        return;
    default:
        rv_buf_printf(out, "'$%zu.output", on);
        write_path(out);
        rv_buf_puts(out, "'");
    }
}

static void write_calls(rv_buf *out, size_t n)
{
    rv_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(out, "%s{'tool_name':'t%zu','arguments':{", i > 0 ? "," : "", (size_t)next(N_TOOLS));
        for (uint64_t k = 0, n_arguments = i > 0 ? next(3) : 0; k < n_arguments; k++) {
            rv_buf_printf(out, "%s'%s':", k > 0 ? "," : "", names[k]);
            write_argument(out, i, 0);
        }
        rv_buf_puts(out, "}}");
    }
    rv_buf_putc(out, ']');
}

static void write_tools(rv_buf *out, bool backwards)
{
    uint64_t before = state;
    rv_buf tools[N_TOOLS];

    for (size_t i = 0; i < N_TOOLS; i++) {
        rv_buf_init(&tools[i], 100000);
        rv_buf_printf(&tools[i], "{'name':'t%zu'", i);
        if (next(3) == 0) {
            rv_buf_puts(&tools[i], ",'in':");
            write_object_schema(&tools[i], 1);
        }
        if (next(8)) {
            rv_buf_puts(&tools[i], ",'out':");
            write_object_schema(&tools[i], 0);
        }
        rv_buf_putc(&tools[i], '}');
    }
    rv_buf_putc(out, '[');
    for (size_t i = 0; i < N_TOOLS; i++)
        rv_buf_printf(out, "%s%s", i > 0 ? "," : "", rv_buf_cstr(&tools[backwards ? N_TOOLS - 1 - i : i]));
    rv_buf_putc(out, ']');
    for (size_t i = 0; i < N_TOOLS; i++)
        rv_buf_fini(&tools[i]);
    if (backwards)
        state = before;
}

/* --- runs --- */

struct counts {
    size_t valid, resolved, optional;
};

/* Is a text that an argument had as a template still there? Outputs hold some, which are text. */
static void check_resolved(json_object *given, json_object *resolved)
{
    rv_str text = rv_json_str(given);

    if (json_object_is_type(given, json_type_string)) {
        if (memchr(text.ptr, '{', text.len) || (text.len > 1 && text.ptr[0] == '$' && text.ptr[1] != '$'))
            ck_assert(!rv_json_equal(given, resolved));
        else if (text.len > 1 && text.ptr[0] == '$')
            ck_assert(rv_str_is(rv_json_str(resolved), "$0.output.a costs $5"));
        return;
    }
    if (json_object_is_type(given, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(given); i++)
            check_resolved(json_object_array_get_idx(given, i), json_object_array_get_idx(resolved, i));
    } else if (json_object_is_type(given, json_type_object)) {
        json_object_object_foreach (given, key, child) {
            json_object *other = NULL;
            ck_assert(json_object_object_get_ex(resolved, key, &other));
            check_resolved(child, other);
        }
    }
}

/* The results of the calls of a valid plan, one after the other. */
static void run(const struct rv_plan *plan, const struct rv_plan_check *check, struct counts *counts)
{
    struct rv_plan_step_output outputs[MAX_CALLS] = {{0}};

    for (size_t i = 0; i < plan->n_calls; i++) {
        struct rv_plan_resolution r;
        ck_assert_int_eq(rv_plan_resolve(plan->calls[i].arguments, outputs, i, &r, NULL), 0);
        bool may_fail = check->needs[i].n_optional > 0;
        for (size_t k = 0; k < check->needs[i].n; k++)
            may_fail = may_fail || !outputs[check->needs[i].calls[k]].usable;
        ck_assert_msg(r.arguments || may_fail, "%s: %s", r.text, r.reason);
        if (r.arguments)
            check_resolved(plan->calls[i].arguments, r.arguments);
        else
            ck_assert_str_eq(r.code, "unresolved_reference");
        counts->resolved += check->needs[i].n_refs > 0 && r.arguments;
        counts->optional += !r.arguments;
        outputs[i].usable = r.arguments != NULL;
        if (r.arguments && check->tools[i]->output) {
            rv_buf text = RV_BUF_INIT(100000);
            write_value(check->tools[i]->output, &text);
            outputs[i].value = rv_kit_json(rv_buf_cstr(&text));
            ck_assert_int_eq(rv_schema_check(check->tools[i]->output_schema, outputs[i].value, NULL), 0);
            rv_buf_fini(&text);
        }
        rv_plan_resolution_fini(&r);
    }
    for (size_t i = 0; i < plan->n_calls; i++)
        json_object_put(outputs[i].value);
}

static void try_one(struct counts *counts)
{
    rv_buf tools = RV_BUF_INIT(1000000), reversed = RV_BUF_INIT(1000000), calls = RV_BUF_INIT(100000);
    uint64_t before = state;
    struct rv_plan_check check;

    write_tools(&reversed, true);
    ck_assert_uint_eq(state, before);
    write_tools(&tools, false);
    write_calls(&calls, 2 + next(3));
    rv_plan_catalog *catalog = make_catalog(rv_buf_cstr(&tools)), *other = make_catalog(rv_buf_cstr(&reversed));
    char *errors = errors_of(catalog, rv_buf_cstr(&calls), NULL), *same = errors_of(other, rv_buf_cstr(&calls), NULL);
    ck_assert_str_eq(errors, same); /* whatever the order of the tools */
    struct rv_plan plan = make_plan(rv_buf_cstr(&calls));
    ck_assert_int_eq(rv_plan_validate(&plan, catalog, NULL, &check, NULL), 0);
    if (check.n_errors == 0) {
        counts->valid++;
        run(&plan, &check, counts);
    }
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    free(errors);
    free(same);
    rv_plan_catalog_free(catalog);
    rv_plan_catalog_free(other);
    rv_buf_fini(&tools);
    rv_buf_fini(&reversed);
    rv_buf_fini(&calls);
}

/* What was validated resolves when the results fit their schemas, unless a field is absent that need not be there; no
 * reference is left in what a tool gets; and the order of the catalog changes no error. */
START_TEST(valid_plans_resolve)
{
    struct counts counts = {0};
    int n = rv_kit_sample(TIMES, MANY_TIMES);

    state = 88172645463325252u;
    for (int i = 0; i < n; i++)
        try_one(&counts);
    ck_assert_uint_gt(counts.valid, (size_t)n / 50);
    ck_assert_uint_gt(counts.resolved, 0);
    ck_assert_uint_gt(counts.optional, 0);
}
END_TEST

TCase *property_case(void)
{
    TCase *tc = tcase_create("property");

    tcase_set_timeout(tc, 900);
    tcase_add_test(tc, valid_plans_resolve);
    return tc;
}
