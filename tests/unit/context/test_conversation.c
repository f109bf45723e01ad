/* The conversation of a run: written, read into a copy of its own, and refused where it is not what was written. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/context/suites.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char *text_of(const struct rv_conversation *c)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_conversation_write_json(c, &w);
    ck_assert_int_eq(b.rc, 0);
    return rv_buf_steal(&b, NULL);
}

static struct rv_conversation *read_text(const char *text)
{
    struct rv_conversation *c = NULL;
    json_object *json = rv_kit_json(text);

    ck_assert_int_eq(rv_conversation_read_json(json, &c, NULL), 0);
    json_object_put(json); /* nothing may point into it */
    return c;
}

START_TEST(what_is_written_is_read_again_into_a_copy)
{
    const char *sections[] = {"Answer in German.\nAlways.", ""};
    struct rv_conversation c = {.context = {.tenant_id = "t", .user_id = "u", .user_profile_hint = "a\nb"},
                                .session_name = "N\nM",
                                .session_metadata = rv_kit_json("{'a':{'b':[1.50]},'_own':1,'routing':{'x':1}}"),
                                .has_routing = true,
                                .routing = {.active_agent = "a", .state = RV_ROUTING_EXECUTING, .max_turns = 4},
                                .sections = sections,
                                .n_sections = 2,
                                .zone_minutes = -210,
                                .keeps = true,
                                .upto_seq = 42,
                                .history_opts = RV_HISTORY_OPTS_INIT,
                                .history_hash = HASH,
                                .history = rv_kit_json("[1]")};
    struct rv_conversation *copy;
    char *text, *again;

    memcpy(c.routing.fallback, "f", 2);
    c.history_opts.max_messages = 7;
    ck_assert_int_eq(rv_conversation_check(&c, NULL), 0);
    text = text_of(&c);
    copy = read_text(text);
    again = text_of(copy);
    ck_assert_str_eq(text, again);
    ck_assert_str_eq(copy->context.user_id, "u");
    ck_assert_str_eq(copy->context.user_profile_hint, "a\nb");
    ck_assert_str_eq(copy->session_name, "N\nM");
    ck_assert_uint_eq(copy->n_sections, 2);
    ck_assert_str_eq(copy->sections[0], sections[0]);
    ck_assert_str_eq(copy->sections[1], "");
    ck_assert(copy->has_routing && copy->keeps);
    ck_assert_str_eq(copy->routing.fallback, "f");
    ck_assert_int_eq(copy->zone_minutes, -210);
    ck_assert_int_eq(copy->upto_seq, 42);
    ck_assert_int_eq(copy->history_opts.max_messages, 7);
    ck_assert_str_eq(copy->history_hash, HASH);
    ck_assert_ptr_null(copy->history);
    ck_assert_ptr_null(strstr(text, "_own"));
    copy->history = rv_kit_json("[2]"); /* theirs, from here */
    rv_conversation_free(copy);
    free(text);
    free(again);
    json_object_put(c.session_metadata);
    json_object_put(c.history);
}
END_TEST

START_TEST(what_is_told_of_a_copy_is_the_same)
{
    const char *sections[] = {"more"};
    char name[2 * RV_CONVERSATION_MAX_NAME];
    struct rv_conversation c = {.context = {.tenant_id = "default", .session_id = "s", .agent_schema_uri = "a"},
                                .session_name = name,
                                .session_metadata = rv_kit_json("{'_own':1,'b':'\xc3\xa9','a':[1]}"),
                                .has_routing = true,
                                .routing = RV_ROUTING_INIT,
                                .sections = sections,
                                .n_sections = 1,
                                .zone_minutes = 60,
                                .history_opts = RV_HISTORY_OPTS_INIT};
    struct rv_conversation *copy;
    rv_buf told = RV_BUF_INIT(1 << 16), again = RV_BUF_INIT(1 << 16);
    char *text;

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(rv_conversation_check(&c, NULL), 0);
    text = text_of(&c);
    copy = read_text(text);
    rv_instructions_write(&c, NULL, true, 1, &told);
    rv_instructions_write(copy, NULL, true, 1, &again);
    ck_assert_str_eq(rv_buf_cstr(&told), rv_buf_cstr(&again));
    rv_conversation_free(copy);
    rv_buf_fini(&told);
    rv_buf_fini(&again);
    free(text);
    json_object_put(c.session_metadata);
}
END_TEST

