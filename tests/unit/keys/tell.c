/* What a driven run does: its story, its events, its calls with their deadlines and keys, and the part of its state
 * that is not a copy of the pipeline. A run that waits is answered. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/keys/rows.h"

#define MAX_PAUSES 3

static const struct drive_tool tools[] = {
    {"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
    {"put", RV_RISK_WRITE, NULL, NULL, 0},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
};

/* Bounds and the order of stages are left out: the state has copies of them. */
static const char *const parts[] = {
    "outputs",   "status",       "terminal_reason", "termination_reason", "current_stage", "iteration",
    "interrupt", "errors",       "prior_plans",     "loop_feedback",      "state",         "usage",
    "all_goals", "stage_visits", "suspended",       "failed_stages",
};

char *key_text(const char *text, const char *variant)
{
    rv_buf b = RV_BUF_INIT((size_t)1 << 20);

    for (; *text; text++) {
        if (*text == '@')
            rv_buf_puts(&b, variant);
        else
            rv_buf_putc(&b, *text);
    }
    return rv_buf_steal(&b, NULL);
}

static void answer_pauses(struct drive *d, const char *decision)
{
    const struct rv_response usual = {
        .text = RV_STR_LIT("yes"),
        .has_approved = true,
        .approved = !decision,
        .decision = rv_str_of(decision ? decision : "approve"),
    };
    rv_err *err = NULL;

    for (int i = 0; i < MAX_PAUSES && rv_run_status(d->run) == RV_RUN_INTERRUPTED; i++) {
        json_object *data = rv_envelope_interrupt(rv_run_envelope(d->run)).data;
        const struct rv_response chosen = {.text = RV_STR_LIT("why"),
                                           .choice = rv_ask_takes_text(data) ? (rv_str){NULL, 0} : RV_STR_LIT("yes")};
        if (drive_go_on(d, rv_interrupt_is_ask(data) ? &chosen : &usual, &err) < 0)
            rv_kit_die("%s", rv_kit_err_take(err));
    }
}

/* NULL: the row has no file. */
static json_object *files_of(const struct key_row *row, const char *variant)
{
    json_object *files = row->file ? json_object_new_object() : NULL;
    char *text = files ? key_text(row->file, variant) : NULL;

    if (!files)
        return NULL;
    json_object_object_add(files, "inner.yaml", json_object_new_string(text));
    json_object_object_add(files, "other.yaml",
                           json_object_new_string("name: o\ninputs: [w]\nagents: [{name: y, set: {v: 9}}]\n"));
    free(text);
    return files;
}

char *key_tell_run_of(const struct key_row *row, const char *variant, enum rv_rules rules)
{
    const struct rv_response r = {.text = RV_STR_LIT("yes"),
                                  .has_approved = true,
                                  .approved = !row->with,
                                  .decision = rv_str_of(row->with ? row->with : "approve")};
    rv_buf all = RV_BUF_INIT(DRIVE_MAX_TEXT);
    char *yaml = key_text(row->text, variant);
    json_object *files = files_of(row, variant);
    struct drive *d = drive_new_of(yaml, files, tools, RV_COUNT(tools));
    json_object_put(files);
    rv_err *err = NULL;
    size_t n = 0;

    while (n < RV_COUNT(row->answers) && row->answers[n].to)
        n++;
    d->opts.rules = rules;
    drive_envelope(d, row->state ? row->state : "{'envelope_id':'e','request_id':'q','session_id':'s'}");
    drive_answers(d, row->answers, n);
    if (!row->state)
        drive_run(d);
    else if (drive_resume(d, &r, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    answer_pauses(d, row->with);
    rv_buf_printf(&all, "%s\n", drive_story(d));
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        rv_buf_printf(&all, "%s: %s\n", parts[i], drive_state(d, parts[i]));
    for (size_t c = 0; c < d->n_calls; c++)
        rv_buf_printf(&all, "%s %s key %s by %lld\n", d->calls[c].name, d->calls[c].request,
                      d->calls[c].key ? d->calls[c].key : "none", (long long)d->calls[c].deadline_us);
    rv_buf_add_str(&all, rv_buf_str(&d->lines));
    drive_free(d);
    free(yaml);
    return rv_buf_steal(&all, NULL);
}

char *key_tell_run(const struct key_row *row, const char *variant)
{
    return key_tell_run_of(row, variant, RV_RULES_NEWEST);
}
