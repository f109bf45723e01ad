/* p8: the table of entries, and opening with a configuration. */
#include "capabilities/p8/p8_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "p8_agents.h"

/* What the specifications have in common. */
#define READS      "\"risk\": \"read_only\", \"category\": \"read\""
#define WRITES     "\"risk\": \"write\", \"category\": \"write\", \"effect\": \"idempotent\""
#define ALWAYS     "" /* no argument is required */
#define NEEDS(...) "\"required\": " #__VA_ARGS__ ", "
#define ALONE      "" /* it asks for nothing */
#define ASKS(...)  ", \"services\": " #__VA_ARGS__
/* Of what it answers when nothing goes wrong; an answer may lack them, and has `status`, `error` and `code` beside
 * them. */
#define ANSWERS(...) ", \"output_schema\": {\"type\": \"object\", \"properties\": " RV_CAP_JSON(__VA_ARGS__) "}"
#define TOOL(name, text, how, required, properties, answers, services, fn)                                             \
    {                                                                                                                  \
        RV_CAP_TOOL, name,                                                                                             \
            "{\"description\": \"" text "\", " how                                                                     \
            ", \"input_schema\": {\"type\": \"object\", \"additionalProperties\": false, " required                    \
            "\"properties\": " properties "}" answers services "}",                                                    \
            fn                                                                                                         \
    }

/* A model reads the descriptions: what may go with each type has to stand in them. A formatter would cut them into
 * parts, and JSON has no texts in parts. */
