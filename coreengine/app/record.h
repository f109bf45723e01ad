/* A script from a real run: it plays the run again, without models, tools and people. */
#ifndef RV_APP_RECORD_H
#define RV_APP_RECORD_H

#include "coreengine/app/app.h"

typedef struct rv_recorder rv_recorder;
rv_recorder *rv_recorder_new(void);
/** Values that the pipeline has under names of secrets are not recorded, even if an answer repeats them. */
void rv_recorder_hide(rv_recorder *r, const struct rv_pipeline *p);
/** The tools that the run knows are declared in the script: it plays without their capabilities. */
void rv_recorder_tools(rv_recorder *r, const struct rv_pipeline *p, const struct rv_catalog *c);
/** A piece of a reply; text and thinking are recorded with their time. now_us: rv_engine_now_us(). */
void rv_recorder_delta(rv_recorder *r, int stage, int64_t call_id, const struct rv_llm_delta *d, int64_t now_us);
void rv_recorder_event(rv_recorder *r, const struct rv_effect *e, rv_str line);
void rv_recorder_input(rv_recorder *r, const struct rv_event *ev);
/** Before e is performed: replies of models get the matcher `request`, and answer nothing else. */
void rv_recorder_request(rv_recorder *r, const struct rv_pipeline *p, const struct rv_effect *e);
/** Another run follows, whose calls have the same ids. */
void rv_recorder_run_over(rv_recorder *r);
/** note: the first line of the script, a comment. */
RV_MUST_CHECK int rv_recorder_write(rv_recorder *r, const char *note, const char *path, rv_err **err);
void rv_recorder_free(rv_recorder *r);

/** Can a file be written there? Asked before a run that writes it at its end. makes_folders: those that are missing
 * will be made. RV_E_NOT_FOUND (no folder), RV_E_INVALID (it is a folder, or below a file), RV_E_DENIED, RV_E_IO. */
RV_MUST_CHECK int rv_app_check_target(const char *path, bool makes_folders, rv_err **err);

#endif
