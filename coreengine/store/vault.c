/* Texts of rows, encrypted and decrypted; the keys of tenants, as a handle has them in memory. The rules are looked up
 * once in each transaction that writes; a key is looked up by its name when a text needs it, and stays. */
#include "coreengine/store/vault_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/store_internal.h"

#define MAGIC     "reeve-enc"
#define N_MAGIC   (sizeof MAGIC - 1)
#define N_HEAD    (N_MAGIC + 2)                                    /* with a digit and a colon */
#define N_SECRET  (N_HEAD + RV_ENCRYPTION_ID)                      /* with the key's name and a colon */
#define MAX_BOUND ((size_t)8 * 1024)                               /* bytes of a place */
#define MAX_KEPT  (RV_STORE_MAX_VALUE / 3 * 4 + (size_t)64 * 1024) /* bytes of an encrypted text */
#define MAX_KEYS  ((size_t)256)                                    /* in memory */
#define MAX_RULES ((size_t)1024)

struct vault_key {
    char id[RV_ENCRYPTION_ID];
    enum rv_encryption_mode mode;
    struct rv_cipher cipher; /* of a mode that has a key */
};
struct rule {
    char *tenant; /* owned */
    char key[RV_ENCRYPTION_ID];
    enum rv_encryption_mode mode;
};
struct rv_vault {
    int64_t begun;   /* the transaction whose rules these are */
    int64_t version; /* of the rules; 0: nothing was ever encrypted */
    struct vault_key **keys;
    size_t n_keys, keys_cap;
    struct rule *rules;
    size_t n_rules, rules_cap;
};
/* --- The vault --- */

static void forget_rules(struct rv_vault *v)
{
    for (size_t i = 0; i < v->n_rules; i++)
        free(v->rules[i].tenant);
    v->n_rules = 0;
}

static void forget_keys(struct rv_vault *v)
{
    for (size_t i = 0; i < v->n_keys; i++) {
        rv_wipe(v->keys[i], sizeof *v->keys[i]);
        free(v->keys[i]);
    }
    v->n_keys = 0;
}

static void vault_free(struct rv_vault *v)
{
    forget_rules(v);
    forget_keys(v);
    free(v->rules);
    free(v->keys);
    free(v);
}

void rv_vault_look_again(struct sql_store *st)
{
    st->n_begun++;
    st->rules = 0;
}

static int vault_of(struct sql_store *st, struct rv_vault **out, rv_err **err)
{
    if (!st->vault && !(st->vault = calloc(1, sizeof *st->vault)))
        return RV_FAIL(err, RV_E_NOMEM, "look up what is encrypted");
    st->vault_free = vault_free;
    *out = st->vault;
    return 0;
}

/* --- Keys of tenants --- */

static int read_mode(struct sql_store *st, rv_str text, enum rv_encryption_mode *out, rv_err **err)
{
    for (int i = RV_ENCRYPTION_DISABLED; i < RV_N_ENCRYPTION_MODES; i++)
        if (rv_str_is(text, rv_encryption_mode_text((enum rv_encryption_mode)i))) {
            *out = (enum rv_encryption_mode)i;
            return 0;
        }
    return rv_store_damaged(st, err, "the mode of a tenant's key is \"%.*s\"", RV_STR_ARG(rv_utf8_cut(text, 40)));
}

static void write_bound(const char *tenant, const char *id, rv_buf *out)
{
    rv_buf_puts(out, "reeve tenant key");
    rv_buf_putc(out, '\0');
    rv_buf_puts(out, tenant);
    rv_buf_putc(out, '\0');
    rv_buf_puts(out, id);
}

int rv_vault_wrap(const rv_keyring *ring, const char *tenant, const char *id, const unsigned char key[RV_CIPHER_KEY],
                  rv_buf *out, rv_err **err)
{
    rv_buf bound = RV_BUF_INIT(MAX_BOUND);

    write_bound(tenant, id, &bound);
    int rc = rv_buf_check(&bound, "a key", err);
    if (rc == 0)
        rv_keyring_wrap(ring, rv_rand_system(), rv_buf_str(&bound), key, out);
    rv_buf_fini(&bound);
    return rc < 0 ? rc : rv_buf_check(out, "a key", err);
}