/* clang-format off */
static const struct rv_cap_entry entries[] = {
    TOOL("action",
         "Say something beside the answer, as data: an observation about the answer, a question with options to the person, a task for another agent, or that you are done.",
         READS ", \"effect\": \"safe\"", NEEDS(["type"]),
         RV_CAP_JSON({
             "type": {
                 "type": "string",
                 "minLength": 1,
                 "maxLength": 64,
                 "description": "observation, elicit, delegate, complete, escalate, or a word that the program which shows the conversation knows"
             },
             "payload": {
                 "type": ["object", "null"],
                 "description": "observation: confidence (0 to 1), sources, session_name (three to five words), references, flags, risk_level (low, moderate, high, critical), risk_score (0 to 100), risk_reasoning, recommended_action, extra. elicit: question, options, timeout_seconds. delegate: target_agent, task, context. complete, escalate: reason"
             }
         }),
         ANSWERS({
             "_action_event": {"type": "boolean"},
             "action_type": {"type": "string"},
             "payload": {"type": "object"}
         }),
         ALONE, act),
    TOOL("keep_record",
         "Keep a record: one line of JSON at the end of the configured file.",
         WRITES, NEEDS(["name", "fields"]),
         RV_CAP_JSON({
             "name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "what it is a record of"},
             "fields": {"type": "object", "description": "what is kept"}
         }),
         ANSWERS({
             "name": {"type": "string"},
             "line": {"type": "integer"}
         }),
         ALONE, keep_record),
    TOOL("search",
         "Ask the knowledge base with one query of the REM dialect: LOOKUP name[, name...] finds things by their names; SEARCH text FROM table finds by meaning, with rank=hybrid also by words; FUZZY text finds names that are nearly so; TRAVERSE name DEPTH n follows connections; SQL SELECT ... answers questions about dates and counts. Tables: moments (what happened), resources (files, links, articles), ontologies (knowledge). A plain question is not a query.",
         READS, NEEDS(["query"]),
         RV_CAP_JSON({
             "query": {"type": "string", "maxLength": 32768, "description": "begins with LOOKUP, SEARCH, FUZZY, TRAVERSE or SQL"},
             "limit": {"type": ["integer", "null"], "default": 20, "description": "results at most"}
         }),
         ANSWERS({
             "query": {"type": "string"},
             "results": {"type": "array"},
             "count": {"type": "integer"},
             "truncated": {"type": "boolean"},
             "warnings": {"type": "array", "items": {"type": "string"}}
         }),
         ASKS(["query"]), search),
    TOOL("gather_activity",
         "What the person of this conversation did in the last days, as a text for a dreamer: moments, conversations and files with their names. Long conversations get chunks first.",
         WRITES ", \"timeout_ms\": 60000", ALWAYS,
         RV_CAP_JSON({
             "days": {"type": ["integer", "null"], "default": 1, "description": "1 to 366"},
             "max_tokens": {"type": ["integer", "null"], "default": 38400, "description": "of the text, estimated; a section that does not fit is left out"}
         }),
         ANSWERS({
             "is_empty": {"type": "boolean"},
             "phase1": {"type": "object"},
             "since": {"type": "string"},
             "n_moments": {"type": "integer"},
             "n_sessions": {"type": "integer"},
             "n_files": {"type": "integer"},
             "tokens": {"type": "integer"},
             "text": {"type": "string"}
         }),
         ASKS(["dreaming.gather"]), gather_activity),
    TOOL("save_moments",
         "Keep moments: what is worth coming back to, and what it is connected with. One of the same name is written over.",
         WRITES, NEEDS(["moments"]),
         RV_CAP_JSON({
             "moments": {
                 "type": "array",
                 "maxItems": 100,
                 "items": {"type": "object"},
                 "description": "each: name, summary, topic_tags, emotion_tags, affinity_fragments (each: target, which is the name of something that is kept already, relation, weight from 0 to 1, reason)"
             },
             "user_id": {"type": ["string", "null"], "default": null, "description": "leave it out"}
         }),
         ANSWERS({
             "saved_moment_ids": {"type": "array", "items": {"type": "string"}},
             "moments_count": {"type": "integer"},
             "merge_results": {"type": "array", "items": {"type": "object"}}
         }),
         ASKS(["entities.lookup", "entities.put"]), save_moments),
    TOOL("get_moments",
         "List what is remembered, newest first. All that is given has to fit.",
         READS, ALWAYS,
         RV_CAP_JSON({
             "moment_type": {"type": ["string", "null"], "default": null, "description": "dream, session_chunk, content_upload, reminder, web_search, note, ..."},
             "category": {"type": ["string", "null"], "default": null},
             "topic_tags": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 1000}, "maxItems": 1000, "default": null, "description": "all of them"},
             "after_date": {"type": ["string", "null"], "default": null, "description": "the first day or time, as 2026-01-31 or 2026-01-31T09:30Z"},
             "before_date": {"type": ["string", "null"], "default": null, "description": "the last day or time"},
             "limit": {"type": ["integer", "null"], "default": 20, "description": "1 to 100"},
             "offset": {"type": ["integer", "null"], "default": 0, "description": "how many to pass over"}
         }),
         ANSWERS({
             "results": {"type": "array", "items": {"type": "object"}},
             "count": {"type": "integer"},
             "limit": {"type": "integer"},
             "offset": {"type": "integer"},
             "has_more": {"type": "boolean"}
         }),
         ASKS(["entities.find"]), get_moments),
    TOOL("get_user_profile",
         "What is known about the person of this conversation.",
         READS, ALWAYS,
         RV_CAP_JSON({}),
         ANSWERS({
             "user_id": {"type": "string"},
             "name": {"type": ["string", "null"]},
             "email": {"type": ["string", "null"]},
             "content": {"type": ["string", "null"]},
             "metadata": {"type": ["object", "null"]},
             "tags": {"type": ["array", "null"]}
         }),
         ASKS(["entities.find"]), get_user_profile),
    TOOL("update_user_metadata",
         "Keep facts about the person of this conversation. Send only what changed. Sections: relations (name, role, notes), interests, feeds (url, name, type, notes), preferences, facts, categories, sources.",
         WRITES, NEEDS(["metadata"]),
         RV_CAP_JSON({
             "metadata": {"type": "object", "description": "sections; each takes the place of the one that is kept"},
             "remove_keys": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 1000}, "maxItems": 1000, "default": null, "description": "sections to forget"},
             "list_mode": {"type": ["string", "null"], "default": null, "description": "replace (default), or union: relations, feeds and interests are added to those that are kept"}
         }),
         ANSWERS({
             "user_id": {"type": "string"},
             "metadata": {"type": "object"}
         }),
         ASKS(["entities.find", "entities.get", "entities.merge_metadata"]), update_user_metadata),
    TOOL("remind_me",
         "Remind the person of this conversation at a time, or again and again. A reminder of the same name is replaced.",
         WRITES, NEEDS(["name", "description", "crontab"]),
         RV_CAP_JSON({
             "name": {"type": "string", "maxLength": 1000, "description": "a short name"},
             "description": {"type": "string", "maxLength": 65536, "description": "what to say then"},
             "crontab": {"type": "string", "maxLength": 1000, "description": "once: 2026-04-15T15:00+02:00 (UTC without an offset); again and again: five fields as 0 9 * * MON-FRI, or @daily; in UTC"},
             "tags": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 1000}, "maxItems": 1000, "default": null}
         }),
         ANSWERS({
             "reminder_id": {"type": "string"},
             "moment_id": {"type": ["string", "null"]},
             "name": {"type": "string"},
             "frequency": {"type": "string"},
             "recurrence": {"type": "string"},
             "next_at": {"type": ["string", "null"]}
         }),
         ASKS(["moments.put", "schedules.add"]), remind_me),
    TOOL("list_reminders",
         "The reminders of the person of this conversation that are still to come.",
         READS, ALWAYS,
         RV_CAP_JSON({}),
         ANSWERS({
             "count": {"type": "integer"},
             "reminders": {"type": "array", "items": {"type": "object"}}
         }),
         ASKS(["schedules.list"]), list_reminders),
    TOOL("cancel_reminder",
         "Cancel a reminder of the person of this conversation.",
         WRITES, NEEDS(["name"]),
         RV_CAP_JSON({
             "name": {"type": "string", "maxLength": 1000, "description": "as it was given to remind_me"}
         }),
         ANSWERS({
             "name": {"type": "string"}
         }),
         ASKS(["schedules.cancel"]), cancel_reminder),
    TOOL("save_plot",
         "Keep a drawing of this conversation: its source as text.",
         WRITES, NEEDS(["title", "source"]),
         RV_CAP_JSON({
             "title": {"type": "string", "maxLength": 1000},
             "source": {"type": "string", "maxLength": 262144},
             "plot_type": {"type": ["string", "null"], "default": "mermaid", "description": "mermaid, chartjs or vega"},
             "description": {"type": ["string", "null"], "default": null},
             "topic_tags": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 1000}, "maxItems": 1000, "default": null}
         }),
         ANSWERS({
             "plot_id": {"type": "string"},
             "moment_id": {"type": ["string", "null"]},
             "plot_count": {"type": "integer"},
             "collection_name": {"type": "string"},
             "moment_link": {"type": "string"}
         }),
         ASKS(["entities.find", "entities.get", "entities.put"]), save_plot),
    TOOL("remove_plot",
         "Take a drawing out of the collection of a day.",
         WRITES, NEEDS(["plot_id"]),
         RV_CAP_JSON({
             "plot_id": {"type": "string", "maxLength": 1000},
             "collection_date": {"type": ["string", "null"], "default": null, "description": "as 2026-01-31; today if it is left out"}
         }),
         ANSWERS({
             "removed_title": {"type": ["string", "null"]},
             "remaining_count": {"type": "integer"}
         }),
         ASKS(["entities.find", "entities.get", "entities.put"]), remove_plot),
    TOOL("get_file",
         "What an uploaded file says: rows of a table, or text.",
         READS, NEEDS(["file_id"]),
         RV_CAP_JSON({
             "file_id": {"type": "string", "maxLength": 1000, "description": "id of the file, or of the moment that names it"},
             "head": {"type": ["integer", "null"], "default": 0, "description": "so many rows or lines; 0: all"}
         }),
         ANSWERS({
             "format": {"type": "string"},
             "file_id": {"type": "string"},
             "name": {"type": ["string", "null"]},
             "columns": {"type": "array"},
             "row_count": {"type": "integer"},
             "rows": {"type": "array", "items": {"type": "object"}},
             "line_count": {"type": "integer"},
             "content": {"type": "string"},
             "truncated": {"type": "boolean"}
         }),
         ASKS(["entities.get"]), get_file),
    TOOL("read_resource",
         "Something by its address: user://profile, or files://{file_id}.",
         READS, NEEDS(["uri"]),
         RV_CAP_JSON({"uri": {"type": "string", "maxLength": 1000}}),
         ANSWERS({
             "user_id": {"type": "string"},
             "email": {"type": ["string", "null"]},
             "metadata": {"type": ["object", "null"]},
             "tags": {"type": ["array", "null"]},
             "format": {"type": "string"},
             "file_id": {"type": "string"},
             "name": {"type": ["string", "null"]},
             "columns": {"type": "array"},
             "row_count": {"type": "integer"},
             "rows": {"type": "array", "items": {"type": "object"}},
             "line_count": {"type": "integer"},
             "content": {"type": "string"},
             "truncated": {"type": "boolean"}
         }),
         ASKS(["entities.find", "entities.get"]), read_resource),
    TOOL("web_search",
         "Search the web. What is found is kept as resources, unless save is false.",
         "\"risk\": \"medium\", \"category\": \"network\", \"effect\": \"non_idempotent\", \"timeout_ms\": 60000", NEEDS(["query"]),
         RV_CAP_JSON({
             "query": {"type": "string", "maxLength": 4000},
             "max_results": {"type": ["integer", "null"], "default": 5, "description": "1 to 20"},
             "search_depth": {"type": ["string", "null"], "default": "basic", "description": "basic or advanced"},
             "save": {"type": ["boolean", "null"], "default": true}
         }),
         ANSWERS({
             "query": {"type": "string"},
             "results": {"type": "array", "items": {"type": "object"}},
             "count": {"type": "integer"},
             "moment_id": {"type": ["string", "null"]},
             "saved": {"type": "boolean"}
         }),
         ASKS(["entities.put", "http.request", "quotas.take"]), web_search),
    TOOL("save_agent",
         "Save an agent for the person of this conversation: its document, as YAML or JSON. Without a document the program that shows the conversation is asked to save the one that it has.",
         "\"risk\": \"high\", \"category\": \"write\", \"effect\": \"idempotent\"", ALWAYS,
         RV_CAP_JSON({
             "name": {"type": ["string", "null"], "default": null, "description": "in place of the name in the document"},
             "schema_yaml": {"type": ["string", "null"], "default": null, "description": "the document: name, description (the prompt), tools, properties, ..."},
             "description": {"type": ["string", "null"], "default": null, "description": "one line about the agent, for lists"},
             "tags": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 1000}, "maxItems": 1000, "default": null},
             "overwrite": {"type": ["boolean", "null"], "default": false, "description": "replace an agent of that name"}
         }),
         ANSWERS({
             "_action_event": {"type": "boolean"},
             "action_type": {"type": "string"},
             "payload": {"type": "object"},
             "data": {"type": "object"}
         }),
         ASKS(["agents.save"]), save_agent),
    TOOL("parse_file",
         "Read a text file of the folder that is configured for files. It is kept for get_file and for searches, unless save_to_db is false.",
         WRITES, NEEDS(["uri"]),
         RV_CAP_JSON({
             "uri": {"type": "string", "maxLength": 1000, "description": "path in that folder"},
             "user_id": {"type": ["string", "null"], "default": null, "description": "leave it out"},
             "save_to_db": {"type": ["boolean", "null"], "default": true}
         }),
         ANSWERS({
             "file_id": {"type": ["string", "null"]},
             "uri": {"type": "string"},
             "uri_hash": {"type": "string"},
             "name": {"type": "string"},
             "content": {"type": "string"},
             "parsed_output": {"type": "object"},
             "truncated": {"type": "boolean"}
         }),
         ASKS(["entities.put", "files.read"]), parse_file),
    TOOL("analyze_pages",
         "Have a model describe pages of a text file of the folder that is configured for files. Form feeds divide pages.",
         "\"risk\": \"medium\", \"category\": \"network\", \"effect\": \"idempotent\", \"timeout_ms\": 600000", NEEDS(["file_uri"]),
         RV_CAP_JSON({
             "file_uri": {"type": "string", "maxLength": 1000, "description": "path in that folder"},
             "start_page": {"type": ["integer", "null"], "default": 1},
             "end_page": {"type": ["integer", "null"], "default": null, "description": "the last page; left out: to the end"},
             "prompt": {"type": ["string", "null"], "default": null, "description": "what to say about the pages"},
             "provider": {"type": ["string", "null"], "default": null, "description": "of the model, as anthropic; leave it out"},
             "model": {"type": ["string", "null"], "default": null, "description": "leave it out for the usual model"},
             "page_batch_size": {"type": ["integer", "null"], "default": 5, "description": "pages that the model sees at once, 1 to 20"}
         }),
         ANSWERS({
             "file_uri": {"type": "string"},
             "description": {"type": "string"},
             "page_count": {"type": "integer"},
             "usage": {"type": "object"},
             "start_page": {"type": "integer"},
             "end_page": {"type": "integer"},
             "total_pages": {"type": "integer"},
             "runs": {"type": "array", "items": {"type": "string"}}
         }),
         ASKS(["files.read", "models.call"]), analyze_pages),
    P8_AGENTS
    RV_CAP_END,
};
/* clang-format on */

