rv_fuzz(tool_result SOURCES fuzz_tool_result.c USES rv::tools)
rv_fuzz(schema SOURCES fuzz_schema.c USES rv::tools)
