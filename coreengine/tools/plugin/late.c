/* Answers that come late. An entry takes a ticket for its call, returns RV_CAP_LATER, and ends the call by the ticket,
 * from any thread.
 *
 * A ticket is a number that is never given twice, and one list has all tickets of the process. So it does not matter
 * what a plugin does with one: it may answer twice, after the deadline, or after it was closed. The number is that of a
 * call that still waits, or of none. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <stdlib.h>

#define MAX_OPEN 1024 /* tickets that one capability has not answered, those of calls that were given up included */

struct ticket {
    struct ticket *next;
    uint64_t number;
    const struct rv_plugin *owner;
    struct rv_plugin_work *work; /* NULL: its answer is not wanted any more */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below; a host may take its own under it */
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

uint64_t rv_late_take(const struct rv_plugin_entry *e, struct rv_plugin_work *w)
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

void rv_late_return(struct rv_plugin_work *w)
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

void rv_late_forget(struct rv_plugin_work *w)
{
    if (!w->ticket)
        return;
    pthread_mutex_lock(&lock);
    struct ticket *t = *find(w->ticket);
    if (t)
        t->work = NULL;
    pthread_mutex_unlock(&lock);
}

bool rv_late_close(const struct rv_plugin *pl)
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
        w->work.over(&w->work);
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
    int rc = rv_plugin_judge(kind, said, reply, 0, &failure);
    return end(number, rc, reply, failure);
}

int rv_late_reply(uint64_t ticket, const char *json)
{
    rv_buf reply = RV_BUF_INIT(RV_CAP_MAX_REPLY);
    struct rv_plugin_said said = {0};

    RV_IGNORE(rv_plugin_said_reply(&said, &reply, json), "the judge says what is wrong");
    return answer(ticket, &said, &reply);
}

int rv_late_fail(uint64_t ticket, const char *type, const char *message)
{
    rv_buf reply = RV_BUF_INIT(0);
    struct rv_plugin_said said = {0};

    rv_plugin_said_failure(&said, type, message);
    return answer(ticket, &said, &reply);
}

int rv_late_cancelled(uint64_t ticket)
{
    pthread_mutex_lock(&lock);
    const struct ticket *t = *find(ticket);
    const struct rv_plugin_work *w = t ? t->work : NULL;
    bool is_wanted = w && !atomic_load_explicit(&w->work.cancelled, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return !is_wanted;
}
