/* Trigrams are those of PostgreSQL's pg_trgm, bit for bit, in a database with the ctype C.UTF-8. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "coreengine/match/match_internal.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"
#include "tests/kit/suites.h"
#include "tests/unit/match/suites.h"

#define N_PAIRS   400 /* of a batch */
#define N_BATCHES 10

/* Letters that are in Unicode 14, which the C library of Debian 12 and with it the server has. */
static int32_t character(struct numbers *r)
{
    static const struct rune_range ranges[] = {
        {'a', 'f'},       {'A', 'F'},       {' ', '~'},       {0xc0, 0x17f},      {0x391, 0x3c9},
        {0x410, 0x44f},   {0x5b0, 0x5ea},   {0x621, 0x65f},   {0x904, 0x94d},     {0xe01, 0xe3a},
        {0x1e00, 0x1eff}, {0x1f00, 0x1f15}, {0x24b6, 0x24e9}, {0x2160, 0x2188},   {0x3041, 0x3096},
        {0x4e00, 0x4e40}, {0xac00, 0xac20}, {0xff21, 0xff5a}, {0x10400, 0x1044f}, {0x300, 0x345},
    };
    const struct rune_range *range = &ranges[next_below(r, RV_COUNT(ranges))];

    return range->first + (int32_t)next_below(r, (size_t)(range->last - range->first) + 1);
}

static void make_text(struct numbers *r, rv_buf *out)
{
    char bytes[4];

    rv_buf_clear(out);
    for (size_t n = next_below(r, 14); n > 0; n--)
        if (next_below(r, 4) == 0)
            rv_buf_puts(out, next_below(r, 2) ? " " : "abc");
        else
            rv_buf_add(out, bytes, match_rune_write(character(r), bytes));
}

/* A text that shares some of another. */
static void make_like(struct numbers *r, const rv_buf *text, rv_buf *out)
{
    rv_str half = {text->ptr, text->len};

    make_text(r, out);
    for (size_t i = 0, n, stop = text->len ? next_below(r, text->len + 1) : 0; i < half.len; i += n) {
        (void)match_rune_at(half, i, &n);
        if (i >= stop)
            rv_buf_add(out, half.ptr + i, n);
    }
}

static void quote(rv_buf *sql, const rv_buf *text)
{
    rv_buf_putc(sql, '\'');
    for (size_t i = 0; i < text->len; i++) {
        if (text->ptr[i] == '\'')
            rv_buf_putc(sql, '\'');
        rv_buf_putc(sql, text->ptr[i]);
    }
    rv_buf_putc(sql, '\'');
}

/* A database whose letters are those of all scripts, with pg_trgm; its url is NULL if the server does not have that. */
static struct rv_kit_postgres database(void)
{
    struct rv_kit_postgres pg = *rv_kit_postgres();
    char *there = rv_kit_postgres_sql(&pg, "select count(*) from pg_available_extensions where name = 'pg_trgm'");
    const char *query = strchr(pg.url, '?');
    rv_buf url = RV_BUF_INIT(1000);
    bool has = strncmp(there, "1", 1) == 0;

    free(there);
    if (has)
        free(rv_kit_postgres_sql(&pg, "create database letters template template0 lc_ctype 'C.UTF-8' lc_collate 'C'"));
    rv_buf_printf(&url, "postgres:///letters%s", query);
    pg.url = rv_buf_steal(&url, NULL);
    if (has) {
        free(rv_kit_postgres_sql(&pg, "create extension pg_trgm"));
    } else {
        free(pg.url);
        pg.url = NULL;
    }
    return pg;
}

static float similarity(const rv_buf *a, const rv_buf *b)
{
    struct rv_grams x, y;

    ck_assert_int_eq(rv_grams_build(rv_buf_str(a), &x, NULL), 0);
    ck_assert_int_eq(rv_grams_build(rv_buf_str(b), &y, NULL), 0);
    float s = rv_grams_similarity(x.at, x.n, y.at, y.n);
    rv_grams_fini(&x);
    rv_grams_fini(&y);
    return s;
}

/* Compare a batch; returns how many pairs were somewhat alike. */
static size_t compare(const struct rv_kit_postgres *pg, struct numbers *r)
{
    float expected[N_PAIRS];
    rv_buf sql = RV_BUF_INIT(120000), a = RV_BUF_INIT(1000), b = RV_BUF_INIT(1000);
    size_t n_alike = 0;

    rv_buf_puts(&sql, "set client_encoding to utf8; select float4send(similarity(a, b)) from (values ");
    for (int i = 0; i < N_PAIRS; i++) {
        make_text(r, &a);
        make_like(r, &a, &b);
        expected[i] = similarity(&a, &b);
        n_alike += expected[i] > 0.1f;
        rv_buf_printf(&sql, "%s(%d, ", i ? ", " : "", i);
        quote(&sql, &a);
        rv_buf_puts(&sql, ", ");
        quote(&sql, &b);
        rv_buf_putc(&sql, ')');
    }
    rv_buf_puts(&sql, ") t(i, a, b) order by i");
    ck_assert_int_eq(rv_buf_check(&sql, "query", NULL), 0);
    char *answer = rv_kit_postgres_sql(pg, rv_buf_cstr(&sql)), *line = answer;
    for (int i = 0; i < N_PAIRS; i++) {
        uint32_t bits;
        memcpy(&bits, &expected[i], sizeof bits);
        line = strstr(line, "\\x");
        ck_assert_ptr_nonnull(line);
        ck_assert_msg(strtoul(line + 2, &line, 16) == bits, "pair %d: %.9g here", i, (double)expected[i]);
    }
    free(answer);
    rv_buf_fini(&sql);
    rv_buf_fini(&a);
    rv_buf_fini(&b);
    return n_alike;
}

/* Proves p8-data.10.1/pg_trgm: It is that of PostgreSQL, bit for bit */
START_TEST(similarities_are_those_of_pg_trgm)
{
    struct rv_kit_postgres pg = database();
    struct numbers r = {11};
    size_t n_alike = 0;

    if (!pg.url) {
        printf("skipped: the server has no pg_trgm\n");
        return;
    }
    for (int i = 0; i < N_BATCHES; i++)
        n_alike += compare(&pg, &r);
    ck_assert_uint_gt(n_alike, N_BATCHES * N_PAIRS / 10);
    free(pg.url);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("match_postgres");
    TCase *c = tcase_create("trigrams");

    rv_kit_postgres();
    tcase_add_test(c, similarities_are_those_of_pg_trgm);
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
