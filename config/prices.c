/* What models cost, where the pipeline does not say it: the table of prices.json, built in, under the user's own.
 *
 * A name is found as it is; or as that name with a date, "latest" or a version behind it, which is the same model; or
 * by the longest name that ends in "*". Nothing else is near enough: "gpt-5-pro" is no "gpt-5". */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config_internal.h"
#include "config/models_internal.h"

#define MAX_ROWS   10000 /* models of one price list: those of today's providers are some hundreds */
#define MAX_WINDOW 1e9   /* tokens: above any context, and its product with a price does not overflow */

/* what is less than a micro-dollar is left out */
static int64_t micro_usd_down(double usd)
{
    return (int64_t)floor(usd * 1e6 * (1 + 4 * DBL_EPSILON)); /* 0.57 is a little less than it says */
}

/* The user's table. */
struct rv_prices {
    rv_yaml *doc;              /* names point into it; owned */
    struct rv_price_row *rows; /* owned */
    size_t n;
};

void config_prices_free(struct rv_prices *prices)
{
    if (!prices)
        return;
    rv_yaml_free(prices->doc);
    free(prices->rows);
    free(prices);
}

/* --- Reading --- */

struct raw_row {
    struct raw_price price;
    int64_t window;
};
#define AT(member) offsetof(struct raw_row, member)
#define USD(key, is_required, flag)                                                                                    \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_FLOAT, .offset = AT(price.key), .required = is_required, .max = RV_MAX_USD,       \
        .is_set_offset = flag                                                                                          \
    }
static const struct rv_key row_keys[] = {
    USD(input, true, 0),
    USD(output, true, 0),
    USD(cached, false, AT(price.has_cached)),
    USD(cache_write, false, AT(price.has_cache_write)),
    {"window", RV_KEY_INT, AT(window), .min = 1, .max = MAX_WINDOW},
};

struct raw_table {
    const char *unused; /* offset 0 */
    const char *as_of, *note;
    const struct rv_node *models;
};
static void take_models(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind != RV_NODE_MAP)
        rv_keys_add_wrong_type(r, node, "models", "a map");
    else if (node->n > MAX_ROWS)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "models has %zu entries (the limit is %d)", node->n,
                            MAX_ROWS);
    else
        *(const struct rv_node **)target = node;
}
static const struct rv_key table_keys[] = {
    {.name = "as_of", .type = RV_KEY_STR, .offset = offsetof(struct raw_table, as_of)},
    {.name = "note", .type = RV_KEY_STR, .offset = offsetof(struct raw_table, note)},
    {"models", RV_KEY_CUSTOM, .required = true, .offset = offsetof(struct raw_table, models), .read = take_models},
};

static void read_row(struct rv_loader *l, const struct rv_node *key, const struct rv_node *node)
{
    struct rv_key_reader r = {
        .arena = l->arena, .findings = l->findings, .owner_kind = "price of", .owner_name = key->text.ptr, .user = l};
    struct raw_row raw = {.window = 0};

    if (!memchr(key->text.ptr, ':', key->text.len))
        rv_keys_add_finding(&r, RV_SEVERITY_ERROR, &key->src, "for example \"openai:gpt-4.1-mini\", or \"openai:*\"",
                            "the name must be provider:model");
    rv_keys_read(&r, node, row_keys, RV_COUNT(row_keys), &raw);
    if (r.rc < 0)
        l->rc = r.rc;
    l->prices->rows[l->prices->n++] =
        (struct rv_price_row){.name = key->text.ptr, .price = config_price_of(&raw.price), .window = raw.window};
}

static void read_table(struct rv_loader *l, const char *path)
{
    struct rv_key_reader r = {
        .arena = l->arena, .findings = l->findings, .owner_kind = "prices", .owner_name = path, .user = l};
    struct raw_table raw = {.models = NULL};
    struct rv_src src = {path, 1, 1};
    rv_err *err = NULL;
    int rc = rv_yaml_read(path, l->findings, &l->prices->doc, &err); /* JSON is YAML, and this reader knows places */
    const struct rv_node *root = l->prices->doc ? rv_yaml_root(l->prices->doc) : NULL;

    if (rc == RV_E_NOMEM)
        l->rc = rc;
    else if (rc < 0)
        rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &src, err);
    rv_err_free(err);
    if (rc < 0 || !l->prices->doc)
        return;
    if (!root) {
        rv_keys_add_finding(&r, RV_SEVERITY_ERROR, &src, "begin with {\"models\": {", "the file is empty");
        return;
    }
    rv_keys_read(&r, root, table_keys, RV_COUNT(table_keys), &raw);
    if (r.rc < 0)
        l->rc = r.rc;
    if (l->rc < 0 || !raw.models)
        return;
    l->prices->rows = calloc(raw.models->n + 1, sizeof *l->prices->rows);
    if (!l->prices->rows)
        l->rc = RV_E_NOMEM;
    for (size_t i = 0; i < raw.models->n && l->rc == 0; i++)
        read_row(l, raw.models->keys[i], raw.models->items[i]);
}

