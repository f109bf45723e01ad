// The trace of a run reaches the author's own MCP servers, and no other one: a header and the _meta of each call. So do the
// headers that say who calls.
import {execFile} from 'node:child_process'
import {createServer} from 'node:http'
import {call, check, equal, file, finish, scratch, serve} from '../../serve/kit.mjs'

const seen = [], callers = []
const http = createServer((req, res) => {
  let text = ''
  req.on('data', (bytes) => (text += bytes))
  req.on('end', () => {
    if (req.method !== 'POST') return res.writeHead(405).end()
    const {id, method, params} = JSON.parse(text)
    const json = (status, value) => res.writeHead(status, {'content-type': 'application/json'}).end(JSON.stringify({jsonrpc: '2.0', id, ...value}))
    if (method === 'server/discover') return json(400, {error: {code: -32601, message: 'no'}})
    if (id === undefined) return res.writeHead(202).end()
    if (method === 'initialize')
      return json(200, {result: {protocolVersion: params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: 's', version: '1'}}})
    if (method === 'tools/list') return json(200, {result: {tools: [{name: 'look', inputSchema: {type: 'object'}}]}})
    const {'x-trace-id': id_of_trace, traceparent} = req.headers
    const {traceparent: parent, tracestate: state} = params._meta ?? {}
    seen.push([req.url, id_of_trace, traceparent, parent, state])
    callers.push(['context-id', 'session-id', 'user-id', 'task-id', 'agent-name', 'ai-tool-call-id'].map((name) => req.headers[`x-${name}`]))
    json(200, {result: {content: [{type: 'text', text: 'seen'}]}})
  })
})
await new Promise((ready) => http.listen(0, '127.0.0.1', ready))

const pipeline = (name, own) =>
  file(`pipelines/${name}.yaml`, `name: ${name}
mcp_servers:
  s: {url: "http://127.0.0.1:${http.address().port}/${name}", own: ${own}}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [look], default_next: end}
prompts: {p: plan it}
`) && file(`scripts/${name}.yaml`, 'models:\n  plan: [{json: {steps: [{tool: look, parameters: {}}]}}]\n')
pipeline('ours', true)
pipeline('theirs', false)

const ada = 'a3c1e7d0-5b1f-4c0e-9f57-1d2c3b4a5e6f'
const trace = '0af7651916cd43dd8448eb211c80319c'
const says = {traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: 'shop=soup'}
const server = await serve('trace.db', ['--pipelines', `${scratch}/pipelines`, '--scripts', `${scratch}/scripts`, '--trust-user-header'], {REEVE_ALLOW_NET: '127.0.0.1'})
let id
const asked = async (name, headers) => {
  const {json} = await call(server, 'POST', '/runs', {pipeline: name, input: 'x', wait: true}, headers)
  id = json?.id
  return json?.status
}
equal(await asked('ours', says), 'completed', 'a run with a trace')
equal(seen.pop(), ['/ours', trace, undefined, says.traceparent, says.tracestate], 'its own server is told the trace')
const first = id
equal(await asked('theirs', says), 'completed', 'a run with a trace')
equal(seen.pop(), ['/theirs', undefined, undefined, undefined, undefined], 'another server is not')
equal(await asked('ours', {'x-user-id': ada}), 'completed', 'a run of a user, without a trace')
equal(seen.pop(), ['/ours', undefined, undefined, undefined, undefined], 'names none')
const [context, session, user, task, agent, key] = callers.shift()
check(session, 'the run has a session')
equal([context, user, task, agent, key !== undefined], [session, undefined, first, 'work', true], 'its own server is told who calls')
equal(callers.shift(), Array(6).fill(undefined), 'another server is not')
const third = callers.shift(), keys = [key, third[5]]
equal([third[2], third[3], third[0]], [ada, id, third[1]], 'and for whom')
check(keys[1] && keys[0] !== keys[1], 'each call has an id of its own', keys)
const alone = ['run', `${scratch}/pipelines/ours.yaml`, '--script', `${scratch}/scripts/ours.yaml`, '--input', 'x', '--set', 'session_id=""', '--no-store']
const failed = await new Promise((done) => execFile(process.argv[2], alone, {env: {...process.env, REEVE_ALLOW_NET: '127.0.0.1'}}, done))
const bare = callers.shift() ?? []
equal([failed, bare[1], bare[0] !== undefined && bare[0] === bare[3]], [null, undefined, true], 'the context of a run without a session is the run')
equal(await server.stop(), 0, 'the server ends')
http.close()
http.closeAllConnections()
finish('trace')
