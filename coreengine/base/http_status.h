/* HTTP statuses in words: for status lines and for the titles of problem documents. */
#ifndef RV_BASE_HTTP_STATUS_H
#define RV_BASE_HTTP_STATUS_H

/** "Not Found" for 404; NULL: the status is not listed. Static. */
const char *rv_http_reason(int status);

#endif
