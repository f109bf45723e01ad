rv_fuzz(plugin_channel SOURCES fuzz_plugin_channel.c USES rv::plugin rv::config)
