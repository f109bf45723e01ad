#include "tests/unit/p8/room.h"

#include <string.h>

static void begin(struct room *r, const char *config, int isolation)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    struct rv_plugins_opts opts = {dirs, 1, NULL, NULL, REEVE_PROGRAM, NULL};
    struct rv_capability_config which = {.name = "p8", .isolation = isolation};

    memset(r, 0, sizeof *r);
    r->dir = rv_kit_tmpdir();
    rv_buf_init(&r->reply, (size_t)16 << 20);
    opts.base_dir = r->dir;
    ck_assert_int_eq(rv_plugins_new(&opts, &r->plugins, NULL), 0);
    if (config)
        ck_assert_int_eq(rv_json_parse(rv_str_of(config), NULL, &which.config, NULL), 0);
    r->loaded = rv_plugins_load(r->plugins, &which, &r->err);
    json_object_put(which.config);
}

void room_begin(struct room *r, const char *config)
{
    begin(r, config, RV_ISOLATION_NONE);
}

void room_begin_isolated(struct room *r, const char *config)
{
    begin(r, config, RV_ISOLATION_PROCESS);
}

void room_end(struct room *r)
{
    rv_plugins_free(r->plugins);
    rv_buf_fini(&r->reply);
    rv_err_free(r->err);
    rv_kit_tmpdir_remove(r->dir);
}

int room_call(struct room *r, const char *tool, const char *args, const char *key)
{
    const struct rv_plugin_call call = {
        .kind = RV_NAME_TOOL, .name = tool, .args = rv_str_of(args), .idempotency_key = key};

    rv_err_free(r->err);
    r->err = NULL;
    rv_buf_clear(&r->reply);
    return rv_plugins_call(r->plugins, &call, &r->reply, &r->err);
}
