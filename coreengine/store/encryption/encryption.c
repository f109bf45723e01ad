/* Rules and keys of tenants: setting a mode, which makes a key; listing; wrapping all keys by another master key. */
#include "coreengine/store/encryption.h"

#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

#define ALGORITHM "AES-256-GCM"
#define SEALS     ", RSA-OAEP-256"

/* --- Setting a mode --- */

struct fresh {
    char id[RV_ENCRYPTION_ID];
    rv_buf wrapped, seal; /* seal: PEM; empty: none */
    bool has_key;
};

static int make_key(const rv_keyring *ring, const char *tenant, const struct rv_rsa *seal, struct fresh *f,
                    rv_err **err)
{
    unsigned char key[RV_CIPHER_KEY], name[8];
    struct rv_rand rand = rv_rand_system();

    rand.fill(rand.self, name, sizeof name);
    rv_hex_make(name, sizeof name, f->id);
    f->id[RV_ENCRYPTION_ID - 1] = '\0';
    if (!f->has_key)
        return 0;
    if (seal)
        rv_rsa_write(seal, &f->seal);
    rand.fill(rand.self, key, sizeof key);
    int rc = vault_wrap(ring, tenant, f->id, key, &f->wrapped, err);
    rv_wipe(key, sizeof key);
    return rc < 0 ? rc : rv_buf_check(&f->seal, "a public key", err);
}

/* The count is first: other processes that set a mode wait for the end of this transaction. */
static int set_mode(struct sql_store *st, const char *tenant, enum rv_encryption_mode mode, const struct fresh *f,
                    int64_t now_us, rv_err **err)
{
    int rc = sql_run(sql_use(st, SQL_COUNT_ENCRYPTION), "set the mode of encryption", err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_RETIRE_KEY);
    store_sql_text(stmt, 1, tenant);
    sql_int(stmt, 2, now_us);
    rc = sql_run(stmt, "retire a key", err);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_ADD_TENANT_KEY);
    store_sql_text(stmt, 1, f->id);
    store_sql_text(stmt, 2, tenant);
    store_sql_text(stmt, 3, rv_encryption_mode_text(mode));
    store_sql_text(stmt, 4, f->seal.len > 0 ? ALGORITHM SEALS : f->has_key ? ALGORITHM : "");
    store_sql_text(stmt, 5, f->has_key ? store_keyring_name(st->ring, 0) : "");
    store_sql_text(stmt, 6, rv_buf_cstr(&f->wrapped));
    sql_int(stmt, 7, now_us);
    store_sql_text(stmt, 8, f->seal.len > 0 ? rv_buf_cstr(&f->seal) : NULL);
    return sql_run(stmt, "write a key", err);
}

static int check_set(const rv_store *s, const char *tenant, enum rv_encryption_mode mode, const struct rv_rsa *seal,
                     int64_t now_us, rv_err **err)
{
    int rc = *tenant ? store_check_new_id("tenant", tenant, err) : 0;

    if (rc == 0 && *tenant)
        rc = store_check_id("tenant", tenant, err);
    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0 && (mode <= RV_ENCRYPTION_NONE || mode >= RV_N_ENCRYPTION_MODES))
        rc = RV_FAIL(err, RV_E_INVALID, "%d is not a mode of encryption that can be set", (int)mode);
    if (rc == 0 && (mode == RV_ENCRYPTION_SEALED) != (seal != NULL)) {
        rc = RV_FAIL(err, RV_E_INVALID, "%s",
                     seal ? "a public key is for the mode sealed" : "the mode sealed needs the tenant's public key");
        rv_err_set_hint(err, "`openssl pkey -in private.pem -pubout -out public.pem` writes it");
    }
    if (rc == 0 && mode >= RV_ENCRYPTION_PLATFORM && store_keyring_size(s->sql->ring) == 0) {
        rc = RV_FAIL(err, RV_E_STATE, "no master key is given, so a key cannot be wrapped");
        rv_err_set_hint(err, "`reeve encryption new-key` makes one; REEVE_ENCRYPTION_KEY_FILE names its file");
    }
    return rc;
}

int rv_store_set_encryption(rv_store *s, const char *tenant, const struct rv_encryption_choice *how, int64_t now_us,
                            char id[RV_ENCRYPTION_ID], rv_err **err)
{
    struct fresh f = {
        .wrapped = RV_BUF_INIT(1024), .seal = RV_BUF_INIT(RV_RSA_TEXT), .has_key = how->mode >= RV_ENCRYPTION_PLATFORM};
    int rc = check_set(s, tenant, how->mode, how->seal, now_us, err);

    if (rc == 0)
        rc = make_key(s->sql->ring, tenant, how->seal, &f, err);
    rc = store_enter_write(s, rc, "set encryption", err);
    if (rc == 0) {
        do {
            rc = set_mode(s->sql, tenant, how->mode, &f, now_us, err);
            vault_look_again(s->sql); /* a group goes on with the new rules */
        } while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    if (rc == 0)
        memcpy(id, f.id, sizeof f.id);
    rv_buf_fini(&f.wrapped);
    rv_buf_fini(&f.seal);
    return rc;
}

/* --- Listing --- */

static int key_of(struct sql_store *st, rv_sql_stmt *stmt, struct rv_tenant_key *out, rv_err **err)
{
    bool lacked = false;
    rv_str mode = sql_str_at(stmt, 2);

    *out = (struct rv_tenant_key){
        .id = sql_text_at(stmt, 0, &lacked),
        .tenant = sql_text_at(stmt, 1, &lacked),
        .status = sql_text_at(stmt, 3, &lacked),
        .algorithm = sql_text_at(stmt, 4, &lacked),
        .master = sql_text_at(stmt, 5, &lacked),
        .created_us = sql_int_at(stmt, 6),
        .retired_us = sql_int_at(stmt, 7),
        .public_key = sql_text_at(stmt, 9, &lacked),
    };
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "list keys");
    if (!out->id || !out->tenant || !out->status || !out->algorithm || !out->master ||
        rv_encryption_mode_of(mode, &out->mode,
                              RV_CODE_ONLY("an unknown mode in a row is reported as damage of the store")) < 0)
        return store_damaged(st, err, "a key of a tenant is damaged");
    return 0;
}

