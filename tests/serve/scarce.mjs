// A server whose disk is full, or that can open no more files: each request gets the status of what is lacking, a stream
// that breaks off says so, and the server goes on and serves again as soon as there is room. The limits are those of the
// process, moved from outside.
import {execFileSync} from 'node:child_process'
import {readdirSync, statSync} from 'node:fs'
import {connect} from 'node:net'
import {join} from 'node:path'
import {call, check, equal, file, finish, scratch, serve} from './kit.mjs'

const dir = join(file('agents/mock.yaml', 'kind: agent\nname: mock\ndescription: Answer.\nmodel: scripted:any\n'), '..')
const words = Array.from({length: 30}, (_, i) => `{text: "word${i} ", delay_ms: 10}`).join(', ')
const script = file('scarce.yaml', `models:\n  mock:\n    - {contains: long, chunks: [${words}]}\n    - {chunks: [Good, ' morning']}\n`)
const args = ['--schema-dir', dir, '--script', script, '--capability', '']

const limit = (server, what) => execFileSync('prlimit', ['--pid', String(server.pid), `--${what}`])
const body = (content, stream) => ({model: 'mock', stream, messages: [{role: 'user', content}]})
const chat = (server, content) => call(server, 'POST', '/v1/chat/completions', body(content, false))
// The largest file of the store: no file may become larger than a page more.
const sizes = (name) => readdirSync(scratch).filter((n) => n.startsWith(name)).map((n) => statSync(join(scratch, n)).size)
const fill = (server) => limit(server, `fsize=${Math.max(...sizes('full.db')) + 4096}:`)

function refused(r, status, code, what) {
  equal([r.status, r.json?.code, r.json?.error?.code], [status, code, code], `${what}: status and code`)
  check(/ask again/.test(r.json?.detail), `${what}: the answer says what to do`, r.text)
  check(Number(r.headers.get('retry-after')) > 0, `${what}: and when`)
}
const served = (r, what) => equal([r.status, r.json?.choices?.[0].message.content], [200, 'Good morning'], what)

// The disk is full before a turn.
const full = await serve('full.db', args)
served(await chat(full, 'hello'), 'there is room')
fill(full)
let last
for (let i = 0; i < 20 && last?.status !== 507; i++) last = await chat(full, `hello ${'x'.repeat(5000)}`)
refused(last, 507, 'disk_full', 'a full disk')
equal((await call(full, 'GET', '/sessions')).status, 200, 'what is there can be read')
equal((await call(full, 'GET', '/healthz')).status, 200, 'the process lives')
const unready = await call(full, 'GET', '/readyz')
equal([unready.status, unready.json?.checks.store, unready.json?.reasons], [503, 'unwritable', ['the disk of the store is full']], 'it is not ready, and says why')
check(Number(unready.headers.get('retry-after')) > 0, 'and when to ask again')
limit(full, 'fsize=unlimited:')
served(await chat(full, 'hello'), 'there is room again')
let again
do again = await call(full, 'GET', '/readyz') // it tries once a second
while (again.status === 503)
equal(again.json?.checks, {store: 'ok', worker: 'ok', draining: false}, 'and it is ready again')

