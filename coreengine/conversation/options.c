/* Options of a history as JSON: they are kept with a run, so that its history can be made again. */
#include "coreengine/conversation/messages.h"

#include <json-c/linkhash.h>

#define MAX_KEEP ((int64_t)1 << 30) /* code points; twice that has to fit a size_t anywhere */

static void write_limit(rv_jw *w, const char *key, int64_t value)
{
    rv_jw_key(w, key);
    if (value >= 0)
        rv_jw_int(w, value);
    else
        rv_jw_null(w);
}

void rv_history_opts_write(const struct rv_history_opts *o, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "policy", rv_replay_policy_text((enum rv_replay_policy)o->policy));
    write_limit(w, "max_tokens", o->max_tokens);
    write_limit(w, "max_messages", o->max_messages);
    rv_jw_kv_int(w, "since_us", o->since_us);
    rv_jw_kv_int(w, "always_last", o->always_last);
    rv_jw_kv_bool(w, "compress", o->compress);
    rv_jw_kv_int(w, "compress_keep", o->compress_keep);
    rv_jw_kv_bool(w, "count_tool_rows", o->count_tool_rows);
    if (!o->names_keys)
        rv_jw_kv_bool(w, "names_keys", false);
    if (o->version > RV_HISTORY_1) /* the first one has no name */
        rv_jw_kv_int(w, "version", o->version);
    rv_jw_obj_end(w);
}

static int read_count(const char *key, json_object *value, int64_t max, bool may_be_null, int64_t *out, rv_err **err)
{
    if (!value && may_be_null) {
        *out = RV_UNSET;
        return 0;
    }
    if (!rv_json_is_int(value))
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is no integer but %s", key, rv_json_type_text(value));
    int64_t n = json_object_get_int64(value);
    if (n < 0 || n > max)
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is out of range", key);
    *out = n;
    return 0;
}

static int read_flag(const char *key, json_object *value, bool *out, rv_err **err)
{
    if (!json_object_is_type(value, json_type_boolean))
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is no boolean but %s", key, rv_json_type_text(value));
    *out = json_object_get_boolean(value);
    return 0;
}

static int read_policy(json_object *value, int *out, rv_err **err)
{
    int policy = rv_replay_policy_of(rv_json_str(value));

    if (policy < 0)
        return RV_FAIL(err, RV_E_INVALID, "history option \"policy\" is neither \"%s\" nor \"%s\"",
                       rv_replay_policy_text(RV_REPLAY_SYNTHESISE), rv_replay_policy_text(RV_REPLAY_SKIP));
    *out = policy;
    return 0;
}

static int read_version(const char *key, json_object *value, int *out, rv_err **err)
{
    int64_t version = 0;
    int rc = read_count(key, value, RV_HISTORY_LAST, false, &version, err);

    if (rc == 0 && version < RV_HISTORY_1)
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is out of range", key);
    if (rc == 0)
        *out = (int)version;
    return rc;
}

static int read_option(const char *key, json_object *value, struct rv_history_opts *o, rv_err **err)
{
    rv_str k = rv_str_of(key);

    if (rv_str_is(k, "policy"))
        return read_policy(value, &o->policy, err);
    if (rv_str_is(k, "max_tokens"))
        return read_count(key, value, INT64_MAX, true, &o->max_tokens, err);
    if (rv_str_is(k, "max_messages"))
        return read_count(key, value, INT64_MAX, true, &o->max_messages, err);
    if (rv_str_is(k, "since_us"))
        return read_count(key, value, INT64_MAX, false, &o->since_us, err);
    if (rv_str_is(k, "always_last"))
        return read_count(key, value, INT64_MAX, false, &o->always_last, err);
    if (rv_str_is(k, "compress"))
        return read_flag(key, value, &o->compress, err);
    if (rv_str_is(k, "compress_keep"))
        return read_count(key, value, MAX_KEEP, false, &o->compress_keep, err);
    if (rv_str_is(k, "count_tool_rows"))
        return read_flag(key, value, &o->count_tool_rows, err);
    if (rv_str_is(k, "names_keys"))
        return read_flag(key, value, &o->names_keys, err);
    if (rv_str_is(k, "version"))
        return read_version(key, value, &o->version, err);
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" is no option of a history", key);
}

int rv_history_opts_read(json_object *json, struct rv_history_opts *out, rv_err **err)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;

    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "the options of a history are no object but %s", rv_json_type_text(json));
    json_object_object_foreach (json, key, value) {
        int rc = read_option(key, value, &o, err);
        if (rc < 0)
            return rc;
    }
    *out = o;
    return 0;
}

int rv_history_opts_check(const struct rv_history_opts *o, rv_err **err)
{
    const char *bad = o->since_us < 0                                       ? "since_us"
                      : o->always_last < 0                                  ? "always_last"
                      : o->compress_keep < 0 || o->compress_keep > MAX_KEEP ? "compress_keep"
                                                                            : NULL;

    return bad ? RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is out of range", bad) : 0;
}
