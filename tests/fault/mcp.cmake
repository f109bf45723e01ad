rv_test(fault_mcp SOURCES fault_mcp.c USES rv::mcp rv::fault LABELS fault)
