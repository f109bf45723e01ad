rv_test(fault_messages SOURCES fault_messages.c USES rv::conversation rv::kit rv::fault LABELS fault)
