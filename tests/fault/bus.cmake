rv_test(fault_bus SOURCES fault_bus.c USES rv::bus rv::fault LABELS fault)
