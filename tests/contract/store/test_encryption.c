/* Encryption: what is kept of a tenant is ciphertext, every read gives the plain text back, and what is changed, moved
 * or without its key is refused. The one suite here that looks behind store.h: at what is kept. */
#include "coreengine/store/encryption.h"

#include <sys/stat.h>

#include "coreengine/store/store_internal.h"
#include "coreengine/store/vault_internal.h"
#include "tests/contract/store/entities.h"
#include "tests/contract/store/tasks.h"
#include "tests/kit/rsa_keys.h"

#define ONE "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define TWO "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="

/* Another handle of the same store, or this one, with these master keys. "": none. */
static void use_keys(struct world *w, const char *keys)
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

static struct rv_rsa rsa_of(const char *text)
{
    rv_str rest = rv_str_of(text);
    struct rv_rsa key;

    ck_assert_int_eq(rv_rsa_read(&rest, "a key", &key, NULL), 0);
    return key;
}

/* The same with private keys beside. */
static void use_private(struct world *w, const char *keys, const char *pem)
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

static void set_mode(struct world *w, enum rv_encryption_mode mode)
{
    const struct rv_rsa seal = rsa_of(RSA_PUBLIC);
    char id[RV_ENCRYPTION_ID];

    OK(rv_store_set_encryption(w->s, RV_STORE_TENANT, mode, mode == RV_ENCRYPTION_SEALED ? &seal : NULL, T0, id,
                               &w->err));
    ck_assert_uint_eq(strlen(id), RV_ENCRYPTION_ID - 1);
}

/* A text of a statement, as the store keeps it; the caller's. */
static char *kept(struct world *w, const char *sql)
{
    rv_buf text = RV_BUF_INIT(4096);

    rv_buf_puts(&text, sql);
    rv_sql_stmt *stmt = rv_sql_prepare(w->s->sql, &text);
    rv_buf_fini(&text);
    ck_assert_int_eq(rv_sql_step(stmt, "look", NULL), 1);
    char *got = rv_str_dup(rv_sql_str_at(stmt, 0));
    rv_sql_finish(stmt);
    return got;
}

static void change(struct world *w, const char *sql, const char *text, enum sql_type type)
{
    rv_buf b = RV_BUF_INIT(4096);

    rv_buf_puts(&b, sql);
    OK(rv_sql_begin_write(w->s->sql, "change", &w->err));
    rv_sql_stmt *stmt = rv_sql_prepare(w->s->sql, &b);
    rv_sql_bind(stmt, 1, (struct sql_value){.type = type, .bytes = rv_str_of(text)});
    int rc = rv_sql_run(stmt, "change", &w->err);
    rv_sql_finish(stmt);
    OK(rv_sql_end_write(w->s->sql, rc, "change", &w->err));
    rv_buf_fini(&b);
}

#define CONTENT "SELECT content FROM messages WHERE seq = 1"

static void say(struct world *w, const char *session, const char *content)
{
    struct rv_message m = world_message("m1", "user", content);
    const struct rv_turn turn = {.session = session, .rows = &m, .n_rows = 1};

    make_session(w, session, "");
    OK(rv_store_add_messages(w->s, &unowned, &turn, T0, &w->err));
}

