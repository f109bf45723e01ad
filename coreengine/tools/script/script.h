/* Scripts: what stands in for models, stages, tools, hooks and people, so that a pipeline runs without any of them.
 *
 * A script is a YAML map {models, stages, tools, hooks, answers, repeat}. All but the last two are maps from a stage,
 * tool or hook to a list of entries, one per call, the last one repeating (unless `repeat: false`); or one flat list
 * whose entries carry matchers (stage, tool, hook, visit, index, branch, contains). A call that nothing matches is an
 * error that names stage, visit and the head of the prompt. Reading is strict and keeps places. Used by one thread. */
#ifndef RV_SCRIPT_H
#define RV_SCRIPT_H

#include "coreengine/base/base.h"
#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/tools.h"

typedef struct rv_script rv_script;

/** Read a file, or a node (of a test in a pipeline; borrowed for the script's life). Faults become findings; *out may
 * be NULL then. */
RV_MUST_CHECK int rv_script_read(const char *path, rv_findings *findings, rv_script **out, rv_err **err);
RV_MUST_CHECK int rv_script_read_node(const struct rv_node *node, rv_findings *findings, rv_script **out, rv_err **err);
/** The same from text; `name` stands for the file in messages. */
RV_MUST_CHECK int rv_script_parse(rv_str text, const char *name, rv_findings *findings, rv_script **out, rv_err **err);
void rv_script_free(rv_script *s);
/** What rv_script_parse() makes the same script from: the text it was read from, byte for byte; of a node, the node as
 * JSON (entries then have other places). Appended to text; *name is borrowed. */
RV_MUST_CHECK int rv_script_write_source(const rv_script *s, const char **name, rv_buf *text, rv_err **err);
/** JSON as a script may have it: characters that YAML would read otherwise are escaped. */
void rv_script_add_json(rv_str json, rv_buf *out);
/** Names of stages and tools in the script that the pipeline does not have: findings. */
void rv_script_check(const rv_script *s, const struct rv_pipeline *p, rv_findings *findings);

/** Which stages the script answers for as a whole (its `stages`); flags[0..n_agents) are set. */
void rv_script_mark_stages(const rv_script *s, const struct rv_pipeline *p, bool *flags);
/** The same of stages inside of stages: *out is a list of their names, as "sub/inner", which is the caller's; NULL:
 * none is there. RV_E_NOMEM. */
RV_MUST_CHECK int rv_script_find_inner_stages(const rv_script *s, const struct rv_pipeline *p, json_object **out,
                                              rv_err **err);
/** Tells whether its `stages` have an entry for that name. */
bool rv_script_has_stage(const rv_script *s, rv_str name);
bool rv_script_has_tool(const rv_script *s, rv_str tool);
/** Does it answer for that hook ("capability.name") where that stage calls it? Of a hook whose entries are all for
 * other stages the capability's own is called. */
bool rv_script_has_hook(const rv_script *s, rv_str hook, const char *stage);
bool rv_script_has_models(const rv_script *s); /* it answers for models at all */
/** From now on models that have a provider are not played, as if the script said nothing of models; false: they are. */
void rv_script_leave_models(rv_script *s, bool leaves);
/** The tools it answers for, sorted; borrowed. */
const char *const *rv_script_tool_names(const rv_script *s, size_t *n);
/** The definition of one of them, borrowed; NULL: it answers for no such tool. */
const struct rv_tool_info *rv_script_find_tool(const rv_script *s, rv_str name);
/** The catalog `under`, with the script's own tools added (declared risk, schema; read_only and safe when nothing is
 * declared). A tool that both have keeps the definition of `under`. The result borrows both. */
struct rv_catalog rv_script_catalog(rv_script *s, const struct rv_catalog *under);

/** The script as a source that stands in for those who have its tools; borrows s. Its calls end at once;
 * RV_E_NOT_FOUND: no entry answers the call. */
struct rv_tool_source rv_script_tools(rv_script *s);