START_TEST(what_is_not_set_takes_no_room)
{
    struct rv_conversation c = {.context = {.tenant_id = "default"}, .history_opts = RV_HISTORY_OPTS_INIT};
    char *text = text_of(&c);

    ck_assert_ptr_nonnull(strstr(text, "{\"context\":{\"tenant_id\":\"default\"},\"keeps\":false,\"upto_seq\":0,"
                                       "\"history\":{"));
    ck_assert_ptr_null(strstr(text, "session"));
    free(text);
}
END_TEST

/* A member as text; NULL: it is left out. Where there is no error, it is read. */
static const struct {
    const char *member, *value, *error;
} members[] = {
    {"context", NULL, "conversation: context is missing  [invalid_argument]\n"},
    {"context", "[]", "conversation: context must be an object, not array  [invalid_argument]\n"},
    {"context", "{\"user_id\":1}",
     "conversation: agent context: user_id must be a string, not integer  [invalid_argument]\n"},
    {"keeps", NULL, "conversation: keeps is missing  [invalid_argument]\n"},
    {"keeps", "1", "conversation: keeps must be a boolean, not integer  [invalid_argument]\n"},
    {"upto_seq", NULL, "conversation: upto_seq is missing  [invalid_argument]\n"},
    {"upto_seq", "1.0", "conversation: upto_seq must be an integer, not number  [invalid_argument]\n"},
    {"upto_seq", "18446744073709551615",
     "conversation: upto_seq must be an integer, not integer  "
     "[invalid_argument]\n"},
    {"upto_seq", "-1", "conversation: upto_seq is negative  [invalid_argument]\n"},
    {"history", NULL, "conversation: history is missing  [invalid_argument]\n"},
    {"history", "null", "conversation: history must be an object, not null  [invalid_argument]\n"},
    {"session_name", "7", "conversation: session_name must be a string, not integer  [invalid_argument]\n"},
    {"session_name", "null", "conversation: session_name must be a string, not null  [invalid_argument]\n"},
    {"session_name", "\"a\\u0000\"", "conversation: session_name has a NUL  [invalid_argument]\n"},
    {"session_metadata", "[]", "conversation: session_metadata must be an object, not array  [invalid_argument]\n"},
    {"routing", "\"idle\"", "conversation: routing must be an object, not string  [invalid_argument]\n"},
    {"sections", "{}", "conversation: sections must be an array, not object  [invalid_argument]\n"},
    {"sections", "[\"a\",2]", "conversation: sections[1] must be a string, not integer  [invalid_argument]\n"},
    {"sections", "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]",
     "conversation: sections: 17 of them, more than 16  [invalid_argument]\n"},
    {"sections", "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]", NULL},
    {"zone_minutes", "1440", "conversation: zone_minutes is 1440, beyond a day  [invalid_argument]\n"},
    {"zone_minutes", "4294967296", "conversation: zone_minutes is 4294967296, beyond a day  [invalid_argument]\n"},
    {"zone_minutes", "-1439", NULL},
    {"history_hash", "\"\"", "conversation: history_hash is not a hash  [invalid_argument]\n"},
    {"history_hash", "\"" HASH "0\"", "conversation: history_hash is not a hash  [invalid_argument]\n"},
    {"history_hash", "\"X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
     "conversation: history_hash is not a hash  [invalid_argument]\n"},
    {"history_hash", "\"" HASH "\"", NULL},
    {"note", "1", "conversation: unknown member \"note\"  [invalid_argument]\n"},
};

