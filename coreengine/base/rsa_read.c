/* Keys of RSA as openssl writes them: PEM and DER, hostile until they are parsed. */
#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/base/limit.h"
#include "coreengine/base/rsa_internal.h"

enum {
    INTEGER = 0x02,
    BITS = 0x03,
    BYTES = 0x04,
    NOTHING = 0x05,
    OBJECT_ID = 0x06,
    SEQUENCE = 0x30,
    PARAMETERS = 0xa0
};

static const unsigned char rsa_id[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01}; /* rsaEncryption */

/* --- DER --- */

struct der {
    const unsigned char *at;
    size_t left;
};

/* The next item, when it is of that tag; lengths have their shortest form. */
static bool take(struct der *d, unsigned char tag, struct der *out)
{
    size_t n, head = 2, n_more;

    if (d->left < 2 || d->at[0] != tag)
        return false;
    n = d->at[1];
    if (n >= 0x80) {
        n_more = n & 0x7f;
        if (n_more < 1 || n_more > 2 || d->left < 2 + n_more || d->at[2] == 0)
            return false;
        n = 0;
        for (size_t i = 0; i < n_more; i++)
            n = n << 8 | d->at[2 + i];
        if (n < 0x80)
            return false;
        head += n_more;
    }
    if (n > d->left - head)
        return false;
    *out = (struct der){d->at + head, n};
    d->at += head + n;
    d->left -= head + n;
    return true;
}

/* A positive number, without the zero that keeps it from being negative. */
static bool take_number(struct der *d, struct der *out)
{
    if (!take(d, INTEGER, out) || out->left == 0 || (out->at[0] & 0x80))
        return false;
    if (out->left > 1 && out->at[0] == 0) {
        if (!(out->at[1] & 0x80))
            return false;
        out->at++;
        out->left--;
    }
    return true;
}

static bool is_rsa(struct der *d)
{
    struct der algorithm, id, nothing;

    if (!take(d, SEQUENCE, &algorithm) || !take(&algorithm, OBJECT_ID, &id))
        return false;
    if (algorithm.left > 0 && (!take(&algorithm, NOTHING, &nothing) || nothing.left > 0 || algorithm.left > 0))
        return false;
    return id.left == sizeof rsa_id && memcmp(id.at, rsa_id, sizeof rsa_id) == 0;
}

struct numbers {
    struct der modulus, exponent, secret; /* at NULL: none */
};

static bool take_public(struct der *d, struct numbers *out)
{
    return take_number(d, &out->modulus) && take_number(d, &out->exponent) && d->left == 0;
}

/* Behind its version: modulus, exponent, private exponent, and five numbers that are not used. */
static bool take_private(struct der *d, struct numbers *out)
{
    struct der unused;

    if (!take_number(d, &out->modulus) || !take_number(d, &out->exponent) || !take_number(d, &out->secret))
        return false;
    for (int i = 0; i < 5; i++)
        if (!take_number(d, &unused))
            return false;
    return d->left == 0;
}

/* A whole key of one of the four forms. */
static bool take_key(struct der *d, struct numbers *out)
{
    struct der key, inner, version, list;

    *out = (struct numbers){0};
    if (!take(d, SEQUENCE, &key) || d->left > 0)
        return false;
    struct der whole = key;
    if (key.left > 0 && key.at[0] == SEQUENCE) {
        if (!is_rsa(&key) || !take(&key, BITS, &inner) || key.left > 0 || inner.left < 1 || inner.at[0] != 0)
            return false;
        inner = (struct der){inner.at + 1, inner.left - 1};
        return take(&inner, SEQUENCE, &list) && inner.left == 0 && take_public(&list, out);
    }
    if (!take_number(&key, &version))
        return false;
    if (version.left > 1)
        return take_public(&whole, out);
    if (version.at[0] != 0)
        return false;
    if (key.left > 0 && key.at[0] == INTEGER)
        return take_private(&key, out);
    if (!is_rsa(&key) || !take(&key, BYTES, &inner)) /* attributes may follow */
        return false;
    return take(&inner, SEQUENCE, &list) && inner.left == 0 && take_number(&list, &version) && version.left == 1 &&
           version.at[0] == 0 && take_private(&list, out);
}

