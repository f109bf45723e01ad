rv_test(fault_mcp_served SOURCES fault_mcp_served.c USES rv::app rv::kit rv::fault LABELS fault)
