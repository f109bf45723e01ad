/* Run files: where an interrupted run is kept until it is answered. */
#ifndef RV_CLI_RUNFILE_H
#define RV_CLI_RUNFILE_H

#include "coreengine/cli/cli.h"

struct rv_runfile {
    const char *pipeline, *script; /* paths; script NULL: none; borrowed from json when read */
    json_object *state;            /* borrowed from json */
    json_object *json;             /* owned; NULL when made by hand */
};
/** Path of a run: the word itself if it is a file, else the file of that id in the folder of runs. */
RV_MUST_CHECK int rv_runfile_path(const char *run, rv_buf *out, rv_err **err);
/** Write to path, or (NULL) into the folder of runs under the envelope's id. *out_path says where. */
RV_MUST_CHECK int rv_runfile_write(const char *path, const struct rv_runfile *run, const rv_envelope *env,
                                   rv_buf *out_path, rv_err **err);
RV_MUST_CHECK int rv_runfile_read(const char *path, struct rv_runfile *out, rv_err **err);
void rv_runfile_fini(struct rv_runfile *run);

#endif
