#include "tests/unit/wire/hear.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void put_usage(rv_buf *b, const struct rv_usage *u)
{
    rv_buf_printf(b, "usage %lld %lld", (long long)u->input_tokens, (long long)u->output_tokens);
    if (u->cached_tokens)
        rv_buf_printf(b, " cached=%lld", (long long)u->cached_tokens);
    if (u->cache_write_tokens)
        rv_buf_printf(b, " written=%lld", (long long)u->cache_write_tokens);
    if (u->reasoning_tokens)
        rv_buf_printf(b, " reasoning=%lld", (long long)u->reasoning_tokens);
    rv_buf_putc(b, '\n');
}

static void put_line(rv_buf *b, const char *what, rv_str text)
{
    rv_buf_puts(b, what);
    rv_buf_add_str(b, text);
    rv_buf_putc(b, '\n');
}

static void on_delta(void *self, const struct rv_llm_delta *d)
{
    rv_buf *b = self;

    ck_assert(rv_utf8_valid(d->text, NULL));
    switch (d->kind) {
    case RV_LLM_DELTA_TEXT:
        ck_assert_uint_gt(d->text.len, 0);
        put_line(b, "text ", d->text);
        break;
    case RV_LLM_DELTA_THINKING:
        ck_assert_uint_gt(d->text.len, 0);
        put_line(b, "thinking ", d->text);
        break;
    case RV_LLM_DELTA_TOOL_START:
        rv_buf_printf(b, "start %zu %.*s ", d->index, RV_STR_ARG(d->id));
        put_line(b, "", d->name);
        break;
    case RV_LLM_DELTA_TOOL_ARGUMENTS:
        ck_assert_uint_gt(d->text.len, 0);
        rv_buf_printf(b, "arguments %zu ", d->index);
        put_line(b, "", d->text);
        break;
    case RV_LLM_DELTA_TOOL_END:
        rv_buf_printf(b, "end %zu\n", d->index);
        break;
    case RV_LLM_DELTA_USAGE:
        put_usage(b, &d->usage);
        break;
    case RV_LLM_DELTA_FINISH:
        rv_buf_printf(b, "finish %s\n", rv_finish_reason_text((enum rv_finish_reason)d->finish));
        break;
    case RV_N_LLM_DELTAS:
        ck_abort_msg("not a kind");
    }
}

static void put_reply(rv_buf *b, const struct rv_llm_reply *r)
{
    const struct rv_llm_answer *a = &r->answer;

    put_line(b, "= ", rv_buf_str(&r->text));
    if (r->tool_calls.len)
        put_line(b, "calls ", rv_buf_str(&r->tool_calls));
    if (r->opaque.len)
        put_line(b, "opaque ", rv_buf_str(&r->opaque));
    if (a->has_usage)
        put_usage(b, &a->usage);
    if (!r->failed) {
        rv_buf_printf(b, "finish %s\n",
                      a->finish == RV_UNSET ? "-" : rv_finish_reason_text((enum rv_finish_reason)a->finish));
        return;
    }
    ck_assert_uint_gt(r->error.len, 0);
    ck_assert(rv_utf8_valid(rv_buf_str(&r->error), NULL));
    rv_buf_printf(b, "! %s%s%s: ", rv_llm_error_text((enum rv_llm_error)a->error_kind),
                  r->retryable ? " retryable" : "", a->may_be_billed ? " billed" : "");
    put_line(b, "", rv_buf_str(&r->error));
}

char *hear(const struct hear *h, rv_str body)
{
    rv_buf log = RV_BUF_INIT(SIZE_MAX / 2);
    struct rv_llm_reply reply;
    rv_wire_reader *r = NULL;
    rv_err *err = NULL;
    size_t at = 0;

    ck_assert_int_eq(rv_wire_reader_new(h->target, rv_str_of(h->content_type ? h->content_type : "text/event-stream"),
                                        h->only_reply ? NULL : on_delta, &log, &r, &err),
                     0);
    r->no_short_way = h->no_short_way;
    while (at < body.len) {
        size_t n = at == 0 && h->first ? h->first : h->step ? h->step : body.len - at;
        if (n > body.len - at)
            n = body.len - at;
        ck_assert_int_eq(rv_wire_read(r, (rv_str){body.ptr + at, n}, &err), 0);
        at += n;
    }
    ck_assert_int_eq(rv_wire_end(r, h->why, h->kind, &reply, &err), 0);
    put_reply(&log, &reply);
    rv_llm_reply_fini(&reply);
    rv_wire_reader_free(r);
    return rv_buf_steal(&log, NULL);
}

char *with_line_ends(const char *text, const char *end)
{
    rv_buf b = RV_BUF_INIT(SIZE_MAX / 2);

    for (const char *p = text; *p; p++) {
        if (*p == '\n')
            rv_buf_puts(&b, end);
        else
            rv_buf_putc(&b, *p);
    }
    return rv_buf_steal(&b, NULL);
}

void same_text(const char *what, char *got, const char *want)
{
    ck_assert_ptr_nonnull(got);
    if (strcmp(got, want) != 0)
        ck_abort_msg("%s\n--- want\n%s\n--- got\n%s\n---", what, want, got);
    free(got);
}
