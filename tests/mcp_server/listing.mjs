// A call of a pipeline that has servers of its own, while such a server does not answer: the client's other messages,
// and those of other clients, are answered meanwhile; and its process ends with the call.
import {spawn} from 'node:child_process'
import {createServer} from 'node:net'
import {join} from 'node:path'
import {check, command, env, equal, file, finish, reeve, root, scratch, serve, store} from '../serve/kit.mjs'

// The test's end of the mute servers: each is a socket, with the messages that it was sent.
const arrivals = []
let arrived = () => {}
const hub = createServer((socket) => {
  const server = {socket, asked: '', hear: () => {}, ended: new Promise((done) => socket.on('close', done))}
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    server.asked += bytes
    server.hear()
  })
  arrivals.push(server)
  arrived()
})
await new Promise((resolve) => hub.listen(0, '127.0.0.1', resolve))
async function nextServer() {
  while (arrivals.length === 0) await new Promise((resolve) => (arrived = resolve))
  const server = arrivals.shift()
  while (!server.asked) await new Promise((resolve) => (server.hear = resolve))
  return server
}

// Servers in the shell, which are many: what they are asked goes to the test.
const pipeline = (name, script, more = '') => file(`p/${name}.yaml`, `name: ${name}
mcp_servers:
  far: {command: [bash, -c, "${script} >/dev/tcp/127.0.0.1/${hub.address().port}${more}"], required: true, timeout_ms: ${name === 'brief' ? 50 : 600000}}
agents: [{name: work, has_tools: true, allowed_tools: [far.do_it]}]
`)
pipeline('mute', 'exec 3>&1 cat') // its output stays open
pipeline('brief', 'exec 3>&1 cat')
pipeline('dies', 'head -c 1', '; exit 3')
file('p/hello.yaml', 'name: hello\nagents: [{name: say, set: {text: "\'hello\'"}}]\nresponse: {output_key: say, field: text}\n')

// --- on a pipe ---
const path = join(scratch, 'listing.db')
const runs = () => JSON.parse(command('runs', 'list', '--json', '--store', path).out || '[]').map((r) => [r.pipeline, r.status].join(' '))
function client() {
  const child = spawn(reeve, ['mcp', 'serve', '--store', path, '--pipelines', join(scratch, 'p'), '--grace', '600s'], {env, cwd: root})
  const waits = new Map()
  let rest = '', log = ''
  child.stderr.on('data', (bytes) => (log += bytes))
  child.stdout.on('data', (bytes) => {
    rest += bytes
    for (let end; (end = rest.indexOf('\n')) >= 0; rest = rest.slice(end + 1)) {
      const m = JSON.parse(rest.slice(0, end))
      waits.get(m.id)?.(m)
      waits.delete(m.id)
    }
  })
  const put = (m) => child.stdin.write(JSON.stringify({jsonrpc: '2.0', ...m}) + '\n')
  let id = 0
  const request = (method, params) => new Promise((resolve) => {
    waits.set(++id, resolve)
    put({id, method, params})
  })
  const call = (name) => request('tools/call', {name, arguments: {input: 'x'}})
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)))
  return {child, put, request, call, ended, waits, last: () => id, log: () => log}
}
const init = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 't', version: '1'}}

let c = client()
await c.request('initialize', init)
let call = c.call('mute')
let server = await nextServer()
check((await c.request('ping', {})).result, 'a ping is answered while a server is asked for its tools')
equal((await c.request('tools/list', {})).result.tools.map((t) => t.name), ['answer_run', 'brief', 'dies', 'hello', 'mute', 'query'], 'tools are listed meanwhile')
equal((await c.call('hello')).result.content[0].text, 'hello', 'another pipeline is run meanwhile')
equal((await c.request('tools/call', {name: 'query', arguments: {query: 'SELECT 1 AS one FROM sessions LIMIT 1'}})).result.isError, undefined, 'a query is answered meanwhile')

// Another one at the same time, whose server ends.
let r = (await c.call('dies')).result
check(r.isError && r.content[0].text.includes('"far"') && r.content[0].text.includes('status 3'), 'a server that ends is an error of the call that says so', r)
check(c.waits.size === 1, 'the first call still waits')

// A time limit.
r = (await c.call('brief')).result
check(r.isError && r.content[0].text.includes('"far"') && r.content[0].text.includes('timed_out'), 'a server that does not answer in its time is one, too', r)
while (arrivals.length > 0) await arrivals.shift().ended // they were killed or have ended

// Cancelled: the server ends, and no run is made.
c.put({method: 'notifications/cancelled', params: {requestId: 2}})
await server.ended
check((await c.request('ping', {})).result, 'a ping is answered after a call was cancelled')
equal([...c.waits.keys()], [2], 'a cancelled call has no answer')
equal(runs(), ['hello completed'], 'and no run')

// More of them than threads: the others wait for their turn, and nothing else does.
const firstOfMany = c.last() + 1
const many = Array.from({length: 20}, () => c.call('mute'))
const servers = []
for (let i = 0; i < 16; i++) servers.push(await nextServer())
equal((await c.call('hello')).result.content[0].text, 'hello', 'a pipeline is run while many servers do not answer')
const cancel = (i) => c.put({method: 'notifications/cancelled', params: {requestId: firstOfMany + i}})
for (let i = 16; i < 20; i++) cancel(i)
for (let i = 0; i < 16; i++) cancel(i)
for (const s of servers) await s.ended
equal(arrivals.length, 0, 'those that were cancelled before their turn start no server')
void many, call

