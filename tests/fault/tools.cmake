rv_test(fault_tools
    SOURCES fault_tools.c
    USES rv::tools rv::kit rv::fault
    LABELS fault)
