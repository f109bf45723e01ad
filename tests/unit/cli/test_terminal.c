/* Ctrl-C behind other keys: the terminal throws them away after poll() saw them, and read() finds nothing. This
 * program's poll() and ppoll() let that happen each time; its read() tells where one would have waited for good. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/top/top_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static bool is_armed; /* the next poll() that sees a key is followed by Ctrl-C */
static bool would_wait;

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    struct timespec left = timeout ? *timeout : (struct timespec){0};
    int rc = (int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, _NSIG / 8);

    if (rc > 0 && is_armed) {
        is_armed = false;
        tcflush(STDIN_FILENO, TCIFLUSH);
        raise(SIGINT);
    }
    return rc;
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

    return ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, NULL);
}

ssize_t read(int fd, void *out, size_t n)
{
    int there = 0;

    if (isatty(fd) && !(fcntl(fd, F_GETFL) & O_NONBLOCK) && ioctl(fd, FIONREAD, &there) == 0 && there == 0) {
        would_wait = true;
        return 0;
    }
    return syscall(SYS_read, fd, out, n);
}

/* A terminal that is this program's standard input, with a key or a line typed. */
struct typed {
    int keyboard, before;
};

static struct typed type(const char *text)
{
    struct typed t = {.keyboard = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), .before = dup(STDIN_FILENO)};

    ck_assert_int_ge(t.keyboard, 0);
    ck_assert_int_eq(grantpt(t.keyboard), 0);
    ck_assert_int_eq(unlockpt(t.keyboard), 0);
    int tty = open(ptsname(t.keyboard), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(tty, 0);
    ck_assert_int_eq(dup2(tty, STDIN_FILENO), STDIN_FILENO);
    close(tty);
    ck_assert_int_eq(write(t.keyboard, text, strlen(text)), (ssize_t)strlen(text));
    is_armed = true;
    would_wait = false;
    return t;
}

static void hang_up(const struct typed *t)
{
    ck_assert_int_eq(dup2(t->before, STDIN_FILENO), STDIN_FILENO);
    close(t->before);
    close(t->keyboard);
}

START_TEST(ctrl_c_behind_a_line_ends_the_wait_for_a_line)
{
    struct rv_chat_lines lines;
    rv_err *err = NULL;
    rv_str line;

    struct typed t = type("a line\n");
    cli_chat_lines_init(&lines);
    ck_assert_int_eq(cli_chat_signals_watch(NULL, &err), 0);
    int rc = cli_chat_lines_next(&lines, &line, &err);
    cli_chat_signals_unwatch();
    cli_chat_lines_fini(&lines);
    ck_assert(!is_armed);
    ck_assert_msg(!would_wait, "read() waits for keys, Ctrl-C is not seen");
    ck_assert_int_eq(rc, RV_E_CANCELLED);
    rv_err_free(err);
    ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK, 0); /* the shell has this terminal, too */
    hang_up(&t);
}
END_TEST

START_TEST(ctrl_c_behind_a_key_ends_a_screen)
{
    rv_cli_screen *screen = NULL;

    struct typed t = type("x");
    ck_assert_int_eq(cli_screen_open(&screen, NULL), 0);
    ck_assert_int_eq(write(t.keyboard, "x", 1), 1); /* the first one was typed before keys came one by one */
    enum rv_cli_top_key key = cli_screen_wait(screen, INT64_C(3600000));
    cli_screen_close(screen);
    ck_assert(!is_armed);
    ck_assert_msg(!would_wait, "read() waits for keys, Ctrl-C is not seen");
    ck_assert_int_eq(key, RV_CLI_TOP_QUIT);
    hang_up(&t);
}
END_TEST

Suite *terminal_suite(void)
{
    Suite *s = suite_create("cli_terminal");
    TCase *tc = tcase_create("ctrl_c");

    tcase_add_test(tc, ctrl_c_behind_a_line_ends_the_wait_for_a_line);
    tcase_add_test(tc, ctrl_c_behind_a_key_ends_a_screen);
    suite_add_tcase(s, tc);
    return s;
}
