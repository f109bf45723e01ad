/* The history that a run is given, by reference: which messages of which session, read by which rules. Messages do not
 * change once they are kept, so a replay reads the same ones; the hash tells if it does not. */
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define MAX_TEXT ((size_t)64 << 20)

static int add_row(void *self, const struct rv_message *m, rv_err **err)
{
    bool full = false;
    int rc = rv_history_add(self, m, &full, err);

    return rc == 0 && full ? RV_STORE_ENOUGH : rc;
}

static int hash_of(json_object *messages, char hash[RV_HASH_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    rv_json_write(messages, &text);
    int rc = rv_buf_check(&text, "the history of a session", err);
    if (rc == 0)
        rv_hash_of(rv_buf_str(&text), hash);
    rv_buf_fini(&text);
    return rc;
}

/* told_us: for a run that was told it at that moment, also what its owner has deleted since; 0: now. */
static int read_history(rv_store *store, const struct rv_store_scope *scope, const struct rv_conversation *c,
                        int64_t told_us, json_object **out, char hash[RV_HASH_MAX], rv_err **err)
{
    const struct rv_message_filter filter = {
        .upto_seq = c->upto_seq, .newest_first = true, .with_deleted = told_us > 0, .told_us = told_us};
    const char *session = c->context.session_id;
    rv_history *h = NULL;

    *out = NULL;
    hash[0] = '\0';
    if (c->upto_seq <= 0 || !session)
        return 0;
    int rc = rv_history_new(session, &c->history_opts, &h, err);
    if (rc == 0)
        rc = rv_store_read_messages(store, scope, session, &filter, add_row, h, err);
    if (rc == 0)
        rc = rv_history_finish(h, out, err);
    if (rc == 0)
        rc = hash_of(*out, hash, err);
    rv_history_free(h);
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
        rc = RV_WRAP(err, rc, "read the history of session \"%s\"", session);
    }
    return rc;
}

int rv_journal_read_history(rv_store *store, const struct rv_store_scope *scope, const struct rv_conversation *c,
                            json_object **out, char hash[RV_HASH_MAX], rv_err **err)
{
    return read_history(store, scope, c, 0, out, hash, err);
}

int rv_journal_same_history(rv_store *store, const struct rv_store_scope *scope, const struct rv_conversation *c,
                            int64_t told_us, json_object **out, rv_err **err)
{
    const char *user = c->context.user_id;
    const struct rv_store_scope owner = {.tenant = scope->tenant, .user = user ? user : ""};
    char hash[RV_HASH_MAX];

    int rc = read_history(store, &owner, c, told_us > 0 ? told_us : 1, out, hash, err);
    if (rc < 0 || strcmp(hash, c->history_hash) == 0)
        return rc;
    json_object_put(*out);
    *out = NULL;
    rc = RV_FAIL(err, RV_E_STATE, "the messages of session \"%s\" are not those that the run was given",
                 c->context.session_id);
    rv_err_hint(err, "the run can be looked at in the store it was made in, while its session is there");
    return rc;
}
