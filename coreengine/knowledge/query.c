/* One query: its text is read, the mode answers, the answer is one object. */
#include "coreengine/knowledge/knowledge.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/knowledge/knowledge_internal.h"

/* What a search found, within the limit of bytes. found and warnings are taken. */
static int take_found(struct asking *a, json_object *found, json_object *warnings, rv_err **err)
{
    bool is_full = false;
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(found) && rc == 0 && !is_full; i++)
        rc = knowledge_asking_add_take(a, json_object_get(json_object_array_get_idx(found, i)), &is_full, err);
    for (size_t i = 0; warnings && i < json_object_array_length(warnings) && rc == 0; i++)
        rc = knowledge_asking_warn(a, rv_json_str(json_object_array_get_idx(warnings, i)), err);
    json_object_put(found);
    json_object_put(warnings);
    return rc;
}

static int fuzzy(struct asking *a, double threshold, rv_err **err)
{
    const struct rv_knowledge_fuzzy query = {.text = a->q->text, .threshold = threshold, .limit = (size_t)a->q->limit};
    json_object *found = NULL;
    int rc = rv_knowledge_search_fuzzy(a->store, a->scope, &query, &found, err);

    return rc < 0 ? rc : take_found(a, found, NULL, err);
}

static enum rv_knowledge_rank rank_of(const struct asking *a)
{
    const enum rv_knowledge_rank said[] = {[RV_REM_RANK_UNSAID] = a->opts->rank,
                                           [RV_REM_RANK_COSINE] = RV_RANK_COSINE,
                                           [RV_REM_RANK_WORDS] = RV_RANK_LEXICAL,
                                           [RV_REM_RANK_HYBRID] = RV_RANK_HYBRID};
    RV_EACH_HAS_ROW(said, RV_REM_N_RANKS);

    return said[a->q->rank];
}

/* A text without a mode that no row is about may be a name. */
static int search(struct asking *a, rv_err **err)
{
    const struct rv_knowledge_search query = {.text = a->q->text,
                                              .table = a->q->table,
                                              .category = a->q->category,
                                              .min_similarity = a->q->min_similarity,
                                              .limit = (size_t)a->q->limit,
                                              .rank = rank_of(a),
                                              .embedder = a->opts->embedder};
    json_object *found = NULL, *warnings = NULL;
    int rc = a->q->matches_nothing ? 0 : rv_knowledge_search(a->store, a->scope, &query, &found, &warnings, err);

    if (rc == 0 && found)
        rc = take_found(a, found, warnings, err);
    if (rc == 0 && a->q->is_natural && json_object_array_length(a->results) == 0)
        rc = fuzzy(a, RV_REM_SIMILARITY, err);
    return rc;
}

static int answer(struct asking *a, rv_err **err)
{
    switch (a->q->mode) {
    case RV_REM_LOOKUP:
        return knowledge_asking_look_up(a, err);
    case RV_REM_TRAVERSE:
        return knowledge_asking_traverse(a, err);
    case RV_REM_SQL:
        return knowledge_asking_sql(a, err);
    case RV_REM_SEARCH:
        return search(a, err);
    case RV_REM_FUZZY:
        return fuzzy(a, a->q->threshold, err);
    case RV_REM_N_MODES:
        break;
    }
    return RV_FAIL(err, RV_E_INTERNAL, "a query without a mode");
}

static int parse(rv_str text, const struct rv_knowledge_opts *opts, struct rv_rem_query *q,
                 struct rv_knowledge_fault *fault, rv_err **err)
{
    struct rv_rem_opts how = {.natural = opts->natural};
    struct rv_rem_fault why = {0};

    how.tables = rv_rem_tables(&how.n_tables);
    int rc = rv_rem_parse(text, &how, q, &why, err);
    if (rc < 0 && why.code != RV_REM_OK)
        *fault = (struct rv_knowledge_fault){rv_rem_fault_text(why.code), why.line, why.col};
    return rc;
}

/* "REM LOOKUP ...", as shortened messages write it: without the first word, which becomes blanks, so that places stay
 * true. */
static char *without_rem(rv_str text)
{
    char *own = rv_str_dup(text);
    size_t i = 0;

    while (own && i < text.len && strchr(" \t\r\n", own[i]) && own[i])
        i++;
    if (own && text.len > i + 3 && strncasecmp(own + i, "rem", 3) == 0 && own[i + 3] && strchr(" \t\r\n", own[i + 3]))
        memset(own + i, ' ', 3);
    return own;
}

static int build(const struct asking *a, json_object **out, rv_err **err)
{
    json_object *o = json_object_new_object();
    int rc =
        o ? rv_json_set_text(o, "mode", rv_rem_mode_text(a->q->mode), err) : RV_FAIL(err, RV_E_NOMEM, "answer a query");

    if (rc == 0)
        rc = rv_json_set_ref(o, "results", a->results, err);
    if (rc == 0)
        rc = rv_json_set_ref(o, "warnings", a->warnings, err);
    if (rc == 0)
        rc = rv_json_set_bool(o, "truncated", a->is_truncated, err);
    if (rc == 0)
        *out = o;
    else
        json_object_put(o);
    return rc;
}

static int ask(struct asking *a, json_object **out, rv_err **err)
{
    int rc = a->results && a->warnings ? 0 : RV_FAIL(err, RV_E_NOMEM, "answer a query");

    for (size_t i = 0; i < a->q->n_warnings && rc == 0; i++)
        rc = knowledge_asking_warn(a, a->q->warnings[i], err);
    if (rc == 0)
        rc = answer(a, err);
    return rc < 0 ? rc : build(a, out, err);
}

int rv_knowledge_query(rv_store *store, const struct rv_store_scope *scope, const struct rv_knowledge_query *query,
                       json_object **out, struct rv_knowledge_fault *fault, rv_err **err)
{
    static const struct rv_knowledge_opts none = {0};
    struct rv_knowledge_fault ignored;
    struct rv_rem_query q = {0};
    struct asking a = {.store = store, .scope = scope, .q = &q, .opts = query->opts ? query->opts : &none};

    a.fault = fault ? fault : &ignored;
    *a.fault = (struct rv_knowledge_fault){NULL, 0, 0};
    char *own = without_rem(query->text);
    int rc = own ? parse((rv_str){own, query->text.len}, a.opts, &q, a.fault, err)
                 : RV_FAIL(err, RV_E_NOMEM, "read a query");
    free(own);
    if (rc < 0)
        return rc;
    a.results = json_object_new_array();
    a.warnings = json_object_new_array();
    rc = ask(&a, out, err);
    json_object_put(a.results);
    json_object_put(a.warnings);
    rv_rem_query_fini(&q);
    return rc;
}
