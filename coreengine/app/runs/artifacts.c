/* Artifacts of runs, read from their journals: each has a record with what is known about it, whose value is its
 * content. What a record says came from tools: names of files are made safe before they are used. */
#include "coreengine/app/rows.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/linkhash.h>

#include "coreengine/base/base.h"
#include "coreengine/store/journal/journal.h"

#define MAX_NAME ((size_t)64) /* bytes: with a number and an extension it fits every file system */
#define ENOUGH   1            /* the walk ends: what was asked for is there */

/* --- finding --- */

struct found_run {
    char *id, *session, *user;
};
struct search {
    const struct rv_app_artifacts_filter *filter;
    rv_app_on_artifact each;
    void *self;
    struct found_run *runs; /* owned */
    size_t n, cap, at;
    bool is_enough, has_failed; /* each did */
};

static int take_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct search *s = self;

    if (s->filter->run && strcmp(s->filter->run, row->id) != 0) /* the store looks for a prefix */
        return 0;
    if (!rv_has_room(&s->runs, &s->cap, s->n + 1, sizeof *s->runs))
        return RV_FAIL(err, RV_E_NOMEM, "look for artifacts");
    struct found_run *r = &s->runs[s->n++];
    *r = (struct found_run){rv_str_dup(rv_str_of(row->id)), rv_str_dup(rv_str_of(row->session)),
                            rv_str_dup(rv_str_of(row->user))};
    return r->id && r->session && r->user ? 0 : RV_FAIL(err, RV_E_NOMEM, "look for artifacts");
}

static int take_record(void *self, const struct rv_record *r, rv_err **err)
{
    struct search *s = self;
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .what = "record of an artifact"};
    json_object *about = NULL;

    if (r->kind != RV_RECORD_ARTIFACT || s->is_enough)
        return 0;
    int rc = rv_json_parse(r->body, &opts, &about, err);
    if (rc == 0 && !json_object_is_type(about, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "record %lld is not an object", (long long)r->seq);
    if (rc == 0 && (!s->filter->id || strcmp(rv_json_text_or(about, "id", ""), s->filter->id) == 0)) {
        const struct found_run *run = &s->runs[s->at];
        const struct rv_app_artifact artifact = {run->id, run->session, run->user, about, r->value};
        rc = s->each(s->self, &artifact, err);
        s->has_failed = rc < 0;
    }
    s->is_enough = rc == ENOUGH;
    json_object_put(about);
    return rc == ENOUGH ? 0 : rc;
}

int rv_app_list_artifacts(rv_store *store, const struct rv_store_scope *scope,
                          const struct rv_app_artifacts_filter *filter, rv_app_on_artifact each, void *self,
                          rv_err **err)
{
    const struct rv_run_filter runs = {.session = filter->session,
                                       .id_prefix = filter->run,
                                       .record_kind = RV_RECORD_ARTIFACT,
                                       .limit = filter->run ? 0 : filter->max_runs};
    struct search s = {.filter = filter, .each = each, .self = self};
    int rc = rv_store_list_runs(store, scope, &runs, take_run, &s, err);

    for (s.at = 0; s.at < s.n && rc == 0 && !s.is_enough; s.at++) {
        rv_err *cause = NULL;
        rc = rv_store_read(store, scope, &(struct rv_record_range){.run = s.runs[s.at].id, .from = 1}, take_record, &s,
                           &cause);
        if (rc == RV_E_NOT_FOUND && !s.has_failed) { /* it was deleted meanwhile */
            rv_err_free(cause);
            rc = 0;
        } else if (rc < 0) {
            rv_err_pass(err, cause);
            rc = RV_WRAP(err, rc, "read the artifacts of run \"%s\"", s.runs[s.at].id);
        }
    }
    for (size_t i = 0; i < s.n; i++) {
        free(s.runs[i].id);
        free(s.runs[i].session);
        free(s.runs[i].user);
    }
    free(s.runs);
    return rc;
}

/* --- as JSON --- */

