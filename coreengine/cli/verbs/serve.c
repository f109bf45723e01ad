/* reeve serve: agents, runs and data over HTTP. */
#include "coreengine/cli/outlet_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_CAPABILITIES 64 /* --capability of one command: each is a library or a process; more is an error */
#define MAX_SECRET       ((size_t)64 << 10) /* bytes of a file with a secret: PEM has some thousand */
#define MAX_SECRETS      8                  /* of files: one for each option that names such a file; there are fewer */

static const struct rv_cli_option options[] = {
    {"listen", 0, "ADDRESS:PORT", "where clients connect (default " RV_SERVER_LISTEN "); port 0: any free one", NULL,
     false},
    {"pipelines", 0, "DIR", "folder of pipelines that clients may run, by the names of their files", "DIR", false},
    {"script", 's', "FILE", "answers for models, tools and people in chats", "FILE", false},
    {"scripts", 0, "DIR", "folder of scripts that answer in pipelines: of each the one with its name", "DIR", false},
    {"capability", 0, "NAME", "capability whose tools and agents chats have, in addition to p8 (\"\": without p8)",
     NULL, true},
    {"mcp-agents", 0, NULL, "agents are tools at /mcp, too: ask_NAME", NULL, false},
    {"mcp-tool", 0, "CAPABILITY:TOOL", "a tool of a capability at /mcp; none without this option", NULL, true},
    {"model", 'm', "MODEL", "model of turns whose agent and request name none, e.g. openai:gpt-4.1", NULL, false},
    {"concurrency", 'c', "N", "queued runs at once (default 16)", NULL, false},
    {"no-worker", 0, NULL, "do not do what is queued: leave it to `reeve worker`", NULL, false},
    {"grace", 0, "DURATION", "time that turns and runs have to end after a signal (default 30s; 0s: none)", NULL,
     false},
    {"client-grace", 0, "DURATION",
     "time that a client has to come back before its turn is cancelled (default 5s; 0s: none; never: it goes on)", NULL,
     false},
    {"stream-keep", 0, "DURATION",
     "time that a stream is kept beyond its end, for clients that come back (default 5min)", NULL, false},
    {"certificate", 0, "FILE", "serve TLS with this certificate (PEM)", "FILE", false},
    {"certificate-key", 0, "FILE", "its private key (PEM)", "FILE", false},
    {"quiet", 'q', NULL, "print no access log and no progress", NULL, false},
    {"otlp", 0, "URL", "send spans and metrics to this collector (or OTEL_EXPORTER_OTLP_ENDPOINT, P8_OTEL_*)", NULL,
     false},
    {"webhook", 0, "URL", "tell this address when a run of POST /runs ends, or waits for an answer", NULL, false},
    {"webhook-secret-file", 0, "FILE", "by which webhooks are signed (or REEVE_WEBHOOK_SECRET)", "FILE", false},
    {"quotas", 0, "FILE", RV_CLI_QUOTAS_DOC, "FILE", false},
    {"lease", 0, "SECONDS", RV_CLI_LEASE_DOC, NULL, false},
    /* the settings of coreengine/identity, of which a test says that all of them are here */
    {"require-key", 0, NULL, "ask for a key even when none is set up, also on this machine", NULL, false},
    {"api-key-file", 0, "FILE", "one key of level master, beside those of `reeve keys` (or REEVE_API_KEY)", "FILE",
     false},
    {"jwt-secret-file", 0, "FILE", "accept tokens signed with HS256 and this secret (or REEVE_JWT_SECRET)", "FILE",
     false},
    {"jwks", 0, "FILE", "accept tokens signed with RS256 or ES256 by a key of this file", "FILE", false},
    {"jwt-issuer", 0, "TEXT", "what `iss` of a token has to be", NULL, false},
    {"jwt-audience", 0, "LIST", "one of these has to be in `aud` of a token", NULL, false},
    {"jwt-tenant", 0, "ID", "tenant of tokens without `tenant_id`", NULL, false},
    {"jwt-scopes", 0, "LIST", "scopes of all tokens", NULL, false},
    {"jwt-skew", 0, "SECONDS", "how far the clocks of issuers may be off (default 30)", NULL, false},
    {"trusted-proxies", 0, "LIST", "addresses and networks of proxies whose X-Forwarded-* headers count", NULL, false},
    {"trust-user-header", 0, NULL, "X-User-Id names the user of a caller who may act for all users of a tenant", NULL,
     false},
    {"any-user-id", 0, NULL, "X-User-Id may be any id, not only a UUID", NULL, false},
    {"cors-origins", 0, "LIST", "origins whose pages may call the server, or * on loopback", NULL, false},
    {"hosts", 0, "LIST", "names beside localhost that callers without a key may use for this server", NULL, false},
    {"login-time", 0, "SECONDS", "how long a login of the page lasts (default 43200)", NULL, false},
    {"requests-per-minute", 0, "N", "requests of one key, user or address (default 0: no limit)", NULL, false},
    {"failed-logins-per-minute", 0, "N", "wrong keys of one address (default 10)", NULL, false},
};

