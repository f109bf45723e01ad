/* The conversation of a run as JSON: the journal keeps it, so that a run can be made again. The messages are kept by
 * reference: a replay reads them from the session and compares their hash. With it, which agent serves the next message
 * of a session: the state that the session keeps, and what changes it; who chooses an agent (the classifier) is not
 * here. */
#include "coreengine/conversation/context_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

static const char *const states[] = {
#define TEXT(n, text, meaning) text,
    RV_ROUTING_STATES(TEXT)
#undef TEXT
};

/* For readers of the state; nothing here is interpreted, least of all what a session hands back. */
static const char transitions[] =
    "{\"executing\":{\"on_complete\":\"idle\",\"on_escalate\":\"escalated\",\"on_max_turns\":"
    "\"re-evaluate\"},\"idle\":{\"on_message\":\"executing\"},\"escalated\":{\"on_resolve\":"
    "\"idle\"}}";

/* Another text is taken for IDLE. */
static enum rv_routing_state state_of(rv_str text)
{
    for (int i = 0; i < RV_N_ROUTING_STATES; i++)
        if (rv_str_is(text, states[i]))
            return (enum rv_routing_state)i;
    return RV_ROUTING_IDLE;
}

static void set_name(char out[RV_ROUTING_MAX_NAME], const char *text)
{
    rv_str cut = rv_utf8_cut(rv_str_of(text), RV_ROUTING_MAX_NAME - 1);

    if (cut.len > 0)
        memmove(out, cut.ptr, cut.len); /* one name of the state may become another */
    out[cut.len] = '\0';
}

static bool is_used_up(const struct rv_routing *r)
{
    return r->turn_count >= r->max_turns;
}

bool rv_routing_needs_classification(const struct rv_routing *r)
{
    return r->state == RV_ROUTING_IDLE || r->state == RV_ROUTING_REEVALUATE ||
           (r->state == RV_ROUTING_EXECUTING && is_used_up(r));
}

void rv_routing_activate(struct rv_routing *r, const char *agent, int64_t max_turns)
{
    set_name(r->active_agent, agent && agent[0] ? agent : r->fallback);
    r->state = RV_ROUTING_EXECUTING;
    r->turn_count = 0;
    if (max_turns > 0)
        r->max_turns = max_turns;
}

void rv_routing_increment(struct rv_routing *r)
{
    if (r->turn_count < INT64_MAX)
        r->turn_count++;
    /* An escalation ends when a person resolves it, however long that takes. */
    if (is_used_up(r) && r->state != RV_ROUTING_ESCALATED)
        r->state = RV_ROUTING_REEVALUATE;
}

void rv_routing_complete(struct rv_routing *r)
{
    r->state = RV_ROUTING_IDLE;
    set_name(r->active_agent, r->fallback);
}

void rv_routing_escalate(struct rv_routing *r, const char *why)
{
    bool is_first = r->state != RV_ROUTING_ESCALATED;

    if ((why && why[0]) || is_first) /* the fallback that gives up, too, says nothing new */
        set_name(r->escalation, why && why[0] ? why : r->active_agent);
    set_name(r->active_agent, r->fallback);
    r->state = RV_ROUTING_ESCALATED;
}

void rv_routing_resolve(struct rv_routing *r)
{
    if (r->state != RV_ROUTING_ESCALATED)
        return;
    r->escalation[0] = '\0';
    rv_routing_complete(r);
}

static void write_name(rv_jw *w, const char *key, const char *name)
{
    rv_jw_kv_text(w, key, name[0] ? name : NULL);
}

void rv_routing_write_json(const struct rv_routing *r, rv_jw *w)
{
    rv_jw_obj(w);
    write_name(w, "active_agent", r->active_agent);
    rv_jw_kv_text(w, "state", states[r->state]);
    rv_jw_kv_text(w, "target", "complete");
    rv_jw_kv_int(w, "turn_count", r->turn_count);
    rv_jw_kv_int(w, "max_turns", r->max_turns);
    write_name(w, "fallback", r->fallback);
    write_name(w, "escalation", r->escalation);
    write_name(w, "delegation", "");
    rv_jw_key(w, "transitions");
    rv_jw_raw(w, RV_STR_LIT(transitions));
    rv_jw_obj_end(w);
}

/* A value that is not a name (another type, empty, too long, with a NUL) leaves the old value. */
static void read_name(json_object *json, const char *key, char out[RV_ROUTING_MAX_NAME])
{
    json_object *v = NULL;
    rv_str text;

    if (!json_object_object_get_ex(json, key, &v))
        return;
    text = rv_json_str(v);
    if (text.len > 0 && text.len < RV_ROUTING_MAX_NAME && !memchr(text.ptr, 0, text.len) && rv_utf8_valid(text, NULL))
        set_name(out, text.ptr);
}

