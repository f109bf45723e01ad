/* Memory of a session: the text of a moment, what fits, hints, chunks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define MANY 600

static const struct {
    const char *row, *want;
} texts[] = {
    {"{'summary':'We met.'}", "[Session context]\nWe met."},
    {"{'summary':null}", "[Session context]\n"},
    {"{}", "[Session context]\n"},
    {"{'summary':'S','metadata':{'resource_keys':['a','b']}}", "[Session context]\nS\nResources: a, b"},
    {"{'summary':'S','metadata':{'resource_keys':[]}}", "[Session context]\nS"},
    {"{'summary':'S Resources: x','metadata':{'resource_keys':['a']}}", "[Session context]\nS Resources: x"},
    {"{'summary':'S','metadata':{'resource_keys':['1','2','3','4','5','6','7','8','9','10','11']}}",
     "[Session context]\nS\nResources: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"},
    {"{'summary':'S','metadata':{'file_name':'r.pdf'}}", "[Session context]\nS\nFile: r.pdf"},
    {"{'summary':'S File: x','metadata':{'file_name':'r.pdf'}}", "[Session context]\nS File: x"},
    {"{'summary':'S','topic_tags':['t','u']}", "[Session context]\nS\nTopics: t, u"},
    {"{'summary':'S','metadata':{'resource_keys':['k'],'file_name':'f'},'topic_tags':['t']}",
     "[Session context]\nS\nResources: k\nFile: f\nTopics: t"},
    {"{'summary':'S','metadata':'{\\'file_name\\':\\'f\\'}'}", "[Session context]\nS\nFile: f"},
    {"{'summary':'S','metadata':'no JSON'}", "[Session context]\nS"},
    {"{'summary':'S','metadata':'[1]'}", "[Session context]\nS"},
    {"{'summary':5,'metadata':7,'topic_tags':'t'}", "[Session context]\n"},
};

/* Proves p8-data.22/7: A summary that is null is told as an empty one */
START_TEST(a_moment_is_told_line_by_line)
{
    json_object *row = rv_kit_json(texts[_i].row);
    rv_buf text = RV_BUF_INIT(10000);

    rv_moment_write(row, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), texts[_i].want);
    rv_buf_fini(&text);
    json_object_put(row);
}
END_TEST

/* Rows newest first: m3 m2 m1, each with a summary of that many characters. */
static json_object *notes_of(const size_t *lengths, size_t n, const struct rv_moment_opts *o, bool covers)
{
    json_object *rows[8], *notes = NULL;
    static char summary[20000];
    rv_err *err = NULL;

    for (size_t i = 0; i < n; i++) {
        char name[8];
        snprintf(name, sizeof name, "m%zu", n - i);
        memset(summary, 'x', lengths[i]);
        summary[lengths[i]] = '\0';
        rows[i] = json_object_new_object();
        ck_assert_int_eq(rv_json_set_text(rows[i], "name", name, &err), 0);
        ck_assert_int_eq(rv_json_set_text(rows[i], "summary", summary, &err), 0);
        ck_assert_int_eq(rv_json_set_text(rows[i], "moment_type", i % 2 ? "note" : RV_CHUNK_TYPE, &err), 0);
    }
    ck_assert_msg(rv_moments_note(rows, n, o, covers, &notes, &err) == 0, "%s", rv_err_text(err));
    for (size_t i = 0; i < n; i++)
        json_object_put(rows[i]);
    return notes;
}

