/* Answers of people that lead back to a stage whose model may say something else the second time, and ask again. */
#include "config/lint_internal.h"

struct question {
    const struct rv_pipeline *p;
    const struct rv_agent *asker;
    int target;      /* RV_TARGET_CLARIFICATION or _CONFIRMATION */
    bool by_failure; /* error_next asks, not a route */
};

/* The stage that is visited after the answer; -1: none. */
static int answered_at(const struct question *q)
{
    bool confirms = q->target == RV_TARGET_CONFIRMATION;
    const char *resume = confirms ? q->p->confirmation_resume_stage : q->p->clarification_resume_stage;

    if (resume[0])
        return rv_pipeline_stage(q->p, rv_str_of(resume));
    if (confirms && !q->by_failure)
        return rv_agent_approved_target(q->asker);
    return q->asker->index;
}

static void warn(const struct question *q, rv_findings *findings)
{
    int at = answered_at(q);
    const struct rv_agent *a = at >= 0 ? &q->p->agents[at] : NULL;
    struct rv_src src = rv_lint_stage_src(q->asker);

    if (!a || at > q->asker->index || !rv_agent_calls_model(a))
        return;
    if (q->target == RV_TARGET_CONFIRMATION && !q->by_failure)
        rv_findings_add(
            findings, RV_SEVERITY_WARNING, &src,
            "let confirmation_resume_stage or default_next name a stage that comes later; without "
            "confirmation_resume_stage a yes takes default_next with the output that was shown",
            "stage \"%s\": a yes to its confirmation leads back to stage \"%s\", whose model answers again: "
            "that answer may differ from what was approved, and can ask again",
            q->asker->name, a->name);
    else if (a->limits.max_visits == 0)
        rv_findings_add(
            findings, RV_SEVERITY_WARNING, &src, "set max_visits of the stage",
            "stage \"%s\": an answer to its question leads back to stage \"%s\", whose model can ask again, "
            "as often as max_agent_hops (%lld) allows",
            q->asker->name, a->name, (long long)q->p->max_agent_hops);
}

void rv_lint_answers(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings)
{
    static const int targets[] = {RV_TARGET_CLARIFICATION, RV_TARGET_CONFIRMATION};

    for (size_t i = 0; i < p->n_agents; i++) {
        for (size_t t = 0; t < RV_COUNT(targets); t++) {
            struct question q = {p, &p->agents[i], targets[t], false};

            if (rv_routes_ask(routes, (int)i, targets[t]))
                warn(&q, findings);
            q.by_failure = true;
            if (p->agents[i].routing.error_target == targets[t])
                warn(&q, findings);
        }
    }
}
