/* Words of messages, from the lists in messages.h. */
#include "coreengine/conversation/messages.h"

#define TEXT(n, t, m) t,
static const char *const types[] = {RV_MESSAGE_TYPES(TEXT)};
static const char *const statuses[] = {RV_TURN_STATUSES(TEXT)};
static const char *const policies[] = {RV_REPLAY_POLICIES(TEXT)};

static int find(const char *const *words, size_t n, rv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (rv_str_is(text, words[i]))
            return (int)i;
    return RV_UNSET;
}

const char *rv_message_type_text(enum rv_message_type type)
{
    return types[type];
}

int rv_message_type_of(rv_str text)
{
    return find(types, RV_COUNT(types), text);
}

const char *rv_turn_status_text(enum rv_turn_status status)
{
    return statuses[status];
}

int rv_turn_status_of(rv_str text)
{
    return find(statuses, RV_COUNT(statuses), text);
}

const char *rv_replay_policy_text(enum rv_replay_policy policy)
{
    return policies[policy];
}

int rv_replay_policy_of(rv_str text)
{
    return find(policies, RV_COUNT(policies), text);
}
