/* What sessions, messages and schemas are like, whatever keeps them: whose they are, how metadata is merged, which
 * schema replaces which. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store_internal.h"

int rv_session_row_copy(const struct rv_session_row *row, struct rv_session_row *out)
{
    struct rv_session_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.name, &copy.description,
                                                 &copy.agent_name, &copy.mode, &copy.status},
                                       .n_texts = 8,
                                       .strs = {&copy.metadata},
                                       .n_strs = 1};

    copy.own = rv_store_pack(&texts);
    if (!copy.own)
        return RV_E_NOMEM;
    *out = copy;
    return 0;
}

void rv_session_row_fini(struct rv_session_row *row)
{
    free(row->own);
    *row = (struct rv_session_row){0};
}

int rv_schema_row_copy(const struct rv_schema_row *row, struct rv_schema_row *out)
{
    struct rv_schema_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.name, &copy.kind,
                                                 &copy.version, &copy.description, &copy.source, &copy.place},
                                       .n_texts = 9,
                                       .strs = {&copy.content, &copy.json_schema, &copy.document},
                                       .n_strs = 3};

    copy.own = rv_store_pack(&texts);
    if (!copy.own)
        return RV_E_NOMEM;
    *out = copy;
    return 0;
}

void rv_schema_row_fini(struct rv_schema_row *row)
{
    free(row->own);
    *row = (struct rv_schema_row){0};
}

const char *rv_session_status_text(enum rv_session_status status)
{
#define TEXT(n, t, m) t,
    static const char *const texts[] = {RV_SESSION_STATUSES(TEXT)};
#undef TEXT
    return texts[status];
}

int rv_session_status_of(rv_str text)
{
    for (int i = 0; i < RV_N_SESSION_STATUSES; i++)
        if (rv_str_is(text, rv_session_status_text((enum rv_session_status)i)))
            return i;
    return RV_UNSET;
}

bool rv_store_sees_session(const struct rv_store_scope *scope, const struct rv_session_row *row)
{
    return strcmp(row->tenant, scope->tenant) == 0 && (!scope->user || strcmp(row->user, scope->user) == 0);
}

void rv_store_session_name(const char *id, char name[RV_STORE_NAME_ROOM])
{
    snprintf(name, RV_STORE_NAME_ROOM, "chat-%s", id);
}

struct rv_session_row rv_store_session_of(const struct rv_turn *turn, const struct rv_store_scope *owner,
                                          int64_t now_us, char name[RV_STORE_NAME_ROOM])
{
    rv_store_session_name(turn->session, name);
    return (struct rv_session_row){
        .id = turn->session,
        .tenant = owner->tenant,
        .user = owner->user,
        .name = turn->name ? turn->name : name,
        .agent_name = turn->agent_name,
        .mode = "chat",
        .status = rv_session_status_text(RV_SESSION_ACTIVE),
        .metadata = RV_STR_LIT("{}"),
        .created_us = now_us,
        .updated_us = now_us,
    };
}

struct rv_message rv_store_message_of(const struct rv_message *m, const char *run, int64_t now_us)
{
    struct rv_message kept = *m;

    if (kept.has_content && !kept.content.ptr)
        kept.content = RV_STR_LIT("");
    if (!kept.has_content)
        kept.content = (rv_str){NULL, 0};
    if (kept.tool_calls.len == 0)
        kept.tool_calls = (rv_str){NULL, 0};
    if (kept.metadata.len == 0)
        kept.metadata = (rv_str){NULL, 0};
    if (kept.token_count == RV_UNSET)
        kept.token_count = rv_tokens_estimate(kept.content);
    if (!kept.run_id)
        kept.run_id = run;
    if (kept.created_us == 0)
        kept.created_us = now_us;
    return kept;
}

static bool is_one_of(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

static int parse_old(rv_str text, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .what = "metadata", .max_bytes = RV_STORE_MAX_META, .allow_duplicates = true};
    json_object *old = NULL;
    int rc = rv_json_parse(text.len > 0 ? text : RV_STR_LIT("{}"), &opts, &old, err);

    if (rc == 0 && !json_object_is_type(old, json_type_object)) {
        json_object_put(old);
        rc = RV_FAIL(err, RV_E_INVALID, "the metadata is damaged: no object");
    }
    if (rc == RV_E_PARSE)
        return RV_WRAP(err, RV_E_INVALID, "the metadata is damaged");
    if (rc == 0)
        *out = old;
    return rc;
}

int rv_store_merge(rv_str old, json_object *patch, const char *const *remove, size_t n_remove, rv_buf *out,
                   rv_err **err)
{
    rv_jw w = rv_jw_on(out);
    json_object *present = NULL;
    int rc = parse_old(old, &present, err);

    if (rc < 0)
        return rc;
    /* Written while walking: the caller's tree is not changed, and no reference to it is taken. */
    rv_jw_obj(&w);
    json_object_object_foreach (present, key, value) {
        json_object *given = NULL;
        bool is_given = patch && json_object_object_get_ex(patch, key, &given);
        if (!is_one_of(key, remove, n_remove))
            rv_jw_kv_value(&w, key, is_given ? given : value);
    }
    if (patch) {
        json_object_object_foreach (patch, added, given) {
            if (!json_object_object_get_ex(present, added, NULL) && !is_one_of(added, remove, n_remove))
                rv_jw_kv_value(&w, added, given);
        }
    }
    rv_jw_obj_end(&w);
    json_object_put(present);
    return rv_buf_check(out, "metadata", err);
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool rv_store_schema_changes(const struct rv_schema_row *given, enum rv_schema_put how,
                             const struct rv_schema_row *present, bool is_deleted)
{
    bool is_persons;

    if (!present)
        return true;
    is_persons = strcmp(present->source, RV_STORE_SCHEMA_PERSON) == 0;
    if (how == RV_SCHEMA_REGISTER && is_persons)
        return false; /* a person's word stands, also when it was to delete what that person had put */
    if (is_deleted)
        return true;
    if (how == RV_SCHEMA_REGISTER)
        return strcmp(given->checksum, present->checksum) != 0;
    return !(strcmp(given->checksum, present->checksum) == 0 && same(given->version, present->version) &&
             same(given->description, present->description) && same(given->source, present->source) &&
             same(given->place, present->place) && rv_str_eq(given->content, present->content) &&
             rv_str_eq(given->json_schema, present->json_schema));
}

int rv_store_fail_no_session(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "no session \"%s\"", id);
}

int rv_store_fail_session_deleted(const char *id, rv_err **err)
{
    RV_FAIL(err, RV_E_EXISTS, "session \"%s\" was deleted, and its id stays taken", id);
    rv_err_hint(err, "begin a session with another id");
    return RV_E_EXISTS;
}

int rv_store_fail_ambiguous_session(const char *id, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "several users have a session \"%s\"", id);
    rv_err_hint(err, "say whose it is: --user NAME");
    return RV_E_INVALID;
}

int rv_store_fail_no_schema(const char *kind, const char *name, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "no schema \"%s\" of kind \"%s\"", name, kind);
}

int rv_store_fail_schema_id(const char *id, bool is_another_users, rv_err **err)
{
    if (is_another_users)
        return RV_FAIL(err, RV_E_DENIED, "the schema %s belongs to another user", id);
    return RV_FAIL(err, RV_E_EXISTS, "there is a schema %s of another name already", id);
}
