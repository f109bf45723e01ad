// Streams that survive: clients that lose their connection or their server come back and are sent what follows, as it
// is stored; a request that is repeated begins no second turn.
// Proves p8.W40
import {randomUUID} from 'node:crypto'
import {join} from 'node:path'
import {DatabaseSync} from 'node:sqlite'
import {until} from '../kit/until.mjs'
import {agents, call, check, equal, file, finish, load, scratch, serve} from './kit.mjs'

const {EventSource} = load('eventsource')
const script = file(
  'long.yaml',
  `models:
  boss:
    - {chunks: [{thinking: Let me, delay_ms: 20}, {thinking: " count.", delay_ms: 20}, {text: One, delay_ms: 20}, {text: " two", delay_ms: 20}, {text: " three", delay_ms: 20}, {text: " four", delay_ms: 20}]}
    - {text: I will., tool_calls: [{name: wipe, arguments: {path: /tmp/x}}]}
    - {text: It is gone.}
    - {text: Late.}
tools:
  wipe: {risk: destructive, calls: [{result: {wiped: true}}]}
  search: [{result: {}}]
`,
)
const args = ['--schema-dir', agents(), '--script', script, '--client-grace', 'never']
const name = {'x-agent-schema-name': 'boss', 'content-type': 'application/json'}
const body = (id, text, more = {}) => ({threadId: id, runId: randomUUID(), protocolVersion: '1.0', messages: [{id: randomUUID(), role: 'user', content: text}], ...more})

// A client that reads until a word comes, then leaves: {run, bytes}.
async function part(server, path, sent, upto, headers = {}) {
  const leave = new AbortController()
  const r = await fetch(server.url + path, {method: sent ? 'POST' : 'GET', headers: {...name, ...headers}, body: sent && JSON.stringify(sent), signal: leave.signal})
  let bytes = ''
  if (r.status === 200) {
    const text = new TextDecoder()
    try {
      for await (const chunk of r.body) {
        bytes += text.decode(chunk, {stream: true})
        if (upto && bytes.includes(upto)) break
      }
    } catch {}
  }
  leave.abort()
  return {status: r.status, run: r.headers.get('x-run-id'), bytes: bytes.replace(/^(:.*\n\n)+/, '')}
}
const plain = (bytes) => bytes.split('\n\n').filter((b) => b && !b.startsWith(':'))
const whole = (bytes) => plain(bytes.slice(0, bytes.lastIndexOf('\n\n') + 2))
const id = (block) => /\nid: (.*)$/.exec(block)?.[1]
const events = (blocks) => blocks.map((b) => JSON.parse(/data: (.*)/.exec(b)[1]))

let server = await serve('streams.db', args)
const session = randomUUID()
const first = body(session, 'count')
const seen = await part(server, `/chat/${session}`, first, 'two')
equal(seen.status, 200, 'a turn')
const rest = await part(server, `/runs/${seen.run}/stream`, undefined, '', {'last-event-id': id(whole(seen.bytes).at(-1))})
const all = await part(server, `/runs/${seen.run}/stream`)
equal([...whole(seen.bytes), ...plain(rest.bytes)], plain(all.bytes), 'what follows joins what was seen')
equal(plain(all.bytes).map(id).length, new Set(plain(all.bytes).map(id)).size, 'each block has an id of its own')
check(all.bytes.includes('RUN_FINISHED'), 'and the turn has its end')
const thoughts = events(plain(all.bytes)).filter((e) => e.type === 'REASONING_MESSAGE_CONTENT')
equal(thoughts.map((e) => e.delta).join(''), 'Let me count.', 'thinking is told to clients that come back, too')
for (const block of plain(all.bytes)) {
  const from = await part(server, `/runs/${seen.run}/stream`, undefined, '', {'last-event-id': id(block)})
  const follows = plain(all.bytes).slice(plain(all.bytes).indexOf(block) + 1)
  equal([from.status, plain(from.bytes)], follows.length ? [200, follows] : [204, []], `behind ${id(block)}`)
}
const repeated = await part(server, `/chat/${session}`, first)
equal(repeated.bytes, all.bytes, 'a repeated request is the same turn')
equal((await call(server, 'GET', `/sessions/${session}/messages`)).json.length, 2, 'which is there once')
equal((await part(server, `/runs/${seen.run}/stream`, undefined, '', {'last-event-id': 'x'})).status, 400, 'an id that is none')

equal((await call(server, 'GET', `/chat/${session}`)).status, 204, 'no turn is under way')
equal((await part(server, `/chat/${session}`, undefined, '', {'last-event-id': id(plain(all.bytes)[0])})).bytes, plain(all.bytes).slice(1).join('\n\n') + '\n\n', 'the chat, behind the first block')

// a question is answered after the server died
const asked = await part(server, `/chat/${session}`, body(session, 'wipe it'))
const question = events(plain(asked.bytes)).at(-1).outcome.interrupts[0]
await server.kill()
server = await serve('streams.db', args)
const resume = {...body(session, ''), messages: [], resume: [{interruptId: question.id, status: 'resolved', payload: {approved: true}}]}
const answered = await part(server, `/chat/${session}`, resume)
const told = events(plain(answered.bytes))
check(answered.bytes.includes('It is gone.') && told.at(-1).type === 'RUN_FINISHED', 'the answer goes on with the turn', answered.bytes)
equal(told.filter((e) => e.type === 'TOOL_CALL_START').length, 0, 'whose call is not begun again')
equal(told.filter((e) => e.type === 'TOOL_CALL_RESULT').length, 1, 'and has its result')
equal((await part(server, `/chat/${session}`, resume)).bytes, answered.bytes, 'a repeated answer is the same answer')
equal(await server.stop(), 0, 'it ends as it should')

// kept for no time beyond its end: old ones go by themselves, however many there are
const db = new DatabaseSync(join(scratch, 'streams.db'))
db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
  INSERT INTO streams (id, run, tenant, user, session, ask, hash, owner, n_lines, created_us, ended_us)
  SELECT 'old' || i, 'old' || i, tenant, user, '', '', '', owner, 0, created_us, ended_us FROM n, streams WHERE streams.id = '${seen.run}'`)
const kept = () => db.prepare('SELECT count(*) AS n FROM streams').get().n
check(kept() > 1200, 'streams that ended', kept())
server = await serve('streams.db', [...args, '--stream-keep', '0s'])
await until(() => kept() === 0, scratch)
check(true, 'none is left, though no line is written')
db.close()
equal((await part(server, `/runs/${seen.run}/stream`)).status, 404, 'a stream that is not kept beyond its end is gone')
equal(await server.stop(), 0, 'it ends as it should')
finish('streams')
