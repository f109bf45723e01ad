/* A capability whose code runs in processes of its own: how the first of them, and each further one, is brought to the
 * point where it takes calls, and how its manifest becomes the descriptor that the loader then checks like any other.
 * The child is not trusted: what it says has passed its own checks there and passes the same ones here.
 *
 * Children are waited for by their id only, so that other code of the process can have children, too, and no handler of
 * SIGCHLD is needed. */
#include "coreengine/base/base.h"
#include "coreengine/tools/plugin/isolated_internal.h"
#include "envelope/envelope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOST_FD     3                    /* the mark of this process's life follows it: see host.c */
#define STEP_NS     200000               /* between two looks at a child that is about to end */
#define LEAVE_US    RV_US_PER_S          /* to close a capability and leave */
#define OBVIOUS_US  (100 * RV_US_PER_MS) /* from the end of a socket to the end of its process */
#define LOAD_MS     30000                /* to load and to open */
#define PROGRAM_MAX 4096                 /* bytes of the path of this program: PATH_MAX of Linux */

/* --- one child process: start, stop, kill, wait --- */

/* Standard input and output are /dev/null, standard error is ours. Beside the socket a child inherits the mark of this
 * process: as long as the child lives, the owner of the runs that it works for is not gone. */
static int plan(void *self, posix_spawn_file_actions_t *files)
{
    const int *fd = self;
    int mark = rv_liveness_fd(), rc; /* its number is above HOST_FD + 1, so the first dup does not overwrite it */

    if ((rc = posix_spawn_file_actions_adddup2(files, *fd, HOST_FD)) != 0 ||
        (rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) != 0 ||
        (rc = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)) != 0 ||
        (mark >= 0 && (rc = posix_spawn_file_actions_adddup2(files, mark, HOST_FD + 1)) != 0))
        return rc;
    return posix_spawn_file_actions_addclosefrom_np(files, HOST_FD + 1 + (mark >= 0));
}

static int spawn(const char *program, int fd, pid_t *pid)
{
    char name[] = "reeve", verb[] = "capability-host", number[] = "3";
    char *const argv[] = {name, verb, number, NULL};
    sigset_t none;
    const struct rv_spawn how = {.program = program, .argv = argv, .mask = &none, .plan = plan, .self = &fd};

    sigemptyset(&none);
    return rv_spawn(&how, pid);
}

/* Start program as a host with one end of a new socket. */
static int start_process(const char *program, struct rv_process **out, rv_err **err)
{
    struct rv_process *c = calloc(1, sizeof *c);
    int ends[2], rc;

    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "start a capability's process");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        int number = errno;
        free(c);
        return RV_FAIL_SYSTEM(err, number, "start a capability's process: make a socket");
    }
    rc = spawn(program, ends[1], &c->pid);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        free(c);
        return RV_FAIL_START(err, rc, "start \"%s\" for a capability", program);
    }
    channel_init(&c->channel, ends[0], RV_CHANNEL_MAX_MANIFEST);
    *out = c;
    return 0;
}

/* True when it is gone; its status is gathered then. */
static bool has_ended(struct rv_process *c, int *status)
{
    pid_t pid = c->pid ? waitpid(c->pid, status, WNOHANG) : -1;

    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    c->pid = 0;
    return true;
}

static bool ends_within(struct rv_process *c, int64_t us, int *status)
{
    int64_t until_us = channel_now_us() + us;

    while (!has_ended(c, status)) {
        struct timespec step = {0, STEP_NS};
        if (channel_now_us() > until_us)
            return false;
        nanosleep(&step, NULL);
    }
    return true;
}

static void end_by_force(struct rv_process *c)
{
    int status;

    if (!c->pid)
        return;
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    c->pid = 0;
}

void plugin_process_kill(struct rv_process *c)
{
    end_by_force(c);
    channel_fini(&c->channel);
    free(c);
}

void plugin_process_bury(struct rv_process *c, rv_buf *how)
{
    int status = 0;

    if (!ends_within(c, OBVIOUS_US, &status))
        rv_buf_puts(how, "its process closed the connection and was killed");
    else if (WIFSIGNALED(status) && sigabbrev_np(WTERMSIG(status)))
        rv_buf_printf(how, "its process died of signal %d (SIG%s)", WTERMSIG(status), sigabbrev_np(WTERMSIG(status)));
    else if (WIFSIGNALED(status))
        rv_buf_printf(how, "its process died of signal %d", WTERMSIG(status));
    else
        rv_buf_printf(how, "its process ended with status %d", WEXITSTATUS(status));
    plugin_process_kill(c);
}

/* Ask all idle children to exit at the same time; kill those that still run after a moment. */
static void dismiss(struct rv_process *list)
{
    int64_t until_us = channel_now_us() + LEAVE_US;

    for (struct rv_process *c = list; c; c = c->next)
        channel_fini(&c->channel); /* the end of its input is what tells a child to leave */
    while (list) {
        struct rv_process *next = list->next;
        int64_t left_us = until_us - channel_now_us();
        int status;

        RV_IGNORE(ends_within(list, left_us > 0 ? left_us : 0, &status), "it is killed then");
        plugin_process_kill(list);
        list = next;
    }
}

