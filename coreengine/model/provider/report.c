/* Texts of failures: who failed, where, how often, and what came of the roles before. For people; without secrets. */
#include "coreengine/model/provider/provider_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_WORDS ((size_t)4 << 10)  /* of one role's failure: as an error's text; the rest is cut */
#define MAX_STORY ((size_t)1 << 10)  /* of one role before the last: the last one's reason counts most */
#define MAX_TEXT  ((size_t)32 << 10) /* bytes of the text of an error: eight roles of MAX_WORDS */

#define CUT          "..." /* what a wire shows where it cuts a text */
#define MIN_PART     8     /* bytes of a secret: fewer may be a word of any text */
#define MIN_CUT_PART 4     /* the same, at a cut */

void provider_report_fail_at(rv_exchange *x, enum rv_llm_error kind, const char *c_file, int c_line, const char *fmt,
                             ...)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    rv_llm_reply_fini(&x->reply);
    rv_llm_reply_init(&x->reply);
    rv_llm_reply_fail_at(&x->reply, kind, c_file, c_line, "%s", rv_buf_cstr(&text));
    if (text.rc < 0) /* provider_report_role() tells */
        x->reply.error.rc = text.rc;
    rv_buf_fini(&text);
}

/* The number of bytes at the start of s that belong to a secret: the whole secret, half of a secret, or the rest where
 * the text around it was cut. */
static size_t hidden_part(rv_str secret, rv_str s)
{
    size_t n = 0;

    while (n < secret.len && n < s.len && secret.ptr[n] == s.ptr[n])
        n++;
    if (n == secret.len || (n >= MIN_PART && n >= secret.len / 2))
        return n;
    bool is_cut = n == s.len || (s.len - n >= strlen(CUT) && memcmp(s.ptr + n, CUT, strlen(CUT)) == 0);
    return is_cut && n >= MIN_CUT_PART ? n : 0;
}

/* Any bytes may have come: what is left is UTF-8 without control characters, and shows no secret. */
static void add_clean(const struct rv_endpoint *e, rv_str s, rv_buf *out)
{
    size_t i = 0;

    while (i < s.len) {
        size_t hidden = 0, bad = s.len;
        for (size_t k = 0; k < e->n_secrets; k++) {
            size_t n = hidden_part(e->secrets[k], (rv_str){s.ptr + i, s.len - i});
            hidden = n > hidden ? n : hidden;
        }
        if (hidden) {
            rv_buf_puts(out, "[hidden]");
            i += hidden;
            continue;
        }
        size_t n = rv_utf8_control(s.ptr + i, s.len - i);
        if (n > 0 || (unsigned char)s.ptr[i] < 0x80) {
            rv_buf_putc(out, n > 0 ? ' ' : s.ptr[i]);
            i += n > 0 ? n : 1;
            continue;
        }
        n = 1;
        while (n < 4 && i + n < s.len && rv_utf8_continues(s.ptr[i + n]))
            n++;
        if (rv_utf8_valid((rv_str){s.ptr + i, n}, &bad))
            rv_buf_add(out, s.ptr + i, n);
        else
            rv_buf_putc(out, '?');
        i += n;
    }
}

/* A wire's text begins with provider and model; what follows them. */
static rv_str without_name(const rv_exchange *x, rv_str text, bool *had_name)
{
    const char *provider = x->endpoint.info ? x->endpoint.info->name : "";
    size_t n_provider = strlen(provider), n_model = x->model && x->model->model ? strlen(x->model->model) : 0;
    size_t n = n_provider + 1 + n_model;

    *had_name = n_provider && n_model && text.len > n && memcmp(text.ptr, provider, n_provider) == 0 &&
                memcmp(text.ptr + n_provider + 1, x->model->model, n_model) == 0;
    return *had_name ? (rv_str){text.ptr + n, text.len - n} : text;
}

