/* The agent context as a value: its texts as rows, children, JSON, and how it comes from the headers of a request and
 * from who was authenticated, who always wins: a header only claims. Ids follow from names: UUIDs of version 5 (RFC
 * 9562), so that the same name is the same row everywhere. */
#include "coreengine/conversation/context_internal.h"

#include <json-c/linkhash.h>
#include <nettle/sha1.h>
#include <stddef.h>
#include <string.h>

#define UUID_BYTES 16 /* RFC 9562 */

/* The namespace of domain names, and that of p8.dev in it. */
static const unsigned char dns[UUID_BYTES] = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                              0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
static const unsigned char p8[UUID_BYTES] = {0xd1, 0x22, 0xdb, 0x5d, 0xac, 0xeb, 0x56, 0x73,
                                             0xb6, 0xe0, 0xce, 0x9e, 0x43, 0x28, 0xe7, 0x25};

static void begin(struct sha1_ctx *h, const unsigned char ns[UUID_BYTES])
{
    sha1_init(h);
    sha1_update(h, UUID_BYTES, ns);
}

static void add(struct sha1_ctx *h, rv_str bytes)
{
    if (bytes.len > 0)
        sha1_update(h, bytes.len, (const uint8_t *)bytes.ptr);
}

static void finish(struct sha1_ctx *h, char out[RV_UUID_MAX])
{
    uint8_t id[UUID_BYTES];

    sha1_digest(h, sizeof id, id);
    rv_uuid_format(id, 5, out);
}

void rv_entity_make_id(const char *table, rv_str key, const char *user, char out[RV_UUID_MAX])
{
    rv_entity_make_id_joined(table, &key, 1, user, out);
}

void rv_entity_make_id_joined(const char *table, const rv_str *parts, size_t n, const char *user, char out[RV_UUID_MAX])
{
    struct sha1_ctx h;

    begin(&h, p8);
    add(&h, rv_str_of(table));
    add(&h, RV_STR_LIT(":"));
    for (size_t i = 0; i < n; i++)
        add(&h, parts[i]);
    add(&h, RV_STR_LIT(":"));
    add(&h, rv_str_of(user));
    finish(&h, out);
}

void rv_user_id_make(rv_str email, char out[RV_UUID_MAX])
{
    struct sha1_ctx h;

    email = rv_str_trim(email);
    begin(&h, dns);
    for (size_t i = 0; i < email.len; i++) {
        /* ASCII only: what other letters become in lower case differs between systems and their years. */
        uint8_t byte = (uint8_t)rv_ascii_lower(email.ptr[i]);

        sha1_update(&h, 1, &byte);
    }
    finish(&h, out);
}

/* Bytes of the character at p that would end or break a line: a control character, or one of Unicode's line ends; 0:
 * another character. */
static size_t breaks(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;

    size_t control = rv_utf8_control(p, len);
    if (control)
        return control;
    if (len >= 3 && u[0] == 0xE2 && u[1] == 0x80 && (u[2] == 0xA8 || u[2] == 0xA9)) /* U+2028, U+2029 */
        return 3;
    return 0;
}

/* RV_E_INVALID, which calls the text `what`: no UTF-8, too long, or not in one line (has_lines: line feeds and tabs
 * are fine). */
static int check_text(rv_str text, const char *what, size_t max, bool has_lines, rv_err **err)
{
    size_t bad;

    /* The value itself is not repeated: it may be private, and logs would show it. */
    if (text.len > max)
        return RV_FAIL(err, RV_E_INVALID, "%s has %zu bytes, more than %zu", what, text.len, max);
    if (!rv_utf8_valid(text, &bad))
        return RV_FAIL(err, RV_E_INVALID, "%s is not UTF-8 at byte %zu", what, bad);
    for (size_t i = 0; i < text.len; i++) {
        bool is_layout = text.ptr[i] == '\n' || text.ptr[i] == '\t';

        if (breaks(text.ptr + i, text.len - i) > 0 && !(has_lines && is_layout))
            return RV_FAIL(err, RV_E_INVALID, "%s has a control character at byte %zu", what, i);
    }
    return 0;
}

