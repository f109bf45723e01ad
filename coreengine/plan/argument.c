/* A string of the arguments becomes text and references. */
#include <stdint.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/plan/plan.h"

#define WORD ".output"

struct reader {
    rv_str s;
    rv_arena *arena;
    struct rv_plan_argument *out;
    struct rv_plan_piece **end;
    bool no_memory;
};

static bool has_at(rv_str s, size_t at, const char *word)
{
    size_t len = strlen(word);

    return at <= s.len && s.len - at >= len && memcmp(s.ptr + at, word, len) == 0;
}

static char byte_at(rv_str s, size_t at)
{
    return at < s.len ? s.ptr[at] : '\0';
}

static bool is_name(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || c == '_' || c == '-' || (unsigned char)c >= 0x80;
}

static size_t skip_digits(rv_str s, size_t at)
{
    while (rv_is_digit(byte_at(s, at)))
        at++;
    return at;
}

/* The number of those digits; SIZE_MAX when it is larger than max, which is smaller than that. */
static size_t number(rv_str digits, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < digits.len; i++) {
        size_t digit = (size_t)(digits.ptr[i] - '0');
        if (n > (max - digit) / 10)
            return SIZE_MAX;
        n = n * 10 + digit;
    }
    return n;
}

static void *take(struct reader *r, size_t size)
{
    void *p = rv_arena_alloc(r->arena, size);

    r->no_memory = r->no_memory || !p;
    return p;
}

static rv_str part(const struct reader *r, size_t from, size_t to)
{
    return (rv_str){r->s.ptr + from, to - from};
}

/* --- one reference --- */

/* The place behind the string of JSON that begins at `at`; 0: it has no end. */
static size_t skip_string(rv_str s, size_t at)
{
    for (size_t i = at + 1; i < s.len; i++) {
        if (s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == '"')
            return i + 1;
    }
    return 0;
}

/* The key in quotes; NULL: it is not a sound string. */
static const char *read_key(struct reader *r, rv_str quoted, size_t *len)
{
    json_object *value = NULL;
    rv_str key;
    char *copy = NULL;
    int rc = rv_json_parse(quoted, NULL, &value,
                           RV_CODE_ONLY("a key that is not sound is NULL to the caller, who refuses the reference"));

    r->no_memory = r->no_memory || rc == RV_E_NOMEM;
    if (rc == 0) {
        key = rv_json_str(value);
        copy = rv_arena_dup(r->arena, key);
        r->no_memory = r->no_memory || !copy;
        *len = key.len;
    }
    json_object_put(value);
    return copy;
}

/* The accessor at `at`: its end, or 0 when there is none. */
static size_t read_accessor(struct reader *r, size_t at, struct rv_plan_accessor *a)
{
    char first = byte_at(r->s, at);
    size_t end = at + 1;

    *a = (struct rv_plan_accessor){.index = SIZE_MAX};
    if (first == '.') {
        while (end < r->s.len && is_name(r->s.ptr[end]))
            end++;
        rv_str name = part(r, at + 1, end);
        const char *copy = name.len > 0 ? rv_arena_dup(r->arena, name) : NULL;
        r->no_memory = r->no_memory || (name.len > 0 && !copy);
        if (!copy)
            return 0;
        a->key = (rv_str){copy, name.len};
        if (skip_digits(r->s, at + 1) == end)
            a->index = number(name, SIZE_MAX - 1);
        return end;
    }
    if (first == '[' && byte_at(r->s, end) == '"') {
        size_t quoted_end = skip_string(r->s, end);
        a->kind = RV_ACCESSOR_KEY;
        if (quoted_end == 0 || byte_at(r->s, quoted_end) != ']')
            return 0;
        a->key.ptr = read_key(r, part(r, end, quoted_end), &a->key.len);
        return a->key.ptr ? quoted_end + 1 : 0;
    }
    end = first == '[' ? skip_digits(r->s, end) : at;
    if (end <= at + 1 || byte_at(r->s, end) != ']')
        return 0;
    a->kind = RV_ACCESSOR_INDEX;
    a->index = number(part(r, at + 1, end), SIZE_MAX - 1);
    return end + 1;
}

/* The longest reference whose index begins at `at`: its end, or 0 when there is none. */
static size_t read_ref(struct reader *r, size_t at, struct rv_plan_ref *ref)
{
    size_t digits = skip_digits(r->s, at);
    struct rv_plan_accessor **end = &ref->path;

    *ref = (struct rv_plan_ref){.call = SIZE_MAX};
    if (digits == at || !has_at(r->s, digits, WORD))
        return 0;
    ref->call = number(part(r, at, digits), INT32_MAX);
    if (ref->call == SIZE_MAX)
        return 0;
    for (at = digits + strlen(WORD);;) {
        struct rv_plan_accessor a;
        size_t next = read_accessor(r, at, &a);
        struct rv_plan_accessor *kept = next > 0 ? take(r, sizeof *kept) : NULL;
        if (!kept)
            return at;
        *kept = a;
        *end = kept;
        end = &kept->next;
        at = next;
    }
}

/* --- what looks like one --- */

static bool goes_on(char c)
{
    return c == '.' || c == '[';
}

