// Idempotency-Key of POST /runs: one run for a request that is repeated, at once, after its end and after a crash of the
// server; another request with the same key is refused.
import {call, check, equal, finish, serve} from './kit.mjs'

const args = ['--pipelines', 'pipelines', '--scripts', 'pipelines/scripts']
let server = await serve('keys.db', args)
const post = (key, body, path = '/runs') => call(server, 'POST', path, body, key ? {'Idempotency-Key': key} : {})
const until_its_end = async (id) => (await fetch(`${server.url}/runs/${id}/events`)).text()
const body = {pipeline: 'loop', input: 'hi'}

const first = await post('k1', body)
equal([first.status, first.json.is_new], [202, true], 'a new run')
await until_its_end(first.json.id)
const again = await post('k1', body)
equal([again.status, again.json.is_new, again.json.id], [200, false, first.json.id], 'its request again, after its end')
equal(again.headers.get('location'), `/runs/${first.json.id}`, 'where it is')

const refused = async (key, other, what) => {
  const r = await post(key, other)
  equal(r.status, 409, what)
  check(/the key was used for another request/.test(r.text), `${what}: why`, r.text)
}
await refused('k1', {...body, input: 'other'}, 'another input')
await refused('k1', {...body, pipeline: 'clarify'}, 'another pipeline')
await refused('k1', {...body, wait: true}, 'another way to answer')
check((await post('k2', body)).json.id !== first.json.id, 'another key is another run')

// of one that waits for a person
const asks = await post('k3', {pipeline: 'clarify', input: 'x', wait: true})
equal(asks.json.status, 'interrupted', 'a run that waits')
equal((await post('k3', {pipeline: 'clarify', input: 'x', wait: true})).json.id, asks.json.id, 'its request again')
await refused('k3', body, 'another pipeline than the one that waits')

// of one whose answer is waited for
const waited = await post('k4', {...body, wait: true})
equal([waited.status, waited.json.status], [200, 'completed'], 'a run that is waited for')
equal((await post('k4', {...body, wait: true})).json, waited.json, 'the same result')

// many at once
const many = await Promise.all(Array.from({length: 12}, () => post('k5', body)))
equal([...new Set(many.map((r) => r.json.id))].length, 1, 'one run of requests that come at once')
equal(many.filter((r) => r.status === 202 && r.json.is_new).length, 1, 'one of them began it')
equal(many.filter((r) => r.status === 200).length, 11, 'the others found it')

const count = async () => (await call(server, 'GET', '/runs?limit=100')).json.length
equal(await count(), 5, 'as many runs as keys')
await server.kill()
server = await serve('keys.db', args)
equal((await post('k1', body)).json, {id: first.json.id, is_new: false}, 'the same run after a crash of the server')
await refused('k1', {...body, input: 'other'}, 'another input after a crash')
equal(await count(), 5, 'no run was added')
equal(await server.stop(), 0, 'the server ends')
finish('keys')
