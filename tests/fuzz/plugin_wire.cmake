rv_fuzz(plugin_wire SOURCES fuzz_plugin_wire.c USES rv::plugin rv::config)
