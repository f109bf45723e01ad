/* What comes in at the terminal. Ctrl-C in a chat: during a turn it cancels the turn, at the prompt it ends the chat.
 * The handler only writes a byte; a thread of its own reads it, since asking an engine to cancel is not for handlers. A
 * second signal during a turn ends the process, whatever holds the first one up. Lines of standard input are read so
 * that a signal ends the waiting: a library's reader would go on with it. */
#include "coreengine/base/base.h"
#include "coreengine/cli/chat/chat_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536 /* bytes of one read(): the room of a pipe */

static const int numbers[] = {SIGINT, SIGTERM};

/* A handler is given nothing but a number; one chat of a process watches. */
static atomic_bool in_turn;
static atomic_uint n_in_turn; /* signals of the turn under way */
static atomic_int seen;       /* outside of a turn; 0: none */
static int wake[2] = {-1, -1}, prompt[2] = {-1, -1};
static pthread_t thread;
static bool has_thread;
static struct sigaction before[RV_COUNT(numbers)];

static void poke(int fd, char byte)
{
    RV_IGNORE(write(fd, &byte, 1) < 0, "a full pipe has been poked");
}

static void on_signal(int number)
{
    int saved = errno;

    if (!atomic_load(&in_turn)) {
        atomic_store(&seen, number);
        poke(prompt[1], 's');
    } else if (atomic_fetch_add(&n_in_turn, 1) > 0) {
        _exit(RV_EXIT_CANCELLED);
    } else {
        poke(wake[1], 'c');
    }
    errno = saved;
}

static void *pass_on(void *engine)
{
    char byte;

    for (;;) {
        ssize_t n = read(wake[0], &byte, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || byte == 'q')
            return NULL;
        if (atomic_load(&in_turn))
            rv_engine_cancel_all(engine);
    }
}

static void close_pipe(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

int cli_chat_signals_watch(rv_engine *engine, rv_err **err)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (pipe2(wake, O_CLOEXEC) < 0 || pipe2(prompt, O_CLOEXEC | O_NONBLOCK) < 0) {
        int rc = RV_FAIL_SYSTEM(err, errno, "watch for signals");
        cli_chat_signals_unwatch();
        return rc;
    }
    int rc = rv_thread_start(pass_on, engine, &thread, err);
    has_thread = rc == 0;
    if (rc < 0) {
        cli_chat_signals_unwatch();
        return RV_WRAP(err, rc, "watch for signals");
    }
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &action, &before[i]), "the numbers and the action are valid");
    return 0;
}

void cli_chat_signals_unwatch(void)
{
    if (has_thread) {
        for (size_t i = 0; i < RV_COUNT(numbers); i++)
            RV_IGNORE(sigaction(numbers[i], &before[i], NULL), "it was in force before");
        poke(wake[1], 'q');
        pthread_join(thread, NULL);
        has_thread = false;
    }
    close_pipe(wake);
    close_pipe(prompt);
}

void cli_chat_signals_turn(bool under_way)
{
    atomic_store(&n_in_turn, 0);
    atomic_store(&in_turn, under_way);
}

int cli_chat_signals_seen(void)
{
    return atomic_load(&seen);
}

/* --- lines --- */

void cli_chat_lines_init(struct rv_chat_lines *l)
{
    *l = (struct rv_chat_lines){.buf = RV_BUF_INIT(RV_CLI_MAX_MESSAGE + 2 * CHUNK),
                                .fd = rv_terminal_open_reader(STDIN_FILENO)};
}

void cli_chat_lines_fini(struct rv_chat_lines *l)
{
    if (l->fd != STDIN_FILENO)
        close(l->fd);
    rv_buf_fini(&l->buf);
}

/* 0: there is something to read, or the end; RV_CHAT_AGAIN: a signal without a meaning for a chat came first. */
static int wait_for_input(int fd, rv_err **err)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = prompt[0], .events = POLLIN}};

    for (;;) {
        if (cli_chat_signals_seen())
            return RV_FAIL(err, RV_E_CANCELLED, "stopped by a signal");
        int n = poll(fds, RV_COUNT(fds), -1);
        if (n < 0 && errno != EINTR)
            return RV_FAIL(err, RV_E_IO, "wait for standard input: %s", strerror(errno));
        if (n < 0 && !cli_chat_signals_seen())
            return RV_CHAT_AGAIN;
        if (n > 0 && fds[0].revents)
            return 0;
    }
}

static int read_more(struct rv_chat_lines *l, rv_err **err)
{
    static char chunk[CHUNK];

    int rc = wait_for_input(l->fd, err);
    if (rc != 0)
        return rc;
    ssize_t n = read(l->fd, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0)
        return RV_FAIL(err, RV_E_IO, "read standard input: %s", strerror(errno));
    if (n == 0)
        l->is_over = true;
    rv_buf_add(&l->buf, chunk, (size_t)n);
    return rv_buf_check(&l->buf, "standard input", err);
}

/* What was handed out goes, so that the room is for what comes. */
static void drop(struct rv_chat_lines *l)
{
    if (!l->at)
        return;
    memmove(l->buf.ptr, l->buf.ptr + l->at, l->buf.len - l->at);
    rv_buf_truncate(&l->buf, l->buf.len - l->at);
    l->at = 0;
}

int cli_chat_lines_byte(struct rv_chat_lines *l, char *out, rv_err **err)
{
    while (l->at == l->buf.len) {
        drop(l);
        int rc = l->is_over ? 0 : read_more(l, err);
        if (rc != 0 || (l->is_over && l->buf.len == 0))
            return rc;
    }
    *out = l->buf.ptr[l->at++];
    return 1;
}

int cli_chat_lines_next(struct rv_chat_lines *l, rv_str *out, rv_err **err)
{
    size_t looked = 0;
    bool too_long = false;
    int rc = 0;

    drop(l);
    for (;;) {
        const char *end = l->buf.len > looked ? memchr(l->buf.ptr + looked, '\n', l->buf.len - looked) : NULL;
        size_t len = end ? (size_t)(end - l->buf.ptr) : l->buf.len;
        if (end || (l->is_over && (len > 0 || too_long))) {
            l->at = end ? len + 1 : len;
            len -= len > 0 && l->buf.ptr[len - 1] == '\r';
            *out = (rv_str){l->buf.ptr, len};
            too_long = too_long || len > RV_CLI_MAX_MESSAGE;
            return too_long ? RV_FAIL(err, RV_E_LIMIT, "a message has at most %zu bytes", RV_CLI_MAX_MESSAGE) : 1;
        }
        if (l->is_over)
            return 0;
        looked = l->buf.len;
        if (looked > RV_CLI_MAX_MESSAGE) {
            too_long = true;
            rv_buf_truncate(&l->buf, 0);
            looked = 0;
        }
        rc = read_more(l, err);
        if (rc < 0)
            return rc;
    }
}
