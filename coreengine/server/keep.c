/* The stream of a turn, made before the turn begins: with the run's id and its first line, under the name of the
 * request. A request that is repeated finds it, and no second turn begins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"
#include "coreengine/server/follow_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/view_internal.h"

/* --- the name of a request --- */

struct name {
    char text[RV_STREAM_MAX_ASK + 1]; /* "": a repetition cannot be told from another request */
    char hash[RV_HASH_MAX];           /* of the request */
    bool is_key;                      /* the client has chosen it for this request alone */
    bool is_first;                    /* what has the name already is another request */
    char left[SRV_STREAM_ID];         /* a stream that has the name, whose turn did not begin; "": none */
    char left_by[RV_OWNER_MAX];       /* its owner */
};

/* What a request says beside its body, in its path and its headers: with another session it is another request. */
static int write_target(const struct srv_turn_ask *a, rv_buf *out, rv_err **err)
{
    const char *const words[] = {a->session, a->agent, a->model, a->section};

    for (size_t i = 0; i < RV_COUNT(words); i++) {
        rv_buf_puts(out, words[i] ? words[i] : "");
        rv_buf_putc(out, '\n');
    }
    return rv_buf_check(out, "name a request", err);
}

/* Before a session is made for a client that names none. */
static int name_request(struct srv_call *c, const struct srv_turn_ask *a, struct name *out, rv_err **err)
{
    rv_buf target = RV_BUF_INIT(RV_REQUEST_MAX_BYTES);
    char *key = NULL, *count = NULL;

    int rc = write_target(a, &target, err);
    if (rc == 0)
        rc = srv_call_key(c, rv_buf_cstr(&target), &key, out->hash, err);
    rv_buf_fini(&target);
    if (rc == 0)
        rc = srv_call_dup_header(c, "x-stainless-retry-count", &count, err);
    out->text[0] = '\0';
    out->is_key = key != NULL;
    if (key)
        snprintf(out->text, sizeof out->text, "key %s", key);
    else if (a->req.run_id && strlen(a->req.run_id) <= RV_STORE_MAX_ID)
        snprintf(out->text, sizeof out->text, "run %s", a->req.run_id);
    else if (count)
        snprintf(out->text, sizeof out->text, "body %s", out->hash);
    out->is_first = !key && !a->req.run_id && count && strcmp(count, "0") == 0;
    free(key);
    free(count);
    return rc;
}

/* --- a request that came before --- */

static void free_rejoin(void *made)
{
    free(made);
}

int srv_rejoin_make(struct srv_call *c, const struct rv_stream_row *row, struct srv_rejoin_ask **out, rv_err **err)
{
    struct srv_rejoin_ask *j = calloc(1, sizeof *j);
    rv_str last;

    if (!j)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a stream");
    snprintf(j->run, sizeof j->run, "%s", row->run);
    snprintf(j->stream, sizeof j->stream, "%s", row->id);
    snprintf(j->session, sizeof j->session, "%s", row->session);
    memcpy(j->tenant, c->who.tenant, sizeof j->tenant);
    j->is_post = c->req->method == RV_METHOD_POST;
    j->has_user = c->app.scope.user != NULL;
    if (j->has_user)
        snprintf(j->user, sizeof j->user, "%s", c->app.scope.user);
    if (rv_httpd_find_field(c->req, "last-event-id", &last, NULL) && last.len > 0 && !srv_cursor_read(last, &j->from)) {
        free(j);
        return RV_FAIL(err, RV_E_INVALID, "Last-Event-ID must be the id of a block of this stream, such as 1-17");
    }
    *out = j;
    return 0;
}

/* The turn has not begun, and the process that was to begin it is gone or has given it up: it begins now, in the
 * session that it was to have: the conversation that the request brings is there. Its run is another one: that of the
 * stream may have been made, ended by another process and deleted, and rows and idempotency keys are named after it. */
static int take_up(struct srv_turn_ask *a, const struct rv_stream_row *row, struct name *name, rv_err **err)
{
    char *session = rv_str_dup(rv_str_of(row->session));

    if (!session)
        return RV_FAIL(err, RV_E_NOMEM, "begin a turn");
    free(a->session);
    a->session = session;
    a->keeps_history = false;
    snprintf(name->left, sizeof name->left, "%s", row->id);
    snprintf(name->left_by, sizeof name->left_by, "%s", row->owner);
    return 0;
}

