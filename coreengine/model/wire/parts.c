/* Images and files of a prompt: what a target takes, and how the bytes are written. Whatever it does not take is
 * refused before anything is sent: a model that never saw a picture would answer all the same. */
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"

#include "coreengine/base/base.h"

json_object *wire_parts_of(json_object *request)
{
    json_object *list = rv_json_get_arr(request, "attachments");

    return list && json_object_array_length(list) > 0 ? list : NULL;
}

struct wire_attachment wire_parts_at(json_object *attachments, size_t i)
{
    json_object *item = json_object_array_get_idx(attachments, i);

    return (struct wire_attachment){.is_image = rv_str_is(wire_text(item, "type"), "image"),
                                    .url = wire_text(item, "url"),
                                    .data = wire_text(item, "data"),
                                    .media_type = wire_text(item, "media_type"),
                                    .name = wire_text(item, "name")};
}

static bool is_well_formed(json_object *item)
{
    bool is_object = json_object_is_type(item, json_type_object);
    rv_str type = is_object ? wire_text(item, "type") : (rv_str){NULL, 0};

    return (rv_str_is(type, "image") || rv_str_is(type, "file")) &&
           (wire_text(item, "url").len > 0) != (wire_text(item, "data").len > 0) &&
           (wire_text(item, "data").len == 0 || wire_text(item, "media_type").len > 0);
}

static int check_one(const struct rv_wire_target *t, unsigned takes, const struct wire_attachment *a, size_t number,
                     rv_err **err)
{
    unsigned as_data = a->is_image ? RV_WIRE_IMAGE_DATA : RV_WIRE_FILE_DATA;
    unsigned by_url = a->is_image ? RV_WIRE_IMAGE_URL : RV_WIRE_FILE_URL;
    const char *what = a->is_image ? "an image" : "a file", *what_all = a->is_image ? "images" : "files";

    if (takes & (a->url.len > 0 ? by_url : as_data))
        return 0;
    if (takes & as_data)
        return RV_FAIL(err, RV_E_INVALID, "attachment %zu is %s by its URL, and %s takes %s only as data", number, what,
                       t->provider, what_all);
    return RV_FAIL(err, RV_E_INVALID, "attachment %zu is %s, and model \"%s\" of %s takes no %s", number, what,
                   t->model, t->provider, what_all);
}

int wire_parts_check(const struct rv_wire_target *t, unsigned takes, json_object *request, rv_err **err)
{
    json_object *list = wire_parts_of(request);
    size_t n = list ? json_object_array_length(list) : 0;
    int rc = 0;

    if (t->no_images)
        takes &= ~(unsigned)(RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL);
    if (t->no_files)
        takes &= ~(unsigned)(RV_WIRE_FILE_DATA | RV_WIRE_FILE_URL);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!is_well_formed(json_object_array_get_idx(list, i)))
            return RV_FAIL(err, RV_E_INVALID, "attachment %zu of the request is malformed", i + 1);
        struct wire_attachment a = wire_parts_at(list, i);
        rc = check_one(t, takes, &a, i + 1, err);
    }
    return rc;
}
