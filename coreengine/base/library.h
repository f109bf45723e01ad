/* Libraries that are opened when they are first needed: they cost time and memory at every start otherwise. A static
 * binary cannot open any: some are linked in, the others are missing. */
#ifndef RV_LIBRARY_H
#define RV_LIBRARY_H

#include "coreengine/base/err.h"

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

#endif
