/* API keys and logins: rows without secrets, whose they are, and when they are over. */
#include "tests/contract/store/faults.h"

#define HASH  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LOGIN "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static struct rv_api_key_row a_key(const char *id, const char *tenant, const char *user)
{
    return (struct rv_api_key_row){.id = id,
                                   .hash = HASH,
                                   .level = user ? "user" : "tenant",
                                   .tenant = tenant,
                                   .user = user,
                                   .scopes = "chat runs:read",
                                   .note = "a note",
                                   .created_us = T0};
}

static void add(struct world *w, const char *id, const char *tenant, const char *user, int64_t created, int64_t expires)
{
    struct rv_api_key_row row = a_key(id, tenant, user);

    row.created_us = created;
    row.expires_us = expires;
    OK(rv_store_add_api_key(w->s, &row, &w->err));
}

static void write_key(const struct rv_api_key_row *row, rv_buf *out)
{
    rv_buf_printf(out, "%s %s %s/%s %s [%s] %lld %lld %lld %lld %s", row->id, row->level, row->tenant, row->user,
                  row->scopes, row->note, (long long)(row->created_us - T0), (long long)row->expires_us,
                  (long long)(row->used_us ? row->used_us - T0 : 0),
                  (long long)(row->revoked_us ? row->revoked_us - T0 : 0), strcmp(row->hash, HASH) == 0 ? "ok" : "bad");
}

static void key_is(struct world *w, const char *id, const char *text, int line)
{
    struct rv_api_key_row row = {0};
    struct seen seen = SEEN_INIT;

    OK(rv_store_get_api_key(w->s, id, &row, &w->err));
    write_key(&row, &seen.text);
    rv_api_key_row_fini(&row);
    must_see(&seen, text, line);
}
#define KEY(id, text) key_is(w, (id), (text), __LINE__)

static int see_key(void *self, const struct rv_api_key_row *row, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s/%s:%s", seen->n++ ? " " : "", row->tenant, row->user, row->id);
    return seen->stop_at == seen->n ? seen->code : 0;
}

static void keys_are(struct world *w, const struct rv_store_scope *scope, bool all, int64_t now, const char *text,
                     int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_api_keys(w->s, scope, &(const struct rv_api_key_filter){.all = all, .now_us = now}, see_key, &seen,
                              &w->err));
    must_see(&seen, text, line);
}
#define KEYS(scope, all, now, text) keys_are(w, (scope), (all), (now), (text), __LINE__)

static bool has(struct world *w, int64_t now)
{
    bool there = false;

    OK(rv_store_has_api_keys(w->s, now, &there, &w->err));
    return there;
}

START_TEST(a_key_is_read_as_it_was_added)
{
    struct world world, *w = &world;
    struct rv_api_key_row row = {0};

    world_open(w, _i);
    ck_assert(!has(w, T0));
    add(w, "k1", NULL, NULL, T0, 0);
    add(w, "k2", "acme", "ada", T0 + 1, T0 + 50);
    KEY("k1", "k1 tenant default/ chat runs:read [a note] 0 0 0 0 ok");
    KEY("k2", "k2 user acme/ada chat runs:read [a note] 1 1700000000000050 0 0 ok");
    row = a_key("k1", "acme", "eve");
    FAILS(RV_E_EXISTS, rv_store_add_api_key(w->s, &row, &w->err)); /* of whatever tenant */
    KEY("k1", "k1 tenant default/ chat runs:read [a note] 0 0 0 0 ok");
    SAYS(RV_E_NOT_FOUND, "there is no API key \"k3\"", rv_store_get_api_key(w->s, "k3", &row, &w->err));
    world_close(w);
}
END_TEST

