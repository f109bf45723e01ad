/* The tables, and how a file of an older version comes forward: each step is SQL that takes it one version further, all
 * of them in one transaction. A step is never changed once it was released. */
#include <stdio.h>

#include "coreengine/store/sqlite/sqlite_internal.h"
#include "coreengine/store/upkeep.h"

#define APPLICATION 0x72656576 /* "reev", in the file's header: this is a store of ours */

const char *const store_sqlite_schema[RV_SQLITE_SCHEMA] = {
    /* 0 to 1. Rows refer to runs and blobs by small integers; texts of a run stand once, in its row. */
    "CREATE TABLE blobs (key INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, created_us INTEGER NOT NULL,"
    " data BLOB NOT NULL);"
    "CREATE TABLE runs (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, user TEXT NOT NULL,"
    " session TEXT NOT NULL, pipeline TEXT NOT NULL, bundle INTEGER NOT NULL REFERENCES blobs (key), parent TEXT,"
    " parent_seq INTEGER NOT NULL, status TEXT NOT NULL, stage TEXT NOT NULL, created_us INTEGER NOT NULL,"
    " updated_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, n_records INTEGER NOT NULL, owner TEXT,"
    " fence INTEGER NOT NULL, lease_until_us INTEGER NOT NULL, cancel INTEGER NOT NULL, n_pending INTEGER NOT NULL);"
    "CREATE INDEX runs_by_age ON runs (tenant, created_us, id);"
    "CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;"
    "CREATE INDEX runs_by_bundle ON runs (bundle);"
    "CREATE TABLE records (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, seq INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, body TEXT NOT NULL, value TEXT, blob INTEGER REFERENCES blobs (key),"
    " PRIMARY KEY (run, seq)) WITHOUT ROWID;"
    "CREATE INDEX records_by_blob ON records (blob) WHERE blob IS NOT NULL;"
    "CREATE TABLE pending (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, n INTEGER NOT NULL,"
    " id TEXT NOT NULL, kind TEXT NOT NULL, stage TEXT NOT NULL, text TEXT NOT NULL, body TEXT NOT NULL,"
    " created_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, PRIMARY KEY (run, n)) WITHOUT ROWID;"
    "CREATE TABLE snapshots (run INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE, seq INTEGER NOT NULL,"
    " body BLOB NOT NULL);",
    /* 1 to 2. Conversations and agent documents. The columns are p8's (p8-data 1.1, 2), except that times are in
     * microseconds and that user_id is '' instead of null when there is no user. A message's tenant and user are its
     * session's. Each turn of a session first looks for the session's runs that are running or waiting. */
    "CREATE INDEX runs_under_way ON runs (tenant, session, created_us, id) WHERE status IN ('ready', 'running');"
    "CREATE INDEX runs_waiting ON runs (tenant, session, created_us, id) WHERE status IN ('interrupted');"
    "CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, name TEXT NOT NULL, description TEXT, agent_name TEXT, mode TEXT NOT NULL,"
    " total_tokens INTEGER NOT NULL, n_messages INTEGER NOT NULL, metadata TEXT NOT NULL, tags TEXT, graph_edges TEXT,"
    " encryption_level TEXT, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, deleted_us INTEGER,"
    " UNIQUE (tenant_id, id, user_id));"
    "CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id, updated_us DESC, id) WHERE deleted_us IS NULL;"
    "CREATE INDEX sessions_by_touch ON sessions (tenant_id, updated_us DESC, id, user_id) WHERE deleted_us IS NULL;"
    "CREATE TABLE messages (key INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions (key),"
    " seq INTEGER NOT NULL, id TEXT NOT NULL, message_type TEXT NOT NULL, content TEXT, tool_calls TEXT,"
    " token_count INTEGER NOT NULL, agent_name TEXT, model TEXT, trace_id TEXT, span_id TEXT, run_id TEXT,"
    " input_tokens INTEGER, output_tokens INTEGER, cost_micro_usd INTEGER, latency_ms INTEGER, status TEXT,"
    " parent_call_id TEXT, metadata TEXT, tags TEXT, graph_edges TEXT, encryption_level TEXT,"
    " created_us INTEGER NOT NULL, UNIQUE (session, seq), UNIQUE (session, id));"
    "CREATE TABLE schemas (key INTEGER PRIMARY KEY, id TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL,"
    " name TEXT NOT NULL, kind TEXT NOT NULL, version TEXT, description TEXT, content TEXT NOT NULL,"
    " json_schema TEXT NOT NULL, document TEXT NOT NULL, source TEXT NOT NULL, place TEXT, checksum TEXT NOT NULL,"
    " metadata TEXT, tags TEXT, graph_edges TEXT, encryption_level TEXT, created_us INTEGER NOT NULL,"
    " updated_us INTEGER NOT NULL, deleted_us INTEGER, UNIQUE (tenant_id, kind, name, user_id));"
    "CREATE INDEX schemas_by_id ON schemas (tenant_id, id);"
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO counters VALUES ('schemas', 0);",
    /* A session's status, and messages that are deleted one by one. */
    "ALTER TABLE sessions ADD COLUMN status TEXT NOT NULL DEFAULT 'active';"
    "ALTER TABLE messages ADD COLUMN deleted_us INTEGER;"
    "CREATE INDEX messages_deleted ON messages (session, seq) WHERE deleted_us IS NOT NULL;",
    /* 3 to 4. The queue. A lane is what one tenant has of one class: it counts its tasks, and vt says how many
     * were served, divided by weight. Each transition of a task looks into one of the partial indexes, so that
     * what is finished costs the others nothing. */
    "CREATE TABLE classes (id INTEGER PRIMARY KEY, tier TEXT NOT NULL, needs TEXT NOT NULL, UNIQUE (tier, needs));"
    "CREATE TABLE shares (tenant TEXT PRIMARY KEY, weight INTEGER NOT NULL, cap INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE lanes (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, class INTEGER NOT NULL"
    " REFERENCES classes (id), vt INTEGER NOT NULL, weight INTEGER NOT NULL, cap INTEGER NOT NULL,"
    " n_pending INTEGER NOT NULL, n_processing INTEGER NOT NULL, UNIQUE (tenant, class));"
    "CREATE INDEX lanes_open ON lanes (class, vt) WHERE n_pending > 0 AND n_processing < cap;"
    "CREATE INDEX lanes_shut ON lanes (class, vt) WHERE NOT (n_pending > 0 AND n_processing < cap);"
    "CREATE TABLE tasks (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, lane INTEGER NOT NULL"
    " REFERENCES lanes (key), tenant TEXT NOT NULL, user TEXT NOT NULL, type TEXT NOT NULL, idempotency TEXT,"
    " payload TEXT NOT NULL, result TEXT, error TEXT, status TEXT NOT NULL, cancel INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, attempt INTEGER NOT NULL, retry_count INTEGER NOT NULL,"
    " max_retries INTEGER NOT NULL, n_events INTEGER NOT NULL, created_us INTEGER NOT NULL,"
    " updated_us INTEGER NOT NULL, scheduled_us INTEGER NOT NULL, started_us INTEGER NOT NULL,"
    " completed_us INTEGER NOT NULL, worker TEXT, claimed_us INTEGER NOT NULL, lease_until_us INTEGER NOT NULL);"
    "CREATE INDEX tasks_ready ON tasks (lane, priority DESC, scheduled_us) WHERE status = 'pending';"
    "CREATE INDEX tasks_waiting ON tasks (scheduled_us) WHERE status = 'waiting';"
    "CREATE INDEX tasks_by_lease ON tasks (lease_until_us) WHERE status = 'processing';"
    "CREATE INDEX tasks_by_worker ON tasks (worker) WHERE status = 'processing';"
    "CREATE UNIQUE INDEX tasks_by_key ON tasks (tenant, user, type, idempotency) WHERE idempotency IS NOT NULL"
    " AND status IN ('waiting', 'pending', 'processing');"
    "CREATE INDEX tasks_by_age ON tasks (tenant, created_us);"
    "CREATE INDEX tasks_failed ON tasks (tenant, created_us) WHERE status IN ('failed');"
    "CREATE INDEX tasks_over ON tasks (completed_us) WHERE completed_us > 0;"
    "CREATE TABLE task_events (task INTEGER NOT NULL REFERENCES tasks (key) ON DELETE CASCADE, seq INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL, kind TEXT NOT NULL, attempt INTEGER NOT NULL, worker TEXT, text TEXT,"
    " retry INTEGER NOT NULL, next_us INTEGER NOT NULL, PRIMARY KEY (task, seq)) WITHOUT ROWID;",
    /* The workers of the queue, and the duties that one worker at a time has for all. */
    "CREATE TABLE workers (name TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, offers TEXT NOT NULL,"
    " n_max INTEGER NOT NULL, n_runs INTEGER NOT NULL, draining INTEGER NOT NULL, started_us INTEGER NOT NULL,"
    " seen_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE duties (name TEXT PRIMARY KEY, worker TEXT NOT NULL, until_us INTEGER NOT NULL) WITHOUT ROWID;",
    /* 5 to 6. Schedules, and their last firings. */
    "CREATE TABLE schedules (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    " user TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, expr TEXT NOT NULL, zone TEXT NOT NULL,"
    " type TEXT NOT NULL, tier TEXT NOT NULL, needs TEXT NOT NULL, payload TEXT NOT NULL,"
    " bundle INTEGER REFERENCES blobs (key), pipeline TEXT, priority INTEGER NOT NULL, max_retries INTEGER NOT NULL,"
    " created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, next_us INTEGER NOT NULL, look_us INTEGER NOT NULL,"
    " last_us INTEGER NOT NULL, n_fired INTEGER NOT NULL, n_skipped INTEGER NOT NULL, error TEXT,"
    " UNIQUE (tenant, name));"
    "CREATE INDEX schedules_due ON schedules (look_us, tenant) WHERE look_us > 0;"
    "CREATE INDEX schedules_by_bundle ON schedules (bundle) WHERE bundle IS NOT NULL;"
    "CREATE TABLE firings (schedule INTEGER NOT NULL REFERENCES schedules (key) ON DELETE CASCADE,"
    " planned_us INTEGER NOT NULL, since_us INTEGER NOT NULL, at_us INTEGER NOT NULL, made TEXT, skipped TEXT,"
    " PRIMARY KEY (schedule, planned_us)) WITHOUT ROWID;"
    /* The use of quotas, reservations for calls under way, and windows of rates. user '' in a row with is_tenants: all
       users together. */
    "CREATE TABLE usage (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, is_tenants INTEGER NOT NULL,"
    " user TEXT NOT NULL, kind TEXT NOT NULL, span TEXT NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL,"
    " used INTEGER NOT NULL, reserved INTEGER NOT NULL, UNIQUE (tenant, is_tenants, user, kind, span, start_us));"
    "CREATE INDEX usage_over ON usage (end_us);"
    "CREATE TABLE holds (run TEXT NOT NULL, fence INTEGER NOT NULL, call INTEGER NOT NULL, usage INTEGER NOT NULL"
    " REFERENCES usage (key) ON DELETE CASCADE, amount INTEGER NOT NULL, PRIMARY KEY (run, fence, call, usage))"
    " WITHOUT ROWID;"
    "CREATE INDEX holds_by_usage ON holds (usage);"
    "CREATE TABLE rates (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, is_tenants INTEGER NOT NULL,"
    " user TEXT NOT NULL, kind TEXT NOT NULL, span TEXT NOT NULL, end_us INTEGER NOT NULL, head INTEGER NOT NULL,"
    " n0 INTEGER NOT NULL, n1 INTEGER NOT NULL, n2 INTEGER NOT NULL, n3 INTEGER NOT NULL, n4 INTEGER NOT NULL,"
    " n5 INTEGER NOT NULL, n6 INTEGER NOT NULL, n7 INTEGER NOT NULL, n8 INTEGER NOT NULL, n9 INTEGER NOT NULL,"
    " UNIQUE (tenant, is_tenants, user, kind, span));"
    "CREATE INDEX rates_over ON rates (end_us);"
    /* Questions of runs, also those that are over. n_open counts those that the run still waits with, so that a step
     * of a run without any looks nowhere. */
    "ALTER TABLE runs ADD COLUMN n_open INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE interrupts (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, id TEXT NOT NULL, tenant "
    "TEXT NOT NULL, user TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL,"
    " stage TEXT NOT NULL, text TEXT NOT NULL, reason TEXT, status TEXT NOT NULL, created_us INTEGER NOT NULL,"
    " expires_us INTEGER NOT NULL, ended_us INTEGER NOT NULL, PRIMARY KEY (run, id)) WITHOUT ROWID;"
    "CREATE INDEX interrupts_by_session ON interrupts (tenant, session);"
    "CREATE INDEX interrupts_open ON interrupts (tenant, kind, created_us) WHERE ended_us = 0;"
    "CREATE INDEX interrupts_due ON interrupts (expires_us) WHERE status = 'pending' AND expires_us > 0;"
    "CREATE INDEX interrupts_over ON interrupts (ended_us) WHERE ended_us > 0;"
    "INSERT INTO interrupts (run, id, tenant, \"user\", session, kind, stage, text, status, created_us, expires_us,"
    " ended_us) SELECT p.run, p.id, r.tenant, r.\"user\", r.session, p.kind, p.stage, p.text, 'pending', p.created_us,"
    " p.expires_us, 0 FROM pending p JOIN runs r ON r.key = p.run;"
    "UPDATE runs SET n_open = n_pending WHERE n_pending > 0;"
    /* The identity of the store: its id, and whether it is a copy of another one. */
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "INSERT INTO about VALUES ('id', lower(hex(randomblob(16))));"
    /* Rows that are few among many, and lists of one user or status. */
    "CREATE INDEX sessions_deleted ON sessions (deleted_us) WHERE deleted_us IS NOT NULL;"
    "CREATE INDEX runs_expiring ON runs (expires_us) WHERE status IN ('interrupted') AND expires_us > 0;"
    "CREATE INDEX runs_by_user ON runs (tenant, user, created_us, id);"
    "CREATE INDEX runs_by_status ON runs (tenant, status, created_us, id);",
    /* 6 to 7. Entities: rows of all kinds (entities.h) that have no table of their own. fields has the columns of the
     * kind, as JSON. tenant_id '': every tenant's; user_id '': no owner. */
    "CREATE TABLE entities (key INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, name TEXT, about TEXT, fields TEXT NOT NULL, metadata TEXT NOT NULL, tags TEXT NOT NULL,"
    " graph_edges TEXT NOT NULL, encryption_level TEXT, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL,"
    " deleted_us INTEGER, UNIQUE (tenant_id, kind, id, user_id));"
    "CREATE INDEX entities_by_age ON entities (tenant_id, kind, created_us DESC, id) WHERE deleted_us IS NULL;"
    "CREATE INDEX entities_by_user ON entities (tenant_id, kind, user_id, created_us DESC, id)"
    " WHERE deleted_us IS NULL;"
    "CREATE INDEX entities_by_name ON entities (tenant_id, kind, name) WHERE deleted_us IS NULL;"
    "CREATE INDEX entities_by_about ON entities (tenant_id, kind, about, created_us DESC, id)"
    " WHERE deleted_us IS NULL;"
    "CREATE INDEX entities_deleted ON entities (deleted_us) WHERE deleted_us IS NOT NULL;"
    /* The index of names: a row for each live row of the kinds that have one. row is its key in the table of its kind.
     * The counter 'keys' is 0 while rows of an older version are not in it. */
    "CREATE TABLE keys (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, entity_key TEXT NOT NULL, entity_id TEXT NOT NULL, summary TEXT NOT NULL,"
    " updated_us INTEGER NOT NULL, UNIQUE (kind, row));"
    "CREATE INDEX keys_by_key ON keys (tenant_id, entity_key, user_id);"
    "CREATE INDEX keys_by_id ON keys (tenant_id, entity_id, user_id);"
    "INSERT INTO counters SELECT 'keys', CASE WHEN EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM schemas)"
    " THEN 0 ELSE 1 END;"
    /* Vectors of the words of rows, little-endian float32; what is still to be embedded; how often vectors changed. */
    "CREATE TABLE vectors (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, provider TEXT NOT NULL,"
    " dims INTEGER NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, created_us INTEGER NOT NULL,"
    " UNIQUE (kind, row, provider));"
    "CREATE TABLE embeddings (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL,"
    " tenant_id TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, claimed_us INTEGER NOT NULL,"
    " error TEXT, created_us INTEGER NOT NULL, UNIQUE (kind, row));"
    "CREATE INDEX embeddings_by_status ON embeddings (status, created_us);"
    "INSERT INTO counters VALUES ('vectors', 0);"
    /* What rows are found by: trigrams and words, and the number of the last change. key_grams and summary_grams are
     * ascending little-endian numbers of four bytes, words those of hashes with a byte that counts the word behind
     * each. hash: of the text that is to be embedded, '' if there is none. A row that was deleted stays with is_gone.
     */
    "CREATE TABLE tokens (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, id TEXT NOT NULL, category TEXT, created_us INTEGER NOT NULL, is_gone INTEGER NOT NULL,"
    " hash TEXT NOT NULL, n_words INTEGER NOT NULL, key_grams BLOB, summary_grams BLOB, words BLOB,"
    " change INTEGER NOT NULL DEFAULT 0, UNIQUE (kind, row));"
    "CREATE INDEX tokens_by_change ON tokens (tenant_id, change, kind);"
    /* Every version of a schema. schema: its key in schemas. */
    "CREATE TABLE schema_timemachine (key INTEGER PRIMARY KEY, schema INTEGER NOT NULL, operation TEXT NOT NULL,"
    " name TEXT NOT NULL, version TEXT, content TEXT NOT NULL, json_schema TEXT NOT NULL, checksum TEXT NOT NULL,"
    " recorded_us INTEGER NOT NULL);"
    "CREATE INDEX schema_timemachine_by_schema ON schema_timemachine (schema);",
    /* 7 to 8. API keys, and the logins that were exchanged for one (users.h). Secrets are not kept: hash is the
     * SHA-256 of one. */
    "CREATE TABLE api_keys (id TEXT PRIMARY KEY, hash TEXT NOT NULL, level TEXT NOT NULL, tenant TEXT NOT NULL,"
    " user TEXT NOT NULL, scopes TEXT NOT NULL, note TEXT NOT NULL, created_us INTEGER NOT NULL,"
    " expires_us INTEGER NOT NULL, used_us INTEGER NOT NULL, revoked_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX api_keys_by_age ON api_keys (tenant, created_us DESC, id);"
    "CREATE TABLE logins (hash TEXT PRIMARY KEY, key_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,"
    " created_us INTEGER NOT NULL, expires_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX logins_by_key ON logins (key_id, created_us);"
    "CREATE INDEX logins_over ON logins (expires_us);"
    /* Encryption: what is encrypted of a tenant ('': of those without a row of their own), and the keys, each
     * wrapped by a master key that is not in the store. A tenant has one row that is current. The counter
     * 'encryption' changes with the table; it is 0 while nothing was ever encrypted. */
    "CREATE TABLE tenant_keys (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    " mode TEXT NOT NULL, status TEXT NOT NULL, algorithm TEXT NOT NULL, kms_key_id TEXT NOT NULL,"
    " wrapped_dek TEXT NOT NULL, public_key TEXT, created_us INTEGER NOT NULL, retired_us INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX tenant_keys_current ON tenant_keys (tenant) WHERE status = 'current';"
    "INSERT INTO counters VALUES ('encryption', 0);",
    /* 8 to 9. Streams of clients and their lines, in groups (clients.h). */
    "CREATE TABLE streams (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, tenant TEXT NOT NULL,"
    " user TEXT NOT NULL, session TEXT NOT NULL, ask TEXT NOT NULL, hash TEXT NOT NULL, owner TEXT NOT NULL,"
    " n_parts INTEGER NOT NULL, n_lines INTEGER NOT NULL, created_us INTEGER NOT NULL,"
    " ended_us INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX streams_by_ask ON streams (tenant, user, ask) WHERE ask <> '';"
    "CREATE INDEX streams_over ON streams (ended_us);"
    "CREATE INDEX streams_by_run ON streams (run);"
    "CREATE INDEX streams_by_session ON streams (tenant, session);"
    "CREATE TABLE stream_parts (stream INTEGER NOT NULL REFERENCES streams (key) ON DELETE CASCADE,"
    " n INTEGER NOT NULL, first INTEGER NOT NULL, at_us INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (stream, n))"
    " WITHOUT ROWID;"
    /* The addresses that are called when a run ends or waits (clients.h). */
    "CREATE TABLE webhooks (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, n INTEGER NOT NULL,"
    " url TEXT NOT NULL, secret TEXT NOT NULL, events INTEGER NOT NULL, PRIMARY KEY (run, n)) WITHOUT ROWID;",
    /* 9 to 10. A search reads the rows of one owner, and no entry of another's. */
    "CREATE INDEX tokens_by_owner ON tokens (tenant_id, user_id, change, kind);",
    /* 10 to 11. An owner asks several times a second which of its runs are to be cancelled; n_parts was not read. */
    "CREATE INDEX runs_cancelled ON runs (owner) WHERE cancel <> 0; ALTER TABLE streams DROP COLUMN n_parts;"
    /* Of two indexes that look alike SQLite takes the newer one, and that was the one of all runs that wait. */
    "DROP INDEX runs_waiting;"
    "CREATE INDEX runs_waiting ON runs (tenant, session, created_us, id) WHERE status IN ('interrupted');",
};

