/* What keeping a run costs, beside the same run that is not kept.
 *
 *   bench_journal stages SHAPE N REPEAT STORE [SYNC]   SHAPE chain|parallel|loop; STORE none|memory|a new file
 *   bench_journal hooks SHAPE N REPEAT STORE SYNC REEVE CAPABILITIES [CAPABILITY.HOOK]
 *                                                      the same, each stage that hook (hello.greet_user)
 *   bench_journal recover RECORDS REPEAT STORE         replay a journal of so many records
 *   bench_journal asks PIPELINE SCRIPT CHOICE REPEAT STORE [SYNC]   a file whose run asks a question, which is answered
 *                                                      with that choice after the run was taken over from the store
 *
 * SYNC is full, normal, off or group: all steps of a run in one transaction, so that no step pays for a commit.
 * Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

#define MAX_REPEAT 2000
#define TEXT_MAX   ((size_t)8 << 20)

struct stages {
    const char *shape, *store, *sync, *reeve, *plugins, *hook;
    size_t n, repeat;
};

static void write_stage(const struct stages *s, size_t i, rv_buf *pipeline, rv_buf *script)
{
    bool is_loop = strcmp(s->shape, "loop") == 0;

    rv_buf_printf(pipeline, "  - name: s%zu\n    stage_order: %zu\n", i, i);
    if (s->plugins)
        rv_buf_printf(pipeline, "    post_process: %s\n", s->hook);
    if (is_loop)
        rv_buf_printf(pipeline, "    routing_rules: [{when: \"envelope.agent_hop_count < %zu\", target: s0}]\n", s->n);
    else if (strcmp(s->shape, "chain") == 0 && i + 1 < s->n)
        rv_buf_printf(pipeline, "    default_next: s%zu\n", i + 1);
    rv_buf_printf(script, "  s%zu: [{output: {final_response: Hello!}}]\n", i);
}

/* A loop is one stage that is visited n times. */
static void open_stages(const struct stages *s, struct bench *b)
{
    rv_buf pipeline = RV_BUF_INIT(TEXT_MAX), script = RV_BUF_INIT(TEXT_MAX);
    size_t n_agents = strcmp(s->shape, "loop") == 0 ? 1 : s->n;

    rv_buf_printf(&pipeline, "name: bench\nmax_agent_hops: %zu\nmax_iterations: %zu\n", s->n + 1, s->n + 1);
    if (strcmp(s->shape, "parallel") == 0)
        rv_buf_puts(&pipeline, "default_run_mode: parallel\n");
    if (s->plugins)
        rv_buf_printf(&pipeline, "capabilities: [%.*s]\n", (int)strcspn(s->hook, "."), s->hook);
    rv_buf_puts(&pipeline, "agents:\n");
    rv_buf_puts(&script, "stages:\n");
    for (size_t i = 0; i < n_agents; i++)
        write_stage(s, i, &pipeline, &script);
    bool is_group = strcmp(s->sync, "group") == 0;
    const struct bench_opts opts = {.pipeline = rv_buf_str(&pipeline),
                                    .script = s->plugins ? (rv_str){NULL, 0} : rv_buf_str(&script),
                                    .reeve = s->reeve,
                                    .plugins = s->plugins,
                                    .hook = s->hook,
                                    .store = strcmp(s->store, "none") == 0     ? NULL
                                             : strcmp(s->store, "memory") == 0 ? "memory:"
                                                                               : s->store,
                                    .sync = is_group ? RV_STORE_SYNC_OFF : bench_sync(s->sync)};
    bench_open(b, &opts);
    rv_buf_fini(&pipeline);
    rv_buf_fini(&script);
}

static int64_t one_run(const struct stages *s, struct bench *b)
{
    bool is_group = b->store && strcmp(s->sync, "group") == 0;
    rv_err *err = NULL;
    int64_t begun = bench_now_ns(), committed = 0;

    if (is_group && rv_store_begin(b->store, &err) < 0)
        bench_die("group", err);
    if (bench_run(b, NULL) != RV_RUN_COMPLETED)
        bench_die("the run did not complete", NULL);
    if (is_group) {
        committed = bench_now_ns();
        if (rv_store_commit(b->store, &err) < 0)
            bench_die("group", err);
        committed = bench_now_ns() - committed;
    }
    return bench_now_ns() - begun - committed;
}

static void bench_stages(const struct stages *s)
{
    static int64_t took[MAX_REPEAT], used[MAX_REPEAT];
    struct bench b;

    if (s->repeat > MAX_REPEAT)
        bench_die("too many repetitions", NULL);
    open_stages(s, &b);
    (void)one_run(s, &b);
    for (size_t i = 0; i < s->repeat; i++) {
        int64_t begun = bench_cpu_ns();
        took[i] = one_run(s, &b);
        used[i] = bench_cpu_ns() - begun;
    }
    int64_t n_records = b.store ? bench_records(&b) / (int64_t)(s->repeat + 1) : 0, n = (int64_t)s->n;
    int64_t median = bench_quantile(took, s->repeat, 0.5) / n, least = took[0] / n;
    printf("{\"shape\":\"%s\",\"stages\":%zu,\"store\":\"%s\",\"sync\":\"%s\",\"records\":%lld,\"median_ns\":%lld,"
           "\"min_ns\":%lld,\"cpu_ns\":%lld}\n",
           s->shape, s->n, s->store, s->sync, (long long)n_records, (long long)median, (long long)least,
           (long long)(bench_quantile(used, s->repeat, 0) / n));
    bench_close(&b);
}

