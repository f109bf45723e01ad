rv_fuzz(mcp_message SOURCES fuzz_mcp_message.c USES rv::mcp)
rv_fuzz(mcp_lines SOURCES fuzz_mcp_lines.c USES rv::mcp)
rv_fuzz(mcp_client SOURCES fuzz_mcp_client.c USES rv::mcp)
rv_fuzz(mcp_server SOURCES fuzz_mcp_server.c USES rv::mcp)
