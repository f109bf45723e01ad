#include "tests/kit/postgres.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/kit/kit.h"

#define START_MS 600000 /* what does not answer by then hangs, however busy the machine */
#define ORDINARY 65534  /* the user and group that own nothing */
#define MAX_TEXT ((size_t)1 << 20)

static const char *program(const char *name)
{
    static char path[200];
    glob_t found = {0};

    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) != 0 || found.gl_pathc == 0)
        rv_kit_die("no PostgreSQL in /usr/lib/postgresql: install Debian's package \"postgresql\"");
    snprintf(path, sizeof path, "%s/%s", found.gl_pathv[found.gl_pathc - 1], name);
    globfree(&found);
    if (access(path, X_OK) != 0)
        rv_kit_die("no program %s: install Debian's package \"postgresql\"", path);
    return path;
}

/* The server refuses to be the super-user's. */
static void drop_root(void)
{
    if (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(ORDINARY) != 0 || setuid(ORDINARY) != 0))
        _exit(126);
}

static pid_t spawn(const char *const *argv, bool as_server, int out)
{
    pid_t parent = getpid(), pid = fork();

    if (pid < 0)
        rv_kit_die("fork: %s", strerror(errno));
    if (pid > 0)
        return pid;
    drop_root();
    if (as_server && (prctl(PR_SET_PDEATHSIG, SIGQUIT) != 0 || getppid() != parent))
        _exit(126);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(out >= 0 ? out : null, 1);
    if (out < 0)
        dup2(null, 2);
    if (chdir("/") != 0)
        _exit(126);
    execve(argv[0], (char *const *)argv, (char *[]){"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin", NULL});
    _exit(127);
}

static void run(const char *const *argv)
{
    int status = 0;
    pid_t pid = spawn(argv, false, -1);

    if (waitpid(pid, &status, 0) != pid || status != 0)
        rv_kit_die("%s %s failed with status %d", argv[0], argv[1], status);
}

static char *folder_in(const char *base, const char *name)
{
    char *dir = rv_kit_path(base, name);

    if (!mkdtemp(dir))
        rv_kit_die("mkdtemp(%s): %s", dir, strerror(errno));
    return dir;
}

static void give_away(const char *path)
{
    if (getuid() == 0 && chown(path, ORDINARY, ORDINARY) != 0)
        rv_kit_die("chown %s: %s", path, strerror(errno));
}

/* Copying is ten times as fast as making. As the super-user: the files keep their owner. */
static void copy(const char *from, const char *to)
{
    const char *const argv[] = {"/bin/cp", "-a", from, to, NULL};
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        rv_kit_die("cannot copy %s to %s", from, to);
}

/* A cluster that is made once for all test programs of a build. */
static const char *template_dir(void)
{
    static const char path[] = RV_BINARY_DIR "/tests/postgres-template";
    int lock = open(RV_BINARY_DIR "/tests/postgres-template.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

    if (lock < 0 || flock(lock, LOCK_EX) != 0)
        rv_kit_die("cannot lock %s: %s", path, strerror(errno));
    if (access(path, F_OK) != 0) {
        char *dir = folder_in("/tmp", "rvpg.XXXXXX"), *data = rv_kit_path(dir, "data");
        const char *const argv[] = {
            program("initdb"),   "-D", data, "-N", "-A", "trust", "-U", "reeve", "-E", "UTF8", "--locale=C",
            "--no-instructions", NULL};
        give_away(dir);
        run(argv);
        copy(data, RV_BINARY_DIR "/tests/postgres-template.new");
        if (rename(RV_BINARY_DIR "/tests/postgres-template.new", path) != 0)
            rv_kit_die("cannot make %s: %s", path, strerror(errno));
        free(data);
        rv_kit_tmpdir_remove(dir);
    }
    close(lock);
    return path;
}

/* Says its file that this process answers? A server listens before that. One that was killed leaves its file behind. */
static bool is_ready(pid_t server, const char *file)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    bool is = rv_file_read(file, &text, NULL) == 0 && strtol(rv_buf_cstr(&text), NULL, 10) == server &&
              strstr(rv_buf_cstr(&text), "\nready");

    rv_buf_fini(&text);
    return is;
}

