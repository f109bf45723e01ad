/* The examples of the reference pages, so that the pages can not drift: each page has one json block with the values,
 * and blocks of lines "expression // => result" (cel) or "template => result" (template); the result "error" means a
 * failure. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

/* The JSON behind the first ```json line. */
static json_object *page_values(const char *page)
{
    const char *from = strstr(page, "```json\n"), *to = from ? strstr(from + 3, "\n```") : NULL;
    json_object *obj = NULL;

    ck_assert(from && to);
    from += strlen("```json\n");
    ck_assert_int_eq(rv_json_parse((rv_str){from, (size_t)(to - from)}, NULL, &obj, NULL), 0);
    return obj;
}

static char *evaluate(rv_str text, const struct rv_scope *scope)
{
    json_object *result = NULL;
    rv_expr *e = NULL;
    char *answer = NULL;

    if (rv_expr_compile(text, NULL, NULL, 0, &e, NULL) == 0 && rv_expr_eval(e, scope, &result, NULL) == 0)
        answer = rv_kit_text(result);
    json_object_put(result);
    rv_expr_free(e);
    return answer ? answer : rv_str_dup(RV_STR_LIT("error"));
}

static char *render(rv_str text, const struct rv_scope *scope)
{
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(10000);
    rv_template *t = NULL;
    char *answer = NULL;

    if (rv_template_compile(text, NULL, &t, NULL) == 0 && rv_template_render(t, scope, &out, NULL) == 0)
        answer = rv_str_dup(rv_buf_str(&out));
    rv_template_free(t);
    return answer ? answer : rv_str_dup(RV_STR_LIT("error"));
}

static const struct {
    const char *page, *fence, *separator;
    char *(*run)(rv_str text, const struct rv_scope *scope);
    int at_least;
} pages[] = {
    {"expressions.md", "```cel", "// => ", evaluate, 30},
    {"templates.md", "```template", "=> ", render, 15},
};

START_TEST(examples_of_the_reference_are_true)
{
    char *path = rv_kit_path(RV_SOURCE_DIR "/docs/reference", pages[_i].page), *page = rv_kit_read(path);
    json_object *values = page_values(page);
    struct rv_scope scope = rv_scope_of_object(values);
    bool inside = false;
    int n = 0;

    for (char *save = NULL, *line = strtok_r(page, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *mark = strstr(line, pages[_i].separator), *answer;

        if (strncmp(line, "```", 3) == 0)
            inside = strcmp(line, pages[_i].fence) == 0;
        if (!inside || !mark)
            continue;
        answer = pages[_i].run(rv_str_trim((rv_str){line, (size_t)(mark - line)}), &scope);
        ck_assert_msg(strcmp(answer, mark + strlen(pages[_i].separator)) == 0, "%s gives %s", line, answer);
        free(answer);
        n++;
    }
    ck_assert_int_ge(n, pages[_i].at_least);
    json_object_put(values);
    free(page);
    free(path);
}
END_TEST

TCase *docs_case(void)
{
    TCase *tc = tcase_create("docs");

    tcase_add_loop_test(tc, examples_of_the_reference_are_true, 0, RV_COUNT(pages));
    return tc;
}
