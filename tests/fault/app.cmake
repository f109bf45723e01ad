rv_test(fault_app SOURCES fault_app.c USES rv::app rv::kit rv::fault PkgConfig::SQLITE LABELS fault)
