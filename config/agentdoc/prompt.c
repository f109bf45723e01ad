/* The first layer of a request: what the document tells the model about itself. Byte by byte the contract's (p8 2). */
#include <json-c/linkhash.h>
#include <math.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

/* Values are written as Python's str() writes them: prompts of the contract have enum values and lists of types so. */

#define MAX_DIGITS 24 /* significant digits that are compared; a double has at most 17 */

/* --- Floats --- */

struct decimal {
    char digits[MAX_DIGITS]; /* without leading or trailing zeros; "0" for zero */
    int n;
    int exponent; /* of the first digit: d.ddd * 10^exponent */
};

/* What a JSON writer made of |d|: digits, perhaps a point, perhaps an exponent. */
static struct decimal read_decimal(const char *text)
{
    struct decimal x = {.exponent = -1};
    int written = 0;
    bool point = false;
    bool negative = false;

    for (; *text && *text != 'e'; text++) {
        if (*text == '.') {
            point = true;
        } else if (x.n > 0 || *text != '0') {
            if (x.n < MAX_DIGITS - 1)
                x.digits[x.n++] = *text;
            x.exponent += point ? 0 : 1;
        } else if (point) {
            x.exponent--;
        }
    }
    if (*text == 'e') {
        negative = text[1] == '-';
        for (text += text[1] == '-' || text[1] == '+' ? 2 : 1; *text; text++)
            written = written * 10 + (*text - '0');
        x.exponent += negative ? -written : written;
    }
    while (x.n > 1 && x.digits[x.n - 1] == '0')
        x.n--;
    if (x.n == 0)
        x = (struct decimal){.digits = "0", .n = 1};
    x.digits[x.n] = 0;
    return x;
}

/* x with its first n digits, rounded half up. */
static struct decimal rounded(struct decimal x, int n)
{
    bool up = x.digits[n] >= '5';

    x.n = n;
    for (int i = n - 1; up && i >= 0; i--) {
        up = x.digits[i] == '9';
        x.digits[i] = up ? '0' : (char)(x.digits[i] + 1);
    }
    if (up) {
        x.digits[0] = '1';
        x.exponent++;
    }
    while (x.n > 1 && x.digits[x.n - 1] == '0')
        x.n--;
    x.digits[x.n] = 0;
    return x;
}

/* Out of memory for numbers on their way: the text that they go into fails. */
static void pass_failure(int rc, rv_buf *out)
{
    if (rc == RV_E_NOMEM && out->rc == 0)
        out->rc = rc;
}

static bool is_same(const struct decimal *x, double d, rv_buf *out)
{
    rv_buf text = RV_BUF_INIT(64);
    double back = 0;
    int rc;

    rv_buf_printf(&text, "%c.%se%d", x->digits[0], x->n > 1 ? x->digits + 1 : "0", x->exponent);
    rc = text.rc;
    if (rc == 0)
        rc = agentdoc_text_number(rv_buf_str(&text), &back);
    pass_failure(rc, out);
    rv_buf_fini(&text);
    return rc == 0 && back == d;
}

static struct decimal shortest(double d, rv_buf *out)
{
    rv_buf text = RV_BUF_INIT(64);
    rv_jw w = rv_jw_on(&text);
    struct decimal x;

