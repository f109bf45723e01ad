/* The head of a request: bytes to a struct, or a refusal. No I/O.
 *
 * Two readers look at each head. The scan comes first and refuses what parsers are known to disagree about: a CR or LF
 * that is not half of a line end, a line that continues the one before, control characters. Then this file reads the
 * lines by strict rules of its own, and llhttp reads them again: where the two differ the request is refused, because
 * a proxy in front of this server may have read it in either way. */
#include "coreengine/http/http_internal.h"

#include <stdlib.h>
#include <strings.h>

#define MAX_LENGTH_DIGITS 15 /* of a Content-Length: far above any limit, far below an overflow */

static bool refuse(struct rv_httpd_fault *why, int status, const char *code, const char *detail)
{
    *why = (struct rv_httpd_fault){status, code, detail};
    return false;
}

static bool bad(struct rv_httpd_fault *why, const char *detail)
{
    return refuse(why, 400, "bad_request", detail);
}

const char *rv_method_text(enum rv_method method)
{
    static const char *const texts[] = {
#define X(name) #name,
        RV_METHODS(X)
#undef X
    };

    return texts[method];
}

bool httpd_is_token(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!rv_is_letter(s.ptr[i]) && !rv_is_digit(s.ptr[i]) &&
            (s.ptr[i] == '\0' || !strchr("!#$%&'*+-.^_`|~", s.ptr[i])))
            return false;
    return s.len > 0;
}

/* --- the scan --- */

static bool is_in_limits(const struct rv_head_scan *s, const struct rv_httpd_limits *limits, struct rv_httpd_fault *why)
{
    if (s->n_lines == 0 && s->at > limits->max_target + 32) /* the method and the version are short */
        return refuse(why, 414, "uri_too_long", "the request target is too long");
    if (s->at > limits->max_head)
        return refuse(why, 431, "head_too_large", "the head of the request is too large");
    if (s->n_lines > limits->max_fields + 1)
        return refuse(why, 431, "too_many_fields", "the head of the request has too many fields");
    return true;
}

/* What follows a CR LF at the beginning of the line that was just begun. */
static bool is_line_start_right(const struct rv_head_scan *s, rv_str bytes, struct rv_httpd_fault *why)
{
    if (s->n_lines > 0 && s->line < bytes.len && (bytes.ptr[s->line] == ' ' || bytes.ptr[s->line] == '\t'))
        return bad(why, "a field that continues in a second line is not allowed");
    return true;
}

static bool is_plain(char c)
{
    return ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\t';
}

/* At a CR: 1, a line was ended; 2, the head was; 0, the next byte has not come; -1. */
static int end_line(struct rv_head_scan *s, rv_str bytes, struct rv_httpd_fault *why)
{
    if (s->at + 1 == bytes.len)
        return 0;
    if (bytes.ptr[s->at + 1] != '\n')
        return bad(why, "a carriage return without a line feed behind it"), -1;
    bool is_empty = s->at == s->line;
    if (is_empty && s->n_lines == 0)
        return bad(why, "an empty line where a request should begin"), -1;
    s->at += 2;
    s->line = s->at;
    s->n_lines += !is_empty;
    return is_empty ? 2 : 1;
}

ptrdiff_t httpd_head_scan(struct rv_head_scan *s, const struct rv_httpd_limits *limits, rv_str bytes,
                          struct rv_httpd_fault *why)
{
    for (int step = 1; step == 1 && s->at < bytes.len;) {
        while (s->at < bytes.len && is_plain(bytes.ptr[s->at]))
            s->at++;
        if (!is_line_start_right(s, bytes, why) || !is_in_limits(s, limits, why))
            return -1;
        if (s->at == bytes.len)
            return 0;
        if (bytes.ptr[s->at] != '\r')
            return bad(why, bytes.ptr[s->at] == '\n' ? "a line feed without a carriage return before it"
                                                     : "a control character in the head"),
                   -1;
        step = end_line(s, bytes, why);
        if (step < 0)
            return -1;
        if (step == 2)
            return is_in_limits(s, limits, why) ? (ptrdiff_t)s->at : -1;
    }
    return 0;
}

/* --- request line --- */

static bool method_of(rv_str word, enum rv_method *out, struct rv_httpd_fault *why)
{
    for (int i = 0; i < RV_N_METHODS; i++)
        if (rv_str_is(word, rv_method_text((enum rv_method)i))) {
            *out = (enum rv_method)i;
            return true;
        }
    if (rv_str_is(word, "CONNECT") || rv_str_is(word, "TRACE"))
        return refuse(why, 405, "method_not_allowed", "this method is not offered here");
    if (!httpd_is_token(word))
        return bad(why, "the request does not begin with a method");
    return refuse(why, 501, "not_implemented", "unknown method");
}

