#include "tests/unit/p8/data.h"

#include <stdlib.h>
#include <string.h>

/* A search engine that is played. */
static int search_web(struct data *d, const struct rv_service_ask *ask, rv_buf *answer, rv_err **err)
{
    rv_jw w = rv_jw_on(answer);

    d->n_web++;
    rv_buf_clear(&d->web_request);
    rv_buf_add_str(&d->web_request, ask->args);
    if (!d->web)
        return RV_FAIL(err, RV_E_PROVIDER, "no connection");
    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "status", strcmp(d->web, "busy") == 0 ? 503 : 200);
    rv_jw_kv_text(&w, "body", d->web);
    rv_jw_obj_end(&w);
    return 0;
}

/* As the loop of the engine does: the script of the run that asks goes along. */
static int make_job(struct data *d, const struct rv_service_ask *ask, json_object *args, struct rv_service_job **job,
                    rv_err **err)
{
    struct rv_service_ask q = *ask;
    rv_findings *found = rv_findings_new();
    rv_script *script = NULL;

    if (d->script)
        ck_assert_int_eq(rv_script_parse(rv_str_of(d->script), "script.yaml", found, &script, NULL), 0);
    ck_assert_int_eq(rv_findings_n_errors(found), 0);
    q.script = script;
    int rc = d->services.exec.make(d->services.exec.self, &q, args, job, err);
    rv_script_free(script);
    rv_findings_free(found);
    return rc;
}

static int on_ask(void *self, const struct rv_service_ask *ask, rv_buf *answer, rv_err **err)
{
    struct data *d = self;
    struct rv_service_job *job = NULL;
    json_object *args = NULL;

    d->n_asked++;
    ck_assert_msg(ask->is_declared, "%s does not declare %s", ask->entry, ask->service);
    if (d->before_ask)
        d->before_ask(d, ask->service);
    if (d->stale && strcmp(ask->service, d->stale) == 0) {
        RV_FAIL(err, RV_E_TOOL, "another was faster");
        rv_err_set_hint(err, "ConflictError");
        return RV_E_TOOL;
    }
    if (d->is_denied)
        return RV_FAIL(err, RV_E_TIMEOUT, "the engine is busy");
    if (strcmp(ask->service, "http.request") == 0)
        return search_web(d, ask, answer, err);
    int rc = rv_json_parse(ask->args, NULL, &args, err);
    if (rc == 0)
        rc = make_job(d, ask, args, &job, err);
    if (rc == 0)
        rc = job->run(job, answer, err);
    if (job)
        job->free(job);
    json_object_put(args);
    return rc;
}

int data_ask(struct data *d, const char *service, const char *args, rv_buf *answer, rv_err **err)
{
    const struct rv_service_ask ask = {.service = service,
                                       .args = rv_str_of(args),
                                       .capability = "any",
                                       .entry = "any",
                                       .kind = "tool",
                                       .is_declared = true,
                                       .run_id = "run_1",
                                       .stage = "",
                                       .user_id = d->user,
                                       .session_id = "",
                                       .key = d->key,
                                       .until_us = INT64_MAX};

    return on_ask(d, &ask, answer, err);
}

static rv_store *store_of(struct data *d)
{
    rv_store *store = NULL;
    rv_err *err = NULL;

    ck_assert_msg(rv_store_open(d->path, NULL, &store, &err) == 0, "%s", rv_kit_err_take(err));
    return store;
}

void data_begin_with(struct data *d, bool isolated, const char *config)
{
    *d = (struct data){.user = "ada", .session = "", .key = "call-1", .web_request = RV_BUF_INIT(1 << 20)};
    if (isolated)
        room_begin_isolated(&d->room, config);
    else
        room_begin(&d->room, config);
    ck_assert_msg(d->room.loaded == 0, "%s", rv_err_text(d->room.err));
    d->path = rv_kit_path(d->room.dir, "store.db");
    rv_store_close(store_of(d));
    d->app = (struct rv_app){.store = d->path, .sync = "off"};
    rv_app_services_init(&d->services, &d->app);
}

void data_begin(struct data *d, bool isolated)
{
    data_begin_with(d, isolated, NULL);
}

void data_end(struct data *d)
{
    rv_app_services_fini(&d->services);
    rv_buf_fini(&d->web_request);
    free(d->path);
    room_end(&d->room);
}

const char *data_call(struct data *d, const char *tool, const char *args)
{
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = tool,
                                        .args = rv_str_of(args),
                                        .run_id = "run_1",
                                        .user_id = d->user,
                                        .session_id = d->session,
                                        .idempotency_key = d->key,
                                        .timeout_ms = 60000,
                                        .on_ask = on_ask,
                                        .ask_self = d};

    rv_err_free(d->room.err);
    d->room.err = NULL;
    rv_buf_clear(&d->room.reply);
    int rc = rv_plugins_call(d->room.plugins, &call, &d->room.reply, &d->room.err);
    ck_assert_msg(rc == 0, "%s %.500s: %s", tool, args, rv_err_text(d->room.err));
    return rv_buf_cstr(&d->room.reply);
}

void data_has(struct data *d, const char *tool, const char *args, const char *part)
{
    const char *reply = data_call(d, tool, args);

    ck_assert_msg(strstr(reply, part) != NULL, "%s %.300s: %s\nlacks %s", tool, args, reply, part);
}

