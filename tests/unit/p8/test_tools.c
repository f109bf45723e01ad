/* Further tools of p8 that ask the engine: agents that are saved, files that are read. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/store/store.h"
#include "tests/unit/p8/data.h"

#define POET "name: poet\\ndescription: You write verse.\\n# a comment\\n"
#define SAVED(version, created)                                                                                        \
    "{\"status\":\"success\",\"_action_event\":true,\"action_type\":\"agent_saved\",\"payload\":{\"name\":\"poet\","   \
    "\"version\":\"" version "\",\"created\":" created "}}"

/* Proves remlight.6/save_agent: An agent is saved for the user who asks, and an agent of others is not changed */
START_TEST(an_agent_is_saved_for_its_user)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "true"));
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "false")); /* the call again */
    char *rows = data_find(&d, NULL, "ada", "schemas");
    ck_assert_msg(strstr(rows, "\"user_id\":\"ada\",\"name\":\"poet\",\"kind\":\"agent\""), "%s", rows);
    free(rows);
    data_has(
        &d, "save_agent", "{\"schema_yaml\": \"" POET "version: '2'\"}",
        "\"error\":\"you have an agent \\\"poet\\\" already: choose another name, or set \\\"overwrite\\\" to replace "
        "it\",\"code\":\"conflict\",\"error_type\":\"ExistsError\",\"name\":null,\"data\":{\"_action_event\":true,"
        "\"action_type\":\"agent_save_error\",\"payload\":{\"error\":");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "version: '2'\", \"overwrite\": true}", SAVED("2", "false"));
    data_has(
        &d, "save_agent",
        "{\"schema_yaml\": \"{description: You sing.}\", \"name\": \"bard\", \"tags\": [\"art\"], \"description\": "
        "\"sings\"}",
        "\"payload\":{\"name\":\"bard\",");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\", \"name\": \"lyricist\"}", "\"name\":\"lyricist\",");
    rows = data_find(&d, NULL, "ada", "schemas");
    ck_assert_msg(strstr(rows, "\"description\":\"sings\"") && strstr(rows, "\"tags\":[\"art\"]"), "%s", rows);
    free(rows);
    d.user = "bob";
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "true"));
    d.user = "ada";
    rows = data_find(&d, NULL, "ada", "schemas");
    ck_assert_msg(strstr(rows, "\"version\":\"2\""), "%s", rows); /* Bob's own one is another */
    free(rows);
    data_agent(&d, "{name: clerk, description: all}");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"{name: clerk, description: x}\"}", "is for everybody");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"{name: clerk, description: x}\", \"overwrite\": true}",
             "\"created\":true");
    rows = data_find(&d, NULL, "bob", "schemas");
    ck_assert_msg(strstr(rows, "\"content\":\"all\""), "%s", rows);
    free(rows);
    d.app.scope.tenant = "other";
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "true"));
    data_end(&d);
}
END_TEST

START_TEST(an_agent_that_cannot_be_saved_is_an_action_too)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "save_agent", "{}",
             "{\"status\":\"success\",\"_action_event\":true,\"action_type\":\"trigger_save\"}");
    data_has(&d, "save_agent", "{\"name\": \"poet\"}", "\"trigger_save\",\"payload\":{\"name\":\"poet\"}}");
    ck_assert_int_eq(d.n_asked, 0);
    data_has(&d, "save_agent", "{\"schema_yaml\": \"description: x\"}", "name is required");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"[1]\"}", "is not a map of keys");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"{\"}", "\"code\":\"bad_arguments\"");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"name: p\\ntools: 7\"}", "agent_save_error");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\", \"name\": \"two words\"}",
             "\"code\":\"bad_arguments\"");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\", \"overwrite\": 1}",
             "overwrite has to be true or false");
    d.user = "";
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", "user_id is required");
    char *rows = data_find(&d, NULL, NULL, "schemas");
    ck_assert_str_eq(rows, "");
    free(rows);
    data_end(&d);
}
END_TEST

/* --- files of a folder --- */

static void write_in(const char *dir, const char *path, const char *text)
{
    char *full = rv_kit_path(dir, path);

    rv_kit_write(full, text);
    free(full);
}

static void folder_in(const char *dir, const char *path)
{
    char *full = rv_kit_path(dir, path);

    ck_assert_int_eq(mkdir(full, 0700), 0);
    free(full);
}

