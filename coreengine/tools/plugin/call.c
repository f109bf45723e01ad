/* One call into a capability. The plugin answers through callbacks; what it said is judged after it has returned, so
 * that a plugin that says two things, or nothing, is told apart from one that fails properly. */
#include "coreengine/base/base.h"
#include "coreengine/tools/plugin/plugin_internal.h"
#include "envelope/envelope.h"

#include <assert.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_US RV_US_PER_S /* a second, in which RV_PLUGIN_LOG_LINES are let through */
/* of the state behind a call: with another pointer a plugin ends the process here, not later */
#define CALL_MAGIC        0x7265637au
#define MAX_PROGRESS_TEXT 1024 /* bytes; an event has fewer */

/* --- log lines: what a capability chooses to say, perhaps in a loop. Each capability has so many lines in a second;
 * what is left out is counted. The time is that of the log, so that a test can give it --- */

struct rv_plugin_logging {
    pthread_mutex_t lock; /* guards the second and its numbers; leaf: many threads call */
    int64_t since_us;     /* when the second under way began; INT64_MIN: there was no line yet */
    int64_t n;            /* lines of that second, including those that were left out */
    int64_t left_out;     /* not told yet */
};

struct rv_plugin_logging *plugin_logging_new(void)
{
    struct rv_plugin_logging *l = calloc(1, sizeof *l);

    if (l && pthread_mutex_init(&l->lock, NULL) != 0) {
        free(l);
        return NULL;
    }
    if (l)
        l->since_us = INT64_MIN;
    return l;
}

static void tell_left_out(const struct rv_plugin *pl, int64_t n)
{
    if (n > 0)
        RV_LOG(pl->log, WARN, "capability.log_left_out", RV_F_TEXT("capability", pl->name), RV_F_I64("lines", n));
}

void plugin_logging_fini(struct rv_plugin *pl)
{
    if (!pl->logging)
        return;
    tell_left_out(pl, pl->logging->left_out);
    pthread_mutex_destroy(&pl->logging->lock);
    free(pl->logging);
    pl->logging = NULL;
}

/* May another line be written? *left_out: lines of earlier seconds that are to be told of first. */
static bool take_turn(struct rv_plugin_logging *l, int64_t now_us, int64_t *left_out)
{
    *left_out = 0;
    pthread_mutex_lock(&l->lock);
    if (l->since_us == INT64_MIN || now_us >= l->since_us + WINDOW_US || now_us < l->since_us) {
        *left_out = l->left_out;
        l->left_out = 0;
        l->since_us = now_us;
        l->n = 0;
    }
    bool may = l->n++ < RV_PLUGIN_LOG_LINES;
    l->left_out += !may;
    pthread_mutex_unlock(&l->lock);
    return may;
}

void plugin_log(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, enum rv_log_level level,
                const char *message)
{
    rv_log *log = e->owner->log;
    char text[RV_PLUGIN_MAX_TEXT + 1];
    int64_t left_out;

    if (!rv_log_is_on(log, level))
        return;
    bool may = take_turn(e->owner->logging, rv_log_now_us(log), &left_out);
    tell_left_out(e->owner, left_out);
    if (!may)
        return;
    plugin_clean(text, sizeof text, message);
    const struct rv_field fields[] = {RV_F_TEXT("capability", e->owner->name),
                                      RV_F_TEXT("entry", e->name),
                                      RV_F_TEXT("run_id", call->run_id),
                                      RV_F_TEXT("stage", call->stage),
                                      RV_F_I64("call_id", call->call_id),
                                      RV_F_TEXT("key", call->idempotency_key),
                                      RV_F_TEXT("text", text)};
    rv_log_write(log, level, "capability.log", fields, RV_COUNT(fields));
}

/* --- what the plugin calls --- */

