/* The line that a person writes at a terminal: editing, earlier lines, completion, and pastes of several lines, by
 * libedit. libedit is given characters, not bytes, and writes them by the locale of this thread while a line is read,
 * UTF-8 whatever the environment says: a line is the same text on every machine. Ctrl-C and Ctrl-Z stay signals. */
#include "coreengine/cli/chat/chat_internal.h"

#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define MAX_LISTED   200                /* candidates that are listed: a few screens */
#define MAX_PASTE    ((size_t)1 << 20)  /* bytes of one paste: libedit draws the whole line again at each key */
#define MAX_WORDS    ((size_t)64 << 10) /* bytes of the line that is completed: paths of PATH_MAX fit */
#define REPLACEMENT  0xFFFD             /* for bytes that are not UTF-8 */
#define PASTE_BEGINS "\033[?2004h"
#define PASTE_ENDS   "\033[?2004l"

struct rv_chat_edit {
    EditLine *el;
    HistoryW *past;
    locale_t utf8;
    struct rv_cli_chat *chat;    /* borrowed; whose commands are completed */
    struct rv_chat_lines *lines; /* borrowed; where bytes come from, during a line */
    rv_buf line;                 /* the last one */
    bool is_change;              /* of a text that is there, not a message */
    rv_err *err;                 /* why reading ended, with rc; NULL: at the end of the input; owned */
    int rc;
};

/* A handler is given nothing but a number; one chat of a process edits. */
static volatile sig_atomic_t screen_changed;

static void on_screen(int number)
{
    (void)number;
    screen_changed = 1;
}

/* --- characters in --- */

static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

static wchar_t decode(const char *p, size_t len)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)p[0] & masks[len];

    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3F);
    return (wchar_t)c;
}

static void encode(wchar_t c, rv_buf *out)
{
    uint32_t u = (uint32_t)c;

    if (u < 0x80) {
        rv_buf_putc(out, (char)u);
    } else {
        size_t more = u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
        static const unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0};
        rv_buf_putc(out, (char)(heads[more] | u >> (6 * more)));
        while (more-- > 0)
            rv_buf_putc(out, (char)(0x80 | (u >> (6 * more) & 0x3F)));
    }
}

static wchar_t *wide_of(rv_str text)
{
    wchar_t *out = calloc(text.len + 1, sizeof *out);
    size_t n = 0;

    for (size_t i = 0, len; out && i < text.len; i += len) {
        len = length_of((unsigned char)text.ptr[i]);
        bool whole = len > 0 && i + len <= text.len && rv_utf8_valid((rv_str){text.ptr + i, len}, NULL);
        len = whole ? len : 1;
        out[n++] = whole ? decode(text.ptr + i, len) : REPLACEMENT;
    }
    return out;
}

static rv_chat_edit *self_of(EditLine *el)
{
    void *self = NULL;

    RV_IGNORE(el_wget(el, EL_CLIENTDATA, &self) < 0, "it was set");
    return self;
}

/* libedit draws by the size that it knows, and after a stop the terminal is the shell's. */
static void follow_screen(rv_chat_edit *e)
{
    if (!screen_changed)
        return;
    screen_changed = 0;
    el_resize(e->el);
    RV_IGNORE(el_wset(e->el, EL_PREP_TERM, 1) < 0, "a line on a terminal that is gone ends by itself");
    RV_IGNORE(el_wset(e->el, EL_REFRESH) < 0, "the next key draws it");
}

/* 1: a byte, 0: the end, -1: why stands in e. */
static int read_byte(rv_chat_edit *e, char *out)
{
    for (;;) {
        follow_screen(e);
        e->rc = cli_chat_lines_byte(e->lines, out, &e->err);
        if (e->rc != RV_CHAT_AGAIN)
            return e->rc < 0 ? -1 : e->rc;
    }
}

