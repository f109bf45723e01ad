// Turns that wait, that are refused, repeated and cancelled: by the same process, by a worker and by another server.
import http from 'node:http'
import {EventEmitter, once} from 'node:events'
import {randomUUID} from 'node:crypto'
import {spawnSync} from 'node:child_process'
import {join} from 'node:path'
import {call, check, command, equal, file, finish, scratch, serve} from './kit.mjs'

// A provider that says what the last message asks for.
const asked = [] // what came, newest last
const came = new EventEmitter() // "asked"
let go = null // "wait" waits for it
const provider = http.createServer(async (q, r) => {
  let sent = ''
  for await (const bytes of q) sent += bytes
  sent = JSON.parse(sent)
  asked.push(sent)
  came.emit('asked')
  const text = sent.messages.at(-1).content
  const n_results = sent.messages.filter((m) => m.role === 'tool').length
  const twice = n_results === 1 && sent.messages.some((m) => m.content === 'wipe it twice')
  if (text === 'wait' || text === 'wipe it slowly' || twice) await new Promise((done) => (go = done))
  const tell = (delta, finish_reason = null) => r.write('data: ' + JSON.stringify({id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{index: 0, delta, finish_reason}]}) + '\n\n')
  r.writeHead(200, {'content-type': 'text/event-stream'})
  const calls = (text.startsWith('wipe') || twice) && [{index: 0, id: `c${n_results}`, type: 'function', function: {name: 'wipe', arguments: '{"path":"/tmp/x"}'}}]
  tell({role: 'assistant', content: calls ? 'I will.' : `So: ${text}`, ...(calls && {tool_calls: calls})})
  tell({}, calls ? 'tool_calls' : 'stop')
  r.end('data: [DONE]\n\n')
}).listen(0, '127.0.0.1')
await once(provider, 'listening')
const env = {OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `http://127.0.0.1:${provider.address().port}/v1`}

file('agents/boss.yaml', 'kind: agent\nname: boss\ndescription: Answers.\nmodel: openai:gpt-4.1\ntools:\n  - name: wipe\n')
file('agents/desk.yaml', 'name: desk\ndescription: Decides.\nmodel: openai:gpt-4.1\nproperties: {agent: {type: string}}\nstructured_output: true\nrouting: {agents: [boss], fallback: boss}\n')
const script = file('turns.yaml', 'tools:\n  wipe: {risk: destructive, calls: [{result: {wiped: true}}]}\n')
const args = ['--schema-dir', join(scratch, 'agents'), '--script', script, '--client-grace', 'never']
const name = {'x-agent-schema-name': 'boss'}
const body = (id, text, more = {}) => ({threadId: id, runId: randomUUID(), protocolVersion: '1.0', messages: [{id: randomUUID(), role: 'user', content: text}], ...more})
const say = (server, id, sent) => call(server, 'POST', `/chat/${id}`, sent, name)
const events = (r) => r.text.split('\n').filter((l) => l.startsWith('data: ')).map((l) => JSON.parse(l.slice(6)))
const answer = (id, question, payload = {approved: true}) => ({...body(id, ''), messages: [], resume: [{interruptId: question, status: 'resolved', payload}]})

// A turn that waits with a question: {session, run, question}.
async function ask(server, text = 'wipe it') {
  const session = randomUUID()
  const r = await say(server, session, body(session, text))
  return {session, run: r.headers.get('x-run-id'), question: events(r).at(-1).outcome.interrupts[0].id}
}
const over = async (server, run) => (await call(server, 'GET', `/runs/${run}/events`)).text // comes when the run has ended

let server = await serve('turns.db', args, env)

// --- a turn that waits is cancelled ---
let w = await ask(server)
equal((await call(server, 'POST', `/runs/${w.run}/cancel`)).status, 202, 'a turn that waits is cancelled')
equal((await say(server, w.session, answer(w.session, w.question))).status, 409, 'its question takes no answer any more')
check(!(await over(server, w.run)).includes('wiped'), 'so its tool is not called')
equal((await call(server, 'GET', `/runs/${w.run}`)).json.status, 'cancelled', 'and it ends, with no answer')
w = await ask(server)
equal((await call(server, 'DELETE', `/sessions/${w.session}`)).json, {deleted: true, runs_to_be_cancelled: 1}, 'the session of a turn that waits is deleted')
equal((await say(server, w.session, answer(w.session, w.question))).status, 409, 'then its question takes no answer either')
check(!(await over(server, w.run)).includes('wiped'), 'and its tool is not called')

