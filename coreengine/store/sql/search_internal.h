/* Statements of tokens.c, search/refresh.c and embeddings.c; see sql_internal.h. */
#ifndef RV_STORE_SQL_SEARCH_INTERNAL_H
#define RV_STORE_SQL_SEARCH_INTERNAL_H

/* The number of a change: rows that changed after a mark have one that is not below it. With one writer it is a
 * counter; with several it is that of the transaction, and the mark that of the oldest one that may still be under way.
 */
#define RV_SQL_CHANGE "(SELECT value FROM counters WHERE name = 'vectors')"

#define RV_SQL_SET_TOKENS(change)                                                                                      \
    "INSERT INTO tokens (kind, row, tenant_id, user_id, id, category, created_us, is_gone, hash, n_words, key_grams,"  \
    " summary_grams, words, change) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, ?11, ?12, " change             \
    ") ON CONFLICT (kind, row) DO UPDATE SET tenant_id = excluded.tenant_id, user_id = excluded.user_id,"              \
    " id = excluded.id, category = excluded.category, created_us = excluded.created_us, is_gone = 0,"                  \
    " hash = excluded.hash, n_words = excluded.n_words, key_grams = excluded.key_grams,"                               \
    " summary_grams = excluded.summary_grams, words = excluded.words, change = excluded.change"
#define RV_SQL_DROP_TOKENS(change)                                                                                     \
    "UPDATE tokens SET is_gone = 1, category = NULL, hash = '', n_words = 0, key_grams = NULL, summary_grams = NULL, " \
    "words = NULL,"                                                                                                    \
    " change = " change " WHERE kind = ?1 AND row = ?2"
#define RV_SQL_TOUCH_TOKENS(change) "UPDATE tokens SET change = " change " WHERE kind = ?1 AND row = ?2"

#define RV_SQL_TOKENS         "SELECT t.kind, t.row, t.tenant_id, t.user_id, t.id, t.category, t.created_us, t.is_gone"
#define RV_SQL_TOKENS_CHANGED " WHERE t.tenant_id IN (?1, '') AND t.change >= ?2"
#define RV_SQL_TOKENS_OF      RV_SQL_TOKENS_CHANGED " AND t.user_id = ?3" /* of one owner */
#define RV_SQL_NAMES_FROM     RV_SQL_TOKENS ", t.key_grams, t.summary_grams FROM tokens t"
#define RV_SQL_WORDS_FROM     RV_SQL_TOKENS ", t.n_words, t.words FROM tokens t"
#define RV_SQL_VECTORS_FROM                                                                                            \
    RV_SQL_TOKENS ", v.dims, v.vector FROM tokens t LEFT JOIN vectors v ON v.kind = t.kind AND v.row = t.row"          \
                  " AND v.provider = "

