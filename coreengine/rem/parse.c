/* A query as text to a query as a value: the mode by its first word, then clauses in any order. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/rem/rem_internal.h"

#define MAX_NUMBER 40 /* bytes of a number that can mean something: 17 digits, sign, point and exponent are 25 */

static const char *const modes[] = {[RV_REM_LOOKUP] = "LOOKUP",
                                    [RV_REM_SEARCH] = "SEARCH",
                                    [RV_REM_FUZZY] = "FUZZY",
                                    [RV_REM_TRAVERSE] = "TRAVERSE",
                                    [RV_REM_SQL] = "SQL"};
RV_EACH_HAS_ROW(modes, RV_REM_N_MODES);
/* The first words of a statement. Those that write are refused later, with a better reason than an unknown mode. */
static const char *const verbs[] = {"SELECT", "WITH",  "VALUES", "EXPLAIN",  "INSERT", "UPDATE", "DELETE",
                                    "CREATE", "ALTER", "DROP",   "TRUNCATE", "GRANT",  "REVOKE"};
static const char *const naturals[] = {
    [RV_REM_NATURAL_REJECT] = "reject", [RV_REM_NATURAL_SEARCH] = "search", [RV_REM_NATURAL_SQL] = "sql"};
RV_EACH_HAS_ROW(naturals, RV_REM_N_NATURALS);
static const char *const ranks[] = {[RV_REM_RANK_UNSAID] = "",
                                    [RV_REM_RANK_COSINE] = "cosine",
                                    [RV_REM_RANK_WORDS] = "words",
                                    [RV_REM_RANK_HYBRID] = "hybrid"};
RV_EACH_HAS_ROW(ranks, RV_REM_N_RANKS);

enum param { TABLE, FIELD, LIMIT, MIN_SIMILARITY, CATEGORY, THRESHOLD, DEPTH, TYPE, LOAD, PATHS, RANK };
#define IN(mode) (1u << (mode))
static const struct clause {
    const char *word; /* NULL: it has none */
    enum param param;
    unsigned in;
} clauses[] = {
    {"FROM", TABLE, IN(RV_REM_SEARCH)},
    {"FIELD", FIELD, IN(RV_REM_SEARCH)},
    {"LIMIT", LIMIT, IN(RV_REM_SEARCH) | IN(RV_REM_FUZZY)},
    {"MIN_SIMILARITY", MIN_SIMILARITY, IN(RV_REM_SEARCH)},
    {"CATEGORY", CATEGORY, IN(RV_REM_SEARCH)},
    {"THRESHOLD", THRESHOLD, IN(RV_REM_FUZZY)},
    {"DEPTH", DEPTH, IN(RV_REM_TRAVERSE)},
    {"TYPE", TYPE, IN(RV_REM_TRAVERSE)},
    {"LOAD", LOAD, IN(RV_REM_TRAVERSE)},
    {"PATHS", PATHS, IN(RV_REM_TRAVERSE)},
    {NULL, RANK, IN(RV_REM_SEARCH)}, /* as a word it would be missed in texts: it is a kwarg alone */
};
static const struct {
    const char *name;
    enum param param;
} kwargs[] = {
    {"table", TABLE},
    {"field", FIELD},
    {"limit", LIMIT},
    {"threshold", THRESHOLD},
    {"min_similarity", MIN_SIMILARITY},
    {"depth", DEPTH},
    {"max_depth", DEPTH},
    {"type", TYPE},
    {"rel_type", TYPE},
    {"rank", RANK},
};

struct parser {
    struct rem_source s;
    const struct rv_rem_opts *opts;
    struct rv_rem_query q;
};

const char *rv_rem_mode_text(enum rv_rem_mode mode)
{
    return mode >= RV_REM_LOOKUP && mode < RV_REM_N_MODES ? modes[mode] : "";
}

