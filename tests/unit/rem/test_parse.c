/* The dialect: what each query means, each error with its code and place, and that no mode ever becomes SQL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/rem/rem.h"
#include "tests/kit/kit.h"
#include "tests/unit/rem/suites.h"

static struct rv_rem_opts options(enum rv_rem_natural natural)
{
    struct rv_rem_opts opts = {.natural = natural};

    opts.tables = rv_rem_tables(&opts.n_tables);
    return opts;
}

/* A query in one line, with "<...>" around texts. */
static void describe(const struct rv_rem_query *q, rv_buf *b)
{
    rv_buf_puts(b, rv_rem_mode_text(q->mode));
    for (size_t i = 0; i < q->n_keys; i++)
        rv_buf_printf(b, " <%.*s>", RV_STR_ARG(q->keys[i]));
    if (q->mode == RV_REM_SEARCH)
        rv_buf_printf(b, " <%.*s> %.*s.%.*s%s %d %g <%.*s>%s%s%s", RV_STR_ARG(q->text), RV_STR_ARG(q->table),
                      RV_STR_ARG(q->field), q->matches_nothing ? " nothing" : "", q->limit, q->min_similarity,
                      RV_STR_ARG(q->category), q->is_natural ? " natural" : "", q->rank ? " by " : "",
                      rv_rem_rank_text(q->rank));
    if (q->mode == RV_REM_FUZZY)
        rv_buf_printf(b, " <%.*s> %g %d", RV_STR_ARG(q->text), q->threshold, q->limit);
    if (q->mode == RV_REM_TRAVERSE)
        rv_buf_printf(b, " <%.*s> %d <%.*s>%s%s", RV_STR_ARG(q->text), q->depth, RV_STR_ARG(q->rel_type),
                      q->load ? " load" : "", q->paths ? " paths" : "");
    if (q->mode == RV_REM_SQL)
        rv_buf_printf(b, " <%.*s> %d:%d", RV_STR_ARG(q->sql), q->sql_src.line, q->sql_src.col);
    for (size_t i = 0; i < q->n_warnings; i++)
        rv_buf_printf(b, " ! %.*s", RV_STR_ARG(q->warnings[i]));
}

