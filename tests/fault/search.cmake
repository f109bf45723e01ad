rv_test(fault_search SOURCES fault_search.c USES rv::knowledge rv::store rv::kit rv::fault LABELS fault)
