/* See play.h. */
#include "tests/unit/protocols/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST 16

struct play {
    json_object *options;
    struct rv_protocol_opts opts;
    const char *client_tools[MAX_LIST], *known_calls[MAX_LIST];
    char name[64];
};

static const char *text_of(json_object *o, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(o, key, &text) ? text : NULL;
}

static bool flag_of(json_object *o, const char *key)
{
    bool flag = false;

    return rv_json_get_bool(o, key, &flag) && flag;
}

static size_t list_of(json_object *o, const char *key, const char *out[MAX_LIST])
{
    json_object *list = rv_json_get_arr(o, key);
    size_t n = list ? json_object_array_length(list) : 0;

    for (size_t i = 0; i < n && i < MAX_LIST; i++)
        out[i] = json_object_get_string(json_object_array_get_idx(list, i));
    return n < MAX_LIST ? n : MAX_LIST;
}

static int kind_of(const char *name)
{
    for (int i = 0; i < RV_N_PROTOCOLS; i++)
        if (strcmp(rv_protocol_text((enum rv_protocol_kind)i), name) == 0)
            return i;
    return -1;
}

static int read_options(struct play *p, rv_str line, const char *protocol, rv_err **err)
{
    int64_t created_ms = 0;

    int rc = rv_json_parse(line, NULL, &p->options, err);
    if (rc < 0)
        return rc;
    const char *named = protocol ? protocol : text_of(p->options, "protocol");
    snprintf(p->name, sizeof p->name, "%s", named ? named : "");
    char *plus = strchr(p->name, '+');
    if (plus)
        *plus = '\0';
    int kind = kind_of(p->name);
    if (kind < 0)
        return RV_FAIL(err, RV_E_INVALID, "unknown protocol \"%s\"", p->name);
    if (!rv_json_get_int(p->options, "created_ms", &created_ms))
        created_ms = 0;
    p->opts = (struct rv_protocol_opts){.kind = (enum rv_protocol_kind)kind,
                                        .is_whole = plus != NULL,
                                        .run_id = text_of(p->options, "run_id"),
                                        .session_id = text_of(p->options, "session_id"),
                                        .client_run_id = text_of(p->options, "client_run_id"),
                                        .model = text_of(p->options, "model"),
                                        .text_stage = text_of(p->options, "text_stage"),
                                        .created_us = created_ms * 1000,
                                        .child_text = RV_UNSET,
                                        .tells_steps = flag_of(p->options, "steps"),
                                        .tells_usage = flag_of(p->options, "usage"),
                                        .tells_events = flag_of(p->options, "events"),
                                        .tells_metadata = flag_of(p->options, "metadata"),
                                        .tells_calls = flag_of(p->options, "calls"),
                                        .client_tools = p->client_tools,
                                        .known_calls = p->known_calls};
    const char *child_text = text_of(p->options, "child_text");
    if (child_text)
        p->opts.child_text = rv_child_text_of(rv_str_of(child_text));
    p->opts.n_client_tools = list_of(p->options, "client_tools", p->client_tools);
    p->opts.n_known_calls = list_of(p->options, "known_calls", p->known_calls);
    if (!p->opts.run_id)
        p->opts.run_id = "run_1";
    if (!p->opts.session_id)
        p->opts.session_id = "thread_1";
    return 0;
}

static int play_end(rv_protocol *x, const struct rv_protocol_at *at, json_object *line, rv_buf *out, rv_err **err)
{
    enum rv_run_status status = RV_RUN_COMPLETED;
    enum rv_finish_reason finish = RV_FINISH_STOP;
    struct rv_protocol_end end = {.finish = RV_UNSET};
    const char *word = text_of(line, "status"), *why = text_of(line, "finish");
    json_object *usage = rv_json_get_obj(line, "usage");

    int rc = word ? rv_run_status_of(rv_str_of(word), &status, err) : 0;
    if (rc < 0)
        return rc;
    if (why && rv_finish_reason_of(rv_str_of(why), &finish, NULL) == 0)
        end.finish = (int)finish;
    end.status = status;
    end.text = rv_str_of(text_of(line, "text"));
    end.output = rv_json_get_obj(line, "output");
    end.agent = text_of(line, "agent");
    end.message_id = text_of(line, "message_id");
    end.error = text_of(line, "error");
    end.code = text_of(line, "code");
    if (usage)
        RV_IGNORE(!rv_usage_read_json(usage, &end.usage), "a script of ours");
    if (!rv_json_get_int(line, "latency_ms", &end.latency_ms))
        end.latency_ms = 0;
    return rv_protocol_end(x, at, &end, out, err);
}

