rv_test(fault_envelope SOURCES fault_envelope.c USES rv::envelope rv::kit rv::fault LABELS fault)
