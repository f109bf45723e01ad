/* reeve capability SDK: the only header a plugin includes. C11 or C++11, no engine symbols, JSON text across the
 * border. It includes the headers beside it, whose functions read JSON (capability_read.h), write it
 * (capability_write.h), and reply and ask (capability_call.h).
 *
 * A capability is one shared object that exports one function, rv_capability(), which returns a constant descriptor.
 * The descriptor lists entries: tools and their probes, hooks, policies, mocks, routing functions, prompts and
 * providers of models, each with a name, a specification as JSON text, and (but for prompts) a function. `reeve lint`
 * and `reeve inspect` therefore know everything a capability offers without calling its functions.
 *
 *     static int greet(void *self, struct rv_cap_call *call)
 *     {
 *         struct rv_cap_out out = RV_CAP_OUT;
 *         char name[401];
 *         if (rv_cap_str(rv_cap_get(call->args, "name"), name, sizeof name) < 0)
 *             return call->fail(call, "ValidationError", "name has to be a text");
 *         rv_cap_put_strf(&out, "text", "Hello, %s!", name);
 *         return rv_cap_reply(call, &out);
 *     }
 *     static const struct rv_cap_entry entries[] = {
 *         {RV_CAP_TOOL, "greet", RV_CAP_JSON({"description": "Say hello", "risk": "read_only"}), greet},
 *         RV_CAP_END,
 *     };
 *     RV_CAPABILITY(.name = "hello", .version = "1.0.0", .description = "A greeting", .entries = entries)
 *
 * Rules: no threads that outlive a call, except for calls that are answered later, and close() ends those; calls may
 * come from several threads at once; keep state in *self, never in globals; strings of the call are valid until the
 * function returns; the host copies what reply() and fail() are given.
 *
 * An entry whose specification says "blocking": false never waits (for a disk, the network, a lock that is held for
 * long) and returns within a millisecond. The engine may call it on the thread that serves all runs, which saves two
 * switches of threads. The engine logs `call.blocked_loop` for such an entry that blocks.
 *
 * A call can be answered later: its function takes a ticket, returns RV_CAP_LATER, and frees the thread that it was
 * called on. Any thread of the plugin then ends the call, by the ticket:
 *
 *     static int fetch(void *self, struct rv_cap_call *call)
 *     {
 *         uint64_t ticket = RV_CAP_HAS(call, later) ? call->later(call) : 0;
 *         if (ticket == 0) // this host, or this call, wants its answer now
 *             return call->reply(call, fetch_now(call->args));
 *         queue_add(self, ticket, call->args); // copied: the texts of the call end with the function
 *         return RV_CAP_LATER;
 *     }
 *     // on another thread, with the host that open() was given
 *     host->late_reply(ticket, "{\"text\": \"hello\"}");
 *
 * The deadline of the call goes on; late_cancelled() tells when the answer is not wanted any more. A plugin answers
 * each ticket once, that of an unwanted answer too. An engine refuses later() (0) for providers, with `isolation:
 * process`, and while the plugin has 1,024 tickets that it has not answered.
 *
 * A call can ask the engine: for what is at an address, for a task to be queued, ... An entry says in its specification
 * which services it asks, and is denied all others:
 *
 *     {RV_CAP_TOOL, "weather", RV_CAP_JSON({"risk": "read_only", "services": ["http.get"]}), weather},
 *
 *     struct rv_cap_out what = RV_CAP_OUT;
 *     const char *answer;
 *     rv_cap_put_str(&what, "url", "https://example.org/");
 *     if (rv_cap_ask(call, "http.get", &what, &answer) != 0)
 *         return rv_cap_fail_asked(call, answer);
 *     return call->reply(call, answer);
 *
 * docs/reference/sdk.md lists the services. An ask is a part of the call: it has the tenant, the user and the session
 * of the call, no journal has it, and it happens again when the engine makes the call again.
 *
 * ABI log
 *   Each row is what a newer header has, and what an older engine says to it; tests/abi keeps the headers.
 *   1.01  first version
 *   1.02  RV_CAP_PROBE: "there is no kind 7"
 *   1.03  RV_CAP_PROVIDER (kind 8), emit() of the call: every engine that knows kind 8 has both
 *   1.04  `context` of the call: its structure is smaller
 *   1.05  RV_CAP_AGENT: "there is no kind 9"
 *         "blocking" in specifications: it does not know the key
 *         hooks around calls: it does not know the keys of the pipeline
 *   1.06  later() of the call, late_reply(), late_fail(), late_cancelled() of the host: its structures are smaller
 *         "requires_confirmation" of tools: it does not know the key; question and show of policies: it ignores them
 *   1.07  attachments(), replace_attachments() of the call: its structure is smaller
 *   1.08  RV_CAP_SUBSCRIBER: "there is no kind 10"
 *   1.09  ask(), fail_as_asked() of the call: its structure is smaller; "services": it does not know the key
 *   1.10  progress() of the call: its structure is smaller
 */
