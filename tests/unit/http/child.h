/* Servers that are programs of their own, and certificates for them. */
#ifndef RV_TESTS_HTTP_CHILD_H
#define RV_TESTS_HTTP_CHILD_H

#include <stdio.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    FILE *says; /* its standard output */
    int port;
};

/** Starts argv[0] and waits for the line that begins with `before` and ends with a port. */
void child_start(struct child *c, char *const argv[], const char *before);
void child_kill(struct child *c);
void child_stop(struct child *c);

/** dir/name.key and dir/name.pem, for 127.0.0.1, signed by itself. */
void make_certificate(const char *dir, const char *name);

#endif
