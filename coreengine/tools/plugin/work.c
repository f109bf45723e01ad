/* Calls as work for threads that may wait, and answers that come late.
 *
 * An entry that answers later takes a ticket for its call, returns RV_CAP_LATER, and ends the call by the ticket, from
 * any thread. A ticket is a number that is never given twice, and one list has all tickets of the process. So it does
 * not matter what a plugin does with one: it may answer twice, after the deadline, or after it was closed. The number
 * is that of a call that still waits, or of none. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#define MAX_OPEN 1024 /* tickets that one capability has not answered: one that forgets them must not fill memory */

struct ticket {
    struct ticket *next;
    uint64_t number;
    const struct rv_plugin *owner;
    struct rv_plugin_work *work; /* NULL: its answer is not wanted any more */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the tickets; before engine/workers.c */
static struct ticket *tickets;
static uint64_t last_number;

static struct ticket **find(uint64_t number)
{
    struct ticket **at = &tickets;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static size_t count(const struct rv_plugin *pl)
{
    size_t n = 0;

    for (const struct ticket *t = tickets; t; t = t->next)
        n += t->owner == pl;
    return n;
}

uint64_t plugin_late_take(const struct rv_plugin_entry *e, struct rv_plugin_work *w)
{
    if (!w || e->kind == RV_NAME_PROVIDER || w->ticket)
        return w ? w->ticket : 0;
    struct ticket *t = calloc(1, sizeof *t);
    if (!t)
        return 0;
    pthread_mutex_lock(&lock);
    if (count(e->owner) < MAX_OPEN) {
        *t = (struct ticket){.next = tickets, .number = ++last_number, .owner = e->owner, .work = w};
        tickets = t;
        w->ticket = t->number;
        t = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(t);
    return w->ticket;
}

void plugin_late_return(struct rv_plugin_work *w)
{
    if (!w || !w->ticket)
        return;
    pthread_mutex_lock(&lock);
    struct ticket **at = find(w->ticket), *t = *at;
    if (t)
        *at = t->next;
    pthread_mutex_unlock(&lock);
    free(t);
}

/* Its answer is not wanted any more. */
static void forget(struct rv_plugin_work *w)
{
    if (!w->ticket)
        return;
    pthread_mutex_lock(&lock);
    struct ticket *t = *find(w->ticket);
    if (t)
        t->work = NULL;
    pthread_mutex_unlock(&lock);
}

bool plugin_late_any(const struct rv_plugin *pl)
{
    pthread_mutex_lock(&lock);
    bool any = count(pl) > 0;
    pthread_mutex_unlock(&lock);
    return any;
}

bool plugin_late_close(const struct rv_plugin *pl)
{
    bool any = false;

    pthread_mutex_lock(&lock);
    for (struct ticket **at = &tickets; *at;) {
        struct ticket *t = *at;
        if (t->owner != pl) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        free(t);
        any = true;
    }
    pthread_mutex_unlock(&lock);
    return any;
}

/* --- what the plugin calls --- */

/* Takes the texts. Gives 0, or 1 when the call does not wait. */
static int end(uint64_t number, int rc, rv_buf *reply, rv_err *failure)
{
    pthread_mutex_lock(&lock);
    struct ticket **at = find(number), *t = *at;
    struct rv_plugin_work *w = t ? t->work : NULL;
    if (t)
        *at = t->next;
    if (w) {
        if (rc < 0 && rc != RV_E_TOOL)
            rc = RV_WRAP(&failure, rc, "%s \"%s\" of capability \"%s\"", w->work.kind, w->work.name, t->owner->name);
        w->late_failure = failure;
        w->late_reply = *reply;
        failure = NULL;
        *reply = RV_BUF_INIT(0);
        w->work.finished(&w->work);
    }
    pthread_mutex_unlock(&lock);
    free(t);
    rv_err_free(failure);
    rv_buf_fini(reply);
    return w == NULL;
}

/* The answer is judged on the thread that brings it, and before that it is seen whether it is wanted. */
static int answer(uint64_t number, struct rv_plugin_said *said, rv_buf *reply)
{
    rv_err *failure = NULL;

    pthread_mutex_lock(&lock);
    const struct ticket *t = *find(number);
    enum rv_name_kind kind = t && t->work ? t->work->call.kind : RV_NAME_TOOL;
    pthread_mutex_unlock(&lock);
    int rc = plugin_judge(kind, said, reply, 0, &failure);
    return end(number, rc, reply, failure);
}

static int late_reply(uint64_t ticket, const char *json)
{
    rv_buf reply = RV_BUF_INIT(RV_CAP_MAX_REPLY);
    struct rv_plugin_said said = {0};

    RV_IGNORE(plugin_said_reply(&said, &reply, json), "the judge says what is wrong");
    return answer(ticket, &said, &reply);
}

static int late_fail(uint64_t ticket, const char *type, const char *message)
{
    rv_buf reply = RV_BUF_INIT(0);
    struct rv_plugin_said said = {0};

    plugin_said_failure(&said, type, message);
    return answer(ticket, &said, &reply);
}

static int late_cancelled(uint64_t ticket)
{
    pthread_mutex_lock(&lock);
    const struct ticket *t = *find(ticket);
    const struct rv_plugin_work *w = t ? t->work : NULL;
    bool is_wanted = w && !atomic_load_explicit(&w->work.cancelled, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return !is_wanted;
}

void plugin_late_offer(struct rv_cap_host *host)
{
    host->late_reply = late_reply;
    host->late_fail = late_fail;
    host->late_cancelled = late_cancelled;
}

/* --- work --- */

static struct rv_llm_reply *provider_reply(const struct rv_plugin_work *w)
{
    struct rv_llm_reply *llm = calloc(1, sizeof *llm);
    rv_err *err = NULL;

    if (!llm)
        return NULL;
    if (w->failure) {
        rv_plugin_make_llm_failure(w->failure, llm);
    } else if (rv_plugin_read_llm_reply(rv_buf_str(&w->reply), llm, &err) < 0) {
        rv_plugin_make_llm_failure(err, llm);
        rv_err_free(err);
    }
    return llm;
}

static bool run(struct rv_tool_work *work)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    int rc = rv_plugins_call(w->plugins, &w->call, &w->reply, &w->failure);
    w->is_late = rc == RV_PLUGIN_LATE;
    if (w->is_late)
        return false;
    if (w->call.kind == RV_NAME_PROVIDER)
        w->llm = provider_reply(w);
    else if (w->call.kind == RV_NAME_TOOL && rc == 0)
        w->reports_error = rv_tool_reply_reports_error(rv_buf_str(&w->reply));
    return true;
}

static void work_done(struct rv_tool_work *work)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    if (w->is_late) {
        w->reply = w->late_reply;
        w->failure = w->late_failure;
        w->late_reply = RV_BUF_INIT(0);
        w->late_failure = NULL;
        w->reports_error =
            w->call.kind == RV_NAME_TOOL && !w->failure && rv_tool_reply_reports_error(rv_buf_str(&w->reply));
    }
    w->done(w);
}

static void free_work(struct rv_tool_work *work)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    forget(w);
    rv_buf_fini(&w->reply);
    rv_err_free(w->failure);
    rv_buf_fini(&w->late_reply);
    rv_err_free(w->late_failure);
    if (w->llm)
        rv_llm_reply_fini(w->llm);
    free(w->llm);
    free(w);
}

static int ask_host(void *self, const struct rv_service_ask *ask, rv_buf *answer, rv_err **err)
{
    struct rv_plugin_work *w = self;

    if (!w->work.ask || w->work.never_blocks)
        return RV_FAIL(err, RV_E_STATE, "service \"%s\": this call is made where nothing can be waited for",
                       ask->service);
    return w->work.ask(&w->work, ask, answer, err);
}

static void tell_host(void *self, const struct rv_tool_progress *p)
{
    struct rv_plugin_work *w = self;

    if (w->work.send_progress)
        w->work.send_progress(&w->work, p);
}

static void told(struct rv_tool_work *work, const struct rv_tool_progress *p)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    if (w->on_progress)
        w->on_progress(w, p);
}

