/* Phase 2: what a dreamer is told. Three sections: moments, conversations, files. Each is added whole or not at all, so
 * that a dreamer never takes a part of a day for the whole day of one kind. Names are as LOOKUP finds them: a dreamer
 * connects its moments with them. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/dreaming/dreaming_internal.h"
#include "coreengine/conversation/conversation.h"

#define MAX_MOMENTS  50   /* newest ones: what a dream reads has to fit into a model's context */
#define MAX_SESSIONS 5    /* newest ones: as MAX_MOMENTS, what a dream reads has to fit into a model's context */
#define MAX_MESSAGES 20   /* of a session: of MAX_SESSIONS, with MAX_WORDS each, 50,000 code points */
#define MAX_WORDS    500  /* code points of a message: its beginning says what it is about */
#define MAX_FILES    10   /* newest ones: with MAX_FILE each, 20,000 code points */
#define MAX_FILE     2000 /* code points of a file: its first page */
#define MAX_SECTION  ((size_t)4 << 20) /* bytes of one part: the limits above stay far below */

struct section {
    const char *user;
    int64_t since_us;
    rv_buf text;
    int64_t n, most;
};

static void add_words(rv_buf *out, rv_str text, size_t points)
{
    rv_str first = rv_utf8_first(text, points);

    rv_buf_add_str(out, first);
    rv_buf_puts(out, first.len < text.len ? "...\n" : "\n");
}

/* Rows without an owner are not what this user did. */
static bool is_own(const struct section *s, json_object *row)
{
    return strcmp(dream_text(row, "user_id"), s->user) == 0;
}

/* --- moments --- */

static int take_moment(void *self, json_object *row, rv_err **err)
{
    struct section *s = self;
    const char *type = dream_text(row, "moment_type");

    (void)err;
    if (!is_own(s, row) || strcmp(type, "dream") == 0 || strcmp(type, RV_CHUNK_TYPE) == 0)
        return 0;
    rv_buf_printf(&s->text, "- %s (%s, %.16s): ", dream_text(row, "name"), type, dream_text(row, "created_at"));
    add_words(&s->text, rv_str_of(dream_text(row, "summary")), RV_CHUNK_MAX_SUMMARY);
    return ++s->n == s->most ? RV_STORE_ENOUGH : 0;
}

static int read_moments(rv_store *store, const struct rv_store_scope *scope, struct section *s, rv_err **err)
{
    const struct rv_entity_filter filter = {.since_us = s->since_us, .limit = RV_ENTITY_ALL};

    s->most = MAX_MOMENTS;
    return rv_store_find_entities(store, scope, &(const struct rv_entities_of){"moments", &filter}, take_moment, s,
                                  err);
}

/* --- conversations --- */

struct words {
    char *items[MAX_MESSAGES]; /* newest first; owned */
    size_t n;
    int64_t since_us;
};

static int take_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct words *w = self;
    rv_buf line = RV_BUF_INIT(MAX_SECTION);
    int type = rv_message_type_of(rv_str_of(m->type));

    if (m->created_us < w->since_us)
        return RV_STORE_ENOUGH;
    if (!m->has_content || m->content.len == 0 || (type != RV_MESSAGE_USER && type != RV_MESSAGE_ASSISTANT))
        return 0;
    rv_buf_printf(&line, "%s: ", m->type);
    add_words(&line, m->content, MAX_WORDS);
    w->items[w->n] = line.rc == 0 ? rv_buf_steal(&line, NULL) : NULL;
    rv_buf_fini(&line);
    if (!w->items[w->n])
        return RV_FAIL(err, RV_E_NOMEM, "read a conversation");
    return ++w->n == MAX_MESSAGES ? RV_STORE_ENOUGH : 0;
}

static int read_session(rv_store *store, const struct rv_store_scope *scope, const struct dream_session *session,
                        struct section *s, rv_err **err)
{
    const struct rv_message_filter filter = {.newest_first = true};
    struct words w = {.since_us = s->since_us};
    int rc = rv_store_read_messages(store, scope, &(const struct rv_messages_of){session->id, &filter}, take_message,
                                    &w, err);