/* --- loading --- */

static int never(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->fail(call, rv_error_execution, "it runs in a process of its own");
}

/* This very program if it is called reeve: whatever else it is may not know how to be a host, and would start itself
 * again and again. */
static int find_program(const struct rv_plugins *p, char **out, rv_err **err)
{
    char self[PROGRAM_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *slash, *program = p->host_program;
    int rc;

    self[len > 0 ? len : 0] = '\0';
    slash = strrchr(self, '/');
    if (!program && slash && strcmp(slash, "/reeve") == 0)
        program = "/proc/self/exe";
    else if (!program && access(RV_INSTALL_PROGRAM, X_OK) == 0)
        program = RV_INSTALL_PROGRAM;
    if (!program) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "isolation: process needs the program reeve, and there is no \"%s\"",
                     RV_INSTALL_PROGRAM);
        rv_err_set_hint(err, "give host_program in struct rv_plugins_opts");
        return rc;
    }
    *out = rv_str_dup(rv_str_of(program));
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "start a capability's process");
}

/* How a message of the child that is none, or its end, reads to people. */
static int explain_end(struct rv_process *c, int rc, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf how = RV_BUF_INIT(256);

    if (rc == RV_E_IO) {
        rv_err_free(rv_err_steal(err));
        plugin_process_bury(c, &how);
        return RV_FAIL(err, RV_E_PLUGIN, "%s while it was loaded", rv_buf_cstr(&how));
    }
    plugin_process_kill(c);
    return rc;
}

/* A question while loading. Borrowed. */
struct load_question {
    const rv_buf *head;
    rv_str body;
    const char *key; /* true in the answer to it */
};
/* One question while loading, and its answer: `key: true`, or an error. */
static int ask(struct rv_process *c, const struct load_question *q, const struct rv_wait *wait, struct rv_frame *out,
               rv_err **err)
{
    json_object *fault = NULL;
    bool yes = false;
    int rc = channel_send(&c->channel, q->head, q->body, wait, err);

    if (rc == 0)
        rc = channel_receive(&c->channel, out, wait, err);
    if (rc < 0)
        return rc;
    if (json_object_object_get_ex(out->head, "error", &fault))
        rc = channel_read_err(fault, err);
    else if (!rv_json_get_bool(out->head, q->key, &yes) || !yes)
        rc = RV_FAIL(err, RV_E_PLUGIN, "its process answered something else than was asked");
    json_object_put(out->head);
    out->head = NULL;
    return rc;
}

static int ask_to_load(const struct rv_isolated *iso, struct rv_process *c, const struct rv_wait *wait,
                       json_object **manifest, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_CHANNEL_MAX_MANIFEST, .what = "manifest"};
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(RV_CHANNEL_MAX_HEAD);
    rv_jw w = rv_jw_on(&head);
    struct rv_frame frame = {NULL, {NULL, 0}};
    int rc;

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "load", iso->owner->path);
    rv_jw_kv_text(&w, "base_dir", iso->base_dir);
    rv_jw_kv_int(&w, "memory_mb", iso->memory_mb);
    rv_jw_kv_int(&w, "open_files", iso->open_files);
    rv_jw_kv_bool(&w, "with_parent", gettid() == getpid()); /* the kernel's signal is tied to the thread that spawns */
    rv_jw_obj_end(&w);
    rc = ask(c, &(const struct load_question){.head = &head, .body = (rv_str){NULL, 0}, .key = "manifest"}, wait,
             &frame, err);
    if (rc < 0 || !manifest)
        return rc;
    rc = rv_json_parse(frame.body, &opts, manifest, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "its manifest is not JSON");
    return 0;
}

static int ask_to_open(const struct rv_isolated *iso, struct rv_process *c, const struct rv_wait *wait, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(64);
    struct rv_frame frame = {NULL, {NULL, 0}};
    int rc;

    rv_buf_puts(&head, "{\"open\":true}");
    rc = ask(c, &(const struct load_question){.head = &head, .body = rv_str_of(iso->config), .key = "opened"}, wait,
             &frame, err);
    if (rc == 0)
        c->channel.max_body = RV_CAP_MAX_REPLY;
    return rc;
}

int plugin_isolated_start(const struct rv_isolated *iso, const struct rv_wait *wait, struct rv_process **out,
                          json_object **manifest, rv_err **err)
{
    int64_t until_us = channel_now_us() + (int64_t)LOAD_MS * 1000;
    struct rv_wait patience = {until_us, wait ? wait->cancelled : NULL};
    struct rv_process *c = NULL;
    int rc;

    if (wait && wait->until_us < until_us)
        patience.until_us = wait->until_us;
    rc = start_process(iso->program, &c, err);
    if (rc < 0)
        return rc;
    rc = ask_to_load(iso, c, &patience, manifest, err);
    if (rc == 0 && iso->config)
        rc = ask_to_open(iso, c, &patience, err);
    if (rc < 0)
        return explain_end(c, rc, err);
    *out = c;
    return 0;
}

