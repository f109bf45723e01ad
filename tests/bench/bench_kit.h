/* What the benches of runs share: a pipeline with its script, its store and an engine, and a clock. Whatever fails ends
 * the program with a message. */
#ifndef RV_TESTS_BENCH_KIT_H
#define RV_TESTS_BENCH_KIT_H

#include "coreengine/engine/engine.h"
#include "coreengine/store/journal/journal.h"

int64_t bench_now_ns(void);
int64_t bench_cpu_ns(void);                              /* that this process has used */
_Noreturn void bench_die(const char *what, rv_err *err); /* err may be NULL */
/** Sorts; q from 0 (the least) to 1 (the most). */
int64_t bench_quantile(int64_t *values, size_t n, double q);
/** A whole number from the command line, from least on. */
size_t bench_number(const char *text, size_t least);
int64_t bench_heap_bytes(void); /* in use by this process */
int64_t bench_resident_bytes(void);

struct bench {
    struct rv_pipeline *pipeline;
    rv_script *script; /* NULL: none */
    rv_plugins *plugins;
    rv_store *store; /* NULL: none */
    char bundle[RV_STORE_HASH_MAX];
    rv_engine *engine;
    bool shares_engine;
    const bool *scripted; /* of the script; per stage */
    bool answers;         /* the script answers interrupts too */
};
struct bench_opts {
    rv_str pipeline, script;     /* YAML; script may be empty */
    const char *reeve, *plugins; /* the program and the folder of capabilities, for a pipeline that uses `hello` */
    const char *hook;            /* of another capability than `hello`; NULL: of that */
    const char *store;           /* where; NULL: nothing is kept */
    enum rv_store_sync sync;
    bool answers;
    rv_engine *engine; /* to run in, with its store; NULL: one is made */
};
void bench_open(struct bench *b, const struct bench_opts *opts);
void bench_close(struct bench *b);
rv_envelope *bench_envelope(void);
/** The journal of a new run; NULL where nothing is kept. */
rv_journal *bench_journal(struct bench *b, const rv_envelope *env);
rv_journal *bench_new_journal(struct bench *b, const rv_envelope *env); /* the run is made with its first step */
const char *bench_owner(void);                                          /* of the journals */
struct rv_exec_opts bench_exec_opts(const struct bench *b, rv_journal *j);
/** Waits until that run is over or waits, and frees both. Gives its status. */
enum rv_run_status bench_finish(struct bench *b, rv_exec *exec, rv_journal *j);
/** A run from its beginning until it is over or waits. id (may be NULL) gets its name. Gives its status. */
enum rv_run_status bench_run(struct bench *b, char id[RV_ID_MAX]);
/** The same for one that waits: taken over, answered. *accepted_ns (may be NULL): when the answer was durable. */
enum rv_run_status bench_resume(struct bench *b, const char *id, const struct rv_response *answer,
                                int64_t *accepted_ns);
/** Records of all runs in the store. */
int64_t bench_records(struct bench *b);
/** "full", "normal" or "off". */
enum rv_store_sync bench_sync(const char *word);

#endif
