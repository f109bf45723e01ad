// Answers that look well and are not, or look odd and are fine.
import {gzipSync} from 'node:zlib'
import {wires} from '../wires/wires.mjs'
import {
  MIB,
  usage,
  ANSWER,
  recorded,
  upToText,
  openaiEvents,
  isDone,
  withoutDone,
  delta,
  SSE,
  JSON_TYPE,
  body,
  quick,
} from './serve.mjs'

export const bodies = [
  {
    name: 'html-200',
    serve: body('<html><body>Welcome to the proxy</body></html>', {'content-type': 'text/html'}),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {
    name: 'html-502',
    serve: body('<html><body>Bad gateway</body></html>', {'content-type': 'text/html'}, 502),
    knobs: quick,
    want: {kind: 'overloaded', says: ['502', 'Bad gateway']},
  },
  {
    name: 'plain-text',
    serve: body('Hello there', {'content-type': 'text/plain'}),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {name: 'no-content-type', serve: body('Hello there', {}), knobs: quick, want: {kind: 'protocol'}},
  {name: 'json-as-stream', serve: body('{"choices":[]}', SSE), knobs: quick, want: {kind: 'protocol'}},
  {
    name: 'json-cut',
    serve: body('{"id":"x","choices":[{"index":0,"mess', JSON_TYPE),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {name: 'empty', serve: body('', SSE), knobs: quick, want: {kind: 'protocol'}},
  {
    name: 'whole-json',
    serve: body(JSON.stringify(wires.openai.whole({text: ANSWER, finish: 'stop', usage}, 1)), JSON_TYPE),
    want: {},
  },
  {
    name: 'gigabyte-of-zeros',
    serve: (x) => x.flood(200, SSE, Buffer.alloc(MIB), 1024),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {
    name: 'gigabyte-of-json',
    serve: (x) => x.flood(200, JSON_TYPE, Buffer.alloc(MIB, ' '), 1024),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {
    name: 'gigabyte-of-error',
    serve: (x) => x.flood(500, JSON_TYPE, Buffer.alloc(MIB, 'a'), 1024),
    knobs: quick,
    want: {kind: 'overloaded'},
  },
  {
    name: 'gigabyte-of-comments',
    serve: (x) => x.flood(200, SSE, Buffer.from(': nothing\n'.repeat(MIB / 10)), 1024),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {
    name: 'gigabyte-of-text',
    serve: (x) => x.flood(200, SSE, Buffer.from(delta({content: 'a'.repeat(1000)}).repeat(1000)), 1024),
    knobs: quick,
    want: {kind: 'protocol', partial: true},
  },
  {
    name: 'gigabyte-in-a-nutshell',
    serve: body(gzipSync(Buffer.alloc(1024 * MIB), {level: 1}), {...SSE, 'content-encoding': 'gzip'}),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {name: 'deep', serve: body(`data: ${'['.repeat(200000)}\n\n`), knobs: quick, want: {kind: 'protocol'}},
  {
    name: 'invalid-utf8',
    serve: body(
      Buffer.concat([
        Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"'),
        Buffer.from([0xc3, 0x28, 0xff]),
        Buffer.from('"}}]}\n\n'),
      ]),
    ),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {
    name: 'lone-surrogate',
    serve: body(
      'data: {"choices":[{"index":0,"delta":{"content":"a\\ud800b"},"finish_reason":null}]}\n\n' +
        delta({}, 'stop') +
        'data: [DONE]\n\n',
    ),
    knobs: quick,
    want: {either: true, kind: 'protocol'},
  },
  {
    name: 'no-json',
    serve: body('data: {"choices":[{"index":0,"delta":{"content":"a"}}]\n\n'),
    knobs: quick,
    want: {kind: 'protocol'},
  },
  {
    name: 'unknown-members',
    serve: body(openaiEvents.map((e) => (isDone(e) ? e : e.replace('{"id"', '{"new":{"x":[1]},"id"'))).join('')),
    want: {},
  },
  {name: 'crlf', serve: body(recorded.openai.replaceAll('\n', '\r\n')), want: {}},
  {name: 'bom-and-comments', serve: body('\ufeff: hello\n\n' + openaiEvents.join(': ping\n\n')), want: {}},
  {name: 'gzip', serve: body(gzipSync(recorded.openai), {...SSE, 'content-encoding': 'gzip'}), want: {}},
  {
    name: 'gzip-broken',
    serve: body('this is not gzip', {...SSE, 'content-encoding': 'gzip'}),
    knobs: quick,
    want: {kind: ['protocol', 'connection']},
  },
  {name: 'done-twice', serve: body(recorded.openai + 'data: [DONE]\n\n'), want: {}},
  {name: 'text-after-done', serve: body(recorded.openai + delta({content: ' And stone.'})), want: {}},
  {name: 'no-done', serve: body(withoutDone), want: {}},
  {
    name: 'no-finish',
    serve: body(upToText('openai', 'content":"W')),
    knobs: {max_attempts: 3},
    want: {kind: 'protocol', attempts: 1, partial: true},
  },
  {
    name: 'done-without-finish',
    serve: body(upToText('openai', 'content":"W') + 'data: [DONE]\n\n'),
    knobs: quick,
    want: {either: true, kind: 'protocol', partial: true},
  },
  {
    name: 'no-message-stop',
    wire: 'anthropic',
    serve: body(recorded.anthropic.replace(wires.anthropic.end, '')),
    knobs: quick,
    want: {kind: 'protocol', partial: true},
  },
  {
    name: 'no-done-line',
    wire: 'ollama',
    serve: body(recorded.ollama.split('\n')[0] + '\n', {'content-type': 'application/x-ndjson'}),
    knobs: quick,
    want: {kind: 'protocol', partial: true},
  },
  {
    name: 'error-mid-stream',
    serve: body(
      upToText('openai', 'content":"W') +
        `data: ${JSON.stringify(wires.openai.error('server_error', 'the model fell over'))}\n\n`,
    ),
    knobs: {max_attempts: 3},
    want: {kind: 'overloaded', attempts: 1, says: ['the model fell over'], partial: true},
  },
  {
    name: 'error-mid-stream-anthropic',
    wire: 'anthropic',
    serve: body(
      upToText('anthropic', 'text_delta') +
        `event: error\ndata: ${JSON.stringify(wires.anthropic.error('overloaded_error', 'Overloaded'))}\n\n`,
    ),
    knobs: {max_attempts: 3},
    want: {kind: 'overloaded', attempts: 1, says: ['Overloaded'], partial: true},
  },
  {
    name: 'error-mid-stream-ollama',
    wire: 'ollama',
    serve: body(recorded.ollama.split('\n')[0] + '\n{"error":"out of memory"}\n', {
      'content-type': 'application/x-ndjson',
    }),
    knobs: {max_attempts: 3},
    want: {kind: 'overloaded', attempts: 1, says: ['out of memory'], partial: true},
  },
]
