rv_test(fault_handlers SOURCES fault_handlers.c USES rv::server rv::kit rv::fault LABELS fault)
