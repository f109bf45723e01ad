#include "tests/crash/life.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TURNS 60 /* processes of one life; each makes some step, or asks one question */
#define MAX_ARGS  16
#define MAX_TEXT  4096
#define PIPELINE  "crash" /* its name */

struct living {
    struct life *life;
    struct world world;
    rv_buf *why;
    char *run; /* its id; NULL while there is none */
};

/* --- one process --- */

static const char *program_of(const struct living *l)
{
    return l->life->setting->reeve;
}

static bool complain(struct living *l, const char *what, const struct ending *e)
{
    rv_buf_printf(l->why, "%s: exit status %d: %.2000s%.500s; ", what, e->status, e->err, e->out);
    return false;
}

/* One that only looks; its output is the caller's. */
static bool look(struct living *l, const char *const *argv, char **out)
{
    struct ending e;

    process_run(&l->world, argv, NULL, &e);
    bool good = e.status == 0 || complain(l, argv[1], &e);
    if (good && out) {
        *out = e.out;
        e.out = NULL;
    }
    ending_fini(&e);
    return good;
}

/* One that changes the store: the next death is its own. */
static bool act(struct living *l, const char *const *argv)
{
    struct life *life = l->life;
    size_t n = life->n_processes++;
    const struct death *death = n < life->n_deaths ? &life->deaths[n] : NULL;
    struct ending e;

    process_run(&l->world, argv, death, &e);
    bool killed = e.status == -SIGKILL && death && death->at > 0 && strstr(e.err, "crash: ");
    life->n_killed += killed;
    if (death)
        life->counts[n] = e.count;
    bool good = killed || e.status == 0 || e.status == 3 || complain(l, argv[1], &e);
    ending_fini(&e);
    return good;
}

/* --- the run, and what it waits for --- */

static bool begin(struct living *l)
{
    const struct setting *s = l->life->setting;

    return act(l, (const char *const[]){program_of(l), "run", s->pipeline, "--script", s->script, "--input",
                                        "the crash tests", "--store", l->world.store, "--quiet", NULL});
}

static bool recover(struct living *l)
{
    return act(l, (const char *const[]){program_of(l), "runs", "recover", "--store", l->world.store, "--quiet", NULL});
}

static const char *text_of(json_object *obj, const char *key)
{
    const char *text = NULL;

    return obj && rv_json_get_text(obj, key, &text) ? text : "";
}

/* Another run comes and goes; the one that is looked at has to outlive it. */
static bool collect(struct living *l)
{
    const char *store = l->world.store, *program = program_of(l);

    return look(l, (const char *const[]){program, "run", l->life->setting->aside, "--store", store, "--quiet", NULL},
                NULL) &&
           act(l, (const char *const[]){program, "gc", "--older-than", "0s", "--grace", "0s", "--store", store, NULL});
}

/* Did the call happen? Its key, tool and arguments are in the question, the truth is in the outside world. */
static bool answer_unknown(struct living *l, const char *id, json_object *question)
{
    json_object *data = rv_json_get_obj(question, "data");
    json_object *parameters = data ? rv_json_get_obj(data, "parameters") : NULL;
    const char *tool = text_of(data, "tool"), *key = text_of(data, "idempotency_key"),
               *what = text_of(parameters, "text");
    char *effects = access(l->world.effects, R_OK) == 0 ? rv_kit_read(l->world.effects) : NULL;
    char result[MAX_TEXT];

    l->life->n_unknown++;
    if (!*tool || !*key || !*what || !*text_of(data, "started_at")) {
        rv_buf_printf(l->why, "a question does not say what it is about: %s; ", json_object_to_json_string(question));
        free(effects);
        return false;
    }
    if (strcmp(tool, "append_line") != 0 && strcmp(tool, "launch") != 0) /* the rest repeats, or has a probe */
        rv_buf_printf(l->why, "a person was asked about %s; ", tool);
    bool happened = effects && effects_have(effects, tool, key, what);
    free(effects);
    if (!happened)
        return act(l, (const char *const[]){program_of(l), "resume", l->run, "--interrupt", id, "--decision",
                                            "not_happened", "--store", l->world.store, "--quiet", NULL});
    snprintf(result, sizeof result, "{\"did\": \"%s\"}", what);
    return act(l, (const char *const[]){program_of(l), "resume", l->run, "--interrupt", id, "--decision", "happened",
                                        "--data", result, "--store", l->world.store, "--quiet", NULL});
}

static bool answer(struct living *l, json_object *question)
{
    const char *id = text_of(question, "id"), *kind = text_of(question, "kind");

    if (strcmp(kind, "agent_review") == 0)
        return answer_unknown(l, id, question);
    if (strcmp(kind, "confirmation") == 0)
        return act(l, (const char *const[]){program_of(l), "resume", l->run, "--interrupt", id, "--approve", "--store",
                                            l->world.store, "--quiet", NULL});
    rv_buf_printf(l->why, "a question of an unexpected kind: %s; ", json_object_to_json_string(question));
    return false;
}

/* --- from one process to the next --- */

/* Before the first run is durable there may be half a store, which only those who write can put right. */
static bool is_half_made(struct living *l)
{
    struct stat st;
    struct ending e;

    if (l->run)
        return false;
    if (!l->world.server && (stat(l->world.store, &st) != 0 || st.st_size == 0))
        return true;
    process_run(&l->world, (const char *const[]){program_of(l), "runs", "list", "--store", l->world.store, NULL}, NULL,
                &e);
    bool half = e.status == 1 || e.status == 2;
    ending_fini(&e);
    l->life->n_half_made += half;
    return half;
}