/* $REEVE_PRICES, which must be there, or the file among the user's settings, which need not. NULL: none. */
static const char *find_table(struct rv_loader *l)
{
    const char *named = getenv("REEVE_PRICES"), *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const char *dir = config && config[0] == '/' ? config : home && home[0] == '/' ? home : NULL;
    const char *below = dir == config ? "/reeve/prices.json" : "/.config/reeve/prices.json";
    char *path;
    size_t n;

    if (named && named[0])
        return rv_utf8_valid(rv_str_of(named), NULL) ? named : NULL;
    if (!dir || !rv_utf8_valid(rv_str_of(dir), NULL))
        return NULL;
    n = strlen(dir);
    path = rv_arena_alloc(l->arena, n + strlen(below) + 1);
    if (!path) {
        l->rc = RV_E_NOMEM;
        return NULL;
    }
    memcpy(path, dir, n);
    memcpy(path + n, below, strlen(below) + 1);
    return access(path, F_OK) == 0 ? path : NULL;
}

static bool open_table(struct rv_loader *l)
{
    const char *path;

    if (l->prices)
        return true;
    l->prices = calloc(1, sizeof *l->prices);
    if (!l->prices)
        l->rc = RV_E_NOMEM;
    path = l->rc == 0 ? find_table(l) : NULL;
    if (path)
        read_table(l, path);
    return l->rc == 0;
}

/* --- Looking up --- */

/* "-2025-04-14", "-20250514", "-latest" and "@20250514" name a version of the model before them. */
static bool is_version(const char *rest)
{
    size_t n = strspn(rest + 1, "0123456789");

    if (rest[0] == '@')
        return rest[1] != 0;
    if (rest[0] != '-')
        return false;
    if (strcmp(rest, "-latest") == 0 || (n == 8 && rest[9] == 0))
        return true;
    return n == 4 && rest[5] == '-' && strspn(rest + 6, "0123456789") == 2 && rest[8] == '-' &&
           strspn(rest + 9, "0123456789") == 2 && rest[11] == 0;
}

/* How well a row fits: 0 not at all, else the more the better. */
static size_t fit(const char *row, const char *name)
{
    size_t n = strlen(row);

    if (strcmp(row, name) == 0)
        return SIZE_MAX;
    if (n > 0 && row[n - 1] == '*')
        return strncmp(row, name, n - 1) == 0 ? n : 0;
    return strncmp(row, name, n) == 0 && is_version(name + n) ? SIZE_MAX - 1 : 0;
}

static void look(const struct rv_price_row *rows, size_t n, const char *name, const struct rv_price_row **best,
                 size_t *best_fit)
{
    for (size_t i = 0; i < n; i++) {
        size_t f = fit(rows[i].name, name);

        if (f > *best_fit) {
            *best = &rows[i];
            *best_fit = f;
        }
    }
}

/* own: the user's table, which comes first; NULL: none. */
static void find(struct rv_loader *l, const struct rv_prices *own, const char *provider, const char *model,
                 struct rv_chosen_model *out)
{
    const struct rv_price_row *best = NULL;
    size_t best_fit = 0;
    rv_buf name = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    rv_buf_printf(&name, "%s:%s", provider, model);
    if (name.rc == 0) {
        if (own)
            look(own->rows, own->n, rv_buf_cstr(&name), &best, &best_fit);
        look(config_price_rows, config_n_price_rows, rv_buf_cstr(&name), &best, &best_fit);
    } else {
        l->rc = name.rc == RV_E_NOMEM ? RV_E_NOMEM : l->rc;
    }
    rv_buf_fini(&name);
    if (!best)
        return;
    out->has_price = true;
    out->price = best->price;
    out->max_input_tokens = best->window;
}

/* A script costs what the pipeline says. */
static bool is_priced(const char *provider)
{
    return strcmp(provider, "scripted") != 0;
}

void config_prices_find(struct rv_loader *l, const char *provider, const char *model, struct rv_chosen_model *out)
{
    if (is_priced(provider) && open_table(l))
        find(l, l->prices, provider, model, out);
}

