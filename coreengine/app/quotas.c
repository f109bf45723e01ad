/* The file of quotas: plans, and who has which. Read by tables that also make its schema. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/upkeep.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* bytes of a file of quotas once read: MAX_PLANS and MAX_USERS fit; more is an error */
#define MAX_ARENA ((size_t)16 << 20)
#define MAX_PLANS 1000   /* of one file: a person writes each; more is an error */
#define MAX_USERS 100000 /* of a tenant, and tenants: with 100 bytes each they fit MAX_ARENA */

struct plan {
    const char *name;
    struct rv_quota_limit limits[RV_QUOTA_MAX_LIMITS / 2]; /* in the order in which the store locks counters */
    size_t n;
};
struct member {
    const char *user;
    const struct plan *plan; /* NULL: no limits */
};
struct tenant {
    const char *name;
    const struct plan *own, *of_others; /* of all users together; of a user who is not named */
    bool has_default;
    struct member *members; /* in the arena */
    size_t n;
};
struct rv_quotas {
    rv_arena *arena;
    struct plan *plans; /* in the arena, as all below */
    size_t n_plans;
    struct tenant *tenants;
    size_t n_tenants;
    const struct plan *of_others;
};

/* --- limits of a plan --- */

struct raw_spans {
    int64_t n[RV_N_SPAN];
    double usd[RV_N_SPAN];
};
#define SPAN(name_, field, span, type_, max_, doc_)                                                                    \
    {                                                                                                                  \
        .name = (name_), .type = (type_),                                                                              \
        .offset = offsetof(struct raw_spans, field) + sizeof(int64_t) * RV_SPAN_##span, .min = 0,                      \
        .max = (double)(max_), .doc = (doc_)                                                                           \
    }
static_assert(sizeof(int64_t) == sizeof(double), "both lists have members of one size");
static const struct rv_key quota_spans[] = {
    SPAN("day", n, DAY, RV_KEY_INT, RV_QUOTA_MAX_LIMIT, "Of a day in UTC; 0: no limit."),
    SPAN("week", n, WEEK, RV_KEY_INT, RV_QUOTA_MAX_LIMIT, "Of a week from Monday on."),
    SPAN("month", n, MONTH, RV_KEY_INT, RV_QUOTA_MAX_LIMIT, "Of a calendar month."),
};
static const struct rv_key cost_spans[] = {
    SPAN("day", usd, DAY, RV_KEY_FLOAT, 1000000, "Of a day in UTC, in US dollars; 0: no limit."),
    SPAN("week", usd, WEEK, RV_KEY_FLOAT, 1000000, "Of a week from Monday on."),
    SPAN("month", usd, MONTH, RV_KEY_FLOAT, 1000000, "Of a calendar month."),
};
static const struct rv_key rate_spans[] = {
    SPAN("minute", n, MINUTE, RV_KEY_INT, RV_QUOTA_MAX_LIMIT, "In the last 60 seconds; 0: no limit."),
    SPAN("hour", n, HOUR, RV_KEY_INT, RV_QUOTA_MAX_LIMIT, "In the last 60 minutes."),
    SPAN("day", n, DAY, RV_KEY_INT, RV_QUOTA_MAX_LIMIT, "In the last 24 hours."),
};

struct reading {
    rv_quotas *q;
    const struct rv_node *users; /* of the default tenant; NULL: none */
    const struct rv_node *tenants;
    const char *of_others;
    struct rv_src of_others_src;
};
struct raw_plan {
    struct plan *plan;
};

static void add_limits(struct plan *p, enum rv_quota_kind kind, bool is_rate, const struct raw_spans *raw)
{
    for (int span = 0; span < RV_N_SPAN; span++) {
        int64_t n = kind == RV_QUOTA_COST ? (int64_t)(raw->usd[span] * 1e6 + 0.5) : raw->n[span];
        assert(n <= 0 || p->n < RV_COUNT(p->limits)); /* a key is read once: there are fewer kinds and spans */
        if (n > 0)
            p->limits[p->n++] = (struct rv_quota_limit){
                .kind = kind, .span = (enum rv_quota_span)span, .is_rate = is_rate, .limit = n, .plan = p->name};
    }
}

