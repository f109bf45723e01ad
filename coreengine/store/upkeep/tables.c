/* The tables that a copy has. A test compares them with those that sqlite/schema.c makes. */
#include "coreengine/store/upkeep.h"
#include "coreengine/store/upkeep/tables_internal.h"

#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
        name, SQL_INT, false                                                                                           \
    }
#define OWN(name)                                                                                                      \
    {                                                                                                                  \
        name, SQL_INT, true                                                                                            \
    }
#define WORD(name)                                                                                                     \
    {                                                                                                                  \
        name, SQL_TEXT, false                                                                                          \
    }
#define WORDS(name)                                                                                                    \
    {                                                                                                                  \
        name, SQL_STR, false                                                                                           \
    }
#define BYTES(name)                                                                                                    \
    {                                                                                                                  \
        name, SQL_BLOB, false                                                                                          \
    }

static const struct rv_column blobs[] = {NUMBER("key"), BYTES("hash"), NUMBER("created_us"), BYTES("data")};
static const struct rv_column runs[] = {
    NUMBER("key"),    WORD("id"),           WORD("tenant"),           WORD("user"),         WORD("session"),
    WORD("pipeline"), NUMBER("bundle"),     WORD("parent"),           NUMBER("parent_seq"), WORD("status"),
    WORD("stage"),    NUMBER("created_us"), NUMBER("updated_us"),     NUMBER("expires_us"), NUMBER("n_records"),
    WORD("owner"),    NUMBER("fence"),      NUMBER("lease_until_us"), NUMBER("cancel"),     NUMBER("n_pending"),
    NUMBER("n_open")};
static const struct rv_column records[] = {NUMBER("run"), NUMBER("seq"),  NUMBER("kind"),
                                           WORDS("body"), WORDS("value"), NUMBER("blob")};
static const struct rv_column pending[] = {NUMBER("run"), NUMBER("n"),          WORD("id"),
                                           WORD("kind"),  WORD("stage"),        WORDS("text"),
                                           WORDS("body"), NUMBER("created_us"), NUMBER("expires_us")};
static const struct rv_column snapshots[] = {NUMBER("run"), NUMBER("seq"), BYTES("body")};
static const struct rv_column sessions[] = {
    NUMBER("key"),        WORD("id"),           WORD("tenant_id"),   WORD("user_id"),          WORD("name"),
    WORD("description"),  WORD("agent_name"),   WORD("mode"),        NUMBER("total_tokens"),   NUMBER("n_messages"),
    WORDS("metadata"),    WORD("tags"),         WORD("graph_edges"), WORD("encryption_level"), NUMBER("created_us"),
    NUMBER("updated_us"), NUMBER("deleted_us"), WORD("status")};
static const struct rv_column messages[] = {NUMBER("key"),
                                            NUMBER("session"),
                                            NUMBER("seq"),
                                            WORD("id"),
                                            WORD("message_type"),
                                            WORDS("content"),
                                            WORDS("tool_calls"),
                                            NUMBER("token_count"),
                                            WORD("agent_name"),
                                            WORD("model"),
                                            WORD("trace_id"),
                                            WORD("span_id"),
                                            WORD("run_id"),
                                            NUMBER("input_tokens"),
                                            NUMBER("output_tokens"),
                                            NUMBER("cost_micro_usd"),
                                            NUMBER("latency_ms"),
                                            WORD("status"),
                                            WORD("parent_call_id"),
                                            WORDS("metadata"),
                                            WORD("tags"),
                                            WORD("graph_edges"),
                                            WORD("encryption_level"),
                                            NUMBER("created_us"),
                                            NUMBER("deleted_us")};
static const struct rv_column schemas[] = {NUMBER("key"),        WORD("id"),           WORD("tenant_id"),
                                           WORD("user_id"),      WORD("name"),         WORD("kind"),
                                           WORD("version"),      WORD("description"),  WORDS("content"),
                                           WORDS("json_schema"), WORDS("document"),    WORD("source"),
                                           WORD("place"),        WORD("checksum"),     WORD("metadata"),
                                           WORD("tags"),         WORD("graph_edges"),  WORD("encryption_level"),
                                           NUMBER("created_us"), NUMBER("updated_us"), NUMBER("deleted_us")};
static const struct rv_column counters[] = {WORD("name"), NUMBER("value")};
static const struct rv_column classes[] = {NUMBER("id"), WORD("tier"), WORD("needs")};
static const struct rv_column shares[] = {WORD("tenant"), NUMBER("weight"), NUMBER("cap")};
static const struct rv_column lanes[] = {NUMBER("key"),    WORD("tenant"), NUMBER("class"),     NUMBER("vt"),
                                         NUMBER("weight"), NUMBER("cap"),  NUMBER("n_pending"), NUMBER("n_processing")};
