/* The child's side of `isolation: process`: loads one capability with the loader that the engine has too, says what it
 * brings, and answers one call at a time until the other end of the socket is gone. */
#include "coreengine/tools/plugin/isolated_internal.h"

#include "coreengine/base/base.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1 /* terabytes of address space that are not used */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1 /* as above, for clang */
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW 0 /* RLIMIT_AS can bound the memory of a child */
#endif

#define WATCH_STACK ((size_t)64 << 10) /* bytes of the watching thread's stack: it only sleeps and compares */
#define WATCH_MS    1000               /* between two looks whether the parent is still there */
#define LEAVE_MS    1000               /* to close the capability once the engine is gone */
#define RESERVE     16                 /* the part of the memory limit without which a child takes no further call */

struct host {
    struct rv_channel channel;
    struct rv_plugin *plugin;
    char *base_dir;
    size_t memory; /* bytes; 0: no limit */
    atomic_bool busy;
};
struct host_call {
    struct host *host;
    bool cancelled;
    enum rv_log_level level;
};

/* --- limits, and the end of the engine --- */

static void limit(int which, rlim_t value)
{
    struct rlimit now;

    if (getrlimit(which, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
        value = now.rlim_max;
    setrlimit(which, &(struct rlimit){value, value});
}

/* A plugin function that does not return cannot notice that the socket was closed; this thread does. */
static void *watch(void *self)
{
    struct host *h = self;
    struct pollfd p = {.fd = h->channel.fd, .events = POLLRDHUP};
    struct timespec rest = {LEAVE_MS / 1000, 0};

    while (poll(&p, 1, WATCH_MS) <= 0) /* a socket that a plugin closed stays whole for those who wait for it */
        continue;
    if (!atomic_load(&h->busy))
        nanosleep(&rest, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static int start_watch(struct host *h, rv_err **err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int failed = pthread_attr_init(&attr);

    if (failed)
        return RV_FAIL(err, RV_E_NOMEM, "watch the engine");
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, HAS_SHADOW ? WATCH_STACK * 16 : WATCH_STACK);
    failed = pthread_create(&thread, &attr, watch, h);
    pthread_attr_destroy(&attr);
    return failed ? RV_FAIL_START(err, failed, "watch the engine: start a thread") : 0;
}

static int settle(struct host *h, json_object *head, rv_err **err)
{
    int64_t memory_mb = 0, open_files = 0;
    bool with_parent = rv_json_bool_or(head, "with_parent", false);

    if (with_parent)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CORE, 0);
    if (rv_json_get_int(head, "open_files", &open_files) && open_files > 0)
        limit(RLIMIT_NOFILE, (rlim_t)open_files);
    if (!HAS_SHADOW && rv_json_get_int(head, "memory_mb", &memory_mb) && memory_mb > 0) {
        h->memory = (size_t)memory_mb << 20;
        limit(RLIMIT_AS, h->memory);
    }
    return start_watch(h, err);
}

/* A capability that has eaten what it may have would fail every later call: the engine takes another child then. */
static bool is_spent(const struct host *h)
{
    int fd = fcntl(h->channel.fd, F_DUPFD_CLOEXEC, 0);
    void *reserve;

    if (fd < 0)
        return true;
    close(fd);
    if (!h->memory)
        return false;
    reserve = mmap(NULL, h->memory / RESERVE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserve == MAP_FAILED)
        return true;
    munmap(reserve, h->memory / RESERVE);
    return false;
}

/* --- loading --- */

static void write_manifest(const struct rv_plugin *pl, rv_jw *w)
{
    const char *row = (const char *)pl->desc.entries;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", pl->name);
    rv_jw_kv_text(w, "version", pl->version);
    rv_jw_kv_text(w, "description", pl->description);
    if (pl->desc.config_schema)
        rv_jw_kv_text(w, "config_schema", pl->desc.config_schema);
    rv_jw_key(w, "entries");
    rv_jw_arr(w);
    for (size_t i = 0; i < pl->n_rows; i++) {
        struct rv_cap_entry entry;
        memcpy(&entry, row + i * pl->desc.entry_size, sizeof entry);
        rv_jw_obj(w);
        rv_jw_kv_int(w, "kind", entry.kind);
        rv_jw_kv_text(w, "name", entry.name);
        rv_jw_kv_text(w, "spec", entry.spec);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static int send_error(struct host *h, rv_err *fault, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(RV_CHANNEL_MAX_HEAD);
    rv_jw w = rv_jw_on(&head);

    rv_jw_obj(&w);
    channel_write_err(&w, fault);
    rv_jw_obj_end(&w);
    rv_err_free(fault);
    return channel_send(&h->channel, &head, (rv_str){NULL, 0}, NULL, err);
}

static int send_done(struct host *h, const char *key, rv_str body, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(256);
    rv_jw w = rv_jw_on(&head);

    rv_jw_obj(&w);
    rv_jw_kv_bool(&w, key, true);
    rv_jw_obj_end(&w);
    return channel_send(&h->channel, &head, body, NULL, err);
}

static int read_plugin(struct host *h, json_object *head, rv_buf *manifest, rv_err **err)
{
    const struct rv_cap_desc *desc = NULL;
    rv_jw w = rv_jw_on(manifest);
    int rc;

    const char *path = rv_json_text_or(head, "load", "");
    const char *base_dir = rv_json_text_or(head, "base_dir", "");
    h->plugin = calloc(1, sizeof *h->plugin);
    h->base_dir = rv_str_dup(rv_str_of(base_dir));
    if (!h->plugin || !h->base_dir || !(h->plugin->path = rv_str_dup(rv_str_of(path))))
        return RV_FAIL(err, RV_E_NOMEM, "load a capability");
    if ((rc = settle(h, head, err)) < 0 || (rc = plugin_fetch(h->plugin, &desc, err)) < 0 ||
        (rc = plugin_check_desc(desc, h->plugin, err)) < 0 || (rc = plugin_check_entries(h->plugin, err)) < 0)
        return rc;
    write_manifest(h->plugin, &w);
    return rv_buf_check(manifest, "manifest", err);
}

static int load(struct host *h, json_object *head, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf manifest = RV_BUF_INIT(RV_CHANNEL_MAX_MANIFEST);
    rv_err *fault = NULL;

    return read_plugin(h, head, &manifest, &fault) < 0 ? send_error(h, fault, err)
                                                       : send_done(h, "manifest", rv_buf_str(&manifest), err);
}

static int open_it(struct host *h, rv_str config, rv_err **err)
{
    char *text = rv_str_dup(config);
    rv_err *fault = NULL;
    int rc = text ? plugin_open(h->plugin, h->base_dir, text, &fault)
                  : RV_FAIL(&fault, RV_E_NOMEM, "read the configuration of a capability");

    free(text);
    return rc < 0 ? send_error(h, fault, err) : send_done(h, "opened", (rv_str){NULL, 0}, err);
}

/* --- calls --- */

/* While a call runs the engine has one thing to say, if any; its end is the same to us. */
static bool is_cancelled(void *self)
{
    struct host_call *call = self;

    call->cancelled = call->cancelled || channel_is_ready(&call->host->channel);
    return call->cancelled;
}

static void send_log(void *self, enum rv_log_level level, const char *message)
{
    const struct host_call *call = self;
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(RV_CHANNEL_MAX_HEAD);
    rv_jw w = rv_jw_on(&head);
    char text[RV_PLUGIN_MAX_TEXT + 1];

    if (level < call->level)
        return;
    plugin_clean(text, sizeof text, message);
    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "log", level);
    rv_jw_kv_text(&w, "text", text);
    rv_jw_obj_end(&w);
    RV_IGNORE(channel_send(&call->host->channel, &head, (rv_str){NULL, 0}, NULL, NULL),
              "a log line is worth no failure");
}

/* Blocks while the engine is not ready for more: what a provider hands out never piles up. */
static bool send_piece(void *self, rv_str json)
{
    const struct host_call *call = self;
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(64);

    rv_buf_puts(&head, "{\"emit\":true}");
    return channel_send(&call->host->channel, &head, json, NULL,
                        RV_CODE_ONLY("true tells the function to stop; the engine notices that the channel is gone")) <
           0;
}

static void send_progress(void *self, const struct rv_tool_progress *p)
{
    const struct host_call *call = self;
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(256);
    rv_jw w = rv_jw_on(&head);

    rv_jw_obj(&w);
    rv_jw_key(&w, "progress");
    rv_jw_double(&w, p->progress);
    rv_jw_key(&w, "total");
    rv_jw_double(&w, p->total);
    rv_jw_obj_end(&w);
    RV_IGNORE(channel_send(&call->host->channel, &head, p->text, NULL, NULL), "progress is worth no failure");
}

static int send_ask(struct host *h, const char *service, rv_str args, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(256 + 6 * RV_SERVICE_MAX_NAME);
    rv_jw w = rv_jw_on(&head);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "ask", service);
    rv_jw_obj_end(&w);
    return channel_send(&h->channel, &head, args, NULL, err);
}

/* What the engine says while it is asked: the answer, why there is none, or that nothing is wanted any more. After the
 * latter no answer follows. */
static int hear_answer(struct host_call *call, const struct rv_frame *frame, rv_buf *answer, rv_err **err)
{
    json_object *error = NULL;

    if (json_object_object_get_ex(frame->head, "error", &error))
        return channel_read_err(error, err);
    if (json_object_object_get_ex(frame->head, "answered", NULL)) {
        rv_buf_add_str(answer, frame->body);
        return rv_buf_check(answer, "answer of a service", err);
    }
    call->cancelled = true;
    return RV_FAIL(err, RV_E_CANCELLED, "the answer of this call is not wanted any more");
}

static int ask(void *self, const char *service, rv_str args, rv_buf *answer, rv_err **err)
{
    struct host_call *call = self;
    struct rv_frame frame;

    if (is_cancelled(call))
        return RV_FAIL(err, RV_E_CANCELLED, "the answer of this call is not wanted any more");
    int rc = send_ask(call->host, service, args, err);
    if (rc == 0)
        rc = channel_receive(&call->host->channel, &frame, NULL, err);
    if (rc < 0)
        return rc;
    rc = hear_answer(call, &frame, answer, err);
    json_object_put(frame.head);
    return rc;
}

static int send_said(struct host *h, const struct rv_plugin_said *said, const rv_buf *reply, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(RV_CHANNEL_MAX_HEAD);
    rv_jw w = rv_jw_on(&head);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "replies", said->n_replies);
    rv_jw_kv_int(&w, "failures", said->n_failures);
    rv_jw_kv_int(&w, "returned", said->returned);
    if (said->no_text)
        rv_jw_kv_bool(&w, "no_text", true);
    if (said->too_large)
        rv_jw_kv_bool(&w, "too_large", true);
    if (said->piece_fault != RV_PIECE_GOOD)
        rv_jw_kv_int(&w, "piece_fault", said->piece_fault);
    if (reply->rc < 0)
        rv_jw_kv_bool(&w, "no_memory", true);
    if (is_spent(h))
        rv_jw_kv_bool(&w, "spent", true);
    if (said->n_failures > 0) {
        rv_jw_kv_text(&w, "type", said->type);
        rv_jw_kv_text(&w, "message", said->message);
    }
    rv_jw_obj_end(&w);
    return channel_send(&h->channel, &head, rv_buf_str(reply), NULL, err);
}

static const struct rv_plugin_entry *entry_of(const struct host *h, json_object *head)
{
    int64_t at = -1;

    return h->plugin && h->plugin->is_open && rv_json_get_int(head, "call", &at) && at >= 0 &&
                   (size_t)at < h->plugin->n_entries && h->plugin->entries[at].fn
               ? &h->plugin->entries[at]
               : NULL;
}

static int call(struct host *h, const struct rv_plugin_entry *e, const struct rv_frame *frame, rv_err **err)
{
    struct host_call state = {.host = h};
    const struct rv_plugin_callbacks callbacks = {is_cancelled, send_log, send_piece, send_progress, ask, &state};
    struct rv_plugin_call view = {.kind = e->kind,
                                  .run_id = rv_json_text_or(frame->head, "run", ""),
                                  .stage = rv_json_text_or(frame->head, "stage", ""),
                                  .user_id = rv_json_text_or(frame->head, "user", ""),
                                  .session_id = rv_json_text_or(frame->head, "session", ""),
                                  .idempotency_key = rv_json_text_or(frame->head, "key", ""),
                                  .context = rv_json_text_or(frame->head, "context", "")};
    RV_AUTO(rv_buf_fini) rv_buf reply = RV_BUF_INIT(RV_CAP_MAX_REPLY);
    struct rv_plugin_said said = {0};
    char *args = rv_str_dup(frame->body);

    if (!args)
        return RV_FAIL(err, RV_E_NOMEM, "read the arguments of a call");
    view.timeout_ms = rv_json_int_or(frame->head, "timeout_ms", view.timeout_ms);
    state.cancelled = rv_json_bool_or(frame->head, "cancelled", state.cancelled);
    state.level = (enum rv_log_level)rv_json_int_or(frame->head, "log", RV_LOG_OFF);
    atomic_store(&h->busy, true);
    plugin_run(e, &view, args, &callbacks, &reply, &said);
    free(args);
    int rc = send_said(h, &said, &reply, err);
    atomic_store(&h->busy, false);
    return rc;
}

static int answer(struct host *h, const struct rv_frame *frame, rv_err **err)
{
    const struct rv_plugin_entry *e;
    json_object *what;

    if (json_object_object_get_ex(frame->head, "cancel", &what))
        return 0; /* the call that was meant has been answered */
    if (!h->plugin && json_object_object_get_ex(frame->head, "load", &what))
        return load(h, frame->head, err);
    if (h->plugin && h->plugin->name && !h->plugin->is_open && json_object_object_get_ex(frame->head, "open", &what))
        return open_it(h, frame->body, err);
    e = entry_of(h, frame->head);
    return e ? call(h, e, frame, err) : RV_FAIL(err, RV_E_STATE, "a message that does not fit");
}

int rv_plugin_serve(int fd)
{
    static struct host h; /* the watch looks at it until the process is gone */
    struct rv_frame frame;
    int rc;

    signal(SIGINT, SIG_IGN); /* whether a run ends is the engine's to decide */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    /* A program that the capability starts is not part of the engine: it gets neither the socket nor the mark of the
     * engine's life, which a daemon would otherwise hold forever. */
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd + 1, F_SETFD, FD_CLOEXEC);
    channel_init(&h.channel, fd, RV_CHANNEL_MAX_ARGS);
    while ((rc = channel_receive(
                &h.channel, &frame, NULL,
                RV_CODE_ONLY("the code is the exit status; the engine reports how the process ended"))) == 0) {
        rc = answer(&h, &frame, RV_CODE_ONLY("the code is the exit status; the engine reports how the process ended"));
        json_object_put(frame.head);
        if (rc < 0)
            break;
    }
    plugin_free(h.plugin);
    free(h.base_dir);
    /* The socket stays open: the thread that watches it still does. */
    rv_buf_fini(&h.channel.in);
    return rc == RV_E_IO ? 0 : 1;
}
