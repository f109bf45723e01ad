/* Shared by the two files about TLS: OpenSSL as a table of functions. */
#ifndef RV_HTTP_TLS_INTERNAL_H
#define RV_HTTP_TLS_INTERNAL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "coreengine/http/http_internal.h"

/* Everything that is used of libssl, and of libcrypto, which it brings with it. */
#define RV_TLS_FUNCTIONS(X)                                                                                            \
    X(TLS_server_method)                                                                                               \
    X(SSL_CTX_new)                                                                                                     \
    X(SSL_CTX_free)                                                                                                    \
    X(SSL_CTX_ctrl)                                                                                                    \
    X(SSL_CTX_set_options)                                                                                             \
    X(SSL_CTX_set_default_passwd_cb)                                                                                   \
    X(SSL_CTX_use_certificate_chain_file)                                                                              \
    X(SSL_CTX_use_PrivateKey_file)                                                                                     \
    X(SSL_CTX_check_private_key)                                                                                       \
    X(SSL_CTX_set_alpn_select_cb)                                                                                      \
    X(SSL_select_next_proto)                                                                                           \
    X(SSL_new)                                                                                                         \
    X(SSL_free)                                                                                                        \
    X(SSL_set_bio)                                                                                                     \
    X(SSL_set_accept_state)                                                                                            \
    X(SSL_is_init_finished)                                                                                            \
    X(SSL_read)                                                                                                        \
    X(SSL_write)                                                                                                       \
    X(SSL_shutdown)                                                                                                    \
    X(SSL_get_error)                                                                                                   \
    X(BIO_meth_new)                                                                                                    \
    X(BIO_meth_set_write)                                                                                              \
    X(BIO_meth_set_read)                                                                                               \
    X(BIO_meth_set_ctrl)                                                                                               \
    X(BIO_free)                                                                                                        \
    X(BIO_new)                                                                                                         \
    X(BIO_set_data)                                                                                                    \
    X(BIO_get_data)                                                                                                    \
    X(BIO_set_init)                                                                                                    \
    X(BIO_set_flags)                                                                                                   \
    X(BIO_clear_flags)                                                                                                 \
    X(ERR_get_error)                                                                                                   \
    X(ERR_clear_error)                                                                                                 \
    X(ERR_reason_error_string)

struct rv_openssl {
#define X(name) __typeof__(name) *name;
    RV_TLS_FUNCTIONS(X)
#undef X
    BIO_METHOD *method; /* bytes from and to a struct rv_tls; owned: lives as long as the process */
};

struct rv_tls_ctx {
    const struct rv_openssl *lib; /* static */
    SSL_CTX *ctx;                 /* owned */
};

#endif