/* The result of all steps, for a store that is made now: the steps rewrite tables that were made a moment before, which
 * takes twice as long. A test compares the two. Indexes stand in the order in which the steps make them, since of two
 * that look alike SQLite takes the newer one. */
const char sqlite_tables[] =
    "CREATE TABLE blobs (key INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, created_us INTEGER NOT NULL, data BLOB"
    " NOT NULL);"
    "CREATE TABLE runs (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, user TEXT NOT NULL,"
    " session TEXT NOT NULL, pipeline TEXT NOT NULL, bundle INTEGER NOT NULL REFERENCES blobs (key), parent TEXT,"
    " parent_seq INTEGER NOT NULL, status TEXT NOT NULL, stage TEXT NOT NULL, created_us INTEGER NOT NULL, updated_us"
    " INTEGER NOT NULL, expires_us INTEGER NOT NULL, n_records INTEGER NOT NULL, owner TEXT, fence INTEGER NOT NULL,"
    " lease_until_us INTEGER NOT NULL, cancel INTEGER NOT NULL, n_pending INTEGER NOT NULL, n_open INTEGER NOT NULL"
    " DEFAULT 0);"
    "CREATE INDEX runs_by_age ON runs (tenant, created_us, id);"
    "CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;"
    "CREATE INDEX runs_by_bundle ON runs (bundle);"
    "CREATE TABLE records (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, seq INTEGER NOT NULL, kind"
    " INTEGER NOT NULL, body TEXT NOT NULL, value TEXT, blob INTEGER REFERENCES blobs (key), PRIMARY KEY (run, seq))"
    " WITHOUT ROWID;"
    "CREATE INDEX records_by_blob ON records (blob) WHERE blob IS NOT NULL;"
    "CREATE TABLE pending (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, n INTEGER NOT NULL, id TEXT"
    " NOT NULL, kind TEXT NOT NULL, stage TEXT NOT NULL, text TEXT NOT NULL, body TEXT NOT NULL, created_us INTEGER"
    " NOT NULL, expires_us INTEGER NOT NULL, PRIMARY KEY (run, n)) WITHOUT ROWID;"
    "CREATE TABLE snapshots (run INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE, seq INTEGER NOT NULL,"
    " body BLOB NOT NULL);"
    "CREATE INDEX runs_under_way ON runs (tenant, session, created_us, id) WHERE status IN ('ready', 'running');"
    "CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT"
    " NULL, name TEXT NOT NULL, description TEXT, agent_name TEXT, mode TEXT NOT NULL, total_tokens INTEGER NOT NULL,"
    " n_messages INTEGER NOT NULL, metadata TEXT NOT NULL, tags TEXT, graph_edges TEXT, encryption_level TEXT,"
    " created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, deleted_us INTEGER, status TEXT NOT NULL DEFAULT"
    " 'active', UNIQUE (tenant_id, id, user_id));"
    "CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id, updated_us DESC, id) WHERE deleted_us IS NULL;"
    "CREATE INDEX sessions_by_touch ON sessions (tenant_id, updated_us DESC, id, user_id) WHERE deleted_us IS NULL;"
    "CREATE TABLE messages (key INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions (key), seq INTEGER"
    " NOT NULL, id TEXT NOT NULL, message_type TEXT NOT NULL, content TEXT, tool_calls TEXT, token_count INTEGER NOT"
    " NULL, agent_name TEXT, model TEXT, trace_id TEXT, span_id TEXT, run_id TEXT, input_tokens INTEGER,"
    " output_tokens INTEGER, cost_micro_usd INTEGER, latency_ms INTEGER, status TEXT, parent_call_id TEXT, metadata"
    " TEXT, tags TEXT, graph_edges TEXT, encryption_level TEXT, created_us INTEGER NOT NULL, deleted_us INTEGER,"
    " UNIQUE (session, seq), UNIQUE (session, id));"
    "CREATE TABLE schemas (key INTEGER PRIMARY KEY, id TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL,"
    " name TEXT NOT NULL, kind TEXT NOT NULL, version TEXT, description TEXT, content TEXT NOT NULL, json_schema TEXT"
    " NOT NULL, document TEXT NOT NULL, source TEXT NOT NULL, place TEXT, checksum TEXT NOT NULL, metadata TEXT, tags"
    " TEXT, graph_edges TEXT, encryption_level TEXT, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL,"
    " deleted_us INTEGER, UNIQUE (tenant_id, kind, name, user_id));"
    "CREATE INDEX schemas_by_id ON schemas (tenant_id, id);"
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX messages_deleted ON messages (session, seq) WHERE deleted_us IS NOT NULL;"
    "CREATE TABLE classes (id INTEGER PRIMARY KEY, tier TEXT NOT NULL, needs TEXT NOT NULL, UNIQUE (tier, needs));"
    "CREATE TABLE shares (tenant TEXT PRIMARY KEY, weight INTEGER NOT NULL, cap INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE lanes (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, class INTEGER NOT NULL REFERENCES classes"
    " (id), vt INTEGER NOT NULL, weight INTEGER NOT NULL, cap INTEGER NOT NULL, n_pending INTEGER NOT NULL,"
    " n_processing INTEGER NOT NULL, UNIQUE (tenant, class));"
    "CREATE INDEX lanes_open ON lanes (class, vt) WHERE n_pending > 0 AND n_processing < cap;"
    "CREATE INDEX lanes_shut ON lanes (class, vt) WHERE NOT (n_pending > 0 AND n_processing < cap);"
    "CREATE TABLE tasks (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, lane INTEGER NOT NULL REFERENCES lanes"
    " (key), tenant TEXT NOT NULL, user TEXT NOT NULL, type TEXT NOT NULL, idempotency TEXT, payload TEXT NOT NULL,"
    " result TEXT, error TEXT, status TEXT NOT NULL, cancel INTEGER NOT NULL, priority INTEGER NOT NULL, attempt"
    " INTEGER NOT NULL, retry_count INTEGER NOT NULL, max_retries INTEGER NOT NULL, n_events INTEGER NOT NULL,"
    " created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, scheduled_us INTEGER NOT NULL, started_us INTEGER NOT"
    " NULL, completed_us INTEGER NOT NULL, worker TEXT, claimed_us INTEGER NOT NULL, lease_until_us INTEGER NOT"
    " NULL);"
    "CREATE INDEX tasks_ready ON tasks (lane, priority DESC, scheduled_us) WHERE status = 'pending';"
    "CREATE INDEX tasks_waiting ON tasks (scheduled_us) WHERE status = 'waiting';"
    "CREATE INDEX tasks_by_lease ON tasks (lease_until_us) WHERE status = 'processing';"
    "CREATE INDEX tasks_by_worker ON tasks (worker) WHERE status = 'processing';"
    "CREATE UNIQUE INDEX tasks_by_key ON tasks (tenant, user, type, idempotency) WHERE idempotency IS NOT NULL AND"
    " status IN ('waiting', 'pending', 'processing');"
    "CREATE INDEX tasks_by_age ON tasks (tenant, created_us);"
    "CREATE INDEX tasks_failed ON tasks (tenant, created_us) WHERE status IN ('failed');"
    "CREATE INDEX tasks_over ON tasks (completed_us) WHERE completed_us > 0;"
    "CREATE TABLE task_events (task INTEGER NOT NULL REFERENCES tasks (key) ON DELETE CASCADE, seq INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL, kind TEXT NOT NULL, attempt INTEGER NOT NULL, worker TEXT, text TEXT, retry INTEGER NOT"
    " NULL, next_us INTEGER NOT NULL, PRIMARY KEY (task, seq)) WITHOUT ROWID;"
    "CREATE TABLE workers (name TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, offers TEXT NOT NULL,"
    " n_max INTEGER NOT NULL, n_runs INTEGER NOT NULL, draining INTEGER NOT NULL, started_us INTEGER NOT NULL,"
    " seen_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE duties (name TEXT PRIMARY KEY, worker TEXT NOT NULL, until_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE schedules (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, user TEXT NOT"
    " NULL, name TEXT NOT NULL, kind TEXT NOT NULL, expr TEXT NOT NULL, zone TEXT NOT NULL, type TEXT NOT NULL, tier"
    " TEXT NOT NULL, needs TEXT NOT NULL, payload TEXT NOT NULL, bundle INTEGER REFERENCES blobs (key), pipeline"
    " TEXT, priority INTEGER NOT NULL, max_retries INTEGER NOT NULL, created_us INTEGER NOT NULL, updated_us INTEGER"
    " NOT NULL, next_us INTEGER NOT NULL, look_us INTEGER NOT NULL, last_us INTEGER NOT NULL, n_fired INTEGER NOT"
    " NULL, n_skipped INTEGER NOT NULL, error TEXT, UNIQUE (tenant, name));"
    "CREATE INDEX schedules_due ON schedules (look_us, tenant) WHERE look_us > 0;"
    "CREATE INDEX schedules_by_bundle ON schedules (bundle) WHERE bundle IS NOT NULL;"
    "CREATE TABLE firings (schedule INTEGER NOT NULL REFERENCES schedules (key) ON DELETE CASCADE, planned_us INTEGER"
    " NOT NULL, since_us INTEGER NOT NULL, at_us INTEGER NOT NULL, made TEXT, skipped TEXT, PRIMARY KEY (schedule,"
    " planned_us)) WITHOUT ROWID;"
    "CREATE TABLE usage (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, is_tenants INTEGER NOT NULL, user TEXT NOT"
    " NULL, kind TEXT NOT NULL, span TEXT NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL, used INTEGER"
    " NOT NULL, reserved INTEGER NOT NULL, UNIQUE (tenant, is_tenants, user, kind, span, start_us));"
    "CREATE INDEX usage_over ON usage (end_us);"
    "CREATE TABLE holds (run TEXT NOT NULL, fence INTEGER NOT NULL, call INTEGER NOT NULL, usage INTEGER NOT NULL"
    " REFERENCES usage (key) ON DELETE CASCADE, amount INTEGER NOT NULL, PRIMARY KEY (run, fence, call, usage))"
    " WITHOUT ROWID;"
    "CREATE INDEX holds_by_usage ON holds (usage);"
    "CREATE TABLE rates (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, is_tenants INTEGER NOT NULL, user TEXT NOT"
    " NULL, kind TEXT NOT NULL, span TEXT NOT NULL, end_us INTEGER NOT NULL, head INTEGER NOT NULL, n0 INTEGER NOT"
    " NULL, n1 INTEGER NOT NULL, n2 INTEGER NOT NULL, n3 INTEGER NOT NULL, n4 INTEGER NOT NULL, n5 INTEGER NOT NULL,"
    " n6 INTEGER NOT NULL, n7 INTEGER NOT NULL, n8 INTEGER NOT NULL, n9 INTEGER NOT NULL, UNIQUE (tenant, is_tenants,"
    " user, kind, span));"
    "CREATE INDEX rates_over ON rates (end_us);"
    "CREATE TABLE interrupts (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, id TEXT NOT NULL, tenant"
    " TEXT NOT NULL, user TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, stage TEXT NOT NULL, text TEXT"
    " NOT NULL, reason TEXT, status TEXT NOT NULL, created_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, ended_us"
    " INTEGER NOT NULL, PRIMARY KEY (run, id)) WITHOUT ROWID;"
    "CREATE INDEX interrupts_by_session ON interrupts (tenant, session);"
    "CREATE INDEX interrupts_open ON interrupts (tenant, kind, created_us) WHERE ended_us = 0;"
    "CREATE INDEX interrupts_due ON interrupts (expires_us) WHERE status = 'pending' AND expires_us > 0;"
    "CREATE INDEX interrupts_over ON interrupts (ended_us) WHERE ended_us > 0;"
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX sessions_deleted ON sessions (deleted_us) WHERE deleted_us IS NOT NULL;"
    "CREATE INDEX runs_expiring ON runs (expires_us) WHERE status IN ('interrupted') AND expires_us > 0;"
    "CREATE INDEX runs_by_user ON runs (tenant, user, created_us, id);"
    "CREATE INDEX runs_by_status ON runs (tenant, status, created_us, id);"
    "CREATE TABLE entities (key INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, name TEXT, about TEXT, fields TEXT NOT NULL, metadata TEXT NOT NULL, tags TEXT NOT NULL,"
    " graph_edges TEXT NOT NULL, encryption_level TEXT, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL,"
    " deleted_us INTEGER, UNIQUE (tenant_id, kind, id, user_id));"
    "CREATE INDEX entities_by_age ON entities (tenant_id, kind, created_us DESC, id) WHERE deleted_us IS NULL;"
    "CREATE INDEX entities_by_user ON entities (tenant_id, kind, user_id, created_us DESC, id) WHERE deleted_us IS"
    " NULL;"
    "CREATE INDEX entities_by_name ON entities (tenant_id, kind, name) WHERE deleted_us IS NULL;"
    "CREATE INDEX entities_by_about ON entities (tenant_id, kind, about, created_us DESC, id) WHERE deleted_us IS"
    " NULL;"
    "CREATE INDEX entities_deleted ON entities (deleted_us) WHERE deleted_us IS NOT NULL;"
    "CREATE TABLE keys (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, entity_key TEXT NOT NULL, entity_id TEXT NOT NULL, summary TEXT NOT NULL, updated_us"
    " INTEGER NOT NULL, UNIQUE (kind, row));"
    "CREATE INDEX keys_by_key ON keys (tenant_id, entity_key, user_id);"
    "CREATE INDEX keys_by_id ON keys (tenant_id, entity_id, user_id);"
    "CREATE TABLE vectors (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, provider TEXT NOT NULL,"
    " dims INTEGER NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, created_us INTEGER NOT NULL, UNIQUE (kind,"
    " row, provider));"
    "CREATE TABLE embeddings (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, tenant_id TEXT NOT"
    " NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, claimed_us INTEGER NOT NULL, error TEXT, created_us"
    " INTEGER NOT NULL, UNIQUE (kind, row));"
    "CREATE INDEX embeddings_by_status ON embeddings (status, created_us);"
    "CREATE TABLE tokens (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, tenant_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL, id TEXT NOT NULL, category TEXT, created_us INTEGER NOT NULL, is_gone INTEGER NOT NULL,"
    " hash TEXT NOT NULL, n_words INTEGER NOT NULL, key_grams BLOB, summary_grams BLOB, words BLOB, change INTEGER"
    " NOT NULL DEFAULT 0, UNIQUE (kind, row));"
    "CREATE INDEX tokens_by_change ON tokens (tenant_id, change, kind);"
    "CREATE TABLE schema_timemachine (key INTEGER PRIMARY KEY, schema INTEGER NOT NULL, operation TEXT NOT NULL, name"
    " TEXT NOT NULL, version TEXT, content TEXT NOT NULL, json_schema TEXT NOT NULL, checksum TEXT NOT NULL,"
    " recorded_us INTEGER NOT NULL);"
    "CREATE INDEX schema_timemachine_by_schema ON schema_timemachine (schema);"
    "CREATE TABLE api_keys (id TEXT PRIMARY KEY, hash TEXT NOT NULL, level TEXT NOT NULL, tenant TEXT NOT NULL, user"
    " TEXT NOT NULL, scopes TEXT NOT NULL, note TEXT NOT NULL, created_us INTEGER NOT NULL, expires_us INTEGER NOT"
    " NULL, used_us INTEGER NOT NULL, revoked_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX api_keys_by_age ON api_keys (tenant, created_us DESC, id);"
    "CREATE TABLE logins (hash TEXT PRIMARY KEY, key_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,"
    " created_us INTEGER NOT NULL, expires_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX logins_by_key ON logins (key_id, created_us);"
    "CREATE INDEX logins_over ON logins (expires_us);"
    "CREATE TABLE tenant_keys (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, mode TEXT NOT"
    " NULL, status TEXT NOT NULL, algorithm TEXT NOT NULL, kms_key_id TEXT NOT NULL, wrapped_dek TEXT NOT NULL,"
    " public_key TEXT, created_us INTEGER NOT NULL, retired_us INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX tenant_keys_current ON tenant_keys (tenant) WHERE status = 'current';"
    "CREATE TABLE streams (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, tenant TEXT NOT NULL,"
    " user TEXT NOT NULL, session TEXT NOT NULL, ask TEXT NOT NULL, hash TEXT NOT NULL, owner TEXT NOT NULL, n_lines"
    " INTEGER NOT NULL, created_us INTEGER NOT NULL, ended_us INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX streams_by_ask ON streams (tenant, user, ask) WHERE ask <> '';"
    "CREATE INDEX streams_over ON streams (ended_us);"
    "CREATE INDEX streams_by_run ON streams (run);"
    "CREATE INDEX streams_by_session ON streams (tenant, session);"
    "CREATE TABLE stream_parts (stream INTEGER NOT NULL REFERENCES streams (key) ON DELETE CASCADE, n INTEGER NOT"
    " NULL, first INTEGER NOT NULL, at_us INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (stream, n)) WITHOUT"
    " ROWID;"
    "CREATE TABLE webhooks (run INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE, n INTEGER NOT NULL, url"
    " TEXT NOT NULL, secret TEXT NOT NULL, events INTEGER NOT NULL, PRIMARY KEY (run, n)) WITHOUT ROWID;"
    "CREATE INDEX tokens_by_owner ON tokens (tenant_id, user_id, change, kind);"
    "CREATE INDEX runs_cancelled ON runs (owner) WHERE cancel <> 0;"
    "CREATE INDEX runs_waiting ON runs (tenant, session, created_us, id) WHERE status IN ('interrupted');"
    "INSERT INTO counters VALUES ('schemas', 0), ('keys', 1), ('vectors', 0), ('encryption', 0);"
    "INSERT INTO about VALUES ('id', lower(hex(randomblob(16))));";

