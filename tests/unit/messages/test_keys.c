/* Recovery keys and the shortened texts that name them (remlight 13). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/match/match.h"
#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define UUID    "0f0e0d0c-0b0a-4908-8706-050403020100"
#define MARKER  69 /* code points that the marker costs besides the key */
#define E_ACUTE "\xc3\xa9"

/* --- keys --- */

START_TEST(a_key_is_of_session_and_number)
{
    char key[RV_MESSAGE_MAX_KEY];
    rv_str session;
    int64_t seq;
    bool is_cut = true;

    rv_message_make_key(UUID, 42, key);
    ck_assert_str_eq(key, "session-" UUID "-msg-42");
    ck_assert(rv_message_key_read(rv_str_of(key), &session, &seq, &is_cut));
    ck_assert(rv_str_is(session, UUID));
    ck_assert_int_eq(seq, 42);
    ck_assert(!is_cut);
    rv_message_make_key("", INT64_MAX, key);
    ck_assert_str_eq(key, "session--msg-9223372036854775807");
}
END_TEST

static const struct {
    const char *in, *out;
} spellings[] = {
    /* p8-data 1.6, as the sheet has them */
    {"Hello World", "hello-world"},
    {"Test (v2.0) \xe2\x80\x94 final!", "test-v20-final"},
    {"my_entity_name", "my-entity-name"},
    {"foo/bar.baz", "foobarbaz"},
    {"  hello   world  ", "hello-world"},
    {" _x_ ", "-x-"},
    {"a--b__c  d", "a-b-c-d"},
    {"C++ Notes", "c-notes"},
    /* only blanks are trimmed, and before anything else */
    {"! a", "-a"},
    {"a\t", "a-"},
    {"a ! b", "a-b"},
    {"", ""},
    {"!?", ""},
    {"   ", ""},
    /* letters and digits of other scripts stay */
    {"\xc3\x9cn\xc3\xaf"
     "code Name",
     "\xc3\xbcn\xc3\xaf"
     "code-name"},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"},
    {"\xce\x91\xce\x86 \xd0\x96\xd0\x81", "\xce\xb1\xce\xac-\xd0\xb6\xd1\x91"},
    {"\xc5\x81\xc3\xb3"
     "d\xc5\xba \xc4\xb9\xc5\xb8",
     "\xc5\x82\xc3\xb3"
     "d\xc5\xba-\xc4\xba\xc3\xbf"},
    {"a\xc2\xa0\xe3\x80\x80"
     "b",
     "a-b"},
    {"\xf0\x9f\x98\x80 smile\xe2\x80\xae", "-smile"},
};

/* Proves p8.20/spelling */
START_TEST(keys_are_compared_in_one_spelling) /* p8-data 1.6, remlight 6 */
{
    rv_buf once = RV_BUF_INIT(256), twice = RV_BUF_INIT(256);

    rv_buf_puts(&once, "");
    rv_match_write_key(rv_str_of(spellings[_i].in), &once);
    ck_assert_str_eq(rv_buf_cstr(&once), spellings[_i].out);
    ck_assert(rv_utf8_valid(rv_buf_str(&once), NULL));
    rv_match_write_key(rv_buf_str(&once), &twice);
    ck_assert_str_eq(rv_buf_cstr(&twice), spellings[_i].out); /* it is its own spelling */
    rv_buf_fini(&once);
    rv_buf_fini(&twice);
}
END_TEST

/* Lengths around the longest: 246 bytes of the whole, a dash, 8 digits of its hash. */
/* Proves remlight.13 */
START_TEST(a_long_key_is_cut_with_a_hash)
{
    char session[400], whole[512], key[RV_MESSAGE_MAX_KEY], hex[RV_HASH_MAX];
    rv_str part;
    int64_t seq;
    bool is_cut;

    for (size_t n = 230; n < 400; n++) {
        memset(session, 'x', n);
        session[n] = '\0';
        int len = snprintf(whole, sizeof whole, "session-%s-msg-7", session);
        rv_message_make_key(session, 7, key);
        ck_assert(rv_message_key_read(rv_str_of(key), &part, &seq, &is_cut));
        ck_assert_int_eq(is_cut, len > 255);
        if (len <= 255) {
            ck_assert_str_eq(key, whole);
            continue;
        }
        rv_hash_format(rv_str_of(whole), hex);
        ck_assert_uint_eq(strlen(key), 255);
        ck_assert(strncmp(key, whole, 246) == 0);
        ck_assert_int_eq(key[246], '-');
        ck_assert(strncmp(key + 247, hex, 8) == 0);
        ck_assert_uint_eq(part.len, 0);
    }
}
END_TEST

