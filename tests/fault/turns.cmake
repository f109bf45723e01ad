rv_test(fault_turns SOURCES fault_turns.c USES rv::app rv::kit rv::fault PkgConfig::UV Threads::Threads LABELS fault)
rv_test(growth_turns SOURCES growth_turns.c USES rv::app rv::kit rv::fault PkgConfig::UV Threads::Threads LABELS fault)
