/* libpq: opened when the first store of PostgreSQL is. It brings some twenty libraries and 4 ms with it, which every
 * start of the program would pay for otherwise. Local: its symbols are not offered to capabilities. */
#include <pthread.h>
#include <stddef.h>

#include "coreengine/base/base.h"
#include "coreengine/store/postgres/postgres_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table of libpq, and is_open; leaf */
static struct rv_pq table;
static bool is_open;

static const struct rv_library_function functions[] = {
#define X(name) {"PQ" #name, offsetof(struct rv_pq, name), NULL}, /* a static binary is without it */
    RV_PQ_FUNCTIONS(X)
#undef X
};

static int open_once(rv_err **err)
{
    static const struct rv_library lib = {
        .file = "libpq.so.5",
        .what = "the library of PostgreSQL",
        .missing = RV_E_IO,
        .hint = "install libpq (Debian package libpq5)",
        .too_old = "install libpq of PostgreSQL 14 or newer (Debian package libpq5)",
        .functions = functions,
        .n_functions = RV_COUNT(functions),
    };
    void *handle;
    int rc = is_open ? 0 : rv_library_open(&lib, &table, &handle, err);

    is_open = rc == 0;
    return rc;
}

int store_pq_open(const struct rv_pq **out, rv_err **err)
{
    pthread_mutex_lock(&lock);
    int rc = open_once(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &table;
    return rc;
}
