/* guard: two policies. One denies outputs that look like they hold a secret, one asks a person before commands. */
#include <reeve/capability.h>

#include <ctype.h>
#include <json-c/json.h>
#include <string.h>

/* What well-known credentials begin with, and how many more characters of [A-Za-z0-9_-] make it one. */
static const struct {
    const char *prefix;
    size_t more;
    const char *what;
} secrets[] = {
    {"AKIA", 16, "an access key id"},
    {"ghp_", 30, "a repository token"},
    {"sk-", 20, "an API key"},
    {"xoxb-", 20, "a chat token"},
    {"-----BEGIN PRIVATE KEY", 0, "a private key"},
    {"-----BEGIN RSA PRIVATE KEY", 0, "a private key"},
};

static size_t token_length(const char *c)
{
    size_t n = 0;
    while (isalnum((unsigned char)c[n]) || c[n] == '_' || c[n] == '-')
        n++;
    return n;
}

static const char *find_secret(const char *text)
{
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        for (const char *at = text; (at = strstr(at, secrets[i].prefix)); at++)
            if (token_length(at + strlen(secrets[i].prefix)) >= secrets[i].more)
                return secrets[i].what;
    return NULL;
}

/* The output as text; the caller frees the tree that keeps it. */
static json_object *output_of(const struct rv_cap_call *call, json_object **output)
{
    json_object *args = json_tokener_parse(call->args);
    *output = NULL;
    if (args)
        json_object_object_get_ex(args, "output", output);
    return args;
}

static int no_secrets(void *self, struct rv_cap_call *call)
{
    json_object *output, *args = output_of(call, &output);
    const char *text = output ? json_object_to_json_string_ext(output, JSON_C_TO_STRING_NOSLASHESCAPE) : "";
    const char *found = find_secret(text);
    char reply[160];
    int rc;

    (void)self;
    if (found) {
        snprintf(reply, sizeof reply, "{\"decision\": \"deny\", \"reason\": \"the output holds a secret: %s\"}", found);
        rc = call->reply(call, reply);
    } else {
        rc = call->reply(call, "{\"decision\": \"allow\"}");
    }
    json_object_put(args);
    return rc;
}

static int confirm_commands(void *self, struct rv_cap_call *call)
{
    json_object *output, *args = output_of(call, &output);
    int asks =
        output && json_object_is_type(output, json_type_object) && json_object_object_get_ex(output, "command", NULL);

    (void)self;
    json_object_put(args);
    return call->reply(call,
                       asks ? "{\"decision\": \"confirm\", \"message\": \"the output holds a command: may it pass?\"}"
                            : "{\"decision\": \"allow\"}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_POLICY, "no_secrets",
     RV_CAP_JSON({"description" : "Deny outputs that look like they hold a credential.", "sees" : []}), no_secrets},
    {RV_CAP_POLICY, "confirm_commands",
     RV_CAP_JSON({"description" : "Ask a person when an output has a command.", "sees" : []}), confirm_commands},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "guard", .version = "1.0.0", .description = "Policies: no secrets, commands need a yes.",
              .entries = entries)
