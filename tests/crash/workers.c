/* Workers of one queue that are killed all the time: workers [--server] [--every SECONDS] REEVE CAPABILITIES [RUNS]
 * [SEED]
 *
 * Runs of two tenants are submitted, each with effects of every class; four workers do them, and after some runs and
 * some of their effects, or every so many seconds, one of the workers is killed and another one started. Questions
 * whether a call happened are answered from the outside world, as a person would. In the end each run is completed, no
 * effect is lost, and none is repeated that must not be.
 *
 * The store is a file, or the database that REEVE_STORE names. With --server it is in a private server of PostgreSQL;
 * then a worker is killed or drained, or one connection of anyone is ended by the server, in turn, and the server is
 * restarted twice: told to stop, and killed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "tests/crash/workers.h"

#define PIPELINE                                                                                                       \
    "name: queued\ncapabilities: [effects]\nagents:\n"                                                                 \
    "  - {name: work, has_tools: true, tool_access: all, output_key: done}\n"

static const struct {
    const char *tool;
    bool is_once; /* it must not be repeated */
} steps[N_STEPS] = {{"append_line", true},
                    {"set_flag", false},
                    {"append_probed", true},
                    {"read_counter", false},
                    {"append_line", true}};
static const char *const tenants[N_TENANTS] = {"north", "south"};

/* err: where the call put it. */
static void must(int rc, rv_err *const *err, const char *what)
{
    if (rc < 0)
        rv_kit_die("%s: %s", what, rv_kit_err_take(*err));
}

/* --- runs --- */

static void submit_one(struct world *w, int i)
{
    const struct rv_app *app = &w->of[i % N_TENANTS].app;
    struct rv_app_run run = {.app = app, .loaded = &w->of[i % N_TENANTS].loaded, .mode = RV_UNSET};
    const struct rv_app_submit how = {.priority = i % 3};
    struct rv_app_submitted out;
    rv_buf text = RV_BUF_INIT(4096);
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    rv_buf_printf(&text, "{\"envelope_id\": \"run-%d\", \"outputs\": {\"plan\": {\"steps\": [", i);
    for (int s = 0; s < N_STEPS; s++)
        rv_buf_printf(&text, "%s{\"tool\": \"%s\", \"parameters\": {\"text\": \"r%d-%d\"}}", s ? ", " : "",
                      steps[s].tool, i, s);
    rv_buf_puts(&text, "]}}}");
    json_object *state = rv_kit_json(rv_buf_cstr(&text));
    must(rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), &env, &err), &err, "envelope");
    must(rv_app_run_open(&run, &err), &err, "store");
    must(rv_app_submit(&run, env, &how, &out, &err), &err, "submit");
    rv_app_run_fini(&run);
    rv_envelope_free(env);
    json_object_put(state);
    rv_buf_fini(&text);
}

static void submit_some(struct world *w)
{
    for (int i = 0; i < N_ROUND && w->n_submitted < w->n_runs; i++)
        submit_one(w, w->n_submitted++);
}

static void load_all(struct world *w)
{
    const struct rv_app_load_opts opts = {.keeps = true};
    rv_err *err = NULL;

    for (int t = 0; t < N_TENANTS; t++) {
        w->of[t].app = (struct rv_app){.store = w->store,
                                       .sync = w->sync,
                                       .capability_dirs = &w->capabilities,
                                       .n_capability_dirs = 1,
                                       .scope = {.tenant = tenants[t]}};
        must(rv_app_load(&w->of[t].app, w->pipeline, &opts, &w->of[t].loaded, &err), &err, "load");
        if (rv_findings_n_errors(w->of[t].loaded.findings) > 0)
            rv_kit_die("the pipeline has errors: %s", rv_findings_at(w->of[t].loaded.findings, 0).text);
    }
}

/* --- people --- */

struct asked {
    char run[RV_STORE_MAX_ID + 1], id[RV_STORE_MAX_ID + 1], tool[64], text[64];
};

static void take_question(struct asked *a, const struct rv_pending *p, bool may_have_probe, rv_err **err)
{
    json_object *body = NULL;
    const char *tool = "", *text = "";

    must(rv_json_parse(p->body, NULL, &body, err), err, "question");
    json_object *data = rv_json_get_obj(body, "data");
    if (strcmp(p->kind, "agent_review") != 0 || !rv_json_get_text(data, "tool", &tool) ||
        !rv_json_get_text(rv_json_get_obj(data, "parameters"), "text", &text))
        rv_kit_die("a question of another kind: %.*s", RV_STR_ARG(p->body));
    if (strcmp(tool, "append_line") != 0 && !(may_have_probe && strcmp(tool, "append_probed") == 0))
        rv_kit_die("a person was asked about %s", tool);
    snprintf(a->run, sizeof a->run, "%s", p->run);
    snprintf(a->id, sizeof a->id, "%s", p->id);
    snprintf(a->tool, sizeof a->tool, "%s", tool);
    snprintf(a->text, sizeof a->text, "%s", text);
    json_object_put(body);
}

