// The headers that requests bring, each seen by what it changes: who asks, which agent, model and session, what tools and
// the model are told; and the paths that clients of p8 and REMLight write.
// Proves remlight.1
import {createHmac, randomUUID} from 'node:crypto'
import {readFileSync} from 'node:fs'
import {request} from 'node:http'
import {agents, call, check, command, equal, file, finish, root, serve, store} from './kit.mjs'

const script = file('talk.yaml', `models:\n  boss:\n${'    - {text: Good morning.}\n'.repeat(9)}  general:\n    - {text: In general.}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n`)
const args = ['--schema-dir', agents(), '--script', script]
const page = 'https://app.example.com'
let server = await serve('headers.db', [...args, '--trust-user-header', '--cors-origins', page])
const turn = (text = 'hi') => ({threadId: 't', runId: randomUUID(), messages: [{id: randomUUID(), role: 'user', content: text}]})
const boss = {'x-agent-schema-name': 'boss'}
// The conversation of the run that answered, as its journal begins.
const told = async (r, who = {}) => (await call(server, 'GET', `/runs/${r.headers.get('x-run-id')}/journal`, undefined, who)).json.records[0].conversation

// --- p8: who asks, the session, what is added to the instructions
const user = randomUUID()
const who = {'x-user-id': user, 'x-tenant-id': 'shop'}
const id = randomUUID()
const whole = {...who, 'x-user-email': 'ada@example.com', 'x-user-name': 'Ada', 'x-session-name': 'Talk', 'x-session-type': 'support', 'x-added-instruction': 'Answer in rhyme.', 'x-client-id': 'mobile', 'x-is-eval': 'YES', ...boss}
const first = await call(server, 'POST', `/chat/${id}`, turn(), whole)
equal([first.status, first.headers.get('x-session-id')], [200, id], 'a turn with all headers', first.text)
const {context, sections} = await told(first, who)
equal(
  [context.user_id, context.tenant_id, context.user_email, context.user_name, context.session_id, context.agent_schema_uri, context.client_id, context.is_eval, sections],
  [user, 'shop', 'ada@example.com', 'Ada', id, 'boss', 'mobile', true, ['Answer in rhyme.']],
  'each of them says what it is for',
)
const session = async () => (await call(server, 'GET', `/sessions/${id}`, undefined, who)).json
let row = await session()
equal([row.name, row.mode, row.tenant_id, row.user_id], ['Talk', 'support', 'shop', user], 'the session has its name and type')
equal((await call(server, 'POST', `/chat/${id}`, turn(), {...who, ...boss, 'x-session-name': 'Other'})).status, 200, 'a second turn')
row = await session()
equal([row.name, row.mode], ['Other', 'support'], 'changes what its headers name, and nothing else')
equal((await call(server, 'GET', `/sessions/${id}`, undefined, {'x-user-id': randomUUID(), 'x-tenant-id': 'shop'})).status, 404, 'which other users do not see')
const bare = await call(server, 'POST', `/chat/${randomUUID()}`, turn(), {'x-agent-schema-name': '', 'x-added-instruction': '', 'x-is-eval': ' on'})
check(bare.text.includes('In general.'), 'an empty name is that of the agent "general"', bare.text)
const empty = await told(bare)
equal([empty.context.user_id, empty.context.is_eval, empty.sections?.length ?? 0], [undefined, undefined, 0], 'and what is empty, or is no yes, says nothing')
const bad = await call(server, 'POST', `/chat/${randomUUID()}`, turn(), {...boss, 'x-user-id': 'ada'})
equal([bad.status, typeof bad.json.detail], [400, 'string'], 'a user that is no UUID')

