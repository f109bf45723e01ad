/* Entities for fronts: lines of JSON into rows, words into rows. */
#include "coreengine/app/entities.h"
#include "coreengine/app/past.h"
#include "coreengine/base/base.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_AT_ONCE  200               /* in one transaction */
#define BYTES_AT_ONCE ((size_t)4 << 20) /* of rows in one transaction: it stays short for other writers */

/* --- lines --- */

struct line {
    int64_t number;
    rv_buf text;
    rv_err *why;              /* it cannot be a row, or was refused; owned */
    json_object *given, *row; /* as it was given, and as it is; owned */
};
struct lines {
    const struct rv_app_put_lines *opts;
    struct line list[ROWS_AT_ONCE];
    size_t n, bytes;
    int64_t number, n_failed;
};

static void drop_lines(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        rv_buf_fini(&l->list[i].text);
        rv_err_free(l->list[i].why);
        json_object_put(l->list[i].given);
        json_object_put(l->list[i].row);
    }
    l->n = l->bytes = 0;
}

/* 1: a line, perhaps one that is too long, of which the beginning is kept; 0: the end. */
static int read_line(struct lines *l, FILE *in, rv_err **err)
{
    struct line *at = &l->list[l->n];
    bool began = false;
    int c = 0;

    *at = (struct line){.number = l->number + 1, .text = RV_BUF_INIT(RV_APP_MAX_LINE)};
    while (c != '\n' && (c = rv_stream_getc(in)) != EOF) {
        began = true;
        rv_buf_putc(&at->text, (char)c);
    }
    if (ferror(in)) {
        rv_buf_fini(&at->text);
        return RV_FAIL_SYSTEM(err, errno, "read line %lld", (long long)at->number);
    }
    if (!began)
        return 0;
    l->number++;
    l->bytes += at->text.len;
    l->n++;
    return 1;
}

static int parse_line(struct line *at, rv_err **err)
{
    static const struct rv_json_opts opts = {.max_bytes = RV_APP_MAX_LINE, .what = "row"};
    rv_str text = rv_str_trim(rv_utf8_unmark(rv_buf_str(&at->text)));

    if (at->text.rc == RV_E_LIMIT) {
        RV_IGNORE(RV_FAIL(&at->why, RV_E_LIMIT, "the row has more than %zu bytes", RV_APP_MAX_LINE), "it is kept");
        return 0;
    }
    if (at->text.rc < 0)
        return rv_buf_check(&at->text, "line", err);
    if (text.len == 0)
        return 0;
    int rc = rv_json_parse(text, &opts, &at->given, &at->why);
    if (rc == 0 && !json_object_is_type(at->given, json_type_object)) {
        RV_IGNORE(RV_FAIL(&at->why, RV_E_INVALID, "a row is a JSON object, not %s", rv_json_type_text(at->given)),
                  "it is kept");
        json_object_put(at->given);
        at->given = NULL;
    }
    return rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "read line %lld", (long long)at->number) : 0;
}

/* What one row is refused for; anything else is the store's. */
static bool is_of_row(int rc)
{
    return rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_DENIED || rc == RV_E_EXISTS;
}

static int put_line(struct lines *l, struct line *at, rv_err **err)
{
    const struct rv_app_put_lines *o = l->opts;
    const struct rv_entities_put put = {
        .kind = o->kind, .rows = &at->given, .n_rows = 1, .now_us = rv_app_now_us(), .is_tenantless = o->is_tenantless};
    json_object *rows = NULL;
    rv_err *why = NULL;

    int rc = rv_store_put_entities(o->store, &o->scope, &put, &rows, &why);
    if (rc == 0) {
        at->row = json_object_get(json_object_array_get_idx(rows, 0));
        json_object_put(rows);
        return 0;
    }
    if (is_of_row(rc)) {
        at->why = why;
        return 0;
    }
    rv_err_pass(err, why);
    return rc;
}

/* Of an attempt before, which was rolled back. */
static void forget(struct line *at)
{
    json_object_put(at->row);
    at->row = NULL;
    if (at->given) {
        rv_err_free(at->why);
        at->why = NULL;
    }
}

static int put_lines(struct lines *l, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(l->opts->store, err);
        if (rc < 0)
            continue;
        for (size_t i = 0; i < l->n && rc == 0; i++) {
            forget(&l->list[i]);
            if (l->list[i].given)
                rc = put_line(l, &l->list[i], err);
        }
        rc = rv_store_end(l->opts->store, rc, err);
    } while (rc < 0 && rv_store_wait_again(l->opts->store, err));
    return rc;
}

static int flush_lines(struct lines *l, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < l->n && rc == 0; i++)
        rc = parse_line(&l->list[i], err);
    if (rc == 0 && l->n > 0)
        rc = put_lines(l, err);
    for (size_t i = 0; i < l->n && rc == 0; i++) {
        struct line *at = &l->list[i];
        l->n_failed += at->why != NULL;
        if (at->row || at->why)
            rc = l->opts->on_row(l->opts->self, at->number, at->row, at->why, err);
    }
    drop_lines(l);
    return rc;
}

