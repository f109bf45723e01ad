/* Keys and modes for the tests of encryption, and a look at what is kept. */
#include "tests/contract/store/secrets.h"

#include <sys/stat.h>

#include "tests/kit/rsa_keys.h"

/* Another handle of the same store, or this one, with these master keys. "": none. */
void use_keys(struct world *w, const char *keys)
{
    rv_keyring *ring = NULL;

    if (*keys)
        OK(rv_keyring_read(rv_str_of(keys), "keys", &ring, &w->err));
    if (w->impl->is_shared) {
        rv_store_close(w->s);
        OK(rv_store_open(w->url, &(struct rv_store_opts){.ring = ring}, &w->s, &w->err));
        rv_keyring_unref(ring);
        return;
    }
    rv_keyring_unref(w->s->sql->ring);
    if (w->s->sql->vault)
        w->s->sql->vault_free(w->s->sql->vault);
    w->s->sql->vault = NULL;
    w->s->sql->ring = ring;
}

struct rv_rsa rsa_of(const char *text)
{
    rv_str rest = rv_str_of(text);
    struct rv_rsa key;

    ck_assert_int_eq(rv_rsa_read(&rest, "a key", &key, NULL), 0);
    return key;
}

/* The same with private keys beside. */
void use_private(struct world *w, const char *keys, const char *pem)
{
    char *dir = rv_kit_tmpdir(), path[300];
    rv_keyring *ring = NULL;

    snprintf(path, sizeof path, "%s/private.pem", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(pem, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    use_keys(w, keys);
    OK(rv_keyring_read(rv_str_of(keys), "keys", &ring, &w->err));
    OK(rv_keyring_add_private(&ring, path, &w->err));
    rv_keyring_unref(w->s->sql->ring);
    w->s->sql->ring = ring;
    rv_kit_tmpdir_remove(dir);
}

void set_mode(struct world *w, enum rv_encryption_mode mode)
{
    const struct rv_rsa seal = rsa_of(RSA_PUBLIC);
    char id[RV_ENCRYPTION_ID];

    OK(rv_store_set_encryption(
        w->s, RV_STORE_TENANT,
        &(const struct rv_encryption_choice){.mode = mode, .seal = mode == RV_ENCRYPTION_SEALED ? &seal : NULL}, T0, id,
        &w->err));
    ck_assert_uint_eq(strlen(id), RV_ENCRYPTION_ID - 1);
}

/* A text of a statement, as the store keeps it; the caller's. */
char *kept(struct world *w, const char *sql)
{
    rv_buf text = RV_BUF_INIT(4096);

    rv_buf_puts(&text, sql);
    rv_sql_stmt *stmt = sql_prepare(w->s->sql, &text);
    rv_buf_fini(&text);
    ck_assert_int_eq(sql_step(stmt, "look", NULL), 1);
    char *got = rv_str_dup(sql_str_at(stmt, 0));
    sql_finish(stmt);
    return got;
}

void change(struct world *w, const char *sql, const char *text, enum sql_type type)
{
    rv_buf b = RV_BUF_INIT(4096);

    rv_buf_puts(&b, sql);
    OK(sql_begin_write(w->s->sql, "change", &w->err));
    rv_sql_stmt *stmt = sql_prepare(w->s->sql, &b);
    sql_bind(stmt, 1, (struct sql_value){.type = type, .bytes = rv_str_of(text)});
    int rc = sql_run(stmt, "change", &w->err);
    sql_finish(stmt);
    OK(sql_end_write(w->s->sql, rc, "change", &w->err));
    rv_buf_fini(&b);
}

void say(struct world *w, const char *session, const char *content)
{
    struct rv_message m = world_message("m1", "user", content);
    const struct rv_turn turn = {.session = session, .rows = &m, .n_rows = 1};

    make_session(w, session, "");
    OK(rv_store_add_messages(w->s, &unowned, &turn, T0, &w->err));
}
