rv_test(fault_agents
    SOURCES fault_agents.c
    USES rv::agents rv::config rv::kit rv::fault
    LABELS fault)
if(RV_TESTS)
    target_compile_definitions(fault_agents PRIVATE HOSTILE_DIR="${PROJECT_BINARY_DIR}/tests/plugins/lib")
    add_dependencies(fault_agents hostile_plugins)
endif()
