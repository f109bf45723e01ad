/* Subscriptions, their queues and their breakers. */
#include "coreengine/bus/bus_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TYPES 64 /* that one subscriber can tell apart by their failures: an engine publishes fewer types */

struct message {
    struct message *next;
    int depth;
    char *type; /* in the same block as the text */
    rv_str text;
};

/* Of one type. Failures count when they follow each other; an open breaker lets one message through after a while. */
struct breaker {
    char *type; /* owned */
    int failures;
    int64_t last_us;
};

struct sub {
    struct sub *next;
    uint64_t id;
    char *name;   /* owned */
    char **types; /* owned */
    size_t n_types;
    struct rv_bus_sub how; /* but for the texts */
    struct message *first, *last, *under_way;
    size_t n_queued, n_bytes;
    int64_t since_us; /* under_way */
    bool is_handing;  /* deliver() runs */
    bool is_gone;     /* unsubscribed; freed when deliver() has returned */
    bool has_told_drop;
    int64_t told_drop_us; /* when; on the clock of the bus */
    struct breaker breakers[MAX_TYPES];
    size_t n_breakers;
    struct rv_bus_counts counts;
};

int rv_bus_new(const struct rv_clock *clock, rv_log *log, rv_bus **out, rv_err **err)
{
    rv_bus *b = calloc(1, sizeof *b);

    if (!b)
        return RV_FAIL(err, RV_E_NOMEM, "make a message bus");
    b->clock = *clock;
    b->log = log;
    *out = b;
    return 0;
}

static int64_t now_us(const rv_bus *b)
{
    return b->clock.now_us(b->clock.self);
}

/* --- subscriptions --- */

static void drop_queue(struct sub *s)
{
    while (s->first) {
        struct message *m = s->first;
        s->first = m->next;
        free(m);
    }
    s->last = NULL;
    s->n_queued = s->n_bytes = 0;
}

static void sub_free(struct sub *s)
{
    drop_queue(s);
    free(s->under_way);
    for (size_t i = 0; i < s->n_types; i++)
        free(s->types[i]);
    for (size_t i = 0; i < s->n_breakers; i++)
        free(s->breakers[i].type);
    free(s->types);
    free(s->name);
    free(s);
}

static void give_up(struct sub *s)
{
    if (s->under_way && s->how.give_up)
        s->how.give_up(s->how.self);
    free(s->under_way);
    s->under_way = NULL;
}

void rv_bus_free(rv_bus *b)
{
    for (struct sub *s = b ? b->subs : NULL, *next; s; s = next) {
        next = s->next;
        give_up(s);
        sub_free(s);
    }
    if (b)
        bus_asks_fini(b);
    free(b);
}

static struct sub *find(const rv_bus *b, uint64_t id)
{
    struct sub *s = b->subs;

    while (s && (s->id != id || s->is_gone))
        s = s->next;
    return s;
}

static struct sub *copy(const struct rv_bus_sub *how)
{
    struct sub *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->how = *how;
    s->name = rv_str_dup(rv_str_of(how->name));
    s->types = calloc(how->n_types + 1, sizeof *s->types);
    bool ok = s->name && s->types;
    for (; ok && s->n_types < how->n_types; s->n_types += ok) {
        s->types[s->n_types] = rv_str_dup(rv_str_of(how->types[s->n_types]));
        ok = s->types[s->n_types] != NULL;
    }
    if (ok)
        return s;
    sub_free(s);
    return NULL;
}

int rv_bus_subscribe(rv_bus *b, const struct rv_bus_sub *sub, uint64_t *id, rv_err **err)
{
    struct sub **at = &b->subs, *s = copy(sub);

    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "subscribe \"%s\"", sub->name);
    while (*at)
        at = &(*at)->next;
    *at = s;
    *id = s->id = ++b->last_id;
    return 0;
}

/* Free subscribers that are gone, but not while a loop walks the list: it would go on from freed memory. */
static void sweep(rv_bus *b)
{
    struct sub **at = &b->subs;

    while (b->n_busy == 0 && *at) {
        struct sub *s = *at;
        if (!s->is_gone || s->is_handing) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        sub_free(s);
    }
}

