/* An answer to a turn of a chat that is not in this process: a worker goes on with the run. */
#include <string.h>

#include "coreengine/server/chats_internal.h"

int srv_answer_hand_over(rv_store *store, const struct rv_store_scope *scope, const struct srv_turn_ask *ask,
                         char question[RV_STORE_MAX_ID + 1], rv_err **err)
{
    struct rv_app_question q = {.n = 0};
    struct rv_run_row row;
    bool is_new = false;
    int rc = rv_store_get_run(store, scope, ask->run, &row, err);

    if (rc < 0)
        return rc;
    rc = RV_E_NOT_FOUND;
    for (size_t i = 0; i < ask->req.n_answers && rc == RV_E_NOT_FOUND; i++) {
        struct rv_response r = ask->req.answers[i].response;
        bool is_last = i + 1 == ask->req.n_answers;
        rv_err *cause = NULL;
        rv_app_question_fini(&q);
        rc = rv_app_find_question(store, scope, &row, rv_str_of(ask->req.answers[i].interrupt_id), &q, &cause);
        if (rc == 0)
            rc = rv_app_check_answer(&q, &r, &cause);
        if (rc == 0)
            rc = rv_app_check_arguments(store, scope, &row, &q, &r, &cause);
        if (rc == 0) {
            r.interrupt_id = rv_str_of(q.id);
            rc = rv_app_enqueue(store, scope, ask->run, &r, &is_new, &cause);
        }
        if (rc == 0)
            memcpy(question, q.id, sizeof q.id);
        if (rc < 0 && (rc != RV_E_NOT_FOUND || is_last))
            rc = rv_err_pass(err, cause);
        else
            rv_err_free(cause);
    }
    if (rc == 0 && !is_new)
        rc = RV_FAIL(err, RV_E_STATE, "an answer to this question waits already");
    rv_app_question_fini(&q);
    rv_run_row_fini(&row);
    return rc;
}