static int count_of(const char *effects, const char *tool, const char *text)
{
    char what[96];
    int n = 0;

    snprintf(what, sizeof what, "\t%s\n", text);
    for (const char *at = effects; (at = strstr(at, what)); at++) {
        const char *line = at;
        while (line > effects && line[-1] != '\n')
            line--;
        n += strncmp(line, tool, strlen(tool)) == 0 && line[strlen(tool)] == '\t';
    }
    return n;
}

#define MAX_ASKED 256
struct asking {
    struct asked *list;
    size_t n;
    bool may_have_probe; /* a worker that lost its run to another one while no server was there may still make the call:
                            what a probe says then is not final */
};

static int take_each(void *self, const struct rv_pending *p, rv_err **err)
{
    struct asking *a = self;

    if (a->n < MAX_ASKED)
        take_question(&a->list[a->n++], p, a->may_have_probe, err);
    return 0;
}

static void answer_all(struct world *w)
{
    struct asking all = {.list = calloc(MAX_ASKED, sizeof *all.list), .may_have_probe = w->server != NULL};

    for (int t = 0; t < N_TENANTS; t++) {
        const struct rv_store_scope scope = {tenants[t], NULL};
        rv_err *err = NULL;
        all.n = 0;
        must(rv_store_list_pending(w->handle, &scope, NULL, take_each, &all, &err), &err, "pending");
        char *effects = all.n > 0 ? rv_kit_read(w->effects) : NULL;
        for (const struct asked *a = all.list; a < all.list + all.n; a++) {
            bool happened = count_of(effects, a->tool, a->text) > 0, is_new = false;
            struct rv_response r = {.interrupt_id = rv_str_of(a->id),
                                    .decision = happened ? RV_STR_LIT("happened") : RV_STR_LIT("not_happened")};
            char did[128];
            snprintf(did, sizeof did, "{\"did\": \"%s\"}", a->text);
            r.data = happened ? rv_kit_json(did) : NULL;
            must(rv_app_enqueue(w->handle, &scope, a->run, &r, &is_new, &err), &err, "answer");
            json_object_put(r.data);
            w->n_answers += is_new;
        }
        free(effects);
    }
    free(all.list);
}

/* --- progress --- */

static int count_row(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)row;
    (void)err;
    (*(int *)self)++;
    return 0;
}

/* Of all tenants, with one of these statuses. */
static int count_runs(struct world *w, unsigned statuses)
{
    const struct rv_run_filter filter = {.statuses = statuses};
    int n = 0;

    for (int t = 0; t < N_TENANTS; t++) {
        const struct rv_store_scope scope = {tenants[t], NULL};
        rv_err *err = NULL;
        must(rv_store_list_runs(w->handle, &scope, &filter, count_row, &n, &err), &err, "list");
    }
    return n;
}

static bool are_over(struct world *w)
{
    return count_runs(w, 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING | 1u << RV_RUN_INTERRUPTED) == 0;
}

/* The file only grows. */
static long count_effects(struct world *w)
{
    char part[65536];
    ssize_t n = 0;
    int fd = open(w->effects, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && (n = pread(fd, part, sizeof part, w->seen)) > 0) {
        w->seen += n;
        for (ssize_t i = 0; i < n; i++)
            w->n_effects += part[i] == '\n';
    }
    if (fd >= 0)
        close(fd);
    return w->n_effects;
}

static int64_t now_s(void)
{
    return rv_app_now_us() / 1000000;
}

/* Some runs, and until some of their effects are there. */
static void work_by_effects(struct world *w)
{
    long n_wanted = count_effects(w) + 1 + (long)rv_rand_below(w->rand, MAX_LINES);

    submit_some(w);
    while (count_effects(w) < n_wanted && !are_over(w)) {
        wait_for_change(w);
        answer_all(w);
    }
}

/* As many runs as go into that time. */
static void work_by_time(struct world *w)
{
    for (int64_t until_s = now_s() + w->every_s; now_s() < until_s; answer_all(w)) {
        if (w->n_submitted < w->n_runs)
            submit_some(w);
        else
            wait_for_change(w);
    }
}

/* Until all are there, and by time until all are over; the end comes without trouble. */
static void work(struct world *w)
{
    for (int i = 0; i < N_WORKERS; i++)
        start_worker(w, i);
    while (w->n_submitted < w->n_runs || (w->every_s > 0 && !are_over(w))) {
        if (w->every_s > 0)
            work_by_time(w);
        else
            work_by_effects(w);
        make_trouble(w);
    }
    while (!are_over(w)) {
        wait_for_change(w);
        answer_all(w);
    }
    drain_all(w);
}

/* --- the verdict --- */

/* counts[run * N_STEPS + step] */
static int *count_all(const struct world *w)
{
    int *counts = calloc((size_t)w->n_runs * N_STEPS, sizeof *counts);
    char *effects = rv_kit_read(w->effects), *save = NULL;

    for (char *line = strtok_r(effects, "\n", &save); line && counts; line = strtok_r(NULL, "\n", &save)) {
        char *what = strrchr(line, '\t'), *end = what;
        long run = what && what[1] == 'r' ? strtol(what + 2, &end, 10) : -1;
        long step = run >= 0 && *end == '-' ? strtol(end + 1, &end, 10) : -1;
        if (run < 0 || run >= w->n_runs || step < 0 || step >= N_STEPS || *end ||
            strncmp(line, steps[step].tool, strlen(steps[step].tool)) != 0)
            rv_kit_die("an effect that was not asked for: %s", line);
        counts[run * N_STEPS + step]++;
    }
    free(effects);
    return counts;
}

