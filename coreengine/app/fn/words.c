/* Words and what follows from them (rules 2, 2.1, 2.2, 3.6). */
#include "coreengine/app/fn/fn_internal.h"

static void write_list(const struct rv_term_list *list, rv_jw *out)
{
    rv_jw_obj(out);
    for (size_t i = 0; i < list->n; i++)
        rv_jw_kv_text(out, list->terms[i].text, list->terms[i].meaning);
    rv_jw_obj_end(out);
}

static int terms(json_object *in, rv_jw *out, rv_err **err)
{
    size_t n;
    const struct rv_term_list *lists = rv_term_lists(&n);

    (void)in;
    (void)err;
    rv_jw_obj(out);
    for (size_t i = 0; i < n; i++) {
        rv_jw_key(out, lists[i].name);
        write_list(&lists[i], out);
    }
    rv_jw_obj_end(out);
    return 0;
}

/* One reader per list, so that what is tested here is what the loader calls. */
#define READER(tag, prefix, list, kind)                                                                                \
    static int read_##tag(rv_str text, const char **out, rv_err **err)                                                 \
    {                                                                                                                  \
        enum rv_##tag v;                                                                                               \
        int rc = rv_##tag##_of(text, &v, err);                                                                         \
        if (rc == 0)                                                                                                   \
            *out = rv_##tag##_text(v);                                                                                 \
        return rc;                                                                                                     \
    }
RV_TERM_TYPES(READER)
#undef READER

static const struct {
    const char *name;
    int (*read)(rv_str text, const char **out, rv_err **err);
} readers[] = {
#define ROW(tag, prefix, list, kind) {#tag, read_##tag},
    RV_TERM_TYPES(ROW)
#undef ROW
};

static int parse_term(json_object *in, rv_jw *out, rv_err **err)
{
    const char *names[RV_COUNT(readers)], *text = NULL;
    rv_str list = rv_fn_str(in, "list");

    for (size_t i = 0; i < RV_COUNT(readers); i++) {
        names[i] = readers[i].name;
        if (!rv_str_is(list, names[i]))
            continue;
        int rc = readers[i].read(rv_fn_str(in, "text"), &text, err);
        if (rc == 0)
            rv_jw_text(out, text);
        return rc;
    }
    const char *near = rv_nearest(list, names, RV_COUNT(names));
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown list of words \"%.*s\"", RV_STR_ARG(list));
    if (near)
        rv_err_hint(err, "did you mean \"%s\"?", near);
    else
        rv_err_hint(err, "`reeve fn terms` prints them all");
    return rc;
}

static int outcome(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_outcome o;
    int rc = rv_outcome_of(rv_fn_str(in, "outcome"), &o, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(out);
    rv_jw_kv_bool(out, "is_terminal", rv_outcome_is_terminal(o));
    rv_jw_kv_bool(out, "is_success", rv_outcome_is_success(o));
    rv_jw_kv_bool(out, "requires_loop", rv_outcome_requires_loop(o));
    rv_jw_obj_end(out);
    return 0;
}

static int tool_status(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_tool_status status;
    int rc = rv_tool_status_parse(rv_fn_str(in, "text"), &status, err);

    if (rc == 0)
        rv_jw_text(out, rv_tool_status_text(status));
    return rc;
}

static int effect_class_of_risk(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_risk risk;
    int rc = rv_risk_of(rv_fn_str(in, "risk"), &risk, err);

    if (rc == 0)
        rv_jw_text(out, rv_effect_class_text(rv_effect_class_of_risk(risk)));
    return rc;
}

static int reason_class(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_reason reason;
    int rc = rv_reason_of(rv_fn_str(in, "reason"), &reason, err);

    if (rc == 0)
        rv_jw_text(out, rv_reason_class_text(rv_reason_class_for(reason)));
    return rc;
}

static int risk_needs_confirmation(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_risk risk;
    int rc = rv_risk_of(rv_fn_str(in, "risk"), &risk, err);

    if (rc == 0)
        rv_jw_bool(out, rv_risk_needs_confirmation(risk));
    return rc;
}

static int interrupt_rule(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_interrupt_kind kind;
    int rc = rv_interrupt_kind_of(rv_fn_str(in, "kind"), &kind, err);

    if (rc < 0)
        return rc;
    struct rv_interrupt_rule rule = rv_interrupt_rule(kind);
    rv_jw_obj(out);
    rv_jw_kv_int(out, "ttl_ms", rule.ttl_us / 1000);
    rv_jw_kv_bool(out, "expires", rule.expires);
    rv_jw_kv_bool(out, "needs_response", rule.needs_response);
    rv_jw_obj_end(out);
    return 0;
}

static const struct rv_fn items[] = {
    {"terms", "any", "{list: {word: meaning}}", "every word the engine reads or writes, by list", terms},
    {"parse_term", "{list: word, text: string}", "string", "read a word of a list; an unknown one is an error",
     parse_term},
    {"outcome", "{outcome: string}", "{is_terminal: bool, is_success: bool, requires_loop: bool}",
     "what an outcome of a stage means", outcome},
    {"tool_status", "{text: string}", "string", "read a tool status: trimmed, lower-cased, one of two words",
     tool_status},
    {"effect_class_of_risk", "{risk: string}", "string", "the effect class that a risk level implies",
     effect_class_of_risk},
    {"risk_needs_confirmation", "{risk: string}", "bool", "whether a person must approve a tool of that risk",
     risk_needs_confirmation},
    {"reason_class", "{reason: string}", "string", "the class of a terminal reason: completed, bounds_exceeded, failed",
     reason_class},
    {"interrupt_rule", "{kind: string}", "{ttl_ms: int, expires: bool, needs_response: bool}",
     "how long an interrupt of that kind waits and what it needs", interrupt_rule},
};
const struct rv_fn_group rv_fn_group_words = {items, RV_COUNT(items)};
