/* Encryption: what is kept of a tenant is ciphertext, every read gives the plain text back, and what is changed, moved
 * or without its key is refused. The one suite here that looks behind store.h: at what is kept. */
#include "tests/contract/store/secrets.h"
#include "tests/contract/store/tasks.h"

/* Proves p8-data.20: Nothing is encrypted unless a tenant asks for it */
START_TEST(nothing_is_encrypted_unless_it_is_asked_for)
{
    struct world world, *w = &world;

    world_open(w, _i);
    say(w, "s1", "the plain words");
    char *text = kept(w, CONTENT);
    ck_assert_str_eq(text, "the plain words");
    free(text);
    SAYS(RV_E_STATE, "no master key",
         rv_store_set_encryption(w->s, "", &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_PLATFORM}, T0,
                                 (char[RV_ENCRYPTION_ID]){0}, &w->err));
    world_close(w);
}
END_TEST

/* Proves p8-data.20/platform: Mode platform keeps ciphertext and reads what was written */
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
         rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", NULL}, see_message, &seen,
                                &w->err));
    SAYS(RV_E_DENIED, "encrypt",
         rv_store_ensure_session(
             w->s, &(struct rv_session_row){.id = "s2", .tenant = RV_STORE_TENANT, .user = "", .created_us = T0}, NULL,
             &w->err));
    OK(rv_store_check(w->s, &w->err)); /* upkeep needs no key */
    use_keys(w, TWO);
    SAYS(RV_E_DENIED, "is not among those given",
         rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", NULL}, see_message, &seen,
                                &w->err));
    use_keys(w, TWO "," ONE);
    MESSAGES("s1", "1:user=the plain words");
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

/* Who has lost a key can still delete what cannot be read any more. */
START_TEST(what_is_deleted_needs_no_key)
{
    struct world world, *w = &world;
    struct rv_session_row row = {0};

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    say(w, "s1", "the plain words");
    json_object *patch = tree("{\"k\":1}");
    OK(rv_store_merge_metadata(w->s, &unowned, &(struct rv_entity_target){"sessions", "s1", T0},
                               &(struct rv_metadata_change){.members = patch}, NULL, &w->err));
    json_object_put(patch);
    json_object *entity = put_one(w, &ada, "resources", ROW, T0);
    const char *id = json_object_get_string(json_object_object_get(entity, "id"));
    use_keys(w, "");
    FAILS(RV_E_DENIED, rv_store_get_session(w->s, &unowned, "s1", &row, &w->err));
    OK(rv_store_identify_session(w->s, &unowned, "s1", &row, &w->err));
    ck_assert_str_eq(row.metadata.ptr, "{}");
    rv_session_row_fini(&row);
    OK(rv_store_delete_session(w->s, &unowned, "s1", T0 + 1, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_identify_session(w->s, &unowned, "s1", &row, &w->err));
    OK(rv_store_delete_entity(w->s, &ada, &(struct rv_entity_target){"resources", id, T0 + 1}, &w->err));
    json_object_put(entity);
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

/* The lease of a worker that died ends for every worker, also for one that cannot read what the task is about. */
START_TEST(an_attempt_that_is_lost_is_recovered_without_a_key)
{
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    add_task(w, "secret", NULL, 0);
    CLAIM("w1", 1, 1, "secret");
    use_keys(w, "");
    ck_assert_int_eq(recover_at(w, 2 + LEASE).n_pending, 1);
    use_keys(w, ONE);
    EVENTS("secret", "claimed recovered(1/3 +902)");
    world_close(w);
}
END_TEST

/* Others go on beside it. */
START_TEST(a_claim_passes_over_a_task_that_is_damaged)
{
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    add_task(w, "bad", NULL, 1);
    add_task(w, "good", NULL, 0);
    add_task(w, "other", "harbour", 0);
    char *payload = kept(w, "SELECT payload FROM tasks WHERE id = 'bad'");
    change(w, "UPDATE tasks SET payload = ?1 WHERE id = 'bad'", "reeve-enc1:0123456789abcdef:AAAA", SQL_STR);
    CLAIM("w1", 5, 1, "good other");
    change(w, "UPDATE tasks SET payload = ?1 WHERE id = 'bad'", payload, SQL_STR); /* restored */
    CLAIM("w2", 5, 2, "bad");
    free(payload);
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
        FAILS(RV_E_IO, rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", NULL}, see_message,
                                              &seen, &w->err));
        changed[i] = text[i];
        rv_buf_fini(&seen.text);
    }
    SAYS(RV_E_IO, "cannot be decrypted", rv_store_check(w->s, &w->err));
    change(w, "UPDATE messages SET content = ?1 WHERE seq = 1", text, SQL_STR);
    MESSAGES("s1", "1:user=ab");
    free(text);
    free(changed);
    world_close(w);
}
END_TEST

