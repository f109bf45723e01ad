/* reeve moments: memory of conversations; lists, one of them, chunks made by hand, the feed of a user's days. And what
 * else is told of sessions with it: their timeline, copies, a search. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

#define MAX_TAGS  16 /* --topic of one command: a person types them; more is an error */
#define MAX_CELL  60 /* columns of a value: others stand beside it on a terminal; the rest is cut */
#define LIST_MANY 50 /* rows, unless --limit says otherwise */

/* --- rows --- */

static int write_line(json_object *row, rv_buf *out, rv_err **err)
{
    rv_json_write(row, out);
    rv_buf_putc(out, '\n');
    return rv_buf_check(out, "rows", err);
}

static void add_age(rv_cli_table *t, json_object *row, const char *column)
{
    rv_buf age = RV_BUF_INIT(64);
    int64_t us = 0;

    if (rv_time_read(rv_str_of(rv_json_text_or(row, column, NULL)), &us))
        cli_write_age(&age, rv_app_now_us() - us);
    cli_table_add(t, rv_buf_str(&age));
    rv_buf_fini(&age);
}

/* Columns of rows as a table, or whole rows as lines of JSON. The last column is an age. */
static int print_rows(struct rv_cli *cli, json_object *rows, const struct rv_cli_column *columns,
                      const char *const *members, size_t n_columns, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    bool is_json = cli_flag(cli, "json");
    rv_cli_table *t = cli_table_new(columns, n_columns);
    size_t n = rows ? json_object_array_length(rows) : 0;
    int rc = t ? 0 : RV_FAIL(err, RV_E_NOMEM, "list rows");

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        if (is_json) {
            rc = write_line(row, &text, err);
            continue;
        }
        for (size_t k = 0; k + 1 < n_columns; k++)
            cli_table_add_text(t, rv_json_text_or(row, members[k], NULL));
        add_age(t, row, members[n_columns - 1]);
    }
    if (rc == 0 && !is_json && n > 0)
        rc = cli_table_write(t, cli->out_tty, &text, err);
    if (rc == 0 && n == 0)
        cli_say("nothing found\n");
    cli_table_free(t);
    return cli_print(rc, &text, err);
}

/* --- list --- */

static int collect(void *self, json_object *row, rv_err **err)
{
    return rv_json_push_ref(self, row, err);
}

static int time_of(struct rv_cli *cli, const char *option, int64_t *out, rv_err **err)
{
    const char *given = cli_value(cli, option);

    if (!given)
        return 0;
    if (rv_day_parse(rv_str_of(given), out))
        *out += strcmp(option, "before") == 0 ? RV_US_PER_DAY - 1 : 0; /* all of that day */
    else if (!rv_time_read(rv_str_of(given), out))
        return cli_usage(cli, err, "--%s %s: write a date such as 2026-02-24, or a time in RFC 3339", option, given);
    return 0;
}

static int read_filter(struct rv_cli *cli, struct rv_entity_filter *f, rv_err **err)
{
    f->about = cli_value(cli, "session");
    f->limit = LIST_MANY;
    int rc = cli_int(cli, "limit", 1, RV_ENTITY_MAX_FIND, &f->limit, err);
    if (rc == 0)
        rc = cli_int(cli, "offset", 0, 1000000000, &f->offset, err);
    if (rc == 0)
        rc = time_of(cli, "after", &f->since_us, err);
    return rc == 0 ? time_of(cli, "before", &f->until_us, err) : rc;
}

static int find(struct rv_cli *cli, json_object *rows, rv_err **err)
{
    const char *tags[MAX_TAGS];
    const char *type = cli_value(cli, "type"), *category = cli_value(cli, "category");
    struct rv_entity_where where[2], topics[MAX_TAGS];
    struct rv_entity_filter f = {.where = where, .lists = topics};
    int rc = cli_values(cli, "topic", tags, MAX_TAGS, &f.n_lists, err);

    if (rc == 0)
        rc = read_filter(cli, &f, err);
    if (type)
        where[f.n_where++] = (struct rv_entity_where){"moment_type", json_object_new_string(type)};
    if (category)
        where[f.n_where++] = (struct rv_entity_where){"category", json_object_new_string(category)};
    for (size_t i = 0; i < f.n_lists; i++)
        topics[i] = (struct rv_entity_where){"topic_tags", json_object_new_string(tags[i])};
    for (size_t i = 0; rc == 0 && i < f.n_where + f.n_lists; i++)
        if (!(i < f.n_where ? where[i] : topics[i - f.n_where]).value)
            rc = RV_FAIL(err, RV_E_NOMEM, "find moments");
    if (rc == 0 && cli->store)
        rc = rv_store_find_entities(cli->store, &cli->app.scope, &(const struct rv_entities_of){"moments", &f}, collect,
                                    rows, err);
    for (size_t i = 0; i < f.n_where; i++)
        json_object_put(where[i].value);
    for (size_t i = 0; i < f.n_lists; i++)
        json_object_put(topics[i].value);
    return rc;
}