void rv_bus_unsubscribe(rv_bus *b, uint64_t id)
{
    struct sub *s = find(b, id);

    if (!s)
        return;
    s->is_gone = true;
    drop_queue(s);
    if (!s->is_handing) /* else it is giving it up itself */
        give_up(s);
    sweep(b);
}

/* --- breakers --- */

/* NULL: no failure of that type is known. */
static struct breaker *breaker_of(struct sub *s, const char *type)
{
    for (size_t i = 0; i < s->n_breakers; i++)
        if (strcmp(s->breakers[i].type, type) == 0)
            return &s->breakers[i];
    return NULL;
}

static bool is_blocked(const rv_bus *b, struct sub *s, const char *type)
{
    const struct breaker *k = breaker_of(s, type);

    return k && k->failures >= RV_BUS_FAILURES && now_us(b) - k->last_us < RV_BUS_RESET_US;
}

/* NULL: no memory. Where all places are taken, one of a type that recovered is, or the one that failed longest ago. */
static struct breaker *add_breaker(struct sub *s, const char *type)
{
    char *copy = rv_str_dup(rv_str_of(type));
    struct breaker *k = &s->breakers[0];

    if (!copy)
        return NULL;
    if (s->n_breakers < MAX_TYPES)
        k = &s->breakers[s->n_breakers++];
    for (size_t i = 0; k->type && k->failures > 0 && i < MAX_TYPES; i++)
        if (s->breakers[i].failures == 0 || s->breakers[i].last_us < k->last_us)
            k = &s->breakers[i];
    free(k->type);
    *k = (struct breaker){.type = copy};
    return k;
}

static void count_failure(rv_bus *b, struct sub *s, const char *type, const rv_err *why)
{
    struct breaker *k = breaker_of(s, type);

    s->counts.failed++;
    RV_LOG(b->log, WARN, "subscriber.failed", RV_F_TEXT("name", s->name), RV_F_TEXT("type", type),
           RV_F_ERR("error", why));
    if (!k)
        k = add_breaker(s, type);
    if (!k)
        return;
    k->failures += k->failures < RV_BUS_FAILURES;
    k->last_us = now_us(b);
    if (k->failures == RV_BUS_FAILURES)
        RV_LOG(b->log, WARN, "subscriber.blocked", RV_F_TEXT("name", s->name), RV_F_TEXT("type", type),
               RV_F_I64("failures", k->failures), RV_F_I64("reset_ms", RV_BUS_RESET_US / 1000));
}

static void count(rv_bus *b, struct sub *s, const char *type, const rv_err *why)
{
    struct breaker *k = breaker_of(s, type);

    if (why) {
        count_failure(b, s, type, why);
        return;
    }
    s->counts.taken++;
    if (k)
        k->failures = 0;
}

/* --- handing over --- */

static void settle(rv_bus *b, struct sub *s, const rv_err *why)
{
    struct message *m = s->under_way;

    s->under_way = NULL;
    if (m && !s->is_gone)
        count(b, s, m->type, why);
    free(m);
}

static void hand_over(rv_bus *b, struct sub *s, struct message *m)
{
    int outer = b->depth;
    rv_err *err = NULL;

    s->under_way = m;
    s->since_us = now_us(b);
    s->is_handing = true;
    b->depth = m->depth + 1;
    int rc = s->how.deliver(s->how.self, s->id, m->type, m->text, &err);
    b->depth = outer;
    s->is_handing = false;
    if (rc < 0)
        settle(b, s, err);
    else if (s->is_gone)
        give_up(s);
    rv_err_free(err);
}

/* Everything that it can take now. A message whose handling publishes another one is deeper, so that this ends. */
static void pump(rv_bus *b, struct sub *s)
{
    b->n_busy++;
    while (!s->is_gone && !s->is_handing && !s->under_way && s->first) {
        struct message *m = s->first;
        s->first = m->next;
        if (!s->first)
            s->last = NULL;
        s->n_queued--;
        s->n_bytes -= m->text.len;
        if (is_blocked(b, s, m->type)) {
            s->counts.blocked++;
            free(m);
        } else {
            hand_over(b, s, m);
        }
    }
    b->n_busy--;
    sweep(b);
}

void rv_bus_settle(rv_bus *b, uint64_t id, const rv_err *why)
{
    struct sub *s = b->subs;

    while (s && s->id != id)
        s = s->next;
    if (!s)
        return;
    settle(b, s, why);
    pump(b, s);
}

