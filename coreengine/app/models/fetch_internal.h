/* A few HTTP requests at once, waited for: outside any run. */
#ifndef RV_APP_FETCH_INTERNAL_H
#define RV_APP_FETCH_INTERNAL_H

#include "coreengine/app/models.h"
#include "coreengine/model/http/http.h"

struct rv_app_fetch {
    struct rv_http_request request; /* in; all that it points to is the caller's */
    /* out */
    bool is_done;             /* there is an answer, or none will come */
    enum rv_http_fault fault; /* RV_HTTP_OK: what follows is the answer */
    int status;
    rv_buf type, body, why; /* why: what went wrong, for people */
};
/** All of them at once. What a server does is in its fetch; errors are those of this machine: no HTTP library
 * (RV_E_NOT_FOUND, RV_E_VERSION), an address or header that cannot be sent (RV_E_INVALID), no memory. */
RV_MUST_CHECK int app_fetch_all(const struct rv_app *app, struct rv_app_fetch *fetches, size_t n, rv_err **err);
void app_fetch_fini(struct rv_app_fetch *f);

#endif
