/* libcurl, opened when it is first needed: it brings some thirty libraries and 4 ms with it, which every start of the
 * program would pay for otherwise. Local: its symbols are not offered to capabilities. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/model/http/http_internal.h"

#define LIBRARY     "libcurl.so.4"
#define MIN_VERSION 0x075000 /* 7.80.0: CURLOPT_PREREQFUNCTION, which tells when a request is about to be sent */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below; nothing is called out to under it */
static struct rv_curl table;
static bool is_open;

static int fail_open(rv_err **err)
{
    const char *why = dlerror();
    int rc;

    if (!why || strstr(why, "out of memory") || strstr(why, "Cannot allocate memory"))
        rc = RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", LIBRARY);
    else {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "open the HTTP library: %s", why);
        rv_err_hint(err, "install libcurl (Debian package libcurl4)");
    }
    (void)dlerror(); /* lets go of the text */
    return rc;
}

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(name) {"curl_" #name, offsetof(struct rv_curl, name)},
    RV_CURL_FUNCTIONS(X)
#undef X
};

static int resolve(void *lib, struct rv_curl *out, rv_err **err)
{
    for (size_t i = 0; i < RV_COUNT(functions); i++) {
        void *symbol = dlsym(lib, functions[i].name);
        if (!symbol)
            return RV_FAIL(err, RV_E_VERSION, "\"%s\" has no function %s()", LIBRARY, functions[i].name);
        /* ISO C has no cast from object to function pointers, so the bytes are copied. */
        memcpy((char *)out + functions[i].offset, &symbol, sizeof symbol);
    }
    return 0;
}

static int set_up(struct rv_curl *out, rv_err **err)
{
    const curl_version_info_data *info = out->version_info(CURLVERSION_NOW);

    if (info->version_num < MIN_VERSION)
        return RV_FAIL(err, RV_E_VERSION, "libcurl %s is too old: 7.80.0 is needed", info->version);
    CURLcode rc = out->global_init(CURL_GLOBAL_DEFAULT);
    if (rc != CURLE_OK)
        return RV_FAIL(err, rc == CURLE_OUT_OF_MEMORY ? RV_E_NOMEM : RV_E_INTERNAL, "set libcurl up: %s",
                       out->easy_strerror(rc));
    out->has_bundle = info->cainfo && access(info->cainfo, R_OK) == 0;
    return 0;
}

static int open_once(rv_err **err)
{
    if (is_open)
        return 0;
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return fail_open(err);
    int rc = resolve(lib, &table, err);
    if (rc == 0)
        rc = set_up(&table, err);
    if (rc < 0) {
        dlclose(lib);
        return rc;
    }
    is_open = true;
    return 0;
}

int rv_curl_open(const struct rv_curl **out, rv_err **err)
{
    pthread_mutex_lock(&lock);
    int rc = open_once(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &table;
    return rc;
}
