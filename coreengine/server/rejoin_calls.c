/* GET /runs/{id}/stream, GET /chat/{id}: which stream a client comes back to. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/body_internal.h"
#include "coreengine/server/view_internal.h"

int64_t srv_stream_ordinal(const char *stream)
{
    const char *mark = strrchr(stream, '~');

    return mark ? strtoll(mark + 1, NULL, 10) : 1;
}

void srv_stream_id(const char *run, int64_t ordinal, char out[SRV_STREAM_ID])
{
    if (ordinal > 1)
        snprintf(out, SRV_STREAM_ID, "%s~%" PRId64, run, ordinal);
    else
        snprintf(out, SRV_STREAM_ID, "%s", run);
}

/* Of an earlier stream of the run, if the client's id is of that one. */
static int choose(struct srv_call *c, const struct srv_rejoin_ask *j, struct rv_stream_row *row, rv_err **err)
{
    char id[SRV_STREAM_ID];

    if (j->from.ordinal == 0 || j->from.ordinal >= srv_stream_ordinal(row->id))
        return 0;
    srv_stream_id(j->run, j->from.ordinal, id);
    rv_stream_row_fini(row);
    return rv_store_get_stream(c->store, &c->app.scope, id, row, err);
}

/* Takes the row. */
static int rejoin(struct srv_call *c, struct rv_stream_row *row, rv_err **err)
{
    struct srv_rejoin_ask *j = NULL;
    int rc = srv_rejoin_make(c, row, &j, err);

    if (rc == 0) {
        c->made = j;
        c->free_made = free;
        rc = choose(c, j, row, err);
    }
    if (rc == 0) {
        snprintf(j->stream, sizeof j->stream, "%s", row->id);
        if (row->ended_us == 0)
            srv_run_hurry(c, row->run);
        else if (j->from.blocks == SIZE_MAX && j->from.line >= row->n_lines)
            c->status = 204;
    }
    rv_stream_row_fini(row);
    return rc;
}

/* Of a run without a chat: there are no blocks of a protocol. */
static bool is_of_run(const struct rv_stream_row *row)
{
    char id[RV_APP_STREAM_ID];

    rv_app_stream_of_run(row->run, id);
    return strcmp(id, row->id) == 0;
}

int srv_run_stream(struct srv_call *c, rv_err **err)
{
    struct rv_stream_row row = {0};
    int rc = rv_store_find_last_stream(c->store, &c->app.scope, c->args[0], &row, err);

    if (rc == 0 && is_of_run(&row)) {
        rv_stream_row_fini(&row);
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the run is not a turn of a chat");
        rv_err_set_hint(err, "GET /runs/{id}/events?deltas=1 has its events and deltas");
        return rc;
    }
    if (rc < 0)
        return rc;
    rc = srv_turn_is_unbegun(c, &row, err);
    if (rc == 0)
        return rejoin(c, &row, err);
    rv_stream_row_fini(&row);
    if (rc < 0)
        return rc;
    rc = RV_FAIL(err, RV_E_NOT_FOUND, "the turn was refused, or its process ended before it began");
    rv_err_set_hint(err, "send its request again");
    return rc;
}

/* The turn that is under way, or the one whose block the client has. */
int srv_chat_stream(struct srv_call *c, rv_err **err)
{
    char *run;
    bool has_id = rv_httpd_find_field(c->req, "last-event-id", &(rv_str){NULL, 0}, NULL);
    struct rv_stream_row row = {0};
    rv_err *cause = NULL;

    int rc = srv_call_dup_header(c, "x-run-id", &run, err);
    if (rc < 0)
        return rc;
    rc = run ? rv_store_find_last_stream(c->store, &c->app.scope, run, &row, &cause)
             : rv_store_find_session_stream(c->store, &c->app.scope, c->args[0], &row, &cause);
    free(run);
    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    bool is_none = rc == RV_E_NOT_FOUND || (row.ended_us > 0 && !has_id) || is_of_run(&row);
    rc = is_none ? 1 : srv_turn_is_unbegun(c, &row, err);
    if (rc == 0)
        return rejoin(c, &row, err);
    rv_stream_row_fini(&row);
    if (rc > 0)
        c->status = 204;
    return rc < 0 ? rc : 0;
}

void srv_rejoin_begin(struct srv_call *c)
{
    srv_rejoins_ask(c->server->rejoins, c, c->made);
}
