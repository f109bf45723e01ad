// node cuts.mjs REEVE: streams that are cut at every byte. Each stage of one parallel pipeline asks for its own cut, so one
// run of the program has them all. No cut may pass for an answer, and what had come is kept; with all bytes there and the
// end of the body missing, the end mark of the protocol decides.
import {writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {FaultServer} from './fault-server.mjs'
import {check, equal, eventsOf, finish, run, scratch} from './kit.mjs'
import {ANSWER, JSON_TYPE, SSE, recorded} from './rows/serve.mjs'
import {wires} from './wires/wires.mjs'

const [reeve] = process.argv.slice(2)
const lastText = (body) =>
  [body.messages.at(-1).content]
    .flat()
    .map((c) => c.text ?? c)
    .join('')

// How a stream ends before its time: the connection breaks, or the body ends as if that were all.
const endings = {
  breaks: (x, bytes) => x.write(bytes).then(() => setTimeout(() => x.cut(), 5)),
  stops: (x, bytes) => x.response.end(bytes),
}

const types = {openai: SSE, anthropic: SSE, ollama: {'content-type': 'application/x-ndjson'}}
const rows = Object.keys(endings).flatMap((ending) =>
  Object.keys(types).map((wire) => ({
    name: `${wire}-${ending}`,
    wire,
    ending,
    serve(x) {
      const at = Number(/cut at (\d+)/.exec(lastText(x.body))?.[1])
      if (!Number.isInteger(at)) return x.send(400, JSON_TYPE, '{"error":{"message":"no cut"}}')
      const bytes = Buffer.from(recorded[wire]).subarray(0, at)
      x.head(200, types[wire])
      return endings[ending](x, bytes)
    },
  })),
)

// The bytes after which the protocol says that it is over, and the text among the first n bytes.
const overAt = {
  openai: (text) => text.indexOf('"finish_reason":"stop"'),
  anthropic: (text) => text.indexOf('event: message_stop'),
  ollama: (text) => text.indexOf('"done":true'),
}
const deltas = {openai: /"content":"([^"]+)"/g, anthropic: /"text":"([^"]+)"/g, ollama: /"content":"([^"]+)"/g}
const frame = {openai: '\n\n', anthropic: '\n\n', ollama: '\n'}
function textOf(wire, at) {
  const whole = recorded[wire].slice(0, at)
  const events = whole.slice(0, whole.lastIndexOf(frame[wire]) + 1)
  return [...events.matchAll(deltas[wire])].map((m) => m[1]).join('')
}

// A server that fails too often in a row is left alone for a while, by address and key: each role asks with a key of its
// own, and not often.
const PER_KEY = 4
const PER_RUN = 200 * PER_KEY

async function ask(row, server, cuts) {
  const model = {model: wires[row.wire].model, base_url: await server.baseUrl(row), max_attempts: 1}
  const roles = Array.from({length: Math.ceil(cuts.length / PER_KEY)}, (_, i) => [
    `role${i}`,
    {...model, api_key: `peer${i}`},
  ])
  const pipeline = {
    name: row.name,
    default_run_mode: 'parallel',
    max_llm_calls: cuts.length,
    max_agent_hops: cuts.length,
    models: Object.fromEntries(roles),
    agents: cuts.map((at, i) => ({
      name: `at${at}`,
      has_llm: true,
      model_role: roles[Math.floor(i / PER_KEY)][0],
      prompt_key: `at${at}`,
      output_mode: 'text',
    })),
    prompts: Object.fromEntries(cuts.map((at) => [`at${at}`, `Please cut at ${at}.`])),
  }
  const file = join(scratch, `${row.name}-${cuts[0]}.yaml`)
  writeFileSync(file, JSON.stringify(pipeline))
  const ran = await run(reeve, ['run', file, '--events', '--quiet', '--no-store'])
  const events = eventsOf(ran.out)
  const done = events.find((e) => e.type === 'done')
  check(!ran.leftovers, `${row.name}: leaves no process`)
  equal(
    [done?.status, done?.terminal_reason, ran.status],
    ['failed', 'llm_failed_fatally', 1],
    `${row.name}: the run fails`,
  )
  const ofStage = (type) => events.filter((e) => e.type === type).map((e) => [Number(e.stage.slice(2)), e])
  const outputs = new Map(ofStage('stage_completed').map(([at, e]) => [at, e.output]))
  return ofStage('llm_result').map(([at, e]) => ({at, result: e, output: outputs.get(at)}))
}

// A line that is there but for its end counts when the body ends, and not when the connection breaks.
function textAt(row, at) {
  const whole = recorded[row.wire]
  const lineEnds = row.wire === 'ollama' && row.ending === 'stops' && whole[at] === '\n'
  return textOf(row.wire, lineEnds ? at + 1 : at)
}

function isRight(row, length, {at, result, output}) {
  if (result.status === 'success') return at > overAt[row.wire](recorded[row.wire]) && output?.response === ANSWER
  const kinds = row.ending === 'breaks' ? ['connection', 'protocol'] : ['protocol']
  return kinds.includes(result.error_kind) && at < length && (result.partial ?? '') === textAt(row, at)
}

async function play(row, server) {
  const length = Buffer.byteLength(recorded[row.wire])
  const cuts = Array.from({length: length + 1}, (_, at) => at)
  const results = []
  for (let at = 0; at < cuts.length; at += PER_RUN)
    results.push(...(await ask(row, server, cuts.slice(at, at + PER_RUN))))
  equal(
    results.map((r) => r.at).sort((a, b) => a - b),
    cuts,
    `${row.name}: a result for each cut`,
  )
  const wrong = results.filter((r) => !isRight(row, length, r))
  check(!wrong.length, `${row.name}: each cut is what it is`, `${wrong.length} of ${cuts.length}`, ...wrong.slice(0, 3))
  const answers = results.filter((r) => r.result.status === 'success').length
  console.log(`${row.name}: ${cuts.length} cuts, ${answers} answers`)
}

const server = await new FaultServer(rows, scratch).start()
for (const row of rows) await play(row, server)
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish('cuts')
