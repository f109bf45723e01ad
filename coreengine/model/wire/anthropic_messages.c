/* The messages of a request to Anthropic. Their rules: the user speaks first; turns alternate; the answers to all tool
 * calls of a turn open the very next one; no text is blank; thinking comes back before the calls, as it was.
 *
 * Turns are written as they come: one opens with its first block, so that a message with nothing to say leaves no
 * trace.
 */
#include "coreengine/base/base.h"
#include "coreengine/model/wire/wire_internal.h"

#define SILENCE "(no text)" /* where there has to be a text and there is none */

struct pending {
    rv_str id;     /* as the request has it */
    size_t repeat; /* 0: the first call with this id */
    bool is_answered;
};

struct conversation {
    const struct rv_wire_target *target;
    json_object *ask;
    json_object *attachments; /* of the prompt; NULL: none */
    json_object *tools;       /* of the request; NULL: none */
    rv_jw *w;
    rv_buf *system;                              /* gets the system texts that stand first */
    const char *open;                            /* the role whose turn is open; NULL: none */
    bool has_begun;                              /* a message other than the leading system texts was seen */
    rv_index ids;                                /* of all calls */
    size_t n_calls;                              /* so far */
    struct pending calls[RV_LLM_MAX_TOOL_CALLS]; /* of the turn before */
    size_t n_pending;
};

static bool is_blank(rv_str text)
{
    return rv_str_trim(text).len == 0;
}

static void close_turn(struct conversation *c)
{
    if (!c->open)
        return;
    rv_jw_arr_end(c->w);
    rv_jw_obj_end(c->w);
    c->open = NULL;
}

static void write_text(rv_jw *w, rv_str text)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "text");
    rv_jw_kv_str(w, "text", text);
    rv_jw_obj_end(w);
}

static void begin_turn(struct conversation *c, const char *role)
{
    close_turn(c);
    rv_jw_obj(c->w);
    rv_jw_kv_text(c->w, "role", role);
    rv_jw_key(c->w, "content");
    rv_jw_arr(c->w);
    c->open = role;
}

/* A turn of the user, who did not say anything. */
static void fall_silent(struct conversation *c)
{
    begin_turn(c, "user");
    write_text(c->w, RV_STR_LIT(SILENCE));
}

/* The turn of that role, joined to an open one of the same. */
static void open_turn(struct conversation *c, const char *role)
{
    bool is_user = rv_str_is(rv_str_of(role), "user");

    if (c->open && rv_str_is(rv_str_of(c->open), role))
        return;
    if (!c->has_begun && !is_user)
        fall_silent(c);
    c->has_begun = true;
    begin_turn(c, role);
}

/* Their ids are of letters, digits, "_" and "-", and no two calls have the same. Those of other providers may differ.
 */
static void write_id(rv_jw *w, const char *key, rv_str id, size_t repeat)
{
    rv_buf text = RV_BUF_INIT(4 * id.len + 32);

    for (size_t i = 0; i < id.len; i++) {
        unsigned char ch = (unsigned char)id.ptr[i];
        bool is_plain =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-';
        if (is_plain)
            rv_buf_putc(&text, (char)ch);
        else
            rv_buf_printf(&text, "_%02x", ch);
    }
    if (repeat || !id.len)
        rv_buf_printf(&text, "_%zu", repeat);
    if (text.rc && w->out->rc == 0)
        w->out->rc = text.rc;
    rv_jw_kv_str(w, key, rv_buf_str(&text));
    rv_buf_fini(&text);
}

static int write_call(struct conversation *c, json_object *call, rv_err **err)
{
    rv_str id = wire_text(call, "id");
    struct pending *p = &c->calls[c->n_pending];
    char name[WIRE_MAX_TOOL_NAME];
    int rc = rv_index_add(&c->ids, id, 1);

    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a tool call");
    *p = (struct pending){.id = id, .repeat = rc == RV_E_EXISTS ? c->n_calls : 0};
    c->n_calls++;
    c->n_pending++;
    rv_jw_obj(c->w);
    rv_jw_kv_text(c->w, "type", "tool_use");
    write_id(c->w, "id", id, p->repeat);
    rv_jw_kv_str(c->w, "name", wire_tool_name(c->target, c->tools, wire_text(call, "name"), name));
    rv_jw_key(c->w, "input");
    rc = wire_body_write_arguments(wire_text(call, "arguments"), c->w, err);
    rv_jw_obj_end(c->w);
    return rc;
}

/* Blocks that the same provider gave with that turn; NULL: none. */
static json_object *thinking_of(const struct conversation *c, json_object *message)
{
    json_object *opaque = rv_json_get_obj(message, "opaque");
    json_object *blocks = opaque ? rv_json_get_arr(opaque, "blocks") : NULL;

    if (!blocks || !json_object_array_length(blocks))
        return NULL;
    return rv_str_is(wire_text(opaque, "provider"), c->target->provider) ? blocks : NULL;
}