const char *rv_rem_rank_text(enum rv_rem_rank rank)
{
    return rank >= RV_REM_RANK_UNSAID && rank < RV_REM_N_RANKS ? ranks[rank] : "";
}

int rv_rem_natural_of(rv_str word)
{
    for (int i = 0; i < RV_REM_N_NATURALS; i++)
        if (rv_str_is(word, naturals[i]))
            return i;
    return -1;
}

/* --- values --- */

static int warn(struct parser *p, const char *fmt, ...) RV_PRINTF(2, 3);

static int warn(struct parser *p, const char *fmt, ...)
{
    rv_buf b = RV_BUF_INIT(1024);
    char *copy;
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&b, fmt, args);
    va_end(args);
    copy = b.rc == 0 ? rv_arena_dup(p->s.memory, rv_buf_str(&b)) : NULL;
    rv_buf_fini(&b);
    if (copy && p->q.n_warnings < RV_REM_MAX_WARNINGS) /* more of them say the same */
        p->q.warnings[p->q.n_warnings++] = rv_str_of(copy);
    return copy ? 0 : rem_no_memory(&p->s);
}

/* A sign and digits; what is too large stays so. */
static bool read_int(rv_str s, long *out)
{
    bool minus = s.len && s.ptr[0] == '-';
    long n = 0;
    size_t i = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+') ? 1 : 0;

    if (i == s.len)
        return false;
    for (; i < s.len; i++) {
        if (!rv_is_digit(s.ptr[i]))
            return false;
        n = n > 99999999 ? n : n * 10 + (s.ptr[i] - '0');
    }
    *out = minus ? -n : n;
    return true;
}

/* Digits with an optional sign, point and exponent; no names such as nan, no hexadecimals. */
static bool read_float(rv_str s, double *out)
{
    char text[MAX_NUMBER + 1];
    char *end;

    if (s.len == 0 || s.len > MAX_NUMBER)
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (strspn(text, "+-.0123456789eE") != s.len)
        return false;
    *out = rv_number_read(text, &end) + 0.0; /* without a minus before a zero */
    return end == text + s.len;
}

static int bad_number(const struct parser *p, const struct clause *c, const struct rem_word *w, const char *legal)
{
    int rc = REM_FAIL(&p->s, w->at, RV_REM_BAD_NUMBER, "\"%.*s\" is not a number: %s takes %s", REM_QUOTE(w->text),
                      c->word, legal);

    rv_err_set_hint(p->s.err, "quote the word \"%s\" if it belongs to the text", c->word);
    return rc;
}

static int set_int(const struct parser *p, const struct clause *c, const struct rem_word *w, int min, int max, int *out)
{
    char legal[64] = "a whole number";
    long n;
    int rc;

    if (!read_int(w->text, &n))
        return bad_number(p, c, w, legal);
    if (n < min || n > max) {
        rc = REM_FAIL(&p->s, w->at, RV_REM_OUT_OF_RANGE, "%s %.*s is out of range (%d to %d)", c->word,
                      REM_QUOTE(w->text), min, max);
        rv_err_set_hint(p->s.err, "the nearest value is %d", n < min ? min : max);
        return rc;
    }
    *out = (int)n;
    return 0;
}

static int set_share(const struct parser *p, const struct clause *c, const struct rem_word *w, double *out)
{
    double d;
    int rc;

    if (!read_float(w->text, &d))
        return bad_number(p, c, w, "a number from 0 to 1");
    if (!(d >= 0 && d <= 1)) {
        rc = REM_FAIL(&p->s, w->at, RV_REM_OUT_OF_RANGE, "%s %.*s is out of range (0 to 1)", c->word,
                      REM_QUOTE(w->text));
        rv_err_set_hint(p->s.err, "the nearest value is %d", d < 0 ? 0 : 1);
        return rc;
    }
    *out = d;
    return 0;
}