    if (rc == 0 && w.n > 0) {
        rv_buf_printf(&s->text, "### %s\n", session->name);
        s->n++;
    }
    for (size_t i = w.n; i-- > 0; free(w.items[i]))
        if (rc == 0)
            rv_buf_puts(&s->text, w.items[i]);
    return rc;
}

static int read_sessions(rv_store *store, const struct rv_store_scope *scope, struct section *s, rv_err **err)
{
    struct dream_sessions sessions;
    int rc = dream_sessions_read(store, scope, MAX_SESSIONS, s->since_us, &sessions, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < sessions.n; i++)
        rc = read_session(store, scope, &sessions.items[i], s, err);
    dream_sessions_fini(&sessions);
    return rc;
}

/* --- files --- */

static int take_file(void *self, json_object *row, rv_err **err)
{
    struct section *s = self;

    (void)err;
    if (!is_own(s, row) || dream_is_sealed(row))
        return 0;
    rv_buf_printf(&s->text, "### %s\n", dream_text(row, "name"));
    add_words(&s->text, rv_str_of(dream_text(row, "parsed_content")), MAX_FILE);
    return ++s->n == s->most ? RV_STORE_ENOUGH : 0;
}

static int read_files(rv_store *store, const struct rv_store_scope *scope, struct section *s, rv_err **err)
{
    const struct rv_entity_where where = {"processing_status", json_object_new_string("completed")};
    const struct rv_entity_filter filter = {
        .where = &where, .n_where = 1, .since_us = s->since_us, .limit = RV_ENTITY_ALL};
    int rc = 0;

    s->most = MAX_FILES;
    if (!where.value)
        return RV_FAIL(err, RV_E_NOMEM, "look for files");
    rc = rv_store_find_entities(store, scope, &(const struct rv_entities_of){"files", &filter}, take_file, s, err);
    json_object_put(where.value);
    return rc;
}

/* --- together --- */

static const struct {
    const char *title;
    int (*read)(rv_store *store, const struct rv_store_scope *scope, struct section *s, rv_err **err);
} sections[] = {
    {"## Moments\n", read_moments},
    {"## Conversations\n", read_sessions},
    {"## Files\n", read_files},
};

static int add_section(size_t i, struct section *s, int64_t max_tokens, struct rv_dream_context *out, rv_err **err)
{
    int64_t *const counts[] = {&out->n_moments, &out->n_sessions, &out->n_files};
    int64_t tokens = rv_tokens_estimate(rv_buf_str(&s->text)) + rv_tokens_estimate(rv_str_of(sections[i].title));
    int rc = rv_buf_check(&s->text, "what was done lately", err);

    if (rc < 0 || s->n == 0 || out->tokens + tokens > max_tokens)
        return rc;
    rv_buf_puts(&out->text, out->text.len > 0 ? "\n" : "");
    rv_buf_puts(&out->text, sections[i].title);
    rv_buf_add_str(&out->text, rv_buf_str(&s->text));
    out->tokens += tokens;
    *counts[i] = s->n;
    return rv_buf_check(&out->text, "what was done lately", err);
}

int rv_app_dream_build_context(rv_store *store, const struct rv_store_scope *scope,
                               const struct rv_dream_window *window, struct rv_dream_context *out, rv_err **err)
{
    int rc = dream_check_user(scope, err);

    *out = (struct rv_dream_context){.text = RV_BUF_INIT(3 * MAX_SECTION)};
    if (rc == 0 && (window->days < 1 || window->days > RV_DREAM_MAX_DAYS))
        rc = RV_FAIL(err, RV_E_INVALID, "days has to be from 1 to %d, not %lld", RV_DREAM_MAX_DAYS,
                     (long long)window->days);
    if (rc == 0)
        out->since_us = window->now_us - window->days * RV_US_PER_DAY;
    for (size_t i = 0; rc == 0 && i < RV_COUNT(sections); i++) {
        struct section s = {.user = scope->user, .since_us = out->since_us, .text = RV_BUF_INIT(MAX_SECTION)};
        rc = sections[i].read(store, scope, &s, err);
        if (rc == 0)
            rc = add_section(i, &s, window->max_tokens, out, err);
        rv_buf_fini(&s.text);
    }
    if (rc < 0)
        rv_buf_fini(&out->text);
    return rc;
}
