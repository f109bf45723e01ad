/* Tools that clients call themselves: what a turn that waits for them waits for, and which results a request brings. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"

void srv_client_tools_fini(struct srv_client_tools *t)
{
    json_object_put(t->tools);
    json_object_put(t->asked);
    free(t->names);
    free(t->message);
    *t = (struct srv_client_tools){0};
}

int srv_client_tools_init(struct srv_client_tools *t, const struct rv_request *req, rv_err **err)
{
    size_t n = req->tools ? json_object_array_length(req->tools) : 0;

    *t = (struct srv_client_tools){.message = rv_str_dup(rv_buf_str(&req->text)),
                                   .names = calloc(n + 1, sizeof *t->names)};
    if (!t->names || !t->message)
        return RV_FAIL(err, RV_E_NOMEM, "take the tools of a client");
    t->tools = json_object_get(req->tools);
    for (; t->n < n; t->n++)
        RV_IGNORE(!rv_json_get_text(json_object_array_get_idx(t->tools, t->n), "name", &t->names[t->n]),
                  "it was read with one");
    return 0;
}

void srv_client_tools_wait(struct srv_client_tools *t, const struct rv_interrupt *in)
{
    bool is_client = in->exists && rv_interrupt_asks_client(in->kind, in->data);

    json_object_put(t->asked);
    t->asked = is_client ? json_object_get(in->data) : NULL;
}

static bool is_asked(const struct srv_client_tools *t, const char *id)
{
    json_object *calls = t->asked ? rv_json_get_arr(t->asked, RV_CLIENT_CALLS) : NULL;
    const char *other = NULL;

    for (size_t i = 0; calls && id && i < json_object_array_length(calls); i++)
        if (rv_json_get_text(json_object_array_get_idx(calls, i), "id", &other) && strcmp(other, id) == 0)
            return true;
    return false;
}

bool srv_client_tools_answered(const struct srv_client_tools *t, const struct rv_request *req)
{
    for (size_t i = 0; i < req->n_results; i++)
        if (is_asked(t, req->results[i].call_id))
            return true;
    return false;
}

bool srv_client_tools_same(const struct srv_client_tools *t, const struct rv_request *req)
{
    const char *role = NULL, *content = NULL;
    size_t n = req->history ? json_object_array_length(req->history) : 0;

    for (size_t i = n; i-- > 0;) {
        json_object *row = json_object_array_get_idx(req->history, i);
        if (rv_json_get_text(row, "role", &role) && strcmp(role, "user") == 0)
            return rv_json_get_text(row, "content", &content) && strcmp(content, t->message) == 0 &&
                   srv_client_tools_answered(t, req);
    }
    return false;
}

static int add_result(json_object *results, const struct rv_request_result *r, rv_err **err)
{
    json_object *result = json_object_new_object();
    int rc = rv_json_set_take(results, r->call_id, result, err);

    if (rc < 0)
        return rc;
    return r->error ? rv_json_set_text(result, "error", r->error, err)
                    : rv_json_set_str(result, "content", r->content, err);
}

int srv_client_tools_answer(const struct srv_client_tools *t, const struct rv_request *req, json_object **data,
                            struct rv_response *out, rv_err **err)
{
    json_object *made = json_object_new_object(), *results = json_object_new_object();
    int rc = rv_json_set_take(made, RV_CLIENT_RESULTS, results, err);

    for (size_t i = 0; i < req->n_results && rc == 0; i++)
        if (is_asked(t, req->results[i].call_id))
            rc = add_result(results, &req->results[i], err);
    if (rc < 0) {
        json_object_put(made);
        return rc;
    }
    *data = made;
    *out = (struct rv_response){.data = made};
    if (req->has_message)
        out->text = rv_buf_str(&req->text);
    return 0;
}
