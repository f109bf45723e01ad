/* A chat as the command line wants it. */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/sources.h"

struct rv_store_scope rv_cli_chat_scope(const struct rv_cli_chat *c)
{
    struct rv_store_scope scope = rv_cli_scope(c->args);

    if (!scope.user)
        scope.user = "";
    return scope;
}

int rv_cli_chat_enter(struct rv_cli_chat *c, const char *session, const char *agent, rv_err **err)
{
    const struct rv_store_scope own = rv_cli_chat_scope(c);
    struct rv_agents_found found;
    int rc = rv_app_chat_enter(&c->in, session, agent, err);

    if (rc == 0 && rv_agents_find(c->in.agents, &own, rv_chat_agent(c->in.chat), &found, NULL) == 0)
        rv_cli_warn_hidden(c->in.agents, rv_chat_agent(c->in.chat), &found);
    return rc;
}

/* What the command line says of the chat. */
static void read_options(struct rv_cli_chat *c)
{
    const char *client = rv_cli_value(c->args, "client-id");
    struct rv_chat_opts *opts = &c->in.opts;

    *opts = (struct rv_chat_opts){.model = rv_cli_value(c->args, "model"),
                                  .child_text = rv_cli_value(c->args, "child-text"),
                                  .sections = c->sections,
                                  .zone_minutes = rv_cli_zone_minutes(),
                                  .session_name = rv_cli_value(c->args, "session-name"),
                                  .session_type = rv_cli_value(c->args, "session-type"),
                                  .context = {.is_eval = rv_cli_flag(c->args, "eval"),
                                              .client_id = client && client[0] ? client : NULL,
                                              .user_name = rv_cli_value(c->args, "user-name"),
                                              .user_email = rv_cli_value(c->args, "user-email")}};
    while (opts->n_sections < RV_COUNT(c->sections) &&
           (c->sections[opts->n_sections] = rv_cli_nth(c->args, "instruction", opts->n_sections)))
        opts->n_sections++;
    while (c->in.n_wanted < RV_COUNT(c->wanted) &&
           (c->wanted[c->in.n_wanted] = rv_cli_nth(c->args, "capability", c->in.n_wanted)))
        c->in.n_wanted++;
    c->in.wanted = c->wanted;
    c->in.app = &c->cli->app;
    c->in.script = rv_cli_value(c->args, "script");
    rv_cli_chat_watch(c, opts);
}

int rv_cli_chat_open(struct rv_cli_chat *c, const char *session, rv_err **err)
{
    read_options(c);
    int rc = rv_app_chat_open(&c->in, err);
    if (c->in.store_failed)
        rv_err_hint(err, "--no-store runs without a store");
    if (rc == 0)
        rc = rv_chat_signals_watch(c->in.engine, err);
    if (rc == 0)
        rc = rv_cli_chat_enter(c, session, rv_cli_value(c->args, "agent"), err);
    if (rc == 0 && rv_cli_flag(c->args, "leave"))
        rc = rv_chat_leave(c->in.chat, err);
    return rc;
}

void rv_cli_chat_close(struct rv_cli_chat *c)
{
    rv_chat_signals_unwatch();
    rv_app_chat_close(&c->in);
    rv_chat_show_free(c->show);
    rv_recorder_free(c->recorder);
}