// Within one: its stream says that it broke, or is cut; it never ends like one that is whole.
let text = ''
let was_cut = false
try {
  const r = await fetch(`${full.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify(body('a long one', true)),
  })
  const decoder = new TextDecoder()
  for await (const chunk of r.body) {
    if (!text.includes('word0') && (text += decoder.decode(chunk, {stream: true})).includes('word0')) limit(full, 'fsize=1:')
    else text += decoder.decode(chunk, {stream: true})
  }
} catch {
  was_cut = true
}
check(text.includes('word0') && !text.includes('word29'), 'the disk was full within the turn', text)
check(was_cut || (/"code":"disk_full"/.test(text) && /data: \[DONE\]\n\n$/.test(text)), 'the stream says that it broke', text)
limit(full, 'fsize=unlimited:')
served(await chat(full, 'hello'), 'and the next turn has room')
equal(await full.stop(), 0, 'it ends as ever')

// Five more files can be opened: fewer than there are connections.
const few = await serve('few.db', args)
served(await chat(few, 'hello'), 'there are descriptors')
await few.says(/working as/) // it has opened what it needs
const used = new Set(readdirSync(`/proc/${few.pid}/fd`).map(Number))
let most = 0
for (let unused = 0; unused < 5; most++) unused += !used.has(most)
limit(few, `nofile=${most}:`)
const {hostname, port} = new URL(few.url)
const open = Array.from({length: 12}, () => {
  const socket = Object.assign(connect(Number(port), hostname), {text: '', over: false})
  socket.on('data', (part) => (socket.text += part)).on('error', () => {})
  socket.end_of = new Promise((done) => socket.on('close', () => done((socket.over = true))))
  return socket
})
await Promise.all(open.map((s) => new Promise((done) => s.on('connect', done).on('close', done))))
const asked = JSON.stringify(body('hello', false))
const request =
  'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
  `Content-Type: application/json\r\nContent-Length: ${asked.length}\r\n\r\n${asked}`
for (const s of open) s.write(request)
await Promise.all(open.map((s) => s.end_of))
const statuses = open.map((s) => /^HTTP\/1.1 (\d+)/.exec(s.text)?.[1] ?? 'closed')
check(
  statuses.every((s) => ['200', '503', 'closed'].includes(s)) && statuses.some((s) => s !== '200'),
  'each request is answered, refused or closed',
  statuses,
)
for (const s of open.filter((o) => / 503 /.test(o.text.slice(0, 20))))
  check(/"code":"no_descriptors"/.test(s.text) && /\r\nRetry-After: /i.test(s.text), 'a refusal says what is lacking', s.text)
// Clients that stay take all but the last, which is there to tell the others.
const stay = []
const knock = () =>
  new Promise((done) => {
    const socket = connect(Number(port), hostname, () => socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'))
    let text = ''
    stay.push(socket)
    socket.on('data', (part) => /"ok"/.test((text += part)) && done(text)).on('close', () => done(text)).on('error', () => {})
  })
let told
for (let i = 0; i < 12 && !/ 503 /.test(told); i++) told = await knock()
const plain = (text) => text.replaceAll(/req_[0-9a-f]+|Date: .*\r\n/g, '')
check(/^HTTP\/1.1 503 .*\r\nRetry-After: .*"code":"no_descriptors"/s.test(told), 'the client for which no other is left is refused', told)
equal(plain(await knock()), plain(told), 'and so is the next one')
equal(few.err().split('http.no_descriptors').length > 1, true, 'which the log says')
for (const socket of stay) socket.destroy()
limit(few, 'nofile=4096:')
served(await chat(few, 'hello'), 'there are descriptors again')
equal(await few.stop(), 0, 'it ends as ever')

// So few that its worker cannot start: each of these says so and ends before it listens, or goes on without the worker.
const starts = await Promise.all(
  Array.from({length: 8}, (_, i) => {
    return serve(`start${i}.db`, args, {}, 0, ['prlimit', `--nofile=${used.size - 14 + 2 * i}:`]).catch((e) => String(e))
  }),
)
const waits = starts.filter((s) => s.url)
check(waits.length > 2, 'many go on', starts.map((s) => s.url ?? s))
for (const s of starts) check(s.url || /ended with 5.*Too many open files/s.test(s), 'others say what is lacking', s)
for (const s of waits) {
  await s.says(/worker.waits|working as/)
  limit(s, 'nofile=4096:')
}
check(waits.filter((s) => /worker.waits/.test(s.err())).length > 2, 'some without their worker', waits.map((s) => s.err()))
for (const s of waits) {
  await s.says(/working as/) // it is started by itself
  let ready
  while ((ready = await call(s, 'GET', '/readyz')).status !== 200) equal(ready.json.checks.worker, 'waiting', 'it says what is not ready')
  check(s.err().split('worker.waits').length <= 2, 'the log says it once', s.err())
  served(await chat(s, 'hello'), 'and it serves')
}
for (const status of await Promise.all(waits.map((s) => s.stop()))) equal(status, 0, 'each ends as ever')
finish('scarce')
