/* Merging of edges: p8-data 16, and invariant 3 of section 23. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/match/match.h"
#include "tests/kit/kit.h"
#include "tests/unit/match/suites.h"

static json_object *parse(const char *text)
{
    json_object *out = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &out, NULL), 0);
    return out;
}

static json_object *merged(json_object *existing, json_object *more)
{
    json_object *out = NULL;

    ck_assert_int_eq(rv_edges_merge(existing, more, &out, NULL, NULL), 0);
    return out;
}

static const struct {
    const char *existing, *more, *merged;
} merges[] = {
    /* 16: the newcomer needs a strictly greater weight; the winner is kept whole, at the first place */
    {"[{\"target\":\"a\",\"weight\":0.5,\"x\":1},{\"target\":\"b\"}]", "[{\"target\":\"a\",\"weight\":0.5,\"x\":2}]",
     "[{\"target\":\"a\",\"weight\":0.5,\"x\":1},{\"target\":\"b\"}]"},
    {"[{\"target\":\"a\",\"weight\":0.5,\"x\":1},{\"target\":\"b\"}]", "[{\"target\":\"a\",\"weight\":0.6,\"y\":2}]",
     "[{\"target\":\"a\",\"weight\":0.6,\"y\":2},{\"target\":\"b\"}]"},
    /* no weight is 1.0, no relation is `related` */
    {"[{\"target\":\"a\",\"weight\":0.9}]", "[{\"target\":\"a\",\"relation\":\"related\"}]",
     "[{\"target\":\"a\",\"relation\":\"related\"}]"},
    {"[{\"target\":\"a\"}]", "[{\"target\":\"a\",\"relation\":\"links_to\"}]",
     "[{\"target\":\"a\"},{\"target\":\"a\",\"relation\":\"links_to\"}]"},
    {"[{\"target\":\"a\",\"relation\":null,\"weight\":null}]", "[{\"target\":\"a\",\"relation\":\"\"}]",
     "[{\"target\":\"a\",\"relation\":null,\"weight\":null}]"},
    /* duplicates within `existing` */
    {"[{\"target\":\"a\",\"weight\":0.1},{\"target\":\"a\",\"weight\":0.2}]", "[]",
     "[{\"target\":\"a\",\"weight\":0.2}]"},
    /* targets by their keys, weights within 0..1 */
    {"[{\"target\":\"Sarah Chen\",\"weight\":0.1}]", "[{\"target\":\"sarah_chen\",\"weight\":3}]",
     "[{\"target\":\"sarah_chen\",\"weight\":1.0}]"},
    {"[{\"target\":\"a\",\"weight\":-2}]", "null", "[{\"target\":\"a\",\"weight\":0.0}]"},
    {"[{\"target\":\"!\"},{\"target\":\"?\"}]", "[]", "[{\"target\":\"!\"},{\"target\":\"?\"}]"},
    /* Q3: a list within a string */
    {"\"[{\\\"target\\\":\\\"a\\\"}]\"", "\"null\"", "[{\"target\":\"a\"}]"},
};

START_TEST(edges_are_merged)
{
    json_object *existing = parse(merges[_i].existing), *more = parse(merges[_i].more), *out = merged(existing, more),
                *expected = parse(merges[_i].merged);
    rv_buf shown = RV_BUF_INIT(10000);

    rv_json_write(out, &shown);
    ck_assert_str_eq(rv_buf_cstr(&shown), merges[_i].merged);
    rv_buf_fini(&shown);
    json_object_put(existing);
    json_object_put(more);
    json_object_put(out);
    json_object_put(expected);
}
END_TEST

START_TEST(what_is_no_edge_is_counted)
{
    json_object *existing = parse("[1,{\"target\":\"a\"}]"), *out = NULL,
                *more = parse("[null,\"x\",{},{\"target\":5},{\"target\":\"\"},{\"target\":\"a\",\"weight\":\"1\"},"
                              "{\"target\":\"a\",\"relation\":[]},{\"target\":\"b\"}]");
    size_t n_refused = 0;

    ck_assert_int_eq(rv_edges_merge(existing, more, &out, &n_refused, NULL), 0);
    ck_assert_uint_eq(n_refused, 7);
    ck_assert_uint_eq(json_object_array_length(out), 2);
    json_object_put(out);
    ck_assert_int_eq(rv_edges_merge(more, json_object_array_get_idx(more, 2), &out, NULL, NULL), RV_E_INVALID);
    json_object_put(existing);
    json_object_put(more);
}
END_TEST

