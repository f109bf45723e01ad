// What a server can do wrong, as data: one row, one pipeline run. A row is
//
//   name     also its path on the fault server
//   wire     openai unless told
//   serve    what the server does with the request, see fault-server.mjs
//   address  instead of it: where the model is said to be, {refused|tls...}
//   knobs    further keys of the model
//   want     error_kind of the last llm_result, attempts, most seconds, texts that the error names, and the text that had
//            come; a row that wants no kind wants an answer. Without attempts any number will do.
import {gzipSync} from 'node:zlib'
import {wires} from './wires/wires.mjs'
import {random} from './random.mjs'

const MIB = 1 << 20
const usage = {input: 12, output: 4}
const openaiRequest = {stream_options: {include_usage: true}}
export const ANSWER = 'Wood floats.'
export const recorded = {
  openai: wires.openai.stream({text: ANSWER, finish: 'stop', usage}, random(7), 1, openaiRequest),
  anthropic: wires.anthropic.stream({text: ANSWER, finish: 'stop', usage}, random(7), 1),
  ollama: wires.ollama.stream({text: ANSWER, finish: 'stop', usage}, random(7)),
}
// The events of a recorded stream, up to the first that has the text so far.
const eventsOf = (stream) => stream.split('\n\n').filter(Boolean).map((e) => e + '\n\n')
const upToText = (wire, marker) => {
  const events = eventsOf(recorded[wire])
  return events.slice(0, events.findIndex((e) => e.includes(marker)) + 1).join('')
}
const openaiEvents = eventsOf(recorded.openai)
const isDone = (e) => e.includes('[DONE]')
const withoutDone = openaiEvents.filter((e) => !isDone(e)).join('')
const delta = (d, finish = null) =>
  `data: ${JSON.stringify({id: 'c', object: 'chat.completion.chunk', choices: [{index: 0, delta: d, finish_reason: finish}]})}\n\n`
const call = (index, more) => ({tool_calls: [{index, ...more}]})
const openCall = (index, id, name) => call(index, {id, type: 'function', function: {name, arguments: ''}})
const callArguments = (index, text) => call(index, {function: {arguments: text}})

// --- what a server does -----------------------------------------------------------------------------------------------

export const SSE = {'content-type': 'text/event-stream; charset=utf-8'}
export const JSON_TYPE = {'content-type': 'application/json'}
const body = (text, headers = SSE, status = 200) => (x) => x.send(status, headers, text)
const good = (x) => x.send(200, x.wire === 'ollama' ? {'content-type': 'application/x-ndjson'} : SSE, recorded[x.wire])
const refuse = (status, error, headers = {}) => body(JSON.stringify(error), {...JSON_TYPE, ...headers}, status)
const openaiError = (status, type, code, headers, message = `the server says ${status}`) =>
  refuse(status, wires.openai.error(type, message, code), headers)
const anthropicError = (status, type, headers) => refuse(status, wires.anthropic.error(type, `the server says ${status}`), headers)
const firstThen = (first, then = good) => (x) => (x.attempt === 1 ? first(x) : then(x))
const sendThen = (text, then) => async (x) => {
  x.head(200, SSE)
  await x.write(text)
  await then(x)
}
const stall = (x) => x.untilClosed()

const quick = {max_attempts: 1}
const openaiStatus = (status, type, code, kind, more = {}) => ({
  name: `openai-${status}${code ? '-' + code : ''}`, serve: openaiError(status, type, code), knobs: quick,
  want: {kind, attempts: 1, seconds: 2, says: [`the server says ${status}`], ...more},
})
const anthropicStatus = (status, type, kind) => ({
  name: `anthropic-${status}`, wire: 'anthropic', serve: anthropicError(status, type), knobs: quick,
  want: {kind, attempts: 1, seconds: 2, says: [`the server says ${status}`]},
})

