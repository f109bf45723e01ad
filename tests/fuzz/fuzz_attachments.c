/* Any JSON as an attachment: it is refused with a reason, or every wire can say it or refuses it with a reason of its
 * own, and what is said is JSON. No accepted one is malformed for a wire. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/fuzz.h"

static void say(enum rv_wire_kind wire, json_object *request)
{
    const struct rv_wire_target t = {.wire = wire, .provider = "p", .model = "m"};
    rv_buf body = RV_BUF_INIT((size_t)64 << 20);
    json_object *json = NULL;
    rv_err *err = NULL;
    int rc = rv_wire_write_request(&t, request, &body, &err);

    require(rc == 0 || (rc == RV_E_INVALID && !strstr(rv_err_text(err), " is malformed")));
    require(rc < 0 || rv_json_parse(rv_buf_str(&body), NULL, &json, NULL) == 0);
    json_object_put(json);
    rv_err_free(err);
    rv_buf_fini(&body);
}

RV_FUZZ_TARGET(attachments)
{
    rv_str text = {size ? (const char *)data : "", size};
    json_object *value = NULL, *request = json_object_new_object(), *list = json_object_new_array();
    rv_err *err = NULL;

    if (rv_json_parse(text, NULL, &value, NULL) == 0) {
        int rc = rv_attachments_add(list, value, &err);
        require(rc == 0 || rc == RV_E_INVALID);
        require((rc == 0) == (err == NULL));
        require(rv_json_set_ref(request, "attachments", list, NULL) == 0);
        require(json_object_array_length(list) <= RV_LLM_MAX_ATTACHMENTS);
        for (int wire = 0; rc == 0 && wire < RV_N_WIRES; wire++)
            say((enum rv_wire_kind)wire, request);
    }
    rv_err_free(err);
    json_object_put(value);
    json_object_put(list);
    json_object_put(request);
    return 0;
}