static bool version_of(rv_str word, bool *is_1_0, struct rv_httpd_fault *why)
{
    if (rv_str_is(word, "HTTP/1.1") || rv_str_is(word, "HTTP/1.0")) {
        *is_1_0 = word.ptr[7] == '0';
        return true;
    }
    if (word.len == 8 && memcmp(word.ptr, "HTTP/", 5) == 0 && rv_is_digit(word.ptr[5]) && word.ptr[6] == '.' &&
        rv_is_digit(word.ptr[7]))
        return refuse(why, 505, "version_not_supported", "use HTTP/1.1");
    return bad(why, "the request line does not end in the version HTTP/1.1");
}

static rv_str word_before(rv_str *rest, char end)
{
    const char *p = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;
    rv_str word = {rest->ptr, p ? (size_t)(p - rest->ptr) : rest->len};
    size_t used = word.len + (p != NULL);

    *rest = (rv_str){rest->ptr + used, rest->len - used};
    return word;
}

/* --- fields --- */

static void to_lower(rv_str s)
{
    char *p = (char *)s.ptr; /* the block is ours */

    for (size_t i = 0; i < s.len; i++)
        p[i] = rv_ascii_lower(p[i]);
}

static bool field_of(rv_str line, struct rv_httpd_field *out, struct rv_httpd_fault *why)
{
    rv_str name = word_before(&line, ':');

    if (name.ptr + name.len == line.ptr) /* no colon */
        return bad(why, "a line of the head has no colon");
    if (!httpd_is_token(name))
        return bad(why, "the name of a field has a character that is not allowed there");
    while (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
        line.ptr++, line.len--;
    while (line.len > 0 && (line.ptr[line.len - 1] == ' ' || line.ptr[line.len - 1] == '\t'))
        line.len--;
    to_lower(name);
    *out = (struct rv_httpd_field){name, line};
    return true;
}

bool rv_httpd_find_field(const struct rv_httpd_request *req, const char *name, rv_str *out, size_t *n)
{
    size_t found = 0;
    rv_str value = {NULL, 0};

    for (size_t i = 0; i < req->n_fields; i++)
        if (rv_str_is(req->fields[i].name, name) && found++ == 0)
            value = req->fields[i].value;
    if (n)
        *n = found;
    if (found == 1)
        *out = value;
    return found == 1;
}

bool rv_httpd_find_query(const struct rv_httpd_request *req, const char *name, rv_str *out)
{
    for (size_t i = 0; i < req->n_query; i++)
        if (rv_str_is(req->query[i].name, name)) {
            *out = req->query[i].value;
            return true;
        }
    return false;
}

static bool is_word(rv_str value, const char *lower)
{
    return value.len == strlen(lower) && strncasecmp(value.ptr, lower, value.len) == 0;
}

/* name[:port], [v6][:port], in characters that no reader takes for something else */
static bool is_host(rv_str h)
{
    size_t i = 0;

    if (h.len > 0 && h.ptr[0] == '[') {
        for (i = 1; i < h.len && (rv_is_hex(h.ptr[i]) || h.ptr[i] == ':' || h.ptr[i] == '.'); i++) {
        }
        if (i == h.len || h.ptr[i++] != ']' || i < 4)
            return false;
    } else {
        while (i < h.len &&
               (rv_is_letter(h.ptr[i]) || rv_is_digit(h.ptr[i]) || (h.ptr[i] != '\0' && strchr("-._", h.ptr[i]))))
            i++;
        if (i == 0)
            return false;
    }
    if (i < h.len && h.ptr[i++] != ':')
        return false;
    size_t n = h.len - i;
    for (; i < h.len; i++)
        if (!rv_is_digit(h.ptr[i]))
            return false;
    return n <= 5;
}

static bool read_host(struct rv_head *h, struct rv_httpd_fault *why)
{
    size_t n = 0;

    if (!rv_httpd_find_field(&h->req, "host", &h->req.host, &n))
        return bad(why, n == 0 ? "the field Host is missing" : "the field Host is there twice");
    if (!is_host(h->req.host))
        return bad(why, "the value of Host is not a host name with an optional port");
    to_lower(h->req.host);
    return true;
}

static bool read_length(struct rv_head *h, rv_str value, struct rv_httpd_fault *why)
{
    if (value.len == 0 || value.len > MAX_LENGTH_DIGITS)
        return bad(why, "the value of Content-Length is not a number of bytes");
    for (size_t i = 0; i < value.len; i++) {
        if (!rv_is_digit(value.ptr[i]))
            return bad(why, "the value of Content-Length is not a number of bytes");
        h->length = h->length * 10 + (uint64_t)(value.ptr[i] - '0');
    }
    return true;
}

static bool read_framing(struct rv_head *h, struct rv_httpd_fault *why)
{
    rv_str length = {NULL, 0}, coding = {NULL, 0}, expect = {NULL, 0};
    size_t n_lengths, n_codings, n_expects;

    rv_httpd_find_field(&h->req, "content-length", &length, &n_lengths);
    rv_httpd_find_field(&h->req, "transfer-encoding", &coding, &n_codings);
    rv_httpd_find_field(&h->req, "expect", &expect, &n_expects);
    if (n_lengths + n_codings > 1)
        return bad(why, "Content-Length and Transfer-Encoding may be there once, and not both");
    if (n_codings > 0 && h->is_1_0)
        return bad(why, "Transfer-Encoding is not part of HTTP/1.0");
    if (n_codings > 0 && !is_word(coding, "chunked"))
        return refuse(why, 501, "not_implemented", "the only transfer coding is chunked");
    h->is_chunked = n_codings > 0;
    if (n_lengths > 0 && !read_length(h, length, why))
        return false;
    if (n_expects > 1 || (n_expects == 1 && !is_word(expect, "100-continue")))
        return refuse(why, 417, "expectation_failed", "the only expectation is 100-continue");
    h->wants_continue = n_expects == 1 && !h->is_1_0;
    return true;
}

/* A body that is compressed would be read as if it were not. */
static bool has_plain_body(const struct rv_head *h, struct rv_httpd_fault *why)
{
    rv_str coding = {NULL, 0};
    size_t n = 0;

    rv_httpd_find_field(&h->req, "content-encoding", &coding, &n);
    if (n == 0 || (h->length == 0 && !h->is_chunked) || (n == 1 && is_word(coding, "identity")))
        return true;
    return refuse(why, 415, "unsupported_media_type",
                  "the body must not have a Content-Encoding; send it uncompressed");
}

static void read_connection(struct rv_head *h)
{
    h->wants_close = h->is_1_0;
    for (size_t i = 0; i < h->req.n_fields; i++) {
        rv_str rest = h->req.fields[i].value;
        if (!rv_str_is(h->req.fields[i].name, "connection"))
            continue;
        while (rest.len > 0)
            if (is_word(rv_str_trim(word_before(&rest, ',')), "close"))
                h->wants_close = true;
    }
}

/* --- the second reader --- */

struct judge {
    const struct rv_head *head;
    size_t n_fields;
    bool differs;
};

static int on_name(llhttp_t *p, const char *at, size_t len)
{
    struct judge *j = p->data;
    size_t i = j->n_fields++;

    if (i >= j->head->req.n_fields || at != j->head->req.fields[i].name.ptr || len != j->head->req.fields[i].name.len)
        j->differs = true;
    return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len)
{
    struct judge *j = p->data;
    const struct rv_httpd_field *f =
        j->n_fields <= j->head->req.n_fields ? &j->head->req.fields[j->n_fields - 1] : NULL;

    if (!f || len < f->value.len || (f->value.len > 0 && at != f->value.ptr))
        j->differs = true;
    return 0;
}

static int on_head(llhttp_t *p)
{
    struct judge *j = p->data;
    const struct rv_head *h = j->head;
    bool is_chunked = (p->flags & F_CHUNKED) != 0, has_length = (p->flags & F_CONTENT_LENGTH) != 0;

    p->upgrade = 0; /* an offer that this server does not take */
    if (j->n_fields != h->req.n_fields || is_chunked != h->is_chunked ||
        (has_length && p->content_length != h->length) || (!has_length && h->length > 0) || p->http_major != 1 ||
        p->http_minor != (h->is_1_0 ? 0 : 1))
        j->differs = true;
    return j->differs ? -1 : 0;
}

static int pause_parser(llhttp_t *p)
{
    (void)p;
    return HPE_PAUSED;
}

/* They stay with the parser until httpd_body_read() gives it its own. */
static const llhttp_settings_t judge_settings = {.on_header_field = on_name,
                                                 .on_header_value = on_value,
                                                 .on_headers_complete = on_head,
                                                 .on_message_complete = pause_parser};

static bool is_judged_alike(const struct rv_head *h, rv_str bytes, llhttp_t *parser, struct rv_httpd_fault *why)
{
    struct judge j = {.head = h};

    llhttp_init(parser, HTTP_REQUEST, &judge_settings);
    parser->data = &j;
    llhttp_errno_t rc = llhttp_execute(parser, bytes.ptr, bytes.len);
    parser->data = NULL;
    if (j.differs || (rc != HPE_OK && rc != HPE_PAUSED))
        return bad(why, "the request can be read in more than one way");
    return true;
}

/* --- the whole head --- */

static size_t count(rv_str s, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == c;
    return n;
}

static rv_str line_of(rv_str *rest)
{
    rv_str line = word_before(rest, '\r');

    rest->ptr++, rest->len--; /* the LF */
    return line;
}

struct request_line {
    rv_str method, target, version;
};

static struct request_line split(rv_str line)
{
    struct request_line r;

    r.method = word_before(&line, ' ');
    r.target = word_before(&line, ' ');
    r.version = line;
    return r;
}

/* The block: fields, segments, query, a copy of the head, room for the decoded target. */
static bool make_room(rv_str bytes, rv_str target, size_t n_fields, struct rv_head *out, char **text)
{
    size_t n_segments = count(target, '/') + 1, n_query = count(target, '&') + 1;
    size_t n_head = n_fields * sizeof(struct rv_httpd_field) + n_segments * sizeof(rv_str) +
                    n_query * sizeof(struct rv_httpd_field);
    char *block = malloc(n_head + bytes.len + target.len);

    if (!block)
        return false;
    struct rv_httpd_field *fields = (struct rv_httpd_field *)(void *)block, *query = fields + n_fields;
    out->block = block;
    out->req.fields = fields;
    out->req.query = query;
    out->req.segments = (rv_str *)(void *)(query + n_query);
    *text = block + n_head;
    memcpy(*text, bytes.ptr, bytes.len);
    return true;
}

static bool read_lines(rv_str bytes, const struct rv_httpd_limits *limits, size_t n_fields, struct rv_head *h,
                       struct rv_httpd_fault *why)
{
    rv_str rest = bytes;
    struct request_line r = split(line_of(&rest));

    if (!method_of(r.method, &h->req.method, why) || !version_of(r.version, &h->is_1_0, why))
        return false;
    if (r.target.len > limits->max_target)
        return refuse(why, 414, "uri_too_long", "the request target is too long");
    for (size_t i = 0; i < n_fields; i++)
        if (!field_of(line_of(&rest), (struct rv_httpd_field *)&h->req.fields[i], why))
            return false;
    h->req.n_fields = n_fields;
    if (!read_host(h, why) || !read_framing(h, why) || !has_plain_body(h, why))
        return false;
    read_connection(h);
    return httpd_target_read(r.target, &h->req, (rv_str *)h->req.segments, (struct rv_httpd_field *)h->req.query,
                             (char *)bytes.ptr + bytes.len, why);
}

bool httpd_head_read(rv_str bytes, const struct rv_head_scan *scan, const struct rv_httpd_limits *limits,
                     struct rv_head *out, llhttp_t *parser, struct rv_httpd_fault *why)
{
    struct rv_head h = {.req.method = RV_METHOD_GET};
    rv_str rest = bytes;
    size_t n_fields = scan->n_lines - 1;
    char *text = NULL;

    if (!make_room(bytes, split(line_of(&rest)).target, n_fields, &h, &text))
        return refuse(why, 500, "no_memory", "the server is out of memory");
    bytes.ptr = text;
    if (!read_lines(bytes, limits, n_fields, &h, why) || !is_judged_alike(&h, bytes, parser, why)) {
        free(h.block);
        return false;
    }
    *out = h;
    return true;
}

bool httpd_head_is_ours(rv_str host, char *const *names, size_t n_names, bool is_loopback)
{
    const char *colon = host.len > 0 && host.ptr[host.len - 1] == ']' ? NULL : memrchr(host.ptr, ':', host.len);
    rv_str name = {host.ptr, colon ? (size_t)(colon - host.ptr) : host.len};
    struct in_addr address;
    char text[INET_ADDRSTRLEN] = "";

    if (name.len > 1 && name.ptr[name.len - 1] == '.') /* an absolute name */
        name.len--;
    for (size_t i = 0; i < n_names; i++)
        if (is_word(name, names[i]))
            return true;
    if (n_names > 0 || !is_loopback)
        return n_names == 0;
    if (name.len < sizeof text)
        memcpy(text, name.ptr, name.len);
    return rv_str_is(name, "localhost") || rv_str_is(name, "[::1]") ||
           (inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}
