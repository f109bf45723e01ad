/* Words and texts of rows: types, statuses and policies, how long a text is for a model, which part can be sent at all,
 * and how a long one is shortened to its two ends, with a marker between them that names where the whole is found.
 * Lengths are code points: bytes would make one language dearer than another. */
#include "coreengine/conversation/messages_internal.h"

#define TEXT(n, t, m) t,
static const char *const types[] = {RV_MESSAGE_TYPES(TEXT)};
static const char *const statuses[] = {RV_TURN_STATUSES(TEXT)};
static const char *const policies[] = {RV_REPLAY_POLICIES(TEXT)};
static const char *const compactions[] = {RV_COMPACTIONS(TEXT)};

static int find(const char *const *words, size_t n, rv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (rv_str_is(text, words[i]))
            return (int)i;
    return RV_UNSET;
}

const char *rv_message_type_text(enum rv_message_type type)
{
    return types[type];
}

int rv_message_type_of(rv_str text)
{
    return find(types, RV_COUNT(types), text);
}

const char *rv_turn_status_text(enum rv_turn_status status)
{
    return statuses[status];
}

int rv_turn_status_of(rv_str text)
{
    return find(statuses, RV_COUNT(statuses), text);
}

const char *rv_replay_policy_text(enum rv_replay_policy policy)
{
    return policies[policy];
}

int rv_replay_policy_of(rv_str text)
{
    return find(policies, RV_COUNT(policies), text);
}

int rv_compaction_of(rv_str text)
{
    return find(compactions, RV_COUNT(compactions), text);
}

#define REPLACEMENT "\xef\xbf\xbd"

int64_t rv_tokens_estimate(rv_str text)
{
    return (int64_t)(rv_utf8_count(text) / MESSAGE_POINTS_PER_TOKEN);
}

bool conversation_message_is_blank(rv_str text)
{
    return rv_str_trim(text).len == 0;
}

rv_str conversation_message_clean(rv_str text, rv_buf *room)
{
    size_t bad = 0;

    if (rv_utf8_valid(text, &bad))
        return text;
    do {
        rv_buf_add(room, text.ptr, bad);
        rv_buf_puts(room, REPLACEMENT);
        bad++;
        while (bad < text.len && rv_utf8_continues(text.ptr[bad]))
            bad++; /* the rest of a broken sequence */
        text = (rv_str){text.ptr + bad, text.len - bad};
    } while (!rv_utf8_valid(text, &bad));
    rv_buf_add_str(room, text);
    return rv_buf_str(room);
}

size_t conversation_message_digits(int64_t i, char out[MESSAGE_MAX_DIGITS])
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

#define WITH_KEY_BEFORE    "\n\n... [Message truncated - REM LOOKUP "
#define WITH_KEY_AFTER     " to recover full content] ...\n\n"
#define WITHOUT_KEY_BEFORE "\n\n... [Message truncated - "
#define WITHOUT_KEY_AFTER  " characters omitted] ...\n\n"

/* The offset of code point n (counted from 0), or the length. */
static size_t offset_of(rv_str text, size_t n)
{
    return rv_utf8_first(text, n).len;
}

bool rv_message_compress(rv_str text, const char *key, size_t keep, rv_buf *out)
{
    rv_str before = key ? RV_STR_LIT(WITH_KEY_BEFORE) : RV_STR_LIT(WITHOUT_KEY_BEFORE);
    rv_str after = key ? RV_STR_LIT(WITH_KEY_AFTER) : RV_STR_LIT(WITHOUT_KEY_AFTER);
    size_t points = rv_utf8_count(text), omitted, head, tail;
    char digits[MESSAGE_MAX_DIGITS];
    rv_str middle = rv_str_of(key);

    if (points / 2 < keep || points - keep <= keep) /* not longer than both ends */
        return false;
    omitted = points - 2 * keep;
    if (!key)
        middle = (rv_str){digits, conversation_message_digits((int64_t)omitted, digits)};
    if (omitted <= before.len + rv_utf8_count(middle) + after.len)
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
