rv_test(fault_hosted SOURCES fault_hosted.c USES rv::engine rv::kit rv::fault PkgConfig::UV LABELS fault)
