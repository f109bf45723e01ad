/* What a task needs of its worker, and what a worker offers: short texts, sorted, each once.
 *
 * A capability that is needed in version 2.3 is offered by 2.3 and by each later 2.x: within one first number a
 * capability keeps what it had. Versions that are not numbers with points have to be equal. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/worker/worker_internal.h"

#define LABEL      "label:"
#define CAPABILITY "capability:"
#define MAX_OFFERS 1024 /* labels and capabilities of one worker: tasks are compared with all; more is an error */
#define MAX_JSON   ((size_t)256 << 10) /* bytes of MAX_OFFERS names as JSON: as RV_STORE_MAX_OFFERS */

void rv_needs_fini(struct rv_needs *needs)
{
    for (size_t i = 0; i < needs->n; i++)
        free(needs->items[i]);
    free(needs->items);
    *needs = (struct rv_needs){NULL, 0};
}

/* Takes text. */
static int add(struct rv_needs *needs, char *text, rv_err **err)
{
    size_t at = 0;

    while (text && at < needs->n && strcmp(needs->items[at], text) < 0)
        at++;
    if (text && at < needs->n && strcmp(needs->items[at], text) == 0) {
        free(text);
        return 0;
    }
    char **items = text && needs->n < MAX_OFFERS ? realloc(needs->items, (needs->n + 1) * sizeof *items) : NULL;
    if (!items) {
        free(text);
        return needs->n < MAX_OFFERS ? RV_FAIL(err, RV_E_NOMEM, "list what is needed")
                                     : RV_FAIL(err, RV_E_LIMIT, "more than %d labels and capabilities", MAX_OFFERS);
    }
    memmove(items + at + 1, items + at, (needs->n - at) * sizeof *items);
    items[at] = text;
    needs->items = items;
    needs->n++;
    return 0;
}

static int add_written(struct rv_needs *needs, rv_buf *text, rv_err **err)
{
    int rc = rv_buf_check(text, "label or capability", err);

    if (rc == 0)
        rc = add(needs, rv_str_dup(rv_buf_str(text)), err);
    rv_buf_fini(text);
    return rc;
}

int app_needs_add(struct rv_needs *needs, const char *text, rv_err **err)
{
    return add(needs, rv_str_dup(rv_str_of(text)), err);
}

int rv_needs_add_label(struct rv_needs *needs, const char *label, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_ID);

    if (!label[0] || strpbrk(label, " \t\n,"))
        return RV_FAIL(err, RV_E_INVALID, "invalid label \"%s\": use a word such as gpu or zone=eu", label);
    rv_buf_printf(&text, LABEL "%s", label);
    return add_written(needs, &text, err);
}

int rv_needs_add_capability(struct rv_needs *needs, const char *name, const char *version, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_ID);

    rv_buf_printf(&text, CAPABILITY "%s%s%s", name, version ? "@" : "", version ? version : "");
    return add_written(needs, &text, err);
}

/* --- versions --- */

/* Numbers with points between them, such as "1.12.3"; at is moved behind the first. */
static bool take_number(const char **at, int64_t *out)
{
    *out = 0;
    if (!rv_is_digit(**at))
        return false;
    for (; rv_is_digit(**at) && *out < INT64_MAX / 10 - 1; (*at)++)
        *out = *out * 10 + (**at - '0');
    if (**at == '.' && rv_is_digit((*at)[1]))
        (*at)++;
    else if (**at)
        return false;
    return true;
}

static bool is_met(const char *offered, const char *needed)
{
    int64_t have, want;

    if (strcmp(offered, needed) == 0)
        return true;
    for (bool is_first = true; *needed; is_first = false) {
        have = 0;
        if (!take_number(&needed, &want) || (*offered && !take_number(&offered, &have)))
            return false;
        if (have != want)
            return !is_first && have > want;
    }
    return true;
}

bool rv_needs_are_met(const struct rv_needs *offers, const char *need)
{
    const char *at = strncmp(need, CAPABILITY, strlen(CAPABILITY)) == 0 ? strrchr(need, '@') : NULL;
    bool any_version = !at && strncmp(need, CAPABILITY, strlen(CAPABILITY)) == 0;
    size_t len = at ? (size_t)(at - need) : strlen(need);

    for (size_t i = 0; i < offers->n; i++) {
        const char *offer = offers->items[i];
        if (!at && strcmp(offer, need) == 0)
            return true;
        if (strncmp(offer, need, len) != 0 || offer[len] != '@')
            continue;
        if (any_version || (at && is_met(offer + len + 1, at + 1)))
            return true;
    }
    return false;
}

/* --- as JSON --- */

void rv_needs_write(const struct rv_needs *needs, rv_jw *w)
{
    rv_jw_arr(w);
    for (size_t i = 0; i < needs->n; i++)
        rv_jw_text(w, needs->items[i]);
    rv_jw_arr_end(w);
}

int rv_needs_read(rv_str json, struct rv_needs *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_JSON, .what = "what a worker offers"};
    json_object *list = NULL;

    *out = (struct rv_needs){NULL, 0};
    int rc = rv_json_parse(json, &opts, &list, err);
    if (rc == 0 && !json_object_is_type(list, json_type_array))
        rc = RV_FAIL(err, RV_E_INVALID, "what a worker offers is an array, not of type %s", rv_json_type_text(list));
    for (size_t i = 0; rc == 0 && i < json_object_array_length(list); i++)
        rc = add(out, rv_str_dup(rv_json_str(json_object_array_get_idx(list, i))), err);
    json_object_put(list);
    if (rc < 0)
        rv_needs_fini(out);
    return rc;
}

/* --- of a pipeline --- */

int rv_needs_build(const struct rv_app_loaded *l, struct rv_needs *out, rv_err **err)
{
    const char *name, *version;
    int rc = 0;

    for (size_t i = 0; rc == 0 && l->plugins && rv_plugins_loaded_at(l->plugins, i, &name, &version); i++)
        rc = rv_needs_add_capability(out, name, version, err);
    return rc;
}
