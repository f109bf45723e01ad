/* What filters read from their input, once its shape is known to be right. */
#include "coreengine/app/fn/fn_internal.h"

#include <stdlib.h>

#define MAX_CONFIG_BYTES RV_YAML_MAX_BYTES

rv_str rv_fn_str(json_object *in, const char *key)
{
    json_object *v = rv_fn_any(in, key);
    return json_object_is_type(v, json_type_string) ? rv_json_str(v) : (rv_str){NULL, 0};
}

bool rv_fn_flag(json_object *in, const char *key)
{
    bool flag = false;
    return rv_json_get_bool(in, key, &flag) && flag;
}

json_object *rv_fn_any(json_object *in, const char *key)
{
    json_object *v = NULL;
    return json_object_object_get_ex(in, key, &v) ? v : NULL;
}

int rv_fn_words(json_object *in, const char *key, const char ***out, size_t *n, rv_err **err)
{
    json_object *list = rv_json_get_arr(in, key);
    size_t count = list ? json_object_array_length(list) : 0;
    const char **words = calloc(count + 1, sizeof *words);

    if (!words)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", key);
    for (size_t i = 0; i < count; i++)
        words[i] = rv_json_str(json_object_array_get_idx(list, i)).ptr;
    *out = words;
    *n = count;
    return 0;
}

int rv_fn_source(json_object *in, struct rv_fn_source *out, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    rv_str now = rv_fn_str(in, "now");
    int64_t seed = 0;

    out->now_us = clock.now_us(clock.self);
    out->rand = rv_json_get_int(in, "seed", &seed) ? rv_rand_seeded(&out->state, (uint64_t)seed) : rv_rand_system();
    return now.ptr ? rv_time_parse(now, &out->now_us, err) : 0;
}

int rv_fn_envelope(json_object *state, json_object *in, rv_envelope **out, rv_err **err)
{
    struct rv_fn_source source;
    int rc = rv_fn_source(in, &source, err);
    return rc < 0 ? rc : rv_envelope_load(state, source.rand, source.now_us, out, err);
}

void rv_fn_write_state(const rv_envelope *env, rv_jw *w)
{
    rv_buf text = RV_BUF_INIT(RV_FN_MAX_REPLY);

    rv_envelope_write_state(env, &text);
    if (text.rc < 0)
        w->out->rc = text.rc;
    else
        rv_jw_raw(w, rv_buf_str(&text));
    rv_buf_fini(&text);
}

int rv_fn_pipeline(json_object *config, struct rv_pipeline **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_CONFIG_BYTES);
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the pipeline");

    rv_json_write(config, &text); /* JSON is YAML */
    if (rc == 0)
        rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_pipeline_parse(rv_buf_str(&text), "pipeline", ".", findings, &p, err);
    if (rc == 0)
        rc = rv_app_findings_error(findings, err);
    if (rc == 0 && (!p || !p->is_sound))
        rc = RV_FAIL(err, RV_E_INVALID, "the pipeline is empty");
    if (rc < 0)
        rv_pipeline_free(p);
    else
        *out = p;
    rv_findings_free(findings);
    rv_buf_fini(&text);
    return rc;
}

int rv_fn_response(json_object *json, struct rv_response *out, rv_err **err)
{
    int rc = rv_fn_check_shape("{text?: string, approved?: bool, decision?: string, data?: object}", json, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "response");
    *out = (struct rv_response){.text = rv_fn_str(json, "text"),
                                .decision = rv_fn_str(json, "decision"),
                                .data = rv_json_get_obj(json, "data")};
    out->has_approved = rv_json_get_bool(json, "approved", &out->approved);
    return 0;
}
