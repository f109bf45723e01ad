/* A conversation while its stage waits for a person: the part that is kept with the envelope, and how it goes on. */
#include "coreengine/agent/agent_internal.h"

#define KEPT_MAX ((size_t)64 << 20)

static const struct rv_json_opts usage_opts = {.what = "usage"};

/* Adds usage under key. */
static int keep_usage(json_object *kept, const char *key, const struct rv_usage *usage, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(KEPT_MAX);
    json_object *value = NULL;
    rv_jw w = rv_jw_on(&text);

    rv_usage_write_json(usage, &w);
    int rc = rv_buf_check(&text, "usage", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &usage_opts, &value, err);
    rv_buf_fini(&text);
    return rc == 0 ? rv_json_set_take(kept, key, value, err) : rc;
}

/* Adds a copy of value under key; nothing for NULL. */
static int keep_copy(json_object *kept, const char *key, json_object *value, rv_err **err)
{
    json_object *copy = NULL;
    int rc = value ? rv_json_dup(value, &copy, err) : 0;

    return rc == 0 && copy ? rv_json_set_take(kept, key, copy, err) : rc;
}

static int keep_counts(const struct model_progress *t, json_object *kept, rv_err **err)
{
    const struct {
        const char *key;
        int64_t n;
    } counts[] = {{"rounds", t->rounds},         {"repairs", t->repairs},   {"bad_calls", t->bad_calls},
                  {"tool_calls", t->tool_calls}, {"requests", t->requests}, {"steps_before", (int64_t)t->steps_before}};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(counts) && rc == 0; i++)
        rc = rv_json_set_int(kept, counts[i].key, counts[i].n, err);
    return rc;
}

/* What actions said of the session. */
static int keep_session(const rv_visit *v, json_object *kept, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(KEPT_MAX);
    json_object *routing = NULL;
    rv_jw w = rv_jw_on(&text);
    int rc = v->session_name ? rv_json_set_text(kept, "session_name", v->session_name, err) : 0;

    if (rc < 0 || !v->shared->conversation || !v->shared->conversation->has_routing)
        return rc;
    rv_routing_write_json(&v->routing, &w);
    rc = rv_buf_check(&text, "the state of a routing", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), NULL, &routing, err);
    rv_buf_fini(&text);
    return rc == 0 ? rv_json_set_take(kept, "routing", routing, err) : rc;
}

static int take_session(rv_visit *v, json_object *kept, rv_err **err)
{
    json_object *routing = rv_json_get_obj(kept, "routing");
    const char *name = NULL;

    if (routing)
        rv_routing_read_json(routing, &v->routing);
    if (!rv_json_get_text(kept, "session_name", &name))
        return 0;
    v->session_name = rv_str_dup(rv_str_of(name));
    return v->session_name ? 0 : RV_FAIL(err, RV_E_NOMEM, "go on with a conversation");
}

/* Texts that become rows of the session when the turn is over. */
static int keep_said(const struct model_progress *t, json_object *kept, rv_err **err)
{
    int rc = t->visible.len > 0 ? rv_json_set_str(kept, "said", rv_buf_str(&t->visible), err) : 0;

    if (rc == 0 && t->answer_at != SIZE_MAX)
        rc = rv_json_set_int(kept, "answer_at", (int64_t)t->answer_at, err);
    if (rc == 0 && t->is_muted)
        rc = rv_json_set_bool(kept, "is_muted", true, err);
    if (rc == 0)
        rc = keep_copy(kept, "child_rows", t->child_rows, err);
    if (rc == 0 && !rv_usage_is_zero(&t->child_usage))
        rc = keep_usage(kept, "child_usage", &t->child_usage, err);
    return rc;
}

int rv_messages_keep(const rv_visit *v, json_object **out, rv_err **err)
{
    const struct model_progress *t = &v->model;
    json_object *kept = json_object_new_object();
    int rc = kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep a conversation");

    if (rc == 0)
        rc = rv_json_set_str(kept, "prompt", (rv_str){t->prompt, t->prompt_len}, err);
    if (rc == 0)
        rc = keep_copy(kept, "turns", t->messages, err);
    if (rc == 0)
        rc = keep_counts(t, kept, err);
    if (rc == 0)
        rc = keep_usage(kept, "usage", &t->usage, err);
    if (rc == 0)
        rc = keep_said(t, kept, err);
    if (rc == 0)
        rc = keep_session(v, kept, err);
    if (rc < 0) {
        json_object_put(kept);
        return rc;
    }
    *out = kept;
    return 0;
}

static void take_count(json_object *kept, const char *key, int64_t *out)
{
    int64_t n = 0;

    if (rv_json_get_int(kept, key, &n) && n > 0 && n <= RV_USAGE_MAX)
        *out = n;
}

static int take_said(struct model_progress *t, json_object *kept, rv_err **err)
{
    int64_t at = 0;
    json_object *visible = NULL, *rows = rv_json_get_obj(kept, "child_rows");

    json_object_object_get_ex(kept, "said", &visible);
    rv_buf_add_str(&t->visible, rv_json_str(visible));
    if (rv_json_get_int(kept, "answer_at", &at) && at >= 0 && (uint64_t)at <= t->visible.len)
        t->answer_at = (size_t)at;
    RV_IGNORE(!rv_json_get_bool(kept, "is_muted", &t->is_muted), "absent: false");
    RV_IGNORE(!rv_usage_read_json(rv_json_get_obj(kept, "child_usage"), &t->child_usage), "absent: 0");
    int rc = rv_buf_check(&t->visible, "what was said", err);
    return rc == 0 && rows ? rv_json_dup(rows, &t->child_rows, err) : rc;
}

int rv_messages_take(rv_visit *v, json_object *kept, rv_err **err)
{
    struct model_progress *t = &v->model;
    json_object *prompt = NULL, *messages = rv_json_get_arr(kept, "turns");
    int64_t steps = 0;

    json_object_object_get_ex(kept, "prompt", &prompt);
    rv_str text = rv_json_str(prompt);
    t->prompt = rv_str_dup(text);
    t->prompt_len = text.len;
    if (!t->prompt)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a conversation");
    int rc = messages ? rv_json_dup(messages, &t->messages, err) : 0;
    if (rc == 0)
        rc = take_said(t, kept, err);
    if (rc == 0)
        rc = take_session(v, kept, err);
    take_count(kept, "rounds", &t->rounds);
    take_count(kept, "repairs", &t->repairs);
    take_count(kept, "bad_calls", &t->bad_calls);
    take_count(kept, "tool_calls", &t->tool_calls);
    take_count(kept, "requests", &t->requests);
    take_count(kept, "steps_before", &steps);
    t->steps_before = (size_t)steps;
    RV_IGNORE(!rv_usage_read_json(rv_json_get_obj(kept, "usage"), &t->usage), "it was written here; else it is 0");
    t->acting = true;
    return rc;
}