static void names_are(json_object *notes, const char *want)
{
    rv_buf text = RV_BUF_INIT(1000);

    for (size_t i = 0; notes && i < json_object_array_length(notes); i++) {
        json_object *note = json_object_array_get_idx(notes, i), *told = NULL;
        const char *name = "";
        ck_assert(rv_json_get_text(note, "name", &name));
        rv_buf_printf(&text, "%s%s%s", i ? " " : "", name, json_object_object_get_ex(note, "text", &told) ? "" : "-");
    }
    ck_assert_str_eq(rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
    json_object_put(notes);
}

/* Proves p8-data.5.2: The newest moments of a session are told oldest first, before its messages
 * Proves p8-data.22/24: What is told of moments has a cap of its own */
START_TEST(the_newest_that_fit_are_told_oldest_first)
{
    const size_t short_ones[] = {10, 10, 10, 10}, long_ones[] = {2000, 2000, 2000, 2000}, huge[] = {9000, 10};

    names_are(notes_of(short_ones, 4, &(struct rv_moment_opts){3, 1500}, false), "m2 m3 m4");
    names_are(notes_of(short_ones, 4, &(struct rv_moment_opts){0, 1500}, true), "");
    names_are(notes_of(short_ones, 4, &(struct rv_moment_opts){1, 1500}, true), "m2- m4");
    names_are(notes_of(long_ones, 4, &(struct rv_moment_opts){3, 1500}, false), "m3 m4");
    names_are(notes_of(huge, 2, &(struct rv_moment_opts){3, 100}, false), "m2");
    names_are(notes_of(huge, 2, &(struct rv_moment_opts){3, 0}, false), "");
    json_object *notes = notes_of(huge, 2, &(struct rv_moment_opts){3, 100}, false);
    ck_assert_int_eq(json_object_get_string_len(json_object_object_get(json_object_array_get_idx(notes, 0), "text")),
                     400);
    json_object_put(notes);
}
END_TEST

#define CHUNKS                                                                                                         \
    "[{'name':'c0','hint':'first','from_seq':1,'through_seq':4,'starts_us':10,'ends_us':40},"                          \
    "{'name':'c1','hint':'second','text':'t','from_seq':5,'through_seq':8,'starts_us':50,'ends_us':80},"               \
    "{'name':'upload','hint':'a file','text':'t'}]"

/* Proves p8-data.5.3: An older answer becomes a hint at the chunk that covers it */
START_TEST(a_hint_names_the_chunk_that_covers)
{
    static const struct {
        const char *notes;
        int64_t seq, us;
        bool names_keys;
        const char *want;
        int64_t tokens;
    } cases[] = {
        {CHUNKS, 2, 70, true, "[Earlier: first… → REM LOOKUP c0]", 20},
        {CHUNKS, 5, 0, true, "[Earlier: second… → REM LOOKUP c1]", 20},
        {CHUNKS, 0, 40, true, "[Earlier: first… → REM LOOKUP c0]", 20},
        {CHUNKS, 9, 0, true, "[Earlier: a file… → REM LOOKUP upload]", 20},
        {CHUNKS, 9, 0, false, "[Earlier: a file…]", 20},
        {"[{'name':'c0','hint':'first','from_seq':1,'through_seq':4}]", 2, 0, true, "[earlier message compacted]", 5},
        {"[{'name':'x','text':'t'}]", 2, 0, true, "[Earlier: … → REM LOOKUP x]", 20},
        {"[]", 2, 0, true, "[earlier message compacted]", 5},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        json_object *notes = rv_kit_json(cases[i].notes);
        rv_buf text = RV_BUF_INIT(1000);
        ck_assert_int_eq(rv_moment_write_hint(notes, cases[i].seq, cases[i].us, cases[i].names_keys, &text),
                         cases[i].tokens);
        ck_assert_str_eq(rv_buf_cstr(&text), cases[i].want);
        rv_buf_fini(&text);
        json_object_put(notes);
    }
}
END_TEST

static void shows(const struct rv_message *rows, size_t n, const struct rv_history_opts *o, const char *notes,
                  const char *want)
{
    rv_history *h = NULL;
    json_object *messages = NULL, *told = rv_kit_json(notes);
    rv_buf text = RV_BUF_INIT(100000);
    rv_err *err = NULL;
    bool full = false;

    ck_assert_int_eq(rv_history_new("s", o, &h, &err), 0);
    for (size_t i = n; i > 0; i--) {
        struct rv_message m = rows[i - 1];
        m.seq = (int64_t)i;
        ck_assert_int_eq(rv_history_add(h, &m, &full, &err), 0);
    }
    rv_history_set_moments(h, told);
    ck_assert_int_eq(rv_history_finish(h, &messages, &err), 0);
    write_messages(messages, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
    rv_history_free(h);
    json_object_put(messages);
    json_object_put(told);
}

START_TEST(older_answers_become_hints_and_nothing_else_does)
{
    const struct rv_message rows[] = {USER("a"), ASSISTANT("b"), USER("c"), ASSISTANT("d"), USER("e"), ASSISTANT("f")};
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;

    rv_history_compact(&o, RV_COMPACTION_MOMENTS);
    o.always_last = 2;
    shows(rows, 6, &o, "[]",
          "user a\nassistant [earlier message compacted]\nuser c\nassistant [earlier message compacted]\nuser e\n"
          "assistant f\n");
    shows(rows, 6, &o, "[{'name':'n','hint':'H','text':'T','from_seq':1,'through_seq':2}]",
          "system T\nuser a\nassistant [Earlier: H… → REM LOOKUP n]\nuser c\nassistant [Earlier: H… → REM LOOKUP n]\n"
          "user e\nassistant f\n");
    o.always_last = 4; /* six are not more than four and two */
    shows(rows, 6, &o, "[]", "user a\nassistant b\nuser c\nassistant d\nuser e\nassistant f\n");
    shows(rows, 6, &o, "[{'name':'n','hint':'H','text':'T'}]",
          "system T\nuser a\nassistant [Earlier: H… → REM LOOKUP n]\nuser c\nassistant d\nuser e\nassistant f\n");
    o.always_last = INT64_MAX;
    shows(rows, 6, &o, "[]", "user a\nassistant b\nuser c\nassistant d\nuser e\nassistant f\n");
    rv_history_compact(&o, RV_COMPACTION_SHORTEN);
    shows(rows, 2, &o, "[{'name':'n','text':'T'}]", "system T\nuser a\nassistant b\n");
}
END_TEST

/* --- chunks --- */

START_TEST(a_long_summary_has_the_head_and_the_tail_of_the_answers)
{
    struct rv_chunk c;
    rv_buf text = RV_BUF_INIT(100000);
    char line[64];

    rv_chunk_init(&c);
    for (int i = 0; i < MANY; i++) {
        snprintf(line, sizeof line, "Antwort %03d \xc3\xbc", i);
        rv_chunk_add(&c, &(struct rv_message){.type = i % 2 ? "user" : "assistant",
                                              .seq = i + 1,
                                              .has_content = true,
                                              .content = rv_str_of(line),
                                              .token_count = 2,
                                              .created_us = 1000 + i});
    }
    rv_chunk_write_summary(&c, &text);
    ck_assert_uint_eq(rv_utf8_count(rv_buf_str(&text)), RV_CHUNK_MAX_SUMMARY);
    ck_assert(rv_utf8_valid(rv_buf_str(&text), NULL));
    ck_assert_int_eq(strncmp(rv_buf_cstr(&text), "Antwort 000 \xc3\xbc\nAntwort 002", 26), 0);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\n...\n"));
    ck_assert_str_eq(rv_buf_cstr(&text) + text.len - 14, "Antwort 598 \xc3\xbc");
    ck_assert_int_eq(c.tokens, 2 * MANY);
    ck_assert_int_eq(c.from_seq, 1);
    ck_assert_int_eq(c.through_seq, MANY);
    ck_assert_int_eq(c.first_us, 1000);
    ck_assert_int_eq(c.last_us, 999 + MANY);
    rv_buf_fini(&text);
    rv_chunk_fini(&c);
}
END_TEST

/* Proves p8-data.6 */
START_TEST(a_chunk_is_named_after_session_day_and_number)
{
    char name[RV_CHUNK_NAME_MAX], id[37], other[37];
    int64_t us = 0;

    ck_assert_int_eq(rv_time_parse(RV_STR_LIT("2026-01-05T23:59:59Z"), &us, NULL), 0);
    rv_chunk_make_name("11111111-2222-3333-4444-555555555555", us, 0, 6, name);
    ck_assert_str_eq(name, "session-666ff6-20260105-chunk-0");
    rv_chunk_make_id("11111111-2222-3333-4444-555555555555", 0, id);
    rv_chunk_make_id("11111111-2222-3333-4444-555555555555", 1, other);
    ck_assert_str_ne(id, other);
    rv_chunk_make_name("s", INT64_MAX, INT64_MAX, 64, name);
    ck_assert_uint_lt(strlen(name), RV_CHUNK_NAME_MAX - 1);
}
END_TEST

START_TEST(a_chunk_is_due_when_enough_is_not_covered)
{
    struct rv_memory m;
    json_object *metadata = rv_kit_json("{'_memory':{'chunks':2,'through_seq':8,'tokens':100}}");

    rv_memory_read(metadata, &m);
    ck_assert_int_eq(m.chunks, 2);
    ck_assert(rv_memory_is_due(&m, 150, 10, 50));
    ck_assert(!rv_memory_is_due(&m, 149, 10, 50));
    ck_assert(!rv_memory_is_due(&m, 500, 8, 50));
    ck_assert(rv_memory_is_due(&m, 100, 9, 0));
    json_object_put(metadata);
    metadata = rv_kit_json("{'_memory':{'chunks':'2','through_seq':-8,'tokens':1.5}}");
    rv_memory_read(metadata, &m);
    ck_assert(m.chunks == 0 && m.through_seq == 0 && m.tokens == 0);
    json_object_put(metadata);
    rv_memory_read(NULL, &m);
    ck_assert(m.chunks == 0 && m.through_seq == 0 && m.tokens == 0);
}
END_TEST

TCase *moments_case(void)
{
    TCase *tc = tcase_create("moments");

    tcase_add_loop_test(tc, a_moment_is_told_line_by_line, 0, RV_COUNT(texts));
    tcase_add_test(tc, the_newest_that_fit_are_told_oldest_first);
    tcase_add_test(tc, a_hint_names_the_chunk_that_covers);
    tcase_add_test(tc, older_answers_become_hints_and_nothing_else_does);
    tcase_add_test(tc, a_long_summary_has_the_head_and_the_tail_of_the_answers);
    tcase_add_test(tc, a_chunk_is_named_after_session_day_and_number);
    tcase_add_test(tc, a_chunk_is_due_when_enough_is_not_covered);
    return tc;
}
