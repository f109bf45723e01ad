rv_test(fault_calendar SOURCES fault_calendar.c USES rv::calendar rv::fault LABELS fault)
