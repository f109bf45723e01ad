/* What people are told of runs in the store: that some were left behind, and how to answer one that waits. */
#include "coreengine/cli/runs/runs.h"

#include <string.h>

/* --- what others left --- */

#define MAX_LOOKED_AT 100 /* unfinished runs; more are "100" in the note */

static int count_left(void *self, const struct rv_run_row *row, rv_err **err)
{
    enum rv_app_owner owner = rv_app_owner_of(row, rv_app_now_us());
    (void)err;
    *(int *)self += owner == RV_APP_OWNER_DEAD || owner == RV_APP_OWNER_LATE;
    return 0;
}

void rv_cli_note_left_behind(const struct rv_cli *cli, const struct rv_store_scope *scope, rv_store *store)
{
    const struct rv_run_filter unfinished = {.statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING,
                                             .limit = MAX_LOOKED_AT};
    rv_buf text = RV_BUF_INIT(256);
    int n = 0;

    if (!cli->err_tty)
        return;
    RV_IGNORE(rv_store_list_runs(store, scope, &unfinished, count_left, &n, NULL), "a note, no more");
    if (n > 0) {
        rv_buf_printf(&text, "note: %d unfinished run%s of a process that is gone; go on with `reeve runs recover`\n",
                      n, n == 1 ? "" : "s");
        rv_cli_err(rv_buf_str(&text));
    }
    rv_buf_fini(&text);
}

/* --- what it waits for --- */

const char *rv_cli_how_to_answer(enum rv_interrupt_kind kind, json_object *data)
{
    if (rv_interrupt_asks_outcome(kind, data))
        return "--decision happened   # or not_happened, fail; its result: --data JSON";
    return kind == RV_INTERRUPT_CLARIFICATION  ? "--text \"...\""
           : kind == RV_INTERRUPT_CONFIRMATION ? "--approve   # or --deny"
           : kind == RV_INTERRUPT_AGENT_REVIEW ? "--decision approve   # or reject, modify"
                                               : "";
}

struct question {
    enum rv_interrupt_kind kind;
    const char *id, *stage, *ask;
    json_object *data;
};

static void write_question(const struct rv_cli_args *args, const struct question *q, bool several, const char *run,
                           rv_buf *b)
{
    rv_buf_printf(b, "waits for %s (%s)", rv_interrupt_kind_text(q->kind), q->id);
    if (q->stage)
        rv_buf_printf(b, " in stage %s", q->stage);
    rv_buf_puts(b, ": ");
    rv_cli_write_lines(rv_str_of(q->ask), b);
    rv_buf_putc(b, '\n');
    bool is_told = q->kind == RV_INTERRUPT_CLARIFICATION && json_object_object_get_ex(q->data, "output", NULL);
    if (q->data && !is_told) { /* the question of an output says what is wanted */
        rv_buf_puts(b, "  ");
        rv_json_write(q->data, b);
        rv_buf_putc(b, '\n');
    }
    rv_buf_puts(b, "answer with: reeve resume ");
    rv_cli_write_word(run, b);
    if (several) {
        rv_buf_puts(b, " --interrupt ");
        rv_cli_write_word(q->id, b);
    }
    rv_cli_write_store(args, b);
    rv_buf_printf(b, " %s\n", rv_cli_how_to_answer(q->kind, q->data));
}

static const char *text_of(json_object *entry, const char *key)
{
    const char *text = NULL;
    return rv_json_get_text(entry, key, &text) ? text : NULL;
}

void rv_cli_say_pending(const struct rv_cli_args *args, const struct rv_app_run *run, const char *word)
{
    const rv_envelope *env = rv_exec_envelope(run->exec);
    struct rv_interrupt in = rv_envelope_interrupt(env);
    bool several = rv_envelope_n_queued(env) > 0;
    rv_buf text = RV_BUF_INIT(4 << 20);
    struct question q = {in.kind, in.id ? in.id : "", in.stage, in.question ? in.question : in.message, in.data};

    if (run->journal)
        rv_buf_printf(&text, "run %s is kept in %s\n", word, rv_store_url(run->store));
    if (!q.ask)
        q.ask = "";
    write_question(args, &q, several, word, &text);
    for (size_t i = 0; i < rv_envelope_n_queued(env); i++) {
        json_object *entry = rv_envelope_queued(env, i);
        const char *kind = entry ? text_of(entry, "kind") : NULL;
        const char *ask = !entry                       ? NULL
                          : text_of(entry, "question") ? text_of(entry, "question")
                                                       : text_of(entry, "message");
        if (!kind || rv_interrupt_kind_of(rv_str_of(kind), &q.kind, NULL) < 0)
            continue;
        q.id = text_of(entry, "id") ? text_of(entry, "id") : "";
        q.stage = text_of(entry, "stage");
        q.ask = ask ? ask : "";
        q.data = rv_json_get_obj(entry, "data");
        write_question(args, &q, several, word, &text);
    }
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}
