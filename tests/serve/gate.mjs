// Keys and who sees what, limits, origins; what the command line refuses.
import {randomUUID} from 'node:crypto'
import {readFileSync} from 'node:fs'
import {connect, createServer} from 'node:net'
import {agents, call, check, command, equal, file, finish, root, scratch, serve, store as named} from './kit.mjs'

const store = named('gate.db')
const key = (...args) => JSON.parse(command('keys', 'create', '--json', '--store', store, ...args).out).key
const ada = key('--user', 'ada')
const ben = key('--user', 'ben')
const all = key()
const reader = key('--user', 'ada', '--scopes', 'sessions:read')
const bearer = (k) => ({authorization: `Bearer ${k}`})
const script = file('talk.yaml', 'models:\n  boss:\n    - {text: One.}\n    - {text: Two.}\n    - {text: Three.}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const args = ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines']
let server = await serve('gate.db', [...args, '--cors-origins', 'https://app.example.com'])

// --- who asks
const none = await call(server, 'GET', '/sessions')
equal([none.status, none.headers.get('www-authenticate')?.startsWith('Bearer')], [401, true], 'no key')
check(none.json.detail && none.json.error.type === 'authentication_error', 'its body', none.text)
equal((await call(server, 'GET', '/sessions', undefined, bearer(ada.slice(0, -1) + 'x'))).status, 401, 'a wrong key')
equal((await call(server, 'GET', '/sessions', undefined, {'x-api-key': ada})).status, 200, 'a key in a header of its own')
equal((await call(server, 'GET', '/healthz')).status, 200, 'anybody may ask whether it lives')
const small = await call(server, 'GET', '/agents', undefined, bearer(reader))
equal([small.status, small.json.code], [403, 'insufficient_scope'], 'a key that may not do that')