/* A text that the work keeps, behind the last one. */
static const char *keep(char **at, rv_str text)
{
    char *copy = *at;

    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *at = copy + text.len + 1;
    return copy;
}

/* One block: the work, and behind it the texts of the call. */
struct rv_plugin_work *rv_plugin_work_new(rv_plugins *p, const struct rv_plugin_call *call,
                                          void (*done)(struct rv_plugin_work *w), void *self)
{
    const char *ids[] = {call->name,       call->run_id,          call->stage,  call->user_id,
                         call->session_id, call->idempotency_key, call->context};
    const struct rv_plugin_entry *e = plugin_find(p, call->kind, rv_str_of(call->name));
    size_t size = sizeof(struct rv_plugin_work) + call->args.len + 1;

    for (size_t i = 0; i < RV_COUNT(ids); i++)
        size += rv_str_of(ids[i]).len + 1; /* NULL is "" */
    struct rv_plugin_work *w = malloc(size);
    if (!w)
        return NULL;
    char *at = (char *)(w + 1);
    *w = (struct rv_plugin_work){.work = {.run = run, .on_progress = told, .done = work_done, .free = free_work},
                                 .done = done,
                                 .self = self,
                                 .plugins = p,
                                 .call = *call,
                                 .reply = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    for (size_t i = 0; i < RV_COUNT(ids); i++)
        ids[i] = keep(&at, rv_str_of(ids[i]));
    w->call.name = ids[0];
    w->call.run_id = ids[1];
    w->call.stage = ids[2];
    w->call.user_id = ids[3];
    w->call.session_id = ids[4];
    w->call.idempotency_key = ids[5];
    w->call.context = ids[6];
    w->call.args.ptr = keep(&at, call->args);
    w->call.cancelled = &w->work.cancelled;
    w->call.work = w->call.emit_self = w->call.ask_self = w->call.progress_self = w;
    w->call.on_ask = ask_host;
    w->call.on_progress = tell_host;
    if (call->kind != RV_NAME_PROVIDER)
        w->call.on_emit = NULL;
    atomic_init(&w->work.cancelled, false);
    w->work.kind = rv_name_kind_text(call->kind);
    w->work.run_id = w->call.run_id;
    w->work.call_id = call->call_id;
    w->work.name = w->call.name;
    w->work.never_blocks = e && e->never_blocks && !e->owner->isolated; /* its process may be busy, or has to start */
    return w;
}
