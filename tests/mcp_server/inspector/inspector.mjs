// The Inspector of the protocol, on its command line: it lists and calls what `reeve mcp serve` and /mcp offer.
import {spawn} from 'node:child_process'
import {join} from 'node:path'
import {check, command, env, equal, file, finish, reeve, root, scratch, serve, store} from '../../serve/kit.mjs'

file('p/hello.yaml', `name: hello
description: Greets.
inputs: [who]
agents: [{name: say, set: {text: "'hello ' + inputs.who"}}]
response: {output_key: say, field: text}
`)
const program = join(process.env.CLIENT_MODULES, 'node_modules/.bin/mcp-inspector')
// {status, out, json}. Asynchronous: the server of this process's own log is read meanwhile.
function inspect(...args) {
  return new Promise((done) => {
    const child = spawn(process.execPath, [program, '--cli', ...args], {cwd: root, env})
    let out = ''
    let err = ''
    child.stdout.on('data', (part) => (out += part))
    child.stderr.on('data', (part) => (err += part))
    child.on('close', (status) => {
      let json
      try { json = JSON.parse(out) } catch {}
      done({status, out, err, json})
    })
  })
}
async function look(what, target, names) {
  const listed = await inspect(...target, '--method', 'tools/list')
  equal(listed.json?.tools.map((t) => t.name).sort(), names, `${what}: tools are listed`)
  const called = await inspect(...target, '--method', 'tools/call', '--tool-name', 'hello', '--tool-arg', 'who=Ada')
  equal(called.json?.content?.[0]?.text, 'hello Ada', `${what}: a tool is called`)
  equal(called.json?.structuredContent?.artifact?.content, 'hello Ada', `${what}: its data conforms to its schema`)
  const wrong = await inspect(...target, '--method', 'tools/call', '--tool-name', 'nothing')
  check(wrong.status !== 0 || wrong.json?.isError, `${what}: an unknown tool is an error`, wrong.out)
  const resources = await inspect(...target, '--method', 'resources/list')
  check(Array.isArray(resources.json?.resources), `${what}: resources are listed`, resources.out, resources.err)
}

const pipelines = join(scratch, 'p')
await look('stdio', [reeve, 'mcp', 'serve', '--store', store('inspector.db'), '--pipelines', pipelines], ['answer_run', 'hello', 'query'])
const path = store('inspector_http.db')
const key = JSON.parse(command('keys', 'create', '--json', '--store', path, '--level', 'master').out).key
const server = await serve('inspector_http.db', ['--pipelines', pipelines])
await look('http', [`${server.url}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${key}`], ['answer_run', 'hello', 'query'])
equal(await server.stop(), 0, 'the server ends')
finish('inspector')
