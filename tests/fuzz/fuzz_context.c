/* Any JSON read as a conversation or as a context either fails or is written as it is read again, and tells a model the
 * same; any lines read as headers make a context that can be kept, or none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "tests/kit/fuzz.h"

#define MAX_HEADERS 16

static rv_buf text_of(const struct rv_conversation *c)
{
    rv_buf b = RV_BUF_INIT((size_t)64 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_conversation_write_json(c, &w);
    require(b.rc == 0);
    return b;
}

static rv_buf told(const struct rv_conversation *c)
{
    rv_buf b = RV_BUF_INIT((size_t)1 << 20);

    rv_instructions_write(c, NULL, true, 0, &b);
    require(b.rc == 0 && rv_utf8_valid(rv_buf_str(&b), NULL));
    return b;
}

static void check_conversation(json_object *json)
{
    struct rv_conversation *c = NULL, *copy = NULL;
    json_object *again = NULL;
    rv_buf text, copy_text, lines, copy_lines;

    if (rv_conversation_read_json(json, &c, NULL) < 0)
        return;
    require(rv_conversation_check(c, NULL) == 0);
    text = text_of(c);
    require(rv_json_parse(rv_buf_str(&text), NULL, &again, NULL) == 0);
    require(rv_conversation_read_json(again, &copy, NULL) == 0);
    copy_text = text_of(copy);
    require(rv_str_eq(rv_buf_str(&text), rv_buf_str(&copy_text)));
    lines = told(c);
    copy_lines = told(copy);
    require(rv_str_eq(rv_buf_str(&lines), rv_buf_str(&copy_lines)));
    rv_buf_fini(&text);
    rv_buf_fini(&copy_text);
    rv_buf_fini(&lines);
    rv_buf_fini(&copy_lines);
    json_object_put(again);
    rv_conversation_free(copy);
    rv_conversation_free(c);
}

static void check_context(const struct rv_context *c)
{
    struct rv_context copy;
    json_object *again = NULL;
    rv_buf text = RV_BUF_INIT((size_t)1 << 20), copy_text = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&text), copy_w = rv_jw_on(&copy_text);

    require(rv_context_check(c, NULL) == 0 && c->tenant_id && c->tenant_id[0]);
    rv_context_write_json(c, &w);
    require(rv_json_parse(rv_buf_str(&text), NULL, &again, NULL) == 0);
    require(rv_context_read_json(again, &copy, NULL) == 0);
    rv_context_write_json(&copy, &copy_w);
    require(rv_str_eq(rv_buf_str(&text), rv_buf_str(&copy_text)));
    json_object_put(again);
    rv_buf_fini(&text);
    rv_buf_fini(&copy_text);
}

/* "Name:value" a line; who was authenticated is a header here, too. */
static void check_headers(rv_str text)
{
    struct rv_context_header headers[MAX_HEADERS];
    struct rv_context_source from = {.headers = headers};
    rv_arena *room = rv_arena_new((size_t)1 << 20);
    struct rv_context c;
    char *email = NULL;

    require(room != NULL);
    while (text.len > 0 && from.n_headers < MAX_HEADERS) {
        const char *end = memchr(text.ptr, '\n', text.len);
        rv_str line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        const char *colon = line.len > 0 ? memchr(line.ptr, ':', line.len) : NULL;
        rv_str name = {line.ptr, colon ? (size_t)(colon - line.ptr) : 0};
        rv_str value = {line.ptr + name.len + (colon ? 1 : 0), line.len - name.len - (colon ? 1 : 0)};

        text.ptr += line.len + (end ? 1 : 0);
        text.len -= line.len + (end ? 1 : 0);
        if (rv_str_is(name, "auth") && !email)
            email = rv_str_dup(value);
        else
            headers[from.n_headers++] = (struct rv_context_header){name, value};
    }
    from.auth_email = email;
    if (rv_context_read_headers(&from, room, &c, NULL) == 0)
        check_context(&c);
    rv_arena_free(room);
    free(email);
}

RV_FUZZ_TARGET(context)
{
    rv_str text = {(const char *)data, size};
    json_object *json = NULL;
    struct rv_context c;

    if (rv_json_parse(text, NULL, &json, NULL) == 0) {
        check_conversation(json);
        if (rv_context_read_json(json, &c, NULL) == 0)
            check_context(&c);
    }
    json_object_put(json);
    check_headers(text);
    return 0;
}
