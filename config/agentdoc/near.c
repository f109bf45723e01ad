/* Findings that say what was probably meant. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_SAID 2048 /* bytes of a finding or a hint */

void rv_agentdoc_near(struct rv_agentdoc_reading *r, enum rv_severity severity, const struct rv_src *src,
                      const char *near, const char *otherwise, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(MAX_SAID);
    rv_buf hint = RV_BUF_INIT(MAX_SAID);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    if (near)
        rv_buf_printf(&hint, "did you mean \"%s\"?", near);
    if (text.rc == RV_E_NOMEM || hint.rc == RV_E_NOMEM)
        r->keys.rc = RV_E_NOMEM;
    else
        rv_keys_finding(&r->keys, severity, src, near ? rv_buf_cstr(&hint) : otherwise, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_buf_fini(&hint);
}

const char *rv_agentdoc_listed(struct rv_agentdoc_reading *r, const char *intro, const char *const *names, size_t n)
{
    rv_buf text = RV_BUF_INIT(MAX_SAID);
    char *copy = NULL;

    rv_buf_puts(&text, intro);
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    if (text.rc == 0)
        copy = rv_arena_dup(r->keys.arena, rv_buf_str(&text));
    if (!copy)
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(&text);
    return copy;
}