static const struct {
    const char *text, *want;
} good[] = {
    /* modes, any case */
    {"LOOKUP sarah-chen", "LOOKUP <sarah-chen>"},
    {"lookup sarah-chen", "LOOKUP <sarah-chen>"},
    {"  \tLookUp\r\n sarah-chen \n", "LOOKUP <sarah-chen>"},
    {"SEARCH kites", "SEARCH <kites> schemas.description 10 0.3 <>"},
    {"FUZZY kites", "FUZZY <kites> 0.3 10"},
    {"TRAVERSE kites", "TRAVERSE <kites> 1 <>"},
    {"SQL SELECT 1", "SQL <SELECT 1> 1:5"},
    {"sql   SELECT  'a  b' ", "SQL <SELECT  'a  b'> 1:7"},
    {"SQL\nSELECT 1", "SQL <SELECT 1> 2:1"},
    {"SQL DROP TABLE x", "SQL <DROP TABLE x> 1:5"},
    {"SQL \"x", "SQL <\"x> 1:5"}, /* never tokenised */
    /* ENGINE: without a mode, verbs of SQL only */
    {"select 1", "SQL <select 1> 1:1"},
    {"SELECT(1)", "SQL <SELECT(1)> 1:1"},
    {"  WITH a AS (SELECT 1) SELECT * FROM a", "SQL <WITH a AS (SELECT 1) SELECT * FROM a> 1:3"},
    {"VALUES(1)", "SQL <VALUES(1)> 1:1"},
    {"EXPLAIN SELECT 1", "SQL <EXPLAIN SELECT 1> 1:1"},
    {"insert into x values (1)", "SQL <insert into x values (1)> 1:1"},
    {"UPDATE x SET a=1", "SQL <UPDATE x SET a=1> 1:1"},
    {"DELETE FROM x", "SQL <DELETE FROM x> 1:1"},
    {"DROP TABLE x", "SQL <DROP TABLE x> 1:1"},
    {"truncate x", "SQL <truncate x> 1:1"},
    /* LOOKUP: words joined, cut at commas */
    {"LOOKUP a,b", "LOOKUP <a> <b>"},
    {"LOOKUP a, b ,c d", "LOOKUP <a> <b> <c d>"},
    {"LOOKUP ,a,,", "LOOKUP <a>"},
    {"LOOKUP foo LIMIT 5", "LOOKUP <foo LIMIT 5>"},
    {"LOOKUP \"Smith, John\", b", "LOOKUP <Smith, John> <b>"}, /* ENGINE: a quoted comma */
    {"LOOKUP 'a, b',\"c, d\"", "LOOKUP <a, b> <c, d>"},
    {"LOOKUP a\\,b", "LOOKUP <a,b>"},
    {"LOOKUP #1", "LOOKUP <#1>"},
    {"LOOKUP FROM=x", "LOOKUP <FROM=x>"},
    {"LOOKUP limit=5", "LOOKUP <limit=5>"},
    {"LOOKUP SEARCH", "LOOKUP <SEARCH>"},
    {"LOOKUP a   b", "LOOKUP <a b>"},
    {"LOOKUP \"a   b\"", "LOOKUP <a   b>"},
    /* quotes open at the beginning of a word only */
    {"SEARCH what's new FROM moments", "SEARCH <what's new> moments.summary 10 0.3 <>"},
    {"LOOKUP O'Brien, D'Arcy", "LOOKUP <O'Brien> <D'Arcy>"},
    {"SEARCH say\"hi", "SEARCH <say\"hi> schemas.description 10 0.3 <>"},
    {"SEARCH \"a \\\"b\\\" \\\\ \\n\"", "SEARCH <a \"b\" \\ \\n> schemas.description 10 0.3 <>"},
    {"SEARCH 'a \\' b", "SEARCH <a \\ b> schemas.description 10 0.3 <>"},
    {"SEARCH \\'a b", "SEARCH <'a b> schemas.description 10 0.3 <>"},
    {"SEARCH a\\ b", "SEARCH <a b> schemas.description 10 0.3 <>"},
    {"SEARCH \"a\"b", "SEARCH <ab> schemas.description 10 0.3 <>"},
    {"SEARCH x=\"a b\"", "SEARCH <x=a b> schemas.description 10 0.3 <>"},
    {"SEARCH a,'b c'", "SEARCH <a,b c> schemas.description 10 0.3 <>"},
    {"FUZZY 日本語 \"ä ö\"", "FUZZY <日本語 ä ö> 0.3 10"},
    /* clauses in any order and case, the last of one wins, also before the text */
    {"SEARCH a FROM moments FIELD summary LIMIT 5 MIN_SIMILARITY 0.5 CATEGORY work",
     "SEARCH <a> moments.summary 5 0.5 <work>"},
    {"search from resources limit 7 a category \"x y\" b", "SEARCH <a b> resources.content 7 0.3 <x y>"},
    {"SEARCH a LIMIT 5 LIMIT 6", "SEARCH <a> schemas.description 6 0.3 <>"},
    {"SEARCH a FROM MOMENTS", "SEARCH <a> moments.summary 10 0.3 <>"},
    {"SEARCH a FROM \"moments\"", "SEARCH <a> moments.summary 10 0.3 <>"},
    {"SEARCH a MIN_SIMILARITY 0", "SEARCH <a> schemas.description 10 0 <>"},
    {"SEARCH a MIN_SIMILARITY -0.0", "SEARCH <a> schemas.description 10 0 <>"},
    {"SEARCH a MIN_SIMILARITY 1e-1", "SEARCH <a> schemas.description 10 0.1 <>"},
    {"SEARCH a MIN_SIMILARITY .5", "SEARCH <a> schemas.description 10 0.5 <>"},
    {"SEARCH a LIMIT +200", "SEARCH <a> schemas.description 200 0.3 <>"},
    {"FUZZY a THRESHOLD 1 LIMIT 1", "FUZZY <a> 1 1"},
    {"FUZZY foo FROM moments", "FUZZY <foo FROM moments> 0.3 10"},
    {"SEARCH a THRESHOLD 0.1 DEPTH", "SEARCH <a THRESHOLD 0.1 DEPTH> schemas.description 10 0.3 <>"},
    {"TRAVERSE a DEPTH 3 TYPE links_to LOAD", "TRAVERSE <a> 3 <links_to> load"},
    {"TRAVERSE paths a load DEPTH 0", "TRAVERSE <a> 0 <> load paths"},
    {"TRAVERSE a b DEPTH 10", "TRAVERSE <a b> 10 <>"},
    {"TRAVERSE a TYPE \"links to\"", "TRAVERSE <a> 1 <links to>"},
    /* a quoted word is text */
    {"SEARCH \"from\" FROM moments", "SEARCH <from> moments.summary 10 0.3 <>"},
    {"SEARCH 'LIMIT' x", "SEARCH <LIMIT x> schemas.description 10 0.3 <>"},
    {"SEARCH \\LIMIT x", "SEARCH <LIMIT x> schemas.description 10 0.3 <>"},
    {"SEARCH \"limit=3\"", "SEARCH <limit=3> schemas.description 10 0.3 <>"},
    {"TRAVERSE \"LOAD\"", "TRAVERSE <LOAD> 1 <>"},
    /* name=value */
    {"SEARCH a table=moments LIMIT=3 min_similarity=0.4", "SEARCH <a> moments.summary 3 0.4 <>"},
    {"SEARCH a Field=\"summary\" table='moments'", "SEARCH <a> moments.summary 10 0.3 <>"},
    {"FUZZY a threshold=0.2 limit=\"4\"", "FUZZY <a> 0.2 4"},
    {"TRAVERSE a depth=2", "TRAVERSE <a> 2 <>"},
    {"TRAVERSE a max_depth=2 rel_type=x", "TRAVERSE <a> 2 <x>"},
    {"TRAVERSE a type=x", "TRAVERSE <a> 1 <x>"},
    {"SEARCH category=x load=1 =y other=z", "SEARCH <category=x load=1 =y other=z> schemas.description 10 0.3 <>"},
    {"SEARCH a rank=hybrid b", "SEARCH <a b> schemas.description 10 0.3 <> by hybrid"},
    {"SEARCH RANK=Words rank a", "SEARCH <rank a> schemas.description 10 0.3 <> by words"},
    {"SEARCH a rank=words rank=cosine", "SEARCH <a> schemas.description 10 0.3 <> by cosine"},
    {"SEARCH a \"rank=hybrid\"", "SEARCH <a rank=hybrid> schemas.description 10 0.3 <>"},
    {"SEARCH a rank hybrid", "SEARCH <a rank hybrid> schemas.description 10 0.3 <>"},
    {"SEARCH a rank=",
     "SEARCH <a rank=> schemas.description 10 0.3 <> ! rank= is text: rank takes cosine, words, hybrid"},
    {"FUZZY a rank=hybrid", "FUZZY <a> 0.3 10 ! rank=hybrid has no effect on FUZZY"},
    {"TRAVERSE a limit=3", "TRAVERSE <a> 1 <> ! limit=3 has no effect on TRAVERSE"},
    {"FUZZY a table=nowhere", "FUZZY <a> 0.3 10 ! table=nowhere has no effect on FUZZY"},
    /* ENGINE: a field that is not embedded */
    {"SEARCH a FROM moments FIELD name",
     "SEARCH <a> moments.name nothing 10 0.3 <> ! field name of moments is not embedded and matches nothing: the "
     "embedded field is summary"},
    {"SEARCH kites; DROP TABLE x", "SEARCH <kites; DROP TABLE x> schemas.description 10 0.3 <>"},
};

