/* A capability as it was built with the first header of this ABI: its structures are copied here as they were then, and
 * are never to be changed. What has been added since must not be in its way. */
#include <stdint.h>

struct old_call {
    uint32_t size;
    const char *name, *args, *run_id, *stage, *user_id, *session_id, *idempotency_key;
    int64_t timeout_ms;
    void *host;
    int (*cancelled)(const struct old_call *call);
    int (*reply)(struct old_call *call, const char *json);
    int (*fail)(struct old_call *call, const char *type, const char *message);
    void (*log)(const struct old_call *call, int level, const char *message);
};

struct old_entry {
    int32_t kind;
    const char *name, *spec;
    int (*fn)(void *self, struct old_call *call);
};

struct old_host {
    uint32_t size, abi;
    const char *engine_version, *base_dir;
};

struct old_desc {
    uint32_t size, abi, entry_size;
    const char *name, *version, *description, *config_schema;
    const struct old_entry *entries;
    int (*open)(const struct old_host *host, const char *config, void **self, char *error, uint32_t error_size);
    void (*close)(void *self);
};

__attribute__((visibility("default"))) const struct old_desc *rv_capability(void);

static int open_it(const struct old_host *host, const char *config, void **self, char *error, uint32_t error_size)
{
    (void)self;
    return host->size < sizeof *host || host->abi != 1 || config[0] != '{' || !error || error_size < 256;
}

static int answer(void *self, struct old_call *call)
{
    (void)self;
    if (call->size < sizeof *call)
        return call->fail(call, "ExecutionError", "the call is shorter than it was");
    call->log(call, 1, "asked");
    if (call->cancelled(call) || call->name[0] != 'a' || call->args[0] != '{' || call->stage[0])
        return call->fail(call, "ExecutionError", "the call is not as it was");
    return call->reply(call, "{\"ok\": true}");
}

static int refuse(void *self, struct old_call *call)
{
    (void)self;
    return call->fail(call, "NotFoundError", "as ever");
}

const struct old_desc *rv_capability(void)
{
    static const struct old_entry entries[] = {{1, "answer", "{}", answer}, {1, "refuse", "{}", refuse}, {0, 0, 0, 0}};
    static const struct old_desc desc = {sizeof desc,       1, sizeof entries[0], "oldest", "1",
                                         "Built long ago.", 0, entries,           open_it,  0};

    return &desc;
}
