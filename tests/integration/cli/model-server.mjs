// node model-server.mjs FOLDER: a server of models on loopback, as far as the scripts here need one: it lists models,
// streams an answer, makes vectors. FOLDER/port says where it listens, FOLDER/requests has a line for each request.
import {appendFileSync, renameSync, writeFileSync} from 'node:fs'
import {createServer} from 'node:http'
import {join} from 'node:path'

const [folder] = process.argv.slice(2)
const PIECES = ['By ', 'rope ', 'and ', 'tar.']
const USAGE = {
  prompt_tokens: 1234,
  completion_tokens: 9,
  prompt_tokens_details: {cached_tokens: 1024},
  completion_tokens_details: {reasoning_tokens: 4},
}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function chat(body, out) {
  if (!body.stream) return refuse(out, 400, 'only streams')
  if (body.model === 'no-such-model') return refuse(out, 404, 'no such model; your key was sk-looplooploop')
  const [, status] = /^status-(\d+)$/.exec(body.model) ?? []
  if (status) return refuse(out, Number(status), 'no; your key was sk-looplooploop')
  if (body.model === 'silent') return // never an answer
  if (body.model === 'web-page') {
    out.writeHead(200, {'content-type': 'text/html'})
    return out.end('<html>welcome</html>')
  }
  out.writeHead(200, {'content-type': 'text/event-stream'})
  const event = (data) => out.write(`data: ${JSON.stringify({id: 'c1', model: body.model, ...data})}\n\n`)
  const piece = (delta, finish_reason = null) => event({choices: [{index: 0, delta, finish_reason}]})
  piece({role: 'assistant', content: ''})
  const [, said, why] = /^says (.*) \((\w+)\)$/.exec(body.model) ?? []
  if (said) {
    piece({content: said.replaceAll('NUL', '\u0000')})
    piece({}, why)
    event({choices: [], usage: USAGE})
    return out.end('data: [DONE]\n\n')
  }
  const asked = body.tools && !body.messages.some((m) => m.role === 'tool')
  if (asked) {
    await wait(30)
    for (const [index, name] of body.tools.map((t) => t.function.name).entries())
      piece({tool_calls: [{index, id: `call_${index}`, type: 'function', function: {name, arguments: '{"q":'}}]})
    await wait(30)
    for (const index of body.tools.keys()) piece({tool_calls: [{index, function: {arguments: `"${index}"}`}}]})
    piece({}, 'tool_calls')
  } else {
    for (const text of PIECES) {
      await wait(30)
      piece({content: text})
    }
    piece({}, 'stop')
  }
  event({choices: [], usage: USAGE})
  out.end('data: [DONE]\n\n')
}

function refuse(out, status, message) {
  out.writeHead(status, {'content-type': 'application/json'})
  out.end(JSON.stringify({error: {message, type: 'invalid_request_error'}}))
}

// One number for the length, one for its place in the request: the order of the answer is turned around.
function embed(body, out) {
  if (body.model === 'no-such-model') return refuse(out, 404, 'no such model; your key was sk-looplooploop')
  const data = body.input.map((text, index) => ({object: 'embedding', index, embedding: [text.length, index, 0.1]}))
  if (body.model === 'forgetful') data.pop()
  out.writeHead(200, {'content-type': 'application/json'})
  out.end(JSON.stringify({object: 'list', data: data.reverse(), usage: {prompt_tokens: body.input.length * 2}}))
}

function embedForOllama(body, out) {
  out.writeHead(200, {'content-type': 'application/json'})
  out.end(JSON.stringify({embeddings: body.input.map((text) => [text.length, -0.5]), prompt_eval_count: 3}))
}

const server = createServer(async (request, out) => {
  let text = ''
  for await (const part of request) text += part
  const key = request.headers.authorization ? ' with a key' : ''
  appendFileSync(join(folder, 'requests'), `${request.method} ${request.url}${key} ${text}\n`)
  const body = text ? JSON.parse(text) : {}
  if (request.url === '/v1/models') {
    out.writeHead(200, {'content-type': 'application/json'})
    out.end(JSON.stringify({object: 'list', data: [{id: 'loop-embed'}, {id: 'loop/tiny:1b'}]}))
  } else if (request.url === '/slow/models') return // never an answer
  else if (request.url === '/locked/models') refuse(out, 401, 'no key')
  else if (request.url === '/odd/models') out.end('{"data": 1')
  else if (request.url === '/empty/models') out.end('{"data": [{"id": 7}, {"id": "two words"}, {}, null]}')
  else if (request.url === '/v1/chat/completions') await chat(body, out)
  else if (request.url === '/v1/embeddings') embed(body, out)
  else if (request.url === '/api/embed') embedForOllama(body, out)
  else refuse(out, 404, 'there is nothing')
})
server.listen(0, '127.0.0.1', () => {
  writeFileSync(join(folder, 'port.new'), String(server.address().port))
  renameSync(join(folder, 'port.new'), join(folder, 'port'))
})
