/* Every allocation of the table of usage, and of who is heard in a chat, fails once: no crash, no leak, never a table
 * with holes, never a word too few. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/cli/cli.h"
#include "coreengine/cli/markdown/markdown_internal.h"
#include "coreengine/cli/top/top_internal.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static struct rv_agent stages[] = {{.name = "plan"}, {.name = "write"}};
static const struct rv_pipeline pipeline = {.agents = stages, .n_agents = RV_COUNT(stages)};

/* Gives the code of the writing; without memory for the tally itself there is no table. */
static int tally(rv_buf *out)
{
    const struct rv_app_spent spent = {
        .is_told = true,
        .usage = {.calls = 1, .input_tokens = 1000, .output_tokens = 7, .cost_micro_usd = 12},
        .latency_ms = 20,
        .first_ms = 5,
    };
    rv_cli_tally *t = cli_tally_new(&pipeline);

    cli_tally_add(t, 0, &spent);
    cli_tally_add(t, 1, &spent);
    cli_tally_write(t, NULL, false, out);
    cli_tally_free(t);
    return t ? out->rc : RV_E_NOMEM;
}

START_TEST(a_table_is_whole_or_says_that_it_is_not)
{
    rv_buf whole = RV_BUF_INIT(1 << 16);
    size_t n;

    ck_assert_int_eq(tally(&whole), 0);
    for (n = 0;; n++) {
        rv_buf text = RV_BUF_INIT(1 << 16);
        rv_fault_arm(n);
        int rc = tally(&text);
        bool is_whole = rc == 0 && strcmp(rv_buf_cstr(&text), rv_buf_cstr(&whole)) == 0;
        rv_buf_fini(&text);
        bool fired = rv_fault_disarm();
        ck_assert_int_eq(rv_fault_balance(), 0);
        ck_assert(is_whole == !fired);
        ck_assert_int_eq(rc, fired ? RV_E_NOMEM : 0);
        if (!fired)
            break;
    }
    ck_assert(n > 5 || !rv_fault_works());
    rv_buf_fini(&whole);
}
END_TEST

static void write_words(const struct rv_chat_shown *shown, rv_buf *out)
{
    for (size_t i = 0; shown->is_shown && i < shown->text.len; i++)
        if (shown->text.ptr[i] != ' ')
            rv_buf_putc(out, shown->text.ptr[i]);
}

/* Nine agents are asked in a row and nine at once, so that the lists grow; then the asking one speaks on. */
static void chat(int child_text, rv_buf *out)
{
    struct rv_origin asked[18];
    const struct rv_origin *who;
    struct rv_chat_shown shown;
    struct rv_chat_sink s;

    rv_chat_sink_init(&s);
    rv_chat_sink_on_turn(&s);
    rv_chat_sink_on_ask(&s, &(struct rv_chat_speaker){.child_text = child_text});
    for (size_t i = 0; i < RV_COUNT(asked); i++) {
        asked[i] = (struct rv_origin){.agent = "asked", .depth = 1};
        rv_chat_sink_on_ask(&s, &(struct rv_chat_speaker){.who = &asked[i], .child_text = child_text});
        for (int piece = 0; piece < 3; piece++) {
            shown = rv_chat_sink_on_piece(&s, &asked[i], (int64_t)i + 2, RV_STR_LIT("w "));
            write_words(&shown, out);
        }
        if (i < RV_COUNT(asked) / 2) {
            rv_chat_sink_on_reply(&s, &asked[i], false);
            rv_chat_sink_on_done(&s, &asked[i], false);
        }
    }
    rv_chat_sink_on_end(&s);
    while (rv_chat_sink_next(&s, &who, &shown))
        write_words(&shown, out);
    for (int piece = 0; piece < 3; piece++) { /* it repeats them, or is not heard */
        shown = rv_chat_sink_on_piece(&s, NULL, 99, RV_STR_LIT("w "));
        write_words(&shown, out);
    }
    rv_chat_sink_on_end(&s);
    while (rv_chat_sink_next(&s, &who, &shown))
        write_words(&shown, out);
    rv_chat_sink_fini(&s);
}

START_TEST(no_word_is_lost_for_want_of_memory)
{
    char text[128];
    size_t n;

    for (n = 0;; n++) {
        rv_buf out = RV_BUF_INIT(sizeof text);
        for (size_t i = 0; i + 1 < sizeof text; i++) /* its memory is there before anything fails */
            rv_buf_putc(&out, ' ');
        rv_buf_clear(&out);
        rv_fault_arm(n);
        chat(_i ? RV_CHILD_TEXT_FINAL : RV_CHILD_TEXT_CHILD, &out);
        bool fired = rv_fault_disarm();
        snprintf(text, sizeof text, "%s", rv_buf_cstr(&out));
        rv_buf_fini(&out);
        ck_assert_int_eq(rv_fault_balance(), 0);
        ck_assert_msg(strspn(text, "w") >= 54, "\"%s\"", text);
        ck_assert(fired || strlen(text) == 54);
        if (!fired)
            break;
    }
    ck_assert(n > 2 || !rv_fault_works());
}
END_TEST

