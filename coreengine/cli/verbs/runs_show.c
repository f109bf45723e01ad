/* reeve runs show: what one run was started with, what it did, what it waits for. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define PREVIEW     160 /* bytes of a value that people see */
#define SHOWN_FIRST 20  /* steps of a long run that are shown when nothing else is asked for */
#define SHOWN_LAST  80  /* events at the end, unless --all */

struct picture {
    const struct rv_cli *cli;
    struct rv_app_past past;
    struct rv_app_steps steps;
    struct rv_replayed replayed;
    json_object *pending; /* array of the interrupts as JSON; owned */
    struct rv_app_queued queued;
    bool is_queued; /* its task says more than its row */
    struct rv_app_window window;
    rv_buf answers;         /* how to answer each, for people */
    rv_buf chosen;          /* answers with choices or changed arguments, one a line, for people */
    rv_buf made, made_json; /* artifacts: one a line for people, and an array */
    rv_jw made_jw;
    int64_t now_us;
};

static const char *mark(const struct picture *p, const char *color)
{
    return p->cli->out_color ? color : "";
}

static int take_pending(void *self, const struct rv_pending *i, rv_err **err)
{
    struct picture *p = self;
    json_object *body = NULL;
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};

    int rc = rv_json_parse(i->body, &opts, &body, err);
    if (rc == 0)
        rc = rv_json_push_take(p->pending, body, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "read a pending interrupt");
    rv_buf_printf(&p->answers, "  %s  %s in stage %s: ", i->id, i->kind, i->stage ? i->stage : "-");
    cli_write_preview(i->text, 2000, &p->answers);
    if (i->expires_us) {
        rv_buf_puts(&p->answers, i->expires_us <= p->now_us ? "; too late since " : "; until ");
        cli_write_moment(&p->answers, i->expires_us);
    }
    rv_buf_puts(&p->answers, "\n    ");
    cli_write_resume(p->cli, i, p->past.row.n_pending == 1, &p->answers);
    return 0;
}

/* NULL: a text that this version cannot read; it is left out. Without memory the picture fails. */
static int parse_or_none(rv_str text, const struct rv_json_opts *opts, json_object **out, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_json_parse(text, opts, out, &cause);

    if (rc == RV_E_NOMEM)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    return 0;
}

/* What people chose, or changed of a call, as the journal has it. */
static int take_chosen(void *self, const struct rv_record *r, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = RV_STATE_MAX_DEPTH};
    struct picture *p = self;
    json_object *body = NULL, *answer = NULL;
    const char *event = NULL;

    if (r->kind != RV_RECORD_EVENT || !r->value.ptr || !memmem(r->body.ptr, r->body.len, "\"answer\"", 8))
        return 0;
    int rc = parse_or_none(r->body, &opts, &body, err);
    if (rc == 0 && json_object_is_type(body, json_type_object) && rv_json_get_text(body, "event", &event) &&
        strcmp(event, "answer") == 0)
        rc = parse_or_none(r->value, &opts, &answer, err);
    if (rc == 0 && json_object_is_type(answer, json_type_object) &&
        (json_object_object_get_ex(answer, "choice", NULL) || json_object_object_get_ex(answer, "arguments", NULL) ||
         json_object_object_get_ex(answer, "expired", NULL) || json_object_object_get_ex(answer, "cancelled", NULL))) {
        rv_buf_puts(&p->chosen, "  ");
        cli_write_preview(r->value, 2000, &p->chosen);
        rv_buf_putc(&p->chosen, '\n');
    }
    json_object_put(body);
    json_object_put(answer);
    return rc;
}

