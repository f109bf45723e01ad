/* Filters: what a query in the REM dialect means. A query that is wrong is an answer too, {error: {...}}. */
#include "coreengine/rem/rem.h"
#include "coreengine/app/fn/fn_internal.h"

/* Takes err. */
static void write_fault(rv_jw *out, const struct rv_rem_fault *fault, rv_err *err)
{
    rv_jw_obj(out);
    rv_jw_key(out, "error");
    rv_jw_obj(out);
    rv_jw_kv_text(out, "code", rv_rem_fault_text(fault->code));
    rv_jw_kv_text(out, "message", rv_err_text(err));
    rv_jw_kv_int(out, "line", fault->line);
    rv_jw_kv_int(out, "column", fault->col);
    if (rv_err_hint_text(err))
        rv_jw_kv_text(out, "hint", rv_err_hint_text(err));
    rv_jw_obj_end(out);
    rv_jw_obj_end(out);
    rv_err_free(err);
}

static void write_str(rv_jw *out, const char *key, rv_str s)
{
    if (s.ptr)
        rv_jw_kv_str(out, key, s);
    else
        rv_jw_kv_text(out, key, NULL);
}

static void write_double(rv_jw *out, const char *key, double d)
{
    rv_jw_key(out, key);
    rv_jw_double(out, d);
}

static void write_keys(rv_jw *out, const struct rv_rem_query *q)
{
    if (q->n_keys == 1) {
        rv_jw_kv_str(out, "key", q->keys[0]);
        return;
    }
    rv_jw_key(out, "keys");
    rv_jw_arr(out);
    for (size_t i = 0; i < q->n_keys; i++)
        rv_jw_str(out, q->keys[i]);
    rv_jw_arr_end(out);
}

static void write_parameters(rv_jw *out, const struct rv_rem_query *q)
{
    switch (q->mode) {
    case RV_REM_LOOKUP:
        write_keys(out, q);
        break;
    case RV_REM_SEARCH:
        rv_jw_kv_str(out, "query_text", q->text);
        rv_jw_kv_str(out, "table", q->table);
        rv_jw_kv_str(out, "field", q->field);
        rv_jw_kv_int(out, "limit", q->limit);
        write_double(out, "min_similarity", q->min_similarity);
        write_str(out, "category", q->category);
        if (q->rank != RV_REM_RANK_UNSAID)
            rv_jw_kv_text(out, "rank", rv_rem_rank_text(q->rank));
        break;
    case RV_REM_FUZZY:
        rv_jw_kv_str(out, "query_text", q->text);
        write_double(out, "threshold", q->threshold);
        rv_jw_kv_int(out, "limit", q->limit);
        break;
    case RV_REM_TRAVERSE:
        rv_jw_kv_str(out, "start_key", q->text);
        rv_jw_kv_int(out, "max_depth", q->depth);
        write_str(out, "rel_type", q->rel_type);
        rv_jw_kv_bool(out, "load", q->load);
        rv_jw_kv_bool(out, "paths", q->paths);
        break;
    case RV_REM_SQL:
        rv_jw_kv_str(out, "sql", q->sql);
        break;
    case RV_REM_N_MODES:
        break;
    }
}

static void write_query(rv_jw *out, const struct rv_rem_query *q)
{
    rv_jw_obj(out);
    rv_jw_kv_text(out, "mode", rv_rem_mode_text(q->mode));
    rv_jw_key(out, "parameters");
    rv_jw_obj(out);
    write_parameters(out, q);
    rv_jw_obj_end(out);
    if (q->n_warnings) {
        rv_jw_key(out, "warnings");
        rv_jw_arr(out);
        for (size_t i = 0; i < q->n_warnings; i++)
            rv_jw_str(out, q->warnings[i]);
        rv_jw_arr_end(out);
    }
    rv_jw_obj_end(out);
}