static void read_spans(struct rv_key_reader *r, const struct rv_node *node, enum rv_quota_kind kind, bool is_rate,
                       struct plan *plan)
{
    const char *word = rv_quota_kind_text(kind);
    const struct rv_key *keys = is_rate ? rate_spans : kind == RV_QUOTA_COST ? cost_spans : quota_spans;
    struct raw_spans raw = {0};
    struct rv_key_reader inner = {
        .arena = r->arena, .findings = r->findings, .owner_kind = is_rate ? "rate" : "quota", .owner_name = word};

    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, word, is_rate ? "a map such as {minute: 60}" : "a map such as {day: 1000}");
        return;
    }
    rv_keys_read(&inner, node, keys, RV_COUNT(quota_spans), &raw);
    r->rc = inner.rc < 0 ? inner.rc : r->rc;
    add_limits(plan, kind, is_rate, &raw);
}

#define READ_KIND(name, kind, is_rate)                                                                                 \
    static void name(struct rv_key_reader *r, const struct rv_node *node, void *target)                                \
    {                                                                                                                  \
        read_spans(r, node, RV_QUOTA_##kind, (is_rate), ((struct raw_plan *)target)->plan);                            \
    }
READ_KIND(read_tokens, TOKENS, false)
READ_KIND(read_cost, COST, false)
READ_KIND(read_model_calls, MODEL_CALLS, false)
READ_KIND(read_runs, RUNS, false)
READ_KIND(read_tasks, TASKS, false)
READ_KIND(read_web_searches, WEB_SEARCHES, false)
READ_KIND(read_dreams, DREAMS, false)
READ_KIND(read_model_call_rate, MODEL_CALLS, true)
READ_KIND(read_run_rate, RUNS, true)
READ_KIND(read_task_rate, TASKS, true)

#define KIND(word, reader, ref, doc_)                                                                                  \
    {                                                                                                                  \
        .name = (word), .type = RV_KEY_CUSTOM, .read = (reader), .schema = "{\"$ref\":\"#/$defs/" ref "\"}",           \
        .doc = (doc_)                                                                                                  \
    }
static const struct rv_key quota_keys[] = {
    KIND("tokens", read_tokens, "amounts", "Tokens that models read and write."),
    KIND("cost_usd", read_cost, "dollars",
         "What model calls cost, in US dollars. Models without a price cost nothing."),
    KIND("model_calls", read_model_calls, "amounts",
         "Requests to models, those included that repeat one or ask a fallback."),
    KIND("runs", read_runs, "amounts", "Runs that begin, or are submitted."),
    KIND("tasks", read_tasks, "amounts", "Tasks of other types that a worker begins."),
    KIND("web_searches", read_web_searches, "amounts", "Searches of the web by tools."),
    KIND("dreams", read_dreams, "amounts", "Dreamings that begin."),
};
static const struct rv_key rate_keys[] = {
    KIND("model_calls", read_model_call_rate, "times", "Requests to models, as in quotas."),
    KIND("runs", read_run_rate, "times", "Runs that begin, or are submitted."),
    KIND("tasks", read_task_rate, "times", "Tasks of other types that a worker begins."),
};
static const struct rv_key plan_keys[] = {
    {.name = "quotas",
     .type = RV_KEY_MAP,
     .keys = quota_keys,
     .n_keys = RV_COUNT(quota_keys),
     .doc = "Amounts of a calendar period in UTC."},
    {.name = "rates",
     .type = RV_KEY_MAP,
     .keys = rate_keys,
     .n_keys = RV_COUNT(rate_keys),
     .doc = "Numbers of times in a window that moves."},
};

/* --- plans --- */

/* The order of sql/users_internal.h: two processes lock counters alike. */
static int compare(const void *a, const void *b)
{
    const struct rv_quota_limit *x = a, *y = b;
    int by_kind = strcmp(rv_quota_kind_text(x->kind), rv_quota_kind_text(y->kind));

    return x->is_rate != y->is_rate ? x->is_rate - y->is_rate
           : by_kind != 0           ? by_kind
           : x->is_rate             ? (int)x->span - (int)y->span /* minute, hour, day */
                                    : strcmp(rv_quota_span_text(x->span), rv_quota_span_text(y->span));
}

static const char *keep(struct rv_key_reader *r, const char *text)
{
    const char *kept = rv_arena_dup(r->arena, rv_str_of(text));

    if (!kept)
        r->rc = RV_E_NOMEM;
    return kept;
}

/* A name that rows of a store can have. */
static bool is_id(struct rv_key_reader *r, const char *kind, const struct rv_node *key)
{
    bool control = false;

    for (size_t i = 0; i < key->text.len; i++)
        control = control || (unsigned char)key->text.ptr[i] < ' ' || key->text.ptr[i] == 127;
    if (key->text.len > 0 && key->text.len <= RV_STORE_MAX_ID && !control)
        return true;
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &key->src, NULL,
                        "the name of a %s has 1 to %d bytes and no control characters", kind, RV_STORE_MAX_ID);
    return false;
}

