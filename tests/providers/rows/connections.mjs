// No connection, the wrong one, or one on which time passes. Where a server has to come as far as its text before a
// limit ends the call, the limit is seconds: the machine may be slow.
import {upToText, delta, body, good, firstThen, sendThen, stall, quick} from './serve.mjs'

export const connections = [
  {name: 'refused', address: 'refused', knobs: quick, want: {kind: 'connection'}},
  {
    name: 'refused-thrice',
    address: 'refused',
    knobs: {max_attempts: 3, max_retry_wait_ms: 100},
    want: {kind: 'connection', attempts: 3},
  },
  {
    name: 'no-such-host',
    address: 'unknown',
    knobs: quick,
    want: {kind: 'connection', says: ['peer-peer']},
  },
  {
    name: 'nobody-accepts',
    address: 'full',
    knobs: {...quick, connect_timeout_ms: 300},
    want: {kind: ['timeout', 'connection']},
  },
  {name: 'tls-trusted', address: 'tls', knobs: {ca_file: 'local'}, serve: good, want: {}},
  {name: 'tls-self-signed', address: 'tls', knobs: quick, serve: good, want: {kind: 'connection'}},
  {
    name: 'http2',
    address: 'http2',
    knobs: {ca_file: 'local'},
    serve: (x) => (x.request.httpVersion === '2.0' ? good(x) : x.send(505, {}, '')),
    want: {},
  },
  {
    name: 'through-a-proxy',
    address: 'behind-a-proxy',
    knobs: {proxy: 'plain'},
    serve: (x) => (x.request.url.startsWith('http://model.invalid/') ? good(x) : x.send(400, {}, '')),
    want: {},
  },
  {
    name: 'tls-wrong-host',
    address: 'tls-wrong-host',
    knobs: {...quick, ca_file: 'other'},
    serve: good,
    want: {kind: 'connection'},
  },
  {
    name: 'tls-on-plain-port',
    address: 'tls-on-plain-port',
    knobs: quick,
    serve: good,
    want: {kind: 'connection'},
  },
  {name: 'closed-at-once', serve: (x) => x.cut(), knobs: quick, want: {kind: 'connection'}},
  {
    name: 'closed-once-then-fine',
    serve: firstThen((x) => x.cut()),
    knobs: {max_attempts: 2},
    want: {attempts: 2},
  },
  {
    name: 'no-http',
    serve: (x) => x.raw('SSH-2.0-OpenSSH_9.2\r\n\r\n'),
    knobs: quick,
    want: {kind: ['protocol', 'connection']},
  },
  {
    name: 'endless-head',
    serve: (x) => x.raw('HTTP/1.1 200 OK\r\n' + 'x-pad: '.padEnd(1000, 'a') + '\r\n', {repeat: 20000}),
    knobs: quick,
    want: {kind: ['protocol', 'connection']},
  },
  {
    name: 'slow-first-byte',
    serve: stall,
    knobs: {...quick, first_byte_timeout_ms: 300},
    want: {kind: 'timeout'},
  },
  {
    name: 'head-and-no-body',
    serve: sendThen('', stall),
    knobs: {...quick, first_byte_timeout_ms: 5000, idle_timeout_ms: 300},
    want: {kind: 'timeout'},
  },
  {
    name: 'late-but-in-time',
    serve: async (x) => {
      await x.wait(300)
      await good(x)
    },
    knobs: {...quick, first_byte_timeout_ms: 60000},
    want: {},
  },
  {
    name: 'stall-mid-stream',
    serve: sendThen(upToText('openai', 'content":"W'), stall),
    knobs: {idle_timeout_ms: 3000, max_attempts: 3},
    want: {kind: 'timeout', attempts: 1, partial: true},
  },
  {
    name: 'stall-mid-stream-anthropic',
    wire: 'anthropic',
    serve: sendThen(upToText('anthropic', 'text_delta'), stall),
    knobs: {idle_timeout_ms: 3000, max_attempts: 3},
    want: {kind: 'timeout', attempts: 1, partial: true},
  },
  {
    name: 'only-comments-for-ever',
    serve: sendThen('', (x) => x.everyWhile(50, ': still here\n\n')),
    knobs: {...quick, idle_timeout_ms: 400},
    llm_timeout: 4,
    want: {kind: 'timeout'},
  },
  {
    name: 'a-letter-at-a-time-for-ever',
    serve: sendThen('', (x) => x.everyWhile(50, delta({content: 'a'}))),
    knobs: {...quick, idle_timeout_ms: 400},
    llm_timeout: 4,
    want: {kind: 'timeout', partial: true},
  },
]
