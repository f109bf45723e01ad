/* reeve dream: looks back over what a user did lately, and keeps what belongs together. */
#include "coreengine/app/app.h"
#include "coreengine/cli/outlet_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdio.h>
#include <string.h>

/* --- what it is for --- */

static int day_of(struct rv_cli *cli, int64_t *out, rv_err **err)
{
    const char *given = cli_value(cli, "date");

    *out = rv_app_now_us();
    if (given && !rv_day_parse(rv_str_of(given), out))
        return cli_usage(cli, err, "--date %s: write a day such as 2026-02-24", given);
    return 0;
}

static int read_dream(struct rv_cli *cli, struct rv_app_dream *out, rv_err **err)
{
    *out = (struct rv_app_dream){.agent = cli_value(cli, "agent"),
                                 .script = cli_value(cli, "script"),
                                 .days = RV_DREAM_DAYS,
                                 .again = cli_flag(cli, "again")};
    int rc = cli_int(cli, "days", 1, RV_DREAM_MAX_DAYS, &out->days, err);
    return rc == 0 ? day_of(cli, &out->day_us, err) : rc;
}

/* --- shown --- */

static int show(const struct rv_app_dream *dream, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = rv_app_dream_write_pipeline(dream->agent ? dream->agent : RV_DREAM_AGENT, &text, err);

    return cli_print(rc, &text, err);
}

/* --- queued --- */

static int queue(struct rv_cli *cli, const struct rv_app_dream *dream, rv_err **err)
{
    struct rv_dream_queued done;
    int rc = rv_app_store_open(&cli->app, RV_APP_STORE_MAKE, &cli->store, err);

    if (rc == 0)
        rc = rv_app_dream_enqueue(cli->store, &cli->app.scope, dream, rv_app_now_us(), &done, err);
    if (rc == 0)
        cli_say("%lld queued, %lld in the queue already\n", (long long)done.n_new, (long long)done.n_old);
    return rc;
}

/* --- done here --- */

static int64_t count_of(json_object *from, const char *key)
{
    int64_t n = 0;

    return from && rv_json_get_int(from, key, &n) ? n : 0;
}

/* One line for people. */
static void tell(const struct rv_app_dreamt *d, json_object *result, rv_buf *out)
{
    json_object *phase1 = rv_json_get_obj(result, "phase1"), *phase2 = rv_json_get_obj(result, "phase2");
    const char *agent = "", *status = "", *end = "";

    if (!rv_json_get_text(result, "agent", &agent) || !rv_json_get_text(result, "status", &status) || !phase2 ||
        !rv_json_get_text(phase2, "status", &end))
        return;
    rv_buf_printf(out, "%s  %s", d->run, agent);
    rv_buf_printf(out, "  %lld chunk%s", (long long)count_of(phase1, "moments_built"),
                  count_of(phase1, "moments_built") == 1 ? "" : "s");
    if (strcmp(end, "skipped_no_data") == 0)
        rv_buf_puts(out, "  nothing new");
    else if (strcmp(status, "ok") == 0)
        rv_buf_printf(out, "  %lld moment%s  %lld tokens", (long long)count_of(phase2, "moments_count"),
                      count_of(phase2, "moments_count") == 1 ? "" : "s", (long long)count_of(result, "io_tokens"));
    else
        rv_buf_puts(out, "  failed");
    rv_buf_puts(out, d->is_old ? "  (dreamt before)\n" : "\n");
}

static void explain(json_object *result)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    const char *status = NULL;

    if (!rv_json_get_text(result, "status", &status) || strcmp(status, "ok") == 0) {
        rv_buf_fini(&text);
        return;
    }
    rv_buf_puts(&text, "reeve: ");
    cli_write_safe(rv_str_of(status), &text);
    rv_buf_putc(&text, '\n');
    cli_say_text(&text);
}