static void add_who(const rv_exchange *x, rv_buf *out)
{
    if (!x->model)
        return;
    if (!x->model->provider)
        rv_buf_printf(out, "role \"%s\"", x->model->role);
    else
        rv_buf_printf(out, "%s %s", x->model->provider, x->model->model ? x->model->model : "");
    if (x->endpoint.host)
        rv_buf_printf(out, " at %s", x->endpoint.host);
}

static void add_end(const rv_exchange *x, rv_buf *out)
{
    if (x->role_attempts > 1)
        rv_buf_printf(out, ", after %" PRId64 " attempts", x->role_attempts);
    if (x->why_no_repeat[0])
        rv_buf_printf(out, "; not repeated: %s", x->why_no_repeat);
    if (x->hints.location[0])
        rv_buf_printf(out, "; it points to %s, but redirections are not followed", x->hints.location);
    if (x->hints.request_id[0])
        rv_buf_printf(out, " (request id %s)", x->hints.request_id);
}

static int put(rv_exchange *x, rv_buf *text, rv_err **err)
{
    rv_buf *error = &x->reply.error;

    if (text->rc == RV_E_LIMIT)
        text->rc = 0; /* cut: what matters stands at the front */
    if (text->rc == 0) {
        rv_buf_clear(error);
        add_clean(&x->endpoint, rv_buf_str(text), error);
    } else {
        error->rc = text->rc;
    }
    rv_buf_fini(text);
    return error->rc == RV_E_NOMEM ? rv_buf_check(error, "what went wrong with a model", err) : 0;
}

static void add_role(const rv_exchange *x, rv_buf *text)
{
    bool had_name;
    rv_str words = without_name(x, rv_buf_str(&x->reply.error), &had_name);

    add_who(x, text);
    if (!had_name && x->model)
        rv_buf_puts(text, ": ");
    rv_buf_add_str(text, rv_utf8_cut(words, MAX_WORDS));
    add_end(x, text);
}

int provider_report_role(rv_exchange *x, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    if (x->reply.error.rc == RV_E_NOMEM)
        return rv_buf_check(&x->reply.error, "what went wrong with a model", err);
    add_role(x, &text);
    return put(x, &text, err);
}

void provider_report_retry(const rv_exchange *x, const struct rv_model_config *next)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT), clean = RV_BUF_INIT(MAX_TEXT);
    struct rv_exchange_retry retry = {.attempt = x->role_attempts,
                                      .of = x->endpoint.call.max_attempts,
                                      .wait_us = next ? 0 : x->wait_until_us - x->now_us,
                                      .role = x->model->role,
                                      .to = next ? next->role : NULL,
                                      .code = x->reply.code};

    if (!x->opts.on_retry)
        return;
    if (next) /* provider_report_role() has made the text already */
        rv_buf_add_str(&clean, rv_buf_str(&x->reply.error));
    else
        add_role(x, &text);
    add_clean(&x->endpoint, rv_buf_str(&text), &clean);
    retry.error = rv_buf_str(&clean);
    if (text.rc != RV_E_NOMEM && clean.rc != RV_E_NOMEM) /* else only a record is left out */
        x->opts.on_retry(x->opts.self, &retry);
    rv_buf_fini(&text);
    rv_buf_fini(&clean);
}

void provider_report_remember(rv_exchange *x)
{
    if (x->story.len)
        rv_buf_puts(&x->story, "; ");
    rv_buf_printf(&x->story, "role \"%s\": ", x->model->role);
    rv_buf_add_str(&x->story, rv_utf8_cut(rv_buf_str(&x->reply.error), MAX_STORY));
}

int provider_report_end(rv_exchange *x, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    if (!x->story.len && !x->story.rc)
        return 0;
    if (x->story.rc == RV_E_NOMEM) {
        rv_buf_fini(&text);
        return rv_buf_check(&x->story, "what went wrong with models", err);
    }
    rv_buf_add_str(&text, rv_buf_str(&x->reply.error));
    rv_buf_printf(&text, "; it was asked as a fallback, for %s", rv_buf_cstr(&x->story));
    return put(x, &text, err);
}
