/* reeve worker: does what is queued, until it is told to stop. */
#include "coreengine/app/app.h"
#include "coreengine/cli/outlet_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LABELS   64  /* --label of one command: each task is compared with all; more is an error */
#define MAX_HANDLERS 64  /* --handler, and --script, of one command: a person types them; more is an error */
#define MAX_TYPE     200 /* bytes of a task's type: a word or two; a longer one is an error */

static const struct rv_cli_option worker_options[] = {
    {"concurrency", 'c', "N", "runs at once (default 16)", NULL, false},
    {"label", 'l', "WORD", "label that this worker has, e.g. gpu", NULL, true},
    {"handler", 0, "TYPE=TARGET", "handle tasks of this type with a pipeline file or with CAPABILITY:TOOL", NULL, true},
    {"grace", 0, "DURATION",
     "time that runs have to come to a point where another worker can go on (default 30s; 0s: none)", NULL, false},
    {"script", 0, "TYPE=FILE", "answer for the models of tasks of the type dreaming or summary from this script", NULL,
     true},
    {"until-idle", 0, NULL, "end when nothing is left that it could do", NULL, false},
    {"list", 0, NULL, "list the workers that live, and what they offer", NULL, false},
    {"json", 'j', NULL, "with --list: print a JSON array of objects", NULL, false},
    {"store", 0, "URL", RV_CLI_STORE_DOC, "FILE", false}, /* no --tenant: it works for all of them */
    {"schema-dir", 0, "DIR", RV_CLI_SCHEMA_DIR_DOC, "DIR", false},
};

/* --- list --- */

struct listing {
    const struct rv_cli *cli;
    rv_buf text;
    rv_jw w;
    int64_t now_us;
    size_t n;
};

static void write_offers(rv_str json, rv_buf *b)
{
    struct rv_needs offers;

    int rc = rv_needs_read(json, &offers, RV_CODE_ONLY("the listing says in its place that the offers cannot be read"));
    if (rc < 0) {
        rv_buf_puts(b, "  its offers cannot be read");
        b->rc = rc == RV_E_NOMEM && b->rc == 0 ? rc : b->rc;
        return;
    }
    for (size_t i = 0; i < offers.n; i++) {
        rv_buf_puts(b, "  ");
        cli_write_preview(rv_str_of(offers.items[i]), 200, b);
    }
    rv_needs_fini(&offers);
}

static int list_one(void *self, const struct rv_worker_row *row, rv_err **err)
{
    struct listing *l = self;

    (void)err;
    if (rv_owner_is_dead(row->name))
        return 0;
    l->n++;
    if (cli_flag(l->cli, "json")) {
        char seen[RV_TIME_MAX];
        rv_time_format(row->seen_us, seen);
        rv_jw_obj(&l->w);
        rv_jw_kv_text(&l->w, "worker", row->name);
        rv_jw_kv_text(&l->w, "host", row->host);
        rv_jw_kv_int(&l->w, "pid", row->pid);
        rv_jw_key(&l->w, "offers");
        rv_jw_raw(&l->w, row->offers);
        rv_jw_kv_int(&l->w, "concurrency", row->n_max);
        rv_jw_kv_int(&l->w, "runs", row->n_runs);
        rv_jw_kv_bool(&l->w, "draining", row->is_draining);
        rv_jw_kv_text(&l->w, "seen_at", seen);
        rv_jw_obj_end(&l->w);
        return 0;
    }
    cli_write_preview(rv_str_of(row->host), 80, &l->text);
    rv_buf_printf(&l->text, " pid %lld  %lld of %lld runs%s  seen ", (long long)row->pid, (long long)row->n_runs,
                  (long long)row->n_max, row->is_draining ? ", draining" : "");
    cli_write_age(&l->text, l->now_us - row->seen_us);
    rv_buf_puts(&l->text, " ago\n ");
    write_offers(row->offers, &l->text);
    rv_buf_putc(&l->text, '\n');
    return 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    struct listing l = {.cli = cli, .text = RV_BUF_INIT(RV_APP_MAX_TEXT), .now_us = rv_app_now_us()};
    bool json = cli_flag(cli, "json");

    int rc = rv_app_store_open_if_any(&cli->app, &cli->store, err);
    l.w = rv_jw_on(&l.text);
    if (json)
        rv_jw_arr(&l.w);
    if (rc == 0 && cli->store)
        rc = rv_store_list_workers(cli->store, l.now_us - RV_WORKER_SEEN_US, list_one, &l, err);
    if (json) {
        rv_jw_arr_end(&l.w);
        rv_buf_putc(&l.text, '\n');
    }
    rc = cli_print(rc, &l.text, err);
    if (rc == 0 && l.n == 0 && !json)
        cli_say("no worker has given a sign of life for %lld seconds\n", (long long)(RV_WORKER_SEEN_US / 1000000));
    return rc;
}

/* --- work --- */

