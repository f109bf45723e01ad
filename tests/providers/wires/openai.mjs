// OpenAI Chat Completions: a neutral reply as its stream, and its requests in neutral words.
import {pieces} from '../random.mjs'
import {asObject} from './request.mjs'

export const name = 'openai'
export const model = 'openai:gpt-4.1-mini'
export const basePath = '/v1'
export const path = '/v1/chat/completions'
export const contentType = 'text/event-stream'
export const end = 'data: [DONE]\n\n'

const finishWords = {stop: 'stop', length: 'length', tool_calls: 'tool_calls', content_filter: 'content_filter'}

const usageOf = (usage) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: {cached_tokens: usage.cached ?? 0},
  completion_tokens_details: {reasoning_tokens: 0},
})

const callsOf = (reply, id) =>
  (reply.calls ?? []).map((c, i) => ({
    id: `call_${id}_${i}`,
    type: 'function',
    function: {name: c.name, arguments: c.arguments},
  }))

export function stream(reply, next, id, requested) {
  const head = {id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1790000000, model: 'gpt-4.1-mini'}
  const chunk = (delta, finish_reason = null) => ({
    ...head,
    choices: [{index: 0, delta, logprobs: null, finish_reason}],
    usage: null,
  })
  const calls = callsOf(reply, id)
  const chunks = [chunk({role: 'assistant', content: calls.length && !reply.text ? null : '', refusal: null})]

  for (const text of pieces(reply.text ?? '', 9, next)) chunks.push(chunk({content: text}))
  calls.forEach((call, index) => {
    chunks.push(chunk({tool_calls: [{index, ...call, function: {name: call.function.name, arguments: ''}}]}))
    for (const text of pieces(call.function.arguments, 7, next))
      chunks.push(chunk({tool_calls: [{index, function: {arguments: text}}]}))
  })
  chunks.push(chunk({}, finishWords[reply.finish]))
  if (requested.stream_options?.include_usage) chunks.push({...head, choices: [], usage: usageOf(reply.usage)})
  return chunks.map((c) => `data: ${JSON.stringify(c)}\n\n`).join('') + end
}

export function whole(reply, id) {
  const calls = callsOf(reply, id)
  const message = {
    role: 'assistant',
    content: reply.text ?? null,
    refusal: null,
    ...(calls.length ? {tool_calls: calls} : {}),
  }
  return {
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: 1790000000,
    model: 'gpt-4.1-mini',
    choices: [{index: 0, message, logprobs: null, finish_reason: finishWords[reply.finish]}],
    usage: usageOf(reply.usage),
  }
}

export const error = (type, message, code = null) => ({error: {message, type, param: null, code}})

export function readRequest(body) {
  const messages = body.messages.map((m) => {
    const text = m.content ?? ''
    if (m.role === 'tool') return {role: 'tool', answers: m.tool_call_id, text}
    const calls = (m.tool_calls ?? []).map((c) => ({
      id: c.id,
      name: c.function.name,
      arguments: asObject(c.function.arguments),
    }))
    return {role: m.role === 'developer' ? 'system' : m.role, text, calls}
  })
  return {
    messages,
    tools: (body.tools ?? []).map((t) => ({name: t.function.name, schema: t.function.parameters ?? null})),
    schema: body.response_format?.json_schema?.schema ?? null,
    max: body.max_completion_tokens ?? body.max_tokens,
    temperature: body.temperature ?? null,
  }
}

// What the vendor answers 400 to, as far as requests of ours could come to it.
export function complaints(body, headers) {
  const out = []
  if (!/^Bearer \S+$/.test(headers.authorization ?? '')) out.push('no key in authorization')
  if (!body.model) out.push('no model')
  const open = new Set()
  for (const m of body.messages ?? []) {
    if (open.size && m.role !== 'tool') out.push(`no answer to ${[...open]}`)
    if (m.role === 'tool' && !open.delete(m.tool_call_id))
      out.push(`an answer to ${m.tool_call_id}, which was not called`)
    for (const c of m.tool_calls ?? []) open.add(c.id)
    if (m.role === 'assistant' && !m.content && !m.tool_calls?.length) out.push('an assistant message without content')
    if (m.tool_calls && !m.tool_calls.length) out.push('tool_calls is empty')
  }
  if (open.size) out.push(`no answer to ${[...open]}`)
  for (const t of body.tools ?? [])
    if (!/^[\w-]{1,64}$/.test(t.function?.name)) out.push(`tool name ${t.function?.name}`)
  if (body.tools && !body.tools.length) out.push('tools is empty')
  if (body.tool_choice && !body.tools) out.push('tool_choice without tools')
  if (body.response_format?.json_schema?.strict) strict(body.response_format.json_schema.schema, '$', out)
  for (const t of body.tools ?? []) if (t.function?.strict) strict(t.function.parameters, t.function.name, out)
  return out
}

// The strict subset: each object closed, all of its members required.
function strict(schema, at, out) {
  if (schema === null || typeof schema !== 'object') return
  if (schema.properties) {
    if (schema.additionalProperties !== false) out.push(`${at}: strict needs additionalProperties: false`)
    for (const key of Object.keys(schema.properties))
      if (!schema.required?.includes(key)) out.push(`${at}: strict needs ${key} in required`)
  }
  for (const [key, value] of Object.entries(schema)) if (typeof value === 'object') strict(value, `${at}.${key}`, out)
}
