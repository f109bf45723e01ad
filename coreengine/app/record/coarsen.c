/* A recording that is too large for a script gets fewer pieces: same text, same time until its end. */
#include "coreengine/app/record/record_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_TEXT (2 * RV_LLM_MAX_REPLY)

/* A piece as it stands in a list of chunks. */
struct piece {
    bool is_thinking;
    rv_str text;
    int64_t delay_ms;
};

static struct piece read_piece(json_object *item)
{
    struct piece p = {false, rv_json_str(item), 0};
    json_object *text = NULL;

    if (!json_object_is_type(item, json_type_object))
        return p;
    p.is_thinking = json_object_object_get_ex(item, "thinking", &text);
    if (p.is_thinking || json_object_object_get_ex(item, "text", &text))
        p.text = rv_json_str(text);
    if (!rv_json_get_int(item, "delay_ms", &p.delay_ms))
        p.delay_ms = 0;
    return p;
}

static int push(json_object *list, const rv_buf *text, bool is_thinking, int64_t delay_ms, rv_err **err)
{
    json_object *item = json_object_new_object();

    int rc = rv_buf_check(text, "recorded text", err);
    if (rc < 0) {
        json_object_put(item);
        return rc;
    }
    rc = rv_json_push_take(list, item, err);
    if (rc == 0 && text->len)
        rc = rv_json_set_str(item, is_thinking ? "thinking" : "text", rv_buf_str(text), err);
    if (rc == 0 && delay_ms > 0)
        rc = rv_json_set_int(item, "delay_ms", delay_ms, err);
    return rc;
}

static int coarsen(json_object *from, int64_t window_ms, json_object *to, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct piece last = {false, {NULL, 0}, 0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_object_array_length(from); i++) {
        struct piece p = read_piece(json_object_array_get_idx(from, i));
        if (i > 0 && p.is_thinking == last.is_thinking && p.delay_ms < window_ms) {
            last.delay_ms += p.delay_ms;
        } else {
            if (i > 0)
                rc = push(to, &text, last.is_thinking, last.delay_ms, err);
            rv_buf_clear(&text);
            last = p;
        }
        rv_buf_add_str(&text, p.text);
    }
    if (rc == 0 && json_object_array_length(from) > 0)
        rc = push(to, &text, last.is_thinking, last.delay_ms, err);
    rv_buf_fini(&text);
    return rc;
}

static int coarsen_entry(json_object *entry, int64_t window_ms, rv_err **err)
{
    json_object *from = rv_json_get_arr(entry, "chunks"), *to;

    if (!from)
        return 0;
    to = json_object_new_array();
    int rc = to ? coarsen(from, window_ms, to, err) : RV_FAIL(err, RV_E_NOMEM, "shorten a recording");
    if (rc < 0) {
        json_object_put(to);
        return rc;
    }
    return rv_json_set_take(entry, "chunks", to, err);
}

int rv_record_coarsen(json_object *models, int64_t window_ms, rv_err **err)
{
    int rc = 0;

    json_object_object_foreach (models, stage, entries) {
        (void)stage;
        for (size_t i = 0; rc == 0 && i < json_object_array_length(entries); i++)
            rc = coarsen_entry(json_object_array_get_idx(entries, i), window_ms, err);
    }
    return rc;
}