export const rows = [
  // connections
  {name: 'refused', address: 'refused', knobs: quick, want: {kind: 'connection', seconds: 2}},
  {name: 'refused-thrice', address: 'refused', knobs: {max_attempts: 3, max_retry_wait_ms: 100}, want: {kind: 'connection', attempts: 3, seconds: 4}},
  {name: 'no-such-host', address: 'unknown', knobs: quick, want: {kind: 'connection', seconds: 10, says: ['peer.invalid']}},
  {name: 'nobody-accepts', address: 'full', knobs: {...quick, connect_timeout_ms: 300}, want: {kind: ['timeout', 'connection'], seconds: 2}},
  {name: 'tls-trusted', address: 'tls', knobs: {ca_file: 'local'}, serve: good, want: {seconds: 3}},
  {name: 'tls-self-signed', address: 'tls', knobs: quick, serve: good, want: {kind: 'connection', seconds: 3}},
  {name: 'tls-wrong-host', address: 'tls-wrong-host', knobs: {...quick, ca_file: 'other'}, serve: good, want: {kind: 'connection', seconds: 3}},
  {name: 'tls-on-plain-port', address: 'tls-on-plain-port', knobs: quick, serve: good, want: {kind: 'connection', seconds: 3}},
  {name: 'closed-at-once', serve: (x) => x.cut(), knobs: quick, want: {kind: 'connection', seconds: 2}},
  {name: 'closed-once-then-fine', serve: firstThen((x) => x.cut()), knobs: {max_attempts: 2}, want: {attempts: 2, seconds: 4}},
  {name: 'no-http', serve: (x) => x.raw('SSH-2.0-OpenSSH_9.2\r\n\r\n'), knobs: quick, want: {kind: ['protocol', 'connection'], seconds: 2}},
  {
    name: 'endless-head', serve: (x) => x.raw('HTTP/1.1 200 OK\r\n' + 'x-pad: ' .padEnd(1000, 'a') + '\r\n', {repeat: 20000}), knobs: quick,
    want: {kind: ['protocol', 'connection'], seconds: 5},
  },

  // time
  {name: 'slow-first-byte', serve: stall, knobs: {...quick, first_byte_timeout_ms: 300}, want: {kind: 'timeout', seconds: 2}},
  {name: 'head-and-no-body', serve: sendThen('', stall), knobs: {...quick, first_byte_timeout_ms: 5000, idle_timeout_ms: 300}, want: {kind: 'timeout', seconds: 2}},
  {name: 'late-but-in-time', serve: async (x) => { await x.wait(300); await good(x) }, knobs: {...quick, first_byte_timeout_ms: 5000}, want: {seconds: 3}},
  {
    name: 'stall-mid-stream', serve: sendThen(upToText('openai', 'content":"W'), stall), knobs: {idle_timeout_ms: 300, max_attempts: 3},
    want: {kind: 'timeout', attempts: 1, seconds: 2, partial: true},
  },
  {
    name: 'stall-mid-stream-anthropic', wire: 'anthropic', serve: sendThen(upToText('anthropic', 'text_delta'), stall),
    knobs: {idle_timeout_ms: 300, max_attempts: 3}, want: {kind: 'timeout', attempts: 1, seconds: 2, partial: true},
  },
  {
    name: 'only-comments-for-ever', serve: sendThen('', (x) => x.everyWhile(50, ': still here\n\n')), knobs: {...quick, idle_timeout_ms: 400},
    llm_timeout: 1, want: {kind: 'timeout', seconds: 3},
  },
  {
    name: 'a-letter-at-a-time-for-ever', serve: sendThen('', (x) => x.everyWhile(50, delta({content: 'a'}))), knobs: {...quick, idle_timeout_ms: 400},
    llm_timeout: 1, want: {kind: 'timeout', seconds: 3, partial: true},
  },

  // statuses
  openaiStatus(400, 'invalid_request_error', null, 'bad_request'),
  openaiStatus(400, 'invalid_request_error', 'context_length_exceeded', 'context_too_long'),
  openaiStatus(400, 'invalid_request_error', 'content_filter', 'content_filter'),
  openaiStatus(401, 'invalid_request_error', 'invalid_api_key', 'auth'),
  openaiStatus(403, 'permission_error', null, 'auth'),
  openaiStatus(404, 'invalid_request_error', 'model_not_found', 'bad_request'),
  openaiStatus(408, 'timeout', null, ['timeout', 'overloaded']),
  openaiStatus(413, 'invalid_request_error', null, ['context_too_long', 'bad_request']),
  openaiStatus(422, 'invalid_request_error', null, 'bad_request'),
  openaiStatus(429, 'rate_limit_error', 'rate_limit_exceeded', 'rate_limited'),
  openaiStatus(500, 'server_error', null, 'overloaded'),
  openaiStatus(502, 'server_error', null, 'overloaded'),
  openaiStatus(503, 'server_error', null, 'overloaded'),
  openaiStatus(504, 'server_error', null, ['overloaded', 'timeout']),
  openaiStatus(529, 'server_error', null, 'overloaded'),
  anthropicStatus(400, 'invalid_request_error', 'bad_request'),
  anthropicStatus(401, 'authentication_error', 'auth'),
  anthropicStatus(403, 'permission_error', 'auth'),
  anthropicStatus(404, 'not_found_error', 'bad_request'),
  anthropicStatus(413, 'request_too_large', ['context_too_long', 'bad_request']),
  anthropicStatus(429, 'rate_limit_error', 'rate_limited'),
  anthropicStatus(500, 'api_error', 'overloaded'),
  anthropicStatus(529, 'overloaded_error', 'overloaded'),
  {name: 'ollama-404', wire: 'ollama', serve: refuse(404, {error: 'model "llama3.2" not found'}), knobs: quick, want: {kind: 'bad_request', seconds: 2, says: ['not found']}},
  {name: 'redirect', serve: body('', {location: 'http://127.0.0.1:1/'}, 302), knobs: quick, want: {kind: ['protocol', 'bad_request'], seconds: 2}},
  {name: 'no-content', serve: body('', {}, 204), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {
    name: 'key-in-the-error', serve: (x) => x.send(401, JSON_TYPE, JSON.stringify(wires.openai.error('invalid_request_error', `Incorrect API key provided: ${x.key}`, 'invalid_api_key'))),
    knobs: quick, want: {kind: 'auth', seconds: 2, says: ['Incorrect API key']},
  },

  // repeats
  {name: '400-is-not-repeated', serve: openaiError(400, 'invalid_request_error', null), knobs: {max_attempts: 3}, want: {kind: 'bad_request', attempts: 1, seconds: 2}},
  {name: '500-then-fine', serve: firstThen(openaiError(500, 'server_error', null)), knobs: {max_attempts: 2}, want: {attempts: 2, seconds: 4}},
  {name: '529-then-fine', wire: 'anthropic', serve: firstThen(anthropicError(529, 'overloaded_error')), knobs: {max_attempts: 2}, want: {attempts: 2, seconds: 4}},
  {name: '503-for-ever', serve: openaiError(503, 'server_error', null), knobs: {max_attempts: 3, max_retry_wait_ms: 50}, want: {kind: 'overloaded', attempts: 3, seconds: 4}},
  {name: '429-after-0', serve: firstThen(openaiError(429, 'rate_limit_error', null, {'retry-after': '0'})), knobs: {max_attempts: 2}, want: {attempts: 2, seconds: 2}},
  {name: '429-after-0.2', serve: firstThen(openaiError(429, 'rate_limit_error', null, {'retry-after': '0.2'})), knobs: {max_attempts: 2}, want: {attempts: 2, least: 0.2, seconds: 2}},
  {name: '429-after-ms', serve: firstThen(openaiError(429, 'rate_limit_error', null, {'retry-after-ms': '250.5', 'retry-after': '30'})), knobs: {max_attempts: 2}, want: {attempts: 2, least: 0.25, seconds: 2}},
  {
    name: '429-after-date', serve: firstThen((x) => openaiError(429, 'rate_limit_error', null, {'retry-after': new Date(Date.now() + 2000).toUTCString()})(x)),
    knobs: {max_attempts: 2}, want: {attempts: 2, least: 0.9, seconds: 5},
  },
  {name: '429-after-an-hour', serve: openaiError(429, 'rate_limit_error', null, {'retry-after': '3600'}), knobs: {max_attempts: 2, max_retry_wait_ms: 300}, want: {kind: 'rate_limited', seconds: 3}},
  {name: '429-after-nonsense', serve: firstThen(openaiError(429, 'rate_limit_error', null, {'retry-after': '-1 soon'})), knobs: {max_attempts: 2}, want: {attempts: 2, seconds: 4}},
  {name: 'quota', serve: openaiError(429, 'insufficient_quota', 'insufficient_quota'), knobs: {max_attempts: 3}, want: {kind: 'rate_limited', attempts: 1, seconds: 2}},
  {name: 'told-not-to-repeat', serve: openaiError(500, 'server_error', null, {'x-should-retry': 'false'}), knobs: {max_attempts: 3}, want: {kind: 'overloaded', attempts: 1, seconds: 2}},

  // bodies
  {name: 'html-200', serve: body('<html><body>Welcome to the proxy</body></html>', {'content-type': 'text/html'}), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'html-502', serve: body('<html><body>Bad gateway</body></html>', {'content-type': 'text/html'}, 502), knobs: quick, want: {kind: 'overloaded', seconds: 2, says: ['502', 'Bad gateway']}},
  {name: 'plain-text', serve: body('Hello there', {'content-type': 'text/plain'}), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'no-content-type', serve: body('Hello there', {}), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'json-as-stream', serve: body('{"choices":[]}', SSE), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'json-cut', serve: body('{"id":"x","choices":[{"index":0,"mess', JSON_TYPE), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'empty', serve: body('', SSE), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'whole-json', serve: body(JSON.stringify(wires.openai.whole({text: ANSWER, finish: 'stop', usage}, 1)), JSON_TYPE), want: {seconds: 2}},
  {name: 'gigabyte-of-zeros', serve: (x) => x.flood(200, SSE, Buffer.alloc(MIB), 1024), knobs: quick, want: {kind: 'protocol', seconds: 5}},
  {name: 'gigabyte-of-json', serve: (x) => x.flood(200, JSON_TYPE, Buffer.alloc(MIB, ' '), 1024), knobs: quick, want: {kind: 'protocol', seconds: 8}},
  {name: 'gigabyte-of-error', serve: (x) => x.flood(500, JSON_TYPE, Buffer.alloc(MIB, 'a'), 1024), knobs: quick, want: {kind: 'overloaded', seconds: 8}},
  {name: 'gigabyte-of-comments', serve: (x) => x.flood(200, SSE, Buffer.from(': nothing\n'.repeat(MIB / 10)), 1024), knobs: quick, want: {kind: 'protocol', seconds: 12}},
  {name: 'gigabyte-of-text', serve: (x) => x.flood(200, SSE, Buffer.from(delta({content: 'a'.repeat(1000)}).repeat(1000)), 1024), knobs: quick, want: {kind: 'protocol', seconds: 20}},
  {
    name: 'gigabyte-in-a-nutshell', serve: body(gzipSync(Buffer.alloc(1024 * MIB), {level: 1}), {...SSE, 'content-encoding': 'gzip'}), knobs: quick,
    want: {kind: 'protocol', seconds: 8},
  },
  {name: 'deep', serve: body(`data: ${'['.repeat(200000)}\n\n`), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'invalid-utf8', serve: body(Buffer.concat([Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"'), Buffer.from([0xc3, 0x28, 0xff]), Buffer.from('"}}]}\n\n')])), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'lone-surrogate', serve: body('data: {"choices":[{"index":0,"delta":{"content":"a\\ud800b"},"finish_reason":null}]}\n\n' + delta({}, 'stop') + 'data: [DONE]\n\n'), knobs: quick, want: {either: true, kind: 'protocol', seconds: 2}},
  {name: 'no-json', serve: body('data: {"choices":[{"index":0,"delta":{"content":"a"}}]\n\n'), knobs: quick, want: {kind: 'protocol', seconds: 2}},
  {name: 'unknown-members', serve: body(openaiEvents.map((e) => (isDone(e) ? e : e.replace('{"id"', '{"new":{"x":[1]},"id"'))).join('')), want: {seconds: 2}},
  {name: 'crlf', serve: body(recorded.openai.replaceAll('\n', '\r\n')), want: {seconds: 2}},
  {name: 'bom-and-comments', serve: body('\ufeff: hello\n\n' + openaiEvents.join(': ping\n\n')), want: {seconds: 2}},
  {name: 'gzip', serve: body(gzipSync(recorded.openai), {...SSE, 'content-encoding': 'gzip'}), want: {seconds: 2}},
  {name: 'gzip-broken', serve: body('this is not gzip', {...SSE, 'content-encoding': 'gzip'}), knobs: quick, want: {kind: ['protocol', 'connection'], seconds: 2}},
  {name: 'done-twice', serve: body(recorded.openai + 'data: [DONE]\n\n'), want: {seconds: 2}},
  {name: 'text-after-done', serve: body(recorded.openai + delta({content: ' And stone.'})), want: {seconds: 2}},
  {name: 'no-done', serve: body(withoutDone), want: {seconds: 2}},
  {name: 'no-finish', serve: body(upToText('openai', 'content":"W')), knobs: {max_attempts: 3}, want: {kind: 'protocol', attempts: 1, seconds: 2, partial: true}},
  {name: 'done-without-finish', serve: body(upToText('openai', 'content":"W') + 'data: [DONE]\n\n'), knobs: quick, want: {either: true, kind: 'protocol', seconds: 2}},
  {name: 'no-message-stop', wire: 'anthropic', serve: body(recorded.anthropic.replace(wires.anthropic.end, '')), knobs: quick, want: {kind: 'protocol', seconds: 2, partial: true}},
  {name: 'no-done-line', wire: 'ollama', serve: body(recorded.ollama.split('\n')[0] + '\n', {'content-type': 'application/x-ndjson'}), knobs: quick, want: {kind: 'protocol', seconds: 2, partial: true}},
  {
    name: 'error-mid-stream', serve: body(upToText('openai', 'content":"W') + `data: ${JSON.stringify(wires.openai.error('server_error', 'the model fell over'))}\n\n`),
    knobs: {max_attempts: 3}, want: {kind: 'overloaded', attempts: 1, seconds: 2, says: ['the model fell over'], partial: true},
  },
  {
    name: 'error-mid-stream-anthropic', wire: 'anthropic',
    serve: body(upToText('anthropic', 'text_delta') + `event: error\ndata: ${JSON.stringify(wires.anthropic.error('overloaded_error', 'Overloaded'))}\n\n`),
    knobs: {max_attempts: 3}, want: {kind: 'overloaded', attempts: 1, seconds: 2, says: ['Overloaded'], partial: true},
  },
  {
    name: 'error-mid-stream-ollama', wire: 'ollama', serve: body(recorded.ollama.split('\n')[0] + '\n{"error":"out of memory"}\n', {'content-type': 'application/x-ndjson'}),
    knobs: {max_attempts: 3}, want: {kind: 'overloaded', attempts: 1, seconds: 2, says: ['out of memory'], partial: true},
  },

  // tool calls; what the tools were asked is compared
  {
    name: 'calls-interleaved', tools: true,
    serve: firstThen(body(delta({role: 'assistant', content: null}) + delta(openCall(0, 'a', 'weather')) + delta(openCall(1, 'b', 'weather')) +
      delta(callArguments(1, '{"city":')) + delta(callArguments(0, '{"city":"O')) + delta(callArguments(1, '"Bern"}')) + delta(callArguments(0, 'slo"}')) +
      delta({}, 'tool_calls') + 'data: [DONE]\n\n')),
    want: {seconds: 3, asked: ['{"city":"Oslo"}', '{"city":"Bern"}']},
  },
  {
    name: 'calls-out-of-order', tools: true,
    serve: firstThen(body(delta(openCall(1, 'b', 'weather')) + delta(callArguments(1, '{"city":"Bern"}')) + delta(openCall(0, 'a', 'weather')) +
      delta(callArguments(0, '{"city":"Oslo"}')) + delta({}, 'tool_calls') + 'data: [DONE]\n\n')),
    want: {seconds: 3, asked: ['{"city":"Oslo"}', '{"city":"Bern"}'], anyOrder: true},
  },
  {
    name: 'calls-whole-without-ids', tools: true,
    serve: firstThen(body(delta({tool_calls: [
      {type: 'function', function: {name: 'weather', arguments: '{"city":"Oslo"}'}}, {type: 'function', function: {name: 'weather', arguments: '{"city":"Bern"}'}},
    ]}) + delta({}, 'stop') + 'data: [DONE]\n\n')),
    want: {seconds: 3, asked: ['{"city":"Oslo"}', '{"city":"Bern"}']},
  },
  {
    name: 'more-calls-than-anyone-makes', tools: true, serve: body(Array.from({length: 2000}, (_, i) => delta(openCall(i, `c${i}`, 'weather'))).join('') + delta({}, 'tool_calls')),
    knobs: quick, want: {kind: 'protocol', seconds: 3},
  },
]
