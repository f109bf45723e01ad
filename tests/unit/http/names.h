/* A resolver of names for this program: getaddrinfo() is replaced, libcurl's threads call this one.
 *   here.test     127.0.0.1
 *   slow.test     the same, but only after names_release()
 *   nowhere.test  unknown
 * All other names go to the system's. */
#ifndef RV_TESTS_HTTP_NAMES_H
#define RV_TESTS_HTTP_NAMES_H

#include <stddef.h>

void names_hold(void);
void names_release(void);
size_t names_waiting(void); /* threads that wait for that */

#endif
