// Another process holds the store, so that no write gets through: of the requests with a key that was not used yet one
// waits, to note its use. Nobody else does: not others with that key, not other keys, not what asks no store.
import {spawn} from 'node:child_process'
import {call, check, command, equal, finish, serve, store} from './kit.mjs'

const at = store('held.db')
const key = (user) => ({'x-api-key': JSON.parse(command('keys', 'create', '--json', '--store', at, '--user', user).out).key})
const [ada, ben] = [key('ada'), key('ben')]
const server = await serve('held.db', ['--cors-origins', 'https://app.example.com'])
const ask = (path, headers) => call(server, 'GET', path, undefined, headers)
equal((await ask('/sessions', ben)).status, 200, 'a key whose use is noted')

const hold = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")`
const holder = spawn('/usr/bin/python3', ['-c', hold, at], {stdio: ['pipe', 'pipe', 'inherit']})
await new Promise((done) => holder.stdout.once('data', done))

let n_answered = 0
let second
const two = new Promise((done) => (second = done))
const first = Array.from({length: 3}, () => ask('/sessions', ada))
for (const request of first) request.then(() => ++n_answered === 2 && second())
await two
equal(n_answered, 2, 'one of three notes the use of their key, and waits')
for (let i = 0; i < 10; i++) {
  equal((await ask('/healthz')).status, 200, 'the process lives')
  equal((await ask('/healthz', {origin: 'https://app.example.com'})).headers.get('access-control-allow-origin'), 'https://app.example.com', 'also for a page')
  equal((await ask('/sessions', ben)).status, 200, 'another key')
  equal((await ask('/sessions', {'x-api-key': ada['x-api-key'].slice(0, -1)})).status, 401, 'a wrong key')
}
equal(n_answered, 2, 'all of them before the one that waits')
holder.stdin.end()
equal((await Promise.all(first)).map((r) => r.status), [200, 200, 200], 'which goes on as soon as it can')
const keys = JSON.parse(command('keys', 'list', '--json', '--store', at).out)
check(keys.length === 2 && keys.every((k) => k.used_at), 'the use of both keys is noted', keys)
equal(await server.stop(), 0, 'it ends as ever')
finish('held')
