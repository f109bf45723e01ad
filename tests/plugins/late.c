/* Entries that answer later, from another thread, each in another way: right, wrong, twice, never. With the
 * configuration
 * {"forgets": true} close() leaves the thread of `waits` alone, as a plugin must not. */
#include <reeve/capability.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_THREADS 64

static const struct rv_cap_host *host;
static pthread_t threads[MAX_THREADS];
static int n_threads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_refused; /* answers that came too late; told by `refused` */

struct ticket {
    uint64_t number;
    void (*end)(uint64_t number);
};

static void *end_it(void *self)
{
    struct ticket t = *(struct ticket *)self;

    free(self);
    t.end(t.number);
    return NULL;
}

static int begin(struct rv_cap_call *call, void (*end)(uint64_t number))
{
    uint64_t number = RV_CAP_HAS(call, later) ? call->later(call) : 0;
    struct ticket *t = malloc(sizeof *t);

    if (!number || !t) {
        free(t);
        return call->fail(call, "ExecutionError", "no ticket");
    }
    *t = (struct ticket){number, end};
    pthread_mutex_lock(&lock);
    if (n_threads == MAX_THREADS || pthread_create(&threads[n_threads++], NULL, end_it, t) != 0)
        abort();
    pthread_mutex_unlock(&lock);
    return RV_CAP_LATER;
}

static void rest(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0)
        continue;
}

static void reply(uint64_t number)
{
    atomic_fetch_add(&n_refused, host->late_reply(number, "{\"from\": \"later\"}") != 0);
}

static void reply_empty(uint64_t number)
{
    atomic_fetch_add(&n_refused, host->late_reply(number, "{}") != 0);
}

static void reply_twice(uint64_t number)
{
    reply(number);
    reply(number);
    atomic_fetch_add(&n_refused, host->late_fail(number, "ToolError", "and a third time") != 0);
}

static void reply_garbage(uint64_t number)
{
    host->late_reply(number, "{\"half\": ");
}

static void reply_null(uint64_t number)
{
    host->late_reply(number, NULL);
}

static void fail(uint64_t number)
{
    host->late_fail(number, "NotFoundError", "looked for it, later");
}

static void nothing(uint64_t number)
{
    (void)number;
}

static void wait_for_the_end(uint64_t number)
{
    while (!host->late_cancelled(number))
        rest(1);
    reply(number);
}

static int works(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, reply);
}

static int hook(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, reply_empty);
}

static int twice(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, reply_twice);
}

static int garbage(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, reply_garbage);
}

static int null(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, reply_null);
}

static int fails(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, fail);
}

static int never(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, nothing);
}

static int waits(void *self, struct rv_cap_call *call)
{
    (void)self;
    return begin(call, wait_for_the_end);
}

/* The answer is there before the function says that it will come. */
static int early(void *self, struct rv_cap_call *call)
{
    uint64_t number = call->later(call);

    (void)self;
    reply(number);
    return RV_CAP_LATER;
}

static int no_ticket(void *self, struct rv_cap_call *call)
{
    (void)self;
    (void)call;
    return RV_CAP_LATER;
}

static int both(void *self, struct rv_cap_call *call)
{
    uint64_t number = call->later(call);

    (void)self;
    call->reply(call, "{\"from\": \"now\"}");
    reply(number);
    return RV_CAP_LATER;
}

/* It takes a ticket, and answers at once: the ticket is worth nothing then. */
static int changes_its_mind(void *self, struct rv_cap_call *call)
{
    uint64_t number = call->later(call);

    (void)self;
    if (call->later(call) != number)
        return call->fail(call, "ExecutionError", "a second ticket for one call");
    call->reply(call, "{\"from\": \"now\"}");
    return 0;
}

static int refused(void *self, struct rv_cap_call *call)
{
    char text[64];

    (void)self;
    snprintf(text, sizeof text, "{\"refused\": %d}", atomic_load(&n_refused));
    return call->reply(call, text);
}

static int hoards(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->later(call) ? RV_CAP_LATER : call->fail(call, "LimitError", "no more tickets");
}

/* The first call waits for the second one. */
static int meets(void *self, struct rv_cap_call *call)
{
    static uint64_t first;

    (void)self;
    pthread_mutex_lock(&lock);
    uint64_t other = first;
    first = other ? 0 : call->later(call);
    pthread_mutex_unlock(&lock);
    if (!other)
        return RV_CAP_LATER;
    reply(other);
    return call->reply(call, "{\"from\": \"now\"}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "works", RV_CAP_JSON({"risk" : "read_only"}), works},
    {RV_CAP_TOOL, "works_here", RV_CAP_JSON({"risk" : "read_only", "blocking" : false}), works},
    {RV_CAP_TOOL, "early", RV_CAP_JSON({"risk" : "read_only"}), early},
    {RV_CAP_TOOL, "early_here", RV_CAP_JSON({"risk" : "read_only", "blocking" : false}), early},
    {RV_CAP_TOOL, "twice", RV_CAP_JSON({"risk" : "read_only"}), twice},
    {RV_CAP_TOOL, "late_garbage", RV_CAP_JSON({"risk" : "read_only"}), garbage},
    {RV_CAP_TOOL, "late_null", RV_CAP_JSON({"risk" : "read_only"}), null},
    {RV_CAP_TOOL, "fails_later", RV_CAP_JSON({"risk" : "read_only"}), fails},
    {RV_CAP_TOOL, "never", RV_CAP_JSON({"risk" : "read_only"}), never},
    {RV_CAP_TOOL, "waits", RV_CAP_JSON({"risk" : "read_only"}), waits},
    {RV_CAP_TOOL, "no_ticket", RV_CAP_JSON({"risk" : "read_only"}), no_ticket},
    {RV_CAP_TOOL, "both", RV_CAP_JSON({"risk" : "read_only"}), both},
    {RV_CAP_TOOL, "changes_its_mind", RV_CAP_JSON({"risk" : "read_only"}), changes_its_mind},
    {RV_CAP_TOOL, "hoards", RV_CAP_JSON({"risk" : "read_only"}), hoards},
    {RV_CAP_TOOL, "meets", RV_CAP_JSON({"risk" : "read_only"}), meets},
    {RV_CAP_TOOL, "refused", RV_CAP_JSON({"risk" : "read_only"}), refused},
    {RV_CAP_HOOK, "hook", RV_CAP_JSON({"description" : "Has nothing to say, later."}), hook},
    RV_CAP_END,
};

static int open_it(const struct rv_cap_host *given, const char *config, void **self, char *error, uint32_t error_size)
{
    (void)self;
    (void)error;
    (void)error_size;
    host = given;
    (void)config;
    return RV_CAP_HAS(given, late_cancelled) ? 0 : 1;
}

static void close_it(void *self)
{
    (void)self;
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    n_threads = 0; /* it may be opened again without having been unloaded */
}

RV_CAPABILITY(.name = "late", .version = "1", .description = "Answers later.", .entries = entries, .open = open_it,
              .close = close_it)
