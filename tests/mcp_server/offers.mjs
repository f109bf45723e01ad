// Pipelines that are prompts and resources: their lists, their addresses, what their runs give, and what they ask a
// person. Every key of `mcp` changes what a client sees.
import {spawn} from 'node:child_process'
import {copyFileSync, mkdirSync} from 'node:fs'
import {dirname, join} from 'node:path'
import {fileURLToPath} from 'node:url'
import {check, command, env, equal, file, finish, reeve, root, scratch} from '../serve/kit.mjs'

const say = (name, keys, text) => file(`p/${name}.yaml`, `name: ${name}\n${keys}\nagents: [{name: say, set: {text: ${JSON.stringify(text)}}}]
response: {output_key: say, field: text}\n`)
say('plain', 'inputs: []', "'a tool'")
say('hidden', 'inputs: []\nmcp: {offer: none}', "'unseen'")
say('today', 'inputs: []\nmcp: {offer: resource, uri: "notes://today"}', "'of today'")
say('note', 'inputs: [day, part]\nmcp: {offer: resource, uri: "notes://{day}/{part}.md", mime_type: text/markdown}', "inputs.day + ':' + inputs.part")
say('slow', 'inputs: []\nmcp: {tasks: required}', "'done'")
say('greet', 'inputs: [name]\nmcp: {offer: prompt}', "'Greet ' + inputs.name")
say('failing', 'inputs: []\nmcp: {offer: resource, uri: "notes://failing"}', '[envelope.raw_input][7]')
file('p/talk.yaml', `name: talk
description: Has two sides.
inputs: []
mcp: {offer: prompt}
agents:
  - name: say
    set: {messages: "[{'role': 'user', 'content': 'hello'}, {'role': 'assistant', 'content': {'type': 'text', 'text': 'yes?'}}]"}
`)
file('p/asks.yaml', `name: asks
inputs: []
mcp: {offer: prompt}
agents: [{name: subject, set: {text: "'asked'"}, ask: {question: "About what?", options: text}}]
response: {output_key: subject, field: text}
`)

// its server is found from the folder of the pipeline, and its word in a file there
mkdirSync(join(scratch, 'p/words'), {recursive: true})
copyFileSync(join(dirname(fileURLToPath(import.meta.url)), 'forms.mjs'), join(scratch, 'forms.mjs'))
file('p/words/word', 'ready')
file('p/form.yaml', `name: form
inputs: [what]
mcp_servers:
  forms: {command: [node, ../forms.mjs], elicitation: true, trusted: true, env: {WORD: "\${file:words/word}"}}
agents:
  - name: plan
    output_key: steps
    default_next: fill
    set: {steps: [{tool: "'forms.ask'", parameters: {message: "inputs.what", schema: {type: "'object'", properties: "{'size': {'type': 'integer'}}"}}}]}
  - {name: fill, has_tools: true, tool_access: all, allowed_tools: [forms.ask], plan_from: steps, default_next: say}
  - {name: say, set: {text: "string(outputs.fill.results[0].data.content.size)"}}
response: {output_key: say, field: text}
`)

const child = spawn(reeve, ['mcp', 'serve', '--store', join(scratch, 'offers.db'), '--pipelines', join(scratch, 'p')], {env, cwd: root})
const waits = new Map()
let rest = '', log = '', id = 0
child.stderr.on('data', (bytes) => (log += bytes))
child.stdout.on('data', (bytes) => {
  rest += bytes
  for (let end; (end = rest.indexOf('\n')) >= 0; rest = rest.slice(end + 1)) {
    const m = JSON.parse(rest.slice(0, end))
    waits.get(m.id)?.(m)
  }
})
const ended = new Promise((resolve) => child.on('exit', resolve))
const request = (method, params = {}, capabilities = {}) => new Promise((resolve) => {
  waits.set(++id, resolve)
  const _meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': capabilities}
  child.stdin.write(JSON.stringify({jsonrpc: '2.0', id, method, params: {...params, _meta}}) + '\n')
})
const read = async (uri) => {
  const {result, error} = await request('resources/read', {uri})
  return error ? error.code : result.contents
}

// --- lists ---
const names = (list) => list.map((one) => one.name)
equal(names((await request('tools/list')).result.tools), ['answer_run', 'form', 'plain', 'query', 'slow'], 'tools')
const {tools} = (await request('tools/list')).result
equal(tools.find((t) => t.name === 'slow').execution.taskSupport, 'required', 'a tool says that it needs tasks')
equal((await request('prompts/list')).result.prompts.map((p) => [p.name, p.arguments]),
  [['asks', []], ['greet', [{name: 'name', required: true}]], ['talk', []]], 'prompts')