/* --- Keys on a curve --- */

#define SCALAR 32 /* bytes of a private key on P-256 */

static bool is_p256(struct der id)
{
    static const unsigned char p256[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};

    return id.left == sizeof p256 && memcmp(id.at, p256, sizeof p256) == 0;
}

/* Version 1, the number, and perhaps the curve; the public key that may follow is not used. */
static bool take_scalar(struct der *list, bool has_curve, unsigned char out[SCALAR])
{
    struct der version, number, curve, id;

    if (!take_number(list, &version) || version.left != 1 || version.at[0] != 1 || !take(list, BYTES, &number) ||
        number.left != SCALAR)
        return false;
    if (take(list, PARAMETERS, &curve) && take(&curve, OBJECT_ID, &id))
        has_curve = is_p256(id);
    if (has_curve)
        memcpy(out, number.at, SCALAR);
    return has_curve;
}

/* RFC 5915 alone ("EC PRIVATE KEY"), or in a key of any kind ("PRIVATE KEY"). */
static bool take_curve_key(struct der *d, unsigned char out[SCALAR])
{
    static const unsigned char ec_id[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01}; /* ecPublicKey */
    struct der key, version, algorithm, id, inner, list;

    if (!take(d, SEQUENCE, &key) || d->left > 0)
        return false;
    list = key;
    if (take_scalar(&list, false, out))
        return true;
    return take_number(&key, &version) && version.left == 1 && version.at[0] == 0 && take(&key, SEQUENCE, &algorithm) &&
           take(&algorithm, OBJECT_ID, &id) && id.left == sizeof ec_id && memcmp(id.at, ec_id, sizeof ec_id) == 0 &&
           take(&algorithm, OBJECT_ID, &id) && is_p256(id) && take(&key, BYTES, &inner) &&
           take(&inner, SEQUENCE, &list) && inner.left == 0 && take_scalar(&list, true, out);
}

/* --- What a key has to be --- */

static int fail(const char *source, const char *why, const char *hint, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "%s: %s", source, why);
    rv_err_set_hint(err, "%s", hint);
    return RV_E_INVALID;
}

#define MAKE "`openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out private.pem` makes one"

static size_t bits_of(struct der number)
{
    size_t n = number.left * 8;

    for (unsigned top = 0x80; top > 0 && !(number.at[0] & top); top >>= 1)
        n--;
    return n;
}

/* The two exponents undo each other, at least for one number. */
static int check_pair(const struct rv_rsa *key, const char *source, rv_err **err)
{
    unsigned char number[RV_RSA_MAX] = {0};

    number[key->size - 1] = 2;
    int rc = base_rsa_power(key, false, number, err);
    if (rc == 0)
        rc = base_rsa_power(key, true, number, err);
    for (size_t i = 0; i < key->size && rc == 0; i++)
        if (number[i] != (i == key->size - 1 ? 2 : 0))
            rc = fail(source, "the private exponent does not belong to the public key", MAKE, err);
    return rc;
}

static int take_numbers(const struct numbers *n, const char *source, struct rv_rsa *out, rv_err **err)
{
    const struct der m = n->modulus, e = n->exponent, d = n->secret;

    if (bits_of(m) < RV_RSA_MIN_BITS)
        return fail(source, "the key is shorter than " RV_LIMIT_TEXT(RV_RSA_MIN_BITS) " bits", MAKE, err);
    if (m.left > RV_RSA_MAX)
        return fail(source, "the key is longer than " RV_LIMIT_TEXT(RV_RSA_MAX_BITS) " bits", MAKE, err);
    if (!(m.at[m.left - 1] & 1) || e.left > sizeof out->exponent || !(e.at[e.left - 1] & 1) ||
        (e.left == 1 && e.at[0] < 3))
        return fail(source, "the numbers of the key are not those of an RSA key", MAKE, err);
    *out = (struct rv_rsa){.size = m.left, .is_private = d.at != NULL};
    memcpy(out->modulus, m.at, m.left);
    memcpy(out->exponent + sizeof out->exponent - e.left, e.at, e.left);
    if (!d.at)
        return 0;
    if (d.left > m.left)
        return fail(source, "the private exponent does not belong to the public key", MAKE, err);
    memcpy(out->secret + m.left - d.left, d.at, d.left);
    return check_pair(out, source, err);
}

