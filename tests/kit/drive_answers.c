/* Answering what a driven run asks for: which answer serves which call, when it comes, and what the core is told. */
#include "tests/kit/drive.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void new_table(struct drive *d, size_t n)
{
    free(d->used);
    free(d->answers);
    d->used = calloc(n + 1, sizeof *d->used);
    d->answers = calloc(n + 1, sizeof *d->answers);
    if (!d->used || !d->answers)
        rv_kit_die("no memory");
    d->n_answers = n;
}

void drive_talk(struct drive *d, const struct drive_said *answers, size_t n)
{
    new_table(d, n);
    for (size_t i = 0; i < n; i++)
        d->answers[i] = answers[i];
}

void drive_answers(struct drive *d, const struct drive_answer *answers, size_t n)
{
    new_table(d, n);
    for (size_t i = 0; i < n; i++)
        d->answers[i] = (struct drive_said){.to = answers[i].to,
                                            .reply = answers[i].reply,
                                            .stays = answers[i].stays,
                                            .latency_us = answers[i].latency_us};
}

static const char *kind_word(const struct drive_call *c)
{
    /* Only entries that the engine calls as hooks. */
    static const char *const entries[RV_N_NAME_KINDS] = {
        [RV_NAME_HOOK] = "hook", [RV_NAME_POLICY] = "policy", [RV_NAME_MOCK] = "mock", [RV_NAME_ROUTE] = "route"};

    return c->kind == RV_EFFECT_CALL_LLM ? "llm" : c->kind == RV_EFFECT_CALL_TOOL ? "tool" : entries[c->entry];
}

static bool answers_to(const struct drive *d, const char *to, const struct drive_call *c)
{
    const char *colon = strchr(to, ':'), *word = kind_word(c);
    const char *name = c->kind == RV_EFFECT_CALL_LLM ? d->p->agents[c->stage].name : c->name;

    return colon && (size_t)(colon - to) == strlen(word) && strncmp(to, word, strlen(word)) == 0 &&
           strcmp(colon + 1, name) == 0;
}

static const struct drive_said *table_answer(struct drive *d, const struct drive_call *c)
{
    for (size_t i = 0; i < d->n_answers; i++)
        if (!d->used[i] && answers_to(d, d->answers[i].to, c)) {
            d->used[i] = !d->answers[i].stays;
            return &d->answers[i];
        }
    return NULL;
}

static const char *default_reply(const struct drive_call *c)
{
    if (c->kind != RV_EFFECT_CALL_HOOK)
        return "{}";
    return c->entry == RV_NAME_POLICY ? "{'decision':'allow'}" : "";
}

static char *with_double_quotes(const char *text)
{
    char *copy = rv_str_dup(rv_str_of(text));

    for (char *q = strchr(copy, '"') ? NULL : copy; q && *q; q++)
        *q = *q == '\'' ? '"' : *q;
    return copy;
}

/* "id name arguments | ..." as a message has it. */
static void write_calls(const char *text, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);
    char *copy = with_double_quotes(text), *at = copy;

    rv_jw_arr(&w);
    while (*at) {
        char *end = strstr(at, " | "), *next = end ? end + 3 : at + strlen(at);
        size_t id = strcspn(at, " "), name = at[id] ? strcspn(at + id + 1, " ") : 0;
        rv_str rest = {at + id + 1 + name, (size_t)((end ? end : next) - (at + id + 1 + name))};
        rv_jw_obj(&w);
        rv_jw_kv_str(&w, "id", (rv_str){at, id});
        rv_jw_kv_str(&w, "name", (rv_str){at + id + 1, name});
        rv_jw_kv_str(&w, "arguments", rv_str_trim(rest));
        rv_jw_obj_end(&w);
        at = next;
    }
    rv_jw_arr_end(&w);
    free(copy);
}

/* The rest of a model's answer; *more owns what ev borrows. */
static void add_answer(const struct drive_said *a, struct rv_event *ev, rv_buf *calls, json_object **more)
{
    ev->llm = RV_LLM_ANSWER_NONE;
    if (!a)
        return;
    if (a->more) {
        *more = rv_kit_json(a->more);
        ck_assert_msg(rv_llm_answer_read(*more, &ev->llm), "%s", a->more);
    }
    if (a->calls) {
        write_calls(a->calls, calls);
        ev->llm.tool_calls = rv_buf_str(calls);
    }
}

