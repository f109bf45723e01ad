/* The table of routes: what the server answers. Routing, OpenAPI and the reference are made from it. */
#include <stdio.h>
#include <string.h>

#include "coreengine/server/body_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/mcp_internal.h"
#include "coreengine/server/page_internal.h"
#include "coreengine/server/view_internal.h"

#define CHAT_BODY RV_REQUEST_MAX_BYTES
#define MAX_NAMES 16  /* parameters of one route: the table has half as many */
#define MAX_QUERY 200 /* bytes of their names with blanks between them: the table has half as many */

#define PROBLEM RV_FAMILY_PROBLEM
#define P8      RV_FAMILY_P8 /* shorter in the table */
#define OPENAI  RV_FAMILY_OPENAI
#define R(m, p, s, f, w, b, sum, q, t, g, max)                                                                         \
    {                                                                                                                  \
        .method = RV_METHOD_##m, .path = (p), .scope = (s), .family = (f), .work = (w), .begin = (b),                  \
        .summary = (sum), .query = (q), .takes = (t), .gives = (g), .max_body = (max)                                  \
    }
#define S(name) RV_SCOPE_##name

/* Rows of a kind under a path of their own, by the handlers of resources.c. */
#define ROWS(kind, one, what, columns)                                                                                 \
    R(GET, "/" kind, S(DATA_READ), PROBLEM, srv_rows_list, NULL, what ", newest first",                                \
      "limit offset name tag" columns, NULL, "[" kind "]", 0),                                                         \
        R(POST, "/" kind, S(DATA_WRITE), PROBLEM, srv_rows_create, NULL, "a new " one, NULL, "+Row", "201 " kind, 0),  \
        R(GET, "/" kind "/{id}", S(DATA_READ), PROBLEM, srv_row_show, NULL, "one " one, NULL, NULL, kind, 0),          \
        R(PUT, "/" kind "/{id}", S(DATA_WRITE), PROBLEM, srv_row_change, NULL,                                         \
          "change it: columns that are not given stay", NULL, "+Row", kind, 0),                                        \
        R(PATCH, "/" kind "/{id}", S(DATA_WRITE), PROBLEM, srv_row_change, NULL, "the same", NULL, "+Row", kind, 0),   \
        R(DELETE, "/" kind "/{id}", S(DATA_WRITE), PROBLEM, srv_row_delete, NULL, "delete it", NULL, NULL, "Deleted",  \
          0)

/* The same without a way to make or to change one. */
#define ROWS_READ(kind, one, what, columns)                                                                            \
    R(GET, "/" kind, S(DATA_READ), PROBLEM, srv_rows_list, NULL, what ", newest first",                                \
      "limit offset name tag" columns, NULL, "[" kind "]", 0),                                                         \
        R(GET, "/" kind "/{id}", S(DATA_READ), PROBLEM, srv_row_show, NULL, "one " one, NULL, NULL, kind, 0)

/* takes: the name of a schema of describe.c, whose JSON the server reads. A member that it does not have is refused.
 * With "+" the body may have more: the handler judges them (columns of rows), or clients of OpenAI, p8 and REMLight
 * send what those servers pass over. With "-" the handler reads the body. gives: a type as answers.c writes them,
 * behind the status of a success, which is 200 where none stands. */
