/* API keys: "rv_<id>_<secret>". The id is public and finds the row, the secret is 32 random bytes of which the store
 * has the hash. */
#include <stdio.h>
#include <string.h>

#include "coreengine/identity/identity_internal.h"

#define PREFIX "rv_"

static bool is_key_id(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!rv_is_digit(s.ptr[i]) && (s.ptr[i] < 'a' || s.ptr[i] > 'f'))
            return false;
    return s.len == RV_API_KEY_ID;
}

void rv_api_key_make(struct rv_rand rand, struct rv_new_key *out)
{
    unsigned char id[RV_API_KEY_ID / 2], secret[RV_DIGEST];
    char word[RV_API_KEY_SECRET + 1];

    rand.fill(rand.self, id, sizeof id);
    rand.fill(rand.self, secret, sizeof secret);
    rv_hex_make(id, sizeof id, out->id);
    out->id[RV_API_KEY_ID] = 0;
    identity_base64url_write(secret, sizeof secret, word);
    snprintf(out->text, sizeof out->text, PREFIX "%s_%s", out->id, word);
    identity_secret_hash(rv_str_of(word), out->hash);
    rv_secret_wipe(secret, sizeof secret);
    rv_secret_wipe(word, sizeof word);
}

bool rv_api_key_read(rv_str text, char id[RV_API_KEY_ID + 1], char hash[RV_HASH_MAX])
{
    const size_t before = strlen(PREFIX) + RV_API_KEY_ID + 1;
    unsigned char secret[RV_API_KEY_SECRET];
    size_t n = 0;

    if (text.len != before + RV_API_KEY_SECRET || memcmp(text.ptr, PREFIX, strlen(PREFIX)) != 0 ||
        text.ptr[before - 1] != '_')
        return false;
    rv_str name = {text.ptr + strlen(PREFIX), RV_API_KEY_ID}, word = {text.ptr + before, RV_API_KEY_SECRET};
    bool sound = is_key_id(name) && identity_base64url_read(word, secret, &n) && n == RV_DIGEST;
    rv_secret_wipe(secret, sizeof secret);
    if (!sound)
        return false;
    identity_text_keep(name, id, RV_API_KEY_ID + 1);
    identity_secret_hash(word, hash);
    return true;
}