static void give(struct drive *d, struct drive_call *c, const char *text, const struct drive_said *a)
{
    rv_buf calls = RV_BUF_INIT(DRIVE_MAX_TEXT);
    json_object *more = NULL;
    struct rv_event ev = {.kind = c->kind == RV_EFFECT_CALL_LLM    ? RV_EVENT_LLM_DONE
                                  : c->kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE
                                                                   : RV_EVENT_HOOK_DONE,
                          .now_us = d->now_us,
                          .call_id = c->call_id};
    char *copy = rv_str_dup(rv_str_of(text)), *colon = strchr(copy, ':');
    bool fails = (copy[0] == '!' || copy[0] == '?') && colon;

    if (copy[0] == '#') {
        ev.unknown = true;
    } else if (fails) {
        *colon = '\0';
        ev.failed = true;
        ev.retryable = copy[0] == '?';
        ev.error_type = copy[1] ? copy + 1 : NULL;
        ev.error = rv_str_of(colon + 1);
    } else {
        ev.asks = copy[0] == '&';
        free(copy);
        copy = with_double_quotes(text + ev.asks);
        ev.reply = rv_str_of(copy);
    }
    if (c->kind == RV_EFFECT_CALL_LLM)
        add_answer(a, &ev, &calls, &more);
    drive_must_step(d, &ev);
    free(copy);
    rv_buf_fini(&calls);
    json_object_put(more);
}

static void answer_call(struct drive *d, size_t i)
{
    struct drive_call *c = &d->calls[i];

    if (c->kind == RV_EFFECT_ARM_TIMER) {
        struct rv_event ev = {.kind = RV_EVENT_TIMER, .now_us = d->now_us, .call_id = c->call_id};
        drive_must_step(d, &ev);
        return;
    }
    bool handled = false;
    const char *text = d->answer ? d->answer(d, c, &handled) : NULL;
    const struct drive_said *a = handled ? NULL : table_answer(d, c);
    struct drive_said said;
    if (!handled && d->say && d->say(d, c, &said))
        a = &said;
    if (!handled)
        text = a ? a->reply : default_reply(c);
    give(d, c, text ? text : "", a);
}

static int64_t jittered(uint64_t seed, int64_t call_id)
{
    uint64_t z = (seed + (uint64_t)call_id) * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return 1 + (int64_t)((z ^ z >> 31) % 5000000);
}

/* The call to be answered next: earliest time, then lowest id. A table answer's latency is looked up at first sight. */
static size_t next_due(struct drive *d)
{
    size_t best = SIZE_MAX;

    for (size_t i = d->n_calls > 4096 ? d->n_calls - 4096 : 0; i < d->n_calls; i++) {
        struct drive_call *c = &d->calls[i];
        if (c->over)
            continue;
        if (c->due_us < 0) {
            c->due_us = d->now_us + (d->jitter ? jittered(d->jitter, c->call_id) : DRIVE_LATENCY_US);
            for (size_t j = 0; j < d->n_answers; j++)
                if (!d->used[j] && answers_to(d, d->answers[j].to, c)) {
                    if (d->answers[j].latency_us)
                        c->due_us = d->now_us + d->answers[j].latency_us;
                    break;
                }
        }
        if (best == SIZE_MAX || c->due_us < d->calls[best].due_us)
            best = i;
    }
    return best;
}

void drive_start(struct drive *d)
{
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = d->now_us};
    drive_must_step(d, &ev);
}

void drive_pump_one(struct drive *d)
{
    size_t i = next_due(d);

    ck_assert_msg(i != SIZE_MAX, "the run waits for nothing");
    if (d->calls[i].due_us > d->now_us)
        d->now_us = d->calls[i].due_us;
    answer_call(d, i);
}

void drive_pump(struct drive *d)
{
    while (!d->finished)
        drive_pump_one(d);
}

enum rv_run_status drive_run(struct drive *d)
{
    drive_start(d);
    drive_pump(d);
    return rv_run_status(d->run);
}

void drive_cancel(struct drive *d)
{
    struct rv_event ev = {.kind = RV_EVENT_CANCEL, .now_us = d->now_us};
    drive_must_step(d, &ev);
}
