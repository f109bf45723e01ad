/* AES-256-GCM against published vectors, and what is refused; base64 in its one form. */
#include "coreengine/base/base.h"

#include "tests/unit/base/suites.h"

static size_t bytes_of(const char *hex, unsigned char *out)
{
    size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++) {
        unsigned v = 0;
        for (size_t k = 0; k < 2; k++) {
            char c = hex[2 * i + k];
            v = v << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        out[i] = (unsigned char)v;
    }
    return n;
}

/* Test cases 13 to 16 of the specification of GCM (McGrew and Viega). */
static const struct {
    const char *key, *nonce, *bound, *plain, *kept;
} vectors[] = {
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "", "",
     "530f8afbc74536b9a963b4f1c4cb738b"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "",
     "00000000000000000000000000000000", "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
     "ba637b391aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a"
     "bcc9f662898015adb094dac5d93471bdec1a502270e3cc6c"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
     "ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a"
     "bcc9f66276fc6ece0f4e1768cddf8853bb2d551b"},
};

START_TEST(published_vectors_hold)
{
    unsigned char key[32], nonce[12], bound[64], plain[128], kept[160], out[160];
    struct rv_cipher c;

    bytes_of(vectors[_i].key, key);
    bytes_of(vectors[_i].nonce, nonce);
    rv_str with = {(const char *)bound, bytes_of(vectors[_i].bound, bound)};
    rv_str text = {(const char *)plain, bytes_of(vectors[_i].plain, plain)};
    size_t n = bytes_of(vectors[_i].kept, kept);
    ck_assert_uint_eq(n, text.len + RV_CIPHER_TAG);
    rv_cipher_init(&c, key);
    rv_cipher_encrypt(&c, nonce, with, text, out);
    ck_assert_mem_eq(out, kept, n);
    ck_assert(rv_cipher_decrypt(&c, nonce, with, (rv_str){(const char *)kept, n}, out));
    ck_assert_mem_eq(out, plain, text.len);
}
END_TEST

START_TEST(every_changed_bit_is_refused)
{
    unsigned char key[32] = {1}, nonce[12] = {2}, kept[40 + 16], out[40];
    const rv_str text = RV_STR_LIT("forty bytes of a text that is encrypted."), with = RV_STR_LIT("a place");
    struct rv_cipher c;

    rv_cipher_init(&c, key);
    rv_cipher_encrypt(&c, nonce, with, text, kept);
    for (size_t i = 0; i < 8 * sizeof kept; i++) {
        kept[i / 8] ^= (unsigned char)(1 << i % 8);
        memset(out, 'x', sizeof out);
        ck_assert(!rv_cipher_decrypt(&c, nonce, with, (rv_str){(const char *)kept, sizeof kept}, out));
        for (size_t k = 0; k < sizeof out; k++)
            ck_assert_int_eq(out[k], 0); /* no part of what is not authentic */
        kept[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert(!rv_cipher_decrypt(&c, nonce, RV_STR_LIT("b place"), (rv_str){(const char *)kept, sizeof kept}, out));
    ck_assert(!rv_cipher_decrypt(&c, nonce, with, (rv_str){(const char *)kept, 15}, out));
    nonce[0]++;
    ck_assert(!rv_cipher_decrypt(&c, nonce, with, (rv_str){(const char *)kept, sizeof kept}, out));
    nonce[0]--;
    ck_assert(rv_cipher_decrypt(&c, nonce, with, (rv_str){(const char *)kept, sizeof kept}, out));
    ck_assert_mem_eq(out, text.ptr, text.len);
}
END_TEST

START_TEST(base64_reads_what_it_writes_and_nothing_else)
{
    static const char *const bad[] = {
        "A", "AA", "AAA", "AA=A", "A===", "AB==", "AAB=", "AA-_", "AAAA\n", "=AAA", "AA==AAAA"};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 3);
    char bytes[2000];

    for (size_t n = 0; n <= sizeof bytes; n += n < 20 ? 1 : 97) {
        rv_buf text = RV_BUF_INIT(4000), back = RV_BUF_INIT(4000);
        rand.fill(rand.self, bytes, n);
        rv_base64_write((rv_str){bytes, n}, &text);
        ck_assert_uint_eq(text.len, (n + 2) / 3 * 4);
        ck_assert(rv_base64_read(rv_buf_str(&text), &back));
        ck_assert_uint_eq(back.len, n);
        if (n > 0)
            ck_assert_mem_eq(back.ptr, bytes, n);
        rv_buf_fini(&text);
        rv_buf_fini(&back);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rv_buf back = RV_BUF_INIT(100);
        ck_assert_msg(!rv_base64_read(rv_str_of(bad[i]), &back), "%s", bad[i]);
        rv_buf_fini(&back);
    }
}
END_TEST

/* The expected bytes are from another implementation (Python's cryptography: HKDF, then AESSIV). */
START_TEST(equal_texts_have_equal_bytes)
{
    static const char want[] = "30f0f9c7c52cb29f3b41be6106b9a77298b53f4ae04a38702e596246435349";
    const rv_str text = RV_STR_LIT("ada@example.com"), with = RV_STR_LIT("a place");
    unsigned char key[32], kept[64], bytes[64], out[64];
    struct rv_siv c;

    for (int i = 0; i < 32; i++)
        key[i] = (unsigned char)i;
    rv_siv_init(&c, key);
    rv_siv_encrypt(&c, with, text, kept);
    size_t n = bytes_of(want, bytes);
    ck_assert_uint_eq(n, text.len + RV_CIPHER_TAG);
    ck_assert_mem_eq(kept, bytes, n);
    ck_assert(rv_siv_decrypt(&c, with, (rv_str){(const char *)kept, n}, out));
    ck_assert_mem_eq(out, text.ptr, text.len);
    for (size_t i = 0; i < n; i++) {
        kept[i] ^= 1;
        ck_assert(!rv_siv_decrypt(&c, with, (rv_str){(const char *)kept, n}, out));
        ck_assert_int_eq(out[0], 0);
        kept[i] ^= 1;
    }
    ck_assert(!rv_siv_decrypt(&c, RV_STR_LIT("b place"), (rv_str){(const char *)kept, n}, out));
    ck_assert(!rv_siv_decrypt(&c, with, (rv_str){(const char *)kept, 15}, out));
    rv_siv_encrypt(&c, with, RV_STR_LIT(""), kept);
    ck_assert(rv_siv_decrypt(&c, with, (rv_str){(const char *)kept, 16}, out));
}
END_TEST

TCase *cipher_case(void)
{
    TCase *tc = tcase_create("cipher");

    tcase_add_loop_test(tc, published_vectors_hold, 0, (int)(sizeof vectors / sizeof *vectors));
    tcase_add_test(tc, every_changed_bit_is_refused);
    tcase_add_test(tc, equal_texts_have_equal_bytes);
    tcase_add_test(tc, base64_reads_what_it_writes_and_nothing_else);
    return tc;
}