static int set_table(struct parser *p, const struct rem_word *w)
{
    const char *names[64], *near;
    size_t n = 0;
    rv_buf all = RV_BUF_INIT(4096);
    int rc;

    for (size_t i = 0; i < p->opts->n_tables; i++) {
        const struct rv_rem_table *t = &p->opts->tables[i];
        if (!t->embedded_field || n == RV_COUNT(names))
            continue;
        if (rem_is_word(w->text, t->name)) {
            p->q.table = rv_str_of(rv_arena_dup(p->s.memory, rv_str_of(t->name)));
            return p->q.table.ptr ? 0 : rem_no_memory(&p->s);
        }
        names[n++] = t->name;
    }
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
    near = rv_nearest(w->text, names, n);
    rc = REM_FAIL(&p->s, w->at, RV_REM_UNKNOWN_TABLE, "\"%.*s\" is not a table that can be searched (%s)",
                  REM_QUOTE(w->text), rv_buf_cstr(&all));
    if (near)
        rv_err_set_hint(p->s.err, "did you mean %s?", near);
    else
        rv_err_set_hint(p->s.err, "quote the word \"FROM\" if it belongs to the text");
    rv_buf_fini(&all);
    return rc;
}

static enum rv_rem_rank rank_of(rv_str word)
{
    for (int i = RV_REM_RANK_COSINE; i < RV_REM_N_RANKS; i++)
        if (rem_is_word(word, ranks[i]))
            return (enum rv_rem_rank)i;
    return RV_REM_RANK_UNSAID;
}

static int set(struct parser *p, const struct clause *c, const struct rem_word *w)
{
    switch (c->param) {
    case TABLE:
        return p->q.mode == RV_REM_SEARCH ? set_table(p, w) : 0;
    case FIELD:
        p->q.field = w->text;
        return 0;
    case LIMIT:
        return set_int(p, c, w, 1, RV_REM_MAX_LIMIT, &p->q.limit);
    case MIN_SIMILARITY:
        return set_share(p, c, w, &p->q.min_similarity);
    case CATEGORY:
        p->q.category = w->text;
        return 0;
    case THRESHOLD:
        return set_share(p, c, w, &p->q.threshold);
    case DEPTH:
        return set_int(p, c, w, 0, RV_REM_MAX_DEPTH, &p->q.depth);
    case TYPE:
        p->q.rel_type = w->text;
        return 0;
    case LOAD:
        p->q.load = true;
        return 0;
    case PATHS:
        p->q.paths = true;
        return 0;
    case RANK:
        p->q.rank = rank_of(w->text);
        return 0;
    }
    return 0;
}

/* --- the four modes --- */

static const struct clause *clause_of(enum rv_rem_mode mode, const struct rem_word *w)
{
    for (size_t i = 0; rem_is_plain(w) && i < RV_COUNT(clauses); i++)
        if (clauses[i].in & IN(mode) && clauses[i].word && rem_is_word(w->text, clauses[i].word))
            return &clauses[i];
    return NULL;
}

/* name=value: the clause that it stands for, and the value as a word. */
static const struct clause *kwarg_of(const struct rem_word *w, struct rem_word *value)
{
    const char *eq = w->text.len ? memchr(w->text.ptr, '=', w->text.len) : NULL;
    size_t n = eq ? (size_t)(eq - w->text.ptr) : 0;

    if (n == 0 || n >= w->first_quote)
        return NULL;
    for (size_t i = 0; i < RV_COUNT(kwargs); i++) {
        if (!rem_is_word((rv_str){w->text.ptr, n}, kwargs[i].name))
            continue;
        *value = (struct rem_word){{eq + 1, w->text.len - n - 1}, w->literal + n + 1, w->at + n + 1, SIZE_MAX};
        for (size_t k = 0; k < RV_COUNT(clauses); k++)
            if (clauses[k].param == kwargs[i].param)
                return &clauses[k];
    }
    return NULL;
}