static int take_artifact(void *self, const struct rv_app_artifact *a, rv_err **err)
{
    static const char *const keys[] = {"type", "title", "stage"};
    struct picture *p = self;
    const char *text = "";

    (void)err;
    rv_app_artifact_write(a, &p->made_jw);
    rv_buf_puts(&p->made, "  ");
    cli_write_preview(rv_str_of(rv_json_get_text(a->about, "id", &text) ? text : ""), PREVIEW, &p->made);
    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        rv_buf_puts(&p->made, i < 2 ? "  " : "  in stage ");
        cli_write_preview(rv_str_of(rv_json_get_text(a->about, keys[i], &text) ? text : ""), PREVIEW, &p->made);
    }
    rv_buf_putc(&p->made, '\n');
    return 0;
}

static int read_artifacts(struct picture *p, rv_err **err)
{
    const struct rv_app_artifacts_filter filter = {.run = p->past.row.id};

    p->made_jw = rv_jw_on(&p->made_json);
    rv_jw_arr(&p->made_jw);
    int rc = rv_app_list_artifacts(p->cli->store, &p->cli->app.scope, &filter, take_artifact, p, err);
    rv_jw_arr_end(&p->made_jw);
    return rc;
}

static int read_picture(const char *word, struct picture *p, rv_err **err)
{
    const struct rv_store_scope *scope = &p->cli->app.scope;
    rv_store *store = p->cli->store;
    int rc = rv_app_past_open(store, scope, word, &p->past, err);

    if (rc == 0)
        rc = rv_app_steps_read(store, &p->past, &p->window, &p->steps, &p->replayed, err);
    if (rc < 0)
        return rc; /* it names the run */
    if (!(p->pending = json_object_new_array()))
        rc = RV_FAIL(err, RV_E_NOMEM, "show a run");
    if (rc == 0)
        rc = rv_store_list_pending(store, scope, p->past.row.id, take_pending, p, err);
    if (rc == 0)
        rc = rv_store_read(store, scope, &(struct rv_record_range){.run = p->past.row.id, .from = 1}, take_chosen, p,
                           err);
    if (rc == 0)
        rc = read_artifacts(p, err);
    if (rc == 0 && !rv_run_status_is_final(p->past.row.status))
        rc = rv_app_queued_read(store, &p->past.row, &p->queued, err);
    p->is_queued = rc == 0 && (p->queued.is_queued || p->queued.error.len > 0);
    return rc < 0 ? RV_WRAP(err, rc, "show run \"%s\"", word) : 0;
}

static void write_json(const struct picture *p, rv_buf *b)
{
    const struct rv_app_view view = {.past = &p->past,
                                     .steps = &p->steps,
                                     .replayed = &p->replayed,
                                     .pending = p->pending,
                                     .queued = p->is_queued ? &p->queued : NULL,
                                     .artifacts = p->made.len > 0 ? rv_buf_str(&p->made_json) : (rv_str){NULL, 0},
                                     .now_us = p->now_us};

    rv_app_view_write(&view, b);
    rv_buf_putc(b, '\n');
}

static void picture_fini(struct picture *p)
{
    rv_app_steps_fini(&p->steps);
    rv_replayed_fini(&p->replayed);
    rv_app_past_fini(&p->past);
    rv_app_queued_fini(&p->queued);
    json_object_put(p->pending);
    rv_buf_fini(&p->answers);
    rv_buf_fini(&p->chosen);
    rv_buf_fini(&p->made);
    rv_buf_fini(&p->made_json);
}

/* "plan", "read[2]" for an element of a list, "sub/plan" in an inner pipeline. */
static void write_name(const struct picture *p, const struct rv_app_step *s, rv_buf *b)
{
    const struct rv_agent *agents = rv_app_past_pipeline(&p->past)->agents;
    rv_buf name = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_buf_puts(&name, s->label ? s->label : s->stage >= 0 ? agents[s->stage].name : "-");
    if (s->index >= 0)
        rv_buf_printf(&name, "[%lld]", (long long)s->index);
    rv_buf_printf(b, "%-20s", rv_buf_cstr(&name));
    rv_buf_fini(&name);
}

