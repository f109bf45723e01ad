/* get_user_profile and update_user_metadata: what is known about the person of a conversation, their own row of users.
 */
#include "capabilities/p8/p8_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_KEYS 100 /* that one call removes: a model fills the list; more is an error of the call */

/* Sections of the metadata whose form is known; any other one is kept as it is. */
static const struct section {
    const char *name;
    enum json_type type, of; /* of: of the items of a list */
    const char *key;         /* what tells items of a list of objects apart */
} sections[] = {
    {"relations", json_type_array, json_type_object, "name"}, {"interests", json_type_array, json_type_string, NULL},
    {"feeds", json_type_array, json_type_object, "url"},      {"preferences", json_type_object, json_type_null, NULL},
    {"facts", json_type_object, json_type_null, NULL},        {"categories", json_type_object, json_type_null, NULL},
    {"sources", json_type_object, json_type_null, NULL},
};

static const struct section *section_of(const char *name)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(sections[i].name, name) == 0)
            return &sections[i];
    return NULL;
}

/* The user's own row: one without an owner is not a profile. The caller's; NULL: the tool has failed. */
static json_object *profile_of(struct tool *t)
{
    json_object *args = json_object_new_object(), *where = json_object_new_object(), *said, *row;

    add(t, where, "user_id", text(user_of(t)));
    add(t, args, "kind", text("users"));
    add(t, args, "where", where);
    add(t, args, "limit", json_object_new_int64(1));
    said = ask_take(t, "entities.find", args);
    row = json_object_get(item(member(said, "rows"), 0));
    json_object_put(said);
    return row ? row : tool_fail(t, NOT_FOUND, "User not found");
}

/* --- get_user_profile --- */

json_object *user_profile(struct tool *t, const void *self)
{
    static const char *const shown[] = {"user_id", "name", "email", "content", "metadata", "tags"};
    json_object *row, *result;

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "No authenticated user in context");
    row = profile_of(t);
    if (!row)
        return NULL;
    result = json_object_new_object();
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        add(t, result, shown[i], json_object_get(member(row, shown[i])));
    json_object_put(row);
    return result;
}

int get_user_profile(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, user_profile);
}

/* --- update_user_metadata --- */

static const char *words_of(const struct section *s)
{
    return s->type == json_type_object ? "an object"
           : s->of == json_type_object ? "a list of objects"
                                       : "a list of strings";
}

static bool has_form(const struct section *s, json_object *value)
{
    if (!json_object_is_type(value, s->type))
        return false;
    for (size_t i = 0; i < length(value); i++)
        if (!json_object_is_type(item(value, i), s->of))
            return false;
    return true;
}

static void check_sections(struct tool *t, json_object *metadata)
{
    json_object_object_foreach (metadata, key, value) {
        const struct section *s = section_of(key);
        if (s && value && !has_form(s, value))
            tool_fail(t, BAD_ARGUMENTS, "Invalid metadata shape: %s has to be %s", key, words_of(s));
    }
}

static bool is_same(const struct section *s, json_object *a, json_object *b)
{
    const char *x = s->key ? text_in(a, s->key) : json_object_get_string(a);
    const char *y = s->key ? text_in(b, s->key) : json_object_get_string(b);

    return x && y && strcmp(x, y) == 0;
}

/* Those that are kept, each in the place where it is, then what is new. */
static json_object *unite(struct tool *t, const struct section *s, json_object *kept, json_object *more)
{
    json_object *all = json_object_new_array();

    for (size_t i = 0; i < length(kept); i++)
        push(t, all, json_object_get(item(kept, i)));
    for (size_t i = 0; i < length(more); i++) {
        size_t at = 0;
        while (at < length(all) && !is_same(s, item(all, at), item(more, i)))
            at++;
        if (at == length(all))
            push(t, all, json_object_get(item(more, i)));
        else if (json_object_array_put_idx(all, at, json_object_get(item(more, i))) != 0)
            t->no_memory = true;
    }
    return all;
}

static json_object *patch_of(struct tool *t, json_object *metadata, json_object *row, bool unites)
{
    json_object *patch = json_object_new_object(), *kept = member(row, "metadata");

    json_object_object_foreach (metadata, key, value) {
        const struct section *s = section_of(key);
        if (unites && s && s->type == json_type_array && value)
            add(t, patch, key, unite(t, s, member(kept, key), value));
        else
            add(t, patch, key, json_object_get(value));
    }
    return patch;
}

/* Borrowed for the call. */
struct profile_change {
    const char *id; /* of the user's row */
    json_object *metadata, *remove;
    bool unites; /* lists */
};

static bool unites(struct tool *t)
{
    const char *mode = arg_text(t, "list_mode", false);

    if (mode && strcmp(mode, "union") != 0 && strcmp(mode, "replace") != 0)
        tool_fail(t, BAD_ARGUMENTS, "list_mode has to be replace or union");
    return mode && strcmp(mode, "union") == 0;
}

/* What another adds to a list meanwhile stays in it; members that are replaced need no look at the row. */
static json_object *merge(struct tool *t, const void *what)
{
    const struct profile_change *change = what;
    json_object *args = json_object_new_object(), *read = NULL, *said, *all;

    if (change->unites)
        read = versioned_row(t, "users", change->id);
    add(t, args, "kind", text("users"));
    add(t, args, "id", text(change->id));
    add(t, args, "patch", patch_of(t, change->metadata, member(read, "row"), change->unites));
    if (change->remove)
        add(t, args, "remove", json_object_get(change->remove));
    if (read)
        add(t, args, "version", json_object_get(member(read, "version")));
    said = ask_take(t, "entities.merge_metadata", args);
    all = json_object_get(member(said, "metadata"));
    json_object_put(read);
    json_object_put(said);
    return all;
}

static json_object *update(struct tool *t, const void *self)
{
    json_object *metadata = member(t->args, "metadata"), *row, *all, *result;
    json_object *remove = arg_list(t, "remove_keys", false, MAX_KEYS, json_type_string);
    bool adds = unites(t);

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required");
    if (!json_object_is_type(metadata, json_type_object))
        return tool_fail(t, BAD_ARGUMENTS, "Invalid metadata shape: it has to be an object");
    check_sections(t, metadata);
    row = t->code ? NULL : profile_of(t);
    if (!row)
        return NULL;
    const struct profile_change change = {text_in(row, "id"), metadata, remove, adds};
    all = tool_repeat(t, merge, &change);
    json_object_put(row);
    if (!all)
        return NULL;
    result = success(t, "ok");
    add(t, result, "user_id", text(user_of(t)));
    add(t, result, "metadata", all);
    return result;
}

int update_user_metadata(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, update);
}
