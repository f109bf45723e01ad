/* Folders of documents. */
#include "tests/unit/agents/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_folder_that_is_not_there_is_empty)
{
    struct world w;

    world_begin(&w, 0, NO_STORE | NO_PLUGINS);
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error_of(&w), "no store, no capability with agents, the folder"));
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "agents.no_folder"));
    world_file(&w, "a.yaml", DOC("helper", "Now it is"));
    must_find(&w, &ann, "helper", "file", "Now it is");
    world_end(&w);
}
END_TEST

/* Run in a folder with documents: an empty text must not mean that folder (p8 W10). */
/* Proves p8.W10: No folder named is no folder */
START_TEST(an_empty_text_is_no_folder)
{
    struct world w;

    world_begin(&w, 0, NO_STORE | NO_PLUGINS | NO_FOLDER);
    world_file(&w, "a.yaml", DOC("helper", "x"));
    ck_assert_int_eq(chdir(w.folder), 0);
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error_of(&w), "no folder"));
    ck_assert_int_eq(chdir("/"), 0);
    world_end(&w);
}
END_TEST

/* Proves p8.5.3: A folder of `*.yaml` before `*.yml`, not its folders; a file with faults is an error of its own
 * agent */
START_TEST(yaml_goes_before_yml_and_then_the_name_of_the_file_decides)
{
    struct world w;
    size_t n_shadowed = 0;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "a.yml", DOC("one", "a.yml"));
    world_file(&w, "z.yaml", DOC("one", "z.yaml"));
    world_file(&w, "m.yaml", DOC("one", "m.yaml"));
    world_file(&w, "n.yml", DOC("two", "n.yml"));
    must_find(&w, &ann, "one", "file", "m.yaml");
    must_find(&w, &ann, "two", "file", "n.yml");
    for (size_t i = 0; i < w.log.n_lines; i++)
        n_shadowed += strstr(w.log.lines[i], "agents.file_shadowed") != NULL;
    ck_assert_uint_eq(n_shadowed, 2); /* a.yml and z.yaml; no other file is named "two" */
    world_end(&w);
}
END_TEST

/* Proves p8.5.3 */
START_TEST(only_documents_of_the_folder_itself_are_read)
{
    struct world w;
    char *deep;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "notes.txt", DOC("text", "x"));
    world_file(&w, ".hidden.yaml", DOC("hidden", "x"));
    world_file(&w, "a.json", DOC("json", "x"));
    deep = rv_kit_path(w.folder, "deep.yaml");
    ck_assert_int_eq(mkdir(deep, 0755), 0);
    world_file(&w, "deep.yaml/b.yaml", DOC("deep", "x"));
    world_file(&w, "c.yaml", "{\"type\": \"object\", \"name\": \"in-json\", \"description\": \"x\"}");
    ck_assert_int_eq(world_find(&w, &ann, "text"), RV_E_NOT_FOUND);
    ck_assert_int_eq(world_find(&w, &ann, "hidden"), RV_E_NOT_FOUND);
    ck_assert_int_eq(world_find(&w, &ann, "json"), RV_E_NOT_FOUND);
    ck_assert_int_eq(world_find(&w, &ann, "deep"), RV_E_NOT_FOUND);
    must_find(&w, &ann, "in-json", "file", "x");
    ck_assert_uint_eq(w.log.n_errors, 0);
    free(deep);
    world_end(&w);
}
END_TEST

static const struct {
    const char *text, *says; /* says NULL: it has no name that could be asked for */
} faulty[] = {
    {"type: object\nname: broken\ndescription: x\nlimits: 7\n", "bad.yaml:4:9"},
    {"type: object\nname: broken\ndescription: x\ntemperature: hot\n", "bad.yaml:4:"},
    {"type: object\njson_schema_extra:\n  name: broken\n  limits: 7\ndescription: x\n", "bad.yaml:4:"},
    {"name: [broken\n", NULL},
    {"name: 7\ndescription: x\n", NULL},
    {"- broken\n", NULL},
    {"", NULL},
    {"name: \"../broken\"\ndescription: x\n", NULL},
    {"name: broken\xff\n", NULL},
};

/* Proves p8.W11: A document with faults is another error than one that is not there */
START_TEST(a_faulty_file_is_an_error_of_its_own_agent_only)
{
    struct world w;
    int rc;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "bad.yaml", faulty[_i].text);
    world_file(&w, "good.yaml", DOC("good", "x"));
    must_find(&w, &ann, "good", "file", "x");
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "agents.bad_file"));
    rc = world_find(&w, &ann, "broken");
    if (faulty[_i].says) {
        ck_assert_int_eq(rc, RV_E_INVALID);
        ck_assert_msg(strstr(error_of(&w), faulty[_i].says) != NULL, "%s", error_of(&w));
        ck_assert_msg(strstr(error_of(&w), "agent \"broken\" of the file") != NULL, "%s", error_of(&w));
    } else {
        ck_assert_int_eq(rc, RV_E_NOT_FOUND);
    }
    world_file(&w, "bad.yaml", DOC("broken", "Mended"));
    must_find(&w, &ann, "broken", "file", "Mended");
    world_end(&w);
}
END_TEST

