/* Runs a scene with the driver of drive.h and compares. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/run/run_internal.h"
#include "tests/kit/scene.h"

#define ABSENT   "(absent)" /* what a path has that leads nowhere */
#define SAME_AS  "(as "     /* and a number: what another request has there */
#define MAX_TEXT ((size_t)1 << 24)

struct stage {
    const struct rv_scene *scene;
    struct drive *d;
    size_t step;
    const char *envelope; /* that it begins with; NULL: a fresh one */
    char **texts;         /* what the driver borrows */
    size_t n_texts;
    void (*heard)(void *self, struct drive *d);
    void *self;
};

static json_object *get(const struct rv_scene *s, const char *key)
{
    json_object *v = NULL;

    if (s->own && json_object_object_get_ex(s->own, key, &v))
        return v;
    return json_object_object_get_ex(s->shared, key, &v) ? v : NULL;
}

static json_object *member(json_object *map, const char *key)
{
    json_object *v = NULL;

    return json_object_object_get_ex(map, key, &v) ? v : NULL;
}

/* Kept until the scene is over. */
static const char *keep(struct stage *st, char *text)
{
    st->texts = realloc(st->texts, (st->n_texts + 1) * sizeof *st->texts);
    return st->texts[st->n_texts++] = text;
}

static const char *text_of(json_object *map, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(map, key, &text) ? text : NULL;
}

/* A string as it is, everything else as JSON. */
static const char *spoken(struct stage *st, json_object *map, const char *key)
{
    json_object *v = member(map, key);

    if (!v || json_object_is_type(v, json_type_string))
        return v ? json_object_get_string(v) : NULL;
    return keep(st, rv_kit_text(v));
}

static int64_t int_of(json_object *map, const char *key)
{
    json_object *v = member(map, key);

    return v ? json_object_get_int64(v) : 0;
}

static bool is_set(json_object *map, const char *key)
{
    json_object *v = member(map, key);

    return v && json_object_get_boolean(v);
}

static void set_options(struct drive *d, json_object *options)
{
    const char *mode = options ? text_of(options, "mode") : NULL;

    if (!options)
        return;
    if (mode)
        d->opts.mode = strcmp(mode, "parallel") == 0 ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
    d->opts.continues = is_set(options, "continues");
    d->opts.use_mocks = is_set(options, "mocks");
    d->opts.rules = (enum rv_rules)int_of(options, "rules");
    d->opts.max_parallel = (size_t)int_of(options, "max_parallel");
    d->keeps_numbers = is_set(options, "keeps_numbers");
    d->overruns = is_set(options, "overruns");
}

/* The pipeline, with the lines of the case in place of "<lines>", as deep as that stands. */
static const char *pipeline_text(struct stage *st)
{
    static const char mark[] = "<lines>\n";
    json_object *pipeline = get(st->scene, "pipeline"), *lines = get(st->scene, "lines");
    const char *text = pipeline ? json_object_get_string(pipeline) : "", *at = strstr(text, mark);
    rv_str rest = lines ? rv_json_str(lines) : (rv_str){NULL, 0};
    rv_buf b = RV_BUF_INIT(MAX_TEXT);

    if (!at)
        return text;
    int indent = 0;
    while (at > text && at[-1] == ' ') {
        at--;
        indent++;
    }
    rv_buf_add(&b, text, (size_t)(at - text));
    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t n = end ? (size_t)(end - rest.ptr) : rest.len;
        rv_buf_printf(&b, "%*s%.*s\n", indent, "", (int)n, rest.ptr);
        rest = (rv_str){rest.ptr + n + (end != NULL), rest.len - n - (end != NULL)};
    }
    rv_buf_puts(&b, at + (size_t)indent + sizeof mark - 1);
    return keep(st, rv_buf_steal(&b, NULL));
}

