/* libcurl is opened when the first client is made, once, whoever comes first. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define N_THREADS 8

static pthread_barrier_t all_here;

static bool is_loaded(void)
{
    void *lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD);

    if (lib)
        dlclose(lib);
    return lib != NULL;
}

/* In one process with others, as under a sanitizer, one of them may have made a client before. */
static bool has_a_process_of_its_own(void)
{
    const char *forks = getenv("CK_FORK");

    return !forks || strcmp(forks, "no") != 0;
}

/* Proves 12.3/lazy: libcurl is not there before it is needed */
START_TEST(who_makes_no_client_does_without_libcurl)
{
    struct world w;

    ck_assert(!is_loaded() || !has_a_process_of_its_own());
    world_init(&w);
    ck_assert(is_loaded());
    world_fini(&w);
    ck_assert(is_loaded());
}
END_TEST

static void *use_a_client(void *unused)
{
    struct world w;
    struct call c = {0};

    pthread_barrier_wait(&all_here);
    world_init(&w);
    fetch_answer(&w, &c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", KEEP);
    ck_assert_int_eq(c.end.fault, RV_HTTP_OK);
    call_fini(&c);
    world_fini(&w);
    return unused;
}

START_TEST(threads_make_clients_at_the_same_time)
{
    pthread_t threads[N_THREADS];

    ck_assert_int_eq(pthread_barrier_init(&all_here, NULL, N_THREADS), 0);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_a_client, NULL), 0);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&all_here);
}
END_TEST

TCase *load_case(void)
{
    TCase *tc = tcase_create("load");

    tcase_add_test(tc, who_makes_no_client_does_without_libcurl);
    tcase_add_test(tc, threads_make_clients_at_the_same_time);
    return tc;
}
