/* The providers that are known, and the models that refuse what others take. Data only: what is not here is said by a
 * role's options. */
#include "coreengine/model/provider/provider_internal.h"

#include <assert.h>
#include <string.h>

enum known {
    ANTHROPIC,
    AZURE,
    DEEPSEEK,
    GEMINI,
    GROQ,
    LLAMACPP,
    LMSTUDIO,
    MISTRAL,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    TOGETHER,
    VLLM,
    XAI,
    N_KNOWN,
};

static const struct rv_provider_info infos[] = {
    [ANTHROPIC] = {"anthropic", "Anthropic, Messages", RV_WIRE_ANTHROPIC, "https://api.anthropic.com",
                   "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", true},
    [AZURE] = {"azure", "Azure OpenAI, one deployment for each model", RV_WIRE_OPENAI, NULL, "AZURE_OPENAI_ENDPOINT",
               "AZURE_OPENAI_API_KEY", true},
    [DEEPSEEK] = {"deepseek", "DeepSeek", RV_WIRE_OPENAI, "https://api.deepseek.com/v1", NULL, "DEEPSEEK_API_KEY",
                  true},
    [GEMINI] = {"gemini", "Google Gemini, by its OpenAI-compatible path", RV_WIRE_OPENAI,
                "https://generativelanguage.googleapis.com/v1beta/openai", NULL, "GEMINI_API_KEY", true},
    [GROQ] = {"groq", "Groq", RV_WIRE_OPENAI, "https://api.groq.com/openai/v1", NULL, "GROQ_API_KEY", true},
    [LLAMACPP] = {"llamacpp", "llama.cpp's server on this machine", RV_WIRE_OPENAI, "http://127.0.0.1:8080/v1", NULL,
                  "LLAMA_API_KEY", false},
    [LMSTUDIO] = {"lmstudio", "LM Studio on this machine", RV_WIRE_OPENAI, "http://127.0.0.1:1234/v1", NULL, NULL,
                  false},
    [MISTRAL] = {"mistral", "Mistral", RV_WIRE_OPENAI, "https://api.mistral.ai/v1", NULL, "MISTRAL_API_KEY", true},
    [OLLAMA] = {"ollama", "Ollama on this machine", RV_WIRE_OLLAMA, "http://127.0.0.1:11434", "OLLAMA_HOST",
                "OLLAMA_API_KEY", false},
    [OPENAI] = {"openai", "OpenAI, and with base_url any server that is compatible", RV_WIRE_OPENAI,
                "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", true},
    [OPENROUTER] = {"openrouter", "OpenRouter", RV_WIRE_OPENAI, "https://openrouter.ai/api/v1", NULL,
                    "OPENROUTER_API_KEY", true},
    [TOGETHER] = {"together", "Together AI", RV_WIRE_OPENAI, "https://api.together.xyz/v1", NULL, "TOGETHER_API_KEY",
                  true},
    [VLLM] = {"vllm", "vLLM on this machine", RV_WIRE_OPENAI, "http://127.0.0.1:8000/v1", NULL, "VLLM_API_KEY", false},
    [XAI] = {"xai", "xAI", RV_WIRE_OPENAI, "https://api.x.ai/v1", NULL, "XAI_API_KEY", true},
};
RV_EACH_HAS_ROW(infos, N_KNOWN);

#define COMPATIBLE (RV_QUIRK_OLD_MAX_TOKENS | RV_QUIRK_NO_STRICT_OUTPUT)
static const struct rv_provider_ways ways[] = {
    [ANTHROPIC] = {.auth = RV_AUTH_X_API_KEY, .no_embeddings = true},
    [AZURE] = {.auth = RV_AUTH_API_KEY, .has_deployments = true, .has_developer_role = true},
    /* knows "any JSON", not schemas */
    [DEEPSEEK] = {.quirks = COMPATIBLE | RV_QUIRK_NO_NATIVE_OUTPUT | RV_QUIRK_NO_IMAGES | RV_QUIRK_NO_FILES,
                  .no_embeddings = true},
    [GEMINI] = {.quirks = COMPATIBLE | RV_QUIRK_NO_FILES},
    [GROQ] = {.quirks = RV_QUIRK_NO_STRICT_OUTPUT | RV_QUIRK_NO_FILES, .no_embeddings = true},
    [LLAMACPP] = {.quirks = COMPATIBLE | RV_QUIRK_NO_FILES},
    [LMSTUDIO] = {.quirks = COMPATIBLE | RV_QUIRK_NO_FILES},
    /* refuses members it does not know; usage comes unasked */
    [MISTRAL] = {.quirks = COMPATIBLE | RV_QUIRK_NO_STREAM_USAGE | RV_QUIRK_NO_FILES},
    [OLLAMA] = {.env_port = 11434},
    [OPENAI] = {.elsewhere_quirks = COMPATIBLE, .has_organization = true, .has_developer_role = true},
    [OPENROUTER] = {.quirks = COMPATIBLE, .no_embeddings = true},
    [TOGETHER] = {.quirks = COMPATIBLE | RV_QUIRK_NO_FILES},
    [VLLM] = {.quirks = COMPATIBLE | RV_QUIRK_NO_FILES},
    [XAI] = {.quirks = RV_QUIRK_NO_STRICT_OUTPUT | RV_QUIRK_NO_FILES, .no_embeddings = true},
};
RV_EACH_HAS_ROW(ways, N_KNOWN);