START_TEST(nothing_is_encrypted_unless_it_is_asked_for)
{
    struct world world, *w = &world;

    world_open(w, _i);
    say(w, "s1", "the plain words");
    char *text = kept(w, CONTENT);
    ck_assert_str_eq(text, "the plain words");
    free(text);
    SAYS(RV_E_STATE, "no master key",
         rv_store_set_encryption(w->s, "", RV_ENCRYPTION_PLATFORM, NULL, T0, (char[RV_ENCRYPTION_ID]){0}, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_message_is_ciphertext_and_reads_as_it_was)
{
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    say(w, "s1", "the plain words");
    char *text = kept(w, CONTENT);
    ck_assert_ptr_nonnull(strstr(text, "reeve-enc1:"));
    ck_assert_ptr_null(strstr(text, "plain"));
    free(text);
    MESSAGES("s1", "1:user=the plain words");
    world_close(w);
}
END_TEST

START_TEST(without_its_key_or_with_another_a_row_is_refused)
{
    struct world world, *w = &world;
    struct seen seen = {0};

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    say(w, "s1", "the plain words");
    use_keys(w, "");
    SAYS(RV_E_DENIED, "no master key is given",
         rv_store_read_messages(w->s, &unowned, "s1", NULL, see_message, &seen, &w->err));
    SAYS(RV_E_DENIED, "encrypt",
         rv_store_ensure_session(
             w->s, &(struct rv_session_row){.id = "s2", .tenant = RV_STORE_TENANT, .user = "", .created_us = T0}, NULL,
             &w->err));
    OK(rv_store_check(w->s, &w->err)); /* upkeep needs no key */
    use_keys(w, TWO);
    SAYS(RV_E_DENIED, "is not among those given",
         rv_store_read_messages(w->s, &unowned, "s1", NULL, see_message, &seen, &w->err));
    use_keys(w, TWO "," ONE);
    MESSAGES("s1", "1:user=the plain words");
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

static void add_task(struct world *w, const char *id, const char *tenant, int64_t priority)
{
    struct rv_new_task task = new_task(id);

    task.tenant = tenant;
    task.priority = priority;
    enqueue_as(w, &task);
}

/* A worker without the key claims what it can read: of other tenants, and of this one from before. */
START_TEST(a_claim_passes_over_tasks_that_it_has_no_key_for)
{
    struct world world, *w = &world;
    int64_t classes[ALL];
    struct rv_claimed got = {0};
    char id[16];

    world_open(w, _i);
    add_task(w, "before", NULL, 0);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "secret-%02d", i);
        add_task(w, id, NULL, 1);
    }
    add_task(w, "other", "harbour", 0);
    use_keys(w, "");
    CLAIM("w1", 5, 1, "before other");
    const struct rv_claim_tasks claim = {.worker = "w1",
                                         .classes = classes,
                                         .n_classes = all_classes(w, classes, ALL),
                                         .n = 5,
                                         .now_us = AT(2),
                                         .until_us = AT(2 + LEASE)};
    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
    ck_assert_uint_eq(got.n, 0);
    ck_assert_uint_gt(got.n_denied, 0);
    ck_assert(rv_err_is(got.denied, RV_E_DENIED));
    rv_claimed_fini(&got);
    use_keys(w, ONE);
    CLAIM("w2", 2, 3, "secret-00 secret-01");
    EVENTS("secret-00", "claimed");
    world_close(w);
}
END_TEST

/* Each byte of what is kept is changed in turn. */
START_TEST(a_changed_byte_is_refused)
{
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    say(w, "s1", "ab");
    char *text = kept(w, CONTENT), *changed = rv_str_dup(rv_str_of(text));
    for (size_t i = strlen("reeve-enc1:"); text[i]; i++) {
        struct seen seen = {0};
        changed[i] = text[i] == 'A' ? 'B' : text[i] == '1' ? '2' : text[i] == ':' ? ';' : text[i] == '=' ? 'C' : 'A';
        if (changed[i] == text[i])
            changed[i] = 'd';
        change(w, "UPDATE messages SET content = ?1 WHERE seq = 1", changed, SQL_STR);
        FAILS(RV_E_IO, rv_store_read_messages(w->s, &unowned, "s1", NULL, see_message, &seen, &w->err));
        changed[i] = text[i];
        rv_buf_fini(&seen.text);
    }
    SAYS(RV_E_INVALID, "cannot be decrypted", rv_store_check(w->s, &w->err));
    change(w, "UPDATE messages SET content = ?1 WHERE seq = 1", text, SQL_STR);
    MESSAGES("s1", "1:user=ab");
    free(text);
    free(changed);
    world_close(w);
}
END_TEST

START_TEST(a_text_of_another_row_or_column_is_refused)
{
    struct world world, *w = &world;
    struct seen seen = {0};

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    say(w, "s1", "of the first");
    say(w, "s2", "of the second");
    char *text = kept(w, "SELECT content FROM messages ORDER BY key DESC LIMIT 1");
    char *first = kept(w, "SELECT content FROM messages ORDER BY key LIMIT 1");
    change(w, "UPDATE messages SET content = ?1 WHERE session = (SELECT key FROM sessions WHERE id = 's1')", text,
           SQL_STR);
    SAYS(RV_E_IO, "that of another row",
         rv_store_read_messages(w->s, &unowned, "s1", NULL, see_message, &seen, &w->err));
    change(w, "UPDATE messages SET content = ?1 WHERE session = (SELECT key FROM sessions WHERE id = 's1')", first,
           SQL_STR);
    change(w, "UPDATE messages SET tool_calls = ?1 WHERE session = (SELECT key FROM sessions WHERE id = 's1')", first,
           SQL_STR);
    SAYS(RV_E_IO, "tool_calls of", rv_store_read_messages(w->s, &unowned, "s1", NULL, see_message, &seen, &w->err));
    change(w, "UPDATE messages SET tool_calls = ?1 WHERE seq = 1", NULL, SQL_STR);
    rv_buf_fini(&seen.text);
    free(text);
    free(first);
    world_close(w);
}
END_TEST

/* Texts that look like what the store writes itself, with and without encryption. */
START_TEST(extreme_texts_come_back)
{
    static const char *const texts[] = {"",
                                        "reeve-enc1:0123456789abcdef:AAAA",
                                        "reeve-enc0:",
                                        "reeve-enc9:x",
                                        "\xf0\x9f\xa6\x93",
                                        "'); DROP TABLE messages; --",
                                        "reeve-enc1:"};
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    for (int round = 0; round < 3; round++) {
        if (round > 0)
            set_mode(w, round == 1 ? RV_ENCRYPTION_PLATFORM : RV_ENCRYPTION_DISABLED);
        for (size_t i = 0; i < RV_COUNT(texts); i++) {
            char session[40], want[200];
            snprintf(session, sizeof session, "s%d-%zu", round, i);
            snprintf(want, sizeof want, "1:user=%s", texts[i]);
            say(w, session, texts[i]);
            MESSAGES(session, want);
        }
    }
    struct rv_encryption_walked walked;
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    OK(rv_store_encrypt(w->s, NULL, T0, &walked, &w->err));
    ck_assert_int_gt(walked.rewritten, 2 * (int)RV_COUNT(texts));
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < RV_COUNT(texts); i++) {
            char session[40], want[200];
            snprintf(session, sizeof session, "s%d-%zu", round, i);
            snprintf(want, sizeof want, "1:user=%s", texts[i]);
            MESSAGES(session, want);
        }
    world_close(w);
}
END_TEST