static bool is_left(const struct srv_call *c, const char *owner)
{
    return strcmp(owner, RV_APP_STREAM_NOBODY) == 0 ||
           (strcmp(owner, c->server->owner) != 0 && rv_owner_is_dead(owner));
}

int srv_turn_is_unbegun(struct srv_call *c, const struct rv_stream_row *row, rv_err **err)
{
    struct rv_run_row run;
    rv_err *cause = NULL;

    if (row->n_lines > 1 || row->ended_us > 0 || !is_left(c, row->owner))
        return 0;
    int rc = rv_store_get_run(c->store, &c->app.scope, row->run, &run, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 1;
    }
    if (rc == 0)
        rv_run_row_fini(&run);
    return rc < 0 ? rv_err_pass(err, cause) : 0;
}

/* A run whose process died is found by workers in some seconds; its client waits, so one is told now. */
static void hurry(struct srv_call *c, const struct rv_run_row *run)
{
    bool is_under_way = run->status == RV_RUN_READY || run->status == RV_RUN_RUNNING;
    rv_err *err = NULL;

    if (is_under_way && (!run->owner || rv_owner_is_dead(run->owner)))
        RV_IGNORE(rv_app_enqueue(c->store, &c->app.scope, run->id, NULL, NULL, &err), "a worker finds it later");
    rv_err_free(err);
}

void srv_run_hurry(struct srv_call *c, const char *id)
{
    struct rv_run_row run;
    rv_err *err = NULL;

    if (rv_store_get_run(c->store, &c->app.scope, id, &run, &err) == 0) {
        hurry(c, &run);
        rv_run_row_fini(&run);
    }
    rv_err_free(err);
}

enum repeated { FOLLOWS, BEGINS, BEGINS_ANEW };

/* What was cancelled answers no repetition: the server itself may have ended it. An answer belongs to the run, so it is
 * not asked again. */
static bool is_cancelled(const struct rv_run_row *run, const struct rv_stream_row *stream)
{
    return run->status == RV_RUN_CANCELLED && srv_stream_ordinal(stream->id) == 1;
}

/* An enum repeated: it began, and the client follows it; it begins now, as it was asked; or as another request. */
static int again(struct srv_call *c, struct srv_turn_ask *a, const struct rv_stream_row *row, struct name *name,
                 rv_err **err)
{
    struct srv_rejoin_ask *j = NULL;
    struct rv_run_row run;
    rv_err *cause = NULL;

    int rc = rv_store_get_run(c->store, &c->app.scope, row->run, &run, &cause);
    if (rc == RV_E_NOT_FOUND && row->n_lines <= 1 && is_left(c, row->owner)) {
        rv_err_free(cause);
        rc = take_up(a, row, name, err);
        return rc == 0 ? BEGINS : rc;
    }
    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, cause);
    if (rc == 0) {
        bool is_anew = is_cancelled(&run, row);
        if (!is_anew)
            hurry(c, &run);
        rv_run_row_fini(&run);
        if (is_anew)
            return BEGINS_ANEW;
    }
    rv_err_free(cause); /* without a run: its process is about to begin it */
    rc = srv_rejoin_make(c, row, &j, err);
    if (rc < 0)
        return rc;
    c->free_made(c->made);
    c->made = j;
    c->free_made = free_rejoin;
    return FOLLOWS;
}

/* --- a new one --- */

static void fill_opts(const struct srv_turn_ask *a, const char *tools[RV_REQUEST_MAX_TOOLS], struct rv_protocol_opts *o)
{
    *o = a->opts;
    o->run_id = a->run;
    o->session_id = a->session;
    if (o->kind <= RV_PROTOCOL_AGUI_OLD) /* as the client calls it */
        o->session_id = rv_json_text_or(a->req.body, "threadId", o->session_id);
    o->client_run_id = a->req.run_id;
    o->parent_run_id = a->req.parent_run_id;
    o->model = a->req.model ? a->req.model : a->agent ? a->agent : RV_CHAT_DEFAULT_AGENT;
    o->created_us = srv_now_us();
    o->tells_usage = a->req.tells_usage;
    o->client_tools = tools;
    for (size_t i = 0; a->req.tools && i < json_object_array_length(a->req.tools) && i < RV_REQUEST_MAX_TOOLS; i++)
        if (rv_json_get_text(json_object_array_get_idx(a->req.tools, i), "name", &tools[o->n_client_tools]))
            o->n_client_tools++;
}