/* "  in branch a/b": the first stages of the branches that a path such as "/fork#1:a/fork#2:b" goes through. */
static void write_branch(const char *path, rv_buf *b)
{
    bool is_first = true;

    for (const char *at = path ? strchr(path, ':') : NULL; at; at = strchr(at + 1, ':')) {
        rv_buf_puts(b, is_first ? "  in branch " : "/");
        rv_buf_add(b, at + 1, strcspn(at + 1, "/[:"));
        is_first = false;
    }
}

static void write_list(const struct rv_needs *needs, rv_buf *b)
{
    for (size_t i = 0; i < needs->n; i++) {
        rv_buf_puts(b, i ? ", " : "");
        cli_write_preview(rv_str_of(needs->items[i]), PREVIEW, b);
    }
}

/* What keeps it in the queue. */
static void write_obstacle(const struct rv_app_queued *q, rv_buf *b)
{
    if (q->n_workers == 0) {
        rv_buf_puts(b, "  waits     for a worker: none lives; `reeve worker` starts one\n");
    } else if (q->unmet.n > 0) {
        rv_buf_puts(b, "  waits     for a worker with ");
        write_list(&q->unmet, b);
        rv_buf_puts(b, ", which none that lives offers\n");
    } else if (q->n_able == 0) {
        rv_buf_puts(b, "  waits     for one worker that meets all its needs\n");
    }
}

static void write_queue(const struct picture *p, rv_buf *b)
{
    const struct rv_app_queued *q = &p->queued;

    rv_buf_printf(b, "  task      %s: %s", q->task, rv_task_status_text(q->status));
    if (q->is_queued && q->status == RV_TASK_PROCESSING) {
        rv_buf_printf(b, " at %s", q->worker);
    } else if (q->is_queued) {
        rv_buf_puts(b, ", queued for ");
        cli_write_age(b, p->now_us - q->since_us);
        if (q->due_us > p->now_us) {
            rv_buf_puts(b, ", due at ");
            cli_write_moment(b, q->due_us);
        }
        rv_buf_printf(b, ", %lld before it", (long long)q->n_before);
        if (q->needs.n > 0) {
            rv_buf_puts(b, "; needs ");
            write_list(&q->needs, b);
        }
    }
    rv_buf_putc(b, '\n');
    if (q->error.len > 0) {
        rv_buf_puts(b, "  failed    ");
        cli_write_preview(rv_buf_str(&q->error), PREVIEW, b);
        rv_buf_putc(b, '\n');
    }
    if (q->is_queued && q->status != RV_TASK_PROCESSING)
        write_obstacle(q, b);
}

static void write_head(const struct picture *p, rv_buf *b)
{
    const struct rv_run_row *r = &p->past.row;
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(p->replayed.run));

    rv_buf_printf(b, "%srun %s%s  %s%s%s", mark(p, "\033[1m"), r->id, mark(p, "\033[0m"),
                  mark(p, cli_status_color(r->status)), rv_run_status_text(r->status), mark(p, "\033[0m"));
    if (f->termination_reason) {
        rv_buf_puts(b, ": ");
        cli_write_lines(rv_str_of(f->termination_reason), b);
    }
    enum rv_failure code = rv_envelope_failure(rv_run_envelope(p->replayed.run), NULL);
    if (code != RV_FAILURE_NONE)
        rv_buf_printf(b, "  [%s]", rv_failure_text(code));
    rv_buf_puts(b, "\n  pipeline  ");
    cli_write_preview(rv_str_of(r->pipeline), PREVIEW, b);
    rv_buf_printf(b, " (bundle %.12s%s%s)\n  begun     ", r->bundle,
                  p->replayed.begin.has_script ? ", with a script" : "",
                  p->replayed.begin.use_mocks ? ", with mocks" : "");
    cli_write_moment(b, r->created_us);
    rv_buf_puts(b, " UTC, ");
    cli_write_age(b, p->now_us - r->created_us);
    rv_buf_printf(b, " ago\n  for       %s", r->user[0] ? "user " : "no user");
    cli_write_preview(rv_str_of(r->user), PREVIEW, b);
    rv_buf_puts(b, ", session ");
    cli_write_preview(rv_str_of(r->session), PREVIEW, b);
    rv_buf_puts(b, "\n  input     ");
    cli_write_preview((rv_str){f->raw_input, f->raw_input_len}, PREVIEW, b);
    rv_buf_printf(b, "\n  journal   %lld record%s\n", (long long)r->n_records, cli_plural(r->n_records));
    if (r->parent)
        rv_buf_printf(b, "  fork of   %s, from record %lld\n", r->parent, (long long)r->parent_seq);
    if (r->owner) {
        rv_buf_printf(b, "  owner     %s: %s; lease until ", r->owner,
                      rv_app_owner_text(rv_app_owner_of(r, p->now_us)));
        cli_write_moment(b, r->lease_until_us);
        rv_buf_putc(b, '\n');
    }
    if (r->cancel_requested)
        rv_buf_puts(b, "  its owner was asked to cancel it\n");
    if (p->is_queued)
        write_queue(p, b);
}

