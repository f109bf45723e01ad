// A capability in C++: its state is an object, its functions use the standard library, and no exception leaves them.
#include <reeve/capability.h>

#include <map>
#include <mutex>
#include <new>
#include <string>

namespace {

class tally
{
  public:
    explicit tally(int64_t begin) : begin_(begin) {}

    int64_t add(const std::string &word)
    {
        std::lock_guard<std::mutex> hold(lock_);
        std::map<std::string, int64_t>::iterator at = counts_.find(word);
        if (at == counts_.end())
            at = counts_.insert(std::make_pair(word, begin_)).first;
        return ++at->second;
    }

  private:
    std::mutex lock_;
    std::map<std::string, int64_t> counts_;
    int64_t begin_;
};

int count(void *self, rv_cap_call *call)
{
    try {
        tally *t = static_cast<tally *>(self);
        rv_cap_iter i = rv_cap_each(rv_cap_get(call->args, "words"));
        rv_cap_out out = RV_CAP_OUT;
        rv_cap_begin(&out, "counts", '[');
        while (rv_cap_next(&i)) {
            char word[101];
            if (rv_cap_str(i.value, word, sizeof word) < 0) {
                rv_cap_out_fini(&out);
                return rv_cap_failf(call, "ValidationError", "word %u is not a text", (unsigned)i.index);
            }
            rv_cap_put_int(&out, NULL, t->add(word));
            rv_cap_progress(call, static_cast<double>(i.index) + 1, 0, word);
        }
        return rv_cap_reply(call, &out);
    } catch (const std::exception &e) {
        return call->fail(call, "ExecutionError", e.what());
    }
}

int open_it(const rv_cap_host *, const char *config, void **self, char *error, uint32_t error_size)
{
    int64_t begin = 0;

    rv_cap_int(rv_cap_get(config, "begin"), &begin);
    *self = new (std::nothrow) tally(begin);
    if (!*self)
        snprintf(error, error_size, "no memory");
    return *self == NULL;
}

void close_it(void *self)
{
    delete static_cast<tally *>(self);
}

const rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "count_words", RV_CAP_JSON({
         "description" : "Count words.",
         "risk" : "read_only",
         "input_schema" : {
             "type" : "object",
             "required" : ["words"],
             "additionalProperties" : false,
             "properties" : {"words" : {"type" : "array", "maxItems" : 20, "items" : {"type" : "string", "maxLength" : 25}}}
         }
     }),
     count},
    RV_CAP_END,
};

} // namespace

RV_CAPABILITY_SET(desc.name = "tally"; desc.version = "1.0.0"; desc.description = "Counts, in C++.";
                  desc.config_schema = RV_CAP_JSON({
                      "type" : "object",
                      "additionalProperties" : false,
                      "properties" : {"begin" : {"type" : "integer"}}
                  });
                  desc.entries = entries; desc.open = open_it; desc.close = close_it)