/* Append a word to a text, behind a blank. */
static void join(char *text, size_t *len, rv_str word, bool is_first)
{
    if (!is_first)
        text[(*len)++] = ' ';
    memcpy(text + *len, word.ptr, word.len);
    *len += word.len;
}

static int missing_text(const struct parser *p)
{
    const char *mode = modes[p->q.mode];
    int rc = REM_FAIL(&p->s, p->s.text.ptr + p->s.text.len, RV_REM_MISSING_TEXT, "%s requires %s", mode,
                      p->q.mode == RV_REM_TRAVERSE ? "a key to start at" : "a text to look for");

    if (p->q.mode == RV_REM_TRAVERSE)
        rv_err_set_hint(p->s.err, "write TRAVERSE my-key DEPTH 2");
    else
        rv_err_set_hint(p->s.err, "write %s the words to look for %s", mode,
                        p->q.mode == RV_REM_SEARCH ? "FROM moments" : "THRESHOLD 0.3");
    return rc;
}

/* A clause or a kwarg at words[*i]; *taken says if it was one. */
static int read_clause(struct parser *p, const struct rem_words *words, size_t *i, bool *taken)
{
    struct rem_word value, *w = &words->items[*i];
    const struct clause *c = clause_of(p->q.mode, w);

    *taken = true;
    if (c && (c->param == LOAD || c->param == PATHS))
        return set(p, c, w);
    if (c && *i + 1 == words->n) {
        int rc = REM_FAIL(&p->s, w->at, RV_REM_MISSING_VALUE, "%s clause requires a value", c->word);
        rv_err_set_hint(p->s.err, "quote the word \"%s\" if it belongs to the text", c->word);
        return rc;
    }
    if (c)
        return set(p, c, &words->items[++*i]);
    *taken = (c = kwarg_of(w, &value)) != NULL;
    if (!*taken)
        return 0;
    if (c->param == RANK && rank_of(value.text) == RV_REM_RANK_UNSAID) { /* older queries have such words as text */
        *taken = false;
        return warn(p, "%.*s is text: rank takes cosine, words, hybrid", REM_QUOTE(w->text));
    }
    if (!(c->in & IN(p->q.mode))) {
        int rc = warn(p, "%.*s has no effect on %s", REM_QUOTE(w->text), modes[p->q.mode]);
        if (rc < 0)
            return rc;
    }
    return set(p, c, &value);
}

static int read_clauses(struct parser *p, rv_str rest)
{
    struct rem_words words;
    char *text = rv_arena_alloc(p->s.memory, rest.len + 1);
    size_t len = 0, n_text = 0;
    bool taken;
    int rc = text ? rem_split(&p->s, rest, &words) : rem_no_memory(&p->s);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < words.n; i++) {
        if ((rc = read_clause(p, &words, &i, &taken)) < 0)
            return rc;
        if (!taken)
            join(text, &len, words.items[i].text, n_text++ == 0);
    }
    p->q.text = (rv_str){text, len};
    return rv_str_trim(p->q.text).len ? 0 : missing_text(p);
}

/* The table and the field that SEARCH compares. */
static int complete_search(struct parser *p)
{
    const struct rem_word schemas = {{RV_REM_TABLE, sizeof(RV_REM_TABLE) - 1}, NULL, p->s.text.ptr, SIZE_MAX};
    const char *embedded = "";
    int rc = p->q.table.ptr ? 0 : set_table(p, &schemas);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->opts->n_tables; i++)
        if (rv_str_is(p->q.table, p->opts->tables[i].name))
            embedded = p->opts->tables[i].embedded_field;
    p->q.matches_nothing = p->q.field.ptr && !rv_str_is(p->q.field, embedded);
    if (p->q.matches_nothing)
        rc = warn(p, "field %.*s of %.*s is not embedded and matches nothing: the embedded field is %s",
                  REM_QUOTE(p->q.field), RV_STR_ARG(p->q.table), embedded);
    if (!p->q.field.ptr)
        p->q.field = rv_str_of(rv_arena_dup(p->s.memory, rv_str_of(embedded)));
    return p->q.field.ptr ? rc : rem_no_memory(&p->s);
}