int conversation_text_of_json(json_object *v, const char *what, const char **out, rv_err **err)
{
    rv_str text = rv_json_str(v);

    *out = NULL;
    if (!v)
        return 0;
    if (!json_object_is_type(v, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "%s must be a string, not %s", what, rv_json_type_text(v));
    if (text.len > 0 && memchr(text.ptr, 0, text.len))
        return RV_FAIL(err, RV_E_INVALID, "%s has a NUL", what);
    *out = json_object_get_string(v);
    return 0;
}

void conversation_text_line(rv_buf *out, rv_str text)
{
    size_t from = 0, i = 0;

    while (i < text.len) {
        size_t n = breaks(text.ptr + i, text.len - i);

        if (n == 0) {
            i++;
            continue;
        }
        rv_buf_add(out, text.ptr + from, i - from);
        rv_buf_putc(out, ' ');
        i += n;
        from = i;
    }
    rv_buf_add(out, text.ptr + from, text.len - from);
}

#define ROW(name, header, max, has_lines)                                                                              \
    {                                                                                                                  \
#name, header, offsetof(struct rv_context, name), max, has_lines                                               \
    }
const struct rv_context_member conversation_context_members[RV_N_CONTEXT_MEMBERS] = {
    ROW(user_id, "X-User-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(tenant_id, "X-Tenant-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(session_id, "X-Session-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(default_model, "X-Model-Name", RV_CONTEXT_MAX_TEXT, false),
    ROW(agent_schema_uri, "X-Agent-Schema", RV_CONTEXT_MAX_TEXT, false),
    ROW(client_id, "X-Client-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(user_profile_hint, NULL, RV_CONTEXT_MAX_HINT, true),
    ROW(user_email, "X-User-Email", RV_CONTEXT_MAX_TEXT, false),
    ROW(user_name, "X-User-Name", RV_CONTEXT_MAX_TEXT, false),
};

const char **conversation_context_slot(struct rv_context *c, const struct rv_context_member *m)
{
    return (const char **)(void *)((char *)c + m->at);
}

static const char *text_of(const struct rv_context *c, const struct rv_context_member *m)
{
    return *(const char *const *)(const void *)((const char *)c + m->at);
}

static const struct rv_context_member *member_of(const char *name)
{
    for (size_t i = 0; i < RV_N_CONTEXT_MEMBERS; i++)
        if (strcmp(conversation_context_members[i].name, name) == 0)
            return &conversation_context_members[i];
    return NULL;
}

struct rv_context rv_context_child(const struct rv_context *parent, const char *agent, const char *model)
{
    struct rv_context child = *parent;

    if (conversation_has_text(agent))
        child.agent_schema_uri = agent;
    if (conversation_has_text(model))
        child.default_model = model;
    return child;
}

int rv_context_check(const struct rv_context *c, rv_err **err)
{
    for (size_t i = 0; i < RV_N_CONTEXT_MEMBERS; i++) {
        const struct rv_context_member *m = &conversation_context_members[i];
        int rc = check_text(rv_str_of(text_of(c, m)), m->name, m->max, m->has_lines, err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

void rv_context_write_json(const struct rv_context *c, rv_jw *w)
{
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_N_CONTEXT_MEMBERS; i++) {
        const char *text = text_of(c, &conversation_context_members[i]);

        if (conversation_has_text(text))
            rv_jw_kv_text(w, conversation_context_members[i].name, text);
    }
    if (c->is_eval)
        rv_jw_kv_bool(w, "is_eval", true);
    rv_jw_obj_end(w);
}

static int read_member(const char *key, json_object *value, struct rv_context *c, rv_err **err)
{
    const struct rv_context_member *m = member_of(key);
    const char *text;
    int rc;

    if (strcmp(key, "is_eval") == 0) {
        if (!json_object_is_type(value, json_type_boolean))
            return RV_FAIL(err, RV_E_INVALID, "is_eval must be a boolean, not %s", rv_json_type_text(value));
        c->is_eval = json_object_get_boolean(value);
        return 0;
    }
    if (!m)
        return RV_FAIL(err, RV_E_INVALID, "unknown member \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 64)));
    rc = conversation_text_of_json(value, key, &text, err);
    if (rc == 0 && conversation_has_text(text))
        *conversation_context_slot(c, m) = text;
    return rc;
}

int rv_context_read_json(json_object *json, struct rv_context *out, rv_err **err)
{
    struct rv_context c = {.tenant_id = RV_DEFAULT_TENANT};
    int rc = 0;

    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "an agent context must be an object, not %s", rv_json_type_text(json));
    json_object_object_foreach (json, key, value) {
        rc = read_member(key, value, &c, err);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        rc = rv_context_check(&c, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "agent context");
    *out = c;
    return 0;
}

static bool is_same(rv_str a, const char *text)
{
    if (a.len != strlen(text))
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (rv_ascii_lower(a.ptr[i]) != rv_ascii_lower(text[i]))
            return false;
    return true;
}

/* The value of a header: empty where it is absent. Two different values are an error: proxies do not agree which one
 * counts. */
static int find(const struct rv_context_source *from, const char *name, rv_str *out, rv_err **err)
{
    *out = (rv_str){NULL, 0};
    for (size_t i = 0; i < from->n_headers; i++) {
        const struct rv_context_header *h = &from->headers[i];
        int rc;

        if (h->value.len == 0 || !is_same(h->name, name))
            continue;
        rc = check_text(h->value, name, RV_CONTEXT_MAX_TEXT, false, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "request header");
        if (out->len > 0 && !rv_str_eq(*out, h->value))
            return RV_FAIL(err, RV_E_INVALID, "request header %s is there twice, with different values", name);
        *out = h->value;
    }
    return 0;
}

static int keep(rv_arena *room, rv_str text, const char **out, rv_err **err)
{
    *out = rv_arena_dup(room, text);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for an agent context");
}

/* A text that did not come with the request: the settings' or of who was authenticated. Nothing if it is empty. */
static int override(rv_arena *room, const char *text, const char *what, const char **out, rv_err **err)
{
    int rc;

    if (!conversation_has_text(text))
        return 0;
    rc = check_text(rv_str_of(text), what, RV_CONTEXT_MAX_TEXT, false, err);
    return rc < 0 ? rc : keep(room, rv_str_of(text), out, err);
}

static int authenticated(const struct rv_context_source *from, rv_arena *room, struct rv_context *c, rv_err **err)
{
    char id[RV_UUID_MAX];
    const char *user = from->auth_user_id;
    int rc;

    if (!conversation_has_text(user) && conversation_has_text(from->auth_email)) {
        rv_user_id_make(rv_str_of(from->auth_email), id);
        user = id;
    }
    if (conversation_has_text(user))
        c->user_email = NULL; /* what the request claims of another address must not stand beside it */
    rc = override(room, user, "authenticated user", &c->user_id, err);
    if (rc == 0)
        rc = override(room, from->auth_tenant_id, "authenticated tenant", &c->tenant_id, err);
    if (rc == 0)
        rc = override(room, from->auth_email, "authenticated address", &c->user_email, err);
    return rc;
}

int rv_context_read_headers(const struct rv_context_source *from, rv_arena *room, struct rv_context *out, rv_err **err)
{
    struct rv_context c = {.tenant_id = RV_DEFAULT_TENANT};
    rv_str value;
    int rc = override(room, from->default_model, "default model", &c.default_model, err);

    for (size_t i = 0; rc == 0 && i < RV_N_CONTEXT_MEMBERS; i++) {
        const struct rv_context_member *m = &conversation_context_members[i];

        if (!m->header)
            continue;
        rc = find(from, m->header, &value, err);
        if (rc == 0 && value.len > 0)
            rc = keep(room, value, conversation_context_slot(&c, m), err);
    }
    if (rc == 0)
        rc = find(from, "X-Is-Eval", &value, err);
    if (rc == 0) {
        c.is_eval = is_same(value, "true") || is_same(value, "1") || is_same(value, "yes");
        rc = authenticated(from, room, &c, err);
    }
    if (rc == 0)
        *out = c;
    return rc;
}