static int read_char(EditLine *el, wchar_t *out)
{
    rv_chat_edit *e = self_of(el);
    char bytes[4];
    int rc = read_byte(e, &bytes[0]);

    if (rc <= 0)
        return rc;
    size_t len = length_of((unsigned char)bytes[0]);
    for (size_t i = 1; i < len; i++) {
        rc = read_byte(e, &bytes[i]);
        if (rc <= 0)
            return rc;
    }
    *out = len > 0 && rv_utf8_valid((rv_str){bytes, len}, NULL) ? decode(bytes, len) : REPLACEMENT;
    return 1;
}

/* --- keys --- */

static unsigned char new_line(EditLine *el, int key)
{
    (void)key;
    return el_winsertstr(el, L"\n") < 0 ? CC_ERROR : CC_REFRESH;
}

/* libedit's own function shows "^D" before it ends the line. */
static unsigned char end_or_delete(EditLine *el, int key)
{
    const LineInfoW *line = el_wline(el);

    (void)key;
    if (line->buffer == line->lastchar)
        return CC_EOF;
    if (line->cursor == line->lastchar)
        return CC_ERROR;
    el_cursor(el, 1);
    el_deletestr(el, 1);
    return CC_REFRESH;
}

/* What terminals send between their marks; a line end stays in the text, other control characters do not come in. */
static unsigned char paste(EditLine *el, int key)
{
    static const char end[] = "\033[201~";
    rv_chat_edit *e = self_of(el);
    rv_buf text = RV_BUF_INIT(MAX_PASTE);
    size_t matched = 0;
    bool is_over = false;
    char byte;

    (void)key;
    while (!is_over && read_byte(e, &byte) > 0) {
        if (byte == end[matched]) {
            is_over = ++matched == sizeof end - 1;
            continue;
        }
        if (matched > 1) /* it was another sequence: its text without the escape */
            rv_buf_add(&text, end + 1, matched - 1);
        matched = byte == end[0];
        if (matched > 0)
            continue;
        if (byte == '\r')
            byte = '\n';
        if ((unsigned char)byte >= ' ' || byte == '\n' || byte == '\t')
            rv_buf_putc(&text, byte);
    }
    rv_str clean = rv_buf_str(&text);
    while (clean.len > 0 && clean.ptr[clean.len - 1] == '\n')
        clean.len--;
    wchar_t *wide = wide_of(clean);
    bool fits = wide && text.rc == 0 && el_winsertstr(el, wide) == 0;
    free(wide);
    rv_buf_fini(&text);
    return !is_over ? CC_EOF : fits || clean.len == 0 ? CC_REFRESH : CC_REFRESH_BEEP;
}

/* --- completion --- */

struct found {
    rv_buf words; /* each with a newline behind it */
    size_t n, n_common;
};

static void take(void *self, rv_str word)
{
    struct found *f = self;
    const char *first = rv_buf_cstr(&f->words);
    size_t same = 0;

    if (f->n == 0) {
        f->n_common = word.len;
    } else {
        while (same < f->n_common && same < word.len && first[same] == word.ptr[same])
            same++;
        f->n_common = same;
    }
    rv_buf_add_str(&f->words, word);
    rv_buf_putc(&f->words, '\n');
    f->n++;
}

static void list(const struct found *f)
{
    const char *at = rv_buf_cstr(&f->words);
    rv_buf text = RV_BUF_INIT(MAX_WORDS);

    for (size_t i = 0; i < f->n && i < MAX_LISTED; i++) {
        size_t len = strcspn(at, "\n");
        rv_buf_puts(&text, "\n  ");
        cli_write_safe((rv_str){at, len}, &text);
        at += len + 1;
    }
    rv_buf_putc(&text, '\n');
    RV_IGNORE(!cli_out_now(rv_buf_str(&text)), "a write that failed is told at the end");
    rv_buf_fini(&text);
}

