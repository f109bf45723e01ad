/* A mark by which other processes can tell whether anything of this process is still running.
 *
 * The mark is a Unix socket with a name in the abstract namespace. The kernel keeps the name as long as one descriptor
 * of the socket is open: until the last thread of the process and the last child that inherited the descriptor have
 * ended. /proc does not show this: it reports a process as a zombie while one of its threads is still in a system call.
 * There is no file, so nothing stays behind and no folder has to be writable. */
#ifndef RV_LIVENESS_H
#define RV_LIVENESS_H

#include "coreengine/base/base.h"

#define RV_LIVENESS_MAX 48 /* bytes of a mark's name with its end */

enum rv_liveness {
    RV_LIVENESS_UNKNOWN, /* not a mark, or one of another network namespace */
    RV_LIVENESS_HELD,    /* a thread or a child of that process is there */
    RV_LIVENESS_GONE,    /* none is left */
};

/** The mark of this process, made at the first use; a child made by fork() gets its own mark. Thread-safe.
 *  @return false: the system has no such sockets for this process */
bool rv_liveness_name(char out[RV_LIVENESS_MAX]);
/** Its descriptor, for children that run code of this process; above those that a child has by convention, and closed
 *  on exec. -1: there is no mark. */
int rv_liveness_fd(void);
enum rv_liveness rv_liveness_of(const char *name);

#endif