/* An option that is given once for each type of task, and how it is written. Static. */
struct typed_option {
    const char *option, *forms;
};
/* "TYPE=TARGET"; room keeps the types. */
static int read_typed(const struct rv_cli *cli, const struct typed_option *typed,
                      struct rv_worker_handler out[MAX_HANDLERS], char room[MAX_HANDLERS][MAX_TYPE + 1], size_t *n,
                      rv_err **err)
{
    const char *given;

    for (*n = 0; (given = cli_nth(cli, typed->option, *n)); (*n)++) {
        const char *eq = strchr(given, '=');
        if (!eq || eq == given || !eq[1] || eq - given > MAX_TYPE)
            return cli_usage(cli, err, "--%s \"%s\": write %s", typed->option, given, typed->forms);
        if (*n >= MAX_HANDLERS)
            return cli_usage(cli, err, "more than %d %ss", MAX_HANDLERS, typed->option);
        memcpy(room[*n], given, (size_t)(eq - given));
        room[*n][eq - given] = '\0';
        out[*n] = (struct rv_worker_handler){.type = room[*n], .target = eq + 1};
    }
    return 0;
}

static void say(void *self, const char *line)
{
    (void)self;
    cli_say("%s\n", line);
}

static int read_opts(struct rv_cli *cli, struct rv_worker_opts *out, rv_err **err)
{
    int64_t concurrency = 0, threads = 0;

    int rc = cli_int(cli, "concurrency", 1, RV_WORKER_MAX, &concurrency, err);
    if (rc == 0)
        rc = cli_int(cli, "workers", 1, 1024, &threads, err);
    if (rc == 0)
        rc = cli_span(cli, "grace", RV_WORKER_NO_GRACE, &out->grace_us, err);
    out->concurrency = (size_t)concurrency;
    out->threads = (size_t)threads;
    return rc;
}

static int work(struct rv_cli *cli, rv_err **err)
{
    const char *labels[MAX_LABELS];
    struct rv_worker_handler handlers[MAX_HANDLERS], scripts[MAX_HANDLERS];
    char room[MAX_HANDLERS][MAX_TYPE + 1], room_of_scripts[MAX_HANDLERS][MAX_TYPE + 1];
    struct rv_worker_done done = {0};
    struct rv_worker_opts opts = {.app = &cli->app,
                                  .labels = labels,
                                  .until_idle = cli_flag(cli, "until-idle"),
                                  .handlers = handlers,
                                  .scripts = scripts,
                                  .say = cli_flag(cli, "quiet") ? NULL : say};

    int rc = cli_values(cli, "label", labels, RV_COUNT(labels), &opts.n_labels, err);
    if (rc == 0)
        rc = read_opts(cli, &opts, err);
    if (rc == 0)
        rc = read_typed(cli,
                        &(const struct typed_option){
                            .option = "handler", .forms = "TYPE=FILE or TYPE=CAPABILITY:TOOL, such as news=news.yaml"},
                        handlers, room, &opts.n_handlers, err);
    if (rc == 0)
        rc = read_typed(
            cli, &(const struct typed_option){.option = "script", .forms = "TYPE=FILE, such as dreaming=script.yaml"},
            scripts, room_of_scripts, &opts.n_scripts, err);
    const struct rv_app_streams_opts streams = {.app = &cli->app};
    if (rc == 0)
        rc = rv_app_streams_new(&streams, &opts.streams, err);
    if (rc == 0)
        cli_outlet_open(cli->app.log);
    if (rc == 0)
        rc = rv_worker_run(&opts, &done, err);
    if (done.n_left == 0)
        rv_app_streams_free(opts.streams);
    if (rc < 0)
        return rc;
    if (opts.say)
        cli_say("%lld done, %lld failed, %lld handed back, %lld left\n", (long long)done.n_done,
                (long long)done.n_failed, (long long)done.n_back, (long long)done.n_left);
    if (done.n_left > 0) /* their calls still run: what they use must stay until the process is gone */
        _exit(cli_out_rest() ? RV_EXIT_COMPLETED : RV_EXIT_FAILED);
    return RV_EXIT_COMPLETED;
}

static int worker(struct rv_cli *cli, rv_err **err)
{
    return cli_flag(cli, "list") ? list(cli, err) : work(cli, err);
}

const struct rv_cli_verb verb_worker = {
    .name = "worker",
    .args = "",
    .summary = "run what is queued",
    .text =
        "Claims queued runs and tasks, and runs whose process died, and does them, until SIGTERM or SIGINT. Any "
        "number\n"
        "of workers can share a store, on one machine or, with a database server, on several. A worker claims only "
        "what\n"
        "it can do: what needs a label that it does not have, or a capability that is not on its path, waits for "
        "another\n"
        "one. It works for all tenants; these get equal shares, however much each has queued (`reeve tasks share`).\n"
        "A signal drains it: it claims nothing new, and each run comes to a point where another worker can go on with\n"
        "it. A second signal ends it at once.",
    .examples = "reeve worker --concurrency 8\n"
                "reeve worker --label gpu --handler news=pipelines/hooks.yaml --handler hello=hello:greet\n"
                "reeve worker --until-idle   # do what is there, then end\n"
                "reeve worker --list",
    RV_CLI_OPTIONS(worker_options),
    .groups = {&cli_of_work, &cli_of_commits},
    .needs = "json list",
    .excludes = "list until-idle; list concurrency",
    .run = worker,
};
