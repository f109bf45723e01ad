/* Looking at what a driven run left: its state, its observable lines, its calls. */
#include "tests/kit/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((size_t)256 << 20)

static char *look_text;
static json_object *look_tree;

static const char *look_count(size_t n)
{
    static char text[24];

    snprintf(text, sizeof text, "%zu", n);
    return text;
}

static const char *look(const char *json, const char *path)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT, .max_depth = 300};
    json_object *v;
    char part[128];

    json_object_put(look_tree);
    look_tree = NULL;
    free(look_text);
    look_text = NULL;
    if (rv_json_parse(rv_str_of(json), &opts, &look_tree, NULL) < 0)
        rv_kit_die("no JSON: %s", json);
    v = look_tree;
    while (*path) {
        size_t n = strcspn(path, ".");
        json_object *next = NULL;
        memcpy(part, path, n);
        part[n] = '\0';
        path += n + (path[n] == '.');
        if (json_object_is_type(v, json_type_array)) {
            size_t at = (size_t)strtoul(part, NULL, 10);
            if (strcmp(part, "n") == 0)
                return look_count(json_object_array_length(v));
            if (at >= json_object_array_length(v))
                return "absent";
            next = json_object_array_get_idx(v, at);
        } else if (!json_object_is_type(v, json_type_object) || !json_object_object_get_ex(v, part, &next)) {
            return "absent";
        }
        v = next;
    }
    return look_text = rv_kit_text(v);
}

const char *drive_state(struct drive *d, const char *path)
{
    char *dump = drive_dump(rv_run_envelope(d->run));
    const char *text = look(dump, path);

    free(dump);
    return text;
}

const char *drive_request(const struct drive_call *c, const char *path)
{
    return look(c->request, path);
}

const char *drive_artifact(struct drive *d, size_t n, const char *path)
{
    const char *at = rv_buf_cstr(&d->artifacts);

    while (*at && n > 0) {
        at += strcspn(at, "\n") + 1;
        n--;
    }
    if (!*at)
        return "absent";
    char *line = rv_str_dup((rv_str){at, strcspn(at, "\n")});
    const char *text = look(line, path);
    free(line);
    return text;
}

json_object *drive_line(struct drive *d, const char *type, size_t n)
{
    const char *at = rv_buf_cstr(&d->lines);

    while (*at) {
        size_t len = strcspn(at, "\n");
        char *line = rv_str_dup((rv_str){at, len});
        const char *found = NULL;
        at += len + (at[len] == '\n');
        look(line, "");
        free(line);
        if (rv_json_get_text(look_tree, "type", &found) && strcmp(found, type) == 0 && n-- == 0)
            return look_tree;
    }
    return NULL;
}

static char *story_text;

const char *drive_story(struct drive *d)
{
    rv_buf b = RV_BUF_INIT(MAX_TEXT);
    const char *at = rv_buf_cstr(&d->lines);

    while (*at) {
        size_t len = strcspn(at, "\n");
        char *line = rv_str_dup((rv_str){at, len});
        const char *type = NULL, *more = NULL;
        at += len + (at[len] == '\n');
        look(line, "");
        free(line);
        rv_json_get_text(look_tree, "type", &type);
        rv_buf_printf(&b, "%s%s", b.len ? " " : "", type);
        if (strcmp(type, "done") == 0 ? rv_json_get_text(look_tree, "status", &more)
                                      : rv_json_get_text(look_tree, "stage", &more))
            rv_buf_printf(&b, ":%s", more);
        if (strcmp(type, "stage_completed") == 0 && rv_json_get_text(look_tree, "status", &more))
            rv_buf_printf(&b, "=%s", more);
        if (strcmp(type, "routing_decision") == 0 && rv_json_get_text(look_tree, "to", &more))
            rv_buf_printf(&b, ">%s", more);
    }
    free(story_text);
    story_text = rv_buf_steal(&b, NULL);
    return story_text ? story_text : "";
}

const struct drive_call *drive_call_at(const struct drive *d, enum rv_effect_kind kind, size_t n)
{
    for (size_t i = 0; i < d->n_calls; i++)
        if (d->calls[i].kind == kind && n-- == 0)
            return &d->calls[i];
    return NULL;
}

size_t drive_n_calls(const struct drive *d, enum rv_effect_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n_calls; i++)
        n += d->calls[i].kind == kind;
    return n;
}
