/* The last events of a test's run, for people who look for why it failed. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/testing/testing_internal.h"

#define MAX_KEPT_BYTES ((size_t)64 << 10) /* of one event; of a longer one only its type is told */

void app_test_recent_fini(struct rv_test_recent *recent)
{
    for (size_t i = 0; i < RV_TEST_RECENT; i++)
        free(recent->lines[i]);
    *recent = (struct rv_test_recent){0};
}

void app_test_recent_note(struct rv_test_recent *recent, const struct rv_effect *e, rv_str line)
{
    char **slot = &recent->lines[recent->n++ % RV_TEST_RECENT];

    free(*slot);
    *slot = line.len <= MAX_KEPT_BYTES ? rv_str_dup(line) : rv_str_dup(rv_str_of(rv_emit_text(e->emit)));
}

/* `stage_completed act: status error, error_type ToolError` */
static void describe(json_object *event, rv_buf *b)
{
    static const char *const shown[] = {"tool", "role", "model",   "status",     "outcome", "reason",
                                        "to",   "join", "attempt", "error_type", "error",   "question"};
    const char *stage = NULL, *text = NULL;
    bool is_first = true;

    const char *type = rv_json_text_or(event, "type", "");
    rv_buf_puts(b, type);
    if (rv_json_get_text(event, "stage", &stage))
        rv_buf_printf(b, " %s", stage);
    for (size_t i = 0; i < RV_COUNT(shown); i++) {
        if (!rv_json_get_text(event, shown[i], &text))
            continue;
        rv_str head = rv_utf8_cut(rv_str_of(text), 120);
        rv_buf_printf(b, "%s%s %.*s%s", is_first ? ": " : ", ", shown[i], RV_STR_ARG(head),
                      head.len < strlen(text) ? "..." : "");
        is_first = false;
    }
}

int app_test_recent_list(const struct rv_test_recent *recent, json_object *list, rv_err **err)
{
    size_t first = recent->n > RV_TEST_RECENT ? recent->n - RV_TEST_RECENT : 0;
    int rc = 0;

    for (size_t i = first; rc == 0 && i < recent->n; i++) {
        const char *line = recent->lines[i % RV_TEST_RECENT];
        json_object *event = NULL;
        rv_buf text = RV_BUF_INIT(MAX_KEPT_BYTES);
        if (line && line[0] == '{' &&
            rv_json_parse(rv_str_of(line), NULL, &event,
                          RV_CODE_ONLY("an event that cannot be read is listed as its line")) == 0)
            describe(event, &text);
        else
            rv_buf_puts(&text, line ? line : "");
        rc = rv_buf_check(&text, "event", err);
        if (rc == 0)
            rc = rv_json_push_take(list, json_object_new_string(rv_buf_cstr(&text)), err);
        json_object_put(event);
        rv_buf_fini(&text);
    }
    return rc;
}
