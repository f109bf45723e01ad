/* Handlers of schemas, p8's rows that declare agents, models, tools and tables; agents found by words, and what they
 * were. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/store/store.h"

#define AGENT       "agent"
#define MAX_TEXT    ((size_t)4 << 20) /* bytes of one document as JSON: RV_AGENTDOC_MAX_BYTES with its escapes */
#define LEAST_ALIKE 0.3               /* cosine below which texts have nothing in common */

/* --- writing --- */

static const char *word(json_object *o, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(o, key, &text) && text[0] ? text : NULL;
}

/* An agent is checked as any other document of one: its flat document, with what the columns say. */
static int put_agent(struct srv_call *c, rv_err **err)
{
    static const char *const columns[] = {"name", "version"};
    json_object *doc = NULL, *given = rv_json_get_obj(c->body, "json_schema");
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    int rc = given ? rv_json_dup(given, &doc, err) : 0;

    if (rc == 0 && !doc && !(doc = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "keep an agent");
    for (size_t i = 0; i < RV_COUNT(columns) && rc == 0; i++)
        if (word(c->body, columns[i]))
            rc = rv_json_set_text(doc, columns[i], word(c->body, columns[i]), err);
    if (rc == 0)
        rc = rv_json_set_text(doc, "kind", AGENT, err);
    if (rc == 0 && word(c->body, "content")) /* the prompt */
        rc = rv_json_set_text(doc, "description", word(c->body, "content"), err);
    if (rc == 0) {
        rv_json_write(doc, &text);
        rc = rv_buf_check(&text, "the document", err);
    }
    if (rc == 0)
        rc =
            rv_agents_put(c->handles->sources.agents, &c->app.scope,
                          &(const struct rv_agent_text){
                              .user_own = c->who.level == RV_LEVEL_USER, .text = rv_buf_str(&text), .file = "the body"},
                          NULL, err);
    json_object_put(doc);
    rv_buf_fini(&text);
    return rc;
}

/* Columns without a value leave what is there. */
static int put_other(struct srv_call *c, const char *kind, const char *name, rv_err **err)
{
    const char *user = c->who.level == RV_LEVEL_USER ? c->who.user : "";
    const struct rv_store_scope own = {c->app.scope.tenant, user};
    json_object *given = rv_json_get_obj(c->body, "json_schema");
    rv_buf document = RV_BUF_INIT(MAX_TEXT), schema = RV_BUF_INIT(MAX_TEXT);
    struct rv_schema_row old = {.id = NULL};
    rv_err *why = NULL;
    int rc = rv_store_find_schema(c->store, &own, kind, name, &old, &why);

    if (rc == RV_E_NOT_FOUND)
        rc = 0;
    else if (rc < 0)
        rv_err_pass(err, why);
    if (rc == 0)
        rv_err_free(why);
    rv_json_write(c->body, &document);
    if (given)
        rv_json_write(given, &schema);
    if (rc == 0)
        rc = rv_buf_check(&document, "the body", err);
    if (rc == 0)
        rc = rv_buf_check(&schema, "json_schema", err);
    const struct rv_schema_row row = {
        .tenant = c->app.scope.tenant,
        .user = user,
        .name = name,
        .kind = kind,
        .version = word(c->body, "version") ? word(c->body, "version") : old.version,
        .description = word(c->body, "description") ? word(c->body, "description") : old.description,
        .content = word(c->body, "content") ? rv_str_of(word(c->body, "content")) : old.content,
        .json_schema = given ? rv_buf_str(&schema) : old.json_schema,
        .document = rv_buf_str(&document),
        .source = "person"};
    if (rc == 0)
        rc = rv_store_put_schema(c->store, &row, RV_SCHEMA_PUT, srv_now_us(), NULL, err);
    rv_schema_row_fini(&old);
    rv_buf_fini(&document);
    rv_buf_fini(&schema);
    return rc;
}

int srv_schema_post(struct srv_call *c, rv_err **err)
{
    const char *name = word(c->body, "name"), *kind = word(c->body, "kind") ? word(c->body, "kind") : "model";
    struct rv_schema_row row;
    json_object *out = NULL;

    if (!name)
        return RV_FAIL(err, RV_E_INVALID, "the body needs \"name\"");
    int rc = strcmp(kind, AGENT) == 0 ? put_agent(c, err) : put_other(c, kind, name, err);
    if (rc == 0)
        rc = rv_store_find_schema(c->store, &c->app.scope, kind, name, &row, err);
    if (rc < 0)
        return rc;
    rc = rv_store_get_entity(c->store, &c->app.scope, "schemas", row.id, &out, err);
    rv_schema_row_fini(&row);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 201);
    rv_jw_value(&w, out);
    json_object_put(out);
    return 0;
}

