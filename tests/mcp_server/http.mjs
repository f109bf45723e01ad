// /mcp of `reeve serve`: the reference client over HTTP; sessions, identity, headers, both eras.
import {check, command, env, equal, file, finish, load, scratch, serve, store} from '../serve/kit.mjs'
import {until} from '../kit/until.mjs'
import {request} from 'node:http'
import {join} from 'node:path'

const {Client} = load('@modelcontextprotocol/sdk/client/index.js')
const {StreamableHTTPClientTransport} = load('@modelcontextprotocol/sdk/client/streamableHttp.js')
const {ElicitRequestSchema} = load('@modelcontextprotocol/sdk/types.js')

file('p/hello.yaml', `name: hello
inputs: [who]
agents:
  - {name: think, set: {who: inputs.who}, default_next: say}
  - {name: say, set: {text: "'hello ' + outputs.think.who"}}
response: {output_key: say, field: text}
`)
file('p/ask.yaml', `name: ask
inputs: []
agents: [{name: plan, set: {version: "'1.2'"}, ask: {question: "Release?", options: [yes, no]}}]
`)
file('p/slow.yaml', `name: slow
inputs: []
models: {default: "scripted:any"}
agents: [{name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text}]
prompts: {wait: Wait.}
`)
file('s/slow.yaml', 'models: {wait: [{text: "done", delay_ms: 60000}]}\n')
file('p/later.yaml', `name: later
inputs: []
models: {default: "scripted:any"}
agents:
  - {name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text, default_next: plan}
  - {name: plan, set: {version: "'1.2'"}, ask: {question: "Release?", options: [yes, no]}}
prompts: {wait: Wait.}
`)
file('s/later.yaml', 'models: {wait: [{text: "done", delay_ms: 3000}]}\n') // a call that takes 1.5 s becomes a task
file('p/soon.yaml', `name: soon
inputs: []
models: {default: "scripted:any"}
agents:
  - {name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text, default_next: plan}
  - {name: plan, set: {version: "'1.2'"}, ask: {question: "Release?", options: [yes, no]}}
prompts: {wait: Wait.}
`)
file('s/soon.yaml', 'models: {wait: [{text: "done", delay_ms: 300}]}\n')
file('p/pair.yaml', `name: pair
inputs: []
models: {default: "scripted:any"}
agents:
  - {name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text, default_next: [one, two]}
  - {name: one, set: {version: "'1'"}, ask: {question: "Release 1?", options: [yes, no]}, default_next: work}
  - {name: two, set: {version: "'2'"}, ask: {question: "Release 2?", options: [yes, no]}, default_next: meet}
  - {name: work, has_llm: true, model_role: default, prompt_key: wait, output_mode: text, default_next: meet}
  - {name: meet, join: all, set: {met: "true"}}
prompts: {wait: Wait.}
`)
file('s/pair.yaml', 'models: {wait: [{text: "done", delay_ms: 3000}], work: [{text: "done", delay_ms: 1500}]}\n')
file('p/breaks.yaml', `name: breaks
inputs: []
models: {default: "scripted:any"}
agents:
  - {name: pick, set: {list: "[1]"}, default_next: wait}
  - {name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text, default_next: end_it}
  - {name: end_it, set: {text: "outputs.pick.list[7]"}}
prompts: {wait: Wait.}
`)
file('s/breaks.yaml', 'models: {wait: [{text: "done", delay_ms: 3000}]}\n')
file('p/long.yaml', `name: long
inputs: []
models: {default: "scripted:any"}
agents: [{name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text}]
response: {output_key: wait}
prompts: {wait: Wait.}
`)
file('s/long.yaml', 'models: {wait: [{text: "done", delay_ms: 2500}]}\n')
const path = store('mcp.db')
const key = (...args) => JSON.parse(command('keys', 'create', '--json', '--store', path, ...args).out).key
const all = key('--level', 'master')
const reader = key('--user', 'ada', '--scopes', 'data:read')
const other = key('--user', 'bob')
const server = await serve('mcp.db', ['--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's')])
const url = `${server.url}/mcp`

async function connect(token, capabilities = {}) {
  const client = new Client({name: 'test', version: '1'}, {capabilities})
  const transport = new StreamableHTTPClientTransport(new URL(url), {requestInit: {headers: {authorization: `Bearer ${token}`}}})
  await client.connect(transport)
  return {client, transport}
}
const {client, transport} = await connect(all, {elicitation: {}})
equal((await client.listTools()).tools.map((t) => t.name), ['answer_run', 'ask', 'breaks', 'hello', 'later', 'long', 'pair', 'query', 'slow', 'soon'], 'tools')
equal((await client.callTool({name: 'hello', arguments: {who: 'Ada'}})).content[0].text, 'hello Ada', 'a call')
client.setRequestHandler(ElicitRequestSchema, () => ({action: 'accept', content: {choice: 'no'}}))
equal((await client.callTool({name: 'ask', arguments: {}})).structuredContent.artifact.answer.choice, 'no', 'a question in the stream, its answer in a request')
const many = await Promise.all(['a', 'b', 'c', 'd'].map((who) => client.callTool({name: 'hello', arguments: {who}})))
equal(many.map((r) => r.content[0].text), ['hello a', 'hello b', 'hello c', 'hello d'], 'several calls at once')

// --- by hand ---
const base = {'content-type': 'application/json', accept: 'application/json, text/event-stream'}
async function post(message, headers = {}, method = 'POST') {
  const r = await fetch(url, {method, headers: {...base, authorization: `Bearer ${all}`, ...headers}, body: method === 'POST' ? (typeof message === 'string' ? message : JSON.stringify(message)) : undefined})
  const text = await r.text()
  const data = text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)))
  let json
  try { json = JSON.parse(text) } catch {}
  return {status: r.status, headers: r.headers, json, data}
}
const ping = {jsonrpc: '2.0', id: 1, method: 'ping'}
const hello = (protocolVersion) => ({jsonrpc: '2.0', id: 'i', method: 'initialize', params: {protocolVersion, capabilities: {}, clientInfo: {name: 'x', version: '1'}}})
const id = transport.sessionId
equal((await post(ping, {'mcp-session-id': id})).json, {jsonrpc: '2.0', id: 1, result: {}}, 'a session by its id')
equal((await post({jsonrpc: '2.0', method: 'notifications/initialized'}, {'mcp-session-id': id})).status, 202, 'a notification')
equal((await post(ping)).status, 400, 'no session')
equal((await post(ping, {'mcp-session-id': 'f'.repeat(32)})).status, 404, 'an unknown session')
equal((await post(ping, {'mcp-session-id': id, authorization: `Bearer ${other}`})).status, 404, 'the session of another caller')
equal((await post(ping, {'mcp-session-id': id, authorization: 'Bearer nonsense'})).status, 401, 'a wrong key')
equal((await post(ping, {'mcp-session-id': id, 'mcp-protocol-version': '1999-01-01'})).status, 400, 'an unknown revision')
for (const [text, code] of [['{', -32700], ['[]', -32600], ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600]]) {
  const r = await post(text, {'mcp-session-id': id})
  equal([r.status, r.json.error.code], [400, code], `not a message: ${text}`)
}
equal((await post(ping, {'mcp-session-id': id, 'content-type': 'text/plain'})).status, 400, 'another content type')
equal((await post(ping, {'mcp-session-id': id, accept: 'text/html'})).status, 400, 'a client that takes neither form')
equal((await post(null, {}, 'GET')).status, 405, 'there is no stream of the server')
// The server refuses by the length and closes the connection: a client that goes on writing may see that end first.
const tooLarge = new Promise((resolve, reject) => {
  const r = request(url, {method: 'POST', headers: {...base, authorization: `Bearer ${all}`, 'mcp-session-id': id, 'content-length': 17 << 20}})
  r.on('response', (answer) => (resolve(answer.statusCode), r.destroy()))
  r.on('error', reject)
  r.flushHeaders()
})
equal(await tooLarge, 413, 'too large')
const old = await post(hello('2024-11-05'))
equal([old.status, old.json.result.protocolVersion], [200, '2025-11-25'], 'the revision without this transport is not agreed on')
equal((await post(null, {'mcp-session-id': old.headers.get('mcp-session-id')}, 'DELETE')).status, 200, 'a session ends')
equal((await post(ping, {'mcp-session-id': old.headers.get('mcp-session-id')})).status, 404, 'and is gone')

