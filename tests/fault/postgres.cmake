rv_test(fault_postgres SOURCES fault_postgres.c USES rv::store rv::kit rv::kit_postgres rv::fault LABELS fault)
