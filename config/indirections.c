/* ${env:NAME} and ${file:path}: the only ways in which a file refers to something outside the file. Their values are
 * inserted once, not expanded again, and never printed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

static const char *find(rv_str text, size_t from, const char *what)
{
    return text.len > from ? memmem(text.ptr + from, text.len - from, what, strlen(what)) : NULL;
}

/* The next "${env:" or "${file:" at or after from. */
static const char *next_indirection(rv_str text, size_t from)
{
    const char *env = find(text, from, "${env:");
    const char *file = find(text, from, "${file:");

    if (!env || !file)
        return env ? env : file;
    return env < file ? env : file;
}

bool rv_has_indirection(rv_str text)
{
    return next_indirection(text, 0) != NULL;
}

/* "${word:" or "${word}" of another kind: surely meant as one of the two. */
static void check_others(struct rv_loader *l, rv_str text, const struct rv_src *src)
{
    for (const char *at = find(text, 0, "${"); at; at = find(text, (size_t)(at - text.ptr) + 2, "${")) {
        size_t left = text.len - (size_t)(at - text.ptr), n = 2;
        while (n < left && (isalnum((unsigned char)at[n]) || at[n] == '_'))
            n++;
        bool is_word = n > 2 && n < left && (at[n] == ':' || at[n] == '}');
        bool known = strncmp(at, "${env:", 6) == 0 || strncmp(at, "${file:", 7) == 0;
        if (is_word && !known)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, "write ${env:NAME} or ${file:path}",
                            "\"%.*s\" is no known indirection", (int)(n + 1), at);
    }
}

static bool is_variable_name(rv_str s)
{
    if (s.len == 0 || (s.ptr[0] >= '0' && s.ptr[0] <= '9'))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.ptr[i]) && s.ptr[i] != '_')
            return false;
    return true;
}

static void add_variable(struct rv_loader *l, rv_str name, const struct rv_src *src, struct rv_indirection *how,
                         rv_buf *out)
{
    char key[256];
    const char *value;

    if (!is_variable_name(name) || name.len >= sizeof key) {
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, "write ${env:NAME}",
                        "\"%.*s\" is no name of an environment variable", RV_STR_ARG(rv_utf8_cut(name, 100)));
        return;
    }
    memcpy(key, name.ptr, name.len);
    key[name.len] = 0;
    value = getenv(key);
    if (!value || !value[0]) {
        how->is_missing = true;
        if (!how->missing_ok && !l->opts->offline)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, src,
                            l->opts->models ? "set it again: it was set when this was begun"
                                            : "set it; a model with \"optional: true\" is left out while it is not set",
                            "the environment variable \"%s\" is %s", key, value ? "empty" : "not set");
        return;
    }
    if (!rv_utf8_valid(rv_str_of(value), NULL) || strlen(value) > RV_MAX_SECRET_BYTES) {
        if (l->opts->offline) {
            how->is_missing = true;
            return;
        }
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL,
                        "the environment variable \"%s\" is too long or no UTF-8 text", key);
        return;
    }
    rv_buf_puts(out, value);
}

static void add_file(struct rv_loader *l, rv_str name, const struct rv_src *src, struct rv_indirection *how,
                     rv_buf *out)
{
    const char *path;
    rv_str text = {NULL, 0};

    if (l->opts->offline) {
        how->is_missing = true;
        return;
    }
    path = rv_loader_path(l, name);
    if (!path || !rv_loader_file(l, "${file:}", path, src, RV_MAX_SECRET_BYTES, &text))
        return;
    while (text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--; /* editors end files with a line break that does not belong to a key */
    rv_buf_add_str(out, text);
}

static json_object *resolve_text(struct rv_loader *l, const struct rv_node *node, struct rv_indirection *how)
{
    struct rv_src src = node->src;
    rv_buf out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    json_object *value = NULL;
    size_t at = 0;

    check_others(l, node->text, &src);
    for (;;) {
        const char *start = next_indirection(node->text, at);
        const char *end = start ? find(node->text, (size_t)(start - node->text.ptr), "}") : NULL;
        rv_str inside;

        if (!start || !end) {
            if (start)
                rv_findings_add(l->findings, RV_SEVERITY_ERROR, &src, NULL, "\"${\" without \"}\"");
            break;
        }
        rv_buf_add(&out, node->text.ptr + at, (size_t)(start - node->text.ptr) - at);
        how->replaced = true;
        inside = (rv_str){strchr(start, ':') + 1, 0};
        inside.len = (size_t)(end - inside.ptr);
        if (start[2] == 'e')
            add_variable(l, inside, &src, how, &out);
        else
            add_file(l, inside, &src, how, &out);
        at = (size_t)(end - node->text.ptr) + 1;
    }
    rv_buf_add(&out, node->text.ptr + at, node->text.len - at);
    if (out.rc == RV_E_LIMIT)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &src, NULL, "the value grows beyond %zu bytes",
                        RV_YAML_MAX_BYTES);
    else if (out.rc == 0)
        value = json_object_new_string_len(rv_buf_cstr(&out), (int)out.len);
    if (!value && out.rc != RV_E_LIMIT)
        l->rc = RV_E_NOMEM;
    rv_buf_fini(&out);
    return value;
}

json_object *rv_resolve_indirections(struct rv_loader *l, const struct rv_node *node, struct rv_indirection *how)
{
    json_object *value = NULL;
    rv_err *err = NULL;
    int rc = 0;

    switch (node->kind) {
    case RV_NODE_STR:
        return resolve_text(l, node, how);
    case RV_NODE_LIST:
        value = json_object_new_array();
        for (size_t i = 0; value && rc == 0 && i < node->n; i++) {
            json_object *item = rv_resolve_indirections(l, node->items[i], how);
            rc = rv_json_push_ref(value, item, NULL);
            json_object_put(item);
        }
        break;
    case RV_NODE_MAP:
        value = json_object_new_object();
        for (size_t i = 0; value && rc == 0 && i < node->n; i++) {
            json_object *item = rv_resolve_indirections(l, node->items[i], how);
            rc = rv_json_set_ref(value, node->keys[i]->text.ptr, item, NULL);
            json_object_put(item);
        }
        break;
    case RV_NODE_NULL:
        return NULL;
    case RV_NODE_BOOL:
    case RV_NODE_INT:
    case RV_NODE_FLOAT:
        rc = rv_node_to_json(node, &value, &err);
        if (rc < 0 && rc != RV_E_NOMEM)
            rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &node->src, err);
        if (rc == RV_E_NOMEM)
            l->rc = rc;
        rv_err_free(err);
        return value;
    }
    if (!value || rc < 0) {
        l->rc = RV_E_NOMEM;
        json_object_put(value);
        return NULL;
    }
    return value;
}
