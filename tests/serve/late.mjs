// A request to cancel a run comes while its last call before it waits for a person is under way: the process that drives the run does
// not look any more when it waits, and ends it all the same. For lines of a batch and for turns of a chat.
import http from 'node:http'
import {once} from 'node:events'
import {spawn} from 'node:child_process'
import {join} from 'node:path'
import {check, command, env, equal, file, finish, reeve, root, scratch} from './kit.mjs'

const store = join(scratch, 'late.db')
const runs = (...args) => command('runs', ...args, '--store', store)
const list = () => JSON.parse(runs('list', '--json').out)
let n_cancelled = 0

// A model whose answer has to be confirmed; before it answers "late ..." that run is cancelled.
const provider = http.createServer(async (q, r) => {
  let sent = ''
  for await (const bytes of q) sent += bytes
  sent = JSON.parse(sent)
  const text = sent.messages.at(-1).content
  if (text.includes('late')) {
    const run = list().find((row) => row.status === 'running')
    const said = runs('cancel', run.id)
    n_cancelled += said.status === 0
  }
  const call = sent.tools && {index: 0, id: 'c1', type: 'function', function: {name: 'wipe', arguments: '{}'}}
  const message = {role: 'assistant', content: call ? 'I will.' : '{"v": 1}', ...(call && {tool_calls: [call]})}
  const finish_reason = call ? 'tool_calls' : 'stop'
  if (sent.stream) {
    r.writeHead(200, {'content-type': 'text/event-stream'})
    r.end(`data: ${JSON.stringify({id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{index: 0, delta: message, finish_reason}]})}\n\ndata: [DONE]\n\n`)
  } else {
    r.writeHead(200, {'content-type': 'application/json'})
    r.end(JSON.stringify({id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{index: 0, message, finish_reason}]}))
  }
}).listen(0, '127.0.0.1')
await once(provider, 'listening')
const more = {...env, OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `http://127.0.0.1:${provider.address().port}/v1`}

async function run(...args) {
  const child = spawn(reeve, [...args, '--store', store], {cwd: root, env: more, stdio: ['ignore', 'pipe', 'pipe']})
  let out = '', err = ''
  child.stdout.on('data', (bytes) => (out += bytes))
  child.stderr.on('data', (bytes) => (err += bytes))
  const [status] = await once(child, 'close')
  return {status, out, err}
}

const ask = file('ask.yaml', `name: ask
models: {default: "openai:gpt-4.1"}
agents: [{name: a, has_llm: true, model_role: default, prompt_key: q, ask: {question: "On?"}}]
prompts: {q: "{{raw_input}}"}
`)
const lines = file('lines.jsonl', '"late 1"\n"early"\n"late 2"\n')
const batch = ['run', ask, '--batch', lines, '--concurrency', '1']
let r = await run(...batch)
equal(n_cancelled, 2, 'two lines are cancelled')
equal(r.out.trim().split('\n').map((line) => JSON.parse(line).status), ['cancelled', 'interrupted', 'cancelled'], 'lines of a batch')
check(r.err.includes('2 failed, 1 waiting for a person'), 'are counted so', r.err)
equal(list().map((row) => row.status).sort(), ['cancelled', 'cancelled', 'interrupted'], 'as their runs')
r = await run(...batch)
equal(r.out.trim().split('\n').map((line) => JSON.parse(line).status), ['cancelled', 'interrupted', 'cancelled'], 'and stay so')

file('agents/boss.yaml', 'kind: agent\nname: boss\ndescription: Answers.\nmodel: openai:gpt-4.1\ntools:\n  - name: wipe\n')
const script = file('chat.yaml', 'tools:\n  wipe: {risk: destructive, calls: [{result: {wiped: true}}]}\n')
const chat = (text) => run('chat', text, '--agent', 'boss', '--schema-dir', join(scratch, 'agents'), '--script', script, '--json')
r = await chat('soon')
equal(JSON.parse(r.out).status, 'interrupted', 'a turn waits')
r = await chat('late 3')
equal(n_cancelled, 3, 'another one is cancelled')
equal(JSON.parse(r.out).status, 'cancelled', 'and does not wait')
const turn = list().find((row) => row.id === JSON.parse(r.out).run_id)
equal([turn.status, turn.owner ?? null], ['cancelled', null], 'its run has ended')
provider.close()
finish('late')
