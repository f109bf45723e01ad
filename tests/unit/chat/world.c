#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>

#define OWNER "test/0/1/1"

static void must(int rc, rv_err *err)
{
    if (rc < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
}

static void load_script(struct world *w, const char *text)
{
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    must(rv_script_parse(rv_str_of(text), "script.yaml", findings, &w->script, &err), err);
    if (rv_findings_n_errors(findings) > 0)
        rv_kit_die("script: %s", rv_findings_at(findings, 0).text);
    rv_findings_free(findings);
}

void world_init_at(struct world *w, const char *place, rv_log *log, const char *script, const char *const *files)
{
    const char *dirs[] = {CAPABILITY_DIR, TEST_PLUGIN_DIR};
    const struct rv_plugins_opts po = {.dirs = dirs, .n_dirs = 2, .base_dir = "."};
    const struct rv_capability_config p8 = {.name = "p8"}, echo = {.name = "echo"}, mirror = {.name = "mirror"};
    const struct rv_store_opts so = {0};
    rv_err *err = NULL;

    *w = (struct world){.events = RV_BUF_INIT((size_t)64 << 20),
                        .deltas = RV_BUF_INIT((size_t)64 << 20),
                        .calls = RV_BUF_INIT((size_t)64 << 20),
                        .pieces = RV_BUF_INIT((size_t)64 << 20)};
    w->dir = rv_kit_tmpdir();
    for (; files && files[0]; files += 2) {
        char *path = rv_kit_path(w->dir, files[0]);
        rv_kit_write(path, files[1]);
        free(path);
    }
    must(rv_store_open(place, &so, &w->store, &err), err);
    must(rv_plugins_new(&po, &w->plugins, &err), err);
    must(rv_plugins_load(w->plugins, &p8, &err), err);
    must(rv_plugins_load(w->plugins, &echo, &err), err);
    must(rv_plugins_load(w->plugins, &mirror, &err), err);
    const char *folders[] = {w->dir};
    const struct rv_agents_opts ao = {
        .store = w->store, .plugins = w->plugins, .dirs = folders, .n_dirs = 1, .registers = true};
    must(rv_agents_new(&ao, &w->agents, &err), err);
    if (script)
        load_script(w, script);
    const struct rv_engine_opts eo = {.store = w->store, .owner = OWNER, .log = log};
    must(rv_engine_new(&eo, &w->engine, &err), err);
}

void world_init(struct world *w, const char *script, const char *const *files)
{
    world_init_at(w, "memory:", NULL, script, files);
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct world *w = self;
    (void)e;
    rv_buf_add_str(&w->events, line);
    rv_buf_putc(&w->events, '\n');
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct world *w = self;

    if (d->kind == RV_LLM_DELTA_TEXT)
        rv_buf_printf(&w->deltas, "%s%.*s|", from->origin ? from->origin->agent : "", RV_STR_ARG(d->text));
    else if (d->kind == RV_LLM_DELTA_TOOL_START)
        rv_buf_printf(&w->calls, "%.*s ", RV_STR_ARG(d->name));
    return true;
}

static void on_piece(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct world *w = self;

    (void)from;
    if (d->kind == RV_LLM_DELTA_TEXT || d->kind == RV_LLM_DELTA_TOOL_ARGUMENTS)
        rv_buf_printf(&w->pieces, "%.*s|", RV_STR_ARG(d->text));
    else if (d->kind == RV_LLM_DELTA_TOOL_START)
        rv_buf_printf(&w->pieces, "%.*s ", RV_STR_ARG(d->name));
}

void world_chat(struct world *w, const char *agent, const char *session, const char *user)
{
    static const char *const caps[] = {"p8", "echo", "mirror"};
    rv_err *err = NULL;

    rv_chat_free(w->chat);
    w->chat = NULL;
    w->opts = (struct rv_chat_opts){.engine = w->engine,
                                    .store = w->store,
                                    .owner = OWNER,
                                    .plugins = w->plugins,
                                    .agents = w->agents,
                                    .script = w->script,
                                    .context = {.user_id = user, .session_id = session},
                                    .agent = agent,
                                    .capabilities = caps,
                                    .n_capabilities = RV_COUNT(caps),
                                    .on_event = on_event,
                                    .on_delta = on_delta,
                                    .on_piece = on_piece,
                                    .self = w};
    must(rv_chat_settings_read(&w->opts.settings, &err), err);
    must(rv_chat_new(&w->opts, &w->chat, &err), err);
}

void world_watch(struct world *w, const struct rv_chat_opts *watcher)
{
    struct rv_chat_opts opts = w->opts;
    rv_err *err = NULL;

    opts.on_event = watcher->on_event;
    opts.on_delta = watcher->on_delta;
    opts.on_piece = watcher->on_piece;
    opts.on_effect = watcher->on_effect;
    opts.self = watcher->self;
    rv_chat_free(w->chat);
    w->chat = NULL;
    must(rv_chat_new(&opts, &w->chat, &err), err);
}

struct rv_chat_turn world_say(struct world *w, const char *message)
{
    struct rv_chat_turn turn;
    rv_err *err = NULL;

    rv_buf_clear(&w->events);
    rv_buf_clear(&w->deltas);
    rv_buf_clear(&w->calls);
    rv_buf_clear(&w->pieces);
    must(rv_chat_send(w->chat, rv_str_of(message), NULL, &turn, &err), err);
    return turn;
}

static int add_row(void *self, const struct rv_message *m, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    rv_buf_puts(b, m->type);
    if (m->parent_call_id)
        rv_buf_printf(b, "<%s", m->parent_call_id);
    if (m->agent_name)
        rv_buf_printf(b, "[%s]", m->agent_name);
    if (m->status && strcmp(m->status, "completed") != 0)
        rv_buf_printf(b, "(%s)", m->status);
    if (m->has_content)
        rv_buf_printf(b, " %.*s", RV_STR_ARG(m->content));
    if (m->tool_calls.len > 0)
        rv_buf_printf(b, " %.*s", RV_STR_ARG(m->tool_calls));
    rv_buf_putc(b, '\n');
    return 0;
}

char *world_rows(struct world *w, bool with_children)
{
    const char *user = w->opts.context.user_id;
    const struct rv_store_scope all = {.user = user ? user : ""};
    const struct rv_message_filter filter = {.with_children = with_children};
    rv_buf b = RV_BUF_INIT((size_t)64 << 20);
    rv_err *err = NULL;

    must(rv_store_read_messages(w->store, &all, &(const struct rv_messages_of){rv_chat_session(w->chat), &filter},
                                add_row, &b, &err),
         err);
    char *text = rv_str_dup(rv_buf_str(&b));
    rv_buf_fini(&b);
    return text;
}

char *world_events(const struct world *w, const char *type)
{
    rv_buf out = RV_BUF_INIT((size_t)64 << 20), key = RV_BUF_INIT(200);
    char *all = rv_str_dup(rv_buf_str(&w->events)), *save = NULL;

    rv_buf_printf(&key, "\"type\":\"%s\"", type);
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strstr(line, rv_buf_cstr(&key)))
            rv_buf_printf(&out, "%s\n", line);
    char *text = rv_str_dup(rv_buf_str(&out));
    free(all);
    rv_buf_fini(&out);
    rv_buf_fini(&key);
    return text;
}

void world_fini(struct world *w)
{
    rv_chat_free(w->chat);
    rv_engine_free(w->engine);
    rv_agents_free(w->agents);
    rv_plugins_free(w->plugins);
    rv_script_free(w->script);
    rv_store_close(w->store);
    rv_kit_tmpdir_remove(w->dir);
    rv_buf_fini(&w->events);
    rv_buf_fini(&w->deltas);
    rv_buf_fini(&w->calls);
    rv_buf_fini(&w->pieces);
}
