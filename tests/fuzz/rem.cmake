rv_fuzz(rem SOURCES fuzz_rem.c USES rv::rem)
rv_fuzz(rem_sql SOURCES fuzz_rem_sql.c USES rv::rem)
