/* Transcripts: clients send all that was said. Taken is what is new, which stands at the end: results of tools that the
 * client ran, then a message of the user. What came before is read for callers that keep no session: with each call of
 * a tool followed by its result, as models need it. System messages are put aside in any case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/requests_internal.h"

/* --- content --- */

static int add_text(struct req *q, rv_buf *to, rv_str text, const char *between)
{
    if (to->len > 0 && text.len > 0)
        rv_buf_puts(to, between);
    rv_buf_add_str(to, text);
    if (to->rc == RV_E_NOMEM)
        return req_no_memory(q);
    if (to->rc < 0)
        return RV_FAIL(q->err, RV_E_LIMIT, "%s: the text has more than %zu bytes", q->path, to->max);
    return 0;
}

/* {type, url | data, media_type, name} of the engine, out of what the part says; texts may be NULL. */
static int add_attachment(struct req *q, const char *type, const char *url, const char *data, const char *media_type,
                          const char *name)
{
    if (url && strncmp(url, "data:", 5) != 0)
        return req_unsupported(q, "must be a data: URL: the server fetches nothing for clients");
    json_object *item = json_object_new_object();
    struct rv_json_build b = {.err = q->err, .rc = item ? 0 : req_no_memory(q)};
    rv_err *cause = NULL;
    int rc = 0;

    rv_json_build_text(&b, item, "type", type);
    if (url)
        rv_json_build_text(&b, item, "url", url);
    if (data)
        rv_json_build_text(&b, item, "data", data);
    if (media_type && !url)
        rv_json_build_text(&b, item, "media_type", media_type);
    if (name)
        rv_json_build_text(&b, item, "name", name);
    rc = b.rc;
    if (rc == 0 && !q->out->attachments)
        rc = req_make(q, json_object_new_array(), &q->out->attachments);
    if (rc == 0 && rv_attachments_add(q->out->attachments, item, &cause) < 0)
        rc = rv_err_is(cause, RV_E_NOMEM) ? req_no_memory(q) : req_wrong(q, "%s", rv_err_text(cause));
    rv_err_free(cause);
    json_object_put(item);
    return rc;
}