static bool insert(EditLine *el, rv_str text, bool is_whole)
{
    wchar_t *wide = wide_of(text);
    bool ok = wide && el_winsertstr(el, wide) == 0 && (!is_whole || el_winsertstr(el, L" ") == 0);

    free(wide);
    return ok;
}

static unsigned char complete(EditLine *el, int key)
{
    rv_chat_edit *e = self_of(el);
    const LineInfoW *line = el_wline(el);
    struct found f = {.words = RV_BUF_INIT(MAX_WORDS)};
    rv_buf before = RV_BUF_INIT(MAX_PASTE);
    unsigned char what = CC_ERROR;

    (void)key;
    for (const wchar_t *p = line->buffer; p < line->cursor; p++)
        encode(*p, &before);
    size_t had = cli_chat_complete(e->chat, rv_buf_str(&before), take, &f); /* bytes of the word that are there */
    if (f.words.rc < 0 || f.n == 0) {
        what = CC_ERROR;
    } else if (f.n == 1 || f.n_common > had) {
        rv_str common = rv_utf8_cut(rv_buf_str(&f.words), f.n_common);
        rv_str rest = {common.ptr + had, common.len > had ? common.len - had : 0};
        bool is_whole = f.n == 1 && (common.len == 0 || common.ptr[common.len - 1] != '/'); /* a folder goes on */
        what = insert(el, rest, is_whole) ? CC_REFRESH : CC_ERROR;
    } else {
        list(&f);
        what = CC_REDISPLAY;
    }
    rv_buf_fini(&before);
    rv_buf_fini(&f.words);
    return what;
}

/* --- a line --- */

static wchar_t *prompt(EditLine *el)
{
    static wchar_t message[] = L"you> ", arguments[] = L"arguments> ";

    return self_of(el)->is_change ? arguments : message;
}

static void bind_keys(EditLine *el)
{
    static const struct {
        const char *key, *what;
    } keys[] = {
        {"\\e[200~", "reeve-paste"},   {"\t", "reeve-complete"},
        {"\\e\n", "reeve-newline"},    {"\\e\r", "reeve-newline"},
        {"^D", "reeve-end"},           {"^R", "em-inc-search-prev"},
        {"^W", "ed-delete-prev-word"}, {"\\e[3~", "ed-delete-next-char"},
        {"\\e[H", "ed-move-to-beg"},   {"\\e[F", "ed-move-to-end"},
        {"\\e[1~", "ed-move-to-beg"},  {"\\e[4~", "ed-move-to-end"},
        {"\\e[1;5D", "ed-prev-word"},  {"\\e[1;5C", "em-next-word"},
    };

    RV_IGNORE(el_set(el, EL_EDITOR, "emacs") < 0, "it is the default");
    for (size_t i = 0; i < RV_COUNT(keys); i++)
        RV_IGNORE(el_set(el, EL_BIND, keys[i].key, keys[i].what, NULL) < 0, "that key stays without its function");
}

/* A terminal without that is one that libedit does not know, and says so. */
static bool can_move(EditLine *el)
{
    char *up = NULL;

    return el_get(el, EL_GETTC, "up", &up) == 0 && up && up[0];
}

static bool set_up(rv_chat_edit *e)
{
    HistEventW event;

    e->el = el_init("reeve", stdin, stdout, stderr);
    e->past = e->el && can_move(e->el) ? history_winit() : NULL;
    if (!e->past)
        return false;
    RV_IGNORE(history_w(e->past, &event, H_SETSIZE, RV_CHAT_MAX_PAST) < 0, "a shorter one is as good");
    bool ok = el_wset(e->el, EL_CLIENTDATA, e) == 0 && el_wset(e->el, EL_GETCFN, read_char) == 0 &&
              el_wset(e->el, EL_PROMPT, prompt) == 0 && el_wset(e->el, EL_HIST, history_w, e->past) == 0 &&
              el_wset(e->el, EL_SIGNAL, 0) == 0 &&
              el_wset(e->el, EL_ADDFN, L"reeve-paste", L"take a paste", paste) == 0 &&
              el_wset(e->el, EL_ADDFN, L"reeve-complete", L"complete a command", complete) == 0 &&
              el_wset(e->el, EL_ADDFN, L"reeve-end", L"delete a character, or end", end_or_delete) == 0 &&
              el_wset(e->el, EL_ADDFN, L"reeve-newline", L"go on in a new line", new_line) == 0;
    if (ok) {
        bind_keys(e->el);
        RV_IGNORE(el_source(e->el, NULL) < 0, "most people have no ~/.editrc");
    }
    return ok;
}

