/* Images and files of a request. What an expression gave becomes the form of llm.h, or an error that says what is wrong
 * with it: a value may come from a caller, a tool or a model. Files of this machine are never named: a path that a
 * model wrote would send what it names. */
#include "coreengine/base/base.h"
#include "coreengine/model/llm/llm.h"

#include <json-c/linkhash.h>
#include <string.h>
#include <strings.h>

#define MAX_NAME 255 /* bytes, as a file system has; a longer name is an error */
#define DATA     "data:"

/* One that is being read; borrowed. */
struct found {
    rv_str type, url, data, media_type, name;
};

static bool begins_with(rv_str text, const char *head)
{
    return text.len >= strlen(head) && strncasecmp(text.ptr, head, strlen(head)) == 0;
}

static bool is_image_type(rv_str media_type)
{
    return begins_with(media_type, "image/");
}

/* --- the parts --- */

/* Texts that stand in one line of a request. */
static bool is_plain(rv_str s, size_t max)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
            return false;
    return s.len > 0 && s.len <= max;
}

static bool is_base64_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

static int too_large(rv_err **cause)
{
    return RV_FAIL(cause, RV_E_INVALID, "the attachments of a request have more than %zu MiB in base64",
                   RV_LLM_MAX_ATTACHMENT_BYTES >> 20);
}

/* Base64 without the line breaks that tools put in; left: bytes that the request may still have. */
static int take_base64(rv_str text, size_t left, rv_buf *out, rv_err **cause)
{
    size_t n_pads = 0;

    if (text.len > 2 * RV_LLM_MAX_ATTACHMENT_BYTES)
        return too_large(cause);
    *out = RV_BUF_INIT(text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t')
            continue;
        n_pads += c == '=';
        if (c == '=' ? n_pads > 2 : n_pads > 0 || !is_base64_char(c))
            return RV_FAIL(cause, RV_E_INVALID, "its data is not base64: byte %zu does not belong there", i + 1);
        rv_buf_putc(out, c);
    }
    int rc = rv_buf_check(out, "an attachment", cause);
    if (rc < 0)
        return rc;
    if (out->len > left)
        return too_large(cause);
    if (out->len == 0 || out->len % 4 != 0)
        return RV_FAIL(cause, RV_E_INVALID, "its data is not base64: %s",
                       out->len == 0 ? "there is none" : "its length is not a multiple of 4");
    return 0;
}

/* data:image/png;base64,AAAA */
static int take_data_url(rv_str url, struct found *f, rv_err **cause)
{
    const char *comma = memchr(url.ptr, ',', url.len);
    rv_str head = {url.ptr + strlen(DATA), comma ? (size_t)(comma - url.ptr) - strlen(DATA) : 0};
    const char *end = comma ? memchr(head.ptr, ';', head.len) : NULL;

    if (!end || head.len < 7 || strncasecmp(head.ptr + head.len - 7, ";base64", 7) != 0)
        return RV_FAIL(cause, RV_E_INVALID, "its data: URL must be data:MEDIA_TYPE;base64,...");
    f->url = (rv_str){NULL, 0};
    f->data = (rv_str){comma + 1, url.len - (size_t)(comma + 1 - url.ptr)};
    if (f->data.len == 0)
        return RV_FAIL(cause, RV_E_INVALID, "its data: URL is empty");
    if (f->media_type.len == 0)
        f->media_type = (rv_str){head.ptr, (size_t)(end - head.ptr)};
    return 0;
}

static int take_url(rv_str url, struct found *f, rv_err **cause)
{
    if (begins_with(url, DATA))
        return take_data_url(url, f, cause);
    if (!begins_with(url, "https://") || url.len == strlen("https://"))
        return RV_FAIL(cause, RV_E_INVALID, "\"%.*s\" is not an https: or data: URL", RV_STR_ARG(rv_utf8_cut(url, 60)));
    if (!is_plain(url, RV_LLM_MAX_URL) || memchr(url.ptr, ' ', url.len))
        return RV_FAIL(cause, RV_E_INVALID, "its URL is longer than %d bytes or has blanks in it", RV_LLM_MAX_URL);
    f->url = url;
    return 0;
}

/* --- one of them --- */

