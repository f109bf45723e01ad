#include "tests/contract/store/world.h"

#include "tests/kit/postgres.h"

const struct store_impl store_impls[] = {
    {"memory", "memory:", .gives_back = true},
    {"sqlite", "sqlite:", .is_shared = true, .gives_back = true},
    {"postgres", NULL, .is_shared = true},
};
int first_store_impl = 0, n_store_impls = (int)RV_COUNT(store_impls) - 1;
const struct rv_store_scope operator_scope = {NULL, NULL};

/* Before Check counts the cases. PostgreSQL has a test of its own: its driver depends on no compiler and a handle is
 * one thread's, so that sanitizers learn nothing from its server, which takes most of the time. */
__attribute__((constructor)) static void choose_stores(void)
{
    const char *which = getenv("REEVE_STORES");

    if (which && strcmp(which, "postgres") == 0) {
        first_store_impl = (int)RV_COUNT(store_impls) - 1;
        n_store_impls = (int)RV_COUNT(store_impls);
    }
}

void worlds_begin(void)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    char url[400];
    rv_store *s = NULL;

    if (store_impls[n_store_impls - 1].scheme)
        return;
    snprintf(url, sizeof url, "%s&schema=fresh", rv_kit_postgres()->url);
    if (rv_store_open(url, &opts, &s, NULL) < 0)
        rv_kit_die("cannot open %s", url);
    rv_store_close(s);
}

static rv_store *open_store(struct world *w)
{
    rv_store *s = NULL;
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};

    OK(rv_store_open(w->url, &opts, &s, &w->err));
    return s;
}

void world_open(struct world *w, int i)
{
    *w = (struct world){.impl = &store_impls[i], .dir = rv_kit_tmpdir()};
    if (!w->impl->scheme) {
        w->url = rv_kit_postgres_url(rv_kit_postgres());
    } else if (w->impl->is_shared) {
        char *path = rv_kit_path(w->dir, "store.db");
        size_t size = strlen(path) + strlen(w->impl->scheme) + 1;
        w->url = malloc(size);
        ck_assert_ptr_nonnull(w->url);
        snprintf(w->url, size, "%s%s", w->impl->scheme, path);
        free(path);
    } else {
        w->url = rv_str_dup(rv_str_of(w->impl->scheme));
    }
    w->s = open_store(w);
    OK(rv_store_put_blob(w->s, RV_STR_LIT("the bundle"), w->bundle, &w->err));
}

rv_store *world_other(struct world *w)
{
    return open_store(w);
}

void world_close(struct world *w)
{
    OK(rv_store_check(w->s, &w->err));
    rv_store_close(w->s);
    if (!w->impl->scheme)
        rv_kit_postgres_reuse(rv_kit_postgres(), w->url);
    rv_kit_tmpdir_remove(w->dir);
    free(w->url);
    rv_err_free(w->err);
}

static void forget(struct world *w)
{
    rv_err_free(w->err);
    w->err = NULL;
}

void must_ok(struct world *w, int rc, const char *what, int line)
{
    const rv_err *link = w->err;

    while (rv_err_cause(link))
        link = rv_err_cause(link);
    ck_assert_msg(rc == 0 && !w->err, "line %d: %s: %s: %d %s", line, w->impl->name, what, rc, rv_err_text(link));
}

void must_fail(struct world *w, int rc, int code, const char *what, int line)
{
    ck_assert_msg(rc == code, "line %d: %s: %s: %d (%s), not %s", line, w->impl->name, what, rc, rv_err_text(w->err),
                  rv_code_text(code));
    ck_assert_msg(rv_err_code(w->err) == code && *rv_err_text(w->err), "line %d: %s: no error", line, what);
    forget(w);
}

void must_say(struct world *w, int rc, int code, const char *part, int line)
{
    const rv_err *link = w->err;

    while (link && !strstr(rv_err_text(link), part))
        link = rv_err_cause(link);
    ck_assert_msg(link, "line %d: %s: nothing about \"%s\": %s", line, w->impl->name, part, rv_err_text(w->err));
    must_fail(w, rc, code, part, line);
}

struct rv_store_new_run world_run(struct world *w, const char *id)
{
    static const struct rv_record first = {.seq = 1, .kind = 7, .body = {"one", 3}};

    return (struct rv_store_new_run){
        .id = id,
        .user = "u",
        .session = "s",
        .pipeline = "p",
        .bundle = w->bundle,
        .status = RV_RUN_RUNNING,
        .stage = "a",
        .owner = "A",
        .now_us = T0,
        .lease_until_us = T0 + 100,
        .records = &first,
        .n_records = 1,
    };
}

void make_run(struct world *w, const char *id)
{
    struct rv_store_new_run run = world_run(w, id);

    OK(rv_store_create_run(w->s, &run, &w->err));
}

struct rv_store_append world_append(const char *run, int64_t fence, struct rv_record *r, int64_t seq, const char *body)
{
    *r = (struct rv_record){.seq = seq, .kind = 8, .body = rv_str_of(body)};
    return (struct rv_store_append){
        .run = run,
        .fence = fence,
        .records = r,
        .n_records = 1,
        .now_us = T0 + seq,
        .status = RV_RUN_RUNNING,
        .stage = "b",
    };
}

