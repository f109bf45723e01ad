rv_test(fault_plugin
    SOURCES fault_plugin.c
    USES rv::plugin rv::llm rv::config rv::kit rv::fault
    LABELS fault)
if(RV_TESTS)
    target_compile_definitions(fault_plugin PRIVATE
        REEVE_PROGRAM="$<TARGET_FILE:reeve>"
        HOSTILE_DIR="${PROJECT_BINARY_DIR}/tests/plugins/lib"
        CAPABILITY_DIR="${PROJECT_BINARY_DIR}/lib/reeve/capabilities")
    add_dependencies(fault_plugin reeve hostile_plugins hello_capability files_capability echo_capability
        p8_capability)
endif()
