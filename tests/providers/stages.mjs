// node stages.mjs REEVE: the pipelines with declared agents that come with the engine, on each wire: an agent that asks
// another one, and a structured one whose output a tool gets. The envelope and the rows of the session are the same whoever
// answered, and when what was recorded is played instead; a chained tool is called without asking the model again.
import {cpSync, existsSync, mkdirSync, readFileSync} from 'node:fs'
import {join} from 'node:path'
import {Chat, KEY, same, settled} from './chat.mjs'
import {check, equal, finish, root, run, scratch} from './kit.mjs'
import {ReplayServer} from './replay-server.mjs'
import {wires} from './wires/wires.mjs'

const [reeve] = process.argv.slice(2)
const usage = {input: 30, output: 9}
const say = (text) => ({text, finish: 'stop', usage})
const ask = (name, args, text) => ({
  text,
  calls: [{name, arguments: JSON.stringify(args)}],
  finish: 'tool_calls',
  usage,
})

const order = {subject: 'Apples', order: {items: [{what: 'apple', amount: 2, unit: 'kg'}]}}
const stages = [
  {
    pipeline: 'delegate.yaml',
    input: 'Show me an example of a haiku',
    replies: [
      ask('ask_agent', {agent_name: 'sample-agent', input_text: 'Write a haiku.'}, 'I will have one made.'),
      say('an old pond'),
      say('There it is.'),
    ],
    outputs: {'front-desk': {response: 'There it is.'}},
    rows: 'user assistant tool_call assistant tool_response assistant',
  },
  {
    pipeline: 'extract-and-save.yaml',
    input: '2 kg of apples',
    replies: [
      ask('final_result', {...order, order: {items: [{...order.order.items[0], unit: 'stone'}]}}),
      ask('final_result', order),
    ],
    outputs: {'order-reader': order, 'order-reader_chained': {status: 'success', name: 'Apples', line: 1}},
    rows: 'user tool_call tool_response tool_call tool_response assistant tool_call tool_response',
    keeps: {name: 'Apples', fields: order.order},
  },
]

// One run in a folder of its own, since the tool writes beside the pipeline.
async function runOf(stage, name, wire, url, args) {
  const folder = join(scratch, name)
  mkdirSync(folder)
  cpSync(join(root, 'pipelines'), folder, {recursive: true})
  const chat = new Chat(reeve, name, {wire, url, agent: 'none', env: {REEVE_MODEL: wire.model}})
  const all = [
    'run',
    join(folder, stage.pipeline),
    '--input',
    stage.input,
    '--session',
    chat.session,
    '--json',
    '--quiet',
  ]
  const ran = await run(reeve, [...all, ...args], {env: chat.env})
  const records = join(folder, 'orders.jsonl')
  return {
    status: ran.status,
    err: ran.err,
    out: ran.out.startsWith('{') ? settled(JSON.parse(ran.out)) : ran.out,
    rows: settled(await chat.rows()),
    kept: existsSync(records) ? readFileSync(records, 'utf8') : '',
  }
}

for (const stage of stages) {
  let first = null
  for (const wire of Object.values(wires)) {
    const name = `${stage.pipeline}-${wire.name}`
    const what = (text) => `${stage.pipeline}, ${wire.name}: ${text}`
    const record = join(scratch, `${name}.script.yaml`)
    const server = await new ReplayServer(wire.name).start()
    server.play(stage.replies)
    const got = await runOf(stage, name, wire, server.url, ['--record', record])
    equal([got.status, got.err], [0, ''], what('completes'))
    equal(server.complaints, [], what('nothing that the vendor would refuse'))
    equal(server.requests.length, stage.replies.length, what('a request for each reply'))
    equal(got.out.outputs, stage.outputs, what('its outputs'))
    equal(got.rows.map((r) => r.message_type).join(' '), stage.rows, what('its rows'))
    first ??= got
    same([got.out, got.rows], [first.out, first.rows], what('the same as on the first wire'))
    if (stage.keeps) {
      const {name: subject, fields} = JSON.parse(got.kept || '{}')
      equal({name: subject, fields}, stage.keeps, what('the tool has kept the output'))
    }
    await server.stop()
    check(!readFileSync(record, 'utf8').includes(KEY), what('no key in the record'))
    const again = await runOf(stage, `${name}-again`, wire, null, ['--script', record])
    same([again.out, again.rows], [got.out, got.rows], what('the same when the record is played'))
    equal(again.kept, '', what('no tool is called when the record is played'))
  }
}
finish('stages')
