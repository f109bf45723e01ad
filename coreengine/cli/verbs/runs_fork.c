/* reeve runs fork: another run, from the state behind a step of this one. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

/* The state as JSON, under another id and with what --set says. */
static int changed_state(const struct rv_cli_args *args, rv_str text, const char *id, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_APP_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH, .what = "saved state"};
    json_object *state = NULL;
    const char *assignment;

    int rc = rv_json_parse(text, &opts, &state, err);
    for (size_t i = 0; rc == 0 && (assignment = rv_cli_nth(args, "set", i)); i++) {
        rc = rv_cli_set(state, assignment, err);
        if (rc == 0)
            rc = rv_cli_check_state_key(assignment, err);
    }
    if (rc == 0)
        rc = rv_json_set_text(state, "envelope_id", id, err);
    if (rc < 0)
        json_object_put(state);
    else
        *out = state;
    return rc;
}

static int make_run(const struct rv_cli_args *args, rv_store *store, const struct rv_app_past *p,
                    const struct rv_app_saved *from, json_object *state, rv_err **err)
{
    struct rv_journal_start start = {
        .tenant = p->row.tenant,
        .bundle = p->row.bundle,
        .pipeline = rv_app_past_pipeline(p),
        .parent = p->row.id,
        .parent_seq = from->seq,
        .now_us = rv_app_now_us(),
    };
    rv_envelope *env = NULL;

    int rc = rv_envelope_load(state, rv_rand_system(), start.now_us, &env, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "read the state of the new run");
    start.env = env;
    rc = rv_cli_check_asks(env, err);
    if (rc == 0)
        rc = rv_cli_check_user(args, rv_envelope_fields(env)->user_id, err);
    if (rc == 0)
        rc = rv_journal_read_begin(store, &p->scope, p->row.id, start.pipeline, &start.begin, err);
    if (from->step > 0) /* a run that has not begun begins as its parent did */
        start.begin.continues = true;
    json_object_put(start.begin.script_at);
    start.begin.script_at = json_object_get(from->script_at);
    if (start.begin.own_conversation) /* it is told what was said, and adds nothing: nobody has said it */
        start.begin.own_conversation->keeps = false;
    if (rc == 0)
        rc = rv_journal_create(store, &start, NULL, err);
    rv_journal_begin_fini(&start.begin);
    rv_envelope_free(env);
    return rc;
}

static int fork_run(const struct rv_cli_args *args, rv_store *store, int64_t at, const char *id, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_app_past p;
    struct rv_app_saved saved;
    json_object *state = NULL;

    int rc = rv_app_past_open(store, &scope, args->words[0], &p, err);
    if (rc < 0)
        return rc;
    rc = rv_app_saved_read(store, &p, at, &saved, err);
    if (rc == 0) {
        rc = changed_state(args, rv_buf_str(&saved.state), id, &state, err);
        if (rc == 0)
            rc = make_run(args, store, &p, &saved, state, err);
        json_object_put(state);
        rv_app_saved_fini(&saved);
    }
    rv_app_past_fini(&p);
    return rc;
}

static int fork_verb(struct rv_cli *cli, const struct rv_cli_args *args)
{
    char id[RV_ID_MAX];
    int64_t at = 0;
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_value(args, "at"))
        return rv_cli_usage(cli, args, "`reeve runs fork` needs --at STEP; `reeve runs show` has the numbers");
    if (rv_cli_int(args, "at", 0, INT64_MAX, &at, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    rv_id_make(rv_rand_system(), "env_", id);
    if (fork_run(args, store, at, id, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else if (rv_cli_flag(args, "go")) {
        rv_buf text = RV_BUF_INIT(256);
        rv_buf_printf(&text, "run %s\n", id);
        rv_cli_err(rv_buf_str(&text));
        rv_buf_fini(&text);
        status = rv_cli_continue(cli, args, store, id, RV_APP_RECOVER, NULL);
    } else {
        rv_buf text = RV_BUF_INIT(256), hint = RV_BUF_INIT(16384);
        rv_buf_printf(&text, "%s\n", id);
        status = rv_cli_print(cli, &text);
        rv_buf_printf(&hint, "run it with: reeve runs recover %s", id);
        rv_cli_write_store(args, &hint);
        rv_buf_putc(&hint, '\n');
        rv_cli_err(rv_buf_str(&hint));
        rv_buf_fini(&hint);
    }
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option fork_options[] = {
    {"at", 0, "STEP", "behind which step: a number of `reeve runs show`; 0 is the beginning", NULL, false},
    {"set", 0, "PATH=VALUE", "change a part of the state first, e.g. outputs.plan.steps=[]", NULL, true},
    {"go", 'g', NULL, "run it at once", NULL, false},
    {"json", 'j', NULL, "with --go: print the result as one JSON object", NULL, false},
    {"state", 0, NULL, "with --go: print the whole state as one JSON object", NULL, false},
    {"events", 'e', NULL, "with --go: print each event as a line of JSON", NULL, false},
    {"quiet", 'q', NULL, "with --go: no progress", NULL, false},
    {"workers", 'w', "N", "with --go: threads for capability code at most (default: 64)", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};

const struct rv_cli_verb rv_verb_runs_fork = {
    .name = "runs fork",
    .args = "RUN --at STEP",
    .summary = "another run, from the state behind a step of this one",
    .text =
        "The new run has an id of its own and the same bundle; it begins with the state that this run had behind that\n"
        "step, changed by --set, and does everything after it itself, calls included. Its script, if there is one,\n"
        "goes on behind the entries that were used by then. Prints the new id. Nothing of the old run changes.",
    .examples = "reeve runs fork last --at 2\n"
                "reeve runs fork last --at 1 --set outputs.plan.steps=[] --go",
    .options = fork_options,
    .n_options = RV_COUNT(fork_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_runs,
    .outlives_reader = true,
    .run = fork_verb,
};