struct call_state {
    uint32_t magic;
    const struct rv_plugin_entry *entry;
    struct rv_plugin_work *work; /* NULL: the answer cannot come late */
    const char *args;
    const struct rv_plugin_callbacks *callbacks;
    rv_buf *out; /* where the reply is appended */
    bool can_emit, enough;
    size_t emitted; /* bytes of all pieces */
    struct rv_plugin_said *said;
    struct rv_plugin_attached *attached; /* owned; NULL: not asked for */
    struct rv_plugin_asks asks;
};

static struct call_state *state_of(const struct rv_cap_call *call)
{
    struct call_state *s = call->host;

    assert(s->magic == CALL_MAGIC);
    return s;
}

static int host_cancelled(const struct rv_cap_call *call)
{
    const struct call_state *s = state_of(call);

    return s->callbacks->cancelled(s->callbacks->self);
}

bool plugin_said_reply(struct rv_plugin_said *said, rv_buf *out, const char *json)
{
    size_t len = json ? strnlen(json, (size_t)RV_CAP_MAX_REPLY + 1) : 0;

    if (++said->n_replies > 1)
        return true;
    said->no_text = !json;
    said->too_large = len > RV_CAP_MAX_REPLY;
    if (said->no_text || said->too_large)
        return true;
    rv_buf_add(out, json, len);
    return out->rc < 0;
}

static int host_reply(struct rv_cap_call *call, const char *json)
{
    const struct call_state *s = state_of(call);

    return plugin_said_reply(s->said, s->out, json);
}

static const struct rv_cap_attachment *host_attachments(struct rv_cap_call *call, uint32_t *n)
{
    struct call_state *s = state_of(call);

    if (n)
        *n = 0;
    if (s->entry->kind != RV_NAME_HOOK)
        return NULL;
    if (!s->attached)
        s->attached = calloc(1, sizeof *s->attached);
    const struct rv_cap_attachment *all = s->attached ? plugin_attached(s->attached, s->args, n) : NULL;
    if (!s->attached || s->attached->is_short) /* what the hook says of a request without them does not count */
        s->out->rc = RV_E_NOMEM;
    return all;
}

