/* Where two runs part: what they were started with and told, record by record. Records are made comparable first: ids
 * and moments that differ only because the runs do become the same words. What people, models and tools said stays as
 * it is, but for the ids of the run itself. */
#include "coreengine/app/past.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define ID_DIGITS 16                /* hexadecimal, of an id made by rv_id_make() */
#define MAX_IDS   ((size_t)1000000) /* of one run: they are in memory, some 20 MB; more is an error */

/* --- records made comparable --- */

struct rv_normal {
    rv_index seen; /* digits -> number; keys in the arena */
    rv_arena *arena;
    size_t n;
};

static struct rv_normal *normal_new(void)
{
    struct rv_normal *n = calloc(1, sizeof *n);

    if (n && !(n->arena = rv_arena_new(MAX_IDS * (ID_DIGITS + 16)))) {
        free(n);
        return NULL;
    }
    return n;
}

static void normal_free(struct rv_normal *n)
{
    if (!n)
        return;
    rv_index_fini(&n->seen);
    rv_arena_free(n->arena);
    free(n);
}

static bool is_lower_hex(char c)
{
    return rv_is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
    return rv_is_digit(c) || rv_is_letter(c);
}

/* Exactly as many digits as an id has, at p. */
static bool is_id(rv_str s, size_t at)
{
    size_t end = at;

    if (at > 0 && is_word(s.ptr[at - 1]))
        return false;
    while (end < s.len && end - at < ID_DIGITS && is_lower_hex(s.ptr[end]))
        end++;
    return end - at == ID_DIGITS && (end == s.len || !is_word(s.ptr[end]));
}

/* *out: -1 of digits that were told, unless the run has them as an id. */
static int number_of(struct rv_normal *n, rv_str digits, bool told, int *out, rv_err **err)
{
    *out = rv_index_get(&n->seen, digits);
    if (*out >= 0 || told)
        return 0;
    if (n->n >= MAX_IDS)
        return RV_FAIL(err, RV_E_LIMIT, "a run has more than %zu ids", MAX_IDS);
    const char *kept = rv_arena_dup(n->arena, digits);
    *out = (int)n->n + 1;
    if (!kept || rv_index_add(&n->seen, rv_str_of(kept), *out) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "compare runs");
    n->n++;
    return 0;
}

static int normal_text(struct rv_normal *n, rv_str text, bool told, json_object **out, rv_err **err)
{
    rv_buf b = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int64_t us;
    int rc = 0, number = 0;

    if (!told && text.len < RV_TIME_MAX && text.len >= 20 && rv_time_read(text, &us)) {
        *out = json_object_new_string("<time>");
        return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare runs");
    }
    for (size_t i = 0; i < text.len && rc == 0; i++) {
        if (!is_id(text, i)) {
            rv_buf_putc(&b, text.ptr[i]);
            continue;
        }
        rv_str digits = {text.ptr + i, ID_DIGITS};
        rc = number_of(n, digits, told, &number, err);
        if (number < 0)
            rv_buf_add_str(&b, digits);
        else
            rv_buf_printf(&b, "#%d", number);
        i += ID_DIGITS - 1;
    }
    if (rc == 0)
        rc = rv_buf_check(&b, "text", err);
    if (rc == 0 && !(*out = json_object_new_string_len(rv_buf_cstr(&b), (int)b.len)))
        rc = RV_FAIL(err, RV_E_NOMEM, "compare runs");
    rv_buf_fini(&b);
    return rc;
}

/* Members that say how long something took. */
static const char *const spans[] = {"duration_ms", "execution_time_ms", "processing_time_ms", "total_time_ms", NULL};
/* Members of records and states with what people, models and tools said. */
static const char *const told_keys[] = {"raw_input", "metadata", "outputs",    "arguments", "parameters", "data",
                                        "text",      "choice",   "tool_calls", "opaque",    "partial",    NULL};

static bool is_one_of(const char *const *keys, const char *key)
{
    while (*keys && strcmp(key, *keys) != 0)
        keys++;
    return *keys != NULL;
}

/* told: v, or what it is in, was said by people, models or tools. */
static int normal(struct rv_normal *n, json_object *v, bool told, json_object **out, rv_err **err);