/* Random bytes of many lengths, as values of records: also those that are kept by their hash. */
START_TEST(values_of_records_come_back)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 255, 960, 961, 5000, 100000};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 11);
    struct world world, *w = &world;
    char *value = malloc(100001);

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    make_run(w, "r1");
    for (size_t i = 0; i < RV_COUNT(sizes); i++) {
        struct seen seen = {0};
        rv_buf want = RV_BUF_INIT(200000);
        for (size_t k = 0; k < sizes[i]; k++)
            value[k] = (char)('!' + rv_rand_below(rand, 90));
        value[sizes[i]] = 0;
        OK(append(w, "r1", 1, (int64_t)i + 2, "{\"a\":1}", value));
        rv_buf_printf(&want, "%zu:{\"a\":1}=%s", i + 2, value);
        seen.text = RV_BUF_INIT(200000);
        OK(rv_store_read(w->s, &operator_scope, "r1", (int64_t)i + 2, 0, see_record, &seen, &w->err));
        ck_assert_str_eq(rv_buf_cstr(&seen.text), rv_buf_cstr(&want));
        rv_buf_fini(&want);
        rv_buf_fini(&seen.text);
    }
    free(value);
    world_close(w);
}
END_TEST

#define ROW                                                                                                            \
    "{\"name\":\"Bread\",\"content\":\"flour and "                                                                     \
    "kangaroo\",\"comment\":\"wombat\",\"metadata\":{\"who\":\"platypus\"}}"

START_TEST(an_entity_is_ciphertext_in_no_index_and_changes_as_ever)
{
    struct world world, *w = &world;
    json_object *patch = tree("{\"more\":1}"), *got = NULL;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    json_object *row = put_one(w, &ada, "resources", ROW, T0);
    ck_assert_str_eq(member(row, "content"), "\"flour and kangaroo\"");
    ck_assert_str_eq(member(row, "encryption_level"), "\"platform\"");
    char *fields = kept(w, "SELECT fields FROM entities"), *metadata = kept(w, "SELECT metadata FROM entities"),
         *hash = kept(w, "SELECT hash FROM tokens"), *summary = kept(w, "SELECT summary FROM keys");
    ck_assert_ptr_null(strstr(fields, "kangaroo"));
    ck_assert_ptr_null(strstr(fields, "wombat"));
    ck_assert_ptr_null(strstr(metadata, "platypus"));
    ck_assert_str_eq(hash, "");
    ck_assert_str_eq(summary, "Bread");
    char *id = rv_str_dup(rv_str_of(json_object_get_string(json_object_object_get(row, "id"))));
    OK(rv_store_merge_metadata(w->s, &ada, "resources", id, patch, NULL, 0, T0 + 1, &got, &w->err));
    ck_assert_str_eq(json_object_to_json_string_ext(got, 0), "{\"who\":\"platypus\",\"more\":1}");
    json_object_put(got);
    json_object_put(row);
    row = put_one(w, &ada, "resources", "{\"name\":\"Bread\",\"category\":\"food\"}", T0 + 2);
    ck_assert_str_eq(member(row, "comment"), "\"wombat\""); /* what is not given stays */
    ck_assert_str_eq(member(row, "metadata"), "{\"who\":\"platypus\",\"more\":1}");
    LOOKS_UP(&ada, "bread", "resources:bread/ada");
    json_object_put(row);
    json_object_put(patch);
    free(fields);
    free(metadata);
    free(hash);
    free(summary);
    free(id);
    world_close(w);
}
END_TEST