// --- what is another's does not exist
const id = randomUUID()
const body = {threadId: id, runId: 'r', messages: [{id: 'm', role: 'user', content: 'hello'}]}
const as = (k) => ({...bearer(k), 'x-agent-schema-name': 'boss'})
equal((await call(server, 'POST', `/chat/${id}`, body, as(ada))).status, 200, 'a turn of ada')
equal((await call(server, 'GET', '/sessions', undefined, bearer(ada))).json.map((s) => s.user_id), ['ada'], 'she sees her session')
equal((await call(server, 'GET', '/sessions', undefined, bearer(ben))).json, [], 'ben does not')
const intruder = await call(server, 'POST', `/chat/${id}`, {...body, runId: 'o'}, as(all))
equal([intruder.status, intruder.json.detail.startsWith(`session "${id}" is of user "ada" (`)], [409, true], 'an operator begins no other session of that id')
equal((await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', session: id}, bearer(all))).status, 409, 'nor does a run')
const planned = {name: 'daily', cron: '@daily', pipeline: 'hooks', input: 'hi', session: id}
equal((await call(server, 'POST', '/schedules', planned, bearer(all))).status, 409, 'nor do planned runs')
equal((await call(server, 'POST', '/schedules', planned, bearer(ada))).status, 201, 'those of the user do')
equal((await call(server, 'PUT', '/schedules/daily', planned, bearer(all))).status, 200, 'also when an operator changes them')
const run = (await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', wait: true}, bearer(ada))).json
equal(run.result.user_id, 'ada', 'the run is hers')
const bens = (await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', wait: true}, bearer(ben))).json
const row = (await call(server, 'POST', '/entities/ontologies', {name: 'Mine'}, bearer(ada))).json
const missing = 'env_0000000000000000'
const paths = [
  ['GET', (x) => `/sessions/${x}`, id, randomUUID()],
  ['GET', (x) => `/sessions/${x}/messages`, id, randomUUID()],
  ['GET', (x) => `/sessions/${x}/export`, id, randomUUID()],
  ['PATCH', (x) => `/sessions/${x}`, id, randomUUID(), {name: 'x'}],
  ['POST', (x) => `/sessions/${x}/clone`, id, randomUUID(), {}],
  ['DELETE', (x) => `/sessions/${x}`, id, randomUUID()],
  ['GET', (x) => `/runs/${x}`, run.id, missing],
  ['GET', (x) => `/runs/${x}/events`, run.id, missing],
  ['GET', (x) => `/runs/${x}/graph`, run.id, missing],
  ['GET', (x) => `/runs/${x}/timeline`, run.id, missing],
  ['GET', (x) => `/runs/${x}/journal`, run.id, missing],
  ['GET', (x) => `/runs/${x}/diff?with=${x}`, run.id, missing],
  ['GET', (x) => `/runs/${bens.id}/diff?with=${x}`, run.id, missing],
  ['POST', (x) => `/runs/${x}/replay`, run.id, missing],
  ['POST', (x) => `/runs/${x}/cancel`, run.id, missing],
  ['POST', (x) => `/runs/${x}/answer`, run.id, missing, {text: 'x'}],
  ['POST', (x) => `/runs/${x}/fork`, run.id, missing, {step: 1}],
  ['GET', (x) => `/entities/ontologies/${x}`, row.id, randomUUID()],
  ['DELETE', (x) => `/entities/ontologies/${x}`, row.id, randomUUID()],
]
const plain = (r, x) => [r.status, r.text.replaceAll(x, 'X').replace(/req_[0-9a-f]+/g, '')]
for (const [method, path, hers, nobodys, sent] of paths) {
  const other = plain(await call(server, method, path(hers), sent, bearer(ben)), hers)
  const nothing = plain(await call(server, method, path(nobodys), sent, bearer(ben)), nobodys)
  equal([other[0], ...other], [404, ...nothing], `${method} ${path('X')} of another one is as if there was none`)
}
equal((await call(server, 'GET', `/sessions/${id}`, undefined, bearer(ada))).status, 200, 'and nothing happened to it')
// a session of the same id is ben's own
equal((await call(server, 'POST', `/chat/${id}`, body, as(ben))).status, 200, 'an id that another one has')
equal((await call(server, 'GET', `/sessions/${id}/messages`, undefined, bearer(ben))).json.length, 2, 'has only his words')
const both = await call(server, 'GET', `/sessions/${id}`, undefined, bearer(all))
check(both.status === 400 && both.json.detail.includes('the parameter `user`'), 'an operator is asked whose is meant', both.text)
const whose = (user, method = 'GET', more = '', sent = undefined) => call(server, method, `/sessions/${id}${more}?user=${user}`, sent, bearer(all))
equal([(await whose('ada')).json?.user_id, (await whose('ben')).json?.user_id, (await whose('cy')).status, (await whose('')).status], ['ada', 'ben', 404, 404], 'says it, and gets that one')
equal([(await whose('ben', 'GET', '/messages')).json?.length, (await whose('ben', 'PATCH', '', {name: 'of ben'})).json?.name, (await whose('ada')).json?.name !== 'of ben'], [2, 'of ben', true], 'also to change it')
equal((await call(server, 'GET', '/sessions?user=ben', undefined, bearer(all))).json.every((s) => s.user_id === 'ben'), true, 'lists are those of that user')
const peek = (who) => call(server, 'GET', `/sessions/${id}?user=ada`, undefined, bearer(who))
equal([(await peek(ada)).status, (await peek(ben)).status], [200, 403], 'a user may name only themselves')
equal((await call(server, 'GET', '/runs', undefined, bearer(ben))).json.every((r) => r.user === 'ben'), true, 'lists of runs, too')
const forged = await call(server, 'POST', '/runs', {pipeline: 'hooks', state: {user_id: 'ada'}, wait: true}, bearer(ben))
equal(forged.json?.result?.user_id, 'ben', 'a state does not say who asks', forged.text)
equal((await call(server, 'POST', '/entities/ontologies', {name: 'x', user_id: 'ada'}, bearer(ben))).status, 403, 'nor does a row')
const shared = (await call(server, 'POST', '/entities/ontologies', {name: 'Shared'}, bearer(all))).json
for (let i = 0; i < 2; i++) {
  equal((await call(server, 'POST', '/entities/ontologies', {id: shared.id, name: 'x'}, bearer(ben))).status, 403, 'nor is a row without an owner his to change')
  equal((await call(server, 'GET', '/readyz')).status, 200, 'which says nothing of the store')
}

// --- origins
const enter = async (more) => (await call(server, 'POST', '/login', {key: ada}, more)).json?.detail ?? ''
check((await enter({})).includes('the header Origin') && (await enter({})).includes('Authorization: Bearer KEY'), 'a login without an origin says what programs do', await enter({}))
check(/address of the server.*--cors-origins$/.test(await enter({origin: 'https://evil.example'})), 'and one from elsewhere how it may be allowed', await enter({origin: 'https://evil.example'}))
const origin = {origin: 'https://app.example.com'}
const pre = await call(server, 'OPTIONS', '/runs', undefined, {...origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization'})
equal([pre.status, pre.headers.get('access-control-allow-origin')], [204, origin.origin], 'a preflight needs no key')
const from = await call(server, 'GET', '/sessions', undefined, {...origin, ...bearer(ada)})
equal(from.headers.get('access-control-allow-origin'), origin.origin, 'an origin that may call')
const foreign = await call(server, 'GET', '/sessions', undefined, {origin: 'https://evil.example.com', ...bearer(ada)})
equal(foreign.headers.get('access-control-allow-origin'), null, 'another one may not read')
equal(await server.stop(), 0, 'it ends as it should')

// --- a body of those who show no key is not waited for: only the head is sent
server = await serve('late.db', args)
const head = (method, path, more = {}) =>
  new Promise((done, lost) => {
    const at = new URL(server.url)
    const lines = Object.entries({host: at.host, 'content-length': '1000000', ...more}).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(at.port, at.hostname, () => socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}expect: 100-continue\r\n\r\n`))
    socket.once('data', (bytes) => (done(Number(String(bytes).split(' ')[1])), socket.destroy()))
    socket.once('error', lost)
  })
const late = (...more) => command('keys', ...more, '--store', named('late.db'))
equal(await head('POST', '/runs'), 100, 'an open server reads it')
const first = JSON.parse(late('create', '--json').out)
equal((await call(server, 'GET', '/sessions', undefined, bearer(first.key))).status, 200, 'a key is used')
equal([await head('POST', '/runs'), await head('POST', '/mcp'), await head('PUT', '/agents'), await head('POST', '/chat/x')], [401, 401, 401, 401], 'from then on it does not')
equal([await head('POST', '/none'), await head('POST', '/sessions')], [404, 405], 'nor for a path that it does not have')
equal([await head('POST', '/runs', {authorization: 'Bearer x'}), await head('POST', '/runs', {'x-api-key': 'x'}), await head('POST', '/runs', {cookie: 'a=b'})], [100, 100, 100], 'what may be a key is judged with the body')
equal([await head('POST', '/login'), await head('GET', '/healthz'), await head('POST', '/login', {'content-length': '100'})], [413, 413, 100], 'a login and a probe have small bodies')
equal(await head('OPTIONS', '/runs', {...origin, 'access-control-request-method': 'POST', 'content-length': '2'}), 100, 'and so has a preflight')
const words = await call(server, 'POST', '/runs', {pipeline: 'hooks'})
equal([words.status, words.headers.get('www-authenticate'), words.json?.code], [401, none.headers.get('www-authenticate'), none.json.code], 'in the words of any other request without a key', words.text)
equal(late('revoke', first.id).status, 0, 'the key is revoked')
equal((await call(server, 'GET', '/sessions')).status, 200, 'a request without a body sees that')
equal(await head('POST', '/runs'), 100, 'and bodies are read again')
equal(await server.stop(), 0, 'it ends as it should')

// --- rates
server = await serve('gate.db', [...args, '--requests-per-minute', '5'])
let last
for (let i = 0; i < 8; i++) last = await call(server, 'GET', '/sessions', undefined, bearer(ada))
equal([last.status, Number(last.headers.get('retry-after')) > 0], [429, true], 'too many requests')
equal((await call(server, 'GET', '/sessions', undefined, bearer(ben))).status, 200, 'of one do not keep another')
equal(await server.stop(), 0, 'it ends as it should')

// --- quotas
const quotas = file('quotas.yaml', 'default: free\nplans:\n  free:\n    quotas:\n      runs: {day: 1}\n')
server = await serve('quotas.db', [...args, '--quotas', quotas])
const hi = {pipeline: 'hooks', input: 'hi', wait: true}
equal((await call(server, 'POST', '/runs', hi)).status, 200, 'a run that fits')
const over = await call(server, 'POST', '/runs', hi)
equal([over.status, over.json.code], [429, 'quota_exceeded'], 'one that does not', over.text)
const wait = Number(over.headers.get('retry-after'))
check(wait > 0 && wait <= 86400, 'it says when it will', String(wait))
equal(await server.stop(), 0, 'it ends as it should')

const little = file('little.yaml', 'default: free\nplans:\n  free:\n    rates:\n      model_calls: {hour: 1}\n')
const looks = file('looks.yaml', 'models:\n  boss:\n    - {tool_calls: [{name: search, arguments: {}}]}\n    - {text: Found.}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
server = await serve('little.db', ['--schema-dir', agents(), '--script', looks, '--quotas', little])
const stopped = await call(server, 'POST', '/v1/chat/completions', {model: 'boss', messages: [{role: 'user', content: 'look'}]})
equal([stopped.status, stopped.json.error.code, stopped.json.error.type, stopped.headers.get('x-should-retry')], [429, 'quota_exceeded', 'insufficient_quota', 'false'], 'a turn that a quota stops has failed')
equal(await server.stop(), 0, 'it ends as it should')

const tiny = file('tiny.yaml', 'default: free\nplans:\n  free:\n    quotas:\n      tokens: {day: 1}\n')
file('lines/lookup.yaml', 'name: lookup\nmodels: {m: scripted:any}\nagents: [{name: boss, has_llm: true, model_role: m, prompt_key: p}]\nprompts: {p: x}\n')
file('played/lookup.yaml', 'models: {boss: [{text: "{}"}]}\n')
server = await serve('tiny.db', ['--quotas', tiny, '--pipelines', `${scratch}/lines`, '--scripts', `${scratch}/played`])
const line = await call(server, 'POST', '/v1/chat/completions', {model: 'pipeline:lookup', messages: [{role: 'user', content: 'look'}]})
equal([line.status, line.json?.error.code, line.json?.error.type, line.headers.get('x-should-retry')], [429, 'quota_exceeded', 'insufficient_quota', 'false'], 'and so has a pipeline that is asked as a model', line.text)
equal(await server.stop(), 0, 'it ends as it should')

// --- upkeep forgets keys that were revoked long ago
const old = JSON.parse(command('keys', 'create', '--json', '--store', store, '--user', 'cy').out)
const young = JSON.parse(command('keys', 'create', '--json', '--store', store, '--user', 'cy').out)
for (const k of [old, young]) command('keys', 'revoke', k.id, '--store', store)
const {DatabaseSync} = await import('node:sqlite')
const db = new DatabaseSync(store)
const day = 86400e6
db.prepare('UPDATE api_keys SET revoked_us = ? WHERE id = ?').run(Date.now() * 1000 - 91 * day, old.id)
db.prepare('UPDATE api_keys SET revoked_us = ? WHERE id = ?').run(Date.now() * 1000 - 89 * day, young.id)
const known = () => db.prepare('SELECT id FROM api_keys').all().map((r) => r.id)
equal(command('gc', '--dry-run', '--store', store).status, 0, 'a dry run')
check(known().includes(old.id), 'deletes nothing')
equal(command('gc', '--store', store).status, 0, 'reeve gc')
equal([known().includes(old.id), known().includes(young.id)], [false, true], 'forgets the old one only')
db.close()

// --- all settings of the gate are options
const help = command('serve', '--help').out
const settings = readFileSync(`${root}/coreengine/identity/settings.c`, 'utf8').matchAll(/^ {4}\{"([a-z-]+)", "REEVE_/gm)
for (const [, flag] of settings) check(help.includes(`--${flag}`), `--${flag} is an option`)

// --- what the command line refuses
const refuse = (what, words, ...more) => {
  const r = command('serve', '--store', `${scratch}/new.db`, ...more)
  equal(r.status, 2, `${what} is a fault of the command line`)
  check(r.err.includes(words), `${what}: it says why`, r.err)
  check(r.err.includes('hint:'), `${what}: and what to do`, r.err)
}
refuse('an address without a port', 'ADDRESS:PORT', '--listen', '127.0.0.1')
refuse('a name', 'numeric', '--listen', 'localhost:80')
refuse('a port that is none', 'ADDRESS:PORT', '--listen', '127.0.0.1:99999')
refuse('an open server for others', 'others can reach', '--listen', '0.0.0.0:0')
const taken = createServer()
await new Promise((done) => taken.listen(0, '127.0.0.1', done))
refuse('a folder that is not there', 'cannot read folder', '--pipelines', `${scratch}/none`)
refuse('a tool that its capability does not have', 'tool files:red_file', '--mcp-tool', 'files:read_file', '--mcp-tool', 'files:red_file')
check(command('serve', '--store', `${scratch}/new.db`, '--mcp-tool', 'files:red_file').err.includes('did you mean "read_file"?'), 'the nearest name')
refuse('a model without its name', '--model: a model is provider:model, not "foo:"', '--model', 'foo:')
refuse('a provider that is not known', 'did you mean "openai:gpt-4.1"?', '--model', 'openia:gpt-4.1')
refuse('a model of a script that is missing', 'there is none', '--model', 'scripted:any')
refuse('a tool of a capability that is not there', 'filez', '--mcp-tool', 'filez:read_file')
refuse('a port that is taken', 'another process', '--listen', `127.0.0.1:${taken.address().port}`)
taken.close()
finish('gate')
