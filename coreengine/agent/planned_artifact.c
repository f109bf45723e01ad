/* The artifact of a call of a plan. It is found in the result when the call gets its entry, so that a hook that
 * replaces the result replaces the artifact too, and it is told and kept when the entry is final. Whatever is wrong
 * with it is a warning and never a failure of the call. Ids that no result gave follow from the run and from the place
 * of the call: a replay makes the same ones. */
#include "coreengine/agent/tools_internal.h"

#include "coreengine/base/base.h"
#include "coreengine/plan/plan.h"

#define MAX_ID 256 /* bytes of an id that a result gives: people type it, and each line of a list has it */

/* Members of the artifact of an entry until it is told. */
#define PARTS    "parts"
#define METADATA "metadata"
#define WARNING  "warning"

/* Large, and the same for each call of a tool: kept with the parts, which are stored once for equal ones. */
static const char *const shared_members[] = {"mcp_schema", "rendering_hints"};

/* --- which results have one --- */

/* The result as `tools/call` would give it. A capability has no structured content beside its data: its data counts
 * where the tool says that it makes artifacts, or wraps one. *result is the caller's; NULL: it has none. */
static int result_of(const struct rv_tool_info *info, json_object *raw, bool is_result, json_object *entry,
                     json_object **result, rv_err **err)
{
    json_object *data = planned_output_of(entry), *made;

    *result = is_result ? json_object_get(raw) : NULL;
    if (is_result || !(rv_artifact_is_declared(info->output_json) || rv_artifact_is_wrapped(data)))
        return 0;
    made = json_object_new_object();
    int rc =
        made ? rv_json_set_ref(made, "structuredContent", data, err) : RV_FAIL(err, RV_E_NOMEM, "read an artifact");
    if (rc < 0)
        json_object_put(made);
    else
        *result = made;
    return rc;
}

/* A UUID of version 4 by its form; what is random in it is the id of the run. */
static int write_fresh_id(const rv_visit *v, size_t index, rv_buf *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    char hash[RV_HASH_MAX], id[RV_UUID_MAX];
    unsigned char bytes[16];

    rv_buf_printf(&text, "artifact\n%s\n%s\n%016llx\n%lld\n%zu", rv_envelope_fields(v->env)->envelope_id,
                  v->agent->name, (unsigned long long)visit_identity(v), (long long)v->visit_no,
                  v->model.steps_before + index);
    int rc = rv_buf_check(&text, "the id of an artifact", err);
    rv_hash_format(rv_buf_str(&text), hash);
    rv_buf_fini(&text);
    hash[16] = "89ab"[hash[16] & 3]; /* of the character, as in journals of before */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(rv_hex_digit(hash[2 * i]) << 4 | rv_hex_digit(hash[2 * i + 1]));
    rv_uuid_format(bytes, 4, id);
    rv_buf_puts(out, id);
    return rc == 0 ? rv_buf_check(out, "the id of an artifact", err) : rc;
}

static bool is_id_fit(json_object *id)
{
    rv_str text = rv_json_str(id);

    for (size_t i = 0; i < text.len; i++)
        if (rv_utf8_control(text.ptr + i, text.len - i) > 0)
            return false;
    return text.len <= MAX_ID;
}

static int keep(const struct rv_artifact *a, const char *title, json_object *entry, rv_err **err)
{
    bool is_fit = !a->exists || is_id_fit(a->id);
    const char *warning =
        is_fit ? a->warning
               : "the id of the artifact is longer than " RV_LIMIT_TEXT(MAX_ID) " bytes, or has control characters";
    json_object *made;

    if (!a->exists && !warning)
        return 0;
    made = json_object_new_object();
    int rc = rv_json_set_take(entry, PLANNED_ARTIFACT, made, err);
    if (rc == 0 && warning)
        rc = rv_json_set_text(made, WARNING, warning, err);
    return rc < 0 || !a->exists || !is_fit
               ? rc
               : RV_SET(made, err, RV_M_OF(VALUE, "id", a->id), RV_M_TEXT("title", title), RV_M_TEXT("type", a->type),
                        RV_M_OF(VALUE, PARTS, a->parts), RV_M_OF(VALUE, METADATA, a->metadata));
}

