rv_test(fault_worker SOURCES fault_worker.c USES rv::app rv::kit rv::fault PkgConfig::UV PkgConfig::SQLITE LABELS fault)
