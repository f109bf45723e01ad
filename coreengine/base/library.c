/* Opening a library, and the addresses of its functions. */
#include "coreengine/base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* The loader tells what the system said as the end of a text. */
static int lack_of(const char *why)
{
    static const int numbers[] = {EMFILE, ENFILE};

    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        if (strstr(why, strerror(numbers[i])))
            return numbers[i];
    return 0;
}

static int fail_open(const struct rv_library *lib, rv_err **err)
{
    const char *why = dlerror();
    int rc;

    if (!why || strstr(why, "out of memory") || strstr(why, "Cannot allocate memory"))
        rc = RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", lib->file);
    else if (lack_of(why))
        rc = RV_FAIL_SYSTEM(err, lack_of(why), "open %s", lib->what);
    else {
        rc = RV_FAIL(err, lib->missing, "open %s: %s", lib->what, why);
        rv_err_set_hint(err, "%s", lib->hint);
    }
    dlerror(); /* lets go of the text */
    return rc;
}

static int fill(const struct rv_library *lib, void *handle, void *table, rv_err **err)
{
    for (size_t i = 0; i < lib->n_functions; i++) {
        const struct rv_library_function *f = &lib->functions[i];
        void *symbol = dlsym(handle, f->name); /* also in the libraries on which it depends */
        if (!symbol) {
            RV_FAIL(err, RV_E_VERSION, "\"%s\" has no function %s()", lib->file, f->name);
            if (lib->too_old)
                rv_err_set_hint(err, "%s", lib->too_old);
            return RV_E_VERSION;
        }
        /* ISO C has no cast from object to function pointers, so the bytes are copied. */
        memcpy((char *)table + f->offset, &symbol, sizeof symbol);
    }
    return 0;
}

static void fill_linked(const struct rv_library *lib, void *table)
{
    for (size_t i = 0; i < lib->n_functions; i++) {
        const struct rv_library_function *f = &lib->functions[i];
        memcpy((char *)table + f->offset, &f->linked, sizeof f->linked);
    }
}

int rv_library_open(const struct rv_library *lib, void *table, void **out, rv_err **err)
{
    if (lib->functions[0].linked) {
        fill_linked(lib, table);
        *out = NULL;
        return 0;
    }
    if (RV_IS_STATIC) {
        int rc = RV_FAIL(err, lib->missing, "%s is not in this static binary", lib->what);
        rv_err_set_hint(err, "use the package reeve, which opens \"%s\"", lib->file);
        return rc;
    }
    void *handle = dlopen(lib->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail_open(lib, err);
    int rc = fill(lib, handle, table, err);
    if (rc < 0)
        dlclose(handle);
    else
        *out = handle;
    return rc;
}
