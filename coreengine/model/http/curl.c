/* libcurl: opened when it is first needed, told what a request is, and its verdicts as faults.
 *
 * It brings some thirty libraries and 4 ms with it, which every start of the program would pay for otherwise. Local:
 * its symbols are not offered to capabilities. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "coreengine/base/base.h"
#include "coreengine/model/http/http_internal.h"

#define MIN_VERSION        0x075000 /* 7.80.0: CURLOPT_PREREQFUNCTION, which tells when a request is about to be sent */
#define READ_BYTES         4096L    /* a stream that waits keeps that much; a piece of one has some hundred bytes */
#define WRITE_BYTES        16384L   /* the least that libcurl takes */
#define KEEPALIVE_IDLE_S   60L      /* without traffic, until the kernel asks whether the server is still there */
#define KEEPALIVE_PROBE_S  30L      /* between two such questions */
#define MAX_REQUEST_FIELDS 256      /* headers of a request: more is a bug of the caller */

/* --- opening --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table of libcurl, and is_open; leaf */
static struct rv_curl table;
static bool is_open;

static const struct rv_library_function functions[] = {
#define X(name) {"curl_" #name, offsetof(struct rv_curl, name), RV_LINKED(curl_##name)},
    RV_CURL_FUNCTIONS(X)
#undef X
};

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
    static const struct rv_library lib = {
        .file = "libcurl.so.4",
        .what = "the HTTP library",
        .missing = RV_E_NOT_FOUND,
        .hint = "install libcurl (Debian package libcurl4)",
        .functions = functions,
        .n_functions = RV_COUNT(functions),
    };
    void *handle;

    if (is_open)
        return 0;
    int rc = rv_library_open(&lib, &table, &handle, err);
    if (rc < 0)
        return rc;
    rc = set_up(&table, err);
    if (rc < 0) {
        if (handle)
            dlclose(handle);
        return rc;
    }
    is_open = true;
    return 0;
}

int http_curl_open(const struct rv_curl **out, rv_err **err)
{
    pthread_mutex_lock(&lock);
    int rc = open_once(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &table;
    return rc;
}

const char *rv_http_library(void)
{
    pthread_mutex_lock(&lock);
    const char *text = is_open ? table.version() : NULL;
    pthread_mutex_unlock(&lock);
    return text;
}

/* --- requests: checked and set on libcurl's handle --- */

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

/* "Name:" would remove a header: one with an empty value is "Name;" to libcurl. */
static int add_request_header(rv_http_call *c, const char *line, rv_err **err)
{
    size_t n = token_length(line);

    if (line[n + 1 + strspn(line + n + 1, " \t")])
        return add_header(c, line, err);
    RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT(n + 2);
    rv_buf_add(&name, line, n);
    rv_buf_putc(&name, ';');
    int rc = rv_buf_check(&name, "a header", err);
    return rc < 0 ? rc : add_header(c, rv_buf_cstr(&name), err);
}

static int add_headers(rv_http_call *c, const struct rv_http_request *req, rv_err **err)
{
    /* libcurl waits up to a second for permission to send a larger body; and it calls a body a form when no type is
     * set. A name without a value removes a header that libcurl adds. */
    int rc = add_header(c, "Expect:", err);

    if (rc == 0 && !has_header(req, "Content-Type"))
        rc = add_header(c, "Content-Type:", err);
    for (size_t i = 0; i < req->n_headers && rc == 0; i++)
        rc = add_request_header(c, req->headers[i], err);
    return rc;
}

/* For the decision whether it may be asked: IPv6 without brackets. */
static int keep_host(rv_http_call *c, const char *host, const char *port, rv_err **err)
{
    rv_str bare = rv_str_of(host);

    if (bare.len > 1 && bare.ptr[0] == '[' && bare.ptr[bare.len - 1] == ']')
        bare = (rv_str){bare.ptr + 1, bare.len - 2};
    c->host = rv_str_dup(bare);
    c->port = (int)strtol(port, NULL, 10);
    return c->host ? 0 : RV_FAIL(err, RV_E_NOMEM, "start a request");
}

/* "host:port" of an address, or an error. The address itself is not shown: its query or its user may be secret. */
static int read_origin(rv_http_call *c, CURLU *url, const char *text, rv_err **err)
{
    const struct rv_curl *curl = c->h->curl;
    char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL, *password = NULL;
    RV_AUTO(rv_buf_fini) rv_buf origin = RV_BUF_INIT(RV_HTTP_TEXT_MAX / 2);
    CURLUcode rc = curl->url_set(url, CURLUPART_URL, text, 0);
    int status = 0;

    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_SCHEME, &scheme, 0);
    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_HOST, &host, 0);
    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    bool has_user = rc == CURLUE_OK && (curl->url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK ||
                                        curl->url_get(url, CURLUPART_PASSWORD, &password, 0) == CURLUE_OK);
    if (rc == CURLUE_OUT_OF_MEMORY)
        status = RV_FAIL(err, RV_E_NOMEM, "start a request");
    else if (rc != CURLUE_OK || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        status = RV_FAIL(err, RV_E_INVALID, "the address of the request is not one of http:// or https://");
    else if (c->egress && has_user)
        status = RV_FAIL(err, RV_E_DENIED, "the address of the request has a user or a password in it");
    else {
        status = c->egress ? keep_host(c, host, port, err) : 0;
        rv_buf_printf(&origin, "%s:%s", host, port);
        c->origin = rv_buf_steal(&origin, NULL);
        if (!c->origin && status == 0)
            status = RV_FAIL(err, origin.rc == RV_E_LIMIT ? RV_E_INVALID : RV_E_NOMEM,
                             "take the host out of the address of the request");
    }
    curl->free(scheme);
    curl->free(host);
    curl->free(port);
    curl->free(user);
    curl->free(password);
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

/* "scheme://host:port" of an address. NULL: it has none, or memory is short. */
static char *origin_of(const struct rv_curl *curl, CURLU *url)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    rv_buf out = RV_BUF_INIT(RV_HTTP_TEXT_MAX);

    for (size_t i = 0; i < RV_COUNT(parts); i++) {
        char *part = NULL;
        if (curl->url_get(url, parts[i], &part, CURLU_DEFAULT_PORT) == CURLUE_OK)
            rv_buf_printf(&out, "%s%s", i == 1 ? "://" : i == 2 ? ":" : "", part);
        curl->free(part);
    }
    char *text = rv_buf_steal(&out, NULL);
    rv_buf_fini(&out);
    return text;
}