/* A whole string that is meant as a reference: "$", no blank and no dot up to ".output", then its end or an accessor.
 */
static bool looks_whole(rv_str s)
{
    if (s.len < 2 || s.ptr[0] != '$' || s.ptr[1] == '{' || s.ptr[1] == '$')
        return false;
    for (size_t i = 1; i < s.len && !strchr(" \t\r\n\v\f", s.ptr[i]); i++)
        if (s.ptr[i] == '.')
            return has_at(s, i, WORD) && (i + strlen(WORD) == s.len || goes_on(s.ptr[i + strlen(WORD)]));
    return false;
}

/* "${0.output" */
static bool looks_embedded(rv_str s, size_t at)
{
    size_t digits;

    if (!has_at(s, at, "${"))
        return false;
    digits = skip_digits(s, at + 2);
    return digits > at + 2 && has_at(s, digits, WORD);
}

/* "$0.output." or "$0.output[" */
static bool looks_bare(rv_str s, size_t at)
{
    size_t digits = skip_digits(s, at + 1);

    return byte_at(s, at) == '$' && digits > at + 1 && has_at(s, digits, WORD) &&
           goes_on(byte_at(s, digits + strlen(WORD)));
}

/* "$$" before what would be a reference: its second "$" is text. */
static bool is_escape(rv_str s, size_t at)
{
    if (!has_at(s, at, "$$"))
        return false;
    return looks_embedded(s, at + 1) || looks_bare(s, at + 1) ||
           (at == 0 && looks_whole((rv_str){s.ptr + 1, s.len - 1}));
}

/* --- a whole string --- */

static void add(struct reader *r, rv_str text, const struct rv_plan_ref *ref)
{
    struct rv_plan_piece *piece = !ref && text.len == 0 ? NULL : take(r, sizeof *piece);

    if (!piece)
        return;
    *piece = (struct rv_plan_piece){text, ref, NULL};
    *r->end = piece;
    r->end = &piece->next;
}

static size_t fail(struct reader *r, enum rv_plan_error_type fault)
{
    r->out->fault = fault;
    return r->s.len;
}

/* A reference between at and end. */
static void add_ref(struct reader *r, struct rv_plan_ref ref)
{
    struct rv_plan_ref *kept = take(r, sizeof *kept);

    if (!kept)
        return;
    *kept = ref;
    r->out->n_refs++;
    add(r, (rv_str){0}, kept);
}

/* The string is meant as one reference. */
static void read_whole(struct reader *r)
{
    struct rv_plan_ref ref;
    size_t end = read_ref(r, 1, &ref);

    if (end == r->s.len) {
        add_ref(r, ref);
        r->out->whole = true;
    } else {
        fail(r, end > 0 && !goes_on(r->s.ptr[end]) ? RV_PLAN_ERROR_EMBEDDED_REFERENCE
                                                   : RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX);
    }
}

/* "${...}" at `at`: the place behind it. */
static size_t read_embedded(struct reader *r, size_t at)
{
    struct rv_plan_ref ref;
    size_t end = read_ref(r, at + 2, &ref);

    if (end == 0 || byte_at(r->s, end) != '}')
        return fail(r, RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX);
    if (r->out->n_refs == RV_PLAN_MAX_REFS)
        return fail(r, RV_PLAN_ERROR_TOO_MANY_REFERENCES);
    add_ref(r, ref);
    r->out->whole = at == 0 && end + 1 == r->s.len;
    return end + 1;
}

/* The place behind the escaped reference at `at`, as far as it is one. */
static size_t skip_escaped(struct reader *r, size_t at)
{
    struct rv_plan_ref ref;
    size_t inside = at + 2 + (byte_at(r->s, at + 2) == '{'), end = read_ref(r, inside, &ref);

    return end > 0 ? end : inside;
}

static void read_mixed(struct reader *r)
{
    size_t at = 0, from = 0; /* text that is not added yet begins at from */

    while (at < r->s.len && !r->no_memory && !r->out->fault) {
        const char *dollar = memchr(r->s.ptr + at, '$', r->s.len - at);
        if (!dollar)
            break;
        at = (size_t)(dollar - r->s.ptr);
        if (is_escape(r->s, at)) {
            add(r, part(r, from, at), NULL);
            from = at + 1;
            at = skip_escaped(r, at);
        } else if (looks_embedded(r->s, at)) {
            add(r, part(r, from, at), NULL);
            from = at = read_embedded(r, at);
        } else if (at > 0 && looks_bare(r->s, at)) {
            fail(r, RV_PLAN_ERROR_EMBEDDED_REFERENCE);
        } else {
            at++;
        }
    }
    if (!r->out->fault)
        add(r, part(r, from, r->s.len), NULL);
}

int rv_plan_argument_read(rv_str text, rv_arena *arena, struct rv_plan_argument *out, rv_err **err)
{
    struct reader r = {text, arena, out, &out->first, false};

    *out = (struct rv_plan_argument){0};
    if (looks_whole(text))
        read_whole(&r);
    else
        read_mixed(&r);
    if (out->fault)
        out->first = NULL;
    return r.no_memory ? RV_FAIL(err, RV_E_NOMEM, "no memory for an argument") : 0;
}
