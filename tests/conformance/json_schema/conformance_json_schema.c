/* Our JSON Schema against the public test suite (Debian package json-schema-test-suite, draft 7), with its optional
 * tests of formats. References to other documents and formats that we do not check are
 * skipped and counted; every other verdict has to be the suite's.
 *
 * Exit status 77 (skipped) when the package is missing and REEVE_OFFLINE=1. */
#include <dirent.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"

#define SUITE_DIR   "/usr/share/json-schema-test-suite/tests/draft7"
#define FORMAT_DIR  SUITE_DIR "/optional/format"
#define SKIPPED     77
#define MIN_GROUPS  110 /* fewer means that the suite moved or that we skip too much */
#define MIN_TESTS   390
#define MIN_FORMATS 9

struct score {
    int n_groups, n_skipped, n_tests, n_wrong;
};

/* Where we differ on purpose. */
static const struct {
    const char *group, *why;
} different[] = {
    {"ref overrides any sibling keywords", "2020-12: keywords beside $ref count"},
    {"escaped pointer ref", "schemas below keywords that do not exist"},
};

/* Formats that are notes to us. */
static const char *const notes[] = {
    "idn-email.json",    "idn-hostname.json",          "iri.json",          "iri-reference.json",
    "json-pointer.json", "relative-json-pointer.json", "uri-template.json", "regex.json",
};

/* The reason to skip a schema, or NULL. Property names are no keywords, but a group less does not matter. */
static const char *reason_to_skip(json_object *schema)
{
    const struct lh_entry *e;

    if (json_object_is_type(schema, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(schema); i++) {
            const char *reason = reason_to_skip(json_object_array_get_idx(schema, i));
            if (reason)
                return reason;
        }
        return NULL;
    }
    if (!json_object_is_type(schema, json_type_object))
        return NULL;
    for (e = lh_table_head(json_object_get_object(schema)); e; e = lh_entry_next(e)) {
        const char *key = lh_entry_k(e), *reason;
        if (strcmp(key, "$ref") == 0 && rv_json_str(lh_entry_v(e)).len && rv_json_str(lh_entry_v(e)).ptr[0] != '#')
            return "$ref to another document";
        reason = reason_to_skip(lh_entry_v(e));
        if (reason)
            return reason;
    }
    return NULL;
}

static const char *text_of(json_object *obj, const char *key)
{
    const char *text = "?";

    RV_IGNORE(rv_json_get_text(obj, key, &text), "a group without description has no name");
    return text;
}

static void run_group(const char *file, json_object *group, struct score *score)
{
    const char *name = text_of(group, "description"), *reason;
    json_object *doc = NULL, *tests = rv_json_get_arr(group, "tests");
    rv_schema *s = NULL;
    rv_err *err = NULL;

    score->n_groups++;
    json_object_object_get_ex(group, "schema", &doc);
    reason = reason_to_skip(doc);
    for (size_t i = 0; i < RV_COUNT(different); i++)
        if (strcmp(name, different[i].group) == 0)
            reason = different[i].why;
    if (reason) {
        printf("skip  %s: %s (%s)\n", file, name, reason);
        score->n_skipped++;
        return;
    }
    if (rv_schema_compile(doc, file, &s, &err) < 0) {
        printf("WRONG %s: %s: refused: %s\n", file, name, rv_err_text(err));
        rv_err_free(err);
        score->n_wrong++;
        return;
    }
    for (size_t i = 0; tests && i < json_object_array_length(tests); i++) {
        json_object *test = json_object_array_get_idx(tests, i), *value = NULL;
        bool valid = false;
        int rc;
        json_object_object_get_ex(test, "data", &value);
        RV_IGNORE(rv_json_get_bool(test, "valid", &valid), "absent counts as invalid");
        rc = rv_schema_check(s, value, &err);
        score->n_tests++;
        if (rc != (valid ? 0 : RV_E_INVALID)) {
            printf("WRONG %s: %s: %s: %s\n", file, name, text_of(test, "description"), rc ? rv_err_text(err) : "fits");
            score->n_wrong++;
        }
        rv_err_free(err);
        err = NULL;
    }
    rv_schema_free(s);
}

static void run_file(const char *dir, const char *file, struct score *score)
{
    char *path = rv_kit_path(dir, file);
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *groups = NULL;
    rv_err *err = NULL;

    if (rv_file_read(path, &text, &err) < 0 || rv_json_parse((rv_str){text.ptr, text.len}, NULL, &groups, &err) < 0)
        rv_kit_die("%s: %s", path, rv_err_text(err));
    for (size_t i = 0; i < json_object_array_length(groups); i++)
        run_group(file, json_object_array_get_idx(groups, i), score);
    json_object_put(groups);
    rv_buf_fini(&text);
    free(path);
}

static int is_json(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static bool is_note(const char *file)
{
    for (size_t i = 0; i < RV_COUNT(notes); i++)
        if (strcmp(file, notes[i]) == 0)
            return true;
    return false;
}

/* False: there is no such folder. */
static bool run_dir(const char *dir, bool is_formats, struct score *score)
{
    struct dirent **files;
    int n = scandir(dir, &files, is_json, alphasort);

    for (int i = 0; i < n; i++) {
        if (is_formats && is_note(files[i]->d_name))
            printf("skip  format/%s: its format is not checked\n", files[i]->d_name);
        else
            run_file(dir, files[i]->d_name, score);
        free(files[i]);
    }
    if (n >= 0)
        free(files);
    return n >= 0;
}

int main(void)
{
    const char *offline = getenv("REEVE_OFFLINE");
    struct score score = {.n_groups = 0}, formats = {.n_groups = 0};

    if (!run_dir(SUITE_DIR, false, &score)) {
        fprintf(stderr, "no %s: install the package json-schema-test-suite\n", SUITE_DIR);
        return offline && strcmp(offline, "1") == 0 ? SKIPPED : EXIT_FAILURE;
    }
    if (!run_dir(FORMAT_DIR, true, &formats))
        fprintf(stderr, "no %s\n", FORMAT_DIR);
    printf("%d groups, %d skipped; %d tests, %d wrong\n", score.n_groups, score.n_skipped, score.n_tests,
           score.n_wrong);
    printf("formats: %d groups; %d tests, %d wrong\n", formats.n_groups, formats.n_tests, formats.n_wrong);
    if (score.n_groups - score.n_skipped < MIN_GROUPS || score.n_tests < MIN_TESTS ||
        formats.n_groups - formats.n_skipped < MIN_FORMATS) {
        printf("too few to mean anything: at least %d groups and %d tests are expected, and %d formats\n", MIN_GROUPS,
               MIN_TESTS, MIN_FORMATS);
        return EXIT_FAILURE;
    }
    return score.n_wrong + formats.n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