/* Folders of two users, with what must not be reached beside them. Yours. */
static char *make_files(struct data *d)
{
    char *secret = rv_kit_path(d->room.dir, "secret.txt"), *link = rv_kit_path(d->room.dir, "files/ada/link.txt");
    char *folder_link = rv_kit_path(d->room.dir, "files/ada/up"), *fifo = rv_kit_path(d->room.dir, "files/ada/pipe");

    folder_in(d->room.dir, "files");
    folder_in(d->room.dir, "files/ada");
    folder_in(d->room.dir, "files/ada/notes");
    folder_in(d->room.dir, "files/bob");
    write_in(d->room.dir, "files/ada/notes/plan.md", "# Plan\nbuild \xc3\xa4 boat");
    write_in(d->room.dir, "files/ada/raw.bin", "\xff\xfe");
    write_in(d->room.dir, "files/bob/bobs.md", "of Bob");
    write_in(d->room.dir, "secret.txt", "secret");
    ck_assert_int_eq(symlink(secret, link), 0);
    ck_assert_int_eq(symlink(d->room.dir, folder_link), 0);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    free(secret);
    free(link);
    free(folder_link);
    free(fifo);
    return rv_kit_path(d->room.dir, "files/{user}");
}

/* Proves remlight.6/parse_file: A file below the configured folder is read and kept for the user who asks */
START_TEST(a_file_of_the_folder_is_read_and_kept)
{
    char args[512], id[40];
    struct data d;

    data_begin(&d, _i);
    char *folder = make_files(&d);
    d.app.files = folder;
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\"}", "{\"status\":\"success\",\"file_id\":\"");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"uri\":\"notes/plan.md\",\"uri_hash\":"
                                                             "\"83f64bb0eadb4b68"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply),
                                 "\"name\":\"plan\",\"content\":\"# Plan\\nbuild \xc3\xa4 boat\",\"parsed_output\":"
                                 "{\"mime_type\":\"text/markdown\",\"size_bytes\":20,\"sha256\":\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"char_count\":19,\"line_count\":2}}"));
    snprintf(args, sizeof args, "{\"file_id\": \"%.36s\"}", strstr(rv_buf_cstr(&d.room.reply), "file_id") + 10);
    snprintf(id, sizeof id, "%.36s", args + 13);
    data_has(&d, "get_file", args, "\"content\":\"# Plan\\nbuild \xc3\xa4 boat\"");
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\"}", id); /* the same row again */
    d.user = "bob";
    data_has(&d, "get_file", args, "File not found");
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\"}", "\"code\":\"not_found\"");
    data_has(&d, "parse_file", "{\"uri\": \"bobs.md\", \"save_to_db\": false}",
             "{\"status\":\"success\",\"file_id\":null,");
    char *rows = data_find(&d, NULL, "bob", "files");
    ck_assert_str_eq(rows, "");
    free(rows);
    d.app.scope.tenant = "other";
    d.user = "ada";
    data_has(&d, "get_file", args, "File not found");
    d.user = "";
    data_has(&d, "parse_file", "{\"uri\": \"bobs.md\"}", "each user has files of their own, and the call has no user");
    d.user = "../ada";
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\"}", "\"code\":\"denied\"");
    d.user = "..";
    data_has(&d, "parse_file", "{\"uri\": \"secret.txt\"}", "\"code\":\"denied\"");
    data_end(&d);
    free(folder);
}
END_TEST

static int count_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)err;
    ck_assert_str_eq(row->pipeline, "models_call");
    ++*(int *)self;
    return 0;
}

static int count_runs(struct data *d, const char *user, unsigned statuses)
{
    const struct rv_store_scope scope = {NULL, user};
    const struct rv_run_filter filter = {.statuses = statuses};
    rv_store *store = NULL;
    int n = 0;

    ck_assert_int_eq(rv_store_open(d->path, NULL, &store, NULL), 0);
    ck_assert_int_eq(rv_store_list_runs(store, &scope, &filter, count_run, &n, NULL), 0);
    rv_store_close(store);
    return n;
}

#define PAGES                                                                                                          \
    "models:\n"                                                                                                        \
    "- {contains: \"[page 1 of 3]\", text: A plan.}\n"                                                                 \
    "- {contains: \"[page 3 of 3]\\nthree\\n\", text: The end.}\n"

