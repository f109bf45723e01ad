/* The keys of tenants, as a handle has them in memory, and the rules. The rules are looked up once in each transaction
 * that writes; a key is looked up by its name when a text needs it, and stays. secrets.c uses them. */
#include "coreengine/store/encryption/vault_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/entities.h"
#include "coreengine/store/store_internal.h"

#define MAX_BOUND ((size_t)8 * 1024) /* bytes of a place: as MAX_BOUND of secrets.c */
#define MAX_KEYS  ((size_t)256)      /* in memory: keys of as many tenants; others are read again */
#define MAX_RULES ((size_t)1024)     /* that are kept in memory; then all are forgotten and read again */

struct rv_vault {
    int64_t begun;              /* the transaction whose rules these are */
    int64_t version;            /* of the rules; 0: nothing was ever encrypted */
    struct rv_vault_key **keys; /* owned */
    size_t n_keys, keys_cap;
    struct rv_vault_rule *rules; /* owned */
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
        free(v->keys[i]->seal);
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

void vault_look_again(struct sql_store *st)
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
    return store_damaged(st, err, "the mode of a tenant's key is \"%.*s\"", RV_STR_ARG(rv_utf8_cut(text, 40)));
}

static void write_bound(const char *tenant, const char *id, rv_buf *out)
{
    rv_buf_puts(out, "reeve tenant key");
    rv_buf_putc(out, '\0');
    rv_buf_puts(out, tenant);
    rv_buf_putc(out, '\0');
    rv_buf_puts(out, id);
}

int vault_wrap(const rv_keyring *ring, const char *tenant, const char *id, const unsigned char key[RV_CIPHER_KEY],
               rv_buf *out, rv_err **err)
{
    rv_buf bound = RV_BUF_INIT(MAX_BOUND);

    write_bound(tenant, id, &bound);
    int rc = rv_buf_check(&bound, "a key", err);
    if (rc == 0)
        store_keyring_wrap(ring, rv_rand_system(), rv_buf_str(&bound), key, out);
    rv_buf_fini(&bound);
    return rc < 0 ? rc : rv_buf_check(out, "a key", err);
}

int vault_unwrap(const rv_keyring *ring, const struct rv_wrapped_key *of, unsigned char key[RV_CIPHER_KEY],
                 rv_err **err)
{
    rv_buf bound = RV_BUF_INIT(MAX_BOUND);

    write_bound(of->tenant, of->id, &bound);
    int rc = rv_buf_check(&bound, "a key", err);
    if (rc == 0)
        rc = store_keyring_unwrap(ring, of->master, rv_buf_str(&bound), of->wrapped, key, err);
    rv_buf_fini(&bound);
    if (rc < 0 && *of->tenant)
        RV_WRAP(err, rc, "key %s of tenant \"%s\"", of->id, of->tenant);
    else if (rc < 0)
        RV_WRAP(err, rc, "key %s of all tenants", of->id);
    return rc;
}

static int take_public(struct sql_store *st, rv_str text, struct rv_vault_key *k, rv_err **err)
{
    rv_err *why = NULL;

    k->seal = malloc(sizeof *k->seal);
    if (!k->seal)
        return RV_FAIL(err, RV_E_NOMEM, "read a key");
    int rc = rv_rsa_read(&text, "the public key of a tenant", k->seal, &why);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = store_damaged(st, err, "%s", rv_err_text(why));
    else if (rc < 0)
        RV_FAIL(err, RV_E_NOMEM, "read a key");
    rv_err_free(why);
    return rc;
}

/* id, tenant, mode, kms_key_id, wrapped_dek, public_key of a row of TENANT_KEY. */
static int take_key(struct sql_store *st, rv_sql_stmt *stmt, struct rv_vault_key *k, rv_err **err)
{
    unsigned char bytes[RV_CIPHER_KEY];
    bool lacked = false;
    const char *id = sql_text_at(stmt, 0, &lacked), *tenant = sql_text_at(stmt, 1, &lacked),
               *master = sql_text_at(stmt, 3, &lacked);
    int rc = read_mode(st, sql_str_at(stmt, 2), &k->mode, err);

    if (rc < 0)
        return rc;
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a key");
    if (!id || !tenant || !master)
        return store_damaged(st, err, "a key of a tenant is damaged");
    snprintf(k->id, sizeof k->id, "%s", id);
    if (k->mode == RV_ENCRYPTION_DISABLED)
        return 0;
    rc = vault_unwrap(
        st->ring,
        &(const struct rv_wrapped_key){.tenant = tenant, .id = id, .master = master, .wrapped = sql_str_at(stmt, 4)},
        bytes, err);
    if (rc == 0) {
        rv_cipher_init(&k->cipher, bytes);
        rv_siv_init(&k->siv, bytes);
    }
    rv_wipe(bytes, sizeof bytes);
    return rc < 0 || k->mode != RV_ENCRYPTION_SEALED ? rc : take_public(st, sql_str_at(stmt, 5), k, err);
}

