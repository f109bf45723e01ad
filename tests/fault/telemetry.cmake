rv_test(fault_telemetry SOURCES fault_telemetry.c USES rv::telemetry rv::fault LABELS fault)