/* One dreamer. *failed: its run did not do what it should. */
static int dream(struct rv_cli *cli, const struct rv_app_dream *dream, bool *failed, rv_err **err)
{
    struct rv_app_dreamt done;
    json_object *result = NULL;
    const char *status = NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = rv_app_dream(&cli->app, dream, &done, err);

    if (rc < 0)
        return rc;
    rc = rv_json_parse(rv_buf_str(&done.result), NULL, &result, err);
    if (rc == 0 && cli_flag(cli, "json"))
        rv_buf_printf(&text, "%s\n", rv_buf_cstr(&done.result));
    else if (rc == 0)
        tell(&done, result, &text);
    if (rc == 0 && !cli_flag(cli, "json"))
        explain(result);
    *failed = *failed || (rc == 0 && (!rv_json_get_text(result, "status", &status) || strcmp(status, "ok") != 0));
    json_object_put(result);
    rv_buf_fini(&done.result);
    return cli_print(rc, &text, err);
}

static int list_dreamers(struct rv_cli *cli, json_object **out, rv_err **err)
{
    rv_store *store = NULL;
    int rc = rv_app_store_open(&cli->app, RV_APP_STORE_MAKE, &store, err);

    if (rc == 0)
        rc = rv_app_dream_find_agents(store, &cli->app.scope, out, err);
    rv_store_close(store);
    return rc;
}

/* The failure of one dreamer does not keep the others from dreaming; an error does. */
static int dream_all(struct rv_cli *cli, const struct rv_app_dream *what, rv_err **err)
{
    struct rv_app_dream one = *what;
    json_object *agents = NULL;
    bool failed = false;

    cli_outlet_open(cli->app.log);
    int rc = what->agent ? dream(cli, what, &failed, err) : list_dreamers(cli, &agents, err);

    for (size_t i = 0; rc == 0 && agents && i < json_object_array_length(agents); i++) {
        one.agent = json_object_get_string(json_object_array_get_idx(agents, i));
        rc = dream(cli, &one, &failed, err);
    }
    json_object_put(agents);
    return rc < 0 ? rc : failed ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

static int run(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_dream what;
    const char *user = cli->app.scope.user;
    int rc = read_dream(cli, &what, err);

    if (rc < 0)
        return rc;
    if (cli_flag(cli, "show"))
        return show(&what, err);
    if (user && !user[0])
        return cli_usage(cli, err, "--user \"\": dreaming is for one user");
    if (cli_flag(cli, "queue"))
        return queue(cli, &what, err);
    if (!user)
        return cli_usage(cli, err, "name the user with --user ID; --queue alone queues it for all users");
    return dream_all(cli, &what, err);
}

static const struct rv_cli_option options[] = {
    {"user", 'u', "ID", "user whose days are looked at (default REEVE_USER)", NULL, false},
    {"agent", 'a', "NAME", "dreamer (default: dreamer_agents of the tenant, else dreaming-agent)", NULL, false},
    {"days", 0, "N", "number of days to look back (default 1)", NULL, false},
    {"date", 0, "DATE", "the day (UTC) that the dreaming stands for (default today)", NULL, false},
    {"again", 0, NULL, "dream although the day was dreamt", NULL, false},
    {"queue", 0, NULL, "queue it for a worker; without a user for each user who did something in these days", NULL,
     false},
    {"script", 's', "FILE", "answers for the dreamer and its tools", "FILE", false},
    {"show", 0, NULL, "print the pipeline of the dreamer, and dream of nothing", NULL, false},
    {"json", 'j', NULL, "print the result of each dreamer as a line of JSON", NULL, false},
};

const struct rv_cli_verb verb_dream = {
    .name = "dream",
    .args = "",
    .summary = "summarise the recent activity of a user and link related rows",
    .text =
        "First the long conversations of the user get chunks, without a model. Then a dreamer, an agent, is told what "
        "is\n"
        "new: moments, conversations, files. It answers with moments and what they are connected with, and these are\n"
        "kept. Each dreamer of the tenant has a run of its own. A day is dreamt once: a second call says what the "
        "first\n"
        "has come to, goes on with a run whose process died, or tries again what failed.\n"
        "`reeve worker` does what --queue queued. See docs/how-to/dream.md.",
    .examples = "reeve dream --user ada --script pipelines/scripts/dreaming.yaml   # without a model\n"
                "reeve dream --user ada   # once a day: this is what the first call came to\n"
                "reeve dream --queue   # for all users who did something since yesterday\n"
                "reeve dream --show",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_work, &cli_of_places, &cli_of_commits},
    .excludes = "show queue; show json; queue json; queue script",
    .outlives_reader = true,
    .run = run,
};
