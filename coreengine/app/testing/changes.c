/* `reeve test --changed`: which tests passed with what they read as it is now. What a test reads is known by hashes of
 * its parts, and a file in the state folder has a line of them for each test that passed. What tools read while they
 * run is not known before, and does not count. */
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/testing/testing_internal.h"
#include "coreengine/base/base.h"

#define SHORT     16                 /* hexadecimal digits of a hash: 64 bits tell a few thousand tests apart */
#define MAX_STATE ((size_t)4 << 20)  /* bytes of a file: the most tests that a pipeline can have */
#define MAX_PART  ((size_t)64 << 20) /* bytes of a part: as a bundle may have */
/* bytes of a capability's .so, which is hashed; a longer one is an error */
#define MAX_CAPABILITY ((size_t)256 << 20) /* of a .so that is hashed: it is in memory */

enum part { PART_PIPELINE, PART_FILES, PART_AGENTS, PART_CAPABILITIES, PART_PROGRAM, PART_TEST, N_PARTS };
static const char *const part_names[] = {[PART_PIPELINE] = "the pipeline", [PART_FILES] = "prompts and schemas",
                                         [PART_AGENTS] = "agents",         [PART_CAPABILITIES] = "capabilities",
                                         [PART_PROGRAM] = "reeve",         [PART_TEST] = "the test or its script"};
RV_EACH_HAS_ROW(part_names, N_PARTS);

struct line {
    char key[SHORT + 1]; /* of the test's name */
    char parts[N_PARTS][SHORT + 1];
};
struct rv_test_changes {
    rv_buf path;
    struct line *passed; /* that the file has; owned */
    size_t n_passed;
    struct line *now; /* of each test; owned */
    bool *has_passed; /* owned */
    size_t n;
};

static void hash_short(rv_str text, char out[SHORT + 1])
{
    char hash[RV_HASH_MAX];

    rv_hash_format(text, hash);
    memcpy(out, hash, SHORT);
    out[SHORT] = '\0';
}

/* --- the parts --- */

static void add_text(rv_buf *b, rv_str text)
{
    rv_buf_printf(b, "%zu:", text.len);
    rv_buf_add_str(b, text);
}

int app_test_yaml_json(rv_str text, const char *name, json_object **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    rv_yaml *doc = NULL;
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);

    if (rc == 0)
        rc = rv_yaml_parse(text, name, findings, &doc, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0)
        rc = rv_node_build_json(rv_yaml_root(doc), out, err);
    rv_yaml_free(doc);
    rv_findings_free(findings);
    return rc;
}

static void add_files(const struct rv_pipeline *p, rv_buf *b)
{
    size_t n;
    const struct rv_text_file *files = rv_pipeline_files(p, &n);

    for (size_t i = 0; i < n; i++)
        add_text(b, files[i].text);
}

static void add_bound(const struct rv_pipeline *p, rv_buf *b)
{
    size_t n;
    const struct rv_bound_agent *agents = rv_pipeline_bound_agents(p, &n);

    for (size_t i = 0; i < n; i++)
        add_text(b, agents[i].text);
}

/* An agent may ask others. */
static int add_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                     rv_err **err)
{
    (void)fault;
    (void)err;
    add_text(self, rv_str_of(name));
    add_text(self, found->text);
    return 0;
}

static int add_agents(const struct rv_app *app, const struct rv_app_loaded *l, rv_buf *b, rv_err **err)
{
    const struct rv_store_scope *scope = &app->scope;

    add_bound(l->pipeline, b);
    return l->agents ? rv_agents_list(l->agents, scope, add_agent, b, err) : 0;
}

