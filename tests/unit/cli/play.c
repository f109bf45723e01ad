#include "tests/unit/cli/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

#define START_US 1700000000000000

rv_script *play_script(rv_str text)
{
    rv_findings *f = rv_findings_new();
    rv_buf said = RV_BUF_INIT(1 << 20);
    rv_script *s = NULL;

    if (rv_script_parse(text, "s.yaml", f, &s, NULL) < 0 || !s || rv_findings_n(f) > 0) {
        rv_findings_write_text(f, false, &said);
        rv_kit_die("%s\n%.*s", rv_buf_cstr(&said), (int)(text.len < 4000 ? text.len : 4000), text.ptr);
    }
    rv_findings_free(f);
    return s;
}

void play_start(rv_recorder *r, bool is_model, const char *name, int64_t call_id, int64_t now_us)
{
    const struct rv_effect e = {.kind = RV_EFFECT_EMIT,
                                .emit = is_model ? RV_EMIT_LLM_CALL_START : RV_EMIT_TOOL_CALL_START};
    char time[RV_TIME_MAX], line[256]; /* no memory: a test lets the recorder's fail */

    rv_time_format(now_us, time);
    snprintf(line, sizeof line, "{\"time\":\"%s\",\"%s\":\"%s\",\"call_id\":%lld}", time, is_model ? "stage" : "tool",
             name, (long long)call_id);
    rv_recorder_note_event(r, &e, rv_str_of(line));
}

static void log_text(rv_buf *log, const char *what, int64_t ms, rv_str text)
{
    rv_jw w = rv_jw_on(log);

    rv_buf_printf(log, "%s at %lld: ", what, (long long)ms);
    rv_jw_str(&w, text);
    rv_buf_putc(log, '\n');
}

/* Pieces as they come; gives the time when the last was there. */
static int64_t play_pieces(const struct rv_script_reply *reply, rv_recorder *r, int64_t id, int64_t jitter_us,
                           rv_buf *log)
{
    int64_t ms = reply->n_deltas ? 0 : reply->delay_ms;

    for (size_t i = 0; i < reply->n_deltas; i++) {
        const struct rv_script_delta *d = &reply->deltas[i];
        const struct rv_llm_delta delta = {.kind = d->is_thinking ? RV_LLM_DELTA_THINKING : RV_LLM_DELTA_TEXT,
                                           .text = d->text};
        ms += d->delay_ms;
        if (!d->text.len)
            continue;
        log_text(log, d->is_thinking ? "thinking" : "text", ms, d->text);
        if (r)
            rv_recorder_note_delta(r, 0, id, &delta, START_US + ms * 1000 + jitter_us);
    }
    return ms;
}

static void log_end(const struct rv_script_reply *reply, int64_t ms, rv_buf *log)
{
    rv_jw w = rv_jw_on(log);

    log_text(log, "reply", ms, rv_buf_str(&reply->body));
    rv_jw_obj(&w);
    rv_llm_answer_write(&reply->answer, &w);
    if (reply->failed) {
        rv_jw_kv_text(&w, "type", reply->error_type);
        rv_jw_kv_text(&w, "error", reply->error);
        rv_jw_kv_bool(&w, "retryable", reply->retryable);
    }
    rv_jw_obj_end(&w);
    rv_buf_putc(log, '\n');
}

static bool play_next(rv_script *s, const struct rv_script_call *call, int64_t id, rv_recorder *r, int64_t jitter_us,
                      rv_buf *log)
{
    bool is_model = call->kind == RV_SCRIPT_MODEL;
    struct rv_script_reply reply;

    if (rv_script_next(s, call, &reply, NULL) < 0)
        return false;
    if (r)
        play_start(r, is_model, call->stage, id, START_US);
    int64_t ms = play_pieces(&reply, r, id, jitter_us, log);
    log_end(&reply, ms, log);
    const struct rv_event ev = {.kind = is_model ? RV_EVENT_LLM_DONE : RV_EVENT_TOOL_DONE,
                                .now_us = START_US + ms * 1000 + jitter_us,
                                .call_id = id,
                                .failed = reply.failed,
                                .reply = rv_buf_str(&reply.body),
                                .error_type = reply.error_type,
                                .error = rv_str_of(reply.error),
                                .retryable = reply.retryable,
                                .llm = reply.answer};
    if (r)
        rv_recorder_note_input(r, &ev);
    rv_script_reply_fini(&reply);
    return true;
}

void play(rv_script *s, rv_recorder *r, int64_t jitter_us, rv_buf *log)
{
    static const struct {
        enum rv_script_kind kind;
        const char *name;
    } places[] = {{RV_SCRIPT_MODEL, "a"}, {RV_SCRIPT_MODEL, "b"}, {RV_SCRIPT_TOOL, "t"}};
    int64_t id = 1;

    for (size_t i = 0; i < RV_COUNT(places); i++) {
        const struct rv_script_call call = {
            .kind = places[i].kind, .stage = places[i].name, .tool = places[i].name, .visit = 1};
        rv_buf_printf(log, "-- %s\n", places[i].name);
        while (play_next(s, &call, id++, r, jitter_us, log))
            continue;
    }
}

char *play_recording(rv_recorder *r)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "r.yaml");
    rv_err *err = NULL;

    if (rv_recorder_write(r, "recorded", path, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    char *text = rv_kit_read(path), *end = strrchr(text, '}');
    rv_buf out = RV_BUF_INIT(4 << 20);
    rv_buf_add(&out, text, (size_t)(end - text));
    rv_buf_puts(&out, end[-1] == '{' ? "\"repeat\":false}\n" : ",\"repeat\":false}\n");
    free(text);
    free(path);
    rv_kit_tmpdir_remove(dir);
    return rv_buf_steal(&out, NULL);
}
