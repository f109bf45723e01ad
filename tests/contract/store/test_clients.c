/* The mode client of encryption: who reads is shown ciphertext, the engine and agents get the words. */
#include "tests/contract/store/secrets.h"

/* Proves p8-data.20/client: Mode client shows ciphertext to clients and words to agents */
START_TEST(a_client_is_shown_ciphertext_and_an_agent_the_words)
{
    const struct rv_message_filter told = {.for_agents = true};
    struct world world, *w = &world;
    struct seen seen = {.text = RV_BUF_INIT(10000)};

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_CLIENT);
    say(w, "s1", "the plain words");
    OK(rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", NULL}, see_message, &seen, &w->err));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&seen.text), "user=reeve-enc1:"));
    rv_buf_clear(&seen.text);
    OK(rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){"s1", &told}, see_message, &seen,
                              &w->err));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&seen.text), "user=the plain words"));
    json_object *row = put_one(w, &ada, "resources", ROW, T0), *patch = tree("{\"more\":1}"), *got = NULL;
    ck_assert_ptr_nonnull(strstr(member(row, "content"), "reeve-enc1:"));
    ck_assert_ptr_nonnull(strstr(member(row, "metadata"), "{\"encrypted\":\"reeve-enc1:"));
    const char *id = json_object_get_string(json_object_object_get(row, "id"));
    OK(rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"resources", id, T0 + 1},
                               &(struct rv_metadata_change){.members = patch}, &got, &w->err));
    ck_assert_str_eq(json_object_to_json_string_ext(got, 0), "{\"who\":\"platypus\",\"more\":1}");
    json_object_put(got);
    json_object_put(patch);
    json_object_put(row);
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

static int show_json(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, "%.*s %.*s\n", RV_STR_ARG(m->tool_calls), RV_STR_ARG(m->metadata));
    return 0;
}

static int keep_shown(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)err;
    rv_buf_add_str(self, row->shown_metadata.ptr ? row->shown_metadata : row->metadata);
    return 0;
}

/* What is there of a session for a client: its row, and the objects of its messages. */
static void show_session(struct world *w, const char *session, rv_buf *out)
{
    struct rv_session_row row = {0};

    rv_buf_clear(out);
    OK(rv_store_list_sessions(w->s, &unowned, &(const struct rv_session_filter){0}, keep_shown, out, &w->err));
    rv_buf_putc(out, '\n');
    OK(rv_store_get_session(w->s, &unowned, session, &row, &w->err));
    rv_buf_add_str(out, row.shown_metadata.ptr ? row.shown_metadata : row.metadata);
    ck_assert_str_eq(row.metadata.ptr, "{\"latest_summary\":\"wombat\"}"); /* the engine goes by it */
    rv_session_row_fini(&row);
    rv_buf_putc(out, '\n');
    OK(rv_store_read_messages(w->s, &unowned, &(const struct rv_messages_of){session, NULL}, show_json, out, &w->err));
}

/* Of an object a client gets {"encrypted": TEXT}. */
START_TEST(a_client_is_shown_no_words_of_metadata)
{
    struct world world, *w = &world;
    struct rv_message m = world_message("m1", "tool_call", NULL);
    const struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};
    rv_buf shown = RV_BUF_INIT(10000);

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_CLIENT);
    OK(rv_store_ensure_session(w->s,
                               &(struct rv_session_row){.id = "s1",
                                                        .tenant = RV_STORE_TENANT,
                                                        .user = "",
                                                        .metadata = RV_STR_LIT("{\"latest_summary\":\"wombat\"}"),
                                                        .created_us = T0},
                               NULL, &w->err));
    m.tool_calls = RV_STR_LIT("{\"name\":\"look\"}");
    m.metadata = RV_STR_LIT("{\"k\":\"wombat\"}");
    OK(rv_store_add_messages(w->s, &unowned, &turn, T0, &w->err));
    show_session(w, "s1", &shown);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&shown), "wombat"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&shown), "look"));
    size_t n = 0;
    for (const char *p = rv_buf_cstr(&shown); (p = strstr(p, "{\"encrypted\":\"reeve-enc1:")) != NULL; p++)
        n++;
    ck_assert_uint_eq(n, 4);
    rv_store_reveal(w->s, true);
    show_session(w, "s1", &shown);
    ck_assert_str_eq(rv_buf_cstr(&shown), "{\"latest_summary\":\"wombat\"}\n{\"latest_summary\":\"wombat\"}\n"
                                          "{\"name\":\"look\"} {\"k\":\"wombat\"}\n");
    rv_store_reveal(w->s, false);
    rv_buf_fini(&shown);
    world_close(w);
}
END_TEST

