/* One query: its text is read, the mode answers, the answer is one object. */
#include "coreengine/knowledge/knowledge.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/knowledge/knowledge_internal.h"

static const struct {
    const char *word;
    int code;
} faults[] = {
#define X(name, word, code, meaning) {word, code},
    RV_KNOWLEDGE_FAULTS(X)
#undef X
};

const char *rv_asking_fault_word(enum knowledge_fault fault)
{
    return faults[fault].word;
}

static int not_available(struct asking *a, rv_err **err)
{
    a->fault->word = rv_asking_fault_word(RV_KNOWLEDGE_NOT_AVAILABLE);
    RV_FAIL(err, faults[RV_KNOWLEDGE_NOT_AVAILABLE].code, "%s is not available yet", rv_rem_mode_word(a->q->mode));
    rv_err_hint(err, "LOOKUP KEY[, KEY...] finds rows by their names, TRAVERSE KEY follows their edges");
    return faults[RV_KNOWLEDGE_NOT_AVAILABLE].code;
}

static int answer(struct asking *a, rv_err **err)
{
    switch (a->q->mode) {
    case RV_REM_LOOKUP:
        return rv_asking_look_up(a, err);
    case RV_REM_TRAVERSE:
        return rv_asking_traverse(a, err);
    case RV_REM_SQL:
        return rv_asking_sql(a, err);
    case RV_REM_SEARCH:
    case RV_REM_FUZZY:
    case RV_REM_N_MODES:
        break;
    }
    return not_available(a, err);
}

static int parse(rv_str text, const struct rv_knowledge_opts *opts, struct rv_rem_query *q,
                 struct rv_knowledge_fault *fault, rv_err **err)
{
    struct rv_rem_opts how = {.natural = opts->natural};
    struct rv_rem_fault why = {0};

    how.tables = rv_rem_tables(&how.n_tables);
    int rc = rv_rem_parse(text, &how, q, &why, err);
    if (rc < 0 && why.code != RV_REM_OK)
        *fault = (struct rv_knowledge_fault){rv_rem_fault_word(why.code), why.line, why.col};
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
        o ? rv_json_set_text(o, "mode", rv_rem_mode_word(a->q->mode), err) : RV_FAIL(err, RV_E_NOMEM, "answer a query");

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
        rc = rv_asking_warn(a, a->q->warnings[i], err);
    if (rc == 0)
        rc = answer(a, err);
    return rc < 0 ? rc : build(a, out, err);
}

int rv_knowledge_query(rv_store *store, const struct rv_store_scope *scope, rv_str text,
                       const struct rv_knowledge_opts *opts, json_object **out, struct rv_knowledge_fault *fault,
                       rv_err **err)
{
    static const struct rv_knowledge_opts none = {0};
    struct rv_knowledge_fault ignored;
    struct rv_rem_query q = {0};
    struct asking a = {.store = store, .scope = scope, .q = &q, .opts = opts ? opts : &none};

    a.fault = fault ? fault : &ignored;
    *a.fault = (struct rv_knowledge_fault){NULL, 0, 0};
    char *own = without_rem(text);
    int rc = own ? parse((rv_str){own, text.len}, a.opts, &q, a.fault, err) : RV_FAIL(err, RV_E_NOMEM, "read a query");
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