int vault_key_of(struct sql_store *st, const char *id, struct rv_vault_key **out, rv_err **err)
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
    struct rv_vault_key *k = calloc(1, sizeof *k);
    if (!k || !rv_has_room(&v->keys, &v->keys_cap, v->n_keys + 1, sizeof *v->keys)) {
        free(k);
        return RV_FAIL(err, RV_E_NOMEM, "read a key");
    }
    rv_sql_stmt *stmt = sql_use(st, SQL_TENANT_KEY);
    store_sql_text(stmt, 1, id);
    rc = sql_step(stmt, "read a key", err);
    int found = rc;
    if (rc == 1)
        rc = take_key(st, stmt, k, err);
    sql_done(stmt);
    if (rc == 0 && found == 1) {
        *out = v->keys[v->n_keys++] = k;
    } else {
        free(k->seal);
        rv_wipe(k, sizeof *k);
        free(k);
    }
    return rc;
}

/* --- Rules --- */

static int read_version(struct sql_store *st, int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ENCRYPTION_VERSION);
    int rc = sql_step(stmt, "look up what is encrypted", err);

    *out = rc == 1 ? sql_int_at(stmt, 0) : 0;
    sql_done(stmt);
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
    st->rules = version + 1;
    if (version != v->version || v->n_rules >= MAX_RULES)
        forget_rules(v);
    v->version = version;
    v->begun = st->n_begun + 1;
    return 0;
}

static int read_rule(struct sql_store *st, const char *tenant, struct rv_vault_rule *r, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_TENANT_RULE);

    store_sql_text(stmt, 1, tenant);
    int rc = sql_step(stmt, "look up what is encrypted", err);
    if (rc == 1) {
        rv_str id = sql_str_at(stmt, 0);
        snprintf(r->key, sizeof r->key, "%.*s", RV_STR_ARG(id));
        rc = read_mode(st, sql_str_at(stmt, 1), &r->mode, err);
    }
    sql_done(stmt);
    return rc;
}

int vault_rule(struct sql_store *st, const char *tenant, const struct rv_vault_rule **out, rv_err **err)
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
    struct rv_vault_rule r = {.mode = RV_ENCRYPTION_NONE};
    rc = read_rule(st, tenant, &r, err);
    if (rc == 0 && !(r.tenant = rv_str_dup(rv_str_of(tenant))))
        rc = RV_FAIL(err, RV_E_NOMEM, "look up what is encrypted");
    if (rc == 0) {
        v->rules[v->n_rules] = r;
        *out = &v->rules[v->n_rules++];
    }
    return rc;
}

int vault_is_used(struct sql_store *st, bool *out, rv_err **err)
{
    struct rv_vault *v = NULL;
    int rc = vault_of(st, &v, err);

    if (rc == 0)
        rc = refresh(st, v, err);
    *out = rc == 0 && v->version > 0;
    return rc;
}

int vault_mode(struct sql_store *st, const char *tenant, enum rv_encryption_mode *out, rv_err **err)
{
    const struct rv_vault_rule *r = NULL;
    int rc = vault_rule(st, tenant, &r, err);

    *out = rc == 0 && r ? r->mode : RV_ENCRYPTION_NONE;
    return rc;
}

int vault_level(struct sql_store *st, const char *tenant, const char *table, const char **out, rv_err **err)
{
    enum rv_encryption_mode mode = RV_ENCRYPTION_NONE;
    const struct rv_kind *kind = rv_kind_find(rv_str_of(table));
    int rc = vault_mode(st, tenant, &mode, err);

    if (mode == RV_ENCRYPTION_SEALED && (!kind || !kind->is_sealed))
        mode = RV_ENCRYPTION_PLATFORM;
    *out = mode == RV_ENCRYPTION_NONE ? NULL : rv_encryption_mode_text(mode);
    return rc;
}

bool vault_is_ciphertext(json_object *whole)
{
    const char *level = NULL;

    return rv_json_get_text(whole, "encryption_level", &level) &&
           (strcmp(level, "platform") == 0 || strcmp(level, "client") == 0 || strcmp(level, "sealed") == 0);
}
