/* base64url in its one spelling, keys, scopes, settings. */
#include "tests/unit/identity/world.h"

static const struct {
    const char *text;
    int n; /* bytes; -1: refused */
} spellings[] = {
    {"", 0},     {"AA", 1},   {"AAA", 2},   {"AAAA", 3}, {"_-8", 2}, {"A", -1},   {"AAAAA", -1}, {"AB", -1},
    {"AAB", -1}, {"AA=", -1}, {"AA==", -1}, {"A+", -1},  {"A/", -1}, {" AA", -1}, {"AA\n", -1},
};
START_TEST(a_value_has_one_spelling)
{
    unsigned char bytes[16];
    size_t n = 99;

    bool ok = identity_base64url_read(rv_str_of(spellings[_i].text), bytes, &n);
    ck_assert_int_eq(ok ? (int)n : -1, spellings[_i].n);
}
END_TEST

START_TEST(bytes_come_back_from_base64url)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 3);
    unsigned char bytes[64], again[64];
    char text[100];

    for (size_t n = 0; n <= sizeof bytes; n++) {
        size_t m = 0;
        rand.fill(rand.self, bytes, n);
        identity_base64url_write(bytes, n, text);
        ck_assert_uint_eq(strlen(text), (n * 4 + 2) / 3);
        ck_assert(identity_base64url_read(rv_str_of(text), again, &m));
        ck_assert_uint_eq(m, n);
        ck_assert_int_eq(memcmp(bytes, again, n), 0);
    }
}
END_TEST

START_TEST(a_key_is_read_as_it_was_made)
{
    struct rv_rand_state state;
    struct rv_new_key key, other;
    char id[RV_API_KEY_ID + 1], hash[RV_HASH_MAX];

    struct rv_rand rand = rv_rand_seeded(&state, 5);
    rv_api_key_make(rand, &key);
    rv_api_key_make(rand, &other);
    ck_assert_str_ne(key.text, other.text);
    ck_assert_uint_eq(strlen(key.text), RV_API_KEY_MAX - 1);
    ck_assert(rv_api_key_read(rv_str_of(key.text), id, hash));
    ck_assert_str_eq(id, key.id);
    ck_assert_str_eq(hash, key.hash);
    ck_assert_ptr_null(strstr(key.hash, key.text + 20));
    for (size_t i = 0; key.text[i]; i++) { /* no character can be another one */
        char changed[RV_API_KEY_MAX];
        snprintf(changed, sizeof changed, "%s", key.text);
        changed[i] = '!';
        ck_assert(!rv_api_key_read(rv_str_of(changed), id, hash));
    }
    ck_assert(!rv_api_key_read((rv_str){key.text, strlen(key.text) - 1}, id, hash));
    ck_assert(!rv_api_key_read(rv_str_of(""), id, hash));
}
END_TEST

static const struct {
    const char *words, *out; /* NULL: refused */
} sets[] = {
    {"", ""},
    {"chat", "chat"},
    {"runs:write, chat", "chat runs:write"},
    {"read", "runs:read sessions:read data:read agents:read tasks:read usage:read metrics:read"},
    {"usual", "chat runs:read runs:write sessions:read sessions:write data:read data:write agents:read agents:write "
              "tasks:read tasks:write usage:read"},
    {"all", "chat runs:read runs:write sessions:read sessions:write data:read data:write agents:read agents:write "
            "tasks:read tasks:write usage:read metrics:read keys:write"},
    {"chats", NULL},
    {"Chat", NULL},
};
START_TEST(scopes_are_words)
{
    rv_buf text = RV_BUF_INIT(1000);
    rv_err *err = NULL;
    uint32_t set = 0;

    int rc = rv_scopes_parse(rv_str_of(sets[_i].words), &set, &err);
    ck_assert_int_eq(rc, sets[_i].out ? 0 : RV_E_INVALID);
    rv_scopes_write(set, &text);
    if (sets[_i].out)
        ck_assert_str_eq(rv_buf_cstr(&text), sets[_i].out);
    else
        ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "chat"));
    rv_err_free(err);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(levels_are_words)
{
    for (int i = 0; i <= RV_LEVEL_MASTER; i++)
        ck_assert_int_eq(rv_level_of(rv_str_of(rv_level_text((enum rv_level)i))), i);
    ck_assert_int_eq(rv_level_of(RV_STR_LIT("king")), RV_UNSET);
    ck_assert_int_eq(rv_level_of(RV_STR_LIT("")), RV_UNSET);
}
END_TEST