// --- an answer by another way ---
w = await ask(server)
equal((await call(server, 'POST', `/runs/${w.run}/answer`, {approved: true})).status, 202, 'an answer that is not of the chat')
check((await over(server, w.run)).includes('wiped'), 'is taken by a worker')
check(!server.err().includes('put off'), 'which waits for no lease', server.err())

// --- a request to cancel comes while the run is about to wait ---
const newest = async () => (await call(server, 'GET', '/runs')).json[0].id
async function cancelled(run, what) {
  equal((await call(server, 'POST', `/runs/${run}/cancel`)).status, 202, 'a run that works is to be cancelled')
  go()
  await over(server, run)
  equal((await call(server, 'GET', `/runs/${run}`)).json.status, 'cancelled', what)
}
let begun = once(came, 'asked')
const last = randomUUID()
const late = say(server, last, body(last, 'wipe it slowly'))
await begun
await cancelled(await newest(), 'a turn that began to wait then does not wait on')
begun = once(came, 'asked')
const gone = randomUUID()
const heard = say(server, gone, body(gone, 'wait'))
await begun
await call(server, 'DELETE', `/sessions/${gone}`)
equal(events(await heard).at(-1).outcome, {type: 'cancelled'}, 'nor is a turn a failure whose session is deleted')
await late
w = await ask(server, 'wipe it twice')
begun = once(came, 'asked')
await call(server, 'POST', `/runs/${w.run}/answer`, {approved: true})
await begun
await cancelled(w.run, 'nor does a run of a worker')

// --- answers that are not taken leave nothing that a client could wait for ---
const stream = async (run) => (await call(server, 'GET', `/runs/${run}/stream`)).text
const blocks = (text) => text.replace(/^(:.*\n\n)+/, '')
w = await ask(server)
const refused = answer(w.session, w.question, {})
equal((await say(server, w.session, refused)).status, 400, 'an answer without a decision')
check((await stream(w.run)).includes('"interrupt"'), 'the stream of the turn ends with its question')
equal((await say(server, w.session, refused)).status, 400, 'and the answer is refused again')
const taken = await say(server, w.session, answer(w.session, w.question))
check(taken.text.includes('wiped'), 'one with a decision is taken')
equal(blocks(await stream(w.run)), blocks(taken.text), 'and is what the stream of the turn has')
w = await ask(server)
const clicks = await Promise.all([1, 2].map(() => say(server, w.session, answer(w.session, w.question))))
equal(clicks.map((r) => r.status).sort(), [200, 409], 'of two answers at once one is taken')
equal(blocks(await stream(w.run)), blocks(clicks.find((r) => r.status === 200).text), 'and the stream ends')
const other = await serve('turns.db', args, env)
w = await ask(server)
const both = await Promise.all([say(server, w.session, answer(w.session, w.question)), say(other, w.session, answer(w.session, w.question, {approved: false}))])
check(both.every((r) => r.status === 409 || r.text.includes('RUN_FINISHED')), 'of two answers to two servers each client hears an end', ...both)
check((await stream(w.run)).includes('RUN_FINISHED'), 'and so does one that comes later')

// --- equal requests while another turn is under way ---
const busy = randomUUID()
begun = once(came, 'asked')
const slow = say(server, busy, body(busy, 'wait'))
await begun
const same = body(busy, 'once more')
for (const r of await Promise.all([1, 2, 3, 4].map(() => say(server, busy, same))))
  check(r.status === 409 || r.status === 503 || r.text.includes('RUN_ERROR'), 'each client of a turn that is refused is told', r)
go()
check((await slow).text.includes('So: wait'), 'the turn under way goes on')

