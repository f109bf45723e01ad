/* Which entry answers a call, handing it out, and how far the script has been handed out: as JSON, so that another run
 * can go on from there.
 *
 * The position is {"stages": {"plan": 2}, "models": [1, 4], "answers": 1}. A list is the number of entries that are
 * used at its front, or an array of that and of the further ones that are; lists of which nothing is used are left out.
 */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

#define HEAD_BYTES 80 /* of a prompt, in the message about a call that nothing matches */

static struct script_list *find_list(rv_script *s, enum rv_script_kind kind, rv_str name)
{
    struct script_section *section = &s->sections[kind];

    if (section->is_flat)
        return &section->lists[0];
    int at = rv_index_get(&section->by_name, name);
    return at < 0 ? NULL : &section->lists[at];
}

static bool matches(const struct script_entry *e, const struct rv_script_call *call)
{
    if (e->stage && (!call->stage || strcmp(e->stage, call->stage) != 0))
        return false;
    if (e->tool && (!call->tool || strcmp(e->tool, call->tool) != 0))
        return false;
    if (e->visit && e->visit != call->visit)
        return false;
    if (e->index >= 0 && e->index != call->index)
        return false;
    if (e->branch && !rv_str_is(call->branch, e->branch))
        return false;
    if (e->request && (!call->request || strcmp(e->request, call->request) != 0))
        return false;
    return !e->contains || (call->text.len && memmem(call->text.ptr, call->text.len, e->contains, strlen(e->contains)));
}

/* The first entry that matches and was not used yet; else the last one that matches, if entries repeat. */
static struct script_entry *choose(const rv_script *s, struct script_list *list, const struct rv_script_call *call,
                                   bool *any)
{
    *any = false;
    for (size_t i = list->first_unused; i < list->n; i++)
        if (!list->items[i].used && matches(&list->items[i], call))
            return &list->items[i];
    for (size_t i = list->n; i-- > 0;)
        if (matches(&list->items[i], call)) {
            *any = true;
            return s->repeat ? &list->items[i] : NULL;
        }
    return NULL;
}

static const char *call_text(enum rv_script_kind kind)
{
    return kind == RV_SCRIPT_MODEL   ? "model reply"
           : kind == RV_SCRIPT_STAGE ? "stage entry"
           : kind == RV_SCRIPT_TOOL  ? "tool entry"
                                     : "hook entry";
}

static int no_entry(const struct script_list *list, const struct rv_script_call *call, bool ran_dry, rv_err **err)
{
    rv_str head = rv_utf8_cut(call->text, HEAD_BYTES);
    rv_buf line = RV_BUF_INIT(2048);
    int rc;

    rv_buf_printf(&line, "the script has no %s%s for ", ran_dry ? "further " : "", call_text(call->kind));
    if (call->kind == RV_SCRIPT_TOOL || call->kind == RV_SCRIPT_HOOK)
        rv_buf_printf(&line, "%s \"%.200s\" in ", call->kind == RV_SCRIPT_TOOL ? "tool" : "hook",
                      call->tool ? call->tool : "");
    rv_buf_printf(&line, "stage \"%.200s\", visit %lld", call->stage ? call->stage : "", (long long)call->visit);
    if (ran_dry)
        rv_buf_puts(&line, " (all were used, and repeat is off)");
    rv_buf_printf(&line, ", %s \"%.*s%s\"", call->kind == RV_SCRIPT_MODEL ? "prompt" : "input", RV_STR_ARG(head),
                  head.len < call->text.len ? "..." : "");
    rc = rv_buf_check(&line, "message", err);
    if (rc == 0 && list)
        rc = RV_FAIL_AT(err, &list->src, RV_E_NOT_FOUND, "%s", rv_buf_cstr(&line));
    else if (rc == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "%s", rv_buf_cstr(&line));
    rv_buf_fini(&line);
    return rc;
}

