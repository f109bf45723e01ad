/* A record as one line for people: what is JSON is shown as such, what is text as text. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

/* True if it was written. */
static bool put_json(rv_jw *w, const char *key, rv_str text)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *json = NULL;

    int rc = rv_json_parse(text, &opts, &json, NULL);
    if (rc == RV_E_NOMEM && w->out->rc == 0)
        w->out->rc = RV_E_NOMEM;
    bool is_tree =
        rc == 0 && (json_object_is_type(json, json_type_object) || json_object_is_type(json, json_type_array));
    if (is_tree) {
        rv_jw_key(w, key);
        rv_jw_raw(w, rv_str_trim(text));
    }
    json_object_put(json);
    return is_tree;
}

static void put_text(rv_jw *w, const char *key, rv_str text)
{
    char hash[RV_HASH_MAX];

    if (rv_utf8_valid(text, NULL)) {
        rv_jw_kv_str(w, key, text);
        return;
    }
    rv_hash_of(text, hash);
    rv_jw_kv_text(w, "not_utf8", key);
    rv_jw_kv_text(w, "sha256", hash);
}

/* The members of the body stand beside seq and record. */
static void put_members(rv_jw *w, rv_str body)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY};
    json_object *json = NULL;

    int rc = rv_json_parse(body, &opts, &json, NULL);
    if (rc == RV_E_NOMEM && w->out->rc == 0)
        w->out->rc = RV_E_NOMEM;
    if (rc == 0 && json_object_is_type(json, json_type_object)) {
        json_object_object_foreach (json, key, value) {
            rv_jw_kv_value(w, key, value);
        }
    } else {
        put_text(w, "body", body);
    }
    json_object_put(json);
}

void rv_record_write_json(const struct rv_record *r, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_int(w, "seq", r->seq);
    rv_jw_kv_text(w, "record", rv_record_kind_text(r->kind));
    put_members(w, r->body);
    if (r->value.ptr && !put_json(w, "value", r->value))
        put_text(w, "value", r->value);
    rv_jw_obj_end(w);
}