static int take_object(json_object *object, struct found *f, rv_err **cause)
{
    static const char *const keys[] = {"type", "url", "data", "media_type", "name"};
    rv_str *const parts[] = {&f->type, &f->url, &f->data, &f->media_type, &f->name};

    json_object_object_foreach (object, key, value) {
        size_t i = 0;
        while (i < RV_COUNT(keys) && strcmp(key, keys[i]) != 0)
            i++;
        if (i == RV_COUNT(keys))
            return RV_FAIL(cause, RV_E_INVALID,
                           strcmp(key, "path") == 0
                               ? "it has \"%.*s\", and files are not read: give their bytes as data"
                               : "it has \"%.*s\": type, url, data, media_type and name are known",
                           RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 60)));
        if (value && !json_object_is_type(value, json_type_string))
            return RV_FAIL(cause, RV_E_INVALID, "its %s must be a text, not %s", keys[i], rv_json_type_text(value));
        *parts[i] = rv_json_str(value);
    }
    if ((f->url.len > 0) == (f->data.len > 0))
        return RV_FAIL(cause, RV_E_INVALID, "it must have either url or data");
    return f->url.len > 0 ? take_url(f->url, f, cause) : 0;
}

/* Set the type of an address by its end. */
static void guess_type(struct found *f)
{
    static const struct {
        const char *end, *type, *media_type;
    } ends[] = {{".png", "image", "image/png"}, {".jpg", "image", "image/jpeg"},  {".jpeg", "image", "image/jpeg"},
                {".gif", "image", "image/gif"}, {".webp", "image", "image/webp"}, {".pdf", "file", "application/pdf"}};
    size_t len = 0;

    while (len < f->url.len && f->url.ptr[len] != '?' && f->url.ptr[len] != '#')
        len++;
    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        size_t n = strlen(ends[i].end);
        if (len < n || strncasecmp(f->url.ptr + len - n, ends[i].end, n) != 0)
            continue;
        f->type = rv_str_of(ends[i].type);
        f->media_type = rv_str_of(ends[i].media_type);
    }
}

static int settle_type(struct found *f, rv_err **cause)
{
    bool is_file = rv_str_is(f->type, "file");

    if (f->type.len > 0 && !is_file && !rv_str_is(f->type, "image"))
        return RV_FAIL(cause, RV_E_INVALID, "its type is \"%.*s\": image and file are known",
                       RV_STR_ARG(rv_utf8_cut(f->type, 60)));
    if (f->media_type.len > 0 && !rv_is_media_type(f->media_type))
        return RV_FAIL(cause, RV_E_INVALID, "its media_type is \"%.*s\", which is none",
                       RV_STR_ARG(rv_utf8_cut(f->media_type, 60)));
    if (f->name.len > 0 && !is_plain(f->name, MAX_NAME))
        return RV_FAIL(cause, RV_E_INVALID, "its name is longer than %d bytes or has control characters", MAX_NAME);
    if (f->data.len > 0 && f->media_type.len == 0)
        return RV_FAIL(cause, RV_E_INVALID, "its data needs a media_type, such as image/png");
    if (f->type.len == 0 && f->media_type.len > 0)
        f->type = is_image_type(f->media_type) ? RV_STR_LIT("image") : RV_STR_LIT("file");
    if (f->type.len == 0)
        guess_type(f);
    if (f->type.len == 0)
        return RV_FAIL(cause, RV_E_INVALID, "its URL does not tell what it is: give {url, type} with image or file");
    if (rv_str_is(f->type, "image") && f->media_type.len > 0 && !is_image_type(f->media_type))
        return RV_FAIL(cause, RV_E_INVALID, "its type is image, and its media_type %.*s", RV_STR_ARG(f->media_type));
    return 0;
}

static size_t bytes_left(json_object *list)
{
    size_t left = RV_LLM_MAX_ATTACHMENT_BYTES;

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *data = NULL;
        json_object_object_get_ex(json_object_array_get_idx(list, i), "data", &data);
        left -= rv_json_str(data).len;
    }
    return left;
}

static int check_count(json_object *list, rv_err **cause)
{
    return json_object_array_length(list) < RV_LLM_MAX_ATTACHMENTS
               ? 0
               : RV_FAIL(cause, RV_E_INVALID, "a request has at most %d attachments", RV_LLM_MAX_ATTACHMENTS);
}