static void write_members(const struct rv_app_artifact *a, rv_jw *w)
{
    static const char *const texts[] = {"stage", "step_id", "sha256"};
    json_object *metadata = rv_json_get_obj(a->about, "metadata");
    int64_t n = 0;

    rv_jw_kv_text(w, "id", rv_json_text_or(a->about, "id", ""));
    rv_jw_kv_text(w, "title", rv_json_text_or(a->about, "title", ""));
    rv_jw_kv_text(w, "type", rv_json_text_or(a->about, "type", ""));
    rv_jw_kv_text(w, "run", a->run);
    rv_jw_kv_text(w, "session_id", a->session);
    rv_jw_kv_text(w, "user_id", a->user);
    for (size_t i = 0; i < RV_COUNT(texts); i++)
        rv_jw_kv_text(w, texts[i], rv_json_text_or(a->about, texts[i], ""));
    if (rv_json_get_int(a->about, "visit", &n))
        rv_jw_kv_int(w, "visit", n);
    if (rv_json_get_int(a->about, "bytes", &n))
        rv_jw_kv_int(w, "bytes", n);
    rv_jw_kv_text(w, "created_at", metadata ? rv_json_text_or(metadata, "created_at", "") : "");
}

void rv_app_artifact_write(const struct rv_app_artifact *artifact, rv_jw *w)
{
    rv_jw_obj(w);
    write_members(artifact, w);
    rv_jw_obj_end(w);
}

int rv_app_artifact_parse_content(const struct rv_app_artifact *artifact, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .what = "content of an artifact"};
    json_object *content = NULL;
    int rc = rv_json_parse(artifact->content, &opts, &content, err);

    if (rc == 0 && (!json_object_is_type(content, json_type_object) || !rv_json_get_arr(content, "parts")))
        rc = RV_FAIL(err, RV_E_INVALID, "the content of artifact \"%.200s\" has no parts",
                     rv_json_text_or(artifact->about, "id", ""));
    if (rc < 0)
        json_object_put(content);
    else
        *out = content;
    return rc;
}

int rv_app_artifact_write_whole(const struct rv_app_artifact *artifact, rv_jw *w, rv_err **err)
{
    json_object *metadata = rv_json_get_obj(artifact->about, "metadata"), *content = NULL;
    int rc = rv_app_artifact_parse_content(artifact, &content, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(w);
    write_members(artifact, w);
    rv_jw_kv_value(w, "parts", rv_json_get_arr(content, "parts"));
    rv_jw_key(w, "metadata");
    rv_jw_obj(w);
    if (metadata) {
        json_object_object_foreach (metadata, key, value)
            rv_jw_kv_value(w, key, value);
    }
    json_object_object_foreach (content, name, part)
        if (strcmp(name, "parts") != 0)
            rv_jw_kv_value(w, name, part);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
    json_object_put(content);
    return 0;
}

/* --- as files --- */

static int read_file(json_object *file, struct rv_app_artifact_file *out, rv_err **err)
{
    const char *bytes = NULL, *url = NULL;

    out->name = rv_json_text_or(file, "name", out->name);
    if (!rv_json_get_text(file, "bytes", &bytes)) {
        url = rv_json_text_or(file, "url", NULL);
        return RV_FAIL(err, RV_E_STATE, "it is a link, which is not followed: %.500s", url ? url : "");
    }
    if (!rv_base64_read(rv_str_of(bytes), &out->bytes))
        return RV_FAIL(err, RV_E_INVALID, "its bytes are not base64");
    const char *type = rv_json_text_or(file, "mimeType", NULL);
    out->extension = out->name && strchr(out->name, '.')            ? ""
                     : type && strcmp(type, "image/png") == 0       ? "png"
                     : type && strcmp(type, "image/jpeg") == 0      ? "jpg"
                     : type && strcmp(type, "application/pdf") == 0 ? "pdf"
                                                                    : "bin";
    return 0;
}

int rv_app_artifact_read_part(json_object *part, struct rv_app_artifact_file *out, rv_err **err)
{
    json_object *value = NULL;

    if (!json_object_is_type(part, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "it is not an object");
    out->extension = "json";
    if (json_object_object_get_ex(part, "text", &value) && json_object_is_type(value, json_type_string)) {
        out->extension = "txt";
        rv_buf_add_str(&out->bytes, rv_json_str(value));
    } else if (json_object_object_get_ex(part, "file", &value) && json_object_is_type(value, json_type_object)) {
        int rc = read_file(value, out, err);
        if (rc < 0)
            return rc;
    } else {
        json_object_object_get_ex(part, "data", &value);
        rv_json_write_pretty(value, &out->bytes);
        rv_buf_putc(&out->bytes, '\n');
    }
    return rv_buf_check(&out->bytes, "a part of an artifact", err);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

void rv_app_artifact_write_name(const char *text, rv_buf *out)
{
    size_t before = out->len;

    for (const char *at = text; *at && out->len - before < MAX_NAME; at++)
        rv_buf_putc(out, is_plain(*at) && !(*at == '.' && out->len == before) ? *at : '_');
    if (out->len == before)
        rv_buf_puts(out, "artifact");
}