/* Where a redirect leads. Borrowed. */
struct hop {
    const char *base, *location;
};
static int follow(const struct rv_curl *curl, CURLU *url, const struct hop *hop, rv_buf *out,
                  struct rv_http_redirect *kind, rv_err **err)
{
    char *before = NULL, *after = NULL, *text = NULL;
    CURLUcode rc = curl->url_set(url, CURLUPART_URL, hop->base, 0);

    before = rc == CURLUE_OK ? origin_of(curl, url) : NULL;
    if (rc == CURLUE_OK)
        rc = curl->url_set(url, CURLUPART_URL, hop->location, 0);
    after = rc == CURLUE_OK ? origin_of(curl, url) : NULL;
    if (rc == CURLUE_OK)
        rc = curl->url_get(url, CURLUPART_URL, &text, 0);
    bool is_http = before && after && (strncmp(after, "http://", 7) == 0 || strncmp(after, "https://", 8) == 0);
    if (rc == CURLUE_OK && is_http) {
        rv_buf_puts(out, text);
        kind->same_origin = strcmp(before, after) == 0;
        kind->is_safe = strncmp(before, "https:", 6) != 0 || strncmp(after, "https:", 6) == 0;
    }
    bool no_memory = rc == CURLUE_OUT_OF_MEMORY || (rc == CURLUE_OK && (!before || !after));
    free(before);
    free(after);
    curl->free(text);
    if (no_memory)
        return RV_FAIL(err, RV_E_NOMEM, "follow a redirect");
    return rc == CURLUE_OK && is_http ? rv_buf_check(out, "address of a redirect", err)
                                      : RV_FAIL(err, RV_E_INVALID, "a redirect leads to no address of http or https");
}

int rv_http_follow(rv_http *h, const char *base, const char *location, rv_buf *out, struct rv_http_redirect *kind,
                   rv_err **err)
{
    CURLU *url = h->curl->url();
    if (!url)
        return RV_FAIL(err, RV_E_NOMEM, "follow a redirect");
    int rc = follow(h->curl, url, &(const struct hop){.base = base, .location = location}, out, kind, err);
    h->curl->url_cleanup(url);
    return rc;
}

/* Whole milliseconds, rounded up; libcurl's longest (24 days) for "no limit". */
static long connect_ms(int64_t limit_us)
{
    if (limit_us <= 0 || limit_us / RV_US_PER_MS >= INT_MAX)
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
    if (req->egress) { /* a connection of another request, or a proxy, was never checked */
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_FRESH_CONNECT, 1L);
        SET(CURLOPT_FORBID_REUSE, 1L);
    } else if (req->proxy)
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
    SET(CURLOPT_BUFFERSIZE, READ_BYTES);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, WRITE_BYTES);
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

int http_configure(rv_http_call *c, const struct rv_http_request *req, rv_err **err)
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

/* --- verdicts as faults, and the sentence for people. It names the host and the reason, never a header, a path or a
 * query: those may hold keys --- */

