/* URLs, passwords and rights: what cannot be used is refused with a reason, and no message has a password in it. */
#include "tests/integration/postgres/world.h"

#include <signal.h>

#define SECRET "s3cr3t"

static const struct rv_store_opts hasty = {.busy_ms = 300};

static void must_hide(const rv_err *err, const char *url)
{
    for (; err; err = rv_err_cause(err)) {
        ck_assert_msg(!strstr(rv_err_text(err), SECRET), "%s: %s", url, rv_err_text(err));
        ck_assert_msg(!rv_err_hint_text(err) || !strstr(rv_err_hint_text(err), SECRET), "%s: %s", url,
                      rv_err_hint_text(err));
    }
}

START_TEST(a_url_that_cannot_be_read_is_refused_and_shows_no_password)
{
    static const char *const urls[] = {
        "postgres://u:" SECRET "@h@[x",
        "postgres://u:a@" SECRET "@localhost/db",
        "postgres://u:a/" SECRET "@localhost/db",
        "postgres://u:a?" SECRET "@[::1/db",
        "postgresql://u:" SECRET "%zz@localhost/db",
        "postgres://u:" SECRET "%00@localhost/db",
        "postgres://localhost/db?password=" SECRET "&no_such=1",
        "postgres://localhost/db?password=" SECRET "&" SECRET,
        "postgres://localhost/db?sslpassword=" SECRET "&nothing",
        "postgres://localhost/db?schema=Upper",
        "postgres://localhost/db?schema=",
        "postgres://localhost/db?schema=a\"b",
        "postgres://localhost/db?schema=pg_temp",
        "postgres://localhost/db?schema=a%20b",
        "postgres://localhost/db?schema=a;drop",
        "postgres://localhost/db?schema=1a",
        "postgres://localhost/db?schema=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "postgres://localhost/db?=x",
        "postgres://localhost/db?x",
        "postgres://u:" SECRET "@localhost:port/db",
        "postgres://u:" SECRET "@localhost:99999/db",
        "postgres://u:" SECRET "@localhost/db?sslmode=no-such-mode",
        "postgres://u:" SECRET "@localhost/db?target_session_attrs=no-such-attrs",
    };

    for (size_t i = 0; i < RV_COUNT(urls); i++) {
        rv_store *s = NULL;
        rv_err *err = NULL;
        int rc = rv_store_open(urls[i], &hasty, &s, &err);
        ck_assert_msg(rc == RV_E_INVALID, "%s: %s: %s", urls[i], rv_code_text(rc), rv_err_text(err));
        must_hide(err, urls[i]);
        rv_err_free(err);
    }
}
END_TEST

START_TEST(a_server_that_is_not_there_is_an_error_without_a_password)
{
    static const char *const urls[] = {
        "postgres://u:" SECRET "@localhost:1/db",
        "postgres://u:" SECRET "@/db?host=/nowhere",
        "postgres:///db?host=/nowhere&password=" SECRET,
        "postgres://u:" SECRET "@no-such-host.invalid/db",
        "postgres:///?hostaddr=127.0.0.1&port=1&password=" SECRET,
    };

    for (size_t i = 0; i < RV_COUNT(urls); i++) {
        rv_store *s = NULL;
        rv_err *err = NULL;
        int rc = rv_store_open(urls[i], &hasty, &s, &err);
        ck_assert_msg(rc == RV_E_UNAVAILABLE, "%s: %s: %s", urls[i], rv_code_text(rc), rv_err_text(err));
        must_hide(err, urls[i]);
        rv_err_free(err);
    }
}
END_TEST

START_TEST(a_url_is_shown_without_its_password)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"store.db", "store.db"},
        {"sqlite:a@b:c?d", "sqlite:a@b:c?d"},
        {"postgres:///", "postgres:///"},
        {"postgres://h:5/d?schema=x", "postgres://h:5/d?schema=x"},
        {"postgres://u@h/d", "postgres://u@h/d"},
        {"postgres://u:" SECRET "@h/d?schema=x", "postgres://u@h/d?schema=x"},
        {"postgresql://u:" SECRET "@h1:1,h2:2/d", "postgresql://u@h1:1,h2:2/d"},
        {"postgres://:" SECRET "@h/d", "postgres://@h/d"},
        {"postgres://u:a@" SECRET "@h/d", "postgres://u@h/d"},
        {"postgres:///d?host=/tmp&password=" SECRET "&port=1", "postgres:///d?host=/tmp&port=1"},
        {"postgres:///d?passfile=/" SECRET "&options=" SECRET, "postgres:///d"},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        rv_buf b = RV_BUF_INIT(1000);
        rv_store_show_url(cases[i].url, &b);
        ck_assert_str_eq(rv_buf_cstr(&b), cases[i].shown);
        rv_buf_fini(&b);
    }
}
END_TEST