#ifndef RV_CAPABILITY_H
#define RV_CAPABILITY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RV_CAP_ABI 1 /* changes when a plugin built for another number could not work: see the ABI log above */

/* JSON text without escaping: RV_CAP_JSON({"type": "object"}). Commas and quotes are fine; no comments inside. */
#define RV_CAP_JSON(...) #__VA_ARGS__

enum rv_cap_kind {
    /* args: the parameters, an object. reply: any JSON object (normalised by the engine), or fail().
     * spec: description, risk (read_only write destructive low medium high critical), category, effect (safe idempotent
     *       non_idempotent), timeout_ms, input_schema, output_schema, blocking, requires_confirmation (true, or
     *       {question: "Delete {{path}}?", show: "path"}: a person approves each call; show names an argument) */
    RV_CAP_TOOL = 1,
    /* args: {hook: "pre_process"|"post_process", stage, visit, envelope, output (post only)}.
     * reply: {} for "no change", or any of {envelope: {partial state}, output: {...} (post only)}; another member is an
     *        error. fail() fails the stage.
     * Around calls: {hook: "before_model"|"after_model"|"before_tool"|"after_tool", stage, visit, envelope, and
     * request, reply, or tool, step_id, arguments, result or error}. reply: {action: "continue"}, or with one more
     * member {action: "replace", request|reply|arguments|result}, {action: "answer", reply|result} (before a call),
     * {action: "block", reason}; docs/reference/sdk.md describes them.
     * spec: description, sees (list of envelope parts that are sent: "raw_input", "outputs", "outputs.plan",
     * "metadata", "state", "iteration", "interrupt", ...; left out: all), timeout_ms */
    RV_CAP_HOOK = 2,
    /* args: {stage, envelope, output}. reply: {decision: "allow"|"deny"|"confirm", reason, message}; with "confirm"
     * also question (in place of message) and show (any value: what the person is shown). spec as hook */
    RV_CAP_POLICY = 3,
    /* args: {stage, visit, envelope}. reply: the stage's output object. spec as hook */
    RV_CAP_MOCK = 4,
    /* args: {stage, failed, output, envelope}. reply: {next: "stage"}, {terminate: "why"} or {break: "why"}. spec as
       hook */
    RV_CAP_ROUTE = 5,
    /* no function. spec: {description, text: "template with {{names}}"} */
    RV_CAP_PROMPT = 6,
    /* A probe answers whether a call of a tool happened. It has the name of a tool of the same capability. The engine
     * asks it after a crash, when the call with call->idempotency_key had begun and its outcome is unknown. A probe
     * changes nothing and may be asked again.
     * args: {key, arguments (as the tool was sent them), stage, started_at? (when the call was made, RFC 3339)}.
     * reply: {happened: true, result: {what the tool would have replied}}, {happened: false}, or {} for "cannot tell";
     *        anything else is an error. An error, or fail(), counts as "cannot tell".
     * spec: description, timeout_ms */
    RV_CAP_PROBE = 7,
    /* Answers for models: `model: mycap.local:some-model` asks provider "local" of capability "mycap".
     * args: {role, provider, model, system?, history?, prompt, turns?, tools?, tool_choice?, output?, options,
     *       output_mode}; docs/reference/sdk.md describes it. emit() may hand out pieces while the answer is made.
     * reply: {text?, tool_calls?: [{id?, name, arguments (text or object)}], finish_reason?, usage?: {input_tokens?,
     *        output_tokens?, cached_tokens?, reasoning_tokens?}}; text or tool_calls must be there, another member is
     * an error. text is the whole answer, whether or not pieces were handed out. fail(): the type is one of
     * rate_limited overloaded timeout connection protocol bad_request auth context_too_long content_filter; anything
     * else counts as protocol. spec: description, timeout_ms */
    RV_CAP_PROVIDER = 8,
    /* no function. spec: an agent document, YAML or JSON, whose `name` is the entry's name with '-' for '_' */
    RV_CAP_AGENT = 9,
    /* Told what happens in each run. args: one event, as docs/reference/events.md describes them. reply: {}; the engine
     * does not look at it. Events come in order and one at a time, on threads of their own: no run waits for them, but
     * one that is over waits up to five seconds. When more than 1,024 wait, or five in a row of one type fail, some are
     * left out. spec: description, events (list of types; left out: all), timeout_ms (default 5000), blocking */
    RV_CAP_SUBSCRIBER = 10,
};