static int add_row(struct srv_call *c, struct srv_turn_ask *a, const struct name *name, rv_err **err)
{
    rv_buf id = RV_BUF_INIT(RV_STORE_MAX_ID + 1), line = RV_BUF_INIT(RV_PROTOCOL_MAX_TEXT);
    struct rv_stream_row row = {.run = a->run,
                                .tenant = c->app.scope.tenant,
                                .user = c->who.user,
                                .session = a->session,
                                .ask = name->text,
                                .hash = name->hash,
                                .replaces = name->is_first,
                                .owner = c->server->owner,
                                .created_us = srv_now_us()};

    a->open_us = row.created_us;
    rv_buf_puts(&id, a->run);
    if (a->ordinal > 1)
        rv_buf_printf(&id, "~%lld", (long long)a->ordinal);
    rv_buf_puts(&line, "open ");
    rv_buf_add_str(&line, rv_buf_str(&a->open));
    rv_buf_putc(&line, '\n');
    row.id = rv_buf_cstr(&id);
    int rc = rv_buf_check(&id, "id of a stream", err);
    if (rc == 0)
        rc = rv_buf_check(&line, "the first line of a stream", err);
    rv_store_defer_sync(c->store, true); /* the client hears of the turn when its run is in the store */
    if (rc == 0)
        rc = rv_store_begin(c->store, err);
    if (rc == 0) {
        rc = a->keeps_history ? srv_chat_keep_history(c, a, err) : 0;
        if (rc == 0 && name->left[0]) /* it stays if another process begins its turn: then it has the name */
            rc = rv_store_delete_stream(c->store, name->left, name->left_by, err);
        if (rc == 0)
            rc = rv_store_add_stream(c->store, &row, err);
        const struct rv_new_stream_part part = {row.id, row.owner, rv_buf_str(&line), 1, row.created_us};
        if (rc == 0)
            rc = rv_store_add_stream_part(c->store, &part, NULL, NULL, err);
        rc = rv_store_end(c->store, rc, err);
    }
    rv_store_defer_sync(c->store, false);
    rv_buf_fini(&id);
    rv_buf_fini(&line);
    return rc;
}

/* --- an answer: of which run --- */

struct waiting {
    const struct rv_request *req;
    char run[RV_STORE_MAX_ID + 1];
    bool is_named;
};

static int find_waiting(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    struct waiting *w = self;

    (void)err;
    for (size_t i = 0; i < w->req->n_answers; i++)
        if (!w->is_named && strcmp(w->req->answers[i].interrupt_id, row->id) == 0) {
            w->is_named = true;
            snprintf(w->run, sizeof w->run, "%s", row->run);
        }
    if (!w->run[0])
        snprintf(w->run, sizeof w->run, "%s", row->run);
    return 0;
}

static int answered_run(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    const struct rv_interrupt_filter filter = {.session = a->session, .open_only = true};
    struct waiting w = {.req = &a->req};
    struct rv_stream_row last;
    rv_err *cause = NULL;

    int rc = a->session ? rv_store_list_interrupts(c->store, &c->app.scope, &filter, find_waiting, &w, err) : 0;
    if (rc == 0 && !w.run[0]) {
        rc = RV_FAIL(err, RV_E_STATE, "the session has no turn that waits for an answer");
        rv_err_set_hint(err, "GET /interrupts lists what runs wait with");
    }
    if (rc < 0)
        return rc;
    snprintf(a->run, sizeof a->run, "%s", w.run);
    a->ordinal = 1;
    rc = rv_store_find_last_stream(c->store, &c->app.scope, a->run, &last, &cause);
    if (rc == 0) {
        const char *mark = strrchr(last.id, '~');
        a->ordinal = 1 + (mark ? strtoll(mark + 1, NULL, 10) : 1);
        rv_stream_row_fini(&last);
    } else if (rc != RV_E_NOT_FOUND) {
        return rv_err_pass(err, cause);
    }
    rv_err_free(cause);
    return 0;
}

static int make_session(struct srv_turn_ask *a, rv_err **err)
{
    char id[RV_UUID_MAX];

    if (a->session && a->session[0])
        return 0;
    rv_uuid_make(rv_rand_system(), id);
    free(a->session);
    a->session = rv_str_dup(rv_str_of(id));
    return a->session ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin a turn");
}

