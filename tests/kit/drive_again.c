/* Driving on: answers after a pause, in the same run or in one made from its saved state, and replays. */
#include "tests/kit/drive.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void drive_reload(struct drive *d)
{
    d->opts.first = d->keeps_numbers ? rv_run_counters(d->run) : (struct rv_run_counters){0};
    rv_envelope *env = rv_run_steal_envelope(d->run);
    char *dump = drive_dump(env);

    rv_envelope_free(env);
    rv_run_free(d->run);
    d->run = NULL;
    drive_envelope(d, dump);
    free(dump);
    drive_forget_calls(d);
    rv_buf_clear(&d->effects);
    rv_buf_clear(&d->events);
    rv_buf_clear(&d->lines);
    if (!d->keeps_numbers) {
        d->next_seq = d->last_call_id = 0;
        d->n_visits = d->n_llm = 0;
    }
    d->n_done = d->n_finish = 0;
    d->finished = false;
}

int drive_resume(struct drive *d, const struct rv_response *response, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = d->now_us, .response = *response};

    if (d->finished)
        drive_reload(d);
    int rc = drive_step(d, &ev, err);
    if (rc == 0)
        drive_pump(d);
    return rc;
}

int drive_go_on(struct drive *d, const struct rv_response *response, rv_err **err)
{
    const struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = d->now_us, .response = *response};

    char *before = drive_dump(rv_run_envelope(d->run));
    struct rv_run_counters counters = rv_run_counters(d->run);
    bool finished = rv_run_is_finished(d->run);
    int rc = drive_step(d, &ev, err);
    if (rc == 0) {
        drive_pump(d);
    } else {
        char *after = drive_dump(rv_run_envelope(d->run));
        ck_assert_str_eq(after, before);
        ck_assert(rv_run_is_finished(d->run) == finished);
        ck_assert_int_eq(rv_run_counters(d->run).next_call_id, counters.next_call_id);
        ck_assert_int_eq(rv_run_counters(d->run).next_seq, counters.next_seq);
        free(after);
    }
    free(before);
    return rc;
}

void drive_recover(struct drive *d, int64_t gap_us)
{
    const struct rv_event ev = {.kind = RV_EVENT_RECOVER, .now_us = d->now_us + gap_us};

    drive_must_step(d, &ev);
    for (size_t i = 0; i < d->n_calls; i++) /* as whoever makes them again does */
        if (!d->calls[i].over && d->calls[i].deadline_us)
            d->calls[i].deadline_us += gap_us;
}

enum rv_run_status drive_approve(struct drive *d, bool approved)
{
    struct rv_response r = {.has_approved = true, .approved = approved};
    rv_err *err = NULL;

    if (drive_resume(d, &r, &err) < 0)
        ck_abort_msg("refused: %s", rv_err_text(err));
    return rv_run_status(d->run);
}

bool drive_replays(struct drive *d, const char *first_state)
{
    struct drive *other = calloc(1, sizeof *other);
    const char *at = rv_buf_cstr(&d->events);

    if (!other)
        rv_kit_die("no memory");
    other->p = d->p;
    other->catalog = d->catalog;
    other->opts = d->opts;
    other->effects = other->events = other->lines = RV_BUF_INIT(DRIVE_MAX_TEXT);
    other->now_us = DRIVE_T0;
    other->next_seq = d->opts.first.next_seq ? d->opts.first.next_seq - 1 : 0;
    other->last_call_id = d->opts.first.next_call_id ? d->opts.first.next_call_id - 1 : 0;
    other->keep = true;
    other->open = calloc(d->p->n_agents + 1, sizeof *other->open);
    drive_envelope(other, first_state);
    while (*at) {
        size_t len = strcspn(at, "\n");
        const struct rv_json_opts opts = {.max_bytes = DRIVE_MAX_TEXT};
        json_object *json = NULL;
        struct rv_event ev;
        ck_assert_int_eq(rv_json_parse((rv_str){at, len}, &opts, &json, NULL), 0);
        ck_assert_int_eq(rv_event_read_json(json, &ev, NULL), 0);
        drive_must_step(other, &ev);
        json_object_put(json);
        at += len + (at[len] == '\n');
    }
    char *a = drive_dump(rv_run_envelope(d->run)), *b = drive_dump(rv_run_envelope(other->run));
    bool same = rv_str_eq(rv_buf_str(&d->effects), rv_buf_str(&other->effects)) &&
                rv_str_eq(rv_buf_str(&d->events), rv_buf_str(&other->events)) && strcmp(a, b) == 0;
    free(a);
    free(b);
    other->p = NULL;
    drive_free(other);
    return same;
}
