/* Where two runs part: what they were started with and told, record by record. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/past.h"

struct taken {
    struct rv_app_side *side;
    bool skip;
};

static int take_record(void *self, const struct rv_record *r, rv_err **err)
{
    struct taken *t = self;
    rv_jw w = rv_jw_on(&t->side->line);

    t->skip = r->kind == RV_RECORD_OWNER;
    rv_record_write_json(r, &w);
    return rv_buf_check(&t->side->line, "record", err);
}

/* The next record; the process that continued a run does not count. */
static int next_record(const struct rv_app_comparison *c, struct rv_app_side *s, rv_err **err)
{
    int rc = 0;

    json_object_put(s->tree);
    s->tree = NULL;
    while (rc == 0 && s->seq <= s->row.n_records) {
        struct taken t = {.side = s};
        rv_buf_clear(&s->line);
        if (++s->seq > s->row.n_records)
            break;
        rc = rv_store_read(c->store, &c->scope, s->row.id, s->seq, s->seq, take_record, &t, err);
        if (rc == 0 && (c->exact || !t.skip))
            return rv_normal_record(c->exact ? NULL : s->normal, rv_buf_str(&s->line), &s->tree, err);
    }
    return rc;
}

bool rv_app_at_end(const struct rv_app_side *s)
{
    return s->seq > s->row.n_records;
}

static int remember(struct rv_app_comparison *c, rv_err **err)
{
    char *line = rv_str_dup(rv_buf_str(&c->a.line));

    if (!line)
        return RV_FAIL(err, RV_E_NOMEM, "compare runs");
    free(c->context[0]);
    memmove(c->context, c->context + 1, sizeof c->context - sizeof *c->context);
    c->context[RV_APP_DIFF_CONTEXT - 1] = line;
    c->n_same++;
    return 0;
}

static int compare_records(struct rv_app_comparison *c, rv_err **err)
{
    int rc = 0;

    for (;;) {
        rc = next_record(c, &c->a, err);
        if (rc == 0)
            rc = next_record(c, &c->b, err);
        if (rc < 0)
            return rc;
        if (rv_app_at_end(&c->a) || rv_app_at_end(&c->b)) {
            c->same = rv_app_at_end(&c->a) && rv_app_at_end(&c->b);
            return 0;
        }
        bool differ = rv_first_difference(c->a.tree, c->b.tree, &c->at);
        if (differ || (c->exact && !rv_str_eq(rv_buf_str(&c->a.line), rv_buf_str(&c->b.line))))
            return 0;
        rc = remember(c, err);
        if (rc < 0)
            return rc;
    }
}

/* --- bundles --- */

static int read_bundle(rv_store *store, const char *hash, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .what = "bundle"};
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_VALUE);

    int rc = rv_store_get_blob(store, hash, &text, err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, out, err);
    rv_buf_fini(&text);
    return rc;
}

/* The members of an object that differ, one level down, as "files.prompts/plan.md". */
static void name_differing(const char *part, json_object *a, json_object *b, rv_buf *out)
{
    json_object *in_a = NULL, *in_b = NULL;

    json_object_object_get_ex(a, part, &in_a);
    json_object_object_get_ex(b, part, &in_b);
    if (rv_json_equal(in_a, in_b))
        return;
    if (!json_object_is_type(in_a, json_type_object) || !json_object_is_type(in_b, json_type_object)) {
        rv_buf_printf(out, "%s\n", part);
        return;
    }
    json_object_object_foreach (in_a, key, value) {
        json_object *other = NULL;
        if (!json_object_object_get_ex(in_b, key, &other))
            rv_buf_printf(out, "%s.%s (only in the first)\n", part, key);
        else if (!rv_json_equal(value, other))
            rv_buf_printf(out, "%s.%s\n", part, key);
    }
    json_object_object_foreach (in_b, key_b, value_b) {
        (void)value_b;
        if (!json_object_object_get_ex(in_a, key_b, NULL))
            rv_buf_printf(out, "%s.%s (only in the second)\n", part, key_b);
    }
}

static int compare_bundles(struct rv_app_comparison *c, rv_err **err)
{
    static const char *const parts[] = {"pipeline", "files", "script", "catalog"};
    json_object *a = NULL, *b = NULL;

    c->same_bundle = strcmp(c->a.row.bundle, c->b.row.bundle) == 0;
    if (c->same_bundle)
        return 0;
    int rc = read_bundle(c->store, c->a.row.bundle, &a, err);
    if (rc == 0)
        rc = read_bundle(c->store, c->b.row.bundle, &b, err);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(parts); i++)
        name_differing(parts[i], a, b, &c->bundle);
    json_object_put(a);
    json_object_put(b);
    return rc;
}

static int open_side(struct rv_app_comparison *c, struct rv_app_side *s, const char *word, rv_err **err)
{
    s->line = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = rv_app_find_run(c->store, &c->scope, word, &s->row, err);
    if (rc == 0 && !(s->normal = rv_normal_new()))
        rc = RV_FAIL(err, RV_E_NOMEM, "compare runs");
    return rc;
}

static void side_fini(struct rv_app_side *s)
{
    rv_run_row_fini(&s->row);
    rv_normal_free(s->normal);
    rv_buf_fini(&s->line);
    json_object_put(s->tree);
}

int rv_app_diff(rv_store *store, const struct rv_store_scope *scope, const char *const words[2], bool exact,
                struct rv_app_comparison *out, rv_err **err)
{
    *out = (struct rv_app_comparison){.store = store,
                                      .scope = *scope,
                                      .exact = exact,
                                      .at.path = RV_BUF_INIT(1 << 20),
                                      .bundle = RV_BUF_INIT(16 << 20)};
    int rc = open_side(out, &out->a, words[0], err);
    if (rc == 0)
        rc = open_side(out, &out->b, words[1], err);
    if (rc == 0)
        rc = compare_bundles(out, err);
    return rc == 0 ? compare_records(out, err) : rc;
}

void rv_app_comparison_fini(struct rv_app_comparison *c)
{
    side_fini(&c->a);
    side_fini(&c->b);
    for (size_t i = 0; i < RV_APP_DIFF_CONTEXT; i++)
        free(c->context[i]);
    rv_buf_fini(&c->at.path);
    rv_buf_fini(&c->bundle);
}
