/* The functions and methods, one table: check.c reads the types, eval.c makes the calls. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/lang/expr_internal.h"

#define NUMBER_TEXT_MAX 32 /* longest text that is read or written as a number, NUL included */

static int cannot(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *v, const char *what)
{
    RV_IGNORE(lang_ev_fault(ev, RV_FAULT_CONVERT, n), "the failure is returned below, with more detail");
    ev->fault.a = *v;
    ev->fault.text = rv_str_of(what);
    return -1;
}

static int call_size(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                     struct rv_value *out)
{
    size_t size = 0;

    *out = (struct rv_value){.type = RV_T_INT};
    if (args->type == RV_T_STRING) {
        if (lang_ev_work(ev, n, 0, args->as.s.len) < 0)
            return -1;
        size = rv_utf8_count(args->as.s);
    } else {
        size = lang_value_size(args);
    }
    out->as.i = (int64_t)size;
    return 0;
}

static int call_contains(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                         struct rv_value *out)
{
    rv_str in = args[0].as.s, part = args[1].as.s;

    if (lang_ev_work(ev, n, 0, in.len + part.len) < 0)
        return -1;
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = part.len == 0 || memmem(in.ptr, in.len, part.ptr, part.len)};
    return 0;
}

static int call_starts_with(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                            struct rv_value *out)
{
    rv_str in = args[0].as.s, part = args[1].as.s;

    *out =
        (struct rv_value){.type = RV_T_BOOL, .as.b = part.len <= in.len && rv_str_eq((rv_str){in.ptr, part.len}, part)};
    return lang_ev_work(ev, n, 0, part.len);
}

static int call_ends_with(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                          struct rv_value *out)
{
    rv_str in = args[0].as.s, part = args[1].as.s;

    *out = (struct rv_value){.type = RV_T_BOOL,
                             .as.b =
                                 part.len <= in.len && rv_str_eq((rv_str){in.ptr + in.len - part.len, part.len}, part)};
    return lang_ev_work(ev, n, 0, part.len);
}

/* A step of the match is one of the evaluation. */
static int match(struct rv_eval *ev, const struct rv_expr_node *n, const rv_pattern *p, rv_str text,
                 struct rv_value *out)
{
    size_t given = RV_EXPR_MAX_WORK, left = given;
    bool found = false;
    int rc = rv_pattern_test(p, text, &left, &found, RV_CODE_ONLY("the expression's fault says it with the place"));

    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = found};
    if (rc == RV_E_NOMEM)
        return lang_ev_fault(ev, RV_FAULT_NOMEM, n);
    return rc < 0 ? lang_ev_fault(ev, RV_FAULT_WORK, n) : lang_ev_work(ev, n, given - left, 0);
}

static int call_matches(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                        struct rv_value *out)
{
    rv_pattern *p = NULL;
    int rc;

    if (n->pattern)
        return match(ev, n, n->pattern, args[0].as.s, out);
    rc = rv_pattern_new(args[1].as.s, &p, RV_CODE_ONLY("the expression's fault says it with the place"));
    if (rc < 0)
        return rc == RV_E_NOMEM ? lang_ev_fault(ev, RV_FAULT_NOMEM, n) : cannot(ev, n, &args[1], "a pattern");
    rc = match(ev, n, p, args[0].as.s, out);
    rv_pattern_free(p);
    return rc;
}

/* --- Conversions ---------------------------------------------------------------------------------------------------
 */

/* [+-]digits, nothing else. */
static bool is_integer_text(rv_str s)
{
    size_t i = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+');

    if (i == s.len || s.len >= NUMBER_TEXT_MAX)
        return false;
    while (i < s.len && isdigit((unsigned char)s.ptr[i]))
        i++;
    return i == s.len;
}

