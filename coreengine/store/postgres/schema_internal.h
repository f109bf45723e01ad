/* The tables of a PostgreSQL schema. */
#ifndef RV_STORE_POSTGRES_SCHEMA_INTERNAL_H
#define RV_STORE_POSTGRES_SCHEMA_INTERNAL_H

#include "coreengine/store/postgres/postgres_internal.h"

/* postgres/schema.c: step i takes the tables from version i to i + 1. */
#define RV_POSTGRES_SCHEMA 11
extern const char *const rv_postgres_schema[RV_POSTGRES_SCHEMA];
/** Fill in is_there and has, and change nothing. RV_E_INVALID: tables of another program. */
RV_MUST_CHECK int rv_pg_read_version(struct postgres *st, struct rv_store_version *out, rv_err **err);
/** Check that the schema of the database is a store, create it when it is empty, bring it forward when it is older. */
RV_MUST_CHECK int rv_pg_bring_forward(struct postgres *st, const char *const *steps, int n_steps, bool must_exist,
                                      rv_err **err);

#endif
