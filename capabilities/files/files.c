/* files: the table of entries, and opening with a configuration. */
#include "capabilities/files/files_internal.h"

#include <stdlib.h>
#include <string.h>

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "list_files", RV_CAP_JSON({
         "description" : "List the files that can be read, sorted, with their sizes.",
         "risk" : "read_only",
         "category" : "read",
         "effect" : "safe",
         "input_schema" : {
             "type" : "object",
             "additionalProperties" : false,
             "properties" : {"glob" : {"type" : "string", "minLength" : 1, "maxLength" : 200}}
         },
         "output_schema" : {
             "type" : "object",
             "properties" : {
                 "files" : {
                     "type" : "array",
                     "items" : {"properties" : {"path" : {"type" : "string"}, "bytes" : {"type" : "integer"}}}
                 },
                 "total" : {"type" : "integer"},
                 "truncated" : {"type" : "boolean"}
             }
         }
     }),
     list_files},
    {RV_CAP_TOOL, "search_files", RV_CAP_JSON({
         "description" : "Find the passages that fit a question or some words best, with path and line numbers.",
         "risk" : "read_only",
         "category" : "read",
         "effect" : "safe",
         "input_schema" : {
             "type" : "object",
             "additionalProperties" : false,
             "required" : ["query"],
             "properties" : {
                 "query" : {"type" : "string", "minLength" : 1, "maxLength" : 2000},
                 "max_results" : {"type" : "integer", "minimum" : 1, "maximum" : 50},
                 "glob" : {"type" : "string", "minLength" : 1, "maxLength" : 200}
             }
         },
         "output_schema" : {
             "type" : "object",
             "properties" : {
                 "terms" : {"type" : "array", "items" : {"type" : "string"}},
                 "hits" : {
                     "type" : "array",
                     "items" : {
                         "properties" : {
                             "path" : {"type" : "string"},
                             "line" : {"type" : "integer"},
                             "end_line" : {"type" : "integer"},
                             "score" : {"type" : "number"},
                             "heading" : {"type" : "string"},
                             "matched" : {"type" : "array"},
                             "snippet" : {"type" : "string"}
                         }
                     }
                 },
                 "total_matches" : {"type" : "integer"},
                 "files_searched" : {"type" : "integer"},
                 "files_skipped" : {"type" : "integer"},
                 "truncated" : {"type" : "boolean"},
                 "evidence" : {
                     "type" : "array",
                     "items" : {
                         "properties" : {
                             "location" : {"type" : "string"},
                             "content" : {"type" : "string"},
                             "relevance" : {"type" : "string"},
                             "confidence" : {"type" : "number"}
                         }
                     }
                 }
             }
         }
     }),
     search_files},
    {RV_CAP_TOOL, "read_file", RV_CAP_JSON({
         "description" : "Read a text file, or some of its lines, with line numbers.",
         "risk" : "read_only",
         "category" : "read",
         "effect" : "safe",
         "input_schema" : {
             "type" : "object",
             "additionalProperties" : false,
             "required" : ["path"],
             "properties" : {
                 "path" : {"type" : "string", "minLength" : 1, "maxLength" : 1000},
                 "start_line" : {"type" : "integer", "minimum" : 1},
                 "end_line" : {"type" : "integer", "minimum" : 1}
             }
         },
         "output_schema" : {
             "type" : "object",
             "properties" : {
                 "path" : {"type" : "string"},
                 "start_line" : {"type" : "integer"},
                 "end_line" : {"type" : "integer"},
                 "total_lines" : {"type" : "integer"},
                 "truncated" : {"type" : "boolean"},
                 "lines" : {
                     "type" : "array",
                     "items" : {"properties" : {"line" : {"type" : "integer"}, "text" : {"type" : "string"}}}
                 },
                 "evidence" : {
                     "type" : "array",
                     "items" : {
                         "properties" : {
                             "location" : {"type" : "string"},
                             "content" : {"type" : "string"},
                             "relevance" : {"type" : "string"},
                             "confidence" : {"type" : "number"}
                         }
                     }
                 }
             }
         }
     }),
     read_file},
    {RV_CAP_TOOL, "write_file", RV_CAP_JSON({
         "description" : "Create a text file or replace its whole text. Its folder has to exist.",
         "risk" : "write",
         "category" : "write",
         "effect" : "idempotent",
         "input_schema" : {
             "type" : "object",
             "additionalProperties" : false,
             "required" : [ "path", "text" ],
             "properties" : {
                 "path" : {"type" : "string", "minLength" : 1, "maxLength" : 1000},
                 "text" : {"type" : "string", "maxLength" : 8388608}
             }
         },
         "output_schema" :
             {"type" : "object", "properties" : {"path" : {"type" : "string"}, "bytes" : {"type" : "integer"}}}
     }),
     write_file},
    {RV_CAP_TOOL, "delete_file", RV_CAP_JSON({
         "description" : "Delete a file. There is no way back.",
         "risk" : "destructive",
         "category" : "write",
         "effect" : "idempotent",
         "input_schema" : {
             "type" : "object",
             "additionalProperties" : false,
             "required" : ["path"],
             "properties" : {"path" : {"type" : "string", "minLength" : 1, "maxLength" : 1000}}
         },
         "output_schema" :
             {"type" : "object", "properties" : {"path" : {"type" : "string"}, "deleted" : {"type" : "boolean"}}}
     }),
     delete_file},
    {RV_CAP_HOOK, "plan_search", RV_CAP_JSON({
         "description" : "Turn the question into a plan of one search; after a loop-back into a wider one.",
         "sees" : [ "raw_input", "iteration" ]
     }),
     plan_search},
    {RV_CAP_HOOK, "judge_coverage", RV_CAP_JSON({
         "description" : "Judge whether the passages found cover the question, and plan which of them to read.",
         "sees" : [ "raw_input", "iteration", "outputs.plan", "outputs.search" ]
     }),
     judge_coverage},
    {RV_CAP_HOOK, "write_answer", RV_CAP_JSON({
         "description" : "Answer with quotes of the passages read, or say that nothing was found.",
         "sees" : [
             "raw_input", "iteration", "outputs.plan", "outputs.search", "outputs.judge", "outputs.read",
             "outputs.draft"
         ]
     }),
     write_answer},
    RV_CAP_END,
};

