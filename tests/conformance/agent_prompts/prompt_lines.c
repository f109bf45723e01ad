/* Our side of the comparison: one agent document a line in (JSON), its prompt a line out (a JSON string, or an object
 * with the findings). With names of files: {"flat": ..., "prompt": ...} for each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc.h"

#define MAX_PROMPT ((size_t)16 << 20)

static void write_findings(const rv_findings *findings, const rv_err *err, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_key(w, "findings");
    rv_findings_write_json(findings, w);
    if (err)
        rv_jw_kv_text(w, "error", rv_err_text(err));
    rv_jw_obj_end(w);
}

static void answer(rv_str text, const char *name, bool with_flat, rv_jw *w)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    rv_buf prompt = RV_BUF_INIT(MAX_PROMPT);
    rv_err *err = NULL;
    int rc;

    if (!findings)
        exit(3);
    rc = rv_agentdoc_parse(text, name, findings, &d, &err);
    if (rc == 0 && d)
        rc = rv_agentdoc_write_prompt(d, RV_UNSET, &prompt, &err);
    if (rc < 0 || !d) {
        write_findings(findings, err, w);
    } else if (with_flat) {
        rv_jw_obj(w);
        rv_jw_kv_value(w, "flat", d->flat);
        rv_jw_kv_str(w, "prompt", rv_buf_str(&prompt));
        rv_jw_obj_end(w);
    } else {
        rv_jw_str(w, rv_buf_str(&prompt));
    }
    rv_buf_fini(&prompt);
    rv_err_free(err);
    rv_agentdoc_free(d);
    rv_findings_free(findings);
}

static void print(rv_str text, const char *name, bool with_flat)
{
    rv_buf line = RV_BUF_INIT(2 * MAX_PROMPT);
    rv_jw w = rv_jw_on(&line);

    answer(text, name, with_flat, &w);
    if (line.rc < 0)
        exit(3);
    puts(rv_buf_cstr(&line));
    rv_buf_fini(&line);
}

static int print_file(const char *path)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    rv_err *err = NULL;
    int rc = rv_file_read(path, &text, &err);

    if (rc == 0)
        print(rv_buf_str(&text), path, true);
    else
        (void)fprintf(stderr, "%s: %s\n", path, rv_err_text(err));
    rv_err_free(err);
    rv_buf_fini(&text);
    return rc;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    for (int i = 1; i < argc; i++)
        if (print_file(argv[i]) < 0)
            return 1;
    while (argc == 1 && (len = getline(&line, &room, stdin)) > 0)
        print((rv_str){line, (size_t)len - (line[len - 1] == '\n')}, "line", false);
    free(line);
    return 0;
}