static const struct rv_cli_column moment_columns[] = {{"NAME", MAX_CELL, false},
                                                      {"TYPE", 24, false},
                                                      {"SESSION", 36, false},
                                                      {"SUMMARY", MAX_CELL, false},
                                                      {"AGE", 0, false}};
static const char *const moment_members[] = {"name", "moment_type", "source_session_id", "summary", "created_at"};

static int list(struct rv_cli *cli, rv_err **err)
{
    json_object *rows = json_object_new_array();
    int rc = rows ? find(cli, rows, err) : RV_FAIL(err, RV_E_NOMEM, "list moments");

    if (rc == 0)
        rc = print_rows(cli, rows, moment_columns, moment_members, RV_COUNT(moment_columns), err);
    json_object_put(rows);
    return rc;
}

/* --- show --- */

static int show(struct rv_cli *cli, rv_err **err)
{
    json_object *hits = NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = rv_app_entities_show(cli->store, &cli->app.scope, "moments", cli->words[0], &hits, err);

    for (size_t i = 0; rc == 0 && i < json_object_array_length(hits); i++) {
        json_object *row = rv_json_get_obj(json_object_array_get_idx(hits, i), "data");
        if (cli_flag(cli, "json")) {
            rc = write_line(row, &text, err);
            continue;
        }
        rv_buf shown = RV_BUF_INIT(RV_APP_MAX_TEXT);
        rv_moment_write(row, &shown);
        rc = rv_buf_check(&shown, "a moment", err);
        rv_buf_puts(&text, i ? "\n" : "");
        cli_write_safe(rv_buf_str(&shown), &text);
        rv_buf_putc(&text, '\n');
        rv_buf_fini(&shown);
    }
    json_object_put(hits);
    return cli_print(rc, &text, err);
}

/* --- build --- */

static int build(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    json_object *row = NULL;
    int64_t threshold = 0;
    int rc = cli_int(cli, "threshold", 0, INT32_MAX, &threshold, err);

    if (rc == 0)
        rc = rv_store_build_moment(cli->store, &cli->app.scope,
                                   &(const struct rv_moment_build){
                                       .session = cli->words[0], .threshold = threshold, .now_us = rv_app_now_us()},
                                   &row, err);
    if (rc == 0 && !row)
        cli_say("nothing to do: moments cover session %s up to its last message, or the rest is below the threshold\n",
                cli->words[0]);
    if (rc == 0 && row && cli_flag(cli, "json"))
        rc = write_line(row, &text, err);
    else if (rc == 0 && row) {
        cli_write_safe(rv_str_of(rv_json_text_or(row, "name", NULL)), &text);
        rv_buf_putc(&text, '\n');
    }
    json_object_put(row);
    return cli_print(rc, &text, err);
}

/* --- add --- */

