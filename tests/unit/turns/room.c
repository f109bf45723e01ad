#include "tests/unit/turns/room.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/catalog.h"

#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"

static const struct rv_tool_info tools[] = {
    {.name = "read", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET},
    {.name = "look", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET},
    {.name = "action", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET},
    {.name = "put", .risk = RV_RISK_WRITE, .effect = RV_EFFECT_IDEMPOTENT, .category = RV_UNSET},
    {.name = "send", .risk = RV_RISK_WRITE, .effect = RV_EFFECT_NON_IDEMPOTENT, .category = RV_UNSET},
    {.name = "read_resource", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET},
    {.name = "wipe", .risk = RV_RISK_DESTRUCTIVE, .effect = RV_EFFECT_NON_IDEMPOTENT, .category = RV_UNSET},
};
static struct rv_kit_tools tool_list = {tools, RV_COUNT(tools)};
const struct rv_catalog room_catalog = RV_KIT_CATALOG(&tool_list);

static void must(int rc, rv_err *err)
{
    if (rc < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
}

/* --- documents --- */

static const char *document(const struct scene *s, const char *name)
{
    static char text[4096];
    const char *body = strcmp(name, "parent") == 0 ? s->parent : NULL;
    rv_buf b = RV_BUF_INIT(sizeof text - 1);

    for (size_t i = 0; !body && i + 1 < RV_COUNT(s->agents) && s->agents[i]; i += 2)
        if (strcmp(s->agents[i], name) == 0)
            body = s->agents[i + 1];
    if (!body)
        return NULL;
    rv_buf_printf(&b, "type: object\nname: %s\ndescription: You are %s.\n%s", name, name, body);
    ck_assert_int_eq(b.rc, 0);
    memcpy(text, rv_buf_cstr(&b), b.len + 1);
    rv_buf_fini(&b);
    return text;
}

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    const char *found = document(self, name);

    if (!found)
        return RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\"", name);
    *text = rv_str_of(found);
    *place = "here";
    return 0;
}

static void load(struct room *r)
{
    const struct scene *s = r->scene;
    const struct rv_agent_source source = {find, (void *)s};
    rv_buf yaml = RV_BUF_INIT(ROOM_MAX_TEXT), faults = RV_BUF_INIT(ROOM_MAX_TEXT);
    rv_err *err = NULL;

    rv_buf_printf(&yaml, "name: t\n%s%s\nagents:\n  - {agent: parent%s}\n",
                  s->keys && strstr(s->keys, "models:") ? "" : "models: {default: scripted}\n", s->keys ? s->keys : "",
                  s->stage ? s->stage : "");
    must(rv_pipeline_parse(rv_buf_str(&yaml), "t.yaml", ".", r->findings, &r->p, &err), err);
    must(rv_pipeline_bind_agents(r->p, &source, r->findings, &err), err);
    rv_findings_write_text(r->findings, false, &faults);
    if (!r->p->is_sound)
        rv_kit_die("%s\nin:\n%s", rv_buf_cstr(&faults), rv_buf_cstr(&yaml));
    rv_buf_fini(&yaml);
    rv_buf_fini(&faults);
}

/* --- a run --- */

static void set_conversation(struct room *r)
{
    const struct rv_store_scope scope = {.tenant = RV_STORE_TENANT, .user = "alice"};
    const struct rv_session_row fresh = {
        .id = SESSION, .tenant = RV_STORE_TENANT, .user = "alice", .agent_name = "parent", .created_us = ROOM_T0};
    struct rv_session_row row = {0};
    struct rv_conversation *c = &r->conversation;
    rv_err *err = NULL;

    must(rv_store_ensure_session(r->store, &fresh, &row, &err), err);
    *c = (struct rv_conversation){.context = {.user_id = "alice",
                                              .tenant_id = RV_STORE_TENANT,
                                              .session_id = SESSION,
                                              .agent_schema_uri = "parent"},
                                  .keeps = !r->scene->forgets,
                                  .has_routing = r->scene->routes,
                                  .routing = RV_ROUTING_INIT,
                                  .upto_seq = row.n_messages,
                                  .history_opts = RV_HISTORY_OPTS_INIT};
    if (r->scene->routes)
        rv_routing_activate(&c->routing, "parent", 5);
    rv_session_row_fini(&row);
    must(rv_journal_read_history(r->store, &scope, c, &c->history, c->history_hash, &err), err);
}

