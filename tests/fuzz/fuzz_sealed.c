/* Encrypted texts as a store gives them back, changed by someone who has no key. The first byte says what follows.
 *
 * "1", "2", "3": a text that is encrypted in that form (random, sealed, matched); behind a line end changes of the
 * ciphertext, three bytes each: where, and what is added to it. "w": such changes of a wrapped key.
 *
 * "r": a text as it is kept; each "@" is the name of the tenant's key. "f": the column `fields` of an entity, with the
 * same "@".
 *
 * What decrypts is what was encrypted, and at no other place; all else is an error, or a text that is not encrypted. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"
#include "tests/kit/fuzz.h"
#include "tests/kit/rsa_keys.h"

#define MASTER   "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
#define MAX_TEXT ((size_t)1 << 20)
#define NOW_US   INT64_C(1700000000000000)

static rv_store *store;                /* of the program */
static char keys[2][RV_ENCRYPTION_ID]; /* of the tenants */
static const char *const tenants[] = {"plat", "seal"};
static unsigned char secret[RV_CIPHER_KEY];

static const struct {
    struct rv_place at, other; /* other: where it must not decrypt */
    const char *column;
} places[] = {
    {{"plat", "messages", {"ada", "s1", "m1"}, 0, true}, {"plat", "messages", {"ada", "s1", "m2"}, 0, true}, "content"},
    {{"seal", "resources", {"ada", "r1", NULL}, 0, true},
     {"seal", "resources", {"bob", "r1", NULL}, 0, true},
     "content"},
    {{"plat", "users", {"ada", "u1", NULL}, 0, true}, {"seal", "users", {"ada", "u1", NULL}, 0, true}, "email"},
};

/* --- The store --- */

static rv_keyring *make_ring(void)
{
    int fd = memfd_create("private", MFD_CLOEXEC);
    const char pem[] = RSA_PRIVATE;
    rv_keyring *ring = NULL;
    char path[40];

    require(fd >= 0 && write(fd, pem, sizeof pem - 1) == (ssize_t)sizeof pem - 1 && fchmod(fd, 0600) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(rv_keyring_read(RV_STR_LIT(MASTER), "a key", &ring, NULL) == 0);
    require(rv_keyring_add_private(&ring, path, NULL) == 0);
    close(fd);
    return ring;
}

static void put_entity(void)
{
    const struct rv_store_scope scope = {tenants[0], "ada"};
    json_object *row = NULL;

    require(rv_json_parse(RV_STR_LIT("{\"name\":\"Bread\",\"content\":\"flour\",\"comment\":\"x\"}"), NULL, &row,
                          NULL) == 0);
    const struct rv_entities_put put = {.kind = "resources", .rows = &row, .n_rows = 1, .now_us = NOW_US};
    require(rv_store_put_entities(store, &scope, &put, NULL, NULL) == 0);
    json_object_put(row);
}

static void make_store(void)
{
    rv_str pem = RV_STR_LIT(RSA_PUBLIC);
    rv_keyring *ring = make_ring();
    struct rv_rsa seal;

    require(rv_rsa_read(&pem, "a key", &seal, NULL) == 0);
    require(rv_store_open("memory:", &(struct rv_store_opts){.ring = ring}, &store, NULL) == 0);
    rv_keyring_unref(ring);
    for (size_t i = 0; i < RV_COUNT(tenants); i++)
        require(rv_store_set_encryption(
                    store, tenants[i],
                    &(struct rv_encryption_choice){i ? RV_ENCRYPTION_SEALED : RV_ENCRYPTION_PLATFORM, i ? &seal : NULL},
                    NOW_US, keys[i], NULL) == 0);
    put_entity();
}

/* --- What is done to a text --- */

/* Changes of the text behind `from`: so many that its head stays. */
static bool change(rv_buf *text, size_t from, rv_str how)
{
    bool any = false;

    for (; how.len >= 3 && text->len > from; how = (rv_str){how.ptr + 3, how.len - 3}) {
        size_t at = from + ((unsigned char)how.ptr[0] * 256u + (unsigned char)how.ptr[1]) % (text->len - from);
        any = any || how.ptr[2];
        text->ptr[at] = (char)((unsigned char)text->ptr[at] + (unsigned char)how.ptr[2]);
    }
    return any;
}

static rv_str cut(rv_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    rv_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t n = line.len + (end ? 1 : 0);

    *rest = (rv_str){rest->ptr + n, rest->len - n};
    return line;
}

/* 0: it gave `plain`, or a text as it is kept. */
static int try_read(const struct rv_place *at, const char *column, rv_str kept, rv_str plain)
{
    rv_buf out = RV_BUF_INIT(MAX_TEXT);
    rv_err *err = NULL;
    int rc = store_secret_read(store->sql, at, column, kept, &out, &err);

    require((rc == 0) == !err);
    require(rc == 0 || rc == RV_E_IO || rc == RV_E_VERSION || rc == RV_E_LIMIT);
    if (rc == 0 && store_secret_is(kept))
        require(rv_buf_str(&out).len == plain.len &&
                memcmp(rv_buf_cstr(&out), plain.ptr ? plain.ptr : "", plain.len) == 0);
    rv_err_free(err);
    rv_buf_fini(&out);
    return rc;
}

static void try_form(size_t form, rv_str rest)
{
    const struct rv_place *at = &places[form].at;
    rv_buf kept = RV_BUF_INIT(MAX_TEXT);
    rv_str plain = cut(&rest);

    require(store_secret_write(store->sql, at, places[form].column, plain, &kept, NULL) == 0);
    require(store_secret_is(rv_buf_str(&kept)) && kept.ptr[9] == (char)('1' + form));
    require(try_read(at, places[form].column, rv_buf_str(&kept), plain) == 0);
    require(try_read(&places[form].other, places[form].column, rv_buf_str(&kept), plain) < 0);
    for (char other = '1'; other <= '3'; other++) {
        if (other == (char)('1' + form))
            continue;
        kept.ptr[9] = other;
        require(try_read(at, places[form].column, rv_buf_str(&kept), plain) < 0);
    }
    kept.ptr[9] = (char)('1' + form);
    change(&kept, 11 + RV_ENCRYPTION_ID, rest);
    int rc = try_read(at, places[form].column, rv_buf_str(&kept), plain); /* it gives that text, or fails */
    (void)rc;
    rv_buf_fini(&kept);
}

static void try_wrapped(rv_str rest)
{
    rv_buf kept = RV_BUF_INIT(4096);
    unsigned char got[RV_CIPHER_KEY];
    const rv_keyring *ring = store->sql->ring;

    require(vault_wrap(ring, tenants[0], keys[0], secret, &kept, NULL) == 0);
    change(&kept, 0, rest);
    struct rv_wrapped_key of = {tenants[0], keys[0], store_keyring_name(ring, 0), rv_buf_str(&kept)};
    if (vault_unwrap(ring, &of, got, NULL) == 0)
        require(memcmp(got, secret, sizeof secret) == 0);
    of.tenant = tenants[1];
    require(vault_unwrap(ring, &of, got, NULL) < 0);
    rv_buf_fini(&kept);
}

/* Each "@" is the name of a key. */
static void name_keys(rv_str text, rv_buf *out)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '@')
            rv_buf_puts(out, keys[0]);
        else
            rv_buf_putc(out, text.ptr[i]);
}