bool cli_chat_edit_fits(const struct rv_cli *cli)
{
    const char *term = getenv("TERM");

    return cli->out_tty && isatty(STDIN_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

rv_chat_edit *cli_chat_edit_new(struct rv_cli_chat *chat)
{
    rv_chat_edit *e = calloc(1, sizeof *e);
    struct sigaction action = {.sa_handler = on_screen};

    if (!e)
        return NULL;
    e->chat = chat;
    e->line = RV_BUF_INIT(RV_CLI_MAX_MESSAGE);
    e->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = e->utf8 ? uselocale(e->utf8) : (locale_t)0;
    bool ok = e->utf8 && set_up(e);
    if (e->utf8)
        uselocale(before);
    if (!ok) {
        cli_chat_edit_free(e);
        return NULL;
    }
    sigemptyset(&action.sa_mask);
    RV_IGNORE(sigaction(SIGWINCH, &action, NULL), "the number and the action are valid");
    RV_IGNORE(sigaction(SIGCONT, &action, NULL), "the number and the action are valid");
    return e;
}

void cli_chat_edit_free(rv_chat_edit *e)
{
    if (!e)
        return;
    if (e->el) {
        signal(SIGWINCH, SIG_DFL);
        signal(SIGCONT, SIG_DFL);
        el_end(e->el);
    }
    if (e->past)
        history_wend(e->past);
    if (e->utf8)
        freelocale(e->utf8);
    rv_err_free(e->err);
    rv_buf_fini(&e->line);
    free(e);
}

void cli_chat_edit_remember(rv_chat_edit *e, rv_str line)
{
    wchar_t *wide = wide_of(line);
    HistEventW event;

    if (wide)
        RV_IGNORE(history_w(e->past, &event, H_ENTER, wide) < 0, "a line that is not found again");
    free(wide);
}

int cli_chat_edit_line(rv_chat_edit *e, struct rv_chat_lines *lines, rv_str there, rv_str *out, rv_err **err)
{
    locale_t before = uselocale(e->utf8);
    wchar_t *typed = wide_of(there);
    int n = 0;

    e->is_change = there.len > 0;
    e->lines = lines;
    e->rc = 0;
    rv_buf_clear(&e->line);
    screen_changed = 0;
    el_resize(e->el);
    /* by itself libedit shows the prompt first: what is typed in between would be shown twice */
    RV_IGNORE(el_wset(e->el, EL_PREP_TERM, 1) < 0, "a line on a terminal that is gone ends by itself");
    cli_out(RV_STR_LIT(PASTE_BEGINS));
    if (typed && typed[0])
        el_wpush(e->el, typed); /* as if it was typed */
    const wchar_t *text = el_wgets(e->el, &n);
    RV_IGNORE(!cli_out_now(RV_STR_LIT(PASTE_ENDS)), "a write that failed is told at the end");
    uselocale(before);
    free(typed);
    e->lines = NULL;
    if (!text || n <= 0) {
        rv_err_pass(err, e->err);
        e->err = NULL;
        return e->rc < 0 ? e->rc : 0;
    }
    for (int i = 0; i < n && (i < n - 1 || text[i] != L'\n'); i++)
        encode(text[i], &e->line);
    int rc = rv_buf_check(&e->line, "a message", err);
    if (rc < 0)
        return rc;
    *out = rv_buf_str(&e->line);
    return 1;
}
