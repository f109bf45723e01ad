// node killed.mjs REEVE: the program dies in the middle of a stream, in the second round of a tool loop. Whoever goes on
// with the run asks for that reply again, and for nothing that was there already; the whole run then replays with nobody
// to ask.
import {spawn} from 'node:child_process'
import {writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {FaultServer} from './fault-server.mjs'
import {check, equal, eventsOf, finish, pipelineFile, run, scratch} from './kit.mjs'
import {ANSWER, good, sendThen, stall, upToText} from './rows/serve.mjs'
import {wires} from './wires/wires.mjs'

const [reeve] = process.argv.slice(2)

const calls = {
  calls: [
    {name: 'weather', arguments: '{"city":"Oslo"}'},
    {name: 'weather', arguments: '{"city":"Bern"}'},
  ],
  finish: 'tool_calls',
  usage: {input: 50, output: 20},
}
const texts = {openai: 'content":"W', anthropic: 'text_delta'}
const rowOf = (wire) => ({
  name: `killed-${wire}`,
  wire,
  async serve(x) {
    if (x.attempt === 1)
      x.send(
        200,
        {'content-type': wires[wire].contentType},
        wires[wire].stream(calls, () => 3, 1, x.body),
      )
    else if (x.attempt === 2) await sendThen(upToText(wire, texts[wire]), stall)(x)
    else await good(x)
  },
})

// Kill the program once a piece of the second reply is there.
function startAndKill(args, env) {
  return new Promise((resolve) => {
    const child = spawn(reeve, args, {env, stdio: ['ignore', 'pipe', 'inherit']})
    let out = ''
    child.stdout.on('data', (part) => {
      out += part
      if (out.includes('"kind":"text"')) child.kill('SIGKILL')
    })
    child.on('close', (_, signal) => resolve({signal, events: eventsOf(out.slice(0, out.lastIndexOf('\n')))}))
  })
}

const rows = Object.keys(texts).map(rowOf)
const server = await new FaultServer(rows, scratch).start()
for (const row of rows) {
  const what = (text) => `${row.wire}: ${text}`
  const pipeline = pipelineFile('tools.yaml', row.name, {TOOLS: '[weather]'})
  const script = join(scratch, `${row.name}-tools.yaml`)
  const answers = [
    {contains: 'Oslo', result: {degrees: -3}},
    {contains: 'Bern', result: {degrees: 11}},
  ]
  writeFileSync(script, JSON.stringify({tools: {weather: answers}, repeat: false}))
  const env = {
    PATH: process.env.PATH,
    REEVE_STORE: join(scratch, `${row.name}.db`),
    PEER_MODEL: wires[row.wire].model,
    PEER_URL: await server.baseUrl(row),
    PEER_KEY: 'peer',
  }
  const first = await startAndKill(
    ['run', pipeline, '--events', '--deltas', '--quiet', '--script', script],
    env,
  )
  equal(first.signal, 'SIGKILL', what('it dies'))
  const id = first.events.find((e) => e.type === 'pipeline_started')?.envelope_id

  const second = await run(reeve, ['runs', 'recover', id], {env})
  check(
    second.status === 0 && second.out.includes(ANSWER),
    what('another goes on to the answer'),
    second.out,
    second.err,
  )

  const requests = server.requestsOf(row)
  equal(requests.length, 3, what('only the reply that was cut is asked for again'))
  equal(requests[2], requests[1], what('with the same words'))
  const events = eventsOf((await run(reeve, ['runs', 'events', id], {env})).out)
  equal(
    events.filter((e) => e.type === 'tool_result').map((e) => e.status),
    ['success', 'success'],
    what('each tool ran once'),
  )
  const usage = events.at(-1)?.usage
  equal([usage?.calls, usage?.estimated], [3, true], what('what was cut may be charged for, and counts'))
  const replay = await run(reeve, ['replay', id], {env: {...env, PEER_URL: 'http://127.0.0.1:1'}})
  equal([replay.status, server.requestsOf(row).length], [0, 3], what('the replay asks nobody'))
}
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish('killed')
