// `reeve mcp serve` on a pipe: the reference client, and clients that break every rule.
import {spawn} from 'node:child_process'
import {join} from 'node:path'
import {check, command, env, equal, file, finish, load, reeve, root, scratch} from '../serve/kit.mjs'
import {until} from '../kit/until.mjs'

const {Client} = load('@modelcontextprotocol/sdk/client/index.js')
const {StdioClientTransport} = load('@modelcontextprotocol/sdk/client/stdio.js')
const {ElicitRequestSchema} = load('@modelcontextprotocol/sdk/types.js')

file('p/hello.yaml', `name: hello
description: Greets.
agents:
  - {name: think, set: {who: envelope.raw_input}, default_next: say}
  - {name: say, set: {text: "'hello ' + outputs.think.who"}}
response: {output_key: say, field: text}
`)
file('p/sum.yaml', `name: sum
inputs: [a, b]
agents: [{name: add, set: {sum: inputs.a + inputs.b}}]
`)
file('p/release.yaml', `name: release
inputs: []
agents:
  - {name: plan, set: {version: "'1.2'"}, ask: {question: "Release {{outputs.plan.version}}?", options: [yes, no]}}
`)
file('p/slow.yaml', `name: slow
inputs: []
models: {default: "scripted:any"}
agents: [{name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text}]
prompts: {wait: Wait.}
`)
file('s/slow.yaml', 'models: {wait: [{text: "done", delay_ms: 60000}]}\n')
file('p/broken.yaml', 'name: broken\nagents: [{name: a, nonsense: 1}]\n')
const offered = ['--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's')]
let n = 0
const store = () => join(scratch, `stdio${n++}.db`)

// --- the reference client ---
async function connect(args, capabilities = {}) {
  const client = new Client({name: 'test', version: '1'}, {capabilities})
  await client.connect(new StdioClientTransport({command: reeve, args: ['mcp', 'serve', ...args], env, cwd: root, stderr: 'ignore'}))
  return client
}

let path = store()
const client = await connect(['--store', path, ...offered, '--tool', 'files:read_file'], {elicitation: {}})
const {tools} = await client.listTools()
equal(tools.map((t) => t.name), ['answer_run', 'hello', 'query', 'read_file', 'release', 'slow', 'sum'], 'tools are listed by name, without broken ones')
// Proves mcp.M9: All four annotations are set explicitly on every tool
for (const t of tools)
  equal(Object.values(t.annotations ?? {}).map((v) => typeof v), Array(4).fill('boolean'), `${t.name} has four hints`)
check(tools.find((t) => t.name === 'query').annotations.readOnlyHint, 'query reads only')
equal(tools.find((t) => t.name === 'sum').inputSchema.required, ['a', 'b'], 'declared inputs are required')
let r = await client.callTool({name: 'hello', arguments: {input: 'world'}})
equal(r.content, [{type: 'text', text: 'hello world'}], 'the final response is the text')
equal(r.structuredContent.artifact, {'x-artifact-type': 'text', content: 'hello world'}, 'and the artifact of the wrapper')
check(r.structuredContent.artifact_id && r.structuredContent._metadata.tool_name === 'hello', 'which has an id and says what made it')
r = await client.callTool({name: 'sum', arguments: {a: 2, b: 3}})
equal(r.structuredContent.artifact, {sum: 5}, 'outputs are data, and declared inputs are inputs')
const misspelt = command('mcp', 'serve', '--store', store(), '--tool', 'files:raed_file')
check(misspelt.status !== 0 && misspelt.err.includes('did you mean "read_file"?'), 'a tool that its capability does not have is refused at the start', misspelt)
// Proves mcp.M5: Arguments that break the schema are a result with isError that names the field
r = await client.callTool({name: 'sum', arguments: {a: 2}})
check(r.isError && r.content[0].text.includes('"b"'), 'a missing argument is told to the model', r)
// Proves mcp.M6: A failing tool is a result with isError, an unknown tool an error of the protocol
r = await client.callTool({name: 'read_file', arguments: {path: '/no/such/file'}})
check(r.isError && r.content[0].text.length > 0, 'a failing tool says why', r)
for (const [name, told] of [['helo', /unknown tool "helo": did you mean "hello"\? \(see tools\/list\)/], ['nothing', /unknown tool "nothing": no similar name is offered \(see tools\/list\)/]]) {
  r = await client.callTool({name, arguments: {}}).catch((e) => e)
  check(r.code === -32602 && told.test(r.message), 'an unknown tool names the nearest one, and where all are named', r)
}
r = await client.callTool({name: 'query', arguments: {query: 'SELECT 1 AS one FROM sessions LIMIT 1'}})
check(Array.isArray(r.structuredContent.artifact.results), 'a query answers', r)
let asked = []
client.setRequestHandler(ElicitRequestSchema, (q) => (asked.push(q.params), {action: 'accept', content: {choice: 'yes'}}))
r = await client.callTool({name: 'release', arguments: {}})
equal([asked[0].message, asked[0].requestedSchema.properties.choice.enum], ['Release 1.2?', ['yes', 'no']], 'a question is a form')
equal(r.structuredContent.artifact.answer.choice, 'yes', 'whose answer the run gets')
client.setRequestHandler(ElicitRequestSchema, () => ({action: 'decline'}))
r = await client.callTool({name: 'release', arguments: {}})
check(r.isError, 'a question that is declined ends the call', r)
const end = new AbortController()
const slow = client.callTool({name: 'slow', arguments: {}}, undefined, {signal: end.signal}).catch((e) => e)
const runs = () => command('runs', 'list', '--json', '--store', path).out.includes('"running"')
await until(runs, scratch)
end.abort('enough')
await slow
await until(() => !runs(), scratch)
check(command('runs', 'list', '--json', '--store', path).out.includes('cancelled'), 'a cancelled call cancels its run')
r = await client.readResource({uri: 'reeve://sessions/none'}).catch((e) => e)
equal(r.code, -32002, 'a resource that does not exist')
const sessions = (await client.listResources()).resources
check(sessions.length === 0 || JSON.parse((await client.readResource({uri: sessions[0].uri})).contents[0].text).session, 'a session can be read')
await client.close()

// --- without a form ---
const plain = await connect(['--store', store(), ...offered])
r = await plain.callTool({name: 'release', arguments: {}})
equal(r.structuredContent.artifact.status, 'interrupted', 'without elicitation the result says that the run waits')
check(!r.isError && r.content[0].text.includes('answer_run'), 'and how it is answered', r)
r = await plain.callTool({name: 'answer_run', arguments: {run: r.structuredContent.artifact.run, choice: 'no'}})
equal(r.structuredContent.artifact.answer.choice, 'no', 'the answer continues the run')
await plain.close()

// --- more tasks than a page has ---
const idle = await connect(['--store', store(), ...offered, '--no-worker'])
const any = load('zod').z.looseObject({})
for (let i = 0; i < 101; i++) await idle.request({method: 'tools/call', params: {name: 'release', arguments: {}, task: {}}}, any)
const page = async (params) => await idle.request({method: 'tasks/list', params}, any)
const ids = ({tasks}) => tasks.map((t) => t.taskId)
const newest = await page({}), rest = await page({cursor: newest.nextCursor})
equal([newest.tasks.length, rest.tasks.length, rest.nextCursor], [100, 1, undefined], 'tasks are listed in pages')
equal(new Set([...ids(newest), ...ids(rest)]).size, 101, 'each once')
await idle.close()

// --- a client that breaks rules ---
function raw(args = []) {
  const child = spawn(reeve, ['mcp', '--store', store(), ...offered, ...args], {cwd: root, env})
  let out = ''
  child.stdout.on('data', (part) => (out += part))
  child.stderr.resume()
  child.stdin.on('error', () => {})
  const status = new Promise((done) => child.on('close', (code, signal) => done(signal ?? code)))
  return {
    child, status,
    say: (m) => child.stdin.write(typeof m === 'string' ? m : JSON.stringify(m) + '\n'),
    end: () => (child.stdin.end(), status),
    lines: () => out.split('\n').slice(0, -1).map((line) => JSON.parse(line)),
    until: (n) => until(() => out.split('\n').length > n, child.stdout),
  }
}
const hello = {jsonrpc: '2.0', id: 'i', method: 'initialize', params: {protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {name: 'x', version: '1'}}}
const call = (id, name, args = {}) => ({jsonrpc: '2.0', id, method: 'tools/call', params: {name, arguments: args}})

let c = raw()
c.say('\r\n   \n{"jsonrpc": "2.0", "id": 1, "meth')
c.say('od": "ping"}\r\n')
c.say({jsonrpc: '2.0', id: 2, method: 'tools/list'})
c.say({jsonrpc: '2.0', method: 'no/such'})
c.say({jsonrpc: '2.0', id: 5, result: {}})
c.say('nonsense\n[1]\n{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n{"jsonrpc":"2.0","id":null,"method":"ping"}\n')
c.say('{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}\n')
equal(await c.end(), 0, 'the end of the input ends the process')
equal(c.lines().map((m) => [m.id, m.error?.code ?? 'ok']),
  [[1, 'ok'], [2, -32600], [null, -32700], [null, -32600], [null, -32600], [null, -32600], [3, -32600]],
  'each request has one answer, nothing else has any')

c = raw()
c.say(hello)
c.say('{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + 'y'.repeat(17 << 20) + '"}}\n')
c.say({jsonrpc: '2.0', id: 10, method: 'ping'})
c.say('{"jsonrpc":"2.0","id":11,"method":"ping","params":' + '{"a":'.repeat(500) + '1' + '}'.repeat(500) + '}\n')
equal(await c.end(), 0, 'a message of 17 MiB ends nothing')
equal(c.lines().slice(1).map((m) => [m.id, m.error?.code ?? 'ok']), [[null, -32600], [10, 'ok'], [null, -32600]], 'it is refused, as is one that is too deep')

c = raw()
c.say(hello)
for (let i = 0; i < 70; i++) c.say(call(i, 'slow'))
c.say(call(3, 'hello', {input: 'x'}))
await c.until(8)
equal(c.lines().slice(1).map((m) => m.error?.code), Array(6).fill(-32603).concat(-32600), '64 calls at once, and ids of calls under way are refused')
for (let i = 0; i < 64; i++) c.say({jsonrpc: '2.0', method: 'notifications/cancelled', params: {requestId: i}})
c.say(call(3, 'hello', {input: 'x'}))
equal(await c.end(), 0, 'it ends')
equal(c.lines().slice(8).map((m) => [m.id, m.result?.content?.[0]?.text]), [[3, 'hello x']], 'cancelled calls have no answer')

c = raw()
c.say(hello)
c.say({jsonrpc: '2.0', id: 1, method: 'tools/call', params: {name: 'hello', arguments: {input: 'y'}, _meta: {progressToken: 'p'}}})
equal(await c.end(), 0, 'a closed input')
const progress = c.lines().filter((m) => m.method === 'notifications/progress').map((m) => m.params)
check(progress.length > 2 && progress.every((p, i) => p.progressToken === 'p' && (i === 0 || p.progress > progress[i - 1].progress)), 'progress rises', progress)
equal(c.lines().at(-1).result?.content?.[0]?.text, 'hello y', 'lets calls under way end')

c = raw(['--grace', '1s'])
c.say(hello)
c.say(call(1, 'slow'))
await c.until(1)
equal(await c.end(), 0, 'when the grace time is over, calls are cancelled')

c = raw()
c.say(hello)
c.say(call(1, 'slow'))
await c.until(1)
c.child.kill('SIGTERM')
equal(await c.status, 0, 'SIGTERM ends it at once')

c = raw()
c.say(hello)
await c.until(1)
c.child.stdout.destroy()
c.say(call(1, 'hello', {input: 'z'}))
equal(await c.status, 0, 'a client that reads no more ends it')
equal(command('mcp', 'serve', '--pipelines', join(scratch, 'none')).status, 2, 'a folder that does not exist')
equal(command('mcp', 'serve', '--tool', 'files').status, 2, 'a tool without its capability')
finish('stdio')