static int rem_parse(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str natural = app_fn_str(in, "natural_language");
    struct rv_rem_opts opts = {0};
    struct rv_rem_query q;
    struct rv_rem_fault fault;
    rv_err *wrong = NULL;
    int rc;

    opts.tables = rv_rem_tables(&opts.n_tables);
    int how = natural.ptr ? rv_rem_natural_of(natural) : RV_REM_NATURAL_REJECT;
    if (how < 0)
        return RV_FAIL(err, RV_E_INVALID, "natural_language is \"%.*s\", not reject, search or sql",
                       RV_STR_ARG(rv_utf8_cut(natural, 40)));
    opts.natural = (enum rv_rem_natural)how;
    rc = rv_rem_parse(app_fn_str(in, "query"), &opts, &q, &fault, &wrong);
    if (rc == 0) {
        write_query(out, &q);
        rv_rem_query_fini(&q);
        return 0;
    }
    if (fault.code == RV_REM_OK) {
        rv_err_free(wrong);
        return RV_FAIL(err, rc, "read a query");
    }
    write_fault(out, &fault, wrong);
    return 0;
}

static int read_sql_options(json_object *in, struct rv_rem_sql_opts *opts, rv_err **err)
{
    rv_str policy = app_fn_str(in, "policy"), backend = app_fn_str(in, "backend"), now = app_fn_str(in, "now");
    struct rv_clock clock = rv_clock_system();

    *opts = (struct rv_rem_sql_opts){.may_explain = app_fn_flag(in, "may_explain"), .now_us = clock.now_us(clock.self)};
    opts->tables = rv_rem_tables(&opts->n_tables);
    if (policy.ptr && !rv_str_is(policy, "strict") && !rv_str_is(policy, "compat"))
        return RV_FAIL(err, RV_E_INVALID, "policy is \"%.*s\", not strict or compat",
                       RV_STR_ARG(rv_utf8_cut(policy, 40)));
    if (backend.ptr && !rv_str_is(backend, "sqlite") && !rv_str_is(backend, "postgres"))
        return RV_FAIL(err, RV_E_INVALID, "backend is \"%.*s\", not sqlite or postgres",
                       RV_STR_ARG(rv_utf8_cut(backend, 40)));
    opts->policy = rv_str_is(policy, "compat") ? RV_REM_COMPAT : RV_REM_STRICT;
    opts->backend = rv_str_is(backend, "postgres") ? RV_REM_POSTGRES : RV_REM_SQLITE;
    return now.ptr ? rv_time_parse(now, &opts->now_us, err) : 0;
}

static void write_sql(rv_jw *out, const struct rv_rem_sql *sql)
{
    rv_jw_obj(out);
    rv_jw_kv_str(out, "text", sql->text);
    rv_jw_key(out, "literals");
    rv_jw_arr(out);
    for (size_t i = 0; i < sql->n_literals; i++)
        rv_jw_str(out, sql->literals[i].value);
    rv_jw_arr_end(out);
    rv_jw_kv_int(out, "sources", (int64_t)sql->n_sources);
    rv_jw_kv_bool(out, "is_recursive", sql->is_recursive);
    rv_jw_kv_bool(out, "is_explain", sql->is_explain);
    rv_jw_kv_bool(out, "may_write", sql->may_write);
    rv_jw_obj_end(out);
}

static int rem_sql_check(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_rem_sql_opts opts;
    struct rv_rem_sql sql;
    struct rv_rem_fault fault;
    rv_err *wrong = NULL;
    int rc = read_sql_options(in, &opts, err);

    if (rc < 0)
        return rc;
    rc = rv_rem_write_sql(app_fn_str(in, "sql"), &opts, &sql, &fault, &wrong);
    if (rc == 0) {
        write_sql(out, &sql);
        rv_rem_sql_fini(&sql);
        return 0;
    }
    if (fault.code == RV_REM_OK) {
        rv_err_free(wrong);
        return RV_FAIL(err, rc, "read a statement");
    }
    write_fault(out, &fault, wrong);
    return 0;
}

static const struct rv_fn items[] = {
    {"rem_parse", "{query: string, natural_language?: word}", "{mode, parameters, warnings?} or {error}",
     "what a query in the REM dialect asks for; natural_language (reject, search, sql) is what to do with text that "
     "has no "
     "mode",
     rem_parse},
    {"rem_sql_check", "{sql: string, policy?: word, backend?: word, now?: word, may_explain?: bool}",
     "{text, literals, sources, is_recursive, is_explain, may_write} or {error}",
     "the text of a statement for a database (backend: sqlite, postgres), or why a policy (strict, compat) refuses it; "
     "now is the time of now()",
     rem_sql_check},
};
const struct rv_fn_group app_fn_group_rem = {items, RV_COUNT(items)};
