/* Signatures beside openssl; keys in every form, and what cannot sign. */
#include "coreengine/base/base.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/kit/ec_keys.h"
#include "tests/kit/kit.h"
#include "tests/kit/rsa_keys.h"
#include "tests/unit/base/suites.h"

static const unsigned char seed[RV_SIGN_SEED] = {1, 2, 3};

static struct rv_signer signer_of(const char *text)
{
    struct rv_signer key;
    rv_err *err = NULL;
    int rc = rv_signer_read(rv_str_of(text), "a key", &key, &err);

    ck_assert_msg(rc == 0, "%s", err ? rv_err_text(err) : "");
    return key;
}

START_TEST(a_private_key_has_its_algorithm)
{
    struct rv_signer a = signer_of(EC_PRIVATE), b = signer_of("\n" EC_SEC1_PRIVATE), c = signer_of(RSA_PRIVATE);

    ck_assert_mem_eq(a.scalar, b.scalar, sizeof a.scalar);
    ck_assert_str_eq(rv_signer_algorithm(&a), "ES256");
    ck_assert_str_eq(rv_signer_algorithm(&c), "RS256");
    c = signer_of(RSA_PKCS1_PRIVATE);
    ck_assert_str_eq(rv_signer_algorithm(&c), "RS256");
}
END_TEST

/* Two INTEGERs, as openssl takes a signature on a curve. */
static void write_der(const rv_buf *raw, rv_buf *out)
{
    rv_buf list = RV_BUF_INIT(100);

    for (size_t k = 0; k < 2; k++) {
        const unsigned char *half = (const unsigned char *)raw->ptr + k * RV_SIGN_SCALAR;
        size_t n = RV_SIGN_SCALAR;
        for (; n > 1 && *half == 0; n--)
            half++;
        bool is_negative = *half & 0x80;
        rv_buf_putc(&list, 2);
        rv_buf_putc(&list, (char)(n + is_negative));
        if (is_negative)
            rv_buf_putc(&list, 0);
        rv_buf_add(&list, (const char *)half, n);
    }
    rv_buf_putc(out, 0x30);
    rv_buf_putc(out, (char)list.len);
    rv_buf_add_str(out, rv_buf_str(&list));
    rv_buf_fini(&list);
}

static void write_file(const char *dir, const char *name, rv_str bytes)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
    ck_assert_int_eq(fclose(f), 0);
}

static bool openssl_holds(const char *public, rv_str signature, const char *text)
{
    char *dir = rv_kit_tmpdir(), command[1000];

    write_file(dir, "public.pem", rv_str_of(public));
    write_file(dir, "signature", signature);
    write_file(dir, "text", rv_str_of(text));
    snprintf(command, sizeof command,
             "openssl dgst -sha256 -verify %s/public.pem -signature %s/signature %s/text >/dev/null 2>&1", dir, dir,
             dir);
    bool holds = system(command) == 0;
    rv_kit_tmpdir_remove(dir);
    return holds;
}

START_TEST(openssl_verifies_a_signature)
{
    struct rv_signer curve = signer_of(EC_PRIVATE), rsa = signer_of(RSA_PRIVATE);
    rv_buf raw = RV_BUF_INIT(1000), der = RV_BUF_INIT(1000);
    char text[40];

    if (system("openssl version >/dev/null 2>&1") != 0)
        return;
    for (int i = 0; i < 8; i++) { /* of which some have a half with a zero or a high bit in front */
        snprintf(text, sizeof text, "text %d", i);
        rv_buf_clear(&raw);
        rv_buf_clear(&der);
        ck_assert_int_eq(rv_sign(&curve, rv_str_of(text), seed, &raw, NULL), 0);
        ck_assert_uint_eq(raw.len, (size_t)2 * RV_SIGN_SCALAR);
        write_der(&raw, &der);
        ck_assert_msg(openssl_holds(EC_PUBLIC, rv_buf_str(&der), text), "%s", text);
    }
    ck_assert(!openssl_holds(EC_PUBLIC, rv_buf_str(&der), "another text"));
    rv_buf_clear(&raw);
    ck_assert_int_eq(rv_sign(&rsa, RV_STR_LIT("text"), seed, &raw, NULL), 0);
    ck_assert(openssl_holds(RSA_PUBLIC, rv_buf_str(&raw), "text"));
    ck_assert(!openssl_holds(RSA_PUBLIC, rv_buf_str(&raw), "texts"));
    rv_buf_fini(&raw);
    rv_buf_fini(&der);
}
END_TEST

