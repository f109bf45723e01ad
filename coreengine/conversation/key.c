/* Recovery keys: "session-<session>-msg-<seq>", by which the whole of a shortened message is found again. A key that
 * would be too long is cut and ends in the beginning of the SHA-256 of the whole, so that two that begin alike stay
 * apart. */
#include "coreengine/conversation/messages_internal.h"

#include <string.h>

#define BEFORE  "session-"
#define BETWEEN "-msg-"
#define MAX_LEN (RV_MESSAGE_MAX_KEY - 1) /* bytes without the NUL; a longer key ends with a digest of the whole */
#define DIGEST  8                        /* hex digits at the end of a cut key */
#define CUT     (MAX_LEN - DIGEST - 1)   /* bytes of the whole before them and a dash */

/* Appends as much as there is room for; the whole is hashed. */
static void add(char out[RV_MESSAGE_MAX_KEY], size_t *len, struct rv_hash *hash, rv_str part)
{
    size_t room = *len < MAX_LEN ? MAX_LEN - *len : 0, n = part.len < room ? part.len : room;

    if (n)
        memcpy(out + *len, part.ptr, n);
    *len += part.len;
    rv_hash_add(hash, part);
}

void rv_message_make_key(const char *session, int64_t seq, char out[RV_MESSAGE_MAX_KEY])
{
    char digits[MESSAGE_MAX_DIGITS], hex[RV_HASH_MAX];
    size_t n_digits = conversation_message_digits(seq, digits), len = 0;
    struct rv_hash hash;

    rv_hash_init(&hash);
    add(out, &len, &hash, RV_STR_LIT(BEFORE));
    add(out, &len, &hash, rv_str_of(session));
    add(out, &len, &hash, RV_STR_LIT(BETWEEN));
    add(out, &len, &hash, (rv_str){digits, n_digits});
    if (len > MAX_LEN) {
        rv_hash_finish_hex(&hash, hex);
        out[CUT] = '-';
        memcpy(out + CUT + 1, hex, DIGEST);
        len = MAX_LEN;
    }
    out[len] = '\0';
}

static bool begins(rv_str text, rv_str with)
{
    return text.len >= with.len && memcmp(text.ptr, with.ptr, with.len) == 0;
}

static bool is_cut_key(rv_str key)
{
    if (key.len != MAX_LEN || key.ptr[CUT] != '-')
        return false;
    for (size_t i = CUT + 1; i < MAX_LEN; i++)
        if (!((key.ptr[i] >= '0' && key.ptr[i] <= '9') || (key.ptr[i] >= 'a' && key.ptr[i] <= 'f')))
            return false;
    return true;
}

/* Digits as they are written: no sign, no zeros before them, from 1. */
static bool read_seq(rv_str digits, int64_t *out)
{
    int64_t seq = 0;

    if (digits.len == 0 || digits.ptr[0] == '0')
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        int digit = digits.ptr[i] - '0';
        if (digit < 0 || digit > 9 || seq > (INT64_MAX - digit) / 10)
            return false;
        seq = seq * 10 + digit;
    }
    *out = seq;
    return true;
}

bool rv_message_key_read(rv_str key, rv_str *session, int64_t *seq, bool *is_cut)
{
    rv_str before = RV_STR_LIT(BEFORE), between = RV_STR_LIT(BETWEEN);
    size_t at = key.len; /* of the digits */

    if (key.len > MAX_LEN || !begins(key, before))
        return false;
    while (at > before.len && key.ptr[at - 1] != '-')
        at--;
    if (at > before.len + between.len && begins((rv_str){key.ptr + at - between.len, between.len}, between) &&
        read_seq((rv_str){key.ptr + at, key.len - at}, seq)) {
        *session = (rv_str){key.ptr + before.len, at - between.len - before.len};
        *is_cut = false;
        return true;
    }
    if (!is_cut_key(key))
        return false;
    *session = (rv_str){NULL, 0};
    *seq = 0;
    *is_cut = true;
    return true;
}