typedef int each_key(void *self, const struct rv_tenant_key *key, rv_err **err);

static int list(struct sql_store *st, const char *tenant, each_key *each, void *self, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_TENANT_KEYS);
    int rc;

    store_sql_text(stmt, 1, tenant);
    while ((rc = sql_step(stmt, "list keys", err)) == 1) {
        struct rv_tenant_key key;
        rc = key_of(st, stmt, &key, err);
        if (rc == 0)
            rc = each(self, &key, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_tenant_keys(rv_store *s, const char *tenant,
                              int (*each)(void *self, const struct rv_tenant_key *key, rv_err **err), void *self,
                              rv_err **err)
{
    int rc = store_enter_read(s, 0, "list tenant keys", err);

    return rc != 0 ? rc : store_leave_read(s, list(s->sql, tenant, each, self, err), err);
}

/* --- Another master key --- */

struct rewrapped {
    char id[RV_ENCRYPTION_ID];
    rv_buf wrapped;
};
struct rewrapping {
    struct rewrapped *at; /* owned */
    size_t n, cap;
};

static void rewrapping_fini(struct rewrapping *r)
{
    for (size_t i = 0; i < r->n; i++)
        rv_buf_fini(&r->at[i].wrapped);
    free(r->at);
    *r = (struct rewrapping){0};
}

static int rewrap(struct sql_store *st, rv_sql_stmt *stmt, struct rewrapping *r, rv_err **err)
{
    unsigned char bytes[RV_CIPHER_KEY];
    struct rv_tenant_key key;
    int rc = key_of(st, stmt, &key, err);

    if (rc < 0 || !*key.master || strcmp(key.master, store_keyring_name(st->ring, 0)) == 0)
        return rc;
    if (!rv_has_room(&r->at, &r->cap, r->n + 1, sizeof *r->at))
        return RV_FAIL(err, RV_E_NOMEM, "wrap keys");
    struct rewrapped *to = &r->at[r->n++];
    *to = (struct rewrapped){.wrapped = RV_BUF_INIT(1024)};
    snprintf(to->id, sizeof to->id, "%s", key.id);
    rc = vault_unwrap(st->ring,
                      &(const struct rv_wrapped_key){
                          .tenant = key.tenant, .id = key.id, .master = key.master, .wrapped = sql_str_at(stmt, 8)},
                      bytes, err);
    if (rc == 0)
        rc = vault_wrap(st->ring, key.tenant, key.id, bytes, &to->wrapped, err);
    rv_wipe(bytes, sizeof bytes);
    return rc;
}

static int rewrap_all(struct sql_store *st, struct rewrapping *r, rv_err **err)
{
    int rc = sql_run(sql_use(st, SQL_COUNT_ENCRYPTION), "wrap keys", err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_TENANT_KEYS);
    store_sql_text(stmt, 1, NULL);
    while ((rc = sql_step(stmt, "list keys", err)) == 1 && (rc = rewrap(st, stmt, r, err)) == 0)
        continue;
    sql_done(stmt);
    for (size_t i = 0; i < r->n && rc == 0; i++) {
        stmt = sql_use(st, SQL_REWRAP_KEY);
        store_sql_text(stmt, 1, r->at[i].id);
        store_sql_text(stmt, 2, store_keyring_name(st->ring, 0));
        store_sql_text(stmt, 3, rv_buf_cstr(&r->at[i].wrapped));
        rc = sql_run(stmt, "write a key", err);
    }
    return rc;
}

int rv_store_rewrap_keys(rv_store *s, int64_t *n, rv_err **err)
{
    struct rewrapping r = {0};
    int rc = 0;

    if (store_keyring_size(s->sql->ring) == 0)
        rc = RV_FAIL(err, RV_E_STATE, "no master key is given");
    if ((rc = store_enter_write(s, rc, "rewrap keys", err)) != 0)
        return rc;
    do {
        rewrapping_fini(&r);
        rc = sql_begin_part(s->sql, err);
        if (rc == 0)
            rc = sql_end_part(s->sql, rewrap_all(s->sql, &r, err), err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0)
        *n = (int64_t)r.n;
    rewrapping_fini(&r);
    return rc;
}

bool rv_store_reveal(rv_store *s, bool reveals)
{
    const bool before = s->sql->reveals;

    s->sql->reveals = reveals;
    return before;
}
