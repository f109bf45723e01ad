/* The text of a query: its mode and its operands (p8-data 8.1 to 8.3). A quote opens only where a word begins; a comma
 * inside quotes belongs to the key. */
#include "coreengine/app/query.h"

#include "coreengine/store/store.h"

#include <string.h>
#include <strings.h>

#define MAX_KEY_BYTES ((size_t)4096)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static rv_str next_word(rv_str *rest)
{
    *rest = rv_str_trim(*rest);
    rv_str word = {rest->ptr, 0};

    while (word.len < rest->len && !is_blank(rest->ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

static bool is_word(rv_str word, const char *text)
{
    return word.len == strlen(text) && strncasecmp(word.ptr, text, word.len) == 0;
}

static int other_mode(rv_str word, rv_err **err)
{
    static const char *const known[] = {"SEARCH", "FUZZY", "TRAVERSE", "SQL"};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(known); i++)
        if (is_word(word, known[i]))
            rc = RV_FAIL(err, RV_E_INVALID, "%s is not available yet", known[i]);
    if (rc == 0 && word.len == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "the query is empty");
    else if (rc == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "unknown mode \"%.*s\"", RV_STR_ARG(rv_utf8_cut(word, 64)));
    rv_err_hint(err,
                "there is LOOKUP KEY[, KEY...]: a message (session-ID-msg-N), a session by its id, an agent by its "
                "name");
    return rc;
}

/* What stands in quotes, without them. */
static int add_quoted(rv_str text, size_t *at, rv_buf *key, rv_err **err)
{
    char quote = text.ptr[*at];

    for (size_t i = *at + 1; i < text.len; i++) {
        if (text.ptr[i] == quote) {
            *at = i + 1;
            return 0;
        }
        if (quote == '"' && text.ptr[i] == '\\' && i + 1 < text.len && strchr("\"\\", text.ptr[i + 1]))
            i++;
        rv_buf_putc(key, text.ptr[i]);
    }
    return RV_FAIL(err, RV_E_INVALID, "the quote at column %zu is not closed", *at + 1);
}

/* Up to a comma; blanks between words become one. */
static int read_key(rv_str text, size_t *at, rv_buf *key, rv_err **err)
{
    bool begins = true, blank = false;
    int rc = 0;

    while (rc == 0 && *at < text.len && text.ptr[*at] != ',') {
        char c = text.ptr[*at];
        if (is_blank(c)) {
            blank = true;
            begins = true;
            (*at)++;
            continue;
        }
        if (blank && key->len)
            rv_buf_putc(key, ' ');
        blank = false;
        if (begins && (c == '"' || c == '\'')) {
            rc = add_quoted(text, at, key, err);
        } else {
            rv_buf_putc(key, c);
            (*at)++;
        }
        begins = false;
    }
    return rc == 0 ? rv_buf_check(key, "key of a query", err) : rc;
}

int rv_query_parse(rv_str text, struct rv_query *out, rv_err **err)
{
    int rc = 0;

    memset(out, 0, sizeof *out);
    if (!rv_utf8_valid(text, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the query is not valid UTF-8");
    rv_str word = next_word(&text);
    if (is_word(word, "REM"))
        word = next_word(&text);
    if (!is_word(word, "LOOKUP"))
        return other_mode(word, err);
    for (size_t at = 0; rc == 0 && at < text.len; at++) { /* over the comma */
        if (out->n_keys == RV_QUERY_MAX_KEYS) {
            rc = RV_FAIL(err, RV_E_LIMIT, "more than %d keys", RV_QUERY_MAX_KEYS);
            break;
        }
        rv_buf *key = &out->keys[out->n_keys++];
        rv_buf_init(key, MAX_KEY_BYTES);
        rc = read_key(text, &at, key, err);
        if (key->len == 0) {
            rv_buf_fini(key);
            out->n_keys--;
        }
    }
    if (rc == 0 && out->n_keys == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "LOOKUP requires at least one key");
    if (rc < 0)
        rv_query_fini(out);
    return rc;
}

void rv_query_fini(struct rv_query *q)
{
    for (size_t i = 0; i < q->n_keys; i++)
        rv_buf_fini(&q->keys[i]);
    q->n_keys = 0;
}
