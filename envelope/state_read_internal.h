/* The readers that state_load.c and state_parts.c share. Each returns 0 or fails with a message that names the place.
 */
#ifndef RV_ENVELOPE_STATE_READ_INTERNAL_H
#define RV_ENVELOPE_STATE_READ_INTERNAL_H

#include "envelope/envelope_internal.h"

/* Where in the state a value stands: key, key.member, key[item] or key[item].member. */
struct rv_state_place {
    const char *key;
    long item; /* -1: none */
    const char *member;
};
struct rv_state_reader {
    rv_envelope *env; /* what is read into; NULL for a single interrupt */
    int64_t now_us;   /* for times that are left out */
    rv_err **err;
};

/* state_read.c */
RV_MUST_CHECK int rv_read_bad(struct rv_state_reader *rd, struct rv_state_place p, const char *want, json_object *got);
RV_MUST_CHECK int rv_read_int(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t lowest,
                              int64_t highest, int64_t *out);
RV_MUST_CHECK int rv_read_count(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t *out);
RV_MUST_CHECK int rv_read_time(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t *out);
RV_MUST_CHECK int rv_read_text(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, bool may_be_null,
                               struct rv_text *out);
RV_MUST_CHECK int rv_read_name(struct rv_state_reader *rd, struct rv_state_place p, json_object *v,
                               const struct rv_name **out);
/** Puts the path above the error of a word that is not in its list; passes 0 on. */
RV_MUST_CHECK int rv_read_word(struct rv_state_reader *rd, const char *path, int rc);

/* state_parts.c */
RV_MUST_CHECK int rv_read_edges(struct rv_state_reader *rd, const struct rv_row *row, json_object *v);
RV_MUST_CHECK int rv_read_records(struct rv_state_reader *rd, const struct rv_row *row, json_object *v);
/** *it is zeroed before; what was read is its owner's after a failure too. */
RV_MUST_CHECK int rv_read_interrupt(struct rv_state_reader *rd, json_object *v, struct rv_stored_interrupt *it);

#endif
