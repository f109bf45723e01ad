// What can go wrong within a turn of a chat, as data: one row, two turns of a session on each wire. The first turn meets the
// fault, the second is answered well. A row is
//
//   name     and who is talked to: `agent`, general unless told
//   serve    what the server does with a request of the first turn; q = {by: agent that asks, n: of its requests so far}
//   sameIds  the server numbers its calls anew with each reply
//   second   what it does in the second turn, if that is more than to answer well
//   signal   sent to the program when the first piece of the answer is seen; `in: child` waits for the asked agent's
//   not_on   wires that can not say it, with the reason
//   want     of the first turn: its status, its exit status, what its error says, the text that is shown and kept, the kinds
//            of its rows in order; of a call: what its result says. requests: how many were sent for it
import {random} from '../random.mjs'
import {wires} from '../wires/wires.mjs'
import {JSON_TYPE} from './serve.mjs'

export const FIRST = 'Tell me about boats.'
export const SECOND = 'Are you there again?'
export const GOOD = 'I am here again.'

const usage = {input: 20, output: 6}
const frames = {openai: '\n\n', anthropic: '\n\n', ollama: '\n'}
// Where the last piece of what was said has come, and its end has not.
const endOfText = {openai: '"finish_reason":"', anthropic: 'event: content_block_stop', ollama: '"done":true'}

const streamOf = (x, reply) => {
  const whole = {finish: reply.calls ? 'tool_calls' : 'stop', usage, ...reply}
  return wires[x.wire].stream(whole, random(5), x.row.sameIds ? 'same' : x.attempt, x.body)
}
const headers = (x) => ({'content-type': wires[x.wire].contentType})
export const answer = (x, reply) => x.send(200, headers(x), streamOf(x, reply))
export const say = (text) => (x) => answer(x, {text})
const call = (name, args, text) => (x) =>
  answer(x, {text, calls: [{name, arguments: typeof args === 'string' ? args : JSON.stringify(args)}]})

