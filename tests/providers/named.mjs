// node named.mjs REEVE: providers by their names and the variables that people have set: where the request goes, which header
// says who asks, and what is not sent to whom does not take it.
import {once} from 'node:events'
import {writeFileSync} from 'node:fs'
import {createServer} from 'node:http'
import {join} from 'node:path'
import {check, equal, eventsOf, finish, run, scratch} from './kit.mjs'
import {readBody} from './replay-server.mjs'
import {ANSWER, recorded} from './rows/serve.mjs'
import {wires} from './wires/wires.mjs'

const KEY = 'key-0123456789'
const [reeve] = process.argv.slice(2)

// Whoever asks for a path of a wire is answered on it.
let last = null
const server = createServer(async (request, response) => {
  last = {url: request.url, headers: request.headers, body: JSON.parse((await readBody(request)).toString())}
  const wire = request.url.endsWith('/messages') ? 'anthropic' : request.url.endsWith('/api/chat') ? 'ollama' : 'openai'
  response.writeHead(200, {'content-type': wires[wire].contentType}).end(recorded[wire])
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const host = `127.0.0.1:${server.address().port}`
const url = `http://${host}`

const bearer = {authorization: `Bearer ${KEY}`}
const chat = '/v1/chat/completions'
const compatible = (name, model, variable) => ({
  model: `${name}:${model}`,
  base_url: `${url}/v1`,
  env: variable ? {[variable]: KEY} : {},
  path: chat,
  headers: variable ? bearer : {authorization: undefined},
})
const deployment = (model) => `/openai/deployments/${model}/chat/completions?api-version=2024-10-21`
writeFileSync(join(scratch, 'key.txt'), KEY)

const rows = [
  {model: 'openai:gpt-4.1-mini', env: {OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: KEY}, path: chat, headers: bearer},
  {model: 'openai:gpt-4.1-mini', env: {OPENAI_BASE_URL: `${url}/v1/`}, path: chat, headers: {authorization: undefined}},
  {
    model: 'anthropic:claude-sonnet-4-5',
    env: {ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY},
    path: '/v1/messages',
    headers: {'x-api-key': KEY, 'anthropic-version': '2023-06-01', authorization: undefined},
  },
  {model: 'ollama:llama3.2', env: {OLLAMA_HOST: host}, path: '/api/chat', headers: {authorization: undefined}},
  {
    model: 'azure:my-deployment',
    env: {AZURE_OPENAI_ENDPOINT: url, AZURE_OPENAI_API_KEY: KEY},
    path: deployment('my-deployment'),
    headers: {'api-key': KEY, authorization: undefined},
    has: ['max_completion_tokens'],
    lacks: ['max_tokens'],
  },
  {
    model: 'azure:o3',
    env: {AZURE_OPENAI_ENDPOINT: url, AZURE_OPENAI_API_KEY: KEY},
    more: {temperature: 0.5},
    path: deployment('o3'),
    headers: {'api-key': KEY},
    lacks: ['temperature', 'max_tokens'],
  },
  {
    ...compatible('deepseek', 'deepseek-chat', 'DEEPSEEK_API_KEY'),
    has: ['max_tokens'],
    lacks: ['max_completion_tokens'],
  },
  compatible('gemini', 'gemini-2.5-flash', 'GEMINI_API_KEY'),
  compatible('groq', 'llama-3.3-70b', 'GROQ_API_KEY'),
  {...compatible('mistral', 'mistral-small', 'MISTRAL_API_KEY'), lacks: ['stream_options']},
  compatible('openrouter', 'meta-llama/llama-3', 'OPENROUTER_API_KEY'),
  compatible('together', 'some/model', 'TOGETHER_API_KEY'),
  compatible('xai', 'grok-4', 'XAI_API_KEY'),
  compatible('llamacpp', 'default'),
  compatible('lmstudio', 'default'),
  compatible('vllm', 'default'),
  {
    model: 'vllm:default',
    base_url: `${url}/v1`,
    env: {},
    more: {api_key: '${file:key.txt}', headers: {'x-team': 'peers'}, extra_body: {top_k: 3}},
    path: chat,
    headers: {...bearer, 'x-team': 'peers'},
    has: ['top_k'],
  },
]

async function ask(row) {
  const file = join(scratch, 'named.yaml')
  const {model, base_url, more} = row
  const pipeline = {
    name: 'named',
    models: {default: base_url || more ? {model, ...(base_url ? {base_url} : {}), ...more} : model},
    agents: [{name: 'answer', has_llm: true, model_role: 'default', prompt_key: 'ask', output_mode: 'text'}],
    prompts: {ask: 'What floats?'},
  }
  writeFileSync(file, JSON.stringify(pipeline))
  last = null
  const ran = await run(reeve, ['run', file, '--events', '--quiet', '--no-store'], {env: row.env})
  return {...ran, events: eventsOf(ran.out)}
}

for (const row of rows) {
  const what = (text) => `${row.model}: ${text}`
  const ran = await ask(row)
  const output = ran.events.find((e) => e.type === 'stage_completed')?.output
  check(ran.status === 0 && output?.response === ANSWER, what('answers'), ran.err, ran.out.slice(-600))
  equal(last?.url, row.path, what('is asked at its path'))
  for (const [name, value] of Object.entries(row.headers)) equal(last?.headers[name], value, what(`header ${name}`))
  const name = row.model.slice(row.model.indexOf(':') + 1)
  if (!row.model.startsWith('azure:')) equal(last?.body.model, name, what('is named in the request'))
  for (const member of row.has ?? []) check(member in (last?.body ?? {}), what(`is sent ${member}`), last?.body ?? null)
  for (const member of row.lacks ?? [])
    check(!(member in (last?.body ?? {})), what(`is not sent ${member}`), last?.body ?? null)
}

const keyless = await ask({model: 'azure:my-deployment', env: {AZURE_OPENAI_ENDPOINT: url}})
const result = keyless.events.find((e) => e.type === 'llm_result')
equal([keyless.status, result?.error_kind, last], [1, 'auth', null], 'without a key nobody is asked')
check(
  result?.error?.includes('AZURE_OPENAI_API_KEY'),
  'and the error says which variable is missing',
  result ?? keyless.err,
)

const unknown = await ask({model: 'opnai:gpt-4.1-mini', env: {}})
equal([unknown.status, last], [2, null], 'a provider that nobody knows is an error of the pipeline')
check(unknown.err.includes('openai'), 'which names the nearest one', unknown.err)

server.closeAllConnections()
server.close()
finish('named')
