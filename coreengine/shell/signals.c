/* SIGINT and SIGTERM: the first asks every run to end, the second ends the process. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/shell/shell_internal.h"

#define EXIT_CANCELLED 130

static const int numbers[] = {SIGINT, SIGTERM};

struct shell_signals {
    uv_signal_t handles[RV_COUNT(numbers)];
    size_t n_open;
    rv_engine *engine; /* borrowed; outlives the handles */
    unsigned n_seen;
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct shell_signals *s = handle->data;

    if (s->n_seen++ > 0)
        _exit(EXIT_CANCELLED); /* asked twice: nothing of ours may hold it up */
    RV_LOG(s->engine->opts.log, INFO, "signal.received", RV_F_I64("signal", number));
    rv_engine_cancel_all(s->engine);
}

static void on_close(uv_handle_t *handle)
{
    struct shell_signals *s = handle->data;
    if (--s->n_open == 0)
        free(s);
}

void rv_signals_close(struct shell_signals *s)
{
    for (size_t i = s ? s->n_open : 0; i-- > 0;)
        uv_close((uv_handle_t *)&s->handles[i], on_close);
}

int rv_signals_new(rv_engine *e, void *uv_loop, struct shell_signals **out, rv_err **err)
{
    struct shell_signals *s = calloc(1, sizeof *s);
    int rc = 0;

    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "watch for signals");
    s->engine = e;
    for (size_t i = 0; i < RV_COUNT(numbers) && rc == 0; i++) {
        rc = uv_signal_init(uv_loop, &s->handles[i]);
        if (rc < 0)
            break;
        s->handles[i].data = s;
        s->n_open++;
        rc = uv_signal_start(&s->handles[i], on_signal, numbers[i]);
    }
    if (rc < 0) {
        if (s->n_open)
            rv_signals_close(s);
        else
            free(s);
        return RV_FAIL(err, RV_E_INTERNAL, "watch for signals: %s", uv_strerror(rc));
    }
    *out = s;
    return 0;
}
