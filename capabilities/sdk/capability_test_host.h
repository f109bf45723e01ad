/* The host of capability_test.h, which includes this: what a call can turn to, and a call. */
#ifndef RV_CAPABILITY_TEST_H
#include "capability_test.h"
#elif !defined RV_CAPABILITY_TEST_HOST_H
#define RV_CAPABILITY_TEST_HOST_H

static inline void rv_cap_test_forget(struct rv_cap_test *t)
{
    RV_CAP_TEST_DROP(t->reply);
    RV_CAP_TEST_DROP(t->type);
    RV_CAP_TEST_DROP(t->message);
    t->reply = t->type = t->message = NULL;
}

/* Is this call of the host the one that is to be refused? */
static inline int rv_cap_test_refuses(void)
{
    return rv_cap_test_now->host_calls++ == rv_cap_test_now->fail_at;
}

static inline int rv_cap_test_on_cancelled(const struct rv_cap_call *call)
{
    (void)call;
    return rv_cap_test_now->is_cancelled || rv_cap_test_refuses();
}

static inline int rv_cap_test_on_reply(struct rv_cap_call *call, const char *json)
{
    struct rv_cap_test *t = rv_cap_test_now;

    (void)call;
    if (++t->n_replies > 1 || !json || strlen(json) > RV_CAP_MAX_REPLY || rv_cap_test_refuses())
        return 1;
    t->reply = rv_cap_test_copy(json);
    return 0;
}

static inline int rv_cap_test_on_fail(struct rv_cap_call *call, const char *type, const char *message)
{
    struct rv_cap_test *t = rv_cap_test_now;

    (void)call;
    if (++t->n_fails == 1) {
        t->type = rv_cap_test_copy(type);
        t->message = rv_cap_test_copy(message);
    }
    return 1;
}

static inline void rv_cap_test_on_log(const struct rv_cap_call *call, int level, const char *message)
{
    (void)call;
    (void)level;
    (void)message;
}

static inline int rv_cap_test_on_emit(struct rv_cap_call *call, const char *json)
{
    (void)call;
    rv_cap_test_that(rv_cap_test_now,
                     rv_cap_type(rv_cap_get(json, "text")) == '"' || rv_cap_type(rv_cap_get(json, "thinking")) == '"',
                     "a piece has neither \"text\" nor \"thinking\"");
    rv_cap_test_now->n_emitted++;
    return rv_cap_test_on_cancelled(call);
}

static inline uint64_t rv_cap_test_on_later(struct rv_cap_call *call)
{
    (void)call;
    return 0; /* it has to answer now, as with `isolation: process` */
}

static inline const struct rv_cap_attachment *rv_cap_test_on_attachments(struct rv_cap_call *call, uint32_t *n)
{
    (void)call;
    *n = 0;
    return NULL;
}

static inline int rv_cap_test_on_replace(struct rv_cap_call *call, const struct rv_cap_attachment *items, uint32_t n)
{
    (void)items;
    return n > RV_CAP_MAX_ATTACHMENTS
               ? 1
               : rv_cap_test_on_reply(call, "{\"action\":\"replace\",\"request\":{\"attachments\":[]}}");
}

/* Does the entry name that service in its specification? */
static inline int rv_cap_test_may_ask(const struct rv_cap_entry *e, const char *service)
{
    struct rv_cap_iter i = rv_cap_each(rv_cap_get(e->spec, "services"));
    char name[65];

    while (rv_cap_next(&i))
        if (rv_cap_str(i.value, name, sizeof name) > 0 && strcmp(name, service) == 0)
            return 1;
    return 0;
}

static inline int rv_cap_test_on_ask(struct rv_cap_call *call, const char *service, const char *args,
                                     const char **answer)
{
    struct rv_cap_test *t = rv_cap_test_now;
    const struct rv_cap_test_service *s = &t->services[t->n_asked];

    (void)call;
    args = args ? args : "{}";
    *answer = t->asked_as = "{\"type\":\"UnavailableError\",\"message\":\"the test refuses\"}";
    if (rv_cap_test_refuses() || t->is_cancelled)
        return 1;
    if (!rv_cap_test_that(t, rv_cap_test_may_ask(t->entry, service),
                          "it asks \"%s\" and does not name it in its "
                          "\"services\"",
                          service))
        return 1;
    if (t->is_rough && (t->n_asked >= t->n_services || strcmp(s->name, service) != 0))
        return 1;
    if (!rv_cap_test_that(t, t->n_asked < t->n_services && strcmp(s->name, service) == 0,
                          "it asks \"%s\" with %s, and the test expects %s", service, args,
                          t->n_asked < t->n_services ? s->name : "no service") ||
        !rv_cap_test_that(t, t->is_rough || !s->args || rv_cap_test_same(s->args, args),
                          "it asks \"%s\" with %s, and the test "
                          "expects %s",
                          service, args, s->args ? s->args : "anything"))
        return 1;
    t->n_asked++;
    *answer = s->answer;
    if (s->fails)
        t->asked_as = s->answer;
    return s->fails;
}

static inline int rv_cap_test_on_fail_as_asked(struct rv_cap_call *call)
{
    return rv_cap_fail_asked(call, rv_cap_test_now->asked_as);
}

static inline int rv_cap_test_on_progress(struct rv_cap_call *call, double done, double total, const char *text)
{
    (void)done;
    (void)total;
    (void)text;
    rv_cap_test_now->n_progress++;
    return rv_cap_test_on_cancelled(call);
}