/* An image or a file of a request to a model; texts that are absent are "". data is base64. Borrowed, with
 * its texts, from the side that hands it over, until that call returns. */
struct rv_cap_attachment {
    const char *type; /* "image" or "file" */
    const char *url, *data, *media_type, *name;
};
#define RV_CAP_MAX_ATTACHMENTS 32 /* of one request: as RV_LLM_MAX_ATTACHMENTS of the host, which says so */

/* Owned by the host, with all its texts; borrowed by the plugin until the function of the entry returns. */
struct rv_cap_call {
    uint32_t size;              /* sizeof of the host's struct: fields beyond it do not exist */
    const char *name;           /* the entry's name */
    const char *args;           /* JSON text, NUL-terminated */
    const char *run_id, *stage; /* where the call comes from; "" outside a run */
    const char *user_id, *session_id;
    const char *idempotency_key; /* the same for every attempt of one effect; "" when there is none */
    int64_t timeout_ms;          /* left when the call began; <= 0: none */
    void *host;                  /* opaque */
    /** Nonzero once the answer is not wanted any more (deadline passed, run cancelled). Cheap; poll it in long work. */
    int (*cancelled)(const struct rv_cap_call *call);
    /** Hand over the answer: NUL-terminated JSON, copied. Call it once. Returns 0, or nonzero if it was refused (too
     *  large); return that value. */
    int (*reply)(struct rv_cap_call *call, const char *json);
    /** Fail: type such as "NotFoundError" "ValidationError" "ExecutionError" "TimeoutError", text for people. Returns
     * nonzero: `return call->fail(call, ...)`. */
    int (*fail)(struct rv_cap_call *call, const char *type, const char *message);
    /** Write to the host's log; level 0 debug .. 3 error. */
    void (*log)(const struct rv_cap_call *call, int level, const char *message);
    /** Providers: hand out a piece of the answer while it is made: {"text": "..."} or {"thinking": "..."}. Copied.
     * Returns nonzero when no more is wanted: end then. Before reply() or fail(), all pieces at most RV_CAP_MAX_REPLY;
     * anything else fails the call. In other entries it only says that no more is wanted. Older hosts: only there if
     * `size` says so. */
    int (*emit)(struct rv_cap_call *call, const char *json);
    /** Who asks, in which conversation, by which agent: {user_id?, tenant_id, session_id?, agent_schema_uri?,
     * client_id?, is_eval, ...}; "{}" outside a conversation. Older hosts: only there if `size` says so. */
    const char *context;
    /** A ticket to answer this call later: return RV_CAP_LATER then, without reply() or fail(). 0: answer now. Older
     * hosts: only there if `size` says so. */
    uint64_t (*later)(struct rv_cap_call *call);
    /** Hooks before_model: the images and files of the request, *n of them, at most RV_CAP_MAX_ATTACHMENTS; they live
     * until the function returns. NULL: there are none. Older hosts: only there if `size` says so. */
    const struct rv_cap_attachment *(*attachments)(struct rv_cap_call *call, uint32_t *n);
    /** Hooks before_model: reply() with {action: "replace", request: {attachments: items}}. An item that equals one of
     * attachments(), pointer for pointer, stands for it; NULL texts are absent. As reply(); also refused if n is more
     * than RV_CAP_MAX_ATTACHMENTS. Older hosts: only there if `size` says so. */
    int (*replace_attachments)(struct rv_cap_call *call, const struct rv_cap_attachment *items, uint32_t n);
    /** Ask a service of the engine and wait for the answer; args is a JSON object, NULL for {}. Returns 0, and *answer
     * is a JSON object; else nonzero, and *answer is {"type": "NotFoundError", "message": "..."}. Either lives until
     * the function of the entry returns. Only on the thread of that function, before reply() or fail(), at most
     * RV_CAP_MAX_ASKS times. Older hosts: only there if `size` says so. */
    int (*ask)(struct rv_cap_call *call, const char *service, const char *args, const char **answer);
    /** Fail as the last ask did that failed: `return call->fail_as_asked(call)`. */
    int (*fail_as_asked)(struct rv_cap_call *call);
    /** Tools: how far the call is: `done` of `total` (0: not known), and a text for people or NULL. Copied; people see
     * some of many. On the thread of the function, before reply() or fail(). Returns nonzero once the answer is not
     * wanted any more. Older hosts: only there if `size` says so. */
    int (*progress)(struct rv_cap_call *call, double done, double total, const char *text);
};
#define RV_CAP_MAX_ASKS  1000        /* of one call: a plugin that asks in a circle must end */
#define RV_CAP_MAX_ASKED (32u << 20) /* bytes of all answers of one call: in memory until it ends; more is refused */
#define RV_CAP_LATER     0x1a7e      /* what a function returns that answers later */
/* Does a structure of the host have that member, for hosts that are older than this header? */
#define RV_CAP_HAS(s, member) ((s)->size >= (uint32_t)((const char *)(&(s)->member + 1) - (const char *)(s)))