START_TEST(a_client_is_shown_ciphertext_and_an_agent_the_words)
{
    const struct rv_message_filter told = {.for_agents = true};
    struct world world, *w = &world;
    struct seen seen = {.text = RV_BUF_INIT(10000)};

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_CLIENT);
    say(w, "s1", "the plain words");
    OK(rv_store_read_messages(w->s, &unowned, "s1", NULL, see_message, &seen, &w->err));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&seen.text), "user=reeve-enc1:"));
    rv_buf_clear(&seen.text);
    OK(rv_store_read_messages(w->s, &unowned, "s1", &told, see_message, &seen, &w->err));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&seen.text), "user=the plain words"));
    json_object *row = put_one(w, &ada, "resources", ROW, T0), *patch = tree("{\"more\":1}"), *got = NULL;
    ck_assert_ptr_nonnull(strstr(member(row, "content"), "reeve-enc1:"));
    ck_assert_ptr_nonnull(strstr(member(row, "metadata"), "{\"encrypted\":\"reeve-enc1:"));
    const char *id = json_object_get_string(json_object_object_get(row, "id"));
    OK(rv_store_merge_metadata(w->s, &ada, "resources", id, patch, NULL, 0, T0 + 1, &got, &w->err));
    ck_assert_str_eq(json_object_to_json_string_ext(got, 0), "{\"who\":\"platypus\",\"more\":1}");
    json_object_put(got);
    json_object_put(patch);
    json_object_put(row);
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

static int count_key(void *self, const struct rv_tenant_key *key, rv_err **err)
{
    (void)key;
    (void)err;
    ++*(int *)self;
    return 0;
}

static int keys_of(struct world *w)
{
    int n = 0;

    OK(rv_store_list_tenant_keys(w->s, RV_STORE_TENANT, count_key, &n, &w->err));
    return n;
}

/* The n-th write of the walk fails before it begins. */
struct failing {
    int left;
};

static int fail_at_point(void *self, const char *point, rv_err **err)
{
    struct failing *f = self;

    if (strcmp(point, "encrypt") != 0 || --f->left > 0)
        return 0;
    return RV_FAIL(err, RV_E_IO, "the process was killed");
}

START_TEST(a_rotation_that_ends_early_goes_on)
{
    struct world world, *w = &world;
    struct rv_encryption_walked walked;
    struct failing f = {0};
    int64_t n = 0;
    int rc;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    make_run(w, "r1");
    for (int i = 0; i < 60; i++) {
        char session[20];
        snprintf(session, sizeof session, "s%d", i);
        say(w, session, "the plain words");
    }
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    ck_assert_int_eq(keys_of(w), 2);
    for (int at = 1;; at++) {
        f.left = at;
        rv_store_set_faults(w->s, (struct rv_store_faults){fail_at_point, &f});
        rc = rv_store_encrypt(w->s, NULL, T0, &walked, &w->err);
        rv_store_set_faults(w->s, (struct rv_store_faults){NULL, NULL});
        if (rc == 0)
            break;
        FAILS(RV_E_IO, rc);
        MESSAGES("s0", "1:user=the plain words"); /* under either key */
        MESSAGES("s59", "1:user=the plain words");
        OK(rv_store_prune_tenant_keys(w->s, T0 + 1, &n, &w->err));
        ck_assert_int_eq(keys_of(w), n > 0 ? 1 : 2);
        if (n > 0)
            break;
    }
    OK(rv_store_encrypt(w->s, NULL, T0, &walked, &w->err));
    ck_assert_int_eq(walked.rewritten, 0);
    OK(rv_store_prune_tenant_keys(w->s, T0 + 1, &n, &w->err));
    ck_assert_int_eq(keys_of(w), 1);
    MESSAGES("s59", "1:user=the plain words");
    world_close(w);
}
END_TEST

