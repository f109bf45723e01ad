/* libpq: opened when the first store of PostgreSQL is. It brings some twenty libraries and 4 ms with it, which every
 * start of the program would pay for otherwise. Local: its symbols are not offered to capabilities. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "coreengine/store/postgres_internal.h"

#define LIBRARY "libpq.so.5"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below; nothing is called out to under it */
static struct rv_pq table;
static bool is_open;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(name) {"PQ" #name, offsetof(struct rv_pq, name)},
    RV_PQ_FUNCTIONS(X)
#undef X
};

static int fail_open(rv_err **err)
{
    const char *why = dlerror();
    int rc;

    if (!why || strstr(why, "out of memory") || strstr(why, "Cannot allocate memory"))
        rc = RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", LIBRARY);
    else {
        rc = RV_FAIL(err, RV_E_IO, "open the library of PostgreSQL: %s", why);
        rv_err_hint(err, "install libpq (Debian package libpq5)");
    }
    (void)dlerror(); /* lets go of the text */
    return rc;
}

static int open_once(rv_err **err)
{
    if (is_open)
        return 0;
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return fail_open(err);
    for (size_t i = 0; i < RV_COUNT(functions); i++) {
        void *symbol = dlsym(lib, functions[i].name);
        if (!symbol) {
            RV_FAIL(err, RV_E_VERSION, "\"%s\" has no function %s()", LIBRARY, functions[i].name);
            rv_err_hint(err, "install libpq of PostgreSQL 14 or newer (Debian package libpq5)");
            dlclose(lib);
            return RV_E_VERSION;
        }
        /* ISO C has no cast from object to function pointers, so the bytes are copied. */
        memcpy((char *)&table + functions[i].offset, &symbol, sizeof symbol);
    }
    is_open = true;
    return 0;
}

int rv_pq_open(const struct rv_pq **out, rv_err **err)
{
    pthread_mutex_lock(&lock);
    int rc = open_once(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &table;
    return rc;
}