/* Everything in them is the provider's own. */
static void write_thinking(rv_jw *w, json_object *blocks)
{
    size_t n = blocks ? json_object_array_length(blocks) : 0;

    for (size_t i = 0; i < n; i++) {
        json_object *block = json_object_array_get_idx(blocks, i);
        rv_str type = json_object_is_type(block, json_type_object) ? wire_text(block, "type") : (rv_str){NULL, 0};
        if (rv_str_is(type, "thinking") || rv_str_is(type, "redacted_thinking"))
            rv_jw_value(w, block);
    }
}

static int add_assistant(struct conversation *c, json_object *message, rv_str text, rv_err **err)
{
    json_object *calls = rv_json_get_arr(message, "tool_calls"), *thinking = thinking_of(c, message);
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = 0;

    if (n == 0 && is_blank(text))
        return 0; /* thinking alone does not make a turn */
    if (n > RV_LLM_MAX_TOOL_CALLS)
        return RV_FAIL(err, RV_E_INVALID, "a message has more than %d tool calls", RV_LLM_MAX_TOOL_CALLS);
    if (thinking && c->open && rv_str_is(rv_str_of(c->open), "assistant"))
        fall_silent(c); /* thinking opens a turn: it cannot be joined to another */
    open_turn(c, "assistant");
    write_thinking(c->w, thinking);
    if (!is_blank(text))
        write_text(c->w, text);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        if (json_object_is_type(call, json_type_object))
            rc = write_call(c, call, err);
        else
            rc = RV_FAIL(err, RV_E_INVALID, "a tool call of the history is not an object");
    }
    return rc;
}

static int add_result(struct conversation *c, json_object *message, rv_str text, rv_err **err)
{
    rv_str id = wire_text(message, "tool_call_id");
    struct pending *p = NULL;
    bool is_error = false;

    for (size_t i = 0; !p && i < c->n_pending; i++)
        if (!c->calls[i].is_answered && rv_str_eq(c->calls[i].id, id))
            p = &c->calls[i];
    if (!p)
        return RV_FAIL(err, RV_E_INVALID, "a tool message answers \"%.*s\", and no call before it has that id",
                       RV_STR_ARG(id));
    p->is_answered = true;
    if (!rv_json_get_bool(message, "is_error", &is_error))
        is_error = false;
    if (is_error && is_blank(text))
        text = RV_STR_LIT(SILENCE); /* an error has to say something */
    open_turn(c, "user");
    rv_jw_obj(c->w);
    rv_jw_kv_text(c->w, "type", "tool_result");
    write_id(c->w, "tool_use_id", id, p->repeat);
    if (!is_blank(text))
        rv_jw_kv_str(c->w, "content", text);
    if (is_error)
        rv_jw_kv_bool(c->w, "is_error", true);
    rv_jw_obj_end(c->w);
    return 0;
}

static int settle_calls(struct conversation *c, rv_err **err)
{
    for (size_t i = 0; i < c->n_pending; i++)
        if (!c->calls[i].is_answered)
            return RV_FAIL(err, RV_E_INVALID, "the tool call \"%.*s\" of the history has no result right after it",
                           RV_STR_ARG(c->calls[i].id));
    c->n_pending = 0;
    return 0;
}

/* --- images and documents --- */

static bool is_one_of(rv_str text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rv_str_is(text, list[i]))
            return true;
    return false;
}

/* The bytes of data as text. RV_E_INVALID: they are not UTF-8. */
static int text_of_parts(const struct wire_attachment *a, rv_buf *out, rv_err **err)
{
    if (!rv_base64_read(a->data, out))
        return RV_FAIL(err, RV_E_INVALID, "the data of an attachment is not base64");
    int rc = rv_buf_check(out, "an attachment", err);
    if (rc == 0 && !rv_utf8_valid(rv_buf_str(out), NULL))
        rc = RV_FAIL(err, RV_E_INVALID, "an attachment of type %.*s is not UTF-8", RV_STR_ARG(a->media_type));
    return rc;
}

/* The member "source". */
static int write_source(const struct wire_attachment *a, rv_jw *w, rv_err **err)
{
    bool is_text = !a->is_image && a->data.len > 0 && rv_str_is(a->media_type, "text/plain");
    rv_buf text = RV_BUF_INIT(SIZE_MAX / 2);
    int rc = is_text ? text_of_parts(a, &text, err) : 0;

    rv_jw_key(w, "source");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", a->url.len > 0 ? "url" : is_text ? "text" : "base64");
    if (a->url.len > 0) {
        rv_jw_kv_str(w, "url", a->url);
    } else {
        rv_jw_kv_str(w, "media_type", a->media_type);
        rv_jw_kv_str(w, "data", is_text ? rv_buf_str(&text) : a->data);
    }
    rv_jw_obj_end(w);
    rv_buf_fini(&text);
    return rc;
}