START_TEST(a_registered_row_does_not_hide_that_its_file_has_become_faulty)
{
    struct world w;

    world_begin(&w, _i, NO_PLUGINS);
    world_file(&w, "a.yaml", DOC("helper", "First"));
    must_find(&w, &ann, "helper", "file", "First");
    world_file(&w, "a.yaml", DOC("helper", "x") "limits: 7\n");
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_INVALID);
    world_end(&w);
}
END_TEST

START_TEST(a_file_that_is_too_large_is_a_fault)
{
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    struct world w;

    world_begin(&w, 0, NO_STORE);
    rv_buf_puts(&text, DOC("large", "x") "# ");
    while (text.len <= RV_AGENTDOC_MAX_BYTES)
        rv_buf_puts(&text, "xxxxxxxxxxxxxxxx");
    world_file(&w, "large.yaml", rv_buf_cstr(&text));
    ck_assert_int_eq(world_find(&w, &ann, "large"), RV_E_NOT_FOUND);
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "agents.bad_file"));
    rv_buf_fini(&text);
    world_end(&w);
}
END_TEST

START_TEST(a_link_that_leads_nowhere_is_a_fault)
{
    struct world w;
    char *link;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "good.yaml", DOC("good", "x"));
    link = rv_kit_path(w.folder, "gone.yaml");
    ck_assert_int_eq(symlink("/nonexistent/gone", link), 0);
    must_find(&w, &ann, "good", "file", "x");
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "agents.bad_file"));
    free(link);
    world_end(&w);
}
END_TEST

/* To open a pipe waits for whoever writes to it: nobody does. */
START_TEST(a_pipe_is_a_fault_and_is_not_waited_for)
{
    struct world w;
    char *pipe;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "good.yaml", DOC("good", "x"));
    pipe = rv_kit_path(w.folder, "pipe.yaml");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    must_find(&w, &ann, "good", "file", "x");
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "agents.bad_file"));
    free(pipe);
    world_end(&w);
}
END_TEST

START_TEST(a_folder_with_too_many_documents_is_refused)
{
    char name[32];
    struct world w;

    world_begin(&w, 0, NO_STORE);
    for (int i = 0; i <= 1000; i++) {
        snprintf(name, sizeof name, "d%d.yaml", i);
        world_file(&w, name, "");
    }
    ck_assert_int_eq(world_find(&w, &ann, "plain-agent"), RV_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(error_of(&w), "more than 1000 documents"));
    world_no_file(&w, "d7.yaml");
    ck_assert_int_eq(world_find(&w, &ann, "plain-agent"), 0);
    world_end(&w);
}
END_TEST

/* An agent that is there would else be unknown for a moment. */
START_TEST(a_folder_that_cannot_be_opened_for_lack_of_descriptors_is_an_error)
{
    struct rlimit few;
    struct world w;

    world_begin(&w, 0, NO_STORE | NO_PLUGINS);
    world_file(&w, "a.yaml", DOC("helper", "x"));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
    const struct rlimit all = few;
    few.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = world_find(&w, &ann, "helper");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_int_eq(rc, RV_E_FILES);
    ck_assert_ptr_nonnull(strstr(error_of(&w), "open the folder"));
    must_find(&w, &ann, "helper", "file", "x");
    world_end(&w);
}
END_TEST

TCase *files_case(void)
{
    TCase *tc = tcase_create("files");

    tcase_add_test(tc, a_folder_that_is_not_there_is_empty);
    tcase_add_test(tc, an_empty_text_is_no_folder);
    tcase_add_test(tc, yaml_goes_before_yml_and_then_the_name_of_the_file_decides);
    tcase_add_test(tc, only_documents_of_the_folder_itself_are_read);
    tcase_add_loop_test(tc, a_faulty_file_is_an_error_of_its_own_agent_only, 0, RV_COUNT(faulty));
    tcase_add_loop_test(tc, a_registered_row_does_not_hide_that_its_file_has_become_faulty, 0, N_STORES);
    tcase_add_test(tc, a_file_that_is_too_large_is_a_fault);
    tcase_add_test(tc, a_link_that_leads_nowhere_is_a_fault);
    tcase_add_test(tc, a_pipe_is_a_fault_and_is_not_waited_for);
    tcase_add_test(tc, a_folder_with_too_many_documents_is_refused);
    tcase_add_test(tc, a_folder_that_cannot_be_opened_for_lack_of_descriptors_is_an_error);
    return tc;
}
