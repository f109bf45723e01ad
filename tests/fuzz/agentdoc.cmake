rv_fuzz(agentdoc SOURCES fuzz_agentdoc.c USES rv::agentdoc)
