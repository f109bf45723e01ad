/* The bound on the tokens of one request: which of its messages are left out until it fits.
 *
 * The oldest go first: messages of the history, then rounds of this visit. System prompt, instructions, examples,
 * the prompt with its attachments, and the newest round always stay. A tool call and its results are left out together,
 * since providers refuse the one without the other. The estimate is that of histories: a quarter of the code points of
 * each text. */
#include "coreengine/agent/agent_internal.h"
#include "coreengine/conversation/conversation.h"

static int64_t tokens_in(json_object *object, const char *key)
{
    json_object *text = NULL;

    return json_object_object_get_ex(object, key, &text) ? rv_tokens_estimate(rv_json_str(text)) : 0;
}

static int64_t tokens_of(json_object *message)
{
    json_object *calls = rv_json_get_arr(message, "tool_calls");
    int64_t tokens = tokens_in(message, "content");

    for (size_t i = 0; calls && i < json_object_array_length(calls); i++)
        tokens += tokens_in(json_object_array_get_idx(calls, i), "arguments");
    return tokens;
}

static bool has_role(json_object *messages, size_t i, const char *role)
{
    const char *has = NULL;

    return rv_json_get_text(json_object_array_get_idx(messages, i), "role", &has) && rv_str_is(rv_str_of(has), role);
}

/* The end of what is left out together with the message at `from`: its results, and of a round whatever follows until
 * the model speaks again. */
static size_t end_of_unit(json_object *messages, size_t from, bool is_round)
{
    size_t n = json_object_array_length(messages), i = from + 1;

    while (i < n && (is_round ? !has_role(messages, i, "assistant") : has_role(messages, i, "tool")))
        i++;
    return i;
}

/* The first message of a list that stays; *tokens falls until it is within max. */
static size_t first_kept(json_object *messages, bool is_round, int64_t max, int64_t *tokens)
{
    size_t n = messages ? json_object_array_length(messages) : 0, from = 0;

    while (*tokens > max && from < n) {
        size_t end = end_of_unit(messages, from, is_round);
        if (is_round && end == n)
            break;
        for (; from < end; from++)
            *tokens -= tokens_of(json_object_array_get_idx(messages, from));
    }
    return from;
}

/* In place of the list under key, the list from that message on. */
static int keep_from(json_object *request, const char *key, json_object *messages, size_t from, rv_err **err)
{
    json_object *kept = json_object_new_array();
    int rc = kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "leave messages out of a request");

    for (size_t i = from; rc == 0 && i < json_object_array_length(messages); i++)
        rc = rv_json_push_ref(kept, json_object_array_get_idx(messages, i), err);
    if (rc < 0) {
        json_object_put(kept);
        return rc;
    }
    if (json_object_array_length(kept) > 0)
        return rv_json_set_take(request, key, kept, err);
    json_object_put(kept);
    json_object_object_del(request, key);
    return 0;
}

int agent_context_bound(json_object *request, int64_t max, int64_t *tokens, int64_t *n_left_out, bool *fits,
                        rv_err **err)
{
    json_object *history = rv_json_get_arr(request, "history"), *turns = rv_json_get_arr(request, "turns"),
                *examples = rv_json_get_arr(request, "examples");
    static const char *const texts[] = {"system", "instructions", "prompt"};
    int64_t sum = *tokens;
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        sum += tokens_in(request, texts[i]);
    for (size_t i = 0; examples && i < json_object_array_length(examples); i++)
        sum += tokens_of(json_object_array_get_idx(examples, i));
    for (size_t i = 0; history && i < json_object_array_length(history); i++)
        sum += tokens_of(json_object_array_get_idx(history, i));
    for (size_t i = 0; turns && i < json_object_array_length(turns); i++)
        sum += tokens_of(json_object_array_get_idx(turns, i));
    size_t old = first_kept(history, false, max, &sum), rounds = first_kept(turns, true, max, &sum);
    *tokens = sum;
    *n_left_out = (int64_t)(old + rounds);
    *fits = sum <= max;
    if (*fits && old > 0)
        rc = keep_from(request, "history", history, old, err);
    if (rc == 0 && *fits && rounds > 0)
        rc = keep_from(request, "turns", turns, rounds, err);
    return rc;
}