int rv_script_next(rv_script *s, const struct rv_script_call *call, struct rv_script_reply *out, rv_err **err)
{
    bool is_named = call->kind == RV_SCRIPT_TOOL || call->kind == RV_SCRIPT_HOOK;
    const char *name = is_named ? call->tool : call->stage;
    struct script_list *list = find_list(s, call->kind, rv_str_of(name));
    bool any = false;
    struct script_entry *e = list ? choose(s, list, call, &any) : NULL;

    if (!e) {
        s->n_holes++;
        return no_entry(list, call, any, err);
    }
    struct rv_script_reply reply = {.failed = e->failed,
                                    .error_type = e->error_type,
                                    .error = e->error,
                                    .retryable = e->retryable,
                                    .delay_ms = e->delay_ms,
                                    .body = RV_BUF_INIT(RV_JSON_MAX_BYTES),
                                    .deltas = e->deltas,
                                    .n_deltas = e->n_deltas,
                                    .answer = e->answer};
    rv_buf_add_str(&reply.body, e->body);
    int rc = rv_buf_check(&reply.body, "reply of a script", err);
    if (rc < 0) {
        rv_buf_fini(&reply.body);
        return rc;
    }
    e->used = true;
    while (list->first_unused < list->n && list->items[list->first_unused].used)
        list->first_unused++;
    *out = reply;
    return 0;
}

bool rv_script_knows_requests(const rv_script *s)
{
    return s->knows_requests;
}

bool rv_script_is_blind(const rv_script *s)
{
    return s && !s->reads_stages;
}

size_t rv_script_n_holes(const rv_script *s)
{
    return s->n_holes;
}

void rv_script_request_make_key(const struct rv_pipeline *p, const char *role, rv_str request, char out[RV_HASH_MAX])
{
    const struct rv_model_config *model = rv_pipeline_find_model(p, rv_str_of(role));
    struct rv_hash h;

    rv_hash_init(&h);
    if (model) {
        rv_hash_add(&h, rv_str_of(model->provider));
        rv_hash_add(&h, RV_STR_LIT(":"));
        rv_hash_add(&h, rv_str_of(model->model));
    }
    rv_hash_add(&h, RV_STR_LIT("\n"));
    rv_hash_add(&h, request);
    rv_hash_finish_hex(&h, out);
}

void rv_script_reply_fini(struct rv_script_reply *r)
{
    rv_buf_fini(&r->body);
}

/* --- answers of people --- */

void script_questions_fini(rv_script *s)
{
    for (size_t i = 0; i < s->n_questions; i++) {
        free(s->questions[i].id);
        free(s->questions[i].stage);
    }
    free(s->questions);
    s->questions = NULL;
    s->n_questions = 0;
}

static int add_question(rv_script *s, const rv_envelope *env, const char *id, const char *asked_by, rv_err **err)
{
    struct script_question *q = &s->questions[s->n_questions];

    q->id = rv_str_dup(rv_str_of(id));
    q->stage = rv_str_dup(rv_str_of(rv_envelope_asker(env, rv_str_of(id), asked_by)));
    s->n_questions++;
    return q->id && q->stage ? 0 : RV_FAIL(err, RV_E_NOMEM, "look at what a run waits for");
}

int rv_script_on_wait(rv_script *s, const rv_envelope *env, const char *asked_by, rv_err **err)
{
    size_t n = rv_envelope_n_queued(env);
    int rc = 0;

    script_questions_fini(s);
    s->questions = calloc(n + 1, sizeof *s->questions);
    if (!s->questions)
        return RV_FAIL(err, RV_E_NOMEM, "look at what a run waits for");
    if (rv_envelope_has_interrupt(env))
        rc = add_question(s, env, rv_envelope_interrupt(env).id, asked_by, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *entry = rv_envelope_queued_at(env, i);
        const char *id = NULL;
        if (entry && rv_json_get_text(entry, "id", &id))
            rc = add_question(s, env, id, NULL, err);
    }
    return rc;
}

