/* One that writes to COUNT_FILE when it is opened and closed, and says which of its openings answers. */
#include <reeve/capability.h>

#include <stdint.h>
#include <stdlib.h>

static uintptr_t n_opened;

static void note(const char *word)
{
    const char *path = getenv("COUNT_FILE");
    FILE *f = path ? fopen(path, "a") : NULL;

    if (!f)
        return;
    fprintf(f, "%s\n", word);
    fclose(f);
}

static int open_one(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t error_size)
{
    (void)host;
    (void)config;
    (void)error;
    (void)error_size;
    *self = (void *)++n_opened; /* a number is state enough */
    note("open");
    return 0;
}

static void close_one(void *self)
{
    (void)self;
    note("close");
}

static int which(void *self, struct rv_cap_call *call)
{
    char reply[64];

    snprintf(reply, sizeof reply, "{\"which\": %d}", (int)(uintptr_t)self);
    return call->reply(call, reply);
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "which", "{\"description\": \"Say which.\", \"risk\": \"read_only\"}", which},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "counted", .version = "1.0.0", .description = "counts", .entries = entries,
              .config_schema = "{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}}",
              .open = open_one, .close = close_one)
