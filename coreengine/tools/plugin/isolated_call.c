/* One call in a child: an idle one, a new one, or the next one that is free. A child that dies, hangs or breaks the
 * protocol costs the call that it had, nothing else; how soon another one is started depends on how many died in a
 * row. */
#include "coreengine/base/base.h"
#include "coreengine/tools/plugin/isolated_internal.h"

#include <stdlib.h>
#include <string.h>

#define GRACE_US         (50 * RV_US_PER_MS)  /* from "not wanted any more" to the end by force */
#define FIRST_BACKOFF_US (100 * RV_US_PER_MS) /* a tenth of a second, until a process that ended is started again */
#define MAX_BACKOFF_US   (5 * RV_US_PER_S)    /* five seconds: a process that always ends costs little */

/* --- who has which child --- */

static void leave(struct rv_isolated *iso)
{
    pthread_mutex_lock(&iso->lock);
    iso->n_children--;
    pthread_cond_signal(&iso->freed);
    pthread_mutex_unlock(&iso->lock);
}

static void give_back(struct rv_isolated *iso, struct rv_process *c)
{
    pthread_mutex_lock(&iso->lock);
    iso->n_deaths = 0;
    c->next = iso->idle;
    iso->idle = c;
    pthread_cond_signal(&iso->freed);
    pthread_mutex_unlock(&iso->lock);
}

/* The first one after a good answer is replaced at once, the next ones later and later. */
static void count_death(struct rv_isolated *iso)
{
    int64_t delay_us = 0;

    pthread_mutex_lock(&iso->lock);
    if (++iso->n_deaths > 1) {
        delay_us = FIRST_BACKOFF_US;
        for (int i = 2; i < iso->n_deaths && delay_us < MAX_BACKOFF_US; i++)
            delay_us *= 2;
    }
    iso->not_before_us = channel_now_us() + (delay_us < MAX_BACKOFF_US ? delay_us : MAX_BACKOFF_US);
    iso->n_children--;
    pthread_cond_signal(&iso->freed);
    pthread_mutex_unlock(&iso->lock);
}

/* Wait until another call gives back a child; the lock is held. */
static int wait_for_room(struct rv_isolated *iso, const struct rv_wait *wait, rv_err **err)
{
    int64_t left_us = RV_NEVER;

    if (wait->cancelled && atomic_load_explicit(wait->cancelled, memory_order_relaxed))
        return RV_FAIL(err, RV_E_CANCELLED, "it was cancelled while %d other calls ran", RV_ISOLATED_MAX_CHILDREN);
    if (wait->until_us != RV_NEVER)
        left_us = wait->until_us - channel_now_us();
    if (left_us <= 0)
        return RV_FAIL(err, RV_E_TIMEOUT, "its turn did not come in time: %d other calls ran",
                       RV_ISOLATED_MAX_CHILDREN);
    if (left_us > RV_CHANNEL_SLICE_MS * 1000)
        left_us = RV_CHANNEL_SLICE_MS * 1000;
    const struct timespec until = rv_deadline_in(left_us);
    pthread_cond_timedwait(&iso->freed, &iso->lock, &until);
    return 0;
}

/* *out stays NULL when one has to be started; its place is taken then. */
static int take_or_reserve(struct rv_isolated *iso, const struct rv_wait *wait, struct rv_process **out, rv_err **err)
{
    int rc = 0;

    pthread_mutex_lock(&iso->lock);
    while (rc == 0 && !iso->idle && iso->n_children >= RV_ISOLATED_MAX_CHILDREN)
        rc = wait_for_room(iso, wait, err);
    if (rc == 0 && iso->idle) {
        *out = iso->idle;
        iso->idle = (*out)->next;
        (*out)->next = NULL;
    } else if (rc == 0) {
        int64_t left_us = iso->not_before_us - channel_now_us();
        if (iso->n_deaths > 1 && left_us > 0)
            rc = RV_FAIL(err, RV_E_PLUGIN, "its process died %d times in a row and is not started again for %lld ms",
                         iso->n_deaths, (long long)(left_us + 999) / 1000);
        else
            iso->n_children++;
    }
    pthread_mutex_unlock(&iso->lock);
    return rc;
}