static void read_count(json_object *json, const char *key, int64_t *out)
{
    int64_t n;

    if (rv_json_get_int(json, key, &n) && n >= 0)
        *out = n;
}

int rv_routing_build_value(const struct rv_routing *r, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);

    rv_routing_write_json(r, &w);
    int rc = rv_buf_check(&text, "the state of a routing", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), NULL, out, err);
    rv_buf_fini(&text);
    return rc;
}

void rv_routing_read_json(json_object *json, struct rv_routing *out)
{
    json_object *v = NULL;

    *out = RV_ROUTING_INIT;
    if (!json_object_is_type(json, json_type_object))
        return;
    read_name(json, "active_agent", out->active_agent);
    read_name(json, "fallback", out->fallback);
    read_name(json, "escalation", out->escalation);
    read_count(json, "turn_count", &out->turn_count);
    read_count(json, "max_turns", &out->max_turns);
    if (json_object_object_get_ex(json, "state", &v))
        out->state = state_of(rv_json_str(v));
}

/* All texts of the greatest conversation, and what an arena adds to each. */
#define ROOM ((size_t)128 * 1024)

/* One that was read; lives in its own arena. */
struct read_one {
    struct rv_conversation c; /* first: this is what callers hold */
    rv_arena *room;           /* owned; holds this struct and each text */
};

static bool is_hash(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");

    return n == RV_HASH_MAX - 1 && text[n] == '\0';
}

static int check_sections(const struct rv_conversation *c, rv_err **err)
{
    size_t total = 0;

    if (c->n_sections > RV_CONVERSATION_MAX_SECTIONS)
        return RV_FAIL(err, RV_E_INVALID, "sections: %zu of them, more than %d", c->n_sections,
                       RV_CONVERSATION_MAX_SECTIONS);
    for (size_t i = 0; i < c->n_sections; i++) {
        rv_str text = rv_str_of(c->sections[i]);

        if (!rv_utf8_valid(text, NULL))
            return RV_FAIL(err, RV_E_INVALID, "sections[%zu] is not UTF-8", i);
        if (text.len > RV_CONVERSATION_SECTION_BYTES - total)
            return RV_FAIL(err, RV_E_INVALID, "sections have more than %zu bytes together",
                           RV_CONVERSATION_SECTION_BYTES);
        total += text.len;
    }
    return 0;
}