/* Proves p8-data.20/aad: Ciphertext belongs to its tenant, row and column
 * Proves p8.W34: Arguments of tool calls are encrypted as contents are */
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
         rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", NULL}, see_message, &seen,
                                &w->err));
    change(w, "UPDATE messages SET content = ?1 WHERE session = (SELECT key FROM sessions WHERE id = 's1')", first,
           SQL_STR);
    change(w, "UPDATE messages SET tool_calls = ?1 WHERE session = (SELECT key FROM sessions WHERE id = 's1')", first,
           SQL_STR);
    SAYS(RV_E_IO, "tool_calls of",
         rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", NULL}, see_message, &seen,
                                &w->err));
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
        OK(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = "r1", .from = (int64_t)i + 2},
                         see_record, &seen, &w->err));
        ck_assert_str_eq(rv_buf_cstr(&seen.text), rv_buf_cstr(&want));
        rv_buf_fini(&want);
        rv_buf_fini(&seen.text);
    }
    free(value);
    world_close(w);
}
END_TEST

/* Proves p8-data.20/index */
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
    OK(rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"resources", id, T0 + 1},
                               &(struct rv_metadata_change){.members = patch}, &got, &w->err));
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

/* The index of names is not encrypted: it has the words of no row that is. */
START_TEST(a_description_that_is_encrypted_is_in_no_index)
{
    const struct rv_session_change described = {.description = "the kangaroo", .now_us = T0 + 1};
    struct rv_encryption_walked walked;
    struct world world, *w = &world;

    world_open(w, _i);
    use_keys(w, ONE);
    say(w, "s1", "the plain words"); /* before the tenant asks for it */
    set_mode(w, RV_ENCRYPTION_PLATFORM);
    OK(rv_store_change_session(w->s, &unowned, "s1", &described, &w->err));
    char *summary = kept(w, "SELECT summary FROM keys"), *text = kept(w, "SELECT description FROM sessions");
    ck_assert_ptr_nonnull(strstr(text, "reeve-enc1:"));
    ck_assert_ptr_null(strstr(summary, "kangaroo"));
    OK(rv_store_check(w->s, &w->err));
    free(summary);
    free(text);
    OK(rv_store_encrypt(w->s, NULL, T0 + 1, &walked, &w->err)); /* its texts are current from now on */
    change(w, "UPDATE sessions SET encryption_level = ?1", "disabled", SQL_TEXT); /* as if nothing was encrypted */
    change(w, "UPDATE keys SET summary = ?1", "the kangaroo", SQL_TEXT);
    OK(rv_store_encrypt(w->s, NULL, T0 + 2, &walked, &w->err));
    summary = kept(w, "SELECT summary FROM keys");
    ck_assert_ptr_null(strstr(summary, "kangaroo"));
    free(summary);
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

Suite *encryption_suite(void)
{
    Suite *suite = suite_create("encryption");
    TCase *tc = tcase_create("encryption");

    ADD(tc, nothing_is_encrypted_unless_it_is_asked_for);
    ADD(tc, a_message_is_ciphertext_and_reads_as_it_was);
    ADD(tc, without_its_key_or_with_another_a_row_is_refused);
    ADD(tc, what_is_deleted_needs_no_key);
    ADD(tc, a_claim_passes_over_tasks_that_it_has_no_key_for);
    ADD(tc, an_attempt_that_is_lost_is_recovered_without_a_key);
    ADD(tc, a_claim_passes_over_a_task_that_is_damaged);
    ADD(tc, a_changed_byte_is_refused);
    ADD(tc, a_text_of_another_row_or_column_is_refused);
    ADD(tc, extreme_texts_come_back);
    ADD(tc, values_of_records_come_back);
    ADD(tc, an_entity_is_ciphertext_in_no_index_and_changes_as_ever);
    ADD(tc, a_description_that_is_encrypted_is_in_no_index);
    ADD(tc, a_rotation_that_ends_early_goes_on);
    ADD(tc, another_master_key_wraps_the_same_keys);
    suite_add_tcase(suite, tc);
    return suite;
}
