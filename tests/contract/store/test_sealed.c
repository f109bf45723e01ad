/* The mode sealed: reeve writes what it cannot read, and goes on with what it needs; addresses that are found while
 * they are encrypted. */
#include "tests/contract/store/secrets.h"
#include "tests/kit/rsa_keys.h"

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
    char *whole = rv_str_dup(rv_str_of(json_object_to_json_string_ext(row, 0))); /* as it was read */
    json_object_put(row);
    row = put_one(w, &ada, "resources", whole, T0 + 1);
    ck_assert_str_eq(member(row, "content"), before);
    json_object_put(row);
    OK(rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"resources", id, T0 + 1},
                               &(struct rv_metadata_change){.members = patch}, &got, &w->err));
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
    free(whole);
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
    SAYS(RV_E_IO, "cannot be decrypted", rv_store_check(w->s, &w->err));
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
         rv_store_set_encryption(w->s, RV_STORE_TENANT,
                                 &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_SEALED}, T0, id, &w->err));
    SAYS(RV_E_INVALID, "for the mode sealed",
         rv_store_set_encryption(w->s, RV_STORE_TENANT,
                                 &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_CLIENT, .seal = &seal}, T0,
                                 id, &w->err));
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

    OK(rv_store_find_entities(w->s, &operator_scope, &(const struct rv_entities_of){"users", &filter}, count_user, &n,
                              &w->err));
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
    SAYS(RV_E_IO, "email of \"", rv_store_check(w->s, &w->err));
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
    OK(rv_store_set_encryption(w->s, "", &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_PLATFORM}, T0, id,
                               &w->err)); /* one key for both */
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

Suite *sealed_suite(void)
{
    Suite *suite = suite_create("sealed");
    TCase *tc = tcase_create("sealed");

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