// --- REMLight: the path beats the header, the header the body
const path = randomUUID()
const rem = (where, headers, body = {}) => call(server, 'POST', `/api/v1/chat/completions${where}`, {messages: [{role: 'user', content: 'hi'}], stream: false, ...body}, {'x-agent-schema': 'boss', ...headers})
const by_path = await rem(`/${path}`, {'x-session-id': id, 'x-model-name': 'test:other', 'x-is-eval': '1'}, {model: 'test:body'})
equal([by_path.status, by_path.headers.get('x-session-id')], [200, path], 'the session of the path', by_path.text)
const rems = (await told(by_path)).context
equal([rems.default_model, rems.is_eval, rems.agent_schema_uri], ['test:other', true, 'boss'], 'the model of the header')
equal((await told(await rem(`/${path}`, {}, {model: 'test:body'}))).context.default_model, 'test:body', 'or of the body')
equal((await rem('', {'x-session-id': path})).headers.get('x-session-id'), path, 'the session of the header')
const answer = (await rem(`/${path}`, {})).json
equal([answer.object, typeof answer.created, typeof answer.usage, answer.choices[0].message.content], ['chat.completion', 'number', 'object', 'Good morning.'], 'a whole answer')

// --- a request that is repeated, and clients that leave
const again = turn('once')
const repeated = randomUUID()
const once = await call(server, 'POST', `/chat/${repeated}`, again, boss)
const twice = await call(server, 'POST', `/chat/${repeated}`, again, {...boss, 'x-stainless-retry-count': '1'})
equal(twice.headers.get('x-run-id'), once.headers.get('x-run-id'), 'X-Stainless-Retry-Count: the same turn')
equal((await call(server, 'POST', `/chat/${randomUUID()}`, turn(), {...boss, 'x-on-disconnect': 'stay'})).status, 400, 'X-On-Disconnect with another word')

// --- pages of other origins may send all of them, and read what answers bring
const table = /### Headers\n([\s\S]*?)\n#/.exec(readFileSync(`${root}/docs/reference/protocols.md`, 'utf8'))[1]
const names = [...table.matchAll(/`([A-Z][A-Za-z]*-[A-Za-z-]+)`/g)].map((m) => m[1].toLowerCase())
check(names.length > 12, 'the table of headers', names)
const pre = await call(server, 'OPTIONS', '/runs', undefined, {origin: page, 'access-control-request-method': 'POST', 'access-control-request-headers': [...names, 'x-user-id', 'x-tenant-id', 'traceparent', 'x-evil'].join(', ')})
const allowed = pre.headers.get('access-control-allow-headers').split(', ')
equal(names.filter((name) => !allowed.includes(name)), [], 'a page may send each of them')
check(!allowed.includes('x-evil'), 'and no others')
const shown = (await call(server, 'GET', '/sessions', undefined, {origin: page})).headers.get('access-control-expose-headers').toLowerCase()
for (const name of ['x-request-id', 'x-session-id', 'x-run-id', 'retry-after', 'retry-after-ms', 'x-should-retry', 'location', 'content-disposition']) check(shown.includes(name), `a page may read ${name}`, shown)

