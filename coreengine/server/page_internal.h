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
/** The answer is bytes that outlive the call and are asked for again by their tag: 304 where the client has them. */
void srv_page_tagged(struct srv_call *c, const char *etag, const char *type, rv_str bytes);
RV_MUST_CHECK int srv_page(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_login(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_logout(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_login_show(struct srv_call *c, rv_err **err);

/* --- misc.c --- */
struct srv_document { /* made once */
    rv_buf text;
    char etag[20]; /* with its quotes */
};
/** What GET /openapi.json answers. */
RV_MUST_CHECK int srv_openapi_make(struct srv_document **out, rv_err **err);
void srv_document_free(struct srv_document *d); /* NULL is fine */

/* --- handle.c --- */
/** What the authenticator is asked about; borrows from the request. */
struct rv_caller srv_caller_of(const struct rv_httpd_request *req);

#endif