equal((await request('resources/list')).result.resources.map((r) => [r.uri, r.name, r.mimeType]).slice(0, 2),
  [['notes://failing', 'failing', 'text/plain'], ['notes://today', 'today', 'text/plain']], 'resources')
const {resourceTemplates} = (await request('resources/templates/list')).result
equal(resourceTemplates.map((r) => r.uriTemplate).at(-1), 'notes://{day}/{part}.md', 'a template')

// --- addresses ---
equal(await read('notes://today'), [{uri: 'notes://today', mimeType: 'text/plain', text: 'of today'}], 'an address')
for (const [uri, text] of [
  ['notes://mon/a.md', 'mon:a'],
  ['notes://mon/a.b.md', 'mon:a.b'],
  ['notes://m%C3%B6n/%7B.md', 'mön:{'],
]) equal(await read(uri), [{uri, mimeType: 'text/markdown', text}], uri)
for (const uri of ['notes://', 'notes://today/', 'notes://mon/.md', 'notes:///a.md', 'notes://mon/a.mdx', 'notes://mon/a/b.md',
  'notes://mon/a%2Fb.md', 'notes://mon/a%00.md', 'other://today', 'x'])
  equal(await read(uri), -32602, `no resource has the address ${uri}`)
equal(await read('notes://failing'), -32603, 'a run that fails makes no document')

// --- prompts ---
const get = (name, more, capabilities) => request('prompts/get', {name, ...more}, capabilities)
const text = (m) => m.result?.messages.map((one) => [one.role, one.content.text])
equal(text(await get('greet', {arguments: {name: 'Ada'}})), [['user', 'Greet Ada']], 'a text is one message')
equal((await get('greet')).error?.code, -32602, 'an argument that is missing')
const talk = await get('talk')
equal([text(talk), talk.result.description], [[['user', 'hello'], ['assistant', 'yes?']], 'Has two sides.'], 'messages')
equal((await get('plain')).error?.code, -32602, 'a tool is not a prompt')
equal((await get('hidden')).error?.code, -32602, 'nor what is hidden')

// --- a prompt that asks ---
const can = {elicitation: {form: {}}}
const first = await get('asks', {}, can)
equal([first.result.resultType, Object.keys(first.result.inputRequests)], ['input_required', ['subject']], 'a question has the name of its stage')
const {requestState} = first.result
const answer = {inputResponses: {subject: {action: 'accept', content: {text: 'ships'}}}, requestState}
const second = await get('asks', answer, can)
check(second.result?.resultType === 'complete' && second.result.messages.length === 1, 'the answer goes on', second)
equal((await get('asks', {...answer, requestState: requestState.replace(/.$/, (c) => (c === '0' ? '1' : '0'))}, can)).error?.code, -32602,
  'a state that was changed')
equal((await get('asks', {})).error?.code, -32602, 'a client that cannot ask')
const status = () => JSON.parse(command('runs', 'list', '--json', '--store', join(scratch, 'offers.db')).out).find((r) => r.pipeline === 'asks').status
check(['cancelled', 'interrupted'].includes(status()), 'its run is asked to end', status())

// --- tools ---
const call = (name, capabilities) => request('tools/call', {name, arguments: {}}, capabilities)
equal((await call('today')).error?.code, -32602, 'a resource is not a tool')
const refused = (await call('slow')).error
equal([refused?.code, refused?.data.requiredCapabilities], [-32021, {extensions: {'io.modelcontextprotocol/tasks': {}}}], 'a tool that needs tasks')
check((await call('slow', {extensions: {'io.modelcontextprotocol/tasks': {}}})).result, 'and a client that takes them')

// --- a tool with inputs and a server of its own ---
const fill = (more) => request('tools/call', {name: 'form', arguments: {what: 'Which?'}, ...more}, can)
const asked = (await fill({})).result
const params = asked.inputRequests?.answer?.params
check(params?.message.endsWith(': Which?') && params.requestedSchema.properties.size, 'its form is that of the server', asked)
const filled = await fill({requestState: asked.requestState, inputResponses: {answer: {action: 'accept', content: {size: 7}}}})
equal(filled.result?.content[0].text, '7', 'and so is the answer')

// --- every key was tried ---
const schema = JSON.parse(command('schema', 'pipeline').out)
const keys = Object.keys(schema.$defs.pipeline.allOf[0].properties.mcp.properties)
equal(keys.sort(), ['mime_type', 'offer', 'tasks', 'uri'], 'the keys of mcp are those that were tried here')

child.stdin.end()
equal(await ended, 0, `the server ends ${log}`)
finish('offers')
