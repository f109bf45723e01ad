// A server that drains: clients that posted are told of what it brings to an end within its grace, others are not kept.
import {randomUUID} from 'node:crypto'
import http from 'node:http'
import {join} from 'node:path'
import {agents, call, check, equal, file, finish, scratch, serve} from './kit.mjs'

const stage = (name, next) => `{name: ${name}, has_llm: true, model_role: m, prompt_key: p, output_key: ${name}, default_next: ${next}}`
const pipeline = (name, stages) => file(`p/${name}.yaml`, `name: ${name}\nmodels: {m: scripted:any}\nagents: [${stages}]\nresponse: {output_key: a, field: text}\nprompts: {p: x}\n`)
pipeline('slow', stage('a', 'end'))
const stages = [...'abcdefgh'] // more than a machine under load brings to an end before the signal
pipeline('long', stages.map((name, i) => stage(name, stages[i + 1] ?? 'end')).join(', '))
const late = '[{json: {text: hello}, delay_ms: 1000}]'
file('s/slow.yaml', `models: {a: ${late}}\n`)
file('s/long.yaml', `models: {${stages.map((name) => `${name}: ${late}`).join(', ')}}\n`)
const talk = file('talk.yaml', 'models: {boss: [{chunks: [One, {text: " two", delay_ms: 1000}]}]}\ntools: {wipe: [{result: {}}], search: [{result: {}}]}\n')
const args = ['--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's'), '--schema-dir', agents(), '--script', talk]
let server = await serve('drain.db', [...args, '--grace', '60s'])

const meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': {name: 'x', version: '1'}, 'io.modelcontextprotocol/clientCapabilities': {}}
const mcp = {accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'slow'}
const ask = {model: 'pipeline:slow', messages: [{role: 'user', content: 'x'}]}
const chat = randomUUID()
const turn = {threadId: chat, runId: randomUUID(), protocolVersion: '1.0', messages: [{id: 'u1', role: 'user', content: 'x'}]}
const post = (path, body, headers) => call(server, 'POST', path, body, headers).catch((e) => ({text: String(e.cause ?? e)}))
// Until that is in what the path gives, on a connection of its own: an idle one would hold the drain.
const until = (path, {body, ...how}, text) =>
  new Promise((resolve) => {
    const q = http.request(server.url + path, {...how, agent: false}, (r) => {
      let got = ''
      r.on('data', (part) => (got += part).includes(text) && q.destroy())
    })
    q.on('error', resolve)
    q.on('close', resolve)
    q.end(body)
  })

const answers = {
  whole: post('/v1/chat/completions', ask),
  stream: post('/v1/chat/completions', {...ask, stream: true}),
  waits: post('/runs', {pipeline: 'slow', wait: true}),
  streams: post('/runs', {pipeline: 'slow', stream: true}),
  tool: post('/mcp', {jsonrpc: '2.0', id: 2, method: 'tools/call', params: {name: 'slow', arguments: {input: 'x'}, _meta: meta}}, mcp),
  long: post('/runs', {pipeline: 'long', wait: true}),
}
let runs = []
while (runs.length < 6) runs = (await call(server, 'GET', '/runs')).json
for (const run of runs) await until(`/runs/${run.id}/events`, {}, 'llm_call_start')
const read = fetch(`${server.url}/runs/${runs.find((r) => r.pipeline === 'long').id}/events`).then((r) => r.text()).catch(() => 'cut')
answers.turn = post(`/chat/${chat}`, turn, {'x-agent-schema-name': 'boss'})
const same = {method: 'POST', body: JSON.stringify(turn), headers: {'content-type': 'application/json', 'x-agent-schema-name': 'boss'}}
await until(`/chat/${chat}`, same, 'TEXT_MESSAGE_CONTENT')
answers.again = post(`/chat/${chat}`, turn, {'x-agent-schema-name': 'boss'})
await until(`/chat/${chat}`, same, 'TEXT_MESSAGE_CONTENT')

const status = await server.stop()
const got = Object.fromEntries(await Promise.all(Object.entries(answers).map(async ([name, answer]) => [name, await answer])))
equal(status, 0, 'the server ends')
equal([got.whole.status, got.whole.json?.choices?.[0].message.content], [200, 'hello'], 'a pipeline as a model')
check(got.stream.text.includes('"finish_reason":"stop"') && got.stream.text.includes('[DONE]'), 'as a stream', got.stream.text)
equal([got.waits.status, got.waits.json?.status], [200, 'completed'], 'a run that is waited for')
check(got.streams.text.includes('"status":"completed"'), 'events of a run', got.streams.text)
check(got.tool.text.includes('"text":"hello"'), 'a call of a client of MCP', got.tool.text)
check(got.turn.text.includes('"outcome":{"type":"success"}'), 'a turn', got.turn.text)
check(got.again.text.includes('"outcome":{"type":"success"}'), 'its request again', got.again.text)
equal(got.long.status, 503, 'a run that another process goes on with')
equal(await read, 'cut', 'a reader that comes back by itself')

server = await serve('drain.db', args)
runs = (await call(server, 'GET', '/runs')).json
equal(runs.filter((r) => r.pipeline !== 'long').map((r) => r.status), Array(6).fill('completed'), 'all of them are done')
check(['ready', 'running'].includes(runs.find((r) => r.pipeline === 'long').status), 'the long one goes on', runs)
await server.kill()
finish('drain')
