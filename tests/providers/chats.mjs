// node chats.mjs REEVE [PART OF A NAME]: talks with declared agents over several turns, on the wires of OpenAI, of
// Anthropic and of Ollama. Each request is what a golden file has, and its layers stand where they belong: the agent's
// prompt, the instructions, the history, the prompt. Answers, rows and envelopes are the same on all wires, one process or
// several, live or from a recording, of today or of a golden file.
//
// REEVE_GOLDEN=update writes the golden files.
import {existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs'
import {dirname, join} from 'node:path'
import {Chat, KEY, same, settled} from './chat.mjs'
import {check, equal, eventsOf, finish, root, scratch} from './kit.mjs'
import {ReplayServer} from './replay-server.mjs'
import {talks} from './talks.mjs'
import {wires} from './wires/wires.mjs'

const [reeve, part] = process.argv.slice(2)
const golden = join(root, 'tests/golden/chats')
const updates = process.env.REEVE_GOLDEN === 'update'

function compare(file, got, what) {
  const path = join(golden, file)
  if (updates) {
    mkdirSync(dirname(path), {recursive: true})
    writeFileSync(path, got)
  }
  const want = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (check(got === want, `${what} is tests/golden/chats/${file}`)) return
  const [a, b] = [got.split('\n'), want.split('\n')]
  const at = a.findIndex((line, i) => line !== b[i])
  console.error(`  line ${at + 1}\n  got  ${a[at]}\n  want ${b[at]}`)
}

const timeless = (text) =>
  text.replace(/Date: \d{4}-\d\d-\d\d\\nTime: \d\d:\d\d:\d\d UTC/g, 'Date: YYYY-MM-DD\\nTime: HH:MM:SS UTC')

// --- requests -----------------------------------------------------------------------------------------------------------

// The three layers of one request, whatever the wire: {prompt, instructions, said: messages behind them}.
function layers(wire, body) {
  const {messages} = wire.readRequest(body)
  if (wire.name !== 'anthropic')
    return {
      prompt: messages[0].text,
      instructions: messages[1].text,
      head: [messages[0].role, messages[1].role],
      said: messages.slice(2),
    }
  const at = messages[0].text.lastIndexOf('\n\n[Context]\n') // one text there, with a blank line between
  const [prompt, instructions] = [messages[0].text.slice(0, at), messages[0].text.slice(at + 2)]
  return {prompt, instructions, head: [messages[0].role, 'system'], said: messages.slice(1)}
}

const outputTool = (wire, body) =>
  (body.tools ?? [])
    .map((t) => (wire.name === 'anthropic' ? {...t, parameters: t.input_schema} : t.function))
    .find((t) => t.name === 'final_result')

// How each vendor is told that a tool has to be called; Ollama's protocol has no word for it.
const mustCall = {openai: 'required', anthropic: {type: 'any'}, ollama: undefined}

function checkStructured(talk, wire, body, what) {
  const tool = outputTool(wire, body)
  equal(tool?.parameters, talk.outputOn?.[wire.name] ?? talk.output, what('asks for the shape of the document, whole'))
  equal(tool?.description, 'The final response which ends this conversation', what('says what the output tool is for'))
  equal(body.tool_choice, mustCall[wire.name], what('requires a tool'))
  check(!('response_format' in body || 'format' in body || 'output_config' in body), what('asks by the tool alone'))
}

function checkRequest(talk, wire, {body, turn, by, isFirst}, prompts, what) {
  const got = layers(wire, body)
  equal(got.head, ['system', 'system'], what('begins with the prompt and the instructions'))
  equal(got.prompt, prompts[by], what('has the prompt of the agent'))
  check(got.instructions.startsWith('[Context]\nDate: '), what('has the instructions behind it'), got.instructions)
  check(got.instructions.includes(`\nAgent: ${by}\n`), what('instructs that agent'), got.instructions)
  check(
    got.said.every((m) => m.role !== 'system'),
    what('has no further text of the system'),
    got.said,
  )
  check(!JSON.stringify(got.said).includes('[Context]'), what('has no old instructions in its history'))
  equal(
    wire.readRequest(body).tools.map((t) => t.name),
    talk.tools[by],
    what('offers the tools that are declared'),
  )
  const asked = got.said.filter((m) => m.role === 'user').map((m) => m.text)
  if (by === talk.agent) {
    equal(
      asked,
      talk.turns.slice(0, turn + 1).map((t) => t.says),
      what('tells what the person said, in order'),
    )
    if (isFirst) equal(got.said.at(-1).text, talk.turns[turn].says, what('ends with the new message'))
    for (const before of talk.turns.slice(0, turn)) {
      // an output is told by its answer
      const called = before.replies
        .filter((r) => r.by === by)
        .flatMap((r) => r.calls ?? [])
        .filter((c) => c.name !== 'final_result')
      const told = got.said.flatMap((m) => m.calls ?? [])
      for (const c of called)
        check(
          told.some((t) => t.name === c.name && JSON.stringify(t.arguments) === c.arguments),
          what(`tells of the call of ${c.name} in an earlier turn`),
          told,
        )
      check(
        got.said
          .filter((m) => m.role === 'assistant' && m.text)
          .map((m) => m.text)
          .join('\n\n')
          .includes(before.comes.text),
        what('tells the earlier answer'),
      )
    }
  } else {
    const question = talk.turns[turn].replies.flatMap((r) => r.calls ?? []).find((c) => c.name === 'ask_agent')
    const {input_text} = JSON.parse(question.arguments)
    equal(
      asked.slice(0, -1),
      talk.turns.slice(0, turn).map((t) => t.says),
      what('tells an agent that was asked what was said before this turn'),
    )
    check(asked.at(-1)?.startsWith(input_text), what('ends with its question'), asked)
  }
  if (talk.output) checkStructured(talk, wire, body, what)
  else equal(body.tool_choice, undefined, what('leaves the choice of tools to the model'))
}

function checkRequests(talk, wire, requests, prompts) {
  const replies = talk.turns.flatMap((t, turn) => t.replies.map((r, i) => ({turn, by: r.by, isFirst: i === 0})))
  const who = `${talk.name}, ${wire.name}`
  if (!equal(requests.length, replies.length, `${who}: a request for each reply`)) return
  const all = requests.map((body, i) => ({...replies[i], body}))
  all.forEach((r, i) => checkRequest(talk, wire, r, prompts, (text) => `${who}, request ${i + 1}: ${text}`))
  const kept = all.map(({turn, by, body}) => ({turn: turn + 1, agent: by, body}))
  compare(`${wire.name}/${talk.name}.json`, timeless(JSON.stringify(kept, null, 1)) + '\n', `${who}: what is sent`)
}

// --- what it comes to -----------------------------------------------------------------------------------------------------

function checkTurns(talk, turns, who) {
  equal(
    turns.map((t) => [t.status, t.exit, t.stored, t.err]),
    talk.turns.map(() => ['completed', 0, true, '']),
    `${who}: the turns complete`,
  )
  turns.forEach((t, i) => {
    const {usage, ...rest} = talk.turns[i].comes
    for (const [key, value] of Object.entries(rest)) equal(t[key], value, `${who}, turn ${i + 1}: its ${key}`)
    const {input_tokens, output_tokens} = t.usage ?? {}
    equal({input_tokens, output_tokens}, usage, `${who}, turn ${i + 1}: its usage`)
  })
}

// Everything that must not depend on who answered, or how.
async function resultOf(chat, turns) {
  const envelopes = (await chat.envelopes()).map(({script, ...run}) => run) // a run says whether a script answered it
  return {turns: settled(turns), rows: settled(await chat.rows()), envelopes: settled(envelopes)}
}

const replies = (talk) => talk.turns.flatMap((t) => t.replies)
const messages = (talk) => talk.turns.map((t) => t.says)

async function live(talk, wire, server) {
  const chat = new Chat(reeve, `${talk.name}-${wire.name}`, {wire, url: server.url, agent: talk.agent})
  const prompts = {}
  for (const agent of Object.keys(talk.tools)) prompts[agent] = await chat.prompt(agent)
  const turns = []
  server.play(replies(talk))
  for (const text of messages(talk)) turns.push(await chat.say(text))
  const who = `${talk.name}, ${wire.name}`
  equal(server.complaints, [], `${who}: nothing that the vendor would refuse`)
  checkRequests(talk, wire, server.requests, prompts)
  checkTurns(talk, turns, who)
  return resultOf(chat, turns)
}

// --debug shows what is sent, byte for byte.
async function shown(talk, wire, server) {
  const chat = new Chat(reeve, `${talk.name}-${wire.name}-shown`, {wire, url: server.url, agent: talk.agent})
  server.play(replies(talk))
  const {err} = (await chat.tell(messages(talk), ['--debug']))[0] ?? {err: ''}
  const sent = err.split('\n').flatMap((line) => /^payload \S+ (.*)$/.exec(line)?.[1] ?? [])
  same(eventsOf(sent.join('\n')), server.requests, `${talk.name}, ${wire.name}: --debug shows the requests`)
}

// All turns in one process, recorded; then the record instead of the server, and the record that is kept.
async function recorded(talk, wire, server, want) {
  const who = `${talk.name}, ${wire.name}`
  const record = join(scratch, `${talk.name}-${wire.name}-record.yaml`)
  const kept = join(golden, wire.name, `${talk.name}.script.yaml`)
  const whole = async (name, args, url) => {
    const chat = new Chat(reeve, `${talk.name}-${wire.name}-${name}`, {wire, url, agent: talk.agent})
    return resultOf(chat, await chat.tell(messages(talk), args))
  }
  server.play(replies(talk))
  same(await whole('recorded', ['--record', record], server.url), want, `${who}: the same in one process`)
  equal(server.complaints, [], `${who}, one process: nothing that the vendor would refuse`)
  const text = readFileSync(record, 'utf8')
  check(!text.includes(KEY), `${who}: no key in the record`)
  if (updates) writeFileSync(kept, text)
  same(await whole('replayed', ['--script', record]), want, `${who}: the same when the record is played`)
  same(await whole('kept', ['--script', kept]), want, `${who}: the same when the golden record is played`)
}

for (const talk of talks.filter((t) => !part || t.name.includes(part))) {
  let first = null
  for (const wire of Object.values(wires)) {
    const server = await new ReplayServer(wire.name).start()
    const got = await live(talk, wire, server)
    first ??= got
    for (const key of ['turns', 'rows', 'envelopes'])
      same(got[key], first[key], `${talk.name}, ${wire.name}: the same ${key} as on the first wire`)
    await shown(talk, wire, server)
    await recorded(talk, wire, server, got)
    await server.stop()
  }
}
finish('chats')