static const struct {
    const char *key, *session; /* session NULL: it is none */
    int64_t seq;
} read_keys[] = {
    {"session-a-msg-1", "a", 1},
    {"session-a-msg-3-msg-12", "a-msg-3", 12},
    {"session-a-msg-9223372036854775807", "a", INT64_MAX},
    {"session-a-msg-9223372036854775808", NULL, 0},
    {"session-a-msg-0", NULL, 0},
    {"session-a-msg-01", NULL, 0},
    {"session-a-msg--1", NULL, 0},
    {"session-a-msg-1x", NULL, 0},
    {"session-a-msg-", NULL, 0},
    {"session--msg-1", NULL, 0},
    {"session-msg-1", NULL, 0},
    {"Session-a-msg-1", NULL, 0},
    {" session-a-msg-1", NULL, 0},
    {"session-", NULL, 0},
    {"", NULL, 0},
    {"msg-1", NULL, 0},
};
START_TEST(keys_are_told_from_other_words)
{
    rv_str session = {NULL, 0};
    int64_t seq = 0;
    bool is_cut = false;

    ck_assert_int_eq(rv_message_key_read(rv_str_of(read_keys[_i].key), &session, &seq, &is_cut),
                     read_keys[_i].session != NULL);
    if (!read_keys[_i].session)
        return;
    ck_assert(rv_str_is(session, read_keys[_i].session));
    ck_assert_int_eq(seq, read_keys[_i].seq);
}
END_TEST

/* --- shortening --- */

static char *repeat(const char *piece, size_t n)
{
    size_t len = strlen(piece);
    char *text = malloc(n * len + 1);

    if (!text)
        rv_kit_die("no memory");
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, piece, len);
    text[n * len] = '\0';
    return text;
}

/* Numbers of code points around the threshold and around the length from which the marker pays. */
static const struct {
    const char *piece, *key;
    size_t n, keep;
    bool shortens;
} sizes[] = {
    {"x", "k", 400, 200, false},
    {"x", "k", 401, 200, false},
    {"x", "k", 400 + MARKER + 1, 200, false},
    {"x", "k", 400 + MARKER + 2, 200, true},
    {E_ACUTE, "k", 400, 200, false}, /* 800 bytes */
    {E_ACUTE, "k", 400 + MARKER + 1, 200, false},
    {E_ACUTE, "k", 400 + MARKER + 2, 200, true},
    {"\xf0\x9f\x98\x80", "k", 2000, 200, true},
    {"\xe6\xbc\xa2", "k", 2000, 3, true},
    {"x", NULL, 454, 200, false},
    {"x", NULL, 455, 200, false},
    {"x", NULL, 456, 200, true},
    {"x", "k", 71, 0, true},
    {"x", "k", 70, 0, false},
    {"x", "k", 5000, 2500, false},
    {"x", "k", 5000, SIZE_MAX, false},
    {"x", "k", 5000, SIZE_MAX / 2 + 1, false},
    {"x", "k", 0, 0, false},
};
/* Proves remlight.13: Long answers are shortened with a key that finds the whole; nothing grows, no character is
 * cut
 * Proves remlight.19/7: Counted and cut by code points, and only where it helps */
START_TEST(texts_are_shortened_when_that_makes_them_shorter)
{
    char *text = repeat(sizes[_i].piece, sizes[_i].n),
         *end = repeat(sizes[_i].piece, sizes[_i].shortens ? sizes[_i].keep : 0);
    rv_buf out = RV_BUF_INIT(100000), want = RV_BUF_INIT(100000);
    bool did = rv_message_compress(rv_str_of(text), sizes[_i].key, sizes[_i].keep, &out);

    ck_assert_int_eq(did, sizes[_i].shortens);
    if (did && sizes[_i].key)
        rv_buf_printf(&want, "%s\n\n... [Message truncated - REM LOOKUP %s to recover full content] ...\n\n%s", end,
                      sizes[_i].key, end);
    else if (did)
        rv_buf_printf(&want, "%s\n\n... [Message truncated - %zu characters omitted] ...\n\n%s", end,
                      sizes[_i].n - 2 * sizes[_i].keep, end);
    ck_assert_str_eq(rv_buf_cstr(&out), rv_buf_cstr(&want));
    ck_assert(!did || out.len < strlen(text));
    rv_buf_fini(&out);
    rv_buf_fini(&want);
    free(text);
    free(end);
}
END_TEST

/* Every offset of a text of one to four bytes a character: the ends are whole characters. */
/* Proves remlight.13, remlight.19/7 */
START_TEST(no_character_is_cut)
{
    char *text = repeat("a" E_ACUTE "\xe6\xbc\xa2\xf0\x9f\x98\x80", 100);

    for (size_t keep = 0; keep < 170; keep++) {
        rv_buf out = RV_BUF_INIT(100000);
        bool did = rv_message_compress(rv_str_of(text), "session-s-msg-1", keep, &out);
        ck_assert_int_eq(did, 400 - 2 * keep > MARKER + 15);
        ck_assert(rv_utf8_valid(rv_buf_str(&out), NULL));
        if (did)
            ck_assert_int_eq(rv_tokens_estimate(rv_buf_str(&out)), (int64_t)(2 * keep + MARKER + 15) / 4);
        rv_buf_fini(&out);
    }
    free(text);
}
END_TEST

TCase *keys_case(void)
{
    TCase *c = tcase_create("keys");

    tcase_add_test(c, a_key_is_of_session_and_number);
    tcase_add_loop_test(c, keys_are_compared_in_one_spelling, 0, RV_COUNT(spellings));
    tcase_add_test(c, a_long_key_is_cut_with_a_hash);
    tcase_add_loop_test(c, keys_are_told_from_other_words, 0, RV_COUNT(read_keys));
    tcase_add_loop_test(c, texts_are_shortened_when_that_makes_them_shorter, 0, RV_COUNT(sizes));
    tcase_add_test(c, no_character_is_cut);
    return c;
}