int append(struct world *w, const char *run, int64_t fence, int64_t seq, const char *body, const char *value)
{
    struct rv_record r;
    struct rv_store_append a = world_append(run, fence, &r, seq, body);

    r.value = rv_str_of(value);
    return rv_store_append(w->s, &a, &w->err);
}

static int seen_one(struct seen *seen)
{
    return ++seen->n == seen->stop_at ? seen->code : 0;
}

int see_record(void *self, const struct rv_record *r, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%lld:%.*s", seen->n ? " " : "", (long long)r->seq, RV_STR_ARG(r->body));
    if (r->value.ptr)
        rv_buf_printf(&seen->text, "=%.*s", RV_STR_ARG(r->value));
    return seen_one(seen);
}

int see_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    return see_id(self, row->id, err);
}

int see_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s/%s:%.*s", seen->n ? " " : "", p->run, p->id, RV_STR_ARG(p->text));
    return seen_one(seen);
}

int see_id(void *self, const char *id, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s", seen->n ? " " : "", id);
    return seen_one(seen);
}

void must_see(struct seen *seen, const char *text, int line)
{
    ck_assert_msg(strcmp(rv_buf_cstr(&seen->text), text) == 0, "line %d: saw \"%s\", not \"%s\"", line,
                  rv_buf_cstr(&seen->text), text);
    rv_buf_fini(&seen->text);
    *seen = SEEN_INIT;
}

void records_are(struct world *w, const char *run, const char *text, int line)
{
    struct seen seen = SEEN_INIT;

    must_ok(w,
            rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = run, .from = 1}, see_record, &seen,
                          &w->err),
            "read", line);
    must_see(&seen, text, line);
}

void make_session(struct world *w, const char *id, const char *user)
{
    const struct rv_session_row fresh = {.id = id, .tenant = RV_STORE_TENANT, .user = user, .created_us = T0};

    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
}

struct rv_message world_message(const char *id, const char *type, const char *content)
{
    return (struct rv_message){
        .id = id, .type = type, .has_content = content != NULL, .content = rv_str_of(content), .token_count = RV_UNSET};
}

size_t world_rows(struct rv_message rows[WORLD_ROWS], rv_arena *room, const char *prefix, const char *text)
{
    size_t n = 0;

    while (*text) {
        size_t len = strcspn(text, " "), type = strcspn(text, ":= ");
        char id[64];
        ck_assert_uint_lt(n, WORLD_ROWS);
        snprintf(id, sizeof id, "%s%zu", prefix, n + 1);
        rows[n] = world_message(rv_arena_dup(room, rv_str_of(id)), rv_arena_dup(room, (rv_str){text, type}), NULL);
        rows[n].has_content = type < len;
        if (type < len)
            rows[n].content = rv_str_of(rv_arena_dup(room, (rv_str){text + type + 1, len - type - 1}));
        n++;
        text += len;
        text += *text == ' ';
    }
    return n;
}

int add_rows(struct world *w, const char *session, const char *prefix, const char *text)
{
    struct rv_message rows[WORLD_ROWS];
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_turn turn = {.session = session, .rows = rows, .n_rows = world_rows(rows, room, prefix, text)};
    int rc = rv_store_add_messages(w->s, &operator_scope, &turn, T0 + 1, &w->err);

    rv_arena_free(room);
    return rc;
}

int see_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    return see_id(self, row->id, err);
}

int see_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%lld:%s", seen->n ? " " : "", (long long)m->seq, m->type);
    if (m->has_content)
        rv_buf_printf(&seen->text, "=%.*s", RV_STR_ARG(m->content));
    return seen_one(seen);
}

int see_schema(void *self, const struct rv_schema_row *row, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s/%s", seen->n ? " " : "", row->name, row->user);
    return seen_one(seen);
}

void messages_are(struct world *w, const char *session, const char *text, int line)
{
    const struct rv_message_filter all = {.with_children = true};
    struct seen seen = SEEN_INIT;

    must_ok(w,
            rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){session, &all}, see_message,
                                   &seen, &w->err),
            "read", line);
    must_see(&seen, text, line);
}

json_object *world_half(struct world *w, const char *name)
{
    static char text[RV_STORE_MAX_META * 6 / 10];
    json_object *half = json_object_new_object();

    ck_assert_ptr_nonnull(half);
    memset(text, 'x', sizeof text);
    OK(rv_json_set_str(half, name, (rv_str){text, sizeof text}, &w->err));
    return half;
}

void session_is(struct world *w, const char *id, const char *text, int line)
{
    struct rv_session_row row = {0};
    char got[1000];

    must_ok(w, rv_store_get_session(w->s, &operator_scope, id, &row, &w->err), "get session", line);
    snprintf(got, sizeof got, "%s %s %lld %lld %.*s", row.name, row.mode, (long long)row.total_tokens,
             (long long)row.n_messages, RV_STR_ARG(row.metadata));
    ck_assert_msg(strcmp(got, text) == 0, "line %d: session is \"%s\", not \"%s\"", line, got, text);
    rv_session_row_fini(&row);
}