int rv_app_put_lines(const struct rv_app_put_lines *opts, FILE *in, int64_t *n_failed, rv_err **err)
{
    const struct rv_kind *kind = NULL;
    struct lines *l = calloc(1, sizeof *l);
    int rc = l ? rv_kind_of(rv_str_of(opts->kind), &kind, err) : RV_FAIL(err, RV_E_NOMEM, "read rows");
    int more = 1;

    if (l)
        l->opts = opts;
    while (rc == 0 && more == 1) {
        more = read_line(l, in, err);
        if (more < 0)
            rc = more;
        else if (more == 0 || l->n == ROWS_AT_ONCE || l->bytes > BYTES_AT_ONCE)
            rc = flush_lines(l, err);
    }
    if (l) {
        *n_failed = l->n_failed;
        drop_lines(l);
    }
    free(l);
    return rc;
}

/* --- words --- */

struct showing {
    const char *kind;
    struct place {
        const struct rv_kind *kind;
        int64_t row;
    } list[64];
    size_t n;
};

static int take_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    struct showing *s = self;

    (void)err;
    if (s->kind && strcmp(s->kind, hit->kind->name) != 0)
        return 0;
    s->list[s->n++] = (struct place){hit->kind, hit->row};
    return s->n == RV_COUNT(s->list) ? RV_STORE_ENOUGH : 0;
}

static int push(json_object *out, const char *kind, json_object *data, rv_err **err)
{
    json_object *hit = json_object_new_object();
    int rc = hit ? rv_json_set_text(hit, "entity_type", kind, err) : RV_FAIL(err, RV_E_NOMEM, "show a row");

    if (rc == 0)
        rc = rv_json_set_take(hit, "data", data, err);
    else
        json_object_put(data);
    if (rc == 0)
        return rv_json_push_take(out, hit, err);
    json_object_put(hit);
    return rc;
}

static int load_hits(rv_store *store, const struct rv_store_scope *scope, const struct showing *s, json_object *out,
                     rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < s->n && rc == 0; i++) {
        json_object *data = NULL;
        rv_err *why = NULL;
        rc = rv_store_load_entity(store, scope, s->list[i].kind->name, s->list[i].row, &data, &why);
        if (rc == 0) {
            rc = push(out, s->list[i].kind->name, data, err);
        } else if (rc == RV_E_NOT_FOUND) { /* deleted meanwhile */
            rv_err_free(why);
            rc = 0;
        } else {
            rv_err_pass(err, why);
        }
    }
    return rc;
}

static int show_by_id(rv_store *store, const struct rv_store_scope *scope, const char *kind, const char *id,
                      json_object *out, rv_err **err)
{
    json_object *data = NULL;
    int rc = rv_store_get_entity(store, scope, kind, id, &data, err);

    return rc == 0 ? push(out, kind, data, err) : rc;
}

int rv_app_entities_show(rv_store *store, const struct rv_store_scope *scope, const char *kind, const char *word,
                         json_object **out, rv_err **err)
{
    struct showing s = {.kind = kind};
    const struct rv_kind *known = NULL;
    json_object *rows = json_object_new_array();
    int rc = rows ? 0 : RV_FAIL(err, RV_E_NOMEM, "show a row");

    if (rc == 0 && kind)
        rc = rv_kind_of(rv_str_of(kind), &known, err);
    if (rc == 0)
        rc = rv_store_lookup(store, scope, rv_str_of(word), take_hit, &s, err);
    if (rc == 0)
        rc = load_hits(store, scope, &s, rows, err);
    if (rc == 0 && json_object_array_length(rows) == 0) {
        rc = kind ? show_by_id(store, scope, kind, word, rows, err)
                  : RV_FAIL(err, RV_E_NOT_FOUND, "nothing is called \"%s\"", word);
        if (rc == RV_E_NOT_FOUND)
            rv_err_set_hint(err, "`reeve entities list KIND` lists rows; with --tenant or --user only theirs");
    }
    if (rc == 0)
        *out = rows;
    else
        json_object_put(rows);
    return rc;
}

int rv_app_entity_parse_value(const char *kind, const char *column, const char *text, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {.what = "value"};
    const struct rv_kind *known = NULL;
    int rc = rv_kind_of(rv_str_of(kind), &known, err);

    if (rc < 0)
        return rc;
    const struct rv_kind_field *f = rv_kind_find_field(known, rv_str_of(column));
    bool is_text =
        f ? f->type == RV_KIND_TEXT || f->type == RV_KIND_ID || f->type == RV_KIND_TIME || f->type == RV_KIND_TEXTS
          : strcmp(column, "metadata") != 0 && strcmp(column, "graph_edges") != 0;
    *out = NULL;
    if (strcmp(text, "null") == 0)
        return 0;
    if (!is_text)
        return rv_json_parse(rv_str_of(text), &opts, out, err);
    *out = json_object_new_string(text);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a value");
}
