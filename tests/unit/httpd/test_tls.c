/* TLS, with OpenSSL as the client: answers, streams and the end of a connection; certificates that are wrong, and new
 * ones. */
#include "tests/unit/httpd/world.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>

static struct world w;
static char *dir, *certificate, *key;

/* --- certificates --- */

static void make_pair(const char *cert_path, const char *key_path, const char *name)
{
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *x = X509_new();

    ck_assert(pair && x);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, pair);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    ck_assert_int_gt(X509_sign(x, pair, EVP_sha256()), 0);
    FILE *f = fopen(cert_path, "w");
    ck_assert_int_eq(PEM_write_X509(f, x), 1);
    (void)fclose(f);
    f = fopen(key_path, "w");
    ck_assert_int_eq(PEM_write_PrivateKey(f, pair, NULL, NULL, 0, NULL, NULL), 1);
    (void)fclose(f);
    X509_free(x);
    EVP_PKEY_free(pair);
}

/* --- a client --- */

struct secret {
    struct client c;
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
    rv_buf got;
    bool is_over; /* the server has said farewell */
};

/* Carries what each side has for the other. */
static void carry(struct secret *s)
{
    char *bytes = NULL;
    long n = BIO_get_mem_data(s->out, &bytes);

    if (n > 0) {
        client_send(&s->c, (rv_str){bytes, (size_t)n});
        (void)BIO_reset(s->out);
    }
    client_look(&s->c);
    if (s->c.got.len > 0)
        ck_assert_int_eq(BIO_write(s->in, s->c.got.ptr, (int)s->c.got.len), (int)s->c.got.len);
    rv_buf_clear(&s->c.got);
}

static void look(struct secret *s)
{
    char room[32768];
    int n = 0;

    for (int quiet = 0; quiet < 3 && !s->is_over;) {
        carry(s);
        while ((n = SSL_read(s->ssl, room, sizeof room)) > 0) {
            rv_buf_add(&s->got, room, (size_t)n);
            quiet = 0;
        }
        s->is_over = SSL_get_error(s->ssl, n) == SSL_ERROR_ZERO_RETURN;
        quiet++;
    }
    ERR_clear_error();
}

static void say(struct secret *s, const char *text)
{
    ck_assert_int_eq(SSL_write(s->ssl, text, (int)strlen(text)), (int)strlen(text));
    look(s);
}

