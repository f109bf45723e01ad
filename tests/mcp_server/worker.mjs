// `reeve mcp serve` with so few descriptors that its worker cannot start: it says so once, answers meanwhile, and works
// as soon as there are descriptors. A worker that can never start ends it.
import {execFileSync, spawn} from 'node:child_process'
import {join} from 'node:path'
import {check, env, equal, file, finish, reeve, root, scratch} from '../serve/kit.mjs'
import {until} from '../kit/until.mjs'

file('p/hello.yaml', 'name: hello\nagents: [{name: say, set: {text: "\'hello\'"}}]\nresponse: {output_key: say, field: text}\n')
function client(n, ...more) {
  const args = [`--nofile=${n}:`, reeve, 'mcp', 'serve', '--pipelines', join(scratch, 'p'), ...more]
  const child = spawn('prlimit', args, {env, cwd: root})
  const waits = new Map()
  let rest = '', log = '', last = 0
  child.stderr.on('data', (bytes) => (log += bytes))
  child.stdin.on('error', () => {})
  child.stdout.on('data', (bytes) => {
    rest += bytes
    for (let end; (end = rest.indexOf('\n')) >= 0; rest = rest.slice(end + 1)) {
      const m = JSON.parse(rest.slice(0, end))
      waits.get(m.id)?.(m)
      waits.delete(m.id)
    }
  })
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)))
  const request = (method, params) => Promise.race([ended.then(() => null), new Promise((resolve) => {
    waits.set(++last, resolve)
    child.stdin.write(JSON.stringify({jsonrpc: '2.0', id: last, method, params}) + '\n')
  })])
  return {child, request, ended, log: () => log}
}
const init = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 't', version: '1'}}

// Each number of descriptors from too few on: the first with which it begins without its worker.
let found
for (let n = 5; n < 60 && !found; n++) {
  const c = client(n, '--store', join(scratch, `few${n}.db`))
  const began = await c.request('initialize', init)
  if (!began) continue // it says what is lacking, and ends
  let answer
  const call = c.request('tools/call', {name: 'hello', arguments: {input: 'x'}}).then((r) => (answer = r))
  await until(() => answer || /worker\.waits/.test(c.log()) || c.child.exitCode !== null, c.child.stdout, c.child.stderr, c.child)
  if (answer || c.child.exitCode !== null) {
    c.child.kill('SIGKILL')
    continue
  }
  found = true
  check((await c.request('ping', {})).result, `it answers without its worker (${n} descriptors)`, c.log())
  execFileSync('prlimit', ['--pid', String(c.child.pid), '--nofile=4096:'])
  const first = await call // it may have needed a descriptor itself
  check(first?.error || first?.result?.isError || first?.result?.content[0].text === 'hello', 'the first call is done, or says what it lacks', first)
  const next = await c.request('tools/call', {name: 'hello', arguments: {input: 'x'}})
  equal(next?.result?.content?.[0]?.text, 'hello', 'and a call is done as soon as there are descriptors')
  equal(c.log().split('worker.waits').length, 2, 'the log says it once')
  c.child.stdin.end()
  equal(await c.ended, 0, 'it ends as ever')
}
check(found, 'there is such a number')
finish('worker')
