// What a collector gets: one trace of a chat with its run, agent and model spans, the trace of who asked, and metrics.
// Proves p8.19: Turns, agents, models and tools are spans for a collector
import {createServer} from 'node:http'
import {spawnSync} from 'node:child_process'
import {isDeepStrictEqual} from 'node:util'
import {agents, call, check, command, env, equal, file, finish, reeve, scratch, serve, store} from './kit.mjs'
import {received} from './otlp_messages.mjs'

const script = file('talk.yaml', 'models:\n  boss:\n    - {text: One., usage: {input_tokens: 9, output_tokens: 2}}\n    - {text: Two.}\n    - {text: Three.}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const args = ['--schema-dir', agents(), '--script', script]

// A collector: what it got, and what it answers next (200 when nothing is said). Each body has to be a message of OTLP, and
// nothing else.
const got = []
const bodies = {'/v1/traces': 0, '/v1/metrics': 0}
const answers = []
const collector = createServer((req, res) => {
  let text = ''
  req.on('data', (part) => (text += part))
  req.on('end', () => {
    const status = answers.shift() ?? 200
    const body = JSON.parse(text)
    equal(received(req.url, body), body, `a message for ${req.url}`)
    bodies[req.url]++
    got.push({path: req.url, headers: req.headers, type: req.headers['content-type'], status, body})
    res.writeHead(status, {'content-type': 'application/json'}).end('{}')
  })
})
await new Promise((done) => collector.listen(0, '127.0.0.1', done))
const url = `http://127.0.0.1:${collector.address().port}`
const traces = () => got.filter((g) => g.path === '/v1/traces' && g.status === 200)
const spans = () => traces().flatMap((g) => g.body.resourceSpans.flatMap((r) => r.scopeSpans.flatMap((s) => s.spans)))
const attr = (span, key) => Object.values(span.attributes.find((a) => a.key === key)?.value ?? {})[0]
const chat = (server, headers) =>
  call(server, 'POST', '/v1/chat/completions', {model: 'boss', messages: [{role: 'user', content: 'secret words'}]}, headers)

// --- a chat is one trace; the collector is away for a moment, and gets it then
answers.push(503)
const trace = '0af7651916cd43dd8448eb211c80319c'
let server = await serve('otlp.db', [...args, '--otlp', `${url}/`], {OTEL_SERVICE_NAME: 'shop', OTEL_EXPORTER_OTLP_HEADERS: 'x-team = soup ,authorization=Bearer%20abc'})
const answer = await chat(server, {traceparent: `00-${trace}-b7ad6b7169203331-01`})
equal(answer.status, 200, 'a chat')
equal(await server.stop(), 0, 'the end waits for what is left')
const all = spans()
const named = (start) => all.filter((s) => s.name.startsWith(start))
equal([named('invoke_workflow').length, named('chat ').length], [1, 1], 'spans of the run and of its model', all.map((s) => s.name))
equal([...new Set(all.map((s) => s.traceId))], [trace], 'all are of the trace of the caller')
const run = named('invoke_workflow')[0]
equal(run.parentSpanId, 'b7ad6b7169203331', 'the run is within the span of the caller')
equal(attr(run, 'reeve.run.id'), answer.headers.get('x-run-id'), 'it says which run it is')
const session = answer.headers.get('x-session-id')
const rows = command('sessions', 'messages', session, '--store', store('otlp.db')).out.split('\n').filter(Boolean).map((line) => JSON.parse(line))
const stage = named('reeve.stage')[0]
equal([...new Set(rows.map((r) => `${r.trace_id} ${r.span_id}`))], [`${trace} ${stage.spanId}`], 'rows name the trace and the span of their visit', rows)
const above = (s) => all.find((o) => o.spanId === s.parentSpanId)
check(above(named('chat ')[0])?.name.match(/^(reeve\.stage|invoke_agent) /), 'the model is within a stage or an agent', all.map((s) => s.name))
equal(above(above(named('chat ')[0])), run, 'and that within the run')
check(!JSON.stringify(got).includes('secret words'), 'no words')
check(got.every((g) => g.headers['x-team'] === 'soup' && g.headers.authorization === 'Bearer abc'), 'with the headers that were asked for', got[0].headers)
check(got.every((g) => g.type === 'application/json'), 'it is JSON')
equal(got.filter((g) => g.status === 503).length, 1, 'what was refused for a while came again')
const resource = Object.fromEntries(traces()[0].body.resourceSpans[0].resource.attributes.map((a) => [a.key, a.value.stringValue]))
equal(resource['service.name'], 'shop', 'the name of the service')
const metrics = got.filter((g) => g.path === '/v1/metrics')
check(JSON.stringify(metrics).includes('http.server.request.duration'), 'metrics come at the end, too')

// --- a caller who is a user does not get into a trace of others: there is a link
got.length = 0
const ada = JSON.parse(command('keys', 'create', '--json', '--store', store('otlp.db'), '--user', 'ada').out).key
server = await serve('otlp.db', args, {OTEL_EXPORTER_OTLP_ENDPOINT: url})
equal((await chat(server, {'x-api-key': ada, traceparent: `00-${trace}-b7ad6b7169203331-01`})).status, 200, 'a chat of ada')
equal(await server.stop(), 0, 'it ends as it should')
const hers = spans().find((s) => s.name.startsWith('invoke_workflow'))
check(hers && hers.traceId !== trace && !hers.parentSpanId, 'a trace of its own', hers)
equal(hers?.links?.map((l) => l.traceId), [trace], 'with a link')

// --- a run of the queue is of the trace of who asked for it, its stages and tools within it
got.length = 0
server = await serve('runs.db', [...args, '--otlp', url, '--pipelines', 'pipelines', '--scripts', 'pipelines/scripts'])
const queued = (headers) => call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'secret words', wait: true}, headers)
const first = (await queued({traceparent: `00-${trace}-b7ad6b7169203331-01`})).json
equal((await queued({traceparent: 'nonsense'})).json.status, 'completed', 'a header that is malformed')
equal(await server.stop(), 0, 'it ends as it should')
const roots = spans().filter((s) => s.name.startsWith('invoke_workflow'))
const asked = roots.find((s) => attr(s, 'reeve.run.id') === first.id)
equal([roots.length, asked?.traceId, asked?.parentSpanId], [2, trace, 'b7ad6b7169203331'], 'the run is within the span of the caller', roots)
const inner = spans().filter((s) => s.traceId === trace)
check(inner.length > 1 && inner.every((s) => s === asked || inner.some((o) => o.spanId === s.parentSpanId)), 'and its stages are within it', inner.map((s) => s.name))
check(roots.every((s) => s === asked || (s.traceId !== trace && !s.parentSpanId)), 'the other has a trace of its own')
check(!JSON.stringify(got).includes('secret words'), 'no words of a run')