// --- equal requests at once are one turn ---
const eight = async (path, sent, headers) => Promise.all(Array.from({length: 8}, () => call(server, 'POST', path, sent, headers)))
const twins = randomUUID(), twin = body(twins, 'at once')
const told = await eight(`/chat/${twins}`, twin, name)
equal(new Set(told.map((r) => r.status + blocks(r.text))).size, 1, 'of equal requests at once each gets the answer')
const talk = {model: 'boss', messages: [{role: 'user', content: 'I am Ann'}, {role: 'assistant', content: 'Hello Ann'}, {role: 'user', content: 'who am I?'}]}
const before = (await call(server, 'GET', '/sessions')).json.length
const answers = await eight('/v1/chat/completions', talk, {'idempotency-key': 'once'})
equal(new Set(answers.map((r) => r.status + r.text)).size, 1, 'of those of Chat Completions, too')
equal((await call(server, 'GET', '/sessions')).json.length, before + 1, 'and their conversation is kept once')

// --- one request to two sessions is two ---
const complete = (sent, headers) => call(server, 'POST', '/v1/chat/completions', sent, headers)
const yes = {model: 'boss', messages: [{role: 'user', content: 'yes'}]}
const [one, two] = [randomUUID(), randomUUID()]
await complete(yes, {'x-session-id': one, 'x-stainless-retry-count': '0'})
const repeated = await complete(yes, {'x-session-id': two, 'x-stainless-retry-count': '1'})
equal(repeated.headers.get('x-session-id'), two, 'a repetition is that of its session')
equal((await complete(yes, {'x-session-id': one, 'x-stainless-retry-count': '1'})).headers.get('x-session-id'), one, 'and there it gets the answer')
equal((await call(server, 'GET', `/sessions/${one}/messages`)).json.length, 2, 'which is there once')
await complete(yes, {'x-session-id': one, 'idempotency-key': 'yes'})
equal((await complete(yes, {'x-session-id': two, 'idempotency-key': 'yes'})).status, 409, 'one key of two sessions is refused')
const simple = (id) => call(server, 'POST', `/api/v1/chat/completions/${id}`, yes, {'idempotency-key': 'path', ...name})
equal([(await simple(one)).status, (await simple(two)).status], [200, 409], 'also where the path names the session')

// --- a turn that another process drives ---
begun = once(came, 'asked')
const there = randomUUID()
const far = say(other, there, body(there, 'wait')).catch(() => 'cut')
await begun
equal((await say(server, there, body(there, 'and I?'))).status, 409, 'a session has one turn at a time, on all servers')
const run = await newest()
begun = once(came, 'asked')
await other.kill()
await far
const goesOn = stream(run)
await begun
equal((await say(server, there, body(there, 'and I?'))).status, 409, 'also while a worker goes on with it')
go()
check((await goesOn).includes('So: wait'), 'which it does')
equal((await say(server, there, body(there, 'and I?'))).status, 200, 'then the next one begins')
equal(await server.stop(), 0, 'it ends as it should')

// --- a request whose first try did not begin ---
server = await serve('turns.db', args.filter((a) => a !== '--script' && a !== script), env)
talk.messages[2].content = 'and now?'
for (const r of await Promise.all([1, 2, 3, 4].map(() => complete(talk, {'idempotency-key': 'four'}))))
  check(r.status === 409 || r.status === 503, 'of equal requests that are refused each is told', r)
equal((await complete(talk, {'x-stainless-retry-count': '0'})).status, 409, 'an agent whose tool lacks is refused')
equal(await server.stop(), 0, 'it ends as it should')
server = await serve('turns.db', args, env)
const second = await complete(talk, {'x-stainless-retry-count': '1'})
equal(asked.at(-1).messages.map((m) => m.content).slice(-3), ['I am Ann', 'Hello Ann', 'and now?'], 'its repetition has the conversation')
equal((await call(server, 'GET', `/runs/${second.headers.get('x-run-id')}/stream`)).headers.get('x-session-id'), second.headers.get('x-session-id'), 'and the session of its stream')

// --- the model is told what tools of the client gave ---
const called = {role: 'assistant', content: null, tool_calls: [{id: 'k1', type: 'function', function: {name: 'look', arguments: '{"at":"Bonn"}'}}, {id: 'k2', type: 'function', function: {name: 'look', arguments: 'Ulm'}}]}
const given = [{role: 'tool', tool_call_id: 'k2', content: '{"sky":"blue"}'}, {role: 'tool', tool_call_id: 'k1', content: 'rain'}]
await complete({model: 'boss', messages: [{role: 'user', content: 'How is it?'}, called, ...given, {role: 'assistant', content: 'Wet.'}, {role: 'user', content: 'and now?'}]})
const seen = asked.at(-1).messages.filter((m) => m.role !== 'system')
equal(seen.map((m) => m.tool_calls?.map((c) => c.function.arguments).join() ?? m.content), ['How is it?', '{"at":"Bonn"}', '{"result":"rain"}', '{"raw":"Ulm"}', '{"sky":"blue"}', 'Wet.', 'and now?'], 'with each call its result')

