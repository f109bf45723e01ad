// Another process holds the store, so that no write gets through: of the requests with a key that was not used yet one
// waits, to note its use. Nobody else does: not others with that key, not other keys, not what asks no store. Of clients of MCP the one that
// writes waits; the loop that writes the streams of all does not.
import {spawn} from 'node:child_process'
import {join} from 'node:path'
import {call, check, command, equal, file, finish, scratch, serve, store} from './kit.mjs'

// A pipeline whose server of tools never answers: its call is one that other threads begin.
file('p/mute.yaml', 'name: mute\ninputs: []\nmcp_servers: {m: {command: [sleep, "600"], timeout_ms: 600000}}\nagents: [{name: a, set: {v: 1}}]\n')
file('p/slow.yaml', 'name: slow\ninputs: []\nmodels: {default: "scripted:any"}\nagents: [{name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text}]\nprompts: {wait: Wait.}\n')
file('s/slow.yaml', 'models: {wait: [{text: "done", delay_ms: 60000}]}\n')

const at = store('held.db')
const key = (user) => ({'x-api-key': JSON.parse(command('keys', 'create', '--json', '--store', at, '--user', user).out).key})
const [ada, ben] = [key('ada'), key('ben')]
const server = await serve('held.db', ['--cors-origins', 'https://app.example.com', '--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's'), '--grace', '1s'])
const ask = (path, headers) => call(server, 'GET', path, undefined, headers)
equal((await ask('/sessions', ben)).status, 200, 'a key whose use is noted')

// Calls of MCP: a client has one under way when the store is held.
const leave = new AbortController()
const mcp = (who, message, headers = {}) =>
  fetch(server.url + '/mcp', {
    method: 'POST',
    signal: leave.signal,
    headers: {...who, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers},
    body: JSON.stringify({jsonrpc: '2.0', ...message}),
  })
async function session(who) {
  const client = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 'held', version: '1'}}
  const began = await mcp(who, {id: 0, method: 'initialize', params: client})
  return {...who, 'mcp-session-id': began.headers.get('mcp-session-id')}
}
const tool = (id, name) => ({id, method: 'tools/call', params: {name, arguments: {}}})
const [adas, bens] = [await session(ben), await session(ben)]
equal((await mcp(adas, tool(1, 'slow'))).headers.get('content-type')?.split(';')[0], 'text/event-stream', 'a call that goes on')

const hold = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")`
const holder = spawn('/usr/bin/python3', ['-c', hold, at], {stdio: ['pipe', 'pipe', 'inherit']})
await new Promise((done) => holder.stdout.once('data', done))

const waits = mcp(adas, tool(2, 'slow')).then(() => 'answered', () => 'left') // it writes a run
let n_begun = 0
for (let i = 1; i <= 5; i++) mcp(bens, tool(i, 'mute')).then((r) => (n_begun += r.status === 200), () => {})
for (let i = 0; i < 3000 && n_begun < 5; i++) await ask('/healthz')
equal(n_begun, 5, 'calls of another client begin, which write nothing yet')

let n_answered = 0
let second
const two = new Promise((done) => (second = done))
const first = Array.from({length: 3}, () => ask('/sessions', ada))
for (const request of first) request.then(() => ++n_answered === 2 && second())
await two
equal(n_answered, 2, 'one of three notes the use of their key, and waits')
for (let i = 0; i < 10; i++) {
  equal((await ask('/healthz')).status, 200, 'the process lives')
  equal((await ask('/healthz', {origin: 'https://app.example.com'})).headers.get('access-control-allow-origin'), 'https://app.example.com', 'also for a page')
  equal((await ask('/sessions', ben)).status, 200, 'another key')
  equal((await ask('/sessions', {'x-api-key': ada['x-api-key'].slice(0, -1)})).status, 401, 'a wrong key')
}
equal(n_answered, 2, 'all of them before the one that waits')
holder.stdin.end()
equal(await waits, 'answered', 'the call that wrote goes on')
leave.abort()
equal((await Promise.all(first)).map((r) => r.status), [200, 200, 200], 'which goes on as soon as it can')
const keys = JSON.parse(command('keys', 'list', '--json', '--store', at).out)
check(keys.length === 2 && keys.every((k) => k.used_at), 'the use of both keys is noted', keys)
equal(await server.stop(), 0, 'it ends as ever')
finish('held')