// --- switched off
got.length = 0
server = await serve('off.db', args, {OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_SDK_DISABLED: 'true'})
equal((await chat(server)).status, 200, 'a chat')
equal([await server.stop(), got.length], [0, 0], 'nothing is sent')

// --- providers are told the trace and the span of their call; without a collector, what a trusted caller says
got.length = 0
const asked_of = []
const model = createServer((req, res) => {
  req.resume().on('end', () => {
    asked_of.push({parent: req.headers.traceparent, state: req.headers.tracestate})
    res.writeHead(200, {'content-type': 'application/json'}).end(
      JSON.stringify({id: 'x', object: 'chat.completion', model: 'm', choices: [{index: 0, message: {role: 'assistant', content: 'Hi.'}, finish_reason: 'stop'}]}),
    )
  })
})
await new Promise((done) => model.listen(0, '127.0.0.1', done))
file('real/real.yaml', 'kind: agent\nname: real\ndescription: Answers.\nmodel: openai:m\n')
const real = {OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `http://127.0.0.1:${model.address().port}/v1`}
const says = {traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: 'shop=soup'}
const ask = (headers) => call(server, 'POST', '/v1/chat/completions', {model: 'real', messages: [{role: 'user', content: 'secret words'}]}, headers)
server = await serve('otlp.db', ['--schema-dir', `${scratch}/real`], {...real, P8_OTEL_ENABLED: 'true', P8_OTEL_COLLECTOR_ENDPOINT: url})
equal((await ask({...says, 'x-api-key': ada})).status, 200, 'a chat of ada')
await server.stop()
const of_ada = spans().find((s) => s.name.startsWith('chat '))
equal(asked_of.pop(), {parent: `00-${of_ada?.traceId}-${of_ada?.spanId}-01`, state: undefined}, 'a trace of its own, with the span of the call')
check(of_ada && of_ada.traceId !== trace, 'not that of a user')
const p8 = Object.fromEntries((traces()[0]?.body.resourceSpans[0].resource.attributes ?? []).map((a) => [a.key, a.value.stringValue]))
equal([p8['service.name'], p8['deployment.environment.name']], ['p8-api', 'production'], 'with the names of P8_OTEL_*')
server = await serve('plain.db', ['--schema-dir', `${scratch}/real`], real)
equal((await ask(says)).status, 200, 'a chat without a collector')
equal(asked_of.pop(), {parent: says.traceparent, state: says.tracestate}, 'goes out as it came in')
equal((await ask({...says, tracestate: 'Broken'})).status, 200, 'a state that is malformed')
equal(asked_of.pop(), {parent: says.traceparent, state: undefined}, 'is dropped')
equal((await ask()).status, 200, 'a chat of nobody')
equal(asked_of.pop(), {parent: undefined, state: undefined}, 'names no trace')
await server.stop()
model.close()
model.closeAllConnections()

