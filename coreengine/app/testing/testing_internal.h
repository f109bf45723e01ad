/* Shared by the files of this folder. */
#ifndef RV_APP_TESTING_INTERNAL_H
#define RV_APP_TESTING_INTERNAL_H

#include "coreengine/app/testing.h"

/* Bytes of one line of a run's events, as JSON. As much as a state may have (RV_STATE_MAX_BYTES) with its escapes; a
 * longer line fails the test with RV_E_LIMIT. */
#define TEST_MAX_LINE ((size_t)256 << 20)

/** The keys and values of a file that was read before; its layout and comments are not in them. */
RV_MUST_CHECK int app_test_yaml_json(rv_str text, const char *name, json_object **out, rv_err **err);
/** Compare; each difference is added to failures. */
RV_MUST_CHECK int app_test_compare(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r,
                                   rv_err **err);
/** What is not compared for being equal: `that`, `schema`, `tool_calls`, `similar`. */
RV_MUST_CHECK int app_test_assert(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r,
                                  rv_err **err);
/** The value at a key below path has at least what is expected. found may be NULL. */
RV_MUST_CHECK int app_test_same_part(struct rv_test_report *r, rv_buf *path, const char *key, json_object *expected,
                                     json_object *found, rv_err **err);
/** Note a line of an event about tool calls in r->calls. */
RV_MUST_CHECK int app_test_note_call(struct rv_test_report *r, const struct rv_effect *e, rv_str line, rv_err **err);
#define RV_TEST_RECENT 8 /* events that a report of a failed test shows */
struct rv_test_recent {
    char *lines[RV_TEST_RECENT]; /* owned; the n-th event is at n % RV_TEST_RECENT */
    size_t n;
};
void app_test_recent_note(struct rv_test_recent *recent, const struct rv_effect *e, rv_str line);
/** Append the events as short texts. */
RV_MUST_CHECK int app_test_recent_list(const struct rv_test_recent *recent, json_object *list, rv_err **err);
void app_test_recent_fini(struct rv_test_recent *recent);
/** Add {path, message}. */
RV_MUST_CHECK int app_test_complain(struct rv_test_report *r, const char *path, const char *message, rv_err **err);
/** What is compared has no response to look at: add which text of which output it would be. */
RV_MUST_CHECK int app_test_lacks_response(const struct rv_pipeline *p, struct rv_test_report *r, const char *path,
                                          rv_err **err);
/** The state dict of an envelope; *out is the caller's. */
RV_MUST_CHECK int app_test_read_state(const rv_envelope *env, json_object **out, rv_err **err);
/** The list of that key in a state dict, "errors" or "processing_history", then those of the branches that wait in it,
 * in the order in which they will be joined; *out is the caller's. */
RV_MUST_CHECK int app_test_gather(json_object *state, const char *key, json_object **out, rv_err **err);
/* cassette.c: what a live test is played from, or recorded to. */
struct rv_cassette {
    rv_buf path;
    rv_script *script;       /* owned: its models' replies, with the rest of the test's script; NULL: it is recorded */
    rv_recorder *recorder;   /* owned; NULL: it is played */
    const rv_engine *engine; /* of the run that is recorded; borrowed */
    const struct rv_pipeline *pipeline; /* of that run; borrowed */
};
/** Find the cassette of a run of test i. RV_E_NOT_FOUND: none may be recorded; RV_E_INVALID: it cannot be played. */
RV_MUST_CHECK int app_cassette_open(const struct rv_app_loaded *l, size_t i, const struct rv_test_opts *opts,
                                    int64_t number, struct rv_cassette *out, rv_err **err);
/** The run that x describes is recorded, and its models are asked. Its on_event has to tell the recorder what it hears.
 */
void app_cassette_record(struct rv_cassette *c, struct rv_exec_opts *x);
/** Keep what was recorded. */
RV_MUST_CHECK int app_cassette_write(struct rv_cassette *c, rv_err **err);
void app_cassette_fini(struct rv_cassette *c); /* also of a zeroed one */
/* variant.c */
/** Load the pipeline l once more, with the model and the prompts of a test of a matrix, if it has one of them.
 *  @return 1: the caller ends *out; 0: it has none; RV_E_INVALID: they do not fit the pipeline */
RV_MUST_CHECK int app_test_load_variant(const struct rv_app *app, const struct rv_app_loaded *l,
                                        const struct rv_test_config *test, const struct rv_test_opts *opts,
                                        struct rv_app_loaded *out, rv_err **err);
/* judge.c: where a judge is asked. All is borrowed. */
struct rv_judge_place {
    rv_engine *engine;
    rv_script *script; /* may be NULL */
    struct rv_cassette *cassette;
    uint64_t seed; /* of the first vote */
};
/** Have the judge of r->test vote on a response, whose ptr is NULL if there is none. */
RV_MUST_CHECK int app_test_ask_judge(const struct rv_app_loaded *l, const struct rv_judge_place *place, rv_str response,
                                     struct rv_test_report *r, rv_err **err);
bool app_judge_failed(const struct rv_test_report *r); /* a vote has no score */

#endif
