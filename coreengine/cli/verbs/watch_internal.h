/* Waits until a file changes, for verbs that begin again then. */
#ifndef RV_CLI_VERBS_WATCH_INTERNAL_H
#define RV_CLI_VERBS_WATCH_INTERNAL_H

#include "coreengine/cli/verbs/files_internal.h"

struct rv_cli_watched; /* watch.c */
struct rv_cli_watch {
    int fd;                       /* of inotify; -1: none */
    struct rv_cli_watched *items; /* owned */
    size_t n, cap;
    int rc;      /* sticky: something that was read cannot be watched */
    rv_err *err; /* why; owned */
};
#define RV_CLI_WATCH_INIT ((struct rv_cli_watch){.fd = -1})

/** Watch the folders of these files, and the folders in them: scripts and prompts stand there. A folder in them that
 * cannot be read is left out. What was watched before is forgotten, so this comes before the files are read.
 * RV_E_LIMIT: the system allows no more watches; the code of the system where a folder cannot be watched for another
 * reason. */
RV_MUST_CHECK int cli_watch_begin(struct rv_cli_watch *w, const struct rv_cli_files *files, rv_err **err);
/** From now on each file that this thread reads or looks for is watched, wherever it is, and each folder that it lists;
 * false: no more. w NULL: nothing happens. */
void cli_watch_reads(struct rv_cli_watch *w, bool on);
/** Return when a file there has been written, moved or deleted, and no other has been for a moment: editors write
 * several at once. Blocks; SIGINT ends the process as ever. What cli_watch_begin() says, for what was read since. */
RV_MUST_CHECK int cli_watch_wait(struct rv_cli_watch *w, rv_err **err);
void cli_watch_end(struct rv_cli_watch *w);

#endif