int rv_vault_unwrap(const rv_keyring *ring, const char *tenant, const char *id, const char *master, rv_str wrapped,
                    unsigned char key[RV_CIPHER_KEY], rv_err **err)
{
    rv_buf bound = RV_BUF_INIT(MAX_BOUND);

    write_bound(tenant, id, &bound);
    int rc = rv_buf_check(&bound, "a key", err);
    if (rc == 0)
        rc = rv_keyring_unwrap(ring, master, rv_buf_str(&bound), wrapped, key, err);
    rv_buf_fini(&bound);
    if (rc < 0 && *tenant)
        RV_WRAP(err, rc, "key %s of tenant \"%s\"", id, tenant);
    else if (rc < 0)
        RV_WRAP(err, rc, "key %s of all tenants", id);
    return rc;
}

/* id, tenant, mode, kms_key_id, wrapped_dek of a row of TENANT_KEY. */
static int take_key(struct sql_store *st, rv_sql_stmt *stmt, struct vault_key *k, rv_err **err)
{
    unsigned char bytes[RV_CIPHER_KEY];
    bool lacked = false;
    const char *id = rv_sql_text_at(stmt, 0, &lacked), *tenant = rv_sql_text_at(stmt, 1, &lacked),
               *master = rv_sql_text_at(stmt, 3, &lacked);
    int rc = read_mode(st, rv_sql_str_at(stmt, 2), &k->mode, err);

    if (rc < 0)
        return rc;
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a key");
    if (!id || !tenant || !master)
        return rv_store_damaged(st, err, "a key of a tenant is damaged");
    snprintf(k->id, sizeof k->id, "%s", id);
    if (k->mode == RV_ENCRYPTION_DISABLED)
        return 0;
    rc = rv_vault_unwrap(st->ring, tenant, id, master, rv_sql_str_at(stmt, 4), bytes, err);
    if (rc == 0)
        rv_cipher_init(&k->cipher, bytes);
    rv_wipe(bytes, sizeof bytes);
    return rc;
}

/* *out: borrowed from the vault; NULL: the store has no key of that name. */
static int key_of(struct sql_store *st, const char *id, struct vault_key **out, rv_err **err)
{
    struct rv_vault *v = NULL;
    int rc = vault_of(st, &v, err);

    for (size_t i = 0; rc == 0 && i < v->n_keys; i++)
        if (strcmp(v->keys[i]->id, id) == 0) {
            *out = v->keys[i];
            return 0;
        }
    *out = NULL;
    if (rc < 0)
        return rc;
    if (v->n_keys >= MAX_KEYS)
        forget_keys(v);
    struct vault_key *k = calloc(1, sizeof *k);
    if (!k || !rv_has_room(&v->keys, &v->keys_cap, v->n_keys + 1, sizeof *v->keys)) {
        free(k);
        return RV_FAIL(err, RV_E_NOMEM, "read a key");
    }
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_TENANT_KEY);
    rv_sql_text(stmt, 1, id);
    rc = rv_sql_step(stmt, "read a key", err);
    int found = rc;
    if (rc == 1)
        rc = take_key(st, stmt, k, err);
    rv_sql_done(stmt);
    if (rc == 0 && found == 1)
        *out = v->keys[v->n_keys++] = k;
    else
        free(k);
    return rc;
}

/* --- Rules --- */

static int read_version(struct sql_store *st, int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_ENCRYPTION_VERSION);
    int rc = rv_sql_step(stmt, "look up what is encrypted", err);

    *out = rc == 1 ? rv_sql_int_at(stmt, 0) : 0;
    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int refresh(struct sql_store *st, struct rv_vault *v, rv_err **err)
{
    int64_t version = 0;

    if (v->begun == st->n_begun + 1)
        return 0;
    int rc = st->rules == 0 ? read_version(st, &version, err) : 0;
    if (rc < 0)
        return rc;
    if (st->rules > 0)
        version = st->rules - 1;
    if (version != v->version || v->n_rules >= MAX_RULES)
        forget_rules(v);
    v->version = version;
    v->begun = st->n_begun + 1;
    return 0;
}

