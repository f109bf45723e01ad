rv_test(fault_streams SOURCES fault_streams.c USES rv::app rv::kit rv::fault LABELS fault)
