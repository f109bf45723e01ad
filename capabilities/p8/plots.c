/* save_plot and remove_plot: drawings that belong to a session, and one moment a day that points to them. */
#include "capabilities/p8/p8_internal.h"

#include <ctype.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_TAGS  100 /* of one plot: a model fills the list; more is an error of the call */
#define MAX_PLOTS 200 /* of one day: a document that is read and written as a whole; more is an error of the call */

/* The moment of a day, and where its plots are. */
struct collection {
    char date[16], name[64];
    json_object *moment;  /* {row, version}; NULL: there is none yet; owned */
    json_object *session; /* the same of the one whose metadata has the plots; NULL: the moment's own has; owned */
    json_object *plots;   /* a list of its own */
};

static void name_it(const struct tool *t, struct collection *c)
{
    char user[9] = "";
    size_t n = 0;

    for (const char *at = user_of(t); *at && n < 8; at++)
        if (isalnum((unsigned char)*at))
            user[n++] = (char)tolower((unsigned char)*at);
    user[n] = '\0';
    snprintf(c->name, sizeof c->name, "plots-%s-%s", user, c->date);
}

static void today(char out[16])
{
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(out, 16, "%Y-%m-%d", &tm);
}

static json_object *find_moment(struct tool *t, const char *name)
{
    json_object *args = json_object_new_object(), *where = json_object_new_object(), *said, *found = NULL;
    json_object *columns = json_object_new_array();
    const char *id;

    add(t, where, "user_id", text(user_of(t)));
    push(t, columns, text("id"));
    add(t, args, "kind", text("moments"));
    add(t, args, "name", text(name));
    add(t, args, "where", where);
    add(t, args, "columns", columns);
    add(t, args, "limit", json_object_new_int64(1));
    said = ask_take(t, "entities.find", args);
    id = text_in(item(member(said, "rows"), 0), "id");
    if (id && !(found = versioned_row(t, "moments", id)))
        tool_forgive(t, NOT_FOUND); /* deleted just now */
    json_object_put(said);
    return found;
}

static json_object *copy_list(struct tool *t, json_object *list)
{
    json_object *copy = json_object_new_array();

    for (size_t i = 0; i < length(list); i++)
        push(t, copy, json_object_get(item(list, i)));
    return copy;
}

static json_object *metadata_of(json_object *read)
{
    return member(member(read, "row"), "metadata");
}

/* The plots are in the session that the moment names, else in the one of this call, else in the moment. */
static void open_plots(struct tool *t, struct collection *c)
{
    const char *in = text_in(metadata_of(c->moment), "plots_session");
    const char *session = c->moment ? in : session_of(t);

    c->session = session ? versioned_row(t, "sessions", session) : NULL;
    if (!c->session)
        tool_forgive(t, NOT_FOUND); /* not kept yet, or another's */
    c->plots = copy_list(t, member(metadata_of(c->session ? c->session : c->moment), "plots"));
}

static bool open_collection(struct tool *t, struct collection *c, const char *date)
{
    *c = (struct collection){.moment = NULL};
    snprintf(c->date, sizeof c->date, "%s", date);
    name_it(t, c);
    c->moment = find_moment(t, c->name);
    if (!t->code)
        open_plots(t, c);
    return !t->code;
}

static void close_collection(struct collection *c)
{
    json_object_put(c->moment);
    json_object_put(c->session);
    json_object_put(c->plots);
}

/* What is kept may have been written by others. */
static const char *title_of(json_object *plot)
{
    const char *title = text_in(plot, "title");

    return title ? title : "untitled";
}

static char *summary_of(struct tool *t, json_object *plots)
{
    size_t size = 64, len;
    char *s;

    for (size_t i = 0; i < length(plots); i++)
        size += strlen(title_of(item(plots, i))) + 2;
    s = malloc(size);
    if (!s) {
        t->no_memory = true;
        return NULL;
    }
    if (length(plots) == 0) {
        snprintf(s, size, "Empty research collection");
        return s;
    }
    len = (size_t)snprintf(s, size, "Research (%zu): ", length(plots));
    for (size_t i = 0; i < length(plots); i++)
        len += (size_t)snprintf(s + len, size - len, "%s%s", i ? ", " : "", title_of(item(plots, i)));
    return s;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_object_get_string(*(json_object *const *)a), json_object_get_string(*(json_object *const *)b));
}