START_TEST(an_entity_has_a_limit_of_edges)
{
    json_object *many = json_object_new_array(), *out = NULL;

    for (int i = 0; i <= RV_EDGES_MAX; i++) {
        char name[32];
        json_object *edge = json_object_new_object();
        snprintf(name, sizeof name, "t%d", i);
        json_object_object_add(edge, "target", json_object_new_string(name));
        json_object_array_add(many, edge);
    }
    ck_assert_int_eq(rv_edges_merge(many, NULL, &out, NULL, NULL), RV_E_LIMIT);
    json_object_put(many);
}
END_TEST

static json_object *some_edges(struct numbers *r)
{
    static const char *const targets[] = {"a", "A", "b c", "b_c", "B-C", "\u00dcx", "\u00fcX", "!", "d"};
    static const char *const relations[] = {"related", "links_to", "Links_To", ""};
    json_object *list = json_object_new_array();

    for (size_t n = next_below(r, 12); n > 0; n--) {
        json_object *edge = json_object_new_object();
        json_object_object_add(edge, "target", json_object_new_string(targets[next_below(r, RV_COUNT(targets))]));
        if (next_below(r, 3))
            json_object_object_add(edge, "relation",
                                   json_object_new_string(relations[next_below(r, RV_COUNT(relations))]));
        if (next_below(r, 3))
            json_object_object_add(edge, "weight", rv_json_new_double((double)next_below(r, 9) / 4 - 0.5));
        json_object_object_add(edge, "n", json_object_new_int((int)n));
        json_object_array_add(list, edge);
    }
    return list;
}

static bool are_same(json_object *a, json_object *b)
{
    rv_buf x = RV_BUF_INIT(1000), y = RV_BUF_INIT(1000);
    json_object *s = NULL, *t = NULL;

    json_object_object_get_ex(a, "target", &s);
    json_object_object_get_ex(b, "target", &t);
    rv_match_write_key(rv_json_str(s), &x);
    rv_match_write_key(rv_json_str(t), &y);
    bool same = rv_str_eq(rv_edge_relation(a), rv_edge_relation(b)) && rv_str_eq(rv_buf_str(&x), rv_buf_str(&y));
    rv_buf_fini(&x);
    rv_buf_fini(&y);
    return same;
}

static double weight_of(json_object *edge)
{
    json_object *v = NULL;

    return json_object_object_get_ex(edge, "weight", &v) && v ? fmin(fmax(json_object_get_double(v), 0), 1) : 1;
}

static void check_weights(json_object *out, json_object *in)
{
    for (size_t i = 0; i < json_object_array_length(in); i++) {
        json_object *edge = json_object_array_get_idx(in, i);
        size_t n_same = 0;
        for (size_t k = 0; k < json_object_array_length(out); k++) {
            json_object *kept = json_object_array_get_idx(out, k);
            if (are_same(edge, kept)) {
                n_same++;
                ck_assert(weight_of(kept) >= weight_of(edge));
            }
        }
        ck_assert_uint_eq(n_same, 1);
    }
}

/* Proves p8-data.23/3: A merge has one edge for each target and relation, with the greatest weight; merged with itself,
 * a list is what it is merged with nothing */
START_TEST(merging_keeps_the_greatest_of_each)
{
    struct numbers r = {_i + 1};

    for (int i = 0; i < rv_kit_sample(500, 500); i++) {
        json_object *x = some_edges(&r), *y = some_edges(&r), *xy = merged(x, y), *xx = merged(x, x),
                    *x_only = merged(x, NULL), *again = merged(xy, y);
        check_weights(xy, x);
        check_weights(xy, y);
        ck_assert_uint_le(json_object_array_length(xy), json_object_array_length(x) + json_object_array_length(y));
        ck_assert(rv_json_equal(xx, x_only));
        ck_assert(rv_json_equal(again, xy));
        json_object *const all[] = {x, y, xy, xx, x_only, again};
        for (size_t k = 0; k < RV_COUNT(all); k++)
            json_object_put(all[k]);
    }
}
END_TEST

TCase *edges_case(void)
{
    TCase *c = tcase_create("edges");

    tcase_add_loop_test(c, edges_are_merged, 0, RV_COUNT(merges));
    tcase_add_test(c, what_is_no_edge_is_counted);
    tcase_add_test(c, an_entity_has_a_limit_of_edges);
    tcase_add_loop_test(c, merging_keeps_the_greatest_of_each, 0, 4);
    return c;
}