static int moment_of(struct rv_cli *cli, json_object *row, rv_err **err)
{
    const char *topics[MAX_TAGS], *type = cli_value(cli, "type"), *category = cli_value(cli, "category");
    size_t n;
    int rc = cli_values(cli, "topic", topics, MAX_TAGS, &n, err);

    if (rc == 0)
        rc = rv_json_set_text(row, "name", cli->words[0], err);
    if (rc == 0)
        rc = rv_json_set_text(row, "moment_type", type ? type : "note", err);
    if (rc == 0)
        rc = rv_json_set_text(row, "summary", cli->n_words > 1 ? cli->words[1] : "", err);
    if (rc == 0 && category)
        rc = rv_json_set_text(row, "category", category, err);
    if (rc == 0 && n > 0)
        rc = rv_json_set_take(row, "topic_tags", json_object_new_array(), err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = rv_json_push_take(rv_json_get_arr(row, "topic_tags"), json_object_new_string(topics[i]), err);
    return rc;
}

static int add(struct rv_cli *cli, rv_err **err)
{
    json_object *given = json_object_new_object(), *row = NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    char session[RV_STORE_MAX_ID + 1];
    const struct rv_app_moment_session what = {.moment = given,
                                               .session = cli_value(cli, "session"),
                                               .description = cli_value(cli, "description"),
                                               .now_us = rv_app_now_us(),
                                               .rand = rv_rand_system()};
    int rc = given ? moment_of(cli, given, err) : RV_FAIL(err, RV_E_NOMEM, "write a moment");

    if (rc == 0)
        rc = rv_app_put_moment(cli->store, &cli->app.scope, &what, session, &row, err);
    if (rc == 0 && cli_flag(cli, "json"))
        rc = write_line(row, &text, err);
    else if (rc == 0)
        rv_buf_printf(&text, "%s\n", session);
    json_object_put(row);
    json_object_put(given);
    return cli_print(rc, &text, err);
}

/* --- feed --- */

static int feed(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_feed what = {.before_date = cli_value(cli, "before"),
                               .days = 7,
                               .include_future = cli_flag(cli, "future"),
                               .now_us = rv_app_now_us()};
    json_object *rows = NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = cli_int(cli, "days", 1, RV_APP_MAX_DAYS, &what.days, err);

    if (rc == 0 && cli->store)
        rc = rv_app_feed(cli->store, &cli->app.scope, &what, &rows, err);
    for (size_t i = 0; rc == 0 && rows && i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        const char *type = rv_json_text_or(row, "moment_type", NULL);
        bool is_summary = type && strcmp(type, "daily_summary") == 0;
        if (cli_flag(cli, "json")) {
            rc = write_line(row, &text, err);
            continue;
        }
        if (!is_summary) {
            rv_buf_puts(&text, "  ");
            cli_write_safe(rv_str_of(type ? type : "-"), &text);
            rv_buf_puts(&text, "  ");
        }
        cli_write_safe(rv_str_of(rv_json_text_or(row, is_summary ? "summary" : "name", NULL)), &text);
        rv_buf_putc(&text, '\n');
    }
    json_object_put(rows);
    return cli_print(rc, &text, err);
}

/* --- sessions --- */

static int timeline(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"EVENT", 0, false}, {"TYPE", 24, false}, {"WORDS", 80, false}, {"AGE", 0, false}};
    static const char *const members[] = {"event_type", "name_or_type", "content_or_summary", "event_timestamp"};
    struct rv_session_row session = {0};
    json_object *rows = NULL;
    int64_t limit = LIST_MANY;
    int rc = cli_int(cli, "limit", 1, RV_APP_MAX_EVENTS, &limit, err);

    if (rc == 0)
        rc = cli_find_session(cli, &session, err);
    if (rc == 0)
        rc = rv_app_build_timeline(cli->store, &cli->app.scope, session.id, limit, &rows, err);
    rv_session_row_fini(&session);
    if (rc == 0)
        rc = print_rows(cli, rows, columns, members, RV_COUNT(columns), err);
    json_object_put(rows);
    return rc;
}

static int clone_session(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_clone how = {.id = cli_value(cli, "as"),
                               .user = cli_value(cli, "for-user"),
                               .agent = cli_value(cli, "agent"),
                               .now_us = rv_app_now_us(),
                               .rand = rv_rand_system()};
    rv_buf text = RV_BUF_INIT(4096);
    char id[RV_STORE_MAX_ID + 1];
    int64_t n = 0;
    struct rv_session_row session = {0};
    int rc = cli_int(cli, "messages", 0, INT32_MAX, &how.max_messages, err);

    if (rc == 0)
        rc = cli_find_session(cli, &session, err);
    how.session = session.id;
    if (rc == 0)
        rc = rv_app_clone_session(cli->store, &cli->app.scope, &how, id, &n, err);
    rv_session_row_fini(&session);
    if (rc == 0)
        rv_buf_printf(&text, "%s\n", id);
    return cli_print(rc, &text, err);
}

static int search(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"SESSION", 0, false}, {"NAME", 40, false}, {"AGENT", 24, false}, {"AGE", 0, false}};
    static const char *const members[] = {"id", "name", "agent_name", "updated_at"};
    const char *tags[MAX_TAGS];
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(&cli->app);
    struct rv_app_session_search s = {.name = cli->n_words > 0 ? cli->words[0] : NULL,
                                      .query = cli_value(cli, "about"),
                                      .embedder = &embedder,
                                      .agent = cli_value(cli, "agent"),
                                      .tags = tags,
                                      .page = 1,
                                      .size = 20};
    json_object *page = NULL;

    int rc = cli_values(cli, "tag", tags, MAX_TAGS, &s.n_tags, err);
    if (rc == 0)
        rc = cli_int(cli, "page", 1, 1000, &s.page, err);
    if (rc == 0)
        rc = cli_int(cli, "size", 1, 100, &s.size, err);
    if (rc == 0)
        rc = time_of(cli, "after", &s.since_us, err);
    if (rc == 0 && cli->store)
        rc = rv_app_search_sessions(cli->store, &cli->app.scope, &s, &page, err);
    if (rc == 0)
        rc = print_rows(cli, page ? rv_json_get_arr(page, "results") : NULL, columns, members, RV_COUNT(columns), err);
    json_object_put(page);
    return rc;
}

