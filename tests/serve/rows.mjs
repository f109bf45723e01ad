// Sessions, agents, entities, queries and the queue; the table of routes and its description.
// Proves p8.15: Agents, sessions, entities and queries over HTTP
import {randomUUID} from 'node:crypto'
import {pathToFileURL} from 'node:url'
import {agents, call, check, equal, file, finish, load, serve} from './kit.mjs'

const script = file('talk.yaml', 'models:\n  boss:\n    - {text: Good morning.}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const server = await serve('rows.db', ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines'])
const get = async (path) => (await call(server, 'GET', path)).json

// --- routes
equal((await get('/healthz')).status, 'ok', 'it lives')
equal((await get('/readyz')).status, 'ready', 'and is ready')
const described = await call(server, 'GET', '/openapi.json')
const openapi = described.json
const etag = described.headers.get('etag')
const again = await call(server, 'GET', '/openapi.json', undefined, {'if-none-match': etag})
equal([/^"\w+"$/.test(etag), again.status, again.text, again.headers.get('etag')], [true, 304, '', etag], 'who has it is not sent it again')
equal((await call(server, 'GET', '/openapi.json', undefined, {'if-none-match': '"other"'})).text, described.text, 'who has another one is')
equal(openapi.openapi, '3.1.0', 'OpenAPI')
const {Validator} = await import(pathToFileURL(load.resolve('@seriousme/openapi-schema-validator')))
const judged = await new Validator().validate(structuredClone(openapi))
check(judged.valid, 'which others take for OpenAPI', judged.errors)
const paths = Object.entries(openapi.paths)
check(paths.length > 30, 'all paths are described', paths.length)
for (const [path, methods] of paths)
  for (const [method, operation] of Object.entries(methods)) {
    const params = operation.parameters.filter((p) => p.in === 'path').map((p) => `{${p.name}}`)
    equal(path.match(/\{[a-z_]+\}/g) ?? [], params, `${method} ${path}: its parameters`)
    for (const ref of JSON.stringify(operation).matchAll(/#\/components\/schemas\/(\w+)/g))
      check(openapi.components.schemas[ref[1]], `${method} ${path}: its schema ${ref[1]}`)
    // each is there: whatever it answers, it is not "no such path" and not "no such method"
    const r = await call(server, method.toUpperCase(), path.replace(/\{[a-z_]+\}/g, 'none'), method === 'get' ? undefined : {})
    check(r.status !== 405 && !r.text.includes('no such path'), `${method} ${path} is there`, r.status)
    check(r.status < 500, `${method} ${path} does not fail`, r.text)
  }
for (const [, name] of JSON.stringify(openapi).matchAll(/"#\/components\/schemas\/(\w+)"/g)) openapi.components.schemas[name] ?? check(false, `the schema ${name} is there`)
const open = paths.flatMap(([path, methods]) => Object.entries(methods).flatMap(([method, operation]) => Object.entries(operation.responses).flatMap(([status, answer]) => Object.entries(answer.content ?? {}).filter(([type, {schema}]) => /json$/.test(type) && !schema.$ref && !schema.type && !schema.anyOf).map(([type]) => `${method} ${path}: ${status} ${type}`))))
equal(open, [], 'every JSON answer has a schema that says something')
equal(Object.entries(openapi.components.schemas).filter(([, schema]) => !Object.keys(schema).length).map(([name]) => name), [], 'as has every name')
const lost = await call(server, 'GET', '/nowhere')
equal([lost.status, lost.json.code, lost.headers.get('content-type')], [404, 'not_found', 'application/problem+json'], 'no such path')
check(lost.json.request_id === lost.headers.get('x-request-id') && lost.json.error.message, 'its body')
const wrong = await call(server, 'DELETE', '/runs')
equal([wrong.status, wrong.headers.get('allow')], [405, 'GET, HEAD, POST'], 'no such method')
equal((await call(server, 'HEAD', '/healthz')).status, 200, 'HEAD')
equal((await call(server, 'GET', '/sessions?limit=x')).status, 400, 'a number that is none')
equal((await call(server, 'GET', '/sessions?limit=100000')).status, 400, 'a number that is too large')

// --- sessions
const id = randomUUID()
const body = {threadId: id, runId: 'r', messages: [{id: 'm', role: 'user', content: 'hello'}]}
equal((await call(server, 'POST', `/chat/${id}`, body, {'x-agent-schema-name': 'boss', 'x-session-name': 'Leeks'})).status, 200, 'a turn')
equal((await get('/sessions?search=leek')).map((s) => s.id), [id], 'a session is found by its name')
equal((await get('/sessions?search=nothing')).length, 0, 'or not')
equal((await get(`/sessions/${id}/messages`)).map((m) => m.content), ['hello', 'Good morning.'], 'its messages')
equal((await get(`/sessions/${id}/messages?from=2`)).length, 1, 'from one on')
const exported = await call(server, 'GET', `/sessions/${id}/export`)
equal([exported.json.session.id, exported.json.messages.length], [id, 2], 'it is exported')
check(exported.headers.get('content-disposition').includes(`session-${id}.json`), 'as a file')
const clone = await call(server, 'POST', `/sessions/${id}/clone`, {new_name: 'Other', max_messages: 1})
equal([clone.status, clone.json.message_count], [201, 1], 'it is copied')
equal((await get(`/sessions/${clone.json.new_session_id}`)).name, 'Other', 'under a name')
const many = (await get('/sessions')).length
const uncopied = await call(server, 'POST', `/sessions/${id}/clone`, {new_name: 'x'.repeat(5000)})
check(uncopied.status >= 400 && (await get('/sessions')).length === many, 'one that is refused leaves no copy', uncopied)
equal((await call(server, 'PATCH', `/sessions/${id}`, {name: 'Soup', metadata: {k: 1}})).json.name, 'Soup', 'it is renamed')
equal((await call(server, 'PATCH', `/sessions/${id}`, {})).status, 400, 'a change of nothing')
for (const own of ['routing', '_memory', '_']) {
  const refused = await call(server, 'PATCH', `/sessions/${id}`, {name: 'Not this', metadata: {k: 2, [own]: {agent: 'x'}}})
  equal([refused.status, refused.json.detail.startsWith(`metadata.${own} belongs to the engine`)], [400, true], `metadata.${own} is not for clients`, refused.text)
}
const after = await get(`/sessions/${id}`)
equal([after.name, after.metadata], ['Soup', {k: 1}], 'and nothing of such a change is kept')
equal((await call(server, 'DELETE', `/sessions/${id}`)).json.deleted, true, 'it is deleted')
equal((await call(server, 'GET', `/sessions/${id}`)).status, 404, 'and gone')

// --- agents
const text = 'kind: agent\nname: cook\ndescription: You cook.\nversion: 1.0.0\n'
const put = await call(server, 'PUT', '/agents', text)
equal([put.json?.name, put.json?.changed], ['cook', true], 'a document is kept', put.text)
equal((await call(server, 'PUT', '/agents', text.replace('You cook', 'You bake'))).json.changed, true, 'and changed')
equal((await get('/agents/cook')).description, 'You bake.', 'it is read in its flat form')
check((await call(server, 'GET', '/agents/cook/content')).text.includes('name: cook'), 'and as it was written')
check((await get('/agents')).some((a) => a.name === 'cook' && a.source === 'store'), 'it is listed')
equal((await get('/agents/cook/versions')).map((v) => v.change_type), ['insert', 'update'], 'what it was before')
const faulty = await call(server, 'POST', '/agents/validate', 'name: [')
equal([faulty.status, faulty.json?.valid, faulty.json?.findings.length > 0], [200, false, true], 'a document with faults', faulty.text)
equal((await call(server, 'PUT', '/agents', 'name: [')).status, 400, 'which is not kept')
equal((await call(server, 'DELETE', '/agents/cook')).json.deleted, true, 'it is deleted')
equal((await call(server, 'GET', '/agents/cook')).status, 404, 'and gone')
equal((await call(server, 'POST', '/query', {mode: 'LOOKUP', key: 'general'})).json.length, 1, 'one that is built in is a row')
const kept = await call(server, 'DELETE', '/agents/general')
equal(kept.status, 404, 'which no user stored')
check(kept.text.includes('is built in by p8'), 'as the answer says', kept.text)

// --- entities, queries, feedback
const row = (await call(server, 'POST', '/entities/ontologies', {name: 'Dentist', content: 'Teeth.', tags: ['health']})).json
equal((await get(`/entities/ontologies/${row.id}`)).name, 'Dentist', 'a row')
equal((await get('/entities/ontologies?tag=health')).map((r) => r.id), [row.id], 'is found by its tag')
equal((await call(server, 'GET', '/entities/nothing')).status, 404, 'a kind that is none')
equal((await call(server, 'POST', '/entities/ontologies', {nmae: 'x'})).status, 400, 'a column that is none')
equal((await call(server, 'POST', '/query', {mode: 'LOOKUP', key: 'dentist'})).json.map((r) => r.data.name), ['Dentist'], 'a query by its parts')
equal((await call(server, 'POST', '/query/raw', {query: 'LOOKUP dentist'})).json.results.length, 1, 'a query as text')
const sql = await call(server, 'POST', '/query', {mode: 'SQL', query: 'SELECT name FROM ontologies'})
equal(sql.json, [{name: 'Dentist'}], 'and one of SQL')
const refused = await call(server, 'POST', '/query/raw', {query: 'DELETE FROM ontologies'})
equal([refused.status, typeof refused.json.detail], [403, 'string'], 'a statement that writes')
equal((await call(server, 'POST', '/query', {mode: 'LOOKUP'})).status, 400, 'no key')
const copy = clone.json.new_session_id
const liked = (await call(server, 'POST', '/feedback', {session_id: copy, score: 0.75, label: 'Helpful', comment: 'good'})).json
equal([liked.rating, liked.metadata.label], [4, 'Helpful'], 'feedback')
equal((await call(server, 'POST', '/feedback', {session_id: copy, rating: 2})).json.rating, 2, 'a rating')
const [said] = await get('/entities/messages')
equal((await call(server, 'POST', '/feedback', {message_id: said.id, rating: 3})).json.rating, 3, 'a rating of a message')
for (const [body, status, words] of [
  [{session_id: copy, score: 2}, 400, 'score must be'],
  [{session_id: copy, rating: 6}, 400, 'rating must be a whole number from 1 to 5'],
  [{session_id: copy, rating: '5'}, 400, 'rating must be'],
  [{session_id: copy, rating: 1, score: 0}, 400, 'send one of them'],
  [{session_id: copy, ratng: 1}, 400, 'did you mean \\"rating\\"?'],
  [{}, 400, 'what the feedback is about'],
  [{rating: 1}, 400, 'what the feedback is about'],
  [{session_id: copy}, 400, 'the feedback is empty'],
  [{session_id: 'nope', rating: 1}, 404, 'nope'],
  [{session_id: id, rating: 1}, 404, id],
  [{session_id: 5, rating: 1}, 400, 'session_id'],
  [{message_id: 'nope', rating: 1}, 404, 'nope'],
  [{session_id: copy, message_id: 'nope', rating: 1}, 404, 'nope'],
])
  for (const path of ['/feedback', '/api/v1/scenarios/feedback']) {
    const a = await call(server, 'POST', path, body)
    check(a.status === status && JSON.stringify(a.json).includes(words), `${path} refuses ${JSON.stringify(body)}`, a)
  }
equal((await get('/feedback')).length, 3, 'and nothing of it is kept')
// a misspelt condition is not one that every row meets
for (const [path, body, words] of [
  ['/sessions/search', {queri: 'x'}, 'did you mean \\"query\\"?'],
  ['/moments/search', {categori: 'x'}, 'did you mean \\"category\\"?'],
  ['/scenarios/search', {status: 'active', tag: ['x']}, 'did you mean \\"tags\\"?'],
  ['/scenarios', {naem: 'x'}, 'naem'],
]) {
  const a = await call(server, 'POST', path, body)
  check(a.status === 400 && JSON.stringify(a.json).includes(words), `${path} refuses ${JSON.stringify(body)}`, a)
}
equal((await call(server, 'DELETE', `/entities/ontologies/${row.id}`)).json.deleted, true, 'a row is deleted')
equal((await get('/entities/ontologies')).length, 0, 'and gone')

// --- the queue
const run = (await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', wait: true})).json
let tasks = []
while (!tasks.length) tasks = (await get('/tasks')).filter((t) => ['completed', 'failed'].includes(t.status)) // the worker tells its end behind that of the run
equal([tasks.length, (await get('/tasks?status=completed')).length], [1, 1], 'a run is a task')
check((await get(`/tasks/${tasks[0]?.id}`)).events.length > 1, 'with its events')
equal((await call(server, 'POST', `/tasks/${tasks[0]?.id}/cancel`)).status, 409, 'what is over is not cancelled')
equal([(await get('/schedules')).length, (await get('/usage')).length >= 0, run.status], [0, true, 'completed'], 'lists')
equal(await server.stop(), 0, 'it ends as it should')
finish('rows')
