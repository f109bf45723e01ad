/* The type of an unquoted scalar, by the core rules of YAML 1.2 with one restriction: a decimal number with a leading
 * zero stays a string, because half of its readers would take it for octal. */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>

#include "coreengine/lang/yaml_internal.h"

static bool is_word(rv_str s, const char *lower, const char *title, const char *upper)
{
    return rv_str_is(s, lower) || rv_str_is(s, title) || rv_str_is(s, upper);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(rv_str s, size_t i)
{
    while (i < s.len && is_digit(s.ptr[i]))
        i++;
    return i;
}

enum shape { SHAPE_NONE, SHAPE_INT, SHAPE_FLOAT };

static enum shape decimal_shape(rv_str s)
{
    size_t start = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+') ? 1 : 0;
    size_t i = skip_digits(s, start);
    size_t n_digits = i - start;
    enum shape shape = SHAPE_INT;

    if (n_digits > 1 && s.ptr[start] == '0')
        return SHAPE_NONE;
    if (i < s.len && s.ptr[i] == '.') {
        size_t end = skip_digits(s, i + 1);
        n_digits += end - (i + 1);
        i = end;
        shape = SHAPE_FLOAT;
    }
    if (n_digits == 0)
        return SHAPE_NONE;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        size_t exponent = i + 1;
        size_t end;
        if (exponent < s.len && (s.ptr[exponent] == '-' || s.ptr[exponent] == '+'))
            exponent++;
        end = skip_digits(s, exponent);
        if (end == exponent)
            return SHAPE_NONE;
        i = end;
        shape = SHAPE_FLOAT;
    }
    return i == s.len ? shape : SHAPE_NONE;
}

/* strtod whatever the process's locale; glibc's "C" locale is static and needs no memory. */
static double read_double(const char *text)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double d;

    if (c_locale == (locale_t)0)
        return strtod(text, NULL);
    d = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    return d;
}

static void set_integer(struct rv_node *node, const char *digits, int base)
{
    errno = 0;
    node->i64 = strtoll(digits, NULL, base);
    if (errno == ERANGE) { /* kept as a number; a reader that needs an integer refuses it */
        node->kind = RV_NODE_FLOAT;
        node->i64 = 0;
        node->f64 = base == 10 ? read_double(node->text.ptr) : __builtin_inf();
        return;
    }
    node->kind = RV_NODE_INT;
    node->f64 = (double)node->i64;
}

/* 0o17 and 0x1F */
static bool set_prefixed(struct rv_node *node)
{
    rv_str s = node->text;
    bool octal = s.len > 2 && s.ptr[0] == '0' && s.ptr[1] == 'o';
    bool hex = s.len > 2 && s.ptr[0] == '0' && s.ptr[1] == 'x';

    if (!octal && !hex)
        return false;
    for (size_t i = 2; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = octal ? (c >= '0' && c <= '7') : (is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
        if (!ok)
            return false;
    }
    set_integer(node, s.ptr + 2, octal ? 8 : 16);
    return true;
}

static bool set_special_float(struct rv_node *node)
{
    rv_str s = node->text;
    bool negative = s.len > 0 && s.ptr[0] == '-';

    if (is_word(s, ".nan", ".NaN", ".NAN")) {
        node->f64 = __builtin_nan("");
        return true;
    }
    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'))
        s = (rv_str){s.ptr + 1, s.len - 1};
    if (!is_word(s, ".inf", ".Inf", ".INF"))
        return false;
    node->f64 = negative ? -__builtin_inf() : __builtin_inf();
    return true;
}

void rv_scalar_resolve(struct rv_node *node)
{
    rv_str s = node->text;

    node->kind = RV_NODE_STR;
    if (s.len == 0 || rv_str_is(s, "~") || is_word(s, "null", "Null", "NULL")) {
        node->kind = RV_NODE_NULL;
        return;
    }
    if (is_word(s, "true", "True", "TRUE") || is_word(s, "false", "False", "FALSE")) {
        node->kind = RV_NODE_BOOL;
        node->i64 = s.ptr[0] == 't' || s.ptr[0] == 'T';
        return;
    }
    if (set_prefixed(node))
        return;
    switch (decimal_shape(s)) {
    case SHAPE_INT:
        set_integer(node, s.ptr, 10);
        return;
    case SHAPE_FLOAT:
        node->kind = RV_NODE_FLOAT;
        node->f64 = read_double(s.ptr);
        return;
    case SHAPE_NONE:
        break;
    }
    if (set_special_float(node))
        node->kind = RV_NODE_FLOAT;
}