START_TEST(each_member_is_read_strictly)
{
    struct rv_conversation first = {.context = {.tenant_id = "default"}, .history_opts = RV_HISTORY_OPTS_INIT};
    struct rv_conversation *c = NULL;
    char *text = text_of(&first);
    json_object *json = rv_kit_json(text), *value = NULL;
    rv_err *err = NULL;
    int rc;

    if (members[_i].value) {
        ck_assert_int_eq(rv_json_parse(rv_str_of(members[_i].value), NULL, &value, NULL), 0);
        ck_assert_int_eq(json_object_object_add(json, members[_i].member, value), 0);
    } else {
        json_object_object_del(json, members[_i].member);
    }
    rc = rv_conversation_read_json(json, &c, &err);
    ck_assert_int_eq(rc, members[_i].error ? RV_E_INVALID : 0);
    if (rc < 0) {
        char *said = rv_kit_err_take(err);

        ck_assert_str_eq(said, members[_i].error);
        free(said);
    }
    rv_conversation_free(c);
    json_object_put(json);
    free(text);
}
END_TEST

START_TEST(sections_share_one_limit)
{
    struct rv_conversation c = {.context = {.tenant_id = "default"}, .history_opts = RV_HISTORY_OPTS_INIT},
                           *copy = NULL;
    size_t half = RV_CONVERSATION_SECTION_BYTES / 2;
    char *long_text = malloc(half + 2);
    const char *sections[] = {long_text, long_text};
    json_object *json;
    char *text;

    ck_assert_ptr_nonnull(long_text);
    memset(long_text, 'a', half + 1);
    long_text[half] = '\0';
    c.sections = sections;
    c.n_sections = 2;
    ck_assert_int_eq(rv_conversation_check(&c, NULL), 0);
    text = text_of(&c);
    rv_conversation_free(read_text(text));
    free(text);
    long_text[half] = 'a';
    long_text[half + 1] = '\0';
    ck_assert_int_eq(rv_conversation_check(&c, NULL), RV_E_INVALID);
    text = text_of(&c);
    json = rv_kit_json(text);
    ck_assert_int_eq(rv_conversation_read_json(json, &copy, NULL), RV_E_INVALID);
    json_object_put(json);
    free(text);
    free(long_text);
}
END_TEST

START_TEST(what_could_not_be_read_back_is_found_before)
{
    struct rv_conversation c = {.context = {.tenant_id = "default", .user_name = "a\nb"}};
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_conversation_check(&c, &err), RV_E_INVALID);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, "conversation: context: user_name has a control character at byte 1  [invalid_argument]\n");
    free(text);
    c.context.user_name = NULL;
    ck_assert_int_eq(rv_conversation_check(&c, NULL), 0);
    c.session_name = "\xff";
    ck_assert_int_eq(rv_conversation_check(&c, NULL), RV_E_INVALID);
    c.session_name = NULL;
    c.zone_minutes = 1440;
    ck_assert_int_eq(rv_conversation_check(&c, NULL), RV_E_INVALID);
    c.zone_minutes = 0;
    c.upto_seq = -1;
    ck_assert_int_eq(rv_conversation_check(&c, NULL), RV_E_INVALID);
}
END_TEST

TCase *conversation_case(void)
{
    TCase *tc = tcase_create("conversation");

    tcase_add_test(tc, what_is_written_is_read_again_into_a_copy);
    tcase_add_test(tc, what_is_told_of_a_copy_is_the_same);
    tcase_add_test(tc, what_is_not_set_takes_no_room);
    tcase_add_loop_test(tc, each_member_is_read_strictly, 0, RV_COUNT(members));
    tcase_add_test(tc, sections_share_one_limit);
    tcase_add_test(tc, what_could_not_be_read_back_is_found_before);
    return tc;
}
