/* Texts of rows, encrypted and decrypted, in the form that the place of the text and the tenant's mode ask for.
 * vault.c has the keys. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

#define MAGIC     "reeve-enc"
#define N_MAGIC   (sizeof MAGIC - 1)          /* without its NUL */
#define N_HEAD    (N_MAGIC + 2)               /* with a digit and a colon */
#define N_SECRET  (N_HEAD + RV_ENCRYPTION_ID) /* with the key's name and a colon */
#define MAX_BOUND ((size_t)8 * 1024)          /* bytes of a place: six names of at most 1 KiB, a number */
#define MAX_KEPT  (RV_STORE_MAX_VALUE / 3 * 4 + (size_t)64 * 1024) /* bytes: RV_STORE_MAX_VALUE in base64, a head */

enum { RANDOM = '1', SEALED = '2', MATCHED = '3' }; /* forms */

/* --- One text --- */

/* The form of an encrypted text, '0' of a marked plain text, 0 of a text without a head. */
static char form_of(rv_str kept)
{
    if (kept.len < N_HEAD || memcmp(kept.ptr, MAGIC, N_MAGIC) != 0 || kept.ptr[N_HEAD - 1] != ':')
        return 0;
    return rv_is_digit(kept.ptr[N_MAGIC]) ? kept.ptr[N_MAGIC] : 0;
}

bool store_secret_is(rv_str kept)
{
    return form_of(kept) > '0';
}

bool store_secret_is_sealed(rv_str kept)
{
    return form_of(kept) == SEALED;
}

bool store_secret_is_of_row(rv_str kept)
{
    return form_of(kept) == RANDOM;
}

void store_secret_key(rv_str kept, char id[RV_ENCRYPTION_ID])
{
    bool has =
        form_of(kept) >= RANDOM && form_of(kept) <= MATCHED && kept.len > N_SECRET && kept.ptr[N_SECRET - 1] == ':';

    snprintf(id, RV_ENCRYPTION_ID, "%.*s", has ? RV_ENCRYPTION_ID - 1 : 0, has ? kept.ptr + N_HEAD : "");
}

/* No id has a NUL, and each table has its number of them: two places do not have one text. */
static int write_place(const struct rv_place *at, const char *column, rv_buf *out, rv_err **err)
{
    const char *const parts[] = {at->tenant, at->table, at->ids[0], at->ids[1], at->ids[2], column};

    for (size_t i = 0; i < RV_COUNT(parts); i++) {
        rv_buf_puts(out, parts[i] ? parts[i] : "");
        rv_buf_putc(out, '\0');
    }
    rv_buf_printf(out, "%lld", (long long)at->seq);
    return rv_buf_check(out, "the place of a text", err);
}

/* In which form a text is written there. */
static char form_at(enum rv_encryption_mode mode, const struct rv_place *at, const char *column)
{
    const struct rv_kind *kind = rv_kind_find(rv_str_of(at->table));

    if (!kind || kind->place != RV_PLACE_ENTITIES || !store_kind_encrypts(kind, column))
        return RANDOM;
    if (mode == RV_ENCRYPTION_SEALED && kind->is_sealed)
        return SEALED;
    return kind->matched && strcmp(column, kind->matched) == 0 ? MATCHED : RANDOM;
}

/* The data that must be the same when a text is decrypted. Equal texts of a tenant's column have equal bytes: no row is
 * in it. */
static int write_bound(const struct rv_place *at, const char *column, char form, rv_buf *out, rv_err **err)
{
    struct rv_place whole = *at;

    if (form == MATCHED) {
        memset(whole.ids, 0, sizeof whole.ids);
        whole.seq = 0;
    }
    return write_place(&whole, column, out, err);
}

