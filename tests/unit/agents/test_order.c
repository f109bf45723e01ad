/* Which source an agent comes from, and what of it gets into the store. */
#include "tests/unit/agents/world.h"

#include <stdio.h>
#include <string.h>

#define PLAIN "You answer.\n\nBriefly.\n" /* the prompt of plain-agent, as the capability has it */

START_TEST(without_a_store_capabilities_and_files_are_enough)
{
    struct world w;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "a.yaml", DOC("helper", "From a file"));
    must_find(&w, &ann, "plain-agent", "built-in", PLAIN);
    ck_assert_str_eq(w.found.place, "agents");
    must_find(&w, &ann, "helper", "file", "From a file");
    ck_assert_ptr_nonnull(strstr(w.found.place, "/documents/a.yaml"));
    ck_assert_int_eq(world_find(&w, &ann, "other"), RV_E_NOT_FOUND);
    world_end(&w);
}
END_TEST

/* Proves p8.5.1: In the store, then what is built in, then files; what is found is registered once and never over a
 * person's word */
START_TEST(a_capability_goes_before_a_file_and_a_person_before_both)
{
    struct world w;

    world_begin(&w, _i, 0);
    world_file(&w, "a.yaml", DOC("plain-agent", "From a file"));
    must_find(&w, &ann, "plain-agent", "built-in", PLAIN);
    world_put(&w, &nobody, false, DOC("plain-agent", "From a person"));
    must_find(&w, &ann, "plain-agent", "store", "From a person");
    world_put(&w, &ann, true, DOC("plain-agent", "Ann's own"));
    must_find(&w, &ann, "plain-agent", "store", "Ann's own");
    must_find(&w, &bob, "plain-agent", "store", "From a person");
    world_end(&w);
}
END_TEST

struct row_copy {
    int n;
    char source[32], place[256], document[4096], description[512], kind[32], content[512], user[32];
    bool has_properties;
};

static int copy_row(void *self, const struct rv_schema_row *row, rv_err **err)
{
    struct row_copy *copy = self;

    (void)err;
    copy->n++;
    snprintf(copy->source, sizeof copy->source, "%s", row->source);
    snprintf(copy->place, sizeof copy->place, "%s", row->place ? row->place : "");
    snprintf(copy->document, sizeof copy->document, "%.*s", RV_STR_ARG(row->document));
    snprintf(copy->description, sizeof copy->description, "%s", row->description);
    snprintf(copy->content, sizeof copy->content, "%.*s", RV_STR_ARG(row->content));
    snprintf(copy->kind, sizeof copy->kind, "%s", row->kind);
    snprintf(copy->user, sizeof copy->user, "%s", row->user ? row->user : "");
    copy->has_properties = memmem(row->json_schema.ptr, row->json_schema.len, "properties", 10) != NULL;
    return 0;
}

static struct row_copy only_row_of(struct world *w, const struct rv_store_scope *scope)
{
    struct row_copy copy = {0};

    ck_assert_int_eq(rv_store_list_schemas(w->store, scope, "agent", copy_row, &copy, NULL), 0);
    ck_assert_int_eq(copy.n, 1);
    return copy;
}

static struct row_copy only_row(struct world *w)
{
    return only_row_of(w, &nobody);
}

/* Proves p8.5.1 */
START_TEST(what_is_found_is_registered_once_and_for_everybody)
{
    struct row_copy row;
    struct world w;
    int64_t version;

    world_begin(&w, _i, 0);
    version = version_of(&w);
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    ck_assert_int_ne(version_of(&w), version);
    row = only_row(&w);
    ck_assert_str_eq(row.source, "built-in");
    ck_assert_str_eq(row.place, "agents");
    ck_assert_str_eq(row.description, "Extracts.");
    ck_assert_str_eq(row.content, "You extract.");
    ck_assert_str_eq(row.kind, "agent");
    ck_assert_str_eq(row.user, "");
    ck_assert(row.has_properties);
    ck_assert_msg(strlen(row.document) == w.found.text.len &&
                      memcmp(row.document, w.found.text.ptr, w.found.text.len) == 0,
                  "%s", row.document);
    version = version_of(&w);
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    must_find(&w, &bob, "as_json", "built-in", "You extract.");
    rv_agents_forget(w.agents);
    must_find(&w, &bob, "as_json", "built-in", "You extract.");
    ck_assert_int_eq(version_of(&w), version);
    world_end(&w);
}
END_TEST