    rv_jw_double(&w, d);
    pass_failure(text.rc, out);
    x = read_decimal(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    if (d > 0 && d < 0x1p-1022) /* subnormals have fewer digits than any fixed precision says */
        for (int n = 1; n < x.n; n++) {
            struct decimal shorter = rounded(x, n);
            if (is_same(&shorter, d, out))
                return shorter;
        }
    return x;
}

static void write_float(double d, rv_buf *out)
{
    struct decimal x;

    if (!isfinite(d)) {
        rv_buf_puts(out, isnan(d) ? "nan" : d > 0 ? "inf" : "-inf");
        return;
    }
    if (signbit(d))
        rv_buf_putc(out, '-');
    x = shortest(fabs(d), out);
    if (x.exponent < -4 || x.exponent >= 16) {
        rv_buf_putc(out, x.digits[0]);
        if (x.n > 1)
            rv_buf_printf(out, ".%s", x.digits + 1);
        rv_buf_printf(out, "e%c%02d", x.exponent < 0 ? '-' : '+', x.exponent < 0 ? -x.exponent : x.exponent);
        return;
    }
    if (x.exponent < 0)
        rv_buf_puts(out, "0.");
    for (int i = x.exponent; i < -1; i++)
        rv_buf_putc(out, '0');
    for (int i = 0; i < x.n || i <= x.exponent; i++) {
        rv_buf_putc(out, i < x.n ? x.digits[i] : '0');
        if (i == x.exponent)
            rv_buf_putc(out, '.');
    }
    if (x.exponent >= 0 && x.n <= x.exponent + 1)
        rv_buf_putc(out, '0');
}

/* --- Strings in lists and maps --- */

/* Code points that repr() escapes: separators but the blank, controls, formats, private use, no characters. Those that
 * Unicode has not assigned yet are left as they are: which these are depends on its version. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0000, 0x001f},   {0x007f, 0x00a0},    {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},
    {0x06dd, 0x06dd},   {0x070f, 0x070f},    {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x1680, 0x1680},
    {0x180e, 0x180e},   {0x2000, 0x200f},    {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
    {0xe000, 0xf8ff},   {0xfdd0, 0xfdef},    {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd},  {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff},
};

static bool is_hidden(uint32_t c)
{
    for (size_t i = 0; i < RV_COUNT(hidden); i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return true;
    return (c & 0xfffe) == 0xfffe;
}

/* The code point at p of valid UTF-8; *len gets its bytes. */
static uint32_t decode(const unsigned char *p, size_t *len)
{
    uint32_t c = p[0];

    *len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (*len == 1)
        return c;
    c &= 0xffU >> (*len + 1);
    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (p[i] & 0x3fU);
    return c;
}

static void write_quoted(rv_str s, rv_buf *out)
{
    bool has_single = s.len > 0 && memchr(s.ptr, '\'', s.len) != NULL;
    bool has_double = s.len > 0 && memchr(s.ptr, '"', s.len) != NULL;
    char quote = has_single && !has_double ? '"' : '\'';
    size_t len;

    rv_buf_putc(out, quote);
    for (size_t i = 0; i < s.len; i += len) {
        uint32_t c = decode((const unsigned char *)s.ptr + i, &len);
        if (c == (uint32_t)quote || c == '\\')
            rv_buf_printf(out, "\\%c", (int)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            rv_buf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (is_hidden(c))
            rv_buf_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
        else
            rv_buf_add(out, s.ptr + i, len);
    }
    rv_buf_putc(out, quote);
}

/* --- Values --- */

static void write_repr(json_object *v, rv_buf *out)
{
    bool first = true;

    switch (json_object_get_type(v)) {
    case json_type_null:
        rv_buf_puts(out, "None");
        return;
    case json_type_boolean:
        rv_buf_puts(out, json_object_get_boolean(v) ? "True" : "False");
        return;
    case json_type_int:
        rv_json_write(v, out);
        return;
    case json_type_double:
        write_float(json_object_get_double(v), out);
        return;
    case json_type_string:
        write_quoted(rv_json_str(v), out);
        return;
    case json_type_object:
        rv_buf_putc(out, '{');
        json_object_object_foreach (v, key, value) {
            rv_buf_puts(out, first ? "" : ", ");
            first = false;
            write_quoted(rv_str_of(key), out);
            rv_buf_puts(out, ": ");
            write_repr(value, out);
        }
        rv_buf_putc(out, '}');
        return;
    case json_type_array:
        rv_buf_putc(out, '[');
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            rv_buf_puts(out, i > 0 ? ", " : "");
            write_repr(json_object_array_get_idx(v, i), out);
        }
        rv_buf_putc(out, ']');
        return;
    }
}

void agentdoc_python_str(json_object *v, rv_buf *out)
{
    if (json_object_is_type(v, json_type_string))
        rv_buf_add_str(out, rv_json_str(v));
    else
        write_repr(v, out);
}

/* --- The prompt --- */

#define MAX_DEPTH 128 /* documents end long before; this is the border that code can rely on */

static const char before[] =
    "## Thinking Structure\n\nUse these to guide your reasoning. Do NOT include these labels in "
    "output:\n\n```yaml";
static const char after[] = "\n```\n\nCRITICAL: Respond with conversational text only. Do NOT output field names, "
                            "YAML, or JSON.";

struct thinking {
    const struct rv_agentdoc *d;
    rv_buf *out;
};

bool rv_agentdoc_is_structured(const struct rv_agentdoc *d, int structured)
{
    bool wanted = structured == RV_UNSET ? d->structured_output : structured != 0;

    return wanted && d->properties != NULL;
}

/* The definition in place of a schema that names one: the text behind the last slash counts. References in a definition
 * are not followed (*follows), so this ends. */
static json_object *resolve(const struct thinking *t, json_object *schema, bool *follows)
{
    const char *ref, *slash;
    json_object *def = NULL;

    if (!*follows || !t->d->defs || !rv_json_get_text(schema, "$ref", &ref))
        return schema;
    slash = strrchr(ref, '/');
    def = rv_json_get_obj(t->d->defs, slash ? slash + 1 : ref);
    if (!def)
        return schema;
    *follows = false;
    return def;
}

static bool is_required(const struct rv_agentdoc *d, const char *name)
{
    size_t n = d->required ? json_object_array_length(d->required) : 0;

    for (size_t i = 0; i < n; i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(d->required, i)), name))
            return true;
    return false;
}

