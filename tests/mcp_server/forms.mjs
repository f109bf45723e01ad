// A server of MCP on a pipe, of 2026-07-28, with the one tool `ask`: {message, schema, before_ms, after_ms} asks a person
// with that form, and gives what was filled in. Pipelines offer the forms that the judges want to see by it.
import {createInterface} from 'node:readline'

const info = {'io.modelcontextprotocol/serverInfo': {name: 'forms', version: '1'}}
const ask = {
  name: 'ask',
  description: 'Asks a person with a form.',
  inputSchema: {
    type: 'object',
    required: ['message', 'schema'],
    properties: {message: {type: 'string'}, schema: {type: 'object'}, before_ms: {type: 'integer'}, after_ms: {type: 'integer'}},
  },
  annotations: {readOnlyHint: true},
}
const wait = (ms) => new Promise((go) => setTimeout(go, ms ?? 0))
async function call({arguments: given, inputResponses}) {
  const answer = inputResponses?.form
  await wait(answer ? given.after_ms : given.before_ms)
  const params = {mode: 'form', message: given.message, requestedSchema: given.schema}
  return answer
    ? {resultType: 'complete', content: [{type: 'text', text: JSON.stringify(answer)}], structuredContent: answer}
    : {resultType: 'input_required', inputRequests: {form: {method: 'elicitation/create', params}}}
}
const methods = {
  'server/discover': () => ({resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {tools: {}}, ttlMs: 3600000, cacheScope: 'public'}),
  'tools/list': () => ({resultType: 'complete', tools: [ask], ttlMs: 3600000, cacheScope: 'public'}),
  'tools/call': call,
}
createInterface({input: process.stdin}).on('line', async (line) => {
  const {id, method, params} = JSON.parse(line)
  if (id === undefined) return
  const result = methods[method] && {...(await methods[method](params)), _meta: info}
  const answer = result ? {result} : {error: {code: -32601, message: 'no such method'}}
  process.stdout.write(JSON.stringify({jsonrpc: '2.0', id, ...answer}) + '\n')
})
