rv_test(fault_sessions SOURCES fault_sessions.c USES rv::store rv::kit rv::fault LABELS fault)
