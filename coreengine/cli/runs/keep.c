/* Runs and their store: what is kept of a new run before it begins, and what people are told of one that waits. */
#include "coreengine/cli/runs/runs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUNDLE ((size_t)64 << 20)

int rv_cli_lease_us(const struct rv_cli_args *args, int64_t *out, rv_err **err)
{
    int64_t seconds = RV_LEASE_DEFAULT_US / 1000000;

    int rc = rv_cli_int(args, "lease", 1, 86400, &seconds, err);
    *out = seconds * 1000000;
    return rc;
}

static int put_bundle(struct rv_cli_session *s, char hash[RV_STORE_HASH_MAX], rv_err **err)
{
    struct rv_catalog catalog = rv_plugins_catalog(s->loaded->plugins);
    struct rv_known_names names = rv_plugins_names(s->loaded->plugins);
    char base[PATH_MAX];
    const struct rv_bundle_source from = {.pipeline = s->loaded->pipeline,
                                          .catalog = &catalog,
                                          .names = &names,
                                          .script = s->loaded->script,
                                          .base = realpath(s->loaded->pipeline->dir, base)};
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);

    int rc = rv_bundle_write(&from, &text, NULL, err);
    if (rc == 0)
        rc = rv_store_put_blob(s->store, rv_buf_str(&text), hash, err);
    rv_buf_fini(&text);
    return rc;
}

int rv_cli_keep(struct rv_cli_session *s, const rv_envelope *env, bool in_group, rv_err **err)
{
    const struct rv_pipeline *p = s->loaded->pipeline;
    struct rv_clock clock = rv_clock_system();
    const char *mode = rv_cli_value(s->args, "mode");
    char hash[RV_STORE_HASH_MAX];
    bool *scripted = NULL;
    struct rv_journal_start start = {.tenant = rv_cli_scope(s->args).tenant,
                                     .bundle = hash,
                                     .pipeline = p,
                                     .env = env,
                                     .owner = s->owner,
                                     .parent = s->parent,
                                     .parent_seq = s->parent_seq};

    int rc = put_bundle(s, hash, err);
    if (rc == 0)
        rc = rv_cli_lease_us(s->args, &start.lease_us, err);
    start.begin = (struct rv_journal_begin){
        .mode = !mode                           ? RV_UNSET
                : strcmp(mode, "parallel") == 0 ? RV_MODE_PARALLEL
                                                : RV_MODE_SEQUENTIAL,
        .continues = s->parent != NULL,
        .use_mocks = rv_cli_flag(s->args, "mock"),
        .has_script = s->loaded->script != NULL,
        .answers_from_script = s->loaded->script != NULL,
        .max_parallel = RV_SHELL_MAX_PARALLEL,
        .script_at = s->script_at,
        .conversation = s->conversation,
    };
    if (rc == 0 && s->loaded->script) {
        scripted = calloc(p->n_agents + 1, sizeof *scripted);
        if (scripted)
            rv_script_stages(s->loaded->script, p, scripted);
        else
            rc = RV_FAIL(err, RV_E_NOMEM, "keep a run");
        start.begin.scripted = scripted;
    }
    if (rc == 0 && !in_group)
        rc = rv_store_begin(s->store, err);
    if (rc == 0) {
        start.now_us = clock.now_us(clock.self); /* the lease begins when other writers are waited for */
        rc = rv_journal_create(s->store, &start, &s->journal, err);
        rc = in_group ? rc : rv_store_end(s->store, rc, err);
    }
    free(scripted);
    if (rc == RV_E_EXISTS)
        rv_err_hint(err, "leave envelope_id out of the state, or keep this run elsewhere with --store FILE");
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}

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

static void write_question(const struct rv_cli_session *s, const struct question *q, bool several, const char *run,
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
    rv_cli_write_store(s->args, b);
    rv_buf_printf(b, " %s\n", rv_cli_how_to_answer(q->kind, q->data));
}

static const char *text_of(json_object *entry, const char *key)
{
    const char *text = NULL;
    return rv_json_get_text(entry, key, &text) ? text : NULL;
}

void rv_cli_say_pending(const struct rv_cli_session *s, const rv_envelope *env, const char *run)
{
    struct rv_interrupt in = rv_envelope_interrupt(env);
    bool several = rv_envelope_n_queued(env) > 0;
    rv_buf text = RV_BUF_INIT(4 << 20);
    struct question q = {in.kind, in.id ? in.id : "", in.stage, in.question ? in.question : in.message, in.data};

    if (s->journal)
        rv_buf_printf(&text, "run %s is kept in %s\n", run, rv_store_url(s->store));
    if (!q.ask)
        q.ask = "";
    write_question(s, &q, several, run, &text);
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
        write_question(s, &q, several, run, &text);
    }
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}
