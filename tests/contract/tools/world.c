#include <stdio.h>

#include "tests/contract/tools/world.h"

#define WAIT_US ((int64_t)600 * 1000 * 1000) /* what is not over by then hangs */

static const char script_text[] = "tools:\n"
                                  "  bad: [{error: {message: 'no such thing', type: NotFoundError}}]\n"
                                  "  good: [{result: {ok: true}}]\n";

static int find_agent(void *self, const struct rv_context *who, const char *name, rv_buf *text, rv_err **err)
{
    (void)self;
    ck_assert_str_eq(who->tenant_id, "default");
    if (strcmp(name, "reader") != 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "no agent \"%s\"", name);
    rv_buf_puts(text, "name: reader\n");
    return rv_buf_check(text, "document", err);
}

/* All that a run of the engine would have; the test takes one of its sources. */
static void open_run(struct world *w)
{
    const struct rv_exec_opts opts = {.plugins = w->plugins, .script = w->script, .find_agent = find_agent};

    engine_run_tools_init(&w->tools, &opts, w->engine);
}

static void open_capabilities(struct world *w, int isolation)
{
    static const char *const dirs[] = {HOSTILE_DIR}, *const names[] = {"answers", "greedy"};
    const struct rv_plugins_opts opts = {dirs, RV_COUNT(dirs), RV_SOURCE_DIR, NULL, REEVE_PROGRAM, NULL};

    ck_assert_int_eq(rv_plugins_new(&opts, &w->plugins, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(names); i++) {
        const struct rv_capability_config which = {
            .name = names[i], .isolation = isolation, .memory_mb = 256, .src = {"p.yaml", 1, 1}};
        ck_assert_int_eq(rv_plugins_load(w->plugins, &which, NULL), 0);
    }
    open_run(w);
    w->s = &w->tools.capabilities.source;
}

static void open_here(struct world *w)
{
    open_capabilities(w, RV_ISOLATION_NONE);
}

static void open_isolated(struct world *w)
{
    open_capabilities(w, RV_ISOLATION_PROCESS);
}

static void open_script(struct world *w)
{
    rv_findings *f = rv_findings_new();

    ck_assert_int_eq(rv_script_parse(rv_str_of(script_text), "s.yaml", f, &w->script, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    rv_findings_free(f);
    open_run(w);
    w->s = &w->tools.script;
}

static void open_agents(struct world *w)
{
    open_run(w);
    w->s = &w->tools.asked.source;
}

static void open_later(struct world *w)
{
    w->s = later_init(&w->later);
}

const struct source_impl source_impls[] = {
    {"capabilities", open_here, "good", "{}", "proper_failure", "{}", "NotFoundError", "wait_for_cancel", false},
    {"isolated", open_isolated, "good", "{}", "proper_failure", "{}", "NotFoundError", "wait_for_cancel", false},
    {"script", open_script, "good", "{}", "bad", "{}", "NotFoundError", NULL, false},
    {"agents", open_agents, "ask_agent", "{\"agent_name\": \"reader\", \"input_text\": \"read\"}", "ask_agent",
     "{\"agent_name\": \"nobody\", \"input_text\": \"read\"}", "NotFoundError", NULL, true},
    {"mcp", peers_open_mcp, "srv.good", "{}", "srv.fails", "{}", "ToolError", "srv.slow", false},
    {"rest", peers_open_rest, "srv.good", "{}", "srv.fails", "{}", "ToolError", "srv.slow", false},
    {"later", open_later, "good", "{}", "fails", "{}", "NotFoundError", "slow", false},
};
const int n_source_impls = (int)RV_COUNT(source_impls);

void world_open(struct world *w, int i)
{
    const struct rv_engine_opts opts = {.workers = 4, .virtual_time = true};

    *w = (struct world){.impl = &source_impls[i]};
    ck_assert_int_eq(rv_engine_new(&opts, &w->engine, NULL), 0);
    w->impl->open(w);
}

void world_turn(struct world *w)
{
    if (w->s == &w->later.source)
        later_turn(&w->later);
    if (w->mcp)
        peers_turn(w);
    if (w->engine->pool)
        engine_pool_wait(w->engine->pool, WAIT_US / 1000);
    w->engine->turn(w->engine);
}

void world_close(struct world *w)
{
    rv_tool_source_close(w->s);
    peers_close(w);
    ck_assert(rv_engine_settle(w->engine, WAIT_US / 1000));
    rv_engine_free(w->engine);
    rv_plugins_free(w->plugins);
    rv_script_free(w->script);
}

static void on_done(struct rv_tool_call *c, struct rv_tool_reply *reply)
{
    struct seen *seen = (struct seen *)((char *)c - offsetof(struct seen, call));

    ck_assert(!c->source); /* ended before anybody hears of it */
    ck_assert(!reply->failed || (reply->error_type && *reply->error_type));
    ck_assert_int_eq(reply->text.rc, 0);
    ck_assert(rv_utf8_valid(rv_buf_str(&reply->text), NULL));
    seen->n_done++;
    seen->failed = reply->failed;
    snprintf(seen->error_type, sizeof seen->error_type, "%s", reply->error_type ? reply->error_type : "");
    snprintf(seen->text, sizeof seen->text, "%s", rv_buf_cstr(&reply->text));
}

int call_tool(struct world *w, struct seen *seen, const char *tool, rv_str args, rv_err **err)
{
    const struct rv_context context = {.tenant_id = "default", .user_id = "u"};
    char *name = rv_str_dup(rv_str_of(tool)), *bytes = malloc(args.len + 1);

    ck_assert(name && bytes);
    if (args.len)
        memcpy(bytes, args.ptr, args.len);
    *seen = (struct seen){.call = {.tool = name,
                                   .args = {bytes, args.len},
                                   .stage = "s",
                                   .agent = "s",
                                   .visit = 1,
                                   .run_id = "r",
                                   .user_id = "u",
                                   .session_id = "x",
                                   .key = "k",
                                   .context = &context,
                                   .timeout_ms = 25000,
                                   .done = on_done}};
    int rc = rv_tool_source_call(w->s, &seen->call, err);
    free(name); /* texts are the caller's again */
    free(bytes);
    return rc;
}

void must_call(struct world *w, struct seen *seen, const char *tool, const char *args)
{
    rv_err *err = NULL;
    int rc = call_tool(w, seen, tool, rv_str_of(args), &err);

    ck_assert_msg(rc == 0, "%s: %s", w->impl->name, rv_err_text(err));
}

void await(struct world *w, struct seen *seen)
{
    for (int i = 0; seen->n_done == 0; i++) {
        ck_assert_msg(i < 1000, "%s: the call does not end", w->impl->name);
        world_turn(w);
    }
}