static int check(const struct rv_conversation *c, rv_err **err)
{
    int rc = rv_context_check(&c->context, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "context");
    if (!rv_utf8_valid(rv_str_of(c->session_name), NULL))
        return RV_FAIL(err, RV_E_INVALID, "session_name is not UTF-8");
    if (c->session_metadata && !json_object_is_type(c->session_metadata, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "session_metadata must be an object, not %s",
                       rv_json_type_text(c->session_metadata));
    if (c->zone_minutes > RV_CONVERSATION_MAX_ZONE || c->zone_minutes < -RV_CONVERSATION_MAX_ZONE)
        return RV_FAIL(err, RV_E_INVALID, "zone_minutes is %d, beyond a day", c->zone_minutes);
    if (c->upto_seq < 0)
        return RV_FAIL(err, RV_E_INVALID, "upto_seq is negative");
    if (c->moment_token_threshold < 0)
        return RV_FAIL(err, RV_E_INVALID, "moment_token_threshold is negative");
    if (!rv_utf8_valid(rv_str_of(c->moment_summariser), NULL))
        return RV_FAIL(err, RV_E_INVALID, "moment_summariser is not UTF-8");
    if (c->history_hash[0] && !is_hash(c->history_hash))
        return RV_FAIL(err, RV_E_INVALID, "history_hash is not a hash");
    rc = rv_history_opts_check(&c->history_opts, err);
    return rc < 0 ? RV_WRAP(err, rc, "history") : check_sections(c, err);
}

int rv_conversation_check(const struct rv_conversation *c, rv_err **err)
{
    int rc = check(c, err);

    return rc < 0 ? RV_WRAP(err, rc, "conversation") : 0;
}

static void write_metadata(json_object *metadata, rv_jw *w)
{
    if (!conversation_metadata_has_shown(metadata))
        return;
    rv_jw_key(w, "session_metadata");
    rv_jw_obj(w);
    json_object_object_foreach (metadata, key, value) {
        if (rv_metadata_is_shown(key))
            rv_jw_kv_value(w, key, value);
    }
    rv_jw_obj_end(w);
}

void rv_conversation_write_json(const struct rv_conversation *c, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_key(w, "context");
    rv_context_write_json(&c->context, w);
    if (conversation_has_text(c->session_name))
        rv_jw_kv_str(w, "session_name", conversation_session_name_of(c));
    write_metadata(c->session_metadata, w);
    if (c->has_routing) {
        rv_jw_key(w, "routing");
        rv_routing_write_json(&c->routing, w);
    }
    if (c->n_sections > 0) {
        rv_jw_key(w, "sections");
        rv_jw_arr(w);
        for (size_t i = 0; i < c->n_sections; i++)
            rv_jw_str(w, rv_str_of(c->sections[i]));
        rv_jw_arr_end(w);
    }
    if (c->zone_minutes != 0)
        rv_jw_kv_int(w, "zone_minutes", c->zone_minutes);
    rv_jw_kv_bool(w, "keeps", c->keeps);
    rv_jw_kv_int(w, "upto_seq", c->upto_seq);
    rv_jw_key(w, "history");
    rv_history_opts_write(&c->history_opts, w);
    if (c->history_hash[0])
        rv_jw_kv_text(w, "history_hash", c->history_hash);
    if (c->moments)
        rv_jw_kv_value(w, "moments", c->moments);
    if (c->moment_token_threshold > 0)
        rv_jw_kv_int(w, "moment_token_threshold", c->moment_token_threshold);
    if (c->moment_summariser)
        rv_jw_kv_text(w, "moment_summariser", c->moment_summariser);
    rv_jw_obj_end(w);
}

static int keep(struct read_one *to, const char *text, const char **out, rv_err **err)
{
    *out = rv_arena_dup(to->room, rv_str_of(text));
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for a conversation");
}

static int read_context(json_object *v, struct read_one *to, rv_err **err)
{
    struct rv_context *c = &to->c.context;
    int rc = rv_context_read_json(v, c, err);

    for (size_t i = 0; rc == 0 && i < RV_N_CONTEXT_MEMBERS; i++) {
        const char **slot = conversation_context_slot(c, &conversation_context_members[i]);

        if (*slot)
            rc = keep(to, *slot, slot, err);
    }
    return rc;
}

static int read_session_name(json_object *v, struct read_one *to, rv_err **err)
{
    const char *text;
    int rc = conversation_text_of_json(v, "session_name", &text, err);

    if (rc == 0 && rv_str_of(text).len > RV_CONVERSATION_MAX_NAME)
        return RV_FAIL(err, RV_E_INVALID, "session_name has more than %d bytes", RV_CONVERSATION_MAX_NAME);
    return rc == 0 && conversation_has_text(text) ? keep(to, text, &to->c.session_name, err) : rc;
}

static int read_metadata(json_object *v, struct read_one *to, rv_err **err)
{
    return rv_json_dup(v, &to->c.session_metadata, err);
}

static int read_routing(json_object *v, struct read_one *to, rv_err **err)
{
    (void)err;
    rv_routing_read_json(v, &to->c.routing);
    to->c.has_routing = true;
    return 0;
}

static int read_sections(json_object *v, struct read_one *to, rv_err **err)
{
    size_t n = json_object_array_length(v), total = 0;
    int rc = 0;

    if (n > RV_CONVERSATION_MAX_SECTIONS)
        return RV_FAIL(err, RV_E_INVALID, "sections: %zu of them, more than %d", n, RV_CONVERSATION_MAX_SECTIONS);
    to->c.sections = rv_arena_alloc(to->room, n * sizeof *to->c.sections);
    if (!to->c.sections)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a conversation");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *item = json_object_array_get_idx(v, i);
        const char *text;

        if (!json_object_is_type(item, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "sections[%zu] must be a string, not %s", i, rv_json_type_text(item));
        total += rv_json_str(item).len;
        if (total > RV_CONVERSATION_SECTION_BYTES) /* before it is copied */
            return RV_FAIL(err, RV_E_INVALID, "sections have more than %zu bytes together",
                           RV_CONVERSATION_SECTION_BYTES);
        rc = conversation_text_of_json(item, "a section", &text, err);
        if (rc == 0)
            rc = keep(to, text, &to->c.sections[i], err);
    }
    to->c.n_sections = n;
    return rc;
}

static int read_zone(json_object *v, struct read_one *to, rv_err **err)
{
    int64_t minutes = json_object_get_int64(v);

    if (minutes > RV_CONVERSATION_MAX_ZONE || minutes < -RV_CONVERSATION_MAX_ZONE)
        return RV_FAIL(err, RV_E_INVALID, "zone_minutes is %lld, beyond a day", (long long)minutes);
    to->c.zone_minutes = (int)minutes;
    return 0;
}

static int read_keeps(json_object *v, struct read_one *to, rv_err **err)
{
    (void)err;
    to->c.keeps = json_object_get_boolean(v);
    return 0;
}

static int read_upto(json_object *v, struct read_one *to, rv_err **err)
{
    (void)err;
    to->c.upto_seq = json_object_get_int64(v);
    return 0;
}

static int read_opts(json_object *v, struct read_one *to, rv_err **err)
{
    int rc = rv_history_opts_read(v, &to->c.history_opts, err);

    if (rc == 0 && !json_object_object_get_ex(v, "version", NULL)) /* written before there was another one */
        to->c.history_opts.version = RV_HISTORY_1;
    return rc < 0 ? RV_WRAP(err, rc, "history") : 0;
}

static int read_hash(json_object *v, struct read_one *to, rv_err **err)
{
    rv_str text = rv_json_str(v);

    if (text.len != RV_HASH_MAX - 1)
        return RV_FAIL(err, RV_E_INVALID, "history_hash is not a hash");
    memcpy(to->c.history_hash, text.ptr, text.len);
    return 0;
}

static int read_moments(json_object *v, struct read_one *to, rv_err **err)
{
    int rc = rv_moments_check(v, err);

    return rc == 0 ? rv_json_dup(v, &to->c.moments, err) : rc;
}

static int read_threshold(json_object *v, struct read_one *to, rv_err **err)
{
    (void)err;
    to->c.moment_token_threshold = json_object_get_int64(v);
    return 0;
}

static int read_summariser(json_object *v, struct read_one *to, rv_err **err)
{
    return keep(to, json_object_get_string(v), &to->c.moment_summariser, err);
}

/* The members, in the order in which they are read. */
static const struct member {
    const char *name;
    enum json_type type;
    bool is_required;
    int (*read)(json_object *v, struct read_one *to, rv_err **err);
} members[] = {
    {"context", json_type_object, true, read_context},
    {"session_name", json_type_string, false, read_session_name},
    {"session_metadata", json_type_object, false, read_metadata},
    {"routing", json_type_object, false, read_routing},
    {"sections", json_type_array, false, read_sections},
    {"zone_minutes", json_type_int, false, read_zone},
    {"keeps", json_type_boolean, true, read_keeps},
    {"upto_seq", json_type_int, true, read_upto},
    {"history", json_type_object, true, read_opts},
    {"history_hash", json_type_string, false, read_hash},
    {"moments", json_type_array, false, read_moments},
    {"moment_token_threshold", json_type_int, false, read_threshold},
    {"moment_summariser", json_type_string, false, read_summariser},
};

static const char *type_text(enum json_type type)
{
    return type == json_type_object    ? "an object"
           : type == json_type_array   ? "an array"
           : type == json_type_string  ? "a string"
           : type == json_type_boolean ? "a boolean"
                                       : "an integer";
}

static int read_members(json_object *json, struct read_one *to, rv_err **err)
{
    for (size_t i = 0; i < RV_COUNT(members); i++) {
        const struct member *m = &members[i];
        json_object *v = NULL;
        int rc;

        if (!json_object_object_get_ex(json, m->name, &v)) {
            if (m->is_required)
                return RV_FAIL(err, RV_E_INVALID, "%s is missing", m->name);
            continue;
        }
        if (!json_object_is_type(v, m->type) || (m->type == json_type_int && !rv_json_is_int(v)))
            return RV_FAIL(err, RV_E_INVALID, "%s must be %s, not %s", m->name, type_text(m->type),
                           rv_json_type_text(v));
        rc = m->read(v, to, err);
        if (rc < 0)
            return rc;
    }
    return check(&to->c, err);
}

static int check_names(json_object *json, rv_err **err)
{
    json_object_object_foreach (json, key, value) {
        size_t i = 0;

        (void)value;
        while (i < RV_COUNT(members) && strcmp(members[i].name, key) != 0)
            i++;
        if (i == RV_COUNT(members))
            return RV_FAIL(err, RV_E_INVALID, "unknown member \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 64)));
    }
    return 0;
}

int rv_conversation_read_json(json_object *json, struct rv_conversation **out, rv_err **err)
{
    rv_arena *room;
    struct read_one *to;
    int rc;

    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "a conversation must be an object, not %s", rv_json_type_text(json));
    room = rv_arena_new(ROOM);
    to = room ? rv_arena_alloc(room, sizeof *to) : NULL;
    if (!to) {
        rv_arena_free(room);
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a conversation");
    }
    to->room = room;
    rc = check_names(json, err);
    if (rc == 0)
        rc = read_members(json, to, err);
    if (rc < 0) {
        rv_conversation_free(&to->c);
        return RV_WRAP(err, rc, "conversation");
    }
    *out = &to->c;
    return 0;
}

void rv_conversation_free(struct rv_conversation *c)
{
    struct read_one *one = (struct read_one *)(void *)c;

    if (!one)
        return;
    json_object_put(one->c.session_metadata);
    json_object_put(one->c.history);
    json_object_put(one->c.moments);
    rv_arena_free(one->room);
}