/* What libcurl says when the other side talks, but not HTTP. */
static bool is_bad_answer(CURLcode code)
{
    static const CURLcode codes[] = {CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING,
                                     CURLE_WRITE_ERROR, CURLE_FILESIZE_EXCEEDED};

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (code == codes[i])
            return true;
    return false;
}

static bool is_local(CURLcode code)
{
    static const CURLcode codes[] = {CURLE_FAILED_INIT,          CURLE_NOT_BUILT_IN,         CURLE_OUT_OF_MEMORY,
                                     CURLE_ABORTED_BY_CALLBACK,  CURLE_UNKNOWN_OPTION,       CURLE_URL_MALFORMAT,
                                     CURLE_SETOPT_OPTION_SYNTAX, CURLE_SSL_CACERT_BADFILE,   CURLE_READ_ERROR,
                                     CURLE_RECURSIVE_API_CALL,   CURLE_UNRECOVERABLE_POLL,   CURLE_UNSUPPORTED_PROTOCOL,
                                     CURLE_SSL_ENGINE_NOTFOUND,  CURLE_BAD_FUNCTION_ARGUMENT};

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (code == codes[i])
            return true;
    return false;
}

bool http_is_scarce(int os_error)
{
    return os_error == EMFILE || os_error == ENFILE || os_error == ENOBUFS || os_error == ENOMEM;
}

enum rv_http_fault http_fault_of(const rv_http_call *c)
{
    bool was_sent = c->sent_us != 0;

    if (c->fault != RV_HTTP_OK)
        return c->fault;
    if (c->code == CURLE_OK) /* libcurl takes a head for complete when the connection ends in it */
        return c->head.phase == RV_HEAD_COMPLETE ? RV_HTTP_OK : RV_HTTP_CUT;
    if (was_sent && is_bad_answer(c->code))
        return RV_HTTP_BAD_ANSWER;
    /* libcurl gives up on one endless header line by running out of the memory that it allows itself. */
    if (c->code == CURLE_OUT_OF_MEMORY && c->answer_us && c->head.phase != RV_HEAD_COMPLETE)
        return RV_HTTP_BAD_ANSWER;
    if (is_local(c->code))
        return RV_HTTP_LOCAL;
    if (was_sent)
        return RV_HTTP_CUT;
    return c->code == CURLE_OPERATION_TIMEDOUT ? RV_HTTP_CONNECT_TIME : RV_HTTP_UNREACHABLE;
}

static const char *reason_of(const rv_http_call *c)
{
    if (c->reason)
        return c->reason;
    if (http_is_scarce(c->os_error))
        return strerror(c->os_error);
    if (c->code == CURLE_OK)
        return "it ended in the head of the answer";
    return c->error[0] ? c->error : c->h->curl->easy_strerror(c->code);
}

static void no_control_characters(char *text)
{
    for (size_t left = strlen(text); left > 0; text++, left--)
        for (size_t n = rv_utf8_control(text, left); n > 0; n--)
            text[n - 1] = ' ';
}

void http_fault_text(const rv_http_call *c, enum rv_http_fault fault, char out[RV_HTTP_TEXT_MAX])
{
    const size_t max = RV_HTTP_TEXT_MAX;

    out[0] = '\0';
    switch (fault) {
    case RV_HTTP_OK:
        break;
    case RV_HTTP_UNREACHABLE:
        snprintf(out, max, "%s: no connection: %s", c->origin, reason_of(c));
        break;
    case RV_HTTP_CUT:
        snprintf(out, max, "%s: the connection broke: %s", c->origin, reason_of(c));
        break;
    case RV_HTTP_CONNECT_TIME:
        snprintf(out, max, "%s: no connection within %" PRId64 " ms: %s", c->origin, c->connect_us / RV_US_PER_MS,
                 reason_of(c));
        break;
    case RV_HTTP_FIRST_BYTE_TIME:
        snprintf(out, max, "%s: no answer within %" PRId64 " ms", c->origin, c->first_byte_us / RV_US_PER_MS);
        break;
    case RV_HTTP_IDLE_TIME:
        snprintf(out, max, "%s: silent for %" PRId64 " ms in the middle of the answer", c->origin,
                 c->idle_us / RV_US_PER_MS);
        break;
    case RV_HTTP_TOTAL_TIME:
        snprintf(out, max, "%s: not done within %" PRId64 " ms", c->origin, c->total_us / RV_US_PER_MS);
        break;
    case RV_HTTP_TOO_LARGE:
        snprintf(out, max, "%s: the answer is larger than %zu bytes", c->origin, c->max_body);
        break;
    case RV_HTTP_BAD_ANSWER:
        snprintf(out, max, "%s: the answer is not valid HTTP: %s", c->origin, reason_of(c));
        break;
    case RV_HTTP_LOCAL:
        snprintf(out, max, "%s: not possible here: %s", c->origin, reason_of(c));
        break;
    }
    no_control_characters(out);
}
