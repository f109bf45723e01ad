/* A run that belongs to a session: its declared agents see the session's messages, and their replies become messages of
 * the session. */
#include "coreengine/app/app_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "coreengine/app/chat.h"
#include "coreengine/app/past.h"

struct rv_app_conversation {
    struct rv_conversation talk;
    struct rv_session_row row;
    json_object *metadata;
    char model[RV_CONTEXT_MAX_TEXT]; /* of the pipeline; the context borrows it */
};

void rv_app_conversation_free(struct rv_app_conversation *c)
{
    if (!c)
        return;
    json_object_put(c->talk.history);
    json_object_put(c->metadata);
    rv_session_row_fini(&c->row);
    free(c);
}

const struct rv_conversation *rv_app_conversation_of(const struct rv_app_conversation *c)
{
    return c ? &c->talk : NULL;
}

/* One history is told to all of them. */
static bool all_can_look_up(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].declared.doc && !rv_agentdoc_names_tool(p->agents[i].declared.doc, RV_LOOKUP_TOOL))
            return false;
    return true;
}

/* What tools are told as the default model: that of the pipeline, else that of chats. */
static const char *model_of(struct rv_app_conversation *c, const struct rv_pipeline *p, const char *of_chats)
{
    const struct rv_model_config *m = rv_pipeline_model(p, RV_STR_LIT("default"));

    if (!m || snprintf(c->model, sizeof c->model, "%s:%s", m->provider, m->model) >= (int)sizeof c->model)
        return of_chats;
    return c->model;
}

static int fill(struct rv_app_conversation *c, const struct rv_app_run *run, const char *id, rv_err **err)
{
    const struct rv_store_scope scope = run->app->scope;
    const char *user = scope.user ? scope.user : "", *tenant = scope.tenant ? scope.tenant : RV_STORE_TENANT;
    const struct rv_store_scope own = {.tenant = tenant, .user = user};
    const struct rv_session_row fresh = {
        .id = id, .tenant = tenant, .user = user, .mode = "workflow", .created_us = rv_app_now_us()};
    struct rv_chat_settings settings;

    int rc = rv_chat_settings_read(&settings, err);
    if (rc == 0)
        rc = rv_store_ensure_session(run->store, &fresh, &c->row, err);
    if (rc == 0)
        rc = rv_json_parse(c->row.metadata, NULL, &c->metadata, err);
    if (rc < 0)
        return rc;
    c->talk = (struct rv_conversation){
        .context = {.user_id = user[0] ? user : NULL,
                    .tenant_id = tenant,
                    .session_id = id,
                    .default_model = model_of(c, run->loaded->pipeline, settings.default_model),
                    .client_id = run->app->client},
        .session_name = c->row.name,
        .session_metadata = c->metadata,
        .keeps = true,
        .upto_seq = c->row.n_messages,
        .history_opts = settings.history};
    c->talk.history_opts.names_keys = all_can_look_up(run->loaded->pipeline);
    rc = rv_conversation_check(&c->talk, err);
    return rc < 0 ? rc
                  : rv_journal_read_history(run->store, &own, &c->talk, &c->talk.history, c->talk.history_hash, err);
}

int rv_app_converse(const struct rv_app_run *run, struct rv_app_conversation **out, rv_err **err)
{
    const char *id = run->session;

    *out = NULL;
    if (!id || !id[0] || !run->store || !rv_app_has_agents(run->loaded->pipeline))
        return 0;
    struct rv_app_conversation *c = calloc(1, sizeof *c);
    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a session");
    int rc = fill(c, run, id, err);
    if (rc < 0) {
        rv_app_conversation_free(c);
        return RV_WRAP(err, rc, "go on with session \"%s\"", id);
    }
    *out = c;
    return 0;
}
