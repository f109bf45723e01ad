/* Stores with the data of two tenants and three users. */
#include "tests/contract/knowledge/people.h"

static void put(struct world *w, const struct rv_store_scope *scope, const char *kind, int64_t at, const char *row)
{
    json_object_put(put_one(w, scope, kind, row, T0 + at));
}

static void open_session(struct world *w, const char *tenant, const char *user, const char *id, const char *name,
                         int64_t at)
{
    const struct rv_session_row fresh = {
        .id = id, .tenant = tenant, .user = user, .name = name, .created_us = T0 + at, .metadata = RV_STR_LIT("{}")};

    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
}

static void put_schema(struct world *w, const struct rv_store_scope *scope, const char *name, const char *id)
{
    const struct rv_schema_row row = {.id = id,
                                      .tenant = scope->tenant,
                                      .user = scope->user,
                                      .name = name,
                                      .kind = "agent",
                                      .description = "hidden purpose",
                                      .content = RV_STR_LIT("hidden prompt"),
                                      .json_schema = RV_STR_LIT("{}"),
                                      .document = RV_STR_LIT("{}"),
                                      .source = "person"};

    OK(rv_store_put_schema(w->s, &row, RV_SCHEMA_PUT, T0 + 29, NULL, &w->err));
}

static void say(struct world *w, const struct rv_store_scope *scope, const char *session, const char *type,
                const char *content, int64_t at)
{
    char id[40];
    struct rv_message m;
    struct rv_turn turn = {.session = session, .rows = &m, .n_rows = 1};

    snprintf(id, sizeof id, "%s-%lld", session, (long long)at);
    m = world_message(id, type, content);
    m.created_us = T0 + at;
    m.model = "small";
    OK(rv_store_add_messages(w->s, scope, &turn, T0 + at, &w->err));
}

void fill_seen(struct world *w)
{
    put(w, &ada, "moments", 1,
        "{\"name\":\"Lunch\",\"moment_type\":\"note\",\"summary\":\"We met at the harbour, O'Brien paid 12\","
        "\"rating\":4,\"category\":\"people\",\"topic_tags\":[\"food\",\"Sea\"],\"tags\":[\"red\",\"blue\"],"
        "\"starts_timestamp\":\"2026-01-02T12:00:00Z\",\"metadata\":{\"n\":1,\"f\":1.50,\"o\":{\"k\":[1,\"two\"]}},"
        "\"graph_edges\":[{\"target\":\"Atlas\",\"relation\":\"builds_on\",\"weight\":0.4},"
        "{\"target\":\"secret plan\"},{\"target\":\"Report\",\"relation\":\"references\",\"weight\":0.9}]}");
    put(w, &ada, "moments", 2,
        "{\"name\":\"Quay\",\"summary\":\"\\u00dcber den Kai, 10 000 Schritte\",\"rating\":2,"
        "\"graph_edges\":[{\"target\":\"lunch\"}]}");
    put(w, &unowned, "moments", 3, "{\"name\":\"Launch\",\"moment_type\":\"meeting\",\"summary\":null}");
    put(w, &ada, "resources", 4,
        "{\"name\":\"Report\",\"uri\":\"file:report\",\"ordinal\":0,\"content\":\"Ships and ports 42\","
        "\"graph_edges\":[{\"target\":\"atlas\"},{\"target\":\"Lunch\",\"weight\":2}]}");
    put(w, &unowned, "ontologies", 5,
        "{\"name\":\"Atlas\",\"content\":\"A "
        "project\",\"confidence_score\":0.75,\"graph_edges\":[{\"target\":\"quay\"}]}");
    put(w, &ada, "files", 6, "{\"name\":\"photo\",\"uri\":\"file:photo\",\"size_bytes\":1234567890123}");
    put(w, &unowned, "servers", 7,
        "{\"name\":\"web\",\"url\":\"https://example.com\",\"auth_config\":{\"token\":\"hush\"}}");
    put(w, &unowned, "tools", 8, "{\"name\":\"fetch\",\"enabled\":false,\"input_schema\":{\"type\":\"object\"}}");
    put(w, &ada, "users", 9, "{\"name\":\"Ada\",\"email\":\"ada@example.com\",\"interests\":[\"sums\"]}");
    open_session(w, RV_STORE_TENANT, "ada", "talk", "Ports", 10);
    say(w, &ada, "talk", "user", "Which port?", 11);
    say(w, &ada, "talk", "assistant", "Hamburg, create a *star* [x] 100%", 12);
    say(w, &ada, "talk", "assistant", "7", 13);
    open_session(w, RV_STORE_TENANT, "", "common", "Common", 14);
    say(w, &unowned, "common", "user", "for all", 15);
}