/* Proves remlight.6/analyze_pages: Pages of a file are described by a model, in runs that are kept and not repeated */
START_TEST(pages_are_described_by_a_model)
{
    struct data d;

    data_begin(&d, _i);
    char *folder = make_files(&d);
    d.app.files = folder;
    d.script = PAGES;
    write_in(d.room.dir, "files/ada/book.txt", "one\ftwo\fthree\f");
    data_has(&d, "analyze_pages", "{\"file_uri\": \"book.txt\", \"page_batch_size\": 2}",
             "{\"status\":\"success\",\"file_uri\":\"book.txt\",\"description\":\"A plan.\\n\\nThe end.\","
             "\"page_count\":3,\"usage\":{\"calls\":");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"start_page\":1,\"end_page\":3,\"total_pages\":3,"
                                                             "\"runs\":[\"ask_"));
    ck_assert_int_eq(count_runs(&d, "ada", 0), 2);
    char *first = strdup(rv_buf_cstr(&d.room.reply));
    data_has(&d, "analyze_pages", "{\"file_uri\": \"book.txt\", \"page_batch_size\": 2}", first); /* the call again */
    free(first);
    ck_assert_int_eq(count_runs(&d, "ada", 0), 2);
    d.key = "call-2"; /* another call asks again */
    data_has(&d, "analyze_pages", "{\"file_uri\": \"book.txt\", \"start_page\": 3, \"end_page\": 9}",
             "\"description\":\"The end.\",\"page_count\":1,");
    ck_assert_int_eq(count_runs(&d, "ada", 0), 3);
    d.user = "bob";
    data_has(&d, "analyze_pages", "{\"file_uri\": \"book.txt\"}", "\"code\":\"not_found\"");
    ck_assert_int_eq(count_runs(&d, "bob", 0), 0);
    data_end(&d);
    free(folder);
}
END_TEST

static const struct {
    const char *args, *part;
} not_described[] = {
    {"{}", "file_uri has to be a string"},
    {"{\"file_uri\": \"no.txt\"}", "\"code\":\"not_found\",\"error_type\":\"NotFoundError\",\"file_uri\":\"no.txt\""},
    {"{\"file_uri\": \"book.txt\", \"start_page\": 0}", "start_page has to be at least 1"},
    {"{\"file_uri\": \"book.txt\", \"start_page\": 4}", "the file has 3 pages, and no page 4\",\"code\":\"not_found\""},
    {"{\"file_uri\": \"book.txt\", \"start_page\": 2, \"end_page\": 1}", "end_page has to be at least start_page"},
    {"{\"file_uri\": \"book.txt\", \"page_batch_size\": 21}", "page_batch_size has to be from 1 to 20"},
    {"{\"file_uri\": \"book.txt\", \"provider\": \"openai\"}", "provider needs model"},
    {"{\"file_uri\": \"book.txt\", \"model\": \"a\\\"\\nb\"}", "\\\"model\\\" is not a name"},
    {"{\"file_uri\": \"book.txt\", \"start_page\": 2, \"end_page\": 2}", "\"code\":\"provider\""},
    {"{\"file_uri\": \"long.txt\"}", "give a smaller page_batch_size"},
    {"{\"file_uri\": \"many.txt\", \"page_batch_size\": 1}", "are more than 50 times page_batch_size: give end_page"},
};

START_TEST(what_cannot_be_described_is_a_result)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    struct data d;

    data_begin(&d, _i);
    char *folder = make_files(&d);
    d.app.files = folder;
    d.script = PAGES;
    write_in(d.room.dir, "files/ada/book.txt", "one\ftwo\fthree\f");
    for (int i = 0; i < 60; i++)
        rv_buf_puts(&text, "page\f");
    write_in(d.room.dir, "files/ada/many.txt", rv_buf_cstr(&text));
    while (text.len <= (size_t)300 << 10)
        rv_buf_puts(&text, "a long line of a long page\n");
    write_in(d.room.dir, "files/ada/long.txt", strrchr(rv_buf_cstr(&text), '\f') + 1);
    for (size_t i = 0; i < RV_COUNT(not_described); i++) {
        data_has(&d, "analyze_pages", not_described[i].args, "{\"status\":\"error\",\"error\":\"");
        data_has(&d, "analyze_pages", not_described[i].args, not_described[i].part);
    }
    ck_assert_int_eq(count_runs(&d, "ada", 1u << RV_RUN_COMPLETED), 0);
    d.key = "";
    data_has(&d, "analyze_pages", "{\"file_uri\": \"book.txt\"}", "a call without a key asks no model");
    rv_buf_fini(&text);
    data_end(&d);
    free(folder);
}
END_TEST

