/* The standard streams of a command that drives runs: a thread writes them. */
#ifndef RV_CLI_OUTLET_INTERNAL_H
#define RV_CLI_OUTLET_INTERNAL_H

#include "coreengine/base/base.h"

/** From now on a thread writes them, in order, and a reader that pauses holds up nothing. log NULL, or the root of what
 * is logged to stderr. Without memory for the thread all writes wait, as before. Main thread, before other threads. */
void cli_outlet_open(rv_log *log);
/** Waits until all is written, or cannot be. Returns errno of the first failure of stdout, or 0. Main thread. */
int cli_outlet_close(void);
/** Of STDOUT_FILENO or STDERR_FILENO. False: it is not open, write by yourself. Any thread. */
bool cli_outlet_put(int fd, rv_str text);
/** Is something still to be written? Any thread. */
bool cli_outlet_is_behind(void);
int cli_outlet_failed(int fd); /* errno of the first failure, or 0 */
/** Close it, and wait until all is written. False: something of stdout was not. Main thread. */
bool cli_out_rest(void); /* output.c */

#endif