/* What is not there, in the words of p8. */
static int say_missing(int rc, rv_err **err)
{
    if (rc != RV_E_NOT_FOUND)
        return rc;
    rv_err_free(rv_err_steal(err));
    return RV_FAIL(err, rc, "Schema not found");
}

int srv_schema_show(struct srv_call *c, rv_err **err)
{
    return say_missing(srv_row_show(c, err), err);
}

int srv_schema_delete(struct srv_call *c, rv_err **err)
{
    json_object *row = NULL;
    int rc = rv_store_get_entity(c->store, &c->app.scope, "schemas", c->args[0], &row, err);

    if (rc < 0)
        return say_missing(rc, err);
    const char *name = rv_json_text_or(row, "name", "");
    const char *kind = rv_json_text_or(row, "kind", "");
    rc = strcmp(kind, AGENT) == 0 ? rv_agents_delete(c->handles->sources.agents, &c->app.scope, name, err)
                                  : rv_store_delete_schema(c->store, &c->app.scope, kind, name, srv_now_us(), err);
    json_object_put(row);
    if (rc < 0)
        return rc;
    rv_agents_forget(c->handles->sources.agents);
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}

/* --- agents found by words --- */

struct finding {
    struct srv_call *c;
    const char *query;
    bool by_name, by_tags, by_words;
    json_object *alike; /* rows of schemas by meaning; NULL: not asked for; owned */
    int64_t limit, n;
    rv_jw w;
};

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; text && strlen(text) >= n; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

static bool has_tag(const struct rv_agentdoc *doc, const char *part)
{
    for (size_t i = 0; i < doc->tags.n; i++)
        if (contains(doc->tags.items[i], part))
            return true;
    return false;
}

static json_object *likeness(const struct finding *f, const char *name)
{
    for (size_t i = 0; f->alike && i < json_object_array_length(f->alike); i++) {
        json_object *hit = json_object_array_get_idx(f->alike, i), *row = rv_json_get_obj(hit, "data"), *score = NULL;
        const char *found = NULL, *kind = NULL;
        if (row && rv_json_get_text(row, "name", &found) && strcmp(found, name) == 0 &&
            rv_json_get_text(row, "kind", &kind) && strcmp(kind, AGENT) == 0 &&
            json_object_object_get_ex(hit, "similarity_score", &score))
            return score;
    }
    return NULL;
}

static int take_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                      rv_err **err)
{
    struct finding *f = self;
    json_object *score = likeness(f, name);

    (void)err;
    (void)fault;
    if (!found->doc || f->n >= f->limit)
        return 0;
    if (!score && !(f->by_name && contains(name, f->query)) && !(f->by_tags && has_tag(found->doc, f->query)) &&
        !(f->by_words && contains(found->doc->description, f->query)))
        return 0;
    f->n++;
    rv_jw_obj(&f->w);
    rv_jw_kv_text(&f->w, "name", name);
    rv_jw_kv_text(&f->w, "version", found->doc->version);
    rv_jw_kv_text(&f->w, "source", found->source);
    rv_jw_kv_str(&f->w, "description", rv_utf8_first(rv_str_of(found->doc->description), 200));
    rv_jw_key(&f->w, "tags");
    rv_jw_arr(&f->w);
    for (size_t i = 0; i < found->doc->tags.n; i++)
        rv_jw_text(&f->w, found->doc->tags.items[i]);
    rv_jw_arr_end(&f->w);
    rv_jw_kv_value(&f->w, "similarity", score);
    rv_jw_obj_end(&f->w);
    return 0;
}