START_TEST(people_see_the_keys_of_their_scope)
{
    struct world world, *w = &world;
    const struct rv_store_scope acme = {.tenant = "acme"}, acme_ada = {.tenant = "acme", .user = "ada"},
                                other_ada = {.user = "ada"};

    world_open(w, _i);
    add(w, "k1", "acme", NULL, T0, 0);
    add(w, "k2", "acme", "ada", T0 + 1, 0);
    add(w, "k3", "acme", "bob", T0 + 2, T0 + 10);
    KEYS(&acme, false, T0 + 9, "acme/bob:k3 acme/ada:k2 acme/:k1"); /* newest first */
    KEYS(&acme, false, T0 + 10, "acme/ada:k2 acme/:k1");            /* without what has expired */
    KEYS(&acme, true, T0 + 10, "acme/bob:k3 acme/ada:k2 acme/:k1");
    KEYS(&acme_ada, true, T0 + 10, "acme/ada:k2");
    KEYS(&other_ada, true, T0 + 10, "");
    FAILS(RV_E_NOT_FOUND, rv_store_revoke_api_key(w->s, &other_ada, "k2", T0 + 20, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_revoke_api_key(w->s, &acme_ada, "k1", T0 + 20, &w->err));
    OK(rv_store_revoke_api_key(w->s, &acme_ada, "k2", T0 + 20, &w->err));
    OK(rv_store_revoke_api_key(w->s, &acme, "k2", T0 + 30, &w->err)); /* stays as it is */
    KEY("k2", "k2 user acme/ada chat runs:read [a note] 1 0 0 20 ok");
    KEYS(&acme, false, T0 + 21, "acme/:k1");
    struct seen seen = SEEN_INIT;
    seen.stop_at = 1;
    seen.code = 5;
    ck_assert_int_eq(rv_store_list_api_keys(w->s, &acme, &(const struct rv_api_key_filter){.all = true, .now_us = T0},
                                            see_key, &seen, &w->err),
                     5);
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

START_TEST(keys_that_are_over_count_as_none)
{
    struct world world, *w = &world;
    const struct rv_store_scope acme = {.tenant = "acme"};
    int64_t n = -1;

    world_open(w, _i);
    add(w, "k1", "acme", NULL, T0, T0 + 10);
    add(w, "k2", "acme", NULL, T0, 0);
    ck_assert(has(w, T0 + 10));
    OK(rv_store_revoke_api_key(w->s, &acme, "k2", T0 + 5, &w->err));
    ck_assert(has(w, T0 + 9));
    ck_assert(!has(w, T0 + 10));
    OK(rv_store_prune_api_keys(w->s, T0 + 5, T0 + 5, &n, &w->err));
    ck_assert_int_eq(n, 0);
    OK(rv_store_prune_api_keys(w->s, T0 + 6, T0 + 6, &n, &w->err));
    ck_assert_int_eq(n, 1);
    KEYS(&acme, true, T0 + 9, "acme/:k1");
    OK(rv_store_prune_api_keys(w->s, T0 + 11, T0 + 6, NULL, &w->err));
    KEYS(&acme, true, T0 + 9, "");
    world_close(w);
}
END_TEST

START_TEST(a_use_is_noted_now_and_then)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add(w, "k1", NULL, NULL, T0, 0);
    OK(rv_store_note_api_key(w->s, "k1", T0 + 7, &w->err));
    KEY("k1", "k1 tenant default/ chat runs:read [a note] 0 0 7 0 ok");
    OK(rv_store_note_api_key(w->s, "k1", T0 + 6 + RV_API_KEY_USED_US, &w->err));
    KEY("k1", "k1 tenant default/ chat runs:read [a note] 0 0 7 0 ok");
    OK(rv_store_note_api_key(w->s, "k1", T0 + 7 + RV_API_KEY_USED_US, &w->err));
    KEY("k1", "k1 tenant default/ chat runs:read [a note] 0 0 300000007 0 ok");
    OK(rv_store_note_api_key(w->s, "none", T0, &w->err));
    world_close(w);
}
END_TEST

static const char *found(struct world *w, const char *hash, int64_t now)
{
    struct rv_api_key_row row = {0};
    static char id[40];

    if (rv_store_find_login(w->s, hash, now, &row, NULL) < 0)
        return "-";
    snprintf(id, sizeof id, "%s%s", row.id, row.revoked_us ? "!" : "");
    rv_api_key_row_fini(&row);
    return id;
}

START_TEST(a_login_leads_to_its_key_until_it_ends)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add(w, "k1", NULL, NULL, T0, 0);
    OK(rv_store_add_login(w->s, LOGIN, "k1", T0, T0 + 10, &w->err));
    ck_assert_str_eq(found(w, LOGIN, T0 + 9), "k1");
    ck_assert_str_eq(found(w, LOGIN, T0 + 10), "-");
    ck_assert_str_eq(found(w, HASH, T0 + 1), "-");
    FAILS(RV_E_EXISTS, rv_store_add_login(w->s, LOGIN, "k1", T0, T0 + 99, &w->err));
    OK(rv_store_delete_login(w->s, HASH, &w->err)); /* there is none: fine */
    OK(rv_store_delete_login(w->s, LOGIN, &w->err));
    ck_assert_str_eq(found(w, LOGIN, T0 + 1), "-");
    OK(rv_store_add_login(w->s, LOGIN, "k1", T0, T0 + 10, &w->err));
    OK(rv_store_prune_api_keys(w->s, T0, T0 + 9, NULL, &w->err));
    ck_assert_str_eq(found(w, LOGIN, T0 + 1), "k1");
    OK(rv_store_prune_api_keys(w->s, T0, T0 + 10, NULL, &w->err));
    ck_assert_str_eq(found(w, LOGIN, T0 + 1), "-");
    world_close(w);
}
END_TEST

