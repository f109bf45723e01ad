/* Texts of rows: how long they are for a model, and what of them can be sent at all. Lengths are code points: bytes
 * would make one language dearer than another. */
#include "coreengine/conversation/messages_internal.h"

#define REPLACEMENT "\xef\xbf\xbd"

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t rv_message_points(rv_str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += !continues(text.ptr[i]);
    return n;
}

int64_t rv_tokens_estimate(rv_str text)
{
    return (int64_t)(rv_message_points(text) / MESSAGE_POINTS_PER_TOKEN);
}

bool rv_message_is_blank(rv_str text)
{
    return rv_str_trim(text).len == 0;
}

rv_str rv_message_clean(rv_str text, rv_buf *room)
{
    size_t bad = 0;

    if (rv_utf8_valid(text, &bad))
        return text;
    do {
        rv_buf_add(room, text.ptr, bad);
        rv_buf_puts(room, REPLACEMENT);
        bad++;
        while (bad < text.len && continues(text.ptr[bad]))
            bad++; /* the rest of a broken sequence */
        text = (rv_str){text.ptr + bad, text.len - bad};
    } while (!rv_utf8_valid(text, &bad));
    rv_buf_add_str(room, text);
    return rv_buf_str(room);
}

size_t rv_message_digits(int64_t i, char out[MESSAGE_MAX_DIGITS])
{
    char reversed[MESSAGE_MAX_DIGITS];
    uint64_t rest = i < 0 ? (uint64_t) - (i + 1) + 1 : (uint64_t)i;
    size_t n = 0, len = 0;

    do {
        reversed[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (i < 0)
        out[len++] = '-';
    while (n)
        out[len++] = reversed[--n];
    out[len] = '\0';
    return len;
}
