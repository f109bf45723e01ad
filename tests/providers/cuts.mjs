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

async function play(row, server) {
  const {wire, ending} = row
  const length = Buffer.byteLength(recorded[wire])
  const stages = Array.from({length: length + 1}, (_, at) => `at${at}`)
  const pipeline = {
    name: row.name,
    default_run_mode: 'parallel',
    max_llm_calls: stages.length,
    max_agent_hops: stages.length,
    models: {
      default: {model: wires[wire].model, base_url: await server.baseUrl(row), api_key: 'peer', max_attempts: 1},
    },
    agents: stages.map((name) => ({name, has_llm: true, model_role: 'default', prompt_key: name, output_mode: 'text'})),
    prompts: Object.fromEntries(stages.map((name, at) => [name, `Please cut at ${at}.`])),
  }
  const file = join(scratch, `${row.name}.yaml`)
  writeFileSync(file, JSON.stringify(pipeline))
  const ran = await run(reeve, ['run', file, '--events', '--quiet', '--no-store'], {seconds: 60})
  const events = eventsOf(ran.out)
  const results = new Map(events.filter((e) => e.type === 'llm_result').map((e) => [Number(e.stage.slice(2)), e]))
  const done = events.find((e) => e.type === 'done')
  const outputs = new Map(
    events.filter((e) => e.type === 'stage_completed').map((e) => [Number(e.stage.slice(2)), e.output]),
  )

  equal(results.size, stages.length, `${row.name}: a result for each cut`)
  equal(
    [done?.status, done?.terminal_reason, ran.status],
    ['failed', 'llm_failed_fatally', 1],
    `${row.name}: the run fails`,
  )
  const wrong = []
  for (const [at, result] of results) {
    const over = at > overAt[wire](recorded[wire])
    const text = textOf(wire, at)
    const fine =
      result.status === 'success'
        ? over && outputs.get(at)?.response === ANSWER
        : (ending === 'breaks' ? ['connection', 'protocol'] : ['protocol']).includes(result.error_kind) &&
          at < length &&
          (result.partial ?? '') === text
    if (!fine) wrong.push({at, text, result})
  }
  check(
    wrong.length === 0,
    `${row.name}: each cut is what it is`,
    `${wrong.length} of ${stages.length}`,
    ...wrong.slice(0, 3),
  )
  console.log(
    `${row.name}: ${stages.length} cuts, ${[...results.values()].filter((r) => r.status === 'success').length} answers, ${ran.seconds.toFixed(1)} s`,
  )
}

const server = await new FaultServer(rows, scratch).start()
for (const row of rows) await play(row, server)
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish('cuts')