/* --- recovery --- */

#define TAIL 20 /* visits after the pause, at the end of the journal */

struct recover {
    struct bench b;
    bool scripted[1];
    struct rv_catalog catalog;
    rv_run *run;
    rv_journal *journal;
    struct rv_effects out;
    int64_t call_id, now_us;
    char id[RV_ID_MAX];
};

static void step(struct recover *r, struct rv_event *ev)
{
    rv_err *err = NULL;

    ev->now_us = ++r->now_us;
    rv_effects_clear(&r->out);
    if (rv_run_step(r->run, ev, &r->out, &err) < 0 || rv_journal_step(r->journal, ev, &r->out, r->run, &err) < 0)
        bench_die("step", err);
    for (size_t i = 0; i < r->out.n; i++)
        if (r->out.items[i].kind == RV_EFFECT_CALL_HOOK)
            r->call_id = r->out.items[i].call_id;
}

static void begin_run(struct recover *r)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = bench_envelope();
    struct rv_journal_start start = {.bundle = r->b.bundle,
                                     .pipeline = r->b.pipeline,
                                     .begin = {.mode = RV_UNSET, .scripted = r->scripted},
                                     .env = env,
                                     .owner = "bench/1"};
    rv_err *err = NULL;

    r->now_us = start.now_us = rv_engine_now_us(r->b.engine);
    snprintf(r->id, sizeof r->id, "%s", rv_envelope_fields(env)->envelope_id);
    if (rv_journal_create(r->b.store, &start, &r->journal, &err) < 0)
        bench_die("journal", err);
    rv_journal_hold(r->journal, true);
    opts.scripted_stages = r->scripted;
    if (rv_run_new(r->b.pipeline, &r->catalog, &opts, env, &r->run, &err) < 0)
        bench_die("run", err);
}

/* A stage that is visited until the journal is nearly as long as it is to be, asks a person, is answered, and goes on
 * for a while: the process dies then. */
static void write_journal(struct recover *r, int64_t n_records)
{
    struct rv_event start = {.kind = RV_EVENT_START},
                    answer = {.kind = RV_EVENT_ANSWER, .response = {.text = RV_STR_LIT("go on")}};
    struct rv_event done = {.kind = RV_EVENT_HOOK_DONE,
                            .reply = RV_STR_LIT("{\"output\":{\"text\":\"an answer of ordinary length\"}}")};
    struct rv_event ask = {
        .kind = RV_EVENT_HOOK_DONE,
        .reply = RV_STR_LIT("{\"output\":{},\"raise\":{\"kind\":\"clarification\",\"question\":\"go on?\"}}")};
    int64_t tail = n_records > 4 * TAIL ? TAIL : 1;

    begin_run(r);
    step(r, &start);
    while (rv_journal_seq(r->journal) < n_records - 2 * tail - 2) {
        done.call_id = r->call_id;
        step(r, &done);
    }
    ask.call_id = r->call_id;
    step(r, &ask);
    step(r, &answer);
    for (int64_t i = 0; i < tail; i++) {
        done.call_id = r->call_id;
        step(r, &done);
    }
}

static int64_t replay(struct recover *r, bool from_snapshot, size_t repeat, int64_t *n_events)
{
    static int64_t took[MAX_REPEAT];
    const struct rv_store_scope all = {NULL, NULL};
    const struct rv_replay_opts opts = {
        .pipeline = r->b.pipeline, .catalog = &r->catalog, .from_snapshot = from_snapshot};
    rv_err *err = NULL;

    for (size_t i = 0; i < repeat; i++) {
        struct rv_replayed replayed;
        int64_t begun = bench_cpu_ns();
        if (rv_journal_replay(r->b.store, &all, r->id, &opts, &replayed, &err) < 0)
            bench_die("replay", err);
        took[i] = bench_cpu_ns() - begun;
        *n_events = replayed.n_events;
        rv_replayed_fini(&replayed);
    }
    return bench_quantile(took, repeat, 0);
}