static const struct {
    const char *uri, *part;
} closed[] = {
    {"link.txt", "leads over a link"},
    {"up/secret.txt", "\"status\":\"error\""},
    {"../bob/bobs.md", "is not a path below the folder"},
    {"notes/../../bob/bobs.md", "is not a path below the folder"},
    {"/etc/passwd", "is not a path below the folder"},
    {"file:///etc/passwd", "is not a path below the folder"},
    {"./notes/plan.md", "is not a path below the folder"},
    {"notes//plan.md", "is not a path below the folder"},
    {"notes", "is not a regular file"},
    {"notes/plan.md/x", "there is no file"},
    {"pipe", "is not a regular file"},
    {"raw.bin", "is not text in UTF-8"},
    {"https://example.org/x", "\"status\":\"error\""},
    {"", "uri is empty"},
};

START_TEST(nothing_outside_the_folder_is_read)
{
    struct data d;

    data_begin(&d, _i);
    char *folder = make_files(&d);
    d.app.files = "";
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\"}", "no folder is configured for them: set REEVE_FILES");
    d.app.files = folder;
    for (size_t i = 0; i < RV_COUNT(closed); i++) {
        char args[512];
        snprintf(args, sizeof args, "{\"uri\": \"%s\"}", closed[i].uri);
        data_has(&d, "parse_file", args, closed[i].part);
        ck_assert_ptr_null(strstr(rv_buf_cstr(&d.room.reply), "\"content\""));
    }
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\", \"user_id\": \"bob\"}", "\"code\":\"denied\"");
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\", \"save_to_db\": 1}", "save_to_db has to be true or false");
    free(folder);
    folder = rv_kit_path(d.room.dir, "files/ada"); /* one folder for all */
    d.app.files = folder;
    d.user = "";
    data_has(&d, "parse_file", "{\"uri\": \"notes/plan.md\"}", "user_id is required for saving files");
    char whole[4200];
    snprintf(whole, sizeof whole, "{\"uri\": \"file://%s/notes/plan.md\", \"save_to_db\": false}", folder);
    data_has(&d, "parse_file", whole, "\"uri\":\"notes/plan.md\"");
    data_end(&d);
    free(folder);
}
END_TEST

START_TEST(a_large_file_is_shown_in_part_and_not_kept)
{
    rv_buf text = RV_BUF_INIT((size_t)6 << 20);
    struct data d;

    data_begin(&d, _i);
    folder_in(d.room.dir, "files");
    d.app.files = rv_kit_path(d.room.dir, "files");
    while (text.len < (size_t)3 << 20)
        rv_buf_puts(&text, "\xc3\xa4\xc3\xa4 x\n");
    write_in(d.room.dir, "files/big.txt", rv_buf_cstr(&text));
    data_has(&d, "parse_file", "{\"uri\": \"big.txt\"}", "the file is too large to be saved");
    data_has(&d, "parse_file", "{\"uri\": \"big.txt\", \"save_to_db\": false}", "\"truncated\":true");
    while (text.len <= (size_t)4 << 20)
        rv_buf_puts(&text, "more");
    write_in(d.room.dir, "files/big.txt", rv_buf_cstr(&text));
    data_has(&d, "parse_file", "{\"uri\": \"big.txt\"}", "bytes, at most 4194304 are read");
    free((char *)d.app.files);
    rv_buf_fini(&text);
    data_end(&d);
}
END_TEST

/* --- handles of the store --- */

#define THREADS 8

static int open_files(const struct data *d)
{
    DIR *dir = opendir("/proc/self/fd");
    char link[300], path[4096];
    int n = 0;

    for (struct dirent *e; (e = readdir(dir));) {
        snprintf(link, sizeof link, "/proc/self/fd/%.200s", e->d_name);
        ssize_t len = readlink(link, path, sizeof path - 1);
        path[len > 0 ? len : 0] = '\0';
        n += strstr(path, d->path) != NULL;
    }
    closedir(dir);
    return n;
}

static struct rv_service_job *job_of(struct data *d, const char *service, const char *args)
{
    const struct rv_service_ask ask = {.service = service,
                                       .args = rv_str_of(args),
                                       .capability = "any",
                                       .entry = "any",
                                       .user_id = d->user,
                                       .key = "k"};
    struct rv_service_job *job = NULL;

