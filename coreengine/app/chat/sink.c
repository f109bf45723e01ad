/* Whose text of a turn is shown, as a small state machine: see the header. */
#include "coreengine/app/streams.h"

#include <stdlib.h>
#include <string.h>

/* --- repetitions --- */

struct rv_chat_said {
    const struct rv_origin *by;
    char *text; /* owned */
    size_t len;
};

/* The memory of the list is kept. */
static void told_clear(struct rv_chat_told *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->items[i].text);
    t->n = 0;
}

static void told_fini(struct rv_chat_told *t)
{
    told_clear(t);
    free(t->items);
    *t = (struct rv_chat_told){0};
}

/* A reply that was shown, without white space at its borders. When memory is short it is forgotten: then a repetition
 * is shown. */
static void told_add(struct rv_chat_told *t, const struct rv_origin *by, rv_str text)
{
    rv_str words = rv_str_trim(text);

    if (words.len == 0)
        return;
    if (!rv_has_room(&t->items, &t->cap, t->n + 1, sizeof *t->items))
        return;
    char *copy = rv_str_dup(words);
    if (copy)
        t->items[t->n++] = (struct rv_chat_said){by, copy, words.len};
}

static bool is_asked_by(const struct rv_origin *by, const struct rv_origin *who)
{
    do
        by = by ? by->parent : NULL;
    while (by && by != who);
    return by == who;
}

/* Has an agent below `who` given any text? */
static bool told_any(const struct rv_chat_told *t, const struct rv_origin *who)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].by && is_asked_by(t->items[i].by, who))
            return true;
    return false;
}

/* The longest reply that text begins with; *undecided: text is the beginning of one, or ends with one. */
static size_t longest(const struct rv_chat_told *t, const struct rv_origin *who, rv_str text, bool *undecided)
{
    size_t found = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct rv_chat_said *s = &t->items[i];
        size_t common = s->len < text.len ? s->len : text.len;
        if (!s->by || !is_asked_by(s->by, who) || memcmp(s->text, text.ptr, common) != 0)
            continue;
        size_t end = common;
        while (end < text.len && strchr(" \t\r", text.ptr[end]))
            end++;
        *undecided = *undecided || text.len < s->len || end == text.len;
        if (text.len >= s->len && s->len > found && (end == text.len || text.ptr[end] == '\n'))
            found = s->len;
    }
    return found;
}

/* The number of bytes at the beginning of text that only repeat replies of agents below `who`: whole replies, each
 * followed by the end of a line or of the text. *undecided: what follows in text may turn out to be such a reply, too.
 */
static size_t told_repeats(const struct rv_chat_told *t, const struct rv_origin *who, rv_str text, bool *undecided)
{
    size_t at = 0;

    for (;;) {
        size_t from = at;
        while (from < text.len && strchr(" \n\t\r\v\f", text.ptr[from]))
            from++;
        *undecided = from == text.len;
        if (*undecided)
            return at;
        size_t n = longest(t, who, (rv_str){text.ptr + from, text.len - from}, undecided);
        if (n == 0)
            return at;
        at = from + n;
    }
}

/* --- who is heard --- */

struct rv_chat_author {
    const struct rv_origin *who;
    bool is_structured, resets;
    int child_text;  /* enum rv_child_text */
    rv_buf reply;    /* of an asked agent: what it has said in the reply under way */
    bool is_muted;   /* an agent that it asked has spoken in its place */
    bool is_talking; /* in the reply under way */
    bool has_spoken; /* in one that is kept, or an agent that it asked has */
};

struct rv_chat_part {
    const struct rv_origin *who;
    int64_t call_id;
    rv_buf text;
    bool is_over;     /* nothing follows */
    bool is_doubtful; /* so far it only repeats what was shown */
};

void rv_chat_sink_init(struct rv_chat_sink *s)
{
    *s = (struct rv_chat_sink){.gap = RV_BUF_INIT(RV_CHAT_SINK_MAX_GAP), .held = RV_BUF_INIT(RV_CHAT_SINK_MAX_GAP)};
}

static void drop_authors(struct rv_chat_sink *s)
{
    for (size_t i = 0; i < s->n_authors; i++)
        rv_buf_fini(&s->authors[i].reply);
    s->n_authors = 0;
}

static void drop_parts(struct rv_chat_sink *s)
{
    for (size_t i = 0; i < s->n_parts; i++)
        rv_buf_fini(&s->parts[i].text);
    s->n_parts = 0;
}

void rv_chat_sink_fini(struct rv_chat_sink *s)
{
    drop_parts(s);
    drop_authors(s);
    told_fini(&s->told);
    free(s->parts);
    free(s->authors);
    rv_buf_fini(&s->spoken);
    rv_buf_fini(&s->gap);
    rv_buf_fini(&s->held);
    *s = (struct rv_chat_sink){0};
}

