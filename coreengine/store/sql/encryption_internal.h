/* Statements of vault.c, encryption.c and encryption/walk.c; see sql_internal.h. */
#ifndef RV_STORE_SQL_ENCRYPTION_INTERNAL_H
#define RV_STORE_SQL_ENCRYPTION_INTERNAL_H

#define RV_SQL_ENCRYPTION_STATEMENTS(X)                                                                                \
    X(ENCRYPTION_VERSION, "SELECT value FROM counters WHERE name = 'encryption'")                                      \
    X(COUNT_ENCRYPTION, "UPDATE counters SET value = value + 1 WHERE name = 'encryption'")                             \
    X(TENANT_KEY, "SELECT id, tenant, mode, kms_key_id, wrapped_dek, public_key FROM tenant_keys WHERE id = ?1")       \
    X(TENANT_RULE, "SELECT id, mode FROM tenant_keys WHERE tenant IN (?1, '') AND status = 'current'"                  \
                   " ORDER BY tenant = '' LIMIT 1")                                                                    \
    X(TENANT_KEYS,                                                                                                     \
      "SELECT id, tenant, mode, status, algorithm, kms_key_id, created_us, retired_us, wrapped_dek, public_key"        \
      " FROM tenant_keys WHERE ?1 IS NULL OR tenant = ?1"                                                              \
      " ORDER BY tenant, status <> 'current', created_us DESC, id")                                                    \
    X(RETIRE_KEY, "UPDATE tenant_keys SET status = 'retired', retired_us = ?2 WHERE tenant = ?1"                       \
                  " AND status = 'current'")                                                                           \
    X(ADD_TENANT_KEY, "INSERT INTO tenant_keys (id, tenant, mode, status, algorithm, kms_key_id, wrapped_dek,"         \
                      " created_us, retired_us, public_key)"                                                           \
                      " VALUES (?1, ?2, ?3, 'current', ?4, ?5, ?6, ?7, 0, ?8)")                                        \
    X(REWRAP_KEY, "UPDATE tenant_keys SET kms_key_id = ?2, wrapped_dek = ?3 WHERE id = ?1")                            \
    X(DROP_TENANT_KEY, "DELETE FROM tenant_keys WHERE id = ?1")

#endif
