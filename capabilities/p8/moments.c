/* save_moments, get_moments and gather_activity: memory with a time. */
#include "capabilities/p8/p8_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MOMENTS   100 /* that one call saves: a model fills the list; more is an error of the call */
#define MAX_FRAGMENTS 500 /* of all moments of a call: each is a name to look up */
#define MAX_TAGS      100 /* of one moment: a model fills the list; more is an error of the call */
#define MOST_SHOWN    100 /* of one list: a model reads it; a larger `limit` counts as this */

/* --- save_moments --- */

/* What is to be written, and the links back to it. */
struct saving {
    json_object *rows, *links, *merges; /* merges: one for each fragment, its status is set in the end; owned */
    json_object *waits;                 /* those of merges that wait for their link, in the order of links; owned */
    size_t n_fragments;
};

/* "dream-ml-patterns" is "Ml Patterns". Words begin after blanks. */
static char *title_of(const char *name)
{
    char *title;
    bool begins = true;

    if (strncmp(name, "dream-", 6) == 0)
        name += 6;
    title = strdup(name);
    for (char *c = title; c && *c; c++) {
        if (*c == '-')
            *c = ' ';
        if (begins && *c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
        else if (!begins && *c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
        begins = *c == ' ';
    }
    return title;
}

static double weight_of(json_object *fragment)
{
    json_object *value = member(fragment, "weight");
    double weight = json_object_get_double(value);

    if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
        return 0.5;
    return weight >= 1 ? 1 : weight > 0 ? weight : 0; /* not a number: 0 */
}

static json_object *edge(struct tool *t, const char *target, const char *relation, json_object *fragment)
{
    json_object *edge = json_object_new_object();
    const char *reason = text_in(fragment, "reason");

    add(t, edge, "target", text(target));
    add(t, edge, "relation", text(relation));
    add(t, edge, "weight", json_object_new_double(weight_of(fragment)));
    add(t, edge, "reason", text(reason ? reason : ""));
    return edge;
}

/* The first that the name means to this user: their own before shared ones. NULL: nothing. The caller's. */
static json_object *look_up(struct tool *t, const char *name)
{
    json_object *args = json_object_new_object(), *said, *hit;

    add(t, args, "name", text(name));
    said = ask_take(t, "entities.lookup", args);
    hit = json_object_get(item(member(said, "hits"), 0));
    json_object_put(said);
    return hit;
}

static void plan_link(struct tool *t, struct saving *s, json_object *hit, json_object *back)
{
    json_object *link = json_object_new_object(), *edges = json_object_new_array();

    push(t, edges, back);
    add(t, link, "kind", json_object_get(member(hit, "kind")));
    add(t, link, "id", json_object_get(member(hit, "id")));
    add(t, link, "edges", edges);
    push(t, s->links, link);
}

/* An edge to what the fragment names, and one back. Without such a thing neither: nothing leads nowhere. */
static void plan_fragment(struct tool *t, struct saving *s, const char *title, json_object *fragment,
                          json_object *edges)
{
    const char *target = text_in(fragment, "target"), *relation = text_in(fragment, "relation");
    json_object *hit, *merge;

    if (!target || !*target)
        return;
    if (strlen(target) != (size_t)json_object_get_string_len(member(fragment, "target"))) {
        tool_fail(t, BAD_ARGUMENTS, "a target has a character U+0000");
        return;
    }
    hit = look_up(t, target);
    merge = json_object_new_object();
    add(t, merge, "target", text(target));
    if (!hit) {
        add(t, merge, "status", text("not_found"));
    } else {
        push(t, edges, edge(t, text_in(hit, "key"), relation && *relation ? relation : "dream_affinity", fragment));
        plan_link(t, s, hit, edge(t, title, "dreamed_from", fragment));
        push(t, s->waits, json_object_get(merge));
    }
    push(t, s->merges, merge);
    json_object_put(hit);
}

static json_object *list_in(struct tool *t, size_t i, json_object *moment, const char *key, size_t most,
                            enum json_type of)
{
    json_object *list = member(moment, key);

    if (!list)
        return json_object_new_array();
    if (!json_object_is_type(list, json_type_array) || length(list) > most)
        return tool_fail(t, BAD_ARGUMENTS, "moments: item %zu: %s has to be a list of at most %zu", i + 1, key, most);
    for (size_t k = 0; k < length(list); k++)
        if (!json_object_is_type(item(list, k), of))
            return tool_fail(t, BAD_ARGUMENTS, "moments: item %zu: %s: item %zu has to be %s", i + 1, key, k + 1,
                             of == json_type_string ? "a string" : "an object");
    return json_object_get(list);
}

static void plan_moment(struct tool *t, struct saving *s, size_t i, json_object *moment)
{
    const char *name = text_in(moment, "name"), *summary = text_in(moment, "summary");
    json_object *fragments = list_in(t, i, moment, "affinity_fragments", MAX_FRAGMENTS, json_type_object);
    json_object *row = json_object_new_object(), *edges = json_object_new_array(), *metadata = json_object_new_object();
    char *title = title_of(name && *name ? name : "unnamed");

    s->n_fragments += length(fragments);
    if (s->n_fragments > MAX_FRAGMENTS)
        tool_fail(t, BAD_ARGUMENTS, "the moments have more than %d affinity_fragments", MAX_FRAGMENTS);
    t->no_memory = t->no_memory || !title;
    add(t, metadata, "source", text("dreaming"));
    add(t, row, "name", title ? text(title) : NULL);
    add(t, row, "moment_type", text("dream"));
    add(t, row, "summary", text(summary ? summary : ""));
    add(t, row, "topic_tags", list_in(t, i, moment, "topic_tags", MAX_TAGS, json_type_string));
    add(t, row, "emotion_tags", list_in(t, i, moment, "emotion_tags", MAX_TAGS, json_type_string));
    if (session_of(t))
        add(t, row, "source_session_id", text(session_of(t)));
    for (size_t k = 0; title && !t->code && k < length(fragments); k++)
        plan_fragment(t, s, title, item(fragments, k), edges);
    add(t, row, "graph_edges", edges);
    add(t, row, "metadata", metadata);
    push(t, s->rows, row);
    json_object_put(fragments);
    free(title);
}

static void tell_links(struct tool *t, struct saving *s, json_object *said)
{
    json_object *links = member(said, "links");

    for (size_t i = 0; i < length(s->waits); i++) {
        json_object *merge = item(s->waits, i), *link = item(links, i);
        json_object *error = member(link, "error");
        add(t, merge, "status", text(error ? "error" : "merged"));
        add(t, merge, error ? "error" : "edge_count", json_object_get(error ? error : member(link, "n_edges")));
    }
}

static json_object *write_saving(struct tool *t, struct saving *s)
{
    json_object *args = json_object_new_object(), *said, *result = NULL;
    size_t n = length(s->rows);

    add(t, args, "kind", text("moments"));
    add(t, args, "rows", json_object_get(s->rows));
    add(t, args, "links", json_object_get(s->links));
    said = ask_take(t, "entities.put", args);
    if (said) {
        tell_links(t, s, said);
        result = success(t, "success");
        add(t, result, "saved_moment_ids", json_object_get(member(said, "ids")));
        add(t, result, "moments_count", json_object_new_int64((int64_t)n));
        add(t, result, "merge_results", json_object_get(s->merges));
    }
    json_object_put(said);
    return result;
}

static json_object *save(struct tool *t, const void *self)
{
    json_object *moments = arg_list(t, "moments", true, MAX_MOMENTS, json_type_object), *result = NULL;
    const char *user = arg_text(t, "user_id", false);
    struct saving s;

    (void)self;
    if (user && (!user_of(t) || strcmp(user, user_of(t)) != 0))
        return tool_fail(t, DENIED, "user_id is not the user of this conversation: leave it out");
    if (t->code)
        return NULL;
    s = (struct saving){json_object_new_array(), json_object_new_array(), json_object_new_array(),
                        json_object_new_array(), 0};
    for (size_t i = 0; !t->code && i < length(moments); i++)
        plan_moment(t, &s, i, item(moments, i));
    if (!t->code && !t->no_memory)
        result = write_saving(t, &s);
    json_object_put(s.rows);
    json_object_put(s.links);
    json_object_put(s.merges);
    json_object_put(s.waits);
    return result;
}

int save_moments(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, save);
}

/* --- get_moments --- */

static json_object *columns_of(struct tool *t)
{
    static const char *const columns[] = {"id",         "name",         "moment_type",       "summary",   "category",
                                          "topic_tags", "emotion_tags", "source_session_id", "created_at"};
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        push(t, list, text(columns[i]));
    return list;
}

static json_object *filter_of(struct tool *t, int64_t limit, int64_t offset)
{
    const char *type = arg_text(t, "moment_type", false), *category = arg_text(t, "category", false);
    const char *after = arg_text(t, "after_date", false), *before = arg_text(t, "before_date", false);
    json_object *tags = arg_list(t, "topic_tags", false, MAX_TAGS, json_type_string);
    json_object *args = json_object_new_object(), *where = json_object_new_object();

    add(t, args, "kind", text("moments"));
    if (type)
        add(t, where, "moment_type", text(type));
    if (category)
        add(t, where, "category", text(category));
    add(t, args, "where", where);
    if (tags) {
        json_object *contains = json_object_new_object();
        add(t, contains, "topic_tags", json_object_get(tags));
        add(t, args, "contains", contains);
    }
    if (after)
        add(t, args, "since", text(after));
    if (before)
        add(t, args, "until", text(before));
    add(t, args, "columns", columns_of(t));
    add(t, args, "limit", json_object_new_int64(limit + 1)); /* is there more? */
    add(t, args, "offset", json_object_new_int64(offset));
    return args;
}

static json_object *get(struct tool *t, const void *self)
{
    int64_t limit = arg_int(t, "limit", 20), offset = arg_int(t, "offset", 0);
    json_object *said, *rows, *result;
    size_t n;

    (void)self;
    limit = limit < 1 ? 1 : limit > MOST_SHOWN ? MOST_SHOWN : limit;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for moments");
    if (offset < 0 || offset > INT32_MAX)
        return tool_fail(t, BAD_ARGUMENTS, "offset has to be 0 or more");
    said = ask_take(t, "entities.find", filter_of(t, limit, offset));
    if (!said)
        return NULL;
    rows = member(said, "rows");
    n = length(rows);
    if (n > (size_t)limit)
        json_object_array_del_idx(rows, (size_t)limit, n - (size_t)limit);
    result = success(t, "success");
    add(t, result, "results", json_object_get(rows));
    add(t, result, "count", json_object_new_int64((int64_t)length(rows)));
    add(t, result, "limit", json_object_new_int64(limit));
    add(t, result, "offset", json_object_new_int64(offset));
    add(t, result, "has_more",
        json_object_new_boolean(n > (size_t)limit || json_object_get_boolean(member(said, "truncated"))));
    json_object_put(said);
    return result;
}

int get_moments(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, get);
}

/* --- gather_activity --- */

static json_object *gather(struct tool *t, const void *self)
{
    int64_t days = arg_int(t, "days", 1), tokens = arg_int(t, "max_tokens", 38400);
    json_object *args, *said, *result;

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for dreaming");
    if (t->code)
        return NULL;
    args = json_object_new_object();
    add(t, args, "days", json_object_new_int64(days));
    add(t, args, "max_tokens", json_object_new_int64(tokens));
    said = ask_take(t, "dreaming.gather", args);
    if (!said)
        return NULL;
    result = success(t, "ok");
    json_object_object_foreach (said, key, value)
        add(t, result, key, json_object_get(value));
    json_object_put(said);
    return result;
}

int gather_activity(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, gather);
}
