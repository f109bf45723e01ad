/* What a recording must not have: values that the pipeline is given as secrets, and the keys of its providers in the
 * environment, should an answer repeat them. */
#include "coreengine/app/record/record_internal.h"
#include "coreengine/model/provider/provider.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIN_SECRET 8 /* bytes: shorter ones would hide words that are none */

void app_record_secrets_fini(struct rv_record_secrets *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->items[i]);
    free(s->items);
    *s = (struct rv_record_secrets){NULL, 0};
}

static int add_secret(struct rv_record_secrets *s, rv_str value, rv_err **err)
{
    if (value.len < MIN_SECRET)
        return 0;
    char **items = realloc(s->items, (s->n + 1) * sizeof *items);
    if (items)
        s->items = items;
    char *copy = items ? rv_str_dup(value) : NULL;
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "take down what must not be recorded");
    s->items[s->n++] = copy;
    return 0;
}

/* Whatever ends in "key", too: configuration has no other keys than secret ones. */
static bool is_secret_name(const char *key)
{
    size_t len = strlen(key);

    return rv_is_secret_name(rv_str_of(key)) || (len >= 3 && strcasecmp(key + len - 3, "key") == 0);
}

/* "Bearer abc": models repeat the key and not the scheme. */
static int add_header(struct rv_record_secrets *s, rv_str value, rv_err **err)
{
    const char *blank = value.len ? memrchr(value.ptr, ' ', value.len) : NULL;
    int rc = add_secret(s, value, err);

    if (rc == 0 && blank)
        rc = add_secret(s, (rv_str){blank + 1, (size_t)(value.ptr + value.len - blank - 1)}, err);
    return rc;
}

/* named: the value stands under a name of a secret, or within a value that does. Depth is that of a YAML file. */
static int add_named(struct rv_record_secrets *s, json_object *value, bool named, rv_err **err)
{
    int rc = 0;

    if (json_object_is_type(value, json_type_string))
        return named ? add_header(s, rv_json_str(value), err) : 0;
    if (json_object_is_type(value, json_type_array))
        for (size_t i = 0; rc == 0 && i < json_object_array_length(value); i++)
            rc = add_named(s, json_object_array_get_idx(value, i), named, err);
    if (!json_object_is_type(value, json_type_object))
        return rc;
    json_object_object_foreach (value, key, child) {
        if (rc == 0)
            rc = add_named(s, child, named || is_secret_name(key), err);
    }
    return rc;
}

int app_record_secrets_of(struct rv_record_secrets *s, const struct rv_pipeline *p, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < p->n_models; i++) {
        const struct rv_provider_info *info = rv_provider_find(rv_str_of(p->models[i].provider));
        const char *key = info && info->key_env ? getenv(info->key_env) : NULL;
        rc = add_named(s, p->models[i].options, false, err);
        if (rc == 0 && key)
            rc = add_secret(s, rv_str_of(key), err);
    }
    for (size_t i = 0; rc == 0 && i < p->n_capabilities; i++)
        rc = add_named(s, p->capabilities[i].config, false, err);
    return rc;
}

static const char *find(rv_str text, const char *secret)
{
    return text.len ? memmem(text.ptr, text.len, secret, strlen(secret)) : NULL;
}

bool app_record_has_secret(const struct rv_record_secrets *s, rv_str text)
{
    for (size_t i = 0; i < s->n; i++)
        if (find(text, s->items[i]))
            return true;
    return false;
}

static int hide_one(const char *secret, json_object *string, rv_err **err)
{
    rv_buf out = RV_BUF_INIT(2 * RV_LLM_MAX_REPLY);
    rv_str rest = rv_json_str(string);
    const char *at = find(rest, secret);

    if (!at)
        return 0;
    for (; at; at = find(rest, secret)) {
        size_t before = (size_t)(at - rest.ptr), gone = before + strlen(secret);
        rv_buf_add(&out, rest.ptr, before);
        rv_buf_puts(&out, RV_RECORD_HIDDEN);
        rest = (rv_str){rest.ptr + gone, rest.len - gone};
    }
    rv_buf_add_str(&out, rest);
    int rc = rv_buf_check(&out, "recorded text", err);
    if (rc == 0 && !json_object_set_string_len(string, rv_buf_cstr(&out), (int)out.len))
        rc = RV_FAIL(err, RV_E_NOMEM, "hide a secret");
    rv_buf_fini(&out);
    return rc;
}

int app_record_hide(const struct rv_record_secrets *s, json_object *tree, rv_err **err)
{
    int rc = 0;

    if (s->n == 0)
        return 0;
    if (json_object_is_type(tree, json_type_string))
        for (size_t i = 0; rc == 0 && i < s->n; i++)
            rc = hide_one(s->items[i], tree, err);
    if (json_object_is_type(tree, json_type_array))
        for (size_t i = 0; rc == 0 && i < json_object_array_length(tree); i++)
            rc = app_record_hide(s, json_object_array_get_idx(tree, i), err);
    if (!json_object_is_type(tree, json_type_object))
        return rc;
    json_object_object_foreach (tree, key, child) {
        (void)key;
        if (rc == 0)
            rc = app_record_hide(s, child, err);
    }
    return rc;
}
