rv_test(fault_context SOURCES fault_context.c USES rv::context rv::kit rv::fault LABELS fault)
