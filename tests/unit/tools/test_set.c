/* Sources composed into one catalog: whose definition counts, and who answers. */
#include "coreengine/tools/tools.h"
#include "tests/kit/catalog.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

/* A source that only has names. */
struct names {
    const char *const *items; /* sorted */
    struct rv_tool_info infos[4];
    size_t n;
};

static const struct rv_tool_info *find(void *self, rv_str name)
{
    struct names *n = self;

    for (size_t i = 0; i < n->n; i++)
        if (rv_str_is(name, n->items[i])) {
            n->infos[i].name = n->items[i];
            return &n->infos[i];
        }
    return NULL;
}

static const char *const *list(void *self, size_t *n)
{
    const struct names *names = self;

    *n = names->n;
    return names->items;
}

static const struct rv_tool_source_ops ops = {.name = "names", .find = find, .names = list};
static const char *const of_first[] = {"a", "b"}, *const of_second[] = {"b", "c"}, *const of_stand_in[] = {"c", "d"};
static const char *const of_under[] = {"a", "e"};

struct composed {
    struct names first, second, stand_in;
    struct rv_tool_source sources[3], *list[3];
    struct rv_tool_info infos[RV_COUNT(of_under)];
    struct rv_kit_tools under;
    struct rv_tool_set set;
};

static const char *under_name(void *self, size_t i)
{
    const struct rv_kit_tools *tools = self;

    return i < tools->n ? tools->items[i].name : NULL;
}

static void compose(struct composed *c, bool with_under, bool is_whole)
{
    *c = (struct composed){
        .first = {of_first, .n = 2}, .second = {of_second, .n = 2}, .stand_in = {of_stand_in, .n = 2}};
    c->sources[0] = (struct rv_tool_source){.ops = &ops, .self = &c->first};
    c->sources[1] = (struct rv_tool_source){.ops = &ops, .self = &c->second};
    c->sources[2] = (struct rv_tool_source){.ops = &ops, .self = &c->stand_in, .stands_in = true};
    for (size_t i = 0; i < RV_COUNT(c->list); i++)
        c->list[i] = &c->sources[i];
    for (size_t i = 0; i < RV_COUNT(of_under); i++)
        c->infos[i].name = of_under[i];
    c->under = (struct rv_kit_tools){c->infos, with_under ? RV_COUNT(of_under) : 0};
    c->set = (struct rv_tool_set){
        .under = RV_KIT_CATALOG(&c->under), .is_whole = is_whole, .sources = c->list, .n_sources = RV_COUNT(c->list)};
    c->set.under.tool_name = under_name;
}

static const struct {
    const char *tool;
    int defines, answers; /* index of the source; 3: under; -1: none */
} found[] = {{"a", 3, 0}, {"b", 0, 0}, {"c", 1, 2}, {"d", 2, 2}, {"e", 3, -1}, {"f", -1, -1}, {"", -1, -1}};

/* Proves 6.3/compose: Sources of tools are composed into one catalog: the first definition of a name counts, calls
 * go to the first source that has the tool, and a script stands in for any of them */
START_TEST(the_first_definition_counts_and_who_stands_in_answers)
{
    struct composed c;

    compose(&c, true, false);
    struct rv_tool_found got = rv_tool_set_find(&c.set, rv_str_of(found[_i].tool));
    struct rv_catalog catalog = rv_tool_set_catalog(&c.set);
    const struct rv_tool_info *want = found[_i].defines == 3 ? catalog.tool(catalog.self, rv_str_of(found[_i].tool))
                                      : found[_i].defines >= 0
                                          ? find(c.sources[found[_i].defines].self, rv_str_of(found[_i].tool))
                                          : NULL;
    ck_assert_ptr_eq(got.info, want);
    ck_assert_ptr_eq(catalog.tool(catalog.self, rv_str_of(found[_i].tool)), want);
    ck_assert(!want == (found[_i].defines < 0));
    if (found[_i].defines == 3)
        ck_assert(got.info >= c.infos && got.info < c.infos + RV_COUNT(c.infos));
    ck_assert_ptr_eq(got.source, found[_i].answers < 0 ? NULL : &c.sources[found[_i].answers]);
}
END_TEST

static const struct {
    bool with_under, is_whole;
    const char *names;
} listed[] = {
    {true, false, "c d a b b c a e "}, {false, false, "c d a b b c "}, {true, true, "a e "}, {false, true, ""}};

START_TEST(names_are_told_stand_ins_first)
{
    struct composed c;
    rv_buf names = RV_BUF_INIT(100);

    compose(&c, listed[_i].with_under, listed[_i].is_whole);
    struct rv_catalog catalog = rv_tool_set_catalog(&c.set);
    for (size_t i = 0; catalog.tool_name(catalog.self, i); i++)
        rv_buf_printf(&names, "%s ", catalog.tool_name(catalog.self, i));
    ck_assert_str_eq(rv_buf_cstr(&names), listed[_i].names);
    rv_buf_fini(&names);
}
END_TEST

START_TEST(a_run_that_goes_on_has_no_tool_that_it_did_not_begin_with)
{
    struct composed c;

    compose(&c, true, true);
    struct rv_catalog catalog = rv_tool_set_catalog(&c.set);
    ck_assert_ptr_null(catalog.tool(catalog.self, RV_STR_LIT("b")));
    ck_assert_ptr_nonnull(catalog.tool(catalog.self, RV_STR_LIT("a")));
    ck_assert_ptr_eq(rv_tool_set_find(&c.set, RV_STR_LIT("a")).source, &c.sources[0]);
    c.set.under.tool_name = NULL;
    ck_assert(!rv_tool_set_catalog(&c.set).tool_name); /* who can not list, does not */
}
END_TEST

TCase *set_case(void)
{
    TCase *tc = tcase_create("set");

    tcase_add_loop_test(tc, the_first_definition_counts_and_who_stands_in_answers, 0, (int)RV_COUNT(found));
    tcase_add_loop_test(tc, names_are_told_stand_ins_first, 0, (int)RV_COUNT(listed));
    tcase_add_test(tc, a_run_that_goes_on_has_no_tool_that_it_did_not_begin_with);
    return tc;
}