static int read_finding(struct finding *f, rv_err **err)
{
    const char *type = word(f->c->body, "search_type");

    f->query = word(f->c->body, "query");
    if (!f->query)
        return RV_FAIL(err, RV_E_INVALID, "the body needs \"query\"");
    bool all = !type || strcmp(type, "all") == 0, semantic = all || strcmp(type, "semantic") == 0;
    f->by_name = all || strcmp(type, "name") == 0;
    f->by_tags = all || strcmp(type, "tags") == 0;
    f->by_words = semantic; /* files are not rows, and are found by their words */
    if (!f->by_name && !f->by_tags && !semantic)
        return RV_FAIL(err, RV_E_INVALID, "search_type is \"semantic\", \"name\", \"tags\" or \"all\", not \"%.40s\"",
                       type);
    if (json_object_object_get_ex(f->c->body, "limit", NULL) &&
        (!rv_json_get_int(f->c->body, "limit", &f->limit) || f->limit < 1 || f->limit > 100))
        return RV_FAIL(err, RV_E_INVALID, "limit must be a whole number from 1 to 100");
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(&f->c->app);
    const struct rv_knowledge_search search = {.text = rv_str_of(f->query),
                                               .table = RV_STR_LIT("schemas"),
                                               .min_similarity = LEAST_ALIKE,
                                               .limit = 100,
                                               .embedder = &embedder};
    return semantic ? rv_knowledge_search(f->c->store, &f->c->app.scope, &search, &f->alike, NULL, err) : 0;
}

int srv_agents_search(struct srv_call *c, rv_err **err)
{
    struct finding f = {.c = c, .limit = 20};
    int rc = read_finding(&f, err);

    if (rc < 0)
        return rc;
    f.w = srv_call_json(c, 200);
    rv_jw_obj(&f.w);
    rv_jw_key(&f.w, "results");
    rv_jw_arr(&f.w);
    rc = rv_agents_list(c->handles->sources.agents, &c->app.scope, take_agent, &f, err);
    rv_jw_arr_end(&f.w);
    rv_jw_kv_int(&f.w, "total", f.n);
    rv_jw_obj_end(&f.w);
    json_object_put(f.alike);
    return rc;
}

/* --- what an agent was --- */

struct version {
    struct srv_call *c;
    int64_t wanted, n;
};

static int take_version(void *self, const struct rv_schema_version *v, rv_err **err)
{
    struct version *t = self;

    (void)err;
    if (++t->n != t->wanted)
        return 0;
    t->c->status = 200;
    t->c->type = "application/json";
    rv_buf_add_str(&t->c->out, v->json_schema.len > 0 ? v->json_schema : RV_STR_LIT("{}"));
    return RV_STORE_ENOUGH;
}

int srv_agent_version(struct srv_call *c, rv_err **err)
{
    struct version t = {.c = c, .wanted = strtoll(c->args[1], NULL, 10)};
    int rc = rv_store_list_schema_versions(c->store, &c->app.scope,
                                           &(const struct rv_schema_key){.kind = AGENT, .name = c->args[0]},
                                           take_version, &t, err);

    if (rc >= 0 && (t.wanted < 1 || t.n < t.wanted))
        return RV_FAIL(err, RV_E_NOT_FOUND, "the agent has %lld %s, numbered from 1, oldest first", (long long)t.n,
                       t.n == 1 ? "version" : "versions");
    return rc < 0 ? rc : 0;
}
