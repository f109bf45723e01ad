/* What the tools that work with data have in common: their arguments, asking the engine, and results. Such a tool
 * always replies with an object that has `status`; whatever goes wrong is a result too, with a text and a code. */
#include "capabilities/p8/p8_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_AGAIN 50 /* as often another has changed what a tool was about to change: each time that one was faster */

/* What a failure is called: by the tools, and by the engine. */
static const struct {
    const char *code, *type;
} codes[] = {
    {BAD_ARGUMENTS, "ValidationError"}, {NOT_FOUND, "NotFoundError"},
    {DENIED, "AccessDenied"},           {QUOTA, "LimitError"},
    {TIMEOUT, "TimeoutError"},          {CONFLICT, "ExistsError"},
    {PROVIDER, "ProviderError"},        {INTERNAL, "ExecutionError"},
    {INTERNAL, "UnavailableError"},     {CONFLICT, "ConflictError"},
};

static const char *code_of(const char *type)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(codes[i].type, type) == 0)
            return codes[i].code;
    return INTERNAL;
}

static const char *type_of(const char *code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(codes[i].code, code) == 0)
            return codes[i].type;
    return "ExecutionError";
}

/* --- failures --- */

void *tool_fail(struct tool *t, const char *code, const char *fmt, ...)
{
    va_list ap;

    if (t->code)
        return NULL; /* the first one says it */
    va_start(ap, fmt);
    vsnprintf(t->error, sizeof t->error, fmt, ap);
    va_end(ap);
    t->code = code;
    for (size_t end = strlen(t->error); end > 0 && !is_utf8(t->error, strlen(t->error));) /* cut in a character */
        t->error[--end] = '\0';
    return NULL;
}

bool tool_forgive(struct tool *t, const char *code)
{
    if (!t->code || strcmp(t->code, code) != 0)
        return false;
    t->code = NULL;
    return true;
}

void mark_action(struct tool *t, json_object *obj, const char *type, json_object *payload)
{
    add(t, obj, "_action_event", json_object_new_boolean(1));
    add(t, obj, "action_type", text(type));
    if (payload)
        add(t, obj, "payload", payload);
}

/* The engine looks for the marker in the data of a result. */
static void mark_failure(struct tool *t, json_object *result)
{
    json_object *payload = json_object_new_object(), *data = json_object_new_object();

    add(t, payload, "error", text(t->error));
    add(t, payload, "code", text(t->code));
    mark_action(t, data, t->action, payload);
    add(t, result, "data", data);
}

static json_object *error_of(struct tool *t)
{
    json_object *result = json_object_new_object();

    add(t, result, "status", text("error"));
    add(t, result, "error", text(t->error));
    add(t, result, "code", text(t->code));
    add(t, result, "error_type", text(type_of(t->code)));
    if (t->echo)
        add(t, result, t->echo, json_object_get(json_object_object_get(t->args, t->echo)));
    if (t->action)
        mark_failure(t, result);
    return result;
}

/* --- building --- */

json_object *text(const char *s)
{
    return json_object_new_string(s);
}

void add(struct tool *t, json_object *obj, const char *key, json_object *value)
{
    if (obj && json_object_object_add(obj, key, value) == 0) /* NULL is null */
        return;
    json_object_put(value);
    t->no_memory = true;
}

void push(struct tool *t, json_object *list, json_object *value)
{
    if (list && json_object_array_add(list, value) == 0)
        return;
    json_object_put(value);
    t->no_memory = true;
}