START_TEST(revoking_a_key_ends_its_logins)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add(w, "k1", NULL, NULL, T0, 0);
    OK(rv_store_add_login(w->s, LOGIN, "k1", T0, T0 + 10, &w->err));
    OK(rv_store_revoke_api_key(w->s, &operator_scope, "k1", T0 + 1, &w->err));
    ck_assert_str_eq(found(w, LOGIN, T0 + 2), "-");
    FAILS(RV_E_NOT_FOUND, rv_store_add_login(w->s, LOGIN, "k1", T0 + 3, T0 + 10, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_add_login(w->s, LOGIN, "k2", T0 + 3, T0 + 10, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_key_has_so_many_logins_and_the_oldest_ends)
{
    struct world world, *w = &world;
    char hash[RV_HASH_MAX], first[RV_HASH_MAX], second[RV_HASH_MAX];

    world_open(w, _i);
    add(w, "k1", NULL, NULL, T0, 0);
    for (int i = 0; i <= RV_API_KEY_MAX_LOGINS; i++) {
        rv_hash_format((rv_str){(const char *)&i, sizeof i}, hash);
        memcpy(i == 0 ? first : i == 1 ? second : (char[RV_HASH_MAX]){""}, hash, sizeof hash);
        OK(rv_store_add_login(w->s, hash, "k1", T0 + i, T0 + 1000, &w->err));
        if (i == RV_API_KEY_MAX_LOGINS - 1)
            ck_assert_str_eq(found(w, first, T0 + 1), "k1");
    }
    ck_assert_str_eq(found(w, first, T0 + 1), "-");
    ck_assert_str_eq(found(w, second, T0 + 1), "k1");
    ck_assert_str_eq(found(w, hash, T0 + 1), "k1");
    world_close(w);
}
END_TEST

static const struct {
    const char *id, *hash, *level, *tenant, *user, *scopes;
    int64_t created, expires;
    int code;
} bad[] = {
    {"", HASH, "tenant", NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"a\nb", HASH, "tenant", NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"k", "secret", "tenant", NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"k", NULL, "tenant", NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "king", NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, NULL, NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "user", NULL, "", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "user", NULL, NULL, "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "master", NULL, "ada", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "user", NULL, "a\x7f", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "tenant", "", "", "chat", T0, 0, RV_E_INVALID},
    {"k", HASH, "tenant", NULL, "", NULL, T0, 0, RV_E_INVALID},
    {"k", HASH, "tenant", NULL, "", "chat", -1, 0, RV_E_INVALID},
    {"k", HASH, "tenant", NULL, "", "chat", T0, -5, RV_E_INVALID},
    {"k", HASH, "tenant", NULL, "", "chat", T0, INT64_MAX, RV_E_INVALID}, /* a list with it could not be read */
};
START_TEST(what_is_not_a_key_is_refused)
{
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(bad); i++) {
        const struct rv_api_key_row row = {.id = bad[i].id,
                                           .hash = bad[i].hash,
                                           .level = bad[i].level,
                                           .tenant = bad[i].tenant,
                                           .user = bad[i].user,
                                           .scopes = bad[i].scopes,
                                           .created_us = bad[i].created,
                                           .expires_us = bad[i].expires};
        FAILS(bad[i].code, rv_store_add_api_key(w->s, &row, &w->err));
    }
    FAILS(RV_E_INVALID, rv_store_add_login(w->s, "cookie", "k", T0, T0 + 1, &w->err));
    FAILS(RV_E_INVALID, rv_store_delete_login(w->s, "cookie", &w->err));
    ck_assert(!has(w, T0));
    world_close(w);
}
END_TEST

Suite *api_keys_suite(void)
{
    Suite *s = suite_create("api keys");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, a_key_is_read_as_it_was_added, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, people_see_the_keys_of_their_scope, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, keys_that_are_over_count_as_none, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_use_is_noted_now_and_then, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_login_leads_to_its_key_until_it_ends, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, revoking_a_key_ends_its_logins, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_key_has_so_many_logins_and_the_oldest_ends, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, what_is_not_a_key_is_refused, first_store_impl, n_store_impls);
    suite_add_tcase(s, tc);
    return s;
}

/* --- the same operations, for the fault points --- */

int do_add_api_key(struct world *w)
{
    struct rv_api_key_row row = a_key("fresh", NULL, NULL);

    return rv_store_add_api_key(w->s, &row, &w->err);
}
int do_get_api_key(struct world *w)
{
    struct rv_api_key_row row = {0};
    int rc = rv_store_get_api_key(w->s, "there", &row, &w->err);

    ck_assert_int_eq(row.id != NULL, rc == 0);
    rv_api_key_row_fini(&row);
    return rc;
}
int do_list_api_keys(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_api_keys(w->s, &operator_scope, &(const struct rv_api_key_filter){.all = true, .now_us = T0},
                                    see_key, &seen, &w->err);

    rv_buf_fini(&seen.text);
    return rc;
}
int do_has_api_keys(struct world *w)
{
    bool there;

    return rv_store_has_api_keys(w->s, T0, &there, &w->err);
}
int do_revoke_api_key(struct world *w)
{
    return rv_store_revoke_api_key(w->s, &operator_scope, "there", T0 + 3, &w->err);
}
int do_note_api_key(struct world *w)
{
    return rv_store_note_api_key(w->s, "there", T0 + 3, &w->err);
}
int do_add_login(struct world *w)
{
    return rv_store_add_login(w->s, HASH, "there", T0, T0 + 20, &w->err);
}
int do_find_login(struct world *w)
{
    struct rv_api_key_row row = {0};
    int rc = rv_store_find_login(w->s, LOGIN, T0, &row, &w->err);

    ck_assert_int_eq(row.id != NULL, rc == 0);
    rv_api_key_row_fini(&row);
    return rc;
}
int do_drop_login(struct world *w)
{
    return rv_store_delete_login(w->s, LOGIN, &w->err);
}
int do_prune_api_keys(struct world *w)
{
    return rv_store_prune_api_keys(w->s, T0 + 100, T0, NULL, &w->err);
}

void furnish_api_keys(struct world *w)
{
    add(w, "there", NULL, NULL, T0, 0);
    add(w, "short", NULL, NULL, T0, T0 + 5);
    OK(rv_store_add_login(w->s, LOGIN, "there", T0, T0 + 20, &w->err));
}

static int picture_key(void *self, const struct rv_api_key_row *row, rv_err **err)
{
    (void)err;
    write_key(row, self);
    return 0;
}

void picture_api_keys(struct world *w, rv_buf *out)
{
    OK(rv_store_list_api_keys(w->s, &operator_scope, &(const struct rv_api_key_filter){.all = true, .now_us = T0},
                              picture_key, out, &w->err));
    rv_buf_printf(out, " login %s", found(w, LOGIN, T0));
    rv_buf_printf(out, " and %s ", found(w, HASH, T0));
}
