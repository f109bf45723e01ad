// Scenarios of the judges that reeve does not pass, each with the reason.
const SAMPLING = 'reeve asks its own providers; it never asks a client for a completion'
const ROOTS = 'reeve does not ask clients for roots: capabilities have folders of their own'
const FORM = 'a question has the key `answer`; the judge wants one that the tool chooses'
const OWN_URIS = 'the judge reads test:// addresses that it fixes; resources are sessions and entities of the store, and a capability cannot add others'
const NO_WATCH = 'resources cannot be subscribed to: clients are not told when a row changes'
const TEXT_PROMPTS = 'a prompt of a pipeline is a template of text; images reach a model as attachments of a stage, which are not part of it'
const ONE_QUESTION = 'a call asks one question at a time, under one name'
const OWN_SERVERS = 'the tool takes an argument and asks with a form: the MCP servers of a pipeline with `inputs` are not started when it is offered'

export const exceptions = {
  'conformance-0.1': {
    'tools-call-sampling': SAMPLING,
    'resources-read-text': OWN_URIS,
    'resources-read-binary': OWN_URIS,
    'resources-templates-read': OWN_URIS,
    'resources-subscribe': NO_WATCH,
    'resources-unsubscribe': NO_WATCH,
    'prompts-get-embedded-resource': TEXT_PROMPTS,
    'prompts-get-with-image': TEXT_PROMPTS,
  },
  'conformance-0.2': {
    'server-stateless': `${SAMPLING}: no tool needs a capability that a client has not declared`,
    'resources-read-text': OWN_URIS,
    'resources-read-binary': OWN_URIS,
    'resources-templates-read': OWN_URIS,
    'prompts-get-embedded-resource': TEXT_PROMPTS,
    'prompts-get-with-image': TEXT_PROMPTS,
    'input-required-result-basic-elicitation': FORM,
    'input-required-result-basic-sampling': SAMPLING,
    'input-required-result-basic-list-roots': ROOTS,
    'input-required-result-multiple-input-requests': ONE_QUESTION,
    'input-required-result-non-tool-request': 'prompts and resources ask for nothing',
    'input-required-result-capability-check': SAMPLING,
    'tasks-mrtr-input': OWN_SERVERS,
    'tasks-required-task-error': 'no tool needs tasks: a client that does not take them waits for the result',
  },
}