/* Did the request come before? 1: that is dealt with. Its name is gone when it was another request's. */
static int seek(struct srv_call *c, struct srv_turn_ask *a, struct name *name, rv_err **err)
{
    struct rv_stream_row row;
    rv_err *cause = NULL;

    name->left[0] = '\0';
    if (!name->text[0] || name->is_first)
        return 0;
    int rc = rv_store_find_stream(c->store, &c->app.scope, name->text, &row, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        return rv_err_pass(err, cause);
    bool is_same = strcmp(row.hash, name->hash) == 0;
    if (is_same)
        rc = again(c, a, &row, name, err);
    else if (name->is_key)
        rc = RV_FAIL(err, RV_E_STATE, "this Idempotency-Key was used for another request");
    else
        name->text[0] = '\0'; /* a run id that is used for several requests names none of them */
    rv_stream_row_fini(&row);
    if (is_same && rc == BEGINS_ANEW)
        name->is_first = true;
    if (is_same && (rc == BEGINS || rc == BEGINS_ANEW))
        return 0;
    return rc < 0 ? rc : is_same;
}

static int make_row(struct srv_call *c, struct srv_turn_ask *a, const struct name *name, rv_err **err)
{
    const char *tools[RV_REQUEST_MAX_TOOLS];
    struct rv_protocol_opts opts;
    int64_t before = 0;
    int rc = 0;

    if (a->req.n_answers > 0)
        rc = answered_run(c, a, err);
    if (rc == 0 && a->req.n_answers > 0)
        rc = srv_run_last_event(c, a->run, &before, err);
    if (rc < 0)
        return rc;
    fill_opts(a, tools, &opts);
    rv_buf_clear(&a->open);
    srv_view_open_write(&opts, a->ordinal, before, &a->open);
    return add_row(c, a, name, err);
}

/* An equal request, or an answer to the same question, made a row since this one looked. 1: the request came before. */
static int make_or_seek(struct srv_call *c, struct srv_turn_ask *a, struct name *name, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = make_row(c, a, name, &cause);

    if (rc != RV_E_EXISTS)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    rc = seek(c, a, name, err);
    return rc == 0 ? make_row(c, a, name, err) : rc;
}

/* --- one turn of a session at a time --- */

int srv_fail_busy(rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_STATE, "the session has a turn under way");

    rv_err_set_hint(err, "wait for its end, or cancel its run");
    return rc;
}

/* A turn that another process drives: another server, or a worker. One that a dead process left is ended by the turn
 * that comes. */
static int check_free(struct srv_call *c, const char *session, rv_err **err)
{
    int64_t patience_us = RV_OWNER_ENDS_US;
    struct rv_stream_row stream;
    struct rv_run_row run;
    rv_err *cause = NULL;
    bool is_busy = false;

    int rc = rv_store_find_session_stream(c->store, &c->app.scope, session, &stream, &cause);
    if (rc == 0) {
        rc = rv_store_get_run(c->store, &c->app.scope, stream.run, &run, &cause);
        if (rc == 0) {
            is_busy = rv_app_recovery_of(&run, srv_now_us(), &patience_us) == RV_APP_RECOVERY_OWNED;
            rv_run_row_fini(&run);
        }
        rv_stream_row_fini(&stream);
    }
    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    return is_busy ? srv_fail_busy(err) : 0;
}

int srv_chat_keep(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    bool names_session = a->session && a->session[0], has_session = a->keeps_history || names_session;
    struct name name;

    a->ordinal = 1;
    int rc = name_request(c, a, &name, err);
    if (rc == 0)
        rc = make_session(a, err);
    if (rc == 0)
        rc = seek(c, a, &name, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = srv_chat_quota(c, err);
    if (rc < 0 || c->is_refused)
        return rc;
    if (a->req.n_results > 0 && a->req.n_answers == 0)
        rc = srv_client_results(c, a, has_session, err);
    if (rc == 0 && names_session && a->req.n_answers == 0)
        rc = srv_session_check_owner(c, a->session, err);
    if (rc == 0 && names_session && a->req.n_answers == 0)
        rc = check_free(c, a->session, err);
    if (rc == 0)
        rc = make_or_seek(c, a, &name, err);
    return rc < 0 ? rc : 0;
}