static int call_int(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args, struct rv_value *out)
{
    double d = args->as.d;

    *out = (struct rv_value){.type = RV_T_INT, .as.i = args->as.i};
    if (args->type == RV_T_UINT) {
        if (args->as.u > INT64_MAX)
            return lang_ev_fault(ev, RV_FAULT_OVERFLOW, n);
    } else if (args->type == RV_T_DOUBLE) {
        /* Both bounds are exact doubles; a NaN fails the test. */
        if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0))
            return lang_ev_fault(ev, RV_FAULT_OVERFLOW, n);
        out->as.i = (int64_t)d;
    } else if (args->type == RV_T_STRING) {
        errno = 0;
        out->as.i = is_integer_text(args->as.s) ? strtoll(args->as.s.ptr, NULL, 10) : 0;
        if (errno == ERANGE || !is_integer_text(args->as.s))
            return cannot(ev, n, args, "an int");
    }
    return 0;
}

static int call_uint(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                     struct rv_value *out)
{
    double d = args->as.d;

    *out = (struct rv_value){.type = RV_T_UINT, .as.u = args->as.u};
    if (args->type == RV_T_INT) {
        if (args->as.i < 0)
            return lang_ev_fault(ev, RV_FAULT_OVERFLOW, n);
    } else if (args->type == RV_T_DOUBLE) {
        if (!(d > -1.0 && d < 18446744073709551616.0)) /* rounded towards zero first, then looked at */
            return lang_ev_fault(ev, RV_FAULT_OVERFLOW, n);
        out->as.u = d < 0 ? 0 : (uint64_t)d;
    } else if (args->type == RV_T_STRING) {
        bool is_text = is_integer_text(args->as.s) && isdigit((unsigned char)args->as.s.ptr[0]);

        errno = 0;
        out->as.u = is_text ? strtoull(args->as.s.ptr, NULL, 10) : 0;
        if (errno == ERANGE || !is_text)
            return cannot(ev, n, args, "a uint");
    }
    return 0;
}

/* A decimal number or one of the names of the non-finite ones. rv_number_read() alone would take blanks and
 * hexadecimals. */
static bool is_double_text(rv_str s)
{
    static const char *const names[] = {"nan", "inf", "infinity"};
    size_t sign = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'), digits = 0;

    if (memchr(s.ptr, '\0', s.len))
        return false;
    for (size_t i = 0; i < RV_COUNT(names); i++) {
        if (strcasecmp(s.ptr + sign, names[i]) == 0)
            return true;
    }
    for (size_t i = sign; i < s.len; i++) {
        digits += isdigit((unsigned char)s.ptr[i]) != 0;
        if (!isdigit((unsigned char)s.ptr[i]) && !strchr(".eE+-", s.ptr[i]))
            return false;
    }
    return digits > 0;
}

static int call_double(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                       struct rv_value *out)
{
    char *end;

    *out = (struct rv_value){.type = RV_T_DOUBLE, .as.d = args->as.d};
    if (args->type == RV_T_INT) {
        out->as.d = (double)args->as.i;
    } else if (args->type == RV_T_UINT) {
        out->as.d = (double)args->as.u;
    } else if (args->type == RV_T_STRING) {
        if (lang_ev_work(ev, n, 0, args->as.s.len) < 0)
            return -1;
        if (!is_double_text(args->as.s))
            return cannot(ev, n, args, "a double");
        out->as.d = rv_number_read(args->as.s.ptr, &end);
        if (end != args->as.s.ptr + args->as.s.len)
            return cannot(ev, n, args, "a double");
    }
    return 0;
}

/* The shortest of 15, 16 or 17 digits that reads back as d. */
static void double_text(double d, char buf[NUMBER_TEXT_MAX])
{
    for (int digits = 15; digits <= 17; digits++) {
        rv_format(buf, NUMBER_TEXT_MAX, "%.*g", digits, d);
        if (rv_number_read(buf, NULL) == d)
            return;
    }
}

