/* What a process asks of the system and may be refused: threads, file descriptors, terminals, folders, child processes,
 * libraries; and a mark by which others tell whether it lives. */
#ifndef RV_SYSTEM_H
#define RV_SYSTEM_H

#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/types.h>

#include "coreengine/base/buf.h"
#include "coreengine/base/err.h"

/* --- Threads, descriptors, terminals --- */
/** Start a thread that runs body(self); the caller joins or detaches it. Signals are blocked in it, but for those of
 * its own faults: they are for the thread that waits for them. Any thread.
 * @return RV_E_THREADS: the system starts no more threads (the hint says what to raise); RV_E_NOMEM */
RV_MUST_CHECK int rv_thread_start(void *(*body)(void *self), void *self, pthread_t *out, rv_err **err);

/** See that n more descriptors can be opened now, for libraries that abort where they cannot. Opens and closes as many.
 * @return RV_E_FILES: the process or the system has fewer left */
RV_MUST_CHECK int rv_descriptors_check(size_t n, rv_err **err);

/** Where to read what a process polls. Ctrl-C throws away what was typed, also between a poll() that saw it and the
 * read(), which would then wait: a terminal is opened once more, so that its own read() never waits and other programs
 * on that terminal see no change. The caller closes what is not `fd`. Any thread.
 * @return fd itself when it is not a terminal, or cannot be opened again */
int rv_terminal_open_reader(int fd);

/** Behind a read() that said EAGAIN: another program has made the pipe or terminal non-blocking, and there is nothing
 * yet. Waits until there is something, or the end. Any thread. */
void rv_wait_readable(int fd);

/** The next byte of a stream that may be non-blocking, or EOF, as getc_unlocked() gives it. */
int rv_stream_getc(FILE *in);

/* --- Starts a program as a child process, with posix_spawn(): between fork and exec only the C library's own code
 * runs, so that a process with threads can use it. --- */
/* What it points to is borrowed for the call. */
struct rv_spawn {
    const char *program;  /* a path; PATH is not searched */
    char *const *argv;    /* ends with NULL */
    const sigset_t *mask; /* signals that are blocked in the child */
    /* Adds what happens to the descriptors of the child. Returns 0 or an errno. */
    int (*plan)(void *self, posix_spawn_file_actions_t *files);
    void *self;
};

/** The child has the environment of this process. Returns 0 or an errno, as posix_spawn() does. */
RV_MUST_CHECK int rv_spawn(const struct rv_spawn *opts, pid_t *pid);

/* --- Libraries that are opened when they are first needed: they cost time and memory at every start otherwise. A
 * static binary cannot open any: some are linked in, the others are missing. --- */
#ifdef RV_STATIC
#define RV_IS_STATIC        true
#define RV_LINKED(function) ((void (*)(void))(function))
#else
#define RV_IS_STATIC        false
#define RV_LINKED(function) NULL
#endif

/* What it points to is static. */
struct rv_library_function {
    const char *name;
    size_t offset;        /* of its pointer in the table */
    void (*linked)(void); /* RV_LINKED(); NULL: the library is opened */
};
/* Texts and functions are static. */
struct rv_library {
    const char *file;     /* as dlopen() takes it */
    const char *what;     /* "the HTTP library" */
    enum rv_code missing; /* the code when it cannot be opened */
    const char *hint;     /* what to install */
    const char *too_old;  /* the hint when it lacks a function; NULL: none */
    const struct rv_library_function *functions;
    size_t n_functions;
};
/** Open it, with symbols that are not offered to capabilities, and fill the table. *out: for dlclose(), NULL when it is
 *  linked in. The caller guards the table. `missing`, RV_E_VERSION (it lacks a function), RV_E_NOMEM. */
RV_MUST_CHECK int rv_library_open(const struct rv_library *lib, void *table, void **out, rv_err **err);

/* --- A mark by which other processes can tell whether anything of this process is still running.
 *
 * The mark is a Unix socket with a name in the abstract namespace. The kernel keeps the name as long as one descriptor
 * of the socket is open: until the last thread of the process and the last child that inherited the descriptor have
 * ended. /proc does not show this: it reports a process as a zombie while one of its threads is still in a system call.
 * There is no file, so nothing stays behind and no folder has to be writable. --- */
#define RV_LIVENESS_MAX 48 /* bytes of a mark's name, with its NUL */

enum rv_liveness {
    RV_LIVENESS_UNKNOWN, /* not a mark, or one of another network namespace */
    RV_LIVENESS_HELD,    /* a thread or a child of that process is there */
    RV_LIVENESS_GONE,    /* none is left */
};

/** The mark of this process, made at the first use; a child made by fork() gets its own mark. Thread-safe.
 *  @return false: the system has no such sockets for this process */
bool rv_liveness_make_name(char out[RV_LIVENESS_MAX]);
/** Its descriptor, for children that run code of this process; above those that a child has by convention, and closed
 *  on exec. -1: there is no mark. */
int rv_liveness_fd(void);
enum rv_liveness rv_liveness_of(const char *name);

/* --- The entries of a folder, one after another, to its end --- */
/** The next entry of an open folder; *out is NULL behind the last one, and valid until the next call. `path` is for the
 * message. The code of the system: the folder cannot be read to its end. */
RV_MUST_CHECK int rv_folder_next(DIR *dir, const char *path, const struct dirent **out, rv_err **err);

#endif
