/* The parts of an explained pipeline that may hold secrets: models and capabilities. */
#include <string.h>
#include <strings.h>

#include "config/explain_internal.h"

/* What an indirection gave, and what is called like a secret, is written as "[secret]"; the rest is written as the file
 * has it. */

#define SECRET "[secret]"

void config_explain_double(rv_jw *w, const char *key, double d)
{
    rv_jw_key(w, key);
    rv_jw_double(w, d);
}

/* --- Values that may be secrets, from what the file says --- */

static bool is_secret_name(rv_str key)
{
    return rv_is_secret_name(key) || (key.len >= 3 && strncasecmp(key.ptr + key.len - 3, "key", 3) == 0);
}

void config_explain_guarded(rv_jw *w, const struct rv_node *node)
{
    switch (node->kind) {
    case RV_NODE_STR:
        if (memmem(node->text.ptr, node->text.len, "${", 2))
            rv_jw_text(w, SECRET);
        else
            rv_jw_str(w, node->text);
        return;
    case RV_NODE_LIST:
        rv_jw_arr(w);
        for (size_t i = 0; i < node->n; i++)
            config_explain_guarded(w, node->items[i]);
        rv_jw_arr_end(w);
        return;
    case RV_NODE_MAP:
        rv_jw_obj(w);
        for (size_t i = 0; i < node->n; i++) {
            rv_jw_key_str(w, node->keys[i]->text);
            if (is_secret_name(node->keys[i]->text))
                rv_jw_text(w, SECRET);
            else
                config_explain_guarded(w, node->items[i]);
        }
        rv_jw_obj_end(w);
        return;
    case RV_NODE_NULL:
        rv_jw_null(w);
        return;
    case RV_NODE_BOOL:
        rv_jw_bool(w, node->i64 != 0);
        return;
    case RV_NODE_INT:
        rv_jw_int(w, node->i64);
        return;
    case RV_NODE_FLOAT:
        rv_jw_double(w, node->f64);
        return;
    case RV_N_NODE_KINDS:
        break;
    }
}

static void write_option(rv_jw *w, const struct rv_node *key, const struct rv_node *node)
{
    rv_jw_key_str(w, key->text);
    if (is_secret_name(key->text))
        rv_jw_text(w, SECRET);
    else
        config_explain_guarded(w, node);
}

/* The options as the provider receives them: there, `options` is not a nested map. */
static void write_options(rv_jw *w, const struct rv_node *map)
{
    const struct rv_node *options = rv_node_get(map, "options");

    rv_jw_key(w, "options");
    rv_jw_obj(w);
    for (size_t i = 0; i < map->n; i++)
        if (config_model_key_is_sent(map->keys[i]->text))
            write_option(w, map->keys[i], map->items[i]);
    for (size_t i = 0; options && i < options->n; i++)
        write_option(w, options->keys[i], options->items[i]);
    rv_jw_obj_end(w);
}

static void write_price(rv_jw *w, const struct rv_price *price)
{
    rv_jw_key(w, "price");
    rv_jw_obj(w);
    config_explain_double(w, "input", (double)price->input / 1e6);
    config_explain_double(w, "output", (double)price->output / 1e6);
    if (price->cached != RV_UNSET)
        config_explain_double(w, "cached", (double)price->cached / 1e6);
    if (price->cache_write != RV_UNSET)
        config_explain_double(w, "cache_write", (double)price->cache_write / 1e6);
    rv_jw_obj_end(w);
}

void config_explain_models(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "models");
    rv_jw_obj(w);
    for (size_t i = 0; i < p->n_models; i++) {
        const struct rv_model_config *m = &p->models[i];
        const struct rv_written *written = &p->internal->models[i];

        rv_jw_key(w, m->role);
        rv_jw_obj(w);
        rv_jw_kv_text(w, "provider", written->hides_name ? SECRET : m->provider);
        rv_jw_kv_text(w, "model", written->hides_name ? SECRET : m->model);
        if (m->has_temperature)
            config_explain_double(w, "temperature", m->temperature);
        if (m->has_max_tokens)
            rv_jw_kv_int(w, "max_tokens", m->max_tokens);
        if (m->max_request_bytes > 0)
            rv_jw_kv_int(w, "max_request_bytes", m->max_request_bytes);
        if (m->max_input_tokens > 0)
            rv_jw_kv_int(w, "max_input_tokens", m->max_input_tokens);
        rv_jw_kv_bool(w, "optional", m->optional);
        if (m->fallback.n > 0)
            rv_jw_kv_list(w, "fallback", &m->fallback);
        if (m->has_price) {
            write_price(w, &m->price);
            rv_jw_kv_bool(w, "price_from_table", m->price_from_table);
        }
        if (m->options)
            write_options(w, written->node);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}
