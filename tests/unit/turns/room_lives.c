/* Other lives of a run: after a death, cancelled, replayed. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

static const struct rv_store_scope all = {0};

static void must(struct room *r, int rc, rv_err *err)
{
    if (rc < 0)
        ck_abort_msg("%s: %s", r->scene->name, rv_kit_err_take(err));
}

static int replay(struct room *r, int64_t upto,
                  int (*on_step)(void *, const struct rv_record *, const struct rv_event *, const struct rv_effects *,
                                 const rv_run *, rv_err **),
                  void *self, struct rv_replayed *out, rv_err **err)
{
    const struct rv_replay_opts opts = {
        .pipeline = r->p, .catalog = &room_catalog, .upto = upto, .on_step = on_step, .self = self};

    return rv_journal_replay(r->store, &all, r->run_id, &opts, out, err);
}

void room_die(struct room *r)
{
    struct rv_event ev = {.kind = RV_EVENT_RECOVER};
    int64_t unknown[16];
    size_t n_unknown = 0;
    rv_err *err = NULL;

    rv_journal_free(r->j);
    r->j = NULL;
    rv_run_free(r->run);
    r->run = NULL;
    rv_replayed_fini(&r->replayed);
    must(r, replay(r, 0, NULL, NULL, &r->replayed, &err), err);
    r->run = r->replayed.run;
    r->replayed.run = NULL;
    rv_run_set_emits(r->run, true);
    ck_assert_int_eq(r->replayed.last_us, r->now_us);
    must(r,
         rv_journal_open(r->store, &all, r->run_id,
                         &(struct rv_journal_claim){.owner = "there/1", .now_us = r->now_us + RV_LEASE_DEFAULT_US + 1},
                         &r->j, &err),
         err);
    ck_assert_uint_eq(r->replayed.open.n, r->n_calls);
    for (size_t i = 0; i < r->n_calls; i++) {
        const struct rv_effect *e = &r->replayed.open.items[i];
        r->calls[i].deadline_us += r->calls[i].deadline_us ? r->gap_us : 0; /* as whoever makes it again does */
        ck_assert_int_eq(e->call_id, r->calls[i].id);
        ck_assert_str_eq(e->request ? e->request : "", r->calls[i].request);
        ck_assert_str_eq(e->key ? e->key : "", r->calls[i].key);
        if (e->kind == RV_EFFECT_CALL_TOOL && e->effect_class == RV_EFFECT_NON_IDEMPOTENT) {
            room_perform(r, &r->calls[i]); /* it may have */
            unknown[n_unknown++] = e->call_id;
        }
    }
    r->now_us += r->gap_us;
    ev.now_us = r->now_us;
    must(r, room_step(r, &ev, &err), err);
    for (size_t i = 0; i < n_unknown; i++) {
        const struct rv_event told = {
            .kind = RV_EVENT_TOOL_DONE, .now_us = r->now_us, .call_id = unknown[i], .unknown = true};
        must(r, room_step(r, &told, &err), err);
    }
}

static void reopen(struct room *r)
{
    rv_err *err = NULL;

    rv_journal_free(r->j);
    r->j = NULL;
    must(r,
         rv_journal_open(r->store, &all, r->run_id, &(struct rv_journal_claim){.owner = "here/1", .now_us = r->now_us},
                         &r->j, &err),
         err);
}

/* A result for each call that waits for the client. */
static json_object *client_results(json_object *asked)
{
    json_object *calls = rv_json_get_arr(asked, RV_CLIENT_CALLS), *data = json_object_new_object(),
                *results = json_object_new_object();
    const char *id = "";

    json_object_object_add(data, RV_CLIENT_RESULTS, results);
    for (size_t i = 0; i < json_object_array_length(calls); i++) {
        ck_assert(rv_json_get_text(json_object_array_get_idx(calls, i), "id", &id));
        json_object *result = json_object_new_object();
        json_object_object_add(result, "content", json_object_new_string("made"));
        json_object_object_add(results, id, result);
    }
    return data;
}

void room_approve(struct room *r)
{
    const struct rv_interrupt in = rv_envelope_interrupt(rv_run_envelope(r->run));
    bool is_client = in.exists && rv_interrupt_asks_client(in.kind, in.data);
    json_object *data = is_client ? client_results(in.data) : NULL;
    struct rv_event ev = {
        .kind = RV_EVENT_ANSWER, .now_us = r->now_us, .response = {.has_approved = true, .approved = true}};
    rv_err *err = NULL;

    if (is_client)
        ev.response = (struct rv_response){.data = data, .text = RV_STR_LIT("And now?")};
    reopen(r);
    must(r, room_step(r, &ev, &err), err);
    json_object_put(data);
}

