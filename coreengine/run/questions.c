/* Questions of branches. Each stops only its branch; the run pauses when nothing else can move. While it does, the
 * run's envelope shows all open questions in the order of the lists, the first one as its pending interrupt. Also where
 * an approval leads. */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>
#include <string.h>

struct branch *questions_first(rv_run *run)
{
    struct branch *b = run->main.opened ? run_branch_next(&run->main) : NULL;

    while (b && !run_branch_asks(b))
        b = run_branch_next(b);
    return b;
}

/* The branch whose open question has that id; id ptr NULL: the first one. NULL: none. */
static struct branch *find(rv_run *run, rv_str id)
{
    struct branch *b = questions_first(run);

    for (; b && id.ptr; b = run_branch_next(b))
        if (run_branch_asks(b) && rv_str_is(id, rv_envelope_interrupt(b->env).id))
            break;
    return b;
}

/* A question of an inner run counts with the run around it, too: people know its id from there. */
int questions_withdraw(rv_run *run, struct branch *b, rv_err **err)
{
    struct rv_visit_shared *root = rv_visit_root(&run->shared);

    if (!root->withdrawn && !(root->withdrawn = json_object_new_array()))
        return RV_FAIL(err, RV_E_NOMEM, "withdraw a question");
    int rc = rv_json_push_take(root->withdrawn, json_object_new_string(rv_envelope_interrupt(b->env).id), err);
    if (rc == 0)
        rv_envelope_clear_interrupt(b->env);
    return rc;
}

static bool was_withdrawn(rv_run *run, rv_str id)
{
    json_object *list = rv_visit_root(&run->shared)->withdrawn;

    for (size_t i = 0; list && id.ptr && i < json_object_array_length(list); i++)
        if (rv_str_eq(rv_json_str(json_object_array_get_idx(list, i)), id))
            return true;
    return rv_envelope_was_withdrawn(run->env, id); /* before it was loaded */
}

int questions_refuse_withdrawn(rv_run *run, const struct rv_response *r, rv_err **err)
{
    if (!was_withdrawn(run, r->interrupt_id))
        return 0;
    return RV_FAIL(err, RV_E_STATE, "the question \"%.*s\" was withdrawn: its branch was cancelled, or the run ended",
                   RV_STR_ARG(rv_utf8_cut(r->interrupt_id, RV_ID_MAX)));
}

static void name_open(rv_run *run, rv_buf *out)
{
    const char *sep = "waiting: ";

    for (struct branch *b = questions_first(run); b; b = run_branch_next(b))
        if (run_branch_asks(b)) {
            rv_buf_printf(out, "%s%.40s", sep, rv_envelope_interrupt(b->env).id);
            sep = ", ";
        }
    if (out->len == 0)
        rv_buf_puts(out, "nothing waits for an answer");
}

int questions_check(rv_run *run, const struct rv_response *r, int64_t now_us, rv_err **err)
{
    struct branch *b = find(run, r->interrupt_id);
    rv_buf hint = RV_BUF_INIT(1024);

    if (b)
        return run_check_answer(run, b, r, now_us, err);
    int rc = questions_refuse_withdrawn(run, r, err);
    if (rc < 0)
        return rc;
    if (!r->interrupt_id.ptr)
        return RV_FAIL(err, RV_E_STATE, "there is no pending interrupt");
    rc = RV_FAIL(err, RV_E_NOT_FOUND, "no interrupt \"%.*s\" waits for an answer",
                 RV_STR_ARG(rv_utf8_cut(r->interrupt_id, RV_ID_MAX)));
    name_open(run, &hint);
    rv_err_set_hint(err, "%s", rv_buf_cstr(&hint));
    rv_buf_fini(&hint);
    return rc;
}

/* --- where an answer leads --- */

