/* The small parts of the storage of an envelope: texts, counters, times, and arrays that grow. */
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope_internal.h"

int64_t env_counter_add(int64_t a, int64_t b)
{
    if (b <= 0)
        return a;
    return b > RV_MAX_COUNTER - a ? RV_MAX_COUNTER : a + b;
}

int64_t env_clamp_time(int64_t us)
{
    if (us < RV_TIME_LOWEST)
        return RV_TIME_LOWEST;
    return us > RV_TIME_HIGHEST ? RV_TIME_HIGHEST : us;
}

int env_grow(void *array, size_t *cap, size_t need, size_t size, rv_err **err)
{
    return rv_has_room(array, cap, need, size) ? 0 : RV_FAIL(err, RV_E_NOMEM, "grow a list of the envelope");
}

void env_text_fini(struct rv_text *t)
{
    if (!t->borrowed)
        free(t->ptr);
    *t = (struct rv_text){0};
}

int env_text_of(rv_str s, const char *what, struct rv_text *out, rv_err **err)
{
    size_t bad = 0;
    char *copy;

    if (!s.ptr) {
        *out = (struct rv_text){0};
        return 0;
    }
    if (!rv_utf8_valid(s, &bad))
        return RV_FAIL(err, RV_E_INVALID, "%s is not UTF-8 at byte %zu", what, bad);
    copy = rv_str_dup(s);
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "copy %s", what);
    *out = (struct rv_text){copy, s.len, false};
    return 0;
}

void env_text_move(struct rv_text *to, struct rv_text *from)
{
    env_text_fini(to);
    *to = *from;
    *from = (struct rv_text){0};
}

rv_str env_text_str(const struct rv_text *t)
{
    return (rv_str){t->ptr, t->len};
}

void env_time_write(int64_t us, rv_jw *w)
{
    char time[RV_TIME_MAX];

    rv_time_format(us, time);
    rv_jw_text(w, time);
}

void env_text_write(const struct rv_text *t, rv_jw *w)
{
    if (t->ptr)
        rv_jw_str(w, env_text_str(t));
    else
        rv_jw_null(w);
}