/* A map whose values each describes; false: it is none, or too large. */
static bool is_map(struct rv_key_reader *r, const struct rv_node *node, const char *key, size_t max)
{
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, key, "a map");
        return false;
    }
    if (node->n <= max)
        return true;
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s has %zu entries; %zu are allowed", key, node->n,
                        max);
    return false;
}

static void *room(struct rv_key_reader *r, size_t n, size_t size)
{
    void *list = rv_arena_alloc(r->arena, (n + 1) * size);

    if (list)
        memset(list, 0, (n + 1) * size);
    else
        r->rc = RV_E_NOMEM;
    return list;
}

static void read_plans(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    rv_quotas *q = ((struct reading *)target)->q;

    if (!is_map(r, node, "plans", MAX_PLANS) || !(q->plans = room(r, node->n, sizeof *q->plans)))
        return;
    for (size_t i = 0; i < node->n && r->rc == 0; i++) {
        struct plan *p = &q->plans[q->n_plans++];
        struct raw_plan raw = {p};
        struct rv_key_reader inner = {.arena = r->arena, .findings = r->findings, .owner_kind = "plan"};
        if (!is_id(r, "plan", node->keys[i]))
            continue;
        inner.owner_name = p->name = keep(r, node->keys[i]->text.ptr);
        if (node->items[i]->kind == RV_NODE_NULL) /* a plan without limits */
            continue;
        rv_keys_read(&inner, node->items[i], plan_keys, RV_COUNT(plan_keys), &raw);
        r->rc = inner.rc < 0 ? inner.rc : r->rc;
        qsort(p->limits, p->n, sizeof *p->limits, compare);
    }
}

static const struct plan *plan_of(struct rv_key_reader *r, const rv_quotas *q, const char *name,
                                  const struct rv_src *src)
{
    const char *names[MAX_PLANS];
    size_t n = 0;

    for (size_t i = 0; i < q->n_plans; i++) {
        if (q->plans[i].name && strcmp(q->plans[i].name, name) == 0)
            return &q->plans[i];
        if (q->plans[i].name)
            names[n++] = q->plans[i].name;
    }
    const char *near = rv_nearest(rv_str_of(name), names, n);
    rv_buf hint = RV_BUF_INIT(1024);
    if (near)
        rv_buf_printf(&hint, "did you mean \"%s\"?", near);
    else
        rv_buf_puts(&hint, "describe it under plans");
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, src, rv_buf_cstr(&hint), "unknown plan \"%s\"", name);
    rv_buf_fini(&hint);
    return NULL;
}

/* --- users and tenants: when the plans are known --- */

static void read_users(struct rv_key_reader *r, const rv_quotas *q, const struct rv_node *node, struct tenant *t)
{
    if (!is_map(r, node, "users", MAX_USERS) || !(t->members = room(r, node->n, sizeof *t->members)))
        return;
    for (size_t i = 0; i < node->n && r->rc == 0; i++) {
        const struct rv_node *name = node->items[i];
        if (!is_id(r, "user", node->keys[i]))
            continue;
        if (name->kind != RV_NODE_STR) {
            rv_keys_add_wrong_type(r, name, node->keys[i]->text.ptr, "the name of a plan");
            continue;
        }
        struct member *m = &t->members[t->n++];
        m->user = keep(r, node->keys[i]->text.ptr);
        m->plan = plan_of(r, q, name->text.ptr, &name->src);
    }
}

struct raw_tenant {
    const char *plan, *of_others;
    struct rv_src plan_src, of_others_src;
    bool has_default;
    const struct rv_node *users;
};
static void note_tenant_users(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)r;
    ((struct raw_tenant *)target)->users = node;
}
#define IN_TENANT(field) offsetof(struct raw_tenant, field)
#define USERS_SCHEMA     "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"
static const struct rv_key tenant_keys[] = {
    {.name = "plan",
     .type = RV_KEY_STR,
     .offset = IN_TENANT(plan),
     .src_offset = IN_TENANT(plan_src),
     .doc = "Plan of the tenant: its limits are for all of its users together. Left out: there are none."},
    {.name = "default",
     .type = RV_KEY_STR,
     .offset = IN_TENANT(of_others),
     .src_offset = IN_TENANT(of_others_src),
     .is_set_offset = IN_TENANT(has_default),
     .doc = "Plan of each user of the tenant who is not named. Left out: `default` of the file."},
    {.name = "users",
     .type = RV_KEY_CUSTOM,
     .read = note_tenant_users,
     .schema = USERS_SCHEMA,
     .doc = "Plans of users of the tenant by name."},
};