struct keys {
    char *text;
    size_t from, len; /* of the key that is read */
    rv_str *items;
};

static int end_key(struct parser *p, struct keys *k, const char *at)
{
    rv_str key = rv_str_trim((rv_str){k->text + k->from, k->len - k->from});

    k->from = k->len;
    if (key.len == 0)
        return 0;
    if (p->q.n_keys == RV_REM_MAX_KEYS)
        return REM_FAIL(&p->s, at, RV_REM_TOO_LONG, "LOOKUP of more than %d keys", RV_REM_MAX_KEYS);
    k->items[p->q.n_keys++] = key;
    return 0;
}

/* Words with one blank between them, cut at commas that are not quoted. */
static int read_keys(struct parser *p, rv_str rest)
{
    struct rem_words words = {NULL, 0};
    struct keys keys = {rv_arena_alloc(p->s.memory, rest.len + 1), 0, 0,
                        rv_arena_alloc(p->s.memory, RV_REM_MAX_KEYS * sizeof(rv_str))};
    int rc = keys.text && keys.items ? rem_split(&p->s, rest, &words) : rem_no_memory(&p->s);

    p->q.keys = keys.items;
    for (size_t i = 0; rc == 0 && i < words.n; i++) {
        const struct rem_word *w = &words.items[i];
        if (i)
            keys.text[keys.len++] = ' ';
        for (size_t k = 0; rc == 0 && k < w->text.len; k++) {
            if (w->text.ptr[k] == ',' && !w->literal[k])
                rc = end_key(p, &keys, w->at);
            else
                keys.text[keys.len++] = w->text.ptr[k];
        }
    }
    if (rc == 0)
        rc = end_key(p, &keys, p->s.text.ptr + p->s.text.len);
    if (rc < 0 || p->q.n_keys)
        return rc;
    rc = REM_FAIL(&p->s, p->s.text.ptr + p->s.text.len, RV_REM_MISSING_KEY, "LOOKUP requires at least one key");
    rv_err_set_hint(p->s.err, "write LOOKUP my-key, or several keys with commas between them");
    return rc;
}

/* --- the mode --- */

static int unknown_mode(const struct parser *p, rv_str word)
{
    const char *near = rv_nearest(word, modes, RV_COUNT(modes));
    int rc;

    if (!near)
        near = rv_nearest(word, verbs, 4);
    rc = REM_FAIL(&p->s, p->s.text.ptr, RV_REM_UNKNOWN_MODE,
                  "unknown mode \"%.*s\": a query begins with LOOKUP, SEARCH, FUZZY, TRAVERSE, SQL or SELECT",
                  REM_QUOTE(word));
    if (near)
        rv_err_set_hint(p->s.err, "did you mean %s?", near);
    else
        rv_err_set_hint(p->s.err,
                        "for a question in plain words write SEARCH before it, with FROM and a table behind it");
    return rc;
}

/* The statement of SQL is all of `statement`. */
static int take_sql(struct parser *p, rv_str statement)
{
    int rc;

    p->q.mode = RV_REM_SQL;
    p->q.sql = rv_str_trim(statement);
    if (p->q.sql.len) {
        p->q.sql_src = rem_mark(&p->s, p->q.sql.ptr, RV_REM_OK);
        return 0;
    }
    rc = REM_FAIL(&p->s, p->s.text.ptr + p->s.text.len, RV_REM_MISSING_STATEMENT, "SQL requires a statement");
    rv_err_set_hint(p->s.err, "write SQL SELECT name, created_at FROM moments ORDER BY created_at DESC LIMIT 10");
    return rc;
}

