/* libpq as a table of functions, opened when the first store needs it. */
#ifndef RV_STORE_POSTGRES_LIB_INTERNAL_H
#define RV_STORE_POSTGRES_LIB_INTERNAL_H

#include <libpq-fe.h>

#include "coreengine/base/base.h"

/* --- postgres/lib.c --- */
#define RV_PQ_FUNCTIONS(X)                                                                                             \
    X(clear)                                                                                                           \
    X(cmdStatus)                                                                                                       \
    X(cmdTuples)                                                                                                       \
    X(conninfoFree)                                                                                                    \
    X(conninfoParse)                                                                                                   \
    X(connectPoll)                                                                                                     \
    X(connectStartParams)                                                                                              \
    X(consumeInput)                                                                                                    \
    X(enterPipelineMode)                                                                                               \
    X(exitPipelineMode)                                                                                                \
    X(errorMessage)                                                                                                    \
    X(finish)                                                                                                          \
    X(fname)                                                                                                           \
    X(ftype)                                                                                                           \
    X(flush)                                                                                                           \
    X(freemem)                                                                                                         \
    X(getisnull)                                                                                                       \
    X(getlength)                                                                                                       \
    X(getResult)                                                                                                       \
    X(getvalue)                                                                                                        \
    X(isBusy)                                                                                                          \
    X(nfields)                                                                                                         \
    X(notifies)                                                                                                        \
    X(ntuples)                                                                                                         \
    X(pipelineSync)                                                                                                    \
    X(resultErrorField)                                                                                                \
    X(resultStatus)                                                                                                    \
    X(sendDescribePrepared)                                                                                            \
    X(sendPrepare)                                                                                                     \
    X(sendQuery)                                                                                                       \
    X(sendQueryParams)                                                                                                 \
    X(sendQueryPrepared)                                                                                               \
    X(setErrorVerbosity)                                                                                               \
    X(setnonblocking)                                                                                                  \
    X(setNoticeProcessor)                                                                                              \
    X(socket)                                                                                                          \
    X(status)
struct rv_pq {
#define X(name) __typeof__(PQ##name) *name;
    RV_PQ_FUNCTIONS(X)
#undef X
};
/** The functions of libpq, for the life of the process. RV_E_IO names the package that is missing. Thread-safe.
 */
RV_MUST_CHECK int store_pq_open(const struct rv_pq **out, rv_err **err);

#endif
