// node turns.mjs REEVE [NAME...]: plays each row of rows/turns.mjs on each wire: a turn that goes wrong is an error of that
// turn alone. What was said in it is kept and marked, and the next turn is answered, with a request that the vendor takes.
import {Chat} from './chat.mjs'
import {check, equal, eventsOf, finish, inTurns, scratch} from './kit.mjs'
import {FaultServer} from './fault-server.mjs'
import {FIRST, GOOD, SECOND, answer, turns} from './rows/turns.mjs'
import {wires} from './wires/wires.mjs'

const AT_ONCE = 4
const [reeve, ...only] = process.argv.slice(2)

// Who asks, by the prompt that the document has.
const voices = {
  general: 'You are the general assistant',
  'sample-agent': 'You are a small example',
  surveyor: 'You look at boats',
}
const lastOf = (messages, role) => messages.filter((m) => m.role === role).at(-1)?.text

function rowOn(wire, row) {
  const seen = new Map() // agent: requests of the first turn
  const on = {...row, wire: wire.name, name: `${wire.name}-${row.name}`, second: [], complaints: []}
  on.serve = (x) => {
    const {messages} = wire.readRequest(x.body)
    on.complaints.push(...wire.complaints(x.body, x.request.headers))
    if (lastOf(messages, 'user')?.endsWith(SECOND)) {
      on.second.push(messages)
      if (row.second) return row.second(x, {by: row.agent, n: on.second.length})
      return on.agent === 'surveyor'
        ? answer(x, {calls: [{name: 'final_result', arguments: '{"verdict":"laid up","hull":{"state":"rotten"}}'}]})
        : answer(x, {text: GOOD})
    }
    const by = Object.keys(voices).find((name) => messages[0].text.startsWith(voices[name]))
    seen.set(by, (seen.get(by) ?? 0) + 1)
    return row.serve(x, {by, n: seen.get(by)})
  }
  return on
}

async function first(chat, row) {
  if (!row.signal) return chat.say(FIRST)
  let sent = false
  const ran = await chat.start(['--message', FIRST, '--events', '--deltas'], {
    onOut(text, child) {
      const piece = text
        .split('\n')
        .some((l) => l.includes('"kind":"text"') && (row.in !== 'child' || l.includes('"depth":1')))
      if (sent || !piece) return
      sent = true
      child.kill(row.signal)
    },
  })
  const done = eventsOf(ran.out).find((e) => e.type === 'done')
  return {status: done?.status, exit: ran.status, err: ran.err, out: ran.out.slice(-600)}
}

function checkFirst(row, turn, what) {
  const {want} = row
  if (row.signal) {
    equal(turn.exit, row.signal === 'SIGKILL' ? 'SIGKILL' : 130, what('ends by the signal'))
    return
  }
  equal([turn.status, turn.exit, turn.stored], [want.status, want.exit, true], what('comes to its end'))
  if (want.error) check(want.error.test(turn.error ?? ''), what(`the error says ${want.error}`), turn)
  else equal(turn.error, undefined, what('is no error'))
  if (want.text !== undefined && want.text !== null) equal(turn.text, want.text, what('shows what was said'))
  if (want.says) check(turn.text?.includes(want.says), what(`shows "${want.says}"`), turn)
}

