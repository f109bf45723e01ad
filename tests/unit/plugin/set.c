/* What most tests of this program start with. */
#include "tests/unit/plugin/suites.h"

#include <stdio.h>
#include <string.h>

rv_plugins *new_set(rv_log *log)
{
    static const char *const dirs[] = {HOSTILE_DIR, CAPABILITY_DIR};
    const struct rv_plugins_opts opts = {dirs, RV_COUNT(dirs), "tests", log, REEVE_PROGRAM, NULL};
    rv_plugins *p = NULL;

    ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
    return p;
}

static int load_how(rv_plugins *p, const char *name, const char *config, int isolation, rv_err **err)
{
    struct rv_capability_config which = {
        .name = name, .isolation = isolation, .memory_mb = TEST_MEMORY_MB, .src = {"qa.yaml", 3, 5}};
    int rc;

    if (config)
        ck_assert_int_eq(rv_json_parse(rv_str_of(config), NULL, &which.config, NULL), 0);
    rc = rv_plugins_load(p, &which, err);
    json_object_put(which.config);
    return rc;
}

int load_named(rv_plugins *p, const char *name, const char *config, rv_err **err)
{
    return load_how(p, name, config, RV_ISOLATION_NONE, err);
}

int load_isolated(rv_plugins *p, const char *name, const char *config, rv_err **err)
{
    return load_how(p, name, config, RV_ISOLATION_PROCESS, err);
}

void must_load(rv_plugins *p, const char *name)
{
    rv_err *err = NULL;
    int rc = load_named(p, name, NULL, &err);

    ck_assert_msg(rc == 0, "%s", error_text(err));
}

void must_isolate(rv_plugins *p, const char *name)
{
    rv_err *err = NULL;
    int rc = load_isolated(p, name, NULL, &err);

    ck_assert_msg(rc == 0, "%s", error_text(err));
}

int call_entry(rv_plugins *p, enum rv_name_kind kind, const char *name, const char *args, rv_buf *out, rv_err **err)
{
    const struct rv_plugin_call call = {.kind = kind, .name = name, .args = rv_str_of(args), .call_id = 7};

    return rv_plugins_call(p, &call, out, err);
}

const char *error_text(const rv_err *err)
{
    static char text[16384];
    rv_buf b = RV_BUF_INIT(sizeof text - 1);

    rv_err_write_text(err, false, &b);
    snprintf(text, sizeof text, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
    return text;
}
