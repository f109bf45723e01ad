/* Faults of questions and of the routes of their answers: choices that do not exist, answers to a question that
 * the stage does not put, denials for a model that calls no tools. */
#include <string.h>

#include "config/config_internal.h"

static void finding(struct rv_loader *l, const struct rv_agent *a, enum rv_severity severity, const struct rv_src *src,
                    const char *hint, const char *text)
{
    rv_findings_add(l->findings, severity, src, hint, "stage \"%s\": %s", a->name, text);
}

static bool has_choice(const struct rv_agent_ask *ask, const char *choice)
{
    if (ask->any_text)
        return strcmp(choice, RV_CHOICE_TEXT) == 0;
    for (size_t i = 0; rv_ask_option_at(ask, i); i++)
        if (strcmp(choice, rv_ask_option_at(ask, i)) == 0)
            return true;
    return false;
}

static void unknown_choice(struct rv_loader *l, const struct rv_agent *a, const struct rv_answer_route *route)
{
    const char *names[RV_ASK_MAX_OPTIONS + 1];
    char hint[RV_HINT_MAX];
    size_t n = 0;

    if (a->ask.any_text)
        names[n++] = RV_CHOICE_TEXT;
    for (size_t i = 0; !a->ask.any_text && i < RV_ASK_MAX_OPTIONS && rv_ask_option_at(&a->ask, i); i++)
        names[n++] = rv_ask_option_at(&a->ask, i);
    config_name_hint(l->findings, rv_str_of(route->choice), "choices", names, n, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &route->choice_src, hint,
                    "stage \"%s\": on_answer has \"%s\", which is not a choice of the question", a->name,
                    route->choice);
}

static void check_route(struct rv_loader *l, const struct rv_agent *a, const struct rv_answer_route *route)
{
    bool is_timeout = strcmp(route->choice, RV_CHOICE_TIMEOUT) == 0;

    if (!is_timeout && !has_choice(&a->ask, route->choice))
        unknown_choice(l, a, route);
    else if (is_timeout && a->ask.expires_seconds == 0)
        finding(l, a, RV_SEVERITY_WARNING, &route->choice_src,
                "add expires_seconds to ask, or leave this route out: a question without it never expires",
                "on_answer has a route for timeout, which is never taken");
}

static void check_options(struct rv_loader *l, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->ask.options.n; i++)
        if (strcmp(a->ask.options.items[i], RV_CHOICE_TIMEOUT) == 0)
            finding(l, a, RV_SEVERITY_ERROR, &a->ask.options.srcs[i], "give it another word",
                    "the choice \"timeout\" means that no one answered in time, and no person can choose it");
}

static void check_denial(struct rv_loader *l, const struct rv_agent *a)
{
    if (a->on_denied_src.line > 0 && a->on_denied == RV_DENIED_TELL_MODEL && !(a->has_llm && a->has_tools) &&
        !rv_agent_is_unbound(a))
        finding(l, a, RV_SEVERITY_ERROR, &a->on_denied_src, "it is for stages with has_llm and has_tools",
                "on_denied is tell_model, and no model calls tools here");
}

void config_check_asks(struct rv_loader *l, const struct rv_agent *a)
{
    check_denial(l, a);
    if (!a->ask.question) {
        if (a->ask.n_routes > 0 && a->ask.src.line == 0)
            finding(l, a, RV_SEVERITY_ERROR, &a->ask.on_answer_src, "add ask: {question: ...}",
                    "on_answer needs a question: the stage has no ask");
        return;
    }
    check_options(l, a);
    for (size_t i = 0; i < a->ask.n_routes; i++)
        check_route(l, a, &a->ask.routes[i]);
    if (a->ask.n_routes > 0 && l->p->default_run_mode == RV_MODE_PARALLEL)
        finding(l, a, RV_SEVERITY_WARNING, &a->ask.on_answer_src, "stages that need the answer see it in the output",
                "on_answer leads nowhere when stages run as soon as they are ready");
}
