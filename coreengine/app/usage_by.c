/* What answers took, by user, agent and model: sums over the messages of the store. */
#include <string.h>

#include "coreengine/app/entities.h"

#define MAX_SQL ((size_t)4096) /* bytes of the statement: one for each choice of columns, all ours */

int rv_app_usage_by_parse(const char *words, struct rv_app_usage_by *out, rv_err **err)
{
    *out = (struct rv_app_usage_by){.user = false};
    for (const char *p = words; *p;) {
        rv_str word = {p, strcspn(p, ",")};
        if (rv_str_is(word, "user"))
            out->user = true;
        else if (rv_str_is(word, "agent"))
            out->agent = true;
        else if (rv_str_is(word, "model"))
            out->model = true;
        else
            return RV_FAIL(err, RV_E_INVALID, "\"%.40s\": write user, agent, model, or some of them with commas",
                           words);
        p += word.len + (p[word.len] == ',');
    }
    return 0;
}

static void add_column(rv_buf *list, const char *column)
{
    rv_buf_printf(list, "%s%s", list->len > 0 ? ", " : "", column);
}

static void add_time(rv_buf *sql, const char *compare, int64_t us)
{
    char text[RV_TIME_MAX];

    if (us <= 0)
        return;
    rv_time_format(us, text);
    rv_buf_printf(sql, " AND created_at %s '%s'", compare, text);
}

int rv_app_build_usage(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_usage_by *by,
                       json_object **out, rv_err **err)
{
    rv_buf list = RV_BUF_INIT(200), sql = RV_BUF_INIT(MAX_SQL);

    if (by->user)
        add_column(&list, "user_id");
    if (by->agent)
        add_column(&list, "agent_name");
    if (by->model)
        add_column(&list, "model");
    rv_buf_printf(&sql,
                  "SELECT %s%scount(*) AS answers, coalesce(sum(input_tokens), 0) AS input_tokens, "
                  "coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(latency_ms), 0) AS latency_ms "
                  "FROM messages WHERE message_type = 'assistant'",
                  rv_buf_cstr(&list), list.len > 0 ? ", " : "");
    add_time(&sql, ">=", by->since_us);
    add_time(&sql, "<", by->until_us);
    if (list.len > 0)
        rv_buf_printf(&sql, " GROUP BY %s ORDER BY %s", rv_buf_cstr(&list), rv_buf_cstr(&list));
    int rc = rv_buf_check(list.rc < 0 ? &list : &sql, "a statement", err);
    if (rc == 0)
        rc = rv_app_select(store, scope, rv_buf_str(&sql), out, NULL, err);
    if (rc == RV_E_LIMIT)
        rv_err_set_hint(err, "ask for a shorter time, or for fewer columns");
    rv_buf_fini(&list);
    rv_buf_fini(&sql);
    return rc;
}
