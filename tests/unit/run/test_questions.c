/* What a person was shown is what happens: random outputs and arguments, random answers, with a crash between question
 * and answer or without. After a yes the bytes that were shown are the bytes of the call; changed arguments are the
 * bytes of the call; after a no nothing is called. Hooks before the tool see changed arguments first; what they make of
 * them is shown again before it is sent. Rule: graph 7. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define RUNS 750

struct luck {
    struct rv_rand_state state;
    struct rv_rand rand;
};

static int pick(struct luck *l, int n)
{
    return (int)rv_rand_below(l->rand, (uint64_t)n);
}

static void write_text(struct luck *l, rv_buf *b)
{
    static const char *const parts[] = {"a",     "B ",  "\\n", "\\\"",    "\\\\", "\xc3\xa9", "\xe2\x82\xac",
                                        "{{x}}", "'%s", "<b>", "\\u0001", "/",    "$(rm)"};

    rv_buf_putc(b, '"');
    for (int i = pick(l, 6); i > 0; i--)
        rv_buf_puts(b, parts[pick(l, (int)RV_COUNT(parts))]);
    rv_buf_putc(b, '"');
}

static void write_value(struct luck *l, int depth, rv_buf *b);

static void write_object(struct luck *l, int depth, rv_buf *b)
{
    int n = pick(l, 4);

    rv_buf_putc(b, '{');
    for (int i = 0; i < n; i++) {
        rv_buf_printf(b, "%s\"k%d\":", i ? "," : "", i);
        write_value(l, depth + 1, b);
    }
    rv_buf_putc(b, '}');
}

static void write_value(struct luck *l, int depth, rv_buf *b)
{
    static const char *const scalars[] = {"0",    "-7",    "1.50", "1e3", "-0.0", "9007199254740993",
                                          "true", "false", "null"};
    int what = pick(l, depth < 3 ? 5 : 3);

    if (what < 2) {
        rv_buf_puts(b, scalars[pick(l, (int)RV_COUNT(scalars))]);
    } else if (what == 2) {
        write_text(l, b);
    } else if (what == 3) {
        write_object(l, depth, b);
    } else {
        int n = pick(l, 3);
        rv_buf_putc(b, '[');
        for (int i = 0; i < n; i++) {
            rv_buf_puts(b, i ? "," : "");
            write_value(l, depth + 1, b);
        }
        rv_buf_putc(b, ']');
    }
}

static char *random_object(struct luck *l)
{
    rv_buf b = RV_BUF_INIT((size_t)1 << 20);

    write_object(l, 0, &b);
    return rv_buf_steal(&b, NULL);
}

static const struct drive_tool tools[] = {{"put", RV_RISK_WRITE, NULL, NULL, 0},
                                          {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0}};

/* The same run, or one that a new process made of the saved state. */
static void answer(struct luck *l, struct drive *d, const struct rv_response *r)
{
    rv_err *err = NULL;
    int rc = pick(l, 2) ? drive_go_on(d, r, &err) : drive_resume(d, r, &err);

    if (rc < 0)
        ck_abort_msg("%s", rv_kit_err_take(err));
}

static const char *sent(const struct drive *d)
{
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    return drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request;
}

/* --- a question of a stage, before a stage that calls tools --- */

static void ask_run(struct luck *l)
{
    struct drive *d = drive_new("name: t\nmodels: {m: scripted}\nagents:\n"
                                "  - {name: plan, has_llm: true, model_role: m, default_next: end, ask: {question: "
                                "'Do it?', show: 'outputs.plan.steps[0].parameters', options: [yes, no, later]}, "
                                "on_answer: {yes: act}}\n"
                                "  - {name: act, stage_order: 1, has_tools: true, tool_access: all}\n",
                                tools, RV_COUNT(tools));
    char *arguments = random_object(l);
    rv_buf reply = RV_BUF_INIT((size_t)1 << 20);
    static const char *const choices[] = {"yes", "no", "later"};
    int choice = pick(l, 3);

    rv_buf_printf(&reply, "{\"steps\":[{\"tool\":\"put\",\"parameters\":%s}]}", arguments);
    const struct drive_answer answers[] = {{"llm:plan", rv_buf_cstr(&reply), false, 0}};
    drive_answers(d, answers, 1);
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    char *shown = rv_str_dup(rv_str_of(drive_state(d, "interrupt.data.shown")));
    char *planned = rv_str_dup(rv_str_of(drive_state(d, "outputs.plan.steps")));
    bool by_approval = choice < 2 && pick(l, 2);
    const struct rv_response r = {.has_approved = by_approval,
                                  .approved = choice == 0,
                                  .choice = by_approval ? (rv_str){NULL, 0} : rv_str_of(choices[choice])};
    answer(l, d, &r);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.plan.steps"), planned);
    if (choice == 0)
        ck_assert_str_eq(sent(d), shown);
    else
        ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    free(shown);
    free(planned);
    free(arguments);
    rv_buf_fini(&reply);
    drive_free(d);
}

/* --- a call of a model that a person approves, changes or refuses --- */

