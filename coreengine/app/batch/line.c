/* One line of a batch: the state that its run begins with, the id of that run, and the line that tells its result. */
#include "coreengine/app/batch/batch_internal.h"

#include <stdio.h>
#include <string.h>

#define MAX_RESULT ((size_t)256 << 20) /* bytes of one result: an envelope is not longer */
#define ID_HEX     32                  /* of the hash, in the id of a run: 128 bits */
/* bytes of an error in a line of the result; a longer one is an error of the line */
#define MAX_WHY    ((size_t)64 << 10)       /* an error has far less: it is in one line */
#define MAX_DEPTH  (RV_STATE_MAX_DEPTH + 3) /* of a line: a state in `item` */
#define WHOLE_ITEM "item"
#define LABEL      "id"

/* --- what it says --- */

/* Members of a line besides those of a state: its name, and what a line of --failures has. */
static bool is_own_key(const char *key, bool has_item)
{
    static const char *const told[] = {"line", "run", "status", "error"};

    if (strcmp(key, LABEL) == 0)
        return true;
    for (size_t i = 0; has_item && i < RV_COUNT(told); i++)
        if (strcmp(key, told[i]) == 0)
            return true;
    return false;
}

static const char line_forms[] =
    "a line is JSON: a text in quotes, or a state such as {\"raw_input\": \"...\", \"metadata\": {...}}";

static int refuse_key(const char *key, const char *const *keys, size_t n, rv_err **err)
{
    const char *near = rv_nearest(rv_str_of(key), keys, n);
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown key \"%.100s\"", key);

    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else
        rv_err_set_hint(err, "%s", line_forms);
    return rc;
}

/* has_item: the line has its whole item as a member. */
static int check_keys(json_object *object, bool has_item, rv_err **err)
{
    const char *keys[RV_STATE_MAX_KEYS];
    size_t n = rv_envelope_collect_state_keys(keys);

    json_object_object_foreach (object, key, value) {
        bool is_known = is_own_key(key, has_item) || (has_item && strcmp(key, WHOLE_ITEM) == 0);
        (void)value;
        for (size_t i = 0; !is_known && !has_item && i < n; i++)
            is_known = strcmp(key, keys[i]) == 0;
        if (!is_known)
            return refuse_key(key, keys, n, err);
        if (rv_app_state_is_runs_own(rv_str_of(key)) && !is_own_key(key, has_item))
            return RV_FAIL(err, RV_E_INVALID, "a new run sets \"%s\" when it begins", key);
        if (strcmp(key, "envelope_id") == 0)
            return RV_FAIL(err, RV_E_INVALID, "a batch sets \"envelope_id\"");
    }
    return 0;
}

