rv_test(fault_schedules SOURCES fault_schedules.c USES rv::app rv::kit rv::fault LABELS fault)