static size_t config_size(json_object *config, const char *key, size_t otherwise)
{
    int64_t value = arg_int(config, key, (int64_t)otherwise);

    return value > 0 ? (size_t)value : otherwise;
}

static void files_close(void *self)
{
    if (self)
        roots_close(self);
    free(self);
}

static int files_open(const struct rv_cap_host *host, const char *config_text, void **self, char *error,
                      uint32_t error_size)
{
    struct files *f = calloc(1, sizeof *f);
    json_object *config = json_of(config_text), *roots = arg_in(config, "roots");
    size_t n = json_object_is_type(roots, json_type_array) ? json_object_array_length(roots) : 0;
    bool ok = f && config;

    if (!ok)
        snprintf(error, error_size, f ? "the configuration cannot be read" : "out of memory");
    if (ok) {
        f->max_file_bytes = config_size(config, "max_file_bytes", (size_t)1 << 20);
        f->max_results = config_size(config, "max_results", 8);
    }
    if (ok && n == 0)
        ok = root_add(f, host->base_dir, ".", error, error_size);
    for (size_t i = 0; i < n && ok; i++)
        ok =
            root_add(f, host->base_dir, json_object_get_string(json_object_array_get_idx(roots, i)), error, error_size);
    json_object_put(config);
    if (!ok) {
        files_close(f);
        return 1;
    }
    *self = f;
    return 0;
}

RV_CAPABILITY(.name = "files", .version = "1.0.0",
              .description =
                  "Files below declared folders: list, search, read, write, delete; answers that quote them.",
              .config_schema = RV_CAP_JSON({
                  "type" : "object",
                  "additionalProperties" : false,
                  "properties" : {
                      "roots" : {
                          "type" : "array",
                          "minItems" : 1,
                          "maxItems" : 32,
                          "items" : {"type" : "string", "minLength" : 1, "maxLength" : 1000},
                          "description" : "folders or files, relative to the pipeline's folder; left out: that folder"
                      },
                      "max_file_bytes" : {
                          "type" : "integer",
                          "minimum" : 1,
                          "maximum" : 8388608,
                          "default" : 1048576,
                          "description" : "larger files are not read, searched or written"
                      },
                      "max_results" : {
                          "type" : "integer",
                          "minimum" : 1,
                          "maximum" : 50,
                          "default" : 8,
                          "description" : "hits of a search that does not say how many it wants"
                      }
                  }
              }),
              .entries = entries, .open = files_open, .close = files_close)