int planned_find_artifact(rv_visit *v, size_t index, json_object *raw, bool is_result, json_object *entry, rv_err **err)
{
    const struct rv_tool_info *info = visit_tool(v, agent_step_tool(v, index));
    const struct rv_envelope_fields *env = rv_envelope_fields(v->env);
    /* That of an agent that was asked is made of its document alone. */
    const struct rv_pipeline *pipeline = v->shared->origin ? rv_visit_root(v->shared)->pipeline : v->shared->pipeline;
    struct rv_artifact artifact = {0};
    json_object *result = NULL;
    rv_buf id = RV_BUF_INIT(64);
    char at[RV_TIME_MAX];

    if (!info || !planned_is_good(entry))
        return 0;
    int rc = result_of(info, raw, is_result, entry, &result, err);
    if (rc == 0 && result)
        rc = write_fresh_id(v, index, &id, err);
    if (rc < 0 || !result)
        goto done;
    rv_time_format(v->now_us, at);
    const struct rv_artifact_source source = {
        .tool = info->name,
        .arguments = agent_step_parameters(v, index),
        .result = result,
        .schema = info->output_json,
        .index = json_object_array_length(v->planned->results) + index,
        .fresh_id = rv_buf_cstr(&id),
        .created_at = at,
        .provenance = pipeline->provenance_key,
        .context = {.context_id = env->session_id && env->session_id[0] ? env->session_id : env->envelope_id,
                    .task_id = env->envelope_id,
                    .request_id = env->request_id,
                    .session_id = env->session_id,
                    .user_id = rv_envelope_user(v->env),
                    .agent_name = v->agent->name},
    };
    rc = rv_artifact_build(&source, &artifact, err);
    if (rc == 0)
        rc = keep(&artifact, info->name, entry, err);
done:
    rv_artifact_fini(&artifact);
    json_object_put(result);
    rv_buf_fini(&id);
    return rc;
}

/* --- telling and keeping --- */

static void write_shared(json_object *metadata, rv_jw *w)
{
    json_object *value = NULL;

    for (size_t i = 0; i < RV_COUNT(shared_members); i++)
        if (json_object_object_get_ex(metadata, shared_members[i], &value))
            rv_jw_kv_value(w, shared_members[i], value);
}

static bool is_shared(const char *key)
{
    for (size_t i = 0; i < RV_COUNT(shared_members); i++)
        if (strcmp(key, shared_members[i]) == 0)
            return true;
    return false;
}

