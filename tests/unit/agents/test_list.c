/* All agents that somebody sees, each once, as find() would give it. */
#include "tests/unit/agents/world.h"

#include <string.h>

struct seen {
    rv_buf text; /* a line for each: name source, and what is wrong */
    int stop_at, n;
};

static int see(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault, rv_err **err)
{
    struct seen *seen = self;

    rv_buf_printf(&seen->text, "%s %s %s\n", name, found->source, found->doc ? found->doc->description : "!");
    ck_assert_int_eq(found->doc == NULL, fault != NULL);
    ck_assert_ptr_nonnull(found->place);
    return ++seen->n == seen->stop_at ? RV_FAIL(err, RV_E_CANCELLED, "enough") : 0;
}

static void must_list(struct world *w, const struct rv_store_scope *scope, const char *want)
{
    struct seen seen = {.text = RV_BUF_INIT(8192)};
    rv_err *err = NULL;

    ck_assert_msg(rv_agents_list(w->agents, scope, see, &seen, &err) == 0, "%s", rv_err_text(err));
    ck_assert_str_eq(rv_buf_cstr(&seen.text), want);
    rv_buf_fini(&seen.text);
}

START_TEST(each_agent_is_listed_once_by_name_from_where_it_would_come)
{
    struct world w;
    int64_t version;

    world_begin(&w, _i, 0);
    world_file(&w, "a.yaml", DOC("helper", "From a file"));
    world_file(&w, "b.yaml", DOC("plain-agent", "Hidden by the capability"));
    world_put(&w, &nobody, false, DOC("as_json", "A person's"));
    world_put(&w, &ann, true, DOC("diary", "Ann's"));
    version = version_of(&w);
    must_list(&w, &ann,
              "as_json store A person's\ndiary store Ann's\nhelper file From a file\n"
              "plain-agent built-in You answer.\n\nBriefly.\n\n");
    must_list(&w, &bob,
              "as_json store A person's\nhelper file From a file\n"
              "plain-agent built-in You answer.\n\nBriefly.\n\n");
    ck_assert_int_eq(version_of(&w), version); /* a list is no use: nothing is registered */
    world_end(&w);
}
END_TEST

START_TEST(what_is_faulty_is_listed_with_its_fault)
{
    struct world w;

    world_begin(&w, 0, NO_STORE | NO_PLUGINS);
    world_file(&w, "a.yaml", DOC("broken", "x") "limits: 7\n");
    world_file(&w, "b.yaml", "name: [\n");
    world_file(&w, "c.yaml", DOC("good", "Fine"));
    must_list(&w, &ann, "broken file !\ngood file Fine\nb.yaml file !\n");
    world_end(&w);
}
END_TEST

START_TEST(a_list_ends_when_the_listener_fails)
{
    struct seen seen = {.text = RV_BUF_INIT(8192), .stop_at = 1};
    rv_err *err = NULL;
    struct world w;

    world_begin(&w, 0, 0);
    ck_assert_int_eq(rv_agents_list(w.agents, &ann, see, &seen, &err), RV_E_CANCELLED);
    ck_assert_str_eq(rv_err_text(err), "enough");
    ck_assert_int_eq(seen.n, 1);
    rv_err_free(err);
    rv_buf_fini(&seen.text);
    world_end(&w);
}
END_TEST

START_TEST(with_no_source_at_all_nothing_is_listed)
{
    struct world w;

    world_begin(&w, 0, NO_STORE | NO_PLUGINS | NO_FOLDER);
    must_list(&w, &ann, "");
    world_end(&w);
}
END_TEST

TCase *list_case(void)
{
    TCase *tc = tcase_create("list");

    tcase_add_loop_test(tc, each_agent_is_listed_once_by_name_from_where_it_would_come, 0, N_STORES);
    tcase_add_test(tc, what_is_faulty_is_listed_with_its_fault);
    tcase_add_test(tc, a_list_ends_when_the_listener_fails);
    tcase_add_test(tc, with_no_source_at_all_nothing_is_listed);
    return tc;
}
