/* Waits until a file changes, for verbs that begin again then. */
#ifndef RV_CLI_VERBS_WATCH_INTERNAL_H
#define RV_CLI_VERBS_WATCH_INTERNAL_H

#include "coreengine/cli/verbs/files_internal.h"

struct rv_cli_watch {
    int fd; /* of inotify; -1: none */
};

/** Watch the folders of these files, and the folders in them: scripts and prompts stand there. A folder in them that
 * cannot be read is left out. RV_E_LIMIT: the system allows no more watches; the code of the system where a folder
 * cannot be watched for another reason. */
RV_MUST_CHECK int cli_watch_begin(const struct rv_cli_files *files, struct rv_cli_watch *out, rv_err **err);
/** Return when a file there has been written, moved or deleted, and no other has been for a moment: editors write
 * several at once. Blocks; SIGINT ends the process as ever. */
void cli_watch_wait(const struct rv_cli_watch *w);
void cli_watch_end(struct rv_cli_watch *w);

#endif