static int take_natural(struct parser *p, rv_str word)
{
    switch (p->opts->natural) {
    case RV_REM_NATURAL_SQL:
        return take_sql(p, p->s.text);
    case RV_REM_NATURAL_SEARCH:
        p->q.mode = RV_REM_SEARCH;
        p->q.is_natural = true;
        p->q.text = p->s.text;
        return complete_search(p);
    case RV_REM_NATURAL_REJECT:
    case RV_REM_N_NATURALS:
        break;
    }
    return unknown_mode(p, word);
}

static bool is_name(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || c == '_';
}

static int read_query(struct parser *p)
{
    rv_str text = p->s.text, word = text, rest;
    size_t n = 0, n_name = 0;
    int rc;

    while (n < text.len && !rem_is_blank(text.ptr[n]))
        n++;
    word.len = n;
    rest = (rv_str){text.ptr + n, text.len - n};
    for (int m = 0; m < RV_REM_SQL; m++) {
        if (!rem_is_word(word, modes[m]))
            continue;
        p->q.mode = (enum rv_rem_mode)m;
        if (m == RV_REM_LOOKUP)
            return read_keys(p, rest);
        rc = read_clauses(p, rest);
        return rc == 0 && m == RV_REM_SEARCH ? complete_search(p) : rc;
    }
    if (rem_is_word(word, modes[RV_REM_SQL]))
        return take_sql(p, rest);
    while (n_name < n && is_name(text.ptr[n_name]))
        n_name++;
    for (size_t i = 0; i < RV_COUNT(verbs); i++)
        if (rem_is_word((rv_str){text.ptr, n_name}, verbs[i]))
            return take_sql(p, text);
    return take_natural(p, word);
}

/* --- the whole --- */

void rv_rem_query_fini(struct rv_rem_query *q)
{
    rv_arena_free(q->memory);
    *q = (struct rv_rem_query){.memory = NULL};
}

/* The text without white space at its ends, in memory of the query. */
static int take_text(struct parser *p, rv_str text)
{
    rv_str trimmed;
    char *copy;
    int rc;

    p->s.text = text.ptr ? text : RV_STR_LIT("");
    if ((rc = rem_check_text(&p->s)) < 0)
        return rc;
    trimmed = rv_str_trim(p->s.text);
    if (trimmed.len == 0) {
        rc = REM_FAIL(&p->s, p->s.text.ptr, RV_REM_EMPTY_QUERY, "Empty query string");
        rv_err_set_hint(p->s.err, "a query begins with LOOKUP, SEARCH, FUZZY, TRAVERSE, SQL or SELECT");
        return rc;
    }
    p->s.start = rem_mark(&p->s, trimmed.ptr, RV_REM_OK);
    p->s.memory = p->q.memory = rv_arena_new(64 * RV_REM_MAX_BYTES);
    copy = p->s.memory ? rv_arena_dup(p->s.memory, trimmed) : NULL;
    p->s.text = (rv_str){copy, trimmed.len};
    return copy ? 0 : rem_no_memory(&p->s);
}

int rv_rem_parse(rv_str text, const struct rv_rem_opts *opts, struct rv_rem_query *out, struct rv_rem_fault *fault,
                 rv_err **err)
{
    struct parser p = {.s = {.start = {"the query", 1, 1}, .fault = fault, .err = err}, .opts = opts};
    int rc;

    if (fault)
        *fault = (struct rv_rem_fault){RV_REM_OK, 0, 0};
    p.q.limit = RV_REM_LIMIT;
    p.q.depth = RV_REM_DEPTH;
    p.q.min_similarity = p.q.threshold = RV_REM_SIMILARITY;
    rc = take_text(&p, text);
    if (rc == 0)
        rc = read_query(&p);
    if (rc < 0) {
        rv_rem_query_fini(&p.q);
        return rc;
    }
    if (fault)
        *fault = (struct rv_rem_fault){RV_REM_OK, 0, 0};
    *out = p.q;
    return 0;
}
