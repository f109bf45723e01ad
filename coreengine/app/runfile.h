/* Run files: where an interrupted run is kept until it is answered. */
#ifndef RV_APP_RUNFILE_H
#define RV_APP_RUNFILE_H

#include "coreengine/app/app.h"

struct rv_runfile {
    const char *pipeline, *script; /* paths; script NULL: none; borrowed from json when read */
    enum rv_rules rules;           /* that the run began with; NEWEST: it begins now */
    json_object *state;            /* borrowed from json */
    json_object *json;             /* owned; NULL when made by hand */
};
/** Path of a run: the word itself if it is a file, else the file of that id in the folder of runs. */
RV_MUST_CHECK int rv_runfile_path(const char *run, rv_buf *out, rv_err **err);
/** Default file of the run with this id; the folder is created. */
RV_MUST_CHECK int rv_runfile_default_path(const char *id, rv_buf *out, rv_err **err);
/** Write a whole run file; `state` is the state dict's text. An older file survives any failure. */
RV_MUST_CHECK int rv_runfile_write(const char *path, const struct rv_runfile *run, rv_str state, rv_err **err);
/** Claim the run for this process until *fd is closed: two answers at once would do things twice. -1: nothing to claim.
 */
RV_MUST_CHECK int rv_runfile_claim(const char *path, int *fd, rv_err **err);
/** out owns what it points to: rv_runfile_fini(). RV_E_NOT_FOUND, RV_E_DENIED, RV_E_LIMIT, RV_E_PARSE: the file;
 *  RV_E_INVALID: not a run file; RV_E_VERSION: of another version, or of newer rules. */
RV_MUST_CHECK int rv_runfile_read(const char *path, struct rv_runfile *out, rv_err **err);
void rv_runfile_fini(struct rv_runfile *run);

#endif