// --- what was cancelled answers no repetition ---
const waits = {model: 'boss', messages: [{role: 'user', content: 'wait'}]}
const first = {'x-stainless-retry-count': '0', 'x-on-disconnect': 'cancel'}
async function repeat(what) {
  begun = once(came, 'asked')
  const r = complete(waits, {...first, 'x-stainless-retry-count': '1'})
  await begun
  go()
  equal((await r).status, 200, what)
}
begun = once(came, 'asked')
const leave = new AbortController()
const left = fetch(server.url + '/v1/chat/completions', {method: 'POST', body: JSON.stringify(waits), headers: {'content-type': 'application/json', ...first}, signal: leave.signal}).catch(() => 'left')
await begun
leave.abort()
equal(await left, 'left', 'a client leaves')
await over(server, await newest())
await repeat('its repetition is a turn of its own')
begun = once(came, 'asked')
const unwanted = complete(waits, first)
await begun
await call(server, 'POST', `/runs/${await newest()}/cancel`)
equal([(await unwanted).status, (await unwanted).headers.get('x-should-retry')], [502, 'false'], 'a turn that a person cancelled is not to be repeated')
equal(await server.stop(), 0, 'it ends as it should')
server = await serve('turns.db', [...args, '--grace', '0s'], env)
begun = once(came, 'asked')
const cut = complete(waits, first)
await begun
await server.stop()
equal([(await cut).status, (await cut).headers.get('retry-after'), (await cut).json.error.code], [503, '5', 'unavailable'], 'a server that ends says so')
server = await serve('turns.db', args, env)
await repeat('and the next one begins it again')

// --- the process of a turn dies before it writes of it, and the run ends elsewhere and is deleted: its id is not used again ---
const lost = randomUUID()
const sent_twice = body(lost, 'wait')
const keyed = () => call(server, 'POST', `/chat/${lost}`, sent_twice, {...name, 'idempotency-key': 'lost'})
begun = once(came, 'asked')
const dying = keyed().catch(() => 'cut')
await begun
const dead = await newest()
await server.kill()
await dying
const forget = `import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("DELETE FROM stream_parts WHERE n > 1 AND stream = (SELECT key FROM streams WHERE run = ?)", sys.argv[2:])
db.commit()`
equal(spawnSync('/usr/bin/python3', ['-c', forget, join(scratch, 'turns.db'), dead]).status, 0, 'nothing of it was written')
equal(command('runs', 'cancel', dead, '--store', join(scratch, 'turns.db')).status, 0, 'its run ends')
check(command('gc', '--older-than', '0s', '--store', join(scratch, 'turns.db')).out.includes('deleted'), 'and is deleted')
server = await serve('turns.db', args, env)
equal(await (await call(server, 'GET', `/runs/${dead}`)).status, 404, 'so it is gone')
begun = once(came, 'asked')
const anew = keyed()
await begun
go()
const done = await anew
equal(done.status, 200, 'its request begins a turn')
check(done.headers.get('x-run-id') !== dead, 'whose run has another id', dead)
equal((await keyed()).headers.get('x-run-id'), done.headers.get('x-run-id'), 'which a repetition follows')
equal((await call(server, 'GET', `/runs/${dead}/stream`)).status, 404, 'of the first one nothing is left')

// --- a server is killed while a router is asked: no run goes on with the turn ---
const routed = {...waits, model: 'desk', stream: true}
begun = once(came, 'asked')
const unrouted = complete(routed, first).catch(() => 'killed')
await begun
await server.kill()
await unrouted
server = await serve('turns.db', args, env)
came.on('asked', () => setImmediate(() => go?.()))
check((await complete(routed, {'x-stainless-retry-count': '1'})).text.includes('So: wait'), 'its repetition begins it again')
equal(await server.stop(), 0, 'it ends as it should')
finish('turns')
