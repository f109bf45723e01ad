/* The commands that people are told: how to answer a run, and where. */
#include "coreengine/cli/runs/runs.h"

void rv_cli_write_store(const struct rv_cli_args *args, rv_buf *b)
{
    static const char *const names[] = {"store", "user", "tenant"};

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        const char *value = rv_cli_value(args, names[i]);
        if (!value)
            continue;
        rv_buf_printf(b, " --%s ", names[i]);
        rv_cli_write_word(value, b);
    }
}

void rv_cli_write_resume(const struct rv_cli_args *args, const struct rv_pending *pending, bool is_only, rv_buf *b)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};
    enum rv_interrupt_kind kind;
    json_object *body = NULL;

    rv_buf_puts(b, "reeve resume ");
    rv_cli_write_word(pending->run, b);
    if (!is_only) {
        rv_buf_puts(b, " --interrupt ");
        rv_cli_write_word(pending->id, b);
    }
    rv_cli_write_store(args, b);
    if (rv_interrupt_kind_of(rv_str_of(pending->kind), &kind, NULL) == 0 &&
        rv_json_parse(pending->body, &opts, &body, NULL) == 0)
        rv_buf_printf(b, " %s", rv_cli_how_to_answer(kind, rv_json_get_obj(body, "data")));
    rv_buf_putc(b, '\n');
    json_object_put(body);
}

bool rv_cli_runs_open(struct rv_cli *cli, enum rv_app_store_use use, rv_store **store, int *status)
{
    rv_err *err = NULL;

    if (rv_app_store_open(&cli->app, use, store, &err) == 0)
        return true;
    *status = rv_cli_report(cli, err);
    return false;
}