struct header {
    int64_t application, version, n_tables;
};

/* Read everything in one transaction: another process may be making the store just now. */
static int read_header(struct sqlite *st, struct header *h, rv_err **err)
{
    bool began = false;
    int rc = sqlite_begin_read(&st->base, &began, err);

    if (rc == 0)
        rc = sqlite_number(st, "PRAGMA application_id", &h->application, "read", err);
    if (rc == 0)
        rc = sqlite_number(st, "PRAGMA user_version", &h->version, "read", err);
    if (rc == 0)
        rc = sqlite_number(st, "SELECT count(*) FROM sqlite_schema", &h->n_tables, "read", err);
    sqlite_end_read(&st->base, began);
    return rc;
}

static int fail_foreign(struct sqlite *st, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "\"%s\" is a SQLite database, but not a store", st->base.path);
    rv_err_set_hint(err, "name another file; this one was made by another program");
    return RV_E_INVALID;
}

static bool is_fresh(const struct header *h)
{
    return h->application == 0 && h->version == 0 && h->n_tables == 0;
}

int sqlite_read_version(struct sqlite *st, struct rv_store_version *out, rv_err **err)
{
    struct header h = {0};
    int rc = read_header(st, &h, err);

    if (rc == 0 && !is_fresh(&h) && h.application != APPLICATION)
        rc = fail_foreign(st, err);
    out->is_there = !is_fresh(&h);
    out->has = h.version;
    return rc;
}

