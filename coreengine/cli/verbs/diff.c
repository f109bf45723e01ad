/* reeve diff: where two runs part. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define N_CONTEXT 2   /* equal records that are shown before the first difference */
#define SHOWN     600 /* bytes of a record that people see */

/* One run, record by record. */
struct side {
    struct rv_run_row row;
    rv_normal *normal;
    int64_t seq;       /* of the record at hand; above n_records: the end was passed */
    rv_buf line;       /* it as JSON */
    json_object *tree; /* it, made comparable unless --exact */
};

struct comparison {
    rv_store *store;
    struct rv_store_scope scope;
    bool exact;
    struct side a, b;
    int64_t n_same;
    char *context[N_CONTEXT]; /* the last equal ones; owned */
    bool same, same_bundle;
    struct rv_difference at;
    rv_buf bundle; /* what differs between the bundles, a name a line */
};

struct taken {
    struct side *side;
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

/* The next record; who went on with a run is no difference. */
static int next_record(const struct comparison *c, struct side *s, rv_err **err)
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

static bool at_end(const struct side *s)
{
    return s->seq > s->row.n_records;
}

static int remember(struct comparison *c, rv_err **err)
{
    char *line = rv_str_dup(rv_buf_str(&c->a.line));

    if (!line)
        return RV_FAIL(err, RV_E_NOMEM, "compare runs");
    free(c->context[0]);
    memmove(c->context, c->context + 1, sizeof c->context - sizeof *c->context);
    c->context[N_CONTEXT - 1] = line;
    c->n_same++;
    return 0;
}

static int compare_records(struct comparison *c, rv_err **err)
{
    int rc = 0;

    for (;;) {
        rc = next_record(c, &c->a, err);
        if (rc == 0)
            rc = next_record(c, &c->b, err);
        if (rc < 0)
            return rc;
        if (at_end(&c->a) || at_end(&c->b)) {
            c->same = at_end(&c->a) && at_end(&c->b);
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

static int compare_bundles(struct comparison *c, rv_err **err)
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

/* --- printing --- */

static void write_side(const char *mark, const struct side *s, rv_buf *b)
{
    rv_buf_printf(b, "%s %s  %s  %s, %lld records\n", mark, s->row.id, s->row.pipeline,
                  rv_run_status_text(s->row.status), (long long)s->row.n_records);
}

static void write_line(const char *mark, rv_str line, rv_buf *b)
{
    rv_buf_printf(b, "%s ", mark);
    rv_cli_write_preview(line, SHOWN, b);
    rv_buf_putc(b, '\n');
}

static void write_value(const char *mark, json_object *value, bool absent, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (absent)
        rv_buf_puts(&text, "(absent)");
    else
        rv_json_write(value, &text);
    write_line(mark, rv_buf_str(&text), b);
    rv_buf_fini(&text);
}

static void write_bundle_lines(const struct comparison *c, rv_buf *b)
{
    for (const char *line = rv_buf_cstr(&c->bundle); *line;) {
        size_t n = strcspn(line, "\n");
        rv_buf_printf(b, "bundles differ in %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void write_text(const struct rv_cli *cli, const struct comparison *c, rv_buf *b)
{
    const char *red = cli->out_color ? "\033[31m-" : "-", *green = cli->out_color ? "\033[32m+" : "+",
               *plain = cli->out_color ? "\033[0m" : "";

    if (c->same && c->same_bundle) {
        rv_buf_printf(b, "equal: %lld records\n", (long long)c->n_same);
        return;
    }
    write_side("-", &c->a, b);
    write_side("+", &c->b, b);
    write_bundle_lines(c, b);
    rv_buf_printf(b, "%lld records are the same\n", (long long)c->n_same);
    if (c->same)
        return;
    for (size_t i = 0; i < N_CONTEXT; i++)
        if (c->context[i])
            write_line(" ", rv_str_of(c->context[i]), b);
    write_line(red, at_end(&c->a) ? RV_STR_LIT("(the end)") : rv_buf_str(&c->a.line), b);
    write_line(green, at_end(&c->b) ? RV_STR_LIT("(the end)") : rv_buf_str(&c->b.line), b);
    rv_buf_puts(b, plain);
    if (c->at.path.len) {
        rv_buf_printf(b, "they differ at %s\n", rv_buf_cstr(&c->at.path));
        write_value(red, c->at.a, c->at.a_absent, b);
        write_value(green, c->at.b, c->at.b_absent, b);
        rv_buf_puts(b, plain);
    }
}

static void write_json_side(const char *key, const char *seq, const char *record, const struct side *s, bool same,
                            rv_jw *w)
{
    rv_jw_kv_text(w, key, s->row.id);
    if (same)
        return;
    rv_jw_key(w, seq);
    if (at_end(s))
        rv_jw_null(w);
    else
        rv_jw_int(w, s->seq);
    rv_jw_key(w, record);
    if (at_end(s))
        rv_jw_null(w);
    else
        rv_jw_raw(w, rv_buf_str(&s->line));
}

static void write_json(const struct comparison *c, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_bool(&w, "equal", c->same && c->same_bundle);
    rv_jw_kv_int(&w, "same_records", c->n_same);
    write_json_side("a", "a_seq", "a_record", &c->a, c->same, &w);
    write_json_side("b", "b_seq", "b_record", &c->b, c->same, &w);
    if (!c->same && c->at.path.len)
        rv_jw_kv_str(&w, "path", rv_buf_str(&c->at.path));
    rv_jw_key(&w, "bundle");
    rv_jw_arr(&w);
    for (const char *line = rv_buf_cstr(&c->bundle); *line;) {
        size_t n = strcspn(line, "\n");
        rv_jw_str(&w, (rv_str){line, n});
        line += n + (line[n] == '\n');
    }
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    rv_buf_putc(b, '\n');
}

static int open_side(struct comparison *c, struct side *s, const char *word, rv_err **err)
{
    s->line = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = rv_app_find_run(c->store, &c->scope, word, &s->row, err);
    if (rc == 0 && !(s->normal = rv_normal_new()))
        rc = RV_FAIL(err, RV_E_NOMEM, "compare runs");
    return rc;
}

static void side_fini(struct side *s)
{
    rv_run_row_fini(&s->row);
    rv_normal_free(s->normal);
    rv_buf_fini(&s->line);
    json_object_put(s->tree);
}

static int diff(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct comparison c = {.scope = rv_cli_scope(args),
                           .exact = rv_cli_flag(args, "exact"),
                           .at.path = RV_BUF_INIT(1 << 20),
                           .bundle = RV_BUF_INIT(16 << 20)};
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_READ, &c.store, &status))
        return status;
    int rc = open_side(&c, &c.a, args->words[0], &err);
    if (rc == 0)
        rc = open_side(&c, &c.b, args->words[1], &err);
    if (rc == 0)
        rc = compare_bundles(&c, &err);
    if (rc == 0)
        rc = compare_records(&c, &err);
    if (rc < 0) {
        status = rv_cli_report(cli, err);
    } else {
        rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
        if (rv_cli_flag(args, "json"))
            write_json(&c, &text);
        else
            write_text(cli, &c, &text);
        status = rv_cli_print(cli, &text);
        if (status == RV_EXIT_COMPLETED && !(c.same && c.same_bundle))
            status = RV_EXIT_FAILED;
    }
    side_fini(&c.a);
    side_fini(&c.b);
    for (size_t i = 0; i < N_CONTEXT; i++)
        free(c.context[i]);
    rv_buf_fini(&c.at.path);
    rv_buf_fini(&c.bundle);
    rv_store_close(c.store);
    return status;
}

static const struct rv_cli_option diff_options[] = {
    {"exact", 0, NULL, "compare bytes: ids, times and owners count", NULL, false},
    {"json", 'j', NULL, "as one JSON object", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_diff = {
    .name = "diff",
    .args = "RUN RUN",
    .summary = "where two runs part",
    .text =
        "Compares what two runs were started with and told, record by record, and shows the first difference on both\n"
        "sides with the member that differs. Ids, times and owners, which always differ, are passed over. Exit status\n"
        "0 if they are equal, 1 if not.",
    .examples = "reeve diff env_1a env_2b\n"
                "reeve diff last env_1a --json | jq .path",
    .options = diff_options,
    .n_options = RV_COUNT(diff_options),
    .min_words = 2,
    .max_words = 2,
    .takes = &rv_cli_takes_runs,
    .run = diff,
};
