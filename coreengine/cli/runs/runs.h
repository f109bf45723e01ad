/* Runs of a store as the verbs read them: replayed from their journals, performing nothing. */
#ifndef RV_CLI_RUNS_H
#define RV_CLI_RUNS_H

#include "coreengine/app/past.h"
#include "coreengine/cli/cli.h"

/* --- crashed.c --- */
/** Recover a run in a child, with the options of this command. *status: how the child exited; *number: the signal that
 * ended it, or 0. */
RV_MUST_CHECK int rv_cli_recover_apart(const struct rv_cli_args *args, const char *run, int *status, int *number,
                                       rv_err **err);

/** The command that answers that interrupt, as a line. is_only: the run waits for nothing else. */
void rv_cli_write_resume(const struct rv_cli_args *args, const struct rv_pending *pending, bool is_only, rv_buf *b);
/** A word of a command that can be pasted into a shell, quoted where it has to be. */
void rv_cli_write_word(const char *word, rv_buf *b);
/** " --store FILE --user ID --tenant ID", as far as the command line says so. */
void rv_cli_write_store(const struct rv_cli_args *args, rv_buf *b);
/** Text of a model or a tool for a terminal: nothing that moves the cursor or turns the text around; lines and tabs
 * stay. */
void rv_cli_write_safe(rv_str text, rv_buf *b);
/** The same, later lines indented. */
void rv_cli_write_lines(rv_str text, rv_buf *b);
/** "  [CODE]" and the line's end, then what to do about it where the code is one of enum rv_failure. NULL: only the
 * end. */
void rv_cli_write_code(const char *code, rv_buf *b);
/** One line of text, cut after max bytes. */
void rv_cli_write_preview(rv_str text, size_t max, rv_buf *b);
const char *rv_cli_status_color(enum rv_run_status status); /* how a terminal shows it */
/** The verb's store, opened. False: it was reported, and *status is what to exit with. */
bool rv_cli_runs_open(struct rv_cli *cli, enum rv_app_store_use use, rv_store **store, int *status);

#endif