void room_cancel(struct room *r, const char *partial)
{
    rv_buf text = RV_BUF_INIT(ROOM_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    rv_err *err = NULL;

    rv_jw_arr(&w);
    for (size_t i = 0; partial[0] && i < r->n_calls; i++) {
        if (r->calls[i].kind != RV_EFFECT_CALL_LLM)
            continue;
        rv_jw_obj(&w);
        rv_jw_kv_int(&w, "call_id", r->calls[i].id);
        rv_jw_kv_text(&w, "text", partial);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    if (r->finished) /* it waits, and its journal was given up */
        reopen(r);
    const struct rv_event ev = {.kind = RV_EVENT_CANCEL, .now_us = r->now_us, .reply = rv_buf_str(&text)};
    must(r, room_step(r, &ev, &err), err);
    rv_buf_fini(&text);
}

/* --- replay --- */

static int collect(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    (void)record;
    (void)ev;
    (void)run;
    (void)err;
    for (size_t i = 0; i < effects->n; i++)
        if (effects->items[i].kind == RV_EFFECT_EMIT)
            rv_buf_printf(self, "%.*s\n", RV_STR_ARG(rv_effect_text(effects, &effects->items[i])));
    return 0;
}

static void check_part(struct room *r, size_t step)
{
    struct rv_replayed part;
    rv_err *err = NULL;
    rv_buf events = RV_BUF_INIT(ROOM_MAX_TEXT), state = RV_BUF_INIT(ROOM_MAX_TEXT);

    must(r, replay(r, r->seqs[step], collect, &events, &part, &err), err);
    rv_envelope_write_state(rv_run_envelope(part.run), &state);
    rv_buf_putc(&state, '\n');
    const char *was = rv_buf_cstr(&r->states) + r->state_at[step];
    ck_assert_msg(state.len == r->state_at[step + 1] - r->state_at[step] &&
                      memcmp(rv_buf_cstr(&state), was, state.len) == 0,
                  "%s, step %zu\nreplayed: %swas:      %.*s", r->scene->name, step, rv_buf_cstr(&state),
                  (int)(r->state_at[step + 1] - r->state_at[step]), was);
    ck_assert_msg(events.len <= r->events.len && memcmp(rv_buf_cstr(&events), rv_buf_cstr(&r->events), events.len) == 0,
                  "%s, step %zu\nreplayed:\n%swere:\n%s", r->scene->name, step, rv_buf_cstr(&events),
                  rv_buf_cstr(&r->events));
    ck_assert(step + 1 < r->n_steps || events.len == r->events.len);
    rv_replayed_fini(&part);
    rv_buf_fini(&events);
    rv_buf_fini(&state);
}

void room_check_replay(struct room *r)
{
    rv_err *err = NULL;

    for (size_t i = 0; i < r->n_steps; i++)
        check_part(r, i);
    for (int64_t seq = 1; seq <= r->seqs[r->n_steps - 1]; seq++) { /* in the middle of a step, too */
        struct rv_replayed part;
        must(r, replay(r, seq, NULL, NULL, &part, &err), err);
        rv_replayed_fini(&part);
    }
}

/* --- what came of it --- */

static int add_row(void *self, const struct rv_message *m, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    rv_buf_puts(b, m->type);
    if (m->parent_call_id)
        rv_buf_printf(b, "<%s", m->parent_call_id);
    if (m->agent_name)
        rv_buf_printf(b, "[%s]", m->agent_name);
    if (m->status && strcmp(m->status, "completed") != 0)
        rv_buf_printf(b, "(%s)", m->status);
    if (m->has_content)
        rv_buf_printf(b, " %.*s", RV_STR_ARG(m->content));
    if (m->tool_calls.len > 0)
        rv_buf_printf(b, " %.*s", RV_STR_ARG(m->tool_calls));
    rv_buf_putc(b, '\n');
    return 0;
}

static int add_columns(void *self, const struct rv_message *m, rv_err **err)
{
    rv_buf *b = self;

    rv_buf_printf(b, "%lld %s %s %s %s in %lld out %lld cost %lld ms %lld at %lld run %s trace %s span %s meta %.*s ",
                  (long long)m->seq, m->id, m->type, m->agent_name ? m->agent_name : "-", m->model ? m->model : "-",
                  (long long)m->input_tokens, (long long)m->output_tokens, (long long)m->cost_micro_usd,
                  (long long)m->latency_ms, (long long)m->created_us, m->run_id, m->trace_id, m->span_id,
                  RV_STR_ARG(m->metadata));
    return add_row(b, m, err);
}

static char *read_rows(struct room *r, int (*each)(void *, const struct rv_message *, rv_err **))
{
    const struct rv_message_filter filter = {.with_children = true};
    rv_buf b = RV_BUF_INIT(ROOM_MAX_TEXT);
    rv_err *err = NULL;

    rv_buf_puts(&b, "");
    must(r,
         rv_store_read_messages(r->store, &all,
                                &(const struct rv_messages_of){r->conversation.context.session_id, &filter}, each, &b,
                                &err),
         err);
    char *text = rv_str_dup(rv_buf_str(&b));
    rv_buf_fini(&b);
    return text;
}

char *room_rows(struct room *r)
{
    return read_rows(r, add_row);
}

char *room_columns(struct room *r)
{
    return read_rows(r, add_columns);
}

char *room_state(const struct room *r)
{
    rv_buf b = RV_BUF_INIT(ROOM_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(r->run), &b);
    return rv_buf_steal(&b, NULL);
}

const char *room_output(struct room *r, const char *path)
{
    char *text = room_state(r), *name = rv_str_dup(rv_str_of(path)), *save = NULL;
    json_object *state = rv_kit_json(text), *at = state;

    for (char *part = strtok_r(name, ".", &save); part; part = strtok_r(NULL, ".", &save))
        if (!json_object_is_type(at, json_type_object) || !json_object_object_get_ex(at, part, &at)) {
            at = NULL;
            break;
        }
    char *found = at ? rv_kit_text(at) : rv_str_dup(RV_STR_LIT("absent"));
    rv_str cut = rv_utf8_cut(rv_str_of(found), sizeof r->wanted - 1);
    memcpy(r->wanted, cut.ptr, cut.len);
    r->wanted[cut.len] = '\0';
    json_object_put(state);
    free(text);
    free(name);
    free(found);
    return r->wanted;
}

size_t room_count(const char *text, const char *part)
{
    size_t n = 0, len = strlen(part);
    const char *end = text + strlen(text);

    /* not strstr(): the address sanitizer reads the whole text at each call of it */
    for (const char *at = memmem(text, (size_t)(end - text), part, len); at;
         at = memmem(at, (size_t)(end - at), part, len)) {
        at++;
        n++;
    }
    return n;
}
