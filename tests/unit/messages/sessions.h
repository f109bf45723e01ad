/* Random sessions: of rows that may have anything in them, and of such as the engine itself would keep. */
#ifndef RV_TESTS_MESSAGES_SESSIONS_H
#define RV_TESTS_MESSAGES_SESSIONS_H

#include "coreengine/conversation/conversation.h"
#include "tests/kit/kit.h"

#define MAX_SESSION 60 /* rows */

struct session {
    struct rv_rand_state state;
    struct rv_rand rand;
    rv_arena *texts; /* what rows borrow from */
    struct rv_message rows[MAX_SESSION];
    size_t n;
    int n_huge; /* rows; a test that meets none proves nothing */
};
void session_init(struct session *s, uint64_t seed);
void session_fini(struct session *s);
unsigned session_pick(struct session *s, unsigned n);
/** Rows of all kinds, right and wrong. */
void session_make_wild(struct session *s);
/** Turns in which each call has its result: "c<k>" in the arguments, "r<k>" in the result. at_once: several calls may
 *  stand before their results. */
void session_make_sound(struct session *s, bool at_once);
/** Options of all kinds. */
struct rv_history_opts session_options(struct session *s);

#endif
