// node faults.mjs REEVE [NAME...]: plays each row of the tables of faults and of bounds, or those named, to the program.
import {mkdirSync, writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {FaultServer} from './fault-server.mjs'
import {check, equal, eventsOf, finish, inTurns, run, scratch} from './kit.mjs'
import {bounds, faults} from './rows/rows.mjs'
import {ANSWER} from './rows/serve.mjs'
import {wires} from './wires/wires.mjs'

const AT_ONCE = 4
const KEY = 'sk-peer-0123456789abcdef'
const [reeve, ...only] = process.argv.slice(2)

const weather = {
  description: 'The weather.',
  input_schema: {type: 'object', properties: {city: {type: 'string'}}},
  calls: [{result: {degrees: 7}}],
}

// A pipeline is YAML, and JSON is that too.
function pipelineOf(row, baseUrl, server) {
  const {ca_file, proxy, ...knobs} = row.knobs ?? {}
  const model = {
    model: wires[row.wire ?? 'openai'].model,
    base_url: baseUrl,
    api_key: KEY,
    ...knobs,
    ...(proxy ? {proxy: server.plainUrl} : {}),
    ...(ca_file ? {ca_file: server.caFile(ca_file)} : {}),
  }
  return {
    name: row.name,
    models: {
      default: {...model, ...(row.fallback ? {fallback: ['second']} : {})},
      ...(row.fallback ? {second: {...model, model: `${row.wire ?? 'openai'}:second`}} : {}),
    },
    execution: {llm_timeout: row.llm_timeout ?? 600},
    agents: [
      {
        name: 'answer',
        has_llm: true,
        model_role: 'default',
        prompt_key: 'ask',
        output_mode: 'text',
        ...(row.tools ? {has_tools: true, tool_access: 'read', allowed_tools: ['weather']} : {}),
        ...row.agent,
      },
    ],
    prompts: {ask: 'What floats?'},
    ...row.pipeline,
  }
}

async function play(row, server) {
  const {want} = row
  const file = join(scratch, `${row.name}.yaml`)
  writeFileSync(file, JSON.stringify(pipelineOf(row, await server.baseUrl(row), server)))
  const args = ['run', file, '--events', '--quiet', '--no-store']
  if (row.tools) {
    const script = join(scratch, `${row.name}-script.yaml`)
    writeFileSync(script, JSON.stringify({tools: {weather}}))
    args.push('--script', script)
  }
  let signalled = false
  const ran = await run(reeve, args, {
    onOut(text, child) {
      if (!row.signal || signalled || !text.includes('llm_call_start')) return
      signalled = true
      server.asked(row).then(() => child.kill(row.signal)) // the request is under way by then
    },
  })
  const events = eventsOf(ran.out)
  const result = events.filter((e) => e.type === 'llm_result').at(-1)
  const done = events.find((e) => e.type === 'done')
  const what = (text) => `${row.name}: ${text}`
  const seen = [
    JSON.stringify(result),
    JSON.stringify(done),
    ran.err.slice(0, 600),
    `status ${ran.status}`,
  ]

  if (!check(done && (result || want.bound), what('there is a result and an end'), ...seen)) return
  check(!ran.leftovers, what('leaves no process'))
  check(!ran.out.includes(KEY) && !ran.err.includes(KEY), what('the key stands nowhere'), ...seen)
  if (want.bound) {
    equal([done.status, done.terminal_reason, ran.status], want.bound, what('the run ends by its bound'))
    equal(server.requestsOf(row).length, want.requests, what('so many requests were sent'))
    for (const text of want.says) check(JSON.stringify(done).includes(text), what(`the end names "${text}"`), ...seen)
    return
  }
  const fails = want.kind && !(want.either && result.status === 'success')
  if (fails) {
    check([want.kind].flat().includes(result.error_kind), what(`the kind is ${want.kind}`), ...seen)
    equal(
      [done.status, done.terminal_reason, ran.status],
      ['failed', 'llm_failed_fatally', 1],
      what('the run fails as rule 7.5 has it'),
    )
    for (const text of want.says ?? []) check(result.error?.includes(text), what(`the error names "${text}"`), ...seen)
    check(
      Boolean(want.partial) === Boolean(result.partial),
      what(want.partial ? 'the text that came is kept' : 'no text came'),
      ...seen,
    )
  } else {
    equal([done.status, ran.status], ['completed', 0], what('the run completes'))
    if (!want.either)
      equal(events.find((e) => e.type === 'stage_completed')?.output, {response: ANSWER}, what('the answer is whole'))
  }
  if (want.by) equal(result.answered_by, want.by, what(`${want.by} answers`))
  if (want.attempts) {
    equal(result.attempts ?? 1, want.attempts, what('attempts are counted'))
    if (!row.address) equal(server.requestsOf(row).length, want.attempts, what('so many requests were sent'))
  }
  if (want.asked) {
    const got = server
      .requestsOf(row)
      .at(-1)
      .messages.flatMap((m) => m.tool_calls ?? [])
      .map((c) => c.function.arguments)
    equal(
      want.anyOrder ? got.sort() : got,
      want.anyOrder ? [...want.asked].sort() : want.asked,
      what('the calls come back as they were made'),
    )
    equal(
      events.filter((e) => e.type === 'tool_result').map((e) => e.status),
      want.asked.map(() => 'success'),
      what('each call was made'),
    )
  }
}

mkdirSync(scratch, {recursive: true})
const all = [...faults, ...bounds]
const server = await new FaultServer(all, scratch).start()
const chosen = all.filter((r) => !only.length || only.includes(r.name))
await inTurns(chosen, AT_ONCE, (row) => play(row, server))
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish(`faults, ${chosen.length} rows`)
