/* libssl: opened when the first listener with a certificate is made, and the certificates of listeners. Local: its
 * symbols are not offered to capabilities. */
#include <pthread.h>
#include <stdlib.h>

#include "coreengine/base/library.h"
#include "coreengine/http/tls_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below; nothing is called out to under it */
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
    if (!table.method || !table.BIO_meth_set_write(table.method, rv_tls_bio_write) ||
        !table.BIO_meth_set_read(table.method, rv_tls_bio_read) ||
        !table.BIO_meth_set_ctrl(table.method, rv_tls_bio_ctrl))
        return RV_FAIL(err, RV_E_NOMEM, "set the TLS library up");
    is_open = true;
    return 0;
}

int rv_openssl_open(const struct rv_openssl **out, rv_err **err)
{
    pthread_mutex_lock(&lock);
    int rc = open_once(err);
    pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = &table;
    return rc;
}

/* --- certificates --- */

void rv_tls_ctx_free(struct rv_tls_ctx *t)
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
    if (ERR_SYSTEM_ERROR(code))
        return RV_FAIL(err, RV_E_NOT_FOUND, "read the %s \"%s\": %s", what, path, why ? why : "it cannot be opened");
    RV_FAIL(err, RV_E_INVALID, "the %s \"%s\" cannot be used: %s", what, path, why ? why : "it is not valid PEM");
    rv_err_hint(err, "use PEM files; the key without passphrase, the certificate of the server first in its file");
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

int rv_tls_ctx_new(const char *certificate, const char *key, struct rv_tls_ctx **out, rv_err **err)
{
    struct rv_tls_ctx *t = calloc(1, sizeof *t);

    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "make a TLS context");
    int rc = rv_openssl_open(&t->lib, err);
    if (rc != 0) {
        free(t);
        return rc;
    }
    t->ctx = t->lib->SSL_CTX_new(t->lib->TLS_server_method());
    rc = t->ctx ? load(t, certificate, key, err) : RV_FAIL(err, RV_E_NOMEM, "make a TLS context");
    if (rc == 0)
        *out = t;
    else
        rv_tls_ctx_free(t);
    return rc;
}