/* --- Markdown --- */

static const char document[] =
    "# Title\n**bold** `code` [a](b) *open\n```c\nx\n```\n| a | b |\n|---|--:|\n| a long cell "
    "that is wide | 1 |\n| **c** | d |\n> quote\n- item\n";

static int write_document(bool styled, rv_buf *out)
{
    rv_cli_md *md = cli_md_new(styled, 30);

    if (!md)
        return RV_E_NOMEM;
    cli_md_behind(md);
    for (size_t i = 0; i + 1 < sizeof document; i += 5)
        cli_md_add(md, (rv_str){document + i, i + 5 < sizeof document - 1 ? 5 : sizeof document - 1 - i}, out);
    cli_md_flush(md, out);
    cli_md_free(md);
    return 0;
}

/* Without memory a text loses its look, never a word, and never gets a control sequence of its own. */
START_TEST(no_word_of_a_document_is_lost_for_want_of_memory)
{
    static const char *const words[] = {"Title", "bold", "code", "open", "x",     "a",   "long",
                                        "wide",  "1",    "c",    "d",    "quote", "item"};
    static char text[1 << 14];
    size_t n;

    for (n = 0;; n++) {
        rv_buf out = RV_BUF_INIT(sizeof text);
        while (out.len + 1 < sizeof text) /* its memory is there before anything fails */
            rv_buf_putc(&out, ' ');
        rv_buf_clear(&out);
        rv_fault_arm(n);
        int rc = write_document(_i == 1, &out);
        bool fired = rv_fault_disarm();
        snprintf(text, sizeof text, "%s", rv_buf_cstr(&out));
        rv_buf_fini(&out);
        ck_assert_int_eq(rv_fault_balance(), 0);
        for (size_t i = 0; rc == 0 && i < RV_COUNT(words); i++)
            ck_assert_msg(strstr(text, words[i]) != NULL, "allocation %zu: %s is lost: %s", n, words[i], text);
        if (!fired)
            break;
    }
    ck_assert(n > 5 || !rv_fault_works());
}
END_TEST

/* --- a screen: the test keeps what is written --- */

static char screen_bytes[1 << 16];
static size_t n_screen;

bool cli_out_now(rv_str text)
{
    if (n_screen + text.len > sizeof screen_bytes)
        return false;
    memcpy(screen_bytes + n_screen, text.ptr, text.len);
    n_screen += text.len;
    return true;
}

static const struct rv_app_top_row row = {.id = "env_1",
                                          .pipeline = "p",
                                          .stage = "s",
                                          .status = RV_RUN_RUNNING,
                                          .waits = RV_APP_TOP_TOOL,
                                          .name = "search",
                                          .text = "",
                                          .n = 1,
                                          .is_read = true};

/* Gives the code of drawing; the second screen has one line that differs. */
static int draw_twice(void)
{
    const struct rv_app_top_snapshot looks[] = {{.now_us = 1, .rows = &row, .n = 1}, {.now_us = 9000000, .rows = &row}};
    rv_cli_screen *screen = NULL;
    rv_err *err = NULL;
    int rc = cli_screen_open(&screen, &err);

    for (size_t i = 0; rc == 0 && i < RV_COUNT(looks); i++) {
        struct rv_cli_top_view view = {.columns = 80, .rows = 24};
        rv_buf text = RV_BUF_INIT(RV_CLI_TOP_MAX_TEXT);
        cli_top_draw(&looks[i], &view, &text);
        rc = text.rc;
        if (rc == 0)
            RV_IGNORE(!cli_screen_show(screen, rv_buf_str(&text)), "looked at below");
        rv_buf_fini(&text);
    }
    cli_screen_close(screen);
    rv_err_free(err);
    return rc;
}

START_TEST(a_screen_is_drawn_or_fails)
{
    size_t n;

    for (n = 0;; n++) {
        n_screen = 0;
        rv_fault_arm(n);
        int rc = draw_twice();
        bool fired = rv_fault_disarm();
        ck_assert_int_eq(rv_fault_balance(), 0);
        ck_assert_msg(rc == 0 || (fired && rc == RV_E_NOMEM), "allocation %zu: %d", n, rc);
        if (!fired)
            break;
    }
    ck_assert(n > 5 || !rv_fault_works());
    ck_assert_ptr_nonnull(memmem(screen_bytes, n_screen, "search", 6));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_cli");
    TCase *c = tcase_create("loops");

    tcase_add_test(c, a_table_is_whole_or_says_that_it_is_not);
    tcase_add_loop_test(c, no_word_is_lost_for_want_of_memory, 0, 2);
    tcase_add_loop_test(c, no_word_of_a_document_is_lost_for_want_of_memory, 0, 2);
    tcase_add_test(c, a_screen_is_drawn_or_fails);
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
