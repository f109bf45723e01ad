/* Handlers of rows: entities of any kind, queries, the queue, schedules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/knowledge/knowledge.h"
#include "coreengine/server/body_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/store/store.h"

#define MAX_QUERY 32768 /* bytes of a query's parts: it is put together from the fields of a request */

/* --- entities --- */

int srv_kinds(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    (void)err;
    rv_jw_arr(&w);
    for (size_t i = 0; i < rv_n_kinds; i++) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "name", rv_kinds[i].name);
        rv_jw_kv_text(&w, "description", rv_kinds[i].doc);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    return 0;
}

/* A path with an unknown kind is a path that does not exist. */
static int check_kind(const struct srv_call *c, rv_err **err)
{
    if (rv_kind_find(rv_str_of(c->args[0])))
        return 0;
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no kind \"%.60s\"", c->args[0]);
    rv_err_set_hint(err, "GET /entities lists the kinds");
    return rc;
}

static int write_row(void *self, json_object *row, rv_err **err)
{
    (void)err;
    rv_jw_value(self, row);
    return 0;
}

int srv_entities_list(struct srv_call *c, rv_err **err)
{
    char *name = NULL, *about = NULL, *tag = NULL;
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = check_kind(c, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "name", &name, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "about", &about, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "tag", &tag, err);
    const char *tags[] = {tag};
    struct rv_entity_filter filter = {
        .name = name, .about = about, .tags = tags, .n_tags = tag != NULL, .limit = SRV_LIMIT};
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &filter.limit, err);
    if (rc == 0)
        rc = srv_call_int(c, "offset", 0, INT64_MAX / 2, &filter.offset, err);
    if (rc == 0)
        rc = rv_store_find_entities(c->store, &c->app.scope, &(const struct rv_entities_of){c->args[0], &filter},
                                    write_row, &w, err);
    rv_jw_arr_end(&w);
    free(name);
    free(about);
    free(tag);
    return rc;
}

