// Runs: started, waited for, watched from any number on, also over the death of the server.
import {join} from 'node:path'
import {call, check, equal, file, finish, load, root, scratch, serve} from './kit.mjs'

const {EventSource} = load('eventsource')
file('p/write.yaml', `name: write
inputs: []
models: {m: "scripted:any"}
agents: [{name: a, has_llm: true, has_tools: true, tool_access: all, model_role: m}]
`)
file('p/faulty.yaml', 'name: faulty\nagents: [{name: a, default_next: nowhere}]\n')
file('s/write.yaml', `models: {a: [{tool_calls: [{id: c, name: write, arguments: {path: a}}]}, {text: '{"ok": true}'}]}
tools:
  write:
    requires_confirmation: {question: "Write {{path}}?", show: path}
    input_schema: {type: object, required: [path], properties: {path: {type: string}}}
    calls: [{contains: other, result: {n: 1}}]
`)
const args = ['--pipelines', 'pipelines', '--scripts', 'pipelines/scripts']
let server = await serve('runs.db', args)
const names = (await call(server, 'GET', '/pipelines')).json
check(names.includes('loop') && !names.includes('README'), 'the pipelines that may be run', names)
const done = (await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi', wait: true})).json
equal(done.status, 'completed', 'a run that is waited for')
const one = await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi'}, {'Idempotency-Key': 'k'})
equal([one.status, one.json.is_new, one.headers.get('location')], [202, true, `/runs/${one.json.id}`], 'a run that is queued')

// a text that would be cut at a NUL is refused by its name; content may have one
for (const [path, body, member] of [
  ['/runs', {pipeline: 'loop\0evil', input: 'x'}, 'pipeline'],
  ['/runs', {pipeline: 'loop', mode: 'parallel\0zz'}, 'mode'],
  ['/runs', {pipeline: 'loop', session: 's\0t'}, 'session'],
  ['/runs', {pipeline: 'loop', webhook: {url: 'https://a.example/\0'}}, 'url'],
  ['/schedules', {name: 'n\0x', pipeline: 'loop', cron: '* * * * *'}, 'name'],
  ['/schedules', {name: 'n', pipeline: 'loop', cron: '* * * * *\0 z'}, 'cron'],
  ['/tasks', {type: 't\0', payload: {}}, 'type'],
  ['/tasks', {type: 't', labels: ['a', 'b\0']}, 'labels'],
  ['/feedback', {session_id: 'x\0', rating: 5}, 'session_id'],
  ['/query', {mode: 'LOOKUP', key: 'a\0b'}, 'key'],
  ['/sessions/search', {query: 'a\0'}, 'query'],
]) {
  const r = await call(server, 'POST', path, body)
  equal(r.status, 400, `a NUL in ${member} of ${path}`)
  check(r.text.includes(`\\"${member}\\" has a NUL`), `it names ${member}`, r.text)
}
equal((await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi\0there', wait: true})).status, 200, 'an input with a NUL')

// the same bytes each time, from any number on
const events = async (id, from, headers = {}) => {
  const r = await fetch(`${server.url}/runs/${id}/events${from ? `?from=${from}` : ''}`, {headers})
  return r.status === 204 ? '' : await r.text()
}
const all = await events(done.id)
equal(await events(done.id), all, 'the same bytes')
const blocks = all.split('\n\n').filter((b) => b.startsWith('data:'))
const ids = blocks.map((b) => Number(/\nid: (\d+)$/.exec(b)[1]))
equal(ids, ids.map((_, i) => i + 1), 'each event has its number')
for (const from of [2, 5, ids.length])
  equal((await events(done.id, from)).split('\n\n').filter((b) => b.startsWith('data:')), blocks.slice(from - 1), `from ${from}`)
equal(
  (await events(done.id, 3, {accept: 'application/x-ndjson'})).trim().split('\n'),
  blocks.slice(2).map((b) => b.slice(6).split('\nid: ')[0]),
  'as lines',
)
const past = await fetch(`${server.url}/runs/${done.id}/events`, {headers: {'Last-Event-ID': String(ids.length)}})
equal(past.status, 204, 'nothing comes behind the end')

// a question
const asks = (await call(server, 'POST', '/runs', {pipeline: 'clarify', input: 'x', wait: true})).json
equal(asks.status, 'interrupted', 'a run that asks')
const open = (await call(server, 'GET', `/interrupts?run=${asks.id}`)).json
equal([open.length, open[0]?.text], [1, 'Which database?'], 'its question')
equal((await call(server, 'POST', `/runs/${asks.id}/answer`, {approved: true})).status, 400, 'an answer that does not fit')
equal((await call(server, 'POST', `/runs/${asks.id}/answer`, {text: 'PostgreSQL'})).status, 202, 'an answer')
const stream = await events(asks.id)
check(stream.includes('"status":"completed"'), 'it goes on')
equal((await call(server, 'POST', `/runs/${asks.id}/answer`, {text: 'x'})).status, 409, 'a second answer')
equal((await call(server, 'POST', `/runs/${asks.id}/cancel`)).status, 409, 'what is over is not cancelled')
const fork = (await call(server, 'POST', `/runs/${done.id}/fork`, {step: 1})).json
check((await events(fork.id)).includes('"type":"done"'), 'a fork runs')
for (const wrong of [{input: {a: 1}}, {input: 5}, {session: 1}, {mode: true}, {state: []}, {wait: 'yes'}, {stream: 1}, {deltas: 'no'}, {priority: 'high'}]) {
  const refused = await call(server, 'POST', '/runs', {pipeline: 'loop', ...wrong})
  equal(refused.status, 400, `a member of another type: ${JSON.stringify(wrong)}`)
  check(refused.text.includes(Object.keys(wrong)[0]), 'which one', refused.text)
}
equal((await call(server, 'GET', '/runs/none')).status, 404, 'a run that is not there')
const logged = (of, id) => server.log().some((line) => line.route?.startsWith(of) && line.run_id === id)
check(logged('/runs', one.json.id) && logged('/runs/{id}/events', done.id), 'the access log names the run', server.log().slice(0, 3))
equal((await call(server, 'POST', '/runs', {pipeline: '../x'})).status, 404, 'a pipeline elsewhere')
check((await call(server, 'GET', '/runs?limit=2')).json.length === 2, 'a list')

// with the pieces of the models' answers
const blocksOf = (text) => text.split('\n\n').filter((b) => b.startsWith('data:'))
const read = (b) => ({id: /\nid: (\S+)$/.exec(b)[1], ...JSON.parse(/^data: (.*)/.exec(b)[1])})
const withDeltas = async (id, headers = {}, query = 'deltas=1') => {
  const r = await fetch(`${server.url}/runs/${id}/events?${query}`, {headers})
  return r.status === 204 ? '' : await r.text()
}
const told = (await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi', deltas: true})).json.id
const live = await withDeltas(told)
const pieces = blocksOf(live).map(read)
check(pieces.some((p) => p.type === 'delta' && p.kind === 'text'), 'pieces are told while it goes on', live.slice(0, 2000))
for (const result of pieces.filter((p) => p.type === 'llm_result')) {
  const of = pieces.filter((p) => p.type === 'delta' && p.call_id === result.call_id && p.stage === result.stage && pieces.indexOf(p) < pieces.indexOf(result))
  check(of.length > 0 && result.bytes === Buffer.byteLength(of.slice(-3).map((p) => p.text).join('')), `the pieces of call ${result.call_id} are its answer`, of, result)
}
equal(await withDeltas(told), live, 'the same bytes behind its end')
equal(blocksOf(await events(told)), blocksOf(live).filter((b) => /^data: {"seq"/.test(b)), 'without deltas: the events')
for (const [i, piece] of pieces.entries())
  equal(blocksOf(await withDeltas(told, {'Last-Event-ID': piece.id})), blocksOf(live).slice(i + 1), `behind ${piece.id}`)
equal(blocksOf(await withDeltas(told, {}, 'deltas=1&from=4')), blocksOf(live).slice(pieces.findIndex((p) => p.seq === 4)), 'from an event')
equal(
  (await withDeltas(told, {accept: 'application/x-ndjson'})).trim().split('\n').map((line) => JSON.parse(line)).map(({cursor, ...p}) => ({id: cursor ?? String(p.seq), ...p})),
  pieces,
  'as lines',
)
equal(await withDeltas(done.id), all, 'a run whose pieces were not kept has its events')
equal((await call(server, 'GET', `/runs/${told}/events?deltas=1`, undefined, {'Last-Event-ID': '1.x'})).status, 400, 'an id that is none')
equal((await call(server, 'GET', `/runs/${told}/stream`)).status, 404, 'it is no stream of a chat')
const both = await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi', deltas: true, stream: true})
check(blocksOf(both.text).map(read).some((p) => p.type === 'delta') && both.text.includes('"type":"done"'), 'in the answer of POST /runs')
const asked = (await call(server, 'POST', '/runs', {pipeline: 'clarify', input: 'x', wait: true, deltas: true})).json
await call(server, 'POST', `/runs/${asked.id}/answer`, {text: 'PostgreSQL'})
const answered = await withDeltas(asked.id)
check(answered.includes('"status":"completed"'), 'a run that asks goes on')
equal(await withDeltas(asked.id), answered, 'the same bytes')
equal(await server.stop(), 0, 'it ends as it should')

// Arguments that a person changes: what does not fit is said at once, and the question stays open.
server = await serve('write.db', ['--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's')])
const write = (await call(server, 'POST', '/runs', {pipeline: 'write', wait: true})).json
const faulty = await call(server, 'POST', '/runs', {pipeline: 'faulty', wait: true})
equal([faulty.status, faulty.json.code, /nowhere/.test(faulty.json.detail)], [409, 'failed_precondition', false], 'a faulty pipeline')
for (const [given, says] of [[{path: 7}, 'expected string, found integer 7'], [{}, 'path']]) {
  const unfit = await call(server, 'POST', `/runs/${write.id}/answer`, {approved: true, arguments: given})
  equal(unfit.status, 400, `changed arguments: ${JSON.stringify(given)}`)
  check(unfit.json.detail.includes('do not fit tool "write"') && unfit.json.detail.includes(says), 'and why', unfit.text)
}
equal((await call(server, 'POST', `/runs/${write.id}/answer`, {approved: true, arguments: {path: 'other'}})).status, 202, 'those that fit')
check((await events(write.id)).includes('"status":"completed"'), 'are those that run')
const texts = [['/tasks', {type: 'x', user_id: 7}], ['/schedules', {name: 'x', cron: '@daily', type: 'n', user_id: ['ada']}],
  ['/sessions/search', {name: 7}], ['/sessions/search', {since: 7}], ['/sessions/search', {page: 'two'}], ['/moments/search', {query: 7}],
  ['/moments/search', {created_after: 7}], ['/files', {path: 'a.md', content: 'a', session: 7}]]
for (const [path, body] of texts) {
  const refused = await call(server, 'POST', path, body)
  equal([refused.status, refused.text.includes(Object.keys(body).at(-1))], [400, true], `a member of another type: ${path} ${JSON.stringify(body)}`)
}
const secret = await call(server, 'POST', '/runs', {pipeline: 'write', webhook: {url: 'http://127.0.0.1:1/', secret: 7}})
equal([secret.status, secret.text.includes('must be a text')], [400, true], 'nor is the secret of the server taken for it')
equal(await server.stop(), 0, 'the server with a tool ends as it should')

// Killed in mid-stream: a client that comes back gets each event once, in order.
server = await serve('killed.db', [...args.slice(0, 3), `${root}/tests/serve/scripts`])
const {id} = (await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi'})).json
const got = []
let over = false
const watch = (from) =>
  new Promise((resolve) => {
    const es = new EventSource(`${server.url}/runs/${id}/events`, {
      fetch: (url, init) => fetch(url, {...init, headers: {...init.headers, ...(from ? {'Last-Event-ID': from} : {})}}),
    })
    es.onmessage = (e) => {
      got.push([e.lastEventId, e.data])
      const type = JSON.parse(e.data).type
      if (type === 'done') over = true
      if (over || (!from && type === 'llm_call_start' && got.length > 6)) {
        es.close()
        resolve()
      }
    }
    es.onerror = () => es.readyState === 2 && resolve()
  })
await watch()
check(!over, 'it goes on while the server dies')
// another one with its pieces: the server dies between two of them
const broken = (await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi', deltas: true})).json.id
let before = ''
for await (const part of (await fetch(`${server.url}/runs/${broken}/events?deltas=1`)).body) {
  before += Buffer.from(part).toString()
  if (/"type":"delta"[^\n]*"stage":"critic"/.test(before)) break
}
before = blocksOf(before.slice(0, before.lastIndexOf('\n\n') + 2))
await server.kill()
server = await serve('killed.db', args)
while (!over) await watch(got.at(-1)[0])
equal(got.map((g) => Number(g[0])), got.map((_, i) => i + 1), 'each number once, in order')
const stored = (await events(id, 0, {accept: 'application/x-ndjson'})).trim().split('\n')
equal(got.map((g) => g[1]), stored, 'what was seen is what is stored')
check(JSON.parse(stored.at(-1)).status === 'completed', 'and the run has come to its end')
const behind = blocksOf(await withDeltas(broken, {'Last-Event-ID': read(before.at(-1)).id}))
const whole = blocksOf(await withDeltas(broken))
equal([...before, ...behind], whole, 'with pieces: what was seen before and behind the death is the whole')
const types = whole.map(read).map((p) => p.type)
check(types.indexOf('deltas_void') > before.length - 1 && types.lastIndexOf('delta') > types.indexOf('deltas_void') && types.at(-1) === 'done', 'the pieces of the broken call are void, and come again', types)
equal(await server.stop(), 0, 'the second server ends as it should')
finish('runs')
