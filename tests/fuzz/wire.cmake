# Proves 12.2/fuzz: Any bytes may come
rv_fuzz(wire_sse SOURCES fuzz_wire_sse.c USES rv::wire)
rv_fuzz(wire_openai SOURCES fuzz_wire_openai.c USES rv::wire)