void fill_hidden(struct world *w)
{
    static const struct rv_store_scope *const others[] = {&bob, &elsewhere};

    for (size_t i = 0; i < RV_COUNT(others); i++) {
        put(w, others[i], "moments", 20,
            "{\"name\":\"Secret plan\",\"summary\":\"hidden: "
            "77\",\"rating\":5,\"category\":\"hidden\",\"topic_tags\":[\"hidden\"],"
            "\"starts_timestamp\":\"2026-01-02T12:00:00Z\",\"metadata\":{\"hidden\":1},"
            "\"graph_edges\":[{\"target\":\"lunch\"},{\"target\":\"quay\"}]}");
        put(w, others[i], "moments", 0,
            "{\"name\":\"lunch\",\"summary\":\"hidden too\",\"rating\":1,\"metadata\":{\"hidden\":2}}");
        put(w, others[i], "resources", 21,
            "{\"name\":\"Report\",\"uri\":\"file:report\",\"content\":\"hidden words\"}");
        put(w, others[i], "files", 22, "{\"name\":\"hidden file\",\"size_bytes\":-0}");
        put(w, others[i], "users", 23, "{\"name\":\"hidden user\",\"email\":\"hidden@example.com\"}");
        put(w, others[i], "servers", 24, "{\"name\":\"hidden server\",\"url\":\"https://hidden.example.com\"}");
        put_schema(w, others[i], "hidden agent", "99999999-0000-4000-8000-000000000002");
        put(w, others[i], "feedback", 25,
            "{\"id\":\"99999999-0000-4000-8000-000000000001\",\"rating\":1,\"comment\":\"hidden comment\"}");
    }
    put(w, &(struct rv_store_scope){"other", ""}, "ontologies", 26, "{\"name\":\"Atlas\",\"content\":\"hidden page\"}");
    put(w, &ada, "moments", 27, "{\"name\":\"hidden later\",\"summary\":\"hidden since deleted\"}");
    OK(rv_store_delete_entities_named(w->s, &ada, &(struct rv_entity_target){"moments", "hidden later", T0 + 28}, NULL,
                                      &w->err));
    open_session(w, RV_STORE_TENANT, "bob", "talk", "hidden talk", 30);
    say(w, &bob, "talk", "user", "hidden question 9", 31);
    open_session(w, "other", "ada", "talk", "hidden talk", 32);
    say(w, &elsewhere, "talk", "assistant", "hidden answer", 33);
}

char *ask(struct world *w, const struct rv_store_scope *scope, const char *query, const struct rv_knowledge_opts *opts)
{
    static const struct rv_knowledge_opts usual = {.now_us = T0 + INT64_C(86400000000)};
    rv_buf text = RV_BUF_INIT((size_t)64 << 20);
    struct rv_knowledge_fault fault;
    json_object *answer = NULL;
    rv_err *err = NULL;

    if (rv_knowledge_query(w->s, scope, &(const struct rv_knowledge_query){rv_str_of(query), opts ? opts : &usual},
                           &answer, &fault, &err) == 0) {
        rv_json_write(answer, &text);
    } else {
        rv_buf_printf(&text, "%s: ", fault.word ? fault.word : "the store");
        rv_err_write_chain(err, &text);
    }
    rv_err_free(err);
    json_object_put(answer);
    ck_assert_int_eq(text.rc, 0);
    return rv_buf_steal(&text, NULL);
}

char *results_of(struct world *w, const struct rv_store_scope *scope, const char *query)
{
    char *answer = ask(w, scope, query, NULL);
    const char *begin = strstr(answer, "\"results\":"), *end = strstr(answer, ",\"warnings\":");

    if (answer[0] != '{' || !begin || !end)
        return answer;
    begin += strlen("\"results\":");
    char *results = rv_str_dup((rv_str){begin, (size_t)(end - begin)});
    free(answer);
    return results;
}

void answers(struct world *w, const struct rv_store_scope *scope, const char *query, const char *want, int line)
{
    char *got = results_of(w, scope, query);

    ck_assert_msg(strcmp(got, want) == 0, "line %d: %s: %s:\n%s\nnot\n%s", line, w->impl->name, query, got, want);
    free(got);
}

void tells(struct world *w, const struct rv_store_scope *scope, const char *query,
           void (*tell)(json_object *row, rv_buf *out), const char *want, int line)
{
    rv_buf got = RV_BUF_INIT(1 << 20);
    char *text = results_of(w, scope, query);
    json_object *rows = tree(text);

    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        rv_buf_puts(&got, i ? " " : "");
        tell(json_object_array_get_idx(rows, i), &got);
    }
    ck_assert_msg(strcmp(rv_buf_cstr(&got), want) == 0, "line %d: %s: %s: %s, not %s", line, w->impl->name, query,
                  rv_buf_cstr(&got), want);
    rv_buf_fini(&got);
    json_object_put(rows);
    free(text);
}

void each_line(const char *path, void (*each)(void *self, char *line), void *self)
{
    char *text = rv_kit_read(path), *next;

    for (char *line = text; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (line[0] && line[0] != '#')
            each(self, line);
    }
    free(text);
}
