/* SIGINT and SIGTERM: the first asks every run to end, the second ends the process. Watched from the moment an engine
 * is made, so that there is no gap before its loop exists. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "coreengine/engine/engine_internal.h"

#define EXIT_CANCELLED 130

static const int numbers[] = {SIGINT, SIGTERM};

/* A handler is given nothing but a number, so what it needs is global; one engine of a process may watch at a time. */
static _Atomic(rv_engine *) watcher;
static atomic_uint n_seen;
static struct sigaction before[RV_COUNT(numbers)];

static void on_signal(int number)
{
    int saved = errno;
    rv_engine *e = atomic_load(&watcher);

    (void)number;
    if (atomic_fetch_add(&n_seen, 1) > 0)
        _exit(EXIT_CANCELLED); /* asked twice: nothing of ours may hold it up */
    if (e)
        rv_engine_signalled(e);
    errno = saved;
}

int rv_signals_watch(rv_engine *e, rv_err **err)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    rv_engine *none = NULL;

    if (!atomic_compare_exchange_strong(&watcher, &none, e))
        return RV_FAIL(err, RV_E_STATE, "another engine of this process watches the signals");
    atomic_store(&n_seen, 0);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &action, &before[i]), "the numbers and the action are valid");
    return 0;
}

void rv_signals_unwatch(rv_engine *e)
{
    rv_engine *mine = e;

    if (atomic_load(&watcher) != e)
        return;
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &before[i], NULL), "it was in force before");
    RV_IGNORE(!atomic_compare_exchange_strong(&watcher, &mine, NULL), "it was read just now");
}
