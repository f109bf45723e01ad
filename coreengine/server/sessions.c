/* Handlers of sessions: listed, read, exported, copied, renamed, deleted. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/conversation/conversation.h"
#include "coreengine/server/handlers_internal.h"

static int write_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)err;
    rv_app_session_write(row, self);
    return 0;
}

int srv_sessions_list(struct srv_call *c, rv_err **err)
{
    char *agent = NULL, *name = NULL, *search = NULL;
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = srv_call_dup_text(c, "agent", &agent, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "name", &name, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "search", &search, err);
    struct rv_session_filter filter = {.agent_name = agent, .name_contains = name, .limit = SRV_LIMIT};
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &filter.limit, err);
    if (rc == 0)
        rc = srv_call_int(c, "offset", 0, INT64_MAX / 2, &filter.offset, err);
    if (rc == 0)
        rc = search ? rv_app_grep_sessions(c->store, &c->app.scope,
                                           &(const struct rv_session_grep){.filter = &filter, .text = search},
                                           write_session, &w, err)
                    : rv_store_list_sessions(c->store, &c->app.scope, &filter, write_session, &w, err);
    rv_jw_arr_end(&w);
    free(agent);
    free(name);
    free(search);
    return rc;
}

static int write_one(struct srv_call *c, const char *id, int status, rv_err **err)
{
    struct rv_session_row row;
    int rc = rv_store_get_session(c->store, &c->app.scope, id, &row, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, status);
    rv_app_session_write(&row, &w);
    rv_session_row_fini(&row);
    return 0;
}

int srv_session_show(struct srv_call *c, rv_err **err)
{
    return write_one(c, c->args[0], 200, err);
}

int srv_session_messages(struct srv_call *c, rv_err **err)
{
    struct rv_message_filter filter = {.limit = SRV_MAX_LIMIT};
    rv_jw w = srv_call_json(c, 200);

    int rc = srv_call_bool(c, "children", &filter.with_children, err);
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, 100 * SRV_MAX_LIMIT, &filter.limit, err);
    if (rc == 0)
        rc = srv_call_int(c, "from", 1, INT64_MAX, &filter.from_seq, err);
    return rc == 0 ? rv_app_messages_write(c->store, &c->app.scope, c->args[0], &filter, &w, err) : rc;
}

int srv_session_export(struct srv_call *c, rv_err **err)
{
    const struct rv_message_filter all = {.with_children = true};
    struct rv_session_row row;
    rv_buf name = RV_BUF_INIT(1024);
    int rc = rv_store_get_session(c->store, &c->app.scope, c->args[0], &row, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_obj(&w);
    rv_jw_key(&w, "session");
    rv_app_session_write(&row, &w);
    rv_session_row_fini(&row);
    rv_jw_key(&w, "messages");
    rc = rv_app_messages_write(c->store, &c->app.scope, c->args[0], &all, &w, err);
    rv_jw_obj_end(&w);
    rv_buf_puts(&name, "attachment; filename=\"session-");
    for (const char *p = c->args[0]; *p; p++)
        rv_buf_putc(&name, rv_is_letter(*p) || rv_is_digit(*p) || *p == '-' ? *p : '_');
    rv_buf_puts(&name, ".json\"");
    srv_call_field_buf(c, "Content-Disposition", &name);
    rv_buf_fini(&name);
    return rc;
}

static int add_to_collection(struct srv_call *c, const char *collection, const char *session, rv_err **err)
{
    json_object *ids = json_object_new_array();
    int64_t n = 0;
    int rc =
        ids ? rv_json_push_take(ids, json_object_new_string(session), err) : RV_FAIL(err, RV_E_NOMEM, "copy a session");

    if (rc == 0)
        rc = srv_collection_put(c, collection, ids, &n, err);
    json_object_put(ids);
    return rc;
}

int srv_session_clone(struct srv_call *c, rv_err **err)
{
    struct rv_app_clone how = {.session = c->args[0], .now_us = srv_now_us(), .rand = rv_rand_system()};
    char id[RV_STORE_MAX_ID + 1];
    const char *name = NULL, *collection = NULL;
    int64_t n = 0;
    int rc = srv_body_text(c, "new_name", false, &name, err);

    if (rc == 0)
        rc = srv_body_text(c, "add_to_collection", false, &collection, err);
    if (rc < 0)
        return rc;
    if (json_object_object_get_ex(c->body, "max_messages", NULL) &&
        (!rv_json_get_int(c->body, "max_messages", &how.max_messages) || how.max_messages < 0))
        return RV_FAIL(err, RV_E_INVALID, "max_messages must be a whole number from 0; 0 copies all");
    rc = rv_app_clone_session(c->store, &c->app.scope, &how, id, &n, err);
    if (rc < 0)
        return rc;
    if (name) {
        const struct rv_session_change change = {.name = name, .now_us = srv_now_us()};
        rc = rv_store_change_session(c->store, &c->app.scope, id, &change, err);
    }
    if (rc == 0 && collection)
        rc = add_to_collection(c, collection, id, err);
    if (rc < 0) { /* what is refused leaves no copy */
        RV_IGNORE(rv_store_delete_session(c->store, &c->app.scope, id, srv_now_us(), NULL), "the refusal is told");
        return rc;
    }
    rv_jw w = srv_call_json(c, 201);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "original_session_id", c->args[0]);
    rv_jw_kv_text(&w, "new_session_id", id);
    rv_jw_kv_int(&w, "message_count", n);
    rv_jw_obj_end(&w);
    return 0;
}

