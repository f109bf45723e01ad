// node sdk-types.mjs WORK_DIR REEVE: the request bodies of the golden files, those of chats among them, and those that the program sends in our
// conversations, checked by the vendors' own type definitions. Each body is written as a literal of the type of a streaming
// request, so that a member that does not exist is an error too. That the checker can say no is shown with bodies that are
// wrong in one place each.
import {spawnSync} from 'node:child_process'
import {mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {conversations} from './conversations.mjs'
import {check, finish, root} from './kit.mjs'
import {modules} from './packages.mjs'
import {runConversation, writeFiles} from './play.mjs'
import {ReplayServer} from './replay-server.mjs'

const [work, reeve] = process.argv.slice(2)

const vendors = {
  openai: {
    head: `import type {ChatCompletionCreateParamsStreaming as Request} from 'openai/resources/chat/completions'`,
    right: {model: 'gpt-4.1-mini', stream: true, messages: [{role: 'user', content: 'x'}]},
    wrong: [
      ['no messages', (b) => delete b.messages],
      ['not streaming', (b) => (b.stream = false)],
      ['an unknown member', (b) => (b.num_predict = 5)],
      ['a number for a text', (b) => (b.messages[0].content = 5)],
      ['an unknown role', (b) => (b.messages[0].role = 'tools')],
      ['a tool without a type', (b) => (b.tools = [{function: {name: 'a'}}])],
      ['a result that says to no call', (b) => b.messages.push({role: 'tool', content: 'x'})],
      [
        'an unknown member of a call',
        (b) =>
          b.messages.push({
            role: 'assistant',
            tool_calls: [{id: 'a', type: 'function', index: 0, function: {name: 'a', arguments: ''}}],
          }),
      ],
      ['an unknown way to choose a tool', (b) => (b.tool_choice = 'any')],
    ],
  },
  anthropic: {
    head: `import type {MessageCreateParamsStreaming as Request} from '@anthropic-ai/sdk/resources/messages'`,
    right: {model: 'claude-sonnet-4-5', max_tokens: 10, stream: true, messages: [{role: 'user', content: 'x'}]},
    wrong: [
      ['no max_tokens', (b) => delete b.max_tokens],
      ['not streaming', (b) => (b.stream = false)],
      ['an unknown member', (b) => (b.seed = 5)],
      ['a role that is not one', (b) => b.messages.push({role: 'tool', content: 'x'})],
      ['a schema that is not of an object', (b) => (b.tools = [{name: 'a', input_schema: {type: 'string'}}])],
      ['a tool choice that is a word', (b) => (b.tool_choice = 'auto')],
      [
        'a result that says to no call',
        (b) => b.messages.push({role: 'user', content: [{type: 'tool_result', content: 'x'}]}),
      ],
    ],
  },
}

// Members that a pipeline's extra_body put there: whoever asks for them answers for them.
const theirs = {
  'openai/extra_body.json': ['chat_template_kwargs'],
  'anthropic/extra-effort.json': ['metadata', 'keep_alive'],
  'anthropic/extra-thinking.json': ['think', 'options'],
}

function readGolden(name) {
  const body = JSON.parse(readFileSync(join(root, 'tests/golden/wire', name), 'utf8'))
  for (const member of theirs[name] ?? []) {
    check(member in body, `${name} has a member ${member} that is not ours`)
    delete body[member]
  }
  return body
}

rmSync(work, {recursive: true, force: true})
mkdirSync(work, {recursive: true})
symlinkSync(join(modules, 'node_modules'), join(work, 'node_modules'))
writeFileSync(join(work, 'package.json'), '{"type": "module"}\n')
writeFileSync(
  join(work, 'tsconfig.json'),
  JSON.stringify({
    compilerOptions: {
      strict: true,
      noEmit: true,
      target: 'es2022',
      module: 'nodenext',
      moduleResolution: 'nodenext',
      skipLibCheck: true,
      lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'],
      types: [],
    },
    include: ['*.ts'],
  }),
)

// Every request of the program, conversation by conversation.
async function sent(wire) {
  const server = await new ReplayServer(wire).start()
  const bodies = []
  for (const c of conversations) {
    const written = writeFiles(c)
    await runConversation(reeve, c, written, {form: 'json', script: c.tools ? written.tools : null, server})
    check(server.requests.length > 0, `${wire}: the program asks (${c.name})`)
    bodies.push(...server.requests.map((body, i) => [`${wire}, request ${i + 1} of "${c.name}"`, body]))
  }
  await server.stop()
  return bodies
}

const files = new Map() // name: what it shows, and whether it has to be refused
function write(file, vendor, body, what, isWrong) {
  files.set(file, {what, isWrong})
  writeFileSync(join(work, file), `${vendor.head}\nexport const body: Request = ${JSON.stringify(body, null, 1)}\n`)
}
for (const [name, vendor] of Object.entries(vendors)) {
  const folder = join(root, 'tests/golden/wire', name)
  const golden = readdirSync(folder).filter((f) => f.endsWith('.json') && !f.endsWith('.request.json'))
  check(golden.length > 0, `${name}: there are golden request bodies`)
  golden.forEach((file, i) =>
    write(`${name}-golden-${i}.ts`, vendor, readGolden(`${name}/${file}`), `${name}/${file}`, false),
  )
  const talks = join(root, 'tests/golden/chats', name)
  for (const file of readdirSync(talks).filter((f) => f.endsWith('.json')))
    JSON.parse(readFileSync(join(talks, file), 'utf8')).forEach(({turn, agent, body}, i) => {
      const what = `chats/${name}/${file}, request ${i + 1}, turn ${turn} of ${agent}`
      write(`${name}-chat-${file.replace('.json', '')}-${i}.ts`, vendor, body, what, false)
    })
  for (const [what, body] of await sent(name)) write(`${name}-sent-${files.size}.ts`, vendor, body, what, false)
  write(`${name}-right.ts`, vendor, vendor.right, `${name}, the least that is right`, false)
  vendor.wrong.forEach(([what, spoil], i) => {
    const body = structuredClone(vendor.right)
    spoil(body)
    write(`${name}-wrong-${i}.ts`, vendor, body, `${name}, ${what}`, true)
  })
}

const tsc = spawnSync(process.execPath, [join(modules, 'node_modules/typescript/bin/tsc'), '-p', work], {
  encoding: 'utf8',
  cwd: work,
})
const complaints = new Map()
let file = null
for (const line of tsc.stdout.split('\n')) {
  const place = /^(\S+\.ts)\(\d+,\d+\): error/.exec(line)
  if (place) file = place[1]
  if (file && line) complaints.set(file, [...(complaints.get(file) ?? []), line])
}
for (const f of complaints.keys()) check(files.has(f), `a complaint about ${f}`, ...complaints.get(f))
for (const [f, {what, isWrong}] of files) {
  if (isWrong) check(complaints.has(f), `refused by the vendor's types: ${what}`)
  else check(!complaints.has(f), `of the vendor's type: ${what}`, ...(complaints.get(f) ?? []))
}
check(tsc.status === 2 || tsc.status === 1, 'tsc ran', tsc.stderr, String(tsc.error ?? ''))
finish('sdk-types')