function checkRows(row, turn, rows, what) {
  const {want} = row
  const of = rows.filter((r) => r.run_id === rows[0]?.run_id)
  const types = of.map((r) => r.message_type)
  if (want.rows) equal(types.join(' '), want.rows, what('has these rows'))
  equal([types[0], types.at(-1)], ['user', 'assistant'], what('has the message and an answer'))
  equal(
    of.map((r) => r.status),
    of.map((_, i) => (want.failed ? (want.failed[i] ? 'failed' : 'completed') : want.status)),
    what('marks its rows'),
  )
  const kept = of.at(-1)
  const said = of
    .filter((r) => r.message_type === 'assistant' && !r.parent_call_id && r.content)
    .map((r) => r.content)
    .join('\n\n')
  if (turn.text !== undefined) equal(said, turn.text, what('keeps what was shown'))
  else if (want.text) equal(said, want.text, what('keeps what was said'))
  equal(Boolean(kept.metadata.error), want.status !== 'completed', what('keeps the error with the answer'))
  if (want.result) {
    const result = of.find((r) => r.message_type === 'tool_response' && !r.parent_call_id)
    check(want.result.test(result?.content), what(`the result of the call says ${want.result}`), result ?? null)
    equal(result?.metadata.is_error, true, what('the result of the call is an error'))
  }
  const calls = of.filter((r) => r.message_type === 'tool_call')
  const results = of.filter((r) => r.message_type === 'tool_response')
  equal(calls.length - results.length, want.unanswered ?? 0, what('has a result for each call that was over'))
  check(
    results.every((r) => calls.some((c) => c.tool_calls.id === r.tool_calls.id)),
    what('has no other results'),
  )
}

// The second turn: answered, kept, told what there was.
function checkSecond(row, turn, rows, what) {
  const good = row.agent === 'surveyor' ? {verdict: 'laid up', hull: {state: 'rotten'}} : GOOD
  equal([turn.status, turn.exit, turn.stored], ['completed', 0, true], what('the next turn completes'))
  equal(row.agent === 'surveyor' ? turn.output : turn.text, good, what('the next turn is answered'))
  equal(row.complaints, [], what('nothing that the vendor would refuse'))
  equal(row.second.length, row.sameIds ? 2 : 1, what('the next turn has its requests'))
  const told = row.second[0] ?? []
  const first = rows.filter((r) => r.run_id === rows[0].run_id)
  const isFailure =
    first[0].status === 'failed' && first.every((r) => r.message_type === 'user' || (r.message_type === 'assistant' && !r.content))
  const heard = told.filter((m) => m.role === 'user').flatMap((m) => m.text)
  check(
    // a message of which nothing came but a failure is not sent again
    heard.join('').includes(FIRST) !== isFailure && heard.at(-1)?.endsWith(SECOND),
    what('the next turn tells the messages of which something came'),
    told,
  )
  const kept = rows.filter((r) => r.run_id === rows[0].run_id).at(-1).content
  if (kept)
    check(
      told.some((m) => m.role === 'assistant' && m.text === kept),
      what('the next turn tells what was said'),
      told,
    )
  const last = rows.filter((r) => r.run_id === rows.at(-1).run_id)
  check(
    last.every((r) => r.status === 'completed') && last[0].content === SECOND,
    what('the next turn has rows of its own'),
    last,
  )
  equal(
    rows.map((r) => r.seq),
    rows.map((_, i) => i + 1),
    what('rows are numbered without gaps'),
  )
  const ids = rows.filter((r) => r.message_type === 'tool_call').map((r) => r.tool_calls.id)
  equal(new Set(ids).size, ids.length, what('no two calls share an id'))
}

async function play(row, server) {
  const url = (await server.baseUrl(row)).replace(/\/v1$/, '')
  const chat = new Chat(reeve, row.name, {wire: wires[row.wire], url, agent: row.agent ?? 'general'})
  const what = (text) => `${row.name}: ${text}`
  const turn = await first(chat, row)
  checkFirst(row, turn, what)
  if (row.want.requests) equal(server.requestsOf(row).length, row.want.requests, what('so many requests were sent'))
  const next = await chat.say(SECOND)
  const rows = await chat.rows()
  if (!check(rows.length > 0, what('there are rows'), turn, next)) return
  checkRows(row, turn, rows, what)
  checkSecond(row, next, rows, what)
}

const all = Object.values(wires).flatMap((wire) =>
  turns.filter((t) => !t.not_on?.[wire.name]).map((t) => rowOn(wire, t)),
)
const chosen = all.filter((r) => !only.length || only.some((o) => r.name.includes(o)))
const server = await new FaultServer(all, scratch).start()
await inTurns(chosen, AT_ONCE, (row) => play(row, server))
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish(`turns, ${chosen.length} rows`)
