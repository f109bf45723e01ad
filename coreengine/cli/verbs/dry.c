/* reeve run --dry-run: what would be sent to models and what it can cost; nothing is run. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

struct print {
    const struct rv_cli *cli;
    rv_buf text;
    rv_jw json;
};

static void add_part(struct print *p, json_object *request, const char *key)
{
    json_object *part = NULL;

    if (!json_object_object_get_ex(request, key, &part) || !part)
        return;
    rv_buf whole = RV_BUF_INIT(RV_APP_MAX_TEXT);
    if (json_object_is_type(part, json_type_string))
        rv_buf_add_str(&whole, rv_json_str(part));
    else
        rv_json_write(part, &whole);
    rv_buf_printf(&p->text, "  %s: ", key);
    if (p->cli->out_tty) /* it may quote what people and tools said */
        cli_write_lines(rv_buf_str(&whole), &p->text);
    else
        rv_buf_add_str(&p->text, rv_buf_str(&whole));
    while (p->text.len && p->text.ptr[p->text.len - 1] == '\n')
        rv_buf_truncate(&p->text, p->text.len - 1);
    rv_buf_putc(&p->text, '\n');
    rv_buf_fini(&whole);
}

static void add_tools(struct print *p, json_object *request)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    const char *name = NULL;

    for (size_t i = 0; tools && i < json_object_array_length(tools); i++)
        if (rv_json_get_text(json_object_array_get_idx(tools, i), "name", &name))
            rv_buf_printf(&p->text, "%s%s", i ? ", " : "  tools: ", name);
    if (name)
        rv_buf_putc(&p->text, '\n');
}

static int print_text(void *self, const struct rv_app_dry_stage *s, rv_err **err)
{
    static const char *const parts[] = {"system", "examples", "history", "prompt", "attachments"};
    struct print *p = self;

    const char *provider = rv_json_text_or(s->request, "provider", "?");
    const char *model = rv_json_text_or(s->request, "model", "?");
    rv_buf_printf(&p->text, "%s", s->agent->name);
    if (s->request)
        rv_buf_printf(&p->text, " asks %s%s%s", provider, model[0] ? ":" : "", model);
    rv_buf_putc(&p->text, '\n');
    for (size_t i = 0; s->request && i < RV_COUNT(parts); i++)
        add_part(p, s->request, parts[i]);
    if (s->request)
        add_tools(p, s->request);
    if (s->why)
        rv_buf_printf(&p->text, "  not known before a run: %s\n", s->why);
    for (size_t i = 0; i < s->n_hooks; i++)
        rv_buf_printf(&p->text, "  the hook %s may change it\n", s->hooks[i]);
    return rv_buf_check(&p->text, "a dry run", err);
}

static int print_json(void *self, const struct rv_app_dry_stage *s, rv_err **err)
{
    struct print *p = self;
    rv_jw *w = &p->json;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "pipeline", s->pipeline->name);
    rv_jw_kv_text(w, "stage", s->agent->name);
    rv_jw_kv_value(w, "request", s->request);
    if (s->why)
        rv_jw_kv_text(w, "why", s->why);
    rv_jw_kv_bool(w, "has_unknown", s->has_unknown);
    rv_jw_key(w, "hooks");
    rv_jw_arr(w);
    for (size_t i = 0; i < s->n_hooks; i++)
        rv_jw_text(w, s->hooks[i]);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
    return rv_buf_check(&p->text, "a dry run", err);
}

int cli_dry_run(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err)
{
    struct print p = {.cli = cli, .text = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    bool json = cli_flag(cli, "json");
    struct rv_app_proved proved = {0};
    json_object *state = NULL;
    int rc = cli_state(cli, &state, err);

    p.json = rv_jw_on(&p.text);
    if (rc == 0)
        rc = rv_app_prove(loaded->pipeline, INT64_MAX, &proved, err);
    if (rc == 0 && json) {
        rv_jw_obj(&p.json);
        rv_jw_key(&p.json, "requests");
        rv_jw_arr(&p.json);
    }
    if (rc == 0)
        rc = rv_app_dry_run(loaded, state, json ? print_json : print_text, &p, err);
    if (rc == 0 && json) {
        rv_jw_arr_end(&p.json);
        rv_app_proved_write(loaded->pipeline, &proved, &p.json);
        rv_jw_obj_end(&p.json);
        rv_buf_putc(&p.text, '\n');
    } else if (rc == 0) {
        cli_write_proof(loaded->pipeline, &proved, &p.text);
    }
    rv_proof_fini(&proved.part);
    json_object_put(state);
    return cli_print(rc, &p.text, err);
}
