rv_fuzz(plugin_reply SOURCES fuzz_plugin_reply.c USES rv::plugin rv::llm rv::config)