/* Models that reason refuse temperature and seed, and the old name of the token limit; the longest prefix that fits
 * counts. A prefix ends where a name does, or at "-", "." or ":". */
#define TEXT_ONLY                                                                                                      \
    (RV_QUIRK_NO_SAMPLING | RV_QUIRK_NO_TOOLS | RV_QUIRK_NO_NATIVE_OUTPUT | RV_QUIRK_NO_IMAGES | RV_QUIRK_NO_FILES)
static const struct {
    const char *prefix;
    unsigned adds, removes;
    unsigned adds_at_home; /* only where the system text may have the new role */
} models[] = {
    {"gpt-5", RV_QUIRK_NO_SAMPLING, RV_QUIRK_OLD_MAX_TOKENS, RV_QUIRK_DEVELOPER_ROLE},
    {"gpt-5-chat", 0, 0, 0}, /* does not reason */
    {"o1", RV_QUIRK_NO_SAMPLING, RV_QUIRK_OLD_MAX_TOKENS, RV_QUIRK_DEVELOPER_ROLE},
    {"o1-mini", TEXT_ONLY, RV_QUIRK_OLD_MAX_TOKENS, 0},
    {"o1-preview", TEXT_ONLY, RV_QUIRK_OLD_MAX_TOKENS, 0},
    {"o3", RV_QUIRK_NO_SAMPLING, RV_QUIRK_OLD_MAX_TOKENS, RV_QUIRK_DEVELOPER_ROLE},
    {"o4", RV_QUIRK_NO_SAMPLING, RV_QUIRK_OLD_MAX_TOKENS, RV_QUIRK_DEVELOPER_ROLE},
};

static const struct {
    const char *key;
    enum rv_quirk quirk;
} quirk_keys[] = {
    {"old_max_tokens", RV_QUIRK_OLD_MAX_TOKENS},
    {"developer_role", RV_QUIRK_DEVELOPER_ROLE},
    {"no_stream_usage", RV_QUIRK_NO_STREAM_USAGE},
    {"no_parallel_calls", RV_QUIRK_NO_PARALLEL_CALLS},
    {"no_sampling", RV_QUIRK_NO_SAMPLING},
    {"no_tools", RV_QUIRK_NO_TOOLS},
    {"no_native_output", RV_QUIRK_NO_NATIVE_OUTPUT},
    {"no_strict_output", RV_QUIRK_NO_STRICT_OUTPUT},
    {"no_images", RV_QUIRK_NO_IMAGES},
    {"no_files", RV_QUIRK_NO_FILES},
};

const struct rv_provider_info *rv_provider_list(size_t *n)
{
    *n = N_KNOWN;
    return infos;
}

const struct rv_provider_info *rv_provider_find(rv_str name)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (rv_str_is(name, infos[i].name))
            return &infos[i];
    return NULL;
}

unsigned rv_provider_takes(const struct rv_provider_info *info)
{
    unsigned takes = rv_wire_takes(info->wire), quirks = ways[info - infos].quirks;

    if (quirks & RV_QUIRK_NO_IMAGES)
        takes &= ~(unsigned)(RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL);
    if (quirks & RV_QUIRK_NO_FILES)
        takes &= ~(unsigned)(RV_WIRE_FILE_DATA | RV_WIRE_FILE_URL);
    return takes;
}

bool rv_provider_is_capability(const char *name)
{
    return name && strchr(name, '.');
}

const struct rv_provider_ways *provider_ways_of(const struct rv_provider_info *info)
{
    assert(info >= infos && info < infos + N_KNOWN);
    return &ways[info - infos];
}

static size_t fits(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(name, prefix, len) == 0 && (!name[len] || strchr("-.:", name[len])) ? len : 0;
}

void provider_model_quirks(const struct rv_provider_info *info, const char *model, bool at_home, unsigned *quirks)
{
    const char *slash = strrchr(model, '/'); /* routers write "vendor/model" */
    const char *name = slash ? slash + 1 : model;
    size_t longest = 0, best = 0;

    if (info->wire != RV_WIRE_OPENAI)
        return;
    for (size_t i = 0; i < RV_COUNT(models); i++) {
        size_t len = fits(name, models[i].prefix);
        if (len > longest) {
            longest = len;
            best = i;
        }
    }
    if (!longest)
        return;
    *quirks = (*quirks & ~models[best].removes) | models[best].adds;
    if (at_home && ways[info - infos].has_developer_role)
        *quirks |= models[best].adds_at_home;
}

unsigned provider_quirk_of(const char *key)
{
    for (size_t i = 0; i < RV_COUNT(quirk_keys); i++)
        if (strcmp(key, quirk_keys[i].key) == 0)
            return quirk_keys[i].quirk;
    return 0;
}
