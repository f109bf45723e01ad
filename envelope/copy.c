/* The deep copy: copies every value and interns the names again. */
#include "envelope/envelope_internal.h"

#include <assert.h>

static int copy_name(rv_envelope *to, const struct rv_name *name, const struct rv_name **out, rv_err **err)
{
    *out = NULL;
    return name ? rv_env_intern(to, (rv_str){name->text, name->len}, "name", out, err) : 0;
}

static int copy_map(const struct rv_map *from, rv_envelope *to, enum rv_map_id id, rv_err **err)
{
    int rc = rv_map_reserve(&to->map[id], from->n_live, err);

    for (size_t i = 0; rc == 0 && i < from->n; i++) {
        const struct rv_entry *e = &from->entries[i];
        const struct rv_name *name;
        const struct rv_name *second;
        json_object *value = NULL;

        if (e->kind != RV_ENTRY_LIVE)
            continue;
        rc = copy_name(to, e->name, &name, err);
        if (rc == 0)
            rc = copy_name(to, e->to, &second, err);
        if (rc == 0)
            rc = rv_json_dup(e->value, &value, err);
        if (rc == 0) {
            struct rv_entry *made = rv_map_put(&to->map[id], name, second);

            made->value = value;
            made->count = e->count;
        }
    }
    return rc;
}

static int copy_records(const rv_envelope *from, rv_envelope *to, rv_err **err)
{
    int rc = rv_grow(&to->records, &to->cap_records, from->n_records, sizeof *to->records, err);

    for (size_t i = 0; rc == 0 && i < from->n_records; i++) {
        struct rv_record r = from->records[i];

        r.error = (struct rv_text){0};
        rc = copy_name(to, r.agent, &r.agent, err);
        if (rc == 0)
            rc = rv_text_of(rv_text_str(&from->records[i].error), "error text", &r.error, err);
        if (rc == 0)
            to->records[to->n_records++] = r;
    }
    return rc;
}

static int copy_parts(const rv_envelope *from, rv_envelope *to, rv_err **err)
{
    int rc = copy_name(to, from->stage, &to->stage, err);

    to->f = from->f;
    for (size_t i = 0; rc == 0 && i < RV_N_TEXTS; i++) {
        rv_text_fini(&to->text[i]);
        rc = rv_text_of(rv_text_str(&from->text[i]), "text", &to->text[i], err);
    }
    for (size_t i = 0; rc == 0 && i < RV_N_MAPS; i++)
        rc = copy_map(&from->map[i], to, (enum rv_map_id)i, err);
    for (size_t i = 0; rc == 0 && i < RV_N_LISTS; i++) {
        json_object *list = NULL;

        rc = rv_json_dup(from->list[i], &list, err);
        if (rc == 0) {
            json_object_put(to->list[i]);
            to->list[i] = list;
        }
    }
    if (rc == 0)
        rc = copy_records(from, to, err);
    if (rc == 0)
        rc = rv_interrupt_copy(&from->interrupt, true, &to->interrupt, err);
    return rc;
}

int rv_envelope_dup(const rv_envelope *env, rv_envelope **out, rv_err **err)
{
    rv_envelope *copy = NULL;
    int rc;

    assert(!env->parent);
    rc = rv_env_blank(env->f.created_at_us, &copy, err);
    if (rc == 0)
        rc = copy_parts(env, copy, err);
    if (rc < 0) {
        rv_envelope_free(copy);
        return RV_WRAP(err, rc, "copy the envelope");
    }
    rv_env_mirror(copy);
    *out = copy;
    return 0;
}
