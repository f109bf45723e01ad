// What a collector gets: one trace of a chat with its run, agent and model spans, the trace of who asked, and metrics.
// Proves p8.19: Turns, agents, models and tools are spans for a collector
import {createServer} from 'node:http'
import {agents, call, check, command, equal, file, finish, scratch, serve, store} from './kit.mjs'

const script = file('talk.yaml', 'models:\n  boss:\n    - {text: One., usage: {input_tokens: 9, output_tokens: 2}}\n    - {text: Two.}\n    - {text: Three.}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const args = ['--schema-dir', agents(), '--script', script]

// A collector: what it got, and what it answers next (200 when nothing is said).
const got = []
const answers = []
const collector = createServer((req, res) => {
  let text = ''
  req.on('data', (part) => (text += part))
  req.on('end', () => {
    const status = answers.shift() ?? 200
    got.push({path: req.url, headers: req.headers, type: req.headers['content-type'], status, body: JSON.parse(text)})
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
let server = await serve('otlp.db', [...args, '--otlp', `${url}/`], {OTEL_SERVICE_NAME: 'shop', OTEL_EXPORTER_OTLP_HEADERS: 'x-team=soup,authorization=Bearer%20abc'})
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

// --- a collector that is gone keeps nobody
collector.close()
collector.closeAllConnections()
server = await serve('gone.db', [...args, '--otlp', 'http://127.0.0.1:1'])
equal((await chat(server)).status, 200, 'a chat without a collector')
equal((await call(server, 'GET', '/healthz')).status, 200, 'and another request')
await server.kill()
const bad = command('serve', '--store', `${scratch}/bad.db`, '--otlp', 'localhost:4318')
equal([bad.status, bad.err.includes('--otlp') && bad.err.includes('hint:')], [2, true], 'an address that is none', bad.err)
finish('otlp')