/* --- PEM --- */

#define BEGIN "-----BEGIN "
#define END   "-----END "
#define DASH  "-----"

static const struct {
    const char *label, *why, *hint;
} others[] = {
    {"ENCRYPTED PRIVATE KEY", "the private key has a password", "take the password off: `openssl pkey -in FILE`"},
    {"CERTIFICATE", "a certificate, not a key", "`openssl x509 -in FILE -pubkey -noout` prints its key"},
    {"EC PRIVATE KEY", "a key of another algorithm than RSA", MAKE},
};

static bool is_label(rv_str label, bool is_any)
{
    static const char *const labels[] = {"PUBLIC KEY", "RSA PUBLIC KEY", "PRIVATE KEY", "RSA PRIVATE KEY",
                                         "EC PRIVATE KEY"};

    for (size_t i = 0; i < RV_COUNT(labels) - !is_any; i++)
        if (rv_str_is(label, labels[i]))
            return true;
    return false;
}

static int fail_label(rv_str label, const char *source, rv_err **err)
{
    for (size_t i = 0; i < RV_COUNT(others); i++)
        if (rv_str_is(label, others[i].label))
            return fail(source, others[i].why, others[i].hint, err);
    return fail(source, "not an RSA key in PEM or DER", MAKE, err);
}

static bool starts(rv_str text, const char *with)
{
    size_t n = strlen(with);

    return text.len >= n && memcmp(text.ptr, with, n) == 0;
}

static rv_str behind(rv_str text, size_t n)
{
    return (rv_str){text.ptr + n, text.len - n};
}

/* The bytes of the first block; *text becomes what is behind it. is_any: of a key on a curve, too. */
static int read_pem(rv_str *text, bool is_any, const char *source, rv_buf *bytes, rv_err **err)
{
    static const char broken[] = "a block of PEM is damaged";
    rv_buf digits = RV_BUF_INIT(RV_RSA_TEXT);
    rv_str rest = behind(*text, sizeof BEGIN - 1), label = {rest.ptr, 0};
    int rc = 0;

    while (label.len < rest.len && rest.ptr[label.len] != '-' && rest.ptr[label.len] != '\n')
        label.len++;
    rest = behind(rest, label.len);
    if (!starts(rest, DASH))
        return fail(source, broken, MAKE, err);
    if (!is_label(label, is_any))
        return fail_label(label, source, err);
    rest = behind(rest, sizeof DASH - 1);
    if (starts(rv_str_trim(rest), "Proc-Type:")) /* "4,ENCRYPTED" */
        return fail(source, others[0].why, others[0].hint, err);
    while (rest.len > 0 && *rest.ptr != '-') {
        if (!strchr(" \t\r\n", *rest.ptr))
            rv_buf_putc(&digits, *rest.ptr);
        rest = behind(rest, 1);
    }
    rv_str line = rest;
    bool ends = starts(line, END) && line.len >= sizeof END - 1 + label.len + sizeof DASH - 1 &&
                memcmp(line.ptr + sizeof END - 1, label.ptr, label.len) == 0 &&
                starts(behind(line, sizeof END - 1 + label.len), DASH);
    if (rc == 0)
        rc = rv_buf_check(&digits, "a key", err);
    if (rc == 0 && (!ends || !rv_base64_read(rv_buf_str(&digits), bytes)))
        rc = fail(source, broken, MAKE, err);
    if (rc == 0)
        rc = rv_buf_check(bytes, "a key", err);
    if (rc == 0)
        *text = behind(rest, sizeof END - 1 + label.len + sizeof DASH - 1);
    if (digits.ptr)
        rv_wipe(digits.ptr, digits.cap);
    rv_buf_fini(&digits);
    return rc;
}