/* The question that the answer is for; NULL: none that waits. */
static const struct script_question *question_of(const rv_script *s, const struct script_answer *a)
{
    for (size_t i = 0; i < s->n_questions; i++)
        if (strcmp(s->questions[i].stage, a->stage) == 0)
            return &s->questions[i];
    return NULL;
}

bool rv_script_answer(rv_script *s, struct rv_response *out, int64_t *delay_ms)
{
    const struct script_question *q = NULL;
    size_t i = s->next_answer;

    while (i < s->n_answers && (s->answers[i].used || (s->answers[i].stage && !(q = question_of(s, &s->answers[i])))))
        i++;
    if (i >= s->n_answers)
        return false;
    struct script_answer *a = &s->answers[i];
    a->used = true;
    while (s->next_answer < s->n_answers && s->answers[s->next_answer].used)
        s->next_answer++;
    *out = a->response;
    if (a->stage)
        out->interrupt_id = rv_str_of(q->id);
    if (delay_ms)
        *delay_ms = a->delay_ms;
    return true;
}

void rv_script_rewind(rv_script *s)
{
    for (size_t k = 0; k < RV_N_SCRIPT_KINDS; k++)
        for (size_t i = 0; i < s->sections[k].n; i++) {
            struct script_list *list = &s->sections[k].lists[i];
            list->first_unused = 0;
            for (size_t e = 0; e < list->n; e++)
                list->items[e].used = false;
        }
    for (size_t i = 0; i < s->n_answers; i++)
        s->answers[i].used = false;
    s->next_answer = 0;
    s->n_holes = 0;
}

/* --- the position --- */

static const char *const section_keys[] = {
    [RV_SCRIPT_MODEL] = "models", [RV_SCRIPT_STAGE] = "stages", [RV_SCRIPT_TOOL] = "tools", [RV_SCRIPT_HOOK] = "hooks"};
RV_EACH_HAS_ROW(section_keys, RV_N_SCRIPT_KINDS);

static size_t n_used(const struct script_list *list)
{
    size_t n = list->first_unused;

    for (size_t i = n; i < list->n; i++)
        n += list->items[i].used;
    return n;
}

static void write_list(const struct script_list *list, rv_jw *w)
{
    if (n_used(list) == list->first_unused) {
        rv_jw_int(w, (int64_t)list->first_unused);
        return;
    }
    rv_jw_arr(w);
    rv_jw_int(w, (int64_t)list->first_unused);
    for (size_t i = list->first_unused; i < list->n; i++)
        if (list->items[i].used)
            rv_jw_int(w, (int64_t)i);
    rv_jw_arr_end(w);
}

/* False: no entry was used, and nothing is written. */
static bool write_section(const struct script_section *section, const char *key, rv_jw *w)
{
    bool any = false;

    for (size_t i = 0; i < section->n; i++) {
        if (n_used(&section->lists[i]) == 0)
            continue;
        if (!any)
            rv_jw_key(w, key);
        if (!any && !section->is_flat)
            rv_jw_obj(w);
        any = true;
        if (!section->is_flat)
            rv_jw_key(w, section->lists[i].name);
        write_list(&section->lists[i], w);
    }
    if (any && !section->is_flat)
        rv_jw_obj_end(w);
    return any;
}

/* How many of the first ones are used, or a list of that and of later ones that are. */
static bool write_answers(const rv_script *s, rv_jw *w)
{
    bool later = false, any = s->next_answer > 0;

    for (size_t i = s->next_answer; i < s->n_answers; i++)
        later |= s->answers[i].used;
    if (!any && !later)
        return false;
    rv_jw_key(w, "answers");
    if (!later) {
        rv_jw_int(w, (int64_t)s->next_answer);
        return true;
    }
    rv_jw_arr(w);
    rv_jw_int(w, (int64_t)s->next_answer);
    for (size_t i = s->next_answer; i < s->n_answers; i++)
        if (s->answers[i].used)
            rv_jw_int(w, (int64_t)i);
    rv_jw_arr_end(w);
    return true;
}