static void bench_recover(int64_t n_records, size_t repeat, const char *store)
{
    const struct bench_opts opts = {
        .pipeline = RV_STR_LIT("name: bench\nmax_agent_hops: 1000000000\nmax_iterations: 1000000000\nagents:\n"
                               "  - {name: s0, routing_rules: [{when: \"true\", target: s0}]}\n"),
        .store = store,
        .sync = RV_STORE_SYNC_OFF};
    struct recover r = {.scripted = {true}, .catalog = rv_catalog_empty};
    struct rv_store_stats stats = {0};
    int64_t n_events = 0;
    rv_err *err = NULL;

    bench_open(&r.b, &opts);
    write_journal(&r, n_records);
    int64_t whole = replay(&r, false, repeat, &n_events), near_end = replay(&r, true, repeat, &n_events);
    int64_t n = rv_journal_seq(r.journal);
    rv_journal_free(r.journal);
    rv_run_free(r.run);
    rv_effects_fini(&r.out);
    if (rv_store_read_stats(r.b.store, &stats, &err) < 0)
        bench_die("stats", err);
    printf("{\"records\":%lld,\"events\":%lld,\"snapshots\":%lld,\"bytes\":%lld,\"replay_us\":%lld,"
           "\"ns_per_record\":%lld,\"from_snapshot_us\":%lld}\n",
           (long long)n, (long long)n_events, (long long)stats.snapshots, (long long)stats.bytes,
           (long long)(whole / 1000), (long long)(whole / n), (long long)(near_end / 1000));
    bench_close(&r.b);
}

/* --- a question --- */

struct asks {
    const char *pipeline, *script, *choice, *store, *sync;
    size_t repeat;
};

static void read_text(const char *path, rv_buf *text)
{
    rv_err *err = NULL;

    if (rv_file_read(path, text, &err) < 0)
        bench_die("file", err);
}

static void one_question(struct bench *b, const struct rv_response *answer)
{
    char id[RV_ID_MAX];

    if (bench_run(b, id) != RV_RUN_INTERRUPTED)
        bench_die("the run asks nothing", NULL);
    if (bench_resume(b, id, answer, NULL) != RV_RUN_COMPLETED)
        bench_die("the run that was answered did not complete", NULL);
}

static void bench_asks(const struct asks *a)
{
    static int64_t used[MAX_REPEAT];
    rv_buf pipeline = RV_BUF_INIT(TEXT_MAX), script = RV_BUF_INIT(TEXT_MAX);
    const struct rv_response answer = {.choice = rv_str_of(a->choice)};
    struct bench b;

    if (a->repeat > MAX_REPEAT)
        bench_die("too many repetitions", NULL);
    read_text(a->pipeline, &pipeline);
    read_text(a->script, &script);
    const struct bench_opts opts = {.pipeline = rv_buf_str(&pipeline),
                                    .script = rv_buf_str(&script),
                                    .store = strcmp(a->store, "memory") == 0 ? "memory:" : a->store,
                                    .sync = bench_sync(a->sync)};
    bench_open(&b, &opts);
    one_question(&b, &answer);
    for (size_t i = 0; i < a->repeat; i++) {
        int64_t begun = bench_cpu_ns();
        one_question(&b, &answer);
        used[i] = bench_cpu_ns() - begun;
    }
    int64_t least = bench_quantile(used, a->repeat, 0), median = bench_quantile(used, a->repeat, 0.5);
    printf("{\"store\":\"%s\",\"sync\":\"%s\",\"runs\":%zu,\"cpu_ns\":%lld,\"median_ns\":%lld}\n", a->store, a->sync,
           a->repeat, (long long)least, (long long)median);
    bench_close(&b);
    rv_buf_fini(&pipeline);
    rv_buf_fini(&script);
}

int main(int argc, char **argv)
{
    if (argc >= 6 && (strcmp(argv[1], "stages") == 0 || (strcmp(argv[1], "hooks") == 0 && argc >= 9))) {
        bool is_hooks = argv[1][0] == 'h';
        const struct stages s = {.shape = argv[2],
                                 .n = bench_number(argv[3], 1),
                                 .repeat = bench_number(argv[4], 1),
                                 .store = argv[5],
                                 .sync = argc > 6 ? argv[6] : "off",
                                 .reeve = is_hooks ? argv[7] : NULL,
                                 .plugins = is_hooks ? argv[8] : NULL,
                                 .hook = argc > 9 ? argv[9] : "hello.greet_user"};
        bench_stages(&s);
    } else if (argc == 5 && strcmp(argv[1], "recover") == 0) {
        bench_recover((int64_t)bench_number(argv[2], 10), bench_number(argv[3], 1), argv[4]);
    } else if (argc >= 7 && strcmp(argv[1], "asks") == 0) {
        const struct asks a = {.pipeline = argv[2],
                               .script = argv[3],
                               .choice = argv[4],
                               .repeat = bench_number(argv[5], 1),
                               .store = argv[6],
                               .sync = argc > 7 ? argv[7] : "off"};
        bench_asks(&a);
    } else {
        fprintf(stderr, "usage: bench_journal stages SHAPE N REPEAT STORE [SYNC]\n"
                        "       bench_journal hooks SHAPE N REPEAT STORE SYNC REEVE CAPABILITIES [CAPABILITY.HOOK]\n"
                        "       bench_journal recover RECORDS REPEAT STORE\n"
                        "       bench_journal asks PIPELINE SCRIPT CHOICE REPEAT STORE [SYNC]\n");
        return 2;
    }
    return 0;
}
