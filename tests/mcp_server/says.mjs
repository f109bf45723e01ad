// What `reeve mcp serve` says of its tools, and what their results say of themselves, message by message; and a pipeline
// with inputs that has MCP servers of its own.
import {spawn} from 'node:child_process'
import {join} from 'node:path'
import {check, command, env, equal, file, finish, reeve, root, scratch} from '../serve/kit.mjs'

file('p/stub.mjs', `import ${JSON.stringify(join(root, 'tests/integration/mcp/server.mjs'))}\n`)
file('p/hello.yaml', 'name: hello\nagents: [{name: say, set: {text: "\'hello \' + envelope.raw_input"}}]\nresponse: {output_key: say, field: text}\n')
file('p/calls.yaml', 'name: calls\nagents: [{name: inner, pipeline: hello.yaml}]\n')
file('p/sum.yaml', `name: sum
inputs: [a, b]
mcp_servers:
  stub: {command: [node, stub.mjs], trusted: true}
agents:
  - {name: plan, set: {steps: "[{'tool': 'stub.add', 'parameters': {'a': inputs.a, 'b': inputs.b}}]"}, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [stub.add], default_next: end}
`)
file('p/broken.yaml', 'name: broken\nagents: [{name: pick, set: {list: "[1]"}, default_next: fail}, {name: fail, set: {x: "outputs.pick.list[7]"}}]\n')
file('agents/boss.yaml', 'kind: agent\nname: boss\nmodel: scripted:model\n')
file('s/ask_boss.yaml', 'models: {answer: [{text: "Yes."}]}\n')
const path = join(scratch, 'says.db')
const child = spawn(reeve, ['mcp', 'serve', '--store', path, '--pipelines', join(scratch, 'p'), '--tool', 'files:read_file', '--tool', 'files:delete_file',
  '--agents', '--schema-dir', join(scratch, 'agents'), '--scripts', join(scratch, 's')], {env, cwd: root})
const waits = new Map()
let rest = '', log = '', last = 0
child.stderr.on('data', (bytes) => (log += bytes))
child.stdout.on('data', (bytes) => {
  rest += bytes
  for (let end; (end = rest.indexOf('\n')) >= 0; rest = rest.slice(end + 1)) {
    const m = JSON.parse(rest.slice(0, end))
    waits.get(m.id)?.(m)
  }
})
const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)))
const ask = (method, params) => Promise.race([ended.then(() => ({})), new Promise((resolve) => {
  waits.set(++last, resolve)
  child.stdin.write(JSON.stringify({jsonrpc: '2.0', id: last, method, params}) + '\n')
})])
const call = async (name, args = {}) => (await ask('tools/call', {name, arguments: args})).result
await ask('initialize', {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {name: 't', version: '1'}})

// Proves mcp.M9
const {tools} = (await ask('tools/list', {})).result
const hints = Object.fromEntries(tools.filter(({name}) => !name.startsWith('ask_') || name === 'ask_boss').map(({name, annotations: a}) => [name, ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']
  .map((hint) => ({true: hint[0], false: '-'})[a[hint]]).join('')]))
equal(hints, {answer_run: '-d-o', ask_boss: '-d-o', broken: 'r--o', calls: '-d-o', delete_file: '-di-', hello: 'r--o', query: 'r-i-', read_file: 'r-i-', sum: '-d-o'},
  'each tool has the hints of what it may do')

// A pipeline with inputs runs within another one, which has its servers, in its folder.
let r = await call('sum', {a: 3, b: 4})
equal(r?.structuredContent?.artifact.work?.results[0].data, {sum: 7}, 'a pipeline with inputs calls a server of its own')

// Proves mcp.M5
const runs = () => JSON.parse(command('runs', 'list', '--json', '--store', path).out).length
const before = runs()
for (const [name, args, field] of [['sum', {a: 2}, '"b"'], ['sum', {a: 1, b: 2, c: 3}, 'c'], ['hello', {input: 7}, 'input'], ['query', {}, '"query"'],
  ['answer_run', {text: 'x'}, '"run"'], ['read_file', {}, '"path"']]) {
  r = await call(name, args)
  check(r.isError === true && r.content[0].text.includes(field), `wrong arguments of ${name} are told to the model`, r)
}
equal(runs(), before, 'and begin no run')

// Proves mcp.M6
r = await call('broken', {input: 'x'})
check(r.isError === true && !r.structuredContent && r.content[0].text.includes('failed'), 'a run that fails is a result with isError', r)

// Proves plan.A4
r = await call('hello', {input: 'you', session: 's-1'})
const {artifact_id: id, _metadata: meta, mcp_execution_id: run} = r.structuredContent
equal([r.content, r.structuredContent.artifact, r.isError ?? false],
  [[{type: 'text', text: 'hello you'}], {'x-artifact-type': 'text', content: 'hello you'}, false], 'a result is a wrapper')
check(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), 'its id is a UUID', id)
const [row] = JSON.parse(command('runs', 'list', '--json', '--store', path).out)
equal({...meta, executed_at: 0, timestamp: 0}, {context_id: 's-1', request_id: row.request ?? meta.request_id, trace_id: meta.request_id, user_id: meta.user_id,
  tool_name: 'hello', executed_at: 0, timestamp: 0, session_id: 's-1', execution_id: run}, 'which names the session, the request, the tool and the run')
check(meta.request_id && meta.user_id !== undefined && !Number.isNaN(Date.parse(meta.executed_at)) && meta.timestamp === meta.executed_at, 'and the time, twice', meta)
equal(r._meta['io.systemprompt/execution'], {artifact_id: id, ...meta}, 'the same stands in _meta')
r = await call('hello', {input: 'you'})
equal(r.structuredContent._metadata.context_id, r.structuredContent._metadata.session_id, 'without a session, in the one that the run has')
child.stdin.end()
equal(await ended, 0, 'it ends')
check(!/ERROR/.test(log), 'nothing was faulty', log)
finish('says')