static rv_envelope *new_envelope(struct room *r)
{
    struct rv_rand_state bits;
    rv_buf text = RV_BUF_INIT(ROOM_MAX_TEXT);
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_buf id = RV_BUF_INIT(sizeof r->run_id - 1);
    rv_buf_printf(&id, "env_%lld", (long long)r->conversation.upto_seq);
    memcpy(r->run_id, rv_buf_cstr(&id), id.len + 1);
    rv_jw_kv_text(&w, "envelope_id", r->run_id);
    rv_jw_kv_text(&w, "raw_input", r->scene->user ? r->scene->user : "ask");
    rv_jw_kv_text(&w, "user_id", "alice");
    rv_jw_kv_text(&w, "session_id", SESSION);
    rv_jw_kv_text(&w, "request_id", "q");
    rv_jw_obj_end(&w);
    json_object *state = rv_kit_json(rv_buf_cstr(&text));
    must(rv_envelope_load(state, rv_rand_seeded(&bits, 1), r->now_us, &env, &err), err);
    json_object_put(state);
    rv_buf_fini(&id);
    rv_buf_fini(&text);
    return env;
}

struct room *room_new(const struct scene *scene, rv_store *store)
{
    const struct rv_store_opts so = {0};
    struct room *r = calloc(1, sizeof *r);
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    char bundle[RV_STORE_HASH_MAX];
    rv_err *err = NULL;

    if (!r)
        rv_kit_die("no memory");
    r->scene = scene;
    r->store = store;
    r->own_store = !store;
    r->now_us = ROOM_T0;
    r->findings = rv_findings_new();
    r->events = r->states = RV_BUF_INIT(ROOM_MAX_TEXT);
    if (!store)
        must(rv_store_open("memory:", &so, &r->store, &err), err);
    load(r);
    set_conversation(r);
    rv_envelope *env = new_envelope(r);
    must(rv_store_put_blob(r->store, RV_STR_LIT("a bundle"), bundle, &err), err);
    const struct rv_journal_start start = {
        .bundle = bundle,
        .pipeline = r->p,
        .begin = {.mode = RV_UNSET, .rules = scene->rules, .conversation = &r->conversation},
        .env = env,
        .owner = "here/1",
        .now_us = r->now_us,
    };
    must(rv_journal_create(r->store, &start, &r->j, &err), err);
    opts.conversation = &r->conversation;
    opts.rules = scene->rules;
    must(rv_run_new(r->p, &room_catalog, &opts, env, &r->run, &err), err);
    return r;
}

static void call_fini(struct room_call *c)
{
    free(c->name);
    free(c->who);
    free(c->request);
    free(c->key);
}

static void drop_calls(struct room *r)
{
    for (size_t i = 0; i < r->n_calls; i++)
        call_fini(&r->calls[i]);
    r->n_calls = 0;
}

void room_free(struct room *r)
{
    drop_calls(r);
    free(r->calls);
    for (size_t i = 0; i < r->n_performed; i++)
        free(r->performed[i]);
    rv_journal_free(r->j);
    rv_run_free(r->run);
    rv_replayed_fini(&r->replayed);
    json_object_put(r->conversation.history);
    rv_effects_fini(&r->fx);
    rv_buf_fini(&r->events);
    rv_buf_fini(&r->states);
    rv_pipeline_free(r->p);
    rv_findings_free(r->findings);
    if (r->own_store)
        rv_store_close(r->store);
    free(r);
}

/* --- steps --- */

static void end_call(struct room *r, int64_t id)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].id == id) {
            call_fini(&r->calls[i]);
            memmove(&r->calls[i], &r->calls[i + 1], (--r->n_calls - i) * sizeof *r->calls);
            return;
        }
}

/* The table's next entry for that call; the same for one that is asked for again. */
static int line_for(struct room *r, int64_t id, const char *to)
{
    ck_assert_int_lt(id, (int64_t)RV_COUNT(r->memo));
    if (r->memo[id])
        return r->memo[id] - 1;
    for (int i = 0; i < ROOM_LINES && r->scene->lines[i].to; i++)
        if (!r->used[i] && strcmp(r->scene->lines[i].to, to) == 0) {
            r->used[i] = true;
            r->memo[id] = i + 1;
            return i;
        }
    return -1;
}