// --- the paths of their clients
for (const where of ['/health', '/api/v1/health', '/query/health', '/api/v1/query/health']) equal((await call(server, 'GET', where)).json, {status: 'ok'}, `GET ${where}`)
equal((await call(server, 'PUT', '/api/v1/agents', {content: 'kind: agent\nname: cook\ndescription: You cook.\nversion: 1.2.0\n', enabled: true, save_to_file: true})).json, {name: 'cook', version: '1.2.0', changed: true}, 'REMLight: the document is a member')
equal((await call(server, 'GET', '/agents/cook')).json?.description, 'You cook.', 'and kept')
equal((await call(server, 'POST', '/agents/validate', {content: 'name: ['})).json?.valid, false, 'or checked')
await call(server, 'POST', '/entities/ontologies', {name: 'Dentist', content: 'Teeth.'})
equal((await call(server, 'POST', '/api/v1/query', {query: 'LOOKUP dentist', limit: 20})).json?.results.map((r) => r.data.name), ['Dentist'], 'REMLight: a query as text')
equal((await call(server, 'POST', '/api/v1/scenarios/feedback', {session_id: path, score: 0, label: 'Wrong', source: 'user'})).json?.rating, 1, 'and feedback')
for (const [body, status] of [
  [{}, 400],
  [{mode: 'TRAVERSE'}, 400],
  [{mode: 'WANDER', query: 'x'}, 400],
  [{mode: 'fuzzy', query: 'dentst'}, 200],
  [{mode: 'Traverse', key: 'dentist', max_depth: 1}, 200],
  [{mode: 'SEARCH', query: 'teeth', table: 'ontologies', field: 'content', limit: 3, threshold: 0.3}, 200],
]) {
  const r = await call(server, 'POST', '/query/', body)
  equal([r.status, r.status === 200 ? Array.isArray(r.json) : typeof r.json.detail], [status, status === 200 ? true : 'string'], `p8: the query ${JSON.stringify(body)}`)
}
for (const method of ['GET', 'DELETE']) {
  const gone = await call(server, method, `/schemas/${randomUUID()}`)
  equal([gone.status, gone.json?.detail], [404, 'Schema not found'], `${method} of a schema that is not there`)
}
// --- a refusal has the title of its status
for (const [path, headers, status] of [
  [`/${'a'.repeat(9000)}`, {}, 414],
  ['/sessions', {host: 'evil.example'}, 421],
  ['/sessions', {'x-many': Array.from({length: 101}, () => 'a')}, 431],
  ['/sessions//', {}, 400],
  ['/none', {}, 404],
]) {
  const [r, text] = await new Promise((done) => {
    const {hostname, port} = new URL(server.url)
    request({hostname, port, path, headers, agent: false}, (res) => {
      let all = ''
      res.on('data', (part) => (all += part)).on('end', () => done([res, all]))
    }).end()
  })
  const body = JSON.parse(text)
  equal([r.statusCode, body.status, body.title], [status, status, r.statusMessage], `GET ${path.slice(0, 12)}: ${status}`)
}
equal(await server.stop(), 0, 'it ends as it should')

// --- with a key: a header names nobody, and opens nothing
const key = (...more) => JSON.parse(command('keys', 'create', '--json', '--store', store('headers.db'), ...more).out).key
const [ada, reader] = [key('--user', 'ada'), key('--user', 'ada', '--scopes', 'sessions:read')]
const secret = 'a secret of more than thirty-two bytes'
server = await serve('headers.db', [...args, '--trust-user-header', '--jwt-audience', 'reeve'], {REEVE_JWT_SECRET: secret})
const challenge = async (headers, path = '/sessions', method = 'GET', body) => {
  const r = await call(server, method, path, body, headers)
  return [r.status, r.headers.get('www-authenticate'), r.json?.code]
}
equal(await challenge(who), [401, 'Bearer realm="reeve"', 'unauthenticated'], 'X-User-Id alone')
equal((await challenge({'x-api-key': 'rv_none'}))[1], 'Bearer realm="reeve", error="invalid_token"', 'a key that is none')
equal((await challenge({'x-api-key': ada, authorization: `Bearer ${reader}`}))[0], 400, 'two keys')
equal((await challenge({authorization: 'Bearer'}))[0], 400, 'a header that is malformed')
equal(await challenge({'x-api-key': reader}, '/runs', 'POST', {pipeline: 'x'}), [403, 'Bearer realm="reeve", error="insufficient_scope", scope="runs:write"', 'insufficient_scope'], 'a scope that is too small')
equal((await challenge({'x-api-key': ada, 'x-tenant-id': 'shop'}))[0], 403, 'the tenant of others')
const b64 = (x) => Buffer.from(JSON.stringify(x)).toString('base64url')
const token = (claims) => {
  const text = `${b64({alg: 'HS256', typ: 'JWT'})}.${b64({sub: 'eve', aud: 'reeve', tenant_id: 'default', type: 'access', exp: Math.floor(Date.now() / 1000) + 600, ...claims})}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}
const me = async (headers) => (await call(server, 'GET', '/me', undefined, headers)).json
equal((await me({authorization: `Bearer ${token({})}`})).user_id, 'eve', 'a token')
equal((await me({cookie: `access_token=${token({})}`})).user_id, 'eve', 'or the cookie of p8 with one')
equal((await challenge({authorization: `Bearer ${token({type: 'refresh'})}`}))[0], 401, 'that is an access token')
equal(await server.stop(), 0, 'it ends as it should')
finish('headers')