const struct srv_route srv_routes[] = {
    R(GET, "/", SRV_OPEN, PROBLEM, srv_page, NULL, "the page for people", NULL, NULL, "Page", 0),
    R(GET, "/page/{file}", SRV_OPEN, PROBLEM, srv_page, NULL, "a file of the page", NULL, NULL, "Page", 0),
    R(GET, "/page/views/{file}", SRV_OPEN, PROBLEM, srv_page, NULL, "a view of the page", NULL, NULL, "Page", 0),
    R(POST, "/login", SRV_LOGIN, PROBLEM, srv_login, NULL, "an API key becomes a cookie, for the page", NULL,
      "NewLogin", "LoggedIn", 0),
    R(GET, "/login", SRV_KNOWN, PROBLEM, srv_login_show, NULL, "who asks, and what they may do", NULL, NULL, "Login",
      0),
    R(POST, "/logout", SRV_LOGIN, PROBLEM, srv_logout, NULL, "the login of the cookie ends", NULL, NULL, "LoggedIn", 0),
    R(GET, "/healthz", SRV_OPEN, PROBLEM, srv_healthz, NULL, "the process lives", NULL, NULL, "Health", 0),
    R(GET, "/health", SRV_OPEN, PROBLEM, srv_healthz, NULL, "the same, where clients of p8 and REMLight ask", NULL,
      NULL, "Health", 0),
    R(GET, "/query/health", SRV_OPEN, PROBLEM, srv_healthz, NULL, "the same", NULL, NULL, "Health", 0),
    R(GET, "/readyz", SRV_ASKS, PROBLEM, srv_readyz, NULL, "it takes requests; 503 with the reasons why it does not",
      NULL, NULL, "Ready", 0),
    R(GET, "/openapi.json", SRV_OPEN, PROBLEM, srv_openapi, NULL, "this table, as OpenAPI 3.1", NULL, NULL, "OpenApi",
      0),
    R(GET, "/metrics", S(METRICS_READ), PROBLEM, srv_metrics, NULL,
      "what this process did, for Prometheus; OpenMetrics when `Accept` names it", NULL, NULL, "Metrics", 0),

    R(POST, "/chat/{chat_id}", S(CHAT), P8, srv_chat_agui, srv_chat_begin,
      "a turn of a session, as AG-UI events; `resume` answers a question", NULL, "-RunAgentInput", "Stream", CHAT_BODY),
    R(GET, "/chat/{chat_id}", S(CHAT), P8, srv_chat_stream, srv_rejoin_begin,
      "the turn that is under way, or that of X-Run-Id, behind the block that Last-Event-ID names; 204: there is none, "
      "or nothing follows",
      NULL, NULL, "Stream", 0),
    R(POST, "/v1/chat/completions", S(CHAT), OPENAI, srv_chat_openai, srv_chat_begin,
      "OpenAI Chat Completions; the model is an agent", NULL, "-ChatCompletion", "Completion", CHAT_BODY),
    R(POST, "/v1/responses", S(CHAT), OPENAI, srv_chat_responses, srv_chat_begin,
      "OpenAI Responses; the model is an agent", NULL, "-Response", "ResponseObject", CHAT_BODY),
    R(GET, "/v1/models", S(CHAT), OPENAI, srv_models, NULL, "the agents, as models", NULL, NULL, "Models", 0),
    R(GET, "/v1/models/{id}", S(CHAT), OPENAI, srv_model, NULL, "one of them", NULL, NULL, "Model", 0),
    R(POST, "/api/v1/chat/completions", S(CHAT), P8, srv_chat_remlight, srv_chat_begin,
      "REMLight: chunks with named events; a new session, or that of X-Session-Id", NULL, "-ChatCompletion", "Stream",
      CHAT_BODY),
    R(POST, "/api/v1/chat/completions/{session_id}", S(CHAT), P8, srv_chat_remlight, srv_chat_begin,
      "REMLight: a turn of that session", NULL, "-ChatCompletion", "Stream", CHAT_BODY),

    R(GET, "/models", S(CHAT), PROBLEM, srv_models_used, NULL,
      "REMLight: the models that the agents name, and the default one", NULL, NULL, "ModelsUsed", 0),
    R(GET, "/models/{id}", S(CHAT), PROBLEM, srv_models_used, NULL, "one of them", NULL, NULL, "ModelUsed", 0),
    R(GET, "/servers", S(RUNS_READ), PROBLEM, srv_tool_servers, NULL,
      "the servers of tools that the pipelines name; none of them is asked", "name", NULL, "[ToolServer]", 0),
    R(GET, "/mcp-tools", SRV_KNOWN, PROBLEM, srv_mcp_tools, NULL, "the tools that `/mcp` offers to the caller", NULL,
      NULL, "[McpTool]", 0),
    R(POST, "/mcp", SRV_KNOWN, PROBLEM, srv_mcp_post, srv_mcp_begin,
      "the Model Context Protocol: one message; a call that takes time is answered as events", NULL, "-McpMessage",
      "McpAnswer", RV_MCP_MAX_MESSAGE),
    R(DELETE, "/mcp", SRV_KNOWN, PROBLEM, srv_mcp_delete, NULL, "end the session of Mcp-Session-Id", NULL, NULL,
      "Deleted", 0),

    R(GET, "/pipelines", S(RUNS_READ), PROBLEM, srv_pipelines_list, NULL, "the names of the pipelines that may be run",
      NULL, NULL, "[text]", 0),
    R(GET, "/pipelines/{name}", S(RUNS_READ), PROBLEM, srv_pipeline_show, NULL,
      "one of them: its stages, its limits, its proved bounds, and a drawing as places and lines", NULL, NULL,
      "PipelineShown", 0),
    R(POST, "/runs", S(RUNS_WRITE), PROBLEM, srv_runs_post, srv_run_begin,
      "start a run of a pipeline: 202 at once, `wait` for its end, or `stream` its events; `deltas` keeps the pieces "
      "of "
      "its models' answers for those who follow it",
      NULL, "NewRun", "RunStarted", CHAT_BODY),
    R(GET, "/runs", S(RUNS_READ), PROBLEM, srv_runs_list, NULL, "runs, newest first", "limit status session pipeline",
      NULL, "[RunListed]", 0),
    R(GET, "/runs/{id}", S(RUNS_READ), PROBLEM, srv_run_show, NULL, "one run with its steps and questions", NULL, NULL,
      "RunShown", 0),
    R(GET, "/runs/{id}/events", S(RUNS_READ), PROBLEM, srv_run_events, srv_run_begin,
      "its events from any number on, also while it goes on; lines of JSON with Accept: application/x-ndjson; "
      "`deltas`: "
      "between them the pieces of its models' answers, of a run that was started with `deltas`",
      "from deltas", NULL, "Stream", 0),
    R(GET, "/runs/{id}/stream", S(CHAT), PROBLEM, srv_run_stream, srv_rejoin_begin,
      "the stream of a turn, behind the block that Last-Event-ID names; 204: nothing follows", NULL, NULL, "Stream", 0),
    R(POST, "/runs/{id}/cancel", S(RUNS_WRITE), PROBLEM, srv_run_cancel, NULL, "ask it to end", NULL, NULL,
      "202 CancelAsked", 0),
    R(POST, "/runs/{id}/answer", S(RUNS_WRITE), PROBLEM, srv_run_answer, NULL, "answer what it waits for", NULL,
      "Answer", "202 AnswerTaken", 0),
    R(POST, "/runs/{id}/fork", S(RUNS_WRITE), PROBLEM, srv_run_fork, NULL,
      "another run, from the state behind one of its steps", NULL, "Fork", "202 RunBegun", 0),
    R(GET, "/runs/{id}/graph", S(RUNS_READ), PROBLEM, srv_run_graph, NULL,
      "the drawing of its pipeline, the state of each stage, the moves between them", NULL, NULL, "RunGraph", 0),
    R(GET, "/runs/{id}/timeline", S(RUNS_READ), PROBLEM, srv_run_timeline, NULL,
      "when its steps and their calls were, and what they took: time, tokens, cost", "from limit", NULL, "RunTimeline",
      0),
    R(GET, "/runs/{id}/journal", S(RUNS_READ), PROBLEM, srv_run_journal, NULL,
      "the records of its journal, page by page", "from limit", NULL, "RunJournal", 0),
    R(POST, "/runs/{id}/replay", S(RUNS_READ), PROBLEM, srv_run_replay, NULL,
      "replay it from its journal alone: is the result identical?", NULL, NULL, "RunReplayed", 0),
    R(GET, "/runs/{id}/diff", S(RUNS_READ), PROBLEM, srv_run_diff, NULL, "where it and another run part", "with", NULL,
      "RunsCompared", 0),
    R(GET, "/interrupts", S(RUNS_READ), PROBLEM, srv_interrupts, NULL, "questions that runs wait with", "run session",
      NULL, "[Interrupt]", 0),

    R(GET, "/sessions", S(SESSIONS_READ), PROBLEM, srv_sessions_list, NULL, "sessions, last touched first",
      "limit offset agent name search", NULL, "[Session]", 0),
    R(GET, "/sessions/{id}", S(SESSIONS_READ), PROBLEM, srv_session_show, NULL, "one session", NULL, NULL, "Session",
      0),
    R(PATCH, "/sessions/{id}", S(SESSIONS_WRITE), PROBLEM, srv_session_change, NULL,
      "rename it, or change its metadata", NULL, "SessionChange", "Session", 0),
    R(DELETE, "/sessions/{id}", S(SESSIONS_WRITE), PROBLEM, srv_session_delete, NULL,
      "delete it; its runs are asked to end", NULL, NULL, "SessionDeleted", 0),
    R(GET, "/sessions/{id}/messages", S(SESSIONS_READ), PROBLEM, srv_session_messages, NULL, "its messages, in order",
      "limit from children", NULL, "[Message]", 0),
    R(GET, "/sessions/{id}/export", S(SESSIONS_READ), PROBLEM, srv_session_export, NULL,
      "the session with its messages, as a file", NULL, NULL, "SessionExport", 0),
    R(POST, "/sessions/{id}/clone", S(SESSIONS_WRITE), PROBLEM, srv_session_clone, NULL, "copy it", NULL,
      "+SessionClone", "201 SessionCloned", 0),

    R(GET, "/agents", S(AGENTS_READ), PROBLEM, srv_agents_list, NULL, "agents and where they come from", NULL, NULL,
      "[AgentListed]", 0),
    R(PUT, "/agents", S(AGENTS_WRITE), PROBLEM, srv_agent_put, NULL, "keep a document, as YAML or JSON", NULL,
      "-AgentDocument", "AgentKept", 0),
    R(GET, "/tools", S(AGENTS_READ), PROBLEM, srv_tools, NULL, "the tools that a document may name", NULL, NULL,
      "[Tool]", 0),
    R(POST, "/agents/validate", S(AGENTS_READ), PROBLEM, srv_agent_check, NULL,
      "what is wrong with a document; nothing is kept", NULL, "-AgentDocument", "AgentChecked", 0),
    R(GET, "/agents/{name}", S(AGENTS_READ), PROBLEM, srv_agent_show, NULL, "its document in the flat form", NULL, NULL,
      "AgentFlat", 0),
    R(GET, "/agents/{name}/content", S(AGENTS_READ), PROBLEM, srv_agent_content, NULL, "its document as it was written",
      NULL, NULL, "Text", 0),
    R(GET, "/agents/{name}/versions", S(AGENTS_READ), PROBLEM, srv_agent_versions, NULL, "what it was before", NULL,
      NULL, "[AgentVersion]", 0),
    R(DELETE, "/agents/{name}", S(AGENTS_WRITE), PROBLEM, srv_agent_delete, NULL, "delete it from the store", NULL,
      NULL, "Deleted", 0),

    R(POST, "/query", S(DATA_READ), P8, srv_query, NULL,
      "a query by its parts, or as text in `query` when there is no `mode`", NULL, "+Query", "[QueryRow]|QueryAnswer",
      0),
    R(POST, "/query/raw", S(DATA_READ), P8, srv_query_raw, NULL, "a query of the REM dialect, as text", NULL,
      "+RawQuery", "QueryAnswer", 0),
    R(GET, "/entities", S(DATA_READ), PROBLEM, srv_kinds, NULL, "the kinds of entities", NULL, NULL, "[Kind]", 0),
    R(GET, "/entities/{kind}", S(DATA_READ), PROBLEM, srv_entities_list, NULL, "rows of a kind, newest first",
      "limit offset name about tag", NULL, "[EntityRow]", 0),
    R(POST, "/entities/{kind}", S(DATA_WRITE), PROBLEM, srv_entities_put, NULL, "write a row; without an id a new one",
      NULL, "+Row", "EntityRow", 0),
    R(GET, "/entities/{kind}/{id}", S(DATA_READ), PROBLEM, srv_entity_show, NULL, "one row", NULL, NULL, "EntityRow",
      0),
    R(DELETE, "/entities/{kind}/{id}", S(DATA_WRITE), PROBLEM, srv_entity_delete, NULL, "delete it", NULL, NULL,
      "Deleted", 0),
    R(POST, "/feedback", S(DATA_WRITE), PROBLEM, srv_feedback, NULL, "what a person thinks of an answer", NULL,
      "Feedback", "feedback", 0),
    R(POST, "/scenarios/feedback", S(DATA_WRITE), PROBLEM, srv_feedback, NULL,
      "the same, as clients of REMLight write it", NULL, "Feedback", "feedback", 0),

    R(GET, "/tasks", S(TASKS_READ), PROBLEM, srv_tasks_list, NULL, "the queue, newest first", "limit status type", NULL,
      "[Task]", 0),
    R(GET, "/tasks/{id}", S(TASKS_READ), PROBLEM, srv_task_show, NULL, "one task with its events", NULL, NULL, "Task",
      0),
    R(POST, "/tasks/{id}/cancel", S(TASKS_WRITE), PROBLEM, srv_task_cancel, NULL, "cancel it", NULL, NULL, "Task", 0),
    R(POST, "/tasks/{id}/retry", S(TASKS_WRITE), PROBLEM, srv_task_retry, NULL, "try it again", NULL, NULL, "Task", 0),
    R(GET, "/schedules", S(TASKS_READ), PROBLEM, srv_schedules_list, NULL, "schedules", NULL, NULL, "[ScheduleShown]",
      0),
    R(GET, "/usage", S(USAGE_READ), PROBLEM, srv_usage, NULL, "what may be used and what was", NULL, NULL, "[UsageRow]",
      0),

    ROWS("scenarios", "scenario", "sessions that are kept under a name", " session_id agent_name status"),
    R(POST, "/scenarios/search", S(DATA_READ), PROBLEM, srv_rows_search, NULL,
      "scenarios by meaning, tags, columns, time", NULL, "+RowSearch", "ScenariosFound", 0),
    ROWS("collections", "collection", "groups of sessions", " status"),
    R(POST, "/collections/search", S(DATA_READ), PROBLEM, srv_rows_search, NULL,
      "collections by meaning, tags, columns, time", NULL, "+RowSearch", "CollectionsFound", 0),
    R(GET, "/collections/{id}/sessions", S(DATA_READ), PROBLEM, srv_collection_sessions, NULL,
      "its sessions, as they were put in", "limit offset", NULL, "[Session]", 0),
    R(POST, "/collections/{id}/sessions", S(DATA_WRITE), PROBLEM, srv_collection_add, NULL, "put a session in", NULL,
      "SessionIds", "CollectionChanged", 0),
    R(POST, "/collections/{id}/sessions/batch", S(DATA_WRITE), PROBLEM, srv_collection_add, NULL,
      "put many in: all or none", NULL, "SessionIds", "CollectionChanged", 0),
    R(POST, "/collections/{id}/sessions/from-query", S(DATA_WRITE), PROBLEM, srv_collection_add_found, NULL,
      "put those in that a search finds", NULL, "SessionQuery", "CollectionChanged", 0),
    R(DELETE, "/collections/{id}/sessions/{session_id}", S(DATA_WRITE), PROBLEM, srv_collection_remove, NULL,
      "take one out", NULL, NULL, "Deleted", 0),
    R(GET, "/collections/{id}/export", S(DATA_READ), PROBLEM, srv_collection_export, NULL,
      "it with its sessions and their messages, as a file", NULL, NULL, "CollectionExport", 0),
    ROWS("users", "profile", "profiles of users", " email"),
    ROWS_READ("feedback", "rating", "ratings of sessions and messages", " session_id message_id rating"),
    R(DELETE, "/feedback/{id}", S(DATA_WRITE), PROBLEM, srv_row_delete, NULL, "delete it", NULL, NULL, "Deleted", 0),
    ROWS_READ("moments", "moment", "moments", " moment_type category source_session_id"),
    R(POST, "/moments", S(DATA_WRITE), PROBLEM, srv_moment_post, NULL,
      "a moment with a session in which it can be talked about: `source_session_id`, or a new one", NULL, "+Row",
      "201 MomentMade", 0),
    R(PATCH, "/moments/{id}", S(DATA_WRITE), PROBLEM, srv_row_change, NULL, "change it", NULL, "+Row", "moments", 0),
    R(DELETE, "/moments/{id}", S(DATA_WRITE), PROBLEM, srv_row_delete, NULL, "delete it", NULL, NULL, "Deleted", 0),
    R(POST, "/moments/search", S(DATA_READ), PROBLEM, srv_rows_search, NULL, "moments by meaning, tags, columns, time",
      NULL, "+RowSearch", "MomentsFound", 0),
    R(GET, "/feed", S(DATA_READ), PROBLEM, srv_feed, NULL, "days with a summary of each and its moments, newest first",
      "before days future", NULL, "[Day|moments]", 0),
    R(POST, "/sessions/search", S(SESSIONS_READ), PROBLEM, srv_sessions_search, NULL,
      "sessions by meaning, name, agent, tags, time", NULL, "SessionSearch", "SessionsFound", 0),
    R(GET, "/sessions/{id}/timeline", S(SESSIONS_READ), PROBLEM, srv_session_timeline, NULL,
      "its messages and moments, in order", "limit", NULL, "[SessionEvent]", 0),
    R(GET, "/sessions/{id}/moments", S(SESSIONS_READ), PROBLEM, srv_session_moments, NULL, "its moments, newest first",
      "limit offset", NULL, "[moments]", 0),

    ROWS_READ("files", "file", "files that were read", " mime_type processing_status"),
    R(POST, "/files", S(DATA_WRITE), PROBLEM, srv_files_post, NULL,
      "texts, each kept as a file with its chunks; a text that is there already is passed over", NULL, "NewFiles",
      "201 [FileKept]", CHAT_BODY),
    R(DELETE, "/files/{id}", S(DATA_WRITE), PROBLEM, srv_file_delete, NULL, "delete it and its chunks", NULL, NULL,
      "Deleted", 0),
    R(GET, "/ontology/tree", S(DATA_READ), PROBLEM, srv_ontology_tree, NULL,
      "files that were read, by their folders: at most 10,000 from `offset` on, and whether there are more",
      "limit offset", NULL, "OntologyTree", 0),
    R(GET, "/ontology/content/{path}", S(DATA_READ), PROBLEM, srv_ontology_content, NULL,
      "one of them by its path, with %2F between folders", NULL, NULL, "OntologyPage", 0),
    R(POST, "/ontology/import", S(DATA_WRITE), PROBLEM, srv_files_post, NULL, "the same as POST /files", NULL,
      "+ImportedFiles", "201 [FileKept]", CHAT_BODY),

    R(GET, "/schemas", S(AGENTS_READ), P8, srv_rows_list, NULL, "declarations, newest first",
      "limit offset name tag kind", NULL, "[schemas]", 0),
    R(POST, "/schemas", S(AGENTS_WRITE), P8, srv_schema_post, NULL,
      "keep one: the same name is the same row, and columns without a value stay", NULL, "+Schema", "201 schemas",
      CHAT_BODY),
    R(GET, "/schemas/{id}", S(AGENTS_READ), P8, srv_schema_show, NULL, "one declaration", NULL, NULL, "schemas", 0),
    R(DELETE, "/schemas/{id}", S(AGENTS_WRITE), P8, srv_schema_delete, NULL, "delete it", NULL, NULL, "Deleted", 0),
    R(POST, "/agents/search", S(AGENTS_READ), PROBLEM, srv_agents_search, NULL, "agents by meaning, name or tags", NULL,
      "+AgentSearch", "AgentsFound", 0),
    R(GET, "/agents/{name}/history", S(AGENTS_READ), PROBLEM, srv_agent_versions, NULL, "the same as its versions",
      NULL, NULL, "[AgentVersion]", 0),
    R(GET, "/agents/{name}/history/{number}/content", S(AGENTS_READ), PROBLEM, srv_agent_version, NULL,
      "its document in the flat form at that version, from 1", NULL, NULL, "AgentFlat", 0),

    R(POST, "/tasks", S(TASKS_WRITE), PROBLEM, srv_task_post, NULL, "queue a task for the handlers of workers", NULL,
      "NewTask", "201 TaskQueued", 0),
    R(POST, "/schedules", S(TASKS_WRITE), PROBLEM, srv_schedule_post, NULL,
      "queue a pipeline or a task at a time, or again and again", NULL, "NewSchedule", "201 ScheduleShown", CHAT_BODY),
    R(GET, "/schedules/{id}", S(TASKS_READ), PROBLEM, srv_schedule_show, NULL,
      "one schedule by its name or id, with its next times and last firings", NULL, NULL, "ScheduleShown", 0),
    R(PUT, "/schedules/{id}", S(TASKS_WRITE), PROBLEM, srv_schedule_put, NULL, "in its place another one of that name",
      NULL, "NewSchedule", "ScheduleShown", CHAT_BODY),
    R(PATCH, "/schedules/{id}", S(TASKS_WRITE), PROBLEM, srv_schedule_change, NULL, "other times or another priority",
      NULL, "ScheduleChange", "ScheduleShown", 0),
    R(DELETE, "/schedules/{id}", S(TASKS_WRITE), PROBLEM, srv_schedule_delete, NULL, "end it; what it has queued stays",
      NULL, NULL, "Deleted", 0),
    R(GET, "/usage/answers", S(USAGE_READ), PROBLEM, srv_usage_answers, NULL,
      "what answers took, by user, agent and model", "by since until", NULL, "[AnswersUsage]", 0),
    R(POST, "/v1/embeddings", S(CHAT), OPENAI, srv_embeddings, NULL,
      "OpenAI Embeddings; the model is PROVIDER:MODEL, or `default`", NULL, "+Embedding", "Embeddings", CHAT_BODY),
    R(GET, "/me", SRV_KNOWN, PROBLEM, srv_me, NULL, "who the server takes the caller for", NULL, NULL, "Me", 0),
};
const size_t srv_n_routes = RV_COUNT(srv_routes);