/* No task failed: it would have been kept back for half a minute. Those of a worker that was gone are recovered. */
static long judge_tasks(struct world *w)
{
    char *said = rv_kit_postgres_sql(w->server, "SELECT coalesce(string_agg(error, '; '), '') FROM tasks"
                                                " WHERE retry_count > 0 AND error NOT LIKE 'recovered: %'");
    long n_bad = said[0] != 0;

    if (n_bad)
        printf("FAIL a task failed: %s\n", said);
    free(said);
    return n_bad;
}

static long judge(struct world *w)
{
    long n_bad = w->n_runs - count_runs(w, 1u << RV_RUN_COMPLETED);
    int *counts = count_all(w);
    rv_err *err = NULL;

    if (n_bad != 0)
        printf("FAIL %ld runs are not completed\n", n_bad);
    for (int i = 0; i < w->n_runs * N_STEPS; i++) {
        if (counts[i] == 1 || (counts[i] > 1 && !steps[i % N_STEPS].is_once))
            continue;
        printf("FAIL %s of run %d happened %d times\n", steps[i % N_STEPS].tool, i / N_STEPS, counts[i]);
        n_bad++;
    }
    free(counts);
    if (w->server)
        n_bad += judge_tasks(w);
    must(rv_store_check(w->handle, &err), &err, "the store");
    return n_bad;
}

static void set_up(struct world *w, struct rv_kit_postgres *server)
{
    const char *given = getenv("REEVE_STORE"); /* tests/kit/with_postgres names one */
    rv_err *err = NULL;

    w->dir = rv_kit_tmpdir();
    w->sync = w->server ? "full" : "off"; /* of what a server has not been told to keep it loses the last moment */
    if (w->server)
        rv_kit_postgres_start(server);
    if (w->server || (given && strncmp(given, "postgres", 8) == 0))
        w->store = rv_str_dup(rv_str_of(w->server ? server->url : given));
    else
        w->store = rv_kit_path(w->dir, "runs.db");
    w->effects = rv_kit_path(w->dir, "effects");
    w->pipeline = rv_kit_path(w->dir, "queued.yaml");
    rv_kit_write(w->pipeline, PIPELINE);
    setenv("REEVE_CRASH_EFFECTS", w->effects, 1);
    w->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    load_all(w);
    const struct rv_store_opts opts = {.sync = w->server ? RV_STORE_SYNC_FULL : RV_STORE_SYNC_OFF};
    must(rv_store_open(w->store, &opts, &w->handle, &err), &err, "store");
    if (inotify_add_watch(w->watch, w->dir, IN_MODIFY | IN_CREATE) < 0)
        rv_kit_die("inotify: no watch");
}

static void clear_away(struct world *w)
{
    for (int t = 0; t < N_TENANTS; t++)
        rv_app_loaded_fini(&w->of[t].loaded);
    rv_store_close(w->handle);
    close(w->watch);
    if (w->server)
        rv_kit_postgres_end(w->server);
    rv_kit_tmpdir_remove(w->dir);
    free(w->store);
    free(w->effects);
    free(w->pipeline);
}

int main(int argc, char **argv)
{
    struct rv_kit_postgres server = {0};
    struct world w = {.n_runs = getenv("REEVE_SOAK") ? 20000 : 40};
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--server") == 0)
            w.server = &server;
        else if (strcmp(argv[at], "--every") == 0 && at + 1 < argc)
            w.every_s = strtol(argv[++at], NULL, 10);
    }
    if (argc > at + 2)
        w.n_runs = (int)strtol(argv[at + 2], NULL, 10);
    if (argc < at + 2 || w.n_runs < 1) {
        fprintf(stderr, "usage: workers [--server] [--every SECONDS] REEVE CAPABILITIES [RUNS] [SEED]\n");
        return 2;
    }
    w.reeve = argv[at];
    w.capabilities = argv[at + 1];
    w.rand = rv_rand_seeded(&w.state, argc > at + 3 ? strtoull(argv[at + 3], NULL, 10) : 1);
    set_up(&w, &server);
    int64_t begun_s = now_s();
    work(&w);
    long took_s = (long)(now_s() - begun_s), n_bad = judge(&w);
    long n_troubles = w.n_kills + w.n_drained + w.n_ended;
    printf("%d runs in %ld s, %ld kills, %ld drained, %ld connections ended, %ld restarts of the server, %ld workers "
           "found no server, %ld answers, %ld failures\n",
           w.n_runs, took_s, w.n_kills, w.n_drained, w.n_ended, w.n_restarts, w.n_refused, w.n_answers, n_bad);
    clear_away(&w);
    return n_bad > 0 || n_troubles < (w.every_s > 0 ? 1 : w.n_runs / 8 - 2) || (w.server && w.n_restarts < 2);
}