static const struct rv_column tasks[] = {NUMBER("key"),
                                         WORD("id"),
                                         NUMBER("lane"),
                                         WORD("tenant"),
                                         WORD("user"),
                                         WORD("type"),
                                         WORD("idempotency"),
                                         WORDS("payload"),
                                         WORDS("result"),
                                         WORD("error"),
                                         WORD("status"),
                                         NUMBER("cancel"),
                                         NUMBER("priority"),
                                         NUMBER("attempt"),
                                         NUMBER("retry_count"),
                                         NUMBER("max_retries"),
                                         NUMBER("n_events"),
                                         NUMBER("created_us"),
                                         NUMBER("updated_us"),
                                         NUMBER("scheduled_us"),
                                         NUMBER("started_us"),
                                         NUMBER("completed_us"),
                                         WORD("worker"),
                                         NUMBER("claimed_us"),
                                         NUMBER("lease_until_us")};
static const struct rv_column task_events[] = {NUMBER("task"), NUMBER("seq"),     NUMBER("at_us"),
                                               WORD("kind"),   NUMBER("attempt"), WORD("worker"),
                                               WORD("text"),   NUMBER("retry"),   NUMBER("next_us")};

static const struct rv_column schedules[] = {
    NUMBER("key"),         WORD("id"),           WORD("tenant"),       WORD("user"),      WORD("name"),
    WORD("kind"),          WORD("expr"),         WORD("zone"),         WORD("type"),      WORD("tier"),
    WORDS("needs"),        WORDS("payload"),     NUMBER("bundle"),     WORD("pipeline"),  NUMBER("priority"),
    NUMBER("max_retries"), NUMBER("created_us"), NUMBER("updated_us"), NUMBER("next_us"), NUMBER("look_us"),
    NUMBER("last_us"),     NUMBER("n_fired"),    NUMBER("n_skipped"),  WORD("error")};
static const struct rv_column firings[] = {NUMBER("schedule"), NUMBER("planned_us"), NUMBER("since_us"),
                                           NUMBER("at_us"),    WORD("made"),         WORD("skipped")};
static const struct rv_column usage[] = {NUMBER("key"),  WORD("tenant"),    NUMBER("is_tenants"), WORD("user"),
                                         WORD("kind"),   WORD("span"),      NUMBER("start_us"),   NUMBER("end_us"),
                                         NUMBER("used"), NUMBER("reserved")};
static const struct rv_column holds[] = {WORD("run"), NUMBER("fence"), NUMBER("call"), NUMBER("usage"),
                                         NUMBER("amount")};
static const struct rv_column rates[] = {
    NUMBER("key"),    WORD("tenant"), NUMBER("is_tenants"), WORD("user"), WORD("kind"), WORD("span"),
    NUMBER("end_us"), NUMBER("head"), NUMBER("n0"),         NUMBER("n1"), NUMBER("n2"), NUMBER("n3"),
    NUMBER("n4"),     NUMBER("n5"),   NUMBER("n6"),         NUMBER("n7"), NUMBER("n8"), NUMBER("n9")};
static const struct rv_column interrupts[] = {
    NUMBER("run"),        WORD("id"),           WORD("tenant"),    WORD("user"),    WORD("session"),
    WORD("kind"),         WORD("stage"),        WORDS("text"),     WORDS("reason"), WORD("status"),
    NUMBER("created_us"), NUMBER("expires_us"), NUMBER("ended_us")};

static const struct rv_column entities[] = {NUMBER("key"),        WORD("id"),           WORD("kind"),
                                            WORD("tenant_id"),    WORD("user_id"),      WORD("name"),
                                            WORD("about"),        WORD("fields"),       WORD("metadata"),
                                            WORD("tags"),         WORD("graph_edges"),  WORD("encryption_level"),
                                            NUMBER("created_us"), NUMBER("updated_us"), NUMBER("deleted_us")};
static const struct rv_column keys[] = {NUMBER("key"),     WORD("kind"),    NUMBER("row"),
                                        WORD("tenant_id"), WORD("user_id"), WORD("entity_key"),
                                        WORD("entity_id"), WORD("summary"), NUMBER("updated_us")};
static const struct rv_column vectors[] = {NUMBER("key"),  WORD("kind"), NUMBER("row"),   WORD("provider"),
                                           NUMBER("dims"), WORD("hash"), BYTES("vector"), NUMBER("created_us")};
static const struct rv_column embeddings[] = {NUMBER("key"),        WORD("kind"),   NUMBER("row"),
                                              WORD("tenant_id"),    WORD("status"), NUMBER("attempts"),
                                              NUMBER("claimed_us"), WORD("error"),  NUMBER("created_us")};