bool srv_route_has_user(const struct srv_route *r)
{
    return r->scope == S(SESSIONS_READ) || r->scope == S(SESSIONS_WRITE) || r->scope == S(DATA_READ) ||
           r->scope == S(DATA_WRITE);
}

/* Where clients of other servers send parameters that those servers have, or pass over: the routes of AG-UI, p8 and
 * OpenAI, all paths as REMLight's clients write them, `/mcp`, whose address people write into clients of their choice,
 * and the pages and probes, which anyone asks for. */
static bool is_lenient(const struct srv_route *r, const struct rv_httpd_request *req)
{
    return r->family != PROBLEM || r->scope == SRV_OPEN || r->scope == SRV_ASKS || strcmp(r->path, "/mcp") == 0 ||
           (req->n_segments > 2 && rv_str_is(req->segments[0], "api") && rv_str_is(req->segments[1], "v1"));
}

/* What clients of REMLight send to a route that has no use for it. */
static bool is_passed_over(const struct srv_route *r, rv_str name)
{
    return strcmp(r->path, "/agents") == 0 && rv_str_is(name, "database_first");
}

static int unknown_parameter(rv_str name, const char *const *names, size_t n, const char *all, rv_err **err)
{
    const char *near = rv_nearest(name, names, n);
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown parameter \"%.*s\"", RV_STR_ARG(rv_utf8_cut(name, 80)));

    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else if (n > 0)
        rv_err_set_hint(err, "this route takes: %s", all);
    else
        rv_err_set_hint(err, "this route takes no parameters");
    return rc;
}