static void new_line(struct thinking *t, int depth)
{
    rv_buf_putc(t->out, '\n');
    for (int i = 0; i < depth; i++)
        rv_buf_puts(t->out, "  ");
}

static void write_description(struct thinking *t, json_object *schema, int depth)
{
    json_object *text = NULL;

    json_object_object_get_ex(schema, "description", &text);
    if (!json_object_is_type(text, json_type_string) || rv_json_str(text).len == 0)
        return;
    new_line(t, depth + 1);
    rv_buf_puts(t->out, "# ");
    rv_buf_add_str(t->out, rv_json_str(text));
}

/* The type as it is written; "any" when there is none. */
static void write_type(struct thinking *t, json_object *schema)
{
    json_object *type = NULL;

    if (schema && json_object_object_get_ex(schema, "type", &type))
        agentdoc_python_str(type, t->out);
    else
        rv_buf_puts(t->out, "any");
}

static bool is_type(json_object *schema, const char *wanted)
{
    const char *type;

    return rv_json_get_text(schema, "type", &type) && strcmp(type, wanted) == 0;
}

static void write_properties(struct thinking *t, json_object *properties, bool follows, int depth);

static void write_object(struct thinking *t, json_object *schema, bool follows, int depth)
{
    json_object *properties = rv_json_get_obj(schema, "properties");

    rv_buf_putc(t->out, ':');
    write_description(t, schema, depth);
    if (properties)
        write_properties(t, properties, follows, depth + 1);
}

static void write_array(struct thinking *t, json_object *schema, bool follows, int depth)
{
    json_object *items = rv_json_get_obj(schema, "items");
    json_object *properties;

    if (items)
        items = resolve(t, items, &follows);
    rv_buf_puts(t->out, ": [");
    write_type(t, items);
    rv_buf_putc(t->out, ']');
    write_description(t, schema, depth);
    properties = items && is_type(items, "object") ? rv_json_get_obj(items, "properties") : NULL;
    if (!properties || json_object_object_length(properties) == 0)
        return;
    new_line(t, depth + 1);
    rv_buf_puts(t->out, "# Each item:");
    write_properties(t, properties, follows, depth + 2);
}

static void write_scalar(struct thinking *t, json_object *schema, const char *name, int depth)
{
    json_object *values = rv_json_get_arr(schema, "enum");
    size_t n = values ? json_object_array_length(values) : 0;

    rv_buf_puts(t->out, ": ");
    write_type(t, schema);
    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(t->out, i == 0 ? " (one of: " : ", ");
        agentdoc_python_str(json_object_array_get_idx(values, i), t->out);
    }
    rv_buf_puts(t->out, n > 0 ? ")" : "");
    rv_buf_puts(t->out, is_required(t->d, name) ? " (required)" : "");
    write_description(t, schema, depth);
}

