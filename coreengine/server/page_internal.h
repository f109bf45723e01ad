/* The page at `/`: its files and logins. */
#ifndef RV_SERVER_PAGE_INTERNAL_H
#define RV_SERVER_PAGE_INTERNAL_H

#include "coreengine/server/server_internal.h"

/* --- the source that page/embed.cmake makes --- */
/* What it points to is static. */
struct srv_page_file {
    const char *name, *type, *etag; /* "views/chat.js" */
    rv_str bytes;
};
extern const struct srv_page_file srv_page_files[];
extern const size_t srv_n_page_files;

/* --- page.c --- */
RV_MUST_CHECK int srv_page(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_login(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_logout(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_login_show(struct srv_call *c, rv_err **err);

/* --- handle.c --- */
/** What the authenticator is asked about; borrows from the request. */
struct rv_caller srv_caller_of(const struct rv_httpd_request *req);

#endif
