rv_test(fault_wire_anthropic
    SOURCES fault_wire_anthropic.c
    USES rv::wire rv::kit rv::fault
    LABELS fault)