/* --- the table --- */

static const struct rv_cli_option list_options[] = {
    {"session", 's', "ID", "only moments of that session", NULL, false},
    {"type", 0, "TYPE", "only moments of this type, such as session_chunk or content_upload", NULL, false},
    {"category", 0, "TEXT", "only moments of this category", NULL, false},
    {"topic", 0, "TAG", "only moments with this topic", NULL, true},
    {"after", 0, "DATE", "only moments made on this day (UTC) or later", NULL, false},
    {"before", 0, "DATE", "only moments made on this day (UTC) or earlier", NULL, false},
    {"limit", 'l', "N", "number of moments to list, newest first (default 50)", NULL, false},
    {"offset", 0, "N", "moments to pass over", NULL, false},
    {"json", 'j', NULL, "print whole rows, one JSON object a line", NULL, false},
};
static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print whole rows, one JSON object a line", NULL, false},
};
static const struct rv_cli_option build_options[] = {
    {"threshold", 0, "TOKENS", "only if messages of at least this many tokens are not covered (default 0)", NULL,
     false},
    {"json", 'j', NULL, "print the row as JSON instead of its name", NULL, false},
};
static const struct rv_cli_option add_options[] = {
    {"session", 's', "ID", "session that it belongs to, made if it is not there (default: a new one)", NULL, false},
    {"type", 0, "TYPE", "what it is (default note)", NULL, false},
    {"category", 0, "TEXT", "its category", NULL, false},
    {"topic", 0, "TAG", "a topic", NULL, true},
    {"description", 0, "TEXT", "description of a session that has none (default: the summary)", NULL, false},
    {"json", 'j', NULL, "print the row as JSON instead of the session", NULL, false},
};
static const struct rv_cli_option feed_options[] = {
    {"days", 0, "N", "number of days, newest first (default 7)", NULL, false},
    {"before", 0, "DATE", "begin with this day (UTC); for the next page, the day before the last one", NULL, false},
    {"future", 0, NULL, "also moments that have not started yet", NULL, false},
    {"json", 'j', NULL, "print whole rows, one JSON object a line", NULL, false},
};
static const struct rv_cli_option timeline_options[] = {
    {"limit", 'l', "N", "number of events, the newest (default 50)", NULL, false},
    {"json", 'j', NULL, "print events, one JSON object a line", NULL, false},
};
static const struct rv_cli_option clone_options[] = {
    {"as", 0, "ID", "id of the copy (default: a new one)", NULL, false},
    {"messages", 0, "N", "copy the first N messages; 0: all (default)", NULL, false},
    {"agent", 'a', "NAME", "agent of the copy (default: the same)", NULL, false},
    {"for-user", 0, "USER", "owner of the copy (default: the same); only without --user", NULL, false},
};
static const struct rv_cli_option search_options[] = {
    {"about", 0, "TEXT", "only sessions that are about this, best first: by their names, descriptions and moments",
     NULL, false},
    {"agent", 'a', "NAME", "only sessions with this agent", NULL, false},
    {"tag", 't', "TAG", "only sessions with this tag", NULL, true},
    {"after", 0, "DATE", "only sessions that changed on this day (UTC) or later", NULL, false},
    {"page", 0, "N", "which page (default 1)", NULL, false},
    {"size", 0, "N", "sessions of a page, at most 100 (default 20)", NULL, false},
    {"json", 'j', NULL, "print whole rows, one JSON object a line", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "moments list",
    .args = "",
    .summary = "list moments, newest first",
    .text = "Prints a table: name, type, session, the beginning of the summary, age.",
    .examples = "reeve moments list --session tale\n"
                "reeve moments list --type session_chunk --after 2026-02-24 --json | jq -r .summary",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb show_verb = {
    .name = "moments show",
    .args = "NAME",
    .summary = "print a moment as a model is told it",
    .text = "NAME is the name or the id of a moment. With --json it prints the whole row.",
    .examples = "reeve moments show session-d7a13d-20260224-chunk-0",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .run = show,
};
static const struct rv_cli_verb build_verb = {
    .name = "moments build",
    .args = "SESSION",
    .summary = "make a moment of the messages that no moment covers",
    .text =
        "A turn does this itself when 6000 tokens are not covered (P8_MOMENT_TOKEN_THRESHOLD). No model is called.\n"
        "Prints the name of the moment, or nothing if there was nothing to do.",
    .examples = "reeve moments build tale",
    RV_CLI_OPTIONS(build_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_CHANGES,
    .takes = &cli_takes_sessions,
    .run = build,
};
static const struct rv_cli_verb add_verb = {
    .name = "moments add",
    .args = "NAME [SUMMARY]",
    .summary = "write a moment with a session of its own",
    .text = "A chat in the session is told the moment: reeve chat --session ID. A new session has the name of the "
            "moment and\n"
            "its type; one that exists gets the moment in its metadata (uploads, resource_keys, latest_moment_id). A\n"
            "moment of the same name and owner is overwritten. Prints the id of the session.",
    .examples = "reeve moments add dentist 'Thursday at nine, bring the X-ray.' --type reminder --user ada\n"
                "reeve moments add 'the reef' 'Keep north of the buoy.' --session tale --topic navigation",
    RV_CLI_OPTIONS(add_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = 2,
    .store = RV_CLI_MAKES,
    .run = add,
};
static const struct rv_cli_verb feed_verb = {
    .name = "moments feed",
    .args = "",
    .summary = "print days with their moments, newest first",
    .text = "Each day (UTC) has a line with its messages, sessions, tokens and moments, and a line for each moment "
            "that is\n"
            "not a chunk of a session. With --json the line of a day is an object of type daily_summary.",
    .examples = "reeve moments feed --user ada\n"
                "reeve moments feed --user ada --days 3 --before 2026-02-24 --json",
    RV_CLI_OPTIONS(feed_options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = feed,
};

static const struct rv_cli_verb *const subs[] = {&list_verb, &show_verb, &build_verb, &add_verb, &feed_verb, NULL};

const struct rv_cli_verb verb_moments = {
    .name = "moments",
    .args = "VERB",
    .summary = "list, show and add memories of conversations",
    .text =
        "A moment is a row with a time: a part of a session, an upload, a reminder, a note. The newest moments of a\n"
        "session are told to the model of its next turn.",
    .examples = "reeve moments                       # all of them\n"
                "reeve moments list --session tale\n"
                "reeve moments feed",
    .subs = subs,
};

const struct rv_cli_verb verb_sessions_timeline = {
    .name = "sessions timeline",
    .args = "SESSION",
    .summary = "print the messages and moments of a session by time",
    .text = "Prints the newest events, oldest first. A moment stands where it starts. \"last\" is the session that "
            "was\n"
            "used last.",
    .examples = "reeve sessions timeline tale --limit 20\n"
                "reeve sessions timeline tale --json | jq -c '[.event_timestamp, .name_or_type]'",
    RV_CLI_OPTIONS(timeline_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_any_session,
    .run = timeline,
};
const struct rv_cli_verb verb_sessions_clone = {
    .name = "sessions clone",
    .args = "SESSION",
    .summary = "copy a session with its first messages",
    .text = "Prints the id of the copy. Its messages have new ids; its metadata says cloned_from. Messages of asked "
            "agents\n"
            "and moments are not copied. \"last\" is the session that was used last.",
    .examples = "reeve sessions clone tale --messages 4 --as tale-from-4",
    RV_CLI_OPTIONS(clone_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_CHANGES,
    .takes = &cli_takes_any_session,
    .run = clone_session,
};
const struct rv_cli_verb verb_sessions_search = {
    .name = "sessions search",
    .args = "[TEXT]",
    .summary = "find sessions by name, meaning, agent, tags and time",
    .text =
        "TEXT is a part of the name; upper and lower case are the same. Sessions are listed newest first, a page at a\n"
        "time; with --about those come first that are most about it. With --json each row also has message_count and\n"
        "similarity, the cosine of what --about compares.",
    .examples = "reeve sessions search billing --agent general\n"
                "reeve sessions search --about 'unpaid bills'\n"
                "reeve sessions search --tag urgent --after 2026-02-24 --page 2",
    RV_CLI_OPTIONS(search_options),
    .groups = {&cli_of_stores},
    .max_words = 1,
    .store = RV_CLI_READS_IF_ANY,
    .run = search,
};