/* Without the key no text can be made that decrypts. */
static void try_raw(rv_str rest)
{
    rv_buf kept = RV_BUF_INIT(MAX_TEXT);

    name_keys(rest, &kept);
    rv_str text = rv_buf_str(&kept).ptr ? rv_buf_str(&kept) : RV_STR_LIT("");
    int rc = kept.rc == 0 ? try_read(&places[0].at, "content", text, (rv_str){NULL, 0}) : -1;
    require((rc < 0) == (kept.rc < 0 || store_secret_is(text)));
    rv_buf_fini(&kept);
}

static bool count(void *self, const char *what)
{
    require(*what);
    ++*(size_t *)self;
    return false;
}

/* The walk fails only where the check tells of a text. */
static void try_fields(rv_str rest)
{
    rv_buf kept = RV_BUF_INIT(MAX_TEXT), sql = RV_BUF_INIT(200);
    struct rv_encryption_walked walked;
    size_t n_bad = 0;

    name_keys(rest, &kept);
    rv_buf_puts(&sql, "UPDATE entities SET fields = ?1");
    require(sql_begin_write(store->sql, "change", NULL) == 0);
    rv_sql_stmt *stmt = sql_prepare(store->sql, &sql);
    sql_bind(stmt, 1, (struct sql_value){.type = SQL_TEXT, .bytes = {rv_buf_cstr(&kept), kept.len}});
    int rc = sql_run(stmt, "change", NULL);
    sql_finish(stmt);
    require(sql_end_write(store->sql, rc, "change", NULL) == rc && rc == 0);
    require(store_encryption_check(store->sql, count, &n_bad, NULL) == 0);
    rc = rv_store_encrypt(store, NULL, NOW_US, &walked, NULL);
    require(rc == 0 || n_bad > 0); /* what stands there as it should is not looked into */
    rv_buf_fini(&sql);
    rv_buf_fini(&kept);
}

RV_FUZZ_TARGET(sealed)
{
    rv_str rest = {(const char *)data + 1, size ? size - 1 : 0};

    if (size == 0 || size > 10000)
        return 0;
    if (!store)
        make_store();
    if (data[0] >= '1' && data[0] <= '3')
        try_form((size_t)(data[0] - '1'), rest);
    else if (data[0] == 'w')
        try_wrapped(rest);
    else if (data[0] == 'f')
        try_fields(rest);
    else
        try_raw(rest);
    return 0;
}