static bool is_below(const char *path)
{
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 0 || (len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += len;
        if (*path && !*++path)
            return false; /* a folder */
    }
    return true;
}

static void p8_close(void *self)
{
    struct p8 *p = self;

    if (!p)
        return;
    if (p->base >= 0)
        close(p->base);
    free(p->records);
    free(p->web_key);
    free(p->web_url);
    free(p);
}

/* A key of the environment, or of the configuration, which goes first. */
static bool settle_web(struct p8 *p, json_object *config, char *error, uint32_t size)
{
    const char *key = json_object_get_string(json_object_object_get(config, "tavily_api_key"));
    const char *url = json_object_get_string(json_object_object_get(config, "web_search_url"));
    const char *names[] = {"P8_TAVILY_API_KEY", "TAVILY_API_KEY"};

    for (size_t i = 0; i < 2 && (!key || !*key); i++)
        key = getenv(names[i]);
    url = url ? url : "https://api.tavily.com";
    if (strlen(url) > MAX_URL) {
        snprintf(error, size, "web_search_url has more than %d bytes", MAX_URL);
        return false;
    }
    p->web_url = strdup(url);
    if (key && *key)
        p->web_key = strdup(key);
    if (p->web_url && strlen(url) > 0 && url[strlen(url) - 1] == '/')
        p->web_url[strlen(url) - 1] = '\0';
    if (p->web_url && (!key || !*key || p->web_key))
        return true;
    snprintf(error, size, "out of memory");
    return false;
}