/* AG-UI 1.0: {type: image | audio | video | document, source: {type: data | url, value, mimeType}}. */
static int add_source(struct req *q, json_object *part, const char *type)
{
    const char *kind = NULL, *value = NULL, *media_type = NULL;
    json_object *source = NULL;

    int rc = req_typed(q, part, "source", json_type_object, &source);
    if (rc < 0)
        return rc;
    size_t mark = req_enter(q, "source");
    if (!source)
        return req_wrong(q, "is missing: {type: \"data\", value, mimeType} or {type: \"url\", value}");
    rc = req_text(q, source, "type", &kind);
    if (rc == 0)
        rc = req_text(q, source, "value", &value);
    if (rc == 0)
        rc = req_text(q, source, "mimeType", &media_type);
    if (rc < 0)
        return rc;
    if (!kind || (strcmp(kind, "data") != 0 && strcmp(kind, "url") != 0)) {
        req_enter(q, "type");
        return req_wrong(q, "must be \"data\" or \"url\"");
    }
    bool by_url = strcmp(kind, "url") == 0;
    rc = add_attachment(q, strcmp(type, "image") == 0 ? "image" : "file", by_url ? value : NULL, by_url ? NULL : value,
                        media_type, NULL);
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

/* p8: {type: binary, mimeType, url | data, filename?}. */
static int add_binary(struct req *q, json_object *part)
{
    const char *media_type = NULL, *url = NULL, *data = NULL, *name = NULL;

    int rc = req_text(q, part, "mimeType", &media_type);
    if (rc == 0)
        rc = req_text(q, part, "url", &url);
    if (rc == 0)
        rc = req_text(q, part, "data", &data);
    if (rc == 0)
        rc = req_text(q, part, "filename", &name);
    bool is_image = media_type && strncmp(media_type, "image/", 6) == 0;
    return rc == 0 ? add_attachment(q, is_image ? "image" : "file", url, url ? NULL : data, media_type, name) : rc;
}

/* OpenAI: {type: image_url, image_url: {url}}, {type: input_image, image_url: URL}. */
static int add_image_url(struct req *q, json_object *part)
{
    json_object *image = req_member(part, "image_url");
    const char *url = NULL;
    int rc = 0;

    if (json_object_is_type(image, json_type_object)) {
        size_t mark = req_enter(q, "image_url");
        rc = req_text(q, image, "url", &url);
        if (rc == 0)
            req_back(q, mark);
    } else {
        rc = req_text(q, part, "image_url", &url);
    }
    if (rc == 0 && !url) {
        req_enter(q, "image_url");
        return req_wrong(q, "is missing: an https: or data: URL");
    }
    return rc == 0 ? add_attachment(q, "image", url, NULL, NULL, NULL) : rc;
}

/* OpenAI: {type: file, file: {file_data, filename}}, {type: input_file, file_data | file_url, filename}. */
static int add_file(struct req *q, json_object *part)
{
    const char *data = NULL, *url = NULL, *name = NULL;
    json_object *file = NULL;

    int rc = req_typed(q, part, "file", json_type_object, &file);
    size_t mark = file ? req_enter(q, "file") : q->path_len;
    file = file ? file : part;
    if (rc == 0)
        rc = req_text(q, file, "file_data", &data);
    if (rc == 0)
        rc = req_text(q, file, "file_url", &url);
    if (rc == 0)
        rc = req_text(q, file, "filename", &name);
    if (rc == 0 && !data && !url)
        return req_wrong(q, "has neither file_data nor file_url: files that were uploaded elsewhere are not supported");
    if (rc == 0)
        rc = add_attachment(q, "file", data ? data : url, NULL, NULL, name);
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

/* OpenAI: {type: input_audio, input_audio: {data, format}}. */
static int add_audio(struct req *q, json_object *part)
{
    const char *data = NULL, *format = NULL;
    json_object *audio = NULL;
    char media_type[64];

    int rc = req_typed(q, part, "input_audio", json_type_object, &audio);
    if (rc < 0)
        return rc;
    size_t mark = req_enter(q, "input_audio");
    if (!audio)
        return req_wrong(q, "is missing: {data, format}");
    rc = req_text(q, audio, "data", &data);
    if (rc == 0)
        rc = req_text(q, audio, "format", &format);
    snprintf(media_type, sizeof media_type, "audio/%.40s", format ? format : "wav");
    if (rc == 0)
        rc = add_attachment(q, "file", NULL, data, media_type, NULL);
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

#define LEGAL_PARTS                                                                                                    \
    "must be text, image, audio, video, document, binary, image_url, input_audio, file, input_text, input_image, "     \
    "input_file, output_text or refusal"

/* to NULL: only the text is wanted, attachments are passed over. */
static int read_part(struct req *q, json_object *part, rv_buf *to, bool with_attachments)
{
    static const char *const texts[] = {"text", "input_text", "output_text"};
    static const char *const media[] = {"image", "audio", "video", "document"};
    const char *type = NULL, *text = NULL;

    if (!json_object_is_type(part, json_type_object))
        return req_wrong_type(q, part, "an object");
    int rc = req_text(q, part, "type", &type);
    if (rc < 0)
        return rc;
    if (type && (is_one_of(type, texts, RV_COUNT(texts)) || strcmp(type, "refusal") == 0)) {
        const char *key = strcmp(type, "refusal") == 0 ? "refusal" : "text";
        rc = req_text(q, part, key, &text);
        return rc == 0 ? add_text(q, to, rv_str_of(text), " ") : rc;
    }
    bool is_media = type && is_one_of(type, media, RV_COUNT(media));
    bool is_image = type && (strcmp(type, "image_url") == 0 || strcmp(type, "input_image") == 0);
    bool is_file = type && (strcmp(type, "file") == 0 || strcmp(type, "input_file") == 0);
    bool is_audio = type && strcmp(type, "input_audio") == 0, is_binary = type && strcmp(type, "binary") == 0;
    if (!is_media && !is_image && !is_file && !is_audio && !is_binary) {
        req_enter(q, "type");
        return type ? req_wrong(q, LEGAL_PARTS ", and is \"%.40s\"", type)
                    : req_wrong(q, "is missing: it " LEGAL_PARTS);
    }
    if (!with_attachments)
        return 0;
    return is_media   ? add_source(q, part, type)
           : is_image ? add_image_url(q, part)
           : is_file  ? add_file(q, part)
           : is_audio ? add_audio(q, part)
                      : add_binary(q, part);
}

/* A text, or parts: texts with one blank between them. */
static int read_content(struct req *q, json_object *content, rv_buf *to, bool with_attachments)
{
    int rc = 0;

    if (!content)
        return 0;
    if (json_object_is_type(content, json_type_string))
        return add_text(q, to, rv_json_str(content), " ");
    if (!json_object_is_type(content, json_type_array))
        return req_wrong_type(q, content, "a text or a list of parts");
    for (size_t i = 0; i < json_object_array_length(content) && rc == 0; i++) {
        size_t mark = req_enter_at(q, i);
        rc = read_part(q, json_object_array_get_idx(content, i), to, with_attachments);
        if (rc == 0)
            req_back(q, mark);
    }
    return rc;
}

/* --- the new message --- */

static size_t enter_message(struct req *q, const struct req_messages *m, const struct req_message *x,
                            const char *member)
{
    size_t mark = req_enter(q, m->key);

    if (m->is_string)
        return mark;
    req_enter_at(q, x->at);
    if (member)
        req_enter(q, member);
    return mark;
}

static int take_message(struct req *q, const struct req_messages *m, const struct req_message *x)
{
    struct rv_request *r = q->out;
    size_t mark = enter_message(q, m, x, "content");

    int rc = read_content(q, x->content, &r->text, true);
    if (rc < 0)
        return rc;
    bool empty = r->text.len == 0 && !r->attachments;
    if (empty)
        return req_wrong(q, "is empty: the new message of the user needs text, an image or a file");
    req_back(q, mark);
    r->has_message = true;
    r->message_id = x->id;
    return 0;
}

static int take_result(struct req *q, const struct req_messages *m, const struct req_message *x,
                       struct rv_request_result *out)
{
    size_t mark = enter_message(q, m, x, "content");

    *out =
        (struct rv_request_result){.call_id = x->call_id, .error = x->error, .room = RV_BUF_INIT(RV_REQUEST_MAX_TEXT)};
    q->out->n_results++;
    int rc = read_content(q, x->content, &out->room, false);
    out->content = rv_buf_str(&out->room);
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

/* results are m->items[from..upto) that are of tools. */
static int take_results(struct req *q, const struct req_messages *m, size_t from, size_t upto)
{
    size_t n = 0;
    int rc = 0;

    for (size_t i = from; i < upto; i++)
        n += m->items[i].role == REQ_TOOL;
    if (n == 0)
        return 0;
    if (n > RV_REQUEST_MAX_RESULTS) {
        req_enter(q, m->key);
        return RV_FAIL(q->err, RV_E_LIMIT, "%s: ends with more than %d results of tools", q->path,
                       RV_REQUEST_MAX_RESULTS);
    }
    q->out->results = calloc(n, sizeof *q->out->results);
    if (!q->out->results)
        return req_no_memory(q);
    for (size_t i = from; i < upto && rc == 0; i++)
        if (m->items[i].role == REQ_TOOL)
            rc = take_result(q, m, &m->items[i], &q->out->results[q->out->n_results]);
    return rc;
}

/* --- what came before --- */

static int add_row(struct req *q, const char *role, rv_str content, json_object **out)
{
    struct rv_json_build b = {.err = q->err};
    int rc = 0;

    if (!q->out->history)
        rc = req_make(q, json_object_new_array(), &q->out->history);
    if (rc < 0)
        return rc;
    *out = rv_json_build(&b, q->out->history, NULL, json_object_new_object());
    rv_json_build_text(&b, *out, "role", role);
    if (content.ptr)
        rv_json_build(&b, *out, "content", json_object_new_string_len(content.ptr, (int)content.len));
    return b.rc;
}

static const struct req_message *result_of(const struct req_messages *m, size_t from, const char *call_id)
{
    for (size_t i = from; i < m->n && m->items[i].role != REQ_USER; i++)
        if (m->items[i].role == REQ_TOOL && strcmp(m->items[i].call_id, call_id) == 0)
            return &m->items[i];
    return NULL;
}

static int add_call(struct req *q, json_object *row, const char *id, const char *name, const char *arguments)
{
    struct rv_json_build b = {.err = q->err};
    json_object *calls = rv_json_get_arr(row, "tool_calls");

    if (!calls)
        calls = rv_json_build(&b, row, "tool_calls", json_object_new_array());
    json_object *call = rv_json_build(&b, calls, NULL, json_object_new_object());
    rv_json_build_text(&b, call, "id", id);
    rv_json_build_text(&b, call, "name", name);
    rv_json_build_text(&b, call, "arguments", arguments ? arguments : "{}");
    return b.rc;
}

/* The results of the calls of a row, in their order. */
static int add_results(struct req *q, const struct req_messages *m, size_t at, json_object *row)
{
    json_object *calls = rv_json_get_arr(row, "tool_calls"), *result = NULL;
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        struct rv_json_build b = {.err = q->err};
        const char *id = rv_json_text_or(call, "id", ""), *name = rv_json_text_or(call, "name", "");
        rv_buf text = RV_BUF_INIT(RV_REQUEST_MAX_TEXT);
        const struct req_message *x = result_of(m, at, id);
        rc = x ? read_content(q, x->content, &text, false) : 0;
        if (rc == 0)
            rc = add_row(q, "tool", (rv_str){rv_buf_cstr(&text), text.len}, &result);
        if (rc == 0) {
            rv_json_build_text(&b, result, "tool_call_id", id);
            rv_json_build_text(&b, result, "name", name);
            rc = b.rc;
        }
        rv_buf_fini(&text);
    }
    return rc;
}

/* OpenAI and AG-UI: {id, type: "function", function: {name, arguments}}. */
static int add_answered(struct req *q, const struct req_messages *m, size_t at, json_object *row)
{
    const struct req_message *x = &m->items[at];
    size_t n = x->calls ? json_object_array_length(x->calls) : 0;
    int rc = 0;

    if (x->name && x->call_id && result_of(m, at + 1, x->call_id))
        return add_call(q, row, x->call_id, x->name, x->arguments);
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(x->calls, i), *function = rv_json_get_obj(call, "function");
        const char *id = NULL, *name = NULL;
        const char *arguments = rv_json_text_or(function, "arguments", NULL);
        if (rv_json_get_text(call, "id", &id) && rv_json_get_text(function, "name", &name) && result_of(m, at + 1, id))
            rc = add_call(q, row, id, name, arguments);
    }
    return rc;
}

static int add_assistant(struct req *q, const struct req_messages *m, size_t at)
{
    json_object *history, *row = NULL;
    rv_buf text = RV_BUF_INIT(RV_REQUEST_MAX_TEXT);

    int rc = read_content(q, m->items[at].content, &text, false);
    if (rc == 0)
        rc = add_row(q, "assistant", text.len > 0 ? rv_buf_str(&text) : (rv_str){NULL, 0}, &row);
    if (rc == 0)
        rc = add_answered(q, m, at, row);
    if (rc == 0)
        rc = add_results(q, m, at + 1, row);
    history = q->out->history;
    if (rc == 0 && text.len == 0 && !rv_json_get_arr(row, "tool_calls")) /* calls without a result, and no text */
        rv_json_cut(history, json_object_array_length(history) - 1, 1);
    rv_buf_fini(&text);
    return rc;
}

static int add_earlier(struct req *q, const struct req_messages *m, size_t at)
{
    const struct req_message *x = &m->items[at];
    rv_buf text = RV_BUF_INIT(RV_REQUEST_MAX_TEXT);
    json_object *row = NULL;

    size_t mark = enter_message(q, m, x, "content");
    int rc = 0;
    if (x->role == REQ_ASSISTANT) {
        rc = add_assistant(q, m, at);
    } else if (x->role == REQ_USER) {
        rc = read_content(q, x->content, &text, false);
        if (rc == 0)
            rc = add_row(q, "user", (rv_str){rv_buf_cstr(&text), text.len}, &row);
    } else if (x->role == REQ_SYSTEM) {
        rc = read_content(q, x->content, &text, false);
        if (rc == 0)
            rc = add_text(q, &q->out->system, rv_buf_str(&text), "\n\n");
    }
    if (rc == 0)
        req_back(q, mark);
    rv_buf_fini(&text);
    return rc;
}

/* --- the whole transcript --- */

static bool is_passed_over(const struct req_message *x)
{
    return x->role == REQ_OTHER || x->role == REQ_SYSTEM;
}

int req_take(struct req *q, const struct req_messages *m, unsigned how)
{
    bool with_history = how & REQ_WITH_HISTORY, any_end = how & REQ_ANY_END;
    size_t end = m->n, user = m->n, from;
    int rc = 0;

    while (end > 0 && (is_passed_over(&m->items[end - 1]) || (any_end && m->items[end - 1].role != REQ_USER)))
        end--;
    if (end > 0 && m->items[end - 1].role == REQ_USER)
        user = end - 1;
    else
        end = m->n;
    from = user < m->n ? user : end;
    while (from > 0 && (m->items[from - 1].role == REQ_TOOL || is_passed_over(&m->items[from - 1])))
        from--;
    if (!any_end)
        rc = take_results(q, m, from, user < m->n ? user : end);
    if (rc == 0 && user < m->n)
        rc = take_message(q, m, &m->items[user]);
    for (size_t i = 0; with_history && i < m->n && rc == 0; i++)
        if (i != user && (i < user || m->items[i].role == REQ_SYSTEM))
            rc = add_earlier(q, m, i);
    return rc;
}
