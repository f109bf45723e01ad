/* The artifact of a result: which form it has, its id, its payload and what is known about it. */
#include <stdlib.h>
#include <string.h>

#include <json-c/linkhash.h>

#include "coreengine/base/base.h"
#include "coreengine/plan/artifact_internal.h"

#define MAX_CANONICAL RV_JSON_MAX_BYTES /* bytes of arguments that a fingerprint is made of */
#define MAX_WARNING   ((size_t)2 << 10) /* bytes of faults: a model mends the first ones first */

/* What a result says about its artifact. All borrowed. */
struct found {
    json_object *structured; /* NULL: none */
    json_object *wrapper;    /* the structured content, if it is one */
    json_object *metadata;   /* _metadata of the structured content, NULL: none */
    json_object *provenance; /* of _meta, NULL: none */
};

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "no memory for an artifact");
}

static const char *first_of(const char *a, const char *b, const char *c, const char *d)
{
    return a && a[0] ? a : b && b[0] ? b : c && c[0] ? c : d && d[0] ? d : NULL;
}

/* --- form --- */

bool rv_artifact_is_wrapped(json_object *value)
{
    return plan_artifact_text(value, "artifact_id") && plan_artifact_object(value, "artifact") &&
           plan_artifact_object(value, "_metadata");
}

/* A1, A2 */
static void find(const struct rv_artifact_source *s, struct found *f, struct rv_artifact *out)
{
    json_object *provenance = plan_artifact_object(plan_artifact_object(s->result, "_meta"),
                                                   s->provenance ? s->provenance : RV_ARTIFACT_PROVENANCE);

    json_object_object_get_ex(s->result, "structuredContent", &f->structured);
    f->metadata = plan_artifact_object(f->structured, "_metadata");
    out->payload = f->structured;
    out->form = RV_ARTIFACT_BARE;
    if (plan_artifact_text(provenance, "artifact_id"))
        f->provenance = provenance;
    if (rv_artifact_is_wrapped(f->structured)) {
        out->form = RV_ARTIFACT_WRAPPER;
        f->wrapper = f->structured;
        out->payload = plan_artifact_object(f->structured, "artifact");
    } else if (f->provenance) {
        out->form = RV_ARTIFACT_WITH_META;
    }
}

/* A3 */
static const char *id_of(const struct rv_artifact_source *s, const struct found *f)
{
    const char *id =
        f->wrapper ? plan_artifact_text(f->wrapper, "artifact_id") : plan_artifact_text(f->provenance, "artifact_id");

    return id ? id : s->fresh_id;
}

/* A5 */
static const char *execution_of(const struct rv_artifact_source *s, const struct found *f)
{
    const char *id = first_of(plan_artifact_text(f->wrapper, "mcp_execution_id"),
                              plan_artifact_text(f->metadata, "mcp_execution_id"),
                              plan_artifact_text(f->provenance, "mcp_execution_id"), NULL);

    return first_of(id, plan_artifact_text(f->metadata, "execution_id"),
                    plan_artifact_text(f->provenance, "execution_id"), s->context.execution_id);
}

/* A6 */
static const char *skill_of(const struct rv_artifact_source *s, const struct found *f, json_object *payload)
{
    const char *id =
        first_of(plan_artifact_text(payload, "skill_id"), plan_artifact_text(f->wrapper, "skill_id"),
                 plan_artifact_text(f->metadata, "skill_id"), plan_artifact_text(f->provenance, "skill_id"));

    return id ? id : s->context.skill_id;
}

/* --- fingerprint --- */

struct member {
    const char *key;
    json_object *value;
};

static int compare_members(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static int write_canonical(json_object *value, rv_jw *out);

static int write_sorted(json_object *object, rv_jw *out)
{
    size_t n = (size_t)json_object_object_length(object), i = 0;
    struct member *members = calloc(n + 1, sizeof *members);
    int rc = 0;

    if (!members)
        return RV_E_NOMEM;
    json_object_object_foreach (object, key, value)
        members[i++] = (struct member){key, value};
    qsort(members, n, sizeof *members, compare_members);
    rv_jw_obj(out);
    for (i = 0; rc == 0 && i < n; i++) {
        rv_jw_key(out, members[i].key);
        rc = write_canonical(members[i].value, out);
    }
    rv_jw_obj_end(out);
    free(members);
    return rc;
}

/* JSON without blanks, with the keys of each object in the order of bytes; it nests as deep as a reader allows. */
static int write_canonical(json_object *value, rv_jw *out)
{
    int rc = 0;

    if (json_object_is_type(value, json_type_object))
        return write_sorted(value, out);
    if (!json_object_is_type(value, json_type_array)) {
        rv_jw_value(out, value);
        return 0;
    }
    rv_jw_arr(out);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(value); i++)
        rc = write_canonical(json_object_array_get_idx(value, i), out);
    rv_jw_arr_end(out);
    return rc;
}

