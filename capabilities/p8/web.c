/* web_search: asks a search engine, shows cards, keeps what was found as resources and one moment that names them. */
#include "capabilities/p8/p8_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME        200   /* characters of a card's name: it is one line of a list */
#define MAX_DESCRIPTION 500   /* characters of a result: a model is shown it with all others; the rest is cut */
#define TIMEOUT_MS      30000 /* of one search: a person waits for it; then the call fails */

/* What searches. A new one is a row of the table below. */
struct web {
    const char *name;
    /** Hits, the caller's: {title, url, content, score, published_date, image}; NULL: the tool has failed. */
    json_object *(*search)(struct tool *t, const struct p8 *p, const char *query, int64_t most, const char *depth);
};

/* --- Tavily --- */

static json_object *request_of(struct tool *t, const struct p8 *p, const char *query, int64_t most, const char *depth)
{
    json_object *args = json_object_new_object(), *headers = json_object_new_object(), *body = json_object_new_object();
    size_t size = strlen(p->web_key) + sizeof "Bearer ";
    char *bearer = malloc(size), *sent, url[MAX_URL + 16];

    add(t, body, "query", text(query));
    add(t, body, "max_results", json_object_new_int64(most));
    add(t, body, "search_depth", text(depth));
    add(t, body, "include_images", json_object_new_boolean(1));
    add(t, body, "include_image_descriptions", json_object_new_boolean(0));
    sent = text_take(body, t->no_memory);
    t->no_memory = t->no_memory || !bearer || !sent;
    if (bearer)
        snprintf(bearer, size, "Bearer %s", p->web_key);
    snprintf(url, sizeof url, "%s/search", p->web_url);
    add(t, headers, "authorization", bearer ? text(bearer) : NULL);
    add(t, headers, "content-type", text("application/json"));
    add(t, args, "url", text(url));
    add(t, args, "method", text("POST"));
    add(t, args, "headers", headers);
    add(t, args, "body", sent ? text(sent) : NULL);
    add(t, args, "timeout_ms", json_object_new_int64(TIMEOUT_MS));
    free(bearer);
    free(sent);
    return args;
}

static json_object *refuse(struct tool *t, int status, const char *pause)
{
    if (status == 401 || status == 403)
        return tool_fail(t, PROVIDER, "Search failed: the search engine does not accept the key (status %d)", status);
    if (status == 429 && pause && strspn(pause, "0123456789") == strlen(pause) && strlen(pause) < 10)
        return tool_fail(t, PROVIDER, "Search failed: too many searches (status 429): try again in %s s", pause);
    return tool_fail(t, PROVIDER, "Search failed: the search engine answers with status %d", status);
}

static json_object *hits_of(struct tool *t, json_object *said)
{
    const char *body = text_in(said, "body");
    int status = json_object_get_int(member(said, "status"));
    json_object *found, *results;

    if (status != 200)
        return refuse(t, status, text_in(member(said, "headers"), "retry-after"));
    found = body ? json_of(body) : NULL;
    results = json_object_get(member(found, "results"));
    json_object_put(found);
    if (json_object_is_type(results, json_type_array))
        return results;
    json_object_put(results);
    return tool_fail(t, PROVIDER, "Search failed: the answer has no list \"results\"");
}

static json_object *tavily(struct tool *t, const struct p8 *p, const char *query, int64_t most, const char *depth)
{
    json_object *said, *hits;
    const char *code;

    if (!p->web_key)
        return tool_fail(t, PROVIDER, "P8_TAVILY_API_KEY is not configured");
    said = ask_take(t, "http.request", request_of(t, p, query, most, depth));
    code = t->code;
    if (code) {
        char why[1024];
        snprintf(why, sizeof why, "%.1000s", t->error);
        t->code = NULL;
        return tool_fail(t, strcmp(code, TIMEOUT) == 0 ? TIMEOUT : PROVIDER, "Search failed: %s", why);
    }
    hits = hits_of(t, said);
    json_object_put(said);
    return hits;
}

static const struct web webs[] = {{"tavily", tavily}};

