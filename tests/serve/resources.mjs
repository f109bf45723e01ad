// Scenarios, collections and other rows under paths of their own; what other users have is not there.
import {randomUUID} from 'node:crypto'
import {agents, call, check, command, equal, file, finish, scratch, serve} from './kit.mjs'

const script = file('talk.yaml', `models:\n  boss:\n${'    - {text: Good morning.}\n'.repeat(6)}tools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n`)
const key = (user) => JSON.parse(command('keys', 'create', '--json', '--store', `${scratch}/resources.db`, '--user', user).out).key
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

// --- another user finds nothing of it
const lost = [await ask('GET', `/scenarios/${scenario}`, undefined, bob), await ask('GET', `/scenarios/${randomUUID()}`, undefined, bob)]
equal(lost.map((r) => r.status), [404, 404], 'what is another user\'s is not there')
equal(lost.map((r) => r.json.detail.replace(/[0-9a-f-]{36}/, 'ID'))[0], lost.map((r) => r.json.detail.replace(/[0-9a-f-]{36}/, 'ID'))[1], 'in the same words')
equal((await ask('PUT', `/scenarios/${scenario}`, {name: 'Mine'}, bob)).status, 404, 'nor can it be changed')
equal((await ask('DELETE', `/scenarios/${scenario}`, undefined, bob)).status, 404, 'or deleted')
equal([(await get('/scenarios', bob)).length, (await ask('POST', '/scenarios/search', {}, bob)).json.total], [0, 0], 'or listed')
const reader = {'x-api-key': JSON.parse(command('keys', 'create', '--json', '--store', `${scratch}/resources.db`, '--user', 'ada', '--scopes', 'data:read').out).key}
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
equal((await ask('DELETE', `/sessions/${leeks}`)).json.deleted, true, 'a session is deleted')
equal((await get(`/collections/${id}/sessions`)).map((s) => s.id), [more], 'and not in it any more')
equal((await ask('GET', `/collections/${id}/sessions`, undefined, bob)).status, 404, 'others do not see it')
equal((await ask('POST', `/collections/${id}/sessions`, {session_id: bobs}, bob)).status, 404, 'or change it')

equal(await server.stop(), 0, 'it ends as it should')
finish('resources')
