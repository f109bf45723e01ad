// A provider of a capability: a neutral reply as the pieces and the reply that it hands over, and its requests in neutral
// words. No server is asked: see ../played.mjs.
import {pieces} from '../random.mjs'
import {asObject} from './request.mjs'

export const name = 'capability'
export const model = 'played.served:some-model'

export function lines(reply, next) {
  const said = reply.text === undefined ? [] : pieces(reply.text, 9, next).map((text) => `+${JSON.stringify({text})}`)
  const whole = {
    ...(reply.text === undefined ? {} : {text: reply.text}),
    ...(reply.calls ? {tool_calls: reply.calls} : {}),
    finish_reason: reply.finish,
    usage: {
      input_tokens: reply.usage.input,
      output_tokens: reply.usage.output,
      ...(reply.usage.cached ? {cached_tokens: reply.usage.cached} : {}),
    },
  }
  return [...said, `=${JSON.stringify(whole)}`]
}

const messageOf = (m) => ({
  role: m.role,
  ...(m.role === 'tool' ? {answers: m.tool_call_id} : {}),
  text: m.content ?? '',
  ...(m.role === 'tool'
    ? {}
    : {calls: (m.tool_calls ?? []).map((c) => ({id: c.id, name: c.name, arguments: asObject(c.arguments)}))}),
})

export function readRequest(body) {
  const first = body.system ? [{role: 'system', content: body.system}] : []
  const prompt = {role: 'user', content: body.prompt}
  const all = [...first, ...(body.examples ?? []), ...(body.history ?? []), prompt, ...(body.turns ?? [])]
  return {
    messages: all.map(messageOf),
    tools: (body.tools ?? []).map((t) => ({name: t.name, schema: t.parameters ?? null})),
    schema: body.output?.schema ?? null,
    max: body.options?.num_predict,
    temperature: body.options?.temperature ?? null,
  }
}

export function complaints(body) {
  const out = []
  let open = []
  if (!body.prompt) out.push('no prompt')
  for (const m of body.turns ?? []) {
    if (m.role === 'tool' && open.shift() !== m.tool_call_id) out.push('an answer to no call, or out of order')
    if (m.role !== 'tool' && open.length) out.push(`${open.length} calls without an answer`)
    if (m.role === 'assistant') open = (m.tool_calls ?? []).map((c) => c.id)
  }
  return out
}