static bool settle(struct p8 *p, const struct rv_cap_host *host, json_object *config, char *error, uint32_t size)
{
    json_object *records = NULL;
    const char *path;

    if (!json_object_object_get_ex(config, "records", &records))
        return true;
    path = json_object_get_string(records);
    if (strlen(path) != (size_t)json_object_get_string_len(records) || strlen(path) > MAX_PATH_BYTES ||
        !is_below(path)) {
        snprintf(error, size, "records \"%.200s\" is not the path of a file below the pipeline's folder", path);
        return false;
    }
    p->base = open(host->base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->base < 0) {
        const char *words = strerrordesc_np(errno);
        snprintf(error, size, "the folder \"%.200s\" cannot be opened: %s", host->base_dir,
                 words ? words : "the system refuses it");
        return false;
    }
    p->records = strdup(path);
    if (!p->records)
        snprintf(error, size, "out of memory");
    return p->records != NULL;
}

static int p8_open(const struct rv_cap_host *host, const char *config_text, void **self, char *error,
                   uint32_t error_size)
{
    struct p8 *p = calloc(1, sizeof *p);
    json_object *config = json_of(config_text);
    bool ok = p && config;

    if (!ok)
        snprintf(error, error_size, "out of memory");
    if (p)
        p->base = -1;
    ok = ok && settle_web(p, config, error, error_size) && settle(p, host, config, error, error_size);
    json_object_put(config);
    if (!ok) {
        p8_close(p);
        return 1;
    }
    *self = p;
    return 0;
}

RV_CAPABILITY(.name = "p8", .version = "1.0.0",
              .description = "Agents to talk to, the tool with which they act, and a place for what they extract.",
              .config_schema = RV_CAP_JSON({
                  "type" : "object",
                  "additionalProperties" : false,
                  "properties" : {
                      "records" : {
                          "type" : "string",
                          "minLength" : 1,
                          "maxLength" : 1000,
                          "description" : "file below the pipeline's folder that keep_record writes lines to"
                      },
                      "tavily_api_key" : {
                          "type" : "string",
                          "maxLength" : 1000,
                          "description" :
                              "key of the search engine of web_search; else P8_TAVILY_API_KEY of the environment"
                      },
                      "web_search_url" : {
                          "type" : "string",
                          "minLength" : 1,
                          "maxLength" : 1000,
                          "description" : "where that search engine is: https://api.tavily.com"
                      }
                  }
              }),
              .entries = entries, .open = p8_open, .close = p8_close)
