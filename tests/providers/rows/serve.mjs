// What rows share: recorded streams, pieces of streams, and what a server does with a request. `serve` of a row gets the
// exchange of fault-server.mjs.
import {wires} from '../wires/wires.mjs'
import {random} from '../random.mjs'

export const MIB = 1 << 20
export const usage = {input: 12, output: 4}
export const openaiRequest = {stream_options: {include_usage: true}}
export const ANSWER = 'Wood floats.'
export const recorded = {
  openai: wires.openai.stream({text: ANSWER, finish: 'stop', usage}, random(7), 1, openaiRequest),
  anthropic: wires.anthropic.stream({text: ANSWER, finish: 'stop', usage}, random(7), 1),
  ollama: wires.ollama.stream({text: ANSWER, finish: 'stop', usage}, random(7)),
}
// The events of a recorded stream, up to the first that has the text so far.
export const eventsOf = (stream) =>
  stream
    .split('\n\n')
    .filter(Boolean)
    .map((e) => e + '\n\n')
export const upToText = (wire, marker) => {
  const events = eventsOf(recorded[wire])
  return events.slice(0, events.findIndex((e) => e.includes(marker)) + 1).join('')
}
export const openaiEvents = eventsOf(recorded.openai)
export const isDone = (e) => e.includes('[DONE]')
export const withoutDone = openaiEvents.filter((e) => !isDone(e)).join('')
export const delta = (d, finish = null) =>
  `data: ${JSON.stringify({id: 'c', object: 'chat.completion.chunk', choices: [{index: 0, delta: d, finish_reason: finish}]})}\n\n`
export const call = (index, more) => ({tool_calls: [{index, ...more}]})
export const openCall = (index, id, name) => call(index, {id, type: 'function', function: {name, arguments: ''}})
export const callArguments = (index, text) => call(index, {function: {arguments: text}})

// --- what a server does -----------------------------------------------------------------------------------------------

export const SSE = {'content-type': 'text/event-stream; charset=utf-8'}
export const JSON_TYPE = {'content-type': 'application/json'}
export const body =
  (text, headers = SSE, status = 200) =>
  (x) =>
    x.send(status, headers, text)
export const good = (x) =>
  x.send(200, x.wire === 'ollama' ? {'content-type': 'application/x-ndjson'} : SSE, recorded[x.wire])
export const refuse = (status, error, headers = {}) => body(JSON.stringify(error), {...JSON_TYPE, ...headers}, status)
export const openaiError = (status, type, code, headers, message = `the server says ${status}`) =>
  refuse(status, wires.openai.error(type, message, code), headers)
export const anthropicError = (status, type, headers) =>
  refuse(status, wires.anthropic.error(type, `the server says ${status}`), headers)
export const firstThen =
  (first, then = good) =>
  (x) =>
    x.attempt === 1 ? first(x) : then(x)
export const sendThen = (text, then) => async (x) => {
  x.head(200, SSE)
  await x.write(text)
  await then(x)
}
export const stall = (x) => x.untilClosed()

export const quick = {max_attempts: 1}
export const openaiStatus = (status, type, code, kind, more = {}) => ({
  name: `openai-${status}${code ? '-' + code : ''}`,
  serve: openaiError(status, type, code),
  knobs: quick,
  want: {kind, attempts: 1, says: [`the server says ${status}`], ...more},
})
export const anthropicStatus = (status, type, kind) => ({
  name: `anthropic-${status}`,
  wire: 'anthropic',
  serve: anthropicError(status, type),
  knobs: quick,
  want: {kind, attempts: 1, says: [`the server says ${status}`]},
})