int rv_rsa_read(rv_str *text, const char *source, struct rv_rsa *out, rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(RV_RSA_TEXT);
    rv_str rest = rv_str_trim(*text);
    struct rv_rsa key = {0};
    struct numbers numbers;
    int rc = 0;

    if (text->len > RV_RSA_TEXT)
        return RV_FAIL(err, RV_E_LIMIT, "%s has more than %zu bytes", source, RV_RSA_TEXT);
    if (starts(rest, BEGIN)) {
        rc = read_pem(&rest, false, source, &bytes, err);
    } else {
        rv_buf_add_str(&bytes, *text);
        rc = rv_buf_check(&bytes, "a key", err);
        rest.len = 0;
    }
    struct der d = {(const unsigned char *)bytes.ptr, bytes.len};
    if (rc == 0 && !take_key(&d, &numbers))
        rc = fail(source, "not an RSA key in PEM or DER", MAKE, err);
    if (rc == 0)
        rc = take_numbers(&numbers, source, &key, err);
    if (rc == 0) {
        *out = key;
        *text = rest;
    }
    rv_wipe(&key, sizeof key);
    if (bytes.ptr)
        rv_wipe(bytes.ptr, bytes.cap);
    rv_buf_fini(&bytes);
    return rc;
}

int base_ec_read(rv_str text, const char *source, bool *is_one, unsigned char scalar[SCALAR], rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(RV_RSA_TEXT);
    rv_str rest = rv_str_trim(text);
    int rc = 0;

    *is_one = false;
    if (text.len <= RV_RSA_TEXT && starts(rest, BEGIN))
        rc = read_pem(&rest, true, source, &bytes, err);
    struct der d = {(const unsigned char *)bytes.ptr, bytes.len};
    if (rc == 0 && bytes.len > 0)
        *is_one = take_curve_key(&d, scalar);
    if (bytes.ptr)
        rv_wipe(bytes.ptr, bytes.cap);
    rv_buf_fini(&bytes);
    return rc;
}

/* --- Writing --- */

/* Everything here is at least 128 bytes long or at most 127. */
static void put_head(rv_buf *out, unsigned char tag, size_t n)
{
    rv_buf_putc(out, (char)tag);
    if (n >= 0x100) {
        rv_buf_putc(out, (char)0x82);
        rv_buf_putc(out, (char)(n >> 8));
    } else if (n >= 0x80) {
        rv_buf_putc(out, (char)0x81);
    }
    rv_buf_putc(out, (char)n);
}

static void put_number(rv_buf *out, const unsigned char *bytes, size_t n)
{
    while (n > 1 && *bytes == 0) {
        bytes++;
        n--;
    }
    bool is_negative = bytes[0] & 0x80;
    put_head(out, INTEGER, n + is_negative);
    if (is_negative)
        rv_buf_putc(out, 0);
    rv_buf_add(out, bytes, n);
}

static void put_item(rv_buf *out, unsigned char tag, const char *before, size_t n_before, const rv_buf *item)
{
    put_head(out, tag, n_before + item->len);
    rv_buf_add(out, before, n_before);
    rv_buf_add_str(out, rv_buf_str(item));
}

void rv_rsa_write(const struct rv_rsa *key, rv_buf *out)
{
    static const char algorithm[] = "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05";
    rv_buf a = RV_BUF_INIT(RV_RSA_TEXT), b = RV_BUF_INIT(RV_RSA_TEXT);

    put_number(&a, key->modulus, key->size);
    put_number(&a, key->exponent, sizeof key->exponent);
    put_item(&b, SEQUENCE, "", 0, &a);
    rv_buf_clear(&a);
    put_item(&a, BITS, "", 1, &b); /* no unused bits */
    rv_buf_clear(&b);
    put_item(&b, SEQUENCE, algorithm, sizeof algorithm, &a);
    rv_buf_clear(&a);
    rv_base64_write(rv_buf_str(&b), &a);
    if (a.rc < 0 || b.rc < 0) {
        out->rc = out->rc < 0 ? out->rc : RV_E_NOMEM;
    } else {
        rv_buf_puts(out, "-----BEGIN PUBLIC KEY-----\n");
        for (size_t at = 0; at < a.len; at += 64) {
            rv_buf_add(out, a.ptr + at, a.len - at < 64 ? a.len - at : 64);
            rv_buf_putc(out, '\n');
        }
        rv_buf_puts(out, "-----END PUBLIC KEY-----\n");
    }
    rv_buf_fini(&a);
    rv_buf_fini(&b);
}
