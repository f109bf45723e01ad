/* Asks: what a capability wants to know, or to have done, by the engine while one of its entries is called. Here is the
 * side of the call, in the process where its function runs: limits, the life of answers, and how a failure reads. */
#include "coreengine/tools/plugin/plugin_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGE ((size_t)64 << 10) /* text of a failed ask: a chain of errors has a few thousand */

struct rv_plugin_answer {
    struct rv_plugin_answer *next;
    char *text; /* owned */
};

static const char no_memory[] = "{\"type\":\"ExecutionError\",\"message\":\"no memory for the answer\"}";

/* The word that a plugin is told for a failure of the engine. */
static const char *type_of(const rv_err *err)
{
    static const struct {
        int code;
        const char *type;
    } types[] = {
        {RV_E_DENIED, rv_error_access_denied},
        {RV_E_NOT_FOUND, rv_error_not_found},
        {RV_E_INVALID, rv_error_validation},
        {RV_E_PARSE, rv_error_validation},
        {RV_E_EXISTS, rv_error_exists},
        {RV_E_TIMEOUT, rv_error_timeout},
        {RV_E_CANCELLED, rv_error_cancelled},
        {RV_E_LIMIT, rv_error_limit},
        {RV_E_QUOTA, rv_error_limit},
        {RV_E_STATE, rv_error_unavailable},
        {RV_E_UNAVAILABLE, rv_error_unavailable},
        {RV_E_DISK, rv_error_unavailable},
        {RV_E_FILES, rv_error_unavailable},
        {RV_E_THREADS, rv_error_unavailable},
    };

    for (size_t i = 0; i < RV_COUNT(types); i++)
        if (rv_err_code(err) == types[i].code)
            return types[i].type;
    const char *type = rv_err_code(err) == RV_E_TOOL ? rv_err_hint_text(err) : NULL;
    return type ? type : rv_error_execution;
}

static void write_failure(const rv_err *why, rv_buf *out)
{
    rv_buf text = RV_BUF_INIT(MAX_MESSAGE);
    rv_jw w = rv_jw_on(out);

    rv_err_write_chain(why, &text);
    if (rv_err_code(why) != RV_E_TOOL && rv_err_hint_text(why)) /* of a tool's failure it is the type */
        rv_buf_printf(&text, ": %s", rv_err_hint_text(why));
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", type_of(why));
    rv_jw_kv_text(&w, "message", text.len ? rv_buf_cstr(&text) : "it failed and does not say why");
    rv_jw_obj_end(&w);
    rv_buf_fini(&text);
}

/* The text becomes the call's. NULL: no memory. */
static const char *keep(struct rv_plugin_asks *a, rv_buf *text)
{
    struct rv_plugin_answer *item = text->rc == 0 ? malloc(sizeof *item) : NULL;
    size_t len = text->len;

    if (!item)
        return NULL;
    item->text = rv_buf_steal(text, NULL);
    if (!item->text) {
        free(item);
        return NULL;
    }
    item->next = a->answers;
    a->answers = item;
    a->n_bytes += len;
    return item->text;
}

static int check(const struct rv_plugin_asks *a, const char *service, rv_str args, rv_err **err)
{
    if (!service || strnlen(service, RV_SERVICE_MAX_NAME + 1) > RV_SERVICE_MAX_NAME)
        return RV_FAIL(err, RV_E_INVALID, "it asks for a service without a name, or with one of more than %d bytes",
                       RV_SERVICE_MAX_NAME);
    if (!rv_utf8_valid(rv_str_of(service), NULL))
        return RV_FAIL(err, RV_E_INVALID, "it asks for a service whose name is not UTF-8");
    if (args.len > RV_SERVICE_MAX_ARGS)
        return RV_FAIL(err, RV_E_LIMIT, "service \"%s\": its arguments are larger than %zu bytes", service,
                       RV_SERVICE_MAX_ARGS);
    if (a->n > RV_CAP_MAX_ASKS)
        return RV_FAIL(err, RV_E_LIMIT, "service \"%s\": a call asks at most %d times", service, RV_CAP_MAX_ASKS);
    if (a->n_bytes > RV_CAP_MAX_ASKED)
        return RV_FAIL(err, RV_E_LIMIT, "service \"%s\": the answers of a call are at most %u bytes", service,
                       RV_CAP_MAX_ASKED);
    return 0;
}

int plugin_ask(struct rv_plugin_asks *a, const struct rv_plugin_callbacks *callbacks, const char *service,
               const char *args, const char **answer)
{
    rv_str text = {args ? args : "{}", args ? strnlen(args, RV_SERVICE_MAX_ARGS + 1) : 2};
    rv_buf out = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    rv_err *why = NULL;

    a->n += a->n <= RV_CAP_MAX_ASKS;
    int rc = check(a, service, text, &why);
    if (rc == 0)
        rc = callbacks->ask(callbacks->self, service, text, &out, &why);
    if (rc == 0)
        rc = rv_buf_check(&out, "answer of a service", &why);
    if (rc < 0) {
        rv_buf_fini(&out);
        out = RV_BUF_INIT(2 * MAX_MESSAGE * 6);
        write_failure(why, &out);
        rv_err_free(why);
    }
    const char *kept = keep(a, &out);
    rv_buf_fini(&out);
    if (rc < 0)
        a->failure = kept ? kept : no_memory;
    if (answer)
        *answer = kept ? kept : no_memory;
    return rc < 0 || !kept;
}

void plugin_asks_fini(struct rv_plugin_asks *a)
{
    while (a->answers) {
        struct rv_plugin_answer *item = a->answers;
        a->answers = item->next;
        free(item->text);
        free(item);
    }
}

/* --- the side of the engine: the last stop before its loop --- */

static bool is_declared(const struct rv_plugin_entry *e, const char *service)
{
    for (size_t i = 0; i < e->services.n; i++)
        if (strcmp(e->services.items[i], service) == 0)
            return true;
    return false;
}

int plugin_pass_on(const struct rv_plugin_entry *e, const struct rv_plugin_call *call,
                   const struct rv_plugin_request *request, rv_buf *answer, rv_err **err)
{
    const struct rv_service_ask ask = {.service = request->service,
                                       .args = request->args,
                                       .capability = e->owner->name,
                                       .entry = e->bare,
                                       .kind = rv_name_kind_text(e->kind),
                                       .is_declared = is_declared(e, request->service),
                                       .run_id = call->run_id,
                                       .stage = call->stage,
                                       .user_id = call->user_id,
                                       .session_id = call->session_id,
                                       .key = call->idempotency_key,
                                       .call_id = call->call_id,
                                       .until_us = request->until_us};

    if (request->args.len > RV_SERVICE_MAX_ARGS)
        return RV_FAIL(err, RV_E_LIMIT, "service \"%s\": its arguments are larger than %zu bytes", request->service,
                       RV_SERVICE_MAX_ARGS);
    if (!call->on_ask)
        return RV_FAIL(err, RV_E_STATE, "service \"%s\": no engine answers, because no run makes this call",
                       request->service);
    return call->on_ask(call->ask_self, &ask, answer, err);
}
