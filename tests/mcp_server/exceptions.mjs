// Scenarios of the judges that reeve does not pass, each with the reason.
const SAMPLING = 'reeve asks its own providers; it never asks a client for a completion'
const ROOTS = 'reeve does not ask clients for roots: capabilities have folders of their own'
const FORM = 'the form of a question follows from its kind; a pipeline cannot choose members, defaults or titles of its own'
const OWN_URIS = 'the addresses of resources are those of the store, reeve://; there are none of other schemes'
const NO_WATCH = 'resources cannot be subscribed to: clients are not told when a row changes'
const TEXT_PROMPTS = 'prompts of pipelines are texts'
const ONE_QUESTION = 'a run asks one question at a time, under one name'
const SCHEMA = 'the scenario wants a tool of a capability that this suite does not have'
const TASKS = 'the tasks extension is not offered: a call stays open as long as its run'

export const exceptions = {
  'conformance-0.1': {
    'tools-call-sampling': SAMPLING,
    'json-schema-2020-12': SCHEMA,
    'elicitation-sep1034-defaults': FORM,
    'elicitation-sep1330-enums': FORM,
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
    'input-required-result-request-state': FORM,
    'input-required-result-multiple-input-requests': ONE_QUESTION,
    'input-required-result-multi-round': FORM,
    'input-required-result-non-tool-request': 'prompts and resources ask for nothing',
    'input-required-result-capability-check': SAMPLING,
    'tasks-lifecycle': TASKS,
    'tasks-capability-negotiation': TASKS,
    'tasks-wire-fields': TASKS,
    'tasks-request-state-removal': TASKS,
    'tasks-mrtr-input': TASKS,
    'tasks-request-headers': TASKS,
    'tasks-dispatch-and-envelope': TASKS,
    'tasks-required-task-error': TASKS,
    'tasks-mrtr-composition': TASKS,
    'json-schema-2020-12': SCHEMA,
    'http-custom-header-server-validation': 'no tool of reeve mirrors an argument into a header',
  },
}