static void add_call(struct room *r, const struct rv_effect *e)
{
    const char *who = e->origin ? e->origin->agent : "parent";

    r->calls = realloc(r->calls, (r->n_calls + 1) * sizeof *r->calls);
    struct room_call *c = &r->calls[r->n_calls++];
    *c = (struct room_call){.id = e->call_id,
                            .at_us = e->at_us,
                            .deadline_us = e->deadline_us,
                            .kind = e->kind,
                            .effect_class = e->effect_class,
                            .who = rv_str_dup(rv_str_of(who)),
                            .name = rv_str_dup(rv_str_of(e->name)),
                            .request = rv_str_dup((rv_str){e->request, e->request_len}),
                            .key = rv_str_dup(rv_str_of(e->key))};
    c->line = e->kind == RV_EFFECT_ARM_TIMER ? -1 : line_for(r, c->id, e->kind == RV_EFFECT_CALL_LLM ? who : e->name);
}

static void take_effects(struct room *r)
{
    for (size_t i = 0; i < r->fx.n; i++) {
        const struct rv_effect *e = &r->fx.items[i];
        if (e->kind <= RV_EFFECT_CALL_HOOK || e->kind == RV_EFFECT_ARM_TIMER)
            add_call(r, e);
        else if (e->kind == RV_EFFECT_CANCEL_CALL)
            end_call(r, e->call_id);
        else if (e->kind == RV_EFFECT_KEEP)
            r->n_keeps++;
        else if (e->kind == RV_EFFECT_EMIT)
            rv_buf_printf(&r->events, "%.*s\n", RV_STR_ARG(rv_effect_text(&r->fx, e)));
        else if (e->kind == RV_EFFECT_FINISH) {
            drop_calls(r);
            r->finished = true;
        }
    }
}

int room_step(struct room *r, const struct rv_event *ev, rv_err **err)
{
    rv_effects_clear(&r->fx);
    r->finished = false;
    int rc = rv_run_step(r->run, ev, &r->fx, err);
    if (rc == 0)
        rc = rv_journal_step(r->j, ev, &r->fx, r->run, err);
    if (rc < 0)
        return rc;
    end_call(r, ev->call_id);
    take_effects(r);
    ck_assert_uint_lt(r->n_steps + 1, RV_COUNT(r->seqs));
    r->seqs[r->n_steps++] = rv_journal_seq(r->j);
    rv_envelope_write_state(rv_run_envelope(r->run), &r->states);
    rv_buf_putc(&r->states, '\n');
    r->state_at[r->n_steps] = r->states.len;
    return 0;
}

static void must_step(struct room *r, const struct rv_event *ev)
{
    rv_err *err = NULL;

    if (room_step(r, ev, &err) < 0)
        ck_abort_msg("%s: %s", r->scene->name, rv_kit_err_take(err));
}

void room_start(struct room *r)
{
    must_step(r, &(struct rv_event){.kind = RV_EVENT_START, .now_us = r->now_us});
}

/* "id name arguments | id name arguments" as JSON. */
static void write_calls(const char *calls, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_arr(&w);
    for (const char *at = calls; at && *at;) {
        const char *end = strstr(at, " | ");
        rv_str part = {at, end ? (size_t)(end - at) : strlen(at)};
        const char *name = memchr(part.ptr, ' ', part.len);
        const char *args = name ? memchr(name + 1, ' ', part.len - (size_t)(name + 1 - part.ptr)) : NULL;
        ck_assert_ptr_nonnull(name);
        rv_jw_obj(&w);
        rv_jw_kv_str(&w, "id", (rv_str){part.ptr, (size_t)(name - part.ptr)});
        const char *name_end = args ? args : part.ptr + part.len;
        rv_jw_kv_str(&w, "name", (rv_str){name + 1, (size_t)(name_end - name - 1)});
        rv_jw_kv_str(&w, "arguments",
                     args ? (rv_str){args + 1, (size_t)(part.ptr + part.len - args - 1)} : RV_STR_LIT("{}"));
        rv_jw_obj_end(&w);
        at = end ? end + 3 : NULL;
    }
    rv_jw_arr_end(&w);
}