size_t length(json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

json_object *item(json_object *list, size_t i)
{
    return i < length(list) ? json_object_array_get_idx(list, i) : NULL;
}

json_object *success(struct tool *t, const char *status)
{
    json_object *result = json_object_new_object();

    add(t, result, "status", text(status));
    return result;
}

/* --- arguments --- */

json_object *member(json_object *obj, const char *key)
{
    json_object *value = NULL;

    return json_object_is_type(obj, json_type_object) && json_object_object_get_ex(obj, key, &value) ? value : NULL;
}

const char *text_in(json_object *obj, const char *key)
{
    json_object *value = member(obj, key);

    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

const char *arg_text(struct tool *t, const char *key, bool needed)
{
    json_object *value = member(t->args, key);
    size_t len;

    if (!value && !needed)
        return NULL;
    if (!json_object_is_type(value, json_type_string))
        return tool_fail(t, BAD_ARGUMENTS, "%s has to be a string", key);
    len = (size_t)json_object_get_string_len(value);
    if (strlen(json_object_get_string(value)) != len || len > MAX_ARG_BYTES)
        return tool_fail(t, BAD_ARGUMENTS, "%s has a character U+0000, or more than %d bytes", key, MAX_ARG_BYTES);
    if (needed && len == 0)
        return tool_fail(t, BAD_ARGUMENTS, "%s is empty", key);
    return json_object_get_string(value);
}

json_object *arg_list(struct tool *t, const char *key, bool needed, size_t most, enum json_type of)
{
    json_object *value = member(t->args, key);
    const char *what = of == json_type_string ? "strings" : "objects";

    if (!value && !needed)
        return NULL;
    if (!json_object_is_type(value, json_type_array) || length(value) > most)
        return tool_fail(t, BAD_ARGUMENTS, "%s has to be a list of at most %zu %s", key, most, what);
    for (size_t i = 0; i < length(value); i++)
        if (!json_object_is_type(item(value, i), of))
            return tool_fail(t, BAD_ARGUMENTS, "%s: item %zu is none of the %s that it has to be a list of", key, i + 1,
                             what);
    return value;
}

int64_t arg_int(struct tool *t, const char *key, int64_t otherwise)
{
    json_object *value = member(t->args, key);

    if (!value)
        return otherwise;
    if (!json_object_is_type(value, json_type_int)) {
        tool_fail(t, BAD_ARGUMENTS, "%s has to be an integer", key);
        return otherwise;
    }
    return json_object_get_int64(value);
}

const char *user_of(const struct tool *t)
{
    return t->call->user_id && *t->call->user_id ? t->call->user_id : NULL;
}

const char *session_of(const struct tool *t)
{
    return t->call->session_id && *t->call->session_id ? t->call->session_id : NULL;
}

/* --- asking --- */

/* Services that refuse what is too much in number; all others refuse what is too large. */
static bool counts(const char *service)
{
    static const char *const those[] = {"models.call", "quotas.take", "schedules.add"};

    for (size_t i = 0; i < sizeof those / sizeof those[0]; i++)
        if (strcmp(those[i], service) == 0)
            return true;
    return false;
}

static json_object *fail_as_told(struct tool *t, const char *service, const char *answer)
{
    json_object *failure = json_of(answer);
    const char *type = text_in(failure, "type"), *message = text_in(failure, "message");

    tool_fail(t,
              type && strcmp(type, "LimitError") == 0 && !counts(service) ? BAD_ARGUMENTS : code_of(type ? type : ""),
              "%s", message ? message : "the engine does not say why");
    json_object_put(failure);
    return NULL;
}

json_object *ask_take(struct tool *t, const char *service, json_object *args)
{
    const char *sent =
        t->no_memory ? NULL
                     : json_object_to_json_string_ext(args, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    const char *answer = NULL;
    json_object *said = NULL;

    if (t->code || !sent)
        t->no_memory = t->no_memory || !sent;
    else if (!RV_CAP_HAS(t->call, ask))
        tool_fail(t, INTERNAL, "this engine is too old: it answers no questions");
    else if (t->call->ask(t->call, service, sent, &answer) != 0)
        fail_as_told(t, service, answer);
    else if (!(said = json_of(answer)))
        t->no_memory = true;
    json_object_put(args);
    return said;
}

json_object *versioned_row(struct tool *t, const char *kind, const char *id)
{
    json_object *args = json_object_new_object();

    add(t, args, "kind", text(kind));
    add(t, args, "id", text(id));
    return ask_take(t, "entities.get", args);
}

json_object *row_of(struct tool *t, const char *kind, const char *id)
{
    json_object *said = versioned_row(t, kind, id), *row = json_object_get(member(said, "row"));

    json_object_put(said);
    return row;
}

json_object *tool_repeat(struct tool *t, tool_fn once, const void *what)
{
    for (int i = 0;; i++) {
        json_object *result = once(t, what);
        if (!t->code)
            return result;
        json_object_put(result);
        if (i == MAX_AGAIN || t->no_memory || !tool_forgive(t, CONFLICT))
            return NULL;
    }
}

json_object *put_take(struct tool *t, const char *kind, json_object *row)
{
    json_object *args = json_object_new_object(), *rows = json_object_new_array(), *said, *id;

    push(t, rows, row);
    add(t, args, "kind", text(kind));
    add(t, args, "rows", rows);
    said = ask_take(t, "entities.put", args);
    id = json_object_get(item(member(said, "ids"), 0));
    json_object_put(said);
    return id;
}

/* --- a call --- */

bool is_utf8(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;

    while (p < end) {
        size_t more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : *p >= 0xe0 && *p < 0xf0 ? 2 : 3;
        if (*p >= 0xf5 || (*p >= 0x80 && *p < 0xc2) || (size_t)(end - p) <= more)
            return false;
        if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] > 0x8f))
            return false;
        for (size_t i = 1; i <= more; i++)
            if ((p[i] & 0xc0) != 0x80)
                return false;
        p += more + 1;
    }
    return true;
}

static json_object *answer(struct tool *t, tool_fn fn, const void *self)
{
    json_object *result;

    if (!is_utf8(t->call->args, strlen(t->call->args)))
        return tool_fail(t, BAD_ARGUMENTS, "the arguments are not UTF-8");
    t->args = json_of(t->call->args);
    if (!json_object_is_type(t->args, json_type_object))
        return tool_fail(t, BAD_ARGUMENTS, "the arguments are not a JSON object of at most %d levels", MAX_DEPTH);
    result = fn(t, self);
    if (t->code || t->no_memory) {
        json_object_put(result);
        return NULL;
    }
    return result;
}

int tool_call(void *self, struct rv_cap_call *call, const char *echo, tool_fn fn)
{
    struct tool t = {.call = call, .echo = echo};
    json_object *result = answer(&t, fn, self);
    int rc;

    if (!result && !t.no_memory) {
        tool_fail(&t, INTERNAL, "it has no result");
        result = error_of(&t);
    }
    rc = reply_take(call, result, t.no_memory);
    json_object_put(t.args);
    return rc;
}
