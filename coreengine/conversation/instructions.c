/* The second layer of a prompt: the text for one request, which is made for each request and not stored. Each value
 * stays in its line, so that a name cannot look like a line of the engine. JSON in it is as models
 * know it from the systems that the prompts come from: blanks after "," and ":", ASCII only. */
#include "coreengine/conversation/context_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

static void write_unit(rv_buf *out, unsigned unit)
{
    rv_buf_printf(out, "\\u%04x", unit);
}

/* The code point at p, of text that is valid UTF-8; *n: its bytes. */
static unsigned code_point(const unsigned char *p, size_t *n)
{
    if (p[0] < 0x80) {
        *n = 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *n = 2;
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        *n = 3;
        return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    }
    *n = 4;
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

static void write_char(rv_buf *out, unsigned c)
{
    static const char short_forms[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    if (c == '"' || c == '\\') {
        rv_buf_putc(out, '\\');
        rv_buf_putc(out, (char)c);
    } else if (c < sizeof short_forms && short_forms[c]) {
        rv_buf_putc(out, '\\');
        rv_buf_putc(out, short_forms[c]);
    } else if (c >= ' ' && c < 0x7F) {
        rv_buf_putc(out, (char)c);
    } else if (c < 0x10000) {
        write_unit(out, c);
    } else {
        write_unit(out, 0xD800 + ((c - 0x10000) >> 10));
        write_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    }
}

/* Append as a JSON string, as rv_json_write_spaced() does. */
static void write_spaced(rv_buf *out, rv_str text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t n;

    if (!rv_utf8_valid(text, NULL)) {
        out->rc = out->rc < 0 ? out->rc : RV_E_INVALID; /* as rv_jw_str() */
        return;
    }
    rv_buf_putc(out, '"');
    for (size_t i = 0; i < text.len && out->rc == 0; i += n)
        write_char(out, code_point(p + i, &n));
    rv_buf_putc(out, '"');
}

void rv_json_write_spaced(json_object *v, rv_buf *out)
{
    bool more = false;

    if (json_object_is_type(v, json_type_object)) {
        rv_buf_putc(out, '{');
        json_object_object_foreach (v, key, value) {
            if (more)
                rv_buf_puts(out, ", ");
            more = true;
            write_spaced(out, rv_str_of(key));
            rv_buf_puts(out, ": ");
            rv_json_write_spaced(value, out);
        }
        rv_buf_putc(out, '}');
    } else if (json_object_is_type(v, json_type_array)) {
        rv_buf_putc(out, '[');
        for (size_t i = 0; i < json_object_array_length(v) && out->rc == 0; i++) {
            if (i > 0)
                rv_buf_puts(out, ", ");
            rv_json_write_spaced(json_object_array_get_idx(v, i), out);
        }
        rv_buf_putc(out, ']');
    } else if (json_object_is_type(v, json_type_string)) {
        write_spaced(out, rv_json_str(v));
    } else {
        rv_json_write(v, out);
    }
}

static void fail(rv_buf *out, int rc)
{
    if (out->rc == 0)
        out->rc = rc;
}

static void line(rv_buf *out, const char *label, rv_str value)
{
    if (value.len == 0)
        return;
    rv_buf_putc(out, '\n');
    rv_buf_puts(out, label);
    conversation_text_line(out, value);
}

static void write_time(rv_buf *out, int64_t now_us, int zone_minutes)
{
    char text[RV_TIME_MAX]; /* "2026-01-02T03:04:05.000000Z" */
    int zone = zone_minutes, minutes;
    int64_t local;

    if (zone > RV_CONVERSATION_MAX_ZONE || zone < -RV_CONVERSATION_MAX_ZONE)
        zone = 0; /* no zone on earth; rv_conversation_check() says so where it can be said */
    if (__builtin_add_overflow(now_us, zone * RV_US_PER_MIN, &local))
        local = now_us;
    rv_time_format(local, text);
    minutes = zone < 0 ? -zone : zone;
    rv_buf_printf(out, "\nDate: %.10s\nTime: %.8s", text, text + 11);
    if (zone == 0)
        rv_buf_puts(out, " UTC");
    else
        rv_buf_printf(out, " %c%02d:%02d", zone < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

bool rv_metadata_is_shown(const char *key)
{
    return key[0] != '_' && strcmp(key, "routing") != 0;
}

bool conversation_metadata_has_shown(json_object *metadata)
{
    if (json_object_is_type(metadata, json_type_object)) {
        json_object_object_foreach (metadata, key, value) {
            (void)value;
            if (rv_metadata_is_shown(key))
                return true;
        }
    }
    return false;
}

/* One member more, if it fits whole; 0 or RV_E_LIMIT, or what went wrong. */
static int add_member(rv_buf *shown, const char *key, json_object *value)
{
    rv_buf one = RV_BUF_INIT(RV_CONTEXT_MAX_METADATA - 2); /* the braces */
    int rc;

    if (shown->len > 1)
        rv_buf_puts(&one, ", ");
    write_spaced(&one, rv_str_of(key));
    rv_buf_puts(&one, ": ");
    rv_json_write_spaced(value, &one);
    rc = one.rc;
    if (rc == 0 && shown->len + one.len + 1 > RV_CONTEXT_MAX_METADATA)
        rc = RV_E_LIMIT;
    if (rc == 0)
        rv_buf_add_str(shown, rv_buf_str(&one));
    rv_buf_fini(&one);
    return rc;
}

static void write_metadata(rv_buf *out, json_object *metadata)
{
    rv_buf shown = RV_BUF_INIT(RV_CONTEXT_MAX_METADATA);
    size_t n_left = 0;

    rv_buf_putc(&shown, '{');
    json_object_object_foreach (metadata, key, value) {
        int rc = rv_metadata_is_shown(key) ? add_member(&shown, key, value) : 0;

        if (rc == RV_E_LIMIT)
            n_left++;
        else if (rc < 0)
            fail(out, rc);
    }
    if (shown.len > 1) {
        rv_buf_putc(&shown, '}');
        rv_buf_puts(out, "\nContext: ");
        rv_buf_add_str(out, rv_buf_str(&shown));
    }
    fail(out, shown.rc);
    if (n_left > 0)
        rv_buf_printf(out, "\n(%zu more %s not shown)", n_left, n_left == 1 ? "key is" : "keys are");
    rv_buf_fini(&shown);
}

rv_str conversation_session_name_of(const struct rv_conversation *c)
{
    return rv_utf8_cut(rv_str_of(c->session_name), RV_CONVERSATION_MAX_NAME);
}

static void write_session(rv_buf *out, const struct rv_conversation *c, bool can_look_up)
{
    bool has_metadata = conversation_metadata_has_shown(c->session_metadata);

    if (!conversation_has_text(c->session_name) && !has_metadata)
        return;
    rv_buf_puts(out, "\n\n## Session Context");
    line(out, "Session: ", conversation_session_name_of(c));
    if (has_metadata)
        write_metadata(out, c->session_metadata);
    if (can_look_up)
        rv_buf_puts(out, "\nUse REM LOOKUP to retrieve full details for any keys listed above.");
}

static void write_routing(rv_buf *out, const struct rv_routing *r)
{
    json_object *json = NULL;
    int rc = rv_routing_build_value(r, &json, RV_CODE_ONLY("the buffer of the instructions keeps the code"));

    if (rc == 0) {
        rv_buf_puts(out, "\nRouting: ");
        rv_json_write_spaced(json, out);
    }
    fail(out, rc);
    json_object_put(json);
}

void rv_instructions_write(const struct rv_conversation *c, const char *agent, bool can_look_up, int64_t now_us,
                           rv_buf *out)
{
    static const struct rv_conversation nobodys;
    const struct rv_context *who;
    rv_str hint;

    if (!c)
        c = &nobodys;
    who = &c->context;
    rv_buf_puts(out, "[Context]");
    write_time(out, now_us, c->zone_minutes);
    line(out, "User ID: ", rv_str_of(who->user_id));
    line(out, "User email: ", rv_str_of(who->user_email));
    line(out, "User: ", rv_str_of(who->user_name));
    hint = rv_str_trim(rv_str_of(who->user_profile_hint));
    if (hint.len > 0) { /* lines of its own, written by the application that loaded the profile */
        rv_buf_putc(out, '\n');
        rv_buf_add_str(out, hint);
    }
    line(out, "Session: ", rv_str_of(who->session_id));
    line(out, "Agent: ", rv_str_of(agent ? agent : who->agent_schema_uri));
    write_session(out, c, can_look_up);
    if (c->has_routing)
        write_routing(out, &c->routing);
    for (size_t i = 0; i < c->n_sections; i++) {
        if (!conversation_has_text(c->sections[i]))
            continue;
        rv_buf_puts(out, "\n\n");
        rv_buf_puts(out, c->sections[i]);
    }
}