int srv_route_check_query(const struct srv_route *r, const struct rv_httpd_request *req, rv_err **err)
{
    const char *names[MAX_NAMES];
    char all[MAX_QUERY], words[MAX_QUERY], *rest = words;
    bool is_given[MAX_NAMES] = {false};
    size_t n = 0;

    if (is_lenient(r, req))
        return 0;
    snprintf(all, sizeof all, "%s%s%s", r->query ? r->query : "", r->query && srv_route_has_user(r) ? " " : "",
             srv_route_has_user(r) ? "user" : "");
    memcpy(words, all, sizeof words);
    for (char *word; n < MAX_NAMES && (word = strtok_r(rest, " ", &rest)) != NULL;)
        names[n++] = word;
    for (size_t i = 0; i < req->n_query; i++) {
        rv_str name = req->query[i].name;
        size_t at = 0;
        while (at < n && !rv_str_is(name, names[at]))
            at++;
        if (at == n && is_passed_over(r, name))
            continue;
        if (at == n)
            return unknown_parameter(name, names, n, all, err);
        if (is_given[at])
            return RV_FAIL(err, RV_E_INVALID, "the parameter \"%s\" is given twice", names[at]);
        is_given[at] = true;
    }
    return 0;
}

/* Does a path fit: segment by segment, "{...}" takes any that is not empty. */
static bool fits(const char *path, const rv_str *segments, size_t n, rv_str args[SRV_MAX_ARGS], size_t *n_args)
{
    const char *p = path;

    *n_args = 0;
    if (strcmp(path, "/") == 0)
        return n == 0;
    for (size_t i = 0; i < n; i++) {
        if (*p != '/')
            return false;
        p++;
        size_t len = strcspn(p, "/");
        if (*p == '{') {
            if (segments[i].len == 0)
                return false;
            args[(*n_args)++] = segments[i];
        } else if (!rv_str_eq((rv_str){p, len}, segments[i])) {
            return false;
        }
        p += len;
    }
    return *p == '\0';
}

