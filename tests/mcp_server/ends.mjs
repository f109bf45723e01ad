// What ends `reeve mcp serve` on a pipe: a signal, though its client does not read; an input that breaks off.
import {spawn} from 'node:child_process'
import {openSync} from 'node:fs'
import {join} from 'node:path'
import {check, env, equal, file, finish, reeve, root, scratch} from '../serve/kit.mjs'

for (let i = 0; i < 20; i++) file(`p/p${i}.yaml`, `name: p${i}\ndescription: ${'d'.repeat(900)}\nagents: [{name: say, set: {text: "'x'"}}]\n`)
function start(input, n, ...more) {
  const args = ['mcp', 'serve', '--pipelines', join(scratch, 'p'), '--store', join(scratch, `${n}.db`), ...more]
  const child = spawn(reeve, args, {env, cwd: root, stdio: [input, 'pipe', 'pipe']})
  const watchdog = setTimeout(() => child.kill('SIGKILL'), 15000) // only what fails needs it
  let log = ''
  child.stderr.on('data', (bytes) => (log += bytes))
  child.stdin?.on('error', () => {})
  const ended = new Promise((done) => child.on('exit', (code, signal) => (clearTimeout(watchdog), done(signal ?? code))))
  return {child, ended, log: () => log}
}
const line = (id, method, params = {}) => JSON.stringify({jsonrpc: '2.0', id, method, params}) + '\n'

// Each 32 KiB of the input ask for some 10 MB: the first byte of an answer tells that the output will be full.
const init = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 't', version: '1'}}
let lists = ''
for (let i = 0; i < 1000; i++) lists += line(i, 'tools/list')
async function fill(c) {
  c.child.stdin.write(line('i', 'initialize', init))
  await new Promise((done) => c.child.stdout.once('data', done))
  c.child.stdout.pause()
  c.child.stdin.write(lists)
  await new Promise((done) => (c.child.stdout.once('readable', done), c.child.stdout.read(0)))
}
let c = start('pipe', 'full')
await fill(c)
c.child.kill('SIGTERM')
equal(await c.ended, 0, 'SIGTERM ends it while its client does not read')
c.child.stdout.destroy()

// A client that writes no more has the grace to read what it asked for: on a socket, where there is none, and on a pipe.
c = start('pipe', 'closed', '--grace', '0s', '--log-level', 'warn')
const half = spawn('sh', ['-c', 'cat "$1" | "$0" mcp serve --grace 1s --pipelines "$2" --store "$3"', reeve,
  file('lists', line('i', 'initialize', init) + lists.slice(0, 32 << 10)), join(scratch, 'p'), join(scratch, 'half.db')], {env, cwd: root})
const watchdog = setTimeout(() => half.kill('SIGKILL'), 15000)
const half_ended = new Promise((done) => half.on('exit', (code, signal) => (clearTimeout(watchdog), done(signal ?? code))))
await fill(c)
c.child.stdin.destroy()
equal(await c.ended, 0, 'a client that closed its input and does not read is not waited for')
check(/mcp\.unread/.test(c.log()), 'the log says so', c.log())
equal(await half_ended, 0, 'nor one at a pipe')
c.child.stdout.destroy()
half.stdout.destroy()

c = start(openSync(scratch, 'r'), 'folder')
c.child.stdout.resume()
check(await c.ended > 0, 'an input that cannot be read is a failure', c.log())
check(/read what the client says: Is a directory/.test(c.log()), 'which says why', c.log())
finish('ends')