static int take(struct rv_isolated *iso, const struct rv_wait *wait, struct rv_process **out, rv_err **err)
{
    int rc;

    for (;;) {
        *out = NULL;
        rc = take_or_reserve(iso, wait, out, err);
        if (rc < 0)
            return rc;
        if (!*out)
            break;
        if (!channel_is_ready(&(*out)->channel))
            return 0;
        plugin_process_kill(*out); /* nothing is due from an idle child: it died, or talks out of turn */
        leave(iso);
    }
    rc = plugin_isolated_start(iso, wait, out, NULL, err);
    if (rc == RV_E_CANCELLED || rc == RV_E_TIMEOUT || rc == RV_E_NOMEM || rc == RV_E_IO || rc == RV_E_NOT_FOUND ||
        rc == RV_E_DENIED || rv_code_is_scarce(rc)) /* no process was there that could die */
        leave(iso);
    else if (rc < 0)
        count_death(iso);
    return rc;
}

/* --- what is said --- */

static int send_call(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, struct rv_process *c,
                     const struct rv_wait *wait, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(RV_CHANNEL_MAX_HEAD);
    rv_jw w = rv_jw_on(&head);
    enum rv_log_level level = RV_LOG_TRACE;

    while (level < RV_LOG_OFF && !rv_log_is_on(e->owner->log, level))
        level++;
    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "call", e - e->owner->entries);
    rv_jw_kv_text(&w, "run", call->run_id ? call->run_id : "");
    rv_jw_kv_text(&w, "stage", call->stage ? call->stage : "");
    rv_jw_kv_text(&w, "user", call->user_id ? call->user_id : "");
    rv_jw_kv_text(&w, "session", call->session_id ? call->session_id : "");
    rv_jw_kv_text(&w, "key", call->idempotency_key ? call->idempotency_key : "");
    if (call->context)
        rv_jw_kv_text(&w, "context", call->context);
    rv_jw_kv_int(&w, "timeout_ms", call->timeout_ms);
    rv_jw_kv_int(&w, "log", level);
    if (call->cancelled && atomic_load_explicit(call->cancelled, memory_order_relaxed))
        rv_jw_kv_bool(&w, "cancelled", true);
    rv_jw_obj_end(&w);
    return channel_send(&c->channel, &head, call->args.len ? call->args : RV_STR_LIT("{}"), wait, err);
}

static int count_of(json_object *head, const char *key)
{
    int64_t n = rv_json_int_or(head, key, 0);

    return n < INT32_MIN || n > INT32_MAX ? 1 : (int)n;
}

static bool flag_of(json_object *head, const char *key)
{
    bool yes = false;

    return rv_json_get_bool(head, key, &yes) && yes;
}

static int read_said(json_object *head, struct rv_plugin_said *said, bool *spent, rv_err **err)
{
    const char *type = NULL, *message = NULL;
    int n_failures = count_of(head, "failures"), fault;

    if (flag_of(head, "no_memory"))
        return RV_FAIL(err, RV_E_PLUGIN, "its process had no memory for the answer");
    said->n_replies = count_of(head, "replies");
    said->returned = count_of(head, "returned");
    said->no_text = flag_of(head, "no_text");
    said->too_large = flag_of(head, "too_large");
    fault = count_of(head, "piece_fault");
    said->piece_fault = fault > RV_PIECE_GOOD && fault < RV_N_PIECE_FAULTS ? (enum rv_piece_fault)fault : RV_PIECE_GOOD;
    *spent = flag_of(head, "spent");
    if (n_failures > 0) {
        type = rv_json_text_or(head, "type", NULL);
        message = rv_json_text_or(head, "message", NULL);
        plugin_said_failure(said, type, message);
    }
    return 0;
}

/* One call while it is under way, as this side sees it. */
struct exchange {
    const struct rv_plugin_entry *entry;
    struct rv_process *child;
    struct rv_plugin_pieces *pieces;
    size_t emitted; /* bytes of all pieces */
    rv_buf *out;
    struct rv_plugin_said *said;
    int n_asks;
    bool told;  /* the child knows that nothing more is wanted */
    bool spent; /* it takes no further call */
};

static void pass_on_log(const struct exchange *t, json_object *head, int64_t level)
{
    const char *text = rv_json_text_or(head, "text", "");

    plugin_log(t->entry, t->pieces->call,
               level < RV_LOG_TRACE || level > RV_LOG_ERROR ? RV_LOG_ERROR : (enum rv_log_level)level, text);
}