void room_perform(struct room *r, const struct room_call *c)
{
    if (c->kind != RV_EFFECT_CALL_TOOL || c->effect_class != RV_EFFECT_NON_IDEMPOTENT)
        return;
    for (size_t i = 0; i < r->n_performed; i++)
        ck_assert_msg(strcmp(r->performed[i], c->key) != 0, "%s: %s ran twice", r->scene->name, c->key);
    r->performed[r->n_performed++] = rv_str_dup(rv_str_of(c->key));
}

/* The document of the agent that is asked, as the shell answers. */
static bool answer_ask(struct room *r, const struct room_call *c, rv_buf *out)
{
    json_object *args = rv_kit_json(c->request);
    const char *name = "";
    rv_jw w = rv_jw_on(out);

    ck_assert(rv_json_get_text(args, "agent_name", &name));
    const char *text = document(r->scene, name);
    if (text) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "agent", name);
        rv_jw_kv_text(&w, "agent_document", text);
        rv_jw_obj_end(&w);
    } else {
        rv_buf_printf(out, "there is no agent \"%s\"", name);
    }
    json_object_put(args);
    return text != NULL;
}

static void fail_event(struct rv_event *ev, const char *fails, char type[32])
{
    ev->retryable = fails[0] == '?';
    fails += ev->retryable;
    const char *colon = strchr(fails, ':');
    ck_assert(colon && (size_t)(colon - fails) < 32);
    memcpy(type, fails, (size_t)(colon - fails));
    type[colon - fails] = '\0';
    ev->failed = true;
    ev->error_type = type;
    ev->error = rv_str_of(colon + 1);
}

bool room_answer(struct room *r)
{
    static const struct line nothing = {.text = "{}"}, silent = {.text = "nobody says anything"};
    rv_buf text = RV_BUF_INIT(ROOM_MAX_TEXT), calls = RV_BUF_INIT(ROOM_MAX_TEXT);
    char type[32];

    if (r->n_calls == 0)
        return false;
    size_t pick = r->scene->last_first ? r->n_calls - 1 : 0;
    const struct room_call *c = &r->calls[pick];
    const struct line *l = c->line >= 0                    ? &r->scene->lines[c->line]
                           : c->kind == RV_EFFECT_CALL_LLM ? &silent
                                                           : &nothing;
    struct rv_event ev = {.call_id = c->id, .llm = RV_LLM_ANSWER_NONE};

    room_perform(r, c);
    r->now_us += l->takes_us ? l->takes_us : ROOM_TICK_US;
    ev.reply = rv_str_of(l->text ? l->text : "");
    if (l->fails)
        fail_event(&ev, l->fails, type);
    if (c->kind == RV_EFFECT_ARM_TIMER) {
        ev.kind = RV_EVENT_TIMER;
        r->now_us = r->now_us < c->at_us ? c->at_us : r->now_us;
    } else if (c->kind == RV_EFFECT_CALL_LLM) {
        ev.kind = RV_EVENT_LLM_DONE;
        ev.llm.usage = (struct rv_usage){.input_tokens = l->in, .output_tokens = l->out};
        ev.llm.has_usage = l->in > 0 && !l->fails;
        if (l->calls)
            write_calls(l->calls, &calls);
        ev.llm.tool_calls = rv_buf_str(&calls);
        if (l->is_cut)
            ev.llm.finish = RV_FINISH_LENGTH;
        if (c->deadline_us && r->now_us >= c->deadline_us) {
            r->now_us = c->deadline_us;
            fail_event(&ev, "TimeoutError:it took too long", type);
            ev.llm = RV_LLM_ANSWER_NONE;
        }
    } else {
        ev.kind = c->kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE : RV_EVENT_HOOK_DONE;
        if (strcmp(c->name, "ask_agent") == 0 && c->line < 0 && !ev.failed) {
            ev.failed = !answer_ask(r, c, &text);
            ev.reply = ev.failed ? RV_STR_LIT("") : rv_buf_str(&text);
            ev.error_type = ev.failed ? "NotFoundError" : NULL;
            ev.error = ev.failed ? rv_buf_str(&text) : (rv_str){NULL, 0};
        }
    }
    ev.now_us = r->now_us;
    must_step(r, &ev);
    rv_buf_fini(&text);
    rv_buf_fini(&calls);
    return true;
}

void room_go(struct room *r)
{
    for (int i = 0; i < 200 && room_answer(r); i++)
        ;
    ck_assert_msg(r->finished, "%s: the run stands still", r->scene->name);
}
