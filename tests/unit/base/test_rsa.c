/* RSA-OAEP beside openssl, in both directions; keys in every form, and what is not a key. */
#include "coreengine/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/kit/rsa_keys.h"
#include "tests/unit/base/suites.h"

static struct rv_rsa key_of(const char *text)
{
    rv_str rest = rv_str_of(text);
    struct rv_rsa key;
    rv_err *err = NULL;

    int rc = rv_rsa_read(&rest, "a key", &key, &err);
    ck_assert_msg(rc == 0, "%s", err ? rv_err_text(err) : "");
    ck_assert_uint_eq(rv_str_trim(rest).len, 0);
    return key;
}

START_TEST(a_key_has_four_forms_in_pem_and_in_der)
{
    static const char *const forms[] = {RSA_PUBLIC, RSA_PKCS1_PUBLIC, RSA_PRIVATE, RSA_PKCS1_PRIVATE};
    struct rv_rsa first = key_of(RSA_PUBLIC), der;

    for (size_t i = 0; i < RV_COUNT(forms); i++) {
        struct rv_rsa key = key_of(forms[i]);
        ck_assert(rv_rsa_is_same(&key, &first));
        ck_assert_int_eq(key.is_private, i >= 2);
        rv_buf digits = RV_BUF_INIT(10000), bytes = RV_BUF_INIT(10000), pem = RV_BUF_INIT(10000);
        for (const char *p = strchr(forms[i], '\n'); *p != '-'; p++)
            if (*p != '\n')
                rv_buf_putc(&digits, *p);
        ck_assert(rv_base64_read(rv_buf_str(&digits), &bytes));
        rv_str text = rv_buf_str(&bytes);
        ck_assert_int_eq(rv_rsa_read(&text, "a key", &der, NULL), 0);
        ck_assert(rv_rsa_is_same(&key, &der));
        rv_rsa_write(&key, &pem);
        ck_assert_str_eq(rv_buf_cstr(&pem), RSA_PUBLIC);
        rv_buf_fini(&digits);
        rv_buf_fini(&bytes);
        rv_buf_fini(&pem);
    }
}
END_TEST

START_TEST(several_keys_may_follow_one_another)
{
    rv_str text = RV_STR_LIT(RSA_PRIVATE "\n" RSA_OTHER_PRIVATE);
    struct rv_rsa first, second;

    ck_assert_int_eq(rv_rsa_read(&text, "keys", &first, NULL), 0);
    ck_assert_int_eq(rv_rsa_read(&text, "keys", &second, NULL), 0);
    ck_assert(!rv_rsa_is_same(&first, &second));
    ck_assert_uint_eq(rv_str_trim(text).len, 0);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "not an RSA key"},
    {"-----BEGIN ", "not an RSA key"},
    {"-----BEGIN PUBLIC KEY-----", "damaged"},
    {"-----BEGIN PUBLIC KEY-----\nAAAA", "damaged"},
    {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n", "damaged"},
    {"-----BEGIN PUBLIC KEY-----\nA*AA\n-----END PUBLIC KEY-----\n", "damaged"},
    {"-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n", "not an RSA key"},
    {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", "has a password"},
    {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
     "has a password"},
    {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a certificate"},
    {"-----BEGIN PUBLIC KEY-----\n"
     "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE5MbdWw289NBiK1n4wGawbyfIutg9\n"
     "Sndgg4eQx8bNJNnhezpeQfDegvyN+mbSbLCPo9FdszK+IoUTNIlaXrN2lg==\n-----END PUBLIC KEY-----\n",
     "not an RSA key"},
    {RSA_SMALL, "shorter than 2048"},
};

START_TEST(what_is_not_a_key_is_an_error_with_a_hint)
{
    rv_str text = rv_str_of(bad[_i].text);
    struct rv_rsa key;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_rsa_read(&text, "key file \"x\"", &key, &err), RV_E_INVALID);
    ck_assert_msg(strstr(rv_err_text(err), bad[_i].says), "%s", rv_err_text(err));
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "key file \"x\": "));
    rv_err_free(err);
}
END_TEST

/* No byte of DER can be changed, left out or added so that reading goes beyond it; what is still accepted has the
 * bytes that it says. */
START_TEST(changed_and_cut_keys_are_read_safely)
{
    static const char *const forms[] = {RSA_PUBLIC, RSA_PKCS1_PUBLIC, RSA_PRIVATE};
    rv_buf digits = RV_BUF_INIT(10000), bytes = RV_BUF_INIT(10000);
    struct rv_rsa key;

    for (const char *p = strchr(forms[_i], '\n'); *p != '-'; p++)
        if (*p != '\n')
            rv_buf_putc(&digits, *p);
    ck_assert(rv_base64_read(rv_buf_str(&digits), &bytes));
    for (size_t n = 0; n < bytes.len; n++) {
        char *copy = malloc(n + 1); /* the sanitizer sees where it ends */
        memcpy(copy, bytes.ptr, n);
        rv_str text = {copy, n};
        ck_assert_int_lt(rv_rsa_read(&text, "a key", &key, NULL), 0);
        free(copy);
    }
    for (size_t at = 0; at < 60; at++)
        for (int v = 1; v < 256; v += _i == 2 ? 63 : 7) {
            rv_str text = rv_buf_str(&bytes);
            bytes.ptr[at] ^= (char)v;
            if (rv_rsa_read(&text, "a key", &key, NULL) == 0)
                ck_assert(key.size >= 256 && key.modulus[0] != 0 && (key.modulus[key.size - 1] & 1));
            bytes.ptr[at] ^= (char)v;
        }
    rv_buf_fini(&digits);
    rv_buf_fini(&bytes);
}
END_TEST