static int tell_enough(struct exchange *t, const struct rv_wait *wait, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(64);

    t->told = true;
    rv_buf_puts(&head, "{\"cancel\":true}");
    return channel_send(&t->child->channel, &head, (rv_str){NULL, 0}, wait, err);
}

/* The host in the child keeps the limit by itself: a piece beyond it is not the host's. */
static int take_piece(struct exchange *t, rv_str json, const struct rv_wait *wait, rv_err **err)
{
    bool enough;

    if (t->entry->kind != RV_NAME_PROVIDER)
        return RV_FAIL(err, RV_E_PLUGIN, "its process sent what is not an answer");
    if (json.len > RV_CAP_MAX_REPLY - t->emitted)
        return plugin_pieces_fail(RV_PIECE_LARGE, err);
    t->emitted += json.len;
    enough = plugin_piece(t->pieces, json);
    return enough && !t->told ? tell_enough(t, wait, err) : 0;
}

/* What it says is cleaned once more: a child is not trusted. */
static int take_progress(const struct exchange *t, json_object *head, rv_str text, rv_err **err)
{
    const struct rv_plugin_call *call = t->pieces->call;
    char words[RV_PLUGIN_MAX_TEXT + 1];
    json_object *done = NULL, *total = NULL;

    json_object_object_get_ex(head, "progress", &done);
    json_object_object_get_ex(head, "total", &total);
    if (t->entry->kind != RV_NAME_TOOL || !json_object_is_type(done, json_type_double) ||
        !json_object_is_type(total, json_type_double) || text.len > RV_PLUGIN_MAX_TEXT)
        return RV_FAIL(err, RV_E_PLUGIN, "its process sent what is not an answer");
    RV_AUTO(rv_buf_fini) rv_buf copy = RV_BUF_INIT(RV_PLUGIN_MAX_TEXT);
    rv_buf_add_str(&copy, text);
    plugin_clean(words, sizeof words, rv_buf_cstr(&copy));
    const struct rv_tool_progress p = {json_object_get_double(done), json_object_get_double(total), rv_str_of(words)};
    if (call->on_progress && !t->told)
        call->on_progress(call->progress_self, &p);
    return 0;
}

static int send_answer(struct exchange *t, const rv_buf *answer, const rv_err *why, const struct rv_wait *wait,
                       rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(RV_CHANNEL_MAX_HEAD);
    rv_jw w = rv_jw_on(&head);

    rv_jw_obj(&w);
    if (why)
        channel_write_err(&w, why);
    else
        rv_jw_kv_bool(&w, "answered", true);
    rv_jw_obj_end(&w);
    return channel_send(&t->child->channel, &head, why ? (rv_str){NULL, 0} : rv_buf_str(answer), wait, err);
}

/* The child waits for the answer, and is not read meanwhile. */
static int take_ask(struct exchange *t, const char *service, rv_str args, const struct rv_wait *wait, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf answer = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    rv_err *why = NULL;

    if (t->told) /* it asked before it knew */
        return 0;
    if (++t->n_asks > RV_CAP_MAX_ASKS || strlen(service) > RV_SERVICE_MAX_NAME)
        return RV_FAIL(err, RV_E_PLUGIN, "its process asks more than %d times, or for a name of more than %d bytes",
                       RV_CAP_MAX_ASKS, RV_SERVICE_MAX_NAME);
    int rc = plugin_pass_on(
        t->entry, t->pieces->call,
        &(const struct rv_plugin_request){.service = service, .args = args, .until_us = wait->until_us}, &answer, &why);
    if (rc == 0)
        rc = rv_buf_check(&answer, "answer of a service", &why);
    rc = send_answer(t, &answer, rc < 0 ? why : NULL, wait, err);
    rv_err_free(why);
    return rc;
}

/* What may come any number of times. 1: it was such a message. */
static int hear_on_the_way(struct exchange *t, const struct rv_frame *frame, const struct rv_wait *wait, rv_err **err)
{
    const char *service;
    int64_t level = 0;
    int rc = 0;

    if (rv_json_get_int(frame->head, "log", &level))
        pass_on_log(t, frame->head, level);
    else if (flag_of(frame->head, "emit"))
        rc = take_piece(t, frame->body, wait, err);
    else if (json_object_object_get_ex(frame->head, "progress", NULL))
        rc = take_progress(t, frame->head, frame->body, err);
    else if (rv_json_get_text(frame->head, "ask", &service))
        rc = take_ask(t, service, frame->body, wait, err);
    else
        return 0;
    if (rc == 0) /* a child that talks without a pause has no longer than one that is silent */
        rc = channel_may_wait(wait, err);
    return rc < 0 ? rc : 1;
}