static const struct {
    const char *flag, *value;
    int rc;
} settings[] = {
    {"jwt-skew", "0", 0},
    {"jwt-skew", "60", 0},
    {"jwt-skew", "61", RV_E_INVALID},
    {"jwt-skew", "-1", RV_E_INVALID},
    {"jwt-skew", "9x", RV_E_INVALID},
    {"jwt-skew", "", RV_E_INVALID},
    {"jwt-skew", NULL, RV_E_INVALID},
    {"login-time", "59", RV_E_INVALID},
    {"login-time", "60", 0},
    {"require-key", NULL, 0},
    {"require-key", "YES", 0},
    {"require-key", "0", 0},
    {"require-key", "maybe", RV_E_INVALID},
    {"jwt-issuer", "x", 0},
    {"jwt-issuer", "", RV_E_INVALID},
    {"failed-logins-per-minute", "0", RV_E_INVALID},
};
START_TEST(settings_are_read_from_text)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    const struct rv_identity_setting *s = rv_identity_settings;

    while (strcmp(s->flag, settings[_i].flag) != 0)
        s++;
    ck_assert_int_eq(rv_identity_opts_set(&opts, s, settings[_i].value, NULL), settings[_i].rc);
    if (strcmp(s->flag, "require-key") == 0 && settings[_i].rc == 0)
        ck_assert_int_eq(opts.always_ask, !(settings[_i].value && settings[_i].value[0] == '0'));
    if (strcmp(s->flag, "jwt-issuer") == 0 && settings[_i].rc == 0)
        ck_assert_str_eq(opts.issuer, "x");
}
END_TEST

START_TEST(the_page_has_each_setting_and_scope)
{
    rv_buf page = RV_BUF_INIT(1 << 20), row = RV_BUF_INIT(1000);

    ck_assert_int_eq(rv_file_read("docs/reference/identity.md", &page, NULL), 0);
    for (size_t i = 0; i < rv_n_identity_settings; i++) {
        const struct rv_identity_setting *s = &rv_identity_settings[i];
        rv_buf_clear(&row);
        rv_buf_printf(&row, "| `--%s%s%s` | `%s` | %s |\n", s->flag, s->arg ? " " : "", s->arg ? s->arg : "", s->env,
                      s->help);
        ck_assert_msg(strstr(rv_buf_cstr(&page), rv_buf_cstr(&row)), "no row: %s", rv_buf_cstr(&row));
    }
#define X(name, word, meaning)                                                                                         \
    ck_assert_msg(strstr(rv_buf_cstr(&page), "| `" word "` | " meaning " |\n"), "no row for %s", word);
    RV_SCOPES(X)
#undef X
    rv_buf_fini(&page);
    rv_buf_fini(&row);
}
END_TEST

TCase *bytes_case(void)
{
    TCase *tc = tcase_create("bytes");

    tcase_add_loop_test(tc, a_value_has_one_spelling, 0, RV_COUNT(spellings));
    tcase_add_test(tc, bytes_come_back_from_base64url);
    tcase_add_test(tc, a_key_is_read_as_it_was_made);
    tcase_add_loop_test(tc, scopes_are_words, 0, RV_COUNT(sets));
    tcase_add_test(tc, levels_are_words);
    tcase_add_test(tc, the_page_has_each_setting_and_scope);
    tcase_add_loop_test(tc, settings_are_read_from_text, 0, RV_COUNT(settings));
    return tc;
}