static int normal_object(struct rv_normal *n, json_object *v, bool told, json_object **out, rv_err **err)
{
    json_object *made = json_object_new_object();
    int rc = made ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare runs");

    json_object_object_foreach (v, key, value) {
        json_object *part = NULL;
        if (rc < 0)
            break;
        if (!told && is_one_of(spans, key)) {
            rc = rv_json_set_text(made, key, "<time>", err);
            continue;
        }
        rc = normal(n, value, told || is_one_of(told_keys, key), &part, err);
        if (rc == 0)
            rc = part ? rv_json_set_take(made, key, part, err) : rv_json_set_null(made, key, err);
    }
    if (rc < 0)
        json_object_put(made);
    else
        *out = made;
    return rc;
}

static int normal_array(struct rv_normal *n, json_object *v, bool told, json_object **out, rv_err **err)
{
    json_object *made = json_object_new_array();
    int rc = made ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare runs");

    for (size_t i = 0; rc == 0 && i < json_object_array_length(v); i++) {
        json_object *part = NULL;
        rc = normal(n, json_object_array_get_idx(v, i), told, &part, err);
        if (rc == 0)
            rc = part ? rv_json_push_take(made, part, err) : rv_json_push_ref(made, NULL, err);
    }
    if (rc < 0)
        json_object_put(made);
    else
        *out = made;
    return rc;
}

static int normal(struct rv_normal *n, json_object *v, bool told, json_object **out, rv_err **err)
{
    *out = NULL;
    if (json_object_is_type(v, json_type_object))
        return normal_object(n, v, told, out, err);
    if (json_object_is_type(v, json_type_array))
        return normal_array(n, v, told, out, err);
    if (json_object_is_type(v, json_type_string))
        return normal_text(n, rv_json_str(v), told, out, err);
    *out = json_object_get(v);
    return 0;
}

/* The value of a record: a state, an answer with the id of its question, or what the engine was told. */
static int normal_value(struct rv_normal *n, json_object *record, json_object *v, json_object *made, rv_err **err)
{
    const char *kind = NULL, *event = NULL;
    json_object *part = NULL;

    bool is_state = rv_json_get_text(record, "record", &kind) && strcmp(kind, "begin") == 0;
    bool is_answer = rv_json_get_text(record, "event", &event) && strcmp(event, "answer") == 0;
    int rc = 0;
    if (is_state) { /* its ids first: what was said may stand in front of them */
        rc = normal(n, v, false, &part, err);
        json_object_put(part);
    }
    if (rc == 0)
        rc = normal(n, v, !is_state && !is_answer, &part, err);
    if (rc < 0)
        return rc;
    return part ? rv_json_set_take(made, "value", part, err) : rv_json_set_null(made, "value", err);
}

/* The members but for the value are the engine's. */
static int normal_members(struct rv_normal *n, json_object *record, json_object **out, rv_err **err)
{
    json_object *made = NULL, *value = NULL;
    bool there = json_object_object_get_ex(record, "value", &value);

    json_object_get(value);
    json_object_object_del(record, "value");
    int rc = normal(n, record, false, &made, err);
    if (rc == 0 && there)
        rc = normal_value(n, record, value, made, err);
    json_object_put(value);
    if (rc < 0)
        json_object_put(made);
    else
        *out = made;
    return rc;
}

static int normal_record(struct rv_normal *n, rv_str json, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_APP_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH + 2};
    json_object *v = NULL;

    int rc = rv_json_parse(json, &opts, &v, err);
    if (rc == 0 && !n) {
        *out = v;
        return 0;
    }
    if (rc == 0) {
        static const char *const passing[] = {"seq", "now_us", "engine",
                                              "state_sha256"}; /* seq: another owner may have come between */
        for (size_t i = 0; i < RV_COUNT(passing); i++)
            json_object_object_del(v, passing[i]);
        rc = normal_members(n, v, out, err);
    }
    json_object_put(v);
    return rc;
}

/* --- where two trees differ --- */

static bool differ(json_object *a, json_object *b, struct rv_difference *out)
{
    out->a = a;
    out->b = b;
    out->a_absent = out->b_absent = false;
    return true;
}

/* Where two trees differ first, as a path ("value.outputs.plan"), and what stands there. False: they are equal. */
static bool first_difference(json_object *a, json_object *b, struct rv_difference *out);