static void begin(struct stage *st)
{
    const struct rv_scene *s = st->scene;
    json_object *tools = get(s, "tools"), *envelope = get(s, "envelope");
    struct drive_tool list[DRIVE_MAX_TOOLS] = {{0}};
    size_t n = tools ? json_object_array_length(tools) : 0;

    if (n > DRIVE_MAX_TOOLS)
        rv_kit_die("%s: too many tools", s->file);
    for (size_t i = 0; i < n; i++) {
        json_object *t = json_object_array_get_idx(tools, i);
        const char *word = text_of(t, "risk");
        enum rv_risk risk = RV_RISK_READ_ONLY;
        if (word && rv_risk_of(rv_str_of(word), &risk, NULL) < 0)
            rv_kit_die("%s: the risk of tool %zu", s->file, i);
        list[i] = (struct drive_tool){.name = text_of(t, "name"),
                                      .risk = word ? (int)risk : RV_UNSET,
                                      .input = spoken(st, t, "input"),
                                      .output = spoken(st, t, "output"),
                                      .timeout_ms = int_of(t, "timeout_ms")};
    }
    st->d = drive_new_of(pipeline_text(st), get(s, "files"), list, n);
    for (size_t i = 0; i < n; i++) {
        json_object *t = json_object_array_get_idx(tools, i);
        st->d->tools[i].confirm = is_set(t, "confirm") ? member(t, "confirm") : NULL;
        if (is_set(t, "repeats"))
            st->d->tools[i].effect = RV_EFFECT_IDEMPOTENT;
    }
    set_options(st->d, get(s, "options"));
    if (envelope)
        drive_envelope(st->d, st->envelope = keep(st, rv_kit_text(envelope)));
}

/* --- answers --- */