typedef int (*rv_cap_fn)(void *self, struct rv_cap_call *call);

/* Its texts are owned by the plugin: they live, unchanged, until close() returns. */
struct rv_cap_entry {
    int32_t kind;     /* enum rv_cap_kind; 0 ends the list */
    const char *name; /* [a-z][a-z0-9_]*, unique within its kind; tools are known by it alone, probes too; the rest as
                         "capability.name" */
    const char *spec; /* JSON object text */
    rv_cap_fn fn;     /* NULL for prompts only */
};
#define RV_CAP_END                                                                                                     \
    {                                                                                                                  \
        0, 0, 0, 0                                                                                                     \
    }
#define RV_CAP_MAX_ENTRIES 1024       /* of one capability: an array without RV_CAP_END must end */
#define RV_CAP_MAX_REPLY   (8u << 20) /* bytes of one answer: as any JSON text that a host reads */

/* Owned by the host, with its texts; borrowed by the plugin until close() returns. */
struct rv_cap_host {
    uint32_t size, abi;
    const char *engine_version;
    const char *base_dir; /* folder of the pipeline file: what relative paths in the configuration start from */
    /* For calls that are answered later, by their ticket; any thread. Older hosts: only there if `size` says so. */
    /** As reply() and fail() of the call. Returns nonzero when the call does not wait any more: its deadline has
     * passed, its run has ended, or it was answered before. */
    int (*late_reply)(uint64_t ticket, const char *json);
    int (*late_fail)(uint64_t ticket, const char *type, const char *message);
    /** Nonzero once the answer is not wanted any more. */
    int (*late_cancelled)(uint64_t ticket);
};

/* The plugin owns it with all that it points to: static, as a rule; the host uses it until close() returns. */
struct rv_cap_desc {
    uint32_t size;       /* sizeof(struct rv_cap_desc) as the plugin was built */
    uint32_t abi;        /* RV_CAP_ABI as the plugin was built */
    uint32_t entry_size; /* sizeof(struct rv_cap_entry) as the plugin was built */
    const char *name;    /* [a-z][a-z0-9_-]*; must match the name it is loaded by */
    const char *version, *description;
    const char *config_schema;          /* JSON Schema of the configuration; NULL: takes none */
    const struct rv_cap_entry *entries; /* ends with RV_CAP_END */
    /** Optional. config is JSON text ("{}" when there is none). Set *self; on failure return nonzero and write why into
     * error. */
    int (*open)(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t error_size);
    void (*close)(void *self); /* optional; no call is running then */
};

#if defined(__GNUC__)
#define RV_CAP_EXPORT __attribute__((visibility("default")))
#else
#define RV_CAP_EXPORT
#endif

/** The one exported symbol. */
RV_CAP_EXPORT const struct rv_cap_desc *rv_capability(void);

/* Define it: RV_CAPABILITY(.name = "hello", .entries = entries). In C++, which has no such initialisers before C++20:
 * RV_CAPABILITY_SET(desc.name = "hello"; desc.entries = entries) */
#ifdef __cplusplus
#define RV_CAPABILITY_SET(...)                                                                                         \
    RV_CAP_EXPORT const struct rv_cap_desc *rv_capability(void)                                                        \
    {                                                                                                                  \
        static const struct rv_cap_desc made = []() {                                                                  \
            struct rv_cap_desc desc = rv_cap_desc();                                                                   \
            desc.size = sizeof(struct rv_cap_desc);                                                                    \
            desc.abi = RV_CAP_ABI;                                                                                     \
            desc.entry_size = sizeof(struct rv_cap_entry);                                                             \
            __VA_ARGS__;                                                                                               \
            return desc;                                                                                               \
        }();                                                                                                           \
        return &made;                                                                                                  \
    }
#endif
#define RV_CAPABILITY(...)                                                                                             \
    RV_CAP_EXPORT const struct rv_cap_desc *rv_capability(void)                                                        \
    {                                                                                                                  \
        static const struct rv_cap_desc desc = {.size = sizeof(struct rv_cap_desc),                                    \
                                                .abi = RV_CAP_ABI,                                                     \
                                                .entry_size = sizeof(struct rv_cap_entry),                             \
                                                __VA_ARGS__};                                                          \
        return &desc;                                                                                                  \
    }

#ifdef __cplusplus
}
#endif

#include "capability_call.h"

#endif
