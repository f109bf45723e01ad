/* Pipelines of one stage that a program makes of an agent document. config.h includes this. */
#ifndef RV_AGENT_PIPELINE_H
#define RV_AGENT_PIPELINE_H

#include "coreengine/lang/lang.h"

#include <json-c/json.h>

struct rv_pipeline;

/* A pipeline of one stage, `agent: NAME`, that a program makes of an agent document: for a chat, or for an agent that
 * another one asks. Zeroed members: the document says it, else the default. What it points to is borrowed for the call.
 */
struct rv_agent_model_role {
    const char *role;
    const char *model; /* "provider:model"; "openai:" is put before a bare name */
    bool has_temperature;
    double temperature;
    int64_t max_tokens;
};
/* All but `of` is borrowed for the call. */
struct rv_agent_pipeline {
    const char *agent; /* its name, and that of the stage and the pipeline */
    rv_str document;
    const char *file;         /* stands for the pipeline in messages; NULL: the agent */
    const char *place;        /* of the document, in messages; NULL: the agent */
    bool no_session;          /* its rows are those of the call by which it was asked */
    int structured;           /* RV_UNSET: as the document says */
    int child_text;           /* enum rv_child_text; RV_UNSET: as the document says */
    const char *role;         /* of the stage, over the document's model; "" or NULL: none */
    const char *default_role; /* of a document that names no model; "" or NULL: "default" */
    bool has_temperature;     /* of the stage, over the document's */
    double temperature;
    int64_t max_tokens;
    json_object *client_tools;  /* key of the stage; NULL: none */
    bool requires_tool;         /* tool_choice: required */
    json_object *output_schema; /* of the stage, over the document's; NULL: none */
    const char *attachments;    /* an expression of the stage; NULL: none */
    bool has_seed;              /* of its model requests */
    int64_t seed;
    /** A pipeline whose models, prices, budget and execution it has: borrowed, so that pipeline outlives it. NULL: it
     *  has those below. */
    const struct rv_pipeline *of;
    const struct rv_agent_model_role *models;
    size_t n_models;
    const char *const *capabilities;
    size_t n_capabilities;
    int64_t max_llm_calls;
    int64_t agent_request_limit, agent_token_limit; /* of all its agents, where neither stage nor document says */
};
/** Make it, complete: read, bound to its document and checked. Faults are findings; *out is NULL or not sound then. */
RV_MUST_CHECK int rv_pipeline_build_agent(const struct rv_agent_pipeline *from, rv_findings *findings,
                                          struct rv_pipeline **out, rv_err **err);

/* An agent that another one asked: a pipeline of one stage, named like the agent. What it points to is borrowed for the
 * call. */
struct rv_delegate {
    const char *name;
    rv_str document;
    int structured;         /* RV_UNSET: as the document says */
    const char *model_role; /* of the asking stage: for a document that names no model */
    int child_text;         /* enum rv_child_text that the asking stage was given; RV_UNSET: none */
};
/** rv_pipeline_build_agent() below `of`. RV_E_INVALID: the document has faults (says the first, with its place). */
RV_MUST_CHECK int rv_pipeline_delegate(const struct rv_pipeline *of, const struct rv_delegate *d,
                                       struct rv_pipeline **out, rv_err **err);

#endif