/* The bytes of a sealed text: a key of its own, sealed, and what that key encrypted. */
static int seal(const struct rv_rsa *by, rv_str bound, rv_str plain, unsigned char *out, rv_err **err)
{
    struct rv_rand rand = rv_rand_system();
    unsigned char key[RV_CIPHER_KEY], *nonce = out + by->size;
    struct rv_cipher c;

    rand.fill(rand.self, key, sizeof key);
    rand.fill(rand.self, nonce, RV_CIPHER_NONCE);
    int rc = rv_rsa_seal(by, rand, key, out, err);
    if (rc == 0) {
        rv_cipher_init(&c, key);
        rv_cipher_encrypt(&c, nonce, bound, plain, nonce + RV_CIPHER_NONCE);
        rv_wipe(&c, sizeof c);
    }
    rv_wipe(key, sizeof key);
    return rc;
}

/* Bytes of a text besides its own. */
static size_t extra_of(const struct rv_vault_key *k, char form)
{
    return form == MATCHED ? RV_CIPHER_TAG : (form == SEALED ? k->seal->size : 0) + RV_CIPHER_NONCE + RV_CIPHER_TAG;
}

static int encrypt(struct rv_vault_key *k, char form, const struct rv_secret_cell *cell, rv_str plain, rv_buf *out,
                   rv_err **err)
{
    rv_buf bound = RV_BUF_INIT(MAX_BOUND);
    struct rv_rand rand = rv_rand_system();
    size_t n = plain.len + extra_of(k, form);
    unsigned char *bytes = malloc(n);
    int rc =
        bytes ? write_bound(cell->at, cell->column, form, &bound, err) : RV_FAIL(err, RV_E_NOMEM, "encrypt a text");

    if (rc == 0 && form == SEALED) {
        rc = seal(k->seal, rv_buf_str(&bound), plain, bytes, err);
    } else if (rc == 0 && form == MATCHED) {
        rv_siv_encrypt(&k->siv, rv_buf_str(&bound), plain, bytes);
    } else if (rc == 0) {
        rand.fill(rand.self, bytes, RV_CIPHER_NONCE);
        rv_cipher_encrypt(&k->cipher, bytes, rv_buf_str(&bound), plain, bytes + RV_CIPHER_NONCE);
    }
    if (rc == 0) {
        rv_buf_puts(out, MAGIC);
        rv_buf_putc(out, form);
        rv_buf_putc(out, ':');
        rv_buf_puts(out, k->id);
        rv_buf_putc(out, ':');
        rv_base64_write((rv_str){(const char *)bytes, n}, out);
        rc = rv_buf_check(out, "an encrypted text", err);
    }
    rv_buf_fini(&bound);
    free(bytes);
    return rc;
}

/* The key that encrypts what is written there now; NULL: it is plain. */
static int key_at(struct sql_store *st, const struct rv_place *at, struct rv_vault_key **out, rv_err **err)
{
    const struct rv_vault_rule *r = NULL;
    int rc = vault_rule(st, at->tenant, &r, err);

    *out = NULL;
    if (rc < 0 || !r || r->mode < RV_ENCRYPTION_PLATFORM)
        return rc;
    rc = vault_key_of(st, r->key, out, err);
    return rc == 0 && !*out ? store_damaged(st, err, "the key %s is missing", r->key) : rc;
}

int store_secret_is_current(struct sql_store *st, const struct rv_place *at, const char *column, rv_str kept, bool *out,
                            rv_err **err)
{
    const struct rv_vault_rule *r = NULL;
    char id[RV_ENCRYPTION_ID];
    int rc = vault_rule(st, at->tenant, &r, err);

    store_secret_key(kept, id);
    if (r && r->mode >= RV_ENCRYPTION_PLATFORM)
        *out = strcmp(id, r->key) == 0 && form_of(kept) == form_at(r->mode, at, column);
    else
        *out = !*id;
    return rc;
}