START_TEST(another_master_key_wraps_the_same_keys)
{
    struct world world, *w = &world;
    int64_t n = 0;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    say(w, "s1", "the plain words");
    use_keys(w, TWO);
    FAILS(RV_E_DENIED, rv_store_rewrap_keys(w->s, &n, &w->err));
    use_keys(w, TWO "\n" ONE);
    OK(rv_store_rewrap_keys(w->s, &n, &w->err));
    ck_assert_int_eq(n, 1);
    use_keys(w, TWO);
    MESSAGES("s1", "1:user=the plain words");
    OK(rv_store_rewrap_keys(w->s, &n, &w->err));
    ck_assert_int_eq(n, 0);
    world_close(w);
}
END_TEST

/* --- sealed --- */

static char *id_of(json_object *row)
{
    return rv_str_dup(rv_json_str(json_object_object_get(row, "id")));
}

static json_object *get_one(struct world *w, const char *kind, const char *id)
{
    json_object *row = NULL;

    OK(rv_store_get_entity(w->s, &ada, kind, id, &row, &w->err));
    return row;
}

START_TEST(a_sealed_text_is_read_with_the_private_key_alone)
{
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_SEALED);
    json_object *row = put_one(w, &ada, "resources", ROW, T0);
    char *id = id_of(row);
    ck_assert_ptr_nonnull(strstr(member(row, "content"), "reeve-enc2:"));
    ck_assert_ptr_nonnull(strstr(member(row, "comment"), "reeve-enc2:"));
    ck_assert_str_eq(member(row, "metadata"), "{\"who\":\"platypus\"}"); /* reeve itself works with it */
    ck_assert_str_eq(member(row, "encryption_level"), "\"sealed\"");
    json_object_put(row);
    char *metadata = kept(w, "SELECT metadata FROM entities"), *hash = kept(w, "SELECT hash FROM tokens");
    ck_assert_ptr_nonnull(strstr(metadata, "reeve-enc1:"));
    ck_assert_str_eq(hash, "");
    use_private(w, ONE, RSA_OTHER_PRIVATE);
    row = get_one(w, "resources", id);
    ck_assert_ptr_nonnull(strstr(member(row, "content"), "reeve-enc2:"));
    json_object_put(row);
    use_private(w, ONE, RSA_OTHER_PRIVATE RSA_PRIVATE);
    row = get_one(w, "resources", id);
    ck_assert_str_eq(member(row, "content"), "\"flour and kangaroo\"");
    ck_assert_str_eq(member(row, "comment"), "\"wombat\"");
    json_object_put(row);
    OK(rv_store_check(w->s, &w->err));
    free(metadata);
    free(hash);
    free(id);
    world_close(w);
}
END_TEST

/* Chats, runs and moments are what reeve has to go on with. */
START_TEST(what_reeve_goes_on_with_is_readable_in_a_sealed_tenant)
{
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_SEALED);
    say(w, "s1", "the plain words");
    MESSAGES("s1", "1:user=the plain words");
    make_run(w, "r1");
    OK(append(w, "r1", 1, 2, "{\"a\":1}", "the value"));
    RECORDS("r1", "1:one 2:{\"a\":1}=the value");
    json_object *row = put_one(w, &ada, "moments", "{\"name\":\"m\",\"summary\":\"wombats\"}", T0);
    ck_assert_str_eq(member(row, "summary"), "\"wombats\"");
    ck_assert_str_eq(member(row, "encryption_level"), "\"platform\"");
    json_object_put(row);
    char *text = kept(w, CONTENT), *level = kept(w, "SELECT encryption_level FROM messages");
    ck_assert_ptr_nonnull(strstr(text, "reeve-enc1:"));
    ck_assert_str_eq(level, "platform");
    free(text);
    free(level);
    world_close(w);
}
END_TEST

