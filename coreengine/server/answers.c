/* The schemas of what the routes answer, as a table of short lines, and the JSON Schema that is made from them.
 *
 * A line is a list of members, "name:type" or "name?:type" for one that may be missing. A type is text, int, number,
 * bool, object, any, null, =WORD (that text), the name of another line or of a kind of entities, [TYPE] (a list), or
 * several of them with "|" between. ".." before a kind: the members are its columns and those that follow. "..." at the
 * end: there may be others. A line that begins with "@" is a type. */
#include <string.h>

#include "coreengine/server/server_internal.h"
#include "coreengine/store/store.h"

static const struct {
    const char *name, *line;
} answers[] = {
    /* of the server */
    {"Health", "status:text"},
    {"Ready", "status:text checks:ReadyChecks reasons:[text]"},
    {"ReadyChecks", "store:=ok|=unreachable|=unwritable worker:=none|=ok|=waiting|=ended draining:bool"},
    {"OpenApi", "openapi:text info:object paths:object components:object"},
    {"LoggedIn", ""},
    {"Login", "name:text user:text tenant:text level:text scopes:text login:bool"},
    {"Me", "level:text tenant_id:text user_id:text|null name:text|null email:text|null scopes:text"},
    {"Deleted", "deleted:bool"},
    {"UsageRow", "user:text|null tenant:bool kind:text span:text rate:bool limit:int used:int reserved:int"},
    {"AnswersUsage", "user_id?:text|null agent_name?:text|null model?:text|null answers:int input_tokens:int "
                     "output_tokens:int latency_ms:int"},
    {"Failure", "code:text message:text place?:Place hint?:text causes:[FailureCause]"},
    {"FailureCause", "code:text message:text place?:Place hint?:text"},
    {"Place", "file:text line?:int col?:int"},

    /* chats */
    {"McpAnswer", "jsonrpc:=2.0 id:text|int|null result?:object error?:McpError"},
    {"McpError", "code:int message:text data?:any"},
    {"Models", "object:=list data:[Model]"},
    {"Model", "id:text object:=model created:int owned_by:text"},
    {"Completion", "id:text object:=chat.completion created:int model:text choices:[CompletionChoice] usage?:object"},
    {"CompletionChoice", "index:int message:CompletionMessage logprobs:null finish_reason:text"},
    {"CompletionMessage",
     "role:=assistant content:text|null refusal:null tool_calls?:[object] reasoning_content?:text"},
    {"ResponseObject",
     "id:text object:=response created_at:int status:text error:object|null incomplete_details:object|null "
     "instructions:text|null model:text output:[object] parallel_tool_calls:bool tool_choice:text tools:[object] "
     "usage:object|null ..."},
    {"Answered", "@Completion|ResponseObject"},
    {"Failed", "error:FailedWith"},
    {"FailedWith", "message:text type:text|null param:null code:text|null"},
    {"FailedTurn", "@Failed|ResponseObject|Problem"},
    {"Embeddings", "object:=list data:[Embedded] model:text usage:EmbeddingsUsage"},
    {"Embedded", "object:=embedding index:int embedding:[number]|text"},
    {"EmbeddingsUsage", "prompt_tokens:int total_tokens:int"},

    /* pipelines */
    {"PipelineShown", "pipeline:text valid:bool name?:text description?:text|null mode?:=parallel|=sequential "
                      "limits?:PipelineLimits bounds?:PipelineBounds stages?:[PipelineStage] graph?:Graph"},
    {"PipelineLimits", "max_iterations:int max_llm_calls:int max_agent_hops:int default_timeout_seconds:int "
                       "budget_micro_usd?:int"},
    {"PipelineBounds",
     "max_visits:int max_visits_exact:bool max_mocked_visits:int max_llm_calls:int max_llm_calls_exact:bool "
     "max_questions:int visits_path:[text] llm_path:[text] answers:int max_visits_with_answers:int "
     "max_llm_calls_with_answers:int max_cost_micro_usd:int|null max_cost_is_budget?:bool max_cost_missing?:text"},
    {"PipelineStage", "name:text output_key:text|null has_llm:bool has_tools:bool asks:bool role:text|null "
                      "agent:text|null pipeline:text|null max_visits:int tools:[text]"},
    {"Graph", "mode:=parallel|=sequential width:int height:int nodes:[GraphNode] edges:[GraphEdge]"},
    {"GraphNode", "id:int name:text stage:text|null kind:text mark:text|null x:int y:int width:int height:int"},
    {"GraphEdge", "from:int to:int kind:text label:text|null cut:bool label_x:int label_y:int line:text tip:text"},

    /* runs */
    {"RunBegun", "id:text is_new:bool"},
    {"RunEnded", "id:text status:text result:RunResult"},
    {"RunStarted", "@RunBegun|RunEnded"},
    {"RunResult",
     "envelope_id:text request_id:text|null user_id:text|null session_id:text|null current_stage:text|null "
     "terminated:bool termination_reason:text|null terminal_reason:text|null reason_class:text|null code?:text "
     "status:text response:text|null interrupt_pending:bool iteration:int llm_call_count:int processing_time_ms:int "
     "usage?:Usage errors:[object] outputs:object interrupt?:any interrupts?:[object]"},
    {"Usage", "calls?:int input_tokens:int output_tokens:int cached_tokens?:int cache_write_tokens?:int "
              "reasoning_tokens?:int cost_micro_usd?:int estimated?:bool"},
    {"RunListed", "id:text pipeline:text|null status:text stage:text|null user:text|null session:text|null "
                  "created_at?:text updated_at?:text records:int bundle:text|null parent?:text parent_seq?:int "
                  "owner?:text lease_until?:text cancel_requested?:bool crashes?:int pending:[Pending]"},
    {"Pending", "kind:text id:text stage?:text|null message?:text|null data?:any created_at?:text|null "
                "expires_at?:text|null ..."},
    {"RunShown", "id:text pipeline:text|null status:text stage:text|null user:text|null session:text|null "
                 "created_at?:text updated_at?:text records:int bundle:text|null parent?:text parent_seq?:int "
                 "mock:bool script:bool cancel_requested:bool owner:RunOwner|null steps:[RunStep] "
                 "steps_left_out?:int usage:Usage pending:[Pending] state:object"},
    {"RunOwner", "name:text state:text lease_until?:text fence:int"},
    {"RunStep", "step:int|null stage:text visit:int path?:text index?:int can_fork:bool asks:bool begun_at?:text "
                "ended_at?:text record?:int status?:text|null outcome?:text|null output_key?:text|null output?:any "
                "next_stage?:text|null error?:any error_type?:text|null code?:text|null usage?:Usage|null "
                "calls:[RunCall]"},
    {"RunCall", "call_id:int kind:text name:text class?:text asked?:text agent?:text parent_call_id?:int attempt:int "
                "outcome:text begun_at?:text ended_at?:text usage?:Usage muted_text?:text latency_ms?:int "
                "first_token_ms?:int"},
    {"CancelAsked", "id:text cancel_requested:bool"},
    {"AnswerTaken", "id:text answered:bool"},
    {"RunGraph", "run:text pipeline:text|null status:text next_event:int stages:[StageReached] moves:[StageMove] "
                 "graph:Graph"},
    {"StageReached", "stage:text state:=waits|=cancelled|=running|=pending|=failed|=skipped|=completed visits:int"},
    {"StageMove", "from:text to:text"},
    {"RunTimeline", "run:text pipeline:text|null status:text next_event:int duration_ms:int usage:Usage "
                    "steps:[TimedStep] steps_left_out:int"},
    {"TimedStep", "step:int|null stage:text visit:int path?:text index?:int can_fork:bool start_ms:int "
                  "duration_ms:int ended:bool status?:text|null outcome?:text|null next_stage?:text|null error?:any "
                  "code?:text|null usage?:Usage|null calls:[TimedCall]"},
    {"TimedCall", "call_id:int kind:text name:text asked?:text agent?:text parent_call_id?:int attempt:int "
                  "outcome:text start_ms:int duration_ms:int ended:bool usage?:Usage"},
    {"RunJournal", "run:text of:int records:[JournalRecord] next:int|null"},
    {"JournalRecord", "seq:int record:text ..."},
    {"RunReplayed", "run:text identical:bool error?:Failure records?:int of?:int status?:text events?:int "
                    "open_calls?:int state_sha256?:text events_sha256?:text"},
    {"RunsCompared", "equal:bool same_records:int a:text a_seq?:int|null a_record?:JournalRecord|null b:text "
                     "b_seq?:int|null b_record?:JournalRecord|null path?:text bundle:[text]"},
    {"Interrupt", "id:text run:text|null session_id:text|null tenant_id:text|null user_id:text|null kind:text "
                  "stage:text|null status:text open:bool text:text|null reason:text|null created_at:text|null "
                  "expires_at:text|null ended_at:text|null"},

    /* sessions */
    {"Session", "id:text tenant_id:text user_id:text|null name:text|null description:text|null agent_name:text|null "
                "mode:text|null status:text|null total_tokens:int messages:int metadata:object created_at:text "
                "updated_at:text"},
    {"SessionDeleted", "deleted:bool runs_to_be_cancelled:int"},
    {"Message", "id:text session_id:text seq:int message_type:text content:text|null tool_calls:any token_count:int "
                "input_tokens:int|null output_tokens:int|null cost_micro_usd:int|null latency_ms:int|null "
                "model:text|null agent_name:text|null trace_id:text|null span_id:text|null run_id:text|null "
                "status:text parent_call_id:text|null metadata:object created_at:text"},
    {"SessionExport", "session:Session messages:[Message]"},
    {"SessionCloned", "original_session_id:text new_session_id:text message_count:int"},
    {"SessionFound", "..sessions message_count:int similarity:number|null"},
    {"SessionsFound", "results:[SessionFound] page:int size:int total:int"},
    {"SessionEvent", "event_type:text event_id:text event_timestamp:text name_or_type:text|null "
                     "content_or_summary:text|null encryption_level:text|null metadata:object"},
    {"Day", "name:text moment_type:=daily_summary summary:text date:text source_session_id:text metadata:DayCounts"},
    {"DayCounts", "message_count:int session_count:int total_tokens:int moment_count:int"},
    {"MomentMade", "moment:moments session_id:text"},
    {"CollectionChanged", "collection_id:text added:int"},
    {"CollectionExport", "collection:collections sessions:[CollectedSession] exported_at:text"},
    {"CollectedSession", "session_id:text name:text|null session:Session messages:[Message]"},
    {"ScenarioFound", "..scenarios similarity:number|null"},
    {"ScenariosFound", "results:[ScenarioFound] total:int"},
    {"CollectionFound", "..collections similarity:number|null"},
    {"CollectionsFound", "results:[CollectionFound] total:int"},
    {"MomentFound", "..moments similarity:number|null"},
    {"MomentsFound", "results:[MomentFound] total:int"},

    /* agents and tools */
    {"AgentListed",
     "name:text valid:bool source:text place:text|null mode?:text model?:text|null version?:text|null "
     "description?:text|null tools?:[text] kind?:text|null author?:text|null tags?:[text] error?:Failure|null"},
    {"AgentFlat", "description?:text|null name?:text|null kind?:text|null version?:text|null properties?:object "
                  "required?:[text] tools?:[object] tags?:[text] ..."},
    {"AgentKept", "name:text version:text|null changed:bool"},
    {"AgentChecked", "valid:bool name:text|null findings:[Finding]"},
    {"Finding",
     "severity:=critical|=error|=warning file:text|null line:int column:int message:text hint:text|null code?:text"},
    {"AgentVersion", "agent_id:text change_type:text name:text version:text|null content_hash:text|null "
                     "created_at:text content:text|null"},
    {"AgentFound", "name:text version:text|null source:text description:text|null tags:[text] similarity:number|null"},
    {"ModelsUsed", "models:[ModelUsed]"},
    {"ModelUsed", "id:text name:text provider:text context_window:null supports_tools:bool supports_streaming:bool"},
    {"ToolServer", "name:text pipeline:text server_type:=mcp|=stdio|=rest endpoint:text|null required:bool "
                   "enabled:bool"},
    {"McpTool", "name:text inputSchema:object ..."},
    {"AgentsFound", "results:[AgentFound] total:int"},
    {"Tool", "name:text description?:text|null risk?:text|null category?:text|null capability:text|null"},

    /* data */
    {"Kind", "name:text description:text"},
    {"EntityRow", "id:text tenant_id:text|null user_id:text|null metadata:object tags:[text] graph_edges:[object] "
                  "encryption_level:text|null created_at:text updated_at:text deleted_at:null ..."},
    {"QueryRow", "@object"},
    {"QueryAnswer", "mode:text results:[QueryRow] warnings:[text] truncated:bool"},
    {"FileKept", "id:text path:text name:text status:text chunks:int"},
    {"OntologyTree", "tree:[OntologyFolder|OntologyLeaf] files:int truncated:bool"},
    {"OntologyFolder", "name:text type:=folder path:text children:[OntologyFolder|OntologyLeaf]"},
    {"OntologyLeaf", "name:text type:=file path:text id:text|null key:text|null size?:int updated_at:text|null"},
    {"OntologyPage", "path:text id:text key:text|null mime_type:text|null content:text|null links:[object] "
                     "updated_at:text|null"},

    /* tasks and schedules */
    {"Task", "id:text task_type:text status:text tier:text tenant_id:text user_id:text|null idempotency_key:text|null "
             "priority:int attempt:int retry_count:int max_retries:int cancel_requested:bool payload:object|null "
             "result:any error:text|null claimed_by:text|null scheduled_at:text|null claimed_at:text|null "
             "lease_until:text|null started_at:text|null completed_at:text|null created_at:text updated_at:text "
             "events?:[TaskEvent]"},
    {"TaskEvent", "seq:int event:text at:text attempt:int worker:text|null text:text|null retry?:int max_retries?:int "
                  "next_attempt?:text"},
    {"TaskQueued", "id:text is_new:bool"},
    {"ScheduleShown",
     "id:text name:text status:=active|=ended cron:text|null at:text|null zone:text|null task_type:text "
     "pipeline:text|null tier:text|null needs:any payload:any priority:int max_retries:int tenant_id:text "
     "user_id:text|null next_at:text|null last_at:text|null fired:int skipped:int error:text|null created_at:text|null "
     "updated_at:text|null next?:[text] firings?:[Firing]"},
    {"Firing", "planned_at:text missed_since?:text at:text run?:text task?:text skipped?:text"},
};

