rv_test(fault_mcp SOURCES fault_mcp.c USES rv::mcp rv::fault LABELS fault)
rv_test(fault_mcp_http SOURCES fault_mcp_http.c USES rv::mcp rv::fault LABELS fault)
rv_test(fault_mcp_pool SOURCES fault_mcp_pool.c USES rv::mcptools rv::fault LABELS fault)