static const struct srv_route *find(enum rv_method method, const rv_str *segments, size_t n, rv_str args[SRV_MAX_ARGS],
                                    size_t *n_args, unsigned *allowed)
{
    const struct srv_route *found = NULL;
    bool is_head = method == RV_METHOD_HEAD;

    *allowed = 0;
    *n_args = 0;
    for (size_t i = 0; i < srv_n_routes; i++) {
        const struct srv_route *r = &srv_routes[i];
        rv_str here[SRV_MAX_ARGS];
        size_t n_here;
        if (!fits(r->path, segments, n, here, &n_here))
            continue;
        *allowed |= 1u << r->method | (r->method == RV_METHOD_GET ? 1u << RV_METHOD_HEAD : 0);
        if (r->method != (is_head ? RV_METHOD_GET : method) || (found && n_here >= *n_args))
            continue;
        found = r; /* with the fewest variable segments: "/agents/validate" before "/agents/{name}" */
        memcpy(args, here, n_here * sizeof *here);
        *n_args = n_here;
    }
    return found;
}

const struct srv_route *srv_route_find(enum rv_method method, const rv_str *segments, size_t n,
                                       rv_str args[SRV_MAX_ARGS], size_t *n_args, unsigned *allowed)
{
    if (n > 1 && segments[n - 1].len == 0) /* "/schemas/", as p8's clients write it */
        n--;
    const struct srv_route *r = find(method, segments, n, args, n_args, allowed);
    if (r || *allowed || n < 3 || !rv_str_is(segments[0], "api") || !rv_str_is(segments[1], "v1"))
        return r;
    return find(method, segments + 2, n - 2, args, n_args, allowed); /* as REMLight's clients write all paths */
}