static bool wants(const struct sub *s, const char *type)
{
    for (size_t i = 0; i < s->n_types; i++)
        if (strcmp(s->types[i], type) == 0)
            return true;
    return s->n_types == 0;
}

static void drop(rv_bus *b, struct sub *s, const char *type)
{
    s->counts.dropped++;
    if (s->has_told_drop && now_us(b) - s->told_drop_us < RV_BUS_RESET_US) /* there may be many */
        return;
    RV_LOG(b->log, WARN, "subscriber.dropped", RV_F_TEXT("name", s->name), RV_F_TEXT("type", type),
           RV_F_I64("waiting", (int64_t)s->n_queued));
    s->has_told_drop = true;
    s->told_drop_us = now_us(b);
}

static void add(rv_bus *b, struct sub *s, const char *type, rv_str text)
{
    size_t len = strlen(type) + 1;
    bool has_room = s->n_queued < RV_BUS_MAX_QUEUE && text.len <= RV_BUS_MAX_QUEUE_BYTES - s->n_bytes;
    struct message *m = has_room && b->depth < RV_BUS_MAX_DEPTH ? malloc(sizeof *m + len + text.len) : NULL;

    if (!m) {
        drop(b, s, type);
        return;
    }
    char *room = (char *)(m + 1);
    memcpy(room, type, len);
    if (text.len)
        memcpy(room + len, text.ptr, text.len);
    *m = (struct message){.depth = b->depth, .type = room, .text = {room + len, text.len}};
    if (s->last)
        s->last->next = m;
    else
        s->first = m;
    s->last = m;
    s->n_queued++;
    s->n_bytes += text.len;
}

static void hand_out(rv_bus *b, const char *type, rv_str text)
{
    b->n_busy++;
    for (struct sub *s = b->subs; s; s = s->next)
        if (!s->is_gone && wants(s, type))
            add(b, s, type, text);
    for (struct sub *s = b->subs; s; s = s->next)
        pump(b, s);
    b->n_busy--;
    sweep(b);
}

void rv_bus_publish(rv_bus *b, const char *type, rv_str text)
{
    RV_AUTO(rv_buf_fini) rv_buf room = RV_BUF_INIT(RV_BUS_MAX_QUEUE_BYTES);
    struct rv_bus_message m = {.kind = RV_BUS_EVENT, .type = type, .text = text};
    struct rv_bus_outcome o = {.took_us = 0};
    size_t n_seen = 0;

    int rc = bus_before(b, &m, &room, &n_seen, &o.why);
    if (rc == 0)
        hand_out(b, m.type, m.text);
    else if (rc < 0)
        RV_LOG(b->log, WARN, "event.refused", RV_F_TEXT("type", type), RV_F_ERR("error", o.why));
    bus_after(b, &m, n_seen, &o);
    rv_err_free(o.why);
}

/* --- time --- */

void rv_bus_tick(rv_bus *b)
{
    b->n_busy++;
    for (struct sub *s = b->subs; s; s = s->next) {
        rv_err *late = NULL;
        if (!s->under_way || s->is_handing || !s->how.timeout_us || now_us(b) - s->since_us < s->how.timeout_us)
            continue;
        RV_IGNORE(RV_FAIL(&late, RV_E_TIMEOUT, "subscriber \"%s\" did not take a message within %lld ms", s->name,
                          (long long)(s->how.timeout_us / RV_US_PER_MS)),
                  "counted");
        if (s->how.give_up)
            s->how.give_up(s->how.self);
        settle(b, s, late);
        rv_err_free(late);
        pump(b, s);
    }
    b->n_busy--;
    sweep(b);
    bus_asks_tick(b);
}

bool rv_bus_is_idle(const rv_bus *b)
{
    for (const struct sub *s = b->subs; s; s = s->next)
        if (!s->is_gone && (s->under_way || s->first))
            return false;
    return true;
}

bool rv_bus_find_counts(const rv_bus *b, uint64_t id, struct rv_bus_counts *out)
{
    const struct sub *s = find(b, id);

    if (!s)
        return false;
    *out = s->counts;
    out->waiting = (int64_t)s->n_queued + (s->under_way != NULL);
    return true;
}