static int add_capabilities(const struct rv_app_loaded *l, rv_buf *b, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_PART, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf text = RV_BUF_INIT(MAX_PART);
    json_object *list = NULL;
    rv_jw w = rv_jw_on(&text);

    rv_plugins_write_json(l->plugins, &w);
    int rc = rv_buf_check(&text, "list of capabilities", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &list, err);
    rv_buf_fini(&text);
    for (size_t i = 0; rc == 0 && json_object_is_type(list, json_type_array) && i < json_object_array_length(list);
         i++) {
        rv_buf bytes = RV_BUF_INIT(MAX_CAPABILITY);
        const char *path = NULL;
        char hash[RV_HASH_MAX];
        struct stat st;
        if (rv_json_get_text(json_object_array_get_idx(list, i), "path", &path) && stat(path, &st) == 0)
            rc = rv_file_read(path, &bytes, err); /* else it is part of the program */
        rv_hash_format(rv_buf_str(&bytes), hash);
        add_text(b, rv_str_of(hash));
        rv_buf_fini(&bytes);
    }
    json_object_put(list);
    return rc;
}

static void add_program(rv_buf *b)
{
    struct stat st = {0};

    RV_IGNORE(stat("/proc/self/exe", &st) < 0, "then its version has to do");
    rv_buf_printf(b, "%s %lld %lld.%09ld", rv_version(), (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                  st.st_mtim.tv_nsec);
}

/* The prompts that a combination has in the place of the pipeline's. */
static int add_prompts(const struct rv_pipeline *p, const struct rv_test_config *test, rv_buf *b, rv_err **err)
{
    const struct rv_node *sets = rv_node_get(rv_node_get(test->node, "matrix"), "prompts");
    const struct rv_node *set = test->place.prompts ? rv_node_get(sets, test->place.prompts) : NULL;
    int rc = 0;

    for (size_t i = 0; set && i < set->n && rc == 0; i++) {
        const struct rv_node *file = rv_node_get(set->items[i], "file");
        add_text(b, set->keys[i]->text);
        add_text(b, set->items[i]->text);
        if (!file || file->kind != RV_NODE_STR)
            continue;
        rv_buf path = RV_BUF_INIT(PATH_MAX), text = RV_BUF_INIT(MAX_PART);
        bool is_absolute = file->text.ptr[0] == '/';
        rv_buf_printf(&path, "%s%s%s", is_absolute ? "" : p->dir, is_absolute ? "" : "/", file->text.ptr);
        rc = rv_buf_check(&path, "path", err);
        rv_err *fault = NULL;
        if (rc == 0 && rv_file_read(rv_buf_cstr(&path), &text, &fault) == 0)
            add_text(b, rv_buf_str(&text));
        rv_err_free(fault); /* the test says it when it runs */
        rv_buf_fini(&text);
        rv_buf_fini(&path);
    }
    return rc;
}

/* The keys of the test with the values of its case and combination, and its script. */
static int add_test(const struct rv_app_loaded *l, size_t i, rv_buf *b, rv_err **err)
{
    const struct rv_test_config *test = &l->pipeline->tests[i];
    json_object *keys = NULL;
    const char *name;

    int rc = rv_node_build_json(test->node, &keys, err);
    if (rc == 0) { /* the others of its table */
        json_object_object_del(keys, "cases");
        json_object_object_del(keys, "matrix");
        rv_json_write(keys, b);
    }
    json_object_put(keys);
    rv_buf_printf(b, " %s ", test->place.model ? test->place.model : "");
    if (rc == 0)
        rc = add_prompts(l->pipeline, test, b, err);
    if (rc == 0 && l->test_scripts && l->test_scripts[i])
        rc = rv_script_write_source(l->test_scripts[i], &name, b, err);
    return rc;
}

/* One part of all tests. */
static int hash_part(const struct rv_app *app, const struct rv_app_loaded *l, enum part part, char out[SHORT + 1],
                     rv_err **err)
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(l->pipeline, &n);
    rv_buf b = RV_BUF_INIT(MAX_PART);
    json_object *keys = NULL;
    int rc = 0;

    switch (part) {
    case PART_PIPELINE:
        rc = app_test_yaml_json(rv_pipeline_text(l->pipeline), l->pipeline->file, &keys, err);
        if (rc == 0) {
            json_object_object_del(keys, "tests");
            rv_json_write(keys, &b);
        }
        json_object_put(keys);
        for (size_t i = 0; i < n; i++)
            add_text(&b, rv_pipeline_text(inner[i]));
        break;
    case PART_FILES:
        add_files(l->pipeline, &b);
        for (size_t i = 0; i < n; i++)
            add_files(inner[i], &b);
        break;
    case PART_AGENTS:
        rc = add_agents(app, l, &b, err);
        for (size_t i = 0; i < n; i++)
            add_bound(inner[i], &b);
        break;
    case PART_CAPABILITIES:
        rc = add_capabilities(l, &b, err);
        break;
    case PART_PROGRAM:
        add_program(&b);
        break;
    case PART_TEST:
    case N_PARTS:
        break;
    }
    if (rc == 0)
        rc = rv_buf_check(&b, "what a test reads", err);
    if (rc == 0)
        hash_short(rv_buf_str(&b), out);
    rv_buf_fini(&b);
    return rc;
}

