rv_test(fault_models
    SOURCES fault_models.c ${PROJECT_SOURCE_DIR}/tests/unit/engine/model_server.c
    USES rv::engine rv::kit rv::fault PkgConfig::UV Threads::Threads
    LABELS fault)