/* Each line begins with its line feed. */
static void write_properties(struct thinking *t, json_object *properties, bool follows, int depth)
{
    if (depth > MAX_DEPTH)
        return;
    json_object_object_foreach (properties, name, given) {
        bool inner = follows;
        json_object *schema = resolve(t, given, &inner);

        new_line(t, depth);
        rv_buf_puts(t->out, name);
        if (is_type(schema, "object"))
            write_object(t, schema, inner, depth);
        else if (is_type(schema, "array"))
            write_array(t, schema, inner, depth);
        else
            write_scalar(t, schema, name, depth);
    }
}

static void write_notes(const struct rv_agentdoc *d, rv_buf *out)
{
    bool any = false;

    for (size_t i = 0; i < d->n_tools; i++) {
        const struct rv_agentdoc_tool *tool = &d->tools[i];
        if (!tool->description || !tool->description[0])
            continue;
        rv_buf_puts(out, any ? "" : "\n\n## Tool Notes");
        any = true;
        rv_buf_puts(out, "\n- **");
        rv_buf_puts(out, tool->name);
        rv_buf_puts(out, "**: ");
        rv_buf_puts(out, tool->description);
    }
}

int rv_agentdoc_write_prompt(const struct rv_agentdoc *d, int structured, rv_buf *out, rv_err **err)
{
    bool wanted = structured == RV_UNSET ? d->structured_output : structured != 0;
    struct thinking t = {d, out};

    rv_buf_puts(out, d->description);
    if (d->system_prompt && d->system_prompt[0]) {
        rv_buf_puts(out, "\n\n");
        rv_buf_puts(out, d->system_prompt);
    }
    write_notes(d, out);
    if (!wanted && d->properties) {
        rv_buf_puts(out, "\n\n");
        rv_buf_puts(out, before);
        write_properties(&t, d->properties, true, 0);
        rv_buf_puts(out, after);
    }
    return rv_buf_check(out, "the prompt of an agent", err);
}

/* --- The schema of a structured output: only the description in the document, nothing about the agent --- */

/* Names in `required` that are properties of the output itself; a nested one only marks a line of the prompt. */
static int add_required(const struct rv_agentdoc *d, json_object *out, rv_err **err)
{
    size_t n = d->required ? json_object_array_length(d->required) : 0;
    json_object *list = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *name = json_object_array_get_idx(d->required, i);
        if (!json_object_object_get_ex(d->properties, json_object_get_string(name), NULL))
            continue;
        if (!list) {
            list = json_object_new_array();
            rc = list ? rv_json_set_ref(out, "required", list, err) : RV_FAIL(err, RV_E_NOMEM, "build a schema");
        }
        if (rc == 0)
            rc = rv_json_push_ref(list, name, err);
    }
    json_object_put(list);
    return rc;
}

/* Made of parts of the document; the copy is made at the end. */
static int fill(const struct rv_agentdoc *d, json_object *out, rv_err **err)
{
    json_object *additional = NULL;
    int rc = rv_json_set_text(out, "type", "object", err);

    if (rc == 0)
        rc = rv_json_set_ref(out, "properties", d->properties, err);
    if (rc == 0)
        rc = add_required(d, out, err);
    if (rc == 0 && d->defs)
        rc = rv_json_set_ref(out, "$defs", d->defs, err);
    if (rc == 0 && json_object_object_get_ex(d->flat, "additionalProperties", &additional))
        rc = rv_json_set_ref(out, "additionalProperties", additional, err);
    else if (rc == 0)
        rc = rv_json_set_bool(out, "additionalProperties", false, err);
    return rc;
}

int rv_agentdoc_build_output_schema(const struct rv_agentdoc *d, int structured, json_object **out, rv_err **err)
{
    json_object *shared;
    int rc;

    *out = NULL;
    if (!rv_agentdoc_is_structured(d, structured))
        return 0;
    shared = json_object_new_object();
    rc = shared ? fill(d, shared, err) : RV_FAIL(err, RV_E_NOMEM, "build a schema");
    if (rc == 0)
        rc = rv_json_dup(shared, out, err);
    json_object_put(shared);
    return rc < 0 ? RV_WRAP(err, rc, "the output schema of agent \"%s\"", d->name) : 0;
}
