/* A claimed task on its way through a worker. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/worker/hook_internal.h"

#define MAX_BACK 5 /* claims that such an end does not make failures: the task may be at fault */

void app_work_list_init(struct work_list *l)
{
    l->first = NULL;
    l->end = &l->first;
}

void app_work_list_add(struct work_list *l, struct work_job *j)
{
    j->next = NULL;
    *l->end = j;
    l->end = &j->next;
}

struct work_job *app_work_list_take(struct work_list *l)
{
    struct work_job *first = l->first;

    app_work_list_init(l);
    return first;
}

void app_work_job_free(struct work_job *j)
{
    if (!j)
        return;
    rv_journal_free(j->journal); /* gives the run up, if it is still the dispatcher's */
    rv_app_loaded_fini(&j->loaded);
    app_work_payload_fini(&j->payload);
    json_object_put(j->asked);
    app_work_hook_free(j->hook);
    rv_buf_fini(&j->summary.text);
    rv_buf_fini(&j->summary.said);
    rv_buf_fini(&j->result);
    rv_buf_fini(&j->error);
    rv_task_row_fini(&j->task);
    free(j);
}

void app_work_fail(struct work_job *j, enum work_end end, rv_err *err)
{
    j->end = end;
    rv_buf_clear(&j->error);
    rv_err_write_chain(err, &j->error);
    rv_err_free(err);
}

bool app_work_may_pass(int rc)
{
    return rc == RV_E_IO || rc == RV_E_TIMEOUT || rc == RV_E_UNAVAILABLE || rv_code_is_scarce(rc);
}

enum work_end app_work_end_of(const struct work_job *j, int rc)
{
    if (rc == RV_E_INVALID && j->answers)
        return WORK_FATAL;
    return app_work_may_pass(rc) && j->task.attempt <= MAX_BACK ? WORK_BACK : WORK_FAILED;
}

enum work_end app_work_end_of_run(const struct work_job *j, int rc)
{
    return rc == RV_E_STATE && j->task.attempt <= MAX_BACK ? WORK_BACK : app_work_end_of(j, rc);
}

void app_work_not_done(struct work_job *j, const char *text)
{
    rv_buf_clear(&j->error);
    rv_buf_puts(&j->error, text);
    j->end = WORK_FAILED;
}

void app_work_done(struct work_job *j, const char *run_status)
{
    rv_jw w = rv_jw_on(&j->result);

    rv_buf_clear(&j->result);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_kv_text(&w, "run", j->run);
    rv_jw_kv_text(&w, "run_status", run_status);
    rv_jw_obj_end(&w);
    j->end = WORK_DONE;
}
