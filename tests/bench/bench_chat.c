/* What a turn costs in a session that grows: until its request is made, and in the store.
 *
 *   bench_chat TURNS STORE     STORE memory|a new file
 *
 * Each turn asks with 200 bytes, calls a tool that answers with 300, and is answered with 400; the model is a script.
 * The last turns are measured. Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "tests/bench/bench_kit.h"

#define LAST 9 /* turns that are measured */

struct watch {
    int64_t begun_ns, request_ns;
    size_t request_bytes;
    bool seen;
};

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    struct watch *w = self;

    (void)all;
    if (w->seen || e->kind != RV_EFFECT_CALL_LLM)
        return;
    w->seen = true;
    w->request_ns = bench_now_ns() - w->begun_ns;
    w->request_bytes = e->request_len;
}

static void must(const char *what, int rc, rv_err *err)
{
    if (rc < 0)
        bench_die(what, err);
}

static void fill(char *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = i % 6 == 5 ? ' ' : (char)('a' + i % 26);
    out[len] = '\0';
}

static rv_script *load_script(void)
{
    char answer[401], result[301];
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_findings *f = rv_findings_new();
    rv_script *script = NULL;
    rv_err *err = NULL;

    fill(answer, 400);
    fill(result, 300);
    rv_buf_printf(&text,
                  "repeat: true\nmodels:\n  talker:\n    - tool_calls: [{id: c, name: look, arguments: {q: cats}}]\n"
                  "    - {text: \"%s\", usage: {input_tokens: 100, output_tokens: 100}}\n"
                  "tools: {look: {risk: read_only, description: d, calls: [{result: {found: \"%s\"}}]}}\n",
                  answer, result);
    must("script", rv_script_parse(rv_buf_str(&text), "s.yaml", f, &script, &err), err);
    rv_findings_free(f);
    rv_buf_fini(&text);
    return script;
}

static char *write_agent(void)
{
    static char dir[] = "/tmp/bench-chat-XXXXXX";
    char path[64];

    if (!mkdtemp(dir) || snprintf(path, sizeof path, "%s/talker.yaml", dir) >= (int)sizeof path)
        bench_die("no folder", NULL);
    FILE *out = fopen(path, "w");
    if (!out || fputs("type: object\nname: talker\ndescription: You talk.\ntools: [look]\n", out) < 0 || fclose(out))
        bench_die("no agent", NULL);
    return dir;
}

static void remove_agent(const char *dir)
{
    char path[64];

    if (snprintf(path, sizeof path, "%s/talker.yaml", dir) < (int)sizeof path && unlink(path) == 0)
        (void)rmdir(dir);
}

static int64_t stored(rv_store *store)
{
    struct rv_store_stats s;
    rv_err *err = NULL;

    must("stats", rv_store_read_stats(store, &s, &err), err);
    return s.bytes;
}

static void talk(rv_chat *chat, rv_store *store, size_t n, struct watch *w)
{
    int64_t took[LAST] = {0}, whole[LAST] = {0}, before = 0;
    size_t from = n / 2;
    struct rusage used;
    char question[201];
    rv_err *err = NULL;

    fill(question, 200);
    for (size_t i = 0; i < n; i++) {
        struct rv_chat_turn t;
        if (i == from)
            before = stored(store);
        w->seen = false;
        w->begun_ns = bench_now_ns();
        must("turn", rv_chat_send(chat, rv_str_of(question), NULL, &t, &err), err);
        if (t.status != RV_RUN_COMPLETED || !t.was_kept || !w->seen)
            bench_die(t.error ? t.error : "a turn did not complete", NULL);
        took[i % LAST] = w->request_ns;
        whole[i % LAST] = bench_now_ns() - w->begun_ns;
    }
    getrusage(RUSAGE_SELF, &used);
    printf("{\"turns\":%zu,\"request_ns\":%lld,\"turn_ns\":%lld,\"request_bytes\":%zu,\"peak_kb\":%ld,"
           "\"stored_per_turn\":%lld}\n",
           n, (long long)bench_quantile(took, LAST, 0.5), (long long)bench_quantile(whole, LAST, 0.5), w->request_bytes,
           used.ru_maxrss, (long long)((stored(store) - before) / (int64_t)(n - from)));
}

int main(int argc, char **argv)
{
    const struct rv_store_opts so = {.sync = RV_STORE_SYNC_OFF};
    const struct rv_plugins_opts po = {.base_dir = "."};
    struct watch w = {0};
    rv_store *store = NULL;
    rv_plugins *plugins = NULL;
    rv_agents *agents = NULL;
    rv_engine *engine = NULL;
    rv_chat *chat = NULL;
    rv_err *err = NULL;

    if (argc != 3)
        bench_die("usage: bench_chat TURNS STORE", NULL);
    size_t n = bench_number(argv[1], LAST);
    char *dir = write_agent();
    const char *folders[] = {dir};
    must("store", rv_store_open(strcmp(argv[2], "memory") == 0 ? "memory:" : argv[2], &so, &store, &err), err);
    must("plugins", rv_plugins_new(&po, &plugins, &err), err);
    const struct rv_agents_opts ao = {.store = store, .plugins = plugins, .dirs = folders, .n_dirs = 1};
    must("agents", rv_agents_new(&ao, &agents, &err), err);
    const struct rv_engine_opts eo = {.store = store, .owner = "bench/0/1/1"};
    must("engine", rv_engine_new(&eo, &engine, &err), err);
    rv_script *script = load_script();
    struct rv_chat_opts o = {.engine = engine,
                             .store = store,
                             .owner = "bench/0/1/1",
                             .plugins = plugins,
                             .agents = agents,
                             .script = script,
                             .context = {.user_id = "ada"},
                             .agent = "talker",
                             .on_effect = on_effect,
                             .self = &w};
    must("settings", rv_chat_settings_read(&o.settings, &err), err);
    must("chat", rv_chat_new(&o, &chat, &err), err);
    talk(chat, store, n, &w);
    rv_chat_free(chat);
    rv_engine_free(engine);
    rv_agents_free(agents);
    rv_plugins_free(plugins);
    rv_script_free(script);
    rv_store_close(store);
    remove_agent(dir);
    return 0;
}