START_TEST(a_sealed_text_stays_while_other_columns_change)
{
    struct world world, *w = &world;
    json_object *patch = tree("{\"more\":1}"), *got = NULL;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_SEALED);
    json_object *row = put_one(w, &ada, "resources", ROW, T0);
    char *id = id_of(row), *before = rv_str_dup(rv_str_of(member(row, "content")));
    json_object_put(row);
    row = put_one(w, &ada, "resources", "{\"name\":\"Bread\",\"category\":\"food\",\"comment\":\"new\"}", T0 + 1);
    ck_assert_str_eq(member(row, "content"), before);
    json_object_put(row);
    OK(rv_store_merge_metadata(w->s, &ada, "resources", id, patch, NULL, 0, T0 + 1, &got, &w->err));
    ck_assert_str_eq(json_object_to_json_string_ext(got, 0), "{\"who\":\"platypus\",\"more\":1}");
    json_object_put(got);
    set_mode(w, RV_ENCRYPTION_DISABLED); /* what is sealed stays so, and is in no index */
    row = put_one(w, &ada, "resources", "{\"name\":\"Bread\",\"category\":\"drink\"}", T0 + 2);
    ck_assert_str_eq(member(row, "encryption_level"), "\"sealed\"");
    json_object_put(row);
    char *hash = kept(w, "SELECT hash FROM tokens");
    ck_assert_str_eq(hash, "");
    use_private(w, ONE, RSA_PRIVATE);
    row = get_one(w, "resources", id);
    ck_assert_str_eq(member(row, "content"), "\"flour and kangaroo\"");
    ck_assert_str_eq(member(row, "comment"), "\"new\"");
    ck_assert_str_eq(member(row, "category"), "\"drink\"");
    json_object_put(row);
    json_object_put(patch);
    free(hash);
    free(before);
    free(id);
    world_close(w);
}
END_TEST

START_TEST(each_changed_byte_of_a_sealed_text_is_refused)
{
    struct world world, *w = &world;
    json_object *got = NULL;
    size_t n_refused = 0;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_SEALED);
    json_object *row = put_one(w, &ada, "feedback", "{\"comment\":\"ab\"}", T0);
    char *id = id_of(row), *fields = kept(w, "SELECT fields FROM entities");
    json_object_put(row);
    use_private(w, ONE, RSA_PRIVATE);
    size_t begin = (size_t)(strstr(fields, "reeve-enc2:") - fields) + strlen("reeve-enc2:") + RV_ENCRYPTION_ID;
    size_t end = (size_t)(strrchr(fields, '"') - fields);
    for (size_t i = begin; i < end; i += rv_kit_step(7)) {
        char was = fields[i];
        fields[i] = was == 'A' ? 'B' : 'A';
        change(w, "UPDATE entities SET fields = ?1", fields, SQL_TEXT);
        FAILS(RV_E_IO, rv_store_get_entity(w->s, &ada, "feedback", id, &got, &w->err));
        fields[i] = was;
        n_refused++;
    }
    ck_assert_uint_gt(n_refused, 40);
    SAYS(RV_E_INVALID, "cannot be decrypted", rv_store_check(w->s, &w->err));
    change(w, "UPDATE entities SET fields = ?1", fields, SQL_TEXT);
    OK(rv_store_check(w->s, &w->err));
    free(id);
    free(fields);
    world_close(w);
}
END_TEST

START_TEST(random_texts_come_back_from_being_sealed)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 5000, 200000};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 21);
    struct world world, *w = &world;
    char *ids[RV_COUNT(sizes)], *texts[RV_COUNT(sizes)];

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_SEALED);
    for (size_t i = 0; i < RV_COUNT(sizes); i++) {
        json_object *row = json_object_new_object();
        texts[i] = calloc(1, sizes[i] + 20);
        for (size_t k = 0; k < sizes[i]; k++)
            texts[i][k] = (char)(' ' + rv_rand_below(rand, 95));
        if (i == 3)
            memcpy(texts[i], "reeve-enc2:", 11);
        json_object_object_add(row, "comment", json_object_new_string(texts[i]));
        json_object *made = put_one(w, &ada, "feedback", json_object_to_json_string(row), T0);
        ids[i] = id_of(made);
        json_object_put(made);
        json_object_put(row);
    }
    use_private(w, ONE, RSA_PRIVATE);
    for (size_t i = 0; i < RV_COUNT(sizes); i++) {
        json_object *row = get_one(w, "feedback", ids[i]);
        ck_assert_str_eq(json_object_get_string(json_object_object_get(row, "comment")), texts[i]);
        json_object_put(row);
        free(ids[i]);
        free(texts[i]);
    }
    world_close(w);
}
END_TEST