static bool objects_differ(json_object *a, json_object *b, struct rv_difference *out)
{
    size_t len = out->path.len;

    json_object_object_foreach (a, key, value) {
        json_object *other = NULL;
        bool there = json_object_object_get_ex(b, key, &other);
        rv_buf_printf(&out->path, "%s%s", len ? "." : "", key);
        if (!there) {
            differ(value, NULL, out);
            out->b_absent = true;
            return true;
        }
        if (first_difference(value, other, out))
            return true;
        rv_buf_truncate(&out->path, len);
    }
    json_object_object_foreach (b, other_key, other_value) {
        if (json_object_object_get_ex(a, other_key, NULL))
            continue;
        rv_buf_printf(&out->path, "%s%s", len ? "." : "", other_key);
        differ(NULL, other_value, out);
        out->a_absent = true;
        return true;
    }
    return false;
}

static bool arrays_differ(json_object *a, json_object *b, struct rv_difference *out)
{
    size_t len = out->path.len, n_a = json_object_array_length(a), n_b = json_object_array_length(b);

    for (size_t i = 0; i < n_a || i < n_b; i++) {
        rv_buf_printf(&out->path, "[%zu]", i);
        json_object *in_a = i < n_a ? json_object_array_get_idx(a, i) : NULL;
        json_object *in_b = i < n_b ? json_object_array_get_idx(b, i) : NULL;
        if (i >= n_a || i >= n_b) {
            differ(in_a, in_b, out);
            out->a_absent = i >= n_a;
            out->b_absent = i >= n_b;
            return true;
        }
        if (first_difference(in_a, in_b, out))
            return true;
        rv_buf_truncate(&out->path, len);
    }
    return false;
}

static bool first_difference(json_object *a, json_object *b, struct rv_difference *out)
{
    if (json_object_is_type(a, json_type_object) && json_object_is_type(b, json_type_object))
        return objects_differ(a, b, out);
    if (json_object_is_type(a, json_type_array) && json_object_is_type(b, json_type_array))
        return arrays_differ(a, b, out);
    return rv_json_equal(a, b) ? false : differ(a, b, out);
}

/* --- the comparison --- */

struct taken {
    struct rv_app_side *side;
    bool skip;
};

static int take_record(void *self, const struct rv_record *r, rv_err **err)
{
    struct taken *t = self;
    rv_jw w = rv_jw_on(&t->side->line);

    t->skip = r->kind == RV_RECORD_OWNER || r->kind == RV_RECORD_ARTIFACT; /* it follows from the events */
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
        rc = rv_store_read(c->store, &c->scope, &(struct rv_record_range){s->row.id, s->seq, s->seq}, take_record, &t,
                           err);
        if (rc == 0 && (c->exact || !t.skip))
            return normal_record(c->exact ? NULL : s->normal, rv_buf_str(&s->line), &s->tree, err);
    }
    return rc;
}

bool rv_app_is_at_end(const struct rv_app_side *s)
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
        if (rv_app_is_at_end(&c->a) || rv_app_is_at_end(&c->b)) {
            c->same = rv_app_is_at_end(&c->a) && rv_app_is_at_end(&c->b);
            return 0;
        }
        bool differ = first_difference(c->a.tree, c->b.tree, &c->at);
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
    if (rc == 0 && !(s->normal = normal_new()))
        rc = RV_FAIL(err, RV_E_NOMEM, "compare runs");
    return rc;
}

static void side_fini(struct rv_app_side *s)
{
    rv_run_row_fini(&s->row);
    normal_free(s->normal);
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

static void write_json_side(const char *key, const char *seq, const char *record, const struct rv_app_side *s,
                            bool same, rv_jw *w)
{
    rv_jw_kv_text(w, key, s->row.id);
    if (same)
        return;
    rv_jw_key(w, seq);
    if (rv_app_is_at_end(s))
        rv_jw_null(w);
    else
        rv_jw_int(w, s->seq);
    rv_jw_key(w, record);
    if (rv_app_is_at_end(s))
        rv_jw_null(w);
    else
        rv_jw_raw(w, rv_buf_str(&s->line));
}

void rv_app_comparison_write(const struct rv_app_comparison *c, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_bool(w, "equal", c->same && c->same_bundle);
    rv_jw_kv_int(w, "same_records", c->n_same);
    write_json_side("a", "a_seq", "a_record", &c->a, c->same, w);
    write_json_side("b", "b_seq", "b_record", &c->b, c->same, w);
    if (!c->same && c->at.path.len)
        rv_jw_kv_str(w, "path", rv_buf_str(&c->at.path));
    rv_jw_key(w, "bundle");
    rv_jw_arr(w);
    for (const char *line = rv_buf_cstr(&c->bundle); *line;) {
        size_t n = strcspn(line, "\n");
        rv_jw_str(w, (rv_str){line, n});
        line += n + (line[n] == '\n');
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
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
