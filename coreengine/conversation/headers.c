/* A context from the headers of a request and from who was authenticated, who always wins: a header only claims. */
#include "coreengine/conversation/context_internal.h"

#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_same(rv_str a, const char *text)
{
    if (a.len != strlen(text))
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(text[i]))
            return false;
    return true;
}

/* The value of a header: empty where it is absent. Two different values are an error: proxies do not agree which one
 * counts. */
static int find(const struct rv_context_source *from, const char *name, rv_str *out, rv_err **err)
{
    *out = (rv_str){NULL, 0};
    for (size_t i = 0; i < from->n_headers; i++) {
        const struct rv_context_header *h = &from->headers[i];
        int rc;

        if (h->value.len == 0 || !is_same(h->name, name))
            continue;
        rc = rv_text_check(h->value, name, RV_CONTEXT_MAX_TEXT, false, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "request header");
        if (out->len > 0 && !rv_str_eq(*out, h->value))
            return RV_FAIL(err, RV_E_INVALID, "request header %s is there twice, with different values", name);
        *out = h->value;
    }
    return 0;
}

static int keep(rv_arena *room, rv_str text, const char **out, rv_err **err)
{
    *out = rv_arena_dup(room, text);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for an agent context");
}

/* A text that did not come with the request: the settings' or of who was authenticated. Nothing if it is empty. */
static int override(rv_arena *room, const char *text, const char *what, const char **out, rv_err **err)
{
    int rc;

    if (!rv_has_text(text))
        return 0;
    rc = rv_text_check(rv_str_of(text), what, RV_CONTEXT_MAX_TEXT, false, err);
    return rc < 0 ? rc : keep(room, rv_str_of(text), out, err);
}

static int authenticated(const struct rv_context_source *from, rv_arena *room, struct rv_context *c, rv_err **err)
{
    char id[RV_UUID_MAX];
    const char *user = from->auth_user_id;
    int rc;

    if (!rv_has_text(user) && rv_has_text(from->auth_email)) {
        rv_user_id_of_email(rv_str_of(from->auth_email), id);
        user = id;
    }
    if (rv_has_text(user))
        c->user_email = NULL; /* what the request claims of another address must not stand beside it */
    rc = override(room, user, "authenticated user", &c->user_id, err);
    if (rc == 0)
        rc = override(room, from->auth_tenant_id, "authenticated tenant", &c->tenant_id, err);
    if (rc == 0)
        rc = override(room, from->auth_email, "authenticated address", &c->user_email, err);
    return rc;
}

int rv_context_from_headers(const struct rv_context_source *from, rv_arena *room, struct rv_context *out, rv_err **err)
{
    struct rv_context c = {.tenant_id = RV_DEFAULT_TENANT};
    rv_str value;
    int rc = override(room, from->default_model, "default model", &c.default_model, err);

    for (size_t i = 0; rc == 0 && i < RV_N_CONTEXT_MEMBERS; i++) {
        const struct rv_context_member *m = &rv_context_members[i];

        if (!m->header)
            continue;
        rc = find(from, m->header, &value, err);
        if (rc == 0 && value.len > 0)
            rc = keep(room, value, rv_context_slot(&c, m), err);
    }
    if (rc == 0)
        rc = find(from, "X-Is-Eval", &value, err);
    if (rc == 0) {
        c.is_eval = is_same(value, "true") || is_same(value, "1") || is_same(value, "yes");
        rc = authenticated(from, room, &c, err);
    }
    if (rc == 0)
        *out = c;
    return rc;
}
