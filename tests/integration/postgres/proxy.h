/* A proxy in front of a server of PostgreSQL: it knows where a message of the protocol ends, counts them, and breaks a
 * connection before one of them. */
#ifndef RV_TESTS_POSTGRES_PROXY_H
#define RV_TESTS_POSTGRES_PROXY_H

#include <stdbool.h>
#include <stddef.h>

enum proxy_cut {
    PROXY_BOTH, /* both sides see the end at once */
    PROXY_LATE, /* the client at once; what it had sent reaches the server a moment later, the present message too */
    PROXY_TOLD, /* the server at once; the client is told so by an error in place of an answer, and sees the end later
                 */
};
struct proxy;
/** Listen in a folder of its own for clients, and pass them on to that socket. Its threads are this process's. */
struct proxy *proxy_new(const char *server_socket);
void proxy_free(struct proxy *p);
/** The folder, for "host=". */
const char *proxy_folder(const struct proxy *p);
/** Count from 0 again, and break a connection before message n, once. n negative: never. */
void proxy_arm(struct proxy *p, int n, enum proxy_cut how);
/** Messages since. *was_cut (may be NULL): it came to that. */
int proxy_count(struct proxy *p, bool *was_cut);

/** From now on spoil statements with that text (it stays the caller's), so that the server refuses them. */
void proxy_garble(struct proxy *p, const char *text);
int proxy_garbled(struct proxy *p); /* how many */

/* What went by since proxy_arm(). */
struct proxy_traffic {
    int n_trips;     /* times that the client asked for all answers (Sync) */
    size_t up, down; /* bytes from the client, and to it */
};
struct proxy_traffic proxy_traffic(struct proxy *p);

#endif