static int keep_metadata(void *self, const struct rv_key_node *node, rv_err **err)
{
    (void)err;
    rv_buf_add_str(self, node->metadata);
    return 0;
}

/* A row that was read and is written again, ciphertext and all, is what it was, and so are its parts. */
START_TEST(a_row_that_a_client_writes_back_is_encrypted_once)
{
    struct rv_encryption_walked walked;
    struct world world, *w = &world;
    char text[1000];

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_CLIENT);
    json_object *row = put_one(w, &ada, "resources", ROW, T0);
    json_object_object_add(row, "category", json_object_new_string("food"));
    for (int i = 0; i < 2; i++) { /* at the second time it has another ciphertext than what was read */
        json_object_put(put_one(w, &ada, "resources", json_object_to_json_string_ext(row, 0), T0 + 1));
        set_mode(w, RV_ENCRYPTION_CLIENT);
        OK(rv_store_encrypt(w->s, NULL, T0 + 1, &walked, &w->err));
    }
    json_object_put(row);
    rv_store_reveal(w->s, true);
    row = put_one(w, &ada, "resources", "{\"name\":\"Bread\",\"rating\":3}", T0 + 2);
    rv_store_reveal(w->s, false);
    ck_assert_str_eq(member(row, "content"), "\"flour and kangaroo\"");
    ck_assert_str_eq(member(row, "comment"), "\"wombat\"");
    ck_assert_str_eq(member(row, "category"), "\"food\"");
    ck_assert_str_eq(member(row, "metadata"), "{\"who\":\"platypus\"}");
    json_object_put(row);
    /* a text that only looks like it is one, as that of another row */
    char *other = kept(w, "SELECT metadata FROM entities");
    snprintf(text, sizeof text, "{\"name\":\"Bread\",\"content\":\"%s\"}", other);
    json_object_put(put_one(w, &ada, "resources", text, T0 + 3));
    rv_store_reveal(w->s, true);
    row = put_one(w, &ada, "resources", "{\"name\":\"Bread\"}", T0 + 4);
    rv_store_reveal(w->s, false);
    ck_assert_str_eq(json_object_get_string(json_object_object_get(row, "content")), other);
    json_object_put(row);
    free(other);
    world_close(w);
}
END_TEST

/* A walk over edges shows what a lookup shows. */
START_TEST(a_client_is_shown_ciphertext_on_a_walk)
{
    const rv_str key = RV_STR_LIT("bread");
    struct world world, *w = &world;
    rv_buf shown = RV_BUF_INIT(10000);

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_CLIENT);
    json_object_put(put_one(w, &ada, "resources", ROW, T0));
    for (int i = 0; i < 2; i++) {
        rv_buf_clear(&shown);
        rv_store_reveal(w->s, i == 1);
        OK(rv_store_read_nodes(w->s, &ada, &(const struct rv_node_keys){.keys = &key, .n_keys = 1}, keep_metadata,
                               &shown, &w->err));
        const char *wanted = i == 1 ? "{\"who\":\"platypus\"}" : "{\"encrypted\":\"reeve-enc1:";
        ck_assert_msg(strncmp(rv_buf_cstr(&shown), wanted, strlen(wanted)) == 0, "%s", rv_buf_cstr(&shown));
    }
    rv_store_reveal(w->s, false);
    rv_buf_fini(&shown);
    world_close(w);
}
END_TEST

Suite *clients_suite(void)
{
    Suite *suite = suite_create("clients");
    TCase *tc = tcase_create("clients");

    ADD(tc, a_client_is_shown_ciphertext_and_an_agent_the_words);
    ADD(tc, a_client_is_shown_no_words_of_metadata);
    ADD(tc, a_row_that_a_client_writes_back_is_encrypted_once);
    ADD(tc, a_client_is_shown_ciphertext_on_a_walk);
    suite_add_tcase(suite, tc);
    return suite;
}