/* --- from a manifest to a descriptor --- */

static const char *text_or_null(json_object *obj, const char *key)
{
    const char *text = NULL;

    return json_object_is_type(obj, json_type_object) && rv_json_get_text(obj, key, &text) ? text : NULL;
}

static int read_manifest(struct rv_isolated *iso, rv_err **err)
{
    json_object *list, *manifest = iso->manifest;
    size_t n;

    if (!json_object_is_type(manifest, json_type_object) || !(list = rv_json_get_arr(manifest, "entries")))
        return RV_FAIL(err, RV_E_PLUGIN, "its process sent no manifest");
    n = json_object_array_length(list);
    if (n > RV_CAP_MAX_ENTRIES)
        return RV_FAIL(err, RV_E_PLUGIN, "its list of entries has no end within %d", RV_CAP_MAX_ENTRIES);
    iso->entries = calloc(n + 1, sizeof *iso->entries);
    if (!iso->entries)
        return RV_FAIL(err, RV_E_NOMEM, "read the manifest of a capability");
    for (size_t i = 0; i < n; i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        int64_t kind = 0;

        /* A kind of 0 would end the list early, and then positions here and there were not the same. */
        if (!json_object_is_type(entry, json_type_object) || !rv_json_get_int(entry, "kind", &kind) ||
            kind < RV_CAP_TOOL || kind > RV_PLUGIN_LAST_KIND)
            return RV_FAIL(err, RV_E_PLUGIN, "its manifest has an entry of no kind");
        iso->entries[i] = (struct rv_cap_entry){(int32_t)kind, text_or_null(entry, "name"), text_or_null(entry, "spec"),
                                                kind == RV_CAP_PROMPT || kind == RV_CAP_AGENT ? NULL : never};
    }
    iso->desc = (struct rv_cap_desc){.size = sizeof iso->desc,
                                     .abi = RV_CAP_ABI,
                                     .entry_size = sizeof *iso->entries,
                                     .name = text_or_null(manifest, "name"),
                                     .version = text_or_null(manifest, "version"),
                                     .description = text_or_null(manifest, "description"),
                                     .config_schema = text_or_null(manifest, "config_schema"),
                                     .entries = iso->entries};
    return 0;
}

static struct rv_isolated *isolated_new(const struct rv_plugins *p, const struct rv_capability_config *which)
{
    struct rv_isolated *iso = calloc(1, sizeof *iso);
    pthread_condattr_t attr;

    if (!iso)
        return NULL;
    iso->memory_mb = which->memory_mb ? which->memory_mb : RV_ISOLATED_MEMORY_MB;
    iso->open_files = which->open_files ? which->open_files : RV_ISOLATED_OPEN_FILES;
    pthread_mutex_init(&iso->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&iso->freed, &attr);
    pthread_condattr_destroy(&attr);
    iso->base_dir = rv_str_dup(rv_str_of(p->base_dir));
    return iso;
}

int plugin_isolated_fetch(const struct rv_plugins *p, const struct rv_capability_config *which, struct rv_plugin *pl,
                          const struct rv_cap_desc **out, rv_err **err)
{
    struct rv_isolated *iso = pl->isolated = isolated_new(p, which);
    int rc;

    if (!iso || !iso->base_dir)
        return RV_FAIL(err, RV_E_NOMEM, "start a capability's process");
    iso->owner = pl;
    rc = find_program(p, &iso->program, err);
    if (rc == 0)
        rc = plugin_isolated_start(iso, NULL, &iso->idle, &iso->manifest, err);
    if (rc < 0)
        return rc;
    iso->n_children = 1;
    rc = read_manifest(iso, err);
    *out = &iso->desc;
    return rc;
}

int plugin_isolated_open(struct rv_isolated *iso, rv_buf *config, rv_err **err)
{
    const struct rv_wait patience = {channel_now_us() + (int64_t)LOAD_MS * 1000, NULL};
    struct rv_process *c = iso->idle;
    int rc;

    iso->config = rv_buf_steal(config, NULL);
    if (!iso->config)
        return RV_FAIL(err, RV_E_NOMEM, "keep the configuration of a capability");
    rc = ask_to_open(iso, c, &patience, err);
    if (rc < 0) {
        iso->idle = NULL;
        iso->n_children = 0;
        return explain_end(c, rc, err);
    }
    return 0;
}

void plugin_isolated_free(struct rv_isolated *iso)
{
    if (!iso)
        return;
    dismiss(iso->idle);
    pthread_cond_destroy(&iso->freed);
    pthread_mutex_destroy(&iso->lock);
    json_object_put(iso->manifest);
    free(iso->entries);
    free(iso->config);
    free(iso->base_dir);
    free(iso->program);
    free(iso);
}
