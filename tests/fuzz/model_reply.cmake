rv_fuzz(model_reply SOURCES fuzz_model_reply.c USES rv::run rv::agent)
