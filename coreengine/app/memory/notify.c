/* A reminder comes due: its moment becomes one of now, and its session gets a message. */
#include "coreengine/app/memory.h"

#include "coreengine/base/base.h"
#include "coreengine/conversation/conversation.h"

#include <stdio.h>
#include <string.h>

#define MAX_TEXT ((size_t)64 << 10) /* bytes of a notice's description: a person reads it; more is an error */

struct telling {
    rv_store *store;
    const struct rv_app_notice *notice;
    struct rv_store_scope owner;
    json_object *reminder; /* owned; NULL: there is none of that title */
    char *moment, *session;
};

static int see(void *self, json_object *row, rv_err **err)
{
    struct telling *t = self;

    (void)err;
    if (strcmp(rv_json_text_or(row, "user_id", ""), t->owner.user) != 0 ||
        strcmp(rv_json_text_or(row, "moment_type", ""), "reminder") != 0)
        return 0;
    t->reminder = json_object_get(row);
    return RV_STORE_ENOUGH;
}

/* The moment with what changes: of a reminder its time, of a notification everything. The caller's. */
static json_object *moment_of(const struct telling *t, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *row = json_object_new_object();
    char time[RV_TIME_MAX];

    if (!row) {
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "write a notification"), "told by NULL");
        return NULL;
    }
    rv_time_format(t->notice->now_us, time);
    rv_json_build_text(&b, row, "name", t->notice->title);
    rv_json_build_text(&b, row, "moment_type", t->reminder ? "reminder" : "notification");
    rv_json_build_text(&b, row, "starts_timestamp", time);
    if (t->reminder) {
        rv_json_build_text(&b, row, "id", rv_json_text_or(t->reminder, "id", ""));
    } else {
        rv_json_build_text(&b, row, "summary", t->notice->body);
        if (t->notice->data)
            rv_json_build(&b, row, "metadata", json_object_get(t->notice->data));
    }
    if (b.rc == 0)
        return row;
    json_object_put(row);
    return NULL;
}

static int write_moment(struct telling *t, rv_err **err)
{
    json_object *given = moment_of(t, err), *row = NULL;
    rv_buf description = RV_BUF_INIT(MAX_TEXT);
    struct rv_app_moment_session what = {.moment = given, .now_us = t->notice->now_us, .rand = t->notice->rand};

    if (!given)
        return RV_E_NOMEM;
    rv_buf_printf(&description, "%s: %.*s", t->reminder ? "Reminder" : "Notification",
                  (int)rv_utf8_first(rv_str_of(t->notice->body), 500).len, t->notice->body);
    what.description = rv_buf_cstr(&description);
    int rc = rv_buf_check(&description, "the description of a session", err);
    if (rc == 0)
        rc = rv_app_put_moment(t->store, &t->owner, &what, t->session, &row, err);
    if (rc == 0) {
        snprintf(t->moment, RV_STORE_MAX_ID + 1, "%s", rv_json_text_or(row, "id", ""));
        rc = rv_store_redate_entity(t->store, &t->owner,
                                    &(struct rv_entity_target){"moments", t->moment, t->notice->now_us}, err);
    }
    json_object_put(row);
    json_object_put(given);
    rv_buf_fini(&description);
    return rc;
}

/* Its id follows from the notice: a second attempt of the same task writes no second message. */
static int write_message(struct telling *t, rv_err **err)
{
    const char *body = t->notice->body[0] ? t->notice->body : t->notice->title;
    struct rv_message row = {.type = rv_message_type_text(RV_MESSAGE_ASSISTANT),
                             .has_content = true,
                             .content = rv_str_of(body),
                             .token_count = RV_UNSET,
                             .input_tokens = RV_UNSET,
                             .output_tokens = RV_UNSET,
                             .cost_micro_usd = RV_UNSET,
                             .latency_ms = RV_UNSET};
    char id[RV_UUID_MAX];

    rv_entity_make_id("messages", rv_str_of(t->notice->key), t->owner.user, id);
    row.id = id;
    const struct rv_turn turn = {.session = t->session, .rows = &row, .n_rows = 1};
    return rv_store_add_messages(t->store, &t->owner, &turn, t->notice->now_us, err);
}

static int tell(struct telling *t, rv_err **err)
{
    const struct rv_entity_filter filter = {.name = t->notice->title, .limit = RV_ENTITY_ALL};
    int rc =
        rv_store_find_entities(t->store, &t->owner, &(const struct rv_entities_of){"moments", &filter}, see, t, err);

    if (rc == 0)
        rc = write_moment(t, err);
    return rc == 0 ? write_message(t, err) : rc;
}

int rv_app_notify(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_notice *notice, char *moment,
                  char *session, rv_err **err)
{
    int rc;

    if (!scope->user || !scope->user[0])
        return RV_FAIL(err, RV_E_INVALID, "a notice is for one user, and none is named");
    do {
        struct telling t = {store, notice, {scope->tenant ? scope->tenant : RV_STORE_TENANT, scope->user},
                            NULL,  moment, session};
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, tell(&t, err), err);
        json_object_put(t.reminder);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}