/* The number that is used once must differ, or two signatures tell the key: it is in the first half. */
START_TEST(no_two_texts_share_a_number)
{
    struct rv_signer key = signer_of(EC_PRIVATE);
    rv_buf a = RV_BUF_INIT(1000), b = RV_BUF_INIT(1000), c = RV_BUF_INIT(1000), d = RV_BUF_INIT(1000);
    static const unsigned char other[RV_SIGN_SEED] = {9};

    ck_assert_int_eq(rv_sign(&key, RV_STR_LIT("a"), seed, &a, NULL), 0);
    ck_assert_int_eq(rv_sign(&key, RV_STR_LIT("b"), seed, &b, NULL), 0);
    ck_assert_int_eq(rv_sign(&key, RV_STR_LIT("a"), other, &c, NULL), 0);
    ck_assert_int_eq(rv_sign(&key, RV_STR_LIT("a"), seed, &d, NULL), 0);
    ck_assert_mem_ne(a.ptr, b.ptr, RV_SIGN_SCALAR);
    ck_assert_mem_ne(a.ptr, c.ptr, RV_SIGN_SCALAR);
    ck_assert_mem_eq(a.ptr, d.ptr, (size_t)2 * RV_SIGN_SCALAR);
    rv_buf_fini(&a);
    rv_buf_fini(&b);
    rv_buf_fini(&c);
    rv_buf_fini(&d);
}
END_TEST

START_TEST(what_cannot_sign_is_refused)
{
    static const char *const texts[] = {
        "", "hush", EC_PUBLIC, EC_OTHER_CURVE, RSA_PUBLIC, "-----BEGIN EC PRIVATE KEY-----\nhush\n"};
    struct rv_signer key;

    for (size_t i = 0; i < RV_COUNT(texts); i++) {
        rv_err *err = NULL;
        ck_assert_int_eq(rv_signer_read(rv_str_of(texts[i]), "a key", &key, &err), RV_E_INVALID);
        ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "P-256"));
        char *text = rv_kit_err_take(err);
        ck_assert_ptr_null(strstr(text, "hush"));
        free(text);
    }
}
END_TEST

/* The number of a key on P-256 is above 0 and below the order. */
START_TEST(a_number_outside_of_the_curve_is_refused)
{
    static const char *const numbers[] = {"0000000000000000000000000000000000000000000000000000000000000000",
                                          "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"};
    static const char head[] = "\x30\x31\x02\x01\x01\x04\x20",
                      curve[] = "\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
    struct rv_signer key;

    for (size_t i = 0; i < RV_COUNT(numbers); i++) {
        rv_buf der = RV_BUF_INIT(1000), pem = RV_BUF_INIT(1000);
        rv_err *err = NULL;
        rv_buf_add(&der, head, sizeof head - 1);
        for (size_t k = 0; k < RV_SIGN_SCALAR; k++) {
            const char *digits = numbers[i] + 2 * k;
            rv_buf_putc(&der, (char)(rv_hex_digit(digits[0]) << 4 | rv_hex_digit(digits[1])));
        }
        rv_buf_add(&der, curve, sizeof curve - 1);
        rv_buf_puts(&pem, "-----BEGIN EC PRIVATE KEY-----\n");
        rv_base64_write(rv_buf_str(&der), &pem);
        rv_buf_puts(&pem, "\n-----END EC PRIVATE KEY-----\n");
        ck_assert_int_eq(rv_signer_read(rv_buf_str(&pem), "a key", &key, &err), RV_E_INVALID);
        ck_assert_ptr_nonnull(strstr(rv_err_text(err), "not one of P-256"));
        rv_err_free(err);
        rv_buf_fini(&der);
        rv_buf_fini(&pem);
    }
}
END_TEST

TCase *sign_case(void)
{
    TCase *tc = tcase_create("sign");

    tcase_add_test(tc, a_private_key_has_its_algorithm);
    tcase_add_test(tc, openssl_verifies_a_signature);
    tcase_add_test(tc, no_two_texts_share_a_number);
    tcase_add_test(tc, what_cannot_sign_is_refused);
    tcase_add_test(tc, a_number_outside_of_the_curve_is_refused);
    return tc;
}
