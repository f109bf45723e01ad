// Many clients at once, of two users, each of which does a bit of everything: nobody gets what is another's, and all that
// they began is there when they are done. Under the thread sanitizer this is what makes the threads of the server meet.
import {randomUUID} from 'node:crypto'
import {agents, call, check, command, equal, file, finish, serve, store} from './kit.mjs'

const clients = 10 // with six requests each at most: an address may have 100 connections
const rounds = process.env.REEVE_SOAK ? 100 : 2
const script = file('talk.yaml', `models:\n  boss:\n    - {contains: hello, chunks: [Good, {text: " morning", delay_ms: 1}, {text: " to all.", delay_ms: 1}]}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n`)
const users = ['ada', 'ben'].map((user) => ({user, 'x-api-key': JSON.parse(command('keys', 'create', '--json', '--store', store('crowd.db'), '--user', user, '--scopes', 'usual').out).key}))
const server = await serve('crowd.db', ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines', '--scripts', 'pipelines/scripts'])
const begun = {ada: new Set(), ben: new Set()}

async function client(n) {
  const {user, ...who} = users[n % 2]
  const ask = async (what, status, method, path, body, headers) => {
    const r = await call(server, method, path, body, {...who, ...headers})
    check(r.status === status, what, String(r.status), r.text)
    return r.json ?? r.text
  }
  for (let i = 0; i < rounds; i++) {
    const id = randomUUID()
    const words = `hello from ${user} ${n} ${i}`
    const chat = {threadId: id, runId: randomUUID(), protocolVersion: '1.0', messages: [{id: randomUUID(), role: 'user', content: words}]}
    const [said, run, row] = await Promise.all([
      ask('a turn', 200, 'POST', `/chat/${id}`, chat, {'x-agent-schema-name': 'boss'}),
      ask('a run', 200, 'POST', '/runs', {pipeline: 'hooks', input: words, wait: true}),
      ask('a row', 200, 'POST', '/entities/ontologies', {name: words}),
      ask('a whole answer', 200, 'POST', '/v1/chat/completions', {model: 'boss', messages: [{role: 'user', content: words}]}),
      ask('metrics', 403, 'GET', '/metrics'),
    ])
    check(said.includes('RUN_FINISHED') && said.includes('to all.'), 'the turn is whole', said)
    equal([run.status, run.result?.user_id], ['completed', user], 'the run is its own')
    begun[user].add(id)
    const [messages, sessions, clone] = await Promise.all([
      ask('messages', 200, 'GET', `/sessions/${id}/messages`),
      ask('sessions', 200, 'GET', '/sessions?limit=200'),
      ask('a copy', 201, 'POST', `/sessions/${id}/clone`, {}),
      ask('events', 200, 'GET', `/runs/${run.id}/events`, undefined, {accept: 'application/x-ndjson'}),
      ask('a query', 200, 'POST', '/query/raw', {query: `LOOKUP "${words}"`}),
      ask('the queue', 200, 'GET', '/tasks?limit=5'),
    ])
    equal(messages.map((m) => m.content), [words, 'Good morning to all.'], 'the messages are those of the session')
    check(sessions.every((s) => s.user_id === user), 'no session of another one')
    await Promise.all([
      ask('a copy is deleted', 200, 'DELETE', `/sessions/${clone.new_session_id}`),
      ask('a row is deleted', 200, 'DELETE', `/entities/ontologies/${row.id}`),
      ask('agents', 200, 'GET', '/agents'),
    ])
  }
}
await Promise.all(Array.from({length: clients}, (_, n) => client(n)))
for (const {user, ...who} of users) {
  const sessions = (await call(server, 'GET', '/sessions?limit=1000', undefined, who)).json
  equal([...begun[user]].filter((id) => !sessions.some((s) => s.id === id)), [], `all sessions of ${user} are there`)
}
equal(await server.stop(), 0, 'it ends as it should')
finish('crowd')
