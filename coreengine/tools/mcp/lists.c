/* Lists of tools that a server said stay as they are for a while: the next run of this process does not ask again.
 *
 * Lists are kept as text, by everything that decides what a server answers to whom: where it is, how it is started, and
 * the identity of the client. So a list that is private to an identity is never another one's. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/tools/mcp/mcptools_internal.h"

#define MAX_LISTS  64 /* servers of all pipelines of a process: in memory; the one that ends first goes */
#define MAX_BYTES  ((size_t)1 << 20) /* of one list: a larger one is asked for again */
#define MAX_TTL_MS INT64_C(3600000)  /* an hour: no connection may be open when the server says that a list changed */

struct mcp_kept {
    char key[RV_HASH_MAX];
    char *text; /* array of tools; owned */
    bool has_resources, has_prompts;
    int64_t until_us;
};

static void add_text(struct rv_hash *h, const char *text)
{
    rv_hash_add(h, text ? (rv_str){text, strlen(text) + 1} : RV_STR_LIT("\n"));
}

static void add_list(struct rv_hash *h, const struct rv_str_list *list)
{
    add_text(h, list->is_set ? "list" : NULL);
    for (size_t i = 0; i < list->n; i++)
        add_text(h, list->items[i]);
}

int mcptools_identity(const struct rv_mcp_server_config *s, char out[RV_HASH_MAX], rv_err **err)
{
    json_object *const parts[] = {s->env, s->headers, s->auth};
    struct rv_hash h;
    int rc = 0;

    rv_hash_init(&h);
    add_text(&h, s->url);
    add_text(&h, s->openapi);
    add_text(&h, s->cwd);
    add_list(&h, &s->command);
    add_list(&h, &s->roots);
    add_text(&h, s->elicitation ? "elicitation" : NULL);
    add_text(&h, rv_mcp_samples(s) ? "sampling" : NULL);
    for (size_t i = 0; i < RV_COUNT(parts) && rc == 0; i++) {
        rv_buf text = RV_BUF_INIT(MAX_BYTES);
        rv_json_write(parts[i], &text);
        rc = rv_buf_check(&text, "identity of an MCP server", err);
        add_text(&h, rv_buf_cstr(&text));
        rv_buf_fini(&text);
    }
    rv_hash_finish_hex(&h, out);
    return rc;
}

/* Under the lock. */
rv_mcp_lists *rv_mcp_lists_new(void)
{
    rv_mcp_lists *l = calloc(1, sizeof *l);

    if (l)
        pthread_mutex_init(&l->lock, NULL);
    return l;
}

static struct mcp_kept *find(const rv_mcp_lists *l, const char *key)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].key, key) == 0)
            return &l->items[i];
    return NULL;
}

static void remove_at(rv_mcp_lists *l, struct mcp_kept *k)
{
    free(k->text);
    *k = l->items[--l->n];
}

int mcptools_lists_find(rv_mcp_lists *l, const struct rv_mcp_server_config *s, int64_t now_us, struct mcp_listed *out,
                        rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_BYTES, .what = "kept list of MCP tools"};
    char key[RV_HASH_MAX], *text = NULL;
    int rc = mcptools_identity(s, key, err);

    *out = (struct mcp_listed){.tools = NULL};
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&l->lock);
    struct mcp_kept *k = find(l, key);
    if (k && k->until_us <= now_us) {
        remove_at(l, k);
        k = NULL;
    }
    if (k && !(text = rv_str_dup(rv_str_of(k->text))))
        rc = RV_FAIL(err, RV_E_NOMEM, "read a kept list of MCP tools");
    if (text)
        *out = (struct mcp_listed){.has_resources = k->has_resources, .has_prompts = k->has_prompts};
    out->n_changes = l->n_changes;
    pthread_mutex_unlock(&l->lock);
    if (text)
        rc = rv_json_parse(rv_str_of(text), &opts, &out->tools, err);
    free(text);
    return rc;
}

/* Room for one more, under the lock. */
static struct mcp_kept *make_room(rv_mcp_lists *l)
{
    if (l->n >= MAX_LISTS) {
        struct mcp_kept *first = &l->items[0];
        for (size_t i = 1; i < l->n; i++)
            if (l->items[i].until_us < first->until_us)
                first = &l->items[i];
        remove_at(l, first);
    }
    return rv_has_room(&l->items, &l->cap, l->n + 1, sizeof *l->items) ? &l->items[l->n++] : NULL;
}

int mcptools_lists_put(rv_mcp_lists *l, const struct rv_mcp_server_config *s, int64_t ttl_ms, int64_t now_us,
                       const struct mcp_listed *listed, rv_err **err)
{
    int64_t ttl_us = ttl_ms <= 0 ? 0 : (ttl_ms < MAX_TTL_MS ? ttl_ms : MAX_TTL_MS) * 1000;
    struct mcp_kept fresh = {
        .has_resources = listed->has_resources, .has_prompts = listed->has_prompts, .until_us = now_us + ttl_us};
    rv_buf text = RV_BUF_INIT(MAX_BYTES);

    if (ttl_us == 0)
        return 0;
    rv_json_write(listed->tools, &text);
    if (text.rc == RV_E_LIMIT) {
        rv_buf_fini(&text);
        return 0;
    }
    int rc = rv_buf_check(&text, "list of MCP tools", err);
    if (rc == 0)
        rc = mcptools_identity(s, fresh.key, err);
    if (rc == 0 && !(fresh.text = rv_str_dup(rv_buf_str(&text))))
        rc = RV_FAIL(err, RV_E_NOMEM, "keep a list of MCP tools");
    rv_buf_fini(&text);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&l->lock);
    struct mcp_kept *old = find(l, fresh.key), *place = NULL;
    if (l->n_changes == listed->n_changes) { /* else it may be older than a change that a server told of */
        if (old)
            remove_at(l, old);
        place = make_room(l);
    }
    if (place)
        *place = fresh;
    else
        free(fresh.text); /* without memory it is asked for again */
    pthread_mutex_unlock(&l->lock);
    return 0;
}

void mcptools_lists_drop(rv_mcp_lists *l, const struct rv_mcp_server_config *s)
{
    char key[RV_HASH_MAX];
    bool is_known =
        mcptools_identity(s, key,
                          RV_CODE_ONLY("without a key for the list all of them are dropped, and asked for again")) == 0;

    pthread_mutex_lock(&l->lock);
    l->n_changes++;
    struct mcp_kept *k = is_known ? find(l, key) : NULL;
    if (k)
        remove_at(l, k);
    while (!is_known && l->n > 0) /* without memory for the key any of them may be the one */
        remove_at(l, &l->items[0]);
    pthread_mutex_unlock(&l->lock);
}

void rv_mcp_lists_free(rv_mcp_lists *l)
{
    if (!l)
        return;
    while (l->n > 0)
        remove_at(l, &l->items[0]);
    free(l->items);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
