/* terminal COMMAND...: runs a command on a terminal of its own and types what standard input says, a step a line:
 *
 *     want TEXT    wait until that is shown, behind what earlier steps waited for
 *     type TEXT    that and the return key
 *     key C        Ctrl and that letter
 *     send TEXT    that as it is, in which \e, \r, \n and \t stand for the keys of these names
 *     size W H     the terminal has another size from now on, which the command is told
 *
 * The size is TERMINAL_SIZE of the environment, "W H", else 200 40.
 *
 * All that was shown goes to standard output; the status is the command's, or 99 when it did not show what was wanted.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_SHOWN   (1 << 20)
#define PATIENCE_MS 60000 /* what shows nothing for that long hangs */
#define FAILED      99

static char shown[MAX_SHOWN + 1];
static size_t n_shown, mark;

_Noreturn static void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void give_up(const char *fmt, ...)
{
    va_list args;

    fwrite(shown, 1, n_shown, stdout);
    fflush(stdout);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(FAILED);
}

/* False: the command has closed its terminal. */
static bool read_more(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, PATIENCE_MS) <= 0)
        give_up("terminal: nothing was shown for %d ms", PATIENCE_MS);
    ssize_t n = read(fd, shown + n_shown, MAX_SHOWN - n_shown);
    if (n <= 0)
        return false;
    n_shown += (size_t)n;
    shown[n_shown] = '\0';
    return true;
}

static void want(int fd, const char *text)
{
    char *at;

    while (!(at = memmem(shown + mark, n_shown - mark, text, strlen(text))))
        if (!read_more(fd))
            give_up("terminal: the command ended and did not show \"%s\"", text);
    mark = (size_t)(at - shown) + strlen(text);
}

static void type(int fd, const char *text, size_t len)
{
    if (write(fd, text, len) != (ssize_t)len)
        give_up("terminal: write: %s", strerror(errno));
}

static void send(int fd, const char *text)
{
    static const char names[] = "ernt", keys[] = "\033\r\n\t";
    const char *at;

    for (; *text; text++) {
        bool escaped = *text == '\\' && (at = strchr(names, text[1])) && *at;
        type(fd, escaped ? &keys[at - names] : text, 1);
        text += escaped;
    }
}

static struct winsize size_of(const char *text)
{
    struct winsize size = {0};
    char *end = NULL;
    long columns = text ? strtol(text, &end, 10) : 200, rows = text ? strtol(end, &end, 10) : 40;

    if (columns < 1 || columns > 1000 || rows < 1 || rows > 1000 || (end && *end))
        give_up("terminal: no size: %s", text);
    size.ws_col = (unsigned short)columns;
    size.ws_row = (unsigned short)rows;
    return size;
}

static void step(int fd, char *line)
{
    char key;

    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "want ", 5) == 0) {
        want(fd, line + 5);
    } else if (strncmp(line, "type ", 5) == 0) {
        type(fd, line + 5, strlen(line + 5));
        type(fd, "\r", 1);
    } else if (strncmp(line, "send ", 5) == 0) {
        send(fd, line + 5);
    } else if (strncmp(line, "size ", 5) == 0) {
        struct winsize size = size_of(line + 5);
        if (ioctl(fd, TIOCSWINSZ, &size) < 0)
            give_up("terminal: size: %s", strerror(errno));
    } else if (strncmp(line, "key ", 4) == 0) {
        key = (char)(line[4] & 0x1f);
        type(fd, &key, 1);
    } else {
        give_up("terminal: no step: %s", line);
    }
}

static pid_t start(int fd, char **command)
{
    struct winsize size = size_of(getenv("TERMINAL_SIZE"));
    const char *name = ptsname(fd);
    pid_t child = fork();

    if (child != 0)
        return child;
    setsid();
    int tty = open(name, O_RDWR);
    if (tty < 0 || ioctl(tty, TIOCSCTTY, 0) < 0 || ioctl(tty, TIOCSWINSZ, &size) < 0)
        _exit(FAILED);
    for (int i = 0; i < 3; i++)
        dup2(tty, i);
    signal(SIGINT, SIG_DFL);
    execvp(command[0], command);
    _exit(FAILED);
}

int main(int argc, char **argv)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status = 0;
    char line[4096];

    if (argc < 2 || fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0)
        return FAILED;
    pid_t child = start(fd, argv + 1);
    if (child < 0)
        return FAILED;
    while (fgets(line, sizeof line, stdin))
        step(fd, line);
    while (read_more(fd))
        continue;
    if (waitpid(child, &status, 0) != child)
        return FAILED;
    fwrite(shown, 1, n_shown, stdout);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
