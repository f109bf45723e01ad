/* Error chains: making, wrapping, reading. Printing is in err_write.c.
 *
 * One block per link holds the link, its text and its file name, so that a link is made wholly or not at all. */
#include "coreengine/base/base_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const code_texts[] = {
#define X(name, text, meaning) [RV_CODE_##name] = (text),
    RV_CODES(X)
#undef X
};

/* Stands in for any error that cannot be allocated. Never freed, never changed. */
static rv_err oom = {.code = RV_E_NOMEM, .n_links = 1, .c_line = __LINE__, .c_file = __FILE__, .text = "out of memory"};

const char *rv_code_text(int code)
{
    if (code == 0)
        return "ok";
    if (code > -1 || code < -(int)RV_COUNT(code_texts))
        code = RV_E_INTERNAL;
    return code_texts[-1 - code];
}

/* Format into out (RV_ERR_MAX_TEXT + 1 bytes). Quoted user bytes may be anything: the result is valid UTF-8. */
static RV_PRINTF(2, 0) size_t format_text(char *out, const char *fmt, va_list ap)
{
    size_t len, i = 0;
    int n = vsnprintf(out, RV_ERR_MAX_TEXT + 1, fmt, ap);

    if (n < 0) {
        out[0] = '\0';
        return 0;
    }
    len = (size_t)n > RV_ERR_MAX_TEXT ? RV_ERR_MAX_TEXT : (size_t)n;
    len = rv_utf8_cut((rv_str){out, len}, len).len;
    while (i < len) {
        int step = rv_utf8_next((const unsigned char *)out + i, len - i);
        if (step <= 0) {
            out[i] = '?';
            step = 1;
        }
        i += (size_t)step;
    }
    out[len] = '\0';
    return len;
}

static RV_PRINTF(6, 0) int push_link(rv_err **err, int code, const char *c_file, int c_line, const struct rv_src *src,
                                     const char *fmt, va_list ap)
{
    char text[RV_ERR_MAX_TEXT + 1];
    size_t len, file_size = 0;
    rv_err *link;

    if (!err)
        return code;
    if (*err && (*err)->n_links >= RV_ERR_MAX_LINKS)
        return code;
    len = format_text(text, fmt, ap);
    if (src && src->file)
        file_size = strlen(src->file) + 1;
    link = malloc(sizeof *link + len + 1 + file_size);
    if (!link) {
        if (!*err)
            *err = &oom;
        else if (*err != &oom) /* a chain that exists says more than "out of memory" */
            (*err)->lost_link = true;
        return code;
    }
    *link = (rv_err){.code = code, .n_links = *err ? (*err)->n_links + 1 : 1, .c_file = c_file, .c_line = c_line};
    memcpy(link->text, text, len + 1);
    if (file_size)
        link->file = memcpy(link->text + len + 1, src->file, file_size);
    if (src) {
        link->line = src->line;
        link->col = src->col;
    }
    link->cause = *err;
    *err = link;
    return code;
}

int rv_err_new_at(rv_err **err, int code, const char *c_file, int c_line, const struct rv_src *src, const char *fmt,
                  ...)
{
    va_list ap;

    va_start(ap, fmt);
    code = push_link(err, code, c_file, c_line, src, fmt, ap);
    va_end(ap);
    return code;
}

int rv_err_wrap_at(rv_err **err, int code, const char *c_file, int c_line, const struct rv_src *src, const char *fmt,
                   ...)
{
    va_list ap;

    va_start(ap, fmt);
    code = push_link(err, code, c_file, c_line, src, fmt, ap);
    va_end(ap);
    return code;
}

void rv_err_hint(rv_err **err, const char *fmt, ...)
{
    char text[RV_ERR_MAX_TEXT + 1];
    char *copy;
    size_t len;
    va_list ap;

    if (!err || !*err || *err == &oom)
        return;
    va_start(ap, fmt);
    len = format_text(text, fmt, ap);
    va_end(ap);
    copy = rv_str_dup((rv_str){text, len});
    if (!copy) /* the error itself matters more than the advice */
        return;
    free((*err)->hint);
    (*err)->hint = copy;
}

void rv_err_add_causes(rv_err **err, rv_err *causes)
{
    rv_err *last = err ? *err : NULL;

    if (!causes || !last || last == &oom || causes == &oom || last->n_links + causes->n_links > RV_ERR_MAX_LINKS) {
        rv_err_free(causes);
        return;
    }
    for (;; last = last->cause) {
        last->n_links += causes->n_links;
        if (!last->cause)
            break;
    }
    last->cause = causes;
}

void rv_err_free(rv_err *err)
{
    while (err && err != &oom) {
        rv_err *cause = err->cause;
        free(err->hint);
        free(err);
        err = cause;
    }
}

int rv_err_code(const rv_err *err)
{
    return err ? err->code : 0;
}

const char *rv_err_text(const rv_err *err)
{
    return err ? err->text : "";
}

const char *rv_err_hint_text(const rv_err *err)
{
    return err ? err->hint : NULL;
}

struct rv_src rv_err_src(const rv_err *err)
{
    return err ? (struct rv_src){err->file, err->line, err->col} : (struct rv_src){NULL, 0, 0};
}

const rv_err *rv_err_cause(const rv_err *err)
{
    return err ? err->cause : NULL;
}

const char *rv_err_made_at(const rv_err *err, int *line)
{
    *line = err ? err->c_line : 0;
    return err ? err->c_file : "";
}

bool rv_err_is(const rv_err *err, int code)
{
    for (; err; err = err->cause)
        if (err->code == code || (code == RV_E_NOMEM && err->lost_link))
            return true;
    return false;
}