static int host_replace_attachments(struct rv_cap_call *call, const struct rv_cap_attachment *items, uint32_t n)
{
    static const struct rv_plugin_attached none;
    const struct call_state *s = state_of(call);
    rv_buf text = RV_BUF_INIT((size_t)RV_CAP_MAX_REPLY + 1);

    if (n > RV_CAP_MAX_ATTACHMENTS || (n > 0 && !items)) {
        plugin_said_failure(s->said, rv_error_execution,
                            n > RV_CAP_MAX_ATTACHMENTS
                                ? "it gave more than " RV_LIMIT_TEXT(RV_CAP_MAX_ATTACHMENTS) " attachments"
                                : "it gave attachments without a list of them");
        return 1;
    }
    plugin_write_attachments(s->attached ? s->attached : &none, items, n, &text);
    if (text.rc == RV_E_LIMIT) {
        s->said->n_replies++;
        s->said->too_large = true;
    } else if (text.rc < 0) {
        plugin_said_failure(s->said, rv_error_execution,
                            text.rc == RV_E_NOMEM ? "no memory for its attachments"
                                                  : "it gave an attachment that is not UTF-8");
    }
    int refused = text.rc < 0 || plugin_said_reply(s->said, s->out, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return refused;
}

static int host_ask(struct rv_cap_call *call, const char *service, const char *args, const char **answer)
{
    static const char over[] = "{\"type\":\"UnavailableError\",\"message\":\"the call has its answer: nothing can be "
                               "asked any more\"}";
    struct call_state *s = state_of(call);

    if (s->said->n_replies == 0 && s->said->n_failures == 0)
        return plugin_ask(&s->asks, s->callbacks, service, args, answer);
    if (answer)
        *answer = over;
    return 1;
}

static int host_fail_as_asked(struct rv_cap_call *call)
{
    const struct call_state *s = state_of(call);
    json_object *failure = NULL;

    if (s->asks.failure)
        RV_IGNORE(rv_json_parse(rv_str_of(s->asks.failure), NULL, &failure, NULL), "the usual type then");
    plugin_said_failure(s->said, rv_json_text_or(failure, "type", ""),
                        rv_json_text_or(failure, "message", "it fails as its last ask did, and no ask has failed"));
    json_object_put(failure);
    return 1;
}

static uint64_t host_later(struct rv_cap_call *call)
{
    const struct call_state *s = state_of(call);

    return plugin_late_take(s->entry, s->work);
}

static bool is_type_name(rv_str type)
{
    if (type.len == 0 || type.len > RV_PLUGIN_MAX_NAME)
        return false;
    for (size_t i = 0; i < type.len; i++) {
        char c = type.ptr[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return true;
}

/* For people and for a model: no control characters that would steer a terminal. */
void plugin_clean(char *out, size_t size, const char *text)
{
    const char *bytes = text ? text : "";
    size_t len = rv_utf8_cut((rv_str){bytes, strnlen(bytes, size)}, size - 1).len, from = 0, bad = 0;

    memcpy(out, bytes, len);
    out[len] = '\0';
    while (!rv_utf8_valid((rv_str){out + from, len - from}, &bad)) {
        from += bad;
        out[from] = '?';
    }
    for (size_t i = 0; i < len; i++)
        for (size_t n = rv_utf8_control(out + i, len - i); n > 0 && out[i] != '\n' && out[i] != '\t'; n--)
            out[i + n - 1] = ' ';
}

void plugin_said_failure(struct rv_plugin_said *said, const char *type, const char *message)
{
    const char *text = type ? type : "";
    rv_str given = {text, strnlen(text, RV_PLUGIN_MAX_NAME + 1)};

    if (++said->n_failures > 1) /* the first failure is the cause */
        return;
    if (!is_type_name(given))
        given = rv_str_of(rv_error_execution);
    memcpy(said->type, given.ptr, given.len);
    said->type[given.len] = '\0';
    plugin_clean(said->message, sizeof said->message, message);
}

static int host_fail(struct rv_cap_call *call, const char *type, const char *message)
{
    plugin_said_failure(state_of(call)->said, type, message);
    return 1;
}

static int refuse_piece(struct call_state *s, enum rv_piece_fault fault)
{
    if (s->said->piece_fault == RV_PIECE_GOOD)
        s->said->piece_fault = fault;
    s->enough = true;
    return 1;
}

/* The rules that need no look into the piece, where the function runs; plugin_piece() has the rest. */
static int host_emit(struct rv_cap_call *call, const char *json)
{
    struct call_state *s = state_of(call);
    size_t len;

    if (!s->can_emit)
        return 1;
    if (s->said->n_replies > 0 || s->said->n_failures > 0)
        return refuse_piece(s, RV_PIECE_LATE);
    if (!json)
        return refuse_piece(s, RV_PIECE_NULL);
    len = strnlen(json, RV_CAP_MAX_REPLY - s->emitted + 1);
    if (len > RV_CAP_MAX_REPLY - s->emitted)
        return refuse_piece(s, RV_PIECE_LARGE);
    s->emitted += len;
    s->enough = s->enough || s->callbacks->cancelled(s->callbacks->self) ||
                s->callbacks->emit(s->callbacks->self, (rv_str){json, len});
    return s->enough;
}

static int host_progress(struct rv_cap_call *call, double done, double total, const char *text)
{
    const struct call_state *s = state_of(call);
    char words[MAX_PROGRESS_TEXT + 1];

    if (s->entry->kind == RV_NAME_TOOL && s->said->n_replies == 0 && s->said->n_failures == 0 && isfinite(done) &&
        isfinite(total)) {
        plugin_clean(words, sizeof words, text);
        const struct rv_tool_progress p = {.progress = done, .total = total, .text = rv_str_of(words)};
        s->callbacks->progress(s->callbacks->self, &p);
    }
    return host_cancelled(call);
}

static void host_log(const struct rv_cap_call *call, int level, const char *message)
{
    static const enum rv_log_level levels[] = {RV_LOG_DEBUG, RV_LOG_INFO, RV_LOG_WARN, RV_LOG_ERROR};
    const struct call_state *s = state_of(call);

    s->callbacks->log(s->callbacks->self, levels[level < 0 ? 0 : level > 3 ? 3 : level], message);
}

/* The decision whether an effect is repeated depends on this answer: nothing is guessed. */
static int check_probe_answer(json_object *answer, rv_err **err)
{
    json_object *result = NULL;
    bool happened = false, says = json_object_object_get_ex(answer, "happened", NULL);

    json_object_object_foreach (answer, key, value) {
        (void)value;
        if (strcmp(key, "happened") != 0 && strcmp(key, "result") != 0)
            return RV_FAIL(err, RV_E_PLUGIN, "it answered an unknown member \"%s\"", key);
    }
    if (says && !rv_json_get_bool(answer, "happened", &happened))
        return RV_FAIL(err, RV_E_PLUGIN, "it answered \"happened\" that is neither true nor false");
    if (json_object_object_get_ex(answer, "result", &result) != happened)
        return happened ? RV_FAIL(err, RV_E_PLUGIN, "it answered that the call happened, but no \"result\"")
                        : RV_FAIL(err, RV_E_PLUGIN, "it answered a \"result\" of a call that did not happen");
    if (happened && !json_object_is_type(result, json_type_object))
        return RV_FAIL(err, RV_E_PLUGIN, "it answered a \"result\" that is not an object but %s",
                       rv_json_type_text(result));
    return 0;
}

static int check_reply(enum rv_name_kind kind, rv_str text, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_CAP_MAX_REPLY, .max_depth = RV_PLUGIN_MAX_DEPTH, .what = "answer"};
    json_object *value = NULL;
    int rc = rv_json_parse(text, &opts, &value, err);

    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "it answered what is not JSON");
    if (!json_object_is_type(value, json_type_object))
        rc = RV_FAIL(err, RV_E_PLUGIN, "it answered a value of type %s, not an object", rv_json_type_text(value));
    else if (kind == RV_NAME_PROBE)
        rc = check_probe_answer(value, err);
    json_object_put(value);
    return rc;
}

/* What the plugin did, in the order that tells most. */
int plugin_judge(enum rv_name_kind kind, const struct rv_plugin_said *s, const rv_buf *out, size_t start, rv_err **err)
{
    int rc;

    if (s->n_failures > 0 && s->n_replies > 0)
        return RV_FAIL(err, RV_E_PLUGIN, "it answered and failed in one call");
    if (s->n_failures > 0) {
        rc = RV_FAIL(err, RV_E_TOOL, "%s", *s->message ? s->message : "it failed and does not say why");
        rv_err_set_hint(err, "%s", s->type);
        return rc;
    }
    if (s->n_replies > 1)
        return RV_FAIL(err, RV_E_PLUGIN, "it answered %d times in one call", s->n_replies);
    if (s->too_large)
        return RV_FAIL(err, RV_E_PLUGIN, "its answer is larger than %u bytes", RV_CAP_MAX_REPLY);
    if (s->no_text)
        return RV_FAIL(err, RV_E_PLUGIN, "it answered with a null pointer");
    if (s->n_replies > 0 && (rc = rv_buf_check(out, "answer of a capability", err)) < 0)
        return rc;
    if (s->returned != 0)
        return RV_FAIL(err, RV_E_PLUGIN, "it returned %d without saying why", s->returned);
    if (s->n_replies == 0)
        return RV_FAIL(err, RV_E_PLUGIN, "it returned without an answer");
    return check_reply(kind, (rv_str){out->ptr + start, out->len - start}, err);
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

int plugin_fail_unknown(const rv_plugins *p, enum rv_name_kind kind, const char *name, rv_err **err)
{
    const char *word = rv_name_kind_text(kind), *nearest = NULL;
    bool callable = (unsigned)kind < RV_N_NAME_KINDS && kind != RV_NAME_PROMPT;
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "no %s \"%s\" in the loaded capabilities", word ? word : "entry", name);

    if (callable)
        nearest = rv_nearest(rv_str_of(name), p->names.lists[kind], p->names.n_lists[kind]);
    if (nearest)
        rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
    return rc;
}

void plugin_run(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, const char *args,
                const struct rv_plugin_callbacks *callbacks, rv_buf *out, struct rv_plugin_said *said)
{
    struct call_state state = {.magic = CALL_MAGIC,
                               .entry = e,
                               .work = call->work,
                               .args = args,
                               .callbacks = callbacks,
                               .out = out,
                               .can_emit = e->kind == RV_NAME_PROVIDER,
                               .said = said};
    struct rv_cap_call view = {.size = sizeof view,
                               .name = e->bare,
                               .args = args,
                               .run_id = text_of(call->run_id),
                               .stage = text_of(call->stage),
                               .user_id = text_of(call->user_id),
                               .session_id = text_of(call->session_id),
                               .idempotency_key = text_of(call->idempotency_key),
                               .timeout_ms = call->timeout_ms,
                               .host = &state,
                               .cancelled = host_cancelled,
                               .reply = host_reply,
                               .fail = host_fail,
                               .log = host_log,
                               .emit = host_emit,
                               .context = call->context && *call->context ? call->context : "{}",
                               .later = host_later,
                               .attachments = host_attachments,
                               .replace_attachments = host_replace_attachments,
                               .ask = host_ask,
                               .fail_as_asked = host_fail_as_asked,
                               .progress = host_progress};

    said->returned = e->fn(e->owner->self, &view);
    if (state.attached)
        plugin_attached_fini(state.attached);
    free(state.attached);
    plugin_asks_fini(&state.asks);
}

struct here {
    const struct rv_plugin_entry *entry;
    struct rv_plugin_pieces *pieces;
    int64_t until_us;
};

static bool is_cancelled_here(void *self)
{
    const struct here *here = self;
    const atomic_bool *cancelled = here->pieces->call->cancelled;

    return here->pieces->enough || (cancelled && atomic_load_explicit(cancelled, memory_order_relaxed));
}

static void log_here(void *self, enum rv_log_level level, const char *text)
{
    const struct here *here = self;

    plugin_log(here->entry, here->pieces->call, level, text);
}

static bool emit_here(void *self, rv_str json)
{
    const struct here *here = self;

    return plugin_piece(here->pieces, json);
}

static void progress_here(void *self, const struct rv_tool_progress *p)
{
    const struct here *here = self;

    const struct rv_plugin_call *call = here->pieces->call;

    if (call->on_progress)
        call->on_progress(call->progress_self, p);
}

static int ask_here(void *self, const char *service, rv_str args, rv_buf *answer, rv_err **err)
{
    const struct here *here = self;

    const struct rv_plugin_mark before = plugin_mark(NULL, NULL); /* the engine's own code, until it is back */
    int rc = plugin_pass_on(
        here->entry, here->pieces->call,
        &(const struct rv_plugin_request){.service = service, .args = args, .until_us = here->until_us}, answer, err);

    plugin_mark(before.path, before.entry);
    return rc;
}

/* Of a call that asks nothing the clock is not read. */
static int64_t until_us(const struct rv_plugin_entry *e, const struct rv_plugin_call *call)
{
    struct rv_clock clock = rv_clock_system();

    if (e->services.n == 0 || call->timeout_ms <= 0 || call->timeout_ms > RV_PLUGIN_MAX_TIMEOUT_MS)
        return RV_NEVER;
    return clock.now_us(clock.self) + call->timeout_ms * RV_US_PER_MS;
}

static int call_here(const struct rv_plugin_entry *e, struct rv_plugin_pieces *pieces, rv_buf *out,
                     struct rv_plugin_said *said, rv_err **err)
{
    const struct rv_plugin_call *call = pieces->call;
    struct here here = {e, pieces, until_us(e, call)};
    const struct rv_plugin_callbacks callbacks = {is_cancelled_here, log_here, emit_here,
                                                  progress_here,     ask_here, &here};
    char *args = rv_str_dup(call->args.len ? call->args : RV_STR_LIT("{}")); /* NUL-terminated, the plugin's to read */

    if (!args)
        return RV_FAIL(err, RV_E_NOMEM, "copy the arguments");
    const struct rv_plugin_mark before = plugin_mark(e->owner->path, e->bare);
    plugin_run(e, call, args, &callbacks, out, said);
    plugin_mark(before.path, before.entry);
    free(args);
    return 0;
}

/* It returned RV_CAP_LATER. */
static int leave(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, const struct rv_plugin_said *said,
                 rv_err **err)
{
    if (said->n_replies > 0 || said->n_failures > 0)
        return RV_FAIL(err, RV_E_PLUGIN, "it answered and left its answer for later");
    if (e->owner->isolated)
        return RV_FAIL(err, RV_E_PLUGIN,
                       "it left its answer for later, which a capability with `isolation: process` cannot do");
    if (!call->work || !call->work->ticket)
        return RV_FAIL(err, RV_E_PLUGIN, "it left its answer for later and has no ticket of later()");
    return RV_PLUGIN_LATE;
}

int rv_plugins_call(rv_plugins *p, const struct rv_plugin_call *call, rv_buf *out, rv_err **err)
{
    const struct rv_plugin_entry *e = plugin_find(p, call->kind, rv_str_of(call->name));
    struct rv_plugin_pieces pieces = {.call = call};
    struct rv_plugin_said said;
    size_t start = out->len;
    int rc;

    if (!e || !e->fn)
        return plugin_fail_unknown(p, call->kind, call->name, err);
    said.n_replies = said.n_failures = said.returned = 0; /* the texts are kilobytes that are not needed until then */
    said.no_text = said.too_large = false;
    said.piece_fault = RV_PIECE_GOOD;
    rc =
        e->owner->isolated ? plugin_isolated_call(e, &pieces, out, &said, err) : call_here(e, &pieces, out, &said, err);
    if (rc == 0)
        rc = plugin_pieces_check(&pieces, said.piece_fault, err);
    plugin_pieces_fini(&pieces);
    if (rc == 0)
        rc = said.returned == RV_CAP_LATER ? leave(e, call, &said, err) : plugin_judge(e->kind, &said, out, start, err);
    if (rc != RV_PLUGIN_LATE)
        plugin_late_return(call->work);
    if (rc < 0 && out->len > start)
        rv_buf_truncate(out, start);
    if (rc < 0 && rc != RV_E_TOOL) /* a tool's own words stay alone: they go to models and people as they are */
        rc = RV_WRAP(err, rc, "%s \"%s\" of capability \"%s\"", rv_name_kind_text(e->kind), e->bare, e->owner->name);
    return rc;
}

const char *rv_plugin_error_type(const rv_err *err)
{
    for (; err; err = rv_err_cause(err)) {
        const char *type = rv_err_hint_text(err);
        if (rv_err_code(err) == RV_E_TIMEOUT)
            return rv_error_timeout;
        if (rv_err_code(err) == RV_E_TOOL && type && is_type_name(rv_str_of(type)))
            return type;
    }
    return rv_error_execution;
}

const char *rv_plugin_failure_code(const rv_err *err)
{
    return rv_err_is(err, RV_E_PLUGIN) ? rv_failure_text(RV_FAILURE_PLUGIN_FAILED)
                                       : rv_failure_text(rv_failure_of_err(err));
}
