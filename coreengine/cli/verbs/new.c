/* reeve new */
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

static int make(struct rv_cli *cli, rv_err **err)
{
    static const char *const kinds[] = {"pipeline", "capability"};
    const char *kind = cli->words[0], *name = cli->words[1], *dir = cli->n_words > 2 ? cli->words[2] : name;
    rv_buf text = RV_BUF_INIT(1 << 20);
    int rc;

    if (strcmp(kind, "pipeline") == 0) {
        if (cli->n_words > 2)
            return rv_cli_usage(cli, err, "`reeve new pipeline` takes one file, not \"%s\" too", cli->words[2]);
        rc = rv_app_new_pipeline(name, err);
        rv_buf_printf(&text, "wrote %s\nnext: reeve test %s\n      reeve run %s --input hello\n", name, name, name);
    } else if (strcmp(kind, "capability") == 0) {
        rc = rv_app_new_capability(name, dir, rv_cli_value(cli, "sdk"), err);
        rv_buf_printf(&text, "wrote %s/: %s.c, %s.yaml, Makefile, CMakeLists.txt, README.md\n", dir, name, name);
        rv_buf_printf(&text, "next: cd %s && make check\n      reeve run %s.yaml --input Ada\n", dir, name);
    } else {
        const char *near = rv_nearest(rv_str_of(kind), kinds, RV_COUNT(kinds));
        return rv_cli_usage(cli, err, "unknown template \"%s\" (templates: pipeline, capability)%s%s%s", kind,
                            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return rv_cli_print(rc, &text, err);
}

static const struct rv_cli_option new_options[] = {
    {"sdk", 0, "DIR", "for a capability: folder that contains reeve/capability.h (default: searched)", "DIR", false},
};

const struct rv_cli_verb rv_verb_new = {
    .name = "new",
    .args = "pipeline FILE | capability NAME [DIR]",
    .summary = "write a new pipeline or capability from a template",
    .text =
        "The pipeline runs without a model and contains tests. The capability is a folder with a plugin in C, build\n"
        "files, a pipeline that uses it and tests. Existing files are not overwritten.",
    .examples = "reeve new pipeline hello.yaml && reeve test hello.yaml\n"
                "reeve new capability weather && make -C weather check",
    RV_CLI_OPTIONS(new_options),
    .min_words = 2,
    .max_words = 3,
    .run = make,
};
