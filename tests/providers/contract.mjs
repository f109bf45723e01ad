// node contract.mjs REEVE PLUGINS [PART OF A NAME]: the same pipeline comes to the same envelope, whatever answers alike: a
// script, our replay server on the wire of OpenAI, of Anthropic, of Ollama, or a provider of a capability. The requests are compared too: each wire must carry
// the same conversation, and none what its vendor would refuse.
import {readFileSync} from 'node:fs'
import {join} from 'node:path'
import {conversations} from './conversations.mjs'
import {joined} from './deltas.mjs'
import {check, equal, eventsOf, finish, inTurns, scratch} from './kit.mjs'
import {KEY, runConversation, slug, writeFiles} from './play.mjs'
import {Played} from './played.mjs'
import {ReplayServer} from './replay-server.mjs'
import {asObject, comparable} from './wires/request.mjs'
import {wires} from './wires/wires.mjs'

const SEEDS = [1, 2]
const PRICE = {input: 1, output: 2} // of the pipelines; a dollar for a million tokens is a micro-dollar each
const [reeve, plugins, part] = process.argv.slice(2)

// What differs from run to run and from provider to provider: ids, times, who answered.
const volatile =
  /(^|_)id$|_at$|^(time|timestamp|model|provider|processing_time_ms|duration_ms|execution_time_ms|latency_ms|first_token_ms)$/
function settled(value) {
  if (Array.isArray(value)) return value.map(settled)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !volatile.test(key))
      .map(([key, v]) => [key, settled(v)]),
  )
}

// One run in each form of output; the server starts the conversation anew for each.
async function forms(c, files, script, server) {
  const out = {}
  for (const form of ['json', 'state', 'events']) {
    const ran = await runConversation(reeve, c, files, {form, script, server})
    out.status = ran.status
    try {
      out[form] = form === 'events' ? eventsOf(ran.out) : JSON.parse(ran.out)
    } catch {
      check(false, `${c.name}: --${form} can be read`, ran.out.slice(0, 300), ran.err.slice(0, 500))
      out[form] = {unreadable: ran.out.slice(0, 300)}
    }
  }
  return out
}

function checkWants(c, got, who) {
  const what = (text) => `${c.name}, ${who}: ${text}`
  const {wants} = c
  if (wants) equal({status: got.json.status, outputs: got.json.outputs}, wants, what('comes to what is wanted'))
  if (c.usage) {
    const cost = c.usage.input_tokens * PRICE.input + c.usage.output_tokens * PRICE.output
    equal(got.json.usage, {...c.usage, cost_micro_usd: cost}, what('the usage is summed up'))
  }
  for (const type of c.never ?? []) check(![].concat(got.events).some((e) => e.type === type), what(`no event ${type}`))
}

function checkRequests(c, server, who) {
  const requests = server.requests.map((r) => comparable(server.wire.readRequest(r)))
  equal(server.complaints, [], `${c.name}, ${who}: nothing that the vendor would refuse`)
  equal(requests.length, c.replies.length, `${c.name}, ${who}: a request for each reply`)
  equal(server.connections, 1, `${c.name}, ${who}: all on one connection`)
  for (const {request, role, contains} of c.tells ?? []) {
    const told =
      requests[request - 1]?.messages
        .slice(1)
        .filter((m) => !role || m.role === role)
        .map((m) => m.text)
        .join('\n') ?? ''
    check(
      told.includes(contains),
      `${c.name}, ${who}: request ${request} tells the model of "${contains}"`,
      requests[request - 1] ?? null,
    )
  }
  return requests
}

// What was recorded while a server answered plays the same run without one.
async function checkRecord(c, files, server, got, who) {
  const record = join(scratch, `${slug(c)}-${server.wire.name}-record.yaml`)
  const tools = c.tools ? files.tools : null
  const live = await runConversation(reeve, c, files, {form: 'json', script: tools, server, more: ['--record', record]})
  const replayed = await runConversation(reeve, c, files, {form: 'json', script: record})
  const read = (ran) => (ran.out.startsWith('{') ? settled(JSON.parse(ran.out)) : ran)
  equal(read(live), settled(got.json), `${c.name}, ${who}: the same while it is recorded`)
  equal(read(replayed), settled(got.json), `${c.name}, ${who}: the same when the record is played`)
  check(!readFileSync(record, 'utf8').includes(KEY), `${c.name}, ${who}: no key in the record`)
}

// What models say is handed on piece by piece, and what is sent to them can be looked at. Without a server: of a script.
async function checkPieces(c, files, script, server, who) {
  const payload = join(scratch, `${slug(c)}-payload.ndjson`)
  const more = ['--deltas', ...(server ? ['--debug-payload', payload] : [])]
  const ran = await runConversation(reeve, c, files, {form: 'events', script, server, more})
  const calls = new Map() // in the order in which they were made
  for (const e of eventsOf(ran.out).filter((x) => x.type === 'delta'))
    calls.set(e.call_id, [...(calls.get(e.call_id) ?? []), e])
  const got = [...calls.values()].map(joined)
  const want = c.replies.map((r, i) => ({
    text: r.text ?? '',
    calls: (server || !r.is_cut ? (r.calls ?? []) : []).map((x) => ({...x, arguments: asObject(x.arguments)})),
    usage: {input: r.usage.input, output: r.usage.output},
    finish: r.finish,
    wrong: [],
    open: r.is_cut ? got[i]?.open : 0, // some wires close what was cut off
  }))
  equal(got, want, `${c.name}, ${who}: the pieces are the replies`)
  if (server)
    equal(eventsOf(readFileSync(payload, 'utf8')), server.requests, `${c.name}, ${who}: the payloads are the requests`)
}

async function play(c) {
  const files = writeFiles(c)
  const scripted = await forms(c, files, files.script, null)
  checkWants(c, scripted, 'script')
  await checkPieces(c, files, files.script, null, 'script')
  let first = null
  for (const name of [...Object.keys(wires), 'capability']) {
    if (c.not_on?.[name]) continue
    for (const seed of SEEDS) {
      const who = `${name}, cuts ${seed}`
      const server = await (wires[name] ? new ReplayServer(name, seed) : new Played(plugins, seed)).start()
      const got = await forms(c, files, c.tools ? files.tools : null, server)
      checkWants(c, got, who)
      for (const form of ['json', 'state', 'events'])
        equal(settled(got[form]), settled(scripted[form]), `${c.name}, ${who}: --${form} as with the script`)
      equal(got.status, scripted.status, `${c.name}, ${who}: exit status as with the script`)
      const requests = checkRequests(c, server, who)
      // By words and by tools wires may ask differently; what was said is the same.
      const said = requests.map((r) => r.messages)
      first ??= {who, said}
      if (!c.own?.[name]) equal(said, first.said, `${c.name}, ${who}: the same conversation as ${first.who}`)
      await checkPieces(c, files, c.tools ? files.tools : null, server, who)
      if (seed === SEEDS[0]) await checkRecord(c, files, server, got, who)
      await server.stop()
    }
  }
}

const chosen = conversations.filter((c) => !part || c.name.includes(part))
await inTurns(chosen, 2, play)
finish(`contract, ${chosen.length} conversations`)