/* The texts that the settings borrow. */
struct secrets {
    rv_buf items[MAX_SECRETS];
    size_t n;
};

static int read_secret(const char *path, struct secrets *s, const char **out, rv_err **err)
{
    rv_buf *b = &s->items[s->n];

    if (s->n >= MAX_SECRETS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d files of secrets", MAX_SECRETS);
    s->n++;
    rv_buf_init(b, MAX_SECRET);
    int rc = rv_file_read(path, b, err);
    while (rc == 0 && b->len > 0 && (b->ptr[b->len - 1] == '\n' || b->ptr[b->len - 1] == '\r'))
        rv_buf_truncate(b, b->len - 1);
    if (rc == 0)
        *out = rv_buf_cstr(b);
    return rc;
}

/* A flag goes before its variable. */
static int read_setting(const struct rv_cli *cli, const struct rv_identity_setting *setting, struct secrets *s,
                        struct rv_identity_opts *out, rv_err **err)
{
    const char *value = setting->arg ? cli_value(cli, setting->flag) : NULL, *env = getenv(setting->env);
    int rc = 0;

    if (!setting->arg && cli_flag(cli, setting->flag))
        return rv_identity_opts_set(out, setting, NULL, err);
    if (value && setting->is_secret)
        rc = read_secret(value, s, &value, err);
    if (!value && env && env[0])
        value = env;
    return rc == 0 && value ? rv_identity_opts_set(out, setting, value, err) : rc;
}

static int read_streams(struct rv_cli *cli, struct rv_server_opts *out, rv_err **err)
{
    const char *grace = cli_value(cli, "client-grace");
    int rc = 0;

    out->stays_us = RV_SERVER_STAYS_US;
    if (grace && strcmp(grace, "never") == 0)
        out->stays_us = RV_SERVER_STAYS;
    else
        rc = cli_span(cli, "client-grace", 0, &out->stays_us, err);
    return rc == 0 ? cli_span(cli, "stream-keep", RV_APP_STREAM_NOT_KEPT, &out->kept_us, err) : rc;
}

static int read_opts(struct rv_cli *cli, struct rv_server_opts *out, struct secrets *s, rv_err **err)
{
    int64_t concurrency = 0;
    int rc = cli_int(cli, "concurrency", 1, RV_WORKER_MAX, &concurrency, err);

    out->concurrency = (size_t)concurrency;
    if (rc == 0)
        rc = cli_span(cli, "grace", RV_WORKER_NO_GRACE, &out->grace_us, err);
    const char *webhook_secret = cli_value(cli, "webhook-secret-file"), *env = getenv("REEVE_WEBHOOK_SECRET");
    out->webhook_secret = env && env[0] ? env : NULL;
    if (rc == 0 && webhook_secret)
        rc = read_secret(webhook_secret, s, &out->webhook_secret, err);
    if (rc == 0)
        rc = read_streams(cli, out, err);
    out->identity = RV_IDENTITY_OPTS_INIT;
    for (size_t i = 0; i < rv_n_identity_settings && rc == 0; i++)
        rc = read_setting(cli, &rv_identity_settings[i], s, &out->identity, err);
    return rc;
}

static void say(void *self, const char *line)
{
    (void)self;
    cli_say("%s\n", line);
}

static void on_ready(void *self, const char *url)
{
    (void)self;
    cli_say("listening on %s (open it in a browser; ^C ends)\n", url);
}

static const char *environment(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

static int serve(struct rv_cli *cli, rv_err **err)
{
    const char *capabilities[MAX_CAPABILITIES], *tools[RV_CLI_MAX_TOOLS];
    const struct rv_log_opts access = {.level = RV_LOG_INFO, .format = RV_LOG_JSON, .fd = STDOUT_FILENO};
    bool quiet = cli_flag(cli, "quiet");
    struct secrets secrets = {.n = 0};
    struct rv_server_opts opts = {.app = &cli->app,
                                  .listen = cli_value(cli, "listen"),
                                  .certificate = cli_value(cli, "certificate"),
                                  .key = cli_value(cli, "certificate-key"),
                                  .pipelines = cli_value(cli, "pipelines"),
                                  .script = cli_value(cli, "script"),
                                  .scripts = cli_value(cli, "scripts"),
                                  .capabilities = capabilities,
                                  .mcp_agents = cli_flag(cli, "mcp-agents"),
                                  .mcp_tools = tools,
                                  .model = cli_value(cli, "model"),
                                  .no_worker = cli_flag(cli, "no-worker"),
                                  .webhook = cli_value(cli, "webhook"),
                                  .on_ready = on_ready,
                                  .say = quiet ? NULL : say};
    int64_t n_left = 0;

    int rc = cli_values(cli, "capability", capabilities, RV_COUNT(capabilities), &opts.n_capabilities, err);
    cli->app.more_capabilities = capabilities;
    cli->app.n_more_capabilities = opts.n_capabilities;
    if (rc == 0)
        rc = cli_values(cli, "mcp-tool", tools, RV_COUNT(tools), &opts.n_mcp_tools, err);
    if (rc == 0)
        rc = cli_check_tools("--mcp-tool", tools, opts.n_mcp_tools, err);
    if (rc == 0)
        rc = read_opts(cli, &opts, &secrets, err);
    if (rc == 0)
        rc = rv_telemetry_read(environment, NULL, cli_value(cli, "otlp"), &opts.telemetry, err);
    cli->app.traces = rc == 0 && opts.telemetry.url;
    if (rc == 0) {
        opts.access = quiet ? NULL : rv_log_new(&access);
        rc = rv_log_never_wait(opts.access, err);
        if (rc == 0)
            cli_outlet_open(cli->app.log);
        if (rc == 0)
            rc = rv_server_run(&opts, &n_left, err);
        rv_log_free(opts.access);
    }
    for (size_t i = 0; i < secrets.n; i++) {
        rv_secret_wipe(secrets.items[i].ptr, secrets.items[i].len);
        rv_buf_fini(&secrets.items[i]);
    }
    if (rc < 0)
        return rc;
    if (n_left > 0) /* their calls still run: what they use must stay until the process is gone */
        _exit(cli_out_rest() ? RV_EXIT_COMPLETED : RV_EXIT_FAILED);
    return RV_EXIT_COMPLETED;
}

const struct rv_cli_verb verb_serve = {
    .name = "serve",
    .args = "",
    .summary = "serve agents, runs and data over HTTP",
    .text =
        "Serves until SIGTERM or SIGINT, which drain it: nothing new is accepted, turns and runs under way come to an\n"
        "end, or to a point where another process goes on. A second signal ends it at once. Clients are those of "
        "AG-UI\n"
        "(POST /chat/ID), of OpenAI (POST /v1/chat/completions, an agent is a model) and of REMLight; GET "
        "/openapi.json\n"
        "lists all paths. What is queued is done in this process, too. The access log goes to stdout, one JSON object "
        "a\n"
        "line. As long as no key or token is set up, it listens on this machine only: `reeve keys create` makes a key.",
    .examples = "reeve serve --pipelines pipelines\n"
                "reeve serve --listen 0.0.0.0:8443 --certificate server.pem --certificate-key server.key\n"
                "reeve serve --listen 127.0.0.1:0 --jwks keys.json --jwt-issuer https://login.example.com",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_places, &cli_of_commits},
    .needs = "certificate certificate-key; certificate-key certificate; scripts pipelines",
    .outlives_reader = true,
    .run = serve,
};
