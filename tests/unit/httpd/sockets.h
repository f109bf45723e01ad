/* What the system knows of a TCP socket of this machine. */
#ifndef RV_TESTS_HTTPD_SOCKETS_H
#define RV_TESTS_HTTPD_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

uint64_t socket_received(int fd, int *unread); /* bytes that have come so far; how many of them are not read */
uint64_t socket_sent(int fd);                  /* bytes that were given to it so far */
bool socket_has_ended(int fd);                 /* the other side has closed */

#endif