static int hear_answer(struct exchange *t, const struct rv_frame *frame, rv_err **err)
{
    int rc;

    if (!json_object_object_get_ex(frame->head, "replies", NULL))
        return RV_FAIL(err, RV_E_PLUGIN, "its process sent what is not an answer");
    rc = read_said(frame->head, t->said, &t->spent, err);
    if (rc == 0)
        rv_buf_add_str(t->out, frame->body);
    return rc;
}

/* Log lines, pieces and progress, then the answer. */
static int hear(struct exchange *t, const struct rv_wait *wait, rv_err **err)
{
    struct rv_frame frame;
    int rc;

    do {
        rc = channel_receive(&t->child->channel, &frame, wait, err);
        if (rc < 0)
            return rc;
        rc = hear_on_the_way(t, &frame, wait, err);
        if (rc == 0)
            rc = hear_answer(t, &frame, err);
        json_object_put(frame.head);
    } while (rc > 0);
    return rc;
}

/* The answer is not wanted any more: say so, and give the function a moment to come back. True: it did. */
static bool comes_back(struct exchange *t)
{
    const struct rv_wait grace = {channel_now_us() + GRACE_US, NULL};

    t->pieces->enough = true;
    return (t->told ||
            tell_enough(t, &grace, RV_CODE_ONLY("a process that does not come back is ended, and told")) == 0) &&
           hear(t, &grace, RV_CODE_ONLY("a process that does not come back is ended, and told")) == 0;
}

static int fail_dead(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, struct rv_process *c,
                     rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf how = RV_BUF_INIT(256);

    plugin_process_bury(c, &how);
    count_death(e->owner->isolated);
    RV_LOG(e->owner->log, WARN, "capability.process_ended", RV_F_TEXT("capability", e->owner->name),
           RV_F_TEXT("entry", e->name), RV_F_TEXT("run_id", call->run_id), RV_F_TEXT("stage", call->stage),
           RV_F_I64("call_id", call->call_id), RV_F_TEXT("how", rv_buf_cstr(&how)));
    rv_err_free(rv_err_steal(err));
    return RV_FAIL(err, RV_E_PLUGIN, "%s in this call", rv_buf_cstr(&how));
}

/* A call that was not answered by the time it should have been, or was cancelled. */
static int give_up(struct exchange *t, int rc, bool *usable, rv_err **err)
{
    size_t start = t->out->len;

    *usable = comes_back(t);
    if (rc == RV_E_CANCELLED && *usable) { /* what it said of itself says more */
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (t->out->len > start)
        rv_buf_truncate(t->out, start);
    return rc;
}

int plugin_isolated_call(const struct rv_plugin_entry *e, struct rv_plugin_pieces *pieces, rv_buf *out,
                         struct rv_plugin_said *said, rv_err **err)
{
    const struct rv_plugin_call *call = pieces->call;
    struct rv_isolated *iso = e->owner->isolated;
    int64_t now_us = channel_now_us();
    bool has_end = call->timeout_ms > 0 && call->timeout_ms <= RV_PLUGIN_MAX_TIMEOUT_MS;
    const struct rv_wait wait = {has_end ? now_us + call->timeout_ms * RV_US_PER_MS : RV_NEVER, call->cancelled};
    struct exchange exchange = {.entry = e, .pieces = pieces, .out = out, .said = said};
    bool usable = true;
    int rc = take(iso, &wait, &exchange.child, err);

    if (rc < 0)
        return rc;
    rc = send_call(e, call, exchange.child, &wait, err);
    if (rc == 0) {
        rc = hear(&exchange, &wait, err);
        if (rc == RV_E_TIMEOUT || rc == RV_E_CANCELLED)
            rc = give_up(&exchange, rc, &usable, err);
        else
            usable = rc == 0;
    } else {
        usable = false;
    }
    if (rc == RV_E_IO)
        return fail_dead(e, call, exchange.child, err);
    if (usable && !exchange.spent) {
        give_back(iso, exchange.child);
    } else {
        plugin_process_kill(exchange.child);
        leave(iso);
    }
    return rc;
}