// The input ends, then it is told to end: no server is left.
call = c.call('mute')
server = await nextServer()
c.child.stdin.end()
c.child.kill('SIGTERM')
equal(await c.ended, 0, 'it ends when it is told to', c.log())
await server.ended
check(true, 'and its server has ended')
equal(runs().filter((text) => !text.startsWith('hello')), [], 'no run was made of any of them')

// --- over HTTP ---
file('p/slow.yaml', `name: slow
inputs: []
models: {default: "scripted:any"}
agents: [{name: wait, has_llm: true, model_role: default, prompt_key: wait, output_mode: text}]
prompts: {wait: Wait.}
`)
file('s/slow.yaml', 'models: {wait: [{text: "done", delay_ms: 600000}]}\n')
const host = await serve('listing-http.db', ['--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's'), '--grace', '1s'])
const base = {'content-type': 'application/json', accept: 'application/json, text/event-stream'}
const post = (message, headers = {}, more = {}) => fetch(`${host.url}/mcp`, {method: 'POST', headers: {...base, ...headers}, body: JSON.stringify({jsonrpc: '2.0', ...message}), ...more})
const answer = async (response) => {
  const text = await (await response).text()
  return JSON.parse(text.startsWith('{') ? text : text.slice(text.lastIndexOf('data: ') + 6))
}
async function session() {
  const headers = {'mcp-session-id': (await post({id: 0, method: 'initialize', params: init})).headers.get('mcp-session-id')}
  let n = 0
  return {
    say: (method, params) => post({method, params}, headers),
    request: (method, params) => post({id: ++n, method, params}, headers),
    call: (name) => post({id: ++n, method: 'tools/call', params: {name, arguments: name === 'slow' ? {} : {input: 'x'}}}, headers),
    last: () => n,
  }
}
const ada = await session(), bob = await session()
await ada.call('slow') // its answer has begun, and is looked at again and again
call = ada.call('mute')
server = await nextServer()
check((await answer(ada.request('ping', {}))).result, 'HTTP: a ping of the session is answered while a server is asked for its tools')
equal((await answer(bob.call('hello'))).result.content[0].text, 'hello', 'HTTP: a run of another session has its result meanwhile')
r = (await answer(ada.call('dies'))).result
check(r.isError && r.content[0].text.includes('status 3'), 'HTTP: a server that ends is an error of the call', r)
await ada.say('notifications/cancelled', {requestId: 2})
await server.ended
equal((await (await call).text()).includes('data:'), false, 'HTTP: a cancelled call has no answer, and its server has ended')

// A client of 2026-07-28 that leaves; then more calls than the server has threads.
const modern = {'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'mute'}
const meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
const start = (signal) => post({id: 1, method: 'tools/call', params: {name: 'mute', arguments: {input: 'x'}, _meta: meta}}, modern, {signal})
let leave = new AbortController()
await start(leave.signal)
server = await nextServer()
leave.abort()
await server.ended
check(true, 'HTTP: the server ends when its client leaves')
leave = new AbortController()
const crowd = await Promise.all(Array.from({length: 24}, () => start(leave.signal)))
servers.length = 0
for (let i = 0; i < 16; i++) servers.push(await nextServer())
equal((await answer(bob.call('hello'))).result.content[0].text, 'hello', 'HTTP: a run has its result while many servers do not answer')
leave.abort()
for (const s of servers) await s.ended
void crowd

// Requests that start runs wait for the servers of their pipelines, and hold up no other request; some are too many.
file('p/remote.yaml', `name: remote
mcp_servers:
  far: {url: "http://127.0.0.1:${hub.address().port}/", required: true, timeout_ms: 600000}
agents: [{name: work, has_tools: true, allowed_tools: [far.do_it]}]
`)
const ask = (pipeline, more) => fetch(`${host.url}/runs`, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({pipeline, input: 'x'}), ...more})
leave = new AbortController()
const waiting = Array.from({length: 64}, () => ask('remote', {signal: leave.signal}).catch(() => {}))
servers.length = 0
for (let i = 0; i < 64; i++) servers.push(await nextServer())
equal((await ask('hello')).status, 202, 'HTTP: a run is started while 64 requests wait for servers')
equal((await fetch(`${host.url}/readyz`)).status, 200, 'HTTP: and the server is ready')
const late = await ask('remote')
equal([late.status, late.headers.get('retry-after') > 0], [503, true], 'HTTP: one request more is refused')
for (const s of servers) s.socket.destroy()
leave.abort()
await Promise.all(waiting)

call = bob.call('mute')
do server = await nextServer()
while (await Promise.race([server.ended.then(() => true), new Promise((go) => setImmediate(go))])) // of those who left
equal(await host.stop(), 0, 'HTTP: it ends when it is told to', host.err())
await server.ended
const kept = JSON.parse(command('runs', 'list', '--json', '--store', store('listing-http.db')).out)
equal(kept.filter((row) => row.pipeline === 'mute' || row.pipeline === 'dies'), [], 'HTTP: no run was made of any of them')
hub.close()
finish('listing')
