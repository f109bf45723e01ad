# Proves 12.2/fuzz
rv_fuzz(wire_anthropic SOURCES fuzz_wire_anthropic.c USES rv::wire)
rv_fuzz(embed SOURCES fuzz_embed.c USES rv::wire)