static const struct rv_column tokens[] = {
    NUMBER("key"),     WORD("kind"),       NUMBER("row"),          WORD("tenant_id"), WORD("user_id"),
    WORD("id"),        WORD("category"),   NUMBER("created_us"),   NUMBER("is_gone"), WORD("hash"),
    NUMBER("n_words"), BYTES("key_grams"), BYTES("summary_grams"), BYTES("words"),    OWN("change")};
static const struct rv_column schema_timemachine[] = {NUMBER("key"),        NUMBER("schema"), WORD("operation"),
                                                      WORD("name"),         WORD("version"),  WORDS("content"),
                                                      WORDS("json_schema"), WORD("checksum"), NUMBER("recorded_us")};

static const struct rv_column api_keys[] = {
    WORD("id"),   WORD("hash"),         WORD("level"),        WORD("tenant"),    WORD("user"),        WORD("scopes"),
    WORD("note"), NUMBER("created_us"), NUMBER("expires_us"), NUMBER("used_us"), NUMBER("revoked_us")};
static const struct rv_column logins[] = {WORD("hash"), WORD("key_id"), NUMBER("created_us"), NUMBER("expires_us")};
static const struct rv_column tenant_keys[] = {NUMBER("key"),        WORD("id"),          WORD("tenant"),
                                               WORD("mode"),         WORD("status"),      WORD("algorithm"),
                                               WORD("kms_key_id"),   WORD("wrapped_dek"), WORD("public_key"),
                                               NUMBER("created_us"), NUMBER("retired_us")};

static const struct rv_column streams[] = {NUMBER("key"), WORD("id"),        WORD("run"),          WORD("tenant"),
                                           WORD("user"),  WORD("session"),   WORD("ask"),          WORD("hash"),
                                           WORD("owner"), NUMBER("n_lines"), NUMBER("created_us"), NUMBER("ended_us")};
static const struct rv_column stream_parts[] = {NUMBER("stream"), NUMBER("n"), NUMBER("first"), NUMBER("at_us"),
                                                WORDS("body")};

static const struct rv_column webhooks[] = {NUMBER("run"), NUMBER("n"), WORD("url"), WORDS("secret"), NUMBER("events")};

#define TABLE(name, keys) .columns = (name), .n_columns = RV_COUNT(name), .n_key = (keys)
const struct sql_table store_tables[] = {
    {"blobs", TABLE(blobs, 1), .is_numbered = true},
    {"runs", TABLE(runs, 1), .is_numbered = true},
    {"records", TABLE(records, 2)},
    {"pending", TABLE(pending, 2)},
    {"snapshots", TABLE(snapshots, 1)},
    {"sessions", TABLE(sessions, 1), .is_numbered = true},
    {"messages", TABLE(messages, 1), .is_numbered = true},
    {"schemas", TABLE(schemas, 1), .is_numbered = true},
    {"counters", TABLE(counters, 1), .is_seeded = true},
    {"classes", TABLE(classes, 1), .is_numbered = true},
    {"shares", TABLE(shares, 1)},
    {"lanes", TABLE(lanes, 1), .is_numbered = true},
    {"tasks", TABLE(tasks, 1), .is_numbered = true},
    {"task_events", TABLE(task_events, 2)},
    {"schedules", TABLE(schedules, 1), .is_numbered = true},
    {"firings", TABLE(firings, 2)},
    {"usage", TABLE(usage, 1), .is_numbered = true},
    {"holds", TABLE(holds, 4)},
    {"rates", TABLE(rates, 1), .is_numbered = true},
    {"interrupts", TABLE(interrupts, 2)},
    {"entities", TABLE(entities, 1), .is_numbered = true},
    {"keys", TABLE(keys, 1), .is_numbered = true},
    {"vectors", TABLE(vectors, 1), .is_numbered = true},
    {"tokens", TABLE(tokens, 1), .is_numbered = true},
    {"embeddings", TABLE(embeddings, 1), .is_numbered = true},
    {"schema_timemachine", TABLE(schema_timemachine, 1), .is_numbered = true},
    {"api_keys", TABLE(api_keys, 1)},
    {"logins", TABLE(logins, 1)},
    {"tenant_keys", TABLE(tenant_keys, 1), .is_numbered = true},
    {"streams", TABLE(streams, 1), .is_numbered = true},
    {"stream_parts", TABLE(stream_parts, 2)},
    {"webhooks", TABLE(webhooks, 2)},
};
_Static_assert(RV_COUNT(store_tables) <= RV_STORE_MAX_TABLES, "struct rv_store_copied has room for all tables");
const size_t store_n_tables = RV_COUNT(store_tables);