static void write_call_line(const struct picture *p, const struct rv_app_call *c, int depth, rv_buf *b)
{
    bool bad = c->end == RV_APP_CALL_FAILED || c->end == RV_APP_CALL_UNKNOWN;

    rv_buf_printf(b, "%*s%s %s", 8 + 2 * depth, "", rv_app_call_kind(c), c->name);
    if (c->asked)
        rv_buf_printf(b, " -> %s", c->asked);
    if (c->kind == RV_EFFECT_CALL_TOOL)
        rv_buf_printf(b, " (%s)", rv_effect_class_text((enum rv_effect_class)c->effect_class));
    if (c->attempt > 1)
        rv_buf_printf(b, ", attempt %lld", (long long)c->attempt);
    rv_buf_printf(b, ": %s%s%s", bad ? mark(p, "\033[31m") : "", rv_app_call_end_text(c->end),
                  bad ? mark(p, "\033[0m") : "");
    if (c->ended_us) {
        rv_buf_puts(b, ", ");
        cli_write_duration(b, c->ended_us - c->begun_us);
    }
    if (c->has_spent)
        cli_spent_write(&c->spent, b);
    rv_buf_putc(b, '\n');
    if (c->muted) {
        rv_buf_printf(b, "%*smuted, not shown in the answer: ", 10 + 2 * depth, "");
        cli_write_preview(rv_str_of(c->muted), PREVIEW, b);
        rv_buf_putc(b, '\n');
    }
}

/* The calls of a step that one agent made, each followed by those of the agent that it asked. asker: the call by which
 * that agent was asked; RV_APP_NO_CALL: it is the stage's own. */
static void write_call_lines(const struct picture *p, const struct rv_app_step *s, size_t asker, int depth, rv_buf *b)
{
    for (size_t c = s->first_call; c != RV_APP_NO_CALL; c = p->steps.calls[c].next) {
        if (p->steps.calls[c].asker != asker)
            continue;
        write_call_line(p, &p->steps.calls[c], depth, b);
        if (p->steps.calls[c].asked)
            write_call_lines(p, s, c, depth + 1, b); /* as deep as agents may ask agents */
    }
}

/* Steps from i on that are left out, as one line. Gives the index of the last of them. */
static size_t write_gap(const struct picture *p, size_t i, rv_buf *b)
{
    size_t end = i;

    while (end + 1 < p->steps.n && p->steps.items[end + 1].is_left_out)
        end++;
    rv_buf_puts(b, "       ... ");
    rv_app_write_count(b, (int64_t)(end - i + 1));
    rv_buf_puts(b, " steps left out; --all shows them, --steps FROM-TO a part\n");
    return end;
}

