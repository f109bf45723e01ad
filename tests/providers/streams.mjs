// node streams.mjs REEVE: pieces of a chat are handed on as they come. The server says the next piece only when the one
// before was seen at the other end, so what is held back until the end would never come. Agents that are asked are heard
// while they speak, each under its own name, and not any more when they have ended.
import {setTimeout as sleep} from 'node:timers/promises'
import {Chat} from './chat.mjs'
import {FaultServer} from './fault-server.mjs'
import {check, equal, eventsOf, finish, inTurns, scratch} from './kit.mjs'
import {answer, cut, say} from './rows/turns.mjs'
import {wires} from './wires/wires.mjs'

const PATIENCE_MS = 10 * 60000 // what is not seen by then is held back, however slow the machine
const [reeve, ...only] = process.argv.slice(2)

// What was seen of the program's output, and who waits for it.
class Watch {
  #text = ''
  #waiting = []
  broken = []

  take(text) {
    this.#text += text
    this.#waiting = this.#waiting.filter(({piece, resolve}) => !this.#has(piece) || resolve())
  }

  // A terminal keeps a blank for the word behind it.
  #has(piece) {
    return piece.test ? piece.test(this.#text) : this.#text.includes(piece.trim())
  }

  async seen(piece) {
    if (this.#has(piece)) return
    const shown = new Promise((resolve) => this.#waiting.push({piece, resolve}))
    const late = Symbol('late')
    const timer = new AbortController()
    if ((await Promise.race([shown, sleep(PATIENCE_MS, late, {signal: timer.signal})])) === late)
      this.broken.push(String(piece))
    timer.abort()
  }
}

// Says pieces of a text, each when `after` of it was seen; `end` is cut, or all is said.
async function speak(x, watch, script, end) {
  const wire = wires[x.wire]
  x.head(200, {'content-type': wire.contentType})
  const {begin, piece, rest} = cut(
    x,
    script.map(([text]) => text),
  )
  await x.write(begin)
  for (const [i, [, after]] of script.entries()) {
    if (after) await watch.seen(after)
    await x.write(piece[i])
  }
  const last = script.at(-1)[0]
  await watch.seen(last)
  if (end === 'cut') return x.cut()
  await x.write(rest)
  x.response.end()
}

const asks =
  (...tasks) =>
  (x) =>
    answer(x, {
      text: 'I ask.',
      calls: tasks.map((input_text) => ({
        name: 'ask_agent',
        arguments: JSON.stringify({agent_name: 'sample-agent', input_text}),
      })),
    })

// name; what the asking agent says first and then; what agents that are asked say, by their task; the pieces in the order
// in which they have to be seen, each with the task of its speaker (0: who was talked to). isAtOnce: two speak at the same
// time, of whom a terminal shows one after the other
const rows = [
  {
    name: 'one-agent',
    general: [(x, w) => speak(x, w, [['alpha '], ['beta ', 'alpha '], ['gamma', 'beta ']])],
    pieces: [
      ['alpha ', 0],
      ['beta ', 0],
      ['gamma', 0],
    ],
  },
  {
    name: 'an-agent-that-is-asked',
    general: [asks('wood'), say('Omega.')],
    children: {wood: (x, w) => speak(x, w, [['alpha '], ['beta ', 'alpha '], ['gamma', 'beta ']])},
    pieces: [
      ['alpha ', 'wood'],
      ['beta ', 'wood'],
      ['gamma', 'wood'],
    ],
  },
  {
    name: 'two-at-once',
    isAtOnce: true,
    general: [asks('wood', 'steel'), say('Omega.')],
    children: {
      wood: (x, w) => speak(x, w, [['alpha '], ['gamma ', 'beta ']]),
      steel: (x, w) =>
        speak(x, w, [
          ['beta ', 'alpha '],
          ['delta', 'gamma '],
        ]),
    },
    pieces: [
      ['alpha ', 'wood'],
      ['beta ', 'steel'],
      ['gamma ', 'wood'],
      ['delta', 'steel'],
    ],
  },
  {
    name: 'one-of-two-is-cut',
    isAtOnce: true,
    general: [asks('wood', 'steel'), say('Omega.')],
    children: {
      wood: (x, w) => speak(x, w, [['alpha ']], 'cut'),
      steel: (x, w) =>
        speak(x, w, [
          ['beta ', 'alpha '],
          ['delta', /error_kind|failed: /],
        ]),
    },
    pieces: [
      ['alpha ', 'wood'],
      ['beta ', 'steel'],
      ['delta', 'steel'],
    ],
    failed: ['wood'],
  },
]

function rowOn(wire, row) {
  const watch = new Watch()
  let n = 0
  return {
    ...row,
    watch,
    wire: wire.name,
    name: `${wire.name}-${row.name}`,
    serve(x) {
      const {messages} = wire.readRequest(x.body)
      if (messages[0].text.startsWith('You are the general assistant')) return row.general[n++](x, watch)
      return row.children[messages.at(-1).text](x, watch)
    },
  }
}

const labels = ({agent, depth, parent_tool_call_id}) => ({agent, depth, parent_tool_call_id})

function checkEvents(row, events, what) {
  const of = (type) => events.filter((e) => e.type === type)
  const calls = of('tool_call_start').map((e) => ({
    task: /"input_text":"(\w+)"/.exec(e.params_preview)?.[1],
    id: e.step_id,
  }))
  const label = (task) =>
    task
      ? {agent: 'sample-agent', depth: 1, parent_tool_call_id: calls.find((c) => c.task === task)?.id}
      : {agent: undefined, depth: undefined, parent_tool_call_id: undefined}
  const said = of('delta').filter((e) => e.kind === 'text' && row.pieces.some(([text]) => text === e.text))
  equal(
    said.map((e) => [e.text, labels(e)]),
    row.pieces.map(([text, task]) => [text, label(task)]),
    what('pieces come in order, each with its speaker'),
  )
  const own = of('delta').filter((e) => e.kind === 'text' && !e.parent_tool_call_id)
  equal(
    own.map((e) => e.text).join(''),
    calls.length ? 'I ask.Omega.' : 'alpha beta gamma',
    what('who asks has its own words'),
  )
  equal(new Set(calls.map((c) => c.id)).size, calls.length, what('calls have ids of their own'))

  // Between an agent's beginning and its end, and before the result of its call.
  const whose = (e) => e.parent_tool_call_id
  for (const {task, id} of calls) {
    const at = (type, test) => events.findIndex((e) => e.type === type && test(e))
    const own = events.flatMap((e, i) => (whose(e) === id ? [i] : []))
    const [begin, end] = [at('agent_started', (e) => whose(e) === id), at('agent_completed', (e) => whose(e) === id)]
    const result = at('tool_result', (e) => e.step_id === id && !whose(e))
    check(
      own.length > 0 && own[0] === begin && own.at(-1) === end && end < result,
      what(`${task}: all between its beginning and its end`),
      {own, begin, end, result},
    )
    equal(events[end]?.status, row.failed?.includes(task) ? 'error' : 'success', what(`${task}: comes to its end`))
  }
  equal(events.at(-1)?.type, 'done', what('nothing comes behind the end'))
  const seqs = events.flatMap((e) => e.seq ?? [])
  equal(
    seqs,
    seqs.map((_, i) => i + 1),
    what('events are numbered in order'),
  )
}

async function play(row, server) {
  const url = (await server.baseUrl(row)).replace(/\/v1$/, '')
  const chat = new Chat(reeve, row.name, {wire: wires[row.wire], url, agent: 'general'})
  const what = (text) => `${row.name}: ${text}`
  const ran = await chat.start(['--message', 'Speak.', '--events', '--deltas'], {onOut: (text) => row.watch.take(text)})
  equal(row.watch.broken, [], what('each piece is seen before the next one is said'))
  equal(ran.status, 0, what('the turn completes'))
  checkEvents(row, eventsOf(ran.out), what)
}

// The same with a person at a terminal, who sees the pieces as they come.
async function playAtTerminal(row, server) {
  const url = (await server.baseUrl(row)).replace(/\/v1$/, '')
  const chat = new Chat(reeve, row.name, {wire: wires[row.wire], url, agent: 'general'})
  const ran = await chat.start(['--message', 'Speak.'], {onOut: (text) => row.watch.take(text), terminal: true})
  equal(row.watch.broken, [], `${row.name}: each piece is shown before the next one is said`)
  equal(ran.status, 0, `${row.name}: the turn completes`)
}

const all = Object.values(wires).flatMap((wire) => [
  ...rows.map((r) => rowOn(wire, r)),
  ...rows.filter((r) => !r.isAtOnce).map((r) => rowOn(wire, {...r, name: `${r.name}-terminal`, terminal: true})),
])
const chosen = all.filter((r) => !only.length || only.some((o) => r.name.includes(o)))
const server = await new FaultServer(all, scratch).start()
await inTurns(chosen, 4, (row) => (row.terminal ? playAtTerminal : play)(row, server))
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish(`streams, ${chosen.length} rows`)