START_TEST(a_registered_row_follows_its_source)
{
    struct row_copy row;
    struct world w;

    world_begin(&w, _i, NO_PLUGINS);
    world_file(&w, "a.yaml", DOC("helper", "First"));
    must_find(&w, &ann, "helper", "file", "First");
    ck_assert_str_eq(only_row_of(&w, &ann).document, DOC("helper", "First"));
    world_file(&w, "a.yaml", DOC("helper", "Second"));
    must_find(&w, &ann, "helper", "file", "Second");
    row = only_row_of(&w, &ann);
    ck_assert_str_eq(row.document, DOC("helper", "Second"));
    ck_assert_str_eq(row.source, "file");
    world_end(&w);
}
END_TEST

START_TEST(a_file_is_registered_for_who_asked) /* another's folder changes nothing of theirs */
{
    struct world w;

    world_begin(&w, _i, NO_PLUGINS);
    world_file(&w, "a.yaml", DOC("helper", "Of ann"));
    must_find(&w, &ann, "helper", "file", "Of ann");
    world_file(&w, "a.yaml", DOC("helper", "Of bob"));
    must_find(&w, &bob, "helper", "file", "Of bob");
    ck_assert_str_eq(only_row_of(&w, &ann).document, DOC("helper", "Of ann"));
    ck_assert_str_eq(only_row_of(&w, &bob).document, DOC("helper", "Of bob"));
    world_end(&w);
}
END_TEST

START_TEST(a_registered_row_serves_where_its_source_is_not_at_hand)
{
    struct world w;

    world_begin(&w, _i, NO_PLUGINS);
    world_file(&w, "a.yaml", DOC("helper", "First"));
    must_find(&w, &ann, "helper", "file", "First");
    world_no_file(&w, "a.yaml");
    must_find(&w, &ann, "helper", "store", "First");
    world_end(&w);
}
END_TEST

/* Proves p8.5.1 */
START_TEST(what_a_person_put_is_never_written_over)
{
    struct world w;
    int64_t version;

    world_begin(&w, _i, 0);
    world_put(&w, &nobody, false, DOC("plain-agent", "From a person"));
    world_put(&w, &nobody, false, DOC("helper", "From a person"));
    world_file(&w, "a.yaml", DOC("helper", "From a file"));
    version = version_of(&w);
    must_find(&w, &ann, "plain-agent", "store", "From a person");
    must_find(&w, &ann, "helper", "store", "From a person");
    world_file(&w, "a.yaml", DOC("helper", "From a file, again"));
    must_find(&w, &bob, "helper", "store", "From a person");
    ck_assert_int_eq(version_of(&w), version);
    world_end(&w);
}
END_TEST

START_TEST(one_tenant_does_not_see_what_another_put)
{
    const struct rv_store_scope other = {"other", "ann"};
    struct world w;

    world_begin(&w, _i, 0);
    world_put(&w, &nobody, false, DOC("secret", "Of acme"));
    must_find(&w, &ann, "secret", "store", "Of acme");
    ck_assert_int_eq(world_find(&w, &other, "secret"), RV_E_NOT_FOUND);
    ck_assert_ptr_null(strstr(error_of(&w), "Of acme"));
    world_put(&w, &ann, true, DOC("diary", "Of ann"));
    ck_assert_int_eq(world_find(&w, &bob, "diary"), RV_E_NOT_FOUND);
    ck_assert_int_eq(world_find(&w, &bob, "diry"), RV_E_NOT_FOUND);
    ck_assert_ptr_null(strstr(error_of(&w), "diary")); /* nor in a hint */
    must_find(&w, &ann, "diary", "store", "Of ann");
    world_end(&w);
}
END_TEST

START_TEST(a_store_that_is_not_to_be_written_is_not)
{
    struct world w;
    int64_t version;

    world_begin(&w, _i, NOT_REGISTERING);
    version = version_of(&w);
    must_find(&w, &ann, "plain-agent", "built-in", PLAIN);
    ck_assert_int_eq(version_of(&w), version);
    world_end(&w);
}
END_TEST

static int refuse(void *self, const char *point, rv_err **err)
{
    (void)self;
    return strcmp(point, "put_schema") == 0 ? RV_FAIL(err, RV_E_TIMEOUT, "somebody else writes") : 0;
}

