/* The service `dreaming.gather`: both phases of a dreaming up to the dreamer. */
#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"
#include "coreengine/app/services/services_internal.h"

static int int_of(const struct app_ask *a, const char *key, int64_t *inout, rv_err **err)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(a->args, key, &v) || !v || rv_json_get_int(a->args, key, inout))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not an integer", key);
}

static void write(const struct rv_dream_chunks *chunks, const struct rv_dream_context *c, rv_jw *w)
{
    char since[RV_TIME_MAX];

    rv_time_format(c->since_us, since);
    rv_jw_kv_bool(w, "is_empty", c->text.len == 0);
    rv_jw_key(w, "phase1");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "sessions_checked", chunks->n_checked);
    rv_jw_kv_int(w, "moments_built", chunks->n_built);
    rv_jw_obj_end(w);
    rv_jw_kv_text(w, "since", since);
    rv_jw_kv_int(w, "n_moments", c->n_moments);
    rv_jw_kv_int(w, "n_sessions", c->n_sessions);
    rv_jw_kv_int(w, "n_files", c->n_files);
    rv_jw_kv_int(w, "tokens", c->tokens);
    rv_jw_kv_str(w, "text", rv_buf_str(&c->text));
}

int app_dreaming_gather(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"days", "max_tokens"};
    int64_t days = RV_DREAM_DAYS, tokens = RV_DREAM_TOKENS, now_us = rv_app_now_us();
    struct rv_dream_chunks chunks;
    struct rv_dream_context context;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = int_of(a, "days", &days, err);
    if (rc == 0)
        rc = int_of(a, "max_tokens", &tokens, err);
    if (rc == 0)
        rc = rv_app_dream_make_chunks(a->store, &a->app.scope, now_us, &chunks, err);
    if (rc == 0)
        rc = rv_app_dream_build_context(
            a->store, &a->app.scope,
            &(const struct rv_dream_window){.days = days, .max_tokens = tokens, .now_us = now_us}, &context, err);
    if (rc < 0)
        return rc;
    write(&chunks, &context, w);
    rv_buf_fini(&context.text);
    return 0;
}
