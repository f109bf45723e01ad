#include "tests/unit/config_agents/world.h"

#include <stdlib.h>
#include <string.h>

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    static const struct rv_src garbled = {"row 7", 2, 3};
    static char where[128];
    struct docs *docs = self;

    docs->n_asked++;
    if (strcmp(name, "garbled") == 0)
        return RV_FAIL_AT(err, &garbled, RV_E_INVALID, "it is no agent");
    if (strcmp(name, "offline") == 0)
        return RV_FAIL(err, RV_E_IO, "the store does not answer");
    for (size_t i = 0; i < docs->n; i++) {
        if (strcmp(docs->items[i][0], name) != 0)
            continue;
        ck_assert_uint_lt(strlen(name) + 6, sizeof where);
        memcpy(where, name, strlen(name));
        memcpy(where + strlen(name), ".yaml", 6);
        *text = rv_str_of(docs->items[i][1]);
        *place = where;
        return 0;
    }
    RV_IGNORE(RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\"", name), "returned below");
    rv_err_set_hint(err, "look into the folder");
    return RV_E_NOT_FOUND;
}

struct rv_agent_source docs_source(struct docs *docs)
{
    return (struct rv_agent_source){find, docs};
}

struct bound bind_text(const char *text, struct docs *docs)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agent_source source = docs_source(docs);
    rv_buf out = RV_BUF_INIT(1 << 20);
    struct bound b = {NULL, NULL};

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "t.yaml", ".", findings, &b.p, NULL), 0);
    ck_assert_ptr_nonnull(b.p);
    ck_assert_int_eq(rv_pipeline_bind_agents(b.p, &source, findings, NULL), 0);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &out);
    rv_buf_putc(&out, ' ');
    rv_buf_truncate(&out, out.len - 1);
    b.findings = rv_buf_steal(&out, NULL);
    ck_assert(b.p->is_sound == (rv_findings_n_errors(findings) == 0));
    rv_findings_free(findings);
    return b;
}

struct bound bind_clean(const char *text, struct docs *docs)
{
    struct bound b = bind_text(text, docs);

    ck_assert_str_eq(b.findings, "");
    return b;
}

void bound_fini(struct bound *b)
{
    rv_pipeline_free(b->p);
    free(b->findings);
}

static const char *const *list(void *self, enum rv_name_kind kind, size_t *n)
{
    static const char *const tools[] = {"a", "b", "send"};
    static const char *const providers[] = {"anthropic", "openai", "scripted"};

    (void)self;
    *n = kind == RV_NAME_TOOL || kind == RV_NAME_PROVIDER ? 3 : 0;
    return kind == RV_NAME_TOOL ? tools : providers;
}

struct rv_known_names known_tools(void)
{
    return (struct rv_known_names){.list = list, .self = NULL};
}

char *joined(const struct rv_str_list *names)
{
    rv_buf b = RV_BUF_INIT(1 << 16);

    rv_buf_puts(&b, "");
    for (size_t i = 0; i < names->n; i++)
        rv_buf_printf(&b, "%s%s", i ? " " : "", names->items[i]);
    rv_buf_putc(&b, ' ');
    rv_buf_truncate(&b, b.len - 1);
    return rv_buf_steal(&b, NULL);
}