static int play_line(rv_protocol *x, const struct rv_protocol_at *at, rv_str line, rv_buf *out, rv_err **err)
{
    json_object *value = NULL;
    int64_t size = 0;

    int rc = rv_json_parse(line, NULL, &value, err);
    if (rc < 0)
        return rc;
    const char *type = text_of(value, "type");
    if (type && strcmp(type, "end") == 0) {
        rc = play_end(x, at, value, out, err);
    } else if (type && strcmp(type, "question") == 0) {
        rv_buf event = RV_BUF_INIT(RV_PROTOCOL_MAX_TEXT);
        rv_jw w = rv_jw_on(&event);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "type", "interrupt_pending");
        json_object_object_foreach (value, key, member)
            if (strcmp(key, "type") != 0)
                rv_jw_kv_value(&w, key, member);
        rv_jw_obj_end(&w);
        rc = rv_buf_check(&event, "a question", err);
        if (rc == 0)
            rc = rv_protocol_on_event(x, at, rv_buf_str(&event), out, err);
        rv_buf_fini(&event);
    } else if (type && strcmp(type, "long") == 0 && rv_json_get_int(value, "bytes", &size)) {
        rv_buf event = RV_BUF_INIT(SIZE_MAX / 2), words = RV_BUF_INIT(SIZE_MAX / 2);
        for (int64_t i = 0; i < size; i++)
            rv_buf_putc(&words, (char)('a' + i % 26));
        rv_jw w = rv_jw_on(&event);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "type", "delta");
        rv_jw_kv_text(&w, "kind", "text");
        rv_jw_kv_text(&w, "stage", text_of(value, "stage"));
        rv_jw_kv_int(&w, "call_id", 1);
        rv_jw_kv_str(&w, "text", rv_buf_str(&words));
        rv_jw_obj_end(&w);
        rc = rv_buf_check(&event, "a long text", err);
        if (rc == 0)
            rc = rv_protocol_on_event(x, at, rv_buf_str(&event), out, err);
        rv_buf_fini(&words);
        rv_buf_fini(&event);
    } else {
        rc = rv_protocol_on_event(x, at, line, out, err);
    }
    json_object_put(value);
    return rc;
}

static rv_str next_line(rv_str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    rv_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = line.len + (end != NULL);

    *rest = (rv_str){rest->ptr + used, rest->len - used};
    return line;
}

int play(rv_str script, const char *protocol, bool with_ids, rv_buf *out, rv_err **err)
{
    struct rv_protocol_at at = {0};
    struct play p = {0};
    rv_protocol *x = NULL;
    char id[32];

    rv_str rest = script;
    int rc = read_options(&p, next_line(&rest), protocol, err);
    if (rc == 0)
        rc = rv_protocol_new(&p.opts, &x, err);
    at.now_us = p.opts.created_us;
    if (rc == 0)
        rc = rv_protocol_begin(x, &at, out, err);
    for (int64_t n = 1; rc == 0 && rest.len > 0; n++) {
        rv_str line = next_line(&rest);
        snprintf(id, sizeof id, "%lld", (long long)n);
        at.id = with_ids ? id : NULL;
        if (line.len > 0 && line.ptr[0] != '#')
            rc = play_line(x, &at, line, out, err);
    }
    rv_protocol_free(x);
    json_object_put(p.options);
    return rc;
}