START_TEST(leaving_the_mode_needs_the_private_key)
{
    struct world world, *w = &world;
    struct rv_encryption_walked walked;
    int64_t n = 0;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    json_object *row = put_one(w, &ada, "resources", ROW, T0);
    char *id = id_of(row);
    json_object_put(row);
    set_mode(w, RV_ENCRYPTION_SEALED);
    OK(rv_store_encrypt(w->s, NULL, T0, &walked, &w->err)); /* the way in needs none */
    ck_assert_int_eq(walked.rewritten, 3);
    ck_assert_int_eq(walked.locked, 0);
    row = get_one(w, "resources", id);
    ck_assert_ptr_nonnull(strstr(member(row, "content"), "reeve-enc2:"));
    ck_assert_str_eq(member(row, "encryption_level"), "\"sealed\"");
    json_object_put(row);
    set_mode(w, RV_ENCRYPTION_DISABLED);
    OK(rv_store_encrypt(w->s, NULL, T0, &walked, &w->err));
    ck_assert_int_eq(walked.rewritten, 1); /* metadata */
    ck_assert_int_eq(walked.locked, 2);
    row = get_one(w, "resources", id);
    ck_assert_str_eq(member(row, "encryption_level"), "\"sealed\"");
    json_object_put(row);
    OK(rv_store_prune_tenant_keys(w->s, T0 + 1, &n, &w->err));
    ck_assert_int_eq(n, 1); /* that of the mode platform */
    use_private(w, ONE, RSA_PRIVATE);
    OK(rv_store_encrypt(w->s, NULL, T0, &walked, &w->err));
    ck_assert_int_eq(walked.rewritten, 2);
    ck_assert_int_eq(walked.locked, 0);
    row = get_one(w, "resources", id);
    ck_assert_str_eq(member(row, "content"), "\"flour and kangaroo\"");
    ck_assert_str_eq(member(row, "encryption_level"), "\"disabled\"");
    json_object_put(row);
    OK(rv_store_check(w->s, &w->err));
    free(id);
    world_close(w);
}
END_TEST

START_TEST(a_mode_has_a_public_key_or_it_has_none)
{
    const struct rv_rsa seal = rsa_of(RSA_PUBLIC);
    struct world world, *w = &world;
    char id[RV_ENCRYPTION_ID];

    world_open(w, _i);
    use_keys(w, ONE);
    SAYS(RV_E_INVALID, "needs the tenant's public key",
         rv_store_set_encryption(w->s, RV_STORE_TENANT, RV_ENCRYPTION_SEALED, NULL, T0, id, &w->err));
    SAYS(RV_E_INVALID, "for the mode sealed",
         rv_store_set_encryption(w->s, RV_STORE_TENANT, RV_ENCRYPTION_CLIENT, &seal, T0, id, &w->err));
    set_mode(w, RV_ENCRYPTION_SEALED);
    change(w, "UPDATE tenant_keys SET public_key = ?1", "nonsense", SQL_TEXT);
    use_keys(w, ONE);
    json_object *row = tree("{\"comment\":\"ab\"}");
    const struct rv_entities_put how = {.kind = "feedback", .rows = &row, .n_rows = 1, .now_us = T0};
    SAYS(RV_E_IO, "the public key of a tenant", rv_store_put_entities(w->s, &ada, &how, NULL, &w->err));
    json_object_put(row);
    change(w, "UPDATE tenant_keys SET public_key = ?1", RSA_PUBLIC, SQL_TEXT);
    world_close(w);
}
END_TEST

/* --- users.email --- */

static int count_user(void *self, json_object *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int *)self;
    return 0;
}

static int n_with_email(struct world *w, const char *email)
{
    const struct rv_entity_where where = {"email", json_object_new_string(email)};
    const struct rv_entity_filter filter = {.where = &where, .n_where = 1};
    int n = 0;

    OK(rv_store_find_entities(w->s, &operator_scope, "users", &filter, count_user, &n, &w->err));
    json_object_put(where.value);
    return n;
}

