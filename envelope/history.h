/* How an agent is shown the history of its session: the words of its document, and what the conversation does. */
#ifndef RV_ENVELOPE_HISTORY_H
#define RV_ENVELOPE_HISTORY_H

#define RV_REPLAY_POLICIES(X)                                                                                          \
    X(SYNTHESISE, "synthesise", "calls of tools and their results are shown again")                                    \
    X(SKIP, "skip", "only what people and agents said is shown again")
#define RV_REPLAY_CONST(n, t, m) RV_REPLAY_##n,
enum rv_replay_policy { RV_REPLAY_POLICIES(RV_REPLAY_CONST) RV_N_REPLAY_POLICIES };

#define RV_COMPACTIONS(X)                                                                                              \
    X(SHORTEN, "shorten", "of a long answer both ends are shown, with a key that finds the whole again")               \
    X(MOMENTS, "moments", "an answer becomes a hint at the moment that covers it")                                     \
    X(NONE, "none", "all answers are shown whole")
#define RV_COMPACTION_CONST(n, t, m) RV_COMPACTION_##n,
/* How older answers are shown. */
enum rv_compaction { RV_COMPACTIONS(RV_COMPACTION_CONST) RV_N_COMPACTIONS };

#endif