static void write_about(json_object *artifact, const struct rv_effect *e, const char *stage, rv_str step_id,
                        const char *sha256, rv_jw *w)
{
    json_object *metadata = rv_json_get_obj(artifact, METADATA);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", planned_text(artifact, "id"));
    rv_jw_kv_text(w, "title", planned_text(artifact, "title"));
    rv_jw_kv_text(w, "type", planned_text(artifact, "type"));
    rv_jw_kv_text(w, "stage", stage);
    rv_jw_kv_int(w, "visit", e->visit);
    rv_jw_kv_str(w, "step_id", step_id);
    rv_jw_kv_int(w, "bytes", (int64_t)e->request_len);
    rv_jw_kv_text(w, "sha256", sha256);
    rv_jw_key(w, METADATA);
    rv_jw_obj(w);
    json_object_object_foreach (metadata, key, value)
        if (!is_shared(key))
            rv_jw_kv_value(w, key, value);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

struct kept_content {
    char sha256[RV_HASH_MAX];
    int64_t bytes;
};

/* The effect by which the journal keeps it: its content, and what is known about it. */
static int keep_content(rv_visit *v, json_object *artifact, rv_str step_id, struct rv_effects *out,
                        struct kept_content *kept, rv_err **err)
{
    const struct rv_visit_shared *root = rv_visit_root(v->shared);
    rv_buf content = RV_BUF_INIT(RV_EFFECTS_MAX_TEXT), about = RV_BUF_INIT(RV_EFFECTS_MAX_TEXT);
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_ARTIFACT);
    rv_jw w = rv_jw_on(&content), a = rv_jw_on(&about);

    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "keep an artifact");
    int rc = rv_effect_set_place(e, v->shared, v->agent->index, &v->place, err);
    e->visit = v->visit_no;
    e->origin = v->shared->origin;
    rv_jw_obj(&w);
    rv_jw_kv_value(&w, PARTS, rv_json_get_arr(artifact, PARTS));
    write_shared(rv_json_get_obj(artifact, METADATA), &w);
    rv_jw_obj_end(&w);
    if (rc == 0)
        rc = rv_buf_check(&content, "the content of an artifact", err);
    rv_hash_format(rv_buf_str(&content), kept->sha256);
    kept->bytes = (int64_t)content.len;
    e->request_len = content.len;
    const char *stage = e->label ? e->label : root->pipeline->agents[e->stage].name;
    write_about(artifact, e, stage, step_id, kept->sha256, &a);
    if (rc == 0)
        rc = rv_buf_check(&about, "what is known about an artifact", err);
    if (rc == 0) {
        e->about = rv_buf_steal(&about, &e->about_len);
        e->request = rv_buf_steal(&content, &e->request_len);
    }
    rv_buf_fini(&content);
    rv_buf_fini(&about);
    return rc;
}

static int tell(rv_visit *v, size_t index, json_object *artifact, int64_t call_id, struct rv_effects *out, rv_err **err)
{
    char scratch[48];
    rv_str id = agent_step_id(v, index, scratch, sizeof scratch);
    struct kept_content kept = {.bytes = 0};
    int rc = keep_content(v, artifact, id, out, &kept, err);

    if (rc == 0)
        rv_visit_emit(v, out, RV_EMIT_ARTIFACT, RV_M_IF(call_id, RV_M_INT("call_id", call_id)),
                      RV_M_STR("tool", agent_step_tool(v, index)), RV_M_STR("step_id", id),
                      RV_M_TEXT("artifact_id", planned_text(artifact, "id")),
                      RV_M_TEXT("title", planned_text(artifact, "title")),
                      RV_M_TEXT("artifact_type", planned_text(artifact, "type")), RV_M_INT("bytes", kept.bytes),
                      RV_M_TEXT("sha256", kept.sha256));
    return rc;
}

/* Of an artifact that was told, the entry has what the answer and later calls need. */
static void shrink(json_object *entry, json_object *artifact)
{
    if (!planned_text(artifact, "id")[0]) {
        json_object_object_del(entry, PLANNED_ARTIFACT);
        return;
    }
    json_object_object_del(artifact, PARTS);
    json_object_object_del(artifact, METADATA);
    json_object_object_del(artifact, WARNING);
}

int planned_tell_artifact(rv_visit *v, size_t index, json_object *entry, int64_t call_id, struct rv_effects *out,
                          rv_err **err)
{
    json_object *artifact = rv_json_get_obj(entry, PLANNED_ARTIFACT);
    int rc = 0;

    if (!artifact)
        return 0;
    if (planned_text(artifact, WARNING)[0])
        rv_visit_emit(v, out, RV_EMIT_WARNING, RV_M_TEXT("message", planned_text(artifact, WARNING)),
                      RV_M_STR("tool", agent_step_tool(v, index)));
    if (rv_json_get_arr(artifact, PARTS))
        rc = tell(v, index, artifact, call_id, out, err);
    shrink(entry, artifact);
    return rc;
}

json_object *planned_artifact_id(json_object *entry)
{
    json_object *artifact = planned_is_good(entry) ? rv_json_get_obj(entry, PLANNED_ARTIFACT) : NULL;

    return artifact ? json_object_object_get(artifact, "id") : NULL;
}
