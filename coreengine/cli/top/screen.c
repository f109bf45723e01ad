/* A terminal that shows a screen of lines: the other screen of the terminal, so that what was there before comes back;
 * a line is written only when it changed; keys, the size, and Ctrl-Z. Signals only set a flag, and are let through
 * while it waits, so that none is missed. */
#include "coreengine/base/base.h"
#include "coreengine/cli/show/width_internal.h"
#include "coreengine/cli/top/top_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ENTER     "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE     "\033[?7h\033[?25h\033[?1049l"
#define MAX_BYTES 64 /* of keys that are not read yet: a key sends at most a dozen */

static const int numbers[] = {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT};

struct rv_cli_screen {
    struct termios before;
    bool has_keys; /* standard input is a terminal */
    int fd;        /* the same terminal, opened once more to read keys */
    struct sigaction actions[RV_COUNT(numbers)];
    sigset_t mask; /* before */
    rv_buf shown;  /* the lines that the terminal has */
    bool is_stale; /* what it has is not known */
    char bytes[MAX_BYTES];
    size_t n_bytes;
    bool is_over; /* standard input has ended */
};

/* A handler is given nothing but a number; one screen of a process watches. */
static volatile sig_atomic_t seen_size, seen_end, seen_stop;

static void on_signal(int number)
{
    if (number == SIGWINCH || number == SIGCONT)
        seen_size = 1;
    else if (number == SIGTSTP)
        seen_stop = 1;
    else
        seen_end = number;
}

static bool write_text(const char *text)
{
    return cli_out_now(rv_str_of(text));
}

static void enter(rv_cli_screen *s)
{
    if (s->has_keys) {
        struct termios raw = s->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        RV_IGNORE(tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0, "then keys come with the return key");
    }
    s->is_stale = true;
    RV_IGNORE(!write_text(ENTER), "the first screen fails, too");
}

static void leave(const rv_cli_screen *s)
{
    RV_IGNORE(!write_text(LEAVE), "a terminal that is gone needs nothing");
    if (s->has_keys)
        RV_IGNORE(tcsetattr(STDIN_FILENO, TCSANOW, &s->before) < 0, "the same");
}

int cli_screen_open(rv_cli_screen **out, rv_err **err)
{
    struct sigaction action = {.sa_handler = on_signal};
    rv_cli_screen *s = calloc(1, sizeof *s);
    sigset_t watched;

    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "open the screen");
    s->shown = RV_BUF_INIT(RV_CLI_TOP_MAX_TEXT);
    s->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->before) == 0;
    s->is_over = !s->has_keys;
    s->fd = rv_terminal_open_reader(STDIN_FILENO);
    seen_size = seen_end = seen_stop = 0;
    sigemptyset(&watched);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        sigaddset(&watched, numbers[i]);
    RV_IGNORE(sigprocmask(SIG_BLOCK, &watched, &s->mask) < 0, "the set is valid");
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &action, &s->actions[i]) < 0, "the numbers and the action are valid");
    enter(s);
    *out = s;
    return 0;
}

void cli_screen_close(rv_cli_screen *s)
{
    if (!s)
        return;
    leave(s);
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &s->actions[i], NULL) < 0, "it was in force before");
    RV_IGNORE(sigprocmask(SIG_SETMASK, &s->mask, NULL) < 0, "the same");
    if (s->fd != STDIN_FILENO)
        close(s->fd);
    rv_buf_fini(&s->shown);
    free(s);
}

/* --- what is written --- */

static rv_str next_line(rv_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    rv_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t n = end ? line.len + 1 : line.len;

    if (n > 0)
        *rest = (rv_str){rest->ptr + n, rest->len - n};
    return line;
}

bool cli_screen_show(rv_cli_screen *s, rv_str lines)
{
    rv_str before = s->is_stale ? (rv_str){NULL, 0} : rv_buf_str(&s->shown), rest = lines;
    rv_buf out = RV_BUF_INIT(2 * RV_CLI_TOP_MAX_TEXT);
    size_t columns, rows, i = 1;

    cli_terminal_size(&columns, &rows);
    rv_buf_puts(&out, s->is_stale ? "\033[2J" : "");
    for (; rest.len > 0 && i <= rows; i++) {
        bool had = before.len > 0;
        rv_str old = next_line(&before), line = next_line(&rest);
        if (!had || !rv_str_eq(old, line)) {
            rv_buf_printf(&out, "\033[%zu;1H\033[2K", i);
            rv_buf_add_str(&out, line);
        }
    }
    if (before.len > 0)
        rv_buf_printf(&out, "\033[%zu;1H\033[J", i);
    bool whole = out.rc == 0, written = !whole || out.len == 0 || cli_out_now(rv_buf_str(&out));
    rv_buf_fini(&out);
    rv_buf_clear(&s->shown);
    rv_buf_add_str(&s->shown, lines);
    s->is_stale = !whole || s->shown.rc < 0; /* without memory the next one is written whole */
    return written;
}

