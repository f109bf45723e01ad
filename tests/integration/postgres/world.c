#include "tests/integration/postgres/world.h"

const struct rv_store_scope operator_scope = {NULL, NULL};

void world_open(struct world *w, const struct rv_kit_postgres *server)
{
    const struct rv_store_opts opts = {.sync = server ? RV_STORE_SYNC_FULL : RV_STORE_SYNC_OFF};

    *w = (struct world){.server = server ? server : rv_kit_postgres()};
    w->url = rv_kit_postgres_url(w->server);
    OK(rv_store_open(w->url, &opts, &w->s, &w->err));
    OK(rv_store_put_blob(w->s, RV_STR_LIT("the bundle"), w->bundle, &w->err));
}

void world_close(struct world *w)
{
    if (w->s)
        OK(rv_store_check(w->s, &w->err));
    rv_store_close(w->s);
    free(w->url);
    rv_err_free(w->err);
}

rv_store *world_by(struct world *w, const char *folder, const struct rv_store_opts *opts)
{
    const char *host = strstr(w->url, "host=") + 5;
    rv_buf url = RV_BUF_INIT(1000);
    rv_store *s = NULL;

    rv_buf_add(&url, w->url, (size_t)(host - w->url));
    rv_buf_printf(&url, "%s%s", folder, strchr(host, '&'));
    OK(rv_store_open(rv_buf_cstr(&url), opts, &s, &w->err));
    rv_buf_fini(&url);
    return s;
}

void must_ok(struct world *w, int rc, const char *what, int line)
{
    const rv_err *link = w->err;

    while (rv_err_cause(link))
        link = rv_err_cause(link);
    ck_assert_msg(rc == 0, "line %d: %s: %s: %s", line, what, rv_code_text(rc), rv_err_text(link));
}

static bool is_hinted(const rv_err *err, const char *hint)
{
    for (; err; err = rv_err_cause(err))
        if (rv_err_hint_text(err) && strstr(rv_err_hint_text(err), hint))
            return true;
    return false;
}

void must_fail(struct world *w, int rc, int code, const char *part, const char *hint, int line)
{
    const rv_err *link = w->err;

    ck_assert_msg(rc == code, "line %d: %s, not %s: %s", line, rv_code_text(rc), rv_code_text(code),
                  w->err ? rv_kit_err_take(w->err) : "");
    while (link && !strstr(rv_err_text(link), part))
        link = rv_err_cause(link);
    ck_assert_msg(link, "line %d: nothing about \"%s\": %s", line, part, rv_kit_err_take(w->err));
    ck_assert_msg(!hint || is_hinted(w->err, hint), "line %d: no hint says \"%s\"", line, hint);
    rv_err_free(w->err);
    w->err = NULL;
}

int world_create(struct world *w, rv_store *s, const char *id, rv_err **err)
{
    static const struct rv_record first = {.seq = 1, .kind = 1, .body = {"body 1", 6}};
    const struct rv_store_new_run run = {.id = id,
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
                                         .n_records = 1};

    return rv_store_create_run(s, &run, err);
}

int world_append(rv_store *s, const char *run, int64_t fence, int64_t seq, int n, rv_err **err)
{
    struct rv_record records[10];
    char bodies[10][40];
    const struct rv_store_append a = {.run = run,
                                      .fence = fence,
                                      .records = records,
                                      .n_records = (size_t)n,
                                      .now_us = T0 + seq,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a"};

    for (int i = 0; i < n; i++) {
        snprintf(bodies[i], sizeof bodies[i], "body %lld", (long long)seq + 1 + i);
        records[i] = (struct rv_record){.seq = seq + 1 + i, .kind = 1, .body = rv_str_of(bodies[i])};
    }
    return rv_store_append(s, &a, err);
}

static int look(void *self, const struct rv_record *r, rv_err **err)
{
    int64_t *n = self;
    char want[40];

    (void)err;
    snprintf(want, sizeof want, "body %lld", (long long)++*n);
    ck_assert_int_eq(r->seq, *n);
    ck_assert_msg(rv_str_is(r->body, want), "record %lld is \"%.*s\"", (long long)*n, RV_STR_ARG(r->body));
    return 0;
}

int64_t world_count(struct world *w, const char *run)
{
    int64_t n = 0;
    int rc = rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = run, .from = 1}, look, &n, &w->err);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(w->err);
        w->err = NULL;
        return -1;
    }
    must_ok(w, rc, "read", __LINE__);
    return n;
}