int store_secret_write(struct sql_store *st, const struct rv_place *at, const char *column, rv_str plain, rv_buf *out,
                       rv_err **err)
{
    struct rv_vault_key *k = NULL;
    int rc = key_at(st, at, &k, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "encrypt %s of a row of %s", column, at->table);
    if (k)
        return encrypt(k, form_at(k->mode, at, column), &(const struct rv_secret_cell){.at = at, .column = column},
                       plain, out, err);
    if (form_of(plain))
        rv_buf_puts(out, MAGIC "0:");
    rv_buf_add_str(out, plain);
    return rv_buf_check(out, column, err);
}

static int fail_changed(struct sql_store *st, const struct rv_place *at, const char *column, rv_err **err)
{
    rv_buf ids = RV_BUF_INIT(4096);

    for (size_t i = 0; i < RV_COUNT(at->ids); i++)
        if (at->ids[i] && *at->ids[i])
            rv_buf_printf(&ids, "%s%s", ids.len ? "/" : "", at->ids[i]);
    if (at->seq > 0)
        rv_buf_printf(&ids, "/%lld", (long long)at->seq);
    int rc = store_damaged(st, err, "%s of \"%s\" in %s cannot be decrypted: it was changed, or is that of another row",
                           column, rv_buf_cstr(&ids), at->table);
    rv_buf_fini(&ids);
    return rc;
}

static int unseal(const struct rv_rsa *by, rv_str bound, rv_str kept, unsigned char *out, rv_err **err)
{
    unsigned char key[RV_CIPHER_KEY];
    const unsigned char *bytes = (const unsigned char *)kept.ptr, *nonce = bytes + by->size;
    size_t n_before = by->size + RV_CIPHER_NONCE;
    struct rv_cipher c;
    int rc = rv_rsa_open(by, bytes, key, err);

    if (rc == 0) {
        rv_cipher_init(&c, key);
        if (!rv_cipher_decrypt(&c, nonce, bound, (rv_str){kept.ptr + n_before, kept.len - n_before}, out))
            rc = RV_FAIL(err, RV_E_IO, "a sealed text was changed");
        rv_wipe(&c, sizeof c);
    }
    rv_wipe(key, sizeof key);
    return rc;
}

struct opener {
    struct rv_vault_key *k;
    const struct rv_rsa *by; /* the private key, for sealed texts */
};

static int open_text(const struct opener *o, char form, rv_str bound, rv_str kept, unsigned char *out, rv_err **err)
{
    if (form == SEALED)
        return unseal(o->by, bound, kept, out, err);
    if (form == MATCHED ? rv_siv_decrypt(&o->k->siv, bound, kept, out)
                        : rv_cipher_decrypt(&o->k->cipher, (const unsigned char *)kept.ptr, bound,
                                            (rv_str){kept.ptr + RV_CIPHER_NONCE, kept.len - RV_CIPHER_NONCE}, out))
        return 0;
    return RV_FAIL(err, RV_E_IO, "an encrypted text was changed");
}

static int decrypt(struct sql_store *st, const struct opener *o, const struct rv_secret_cell *cell, rv_str kept,
                   rv_buf *out, rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(MAX_KEPT), bound = RV_BUF_INIT(MAX_BOUND);
    rv_str coded = {kept.ptr + N_SECRET, kept.len - N_SECRET};
    char form = form_of(kept);
    size_t n_extra = extra_of(o->k, form);
    rv_err *why = NULL;
    int rc = write_bound(cell->at, cell->column, form, &bound, err);

    if (rc == 0 && (!rv_base64_read(coded, &bytes) || (bytes.rc == 0 && bytes.len < n_extra)))
        rc = fail_changed(st, cell->at, cell->column, err);
    if (rc == 0)
        rc = rv_buf_check(&bytes, "an encrypted text", err);
    size_t n = rc == 0 ? bytes.len - n_extra : 0;
    unsigned char *plain = rc == 0 ? malloc(n + 1) : NULL;
    if (rc == 0 && !plain)
        rc = RV_FAIL(err, RV_E_NOMEM, "decrypt a text");
    if (rc == 0 && (rc = open_text(o, form, rv_buf_str(&bound), rv_buf_str(&bytes), plain, &why)) < 0)
        rc = rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "decrypt a text")
                              : fail_changed(st, cell->at, cell->column, err);
    rv_err_free(why); /* fail_changed() tells the place; the cipher has no more to say */
    if (rc == 0) {
        rv_buf_add(out, plain, n);
        rc = rv_buf_check(out, "a decrypted text", err);
    }
    if (plain)
        rv_wipe(plain, n);
    free(plain);
    rv_buf_fini(&bytes);
    rv_buf_fini(&bound);
    return rc;
}