static inline int rv_cap_test_late_reply(uint64_t ticket, const char *json)
{
    (void)ticket;
    (void)json;
    return 1; /* no ticket was given out */
}

static inline int rv_cap_test_late_fail(uint64_t ticket, const char *type, const char *message)
{
    (void)ticket;
    (void)type;
    (void)message;
    return 1;
}

static inline int rv_cap_test_late_cancelled(uint64_t ticket)
{
    (void)ticket;
    return 1;
}

/** The next service that is asked has these arguments (NULL: any) and this answer. */
static inline void rv_cap_test_answers(struct rv_cap_test *t, const char *service, const char *args, const char *answer)
{
    if (rv_cap_test_that(t, t->n_services < RV_CAP_TEST_MAX_SERVICES, "there are too many services")) {
        t->services[t->n_services].name = service;
        t->services[t->n_services].args = args;
        t->services[t->n_services].answer = answer;
        t->services[t->n_services++].fails = 0;
    }
}

/** The same, and it fails: {"type": ..., "message": ...}. */
static inline void rv_cap_test_refuse(struct rv_cap_test *t, const char *service, const char *args, const char *failure)
{
    rv_cap_test_answers(t, service, args, failure);
    if (t->n_services > 0)
        t->services[t->n_services - 1].fails = 1;
}

static inline const struct rv_cap_entry *rv_cap_test_find(const struct rv_cap_test *t, int kind, const char *name)
{
    const struct rv_cap_entry *e = t->desc ? t->desc->entries : NULL;

    while (e && e->kind && (e->kind != kind || strcmp(e->name, name) != 0))
        e++;
    return e && e->kind ? e : NULL;
}

/* As the engine judges a call: one answer, or one failure, and a return value that says which. */
static inline int rv_cap_test_is_proper(struct rv_cap_test *t)
{
    return rv_cap_test_that(t, t->n_replies + t->n_fails == 1, "it replied %d times and failed %d times", t->n_replies,
                            t->n_fails) &&
           rv_cap_test_that(t, (t->returned != 0) == (t->n_fails > 0 || !t->reply), "it returned %d after %s",
                            t->returned,
                            t->n_fails > 0 ? "a failure"
                            : t->reply     ? "a reply"
                                           : "a refused reply") &&
           rv_cap_test_that(
               t,
               !t->reply || (rv_cap_type(t->reply) == '{' && *rv_cap_space(t->reply + rv_cap_size(t->reply)) == '\0'),
               "its reply is not an object: %.200s", t->reply ? t->reply : "");
}

/* host_size: how much of struct rv_cap_call the host has. */
static inline int rv_cap_test_run(struct rv_cap_test *t, int kind, const char *name, const char *args, size_t host_size)
{
    struct rv_cap_call call = t->context;
    char *copy = rv_cap_test_copy(args);

    rv_cap_test_forget(t);
    t->n_replies = t->n_fails = t->returned = 0;
    t->n_progress = t->n_emitted = 0;
    t->host_calls = 0;
    t->asked_as = "{}";
    t->what = name;
    t->entry = rv_cap_test_find(t, kind, name);
    if (rv_cap_test_that(t, t->entry && t->entry->fn && copy,
                         "the table of entries has no function of this kind and name")) {
        call.size = (uint32_t)host_size;
        call.name = t->entry->name;
        call.args = copy;
        call.host = t;
        call.cancelled = rv_cap_test_on_cancelled;
        call.reply = rv_cap_test_on_reply;
        call.fail = rv_cap_test_on_fail;
        call.log = rv_cap_test_on_log;
        call.emit = rv_cap_test_on_emit;
        call.later = rv_cap_test_on_later;
        call.attachments = rv_cap_test_on_attachments;
        call.replace_attachments = rv_cap_test_on_replace;
        call.ask = rv_cap_test_on_ask;
        call.fail_as_asked = rv_cap_test_on_fail_as_asked;
        call.progress = rv_cap_test_on_progress;
        rv_cap_test_now = t;
        t->returned = t->entry->fn(t->self, &call);
    }
    RV_CAP_TEST_DROP(copy);
    return t->entry && rv_cap_test_is_proper(t);
}

/** A call has this reply; NULL: any. */
static inline void rv_cap_test_reply(struct rv_cap_test *t, int kind, const char *name, const char *args,
                                     const char *want)
{
    if (rv_cap_test_run(t, kind, name, args, sizeof(struct rv_cap_call)) &&
        rv_cap_test_that(t, t->reply != NULL, "it fails with %s: %s", t->type ? t->type : "",
                         t->message ? t->message : ""))
        rv_cap_test_that(t, !want || rv_cap_test_same(t->reply, want), "its reply is %.500s, and the test expects %s",
                         t->reply, want ? want : "");
}

/** A call fails with this type; NULL: any. */
static inline void rv_cap_test_fail(struct rv_cap_test *t, int kind, const char *name, const char *args,
                                    const char *type)
{
    if (rv_cap_test_run(t, kind, name, args, sizeof(struct rv_cap_call)) &&
        rv_cap_test_that(t, t->n_fails > 0, "its reply is %.500s, and the test expects a failure",
                         t->reply ? t->reply : ""))
        rv_cap_test_that(t, !type || strcmp(t->type, type) == 0, "it fails with %s, and the test expects %s", t->type,
                         type ? type : "");
}

#endif
