// What a server can do wrong, as data: one row, one run of a pipeline. A row is
//
//   name     also its path on the fault server
//   wire     openai unless told
//   serve    what the server does with the request, see fault-server.mjs
//   address  instead of it: where the model is said to be, {refused|tls...}
//   knobs    further keys of the model
//   want     error_kind of the last llm_result, attempts, texts that the error names, and the text that had
//            come; a row that wants no kind wants an answer. Without attempts any number will do.
import {bodies} from './bodies.mjs'
import {bounds} from './bounds.mjs'
import {calls} from './calls.mjs'
import {connections} from './connections.mjs'
import {statuses} from './statuses.mjs'

export const faults = [...connections, ...statuses, ...bodies, ...calls]
export {bounds}