void rv_chat_sink_on_run(struct rv_chat_sink *s)
{
    drop_parts(s);
    drop_authors(s);
    told_clear(&s->told);
    s->is_taken = false;
    s->last = NULL;
    s->last_call = 0;
    rv_buf_clear(&s->held);
}

void rv_chat_sink_on_turn(struct rv_chat_sink *s)
{
    rv_chat_sink_on_run(s);
    s->has_said = false;
}

static struct rv_chat_author *find(const struct rv_chat_sink *s, const struct rv_origin *who)
{
    for (size_t i = s->n_authors; i-- > 0;)
        if (s->authors[i].who == who)
            return &s->authors[i];
    return NULL;
}

/* NULL: no memory. */
static struct rv_chat_author *author_of(struct rv_chat_sink *s, const struct rv_origin *who)
{
    struct rv_chat_author *v = find(s, who);

    if (v)
        return v;
    if (!rv_has_room(&s->authors, &s->cap_authors, s->n_authors + 1, sizeof *s->authors))
        return NULL;
    v = &s->authors[s->n_authors++];
    *v = (struct rv_chat_author){.who = who, .child_text = RV_CHILD_TEXT_FINAL, .reply = RV_BUF_INIT(RV_LLM_MAX_REPLY)};
    return v;
}

void rv_chat_sink_on_ask(struct rv_chat_sink *s, const struct rv_chat_speaker *speaker)
{
    struct rv_chat_author *v = author_of(s, speaker->who);

    if (!v)
        return;
    v->is_structured = speaker->is_structured;
    v->child_text = speaker->child_text;
    v->resets = speaker->resets;
}

/* Its words are data, or belong to an agent whose answer is, or to one that speaks for those that it asks. */
static bool is_unheard(const struct rv_chat_sink *s, const struct rv_origin *of)
{
    for (const struct rv_origin *who = of;; who = who->parent) {
        const struct rv_chat_author *v = find(s, who);
        if (v && (v->is_structured || (who != of && v->child_text == RV_CHILD_TEXT_PARENT)))
            return true;
        if (!who)
            return false;
    }
}

static bool is_white(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_blank(rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_white(text.ptr[i]))
            return false;
    return true;
}

/* What is held so far is handed out; white space behind the words is held from now on. */
static rv_str swap_gap(struct rv_chat_sink *s, bool goes_on, rv_str behind)
{
    rv_buf held = s->held;

    s->held = s->gap;
    s->gap = held;
    rv_buf_clear(&s->held);
    rv_buf_add_str(&s->held, behind);
    return goes_on ? rv_buf_str(&s->gap) : (rv_str){NULL, 0};
}

/* What is to be written for words that are heard now. */
static struct rv_chat_shown speak(struct rv_chat_sink *s, const struct rv_origin *who, int64_t call_id, rv_str text)
{
    bool goes_on = s->last_call == call_id && s->last == who;
    struct rv_chat_shown out = {0};
    size_t from = 0, end = text.len;

    while (end > 0 && is_white(text.ptr[end - 1]))
        end--;
    if (end == 0) {
        if (goes_on)
            rv_buf_add_str(&s->held, text);
        return out;
    }
    while (!goes_on && is_white(text.ptr[from]))
        from++;
    out.is_shown = true;
    out.begins_part = !goes_on && s->has_said;
    out.new_speaker = !goes_on && (s->last_call == 0 || s->last != who);
    out.gap = swap_gap(s, goes_on, (rv_str){text.ptr + end, text.len - end});
    out.text = (rv_str){text.ptr + from, end - from};
    s->last = who;
    s->last_call = call_id;
    s->has_said = s->is_taken = true;
    return out;
}

/* --- words that are held --- */

/* NULL: no memory. */
static struct rv_chat_part *part_of(struct rv_chat_sink *s, const struct rv_origin *who, int64_t call_id)
{
    for (size_t i = s->n_parts; i-- > 0;)
        if (s->parts[i].who == who && s->parts[i].call_id == call_id)
            return &s->parts[i];
    if (!rv_has_room(&s->parts, &s->cap_parts, s->n_parts + 1, sizeof *s->parts))
        return NULL;
    struct rv_chat_part *part = &s->parts[s->n_parts++];
    *part = (struct rv_chat_part){.who = who, .call_id = call_id, .text = RV_BUF_INIT(RV_LLM_MAX_REPLY)};
    return part;
}

/* False: they cannot be buffered, and are shown immediately. */
static bool hold(struct rv_chat_sink *s, const struct rv_origin *who, int64_t call_id, rv_str text)
{
    struct rv_chat_part *part = s->is_taken && s->last != who ? part_of(s, who, call_id) : NULL;

    if (!part || part->text.rc < 0)
        return false;
    rv_buf_add_str(&part->text, text);
    return part->text.rc == 0;
}