static int process_fd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The watch is there before the first look: no change of the folder is missed. */
static void wait_until_ready(const struct rv_kit_postgres *pg)
{
    char *data = rv_kit_path(pg->dir, "data"), *file = rv_kit_path(data, "postmaster.pid");
    char events[4096];
    struct pollfd fds[] = {{.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .events = POLLIN},
                           {.fd = process_fd(pg->pid), .events = POLLIN}};

    if (fds[0].fd < 0 || fds[1].fd < 0 || inotify_add_watch(fds[0].fd, data, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
        rv_kit_die("cannot watch %s: %s", data, strerror(errno));
    while (!is_ready(pg->pid, file)) {
        if (poll(fds, RV_COUNT(fds), START_MS) <= 0 || fds[1].revents)
            rv_kit_die("the server of PostgreSQL in %s does not start", pg->dir);
        while (read(fds[0].fd, events, sizeof events) > 0)
            continue;
    }
    close(fds[0].fd);
    close(fds[1].fd);
    free(file);
    free(data);
}

void rv_kit_postgres_restart(struct rv_kit_postgres *pg)
{
    char *data = rv_kit_path(pg->dir, "data"), sockets[100];
    const char *const argv[] = {program("postgres"),
                                "-D",
                                data,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                sockets,
                                "-p",
                                "1",
                                "-c",
                                pg->waits_for_disk ? "fsync=on" : "fsync=off",
                                "-c",
                                "max_connections=60",
                                "-c",
                                "shared_buffers=16MB",
                                NULL};

    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", pg->dir);
    pg->pid = spawn(argv, true, -1);
    wait_until_ready(pg);
    free(data);
}

void rv_kit_postgres_start(struct rv_kit_postgres *pg)
{
    const char *from = template_dir();

    pg->dir = folder_in("/tmp", "rvpg.XXXXXX");
    give_away(pg->dir);
    char *data = rv_kit_path(pg->dir, "data");
    copy(from, data);
    free(data);
    snprintf(pg->socket, sizeof pg->socket, "%s/.s.PGSQL.1", pg->dir);
    pg->url = malloc(strlen(pg->dir) + 80);
    if (!pg->url)
        rv_kit_die("no memory");
    snprintf(pg->url, strlen(pg->dir) + 80, "postgres:///postgres?host=%s&port=1&user=reeve", pg->dir);
    rv_kit_postgres_restart(pg);
}

/* Its backends are not of its process group; what still computes would keep the next server from starting. */
static size_t list_children(pid_t parent, pid_t *out, size_t max)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    size_t n = 0;

    while (proc && (entry = readdir(proc)) && n < max) {
        char path[300], line[400];
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *f = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        const char *end = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
        if (end && strlen(end) > 4 && strtol(end + 4, NULL, 10) == parent)
            out[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
        if (f)
            fclose(f);
    }
    if (proc)
        closedir(proc);
    return n;
}

void rv_kit_postgres_stop(struct rv_kit_postgres *pg, int signal)
{
    pid_t children[200];
    int ends[RV_COUNT(children)];
    size_t n = signal == SIGKILL ? list_children(pg->pid, children, RV_COUNT(children)) : 0;

    if (pg->pid == 0)
        return;
    for (size_t i = 0; i < n; i++)
        ends[i] = process_fd(children[i]);
    kill(pg->pid, signal);
    for (size_t i = 0; i < n; i++)
        kill(children[i], SIGKILL);
    while (waitpid(pg->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < n; i++) { /* no child of this process; -1: it was gone before */
        if (ends[i] >= 0 && poll(&(struct pollfd){.fd = ends[i], .events = POLLIN}, 1, START_MS) <= 0)
            rv_kit_die("a process of PostgreSQL does not end");
        close(ends[i]);
    }
    pg->pid = 0;
}

void rv_kit_postgres_end(struct rv_kit_postgres *pg)
{
    rv_kit_postgres_stop(pg, SIGQUIT);
    rv_kit_tmpdir_remove(pg->dir);
    free(pg->url);
    *pg = (struct rv_kit_postgres){0};
}

/* --- One for the program --- */

static struct rv_kit_postgres ours;
static pid_t starter;

static void end_ours(void)
{
    if (getpid() == starter) /* not what was forked from it */
        rv_kit_postgres_end(&ours);
}

const struct rv_kit_postgres *rv_kit_postgres(void)
{
    if (starter == 0) {
        starter = getpid();
        rv_kit_postgres_start(&ours);
        atexit(end_ours);
    }
    return &ours;
}

/* A schema that can be used once more has a file of its name in that folder: who deletes it has the schema. */
#define EMPTY_SCHEMAS "empty-schemas"

static bool take_empty(const struct rv_kit_postgres *pg, char *name, size_t size)
{
    char *folder = rv_kit_path(pg->dir, EMPTY_SCHEMAS);
    DIR *dir = opendir(folder);
    bool has = false;

    for (struct dirent *entry; dir && !has && (entry = readdir(dir));) {
        has = strlen(entry->d_name) < size && entry->d_name[0] == 't' && unlinkat(dirfd(dir), entry->d_name, 0) == 0;
        if (has)
            memcpy(name, entry->d_name, strlen(entry->d_name) + 1);
    }
    if (dir)
        closedir(dir);
    free(folder);
    return has;
}

char *rv_kit_postgres_url(const struct rv_kit_postgres *pg)
{
    static int n;
    char name[80];
    size_t size = strlen(pg->url) + sizeof name + 10;
    char *url = malloc(size);

    if (!url)
        rv_kit_die("no memory");
    if (!take_empty(pg, name, sizeof name))
        snprintf(name, sizeof name, "t%d_%d", (int)getpid(), ++n);
    snprintf(url, size, "%s&schema=%s", pg->url, name);
    return url;
}

/* Rows that a fresh schema has come from the one that is kept aside. Triggers of references are off. Only tables that
 * have a page on disk are looked at: most never had a row. */
#define EMPTY_SQL                                                                                                      \
    "DO $$ DECLARE t text; has bool; BEGIN SET LOCAL session_replication_role = replica;"                              \
    " FOR t IN SELECT relname FROM pg_class WHERE relnamespace = '%s'::regnamespace AND relkind = 'r'"                 \
    " AND pg_relation_size(oid) > 0 LOOP"                                                                              \
    " EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s.%%I)', t) INTO has;"                                             \
    " IF has THEN EXECUTE format('DELETE FROM %s.%%I', t); END IF; END LOOP;"                                          \
    " FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'fresh'::regnamespace AND relkind = 'r'"              \
    " AND pg_relation_size(oid) > 0 LOOP"                                                                              \
    " EXECUTE format('INSERT INTO %s.%%1$I SELECT * FROM fresh.%%1$I', t); END LOOP;"                                  \
    " FOR t IN SELECT sequencename FROM pg_sequences WHERE schemaname = '%s' AND last_value IS NOT NULL LOOP"          \
    " PERFORM setval(format('%s.%%I', t), 1, false); END LOOP; END $$"

void rv_kit_postgres_reuse(const struct rv_kit_postgres *pg, const char *url)
{
    const char *name = strrchr(url, '=') + 1;
    char sql[1200], path[300];

    snprintf(sql, sizeof sql, EMPTY_SQL, name, name, name, name, name, name);
    free(rv_kit_postgres_sql(pg, sql));
    snprintf(path, sizeof path, "%s/" EMPTY_SCHEMAS, pg->dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/" EMPTY_SCHEMAS "/%s", pg->dir, name);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        rv_kit_die("%s: %s", path, strerror(errno));
    close(fd);
}

/* Its exit status; what it printed is appended to text. */
static int run_psql(const struct rv_kit_postgres *pg, const char *sql, rv_buf *text)
{
    const char *const argv[] = {program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, pg->url, NULL};
    int ends[2], status = 0;
    char piece[4096];
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) != 0)
        rv_kit_die("pipe: %s", strerror(errno));
    pid_t pid = spawn(argv, false, ends[1]);
    close(ends[1]);
    while ((got = read(ends[0], piece, sizeof piece)) > 0)
        rv_buf_add(text, piece, (size_t)got);
    close(ends[0]);
    if (waitpid(pid, &status, 0) != pid)
        rv_kit_die("waitpid: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

char *rv_kit_postgres_sql(const struct rv_kit_postgres *pg, const char *sql)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    int status = run_psql(pg, sql, &text);

    if (status != 0)
        rv_kit_die("psql: status %d: %s: %s", status, sql, rv_buf_cstr(&text));
    while (text.len > 0 && text.ptr[text.len - 1] == '\n')
        rv_buf_truncate(&text, text.len - 1);
    rv_buf_puts(&text, "");
    char *out = rv_str_dup(rv_buf_str(&text).ptr ? rv_buf_str(&text) : RV_STR_LIT(""));
    rv_buf_fini(&text);
    return out;
}
