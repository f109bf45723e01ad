/* See quotas.h. */
#include "tests/contract/store/quotas.h"

static int see(void *self, const struct rv_usage_row *row, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, "%s%s %s %s %lld+%lld", ((rv_buf *)self)->len ? " " : "",
                  row->is_tenants ? "="
                  : row->user[0]  ? row->user
                                  : "-",
                  rv_quota_kind_text(row->kind), rv_quota_span_text(row->span), (long long)row->used,
                  (long long)row->reserved);
    return 0;
}

void usage_is(struct world *w, const struct rv_store_scope *scope, int64_t now_us, const char *text, int line)
{
    rv_buf seen = RV_BUF_INIT(1 << 20);

    must_ok(w, rv_store_list_usage(w->s, scope, now_us, see, &seen, &w->err), "list usage", line);
    ck_assert_msg(strcmp(rv_buf_cstr(&seen), text) == 0, "line %d: \"%s\", not \"%s\"", line, rv_buf_cstr(&seen), text);
    rv_buf_fini(&seen);
}