START_TEST(a_private_exponent_of_another_key_is_refused)
{
    struct rv_rsa key = key_of(RSA_PRIVATE);
    rv_buf der = RV_BUF_INIT(10000), digits = RV_BUF_INIT(10000);
    rv_err *err = NULL;

    for (const char *p = strchr(RSA_PRIVATE, '\n'); *p != '-'; p++)
        if (*p != '\n')
            rv_buf_putc(&digits, *p);
    ck_assert(rv_base64_read(rv_buf_str(&digits), &der));
    char *at = memmem(der.ptr, der.len, key.secret + 10, 40);
    ck_assert_ptr_nonnull(at);
    at[20] ^= 1;
    rv_str text = rv_buf_str(&der);
    ck_assert_int_eq(rv_rsa_read(&text, "a key", &key, &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "does not belong"));
    rv_err_free(err);
    rv_buf_fini(&der);
    rv_buf_fini(&digits);
}
END_TEST

START_TEST(what_openssl_sealed_is_opened)
{
    struct rv_rsa key = key_of(RSA_PRIVATE);
    rv_buf sealed = RV_BUF_INIT(1000);
    unsigned char plain[32];

    ck_assert(rv_base64_read(RV_STR_LIT(RSA_SEALED_BY_OPENSSL), &sealed));
    ck_assert_uint_eq(sealed.len, key.size);
    ck_assert_int_eq(rv_rsa_open(&key, (unsigned char *)sealed.ptr, plain, NULL), 0);
    for (int i = 0; i < 32; i++)
        ck_assert_int_eq(plain[i], i);
    rv_buf_fini(&sealed);
}
END_TEST

static void write_file(const char *dir, const char *name, const void *bytes, size_t n)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(what_was_sealed_openssl_opens)
{
    struct rv_rsa key = key_of(RSA_PUBLIC);
    unsigned char plain[32], sealed[RV_RSA_MAX], got[64];
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 5);
    char *dir = rv_kit_tmpdir(), command[1000];

    rand.fill(rand.self, plain, sizeof plain);
    ck_assert_int_eq(rv_rsa_seal(&key, rand, plain, sealed, NULL), 0);
    if (system("openssl version >/dev/null 2>&1") == 0) {
        write_file(dir, "private.pem", RSA_PRIVATE, sizeof RSA_PRIVATE - 1);
        write_file(dir, "sealed", sealed, key.size);
        snprintf(command, sizeof command,
                 "openssl pkeyutl -decrypt -inkey %s/private.pem -in %s/sealed -pkeyopt rsa_padding_mode:oaep -pkeyopt "
                 "rsa_oaep_md:sha256",
                 dir, dir);
        FILE *f = popen(command, "r");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fread(got, 1, sizeof got, f), sizeof plain);
        ck_assert_int_eq(pclose(f), 0);
        ck_assert_mem_eq(got, plain, sizeof plain);
    }
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(every_changed_byte_of_a_sealed_key_is_refused)
{
    struct rv_rsa key = key_of(RSA_PRIVATE), other = key_of(RSA_OTHER_PRIVATE);
    unsigned char plain[32] = {7}, sealed[RV_RSA_MAX], got[32] = {0};

    ck_assert_int_eq(rv_rsa_seal(&key, rv_rand_system(), plain, sealed, NULL), 0);
    for (size_t step = rv_kit_step(8), i = rv_kit_first(step); i < key.size; i += step) {
        sealed[i] ^= 1;
        ck_assert_int_eq(rv_rsa_open(&key, sealed, got, NULL), RV_E_IO);
        ck_assert_int_eq(got[0], 0);
        sealed[i] ^= 1;
    }
    ck_assert_int_eq(rv_rsa_open(&other, sealed, got, NULL), RV_E_IO);
    ck_assert_int_eq(rv_rsa_open(&key, sealed, got, NULL), 0);
    ck_assert_mem_eq(got, plain, sizeof plain);
}
END_TEST

START_TEST(random_keys_come_back_and_differ_each_time)
{
    struct rv_rsa key = key_of(RSA_PKCS1_PRIVATE);
    unsigned char plain[32], got[32], one[RV_RSA_MAX], two[RV_RSA_MAX];
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 9);

    for (int i = 0; i < 20; i++) {
        rand.fill(rand.self, plain, sizeof plain);
        ck_assert_int_eq(rv_rsa_seal(&key, rand, plain, one, NULL), 0);
        ck_assert_int_eq(rv_rsa_seal(&key, rand, plain, two, NULL), 0);
        ck_assert_mem_ne(one, two, key.size);
        ck_assert_int_eq(rv_rsa_open(&key, two, got, NULL), 0);
        ck_assert_mem_eq(got, plain, sizeof plain);
    }
}
END_TEST

TCase *rsa_case(void)
{
    TCase *tc = tcase_create("rsa");

    tcase_add_test(tc, a_key_has_four_forms_in_pem_and_in_der);
    tcase_add_test(tc, several_keys_may_follow_one_another);
    tcase_add_loop_test(tc, what_is_not_a_key_is_an_error_with_a_hint, 0, (int)RV_COUNT(bad));
    tcase_add_loop_test(tc, changed_and_cut_keys_are_read_safely, 0, 3);
    tcase_add_test(tc, a_private_exponent_of_another_key_is_refused);
    tcase_add_test(tc, what_openssl_sealed_is_opened);
    tcase_add_test(tc, what_was_sealed_openssl_opens);
    tcase_add_test(tc, every_changed_byte_of_a_sealed_key_is_refused);
    tcase_add_test(tc, random_keys_come_back_and_differ_each_time);
    return tc;
}
