/* A run that ended the processes which went on with it, in a process of its own: `reeve run-host`. The worker hears how
 * that ended, and the run is put off longer each time. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "coreengine/app/worker/worker_internal.h"

#define MAX_ROOM  ((size_t)64 << 10) /* bytes of a command line: options and paths of this process */
#define MAX_WORDS 64                 /* of a command line: the options of `reeve worker` are fewer */

struct work_apart {
    uv_process_t process;
    struct work_job *job;
    void (*on_exit)(struct work_job *j, int status, int number);
    rv_buf room; /* of the words */
    size_t at[MAX_WORDS];
    size_t n;
};

static void add(struct work_apart *a, const char *option, const char *value)
{
    if (!value || a->n + 1 >= MAX_WORDS)
        return;
    a->at[a->n++] = a->room.len;
    rv_buf_printf(&a->room, "%s%s", option, value);
    rv_buf_add(&a->room, "", 1);
}

static void write_words(struct work_apart *a, const struct work_job *j)
{
    const struct rv_app *app = &j->app;
    char seconds[32];

    snprintf(seconds, sizeof seconds, "%lld", (long long)((app_lease_us(app) + RV_US_PER_S - 1) / RV_US_PER_S));
    add(a, "", "reeve");
    add(a, "", "run-host");
    add(a, "--quiet", "");
    add(a, "--store=", app->store);
    add(a, "--sync=", app->sync);
    add(a, "--tenant=", app->scope.tenant);
    add(a, "--lease=", seconds);
    add(a, "--quotas=", app->quotas);
    for (size_t i = 0; i < app->n_capability_dirs; i++)
        add(a, "--capability-path=", app->capability_dirs[i]);
    add(a, "", "--");
    add(a, "", j->run);
}

static void on_closed(uv_handle_t *handle)
{
    struct work_apart *a = handle->data;

    rv_buf_fini(&a->room);
    free(a);
}

static void on_ended(uv_process_t *process, int64_t status, int number)
{
    struct work_apart *a = process->data;
    struct work_job *j = a->job;

    j->apart = NULL;
    uv_close((uv_handle_t *)process, on_closed);
    a->on_exit(j, (int)status, number);
}

int app_work_apart_begin(struct work_job *j, struct uv_loop_s *loop,
                         void (*exits)(struct work_job *j, int status, int number), rv_err **err)
{
    struct work_apart *a = calloc(1, sizeof *a);
    char *words[MAX_WORDS + 1] = {NULL};
    uv_stdio_container_t files[3] = {{.flags = UV_IGNORE}, {.flags = UV_IGNORE}, {.flags = UV_IGNORE}};

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "start a process");
    a->room = RV_BUF_INIT(MAX_ROOM);
    a->job = j;
    a->on_exit = exits;
    a->process.data = a;
    write_words(a, j);
    int rc = rv_buf_check(&a->room, "words of a command", err);
    for (size_t i = 0; rc == 0 && i < a->n; i++)
        words[i] = a->room.ptr + a->at[i];
    const uv_process_options_t opts = {
        .exit_cb = on_ended, .file = j->app.host_program, .args = words, .stdio_count = 3, .stdio = files};
    if (rc < 0) {
        rv_buf_fini(&a->room);
        free(a);
        return rc;
    }
    int failed = uv_spawn(loop, &a->process, &opts);
    if (failed < 0) {
        rc = RV_FAIL_START(err, failed, "start a process");
        uv_close((uv_handle_t *)&a->process, on_closed);
        return rc;
    }
    j->apart = a;
    return 0;
}

void app_work_apart_kill(struct work_job *j)
{
    if (j->apart)
        RV_IGNORE(uv_process_kill(&j->apart->process, SIGKILL), "it may have ended just now");
}
