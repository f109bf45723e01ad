/* What of a session's moments a model is told: the text of each, which ones fit, and hints at them. */
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "coreengine/conversation/messages_internal.h"

#define OPENING   "[Session context]\n"
#define MAX_TEXT  ((size_t)1 << 20) /* bytes of one moment: as RV_STORE_MAX_META, its largest part */
#define MAX_NAME  1024              /* bytes, as a store keeps it */
#define COMPACTED "[earlier message compacted]"

enum { TOKENS_HINT = 20, TOKENS_COMPACTED = 5 };

int rv_moment_opts_check(const struct rv_moment_opts *o, rv_err **err)
{
    if (o->max_inject < 0 || o->max_inject > RV_MOMENT_MAX_INJECT)
        return RV_FAIL(err, RV_E_INVALID, "moment_max_inject must be from 0 to %d, not %lld", RV_MOMENT_MAX_INJECT,
                       (long long)o->max_inject);
    if (o->max_tokens < 0 || o->max_tokens > RV_MOMENT_MAX_TOKENS)
        return RV_FAIL(err, RV_E_INVALID, "moment_max_tokens must be from 0 to %d, not %lld", RV_MOMENT_MAX_TOKENS,
                       (long long)o->max_tokens);
    return 0;
}

/* --- the text of one --- */

static rv_str text_at(json_object *row, const char *key)
{
    json_object *v = NULL;

    return row && json_object_object_get_ex(row, key, &v) ? rv_json_str(v) : (rv_str){"", 0};
}

static bool has(rv_str text, const char *part)
{
    size_t n = strlen(part);

    for (size_t i = 0; i + n <= text.len; i++)
        if (memcmp(text.ptr + i, part, n) == 0)
            return true;
    return false;
}

static void add_list(json_object *list, const char *before, size_t max, rv_buf *out)
{
    size_t n = 0;

    for (size_t i = 0; list && i < json_object_array_length(list) && n < max; i++) {
        rv_str item = rv_json_str(json_object_array_get_idx(list, i));
        if (item.len == 0)
            continue;
        rv_buf_puts(out, n++ == 0 ? before : ", ");
        rv_buf_add_str(out, item);
    }
}

/* Some writers keep it as JSON text. *out: NULL if there is none that can be read. *owned is the caller's. Fails only
 * without memory. */
static int metadata_of(json_object *row, json_object **owned, json_object **out)
{
    rv_str text = text_at(row, "metadata");
    int rc = 0;

    *owned = NULL;
    *out = rv_json_get_obj(row, "metadata");
    if (!*out && text.len > 0)
        rc = rv_json_parse(text, NULL, owned,
                           RV_CODE_ONLY("metadata that cannot be read count as none; want of memory is returned"));
    if (json_object_is_type(*owned, json_type_object))
        *out = *owned;
    return rc == RV_E_NOMEM ? rc : 0;
}

void rv_moment_write(json_object *row, rv_buf *out)
{
    rv_str summary = text_at(row, "summary");
    json_object *owned, *metadata;
    int rc = metadata_of(row, &owned, &metadata);
    rv_str file = text_at(metadata, "file_name");

    if (rc < 0 && out->rc == 0)
        out->rc = rc;
    rv_buf_puts(out, OPENING);
    rv_buf_add_str(out, summary);
    if (metadata && !has(summary, "Resources:"))
        add_list(rv_json_get_arr(metadata, "resource_keys"), "\nResources: ", RV_MOMENT_MAX_KEYS, out);
    if (file.len > 0 && !has(summary, "File:")) {
        rv_buf_puts(out, "\nFile: ");
        rv_buf_add_str(out, file);
    }
    add_list(rv_json_get_arr(row, "topic_tags"), "\nTopics: ", SIZE_MAX, out);
    json_object_put(owned);
}

/* --- notes --- */

static bool is_chunk(json_object *row)
{
    return rv_str_is(text_at(row, "moment_type"), RV_CHUNK_TYPE);
}

static int note_range(json_object *row, json_object *note, rv_err **err)
{
    static const char *const seqs[] = {"from_seq", "through_seq"};
    static const char *const times[][2] = {{"starts_timestamp", "starts_us"}, {"ends_timestamp", "ends_us"}};
    json_object *owned, *metadata;
    int64_t n;
    int rc = metadata_of(row, &owned, &metadata) < 0 ? RV_FAIL(err, RV_E_NOMEM, "note a moment") : 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(seqs); i++)
        if (metadata && rv_json_get_int(metadata, seqs[i], &n) && n >= 0)
            rc = rv_json_set_int(note, seqs[i], n, err);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(times); i++)
        if (rv_time_read(text_at(row, times[i][0]), &n))
            rc = rv_json_set_int(note, times[i][1], n, err);
    json_object_put(owned);
    return rc;
}

/* left: tokens that the text may take up; NULL: it is not injected. */
static int make_note(json_object *row, int64_t *left, bool covers, json_object **out, rv_err **err)
{
    json_object *note = json_object_new_object();
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    int rc = note ? rv_json_set_str(note, "name", rv_utf8_cut(text_at(row, "name"), MAX_NAME), err)
                  : RV_FAIL(err, RV_E_NOMEM, "note a moment");

    if (left)
        rv_moment_write(row, &text);
    if (rc == 0 && text.rc == RV_E_NOMEM)
        rc = rv_buf_check(&text, "a moment", err);
    if (rc == 0 && left) {
        rv_str told = rv_utf8_first(rv_buf_str(&text), (size_t)*left * MESSAGE_POINTS_PER_TOKEN);
        *left -= rv_tokens_estimate(told);
        rc = rv_json_set_str(note, "text", told, err);
    }
    if (rc == 0 && covers)
        rc = rv_json_set_str(note, "hint", rv_utf8_first(text_at(row, "summary"), RV_MOMENT_MAX_HINT), err);
    if (rc == 0 && covers && is_chunk(row))
        rc = note_range(row, note, err);
    rv_buf_fini(&text);
    if (rc < 0)
        json_object_put(note);
    else
        *out = note;
    return rc;
}