void data_put(struct data *d, const char *kind, const char *rows)
{
    const struct rv_store_scope scope = {d->app.scope.tenant, NULL};
    json_object *list = NULL, *at[16];
    struct rv_entities_put put = {.kind = kind, .rows = at, .now_us = INT64_C(1767225600000000)};
    rv_store *store = store_of(d);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(rows), NULL, &list, NULL), 0);
    for (; put.n_rows < json_object_array_length(list); put.n_rows++)
        at[put.n_rows] = json_object_array_get_idx(list, put.n_rows);
    ck_assert_msg(rv_store_put_entities(store, &scope, &put, NULL, &err) == 0, "%s", rv_kit_err_take(err));
    json_object_put(list);
    rv_store_close(store);
}

void data_agent(struct data *d, const char *document)
{
    const struct rv_store_scope scope = {d->app.scope.tenant, NULL};
    struct rv_agents_opts opts = {.store = store_of(d)};
    rv_agents *agents = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_agents_new(&opts, &agents, NULL), 0);
    ck_assert_msg(rv_agents_put(agents, &scope,
                                &(const struct rv_agent_text){.user_own = false, .text = rv_str_of(document)}, NULL,
                                &err) == 0,
                  "%s", rv_kit_err_take(err));
    rv_agents_free(agents);
    rv_store_close(opts.store);
}

static int take(void *self, json_object *row, rv_err **err)
{
    rv_json_write(row, self);
    return rv_buf_check(self, "rows", err);
}

char *data_find(struct data *d, const char *tenant, const char *user, const char *kind)
{
    const struct rv_store_scope scope = {tenant, user};
    rv_buf text = RV_BUF_INIT((size_t)16 << 20);
    rv_store *store = store_of(d);
    rv_err *err = NULL;

    rv_buf_puts(&text, "");
    ck_assert_msg(
        rv_store_find_entities(store, &scope, &(const struct rv_entities_of){kind, NULL}, take, &text, &err) == 0, "%s",
        rv_kit_err_take(err));
    rv_store_close(store);
    rv_buf_cstr(&text);
    return rv_buf_steal(&text, NULL);
}

/* --- arguments --- */

const char *const data_tools[] = {
    "search",        "save_moments",   "get_moments",     "get_user_profile", "update_user_metadata",
    "remind_me",     "list_reminders", "cancel_reminder", "save_plot",        "remove_plot",
    "get_file",      "read_resource",  "web_search",      "save_agent",       "parse_file",
    "analyze_pages", "gather_activity"};
const size_t data_n_tools = RV_COUNT(data_tools);

/* A value that a tool may or may not expect, from a seed. */
static void write_value(rv_jw *w, uint64_t *seed, int depth)
{
    static const char *const texts[] = {"",
                                        "LOOKUP x",
                                        "SEARCH what's new FROM moments",
                                        "2026-01-01",
                                        "0 9 * * *",
                                        "\xc3\xa4",
                                        "files://x",
                                        ("files://" DATA_ID),
                                        "Wick",
                                        "LOOKUP Wick, knots",
                                        "FUZZY wick",
                                        "TRAVERSE knots DEPTH 3",
                                        "SQL SELECT * FROM moments",
                                        "dream-Wick",
                                        "union",
                                        DATA_ID,
                                        "\001",
                                        "user://profile",
                                        "TRAVERSE \"x",
                                        "{name: x, description: y}",
                                        "name: {"};
    uint64_t n = *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);

    switch ((n >> 33) % (depth > 0 ? 8 : 6)) {
    case 0:
        rv_jw_null(w);
        break;
    case 1:
        rv_jw_int(w, (int64_t)(n >> 50) % 7 - 3);
        break;
    case 2:
        rv_jw_double(w, (double)(n >> 40) / 7);
        break;
    case 6:
    case 7:
        if ((n >> 60) & 1) {
            rv_jw_arr(w);
            for (uint64_t i = 0; i < (n >> 45) % 4; i++)
                write_value(w, seed, depth - 1);
            rv_jw_arr_end(w);
            break;
        }
        rv_jw_obj(w);
        if ((n >> 45) & 1) {
            rv_jw_key(w, (n >> 46) & 1 ? "name" : "affinity_fragments");
            write_value(w, seed, depth - 1);
        }
        if ((n >> 47) & 1) {
            rv_jw_key(w, (n >> 48) & 1 ? "target" : "relations");
            write_value(w, seed, depth - 1);
        }
        rv_jw_obj_end(w);
        break;
    default:
        rv_jw_text(w, texts[(n >> 40) % RV_COUNT(texts)]);
    }
}

void data_write_args(rv_buf *out, uint64_t *seed)
{
    static const char *const keys[] = {
        "query",    "limit",       "moments",   "user_id",   "topic_tags",      "after_date", "offset",
        "metadata", "remove_keys", "list_mode", "name",      "description",     "crontab",    "tags",
        "title",    "source",      "plot_type", "plot_id",   "collection_date", "file_id",    "head",
        "uri",      "schema_yaml", "overwrite", "save_to_db"};
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        uint64_t n = *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if ((n >> 60) < 5)
            continue;
        rv_jw_key(&w, keys[i]);
        write_value(&w, seed, 3);
    }
    rv_jw_obj_end(&w);
}