static void write_steps(const struct picture *p, rv_buf *b)
{
    rv_buf_printf(b, "%ssteps%s\n", mark(p, "\033[1m"), mark(p, "\033[0m"));
    for (size_t i = 0; i < p->steps.n; i++) {
        const struct rv_app_step *s = &p->steps.items[i];
        const char *status = "under way", *next = NULL, *error = NULL;
        if (s->is_left_out) {
            i = write_gap(p, i, b);
            continue;
        }
        if (s->end) {
            status = rv_app_visit_status(s->end);
            next = rv_json_text_or(s->end, "next_stage", NULL);
            error = rv_json_text_or(s->end, "error", NULL);
            rv_buf_printf(b, "  %3lld%c ", (long long)s->number, s->can_fork ? ' ' : '*');
        } else {
            rv_buf_puts(b, "    -  ");
        }
        write_name(p, s, b);
        rv_buf_printf(b, " visit %lld  %-9s ", (long long)s->visit, status);
        if (s->end)
            cli_write_duration(b, s->ended_us - s->begun_us);
        if (s->asks)
            rv_buf_puts(b, "  asks a person");
        else if (next)
            rv_buf_printf(b, "  -> %s", next);
        write_branch(s->path, b);
        rv_buf_putc(b, '\n');
        if (error) {
            rv_buf_puts(b, "        ");
            cli_write_preview(rv_str_of(error), PREVIEW, b);
            rv_buf_putc(b, '\n');
        }
        write_call_lines(p, s, RV_APP_NO_CALL, 0, b);
    }
    for (size_t i = 0; i < p->steps.n; i++)
        if (p->steps.items[i].end && !p->steps.items[i].can_fork) {
            rv_buf_puts(b, "  (* within a batch, a group, a list or an inner pipeline: no run can be forked there)\n");
            break;
        }
}

/* The total is the run's: it has what was set aside for calls that were under way when a process died. */
static void write_usage(const struct picture *p, rv_buf *b)
{
    const struct rv_envelope_used used = rv_run_used(p->replayed.run);
    rv_cli_tally *t = cli_tally_new(rv_app_past_pipeline(&p->past));

    for (size_t i = 0; i < p->steps.n; i++)
        for (size_t c = p->steps.items[i].first_call; c != RV_APP_NO_CALL; c = p->steps.calls[c].next)
            if (p->steps.calls[c].has_spent)
                cli_tally_add(t, p->steps.items[i].stage, &p->steps.calls[c].spent);
    cli_tally_write(t, &used.usage, p->cli->out_color, b);
    cli_tally_free(t);
}

static int write_outputs(const struct picture *p, rv_buf *b, rv_err **err)
{
    json_object *outputs = NULL;
    int rc = rv_envelope_build_outputs(rv_run_envelope(p->replayed.run), &outputs, err);

    if (rc < 0)
        return rc;
    if (json_object_object_length(outputs) > 0)
        rv_buf_printf(b, "%soutputs%s\n", mark(p, "\033[1m"), mark(p, "\033[0m"));
    json_object_object_foreach (outputs, key, value) {
        rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
        rv_json_write(value, &text);
        rv_buf_printf(b, "  %s  ", key);
        cli_write_preview(rv_buf_str(&text), PREVIEW, b);
        rv_buf_putc(b, '\n');
        rv_buf_fini(&text);
    }
    json_object_put(outputs);
    return 0;
}

static int write_picture(const struct picture *p, rv_buf *b, rv_err **err)
{
    write_head(p, b);
    write_steps(p, b);
    write_usage(p, b);
    if (p->chosen.len)
        rv_buf_printf(b, "%sanswers%s\n%s", mark(p, "\033[1m"), mark(p, "\033[0m"), rv_buf_cstr(&p->chosen));
    if (p->answers.len)
        rv_buf_printf(b, "%swaits for%s\n%s", mark(p, "\033[1m"), mark(p, "\033[0m"), rv_buf_cstr(&p->answers));
    if (p->made.len)
        rv_buf_printf(b, "%sartifacts%s\n%s", mark(p, "\033[1m"), mark(p, "\033[0m"), rv_buf_cstr(&p->made));
    return write_outputs(p, b, err);
}

