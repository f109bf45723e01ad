/* TLS of a connection. OpenSSL reads from the bytes that the socket has given and writes to what is to be sent: no copy
 * of either is kept for it. */
#include "coreengine/base/base.h"
#include "coreengine/http/tls_internal.h"

#include <pthread.h>
#include <stdlib.h>

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr);
static int bio_read(BIO *bio, char *room, int len);
static int bio_write(BIO *bio, const char *bytes, int len);

/* --- libssl: opened when the first listener with a certificate is made, and the certificates of listeners. Local: its
 * symbols are not offered to capabilities --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table of libssl, and is_open; leaf */
static struct rv_openssl table;
static bool is_open;

static const struct rv_library_function functions[] = {
#define X(name) {#name, offsetof(struct rv_openssl, name), RV_LINKED(name)},
    RV_TLS_FUNCTIONS(X)
#undef X
};

static int open_once(rv_err **err)
{
    static const struct rv_library lib = {
        .file = "libssl.so.3",
        .what = "the TLS library",
        .missing = RV_E_NOT_FOUND,
        .hint = "install OpenSSL 3 (Debian package libssl3), or let a proxy in front of reeve do TLS",
        .functions = functions,
        .n_functions = RV_COUNT(functions),
    };
    void *handle;

    if (is_open)
        return 0;
    int rc = rv_library_open(&lib, &table, &handle, err);
    if (rc < 0)
        return rc;
    table.method = table.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "connection");
    if (!table.method || !table.BIO_meth_set_write(table.method, bio_write) ||
        !table.BIO_meth_set_read(table.method, bio_read) || !table.BIO_meth_set_ctrl(table.method, bio_ctrl))
        return RV_FAIL(err, RV_E_NOMEM, "set the TLS library up");
    is_open = true;
    return 0;
}

/* Opens libssl once in a process; never closed. RV_E_NOT_FOUND, RV_E_VERSION, RV_E_NOMEM. */
static int openssl_open(const struct rv_openssl **out, rv_err **err)
{
    pthread_mutex_lock(&lock);
    int rc = open_once(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &table;
    return rc;
}

/* --- certificates --- */

void tls_ctx_free(struct rv_tls_ctx *t)
{
    if (t)
        t->lib->SSL_CTX_free(t->ctx); /* connections hold it until they end */
    free(t);
}

static int no_passphrase(char *room, int size, int is_writing, void *self)
{
    (void)room, (void)size, (void)is_writing, (void)self;
    return -1; /* the library would ask at the terminal */
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned in_len, void *self)
{
    static const unsigned char ours[] = "\x08http/1.1";
    const struct rv_openssl *lib = self;

    (void)ssl;
    /* *out has another type by history; it is not written to. */
    return lib->SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof ours - 1, in, in_len) ==
                   OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_NOACK;
}

static int fail_file(const struct rv_openssl *lib, const char *what, const char *path, rv_err **err)
{
    unsigned long code = lib->ERR_get_error();
    const char *why = code ? lib->ERR_reason_error_string(code) : NULL;

    lib->ERR_clear_error();
    if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE)
        return RV_FAIL(err, RV_E_NOMEM, "read the %s \"%s\"", what, path);
    if (ERR_SYSTEM_ERROR(code)) {
        RV_FAIL(err, RV_E_NOT_FOUND, "read the %s \"%s\": %s", what, path, why ? why : "it cannot be opened");
        rv_err_set_hint(err, "check the path, and that the user of this process may read the file");
        return RV_E_NOT_FOUND;
    }
    RV_FAIL(err, RV_E_INVALID, "the %s \"%s\" cannot be used: %s", what, path, why ? why : "it is not valid PEM");
    rv_err_set_hint(err, "use PEM files; the key without passphrase, the certificate of the server first in its file");
    return RV_E_INVALID;
}

static int load(struct rv_tls_ctx *t, const char *certificate, const char *key, rv_err **err)
{
    const struct rv_openssl *lib = t->lib;
    SSL_CTX *ctx = t->ctx;

    lib->ERR_clear_error();
    lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    lib->SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    lib->SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    lib->SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    lib->SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, (void *)lib);
    if (lib->SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1)
        return fail_file(lib, "certificate", certificate, err);
    if (lib->SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 || lib->SSL_CTX_check_private_key(ctx) != 1)
        return fail_file(lib, "private key", key, err);
    return 0;
}

int tls_ctx_new(const char *certificate, const char *key, struct rv_tls_ctx **out, rv_err **err)
{
    struct rv_tls_ctx *t = calloc(1, sizeof *t);

    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "make a TLS context");
    int rc = openssl_open(&t->lib, err);
    if (rc != 0) {
        free(t);
        return rc;
    }
    t->ctx = t->lib->SSL_CTX_new(t->lib->TLS_server_method());
    rc = t->ctx ? load(t, certificate, key, err) : RV_FAIL(err, RV_E_NOMEM, "make a TLS context");
    if (rc == 0)
        *out = t;
    else
        tls_ctx_free(t);
    return rc;
}

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

struct rv_tls_room *tls_room_new(void)
{
    return malloc(sizeof(struct rv_tls_room));
}

void tls_room_free(struct rv_tls_room *room)
{
    free(room);
}

/* --- for OpenSSL --- */

static struct rv_tls *of_bio(BIO *bio)
{
    return table.BIO_get_data(bio); /* it is filled: there is a BIO */
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
    struct rv_tls *t = of_bio(bio);

    httpd_out_raw(t->c, NULL, 0, (rv_str){bytes, (size_t)len}, RV_BODY_BORROWED);
    return len; /* what went wrong is known to the connection */
}

static int bio_read(BIO *bio, char *room, int len)
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

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio, (void)num, (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

/* --- for the connection --- */

struct rv_tls *tls_new(const struct rv_tls_ctx *ctx, struct rv_conn *c)
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

void tls_free(struct rv_tls *t)
{
    if (!t)
        return;
    t->lib->SSL_free(t->ssl);
    free(t);
}

bool tls_is_up(const struct rv_tls *t)
{
    return t->lib->SSL_is_init_finished(t->ssl) && !t->is_failed;
}

bool tls_read(struct rv_tls *t, rv_str bytes)
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
            httpd_conn_input(t->c, (rv_str){room, (size_t)n});
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
            httpd_conn_break(t->c, RV_GONE_FAILED);
            return;
        }
        bytes = (rv_str){bytes.ptr + n, bytes.len - (size_t)n};
    }
}

void tls_write(struct rv_tls *t, const rv_str *v, size_t n, rv_str last)
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

void tls_end(struct rv_tls *t)
{
    if (!tls_is_up(t))
        return;
    t->lib->ERR_clear_error();
    RV_IGNORE(t->lib->SSL_shutdown(t->ssl) < 0, "a farewell; the client may be gone");
    t->lib->ERR_clear_error();
}
