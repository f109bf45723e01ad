rv_test(fault_config SOURCES fault_config.c USES rv::config rv::fault LABELS fault)
