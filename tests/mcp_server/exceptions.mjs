// Scenarios of the judges that reeve does not pass, each with the reason.
const SAMPLING = 'reeve asks its own providers; it never asks a client for a completion'
const ROOTS = 'reeve does not ask clients for roots: capabilities have folders of their own'
const NO_WATCH = 'resources cannot be subscribed to: clients are not told when a row changes'

export const exceptions = {
  'conformance-0.1': {
    'tools-call-sampling': SAMPLING,
    'resources-subscribe': NO_WATCH,
    'resources-unsubscribe': NO_WATCH,
  },
  'conformance-0.2': {
    'server-stateless': `${SAMPLING}: no tool needs a capability that a client has not declared`,
    'input-required-result-basic-sampling': SAMPLING,
    'input-required-result-basic-list-roots': ROOTS,
    'input-required-result-multiple-input-requests': `${SAMPLING}, nor for roots: the judge wants both beside a form`,
    'input-required-result-capability-check': `${SAMPLING}: the judge's client can answer nothing else`,
  },
}