static void call_run(struct luck *l)
{
    bool tells = pick(l, 2);
    struct drive *d = drive_new(tells ? "name: t\nmodels: {m: scripted}\nagents: [{name: a, has_llm: true, model_role: "
                                        "m, has_tools: true, tool_access: all, on_denied: tell_model}]\n"
                                      : "name: t\nmodels: {m: scripted}\nagents: [{name: a, has_llm: true, model_role: "
                                        "m, has_tools: true, tool_access: all}]\n",
                                tools, RV_COUNT(tools));
    char *arguments = random_object(l), *changed = random_object(l);
    rv_buf call = RV_BUF_INIT((size_t)1 << 20);
    json_object *edit = rv_kit_json(changed);
    int what = pick(l, 3); /* yes, yes with other arguments, no */

    rv_buf_printf(&call, "c1 wipe %s", arguments);
    const struct drive_said said[] = {{"llm:a", "", rv_buf_cstr(&call), NULL, false, 0}};
    drive_talk(d, said, 1);
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    char *shown = rv_str_dup(rv_str_of(drive_state(d, "interrupt.data.parameters")));
    char *edited = rv_kit_text(edit);
    const struct rv_response r = {
        .has_approved = true, .approved = what < 2, .arguments = what == 1 ? edit : NULL, .text = RV_STR_LIT("why")};
    answer(l, d, &r);
    if (what < 2)
        ck_assert_str_eq(sent(d), what == 1 ? edited : shown);
    else
        ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    ck_assert_int_eq(rv_run_status(d->run), what < 2 || tells ? RV_RUN_COMPLETED : RV_RUN_TERMINATED);
    json_object_put(edit);
    free(shown);
    free(edited);
    free(arguments);
    free(changed);
    rv_buf_fini(&call);
    drive_free(d);
}

/* --- hooks before the tool, which see what the person changed --- */

enum reaction { LETS_PASS, REPLACES, BLOCKS, ANSWERS, N_REACTIONS };

/* The hook's answer to the first call lets it pass; by `how` it answers the arguments that the person wrote. */
struct hook {
    enum reaction how;
    const char *changed; /* what it makes of them */
    size_t n_asked;
    char *seen; /* the request that it was asked with last */
};

static const char *hook_answers(struct drive *d, const struct drive_call *c, bool *handled)
{
    static char text[1 << 16];
    struct hook *h = d->answer_self;

    *handled = c->kind == RV_EFFECT_CALL_HOOK;
    if (!*handled)
        return NULL;
    free(h->seen);
    h->seen = rv_str_dup(rv_str_of(c->request));
    if (++h->n_asked != 2 || h->how == LETS_PASS)
        return "{}";
    snprintf(text, sizeof text,
             h->how == REPLACES ? "{\"action\":\"replace\",\"arguments\":%s}"
             : h->how == BLOCKS ? "{\"action\":\"block\",\"reason\":\"no\"}"
                                : "{\"action\":\"answer\",\"result\":{}}",
             h->changed);
    return text;
}

static void check_seen(const struct hook *h, json_object *arguments)
{
    json_object *request = rv_kit_json(h->seen), *seen = rv_json_get_obj(request, "arguments");

    ck_assert(rv_json_equal(seen, arguments));
    json_object_put(request);
}

static void hooked_run(struct luck *l)
{
    struct drive *d = drive_new("name: t\nmodels: {m: scripted}\nagents: [{name: a, has_llm: true, model_role: m, "
                                "has_tools: true, tool_access: all, before_tool: x.h}]\n",
                                tools, RV_COUNT(tools));
    char *arguments = random_object(l), *changed = random_object(l), *made = random_object(l);
    json_object *edit = rv_kit_json(changed), *replaced = rv_kit_json(made);
    struct hook h = {.how = (enum reaction)pick(l, N_REACTIONS), .changed = made};
    rv_buf call = RV_BUF_INIT((size_t)1 << 20);
    const struct rv_response r = {.has_approved = true, .approved = true, .arguments = edit};
    bool same = h.how == LETS_PASS || (h.how == REPLACES && rv_json_equal(edit, replaced));

    rv_buf_printf(&call, "c1 wipe %s", arguments);
    const struct drive_said said[] = {{"llm:a", "", rv_buf_cstr(&call), NULL, false, 0}};
    drive_talk(d, said, 1);
    d->answer = hook_answers;
    d->answer_self = &h;
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(h.n_asked, 1);
    answer(l, d, &r);
    ck_assert_uint_eq(h.n_asked, 2);
    check_seen(&h, edit);
    if (h.how == REPLACES && !same) { /* the person sees what the hook made, and nothing is called before */
        char *want = rv_kit_text(replaced);
        const struct rv_response yes = {.has_approved = true, .approved = true};
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_INTERRUPTED);
        ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
        ck_assert_str_eq(drive_state(d, "interrupt.data.parameters"), want);
        answer(l, d, &yes);
        ck_assert_str_eq(sent(d), want);
        free(want);
    } else if (same) {
        char *want = rv_kit_text(edit);
        ck_assert_str_eq(sent(d), want);
        free(want);
    } else {
        ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    }
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_uint_eq(h.n_asked, 2);
    json_object_put(edit);
    json_object_put(replaced);
    free(h.seen);
    free(arguments);
    free(changed);
    free(made);
    rv_buf_fini(&call);
    drive_free(d);
}

START_TEST(what_happens_after_a_yes_is_what_was_shown)
{
    struct luck l;

    int n = rv_kit_sample(RUNS, 100 * RUNS);

    for (int i = 0; i < n; i++) {
        l.rand = rv_rand_seeded(&l.state, 1000 + (uint64_t)i);
        if (i % 3 == 0)
            hooked_run(&l);
        else if (i % 3 == 1)
            ask_run(&l);
        else
            call_run(&l);
    }
}
END_TEST

TCase *questions_case(void)
{
    TCase *tc = tcase_create("questions");

    tcase_add_test(tc, what_happens_after_a_yes_is_what_was_shown);
    return tc;
}
