/* Shortening of a long text: its two ends, with a marker between them that names where the whole is found. */
#include "coreengine/conversation/messages_internal.h"

#define WITH_KEY_BEFORE    "\n\n... [Message truncated - REM LOOKUP "
#define WITH_KEY_AFTER     " to recover full content] ...\n\n"
#define WITHOUT_KEY_BEFORE "\n\n... [Message truncated - "
#define WITHOUT_KEY_AFTER  " characters omitted] ...\n\n"

/* The offset of code point n (counted from 0), or the length. */
static size_t offset_of(rv_str text, size_t n)
{
    size_t at = 0;

    for (; at < text.len; at++) {
        if (((unsigned char)text.ptr[at] & 0xc0) == 0x80)
            continue;
        if (n == 0)
            break;
        n--;
    }
    return at;
}

bool rv_message_compress(rv_str text, const char *key, size_t keep, rv_buf *out)
{
    rv_str before = key ? RV_STR_LIT(WITH_KEY_BEFORE) : RV_STR_LIT(WITHOUT_KEY_BEFORE);
    rv_str after = key ? RV_STR_LIT(WITH_KEY_AFTER) : RV_STR_LIT(WITHOUT_KEY_AFTER);
    size_t points = rv_message_points(text), omitted, head, tail;
    char digits[MESSAGE_MAX_DIGITS];
    rv_str middle = rv_str_of(key);

    if (points / 2 < keep || points - keep <= keep) /* not longer than both ends */
        return false;
    omitted = points - 2 * keep;
    if (!key)
        middle = (rv_str){digits, rv_message_digits((int64_t)omitted, digits)};
    if (omitted <= before.len + rv_message_points(middle) + after.len)
        return false;
    head = offset_of(text, keep);
    tail = offset_of(text, points - keep);
    rv_buf_add(out, text.ptr, head);
    rv_buf_add_str(out, before);
    rv_buf_add_str(out, middle);
    rv_buf_add_str(out, after);
    rv_buf_add(out, text.ptr + tail, text.len - tail);
    return true;
}
