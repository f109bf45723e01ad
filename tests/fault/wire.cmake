rv_test(fault_wire SOURCES fault_wire.c USES rv::wire rv::kit rv::fault LABELS fault)
