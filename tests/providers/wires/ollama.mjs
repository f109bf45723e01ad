// Ollama: a neutral reply as its lines, and its requests in neutral words.
import {pieces} from '../random.mjs'
import {asObject} from './request.mjs'

export const name = 'ollama'
export const model = 'ollama:llama3.2'
export const basePath = ''
export const path = '/api/chat'
export const contentType = 'application/x-ndjson'

const line = (message, more = {}) => ({
  model: 'llama3.2',
  created_at: '2026-08-01T12:00:00.123456Z',
  message: {role: 'assistant', content: '', ...message},
  done: false,
  ...more,
})

const lastOf = (reply) => ({
  done: true,
  done_reason: reply.finish === 'length' ? 'length' : 'stop',
  total_duration: 9000000,
  load_duration: 1000000,
  prompt_eval_count: reply.usage.input,
  prompt_eval_duration: 2000000,
  eval_count: reply.usage.output,
  eval_duration: 6000000,
})

// Arguments are an object on this wire, whole, and calls have no ids.
const callsOf = (reply) =>
  (reply.calls ?? []).map((c) => ({function: {name: c.name, arguments: asObject(c.arguments)}}))

export function stream(reply, next) {
  const lines = pieces(reply.text ?? '', 9, next).map((content) => line({content}))
  for (const call of callsOf(reply)) lines.push(line({tool_calls: [call]}))
  lines.push(line({}, lastOf(reply)))
  return lines.map((l) => JSON.stringify(l) + '\n').join('')
}

export function whole(reply) {
  const calls = callsOf(reply)
  return line({content: reply.text ?? '', ...(calls.length ? {tool_calls: calls} : {})}, lastOf(reply))
}

export const error = (type, message) => ({error: message})

export function readRequest(body) {
  // The calls that were not answered yet: without ids, results belong to them in order.
  let open = []
  let made = 0
  const messages = body.messages.map((m) => {
    if (m.role === 'tool') return {role: 'tool', answers: m.tool_call_id ?? open.shift(), text: m.content}
    const calls = (m.tool_calls ?? []).map((c) => ({
      id: c.id ?? `made ${++made}`,
      name: c.function.name,
      arguments: c.function.arguments,
    }))
    open = calls.map((c) => c.id)
    return {role: m.role, text: m.content ?? '', calls}
  })
  return {
    messages,
    tools: (body.tools ?? []).map((t) => ({name: t.function.name, schema: t.function.parameters ?? null})),
    schema: typeof body.format === 'object' ? body.format : null,
    max: body.options?.num_predict,
    temperature: body.options?.temperature ?? null,
  }
}

export function complaints(body) {
  const out = []
  if (!body.model) out.push('no model')
  let open = 0
  for (const m of body.messages ?? []) {
    if (!['system', 'user', 'assistant', 'tool'].includes(m.role)) out.push(`role ${m.role}`)
    if (m.role === 'tool' && open-- <= 0) out.push('an answer to no call')
    if (m.role !== 'tool' && open > 0) out.push(`${open} calls without an answer`)
    if (m.role !== 'tool') open = m.tool_calls?.length ?? 0
    for (const c of m.tool_calls ?? [])
      if (typeof c.function.arguments !== 'object' || c.function.arguments === null) out.push('arguments are no object')
  }
  if (open > 0) out.push(`${open} calls without an answer`)
  return out
}
