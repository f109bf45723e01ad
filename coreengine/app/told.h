/* Records the replies of asked agents in a turn, and tells whether a reply of the asking agent repeats them. Pure. */
#ifndef RV_APP_TOLD_H
#define RV_APP_TOLD_H

#include "coreengine/agent/agent.h"

struct rv_chat_said;
struct rv_chat_told {
    struct rv_chat_said *items; /* owned */
    size_t n, cap;
};
void rv_chat_told_clear(struct rv_chat_told *t); /* the memory of the list is kept */
void rv_chat_told_fini(struct rv_chat_told *t);
/** A reply that was shown, without white space at its borders. When memory is short it is forgotten: then a repetition
 *  is shown. */
void rv_chat_told_add(struct rv_chat_told *t, const struct rv_origin *by, rv_str text);
/** Tells whether an agent below `who` has given any text. */
bool rv_chat_told_any(const struct rv_chat_told *t, const struct rv_origin *who);
/** The number of bytes at the beginning of text that only repeat replies of agents below `who`: whole replies, each
 *  followed by the end of a line or of the text. *undecided: what follows in text may turn out to be such a reply,
 * too. */
size_t rv_chat_told_repeats(const struct rv_chat_told *t, const struct rv_origin *who, rv_str text, bool *undecided);

#endif