/* Proves p8-data.8.3: Clauses in any case and order, the last of two wins; clauses of other modes are text */
START_TEST(a_query_becomes_what_it_means)
{
    struct rv_rem_opts opts = options(RV_REM_NATURAL_REJECT);
    struct rv_rem_fault fault;
    struct rv_rem_query q;
    rv_buf got = RV_BUF_INIT(4096);
    rv_err *err = NULL;

    ck_assert_msg(rv_rem_parse(rv_str_of(good[_i].text), &opts, &q, &fault, &err) == 0, "%s: %s", good[_i].text,
                  rv_err_text(err));
    describe(&q, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), good[_i].want);
    ck_assert_int_eq(fault.code, RV_REM_OK);
    rv_buf_fini(&got);
    rv_rem_query_fini(&q);
}
END_TEST

static const struct {
    const char *text, *code;
    int rc, line, col;
    const char *message, *hint; /* parts */
} bad[] = {
    {"", "empty_query", RV_E_PARSE, 1, 1, "Empty query string", "LOOKUP, SEARCH"},
    {" \t\n", "empty_query", RV_E_PARSE, 1, 1, "Empty query string", ""},
    {"SEARCHING foo", "unknown_mode", RV_E_PARSE, 1, 1, "unknown mode \"SEARCHING\"", ""},
    {"LOKUP foo", "unknown_mode", RV_E_PARSE, 1, 1, "FUZZY, TRAVERSE, SQL or SELECT", "did you mean LOOKUP?"},
    {"SELEC 1", "unknown_mode", RV_E_PARSE, 1, 1, "", "did you mean SELECT?"},
    {"\"LOOKUP\" x", "unknown_mode", RV_E_PARSE, 1, 1, "unknown mode", ""},
    {"LOOKUP,x", "unknown_mode", RV_E_PARSE, 1, 1, "unknown mode", ""},
    {"-- SELECT 1", "unknown_mode", RV_E_PARSE, 1, 1, "unknown mode", ""},
    {"\n  what did I do?", "unknown_mode", RV_E_PARSE, 2, 3, "unknown mode \"what\"", "write SEARCH before it"},
    {"selection of cheese", "unknown_mode", RV_E_PARSE, 1, 1, "", ""},
    {"LOOKUP", "missing_key", RV_E_PARSE, 1, 7, "LOOKUP requires at least one key", ""},
    {"LOOKUP ,", "missing_key", RV_E_PARSE, 1, 9, "LOOKUP requires at least one key", ""},
    {"LOOKUP \"\"", "missing_key", RV_E_PARSE, 1, 10, "LOOKUP requires at least one key", ""},
    {"SEARCH", "missing_text", RV_E_PARSE, 1, 7, "SEARCH requires", "FROM moments"},
    {"SEARCH FROM moments", "missing_text", RV_E_PARSE, 1, 20, "SEARCH requires", ""},
    {"SEARCH \"\"", "missing_text", RV_E_PARSE, 1, 10, "SEARCH requires", ""},
    {"FUZZY LIMIT 3", "missing_text", RV_E_PARSE, 1, 14, "FUZZY requires", "THRESHOLD"},
    {"TRAVERSE LOAD", "missing_text", RV_E_PARSE, 1, 14, "TRAVERSE requires a key", "DEPTH"},
    {"SEARCH a LIMIT", "missing_value", RV_E_PARSE, 1, 10, "LIMIT clause requires a value", "quote the word"},
    {"SEARCH ä from", "missing_value", RV_E_PARSE, 1, 10, "FROM clause requires a value", ""},
    {"FUZZY a threshold", "missing_value", RV_E_PARSE, 1, 9, "THRESHOLD clause requires a value", ""},
    {"TRAVERSE a TYPE", "missing_value", RV_E_PARSE, 1, 12, "TYPE clause requires a value", ""},
    {"SQL", "missing_statement", RV_E_PARSE, 1, 4, "SQL requires a statement", "SELECT"},
    {"SQL  ", "missing_statement", RV_E_PARSE, 1, 4, "SQL requires a statement", ""},
    {"LOOKUP \"x", "unterminated_quote", RV_E_PARSE, 1, 8, "the quote \" has no end", "end the quoted text"},
    {"SEARCH é 'x", "unterminated_quote", RV_E_PARSE, 1, 10, "the quote ' has no end", ""},
    {"SEARCH x\\", "bad_escape", RV_E_PARSE, 1, 9, "escapes nothing", "\\\\"},
    {"SEARCH a LIMIT x", "bad_number", RV_E_PARSE, 1, 16, "LIMIT takes a whole number", "quote the word \"LIMIT\""},
    {"SEARCH a LIMIT FROM moments", "bad_number", RV_E_PARSE, 1, 16, "\"FROM\" is not a number", ""},
    {"SEARCH a LIMIT 1.5", "bad_number", RV_E_PARSE, 1, 16, "", ""},
    {"SEARCH a LIMIT \"\"", "bad_number", RV_E_PARSE, 1, 16, "", ""},
    {"SEARCH a limit=", "bad_number", RV_E_PARSE, 1, 16, "", ""},
    {"SEARCH a LIMIT -", "bad_number", RV_E_PARSE, 1, 16, "", ""},
    {"FUZZY a THRESHOLD nan", "bad_number", RV_E_PARSE, 1, 19, "\"nan\" is not a number", ""},
    {"FUZZY a THRESHOLD 0x1", "bad_number", RV_E_PARSE, 1, 19, "", ""},
    {"FUZZY a THRESHOLD 1e", "bad_number", RV_E_PARSE, 1, 19, "", ""},
    {"FUZZY a limit=5 threshold=high", "bad_number", RV_E_PARSE, 1, 27, "", ""},
    {"SEARCH a LIMIT 0", "out_of_range", RV_E_INVALID, 1, 16, "LIMIT 0 is out of range (1 to 200)", "value is 1"},
    {"SEARCH a LIMIT -5", "out_of_range", RV_E_INVALID, 1, 16, "LIMIT -5", "value is 1"},
    {"SEARCH a LIMIT 201", "out_of_range", RV_E_INVALID, 1, 16, "LIMIT 201", "value is 200"},
    {"SEARCH a LIMIT 99999999999999999999999", "out_of_range", RV_E_INVALID, 1, 16, "", "value is 200"},
    {"TRAVERSE a DEPTH 11", "out_of_range", RV_E_INVALID, 1, 18, "(0 to 10)", "value is 10"},
    {"TRAVERSE a DEPTH -1", "out_of_range", RV_E_INVALID, 1, 18, "", "value is 0"},
    {"FUZZY a THRESHOLD 1.01", "out_of_range", RV_E_INVALID, 1, 19, "THRESHOLD 1.01 is out of range (0 to 1)", "is 1"},
    {"FUZZY a THRESHOLD 1e999", "out_of_range", RV_E_INVALID, 1, 19, "", "is 1"},
    {"SEARCH a MIN_SIMILARITY -0.1", "out_of_range", RV_E_INVALID, 1, 25, "", "is 0"},
    {"SEARCH a FROM momnts", "unknown_table", RV_E_NOT_FOUND, 1, 15, "(schemas, ontologies", "did you mean moments?"},
    {"SEARCH a FROM messages", "unknown_table", RV_E_NOT_FOUND, 1, 15, "can be searched", ""},
    {"SEARCH a table=kv_store", "unknown_table", RV_E_NOT_FOUND, 1, 16, "kv_store", "quote"},
};

