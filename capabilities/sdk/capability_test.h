/* A host for the tests of a capability: it calls the entries as the engine does, plays the services of the engine, and
 * says what was wrong. A test is a program of the capability's own files and one more, which includes this header once:
 *
 *     #include <reeve/capability_test.h>
 *
 *     int main(void)
 *     {
 *         struct rv_cap_test t = rv_cap_test_open("{}");
 *         rv_cap_test_reply(&t, RV_CAP_TOOL, "greet", "{\"name\": \"Ada\"}", "{\"text\": \"Hello, Ada!\"}");
 *         rv_cap_test_fail(&t, RV_CAP_TOOL, "greet", "{}", "ValidationError");
 *         rv_cap_test_abuse(&t, RV_CAP_TOOL, "greet", "{\"name\": \"Ada\"}");
 *         return rv_cap_test_close(&t);
 *     }
 *
 * Built with -DRV_CAP_TEST_WRAP -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=strdup it also counts
 * the blocks of the capability: rv_cap_test_abuse() lets each allocation fail once, rv_cap_test_close() finds leaks.
 * What libraries allocate by themselves is not counted. docs/how-to/test-a-capability.md shows how. */
#ifndef RV_CAPABILITY_TEST_H
#define RV_CAPABILITY_TEST_H

#include "capability.h"

#include <stddef.h>

#define RV_CAP_TEST_MAX_SERVICES 64 /* asks that one test expects: chosen, a person lists them one by one */

/* Borrowed texts, which outlive the test. */
struct rv_cap_test_service {
    const char *name, *args; /* args NULL: any */
    const char *answer;      /* or the failure, {"type", "message"} */
    int fails;
};

/* A test of a capability. What it points to is borrowed, but for what the last call gave. */
struct rv_cap_test {
    const struct rv_cap_desc *desc; /* NULL: open() failed */
    struct rv_cap_host host;
    void *self;                 /* the capability's */
    struct rv_cap_call context; /* of calls: run_id, stage, user_id, timeout_ms, ... may be set */
    unsigned n_checks, n_failures;
    struct rv_cap_test_service services[RV_CAP_TEST_MAX_SERVICES]; /* that are still to be asked, in order */
    unsigned n_services, n_asked;
    /* the call under way, and the last one */
    const struct rv_cap_entry *entry;
    char *reply, *type, *message; /* owned */
    int n_replies, n_fails, returned;
    unsigned n_progress, n_emitted;
    long host_calls, fail_at; /* the fail_at-th call of the host is refused, from 0; -1: none */
    int is_cancelled;
    int is_rough;         /* rv_cap_test_abuse(): services may be asked with other arguments, or not at all */
    const char *asked_as; /* the failure of the last ask */
    const char *what;     /* that the check is about, for messages */
};

static struct rv_cap_test *rv_cap_test_now; /* the test whose call is under way */

/* --- the blocks of the capability --- */

static long rv_cap_test_blocks, rv_cap_test_allocations, rv_cap_test_no_memory_at = -1;

static inline int rv_cap_test_has_no_memory(void)
{
    return rv_cap_test_allocations++ == rv_cap_test_no_memory_at;
}

#ifdef RV_CAP_TEST_WRAP
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size)
{
    void *block = rv_cap_test_has_no_memory() ? NULL : __real_malloc(size);
    rv_cap_test_blocks += block != NULL;
    return block;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *block = rv_cap_test_has_no_memory() ? NULL : __real_calloc(n, size);
    rv_cap_test_blocks += block != NULL;
    return block;
}

void *__wrap_realloc(void *block, size_t size)
{
    void *now = rv_cap_test_has_no_memory() ? NULL : __real_realloc(block, size);
    rv_cap_test_blocks += !block && now;
    return now;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = (char *)__wrap_malloc(size);
    return copy ? (char *)memcpy(copy, text, size) : NULL;
}

void __wrap_free(void *block)
{
    rv_cap_test_blocks -= block != NULL;
    __real_free(block);
}
#define RV_CAP_TEST_KEEP(size)  __real_malloc(size)
#define RV_CAP_TEST_DROP(block) __real_free(block)
#else
#define RV_CAP_TEST_KEEP(size)  malloc(size)
#define RV_CAP_TEST_DROP(block) free(block)
#endif

