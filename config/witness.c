/* Outputs that show that a route can be taken. An expression may never become true, so a route that depends on one
 * counts as sure only when an output was found that leads there: made-up outputs, from the literals of the stage's own
 * rules and a few common values, are routed as a run would do it. Finding none proves nothing. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis_internal.h"

#define MAX_FIELDS  8
#define MAX_VALUES  48
#define MAX_SAMPLES 1024 /* of one stage: about a millisecond */

struct sampler {
    const struct rv_agent *agent;
    json_object *values[MAX_VALUES]; /* owned; what a field of the output may be */
    size_t n_values;
    rv_str fields[MAX_FIELDS]; /* borrowed from rules and expressions; seen so far */
    size_t n_fields;
    uint64_t sample;
    bool is_foreign; /* the last evaluation looked at more than fields of the output */
    int rc;          /* RV_E_NOMEM; sticky */
};

static void add_value_take(struct sampler *s, json_object *value) /* NULL: null */
{
    if (s->n_values < MAX_VALUES)
        s->values[s->n_values++] = value;
    else
        json_object_put(value);
}

static void add_new_take(struct sampler *s, json_object *value)
{
    if (value)
        add_value_take(s, value);
    else
        s->rc = RV_E_NOMEM;
}

static void add_number(struct sampler *s, double number)
{
    if (!isfinite(number))
        return;
    if (floor(number) == number && fabs(number) < 1e15) {
        for (int64_t i = -1; i <= 1; i++)
            add_new_take(s, json_object_new_int64((int64_t)number + i));
    } else {
        add_new_take(s, rv_json_double(number));
        add_new_take(s, rv_json_double(number - 1));
        add_new_take(s, rv_json_double(number + 1));
    }
}

/* Literals, roughly: what is missed or misread only makes a sample useless. */
static void add_literals(struct sampler *s, const char *text)
{
    while (*text) {
        if (*text == '"' || *text == '\'') {
            const char *end = strchr(text + 1, *text);

            if (!end)
                return;
            add_new_take(s, json_object_new_string_len(text + 1, (int)(end - text - 1)));
            text = end + 1;
        } else if (isdigit((unsigned char)*text)) {
            char *end;

            add_number(s, strtod(text, &end));
            text = end;
        } else if (isalpha((unsigned char)*text) || *text == '_') {
            while (isalnum((unsigned char)*text) || *text == '_')
                text++;
        } else {
            text++;
        }
    }
}

static void add_values(struct sampler *s)
{
    add_new_take(s, json_object_new_boolean(true));
    add_new_take(s, json_object_new_boolean(false));
    add_new_take(s, json_object_new_int64(0));
    add_new_take(s, json_object_new_int64(1));
    add_new_take(s, json_object_new_string("text"));
    for (size_t i = 0; i < s->agent->routing.n_rules; i++) {
        const struct rv_rule *rule = &s->agent->routing.rules[i];
        json_object *copy = NULL; /* not a reference: counting it would change a pipeline that others read */

        if (rule->when)
            add_literals(s, rv_expr_text(rule->when));
        else if (rv_json_dup(rule->value, &copy, NULL) < 0)
            s->rc = RV_E_NOMEM;
        else
            add_value_take(s, copy);
    }
}

/* The value of a field in this sample: any of the values, the same one whenever it is asked for. */
static bool field_value(struct sampler *s, rv_str name, json_object **out)
{
    size_t i = 0;
    uint64_t mix;

    while (i < s->n_fields && !rv_str_eq(s->fields[i], name))
        i++;
    if (i == MAX_FIELDS || rv_str_is(name, "outcome"))
        return false; /* an outcome may stop the stage before it routes */
    if (i == s->n_fields)
        s->fields[s->n_fields++] = name;
    mix = (s->sample * MAX_FIELDS + i + 1) * 0x9e3779b97f4a7c15u;
    mix = (mix ^ mix >> 32) * 0xbf58476d1ce4e5b9u;
    *out = s->values[(mix >> 33) % s->n_values];
    return true;
}

static int lookup(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err)
{
    struct sampler *s = self;

    (void)err;
    *found = rv_str_is(name, "output") && field.ptr && field_value(s, field, out);
    s->is_foreign |= !*found;
    return 0;
}

/* The rule that this sample's output matches, n_rules for none; -1: the sample says nothing. */
static int route_sample(struct sampler *s)
{
    struct rv_scope scope = {lookup, s};

    s->is_foreign = false;
    for (size_t i = 0; i < s->agent->routing.n_rules; i++) {
        const struct rv_rule *rule = &s->agent->routing.rules[i];
        json_object *value = NULL;
        bool matches = false;

        if (rule->when) {
            int rc = rv_expr_test(rule->when, &scope, &matches, NULL);

            if (rc == RV_E_NOMEM)
                s->rc = rc;
            if (rc < 0 || s->is_foreign)
                return -1;
        } else {
            if (!rule->condition || !field_value(s, rv_str_of(rule->condition), &value))
                return -1;
            matches = rv_json_equal(value, rule->value);
        }
        if (matches)
            return (int)i;
    }
    return (int)s->agent->routing.n_rules;
}

static void try_samples(struct sampler *s, struct rv_route *routes, size_t n_open)
{
    for (s->sample = 0; s->sample < MAX_SAMPLES && n_open > 0 && s->rc == 0; s->sample++) {
        int taken = route_sample(s);

        if (taken < 0 && s->sample >= 64 &&
            s->is_foreign) /* the rule looks at more than the output: more outputs will not help */
            return;
        if (taken >= 0 && !routes[taken].is_likely && routes[taken].fate == RV_WAY_LIVE) {
            routes[taken].is_likely = true;
            n_open--;
        }
    }
}

int rv_witness_routes(const struct rv_agent *a, struct rv_route *routes, rv_err **err)
{
    struct sampler s = {.agent = a};
    size_t n_open = 0;

    for (size_t i = 0; i <= a->routing.n_rules; i++)
        n_open += !routes[i].is_likely && routes[i].fate == RV_WAY_LIVE;
    if (n_open == 0 || a->routing.function[0])
        return 0;
    add_values(&s);
    try_samples(&s, routes, n_open);
    for (size_t i = 0; i < s.n_values; i++)
        json_object_put(s.values[i]);
    return s.rc < 0 ? RV_FAIL(err, s.rc, "try outputs of stage \"%s\"", a->name) : 0;
}