/* Proves p8-data.8.3/errors: Each error of a query has a code, a message and a place */
START_TEST(a_fault_has_a_code_and_a_place)
{
    struct rv_rem_opts opts = options(RV_REM_NATURAL_REJECT);
    struct rv_rem_fault fault;
    struct rv_rem_query q;
    rv_err *err = NULL;
    int rc = rv_rem_parse(rv_str_of(bad[_i].text), &opts, &q, &fault, &err);
    const char *hint = rv_err_hint_text(err);

    ck_assert_int_eq(rc, bad[_i].rc);
    ck_assert_str_eq(rv_rem_fault_text(fault.code), bad[_i].code);
    ck_assert_int_eq(fault.line, bad[_i].line);
    ck_assert_int_eq(fault.col, bad[_i].col);
    ck_assert_int_eq(rv_err_src(err).col, bad[_i].col);
    ck_assert_msg(strstr(rv_err_text(err), bad[_i].message) != NULL, "%s", rv_err_text(err));
    ck_assert_msg(!bad[_i].hint[0] || (hint && strstr(hint, bad[_i].hint)), "%s", hint ? hint : "no hint");
    rv_err_free(err);
}
END_TEST

/* Proves p8-data.8.2: The first word decides the mode; other text is what the configuration says */
START_TEST(text_without_a_mode_is_what_the_option_says)
{
    struct rv_rem_opts opts = options(RV_REM_NATURAL_SEARCH);
    struct rv_rem_query q;
    rv_buf got = RV_BUF_INIT(4096);

    ck_assert_int_eq(rv_rem_parse(RV_STR_LIT(" what's \"new\" LIMIT 5 "), &opts, &q, NULL, NULL), 0);
    describe(&q, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), "SEARCH <what's \"new\" LIMIT 5> schemas.description 10 0.3 <> natural");
    rv_rem_query_fini(&q);
    rv_buf_clear(&got);
    opts.natural = RV_REM_NATURAL_SQL;
    ck_assert_int_eq(rv_rem_parse(RV_STR_LIT("what's new"), &opts, &q, NULL, NULL), 0);
    describe(&q, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), "SQL <what's new> 1:1");
    rv_rem_query_fini(&q);
    rv_buf_fini(&got);
}
END_TEST