static int write_attachment(const struct conversation *c, size_t i, rv_err **err)
{
    static const char *const images[] = {"image/jpeg", "image/png", "image/gif", "image/webp"};
    static const char *const documents[] = {"application/pdf", "text/plain"};
    struct wire_attachment a = wire_parts_at(c->attachments, i);
    /* Behind an address only PDF is known. */
    size_t n = a.is_image ? RV_COUNT(images) : a.url.len > 0 ? 1 : RV_COUNT(documents);

    if (a.media_type.len > 0 && !is_one_of(a.media_type, a.is_image ? images : documents, n))
        return RV_FAIL(err, RV_E_INVALID, "attachment %zu is of type %.*s, and %s takes %s", i + 1,
                       RV_STR_ARG(a.media_type), c->target->provider,
                       a.is_image      ? "images of type image/jpeg, image/png, image/gif and image/webp"
                       : a.url.len > 0 ? "files by URL of type application/pdf"
                                       : "files of type application/pdf and text/plain");
    rv_jw_obj(c->w);
    rv_jw_kv_text(c->w, "type", a.is_image ? "image" : "document");
    int rc = write_source(&a, c->w, err);
    if (!a.is_image && a.name.len > 0)
        rv_jw_kv_str(c->w, "title", a.name);
    rv_jw_obj_end(c->w);
    return rc;
}

static int add_prompt(struct conversation *c, rv_str text, rv_err **err)
{
    rv_buf asking = RV_BUF_INIT(SIZE_MAX / 2);
    size_t n = c->attachments ? json_object_array_length(c->attachments) : 0;
    int rc = 0;

    if (c->ask) {
        rv_buf_add_str(&asking, text);
        wire_body_ask_for_json(c->ask, &asking);
        text = rv_buf_str(&asking);
    }
    open_turn(c, "user");
    for (size_t i = 0; i < n && rc == 0; i++) /* first, as the vendor advises */
        rc = write_attachment(c, i, err);
    if (n == 0 || !is_blank(text))
        write_text(c->w, is_blank(text) ? RV_STR_LIT(SILENCE) : text);
    if (rc == 0)
        rc = rv_buf_check(&asking, "the prompt", err);
    rv_buf_fini(&asking);
    return rc;
}

static int add_message(void *self, const char *role, json_object *message, rv_str text, rv_err **err)
{
    struct conversation *c = self;
    rv_str who = rv_str_of(role);
    int rc;

    if (rv_str_is(who, "tool"))
        return add_result(c, message, text, err);
    rc = settle_calls(c, err);
    if (rc < 0)
        return rc;
    if (rv_str_is(who, "assistant"))
        return add_assistant(c, message, text, err);
    if (rv_str_is(who, "user") && !message)
        return add_prompt(c, text, err);
    if (!rv_str_is(who, "user") && !rv_str_is(who, "system"))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a role of a message", role);
    if (is_blank(text) || (rv_str_is(who, "system") && !c->has_begun))
        return 0;         /* see add_system() */
    open_turn(c, "user"); /* who speaks for the system later on has no role of its own here */
    write_text(c->w, text);
    return 0;
}

/* Whether a message leaves a trace in the conversation. */
static bool speaks(const char *role, json_object *message, rv_str text)
{
    json_object *calls = message ? rv_json_get_arr(message, "tool_calls") : NULL;

    if (rv_str_is(rv_str_of(role), "assistant") && calls && json_object_array_length(calls))
        return true;
    return !message || !is_blank(text); /* the prompt is a turn even where it is blank */
}

/* The system messages before the first other message are a separate member. */
static int add_system(void *self, const char *role, json_object *message, rv_str text, rv_err **err)
{
    struct conversation *c = self;

    (void)err;
    if (!rv_str_is(rv_str_of(role), "system")) {
        c->has_begun = c->has_begun || speaks(role, message, text);
    } else if (!c->has_begun && !is_blank(text)) {
        rv_buf_puts(c->system, c->system->len ? "\n\n" : "");
        rv_buf_add_str(c->system, text);
    }
    return 0;
}

int wire_anthropic_messages(const struct rv_wire_target *t, json_object *request, json_object *ask, rv_jw *w,
                            rv_err **err)
{
    rv_buf system = RV_BUF_INIT(SIZE_MAX / 2);
    struct conversation c = {.target = t,
                             .ask = ask,
                             .attachments = wire_parts_of(request),
                             .tools = rv_json_get_arr(request, "tools"),
                             .w = w,
                             .system = &system};
    int rc = wire_body_messages(request, add_system, &c, err);

    if (rc == 0)
        rc = rv_buf_check(&system, "the system text", err);
    if (rc == 0 && system.len && !wire_body_has_extra(t, "system"))
        rv_jw_kv_str(w, "system", rv_buf_str(&system));
    rv_buf_fini(&system);
    if (rc < 0 || wire_body_has_extra(t, "messages"))
        return rc;
    c.has_begun = false;
    rv_jw_key(w, "messages");
    rv_jw_arr(w);
    rc = wire_body_messages(request, add_message, &c, err);
    if (rc == 0)
        rc = settle_calls(&c, err);
    close_turn(&c);
    rv_jw_arr_end(w);
    rv_index_fini(&c.ids);
    return rc;
}
