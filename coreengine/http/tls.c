/* TLS of a connection. OpenSSL reads from the bytes that the socket has given and writes to what is to be sent: no copy
 * of either is kept for it. */
#include <stdlib.h>

#include "coreengine/http/tls_internal.h"

#define RECORD_BYTES ((size_t)16 << 10) /* the largest one that TLS has */

struct rv_tls {
    const struct rv_openssl *lib;
    struct rv_conn *c;
    SSL *ssl;       /* owned */
    rv_str in;      /* what has come and is not read */
    bool is_failed; /* no word may follow */
};
/* For one call at a time, of any connection. */
struct rv_tls_room {
    char in[RECORD_BYTES], out[RECORD_BYTES];
};

struct rv_tls_room *rv_tls_room_new(void)
{
    return malloc(sizeof(struct rv_tls_room));
}

void rv_tls_room_free(struct rv_tls_room *room)
{
    free(room);
}

/* --- for OpenSSL --- */

static struct rv_tls *of_bio(BIO *bio)
{
    const struct rv_openssl *lib = NULL;

    /* It is open: there is a BIO. */
    return rv_openssl_open(&lib, NULL) == 0 ? lib->BIO_get_data(bio) : NULL;
}

int rv_tls_bio_write(BIO *bio, const char *bytes, int len)
{
    struct rv_tls *t = of_bio(bio);

    rv_out_raw(t->c, NULL, 0, (rv_str){bytes, (size_t)len}, RV_BODY_BORROWED);
    return len; /* what went wrong is known to the connection */
}

int rv_tls_bio_read(BIO *bio, char *room, int len)
{
    struct rv_tls *t = of_bio(bio);
    size_t n = t->in.len < (size_t)len ? t->in.len : (size_t)len;

    t->lib->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (n == 0) {
        t->lib->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    memcpy(room, t->in.ptr, n);
    t->in = (rv_str){t->in.ptr + n, t->in.len - n};
    return (int)n;
}

long rv_tls_bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio, (void)num, (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

/* --- for the connection --- */

struct rv_tls *rv_tls_new(const struct rv_tls_ctx *ctx, struct rv_conn *c)
{
    const struct rv_openssl *lib = ctx->lib;
    struct rv_tls *t = calloc(1, sizeof *t);
    BIO *bio = t ? lib->BIO_new(lib->method) : NULL;

    if (t)
        t->ssl = lib->SSL_new(ctx->ctx);
    if (!bio || !t->ssl) {
        if (t && t->ssl)
            lib->SSL_free(t->ssl);
        if (bio)
            lib->BIO_free(bio);
        free(t);
        lib->ERR_clear_error();
        return NULL;
    }
    t->lib = lib;
    t->c = c;
    lib->BIO_set_data(bio, t);
    lib->BIO_set_init(bio, 1);
    lib->SSL_set_bio(t->ssl, bio, bio); /* which takes it */
    lib->SSL_set_accept_state(t->ssl);
    return t;
}

void rv_tls_free(struct rv_tls *t)
{
    if (!t)
        return;
    t->lib->SSL_free(t->ssl);
    free(t);
}

bool rv_tls_is_up(const struct rv_tls *t)
{
    return t->lib->SSL_is_init_finished(t->ssl) && !t->is_failed;
}

bool rv_tls_read(struct rv_tls *t, rv_str bytes)
{
    const struct rv_openssl *lib = t->lib;
    char *room = t->c->s->tls_room->in;

    t->in = bytes;
    for (;;) {
        lib->ERR_clear_error();
        int n = lib->SSL_read(t->ssl, room, (int)RECORD_BYTES);
        if (t->c->state == RV_CONN_CLOSED)
            return true;
        if (n > 0) {
            rv_conn_input(t->c, (rv_str){room, (size_t)n});
            continue;
        }
        int why = lib->SSL_get_error(t->ssl, n);
        lib->ERR_clear_error();
        t->in = (rv_str){NULL, 0};
        if (why == SSL_ERROR_WANT_READ)
            return true;
        t->is_failed = why != SSL_ERROR_ZERO_RETURN; /* after a failure even a farewell is an error */
        return false;
    }
}

static void write_record(struct rv_tls *t, rv_str bytes)
{
    while (bytes.len > 0 && !t->is_failed) {
        size_t part = bytes.len < (size_t)1 << 30 ? bytes.len : (size_t)1 << 30;
        t->lib->ERR_clear_error();
        int n = t->lib->SSL_write(t->ssl, bytes.ptr, (int)part);
        if (n <= 0) {
            t->lib->ERR_clear_error();
            t->is_failed = true;
            rv_conn_break(t->c, RV_GONE_FAILED);
            return;
        }
        bytes = (rv_str){bytes.ptr + n, bytes.len - (size_t)n};
    }
}

void rv_tls_write(struct rv_tls *t, const rv_str *v, size_t n, rv_str last)
{
    char *room = t->c->s->tls_room->out;
    size_t len = 0;

    for (size_t i = 0; i <= n; i++) { /* small pieces share a record */
        rv_str s = i < n ? v[i] : last;
        if (s.len > RECORD_BYTES - len) {
            write_record(t, (rv_str){room, len});
            len = 0;
        }
        if (s.len > RECORD_BYTES) {
            write_record(t, s);
        } else if (s.len > 0) {
            memcpy(room + len, s.ptr, s.len);
            len += s.len;
        }
    }
    write_record(t, (rv_str){room, len});
}

void rv_tls_end(struct rv_tls *t)
{
    if (!rv_tls_is_up(t))
        return;
    t->lib->ERR_clear_error();
    RV_IGNORE(t->lib->SSL_shutdown(t->ssl) < 0, "a farewell; the client may be gone");
    t->lib->ERR_clear_error();
}
