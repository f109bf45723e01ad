rv_test(fault_config_analysis
    SOURCES fault_config_analysis.c ../unit/config_analysis/world.c
    USES rv::analysis rv::fault
    LABELS fault)