/* What is beyond the ceiling of a text counts as no more than the ceiling. */
static int fits(json_object *row, int64_t left, bool *does, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    rv_moment_write(row, &text);
    int rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "a moment", err) : 0;
    *does = rc == 0 && rv_tokens_estimate(rv_buf_str(&text)) <= left;
    rv_buf_fini(&text);
    return rc;
}

/* Walks from the newest to the oldest: the first text that does not fit ends what is injected, but for the newest,
 * which is cut. */
static int make_notes(json_object *const *rows, size_t n, const struct rv_moment_opts *o, bool covers,
                      json_object *newest_first, rv_err **err)
{
    int64_t left = o->max_tokens, n_injected = 0;
    size_t n_covering = 0;
    bool is_full = left == 0 || o->max_inject == 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *note = NULL;
        bool does = true, injects, is_covering = covers && is_chunk(rows[i]) && n_covering < RV_MOMENT_MAX_COVERS;

        is_full = is_full || n_injected == o->max_inject;
        if (!is_full && n_injected > 0)
            rc = fits(rows[i], left, &does, err);
        is_full = is_full || !does;
        injects = !is_full;
        if (rc == 0 && !injects && !is_covering)
            continue;
        if (rc == 0)
            rc = make_note(rows[i], injects ? &left : NULL, covers, &note, err);
        if (rc == 0)
            rc = rv_json_push_take(newest_first, note, err);
        n_injected += injects;
        n_covering += is_covering;
    }
    return rc;
}

static int turn_around(json_object *list, json_object **out, rv_err **err)
{
    json_object *turned = json_object_new_array();
    int rc = turned ? 0 : RV_FAIL(err, RV_E_NOMEM, "note moments");

    for (size_t i = json_object_array_length(list); rc == 0 && i > 0; i--)
        rc = rv_json_push_ref(turned, json_object_array_get_idx(list, i - 1), err);
    if (rc == 0)
        *out = turned;
    else
        json_object_put(turned);
    return rc;
}

int rv_moments_note(json_object *const *rows, size_t n, const struct rv_moment_opts *opts, bool covers,
                    json_object **out, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? rv_moment_opts_check(opts, err) : RV_FAIL(err, RV_E_NOMEM, "note moments");

    *out = NULL;
    if (rc == 0 && opts->max_inject > 0)
        rc = make_notes(rows, n, opts, covers, list, err);
    if (rc == 0 && json_object_array_length(list) > 0)
        rc = turn_around(list, out, err);
    json_object_put(list);
    return rc;
}

int rv_moments_check(json_object *notes, rv_err **err)
{
    size_t n = notes ? json_object_array_length(notes) : 0;

    if (n > RV_MOMENT_MAX_INJECT + RV_MOMENT_MAX_COVERS)
        return RV_FAIL(err, RV_E_INVALID, "%zu moments, more than %d", n, RV_MOMENT_MAX_INJECT + RV_MOMENT_MAX_COVERS);
    for (size_t i = 0; i < n; i++) {
        json_object *note = json_object_array_get_idx(notes, i);
        const char *name;

        if (!json_object_is_type(note, json_type_object) || !rv_json_get_text(note, "name", &name))
            return RV_FAIL(err, RV_E_INVALID, "moments[%zu] must be an object with a name", i);
    }
    return 0;
}

size_t rv_moments_n(json_object *notes)
{
    size_t n = 0;

    for (size_t i = 0; notes && i < json_object_array_length(notes); i++)
        n += json_object_object_get_ex(json_object_array_get_idx(notes, i), "text", NULL);
    return n;
}

/* --- hints --- */

static bool is_between(json_object *note, const char *from, const char *upto, int64_t n)
{
    int64_t first, last;

    return rv_json_get_int(note, from, &first) && rv_json_get_int(note, upto, &last) && first <= n && n <= last;
}

static json_object *covering(json_object *notes, int64_t seq, int64_t created_us)
{
    json_object *newest = NULL;

    for (size_t i = json_object_array_length(notes); i > 0; i--) {
        json_object *note = json_object_array_get_idx(notes, i - 1);
        bool has_seqs = json_object_object_get_ex(note, "from_seq", NULL);

        if (has_seqs && seq > 0 ? is_between(note, "from_seq", "through_seq", seq)
                                : created_us > 0 && is_between(note, "starts_us", "ends_us", created_us))
            return note;
        if (!newest && json_object_object_get_ex(note, "text", NULL))
            newest = note;
    }
    return newest;
}

int64_t rv_moment_write_hint(json_object *notes, int64_t seq, int64_t created_us, bool names_keys, rv_buf *out)
{
    json_object *note = rv_moments_n(notes) > 0 ? covering(notes, seq, created_us) : NULL;

    if (!note) {
        rv_buf_puts(out, COMPACTED);
        return TOKENS_COMPACTED;
    }
    rv_buf_puts(out, "[Earlier: ");
    rv_buf_add_str(out, text_at(note, "hint"));
    rv_buf_puts(out, "\xe2\x80\xa6"); /* U+2026 */
    if (names_keys) {
        rv_buf_puts(out, " \xe2\x86\x92 REM LOOKUP "); /* U+2192 */
        rv_buf_add_str(out, text_at(note, "name"));
    }
    rv_buf_putc(out, ']');
    return TOKENS_HINT;
}