START_TEST(sizes_are_limited)
{
    struct rv_rem_opts opts = options(RV_REM_NATURAL_REJECT);
    struct rv_rem_fault fault;
    struct rv_rem_query q;
    rv_buf b = RV_BUF_INIT(RV_REM_MAX_BYTES + 100);

    rv_buf_puts(&b, "LOOKUP ");
    for (int i = 0; i < RV_REM_MAX_KEYS; i++)
        rv_buf_puts(&b, "k,");
    ck_assert_int_eq(rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, NULL), 0);
    ck_assert_uint_eq(q.n_keys, RV_REM_MAX_KEYS);
    rv_rem_query_fini(&q);
    rv_buf_puts(&b, "k");
    ck_assert_int_eq(rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, NULL), RV_E_LIMIT);
    ck_assert_int_eq(fault.code, RV_REM_TOO_LONG);

    rv_buf_clear(&b);
    rv_buf_puts(&b, "SEARCH");
    for (int i = 0; i < RV_REM_MAX_WORDS; i++)
        rv_buf_puts(&b, " w");
    ck_assert_int_eq(rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, NULL), 0);
    rv_rem_query_fini(&q);
    rv_buf_puts(&b, " w");
    ck_assert_int_eq(rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, NULL), RV_E_LIMIT);
    ck_assert_int_eq(fault.col, (int)b.len);

    while (b.len < RV_REM_MAX_BYTES)
        rv_buf_putc(&b, ' ');
    rv_buf_truncate(&b, 10);
    while (b.len < RV_REM_MAX_BYTES)
        rv_buf_putc(&b, 'x');
    ck_assert_int_eq(rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, NULL), 0);
    rv_rem_query_fini(&q);
    rv_buf_putc(&b, 'x');
    ck_assert_int_eq(rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, NULL), RV_E_LIMIT);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(bytes_that_are_not_text_are_refused)
{
    static const rv_str texts[] = {RV_STR_LIT("LOOKUP a\0b"), RV_STR_LIT("LOOKUP \xc3\x28"),
                                   RV_STR_LIT("SQL \xed\xa0\x80")};
    static const int cols[] = {9, 8, 5};
    struct rv_rem_opts opts = options(RV_REM_NATURAL_SQL);

    for (size_t i = 0; i < RV_COUNT(texts); i++) {
        struct rv_rem_fault fault;
        struct rv_rem_query q;
        ck_assert_int_eq(rv_rem_parse(texts[i], &opts, &q, &fault, NULL), RV_E_INVALID);
        ck_assert_int_eq(fault.code, RV_REM_BAD_TEXT);
        ck_assert_int_eq(fault.col, cols[i]);
    }
}
END_TEST