/* The tags of all plots, sorted, each once. */
static json_object *tags_of(struct tool *t, json_object *plots)
{
    json_object *seen = json_object_new_object(), *tags = json_object_new_array();

    for (size_t i = 0; i < length(plots); i++)
        for (size_t k = 0; k < length(member(item(plots, i), "topic_tags")); k++) {
            json_object *tag = item(member(item(plots, i), "topic_tags"), k);
            if (json_object_is_type(tag, json_type_string))
                add(t, seen, json_object_get_string(tag), json_object_new_boolean(1));
        }
    json_object_object_foreach (seen, tag, value) {
        (void)value;
        push(t, tags, text(tag));
    }
    json_object_array_sort(tags, by_text);
    json_object_put(seen);
    return tags;
}

static json_object *moment_of(struct tool *t, const struct collection *c)
{
    json_object *row = json_object_new_object(), *metadata = json_object_new_object();
    json_object *session = member(member(c->session, "row"), "id");
    char *summary = summary_of(t, c->plots);

    if (c->moment)
        add(t, row, "id", json_object_get(member(member(c->moment, "row"), "id")));
    add(t, row, "name", text(c->name));
    add(t, row, "moment_type", text("plot_collection"));
    add(t, row, "category", text("research"));
    add(t, row, "summary", summary ? text(summary) : NULL);
    add(t, row, "topic_tags", tags_of(t, c->plots));
    add(t, metadata, "plot_count", json_object_new_int64((int64_t)length(c->plots)));
    add(t, metadata, "date", text(c->date));
    if (session) {
        add(t, metadata, "plots_session", json_object_get(session));
        add(t, row, "source_session_id", json_object_get(session));
    } else {
        add(t, metadata, "plots", json_object_get(c->plots));
    }
    add(t, row, "metadata", metadata);
    free(summary);
    return row;
}

/* What changes in the session. */
static json_object *merge_of(struct tool *t, const struct collection *c)
{
    json_object *merge = json_object_new_object(), *patch = json_object_new_object();

    add(t, patch, "plots", json_object_get(c->plots));
    add(t, patch, "plot_count", json_object_new_int64((int64_t)length(c->plots)));
    add(t, patch, "date", text(c->date));
    add(t, merge, "kind", text("sessions"));
    add(t, merge, "id", json_object_get(member(member(c->session, "row"), "id")));
    add(t, merge, "patch", patch);
    add(t, merge, "version", json_object_get(member(c->session, "version")));
    return merge;
}

/* Session and moment at once, if both are as they were read. Gives the id of the moment, the caller's. */
static json_object *write_collection(struct tool *t, const struct collection *c)
{
    json_object *args = json_object_new_object(), *rows = json_object_new_array(), *said, *id;
    json_object *versions = json_object_new_array(), *merges = json_object_new_array();

    push(t, rows, moment_of(t, c));
    push(t, versions, c->moment ? json_object_get(member(c->moment, "version")) : text(""));
    if (c->session)
        push(t, merges, merge_of(t, c));
    add(t, args, "kind", text("moments"));
    add(t, args, "rows", rows);
    add(t, args, "versions", versions);
    add(t, args, "merges", merges);
    said = ask_take(t, "entities.put", args);
    id = json_object_get(item(member(said, "ids"), 0));
    json_object_put(said);
    return id;
}

/* --- save_plot --- */

/* The same for each attempt of one call. */
static void id_of(const struct tool *t, const char *source, char out[16])
{
    uint32_t h = UINT32_C(2166136261);
    const char *parts[] = {t->call->idempotency_key ? t->call->idempotency_key : "", source};

    for (int i = 0; i < 2; i++)
        for (const char *c = parts[i]; *c; c++)
            h = (h ^ (unsigned char)*c) * UINT32_C(16777619);
    snprintf(out, 16, "%08x", (unsigned)h);
}

static json_object *plot_of(struct tool *t, const char *id, const char *type)
{
    json_object *plot = json_object_new_object(), *tags = member(t->args, "topic_tags");
    const char *description = arg_text(t, "description", false);
    time_t now = time(NULL);
    char created[40];
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%S.000000+00:00", &tm);
    add(t, plot, "plot_id", text(id));
    add(t, plot, "plot_type", text(type));
    add(t, plot, "title", json_object_get(member(t->args, "title")));
    add(t, plot, "source", json_object_get(member(t->args, "source")));
    add(t, plot, "description", description ? text(description) : NULL);
    add(t, plot, "topic_tags", tags ? json_object_get(tags) : json_object_new_array());
    add(t, plot, "created_at", text(created));
    return plot;
}