/* --- types --- */

static const struct {
    const char *word, *type; /* type NULL: any value */
} plain[] = {{"text", "string"}, {"int", "integer"},   {"number", "number"}, {"bool", "boolean"},
             {"null", "null"},   {"object", "object"}, {"any", NULL}};

static rv_str next_part(rv_str *rest, char sep)
{
    size_t n = 0;

    for (int depth = 0; n < rest->len && (depth > 0 || rest->ptr[n] != sep); n++)
        depth += rest->ptr[n] == '[' ? 1 : rest->ptr[n] == ']' ? -1 : 0;
    rv_str part = {rest->ptr, n};
    n += n < rest->len;
    *rest = (rv_str){rest->ptr + n, rest->len - n};
    return part;
}

static void write_one(rv_jw *w, rv_str type);

static void write_words(rv_jw *w, rv_str type)
{
    rv_jw_obj(w);
    rv_jw_key(w, "enum");
    rv_jw_arr(w);
    while (type.len > 0) {
        rv_str part = next_part(&type, '|');
        rv_jw_str(w, (rv_str){part.ptr + 1, part.len - 1});
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void srv_write_answer_type(rv_jw *w, rv_str type)
{
    rv_str rest = type, first = next_part(&rest, '|');

    if (first.ptr[0] == '=') {
        write_words(w, type);
        return;
    }
    if (rest.len == 0) {
        write_one(w, first);
        return;
    }
    rv_jw_obj(w);
    rv_jw_key(w, "anyOf");
    rv_jw_arr(w);
    for (rest = type; rest.len > 0;)
        write_one(w, next_part(&rest, '|'));
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void write_ref(rv_jw *w, rv_str name)
{
    rv_buf ref = RV_BUF_INIT(200);

    rv_buf_puts(&ref, "#/components/schemas/");
    rv_buf_add_str(&ref, name);
    rv_jw_kv_buf(w, "$ref", &ref);
    rv_buf_fini(&ref);
}

static void write_one(rv_jw *w, rv_str type)
{
    size_t i = 0;

    while (i < RV_COUNT(plain) && !rv_str_is(type, plain[i].word))
        i++;
    rv_jw_obj(w);
    if (type.ptr[0] == '[') {
        rv_jw_kv_text(w, "type", "array");
        rv_jw_key(w, "items");
        srv_write_answer_type(w, (rv_str){type.ptr + 1, type.len - 2});
    } else if (i == RV_COUNT(plain)) {
        write_ref(w, type);
    } else if (plain[i].type) {
        rv_jw_kv_text(w, "type", plain[i].type);
    }
    rv_jw_obj_end(w);
}

/* --- objects --- */

/* The columns of a kind's rows as members; those that every kind has are before and behind them. */
static void write_columns(const struct rv_kind *kind, rv_buf *out)
{
    static const char *const types[] = {
        [RV_KIND_TEXT] = "text|null",     [RV_KIND_INT] = "int|null",   [RV_KIND_REAL] = "number|null",
        [RV_KIND_BOOL] = "bool|null",     [RV_KIND_TIME] = "text|null", [RV_KIND_ID] = "text|null",
        [RV_KIND_OBJECT] = "object|null", [RV_KIND_TEXTS] = "[text]",   [RV_KIND_OBJECTS] = "[object]"};
    RV_EACH_HAS_ROW(types, RV_N_KIND_TYPES);

    rv_buf_puts(out, "id:text tenant_id:text|null user_id:text|null");
    for (size_t i = 0; i < kind->n_fields; i++)
        rv_buf_printf(out, " %s:%s", kind->fields[i].name, types[kind->fields[i].type]);
    rv_buf_puts(out, " metadata:object tags:[text] graph_edges:[object] encryption_level:text|null created_at:text "
                     "updated_at:text deleted_at:null");
}

struct member {
    rv_str name, type;
    bool may_miss;
};

/* False: it is "...", and stands for others. */
static bool read_member(rv_str part, struct member *out)
{
    const char *colon = memchr(part.ptr, ':', part.len);

    if (!colon)
        return false;
    size_t n = (size_t)(colon - part.ptr);
    out->type = (rv_str){colon + 1, part.len - n - 1};
    out->may_miss = part.ptr[n - 1] == '?';
    out->name = (rv_str){part.ptr, n - out->may_miss};
    return true;
}

static void write_object(rv_jw *w, rv_str line)
{
    struct member m;
    bool is_open = false;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "object");
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    for (rv_str rest = line; rest.len > 0;) {
        if (!read_member(next_part(&rest, ' '), &m)) {
            is_open = true;
            continue;
        }
        rv_jw_key_str(w, m.name);
        srv_write_answer_type(w, m.type);
    }
    rv_jw_obj_end(w);
    rv_jw_key(w, "required");
    rv_jw_arr(w);
    for (rv_str rest = line; rest.len > 0;)
        if (read_member(next_part(&rest, ' '), &m) && !m.may_miss)
            rv_jw_str(w, m.name);
    rv_jw_arr_end(w);
    if (is_open)
        rv_jw_kv_bool(w, "additionalProperties", true);
    rv_jw_obj_end(w);
}

static void write_line(rv_jw *w, const char *line)
{
    rv_buf all = RV_BUF_INIT(8192);
    rv_str rest = rv_str_of(line);

    if (line[0] == '@') {
        srv_write_answer_type(w, (rv_str){rest.ptr + 1, rest.len - 1});
        return;
    }
    if (strncmp(line, "..", 2) == 0) {
        rv_str kind = next_part(&rest, ' ');
        write_columns(rv_kind_find((rv_str){kind.ptr + 2, kind.len - 2}), &all);
        rv_buf_putc(&all, ' ');
    }
    rv_buf_add_str(&all, rest);
    if (all.rc < 0)
        rv_buf_add_buf(w->out, &all);
    write_object(w, rv_buf_str(&all));
    rv_buf_fini(&all);
}

void srv_write_answers(rv_jw *w)
{
    for (size_t i = 0; i < RV_COUNT(answers); i++) {
        rv_jw_key(w, answers[i].name);
        write_line(w, answers[i].line);
    }
    for (size_t i = 0; i < rv_n_kinds; i++) {
        rv_buf columns = RV_BUF_INIT(8192);
        write_columns(&rv_kinds[i], &columns);
        rv_jw_key(w, rv_kinds[i].name);
        if (columns.rc < 0)
            rv_buf_add_buf(w->out, &columns);
        write_object(w, rv_buf_str(&columns));
        rv_buf_fini(&columns);
    }
}
