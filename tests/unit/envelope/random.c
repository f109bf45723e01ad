/* Random envelopes: a seed decides a sequence of verbs, with texts and numbers that have gone wrong elsewhere. */
#include "tests/unit/envelope/world.h"

static const char *const names[] = {"plan", "act", "critic", "\xE2\x82\xAC\xF0\x9F\x98\x80",
                                    "a b",  "",    "x.y",    "stage-7"};
static const rv_str texts[] = {
    RV_STR_LIT(""),
    RV_STR_LIT("plain"),
    RV_STR_LIT("nul\0inside"),
    RV_STR_LIT("\0"),
    RV_STR_LIT("q\"\\/\n\t\x01\x7f"),
    RV_STR_LIT("\xE2\x80\xA8 \xF0\x9F\x92\xA9"),
    RV_STR_LIT("null"),
    RV_STR_LIT("{}"),
};
static const char *const values[] = {
    "{}",
    "{'a':1,'b':1.0,'c':1e2,'d':-0,'e':-0.0}",
    "{'big':18446744073709551615,'min':-9223372036854775808}",
    "{'n':null,'l':[null,[],{}]}",
    "{'deep':[[[[[[[[1]]]]]]]]}",
    "{'t':'\\u0000\\ud83d\\ude00'}",
    "null",
    "{'tiny':5e-324,'sum':0.1,'long':3.1415926535897932384626}",
};

static rv_str name(struct rv_rand r)
{
    return rv_str_of(names[rv_rand_below(r, RV_COUNT(names))]);
}

static rv_str text(struct rv_rand r)
{
    return texts[rv_rand_below(r, RV_COUNT(texts))];
}

static rv_str stage(struct rv_rand r)
{
    rv_str s = name(r);

    return s.len ? s : RV_STR_LIT(RV_STAGE_END);
}

static json_object *value(struct rv_rand r)
{
    return rv_kit_json(values[rv_rand_below(r, RV_COUNT(values))]);
}

static int64_t time_of(struct rv_rand r)
{
    return (int64_t)rv_rand_below(r, (uint64_t)4e15) - (int64_t)1e15; /* from 1938 to 2065 */
}

static void change_values(rv_envelope *env, struct rv_rand r)
{
    json_object *v = value(r);

    switch (rv_rand_below(r, 6)) {
    case 0:
        OK(rv_envelope_set_output(env, name(r), v, NULL));
        break;
    case 1:
        OK(rv_envelope_set_metadata(env, name(r), v, NULL));
        break;
    case 2:
        OK(rv_envelope_merge_state(env, name(r), (enum rv_merge_mode)rv_rand_below(r, 3), v, NULL));
        break;
    case 3:
        OK(rv_envelope_set_suspended(env, name(r), v, NULL));
        break;
    case 4:
        OK(rv_envelope_remove_output(env, name(r), NULL));
        break;
    default:
        OK(rv_envelope_add_error(env, &(const struct rv_error_entry){name(r), text(r), "LLMError", RV_FAILURE_NONE},
                                 time_of(r), NULL));
        break;
    }
    json_object_put(v);
}

static void change_position(rv_envelope *env, struct rv_rand r)
{
    struct rv_record_end end = {(enum rv_history_status)rv_rand_below(r, RV_N_HISTORY), text(r),
                                (int64_t)rv_rand_below(r, 4), (int64_t)rv_rand_below(r, 100) - 50};

    switch (rv_rand_below(r, 9)) {
    case 0:
        OK(rv_envelope_set_stage(env, stage(r), NULL));
        break;
    case 1:
        OK(rv_envelope_start_stage(env, name(r), NULL));
        break;
    case 2:
        OK(rv_envelope_complete_stage(env, name(r), NULL));
        break;
    case 3:
        OK(rv_envelope_fail_stage(env, name(r), text(r), NULL));
        break;
    case 4:
        OK(rv_envelope_record_start(env, name(r), (int64_t)rv_rand_u64(r), time_of(r), NULL));
        break;
    case 5:
        if (rv_rand_below(r, 2))
            end.error = NO_TEXT;
        OK(rv_envelope_record_complete(env, name(r), &end, time_of(r), NULL));
        break;
    case 6:
        OK(rv_envelope_record_skipped(env, name(r), 3, time_of(r), NULL));
        break;
    case 7:
        OK(rv_envelope_note_passage(env, name(r), name(r), NULL, NULL));
        break;
    default:
        OK(rv_envelope_increment_iteration(env, rv_rand_below(r, 2) ? text(r) : NO_TEXT, NULL, NULL));
        break;
    }
}

static void interrupt(rv_envelope *env, struct rv_rand r)
{
    json_object *data = value(r);
    struct rv_interrupt_spec spec = {.kind = (enum rv_interrupt_kind)rv_rand_below(r, RV_N_INTERRUPT),
                                     .id = RV_STR_LIT("int_1"),
                                     .question = rv_rand_below(r, 2) ? text(r) : NO_TEXT,
                                     .message = rv_rand_below(r, 2) ? text(r) : NO_TEXT,
                                     .data = data,
                                     .ttl_us = (int64_t)rv_rand_below(r, 3) - 1,
                                     .replace = true};
    struct rv_response answer = {.text = rv_rand_below(r, 2) ? text(r) : NO_TEXT,
                                 .has_approved = rv_rand_below(r, 2),
                                 .approved = rv_rand_below(r, 2),
                                 .decision = rv_rand_below(r, 2) ? text(r) : NO_TEXT,
                                 .data = data};

    OK(rv_envelope_raise(env, &spec, time_of(r), NULL));
    if (rv_rand_below(r, 2))
        OK(rv_envelope_resolve(env, &answer, time_of(r), NULL));
    else if (rv_rand_below(r, 4) == 0)
        rv_envelope_clear_interrupt(env);
    json_object_put(data);
}

rv_envelope *random_envelope(uint64_t seed)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, seed);
    struct rv_envelope_seed given = {.raw_input = text(r), .user_id = text(r), .session_id = name(r)};
    rv_envelope *env = NULL;
    bool more = false;

    OK(rv_envelope_new(&given, r, time_of(r), &env, NULL));
    if (rv_rand_below(r, 2))
        OK(rv_envelope_set_stage_order(env, names, rv_rand_below(r, RV_COUNT(names)), NULL));
    if (rv_rand_below(r, 2))
        OK(rv_envelope_init_goals(env, names, rv_rand_below(r, RV_COUNT(names)), NULL));
    for (size_t n = rv_rand_below(r, 60); n > 0; n--) {
        if (rv_rand_below(r, 2))
            change_values(env, r);
        else
            change_position(env, r);
        if (rv_rand_below(r, 20) == 0)
            OK(rv_envelope_advance_stage(env, &(const struct rv_goals_met){names, rv_rand_below(r, 3), NULL}, NULL,
                                         &more, NULL));
    }
    if (rv_rand_below(r, 2))
        interrupt(env, r);
    if (rv_rand_below(r, 3) == 0)
        OK(rv_envelope_terminate(env, text(r), (enum rv_reason)rv_rand_below(r, RV_N_REASON), time_of(r), NULL));
    else if (rv_rand_below(r, 2))
        rv_envelope_complete(env, time_of(r));
    rv_envelope_set_bounds(env, (int64_t)rv_rand_below(r, 9), (int64_t)rv_rand_u64(r), 1);
    rv_envelope_set_status(env, (enum rv_run_status)rv_rand_below(r, RV_N_RUN));
    rv_envelope_set_parallel(env, rv_rand_below(r, 2));
    return env;
}
