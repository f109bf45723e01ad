/* Shared by the files of this folder. */
#ifndef RV_APP_DREAMING_INTERNAL_H
#define RV_APP_DREAMING_INTERNAL_H

#include "coreengine/app/dreaming.h"
#include "coreengine/store/entities.h"
#include "coreengine/store/sessions.h"

/* Sessions of the user, last touched first, without those in which dreamers work. */
struct dream_sessions {
    struct dream_session {
        char id[RV_STORE_MAX_ID + 1];
        char *name; /* owned */
    } * items;
    size_t n, cap, most;
    int64_t since_us; /* 0: whenever they were touched */
};
RV_MUST_CHECK int dream_sessions_read(rv_store *store, const struct rv_store_scope *own, size_t most, int64_t since_us,
                                      struct dream_sessions *out, rv_err **err);
void dream_sessions_fini(struct dream_sessions *s);
/** A text of a row; "" for none. */
const char *dream_text(json_object *row, const char *column);
/** RV_E_INVALID: the scope names no user. */
RV_MUST_CHECK int dream_check_user(const struct rv_store_scope *scope, rv_err **err);

#endif
