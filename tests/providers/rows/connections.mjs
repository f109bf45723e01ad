// No connection, the wrong one, or one on which time passes.
import {upToText, delta, body, good, firstThen, sendThen, stall, quick} from './serve.mjs'

export const connections = [
  {name: 'refused', address: 'refused', knobs: quick, want: {kind: 'connection', seconds: 2}},
  {
    name: 'refused-thrice',
    address: 'refused',
    knobs: {max_attempts: 3, max_retry_wait_ms: 100},
    want: {kind: 'connection', attempts: 3, seconds: 4},
  },
  {
    name: 'no-such-host',
    address: 'unknown',
    knobs: quick,
    want: {kind: 'connection', seconds: 10, says: ['peer-peer']},
  },
  {
    name: 'nobody-accepts',
    address: 'full',
    knobs: {...quick, connect_timeout_ms: 300},
    want: {kind: ['timeout', 'connection'], seconds: 2},
  },
  {name: 'tls-trusted', address: 'tls', knobs: {ca_file: 'local'}, serve: good, want: {seconds: 3}},
  {name: 'tls-self-signed', address: 'tls', knobs: quick, serve: good, want: {kind: 'connection', seconds: 3}},
  {
    name: 'http2',
    address: 'http2',
    knobs: {ca_file: 'local'},
    serve: (x) => (x.request.httpVersion === '2.0' ? good(x) : x.send(505, {}, '')),
    want: {seconds: 3},
  },
  {
    name: 'through-a-proxy',
    address: 'behind-a-proxy',
    knobs: {proxy: 'plain'},
    serve: (x) => (x.request.url.startsWith('http://model.invalid/') ? good(x) : x.send(400, {}, '')),
    want: {seconds: 3},
  },
  {
    name: 'tls-wrong-host',
    address: 'tls-wrong-host',
    knobs: {...quick, ca_file: 'other'},
    serve: good,
    want: {kind: 'connection', seconds: 3},
  },
  {
    name: 'tls-on-plain-port',
    address: 'tls-on-plain-port',
    knobs: quick,
    serve: good,
    want: {kind: 'connection', seconds: 3},
  },
  {name: 'closed-at-once', serve: (x) => x.cut(), knobs: quick, want: {kind: 'connection', seconds: 2}},
  {
    name: 'closed-once-then-fine',
    serve: firstThen((x) => x.cut()),
    knobs: {max_attempts: 2},
    want: {attempts: 2, seconds: 4},
  },
  {
    name: 'no-http',
    serve: (x) => x.raw('SSH-2.0-OpenSSH_9.2\r\n\r\n'),
    knobs: quick,
    want: {kind: ['protocol', 'connection'], seconds: 2},
  },
  {
    name: 'endless-head',
    serve: (x) => x.raw('HTTP/1.1 200 OK\r\n' + 'x-pad: '.padEnd(1000, 'a') + '\r\n', {repeat: 20000}),
    knobs: quick,
    want: {kind: ['protocol', 'connection'], seconds: 5},
  },
  {
    name: 'slow-first-byte',
    serve: stall,
    knobs: {...quick, first_byte_timeout_ms: 300},
    want: {kind: 'timeout', seconds: 2},
  },
  {
    name: 'head-and-no-body',
    serve: sendThen('', stall),
    knobs: {...quick, first_byte_timeout_ms: 5000, idle_timeout_ms: 300},
    want: {kind: 'timeout', seconds: 2},
  },
  {
    name: 'late-but-in-time',
    serve: async (x) => {
      await x.wait(300)
      await good(x)
    },
    knobs: {...quick, first_byte_timeout_ms: 5000},
    want: {seconds: 3},
  },
  {
    name: 'stall-mid-stream',
    serve: sendThen(upToText('openai', 'content":"W'), stall),
    knobs: {idle_timeout_ms: 300, max_attempts: 3},
    want: {kind: 'timeout', attempts: 1, seconds: 2, partial: true},
  },
  {
    name: 'stall-mid-stream-anthropic',
    wire: 'anthropic',
    serve: sendThen(upToText('anthropic', 'text_delta'), stall),
    knobs: {idle_timeout_ms: 300, max_attempts: 3},
    want: {kind: 'timeout', attempts: 1, seconds: 2, partial: true},
  },
  {
    name: 'only-comments-for-ever',
    serve: sendThen('', (x) => x.everyWhile(50, ': still here\n\n')),
    knobs: {...quick, idle_timeout_ms: 400},
    llm_timeout: 1,
    want: {kind: 'timeout', seconds: 3},
  },
  {
    name: 'a-letter-at-a-time-for-ever',
    serve: sendThen('', (x) => x.everyWhile(50, delta({content: 'a'}))),
    knobs: {...quick, idle_timeout_ms: 400},
    llm_timeout: 1,
    want: {kind: 'timeout', seconds: 3, partial: true},
  },
]