START_TEST(equal_addresses_have_equal_ciphertext_and_are_found)
{
    struct world world, *w = &world;
    struct rv_encryption_walked walked;

    world_open(w, _i);
    use_keys(w, ONE);
    json_object_put(put_one(w, &operator_scope, "users", "{\"email\":\"plain@example.com\"}", T0));
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    json_object_put(put_one(w, &operator_scope, "users",
                            "{\"id\":\"dddddddd-0000-0000-0000-000000000001\",\"email\":\"ada@example.com\"}", T0));
    json_object_put(put_one(w, &operator_scope, "users",
                            "{\"id\":\"dddddddd-0000-0000-0000-000000000002\",\"email\":\"ada@example.com\"}", T0));
    char *one = kept(w, "SELECT fields FROM entities WHERE id LIKE '%1'");
    char *two = kept(w, "SELECT fields FROM entities WHERE id LIKE '%2'");
    ck_assert_ptr_nonnull(strstr(one, "\"email\":\"reeve-enc3:"));
    ck_assert_str_eq(one, two);
    ck_assert_int_eq(n_with_email(w, "ada@example.com"), 2);
    ck_assert_int_eq(n_with_email(w, "plain@example.com"), 1);
    ck_assert_int_eq(n_with_email(w, "eda@example.com"), 0);
    set_mode(w, RV_ENCRYPTION_CLIENT); /* another key, and clients are shown what is kept */
    json_object_put(put_one(w, &operator_scope, "users",
                            "{\"id\":\"dddddddd-0000-0000-0000-000000000003\",\"email\":\"ada@example.com\"}", T0));
    ck_assert_int_eq(n_with_email(w, "ada@example.com"), 3);
    for (int i = 0; i < 5; i++) /* more keys than are looked for: every row is read */
        set_mode(w, RV_ENCRYPTION_PLATFORM);
    ck_assert_int_eq(n_with_email(w, "ada@example.com"), 2);
    OK(rv_store_encrypt(w->s, NULL, T0, &walked, &w->err));
    ck_assert_int_eq(n_with_email(w, "ada@example.com"), 3);
    ck_assert_int_eq(n_with_email(w, "plain@example.com"), 1);
    OK(rv_store_check(w->s, &w->err));
    change(w, "UPDATE entities SET fields = ?1 WHERE id LIKE '%1'", one, SQL_TEXT); /* by a retired key: it is there */
    OK(rv_store_check(w->s, &w->err));
    char *at = strstr(one, "reeve-enc3:") + 30;
    *at = *at == 'A' ? 'B' : 'A';
    change(w, "UPDATE entities SET fields = ?1 WHERE id LIKE '%1'", one, SQL_TEXT);
    SAYS(RV_E_INVALID, "email of \"", rv_store_check(w->s, &w->err));
    *at = *at == 'A' ? 'B' : 'A';
    change(w, "UPDATE entities SET fields = ?1 WHERE id LIKE '%1'", two, SQL_TEXT);
    free(one);
    free(two);
    world_close(w);
}
END_TEST

START_TEST(an_address_has_other_bytes_in_another_tenant)
{
    const struct rv_store_scope other = {"other", NULL};
    struct world world, *w = &world;
    char id[RV_ENCRYPTION_ID];

    world_open(w, _i);
    use_keys(w, ONE);
    OK(rv_store_set_encryption(w->s, "", RV_ENCRYPTION_PLATFORM, NULL, T0, id, &w->err)); /* one key for both */
    json_object_put(put_one(w, &operator_scope, "users", "{\"email\":\"ada@example.com\"}", T0));
    json_object_put(put_one(w, &other, "users", "{\"email\":\"ada@example.com\"}", T0));
    char *one = kept(w, "SELECT fields FROM entities WHERE tenant_id = 'other'");
    char *two = kept(w, "SELECT fields FROM entities WHERE tenant_id <> 'other'");
    ck_assert_str_ne(one, two);
    ck_assert_int_eq(n_with_email(w, "ada@example.com"), 1);
    free(one);
    free(two);
    world_close(w);
}
END_TEST

Suite *encryption_suite(void)
{
    Suite *suite = suite_create("encryption");
    TCase *tc = tcase_create("encryption");

    ADD(tc, nothing_is_encrypted_unless_it_is_asked_for);
    ADD(tc, a_message_is_ciphertext_and_reads_as_it_was);
    ADD(tc, without_its_key_or_with_another_a_row_is_refused);
    ADD(tc, a_claim_passes_over_tasks_that_it_has_no_key_for);
    ADD(tc, a_changed_byte_is_refused);
    ADD(tc, a_text_of_another_row_or_column_is_refused);
    ADD(tc, extreme_texts_come_back);
    ADD(tc, values_of_records_come_back);
    ADD(tc, an_entity_is_ciphertext_in_no_index_and_changes_as_ever);
    ADD(tc, a_client_is_shown_ciphertext_and_an_agent_the_words);
    ADD(tc, a_rotation_that_ends_early_goes_on);
    ADD(tc, another_master_key_wraps_the_same_keys);
    ADD(tc, a_sealed_text_is_read_with_the_private_key_alone);
    ADD(tc, what_reeve_goes_on_with_is_readable_in_a_sealed_tenant);
    ADD(tc, a_sealed_text_stays_while_other_columns_change);
    ADD(tc, each_changed_byte_of_a_sealed_text_is_refused);
    ADD(tc, random_texts_come_back_from_being_sealed);
    ADD(tc, leaving_the_mode_needs_the_private_key);
    ADD(tc, a_mode_has_a_public_key_or_it_has_none);
    ADD(tc, equal_addresses_have_equal_ciphertext_and_are_found);
    ADD(tc, an_address_has_other_bytes_in_another_tenant);
    suite_add_tcase(suite, tc);
    return suite;
}
