rv_test(fault_turns SOURCES fault_turns.c USES rv::app rv::kit rv::fault PkgConfig::UV Threads::Threads LABELS fault)
rv_test(growth_turns SOURCES growth_turns.c USES rv::app rv::kit rv::fault PkgConfig::UV Threads::Threads LABELS fault)
rv_test(fault_replay SOURCES fault_replay.c ../unit/turns/room.c ../unit/turns/room_lives.c ../unit/turns/scenes.c
    USES rv::journal rv::drive rv::fault LABELS fault)