/* What it repeats is known, and left out. */
static void settle_doubt(struct rv_chat_sink *s, struct rv_chat_part *part)
{
    bool undecided = false;
    size_t n = told_repeats(&s->told, part->who, rv_buf_str(&part->text), &undecided);

    part->is_doubtful = false;
    if (n == 0)
        return;
    memmove(part->text.ptr, part->text.ptr + n, part->text.len - n);
    rv_buf_truncate(&part->text, part->text.len - n);
}

/* Words that may only repeat what was shown wait until that is known; from then on they are a part like any other. */
static bool doubt(struct rv_chat_sink *s, const struct rv_chat_author *v, int64_t call_id, rv_str text)
{
    bool begins = s->last != v->who || s->last_call != call_id, undecided = false;

    if (v->child_text != RV_CHILD_TEXT_FINAL || !begins || !told_any(&s->told, v->who))
        return false;
    struct rv_chat_part *part = part_of(s, v->who, call_id);
    if (!part || part->text.rc < 0)
        return false;
    part->is_doubtful = part->is_doubtful || part->text.len == 0;
    rv_buf_add_str(&part->text, text);
    if (part->is_doubtful)
        told_repeats(&s->told, v->who, rv_buf_str(&part->text), &undecided);
    if (part->is_doubtful && (!undecided || part->text.rc < 0))
        settle_doubt(s, part);
    return part->text.rc == 0;
}

bool rv_chat_sink_next(struct rv_chat_sink *s, const struct rv_origin **who, struct rv_chat_shown *out)
{
    size_t at = 0;

    while (!s->is_taken && at < s->n_parts) {
        struct rv_chat_part part = s->parts[at];
        if (part.is_doubtful) {
            at++;
            continue;
        }
        s->n_parts--;
        memmove(s->parts + at, s->parts + at + 1, (s->n_parts - at) * sizeof part);
        rv_buf_fini(&s->spoken);
        s->spoken = part.text;
        *who = part.who;
        *out = speak(s, part.who, part.call_id, rv_buf_str(&s->spoken));
        s->is_taken = s->is_taken && !part.is_over;
        if (out->is_shown)
            return true;
    }
    return false;
}

static bool is_below(const struct rv_origin *who, const struct rv_origin *above)
{
    while (who && who != above)
        who = who->parent;
    return who == above;
}

/* Of an agent, or also of those below it. */
static void end_parts(struct rv_chat_sink *s, const struct rv_origin *who, bool below)
{
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].who == who || (below && is_below(s->parts[i].who, who))) {
            s->parts[i].is_over = true;
            if (s->parts[i].is_doubtful)
                settle_doubt(s, &s->parts[i]);
        }
    if (s->last == who || (below && is_below(s->last, who)))
        s->is_taken = false;
}

void rv_chat_sink_on_end(struct rv_chat_sink *s)
{
    end_parts(s, NULL, true);
}

struct rv_chat_shown rv_chat_sink_on_piece(struct rv_chat_sink *s, const struct rv_origin *who, int64_t call_id,
                                           rv_str text)
{
    const struct rv_chat_shown nothing = {0};
    struct rv_chat_author *v = author_of(s, who);

    if (v && v->is_muted)
        return nothing;
    if (v && !is_blank(text))
        v->is_talking = true;
    if (is_unheard(s, who))
        return nothing;
    if (v && who)
        rv_buf_add_str(&v->reply, text);
    if ((v && doubt(s, v, call_id, text)) || hold(s, who, call_id, text))
        return nothing;
    return speak(s, who, call_id, text);
}

void rv_chat_sink_on_reply(struct rv_chat_sink *s, const struct rv_origin *who, bool failed)
{
    struct rv_chat_author *v = find(s, who);

    end_parts(s, who, false);
    if (!v)
        return;
    v->has_spoken = v->has_spoken || (v->is_talking && !failed);
    v->is_talking = false;
    if (who)
        told_add(&s->told, who, rv_buf_str(&v->reply));
    rv_buf_clear(&v->reply);
}

void rv_chat_sink_on_done(struct rv_chat_sink *s, const struct rv_origin *who, bool failed)
{
    const struct rv_chat_author *v = find(s, who);

    end_parts(s, who, true);
    if (!who || !v || v->is_structured || !v->has_spoken)
        return;
    struct rv_chat_author *asker = author_of(s, who->parent);
    if (!asker)
        return;
    asker->has_spoken = true;
    asker->is_muted = asker->child_text == RV_CHILD_TEXT_CHILD && !asker->resets && !failed;
}