static int put_row(struct srv_call *c, const char *kind, json_object *row, rv_err **err)
{
    const struct rv_entities_put put = {.kind = kind, .rows = &row, .n_rows = 1, .now_us = srv_now_us()};
    json_object *rows = NULL;
    int rc = rv_store_put_entities(c->store, &c->app.scope, &put, &rows, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_value(&w, json_object_array_get_idx(rows, 0));
    json_object_put(rows);
    return 0;
}

int srv_entities_put(struct srv_call *c, rv_err **err)
{
    int rc = check_kind(c, err);

    return rc == 0 ? put_row(c, c->args[0], c->body, err) : rc;
}

int srv_row_write(struct srv_call *c, const char *kind, const char *id, rv_err **err)
{
    json_object *row = NULL;
    int rc = rv_store_get_entity(c->store, &c->app.scope, kind, id, &row, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_value(&w, row);
    json_object_put(row);
    return 0;
}

int srv_row_drop(struct srv_call *c, const char *kind, const char *id, rv_err **err)
{
    int rc = rv_store_delete_entity(c->store, &c->app.scope, &(struct rv_entity_target){kind, id, srv_now_us()}, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}

int srv_entity_show(struct srv_call *c, rv_err **err)
{
    int rc = check_kind(c, err);

    return rc < 0 ? rc : srv_row_write(c, c->args[0], c->args[1], err);
}

int srv_entity_delete(struct srv_call *c, rv_err **err)
{
    int rc = check_kind(c, err);

    return rc < 0 ? rc : srv_row_drop(c, c->args[0], c->args[1], err);
}

/* --- feedback: REMLight's members as a row --- */

/* `rating` from 1 to 5, or `score` from 0 to 1, which becomes one. */
static int add_rating(struct srv_call *c, json_object *row, rv_err **err)
{
    json_object *score = NULL, *rating = NULL;
    int64_t n = 0;

    json_object_object_get_ex(c->body, "score", &score);
    json_object_object_get_ex(c->body, "rating", &rating);
    if (score && rating)
        return RV_FAIL(err, RV_E_INVALID, "the body has \"rating\" and \"score\": send one of them");
    if (rating) {
        if (!rv_json_get_int(c->body, "rating", &n) || n < 1 || n > 5)
            return RV_FAIL(err, RV_E_INVALID, "rating must be a whole number from 1 to 5");
        return rv_json_set_int(row, "rating", n, err);
    }
    if (!score)
        return 0;
    double d = rv_json_is_number(score) ? json_object_get_double(score) : -1;
    if (!(d >= 0 && d <= 1))
        return RV_FAIL(err, RV_E_INVALID, "score must be a number from 0 to 1");
    return rv_json_set_int(row, "rating", 1 + (int64_t)(d * 4 + 0.5), err);
}

static bool has_one_of(json_object *body, const char *const *keys, size_t n)
{
    json_object *value = NULL;

    for (size_t i = 0; i < n; i++)
        if (json_object_object_get_ex(body, keys[i], &value) && value)
            return true;
    return false;
}

/* It says something about a session and a message that are there; traces are elsewhere. */
static int check_feedback(struct srv_call *c, rv_err **err)
{
    static const char *const about[] = {"session_id", "message_id", "trace_id", "span_id"};
    static const char *const says[] = {"rating", "score", "label", "comment"};
    struct rv_session_row row;
    const char *session = NULL, *message = NULL;
    json_object *about_row = NULL;

    if (!has_one_of(c->body, about, RV_COUNT(about)))
        return RV_FAIL(
            err, RV_E_INVALID,
            "the body does not say what the feedback is about: send \"session_id\", \"message_id\" or \"trace_id\"");
    if (!has_one_of(c->body, says, RV_COUNT(says)))
        return RV_FAIL(err, RV_E_INVALID,
                       "the feedback is empty: send \"rating\" (1 to 5), \"score\" (0 to 1), \"label\" or \"comment\"");
    int rc = srv_body_text(c, "session_id", false, &session, err);
    if (rc == 0 && session)
        rc = rv_store_get_session(c->store, &c->app.scope, session, &row, err);
    if (rc == 0 && session)
        rv_session_row_fini(&row);
    if (rc == 0)
        rc = srv_body_text(c, "message_id", false, &message, err);
    if (rc == 0 && message)
        rc = rv_store_get_entity(c->store, &c->app.scope, "messages", message, &about_row, err);
    json_object_put(about_row);
    return rc;
}

int srv_feedback(struct srv_call *c, rv_err **err)
{
    static const char *const columns[] = {"session_id", "message_id", "comment", "trace_id", "span_id"};
    static const char *const others[] = {"name", "label", "source", "score", "metadata"};
    int rc = check_feedback(c, err);

    if (rc < 0)
        return rc;
    json_object *row = json_object_new_object(), *more = json_object_new_object(), *value;
    rc = row && more ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep feedback");

    for (size_t i = 0; i < RV_COUNT(columns) && rc == 0; i++)
        if (json_object_object_get_ex(c->body, columns[i], &value))
            rc = rv_json_set_ref(row, columns[i], value, err);
    for (size_t i = 0; i < RV_COUNT(others) && rc == 0; i++)
        if (json_object_object_get_ex(c->body, others[i], &value))
            rc = rv_json_set_ref(more, others[i], value, err);
    if (rc == 0)
        rc = add_rating(c, row, err);
    if (rc == 0)
        rc = rv_json_set_ref(row, "metadata", more, err);
    if (rc == 0 && c->who.user[0])
        rc = rv_json_set_text(row, "user_id", c->who.user, err);
    if (rc == 0)
        rc = put_row(c, "feedback", row, err);
    json_object_put(row);
    json_object_put(more);
    return rc;
}

/* --- queries --- */

static int ask(struct srv_call *c, rv_str text, json_object **out, rv_err **err)
{
    struct rv_app_query with;
    int rc = rv_app_query_init(&c->app, &with, err);

    return rc < 0 ? rc
                  : rv_knowledge_query(c->store, &c->app.scope, &(const struct rv_knowledge_query){text, &with.opts},
                                       out, NULL, err);
}

int srv_query_raw(struct srv_call *c, rv_err **err)
{
    const char *text = NULL;
    json_object *answer = NULL;

    if (!rv_json_get_text(c->body, "query", &text))
        return RV_FAIL(err, RV_E_INVALID, "the body needs \"query\", a query of the REM dialect");
    int rc = ask(c, rv_str_of(text), &answer, err);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_value(&w, answer);
    json_object_put(answer);
    return 0;
}

static void quote(rv_buf *q, const char *text)
{
    rv_buf_puts(q, " \"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            rv_buf_putc(q, '\\');
        rv_buf_putc(q, *text);
    }
    rv_buf_putc(q, '"');
}

static void add_clause(struct srv_call *c, rv_buf *q, const char *member, const char *clause)
{
    json_object *value = NULL;
    const char *text;

    if (!json_object_object_get_ex(c->body, member, &value) || !value)
        return;
    rv_buf_printf(q, " %s", clause);
    if (rv_json_get_text(c->body, member, &text)) {
        quote(q, text);
    } else {
        rv_buf_putc(q, ' ');
        rv_json_write(value, q);
    }
}

/* The members of p8's body as a query; a mode that is wrong is found by its reader. */
static int build(struct srv_call *c, rv_buf *q, rv_err **err)
{
    const char *mode = NULL, *word = NULL;

    if (!rv_json_get_text(c->body, "mode", &mode))
        return RV_FAIL(err, RV_E_INVALID,
                       "the body needs \"mode\" (LOOKUP, SEARCH, FUZZY, TRAVERSE or SQL), or \"query\" alone");
    bool has_key = rv_json_get_text(c->body, "key", &word), has_query = rv_json_get_text(c->body, "query", &word);
    bool is_key = strcasecmp(mode, "lookup") == 0 || strcasecmp(mode, "traverse") == 0;
    if (!has_key && !has_query)
        return RV_FAIL(err, RV_E_INVALID, "the mode %.20s needs \"%s\"", mode, is_key ? "key" : "query");
    word = rv_json_text_or(c->body, has_key && (is_key || !has_query) ? "key" : "query", word);
    if (strcasecmp(mode, "sql") == 0) {
        rv_buf_printf(q, "SQL %s", word);
        return 0;
    }
    rv_buf_puts(q, mode);
    quote(q, word);
    if (strcasecmp(mode, "search") == 0) {
        add_clause(c, q, "table", "FROM");
        add_clause(c, q, "limit", "LIMIT");
        add_clause(c, q, "threshold", "MIN_SIMILARITY");
    } else if (strcasecmp(mode, "fuzzy") == 0) {
        add_clause(c, q, "threshold", "THRESHOLD");
        add_clause(c, q, "limit", "LIMIT");
    } else if (strcasecmp(mode, "traverse") == 0) {
        add_clause(c, q, "max_depth", "DEPTH");
        add_clause(c, q, "rel_type", "TYPE");
    }
    return 0;
}

int srv_query(struct srv_call *c, rv_err **err)
{
    rv_buf q = RV_BUF_INIT(2 * MAX_QUERY);
    json_object *answer = NULL;

    if (!json_object_object_get_ex(c->body, "mode", NULL) && json_object_object_get_ex(c->body, "query", NULL))
        return srv_query_raw(c, err); /* as REMLight's clients ask */
    int rc = build(c, &q, err);
    if (rc == 0)
        rc = rv_buf_check(&q, "a query", err);
    if (rc == 0)
        rc = ask(c, rv_buf_str(&q), &answer, err);
    rv_buf_fini(&q);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_value(&w, rv_json_get_arr(answer, "results"));
    json_object_put(answer);
    return 0;
}

/* --- tasks --- */

static int write_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    rv_app_task_write(row, self);
    return 0;
}

int srv_tasks_list(struct srv_call *c, rv_err **err)
{
    char *status = NULL, *type = NULL;
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = srv_call_dup_text(c, "status", &status, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "type", &type, err);
    struct rv_task_filter filter = {.limit = SRV_LIMIT, .type = type};
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &filter.limit, err);
    for (int i = 0; status && i < RV_N_TASK; i++)
        if (strcmp(status, rv_task_status_text((enum rv_task_status)i)) == 0)
            filter.statuses = 1u << i;
    if (rc == 0 && status && !filter.statuses)
        rc = RV_FAIL(err, RV_E_INVALID, "status \"%.40s\" is not a status of tasks", status);
    if (rc == 0)
        rc = rv_store_list_tasks(c->store, &c->app.scope, &filter, write_task, &w, err);
    rv_jw_arr_end(&w);
    free(status);
    free(type);
    return rc;
}

int srv_task_show(struct srv_call *c, rv_err **err)
{
    struct rv_task_row row;
    int rc = rv_store_get_task(c->store, &c->app.scope, c->args[0], &row, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rc = rv_app_task_write_whole(c->store, &c->app.scope, &row, &w, err);
    rv_task_row_fini(&row);
    return rc;
}

int srv_task_cancel(struct srv_call *c, rv_err **err)
{
    int rc = rv_store_cancel_task(c->store, &c->app.scope, c->args[0], srv_now_us(), NULL, err);

    return rc == 0 ? srv_task_show(c, err) : rc;
}

int srv_task_retry(struct srv_call *c, rv_err **err)
{
    int rc = rv_store_retry_task(c->store, &c->app.scope, c->args[0], srv_now_us(), err);

    return rc == 0 ? srv_task_show(c, err) : rc;
}

/* --- schedules --- */

static int write_schedule(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    const struct rv_app_schedule_view view = {.row = row};

    return rv_app_schedule_write(&view, self, err);
}

int srv_schedules_list(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = rv_store_list_schedules(c->store, &c->app.scope, write_schedule, &w, err);
    rv_jw_arr_end(&w);
    return rc;
}