static size_t place_of(json_object *plots, const char *id)
{
    size_t at = 0;

    while (at < length(plots)) {
        const char *other = text_in(item(plots, at), "plot_id");
        if (other && strcmp(other, id) == 0)
            break;
        at++;
    }
    return at;
}

static json_object *save_in(struct tool *t, struct collection *c, const char *type)
{
    json_object *id, *result;
    char plot_id[16], link[96];
    size_t at;

    id_of(t, arg_text(t, "source", true), plot_id);
    at = place_of(c->plots, plot_id);
    if (at >= MAX_PLOTS)
        return tool_fail(t, QUOTA, "the collection of this day has %d plots, which is the most", MAX_PLOTS);
    if (at < length(c->plots)) /* an earlier attempt */
        t->no_memory = t->no_memory || json_object_array_put_idx(c->plots, at, plot_of(t, plot_id, type)) != 0;
    else
        push(t, c->plots, plot_of(t, plot_id, type));
    id = write_collection(t, c);
    snprintf(link, sizeof link, "moment://%s", c->name);
    result = success(t, "success");
    add(t, result, "plot_id", text(plot_id));
    add(t, result, "moment_id", id);
    add(t, result, "plot_count", json_object_new_int64((int64_t)length(c->plots)));
    add(t, result, "collection_name", text(c->name));
    add(t, result, "moment_link", text(link));
    return result;
}

struct change {
    const char *what; /* type of the plot to be saved, or id of the one to be removed; borrowed */
    char date[16];
};

static json_object *save_once(struct tool *t, const void *what)
{
    const struct change *change = what;
    json_object *result = NULL;
    struct collection c;

    if (open_collection(t, &c, change->date))
        result = save_in(t, &c, change->what);
    close_collection(&c);
    return result;
}

static json_object *save(struct tool *t, const void *self)
{
    const char *type = arg_text(t, "plot_type", false);
    struct change change;

    (void)self;
    type = type ? type : "mermaid";
    if (strcmp(type, "mermaid") != 0 && strcmp(type, "chartjs") != 0 && strcmp(type, "vega") != 0)
        return tool_fail(t, BAD_ARGUMENTS, "Invalid plot_type '%s'. Must be one of: chartjs, mermaid, vega", type);
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for saving plots");
    arg_list(t, "topic_tags", false, MAX_TAGS, json_type_string);
    if (!arg_text(t, "title", true) || !arg_text(t, "source", true) || t->code)
        return NULL;
    change.what = type;
    today(change.date);
    return tool_repeat(t, save_once, &change);
}

int save_plot(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, save);
}

/* --- remove_plot --- */

static json_object *remove_from(struct tool *t, struct collection *c, const char *id)
{
    size_t at = place_of(c->plots, id);
    json_object *title, *result;

    if (at == length(c->plots))
        return tool_fail(t, NOT_FOUND, "Plot '%s' not found in collection for %s", id, c->date);
    title = text(title_of(item(c->plots, at)));
    json_object_array_del_idx(c->plots, at, 1);
    json_object_put(write_collection(t, c));
    result = success(t, "success");
    add(t, result, "removed_title", title);
    add(t, result, "remaining_count", json_object_new_int64((int64_t)length(c->plots)));
    return result;
}

static bool is_date(const char *s)
{
    static const char form[] = "0000-00-00";

    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? s[i] < '0' || s[i] > '9' : s[i] != form[i])
            return false;
    int month = (s[5] - '0') * 10 + s[6] - '0', day = (s[8] - '0') * 10 + s[9] - '0';
    return !s[10] && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static json_object *remove_once(struct tool *t, const void *what)
{
    const struct change *change = what;
    json_object *result = NULL;
    struct collection c;

    if (open_collection(t, &c, change->date) && !c.moment)
        tool_fail(t, NOT_FOUND, "No plot collection found for %s", c.date);
    if (!t->code)
        result = remove_from(t, &c, change->what);
    close_collection(&c);
    return result;
}

static json_object *take_out(struct tool *t, const void *self)
{
    const char *id = arg_text(t, "plot_id", true), *date = arg_text(t, "collection_date", false);
    struct change change = {.what = id};

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for removing plots");
    if (t->code)
        return NULL;
    today(change.date);
    if (date && !is_date(date))
        return tool_fail(t, BAD_ARGUMENTS, "Invalid date format: %s", date);
    if (date)
        snprintf(change.date, sizeof change.date, "%s", date);
    return tool_repeat(t, remove_once, &change);
}

int remove_plot(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, take_out);
}
