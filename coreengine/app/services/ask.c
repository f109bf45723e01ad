/* The arguments of an ask, read by every service. */
#include "coreengine/app/services/services_internal.h"
#include "coreengine/base/base.h"

#include <json-c/linkhash.h>
#include <string.h>

int app_ask_text(const struct app_ask *a, const char *key, bool needed, const char **out, rv_err **err)
{
    *out = NULL;
    if (!json_object_object_get_ex(a->args, key, NULL))
        return needed ? RV_FAIL(err, RV_E_INVALID, "it needs \"%s\"", key) : 0;
    if (!rv_json_get_text(a->args, key, out))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a string", key);
    return rv_json_has_nul(rv_json_member(a->args, key))
               ? RV_FAIL(err, RV_E_INVALID, "\"%s\" has a NUL (U+0000), which it must not have", key)
               : 0;
}

int app_ask_check(const struct app_ask *a, const char *const *known, size_t n, rv_err **err)
{
    return rv_service_check_args(a->args, known, n, err);
}

int app_ask_payload(const struct app_ask *a, rv_buf *out, rv_err **err)
{
    json_object *payload = NULL;

    if (!json_object_object_get_ex(a->args, "payload", &payload)) {
        rv_buf_puts(out, "{}");
        return rv_buf_check(out, "payload", err);
    }
    if (!json_object_is_type(payload, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"payload\" is not an object but %s", rv_json_type_text(payload));
    rv_json_write(payload, out);
    return rv_buf_check(out, "payload", err);
}
