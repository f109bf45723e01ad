rv_test(fault_models_call SOURCES fault_models_call.c USES rv::app rv::kit rv::fault LABELS fault)
