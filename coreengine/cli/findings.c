/* Findings about a pipeline, for people. */
#include "coreengine/cli/cli.h"

bool rv_cli_sound(const struct rv_cli *cli, const struct rv_app_loaded *l, bool warnings)
{
    bool sound = l->pipeline && rv_findings_n_errors(l->findings) == 0;

    if (!sound || (warnings && rv_findings_n(l->findings))) {
        rv_buf text = RV_BUF_INIT(4 << 20);
        rv_findings_write_text(l->findings, cli->err_color, &text);
        rv_cli_err(rv_buf_str(&text));
        rv_buf_fini(&text);
    }
    return sound;
}

void rv_cli_warn_missing(const struct rv_cli *cli, const struct rv_app_loaded *l)
{
    rv_buf text = RV_BUF_INIT(4 << 20);

    if (!l->missing || rv_findings_n(l->missing) == 0)
        return;
    rv_findings_write_text(l->missing, cli->err_color, &text);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}