#define RV_SQL_SEARCH_STATEMENTS(X)                                                                                    \
    X(SET_TOKENS, RV_SQL_SET_TOKENS(RV_SQL_CHANGE))                                                                    \
    X(DROP_TOKENS, RV_SQL_DROP_TOKENS(RV_SQL_CHANGE))                                                                  \
    X(TOUCH_TOKENS, RV_SQL_TOUCH_TOKENS(RV_SQL_CHANGE))                                                                \
    X(COUNT_TOKENS, "UPDATE counters SET value = value + 1 WHERE name = 'vectors'")                                    \
    X(TOKENS_MARK, "SELECT value + 1 FROM counters WHERE name = 'vectors'")                                            \
    X(DROP_ALL_TOKENS, "DELETE FROM tokens")                                                                           \
    X(PURGE_TOKENS, "DELETE FROM tokens WHERE is_gone <> 0 AND kind NOT IN ('sessions', 'schemas')"                    \
                    " AND NOT EXISTS (SELECT 1 FROM entities e WHERE e.key = tokens.row)")                             \
    X(PURGE_VECTORS,                                                                                                   \
      "DELETE FROM vectors WHERE (kind, row) IN (SELECT t.kind, t.row FROM tokens t WHERE t.is_gone <> 0)")            \
    X(PURGE_EMBEDDINGS,                                                                                                \
      "DELETE FROM embeddings WHERE (kind, row) IN (SELECT t.kind, t.row FROM tokens t WHERE t.is_gone <> 0)")         \
    X(INDEX_PAGE, "SELECT t.row, t.tenant_id, t.user_id, t.id, t.category, t.created_us, t.hash, t.n_words,"           \
                  " t.key_grams, t.summary_grams, t.words, coalesce(k.summary, ''), v.hash, v.vector, q.key"           \
                  " FROM tokens t LEFT JOIN keys k ON k.kind = t.kind AND k.row = t.row"                               \
                  " LEFT JOIN vectors v ON v.kind = t.kind AND v.row = t.row AND v.provider = ?4"                      \
                  " LEFT JOIN embeddings q ON q.kind = t.kind AND q.row = t.row"                                       \
                  " WHERE t.kind = ?1 AND t.row > ?2 AND t.row <= ?3 AND t.is_gone = 0 ORDER BY t.row")                \
    X(VECTOR_PAGE, "SELECT key, dims, vector FROM vectors WHERE key > ?1 ORDER BY key LIMIT ?2")                       \
    X(DROP_VECTOR, "DELETE FROM vectors WHERE key = ?1")                                                               \
    X(DROP_VECTORS_OF, "DELETE FROM vectors WHERE provider = ?1")                                                      \
    X(DROP_LOST_VECTORS, "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM tokens t WHERE t.kind = vectors.kind"    \
                         " AND t.row = vectors.row AND t.is_gone = 0 AND t.hash <> '')")                               \
    X(DROP_LOST_EMBEDDINGS,                                                                                            \
      "DELETE FROM embeddings WHERE status NOT IN ('pending', 'processing', 'failed') OR NOT EXISTS (SELECT 1 FROM"    \
      " tokens t WHERE t.kind = embeddings.kind AND t.row = embeddings.row AND t.is_gone = 0)")                        \
    X(NAME_TOKENS, RV_SQL_NAMES_FROM RV_SQL_TOKENS_CHANGED)                                                            \
    X(NAME_TOKENS_OF, RV_SQL_NAMES_FROM RV_SQL_TOKENS_OF)                                                              \
    X(WORD_TOKENS, RV_SQL_WORDS_FROM RV_SQL_TOKENS_CHANGED " AND t.kind = ?3")                                         \
    X(WORD_TOKENS_OF, RV_SQL_WORDS_FROM RV_SQL_TOKENS_OF " AND t.kind = ?4")                                           \
    X(VECTOR_TOKENS, RV_SQL_VECTORS_FROM "?4" RV_SQL_TOKENS_CHANGED " AND t.kind = ?3")                                \
    X(VECTOR_TOKENS_OF, RV_SQL_VECTORS_FROM "?5" RV_SQL_TOKENS_OF " AND t.kind = ?4")                                  \
    X(KEY_OF_ROW, "SELECT entity_key, summary FROM keys WHERE kind = ?1 AND row = ?2 AND tenant_id IN (?3, '')"        \
                  " AND (?4 IS NULL OR user_id IN (?4, ''))")                                                          \
    X(VECTOR_HASH, "SELECT hash FROM vectors WHERE kind = ?1 AND row = ?2 AND provider = ?3")                          \
    X(SET_VECTOR, "INSERT INTO vectors (kind, row, provider, dims, hash, vector, created_us)"                          \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (kind, row, provider) DO UPDATE SET"               \
                  " dims = excluded.dims, hash = excluded.hash, vector = excluded.vector,"                             \
                  " created_us = excluded.created_us")                                                                 \
    X(DROP_VECTORS, "DELETE FROM vectors WHERE kind = ?1 AND row = ?2")                                                \
    X(QUEUE_EMBEDDING, "INSERT INTO embeddings (kind, row, tenant_id, status, attempts, claimed_us, created_us)"       \
                       " VALUES (?1, ?2, ?3, 'pending', 0, 0, ?4) ON CONFLICT (kind, row) DO UPDATE SET"               \
                       " status = 'pending', attempts = 0, claimed_us = 0, error = NULL,"                              \
                       " created_us = excluded.created_us")                                                            \
    X(UNQUEUE_EMBEDDING, "DELETE FROM embeddings WHERE kind = ?1 AND row = ?2")                                        \
    X(QUEUE_EMBEDDINGS, "INSERT INTO embeddings (kind, row, tenant_id, status, attempts, claimed_us, created_us)"      \
                        " SELECT t.kind, t.row, t.tenant_id, 'pending', 0, 0, ?2 FROM tokens t WHERE t.hash <> ''"     \
                        " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.kind = t.kind AND v.row = t.row"             \
                        " AND v.provider = ?1 AND v.hash = t.hash) ON CONFLICT (kind, row) DO NOTHING")                \
    X(REQUEUE_EMBEDDINGS, "UPDATE embeddings SET status = 'pending', attempts = 0, claimed_us = 0, error = NULL")      \
    X(PENDING_EMBEDDINGS, "SELECT q.key, q.kind, q.row, q.attempts, coalesce(t.hash, ''), v.hash FROM embeddings q"    \
                          " LEFT JOIN tokens t ON t.kind = q.kind AND t.row = q.row LEFT JOIN vectors v"               \
                          " ON v.kind = q.kind AND v.row = q.row AND v.provider = ?1 WHERE q.status = 'pending'"       \
                          " OR (q.status = 'processing' AND q.claimed_us <= ?2) ORDER BY q.created_us, q.key"          \
                          " LIMIT ?3")                                                                                 \
    X(CLAIM_EMBEDDING, "UPDATE embeddings SET status = 'processing', attempts = attempts + 1, claimed_us = ?2"         \
                       " WHERE key = ?1 AND (status = 'pending' OR (status = 'processing' AND claimed_us <= ?3))")     \
    X(DONE_EMBEDDING, "DELETE FROM embeddings WHERE key = ?1 AND status = 'processing' AND attempts = ?2"              \
                      " AND claimed_us = ?3")                                                                          \
    X(HAS_HASH, "SELECT 1 FROM tokens WHERE kind = ?1 AND row = ?2 AND hash = ?3 AND is_gone = 0")                     \
    X(FAIL_EMBEDDING, "UPDATE embeddings SET status = ?3, claimed_us = 0, error = ?4 WHERE key = ?1"                   \
                      " AND status = 'processing' AND attempts = ?2 AND claimed_us = ?5")

#endif
