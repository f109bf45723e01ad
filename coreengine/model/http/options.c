/* A request, checked and set on libcurl's handle. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/model/http/http_internal.h"

#define BUFFER_BYTES       16384L /* per connection; libcurl's own default is as large */
#define KEEPALIVE_IDLE_S   60L
#define KEEPALIVE_PROBE_S  30L
#define MAX_REQUEST_FIELDS 256 /* more is a bug of the caller, not a request */

/* What RFC 9110 lets a method and a header's name consist of. */
static size_t token_length(const char *text)
{
    return strspn(text, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
}

static int check_headers(const struct rv_http_request *req, rv_err **err)
{
    if (req->n_headers > MAX_REQUEST_FIELDS)
        return RV_FAIL(err, RV_E_INVALID, "the request has %zu headers, more than %d", req->n_headers,
                       MAX_REQUEST_FIELDS);
    for (size_t i = 0; i < req->n_headers; i++) { /* their values are secret: only names appear in errors */
        const char *line = req->headers[i];
        size_t n = token_length(line);
        if (n == 0 || line[n] != ':')
            return RV_FAIL(err, RV_E_INVALID, "header %zu of the request is not of the form \"Name: value\"", i + 1);
        for (const unsigned char *p = (const unsigned char *)line; *p; p++)
            if ((*p < ' ' && *p != '\t') || *p == 127)
                return RV_FAIL(err, RV_E_INVALID, "header \"%.*s\" of the request has a control character in it",
                               (int)n, line);
    }
    return 0;
}

static bool has_header(const struct rv_http_request *req, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < req->n_headers; i++)
        if (strncasecmp(req->headers[i], name, n) == 0 && req->headers[i][n] == ':')
            return true;
    return false;
}

static int add_header(rv_http_call *c, const char *line, rv_err **err)
{
    struct curl_slist *list = c->h->curl->slist_append(c->headers, line);

    if (!list)
        return RV_FAIL(err, RV_E_NOMEM, "start a request");
    c->headers = list;
    return 0;
}

static int add_headers(rv_http_call *c, const struct rv_http_request *req, rv_err **err)
{
    /* libcurl waits up to a second for permission to send a larger body; and it calls a body a form when no type is
     * set. A name without a value removes a header that libcurl adds. */
    int rc = add_header(c, "Expect:", err);

    if (rc == 0 && !has_header(req, "Content-Type"))
        rc = add_header(c, "Content-Type:", err);
    for (size_t i = 0; i < req->n_headers && rc == 0; i++)
        rc = add_header(c, req->headers[i], err);
    return rc;
}

/* "host:port" of an address, or an error. The address itself is not shown: its query or its user may be secret. */
static int read_origin(rv_http_call *c, CURLU *url, const char *text, rv_err **err)
{
    const struct rv_curl *curl = c->h->curl;
    char *scheme = NULL, *host = NULL, *port = NULL;
    RV_AUTO(rv_buf_fini) rv_buf origin = RV_BUF_INIT(RV_HTTP_TEXT_MAX / 2);
    CURLUcode rc = curl->url_set(url, CURLUPART_URL, text, 0);
    int status = 0;

    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_SCHEME, &scheme, 0);
    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_HOST, &host, 0);
    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (rc == CURLUE_OUT_OF_MEMORY)
        status = RV_FAIL(err, RV_E_NOMEM, "start a request");
    else if (rc != CURLUE_OK || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        status = RV_FAIL(err, RV_E_INVALID, "the address of the request is not one of http:// or https://");
    else {
        rv_buf_printf(&origin, "%s:%s", host, port);
        c->origin = rv_buf_steal(&origin, NULL);
        if (!c->origin)
            status = RV_FAIL(err, origin.rc == RV_E_LIMIT ? RV_E_INVALID : RV_E_NOMEM,
                             "take the host out of the address of the request");
    }
    curl->free(scheme);
    curl->free(host);
    curl->free(port);
    return status;
}

static int check_address(rv_http_call *c, const char *text, rv_err **err)
{
    if (!text || (strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0))
        return RV_FAIL(err, RV_E_INVALID, "the address of the request is not one of http:// or https://");
    CURLU *url = c->h->curl->url();
    if (!url)
        return RV_FAIL(err, RV_E_NOMEM, "start a request");
    int rc = read_origin(c, url, text, err);
    c->h->curl->url_cleanup(url);
    return rc;
}

/* Whole milliseconds, rounded up; libcurl's longest (24 days) for "no limit". */
static long connect_ms(int64_t limit_us)
{
    if (limit_us <= 0 || limit_us / 1000 >= INT_MAX)
        return INT_MAX;
    return (long)((limit_us + 999) / 1000);
}

#define SET(option, value)                                                                                             \
    do {                                                                                                               \
        if (rc == CURLE_OK)                                                                                            \
            rc = c->h->curl->easy_setopt(c->easy, (option), (value));                                                  \
    } while (0)

static CURLcode set_request(rv_http_call *c, const struct rv_http_request *req)
{
    CURLcode rc = CURLE_OK;

    SET(CURLOPT_URL, req->url);
    if (req->body.len > 0 || strcmp(req->method, "POST") == 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDS, req->body.len > 0 ? req->body.ptr : ""); /* not copied */
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.len);
    } else if (strcmp(req->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    SET(CURLOPT_CUSTOMREQUEST, req->method);
    SET(CURLOPT_HTTPHEADER, c->headers);
    SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms(req->connect_us));
    if (req->proxy)
        SET(CURLOPT_PROXY, req->proxy);
    if (req->ca_file)
        SET(CURLOPT_CAINFO, req->ca_file);
    /* The folder of the system's certificates is searched beside any file: without it the file given is the only
     * one trusted, and libcurl reads the system's file once instead of once a connection. */
    if (req->ca_file || c->h->curl->has_bundle)
        SET(CURLOPT_CAPATH, NULL);
    return rc;
}

static CURLcode set_policy(rv_http_call *c)
{
    CURLcode rc = CURLE_OK;

    SET(CURLOPT_USERAGENT, c->h->user_agent);
    SET(CURLOPT_ERRORBUFFER, c->error);
    SET(CURLOPT_NOSIGNAL, 1L); /* no SIGALRM; names are resolved in threads */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_ACCEPT_ENCODING, "");          /* all that libcurl can undo */
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's answer is not the answer */
    SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES);     /* to read */
    SET(CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_PROBE_S);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A call that is cancelled while its name is being resolved leaves the resolving thread to itself instead of
     * waiting for it. The library in use may be older than the header and not know this: it waits then. */
    if (rc == CURLE_OK)
        RV_IGNORE(c->h->curl->easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L), "an optional improvement");
#endif
    return rc;
}

int rv_http_configure(rv_http_call *c, const struct rv_http_request *req, rv_err **err)
{
    if (!req->method || req->method[0] == '\0' || req->method[token_length(req->method)] != '\0')
        return RV_FAIL(err, RV_E_INVALID, "the method of the request is not a word");
    int rc = check_address(c, req->url, err);
    if (rc == 0)
        rc = check_headers(req, err);
    if (rc == 0)
        rc = add_headers(c, req, err);
    if (rc < 0)
        return rc;
    CURLcode code = set_policy(c);
    if (code == CURLE_OK)
        code = set_request(c, req);
    if (code != CURLE_OK)
        return RV_FAIL(err, code == CURLE_OUT_OF_MEMORY ? RV_E_NOMEM : RV_E_INTERNAL, "start a request to %s: %s",
                       c->origin, c->h->curl->easy_strerror(code));
    return 0;
}
