/* Images and files of a request, as plain structures for a hook before the model: what it is shown is read when it asks
 * for it, and what it hands over becomes the reply that it would have written. Nothing is judged here: the core checks
 * the list, as it checks one that a hook wrote itself. */
#include "coreengine/base/base.h"
#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(RV_CAP_MAX_ATTACHMENTS == RV_LLM_MAX_ATTACHMENTS, "a hook sees all attachments of a request");

void plugin_attached_fini(struct rv_plugin_attached *a)
{
    json_object_put(a->args);
    *a = (struct rv_plugin_attached){0};
}

/* Once a call; arguments that do not fit have none. */
static void read_all(struct rv_plugin_attached *a, const char *args)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_PLUGIN_MAX_SHOWN, .max_depth = RV_PLUGIN_MAX_SHOWN_DEPTH, .what = "arguments"};
    json_object *request = NULL, *list = NULL;

    a->is_read = true;
    int rc =
        rv_json_parse(rv_str_of(args), &opts, &a->args,
                      RV_CODE_ONLY("arguments that are not JSON have no attachments; is_short says want of memory"));
    a->is_short = rc == RV_E_NOMEM;
    if (rc < 0 || !json_object_is_type(a->args, json_type_object))
        return;
    request = rv_json_get_obj(a->args, "request");
    list = request ? rv_json_get_arr(request, "attachments") : NULL;
    for (size_t i = 0; list && i < json_object_array_length(list) && a->n < RV_CAP_MAX_ATTACHMENTS; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (json_object_is_type(item, json_type_object))
            a->items[a->n++] = (struct rv_cap_attachment){
                rv_json_text_or(item, "type", ""), rv_json_text_or(item, "url", ""), rv_json_text_or(item, "data", ""),
                rv_json_text_or(item, "media_type", ""), rv_json_text_or(item, "name", "")};
    }
}

const struct rv_cap_attachment *plugin_attached(struct rv_plugin_attached *a, const char *args, uint32_t *n)
{
    if (!a->is_read)
        read_all(a, args);
    if (n)
        *n = a->n;
    return a->n > 0 ? a->items : NULL;
}

/* The place of one that the host handed out; -1: it is another one. */
static int64_t place_of(const struct rv_plugin_attached *a, const struct rv_cap_attachment *item)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (memcmp(&a->items[i], item, sizeof *item) == 0)
            return i;
    return -1;
}

static void write_item(const struct rv_cap_attachment *item, rv_jw *w)
{
    const struct {
        const char *key, *text;
    } members[] = {{"type", item->type},
                   {"url", item->url},
                   {"data", item->data},
                   {"media_type", item->media_type},
                   {"name", item->name}};

    rv_jw_obj(w);
    for (size_t i = 0; i < RV_COUNT(members); i++) {
        const char *text = members[i].text ? members[i].text : "";
        size_t len = strnlen(text, (size_t)RV_CAP_MAX_REPLY + 1); /* longer ones make the reply too large */
        if (len > 0)
            rv_jw_kv_str(w, members[i].key, (rv_str){text, len});
    }
    rv_jw_obj_end(w);
}

void plugin_write_attachments(const struct rv_plugin_attached *a, const struct rv_cap_attachment *items, uint32_t n,
                              rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "action", "replace");
    rv_jw_key(&w, "request");
    rv_jw_obj(&w);
    rv_jw_key(&w, "attachments");
    rv_jw_arr(&w);
    for (uint32_t i = 0; i < n && out->rc == 0; i++) {
        int64_t place = place_of(a, &items[i]);
        if (place >= 0)
            rv_jw_int(&w, place);
        else
            write_item(&items[i], &w);
    }
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
}