/* 1: it has to come forward, 0: it is current. */
static int compare(struct sqlite *st, const struct header *h, int current, rv_err **err)
{
    if (is_fresh(h) && st->read_only)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is empty, no store was made in it yet", st->base.path);
    if (!is_fresh(h) && h->application != APPLICATION)
        return fail_foreign(st, err);
    return sql_compare(&st->base, h->version, current, st->read_only, err);
}

/* The caller's transaction. */
static int take_steps(struct sqlite *st, int64_t version, const char *const *steps, int n_steps, rv_err **err)
{
    int rc = 0;

    for (int64_t i = version; i < n_steps && rc == 0; i++) {
        rc = sqlite_exec(st, steps[i], "change the schema", err);
        if (rc < 0)
            RV_WRAP(err, rc, "from schema version %lld to %lld", (long long)i, (long long)i + 1);
    }
    return rc;
}

static int note_version(struct sqlite *st, int version, rv_err **err)
{
    char pragma[80];

    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION, version);
    return sqlite_exec(st, pragma, "note the schema version", err);
}

int sqlite_bring_forward(struct sqlite *st, const char *tables, const char *const *steps, int n_steps, rv_err **err)
{
    struct header h = {0};
    int rc = read_header(st, &h, err);

    if (rc == 0)
        rc = compare(st, &h, n_steps, err);
    if (rc <= 0)
        return rc;
    /* The mode that allows to give space back must be set before the first table; later it has no effect. */
    rc = is_fresh(&h) ? sqlite_exec(st, "PRAGMA auto_vacuum = INCREMENTAL", "set up", err) : 0;
    if (rc == 0)
        rc = sqlite_begin_write(&st->base, "begin to change the schema", err);
    if (rc < 0)
        return rc;
    rc = read_header(st, &h, err); /* again: another process may have done it meanwhile */
    if (rc == 0)
        rc = compare(st, &h, n_steps, err);
    if (rc == 1 && tables && is_fresh(&h))
        rc = sqlite_exec(st, tables, "create the tables", err);
    else if (rc == 1)
        rc = take_steps(st, h.version, steps, n_steps, err);
    if (rc == 0)
        rc = note_version(st, n_steps, err);
    return sqlite_end_write(&st->base, rc, "commit the schema", err);
}