/* --- what comes in --- */

/* Of "ESC [ ... letter": numbers and semicolons may stand before the letter. */
static size_t escape(rv_str b, enum rv_cli_top_key *out)
{
    size_t n = 2;

    *out = RV_CLI_TOP_TIME;
    if (b.len < 2)
        return 0;
    if (b.ptr[1] != '[' && b.ptr[1] != 'O')
        return 1;
    while (n < b.len && ((b.ptr[n] >= '0' && b.ptr[n] <= '9') || b.ptr[n] == ';'))
        n++;
    if (n == b.len)
        return n < MAX_BYTES / 2 ? 0 : n;
    switch (b.ptr[n]) {
    case 'A':
        *out = RV_CLI_TOP_UP;
        break;
    case 'B':
        *out = RV_CLI_TOP_DOWN;
        break;
    case 'H':
        *out = RV_CLI_TOP_HOME;
        break;
    case 'F':
        *out = RV_CLI_TOP_END;
        break;
    case '~':
        *out = b.ptr[2] == '5' ? RV_CLI_TOP_PAGE_UP : b.ptr[2] == '6' ? RV_CLI_TOP_PAGE_DOWN : RV_CLI_TOP_TIME;
        break;
    default: /* a key without a meaning here */
        break;
    }
    return n + 1;
}

size_t cli_screen_key(rv_str bytes, enum rv_cli_top_key *out)
{
    static const struct {
        char byte;
        enum rv_cli_top_key key;
    } keys[] = {{'q', RV_CLI_TOP_QUIT}, {'Q', RV_CLI_TOP_QUIT},    {'s', RV_CLI_TOP_SORT},   {'k', RV_CLI_TOP_UP},
                {'j', RV_CLI_TOP_DOWN}, {'r', RV_CLI_TOP_REFRESH}, {' ', RV_CLI_TOP_REFRESH}};

    *out = RV_CLI_TOP_TIME;
    if (bytes.len == 0)
        return 0;
    if (bytes.ptr[0] == '\033')
        return escape(bytes, out);
    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (keys[i].byte == bytes.ptr[0])
            *out = keys[i].key;
    return 1;
}

/* The next key with a meaning among the bytes at hand. */
static enum rv_cli_top_key take_key(rv_cli_screen *s)
{
    enum rv_cli_top_key key = RV_CLI_TOP_TIME;
    size_t n;

    while (key == RV_CLI_TOP_TIME && (n = cli_screen_key((rv_str){s->bytes, s->n_bytes}, &key)) > 0) {
        memmove(s->bytes, s->bytes + n, s->n_bytes - n);
        s->n_bytes -= n;
    }
    return key;
}

/* Ctrl-Z: the terminal is the shell's until it continues this process. */
static void stop(rv_cli_screen *s)
{
    seen_stop = 0;
    leave(s);
    RV_IGNORE(raise(SIGSTOP) != 0, "then it goes on at once");
    enter(s);
}

static bool take_signal(rv_cli_screen *s, enum rv_cli_top_key *out)
{
    if (seen_stop) {
        stop(s);
        seen_size = 1;
    }
    if (seen_end) {
        *out = seen_end == SIGINT ? RV_CLI_TOP_QUIT : RV_CLI_TOP_TERMINATED;
        return true;
    }
    if (!seen_size)
        return false;
    seen_size = 0;
    s->is_stale = true;
    *out = RV_CLI_TOP_SIZE;
    return true;
}

static void read_bytes(rv_cli_screen *s)
{
    ssize_t n = read(s->fd, s->bytes + s->n_bytes, sizeof s->bytes - s->n_bytes);

    if (n > 0)
        s->n_bytes += (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        s->is_over = true;
}

enum rv_cli_top_key cli_screen_wait(rv_cli_screen *s, int64_t timeout_ms)
{
    struct clock {
        int64_t until_us;
    } c = {rv_app_now_us() + timeout_ms * RV_US_PER_MS};
    enum rv_cli_top_key key;

    for (;;) {
        struct pollfd in = {.fd = s->is_over ? -1 : s->fd, .events = POLLIN};
        int64_t left_us = c.until_us - rv_app_now_us();
        struct timespec left = {.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};
        if (take_signal(s, &key) || (key = take_key(s)) != RV_CLI_TOP_TIME)
            return key;
        if (left_us <= 0)
            return RV_CLI_TOP_TIME;
        if (ppoll(&in, 1, &left, &s->mask) > 0)
            read_bytes(s);
    }
}
