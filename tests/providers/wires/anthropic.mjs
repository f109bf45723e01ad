// Anthropic Messages: a neutral reply as its stream, and its requests in neutral words.
import {pieces} from '../random.mjs'
import {asObject} from './request.mjs'

export const name = 'anthropic'
export const model = 'anthropic:claude-sonnet-4-5'
export const basePath = ''
export const path = '/v1/messages'
export const contentType = 'text/event-stream'
export const end = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'

const finishWords = {stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal'}

const inputUsage = (usage) => ({
  input_tokens: usage.input - (usage.cached ?? 0),
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: usage.cached ?? 0,
})

export function stream(reply, next, id) {
  const events = []
  let index = 0
  const block = (start, deltas) => {
    events.push({type: 'content_block_start', index, content_block: start})
    for (const delta of deltas) events.push({type: 'content_block_delta', index, delta})
    events.push({type: 'content_block_stop', index})
    index++
  }
  events.push({
    type: 'message_start',
    message: {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-5',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {...inputUsage(reply.usage), output_tokens: 1},
    },
  })
  events.push({type: 'ping'})
  if (reply.text)
    block(
      {type: 'text', text: ''},
      pieces(reply.text, 9, next).map((text) => ({type: 'text_delta', text})),
    )
  ;(reply.calls ?? []).forEach((call, i) =>
    block(
      {type: 'tool_use', id: `toolu_${id}_${i}`, name: call.name, input: {}},
      ['', ...pieces(call.arguments, 7, next)].map((partial_json) => ({type: 'input_json_delta', partial_json})),
    ),
  )
  events.push({
    type: 'message_delta',
    delta: {stop_reason: finishWords[reply.finish], stop_sequence: null},
    usage: {output_tokens: reply.usage.output},
  })
  return events.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join('') + end
}

export function whole(reply, id) {
  const content = reply.text ? [{type: 'text', text: reply.text}] : []
  ;(reply.calls ?? []).forEach((call, i) =>
    content.push({type: 'tool_use', id: `toolu_${id}_${i}`, name: call.name, input: asObject(call.arguments)}),
  )
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content,
    stop_reason: finishWords[reply.finish],
    stop_sequence: null,
    usage: {...inputUsage(reply.usage), output_tokens: reply.usage.output},
  }
}

export const error = (type, message) => ({type: 'error', error: {type, message}, request_id: 'req_1'})

const blocksOf = (content) => (typeof content === 'string' ? [{type: 'text', text: content}] : content)
const textOf = (content) =>
  blocksOf(content ?? [])
    .filter((b) => b.type === 'text')
    .map((b) => b.text)
    .join('')

export function readRequest(body) {
  const messages = body.system ? [{role: 'system', text: textOf(body.system), calls: []}] : []
  for (const m of body.messages) {
    const blocks = blocksOf(m.content)
    for (const b of blocks.filter((x) => x.type === 'tool_result'))
      messages.push({role: 'tool', answers: b.tool_use_id, text: textOf(b.content)})
    const calls = blocks.filter((b) => b.type === 'tool_use').map((b) => ({id: b.id, name: b.name, arguments: b.input}))
    if (textOf(m.content) || calls.length) messages.push({role: m.role, text: textOf(m.content), calls})
  }
  return {
    messages,
    tools: (body.tools ?? []).map((t) => ({name: t.name, schema: t.input_schema ?? null})),
    schema: body.output_config?.format?.schema ?? null,
    max: body.max_tokens,
    temperature: body.temperature ?? null,
  }
}

// What the vendor answers 400 to, as far as requests of ours could come to it.
export function complaints(body, headers) {
  const out = []
  if (!headers['x-api-key']) out.push('no key in x-api-key')
  if (headers['anthropic-version'] !== '2023-06-01') out.push('no anthropic-version')
  for (const field of ['model', 'messages', 'max_tokens']) if (!body[field]) out.push(`no ${field}`)
  let open = []
  let before = null
  for (const m of body.messages ?? []) {
    const blocks = blocksOf(m.content)
    if (m.role !== 'user' && m.role !== 'assistant') out.push(`role ${m.role}`)
    if (!before && m.role !== 'user') out.push('the first message is not of the user')
    if (m.role === before) out.push(`two messages of the ${m.role} in a row`)
    if (!blocks.length) out.push('a message without content')
    const results = blocks.filter((b) => b.type === 'tool_result').map((b) => b.tool_use_id)
    if ([...results].sort().join() !== [...open].sort().join()) out.push(`answers to ${results}, calls were ${open}`)
    if (results.length && blocks.slice(0, results.length).some((b) => b.type !== 'tool_result'))
      out.push('tool results are not first')
    if (blocks.some((b) => b.type === 'text' && b.text === '')) out.push('an empty text block')
    open = blocks.filter((b) => b.type === 'tool_use').map((b) => b.id)
    for (const b of blocks)
      if (b.type === 'tool_use' && (typeof b.input !== 'object' || b.input === null || Array.isArray(b.input)))
        out.push('input is no object')
    before = m.role
  }
  if (open.length) out.push(`no answer to ${open}`)
  for (const t of body.tools ?? []) {
    if (!/^[\w-]{1,64}$/.test(t.name)) out.push(`tool name ${t.name}`)
    if (t.input_schema?.type !== 'object') out.push(`input_schema of ${t.name} is not of an object`)
  }
  if (body.tools && !body.tools.length) out.push('tools is empty')
  return out
}