static int fail_form(struct sql_store *st, const struct rv_place *at, const char *column, char form, rv_err **err)
{
    if (form >= RANDOM && form <= MATCHED)
        return fail_changed(st, at, column, err);
    RV_FAIL(err, RV_E_VERSION, "\"%s\": %s of a row of %s is encrypted in form %c, which this program does not know",
            sql_path(st), column, at->table, form);
    rv_err_set_hint(err, "use the newer program that wrote it");
    return RV_E_VERSION;
}

int store_secret_read(struct sql_store *st, const struct rv_place *at, const char *column, rv_str kept, rv_buf *out,
                      rv_err **err)
{
    char form = form_of(kept), id[RV_ENCRYPTION_ID];
    struct rv_vault_key *k = NULL;

    if (form <= '0') {
        rv_buf_add(out, kept.ptr + (form ? N_HEAD : 0), kept.len - (form ? N_HEAD : 0));
        return rv_buf_check(out, column, err);
    }
    if (st->as_kept) {
        rv_buf_add_str(out, kept);
        return rv_buf_check(out, column, err);
    }
    store_secret_key(kept, id);
    if (!*id)
        return fail_form(st, at, column, form, err);
    int rc = vault_key_of(st, id, &k, err);
    if (rc == 0 && (!k || k->mode < RV_ENCRYPTION_PLATFORM))
        rc = store_damaged(st, err, "the key %s, which encrypted it, is missing", id);
    if (rc < 0)
        return RV_WRAP(err, rc, "decrypt %s of a row of %s", column, at->table);
    if (form == SEALED && !k->seal)
        return fail_changed(st, at, column, err);
    const struct rv_rsa *by = form == SEALED ? store_keyring_private(st->ring, k->seal) : NULL;
    if ((form == SEALED && !by) || (k->mode == RV_ENCRYPTION_CLIENT && !at->is_engines && !st->reveals)) {
        rv_buf_add_str(out, kept);
        return rv_buf_check(out, column, err);
    }
    return decrypt(st, &(struct opener){k, by}, &(const struct rv_secret_cell){.at = at, .column = column}, kept, out,
                   err);
}

/* --- Looking for a text --- */