check(bodies['/v1/traces'] >= 5 && bodies['/v1/metrics'] >= 4, 'messages of OTLP were read', bodies)
const [span] = all
for (const faulty of [{...span, traceID: span.traceId}, {...span, kind: 'internal'}, {...span, startTimeUnixNano: 'now'}]) {
  const body = {resourceSpans: [{scopeSpans: [{spans: [faulty]}]}]}
  check(!isDeepStrictEqual(received('/v1/traces', body), body), 'a span with a fault is noticed', faulty)
}

// --- a collector that is gone keeps nobody
collector.close()
collector.closeAllConnections()
server = await serve('gone.db', [...args, '--otlp', 'http://127.0.0.1:1'])
equal((await chat(server)).status, 200, 'a chat without a collector')
equal((await call(server, 'GET', '/healthz')).status, 200, 'and another request')
await server.kill()
const bad = command('serve', '--store', `${scratch}/bad.db`, '--otlp', 'localhost:4318')
equal([bad.status, bad.err.includes('--otlp') && bad.err.includes('hint:')], [2, true], 'an address that is none', bad.err)
for (const address of ['ftp://ada:hush@c/x?key=hush', 'http://ada:hush@c/x?key=hush', 'http://?key=hush']) {
  const told = spawnSync(reeve, ['serve', '--store', `${scratch}/bad.db`, '--otlp', address], {env: {...env, OTEL_EXPORTER_OTLP_HEADERS: 'no name=x'}, encoding: 'utf8'})
  equal([told.status, told.stderr.includes('hush')], [2, false], 'and no secret of one is shown', told.stderr)
}
const grpc = spawnSync(reeve, ['serve', '--store', `${scratch}/bad.db`], {env: {...env, P8_OTEL_ENABLED: 'true', P8_OTEL_PROTOCOL: 'grpc'}, encoding: 'utf8'})
equal([grpc.status, grpc.stderr.includes('P8_OTEL_PROTOCOL')], [2, true], 'a protocol that is not there', grpc.stderr)
finish('otlp')
