rv_test(fault_models
    SOURCES fault_models.c ${PROJECT_SOURCE_DIR}/tests/unit/shell/model_server.c
    USES rv::shell rv::kit rv::fault PkgConfig::UV Threads::Threads
    LABELS fault)