static void read_tenant(struct rv_key_reader *r, const rv_quotas *q, const struct rv_node *node, struct tenant *t)
{
    struct raw_tenant raw = {.plan = "", .of_others = ""};
    struct rv_key_reader inner = {
        .arena = r->arena, .findings = r->findings, .owner_kind = "tenant", .owner_name = t->name};

    rv_keys_read(&inner, node, tenant_keys, RV_COUNT(tenant_keys), &raw);
    if (raw.plan[0])
        t->own = plan_of(&inner, q, raw.plan, &raw.plan_src);
    t->has_default = raw.has_default;
    if (raw.of_others[0])
        t->of_others = plan_of(&inner, q, raw.of_others, &raw.of_others_src);
    if (raw.users)
        read_users(&inner, q, raw.users, t);
    r->rc = inner.rc < 0 ? inner.rc : r->rc;
}

/* `users` of the file are those of the default tenant, unless `tenants` describes that one. */
static void read_tenants(struct rv_key_reader *r, const struct reading *reading)
{
    rv_quotas *q = reading->q;
    const struct rv_node *node = reading->tenants;
    size_t n = node && is_map(r, node, "tenants", MAX_USERS) ? node->n : 0;

    if (reading->of_others[0])
        q->of_others = plan_of(r, q, reading->of_others, &reading->of_others_src);
    if (!(q->tenants = room(r, n + 1, sizeof *q->tenants)))
        return;
    for (size_t i = 0; i < n && r->rc == 0; i++) {
        struct tenant *t = &q->tenants[q->n_tenants];
        if (!is_id(r, "tenant", node->keys[i]) || !(t->name = keep(r, node->keys[i]->text.ptr)))
            continue;
        q->n_tenants++;
        read_tenant(r, q, node->items[i], t);
        if (reading->users && strcmp(t->name, RV_STORE_TENANT) == 0)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &reading->users->src,
                                "move the users to tenants." RV_STORE_TENANT,
                                "users are those of tenant \"" RV_STORE_TENANT "\", which tenants has, too");
    }
    if (reading->users && r->rc == 0) {
        q->tenants[q->n_tenants].name = RV_STORE_TENANT;
        read_users(r, q, reading->users, &q->tenants[q->n_tenants++]);
    }
}

static void note_users(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)r;
    ((struct reading *)target)->users = node;
}

static void note_tenants(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)r;
    ((struct reading *)target)->tenants = node;
}

static const struct rv_key file_keys[] = {
    {.name = "plans",
     .type = RV_KEY_CUSTOM,
     .read = read_plans,
     .required = true,
     .schema = "{\"type\":\"object\",\"maxProperties\":1000,\"additionalProperties\":{\"$ref\":\"#/$defs/plan\"}}",
     .doc = "Plans by name."},
    {.name = "default",
     .type = RV_KEY_STR,
     .offset = offsetof(struct reading, of_others),
     .src_offset = offsetof(struct reading, of_others_src),
     .doc = "Plan of each user who is not named, and of runs without a user. Left out: they have no limits."},
    {.name = "users",
     .type = RV_KEY_CUSTOM,
     .read = note_users,
     .schema = USERS_SCHEMA,
     .doc = "Plans of users of the tenant `default` by name."},
    {.name = "tenants",
     .type = RV_KEY_CUSTOM,
     .read = note_tenants,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/$defs/tenant\"}}",
     .doc = "Tenants by name."},
};

int rv_quotas_read(const char *path, rv_findings *findings, rv_quotas **out, rv_err **err)
{
    rv_yaml *doc = NULL;

    int rc = rv_yaml_read(path, findings, &doc, err);
    if (rc < 0 || !doc)
        return rc;
    rv_quotas *q = calloc(1, sizeof *q);
    if (!q || !(q->arena = rv_arena_new(MAX_ARENA))) {
        rc = RV_FAIL(err, RV_E_NOMEM, "read quotas \"%s\"", path);
    } else if (rv_yaml_root(doc)) { /* an empty file has no plans */
        struct reading reading = {.q = q, .of_others = ""};
        struct rv_key_reader r = {.arena = q->arena, .findings = findings, .owner_kind = "quotas"};
        rv_keys_read(&r, rv_yaml_root(doc), file_keys, RV_COUNT(file_keys), &reading);
        if (r.rc == 0)
            read_tenants(&r, &reading);
        if (r.rc < 0)
            rc = RV_FAIL(err, r.rc, "read quotas \"%s\"", path);
    }
    rv_yaml_free(doc);
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    if (rc < 0)
        rv_quotas_free(q);
    else
        *out = q;
    return rc;
}