/* True if the handshake went well. */
static bool open_secret(struct secret *s, int max_version)
{
    static const unsigned char protocols[] = "\x02h2\x08http/1.1";

    *s = (struct secret){.ctx = SSL_CTX_new(TLS_client_method())};
    SSL_CTX_set_security_level(s->ctx, 0);
    SSL_CTX_set_min_proto_version(s->ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(s->ctx, max_version);
    SSL_CTX_set_alpn_protos(s->ctx, protocols, sizeof protocols - 1);
    s->ssl = SSL_new(s->ctx);
    s->in = BIO_new(BIO_s_mem());
    s->out = BIO_new(BIO_s_mem());
    SSL_set_bio(s->ssl, s->in, s->out);
    SSL_set_connect_state(s->ssl);
    rv_buf_init(&s->got, (size_t)64 << 20);
    client_open(&w, &s->c);
    for (int i = 0; i < 5 && SSL_do_handshake(s->ssl) != 1; i++)
        carry(s);
    ERR_clear_error();
    return SSL_is_init_finished(s->ssl);
}

static void close_secret(struct secret *s)
{
    SSL_free(s->ssl);
    SSL_CTX_free(s->ctx);
    rv_buf_fini(&s->got);
    client_close(&s->c);
}

/* --- the world --- */

static int listen_tls(const char *cert_path, const char *key_path, rv_err **err)
{
    const struct rv_httpd_listen at = {.address = "127.0.0.1", .certificate = cert_path, .key = key_path};

    return rv_httpd_listen(w.server, &at, &w.port, err);
}

static void setup(void)
{
    dir = rv_kit_tmpdir();
    certificate = rv_kit_path(dir, "server.pem");
    key = rv_kit_path(dir, "server.key");
    make_pair(certificate, key, "first");
    world_init(&w);
    world_listen(&w);
    ck_assert_int_eq(listen_tls(certificate, key, NULL), 0);
}

static void teardown(void)
{
    world_fini(&w);
    free(certificate);
    free(key);
    rv_kit_tmpdir_remove(dir);
}

START_TEST(answers_over_tls)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    const unsigned char *protocol = NULL;
    unsigned len = 0;
    struct secret s;

    ck_assert(open_secret(&s, versions[_i]));
    SSL_get0_alpn_selected(s.ssl, &protocol, &len);
    ck_assert(rv_str_is((rv_str){(const char *)protocol, len}, "http/1.1"));
    say(&s, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.got), "tls 1 "));
    say(&s, "GET /bytes/5000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_uint_gt(s.got.len, 5000000);
    say(&s, "GET /taken/100000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    ck_assert_uint_gt(s.got.len, 5100000);
    ck_assert(s.is_over); /* with a farewell, so that nothing can have been cut off */
    close_secret(&s);
}
END_TEST

START_TEST(streams_over_tls)
{
    struct secret s;

    ck_assert(open_secret(&s, TLS1_3_VERSION));
    say(&s, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_buf_clear(&s.got);
    rv_httpd_send_event(w.x, &(struct rv_httpd_event){.data = RV_STR_LIT("hello"), .id = RV_STR_LIT("1")});
    look(&s);
    ck_assert_str_eq(rv_buf_cstr(&s.got), "13\r\ndata: hello\nid: 1\n\n\r\n");
    close_secret(&s);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "gone:left ");
}
END_TEST

START_TEST(refuses_old_versions_and_what_is_not_tls)
{
    struct secret s;

    ck_assert(!open_secret(&s, TLS1_1_VERSION));
    ck_assert(s.c.is_over);
    close_secret(&s);
    char *got = world_ask(&w, RV_STR_LIT("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ck_assert_int_eq(status_of(got), 0);
    free(got);
    ck_assert(open_secret(&s, TLS1_3_VERSION)); /* the server goes on */
    close_secret(&s);
}
END_TEST

START_TEST(closes_a_handshake_that_does_not_end)
{
    struct client c;

    client_open(&w, &c);
    client_send(&c, RV_STR_LIT("\x16\x03\x01\x02\x00\x01"));
    world_pass(&w, 10000000);
    client_look(&c);
    ck_assert(c.is_over);
    ck_assert_uint_eq(c.got.len, 0);
    client_close(&c);
}
END_TEST

START_TEST(uses_new_certificates_for_new_connections)
{
    struct secret before, after;
    char name[100] = "";
    rv_err *err = NULL;

    ck_assert(open_secret(&before, TLS1_3_VERSION));
    make_pair(certificate, key, "second");
    ck_assert_int_eq(rv_httpd_reload(w.server, NULL), 0);
    ck_assert(open_secret(&after, TLS1_3_VERSION));
    X509 *x = SSL_get1_peer_certificate(after.ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof name);
    ck_assert_str_eq(name, "second");
    X509_free(x);
    say(&before, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_int_eq(status_of(rv_buf_cstr(&before.got)), 200);
    close_secret(&before);
    close_secret(&after);
    rv_kit_write(certificate, "not a certificate");
    ck_assert_int_eq(rv_httpd_reload(w.server, &err), RV_E_INVALID);
    rv_err_free(err);
    ck_assert(open_secret(&after, TLS1_3_VERSION)); /* the old ones stay */
    close_secret(&after);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_certificate)
{
    char *other = rv_kit_path(dir, "other.key"), *other_cert = rv_kit_path(dir, "other.pem");
    const struct {
        const char *certificate, *key;
        int code;
        const char *part;
    } cases[] = {
        {"/nowhere.pem", key, RV_E_NOT_FOUND, "/nowhere.pem"},
        {certificate, "/nowhere.key", RV_E_NOT_FOUND, "/nowhere.key"},
        {key, key, RV_E_INVALID, "certificate"},
        {certificate, other, RV_E_INVALID, "private key"},
    };

    make_pair(other_cert, other, "other");
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        rv_err *err = NULL;
        ck_assert_int_eq(listen_tls(cases[i].certificate, cases[i].key, &err), cases[i].code);
        ck_assert_msg(strstr(rv_err_text(err), cases[i].part), "%s", rv_err_text(err));
        rv_err_free(err);
    }
    free(other);
    free(other_cert);
}
END_TEST

START_TEST(never_asks_for_a_passphrase)
{
    rv_err *err = NULL;
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    FILE *f = fopen(key, "w");

    ck_assert_int_eq(PEM_write_PrivateKey(f, pair, EVP_aes_128_cbc(), (const unsigned char *)"secret", 6, NULL, NULL),
                     1);
    (void)fclose(f);
    EVP_PKEY_free(pair);
    ck_assert_int_eq(listen_tls(certificate, key, &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "without passphrase"));
    rv_err_free(err);
}
END_TEST

TCase *tls_case(void)
{
    TCase *tc = tcase_create("tls");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, answers_over_tls, 0, 2);
    tcase_add_test(tc, streams_over_tls);
    tcase_add_test(tc, refuses_old_versions_and_what_is_not_tls);
    tcase_add_test(tc, closes_a_handshake_that_does_not_end);
    tcase_add_test(tc, uses_new_certificates_for_new_connections);
    tcase_add_test(tc, says_what_is_wrong_with_a_certificate);
    tcase_add_test(tc, never_asks_for_a_passphrase);
    return tc;
}