START_TEST(an_agent_is_there_although_it_can_not_be_registered)
{
    const struct rv_store_faults faults = {refuse, NULL};
    struct world w;

    world_begin(&w, _i, 0);
    rv_store_set_faults(w.store, faults);
    must_find(&w, &ann, "plain-agent", "built-in", PLAIN);
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "agent.register_failed"));
    world_end(&w);
}
END_TEST

static int fail_reads(void *self, const char *point, rv_err **err)
{
    return strcmp(point, self) == 0 ? RV_FAIL(err, RV_E_IO, "the disk is gone") : 0;
}

START_TEST(a_store_that_can_not_be_read_is_an_error_and_not_a_missing_agent)
{
    static char points[][24] = {"find_schema", "schemas_version"};
    struct world w;

    world_begin(&w, 0, 0);
    for (size_t i = 0; i < RV_COUNT(points); i++) {
        rv_store_set_faults(w.store, (struct rv_store_faults){fail_reads, points[i]});
        ck_assert_int_eq(world_find(&w, &ann, "plain-agent"), RV_E_IO);
    }
    world_end(&w);
}
END_TEST

static const struct {
    const char *name;
    int rc;
    const char *says;
} unknown[] = {
    {"plain-agnet", RV_E_NOT_FOUND, "did you mean \"plain-agent\"?"},
    {"helpr", RV_E_NOT_FOUND, "did you mean \"helper\"?"},
    {"quite-different", RV_E_NOT_FOUND,
     "there is no agent \"quite-different\" (looked in: the store, 2 built in, the folder"},
    {"quite-different", RV_E_NOT_FOUND, "reeve agents put FILE"},
    {"", RV_E_INVALID, "\"\" is not a name of an agent"},
    {"../etc/passwd", RV_E_INVALID, "not a name of an agent"},
    {"a b", RV_E_INVALID, "not a name of an agent"},
    {"\xff", RV_E_INVALID, "a name is a word"},
};

/* Proves remlight.19/15: An agent that is not there, or lacks a tool, is an error
 * Proves remlight.19/24, p8.W11 */
START_TEST(a_name_that_is_none_or_not_there_is_explained)
{
    struct world w;

    world_begin(&w, 0, 0);
    world_file(&w, "a.yaml", DOC("helper", "From a file"));
    ck_assert_int_eq(world_find(&w, &ann, unknown[_i].name), unknown[_i].rc);
    ck_assert_msg(strstr(error_of(&w), unknown[_i].says) != NULL, "%s", error_of(&w));
    world_end(&w);
}
END_TEST

START_TEST(a_name_of_any_length_is_refused_whole)
{
    char name[400];
    struct world w;

    world_begin(&w, 0, 0);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(world_find(&w, &ann, name), RV_E_INVALID);
    name[RV_AGENTDOC_MAX_NAME] = '\0';
    ck_assert_int_eq(world_find(&w, &ann, name), RV_E_NOT_FOUND);
    world_end(&w);
}
END_TEST

TCase *order_case(void)
{
    TCase *tc = tcase_create("order");

    tcase_add_test(tc, without_a_store_capabilities_and_files_are_enough);
    tcase_add_loop_test(tc, a_capability_goes_before_a_file_and_a_person_before_both, 0, N_STORES);
    tcase_add_loop_test(tc, what_is_found_is_registered_once_and_for_everybody, 0, N_STORES);
    tcase_add_loop_test(tc, a_registered_row_follows_its_source, 0, N_STORES);
    tcase_add_loop_test(tc, a_file_is_registered_for_who_asked, 0, N_STORES);
    tcase_add_loop_test(tc, a_registered_row_serves_where_its_source_is_not_at_hand, 0, N_STORES);
    tcase_add_loop_test(tc, what_a_person_put_is_never_written_over, 0, N_STORES);
    tcase_add_loop_test(tc, one_tenant_does_not_see_what_another_put, 0, N_STORES);
    tcase_add_loop_test(tc, a_store_that_is_not_to_be_written_is_not, 0, N_STORES);
    tcase_add_loop_test(tc, an_agent_is_there_although_it_can_not_be_registered, 0, N_STORES);
    tcase_add_test(tc, a_store_that_can_not_be_read_is_an_error_and_not_a_missing_agent);
    tcase_add_loop_test(tc, a_name_that_is_none_or_not_there_is_explained, 0, RV_COUNT(unknown));
    tcase_add_test(tc, a_name_of_any_length_is_refused_whole);
    return tc;
}
