// What ends `reeve mcp serve` on a pipe: a signal, though its client does not read; an input that breaks off.
import {spawn} from 'node:child_process'
import {openSync} from 'node:fs'
import {join} from 'node:path'
import {check, env, equal, file, finish, reeve, root, scratch} from '../serve/kit.mjs'

for (let i = 0; i < 20; i++) file(`p/p${i}.yaml`, `name: p${i}\ndescription: ${'d'.repeat(900)}\nagents: [{name: say, set: {text: "'x'"}}]\n`)
function start(input, n) {
  const args = ['mcp', 'serve', '--pipelines', join(scratch, 'p'), '--store', join(scratch, `${n}.db`)]
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
let c = start('pipe', 'full')
const init = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 't', version: '1'}}
c.child.stdin.write(line('i', 'initialize', init))
await new Promise((done) => c.child.stdout.once('data', done))
c.child.stdout.pause()
let lists = ''
for (let i = 0; i < 1000; i++) lists += line(i, 'tools/list')
c.child.stdin.write(lists)
await new Promise((done) => (c.child.stdout.once('readable', done), c.child.stdout.read(0)))
c.child.kill('SIGTERM')
equal(await c.ended, 0, 'SIGTERM ends it while its client does not read')
c.child.stdout.destroy()

c = start(openSync(scratch, 'r'), 'folder')
c.child.stdout.resume()
check(await c.ended > 0, 'an input that cannot be read is a failure', c.log())
check(/read what the client says: Is a directory/.test(c.log()), 'which says why', c.log())
finish('ends')