// --- how many sessions: of one user the quietest goes, and others keep theirs ---
const begin = async (token) => (await post(hello('2025-11-25'), {authorization: `Bearer ${token}`})).headers.get('mcp-session-id')
const alive = async (token, session) => (await post(ping, {'mcp-session-id': session, authorization: `Bearer ${token}`})).status
const first = await begin(other)
for (let n = 0; n < 20; n++) await Promise.all(Array.from({length: 10}, () => begin(other)))
equal([await alive(other, first), await alive(other, await begin(other)), await alive(all, id)], [404, 200, 200], '202 sessions of one user')

// --- 2026-07-28 ---
const meta = (capabilities = {}) => ({'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': capabilities})
const modern = (method, params, headers = {}, more) => post(
  {jsonrpc: '2.0', id: 7, method, params: {...params, _meta: meta(more)}},
  {'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(params.name ? {'mcp-name': params.name} : {}), ...headers})
equal((await modern('tools/list', {})).json.result.resultType, 'complete', 'a request that stands for itself')
equal((await modern('tools/list', {}, {'mcp-method': 'tools/call'})).json.error.code, -32020, 'a header that differs')
equal((await modern('prompts/get', {name: 'é'}, {'mcp-name': '=?base64?w6k=?='})).json.error.code, -32602, 'a name in base64')
equal((await modern('ping', {})).status, 404, 'a method that was removed')
const listen = await modern('subscriptions/listen', {notifications: {toolsListChanged: true}})
equal([listen.status, listen.json.error.code], [404, -32601], 'no stream of changes, which would stay empty')
const declared = (await modern('server/discover', {})).json.result.capabilities
check(!/listChanged|subscribe/.test(JSON.stringify(declared)), 'and none is declared', declared)
const waits = (await modern('tools/call', {name: 'ask', arguments: {}}, {}, {elicitation: {}})).data.at(-1).result
equal([waits.resultType, Object.keys(waits.inputRequests)], ['input_required', ['plan']], 'a question has the name of its stage')
const again = {name: 'ask', arguments: {}, requestState: waits.requestState, inputResponses: {plan: {action: 'accept', content: {choice: 'yes'}}}}
equal((await modern('tools/call', {...again, requestState: waits.requestState.slice(0, -1) + 'x'})).json.error.code, -32602, 'a changed state is refused')
equal((await modern('tools/call', again)).data.at(-1).result.structuredContent.artifact.answer.choice, 'yes', 'its answer')
const leave = new AbortController()
const left = fetch(url, {method: 'POST', signal: leave.signal, headers: {...base, authorization: `Bearer ${all}`, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'slow'},
  body: JSON.stringify({jsonrpc: '2.0', id: 8, method: 'tools/call', params: {name: 'slow', arguments: {}, _meta: meta()}})})
await left
leave.abort()
const slow = async () => (await (await fetch(`${server.url}/runs?pipeline=slow`, {headers: {authorization: `Bearer ${all}`}})).json()).map((r) => r.status)
await until(async () => (await slow())[0] === 'cancelled', scratch)
check(true, 'a client that leaves cancels the run')

// --- tasks: a call that takes long is asked for later, by its own user alone ---
const extension = {extensions: {'io.modelcontextprotocol/tasks': {}}}
const as = (token) => ({authorization: `Bearer ${token}`})
const bob = as(other)
const stranger = key('--user', 'cy')
const cy = as(stranger)
const last = ({data, json}) => (data.at(-1) ?? json)
const start = async (name, more = extension) => last(await modern('tools/call', {name, arguments: {}}, bob, more)).result
const task = async (method, taskId, more = {}, who = bob, declared = extension) =>
  last(await modern(`tasks/${method}`, {taskId, ...more}, {'mcp-name': `=?base64?${Buffer.from(taskId).toString('base64')}?=`, ...who}, declared))
const settled = (taskId, ...wanted) => until(async () => {
  const {result} = await task('get', taskId, {}, bob, {...extension, elicitation: {}})
  return wanted.includes(result.status) && result
}, scratch)
const begun = await start('slow')
equal([begun.resultType, begun.status, begun.ttlMs, 'result' in begun], ['task', 'working', null, false], 'a long call becomes a task')
equal((await task('get', begun.taskId)).result.status, 'working', 'its user sees it')
for (const method of ['get', 'cancel', 'update']) {
  equal((await task(method, begun.taskId, {inputResponses: {}}, cy)).error.code, -32602, `another user does not: ${method}`)
  equal((await task(method, begun.taskId, {inputResponses: {}}, as(reader))).error.code, 'insufficient_scope', `nor a key that starts no runs: ${method}`)
  equal((await task(method, begun.taskId, {inputResponses: {}}, bob, {})).error.code, -32021, `nor a client that does not declare tasks: ${method}`)
}
for (const odd of [begun.taskId.slice(0, -1) + 'x', begun.taskId.replace(':pslow', ':phello'), begun.taskId.split(':')[0], 'é', '', ':'.repeat(500)])
  equal((await task('get', odd)).error.code, -32602, `not an id: ${odd.slice(0, 40)}`)
equal(last(await modern('tasks/get', {taskId: begun.taskId}, {...bob, 'mcp-name': 'x'}, extension)).error.code, -32020, 'and is checked')
const ended = (await task('cancel', begun.taskId)).result
equal([ended.resultType, 'status' in ended], ['complete', false], 'it is cancelled')
equal((await settled(begun.taskId, 'cancelled', 'completed')).status, 'cancelled', 'and says so')
equal((await task('cancel', begun.taskId)).result.resultType, 'complete', 'twice is once')

const forms = {...extension, elicitation: {}}
const [later, pair, breaks] = await Promise.all([start('later', forms), start('pair', forms), start('breaks')])
const open = await settled(later.taskId, 'input_required')
const [question] = Object.keys(open.inputRequests)
equal([open.inputRequests[question].method, 'requestState' in open], ['elicitation/create', false], 'a task asks')
equal('inputRequests' in (await task('get', later.taskId)).result, false, 'but not a client that shows no forms')
check((await task('update', later.taskId, {inputResponses: {[question]: {action: 'accept', content: {choice: 'maybe'}}}})).error.code === -32602, 'an answer that does not fit is refused')
equal((await task('update', later.taskId, {inputResponses: {unknown: {action: 'accept'}}})).result.resultType, 'complete', 'one to nothing is passed over')
equal((await task('get', later.taskId)).result.status, 'input_required', 'and the question stays')
equal((await task('update', later.taskId, {inputResponses: {[question]: {action: 'accept', content: {choice: 'yes'}}}})).result.resultType, 'complete', 'an answer is taken')
equal((await settled(later.taskId, 'completed')).result.structuredContent.artifact.plan.answer.choice, 'yes', 'and the task ends with the result of its call')

// Two questions at once, answered one after the other: the second one while the run goes on with the answer to the first.
const both = (await settled(pair.taskId, 'input_required')).inputRequests
const ids = ['1', '2'].map((n) => Object.keys(both).find((id) => both[id].params.message.includes(n)))
const reply = (id, choice) => task('update', pair.taskId, {inputResponses: {[id]: {action: 'accept', content: {choice}}}})
equal((await reply(ids[0], 'yes')).result.resultType, 'complete', 'one of two questions is answered')
const pairs = async () => (await (await fetch(`${server.url}/runs?pipeline=pair`, {headers: bob})).json()).map((r) => r.status)
// On a slow machine it may be over before it is seen; then it waits again, and the answer is as good.
const late = Date.now() + 6000
await until(async () => (await pairs())[0] === 'running' || Date.now() > late, scratch)
const rest = (await task('get', pair.taskId, {}, bob, forms)).result
equal([rest.status, Object.keys(rest.inputRequests ?? {})], ['input_required', [ids[1]]], 'the other one is left')
equal((await reply(ids[1], 'no')).result.resultType, 'complete', 'and is answered, though the run is under way')
equal('inputRequests' in (await task('get', pair.taskId, {}, bob, forms)).result, false, 'then none is left')
const {artifact} = (await settled(pair.taskId, 'completed')).result.structuredContent
equal([artifact.one?.answer.choice, artifact.two?.answer.choice], ['yes', 'no'], 'both answers count')
const broken = await settled(breaks.taskId, 'failed')
equal([broken.error.code, 'result' in broken], [-32603, false], 'a failure that nothing caught is one of the task')
equal((await start('hello')).isError, true, 'a call that is over at once has its result')

// reeve as a client of this server: for its pipeline the task is one call.
file('caller.yaml', `name: caller
mcp_servers:
  far: {url: "${url}", trusted: true, headers: {authorization: "Bearer ${other}"}}
agents:
  - {name: plan, set: {steps: "[{'tool': 'far.long', 'parameters': {}}]"}, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [far.long], default_next: end}
`)
const called = command('run', join(scratch, 'caller.yaml'), '--input', 'x', '--state', '--no-store')
const step = JSON.parse(called.out).outputs.work.results[0]
equal([step.status, JSON.stringify(step.data).includes('done')], ['success', true], 'a call of reeve that becomes a task')

// The same in 2025-11-25: the client asks for a task, and for its result.
const {CallToolResultSchema} = load('@modelcontextprotocol/sdk/types.js')
const {z} = load('zod')
const any = z.looseObject({})
const {client: older} = await connect(other, {elicitation: {}})
older.setRequestHandler(ElicitRequestSchema, () => ({action: 'accept', content: {choice: 'no'}}))
const made = (await older.request({method: 'tools/call', params: {name: 'soon', arguments: {}, task: {ttl: 60000}}}, any)).task
equal([made.status, made.ttl, typeof made.pollInterval], ['working', null, 'number'], 'a task is made at once')
const given = await older.request({method: 'tasks/result', params: {taskId: made.taskId}}, CallToolResultSchema)
equal([given.structuredContent.artifact.plan.answer.choice, given._meta['io.modelcontextprotocol/related-task'].taskId], ['no', made.taskId], 'its result waits for the end, and asks meanwhile')
equal((await older.request({method: 'tasks/get', params: {taskId: made.taskId}}, any)).status, 'completed', 'then it is over')
const code = (wanted) => wanted.then(() => 0, (e) => e.code)
equal(await code(older.request({method: 'tasks/cancel', params: {taskId: made.taskId}}, any)), -32602, 'and cannot be cancelled')
equal(await code(older.request({method: 'tools/call', params: {name: 'hello', arguments: {}, task: {}}}, any)), -32602, 'a call that cannot begin makes no task')
const stopped = (await older.request({method: 'tools/call', params: {name: 'slow', arguments: {}, task: {}}}, any)).task
equal((await older.request({method: 'tasks/cancel', params: {taskId: stopped.taskId}}, any)).status, 'cancelled', 'a task is cancelled')
equal((await older.request({method: 'tasks/get', params: {taskId: stopped.taskId}}, any)).status, 'cancelled', 'and stays so')
const listed = async (from, params = {}) => (await from.request({method: 'tasks/list', params}, any)).tasks.map((t) => [t.taskId, t.status, 'error' in t || 'result' in t])
equal(await listed(older), [[stopped.taskId, 'cancelled', false], [made.taskId, 'completed', false]], 'tasks are listed, newest first, without runs that are none')
equal(await listed(older, {cursor: '1'}), [[made.taskId, 'completed', false]], 'from a cursor on')
equal(await code(older.request({method: 'tasks/list', params: {cursor: 'x'}}, any)), -32602, 'which is one of this list')
for (const token of [reader, stranger]) {
  const {client: another} = await connect(token)
  equal(await listed(another), [], 'another user, or a key that may not use them, has none of them')
  await another.close()
}
await older.close()

// --- scopes ---
const ada = (await connect(reader)).client
equal((await ada.listTools()).tools.map((t) => t.name), ['query'], 'a key sees what it may call')
const denied = await modern('tools/call', {name: 'hello', arguments: {who: 'x'}}, {authorization: `Bearer ${reader}`})
equal(denied.status, 403, 'and is told when its scope is too small')
check((denied.headers.get('www-authenticate') ?? '').includes('insufficient_scope'), 'in the words of other paths')

await client.close()
equal(await server.stop(), 0, 'the server ends')
finish('http')
