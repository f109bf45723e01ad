/* The pipeline files that a command line names. */
#ifndef RV_CLI_VERBS_FILES_INTERNAL_H
#define RV_CLI_VERBS_FILES_INTERNAL_H

#include "coreengine/cli/cli.h"

struct rv_cli_files {
    char **paths; /* owned */
    size_t n, cap;
};

/** A file is itself; a folder is the `.yaml` and `.yml` files in it, sorted by name, without those of its folders.
 *  RV_E_NOT_FOUND: a folder has none; RV_E_IO: it cannot be read; RV_E_NOMEM. Call
 *  cli_files_fini() in any case. */
RV_MUST_CHECK int cli_files(const struct rv_cli *cli, struct rv_cli_files *out, rv_err **err);
/** The same with the files of all folders in a folder, but those whose names begin with a dot, and without symbolic
 * links.
 * "-" is itself. RV_E_LIMIT: nested too deeply. */
RV_MUST_CHECK int cli_files_below(const struct rv_cli *cli, struct rv_cli_files *out, rv_err **err);
void cli_files_fini(struct rv_cli_files *files);

#endif