/* default_next is a list: which of its branches start is decided with that output, too. */
static int hold_list(rv_run *run, struct branch *b, int from, json_object *output, rv_err **err)
{
    const struct rv_branches *list = rv_agent_list(&run->pipeline->agents[from], -1);
    struct rv_visit_place place = run_branch_place(run, b);
    bool *taken = calloc(list->n, sizeof *taken);
    struct rv_stage_scope values;

    if (!taken)
        return RV_FAIL(err, RV_E_NOMEM, "open a group");
    struct rv_scope scope = rv_stage_scope_init(&values, run->pipeline, b->env, output, false);
    place.group = b->joined;
    rv_stage_scope_set_place(&values, &place);
    int rc = rv_branches_choose(list, &scope, taken, err);
    rv_stage_scope_fini(&values);
    if (rc == 0)
        rc = run_branch_hold(b, from, list, taken, err);
    free(taken);
    return rc;
}

static int hold_list_or_fail(rv_run *run, struct branch *b, int from, json_object *output, struct rv_effects *out,
                             rv_err **err)
{
    rv_err *cause = NULL;

    int rc = hold_list(run, b, from, output, &cause);
    if (rc == 0)
        return 0;
    if (rc != RV_E_NOMEM)
        rc = run_fail(run, RV_RUN_FAILED, RV_REASON_EXPRESSION, rv_err_text(cause), out, err);
    else
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "open a group"), "told by rc");
    rv_err_free(cause);
    return rc;
}

int questions_go_on_approved(rv_run *run, struct branch *b, int from, struct rv_effects *out, rv_err **err)
{
    const struct rv_agent *asker = &run->pipeline->agents[from];
    json_object *output = rv_envelope_output(b->env, rv_str_of(asker->output.key), NULL), *feedback = NULL;
    int to = RV_TARGET_END;

    int rc = rv_visit_approve(&run->shared, from, b->env, out, &to, err);
    if (rc < 0 || to == RV_TARGET_CLARIFICATION)
        return rc;
    if (to == RV_TARGET_LIST)
        return hold_list_or_fail(run, b, from, output, out, err);
    rc = rv_envelope_set_stage(b->env, rv_str_of(rv_pipeline_target_name(run->pipeline, to)), err);
    if (rc < 0)
        return rc;
    if (to >= 0) {
        if (json_object_is_type(output, json_type_object) && json_object_object_get_ex(output, "feedback", &feedback) &&
            !json_object_is_type(feedback, json_type_string))
            feedback = NULL;
        json_object_get(feedback); /* a loop-back may clear the output */
        const struct edge edge = {.from = from, .to = to, .outcome = RV_OUTCOME_SUCCESS, .feedback = feedback};
        rc = run_take_edge(run, b, &edge, out, err);
        json_object_put(feedback);
    }
    return rc < 0 || run->finished ? rc : run_save(run, out, err);
}

/* The branch goes on where the answer leads; a denial ends the run. */
static int take(rv_run *run, struct branch *b, struct rv_interrupt in, const struct rv_response *r,
                struct rv_effects *out, rv_err **err)
{
    bool tells = false;
    int asker, rc = 0;

    if (r->cancelled)
        return run_question_cancelled(run, b, r->text, out, err);
    if (rv_interrupt_is_ask(in.data))
        return rv_visit_on_answer(&run->shared, b->env, err);
    if (rv_interrupt_goes_on(in.kind, in.data))
        return 0;
    if (in.kind == RV_INTERRUPT_CONFIRMATION && !r->approved) {
        rc = run_tells_denial(run, b, &tells, err);
        return rc < 0 || tells ? rc
                               : run_fail(run, RV_RUN_TERMINATED, RV_REASON_USER_CANCELLED,
                                          "the user denied the confirmation", out, err);
    }
    if (in.kind == RV_INTERRUPT_CONFIRMATION) {
        asker = rv_visit_asked_by_route(&run->shared, b->env, in.data);
        return asker >= 0 ? questions_go_on_approved(run, b, asker, out, err) : 0;
    }
    if (in.kind == RV_INTERRUPT_AGENT_REVIEW && rv_str_is(r->decision, "reject"))
        return run_fail(run, RV_RUN_TERMINATED, RV_REASON_USER_CANCELLED, "the review rejected it", out, err);
    if (in.kind == RV_INTERRUPT_AGENT_REVIEW && rv_str_is(r->decision, "modify") && r->text.ptr)
        return rv_envelope_add_feedback(b->env, r->text, err);
    return 0;
}

