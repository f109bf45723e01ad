/* What a client is sent of a stream, and where it comes from: see view.c. */
#ifndef RV_SERVER_VIEW_INTERNAL_H
#define RV_SERVER_VIEW_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/server/server_internal.h"

struct srv_cursor { /* the last block that a client has */
    int64_t ordinal, line;
    size_t blocks; /* of that line; SIZE_MAX: all */
};
bool srv_cursor_read(rv_str text, struct srv_cursor *out);

struct srv_view;
/** from NULL: from the beginning. NULL: no memory. */
struct srv_view *srv_view_new(const struct srv_cursor *from);
void srv_view_free(struct srv_view *v);
/** An event of the journal, in order; one that is known changes nothing. event: the line as an object; NULL: it was not
 * read. */
RV_MUST_CHECK int srv_view_event(struct srv_view *v, int64_t seq, rv_str line, json_object *event, rv_err **err);
/** The reply that the last event was made of: pieces may be missing. */
RV_MUST_CHECK int srv_view_reply(struct srv_view *v, int64_t seq, const struct rv_protocol_reply *reply, rv_err **err);
/** The next lines, in order; those that were read are passed over. What the client is sent is appended. 1: a line needs
 * an event that is not known yet; hand the lines over again when it is. */
RV_MUST_CHECK int srv_view_lines(struct srv_view *v, const struct rv_stream_part *part, rv_buf *out, rv_err **err);
bool srv_view_is_over(const struct srv_view *v);              /* the end was read */
bool srv_view_is_whole(const struct srv_view *v);             /* one JSON object */
enum rv_run_status srv_view_status(const struct srv_view *v); /* as the end said */
int srv_view_http(const struct srv_view *v);                  /* its status over HTTP, of an answer that is whole */
#define SRV_STOPPED "unavailable" /* code of the end of a turn that the server cancelled because it ends */
/** Whether the client may repeat it, as fields of an answer that is whole. */
void srv_view_put_fields(const struct srv_view *v, struct srv_stream *st);
/** The stream breaks off, for a failure of that code: an error as its protocol has it, without an id, since the stream
 * has no such line. False: it cannot be told. Then the view is only freed. */
bool srv_view_break(struct srv_view *v, int code, rv_buf *out);
/** The first line of a stream. ordinal: of the streams of its run, from 1; before: the last event of the run that
 * happened before it. */
void srv_view_open_write(const struct rv_protocol_opts *opts, int64_t ordinal, int64_t before, rv_buf *out);

/* --- keep.c --- */
#define SRV_STREAM_ID (RV_STORE_MAX_ID + 32)
struct srv_rejoin_ask {
    char run[RV_STORE_MAX_ID + 1], stream[SRV_STREAM_ID], session[RV_STORE_MAX_ID + 1];
    char tenant[RV_IDENTITY_MAX_ID + 1], user[RV_IDENTITY_MAX_ID + 1];
    bool has_user;
    bool is_post;           /* its client does not come back by itself: it is told when the stream breaks */
    struct srv_cursor from; /* zeroed: from the beginning */
};
/** From the request of a call. RV_E_INVALID: Last-Event-ID. */
RV_MUST_CHECK int srv_rejoin_make(struct srv_call *c, const struct rv_stream_row *row, struct srv_rejoin_ask **out,
                                  rv_err **err);
/** The stream of a turn that is asked for, in the store; or, of a request that came before, c->made becomes a struct
 * srv_rejoin_ask. No quota leaves room for it: the call is refused. */
RV_MUST_CHECK int srv_chat_keep(struct srv_call *c, struct srv_turn_ask *a, rv_err **err);
/** 1: the turn of the stream has not begun, and only the same request would begin it: it was refused, or its process
 * died before. 0: it has begun, or its process is about to begin it. */
RV_MUST_CHECK int srv_turn_is_unbegun(struct srv_call *c, const struct rv_stream_row *row, rv_err **err);
/** A run whose process died is queued at once, as a client waits for it. */
void srv_run_hurry(struct srv_call *c, const char *id);

/* --- lost_end.c --- */
/** The end of a stream whose process could not write it, appended. event: the last `done` of the run. */
RV_MUST_CHECK int srv_lost_end_write(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *run,
                                     rv_str event, rv_buf *out, rv_err **err);

/* --- rejoin.c: streams of turns that clients come back to, from the store, on a loop --- */
/** On the loop. */
void srv_rejoins_ask(struct srv_rejoins *r, struct srv_call *c, const struct srv_rejoin_ask *ask);
/** A turn that is answered is not here: the run of the store gets the answer, and the client follows it. From any loop;
 * all is taken. */
void srv_rejoins_answer(struct srv_rejoins *r, struct srv_stream *st, struct srv_turn_ask *ask);
RV_MUST_CHECK int srv_rejoins_new(struct srv_server *s, struct srv_rejoins **out, rv_err **err);
void srv_rejoins_stop(struct srv_rejoins *r);
void srv_rejoins_free(struct srv_rejoins *r);

/* --- rejoin_calls.c --- */
/** A run has a stream for each of its turns, counted from 1: its id, and the count in an id. */
void srv_stream_id(const char *run, int64_t ordinal, char out[SRV_STREAM_ID]);
int64_t srv_stream_ordinal(const char *stream);
RV_MUST_CHECK int srv_run_stream(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_chat_stream(struct srv_call *c, rv_err **err);
void srv_rejoin_begin(struct srv_call *c);

#endif
