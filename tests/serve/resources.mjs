// Scenarios, collections and other rows under paths of their own; what other users have is not there.

// Proves remlight.15: The HTTP API with scenarios, collections and feedback
import {randomUUID} from 'node:crypto'
import {agents, call, check, command, equal, file, finish, serve, store} from './kit.mjs'

const script = file('talk.yaml', `models:\n  boss:\n${'    - {text: Good morning.}\n'.repeat(6)}tools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n`)
const key = (user) => JSON.parse(command('keys', 'create', '--json', '--store', store('resources.db'), ...(user ? ['--user', user] : [])).out).key
const ada = {'x-api-key': key('ada')}
const bob = {'x-api-key': key('bob')}
const server = await serve('resources.db', ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines'])
const ask = (method, path, body, who = ada) => call(server, method, path, body, who)
const get = async (path, who) => (await ask('GET', path, undefined, who)).json

// Three sessions of ada, one of bob
const talk = async (words, name, who = ada) => {
  const id = randomUUID()
  const body = {threadId: id, runId: 'r', messages: [{id: 'm', role: 'user', content: words}]}
  equal((await call(server, 'POST', `/chat/${id}`, body, {...who, 'x-agent-schema-name': 'boss', 'x-session-name': name})).status, 200, `a turn: ${name}`)
  return id
}
const leeks = await talk('how do I wash leeks', 'Soup')
const rain = await talk('will it RAIN tomorrow', 'Weather')
const more = await talk('and the day after', 'Weather again')
const bobs = await talk('leeks of bob', 'Leeks', bob)

// --- sessions by what was said
equal((await get('/sessions?search=LEEKS')).map((s) => s.id), [leeks], 'a session is found by its words')
equal((await get('/sessions?search=weather')).map((s) => s.id).sort(), [rain, more].sort(), 'and by its name')
equal((await get('/sessions?search=weather&limit=1&offset=1')).length, 1, 'one of them')
equal((await get('/sessions?search=leeks', bob)).map((s) => s.id), [bobs], 'each finds their own')

// --- scenarios
const made = await ask('POST', '/scenarios', {name: 'Wash', description: 'how leeks are washed', session_id: leeks, agent_name: 'boss', tags: ['food', 'soup']})
equal([made.status, made.json?.status, made.json?.user_id], [201, 'active', 'ada'], 'a scenario', made.text)
const scenario = made.json.id
equal(made.headers.get('location'), `/scenarios/${scenario}`, 'where it is')
equal((await get(`/scenarios/${scenario}`)).name, 'Wash', 'it is read')
const second = (await ask('POST', '/scenarios', {name: 'Wash', description: 'rain', status: 'draft', tags: ['food']})).json
check(second.id !== scenario, 'another one may have its name')
equal((await get('/scenarios')).map((s) => s.id), [second.id, scenario], 'both are listed, the newest first')
equal((await get('/scenarios?status=draft')).map((s) => s.id), [second.id], 'by their status')
equal((await get(`/scenarios?session_id=${leeks}`)).map((s) => s.id), [scenario], 'by their session')
equal((await ask('PUT', `/scenarios/${scenario}`, {status: 'done'})).json.name, 'Wash', 'a change leaves what it does not name')
equal((await ask('PATCH', `/scenarios/${scenario}`, {name: 'Rinse'})).json.status, 'done', 'so does PATCH')
equal((await ask('POST', '/scenarios', {nmae: 'x'})).status, 400, 'a column that is none')
const found = async (body, kind = 'scenarios') => (await ask('POST', `/${kind}/search`, body)).json
equal((await found({tags: ['food', 'soup']})).results.map((s) => s.id), [scenario], 'all tags')
equal((await found({tags: ['nothing', 'soup'], tag_match: 'any'})).total, 1, 'any tag')
equal((await found({name_contains: 'RINS'})).results.map((s) => s.id), [scenario], 'a part of the name')
equal((await found({status: 'draft', agent_name: 'boss'})).total, 0, 'columns')
equal((await found({created_after: '2100-01-01T00:00:00Z'})).total, 0, 'a time')
const meant = await found({query: 'leeks'})
equal(meant.results.map((s) => s.id), [scenario], 'by meaning', JSON.stringify(meant))
equal((await ask('POST', '/scenarios/search', {limit: 0})).status, 400, 'a limit that is none')

equal((await get('/api/v1/scenarios')).length, 2, 'also under the paths of REMLight')
equal((await ask('GET', '/api/v1/nothing')).status, 404, 'but not any')

for (const body of [{}, {name: ''}, {name: 5}, {description: 'x'}])
  for (const path of ['/scenarios', '/collections']) {
    const refused = await ask('POST', path, body)
    equal([refused.status, refused.text.includes('name')], [400, true], `${path} without a name: ${JSON.stringify(body)}`)
  }

equal((await ask('PUT', `/scenarios/${scenario}`, {name: ''})).status, 400, 'nor can a name be taken away')

// --- another user finds nothing of it
const lost = [await ask('GET', `/scenarios/${scenario}`, undefined, bob), await ask('GET', `/scenarios/${randomUUID()}`, undefined, bob)]
equal(lost.map((r) => r.status), [404, 404], 'what is another user\'s is not there')
equal(lost.map((r) => r.json.detail.replace(/[0-9a-f-]{36}/, 'ID'))[0], lost.map((r) => r.json.detail.replace(/[0-9a-f-]{36}/, 'ID'))[1], 'in the same words')
equal((await ask('PUT', `/scenarios/${scenario}`, {name: 'Mine'}, bob)).status, 404, 'nor can it be changed')
equal((await ask('DELETE', `/scenarios/${scenario}`, undefined, bob)).status, 404, 'or deleted')
equal([(await get('/scenarios', bob)).length, (await ask('POST', '/scenarios/search', {}, bob)).json.total], [0, 0], 'or listed')
const reader = {'x-api-key': JSON.parse(command('keys', 'create', '--json', '--store', store('resources.db'), '--user', 'ada', '--scopes', 'data:read').out).key}
equal((await ask('POST', '/scenarios', {name: 'x'}, reader)).status, 403, 'a key that may only read')
equal((await ask('DELETE', `/scenarios/${scenario}`)).json.deleted, true, 'it is deleted')
equal((await ask('GET', `/scenarios/${scenario}`)).status, 404, 'and gone')

// --- collections
const group = await ask('POST', '/collections', {name: 'Best', description: 'of all'})
equal(group.status, 201, 'a collection', group.text)
const id = group.json.id
equal((await ask('POST', '/collections', {name: 'Best'})).status, 409, 'its name is taken')
equal((await ask('POST', '/collections', {name: 'Best'}, bob)).status, 201, 'but not for others')
const other = (await ask('POST', '/collections', {name: 'Other'})).json.id
equal((await ask('PUT', `/collections/${other}`, {name: 'Best'})).status, 409, 'nor can another one get it')
equal((await ask('PUT', `/collections/${id}`, {name: 'Best', description: 'of some'})).json.description, 'of some', 'it may keep it')
equal((await ask('POST', `/collections/${id}/sessions`, {session_id: leeks})).json, {collection_id: id, added: 1}, 'a session is put in')
equal((await ask('POST', `/collections/${id}/sessions/batch`, {session_ids: [leeks, rain]})).json.added, 1, 'once')
equal((await ask('POST', `/collections/${id}/sessions`, {session_id: bobs})).status, 404, 'but not that of another user')
equal((await ask('POST', `/collections/${id}/sessions`, {})).status, 400, 'none')
equal((await get(`/collections/${id}/sessions`)).map((s) => s.id), [leeks, rain], 'they are listed')
equal((await get(`/collections/${id}/sessions?offset=1&limit=1`)).map((s) => s.id), [rain], 'or some of them')
equal((await ask('POST', `/collections/${id}/sessions/from-query`, {search: 'day after'})).json.added, 1, 'what a search finds')
equal((await ask('DELETE', `/collections/${id}/sessions/${rain}`)).json.deleted, true, 'one is taken out')
equal((await ask('DELETE', `/collections/${id}/sessions/${rain}`)).status, 404, 'once')
const all = await get(`/collections/${id}/export`)
equal([all.collection.name, all.sessions.map((s) => s.session_id), all.sessions[0].messages.length, typeof all.exported_at], ['Best', [leeks, more], 2, 'string'], 'it is exported')
const copied = (await ask('POST', `/sessions/${more}/clone`, {add_to_collection: other})).json
equal((await get(`/collections/${other}/sessions`)).map((s) => s.id), [copied.new_session_id], 'a copy is put into a collection')
equal((await ask('DELETE', `/sessions/${copied.new_session_id}`)).json.deleted, true, 'and deleted again')
equal((await ask('DELETE', `/sessions/${leeks}`)).json.deleted, true, 'a session is deleted')
equal((await get(`/collections/${id}/sessions`)).map((s) => s.id), [more], 'and not in it any more')
equal((await ask('GET', `/collections/${id}/sessions`, undefined, bob)).status, 404, 'others do not see it')
equal((await ask('POST', `/collections/${id}/sessions`, {session_id: bobs}, bob)).status, 404, 'or change it')

// --- what is remembered
const moment = await ask('POST', '/moments', {name: 'Lunch', moment_type: 'note', summary: 'leeks again', source_session_id: rain})
equal([moment.status, moment.json?.session_id, moment.json?.moment?.name], [201, rain, 'Lunch'], 'a moment with its session', moment.text)
equal((await get(`/sessions/${rain}/moments`)).map((m) => m.name), ['Lunch'], 'the session has it')
equal((await ask('GET', `/sessions/${rain}/moments`, undefined, bob)).status, 404, 'and nobody else')
const line = await get(`/sessions/${rain}/timeline`)
check(line.some((e) => e.event_type === 'moment') && line.filter((e) => e.event_type === 'message').length === 2, 'its timeline', line)
equal((await ask('GET', `/sessions/${rain}/timeline`, undefined, bob)).status, 404, 'which others do not see')
const days = await get('/feed?days=3&future=true')
check(days.length >= 1 && JSON.stringify(days).includes('Lunch'), 'the feed', days)
equal((await get('/moments?moment_type=note')).map((m) => m.name), ['Lunch'], 'moments by their type')
equal((await ask('PATCH', `/moments/${moment.json.moment.id}`, {summary: 'soup'})).json.summary, 'soup', 'one is changed')
equal((await ask('POST', '/sessions/search', {name: 'weather', page_size: 1})).json.total, 2, 'sessions are searched by their columns')
equal((await ask('POST', '/sessions/search', {query: 'a soup of leeks'})).json.results.map((s) => s.id), [rain], 'and by what their moments say')
equal((await ask('POST', '/sessions/search', {query: 'a soup of leeks'}, bob)).json.results.map((s) => s.id), [bobs], 'of which others see only their own')
const rated = (await ask('POST', '/feedback', {session_id: rain, score: 1, comment: 'fine'})).json
equal((await get(`/feedback?session_id=${rain}`)).map((f) => f.id), [rated.id], 'ratings of a session')
equal((await get('/feedback', bob)).length, 0, 'of one user')
equal((await ask('DELETE', `/feedback/${rated.id}`)).json.deleted, true, 'one is deleted')
const profile = (await ask('POST', '/users', {name: 'Ada', email: 'ada@example.com', interests: ['engines']})).json
equal((await get('/users?email=ada@example.com')).map((u) => u.id), [profile.id], 'a profile')
equal((await ask('PATCH', `/users/${profile.id}`, {interests: ['leeks']})).json.interests, ['leeks'], 'is changed')
equal((await ask('GET', `/users/${profile.id}`, undefined, bob)).status, 404, 'by its user')
const me = await get('/me')
equal([me.level, me.user_id], ['user', 'ada'], 'who asks')

// --- texts and their tree
const sent = await ask('POST', '/files', {files: [
  {path: 'notes/soup/leeks.md', content: '# Leeks\n\nWash them. See [rain](../rain.md).\n'},
  {path: 'notes/rain.md', content: '# Rain\n\nIt falls.\n'},
]})
equal([sent.status, sent.json?.map((f) => f.status)], [201, ['added', 'added']], 'texts are sent', sent.text)
equal((await ask('POST', '/ontology/import', {path: 'notes/rain.md', content: '# Rain\n\nIt falls.\n'})).json.map((f) => f.status), ['unchanged'], 'once')
equal((await ask('POST', '/files', {path: 'notes/rain.md', content: '# Rain\n\nIt falls a lot.\n'})).json.map((f) => f.status), ['changed'], 'or changed')
for (const path of ['../x.md', '/etc/passwd', 'a//b', 'a/./b', 'a/', ''])
  equal((await ask('POST', '/files', {path, content: 'x'})).status, 400, `not a path: ${path}`)
const tree = await get('/ontology/tree')
const shape = (nodes) => nodes.map((n) => (n.children ? [n.name, shape(n.children)] : n.name))
equal([shape(tree.tree), tree.files], [[['notes', ['rain.md', ['soup', ['leeks.md']]]]], 2], 'the tree', JSON.stringify(tree))
const page = await get(`/ontology/content/${encodeURIComponent('notes/rain.md')}`)
equal([page.path, page.content.includes('a lot')], ['notes/rain.md', true], 'a page', page)
equal((await ask('GET', `/ontology/content/${encodeURIComponent('notes/rain.md')}`, undefined, bob)).status, 404, 'of its user')
equal((await get('/ontology/tree', bob)).files, 0, 'bob has none')
equal(tree.truncated, false, 'which is whole')
const parts = [await get('/ontology/tree?limit=1'), await get('/ontology/tree?limit=1&offset=1')]
equal(parts.map((t) => [shape(t.tree), t.files, t.truncated]), [[[['notes', ['rain.md']]], 1, true], [[['notes/soup', ['leeks.md']]], 1, false]], 'or a part of it, which says so')
equal((await ask('GET', '/ontology/tree?limit=10001')).status, 400, 'within bounds')
const eve = {'x-api-key': key('eve')}
const odd = ['file:///a/%FF.md', 'file:///a/%00x.md', 'file:///a/%01.md', 'file:///a/b%01', 'file:///a/b/c.md', 'file:///' + 'x/'.repeat(40000) + 'y', 'note.md']
for (const uri of odd) equal((await ask('POST', '/entities/files', {name: uri.slice(-9), uri}, eve)).status, 200, `a file of ${uri.slice(0, 20)}`)
equal((await ask('POST', '/entities/files', {name: 'no uri'}, eve)).status, 200, 'a file without an address')
const strange = await ask('GET', '/ontology/tree', undefined, eve)
equal([strange.status, strange.json?.files, shape(strange.json?.tree ?? []).slice(0, 2)], [200, 8, [['a', ['\x01.md', '%00x.md', '%FF.md', ['b', ['c.md']], 'b\x01']], 'no uri']], 'addresses that are not text, or long', strange.text.slice(0, 300))
equal((await ask('GET', `/ontology/content/${encodeURIComponent('a/%FF.md')}`, undefined, eve)).json?.path, 'a/%FF.md', 'and such a page')
const chunks = (await get('/entities/resources')).length
equal((await ask('DELETE', `/files/${sent.json[1].id}`, undefined, bob)).status, 404, 'nor deletes he one')
equal((await ask('DELETE', `/files/${sent.json[1].id}`)).json.deleted, true, 'a file is deleted')
check((await get('/entities/resources')).length < chunks && (await get('/ontology/tree')).files === 1, 'with its chunks')

// --- declarations
const declared = await ask('POST', '/schemas/', {name: 'Invoice', kind: 'model', description: 'a bill', json_schema: {type: 'object'}})
equal([declared.status, declared.json?.kind, declared.json?.json_schema], [201, 'model', {type: 'object'}], 'a declaration', declared.text)
const again = (await ask('POST', '/schemas/', {name: 'Invoice', kind: 'model', description: '', version: '2'})).json
equal([again.id, again.description, again.version], [declared.json.id, 'a bill', '2'], 'the same name is the same row, and what is empty stays')
equal((await get('/schemas/?kind=model')).map((s) => s.name), ['Invoice'], 'by kind')
equal((await ask('GET', `/schemas/${declared.json.id}`, undefined, bob)).status, 404, 'not for others')
const cook = await ask('POST', '/schemas', {name: 'cook', kind: 'agent', content: 'You cook soup.', json_schema: {tags: ['food'], version: '1.0.0'}})
equal([cook.status, cook.json?.name, cook.json?.content], [201, 'cook', 'You cook soup.'], 'an agent', cook.text)
equal((await get('/agents/cook')).description, 'You cook soup.', 'which is one of the agents')
equal((await ask('POST', '/schemas', {name: 'bad name!', kind: 'agent', content: 'x'})).status, 400, 'a faulty one')
const seek = async (body) => (await ask('POST', '/agents/search', body)).json.results?.map((a) => a.name)
equal(await seek({query: 'coo', search_type: 'name'}), ['cook'], 'agents by name')
equal(await seek({query: 'food', search_type: 'tags'}), ['cook'], 'by tags')
check((await seek({query: 'soup'})).includes('cook'), 'by what they do')
equal((await ask('POST', '/agents/search', {query: 'x', search_type: 'no'})).status, 400, 'another way')
equal((await ask('POST', '/schemas', {name: 'cook', kind: 'agent', content: 'You bake.'})).status, 201, 'it is changed')
equal((await get('/agents/cook/history')).length, 2, 'what it was')
equal([(await get('/agents/cook/history/1/content')).description, (await ask('GET', '/agents/cook/history/3/content')).status], ['You cook soup.', 404], 'at first')
equal((await ask('DELETE', `/schemas/${cook.json.id}`)).json.deleted, true, 'it is deleted')
equal((await ask('GET', '/agents/cook')).status, 404, 'and gone')

// --- the queue
const task = await ask('POST', '/tasks', {type: 'news', payload: {a: 1}, key: 'k', scheduled_at: '2100-01-01T00:00:00Z', priority: 3})
equal([task.status, task.json?.is_new], [201, true], 'a task', task.text)
equal([(await get(`/tasks/${task.json.id}`)).status, (await ask('POST', '/tasks', {type: 'news', key: 'k'})).json], ['waiting', {id: task.json.id, is_new: false}], 'waits, and is there once')
equal((await ask('GET', `/tasks/${task.json.id}`, undefined, bob)).status, 404, 'not for others')
for (const body of [{}, {type: 'run'}, {type: 'x', payload: 1}, {type: 'x', priority: 'y'}, {type: 'x', scheduled_at: 'soon'}])
  equal((await ask('POST', '/tasks', body)).status, 400, `not a task: ${JSON.stringify(body)}`)
const plan = await ask('POST', '/schedules', {name: 'greet', cron: '0 9 * * *', zone: 'Europe/Berlin', pipeline: 'hooks', input: 'hi'})
equal([plan.status, plan.json?.name, plan.json?.pipeline, plan.json?.next?.length], [201, 'greet', 'hooks', 5], 'a schedule of runs', plan.text)
equal((await ask('POST', '/schedules', {name: 'greet', cron: '@daily', type: 'news'})).status, 409, 'its name is taken')
equal((await get('/schedules/greet')).cron, '0 9 * * *', 'it is read by its name')
equal((await ask('GET', '/schedules/greet', undefined, bob)).status, 404, 'not by others')
for (const [method, body] of [['PUT', {cron: '@daily', type: 'x'}], ['PATCH', {cron: '@daily'}], ['DELETE', undefined]])
  equal((await ask(method, '/schedules/greet', body, bob)).status, 404, `${method} of another user's`)
const moved = await ask('PATCH', '/schedules/greet', {cron: '30 8 * * *', priority: 2})
equal([moved.status, moved.json?.cron, moved.json?.zone, moved.json?.pipeline, moved.json?.id], [200, '30 8 * * *', 'Europe/Berlin', 'hooks', plan.json.id], 'it fires at other times', moved.text)
equal((await ask('PATCH', '/schedules/greet', {cron: 'never'})).status, 400, 'at times that are none')
const swapped = await ask('PUT', '/schedules/greet', {at: '2100-01-01T00:00', type: 'news', payload: {b: 2}})
equal([swapped.status, swapped.json?.task_type, swapped.json?.payload, swapped.json?.pipeline], [200, 'news', {b: 2}, null], 'another one in its place', swapped.text)
equal((await get('/schedules')).map((s) => s.name), ['greet'], 'there is one')
const operator = {'x-api-key': key('')}
const kept = await ask('PUT', '/schedules/greet', {cron: '@daily', type: 'news'}, operator)
equal([kept.status, kept.json?.user_id, kept.json?.cron], [200, 'ada', '@daily'], 'put by the operator, it stays its user\'s', kept.text)
const urgent = await ask('PATCH', '/schedules/greet', {priority: -1}, operator)
equal([urgent.json?.priority, urgent.json?.id, urgent.json?.user_id, urgent.json?.next_at], [-1, kept.json.id, 'ada', kept.json.next_at], 'another priority is all that changes', urgent.text)
equal((await ask('PUT', '/schedules/greet', {cron: '@daily', type: 'news', user_id: 'bob'}, operator)).json.user_id, 'bob', 'unless the operator names another user')
equal((await ask('PUT', '/schedules/greet', {cron: '@daily', type: 'news', user_id: 'ada'}, operator)).json.user_id, 'ada', 'or the first one again')
for (const body of [{name: 'x'}, {name: 'x', cron: '@daily'}, {name: 'x', cron: '@daily', at: '2100-01-01T00:00', type: 'n'}, {name: 'x', cron: '@daily', type: 'run'}, {name: 'x', at: '2000-01-01T00:00', type: 'n'}])
  check([400, 409].includes((await ask('POST', '/schedules', body)).status), `not a schedule: ${JSON.stringify(body)}`)
equal((await ask('POST', '/schedules', {name: 'x', cron: '@daily', pipeline: 'nothing'})).status, 404, 'a pipeline that is none')
equal((await ask('DELETE', '/schedules/greet')).json.deleted, true, 'it is ended')
equal((await ask('GET', '/schedules/greet')).status, 404, 'and gone')

// --- what clients of REMLight list, and what is not built
const models = await get('/api/v1/models')
equal(models.models.map((m) => [m.id, m.name, m.provider]), [['openai:gpt-4.1', 'gpt-4.1', 'openai'], ['openai:gpt-4.1-mini', 'gpt-4.1-mini', 'openai'], ['test:model', 'model', 'test']], 'models that agents name', models)
equal([(await get('/api/v1/models/test:model')).name, (await ask('GET', '/models/other')).status], ['model', 404], 'or one of them')
const servers = await get('/api/v1/servers')
equal(servers.map((s) => [s.pipeline, s.name, s.server_type, s.endpoint]), [['mcp-tools', 'notes', 'stdio', null], ['rest-tools', 'served', 'rest', 'http://127.0.0.1:8127']], 'servers of tools that pipelines name')
equal((await get('/servers?name=served')).length, 1, 'or one of them')
const offered = await get('/mcp-tools')
check(offered.some((t) => t.name === 'hooks' && t.inputSchema.type === 'object') && offered.some((t) => t.name === 'query'), 'tools that MCP clients are offered', offered.map((t) => t.name))
for (const [method, path, status] of [
  ['PUT', '/api/v1/servers', 405], ['GET', '/api/v1/servers/served', 404], ['POST', '/api/v1/servers/search', 404], ['POST', '/api/v1/tools/register', 404],
  ['PUT', '/api/v1/tools', 405], ['POST', '/api/v1/tools/search', 404], ['POST', '/api/v1/mcp-tools/search', 404], ['POST', '/api/v1/mcp-tools/parse-file', 404],
  ['GET', '/api/v1/ontology/default-path', 404],
])
  equal((await ask(method, path, method === 'GET' ? undefined : {})).status, status, `not built: ${method} ${path}`)

// --- what was used, vectors, readiness
const used = await get('/usage/answers?by=agent')
equal([used.length, used[0]?.agent_name, used[0]?.answers, Object.keys(used[0] ?? {}).includes('model')], [1, 'boss', 2, false], 'what answers took', used)
// Proves 10/totals: What models took is summed up for each user, agent and model
equal((await get('/usage/answers?by=user,model')).map((u) => u.user_id), ['ada'], 'by user, one\'s own')
equal((await get('/usage/answers?since=2100-01-01T00:00:00Z')).length, 0, 'since a time')
equal((await ask('GET', '/usage/answers?by=colour')).status, 400, 'by something else')
const vectors = (await ask('POST', '/v1/embeddings', {input: ['leeks', 'rain'], model: 'hash-ngram'})).json
equal([vectors.data.length, vectors.data[1].index, vectors.data[0].embedding.length, vectors.model], [2, 1, 384, 'hash-ngram'], 'vectors')
const packed = (await ask('POST', '/v1/embeddings', {input: 'leeks', encoding_format: 'base64'})).json
equal([...new Float32Array(new Uint8Array(Buffer.from(packed.data[0].embedding, 'base64')).buffer)].slice(0, 9), vectors.data[0].embedding.slice(0, 9).map(Math.fround), 'as base64 the same')
for (const body of [{}, {input: []}, {input: 1}, {input: 'x', model: 'nothing'}, {input: 'x', encoding_format: 'y'}, {input: ['']}])
  equal((await ask('POST', '/v1/embeddings', body)).status, 400, `no vectors: ${JSON.stringify(body)}`)
for (const dimensions of [-1, 0, 8193, '9', 1.5]) {
  const none = await ask('POST', '/v1/embeddings', {input: 'x', model: 'hash-ngram', dimensions})
  equal([none.status, none.text.includes('"dimensions\\" must be a whole number from 1 to 8192')], [400, true], `no vectors of ${dimensions}`, none.text)
}
const fixed = await ask('POST', '/v1/embeddings', {input: 'x', model: 'hash-ngram', dimensions: 8})
equal([fixed.status, fixed.text.includes('384')], [400, true], 'the model has no choice', fixed.text)
equal((await ask('POST', '/v1/embeddings', {input: 'x', model: 'hash-ngram', dimensions: 384})).json?.data[0].embedding.length, 384, 'but the one it has')
equal((await call(server, 'GET', '/readyz')).json, {status: 'ready', checks: {store: 'ok', worker: 'ok', draining: false}, reasons: []}, 'it is ready, and says why')

// a response goes on for its own user only
const first = await ask('POST', '/v1/responses', {model: 'boss', input: 'one'})
const goOn = (who) => ask('POST', '/v1/responses', {model: 'boss', input: 'two', previous_response_id: first.json.id}, who)
const theirs = await goOn(bob)
equal([theirs.status, theirs.json?.error?.code], [400, 'previous_response_not_found'], 'a response of another user')
equal((await goOn(ada)).headers.get('x-session-id'), first.headers.get('x-session-id'), 'and of oneself')


// what is not of its type is refused, never passed over
for (const tags of ['x', {a: 1}, [7], Array(300).fill('t')]) check([400, 413].includes((await ask('POST', '/sessions/search', {tags})).status), `tags: ${JSON.stringify(tags).slice(0, 40)}`)
for (const [path, status] of [['/feed?future=banana', 400], ['/feed?future=0', 200], ['/feed?future=1', 200], ['/runs?limit=%205', 400], ['/runs?limit=%2B5', 400], ['/runs?limit=5', 200]])
  equal((await ask('GET', path)).status, status, path)
equal(await server.stop(), 0, 'it ends as it should')
finish('resources')