static int add_fingerprint(struct rv_json_build *b, json_object *metadata, const char *tool, json_object *arguments)
{
    rv_buf text = RV_BUF_INIT(MAX_CANONICAL), print = RV_BUF_INIT(4096);
    rv_jw out = rv_jw_on(&text);
    char hash[RV_HASH_MAX];
    int rc = arguments ? write_canonical(arguments, &out) : 0;

    if (!arguments)
        rv_buf_puts(&text, "{}");
    if (rc == RV_E_NOMEM || text.rc == RV_E_NOMEM)
        rc = no_memory(b->err);
    if (rc == 0) { /* of overlong arguments the beginning counts */
        rv_hash_format(rv_buf_str(&text), hash);
        rv_buf_printf(&print, "%.1000s-%.16s", tool, hash);
        rc = rv_buf_check(&print, "fingerprint of a call", b->err);
    }
    if (rc == 0)
        rv_json_build_text(b, metadata, "fingerprint", rv_buf_cstr(&print));
    rv_buf_fini(&text);
    rv_buf_fini(&print);
    return rc;
}

/* --- metadata --- */

static void add_text(struct rv_json_build *b, json_object *to, const char *key, const char *text)
{
    if (text && text[0])
        rv_json_build_text(b, to, key, text);
}

/* What an artifact has to have, from the engine or else from the result. */
struct needed {
    const char *key, *text;
};

static void add_metadata(struct rv_json_build *b, const struct rv_artifact_source *s, const struct found *f,
                         const struct needed *needed, size_t n, struct rv_artifact *out)
{
    json_object *m = out->metadata;

    rv_json_build_text(b, m, "artifact_type", out->type);
    for (size_t i = 0; i < n; i++)
        rv_json_build_text(b, m, needed[i].key, needed[i].text);
    rv_json_build_text(b, m, "source", "mcp_tool");
    plan_artifact_add_hints(b, m, out->type, s->schema);
    add_text(b, m, "mcp_execution_id", execution_of(s, f));
    if (s->schema)
        plan_artifact_share(b, m, "mcp_schema", s->schema);
    if (s->is_internal)
        rv_json_build(b, m, "is_internal", json_object_new_boolean(true));
    rv_json_build_text(b, m, "tool_name", s->tool);
    rv_json_build_int(b, m, "execution_index", (int64_t)s->index);
    add_text(b, m, "skill_id", skill_of(s, f, out->payload));
    add_text(b, m, "skill_name",
             first_of(plan_artifact_text(f->metadata, "skill_name"), plan_artifact_text(f->provenance, "skill_name"),
                      s->context.skill_name, NULL));
    if (s->extensions)
        plan_artifact_share(b, m, "extensions", s->extensions);
    if (b->rc == 0 && add_fingerprint(b, m, s->tool, s->arguments) < 0)
        b->rc = RV_E_NOMEM;
}

/* --- parts --- */

static json_object *new_part(struct rv_json_build *b, json_object *parts)
{
    return rv_json_build(b, parts, NULL, json_object_new_object());
}

static void add_structured(struct rv_json_build *b, json_object *payload, json_object *parts)
{
    json_object *part = new_part(b, parts);

    if (json_object_is_type(payload, json_type_object)) {
        plan_artifact_share(b, part, "data", payload);
    } else if (json_object_is_type(payload, json_type_array)) {
        json_object *data = rv_json_build(b, part, "data", json_object_new_object());
        plan_artifact_share(b, data, "items", payload);
    } else if (json_object_is_type(payload, json_type_string)) {
        plan_artifact_share(b, part, "text", payload);
    } else {
        rv_buf text = RV_BUF_INIT(1000); /* a number, true or false */
        rv_json_write(payload, &text);
        rv_json_build_text(b, part, "text", rv_buf_cstr(&text));
        if (text.rc == RV_E_NOMEM && b->rc == 0)
            b->rc = rv_buf_check(&text, "part of an artifact", b->err);
        rv_buf_fini(&text);
    }
}

/* Members of a block, under the names that a file part has. */
static void add_file(struct rv_json_build *b, json_object *block, const char *const names[][2], size_t n,
                     json_object *parts)
{
    json_object *file = rv_json_build(b, new_part(b, parts), "file", json_object_new_object()), *value = NULL;

    for (size_t i = 0; i < n; i++)
        if (json_object_object_get_ex(block, names[i][0], &value) && json_object_is_type(value, json_type_string))
            plan_artifact_share(b, file, names[i][1], value);
}

/* false: the block cannot be read. */
static bool add_block(struct rv_json_build *b, const char *type, json_object *block, json_object *parts)
{
    static const char *const media[][2] = {{"data", "bytes"}, {"mimeType", "mimeType"}};
    static const char *const link[][2] = {{"name", "name"}, {"mimeType", "mimeType"}, {"uri", "url"}};
    static const char *const blob[][2] = {{"uri", "name"}, {"mimeType", "mimeType"}, {"blob", "bytes"}};
    json_object *resource = rv_json_get_obj(block, "resource"), *text = NULL;

    if (strcmp(type, "text") == 0 && rv_json_is_text(rv_json_member(block, "text"))) {
        json_object_object_get_ex(block, "text", &text);
        plan_artifact_share(b, new_part(b, parts), "text", text);
    } else if ((strcmp(type, "image") == 0 || strcmp(type, "audio") == 0) &&
               rv_json_is_text(rv_json_member(block, "data"))) {
        add_file(b, block, media, RV_COUNT(media), parts);
    } else if (strcmp(type, "resource_link") == 0 && rv_json_is_text(rv_json_member(block, "uri"))) {
        add_file(b, block, link, RV_COUNT(link), parts);
    } else if (strcmp(type, "resource") == 0 && rv_json_is_text(rv_json_member(resource, "text"))) {
        json_object_object_get_ex(resource, "text", &text);
        plan_artifact_share(b, new_part(b, parts), "text", text);
    } else if (strcmp(type, "resource") == 0 && rv_json_is_text(rv_json_member(resource, "blob"))) {
        add_file(b, resource, blob, RV_COUNT(blob), parts);
    } else {
        return false;
    }
    return true;
}