int rv_script_build_position(const rv_script *s, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);
    bool any = false;

    rv_jw_obj(&w);
    for (size_t k = 0; k < RV_N_SCRIPT_KINDS; k++)
        any |= write_section(&s->sections[k], section_keys[k], &w);
    any |= write_answers(s, &w);
    rv_jw_obj_end(&w);
    int rc = rv_buf_check(&text, "position of a script", err);
    if (rc == 0 && any)
        rc = rv_json_parse(rv_buf_str(&text), NULL, out, err);
    else if (rc == 0)
        *out = NULL;
    rv_buf_fini(&text);
    return rc;
}

/* --- and back --- */

static int misfit(const char *key, const char *name, rv_err **err)
{
    return RV_FAIL(err, RV_E_INVALID, "%s%s%.200s: the script has no such entries", key, name ? "." : "",
                   name ? name : "");
}

static bool read_int(json_object *value, size_t below, size_t *out)
{
    if (!json_object_is_type(value, json_type_int))
        return false;
    int64_t n = json_object_get_int64(value);
    *out = n < 0 ? 0 : (size_t)n;
    return n >= 0 && *out < below;
}

static bool read_list(struct script_list *list, json_object *value)
{
    bool is_arr = json_object_is_type(value, json_type_array);
    size_t n = is_arr ? json_object_array_length(value) : 1, at = 0;

    if (n == 0 || !read_int(is_arr ? json_object_array_get_idx(value, 0) : value, list->n + 1, &at))
        return false;
    for (size_t i = 0; i < at; i++)
        list->items[i].used = true;
    for (size_t i = 1; i < n; i++) {
        if (!read_int(json_object_array_get_idx(value, i), list->n, &at))
            return false;
        list->items[at].used = true;
    }
    while (list->first_unused < list->n && list->items[list->first_unused].used)
        list->first_unused++;
    return true;
}

static int read_section(rv_script *s, enum rv_script_kind kind, json_object *value, rv_err **err)
{
    struct script_section *section = &s->sections[kind];

    if (section->is_flat)
        return read_list(&section->lists[0], value) ? 0 : misfit(section_keys[kind], NULL, err);
    if (!json_object_is_type(value, json_type_object))
        return misfit(section_keys[kind], NULL, err);
    json_object_object_foreach (value, name, entry) {
        struct script_list *list = section->n > 0 ? find_list(s, kind, rv_str_of(name)) : NULL;
        if (!list || !read_list(list, entry))
            return misfit(section_keys[kind], name, err);
    }
    return 0;
}

static bool read_answers(rv_script *s, json_object *value)
{
    bool is_arr = json_object_is_type(value, json_type_array);
    size_t n = is_arr ? json_object_array_length(value) : 1, at = 0;

    if ((is_arr && n < 2) ||
        !read_int(is_arr ? json_object_array_get_idx(value, 0) : value, s->n_answers + 1, &s->next_answer))
        return false;
    for (size_t i = 0; i < s->next_answer; i++)
        s->answers[i].used = true;
    for (size_t i = 1; i < n; i++) {
        if (!read_int(json_object_array_get_idx(value, i), s->n_answers, &at))
            return false;
        s->answers[at].used = true;
    }
    return true;
}

int rv_script_set_position(rv_script *s, json_object *position, rv_err **err)
{
    json_object *value = NULL;
    int rc = 0;

    rv_script_rewind(s);
    for (int k = 0; k < RV_N_SCRIPT_KINDS && rc == 0; k++)
        if (position && json_object_object_get_ex(position, section_keys[k], &value))
            rc = read_section(s, (enum rv_script_kind)k, value, err);
    if (rc == 0 && position && json_object_object_get_ex(position, "answers", &value) && !read_answers(s, value))
        rc = misfit("answers", NULL, err);
    if (rc < 0)
        rv_script_rewind(s);
    return rc < 0 ? RV_WRAP(err, rc, "put a script where it stood") : 0;
}
