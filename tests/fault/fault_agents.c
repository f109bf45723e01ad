/* Each allocation of finding, listing and putting agents fails once: no crash, no leak, RV_E_NOMEM, and never another
 * agent than the one that is meant. */
#include "coreengine/app/agents/agents.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define DOC(name, prompt) "type: object\nname: " name "\ndescription: " prompt "\n"

static const struct rv_store_scope ann = {"acme", "ann"};
static rv_plugins *plugins;
static char *folder;

/* What has to fail for a reason of its own; a message that could not be made counts as no memory. */
static int expect(int rc, int expected, rv_err **err)
{
    bool no_memory = rv_err_is(*err, RV_E_NOMEM);

    rv_err_free(*err);
    *err = NULL;
    return no_memory ? RV_E_NOMEM : rc == expected ? 0 : rc ? rc : RV_E_INTERNAL;
}

static int look(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault, rv_err **err)
{
    int *n = self;

    (void)err;
    *n += *name && found->place && !found->doc == (fault != NULL);
    return 0;
}

static int find_all(rv_agents *a, rv_err **err)
{
    static const struct {
        const char *name, *source, *prompt;
    } want[] = {{"as_json", "built-in", "You extract."},
                {"helper", "file", "From a file"},
                {"helper", "file", "From a file"},
                {"own", "store", "Ann's"}};
    struct rv_agents_found found;
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(want) && rc == 0; i++) {
        rc = rv_agents_find(a, &ann, want[i].name, &found, err);
        if (rc == 0 &&
            (strcmp(found.source, want[i].source) != 0 || strcmp(found.doc->description, want[i].prompt) != 0))
            rc = RV_E_INTERNAL;
    }
    if (rc == 0)
        rc = expect(rv_agents_find(a, &ann, "hepler", &found, err), RV_E_NOT_FOUND, err);
    if (rc == 0)
        rc = expect(rv_agents_find(a, &ann, "broken", &found, err), RV_E_INVALID, err);
    return rc;
}

static int live(void)
{
    const char *dirs[] = {folder};
    struct rv_agents_opts opts = {.plugins = plugins, .dirs = dirs, .n_dirs = 1, .registers = true};
    rv_agents *a = NULL;
    bool changed = false;
    rv_err *err = NULL;
    int n = 0, rc = rv_store_open("memory:", NULL, &opts.store, &err);

    if (rc == 0)
        rc = rv_agents_new(&opts, &a, &err);
    if (rc == 0)
        rc = rv_agents_put(a, &ann,
                           &(const struct rv_agent_text){
                               .user_own = true, .text = RV_STR_LIT(DOC("own", "Ann's")), .file = "own.yaml"},
                           &changed, &err);
    if (rc == 0)
        rc = find_all(a, &err);
    if (rc == 0)
        rc = rv_agents_list(a, &ann, look, &n, &err);
    if (rc == 0 && n != 6)
        rc = RV_E_INTERNAL;
    rv_err_free(err);
    rv_agents_free(a);
    rv_store_close(opts.store);
    return rc;
}

START_TEST(every_allocation_may_fail)
{
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(live(), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    for (size_t n = rv_kit_first(step);; n += step) {
        int rc;

        rv_fault_arm(n);
        rc = live();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        /* 0: an error does without its hint */
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks left", n, rv_fault_balance());
    }
}
END_TEST

static void write_document(const char *name, const char *text)
{
    char *path = rv_kit_path(folder, name);

    rv_kit_write(path, text);
    free(path);
}

int main(void)
{
    static const char *const dirs[] = {HOSTILE_DIR};
    const struct rv_plugins_opts opts = {dirs, 1, "tests", NULL, NULL, NULL};
    const struct rv_capability_config which = {.name = "agents"};
    Suite *s = suite_create("fault agents");
    TCase *tc = tcase_create("fault");

    folder = rv_kit_tmpdir();
    write_document("a.yaml", DOC("helper", "From a file"));
    write_document("b.yaml", DOC("broken", "x") "limits: 7\n");
    write_document("c.yml", "- nameless\n");
    if (rv_plugins_new(&opts, &plugins, NULL) < 0 || rv_plugins_load(plugins, &which, NULL) < 0)
        rv_kit_die("the capability can not be loaded");
    tcase_add_test(tc, every_allocation_may_fail);
    suite_add_tcase(s, tc);
    int rc = rv_kit_run(s);
    rv_plugins_free(plugins);
    rv_kit_tmpdir_remove(folder);
    return rc;
}
