/* A thousand models that stream at once into one engine: what each of their pieces costs, and each stream.
 *
 *   bench_stream PORT STREAMS PIECES EVERY_MS openai|anthropic none|memory [MAX_KB]
 *
 * PORT is that of mock_llm. Each stream is a run of one stage. With a pace the runs begin a few at a time; without one
 * (EVERY_MS 0) all at once. "memory" keeps each in a journal. Prints a line of JSON: processor time of this process for
 * each piece, all of the runs and connections in it; memory for each stream at the worst moment; the time that was
 * added until the first piece, and to each piece; pieces a second. With MAX_KB a stream may take no more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"
#include "tests/bench/bench_tally.h"

static const rv_str tick_pipeline = RV_STR_LIT("name: tick\n"
                                               "agents: [{name: wait}]\n");
static const rv_str tick_script = RV_STR_LIT("stages:\n"
                                             "  wait: [{delay_ms: 1, output: {}}]\n");

struct stream {
    struct world *world;
    size_t number;
    rv_exec *exec;
    rv_journal *journal;
};
struct world {
    struct tally *tally;
    struct bench models, ticks; /* one engine for both: a tick is how time passes while it works */
    struct stream *streams;
    size_t n_streams;
};

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct stream *s = self;

    (void)from;
    if (d->kind == RV_LLM_DELTA_TEXT)
        tally_take(s->world->tally, s->number, d->text.ptr, d->text.len);
    return true;
}

static void open_world(struct world *w, char **args)
{
    const char *port = args[1], *pieces = args[3], *every_ms = args[4], *provider = args[5], *store = args[6];
    rv_buf pipeline = RV_BUF_INIT(4096);

    rv_buf_printf(&pipeline,
                  "name: streams\n"
                  "models:\n"
                  "  default: {model: \"%s:mock\", base_url: \"http://127.0.0.1:%s/%s/%s%s\", api_key: none}\n"
                  "prompts:\n"
                  "  ask: \"Answer {{raw_input}} in a few words.\"\n"
                  "agents:\n"
                  "  - {name: answer, has_llm: true, model_role: default, prompt_key: ask, output_mode: text}\n",
                  provider, port, pieces, every_ms, strcmp(provider, "openai") == 0 ? "/v1" : "");
    const struct bench_opts models = {.pipeline = rv_buf_str(&pipeline),
                                      .store = strcmp(store, "none") == 0 ? NULL : "memory:"};
    bench_open(&w->models, &models);
    const struct bench_opts ticks = {.pipeline = tick_pipeline, .script = tick_script, .engine = w->models.engine};
    bench_open(&w->ticks, &ticks);
    rv_buf_fini(&pipeline);
}

static void start(struct world *w, size_t number)
{
    struct stream *s = &w->streams[number];
    rv_envelope *env = bench_envelope();
    rv_err *err = NULL;

    tally_ask(w->tally, number);
    *s = (struct stream){.world = w, .number = number, .journal = bench_journal(&w->models, env)};
    struct rv_exec_opts x = bench_exec_opts(&w->models, s->journal);
    x.observer.on_delta = on_delta;
    x.observer.self = s;
    if (rv_engine_start(w->models.engine, &x, env, NULL, &s->exec, &err) < 0)
        bench_die("start", err);
}

static void finish(struct world *w, size_t number)
{
    struct stream *s = &w->streams[number];

    if (bench_finish(&w->models, s->exec, s->journal) != RV_RUN_COMPLETED)
        bench_die("a run of a model that streams did not complete", NULL);
}

static void run(struct world *w, bool is_paced)
{
    start(w, 0); /* what is made once */
    finish(w, 0);
    tally_begin(w->tally);
    for (size_t i = 0; i < w->n_streams; i++) {
        while (tally_wait_us(w->tally, i, is_paced) > 0)
            bench_run(&w->ticks, NULL);
        start(w, i);
    }
    for (size_t i = 0; i < w->n_streams; i++)
        finish(w, i);
}

int main(int argc, char **argv)
{
    struct world w = {.n_streams = 0};

    if (argc != 7 && argc != 8) {
        fprintf(stderr, "usage: bench_stream PORT STREAMS PIECES EVERY_MS openai|anthropic none|memory [MAX_KB]\n");
        return 2;
    }
    w.n_streams = bench_number(argv[2], 1);
    bool is_paced = bench_number(argv[4], 0) > 0;
    w.tally = tally_new(w.n_streams, bench_number(argv[3], 1));
    w.streams = calloc(w.n_streams, sizeof *w.streams);
    if (!w.streams)
        bench_die("no memory", NULL);
    open_world(&w, argv);
    run(&w, is_paced);
    bool ok = tally_print(w.tally, argv[5], strcmp(argv[6], "none") == 0 ? "run" : "run, journal");
    if (argc == 8 && tally_bytes_each(w.tally) > (int64_t)bench_number(argv[7], 1) * 1024)
        bench_die("a stream takes too much memory", NULL);
    bench_close(&w.ticks);
    bench_close(&w.models);
    free(w.streams);
    tally_free(w.tally);
    return ok ? 0 : 1;
}
