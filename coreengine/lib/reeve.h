/* libreeve in one header, for C and C++: workspaces, runs, chats, recordings, tests and what was kept.
 *
 * coreengine/app/app.h is where to start; docs/how-to/embed-the-library.md has a program.
 * REEVE_VERSION and rv_version() (coreengine/base/version.h) are the versions of the headers and of the library. */
#ifndef REEVE_H
#define REEVE_H

#include <json-c/json.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "coreengine/app/app.h"

#ifdef __cplusplus
}
#endif

#endif