/* Members of value over those of the state; objects in both are merged, one level deep. */
static int lay_over(json_object *state, json_object *value, rv_err **err)
{
    json_object_object_foreach (value, key, member) {
        json_object *under = rv_json_get_obj(state, key);
        int rc = 0;
        if (strcmp(key, LABEL) == 0)
            continue;
        if (!under || !json_object_is_type(member, json_type_object)) {
            rc = rv_json_set_ref(state, key, member, err);
        } else {
            json_object_object_foreach (member, inner, part) {
                if (rc == 0)
                    rc = rv_json_set_ref(under, inner, part, err);
            }
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_label(struct batch_line *line, rv_err **err)
{
    if (!json_object_is_type(line->item, json_type_object) ||
        !json_object_object_get_ex(line->item, LABEL, &line->label))
        return 0;
    if (json_object_is_type(line->label, json_type_string) || rv_json_is_int(line->label))
        return 0;
    const char *type = rv_json_type_text(line->label);
    line->label = NULL;
    return RV_FAIL(err, RV_E_INVALID, "\"id\" is a text or a whole number, not of type %s", type);
}

/* A line of --failures has what failed as `item`: that is the line. */
static int unwrap(struct batch_line *line, rv_err **err)
{
    json_object *inner = NULL;

    if (!json_object_is_type(line->item, json_type_object) ||
        !json_object_object_get_ex(line->item, WHOLE_ITEM, &inner))
        return 0;
    int rc = check_keys(line->item, true, err);
    if (rc < 0)
        return rc;
    inner = json_object_get(inner);
    json_object_put(line->item);
    line->item = inner;
    return 0;
}

static int make_state(struct batch_line *line, json_object *base, rv_err **err)
{
    int rc = base ? rv_json_dup(base, &line->state, err) : 0;

    if (rc == 0 && !line->state && !(line->state = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "make an envelope");
    if (rc < 0)
        return rc;
    if (json_object_is_type(line->item, json_type_string))
        return rv_json_set_ref(line->state, "raw_input", line->item, err);
    if (!json_object_is_type(line->item, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "a line is a text or an object, not of type %s",
                       rv_json_type_text(line->item));
    rc = check_keys(line->item, false, err);
    return rc < 0 ? rc : lay_over(line->state, line->item, err);
}

static void hash_text(struct rv_hash *h, rv_str text)
{
    char length[24];

    snprintf(length, sizeof length, "%zu:", text.len);
    rv_hash_add(h, rv_str_of(length));
    rv_hash_add(h, text);
}

static int name_run(struct batch_line *line, const struct batch_seed *seed, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(4 * BATCH_MAX_LINE);
    char hex[RV_HASH_MAX], numbers[64];
    struct rv_hash h;
    rv_jw w = rv_jw_on(&text);

    rv_jw_value(&w, line->state);
    snprintf(numbers, sizeof numbers, "%lld %d %d", (long long)line->number, seed->mode, seed->use_mocks);
    rv_hash_init(&h);
    hash_text(&h, rv_str_of(seed->bundle));
    hash_text(&h, rv_str_of(seed->tenant));
    hash_text(&h, rv_str_of(seed->name));
    hash_text(&h, rv_str_of(numbers));
    hash_text(&h, rv_buf_str(&text));
    rv_hash_finish_hex(&h, hex);
    snprintf(line->run, sizeof line->run, "batch_%.*s", ID_HEX, hex);
    int rc = rv_buf_check(&text, "a line of a batch", err);
    rv_buf_fini(&text);
    return rc;
}

/* The place of a result names the line of the file: a message has the column alone. */
static int parse(rv_str text, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = BATCH_MAX_LINE, .max_depth = MAX_DEPTH, .what = "invalid JSON"};
    const char lead[] = "invalid JSON: line 1, ";
    rv_err *cause = NULL;
    int rc = rv_json_parse(rv_utf8_unmark(text), &opts, out, &cause); /* of files that were joined each has one */

    if (rc == 0)
        return 0;
    if (strncmp(rv_err_text(cause), lead, sizeof lead - 1) != 0) {
        rv_err_pass(err, cause);
    } else {
        RV_IGNORE(RV_FAIL(err, rc, "invalid JSON: %s", rv_err_text(cause) + sizeof lead - 1),
                  "the code is that of cause");
        rv_err_free(cause);
    }
    if (rc == RV_E_PARSE)
        rv_err_set_hint(err, "%s", line_forms);
    return rc;
}

int batch_line_read(struct batch_line *line, rv_str text, json_object *base, const struct batch_seed *seed,
                    rv_err **err)
{
    int rc = parse(text, &line->item, err);

    if (rc == 0)
        rc = unwrap(line, err);
    if (rc == 0)
        rc = read_label(line, err);
    if (rc == 0)
        rc = make_state(line, base, err);
    if (rc == 0)
        rc = name_run(line, seed, err);
    if (rc == 0)
        rc = rv_json_set_text(line->state, "envelope_id", line->run, err);
    return rc;
}

void batch_line_fini(struct batch_line *line)
{
    json_object_put(line->item);
    json_object_put(line->state);
    *line = (struct batch_line){.file = NULL};
}

/* --- its result --- */

static rv_jw begin(const struct batch_line *line, const char *status, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "line", line->number);
    if (line->label)
        rv_jw_kv_value(&w, LABEL, line->label);
    if (line->run[0])
        rv_jw_kv_text(&w, "run", line->run);
    rv_jw_kv_text(&w, "status", status);
    return w;
}

static int end(const struct batch_line *line, bool has_item, rv_jw *w, rv_err **err)
{
    if (has_item && line->item)
        rv_jw_kv_value(w, WHOLE_ITEM, line->item);
    rv_jw_obj_end(w);
    rv_buf_putc(w->out, '\n');
    return rv_buf_check(w->out, "the result of a line", err);
}

/* As of a run for people: why it did not complete. */
static void write_end(const rv_envelope *env, rv_jw *w)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    enum rv_failure code = rv_envelope_failure(env, NULL);

    rv_jw_key(w, "error");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "code", code != RV_FAILURE_NONE ? rv_failure_text(code) : rv_reason_text(f->terminal_reason));
    rv_jw_kv_text(w, "message", f->termination_reason ? f->termination_reason : "");
    rv_jw_obj_end(w);
}

static int write_answer(const rv_envelope *env, const struct rv_pipeline *p, rv_jw *w, rv_err **err)
{
    json_object *outputs = NULL;
    rv_str answer;

    if (rv_envelope_find_final_response(env, &p->response, &answer)) {
        rv_jw_kv_str(w, "response", answer);
        return 0;
    }
    int rc = rv_envelope_build_outputs(env, &outputs, err);
    if (rc == 0)
        rv_jw_kv_value(w, "outputs", outputs);
    json_object_put(outputs);
    return rc;
}

int batch_line_write(const struct batch_line *line, const struct rv_app_batch *batch, enum rv_run_status status,
                     const rv_envelope *env, rv_buf *out, rv_err **err)
{
    const struct rv_pipeline *p = batch->loaded->pipeline;
    rv_jw w = begin(line, rv_run_status_text(status), out);
    rv_buf whole = RV_BUF_INIT(MAX_RESULT);
    rv_str question;
    int rc = 0;

    if (status == RV_RUN_INTERRUPTED) {
        if (rv_envelope_find_final_response(env, &p->response, &question))
            rv_jw_kv_str(&w, "question", question);
    } else {
        if (rv_app_has_answer(status, env))
            rc = write_answer(env, p, &w, err);
        if (status != RV_RUN_COMPLETED)
            write_end(env, &w);
    }
    if (rc == 0 && batch->whole_results) {
        rv_envelope_write_result(env, &p->response, &whole);
        rc = rv_buf_check(&whole, "the result of a run", err);
        rv_jw_key(&w, "result");
        rv_jw_raw(&w, rv_buf_str(&whole));
    }
    rv_buf_fini(&whole);
    return rc < 0 ? rc : end(line, status != RV_RUN_COMPLETED && status != RV_RUN_INTERRUPTED, &w, err);
}

int batch_line_write_error(const struct batch_line *line, const char *status, const rv_err *why, rv_buf *out,
                           rv_err **err)
{
    rv_jw w = begin(line, status, out);
    rv_buf text = RV_BUF_INIT(MAX_WHY);
    const char *hint = NULL;

    for (const rv_err *e = why; e && !hint; e = rv_err_cause(e))
        hint = rv_err_hint_text(e);
    rv_jw_key(&w, "error");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "code", rv_code_text(rv_err_code(why)));
    rv_err_write_chain(why, &text);
    rv_jw_kv_buf(&w, "message", &text);
    rv_buf_clear(&text);
    rv_buf_printf(&text, "%s:%lld", line->file, (long long)line->number);
    rv_jw_kv_buf(&w, "place", &text);
    if (hint)
        rv_jw_kv_text(&w, "hint", hint);
    rv_jw_obj_end(&w);
    rv_buf_fini(&text);
    return end(line, true, &w, err);
}
