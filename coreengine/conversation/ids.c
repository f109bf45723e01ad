/* Ids that follow from names: UUIDs of version 5 (RFC 9562), so that the same name is the same row everywhere. */
#include "coreengine/conversation/context.h"

#include <nettle/sha1.h>
#include <string.h>

#define UUID_BYTES 16

/* The namespace of domain names, and that of p8.dev in it. */
static const unsigned char dns[UUID_BYTES] = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                              0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
static const unsigned char p8[UUID_BYTES] = {0xd1, 0x22, 0xdb, 0x5d, 0xac, 0xeb, 0x56, 0x73,
                                             0xb6, 0xe0, 0xce, 0x9e, 0x43, 0x28, 0xe7, 0x25};

static void begin(struct sha1_ctx *h, const unsigned char ns[UUID_BYTES])
{
    sha1_init(h);
    sha1_update(h, UUID_BYTES, ns);
}

static void add(struct sha1_ctx *h, rv_str bytes)
{
    if (bytes.len > 0)
        sha1_update(h, bytes.len, (const uint8_t *)bytes.ptr);
}

static void finish(struct sha1_ctx *h, char out[RV_UUID_MAX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t id[UUID_BYTES];
    size_t at = 0;

    sha1_digest(h, sizeof id, id);
    id[6] = (uint8_t)((id[6] & 0x0F) | 0x50); /* version 5 */
    id[8] = (uint8_t)((id[8] & 0x3F) | 0x80); /* the variant of the RFC */
    for (size_t i = 0; i < sizeof id; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[at++] = '-';
        out[at++] = digits[id[i] >> 4];
        out[at++] = digits[id[i] & 15];
    }
    out[at] = '\0';
}

void rv_entity_id(const char *table, rv_str key, const char *user, char out[RV_UUID_MAX])
{
    struct sha1_ctx h;

    begin(&h, p8);
    add(&h, rv_str_of(table));
    add(&h, RV_STR_LIT(":"));
    add(&h, key);
    add(&h, RV_STR_LIT(":"));
    add(&h, rv_str_of(user));
    finish(&h, out);
}

void rv_user_id_of_email(rv_str email, char out[RV_UUID_MAX])
{
    struct sha1_ctx h;

    email = rv_str_trim(email);
    begin(&h, dns);
    for (size_t i = 0; i < email.len; i++) {
        char c = email.ptr[i];
        /* ASCII only: what other letters become in lower case differs between systems and their years. */
        uint8_t byte = (uint8_t)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);

        sha1_update(&h, 1, &byte);
    }
    finish(&h, out);
}
