rv_test(fault_context SOURCES fault_context.c USES rv::conversation rv::kit rv::fault LABELS fault)
