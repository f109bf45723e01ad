/* The check of a plugin's reply: whatever bytes come, the answer is "one JSON object" or an error, and what is accepted
 * is accepted by the strict reader again. */
#include "coreengine/plugin/plugin_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rv_str text = {(const char *)data, size};
    rv_err *err = NULL;
    json_object *value = NULL;
    int rc = rv_plugin_check_reply(RV_NAME_TOOL, text, &err), as_probe;

    if ((rc == 0) != (err == NULL))
        abort();
    if (rc == 0 && (rv_json_parse(text, NULL, &value, NULL) < 0 || !json_object_is_type(value, json_type_object)))
        abort();
    if (rc < 0 && rc != RV_E_PLUGIN && rc != RV_E_NOMEM)
        abort();
    as_probe = rv_plugin_check_reply(RV_NAME_PROBE, text, NULL); /* says less, never more */
    if (as_probe == 0 && (rc != 0 || json_object_object_length(value) > 2))
        abort();
    json_object_put(value);
    rv_err_free(err);
    return 0;
}