static int append(json_object *list, const struct found *f, rv_err **err)
{
    json_object *item = json_object_new_object();
    rv_buf data = RV_BUF_INIT(0);
    int rc = rv_json_push_take(list, item, err);

    if (rc == 0 && f->data.len > 0)
        rc = take_base64(f->data, bytes_left(list), &data, err);
    const struct {
        const char *key;
        rv_str text;
    } members[] = {{"type", f->type},
                   {"url", f->url},
                   {"data", rv_buf_str(&data)},
                   {"media_type", f->media_type},
                   {"name", f->name}};
    for (size_t i = 0; i < RV_COUNT(members) && rc == 0; i++)
        if (members[i].text.len > 0)
            rc = rv_json_set_str(item, members[i].key, members[i].text, err);
    rv_buf_fini(&data);
    return rc;
}

static int add_one(json_object *list, json_object *value, rv_err **cause)
{
    struct found f = {0};
    int rc = check_count(list, cause);

    if (rc < 0)
        return rc;
    if (json_object_is_type(value, json_type_string))
        rc = take_url(rv_json_str(value), &f, cause);
    else if (json_object_is_type(value, json_type_object))
        rc = take_object(value, &f, cause);
    else
        rc = RV_FAIL(cause, RV_E_INVALID,
                     "%s is not an attachment: give a URL as text, or an object with url, or with data and media_type",
                     rv_json_type_text(value));
    if (rc == 0)
        rc = settle_type(&f, cause);
    return rc == 0 ? append(list, &f, cause) : rc;
}

int rv_attachments_add(json_object *list, json_object *value, rv_err **cause)
{
    int rc = 0;

    if (!value)
        return 0;
    if (!json_object_is_type(value, json_type_array))
        return add_one(list, value, cause);
    for (size_t i = 0; i < json_object_array_length(value) && rc == 0; i++) {
        json_object *item = json_object_array_get_idx(value, i);
        rc = item ? add_one(list, item, cause) : 0;
        if (rc < 0 && rc != RV_E_NOMEM)
            rc = RV_WRAP(cause, rc, "item %zu", i);
    }
    return rc;
}

int rv_attachments_keep(json_object *list, json_object *attachment, rv_err **cause)
{
    json_object *data = NULL;
    int rc = check_count(list, cause);

    json_object_object_get_ex(attachment, "data", &data);
    if (rc == 0 && rv_json_str(data).len > bytes_left(list))
        rc = too_large(cause);
    return rc == 0 ? rv_json_push_ref(list, attachment, cause) : rc;
}

/* --- what they may come to in a model's window --- */

static bool is_text_type(rv_str media_type)
{
    static const char *const types[] = {"application/json", "application/xml", "application/yaml"};

    for (size_t i = 0; i < RV_COUNT(types); i++)
        if (media_type.len == strlen(types[i]) && begins_with(media_type, types[i]))
            return true;
    return begins_with(media_type, "text/");
}

static int64_t estimate_one(json_object *attachment)
{
    json_object *type = NULL, *data = NULL, *media_type = NULL;

    json_object_object_get_ex(attachment, "type", &type);
    json_object_object_get_ex(attachment, "data", &data);
    json_object_object_get_ex(attachment, "media_type", &media_type);
    if (rv_str_is(rv_json_str(type), "image"))
        return RV_LLM_IMAGE_ESTIMATE;
    if (!data)
        return RV_LLM_LINK_ESTIMATE;
    int64_t bytes = (int64_t)(rv_json_str(data).len / 4 * 3);
    if (is_text_type(rv_json_str(media_type)))
        return bytes / 4 + 1;
    int64_t tokens = bytes / RV_LLM_BYTES_PER_TOKEN;
    return tokens > RV_LLM_IMAGE_ESTIMATE ? tokens : RV_LLM_IMAGE_ESTIMATE;
}

int64_t rv_attachments_estimate(json_object *list)
{
    size_t n = list ? json_object_array_length(list) : 0;
    int64_t tokens = 0;

    for (size_t i = 0; i < n; i++)
        tokens += estimate_one(json_object_array_get_idx(list, i));
    return tokens;
}