/* The parts of a result: of its structured content, else of its content. What cannot be read is skipped and named. */
static void add_parts(struct rv_json_build *b, json_object *result, json_object *payload, json_object *parts,
                      rv_buf *faults)
{
    json_object *content;
    size_t n_skipped = 0;

    if (payload) {
        add_structured(b, payload, parts);
        return;
    }
    content = rv_json_get_arr(result, "content");
    for (size_t i = 0; content && i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);
        const char *type = NULL;
        if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type) ||
            !add_block(b, type, block, parts))
            n_skipped++;
    }
    if (n_skipped > 0)
        rv_buf_printf(faults, "%zu blocks of the content cannot be read; ", n_skipped);
}

/* --- the artifact --- */

static int build(const struct rv_artifact_source *s, struct rv_artifact *out, rv_buf *faults, rv_err **err)
{
    struct rv_json_build b = {err, 0};
    struct found f = {0};

    find(s, &f, out);
    out->parts = json_object_new_array();
    out->metadata = json_object_new_object();
    if (!out->parts || !out->metadata)
        return no_memory(err);
    add_parts(&b, s->result, out->payload, out->parts, faults);
    if (b.rc < 0 || !f.structured) /* A7 */
        return b.rc;
    if (s->is_refused) { /* A10 */
        rv_buf_puts(faults, "the caller may not create artifacts; ");
        return 0;
    }
    struct needed needed[] = {
        {"context_id", first_of(s->context.context_id, plan_artifact_text(f.metadata, "context_id"),
                                plan_artifact_text(f.provenance, "context_id"), NULL)},
        {"task_id", first_of(s->context.task_id, plan_artifact_text(f.metadata, "task_id"),
                             plan_artifact_text(f.provenance, "task_id"), NULL)},
        {"created_at", s->created_at},
    };
    const char *id = id_of(s, &f);
    if (!id)
        rv_buf_puts(faults, "the artifact has no id; ");
    for (size_t i = 0; i < RV_COUNT(needed); i++)
        if (!needed[i].text || !needed[i].text[0]) {
            rv_buf_printf(faults, "the artifact has no %s; ", needed[i].key);
            id = NULL;
        }
    if (!id)
        return 0;
    plan_artifact_infer(s->schema, out->payload, out->type);
    plan_artifact_check(out->type, out->payload, faults);
    add_metadata(&b, s, &f, needed, RV_COUNT(needed), out);
    out->id = b.rc == 0 ? json_object_new_string(id) : NULL;
    out->exists = out->id != NULL;
    return b.rc == 0 && !out->id ? no_memory(err) : b.rc;
}

int rv_artifact_build(const struct rv_artifact_source *source, struct rv_artifact *out, rv_err **err)
{
    rv_buf faults = RV_BUF_INIT(MAX_WARNING);
    bool failed = false;
    int rc = 0;

    *out = (struct rv_artifact){0};
    if (!json_object_is_type(source->result, json_type_object))
        rv_buf_puts(&faults, "the result is not an object; ");
    else if (!rv_json_get_bool(source->result, "isError", &failed) || !failed)
        rc = build(source, out, &faults, err);
    if (rc == 0 && faults.rc == RV_E_NOMEM)
        rc = no_memory(err);
    if (rc == 0 && faults.len >= 2) {
        rv_str text = rv_buf_str(&faults);
        out->warning = rv_str_dup(rv_utf8_cut(text, text.len - 2)); /* without the last "; " */
        rc = out->warning ? 0 : no_memory(err);
    }
    rv_buf_fini(&faults);
    return rc;
}

void rv_artifact_fini(struct rv_artifact *artifact)
{
    json_object_put(artifact->id);
    json_object_put(artifact->parts);
    json_object_put(artifact->metadata);
    free(artifact->warning);
    *artifact = (struct rv_artifact){0};
}

void rv_artifact_write(const struct rv_artifact *artifact, const char *title, rv_jw *out)
{
    rv_jw_obj(out);
    rv_jw_kv_value(out, "id", artifact->id);
    rv_jw_kv_text(out, "title", title);
    rv_jw_kv_text(out, "type", artifact->type);
    rv_jw_kv_value(out, "parts", artifact->parts);
    rv_jw_kv_value(out, "metadata", artifact->metadata);
    rv_jw_obj_end(out);
}
