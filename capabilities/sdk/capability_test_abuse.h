/* The rough part of capability_test.h, which includes this: one call, again and again, with everything that can go
 * wrong around it. The capability may answer or fail each time; it has to do one of them, once, and keep no memory. */
#ifndef RV_CAPABILITY_TEST_H
#include "capability_test.h"
#elif !defined RV_CAPABILITY_TEST_ABUSE_H
#define RV_CAPABILITY_TEST_ABUSE_H

/* allocations that are failed one by one: a call that makes more is not tried to its end */
#define RV_CAP_TEST_MAX_TRIES 10000

/* One more try; services are those that were scripted before, each time from the first one. */
static inline void rv_cap_test_try(struct rv_cap_test *t, int kind, const char *name, const char *args, size_t size,
                                   const char *how)
{
    unsigned before = t->n_failures, asked = t->n_asked;

    rv_cap_test_run(t, kind, name, args, size);
    if (t->n_failures > before)
        printf("      %s, arguments %.300s\n", how, args);
    t->n_asked = asked;
}

/* The object without its n-th member, or with the value `with` in its place. NULL: there is no such member. */
static inline char *rv_cap_test_change(const char *object, unsigned n, const char *with)
{
    struct rv_cap_iter i = rv_cap_each(object);
    char *text = (char *)RV_CAP_TEST_KEEP(strlen(object) + (with ? strlen(with) : 0) + 3), *to = text;
    int found = 0, any = 0;

    if (!text)
        return NULL;
    for (*to++ = '{'; rv_cap_next(&i);) {
        int is_it = i.index == n;
        found |= is_it;
        if (is_it && !with)
            continue;
        if (any)
            *to++ = ',';
        memcpy(to, i.key, rv_cap_size(i.key));
        to += rv_cap_size(i.key);
        *to++ = ':';
        memcpy(to, is_it ? with : i.value, is_it ? strlen(with) : rv_cap_size(i.value));
        to += is_it ? strlen(with) : rv_cap_size(i.value);
        any = 1;
    }
    *to++ = '}';
    *to = '\0';
    if (found)
        return text;
    RV_CAP_TEST_DROP(text);
    return NULL;
}

/* Arguments that the schema would not let through: each member missing, and of each other type. */
static inline void rv_cap_test_malform(struct rv_cap_test *t, int kind, const char *name, const char *args)
{
    static const char *const values[] = {NULL,
                                         "null",
                                         "true",
                                         "-1",
                                         "1e300",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "[[[[]]]]",
                                         "\"\\u0000\\ud83d\\ude00\"",
                                         "99999999999999999999"};
    char *changed;

    for (unsigned n = 0, more = 1; more; n++)
        for (unsigned v = 0; more && v < sizeof values / sizeof values[0]; v++) {
            changed = rv_cap_test_change(args, n, values[v]);
            more = changed != NULL;
            if (changed)
                rv_cap_test_try(t, kind, name, changed, sizeof(struct rv_cap_call), "with arguments of no schema");
            RV_CAP_TEST_DROP(changed);
        }
    rv_cap_test_try(t, kind, name, "{}", sizeof(struct rv_cap_call), "without arguments");
}

/** Each way in which a call can go wrong, with arguments that are right: it is cancelled, at once and at each look; its
 * deadline is near; each call of the host is refused once; the host is the oldest one of this ABI; each allocation
 * fails once (RV_CAP_TEST_WRAP); its arguments are malformed. The services that the call asks are scripted before; they
 * are asked by each try, and taken at the end. */
static inline void rv_cap_test_abuse(struct rv_cap_test *t, int kind, const char *name, const char *args)
{
    const size_t whole = sizeof(struct rv_cap_call);
    const size_t oldest = offsetof(struct rv_cap_call, log) + sizeof t->context.log;
    int64_t timeout_ms = t->context.timeout_ms;
    long n;

    if (!rv_cap_test_find(t, kind, name)) { /* said once, not for each case */
        rv_cap_test_try(t, kind, name, args, whole, "cancelled");
        return;
    }
    t->is_rough = t->is_cancelled = 1;
    rv_cap_test_try(t, kind, name, args, whole, "cancelled");
    t->is_cancelled = 0;
    t->context.timeout_ms = 1;
    rv_cap_test_try(t, kind, name, args, whole, "with a deadline of 1 ms");
    t->context.timeout_ms = timeout_ms;
    rv_cap_test_try(t, kind, name, args, oldest, "called by the oldest host");
    for (n = 0; n < RV_CAP_TEST_MAX_TRIES; n++) {
        t->fail_at = n;
        rv_cap_test_try(t, kind, name, args, whole, "one call of the host refused");
        t->fail_at = -1;
        if (t->host_calls <= n)
            break;
    }
#ifdef RV_CAP_TEST_WRAP
    for (n = 0; n < RV_CAP_TEST_MAX_TRIES; n++) {
        rv_cap_test_allocations = 0;
        rv_cap_test_no_memory_at = n;
        rv_cap_test_try(t, kind, name, args, whole, "without memory once");
        rv_cap_test_no_memory_at = -1;
        if (rv_cap_test_allocations <= n)
            break;
    }
#endif
    rv_cap_test_malform(t, kind, name, args);
    rv_cap_test_try(t, kind, name, args, whole, "as usual again");
    t->is_rough = 0;
    t->n_asked = t->n_services;
}

#endif