static int hash_all(const struct rv_app *app, const struct rv_app_loaded *l, struct rv_test_changes *c, rv_err **err)
{
    struct line shared = {0};
    int rc = 0;

    for (int part = 0; part < PART_TEST && rc == 0; part++)
        rc = hash_part(app, l, (enum part)part, shared.parts[part], err);
    for (size_t i = 0; i < c->n && rc == 0; i++) {
        rv_buf b = RV_BUF_INIT(MAX_PART);
        c->now[i] = shared;
        hash_short(rv_str_of(l->pipeline->tests[i].name), c->now[i].key);
        rc = add_test(l, i, &b, err);
        if (rc == 0)
            rc = rv_buf_check(&b, "what a test reads", err);
        hash_short(rv_buf_str(&b), c->now[i].parts[PART_TEST]);
        rv_buf_fini(&b);
    }
    return rc;
}

/* --- the file of those that passed: a line "KEY PART PART ..." for each --- */

static int name_file(const struct rv_app_loaded *l, const char *variant, rv_buf *out, rv_err **err)
{
    char path[PATH_MAX], hash[RV_HASH_MAX];
    rv_buf name = RV_BUF_INIT(2 * PATH_MAX);

    rv_buf_printf(&name, "%s %s", realpath(l->pipeline->file, path) ? path : l->pipeline->file, variant ? variant : "");
    rv_hash_format(rv_buf_str(&name), hash);
    int rc = rv_buf_check(&name, "the name of a file", err);
    rv_buf_fini(&name);
    if (rc == 0)
        rc = rv_app_find_state_folder(out, err);
    rv_buf_printf(out, "/tests/%s", hash);
    return rc < 0 ? rc : rv_buf_check(out, "path", err);
}

/* A line that is none, of another version of reeve, is as if it were not there: its test runs. */
static bool read_line(const char *text, size_t n, struct line *out)
{
    const size_t width = SHORT + 1;

    if (n != (N_PARTS + 1) * width - 1)
        return false;
    *out = (struct line){0};
    memcpy(out->key, text, SHORT);
    for (size_t i = 0; i < N_PARTS; i++)
        memcpy(out->parts[i], text + (i + 1) * width, SHORT);
    return true;
}

static int read_file(struct rv_test_changes *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_STATE);
    size_t n_lines = 1;
    int rc = rv_file_read(rv_buf_cstr(&c->path), &text, err);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(rv_err_steal(err));
        rc = 0;
    }
    for (const char *p = rv_buf_cstr(&text); *p; p++)
        n_lines += *p == '\n';
    c->passed = rc == 0 ? calloc(n_lines, sizeof *c->passed) : NULL;
    if (rc == 0 && !c->passed)
        rc = RV_FAIL(err, RV_E_NOMEM, "compare tests");
    for (const char *p = rv_buf_cstr(&text); rc == 0 && *p;) {
        size_t n = strcspn(p, "\n");
        c->n_passed += read_line(p, n, &c->passed[c->n_passed]);
        p += n + (p[n] == '\n');
    }
    rv_buf_fini(&text);
    return rc;
}

