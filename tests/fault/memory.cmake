rv_test(fault_memory SOURCES fault_memory.c USES rv::app rv::kit rv::fault LABELS fault)