enum where { NOT_BEGUN, UNDER_WAY, WAITS, OVER, LOST };

static enum where find(struct living *l, json_object **list, json_object **row)
{
    char *text = NULL;

    *list = NULL;
    if (is_half_made(l))
        return NOT_BEGUN;
    if (!look(l, (const char *const[]){program_of(l), "runs", "list", "--json", "--store", l->world.store, NULL},
              &text))
        return LOST;
    int rc = rv_json_parse(rv_str_of(text), NULL, list, NULL);
    free(text);
    size_t n_ours = 0, n = rc == 0 && json_object_is_type(*list, json_type_array) ? json_object_array_length(*list) : 0;
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(*list, i);
        if (strcmp(text_of(one, "pipeline"), PIPELINE) != 0)
            continue;
        *row = one;
        n_ours++;
    }
    if (rc == 0 && n_ours == 0)
        return NOT_BEGUN;
    if (n_ours != 1) {
        rv_buf_printf(l->why, "%zu runs instead of one; ", n_ours);
        return LOST;
    }
    free(l->run);
    l->run = rv_str_dup(rv_str_of(text_of(*row, "id")));
    const char *status = text_of(*row, "status");
    if (strcmp(status, "ready") == 0 || strcmp(status, "running") == 0)
        return UNDER_WAY;
    if (strcmp(status, "interrupted") == 0)
        return WAITS;
    if (strcmp(status, "completed") == 0)
        return OVER;
    rv_buf_printf(l->why, "the run is %s: %s; ", status, json_object_to_json_string(*row));
    return LOST;
}

/* A store without a run: it was killed before anything was promised, and then nothing may have happened. */
static bool begin_again(struct living *l)
{
    if (l->run) {
        rv_buf_printf(l->why, "the run is gone; ");
        return false;
    }
    if (access(l->world.effects, F_OK) == 0) {
        rv_buf_printf(l->why, "something happened before there was a run; ");
        return false;
    }
    return begin(l);
}

static bool answer_first(struct living *l, json_object *row)
{
    json_object *pending = rv_json_get_arr(row, "pending");

    if (!pending || json_object_array_length(pending) == 0) {
        rv_buf_printf(l->why, "it waits for nothing: %s; ", json_object_to_json_string(row));
        return false;
    }
    return answer(l, json_object_array_get_idx(pending, 0));
}

/* One more process. *over: it was not needed. */
static bool go_on(struct living *l, bool *over)
{
    json_object *list = NULL, *row = NULL;
    bool good = false;

    switch (find(l, &list, &row)) {
    case NOT_BEGUN:
        good = begin_again(l);
        break;
    case UNDER_WAY:
        good = recover(l);
        break;
    case WAITS:
        good = answer_first(l, row);
        break;
    case OVER:
        good = *over = true;
        break;
    case LOST:
        break;
    }
    json_object_put(list);
    return good;
}

/* --- what it left --- */

static bool take_state(struct living *l)
{
    char *text = NULL;
    json_object *shown = NULL;

    if (!look(l,
              (const char *const[]){program_of(l), "runs", "show", l->run, "--json", "--store", l->world.store, NULL},
              &text))
        return false;
    int rc = rv_json_parse(rv_str_of(text), NULL, &shown, NULL);
    json_object *state = rc == 0 ? rv_json_get_obj(shown, "state") : NULL;
    if (state) {
        l->life->verdict.state = json_object_get(state);
        l->life->verdict.artifacts = json_object_get(rv_json_get_arr(shown, "artifacts"));
    } else {
        rv_buf_printf(l->why, "it is shown without a state; ");
    }
    json_object_put(shown);
    free(text);
    return state != NULL;
}

static bool take_verdict(struct living *l)
{
    const char *store = l->world.store, *program = program_of(l);

    l->life->verdict.effects =
        access(l->world.effects, R_OK) == 0 ? rv_kit_read(l->world.effects) : rv_str_dup(RV_STR_LIT(""));
    return take_state(l) && look(l, (const char *const[]){program, "replay", l->run, "--store", store, NULL}, NULL) &&
           look(l, (const char *const[]){program, "gc", "--check", "--store", store, NULL}, NULL);
}

bool life_live(struct life *life, rv_buf *why)
{
    char *dir = rv_kit_tmpdir();
    struct living l = {.life = life, .why = why};
    bool good, over = false;

    life->n_processes = life->n_killed = life->n_unknown = life->n_half_made = 0;
    life->verdict = (struct verdict){.state = NULL};
    for (size_t i = 0; i < LIFE_MAX_DEATHS; i++)
        life->counts[i] = -1;
    world_init(&l.world, dir, life->setting->shim, life->setting->capabilities);
    if (life->setting->server)
        world_move(&l.world, life->setting->server);
    good = begin(&l) && (!life->collects || collect(&l));
    for (int turn = 0; good && !over; turn++) {
        good = go_on(&l, &over);
        if (good && turn == MAX_TURNS) {
            rv_buf_printf(why, "it does not come to an end; ");
            good = false;
        }
    }
    good = good && take_verdict(&l);
    free(l.run);
    world_fini(&l.world);
    rv_kit_tmpdir_remove(dir);
    return good && why->len == 0;
}