static inline char *rv_cap_test_copy(const char *text)
{
    size_t size = text ? strlen(text) + 1 : 1;
    char *copy = (char *)RV_CAP_TEST_KEEP(size);
    if (copy)
        memcpy(copy, text ? text : "", size);
    return copy;
}

/* --- what is checked --- */

/** A check of your own: counted, and told when it fails. Gives is_true. */
RV_CAP_PRINTF(3, 4)
static inline int rv_cap_test_that(struct rv_cap_test *t, int is_true, const char *fmt, ...)
{
    va_list ap;

    t->n_checks++;
    if (is_true)
        return 1;
    t->n_failures++;
    printf("FAIL  %s%s", t->what ? t->what : "", t->what ? ": " : "");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    return 0;
}

/** The same values, whatever the order of members and the spaces between them. */
static inline int rv_cap_test_same(const char *a, const char *b)
{
    struct rv_cap_iter i = rv_cap_each(a), j = rv_cap_each(b), k;
    double x = 0, y = 0;
    char c[4], d[4];
    int n, m;

    if (rv_cap_type(a) != rv_cap_type(b))
        return 0;
    switch (rv_cap_type(a)) {
    case '{':
        while (rv_cap_next(&i)) {
            for (k = rv_cap_each(b), n = 0; !n && rv_cap_next(&k);)
                n = rv_cap_test_same(i.key, k.key) && rv_cap_test_same(i.value, k.value);
            if (!n || !rv_cap_next(&j))
                return 0;
        }
        return !rv_cap_next(&j);
    case '[':
        while ((n = rv_cap_next(&i)) == (m = rv_cap_next(&j)) && n)
            if (!rv_cap_test_same(i.value, j.value))
                return 0;
        return n == m;
    case '"':
        a = rv_cap_space(a) + 1;
        b = rv_cap_space(b) + 1;
        while ((n = rv_cap_char(&a, c)) == (m = rv_cap_char(&b, d)) && n > 0)
            if (memcmp(c, d, (size_t)n) != 0)
                return 0;
        return n == 0 && m == 0;
    case '0':
        return rv_cap_num(a, &x) == 0 && rv_cap_num(b, &y) == 0 && !(x < y || x > y);
    default:
        return rv_cap_size(a) == rv_cap_size(b) && memcmp(rv_cap_space(a), rv_cap_space(b), 4) == 0;
    }
}

#include "capability_test_host.h"

/** Opens rv_capability() of this program with that configuration. */
static inline struct rv_cap_test rv_cap_test_open(const char *config)
{
    struct rv_cap_test t;
    char error[256] = "";

    memset(&t, 0, sizeof t);
    t.fail_at = -1;
    t.host.size = sizeof t.host;
    t.host.abi = RV_CAP_ABI;
    t.host.engine_version = "test";
    t.host.base_dir = ".";
    t.host.late_reply = rv_cap_test_late_reply;
    t.host.late_fail = rv_cap_test_late_fail;
    t.host.late_cancelled = rv_cap_test_late_cancelled;
    t.context.run_id = t.context.stage = t.context.user_id = t.context.session_id = "";
    t.context.idempotency_key = "test-key";
    t.context.context = "{}";
    t.desc = rv_capability();
    if (!rv_cap_test_that(&t, t.desc && t.desc->abi == RV_CAP_ABI && t.desc->size >= sizeof *t.desc,
                          "the descriptor is not of this header") ||
        (t.desc->open &&
         !rv_cap_test_that(&t, t.desc->open(&t.host, config ? config : "{}", &t.self, error, sizeof error) == 0,
                           "open fails: %s", error)))
        t.desc = NULL;
    return t;
}

/** The end: services that were not asked and blocks that are left are failures. Prints one line; gives what main()
 * returns. */
static inline int rv_cap_test_close(struct rv_cap_test *t)
{
    t->what = "at the end";
    rv_cap_test_that(t, t->n_asked == t->n_services, "%u services were not asked, the first one is \"%s\"",
                     t->n_services - t->n_asked, t->n_asked < t->n_services ? t->services[t->n_asked].name : "");
    if (t->desc && t->desc->close)
        t->desc->close(t->self);
    rv_cap_test_forget(t);
    rv_cap_test_that(t, rv_cap_test_blocks == 0, "%ld blocks of memory are left", rv_cap_test_blocks);
    printf("%u checks: %u passed, %u failed\n", t->n_checks, t->n_checks - t->n_failures, t->n_failures);
    return t->n_failures > 0;
}

#include "capability_test_abuse.h"

#endif