/* A server that asks for passwords. */
static void guarded(struct world *w, struct rv_kit_postgres *pg)
{
    *pg = (struct rv_kit_postgres){0};
    rv_kit_postgres_start(pg);
    world_open(w, pg);
    free(rv_kit_postgres_sql(pg,
                             "SET password_encryption = 'scram-sha-256'; CREATE ROLE app LOGIN PASSWORD '" SECRET "'"));
    free(rv_kit_postgres_sql(pg, "CREATE ROLE reader LOGIN"));
    char *data = rv_kit_path(pg->dir, "data/pg_hba.conf");
    rv_kit_write(data, "local all app scram-sha-256\nlocal all reeve trust\nlocal all reader trust\n");
    free(data);
    free(rv_kit_postgres_sql(pg, "SELECT pg_reload_conf()"));
}

static int open_as(struct world *w, const char *user, const char *rest, rv_store **out)
{
    rv_buf url = RV_BUF_INIT(1000);

    rv_buf_printf(&url, "postgres://%s@/postgres?host=%s&port=1%s", user, w->server->dir, rest);
    int rc = rv_store_open(rv_buf_cstr(&url), &hasty, out, &w->err);
    must_hide(w->err, rv_buf_cstr(&url));
    rv_buf_fini(&url);
    return rc;
}

START_TEST(a_password_is_taken_from_the_url_and_the_environment)
{
    struct world world, *w = &world;
    struct rv_kit_postgres pg;
    rv_store *s = NULL;

    guarded(w, &pg);
    for (int i = 0; i < 200 && open_as(w, "app:wrong", "", &s) == RV_E_NOT_FOUND; i++) { /* until it has reloaded */
        rv_err_free(w->err);
        w->err = NULL;
    }
    rv_err_free(w->err);
    w->err = NULL;
    FAILS(RV_E_DENIED, "password authentication failed", "PGPASSWORD", open_as(w, "app:wrong", "", &s));
    FAILS(RV_E_DENIED, "no password supplied", "PGPASSWORD", open_as(w, "app", "", &s));
    FAILS(RV_E_DENIED, "permission denied", "CREATE", open_as(w, "app:" SECRET, "&schema=mine", &s));
    free(rv_kit_postgres_sql(&pg, "CREATE SCHEMA mine AUTHORIZATION app"));
    OK(open_as(w, "app:" SECRET, "&schema=mine", &s));
    ck_assert_ptr_null(strstr(rv_store_url(s), SECRET));
    rv_store *other = NULL;
    OK(rv_store_reopen(s, &other, &w->err)); /* it knows the password all the same */
    rv_store_close(other);
    rv_store_close(s);
    setenv("PGPASSWORD", SECRET, 1);
    OK(open_as(w, "app", "&schema=mine", &s));
    rv_store_close(s);
    unsetenv("PGPASSWORD");
    world_close(w);
    rv_kit_postgres_end(&pg);
}
END_TEST

START_TEST(a_role_without_rights_is_told_which)
{
    struct world world, *w = &world;
    struct rv_kit_postgres pg;
    rv_store *s = NULL;
    struct rv_store_stats stats;
    char hash[RV_STORE_HASH_MAX];

    guarded(w, &pg);
    FAILS(RV_E_NOT_FOUND, "does not exist", "createdb",
          rv_store_open("postgres://reader@/nowhere?port=1", &hasty, &s, NULL) == RV_E_UNAVAILABLE
              ? open_as(w, "reader", "&dbname=nowhere", &s)
              : RV_E_INTERNAL);
    free(rv_kit_postgres_sql(&pg, "CREATE SCHEMA theirs; GRANT USAGE ON SCHEMA theirs TO reader"));
    FAILS(RV_E_DENIED, "permission denied", "CREATE on the schema", open_as(w, "reader", "&schema=theirs", &s));
    const char *schema = strstr(w->url, "schema=");
    rv_buf sql = RV_BUF_INIT(500), rest = RV_BUF_INIT(100);
    rv_buf_printf(&sql, "GRANT USAGE ON SCHEMA %s TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA %s TO reader",
                  schema + 7, schema + 7);
    free(rv_kit_postgres_sql(&pg, rv_buf_cstr(&sql)));
    rv_buf_printf(&rest, "&%s", schema);
    OK(open_as(w, "reader", rv_buf_cstr(&rest), &s));
    OK(rv_store_read_stats(s, &stats, &w->err));
    FAILS(RV_E_DENIED, "permission denied", NULL, rv_store_put_blob(s, RV_STR_LIT("x"), hash, &w->err));
    rv_store_close(s);
    rv_buf_fini(&sql);
    rv_buf_fini(&rest);
    world_close(w);
    rv_kit_postgres_end(&pg);
}
END_TEST

Suite *address_suite(void)
{
    Suite *suite = suite_create("address");
    TCase *tc = tcase_create("address");

    tcase_add_test(tc, a_url_that_cannot_be_read_is_refused_and_shows_no_password);
    tcase_add_test(tc, a_server_that_is_not_there_is_an_error_without_a_password);
    tcase_add_test(tc, a_url_is_shown_without_its_password);
    tcase_add_test(tc, a_password_is_taken_from_the_url_and_the_environment);
    tcase_add_test(tc, a_role_without_rights_is_told_which);
    suite_add_tcase(suite, tc);
    return suite;
}