/* A test with several lines has namesakes: the one that is like it counts. NULL: none has its name. */
static const struct line *passed_as(const struct rv_test_changes *c, size_t i, bool *is_same)
{
    const struct line *last = NULL;

    *is_same = false;
    for (size_t k = 0; k < c->n_passed && !*is_same; k++) {
        if (strcmp(c->passed[k].key, c->now[i].key) != 0)
            continue;
        last = &c->passed[k];
        *is_same = memcmp(last, &c->now[i], sizeof *last) == 0;
    }
    return last;
}

int rv_test_changes_open(const struct rv_app *app, const struct rv_app_loaded *l, const char *variant,
                         struct rv_test_changes **out, rv_err **err)
{
    struct rv_test_changes *c = calloc(1, sizeof *c);
    int rc = c ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare tests");

    if (rc < 0)
        return rc;
    c->path = RV_BUF_INIT(PATH_MAX);
    c->n = l->pipeline->n_tests;
    c->now = calloc(c->n + 1, sizeof *c->now);
    c->has_passed = calloc(c->n + 1, sizeof *c->has_passed);
    if (!c->now || !c->has_passed)
        rc = RV_FAIL(err, RV_E_NOMEM, "compare tests");
    if (rc == 0)
        rc = name_file(l, variant, &c->path, err);
    if (rc == 0)
        rc = hash_all(app, l, c, err);
    if (rc == 0)
        rc = read_file(c, err);
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        RV_IGNORE(!passed_as(c, i, &c->has_passed[i]), "a new one");
    if (rc == 0)
        *out = c;
    else
        rv_test_changes_free(c);
    return rc;
}

bool rv_test_changes_choose(const struct rv_test_changes *c, size_t i, struct rv_test_choice *sum)
{
    bool is_same;
    const struct line *before = passed_as(c, i, &is_same);

    sum->n++;
    if (is_same)
        return false;
    sum->n_new += !before;
    sum->n_changed += before != NULL;
    for (size_t part = 0; before && part < N_PARTS; part++)
        if (strcmp(before->parts[part], c->now[i].parts[part]) != 0)
            sum->parts |= 1u << part;
    return true;
}

void rv_test_changes_note(struct rv_test_changes *c, size_t i, bool passed)
{
    c->has_passed[i] = passed;
}

void rv_test_choice_write_text(const struct rv_test_choice *sum, rv_buf *b)
{
    const char *before = " (";

    rv_buf_printf(b, "%zu of %zu tests were run: %zu read something that changed", sum->n_new + sum->n_changed, sum->n,
                  sum->n_changed);
    for (size_t part = 0; part < N_PARTS; part++) {
        if (!(sum->parts & 1u << part))
            continue;
        rv_buf_printf(b, "%s%s", before, part_names[part]);
        before = ", ";
    }
    rv_buf_printf(b, "%s, %zu had not passed", sum->n_changed > 0 ? ")" : "", sum->n_new);
}

int rv_test_changes_keep(const struct rv_test_changes *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_STATE);

    for (size_t i = 0; i < c->n; i++) {
        if (!c->has_passed[i])
            continue;
        rv_buf_puts(&text, c->now[i].key);
        for (size_t part = 0; part < N_PARTS; part++)
            rv_buf_printf(&text, " %s", c->now[i].parts[part]);
        rv_buf_putc(&text, '\n');
    }
    int rc = rv_buf_check(&text, "the tests that passed", err);
    if (rc == 0)
        rc = rv_file_make_folders(rv_buf_cstr(&c->path), err);
    if (rc == 0)
        rc = rv_file_write(rv_buf_cstr(&c->path), rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

void rv_test_changes_free(struct rv_test_changes *c)
{
    if (!c)
        return;
    rv_buf_fini(&c->path);
    free(c->passed);
    free(c->now);
    free(c->has_passed);
    free(c);
}
