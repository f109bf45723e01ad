// node limits.mjs REEVE: what one process does to a server whatever its stages want: so many requests at once, and none to a
// server that fails again and again. Servers count what they see.
import {writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {FaultServer} from './fault-server.mjs'
import {check, equal, eventsOf, finish, run, scratch} from './kit.mjs'
import {good, openaiError} from './rows/serve.mjs'

const [reeve] = process.argv.slice(2)
const STAGES = 9
const TRIES = 5 // failures in a row after which a server is left alone

let inFlight = 0
let most = 0
let came = 0
const coming = Array.from({length: STAGES + 1}, () => {
  const one = {}
  one.came = new Promise((resolve) => (one.comes = resolve))
  return one
})
const rows = [
  {
    name: 'two-at-once',
    async serve(x) {
      most = Math.max(most, ++inFlight)
      const mine = ++came
      coming[mine].comes()
      if (mine % 2 && mine < STAGES) await coming[mine + 1].came // two go together, however late the second is
      await x.wait(60) // for a third, which must not come
      inFlight--
      await good(x)
    },
  },
  {name: 'always-down', serve: openaiError(503, 'server_error', null)},
]
const server = await new FaultServer(rows, scratch).start()

async function runStages(row, knobs, agentOf, pipeline) {
  const file = join(scratch, `${row.name}.yaml`)
  const agents = Array.from({length: STAGES}, (_, i) => ({
    name: `s${i}`,
    has_llm: true,
    model_role: 'default',
    prompt_key: 'ask',
    output_mode: 'text',
    ...agentOf(i),
  }))
  const model = {model: 'openai:gpt-4.1-mini', base_url: await server.baseUrl(row), api_key: 'peer', ...knobs}
  writeFileSync(
    file,
    JSON.stringify({
      name: row.name,
      max_llm_calls: 100,
      models: {default: model},
      agents,
      prompts: {ask: 'Hi.'},
      ...pipeline,
    }),
  )
  const ran = await run(reeve, ['run', file, '--events', '--quiet', '--no-store'])
  return {...ran, results: eventsOf(ran.out).filter((e) => e.type === 'llm_result')}
}

const parallel = await runStages(rows[0], {max_concurrent: 2}, () => ({}), {default_run_mode: 'parallel'})
equal([parallel.status, parallel.results.length], [0, STAGES], 'all stages are answered')
equal(most, 2, 'never more than two at once')

const chain = (i) => (i + 1 < STAGES ? {error_next: `s${i + 1}`} : {})
const down = await runStages(rows[1], {max_attempts: 1}, chain, {})
equal([down.status, down.results.length], [1, STAGES], 'each stage fails, and hands over')
equal(server.requestsOf(rows[1]).length, TRIES, `after ${TRIES} failures in a row nobody asks`)
equal([...new Set(down.results.map((e) => e.error_kind))], ['overloaded'], 'it is overloaded, whether asked or not')
check(down.results.at(-1).error.includes('left alone'), 'who was not asked is told why', down.results.at(-1).error)

equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish('limits')
