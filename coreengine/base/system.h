/* What a process asks of the system and may be refused: threads, file descriptors, terminals. */
#ifndef RV_SYSTEM_H
#define RV_SYSTEM_H

#include "coreengine/base/err.h"

#include <pthread.h>

/** Start a thread that runs body(self); the caller joins or detaches it. All signals are blocked in it: they are for
 * the thread that waits for them. Any thread.
 * @return RV_E_THREADS: the system starts no more threads (the hint says what to raise); RV_E_NOMEM */
RV_MUST_CHECK int rv_thread_start(pthread_t *out, void *(*body)(void *self), void *self, rv_err **err);

/** See that n more descriptors can be opened now, for libraries that abort where they cannot. Opens and closes as many.
 * @return RV_E_FILES: the process or the system has fewer left */
RV_MUST_CHECK int rv_descriptors_check(size_t n, rv_err **err);

/** Where to read what a process polls. Ctrl-C throws away what was typed, also between a poll() that saw it and the
 * read(), which would then wait: a terminal is opened once more, so that its own read() never waits and other programs
 * on that terminal see no change. The caller closes what is not `fd`. Any thread.
 * @return fd itself when it is not a terminal, or cannot be opened again */
int rv_terminal_reader(int fd);

#endif
