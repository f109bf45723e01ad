#include "tests/integration/postgres/proxy.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/kit/kit.h"

#define LATE_NS 100000000
#define TOLD_NS 20000000

struct proxy {
    char *dir, server[108], path[108];
    int listener;
    pthread_t acceptor;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t gone;
    int n_pumps; /* threads of connections */
    int n, cut_at;
    enum proxy_cut how;
    bool was_cut;
    struct proxy_traffic traffic;
    const char *garbles; /* in statements of the client; NULL: nothing */
    int n_garbled;
};
struct link {
    struct proxy *p;
    int client, server;
    int n_ends; /* directions that are done */
};
struct pump {
    struct link *link;
    bool is_up; /* from the client to the server */
};

static bool read_all(int fd, void *to, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = read(fd, (char *)to + at, len - at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool send_all(int fd, const void *from, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, (const char *)from + at, len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* The first message of a client has no type. */
static char *read_message(int fd, bool has_type, size_t *len)
{
    unsigned char head[5];
    size_t type = has_type ? 1 : 0;

    if (!read_all(fd, head, 4 + type))
        return NULL;
    *len =
        type + ((size_t)head[type] << 24 | (size_t)head[type + 1] << 16 | (size_t)head[type + 2] << 8 | head[type + 3]);
    char *message = malloc(*len);
    if (!message)
        rv_kit_die("no memory for a message");
    memcpy(message, head, 4 + type);
    if (!read_all(fd, message + 4 + type, *len - 4 - type)) {
        free(message);
        return NULL;
    }
    return message;
}

/* true: here it breaks. */
static bool count(struct proxy *p, bool is_up, char type, size_t len, enum proxy_cut *how)
{
    pthread_mutex_lock(&p->lock);
    p->traffic.n_trips += is_up && type == 'S';
    p->traffic.up += is_up ? len : 0;
    p->traffic.down += is_up ? 0 : len;
    bool waits = p->how == PROXY_TOLD && is_up; /* for the next answer */
    bool cuts = p->n == p->cut_at && !waits;
    p->cut_at += p->n == p->cut_at && waits;
    p->n++;
    p->was_cut = p->was_cut || cuts;
    *how = p->how;
    pthread_mutex_unlock(&p->lock);
    return cuts;
}

/* What the client sent after that, too, as far as it came. */
static void deliver_late(struct link *l, const char *message, size_t len)
{
    size_t next = 0;

    shutdown(l->client, SHUT_WR); /* the client sees the end; what it sent can still be read */
    nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
    if (!send_all(l->server, message, len))
        return;
    struct timeval soon = {.tv_usec = 10000};
    setsockopt(l->client, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    for (char *more; (more = read_message(l->client, true, &next));) {
        bool fine = more[0] == 'X' || send_all(l->server, more, next);
        free(more);
        if (!fine)
            return;
    }
}

/* As a server does that ends a connection itself. */
static void tell_end(struct link *l)
{
    static const char fields[] = "SFATAL\0VFATAL\0C25P03\0Mterminating connection due to idle-in-transaction timeout\0";
    unsigned char head[5] = {'E', 0, 0, 0, 4 + sizeof fields};

    shutdown(l->server, SHUT_RDWR);
    if (send_all(l->client, head, sizeof head) && send_all(l->client, fields, sizeof fields))
        nanosleep(&(struct timespec){.tv_nsec = TOLD_NS}, NULL);
}

static void end(struct link *l)
{
    struct proxy *p = l->p;

    shutdown(l->client, SHUT_RDWR);
    shutdown(l->server, SHUT_RDWR);
    pthread_mutex_lock(&p->lock);
    bool is_last = ++l->n_ends == 2;
    p->n_pumps--;
    pthread_cond_broadcast(&p->gone);
    pthread_mutex_unlock(&p->lock);
    if (is_last) {
        close(l->client);
        close(l->server);
        free(l);
    }
}

/* A statement that the server cannot understand. */
static void garble(struct proxy *p, char *message, size_t len)
{
    pthread_mutex_lock(&p->lock);
    char *at = p->garbles ? memmem(message, len, p->garbles, strlen(p->garbles)) : NULL;
    if (at) {
        *at = 'x';
        p->n_garbled++;
    }
    pthread_mutex_unlock(&p->lock);
}

static void *run(void *self)
{
    struct pump pump = *(struct pump *)self;
    struct link *l = pump.link;
    bool has_type = !pump.is_up;
    enum proxy_cut how;
    size_t len = 0;

    free(self);
    for (char *message; (message = read_message(pump.is_up ? l->client : l->server, has_type, &len));) {
        if (pump.is_up)
            garble(l->p, message, len);
        bool cuts = count(l->p, pump.is_up, message[0], len, &how);
        if (cuts && how == PROXY_LATE && pump.is_up)
            deliver_late(l, message, len);
        else if (cuts && how == PROXY_TOLD)
            tell_end(l);
        bool goes_on = !cuts && send_all(pump.is_up ? l->server : l->client, message, len);
        free(message);
        has_type = true;
        if (!goes_on)
            break;
    }
    end(l);
    return NULL;
}

static void start(struct link *l, bool is_up)
{
    struct pump *pump = malloc(sizeof *pump);
    pthread_t thread;

    if (!pump)
        rv_kit_die("no memory");
    *pump = (struct pump){.link = l, .is_up = is_up};
    pthread_mutex_lock(&l->p->lock);
    l->p->n_pumps++;
    pthread_mutex_unlock(&l->p->lock);
    if (pthread_create(&thread, NULL, run, pump) != 0 || pthread_detach(thread) != 0)
        rv_kit_die("no thread");
}

static void *accept_all(void *self)
{
    struct proxy *p = self;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int client;

    snprintf(at.sun_path, sizeof at.sun_path, "%s", p->server);
    while ((client = accept(p->listener, NULL, NULL)) >= 0) {
        struct link *l = calloc(1, sizeof *l);
        int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!l)
            rv_kit_die("no memory");
        if (connect(server, (struct sockaddr *)&at, sizeof at) != 0) { /* the server is down */
            close(client);
            close(server);
            free(l);
            continue;
        }
        *l = (struct link){.p = p, .client = client, .server = server};
        start(l, true);
        start(l, false);
    }
    return NULL;
}

struct proxy *proxy_new(const char *server_socket)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct proxy *p = calloc(1, sizeof *p);

    if (!p)
        rv_kit_die("no memory");
    p->dir = rv_kit_path("/tmp", "rvproxy.XXXXXX");
    if (!mkdtemp(p->dir))
        rv_kit_die("mkdtemp: %s", strerror(errno));
    p->cut_at = -1;
    snprintf(p->server, sizeof p->server, "%s", server_socket);
    snprintf(p->path, sizeof p->path, "%s/.s.PGSQL.1", p->dir);
    memcpy(at.sun_path, p->path, sizeof at.sun_path);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->gone, NULL);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(p->listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(p->listener, 20) != 0 ||
        pthread_create(&p->acceptor, NULL, accept_all, p) != 0)
        rv_kit_die("listen at %s: %s", p->path, strerror(errno));
    return p;
}

void proxy_free(struct proxy *p)
{
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->acceptor, NULL);
    close(p->listener);
    pthread_mutex_lock(&p->lock);
    while (p->n_pumps > 0) /* the clients have closed */
        pthread_cond_wait(&p->gone, &p->lock);
    pthread_mutex_unlock(&p->lock);
    rv_kit_tmpdir_remove(p->dir);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->gone);
    free(p);
}

const char *proxy_folder(const struct proxy *p)
{
    return p->dir;
}

void proxy_arm(struct proxy *p, int n, enum proxy_cut how)
{
    pthread_mutex_lock(&p->lock);
    p->n = 0;
    p->cut_at = n;
    p->how = how;
    p->was_cut = false;
    p->traffic = (struct proxy_traffic){0};
    pthread_mutex_unlock(&p->lock);
}

int proxy_count(struct proxy *p, bool *was_cut)
{
    pthread_mutex_lock(&p->lock);
    int n = p->n;
    if (was_cut)
        *was_cut = p->was_cut;
    pthread_mutex_unlock(&p->lock);
    return n;
}

struct proxy_traffic proxy_traffic(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    struct proxy_traffic traffic = p->traffic;
    pthread_mutex_unlock(&p->lock);
    return traffic;
}

void proxy_garble(struct proxy *p, const char *text)
{
    pthread_mutex_lock(&p->lock);
    p->garbles = text;
    pthread_mutex_unlock(&p->lock);
}

int proxy_garbled(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    int n = p->n_garbled;
    pthread_mutex_unlock(&p->lock);
    return n;
}
