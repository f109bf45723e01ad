/* Who is told when a run of POST /runs ends or waits for an answer. */
#include <string.h>

#include "coreengine/server/handlers_internal.h"

#define MIN_SECRET 16 /* bytes: shorter ones can be guessed */

int srv_webhook_check(const char *url, const char *secret, rv_err **err)
{
    bool is_web = strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
    size_t n = strlen(url);
    int rc = 0;

    for (size_t i = 0; i < n && is_web; i++)
        is_web = (unsigned char)url[i] > ' ' && (unsigned char)url[i] < 127;
    const char *host = is_web ? strstr(url, "://") + 3 : "";
    if (!is_web || n > RV_WEBHOOK_MAX_URL || !*host || memchr(host, '@', strcspn(host, "/?#"))) {
        rc = RV_FAIL(err, RV_E_INVALID,
                     "a webhook needs an address of http:// or https:// without a user, at most %d "
                     "bytes",
                     RV_WEBHOOK_MAX_URL);
        rv_err_set_hint(err, "spaces and other letters than those of ASCII are written with %%");
    } else if (!secret) {
        rc = RV_FAIL(err, RV_E_INVALID,
                     "a webhook needs a \"secret\" by which its receiver knows that it is not from "
                     "someone else");
    } else if (strlen(secret) < MIN_SECRET || strlen(secret) > RV_WEBHOOK_MAX_SECRET) {
        rc =
            RV_FAIL(err, RV_E_INVALID, "the secret of a webhook has %d to %d bytes", MIN_SECRET, RV_WEBHOOK_MAX_SECRET);
    }
    return rc;
}

static int read_events(json_object *hook, int64_t *out, rv_err **err)
{
    json_object *list = NULL;

    *out = RV_WEBHOOK_ENDED | RV_WEBHOOK_INTERRUPTED;
    if (!json_object_object_get_ex(hook, "events", &list) || !list)
        return 0;
    *out = 0;
    for (size_t i = 0; json_object_is_type(list, json_type_array) && i < json_object_array_length(list); i++) {
        rv_str word = rv_json_str(json_object_array_get_idx(list, i));
        if (rv_str_is(word, "run.ended"))
            *out |= RV_WEBHOOK_ENDED;
        else if (rv_str_is(word, "run.interrupted"))
            *out |= RV_WEBHOOK_INTERRUPTED;
        else
            return RV_FAIL(err, RV_E_INVALID,
                           "an event of a webhook is \"run.ended\" or \"run.interrupted\", not "
                           "\"%.*s\"",
                           RV_STR_ARG(rv_utf8_cut(word, 40)));
    }
    return *out ? 0 : RV_FAIL(err, RV_E_INVALID, "\"events\" of a webhook must be a list of one or two events");
}

int srv_webhooks_read(struct srv_call *c, struct rv_webhook out[SRV_MAX_WEBHOOKS], size_t *n, rv_err **err)
{
    const struct rv_server_opts *o = c->server->opts;
    json_object *given = NULL, *hook = rv_json_get_obj(c->body, "webhook");
    const char *url = "", *secret = o->webhook_secret;
    int rc = 0;

    *n = 0;
    if (json_object_object_get_ex(c->body, "webhook", &given) && given) {
        if (!hook || !rv_json_get_text(hook, "url", &url))
            return RV_FAIL(err, RV_E_INVALID, "\"webhook\" must be an object with a \"url\"");
        if (json_object_object_get_ex(hook, "secret", NULL) && !rv_json_get_text(hook, "secret", &secret))
            return RV_FAIL(err, RV_E_INVALID, "\"secret\" of \"webhook\" must be a text");
        rc = srv_webhook_check(url, secret, err);
        out[0] = (struct rv_webhook){.url = url, .secret = secret};
        if (rc == 0)
            rc = read_events(hook, &out[0].events, err);
        *n = 1;
    }
    if (o->webhook)
        out[(*n)++] = (struct rv_webhook){
            .url = o->webhook, .secret = o->webhook_secret, .events = RV_WEBHOOK_ENDED | RV_WEBHOOK_INTERRUPTED};
    return rc;
}
