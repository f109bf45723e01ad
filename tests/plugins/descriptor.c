/* Faults of the descriptor; CMakeLists.txt picks one by a definition. */
#include <reeve/capability.h>

#include <string.h>

#ifndef ABI
#define ABI RV_CAP_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct rv_cap_desc)
#endif
#ifndef SYMBOL
#define SYMBOL rv_capability
#endif
#ifndef VERSION
#define VERSION "1"
#endif
#ifndef CONFIG_SCHEMA
#define CONFIG_SCHEMA NULL
#endif
#ifndef TOOL
#define TOOL "nothing"
#endif
#ifndef OPEN
#define OPEN NULL
#endif
#ifndef NAME
#define NAME DEFAULT_NAME
#endif

#define UNUSED __attribute__((unused)) static /* each build uses one of them at most */

RV_CAP_EXPORT const struct rv_cap_desc *SYMBOL(void);

struct state {
    char config[256];
};
static struct state only; /* of a test: real plugins keep state on the heap */

UNUSED int refuse(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t size)
{
    (void)config;
    (void)self;
    snprintf(error, size, "no index below \"%s\"", host->base_dir);
    return 1;
}

UNUSED int refuse_silently(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t size)
{
    (void)host;
    (void)config;
    (void)self;
    (void)error;
    (void)size;
    return -1;
}

UNUSED int fill_error(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t size)
{
    (void)host;
    (void)config;
    (void)self;
    memset(error, 0xff, size); /* no NUL, no UTF-8 */
    return 1;
}

UNUSED int agree(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t size)
{
    (void)error;
    (void)size;
    snprintf(only.config, sizeof only.config, "%s", config);
    *self = &only;
    return host->size < sizeof *host || host->abi != RV_CAP_ABI || !host->engine_version[0] || !host->base_dir[0];
}

static int nothing(void *self, struct rv_cap_call *call)
{
    const struct state *s = self;

    return call->reply(call, s && s->config[0] ? s->config : "{}");
}

const struct rv_cap_desc *SYMBOL(void)
{
    static const struct rv_cap_entry entries[] = {
        {RV_CAP_TOOL, TOOL, RV_CAP_JSON({"description" : "Say what the configuration is."}), nothing},
        RV_CAP_END,
    };
    static const struct rv_cap_desc desc = {.size = SIZE,
                                            .abi = ABI,
                                            .entry_size = sizeof(struct rv_cap_entry),
                                            .name = NAME,
                                            .version = VERSION,
                                            .description = "breaks a rule",
                                            .config_schema = CONFIG_SCHEMA,
                                            .entries = entries,
                                            .open = OPEN};
#ifdef NO_DESCRIPTOR
    (void)desc;
    return NULL;
#else
    return &desc;
#endif
}