void config_prices_find_built_in(struct rv_loader *l, const char *provider, const char *model,
                                 struct rv_chosen_model *out)
{
    if (is_priced(provider))
        find(l, NULL, provider, model, out);
}

/* --- The budget of a run: its key, and that everything it can be spent on has a price --- */

struct raw_budget {
    const char *unused; /* offset 0 */
    double usd;
};
static const struct rv_key budget_keys[] = {
    {"usd", RV_KEY_FLOAT, offsetof(struct raw_budget, usd), .required = true, .min = 0, .max = RV_MAX_USD,
     .doc = "US dollars, a micro-dollar at least; what is less is left out."},
};
const struct rv_key_table config_budget_table = {"budget", "What one run may cost, with everything it starts",
                                                 budget_keys, RV_COUNT(budget_keys), NULL};

void config_read_budget(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_pipeline *p = config_loader_of(r)->p;
    const struct rv_node *usd = rv_node_get(node, "usd");
    size_t n_errors = rv_findings_n_errors(r->findings);
    struct raw_budget raw = {0};
    const char *outer = r->path;

    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_not_a_map(r, node, "budget", "usd");
        return;
    }
    r->path = "budget.";
    rv_keys_read(r, node, budget_keys, RV_COUNT(budget_keys), &raw);
    r->path = outer;
    if (rv_findings_n_errors(r->findings) > n_errors)
        return;
    p->budget_micro_usd = micro_usd_down(raw.usd);
    p->has_budget = true;
    if (p->budget_micro_usd < 1)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &usd->src,
                            "write what one run may cost in US dollars, such as 0.5, or leave `budget` out",
                            "budget.usd must be at least 0.000001, not %s", usd->text.ptr);
}

void rv_pipeline_mark_used_models(const struct rv_pipeline *p, bool *used)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        const struct rv_model_config *m =
            a->has_llm && !rv_agent_is_unbound(a)
                ? rv_pipeline_find_model(p, rv_str_of(a->model.role[0] ? a->model.role : "default"))
                : NULL;

        if (!m)
            continue;
        used[m - p->models] = true;
        for (size_t k = 0; k < m->fallback.n; k++) /* those of fallbacks are not asked */
            used[m->fallback_models[k] - p->models] = true;
    }
}

static void mark_below(const struct rv_pipeline *all, const struct rv_pipeline *p, bool *is_in_budget)
{
    const struct rv_pipeline_internal *internal = all->internal;

    for (size_t s = 0; s < p->n_agents; s++)
        for (size_t i = 0; p->agents[s].inner.pipeline && i < internal->n_inner; i++)
            is_in_budget[i] = is_in_budget[i] || internal->inner[i] == p->agents[s].inner.pipeline;
}

void config_mark_in_budget(const struct rv_pipeline *p, bool *is_in_budget)
{
    if (p->has_budget)
        mark_below(p, p, is_in_budget);
    for (size_t i = p->internal->n_inner; i-- > 0;) /* each comes before those that run it */
        if (is_in_budget[i] || p->internal->inner[i]->has_budget)
            mark_below(p, p->internal->inner[i], is_in_budget);
}

void config_check_prices(struct rv_loader *l, const struct rv_pipeline *p, bool is_in_budget, const bool *known)
{
    bool *used = config_loader_array(l, p->n_models, sizeof *used);

    if (!used || (!p->has_budget && !is_in_budget))
        return;
    rv_pipeline_mark_used_models(p, used);
    for (size_t i = 0; i < p->n_models; i++) {
        const struct rv_model_config *m = &p->models[i];

        if (used[i] && !(known && known[i]) && !m->has_price)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &m->src,
                            "say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}",
                            "model \"%s\": %s a budget, and what this model costs is not known", m->role,
                            p->has_budget ? "there is" : "a pipeline that runs this file has");
    }
}

void config_check_budget(struct rv_loader *l)
{
    size_t n = l->p->internal->n_inner;
    bool *is_in_budget = n > 0 ? config_loader_array(l, n, sizeof *is_in_budget) : NULL;

    config_check_prices(l, l->p, false, NULL);
    if (!is_in_budget)
        return;
    config_mark_in_budget(l->p, is_in_budget);
    for (size_t i = 0; i < n; i++) /* a budget of its own was looked at when it was loaded */
        if (!l->p->internal->inner[i]->has_budget)
            config_check_prices(l, l->p->internal->inner[i], is_in_budget[i], NULL);
}
