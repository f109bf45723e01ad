// Clients that mean harm: ids of others at every place of the description, forged tokens, bodies that are none, requests
// that never end, streams that nobody reads. REEVE_SOAK=1: 10,000 idle connections.
// Proves p8.W26: Bad input is refused before anything is done
import {createHmac, generateKeyPairSync, randomUUID, sign} from 'node:crypto'
import {readFileSync} from 'node:fs'
import {connect} from 'node:net'
import {agents, call, check, command, equal, file, finish, serve, store} from './kit.mjs'

const MAX_GROWTH_KB = 96 << 10 // of the memory of the server, from its first request to its end
const key = (user) => JSON.parse(command('keys', 'create', '--json', '--store', store('hostile.db'), '--user', user).out).key
const bearer = (k) => ({authorization: `Bearer ${k}`})
const [ada, ben] = [key('ada'), key('ben')]
const script = file('hostile.yaml', 'models:\n  boss: [{text: Good morning.}]\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const {publicKey, privateKey} = generateKeyPairSync('rsa', {modulusLength: 2048})
const jwks = file('keys.json', JSON.stringify({keys: [{...publicKey.export({format: 'jwk'}), kid: 'k', alg: 'RS256', use: 'sig'}]}))
const server = await serve('hostile.db', ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines', '--jwks', jwks, '--jwt-audience', 'reeve', '--jwt-tenant', 'default', '--failed-logins-per-minute', '1000'])
const api = (await call(server, 'GET', '/openapi.json')).json
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1])
const before = memory()

// --- tokens that somebody made
const b64 = (x) => Buffer.from(typeof x === 'string' ? x : JSON.stringify(x)).toString('base64url')
const token = (head, claims, how) => {
  const text = `${b64(head)}.${b64(claims)}`
  return `${text}.${how(text)}`
}
const now = Math.floor(Date.now() / 1000)
const claims = {sub: 'ada', aud: 'reeve', exp: now + 3600}
const rsa = (text) => sign('sha256', Buffer.from(text), privateKey).toString('base64url')
const mac = (secret) => (text) => createHmac('sha256', secret).update(text).digest('base64url')
const pem = publicKey.export({type: 'spki', format: 'pem'})
const good = token({alg: 'RS256', kid: 'k'}, claims, rsa)
equal((await call(server, 'GET', '/sessions', undefined, bearer(good))).status, 200, 'a token that is right')
const other = generateKeyPairSync('rsa', {modulusLength: 2048}).privateKey
const forged = {
  'alg none': token({alg: 'none'}, claims, () => ''),
  'alg None with a signature': token({alg: 'None', kid: 'k'}, claims, rsa),
  'the public key as a secret': token({alg: 'HS256', kid: 'k'}, claims, mac(pem)),
  'its modulus as a secret': token({alg: 'HS256', kid: 'k'}, claims, mac(publicKey.export({format: 'jwk'}).n)),
  'an empty secret': token({alg: 'HS256'}, claims, mac('')),
  'another key': token({alg: 'RS256', kid: 'k'}, claims, (t) => sign('sha256', Buffer.from(t), other).toString('base64url')),
  'a key of its own': token({alg: 'RS256', jwk: other.export({format: 'jwk'})}, claims, (t) => sign('sha256', Buffer.from(t), other).toString('base64url')),
  expired: token({alg: 'RS256', kid: 'k'}, {...claims, exp: now - 3600}, rsa),
  'not yet valid': token({alg: 'RS256', kid: 'k'}, {...claims, nbf: now + 3600}, rsa),
  'no end': token({alg: 'RS256', kid: 'k'}, {...claims, exp: undefined}, rsa),
  'another audience': token({alg: 'RS256', kid: 'k'}, {...claims, aud: 'others'}, rsa),
  'no audience': token({alg: 'RS256', kid: 'k'}, {...claims, aud: undefined}, rsa),
  'no user': token({alg: 'RS256', kid: 'k'}, {...claims, sub: undefined}, rsa),
  'changed claims': good.replace(/\.[^.]+\./, `.${b64({...claims, sub: 'ben'})}.`),
  'no signature': good.replace(/[^.]+$/, ''),
}
for (const [what, text] of Object.entries(forged))
  for (const [method, path, body] of [['GET', '/sessions'], ['GET', '/runs'], ['GET', '/entities/ontologies'], ['POST', '/query', {mode: 'LOOKUP', key: 'x'}], ['POST', `/chat/${randomUUID()}`, {messages: [{role: 'user', content: 'x'}]}]]) {
    const r = await call(server, method, path, body, bearer(text))
    check(r.status === 401 || r.status === 400, `${method} ${path.slice(0, 6)} with a token: ${what}`, String(r.status), r.text)
  }