/* --- cards --- */

/* The first n characters. */
static json_object *cut(const char *s, size_t n)
{
    size_t len = 0;

    for (; s[len]; len++)
        if (((unsigned char)s[len] & 0xc0) != 0x80 && n-- == 0)
            break;
    return json_object_new_string_len(s, (int)len);
}

static json_object *tags_of(struct tool *t, const char *url)
{
    json_object *tags = json_object_new_array();
    const char *host = strstr(url, "://");
    char name[201];
    size_t n;

    push(t, tags, text("web-search"));
    host = host ? host + 3 : url;
    n = strcspn(host, "/?#:");
    if (n > 0 && n < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)n, host);
        push(t, tags, text(name));
    }
    return tags;
}

static json_object *card_of(struct tool *t, json_object *hit, const char *url)
{
    const char *title = text_in(hit, "title"), *content = text_in(hit, "content"), *image = text_in(hit, "image");
    json_object *card = json_object_new_object();

    add(t, card, "name", cut(title && *title ? title : url, MAX_NAME));
    add(t, card, "description", cut(content ? content : "", MAX_DESCRIPTION));
    add(t, card, "url", text(url));
    add(t, card, "image", image ? text(image) : NULL);
    add(t, card, "tags", tags_of(t, url));
    return card;
}

static json_object *resource_of(struct tool *t, const char *query, json_object *hit, json_object *card)
{
    json_object *row = json_object_new_object(), *metadata = json_object_new_object();
    const char *content = text_in(hit, "content");

    add(t, row, "name", json_object_get(member(card, "name")));
    add(t, row, "uri", json_object_get(member(card, "url")));
    add(t, row, "content", text(content ? content : ""));
    add(t, row, "category", text("web_search"));
    add(t, row, "tags", json_object_get(member(card, "tags")));
    add(t, metadata, "query", text(query));
    add(t, metadata, "score", json_object_get(member(hit, "score")));
    add(t, metadata, "image_url", json_object_get(member(card, "image")));
    add(t, metadata, "published_date", json_object_get(member(hit, "published_date")));
    add(t, row, "metadata", metadata);
    return row;
}

static json_object *moment_of(struct tool *t, const char *query, const char *depth, json_object *cards)
{
    json_object *row = json_object_new_object(), *metadata = json_object_new_object();
    json_object *tags = json_object_new_array(), *keys = json_object_new_array(), *head = cut(query, 40);
    size_t size = strlen(query) + 100;
    char *summary = malloc(size), name[200];

    snprintf(name, sizeof name, "web-search-%s", head ? json_object_get_string(head) : "");
    if (summary)
        snprintf(summary, size, "Searched for '%s' — found %zu results", query, length(cards));
    t->no_memory = t->no_memory || !summary || !head;
    push(t, tags, text("web-search"));
    for (size_t i = 0; i < length(cards); i++)
        push(t, keys, json_object_get(member(item(cards, i), "name")));
    add(t, row, "name", text(name));
    add(t, row, "moment_type", text("web_search"));
    add(t, row, "summary", summary ? text(summary) : NULL);
    add(t, row, "topic_tags", tags);
    add(t, metadata, "query", text(query));
    add(t, metadata, "result_count", json_object_new_int64((int64_t)length(cards)));
    add(t, metadata, "resource_keys", keys);
    add(t, metadata, "search_depth", text(depth));
    add(t, row, "metadata", metadata);
    if (session_of(t))
        add(t, row, "source_session_id", text(session_of(t)));
    json_object_put(head);
    free(summary);
    return row;
}

/* --- the tool --- */

struct found {
    json_object *cards, *rows; /* rows: one for each card; owned */
    json_object *moment;       /* id; NULL: there is none; owned */
    bool is_saved;
};

static void read_hits(struct tool *t, const char *query, json_object *hits, int64_t most, struct found *f)
{
    for (size_t i = 0; i < length(hits) && (int64_t)length(f->cards) < most; i++) {
        const char *url = text_in(item(hits, i), "url");
        json_object *card;
        if (!url || !*url)
            continue;
        card = card_of(t, item(hits, i), url);
        push(t, f->rows, resource_of(t, query, item(hits, i), card));
        push(t, f->cards, card);
    }
}