static int read_rule(struct sql_store *st, const char *tenant, struct rule *r, rv_err **err)
{
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_TENANT_RULE);

    rv_sql_text(stmt, 1, tenant);
    int rc = rv_sql_step(stmt, "look up what is encrypted", err);
    if (rc == 1) {
        rv_str id = rv_sql_str_at(stmt, 0);
        snprintf(r->key, sizeof r->key, "%.*s", RV_STR_ARG(id));
        rc = read_mode(st, rv_sql_str_at(stmt, 1), &r->mode, err);
    }
    rv_sql_done(stmt);
    return rc;
}

/* *out NULL: there is none. */
static int rule_of(struct sql_store *st, const char *tenant, const struct rule **out, rv_err **err)
{
    struct rv_vault *v = NULL;
    int rc = vault_of(st, &v, err);

    *out = NULL;
    if (rc == 0)
        rc = refresh(st, v, err);
    if (rc < 0 || v->version == 0)
        return rc;
    for (size_t i = 0; i < v->n_rules; i++)
        if (strcmp(v->rules[i].tenant, tenant) == 0) {
            *out = &v->rules[i];
            return 0;
        }
    if (!rv_has_room(&v->rules, &v->rules_cap, v->n_rules + 1, sizeof *v->rules))
        return RV_FAIL(err, RV_E_NOMEM, "look up what is encrypted");
    struct rule r = {.mode = RV_ENCRYPTION_NONE};
    rc = read_rule(st, tenant, &r, err);
    if (rc == 0 && !(r.tenant = rv_str_dup(rv_str_of(tenant))))
        rc = RV_FAIL(err, RV_E_NOMEM, "look up what is encrypted");
    if (rc == 0) {
        v->rules[v->n_rules] = r;
        *out = &v->rules[v->n_rules++];
    }
    return rc;
}

int rv_vault_is_used(struct sql_store *st, bool *out, rv_err **err)
{
    struct rv_vault *v = NULL;
    int rc = vault_of(st, &v, err);

    if (rc == 0)
        rc = refresh(st, v, err);
    *out = rc == 0 && v->version > 0;
    return rc;
}

int rv_vault_mode(struct sql_store *st, const char *tenant, enum rv_encryption_mode *out, rv_err **err)
{
    const struct rule *r = NULL;
    int rc = rule_of(st, tenant, &r, err);

    *out = rc == 0 && r ? r->mode : RV_ENCRYPTION_NONE;
    return rc;
}

int rv_vault_key(struct sql_store *st, const char *tenant, char id[RV_ENCRYPTION_ID], rv_err **err)
{
    const struct rule *r = NULL;
    int rc = rule_of(st, tenant, &r, err);

    snprintf(id, RV_ENCRYPTION_ID, "%s", rc == 0 && r && r->mode >= RV_ENCRYPTION_PLATFORM ? r->key : "");
    return rc;
}

int rv_vault_level(struct sql_store *st, const char *tenant, const char **out, rv_err **err)
{
    enum rv_encryption_mode mode = RV_ENCRYPTION_NONE;
    int rc = rv_vault_mode(st, tenant, &mode, err);

    *out = mode == RV_ENCRYPTION_NONE ? NULL : rv_encryption_mode_text(mode);
    return rc;
}

/* --- One text --- */

/* '1' for an encrypted text, another digit for another form, 0 for a text without a head. */
static char form_of(rv_str kept)
{
    if (kept.len < N_HEAD || memcmp(kept.ptr, MAGIC, N_MAGIC) != 0 || kept.ptr[N_HEAD - 1] != ':')
        return 0;
    return rv_is_digit(kept.ptr[N_MAGIC]) ? kept.ptr[N_MAGIC] : 0;
}