// All of a text, then the connection breaks.
export function framesBeforeEnd(wire, stream) {
  const all = stream.split(frames[wire]).map((f) => f + frames[wire])
  return all.slice(
    0,
    all.findIndex((f) => f.includes(endOfText[wire])),
  )
}
// A text in given pieces: {begin, piece: [bytes of each], rest}.
export function cut(x, texts) {
  const wire = wires[x.wire]
  const frame = frames[x.wire]
  const all = streamOf(x, {text: '#'.repeat(20)}) // pieces of one letter each would do; any are thrown away
    .split(frame)
    .filter(Boolean)
    .map((f) => f + frame)
  const isPiece = (f) => /[^#]#+[^#]/.test(f)
  const from = all.findIndex(isPiece)
  const to = all.findLastIndex(isPiece) + 1
  const piece = texts.map((text) => all[from].replace(/#+/, JSON.stringify(text).slice(1, -1)))
  return {begin: all.slice(0, from).join(''), piece, rest: all.slice(to).join(''), type: wire.contentType}
}
const cutBehind = (text) => async (x) => {
  x.head(200, headers(x))
  await x.write(framesBeforeEnd(x.wire, streamOf(x, {text})).join(''))
  setTimeout(() => x.cut(), 5) // behind what was written
}
// The connection breaks within the arguments of a call.
const cutInCall = (text, name, args) => async (x) => {
  const whole = streamOf(x, {text, calls: [{name, arguments: JSON.stringify(args)}]})
  const at = whole.indexOf(
    x.wire === 'ollama' ? 'arguments' : x.wire === 'openai' ? '"arguments":"","' : 'input_json_delta',
  )
  const half = at < 0 ? whole.lastIndexOf('arguments') : at
  x.head(200, headers(x))
  await x.write(whole.slice(0, half + 60))
  setTimeout(() => x.cut(), 5)
}
const status = (code) => (x) =>
  x.send(code, JSON_TYPE, JSON.stringify(wires[x.wire].error('server_error', `the server says ${code}`)))
// Until somebody hangs up.
const hangBehind = (text) => async (x) => {
  x.head(200, headers(x))
  await x.write(framesBeforeEnd(x.wire, streamOf(x, {text})).join(''))
  await x.untilClosed()
}

const note = {type: 'observation', payload: {confidence: 0.5}}
const task = {agent_name: 'sample-agent', input_text: 'Describe a boat.'}
const inTurn =
  (...serves) =>
  (x, q) =>
    serves[Math.min(q.n, serves.length) - 1](x, q)
const byAgent = (serves) => (x, q) => serves[q.by](x, q)

export const turns = [
  {
    name: 'cut-mid-stream',
    serve: cutBehind('Boats float, and'),
    want: {status: 'failed', exit: 1, error: /generation failed/, text: 'Boats float, and', rows: 'user assistant'},
  },
  {
    name: 'cut-in-a-call',
    serve: cutInCall('Let me see.', 'action', note),
    want: {status: 'failed', exit: 1, error: /generation failed/, text: 'Let me see.', rows: 'user assistant'},
  },
  {
    name: 'cut-behind-a-call',
    serve: inTurn(call('action', note, 'I note that.'), cutBehind('Boats fl')),
    want: {
      status: 'failed',
      exit: 1,
      error: /generation failed/,
      text: 'I note that.\n\nBoats fl',
      rows: 'user assistant tool_call tool_response assistant',
    },
  },
  {
    name: 'always-500',
    serve: status(500),
    want: {status: 'failed', exit: 1, error: /the server says 500/, text: '', rows: 'user assistant', requests: 3},
  },
  {
    name: 'refused-400',
    serve: status(400),
    want: {status: 'failed', exit: 1, error: /the server says 400/, text: '', rows: 'user assistant', requests: 1},
  },
  {
    name: '500-behind-a-call',
    serve: inTurn(call('action', note), status(500)),
    want: {
      status: 'failed',
      exit: 1,
      error: /the server says 500/,
      text: '',
      rows: 'user tool_call tool_response assistant',
      requests: 4,
    },
  },
  {
    name: 'child-cut-mid-stream',
    serve: byAgent({
      general: inTurn(call('ask_agent', task, 'I ask.'), say('It was cut off.')),
      'sample-agent': cutBehind('A boat is a'),
    }),
    want: {
      status: 'completed',
      exit: 0,
      says: 'It was cut off.',
      rows: 'user assistant tool_call assistant tool_response assistant',
      failed: [false, false, false, true, false, false],
      result: /generation failed/,
    },
  },
  {
    name: 'child-500',
    serve: byAgent({
      general: inTurn(call('ask_agent', task, 'I ask.'), say('It does not answer.')),
      'sample-agent': status(500),
    }),
    want: {
      status: 'completed',
      exit: 0,
      says: 'It does not answer.',
      rows: 'user assistant tool_call assistant tool_response assistant',
      failed: [false, false, false, true, false, false],
      result: /generation failed/,
    },
  },
  {
    name: 'cut-behind-a-child',
    serve: byAgent({
      general: inTurn(call('ask_agent', task, 'I ask.'), cutBehind('And now')),
      'sample-agent': say('A boat is a hull.'),
    }),
    want: {
      status: 'failed',
      exit: 1,
      error: /generation failed/,
      says: 'A boat is a hull.',
      rows: 'user assistant tool_call assistant tool_response assistant',
      failed: [true, true, true, false, true, true], // the agent that was asked did its part
    },
  },
  {
    name: 'arguments-that-are-no-json',
    serve: inTurn(call('action', '{"type": "observation", "payl'), say('Then not.')),
    not_on: {ollama: 'arguments are an object there'},
    want: {
      status: 'completed',
      exit: 0,
      text: 'Then not.',
      rows: 'user tool_call tool_response assistant',
      result: /arguments: line 1/,
    },
  },
  {
    name: 'arguments-of-another-kind',
    serve: inTurn(call('action', {kind: 5}), say('Then not.')),
    want: {
      status: 'completed',
      exit: 0,
      text: 'Then not.',
      rows: 'user tool_call tool_response assistant',
      result: /type/,
    },
  },
  {
    name: 'a-tool-that-nobody-has',
    serve: inTurn(call('rm_rf', {path: '/'}), say('Then not.')),
    want: {
      status: 'completed',
      exit: 0,
      text: 'Then not.',
      rows: 'user tool_call tool_response assistant',
      result: /rm_rf/,
    },
  },
  {
    name: 'an-agent-that-nobody-has',
    serve: inTurn(call('ask_agent', {agent_name: 'nobody', input_text: 'x'}), say('Then not.')),
    want: {
      status: 'completed',
      exit: 0,
      text: 'Then not.',
      rows: 'user tool_call tool_response assistant',
      result: /Agent 'nobody' not found/,
    },
  },
  {
    name: 'tools-for-ever',
    serve: call('action', note),
    want: {
      status: 'failed',
      exit: 1,
      error: /limits.request_limit/,
      text: '',
      rows: 'user' + ' tool_call tool_response'.repeat(15) + ' assistant',
      requests: 15,
    },
  },
  {
    name: 'unknown-tools-for-ever',
    serve: call('rm_rf', {}),
    want: {status: 'failed', exit: 1, error: /rm_rf/, text: '', rows: null},
  },
  {
    name: 'nothing-at-all',
    serve: say(''),
    want: {status: 'completed', exit: 0, text: '', rows: 'user assistant'},
  },
  {
    name: 'nothing-behind-a-call',
    serve: inTurn(call('action', note), say('')),
    want: {status: 'completed', exit: 0, text: '', rows: 'user tool_call tool_response assistant'},
  },
  {
    name: 'output-that-never-fits',
    agent: 'surveyor',
    serve: call('final_result', {verdict: 'afloat', hull: {state: 'sound'}}),
    want: {status: 'failed', exit: 1, error: /verdict/, rows: null, requests: 2},
  },
  {
    name: 'words-in-place-of-output',
    agent: 'surveyor',
    serve: say('She is fine.'),
    want: {status: 'failed', exit: 1, error: /no JSON object/, rows: 'user assistant', requests: 2},
  },
  {
    name: 'cut-off-by-its-length',
    serve: (x) => answer(x, {text: 'Boats float, because', finish: 'length'}),
    want: {status: 'completed', exit: 0, text: 'Boats float, because', rows: 'user assistant'},
  },
  {
    name: 'an-empty-body',
    serve: (x) => x.send(200, headers(x), ''),
    want: {status: 'failed', exit: 1, error: /generation failed/, text: '', rows: 'user assistant'},
  },
  {
    name: 'the-same-ids-again',
    sameIds: true,
    serve: inTurn(call('action', note), call('action', note), say('Noted.')),
    second: inTurn(call('action', note), say(GOOD)),
    want: {
      status: 'completed',
      exit: 0,
      text: 'Noted.',
      rows: 'user tool_call tool_response tool_call tool_response assistant',
    },
  },
  {
    name: 'one-of-two-children-cut',
    serve: byAgent({
      general: inTurn(
        (x) =>
          answer(x, {
            calls: ['of wood', 'of steel'].map((kind) => ({
              name: 'ask_agent',
              arguments: JSON.stringify({...task, input_text: `Describe a boat ${kind}.`}),
            })),
          }),
        say('Half of it.'),
      ),
      'sample-agent': (x) =>
        (JSON.stringify(x.body).includes('of steel') ? cutBehind('Steel is') : say('Wood floats.'))(x),
    }),
    want: {
      status: 'completed',
      exit: 0,
      says: 'Half of it.',
      rows: 'user tool_call assistant tool_response tool_call assistant tool_response assistant',
      failed: [false, false, false, false, false, true, false, false],
    },
  },
  {
    name: 'interrupted-in-a-child',
    serve: byAgent({general: call('ask_agent', task, 'I ask.'), 'sample-agent': hangBehind('A boat is a')}),
    signal: 'SIGINT',
    in: 'child',
    want: {status: 'cancelled', text: null, rows: 'user assistant tool_call assistant assistant', unanswered: 1},
  },
  {
    name: 'killed-in-a-child',
    serve: byAgent({general: call('ask_agent', task, 'I ask.'), 'sample-agent': hangBehind('A boat is a')}),
    signal: 'SIGKILL',
    in: 'child',
    want: {status: 'cancelled', text: null, rows: null, unanswered: 1},
  },
  {
    name: 'interrupted',
    serve: hangBehind('Boats float, and'),
    signal: 'SIGINT',
    want: {status: 'cancelled', text: 'Boats float, and', rows: 'user assistant'},
  },
  {
    name: 'killed',
    serve: hangBehind('Boats float, and'),
    signal: 'SIGKILL',
    want: {status: 'cancelled', text: null, rows: null},
  },
  {
    name: 'killed-behind-a-call',
    serve: inTurn(call('action', note), hangBehind('Boats float, and')),
    signal: 'SIGKILL',
    want: {status: 'cancelled', text: null, rows: 'user tool_call tool_response assistant'},
  },
]