static int list_keys(struct sql_store *st, const char *tenant, char (*ids)[RV_ENCRYPTION_ID], size_t *n, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_TENANT_KEYS);
    int rc;

    store_sql_text(stmt, 1, tenant);
    while ((rc = sql_step(stmt, "list keys", err)) == 1 && *n <= RV_SECRET_SPELLINGS) {
        rv_str id = sql_str_at(stmt, 0), master = sql_str_at(stmt, 5);
        if (master.len > 0 && (*n)++ < RV_SECRET_SPELLINGS)
            snprintf(ids[*n - 1], RV_ENCRYPTION_ID, "%.*s", RV_STR_ARG(id));
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int store_secret_spellings(struct sql_store *st, const struct rv_secret_cell *cell, rv_str plain,
                           rv_buf out[RV_SECRET_SPELLINGS], size_t *n, rv_err **err)
{
    char ids[RV_SECRET_SPELLINGS][RV_ENCRYPTION_ID];
    bool is_used = false;
    int rc = vault_is_used(st, &is_used, err);

    *n = 0;
    if (rc == 0 && is_used)
        rc = list_keys(st, cell->at->tenant, ids, n, err);
    if (rc == 0 && is_used && *cell->at->tenant)
        rc = list_keys(st, "", ids, n, err);
    for (size_t i = 0; i < *n && *n <= RV_SECRET_SPELLINGS && rc == 0; i++) {
        struct rv_vault_key *k = NULL;
        rc = vault_key_of(st, ids[i], &k, err);
        if (rc == 0 && k)
            rc = encrypt(k, MATCHED, cell, plain, &out[i], err);
    }
    return rc;
}

/* --- Arguments and columns --- */

void store_secret_bind(rv_sql_stmt *stmt, int i, enum sql_type type, const struct rv_place *at, const char *column,
                       rv_str plain)
{
    const struct rv_vault_rule *r = NULL;

    if (!stmt)
        return;
    sql_bind(stmt, i, (struct sql_value){.type = type, .bytes = plain});
    if (!plain.ptr || stmt->failed_rc < 0)
        return;
    stmt->failed_rc = vault_rule(stmt->st, at->tenant, &r, &stmt->failed);
    if (stmt->failed_rc < 0 || ((!r || r->mode < RV_ENCRYPTION_PLATFORM) && !form_of(plain)))
        return;
    rv_buf *text = sql_text_of(stmt, true, MAX_KEPT);
    stmt->failed_rc = text ? store_secret_write(stmt->st, at, column, plain, text, &stmt->failed)
                           : RV_FAIL(&stmt->failed, RV_E_NOMEM, "encrypt a text");
    if (stmt->failed_rc == 0)
        sql_bind(stmt, i, (struct sql_value){.type = type, .bytes = rv_buf_str(text)});
}

int store_secret_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column, rv_str *out, rv_err **err)
{
    *out = sql_str_at(stmt, i);
    if (!out->ptr || !form_of(*out))
        return 0;
    rv_buf *text = sql_text_of(stmt, false, MAX_KEPT);
    int rc =
        text ? store_secret_read(stmt->st, at, column, *out, text, err) : RV_FAIL(err, RV_E_NOMEM, "decrypt a text");
    *out = rc < 0 ? (rv_str){NULL, 0} : (rv_str){rv_buf_cstr(text), text->len};
    return rc;
}

/* No text that is kept has a character that JSON escapes. */
int store_secret_json_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column, rv_str *out,
                         rv_err **err)
{
    bool is_secret = store_secret_is(sql_str_at(stmt, i));
    int rc = store_secret_at(stmt, i, at, column, out, err);

    if (rc < 0 || !is_secret || !store_secret_is(*out))
        return rc;
    rv_buf *text = sql_text_of(stmt, false, MAX_KEPT);
    if (!text)
        return RV_FAIL(err, RV_E_NOMEM, "show an encrypted text");
    rv_buf_puts(text, "{\"encrypted\":\"");
    rv_buf_add_str(text, *out);
    rv_buf_puts(text, "\"}");
    rc = rv_buf_check(text, column, err);
    *out = (rv_str){rv_buf_cstr(text), text->len};
    return rc;
}

int store_secret_is_hidden(struct sql_store *st, rv_str kept, bool *out, rv_err **err)
{
    char id[RV_ENCRYPTION_ID];
    struct rv_vault_key *k = NULL;

    *out = false;
    store_secret_key(kept, id);
    if (!*id || st->as_kept || st->reveals)
        return 0;
    int rc = vault_key_of(st, id, &k, err);
    *out = rc == 0 && k && k->mode == RV_ENCRYPTION_CLIENT;
    return rc;
}

int store_secret_text_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column, const char **out,
                         rv_err **err)
{
    bool lacked = false;
    const char *text = sql_text_at(stmt, i, &lacked);
    rv_str plain;

    *out = text;
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read %s", column);
    if (!text || !form_of(rv_str_of(text)))
        return 0;
    int rc = store_secret_at(stmt, i, at, column, &plain, err);
    *out = plain.ptr;
    return rc;
}
