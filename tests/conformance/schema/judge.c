/* Reads documents, one JSON text a line, and answers one line for each: "ok", or the first error the loader finds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

static void write_schema(void)
{
    rv_buf b = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_pipeline_write_schema(&w);
    puts(rv_buf_cstr(&b));
    rv_buf_fini(&b);
}

static int judge(rv_str text, const char *dir)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    const char *answer = "ok";
    int rc;

    if (!findings)
        return 1;
    rc = rv_pipeline_parse(text, "line", dir, findings, &p, NULL);
    for (size_t i = rv_findings_n(findings); i > 0; i--)
        if (rv_findings_at(findings, i - 1).severity != RV_SEVERITY_WARNING)
            answer = rv_findings_at(findings, i - 1).text;
    puts(rc < 0 ? rv_code_text(rc) : answer);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    return rc < 0;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;

    if (argc < 2)
        return 1;
    if (strcmp(argv[1], "--schema") == 0) {
        write_schema();
        return 0;
    }
    while ((n = getline(&line, &cap, stdin)) > 0)
        rc |= judge((rv_str){line, (size_t)n}, argv[1]);
    free(line);
    return rc;
}