// --- an id of another one, at each place of the description
const session = randomUUID()
const turn = (text) => ({threadId: session, runId: randomUUID(), messages: [{id: randomUUID(), role: 'user', content: text}]})
equal((await call(server, 'POST', `/chat/${session}`, turn('hello'), {...bearer(ada), 'x-agent-schema-name': 'boss'})).status, 200, 'a turn of ada')
const run = (await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', wait: true}, bearer(ada))).json.id
const task = (await call(server, 'GET', '/tasks', undefined, bearer(ada))).json.at(-1).id
const row = (await call(server, 'POST', '/entities/ontologies', {name: 'Mine'}, bearer(ada))).json.id
const made = {sessions: session, runs: run, tasks: task, ontologies: row, chat: session}
for (const kind of ['scenarios', 'collections']) made[kind] = (await call(server, 'POST', `/${kind}`, {name: 'Mine', session_id: kind === 'scenarios' ? session : undefined}, bearer(ada))).json.id
const missing = {runs: 'env_0000000000000000', tasks: 'task_0000000000000000'}
const plain = (r, id) => [r.status, r.text.replaceAll(id, 'ID').replace(/req_[0-9a-f]+/g, '')]
const bodyOf = (operation) => api.components.schemas[operation.requestBody?.content['application/json'].schema.$ref?.split('/').pop()]
const all = {name: 'x', step: 1, text: 'x', session_id: session}
let places = 0
for (const [path, methods] of Object.entries(api.paths)) {
  const of = path.includes('{kind}') ? 'ontologies' : path.split('/')[1]
  if (!path.includes('{id}') || !made[of]) continue
  for (const method of Object.keys(methods)) {
    const at = (id) => path.replace('{kind}', of).replace('{id}', id).replace('{session_id}', randomUUID().replace(/./g, '0'))
    const nobodys = missing[of] ?? randomUUID()
    const schema = bodyOf(methods[method])
    const may = ([name]) => schema?.additionalProperties !== false || name in schema.properties
    const body = method === 'get' || method === 'delete' ? undefined : Object.fromEntries(Object.entries(all).filter(may))
    const hers = plain(await call(server, method.toUpperCase(), at(made[of]), body, bearer(ben)), made[of])
    const none = plain(await call(server, method.toUpperCase(), at(nobodys), body, bearer(ben)), nobodys)
    equal(hers, none, `${method} ${path} of another one is as if there was none`)
    check(hers[0] >= 400, `${method} ${path} of another one is refused`, hers)
    places++
  }
}
check(places > 25, 'there are many places', String(places))
for (const path of [`/sessions/${session}`, `/runs/${run}`, `/tasks/${task}`, `/entities/ontologies/${row}`, `/scenarios/${made.scenarios}`, `/collections/${made.collections}`]) equal((await call(server, 'GET', path, undefined, bearer(ada))).status, 200, `${path.split('/')[1]}: nothing happened to it`)

// --- bodies that are none, at each route that takes one
const bodies = {deep: '['.repeat(100000), 'deep and whole': `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`, 'not UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), huge: `{"name":"${'x'.repeat(11 << 20)}"}`, cut: '{"name":"x'}
for (const [path, methods] of Object.entries(api.paths))
  for (const [method, operation] of Object.entries(methods)) {
    if (!operation.requestBody || path === '/login') continue
    for (const [what, body] of Object.entries(bodies)) {
      if (what === 'huge' && !['/query', '/runs', '/v1/responses'].includes(path)) continue
      const url = server.url + path.replace('{kind}', 'ontologies').replace(/\{chat_id\}|\{session_id\}/, randomUUID()).replace(/\{[a-z_]+\}/g, 'none')
      const r = await fetch(url, {method: method.toUpperCase(), headers: {...bearer(ada), 'content-type': 'application/json'}, body}).catch(() => ({status: 413, text: () => ''}))
      check([400, 404, 409, 413].includes(r.status) || (path === '/agents/validate' && r.status === 200), `${method} ${path}: a body that is ${what}`, String(r.status), String(await r.text()).slice(0, 300))
    }
  }

// --- members that a body of ours does not have: the others are those of clients of other servers, which pass over them
const strict = []
for (const [path, methods] of Object.entries(api.paths))
  for (const [method, operation] of Object.entries(methods)) {
    if (bodyOf(operation)?.additionalProperties !== false) continue
    const r = await call(server, method.toUpperCase(), path.replace('{id}', run), {unknwn: 1}, path === '/login' ? {} : bearer(ada))
    check(r.status === 400 && r.json.detail.includes('unknown member "unknwn"') && r.text.includes('are known: '), `${method} ${path}: an unknown member`, r.status, r.text)
    strict.push(`${method} ${path}`)
  }
equal(strict.sort().join(', '), 'patch /schedules/{id}, patch /sessions/{id}, post /collections/{id}/sessions, post /collections/{id}/sessions/batch, post /collections/{id}/sessions/from-query, post /feedback, post /files, post /login, post /runs, post /runs/{id}/answer, post /runs/{id}/fork, post /scenarios/feedback, post /schedules, post /sessions/search, post /tasks, put /schedules/{id}', 'the bodies that are ours')
const refused = async (what, path, body, member, hint) => {
  const r = await call(server, 'POST', path, body, bearer(ada))
  check(r.status === 400 && r.text.includes(JSON.stringify(member).slice(1, -1)) && r.text.includes(hint), what, r.status, r.text)
}
await refused('a misspelt member has the nearest name', '/runs', {pipeline: 'hooks', prioritty: 5}, 'unknown member "prioritty"', 'did you mean \\"priority\\"?')
await refused('so has one inside', '/runs', {pipeline: 'hooks', webhook: {url: 'http://127.0.0.1:9', secrt: 'x'}}, 'unknown member "secrt" in "webhook"', 'did you mean \\"secret\\"?')
await refused('and one of a list', '/files', {files: [{path: 'a.md', content: 'x', sesion: 'x'}]}, 'unknown member "sesion" in "files"', 'are known: path, content')
equal((await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', state: {metadata: {unknwn: 1}}, wait: true}, bearer(ada))).status, 200, 'metadata is free')
equal((await call(server, 'POST', `/chat/${session}`, {...turn('hello again'), unknwn: 1}, {...bearer(ada), 'x-agent-schema-name': 'boss'})).status, 200, 'AG-UI: an unknown member is passed over')
equal((await call(server, 'POST', '/query', {mode: 'LOOKUP', key: 'x', unknwn: 1}, bearer(ada))).status, 200, 'p8: an unknown member is passed over')

// --- connections that say nothing, from many addresses; a head that never ends, a body that never comes
const {hostname, port} = new URL(server.url)
const open = (localAddress, text) =>
  new Promise((resolve, reject) => {
    const s = connect({host: hostname, port: Number(port), localAddress}, () => (text ? s.write(text, () => resolve(s)) : resolve(s)))
    s.on('error', reject)
  })
const sockets = []
const many = process.env.REEVE_SOAK ? 10000 : 1000
const starts = ['', 'GET /healthz HT', `POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada}\r\nContent-Length: 1000\r\n\r\n{`]
try {
  for (let i = 0; i < many; i++) sockets.push(await open(`127.0.${1 + (i >> 13)}.${1 + ((i / 50) | 0) % 200}`, starts[i % 3]))
} catch (e) {
  check(['EMFILE', 'ENFILE'].includes(e.code) && sockets.length > 900, 'connections are taken', String(e))
}
equal((await call(server, 'GET', '/sessions', undefined, bearer(ada))).status, 200, `others are served beside ${sockets.length} such connections`)
for (const s of sockets) s.destroy()

// --- a client that ends its half, and one that leaves behind its request
const ended = await open('127.0.0.1', `GET /runs/${run}/events HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${ada}\r\nConnection: close\r\n\r\n`)
ended.end()
await new Promise((done) => ended.on('close', done).resume())
for (let i = 0; i < 50; i++) (await open('127.0.0.1', `POST /chat/${randomUUID()} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${ada}\r\nX-Agent-Schema-Name: boss\r\nContent-Length: 48\r\n\r\n{"messages":[{"role":"user","content":"go on"}]}`)).resetAndDestroy()

// --- nobody reads the access log: its pipe is full after some 400 requests
server.hold()
for (let i = 0; i < 3000; i += 50) {
  const got = await Promise.all(Array.from({length: 50}, () => call(server, 'GET', '/healthz')))
  check(got.every((r) => r.status === 200), 'requests are answered while nobody reads the access log')
}
server.go()
while (!server.log().some((line) => line.event === 'log.lost')) equal((await call(server, 'GET', '/healthz')).status, 200, 'and when it is read again')
check(server.log().find((line) => line.event === 'log.lost').records > 100, 'the access log says how much of it is missing')

equal((await call(server, 'GET', '/healthz')).status, 200, 'it lives')
const after = memory()
check(after - before < MAX_GROWTH_KB, `its memory grows by less than ${MAX_GROWTH_KB} KB`, `${before} KB, then ${after} KB`)
equal(await server.stop(), 0, 'it ends as it should')
console.log(`${places} places of ids, ${Object.keys(forged).length} tokens, ${sockets.length} connections; ${before} KB, then ${after} KB`)
finish('hostile')
