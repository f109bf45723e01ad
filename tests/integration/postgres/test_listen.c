/* A handle that listens: over a server that was away, at a database that refuses to listen or to announce. */
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "tests/integration/postgres/proxy.h"
#include "tests/integration/postgres/world.h"

#define HANG_MS 600000

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .busy_ms = 60000};

static int add(rv_store *s, const char *id, rv_err **err)
{
    const struct rv_new_task task = {.id = id, .type = "news", .max_retries = RV_UNSET, .now_us = T0};

    return rv_store_enqueue(s, &task, NULL, err);
}

static int fd_of(struct world *w, rv_store *s)
{
    int fd = -2;

    OK(rv_store_listen(s, &fd, &w->err));
    return fd;
}

static bool heard(struct world *w, rv_store *s)
{
    bool is = false;

    OK(rv_store_was_notified(s, &is, &w->err));
    return is;
}

static bool hears(struct world *w, rv_store *s)
{
    struct pollfd p = {.fd = fd_of(w, s), .events = POLLIN};

    return p.fd >= 0 && poll(&p, 1, HANG_MS) == 1 && heard(w, s);
}

START_TEST(after_a_lost_connection_it_hears_once_and_listens_on)
{
    struct rv_kit_postgres pg = {0};
    struct world world, *w = &world;
    rv_store *s = NULL;

    rv_kit_postgres_start(&pg);
    world_open(w, &pg);
    OK(rv_store_open(w->url, &opts, &s, &w->err));
    ck_assert_int_ge(fd_of(w, s), 0);
    ck_assert(heard(w, s));
    ck_assert(!heard(w, s));
    rv_kit_postgres_stop(&pg, SIGINT);
    for (int fd; (fd = fd_of(w, s)) >= 0;) { /* its last words, and its end; no call waits for the server */
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, HANG_MS), 1);
        ck_assert(!heard(w, s));
    }
    rv_kit_postgres_restart(&pg);
    OK(add(w->s, "missed", &w->err));
    while (fd_of(w, s) < 0) /* a second between two attempts */
        rv_kit_rest();
    ck_assert(heard(w, s));
    ck_assert(!heard(w, s));
    OK(add(w->s, "next", &w->err));
    ck_assert(hears(w, s));
    rv_store_close(s);
    world_close(w);
    rv_kit_postgres_end(&pg);
}
END_TEST

/* Like a compatible database that lacks it: the statement fails. */
START_TEST(a_database_that_refuses_to_listen_is_asked_once)
{
    struct world world, *w = &world;
    struct proxy *proxy;

    world_open(w, NULL);
    proxy = proxy_new(w->server->socket);
    proxy_garble(proxy, "LISTEN ");
    rv_store *s = world_by(w, proxy_folder(proxy), &opts);
    ck_assert_int_eq(fd_of(w, s), -1);
    int n = proxy_garbled(proxy);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(fd_of(w, s), -1);
    ck_assert_int_eq(proxy_garbled(proxy), n);
    heard(w, s);
    OK(add(s, "one", &w->err));
    ck_assert(!heard(w, s));
    rv_store_close(s);
    proxy_free(proxy);
    world_close(w);
}
END_TEST

/* The first write finds out, and is repeated without; so is a group whose caller repeats it. */
START_TEST(a_database_that_refuses_to_announce_keeps_what_is_written)
{
    for (int in_group = 0; in_group < 2; in_group++) {
        struct world world, *w = &world;
        struct proxy *proxy;
        int rc, n = 0;
        world_open(w, NULL);
        proxy = proxy_new(w->server->socket);
        proxy_garble(proxy, "pg_notify");
        rv_store *s = world_by(w, proxy_folder(proxy), &opts);
        for (int i = 0; i < 3; i++) {
            char id[20];
            snprintf(id, sizeof id, "task%d", i);
            do {
                rc = in_group ? rv_store_begin(s, &w->err) : 0;
                if (rc == 0)
                    rc = add(s, id, &w->err);
                if (in_group)
                    rc = rv_store_end(s, rc, &w->err);
                n++;
            } while (rc < 0 && in_group && rv_store_wait_again(s, &w->err));
            OK(rc);
        }
        ck_assert_int_eq(n, 3 + in_group);
        ck_assert_int_eq(proxy_garbled(proxy), 1);
        struct rv_store_stats stats;
        OK(rv_store_read_stats(w->s, &stats, &w->err));
        ck_assert_int_eq(stats.tasks, 3);
        rv_store_close(s);
        proxy_free(proxy);
        world_close(w);
    }
}
END_TEST

Suite *listen_suite(void)
{
    Suite *suite = suite_create("listen");
    TCase *tc = tcase_create("listen");

    tcase_add_test(tc, after_a_lost_connection_it_hears_once_and_listens_on);
    tcase_add_test(tc, a_database_that_refuses_to_listen_is_asked_once);
    tcase_add_test(tc, a_database_that_refuses_to_announce_keeps_what_is_written);
    suite_add_tcase(suite, tc);
    return suite;
}