#define RV_SCRIPT_MAX_DELAY_MS 86400000 /* a day: no person waits longer for a test */
enum rv_script_kind { RV_SCRIPT_MODEL, RV_SCRIPT_STAGE, RV_SCRIPT_TOOL, RV_SCRIPT_HOOK, RV_N_SCRIPT_KINDS };
/* Texts are borrowed for the call. */
struct rv_script_call {
    enum rv_script_kind kind;
    const char *stage;   /* of an inner pipeline: "sub/inner" */
    const char *tool;    /* TOOL, HOOK: its name */
    int64_t visit;       /* 1-based, of the stage */
    int64_t index;       /* of the element of a list, from 0; -1: not in a list */
    rv_str branch;       /* first stage of the branch of a group; ptr NULL: the main branch */
    const char *request; /* MODEL: rv_script_request_make_key(), needed if rv_script_knows_requests(); else NULL */
    rv_str text; /* for `contains`. MODEL: the prompt and the contents of the turns after it; else the arguments */
};
struct rv_script_reply {
    bool failed;
    const char *error_type; /* failed: "LLMError", "TimeoutError", ...; borrowed */
    const char *error;      /* failed: text; borrowed */
    bool retryable;
    int64_t delay_ms;        /* before the answer; not used when there are deltas */
    rv_buf body;             /* MODEL: the text, of a failure what came before it; TOOL, HOOK: result JSON; STAGE:
                                {output, raise?} */
    struct rv_script_delta { /* MODEL given as chunks, with the wait before each; borrowed; NULL: whole */
        int64_t delay_ms;
        bool is_thinking; /* not part of body */
        rv_str text;      /* empty: a wait and nothing else */
    } * deltas;
    size_t n_deltas;
    struct rv_llm_answer answer; /* MODEL: what the entry says; times are 0. Views are borrowed */
};
/** The next answer to such a call. RV_E_NOT_FOUND: nothing matches or the list ran dry; the text says which call. */
RV_MUST_CHECK int rv_script_next(rv_script *s, const struct rv_script_call *call, struct rv_script_reply *out,
                                 rv_err **err);
/** The matcher `request` of a model call: what tells a request, and the model that is asked, from all others. */
void rv_script_request_make_key(const struct rv_pipeline *p, const char *role, rv_str request, char out[RV_HASH_MAX]);
bool rv_script_knows_requests(const rv_script *s); /* an entry has that matcher */
/** No entry of its `stages` has the matcher `contains`: they are not shown what the run has so far. NULL: false. */
bool rv_script_is_blind(const rv_script *s);
/** How many calls had no entry since the script was read or rewound. */
size_t rv_script_n_holes(const rv_script *s);
void rv_script_reply_fini(struct rv_script_reply *r);
/** A reply to a tool call as its caller takes it; takes the body of reply. */
struct rv_tool_reply rv_script_tool_reply(struct rv_script_reply *reply);

/** The run waits with these questions: the next answer is one of theirs. asked_by: the stage of the pending one, where
 * neither it nor its data says which; may be NULL. RV_E_NOMEM. */
RV_MUST_CHECK int rv_script_on_wait(rv_script *s, const rv_envelope *env, const char *asked_by, rv_err **err);
/** The next answer to an interrupt: the first that is left and names no stage, or that of a question that waits; then
 * it has the id of that one. False: none fits. *delay_ms may be NULL. Borrowed. */
bool rv_script_answer(rv_script *s, struct rv_response *out, int64_t *delay_ms);
/** Start from the first entries again. */
void rv_script_rewind(rv_script *s);
/** The position in the script, as JSON for rv_script_set_position() (docs/reference/journal.md). *out is yours; NULL:
 * no entry has been handed out. */
RV_MUST_CHECK int rv_script_build_position(const rv_script *s, json_object **out, rv_err **err);
/** Go on where a script of the same text stood; NULL: from the first entries. RV_E_INVALID: it does not fit, and the
 * script stands at its first entries. */
RV_MUST_CHECK int rv_script_set_position(rv_script *s, json_object *position, rv_err **err);
/** JSON Schema of the script format. */
void rv_script_write_schema(rv_jw *w);

#endif
