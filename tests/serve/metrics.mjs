// What monitoring sees: the metrics of requests, turns and runs, and who may read them.
import {spawnSync} from 'node:child_process'
import {join} from 'node:path'
import {agents, call, check, command, equal, file, finish, here, serve, store} from './kit.mjs'

const script = file('talk.yaml', 'models:\n  boss:\n    - {text: One., usage: {input_tokens: 9, output_tokens: 2}}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const args = ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines']

// Families by name, as the reader of Prometheus' own Python client has them: {type, help, samples: [{name, labels, value}]}.
// It takes more than the server of Prometheus where the format is the older one: there promtool reads it, too, which
// REEVE_SOAK=1 insists on.
function parse(text, format = 'plain') {
  const read = spawnSync('/usr/bin/python3', [join(here, 'metrics.py'), format], {input: text, encoding: 'utf8'})
  check(read.status === 0, `others read the metrics (${format})`, read.stderr, text)
  if (format === 'plain') {
    check(/^(?:.+\n)+$/.test(text), 'each line has an end, and none is empty')
    const tool = spawnSync('promtool', ['check', 'metrics'], {input: text, encoding: 'utf8'})
    if (tool.error?.code !== 'ENOENT' || process.env.REEVE_SOAK)
      equal([tool.status, tool.stdout, tool.stderr], [0, '', ''], 'promtool (package prometheus) finds nothing')
  }
  return new Map(JSON.parse(read.stdout || '[]').map((family) => [family.name, family]))
}
const value = (families, name, labels) => {
  for (const f of families.values())
    for (const s of f.samples)
      if (s.name === name && Object.entries(labels).every(([k, v]) => s.labels[k] === v)) return s.value
}

let server = await serve('metrics.db', args)
await call(server, 'GET', '/agents')
await call(server, 'GET', '/agents')
const chat = await call(server, 'POST', '/v1/chat/completions', {model: 'boss', messages: [{role: 'user', content: 'secret words'}]})
equal(chat.status, 200, 'a chat')
equal((await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', wait: true})).status, 200, 'a run of the queue')
const plain = await call(server, 'GET', '/metrics')
equal([plain.status, plain.headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8'], 'metrics')
const m = parse(plain.text)
const route = (path, method = 'GET') => ({http_route: path, http_request_method: method, http_response_status_code: '200'})
equal(value(m, 'http_server_request_duration_seconds_count', route('/agents')), 2, 'two requests')
equal(value(m, 'http_server_request_duration_seconds_bucket', {...route('/agents'), le: '+Inf'}), 2, 'in their buckets')
equal(value(m, 'http_server_request_duration_seconds_count', route('/v1/chat/completions', 'POST')), 1, 'the chat')
equal(value(m, 'reeve_pipeline_executions_total', {pipeline: 'hooks'}), 1, 'the run of the queue', plain.text)
equal(value(m, 'reeve_pipeline_duration_seconds_count', {pipeline: 'hooks'}), 1, 'and its time')
equal(
  m.get('reeve_llm_calls').samples.filter((s) => s.labels.model === 'model').map((s) => [s.labels.provider, s.labels.status, s.value]),
  [['test', 'success', 1]],
  'the call of the model, by the name that its start said',
)
equal(value(m, 'gen_ai_client_token_usage_sum', {gen_ai_token_type: 'input', gen_ai_request_model: 'model'}), 9, 'its tokens')
check(!plain.text.includes('secret') && !plain.text.includes(chat.headers.get('x-run-id')), 'no words and no ids')

const open = await call(server, 'GET', '/metrics', undefined, {accept: 'application/openmetrics-text; version=1.0.0'})
equal(open.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8', 'OpenMetrics')
check(open.text.endsWith('# EOF\n'), 'with its end')
equal(value(parse(open.text, 'open'), 'http_server_request_duration_seconds_count', route('/metrics')), 1, 'which counts the first')
equal((await call(server, 'GET', '/nowhere')).status, 404, 'a path that is none')
const after = parse((await call(server, 'GET', '/metrics')).text)
equal(value(after, 'http_server_request_duration_seconds_count', {http_route: '', http_response_status_code: '404'}), 1, 'has no label of its own')
equal(await server.stop(), 0, 'it ends as it should')

// --- who may read them
const key = (...more) => JSON.parse(command('keys', 'create', '--json', '--store', store('metrics.db'), ...more).out).key
const usual = key('--user', 'ada')
const reader = key('--scopes', 'metrics:read')
server = await serve('metrics.db', args)
equal((await call(server, 'GET', '/metrics')).status, 401, 'nobody')
equal((await call(server, 'GET', '/metrics', undefined, {'x-api-key': usual})).status, 403, 'not with a usual key')
equal((await call(server, 'GET', '/metrics', undefined, {'x-api-key': reader})).status, 200, 'with a key for it')
equal(await server.stop(), 0, 'it ends as it should')
finish('metrics')