/* Proves p8-data.23/5: No text whose first word is one of the four modes is SQL, whatever follows and is configured */
START_TEST(a_mode_never_becomes_sql)
{
    static const char *const modes[] = {"LOOKUP", "search", "Fuzzy", "TRAVERSE"};
    static const char *const parts[] = {" ",      "\t",     "\n",     "'",     "\"",
                                        "\\",     ",",      "=",      ";",     "--",
                                        "/*",     "x",      "FROM",   "LIMIT", "5",
                                        "SELECT", "SQL",    "DELETE", "é",     "moments",
                                        "0.5",    "limit=", "\0",     "\xff",  "DROP TABLE x",
                                        "LOAD",   "DEPTH"};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 8);
    int n = rv_kit_sample(20000, 1000000), n_read = 0;

    for (int i = 0; i < n; i++) {
        struct rv_rem_opts opts = options((enum rv_rem_natural)(rv_rand_below(rand, 3)));
        struct rv_rem_fault fault;
        struct rv_rem_query q;
        rv_buf b = RV_BUF_INIT(4096);
        rv_err *err = NULL;
        int rc;

        rv_buf_puts(&b, modes[rv_rand_below(rand, RV_COUNT(modes))]);
        rv_buf_putc(&b, " \t\r\n"[rv_rand_below(rand, 4)]);
        for (uint64_t k = rv_rand_below(rand, 12); k > 0; k--) {
            const char *part = parts[rv_rand_below(rand, RV_COUNT(parts))];
            rv_buf_add(&b, part, part[0] ? strlen(part) : 1);
        }
        rc = rv_rem_parse(rv_buf_str(&b), &opts, &q, &fault, &err);
        ck_assert_msg(rc < 0 || q.mode < RV_REM_SQL, "%s", rv_buf_cstr(&b));
        ck_assert((rc < 0) == (err != NULL) && (rc < 0) == (fault.code != RV_REM_OK) && (rc == 0 || fault.col > 0));
        if (rc == 0) {
            n_read++;
            rv_rem_query_fini(&q);
        }
        rv_err_free(err);
        rv_buf_fini(&b);
    }
    ck_assert_int_gt(n_read, n / 10);
}
END_TEST

TCase *parse_case(void)
{
    TCase *c = tcase_create("parse");

    tcase_add_loop_test(c, a_query_becomes_what_it_means, 0, RV_COUNT(good));
    tcase_add_loop_test(c, a_fault_has_a_code_and_a_place, 0, RV_COUNT(bad));
    tcase_add_test(c, text_without_a_mode_is_what_the_option_says);
    tcase_add_test(c, sizes_are_limited);
    tcase_add_test(c, bytes_that_are_not_text_are_refused);
    tcase_add_test(c, a_mode_never_becomes_sql);
    return c;
}
