/* How far a script has been handed out, as JSON, so that another run can go on from there:
 * {"stages": {"plan": 2}, "models": [1, 4], "answers": 1}. A list is the number of entries that are used at its front,
 * or an array of that and of the further ones that are; lists of which nothing is used are left out. */
#include <json-c/linkhash.h>

#include "coreengine/tools/script/script_internal.h"

static const char *const section_keys[RV_SCRIPT_N_KINDS] = {
    [RV_SCRIPT_MODEL] = "models", [RV_SCRIPT_STAGE] = "stages", [RV_SCRIPT_TOOL] = "tools"};

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

int rv_script_position(const rv_script *s, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);
    bool any = s->next_answer > 0;

    rv_jw_obj(&w);
    for (size_t k = 0; k < RV_SCRIPT_N_KINDS; k++)
        any |= write_section(&s->sections[k], section_keys[k], &w);
    if (s->next_answer > 0)
        rv_jw_kv_int(&w, "answers", (int64_t)s->next_answer);
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

static int misfit(rv_err **err, const char *key, const char *name)
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
        return read_list(&section->lists[0], value) ? 0 : misfit(err, section_keys[kind], NULL);
    if (!json_object_is_type(value, json_type_object))
        return misfit(err, section_keys[kind], NULL);
    json_object_object_foreach (value, name, entry) {
        struct script_list *list = section->n > 0 ? rv_script_list(s, kind, rv_str_of(name)) : NULL;
        if (!list || !read_list(list, entry))
            return misfit(err, section_keys[kind], name);
    }
    return 0;
}

int rv_script_set_position(rv_script *s, json_object *position, rv_err **err)
{
    json_object *value = NULL;
    int rc = 0;

    rv_script_rewind(s);
    for (int k = 0; k < RV_SCRIPT_N_KINDS && rc == 0; k++)
        if (position && json_object_object_get_ex(position, section_keys[k], &value))
            rc = read_section(s, (enum rv_script_kind)k, value, err);
    if (rc == 0 && position && json_object_object_get_ex(position, "answers", &value) &&
        !read_int(value, s->n_answers + 1, &s->next_answer))
        rc = misfit(err, "answers", NULL);
    if (rc < 0)
        rv_script_rewind(s);
    return rc < 0 ? RV_WRAP(err, rc, "put a script where it stood") : 0;
}
