/* Moments that the store itself makes: chunks of sessions (coreengine/conversation/moments.h). A chunk follows from the
 * messages alone, so it is made in the transaction that writes them: a crash leaves both or neither, and none is made
 * twice. */
#ifndef RV_STORE_MOMENTS_H
#define RV_STORE_MOMENTS_H

#include "coreengine/conversation/moments.h"
#include "coreengine/store/handle.h"

#define RV_SUMMARY_TASK                                                                                                \
    "summary" /* type of the tasks {"moment": ID, "agent": NAME} that a turn queues for its chunk                      \
               */

/** Make a chunk of the messages that no chunk of the session covers, if their tokens are at least `threshold` (0: in
 * any case); one transaction. *out: the row of the moment, the caller's; NULL: there was nothing to do. RV_E_NOT_FOUND:
 * no such session in the scope. */
RV_MUST_CHECK int rv_store_build_moment(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                        int64_t threshold, int64_t now_us, json_object **out, rv_err **err);
/** Notes of the moments of a session, as its next turn is told them. Only moments of the session's owner count, which
 * scope names (user "": none). covers_tokens: also chunks that are not injected, the newest that together have so many
 * tokens, since a history with that budget shows no older message; 0: none of them, RV_UNSET: as many as a history
 * refers to. *out is the caller's; NULL: there are none. */
RV_MUST_CHECK int rv_store_note_moments(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                        const struct rv_moment_opts *opts, int64_t covers_tokens, json_object **out,
                                        rv_err **err);

#endif