/* What the engine keeps there is not for clients: a turn would go by it. */
static int check_metadata(struct srv_call *c, json_object *metadata, rv_err **err)
{
    if (!metadata)
        return 0;
    json_object_object_foreach (metadata, key, value) {
        (void)value;
        if (!rv_metadata_is_shown(key)) {
            snprintf(c->param, sizeof c->param, "metadata.%.100s", key);
            int rc = RV_FAIL(err, RV_E_INVALID, "metadata.%.100s belongs to the engine and cannot be changed", key);
            rv_err_set_hint(err, "choose another name: not \"routing\", and no underscore in front");
            return rc;
        }
    }
    return 0;
}

int srv_session_change(struct srv_call *c, rv_err **err)
{
    struct rv_session_change change = {.now_us = srv_now_us(), .metadata = rv_json_get_obj(c->body, "metadata")};

    int rc = srv_body_text(c, "name", false, &change.name, err);

    if (rc == 0)
        rc = srv_body_text(c, "status", false, &change.status, err);
    if (rc == 0)
        rc = check_metadata(c, change.metadata, err);
    if (rc < 0)
        return rc;
    if (!change.name && !change.metadata && !change.status)
        return RV_FAIL(err, RV_E_INVALID, "the body needs \"name\", \"status\" or \"metadata\"");
    rc = rv_store_change_session(c->store, &c->app.scope, c->args[0], &change, err);
    return rc == 0 ? write_one(c, c->args[0], 200, err) : rc;
}

int srv_session_delete(struct srv_call *c, rv_err **err)
{
    size_t n = 0;
    int rc = rv_chat_delete_session(c->store, &c->app.scope, c->args[0], srv_now_us(), &n, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_obj(&w);
    rv_jw_kv_bool(&w, "deleted", true);
    rv_jw_kv_int(&w, "runs_to_be_cancelled", (int64_t)n);
    rv_jw_obj_end(&w);
    return 0;
}

/* --- whose they are --- */

int srv_session_check_owner(struct srv_call *c, const char *session, rv_err **err)
{
    int rc = rv_app_check_session_owner(c->store, &c->app.scope, session, err);

    if (rc == RV_E_STATE)
        rv_err_set_hint(err, "a turn is of the user who asks: use a key of that user, or X-User-Id with "
                             "--trust-user-header");
    return rc;
}
