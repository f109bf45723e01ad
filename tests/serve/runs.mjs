// Runs: started, waited for, watched from any number on, also over the death of the server.
import {call, check, equal, finish, load, root, serve} from './kit.mjs'

const {EventSource} = load('eventsource')
const args = ['--pipelines', 'pipelines', '--scripts', 'pipelines/scripts']
let server = await serve('runs.db', args)
const names = (await call(server, 'GET', '/pipelines')).json
check(names.includes('loop') && !names.includes('README'), 'the pipelines that may be run', names)
const done = (await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi', wait: true})).json
equal(done.status, 'completed', 'a run that is waited for')
const one = await call(server, 'POST', '/runs', {pipeline: 'loop', input: 'hi'}, {'Idempotency-Key': 'k'})
equal([one.status, one.json.is_new, one.headers.get('location')], [202, true, `/runs/${one.json.id}`], 'a run that is queued')

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
equal((await call(server, 'GET', '/runs/none')).status, 404, 'a run that is not there')
equal((await call(server, 'POST', '/runs', {pipeline: '../x'})).status, 404, 'a pipeline elsewhere')
check((await call(server, 'GET', '/runs?limit=2')).json.length === 2, 'a list')
equal(await server.stop(), 0, 'it ends as it should')

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
await server.kill()
server = await serve('killed.db', args)
while (!over) await watch(got.at(-1)[0])
equal(got.map((g) => Number(g[0])), got.map((_, i) => i + 1), 'each number once, in order')
const stored = (await events(id, 0, {accept: 'application/x-ndjson'})).trim().split('\n')
equal(got.map((g) => g[1]), stored, 'what was seen is what is stored')
check(JSON.parse(stored.at(-1)).status === 'completed', 'and the run has come to its end')
equal(await server.stop(), 0, 'the second server ends as it should')
finish('runs')