static char *of_hex(const char *hex)
{
    size_t n = strlen(hex) / 2;
    char *bytes = calloc(n + 1, 1);

    for (size_t i = 0; bytes && i < n; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return bytes;
}

static void set_answers(struct stage *st, json_object *list)
{
    size_t n = list ? json_object_array_length(list) : 0;
    struct drive_said *said = calloc(n + 1, sizeof *said);

    for (size_t i = 0; said && i < n; i++) {
        json_object *a = json_object_array_get_idx(list, i);
        const char *hex = text_of(a, "hex");
        said[i] = (struct drive_said){.to = text_of(a, "to"),
                                      .reply = hex ? keep(st, of_hex(hex)) : spoken(st, a, "reply"),
                                      .calls = text_of(a, "calls"),
                                      .more = spoken(st, a, "more"),
                                      .stays = is_set(a, "stays"),
                                      .latency_us = int_of(a, "takes")};
    }
    drive_talk(st->d, said, n);
    free(said);
}

static struct rv_response response_of(json_object *r)
{
    json_object *approved = member(r, "approved");
    json_object *expired = member(r, "expired"), *cancelled = member(r, "cancelled");
    const char *text = text_of(r, "text"), *decision = text_of(r, "decision"), *id = text_of(r, "id"),
               *choice = text_of(r, "choice");

    return (struct rv_response){.text = rv_str_of(text),
                                .decision = rv_str_of(decision),
                                .interrupt_id = rv_str_of(id),
                                .data = member(r, "data"),
                                .choice = rv_str_of(choice),
                                .arguments = member(r, "arguments"),
                                .expired = expired && json_object_get_boolean(expired),
                                .cancelled = cancelled && json_object_get_boolean(cancelled),
                                .has_approved = approved != NULL,
                                .approved = approved && json_object_get_boolean(approved)};
}

/* --- what is done --- */

static int perform(struct stage *st, json_object *step, rv_err **err)
{
    const char *what = text_of(step, "do");
    const struct rv_response r = response_of(member(step, "with"));
    struct drive *d = st->d;

    set_answers(st, member(step, "answers"));
    d->now_us += int_of(step, "wait");
    d->blocked = member(step, "blocked");
    d->lost = text_of(step, "lost");
    d->has_changed |= d->lost != NULL;
    if (text_of(step, "destroys"))
        drive_tool_destroys(d, text_of(step, "destroys"));
    if (!what || strcmp(what, "run") == 0)
        drive_run(d);
    else if (strcmp(what, "start") == 0)
        drive_start(d);
    else if (strcmp(what, "pump") == 0)
        drive_pump(d);
    else if (strcmp(what, "one") == 0)
        drive_pump_one(d);
    else if (strcmp(what, "answer") == 0)
        return drive_go_on(d, &r, err);
    else if (strcmp(what, "cancel") == 0)
        drive_cancel(d);
    else if (strcmp(what, "recover") == 0)
        drive_recover(d, int_of(step, "gap"));
    else if (strcmp(what, "reload") == 0 || strcmp(what, "resume") == 0) {
        if (st->heard && d->finished)
            st->heard(st->self, d);
        if (strcmp(what, "resume") == 0)
            return drive_resume(d, &r, err);
        drive_reload(d);
    } else
        rv_kit_die("%s: nothing is called \"%s\"", st->scene->file, what);
    return 0;
}

/* --- what is expected --- */

#define EXPECT(st, holds, ...)                                                                                         \
    do {                                                                                                               \
        rv_buf said_ = RV_BUF_INIT(MAX_TEXT);                                                                          \
        if (!(holds)) {                                                                                                \
            rv_buf_printf(&said_, __VA_ARGS__);                                                                        \
            ck_abort_msg("%s: step %zu: %s", (st)->scene->name, (st)->step, rv_buf_cstr(&said_));                      \
        }                                                                                                              \
        rv_buf_fini(&said_);                                                                                           \
    } while (0)

static void expect_place(struct stage *st, const char *path, const char *found, json_object *want)
{
    bool absent = json_object_is_type(want, json_type_string) && strcmp(json_object_get_string(want), ABSENT) == 0;
    char *text = absent ? rv_str_dup(RV_STR_LIT("absent")) : rv_kit_text(want);

    EXPECT(st, strcmp(found, text) == 0, "%s is\n%s, not\n%s", path, found, text);
    free(text);
}

static void expect_state(struct stage *st, json_object *want)
{
    json_object_object_foreach (want, path, v)
        expect_place(st, path, drive_state(st->d, path), v);
}

/* "3 prompt": the prompt in the request of call 3; "3 ": all of it. */
static void expect_requests(struct stage *st, json_object *want)
{
    json_object_object_foreach (want, path, v) {
        char *end;
        size_t i = strtoul(path, &end, 10);
        EXPECT(st, i < st->d->n_calls && *end == ' ', "there is no call for %s", path);
        const char *word = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
        json_object *like = NULL;
        if (strncmp(word, SAME_AS, sizeof SAME_AS - 1) == 0) {
            size_t of = strtoul(word + sizeof SAME_AS - 1, NULL, 10);
            const char *text = of < i ? drive_request(&st->d->calls[of], end + 1) : "absent";
            EXPECT(st, strcmp(text, "absent") != 0, "there is nothing that %s could be like", path);
            v = like = rv_kit_json(text);
        }
        expect_place(st, path, drive_request(&st->d->calls[i], end + 1), v);
        json_object_put(like);
    }
}

/* "1 metadata.tool_name": a place in what is known about the second artifact. */
static void expect_artifacts(struct stage *st, json_object *want)
{
    json_object_object_foreach (want, path, v) {
        char *end;
        size_t i = strtoul(path, &end, 10);
        expect_place(st, path, drive_artifact(st->d, i, *end ? end + 1 : end), v);
    }
}

/* "1 llm_result": members of the second event of that type. */
static void expect_lines(struct stage *st, json_object *want)
{
    json_object_object_foreach (want, which, members) {
        char *type;
        size_t i = strtoul(which, &type, 10);
        json_object *line = drive_line(st->d, type + 1, i);
        EXPECT(st, (line != NULL) == json_object_is_type(members, json_type_object), "event %s", which);
        if (!line)
            continue;
        json_object_object_foreach (members, key, v)
            EXPECT(st, rv_json_equal(member(line, key), v), "event %s: %s is\n%s, not\n%s", which, key,
                   json_object_to_json_string(member(line, key)), json_object_to_json_string(v));
    }
}

static void write_call(const struct drive *d, size_t i, rv_buf *out)
{
    /* Only entries that the engine calls as hooks. */
    static const char *const entries[RV_N_NAME_KINDS] = {
        [RV_NAME_HOOK] = "hook", [RV_NAME_POLICY] = "policy", [RV_NAME_MOCK] = "mock", [RV_NAME_ROUTE] = "route"};
    const struct drive_call *c = &d->calls[i];
    const char *stage = c->stage >= 0 ? d->p->agents[c->stage].name : "";

    if (c->kind == RV_EFFECT_ARM_TIMER)
        rv_buf_printf(out, "timer:%s at %lld", stage, (long long)(c->due_us - DRIVE_T0));
    else if (c->kind == RV_EFFECT_CALL_LLM)
        rv_buf_printf(out, "llm:%s", stage);
    else
        rv_buf_printf(out, "%s:%s", c->kind == RV_EFFECT_CALL_TOOL ? "tool" : entries[c->entry], c->name);
    if (c->attempt > 1)
        rv_buf_printf(out, " try %lld", (long long)c->attempt);
    for (size_t k = 0; c->key && k < i; k++)
        if (d->calls[k].key && strcmp(d->calls[k].key, c->key) == 0) {
            rv_buf_printf(out, " key of %zu", k);
            return;
        }
}

static void expect_calls(struct stage *st, json_object *want, size_t from)
{
    size_t n = json_object_array_length(want);
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    for (size_t i = from; i < st->d->n_calls; i++) {
        rv_buf_clear(&text);
        write_call(st->d, i, &text);
        const char *wanted = i - from < n ? json_object_get_string(json_object_array_get_idx(want, i - from)) : "none";
        EXPECT(st, strcmp(rv_buf_cstr(&text), wanted) == 0, "call %zu is %s, not %s", i, rv_buf_cstr(&text), wanted);
    }
    EXPECT(st, st->d->n_calls - from == n, "%zu calls, not %zu", st->d->n_calls - from, n);
    rv_buf_fini(&text);
}

static void expect_deadlines(struct stage *st, json_object *want, size_t from)
{
    for (size_t i = 0; i < json_object_array_length(want); i++) {
        int64_t at = json_object_get_int64(json_object_array_get_idx(want, i));
        EXPECT(st, from + i < st->d->n_calls && st->d->calls[from + i].deadline_us == DRIVE_T0 + at,
               "the deadline of call %zu", from + i);
    }
}

static void expect_count(struct stage *st, json_object *expect, const char *key, int64_t found)
{
    json_object *want = member(expect, key);

    if (want)
        EXPECT(st, json_object_get_int64(want) == found, "%lld %s", (long long)found, key);
}

static void expect_refused(struct stage *st, json_object *want, int rc, rv_err *err)
{
    const char *code = want ? text_of(want, "code") : NULL, *says = want ? text_of(want, "says") : NULL;
    char *text = err ? rv_kit_err_take(err) : rv_str_dup(RV_STR_LIT(""));

    EXPECT(st, (rc < 0) == (want != NULL), "code %s: %s", rc < 0 ? rv_code_text(rc) : "ok", text);
    if (code)
        EXPECT(st, strcmp(rv_code_text(rc), code) == 0, "code %s, not %s", rv_code_text(rc), code);
    if (says)
        EXPECT(st, strstr(text, says), "the refusal says \"%s\", not \"%s\"", text, says);
    free(text);
}

static void check(struct stage *st, json_object *expect, size_t from)
{
    struct drive *d = st->d;
    json_object *v;
    const char *status = text_of(expect, "status"), *story = text_of(expect, "story");
    const char *asked_by = text_of(expect, "asked_by");

    if (status)
        EXPECT(st, strcmp(rv_run_status_text(rv_run_status(d->run)), status) == 0, "status %s, not %s",
               rv_run_status_text(rv_run_status(d->run)), status);
    if ((v = member(expect, "calls")))
        expect_calls(st, v, from);
    if ((v = member(expect, "deadlines")))
        expect_deadlines(st, v, from);
    if (story)
        EXPECT(st, strcmp(drive_story(d), story) == 0, "the story is\n%s, not\n%s", drive_story(d), story);
    if (asked_by)
        EXPECT(st, rv_str_is(rv_str_of(rv_run_question_stage(d->run)), asked_by), "asked by %s",
               rv_run_question_stage(d->run));
    if ((v = member(expect, "state")))
        expect_state(st, v);
    if ((v = member(expect, "requests")))
        expect_requests(st, v);
    if ((v = member(expect, "artifacts")))
        expect_artifacts(st, v);
    if ((v = member(expect, "events")))
        expect_lines(st, v);
    expect_count(st, expect, "spent", rv_envelope_fields(rv_run_envelope(d->run))->usage.cost_micro_usd);
    expect_count(st, expect, "reserved", d->run->shared.reserved_micro_usd);
    expect_count(st, expect, "estimated", rv_envelope_fields(rv_run_envelope(d->run))->usage.estimated);
    expect_count(st, expect, "visits", (int64_t)d->n_visits);
    expect_count(st, expect, "saves", (int64_t)d->n_saves);
    expect_count(st, expect, "cancelled", (int64_t)d->n_cancelled);
    if (is_set(expect, "replays"))
        EXPECT(st, drive_replays(d, st->envelope), "its events lead to something else");
}

/* also: more that is expected, or NULL. */
static void play(struct stage *st, json_object *step, json_object *also)
{
    json_object *expect = member(step, "expect");
    const char *what = text_of(step, "do");
    bool forgets = what && (strcmp(what, "reload") == 0 || (strcmp(what, "resume") == 0 && st->d->finished));
    size_t from = forgets ? 0 : st->d->n_calls; /* of the calls of this step */
    rv_err *err = NULL;

    int rc = perform(st, step, &err);
    json_object *refused = expect ? member(expect, "refused") : NULL;
    expect_refused(st, refused || !also ? refused : member(also, "refused"), rc, err);
    if (expect)
        check(st, expect, from);
    if (also)
        check(st, also, from);
    st->step++;
}

/* A scene without a list of steps is one. A case adds to what all cases of its file expect. */
static void play_only_step(struct stage *st)
{
    const struct rv_scene *s = st->scene;
    json_object *step = json_object_new_object();
    static const char *const keys[] = {"do", "wait", "gap", "with", "answers", "blocked", "expect"};

    for (size_t i = 0; i < RV_COUNT(keys); i++)
        json_object_object_add(step, keys[i], json_object_get(get(s, keys[i])));
    play(st, step, s->own && member(s->own, "expect") ? member(s->shared, "expect") : NULL);
    json_object_put(step);
}

void rv_scene_run(const struct rv_scene *s, void (*heard)(void *self, struct drive *d), void *self)
{
    struct stage st = {.scene = s, .heard = heard, .self = self};
    json_object *steps = get(s, "steps");
    size_t n = steps ? json_object_array_length(steps) : 0;

    begin(&st);
    if (!steps)
        play_only_step(&st);
    for (size_t i = 0; i < n; i++)
        play(&st, json_object_array_get_idx(steps, i), NULL);
    if (heard && st.d->run)
        heard(self, st.d);
    drive_free(st.d);
    for (size_t i = 0; i < st.n_texts; i++)
        free(st.texts[i]);
    free(st.texts);
}