/* A stage inside of which the question was put goes on with the answer, which leads on inside: its words and the stage
 * that they name are those of the pipeline there. The run hears of a denial before. */
static bool goes_inside(const rv_run *run, const struct branch *b, const struct rv_interrupt *in,
                        const struct rv_response *r)
{
    bool denies = in->kind == RV_INTERRUPT_CONFIRMATION && r->has_approved && !r->approved;

    return run->shared.rules >= RV_RULES_10 && !denies && !r->cancelled &&
           rv_visit_asks_inside(&run->shared, b->env, in);
}

int questions_answer(rv_run *run, const struct rv_response *r, struct rv_effects *out, rv_err **err)
{
    struct branch *b = find(run, r->interrupt_id);
    struct rv_interrupt in = rv_envelope_interrupt(b->env);
    bool is_inside = goes_inside(run, b, &in, r);

    json_object *data =
        json_object_get(in.data); /* resolving the question keeps its data, a change of the branch may free it */
    in.data = data;
    int rc = rv_envelope_resolve(b->env, r, out->now_us, err);
    if (rc == 0 && !is_inside)
        rc = take(run, b, in, r, out, err);
    json_object_put(data);
    if (rc == 0 && !run->finished)
        run_branch_ready(run, b);
    return rc;
}

int questions_show(rv_run *run, rv_err **err)
{
    int rc = 0;

    for (struct branch *b = questions_first(run); b && rc == 0; b = run_branch_next(b))
        if (run_branch_asks(b)) {
            int stage = b->asked_by;
            const char *name =
                stage >= 0 ? run->pipeline->agents[stage].name : rv_envelope_fields(b->env)->current_stage;
            rc = rv_envelope_show_question(run->env, b->env, rv_str_of(name), rv_str_of(b->path), err);
            run->shown = true;
        }
    return rc == 0 ? run_keep_tree(run, err) : rc;
}

int questions_hide(rv_run *run, rv_err **err)
{
    json_object *kept = rv_envelope_branches(run->env);
    int rc = 0;

    if (kept && !run->shown) /* the envelope was loaded with its questions */
        rc = rv_envelope_read_hidden(run->env, json_object_array_get_idx(kept, 0), err);
    if (rc < 0)
        return rc;
    rv_envelope_hide_questions(run->env);
    rv_envelope_set_branches(run->env, NULL);
    run->shown = false;
    return 0;
}

const char *rv_run_get_question_stage(rv_run *run, rv_str id)
{
    const char *stage = rv_envelope_asker(run->env, id, rv_run_question_stage(run));
    struct branch *b = stage || !run->main.opened ? NULL : find(run, id);

    return b && b->asked_by >= 0 ? run->pipeline->agents[b->asked_by].name : stage;
}

int rv_run_check_branch_answer(rv_run *run, const struct rv_response *r, int64_t now_us, char id[RV_ID_MAX],
                               rv_err **err)
{
    const struct branch *b = find(run, r->interrupt_id);

    if (run->finished && run->status != RV_RUN_INTERRUPTED)
        return RV_FAIL(err, RV_E_STATE, "the run is over");
    if (!run->main.opened)
        return RV_FAIL(err, RV_E_STATE, "the run waits for no answer");
    int rc = questions_check(run, r, now_us, err);
    if (rc < 0)
        return rc;
    const char *which = rv_envelope_interrupt(b->env).id;
    if (strlen(which) >= RV_ID_MAX)
        return RV_FAIL(err, RV_E_LIMIT, "the id of a question has more than %d bytes", RV_ID_MAX - 1);
    memcpy(id, which, strlen(which) + 1);
    return 0;
}

int64_t rv_run_n_asked(const rv_run *run)
{
    return run->n_asked;
}

const rv_envelope *rv_run_question_envelope_at(rv_run *run, size_t i, const char **stage)
{
    struct branch *b = questions_first(run);

    for (; b; b = run_branch_next(b))
        if (run_branch_asks(b) && i-- == 0)
            break;
    if (!b)
        return NULL;
    *stage = b->asked_by >= 0 ? run->pipeline->agents[b->asked_by].name : rv_envelope_fields(b->env)->current_stage;
    return b->env;
}
