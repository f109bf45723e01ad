// `reeve mcp serve` while a query waits for a provider: other messages are answered meanwhile, also when the query was
// cancelled, when the input has ended, and when the process is told to end.
import {execFileSync, spawn} from 'node:child_process'
import {createServer} from 'node:http'
import {check, command, env, equal, file, finish, reeve, root, scratch, serve} from '../serve/kit.mjs'

// A provider of vectors that answers when the test says so.
const held = []
let asked = () => {}
const provider = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    held.push(() => {
      response.writeHead(200, {'Content-Type': 'application/json'})
      response.end(JSON.stringify({data: [{index: 0, embedding: Array(1536).fill(0.01)}], model: 'm', usage: {prompt_tokens: 1, total_tokens: 1}}))
    })
    asked()
  })
})
await new Promise((resolve) => provider.listen(0, '127.0.0.1', resolve))
const here = {...env, OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `http://127.0.0.1:${provider.address().port}/v1`, REEVE_ALLOW_NET: '127.0.0.1'}

const path = `${scratch}/aside.db`
file('one.yaml', 'name: one\nagents: [{name: a, set: {x: "1"}, default_next: end}]\n')
const prepare = (...args) => execFileSync(reeve, [...args, '--store', path], {env: here, cwd: root, encoding: 'utf8'})
prepare('run', `${scratch}/one.yaml`, '--input', 'x')
prepare('embed', '--provider', 'openai:text-embedding-3-small')
function client() {
  const child = spawn(reeve, ['mcp', 'serve', '--store', path, '--grace', '20s'], {env: here, cwd: root, stdio: ['pipe', 'pipe', 'pipe']})
  const waits = new Map()
  let rest = '', log = ''
  child.stderr.on('data', (bytes) => (log += bytes))
  child.stdout.on('data', (bytes) => {
    rest += bytes
    for (let end; (end = rest.indexOf('\n')) >= 0; rest = rest.slice(end + 1)) {
      const m = JSON.parse(rest.slice(0, end))
      waits.get(m.id)?.(m)
      waits.delete(m.id)
    }
  })
  const put = (m) => child.stdin.write(JSON.stringify({jsonrpc: '2.0', ...m}) + '\n')
  const request = (id, method, params) => new Promise((resolve) => {
    waits.set(id, resolve)
    put({id, method, params})
  })
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)))
  return {child, put, request, ended, waits, log: () => log}
}
const search = (id, c) => c.request(id, 'tools/call', {name: 'query', arguments: {query: 'SEARCH ropes FROM resources'}})
const under = () => new Promise((resolve) => (asked = resolve))
const init = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 't', version: '1'}}

// Answered meanwhile, and then itself.
let c = client()
await c.request(1, 'initialize', init)
let busy = under()
let query = search(2, c)
await busy
check((await c.request(3, 'ping', {})).result, 'a ping is answered while a query waits')
equal((await c.request(4, 'tools/list', {})).result.tools.length > 0, true, 'tools are listed while a query waits')
held.shift()()
const first = await query
check(first.result && !first.result.isError, 'the query has its answer', first, c.log())

// One after the other, in the order of asking; one that is cancelled before its turn has no answer, nor has one in the middle.
busy = under()
query = search(5, c)
await busy
const never = [search(6, c)]
const later = search(7, c)
c.put({method: 'notifications/cancelled', params: {requestId: 6}})
check((await c.request(8, 'ping', {})).result, 'a ping is answered while queries wait')
busy = under()
held.shift()()
check((await query).result, 'the first of them has its answer')
await busy
c.put({method: 'notifications/cancelled', params: {requestId: 7}})
await c.request(9, 'ping', {})
held.shift()()
const plain = await c.request(10, 'tools/call', {name: 'query', arguments: {query: 'SELECT 1 AS one FROM sessions LIMIT 1'}})
check(plain.result && !plain.result.isError, 'a query after them', plain)
equal([...c.waits.keys()], [6, 7], 'those that were cancelled have none')
void never, later

// More than may wait.
busy = under()
const many = Array.from({length: 70}, (_, i) => search(100 + i, c))
await busy
const over = await many.at(-1)
equal(over.error?.code, -32603, 'more calls than 64 are refused')
for (let done = false; !done;) {
  busy = under()
  held.shift()?.()
  done = await Promise.race([busy.then(() => false), Promise.all(many).then(() => true)])
}
equal((await Promise.all(many)).filter((m) => m.result).length, 64, 'the others are answered')

// The input ends: the query under way is answered first.
busy = under()
query = search(200, c)
await busy
c.child.stdin.end()
held.shift()()
check((await query).result, 'a query is answered after the input has ended')
equal(await c.ended, 0, 'and the process ends')

// Told to end, with a query that waits and another one behind it.
c = client()
await c.request(1, 'initialize', init)
busy = under()
search(2, c)
search(3, c)
await busy
c.child.kill('SIGTERM') // the provider does not answer
check([0, 'SIGTERM'].includes(await c.ended), 'it ends when it is told to', c.log())
equal(command('gc', '--check', '--store', path).status, 0, 'the store is whole')

// A server over HTTP is told to end, with a query that waits: it has the time of --grace.
const host = await serve('aside.db', ['--grace', '1s'], here)
const meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
busy = under()
const given = fetch(`${host.url}/mcp`, {
  method: 'POST',
  headers: {'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'query'},
  body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'tools/call', params: {name: 'query', arguments: {query: 'SEARCH ropes FROM resources'}, _meta: meta}}),
}).then((response) => response.json())
await busy
equal(await host.stop(), 0, 'HTTP: it ends when it is told to', host.err())
check(JSON.stringify((await given).result).includes('not waited for any more'), 'HTTP: and the query has an answer, without what the provider would have said')
provider.closeAllConnections()
provider.close()
finish('aside')