bool rv_secret_is(rv_str kept)
{
    return form_of(kept) > '0';
}

void rv_secret_key(rv_str kept, char id[RV_ENCRYPTION_ID])
{
    bool has = form_of(kept) == '1' && kept.len > N_SECRET && kept.ptr[N_SECRET - 1] == ':';

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

static int encrypt(struct vault_key *k, const struct rv_place *at, const char *column, rv_str plain, rv_buf *out,
                   rv_err **err)
{
    rv_buf bound = RV_BUF_INIT(MAX_BOUND);
    struct rv_rand rand = rv_rand_system();
    size_t n = RV_CIPHER_NONCE + plain.len + RV_CIPHER_TAG;
    unsigned char *bytes = malloc(n);
    int rc = bytes ? write_place(at, column, &bound, err) : RV_FAIL(err, RV_E_NOMEM, "encrypt a text");

    if (rc == 0) {
        rand.fill(rand.self, bytes, RV_CIPHER_NONCE);
        rv_cipher_encrypt(&k->cipher, bytes, rv_buf_str(&bound), plain, bytes + RV_CIPHER_NONCE);
        rv_buf_puts(out, MAGIC "1:");
        rv_buf_puts(out, k->id);
        rv_buf_putc(out, ':');
        rv_base64_write((rv_str){(const char *)bytes, n}, out);
        rc = rv_buf_check(out, "an encrypted text", err);
    }
    rv_buf_fini(&bound);
    free(bytes);
    return rc;
}

int rv_secret_write(struct sql_store *st, const struct rv_place *at, const char *column, rv_str plain, rv_buf *out,
                    rv_err **err)
{
    const struct rule *r = NULL;
    struct vault_key *k = NULL;
    int rc = rule_of(st, at->tenant, &r, err);

    if (rc == 0 && r && r->mode >= RV_ENCRYPTION_PLATFORM) {
        rc = key_of(st, r->key, &k, err);
        if (rc == 0 && !k)
            rc = rv_store_damaged(st, err, "the key %s is missing", r->key);
    }
    if (rc < 0)
        return RV_WRAP(err, rc, "encrypt %s of a row of %s", column, at->table);
    if (k)
        return encrypt(k, at, column, plain, out, err);
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
    int rc =
        rv_store_damaged(st, err, "%s of \"%s\" in %s cannot be decrypted: it was changed, or is that of another row",
                         column, rv_buf_cstr(&ids), at->table);
    rv_buf_fini(&ids);
    return rc;
}

static int decrypt(struct sql_store *st, struct vault_key *k, const struct rv_place *at, const char *column,
                   rv_str kept, rv_buf *out, rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(MAX_KEPT), bound = RV_BUF_INIT(MAX_BOUND);
    rv_str coded = {kept.ptr + N_SECRET, kept.len - N_SECRET};
    int rc = write_place(at, column, &bound, err);

    if (rc == 0 && (!rv_base64_read(coded, &bytes) || (bytes.rc == 0 && bytes.len < RV_CIPHER_NONCE + RV_CIPHER_TAG)))
        rc = fail_changed(st, at, column, err);
    if (rc == 0)
        rc = rv_buf_check(&bytes, "an encrypted text", err);
    size_t n = rc == 0 ? bytes.len - RV_CIPHER_NONCE - RV_CIPHER_TAG : 0;
    unsigned char *plain = rc == 0 ? malloc(n + 1) : NULL;
    if (rc == 0 && !plain)
        rc = RV_FAIL(err, RV_E_NOMEM, "decrypt a text");
    if (rc == 0 && !rv_cipher_decrypt(&k->cipher, (const unsigned char *)bytes.ptr, rv_buf_str(&bound),
                                      (rv_str){bytes.ptr + RV_CIPHER_NONCE, bytes.len - RV_CIPHER_NONCE}, plain))
        rc = fail_changed(st, at, column, err);
    if (rc == 0) {
        rv_buf_add(out, plain, n);
        rc = rv_buf_check(out, "a decrypted text", err);
    }
    free(plain);
    rv_buf_fini(&bytes);
    rv_buf_fini(&bound);
    return rc;
}

static int fail_form(struct sql_store *st, const struct rv_place *at, const char *column, char form, rv_err **err)
{
    if (form == '1')
        return fail_changed(st, at, column, err);
    RV_FAIL(err, RV_E_VERSION, "\"%s\": %s of a row of %s is encrypted in form %c, which this program does not know",
            rv_sql_path(st), column, at->table, form);
    rv_err_hint(err, "use the newer program that wrote it");
    return RV_E_VERSION;
}

int rv_secret_read(struct sql_store *st, const struct rv_place *at, const char *column, rv_str kept, rv_buf *out,
                   rv_err **err)
{
    char form = form_of(kept), id[RV_ENCRYPTION_ID];
    struct vault_key *k = NULL;

    if (form <= '0') {
        rv_buf_add(out, kept.ptr + (form ? N_HEAD : 0), kept.len - (form ? N_HEAD : 0));
        return rv_buf_check(out, column, err);
    }
    if (st->as_kept) {
        rv_buf_add_str(out, kept);
        return rv_buf_check(out, column, err);
    }
    rv_secret_key(kept, id);
    if (!*id)
        return fail_form(st, at, column, form, err);
    int rc = key_of(st, id, &k, err);
    if (rc == 0 && (!k || k->mode < RV_ENCRYPTION_PLATFORM))
        rc = rv_store_damaged(st, err, "the key %s, which encrypted it, is missing", id);
    if (rc < 0)
        return RV_WRAP(err, rc, "decrypt %s of a row of %s", column, at->table);
    if (k->mode == RV_ENCRYPTION_CLIENT && !at->is_engines && !st->reveals) {
        rv_buf_add_str(out, kept);
        return rv_buf_check(out, column, err);
    }
    return decrypt(st, k, at, column, kept, out, err);
}

/* --- Arguments and columns --- */

void rv_secret_bind(rv_sql_stmt *stmt, int i, enum sql_type type, const struct rv_place *at, const char *column,
                    rv_str plain)
{
    const struct rule *r = NULL;

    if (!stmt)
        return;
    rv_sql_bind(stmt, i, (struct sql_value){.type = type, .bytes = plain});
    if (!plain.ptr || stmt->failed_rc < 0)
        return;
    stmt->failed_rc = rule_of(stmt->st, at->tenant, &r, &stmt->failed);
    if (stmt->failed_rc < 0 || ((!r || r->mode < RV_ENCRYPTION_PLATFORM) && !form_of(plain)))
        return;
    rv_buf *text = rv_sql_text_of(stmt, true, MAX_KEPT);
    stmt->failed_rc = text ? rv_secret_write(stmt->st, at, column, plain, text, &stmt->failed)
                           : RV_FAIL(&stmt->failed, RV_E_NOMEM, "encrypt a text");
    if (stmt->failed_rc == 0)
        rv_sql_bind(stmt, i, (struct sql_value){.type = type, .bytes = rv_buf_str(text)});
}

int rv_secret_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column, rv_str *out, rv_err **err)
{
    *out = rv_sql_str_at(stmt, i);
    if (!out->ptr || !form_of(*out))
        return 0;
    rv_buf *text = rv_sql_text_of(stmt, false, MAX_KEPT);
    int rc = text ? rv_secret_read(stmt->st, at, column, *out, text, err) : RV_FAIL(err, RV_E_NOMEM, "decrypt a text");
    *out = rc < 0 ? (rv_str){NULL, 0} : (rv_str){rv_buf_cstr(text), text->len};
    return rc;
}

int rv_secret_text_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column, const char **out,
                      rv_err **err)
{
    bool lacked = false;
    const char *text = rv_sql_text_at(stmt, i, &lacked);
    rv_str plain;

    *out = text;
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read %s", column);
    if (!text || !form_of(rv_str_of(text)))
        return 0;
    int rc = rv_secret_at(stmt, i, at, column, &plain, err);
    *out = plain.ptr;
    return rc;
}
