/* What is recorded while a script is played is a script that plays the same: for scripts made by chance. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/cli/play.h"
#include "tests/unit/cli/suites.h"

#define N_SEEDS 300

static struct rv_rand_state state;
static struct rv_rand chance;

static uint64_t below(uint64_t n)
{
    return rv_rand_below(chance, n);
}

static bool one_in(uint64_t n)
{
    return below(n) == 0;
}

/* Texts that JSON and YAML read in different ways, or that look like something else. */
static void add_text(rv_buf *out)
{
    static const char *const parts[] = {
        "a",    "word ", "\"",       "\\",           "\n",           "\t",       "{",  "}",  ": ", "#",
        "- ",   "'",     "\xc2\x85", "\xe2\x80\xa8", "\xef\xbb\xbf", "\xc2\xa0", "é",  "漢", "😀",  "\x7f",
        "\x01", "1.50",  "null",     "yes",          "{\"a\":1}",    "<<",       "&x", "*y", "~",  "\xef\xbf\xbf",
    };

    for (uint64_t n = below(5); n > 0; n--)
        rv_buf_puts(out, parts[below(RV_COUNT(parts))]);
}

static void write_text(rv_jw *w)
{
    rv_buf text = RV_BUF_INIT(4096);

    add_text(&text);
    rv_jw_str(w, rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void write_value(rv_jw *w, int depth);

static void write_object(rv_jw *w, int depth)
{
    static const char *const keys[] = {"a", "b c", "<<", "yes", "", "text", "é", "1", "?", "- x"};
    uint64_t from = below(RV_COUNT(keys));

    rv_jw_obj(w);
    for (uint64_t n = below(4); n > 0; n--) {
        rv_jw_key(w, keys[(from + n) % RV_COUNT(keys)]);
        write_value(w, depth + 1);
    }
    rv_jw_obj_end(w);
}

static void write_value(rv_jw *w, int depth)
{
    static const char *const numbers[] = {"0",  "-0",  "1.50", "1e5",  "1E+2", "9223372036854775807",
                                          "-3", "2.0", "1e-9", "0.10", "-0.0", "12345678901234567"};

    switch (below(depth > 4 ? 5 : 7)) {
    case 0:
        rv_jw_null(w);
        break;
    case 1:
        rv_jw_bool(w, one_in(2));
        break;
    case 2:
    case 3:
        rv_jw_raw(w, rv_str_of(numbers[below(RV_COUNT(numbers))]));
        break;
    case 4:
        write_text(w);
        break;
    case 5:
        rv_jw_arr(w);
        for (uint64_t n = below(3); n > 0; n--)
            write_value(w, depth + 1);
        rv_jw_arr_end(w);
        break;
    default:
        write_object(w, depth);
        break;
    }
}

/* As a text: an object, an object with blanks, or no JSON. */
static void write_json_text(rv_jw *w)
{
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_jw inner = rv_jw_on(&text);

    if (one_in(3))
        rv_buf_puts(&text, one_in(2) ? " " : "");
    write_object(&inner, 2);
    if (one_in(4))
        add_text(&text);
    rv_jw_str(w, rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void write_delay(rv_jw *w)
{
    if (one_in(2))
        rv_jw_kv_int(w, "delay_ms", (int64_t)below(3000));
}

static void write_chunks(rv_jw *w)
{
    rv_jw_key(w, "chunks");
    rv_jw_arr(w);
    for (uint64_t n = below(6); n > 0; n--) {
        if (one_in(3)) {
            write_text(w);
            continue;
        }
        rv_jw_obj(w);
        if (!one_in(5)) {
            rv_jw_key(w, one_in(3) ? "thinking" : "text");
            write_text(w);
        }
        write_delay(w);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_reply(rv_jw *w, bool may_be_json)
{
    switch (below(may_be_json ? 4 : 2)) {
    case 0:
        write_chunks(w);
        break;
    case 1:
        rv_jw_key(w, "text");
        write_text(w);
        break;
    case 2:
        rv_jw_key(w, "text");
        write_json_text(w);
        break;
    default:
        rv_jw_key(w, "json");
        write_value(w, 2);
        break;
    }
}

static void write_calls(rv_jw *w)
{
    rv_jw_key(w, "tool_calls");
    rv_jw_arr(w);
    for (uint64_t n = below(3) + 1; n > 0; n--) {
        rv_jw_obj(w);
        if (one_in(2)) {
            char id[RV_ID_MAX];
            rv_id_make(chance, "", id);
            rv_jw_kv_text(w, "id", id);
        }
        rv_jw_key(w, "name");
        write_text(w);
        if (!one_in(4))
            rv_jw_key(w, "arguments");
        else
            goto end;
        if (one_in(2))
            write_object(w, 2);
        else
            write_json_text(w);
    end:
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_usage(rv_jw *w)
{
    static const char *const keys[] = {"input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
                                       "reasoning_tokens"};

    rv_jw_key(w, "usage");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (one_in(2))
            rv_jw_kv_int(w, keys[i], (int64_t)below(5000));
    rv_jw_obj_end(w);
}

static void write_error(rv_jw *w)
{
    rv_jw_key(w, "error");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_llm_error_text((enum rv_llm_error)below(RV_N_LLM_ERROR)));
    if (one_in(2)) {
        rv_jw_key(w, "message");
        write_text(w);
    }
    if (one_in(3))
        rv_jw_kv_int(w, "status", 100 + (int64_t)below(500));
    if (one_in(3))
        rv_jw_kv_int(w, "retry_after_ms", (int64_t)below(90000));
    if (one_in(3))
        rv_jw_kv_bool(w, "retryable", one_in(2));
    if (one_in(3))
        rv_jw_kv_bool(w, "billed", one_in(2));
    rv_jw_obj_end(w);
}

static void write_finish(rv_jw *w)
{
    uint64_t n = below(RV_N_FINISH + 1);

    rv_jw_kv_text(w, "finish_reason", n == RV_N_FINISH ? NULL : rv_finish_reason_text((enum rv_finish_reason)n));
}

static void write_model(rv_jw *w)
{
    bool fails = one_in(4), calls = !fails && one_in(3);

    rv_jw_obj(w);
    if (calls)
        write_calls(w);
    if (!fails && (!calls || one_in(2)))
        write_reply(w, true);
    else if (fails && one_in(2))
        write_reply(w, false);
    if (fails)
        write_error(w);
    write_delay(w);
    if (one_in(2))
        write_usage(w);
    if (one_in(3))
        write_finish(w);
    if (one_in(4)) {
        rv_jw_key(w, "opaque");
        write_object(w, 2);
    }
    if (one_in(5))
        rv_jw_kv_text(w, "answered_by", "other");
    if (one_in(5))
        rv_jw_kv_int(w, "attempts", 1 + (int64_t)below(4));
    rv_jw_obj_end(w);
}

static void write_tool(rv_jw *w)
{
    rv_jw_obj(w);
    write_delay(w);
    rv_jw_key(w, one_in(2) ? "result" : "error");
    if (w->out->ptr[w->out->len - 3] == 't') {
        write_object(w, 2);
    } else {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "type", "NotFoundError");
        rv_jw_kv_text(w, "message", "gone");
        rv_jw_kv_bool(w, "recoverable", one_in(2));
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_list(rv_jw *w, const char *name, void (*entry)(rv_jw *w))
{
    rv_jw_key(w, name);
    rv_jw_arr(w);
    for (uint64_t n = below(4) + 1; n > 0; n--)
        entry(w);
    rv_jw_arr_end(w);
}

static void write_script(rv_buf *out)
{
    rv_buf json = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&json);

    rv_jw_obj(&w);
    rv_jw_key(&w, "models");
    rv_jw_obj(&w);
    write_list(&w, "a", write_model);
    write_list(&w, "b", write_model);
    rv_jw_obj_end(&w);
    rv_jw_key(&w, "tools");
    rv_jw_obj(&w);
    write_list(&w, "t", write_tool);
    rv_jw_obj_end(&w);
    rv_jw_kv_bool(&w, "repeat", false);
    rv_jw_obj_end(&w);
    ck_assert_int_eq(json.rc, 0);
    rv_script_add_json(rv_buf_str(&json), out);
    rv_buf_fini(&json);
}

/* Plays the script, and what is then recorded. The recording goes to *again; free() it. */
static void compare_with_recording(rv_str text, char **again)
{
    rv_buf played = RV_BUF_INIT(8 << 20), replayed = RV_BUF_INIT(8 << 20);
    rv_recorder *r = rv_recorder_new();
    rv_script *s = play_script(text);

    play(s, r, (int64_t)below(1000), &played);
    rv_script_free(s);
    *again = play_recording(r);
    rv_recorder_free(r);
    s = play_script(rv_str_of(*again));
    play(s, NULL, 0, &replayed);
    rv_script_free(s);
    ck_assert_msg(rv_str_eq(rv_buf_str(&played), rv_buf_str(&replayed)),
                  "script:\n%.*s\nrecording:\n%.900s\n%.900s\n%.900s", RV_STR_ARG(rv_utf8_cut(text, 900)), *again,
                  rv_buf_cstr(&played), rv_buf_cstr(&replayed));
    rv_buf_fini(&played);
    rv_buf_fini(&replayed);
}

START_TEST(a_recording_plays_what_was_played)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    char *first, *second;

    chance = rv_rand_seeded(&state, (uint64_t)_i);
    write_script(&text);
    compare_with_recording(rv_buf_str(&text), &first);
    compare_with_recording(rv_str_of(first), &second);
    ck_assert_str_eq(first, second); /* a recording of a recording is the same file */
    free(first);
    free(second);
    rv_buf_fini(&text);
}
END_TEST

Suite *record_property_suite(void)
{
    Suite *suite = suite_create("record property");
    TCase *tc = tcase_create("record property");

    tcase_add_loop_test(tc, a_recording_plays_what_was_played, 0, N_SEEDS);
    suite_add_tcase(suite, tc);
    return suite;
}
