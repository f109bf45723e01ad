/* libcurl is opened once, whoever comes first; each thread has a loop and a client of its own. */
#include <pthread.h>

#include "world.h"

#define N_THREADS 8

static pthread_barrier_t all_here;

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

TCase *threads_case(void)
{
    TCase *tc = tcase_create("threads");

    tcase_set_timeout(tc, 20);
    tcase_add_test(tc, threads_make_clients_at_the_same_time);
    return tc;
}