/* What cannot be kept is shown all the same. */
static void keep(struct tool *t, const char *query, const char *depth, struct found *f)
{
    json_object *args = json_object_new_object(), *said;

    add(t, args, "kind", text("resources"));
    add(t, args, "rows", json_object_get(f->rows));
    said = ask_take(t, "entities.put", args);
    for (size_t i = 0; said && i < length(f->cards); i++)
        add(t, item(f->cards, i), "resource_id", json_object_get(item(member(said, "ids"), i)));
    f->is_saved = said != NULL;
    json_object_put(said);
    if (f->is_saved && user_of(t))
        f->moment = put_take(t, "moments", moment_of(t, query, depth, f->cards));
    t->code = NULL;
}

/* The digits behind a mark, as "0" when there are none. */
static void digits_after(const char *in, const char *mark, char out[24])
{
    const char *at = strstr(in, mark);
    size_t n = at ? strspn(at + strlen(mark), "0123456789") : 0;

    snprintf(out, 24, "%.*s", n > 0 && n < 24 ? (int)n : 1, n > 0 && n < 24 ? at + strlen(mark) : "0");
}

static json_object *take_quota(struct tool *t)
{
    json_object *args = json_object_new_object(), *said;

    add(t, args, "kind", text("web_searches"));
    said = ask_take(t, "quotas.take", args);
    if (!said && t->code && strcmp(t->code, QUOTA) == 0) {
        char why[1024], used[24], most[24];
        snprintf(why, sizeof why, "%.1000s", t->error);
        digits_after(why, "; used: ", used);
        digits_after(why, " may use ", most);
        t->code = NULL;
        tool_fail(t, QUOTA, "Daily web search quota exceeded (%s/%s): %s", used, most, why);
    }
    return said;
}

static json_object *show(struct tool *t, const char *query, struct found *f)
{
    json_object *result = success(t, "ok");

    add(t, result, "query", text(query));
    add(t, result, "results", json_object_get(f->cards));
    add(t, result, "count", json_object_new_int64((int64_t)length(f->cards)));
    add(t, result, "moment_id", f->moment ? json_object_get(f->moment) : NULL);
    add(t, result, "saved", json_object_new_boolean(f->is_saved));
    return result;
}

static json_object *find(struct tool *t, const struct p8 *p, const char *query, int64_t most, const char *depth,
                         bool saves)
{
    struct found f = {json_object_new_array(), json_object_new_array(), NULL, false};
    json_object *taken = take_quota(t), *hits = taken ? webs[0].search(t, p, query, most, depth) : NULL;
    json_object *result = NULL;

    if (hits) {
        read_hits(t, query, hits, most, &f);
        if (saves && length(f.rows) > 0)
            keep(t, query, depth, &f);
        result = show(t, query, &f);
    }
    json_object_put(taken);
    json_object_put(hits);
    json_object_put(f.cards);
    json_object_put(f.rows);
    json_object_put(f.moment);
    return result;
}

static json_object *run(struct tool *t, const void *self)
{
    const char *query = arg_text(t, "query", true), *depth = arg_text(t, "search_depth", false);
    int64_t most = arg_int(t, "max_results", 5);
    json_object *save = member(t->args, "save");

    depth = depth ? depth : "basic";
    if (!t->code && (most < 1 || most > 20))
        tool_fail(t, BAD_ARGUMENTS, "max_results has to be from 1 to 20");
    if (!t->code && strcmp(depth, "basic") != 0 && strcmp(depth, "advanced") != 0)
        tool_fail(t, BAD_ARGUMENTS, "search_depth has to be basic or advanced");
    if (!t->code && save && !json_object_is_type(save, json_type_boolean))
        tool_fail(t, BAD_ARGUMENTS, "save has to be true or false");
    return t->code ? NULL : find(t, self, query, most, depth, !save || json_object_get_boolean(save));
}

int web_search(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, "query", run);
}