void rv_quotas_free(rv_quotas *q)
{
    if (!q)
        return;
    rv_arena_free(q->arena);
    free(q);
}

/* --- where the file is --- */

static int read_sound(const char *path, rv_quotas **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    rv_quotas *q = NULL;

    if (!findings)
        return RV_FAIL(err, RV_E_NOMEM, "read quotas");
    int rc = rv_quotas_read(path, findings, &q, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    rv_findings_free(findings);
    if (rc < 0)
        rv_quotas_free(q);
    else
        *out = q;
    return rc;
}

int rv_app_find_quotas_path(const struct rv_app *app, rv_buf *out, rv_err **err)
{
    const char *named = app->quotas ? app->quotas : app_env("REEVE_QUOTAS");

    if (named) {
        rv_buf_puts(out, named);
        return rv_buf_check(out, "path of the quotas", err);
    }
    rv_err *cause = NULL;
    int rc = app_config_file("quotas.yaml", out, &cause);
    if (rc == RV_E_NOT_FOUND) { /* no quotas */
        rv_err_free(cause);
        return 0;
    }
    if (rc == 0 && access(rv_buf_cstr(out), F_OK) != 0)
        rv_buf_clear(out);
    return rc < 0 ? rv_err_pass(err, cause) : 0;
}

int rv_app_quotas_open(const struct rv_app *app, rv_quotas **out, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(PATH_MAX);

    *out = NULL;
    int rc = rv_app_find_quotas_path(app, &path, err);
    if (rc == 0 && path.len > 0)
        rc = read_sound(rv_buf_cstr(&path), out, err);
    rv_buf_fini(&path);
    return rc;
}

/* --- looking up --- */

static const struct tenant *tenant_of(const rv_quotas *q, const char *name)
{
    for (size_t i = 0; i < q->n_tenants; i++)
        if (strcmp(q->tenants[i].name, name) == 0)
            return &q->tenants[i];
    return NULL;
}

static const struct plan *plan_of_user(const rv_quotas *q, const struct tenant *t, const char *user)
{
    for (size_t i = 0; t && user && i < t->n; i++)
        if (strcmp(t->members[i].user, user) == 0)
            return t->members[i].plan;
    return t && t->has_default ? t->of_others : q->of_others;
}

static size_t add_plan(const struct plan *p, bool is_tenants, size_t n, struct rv_quota_limit *out)
{
    for (size_t i = 0; p && i < p->n && n < RV_QUOTA_MAX_LIMITS; i++) {
        out[n] = p->limits[i];
        out[n++].is_tenants = is_tenants;
    }
    return n;
}

size_t rv_quotas_collect_limits(const rv_quotas *q, const char *tenant, const char *user,
                                struct rv_quota_limit out[RV_QUOTA_MAX_LIMITS])
{
    if (!q)
        return 0;
    const struct tenant *t = tenant_of(q, tenant ? tenant : RV_STORE_TENANT);
    size_t n = add_plan(t ? t->own : NULL, true, 0, out);

    return add_plan(plan_of_user(q, t, user), false, n, out);
}

void rv_quotas_list_users(const rv_quotas *q, const char *tenant, void (*each)(void *self, const char *user),
                          void *self)
{
    const struct tenant *t = q ? tenant_of(q, tenant ? tenant : RV_STORE_TENANT) : NULL;

    for (size_t i = 0; t && i < t->n; i++)
        each(self, t->members[i].user);
}

/* --- its schema --- */

static void write_def(rv_jw *w, const char *name, const struct rv_key *keys, size_t n)
{
    rv_jw_key(w, name);
    rv_keys_write_schema(keys, n, w);
}

void rv_quotas_write_schema(rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "Quotas of reeve");
    rv_jw_key(w, "allOf");
    rv_jw_arr(w);
    rv_keys_write_schema(file_keys, RV_COUNT(file_keys), w);
    rv_jw_arr_end(w);
    rv_jw_key(w, "$defs");
    rv_jw_obj(w);
    write_def(w, "plan", plan_keys, RV_COUNT(plan_keys));
    write_def(w, "tenant", tenant_keys, RV_COUNT(tenant_keys));
    write_def(w, "amounts", quota_spans, RV_COUNT(quota_spans));
    write_def(w, "dollars", cost_spans, RV_COUNT(cost_spans));
    write_def(w, "times", rate_spans, RV_COUNT(rate_spans));
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}
