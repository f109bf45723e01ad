/* Artifacts of runs: what planned calls made for people, read from the journals that keep them. */
#ifndef RV_APP_ARTIFACTS_H
#define RV_APP_ARTIFACTS_H

#include "coreengine/store/store.h"

/* One artifact; everything is borrowed for the call that gets it. */
struct rv_app_artifact {
    const char *run, *session, *user;
    json_object *about; /* what its record says: {id, title, type, stage, visit, step_id, bytes, sha256, metadata} */
    rv_str content;     /* {parts, mcp_schema?, rendering_hints?} as JSON text */
};
/* What it points to is borrowed for the call. */
struct rv_app_artifacts_filter {
    const char *run, *session; /* NULL: any; run is a whole id */
    const char *id;            /* of the artifact; NULL: any */
    int64_t max_runs;          /* no more than so many of those that have artifacts; 0: all */
};
typedef int (*rv_app_on_artifact)(void *self, const struct rv_app_artifact *artifact, rv_err **err);
/** Those of the newest run first, and of each run in the order in which they were made. each returns 0, a code of
 *  failure, or 1: that is enough. It must not use the store. */
RV_MUST_CHECK int rv_app_artifacts_each(rv_store *store, const struct rv_store_scope *scope,
                                        const struct rv_app_artifacts_filter *filter, rv_app_on_artifact each,
                                        void *self, rv_err **err);

/** One of a list: {id, title, type, run, session_id, user_id, stage, visit, step_id, bytes, sha256, created_at}. */
void rv_app_artifact_json(const struct rv_app_artifact *artifact, rv_jw *w);
/** The same with parts and the whole metadata. */
RV_MUST_CHECK int rv_app_artifact_json_whole(const struct rv_app_artifact *artifact, rv_jw *w, rv_err **err);

/** The content, parsed: an object that the caller puts. RV_E_INVALID: the record is damaged. */
RV_MUST_CHECK int rv_app_artifact_content(const struct rv_app_artifact *artifact, json_object **out, rv_err **err);
/* A part as a file has it. */
struct rv_app_artifact_file {
    rv_buf bytes;
    const char *extension; /* "txt", "json", "" when the name has one; static */
    const char *name;      /* borrowed from the part; NULL: it has none */
};
/** @param out bytes has a limit when it comes; a link has none and is RV_E_STATE: nothing is fetched */
RV_MUST_CHECK int rv_app_artifact_part(json_object *part, struct rv_app_artifact_file *out, rv_err **err);
/** A name for a file: letters, digits, ".", "_" and "-" only, not empty, no leading dot, at most 64 bytes. */
void rv_app_artifact_name(const char *text, rv_buf *out);

#endif
