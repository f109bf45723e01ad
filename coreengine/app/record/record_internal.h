/* What the files of the recorder share: calls while they are under way, and the script's entries they become. */
#ifndef RV_APP_RECORD_INTERNAL_H
#define RV_APP_RECORD_INTERNAL_H

#include "coreengine/app/testing.h"

#define RV_RECORD_HIDDEN "[secret]"

struct rv_record_piece {
    int64_t at_us;
    bool is_thinking;
    size_t len; /* bytes in the call's text */
};
struct rv_record_call {
    int64_t id, start_us;
    bool is_model;
    bool is_whole;                  /* its pieces are not recorded */
    json_object *entry;             /* borrowed from its list; empty until the call is over */
    rv_buf text;                    /* of the pieces, one after another */
    struct rv_record_piece *pieces; /* owned */
    size_t n_pieces, cap_pieces;
};

/** Fill the entry with what came of the call. */
RV_MUST_CHECK int app_record_answer(const struct rv_record_call *c, const struct rv_event *ev, rv_err **err);
/** The same for a call whose answer the run did not wait for: it took longer than until last_us. */
RV_MUST_CHECK int app_record_no_answer(const struct rv_record_call *c, int64_t last_us, rv_err **err);

/** Set a copy of its own, since secrets are overwritten in place. value may be NULL: nothing is set. */
RV_MUST_CHECK int app_record_add_copy(json_object *entry, const char *key, json_object *value, rv_err **err);
/** Declare the tools that a pipeline's stages, and agents that it asks, may call, by their names in `tools`. */
RV_MUST_CHECK int app_record_declare(json_object *tools, const struct rv_pipeline *p, const struct rv_catalog *c,
                                     rv_err **err);
/** Put the calls of each tool into its declaration, which takes their place in `tools`. */
RV_MUST_CHECK int app_record_join_tools(json_object *declared, json_object *tools, rv_err **err);

/* Values that must not be written down. */
struct rv_record_secrets {
    char **items; /* owned */
    size_t n;
};
void app_record_secrets_fini(struct rv_record_secrets *s);
/** Add what a pipeline's models and capabilities are given under names of secrets. */
RV_MUST_CHECK int app_record_secrets_of(struct rv_record_secrets *s, const struct rv_pipeline *p, rv_err **err);
bool app_record_has_secret(const struct rv_record_secrets *s, rv_str text);
/** Overwrite them in all texts of a tree, in place. */
RV_MUST_CHECK int app_record_hide(const struct rv_record_secrets *s, json_object *tree, rv_err **err);

#endif