    ck_assert_int_eq(d->services.exec.make(d->services.exec.self, &ask, NULL, &job, NULL), 0);
    return job;
}

static void *run_job(void *arg)
{
    struct rv_service_job *job = arg;
    rv_buf answer = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    bool found = job->run(job, &answer, &err) == 0 && strstr(rv_buf_cstr(&answer), "Mine");

    rv_err_free(err);
    rv_buf_fini(&answer);
    job->free(job);
    return found ? job : NULL;
}

START_TEST(asks_of_many_threads_use_handles_again)
{
    pthread_t threads[THREADS];
    struct data d;
    int one;

    data_begin(&d, false);
    data_put(&d, "resources", "[{\"name\": \"Mine\", \"user_id\": \"ada\"}]");
    ck_assert_int_eq(open_files(&d), 0);
    ck_assert_ptr_nonnull(run_job(job_of(&d, "query", "{\"text\": \"LOOKUP mine\"}")));
    one = open_files(&d);
    ck_assert_int_gt(one, 0);
    for (int i = 0; i < 50; i++)
        ck_assert_ptr_nonnull(run_job(job_of(&d, "query", "{\"text\": \"FUZZY mine\"}")));
    ck_assert_int_eq(open_files(&d), one);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, run_job,
                                            job_of(&d, "query", "{\"text\": \"SEARCH mine FROM resources\"}")),
                             0);
        for (int i = 0; i < THREADS; i++) {
            void *found = NULL;
            pthread_join(threads[i], &found);
            ck_assert_ptr_nonnull(found);
        }
    }
    /* Four handles are kept; SQLite closes the file of another one when no lock of this process is on it any more. */
    ck_assert_int_lt(open_files(&d), THREADS * one);
    struct rv_service_job *late = job_of(&d, "query", "{\"text\": \"LOOKUP mine\"}");
    rv_app_services_fini(&d.services); /* the engine is gone, and a call goes on */
    ck_assert_int_eq(open_files(&d), 0);
    ck_assert_ptr_nonnull(run_job(late));
    ck_assert_int_eq(open_files(&d), 0);
    data_end(&d);
}
END_TEST

/* A row that one handle writes is found by the others. */
START_TEST(a_warm_handle_finds_what_others_wrote)
{
    struct data d;

    data_begin(&d, false);
    data_put(&d, "resources", "[{\"name\": \"Mine\", \"user_id\": \"ada\", \"content\": \"old boats\"}]");
    data_has(&d, "search", "{\"query\": \"SEARCH kites FROM resources\"}", "\"status\":\"success\"");
    data_put(&d, "resources", "[{\"name\": \"New\", \"user_id\": \"ada\", \"content\": \"red kites\"}]");
    data_has(&d, "search", "{\"query\": \"SEARCH kites FROM resources\"}", "\"name\":\"New\"");
    data_put(&d, "resources", "[{\"name\": \"Theirs\", \"user_id\": \"bob\", \"content\": \"red kites\"}]");
    data_has(&d, "search", "{\"query\": \"SEARCH kites FROM resources\"}", "\"status\":\"success\"");
    ck_assert_ptr_null(strstr(rv_buf_cstr(&d.room.reply), "Theirs"));
    d.user = "bob"; /* the handle that Ada's asks have used */
    data_has(&d, "search", "{\"query\": \"SEARCH kites FROM resources\"}", "\"name\":\"Theirs\"");
    ck_assert_ptr_null(strstr(rv_buf_cstr(&d.room.reply), "\"New\""));
    data_end(&d);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_loop_test(tc, an_agent_is_saved_for_its_user, 0, 2);
    tcase_add_loop_test(tc, an_agent_that_cannot_be_saved_is_an_action_too, 0, 2);
    tcase_add_loop_test(tc, a_file_of_the_folder_is_read_and_kept, 0, 2);
    tcase_add_loop_test(tc, pages_are_described_by_a_model, 0, 2);
    tcase_add_loop_test(tc, what_cannot_be_described_is_a_result, 0, 2);
    tcase_add_loop_test(tc, nothing_outside_the_folder_is_read, 0, 2);
    tcase_add_loop_test(tc, a_large_file_is_shown_in_part_and_not_kept, 0, 2);
    tcase_add_test(tc, asks_of_many_threads_use_handles_again);
    tcase_add_test(tc, a_warm_handle_finds_what_others_wrote);
    return tc;
}