static int call_string(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                       struct rv_value *out)
{
    char buf[NUMBER_TEXT_MAX] = "";
    char *text;
    size_t len;

    *out = *args;
    if (args->type == RV_T_STRING)
        return 0;
    if (args->type == RV_T_BOOL)
        snprintf(buf, sizeof(buf), "%s", args->as.b ? "true" : "false");
    else if (args->type == RV_T_INT)
        snprintf(buf, sizeof(buf), "%" PRId64, args->as.i);
    else if (args->type == RV_T_UINT)
        snprintf(buf, sizeof(buf), "%" PRIu64, args->as.u);
    else if (isnan(args->as.d))
        snprintf(buf, sizeof(buf), "NaN"); /* printf would show the sign bit */
    else
        double_text(args->as.d, buf);
    len = strlen(buf);
    text = lang_ev_alloc(ev, n, len + 1);
    if (!text)
        return -1;
    memcpy(text, buf, len + 1);
    *out = (struct rv_value){.type = RV_T_STRING, .as.s = {text, len}};
    return 0;
}

static int call_bool(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                     struct rv_value *out)
{
    static const char *const words[] = {"true", "True", "TRUE", "t", "1", "false", "False", "FALSE", "f", "0"};

    *out = *args;
    if (args->type == RV_T_BOOL)
        return 0;
    for (size_t i = 0; i < RV_COUNT(words); i++) {
        if (rv_str_is(args->as.s, words[i])) {
            *out = (struct rv_value){.type = RV_T_BOOL, .as.b = i < RV_COUNT(words) / 2};
            return 0;
        }
    }
    return cannot(ev, n, args, "a bool");
}

static int call_type(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args,
                     struct rv_value *out)
{
    (void)ev;
    (void)n;
    *out = (struct rv_value){.type = RV_T_TYPE, .as.t = args->type};
    return 0;
}

static int call_dyn(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args, struct rv_value *out)
{
    (void)ev;
    (void)n;
    *out = *args;
    return 0;
}

#define SIZED (RV_M_STRING | RV_M_LIST | RV_M_MAP)

static const struct rv_function functions[] = {
    {"size", 1, {SIZED}, RV_M_INT, false, call_size},
    {"size", 1, {SIZED}, RV_M_INT, true, call_size},
    {"contains", 2, {RV_M_STRING, RV_M_STRING}, RV_M_BOOL, true, call_contains},
    {"startsWith", 2, {RV_M_STRING, RV_M_STRING}, RV_M_BOOL, true, call_starts_with},
    {"endsWith", 2, {RV_M_STRING, RV_M_STRING}, RV_M_BOOL, true, call_ends_with},
    {"matches", 2, {RV_M_STRING, RV_M_STRING}, RV_M_BOOL, true, call_matches},
    {"matches", 2, {RV_M_STRING, RV_M_STRING}, RV_M_BOOL, false, call_matches},
    {"int", 1, {RV_M_NUMBER | RV_M_STRING}, RV_M_INT, false, call_int},
    {"uint", 1, {RV_M_NUMBER | RV_M_STRING}, RV_M_UINT, false, call_uint},
    {"double", 1, {RV_M_NUMBER | RV_M_STRING}, RV_M_DOUBLE, false, call_double},
    {"string", 1, {RV_M_NUMBER | RV_M_BOOL | RV_M_STRING}, RV_M_STRING, false, call_string},
    {"bool", 1, {RV_M_BOOL | RV_M_STRING}, RV_M_BOOL, false, call_bool},
    {"type", 1, {RV_M_ANY}, RV_M_TYPE, false, call_type},
    {"dyn", 1, {RV_M_ANY}, RV_M_ANY, false, call_dyn},
};

const struct rv_function *lang_function_find(rv_str name, bool is_method)
{
    for (size_t i = 0; i < RV_COUNT(functions); i++) {
        if (functions[i].is_method == is_method && rv_str_is(name, functions[i].name))
            return &functions[i];
    }
    return NULL;
}

const char *lang_function_name(size_t i)
{
    return i < RV_COUNT(functions) ? functions[i].name : NULL;
}