/* "7", "7-9", "7-" or "-9". */
static int read_window(const struct rv_cli *cli, struct rv_app_window *w, rv_err **err)
{
    const char *text = cli_value(cli, "steps");
    char *end = NULL;

    *w = (struct rv_app_window){.all = cli_flag(cli, "all"), .first = SHOWN_FIRST, .last = SHOWN_LAST};
    if (!text)
        return 0;
    *w = (struct rv_app_window){.from = 1, .to = INT64_MAX};
    bool has_from = *text >= '0' && *text <= '9';
    if (has_from)
        w->from = w->to = strtoll(text, &end, 10);
    const char *rest = has_from ? end : text;
    if (*rest == '-') {
        bool has_to = rest[1] >= '0' && rest[1] <= '9';
        w->to = has_to ? strtoll(rest + 1, &end, 10) : INT64_MAX;
        rest = has_to ? end : has_from ? rest + 1 : rest;
    }
    if (*rest || !*text || w->from > w->to)
        return RV_FAIL(err, RV_E_INVALID, "--steps \"%s\": give a range such as 7-9, 7- or -9", text);
    return 0;
}

/* Its events as they come, until it is over. */
static int follow(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_past past = {0};

    int rc = rv_app_past_open(cli->store, &cli->app.scope, cli->words[0], &past, err);
    if (rc == 0)
        rc = cli_follow(cli->store, &past, RV_CLI_UNTIL_OVER, true, err);
    rv_app_past_fini(&past);
    return rc;
}

static int show(struct rv_cli *cli, rv_err **err)
{
    if (cli_flag(cli, "follow"))
        return follow(cli, err);
    struct picture p = {.cli = cli,
                        .answers = RV_BUF_INIT(RV_APP_MAX_TEXT),
                        .chosen = RV_BUF_INIT(RV_APP_MAX_TEXT),
                        .made = RV_BUF_INIT(RV_APP_MAX_TEXT),
                        .made_json = RV_BUF_INIT(RV_APP_MAX_TEXT),
                        .now_us = rv_app_now_us()};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    int rc = read_window(cli, &p.window, err);
    if (rc == 0)
        rc = read_picture(cli->words[0], &p, err);
    if (rc == 0 && cli_flag(cli, "json"))
        write_json(&p, &text);
    else if (rc == 0)
        rc = write_picture(&p, &text, err);
    picture_fini(&p);
    return cli_print(rc, &text, err);
}

static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print one JSON object, with the whole state", NULL, false},
    {"steps", 0, "FROM-TO", "show these steps only, e.g. 7-9, 7- or -9", NULL, false},
    {"all", 'a', NULL, "show all steps (default: the first 20 and the last 80)", NULL, false},
    {"follow", 'f', NULL, "print its events as `reeve run --events` does, until it is over", NULL, false},
};

const struct rv_cli_verb verb_runs_show = {
    .name = "runs show",
    .args = "RUN",
    .summary = "show what a run did, step by step",
    .text =
        "Replays the journal without calling anything and shows how the run was started, each stage visit with its\n"
        "calls and results, the models' tokens, cost and time (medians), what the run waits for, and its outputs. A\n"
        "call marked \"started\" has no answer in the journal. `reeve runs fork --at` takes the numbers of these "
        "steps.\n"
        "For a run with more than 100 steps the first 20 and the last 80 are shown; with --json `steps_left_out`\n"
        "counts the others.",
    .examples = "reeve runs show last\n"
                "reeve runs show last --json | jq '.steps[] | {stage, status}'",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    .excludes = "all steps; follow json; follow steps; follow all",
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_runs,
    .run = show,
};
