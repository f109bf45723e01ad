/* Single steps of a run, for tests that say what happens. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/journal/live.h"

void live_must_say(int rc, int want, rv_err **err, const char *text)
{
    char *said = rv_kit_err_take(*err);

    *err = NULL;
    ck_assert_msg(rc == want && strstr(said, text), "%d: %s\nwanted %d: %s", rc, said, want, text);
    free(said);
}

void live_start(struct live *l)
{
    const struct rv_event ev = {.kind = RV_EVENT_START, .now_us = l->now_us};
    ck_assert_int_eq(live_step(l, &ev, NULL), 0);
}

int live_reply(struct live *l, const char *text, rv_err **err)
{
    const struct rv_event ev = {.kind = l->calls[0].kind == RV_EFFECT_CALL_LLM    ? RV_EVENT_LLM_DONE
                                        : l->calls[0].kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE
                                                                                  : RV_EVENT_HOOK_DONE,
                                .now_us = ++l->now_us,
                                .call_id = l->calls[0].id,
                                .reply = rv_str_of(text)};
    return live_step(l, &ev, err);
}
