/* Snapshots: where a long journal may be entered. "SHA-256 of the rest, line feed, {v, seq, ..., state}": one that is
 * not whole is not used, and nothing is lost with it. */
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define HASH_LEN (RV_HASH_MAX - 1)           /* characters of the hash in front of the text */
#define MAX_TEXT (RV_STATE_MAX_BYTES + 4096) /* the state and what stands before it */

struct count {
    int64_t n_events;
};

static int count_event(void *self, const struct rv_record *r, rv_err **err)
{
    struct count *c = self;

    (void)err;
    c->n_events += r->kind == RV_RECORD_EVENT;
    return 0;
}

static void write_snapshot(const struct snapshot *s, rv_str state, rv_buf *out)
{
    char hash[RV_HASH_MAX] = "0000000000000000000000000000000000000000000000000000000000000000";
    rv_jw w = rv_jw_on(out);

    rv_buf_puts(out, hash);
    rv_buf_putc(out, '\n');
    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "v", RV_JOURNAL_VERSION);
    rv_jw_kv_int(&w, "seq", s->seq);
    rv_jw_kv_int(&w, "next_call_id", s->counters.next_call_id);
    rv_jw_kv_int(&w, "next_seq", s->counters.next_seq);
    rv_jw_kv_int(&w, "last_us", s->last_us);
    rv_jw_kv_int(&w, "n_events", s->n_events);
    rv_jw_key(&w, "state");
    rv_jw_raw(&w, state);
    rv_jw_obj_end(&w);
    if (out->rc < 0)
        return;
    rv_hash_format((rv_str){out->ptr + HASH_LEN + 1, out->len - HASH_LEN - 1}, hash);
    memcpy(out->ptr, hash, HASH_LEN);
}

int journal_snapshot_put(rv_store *store, const struct rv_store_scope *scope, const struct snapshot_new *of,
                         rv_err **err)
{
    struct snapshot old = {0}, s = {.seq = of->seq, .counters = rv_run_counters(of->state), .last_us = of->last_us};
    rv_buf text = RV_BUF_INIT(RV_STATE_MAX_BYTES), out = RV_BUF_INIT(MAX_TEXT);
    struct count c = {0};

    int rc = journal_snapshot_get(store, scope, of->run, of->seq - 1, &old, err);
    if (rc == 0)
        rc =
            rv_store_read(store, scope, &(struct rv_record_range){of->run, old.seq + 1, of->seq}, count_event, &c, err);
    s.n_events = old.n_events + c.n_events;
    if (rc == 0) {
        rv_envelope_write_state(rv_run_envelope(of->state), &text);
        rc = rv_buf_check(&text, "state", err);
    }
    if (rc == 0) {
        write_snapshot(&s, rv_buf_str(&text), &out);
        rc = rv_buf_check(&out, "snapshot", err);
    }
    if (rc == 0)
        rc = rv_store_put_snapshot(store, of->run, of->fence, of->seq, rv_buf_str(&out), err);
    journal_snapshot_fini(&old);
    rv_buf_fini(&text);
    rv_buf_fini(&out);
    return rc;
}

/* {v, ..., "state": TEXT}: the members before the state are parsed apart from it, as the state is large. */
static int read_members(rv_str json, struct snapshot *s, rv_str *state, rv_err **err)
{
    static const char key[] = ",\"state\":";
    const char *at = json.len > 2 ? memmem(json.ptr, json.len, key, sizeof key - 1) : NULL;
    rv_buf head = RV_BUF_INIT(4096);
    json_object *body = NULL;
    int64_t version = 0;

    if (!at)
        return RV_FAIL(err, RV_E_INVALID, "it has no state");
    rv_buf_add(&head, json.ptr, (size_t)(at - json.ptr));
    rv_buf_putc(&head, '}');
    int rc = rv_buf_check(&head, "snapshot", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&head), NULL, &body, err);
    if (rc == 0 &&
        (!json_object_is_type(body, json_type_object) || !rv_json_get_int(body, "v", &version) ||
         version != RV_JOURNAL_VERSION || !rv_json_get_int(body, "seq", &s->seq) ||
         !rv_json_get_int(body, "next_call_id", &s->counters.next_call_id) ||
         !rv_json_get_int(body, "next_seq", &s->counters.next_seq) || !rv_json_get_int(body, "last_us", &s->last_us) ||
         !rv_json_get_int(body, "n_events", &s->n_events) || s->counters.next_call_id < 1 || s->counters.next_seq < 1 ||
         s->last_us < 0 || s->n_events < 1))
        rc = RV_FAIL(err, RV_E_INVALID, "it is of another version, or incomplete");
    size_t used = (size_t)(at - json.ptr) + sizeof key - 1;
    *state = (rv_str){json.ptr + used, json.len - used - 1};
    json_object_put(body);
    rv_buf_fini(&head);
    return rc;
}

static int read_snapshot(rv_str text, int64_t seq, struct snapshot *s, rv_err **err)
{
    char hash[RV_HASH_MAX];
    rv_str state = {NULL, 0};

    if (text.len < HASH_LEN + 3 || text.ptr[HASH_LEN] != '\n')
        return RV_FAIL(err, RV_E_INVALID, "it is cut off");
    rv_str json = {text.ptr + HASH_LEN + 1, text.len - HASH_LEN - 1};
    rv_hash_format(json, hash);
    if (memcmp(hash, text.ptr, HASH_LEN) != 0)
        return RV_FAIL(err, RV_E_INVALID, "it is not what was written");
    int rc = read_members(json, s, &state, err);
    if (rc == 0 && s->seq != seq)
        rc = RV_FAIL(err, RV_E_INVALID, "it belongs to record %lld", (long long)s->seq);
    return rc < 0 ? rc : journal_load_state(state, s->last_us, &s->env, err);
}

int journal_snapshot_get(rv_store *store, const struct rv_store_scope *scope, const char *run, int64_t upto,
                         struct snapshot *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct snapshot s = {0};
    rv_err *why = NULL;
    int64_t seq = 0;

    *out = (struct snapshot){0};
    int rc = rv_store_get_snapshot(store, scope, run, &seq, &text, &why);
    if (rc == 0 && seq > 1 && seq <= upto)
        rc = read_snapshot(rv_buf_str(&text), seq, &s, &why);
    if (rc == 0)
        *out = s;
    else
        journal_snapshot_fini(&s);
    rv_buf_fini(&text);
    rv_err_free(why); /* a damaged snapshot is ignored: the journal has all records */
    return rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "read the snapshot of run \"%s\"", run) : 0;
}

int64_t journal_snapshot_seq(rv_store *store, const struct rv_store_scope *scope, const char *run)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    int64_t seq = 0;

    if (rv_store_get_snapshot(store, scope, run, &seq, &text,
                              RV_CODE_ONLY("0: a snapshot may be written once more than it has to be")) < 0)
        seq = 0;
    rv_buf_fini(&text);
    return seq;
}

void journal_snapshot_fini(struct snapshot *s)
{
    rv_envelope_free(s->env);
    *s = (struct snapshot){0};
}
